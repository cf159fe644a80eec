r"""lower = |h - P h|^2 + sum_j |h_{1,j} - P_1 h_{1,j}|^2 + E h_star^2: the risk bounds of a target of several directions.

P projects on span{mu_0, kappa mu_1} (for the upper bound on mu_0 alone), P_1 on mu_1; h_star^2 = E[g^2 | kappa] - h^2 - |h_1|^2.
Every h_{1,j} is projected as if it were alone, and the squares are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from sympy import Symbol, symbols

from hermitex.symbols import gamma, kappa
from hermitex.systems.system import System
from hermitex.theories.directions import DirectedTarget, rho
from hermitex.theories.features.smoothed import Smoothed
from hermitex.theories.risks.projection import Projection, Target, project

Array = np.ndarray[Any, Any]
_h, _square, _at = symbols("h square at", real=True)


class DirectedMoments:
    """h, h_1 (one row for each direction) and h_star^2 of a target of several directions, at nodes kappa."""

    def __init__(self, g: DirectedTarget, overlap: float) -> None:
        self.activation, self.gamma, self.rho = g, overlap, (1 - overlap)*(1 + overlap)
        self.system = moments(g, int(np.sign(overlap)) if self.rho == 0 else 0)
        self.count = len(g.variables)
        sharp_below = 0.3  # sqrt(1 - gamma^2) below which the target's kinks still show: the panels close in on them
        self.kinks = np.zeros(int(np.sqrt(self.rho) < sharp_below))
        self._known: dict[bytes, Array] = {}

    def values(self, x: Array) -> Array:
        """Rows h, h_1 of each direction, h_star^2."""
        key = np.asarray(x).tobytes()
        if key not in self._known:
            found = self.system.solve({"at": x, **({} if self.rho == 0 else {"gamma": self.gamma, "rho": self.rho})})
            rows = [np.broadcast_to(found[n], x.shape) for n in ("h", *(f"h1_{j}" for j in range(1, self.count + 1)), "square")]
            rows[-1] = np.maximum(rows[-1] - sum(v**2 for v in rows[:-1]), 0)
            self._known = {key: np.array(rows)}
        return self._known[key]


class _Part(Target):
    """One term of it, as a target: h and h_star^2 (direction 0), or h_{1,j} alone."""

    def __init__(self, whole: DirectedMoments, direction: int) -> None:
        self.whole, self.direction = whole, direction
        self.activation, self.kinks, self.rho = _NoParity(), whole.kinks, whole.rho

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        rows, nothing = self.whole.values(x), np.zeros_like(x)
        if self.direction:
            return nothing, rows[self.direction], nothing
        return rows[0], nothing, rows[-1]


class _NoParity:
    parity = None


def project_target(sigma: Sequence[Smoothed], target: Target | DirectedMoments, *at: Array) -> Projection:
    """As `project`; of several directions squared distances are added up, and psi is that of the first of them."""
    if isinstance(target, Target):
        return project(sigma, target, *at)
    base, *parts = (project(sigma, _Part(target, j), *at) for j in range(target.count + 1))
    upper, lower, error = (getattr(base, n) + sum(getattr(p, n) for p in parts) for n in ("upper", "lower", "error"))
    return Projection(upper, np.minimum(lower, upper), base.b1, base.b, parts[0].psi, error)


@cache
def moments(g: DirectedTarget, aligned: int = 0) -> System:
    """h, h_1 and E[g^2 | kappa] as functions of kappa."""
    found = g.seen(aligned)
    equations = {_h: found.h, _square: found.squared,
                 **{Symbol(f"h1_{j}", real=True): e for j, e in enumerate(found.h_1, start=1)}}
    letters = [_at] if aligned else [_at, gamma, rho]
    return System({k: e.subs(kappa, _at) + 0*_at for k, e in equations.items()}, where=g.names, parameters=letters)
