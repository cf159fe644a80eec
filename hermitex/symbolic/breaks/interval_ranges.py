"""u((lo, hi)) is within [low, high]: a cheap enclosure of a function over an interval, by rational interval arithmetic.

It only bounds how many periods or integers have to be looked at, so it may be wide; it is never too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable

from sympy import (
    Expr,
    Rational,
    S,
    Symbol,
    acos,
    asin,
    asinh,
    atan,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    log,
    oo,
    sech,
    sin,
    sinh,
    tanh,
)

from hermitex.symbolic.budget import checkpoint

Interval = tuple[Expr, Expr]
_EVERYTHING: Interval = (-oo, oo)
_BITS, _EXPONENT = 5000, 1000  # of a constant, and of a power, that are written out
_INCREASING = (exp, tanh, erf, atan, sinh, asinh)
#: ends of functions of a real number, whatever it is
BOUNDED: dict[type, Interval] = {
    sin: (S(-1), S(1)), cos: (S(-1), S(1)), tanh: (S(-1), S(1)), erf: (S(-1), S(1)), erfc: (S(0), S(2)),
    atan: (S(-2), S(2)), asin: (S(-2), S(2)), acos: (S(0), S(4)), sech: (S(0), S(1)), exp: (S(0), oo), cosh: (S(1), oo),
}


def bounds(u: Expr, x: Symbol, window: Interval) -> Interval:
    """Rational (or infinite) low and high with low <= u(x) <= high for x in the window.

    Examples
    --------
    >>> from sympy import tanh, Symbol
    >>> x = Symbol('x', real=True)
    >>> bounds(2*x + 1, x, (S(-1), S(3)))
    (-1, 7)
    >>> bounds(3*tanh(x), x, (-oo, oo))
    (-3, 3)
    """
    checkpoint("bounding a range")
    if x not in u.free_symbols:
        return _constant(u)
    if u == x:
        return _constant(window[0])[0], _constant(window[1])[1]
    if u.is_Add:
        parts = [bounds(a, x, window) for a in u.args]
        return _sum(p[0] for p in parts), _sum(p[1] for p in parts)
    if u.is_Mul:
        low, high = S.One, S.One
        for a in u.args:
            low, high = _product((low, high), bounds(a, x, window))
        return low, high
    if u.is_Pow and not isinstance(u, exp):
        return _power(bounds(u.base, x, window), u.exp, x in u.exp.free_symbols)
    if len(u.args) == 1:
        return _function(type(u), bounds(u.args[0], x, window))
    return _EVERYTHING


def _constant(c: Expr) -> Interval:
    if c.is_Rational or c in (oo, -oo):
        return c, c
    known = c.evalf(30) if not c.free_symbols and c.is_real else None
    if known is None or not known.is_Float or abs(known._mpf_[2]) > _BITS:
        return _EVERYTHING
    value = Rational(str(known))
    slack = (abs(value) + 1) * Rational(1, 10**20)
    return value - slack, value + slack


def _sum(ends: Iterable[Expr]) -> Expr:
    return sum(ends, S.Zero)


def _product(a: Interval, b: Interval) -> Interval:
    corners = [S.Zero if p.is_zero or q.is_zero else p*q for p in a for q in b]
    return min(corners), max(corners)


def _power(base: Interval, e: Expr, moving: bool) -> Interval:
    low, high = base
    if moving or not e.is_Rational or abs(e) > _EXPONENT:
        return (S.Zero, oo) if low >= 0 and e.is_number and e.is_real else _EVERYTHING
    if e.is_Integer and e > 0:
        corners = [low**e, high**e]
        least = S.Zero if e % 2 == 0 and low <= 0 <= high else min(corners)
        return least, max(corners)
    if e < 0:
        low, high = _power(base, -e, False)
        if low <= 0 <= high:
            return (S.Zero, oo) if low == 0 else _EVERYTHING
        return _invert(high), _invert(low)
    high = oo if high is oo else S(max(high, 0)) + 1                     # principal fractional power: 0 <= u**e
    return S.Zero, oo if high is oo else high**int(e + 1)


def _invert(v: Expr) -> Expr:
    return S.Zero if v in (oo, -oo) else 1/v


def _function(kind: type, inner: Interval) -> Interval:
    low, high = BOUNDED.get(kind, _EVERYTHING)
    if kind in _INCREASING or (kind is log and inner[0] > 0):
        ends = [v if v in (oo, -oo) else S(kind(v)) for v in inner]
        low = max(low, _constant(ends[0])[0]) if inner[0] is not -oo else low
        high = min(high, _constant(ends[1])[1]) if inner[1] is not oo else high
    return low, high
