"""E f(|z|^2) = sqrt(2 pi) 2^(-n/2)/Gamma(n/2) E[|u|^(n-1) f(u^2)]: what depends on n normals through their length only.

The length of n independent standard normals has the chi density; one standard normal u carries it with the weight
|u|^(n-1). The direction is independent of it: of a factor that is a homogeneous polynomial p of degree d, what counts is
|z|^d E p/E |z|^d. A homogeneous integrand in two variables is an average over the circle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    factorial2,
    gamma,
    pi,
    sift,
    sign,
    sqrt,
)

from hermitex.symbolic.formula_size import MAX_TERMS, polynomial_size
from hermitex.symbolic.series.polynomials import poly_of


class _NotRadial(Exception):
    """A part depends on the variables otherwise."""


def radial(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, Symbol] | None:
    """(g, u) with E[body] = E[g(u)], u standard normal, or None if body is not a function of sum z_i^2.

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
    return _profile(body, tuple(variables), _of_length)


def over_directions(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, Symbol] | None:
    """The same for a polynomial times a function of sum z_i^2, if the average of each part over all directions is not 0.

    Examples
    --------
    >>> from hermitex.symbols import z, z1, z2
    >>> g, u = over_directions(z1**4/(1 + z1**2 + z2**2), (z1, z2))
    >>> g.xreplace({u: z})
    3*sqrt(2)*sqrt(pi)*z**4*Abs(z)/(16*(z**2 + 1))
    >>> over_directions(z1*z2/(1 + z1**2 + z2**2), (z1, z2)) is None
    True
    """
    def profile(body: Expr, variables: tuple[Symbol, ...], u: Symbol) -> Expr:
        directed, rest = sift(Mul.make_args(body), lambda a: bool(a.is_polynomial(*variables)), binary=True)
        return _averaged(Mul(*directed), variables, u)*_of_length(Mul(*rest), variables, u)

    return _profile(body, tuple(variables), profile)


def _profile(body: Expr, variables: tuple[Symbol, ...], of: Callable[[Expr, tuple[Symbol, ...], Symbol], Any],
             ) -> tuple[Expr, Symbol] | None:
    n = len(variables)
    if n < 2 or not all(v in body.free_symbols for v in variables):
        return None
    u = Dummy("length", real=True)
    try:
        profile = of(body, variables, u)
    except _NotRadial:
        return None
    return sqrt(2*pi)*sqrt(2)**-n/gamma(S(n)/2)*Abs(u)**(n - 1)*profile, u


def _averaged(p: Expr, variables: tuple[Symbol, ...], u: Symbol) -> Expr:
    """A polynomial averaged over all directions at the length |u|: z^a is prod (a_i - 1)!! u^|a|/(n (n + 2) ... (n + |a| - 2))."""
    if polynomial_size(p, variables)[0] > MAX_TERMS:
        raise _NotRadial
    means = dict[int, Expr]()
    for powers, c in poly_of(p, *variables).terms():
        mean = S.Zero if any(k % 2 for k in powers) else c*Mul(*(factorial2(k - 1) for k in powers))
        means[sum(powers)] = means.get(sum(powers), S.Zero) + mean
    if any(mean == 0 for mean in means.values()):  # whether that part exists would be seen no more
        raise _NotRadial
    return Add(*(mean*u**d/prod(range(len(variables), len(variables) + d, 2)) for d, mean in means.items()))


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


# -- homogeneous integrands -------------------------------------------------------------------------------------------
def over_circle(body: Expr, variables: Sequence[Symbol]) -> tuple[Expr, Symbol] | None:
    """E f = 2^(a/2) Gamma(1 + a/2)/(2 pi) int f(cos, sin) for f(r z) = r^a f(z) in two variables: (g, t) with E f = int_-1^1 g dt.

    The circle is taken as the edge of a square, on which algebraic functions remain algebraic: d(angle) = dt/(1 + t^2).
    """
    if len(variables) != 2 or body.is_polynomial(*variables):
        return None
    power = degree(body, variables)
    if power is None or not (power + 2).is_positive:
        return None
    t = Dummy("t", real=True)
    edges = [(s, t) for s in (S.One, -S.One)] + [(t, s) for s in (S.One, -S.One)]
    sides = Add(*(body.xreplace(dict(zip(variables, at, strict=True))) for at in edges))
    return 2**(power/2)*gamma(1 + power/2)/(2*pi)*sides*(1 + t**2)**(-1 - power/2), t


def degree(e: Expr, variables: Sequence[Symbol]) -> Expr | None:
    """The number a with e(r z) = r^a e(z) for r > 0; None where there is none, or the formula does not show it.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> degree(Max(z1, z2)*Abs(z1 - z2)**S.Half/(z1**2 + z2**2), (z1, z2)), degree(1 + z1, (z1, z2))
    (-1/2, None)
    """
    if e == 0 or e.free_symbols.isdisjoint(variables):
        return S.Zero
    if e in variables:
        return S.One
    below = [] if isinstance(e, Piecewise) else [degree(a, variables) for a in e.args]
    if not below or None in below:
        return None
    if isinstance(e, Mul):
        return Add(*below)
    if isinstance(e, Add | Max | Min):
        found = {d for a, d in zip(e.args, below, strict=True) if a != 0}
        return found.pop() if len(found) == 1 else None
    if isinstance(e, Pow):
        return e.exp*below[0] if e.exp.is_Rational else None
    if isinstance(e, Abs):
        return below[0]
    return S.Zero if isinstance(e, sign | Heaviside) or all(d == 0 for d in below) else None
