r"""M <- Mhat (1 + Mhat)^{-1}, Mhat = alpha F(M): fixed points of the state evolution of Bayes-AMP, from zero and from one.

Where the symmetries leave a diagonal M its entries come one by one: an overlap at 0 or at 1 stays there while that is stable,
the free ones are solved given these. One free overlap is read off its curve alpha(q), several are iterated, as a full M is;
where these open is seen along the branches (`transitions`).
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hermitex.theories.overlaps.fixed_point_line import OverlapLine
from hermitex.theories.overlaps.full_overlap import accelerated_fixed_point, by_newton, reached_fixed_point
from hermitex.theories.overlaps.overlap_branch import OverlapPath, branch_stages
from hermitex.theories.overlaps.overlap_map import SMALL, OverlapMap
from hermitex.theories.overlaps.overlap_space import FixedPoint

Array = np.ndarray
_RESOLVED = {1: 0.0, 2: 1e-2, 3: 4e-2}  # 1 - q of a branch: its largest overlap is nearer to 1


@dataclass(frozen=True, eq=False)
class StateEvolution(OverlapMap):
    """The fixed points of the map of one label, from zero and from one."""

    _lines: dict[Any, OverlapLine] = field(default_factory=dict)

    def solve(self, alpha: float, informed: bool = False) -> FixedPoint:
        """The fixed point reached from M = eps 1 (uninformed), or from M = 1 (informed)."""
        if informed and self.approach is not None and self.approach.attracts(alpha):
            return FixedPoint(self.space.coordinates(np.eye(self.output.r)), 0.0, True)
        if self.by_branches:
            return _corrected(self, alpha, informed) or reached_fixed_point(self, alpha, informed)
        key = (alpha, informed)
        if key not in self.known:
            self.known[key] = self._entry_by_entry(alpha, informed)
        return self.known[key]

    @cached_property
    def rough(self) -> StateEvolution | None:
        """The same map by nodes that are coarser and cheaper."""
        return None if self.output.rough == self.fineness else StateEvolution(self.output, self.space, self.output.rough)

    # -- any M, along its branches --------------------------------------------------------------------------------------
    @property
    def by_branches(self) -> bool:
        """Are the overlaps followed together: a full M, or one in which no entry becomes 1 by itself?"""
        return not self.space.diagonal or self.output.smooth is not None or not np.any(self.output.perfect)

    @cached_property
    def branches(self) -> tuple[tuple[float, OverlapPath], ...]:
        """The branches that open one after another, each with its alpha."""
        one = np.eye(self.output.r)
        zero = OverlapPath(self.F_within, one, one, one/len(one), 0*one, max(self.least, _RESOLVED[self.output.r]),
                           min(20, self.output.nodes))
        return branch_stages(zero, self.space.basis)

    # -- diagonal M -----------------------------------------------------------------------------------------------------
    def _entry_by_entry(self, alpha: float, informed: bool) -> FixedPoint:
        x = np.full(self.n, float(informed))
        free: set[int] = set()
        for _ in range(4*self.n + 4):
            moving = [k for k in range(self.n) if k not in free and (x[k] == 1) and not self._stays_at_one(x, k, alpha)]
            # An overlap that can never be 1 moves first: its limit decides if the others stay at 1.
            moving = [k for k in moving if not self.can_be_one(k)] or moving
            grow = not moving
            if grow and (zeros := [k for k in range(self.n) if x[k] == 0]):
                rate, moving = self.leaving_zero(x, zeros)
                moving = moving if alpha*rate > 1 + 2*SMALL else []  # the seed itself shifts the slope by its own size
            if not moving:
                break
            free |= set(moving)
            x, why = self._solved(x, sorted(free), moving, alpha, informed and not grow)
            if why:
                return FixedPoint(x, float("nan"), False, reason=why)
            free = {k for k in free if 0 < x[k] < 1}
        good = 1e-7  # of a fixed point: what it moves by
        return FixedPoint.resting(x, self.residual(x, alpha), good)

    def _solved(self, x: Array, free: list[int], moving: list[int], alpha: float, informed: bool) -> tuple[Array, str]:
        """The free overlaps given the others, each 0, 1 or between."""
        x = x.copy()
        if len(free) == 1:
            k = free[0]
            line = self.line(x, k)
            stable = [q for q, ok in line.fixed_points(alpha) if ok]
            runs = line.pushed_to_one(alpha)
            if (informed and runs) or not stable:
                if not self.can_be_one(k):
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
        found = (accelerated_fixed_point(self, min(near, key=lambda n: n[0])[1], alpha, informed, held) if near
                 else self.iterated(alpha, informed, x, held))
        x = found.x
        x[(x < 1e-7)] *= self.trivial  # where the label is informative at zero, little is not nothing
        for k in free:
            if x[k] > 1 - self.limit(k):
                if not self.can_be_one(k):
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

            self._lines[key] = OverlapLine(F, self.limit(k), self.output.nodes)
        return self._lines[key]

    def _stays_at_one(self, x: Array, k: int, alpha: float) -> bool:
        """alpha V F_kk > 1 as V -> 0: the map takes M_kk = 1 - V to something nearer to 1."""
        return self.can_be_one(k) and alpha*self.limit(k)*float(self.F(x)[self.space.entries[k]]) > 1


# -- from coarser nodes ----------------------------------------------------------------------------------------------------
def _corrected(evolution: StateEvolution, alpha: float, informed: bool) -> FixedPoint | None:
    """The fixed point next to that of coarser nodes, with their slopes: each value of F gains the digits that the two maps share.

    None without coarser nodes, and next to a transition, where the maps may differ in kind.
    """
    if (rough := evolution.rough) is None:
        return None
    point = rough.solve(alpha, informed)
    free = rough.moving(point.x)
    if not point.converged or not free:
        return None
    slopes = rough.slopes(point.x, alpha, list(range(rough.n)))
    apart = 0.03  # 1 - dH/dM, which vanishes where a branch opens or turns
    if 1 - float(np.linalg.eigvals(slopes).real.max()) < apart:
        return None
    held = [k for k in range(rough.n) if k not in free]
    return by_newton(evolution, point.x, alpha, held, slopes[np.ix_(free, free)])


# -- how far off ------------------------------------------------------------------------------------------------------------
def quadrature_error(evolution: StateEvolution, x: Array, alpha: float) -> float:
    """The largest |dx_k| at a fixed point with coordinates x: the move of the exact map's fixed point, to first order.

    dM = (1 - dH/dM)^{-1} (H_other(M) - H(M)), H_other the same map with F from finer nodes, or where these cost much from coarser
    ones, which says too much. Overlaps that are 0 or 1 are limits and carry no error.
    Infinite where the fixed point is marginal, dH/dM = 1: at a transition any error of F moves it by more.
    """
    x = np.asarray(x, dtype=float)
    free = evolution.moving(x)
    if not free:
        return 0.0
    here, output = evolution.step(x, alpha), evolution.output
    moved = np.array([(evolution.overlap(alpha*evolution.F(x, f)) - here)[free] for f in output.beside])
    J = (evolution.rough or evolution).slopes(x, alpha, free)
    try:
        return output.doubt*float(np.abs(np.linalg.solve(np.eye(len(free)) - J, moved.T)).max())
    except np.linalg.LinAlgError:
        return float("inf") if moved.any() else 0.0
