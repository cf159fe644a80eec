"""int_{-L}^{L} f phi = sum over panels: a window from the growth of f, and pieces on which it is analytic.

The end points are exact expressions and each panel has its own switch-free branch, so neither mpmath nor ball
arithmetic ever meets a kink.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import sympy as sp
from sympy import Dummy, Expr, Rational, Symbol

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.symbolic.bounds.integrability import certainly_nonzero, dangers
from hermitex.symbolic.breaks.monotone import by_order
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.conditioning import cholesky
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.existence_check import require_existence
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.growth import Majorant, majorant, majorant_tail
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.terms import linear


class Panel(NamedTuple):
    """`expr` (free of switches) on (lo, hi); `rough` says at which ends it may fail to be analytic."""

    lo: Expr
    hi: Expr
    expr: Expr
    rough: tuple[bool, bool]


class TailWindow(NamedTuple):
    """[-L, L] and a bound on what lies outside it."""

    L: Fraction
    tail: Fraction


def window(expr: Expr, x: Symbol, bits: int) -> TailWindow:
    """The least half-integer L with int_{|x| > L} |expr| phi <= 2^-bits, proved.

    Raises
    ------
    NoClosedForm : no growth bound is known for the expression, or it does not make the tail finite.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> window(z**4, z, 53).L
    Fraction(19, 2)
    """
    bounds = [majorant(expr, x, side) for side in (1, -1)]
    if None in bounds:
        raise NoClosedForm(expr, "no growth bound is known for it, so the tail of the integral is not bounded")
    return _smallest([b for b in bounds if b is not None], bits, 1, expr)


def ball(expr: Expr, variables: tuple[Symbol, ...], bits: int) -> TailWindow:
    """The radius of a ball outside which the Gaussian integral of |expr| is at most 2^-bits, proved."""
    bound = majorant(expr, variables)
    if bound is None:
        raise NoClosedForm(expr, "no growth bound is known for it, so the tail of the integral is not bounded")
    return _smallest([bound], bits, len(variables), expr)


def _smallest(bounds: list[Majorant], bits: int, dimension: int, expr: Expr) -> TailWindow:
    goal = Fraction(1, 2**bits)

    def tail(L: Fraction) -> Fraction | None:
        checkpoint("looking for a window")
        parts = [majorant_tail(b, L, dimension=dimension) for b in bounds]
        return None if None in parts else sum((p for p in parts if p is not None), Fraction(0))

    L = Fraction(4)
    while (found := tail(L)) is None or found > goal:
        L *= 2
        if L > 2**2000:
            raise NoClosedForm(expr, "its growth bound leaves no finite tail")
    low = L / 2
    while L - low > Fraction(1, 2):  # halving: the tail decreases with L
        middle = Fraction(((low + L) / 2 * 2).__floor__(), 2)
        found = tail(middle) if middle not in (low, L) else None
        if middle in (low, L):
            break
        low, L = (low, middle) if found is not None and found <= goal else (middle, L)
    return TailWindow(L, tail(L) or Fraction(0))


def panels(expr: Expr, x: Symbol, L: Fraction) -> list[Panel]:
    """Consecutive panels of [-L, L] on each of which the branch of expr is analytic inside.

    Raises
    ------
    NoClosedForm, AssumptionNeeded : a switch whose place is not found exactly.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from sympy import Max
    >>> [(p.lo, p.hi, p.expr) for p in panels(Max(0, z), z, Fraction(9))]
    [(-9, 0, 0), (0, 9, z)]
    """
    lo, hi = -Rational(L.numerator, L.denominator), Rational(L.numerator, L.denominator)
    found: list[Panel] = []
    for piece in pieces(expr, x, lo, hi):
        inner = [p for p in breakpoints(piece.expr, x, window=(piece.lo, piece.hi)) if p not in (piece.lo, piece.hi)]
        ends = _graded([piece.lo, *inner, piece.hi])
        for a, b in pairwise(ends):
            found.append(Panel(a, b, piece.expr, (rough_at(piece.expr, x, a), rough_at(piece.expr, x, b))))
    return found


def _graded(ends: list[Expr]) -> list[Expr]:
    """A slowly decaying integrand has a wide window: beyond 64 each panel is 16 times as far as the last."""
    found = list(ends)
    for side in (1, -1):
        far = max(side * end for end in (ends[0], ends[-1]))
        mark = sp.Integer(64)
        while mark * sp.Rational(3, 2) < far:
            if ends[0] < side * mark < ends[-1] and side * mark not in ends:
                found.append(side * mark)
            mark *= 16
    return sorted(found) if len(found) > len(ends) else found


def weighted(expr: Expr, x: Symbol) -> Expr:
    """expr*exp(-x^2/2), exponents merged where SymPy merges them: what cancels in the exponent must cancel."""
    return expr * sp.exp(-(x**2) / 2)


def rough_at(expr: Expr, x: Symbol, point: Expr) -> bool:
    """May the switch-free expr fail to be analytic at `point`? (False is certain.)"""
    if x not in expr.free_symbols:
        return False
    return not all(certainly_nonzero(d.xreplace({x: point})) for d in dangers(expr, (x,), rough=True))


def from_end(expr: Expr, x: Symbol, end: Expr, side: int) -> tuple[Expr, Symbol]:
    """expr at x = end + side*s as an expression of s > 0, in which s is never hidden in a difference."""
    s = Dummy("s", positive=True)
    moved = expr.xreplace({x: end + side * s})
    sums = {a: sp.expand(a) for a in moved.atoms(sp.Add) if end != 0 and s in a.free_symbols and a.is_polynomial(s)}
    return moved.xreplace(sums), s


# -- many variables, one at a time -------------------------------------------------------------------------------------
@kept(256)
def nested(node: Expectation) -> Expr:
    """E over several variables as E over the first of E over the rest; inner closed forms put in where they are found.

    Correlated variables are written in independent ones first (Cholesky).
    """
    body, variables = whitened(node)
    first, *rest = sorted(variables, key=lambda v: _difficulty(body, v), reverse=True)
    for v in rest:
        body = _integrated(Expectation(body, sp.Tuple(v)))
    return Expectation(body, sp.Tuple(first))


def by_terms(expr: Expr) -> Expr:
    """Averages over several variables with a switch of their order, |tanh(z1) - tanh(z2)|, as sums of those of its terms.

    Of each term all variables but one are integrated in closed form. An average of which a term does not exist stays.
    """
    def split(node: Expectation) -> Expr:
        body, variables = node.open()
        ordered = by_order(body, variables)
        if ordered == body:
            return node
        terms = linear(node.with_body(ordered, variables))
        try:
            for term in terms.atoms(Expectation):
                require_existence(term)
        except HermitexError:
            return node
        return terms

    return expr.replace(lambda e: isinstance(e, Expectation) and len(e.bound) > 1, split)


def whitened(node: Expectation) -> tuple[Expr, tuple[Symbol, ...]]:
    """The integrand over independent standard normals."""
    body, variables = node.open()
    body = _factorwise(body)
    if node.independent:
        return body, variables
    # The most difficult variable stands for itself, so that the others can be integrated in closed form.
    order = sorted(range(len(variables)), key=lambda i: _difficulty(body, variables[i]), reverse=True)
    lower, ordered = cholesky(node.covariance.extract(order, order)), [variables[i] for i in order]
    swap = {v: sum((lower[i, j] * ordered[j] for j in range(i + 1)), sp.Integer(0)) for i, v in enumerate(ordered)}
    return body.xreplace(swap), variables


def _factorwise(body: Expr) -> Expr:
    """sign(u v) = sign(u) sign(v) and |u v| = |u| |v|: each factor then has its kinks in its own variable."""
    swap = {f: sp.Mul(*(f.func(a) for a in f.args[0].args)) for f in body.atoms(sp.sign, sp.Abs) if f.args[0].is_Mul}
    return body.xreplace(swap)


def _difficulty(body: Expr, v: Symbol) -> int:
    """Functions with v inside that no exact rule knows; the most difficult variable is integrated last."""
    hard = (sp.tanh, sp.log, sp.Pow, sp.coth, sp.sech)
    return sum(1 for f in sp.preorder_traversal(body)
               if isinstance(f, hard) and v in f.free_symbols and not (isinstance(f, sp.Pow) and f.exp.is_Integer
                                                                       and f.exp > 0 and f.base.is_polynomial()))


def _integrated(node: Expr) -> Expr:
    """The closed form of an inner expectation, if one is found at once."""
    if not isinstance(node, Expectation):
        return node
    try:
        from hermitex.symbolic.integrals import closed_form, constants_named

        short, constants = constants_named(node)
        with attempt(3):
            return closed_form(short).xreplace(constants)
    except BudgetExceeded:
        checkpoint("integrating an inner expectation")
    except (HermitexError, ImportError):
        pass
    return node
