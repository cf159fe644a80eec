r"""M = H(M), 0 < M < 1 - v: a full overlap by iteration, which is stable and which the quadrature resolves, or why it is not.

H rises with alpha and with M. So from the fixed point of a smaller alpha the iteration ends where that from M = eps 1 does, and
from that of a larger alpha where that from M = 1 does: along a curve each point starts from the one before.
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hermitex.theories.overlaps.overlap_branch import accelerated
from hermitex.theories.overlaps.overlap_map import OverlapMap
from hermitex.theories.overlaps.overlap_space import FixedPoint

Array = np.ndarray


def reached_fixed_point(evolution: OverlapMap, alpha: float, informed: bool) -> FixedPoint:
    """The fixed point reached from zero, or from one; kept, and the start of the next."""
    key = (alpha, informed)
    if key not in evolution.known:
        near = [a for a, i in evolution.known if i == informed and ((a > alpha) if informed else (a < alpha))]
        last = evolution.known[(min if informed else max)(near), informed] if near else None
        if last is not None and not informed and np.array_equal(evolution.space.matrix(last.x), np.eye(evolution.output.r)):
            found = last  # what is known exactly stays so with more samples
        else:
            found = evolution.iterated(alpha, informed) if last is None else accelerated_fixed_point(evolution, last.x, alpha,
                                                                                                     informed)
            found = found if found.converged else _finished(evolution, found, alpha)
            found = resolved_fixed_point(evolution, found if informed else stable_fixed_point(evolution, found, alpha), alpha)
        evolution.known[key] = found
    return evolution.known[key]


def accelerated_fixed_point(evolution: OverlapMap, start: Array, alpha: float, informed: bool,
                            held: Sequence[int] = ()) -> FixedPoint:
    """Some plain steps, which tell where it goes, then Anderson's acceleration; plain steps throughout where that fails.

    From the fixed point of a smaller alpha, informed from that of a larger one; overlaps that are `held` stay.
    """
    space, x = evolution.space, start
    fixed = list(held)

    def step(y: Array) -> Array:
        new = evolution.step(y, alpha)
        new[fixed] = start[fixed]
        return new

    lift = 1e-4  # what is not known at a smaller alpha may leave zero
    if not informed:
        x = x + lift*(space.coordinates(np.eye(evolution.output.r)) - x)
        x[fixed] = start[fixed]
        if not np.any(start):
            return evolution.iterated(alpha)
    plain = 3  # steps of the map itself, which tell where it goes
    for _ in range(plain):
        x = step(x)
        if not fixed and not informed and all_near(evolution, x):
            return FixedPoint(x, float("nan"), False)  # the fixed point is above
    M, residual = accelerated(lambda X: space.matrix(step(space.coordinates(X))), space.matrix(x))
    settled = 1e-9  # residual of the accelerated iteration
    nearby = (FixedPoint(space.coordinates(M), residual, True, plain) if residual <= settled
              else by_newton(evolution, x, alpha, held))
    slack = 1e-6  # on the order of M and the start, above the residual
    if nearby is not None:
        side = np.linalg.eigvalsh(space.matrix(nearby.x - start))
        if side[-1] < slack if informed else side[0] > -slack:
            return nearby
    return evolution.iterated(alpha, informed, x, fixed)


def stable_fixed_point(evolution: OverlapMap, found: FixedPoint, alpha: float) -> FixedPoint:
    """The fixed point, or the one that the iteration reaches from it if it is unstable: the directions separate there.

    Above it, since M = eps 1 leads to it from below.
    """
    too_near = np.linalg.eigvalsh(evolution.space.matrix(found.x))[-1] > 1 - evolution.least
    if not found.converged or not np.any(found.x) or too_near:
        return found
    values, vectors = np.linalg.eig(evolution.slopes(found.x, alpha, list(range(evolution.n))))
    top = int(np.argmax(values.real))
    unstable = 1e-5  # over an eigenvalue of 1, above the errors of the slopes
    if values[top].real <= 1 + unstable:
        return found
    v = vectors[:, top].real
    v = v/np.abs(v).max()*np.sign(np.trace(evolution.space.matrix(v)) or 1.0)
    kick = 0.02  # of M, along an unstable direction; chosen by trial
    kicked = found.x + kick*v
    x, gaps = kicked, [np.inf]
    growing = 40  # steps in which the kick grows and then bends over; chosen by trial
    while len(gaps) < growing and not (len(gaps) > 4 and gaps[-1] < gaps[-2] < gaps[-3]):  # it grows, then bends over
        new = evolution.step(x, alpha)
        gaps, x = [*gaps, float(np.abs(new - x).max())], new
    above = by_newton(evolution, x, alpha)
    if above is not None and np.linalg.eigvalsh(evolution.space.matrix(above.x - x))[0] > -kick:
        return above
    calm = 1e-4  # change of a step at which the kicked iteration has settled
    return _finished(evolution, evolution.iterated(alpha, False, kicked, calm=calm), alpha)


def _finished(evolution: OverlapMap, found: FixedPoint, alpha: float) -> FixedPoint:
    """Next to a transition the iteration crawls, and has come near enough for Newton's method."""
    crawls = 1e-5  # a step
    near = not found.converged and found.residual < crawls
    return found if not near else by_newton(evolution, found.x, alpha) or found


def by_newton(evolution: OverlapMap, start: Array, alpha: float, held: Sequence[int] = (),
              slopes: Array | None = None) -> FixedPoint | None:
    """The fixed point next to a start; None where Newton's method leaves 0 <= M < 1 or does not settle.

    slopes : dH/dM of a map that is close to this one, over what is not held; its own at each step where none are given
    """
    x, residual = np.array(start, dtype=float), np.inf
    free = [k for k in range(len(x)) if k not in held]
    steps = 8  # of Newton's method with slopes that are kept
    face = 1e-3  # below M = 0 that Newton's step may reach; the map is not defined there
    exact = 1e-10  # a residual that ends Newton's method
    rounded = 1e-8  # a residual that may end it where it falls no further
    for n in range(steps):
        gap = (evolution.step(x, alpha) - x)[free]
        last, residual = residual, float(np.abs(gap).max())
        if residual < exact or (residual > 0.5*last and last < rounded):
            return FixedPoint(x, residual, True, n)
        J = evolution.slopes(x, alpha, free) if slopes is None else slopes
        x[free] += np.linalg.solve(np.eye(len(free)) - J, gap)
        m, R = np.linalg.eigh(evolution.space.matrix(x))
        if m[0] < -face or m[-1] >= 1 - evolution.least:
            return None
        if m[0] < 0:
            x = evolution.space.coordinates((R*np.maximum(m, 0.0)) @ R.T)
    return None


def resolved_fixed_point(evolution: OverlapMap, found: FixedPoint, alpha: float) -> FixedPoint:
    """The fixed point if it is resolved; M = 1 where V falls both at the smallest that is resolved and as V -> 0; else why not."""
    limit, m = evolution.least, np.linalg.eigvalsh(evolution.space.matrix(found.x))
    near = all_near(evolution, found.x)
    if m[-1] <= 1 - limit and not near:
        return found
    if near and evolution.approach is not None and evolution.approach.attracts(alpha) and alpha*evolution.pace > 1:
        return FixedPoint(evolution.space.coordinates(np.eye(evolution.output.r)), 0.0, True, found.iterations)
    if near:
        limit = evolution.together
    return replace(found, residual=float("nan"), converged=False,
                   reason=f"an eigenvalue of the overlaps M is nearer to 1 than {limit:.0e}, which the quadrature does not "
                          "resolve; take a smaller alpha")


def all_near(evolution: OverlapMap, x: Array) -> bool:
    """Are all directions together nearer to 1 than is resolved?"""
    V = np.linalg.eigvalsh(np.eye(evolution.output.r) - evolution.space.matrix(x))
    return bool(np.prod(np.maximum(V, evolution.least)) <= evolution.together**len(V)*(1 + 1e-9))
