"""E F(w z) = int_{-1/2}^{1/2} F(2 pi t) theta(t) dt,  theta(t) = 1 + 2 sum_n exp(-n^2 w^2/2) cos(2 pi n t),  F of period 2 pi.

A normal that enters through cosines and sines alone is a point on a circle. One period replaces the many periods of a window of the
line: 17 w/(2 pi) of them. Exact, by Poisson's formula.
"""

from __future__ import annotations

import math

from sympy import Add, Dummy, Expr, Float, Integer, Mul, Symbol, cos, exp, gcd, pi, sin


def over_one_period(f: Expr, z: Symbol, digits: int) -> Expr | None:
    """The integrand over z in (-1/2, 1/2) that replaces an average over z; None if f has no period of at most 2 pi.

    Guarantee
    ---------
    The omitted terms of theta change the integral by less than 10^-digits of E|f|.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> over_one_period(exp(cos(300*z)), z, 30)
    exp(cos(2*pi*z))
    >>> over_one_period(z*cos(300*z), z, 30)
    """
    w = _frequency(f, z)
    if w is None:
        return None
    # n w > sqrt(2 D ln 10) makes exp(-n^2 w^2/2) smaller than 10^-D; two digits more bound the sum over n
    most = int(math.sqrt(2*(digits + 2)*math.log(10))/float(w))
    theta = Add(Integer(1), *(2*exp(-(n*w)**2/2)*cos(2*pi*n*z) for n in range(1, most + 1)))
    return f.xreplace({a: _turned(a, z, w) for a in f.atoms(cos, sin) if z in a.free_symbols})*theta


def _frequency(f: Expr, z: Symbol) -> Expr | None:
    """The largest w >= 1 such that f has the period 2 pi/w in z; None unless z enters by cos(k z + b) and sin(k z + b) alone."""
    waves = [a for a in f.atoms(cos, sin) if z in a.free_symbols]
    slopes = [a.args[0].diff(z) for a in waves]
    if not slopes or not all(s.is_number and s.is_nonzero for s in slopes) or f.xreplace({a: Dummy() for a in waves}).has(z):
        return None
    ratios = [(s/slopes[0]).simplify() for s in slopes]
    if any(s.has(Float) for s in slopes) or not all(r.is_Rational for r in ratios):
        return None
    w = abs(slopes[0]*(gcd(ratios) if len(ratios) > 1 else ratios[0]))
    return w if w.is_extended_real and w >= 1 else None


def _turned(wave: Expr, z: Symbol, w: Expr) -> Expr:
    argument = wave.args[0]
    turns = (argument.diff(z)/w).simplify()
    return wave.func(Mul(2, pi, turns, z) + argument.xreplace({z: Integer(0)}))


__all__ = ["over_one_period"]
