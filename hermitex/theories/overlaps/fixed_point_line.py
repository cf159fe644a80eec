r"""alpha(q) = q/((1 - q) F(q)): every fixed point of q = Mhat/(1 + Mhat), Mhat = alpha F(q), of a state evolution with one unknown.

One curve answers for all alpha: its crossings with a level are the fixed points, its value at q = 0 is the weak-recovery
threshold, its turning points are the spinodals. It is interpolated once (Chebyshev nodes in sqrt(1 - q)), and every answer is
corrected by a Newton step with F itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.interpolate import krogh_interpolate
from scipy.optimize import brentq, minimize_scalar

Array = np.ndarray
_SMALL = (0.0, 1e-4, 1e-3, 4e-3, 1e-2, 2e-2)  # overlaps that are solved by F itself close to the threshold
TRIVIAL = 1e-9  # an F(0) below this is zero up to quadrature; what is exactly zero is so to 1e-12


class OverlapLine:
    """F(q) of one unknown overlap, 0 < q < 1 - smallest."""

    def __init__(self, F: Callable[[float], float], smallest: float, nodes: int = 40) -> None:
        # 40 nodes of an interpolation of F, whose error is measured on others.
        self.F, self.nodes = F, nodes
        self.t0 = float(np.sqrt(smallest))

    @cached_property
    def order(self) -> int:
        """p with F ~ q^p at q = 0: 0 trivial, 1 with a threshold, 2 or more hard."""
        if self.F(0.0) > TRIVIAL:
            return 0
        near, far = self.F(1e-3), self.F(4e-3)
        return max(1, round(float(np.log(far/near)/np.log(4)))) if near > 0 else 2

    @cached_property
    def edge(self) -> float:
        """a with F ~ (1 - q)^{-a} at q = 1: 1 for a smooth label, 1/2 for steps, 0 under noise."""
        far, near = 4*self.t0**2, self.t0**2
        return float(np.clip(round(2*np.log(self.F(1 - near)/self.F(1 - far))/np.log(far/near))/2, 0.0, 1.0))

    def _bare(self, q: float, f: float) -> float:
        """psi = log(F (1 - q)^a/q^p), a smooth function of t = sqrt(1 - q)."""
        return float(np.log(max(f, 1e-300)) + self.edge*np.log(1 - q) - self.order*np.log(q))

    def _gain(self, q: Array, t: Array) -> Array:
        """log(F (1 - q)/q) from the interpolant."""
        return np.asarray(self.series(t) + (self.order - 1)*np.log(q) + 2*(1 - self.edge)*np.log(t))

    def _slope(self, q: float) -> float:
        """d/dq of the same."""
        t = np.sqrt(1 - q)
        return float((self.order - 1)/q - self.series.deriv()(t)/(2*t) - (1 - self.edge)/(1 - q))

    @cached_property
    def series(self) -> np.polynomial.chebyshev.Chebyshev:
        """psi as a Chebyshev series in t on [t0, 1]."""
        x = np.cos(np.pi*(np.arange(self.nodes) + 0.5)/self.nodes)
        t = self.t0 + (1 - self.t0)*(1 + x)/2
        # t = 1 - eps: q = 2 eps cancels in 1 - t^2
        q = (1 - self.t0)*(1 - x)/2*(1 + t)
        psi = [self._bare(a, self.F(a)) for a in q]
        return np.polynomial.chebyshev.Chebyshev.fit(t, psi, self.nodes - 1, domain=[self.t0, 1.0])

    @cached_property
    def _grid(self) -> tuple[Array, Array]:
        """(q, log of the map's gain at alpha = 1: log(F (1 - q)/q)), q increasing."""
        scanned = 1500  # values of q, 1/1500 apart: turning points that are closer are not told apart
        eps = np.concatenate([np.geomspace(1e-9, 1e-3, 40), np.linspace(1e-3, 1 - self.t0, scanned)[1:]])
        q = eps*(2 - eps)
        return q, self._gain(q, 1 - eps)

    @cached_property
    def threshold(self) -> float:
        """alpha_c: 0 where the start is informative, infinite where F vanishes to second order."""
        if self.order != 1:
            return 0.0 if self.order == 0 else float("inf")
        q = 1e-4*np.array([1.0, 2.0, 4.0, 8.0])
        # the cubic through alpha(q) at four small overlaps, at q = 0
        return float(krogh_interpolate(q, [self.alpha(a) for a in q], 0.0))

    def alpha(self, q: float) -> float:
        """The alpha at which q is a fixed point, by F itself."""
        return q/((1 - q)*self.F(q))

    def fixed_points(self, alpha: float) -> list[tuple[float, bool]]:
        """Every (q, stable) with q < 1, in increasing order; q = 0 where it is one."""
        q, gain = self._grid
        D = np.log(alpha) + gain
        found = [(0.0, bool(alpha < self.threshold))] if self.order else []
        near_threshold = 0.02  # of alpha to the threshold
        close = self.order == 1 and abs(alpha/self.threshold - 1) < near_threshold
        found += self._small(alpha) if close else []
        for n in np.flatnonzero(np.sign(D[1:]) != np.sign(D[:-1])):
            if close and q[n + 1] <= _SMALL[-1]:
                continue
            start = q[n] + (q[n + 1] - q[n])*D[n]/(D[n] - D[n + 1])
            found.append((self._polished(alpha, float(start), q[n], q[n + 1]), bool(D[n] > 0)))
        return found

    def _small(self, alpha: float) -> list[tuple[float, bool]]:
        """Those next to zero where alpha is next to the threshold, by F itself: the interpolant is not exact enough there."""
        def gap(q: float) -> float:
            return (self.alpha(q) if q else self.threshold) - alpha

        gaps = [gap(q) for q in _SMALL]
        return [(float(brentq(gap, a, b, xtol=1e-15, rtol=1e-12)), low < 0)
                for a, b, low, high in zip(_SMALL, _SMALL[1:], gaps, gaps[1:], strict=False) if low*high < 0]

    def pushed_to_one(self, alpha: float) -> bool:
        """Does the map still raise q at the largest q that is resolved?"""
        gain = self._grid[1]
        return bool(np.log(alpha) + gain[-1] > 0)

    def _polished(self, alpha: float, q: float, low: float, high: float) -> float:
        """The crossing of the interpolant, then with F itself in place of it."""
        def log_gain(x: float) -> float:
            return float(np.log(alpha) + self._gain(np.asarray(x), np.sqrt(1 - np.asarray(x))))

        width = high - low
        a, b = max(low - 1e-3*width, low/2), min(high + 1e-3*width, 1 - self.t0**2)
        if log_gain(a)*log_gain(b) < 0:
            q = float(brentq(log_gain, a, b, xtol=1e-15, rtol=1e-14))
        for _ in range(3):
            step = np.log(alpha*self.F(q)*(1 - q)/q)/self._slope(q)
            if not abs(step) <= 0.05*q*(1 - q) + 1e-9:
                break
            q = float(np.clip(q - step, 0.0, 1 - self.t0**2))
            if abs(step) < 1e-6*q:  # Newton's next step is smaller by the interpolant's relative error of the slope
                return q
        return q

    def spinodals(self) -> list[tuple[float, float]]:
        """(alpha, q) where the curve alpha(q) turns: a branch ends there. Below 1e-3 relative it is not told from rounding."""
        q, gain = self._grid
        level = -gain
        found = []
        for n in range(1, len(q) - 1):
            turns = q[n] > 1e-3 and (level[n] - level[n - 1])*(level[n + 1] - level[n]) < 0
            if turns and max(abs(level[n] - level[max(0, n - 60)]), abs(level[n] - level[min(len(q) - 1, n + 60)])) > 1e-6:
                side = -1.0 if level[n] > level[n - 1] else 1.0
                best = minimize_scalar(lambda x, s=side: s*np.log(self.alpha(x)), bounds=(q[n - 1], q[n + 1]), method="bounded",
                                       options={"xatol": 1e-9})
                found.append((self.alpha(float(best.x)), float(best.x)))
        return found
