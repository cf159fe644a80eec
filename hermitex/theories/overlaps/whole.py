r"""M = H(M), 0 < M < 1 - v: a full overlap by iteration, which is stable and which the quadrature resolves, or why it is not.

H rises with alpha and with M. So from the fixed point of a smaller alpha the iteration ends where that from M = eps 1 does, and
from that of a larger alpha where that from M = 1 does: along a curve each point starts from the one before.
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hermitex.theories.overlaps.map import OverlapMap
from hermitex.theories.overlaps.near_one import Approach, normals
from hermitex.theories.overlaps.path import accelerated
from hermitex.theories.overlaps.space import FixedPoint

Array = np.ndarray
_CRAWLS = 1e-5  # a step
_LIFT = 1e-4  # what is not known at a smaller alpha may leave zero
_KICK, _CALM, _GROWING, _NEWTON = 0.02, 1e-4, 40, 8
_FACE = 1e-3  # below M = 0 that Newton's step may reach; the map is not defined there
_UNSTABLE = 1e-5
_SURELY = 1.1  # alpha c from which what is near 1 is so, whatever the next order in V
_HALF = 0.45  # beyond which V is no longer small
_PLAIN, _SETTLED, _SLACK = 3, 1e-9, 1e-6
_MOVED = 1e-7  # by Newton's last step
_NEAR, _ZERO = 0.98, 1e-7  # from where an overlap leaves 1; below which one is zero, if it stays there


@dataclass(frozen=True, eq=False)
class WholeMap(OverlapMap):
    """A map, and what is known of it near M = 1; `known`: the fixed points that were found, by (alpha, informed)."""

    known: dict[tuple[float, bool], FixedPoint] = field(default_factory=dict)

    @cached_property
    def limits(self) -> Array:
        """The V down to which each overlap is resolved, (n,)."""
        return np.array([self.limit(S) for S in self.space.basis])

    @cached_property
    def perfect(self) -> Array:
        """Whether the variables of each overlap can be known exactly, (n,)."""
        return np.array([self.space.diagonal and self.can_be_one(S) for S in self.space.basis])

    def exact(self, x: Array) -> Array:
        """Which entries of a diagonal M are 1, (n,): they stay so."""
        return np.asarray((x == 1) & self.space.diagonal)

    def too_near(self, x: Array) -> bool:
        """Whether an eigenvalue of M that is not known exactly is nearer to 1 than is resolved."""
        if self.space.diagonal:
            return bool(np.any((x > 1 - self.limits) & (x != 1)))
        return bool(np.linalg.eigvalsh(self.space.matrix(x))[-1] > 1 - self.smallest.max())

    @cached_property
    def approach(self) -> Approach | None:
        """The fixed points beside M = 1 of a smooth label without noise."""
        g = self.output.smooth
        return None if g is None else Approach(self, normals(g, self.output.r))

    def beside_one(self, alpha: float, informed: bool) -> FixedPoint | None:
        """The fixed point of a smooth label without noise that is nearer to M = 1 than is resolved."""
        return None if self.approach is None else self.approach.solve(alpha, informed)

    @cached_property
    def pace(self) -> float:
        """c with V <- V/(alpha c) where V is small: its limit V -> 0, or what it is at the smallest V that is resolved, if less."""
        if self.approach is None:
            return 0.0
        m, R = np.linalg.eigh(self.approach.shape)
        V = (R*np.minimum(m, _HALF)) @ R.T
        L = np.linalg.cholesky(V)
        near = float(np.linalg.eigvalsh(L.T @ self.output.second(np.eye(self.output.r) - V) @ L)[0])
        return min(near, 1/self.approach.onset)


def followed(evolution: WholeMap, alpha: float, informed: bool) -> FixedPoint:
    """The fixed point reached from zero, or from one; kept, and the start of the next."""
    key = (alpha, informed)
    if key not in evolution.known:
        near = [a for (a, i), p in evolution.known.items()
                if i == informed and p.converged and ((a > alpha) if informed else (a < alpha))]
        last = evolution.known[(min if informed else max)(near), informed] if near else None
        if last is not None and not informed and np.array_equal(evolution.space.matrix(last.x), np.eye(evolution.output.r)):
            found = last  # what is known exactly stays so with more samples
        else:
            known = informed and evolution.approach is not None and evolution.approach.attracts(alpha)
            beside = evolution.beside_one(alpha, informed) if known else None
            found = beside or resolved(evolution, _by_faces(evolution, alpha, informed, None if last is None else last.x),
                                       alpha, informed)
        evolution.known[key] = found
    return evolution.known[key]


def _by_faces(evolution: WholeMap, alpha: float, informed: bool, start: Array | None) -> FixedPoint:
    """The fixed point from a start, where entries of a diagonal M come to 1 exactly, or leave it, one after another."""
    perfect = evolution.perfect
    first = np.where(perfect, 1.0, evolution.space.coordinates(0.97*np.eye(evolution.output.r))) if informed else None
    found = evolution.iterated(alpha, informed, first) if start is None else continued(evolution, start, alpha, informed)
    x = found.x
    for _ in range(2*evolution.n + 2):
        found = found if found.converged else _finished(evolution, found, alpha)
        found = found if informed else stable(evolution, found, alpha)
        x = _without_traces(evolution, found.x, alpha)
        loose = np.array([informed and x[k] == 1 and not _stays_at_one(evolution, x, k, alpha) for k in range(evolution.n)])
        new = perfect & (x < 1) & (x > 1 - evolution.limits)
        new &= np.array([_becomes_one(evolution, k, x, alpha) for k in range(evolution.n)]) if new.any() else False
        if not (evolution.space.diagonal and (loose | new).any()):
            break
        x = np.where(loose, _NEAR, np.where(new, 1.0, x))
        found = evolution.iterated(alpha, informed, x)
    return replace(found, x=x)


def _without_traces(evolution: WholeMap, x: Array, alpha: float) -> Array:
    """x with what is next to zero put there, if the map leaves it there."""
    near = (x != 0) & (np.abs(x) < _ZERO)
    if not near.any():
        return x
    without = np.where(near, 0.0, x)
    return np.where(near & (np.abs(evolution.step(without, alpha)) > _SETTLED), x, without)


def _becomes_one(evolution: WholeMap, k: int, x: Array, alpha: float) -> bool:
    """Whether what is pushed to 1 arrives there: for a smooth label of several variables, by its limit V -> 0."""
    if evolution.approach is None:
        return True
    own = np.diag(evolution.space.basis[k]) != 0
    known = np.diag(evolution.space.matrix(x)) == 1
    return alpha*evolution.approach.told(own, ~own & ~known) > 1


def _stays_at_one(evolution: WholeMap, x: Array, k: int, alpha: float) -> bool:
    """alpha V F_kk > 1 as V -> 0: the map takes M_kk = 1 - V to something nearer to 1."""
    if evolution.approach is not None and evolution.approach.together and np.all(x == 1):
        return evolution.approach.attracts(alpha)
    rate = alpha*evolution.limits[k]*float(evolution.F(x)[evolution.space.entries[k]])
    return rate > 1 and _becomes_one(evolution, k, x, alpha)


def continued(evolution: WholeMap, start: Array, alpha: float, informed: bool) -> FixedPoint:
    """Some plain steps, which tell where it goes, then Anderson's acceleration; plain steps throughout where that fails.

    From the fixed point of a smaller alpha, informed from that of a larger one.
    """
    space, x = evolution.space, start
    if not informed:
        x = x + _LIFT*(space.coordinates(np.eye(evolution.output.r)) - x)*((x > 0) | (not space.diagonal))
        if not np.any(start):
            return evolution.iterated(alpha)
    for _ in range(_PLAIN):
        x = evolution.step(x, alpha)
        if not informed and evolution.too_near(x) and alpha*evolution.pace <= 1:
            return FixedPoint(x, float("nan"), False)  # the fixed point is above
        if not informed and all_near(evolution, x) and alpha*evolution.pace > _SURELY:
            return FixedPoint(x, float("nan"), False)
    M, residual = accelerated(lambda X: space.matrix(evolution.step(space.coordinates(X), alpha)), space.matrix(x))
    nearby = (FixedPoint(space.coordinates(M), residual, True, _PLAIN) if residual <= _SETTLED
              else by_newton(evolution, x, alpha))
    if nearby is not None:
        side = np.linalg.eigvalsh(space.matrix(nearby.x - start))
        if side[-1] < _SLACK if informed else side[0] > -_SLACK:
            return nearby
    return evolution.iterated(alpha, informed, x)


def stable(evolution: WholeMap, found: FixedPoint, alpha: float) -> FixedPoint:
    """The fixed point, or where the iteration goes on to from one that it would leave in the end: the directions separate there.

    Above it, since what is reached from M = eps 1 is so from below.
    """
    free = np.flatnonzero(~evolution.exact(found.x))
    if not found.converged or not len(free) or evolution.too_near(found.x):
        return found
    values, vectors = np.linalg.eig(evolution.slopes(found.x, alpha, free.tolist()))
    top = int(np.argmax(values.real))
    if values[top].real <= 1 + _UNSTABLE:
        return found
    v = np.zeros(evolution.n)
    v[free] = vectors[:, top].real
    v = v/np.abs(v).max()*np.sign(np.trace(evolution.space.matrix(v)) or 1.0)
    kicked = found.x + _KICK*v
    x, gaps = kicked, [np.inf]
    gain, rate = (evolution.step(kicked, alpha) - kicked) @ v/(_KICK*(v @ v)), values[top].real - 1
    if gain < 0:  # the branch that opens there is still next to it
        x, gaps = found.x + v*_KICK*rate/(rate - gain), [np.inf]*_GROWING
    while len(gaps) < _GROWING and not (len(gaps) > 4 and gaps[-1] < gaps[-2] < gaps[-3]):  # it grows, then bends over
        new = evolution.step(x, alpha)
        gaps, x = [*gaps, float(np.abs(new - x).max())], new
    above = by_newton(evolution, x, alpha)
    if above is not None and (above.x - found.x) @ v > 0 and np.linalg.eigvalsh(evolution.space.matrix(above.x - x))[0] > -_KICK:
        return above
    return _finished(evolution, evolution.iterated(alpha, False, kicked, calm=_CALM), alpha)


def _finished(evolution: WholeMap, found: FixedPoint, alpha: float) -> FixedPoint:
    """Next to a transition the iteration crawls, and has come near enough for Newton's method."""
    near = not found.converged and found.residual < _CRAWLS
    return found if not near else by_newton(evolution, found.x, alpha) or found


def by_newton(evolution: WholeMap, start: Array, alpha: float, cheap: WholeMap | None = None) -> FixedPoint | None:
    """The fixed point next to a start, with the slopes of a cheaper map; None where it leaves 0 <= M < 1 or does not settle."""
    x = np.array(start, dtype=float)
    free, slopes = np.flatnonzero(~evolution.exact(x)).tolist(), np.zeros((0, 0))
    for n in range(_NEWTON):
        gap = (evolution.step(x, alpha) - x)[free]
        settled = np.abs(gap).max(initial=0.0) < _SETTLED
        slopes = slopes if settled and n else (cheap or evolution).slopes(x, alpha, free)
        move = np.linalg.solve(np.eye(len(free)) - slopes, gap)
        x[free] += move
        if settled and np.abs(move).max(initial=0.0) < _MOVED:
            return FixedPoint(x, float(np.abs(gap).max(initial=0.0)), True, n)
        m, R = np.linalg.eigh(evolution.space.matrix(x))
        if m[0] < -_FACE or m[-1] > 1 or evolution.too_near(x):
            return None
        if m[0] < 0:
            x = evolution.space.coordinates((R*np.maximum(m, 0.0)) @ R.T)
    return None


def resolved(evolution: WholeMap, found: FixedPoint, alpha: float, informed: bool) -> FixedPoint:
    """What the quadrature resolves; what is nearer to 1 where all directions come there together; else why not."""
    near = all_near(evolution, found.x)
    if evolution.exact(found.x).all() or not (near or evolution.too_near(found.x)):
        return found
    beside = evolution.beside_one(alpha, informed)
    if beside is not None:
        return beside
    one = evolution.approach  # of directions that come near 1 together it has told above
    if near and one is not None and not one.together and one.attracts(alpha) and alpha*evolution.pace > 1:
        return replace(found, x=evolution.space.coordinates(np.eye(evolution.output.r)), residual=0.0, converged=True, reason="")
    limit = evolution.together if near else float(evolution.smallest.max())
    return replace(found, residual=float("nan"), converged=False,
                   reason=f"an eigenvalue of the overlaps M is nearer to 1 than {limit:.0e}, which the quadrature does not "
                          "resolve; take a smaller alpha")


def all_near(evolution: WholeMap, x: Array) -> bool:
    """Whether all directions together are nearer to 1 than is resolved."""
    V = np.linalg.eigvalsh(np.eye(evolution.output.r) - evolution.space.matrix(x))
    return bool(np.prod(np.maximum(V, evolution.smallest.max())) <= evolution.together**len(V)*(1 + 1e-9))
