"""E_z Sum_n p_n g(n, z) = Sum_n p_n E_z g(n, z): to be summed to N digits, a countable law stands outside of the averages."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, Mul, Symbol

from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum


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
