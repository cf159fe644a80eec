r"""M <- M + (1 - dH/dM)^{-1} (H(M) - M): a fixed point of a map that is cheap and less exact, moved to that of the exact map H.

The slopes are those of the cheap map, so that each value of F gains as many digits as the two maps share. Where the point is so
close to a transition that the maps may differ in kind, nothing is answered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hermitex.theories.overlaps.state_evolution import StateEvolution

from hermitex.theories.overlaps.near_one import near_one
from hermitex.theories.overlaps.space import FixedPoint

Array = np.ndarray
_ROUNDS, _SETTLED = 8, 1e-10
_SEED, _FACE = 1e-4, 1e-3
_MARGIN = 0.03  # of alpha: how far from a transition of the cheap map its kind is trusted
_FOLD = 2e-3  # 1 - dH/dM, which vanishes where a branch turns


def corrected(evolution: StateEvolution, cheap: StateEvolution, alpha: float, informed: bool) -> FixedPoint | None:
    """The fixed point of `evolution` next to that of `cheap`; None where it is too close to a transition, or does not settle."""
    point = cheap.solve(alpha, informed)
    if not point.converged:
        return point
    if not np.isnan(point.off):
        return near_one(evolution, alpha, informed)
    free = moving(evolution, point.x)
    if not _kind_is_sure(cheap, point.x, free, alpha, informed):
        return None
    if not free:
        return point
    slopes = cheap.slopes(point.x, alpha, free)
    left = 1 - _rate(slopes)
    if left < _FOLD:
        return None
    inverse = np.linalg.inv(np.eye(len(free)) - slopes)
    x, residual = np.array(point.x, dtype=float), np.inf
    for n in range(_ROUNDS):
        gap = (evolution.step(x, alpha) - x)[free]
        last, residual = residual, float(np.abs(gap).max())
        if residual < _SETTLED or (residual > 0.5*last and last < 1e-8):
            if left < _MARGIN and not 0.5*left < 1 - _rate(cheap.slopes(x, alpha, free)) < 2*left:
                return None  # a turning point is as near as the two maps are apart
            return replace(point, x=x, residual=residual, iterations=point.iterations + n)
        x[free] += inverse @ gap
        m, R = np.linalg.eigh(evolution.space.matrix(x))
        if m[0] < -_FACE or m[-1] >= 1:
            break
        if m[0] < 0:  # on a face of M >= 0
            x = evolution.space.coordinates((R*np.maximum(m, 0.0)) @ R.T)
    return None


def _rate(slopes: Array) -> float:
    return float(np.linalg.eigvals(slopes).real.max())


def moving(evolution: StateEvolution, x: Array) -> list[int]:
    """The overlaps that are not limits: not 0 or 1 on a diagonal M, none of M = 0 and M = 1."""
    M = evolution.space.matrix(x)
    if not np.any(M) or np.array_equal(M, np.eye(len(M))):
        return []
    return [k for k in range(len(x)) if not (evolution.space.diagonal and x[k] in (0.0, 1.0))]


def _kind_is_sure(cheap: StateEvolution, x: Array, free: list[int], alpha: float, informed: bool) -> bool:
    """Whether what is 0, 1 or between would be so at alphas 3 % away."""
    held = [k for k in range(len(x)) if k not in free]
    if not cheap.space.diagonal:
        if held and np.any(x):
            return abs(alpha*cheap.pace - 1) > _MARGIN
        seed = _SEED*cheap.space.coordinates(np.eye(cheap.output.r))
        return not held or alpha*np.linalg.eigvalsh(cheap.F(seed))[-1]/_SEED < 1 - _MARGIN  # a positive map has the norm of dF[1]
    if not held:
        return True
    beside = [cheap.solve(alpha*f, informed) for f in (1 - _MARGIN, 1 + _MARGIN)]
    return all(p.converged and np.array_equal(np.isin(p.x, (0, 1)), np.isin(x, (0, 1))) for p in beside)


__all__ = ["corrected", "moving"]
