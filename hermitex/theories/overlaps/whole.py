r"""M = H(M), 0 < M < 1 - v: a full overlap by iteration, which is stable and which the quadrature resolves, or why it is not.

H rises with alpha and with M. So from the fixed point of a smaller alpha the iteration ends where that from M = eps 1 does, and
from that of a larger alpha where that from M = 1 does: along a curve each point starts from the one before.
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hermitex.theories.overlaps.path import accelerated

if TYPE_CHECKING:
    from hermitex.theories.overlaps.state_evolution import Point, StateEvolution

Array = np.ndarray
_LIFT = 1e-4  # what is not known at a smaller alpha may leave zero
_KICK, _CALM = 0.02, 1e-4
_UNSTABLE, _INSIDE, _SHAPES = 1e-5, 2e-4, 6
_PLAIN, _SETTLED, _SLACK = 3, 1e-9, 1e-6


def followed(evolution: StateEvolution, alpha: float, informed: bool) -> Point:
    """The fixed point reached from zero, or from one; kept, and the start of the next."""
    key = (alpha, informed)
    if key not in evolution.known:
        near = [a for a, i in evolution.known if i == informed and ((a > alpha) if informed else (a < alpha))]
        last = evolution.known[(min if informed else max)(near), informed] if near else None
        if last is not None and not informed and np.array_equal(evolution.space.matrix(last.x), np.eye(evolution.output.r)):
            found = last  # what is known exactly stays so with more samples
        else:
            found = evolution.iterated(alpha, informed) if last is None else _from(evolution, last.x, alpha, informed)
            found = resolved(evolution, found if informed else stable(evolution, found, alpha), alpha)
        evolution.known[key] = found
    return evolution.known[key]


def _from(evolution: StateEvolution, start: Array, alpha: float, informed: bool) -> Point:
    """Some plain steps, which tell where it goes, then Anderson's acceleration; plain steps throughout where that fails."""
    from hermitex.theories.overlaps.state_evolution import Point

    space, x = evolution.space, start
    if not informed:
        x = x + _LIFT*(space.coordinates(np.eye(evolution.output.r)) - x)
        if not np.any(start):
            return evolution.iterated(alpha)
    for _ in range(_PLAIN):
        x = evolution.step(x, alpha)
        if not informed and np.linalg.eigvalsh(space.matrix(x))[-1] > 1 - _limit(evolution) and alpha*evolution.pace <= 1:
            return Point(x, float("nan"), False)  # the fixed point is above
    M, residual = accelerated(lambda X: space.matrix(evolution.step(space.coordinates(X), alpha)), space.matrix(x))
    side = np.linalg.eigvalsh(M - space.matrix(start))
    kept = side[-1] < _SLACK if informed else side[0] > -_SLACK
    if residual > _SETTLED or not kept:
        return evolution.iterated(alpha, informed, x)
    return Point(space.coordinates(M), residual, True, _PLAIN)


def stable(evolution: StateEvolution, found: Point, alpha: float) -> Point:
    """The fixed point, or where the iteration goes on to from one that it would leave in the end: the directions separate there.

    Above it, since what is reached from M = eps 1 is so from below.
    """
    too_near = np.linalg.eigvalsh(evolution.space.matrix(found.x))[-1] > 1 - _limit(evolution)
    if not found.converged or not np.any(found.x) or too_near:
        return found
    # off the faces M >= 0, beyond which the map is not defined
    inside = found.x + _INSIDE*(evolution.space.coordinates(np.eye(evolution.output.r)) - found.x)
    values, vectors = np.linalg.eig(evolution.slopes(inside, alpha, list(range(evolution.n))))
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
    if m[0] > 1 - limit and np.all(evolution.output.perfect) and alpha*evolution.pace > 1:
        return replace(found, x=evolution.space.coordinates(np.eye(evolution.output.r)), residual=0.0, converged=True, reason="")
    return replace(found, residual=float("nan"), converged=False,
                   reason=f"an eigenvalue of the overlaps M is nearer to 1 than {limit:.0e}, which the quadrature does not "
                          "resolve; take a smaller alpha")


def _limit(evolution: StateEvolution) -> float:
    return float(evolution.smallest.max())


def pace(evolution: StateEvolution) -> float:
    """c with V <- V/(alpha c) as V -> 0: the least eigenvalue of V F in the shape of V that the map keeps there.

    From the smallest V that is resolved, and from there to 0 by the slope in sqrt(V); the lesser of both.
    """
    limit, one = _limit(evolution), np.eye(evolution.output.r)
    V = limit*one
    for _ in range(_SHAPES):
        m, R = np.linalg.eigh(evolution.output.second(one - V))
        new = (R*(limit*m[-1]/m)) @ R.T
        moved, V = np.abs(new - V).max(), new
        if moved < 0.02*limit:
            break

    def least(v: Array) -> float:
        L = np.linalg.cholesky(v)
        return float(np.linalg.eigvalsh(L.T @ evolution.output.second(one - v) @ L)[0])

    near, far = least(V), least(2*V)
    return min(near, near + (near - far)/(np.sqrt(2) - 1))


__all__ = ["followed", "pace", "resolved", "stable"]
