"""f(t) = c_1 s_1(t) + c_2 s_2(t) + ... + O(s), t -> oo: the exact leading behaviour of an expression.

Coefficients and exponents are exact, so that a borderline (exp(z^2/2)/(1 + z^4) is integrable, exp(z^2/2) is not) is
decided and not guessed. What cannot be compared exactly raises `IncomparableScales`.
"""

from __future__ import annotations

from functools import cmp_to_key

import sympy as sp
from sympy import Expr, Integer, S, Symbol

from hermitex.symbolic.bounds.transseries import (
    ONE,
    IncomparableScales,
    Scale,
    Series,
    add,
    compare,
    exponential,
    leading_sign,
    limit_of,
    logarithm,
    multiply,
    power,
    scaled,
    sign,
    taylor,
    vanishes,
)
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.special import LogFactorial


def expand_at_infinity(expr: Expr, t: Symbol) -> Series:
    """The leading behaviour of expr as t -> oo.

    Examples
    --------
    >>> from sympy import Symbol, sqrt, exp
    >>> t = Symbol("t", positive=True)
    >>> expand_at_infinity(sqrt(t**4 + t**2) - t**2, t).terms[0]
    (1/2, Scale(exponents=(), n=0, l=0))
    """
    return _Expander(t).series(expr)


class _Expander:
    def __init__(self, t: Symbol) -> None:
        self.t = t
        self.done: dict[Expr, Series] = {}

    def series(self, u: Expr) -> Series:
        if u not in self.done:
            checkpoint("expanding at infinity")
            self.done[u] = self._series(u)
        return self.done[u]

    def _series(self, u: Expr) -> Series:
        if self.t not in u.free_symbols:
            if u.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
                raise IncomparableScales
            return Series(()) if u == 0 or (u.args and vanishes(u)) else Series(((u, ONE),))
        if u == self.t:
            return Series(((S.One, Scale(n=S.One)),))
        if isinstance(u, sp.Add):
            return add(*(self.series(a) for a in u.args))
        if isinstance(u, sp.Mul):
            return self._product(u)
        if isinstance(u, sp.exp):
            return exponential(self.series(u.args[0]))
        if isinstance(u, sp.Pow):
            if self.t in u.exp.free_symbols:
                return exponential(multiply(self.series(u.exp), logarithm(self.series(u.base))))
            return power(self.series(u.base), u.exp)
        if isinstance(u, sp.Piecewise):
            return self._piecewise(u)
        return self._function(u)

    def _product(self, u: sp.Mul) -> Series:
        """Exponentials are merged first: their growth may cancel."""
        exponents = [f.args[0] for f in u.args if isinstance(f, sp.exp)]
        factors = [self.series(f) for f in u.args if not isinstance(f, sp.exp)]
        if exponents:
            factors.append(exponential(self.series(sp.expand(sp.Add(*exponents)))))
        result = factors[0]
        for factor in factors[1:]:
            result = multiply(result, factor)
        return result

    def _piecewise(self, u: sp.Piecewise) -> Series:
        from hermitex.symbolic.breaks.switches import margin

        for branch, condition in u.args:
            edge = sp.sympify(margin(condition), strict=True)
            holds = leading_sign(self.series(edge)) if self.t in edge.free_symbols else sign(edge)
            if holds > 0:
                return self.series(branch)
        raise IncomparableScales

    def _function(self, u: Expr) -> Series:
        if isinstance(u, (sp.Max, sp.Min)):
            return self._extremum(u)
        if isinstance(u, Expectation) or len(u.args) != 1:
            raise IncomparableScales
        arg = self.series(u.args[0])
        if isinstance(u, sp.Abs):
            if arg.terms and arg.terms[0][0].is_real:
                return scaled(arg, Integer(leading_sign(arg)))
            return arg
        if isinstance(u, (sp.sign, sp.Heaviside)) and arg.terms:
            value = leading_sign(arg)
            return Series(((Integer(value), ONE),)) if isinstance(u, sp.sign) else (
                Series(((S.One, ONE),)) if value > 0 else Series(()))
        if isinstance(u, sp.log):
            return logarithm(arg)
        if isinstance(u, (sp.tan, sp.cot, sp.sec, sp.csc)):
            return self._circular(u)
        if isinstance(u, (sp.gamma, sp.factorial, sp.loggamma, LogFactorial)):
            return self._factorial(u)
        if isinstance(u, (sp.sinh, sp.cosh, sp.coth, sp.sech, sp.csch, sp.asinh)):
            return self.series(u.rewrite(sp.log if isinstance(u, sp.asinh) else sp.exp))
        if isinstance(u, (sp.floor, sp.ceiling)):
            if arg.top is not None and arg.top.growth() > 0:
                return add(arg, Series((), ONE))
            return self._constant_floor(u, arg)
        return self._analytic(u, arg)

    def _circular(self, u: Expr) -> Series:
        above, below = {sp.tan: (sp.sin, sp.cos), sp.cot: (sp.cos, sp.sin), sp.sec: (None, sp.cos),
                        sp.csc: (None, sp.sin)}[u.func]
        inverse = power(self.series(below(u.args[0])), S.NegativeOne)
        return multiply(self.series(above(u.args[0])), inverse) if above else inverse

    def _factorial(self, u: Expr) -> Series:
        """log x! = x log x - x + log(2 pi x)/2 + 1/(12 x) + O(x^-3)."""
        x = self.series(u.args[0] - (0 if isinstance(u, (sp.factorial, LogFactorial)) else 1))
        if not x.terms or leading_sign(x) < 0 or x.terms[0][1].growth() <= 0:
            raise IncomparableScales
        log, inverse = logarithm(x), power(x, S.NegativeOne)
        found = add(multiply(x, log), scaled(x, S.NegativeOne), scaled(log, S.Half), Series(((sp.log(2*sp.pi) / 2, ONE),)),
                    scaled(inverse, sp.Rational(1, 12)), Series((), ONE.times(inverse.terms[0][1], Integer(3))))
        return found if isinstance(u, (sp.loggamma, LogFactorial)) else exponential(found)

    def _constant_floor(self, u: Expr, arg: Series) -> Series:
        """floor near a finite limit: floor of the limit, or of a number next to it."""
        limit, rest = limit_of(arg)
        if limit.is_integer and rest.terms:
            below = leading_sign(rest) < 0
            value = limit - 1 if below else limit
            return Series(((value if isinstance(u, sp.floor) else value + 1, ONE),))
        if limit.is_integer is False:
            return Series(((u.func(limit), ONE),))
        raise IncomparableScales

    def _analytic(self, u: Expr, arg: Series) -> Series:
        if arg.top is not None and arg.top.growth() > 0:
            return self._at_infinity(u, arg)
        if arg.top is not None and not arg.terms and arg.top.growth() == 0:
            if isinstance(u, (sp.sin, sp.cos, sp.tanh, sp.erf, sp.atan, sp.sign, sp.Heaviside)):
                return Series((), ONE)
            raise IncomparableScales
        limit, rest = limit_of(arg)
        return taylor(u.func, limit, rest)

    def _at_infinity(self, u: Expr, arg: Series) -> Series:
        if isinstance(u, (sp.sin, sp.cos)):
            return Series((), ONE, comparable=bool(arg.terms))
        if not arg.terms:
            if isinstance(u, (sp.tanh, sp.erf, sp.atan, sp.sign, sp.Heaviside, sp.erfc)):
                return Series((), ONE)
            raise IncomparableScales
        side, v = leading_sign(arg), u.args[0]
        if isinstance(u, sp.tanh):
            e = exponential(scaled(arg, Integer(-2 * side)))
            one = Series(((S.One, ONE),))
            squashed = multiply(add(one, scaled(e, S.NegativeOne)), power(add(one, e), S.NegativeOne))
            return scaled(squashed, Integer(side))
        if isinstance(u, (sp.erf, sp.erfc)):
            tail = self._erfc(scaled(arg, Integer(side)), sp.expand(-(v**2)))
            if isinstance(u, sp.erfc) and side > 0:
                return tail
            erf = scaled(add(Series(((S.One, ONE),)), scaled(tail, S.NegativeOne)), Integer(side))
            return erf if isinstance(u, sp.erf) else add(Series(((S.One, ONE),)), scaled(erf, S.NegativeOne))
        if isinstance(u, sp.atan):
            inverse = power(arg, S.NegativeOne)
            return add(Series(((side * sp.pi / 2, ONE),)), scaled(taylor(sp.atan, S.Zero, inverse), S.NegativeOne))
        raise IncomparableScales

    def _erfc(self, v: Series, minus_square: Expr) -> Series:
        """exp(-v^2)/(v sqrt(pi)) (1 - 1/(2 v^2) + 3/(4 v^4) + O(v^-6))."""
        inverse = power(multiply(v, v), S.NegativeOne)
        tail = add(Series(((S.One, ONE),)), scaled(inverse, S.NegativeOne / 2),
                   scaled(multiply(inverse, inverse), sp.Rational(3, 4)),
                   Series((), None if inverse.top is None else ONE.times(inverse.top, Integer(3))))
        front = multiply(exponential(self.series(minus_square)), power(v, S.NegativeOne))
        return scaled(multiply(front, tail), 1 / sp.sqrt(sp.pi))

    def _extremum(self, u: Expr) -> Series:
        best, *rest = u.args
        for other in rest:
            gap = self.series(best - other)
            if gap.terms:
                better = leading_sign(gap) * (1 if isinstance(u, sp.Max) else -1)
                best = best if better > 0 else other
            elif gap.top is not None:
                tops = [s.top for s in map(self.series, u.args) if s.top is not None]
                return Series((), max(tops, key=cmp_to_key(compare)))
        return self.series(best)
