"""E f exists if E|f| is finite over all variables of the node at once; else the node is refused, whatever is asked of it.

Integrated one by one, the variables may hide it: E[z1/z2] is no number, though E_z1[z1/z2] = 0 for every z2.
"""

from __future__ import annotations

from sympy import Dummy
from sympy.core.function import AppliedUndef

from hermitex.errors import Divergent, HermitexError
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.budget import kept
from hermitex.symbolic.conditioning import independent
from hermitex.symbolic.gaussian import Expectation


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


def exists(node: Expectation) -> bool | None:
    """Is the average of |f| finite? None where that is not known, and where it is infinite only for most values of inner nodes.

    Examples
    --------
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> exists(E((1 - 1/(1 + z**2))/z**2, z)), exists(E(1/(z**2 + z**4), z))
    (True, False)
    """
    found = exists_for_most(node)
    return None if found is False and any(a.has(Expectation) for a in node.args) else found


@kept(1024)
def exists_for_most(node: Expectation) -> bool | None:
    """The same with any numbers for the inner nodes: True holds for all of them, False not where they cancel."""
    if node.body.has(AppliedUndef) or any(n.free_symbols & set(node.bound) for n in node.body.atoms(Expectation)):
        return None
    try:
        body, variables = independent(node)
        body = body.xreplace({n: Dummy(real=True) for n in body.atoms(Expectation)})
        return integrable(body, variables[0] if len(variables) == 1 else variables)
    except HermitexError:
        return None
