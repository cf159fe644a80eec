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
from hermitex.symbolic.bounds.asymptotics import expand_at_infinity
from hermitex.symbolic.bounds.transseries import Undecided, limit_of
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.precise import evaluate

_REACH = 9.0     # of a coordinate
_SUM = 13.0      # of s, standard deviation sqrt(3): P < 1e-13
_WIDTH = 1.4
_ORDERS = 12, 16, 11  # of Gauss, in s, in y and in t
_BISECTIONS = 50
_NEWTON = 80
_FAR = 12.0
_ROWS = 1500
_BY_HALVES = 4
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

        self.mirror = even_slope or (not positive and f.xreplace({x: -x}) == f)
        self.top = _limit(f, x) if even_slope else None

    def squares(self) -> tuple[float, float]:
        """E[scalar^2] and an error: what E[scalar] = 0 misses at each s, and the end of the series in s of each panel."""
        inverse, error = 0.0, 0.0
        edges = self._sums()
        x, w = np.polynomial.legendre.leggauss(_ORDERS[0])
        last = np.polynomial.legendre.legvander(x, len(x) - 1)[:, -2:] * w[:, None] * (len(x) - 1)
        for a, b in pairwise(edges):
            checkpoint("integrating along level curves")
            half = (b - a) / 2 * (2 if self.mirror else 1)  # an odd or even f: the same at -s
            values, lost = np.array(self._given((a + b) / 2 + (b - a) / 2 * x)).T
            inverse += half * float(values @ w)
            end = float(np.abs(values @ last).max())
            # Gauss is exact for twice the degree of the series: its error falls off faster than the end of the series.
            error += half * (4 * float(np.abs(lost) @ w) + end * min(1.0, (end / float(np.abs(values).max() + 1e-300)) ** 0.5))
        return inverse, error

    def _given(self, sums: np.ndarray) -> list[tuple[float, float]]:
        """int p scalar^2 dy and int p scalar dy at each s; the second is zero."""
        found = []
        for s, (_, p, q, v) in zip(sums, self.many(sums), strict=True):
            live = p > _NEGLIGIBLE
            scalar = (q[live] / p[live] - s * s / 3) / 2 - 1
            mass = v[live] * p[live]
            inside = float(np.sum(mass * scalar**2))
            found.append((inside, float(np.sum(mass * scalar))) if self.octant is None else
                         self._with_atom(float(s), inside, (float(np.sum(p * v)), float(np.sum(q * v)))))
        return found

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
            return distinct(np.array([k for k in (*np.linspace(-_SUM, _SUM, 13), *flat) if k <= 0 or not self.mirror]))
        knots = [0.0, 0.06, 0.4, 0.9, 1.6, 2.4, 3.5, 5.5, 7.5, 10.0, _SUM]
        if self.top:
            low, high = 0.0, 1e3
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                low, high = (middle, high) if 3 * abs(self.f(np.array([middle / 3]))[0]) < self.top else (low, middle)
            around = [low * 0.8, low * 0.96, low, *(low + 5.0 ** -np.arange(3))]
            knots = sorted([*(k for k in knots if k < low * 0.6 or k > low + 1.2), *around])
        return distinct(np.array([k for k in knots if k <= _SUM]))

    def at(self, s: float) -> tuple[np.ndarray, ...]:
        """(y, p, q, weights) at one s."""
        return self.many(np.array([s]))[0]

    def many(self, sums: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """(y, p, q, weights) for each s, at the labels y = 2 f(tau) + f(s - 2 tau): on their own scale, and each once."""
        places = [self._labels(float(s)) for s in sums]
        y, v, depth = (np.concatenate(parts) for parts in zip(*places, strict=True))
        row = np.repeat(np.arange(len(sums)), [len(place[0]) for place in places])
        p, q = np.zeros(y.shape), np.zeros(y.shape)
        for d in np.unique(depth):
            mine = depth == d
            # The nearer to the saddle, the less a label counts.
            how = (max(_ORDERS[2] - int(d) // 3, 9), 3 * int(d)) if self.even_slope else (_ORDERS[2], 12 if self.positive else 0)
            p[mine], q[mine] = self.densities(y[mine], sums[row[mine]], how)
        good = np.isfinite(p) & np.isfinite(q) & np.isfinite(v)
        return [(y[k], p[k], q[k], v[k]) for k in ((row == n) & good for n in range(len(sums)))]

    def _labels(self, s: float) -> tuple[np.ndarray, ...]:
        """(y, weights, depth of the panels next to the saddle)."""
        centre = s / 3
        branches = [(0.0 if self.positive else centre - _FAR, centre)]
        if self.even_slope:
            # Labels beyond that of the centre, which is a local extremum only, are met for tau > s.
            beyond = self._root(float(self._equal_pair(np.array([centre]), s)[0]), s, (s, s + _FAR))
            branches += [(beyond, s + _FAR)] if np.isfinite(beyond) else []
        y, v, depth = (np.concatenate(parts) for parts in zip(*(self._along(b, s) for b in branches), strict=True))
        return y, v, depth

    def _along(self, branch: tuple[float, float], s: float) -> tuple[np.ndarray, ...]:
        knots = [branch[0], *(e for e in branch[0] + _FAR * 5.0 ** -np.arange(8.0, 0.0, -1.0) if e - branch[0] > s / 4), branch[1]]
        if branch[1] == s / 3:
            near = branch[1] - _FAR * 5.0 ** -np.arange(1.0, 8.0 if self.flat else 1.0)
            near = branch[1] * 5.0 ** -np.arange(9.0, 0.0, -1.0) if self.positive else near
            knots = [branch[0], *(e for e in near if self.positive or branch[1] - e > abs(s) / 4), branch[1]]
        level = float(self.f(np.array([s]))[0])
        if self.even_slope:
            saddle = self._root(level, s, branch)
            knots = [branch[0], *_towards(float(saddle), *branch), branch[1]] if np.isfinite(saddle) else knots
            # At the label of (oo, oo, -oo) the level curves of a bounded f stop reaching out to infinity.
            far = self._root(self.top * float(np.sign(s)), s, branch) if self.top else np.nan
            if np.isfinite(far):
                reach = min(far - branch[0], branch[1] - far, 1.0)
                steps = np.array([0.0, *(reach * 4.0 ** -np.arange(6.0))])
                knots = sorted({*knots, *(far + steps).tolist(), *(far - steps).tolist()})
                knots = [k for k in knots if branch[0] <= k <= branch[1]]
        tau, w = panels(np.array(knots), _ORDERS[1], _WIDTH) if self.positive else _sized(np.array(knots))
        y = self._equal_pair(tau, s)
        v = w * 2 * np.abs(self.slope(tau) - self.slope(s - 2 * tau))
        if not self.even_slope:
            return y, v, np.zeros(y.shape, dtype=int)
        near = np.abs(y - level) / np.maximum(np.abs(level), np.abs(self.slope(np.array([s]))[0]))
        return y, v, np.clip(np.ceil(np.log(1 / np.maximum(near, 1e-12)) / np.log(64)) + 1, 1, 7).astype(int)

    def _equal_pair(self, t: np.ndarray, s: np.ndarray | float) -> np.ndarray:
        return 2 * self.f(t) + self.f(s - 2 * t)

    def _root(self, y: float, s: float, ends: tuple[float, float]) -> float:
        return float(self._roots(*(np.array([v]) for v in (y, s, *ends)))[0])

    def _roots(self, y: np.ndarray, s: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """2 f(t) + f(s - 2t) = y between two ends where it is monotone; nan where there is none."""
        with np.errstate(all="ignore"):
            at_a, at_b = self._equal_pair(low, s), self._equal_pair(high, s)
            inside = np.flatnonzero((y - at_a) * (y - at_b) < 0)
            a, b, label, total = low[inside], high[inside], y[inside], s[inside]
            rising = (at_a < at_b)[inside]
            t = (a + b) / 2
            for n in range(_NEWTON):
                value = self._equal_pair(t, total) - label
                below = (value < 0) == rising
                a, b = np.where(below, t, a), np.where(below, b, t)
                new = t - value / (2 * (self.slope(t) - self.slope(total - 2 * t)))
                new = np.where((new > a) & (new < b) & (n > _BY_HALVES), new, (a + b) / 2)
                moved = np.abs(new - t)
                t = np.where(value == 0, t, new)
                if not (moved > 4e-16 * np.abs(t)).any():
                    break
        found = np.full(y.shape, np.nan)
        found[inside] = t
        return found

    def densities(self, y: np.ndarray, s: np.ndarray, how: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """p and q at the labels y of the sums s."""
        edge = np.full(y.shape, _REACH)
        ends = [0 * s, s / 3, s / 2] if self.positive else [-edge, s / 3, edge]
        if self.even_slope:
            ends = [np.clip(e, -_REACH, _REACH) for e in (-edge, -s, s / 3, s, edge)]
        last = len(ends) - 2
        p, q = np.zeros(y.shape), np.zeros(y.shape)
        for n, (a, b) in enumerate(pairwise(ends)):
            root = self._roots(y, s, a, b)
            cut = np.where(np.isfinite(root), root, a)
            # An end at -s or s, or that of the octant, is a saddle.
            saddles = (self.positive and n == 0) or (self.even_slope and n in (1, 3)), self.even_slope and n in (0, last - 1)
            for low, high in ((a, cut), (cut, b)):
                good = high > low
                good[good] = self._allowed(y[good], s[good], (low[good] + high[good]) / 2)
                for part in np.array_split(np.flatnonzero(good), 1 + good.sum() // _ROWS):
                    if len(part):
                        first, second = self._cell(y[part], s[part], (low[part], high[part]), (*how, *saddles))
                        p[part] += first
                        q[part] += second
        return p, q

    def _allowed(self, y: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Has t the slope in the middle? Between the roots it is so everywhere or nowhere."""
        m = (s - t) / 2
        d, exists = self._solved(y - self.f(t), m)
        z1, z3 = m + d, m - d
        order = (np.abs(z1), np.abs(t), np.abs(z3)) if self.even_slope else (z1, t, z3)
        return exists & ((order[0] - order[1]) * (order[1] - order[2]) >= 0)

    def _cell(self, y: np.ndarray, s: np.ndarray, ends: tuple[np.ndarray, np.ndarray],
              how: tuple[int, int, bool, bool]) -> tuple[np.ndarray, np.ndarray]:
        x, w = _template(*how)
        low, high = (e[:, None] for e in ends)
        t = np.where(x < 0.5, low + (high - low) * x, high - (high - low) * (1 - x))
        weight = (high - low) * w
        label = np.broadcast_to(y[:, None], t.shape)
        m, d = (s[:, None] - t) / 2, np.zeros(t.shape)
        near = t**2 + 2 * m**2 < _REACH**2  # at most the square of the distance from 0
        rest = label - self.f(t)
        guess = self._guess(rest, m, near, x)
        d[near], solved = self._solved(rest[near], m[near], guess[near])
        near[near] = solved
        z1, z3 = m[near] + d[near], m[near] - d[near]
        square = z1**2 + z3**2 + t[near] ** 2
        with np.errstate(all="ignore"):
            density = 6 * np.exp(-square / 2) / (2 * np.pi) ** 1.5 / np.abs(self.slope(z1) - self.slope(z3))
        density = np.where(np.isfinite(density), density, 0.0) * weight[near]
        both = np.zeros((2, *t.shape))
        both[:, near] = density, density * square
        return both.sum(axis=2)[0], both.sum(axis=2)[1]

    def _guess(self, rest: np.ndarray, m: np.ndarray, near: np.ndarray, x: np.ndarray) -> np.ndarray:
        """d at every third node, and straight lines between them; nan where a neighbour has none."""
        coarse = np.append(np.arange(0, len(x) - 1, 3), len(x) - 1)
        here = near[:, coarse]
        d = np.full(here.shape, np.nan)
        found, solved = self._solved(rest[:, coarse][here], m[:, coarse][here])
        d[here] = np.where(solved, found, np.nan)
        right = np.clip(np.searchsorted(x[coarse], x, side="right"), 1, len(coarse) - 1)
        share = (x - x[coarse[right - 1]]) / (x[coarse[right]] - x[coarse[right - 1]])
        return d[:, right - 1] * (1 - share) + d[:, right] * share

    def _solved(self, rest: np.ndarray, m: np.ndarray, guess: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """f(m + d) + f(m - d) = rest for d > 0 inside the window: (d, whether there is one)."""
        with np.errstate(all="ignore"):
            return self._newton(rest, m, guess)

    def _newton(self, rest: np.ndarray, m: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        f, slope = self.f, self.slope
        a, b = np.zeros(m.shape), np.abs(m) if self.positive else _REACH + np.abs(m)
        at_a, at_b = (f(m + e) + f(m - e) - rest for e in (a, b))
        share = np.clip(np.nan_to_num(at_a / (at_a - at_b), nan=0.5), 0.01, 0.99)
        rising = at_b > at_a
        exists = np.isfinite(at_a) & (np.sign(at_a) * np.sign(np.nan_to_num(at_b, nan=np.inf, posinf=1.0, neginf=-1.0)) <= 0)
        d = a + (b - a) * share
        if guess is not None:
            d = np.where((guess > a) & (guess < b), guess, d)
        live = np.flatnonzero(exists)
        x, low, high, centre, label, up_there = d[live], a[live], b[live], m[live], rest[live], rising[live]
        before = np.full(x.shape, np.inf)
        for _ in range(_NEWTON):
            if not len(live):
                break
            up, down = centre + x, centre - x
            value = f(up) + f(down) - label
            new = x - value / (slope(up) - slope(down))
            below = (value < 0) == up_there
            low, high = np.where(below, x, low), np.where(below, high, x)
            moved = np.abs(new - x)
            # A small step that no longer shrinks is rounding.
            done = (moved <= 1e-15 * x) | (value == 0) | (high - low < 1e-15) | ((moved < 1e-11 * x) & (moved >= before))
            new = np.where((new > low) & (new < high), new, (low + high) / 2)
            if done.any():
                d[live[done]] = x[done]
                left = ~done
                live, x, low, high, centre, label, up_there, new, moved = (
                    v[left] for v in (live, x, low, high, centre, label, up_there, new, moved))
            x, before = new, moved
        d[live] = x
        return d, exists


def _limit(f: Expr, x: Symbol) -> float | None:
    """|f(oo)|, None where it is infinite or not found."""
    try:
        end, _ = limit_of(expand_at_infinity(f, x))
    except Undecided:
        return None
    return abs(float(evaluate(end, 20))) if end.is_finite else None


def _sized(knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Panels between the knots; what is narrow counts for little and has few nodes."""
    edges = np.concatenate([*(np.linspace(a, b, int(np.ceil((b - a) / _WIDTH)) + 1)[:-1] for a, b in pairwise(knots)), knots[-1:]])
    nodes, weights = [], []
    for a, b in pairwise(edges):
        order = int(np.clip(np.ceil(_ORDERS[1] * (1 + np.log10(b - a) / 20)), 4, _ORDERS[1])) if b > a else 4
        x, w = np.polynomial.legendre.leggauss(order)
        nodes.append((a + b) / 2 + (b - a) / 2 * x)
        weights.append((b - a) / 2 * w)
    return np.concatenate(nodes), np.concatenate(weights)


def _towards(saddle: float, low: float, high: float) -> list[float]:
    """Points that come nearer to the saddle by factors of 6, on both sides."""
    steps = 6.0 ** -np.arange(1.0, 15.0)  # the last panel holds a logarithm, and Gauss sees little of it
    points = [saddle, *(saddle + steps * (high - saddle)), *(saddle - steps * min(saddle - low, 4.0))]
    return sorted(p for p in points if low < p < high)


@lru_cache(maxsize=64)
def _template(order: int, depth: int, from_saddle: bool, to_saddle: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1), panels shrinking towards an end that is a saddle."""
    deep = np.concatenate([[0.0], 4.0 ** -np.arange(float(depth), 0.0, -1.0)]) if depth else np.array([])
    edges = np.unique(np.concatenate([[0.0, 0.3, 0.7, 1.0], deep if from_saddle else [], 1 - deep if to_saddle else []]))
    return panels(edges, order, 1.0)
