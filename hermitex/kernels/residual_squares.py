"""E f^2 - (E f)^2 - (E z f)^2 = E (f - E f - z E[z f])^2: a residual is computed as the square it is, not as a difference.

Pythagoras for the projections on 1 and z. If the residual is small (a saturated activation far from its centre) the
left side loses all its digits and may turn negative; the right side keeps them.
"""

from __future__ import annotations

from sympy import Add, Expr, Pow

from hermitex.symbolic.gaussian import Expectation


def square_residuals(expr: Expr) -> Expr:
    """`expr` with every such difference written as a square.

    >>> from sympy import tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> f = tanh(1 + z)
    >>> square_residuals(E(f**2, z) - E(f, z)**2)
    E((tanh(z + 1) - E(tanh(z + 1), z))**2, z)
    """
    if not expr.has(Expectation):
        return expr
    return expr.replace(lambda e: isinstance(e, Add), _one)


def _one(total: Add) -> Expr:
    for node in total.args:
        if not (isinstance(node, Expectation) and len(node.bound) == 1 and node.independent and _square(node.body)):
            continue
        body, (z,) = node.open()
        f = body.base
        rest, projection = list(total.args), f * 0
        rest.remove(node)
        for direction in (f * 0 + 1, z):
            mean = node.with_body(direction * f, (z,))
            if -(mean**2) in rest:
                rest.remove(-(mean**2))
                projection += mean * direction
        if projection != 0:
            return Add(node.with_body((f - projection) ** 2, (z,)), *rest)
    return total


def _square(body: Expr) -> bool:
    return isinstance(body, Pow) and body.exp == 2
