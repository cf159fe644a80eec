"""1/alpha_c = E[s^2], s = (E[sum z_i^2 | Y, u] - u^2)/(K - 1) - 1, u = (z_1 + ... + z_K)/sqrt(K): committees given their mean.

Permutations leave the label and u alone, and nothing orthogonal to u is left alone by all of them but multiples of the
identity (the standard representation of S_K is irreducible): G_U = s 1, for every K. For sums of functions with two slopes
(one of them 0: steps) the law of (Y, u) is made of sums of normals held to intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, reduce
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Dummy, Expr, Poly, S, Symbol

from hermitex.exponents.label import revealed
from hermitex.exponents.labels.monotone_labels import strict_sign
from hermitex.exponents.laws.density import WINDOW, Law
from hermitex.exponents.laws.discrete import add_to_class
from hermitex.exponents.laws.law_table import tabulated
from hermitex.exponents.laws.sum_laws import sum_law
from hermitex.kernels.panel_rules import distinct_sorted, split
from hermitex.numbers.gauss import legendre_on
from hermitex.symbolic.budget import unless_refused
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import Piece, pieces
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.subspaces import Matrix

# 22 points are exact to rounding on panels of width 2; 17 to compare with, which share no node with them
_ORDER, _COARSE = 22, 17


def committee(g: Expr, variables: Sequence[Symbol], known: Matrix) -> tuple[float, float] | None:
    """(1/alpha_c, its error) given u, for a label y = g(z) with the level sets of such a sum; None if it is not seen to be one.

    Parameters
    ----------
    g : the target; `known` : one row, +-1 on every variable of g up to a factor
    """
    turned = _turned(g, variables, known)
    return None if turned is None else unless_refused(lambda: _of_lines(*turned))


def injective_pair(g: Expr, variables: Sequence[Symbol], known: Matrix) -> bool:
    """y = f(z_1) + f(z_2): do (y, z_1 + z_2) determine |z_1 - z_2|? Then E[z_perp^2|y, u] = z_perp^2, and alpha_c = 1/2.

    f(u + v) + f(u - v) is monotone in |v| where f' is strictly monotone, or even and strictly monotone on x > 0: there
    f'(u + v) - f'(u - v) has one sign, as |u + v| - |u - v| has.
    """
    turned = _turned(g, variables, known)
    if turned is None or len(turned[1]) != 2:
        return False
    f = unless_refused(lambda: _summand(*turned))
    return f is not None and unless_refused(lambda: _slope(f, turned[1][0])) is not None


def _slope(f: Expr, x: Symbol) -> str | None:
    """"monotone" or "even" if f' is proved to be strictly monotone, or even and strictly monotone on x > 0."""
    if not f.free_symbols or len(pieces(f, x)) > 1:
        return None
    t, slope = Dummy("t", positive=True), f.diff(x)
    right, left = strict_sign(slope.xreplace({x: t}), t), strict_sign(slope.xreplace({x: -t}), t)
    if right != 0 and right == -left:
        return "monotone"
    return "even" if right != 0 and right == left and parity(slope, x) == 1 else None


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


def _summand(g: Expr, used: Sequence[Symbol]) -> Expr | None:
    """f such that g has the level sets of sum f(z_i), f in the first variable; None if g is not such a sum."""
    parts: dict[Symbol, Expr] = dict.fromkeys(used, S.Zero)
    for term in Add.make_args(revealed(g, used)):
        mine = [x for x in used if term.has(x)]
        if len(mine) > 1:
            return None
        if mine:
            parts[mine[0]] += term.xreplace({mine[0]: used[0]})
    first, *others = parts.values()
    return None if any((f - first).free_symbols for f in others) else first


# -- sums of piecewise linear functions --------------------------------------------------------------------------------
def _of_lines(g: Expr, used: list[Symbol]) -> tuple[float, float] | None:
    """y = sum f(z_i), f with two slopes a_0, a_1: y = a_0 X_0 + a_1 X_1 + c, sum z_i = X_0 + X_1 invert to (X_0, X_1).

    If all the variables have one slope, y = a sum z_i + c: a mass on a line of the plane of (y, u).
    """
    f = _summand(g, used)
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
    sums, k = _SumsOfParts(sides), len(used)
    plane: list[Planar] = []
    single: tuple[list, ...] = tuple([] for _ in slopes)  # for each slope: the shifts c, each with its compositions
    for counts in _compositions(k, len(sides)):
        held = [sums.of(tuple(n if lines[j][0] == a else 0 for j, n in enumerate(counts))) for a in slopes]
        shift = Add(*(n * b for n, (_, b) in zip(counts, lines, strict=True)))
        live = [n for n, part in enumerate(held) if part is not None]
        if len(live) == 1:
            add_to_class(single[live[0]], shift, {counts: S.One})
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
    low: Law
    high: Law


def _on_line(parts: list, order: int, k: int) -> tuple[float, float]:
    """The labels y = a sum z_i + c: one density in the sum, for all compositions on that line together."""
    s, w = panels(distinct_sorted(np.concatenate([a.breaks() for _, a in parts])), order)
    p, q = np.sum([ways * a.density(s) for ways, a in parts], axis=0)
    return _squares(p, q, w, s, k)


def _in_plane(plane: list[Planar], order: int, k: int) -> tuple[float, float]:
    if not plane:
        return 0.0, 0.0
    v0, w0 = panels(distinct_sorted(np.concatenate([c.low.breaks() - c.shift for c in plane])), order)
    v1, w1 = panels(distinct_sorted(np.concatenate([c.high.breaks() + c.shift for c in plane])), order)
    p, q = np.zeros((2, len(v0), len(v1)))
    for c in plane:
        (p0, q0), (p1, q1) = c.low.density(v0 + c.shift), c.high.density(v1 - c.shift)
        p += c.ways * np.outer(p0, p1)
        q += c.ways * (np.outer(q0, p1) + np.outer(p0, q1))
    return _squares(p, q, np.outer(w0, w1), v0[:, None] + v1, k)


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
    negligible = 1e-18  # of a density of size one: below rounding of its sums, where q/p is 0/0
    live = p > negligible
    scalar = (q[live] / p[live] - np.broadcast_to(s * s / k, p.shape)[live]) / (k - 1) - 1
    mass = np.broadcast_to(w, p.shape)[live] * p[live]
    return float(np.sum(mass * scalar**2)), float(np.sum(mass * scalar))


def _compared(at: Any) -> tuple[float, float]:
    (fine, lost), (coarse, _) = at(_ORDER), at(_COARSE)
    return fine, abs(fine - coarse) + abs(lost)


# -- sums of normals on intervals --------------------------------------------------------------------------------------
class _SumsOfParts:
    """The laws of sums of n_j normals on the j-th interval: densities of x = sum z_i, and E[sum z_i^2; x] in the place of He_2."""

    def __init__(self, sides: Sequence[Piece]) -> None:
        self.ends = [(float(evaluate(p.lo, 20)) if p.lo.is_finite else -np.inf,
                      float(evaluate(p.hi, 20)) if p.hi.is_finite else np.inf) for p in sides]
        self.power = cache(self._power)
        self.of = cache(self._of)

    def _power(self, j: int, n: int) -> Law:
        return one(*self.ends[j]) if n == 1 else plus(self.power(j, n - 1), self.power(j, 1))

    def _of(self, counts: tuple[int, ...]) -> Law | None:
        """counts: n_j; None for the empty sum."""
        parts = [self.power(j, n) for j, n in enumerate(counts) if n]
        return reduce(plus, parts) if parts else None


def one(lo: float, hi: float) -> Law:
    """A normal on one interval (its mass is that of the interval).

    Examples
    --------
    >>> one(0.0, np.inf).density(np.array([-1.0, 1.0])).round(3).tolist()
    [[0.0, 0.242], [0.0, 0.242]]
    """
    lo, hi = max(lo, -WINDOW), min(hi, WINDOW)

    def density(x: np.ndarray) -> np.ndarray:
        phi = np.where((x > lo) & (x < hi), np.exp(-x * x / 2) / np.sqrt(2 * np.pi), 0.0)
        return np.stack([phi, x * x * phi])

    return Law(((), (0, 0)), density, lo, hi, tuple(k for k in (lo, hi) if abs(k) < WINDOW), (0.0,))


def plus(a: Law, b: Law) -> Law:
    """The sum of two independent ones, tabulated."""
    both = sum_law(a, b)  # rows of 1, of the squares of the one, and of those of the other
    squares = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])  # the squares of both blocks are added
    return tabulated(replace(both, indices=a.indices, density=lambda x: squares @ both.density(x)))


def panels(knots: np.ndarray, order: int = _ORDER) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights (n,) between the knots (k,)."""
    width = 2.0  # of a panel: the series of exp(-x^2/2) of that order is exact to double precision there
    x, w = legendre_on(split(knots, width), order)
    return x.ravel(), w.ravel()
