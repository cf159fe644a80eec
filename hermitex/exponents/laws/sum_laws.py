"""nu_(a,b)(w1 + w2 in dy) = int nu_a(w1 in dx) nu_b(w2 in dy - x): the law of a sum of independent blocks.

At each label the range of x is cut at the knots of both laws and graded towards them, so inverse square roots,
logarithms and jumps keep full accuracy. Atoms shift; two atoms make an atom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hermitex.exponents.laws.density import Index, Law, common_power, merge_atoms
from hermitex.kernels.panel_rules import distinct_sorted, half_template
from hermitex.symbolic.budget import checkpoint

_ORDER, _DEPTH = 14, {2: 8, 4: 6}  # nodes of a panel, halvings towards an end by its power: chosen by trial


def joined(a: Index, b: Index) -> Index:
    """The multi-index of He_a He_b, for a and b in different variables."""
    return tuple(sorted((*a, *b)))


def pairs(one: Law, two: Law, drop: Sequence[Index]) -> list[tuple[Index, int, int]]:
    """(index, position in one, position in two) of the products of degree <= 2 that may be non-zero."""
    found = [(joined(a, b), n, m) for n, a in enumerate(one.indices) for m, b in enumerate(two.indices)
             if len(a) + len(b) <= 2]
    return sorted((p for p in found if p[0] not in drop), key=lambda p: (len(p[0]), p[0]))


def sum_law(one: Law, two: Law, *, drop: Sequence[Index] = ()) -> Law:
    """The law of w1 + w2.

    Parameters: `drop`: indices known to be exactly zero for the sum.
    """
    wanted = pairs(one, two, drop)
    left, right = [n for _, n, _ in wanted], [m for _, _, m in wanted]
    b1, b2 = one.breaks(), two.breaks()
    power = common_power(one.power, two.power)
    depth = _DEPTH.get(power, 6)

    def smooth(y: np.ndarray) -> np.ndarray:
        low, high = np.maximum(one.lo, y - two.hi), np.minimum(one.hi, y - two.lo)
        cuts = np.concatenate([np.broadcast_to(b1, (len(y), len(b1))), y[:, None] - b2], axis=1)
        cuts = np.sort(np.clip(cuts, low[:, None], np.maximum(low, high)[:, None]), axis=1)
        value = contracted(one.density, two.density, _both(cuts, y, (_ORDER, depth, power)), (left, right))
        return np.where(high > low, value, 0.0)

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(wanted), len(y)))
        if one.continuous and two.continuous:
            total += in_chunks(smooth, y, (len(b1) + len(b2)) * 2 * _ORDER * (depth + 1), len(wanted))
        for law, atoms, mine, its in ((two, one.atoms, left, right), (one, two.atoms, right, left)):
            for point, value in atoms if law.continuous else ():
                total += value[mine][:, None] * law.density(y - point)[its]
        return total

    corners = np.add.outer(ends(one), ends(two))
    return Law(tuple(a for a, _, _ in wanted), density, float(corners.min()), float(corners.max()),
               _sums(special(one), special(two)), _sums(_hints(one), _hints(two)),
               tuple(merge_atoms([(p + q, u[left] * v[right]) for p, u in one.atoms for q, v in two.atoms])),
               one.continuous or two.continuous, common_power(4, power), False)


def _both(cuts: np.ndarray, y: np.ndarray, rule: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y - x and the weights: each node written from the nearer cut, so that x and y - x keep their digits next to 0."""
    t, v = half_template(*rule)
    a, b = cuts[:, :-1, None], cuts[:, 1:, None]
    half, label = (b - a) / 2, y[:, None, None]
    x = np.concatenate([a + half * t, b - half * t], axis=2)
    other = np.concatenate([(label - a) - half * t, (label - b) + half * t], axis=2)
    w = np.concatenate([half * v, half * v], axis=2)
    return x.reshape(len(y), -1), other.reshape(len(y), -1), w.reshape(len(y), -1)


def contracted(d1: Callable, d2: Callable, at: tuple[np.ndarray, np.ndarray, np.ndarray],
               spots: tuple[list[int], list[int]]) -> np.ndarray:
    """sum over nodes of nu_a(x) nu_b(x') w, row by row; at = (x, x', w), shapes (n, m)."""
    x, other, w = at
    live = w > 0  # intervals between cuts that coincide carry nothing
    terms = np.zeros((len(spots[0]), *x.shape))
    terms[:, live] = d1(x[live])[spots[0]] * d2(other[live])[spots[1]] * w[live]
    return terms.sum(axis=2)


def ends(law: Law) -> list[float]:
    """The ends of the support, and the atoms."""
    return [*([law.lo, law.hi] if law.continuous else []), *[p for p, _ in law.atoms]]


def special(law: Law) -> list[float]:
    """The labels at which the measures are not analytic."""
    return [*law.knots, *[p for p, _ in law.atoms]]


def _hints(law: Law) -> list[float]:
    # A law without knots varies on the scale of its window; so does a sum with it, next to the knots of the other.
    return [*special(law), *law.hints, *(() if law.knots or law.atoms else (law.lo, law.hi))]


def _sums(one: list[float], two: list[float]) -> tuple[float, ...]:
    """A convolution is singular only where both of its factors are."""
    if not one or not two:
        return ()
    return tuple(distinct_sorted(np.add.outer(one, two).ravel()))


def in_chunks(f: Callable[[np.ndarray], np.ndarray], y: np.ndarray, cost: int, rows: int) -> np.ndarray:
    """f, (rows, n), on pieces of y, (n,), so that memory stays bounded and the budget is heard."""
    chunk = 50_000  # nodes at a time: their arrays stay in the cache
    size = max(1, chunk // max(cost, 1))
    parts = []
    for start in range(0, len(y), size):
        checkpoint("convolving the laws of two blocks")
        parts.append(f(y[start:start + size]))
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0))
