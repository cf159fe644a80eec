r"""h, h_{1,j} and h_star^2 = E[g^2 | kappa] - h^2 - sum_j h_{1,j}^2: a target of several directions, as the risk bounds need it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sympy import Symbol, symbols

from hermitex.errors import BadInput
from hermitex.symbols import gamma, kappa
from hermitex.systems.system import System
from hermitex.theories.directions import DirectedTarget, rho
from hermitex.theories.risks.projection import Target

Array = np.ndarray[Any, Any]
_h, _square, _at = symbols("h square at", real=True)


def conditional_target(g: Any, overlap: float) -> Target:
    """The conditional moments of a target of one direction or of several, as functions of kappa."""
    return SeveralDirections(g, overlap) if isinstance(g, DirectedTarget) else Target(g, overlap)


class SeveralDirections(Target):
    """h, h_1 (one row for each direction) and h_star^2 of a target of several directions, at nodes kappa."""

    parity = None

    def __init__(self, g: DirectedTarget, overlap: float) -> None:
        if not abs(overlap) <= 1:
            raise BadInput(f"gamma is an overlap, between -1 and 1, not {overlap}")
        self.activation, self.gamma, self.rho = g, float(overlap), (1 - overlap)*(1 + overlap)
        self.directions = len(g.variables)
        self.system = moments(g, int(np.sign(overlap)) if self.rho == 0 else 0)
        sharp_below = 0.3  # sqrt(1 - gamma^2) below which the target's kinks still show: the panels close in on them
        self.kinks = np.zeros(int(np.sqrt(self.rho) < sharp_below))

    def _smoothed(self, x: Array) -> Array:
        found = self.system.solve({"at": x, **({} if self.rho == 0 else {"gamma": self.gamma, "rho": self.rho})})
        names = "h", *(f"h1_{j}" for j in range(1, self.directions + 1)), "square"
        rows = np.stack([np.broadcast_to(found[n], x.shape) for n in names])
        rows[-1] = np.maximum(rows[-1] - (rows[:-1]**2).sum(axis=0), 0)
        return rows


@cache
def moments(g: DirectedTarget, aligned: int = 0) -> System:
    """h, h_1 and E[g^2 | kappa] as functions of kappa."""
    found = g.seen(aligned)
    equations = {_h: found.h, _square: found.squared,
                 **{Symbol(f"h1_{j}", real=True): e for j, e in enumerate(found.h_1, start=1)}}
    letters = [_at] if aligned else [_at, gamma, rho]
    return System({k: e.subs(kappa, _at) + 0*_at for k, e in equations.items()}, where=g.names, parameters=letters)
