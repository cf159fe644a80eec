"""tau nu_a(c +- h tau^2): a law tabulated once, between its knots c, so that nested convolutions stay cheap.

In tau a density with an inverse square root at the knot is analytic; the panels in tau halve towards it, and on each
the table is a Legendre series. The series is as accurate as the density it was made from, to about 1e-12.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from hermitex.exponents.laws.density import Law
from hermitex.kernels.panel_rules import to_series
from hermitex.numbers.gauss import legendre

# terms of the series on a panel; a panel whose last terms do not vanish is halved
_ORDER = 18


class HalfLaw:
    """One side of a knot: labels `end` + `width` tau^2, tau in (0, 1)."""

    def __init__(self, law: Law, end: float, width: float) -> None:
        self.end, self.width = end, width
        knot = any(abs(end - k) <= 1e-13 * max(1.0, abs(k)) for k in law.knots)
        deep = 24  # panels, halved toward a knot at 0: to 2^-24 in tau, 4e-15 in y
        shallow = 9  # panels, halved toward another knot: to 2^-9 in tau, 4e-6 in y
        smooth = 4  # panels toward an end where the density has no knot
        depth = (deep if end == 0 else shallow) if knot else smooth
        self.edges = np.concatenate([[0.0], 2.0 ** -np.arange(depth, -1, -1)])
        x, _ = legendre(_ORDER)
        self.series = self._fit(law, x, self.edges[:-1], self.edges[1:])
        resolved = 1e-13  # the last two coefficients of a series as part of its largest: rounding
        negligible = 1e-17  # of the largest panel: below rounding of the sum of all
        small, falls = 1e-9, 0.1  # tails below the first that halving does not make this much smaller are rounding of the density
        splits = 4  # rounds in which panels are halved: 1/16 of the first width
        rounded = np.zeros(len(self.series), dtype=bool)
        for _ in range(splits):
            size, tail = _sizes(self.series)
            coarse = (tail > resolved * size) & (size > negligible * size.max()) & (self.edges[:-1] > 0) & ~rounded
            if not coarse.any():
                break
            low, high = self.edges[:-1][coarse], self.edges[1:][coarse]
            middle = (low + high) / 2
            halved = self._fit(law, x, np.concatenate([low, middle]), np.concatenate([middle, high]))
            new_size, new_tail = _sizes(halved)
            noise = (new_tail > falls * np.tile(tail[coarse], 2)) & (new_tail < small * new_size)
            starts = np.concatenate([self.edges[:-1][~coarse], low, middle])
            order = np.argsort(starts)
            self.series = np.concatenate([self.series[~coarse], halved])[order]
            rounded = np.concatenate([rounded[~coarse], noise])[order]
            self.edges = np.append(np.sort(starts), self.edges[-1])

    def _fit(self, law: Law, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        half = (high - low)[:, None] / 2
        tau = low[:, None] + half + half * x
        values = law.density((self.end + self.width * tau**2).ravel()) * tau.ravel()
        return np.einsum("sx,kpx->pks", to_series(_ORDER), values.reshape(-1, *tau.shape))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        closest = 1e-8  # of tau: y to 1e-16 of the width from the knot, the rounding of y
        # A label that was meant to be the knot may miss it by rounding: the density is held constant next to it.
        tau = np.sqrt(np.maximum((y - self.end) / self.width, closest**2))
        panel = np.clip(np.searchsorted(self.edges, tau, side="right") - 1, 0, len(self.edges) - 2)
        low, high = self.edges[panel], self.edges[panel + 1]
        x = np.clip((2 * tau - low - high) / (high - low), -1.0, 1.0)
        powers = np.polynomial.legendre.legvander(x, _ORDER - 1)
        total = np.empty((self.series.shape[1], len(y)))
        order = np.argsort(panel, kind="stable")
        ends = np.searchsorted(panel[order], np.arange(len(self.edges)))
        for n in np.flatnonzero(np.diff(ends)):
            mine = order[ends[n]:ends[n + 1]]
            total[:, mine] = self.series[n] @ powers[mine].T
        return total / tau


def _sizes(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest coefficient of each panel, and the largest of its last two."""
    return np.abs(series).max(axis=(1, 2)), np.abs(series[:, :, -2:]).max(axis=(1, 2))


def tabulated(law: Law) -> Law:
    """The same law, its densities read from a table."""
    if law.plain or not law.continuous:
        return law
    breaks = law.breaks()
    halves = []
    for a, b in pairwise(breaks):
        halves += [HalfLaw(law, a, (b - a) / 2), HalfLaw(law, b, (a - b) / 2)]
    cuts = np.concatenate([np.stack([breaks[:-1], (breaks[:-1] + breaks[1:]) / 2], axis=1).ravel(), breaks[-1:]])

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(law.indices), *y.shape))
        place = np.searchsorted(cuts, y, side="right") - 1
        for n, half in enumerate(halves):
            mine = place == n
            if mine.any():
                total[:, mine] = half(y[mine])
        return total

    return replace(law, density=density, plain=True)
