"""E over several variables as E over one of E over the others, inner closed forms put in where they are found.

A countable law stands outside of the averages: E_z Sum_n p_n g(n, z) = Sum_n p_n E_z g(n, z).
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from sympy import Abs, Add, Expr, Heaviside, Max, Min, Mul, S, Symbol, oo, sign

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.breaks.interval_ranges import bounds
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.conditioning import cholesky
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.existence_check import require_existence
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.symbolic.terms import factorwise, linear


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


def by_order(body: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """The body with |G(v) - G(w)| as (G(v) - G(w)) sign(v - w), and sign, Heaviside, Max and Min likewise; G(w) + G(v) for odd G.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2
    >>> by_order(Abs(tanh(z1) - tanh(z2)), (z1, z2))
    (tanh(z1) - tanh(z2))*sign(z1 - z2)
    """
    def plain(e: Expr) -> Expr:
        if isinstance(e, (Max, Min)):
            a, b = e.args
            order = _order(a - b, variables)
            if order is None:
                return e
            first = order if isinstance(e, Max) else -order
            return a*Heaviside(first) + b*Heaviside(-first)
        order = _order(e.args[0], variables)
        if order is None:
            return e
        return e.args[0]*sign(order) if isinstance(e, Abs) else e.func(order)

    kinds = (Abs, sign, Heaviside, Max, Min)
    return body.replace(lambda e: isinstance(e, kinds) and (len(e.args) == 2 or isinstance(e, kinds[:3])), plain)


def _order(u: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """v - w, or v + w, or minus that, which has the sign of u everywhere; None where no such is seen."""
    if not isinstance(u, Add) or u.has(*SWITCHES):
        return None
    pair = [v for v in variables if v in u.free_symbols]
    if len(pair) != 2:
        return None
    v, w = pair
    turned = next((s for s in (1, -1) if u.xreplace({v: s*w, w: s*v}) == -u), None)
    slope = u.diff(v)
    if turned is None or slope.has(w) or not slope.has(v):  # an affine one is known as such
        return None
    low, high = bounds(slope, v, (-oo, oo))
    return (v - turned*w)*(S.One if low >= 0 else S.NegativeOne) if low >= 0 or high <= 0 else None


def whitened(node: Expectation) -> tuple[Expr, tuple[Symbol, ...]]:
    """The integrand over independent standard normals."""
    body, variables = node.open()
    body = factorwise(body)
    if node.independent:
        return body, variables
    # The most difficult variable stands for itself, so that the others can be integrated in closed form.
    order = sorted(range(len(variables)), key=lambda i: _difficulty(body, variables[i]), reverse=True)
    lower, ordered = cholesky(node.covariance.extract(order, order)), [variables[i] for i in order]
    swap = {v: sum((lower[i, j] * ordered[j] for j in range(i + 1)), sp.Integer(0)) for i, v in enumerate(ordered)}
    return body.xreplace(swap), variables


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


# -- sums over countable laws ------------------------------------------------------------------------------------------
def sums_outside(expr: Expr) -> Expr:
    """`expr` with its sums over countable laws before the averages around them; one that is not linear there stays within."""
    def moved(node: Expectation) -> Expr:
        body, variables = node.open()
        return Add(*(_outside(node, term, variables) for term in Add.make_args(body)))

    return expr.replace(lambda e: isinstance(e, Expectation) and e.body.has(ArraySum), moved)


def _outside(node: Expectation, term: Expr, variables: Sequence[Symbol]) -> Expr:
    constant, rest = term.as_independent(*variables, as_Add=False)
    factors = Mul.make_args(rest)
    sums = [f for f in factors if f.has(ArraySum)]
    if len(sums) != 1 or not isinstance(sums[0], ArraySum):
        return node.with_body(term, variables)
    weight, averaged = sums[0].body.as_independent(*variables, as_Add=False)
    inner = node.with_body(averaged*Mul(*(f for f in factors if f is not sums[0])), variables)
    return constant*ArraySum(weight*sums_outside(inner), sums[0].index)
