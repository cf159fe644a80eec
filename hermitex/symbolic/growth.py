"""|g(x)| <= sum_i C_i t^n_i exp(a_i t + b_i t^2) for t = |x| >= t0: growth bounds read off the expression tree.

Every rule is an inequality with rational constants rounded outwards, so that its results may be used in a proof:
the tail of a Gaussian integral beyond L, the piece of it next to a singular point. A bound need not be sharp, only
true; the exact decisions of integrability, boundaries included, are in `integrability`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import sympy as sp
from sympy import Dummy, Expr, Symbol

from hermitex.errors import AssumptionNeeded, NoClosedForm
from hermitex.symbolic.bounds.majorants import GrowthTerm, Majorant, MajorantRules
from hermitex.symbolic.bounds.outward import ONE, ZERO, Unbounded, above, exp_above, power_above
from hermitex.symbolic.budget import kept
from hermitex.symbolic.pieces import pieces

__all__ = ["GrowthTerm", "Majorant", "local_majorant", "majorant", "majorant_tail"]


_USELESS = 4000  # an exponent with which a bound is useless
_LONG = 20_000  # bits
_LOG2E = Fraction(1_442_695, 10**6)  # to 1e-3, at least


def majorant(expr: Expr, x: Symbol | Sequence[Symbol], side: int = 1) -> Majorant | None:
    """A rigorous bound |expr| <= sum_i C_i t^n_i exp(a_i t + b_i t^2), or None where no rule gives one.

    Parameters
    ----------
    expr : expression in x; other free symbols may only occur where they cannot matter (inside tanh, say)
    x : one variable: t = |x| on the given side. Several: t = (x_1^2 + ... + x_r^2)^(1/2), `side` has no meaning.
    side : 1 for x -> oo, -1 for x -> -oo

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from sympy import exp, tanh
    >>> majorant(z*tanh(z) + exp(z/2), z).terms
    (GrowthTerm(C=Fraction(1, 1), n=Fraction(1, 1), a=Fraction(0, 1), b=Fraction(0, 1)), \
GrowthTerm(C=Fraction(1, 1), n=Fraction(0, 1), a=Fraction(1, 2), b=Fraction(0, 1)))
    """
    return _on_side(expr, x, side) if isinstance(x, Symbol) else _in_all_directions(expr, tuple(x))


@kept(512)
def _on_side(expr: Expr, x: Symbol, side: int) -> Majorant | None:
    t = Dummy("t", positive=True)
    try:
        far, start = _resolved(expr, x, side)
        return MajorantRules((t,), monotone=True, start=start).majorant(far.xreplace({x: side * t}))
    except Unbounded:
        return None


def _in_all_directions(expr: Expr, variables: tuple[Symbol, ...]) -> Majorant | None:
    try:
        return MajorantRules(variables, monotone=False).majorant(expr)
    except Unbounded:
        return None


def local_majorant(expr: Expr, x: Symbol, point: Expr, side: int) -> Majorant | None:
    """The same bound in t = 1/|x - point|, t -> oo: how fast expr may blow up next to `point`, on one side.

    >>> from hermitex.symbols import z
    >>> from sympy import Abs, log
    >>> local_majorant(log(Abs(z)), z, 0, 1).terms[0].n < 1
    True
    """
    t = Dummy("t", positive=True)
    try:
        return MajorantRules((t,), monotone=True).majorant(expr.xreplace({x: point + side / t}))
    except Unbounded:
        return None


def majorant_tail(bound: Majorant, L: Fraction, *, weight: int = 0, plain: bool = False) -> Fraction | None:
    """A bound on int_L^oo t^weight bound(t) phi(t) dt, without phi where `plain`; None where there is none.

    With h(t) = C t^n exp(a t - beta t^2)/sqrt(2 pi) decreasing at the logarithmic rate s(t) = 2 beta t - a - n/t, which
    grows with t, int_L^oo h <= h(L)/s(L).

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> majorant_tail(majorant(z**2, z), Fraction(10)) < Fraction(1, 10**20)
    True
    """
    if bound.start > L or L < 1:
        return None
    total = ZERO
    for term in bound.terms:
        piece = _term_tail(term._replace(n=term.n + weight), L, ZERO if plain else Fraction(1, 2))
        if piece is None:
            return None
        total += piece
    return total if plain else total * above(1 / sp.sqrt(2 * sp.pi))


def _term_tail(term: GrowthTerm, L: Fraction, half: Fraction) -> Fraction | None:
    """int_L^oo C t^n exp(a t + (b - half) t^2) dt, bounded above."""
    beta = half - term.b
    if beta < 0:
        return None
    if beta == 0 and term.a == 0:
        return term.C * power_above(L, term.n + 1) / -(term.n + 1) if term.n < -1 else None
    n = max(term.n, ZERO)  # t^n <= L^n on the tail where n < 0: the rate below is then that of the exponential
    rate = 2 * beta * L - term.a - n / L
    exponent = term.a * L - beta * L * L
    if rate <= 0 or exponent > _USELESS:
        return None
    bits = term.C.numerator.bit_length() - term.C.denominator.bit_length() + 1
    if abs(bits) > _LONG or exponent < -_USELESS:  # such products take seconds, and `exp_above` falls no further: powers of 2 do
        bits += ceil(exponent * (_LOG2E + Fraction(1 if exponent > 0 else -1, 1000)))
        return Fraction(2) ** max(bits, -_LONG) * power_above(L, term.n) / rate
    return term.C * power_above(L, term.n) * exp_above(exponent) / rate


# -- switches ----------------------------------------------------------------------------------------------------------
def _resolved(expr: Expr, x: Symbol, side: int) -> tuple[Expr, Fraction]:
    """`expr` with each Piecewise replaced by the branch that holds at the end of this side, and from where it holds."""
    start, swap = ONE, {}
    for piecewise in expr.atoms(sp.Piecewise):
        found = _far_branch(piecewise, x, side)
        if found is not None:
            swap[piecewise], start = found[0], max(start, found[1])
    return expr.xreplace(swap), start


def _far_branch(piecewise: sp.Piecewise, x: Symbol, side: int) -> tuple[Expr, Fraction] | None:
    """The last piece on the side, and a rational beyond its exact end point."""
    try:
        found = pieces(piecewise, x)
        last = found[-1] if side > 0 else found[0]
        end = last.lo if side > 0 else last.hi
        return last.expr, ONE if end.is_infinite else above(abs(end))
    except (NoClosedForm, AssumptionNeeded, Unbounded):
        return None
