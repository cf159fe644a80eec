"""a z - b z -> z (a - b): what all terms of an integrand are multiplied by, before their sum."""

from __future__ import annotations

from sympy import Add, Expr, Mul


def factor_common(e: Expr) -> Expr:
    """A sum with what all of its terms are multiplied by before it: averages of one sum with different weights share it.

    >>> from sympy.abc import a, b, z
    >>> factor_common(a*z - b*z)
    z*(a - b)
    """
    if not isinstance(e, Add):
        return e
    first, *others = (Mul.make_args(t) for t in e.args)
    shared = [f for f in first if f.free_symbols and all(f in t for t in others)]
    return Mul(*shared, Add(*(Mul(*(f for f in t if f not in shared)) for t in (first, *others)))) if shared else e
