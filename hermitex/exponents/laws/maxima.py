"""nu_(a,b)(max(w1, w2) in dy) = nu_a(dy) nu_b(w2 < y) + nu_a(w1 < y) nu_b(dy): the law of the larger of independent blocks.

The smaller one has nu_b(w2 > y) instead. The measures of half-lines are integrated from knot to knot; knots stay knots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from hermitex.exponents.laws.density import Index, Law, common_power, distinct, graded, mass
from hermitex.exponents.laws.sums import in_chunks, pairs

_ORDER, _DEPTH = 16, 8


def largest_of(one: Law, two: Law, *, drop: Sequence[Index] = ()) -> Law:
    """The law of max(w1, w2), for laws without atoms; `drop`: indices known to be exactly zero."""
    return _extreme(one, two, drop, True)


def smallest_of(one: Law, two: Law, *, drop: Sequence[Index] = ()) -> Law:
    """The law of min(w1, w2)."""
    return _extreme(one, two, drop, False)


def _extreme(one: Law, two: Law, drop: Sequence[Index], larger: bool) -> Law:
    wanted = pairs(one, two, drop)
    left, right = [n for _, n, _ in wanted], [m for _, _, m in wanted]
    sides = _beyond(one, larger), _beyond(two, larger)

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        return one.density(y)[left] * sides[1](y)[right] + sides[0](y)[left] * two.density(y)[right]

    lo, hi = (max(one.lo, two.lo), max(one.hi, two.hi)) if larger else (min(one.lo, two.lo), min(one.hi, two.hi))
    # The ends of either law are kinks of the other's half-lines.
    knots = distinct(np.array([p for law in (one, two) for p in (*law.knots, law.lo, law.hi) if lo <= p <= hi]))
    return Law(tuple(a for a, _, _ in wanted), density, lo, hi, tuple(knots), (*one.hints, *two.hints), (), True,
               common_power(one.power, two.power), False, lost=one.lost + two.lost)


def _beyond(law: Law, below: bool) -> Callable[[np.ndarray], np.ndarray]:
    """nu_a(w < y), or nu_a(w > y), over the indices."""
    breaks = law.breaks()
    cells = np.array([mass(law, a, b) for a, b in pairwise(breaks)]).T
    empty = np.zeros((len(law.indices), 1))
    # Each half-line from its own end: differences would lose the digits of a tail.
    whole = np.concatenate([empty, np.cumsum(cells, axis=1)] if below else
                           [np.cumsum(cells[:, ::-1], axis=1)[:, ::-1], empty], axis=1)

    def inside(y: np.ndarray) -> np.ndarray:
        cell = np.clip(np.searchsorted(breaks, y, side="right") - 1, 0, len(breaks) - 2)
        low, high = breaks[cell], breaks[cell + 1]
        # From the nearer end, where a singular density is graded.
        left = y - low < high - y
        nodes, weights = graded(np.stack([np.where(left, low, y), np.where(left, y, high)], axis=1), _ORDER, _DEPTH, law.power)
        part = (law.density(nodes.ravel()).reshape(-1, *nodes.shape) * weights).sum(axis=2)
        return whole[:, np.where(left, cell, cell + 1)] + np.where(left == below, part, -part)

    return lambda y: in_chunks(inside, np.clip(y, law.lo, law.hi), 2 * _ORDER * (_DEPTH + 1), len(law.indices))
