"""E f exists if E|f| is finite over all variables of the node at once; else the node is refused, whatever is asked of it.

Integrated one by one, the variables may hide it: E[z1/z2] is no number, though E_z1[z1/z2] = 0 for every z2.
"""

from __future__ import annotations

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
    if _diverges(node):
        raise Divergent(node, "the integrand is not absolutely integrable")


@kept(1024)
def _diverges(node: Expectation) -> bool:
    if node.body.has(Expectation) or node.body.has(AppliedUndef):  # inner nodes are asked on their own
        return False
    try:
        body, variables = independent(node)
        return integrable(body, variables[0] if len(variables) == 1 else variables) is False
    except HermitexError:
        return False
