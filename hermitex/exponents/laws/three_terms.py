"""p(y, s) = 6 int phi(z_1) phi(z_2) phi(z_3)/|f'(z_1) - f'(z_3)| dz_2, f'(z_2) in the middle: y = sum f(z_i), s = sum z_i.

On the curve of (y, s) the coordinate t = z_2 with the middle slope moves between configurations with two equal ones,
2 f(t) + f(s - 2t) = y, and nothing is singular there; z_1, z_3 = m +- d, m = (s - t)/2, solve f(m + d) + f(m - d) = y - f(t).
That is monotone in d if f' is strictly monotone, or even and strictly monotone on x > 0 (tanh, erf, z^3): then y = f(s)
is a saddle, at the permutations of (s, s, -s), with a logarithm.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.density import array_function, distinct
from hermitex.exponents.laws.interval_sums import one, panels, total
from hermitex.symbolic.budget import checkpoint

_REACH = 9.0     # of a coordinate
_SUM = 13.4      # of s, standard deviation sqrt(3): P < 1e-14
_WIDTH = 1.4
_ORDERS = 12, 14, 11  # of Gauss, in s, in y and in t
_BISECTIONS = 50
_NEWTON = 80
_FAR = 12.0
_NEGLIGIBLE = 1e-17


class ThreeTerms:
    """E[scalar^2] over (y, s), scalar = (E[sum z_i^2|y, s] - s^2/3)/2 - 1.

    Parameters: `f` an expression of `x`; `even_slope`: whether f' is even (and monotone on x > 0) or monotone; `positive`:
    f is minus infinity on x <= 0, the logarithm of a factor that is zero there: outside the octant the label is one atom.
    """

    def __init__(self, f: Expr, x: Symbol, *, even_slope: bool, positive: bool = False) -> None:
        self.positive = positive
        self.octant = total([one(0.0, np.inf)] * 3) if positive else None
        self.f, self.slope = array_function(f, x), array_function(f.diff(x), x)
        self.even_slope = even_slope
        self.flat = not even_slope and f.diff(x, 2).subs(x, 0) == 0  # next to s = 0 the labels vary on the scale of s

    def squares(self) -> tuple[float, float]:
        """E[scalar^2] and an error: what E[scalar] = 0 misses at each s, and the end of the series in s of each panel."""
        inverse, error = 0.0, 0.0
        edges = self._sums()
        x, w = np.polynomial.legendre.leggauss(_ORDERS[0])
        last = np.polynomial.legendre.legvander(x, len(x) - 1)[:, -2:] * w[:, None] * (len(x) - 1)
        for a, b in pairwise(edges):
            checkpoint("integrating along level curves")
            half = (b - a) / 2 * (2 if self.even_slope else 1)  # an odd f: the same at -s
            values, lost = np.array([self._given(float(s)) for s in (a + b) / 2 + (b - a) / 2 * x]).T
            inverse += half * float(values @ w)
            end = float(np.abs(values @ last).max())
            # Gauss is exact for twice the degree of the series: its error falls off faster than the end of the series.
            error += half * (float(np.abs(lost) @ w) + end * min(1.0, (end / float(np.abs(values).max() + 1e-300)) ** 0.5))
        return inverse, error

    def _given(self, s: float) -> tuple[float, float]:
        """int p scalar^2 dy and int p scalar dy at one s; the second is zero."""
        _, p, q, v = self.at(s)
        live = p > _NEGLIGIBLE
        scalar = (q[live] / p[live] - s * s / 3) / 2 - 1
        mass = v[live] * p[live]
        if self.octant is not None:
            return self._with_atom(s, float(np.sum(mass * scalar**2)), (float(np.sum(p * v)), float(np.sum(q * v))))
        return float(np.sum(mass * scalar**2)), float(np.sum(mass * scalar))

    def _with_atom(self, s: float, inside: float, found: tuple[float, float]) -> tuple[float, float]:
        """The atom holds what is not in the octant; the mass of the octant is known, and tells what was lost."""
        if self.octant is None:
            return inside, 0.0
        (p,), (q,) = self.octant.pair(np.array([s]))
        density = np.exp(-s * s / 6) / np.sqrt(6 * np.pi)
        outside = density - p
        scalar = ((density * (2 + s * s / 3) - q) / outside - s * s / 3) / 2 - 1 if outside > _NEGLIGIBLE else 0.0
        return inside + outside * scalar**2, abs(found[0] - p) + abs(found[1] - q)

    def _sums(self) -> np.ndarray:
        """Knots in s: for a bounded odd f also the s at which the label of (s/3, s/3, s/3) is that of (oo, oo, -oo)."""
        if self.positive:
            return np.array([0.0, 0.05, 0.4, 1.5, 3.5, 6.0, 9.0, _SUM])
        if not self.even_slope:
            flat = [t * e for t in (-1, 1) for e in (0.03, 0.2, 0.7)] if self.flat else []
            return distinct(np.array([*np.linspace(-_SUM, _SUM, 11), *flat]))
        knots = [0.0, 0.06, 0.4, 0.9, 1.6, 3.5, 6.5, _SUM]
        top, further = self.f(np.array([40.0, 80.0]))
        if abs(further - top) < 1e-12 * abs(top):
            low, high = 0.0, 40.0
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                low, high = (middle, high) if abs(3 * self.f(np.array([middle / 3]))[0]) < abs(top) else (low, middle)
            knots += [low, *(low + 5.0 ** -np.arange(4)), *(low - low * 5.0 ** -np.arange(1.0, 5.0))]
        return distinct(np.array([k for k in knots if k <= _SUM]))

    def at(self, s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(y, p, q, weights) at the labels y = 2 f(tau) + f(s - 2 tau): on their own scale, and each once."""
        centre = s / 3
        branches = [(0.0 if self.positive else centre - _FAR, centre)]
        if self.even_slope:
            # Labels beyond that of the centre, which is a local extremum only, are met for tau > s.
            beyond = self._roots(self._equal_pair(np.array([centre]), s), s, (s, s + _FAR))[0]
            branches += [(float(beyond), s + _FAR)] if np.isfinite(beyond) else []
        found = [self._along(b, s) for b in branches]
        y, p, q, v = (np.concatenate(parts) for parts in zip(*found, strict=True))
        good = np.isfinite(p) & np.isfinite(q) & np.isfinite(v)
        return y[good], p[good], q[good], v[good]

    def _along(self, branch: tuple[float, float], s: float) -> tuple[np.ndarray, ...]:
        knots = [branch[0], *(e for e in branch[0] + _FAR * 5.0 ** -np.arange(8.0, 0.0, -1.0) if e - branch[0] > s / 4), branch[1]]
        if branch[1] == s / 3:
            near = branch[1] - _FAR * 5.0 ** -np.arange(1.0, 8.0 if self.flat else 1.0)
            near = branch[1] * 5.0 ** -np.arange(9.0, 0.0, -1.0) if self.positive else near
            knots = [branch[0], *(e for e in near if self.positive or branch[1] - e > abs(s) / 4), branch[1]]
        level = float(self.f(np.array([s]))[0])
        if self.even_slope:
            saddle = self._roots(np.array([level]), s, branch)[0]
            knots = [branch[0], *_towards(float(saddle), *branch), branch[1]] if np.isfinite(saddle) else knots
        tau, w = panels(np.array(knots), _ORDERS[1], _WIDTH)
        y = self._equal_pair(tau, s)
        v = w * 2 * np.abs(self.slope(tau) - self.slope(s - 2 * tau))
        if not self.even_slope:
            return y, *self.densities(y, s, (_ORDERS[2], 12 if self.positive else 0)), v
        # The nearer to the saddle, the deeper are the panels next to it.
        near = np.abs(y - level) / np.maximum(np.abs(level), np.abs(self.slope(np.array([s]))[0]))
        depth = np.clip(np.ceil(np.log(1 / np.maximum(near, 1e-12)) / np.log(64)) + 1, 1, 7).astype(int)
        p, q = np.zeros(y.shape), np.zeros(y.shape)
        for d in np.unique(depth):
            p[depth == d], q[depth == d] = self.densities(y[depth == d], s, (_ORDERS[2], 3 * int(d)))
        return y, p, q, v

    def _equal_pair(self, t: np.ndarray, s: float) -> np.ndarray:
        return 2 * self.f(t) + self.f(s - 2 * t)

    def _roots(self, y: np.ndarray, s: float, ends: tuple[float, float]) -> np.ndarray:
        """2 f(t) + f(s - 2t) = y between two ends where it is monotone; nan where there is none."""
        a, b = np.full(y.shape, ends[0]), np.full(y.shape, ends[1])
        at_a, at_b = (self._equal_pair(np.array([e]), s)[0] for e in ends)
        inside = (y - at_a) * (y - at_b) < 0
        for _ in range(_BISECTIONS):
            m = (a + b) / 2
            before = (self._equal_pair(m, s) < y) == (at_a < at_b)
            a, b = np.where(before, m, a), np.where(before, b, m)
        return np.where(inside, (a + b) / 2, np.nan)

    def densities(self, y: np.ndarray, s: float, how: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        inner = sorted({-s, s / 3, s} if self.even_slope else {s / 3})
        ends = [0.0, s / 3, s / 2] if self.positive else [-_REACH, *(e for e in inner if abs(e) < _REACH), _REACH]
        p, q = np.zeros(y.shape), np.zeros(y.shape)
        for a, b in pairwise(ends):
            root = self._roots(y, s, (a, b))
            cut = np.where(np.isfinite(root), root, a)
            saddles = (self.positive and a == 0) or (self.even_slope and abs(a) == abs(s)), self.even_slope and abs(b) == abs(s)
            for low, high in ((np.full(y.shape, a), cut), (cut, np.full(y.shape, b))):
                good = (high > low) & self._allowed(y, s, (low + high) / 2)
                if good.any():
                    first, second = self._cell(y[good], s, (low[good], high[good]), (*how, *saddles))
                    p[good] += first
                    q[good] += second
        return p, q

    def _allowed(self, y: np.ndarray, s: float, t: np.ndarray) -> np.ndarray:
        """Has t the slope in the middle? Between the roots it is so everywhere or nowhere."""
        m = (s - t) / 2
        d, exists = self._solved(y - self.f(t), m)
        z1, z3 = m + d, m - d
        order = (np.abs(z1), np.abs(t), np.abs(z3)) if self.even_slope else (z1, t, z3)
        return exists & ((order[0] - order[1]) * (order[1] - order[2]) >= 0)

    def _cell(self, y: np.ndarray, s: float, ends: tuple[np.ndarray, np.ndarray],
              how: tuple[int, int, bool, bool]) -> tuple[np.ndarray, np.ndarray]:
        x, w = _template(*how)
        low, high = (e[:, None] for e in ends)
        t = np.where(x < 0.5, low + (high - low) * x, high - (high - low) * (1 - x))
        weight = (high - low) * w
        label = np.broadcast_to(y[:, None], t.shape)
        m, d = (s - t) / 2, np.zeros(t.shape)
        near = np.abs(m) < 1.5 * _REACH
        d[near], solved = self._solved(label[near] - self.f(t[near]), m[near])
        near[near] = solved
        z1, z3 = m[near] + d[near], m[near] - d[near]
        square = z1**2 + z3**2 + t[near] ** 2
        with np.errstate(all="ignore"):
            density = 6 * np.exp(-square / 2) / (2 * np.pi) ** 1.5 / np.abs(self.slope(z1) - self.slope(z3))
        density = np.where(np.isfinite(density), density, 0.0) * weight[near]
        both = np.zeros((2, *t.shape))
        both[:, near] = density, density * square
        return both.sum(axis=2)[0], both.sum(axis=2)[1]

    def _solved(self, rest: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(m + d) + f(m - d) = rest for d > 0 inside the window: (d, whether there is one)."""
        a, b = np.zeros(m.shape), np.abs(m) if self.positive else _REACH + np.abs(m)
        with np.errstate(all="ignore"):
            at_a, at_b = (self.f(m + e) + self.f(m - e) - rest for e in (a, b))
            share = np.clip(np.nan_to_num(at_a / (at_a - at_b), nan=0.5), 0.01, 0.99)
        rising = at_b > at_a
        exists = np.isfinite(at_a) & (np.sign(at_a) * np.sign(np.nan_to_num(at_b, nan=np.inf, posinf=1.0, neginf=-1.0)) <= 0)
        d = a + (b - a) * share
        live = np.flatnonzero(exists)
        for _ in range(_NEWTON):
            if not len(live):
                break
            up, down = m[live] + d[live], m[live] - d[live]
            with np.errstate(all="ignore"):
                value = self.f(up) + self.f(down) - rest[live]
                new = d[live] - value / (self.slope(up) - self.slope(down))
            below = (value < 0) == rising[live]
            a[live], b[live] = np.where(below, d[live], a[live]), np.where(below, b[live], d[live])
            done = (np.abs(new - d[live]) <= 1e-15 * np.abs(d[live])) | (value == 0) | (b[live] - a[live] < 1e-15)
            new = np.where((new > a[live]) & (new < b[live]), new, (a[live] + b[live]) / 2)
            d[live] = np.where(done, d[live], new)
            live = live[~done]
        return d, exists


def _towards(saddle: float, low: float, high: float) -> list[float]:
    """Points that come nearer to the saddle by factors of 6, on both sides."""
    steps = 6.0 ** -np.arange(1.0, 12.0)
    points = [saddle, *(saddle + steps * (high - saddle)), *(saddle - steps * min(saddle - low, 4.0))]
    return sorted(p for p in points if low < p < high)


@lru_cache(maxsize=64)
def _template(order: int, depth: int, from_saddle: bool, to_saddle: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1), panels shrinking towards an end that is a saddle."""
    deep = np.concatenate([[0.0], 4.0 ** -np.arange(float(depth), 0.0, -1.0)]) if depth else np.array([])
    edges = np.unique(np.concatenate([[0.0, 0.3, 0.7, 1.0], deep if from_saddle else [], 1 - deep if to_saddle else []]))
    return panels(edges, order, 1.0)
