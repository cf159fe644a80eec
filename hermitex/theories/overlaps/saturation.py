r"""V = s^2 K, s^2 F(1 - s^2 K) -> E[n n^T/(n^T K n)], n = grad g, as s -> 0: fixed points nearer to 1 than nodes resolve.

Next to the truth a smooth label without noise is known along its gradient: one equation a sample. So M = 1 attracts where
alpha P(n != 0) > r, in the shape K whose limit is P K^{-1}/r [Tyler 1987]. Between s = 0 and what is resolved, s = 1, s^2 F is a
polynomial in s through both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import qmc

from hermitex.theories.overlaps.overlap_map import OverlapMap
from hermitex.theories.overlaps.overlap_space import FixedPoint

Array = np.ndarray
_SCALES = np.array([1.0, 1.5, 2.2])  # V, in units of the smallest that is resolved
_STEPS, _SETTLED = 200, 1e-11  # of Tyler's iteration, which converges geometrically; its change at the end
_SUBSETS = ([0, 1, 2], [0, 1], [0, 2])  # of the scales: the parabola, and lines to compare with


def unit_gradients(g: Callable[[Sequence[Array]], Array], r: int) -> Array:
    """Unit gradients (n, r) at points that fill N(0, 1) evenly; zero on a plateau."""
    points = 16  # 2^16, evenly spread
    z = ndtri(np.clip(qmc.Sobol(r, seed=0).random_base2(points), 1e-12, 1 - 1e-12)).T
    step = 1e-5  # of a central difference of g: ten digits of a gradient
    slopes = np.stack([g(list(z + e)) - g(list(z - e)) for e in step*np.eye(r)[:, :, None]], axis=1)
    size = np.linalg.norm(slopes, axis=1, keepdims=True)
    seen = np.isfinite(size) & (size > 0)
    return np.where(seen, slopes/np.where(seen, size, 1.0), 0.0)


def gradient_products(n: Array) -> Array:
    """n_i n_j of all samples, (r^2, samples): taken once, as K moves in hundreds of steps."""
    return np.asarray((n.T[:, None]*n.T).reshape(-1, len(n)))


def saturation_limit(nn: Array, K: Array) -> Array:
    """E[n n^T/(n^T K n)], from the products of the samples.

    >>> saturation_limit(gradient_products(np.eye(2)), np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    size = K.ravel() @ nn
    return np.asarray(nn @ (1/np.where(size > 0, size, 1.0))/nn.shape[1]).reshape(K.shape)


class Approach:
    """The fixed points M = 1 - s^2 K, 0 <= s < 1, of one label, as a curve alpha(s).

    shape : K(0);  onset : alpha(0), above which M = 1 attracts;  together : whether the overlaps come near 1 in one shape;
        else the directions that fewer samples tell of come later, and M = 1 attracts where the last of them does
    series : the coefficients of s, s^2, ... in s^2 F; those from some points less, and from other nodes, which tell the error
    """

    def __init__(self, evolution: OverlapMap, n: Array) -> None:
        self.evolution, self.n, self.v, self.r = evolution, n, evolution.together, n.shape[1]
        self.products = gradient_products(n)
        self.shape = self.at(0.0, np.zeros((0, self.r, self.r)))[0]
        long = 8.0  # V in one direction over V in another: beyond it they do not come near 1 together
        self.together = bool(np.linalg.cond(self.shape) < long)
        slowest = float((n**2).sum(axis=1).mean())/self.r if self.together else self._slowest()
        never = 1e-6  # part of the samples that tell of a direction, below which none is known
        self.onset = 1/slowest if slowest > never else np.inf

    def _slowest(self) -> float:
        """The least eigenvalue of K^(1/2) E[n n^T/(n^T K n)] K^(1/2) in the shape that V <- (alpha F)^{-1} comes to as V -> 0."""
        K, c = np.eye(self.r), 0.0
        ratio = 1e-9  # V in one direction over V in another
        for _ in range(_STEPS):
            F, L = self.symmetric(saturation_limit(self.products, K)), np.linalg.cholesky(K)
            last, c = c, float(np.linalg.eigvalsh(L.T @ F @ L)[0])
            G, R = np.linalg.eigh(F)
            K = (R*(G[-1]/np.maximum(G, ratio*G[-1]))) @ R.T
            if abs(c - last) < _SETTLED:
                break
        return c

    def attracts(self, alpha: float) -> bool:
        """Whether M = 1 surely attracts: an onset that is counted among points is known to three digits or so."""
        counted = not self.together or not np.all(np.any(self.n != 0, axis=1))
        counted_margin = 1.005  # an onset that is counted among 2^16 points has a standard error of 1/256 = 0.4 %
        return bool(alpha > self.onset*(counted_margin if counted else 1.0))

    @cached_property
    def series(self) -> list[Array]:
        """From F at a few V of the shape that is met between."""
        K = self.shape
        middle = 0.7  # s at which the shape is taken, between the resolved and 0
        rounds = 2  # in which the shape that is met between settles
        same = 1e-2  # relative change of that shape which no longer matters
        for _ in range(rounds):
            found = self._through(K, _SUBSETS)
            last, K = K, self.at(middle, found[0])[0]
            if np.abs(K - last).max() < same*self.v:
                break
        return found + self._through(last, _SUBSETS[:1], self.evolution.output.beside[0])

    def _through(self, K: Array, subsets: Sequence[list[int]], fineness: float = 1.0) -> list[Array]:
        """The polynomials through some of the points on V = c K."""
        F = np.array([c*self.symmetric(self.evolution.output.second(np.eye(self.r) - c*K, fineness)) for c in _SCALES])
        rest, s = (F - self.symmetric(saturation_limit(self.products, K))).reshape(len(F), -1), np.sqrt(_SCALES)
        return [np.linalg.solve(s[k, None]**np.arange(1, len(k) + 1), rest[k]).reshape(-1, self.r, self.r) for k in subsets]

    def at(self, s: float, series: Array) -> tuple[Array, float]:
        """(K, alpha) with K^{-1} = s^2 + alpha s^2 F, the least eigenvalue of K that of the smallest V: Tyler's iteration."""
        K, alpha = self.v*np.eye(self.r), 0.0
        above = sum((s**(j + 1)*B for j, B in enumerate(series)), np.zeros_like(K))
        least_part = 1e-3  # of the largest eigenvalue of F: directions of F far below it are noise
        for _ in range(_STEPS):
            G, R = np.linalg.eigh(self.symmetric(saturation_limit(self.products, K)) + above)
            alpha = float((1/self.v - s*s)/G[-1])
            new = (R/(s*s + alpha*np.maximum(G, least_part*G[-1]))) @ R.T
            moved, K = np.abs(new - K).max(), new
            if moved < _SETTLED*self.v:
                break
        return K, alpha

    def told(self, own: Array, others: Array) -> float:
        """1/alpha above which M_own = 1 attracts while the others are not known: samples that tell of own variables alone."""
        told = np.any(self.n[:, own] != 0, axis=1) & np.all(self.n[:, others] == 0, axis=1)
        return float(told.mean())/int(own.sum())

    def symmetric(self, F: Array) -> Array:
        """The nearest matrix in the space of the overlaps."""
        basis = self.evolution.space.basis
        rows = basis.reshape(len(basis), -1).T
        return self.evolution.space.matrix(np.linalg.lstsq(rows, F.ravel(), rcond=None)[0])

    def solve(self, alpha: float, informed: bool) -> FixedPoint | None:
        """The fixed point with V smaller than is resolved; None where there is none, or no one shape of V."""
        if not self.together:
            return None
        first, *others = (self._crossing(series, alpha, informed) for series in self.series)
        if first is None:
            return None
        V = first**2*self.at(first, self.series[0])[0]
        off = [np.inf if s is None else np.abs(V - s*s*self.at(s, series)[0]).max()
               for s, series in zip(others, self.series[1:], strict=True)]
        doubt = 3.0  # corners of a label leave powers of V that all of these polynomials miss
        return self._point(first, doubt*float(max(off)))

    def _crossing(self, series: Array, alpha: float, informed: bool) -> float | None:
        """s at which alpha(s) crosses alpha: the first from what is resolved downwards, informed from 0 upwards; 0 for M = 1."""
        places = np.linspace(0.0, 1.0, 25)  # of s, on which alpha(s) is compared with alpha
        line = np.array([self.at(s, series)[1] for s in places])
        over = line < alpha  # the map raises M
        if not informed and not over[-1]:
            return None
        turns = np.flatnonzero(over[1:] != over[:-1])
        if not turns.size:
            return 0.0 if over[0] else None
        k = turns[0 if informed else -1]
        return float(brentq(lambda s: self.at(s, series)[1] - alpha, places[k], places[k + 1], xtol=1e-10))

    def _point(self, s: float, off: float) -> FixedPoint:
        M = np.eye(self.r) - s*s*self.at(s, self.series[0])[0] if s else np.eye(self.r)
        return FixedPoint(self.evolution.space.coordinates(M), 0.0, True, off=off)
