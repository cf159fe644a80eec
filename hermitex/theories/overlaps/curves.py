r"""{g = y} in the plane as points z_p and weights w_p: sum_p w_p f(z_p) = int_{g = y} f ds/|grad g| (coarea formula).

The plane is cut into cells until the gradient of g hardly turns within a cell. There the level curve is one graph over an axis,
z_u(z_s) by monotone root-finding, ds/|grad g| = dz_s/|g_u|, and Gauss-Legendre nodes in z_s converge geometrically. Next to a
saddle or an extremum the cells halve down to the scale of the curve, next to a line of extrema across it only; next to a kink or
a jump the interval of z_s does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sympy import Derivative, DiracDelta, Expr, S, Subs, Symbol, diff

from hermitex.kernels.panels import on_panels, split, to_series
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.grid import Array
from hermitex.theories.overlaps.structure import axis, values

REACH = 7.8  # E z^4 over |z| > 7.8 is 5e-10 of the whole
_TURN = 0.4  # how much the gradient may change within a cell, of its size
_ORDER, _DEPTH, _HALVINGS = 8, 88, 36
_RESOLVED = 2e-5  # the last two of 8 Legendre coefficients; what Gauss-Legendre leaves is their square
_MOST = 3_000_000
_DEAR = 100  # products take the time of one value of g and its slope
_UNSEEN = 1e-4
_X, _W = (a[0] for a in on_panels(np.array([0.0, 1.0]), _ORDER))
_SERIES = to_series(_ORDER)
_NINE = np.array([(i, j) for i in (0, 0.5, 1) for j in (0, 0.5, 1)])  # the fifth is the centre


class Cells(NamedTuple):
    """Rectangles [lo, hi] with g and its gradient at nine points of each, at the centre, how it differs, and along which axis."""

    lo: Array
    hi: Array
    g: Array
    centre: Array
    slopes: Array
    turn: Array
    axis: Array


class Segments(NamedTuple):
    """Arcs of level curves: of label n, over [a, b] of the axis 1 - u, with z_u in [low, high]."""

    n: Array
    u: Array
    a: Array
    b: Array
    low: Array
    high: Array

    def take(self, kept: Array) -> Segments:
        """Some of them."""
        return Segments(*(v[kept] for v in self))


@dataclass(frozen=True, eq=False)
class Plane:
    """g of two variables with its gradient.

    cuts : where it has a kink or a jump along a line z_i = constant;  flips : s_i with g(.., -z_i, ..) = s_i g, or 0
    """

    g: Callable[[Sequence[Array]], Array]
    slopes: tuple[Callable[[Sequence[Array]], Array], Callable[[Sequence[Array]], Array]]
    cuts: tuple[Array, Array]
    flips: tuple[int, int]

    @classmethod
    def of(cls, g: Expr, names: Sequence[Symbol], even: Sequence[Array] = (), odd: Sequence[Array] = ()) -> Plane:
        """From an expression, and the R with g(R z) = g(z), with g(R z) = -g(z)."""
        first, second = (sum(s for s, group in ((1, even), (-1, odd)) if any(np.allclose(R, flip) for R in group))
                         for flip in (np.diag([-1, 1]), np.diag([1, -1])))
        return cls(values(g, names), (slope(g, names, 0), slope(g, names, 1)), (axis(g, names[0]).cuts, axis(g, names[1]).cuts),
                   (first, second))

    def gradient(self, z: Sequence[Array]) -> Array:
        """(g_1, g_2), as the last axis."""
        return np.stack([d(z) for d in self.slopes], axis=-1)

    def trace(self, y: Array, h: float, small: float) -> list[tuple[Array, Array]]:
        """For each label its points (k, 2) and weights; cells no wider than h, arcs that weigh less than `small` as they are."""
        y = np.asarray(y, dtype=float)
        odd = next((i for i in (0, 1) if self.flips[i] == -1), None)
        size, of = np.unique(y if odd is None else np.abs(y), return_inverse=True)
        curves = [self._mirrored(*c) for c in self._traced(size, h, small)]
        back = np.ones(2)
        if odd is not None:
            back[odd] = -1
        return [(curves[k][0]*(back if label < 0 else 1.0), curves[k][1]) for k, label in zip(of, y, strict=True)]

    def _mirrored(self, points: Array, w: Array) -> tuple[Array, Array]:
        """With the halves that were left out."""
        for i, s in enumerate(self.flips):
            if s == 1:
                points, w = np.concatenate([points, points*np.where(np.arange(2) == i, -1, 1)]), np.tile(w, 2)
        return points, w

    def _traced(self, y: Array, h: float, small: float) -> list[tuple[Array, Array]]:
        cells = self._examined(*self._squares(h))
        c, n = self._crossed(cells, y, np.arange(len(cells.lo))[:, None], np.arange(len(y))[None])
        arcs: list[Segments] = []
        for _ in range(_DEPTH):
            checkpoint("level curves", len(cells.lo)*len(y) + _DEAR*len(c))
            done, found = self._arcs(cells, c, n, y)
            arcs.append(found)
            c, n = c[~done], n[~done]
            if not len(c) or len(c) > _MOST:
                break
            left = np.zeros(len(cells.lo), dtype=bool)
            left[c] = True
            place = np.cumsum(left) - 1  # among those that are halved
            cells = self._examined(*_halved(cells.lo[left], cells.hi[left], cells.axis[left]))
            c, n = self._crossed(cells, y, (2*place[c][:, None] + np.arange(2)).ravel(), np.repeat(n, 2))
        return self._points(Segments(*map(np.concatenate, zip(*arcs, strict=True))), y, small)

    def _squares(self, h: float) -> tuple[Array, Array]:
        """Rectangles between the cuts, no wider than h."""
        sides = []
        for cuts, flip in zip(self.cuts, self.flips, strict=True):
            ends = np.concatenate([[-REACH], cuts[np.abs(cuts) < REACH], [REACH]])
            ends = np.unique(np.concatenate([ends, [0.0]]))
            ends = ends[ends >= 0] if flip == 1 else ends
            edges = split(ends, h)
            sides.append((edges[:-1], edges[1:]))
        (a, b), (c, d) = sides
        lo, hi = (np.stack(np.meshgrid(p, q, indexing="ij"), axis=-1).reshape(-1, 2) for p, q in ((a, c), (b, d)))
        inside = _meets_disc(lo, hi)
        return lo[inside], hi[inside]

    def _examined(self, lo: Array, hi: Array) -> Cells:
        # The nine lie inside: an edge may be a jump.
        at = lo[:, None] + (hi - lo)[:, None]*(_NINE + 1e-9*(1 - 2*_NINE))
        z = [at[..., 0], at[..., 1]]
        slopes = self.gradient(z)
        centre = slopes[:, 4]
        with np.errstate(invalid="ignore"):
            turn = np.abs(slopes - centre[:, None]).max(axis=(1, 2))
            grid = slopes.reshape(-1, 3, 3, 2)
            first, second = (np.abs(np.diff(grid, axis=k)).max(axis=(1, 2, 3)) for k in (1, 2))
            # the longer side where it turns alike along both
            across = np.where(np.abs(first - second) > 1e-6*turn, second > first, np.argmax(hi - lo, axis=1))
        return Cells(lo, hi, self.g(z), centre, slopes, np.where(np.isfinite(turn), turn, np.inf), across)

    def _crossed(self, cells: Cells, y: Array, c: Array, n: Array) -> tuple[Array, Array]:
        """The pairs (cell, label) that may meet, out of given ones."""
        with np.errstate(invalid="ignore"):
            low, high = cells.g.min(axis=1), cells.g.max(axis=1)
            slack = 0.5*(high - low)
        low, high = (np.where(np.isfinite(v), v, e) for v, e in ((low - slack, -np.inf), (high + slack, np.inf)))
        low = np.where(_meets_disc(cells.lo, cells.hi), low, np.inf)
        kept = (low[c] < y[n]) & (y[n] < high[c])
        c, n = np.broadcast_arrays(c, n)
        return c[kept], n[kept]

    def _arcs(self, cells: Cells, c: Array, n: Array, y: Array) -> tuple[Array, Segments]:
        """(pairs that are settled, their arcs): g is monotone in z_u over the whole cell, and its edges are met at most once."""
        size = np.abs(cells.centre)
        calm = cells.turn < _TURN*size.max(axis=1)
        u_of = np.argmax(size, axis=1)
        along = np.take_along_axis(cells.slopes, (1 - u_of)[:, None, None], axis=2)[..., 0]
        steady = np.asarray((along >= 0).all(axis=1) | (along <= 0).all(axis=1))
        margin = np.abs(along).max(axis=1)*np.take_along_axis(cells.hi - cells.lo, (1 - u_of)[:, None], axis=1)[:, 0]
        g = cells.g.reshape(-1, 3, 3)
        g = np.where((u_of == 1)[:, None, None], g, np.swapaxes(g, 1, 2))  # [z_s, z_u]
        up = np.take_along_axis(cells.centre, u_of[:, None], axis=1)[:, 0] > 0
        bottom, top = np.where(up[:, None], g[:, :, 0], g[:, :, 2]), np.where(up[:, None], g[:, :, 2], g[:, :, 0])
        label = y[n]
        within = ((bottom.max(axis=1) + margin)[c] < label) & (label < (top.min(axis=1) - margin)[c])
        outside = (label < (bottom.min(axis=1) - margin)[c]) | (label > (top.max(axis=1) + margin)[c])
        done = calm[c] & (steady[c] | within | outside)
        go = np.flatnonzero(done & ~outside)
        c, n, u = c[go], n[go], u_of[c[go]]
        s = 1 - u
        k = np.arange(len(c))
        lo, hi = cells.lo[c], cells.hi[c]
        a, b, low, high = lo[k, s], hi[k, s], lo[k, u], hi[k, u]
        gap = 1e-12*(high - low)
        for edge in (low + gap, high - gap):
            a, b = self._clipped(edge, a, b, (edge > (low + high)/2) == up[c], y[n], u)
        kept = b > a
        return done, Segments(n, u, a, b, low, high).take(kept)

    def _clipped(self, edge: Array, a: Array, b: Array, above: Array, y: Array, u: Array) -> tuple[Array, Array]:
        """The part of [a, b] where g at z_u = edge is above its label, or below it."""
        ends = [self._at(x, edge, u) - y for x in (np.nextafter(a, b), np.nextafter(b, a))]  # inside: an end may be a jump
        fa, fb = (np.where(above, e, -e) for e in ends)
        cross = (fa < 0) != (fb < 0)
        root = np.where(fa < 0, b, a)
        if cross.any():
            root[cross] = self._root(y[cross], edge[cross], 1 - u[cross], a[cross], b[cross])
        empty = ~cross & (fa < 0)
        return np.where((fa < 0) & (cross | empty), root, a), np.where(cross & (fb < 0), root, b)

    def _at(self, s: Array, t: Array, u: Array, of: Any = None) -> Array:
        """g, or another function, at z_u = t and the other variable s."""
        first = u == 0
        z = [np.where(first, t, s), np.where(first, s, t)]
        return np.asarray((of or self.g)(z))

    def _slope_at(self, s: Array, t: Array, u: Array) -> Array:
        first = u == 0
        return np.where(first, self._at(s, t, u, self.slopes[0]), self._at(s, t, u, self.slopes[1]))

    def _root(self, y: Array, s: Array, u: Array, a: Array, b: Array) -> Array:
        """z_u in [a, b] with g = y, g monotone in it: Newton's step where it stays inside of the bracket, else the middle."""
        a, b, t = a.copy(), b.copy(), np.empty(a.shape)
        fa, fb = self._at(s, a, u) - y, self._at(s, b, u) - y
        up = fb > fa
        with np.errstate(all="ignore"):
            t = a - fa*(b - a)/(fb - fa)
        t = np.where((t >= a) & (t <= b), t, (a + b)/2)
        for k in range(80):
            checkpoint("level curves", _DEAR*t.size)
            f = self._at(s, t, u) - y
            below = (f < 0) == up
            a, b = np.where(below, t, a), np.where(below, b, t)
            with np.errstate(all="ignore"):
                new = t - f/self._slope_at(s, t, u)
            sure = (new >= a) & (new <= b) & ((k % 8 != 7) | (np.abs(new - t) < 1e-13*(1 + np.abs(t))))
            new = np.where(sure, new, (a + b)/2)
            moved, t = np.abs(new - t), new
            if not (moved > 4e-15*(1 + np.abs(t))).any():
                break
        return t

    def _points(self, arcs: Segments, y: Array, small: float) -> list[tuple[Array, Array]]:
        """Gauss-Legendre nodes on arcs, halved until their weights are resolved."""
        index, points, weights = [], [], []
        for _ in range(_HALVINGS):
            step = (arcs.b - arcs.a)[:, None]
            s = arcs.a[:, None] + step*_X
            u = np.broadcast_to(arcs.u[:, None], s.shape)
            t = self._root(np.broadcast_to(y[arcs.n][:, None], s.shape), s, u, *(np.broadcast_to(v[:, None], s.shape)
                                                                                for v in (arcs.low, arcs.high)))
            with np.errstate(divide="ignore"):
                steep = 1/np.abs(self._slope_at(s, t, u))
            steep = np.where(np.isfinite(steep), steep, 0.0)
            tail = np.abs(steep @ _SERIES[-2:].T).max(axis=1), np.abs(t @ _SERIES[-2:].T).max(axis=1)
            size = step[:, 0]*steep.max(axis=1)
            rough = (tail[0] > _RESOLVED*steep.max(axis=1)) | (tail[1] > _RESOLVED*np.maximum(arcs.high - arcs.low, 1e-300))
            # g rises like the square of the distance from a critical point: its rounding hides what is closer than this
            seen = step[:, 0] > np.sqrt(np.finfo(float).eps*(1 + np.abs(y[arcs.n])))
            again = rough & seen & (size*np.exp(-np.min(s**2 + t**2, axis=1)/2) > small)
            done = ~again
            z = np.where((u == 0)[..., None], np.stack([t, s], axis=-1), np.stack([s, t], axis=-1))[done]
            index.append(np.repeat(arcs.n[done], _ORDER))
            points.append(z.reshape(-1, 2))
            weights.append((step*_W*steep)[done].ravel())
            if not again.any():
                break
            arcs, middle = arcs.take(again), ((arcs.a + arcs.b)/2)[again]
            arcs = Segments(*map(np.concatenate, zip(arcs._replace(b=middle), arcs._replace(a=middle), strict=True)))
        n, z, w = np.concatenate(index), np.concatenate(points), np.concatenate(weights)
        seen = w*np.exp(-np.sum(z**2, axis=1)/2) > _UNSEEN*small
        n, z, w = n[seen], z[seen], w[seen]
        order = np.argsort(n, kind="stable")
        ends = np.searchsorted(n[order], np.arange(len(y) + 1))
        return [(z[order[a:b]], w[order[a:b]]) for a, b in pairwise(ends)]


def _meets_disc(lo: Array, hi: Array) -> Array:
    """Which rectangles have points within the reach."""
    return np.asarray(np.sum(np.maximum(0, np.maximum(lo, -hi))**2, axis=1) < REACH**2)


def _halved(lo: Array, hi: Array, axis: Array) -> tuple[Array, Array]:
    """Both halves of each rectangle along an axis of its own, one after the other."""
    mid, here = (lo + hi)/2, np.arange(2) == axis[:, None]
    low, high = np.stack([lo, np.where(here, mid, lo)], axis=1), np.stack([np.where(here, mid, hi), hi], axis=1)
    return low.reshape(-1, 2), high.reshape(-1, 2)


def slope(g: Expr, names: Sequence[Symbol], i: int) -> Callable[[Sequence[Array]], Array]:
    """dg/dz_i off its jumps; by differences where there is no formula."""
    found = diff(g, names[i]).replace(DiracDelta, lambda *_: S.Zero)
    if not found.has(Derivative, Subs):
        return values(found, names)
    of = values(g, names)

    def difference(z: Sequence[Array]) -> Array:
        e = 1e-4*(1 + np.abs(z[i]))
        f = [of([x + k*e*(j == i) for j, x in enumerate(z)]) for k in (-2, -1, 1, 2)]
        return np.asarray((f[0] - 8*f[1] + 8*f[2] - f[3])/(12*e))

    return difference
