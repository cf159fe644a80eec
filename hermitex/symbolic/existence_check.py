"""E f exists if E|f| is finite over all variables of the node at once; else the node is refused, for every question about it.

Integrated one by one, the variables may hide it: E[z1/z2] does not exist, though E_z1[z1/z2] = 0 for every z2. Terms that may exist
only together stay one term: (1 - cos(a z))/z^2 has an average, neither 1/z^2 nor cos(a z)/z^2 has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Dummy, Expr, Symbol, log
from sympy.core.function import AppliedUndef

from hermitex.errors import Divergent, HermitexError, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.bounds.integrability import dangers, integrable, tempered
from hermitex.symbolic.bounds.quotients import HOELDER, without_moderate_quotients
from hermitex.symbolic.budget import kept
from hermitex.symbolic.conditioning import independent
from hermitex.symbolic.divergence import infinite_far_out, masses
from hermitex.symbolic.gaussian import Expectation, bind
from hermitex.symbolic.indexed_sums import ArraySum


def require_existence(node: Expectation) -> None:
    """Raise `Divergent` where the average of |f| is known to be infinite.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z1, z2
    >>> require_existence(E(z1*z2, z1, z2))
    >>> require_existence(E(z1/z2, z1, z2))
    Traceback (most recent call last):
    ...
    hermitex.errors.Divergent: E(z1/z2, z1, z2) does not exist: the integrand is not absolutely integrable
    """
    if exists(node) is False:
        raise Divergent(node, "the integrand is not absolutely integrable")


def require_falling_terms(formula: Expr) -> None:
    """Raise `Divergent` where an average over a countable law in a formula is known to be infinite."""
    if not formula.has(ArraySum):
        return
    for average in formula.atoms(Expectation):
        if average.body.has(ArraySum) and not average.free_symbols:
            require_existence(average)
    probabilities = masses(formula)
    for node in formula.atoms(ArraySum) - probabilities:
        if not node.free_symbols and infinite_far_out(node, (), probabilities):
            raise Divergent(node, "its terms do not fall far out")


def exists(node: Expectation) -> bool | None:
    """Is the average of |f| finite? None where that is not known, as where inner nodes may cancel what would be infinite.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> exists(E((1 - 1/(1 + z**2))/z**2, z)), exists(E(1/(z**2 + z**4), z))
    (True, False)
    """
    found = exists_for_most(node)
    if found is not False or not any(a.has(Expectation) for a in node.args):
        return found
    try:
        again = settled(node)
        if not isinstance(again, Expectation):
            return None if again.has(Expectation) else True
        if any(len(n.bound) > 1 or n.body.has(Expectation) for n in again.body.atoms(Expectation)):
            return exists_for_most(again) or None  # a number of one over several variables takes seconds
        body, variables = independent(again)
        return integrable(body, variables)
    except HermitexError:
        return None


def exists_on_line(node: Expectation) -> bool | None:
    """The same for a node over one variable, on which inner nodes may depend.

    Raises
    ------
    NoClosedForm : its existence depends on inner nodes, and it is not known if they cancel.
    """
    found = exists_for_most(node)
    if found is None:
        body, (x,) = node.opened()
        return integrable(body, x)
    found = found or exists(node)
    if found is None:
        raise NoClosedForm(node, "whether it exists hangs on averages inside it, which may cancel")
    return found


def settled(node: Expr) -> Expr:
    """The average with those inside it in their normal form, in which related ones meet and may cancel.

    Only if its existence depends on them; an average that exists for all their values stays as it is.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, z1
    >>> from sympy import tanh
    >>> settled(E((E(tanh(z1)**2) - 1 + E(z1*tanh(z1)))/z**2, z))
    0
    """
    if not isinstance(node, Expectation) or not node.body.has(Expectation) or exists_for_most(node) is True:
        return node
    body, variables = node.open()
    return node.with_body(hooks.normal_form(body), variables)


@kept(1024)
def exists_for_most(node: Expectation) -> bool | None:
    """The same with any numbers for the inner nodes: True holds for all of them, False not where they cancel."""
    if node.body.has(AppliedUndef) or any(n.free_symbols & set(node.bound) for n in node.body.atoms(Expectation)):
        return None
    try:
        body, variables = node.opened() if node.independent else independent(node)
        body = body.xreplace({n: Dummy(real=True) for n in body.atoms(Expectation)})
        if body.has(ArraySum):
            return False if infinite_far_out(body, variables, masses(body)) else None
        found = integrable(body, variables[0] if len(variables) == 1 else variables)
        if found is None and len(variables) > 1:  # z1^2/(z1^2 + z2^2) is bounded, though it has no value at 0
            rests = (without_moderate_quotients(t, variables) for t in Add.make_args(body))
            return all(integrable(g, variables, HOELDER) is True for g in rests) or None
        return found
    except HermitexError:
        return None


# -- of sums ----------------------------------------------------------------------------------------------------------
def kept_together(terms: Sequence[Expr], variables: tuple[Symbol, ...], cov: Any = None) -> list[Expr]:
    """The terms; terms that are not known to exist alone are added up.

    Examples
    --------
    >>> from sympy import Symbol, cos, tanh
    >>> x, a = Symbol("x", real=True), Symbol("a", real=True)
    >>> kept_together([1/x**2, tanh(x), -cos(a*x)/x**2], (x,))
    [tanh(x), -cos(a*x)/x**2 + x**(-2)]
    """
    if len(terms) < 2:
        return list(terms)
    alone = {t: _exists_alone(t, variables, cov) for t in terms}
    lost = False in alone.values()  # then whatever is not proved to exist may be what it cancels against
    joined = [t for t in terms if not alone[t] and (lost or may_have_pole(t, variables))]
    return list(terms) if len(joined) < 2 else [*(t for t in terms if t not in joined), Add(*joined)]


def _exists_alone(term: Expr, variables: tuple[Symbol, ...], cov: Any) -> bool | None:
    free = tuple(v for v in variables if v in term.free_symbols)
    if all(tempered(term, v) for v in free):
        return True
    node = bind(term, variables, cov)
    return exists_for_most(node) if isinstance(node, Expectation) else True


def may_have_pole(term: Expr, variables: tuple[Symbol, ...]) -> bool:
    """Not those of logarithms: they are integrable where they become infinite, if the other factors are bounded."""
    return bool(dangers(term.replace(log, lambda u: u), variables))
