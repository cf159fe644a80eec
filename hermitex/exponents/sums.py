"""nu_(a,b)(w1 + w2 in dy) = int nu_a(w1 in dx) nu_b(w2 in dy - x): the law of a sum of independent blocks.

At each label the range of x is cut at the knots of both laws and graded towards them, so inverse square roots,
logarithms and jumps keep full accuracy. Atoms shift; two atoms make an atom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hermitex.exponents.label_density import Index, Law, distinct, graded, merged
from hermitex.symbolic.budget import checkpoint

_CHUNK = 400_000
_ORDER, _DEPTH = 14, {2: 8, 4: 6}


def joined(a: Index, b: Index) -> Index:
    """The multi-index of He_a He_b, for a and b in different variables."""
    return tuple(sorted((*a, *b)))


def pairs(one: Law, two: Law, drop: Sequence[Index]) -> list[tuple[Index, int, int]]:
    """(index, position in one, position in two) of the products of degree <= 2 that may be non-zero."""
    found = [(joined(a, b), n, m) for n, a in enumerate(one.indices) for m, b in enumerate(two.indices)
             if len(a) + len(b) <= 2]
    return sorted((p for p in found if p[0] not in drop), key=lambda p: (len(p[0]), p[0]))


def added(one: Law, two: Law, *, drop: Sequence[Index] = ()) -> Law:
    """The law of w1 + w2.

    Parameters: `drop`: indices known to be exactly zero for the sum.
    """
    wanted = pairs(one, two, drop)
    left, right = [n for _, n, _ in wanted], [m for _, _, m in wanted]
    b1, b2 = one.breaks(), two.breaks()
    power = max(one.power, two.power)
    depth = _DEPTH[power]

    def smooth(y: np.ndarray) -> np.ndarray:
        low, high = np.maximum(one.lo, y - two.hi), np.minimum(one.hi, y - two.lo)
        cuts = np.concatenate([np.broadcast_to(b1, (len(y), len(b1))), y[:, None] - b2], axis=1)
        cuts = np.sort(np.clip(cuts, low[:, None], np.maximum(low, high)[:, None]), axis=1)
        x, w = graded(cuts, _ORDER, depth, power)
        d1 = one.density(x.ravel()).reshape(-1, *x.shape)
        d2 = two.density((y[:, None] - x).ravel()).reshape(-1, *x.shape)
        value = np.einsum("kyn,kyn,yn->ky", d1[left], d2[right], w)
        return np.where(high > low, value, 0.0)

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(wanted), len(y)))
        if one.continuous and two.continuous:
            total += in_chunks(smooth, y, (len(b1) + len(b2)) * 2 * _ORDER * (depth + 1), len(wanted))
        if two.continuous:
            for point, value in one.atoms:
                total += value[left][:, None] * two.density(y - point)[right]
        if one.continuous:
            for point, value in two.atoms:
                total += one.density(y - point)[left] * value[right][:, None]
        return total

    ends1 = [*([one.lo, one.hi] if one.continuous else []), *[p for p, _ in one.atoms]]
    ends2 = [*([two.lo, two.hi] if two.continuous else []), *[p for p, _ in two.atoms]]
    return Law(tuple(a for a, _, _ in wanted), density, min(ends1) + min(ends2), max(ends1) + max(ends2),
               _sums(_special(one, hints=False), _special(two, hints=False)),
               _sums(_special(one, hints=True), _special(two, hints=True)),
               tuple(merged([(p + q, u[left] * v[right]) for p, u in one.atoms for q, v in two.atoms])),
               one.continuous or two.continuous, 4, False)


def _special(law: Law, *, hints: bool) -> list[float]:
    return [*law.knots, *[p for p, _ in law.atoms], *(law.hints if hints else ())]


def _sums(one: list[float], two: list[float]) -> tuple[float, ...]:
    if not one or not two:
        return tuple(one or two)[:12]
    return tuple(distinct(np.add.outer(one, two).ravel()))


def in_chunks(f: Callable[[np.ndarray], np.ndarray], y: np.ndarray, cost: int, rows: int) -> np.ndarray:
    """f on pieces of y, so that memory stays bounded and the budget is heard."""
    size = max(1, _CHUNK // max(cost, 1))
    parts = []
    for start in range(0, len(y), size):
        checkpoint("convolving the laws of two blocks")
        parts.append(f(y[start:start + size]))
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0))
