"""f(x_1, ..., x_n) of arrays, in extended floats: the value of an expression at all rows of its letters at once.

Extended floats (80 bits where the machine has them) hold exp(10^4), so that an integrand under a Gaussian weight does not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp
from scipy import special
from sympy import Basic, Expr

from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.moreau import Moreau, Prox
from hermitex.symbolic.series.polynomials import HermiteOfOrder
from hermitex.symbolic.weak import weak_derivative

Real = np.longdouble
Rows = Mapping[Basic, Any]
PI = Real("3.14159265358979323846264338327950288")


class NoNumber(ArithmeticError):
    """The reason, in words of the claim, why an expression has no number."""


def no_average(reason: str) -> Callable[[Expectation, Rows], Any]:
    """What `ArrayValues` asks for averages where there are to be none: it refuses them with this reason."""
    def refuse(node: Expectation, rows: Rows) -> Any:
        raise NoNumber(reason)

    return refuse


def erfc(x: Any) -> Any:
    """erfc(x), to a double's relative accuracy also where it is far below a double's range."""
    x = np.asarray(x, Real)
    double = np.asarray(x, float)
    return np.where(x > 1, np.exp(-x*x)*special.erfcx(np.maximum(double, 1)), special.erfc(double))


def _coth(x: Any) -> Any:
    return 1/np.tanh(x)


def _heaviside(x: Any, at_zero: Any = 0.5) -> Any:
    return np.where(x > 0, Real(1), np.where(x < 0, Real(0), at_zero))


def _hermite(order: Any, x: Any) -> Any:
    """He_k(x) by He_{j+1} = x He_j - j He_{j-1}."""
    if np.ndim(order):
        raise NoNumber("the order of a Hermite polynomial is averaged over")
    before, value = np.zeros_like(x), np.ones_like(x)*(order >= 0)
    for j in range(int(order)):
        before, value = value, x*value - j*before
    return value


def _factorial(x: Any) -> Any:
    return special.gamma(np.asarray(x, float) + 1)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sp.exp: np.exp, sp.log: np.log, sp.sin: np.sin, sp.cos: np.cos, sp.tan: np.tan, sp.tanh: np.tanh, sp.sinh: np.sinh,
    sp.cosh: np.cosh, sp.asin: np.arcsin, sp.acos: np.arccos, sp.atan: np.arctan, sp.atan2: np.arctan2, sp.Abs: np.abs,
    sp.sign: np.sign, sp.floor: np.floor, sp.ceiling: np.ceil, sp.coth: _coth, sp.asinh: np.arcsinh, sp.acosh: np.arccosh,
    sp.atanh: np.arctanh, sp.Heaviside: _heaviside, sp.factorial: _factorial, HermiteOfOrder: _hermite,
    sp.sech: lambda x: 1/np.cosh(x), sp.csch: lambda x: 1/np.sinh(x), sp.sinc: lambda x: np.sinc(x/PI), sp.erfc: erfc,
    sp.erf: lambda x: np.where(np.abs(x) < 1, special.erf(np.asarray(x, float)), np.sign(x)*(1 - erfc(np.abs(x)))),
    sp.gamma: lambda x: special.gamma(np.asarray(x, float)), sp.Not: np.logical_not, sp.StrictLessThan: np.less,
    sp.LessThan: np.less_equal, sp.StrictGreaterThan: np.greater, sp.GreaterThan: np.greater_equal, sp.Eq: np.equal,
    sp.Ne: np.not_equal,
}
FOLDED: dict[Any, Callable[..., Any]] = {sp.Add: np.add, sp.Mul: np.multiply, sp.Max: np.maximum, sp.Min: np.minimum,
                                         sp.And: np.logical_and, sp.Or: np.logical_or}


class ArrayValues:
    """The values of expressions at the rows of their letters; `average` gives the value of an average at them."""

    def __init__(self, rows: Rows, average: Callable[[Expectation, Rows], Any]) -> None:
        self.rows, self.average = rows, average
        self.found: dict[Basic, Any] = {}

    def __call__(self, expr: Basic) -> Any:
        """The value of an expression: a number, or an array with an entry for each row.

        Raises
        ------
        NoNumber : a letter without a value, or a function without a rule.
        """
        if expr in self.rows:
            return self.rows[expr]
        if expr not in self.found:
            self.found[expr] = self._worked_out(expr)
        return self.found[expr]

    def _worked_out(self, e: Any) -> Any:
        if e.is_number and isinstance(e, sp.Number | sp.NumberSymbol):
            return _constant(e)
        if isinstance(e, sp.Pow):
            return self._power(*e.as_base_exp())
        if e.func in FOLDED:
            return reduce(FOLDED[e.func], map(self, e.args))
        if e in (sp.true, sp.false):
            return np.bool_(e == sp.true)
        if isinstance(e, sp.log) and isinstance(w := e.args[0] - 1, sp.exp):
            return np.logaddexp(Real(0), self(w.args[0]))
        if e.func in FUNCTIONS:
            return FUNCTIONS[e.func](*map(self, e.args))
        if isinstance(e, sp.Piecewise):
            return self._piecewise(e)
        if isinstance(e, Expectation):
            return self.average(e, self.rows)
        if isinstance(e, Prox | Moreau):
            return self._minimised(e)
        raise NoNumber(f"{type(e).__name__} has no number here")

    def _power(self, base: Expr, exponent: Expr) -> Any:
        if base is sp.E:
            return np.exp(self(exponent))
        if exponent.is_Rational and exponent.q == 2:
            root = np.sqrt(self(base))
            return root**int(exponent.p)
        return self(base)**(int(exponent) if exponent.is_Integer else self(exponent))

    def _piecewise(self, e: Any) -> Any:
        value: Any = Real(np.nan)
        for branch, condition in reversed(e.args):
            value = np.where(self(condition), self(branch), value)
        return value

    def _minimised(self, e: Any) -> Any:
        """The zero of the increasing slope (p - omega)/V + l'(p), by bisection."""
        loss = e.loss
        if loss.domain != (-sp.oo, sp.oo):
            raise NoNumber("a loss that is finite on an interval only has no number here")
        slope = weak_derivative(loss.expr, loss.f).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
        parameters = dict(zip(loss.parameters, map(self, e.values), strict=True))
        omega, V = np.broadcast_arrays(*(np.asarray(self(a), Real) for a in e.args[1:3]))

        def of(expr: Expr, p: Any) -> Any:
            return ArrayValues({**parameters, loss.f: p}, self.average)(expr)

        def increasing(p: Any) -> Any:
            return (p - omega)/V + of(slope, p)

        reach = V*(1 + np.abs(of(slope, omega))) + 1
        low, high = omega - reach, omega + reach
        for _ in range(12):  # a convex loss has its minimiser within V |l'(omega)|: 12 doublings are for weak slopes at kinks
            low, high = (np.where(increasing(low) > 0, 2*low - high, low), np.where(increasing(high) < 0, 2*high - low, high))
        for _ in range(78):  # halvings, 64 of which reach the last bit
            middle = (low + high)/2
            above = increasing(middle) > 0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        p = (low + high)/2
        return p if isinstance(e, Prox) else (p - omega)**2/(2*V) + of(loss.expr, p)


def _constant(e: Any) -> Any:
    if e.is_Rational:
        return Real(str(e.p))/Real(str(e.q))
    if not e.is_finite:
        raise NoNumber(f"{e} is not a number")
    return Real(str(e.evalf(25)))


def switches(expr: Expr) -> tuple[list[Expr], list[Expr]]:
    """(what a switch compares with 0, arguments of steep functions) in an expression, factor by factor.

    >>> from sympy.abc import x, y
    >>> switches(sp.Max(x, y) + sp.tanh(9*x - 1))
    ([x - y], [9*x - 1])
    """
    hard: list[Expr] = []
    steep: list[Expr] = []
    for e in sp.preorder_traversal(expr):
        if isinstance(e, sp.Abs | sp.sign | sp.Heaviside):
            hard.append(e.args[0])
        elif isinstance(e, sp.atan2):
            hard.append(e.args[0])  # its branch ends where y is 0 and x negative
        elif isinstance(e, sp.Max | sp.Min):
            hard += [a - b for i, a in enumerate(e.args) for b in e.args[i + 1:]]
        elif isinstance(e, sp.core.relational.Relational):
            hard.append(e.lhs - e.rhs)
        elif isinstance(e, sp.log | sp.Pow) and isinstance(e.args[0], sp.Pow) and e.args[0].exp.is_even:
            hard.append(e.args[0].base)  # log(x^2) is singular and sqrt(x^2) has a kink where x is 0
        elif isinstance(e, sp.tanh | sp.erf | sp.erfc | sp.atan):
            steep.append(e.args[0])
    factors = [[f for g in some for f in sp.Mul.make_args(sp.factor_terms(g))
                if (f.free_symbols or f.has(sp.core.function.AppliedUndef)) and not f.has(Expectation)]
               for some in (hard, steep)]
    first = list(dict.fromkeys(factors[0]))
    return first, [g for g in dict.fromkeys(factors[1]) if g not in first]
