"""nu_a(y, u) = 6 int phi(z) h_a(z)/(c_j c_k |g_j - g_k|) dz_i over the arcs of sum f = y with g_i between g_j and g_k.

g_i = f_i'(z_i)/c_i on the plane sum c_i z_i = u. The middle slope as coordinate: the integrand is singular only where all
three agree, at a critical label; next to one the nodes crowd at the scale of its distance. In an arc nothing is traced:
two of the partners z_j(g_i), z_k(g_i) bracket the point of the level curve, between which f_j + f_k is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hermitex.exponents.laws.brackets import bracketed
from hermitex.exponents.laws.slopes import REACH, Term

_CLOSEST = 1e-9
_ORDERS = np.array([10, 14, 18, 24, 30, 38, 48])
_STEPS = 5
_DONE = 1e-12
_CLOSE, _EXACT = 1e-3, 1e-6  # parts of the distance from a bracket: the error is the square
_PROBES = 4
_BEYOND = 1.5  # where arcs end for want of room, in parts of the reach
Weights = Callable[[np.ndarray, np.ndarray], np.ndarray]  # ((z_1, z_2, z_3), u) -> h_a, shape (k, ...)


class Cells(NamedTuple):
    """Intervals a < z_i < b of rows of labels; at_a, at_b: how far beyond them the nearest singularity is."""

    row: np.ndarray
    a: np.ndarray
    b: np.ndarray
    at_a: np.ndarray
    at_b: np.ndarray

    def part(self, which: np.ndarray) -> Cells:
        return Cells(*(v[which] for v in self))


class Arcs:
    """Arcs with z_i in the middle of the planes sum c_i z_i = u: z_j, z_k = (c_j, c_k) m/C +- (c_k, -c_j) e.

    For equal terms: z_i is the last, e > 0, and every point stands for six. Parameter `more`: nodes to a cell.
    """

    def __init__(self, term: Term, more: int = 0) -> None:
        self.i = self.j = self.k = term
        self.size, self.more = 2 * term.c**2, more

    def window(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The z_i of points no further than the reach."""
        room = np.sqrt(np.maximum(REACH**2 - u**2, 0.0) * (1 - self.i.c**2))
        return self.i.c * u - room, self.i.c * u + room

    def points(self, m: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z_j and z_k, m = (u - c_i z_i)/C."""
        return self.j.c * m + self.k.c * e, self.k.c * m - self.j.c * e

    # -- points of a level curve ---------------------------------------------------------------------------------------
    def solutions(self, y: np.ndarray, u: np.ndarray, t: np.ndarray, close: float = _EXACT) -> np.ndarray:
        """e with sum f = y and g_i in the middle, shape (n, most), each row sorted, nan where there are fewer."""
        level = self.i.g(t)
        m = (u - self.i.c * t) / self.size
        most = np.sqrt(np.maximum((_BEYOND * REACH) ** 2 - t**2 - m**2 * self.size, 0.0) / self.size)
        ends = [np.zeros_like(t), most]
        for branch, partner in zip(self.j.branches, self.j.partners(level, t), strict=True):
            z = np.where((t >= branch[0]) & (t <= branch[1]), t, partner)
            ends.append(np.abs(z / self.j.c - m))
        cuts = np.sort(np.clip(np.nan_to_num(np.array(ends).T, nan=0.0), ends[0][:, None], most[:, None]), axis=1)
        low, high = cuts[:, :-1], cuts[:, 1:]
        row, column = np.nonzero(high - low > 1e-15)
        a, b = low[row, column], high[row, column]
        one, two = self.points(m[row], (a + b) / 2)
        good = (self.j.g(one) - level[row]) * (self.k.g(two) - level[row]) < 0
        row, column, a, b = row[good], column[good], a[good], b[good]
        rest, at = y[row] - self.i.f(t[row]), m[row]
        at_a, at_b = self._sum(at, a) - rest, self._sum(at, b) - rest
        crossed = at_a * at_b < 0
        row, column, a, b, rest, at, at_a, at_b = (v[crossed] for v in (row, column, a, b, rest, at, at_a, at_b))
        found = np.full(low.shape, np.nan)
        start = a + (b - a) * np.clip(np.nan_to_num(at_a / (at_a - at_b), nan=0.5), 0.01, 0.99)
        found[row, column] = bracketed(lambda e, n: self._sum(at[n], e), lambda e, n: self._slope(at[n], e), rest, (a, b),
                                       start, close)
        found = np.sort(found, axis=1)
        return found[:, :max(1, int((~np.isnan(found)).sum(axis=1).max(initial=0)))]

    def _sum(self, m: np.ndarray, e: np.ndarray) -> np.ndarray:
        one, two = self.points(m, e)
        return self.j.f(one) + self.k.f(two)

    def _slope(self, m: np.ndarray, e: np.ndarray) -> np.ndarray:
        one, two = self.points(m, e)
        return self.k.c * self.j.slope(one) - self.j.c * self.k.slope(two)

    # -- integrals over cells ------------------------------------------------------------------------------------------
    def integrated(self, y: np.ndarray, u: np.ndarray, cells: Cells, weights: Weights) -> np.ndarray:
        """int over the cells, shape (k, labels)."""
        total = np.zeros((len(weights(np.zeros((3, 1)), u[:1])), len(y)))
        length = np.log((cells.b - cells.a + cells.at_a) * (cells.b - cells.a + cells.at_b) / (cells.at_a * cells.at_b))
        wanted = 12 + 1.25 * length + 2.0 * (cells.b - cells.a) + self.more
        order = _ORDERS[np.minimum(np.searchsorted(_ORDERS, wanted), len(_ORDERS) - 1)]
        probes = np.empty((len(cells.row), _PROBES))
        groups = []
        for n in np.unique(order):
            mine = np.flatnonzero(order == n)
            t, rate = _nodes(cells.part(mine), int(n))
            probes[mine] = t[:, _probes(int(n))]
            groups.append((int(n), mine, t, rate))
        label, total_u = y[cells.row], u[cells.row]
        e = self.solutions(np.repeat(label, _PROBES), np.repeat(total_u, _PROBES), probes.ravel(), _CLOSE)
        e = e.reshape(len(cells.row), _PROBES, -1)
        left = []
        for n, mine, t, rate in groups:
            found, failed = self._over((label[mine], total_u[mine][:, None], t, rate), e[mine], n, weights)
            total += np.array([np.bincount(cells.row[mine], v, minlength=len(y)) for v in found])
            left.append((np.repeat(mine[failed], n), t[failed].ravel(), (rate[failed] * _rule(n)[1]).ravel()))
        cell, t, w = (np.concatenate(parts) for parts in zip(*left, strict=True))
        if len(cell):
            one = self.solutions(label[cell], total_u[cell], t)
            for n in range(one.shape[1]):
                found = self._density(total_u[cell], t, one[:, n], w, weights)
                total += np.array([np.bincount(cells.row[cell], v, minlength=len(y)) for v in found])
        return total

    def _over(self, nodes: tuple[np.ndarray, ...], e: np.ndarray, order: int, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
        """The integral over each cell, and where it failed; `e`: the points of its arcs at some of its nodes."""
        label, u, t, rate = nodes
        _, w, guess = _rule(order)
        count = (~np.isnan(e)).sum(axis=2)
        even = (count == count[:, :1]).all(axis=1)
        failed = ~even
        parts = []
        for n in range(e.shape[2]):
            mine = np.flatnonzero(even & (count[:, 0] > n))
            if not len(mine):
                break
            at, probes = e[mine, :, n], _probes(order)
            slope = self._turn(u[mine], t[mine][:, probes], at) * rate[mine][:, probes]
            start = np.concatenate([at, slope], axis=1) @ guess.T
            found, good = self._polished(label[mine], u[mine], t[mine], start)
            failed[mine[~good]] = True
            parts.append((mine, self._density(u[mine], t[mine], found, rate[mine] * w, weights).sum(axis=2)))
        total = np.zeros((len(weights(np.zeros((3, 1)), np.zeros(1))), len(label)))
        for mine, part in parts:
            total[:, mine] += part
        return np.where(failed, 0.0, total), failed

    def _turn(self, u: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
        """de/dz_i along the level curve."""
        one, two = self.points((u - self.i.c * t) / self.size, e)
        f1, f2 = self.j.slope(one), self.k.slope(two)
        along = self.i.slope(t) - self.i.c * (self.j.c * f1 + self.k.c * f2) / self.size
        return np.nan_to_num(-along / (self.k.c * f1 - self.j.c * f2), posinf=0.0, neginf=0.0)

    def _polished(self, y: np.ndarray, u: np.ndarray, t: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(e, whether Newton's method has found it on this arc) from a start that is nearly right."""
        rest = y[:, None] - self.i.f(t)
        m = (u - self.i.c * t) / self.size
        own, other = self.j.c * m, self.k.c * m
        for _ in range(_STEPS):
            f1, d1 = self.j.both(own + self.k.c * e)
            f2, d2 = self.k.both(other - self.j.c * e)
            step = (f1 + f2 - rest) / (self.k.c * d1 - self.j.c * d2)
            e = e - step
            if np.nanmax(np.abs(step)) < _DONE:
                break
        level = self.i.slope(t) / self.i.c
        between = (d1 / self.j.c - level) * (level - d2 / self.k.c)
        fine = (np.abs(step) < 1e-9) & (between > -1e-6 * (d1 / self.j.c - d2 / self.k.c) ** 2) & (e > -1e-12)
        return e, fine.all(axis=1)

    def _density(self, u: np.ndarray, t: np.ndarray, e: np.ndarray, w: np.ndarray, weights: Weights) -> np.ndarray:
        one, two = self.points((u - self.i.c * t) / self.size, e)
        points = np.array([one, two, t])
        density = 6 * np.exp(-(points**2).sum(axis=0) / 2) / (2 * np.pi) ** 1.5 / np.abs(
            self.k.c * self.j.slope(one) - self.j.c * self.k.slope(two)) * w
        return np.where(np.isfinite(density), density * weights(points, u), 0.0)


def _nodes(cells: Cells, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes between the ends, shape (n, order), and dz_i over those of (-1, 1): even in log((z - a')/(b' - z))."""
    low, high = cells.a - cells.at_a, cells.b + cells.at_b
    first, last = np.log(cells.at_a / (high - cells.a)), np.log((cells.b - low) / cells.at_b)
    half = ((last - first) / 2)[:, None]
    odds = np.exp((first + last)[:, None] / 2 + half * _rule(order)[0])
    return (low[:, None] + high[:, None] * odds) / (1 + odds), (high - low)[:, None] * odds / (1 + odds) ** 2 * half


def _probes(order: int) -> list[int]:
    return np.linspace(0, order - 1, _PROBES).round().astype(int).tolist()


@lru_cache(maxsize=16)
def _rule(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss nodes, weights, and the matrix from values and slopes at some of them to the polynomial through these, at the nodes."""
    x, w = np.polynomial.legendre.leggauss(order)
    at = x[_probes(order)]
    powers = np.arange(2 * _PROBES)
    values = at[:, None] ** powers
    slopes = np.where(powers > 0, powers * at[:, None] ** np.maximum(powers - 1, 0), 0.0)
    return x, w, x[:, None] ** powers @ np.linalg.inv(np.concatenate([values, slopes]))
