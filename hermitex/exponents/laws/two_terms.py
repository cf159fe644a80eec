"""1/alpha_c = E[(E[v^2|y, u] - 1)^2], y = f(z_1) + f(z_2), u = (z_1 + z_2)/sqrt2 known, v = (z_1 - z_2)/sqrt2.

At each u the label is h(d) = f(m + d) + f(m - d), m = u/sqrt2, v = sqrt2 d. The average runs over the points d, not over
the labels: on every monotone branch, cut at the exact preimages of the critical labels of the others, the ratio is smooth
in d down to the far tail, where labels crowd. Over u the intervals are cut where critical labels appear, vanish or meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from sympy import Expr, Integer, Symbol

from hermitex.exponents.laws.brackets import bracketed, changes, crossed
from hermitex.exponents.laws.density import WINDOW, distinct, half_template, unguarded
from hermitex.exponents.laws.sections import smooth_slope
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.pieces import pieces

_ROOT = 2**0.5
_REACH = WINDOW / _ROOT    # of m and of d
_WINDOW = 13               # of z_1 and z_2
_SCAN = 600                # of d, and of m
_POINTS = (1 - np.cos(np.pi * np.arange(65) / 64)) / 2
_BISECTIONS = 46
_NEAR = np.array([0.003, 0.01, 0.03, 0.1, 0.25])
_ORDER, _DEPTH = 14, 4
_FLAT = 1e-13
_SAME, _ROUNDING = 1e-10, 4e-15  # parts of the range of labels, and of their size
_ACCURACY = 1e-12
_INTERVALS = 30
_SILENT = 1e-17
_FEW = 6
_FAULT = 2e-14


@dataclass
class Branch:
    """h on a < d < b, monotone, with its labels at the ends; a plateau if they are equal. `fault`: by how much it is not."""

    a: float
    b: float
    at_a: float
    at_b: float
    h: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    fault: float = 0.0

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """(labels that do not fall, points)."""
        points = self.a + (self.b - self.a) * _POINTS
        labels = self.h(points)
        labels[0], labels[-1] = self.at_a, self.at_b
        if self.at_b < self.at_a:
            points, labels = points[::-1], labels[::-1]
        rising = np.maximum.accumulate(labels)
        self.fault = float(np.max(rising - labels))
        return rising, points

    def preimage(self, y: np.ndarray) -> np.ndarray:
        """d with these labels, which lie between those of the ends: Newton's method in the cell of a table."""
        labels, points = self.table
        cell = np.clip(np.searchsorted(labels, y, side="right"), 1, len(points) - 1)
        low, high = points[cell - 1], points[cell]
        below, above = labels[cell - 1], labels[cell]
        share = np.where(above > below, (y - below) / np.where(above > below, above - below, 1.0), 0.5)
        start = low + (high - low) * np.clip(share, 0.02, 0.98)
        return bracketed(lambda d, n: self.h(d), lambda d, n: self.slope(d), y, (low, high), start)


class TwoTerms:
    """E[scalar^2] over (y, u). Parameters: `f` an expression of `x`; `mirror`: the law at -u is that at u."""

    def __init__(self, f: Expr, x: Symbol, *, mirror: bool = False) -> None:
        sides = pieces(f, x, Integer(-_WINDOW), Integer(_WINDOW))
        self.mirror = mirror
        self.cuts = np.array([float(p.hi) for p in sides[:-1]])
        self.f = [unguarded(p.expr, x) for p in sides]
        self.slopes = [unguarded(smooth_slope(p.expr, x), x) for p in sides]

    def squares(self) -> tuple[float, float]:
        """(E[scalar^2], an error): that of the average over u, and what E[scalar] = 0 misses at each u."""
        from scipy.integrate import quad_vec

        total, error = np.zeros(2), 0.0
        for a, b in pairwise(self._knots()):
            checkpoint("averaging over the sum of two terms")

            def f(angle: float, a: float = a, b: float = b) -> np.ndarray:
                s, c = np.sin(angle), np.cos(angle)
                m = a + (b - a) * s * s if angle < 0.8 else b - (b - a) * c * c
                return self._weighted(m) * 2 * s * c * (b - a)

            value, wrong = quad_vec(f, 0.0, np.pi / 2, epsabs=_ACCURACY, epsrel=_ACCURACY, quadrature="gk15", limit=_INTERVALS)[:2]
            total, error = total + value, error + wrong
        both = 2 if self.mirror else 1
        return both * float(total[0]), both * error + float(both * total[1]) ** 0.5

    def _weighted(self, m: float) -> np.ndarray:
        with np.errstate(all="ignore"):
            value, lost = self.given(m)
        return np.exp(-m * m) / np.sqrt(np.pi) * np.array([value, lost * lost])

    # -- one u ---------------------------------------------------------------------------------------------------------
    def given(self, m: float) -> tuple[float, float]:
        """(E[scalar^2|u], E[scalar|u]), the second of which is zero."""
        branches = self.branches(m)
        flat = [b for b in branches if b.at_a == b.at_b]
        steep = [b for b in branches if b.at_a != b.at_b]
        square = mean = 0.0
        for label in distinct(np.array([b.at_a for b in flat])) if flat else ():
            p, q = np.sum([_mass(b.a, b.b) for b in flat if abs(b.at_a - label) <= _SAME * max(1.0, abs(label))], axis=0)
            square, mean = square + (q * q / p if p > _SILENT else 0.0), mean + q
        for walk in _walks(steep):
            found = _along(*walk, steep)
            square, mean = square + found[0], mean + found[1]
        # A branch that is not monotone has lost a fold, whose width is the root of that.
        faults = [b.fault for b in steep if b.table and b.fault > _FAULT * max(1.0, abs(b.at_a), abs(b.at_b))]
        return square, mean + sum(fault**0.5 for fault in faults)

    def branches(self, m: float) -> list[Branch]:
        """The monotone branches of d -> f(m + d) + f(m - d)."""
        edges = distinct(np.array([0.0, _REACH, *(e for e in np.abs(self.cuts - m) if e < _REACH)]))
        found = []
        for a, b in pairwise(edges):
            if b - a < 1e-12:
                continue
            i, j = np.searchsorted(self.cuts, [m + (a + b) / 2, m - (a + b) / 2])
            f, g, df, dg = self.f[i], self.f[j], self.slopes[i], self.slopes[j]

            def h(d: np.ndarray, f: Callable = f, g: Callable = g) -> np.ndarray:
                return f(m + d) + g(m - d)

            def slope(d: np.ndarray, df: Callable = df, dg: Callable = dg) -> np.ndarray:
                return df(m + d) - dg(m - d)

            inside = a + (b - a) * (np.arange(24) + 0.5) / 24
            values = h(inside)
            if np.ptp(values) <= _FLAT * max(1.0, float(np.abs(values).max())) and np.abs(slope(inside)).max() < 1e-9:
                found.append(Branch(a, b, float(np.median(values)), float(np.median(values)), h, slope))
                continue
            ends = np.array([a, *_zeros(slope, a, b), b])
            labels = h(ends)
            found += [Branch(p, q, float(u), float(v), h, slope)
                      for (p, q), (u, v) in zip(pairwise(ends), pairwise(labels), strict=True) if u != v]
        return found

    # -- over u --------------------------------------------------------------------------------------------------------
    def _knots(self) -> np.ndarray:
        """m at which the critical labels of h change in number or in order."""
        low = 0.0 if self.mirror else -_REACH
        grid = np.linspace(low, _REACH, _SCAN + 1) + 1.3e-5
        grid[-1] = _REACH
        knots = changes(self._signature, grid, _BISECTIONS)
        return distinct(np.array([low, 0.0, _REACH, *knots]))

    def _signature(self, m: float) -> tuple:
        """The order of the labels at the ends of the branches, those at the ends of the window left out."""
        checkpoint("looking for the sums at which critical labels meet")
        with np.errstate(all="ignore"):
            found = self.branches(m)
        labels = np.array([v for b in found for v in (b.at_a, b.at_b)][:-1])
        groups = _clusters(labels, _SAME)
        return tuple(np.argmin(np.abs(labels[:, None] - groups), axis=1).tolist()) if len(groups) else ()


def _walks(steep: list[Branch]) -> Iterator[tuple[Branch, np.ndarray, bool]]:
    """(branch, edges of the intervals of d on it, whether it walks for the others too).

    Every branch is walked along by itself: next to a critical point a label holds half of the digits of its place, and
    what is not weighted by labels loses nothing. Many branches are too dear for that.
    """
    special = _clusters(np.array([v for b in steep for v in (b.at_a, b.at_b)]))
    for b in steep if len(steep) <= _FEW else ():
        inner = special[(special > min(b.at_a, b.at_b)) & (special < max(b.at_a, b.at_b))]
        edges = distinct(np.array([b.a, *(b.preimage(inner) if len(inner) else ()), b.b]))
        yield b, np.stack([edges[:-1], edges[1:]], axis=1), False
    if len(steep) > _FEW:
        yield from ((b, edges, True) for b, edges in _shared(steep, special))


def _shared(steep: list[Branch], special: np.ndarray) -> Iterator[tuple[Branch, np.ndarray]]:
    """The labels between two critical ones on one branch: that of the far tail if it is there, or the widest."""
    middle = (special[:-1] + special[1:]) / 2
    covers = np.array([(middle > min(b.at_a, b.at_b)) & (middle < max(b.at_a, b.at_b)) for b in steep])
    rank = np.array([b.b - b.a + (_REACH if n == len(steep) - 1 else 0.0) for n, b in enumerate(steep)])
    chosen = np.argmax(np.where(covers, rank[:, None], -1.0), axis=0)
    for n, b in enumerate(steep):
        mine = np.flatnonzero((chosen == n) & covers[n])
        if not len(mine):
            continue
        ends = np.stack([special[mine], special[mine + 1]], axis=1).ravel()
        points = b.preimage(np.clip(ends, min(b.at_a, b.at_b), max(b.at_a, b.at_b)))
        for end, label in ((b.a, b.at_a), (b.b, b.at_b)):
            points = np.where(ends == special[np.argmin(np.abs(special - label))], end, points)
        yield b, np.sort(points.reshape(-1, 2), axis=1)


def _along(own: Branch, edges: np.ndarray, shared: bool, steep: list[Branch]) -> tuple[float, float]:
    """int q^2/p dy and int q dy over the intervals of one branch, p and q from all branches: its own share, or all of it."""
    d, w = _graded(edges)
    y, rise = own.h(d), np.abs(own.slope(d))
    phi = 2 * np.exp(-d * d) / np.sqrt(np.pi)
    p, q = phi.copy(), phi * (2 * d * d - 1)
    for b in steep:
        inside = (y > min(b.at_a, b.at_b)) & (y < max(b.at_a, b.at_b))
        if b is own or not inside.any():
            continue
        x = b.preimage(y[inside])
        theirs = 2 * np.exp(-x * x) / np.sqrt(np.pi) * rise[inside] / np.abs(b.slope(x))
        p[inside] += theirs
        q[inside] += theirs * (2 * x * x - 1)
    good = np.isfinite(p) & np.isfinite(q) & (p > 0)
    w = w[good] if shared else w[good] * phi[good] / p[good]
    return float(np.sum(w * q[good] ** 2 / p[good])), float(np.sum(w * q[good]))


def _graded(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on intervals, shape (n, 2), graded towards their ends."""
    t, w = half_template(_ORDER, _DEPTH, 2)
    half = np.diff(edges, axis=1) / 2
    nodes = np.concatenate([edges[:, :1] + half * t, edges[:, 1:] - half * t], axis=1)
    return nodes.ravel(), np.concatenate([half * w, half * w], axis=1).ravel()


def _clusters(labels: np.ndarray, part: float = 0.0) -> np.ndarray:
    """One of each, up to rounding and to this part of their range."""
    labels = np.sort(labels)
    if not len(labels):
        return labels
    same = _ROUNDING * np.abs(labels).max() + part * (labels[-1] - labels[0])
    return labels[np.concatenate([[True], np.diff(labels) > same])]


def _zeros(slope: Callable, a: float, b: float) -> np.ndarray:
    """Sign changes of the slope inside (a, b), to rounding; two that stand close together are looked for at its dips."""
    count = max(24, int(_SCAN * (b - a) / _REACH))
    near = (b - a) / count * _NEAR
    grid = np.concatenate([a + near, a + (b - a) * (np.arange(count) + 0.5) / count, b - near[::-1]])
    low, high = crossed(slope, grid, slope(grid))
    sign = np.sign(slope(low))
    for _ in range(_BISECTIONS if len(low) else 0):
        middle = (low + high) / 2
        before = np.sign(slope(middle)) == sign
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return (low + high) / 2


def _mass(a: float, b: float) -> tuple[float, float]:
    """(P, E[(v^2 - 1) 1]) of a < |v|/sqrt2 < b."""
    from scipy.special import ndtr

    x, y = _ROOT * a, _ROOT * b
    phi = np.exp(-np.array([x, y]) ** 2 / 2) / np.sqrt(2 * np.pi)
    return 2 * float(ndtr(y) - ndtr(x)), 2 * float(x * phi[0] - y * phi[1])
