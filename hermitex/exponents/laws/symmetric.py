"""1/alpha_c = E[s^2], s = (E[sum z_i^2 | Y, u] - u^2)/(K - 1) - 1, u = (z_1 + ... + z_K)/sqrt(K): symmetric labels.

Permutations leave the label and u alone, and nothing orthogonal to u is left alone by all of them but multiples of the
identity (the standard representation of S_K is irreducible): G_U = s 1, for every K. Labels that see the intervals of the
z_i (committees of signs and other steps) and sums of piecewise linear functions are done here: the law of (Y, u) is made
of sums of normals on intervals. Products of three rectified terms go through their level curves (`octant`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Dummy, Expr, Max, Min, Mul, Poly, S, Symbol, ceiling, floor, frac, log

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.channels import Named
from hermitex.exponents.labels.levels import monotone, peel
from hermitex.exponents.laws.density import WINDOW, distinct
from hermitex.exponents.laws.discrete import collect, intervals, split_products
from hermitex.exponents.laws.interval_sums import ORDER, IntervalSum, one, panels, plus, total
from hermitex.exponents.laws.smooth_terms import straightened, summands, three_smooth
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import Piece, pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.subspaces import Matrix

_CELLS = 4096
_COARSE = 17
_GRADED = 14
_NEGLIGIBLE = 1e-18


class Found(NamedTuple):
    """1/alpha_c and an absolute error."""

    inverse: float
    error: float


def symmetric_second(g: Expr, law: Named, variables: Sequence[Symbol], known: Matrix) -> Found | None:
    """1/alpha_c given u, for a label that every permutation of the (signed) variables leaves alone; None if it is not seen.

    Parameters
    ----------
    g : the target; `known` : one row, +-1 on every variable of g up to a factor
    """
    turned = _turned(g, variables, known)
    if turned is None:
        return None
    g, used = turned
    try:
        # The intervals of a floor are many, and what they tell is little: the sums of their laws would lose it.
        many = _of_two(g, law, used) if g.has(floor, ceiling, frac) else None
        return (many or _of_steps(g, law, used) or _of_lines(g, law, used) or _of_extremum(g, law, used)
                or _of_two(g, law, used) or _of_octant(g, law, used)
                or _of_three(g, law, used))
    except BudgetExceeded:
        raise
    except HermitexError:
        return None


def injective_pair(g: Expr, variables: Sequence[Symbol], known: Matrix) -> bool:
    """y = f(z_1) + f(z_2): do (y, z_1 + z_2) determine |z_1 - z_2|? Then E[z_perp^2|y, u] = z_perp^2, and alpha_c = 1/2.

    f(u + v) + f(u - v) is monotone in |v| where f' is strictly monotone, or even and strictly monotone on x > 0: there
    f'(u + v) - f'(u - v) has one sign, as |u + v| - |u - v| has.
    """
    turned = _turned(g, variables, known)
    if turned is None or len(turned[1]) != 2:
        return False
    try:
        f = _summand(*turned)
        return f is not None and _slope(f, turned[1][0]) is not None
    except BudgetExceeded:
        raise
    except HermitexError:
        return False


def _slope(f: Expr, x: Symbol) -> str | None:
    """"monotone" or "even" if f' is proved to be strictly monotone, or even and strictly monotone on x > 0."""
    if not f.free_symbols or len(pieces(f, x)) > 1:
        return None
    t, slope = Dummy("t", positive=True), f.diff(x)
    right, left = monotone(slope.xreplace({x: t}), t), monotone(slope.xreplace({x: -t}), t)
    if right != 0 and right == -left:
        return "monotone"
    return "even" if right != 0 and right == left and parity(slope, x) == 1 else None


def _of_two(g: Expr, law: Named, used: list[Symbol]) -> Found | None:
    """Two terms that are not injective in the difference: its level sets on the line."""
    f = _summand(g, used) if law.name == "deterministic" and len(used) == 2 else None
    if f is None:
        return None
    from hermitex.exponents.laws.two_terms import TwoTerms

    # Labels at -u are those at u, turned over or shifted, if f is odd, or even but for a line.
    mirror = straightened(f, used[0])[1]
    return Found(*TwoTerms(f, used[0], mirror=mirror).squares())


def _of_octant(g: Expr, law: Named, used: list[Symbol]) -> Found | None:
    """Three rectified factors: the level curves of (y, u) in the octant followed by one coordinate."""
    rectified = _rectified(g, used) if law.name == "deterministic" and len(used) == 3 else None
    if rectified is None:
        return None
    from hermitex.exponents.laws.octant import Octant

    return Found(*Octant(log(rectified), used[0]).squares())


def _of_three(g: Expr, law: Named, used: list[Symbol]) -> Found | None:
    """Three smooth terms: the arcs of their level curves, with the middle slope as coordinate."""
    f = _summand(g, used) if law.name == "deterministic" and len(used) == 3 else None
    found = None if f is None else three_smooth(f, used[0])
    return None if found is None else Found(*found)


def _of_extremum(g: Expr, law: Named, used: list[Symbol]) -> Found | None:
    """y = max z_i: one of them is y, and the others are normals held to z < y; the smallest is the same by z -> -z."""
    u = peel(g, *used)
    if law.name != "deterministic" or not isinstance(u, (Max, Min)) or set(u.args) != set(used):
        return None
    k = len(used)
    least = -0.7 * WINDOW / (k - 1) ** 0.5  # P(max < least) < 1e-15

    def at(order: int) -> tuple[float, float]:
        square, lost = 0.0, 0.0
        for y, w in zip(*panels(np.array([least, 0.0, WINDOW]), order - 6), strict=True):
            others = total([one(-np.inf, float(y))] * (k - 1))
            rest, v = panels(others.knots, order)
            p, q = others.pair(rest) * k * np.exp(-y * y / 2) / np.sqrt(2 * np.pi)
            found = _squares(p, q + y * y * p, v, rest + y, k)
            square, lost = square + w * found[0], lost + w * found[1]
        return square, lost

    return _compared(at)


def _rectified(g: Expr, used: list[Symbol]) -> Expr | None:
    """w on x > 0 with level sets of g those of prod w(z_i), w zero for x < 0, and (log w)' strictly monotone on x > 0."""
    u = peel(g, *used)
    factors: dict[Symbol, Expr] = dict.fromkeys(used, S.One)
    for factor in Mul.make_args(u):
        mine = [x for x in used if factor.has(x)]
        if len(mine) != 1:
            return None
        factors[mine[0]] *= factor
    x, t = used[0], Dummy("t", positive=True)
    w = factors[x]
    if not w.has(x) or any(factors[v].xreplace({v: x}) != w for v in used[1:]):
        return None
    sides = pieces(w, x)
    if len(sides) != 2 or sides[0].expr != 0 or sides[0].hi != 0:
        return None
    inside = sides[1].expr.xreplace({x: t})
    return sides[1].expr if inside.is_positive and monotone(log(inside).diff(t), t) != 0 else None


def _turned(g: Expr, variables: Sequence[Symbol], known: Matrix) -> tuple[Expr, list[Symbol]] | None:
    """g with the signs of the known direction taken into its variables: that direction is then (1, ..., 1)."""
    used = [x for x in variables if g.has(x)]
    if known.rows != 1 or len(used) < 2:
        return None
    row = dict(zip(variables, known.tolist()[0], strict=True))
    size = abs(row[used[0]])
    if size == 0 or any(abs(row[x]) != (size if x in used else 0) for x in variables):
        return None
    return g.xreplace({x: -x for x in used if row[x] != row[used[0]]}), used


# -- compositions ------------------------------------------------------------------------------------------------------
class _Sums:
    """The laws of sums of n_j normals on the j-th interval."""

    def __init__(self, sides: Sequence[Piece]) -> None:
        self.ends = [(float(evaluate(p.lo, 20)) if p.lo.is_finite else -np.inf,
                      float(evaluate(p.hi, 20)) if p.hi.is_finite else np.inf) for p in sides]
        self.power = cache(self._power)
        self.of = cache(self._of)

    def _power(self, j: int, n: int) -> IntervalSum:
        return one(*self.ends[j]) if n == 1 else plus(self.power(j, n - 1), self.power(j, 1))

    def _of(self, counts: tuple[int, ...]) -> IntervalSum | None:
        """counts: n_j; None for the empty sum."""
        parts = [self.power(j, n) for j, n in enumerate(counts) if n]
        return total(parts) if parts else None


def _compositions(size: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (size,)
        return
    for n in range(size + 1):
        yield from ((n, *rest) for rest in _compositions(size - n, parts - 1))


def _ways(counts: Sequence[int]) -> int:
    return factorial(sum(counts)) // prod(factorial(n) for n in counts)


def _squares(p: np.ndarray, q: np.ndarray, w: np.ndarray, s: np.ndarray, k: int) -> tuple[float, float]:
    """(int p scalar^2, int p scalar): the second is zero, and tells what was lost."""
    live = p > _NEGLIGIBLE
    scalar = (q[live] / p[live] - np.broadcast_to(s * s / k, p.shape)[live]) / (k - 1) - 1
    mass = np.broadcast_to(w, p.shape)[live] * p[live]
    return float(np.sum(mass * scalar**2)), float(np.sum(mass * scalar))


def _compared(at: Any) -> Found:
    (fine, lost), (coarse, _) = at(ORDER), at(_COARSE)
    return Found(fine, abs(fine - coarse) + abs(lost))


# -- labels of intervals -----------------------------------------------------------------------------------------------
def _of_steps(g: Expr, law: Named, used: list[Symbol]) -> Found | None:
    """y = F(n_1, ..., n_m), n_j the number of variables in the j-th interval."""
    g = split_products(g)
    sides = intervals(g, used[0])
    if sides is None or len(sides) ** len(used) > _CELLS:
        return None
    for x in used[1:]:
        other = intervals(g, x)
        if other is None or [(p.lo, p.hi) for p in other] != [(p.lo, p.hi) for p in sides]:
            return None
    labels: dict[tuple[int, ...], Expr] = {}
    for cell in product(range(len(sides)), repeat=len(used)):
        label = g.xreplace({x: sides[n].expr for x, n in zip(used, cell, strict=True)})
        # The label of every cell is looked at: that is the proof that it is symmetric.
        if labels.setdefault(tuple(cell.count(j) for j in range(len(sides))), label) != label:
            return None
    kernel = _kernel(list(labels.values()), law)
    if kernel is None:
        return None
    sums, k = _Sums(sides), len(used)
    laws = [a for counts in labels if (a := sums.of(counts)) is not None]
    weights = np.array([float(_ways(counts)) for counts in labels])[:, None]
    knots = distinct(np.concatenate([a.knots for a in laws]))
    if law.name == "gaussian":
        # Next to a knot one composition sets in as a power of the distance, and noise brings in the others, however few.
        knots = distinct(np.concatenate([knots, *(knots[1:-1] + t * 4.0**-n for n in range(_GRADED) for t in (-1, 1))]))

    def at(order: int) -> tuple[float, float]:
        s, w = panels(knots, order)
        both = np.array([a.pair(s) for a in laws]).transpose(1, 0, 2) * weights
        return _squares(kernel @ both[0], kernel @ both[1], w, s, k)

    return _compared(at)


def _kernel(labels: list[Expr], law: Named) -> np.ndarray | None:
    """P(y | label), shape (values of y, labels): a density times the weight of its node where y is continuous."""
    if law.name in ("deterministic", "random_sign"):
        classes: list = []
        for n, label in enumerate(labels):
            collect(classes, abs(label) if law.name == "random_sign" else label, {(n,): S.One})
        return np.array([[float((n,) in members) for n in range(len(labels))] for _, members in classes])
    values = np.array([float(evaluate(v, 20)) for v in labels])
    if law.name == "gaussian":
        scale = float(law.parameter or 0) ** 0.5
        y, w = panels(distinct(np.concatenate([values, [values.min() - 9 * scale, values.max() + 9 * scale]])), ORDER, scale)
        return np.exp(-((y[:, None] - values) / scale) ** 2 / 2) / (scale * np.sqrt(2 * np.pi)) * w[:, None]
    w = Dummy("w", real=True)
    rows = [[float(evaluate(p.xreplace({w: v}), 20)) for v in labels] for p in law.labels(w).probabilities]
    return np.array(rows) if rows else None


# -- sums of piecewise linear functions --------------------------------------------------------------------------------
def _of_lines(g: Expr, law: Named, used: list[Symbol]) -> Found | None:
    """y = sum f(z_i), f with two slopes a_0, a_1: y = a_0 X_0 + a_1 X_1 + c, sum z_i = X_0 + X_1 invert to (X_0, X_1).

    Where all the variables have one slope, y = a sum z_i + c: a mass on a line of the plane of (y, u).
    """
    f = _summand(g, used) if law.name == "deterministic" else None
    if f is None:
        return None
    x = used[0]
    sides = pieces(f, x)
    if any(not p.expr.is_polynomial(x) or Poly(p.expr, x).degree() > 1 for p in sides):
        return None
    lines = [(Poly(p.expr, x).coeff_monomial(x), Poly(p.expr, x).coeff_monomial(1)) for p in sides]
    slopes = sorted({a for a, _ in lines}, key=lambda a: float(evaluate(a, 20)))
    if len(slopes) > 2 or (len(slopes) == 2 and evaluate(slopes[1] - slopes[0], 20) < 1e-9):
        return None
    sums, k = _Sums(sides), len(used)
    plane: list[Planar] = []
    single: tuple[list, ...] = tuple([] for _ in slopes)  # for each slope: the shifts c, each with its compositions
    for counts in _compositions(k, len(sides)):
        held = [sums.of(tuple(n if lines[j][0] == a else 0 for j, n in enumerate(counts))) for a in slopes]
        shift = Add(*(n * b for n, (_, b) in zip(counts, lines, strict=True)))
        live = [n for n, part in enumerate(held) if part is not None]
        if len(live) == 1:
            collect(single[live[0]], shift, {counts: S.One})
        else:
            moved = float(evaluate(shift / (slopes[1] - slopes[0]), 20))
            plane.append(Planar(float(_ways(counts)), moved, *(part for part in held if part is not None)))
    masses = [[(float(_ways(c)), sums.of(c)) for c in members] for group in single for _, members in group]
    return _compared(lambda order: tuple(map(sum, zip(*(_on_line(m, order, k) for m in masses),
                                                     _in_plane(plane, order, k), strict=True))))


class Planar(NamedTuple):
    """One composition with both slopes: X_0 = v_0 + shift, X_1 = v_1 - shift over (v_0, v_1), the same for every one."""

    ways: float
    shift: float
    low: IntervalSum
    high: IntervalSum


def _summand(g: Expr, used: list[Symbol]) -> Expr | None:
    """f with level sets of g those of sum f(z_i), f in the first variable."""
    fs = summands(g, used)
    if fs is None or any((f.xreplace({x: used[0]}) - fs[0]).free_symbols for x, f in zip(used, fs, strict=True)):
        return None
    return fs[0]


def _on_line(parts: list, order: int, k: int) -> tuple[float, float]:
    """The labels y = a sum z_i + c: one density in the sum, for all compositions on that line together."""
    s, w = panels(distinct(np.concatenate([a.knots for _, a in parts])), order)
    p, q = np.sum([ways * a.pair(s) for ways, a in parts], axis=0)
    return _squares(p, q, w, s, k)


def _in_plane(plane: list[Planar], order: int, k: int) -> tuple[float, float]:
    if not plane:
        return 0.0, 0.0
    v0, w0 = panels(distinct(np.concatenate([c.low.knots - c.shift for c in plane])), order)
    v1, w1 = panels(distinct(np.concatenate([c.high.knots + c.shift for c in plane])), order)
    p, q = np.zeros((2, len(v0), len(v1)))
    for c in plane:
        (p0, q0), (p1, q1) = c.low.pair(v0 + c.shift), c.high.pair(v1 - c.shift)
        p += c.ways * np.outer(p0, p1)
        q += c.ways * (np.outer(q0, p1) + np.outer(p0, q1))
    return _squares(p, q, np.outer(w0, w1), v0[:, None] + v1, k)
