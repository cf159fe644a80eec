r"""H(M) = Mhat (1 + Mhat)^{-1}, Mhat = alpha F(M): the map of one label over its space of overlaps, and its plain iteration.

Source: Troiani et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.channel import Output, is_diagonal
from hermitex.theories.overlaps.path import accelerated
from hermitex.theories.overlaps.space import FixedPoint, OverlapSpace

Array = np.ndarray
_STEPS = 400
_SHIFT, _INSIDE = 1e-4, 2e-4
_SLOW, _EVEN, _LEAP = 1e-3, 0.1, 9  # of steps that hardly change
_SMALL, _ROUNDING = 1e-4, 1e-12  # of an overlap
TRIVIAL = 1e-9  # an F(0) below this is zero up to its quadrature


@dataclass(frozen=True, eq=False)
class OverlapMap:
    """The map of one label; F does not depend on alpha and is kept."""

    output: Output
    space: OverlapSpace
    _kept: dict[bytes, Array] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many overlaps are unknown."""
        return len(self.space.entries)

    def F(self, x: Array, fineness: float = 1.0) -> Array:
        """F(M) at M = M(x); overlaps of 1 stand for 1 - smallest."""
        M = self.inside(self.space.matrix(x))
        key = np.round([fineness, *M.ravel()], 15).tobytes()
        if key not in self._kept:
            checkpoint("iterating the state evolution")
            if len(self._kept) > 4000:
                self._kept.clear()
            self._kept[key] = self.output.second(M, fineness)
        return self._kept[key]

    def on(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M) of an M in the space of overlaps, in that space."""
        return self.space.matrix(self.space.coordinates(self.F(self.space.coordinates(M), fineness)))

    @cached_property
    def trivial(self) -> bool:
        """Whether F(0) is not zero: then M = 0 is no fixed point, at any alpha."""
        return bool(np.abs(self.F(np.zeros(self.n))).max() > TRIVIAL)

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

    def can_be_one(self, P: Array) -> bool:
        """Whether directions with the projector P are variables that can be known exactly at a finite alpha."""
        perfect = np.broadcast_to(self.output.perfect, (self.output.r,))
        return is_diagonal(np.round(P, 12)) and bool(perfect[np.diag(P) > 1e-12].all())

    def limit(self, P: Array) -> float:
        """The V down to which the overlaps of directions with the projector P are resolved."""
        return float((self.smallest[np.diag(P) > 1e-12] if self.space.diagonal else self.smallest).max())

    def step(self, x: Array, alpha: float) -> Array:
        """H(M) in coordinates; an entry of a diagonal M that is 1 stays so, and one that only rounding leaves is 0."""
        new = self.overlap(alpha*self.F(x))
        return np.where(x == 1, 1.0, np.where(new < _ROUNDING, 0.0, new)) if self.space.diagonal else new

    def overlap(self, Mhat: Array) -> Array:
        """Mhat (1 + Mhat)^{-1} in coordinates."""
        return self.space.coordinates(np.linalg.solve(np.eye(len(Mhat)) + Mhat, Mhat))

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

    # -- from a start ---------------------------------------------------------------------------------------------------
    def iterated(self, alpha: float, informed: bool = False, start: Array | None = None, *, calm: float = 2e-3) -> FixedPoint:
        """Plain iteration, more than ten steps and until they are below `calm`, then Anderson's acceleration to the end."""
        first = (0.97 if informed else 1e-4)*np.eye(self.output.r)
        x = self.space.coordinates(first) if start is None else np.array(start, dtype=float)

        def step(y: Array) -> Array:
            return self.step(y, alpha)

        change, n = np.inf, 0
        for n in range(_STEPS):
            new = step(x)
            scale = float(np.abs(new).max())
            change = float(np.abs(new - x).max())/max(scale, 1e-300)
            if not informed and n > 6 and scale < 1e-3 and not self.trivial:
                old = float(np.abs(x).max())
                if scale <= old:  # in the linear regime, and not growing
                    return FixedPoint(np.zeros(self.n), 0.0, True, n)
                new = new*min(1e-3/scale, 50.0)
            if not informed and n > 6 and self.space.diagonal:
                new[(new < x) & (new < _SMALL)] = 0.0  # whether it stays there is seen by the slopes
            x = new
            if change < calm and n > 10:
                break
        M, residual = accelerated(lambda X: self.space.matrix(step(self.space.coordinates(X))), self.space.matrix(x))
        best = self.space.coordinates(M)
        if residual > 1e-9 or float(np.abs(best - x).max()) > 0.2:
            for _ in range(_STEPS):
                new = step(x)
                last, change = change, float(np.abs(new - x).max())
                even = change < _SLOW and abs(change/max(last, 1e-300) - 1) < _EVEN  # through a narrow gap: many steps at a time
                x = new + _LEAP*(new - x) if even else new
                if change < 1e-11:
                    break
            best = x
        residual = float(np.abs(step(best) - best).max())
        good = residual < 1e-8
        return FixedPoint(best, residual, good, n, "" if good else f"the overlaps still move by {residual:.1e} a step")
