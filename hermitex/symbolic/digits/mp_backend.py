"""f(x) with mpmath's numbers: the elementary and special functions of SymPy at any precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from sympy import Expr, Symbol

from hermitex.errors import NoClosedForm
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.digits.digit_program import Step, StraightLine
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.special import complex_erf, owen_t, sign_correlation

NodeRule = Callable[[Expectation, Sequence[Symbol]], Callable[..., Any]]


def _step(x: Any, *at_0: Any) -> Any:
    return mpf(1) if x > 0 else mpf(0) if x < 0 else at_0[0] if at_0 else mpf(1)/2


_FARTHEST = 2**14  # binary digits of an argument before its point: an exponential of more takes mpmath seconds, or all memory


def _exp(x: Any) -> Any:
    """exp x, and its limits where no sum could tell it from them."""
    if isinstance(x, mp.mpf) and mp.isfinite(x) and mp.mag(x) > _FARTHEST:
        return mp.inf if x > 0 else mpf(0)
    return mp.exp(x)


_NAMED: dict[str, Callable[..., Any]] = {
    "Abs": abs, "exp": _exp, "Heaviside": _step, "sign": mp.sign, "Max": max, "Min": min,
    "ceiling": mp.ceil, "loggamma": mp.loggamma, "digamma": mp.digamma, "polygamma": mp.polygamma,
    "uppergamma": lambda s, x: mp.gammainc(s, x), "lowergamma": lambda s, x: mp.gammainc(s, 0, x),
    "LambertW": mp.lambertw, "Ei": mp.ei, "expint": mp.expint, "OwenT": owen_t,
    "LogFactorial": lambda x: mp.loggamma(x + 1),
    "SignCorrelation": sign_correlation,
    "ReErf": lambda x, y: complex_erf(x, y).real, "ImErf": lambda x, y: complex_erf(x, y).imag,
    "elliptic_k": mp.ellipk, "elliptic_e": mp.ellipe, "frac": lambda x: x - mp.floor(x),
    "hermite_prob": lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n,
}
_SAME = frozenset("""
exp log sin cos tan cot sec csc sinh cosh tanh coth sech csch asin acos atan acot atan2 asinh acosh
atanh erf erfc erfi erfinv floor gamma beta besselj besseli besselk bessely re im conjugate arg
factorial hermite legendre zeta polylog airyai airybi sinc Si Ci li factorial2 binomial
""".split())  # noqa: SIM905


class MPMath:
    """The mpmath backend; `node` says how an expectation inside an expression is integrated."""

    def __init__(self, node: NodeRule | None = None) -> None:
        self._node = node

    def constant(self, expr: Expr) -> Any:
        if expr.is_Rational:
            return mpf(int(expr.p)) / int(expr.q)
        if expr is sp.I:
            return mp.mpc(0, 1)
        if expr.args and not isinstance(expr, sp.RootOf):  # SymPy's own numbers of products and the like have no error, nor an end
            raise NoClosedForm(expr, f"no numeric rule is known for {expr.func.__name__}")
        return mp.own(expr._to_mpmath(mp.prec + 10))

    def power(self, base: Any, exponent: Any, integer: int | None, analytic: bool) -> Any:
        if integer is not None:
            return base**integer
        if base == 0 and exponent > 0:
            return mpf(0)
        return mp.sqrt(base) if exponent == mpf(1) / 2 else mp.power(base, exponent)

    def function(self, expr: Expr) -> Callable[..., Any] | None:
        name = expr.func.__name__
        own = getattr(expr.func, "mpmath_value", None)  # a node that brings its own arithmetic
        found = _exp if isinstance(expr, sp.Pow) else own or _NAMED.get(name) or (
            getattr(mp, name.lower(), None) if name in _SAME else None)
        if found is None:
            return None
        return lambda *arguments, analytic=False: found(*arguments)

    def choose(self, conditions: Sequence[Any], branches: Sequence[Any], analytic: bool) -> Any:
        for condition, branch in zip(conditions, branches, strict=True):
            if condition >= 0:
                return branch
        return mp.nan

    def node(self, node: Expectation, variables: Sequence[Symbol]) -> Callable[..., Any]:
        if self._node is None:
            raise NoClosedForm(node, "an expectation stands where only a number may")
        return self._node(node, variables)


MPMATH = MPMath()


def rational(x: Any) -> sp.Rational:
    """The exact value of an mpf."""
    sign, man, exponent, _ = x._mpf_
    return (-1) ** sign * sp.Rational(int(man)) * sp.Rational(2) ** int(exponent)


# -- what rounding costs -----------------------------------------------------------------------------------------------
_NOT_ROUNDED = (Symbol, sp.sign, sp.Heaviside, sp.floor, sp.ceiling, sp.Abs, sp.Max, sp.Min, sp.Piecewise)


class LastDigitMoved(StraightLine):
    """The same on mpmath's numbers, every rounded result moved by about its last digit: what is lost of them shows in the value.

    Two precisions alone may not show it: 1 - erf(40)**2 is 0 in both, since erf(40) is rounded to 1.

    Examples
    --------
    >>> from sympy import Integer, erf
    >>> lost = 1 - erf(Integer(40))**2
    >>> float(StraightLine(lost, [], MPMath())()), abs(float(LastDigitMoved(lost, [], MPMath())())) > 1e-17
    (0.0, True)
    """

    def _step(self, expr: Any) -> Step:
        step, k = super()._step(expr), self._size
        if isinstance(expr, _NOT_ROUNDED) or (expr.is_Rational and _short(expr)):
            return step
        part = (-1)**k*(1 + 89*k % 251)  # no two move alike, or what they lose together would not show
        return lambda values, analytic: _moved(step(values, analytic), part)


def _short(number: Expr) -> bool:
    """Is a rational number held as it is, at any precision?"""
    return int(abs(number.p)).bit_length() <= 53 and number.q & (number.q - 1) == 0


def _moved(value: Any, ulps: int) -> Any:
    """The value and so many units of its last digit; what is no number (a loss) stays."""
    return value + value*ulps*mp.eps if isinstance(value, (mp.mpf, mp.mpc)) else value
