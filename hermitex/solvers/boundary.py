"""Positive unknowns that are 0, which has no logarithm: below a transition, and where nothing drives them.

    x_Z = 0,   rhs_Z(x) = 0,   rho(d rhs_Z/d x_Z) < 1   as x_Z -> 0,

with the other unknowns solved for beside them. Only what vanishes exactly at 0 and contracts towards it is called 0: an
unknown that is merely small has a slope above 1 nearer to 0 than it is.
"""

from __future__ import annotations

import numpy as np

from . import linear
from .batch import Array, Params, take_points
from .newton import newton
from .problem import Problem
from .solution import Solution

STANDS = 1e-50  # stands for 0 where the formulas are 0/0 there
_NOISE = 10.0  # an unknown that is no larger than so many times the rounding of its right-hand side at 0 is not told from 0


def at_zero(q: Problem, x0: Array, x: Array, p: Params, bound: Array, *, implicit: bool = False) -> Solution:
    """Solutions on the boundary, at points where a state x was not one: converged where such a solution was found.

    A right-hand side vanishes that is not above `bound` at 0. Unknowns are taken to be 0 where x is far below the start x0,
    or where their right-hand sides vanish there. `implicit`: also those of an implicit equation, which has no slope: it has to
    hold exactly at 0, where it is asked last, after every other start. What rounding leaves of an average vanishes, too, where x
    itself is no larger.
    """
    n, points = x.shape
    may = (q.positive & (q.explicit | implicit))[:, None]
    small_part = 1e-3  # an unknown below this part of its start may be on its way to 0
    small = ~(x >= small_part*np.minimum(x0, 1.0)) | (_rhs(q, x0, p) <= bound) & q.explicit[:, None]
    Z = may & small
    found, slope, ok = x.copy(), np.full(points, np.nan), np.zeros(points, dtype=bool)
    open_ = Z.any(axis=0)
    for _ in range(2*n + 1):
        for pattern in np.unique(Z[:, open_], axis=1).T:
            k = np.flatnonzero(open_ & (pattern[:, None] == Z).all(axis=0))
            some = take_points(p, k)
            y, solved, rhs = _solve_with_zeros(q, pattern, x0[:, k], x[:, k], some)
            limit = np.where(y == 0, bound[:, k], np.maximum(bound[:, k], 1e3*STANDS))
            if q.rounding is not None:
                left = q.rounding(y, some)
                limit = np.where(q.explicit[:, None] & ~(x[:, k] > _NOISE*left), np.fmax(limit, left), limit)
            vanishes = rhs <= limit
            vanishes &= q.explicit[:, None] | (y == 0)
            good = solved & vanishes[pattern].all(axis=0)
            found[:, k[good]] = y[:, good]
            iterated = pattern & q.explicit
            slope[k[good]] = _slope_at_zero(q, iterated, y[:, good],
                                            take_points(some, np.flatnonzero(good))) if iterated.any() else 0.0
            ok[k[good]] = slope[k[good]] < 1
            # What does not vanish is not 0; what runs to 0 beside the others may be.
            other = pattern[:, None] & (vanishes | ~solved) | may & ~solved & ~(y >= 1e-8*np.minimum(x0[:, k], 1.0))
            open_[k] = ~good & (other != pattern[:, None]).any(axis=0) & other.any(axis=0)
            Z[:, k] = np.where(open_[k], other, Z[:, k])
        if not open_.any():
            break
    named = [", ".join(u for u, z in zip(q.names, column, strict=True) if z) for column in Z[:, ok].T]
    mapped = {", ".join(u for u, z, e in zip(q.names, column, q.explicit, strict=True) if z and e) for column in Z[:, ok].T} - {""}
    notes = [f"{u} = 0: a boundary, " + (f"towards which iteration contracts (slope {_largest(slope[ok], named, u):.3g})"
                                         if u in mapped else "where its equation holds") for u in dict.fromkeys(named)]
    return Solution(dict(zip(q.names, found, strict=True)), residual=np.where(ok, 0.0, np.inf), converged=ok,
                    iterations=np.zeros(points, dtype=int), stability=np.full(points, np.nan), error=np.full(points, np.nan),
                    method="newton at a boundary", reason=np.full(points, "", dtype=object), unknowns=q.names, notes=tuple(notes))


def is_below_rounding(q: Problem, x: Array, p: Params, least: float) -> Array:
    """Points (B,) at which a positive unknown below `least` is no larger than the rounding of its right-hand side."""
    found = q.positive[:, None] & q.explicit[:, None] & (x < least)
    if q.rounding is None or not found.any():
        return np.zeros(x.shape[1], dtype=bool)
    k = np.flatnonzero(found.any(axis=0))
    found[:, k] &= x[:, k] <= _NOISE*q.rounding(x[:, k], take_points(p, k))
    return found.any(axis=0)


def _largest(slopes: Array, named: list[str], u: str) -> float:
    return max(float(s) for s, v in zip(slopes, named, strict=True) if v == u)


def _solve_with_zeros(q: Problem, zero: Array, x0: Array, x: Array, p: Params) -> tuple[Array, Array, Array]:
    """(state, solved, |rhs|): the rest solved for with the unknowns `zero` at 0."""
    rest = np.flatnonzero(~zero)
    y, solved = np.where(zero[:, None], 0.0, x0), np.full(x.shape[1], rest.size == 0)
    undefined = ~np.isfinite(q.residual(y, p)).all(axis=0)
    y[:, undefined] = np.where(zero[:, None], STANDS, y[:, undefined])
    usable = np.isfinite(x[rest]) & ((x[rest] > 1e-8*x0[rest]) | ~q.positive[rest][:, None])
    for start in (np.where(usable, x[rest], x0[rest]), x0[rest]):
        k = np.flatnonzero(~solved)
        if k.size:
            found = _rest_solved(q, rest, y[:, k], start[:, k], take_points(p, k))
            y[np.ix_(rest, k)] = found.state
            solved[k] = found.converged
    return y, solved, _rhs(q, y, p)


def _rhs(q: Problem, x: Array, p: Params) -> Array:
    """|x - F| of an explicit row, |F| of an implicit one."""
    F = q.residual(x, p)
    return np.abs(np.where(q.explicit[:, None], x - F, F))


def _rest_solved(q: Problem, rest: Array, y: Array, start: Array, p: Params) -> Solution:
    """Newton's method for the unknowns `rest`, the others as they are."""
    every = np.arange(y.shape[1])

    def full(v: Array, r: Params) -> Array:
        whole = y[:, np.asarray(r["_of"], dtype=int)].copy()
        whole[rest] = v
        return whole

    def residual(v: Array, r: Params) -> Array:
        return np.asarray(q.residual(full(v, r), _without_point_index(r))[rest])

    def both(v: Array, r: Params) -> tuple[Array, Array]:
        F, J = q.both(full(v, r), _without_point_index(r))
        return F[rest], J[np.ix_(rest, rest)]

    return newton(residual, None, start, {**p, "_of": every}, names=[q.names[i] for i in rest], positive=q.positive[rest],
                  bent=q.bent[rest], both=both, rtol=q.rtol, contraction=False, raise_on_failure=False)


def _without_point_index(p: Params) -> Params:
    return {n: v for n, v in p.items() if n != "_of"}


def _slope_at_zero(q: Problem, zero: Array, y: Array, p: Params) -> Array:
    """The spectral radius of d rhs_Z/d x_Z in the limit x_Z -> 0: read off as near to 0 as rounding lets it differ from 1.

    1 to rounding is the critical point itself: 0 is the solution if the slope falls from there; infinity where it does not.
    """
    slope = np.full(y.shape[1], np.nan)
    inside = np.flatnonzero(zero)

    def radius(size: float) -> Array:
        J = q.both(np.where(zero[:, None], size, y), p)[1][np.ix_(inside, inside)]
        return linear.spectral_radius(np.eye(inside.size)[:, :, None] - J)

    # the slope is read as near to 0 as it differs from 1 by more than rounding
    near = tuple(10.0**-k for k in (24, 20, 16, 12, 10, 8))
    for size in near:
        if not np.isnan(slope).any():
            return slope
        rho = radius(size)
        clear = np.abs(rho - 1) > 1e-10 + 1e-14/np.sqrt(size)  # the derivative of f(sqrt(x) z) is known to that at x = size
        slope = np.where(np.isnan(slope) & clear, rho, slope)
    farther = (1e-4, 1e-3)  # where the slope at 0 is 1 to rounding: there it has to fall
    falls = np.isfinite(rho) & np.all([radius(size) < 1 - 1e-8 for size in farther], axis=0)
    return np.where(np.isnan(slope), np.where(falls, 1 - 1e-16, np.inf), slope)
