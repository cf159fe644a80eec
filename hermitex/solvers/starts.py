"""Starts that nobody gave: where the first is a pole, and further ones where a problem of few unknowns was not solved from it.

    at a pole:    the unknowns without a start at other sizes, at which every equation is finite

    one unknown:  F over 24 orders of magnitude; where its sign changes, halve the interval, then Newton; then the sizes above
    up to four:   Newton from x0 times powers of ten, nearest first
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from .batch import Array, Params, take_points
from .problem import Problem
from .solution import Solution
from .solve_limits import is_time_up

_SIZES = (0.5, 0.1, 0.9, 2.0, 0.01, 10.0)  # of every unknown that was given no start, where that which it has is a pole


def off_poles(both: Callable[[Array, Params], tuple[Array, Array]], x0: Array, free: Array, p: Params) -> Array:
    """The starts x0, (n, B); where an equation is not finite at one, its entries `free` are the first of `_SIZES` that help."""
    with np.errstate(all="ignore"):
        at_pole = np.flatnonzero(~np.isfinite(both(x0, p)[0]).all(axis=0) & free.any(axis=0))
        x0 = x0.copy()
        for size in _SIZES:
            if not at_pole.size:
                break
            trial = np.where(free[:, at_pole], size, x0[:, at_pole])
            F, J = both(trial, take_points(p, at_pole))
            good = np.isfinite(F.sum(axis=0) + J.sum(axis=(0, 1)))
            x0[:, at_pole[good]] = trial[:, good]
            at_pole = at_pole[~good]
    return x0


def further_starts(q: Problem, x0: Array, p: Params) -> Callable[[int], Array | None]:
    """start(k): the k-th further start of every point, (n, B), NaN for a point that has none; None when there are no more."""
    if len(q.names) == 1:
        found = [*_intervals(q, x0, p), *(np.full(x0.shape, size) for size in _SIZES)]
        return lambda k: found[k] if k < len(found) else None
    most = 4  # unknowns
    if len(q.names) > most:
        return lambda k: None
    tried = 8  # starts
    steps = sorted((e for e in product((0, 1, -1, 2, -2, 3, -3), repeat=len(q.names)) if any(e)),
                   key=lambda e: (sum(abs(i) for i in e), e))[:tried]

    def start(k: int) -> Array | None:
        if k >= len(steps):
            return None
        e = np.array(steps[k], dtype=float)[:, None]
        additive = x0 + np.sign(e)*10.0**(np.abs(e) - 2)*np.maximum(np.abs(x0), 1.0)
        return np.where(q.positive[:, None], x0*10.0**e, additive)

    return start


def _intervals(q: Problem, x0: Array, p: Params) -> list[Array]:
    """The middles of the shortest intervals across which F changes sign: those where x - rhs rises first, then the nearest."""
    decades = np.arange(-12.0, 12.01, 0.25)  # exponents of ten: four a decade tell most roots apart
    if q.positive[0]:
        grid = x0*10.0**decades[:, None]
    else:
        grid = x0 + np.concatenate([-(10.0**decades[::-1]), [0.0], 10.0**decades])[:, None]
    F = np.full(grid.shape, np.nan)
    for i, row in enumerate(grid):
        if is_time_up():
            return []
        F[i] = q.residual(row[None], p)[0]
    change = (np.sign(F[:-1])*np.sign(F[1:]) <= 0) & (F[:-1] != 0) & np.isfinite(F[:-1] + F[1:])
    away = np.abs(np.arange(len(change)) - len(change)//2)[:, None]
    rank = np.where(change, away + 1e3*((F[1:] < F[:-1]) & q.explicit[0]), np.inf)
    most = 4  # intervals with a change of sign, whose middles are starts
    order = np.argsort(rank, axis=0, kind="stable")[:most]
    columns = np.arange(grid.shape[1])
    out = []
    for row in order:
        a, b, exists = grid[row, columns], grid[row + 1, columns], np.isfinite(rank[row, columns])
        if exists.any():
            out.append(np.where(exists, _bisect(q, a, b, F[row, columns], p), np.nan)[None])
    return out


def _bisect(q: Problem, a: Array, b: Array, Fa: Array, p: Params) -> Array:
    """The middle of (a, b), whose ends keep F of different signs; in the logarithm where both are positive."""
    a, b = a.copy(), b.copy()

    def middle() -> Array:
        return np.where(a*b > 0, np.sign(a)*np.sqrt(np.abs(a*b)), (a + b)/2)

    halvings = 40  # 2^-40 = 1e-12 of an interval: a start for Newton's method
    for _ in range(halvings):
        m = middle()
        left = np.sign(q.residual(m[None], p)[0])*np.sign(Fa) > 0
        a, b = np.where(left, m, a), np.where(left, b, m)
    return middle()


def solve_from_further_starts(q: Problem, x0: Array, p: Params,
                              solve: Callable[[Array, Params], Solution]) -> list[tuple[Array, Solution]]:
    """(points, solution) of those that a further start solved, by `solve(start, parameters)`."""
    with np.errstate(all="ignore"):
        start, parts, open_ = further_starts(q, x0, p), [], np.arange(x0.shape[1])
        k = 0
        while open_.size and not is_time_up() and (x := start(k)) is not None:
            k += 1
            some = open_[np.isfinite(x[:, open_]).all(axis=0)]
            if not some.size:
                continue
            found = solve(x[:, some], take_points(p, some))
            good = np.asarray(found.converged)
            if good.any():
                parts.append((some, found))
                open_ = np.setdiff1d(open_, some[good], assume_unique=True)
        return parts
