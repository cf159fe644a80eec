r"""dM = (1 - dH/dM)^{-1} (H_other(M) - H(M)): how far the quadrature of F leaves a fixed point M = H(M) from the exact one.

H_other is the same map with F from finer nodes, or where these cost much from coarser ones, which says too much. Overlaps that are
0 or 1 are limits and carry no error.
"""

from __future__ import annotations

import numpy as np

from hermitex.theories.overlaps.state_evolution import StateEvolution

Array = np.ndarray


def quadrature_error(evolution: StateEvolution, x: Array, alpha: float) -> float:
    """The largest |dx_k| at a fixed point with coordinates x: the move of the exact map's fixed point, to first order.

    Infinite where the fixed point is marginal, dH/dM = 1: at a transition any error of F moves it by more.
    """
    space = evolution.space
    x = np.asarray(x, dtype=float)
    free = evolution.moving(x)
    if not free:
        return 0.0
    here = evolution.step(x, alpha)
    output, M = evolution.output, evolution.inside(space.matrix(x))
    moved = np.array([(evolution.overlap(alpha*output.second(M, f)) - here)[free] for f in output.beside])
    J = (evolution.cheap or evolution).slopes(x, alpha, free)
    try:
        return output.doubt*float(np.abs(np.linalg.solve(np.eye(len(free)) - J, moved.T)).max())
    except np.linalg.LinAlgError:
        return float("inf") if moved.any() else 0.0
