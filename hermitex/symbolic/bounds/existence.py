"""E|f|^p = E_u E_v|f|^p (Tonelli): infinite over several variables where it is infinite along a set of lines.

Two families of lines fill the space: those parallel to an axis, v free and the others fixed, and the rays t u from the
origin, with the weight t^(n-1) of polar coordinates. What is decided on a line by `integrability` holds on its neighbours
unless the numbers of the line are special; those here have large prime denominators, and two lines are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sympy import Dummy, Expr, I, Rational, S, Symbol, nan, zoo

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
    for turn in range(2):
        rays: list[tuple[Expr | None, Symbol]] = []
        for prime in _PRIMES:
            u = {v: t*_place(i, prime)*(-1 if turn and i % 2 else 1) for i, v in enumerate(variables)}
            along = _real(expr, u)
            rays.append((None if along is None else along*t**(n - 1), t))
        checkpoint("asking whether an expectation exists")
        yield rays


def _place(i: int, prime: int) -> Expr:
    return Rational(_PLACES[i % len(_PLACES)], prime) + (S(i // len(_PLACES))*Rational(101, prime))

