"""E[sum f_i] = sum E[f_i] where every E|f_i| is finite: terms that may exist only together stay one term.

(1 - cos(a z))/z^2 has an average, neither 1/z^2 nor cos(a z)/z^2 has one; exp(z^2) (1 - tanh(z^2)) has one, its terms have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Expr, Symbol, log

from hermitex.symbolic.bounds.integrability import dangers, tempered
from hermitex.symbolic.existence_check import exists_for_most
from hermitex.symbolic.gaussian import Expectation, bind


def kept_together(terms: Sequence[Expr], variables: tuple[Symbol, ...], cov: Any = None) -> list[Expr]:
    """The terms, of which those that are not known to exist alone are added up.

    Examples
    --------
    >>> from sympy import Symbol, cos, tanh
    >>> x, a = Symbol("x", real=True), Symbol("a", real=True)
    >>> kept_together([1/x**2, tanh(x), -cos(a*x)/x**2], (x,))
    [tanh(x), -cos(a*x)/x**2 + x**(-2)]
    """
    if len(terms) < 2:
        return list(terms)
    alone = {t: _exists(t, variables, cov) for t in terms}
    lost = False in alone.values()  # then whatever is not proved to exist may be what it cancels against
    joined = [t for t in terms if not alone[t] and (lost or _may_have_pole(t, variables))]
    return list(terms) if len(joined) < 2 else [*(t for t in terms if t not in joined), Add(*joined)]


def _exists(term: Expr, variables: tuple[Symbol, ...], cov: Any) -> bool | None:
    free = tuple(v for v in variables if v in term.free_symbols)
    if all(tempered(term, v) for v in free):
        return True
    node = bind(term, variables, cov)
    return exists_for_most(node) if isinstance(node, Expectation) else True


def _may_have_pole(term: Expr, variables: tuple[Symbol, ...]) -> bool:
    """Logarithms are none: they are integrable wherever they turn infinite, if what stands beside them is bounded."""
    return bool(dangers(term.replace(log, lambda u: u), variables))
