"""rho(d) = sum_k c_k T_k(tau(d)) |dtau/dd|: a density on a line as Chebyshev series on panels, in charts that make it smooth.

Next to a knot c the chart is d = c +- tau^p (p = 2 for an inverse square root, a jump or a kink, 4 where logarithms may
stand); next to a point that the labels approach exponentially it is d = exp(tau); elsewhere d itself. A panel that its
series does not resolve is halved. Several densities (rows) share their panels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hermitex.symbolic.budget import checkpoint

ORDER = 16
_ROUNDS = 8
_RESOLVED = 5e-13    # of a panel
_NEGLIGIBLE = 5e-15  # of the mass
_CLOSEST = 1e-17
_EMPTY = 1e-19


class Chart(NamedTuple):
    """d = knot + side tau^power, d = knot + side exp(tau) where power is 0, and d = tau where it is 1."""

    knot: float
    side: int
    power: int

    def label(self, tau: np.ndarray) -> np.ndarray:
        if self.power == 1:
            return tau
        return self.knot + self.side * (np.exp(tau) if self.power == 0 else tau**self.power)

    def slope(self, tau: np.ndarray) -> np.ndarray:
        """|dd/dtau|."""
        return np.exp(tau) if self.power == 0 else self.power * tau ** (self.power - 1)

    def coordinate(self, d: np.ndarray) -> np.ndarray:
        if self.power == 1:
            return d
        offset = self.side * (d - self.knot)
        if self.power == 0:
            return np.log(np.maximum(offset, 1e-300))
        return np.maximum(offset, _CLOSEST) ** (1 / self.power)  # a label may miss the knot by rounding


LINE = Chart(0.0, 1, 1)


@lru_cache(maxsize=8)
def points(order: int = ORDER) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev points on (-1, 1), and the matrix from values there to coefficients."""
    angle = np.pi * (np.arange(order) + 0.5) / order
    matrix = 2 / order * np.cos(np.outer(np.arange(order), angle))
    matrix[0] /= 2
    return np.cos(angle), matrix


@lru_cache(maxsize=16)
def gauss(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on (0, 1)."""
    x, w = np.polynomial.legendre.leggauss(order)
    return (x + 1) / 2, w / 2


def summed(series: np.ndarray, panel: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sum_k series[panel, k, rows] T_k(x), shape (rows, n)."""
    powers = np.empty((series.shape[1], len(x)))
    powers[0], powers[1] = 1.0, x
    twice = 2 * x
    for k in range(2, len(powers)):
        powers[k] = twice * powers[k - 1] - powers[k - 2]
    order = np.argsort(panel, kind="stable")
    ends = np.searchsorted(panel[order], np.arange(len(series) + 1))
    total = np.empty((series.shape[2], len(x)))
    for n in np.flatnonzero(np.diff(ends)):
        mine = order[ends[n]:ends[n + 1]]
        total[:, mine] = series[n].T @ powers[:, mine]
    return total


class Table:
    """Densities on panels.

    Attributes
    ----------
    charts, low, high : of each panel, the ends in its chart;  series : shape (panels, ORDER, rows)
    edges : the ends of the panels in d, ascending
    """

    def __init__(self, charts: list[Chart], low: np.ndarray, high: np.ndarray, series: np.ndarray) -> None:
        ends = np.array([sorted((float(c.label(a)), float(c.label(b)))) for c, a, b in zip(charts, low, high, strict=True)])
        order = np.argsort(ends[:, 0], kind="stable")
        self.charts = [charts[n] for n in order]
        self.low, self.high, self.series = low[order], high[order], series[order]
        self.edges = np.append(ends[order, 0], ends[order[-1], 1])
        self.kinds = sorted(set(self.charts))
        self.kind = np.array([self.kinds.index(c) for c in self.charts])
        flat = np.array([c.power == 1 for c in self.charts])
        self.bound = np.where(flat, np.abs(self.series).sum(axis=1).max(axis=1), np.inf)

    def at_most(self, d: np.ndarray) -> np.ndarray:
        """A bound of the densities over the panel of d; infinite where its chart is curved, zero outside."""
        panel = np.searchsorted(self.edges, d, side="right") - 1
        inside = (d > self.edges[0]) & (d < self.edges[-1])
        return np.where(inside, self.bound[np.clip(panel, 0, len(self.bound) - 1)], 0.0)

    def __call__(self, d: np.ndarray) -> np.ndarray:
        """The densities, shape (rows, n); zero outside."""
        total = np.zeros((self.series.shape[2], len(d)))
        inside = (d > self.edges[0]) & (d < self.edges[-1])
        d = d[inside]
        panel = np.clip(np.searchsorted(self.edges, d, side="right") - 1, 0, len(self.charts) - 1)
        tau, slope, kind = np.empty_like(d), np.ones_like(d), self.kind[panel]
        for n, chart in enumerate(self.kinds):
            mine = kind == n
            if mine.any():
                tau[mine] = chart.coordinate(d[mine])
                slope[mine] = chart.slope(tau[mine])
        low, high = self.low[panel], self.high[panel]
        x = np.clip((2 * tau - low - high) / (high - low), -1.0, 1.0)
        total[:, inside] = summed(self.series, panel, x) / slope
        return total

    def masses(self, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels d, the measures of the rows on them, shape (rows, n), and the lengths in d that they stand for."""
        x, w = gauss(order)
        labels, values, lengths = [], [], []
        powers = np.polynomial.chebyshev.chebvander(2 * x - 1, self.series.shape[1] - 1)
        for chart, a, b, series in zip(self.charts, self.low, self.high, self.series, strict=True):
            tau = a + (b - a) * x
            labels.append(chart.label(tau))
            values.append((powers @ series).T * (w * (b - a)))
            lengths.append(chart.slope(tau) * w * (b - a))
        return np.concatenate(labels), np.concatenate(values, axis=1), np.concatenate(lengths)


Panels = list[tuple[Chart, float, float]]


def fitted(density: Callable[[np.ndarray], np.ndarray], panels: Panels) -> Table:
    """The table of a density (labels (n,) -> rows (k, n)), its panels halved until they are resolved."""
    x, matrix = points()
    done: list[tuple[Chart, float, float, np.ndarray]] = []
    for round_ in range(_ROUNDS):
        checkpoint("tabulating the law of a product")
        tau = np.array([(a + b) / 2 + (b - a) / 2 * x for _, a, b in panels])
        labels = np.array([c.label(t) for (c, _, _), t in zip(panels, tau, strict=True)])
        slopes = np.array([c.slope(t) for (c, _, _), t in zip(panels, tau, strict=True)])
        values = density(labels.ravel()).reshape(-1, *tau.shape) * slopes
        series = np.einsum("kx,rpx->pkr", matrix, values)
        size = np.abs(series).max(axis=(1, 2))
        tail = np.abs(series[:, -2:]).max(axis=(1, 2))
        width = np.array([b - a for _, a, b in panels])
        # Next to a knot that is not 0 an offset tau^p has lost its digits: what is left is noise.
        noise = [2e-17 * abs(c.knot) / t.min() ** c.power if c.power > 1 else 0.0
                 for (c, _, _), t in zip(panels, tau, strict=True)]
        coarse = (tail > np.maximum(_RESOLVED, noise) * size) & (tail * width > _NEGLIGIBLE) & (round_ < _ROUNDS - 1)
        done += [(*p, s) for p, s, again in zip(panels, series, coarse, strict=True) if not again]
        panels = [part for p, again in zip(panels, coarse, strict=True) if again for part in _split(*p)]
        if not panels:
            break
    done = _trimmed(sorted(done, key=lambda p: float(p[0].label(np.array((p[1] + p[2]) / 2)))))
    charts, low, high, series_ = zip(*done, strict=True)
    return Table(list(charts), np.array(low), np.array(high), np.array(series_))


def _trimmed(done: list) -> list:
    """Without the panels at either end that carry nothing."""
    live = [n for n, (_, a, b, s) in enumerate(done) if (b - a) * np.abs(s).max() > _EMPTY]
    return done[live[0]:live[-1] + 1] if live else done


def _split(chart: Chart, a: float, b: float) -> Panels:
    cuts = [a, b / 4, b / 2, b] if a == 0 and chart.power > 1 else [a, (a + b) / 2, b]
    return [(chart, u, v) for u, v in pairwise(cuts)]


def layout(lo: float, hi: float, knots: Sequence[tuple[float, int]], tail: float | None) -> Panels:
    """Panels for a density on (lo, hi) with knots (c, power); `tail`: the least log d next to 0, where labels crowd there."""
    lo = min(lo, 0.0) if tail is not None and lo < 1 else lo  # labels that crowd next to 0 do not reach it
    inside = sorted((c, p) for c, p in knots if lo < c < hi)
    edge = {c: p for c, p in knots if not lo < c < hi}
    marks: list[tuple[float, int | None]] = [(lo, edge.get(lo)), *inside, (hi, edge.get(hi))]
    panels: Panels = []
    for (a, p), (b, q) in pairwise(marks):
        zone = min((b - a) / 2, 1.0)
        left = zone if p is not None or (tail is not None and a == 0) else 0.0
        right = zone if q is not None else 0.0
        for c, side, power, width in ((a, 1, p, left), (b, -1, q, right)):
            if not width:
                continue
            if c == 0 and side == 1 and tail is not None:
                panels += _spaced(Chart(c, side, 0), tail, float(np.log(width)), 4.0)
            else:
                chart = Chart(c, side, power or 2)
                top = width ** (1 / chart.power)
                panels += [(chart, 0.0, top / 2), (chart, top / 2, top)]
        if b - right > a + left:
            panels += _line(a + left, b - right)
    return panels


def _line(a: float, b: float) -> Panels:
    """Panels that grow with the distance: what is left there decays like a power of the label."""
    edges = [a]
    while edges[-1] < b:
        edges.append(edges[-1] + max(2.0, edges[-1] / 4))
    edges = [a, *[e for e in edges[1:-1] if e < b - 1], b]
    return [(LINE, u, v) for u, v in pairwise(edges)]


def _spaced(chart: Chart, a: float, b: float, width: float) -> Panels:
    edges = np.linspace(a, b, max(1, int(np.ceil((b - a) / width))) + 1)
    return [(chart, float(u), float(v)) for u, v in pairwise(edges)]
