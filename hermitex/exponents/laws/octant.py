"""p(y, s) = 6 int phi(z_1) phi(z_2) phi(z_3)/|f'(z_1) - f'(z_3)| dz_2, f'(z_2) in the middle: y = sum f(z_i), z_i > 0, s = sum z_i.

f is the logarithm of a factor that is zero on z < 0, with f' strictly monotone: outside the octant the label is one atom. On
the curve of (y, s) the coordinate t = z_2 with the middle slope moves between configurations with two equal ones,
2 f(t) + f(s - 2t) = y, and nothing is singular there; z_1, z_3 = m +- d, m = (s - t)/2, solve f(m + d) + f(m - d) = y - f(t).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.brackets import bracketed
from hermitex.exponents.laws.density import distinct, unguarded
from hermitex.exponents.laws.interval_sums import one, panels, total
from hermitex.symbolic.budget import checkpoint

_REACH = 9.0     # of a coordinate
_KNOTS = np.array([0.0, 0.05, 0.4, 1.5, 3.5, 6.0, 9.0, 13.0])  # of s, standard deviation sqrt(3): P < 1e-13
_WIDTH = 1.4
_ORDERS = 12, 16, 11  # of Gauss, in s, in y and in t
_DEPTH = 12
_ROWS = 1500
_NEGLIGIBLE = 1e-17


class Octant:
    """E[scalar^2] over (y, s), scalar = (E[sum z_i^2|y, s] - s^2/3)/2 - 1. Parameters: `f` an expression of `x`."""

    def __init__(self, f: Expr, x: Symbol) -> None:
        self.octant = total([one(0.0, np.inf)] * 3)
        self.f, self.slope = unguarded(f, x), unguarded(f.diff(x), x)

    def squares(self) -> tuple[float, float]:
        """E[scalar^2] and an error: what E[scalar] = 0 misses at each s, and the end of the series in s of each panel."""
        inverse, error = 0.0, 0.0
        x, w = np.polynomial.legendre.leggauss(_ORDERS[0])
        last = np.polynomial.legendre.legvander(x, len(x) - 1)[:, -2:] * w[:, None] * (len(x) - 1)
        for a, b in pairwise(_KNOTS):
            checkpoint("integrating along level curves")
            half = (b - a) / 2
            values, lost = np.array(self._given((a + b) / 2 + half * x)).T
            inverse += half * float(values @ w)
            end = float(np.abs(values @ last).max())
            # Gauss is exact for twice the degree of the series: its error falls off faster than the end of the series.
            error += half * (4 * float(np.abs(lost) @ w) + end * min(1.0, (end / float(np.abs(values).max() + 1e-300)) ** 0.5))
        # At negative sums there is the atom alone, which tells nothing.
        return inverse, error

    def _given(self, sums: np.ndarray) -> list[tuple[float, float]]:
        """int p scalar^2 dy at each s, and what is missed of the mass of the octant, which is known."""
        found = []
        for s, (_, p, q, v) in zip(sums, self.many(sums), strict=True):
            live = p > _NEGLIGIBLE
            scalar = (q[live] / p[live] - s * s / 3) / 2 - 1
            inside = float(np.sum(v[live] * p[live] * scalar**2))
            found.append(self._with_atom(float(s), inside, (float(np.sum(p * v)), float(np.sum(q * v)))))
        return found

    def _with_atom(self, s: float, inside: float, found: tuple[float, float]) -> tuple[float, float]:
        """The atom holds what is not in the octant."""
        (p,), (q,) = self.octant.pair(np.array([s]))
        density = np.exp(-s * s / 6) / np.sqrt(6 * np.pi)
        outside = density - p
        scalar = ((density * (2 + s * s / 3) - q) / outside - s * s / 3) / 2 - 1 if outside > _NEGLIGIBLE else 0.0
        return inside + outside * scalar**2, abs(found[0] - p) + abs(found[1] - q)

    def at(self, s: float) -> tuple[np.ndarray, ...]:
        """(y, p, q, weights) at one s."""
        return self.many(np.array([s]))[0]

    def many(self, sums: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """(y, p, q, weights) for each s, at the labels y = 2 f(tau) + f(s - 2 tau): on their own scale, and each once."""
        with np.errstate(all="ignore"):
            places = [self._labels(float(s)) for s in sums]
            y, v = (np.concatenate(parts) for parts in zip(*places, strict=True))
            row = np.repeat(np.arange(len(sums)), [len(place[0]) for place in places])
            p, q = self.densities(y, sums[row])
        good = np.isfinite(p) & np.isfinite(q) & np.isfinite(v)
        return [(y[k], p[k], q[k], v[k]) for k in ((row == n) & good for n in range(len(sums)))]

    def _labels(self, s: float) -> tuple[np.ndarray, np.ndarray]:
        knots = np.array([0.0, *(s / 3 * 5.0 ** -np.arange(9.0, 0.0, -1.0)), s / 3])
        tau, w = panels(knots, _ORDERS[1], _WIDTH)
        return self._equal_pair(tau, s), w * 2 * np.abs(self.slope(tau) - self.slope(s - 2 * tau))

    def _equal_pair(self, t: np.ndarray, s: np.ndarray | float) -> np.ndarray:
        return 2 * self.f(t) + self.f(s - 2 * t)

    def _roots(self, y: np.ndarray, s: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """2 f(t) + f(s - 2t) = y between two ends where it is monotone; nan where there is none."""
        inside = np.flatnonzero((y - self._equal_pair(low, s)) * (y - self._equal_pair(high, s)) < 0)
        here = s[inside]
        found = np.full(y.shape, np.nan)
        found[inside] = bracketed(lambda t, n: self._equal_pair(t, here[n]),
                                  lambda t, n: 2 * (self.slope(t) - self.slope(here[n] - 2 * t)), y[inside],
                                  (low[inside], high[inside]))
        return found

    def densities(self, y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p and q at the labels y of the sums s."""
        p, q = np.zeros(y.shape), np.zeros(y.shape)
        for n, (a, b) in enumerate(pairwise([0 * s, s / 3, s / 2])):
            root = self._roots(y, s, a, b)
            cut = np.where(np.isfinite(root), root, a)
            for low, high in ((a, cut), (cut, b)):
                good = high > low
                good[good] = self._allowed(y[good], s[good], (low[good] + high[good]) / 2)
                for part in np.array_split(np.flatnonzero(good), 1 + good.sum() // _ROWS):
                    if len(part):
                        first, second = self._cell(y[part], s[part], (low[part], high[part]), n == 0)
                        p[part] += first
                        q[part] += second
        return p, q

    def _allowed(self, y: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Has t the slope in the middle? Between the roots it is so everywhere or nowhere."""
        m = (s - t) / 2
        d, exists = self._solved(y - self.f(t), m)
        return exists & ((m + d - t) * (t - m + d) >= 0)

    def _cell(self, y: np.ndarray, s: np.ndarray, ends: tuple[np.ndarray, np.ndarray], deep: bool) -> tuple[np.ndarray, np.ndarray]:
        x, w = _template(deep)
        low, high = (e[:, None] for e in ends)
        t = np.where(x < 0.5, low + (high - low) * x, high - (high - low) * (1 - x))
        m, d = (s[:, None] - t) / 2, np.zeros(t.shape)
        near = t**2 + 2 * m**2 < _REACH**2  # at most the square of the distance from 0
        rest = y[:, None] - self.f(t)
        d[near], solved = self._solved(rest[near], m[near])
        near[near] = solved
        z1, z3 = m[near] + d[near], m[near] - d[near]
        square = z1**2 + z3**2 + t[near] ** 2
        density = 6 * np.exp(-square / 2) / (2 * np.pi) ** 1.5 / np.abs(self.slope(z1) - self.slope(z3))
        density = np.where(np.isfinite(density), density, 0.0) * np.broadcast_to((high - low) * w, t.shape)[near]
        both = np.zeros((2, *t.shape))
        both[:, near] = density, density * square
        return both.sum(axis=2)[0], both.sum(axis=2)[1]

    def _solved(self, rest: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(m + d) + f(m - d) = rest for 0 < d < m: (d, whether there is one)."""
        f, slope = self.f, self.slope
        low, high = np.zeros(m.shape), np.abs(m)
        at_a, at_b = (f(m + e) + f(m - e) - rest for e in (low, high))
        at_b = np.nan_to_num(at_b, nan=np.inf, posinf=1.0, neginf=-1.0)
        exists = np.isfinite(at_a) & (at_a * at_b <= 0)
        centre, d = m[exists], np.zeros(m.shape)
        d[exists] = bracketed(lambda e, n: f(centre[n] + e) + f(centre[n] - e),
                              lambda e, n: slope(centre[n] + e) - slope(centre[n] - e), rest[exists], (low[exists], high[exists]))
        return d, exists


@lru_cache(maxsize=2)
def _template(deep: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1), panels shrinking towards 0 where that is the edge of the octant."""
    edges = np.array([0.0, *(4.0 ** -np.arange(float(_DEPTH), 0.0, -1.0) if deep else ()), 0.3, 0.7, 1.0])
    return panels(distinct(edges), _ORDERS[2], 1.0)
