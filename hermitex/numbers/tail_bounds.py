"""|f(z)| <= exp(c + b|z| + a z^2) beyond X on one side, read off the formula; and int_X^oo of it times the weight.

The rules are upper bounds, term by term; a formula that they do not read has no bound, and its average no proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import sympy as sp
from flint import arb, ctx
from sympy import Expr, Symbol

from hermitex.numbers.program import ball_constant

# 1e-9: above all roundings of the few hundred additions of doubles by which a bound is formed
_ROUNDED_UP = 1 + 1e-9


class Growth(NamedTuple):
    """c + b|z| + a z^2 for |z| >= 1."""

    c: float
    b: float = 0.0
    a: float = 0.0

    def plus(self, other: Growth) -> Growth:
        """The growth of a product."""
        return Growth(*(_up(x + y) for x, y in zip(self, other, strict=True)))

    def times(self, factor: float) -> Growth:
        """The growth of a positive power."""
        return Growth(*(_up(factor*x) for x in self))


_BOUNDED = (sp.tanh, sp.erf, sp.sin, sp.cos, sp.sign, sp.Heaviside, sp.sech, sp.frac)


def tail(f: Expr, z: Symbol, side: int, x: float, normal: bool) -> arb | None:
    """A bound of the integral of |f| times the weight beyond |z| = x >= 1 on a side; None if none is read off."""
    growth = _growth(f, z, side)
    if growth is None:
        return None
    square = (1.0 if normal else 0.0) - 2*growth.a  # exponent c + b x - square x^2/2
    slope = square*x - growth.b
    if square < 0 or slope <= 0 or not math.isfinite(growth.c):
        return None
    return (arb(growth.c) + arb(growth.b)*x - arb(square)*arb(x)**2/2).exp()/arb(slope)


def _up(x: float) -> float:
    return x*_ROUNDED_UP if x > 0 else x/_ROUNDED_UP


def _largest(parts: Iterable[Growth | None]) -> Growth | None:
    found = [p for p in parts if p is not None]
    return Growth(*(max(column) for column in zip(*found, strict=True))) if found else None


def _every(parts: Iterable[Growth | None]) -> list[Growth] | None:
    found = list(parts)
    return None if any(p is None for p in found) else [p for p in found if p is not None]


def _sum_of(parts: Iterable[Growth | None]) -> Growth | None:
    """The growth of a sum: that of its largest term times their number."""
    found = _every(parts)
    largest = None if found is None else _largest(found)
    return None if found is None or largest is None else largest.plus(Growth(math.log(len(found))))


def _product_of(parts: Iterable[Growth | None]) -> Growth | None:
    found = _every(parts)
    return None if found is None else reduce(Growth.plus, found)


def _constant(e: Expr) -> float:
    """An upper bound of log|e|."""
    with ctx.workprec(60):
        size = abs(ball_constant(e))
        return _up(float(size.upper().log().upper())) if size > 0 else -math.inf if size == 0 else math.inf


def _growth(e: Expr, z: Symbol, side: int) -> Growth | None:
    """The growth of |e|."""
    if not e.has(z):
        return Growth(max(_constant(e), -700.0))
    if e == z:
        return Growth(0.0, 1.0)  # |z| <= e^|z|
    if e.is_Add:
        return _sum_of(_growth(a, z, side) for a in e.args)
    if e.is_Mul:
        return _product_of(_growth(a, z, side) for a in e.args)
    if e.is_Pow:
        return _power(e, z, side)
    if isinstance(e, sp.exp):
        return _above(e.args[0], z, side)
    if isinstance(e, sp.Piecewise):
        parts = _every(_growth(a, z, side) for a, _ in e.args)
        return None if parts is None else _largest(parts)
    return _of_function(e, z, side)


def _of_function(e: Expr, z: Symbol, side: int) -> Growth | None:
    u = e.args[0] if e.args else e
    if isinstance(e, _BOUNDED) and u.is_real is not False and not u.has(sp.I):
        return Growth(0.0)
    if isinstance(e, sp.erfc):
        return Growth(math.log(2)) if u.is_real else None
    if isinstance(e, sp.atan):
        return Growth(math.log(2)) if u.is_real else None
    if isinstance(e, sp.Abs | sp.re | sp.im | sp.conjugate | sp.asinh):
        return _growth(u, z, side)  # |asinh u| <= |u|
    if isinstance(e, sp.Max | sp.Min):
        parts = _every(_growth(a, z, side) for a in e.args)
        return None if parts is None else _largest(parts)
    if isinstance(e, sp.floor | sp.ceiling):
        return _sum_of([_growth(u, z, side), Growth(0.0)])
    if isinstance(e, sp.log):
        return _logarithm(u, z, side)
    if isinstance(e, sp.cosh | sp.sinh):
        return _largest(parts) if (parts := _every(_above(s*u, z, side) for s in (1, -1))) is not None else None
    return None


def _logarithm(u: Expr, z: Symbol, side: int) -> Growth | None:
    """|log u| <= max(u, 1/u), or log of the growth of u where u >= 1."""
    inner = _growth(u, z, side)
    least = _at_least(u)
    if inner is None or least is None:
        return None
    return _largest([inner, Growth(abs(math.log(least)))])


def _power(e: sp.Pow, z: Symbol, side: int) -> Growth | None:
    if not e.exp.is_number or not e.exp.is_real:
        return None
    p = float(e.exp)
    if p > 0:
        inner = _growth(e.base, z, side)
        return None if inner is None else inner.times(p)
    least = _at_least(e.base)
    return None if least is None else Growth(_up(p*math.log(least)))


def _at_least(u: Expr) -> float | None:
    """A positive lower bound of u: a positive constant plus what is not negative."""
    constant, rest = u.as_coeff_Add()
    if constant.is_positive and (rest == 0 or rest.is_nonnegative or _is_nonnegative(rest)):
        return float(constant)/_ROUNDED_UP
    return None


def _is_nonnegative(u: Expr) -> bool:
    return bool(u.is_nonnegative) or (u.is_Add and all(a.is_nonnegative for a in u.args))


def _above(u: Expr, z: Symbol, side: int) -> Growth | None:
    """An upper bound c + b|z| + a z^2 of the real part of u."""
    u = sp.expand(u)
    if not u.has(z):
        return Growth(_up(float(sp.re(u))))
    if u.is_Add:
        return _product_of(_above(a, z, side) for a in u.args)  # the exponents add
    coefficient, g = u.as_independent(z, as_Add=False)
    if not coefficient.is_real:
        return Growth(0.0) if (coefficient/sp.I).is_real and g.is_real else None
    return _multiple(float(coefficient), g, z, side)


def _multiple(k: float, g: Expr, z: Symbol, side: int) -> Growth | None:
    """An upper bound of k g, g without a constant factor."""
    if g == z:
        return Growth(0.0, _up(k*side))
    if g == z**2:
        return Growth(0.0, 0.0, _up(k))
    if k < 0 and g.is_nonnegative:
        return Growth(0.0)
    if isinstance(g, _BOUNDED):
        return Growth(_up(abs(k)))
    if isinstance(g, sp.Abs) or (isinstance(g, sp.Max) and k > 0):
        options = (g.args[0], -g.args[0]) if isinstance(g, sp.Abs) else g.args
        parts = _every(_above(k*a, z, side) for a in options)
        return None if parts is None else _largest(parts)
    if g.is_Pow and isinstance(g.base, sp.Abs) and g.base.args[0] == z and 0 < g.exp < 1:
        return Growth(0.0, _up(k))  # |z|^p <= |z| for |z| >= 1
    if g.is_Pow and g.base == z and g.exp.is_odd and g.exp > 0 and k*side < 0:
        return Growth(0.0)
    return None
