r"""alpha(q) = q/((1 - q) F(q)): where q = Mhat/(1 + Mhat), Mhat = alpha F(q), the fixed points of one overlap along a branch.

Its value at q = 0 is the weak-recovery threshold, its turning points are the spinodals: seen on its interpolant (Chebyshev nodes
in sqrt(1 - q)), and found between them with F itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

Array = np.ndarray
_NODES = 40
_SCAN = 1500
_TINY = 1e-9  # F(0) below this is zero up to quadrature; what is exactly zero is so to 1e-12


class OverlapLine:
    """F(q) of one unknown overlap, 0 < q < 1 - smallest."""

    def __init__(self, F: Callable[[float], float], smallest: float, nodes: int = _NODES) -> None:
        self.F, self.nodes = F, nodes
        self.t0 = float(np.sqrt(smallest))

    @cached_property
    def order(self) -> int:
        """p with F ~ q^p at q = 0: 0 trivial, 1 with a threshold, 2 or more hard."""
        if self.F(0.0) > _TINY:
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
        eps = np.concatenate([np.geomspace(1e-9, 1e-3, 40), np.linspace(1e-3, 1 - self.t0, _SCAN)[1:]])
        q = eps*(2 - eps)
        return q, self._gain(q, 1 - eps)

    @cached_property
    def threshold(self) -> float:
        """alpha_c: 0 where the start is informative, infinite where F vanishes to second order."""
        if self.order != 1:
            return 0.0 if self.order == 0 else float("inf")
        q = 1e-4*np.array([1.0, 2.0, 4.0, 8.0])
        # the cubic through alpha(q) at four small overlaps, at q = 0
        weights = [np.prod([b/(b - a) for b in q if b != a]) for a in q]
        return float(sum(w*self.alpha(a) for w, a in zip(weights, q, strict=True)))

    def alpha(self, q: float) -> float:
        """The alpha at which q is a fixed point, by F itself."""
        return q/((1 - q)*self.F(q))

    def spinodals(self) -> list[tuple[float, float]]:
        """(alpha, q) where the curve alpha(q) turns: a branch ends there. Below 1e-3 relative it is not told from rounding."""
        q, gain = self._grid
        level = -gain
        found = []
        for n in range(1, len(q) - 1):
            turns = q[n] > 1e-3 and (level[n] - level[n - 1])*(level[n + 1] - level[n]) < 0
            if turns and max(abs(level[n] - level[max(0, n - 60)]), abs(level[n] - level[min(len(q) - 1, n + 60)])) > 1e-6:
                from scipy.optimize import minimize_scalar

                side = -1.0 if level[n] > level[n - 1] else 1.0
                best = minimize_scalar(lambda x, s=side: s*np.log(self.alpha(x)), bounds=(q[n - 1], q[n + 1]), method="bounded",
                                       options={"xatol": 1e-9})
                found.append((self.alpha(float(best.x)), float(best.x)))
        return found
