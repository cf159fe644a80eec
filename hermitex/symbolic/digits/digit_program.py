"""f(x) = op_n(... op_2(op_1(x))) with mpmath's numbers, at any precision.

Equal subexpressions are computed once, and what no variable enters once for each precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from sympy import Add, E, Expr, Function, Max, Min, Mul, Piecewise, Pow, Symbol, erf, erfc, log

from hermitex.errors import NoClosedForm
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.breaks.switches import margin
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.special import complex_erf, owen_t, sign_correlation

Values = list[Any]
Step = Callable[[Values], Any]


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


def mpmath_function(expr: Expr) -> Callable[..., Any] | None:
    """The function of mpmath's numbers at the head of an expression, or None; a node may bring its own, `mpmath_value`."""
    if isinstance(expr, Pow):
        return _exp
    name = expr.func.__name__
    own = getattr(expr.func, "mpmath_value", None) or _NAMED.get(name)
    return own or (getattr(mp, name.lower(), None) if name in _SAME else None)


def rational(x: Any) -> sp.Rational:
    """The exact value of an mpf."""
    sign, man, exponent, _ = x._mpf_
    return (-1) ** sign * sp.Rational(int(man)) * sp.Rational(2) ** int(exponent)


def _constant(expr: Expr) -> Any:
    if expr.is_Rational:
        return mpf(int(expr.p)) / int(expr.q)
    if expr is sp.I:
        return mp.mpc(0, 1)
    if expr.args and not isinstance(expr, sp.RootOf):  # SymPy's own numbers of products and the like have no error, nor an end
        raise NoClosedForm(expr, f"no numeric rule is known for {expr.func.__name__}")
    return mp.own(expr._to_mpmath(mp.prec + 10))


def _power(base: Any, exponent: Any) -> Any:
    if base == 0 and exponent > 0:
        return mpf(0)
    return mp.sqrt(base) if exponent == mpf(1) / 2 else mp.power(base, exponent)


class StraightLine:
    """A compiled expression: ``StraightLine(expr, variables)(*values)``.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from sympy import exp
    >>> StraightLine(1 + exp(z - 1)**2, [z])(mpf(1))
    mpf('2.0')
    """

    def __init__(self, expr: Expr, variables: Sequence[Symbol]) -> None:
        self.expr, self.variables = expr, tuple(variables)
        self._slots: dict[Any, int] = {v: i for i, v in enumerate(self.variables)}
        self._fixed: list[tuple[int, Step]] = []
        self._steps: list[tuple[int, Step]] = []
        self._size = len(self.variables)
        self._enters = [True] * len(self.variables)  # does a variable enter a slot?
        self._met = False  # does one enter what is compiled now?
        self._out = self._slot(expr)
        self._values: Values = []

    def prepare(self) -> StraightLine:
        """Compute everything that no variable enters, at the precision now in force."""
        values: Values = [None] * self._size
        for slot, step in self._fixed:
            values[slot] = step(values)
        self._values = values
        return self

    def __call__(self, *arguments: Any) -> Any:
        if not self._values:
            self.prepare()
        values = self._values
        values[: len(arguments)] = arguments
        for slot, step in self._steps:
            values[slot] = step(values)
        return values[self._out]

    # -- compiling -------------------------------------------------------------------------------------------------
    def _slot(self, expr: Any) -> int:
        if expr in self._slots:
            self._met |= self._enters[self._slots[expr]]
            return self._slots[expr]
        checkpoint("compiling an expression")
        before, self._met = self._met, False
        step = self._step(expr)
        slot, self._size = self._size, self._size + 1
        (self._steps if self._met else self._fixed).append((slot, step))
        self._slots[expr] = slot
        self._enters.append(self._met)
        self._met |= before
        return slot

    def _step(self, expr: Any) -> Step:
        if isinstance(expr, Expectation):
            raise NoClosedForm(expr, "an expectation stands where only a number may")
        if isinstance(expr, Add):
            if (tail := _tail(expr)) is not None:
                return self._of_tail(*tail)
            return _fold(_plus, [self._slot(a) for a in expr.args])
        if isinstance(expr, Mul):
            return self._product(expr)
        if isinstance(expr, Pow) and expr.base != E:
            return self._power(expr)
        if isinstance(expr, Piecewise):
            return self._piecewise(expr)
        if isinstance(expr, log) and (tail := _tail(1 - expr.args[0])) is not None:
            return self._log_beside(expr, self._of_tail(*tail))
        if isinstance(expr, Symbol):
            raise NoClosedForm(self.expr, f"{expr} has no value", f"Give it one: subs={{'{expr}': ...}}")
        if not expr.args or not isinstance(expr, (Function, Pow, Max, Min)) or expr.is_Number:
            return lambda values: _constant(expr)
        function = mpmath_function(expr)
        if function is None:
            raise NoClosedForm(expr, f"no numeric rule is known for {expr.func.__name__}")
        slots = [self._slot(a) for a in ([expr.exp] if isinstance(expr, Pow) else expr.args)]
        return lambda values: function(*[values[s] for s in slots])

    def _of_tail(self, factor: Expr, side: int, u: Expr) -> Step:
        """c erfc(+-u), which has its digits where 1 - erf(u) has none; SymPy writes erfc(-u) as 2 - erfc(u)."""
        slot, c = self._slot(u), self._slot(factor)
        return lambda values: values[c] * mp.erfc(side * values[slot])

    def _log_beside(self, expr: Expr, left: Step) -> Step:
        """log(1 - left) = -2 atanh(left/(2 - left)) where 1 - left would be rounded to 1: log(erfc(u)/2) at negative u."""
        slot = self._slot(expr.args[0])

        def step(values: Values) -> Any:
            s = left(values)
            return -2 * mp.atanh(s / (2 - s)) if abs(s) < 0.5 else mp.log(values[slot])

        return step

    def _product(self, expr: Mul) -> Step:
        """Numerator over denominator: one division, not one inversion a factor."""
        above, below = [], []
        for factor in expr.args:
            if isinstance(factor, Pow) and factor.exp.is_Integer and factor.exp < 0:
                below.append(self._slot(factor.base ** -factor.exp))
            else:
                above.append(self._slot(factor))
        top = _fold(_times, above) if above else None
        if not below:
            assert top is not None
            return top
        bottom = _fold(_times, below)
        return lambda values: (1 if top is None else top(values)) / bottom(values)

    def _power(self, expr: Pow) -> Step:
        base = self._slot(expr.base)
        if expr.exp.is_Integer:
            n = int(expr.exp)
            return lambda values: values[base] ** n
        exponent = self._slot(expr.exp)
        return lambda values: _power(values[base], values[exponent])

    def _piecewise(self, expr: Piecewise) -> Step:
        arms = [(self._slot(margin(condition)), self._slot(branch)) for branch, condition in expr.args]
        return lambda values: next((values[b] for c, b in arms if values[c] >= 0), mp.nan)


def _tail(expr: Add) -> tuple[Expr, int, Expr] | None:
    """(c, side, u) with expr = c erfc(side u), of c - c erf(u), c + c erf(u) and 2 c - c erfc(u); None of others."""
    c, rest = expr.as_coeff_Add()
    b, f = rest.as_coeff_Mul()
    if isinstance(f, erf) and c in (b, -b):
        return c, 1 if c == -b else -1, f.args[0]
    return (-b, -1, f.args[0]) if isinstance(f, erfc) and c == -2*b else None


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _times(a: Any, b: Any) -> Any:
    return a * b


def _fold(combine: Callable[[Any, Any], Any], slots: list[int]) -> Step:
    head, *rest = slots

    def step(values: Values) -> Any:
        total = values[head]
        for slot in rest:
            total = combine(total, values[slot])
        return total

    return step


# -- what rounding costs -----------------------------------------------------------------------------------------------
_NOT_ROUNDED = (Symbol, sp.sign, sp.Heaviside, sp.floor, sp.ceiling, sp.Abs, sp.Max, sp.Min, sp.Piecewise)


class LastDigitMoved(StraightLine):
    """The same, every rounded result moved by about its last digit: what is lost of them shows in the value.

    Two precisions alone may not show it: 1 - erf(40)**2 is 0 in both, since erf(40) is rounded to 1.

    Examples
    --------
    >>> from sympy import Integer, erf
    >>> lost = 1 - erf(Integer(40))**2
    >>> float(StraightLine(lost, [])()), abs(float(LastDigitMoved(lost, [])())) > 1e-17
    (0.0, True)
    """

    def _step(self, expr: Any) -> Step:
        step, k = super()._step(expr), self._size
        if isinstance(expr, _NOT_ROUNDED) or (expr.is_Rational and _short(expr)):
            return step
        part = (-1)**k*(1 + 89*k % 251)  # no two move alike, or what they lose together would not show
        return lambda values: _moved(step(values), part)


def _short(number: Expr) -> bool:
    """Is a rational number held as it is, at any precision?"""
    return int(abs(number.p)).bit_length() <= 53 and number.q & (number.q - 1) == 0


def _moved(value: Any, ulps: int) -> Any:
    """The value and so many units of its last digit; what is no number (a loss) stays."""
    return value + value*ulps*mp.eps if isinstance(value, (mp.mpf, mp.mpc)) else value
