"""int int f(v, w) dv dw over a box cut by curves: nodes that are graded towards the curves, down to 1e-16 of the box.

What stands next to a curve may vary on every scale there, so nodes are spaced evenly in the logarithm of the distance
(the trapezoidal rule, which converges exponentially); where a curve turns, leaves the box or meets another one, v is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.density import array_function
from hermitex.kernels.panels import distinct, gauss
from hermitex.symbolic.budget import checkpoint

_DEEPEST = 37.0  # exp(-37) = 9e-17
_SCAN = np.arange(-90.0, 37.0, 0.27)  # log of a place next to 0, and of one next to the other end
_BISECTIONS = 60
_START = 24
_STEPS = 60
_BESIDE = 0.35  # a singularity so close to an end, beyond it, counts as one at the end
_ZERO = 1e-11


class LevelCurve(NamedTuple):
    """c(v, w) = 0, with the derivatives of c."""

    value: Callable
    slopes: tuple[Callable, Callable]
    bends: tuple[Callable, Callable]  # d/dv, d/dw of the slope along w

    @classmethod
    def of(cls, c: Expr, v: Symbol, w: Symbol) -> LevelCurve:
        """A curve from its expression."""
        from hermitex.exponents.laws.sections import smooth_slope

        slopes = [smooth_slope(c, v), smooth_slope(c, w)]
        bends = [smooth_slope(slopes[1], x) for x in (v, w)]
        slope, bend = ((array_function(e, v, w), array_function(f, v, w)) for e, f in (slopes, bends))
        return cls(array_function(c, v, w), slope, bend)


class Box(NamedTuple):
    """[0, ends[0]] x [0, ends[1]]; whether f is singular along v = 0, along w = 0."""

    ends: tuple[float, float]
    singular: tuple[bool, bool]


class CellRule(NamedTuple):
    """The step of the trapezoidal rule in the logarithm of the distance from a curve, and the order of Gauss' rule elsewhere."""

    step: float
    order: int


def nodes(curves: Sequence[LevelCurve], box: Box, rule: CellRule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v, w and the weights of a rule over the box."""
    (cuts, beside, folded), found = _cuts(curves, box), []
    both = [*[c.value for c in curves], *[c.slopes[1] for c in folded]]
    for k, (a, b) in enumerate(pairwise(cuts)):
        checkpoint("placing nodes between curves")
        t, weight = template((k > 0 or box.singular[0] or beside[0], k < len(cuts) - 2 or beside[1]), rule)
        v, mine = _between(a, b, t), (b - a) * weight
        below, above = _beside(both, (a, b), box.ends[1])
        edges = np.column_stack([np.zeros(len(v)), *_roots(curves, folded, v, box.ends[1]), np.full(len(v), box.ends[1])])
        edges = np.sort(edges, axis=1)  # nan last
        for n in range(edges.shape[1] - 1):
            low, high = edges[:, n], edges[:, n + 1]
            live = high > low * (1 + 1e-15)
            last = n == edges.shape[1] - 2 or np.isnan(edges[:, n + 2])
            for side in (False, True):
                rows = live & (last == side)
                if rows.any():
                    t, weight = template((n > 0 or box.singular[1] or below, not side or above), rule)
                    place = _between(low[rows, None], high[rows, None], t)
                    found.append((np.repeat(v[rows], len(t)), place.ravel(),
                                  (mine[rows, None] * (high - low)[rows, None] * weight).ravel()))
    v, w, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    kept = weight > 1e-19 * np.sum(weight)
    return v[kept], w[kept], weight[kept]


# -- where v is cut ----------------------------------------------------------------------------------------------------
def _cuts(curves: Sequence[LevelCurve], box: Box) -> tuple[np.ndarray, tuple[bool, bool], list[LevelCurve]]:
    """v at which a curve turns, leaves the box or meets another; whether that happens at an end or just beyond; which turn."""
    end, top = box.ends
    found: list[float] = []
    folded: list[LevelCurve] = []
    for c in curves:
        for w in (0.0, top):
            for v in (0.0, end):
                found += [v] if abs(float(c.value(np.array(v), np.array(w)))) < _ZERO else []
            found += _crossings(lambda v, c=c, w=w: c.value(v, np.full_like(v, w)), end)
        folds = _newton((c.value, c.slopes[1]), ((c.slopes[0], c.slopes[1]), c.bends), box)
        found += folds
        folded += [c] if folds else []
    for c, d in combinations(curves, 2):
        found += _newton((c.value, d.value), (c.slopes, d.slopes), box)
    near = 1e-9 * end  # a double point is found to half its digits only
    inside = distinct(np.array([0.0, *[x for x in found if near < x < end - near], end]))
    inside = inside[np.append(np.diff(inside) > near, True)]
    beside = (any(-_BESIDE * end < x <= near for x in found), any(end - near <= x < (1 + _BESIDE) * end for x in found))
    return inside, beside, folded


def _beside(curves: Sequence[Callable], between: tuple[float, float], top: float) -> tuple[bool, bool]:
    """Does a curve pass just below w = 0, or just above the top?"""
    a, b = between
    v = (a + (b - a) * np.array([1e-6, 0.03, 0.2, 0.4, 0.6, 0.8, 0.97, 1 - 1e-6]))[:, None]
    found = []
    for low, high in ((-_BESIDE * top, 0.0), (top, (1 + _BESIDE) * top)):
        w = np.linspace(low, high, 31)
        values = [np.sign(c(v, w)) for c in curves]
        found.append(any(bool(np.any(s[:, :-1] * s[:, 1:] <= 0)) for s in values))
    return found[0], found[1]


def _crossings(f: Callable, end: float) -> list[float]:
    far = end * np.linspace(1, 1 + _BESIDE, 20)
    x = np.concatenate([-far[::-1] + end, end * _places(), far[1:]])
    values = np.sign(f(x))
    at = np.flatnonzero(values[:-1] * values[1:] < 0)
    return _bisected(f, x[at], x[at + 1]).tolist()


def _newton(f: tuple[Callable, Callable], jacobian: Sequence[Sequence[Callable]], box: Box) -> list[float]:
    """v of the solutions of two equations in the box; double ones too, where Newton's method is slow."""
    sides = [e * ((1 + 2 * _BESIDE) * (np.arange(_START) + 0.37) / _START - _BESIDE) for e in box.ends]
    x = np.stack([s.ravel() for s in np.meshgrid(*sides, indexing="ij")])
    for _ in range(_STEPS):
        values = [g(*x) for g in f]
        (a, b), (c, d) = ([g(*x) for g in row] for row in jacobian)
        with np.errstate(all="ignore"):
            det = a * d - b * c
            step = np.stack([d * values[0] - b * values[1], a * values[1] - c * values[0]]) / det
        step = np.where(np.isfinite(step), step, 0.0)
        size = np.maximum(np.abs(step).max(axis=0), 1e-300)
        x = x - step * np.minimum(1.0, 0.3 * max(box.ends) / size)
    values = np.abs(np.stack([g(*x) for g in f]))
    inside = np.all([(p >= -_BESIDE * e) & (p <= (1 + _BESIDE) * e) for p, e in zip(x, box.ends, strict=True)], axis=0)
    with np.errstate(all="ignore"):
        good = inside & np.all(values < _ZERO, axis=0)
    v = x[0][good]
    # Points that fill a curve are no cuts.
    rounded = np.unique(np.round(v, 7))
    if len(rounded) > _START:
        return []
    return [float(np.median(v[np.abs(v - p) < 1e-6])) for p in rounded]


def _roots(curves: Sequence[LevelCurve], folded: Sequence[LevelCurve], v: np.ndarray, top: float) -> list[np.ndarray]:
    """The edges in w at each v, as columns filled up with nan: zeros of the curves, and of dc/dw for those that turn.

    Beside a fold c = dc/dw = 0 two zeros are complex, and near where dc/dw = 0; on its other side they are close together.
    """
    columns: list[np.ndarray] = []
    w = np.broadcast_to(top * _places(), (len(v), len(_SCAN)))
    for c in curves:
        between = _zeros(c.slopes[1], v, w) if c in folded else []
        finer = np.sort(np.column_stack([w, *[np.where(np.isnan(x), top, x) for x in between]]), axis=1)
        columns += [*between, *_zeros(c.value, v, finer)]
    return columns


def _zeros(f: Callable, v: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    """The zeros of f(v, .) between neighbouring places, as columns filled up with nan."""
    values = np.sign(f(v[:, None], w))
    row, at = np.nonzero(values[:, :-1] * values[:, 1:] < 0)
    root = _bisected(lambda p: f(v[row], p), w[row, at], w[row, at + 1])
    order = np.arange(len(row)) - np.searchsorted(row, row)
    columns = []
    for k in range(int(order.max(initial=-1)) + 1):
        column = np.full(len(v), np.nan)
        column[row[order == k]] = root[order == k]
        columns.append(column)
    return columns


def _bisected(f: Callable, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The zeros between a and b; between places of different size the middle is the geometric one."""
    a, b = a.copy(), b.copy()
    low = f(a) < 0
    for _ in range(_BISECTIONS):
        m = np.where((a > 0) & (b > 1.5 * a), np.sqrt(np.abs(a * b)), (a + b) / 2)
        before = (f(m) < 0) == low
        a, b = np.where(before, m, a), np.where(before, b, m)
    return (a + b) / 2


@lru_cache(maxsize=1)
def _places() -> np.ndarray:
    """Places of (0, 1), close together at both ends."""
    return np.where(_SCAN < 0, np.exp(_SCAN), 1.0) / (1 + np.exp(-np.abs(_SCAN)))


# -- rules on an interval ----------------------------------------------------------------------------------------------
def _between(a: Any, b: Any, t: np.ndarray) -> np.ndarray:
    """a + (b - a) t, written from the nearer end."""
    return np.where(t < 0.5, a + (b - a) * t, b - (b - a) * (1 - t))


@lru_cache(maxsize=64)
def template(graded: tuple[bool, bool], rule: CellRule) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1), graded towards its ends or not.

    x = 1/(1 + e^-s) is even in log x at both ends; x = 1/(1 + exp(-s - e^s)) is so at 0 and falls off faster at 1.
    """
    if not any(graded):
        x, w = gauss(rule.order)
        return np.concatenate([(1 + x) / 4, (3 + x) / 4]), np.concatenate([w, w]) / 4
    if all(graded):
        s = np.arange(-_DEEPEST, _DEEPEST + rule.step / 2, rule.step)
        return 1 / (1 + np.exp(-s)), rule.step / (2 + 2 * np.cosh(s))
    s = np.arange(-_DEEPEST, 3.7, rule.step)
    x = 1 / (1 + np.exp(-s - np.exp(s)))
    weight = rule.step * (1 + np.exp(s)) * x * (1 - x)
    return (x, weight) if graded[0] else ((1 - x)[::-1], weight[::-1])
