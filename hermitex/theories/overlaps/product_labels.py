r"""log|y| = sum_i k_i log|z_i|: the label y = c z_1^{k_1} ... z_r^{k_r}, whose Z(y, omega) is a convolution in log|y|.

With E_i, O_i the sum and the difference of the densities of k_i log|z_i| over the two signs of z_i (the sum where k_i is even),
Z(+-|y|) = (E_1 * ... * E_r +- O_1 * ... * O_r)/2, and its slopes in omega_i have the slopes of the factor i. A multiplicative noise
is one factor more, in which nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import factorial
from typing import Any

import numpy as np
from sympy import Abs, Expr, Mul, Symbol

from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array
from hermitex.theories.overlaps.channel import EXP, Output
from hermitex.theories.overlaps.overlap_frame import field_nodes

_RESOLVED = {2: 0.03, 3: 0.1}  # V at which the fields' nodes become too many
_TOWARDS_ONE = np.array([1.0, 1.5, 2.2, 3.3])  # times the smallest V that is resolved: four points of a polynomial in sqrt(V)


@dataclass(frozen=True, eq=False)
class ProductOutput(Output):
    """A monomial: `powers` and whether each factor is |z|^k; `noisy`: times a standard normal; c `scale`. V is diagonal."""

    powers: tuple[int, ...]
    even: tuple[bool, ...]
    scale: float = 1.0
    noisy: bool = False
    r: int = 2
    smallest: Any = 0.06
    perfect: Any = True
    nodes: int = 16
    beside: tuple[float, ...] = (0.5,)  # the grid of the label has a power of two of nodes

    @classmethod
    def of(cls, g: Expr, names: Sequence[Symbol], law: str) -> ProductOutput | None:
        """From an expression; None if it is not a monomial in several variables."""
        c, rest = g.as_coeff_Mul()
        found: dict[Expr, tuple[int, bool]] = {}
        for base, k in rest.as_powers_dict().items():
            for x in Mul.make_args(base.args[0] if isinstance(base, Abs) else base):
                if x not in names or x in found or not (k.is_Integer and 0 < k <= 4):
                    return None
                found[x] = int(k), isinstance(base, Abs) or int(k) % 2 == 0
        if len(names) < 2 or len(found) < len(names):
            return None
        powers, even = zip(*(found[x] for x in names), strict=True)
        noisy, r = law == "multiplicative", len(names)
        near_one = 1e-3  # V from which F is extrapolated to V = 0
        return cls(powers, even, float(c), noisy, r, _RESOLVED[r] if noisy or len({*found.values()}) > 1 else near_one,
                   not noisy, 14 if r == 3 else 20)

    def _grid(self, v: float, fineness: float) -> tuple[Array, float]:
        """t on the circle of convolutions, and its step."""
        k = [*self.powers, *([1] if self.noisy else [])]
        largest_log = 2.15  # of |z|: log 8.6
        least_log = 24.0  # of |z|: how far to the left a density e^t is followed, for k = 1
        right, left = largest_log*sum(k) + 1, least_log*max(k) + 4
        n = int(2**np.ceil(np.log2((right + left)/(fineness*0.22*min(0.5, np.sqrt(v))))))
        h = (right + left)/n
        j = np.arange(n)
        return np.where(j*h <= right, j*h, (j - n)*h), h

    @staticmethod
    def _hats(t: Array, omega: Array, v: float, k: int, even: bool) -> Array:
        """Fourier transforms of E, O, dE/domega, dO/domega: (4, n, frequencies)."""
        x = np.exp(t/k)
        found = []
        root = np.sqrt(2*np.pi)  # the normal density is exp(-x^2/2)/root
        for s in (1, -1):
            away = (s*x - omega[:, None])/np.sqrt(v)
            p = np.exp(-away*away/2)*x/(k*np.sqrt(v)*root)
            found.append((p, p*away/np.sqrt(v)))
        (p, dp), (n, dn) = found
        parts = [p + n, p + n if even else p - n, dp + dn, dp + dn if even else dp - dn]
        return np.stack([np.fft.rfft(a, axis=1) for a in parts])

    def _factors(self, t: Array, omega: Sequence[Array], v: Array) -> tuple[list[Array], Array]:
        hats = [self._hats(t, o, u, k, e) for o, u, k, e in zip(omega, v, self.powers, self.even, strict=True)]
        noise = self._hats(t, np.zeros(1), 1.0, 1, False)[:2, 0] if self.noisy else np.ones((2, hats[0].shape[2]))
        return hats, noise

    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M) for a diagonal M."""
        m = np.diag(M)
        v = float((1 - m).min())
        if v < 0.999*_RESOLVED[self.r] and self.perfect and np.ptp(m) == 0:
            return np.eye(self.r)*float(np.polyval(self._towards_one(len(_TOWARDS_ONE) - (fineness != 1)), np.sqrt(v)))/v
        t, h = self._grid(float((1 - m).min()), fineness)
        nodes = field_nodes(m, (1.3 if self.r == 3 else 1.0)*fineness, range(self.r))
        hats, noise = self._factors(t, [o for o, _ in nodes], 1 - m)
        alike = len({*zip(m, self.powers, self.even, strict=True)}) == 1
        index = np.array([i for i in product(*(range(len(o)) for o, _ in nodes)) if not alike or list(i) == sorted(i)])
        weight = np.prod([w[i] for (_, w), i in zip(nodes, index.T, strict=True)], axis=0)
        if alike:
            weight = weight*_orderings(index)
        kept = weight > 1e-13*weight.max()
        index, weight = index[kept], weight[kept]
        F = np.zeros(self.r)
        least = 1e-12  # of the largest Z: labels below it add nothing to F
        rows_of_512 = 2048  # 8 MB of labels at once
        for k in range(0, len(index), size := max(1, rows_of_512*512//len(t))):
            rows = index[k:k + size]
            checkpoint("iterating the state evolution", 2*EXP*(self.r + 1)*len(rows)*len(t))
            Z, A = self._labels(hats, noise, rows, len(t), h)
            share = weight[k:k + size, None]*np.where(least*Z.max(axis=(0, 2), keepdims=True) < Z, 1/np.maximum(Z, 1e-300), 0.0)
            F += [h*np.sum(a*a*share) for a in A]
        return np.diag(np.full(self.r, F.mean()) if alike else F)

    @cached_property
    def _near_one(self) -> Array:
        """(V, V F) at some V that are still resolved."""
        v = _RESOLVED[self.r]*_TOWARDS_ONE
        return np.array([(u, u*self.second((1 - u)*np.eye(self.r))[0, 0]) for u in v])

    def _towards_one(self, points: int) -> Array:
        """V F as a polynomial in V^(1/2), through its limit E[(d_i g)^2/|grad g|^2] = 1/r; one point less tells its error."""
        v, found = self._near_one[:points].T
        return np.polyfit(np.sqrt([0.0, *v]), [1/self.r, *found], len(v))

    def _labels(self, hats: list[Array], noise: Array, rows: Array, n: int, h: float) -> tuple[Array, Array]:
        """Z and the A_i at labels of both signs: (2, rows, t) and (r, 2, rows, t)."""
        def both(slope: int | None) -> Array:
            even, odd = (noise[c]*np.prod([hat[c + (2 if i == slope else 0), rows[:, i]] for i, hat in enumerate(hats)], axis=0)
                         for c in (0, 1))
            steps = h**(len(hats) - 1 + self.noisy)
            e, o = (np.fft.irfft(x, n, axis=1)*steps for x in (even, odd))
            return np.stack([e + o, e - o])/2

        return both(None), np.stack([both(i) for i in range(self.r)])


def _orderings(index: Array) -> Array:
    """How many orderings of each sorted row differ."""
    repeats = np.array([np.prod([factorial(c) for c in np.unique(row, return_counts=True)[1]]) for row in index])
    return factorial(index.shape[1])/repeats
