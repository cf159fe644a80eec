"""E f(|z|^2) = sqrt(2 pi) 2^(-n/2)/Gamma(n/2) E[|u|^(n-1) f(u^2)]: what depends on n normals through their length only.

The length of n independent standard normals has the chi density; one standard normal u carries it with the weight
|u|^(n-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Abs, Add, Dummy, Expr, S, Symbol, gamma, pi, sqrt

from hermitex.symbolic.series.polynomials import poly_of
from hermitex.symbolic.sizes import MAX_TERMS, polynomial_size


class _NotRadial(Exception):
    """A part depends on the variables otherwise."""


def radial(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, Symbol] | None:
    """(g, u) with E[body] = E[g(u)], u standard normal, or None where body is no function of sum z_i^2.

    Parameters
    ----------
    body : expression in the variables, independent standard normals

    Examples
    --------
    >>> from hermitex.symbols import z, z1, z2
    >>> g, u = radial(1/(1 + z1**2 + z2**2), (z1, z2))
    >>> g.xreplace({u: z})
    sqrt(2)*sqrt(pi)*Abs(z)/(2*(z**2 + 1))
    >>> radial(z1**2 + 2*z2**2, (z1, z2)) is None
    True
    """
    n = len(variables)
    if n < 2 or not all(v in body.free_symbols for v in variables):
        return None
    u = Dummy("length", real=True)
    try:
        profile = _of_length(body, tuple(variables), u)
    except _NotRadial:
        return None
    return sqrt(2*pi)*sqrt(2)**-n/gamma(S(n)/2)*Abs(u)**(n - 1)*profile, u


def _of_length(e: Any, variables: tuple[Symbol, ...], u: Symbol) -> Any:
    """`e` with u^2 for the square of the length."""
    if not e.free_symbols & set(variables):
        return e
    if isinstance(e, Add):
        inside = [a for a in e.args if a.is_polynomial(*variables)]
        rest = [_of_length(a, variables, u) for a in e.args if a not in inside]
        return Add(_polynomial(Add(*inside), variables, u), *rest)
    if not e.args:
        raise _NotRadial
    return e.func(*(_of_length(a, variables, u) for a in e.args))


def _polynomial(p: Expr, variables: tuple[Symbol, ...], u: Symbol) -> Expr:
    if polynomial_size(p, variables)[0] > MAX_TERMS:
        raise _NotRadial
    whole = poly_of(p, *variables)
    on_axis = {powers[0]: c for powers, c in whole.terms() if not any(powers[1:])}
    if any(k % 2 for k in on_axis):
        raise _NotRadial
    length = Add(*(v**2 for v in variables))
    if whole != poly_of(Add(*(c*length**(k//2) for k, c in on_axis.items())), *variables):
        raise _NotRadial
    return Add(*(c*u**k for k, c in on_axis.items()))
