"""E|f|^p = E_u E_v|f|^p (Tonelli): infinite over several variables where it is infinite along a set of lines.

Two families of lines fill the space: those parallel to an axis, v free and the others fixed, and the rays t u from the
origin, |u| = 1, with the weight t^(n-1) of polar coordinates. The decision of `integrability` on a line holds on its
neighbours unless the numbers of the line are special; ours have large prime denominators, and two lines are tried.
If f holds exponentials of quadratic forms z.H.z/2, the lines follow their steepest direction: rays near to it where
the largest eigenvalue of H is above 1, and parallels to it where it is 1: E|sinh(z1 z2)| is infinite along z1 = z2 + c only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import sympy as sp
from sympy import Add, Dummy, Expr, I, Matrix, Mul, Poly, Rational, S, Symbol, expand_mul, nan, zoo

from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.formula_size import EXPANDED, operations

Decide = Callable[[Expr, Symbol], bool | None]

_PLACES = (577, -1223, 389, -811, 1609, -263, 947)  # over 1009: about 0.6, -1.2, 0.4, ...
_PRIMES = (1009, 1511)  # denominators of two sets of places, which meet by no chance
_CLOSE = 1e-9  # of an eigenvalue to 1: below it the exact matrix tells
_SIZES = (Rational(53, 1009), Rational(613, 1009), Rational(5501, 1009))  # of parameters: small, middling, large


def infinite_on_lines(expr: Expr, variables: tuple[Symbol, ...], decide: Decide) -> bool:
    """Is the average of |expr| proved infinite along lines? (False: not found to be.)

    Parameters
    ----------
    variables : independent standard normals
    decide : of one variable, whether the average exists; None where that is not known

    Examples
    --------
    >>> from hermitex.symbolic.bounds.integrability import integrable
    >>> from hermitex.symbols import z1, z2
    >>> infinite_on_lines(z1/z2, (z1, z2), integrable), infinite_on_lines(z1*z2, (z1, z2), integrable)
    (True, False)
    """
    given = expr.free_symbols - set(variables)
    drawn = [f for d in _parameters(sorted(given, key=str)) if (f := _real(expr, d)) is not None]
    return bool(drawn) and all(_infinite(f, variables, decide) for f in drawn)


def _parameters(symbols: list[Symbol]) -> Iterator[dict[Symbol, Expr]]:
    """Numbers for the parameters, of several sizes and, where it is free, of both signs; nothing where one cannot be given."""
    if not symbols:
        yield {}
        return
    if any(s.is_integer or s.is_extended_real is False for s in symbols):
        return
    for size in _SIZES:
        for sign in (1, -1):
            signs = [1 if s.is_extended_nonnegative else -1 if s.is_extended_nonpositive else sign for s in symbols]
            yield {s: size*Rational(1009 + 17*k, 1009)*signs[k] for k, s in enumerate(symbols)}


def _infinite(expr: Expr, variables: tuple[Symbol, ...], decide: Decide) -> bool:
    return any(all(line is not None and decide(line, x) is False for line, x in pair) for pair in _lines(expr, variables))


def _real(expr: Expr, values: Mapping[Symbol, Expr]) -> Expr | None:
    """The expression with values put in; None where it is no longer real there, as sqrt(1 - rho^2) is not for rho > 1."""
    try:
        found = expr.xreplace(dict(values))
    except ValueError:  # Max and Min compare real numbers only
        return None
    return None if found.has(I, nan, zoo) and not expr.has(I, nan, zoo) else found


def _lines(expr: Expr, variables: tuple[Symbol, ...]) -> Iterator[list[tuple[Expr | None, Symbol]]]:
    """Pairs of neighbouring lines: the integrand on each (None: not real there), and its coordinate."""
    n = len(variables)
    for v in variables:
        checkpoint("asking whether an expectation exists")
        yield [(_real(expr, {u: _place(i, prime) for i, u in enumerate(variables) if u != v}), v) for prime in _PRIMES]
    t = Dummy("t", real=True)
    for units in _directions(n):
        yield [_ray(expr, variables, u, t) for u in units]
    for form in _forms(expr, variables):
        values, vectors = mp.eigsy(mp.matrix(form.applyfunc(float).tolist()))
        checkpoint("asking whether an expectation exists")
        if values[n - 1] > 1 + _CLOSE:
            steepest = [float(vectors[i, n - 1]) for i in range(n)]
            yield [_ray(expr, variables, _unit(_seen_from_pole(steepest, prime)), t) for prime in _PRIMES]
        elif values[n - 1] > 1 - _CLOSE:
            for d in (sp.eye(n) - form).nullspace():
                yield [(_real(expr, _parallel(variables, d, prime, t)), t) for prime in _PRIMES]


def _directions(n: int) -> Iterator[list[list[Expr]]]:
    """Pairs of neighbouring directions: a function may grow where some variables have opposite signs."""
    for turns in product((1, -1), repeat=min(n - 1, 2)):
        yield [_unit([_place(i, prime)*turns[i % 2] for i in range(n - 1)]) for prime in _PRIMES]


def rays(expr: Expr, variables: Sequence[Symbol]) -> Iterator[tuple[Expr, Symbol]]:
    """The expression on rays t u, t > 0, to both sides of the origin in each of these directions."""
    t = Dummy("t", positive=True)
    for unit, _ in _directions(len(variables)):
        for side in (1, -1):
            yield expr.xreplace({v: side*t*u for v, u in zip(variables, unit, strict=True)}), t


def _ray(expr: Expr, variables: tuple[Symbol, ...], unit: list[Expr], t: Symbol) -> tuple[Expr | None, Symbol]:
    along = _real(expr, {v: t*u for v, u in zip(variables, unit, strict=True)})
    return None if along is None else along*t**(len(unit) - 1), t


def _unit(place: list[Expr]) -> list[Expr]:
    """The rational point of the sphere that is seen from its pole (0, ..., 0, 1) at this place of the plane."""
    s = Add(*(p**2 for p in place))
    return [*(2*p/(s + 1) for p in place), (s - 1)/(s + 1)]


def _seen_from_pole(unit: list[float], prime: int) -> list[Expr]:
    """The reverse of `_unit`, near to it: a direction and its opposite are one line, and the lower one is taken."""
    sign = -1 if unit[-1] > 0 else 1
    return [Rational(round(sign*u/(1 + abs(unit[-1]))*prime) + 1, prime) for u in unit[:-1]]


def _parallel(variables: tuple[Symbol, ...], d: Matrix, prime: int, t: Symbol) -> dict[Symbol, Expr]:
    """t d/|d| + c, where c is orthogonal to d: the Gaussian weight along the line is that of t."""
    offset = Matrix([_place(i, prime) for i in range(len(variables))])
    offset -= d*(offset.dot(d)/d.dot(d))
    return {v: t*d[i]/sp.sqrt(d.dot(d)) + offset[i] for i, v in enumerate(variables)}


def _forms(expr: Expr, variables: tuple[Symbol, ...]) -> list[Matrix]:
    """The rational matrices H of the exponentials exp(z.H.z/2 + linear) that are factors in the terms of expr."""
    found: dict[Matrix, None] = {}
    if not expr.has(sp.exp, sp.sinh, sp.cosh) or operations(expr) > EXPANDED:
        return []
    opened = expr.replace(lambda f: isinstance(f, (sp.sinh, sp.cosh)), lambda f: f.rewrite(sp.exp))
    for term in Add.make_args(expand_mul(opened)):
        exponent = expand_mul(Add(*(f.args[0] for f in Mul.make_args(term) if isinstance(f, sp.exp))))
        if exponent.is_polynomial(*variables) and Poly(exponent, *variables).total_degree() == 2:
            form = sp.hessian(exponent, variables)
            if all(h.is_Rational for h in form):
                found[form.as_immutable()] = None
    return list(found)


def _place(i: int, prime: int) -> Expr:
    return Rational(_PLACES[i % len(_PLACES)], prime) + (S(i // len(_PLACES))*Rational(101, prime))

