r"""M <- Mhat (1 + Mhat)^{-1}, Mhat = alpha F(M): fixed points of the state evolution of Bayes-AMP, from zero and from one.

Where the symmetries leave a diagonal M its entries come one by one: an overlap at 0 or at 1 stays there while that is stable,
the free ones are solved given these. One free overlap is read off its curve alpha(q), a full M off its branches; several are
iterated.
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hermitex.solvers.fixed_point import anderson
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.branches import TRIVIAL, Branches
from hermitex.theories.overlaps.channel import Output
from hermitex.theories.overlaps.corrected import corrected
from hermitex.theories.overlaps.line import OverlapLine
from hermitex.theories.overlaps.near_one import Approach, near_one, normals
from hermitex.theories.overlaps.space import FixedPoint, OverlapSpace
from hermitex.theories.overlaps.whole import continued, followed, pace

Array = np.ndarray
_SEED = 1e-5
_STEPS = 400
_SHIFT, _INSIDE = 1e-4, 2e-4
_RESOLVED = {1: 0.0, 2: 1e-2, 3: 4e-2}  # 1 - q of a branch: its largest overlap is nearer to 1


@dataclass(frozen=True, eq=False)
class StateEvolution:
    """The map of one label over its space of overlaps; F does not depend on alpha and is kept."""

    output: Output
    space: OverlapSpace
    _kept: dict[bytes, Array] = field(default_factory=dict)
    _lines: dict[Any, OverlapLine] = field(default_factory=dict)
    known: dict[tuple[float, bool], FixedPoint] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many overlaps are unknown."""
        return len(self.space.entries)

    @cached_property
    def cheap(self) -> StateEvolution | None:
        """The same with a quadrature that is cheaper and less exact, where one is worth its while."""
        return None if self.output.cheap is None else StateEvolution(self.output.cheap, self.space)

    def F(self, x: Array) -> Array:
        """The coordinates of F(M) at M = M(x); overlaps of 1 stand for 1 - smallest."""
        M = self.inside(self.space.matrix(x))
        key = np.round(M, 15).tobytes()
        if key not in self._kept:
            checkpoint("iterating the state evolution")
            if len(self._kept) > 4000:
                self._kept.clear()
            self._kept[key] = self.output.second(M)
        return self._kept[key]

    def inside(self, M: Array) -> Array:
        """M with overlaps nearer to 1 than is resolved moved off it."""
        if self.space.diagonal:
            return np.diag(np.clip(np.diag(M), 0.0, 1 - self.smallest))
        m, R = np.linalg.eigh(M)
        return np.asarray((R*np.clip(m, 0.0, 1 - self.smallest.max())) @ R.T)

    @property
    def smallest(self) -> Array:
        """The smallest V_ii that is resolved."""
        return np.broadcast_to(self.output.smallest, (self.output.r,))

    @property
    def together(self) -> float:
        """The smallest V that is resolved in all directions at once."""
        return float(self.output.together or self.smallest.max())

    def can_be_one(self, k: int) -> bool:
        """Whether the variables of the k-th overlap can be known exactly."""
        perfect = np.broadcast_to(self.output.perfect, (self.output.r,))
        return bool(perfect[np.diag(self.space.basis[k]) != 0].all())

    def limit(self, k: int) -> float:
        """The V down to which the k-th overlap is resolved."""
        return float(self.smallest[np.diag(self.space.basis[k]) != 0].max())

    def step(self, x: Array, alpha: float) -> Array:
        """H(M) in coordinates."""
        return self.overlap(alpha*self.F(x))

    def overlap(self, Mhat: Array) -> Array:
        """Mhat (1 + Mhat)^{-1} in coordinates."""
        return self.space.coordinates(np.linalg.solve(np.eye(len(Mhat)) + Mhat, Mhat))

    def solve(self, alpha: float, informed: bool = False, start: Array | None = None) -> FixedPoint:
        """The fixed point reached from M = eps 1 (uninformed), from M = 1 (informed), or from a start."""
        if start is not None:
            return self.iterated(alpha, informed, start)
        if self.cheap is not None:
            found = corrected(self, self.cheap, alpha, informed)
            if found is not None:
                return found
        if self.by_branches and not self.output.quick and not self.space.diagonal:
            return followed(self, alpha, informed)
        if self.by_branches and self.output.quick:
            M, residual, why = self.branches.solve(alpha, informed)
            return FixedPoint(self.space.coordinates(M), residual, not why, reason=why)
        key = (alpha, informed)
        if key not in self.known:
            self.known[key] = self._entry_by_entry(alpha, informed)
        return self.known[key]

    def slopes(self, x: Array, alpha: float, free: list[int]) -> Array:
        """dH/dx over the free overlaps, by differences; of a full M off the faces M >= 0, beyond which the map is not defined."""
        if not self.space.diagonal:
            x = x + _INSIDE*(self.space.coordinates(np.eye(self.output.r)) - x)
        here = self.step(x, alpha)
        J = np.empty((len(free), len(free)))
        for j, k in enumerate(free):
            y, h = x.copy(), _SHIFT*max(min(abs(x[k]), 1 - abs(x[k])), 1e-3)
            y[k] += h if x[k] < 0.5 else -h
            J[:, j] = (self.step(y, alpha) - here)[free]/(y[k] - x[k])
        return J

    @cached_property
    def pace(self) -> float:
        """c with V <- V/(alpha c) where all is nearly known: M = 1 attracts where alpha c > 1."""
        return pace(self)

    @cached_property
    def approach(self) -> Approach | None:
        """The fixed points beside M = 1 of a smooth label without noise."""
        g = self.output.smooth
        return None if g is None else Approach(self, normals(g, self.output.r))

    # -- any M, along its branches --------------------------------------------------------------------------------------
    @property
    def by_branches(self) -> bool:
        """Whether the overlaps are followed together: a full M, or several of which none becomes 1 at a finite alpha."""
        return not self.space.diagonal or (self.n > 1 and not np.any(self.output.perfect))

    @cached_property
    def branches(self) -> Branches:
        """The branches that open one after another."""
        def F(M: Array) -> Array:
            return self.space.matrix(self.space.coordinates(self.F(self.space.coordinates(M))))

        least = max(float(np.max(self.smallest)), _RESOLVED[self.output.r])
        return Branches(F, self.space.basis, least, bool(np.all(self.output.perfect)), min(20, self.output.nodes))

    # -- diagonal M -----------------------------------------------------------------------------------------------------
    def _entry_by_entry(self, alpha: float, informed: bool) -> FixedPoint:
        x = np.full(self.n, float(informed))
        if informed and self.approach is not None and alpha > self.approach.onset:
            return FixedPoint(x, 0.0, True, off=0.0)
        free: set[int] = set()
        for _ in range(4*self.n + 4):
            moving = [k for k in range(self.n) if k not in free and (x[k] == 1) and not self._stays_at_one(x, k, alpha)]
            # What can never be known exactly moves first: the others stay at one or not given where it goes.
            moving = [k for k in moving if not self.can_be_one(k)] or moving
            if not moving:
                moving = self._leaving_zero(x, [k for k in range(self.n) if x[k] == 0], alpha)
                grow = True
            else:
                grow = False
            if not moving:
                break
            free |= set(moving)
            x, why = self._solved(x, sorted(free), moving, alpha, informed and not grow)
            if why:
                return near_one(self, alpha, informed) or FixedPoint(x, float("nan"), False, reason=why)
            free = {k for k in free if 0 < x[k] < 1}
        return FixedPoint(x, self.residual(x, alpha), True)

    def _solved(self, x: Array, free: list[int], moving: list[int], alpha: float, informed: bool) -> tuple[Array, str]:
        """The free overlaps given the others, each 0, 1 or between."""
        x = x.copy()
        if len(free) == 1:
            k = free[0]
            line = self.line(x, k)
            stable = [q for q, ok in line.fixed_points(alpha) if ok]
            runs = line.pushed_to_one(alpha)
            if (informed and runs) or not stable:
                if not self._becomes_one(k, x, alpha):
                    return x, self._too_near(k)
                x[k] = 1.0
            else:
                x[k] = max(stable) if informed else min(stable)
            return x, ""
        x[moving] = 1 - 2e-2 if informed else 1e-3
        held = [k for k in range(self.n) if k not in free]
        near = [(abs(a - alpha), p.x) for (a, i), p in self.known.items()
                if i == informed and (a > alpha if informed else a < alpha) and p.converged
                and np.array_equal(p.x[held], x[held]) and not np.isin(p.x[free], (0, 1)).any()]
        found = (continued(self, min(near, key=lambda n: n[0])[1], alpha, informed, held) if near
                 else self.iterated(alpha, informed, x, held))
        x = found.x
        x[(x < 1e-7)] = 0.0
        for k in free:
            if x[k] > 1 - self.limit(k):
                if not self._becomes_one(k, x, alpha):
                    return x, self._too_near(k)
                x[k] = 1.0
        return x, found.reason

    def _too_near(self, k: int) -> str:
        return (f"{self.name(k)} is nearer to 1 than {self.limit(k):.0e}, which the quadrature does not resolve; "
                "take a smaller alpha")

    def line(self, x: Array, k: int) -> OverlapLine:
        """The curve of one overlap, the others held."""
        key = (k, tuple(np.delete(x, k)))
        if key not in self._lines:
            e = self.space.entries[k]

            def F(q: float) -> float:
                y = x.copy()
                y[k] = q
                return float(self.F(y)[e])

            self._lines[key] = OverlapLine(F, self.limit(k), self.can_be_one(k), self.output.nodes)
        return self._lines[key]

    def name(self, k: int) -> str:
        """M11, M12, ... as coordinates are called."""
        i, j = self.space.entries[k]
        return f"M{i + 1}{j + 1}"

    def _becomes_one(self, k: int, x: Array, alpha: float) -> bool:
        """Whether what is pushed to 1 arrives there: for a smooth label of several variables, by its limit V -> 0."""
        if self.approach is None:
            return self.can_be_one(k)
        own = np.diag(self.space.basis[k]) != 0
        known = np.diag(self.space.matrix(x)) == 1
        return alpha*self.approach.told(own, ~own & ~known) > 1

    def _stays_at_one(self, x: Array, k: int, alpha: float) -> bool:
        """alpha V F_kk > 1 as V -> 0: the map takes M_kk = 1 - V to something nearer to 1."""
        if self.approach is not None and self.approach.together and np.all(x == 1):
            return alpha > self.approach.onset
        return self._becomes_one(k, x, alpha) and alpha*self.limit(k)*float(self.F(x)[self.space.entries[k]]) > 1

    def growth(self, x: Array, zeros: list[int]) -> Array:
        """(F_k, dF_k/dx_l) at x_l -> 0+ over the overlaps that vanish: a trivial part, and the linear map that alpha multiplies."""
        base = self.F(x)
        trivial = np.array([base[self.space.entries[k]] for k in zeros])
        linear = np.zeros((len(zeros), len(zeros)))
        for j, k in enumerate(zeros):
            y = x.copy()
            y[k] = _SEED
            F = self.F(y)
            linear[:, j] = [(F[self.space.entries[i]] - t)/_SEED for i, t in zip(zeros, trivial, strict=True)]
        return np.concatenate([trivial[:, None], linear], axis=1)

    def _leaving_zero(self, x: Array, zeros: list[int], alpha: float) -> list[int]:
        if not zeros:
            return []
        table = self.growth(x, zeros)
        moved = [k for k, t in zip(zeros, table[:, 0], strict=True) if t > TRIVIAL]
        if moved:
            return moved
        values, vectors = np.linalg.eig(table[:, 1:])
        top = int(np.argmax(values.real))
        if alpha*values[top].real <= 1 + 2e-5:  # the seed itself shifts the slope by its own size
            return []
        vector = np.abs(vectors[:, top])
        return [k for k, v in zip(zeros, vector, strict=True) if v > 1e-6*vector.max()]

    # -- from a start ---------------------------------------------------------------------------------------------------
    def iterated(self, alpha: float, informed: bool = False, start: Array | None = None, held: list[int] | None = None, *,
                 least: int = 10, calm: float = 2e-3) -> FixedPoint:
        """Plain iteration, more than `least` steps and until they are below `calm`, then Anderson's acceleration to the end."""
        first = (0.97 if informed else 1e-4)*np.eye(self.output.r)
        x = self.space.coordinates(first) if start is None else np.array(start, dtype=float)
        held = held or []
        kept = x[held].copy()

        def step(y: Array) -> Array:
            out = self.step(y, alpha)
            out[held] = kept
            return out

        change, n = np.inf, 0
        for n in range(_STEPS):
            new = step(x)
            scale = float(np.abs(new).max())
            change = float(np.abs(new - x).max())/max(scale, 1e-300)
            if not informed and not held and n > 6 and scale < 1e-3:
                old = float(np.abs(x).max())
                if scale < old:  # in the linear regime, and shrinking
                    return FixedPoint(np.zeros(self.n), 0.0, True, n)
                new = new*min(1e-3/scale, 50.0)
            x = new
            if change < calm and n > least:
                break
        found = anderson(lambda y, p: np.stack([step(c) for c in y.T], axis=1), x, names=[self.name(k) for k in range(self.n)],
                         rtol=1e-9, atol=1e-12, max_steps=200, raise_on_failure=False)
        best = found.state.reshape(-1)
        if not found.all_converged or float(np.abs(best - x).max()) > 0.2:
            for _ in range(_STEPS):
                new = step(x)
                change = float(np.abs(new - x).max())
                x = new
                if change < 1e-11:
                    break
            best = x
        residual = float(np.abs(step(best) - best).max())
        good = residual < 1e-8
        return FixedPoint(best, residual, good, n, "" if good else f"the overlaps still move by {residual:.1e} a step")

    def residual(self, x: Array, alpha: float) -> float:
        """max |H(M) - M| over the overlaps that are not 1, where both are exact limits."""
        gap = np.abs(self.step(x, alpha) - x)
        return float(np.max(np.where(x == 1, 0.0, gap), initial=0.0))


__all__ = ["FixedPoint", "StateEvolution"]
