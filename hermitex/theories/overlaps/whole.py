r"""M = H(M), 0 < M < 1 - v: a full overlap by iteration, which is stable and which the quadrature resolves, or why it is not.

H rises with alpha and with M. So from the fixed point of a smaller alpha the iteration ends where that from M = eps 1 does, and
from that of a larger alpha where that from M = 1 does: along a curve each point starts from the one before.
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hermitex.theories.overlaps.state_evolution import Point, StateEvolution

Array = np.ndarray
_LIFT = 1e-4  # what is not known at a smaller alpha may leave zero
_KICK, _CALM = 0.02, 1e-4
_UNSTABLE = 1e-5


def followed(evolution: StateEvolution, alpha: float, informed: bool) -> Point:
    """The fixed point reached from zero, or from one; kept, and the start of the next."""
    key = (alpha, informed)
    if key not in evolution.known:
        near = [a for a, i in evolution.known if i == informed and ((a > alpha) if informed else (a < alpha))]
        start = None
        if near:
            start = evolution.known[(min if informed else max)(near), informed].x
            if not informed:
                start = start + _LIFT*(evolution.space.coordinates(np.eye(evolution.output.r)) - start)
        found = evolution.iterated(alpha, informed, start, least=10 if start is None else 2)
        evolution.known[key] = resolved(evolution, found if informed else stable(evolution, found, alpha), alpha)
    return evolution.known[key]


def stable(evolution: StateEvolution, found: Point, alpha: float) -> Point:
    """The fixed point, or where the iteration goes on to from one that it would leave in the end: the directions separate there.

    Above it, since what is reached from M = eps 1 is so from below.
    """
    if not found.converged or not np.any(found.x) or np.linalg.eigvalsh(evolution.space.matrix(found.x))[-1] > 1 - _limit(evolution):
        return found
    values, vectors = np.linalg.eig(evolution.slopes(found.x, alpha, list(range(evolution.n))))
    top = int(np.argmax(values.real))
    if values[top].real <= 1 + _UNSTABLE:
        return found
    v = vectors[:, top].real
    v = v/np.abs(v).max()*np.sign(np.trace(evolution.space.matrix(v)) or 1.0)
    return evolution.iterated(alpha, False, found.x + _KICK*v, calm=_CALM)


def resolved(evolution: StateEvolution, found: Point, alpha: float) -> Point:
    """What the quadrature resolves; M = 1 where every direction is driven there; else why not."""
    from dataclasses import replace

    limit, m = _limit(evolution), np.linalg.eigvalsh(evolution.space.matrix(found.x))
    if m[-1] <= 1 - limit:
        return found
    if m[0] > 1 - limit and np.all(evolution.output.perfect) and _driven_to_one(evolution, alpha):
        return replace(found, x=evolution.space.coordinates(np.eye(evolution.output.r)), residual=0.0, converged=True, reason="")
    return replace(found, residual=float("nan"), converged=False,
                   reason=f"an eigenvalue of the overlaps M is nearer to 1 than {limit:.0e}, which the quadrature does not resolve; "
                          "take a smaller alpha")


def _limit(evolution: StateEvolution) -> float:
    return float(evolution.smallest.max())


def _driven_to_one(evolution: StateEvolution, alpha: float) -> bool:
    """alpha V F > 1 at V = v 1, for the smallest v that is resolved and, by the slope in sqrt(v), for v -> 0."""
    limit, one = _limit(evolution), np.eye(evolution.output.r)
    near, far = (v*float(np.linalg.eigvalsh(evolution.output.second((1 - v)*one))[0]) for v in (limit, 2*limit))
    return bool(alpha*min(near, near + (near - far)/(np.sqrt(2) - 1)) > 1)


__all__ = ["followed", "resolved", "stable"]
