"""low <= c <= high with rationals of some 80 bits: constants, powers and exponentials rounded outwards."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp
from sympy import Expr

ZERO, ONE = Fraction(0), Fraction(1)


class Unbounded(Exception):
    """No rule bounds this expression."""


_SLACK = Fraction(1, 2**50)
_LEAST, _MOST = Fraction(-4000), Fraction(10**6)  # of the exponent of exp
FARTHEST = 8000  # binary digits on either side of the point: more do not help a bound


def above(value: Expr) -> Fraction:
    """A rational >= the constant `value`."""
    return _outwards(value, 1)


def below(value: Expr) -> Fraction:
    """A rational <= the constant `value`."""
    return _outwards(value, -1)


def _outwards(value: Expr, direction: int) -> Fraction:
    value = sp.sympify(value, strict=True)
    if value.is_Rational:
        return shortened(Fraction(int(value.p), int(value.q)), direction)
    if value.free_symbols:
        raise Unbounded
    number = value.evalf(25)
    if not number.is_Float or not number.is_finite:
        raise Unbounded
    sign, digits = (-1 if number < 0 else 1), number._mpf_[2] + number._mpf_[3]
    if abs(digits) > 2*FARTHEST:  # the exact number of exp(-10^8) has a hundred million digits
        if digits < 0 or sign != direction:
            return ZERO if digits < 0 and sign != direction else sign * Fraction(2) ** (FARTHEST if digits > 0 else -FARTHEST)
        if digits > 2*_MOST:
            raise Unbounded
    exact = sp.Rational(number)  # evalf keeps 25 digits; 2^-50 is far beyond its last one
    found = Fraction(int(exact.p), int(exact.q))
    return shortened(found + direction * _SLACK * (abs(found) + (0 if found else ONE)), direction)


def shortened(value: Fraction, direction: int) -> Fraction:
    """Round outwards to some 80 bits, so that products of bounds do not grow without end; and not beyond 2^-+8000."""
    size = max(value.numerator.bit_length(), value.denominator.bit_length())
    if size <= 160:
        return value
    below_one = value.denominator.bit_length() - value.numerator.bit_length()
    if value > 0 and direction*below_one > FARTHEST:
        return Fraction(2) ** (-direction*FARTHEST)
    shift = 80 + below_one
    scaled = value * (Fraction(2) ** shift)
    whole = -(-scaled.numerator // scaled.denominator) if direction > 0 else scaled.numerator // scaled.denominator
    return Fraction(whole) / (Fraction(2) ** shift)


def exp_above(x: Fraction) -> Fraction:
    """A rational >= exp(x). Below exp(-4000) one bound serves all: millions of digits would not help.

    Raises Unbounded where it would have a million digits before the point.
    """
    if x == 0:
        return ONE
    if x > _MOST:
        raise Unbounded
    x = max(x, _LEAST)
    from hermitex.symbolic.arithmetic import mp

    with mp.workprec(120 + abs(int(x)).bit_length()):
        value = mp.exp(mp.mpf(x.numerator) / x.denominator)
        man, exponent = value.man_exp
    return shortened(Fraction(int(man)) * Fraction(2) ** int(exponent) * (1 + _SLACK), 1)


def power_above(base: Fraction, n: Fraction) -> Fraction:
    """A rational >= base^n for base > 0."""
    if n.denominator == 1 and abs(n) <= 64:
        return shortened(base ** int(n), 1)
    return above(sp.Rational(base.numerator, base.denominator) ** sp.Rational(n.numerator, n.denominator))


def log_above(x: Fraction) -> Fraction:
    """A rational >= log x for x > 0."""
    return above(sp.log(sp.Rational(x.numerator, x.denominator)))
