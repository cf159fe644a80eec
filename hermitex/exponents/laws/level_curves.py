"""int nu_a nu_b/nu_0 dy at one u, y = f(z_1) + f(z_2) + f(z_3), u = (z_1 + z_2 + z_3)/sqrt3 known, for smooth f of any slopes.

Along a curve on which two slopes agree the label is monotone between its critical points: between two critical labels it
is the coordinate of the label, and its points are where the arcs of a level curve end. Panels crowd at critical labels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hermitex.exponents.laws.brackets import bracketed, crossed
from hermitex.exponents.laws.label_panels import DEEP, RATIO, between
from hermitex.exponents.laws.level_arcs import Arcs, Cells, Weights
from hermitex.exponents.laws.slopes import REACH, Curve, Term, curves, same

_SAME = 1e-11
_EXACT = 1e-6
_NEAR, _GHOST = 10.0, 1.2
_CLOSEST = 1e-9
_SILENT, _OTHER = 1e-19, 1e-4
_BEYOND = 2 * REACH**2  # of |z|^2: a critical label is one however far out, and labels crowd there
_HEARD, _FAR, _NEARLY, _SATURATED = 45.0, 20.0, 1e-9, 1e-3


class Critical(NamedTuple):
    """A point of the plane where all slopes agree, or nearly do: a pair of them has just met, or is about to appear.

    depth : how often panels of labels shrink towards it: at a saddle p has a logarithm, at an extremum a jump
    bend : the largest |f''|;  near : how far the singularity is from the point, where there is none at it
    """

    label: float
    point: np.ndarray
    depth: int
    bend: float
    near: float = 0.0


class Piece(NamedTuple):
    """A monotone stretch of the label along a curve: z_i of its ends, the labels there, and a table."""

    curve: Curve
    ends: tuple[float, float]
    labels: tuple[float, float]
    table: tuple[np.ndarray, np.ndarray, np.ndarray]  # z_i, labels, |z|^2

    def limits(self) -> list[float]:
        """Labels at its ends far out, if f is bounded there: level curves that reach out to infinity set in."""
        t, labels, square = self.table
        slope = np.abs(np.diff(labels) / np.diff(t))
        return [self.labels[n] for n in (0, -1) if square[n] > _BEYOND - _FAR and slope[n] < _SATURATED * slope.max()]

    def covers(self, y: np.ndarray | float):
        return (y > min(self.labels)) & (y < max(self.labels))


class LevelCurves:
    """Three equal terms at any u."""

    def __init__(self, term: Term) -> None:
        self.term, self.curves = term, curves(term)

    # -- labels --------------------------------------------------------------------------------------------------------
    def pieces(self, u: float) -> tuple[list[Piece], list[Critical]]:
        """The monotone stretches of all curves, and the critical points."""
        found, critical = [], []
        for c in self.curves:
            rest = c.third(u, c.grid, c.other)
            square = c.grid**2 + c.other**2 + rest**2
            inside = square < _BEYOND
            if inside.sum() < 2:
                continue
            excess = c.i.g(c.grid) - c.k.g(rest)
            for run in np.split(np.arange(len(inside)), 1 + np.flatnonzero(np.diff(inside.astype(int)))):
                if inside[run[0]] and len(run) > 1:
                    zeros = self._zeros(c, u, c.grid[run], excess[run])
                    dips = _dips(c.grid[run], excess[run])
                    critical += [self._critical(c, u, t) for t in zeros]
                    critical += [self._critical(c, u, t)._replace(near=near, depth=_levels(near)) for t, near in dips]
                    found += self._stretches(c, u, c.grid[run], np.array([*zeros, *(t for t, _ in dips)]))
        return found, critical

    def _stretches(self, c: Curve, u: float, grid: np.ndarray, zeros: np.ndarray) -> list[Piece]:
        cuts = [v for v in (*c.turns, *zeros) if grid[0] < v < grid[-1]]
        nodes = np.unique(np.concatenate([grid, cuts]))
        other = c.partner(nodes)
        labels, square = self.label(c, u, nodes), nodes**2 + other**2 + c.third(u, nodes, other) ** 2
        places = np.searchsorted(nodes, [nodes[0], *sorted(cuts), nodes[-1]])
        found = []
        for a, b in pairwise(places):
            if b > a and abs(labels[b] - labels[a]) > 1e-15 * max(1.0, abs(labels[a])):
                part = slice(a, b + 1)
                found.append(Piece(c, (float(nodes[a]), float(nodes[b])), (float(labels[a]), float(labels[b])),
                                   (nodes[part], labels[part], square[part])))
        return found

    def label(self, c: Curve, u: float, t: np.ndarray) -> np.ndarray:
        other = c.partner(t)
        return c.i.f(t) + c.j.f(other) + c.k.f(c.third(u, t, other))

    def _rate(self, c: Curve, u: float, t: np.ndarray) -> np.ndarray:
        other = c.partner(t)
        rest = c.third(u, t, other)
        return (c.i.g(t) - c.k.g(rest)) * (c.i.c + c.j.c * c.rate(t, other))

    def _zeros(self, c: Curve, u: float, grid: np.ndarray, value: np.ndarray) -> np.ndarray:
        def excess(t: np.ndarray) -> np.ndarray:
            return c.i.g(t) - c.k.g(c.third(u, t, c.partner(t)))

        def slope(t: np.ndarray, n: np.ndarray) -> np.ndarray:
            other = c.partner(t)
            rest = c.third(u, t, other)
            return c.i.rise(t) + c.k.rise(rest) * (c.i.c + c.j.c * c.rate(t, other)) / c.k.c

        ends = crossed(excess, grid, value)
        return bracketed(lambda t, n: excess(t), slope, np.zeros(len(ends[0])), ends) if len(ends[0]) else ends[0]

    def _critical(self, c: Curve, u: float, t: float) -> Critical:
        at = np.array([t])
        other = c.partner(at)
        rest = c.third(u, at, other)
        point, bend = np.zeros(3), np.zeros(3)
        for n, term, z in zip(c.places, (c.i, c.j, c.k), (at, other, rest), strict=True):
            point[n], bend[n] = z[0], term.bend(z)[0]
        # f'' on the plane has the determinant sum_i c_i^2 f_j'' f_k''.
        saddle = bend[1] * bend[2] + bend[0] * bend[2] + bend[0] * bend[1] < 0
        return Critical(float(self.label(c, u, at)[0]), point, DEEP if saddle else 0, float(np.abs(bend).max()))

    def signature(self, u: float) -> tuple:
        """The order of the critical labels, and of those far out in the directions z_i = z_j."""
        pieces, critical = self.pieces(u)
        labels = [c.label for c in critical if c.point @ c.point < _HEARD and not c.near]
        for p in pieces:
            if p.curve.partner is same:
                labels += [p.labels[n] for n in (0, -1) if p.table[2][n] > _BEYOND - _FAR]
        if not labels:
            return ()
        groups = _groups(np.array(labels), 0.0, _NEARLY)
        return tuple(np.argmin(np.abs(np.array(labels)[:, None] - groups), axis=1).tolist())

    # -- panels of labels ----------------------------------------------------------------------------------------------
    def labels(self, u: float, pieces: list[Piece], critical: list[Critical], less: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and weights."""
        if not pieces:
            return np.zeros(0), np.zeros(0)
        deep = [(c.label, c.depth) for c in critical if c.depth] + [(v, DEEP) for p in pieces for v in p.limits()]
        breaks = np.array([v for p in pieces for v in p.labels])
        breaks = _groups(breaks, _SAME)
        y, v = [], []
        for n, (a, b) in enumerate(pairwise(breaks)):
            over = [p for p in pieces if min(p.labels) <= a + _near(a) and max(p.labels) >= b - _near(b)]
            # Off the diagonal a partner has fewer digits.
            weights = [_presence(p, a, b) * (1.0 if p.curve.partner is same else _OTHER) for p in over]
            if not over or max(weights) < _SILENT:
                continue
            p = over[int(np.argmax(weights))]
            how = []
            for end, beyond in ((a, breaks[n - 1] if n else -np.inf), (b, breaks[n + 2] if n + 2 < len(breaks) else np.inf)):
                least = max((d for s, d in deep if abs(end - s) <= _near(s)), default=0)
                near = abs(end - beyond) / (b - a)
                depth = max(least, int(np.clip(np.ceil(np.log(1 / near) / np.log(16)), 0, DEEP)) if near < 1 else 0)
                turned = any(abs(end - v) <= _near(v) for v in p.labels)
                how.append((depth, 1 if turned else 2))
            ends = self._places(u, p, np.array([a, b]))
            t, w = between(ends, how, less)
            y.append(self.label(p.curve, u, t))
            v.append(w * np.abs(self._rate(p.curve, u, t)))
        return (np.concatenate(y), np.concatenate(v)) if y else (np.zeros(0), np.zeros(0))

    def _places(self, u: float, p: Piece, y: np.ndarray) -> np.ndarray:
        """z_i on a stretch with these labels; an end where a label is that of an end."""
        t = np.empty(len(y))
        order = np.argsort(p.table[1])
        inside = p.covers(y) & (np.abs(y - p.labels[0]) > _near(y)) & (np.abs(y - p.labels[1]) > _near(y))
        t[~inside] = np.where(np.abs(y - p.labels[0]) < np.abs(y - p.labels[1]), *p.ends)[~inside]
        t[inside] = self._roots(u, p, y[inside], order)
        return t

    def _roots(self, u: float, p: Piece, y: np.ndarray, order: np.ndarray) -> np.ndarray:
        start = np.interp(y, p.table[1][order], p.table[0][order])
        ends = np.full(len(y), p.ends[0]), np.full(len(y), p.ends[1])
        return bracketed(lambda t, n: self.label(p.curve, u, t), lambda t, n: self._rate(p.curve, u, t), y, ends, start, _EXACT)

    # -- many u --------------------------------------------------------------------------------------------------------
    def many(self, us: np.ndarray, weights: Weights, less: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
        """At each u: nu_a, shape (k, labels), and the weights of the labels; `less`: of the order of the quadrature."""
        with np.errstate(all="ignore"):
            return self._many(us, weights, less)

    def _many(self, us: np.ndarray, weights: Weights, less: int) -> list[tuple[np.ndarray, np.ndarray]]:
        labels, cuts = [], []
        for u in us:
            pieces, critical = self.pieces(float(u))
            y, v = self.labels(float(u), pieces, critical, less)
            labels.append((y, v))
            cuts.append(self._cuts(float(u), y, pieces, critical))
        y, u = np.concatenate([y for y, _ in labels]), np.repeat(us, [len(y) for y, _ in labels])
        arcs = Arcs(self.term, -less)
        total = arcs.integrated(y, u, _cells(cuts, arcs.window(u)), weights)
        starts = np.cumsum([0, *(len(y) for y, _ in labels)])
        return [(total[:, a:b], v) for (a, b), (_, v) in zip(pairwise(starts), labels, strict=True)]

    def _cuts(self, u: float, y: np.ndarray, pieces: list[Piece], critical: list[Critical]) -> list[np.ndarray]:
        """Each (z_i, how far the singularity is beyond), shape (2, labels), nan where there is none."""
        cuts = [np.full((2, len(y)), np.nan)]
        for p in pieces:
            c, mine = p.curve, np.flatnonzero(p.covers(y))
            if not len(mine):
                continue
            t = self._roots(u, p, y[mine], np.argsort(p.table[1]))
            other = c.partner(t)
            rest = c.third(u, t, other)
            gap = np.abs(c.i.g(t) - c.k.g(rest))
            # Along the arc with z_i in the middle z_j moves and z_k stands.
            one = gap * np.abs(c.j.c / (c.i.c * c.j.rise(other)))
            two = gap * np.abs(c.i.c / (c.j.c * c.i.rise(t)))
            for z, far in [(t, one), *([] if c.partner is same else [(other, two)])]:
                both = np.full((2, len(y)), np.nan)
                both[:, mine] = z, np.nan_to_num(far, nan=1.0)
                cuts.append(both)
        for s in critical:
            far = np.sqrt(s.near**2 + 2 * np.abs(y - s.label) / max(s.bend, 1e-300))
            cuts += [np.where(far < _NEAR, np.stack([np.full(len(y), z), far]), np.nan) for z in s.point]
        return cuts


def _cells(cuts: list[list[np.ndarray]], window: tuple[np.ndarray, np.ndarray]) -> Cells:
    """The intervals between the cuts of each label and the ends of the window; `cuts`: of each u."""
    width = max(map(len, cuts))
    parts = []
    for mine in cuts:
        every = np.full((mine[0].shape[1], width, 2), np.nan) if mine else np.zeros((0, width, 2))
        if mine:
            every[:, :len(mine)] = np.array(mine).transpose(2, 0, 1)
        parts.append(every)
    low, high = window
    every = np.concatenate(parts)
    every = np.concatenate([every, *(np.stack([e, np.full(len(e), 10.0)], axis=1)[:, None] for e in window)], axis=1)
    t, far = every[:, :, 0], every[:, :, 1]
    t = np.where((t >= low[:, None]) & (t <= high[:, None]), t, np.nan)
    order = np.argsort(t, axis=1)
    t, far = np.take_along_axis(t, order, axis=1), np.take_along_axis(far, order, axis=1)
    row, n = np.nonzero(np.diff(t, axis=1) > 1e-13)
    a, b = t[row, n], t[row, n + 1]
    return Cells(row, a, b, *(np.clip(far[row, m], np.minimum(_CLOSEST, b - a), b - a) for m in (n, n + 1)))


def _dips(grid: np.ndarray, excess: np.ndarray) -> list[tuple[float, float]]:
    """(place, distance of the complex zeros) where |excess| has a small minimum that is not zero."""
    size, sign = np.abs(excess), np.sign(excess)
    alike = (sign[:-2] == sign[1:-1]) & (sign[1:-1] == sign[2:])
    spots = 1 + np.flatnonzero((size[1:-1] < size[:-2]) & (size[1:-1] <= size[2:]) & alike)
    found = []
    for n in spots:
        (bend, tilt, least) = np.polyfit(grid[n - 1:n + 2] - grid[n], size[n - 1:n + 2], 2)
        low = least - tilt**2 / (4 * bend) if bend > 0 else 0.0
        near = (low / bend) ** 0.5 if low > 0 else 0.0
        if 0 < near < _GHOST:
            found.append((float(grid[n] - tilt / (2 * bend)), near))
    return found


def _levels(near: float) -> int:
    return int(np.clip(np.ceil(np.log(1 / near) / np.log(RATIO)) + 1, 1, DEEP))


def _near(y: np.ndarray | float):
    return 10 * _SAME * np.abs(y) + 1e-18


def _groups(labels: np.ndarray, same: float, part: float = 0.0) -> np.ndarray:
    """One of each: `same` of its size, `part` of their range."""
    labels = np.sort(labels)
    near = same * np.abs(labels[1:]) + part * (labels[-1] - labels[0]) + 1e-18
    return labels[np.concatenate([[True], np.diff(labels) > near])]


def _presence(p: Piece, a: float, b: float) -> float:
    """The largest weight of a point of the stretch with a label between a and b."""
    _, labels, square = p.table
    inside = (labels >= a) & (labels <= b)
    if not inside.any():
        inside[np.argmin(np.abs(labels - (a + b) / 2))] = True
    return float(np.exp(-square[inside].min() / 2))
