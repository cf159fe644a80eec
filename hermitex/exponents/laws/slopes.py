"""{g_i(z_i) = g_j(z_j)}, g = f'/c: where two slopes of y = f_1(z_1) + f_2(z_2) + f_3(z_3) agree over the plane sum c_i z_i = u.

A point of a level curve at which two slopes agree ends the arc on which the third is not the middle one; where all three
agree the label is critical. Neither the curves nor the partners z_j of a z_i depend on u.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.brackets import bracketed
from hermitex.exponents.laws.density import modules_for, unguarded
from hermitex.kernels.arrays import lambdify

REACH = 9.0
_SCAN = 1801
_GRID = 240
_FLAT = 1e-12
_STILL, _HEARD = 1e-8, 4.0
_EXACT = 1e-7
_EDGE = 2e-3


class Term:
    """f(z) and c; g = f'/c on its monotone branches."""

    def __init__(self, f: Expr, x: Symbol, c: float) -> None:
        self.c = c
        self.f, self.slope = unguarded(f, x), unguarded(f.diff(x), x)
        self.bend = unguarded(f.diff(x, 2), x)
        pair = lambdify(x, [f, f.diff(x)], modules=modules_for(f), cse=True)
        self.both: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] = pair

    def g(self, z: np.ndarray) -> np.ndarray:
        return self.slope(z) / self.c

    def rise(self, z: np.ndarray) -> np.ndarray:
        return self.bend(z) / self.c

    @cached_property
    def branches(self) -> list[tuple[float, float]]:
        """The intervals between the zeros of f''."""
        grid = np.linspace(-REACH, REACH, _SCAN) + 1.7e-5
        grid[0], grid[-1] = -REACH, REACH
        bend = self.bend(grid)
        # A bend of rounding size far out turns no branch.
        live = np.abs(bend) > _FLAT * np.abs(bend).max()
        spots = np.flatnonzero((np.sign(bend[:-1]) * np.sign(bend[1:]) < 0) & (live[:-1] | live[1:]))
        low, high = grid[spots], grid[spots + 1]
        before = np.sign(bend[spots])
        for _ in range(50):
            middle = (low + high) / 2
            left = np.sign(self.bend(middle)) == before
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        return list(pairwise([-REACH, *((low + high) / 2).tolist(), REACH]))

    def partners(self, level: np.ndarray, own: np.ndarray | None = None) -> list[np.ndarray]:
        """For each branch the z with g(z) = level, nan where there is none; `own`: one of them, left out of its branch."""
        found = []
        for a, b in self.branches:
            at_a, at_b = self.g(np.array([a, b]))
            z = np.full(level.shape, np.nan)
            there = (level - at_a) * (level - at_b) < 0
            mine = np.flatnonzero(there if own is None else there & ((own < a) | (own > b)))
            if len(mine):
                z[mine] = self.inverse(level[mine], (a, b))
            found.append(z)
        return found

    def inverse(self, level: np.ndarray, branch: tuple[float, float]) -> np.ndarray:
        a, b = branch
        table = a + (b - a) * (1 - np.cos(np.pi * np.arange(129) / 128)) / 2
        labels = self.g(table)
        if labels[-1] < labels[0]:
            table, labels = table[::-1], labels[::-1]
        start = np.interp(level, np.maximum.accumulate(labels), table)
        ends = np.full(level.shape, a), np.full(level.shape, b)
        return bracketed(lambda z, n: self.g(z), lambda z, n: self.rise(z), level, ends, start, _EXACT)


class Curve:
    """z_j as a function of z_i on one pair of branches: grid points, and `partner` between them.

    Parameters: `places` i, j and the third k; `turns` are the grid points at which c_i z_i + c_j z_j turns.
    """

    def __init__(self, terms: list[Term], places: tuple[int, int, int], grid: np.ndarray, partner: Callable) -> None:
        self.places = places
        self.i, self.j, self.k = (terms[n] for n in places)
        self.grid, self.partner = grid, partner
        self.other = partner(grid)
        with np.errstate(all="ignore"):
            self.sum_rate = self.i.c + self.j.c * self.rate(grid, self.other)
        s = self.sum_rate
        # Where slopes saturate a rate is rounding.
        ok = np.isfinite(s) & (np.abs(self.grid) < _HEARD) & (np.abs(self.other) < _HEARD)
        self.still = bool(np.median(np.abs(s[ok])) < _STILL) if ok.any() else False
        self.turns = np.zeros(0) if self.still else self._turns()
        if len(self.turns):
            self.grid = np.unique(np.concatenate([grid, self.turns]))
            self.other = partner(self.grid)

    def third(self, u: float, t: np.ndarray, other: np.ndarray) -> np.ndarray:
        """z_k of the points with sum c z = u."""
        return (u - self.i.c * t - self.j.c * other) / self.k.c

    def rate(self, t: np.ndarray, other: np.ndarray) -> np.ndarray:
        """dz_j/dz_i."""
        if self.partner is same:
            return np.ones_like(t)
        return self.i.rise(t) / self.j.rise(other)

    def _turns(self) -> np.ndarray:
        s, t = self.sum_rate, self.grid
        spots = np.flatnonzero((np.sign(s[:-1]) * np.sign(s[1:]) < 0) & np.isfinite(s[:-1]) & np.isfinite(s[1:]))
        low, high, before = t[spots], t[spots + 1], np.sign(s[spots])
        for _ in range(45 if len(spots) else 0):
            m = (low + high) / 2
            left = np.sign(self.i.c + self.j.c * self.rate(m, self.partner(m))) == before
            low, high = np.where(left, m, low), np.where(left, high, m)
        found = (low + high) / 2
        # At an end where both branches bend the sum is at rest: signs next to it are rounding.
        return found[np.minimum(found - t[0], t[-1] - found) > _EDGE * (t[-1] - t[0])]


def same(t: np.ndarray) -> np.ndarray:
    return t


def curves(term: Term) -> list[Curve]:
    """The diagonal z_i = z_j, and one curve for two branches; the others are permutations of these."""
    terms, places = [term] * 3, (0, 1, 2)
    pairs = (_pair(terms, places, a, b) for a, b in combinations(term.branches, 2))
    found = [Curve(terms, places, np.linspace(-REACH, REACH, 2 * _GRID + 1) + 1e-6, same), *(c for c in pairs if c is not None)]
    return [c for c in found if not c.still]


def _pair(terms: list[Term], places: tuple[int, int, int], a: tuple[float, float], b: tuple[float, float]) -> Curve | None:
    one, two = terms[places[0]], terms[places[1]]
    ends, others = np.sort(one.g(np.array(a))), np.sort(two.g(np.array(b)))
    low, high = max(ends[0], others[0]), min(ends[1], others[1])
    if not high - low > _FLAT * max(abs(low), abs(high), 1e-3):
        return None
    mine, theirs = _part(one, a, (low, high)), _part(two, b, (low, high))
    if theirs[1] - theirs[0] > mine[1] - mine[0]:
        one, two, mine, b, places = two, one, theirs, a, (places[1], places[0], places[2])
    grid = mine[0] + (mine[1] - mine[0]) * (1 - np.cos(np.pi * (np.arange(_GRID) + 0.01) / (_GRID - 0.98))) / 2
    level = one.g(grid)
    inside = (level - two.g(np.array([b[0]]))) * (level - two.g(np.array([b[1]]))) < 0
    grid, level = grid[inside], level[inside]
    if len(grid) < 8:
        return None
    return Curve(terms, places, grid, _Partner(one, two, b, grid, two.inverse(level, b)))


def _part(term: Term, branch: tuple[float, float], levels: tuple[float, float]) -> tuple[float, float]:
    """The part of a branch with g between these levels, which it takes."""
    a, b = branch
    at = term.g(np.array(branch))
    found = []
    for v in levels:
        near = np.abs(at - v) <= 1e-15 * np.abs(at)
        found.append(branch[int(np.argmin(np.abs(at - v)))] if near.any() else float(term.inverse(np.array([v]), (a, b))[0]))
    return min(found), max(found)


class _Partner:
    """z_j(z_i): a cubic spline, and a step of Newton's method."""

    def __init__(self, one: Term, two: Term, branch: tuple[float, float], grid: np.ndarray, values: np.ndarray) -> None:
        from scipy.interpolate import CubicHermiteSpline

        self.one, self.two, self.branch = one, two, branch
        with np.errstate(all="ignore"):
            rate = one.rise(grid) / two.rise(values)
        bad = ~np.isfinite(rate)
        rate[bad] = np.gradient(values, grid)[bad]
        self.spline = CubicHermiteSpline(grid, values, rate)
        self.last = grid, values  # a label and its slope are asked for one after the other

    def __call__(self, t: np.ndarray) -> np.ndarray:
        if t is self.last[0]:
            return self.last[1]
        z = self.spline(t)
        with np.errstate(all="ignore"):
            step = (self.two.g(z) - self.one.g(t)) / self.two.rise(z)
        # Next to an end of the branches rounding outweighs the step.
        z = np.clip(np.where(np.abs(step) < 1e-4, z - step, z), *self.branch)
        self.last = t, z
        return z
