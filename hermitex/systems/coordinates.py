"""Unknowns in open intervals, for solvers that know positive ones: u = (x - lo)/(hi - x), x - lo, or hi - x, all positive.

    F(x(u)) = 0,    dF/du = J dx/du

The solvers seek log u, which is the whole line; rows stay those of x, and the answer is x again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.solvers.interval import Interval, clipped
from hermitex.solvers.solution import Solution

Array = np.ndarray
_LARGEST = 1e300


class Coordinates:
    """The coordinates of the unknowns of a block, those without a domain themselves.

    >>> line = Coordinates([(0.0, 1.0), None])
    >>> line.inside(np.array([[0.75], [2.0]])).ravel(), line.outside(np.array([[3.0], [2.0]])).ravel()
    (array([3., 2.]), array([0.75, 2.  ]))
    """

    def __init__(self, domains: Sequence[Interval | None]) -> None:
        self.some = [(i, d) for i, d in enumerate(domains) if d is not None]

    def inside(self, x: Array) -> Array:
        """u of x, of the nearest number inside where x is not in its interval."""
        u = np.array(x, dtype=float)
        for i, (lo, hi) in self.some:
            v = clipped(u[i], (lo, hi))
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

    def wrapped(self, both: Callable[..., Any], step: Callable[..., Any], sized: Callable[..., Any]) -> dict[str, Any]:
        """Residual and Jacobian, the map and the sizes of the rows as functions of u."""
        def both_(u: Array, p: Mapping[str, Any]) -> tuple[Array, Array]:
            F, J = both(self.outside(u), p)
            return F, J*self.slopes(u)[None]

        return {"both": both_, "residual": lambda u, p: both(self.outside(u), p)[0],
                "step": lambda u, p: self.inside(step(self.outside(u), p)), "sized": lambda u, p: sized(self.outside(u), p)}

    def explicit(self, explicit: Sequence[bool]) -> list[bool]:
        """Which rows read u - rhs: those of x do not."""
        return [bool(e) and all(i != k for k, _ in self.some) for i, e in enumerate(explicit)]

    def back(self, found: Solution, names: Sequence[str]) -> Solution:
        """The solution in x."""
        x = self.outside(np.array([np.asarray(found[n], dtype=float) for n in names]))
        return replace(found, value={**found.value, **dict(zip(names, x, strict=True))})
