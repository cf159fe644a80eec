"""Unknowns in open intervals, for solvers that know positive ones: u = (x - lo)/(hi - x), x - lo, or hi - x, all positive.

    F(x(u)) = 0,    dF/du = J dx/du

The solvers seek log u, which is the whole line, and the answer is x again. A row that reads F = x - rhs is log u(x) - log u(rhs),

    R = -log(1 - F/(x - lo)) + log(1 + F/(hi - x)),

which grows towards both ends: F itself, or F/u, need not, and steps would lead there. Other rows stay those of x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.solvers.batch import merge_solutions, select_points
from hermitex.solvers.interval import Interval, clip_to_interval
from hermitex.solvers.newton import bend_slope, logarithmic_step
from hermitex.solvers.restarts import solve_robustly
from hermitex.solvers.solution import Solution

Array = np.ndarray
_LARGEST = 1e300  # near the largest float: u = inf is the end of the interval, where u/(1 + u) would be inf/inf


class Coordinates:
    """The coordinates of the unknowns of a block, those without a domain themselves.

    >>> line = Coordinates([(1.0, 3.0), None])
    >>> u = line.inside(np.array([[1.5, 2.5], [2.0, 2.0]]))
    >>> u[0], line.outside(u)[0]
    (array([0.33333333, 3.        ]), array([1.5, 2.5]))
    """

    def __init__(self, domains: Sequence[Interval | None]) -> None:
        self.some = [(i, d) for i, d in enumerate(domains) if d is not None]

    def inside(self, x: Array) -> Array:
        """u of x, of the nearest number inside where x is not in its interval."""
        u = np.array(x, dtype=float)
        for i, (lo, hi) in self.some:
            v = clip_to_interval(u[i], (lo, hi))
            u[i] = (v - lo)/(hi - v) if np.isfinite(lo) and np.isfinite(hi) else v - lo if np.isfinite(lo) else hi - v
        return u

    def outside(self, u: Array) -> Array:
        """x of u."""
        x = np.array(u, dtype=float)
        for i, (lo, hi) in self.some:
            v = np.minimum(u[i], _LARGEST)
            if np.isfinite(lo) and np.isfinite(hi):
                x[i] = np.where(v < 1, lo + (hi - lo)*(v/(1 + v)), hi - (hi - lo)/(1 + v))
            else:
                x[i] = lo + v if np.isfinite(lo) else hi - v
        return x

    def slopes(self, u: Array) -> Array:
        """dx/du, of the shape of u."""
        slope = np.ones_like(u)
        for i, (lo, hi) in self.some:
            both = np.isfinite(lo) and np.isfinite(hi)
            slope[i] = (hi - lo)/(1 + np.minimum(u[i], _LARGEST))**2 if both else 1.0 if np.isfinite(lo) else -1.0
        return slope

    def wrapped(self, of: Mapping[str, Callable[..., Any]], explicit: Sequence[bool]) -> dict[str, Callable[..., Any]]:
        """Residual and Jacobian, and the map, as functions of u.

        of : the same as functions of x;  explicit : which rows in x read x - rhs
        """
        def both_(u: Array, p: Mapping[str, Any]) -> tuple[Array, Array]:
            x = self.outside(u)
            F, J = (np.array(v, dtype=float) for v in of["both"](x, p))
            for i, (lo, hi) in self.some:
                if explicit[i]:
                    f, slope, own = F[i].copy(), 0.0, 0.0
                    F[i] = 0.0
                    for gap, towards in ((x[i] - lo, 1.0), (hi - x[i], -1.0)):
                        if np.all(np.isfinite(gap)):
                            t = towards*f/gap
                            F[i] += towards*logarithmic_step(t)
                            slope, own = slope + bend_slope(t)/gap, own - bend_slope(t)*t/gap
                    J[i] *= slope
                    J[i, i] += own
            return F, J*self.slopes(u)[None]

        return {"both": both_, "residual": lambda u, p: both_(u, p)[0],
                "step": lambda u, p: self.inside(of["step"](self.outside(u), p))}

    def explicit(self, explicit: Sequence[bool]) -> list[bool]:
        """Which rows read u - rhs: those with an interval do not."""
        return [bool(e) and all(i != k for k, _ in self.some) for i, e in enumerate(explicit)]

    def plain(self, rows: int) -> list[bool]:
        """Which rows have no interval."""
        ends = dict(self.some)
        return [i not in ends for i in range(rows)]

    def back(self, found: Solution, names: Sequence[str]) -> Solution:
        """The solution in x."""
        x = self.outside(np.array([np.asarray(found[n], dtype=float) for n in names]))
        return replace(found, value={**found.value, **dict(zip(names, x, strict=True))})


def at_ends(found: Solution, begin: Array, domains: Sequence[Interval | None], positive: Sequence[bool], **problem: Any
            ) -> Solution:
    """Points with a solution on the boundary: one with an unknown at an end, if none is inside beyond rounding.

    An upper end is the 0 of hi - x.

    found : the points (B,), in x;  begin : the starts (n, B);  problem : what `solve_robustly` takes, in x
    """
    ends = np.array([d is not None and d[0] == 0 for d in domains])
    unsolved, x = ~np.asarray(found.converged), _state(found)
    least = 1e-13  # an unknown this near to the end of its domain is as good as there
    if ends.any():
        found = _at_zero(found, unsolved | (ends[:, None] & (x < least)).any(axis=0), begin, domains, positive, ends, **problem)
    upper = np.array([d is not None and np.isfinite(d[1]) for d in domains])
    hi = np.where(upper, [d[1] if d else 0.0 for d in domains], 0.0)[:, None]
    near = ~np.asarray(found.converged) & (upper[:, None] & (hi - x < least*np.maximum(np.abs(hi), 1.0))).any(axis=0)
    if not near.any():
        return found
    flipped, explicit = upper[:, None], np.array(problem["explicit"])[:, None]
    sign, rows = np.where(flipped, -1.0, 1.0), np.where(flipped & explicit, -1.0, 1.0)

    def turned(x: Array) -> Array:
        return np.where(flipped, hi - x, x)

    def both(y: Array, p: Mapping[str, Any]) -> tuple[Array, Array]:
        F, J = problem["both"](turned(y), p)
        return rows*F, rows[:, None]*J*sign[None]

    mirrored = {**problem, "both": both, "residual": lambda y, p: both(y, p)[0],
                "step": lambda y, p: turned(problem["step"](turned(y), p))}
    still = replace(found, value={**found.value, **dict(zip(found.unknowns, turned(x), strict=True))})
    beyond = [(0.0, d[1] - d[0]) if d and up else d for d, up in zip(domains, upper, strict=True)]
    at = _at_zero(still, near, turned(begin), beyond, positive, upper, **mirrored)
    good = np.flatnonzero(near & np.asarray(at.converged))
    at = replace(at, value={**at.value, **dict(zip(at.unknowns, turned(_state(at)), strict=True))}, notes=found.notes)
    return merge_solutions([(np.arange(len(near)), found), (good, select_points(at, good))], len(near),
                           found.unknowns) if good.size else found


def _state(found: Solution) -> Array:
    return np.stack([np.broadcast_to(found[u], (np.size(found.converged),)) for u in found.unknowns])


def _at_zero(found: Solution, asked: Array, begin: Array, domains: Sequence[Interval | None], positive: Sequence[bool], ends: Array,
             **problem: Any) -> Solution:
    """The points `asked` solved with the unknowns `ends`, which are positive, at 0 where that is a solution."""
    positive = [p or bool(e) for p, e in zip(positive, ends, strict=True)]
    k = np.flatnonzero(asked)
    if not k.size:
        return found
    state = _state(found)
    free = ends | np.array([p and d is None for p, d in zip(positive, domains, strict=True)])
    small = 1e-6  # an unknown below that is on its way to the end 0 of its domain
    last = solve_robustly(begin[:, k], {"point": k}, names=found.unknowns, positive=positive, restarts=False,
                          zero=free[:, None] & ~(state[:, k] > small), raise_on_failure=False, **problem)
    closed = [d or (-np.inf, np.inf) for d in domains]
    inside = [(lo <= x) & (x <= hi) for x, (lo, hi) in zip(last.state, closed, strict=True)]
    good = np.flatnonzero(last.converged & (last.state[ends] == 0).any(axis=0) & np.all(inside, axis=0))
    if not good.size:
        return found
    points = np.size(found.converged)
    return merge_solutions([(np.arange(points), found), (k[good], select_points(last, good))], points, found.unknowns)
