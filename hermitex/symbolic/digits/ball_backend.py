"""f(x) with flint's complex balls: every operation returns a set that contains the value.

With `analytic` an operation answers a non-finite ball wherever it is not proved to be analytic on its argument; that
is what flint's integrator needs to bound its error. python-flint is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from sympy import Expr, Symbol

from hermitex.errors import NoClosedForm
from hermitex.symbolic.gaussian import Expectation

NodeRule = Callable[[Expectation, Sequence[Symbol]], Callable[..., Any]]

# Functions without a branch cut: meromorphic, so a pole shows itself by a non-finite ball.
_MEROMORPHIC = {"exp": "exp", "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc",
                "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch",
                "erf": "erf", "erfc": "erfc", "erfi": "erfi", "gamma": "gamma", "digamma": "digamma", "Shi": "shi",
                "Si": "si"}
_SWITCH = {"sign": "real_sgn", "Abs": "real_abs", "Heaviside": "real_heaviside", "floor": "real_floor",
           "ceiling": "real_ceil"}
_EXTREMUM = {"Max": "real_max", "Min": "real_min"}
_FROM_MINUS_INFINITY = {"acosh": 1, "loggamma": 0, "Ei": 0, "Ci": 0, "li": 1}
_METHOD = {"loggamma": "lgamma", "Ei": "ei", "Ci": "ci"}
_BESSEL = {"besselj": "bessel_j", "bessely": "bessel_y", "besseli": "bessel_i", "besselk": "bessel_k"}


class Balls:
    """The flint backend; `node` says how an expectation inside an expression is enclosed."""

    def __init__(self, node: NodeRule | None = None) -> None:
        from flint import acb, arb

        self._node, self.acb, self.arb = node, acb, arb
        self.undefined = acb(float("nan"), float("nan"))

    def constant(self, expr: Expr) -> Any:
        from flint import ctx, fmpq

        if expr.is_Rational:
            return self.acb(fmpq(int(expr.p), int(expr.q)))
        named = {sp.pi: self.arb.pi, sp.EulerGamma: self.arb.const_euler, sp.Catalan: self.arb.const_catalan}
        if expr in named:
            return self.acb(named[expr]())
        if expr is sp.E:
            return self.acb(1).exp()
        if expr is sp.GoldenRatio:
            return (self.acb(5).sqrt() + 1) / 2
        if expr is sp.I:
            return self.acb(0, 1)
        if isinstance(expr, sp.CRootOf) and expr.is_real:
            width = sp.Rational(1, 2 ** (ctx.prec + 10))  # SymPy isolates the root by exact arithmetic
            near = expr.eval_rational(width)
            return self.acb(self.arb(fmpq(int(near.p), int(near.q)), self.arb(fmpq(1, 2 ** (ctx.prec + 10)))))
        if expr.is_Float:
            exact = sp.Rational(expr)
            return self.acb(fmpq(int(exact.p), int(exact.q)))
        raise NoClosedForm(expr, "no rule encloses this constant")

    def power(self, base: Any, exponent: Any, integer: int | None, analytic: bool) -> Any:
        if integer is not None:
            return base**integer
        if exponent == 0.5:
            return base.sqrt(analytic=analytic)
        if not analytic and base.is_zero() and exponent.real > 0:
            return self.acb(0)
        return base.pow(exponent, analytic=analytic)

    def function(self, expr: Expr) -> Callable[..., Any] | None:
        name = "exp" if isinstance(expr, sp.Pow) else expr.func.__name__
        if name in _MEROMORPHIC:
            method = _MEROMORPHIC[name]
            return lambda x, analytic=False: getattr(x, method)()
        if name in _SWITCH:
            switch = _SWITCH[name]
            return lambda x, *_, analytic=False: getattr(x, switch)(analytic=analytic)
        if name in _EXTREMUM:
            return lambda *xs, analytic=False: self._extremum(_EXTREMUM[name], xs, analytic)
        if name == "log":
            return lambda x, analytic=False: x.log(analytic=analytic)
        if name in ("atan", "asinh", "acot"):
            return lambda x, analytic=False: self._off_imaginary_cuts(name, x, analytic)
        if name in ("asin", "acos", "atanh"):
            return lambda x, analytic=False: self._off_outer_cuts(name, x, analytic)
        return self._special(name, expr)

    def _special(self, name: str, expr: Expr) -> Callable[..., Any] | None:
        if name in _BESSEL:
            method = _BESSEL[name]
            return lambda n, x, analytic=False: self._off_ray(lambda v: getattr(v, method)(n), x, 0, analytic)
        if name in ("acosh", "loggamma", "Ei", "Ci", "li"):
            method = _METHOD.get(name, name)
            return lambda x, analytic=False: self._off_ray(lambda v: getattr(v, method)(), x,
                                                           _FROM_MINUS_INFINITY[name] or 0, analytic)
        if name == "LambertW":
            branch = int(expr.args[1]) if len(expr.args) > 1 else 0
            return lambda x, *_, analytic=False: self.undefined if analytic else x.lambertw(branch)
        if name == "factorial":
            return lambda x, analytic=False: (x + 1).gamma()
        if name in ("polygamma", "zeta"):
            return lambda *xs, analytic=False: self.undefined if analytic else (
                xs[1].polygamma(xs[0]) if name == "polygamma" else xs[0].zeta(*xs[1:]))
        if name in ("re", "conjugate"):
            return lambda x, analytic=False: self.undefined if analytic else (
                self.acb(x.real) if name == "re" else x.conjugate())
        rules: dict[str, Callable[..., Any]] = {
            "OwenT": self._owen, "SignCorrelation": self._sign_correlation, "ReErf": self._re_erf,
            "ImErf": self._im_erf}
        return rules.get(name)

    def choose(self, conditions: Sequence[Any], branches: Sequence[Any], analytic: bool) -> Any:
        result = self.undefined
        for condition, branch in reversed(list(zip(conditions, branches, strict=True))):
            real = condition.real
            if analytic and not condition.imag.is_zero() and not (real > 0 or real < 0):
                return self.undefined
            if real > 0:
                result = branch
            elif not real < 0:
                if analytic:
                    return self.undefined
                result = branch.union(result) if result.is_finite() else branch
        return result

    def node(self, node: Expectation, variables: Sequence[Symbol]) -> Callable[..., Any]:
        if self._node is None:
            raise NoClosedForm(node, "an expectation stands where only a number may")
        return self._node(node, variables)

    # -- branch cuts
    def _extremum(self, method: str, xs: Sequence[Any], analytic: bool) -> Any:
        best = xs[0]
        for x in xs[1:]:
            best = getattr(best, method)(x, analytic=analytic)
        return best

    def _off_ray(self, f: Callable[[Any], Any], x: Any, end: int, analytic: bool) -> Any:
        """f cut along (-oo, end]."""
        if analytic and x.imag.contains(0) and not x.real > end:
            return self.undefined
        return f(x)

    def _off_imaginary_cuts(self, name: str, x: Any, analytic: bool) -> Any:
        """atan and asinh: cut where Re x = 0, |Im x| >= 1. acot is atan of the inverse."""
        if name == "acot":
            return self._off_imaginary_cuts("atan", 1 / x, analytic)
        if analytic and x.real.contains(0) and not abs(x.imag) < 1:
            return self.undefined
        return getattr(x, name)()

    def _off_outer_cuts(self, name: str, x: Any, analytic: bool) -> Any:
        """asin, acos, atanh: cut where Im x = 0, |Re x| >= 1."""
        if analytic and x.imag.contains(0) and not abs(x.real) < 1:
            return self.undefined
        return getattr(x, name)()

    def _owen(self, h: Any, a: Any, *, analytic: bool = False) -> Any:
        """T(h, a) = (2 pi)^-1 int_0^1 a exp(-h^2 (1 + a^2 t^2)/2)/(1 + a^2 t^2) dt, entire in h."""
        square, half = a * a, -h * h / 2
        integral = self.acb.integral(
            lambda t, _: a * (half * (1 + square * t * t)).exp() / (1 + square * t * t), 0, 1)
        return integral / (2 * self.acb.pi())

    def _sign_correlation(self, h: Any, k: Any, rho: Any, *, analytic: bool = False) -> Any:
        """erf(h/sqrt 2) erf(k/sqrt 2) + (2/pi) int_0^asin(rho) exp(-(h^2 - 2hk sin t + k^2)/(2 cos^2 t)) dt."""
        end = self._off_outer_cuts("asin", rho, analytic)
        half = self.acb(0.5).sqrt()
        square, product = h * h + k * k, 2 * h * k
        integral = end * self.acb.integral(
            lambda t, _: (-(square - product * (t * end).sin()) / (2 * (t * end).cos() ** 2)).exp(), 0, 1)
        return (h * half).erf() * (k * half).erf() + 2 * integral / self.acb.pi()

    def _re_erf(self, x: Any, y: Any, *, analytic: bool = False) -> Any:
        turn = self.acb(0, 1) * y
        return ((x + turn).erf() + (x - turn).erf()) / 2

    def _im_erf(self, x: Any, y: Any, *, analytic: bool = False) -> Any:
        turn = self.acb(0, 1) * y
        return ((x + turn).erf() - (x - turn).erf()) / self.acb(0, 2)
