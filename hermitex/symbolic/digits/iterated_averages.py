"""E over several variables as E over one of E over the others, inner closed forms put in where they are found.

A countable law goes outside of the averages: E_z Sum_n p_n g(n, z) = Sum_n p_n E_z g(n, z).
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from sympy import Add, Expr, Mul, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.conditioning import cholesky
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.symbolic.terms import factorwise


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


def whitened(node: Expectation) -> tuple[Expr, tuple[Symbol, ...]]:
    """The integrand over independent standard normals."""
    body, variables = node.open()
    body = factorwise(body)
    if node.independent:
        return body, variables
    # The most difficult variable is not mixed with others, so that these can be integrated in closed form.
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
    """`expr` with its sums over countable laws before the averages around them; a sum that does not enter linearly stays inside."""
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
