r"""H(M) = Mhat (1 + Mhat)^{-1}, Mhat = alpha F(M): the map of one label over its space of overlaps, and its plain iteration.

Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.channel import Output
from hermitex.theories.overlaps.fixed_point_line import TRIVIAL
from hermitex.theories.overlaps.overlap_branch import accelerated
from hermitex.theories.overlaps.overlap_space import FixedPoint, OverlapSpace

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class OverlapMap:
    """The map of one label; F does not depend on alpha and is kept."""

    output: Output
    space: OverlapSpace
    _kept: dict[tuple[bytes, float], Array] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many overlaps are unknown."""
        return len(self.space.entries)

    def F(self, x: Array, fineness: float = 1.0) -> Array:
        """F(M) at M = M(x); overlaps of 1 stand for 1 - smallest."""
        return self._F(self.space.matrix(x), fineness)

    def F_within(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M) in the space of overlaps, at any M."""
        return self.space.matrix(self.space.coordinates(self._F(M, fineness)))

    def _F(self, M: Array, fineness: float) -> Array:
        M = self.inside(M)
        key = np.round(M, 15).tobytes(), fineness
        if key not in self._kept:
            checkpoint("iterating the state evolution")
            if len(self._kept) > 4000:
                self._kept.clear()
            self._kept[key] = self.output.second(M, fineness)
        return self._kept[key]

    def inside(self, M: Array) -> Array:
        """M with overlaps nearer to 1 than is resolved moved off it."""
        if self.space.diagonal:
            return np.diag(np.clip(np.diag(M), 0.0, 1 - self.smallest))
        m, R = np.linalg.eigh(M)
        return np.asarray((R*np.clip(m, 0.0, 1 - self.least)) @ R.T)

    @property
    def smallest(self) -> Array:
        """The smallest V_ii that is resolved."""
        return np.broadcast_to(self.output.smallest, (self.output.r,))

    @property
    def least(self) -> float:
        """The smallest V that is resolved in any direction."""
        return float(self.smallest.max())

    @property
    def together(self) -> float:
        """The smallest V that is resolved in all directions at once."""
        return self.output.together or self.least

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

    def slopes(self, x: Array, alpha: float, free: list[int]) -> Array:
        """dH/dx over the free overlaps, by differences; of a full M off the faces M >= 0, beyond which the map is not defined."""
        inside = 2e-4  # towards 1/2 of the faces M >= 0, so that a difference does not cross them
        if not self.space.diagonal:
            x = x + inside*(self.space.coordinates(np.eye(self.output.r)) - x)
        here = self.step(x, alpha)
        J = np.empty((len(free), len(free)))
        shift = 1e-4  # of an overlap, for a difference quotient; chosen by trial
        for j, k in enumerate(free):
            y, h = x.copy(), shift*max(min(abs(x[k]), 1 - abs(x[k])), 1e-3)
            y[k] += h if x[k] < 0.5 else -h
            J[:, j] = (self.step(y, alpha) - here)[free]/(y[k] - x[k])
        return J

    def name(self, k: int) -> str:
        """M11, M12, ... as coordinates are called."""
        i, j = self.space.entries[k]
        return f"M{i + 1}{j + 1}"

    def moving(self, x: Array) -> list[int]:
        """The overlaps that are not limits: not 0 or 1 on a diagonal M, none of M = 0 and M = 1."""
        M = self.space.matrix(x)
        if not np.any(M) or np.array_equal(M, np.eye(len(M))):
            return []
        return [k for k in range(len(x)) if not (self.space.diagonal and x[k] in (0.0, 1.0))]

    def residual(self, x: Array, alpha: float) -> float:
        """max |H(M) - M| over the overlaps that are not 1, where both are exact limits."""
        gap = np.abs(self.step(x, alpha) - x)
        return float(np.max(np.where(x == 1, 0.0, gap), initial=0.0))

    @cached_property
    def trivial(self) -> bool:
        """Whether F(0) is not zero: then M = 0 is no fixed point, at any alpha."""
        return bool(np.abs(self.F(np.zeros(self.n))).max() > TRIVIAL)

    # -- from a start ---------------------------------------------------------------------------------------------------
    def iterated(self, alpha: float, informed: bool = False, start: Array | None = None, held: list[int] | None = None, *,
                 calm: float = 2e-3) -> FixedPoint:
        """Plain iteration, more than ten steps and until they are below `calm`, then Anderson's acceleration to the end."""
        first = (0.97 if informed else 1e-4)*np.eye(self.output.r)
        x = self.space.coordinates(first) if start is None else np.array(start, dtype=float)
        held = held or []
        kept = x[held].copy()

        def step(y: Array) -> Array:
            out = self.step(y, alpha)
            out[held] = kept
            return out

        change, n = np.inf, 0
        most_steps = 400  # of the plain iteration; what still moves is reported with its residual
        for n in range(most_steps):
            new = step(x)
            scale = float(np.abs(new).max())
            change = float(np.abs(new - x).max())/max(scale, 1e-300)
            if not informed and not held and n > 6 and scale < 1e-3 and not self.trivial:
                old = float(np.abs(x).max())
                if scale <= old:  # in the linear regime, and not growing
                    return FixedPoint(np.zeros(self.n), 0.0, True, n)
                new = new*min(1e-3/scale, 50.0)
            x = new
            if change < calm and n > 10:
                break
        M, residual = accelerated(lambda X: self.space.matrix(step(self.space.coordinates(X))), self.space.matrix(x))
        best = self.space.coordinates(M)
        if residual > 1e-9 or float(np.abs(best - x).max()) > 0.2:
            for _ in range(most_steps):
                new = step(x)
                change = float(np.abs(new - x).max())
                x = new
                if change < 1e-11:
                    break
            best = x
        return FixedPoint.resting(best, float(np.abs(step(best) - best).max()), 1e-8, n)
