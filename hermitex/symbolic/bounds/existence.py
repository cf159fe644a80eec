"""E|f|^p = E_u E_v|f|^p (Tonelli): infinite over several variables where it is infinite along a set of lines.

Two families of lines fill the space: those parallel to an axis, v free and the others fixed, and the rays t u from the
origin, with the weight t^(n-1) of polar coordinates. What is decided on a line by `integrability` holds on its neighbours
unless the numbers of the line are special; those here have large prime denominators, and two lines are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sympy import Dummy, Expr, Rational, S, Symbol

from hermitex.symbolic.budget import checkpoint

Decide = Callable[[Expr, Symbol], bool | None]

_PLACES = (577, -1223, 389, -811, 1609, -263, 947)  # over 1009: about 0.6, -1.2, 0.4, ...
_PRIMES = (1009, 1511)
_SIZES = (Rational(53, 1009), Rational(613, 1009), Rational(5501, 1009))  # of parameters: small, middling, large


def infinite_on_lines(expr: Expr, variables: tuple[Symbol, ...], decide: Decide) -> bool:
    """Is the average of |expr| proved infinite along lines? (False: not found to be.)

    Parameters
    ----------
    variables : independent standard normals
    decide : of one variable, whether the average exists; None where that is not known

    Examples
    --------
    >>> from hermitex.symbolic.growth import integrable
    >>> from hermitex.symbols import z1, z2
    >>> infinite_on_lines(z1/z2, (z1, z2), integrable), infinite_on_lines(z1*z2, (z1, z2), integrable)
    (True, False)
    """
    given = expr.free_symbols - set(variables)
    draws = list(_parameters(sorted(given, key=str)))
    return bool(draws) and all(_infinite(expr.xreplace(d), variables, decide) for d in draws)


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
    return any(all(decide(line, x) is False for line, x in pair) for pair in _lines(expr, variables))


def _lines(expr: Expr, variables: tuple[Symbol, ...]) -> Iterator[list[tuple[Expr, Symbol]]]:
    """Pairs of neighbouring lines: the integrand on each, and its coordinate."""
    n = len(variables)
    for v in variables:
        checkpoint("asking whether an expectation exists")
        yield [(expr.xreplace({u: _place(i, prime) for i, u in enumerate(variables) if u != v}), v) for prime in _PRIMES]
    t = Dummy("t", real=True)
    for turn in range(2):
        rays = []
        for prime in _PRIMES:
            u = {v: t*_place(i, prime)*(-1 if turn and i % 2 else 1) for i, v in enumerate(variables)}
            rays.append((expr.xreplace(u)*t**(n - 1), t))
        checkpoint("asking whether an expectation exists")
        yield rays


def _place(i: int, prime: int) -> Expr:
    return Rational(_PLACES[i % len(_PLACES)], prime) + (S(i // len(_PLACES))*Rational(101, prime))

