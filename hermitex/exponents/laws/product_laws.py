"""nu_(a,b)(w1 w2 in dy) = int nu_a(w1 in dx) nu_b(w2 in dy/x)/|x|: the law of a product of independent blocks.

In t = log|x|, sign by sign, both factors are smooth but for their knots, and the integral ends where either law does:
panels of bounded width in t, graded towards the knots. The product has a logarithmic knot at 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hermitex.exponents.laws.density import Index, Law, common_power, mass, merge_atoms
from hermitex.exponents.laws.sum_laws import contracted, ends, in_chunks, pairs, special
from hermitex.kernels.panel_rules import distinct_sorted, half_template
from hermitex.numbers.gauss import legendre

_ORDER = 14  # points of a panel; its width is fitted to them by _FALL
_FALL = 2.08  # in log|x|, over which the density of a normal falls from its peak to 1e-14: a panel is 1 wide
_FLOOR = -90.0  # of log|x|: a label below exp(-90) = 8e-40 counts as zero


def product_law(one: Law, two: Law, *, drop: Sequence[Index] = ()) -> Law:
    """The law of w1 w2.

    Parameters: `drop`: indices known to be exactly zero for the product.
    """
    wanted = pairs(one, two, drop)
    left, right = [n for _, n, _ in wanted], [m for _, _, m in wanted]
    width = min(1.0, _steepest_fall(one)/_FALL, _steepest_fall(two)/_FALL)

    def quadrant(y: np.ndarray, side: int) -> np.ndarray:
        """The part of x with the given sign, shape (indices, labels), for labels of one sign."""
        other = side * int(np.sign(y[0]))
        (a1, b1), (a2, b2) = _range(one, side), _range(two, other)
        if not (b1 > a1 and b2 > a2):
            return np.zeros((len(wanted), len(y)))
        s = np.log(np.abs(y))
        low, high = np.maximum(a1, s - b2), np.minimum(b1, s - a2)
        special = [np.broadcast_to(_logs(one, side), (len(y), len(_logs(one, side)))), s[:, None] - _logs(two, other)]
        high = np.maximum(low, high)
        cuts = np.concatenate([low[:, None], *special, high[:, None]], axis=1)
        cuts = np.sort(np.clip(cuts, low[:, None], high[:, None]), axis=1)
        t, w = _panelled(cuts, common_power(one.power, two.power), width)
        if not t.shape[1]:
            return np.zeros((len(wanted), len(y)))
        x = side * np.exp(t)
        return contracted(one.density, two.density, (x, y[:, None] / x, w), (left, right))

    def smooth(y: np.ndarray) -> np.ndarray:
        total = np.zeros((len(wanted), len(y)))
        for sign in (-1, 1):
            mine = (np.sign(y) == sign) & (np.abs(y) > np.exp(_FLOOR))
            if mine.any():
                total[:, mine] = quadrant(y[mine], 1) + quadrant(y[mine], -1)
        return total

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(wanted), len(y)))
        if one.continuous and two.continuous:
            knots = len(one.knots) + len(two.knots) + 2
            order = np.argsort(np.abs(y), kind="stable")  # labels of one scale share their panels
            total[:, order] += in_chunks(smooth, y[order], knots * 40 * _ORDER, len(wanted))
        for law, atoms, mine, its in ((two, one.atoms, left, right), (one, two.atoms, right, left)):
            for point, value in atoms if law.continuous else ():
                if point:
                    total += value[mine][:, None] * law.density(y / point)[its] / abs(point)
        return total

    atoms = [(p * q, u[left] * v[right]) for p, u in one.atoms for q, v in two.atoms]
    atoms += _zero_atoms(one, two, left, right)
    corners = np.multiply.outer(ends(one), ends(two))
    # A convolution is singular only where both of its factors are.
    specials = np.multiply.outer(special(one), special(two)).ravel()
    knots = distinct_sorted(np.concatenate([[0.0], specials[np.isfinite(specials)]]))
    return Law(tuple(a for a, _, _ in wanted), density, float(corners.min()), float(corners.max()), tuple(knots), (),
               tuple(merge_atoms(atoms)), one.continuous or two.continuous, common_power(4, one.power, two.power), False)


def _zero_atoms(one: Law, two: Law, left: list[int], right: list[int]) -> list[tuple[float, np.ndarray]]:
    """An atom at 0 of one factor, whatever the continuous part of the other is."""
    found = []
    for law, atoms, mine, its in ((two, one.atoms, left, right), (one, two.atoms, right, left)):
        at_zero = [v for p, v in atoms if p == 0]
        if at_zero and law.continuous:
            found.append((0.0, at_zero[0][mine] * mass(law, law.lo, law.hi)[its]))
    return found


def _panelled(cuts: np.ndarray, power: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on the intervals between cuts: graded next to the cuts, panels of at most this width in between."""
    x, w = legendre(_ORDER)
    depth = 6  # halvings toward a knot
    t, v = half_template(_ORDER, depth, power)
    nodes, weights = [], []
    last = cuts.shape[1] - 2
    zone = 0.8  # width next to a knot that is graded; chosen by trial
    for n, (a, b) in enumerate(zip(cuts[:, :-1].T, cuts[:, 1:].T, strict=True)):
        longest = float(np.max(b - a))
        if longest <= 0:
            continue
        # The outermost ends are those of the windows, where nothing is left to resolve.
        left = np.minimum((b - a) / 2, zone) if n > 0 else np.zeros_like(a)
        right = np.minimum((b - a) / 2, zone) if n < last else np.zeros_like(a)
        if n > 0:
            nodes.append(a[:, None] + left[:, None] * t)
            weights.append(left[:, None] * v)
        count = max(1, int(np.ceil(float(np.max(b - a - left - right)) / width)))
        edges = (a + left)[:, None] + (b - a - left - right)[:, None] * np.linspace(0.0, 1.0, count + 1)
        half = np.diff(edges, axis=1)[..., None] / 2
        nodes.append((edges[:, :-1, None] + half + half * x).reshape(len(a), -1))
        weights.append((half * w).reshape(len(a), -1))
        if n < last:
            nodes.append(b[:, None] - right[:, None] * t)
            weights.append(right[:, None] * v)
    if not nodes:
        return np.zeros((len(cuts), 0)), np.zeros((len(cuts), 0))
    return np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)


def _steepest_fall(law: Law) -> float:
    """The least change of log|x| over which |x| nu_0 falls from its peak to 1e-14 of it, with no knot on the way.

    Of |z|^a it is a times that of z: on that scale the law varies.
    """
    falls = [np.inf]
    narrowest = 0.05  # of log|x|: a fall this near to a knot belongs to the knot, which is graded; no panel is narrower
    points = 4001  # 0.02 apart on the longest range
    farthest = 40.0  # of log|x|: the mass of a density of size 1 below exp(-40) = 4e-18 is rounding
    for side in (1, -1):
        a, b = _range(law, side)
        a, b = max(a, -farthest), min(b, farthest)
        if not b > a:
            continue
        t = np.linspace(a, b, points)
        size = law.density(side * np.exp(t))[0] * np.exp(t)
        peak = int(np.argmax(size))
        small, knots = size < 1e-14 * size[peak], _logs(law, side)
        for far in (np.flatnonzero(small[:peak])[-1:], peak + np.flatnonzero(small[peak:])[:1]):
            if not len(far):
                continue
            low, high = sorted((float(t[peak]), float(t[far[0]])))
            if not np.any((knots > low - narrowest) & (knots < high + narrowest)):
                falls.append(high - low)
    return max(narrowest * _FALL, min(falls))


def _range(law: Law, side: int) -> tuple[float, float]:
    """The range of log|x| on which the law lives, for the given sign of x."""
    if not law.continuous:
        return 0.0, -1.0
    near, far = (max(law.lo, 0.0), law.hi) if side > 0 else (max(-law.hi, 0.0), -law.lo)
    if far <= 0:
        return 0.0, -1.0
    return (np.log(near) if near > 0 else _FLOOR), float(np.log(far))


def _logs(law: Law, side: int) -> np.ndarray:
    """log|c| of the knots with the given sign."""
    return np.array([np.log(abs(c)) for c in (*law.knots, *law.hints) if c * side > 0 and np.isfinite(c)])
