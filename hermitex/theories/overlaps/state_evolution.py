r"""M <- Mhat (1 + Mhat)^{-1}, Mhat = alpha F(M): fixed points of the state evolution of Bayes-AMP, from zero and from one.

M is iterated (`whole`); where it leaves zero and where its branches end is seen along them (`branches`, `transitions`).
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hermitex.theories.overlaps.branches import Branches
from hermitex.theories.overlaps.space import FixedPoint
from hermitex.theories.overlaps.whole import WholeMap, by_newton, followed

Array = np.ndarray
_SMALL = 1e-4
_MARGIN = 0.03  # of alpha: how far from a transition of the cheap map its kind is trusted
_FOLD = 2e-3  # 1 - dH/dM, which vanishes where a branch turns


@dataclass(frozen=True, eq=False)
class StateEvolution(WholeMap):
    """The fixed points of the map of one label, from zero and from one."""

    @cached_property
    def cheap(self) -> StateEvolution | None:
        """The same with a quadrature that is cheaper and less exact, where one is worth its while."""
        return None if self.output.cheap is None else StateEvolution(self.output.cheap, self.space)

    def solve(self, alpha: float, informed: bool = False, start: Array | None = None) -> FixedPoint:
        """The fixed point reached from M = eps 1 (uninformed), from M = 1 (informed), or from a start."""
        if start is not None:
            return self.iterated(alpha, informed, start)
        if self.cheap is not None:
            found = _corrected(self, self.cheap, alpha, informed)
            if found is not None:
                return found
        return followed(self, alpha, informed)

    @cached_property
    def branches(self) -> Branches:
        """The branches that open one after another."""
        return Branches(self)


# -- from a cheaper map ----------------------------------------------------------------------------------------------------
def _corrected(evolution: StateEvolution, cheap: StateEvolution, alpha: float, informed: bool) -> FixedPoint | None:
    """M <- M + (1 - dH/dM)^{-1} (H(M) - M): the fixed point of `evolution` next to that of `cheap`, a map that is less exact.

    The slopes are those of the cheap map, so that each value of F gains as many digits as the two maps share. None where the point
    is so close to a transition that the maps may differ in kind, or where it does not settle.
    """
    point = cheap.solve(alpha, informed)
    if not point.converged:
        return point
    if not np.isnan(point.off):
        return evolution.beside_one(alpha, informed)
    free = evolution.moving(point.x)
    if not _kind_is_sure(cheap, point.x, free, alpha, informed):
        return None
    if not free:
        return point
    left = 1 - _rate(cheap.slopes(point.x, alpha, free))
    found = None if left < _FOLD else by_newton(evolution, point.x, alpha, cheap)
    if found is None or (left < _MARGIN and not 0.5*left < 1 - _rate(cheap.slopes(found.x, alpha, free)) < 2*left):
        return None  # a turning point is as near as the two maps are apart
    return replace(point, x=found.x, residual=found.residual, iterations=point.iterations + found.iterations)


def _rate(slopes: Array) -> float:
    return float(np.linalg.eigvals(slopes).real.max())


def _kind_is_sure(cheap: StateEvolution, x: Array, free: list[int], alpha: float, informed: bool) -> bool:
    """Whether what is 0, 1 or between would be so at alphas 3 % away."""
    held = [k for k in range(len(x)) if k not in free]
    if not cheap.space.diagonal:
        if held and np.any(x):
            return abs(alpha*cheap.pace - 1) > _MARGIN
        seed = _SMALL*cheap.space.coordinates(np.eye(cheap.output.r))
        return not held or alpha*np.linalg.eigvalsh(cheap.F(seed))[-1]/_SMALL < 1 - _MARGIN  # a positive map has the norm of dF[1]
    if not held:
        return True
    beside = [cheap.solve(alpha*f, informed) for f in (1 - _MARGIN, 1 + _MARGIN)]
    return all(p.converged and np.array_equal(np.isin(p.x, (0, 1)), np.isin(x, (0, 1))) for p in beside)
