"""Integrals, SymPy's own or of a text, as averages over one normal: their ends may be unknowns and parameters.

    int_a^b f(x) dx = (b - a) E f(a + (b - a) Phi(z)),     int_a^oo f(x) dx = E[f(a + Phi(z)/Phi(-z))/Phi(-z)^2]
"""

from __future__ import annotations

from typing import Any

from sympy import Basic, Dummy, Expr, Integral, S, Symbol, erfc, sqrt

from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import E


def read_integrals(e: Any) -> Any:
    """The same formula with an average for each integral.

    >>> from sympy.abc import q, x
    >>> read_integrals(Integral(x**2, (x, 0, q)))
    q*E(q**2*(1 - erfc(sqrt(2)*x/2)/2)**2, x)
    """
    if not isinstance(e, Basic) or not e.has(Integral):
        return e
    return e.replace(lambda part: isinstance(part, Integral), _as_averages)


def _as_averages(node: Integral) -> Expr:
    body = node.function
    for x, *ends in node.limits:
        if len(ends) != 2:
            raise BadInput(f"{node} has no ends; write Integral(f, ({x}, a, b))")
        body = _averaged(body, x, *ends)
    return body


def _averaged(f: Expr, x: Symbol, low: Expr, high: Expr) -> Expr:
    """int_low^high f dx."""
    if low is S.NegativeInfinity and high is S.Infinity:
        return _averaged(f, x, low, S.Zero) + _averaged(f, x, S.Zero, high)
    if low is S.NegativeInfinity:
        return _averaged(f.xreplace({x: -x}), x, -high, S.Infinity)
    z = Dummy(x.name, real=True)
    below, above = erfc(-z/sqrt(2))/2, erfc(z/sqrt(2))/2
    if high is S.Infinity:  # dx = du/(1 - u)^2 at x = low + u/(1 - u)
        return E(f.xreplace({x: low + below/above})/above**2, z)
    return (high - low)*E(f.xreplace({x: low + (high - low)*below}), z)


__all__ = ["read_integrals"]
