r"""Z(y, omega) = int_{g = y} N(z; omega, V) ds/|grad g|: the label y = g(z1, z2) through its level curves.

A curve is crossed by lines along z1 and along z2, and the two sums are joined by weights |g_1|^p and |g_2|^p over their sum:
where a line is tangent to the curve its own weight vanishes, so that both sums are smooth. A label next to a saddle value has a
logarithm; the nodes in y are graded there.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from hermitex.errors import HermitexError
from hermitex.exponents.laws.density import half_template
from hermitex.theories.overlaps.channel import LEAST, Output, ratio
from hermitex.theories.overlaps.grid import Array, normal_nodes
from hermitex.theories.overlaps.structure import axis, values

_REACH = 7.0
_POWER = 6
_NEAREST, _RATIO = 0.01, 1.2  # next to a centre lines are this near; how fast they part, in units of h
_COARSE = 1.5  # of the fields' nodes
_ORDER, _DEPTH = 9, 5


@dataclass(frozen=True, eq=False)
class ContourOutput(Output):
    """The label of two smooth variables; V may be any matrix."""

    g: Any
    knots: tuple[float, ...]
    low: float
    high: float
    centres: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    r: int = 2
    smallest: Any = 0.04
    perfect: Any = True
    nodes: int = 20
    _kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, g: Expr, names: Sequence[Symbol]) -> ContourOutput:
        """From an expression; the knots are the critical labels of its law where its structure is seen."""
        from hermitex.exponents.laws.blocks import law_of

        of = values(g, names)
        turn, size = np.linspace(0, 2*np.pi, 721)[:, None], np.linspace(0, 6.4, 129)
        sample = of([size*np.cos(turn), size*np.sin(turn)])
        sample = sample[np.isfinite(sample)]
        try:
            law = law_of(g, {x: i for i, x in enumerate(names)})
            knots = tuple(float(k) for k in law.knots)
        except (HermitexError, ArithmeticError, ValueError):
            knots = (float(of([np.zeros(1), np.zeros(1)])[0]),)
        centres = [sorted({round(float(c), 12) for c in (*axis(g, x).cuts, *found)})[:8]
                   for x, found in zip(names, critical_points(of).T, strict=True)]
        return cls(of, knots, float(sample.min()), float(sample.max()), (tuple(centres[0]), tuple(centres[1])))

    @cached_property
    def labels(self) -> tuple[Array, Array]:
        """Nodes in y and their weights: graded towards the knots, and panels that grow towards the tails."""
        spread = self.high - self.low
        inside = sorted({k for k in self.knots if self.low - 0.05*spread <= k <= self.high + 0.05*spread})
        ends = [self.low, *inside, self.high] if inside else [self.low, self.high]
        ends = sorted(set(ends))
        t, w = half_template(_ORDER, _DEPTH, 2)
        nodes, weights = [], []
        for a, b in pairwise(ends):
            if b - a < 1e-9*spread:
                continue
            cut = (a + b)/2 if a in inside and b in inside else b if a in inside else a
            for end, width in ((a, cut - a), (b, cut - b)):
                if width:
                    nodes.append(end + width*t)
                    weights.append(abs(width)*w)
        return np.concatenate(nodes), np.concatenate(weights)

    def curves(self, y: Array, h: float) -> list[tuple[Array, Array]]:
        """For each label its points (n, 2) and weights, lines a distance h apart."""
        parts: list[list[tuple[Array, Array]]] = [[] for _ in y]
        for along in (0, 1):
            lines, gap = spaced(self.centres[1 - along], h)
            fine = spaced(self.centres[along], h/1.7)[0]
            grid = [lines[:, None], fine[None, :]] if along else [fine[None, :], lines[:, None]]
            table = self.g(grid)
            for n, label in enumerate(y):
                row, col = np.nonzero((table[:, 1:] > label) != (table[:, :-1] > label))
                point = self._root(label, lines[row], fine[col], fine[col + 1], along)
                parts[n].append(self._weighted(label, point, along, gap[row]))
        return [(np.concatenate([p for p, _ in ps]), np.concatenate([w for _, w in ps])) for ps in parts]

    def _root(self, label: float, fixed: Array, a: Array, b: Array, along: int) -> Array:
        """The crossings of the line at `fixed` with the level, in (a, b), by bisection and secants."""
        def at(t: Array) -> Array:
            return np.asarray(self.g([fixed, t] if along else [t, fixed]) - label)

        fa, fb = at(a), at(b)
        for k in range(44):
            safe = fb != fa
            t = np.where(safe & (k % 3 != 2), b - fb*(b - a)/np.where(safe, fb - fa, 1.0), (a + b)/2)
            t = np.where((t > a) & (t < b), t, (a + b)/2)
            f = at(t)
            left = (f > 0) == (fa > 0)
            a, fa, b, fb = np.where(left, t, a), np.where(left, f, fa), np.where(left, b, t), np.where(left, fb, f)
        t = np.where(np.abs(fa) < np.abs(fb), a, b)
        return np.stack([fixed, t] if along else [t, fixed], axis=1)

    def _weighted(self, label: float, point: Array, along: int, gap: Array) -> tuple[Array, Array]:
        """The points that lie on the level (a jump over it is none), gap |g_i|^(p-1)/(|g_1|^p + |g_2|^p)."""
        z, step = list(point.T), 1e-6*(1 + np.abs(point).max(axis=1))
        slope = np.stack([np.abs(self.g([z[0] + step*(i == 0), z[1] + step*(i == 1)])
                                 - self.g([z[0] - step*(i == 0), z[1] - step*(i == 1)]))/(2*step) for i in (0, 1)])
        steep = slope.max(axis=0)
        kept = (np.abs(self.g(z) - label) <= 1e-7*(1 + abs(label)) + 1e-9*steep) & (steep > 0) & np.isfinite(steep)
        share = slope[:, kept]/steep[kept]
        weight = gap[kept]*share[along]**(_POWER - 1)/(share[0]**_POWER + share[1]**_POWER)/steep[kept]
        return point[kept], weight

    def _spacing(self, v: float, fineness: float) -> float:
        return float(fineness*0.25*2.0**(np.floor(2*np.log2(min(1.0, np.sqrt(v))))/2))

    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M), in the frame of its eigenvectors."""
        m, R = np.linalg.eigh(M)
        m = np.clip(m, 0.0, 1.0)
        v = 1 - m
        h = self._spacing(v.min(), fineness)
        y, dy = self.labels
        if h not in self._kept:
            self._kept[h] = self.curves(y, h)
        nodes = [normal_nodes(x, u, _COARSE*fineness) for x, u in zip(m, v, strict=True)]
        weight = nodes[0][1][:, None]*nodes[1][1]
        F = np.zeros((2, 2))
        for (points, w), step in zip(self._kept[h], dy, strict=True):
            if not len(w):
                continue
            kernel = []
            for (o, _), x, u in zip(nodes, (points @ R).T, v, strict=True):
                t = (x - o[:, None])/np.sqrt(u)
                k = np.exp(-t*t/2)/np.sqrt(2*np.pi*u)
                kernel.append((k, k*t/np.sqrt(u)))
            (k1, d1), (k2, d2) = kernel
            z, a = (k1*w) @ k2.T, [(d1*w) @ k2.T, (k1*w) @ d2.T]
            share = np.where(z > LEAST, step*weight/np.where(z > LEAST, z, 1.0), 0.0)
            F += [[float(np.sum(p*q*share)) for q in a] for p in a]
        return np.asarray(R @ F @ R.T)

    def g_out(self, y: Array, omega: Array, V: Array) -> Array:
        """g_out at labels (n,) and fields (n, 2)."""
        h = self._spacing(float(np.linalg.eigvalsh(V)[0]), 1.0)
        key = (h, np.asarray(y).tobytes())
        if key not in self._kept:
            self._kept[key] = self.curves(np.asarray(y, dtype=float), h)
            for old in [k for k in self._kept if isinstance(k, tuple) and k != key][:-3]:
                del self._kept[old]
        inverse = np.linalg.inv(V)
        a, z = np.zeros((len(y), 2)), np.zeros(len(y))
        for n, (points, w) in enumerate(self._kept[key]):
            away = points - omega[n]
            p = w*np.exp(-np.einsum("ki,ij,kj->k", away, inverse, away)/2)
            z[n], a[n] = p.sum(), inverse @ (p @ away)
        return ratio(a, z)


def spaced(centres: Sequence[float], h: float) -> tuple[Array, Array]:
    """Points on the line and their gaps: h apart, and closer in proportion to their distance from the centres."""
    def count(x: Array) -> Array:
        return np.asarray(x/h + sum(np.arcsinh((x - c)/_NEAREST) for c in centres)/(_RATIO*h))

    x = np.sort(np.concatenate([np.linspace(-_REACH, _REACH, 4001),
                                *(c + s*np.geomspace(_NEAREST/20, 1, 400) for c in centres for s in (-1, 1))]))
    x = x[np.abs(x) <= _REACH]
    places = np.arange(np.ceil(count(x[:1])[0]) + 0.5, count(x[-1:])[0])
    points = np.interp(places, count(x), x)
    for _ in range(4):
        slope = 1/h + sum(1/np.sqrt((points - c)**2 + _NEAREST**2) for c in centres)/(_RATIO*h)
        points = points - (count(points) - places)/slope
    return points, np.asarray(1/slope)


def critical_points(of: Any) -> Array:
    """Points (k, 2) near the origin at which the gradient vanishes: there level curves have corners on every scale."""
    from scipy.optimize import fsolve

    def gradient(z: Array) -> Array:
        e = 1e-5
        return np.array([of([z[0] + e, z[1]]) - of([z[0] - e, z[1]]), of([z[0], z[1] + e]) - of([z[0], z[1] - e])])/(2*e)

    line = np.linspace(-3.1, 3.1, 63)
    grid = np.array(np.meshgrid(line, line, indexing="ij"))
    size = np.nan_to_num(np.hypot(*gradient(grid)), nan=1e300)
    inner = size[1:-1, 1:-1]
    least = np.ones_like(inner, dtype=bool)
    for i, j in ((0, 1), (2, 1), (1, 0), (1, 2)):
        least &= inner <= size[i:i + inner.shape[0], j:j + inner.shape[1]]
    found: list[Array] = []
    for i, j in np.argwhere(least & (inner < 1.0))[:40]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start from which nothing is found is no loss
            z, _, ok, _ = fsolve(lambda z: np.ravel(gradient(z)), [line[i + 1], line[j + 1]], full_output=True)
        if ok == 1 and np.abs(z).max() < 3.3 and not any(np.abs(z - old).max() < 1e-4 for old in found):
            found.append(np.where(np.abs(z) < 1e-7, 0.0, z))
    return np.array(found[:6]).reshape(-1, 2)


__all__ = ["ContourOutput"]
