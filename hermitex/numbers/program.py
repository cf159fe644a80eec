"""f(x1, ..., xn) as a straight-line program: one operation for each distinct subexpression, in the order of evaluation.

One program is evaluated in three arithmetics: scaled floats on NumPy arrays, flint's balls, mpmath.

>>> import numpy as np, sympy as sp
>>> x, a = sp.symbols("x a", real=True)
>>> program = Program(sp.exp(a*x)*sp.Heaviside(x), (x, a))
>>> program.floats(np.array([-1.0, 1.0]), np.array([[1000.0], [2.0]])).logarithm().tolist()
[[-inf, 1000.0], [-inf, 2.0]]
>>> print(program.balls(acb(2), acb(1)).real.str(12, radius=False))
7.38905609893
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from flint import acb, arb, ctx, fmpz
from sympy import Expr, Symbol
from sympy.logic.boolalg import Boolean, BooleanFunction

from hermitex.errors import NoClosedForm
from hermitex.numbers import floats_with_exponent as scaled
from hermitex.numbers.floats_with_exponent import Scaled
from hermitex.numbers.function_table import REWRITTEN, TABLE, by_mpmath
from hermitex.numbers.tail_forms import (
    erfc_tail,
    expm1,
    log_normal_probability,
    logarithm,
    logistic,
    negative_power,
    saturating,
    softplus,
)
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.losses import Loss

#: Operations that switch from one analytic formula to another where their last argument changes sign.
SWITCHES = frozenset({"abs", "sign", "step", "floor", "maximum", "minimum", "positive", "nonnegative", "zero"})
_STEEP = (sp.tanh, sp.erf, sp.erfc, erfc_tail, sp.exp, sp.sech, sp.cosh, sp.sinh, sp.atan, expm1, log_normal_probability,
          logistic, softplus)


class Operation(NamedTuple):
    """`name` applied to the values numbered `arguments`; `data`: a constant, the number of a variable, an exponent."""

    name: str
    arguments: tuple[int, ...] = ()
    data: Any = None


class BallNumber(sp.AtomicExpr):
    """A real number with a known ball, as a constant of an expression: an average inside of another."""

    is_number, is_real, is_commutative = True, True, True

    def __new__(cls, ball: acb) -> BallNumber:
        new: BallNumber = super().__new__(cls)
        new.ball = ball
        return new

    def _hashable_content(self) -> tuple[int]:
        return (id(self.ball),)

    def _eval_evalf(self, prec: int) -> Expr:
        with mp.workprec(prec):
            return sp.Float._new(middle_of(self.ball.real)._mpf_, prec)


class Undecided(ArithmeticError):
    """A ball holds the place at which a switch turns."""


class Program:
    """An expression over variables, compiled once.

    Parameters
    ----------
    expr : a SymPy expression
    variables : its symbols, in the order in which values are given; parameters are variables like all others

    Attributes
    ----------
    operations : the list of operations; `switches` (expressions that a switch compares with 0), `singular` (bases of
        powers, arguments of logarithms: where the integrand may be unbounded or not smooth), `centres` (arguments of
        steep functions: near their zeros the integrand changes fast), `linear` (the numbers of switches of linear functions)

    Raises
    ------
    NoClosedForm : a symbol without a value, or a function without a numeric rule.
    """

    def __init__(self, expr: Expr, variables: Sequence[Symbol]) -> None:
        self.expr, self.variables = expr, tuple(variables)
        self.operations: list[Operation] = []
        self.switches: list[Expr] = []
        self.singular: list[Expr] = []
        self.centres: list[Expr] = []
        self.linear: set[int] = set()
        self._numbered: dict[Any, int] = {}
        self._constants: dict[tuple[Any, Any], Any] = {}
        self._pointwise: dict[Any, Callable[..., Any]] = {}
        self._top = self._of(expr)
        self.switching = [i for i, op in enumerate(self.operations) if op.name in SWITCHES]
        self.has_balls = all(map(_has_ball, self.operations))

    # -- evaluation ------------------------------------------------------------------------------------------------
    def floats(self, *values: Any) -> Scaled:
        """The values m e^k on arrays that broadcast against one another (points usually along the last axis).

        A value may be a Scaled, a real or a complex array. Where a logarithm or a root leaves the reals of real arrays: nan.
        """
        found: list[Any] = []
        inputs = [v if isinstance(v, Scaled) else Scaled(np.asarray(v)) for v in values]
        with np.errstate(all="ignore"):
            for op in self.operations:
                found.append(self._in_floats(op, [found[i] for i in op.arguments], inputs))
        shape = np.broadcast_shapes(*(np.shape(v.m) for v in inputs)) if inputs else ()
        top = found[self._top]
        return Scaled(np.broadcast_to(top.m, shape), top.k if np.ndim(top.k) == 0 else np.broadcast_to(top.k, shape))

    def values(self, *values: Any) -> Any:
        """`floats` as plain doubles: 0 or inf where the value is beyond them."""
        return self.floats(*values).plain()

    def balls(self, *values: acb, analytic: bool = False, frozen: Mapping[int, int] | None = None,
              every: list[Any] | None = None) -> acb:
        """The value on balls at flint's working precision.

        Parameters
        ----------
        analytic : the flag of acb.integral: a ball across a branch cut gives nan
        frozen : {number of a switch: its sign, or its whole number}, as `frozen_at` gives them; without it each switch
            is decided by its ball
        every : a list to which the values of all operations are appended

        Raises
        ------
        Undecided : a ball holds the place at which a switch turns (only without `frozen`).
        """
        found = every if every is not None else []
        for number, op in enumerate(self.operations):
            arguments = [found[i] for i in op.arguments]
            state = None if frozen is None or op.name not in SWITCHES else frozen[number]
            found.append(self._in_balls(op, arguments, values, analytic, state))
        return found[self._top]

    def digits(self, *values: Any) -> Any:
        """The value at one point of mpmath numbers, at mpmath's working precision."""
        found: list[Any] = []
        for op in self.operations:
            found.append(self._in_digits(op, [found[i] for i in op.arguments], values))
        return found[self._top]

    def frozen_at(self, *values: acb) -> dict[int, int]:
        """{number of a switch: its sign at a point, or for floor its whole number}."""
        every: list[Any] = []
        self.balls(*values, every=every)
        return {i: _floor(every[self.operations[i].arguments[-1]].real) if self.operations[i].name == "floor"
                else _sign(every[self.operations[i].arguments[-1]].real) for i in self.switching}

    # -- one operation in each arithmetic --------------------------------------------------------------------------
    def _in_floats(self, op: Operation, a: list[Any], inputs: Sequence[Scaled]) -> Any:
        if op.name == "constant":
            return self._constant(op.data, None, _scaled_constant)
        if op.name == "variable":
            return inputs[op.data]
        if op.name == "truth":
            return op.data
        if op.name == "power":
            return scaled.power(a[0], self._constant(op.data, "float", _plain_constant))
        if op.name in _FLOAT_SHAPES:
            return _FLOAT_SHAPES[op.name](*a)
        if op.name in SWITCHES:
            return _float_switch(op, a)
        if op.name == "pointwise":
            return Scaled(np.vectorize(partial(_double_of, self._pointwise[op.data]), otypes=[float])(*(x.plain() for x in a)))
        return TABLE[op.name].doubles(*a)

    def _in_balls(self, op: Operation, a: list[Any], inputs: Sequence[acb], analytic: bool, state: int | None) -> Any:
        if op.name == "constant":
            return self._constant(op.data, ctx.prec, ball_constant)
        if op.name == "variable":
            return inputs[op.data]
        if op.name == "truth":
            return op.data
        if op.name == "power":
            return self._ball_power(a[0], op.data, analytic)
        if op.name in _BALL_SHAPES:
            return _BALL_SHAPES[op.name](*a)
        if op.name in SWITCHES:
            if state is None:
                state = _floor(a[-1].real) if op.name == "floor" else _sign(a[-1].real)
            return _ball_switch(op, a, state)
        rule = TABLE.get(op.name)
        if rule is None or rule.ball is None:  # a function that flint lacks has mpmath's digits, and proves nothing
            raise NoClosedForm(self.expr, f"{op.data[0] if rule is None else op.name} has no ball")
        return rule.ball(*a, analytic=analytic) if rule.cut else rule.ball(*a)

    def _ball_power(self, base: acb, exponent: Expr, analytic: bool) -> acb:
        if exponent.is_Integer:
            return base**int(exponent)
        if exponent == sp.S.Half:
            return base.sqrt(analytic=analytic)
        if exponent == -sp.S.Half:
            return base.rsqrt(analytic=analytic)
        return base.pow(self._constant(exponent, ctx.prec, ball_constant), analytic=analytic)

    def _in_digits(self, op: Operation, a: list[Any], inputs: Sequence[Any]) -> Any:
        if op.name == "constant":
            return self._constant(op.data, ("digits", mp.prec), _mp_constant)
        if op.name == "variable":
            return inputs[op.data]
        if op.name == "truth":
            return op.data
        if op.name == "power":
            return a[0]**self._constant(op.data, ("digits", mp.prec), _mp_constant)
        if op.name in _DIGIT_SHAPES:
            return _DIGIT_SHAPES[op.name](*a)
        if op.name in SWITCHES:
            u = mp.re(a[-1])
            return _digit_switch(op, a, int(mp.floor(u)) if op.name == "floor" else int(mp.sign(u)))
        if op.name == "pointwise":
            return self._pointwise[op.data](*a)
        return TABLE[op.name].digits(*a)

    def _constant(self, value: Expr, precision: Any, made: Callable[[Expr], Any]) -> Any:
        key = (value, precision)
        if key not in self._constants:
            self._constants[key] = made(value)
        return self._constants[key]

    # -- building --------------------------------------------------------------------------------------------------
    def _operation(self, name: str, *arguments: int, data: Any = None) -> int:
        """The number of an operation, the same for equal ones."""
        op = Operation(name, arguments, data)
        if op not in self._numbered:
            self.operations.append(op)
            self._numbered[op] = len(self.operations) - 1
        return self._numbered[op]

    def _of(self, e: Expr) -> int:
        if e not in self._numbered:
            self._numbered[e] = self._built(e)
        return self._numbered[e]

    def _built(self, e: Expr) -> int:
        if not e.free_symbols:
            return self._operation("constant", data=self._finite(e))
        if e in self.variables:
            return self._operation("variable", data=self.variables.index(e))
        return self._with_rules(e)

    def _with_rules(self, e: Expr) -> int:
        for kind, build in _BUILDERS:
            if isinstance(e, kind):
                return build(self, e)
        if isinstance(e, Symbol):
            raise NoClosedForm(self.expr, f"{e} has no value", f"Give it one: subs={{'{e}': ...}}")
        if (rewritten := REWRITTEN.get(e.func)) is not None:
            return self._of(rewritten(*e.args))
        return self._function(e)

    def _finite(self, e: Expr) -> Expr:
        if e.has(sp.oo, -sp.oo, sp.zoo, sp.nan):  # `is_finite` of a long sum takes seconds
            raise NoClosedForm(self.expr, f"{e} is not a finite number")
        return e

    def _function(self, e: Expr) -> int:
        name = e.func.__name__
        if name not in TABLE or (len(e.args) > 1 and name in ("LambertW", "loggamma")):
            return self._by_mpmath(e)
        u = e.args[-1]
        if isinstance(e, _STEEP):
            self.centres.append(u)
        if isinstance(e, sp.exp) and u.is_Add:
            constant, rest = u.as_independent(*self.variables, as_Add=True)
            if constant != 0 and rest != 0:  # of e^(45000 - u) the sum would cost the digits of 45000
                return self._operation("multiply", self._of(sp.exp(constant)), self._of(sp.exp(rest)))
        if isinstance(e, sp.tan):
            self.singular.append(sp.cos(u))
        if isinstance(e, sp.gamma | sp.loggamma | sp.digamma):
            self.singular.append(sp.sin(sp.pi*u))
        if isinstance(e, sp.asin | sp.acos | sp.atanh):
            self.singular += [1 - u, 1 + u]
        if isinstance(e, sp.acosh | sp.Ei):
            self.singular += [u, u - 1]
        return self._operation(name, *map(self._of, e.args))

    def _by_mpmath(self, e: Expr) -> int:
        """A function that only mpmath evaluates, or a node with an evaluation of its own: one point at a time."""
        function = by_mpmath(e)
        if function is None:
            raise NoClosedForm(self.expr, f"{e.func} has no numeric rule")
        arguments = [a for a in e.args if not isinstance(a, Loss)]
        self.singular += [a for a in arguments if a.free_symbols]  # where one is 0: Bessel's functions, exponential integrals
        losses = tuple(a for a in e.args if isinstance(a, Loss))
        self._pointwise[e.func, losses] = partial(function, *losses)
        return self._operation("pointwise", *map(self._of, arguments), data=(e.func, losses))

    def _sum(self, e: sp.Add) -> int:
        if (form := saturating(e)) is not None:
            return self._of(form)
        if len(e.args) > 3 and (polynomial := self._horner(e)) is not None:
            return polynomial
        return self._folded("add", e.args)

    def _horner(self, e: sp.Add) -> int | None:
        """A polynomial in one of the variables by Horner's rule."""
        inside = [v for v in self.variables if e.has(v)]
        if len(inside) != 1 or not e.is_polynomial(*inside) or e.free_symbols != set(inside):
            return None
        first, *rest = sp.Poly(e, *inside).all_coeffs()
        value, x = self._of(first), self._of(inside[0])
        for c in rest:
            value = self._operation("multiply", value, x)
            value = value if c == 0 else self._operation("add", value, self._of(c))
        return value

    def _folded(self, name: str, arguments: Sequence[Expr]) -> int:
        return reduce(lambda i, j: self._operation(name, i, j), map(self._of, arguments))

    def _product(self, e: sp.Mul) -> int:
        return self._folded("multiply", e.args)

    def _power(self, e: sp.Pow) -> int:
        if e.exp.free_symbols:
            return self._of(sp.exp(e.exp*sp.log(e.base)))
        if (form := negative_power(e.base, e.exp)) is not None:
            return self._of(form)
        if not (e.exp.is_Integer and e.exp > 0):
            self.singular.append(e.base)
            self.centres.append(e.base)
            if e.base.is_Add and len(self.variables) == 1:  # 1/(1 + u^2) is steep where u vanishes: between its complex poles
                self.centres.append(e.base.diff(self.variables[0]))
        return self._operation("power", self._of(e.base), data=e.exp)

    def _logarithm(self, e: sp.log) -> int:
        form = logarithm(e.args[0])
        if isinstance(form, softplus | log_normal_probability):
            return self._of(form)
        self.singular.append(e.args[0])
        self.centres.append(e.args[0])
        if form is not None:
            return self._of(form)
        return self._operation("log", self._of(e.args[0]))

    def _absolute(self, e: sp.Abs) -> int:
        u = e.args[0]
        if u.is_real is False or (u.has(sp.I) and not u.is_real):
            return self._operation("modulus", self._of(u))
        return self._switch("abs", u)

    def _switch(self, name: str, u: Expr, data: Any = None) -> int:
        self.switches.append(u)
        return self._compared(name, u, data)

    def _compared(self, name: str, u: Expr, data: Any = None) -> int:
        """A switch of u; whether u is linear is noted, for then its values at two points tell its sign between them."""
        number = self._operation(name, self._of(u), data=data)
        if all(u.is_polynomial(v) and not u.diff(v).free_symbols for v in self.variables):
            self.linear.add(number)
        return number

    def _sign(self, e: sp.sign) -> int:
        return self._switch("sign", e.args[0])

    def _step(self, e: sp.Heaviside) -> int:
        at_zero = e.args[1] if len(e.args) > 1 and e.args[1].is_number and e.args[1].is_finite else sp.S.Half
        return self._switch("step", e.args[0], data=at_zero)

    def _whole(self, e: sp.floor) -> int:
        self.switches.append(sp.sin(sp.pi*e.args[0]))
        return self._compared("floor", e.args[0])

    def _largest(self, e: Expr) -> int:
        if all(isinstance(u, sp.exp) for u in e.args):
            return self._of(sp.exp(e.func(*(u.args[0] for u in e.args))))
        name = "maximum" if isinstance(e, sp.Max) else "minimum"
        self.switches += [a - b for a, b in combinations(e.args, 2)]
        first, second, *others = e.args
        value = self._operation(name, self._of(first), self._of(second), self._of(first - second))
        for u in others:
            new = self._of(u)
            difference = self._operation("add", value, self._operation("multiply", self._of(sp.S.NegativeOne), new))
            value = self._operation(name, value, new, difference)
        return value

    def _piecewise(self, e: sp.Piecewise) -> int:
        value = self._operation("constant", data=sp.nan)  # where no condition holds
        for arm, condition in reversed(e.args):
            chosen = self._of(arm)
            value = chosen if condition == sp.true else self._operation("choose", self._condition(condition), chosen, value)
        return value

    def _condition(self, c: Boolean) -> int:
        """The number of a truth value."""
        if c in (sp.true, sp.false):
            return self._operation("truth", data=bool(c))
        if isinstance(c, BooleanFunction):
            parts = [self._condition(a) for a in c.args]
            if isinstance(c, sp.Not):
                return self._operation("not", parts[0])
            if isinstance(c, sp.And | sp.Or):
                return reduce(lambda i, j: self._operation("and" if isinstance(c, sp.And) else "or", i, j), parts)
            return self._condition(c.to_nnf())
        if not isinstance(c, sp.core.relational.Relational):
            raise NoClosedForm(self.expr, f"the condition {c} has no numeric rule")
        return self._comparison(c)

    def _comparison(self, c: Any) -> int:
        low, high = (c.rhs, c.lhs) if isinstance(c, sp.Gt | sp.Ge) else (c.lhs, c.rhs)
        if isinstance(c, sp.Eq | sp.Ne):
            same = self._switch("zero", high - low)
            return same if isinstance(c, sp.Eq) else self._operation("not", same)
        return self._switch("positive" if isinstance(c, sp.Lt | sp.Gt) else "nonnegative", high - low)

    def _part(self, e: Expr) -> int:
        names = {sp.re: "real", sp.im: "imaginary", sp.conjugate: "conjugate", sp.arg: "angle"}
        return self._operation(names[e.func], self._of(e.args[0]))


_BUILDERS: tuple[tuple[Any, Callable[[Program, Any], int]], ...] = (
    (sp.Add, Program._sum), (sp.Mul, Program._product), (sp.Pow, Program._power), (sp.log, Program._logarithm),
    (sp.Max | sp.Min, Program._largest), (sp.Piecewise, Program._piecewise), (sp.Abs, Program._absolute),
    (sp.sign, Program._sign), (sp.Heaviside, Program._step), (sp.floor, Program._whole),
    (sp.re | sp.im | sp.conjugate | sp.arg, Program._part),
)


def _has_ball(op: Operation) -> bool:
    if op.name == "constant":
        return op.data.is_Rational or op.data in _LEAVES or _constant_program(op.data).has_balls
    return op.name != "pointwise" and (op.name not in TABLE or TABLE[op.name].ball is not None)


def _double_of(function: Callable[..., Any], *values: float) -> float:
    """A function of mpmath's as one of doubles; nan where it has no real value."""
    try:
        with mp.workprec(60):
            value = function(*(mp.mpf(v.real) if v.imag == 0 else mp.mpc(v) for v in values))
        return float(value) if isinstance(value, mp.mpf) else math.nan
    except (ArithmeticError, ValueError):
        return math.nan


# -- shapes and switches: the operations that are not functions ------------------------------------------------------------
def _angle(a: Scaled) -> Scaled:
    return Scaled(np.angle(a.m))


_FLOAT_SHAPES: dict[str, Callable[..., Any]] = {
    "add": scaled.add, "multiply": scaled.multiply, "choose": scaled.where, "modulus": lambda a: Scaled(np.abs(a.m), a.k),
    "not": np.logical_not, "and": np.logical_and, "or": np.logical_or, "angle": _angle,
    "real": lambda a: Scaled(np.real(a.m), a.k), "imaginary": lambda a: Scaled(np.imag(a.m), a.k),
    "conjugate": lambda a: Scaled(np.conj(a.m), a.k),
}
_LOGIC: dict[str, Callable[..., Any]] = {
    "choose": lambda c, a, b: a if c else b, "not": lambda c: not c, "and": lambda c, d: c and d, "or": lambda c, d: c or d,
}
_BALL_SHAPES: dict[str, Callable[..., Any]] = _LOGIC | {
    "add": lambda a, b: a + b, "multiply": lambda a, b: a*b, "modulus": lambda a: acb(abs(a)), "angle": lambda a: acb(a.arg()),
    "real": lambda a: acb(a.real), "imaginary": lambda a: acb(a.imag), "conjugate": lambda a: a.conjugate(),
}
_DIGIT_SHAPES: dict[str, Callable[..., Any]] = _LOGIC | {
    "add": lambda a, b: a + b, "multiply": lambda a, b: a*b, "modulus": abs, "angle": mp.arg, "real": mp.re, "imaginary": mp.im,
    "conjugate": mp.conj,
}


def _float_switch(op: Operation, a: list[Scaled]) -> Any:
    u = a[-1]
    m = np.real(u.m)
    if op.name in ("positive", "nonnegative", "zero"):
        return {"positive": m > 0, "nonnegative": m >= 0, "zero": m == 0}[op.name]
    if op.name == "abs":
        return Scaled(np.abs(u.m), u.k)
    if op.name == "sign":
        return Scaled(np.sign(m))
    if op.name == "step":
        return Scaled(np.where(m > 0, 1.0, np.where(m < 0, 0.0, np.where(np.isnan(m), np.nan, float(op.data)))))
    if op.name == "floor":
        return Scaled(np.floor(np.real(u.plain())))
    return scaled.where(m > 0 if op.name == "maximum" else m < 0, a[0], a[1])


def _ball_switch(op: Operation, a: list[acb], state: int) -> Any:
    """A switch whose last argument has the sign (for floor: the whole number) `state`."""
    if op.name == "step":
        return acb(1) if state > 0 else acb(0) if state < 0 else ball_constant(op.data)
    return _switched(op.name, a, state, acb)


def _digit_switch(op: Operation, a: list[Any], state: int) -> Any:
    if op.name == "step":
        return mp.one if state > 0 else mp.zero if state < 0 else _mp_constant(op.data)
    return _switched(op.name, a, state, mp.mpf)


def _switched(name: str, a: list[Any], state: int, number: Callable[[int], Any]) -> Any:
    if name in ("positive", "nonnegative", "zero"):
        return {"positive": state > 0, "nonnegative": state >= 0, "zero": state == 0}[name]
    if name in ("sign", "floor"):
        return number(state)
    if name == "abs":
        return a[0]*state
    return a[0] if (state > 0) == (name == "maximum") else a[1]


def _sign(u: arb) -> int:
    if u > 0:
        return 1
    if u < 0:
        return -1
    if u == 0:
        return 0
    raise Undecided("a ball holds a zero of a switch")


def _floor(u: arb) -> int:
    whole = u.floor().unique_fmpz()
    if whole is None:
        raise Undecided("a ball holds a jump of floor")
    return int(whole)


# -- constants -------------------------------------------------------------------------------------------------------------
_LEAVES: dict[Any, Callable[[], acb]] = {
    sp.pi: acb.pi, sp.E: lambda: acb(arb.const_e()), sp.I: lambda: acb(0, 1), sp.EulerGamma: lambda: acb(arb.const_euler()),
    sp.Catalan: lambda: acb(arb.const_catalan()), sp.GoldenRatio: lambda: (1 + acb(5).sqrt())/2, sp.nan: lambda: acb("nan"),
}


class _ConstantProgram(Program):
    """A program without variables, down to rational numbers and named constants."""

    def _built(self, e: Expr) -> int:
        root = isinstance(e, sp.RootOf) and e.is_real
        if root or e.is_Rational or e.is_Float or e in _LEAVES or isinstance(e, Symbol | BallNumber):
            return self._operation("leaf", data=e)
        return self._with_rules(e)

    def _in_digits(self, op: Operation, a: list[Any], inputs: Sequence[Any]) -> Any:
        return _number_of(_leaf(op.data)) if op.name == "leaf" else super()._in_digits(op, a, inputs)

    def _in_balls(self, op: Operation, a: list[Any], inputs: Sequence[acb], analytic: bool, state: int | None) -> Any:
        return _leaf(op.data) if op.name == "leaf" else super()._in_balls(op, a, inputs, analytic, state)


@lru_cache(maxsize=512)
def _constant_program(e: Expr) -> _ConstantProgram:
    """The program of a constant; it says if the constant has a ball, and gives its value at several precisions."""
    return _ConstantProgram(e, ())


def _leaf(e: Expr) -> acb:
    if e in _LEAVES:
        return _LEAVES[e]()
    if isinstance(e, BallNumber):
        return e.ball
    if isinstance(e, sp.RootOf):
        within = sp.Rational(1, 2**(ctx.prec + 10))
        return _leaf(e.eval_rational(dx=within)) + acb(arb(0, _leaf(within).real))
    r = sp.Rational(e)  # a Float is the binary number that it is
    return acb(arb(fmpz(int(r.p)))/arb(fmpz(int(r.q))))


def ball_constant(e: Expr) -> acb:
    """A ball of a constant expression with about the working precision, or as small as 4,000 further bits make it.

    >>> with ctx.workprec(70): print(ball_constant(sp.sqrt(2) - 1).real.str(15))
    [0.414213562373095 +/- 4.89e-17]
    """
    if e.is_Rational or e in _LEAVES:
        return _leaf(e)
    program, wanted = _constant_program(e), ctx.prec
    if not program.has_balls:
        raise NoClosedForm(e, "it has no ball")
    extra = 20
    while True:
        with ctx.workprec(wanted + extra):
            try:
                ball = program.balls()
                good = ball.rel_accuracy_bits() >= wanted
            except Undecided:
                ball, good = acb("nan"), False
        most = 4000  # bits; a constant that cancels further is taken as a ball about 0
        if good or extra > most:
            return ball
        extra *= 4


def middle_of(x: arb) -> Any:
    """The middle of a ball as a number of mpmath."""
    if not x.is_finite():
        return mp.nan
    man, exponent = x.mid().man_exp()
    return mp.mpf(int(man))*mp.mpf(2)**int(exponent)


def exact_ball(x: Any) -> arb:
    """A number of mpmath as a ball without a radius, with all of its bits whatever precision is in force."""
    negative, man, exponent, _ = x._mpf_
    return arb((-1)**negative*int(man))*arb(2)**int(exponent)


def _without_radius(value: Any) -> acb:
    return acb(exact_ball(mp.re(value)), exact_ball(mp.im(value)))


def _number_of(ball: acb) -> Any:
    return middle_of(ball.real) if ball.imag == 0 else mp.mpc(middle_of(ball.real), middle_of(ball.imag))


def ball_at(program: Program, values: Sequence[Any]) -> tuple[Any, Any]:
    """(middle, radius) of a program with balls at numbers of mpmath, at mpmath's working precision."""
    with ctx.workprec(mp.prec):
        ball = program.balls(*map(_without_radius, values))
        return _number_of(ball), middle_of(ball.real.rad()) + middle_of(ball.imag.rad())


def _mp_constant(e: Expr) -> Any:
    program = _constant_program(e)
    with ctx.workprec(mp.prec + 10):
        return _number_of(ball_constant(e)) if program.has_balls else program.digits()


def _scaled_constant(e: Expr) -> Scaled:
    if e is sp.nan:
        return Scaled(np.float64(np.nan))
    with ctx.workprec(90), mp.workprec(90):
        ball = ball_constant(e) if _constant_program(e).has_balls else _without_radius(_constant_program(e).digits())
        size = abs(ball)
        k = 0 if size.contains(0) else int(size.log().mid().floor().unique_fmpz())
        k = k if abs(k) > scaled.WIDEST else 0
        ball = ball*arb(-k).exp()
        real, imaginary = float(ball.real.mid()), float(ball.imag.mid())
    return Scaled(np.float64(real) if imaginary == 0 else np.complex128(complex(real, imaginary)), float(k))


def _plain_constant(e: Expr) -> float | complex:
    value = _scaled_constant(e).plain()
    return complex(value) if np.iscomplexobj(value) else float(value)
