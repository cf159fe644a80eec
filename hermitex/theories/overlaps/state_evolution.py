r"""M <- Mhat (1 + Mhat)^{-1}, Mhat = alpha F(M): fixed points of the state evolution of Bayes-AMP, from zero and from one.

Where the symmetries leave a diagonal M its entries come one by one: an overlap at 0 or at 1 stays there while that is stable,
the free ones are solved given these. One free overlap is read off its curve alpha(q), several are iterated, as a full M is;
where these open is seen along the branches (`transitions`).
Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from hermitex.theories.overlaps.fixed_point_line import TRIVIAL, OverlapLine
from hermitex.theories.overlaps.full_overlap import WholeMap, accelerated_fixed_point, by_newton, reached_fixed_point
from hermitex.theories.overlaps.overlap_branch import LEAST, OverlapPath, branch_stages
from hermitex.theories.overlaps.overlap_space import FixedPoint

Array = np.ndarray
_SEED = 1e-5  # a small overlap, in which the map is linear to five digits
_MARGIN = 0.03  # of alpha: how far from a transition of the cheap map its kind is trusted
_RESOLVED = {1: 0.0, 2: 1e-2, 3: 4e-2}  # 1 - q of a branch: its largest overlap is nearer to 1


@dataclass(frozen=True, eq=False)
class StateEvolution(WholeMap):
    """The fixed points of the map of one label, from zero and from one."""

    _lines: dict[Any, OverlapLine] = field(default_factory=dict)

    @cached_property
    def cheap(self) -> StateEvolution | None:
        """The same with a quadrature that is cheaper and less exact, where one is worth its while."""
        return None if self.output.cheap is None else StateEvolution(self.output.cheap, self.space)

    def solve(self, alpha: float, informed: bool = False) -> FixedPoint:
        """The fixed point reached from M = eps 1 (uninformed), or from M = 1 (informed)."""
        if informed and self.approach is not None and self.approach.attracts(alpha):
            return FixedPoint(self.space.coordinates(np.eye(self.output.r)), 0.0, True, off=0.0)
        if self.cheap is not None:
            found = _corrected(self, self.cheap, alpha, informed)
            if found is not None:
                return found
        if self.by_branches and (self.output.quick or not self.space.diagonal):
            return reached_fixed_point(self, alpha, informed)
        key = (alpha, informed)
        if key not in self.known:
            self.known[key] = self._entry_by_entry(alpha, informed)
        return self.known[key]

    # -- any M, along its branches --------------------------------------------------------------------------------------
    @property
    def by_branches(self) -> bool:
        """Whether the overlaps are followed together: a full M, or several of which none becomes 1 at a finite alpha."""
        return not self.space.diagonal or (self.n > 1 and not np.any(self.output.perfect))

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
            # What can never be known exactly moves first: the others stay at one or not given where it goes.
            moving = [k for k in moving if not self.can_be_one(k)] or moving
            grow = not moving
            if grow and (zeros := [k for k in range(self.n) if x[k] == 0]):
                rate, moving = self.leaving_zero(x, zeros)
                moving = moving if alpha*rate > 1 + 2*_SEED else []  # the seed itself shifts the slope by its own size
            if not moving:
                break
            free |= set(moving)
            x, why = self._solved(x, sorted(free), moving, alpha, informed and not grow)
            if why:
                return self.beside_one(alpha, informed) or FixedPoint(x, float("nan"), False, reason=why)
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
        found = (accelerated_fixed_point(self, min(near, key=lambda n: n[0])[1], alpha, informed, held) if near
                 else self.iterated(alpha, informed, x, held))
        x = found.x
        x[(x < 1e-7)] *= self.trivial  # where the label is informative at zero, little is not nothing
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

            self._lines[key] = OverlapLine(F, self.limit(k), self.output.nodes)
        return self._lines[key]

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
            return self.approach.attracts(alpha)
        return self._becomes_one(k, x, alpha) and alpha*self.limit(k)*float(self.F(x)[self.space.entries[k]]) > 1

    def growth(self, x: Array, zeros: list[int], seed: float = _SEED) -> Array:
        """(F_k, dF_k/dx_l) at x_l -> 0+ over the overlaps that vanish: a trivial part, and the linear map that alpha multiplies."""
        base = self.F(x)
        trivial = np.array([base[self.space.entries[k]] for k in zeros])
        linear = np.zeros((len(zeros), len(zeros)))
        for j, k in enumerate(zeros):
            y = x.copy()
            y[k] = seed
            F = self.F(y)
            linear[:, j] = [(F[self.space.entries[i]] - t)/seed for i, t in zip(zeros, trivial, strict=True)]
        return np.concatenate([trivial[:, None], linear], axis=1)

    def leaving_zero(self, x: Array, zeros: list[int]) -> tuple[float, list[int]]:
        """(rate, which overlaps): they leave zero where alpha is above 1/rate, at once where F itself is not zero there.

        A small rate is one only if it does not change with the seed: that of a second order grows with it, rounding falls.
        """
        table = self.growth(x, zeros)
        moved = [k for k, t in zip(zeros, table[:, 0], strict=True) if t > TRIVIAL]
        if moved:
            return np.inf, moved
        rates, vectors = np.linalg.eig(table[:, 1:])
        rate = float(rates.real.max())
        alike = 1e-4  # relative, of rates that are one
        vector = np.abs(vectors[:, rates.real >= rate - alike*abs(rate)]).sum(axis=1)
        steady = 0.2  # change of a rate from a small overlap to twice as much
        if rate < LEAST:
            again = float(np.linalg.eigvals(self.growth(x, zeros, 2*_SEED)[:, 1:]).real.max())
            rate = rate if rate > 0 and abs(again/rate - 1) < steady else 0.0
        return rate, [k for k, v in zip(zeros, vector, strict=True) if v > 1e-6*vector.max()]


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
    slopes = cheap.slopes(point.x, alpha, free)
    left = 1 - _rate(slopes)
    held = [k for k in range(len(point.x)) if k not in free]
    fold = 2e-3  # 1 - dH/dM, which vanishes where a branch turns
    found = None if left < fold else by_newton(evolution, point.x, alpha, held, slopes)
    if found is None or (left < _MARGIN and not 0.5*left < 1 - _rate(cheap.slopes(found.x, alpha, free)) < 2*left):
        return None  # a turning point is as near as the two maps are apart
    return replace(found, iterations=point.iterations + found.iterations)


def _rate(slopes: Array) -> float:
    return float(np.linalg.eigvals(slopes).real.max())


def _kind_is_sure(cheap: StateEvolution, x: Array, free: list[int], alpha: float, informed: bool) -> bool:
    """Whether what is 0, 1 or between would be so at alphas 3 % away."""
    held = [k for k in range(len(x)) if k not in free]
    small = 1e-4  # an overlap at which the cheap map is taken as linear
    if not cheap.space.diagonal:
        if held and np.any(x):
            return abs(alpha*cheap.pace - 1) > _MARGIN
        seed = small*cheap.space.coordinates(np.eye(cheap.output.r))
        return not held or alpha*np.linalg.eigvalsh(cheap.F(seed))[-1]/small < 1 - _MARGIN  # a positive map has the norm of dF[1]
    if not held:
        return True
    beside = [cheap.solve(alpha*f, informed) for f in (1 - _MARGIN, 1 + _MARGIN)]
    return all(p.converged and np.array_equal(np.isin(p.x, (0, 1)), np.isin(x, (0, 1))) for p in beside)


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
    J = (evolution.cheap or evolution).slopes(x, alpha, free)
    try:
        return output.doubt*float(np.abs(np.linalg.solve(np.eye(len(free)) - J, moved.T)).max())
    except np.linalg.LinAlgError:
        return float("inf") if moved.any() else 0.0
