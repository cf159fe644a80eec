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
from hermitex.theories.overlaps.overlap_branch import LEAST, accelerated
from hermitex.theories.overlaps.overlap_space import FixedPoint, OverlapSpace
from hermitex.theories.overlaps.saturation import Approach, unit_gradients

Array = np.ndarray
SMALL = 1e-5  # an overlap in which the map is linear to five digits


@dataclass(frozen=True, eq=False)
class OverlapMap:
    """The map of one label; F does not depend on alpha and is kept, as are the fixed points `known` by (alpha, informed).

    fineness : of the nodes, 1 the usual, more for coarser ones
    """

    output: Output
    space: OverlapSpace
    fineness: float = 1.0
    known: dict[tuple[float, bool], FixedPoint] = field(default_factory=dict)
    _kept: dict[tuple[bytes, float], Array] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many overlaps are unknown."""
        return len(self.space.entries)

    def F(self, x: Array, fineness: float = 1.0) -> Array:
        """F(M) at M = M(x); overlaps of 1 mean 1 - smallest."""
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
            self._kept[key] = self.output.second(M, self.fineness*fineness)
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
        """Is F(0) nonzero? Then M = 0 is not a fixed point, at any alpha."""
        return bool(np.abs(self.F(np.zeros(self.n))).max() > TRIVIAL)

    # -- next to zero ---------------------------------------------------------------------------------------------------
    def growth(self, x: Array, zeros: list[int], seed: float = SMALL) -> Array:
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
            again = float(np.linalg.eigvals(self.growth(x, zeros, 2*SMALL)[:, 1:]).real.max())
            rate = rate if rate > 0 and abs(again/rate - 1) < steady else 0.0
        return rate, [k for k, v in zip(zeros, vector, strict=True) if v > 1e-6*vector.max()]

    @cached_property
    def _rate(self) -> float:
        return self.leaving_zero(np.zeros(self.n), list(range(self.n)))[0]

    def leaves_zero(self, alpha: float) -> bool:
        """Does some overlap leave zero at this alpha? Always False for a full M."""
        return self.space.diagonal and alpha*self._rate > 1 + 2*SMALL

    # -- next to one ----------------------------------------------------------------------------------------------------
    @cached_property
    def approach(self) -> Approach | None:
        """How the overlaps of a smooth label without noise come near 1."""
        g = self.output.smooth
        return None if g is None else Approach(unit_gradients(g, self.output.r), self._symmetric)

    def _symmetric(self, F: Array) -> Array:
        """The nearest matrix in the space of the overlaps."""
        rows = self.space.basis.reshape(self.n, -1).T
        return self.space.matrix(np.linalg.lstsq(rows, F.ravel(), rcond=None)[0])

    @cached_property
    def pace(self) -> float:
        """c with V <- V/(alpha c) where V is small: its limit V -> 0, or what it is at the smallest V that is resolved, if less."""
        if self.approach is None:
            return 0.0
        m, R = np.linalg.eigh(self.approach.shape)
        half = 0.45  # beyond which V is no longer small
        V = (R*np.minimum(m*self.together/m[0], half)) @ R.T
        L = np.linalg.cholesky(V)
        return min(float(np.linalg.eigvalsh(L.T @ self.output.second(np.eye(self.output.r) - V) @ L)[0]), self.approach.rate)

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
                if scale <= old and not self.leaves_zero(alpha):  # in the linear regime, and not growing
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
        nothing = 1e-7  # an overlap that is smaller is on its way to zero
        if self.space.diagonal and not self.trivial and np.abs(best).max() < nothing and not self.leaves_zero(alpha):
            return FixedPoint(np.zeros(self.n), 0.0, True, n)
        return FixedPoint.resting(best, float(np.abs(step(best) - best).max()), 1e-8, n)
