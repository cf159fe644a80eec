r"""dM = (1 - dH/dM)^{-1} (H_fine(M) - H(M)): how far the quadrature of F leaves a fixed point M = H(M) from the exact one.

H_fine is the same map with F from finer nodes. Overlaps that are 0 or 1 are limits and carry no error.
"""

from __future__ import annotations

import numpy as np

from hermitex.theories.overlaps.state_evolution import StateEvolution

Array = np.ndarray
_FINER = 0.75


def quadrature_error(evolution: StateEvolution, x: Array, alpha: float) -> float:
    """The largest |dx_k| at a fixed point with coordinates x: the move of the exact map's fixed point, to first order.

    Infinite where the fixed point is marginal, dH/dM = 1: at a transition any error of F moves it by more.
    """
    space = evolution.space
    x = np.asarray(x, dtype=float)
    free = [k for k in range(len(x)) if not (space.diagonal and x[k] in (0.0, 1.0))]
    if not free or not np.any(x) or np.array_equal(space.matrix(x), np.eye(evolution.output.r)):
        return 0.0
    here = evolution.step(x, alpha)
    Mhat = alpha*evolution.output.second(evolution.inside(space.matrix(x)), _FINER)
    finer = space.coordinates(np.linalg.solve(np.eye(len(Mhat)) + Mhat, Mhat))
    moved = (finer - here)[free]
    J = evolution.slopes(x, alpha, free)
    try:
        return float(np.abs(np.linalg.solve(np.eye(len(free)) - J, moved)).max())
    except np.linalg.LinAlgError:
        return float("inf") if moved.any() else 0.0


__all__ = ["quadrature_error"]
