"""p_{n+m} = p_n * p_m, q_{n+m} = q_n * p_m + p_n * q_m: sums of normals held to intervals, and E[sum z_i^2; sum z_i = x].

The density of a sum of n normals, each on its interval, is analytic between the sums of their end points; there it is a
Legendre series on panels, made by Gauss quadrature of the convolution, to about 1e-15 of its largest value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from hermitex.exponents.laws.density import WINDOW, distinct
from hermitex.symbolic.budget import checkpoint

ORDER = 22
WIDTH = 2.0  # of a panel: the series of exp(-x^2/2) of that order is exact to double precision there


@dataclass(frozen=True)
class IntervalSum:
    """p(x) and q(x) of a sum of `count` normals on intervals: the density, and E[sum z_i^2; sum z_i = x].

    Attributes
    ----------
    knots : sorted; the density is analytic between two of them and zero outside the first and the last
    pair : x, shape (n,) -> array (2, n)
    """

    count: int
    knots: np.ndarray
    pair: Callable[[np.ndarray], np.ndarray]


def one(lo: float, hi: float) -> IntervalSum:
    """A normal on one interval (its mass is that of the interval).

    Examples
    --------
    >>> one(0.0, np.inf).pair(np.array([-1.0, 1.0])).round(3).tolist()
    [[0.0, 0.242], [0.0, 0.242]]
    """
    lo, hi = max(lo, -WINDOW), min(hi, WINDOW)

    def pair(x: np.ndarray) -> np.ndarray:
        phi = np.where((x > lo) & (x < hi), np.exp(-x * x / 2) / np.sqrt(2 * np.pi), 0.0)
        return np.stack([phi, x * x * phi])

    return IntervalSum(1, np.array([lo, hi]), pair)


def plus(a: IntervalSum, b: IntervalSum) -> IntervalSum:
    """The sum of two independent ones, tabulated."""
    checkpoint("convolving normals on intervals")
    count = a.count + b.count
    reach = WINDOW * np.sqrt(count)  # P(|sum z_i| > reach) < 6e-19
    knots = np.add.outer(a.knots, b.knots).ravel()
    knots = distinct(np.clip(knots, -reach, reach))
    return _tabulated(IntervalSum(count, knots, lambda x: _convolved(a, b, x)))


def total(parts: Sequence[IntervalSum]) -> IntervalSum:
    """The sum of several."""
    return reduce(plus, parts)


def panels(knots: np.ndarray, order: int = ORDER, width: float = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights between the knots, on panels no wider than `width`."""
    x, w = np.polynomial.legendre.leggauss(order)
    edges = _edges(knots, width)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()


def _edges(knots: np.ndarray, width: float) -> np.ndarray:
    cells = [np.linspace(a, b, int(np.ceil((b - a) / width)) + 1)[:-1] for a, b in pairwise(knots)]
    return np.concatenate([*cells, knots[-1:]])


def _convolved(a: IntervalSum, b: IntervalSum, x: np.ndarray) -> np.ndarray:
    """int over t of the products at t and x - t, cut at the knots of both."""
    y, w = np.polynomial.legendre.leggauss(ORDER)
    cuts = np.concatenate([np.broadcast_to(_edges(a.knots, WIDTH), (len(x), len(_edges(a.knots, WIDTH)))),
                           x[:, None] - b.knots], axis=1)
    low = np.maximum(a.knots[0], x - b.knots[-1])[:, None]
    high = np.minimum(a.knots[-1], x - b.knots[0])[:, None]
    cuts = np.sort(np.clip(cuts, low, np.maximum(low, high)), axis=1)
    half = np.diff(cuts, axis=1)[:, :, None] / 2
    t = cuts[:, :-1, None] + half * (1 + y)
    weight = (half * w).ravel()
    live = weight > 0
    (p, q), (r, s) = a.pair(t.ravel()[live]), b.pair((x[:, None, None] - t).ravel()[live])
    found = np.zeros((2, weight.size))
    found[:, live] = np.stack([p * r, q * r + p * s]) * weight[live]
    return found.reshape(2, len(x), -1).sum(axis=2)


def _tabulated(law: IntervalSum) -> IntervalSum:
    x, w = np.polynomial.legendre.leggauss(ORDER)
    edges = _edges(law.knots, WIDTH)
    half = np.diff(edges)[:, None] / 2
    values = law.pair((edges[:-1, None] + half * (1 + x)).ravel()).reshape(2, -1, ORDER)
    to_series = (np.polynomial.legendre.legvander(x, ORDER - 1) * w[:, None]).T * (2 * np.arange(ORDER)[:, None] + 1) / 2
    series = np.einsum("kx,cpx->cpk", to_series, values)

    def pair(y: np.ndarray) -> np.ndarray:
        panel = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, len(edges) - 2)
        at = (2 * y - edges[panel] - edges[panel + 1]) / (edges[panel + 1] - edges[panel])
        powers = np.polynomial.legendre.legvander(np.clip(at, -1.0, 1.0), ORDER - 1)
        inside = (y > edges[0]) & (y < edges[-1])
        return np.where(inside, np.einsum("cnk,nk->cn", series[:, panel], powers), 0.0)

    return IntervalSum(law.count, law.knots, pair)
