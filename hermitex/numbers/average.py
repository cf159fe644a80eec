"""E f(z) = int f(x) exp(-x^2/2)/sqrt(2 pi) dx, and int_a^b f(x) dx: a number with its error, or a ball that holds it.

Floats first; where they do not reach the digits, balls, with as many bits more as the terms cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from flint import acb, arb, ctx
from sympy import Expr, Symbol

from hermitex.errors import NotConverged
from hermitex.numbers.ball_integral import ball_integral
from hermitex.numbers.integrand import LN10, Integrand
from hermitex.numbers.one_period import over_one_period
from hermitex.numbers.panels import panel_sum
from hermitex.numbers.program import exact_ball, middle_of
from hermitex.symbolic.arithmetic import mp

DOUBLE_DIGITS = 15  # of doubles: questions for more digits go to balls at once


@dataclass(frozen=True)
class Average:
    """A value, a bound of its error, and what is known of it.

    `size`: the average of |f|, against which a value that is 0 has its digits; `proved`: the error is a theorem, by balls
    and a bound of the tails; `digits`: how many hold, relative to the value (0 if the value is not known to differ from 0).
    """

    value: Any
    error: Any
    size: Any
    proved: bool

    @property
    def digits(self) -> int:
        if not self.error:
            return 10**6
        return max(0, int(mp.floor(mp.log10(abs(self.value)/self.error)))) if abs(self.value) > self.error else 0


@np.errstate(all="ignore")  # an infinity inside of a window is seen by the sums, which refuse it
def average(f: Expr, z: Symbol, digits: int = 15, *, against_cancellation: int = 120, of_size: bool = False,
            prove: bool = False, as_reached: bool = False) -> Average:
    """E f(z) over a standard normal z.

    Parameters
    ----------
    f, z : an expression in one variable, real or complex
    digits : significant digits of the value
    against_cancellation : digits that may be added where terms cancel; a value that is exactly 0 costs them all
    of_size : True if the digits are meant relative to E|f|, however much cancels in the value
    prove : True for a ball with a proof, where one is found
    as_reached : True for a value with fewer digits in place of NotConverged; its error says how many hold

    Returns
    -------
    Average : relative to the value, error <= 10^(1 - digits); if the value could not be told from 0, relative to E|f|, and
        `digits` is 0.

    Raises
    ------
    Divergent : the average does not exist.
    NotConverged : the digits are not reached; `.solution` is (value, error).
    NoClosedForm : a symbol without a value, or a function without a numeric rule.

    Guarantee
    ---------
    The error holds for integrands whose features narrower than 1e-6 of the window show in the formula: switches, roots,
    steep and fast functions. See docs/promise.md.

    Examples
    --------
    >>> z = Symbol("z", real=True)
    >>> found = average(sp.Heaviside(z - 10), z)
    >>> print(mp.nstr(found.value, 15))
    7.61985302416053e-24
    """
    wanted = _Wanted(digits, against_cancellation, of_size, prove)
    if (period := over_one_period(f, z, digits + against_cancellation)) is not None:
        half = sp.Rational(1, 2)
        found = _integral(Integrand(period, z, -half, half, normal=False, digits=min(digits, DOUBLE_DIGITS) + 3), wanted)
        return found if as_reached else _required(f, found, wanted)
    found = _integral(Integrand(f, z, digits=min(digits, DOUBLE_DIGITS) + 3), wanted)
    with mp.workdps(digits + 15):
        root = mp.sqrt(2*mp.pi)
        found = Average(found.value/root, found.error/root, found.size/root, found.proved)
    return found if as_reached else _required(f, found, wanted)


@np.errstate(all="ignore")
def integral(f: Expr, x: Symbol, low: Expr = -sp.oo, high: Expr = sp.oo, digits: int = 15, *, against_cancellation: int = 120,
             prove: bool = False) -> Average:
    """int_low^high f(x) dx, as `average`.

    >>> x = Symbol("x", real=True)
    >>> print(mp.nstr(integral(sp.exp(-x)*sp.sqrt(x), x, 0, sp.oo).value, 15))
    0.886226925452758
    """
    integrand = Integrand(f, x, low, high, normal=False, digits=min(digits, DOUBLE_DIGITS) + 3)
    wanted = _Wanted(digits, against_cancellation, False, prove)
    return _required(f, _integral(integrand, wanted), wanted)


@dataclass(frozen=True)
class _Wanted:
    """The digits, how many more may be added where terms cancel, whether they are meant of E|f|, and whether with a proof."""

    digits: int
    extra: int
    of_size: bool
    prove: bool

    def reached(self, found: Average) -> bool:
        return bool(found.error <= (found.size if self.of_size else abs(found.value))*mp.mpf(10)**(1 - self.digits))

    def is_zero(self, found: Average) -> bool:
        """Is the value not told from 0, with all digits of E|f|?"""
        return bool(abs(found.value) <= found.error <= found.size*mp.mpf(10)**(1 - self.digits))


def _required(f: Expr, found: Average, wanted: _Wanted) -> Average:
    """The value found, if it has the digits, or if it cannot be distinguished from 0 with all of them."""
    if wanted.reached(found) or wanted.is_zero(found):
        return found
    reached = f"only an error of {mp.nstr(found.error, 2)} was reached for {f}, {found.digits} digits"
    raise NotConverged((found.value, found.error), reached)


def _integral(integrand: Integrand, wanted: _Wanted) -> Average:
    """The integral, with the digits that are reached."""
    integrand.require_integrable_places(integrand.window) if not integrand.vanishes else None
    if integrand.vanishes:
        return Average(mp.zero, mp.zero, mp.zero, False)
    if integrand.normal and _is_odd(integrand):
        size = _by_floats(integrand, 1).size
        return Average(mp.zero, mp.zero, size, True)
    found = _by_floats(integrand, min(wanted.digits, DOUBLE_DIGITS))
    if wanted.digits <= DOUBLE_DIGITS and not wanted.prove and wanted.reached(found):
        return found
    if integrand.program.has_balls:
        return _by_balls(integrand, found, wanted)
    return _by_digits(integrand, found, wanted)


def _is_odd(integrand: Integrand) -> bool:
    f, z = integrand.f, integrand.z
    return bool(sp.expand(f.xreplace({z: -z}) + f) == 0)


def _by_floats(integrand: Integrand, digits: int) -> Average:
    if integrand.cancels:
        size = mp.exp(integrand.window.top)*(integrand.window.high - integrand.window.low)
        return Average(mp.zero, size, size, False)
    found = panel_sum(integrand, integrand.window, digits)
    scale = mp.exp(mp.mpf(integrand.window.top))
    value = mp.mpc(found.value) if isinstance(found.value, complex) and found.value.imag else mp.mpf(found.value.real)
    # 10^-digits of the mass may be outside of the window
    outside = found.size*10.0**-(integrand.digits)
    return Average(value*scale, mp.mpf(found.error + outside)*scale, mp.mpf(found.size)*scale, False)


def _by_balls(integrand: Integrand, start: Average, wanted: _Wanted) -> Average:
    """Balls at rising precision, until the value has its digits or is not told from 0 with all extra ones."""
    lost = 0.0 if wanted.of_size else _lost(start, 15.0)
    while True:
        need = wanted.digits + lost + 3
        bits = int(need*LN10/math.log(2)) + 40 + int(math.log2(2 + abs(integrand.window.top)))
        with ctx.workprec(bits), mp.workprec(bits):
            tolerance = exact_ball(start.size)*arb(10)**int(-need)
            enclosed = ball_integral(integrand, tolerance, bits, need + 2)
            value, error = _centre(enclosed.ball)
            found = Average(value, error, start.size, not enclosed.unproved)
        if wanted.reached(found):
            return found
        if lost >= wanted.extra:
            return found
        lost = min(wanted.extra, max(2*lost, 15.0, _lost(found, 2*lost)))


def _lost(found: Average, unknown: float) -> float:
    """Digits that cancel, or the given number if the value is not known to differ from 0."""
    if abs(found.value) > 4*found.error:
        return max(0.0, float(mp.log10(found.size/abs(found.value))))
    return unknown


def _by_digits(integrand: Integrand, start: Average, wanted: _Wanted) -> Average:
    """mpmath's rules between the panels' ends, for functions without balls."""
    digits = wanted.digits
    window = integrand.window_of(digits + 3)
    ends = {window.low, *(p.x for p in integrand.breaks(window)), window.peak, window.high}
    with mp.workdps(digits + 15):
        value, error = mp.quad(integrand.program.digits, sorted(ends), error=True, maxdegree=9)
    return Average(value, error + start.size*mp.mpf(10)**(-digits - 2), start.size, False)


def _centre(ball: acb) -> tuple[Any, Any]:
    """The middle of a ball and its radius as numbers of mpmath."""
    parts = [middle_of(p) for p in (ball.real, ball.imag)]
    radius = middle_of(ball.real.rad()) + middle_of(ball.imag.rad())
    return (mp.mpc(*parts) if parts[1] else parts[0]), radius
