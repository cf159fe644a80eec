"""sigma(z): the named functions, each an expression of one variable that can be called, differentiated and judged.

relu(u) = max(0, u), gelu(u) = u Phi(u), Phi(u) = (1 + erf(u/sqrt(2)))/2, He3(u) = u^3 - 3u, ... A new activation is
one line of the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy
from sympy import (
    Abs,
    Expr,
    Heaviside,
    Lambda,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Symbol,
    erf,
    erfc,
    exp,
    latex,
    log,
    pi,
    sign,
    sqrt,
    sympify,
    tanh,
)
from sympy.core.function import FunctionClass, UndefinedFunction

from hermitex import symbols
from hermitex.errors import BadInput, UnknownName
from hermitex.symbolic.parity import parity
from hermitex.symbolic.weak import weak_derivative

__all__ = ["NAMED", "Activation", "Operation", "activation", "parity", "weak_derivative"]

z = symbols.z
_MAX_ORDER = 500    # of a Hermite polynomial called by name


@dataclass(frozen=True)
class Activation:
    """A function of one variable: its name and its expression in z, with its parameters and their usual values.

    Examples
    --------
    >>> from hermitex.symbols import kappa
    >>> NAMED["leaky_relu"](kappa)
    Max(0, kappa) + Min(0, kappa)/100
    >>> NAMED["gelu"].parity is None, NAMED["tanh"].parity
    (True, -1)
    """

    name: str
    form: Expr
    parameters: tuple[tuple[Symbol, Expr], ...] = ()

    @property
    def expr(self) -> Expr:
        """sigma(z), the parameters at their usual values."""
        return self.form.xreplace(dict(self.parameters)) if self.parameters else self.form

    @property
    def variable(self) -> Symbol:
        """The variable of `expr`: z."""
        return z

    @property
    def arity(self) -> int | None:
        """How many arguments a call takes; None if parameters may follow the first."""
        return None if self.parameters else 1

    def __call__(self, u: Any, *values: Any) -> Expr:
        """sigma(u); parameters may follow, as in leaky_relu(u, 1/10)."""
        if len(values) > len(self.parameters):
            most = f"at most {1 + len(self.parameters)} arguments" if self.parameters else "one argument"
            raise BadInput(f"{self.name} takes {most}, not {1 + len(values)}")
        rule = dict(self.parameters) | {p: sympify(v, strict=True) for (p, _), v in zip(self.parameters, values, strict=False)}
        return self.form.xreplace({z: sympify(u, strict=True), **rule})

    def to_dict(self) -> dict[str, Any]:
        """Its name, its expression in z as text that `hermitex.parse` reads, and its parity."""
        from hermitex.symbolic.text.plain import plain

        return {"name": self.name, "expr": plain(self.expr), "parity": self.parity}

    @cached_property
    def weak_derivative(self) -> Activation:
        """sigma' as a distribution: relu' = Heaviside, sign' = 2 delta."""
        return Activation(f"{self.name}'", weak_derivative(self.expr, z))

    @cached_property
    def kinks(self) -> tuple[Expr, ...]:
        """The points off which it is analytic."""
        from hermitex.symbolic.pieces import breakpoints

        return breakpoints(self.expr, z)

    @cached_property
    def parity(self) -> int | None:
        """1 even, -1 odd, 0 identically zero, None not proved."""
        return parity(self.expr, z)

    @cached_property
    def growth(self) -> tuple[Any, Any]:
        """Derived bounds of |sigma| towards -oo and +oo."""
        from hermitex.symbolic.growth import majorant

        return majorant(self.expr, z, -1), majorant(self.expr, z, 1)

    @cached_property
    def in_L1(self) -> bool | None:
        """Is E|sigma(z)| finite? None if neither was proved."""
        return self._integrable(1)

    @cached_property
    def in_L2(self) -> bool | None:
        """Is E sigma(z)^2 finite? None if neither was proved."""
        return self._integrable(2)

    def _integrable(self, power: int) -> bool | None:
        from hermitex.symbolic.growth import integrable

        return integrable(self.expr, z, power=power)

    def __repr__(self) -> str:
        return f"{self.name}: z -> {self.expr}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle z \mapsto {latex(self.expr)}$"


@dataclass(frozen=True)
class Operation:
    """A named function of several arguments, or of one that is no activation: Max, floor, Rational, ..."""

    name: str
    build: Callable[..., Expr]
    arity: int | None = None

    def __call__(self, *args: Any) -> Expr:
        if not args or (self.arity is not None and len(args) != self.arity):
            raise BadInput(f"{self.name} takes {self.arity or 'at least one'} argument(s), not {len(args)}")
        return self.build(*(sympify(a, strict=True) for a in args))

    def __repr__(self) -> str:
        return self.name


# -- the table --------------------------------------------------------------------------------------------------------
_slope, _alpha, _beta = Symbol("slope", real=True), Symbol("alpha", real=True), Symbol("beta", real=True)
_sigmoid = 1 / (1 + exp(-z))
_Phi = (1 + erf(z/sqrt(2))) / 2
_hard = Max(0, Min(1, z/6 + S.Half))


def _selu() -> Expr:
    """The scale and the slope at which E selu(z) = 0 and E selu(z)^2 = 1 [klambauer2017, App. A]."""
    a, b = erfc(1/sqrt(2)) * exp(S.Half), erfc(sqrt(2)) * exp(2)
    slope = sqrt(2/pi) / (1 - a)
    # E selu = scale (1/sqrt(2 pi) + slope (a - 1)/2); E selu^2 = scale^2 (1/2 + slope^2 (b - 2 a + 1)/2)
    scale = sqrt(2 / (1 + slope**2*(b - 2*a + 1)))
    return scale * Piecewise((z, z > 0), (slope*(exp(z) - 1), True))


_FORMS: dict[str, Expr] = {
    "relu": Max(0, z), "sign": sign(z), "abs": Abs(z), "Abs": Abs(z), "Heaviside": Heaviside(z), "erf": erf(z),
    "erfc": erfc(z), "Phi": _Phi, "gelu": z*_Phi, "sigmoid": _sigmoid, "logistic": _sigmoid, "silu": z*_sigmoid,
    "softplus": log(1 + exp(z)), "mish": z*tanh(log(1 + exp(z))), "selu": _selu(),
    "hardtanh": Max(-1, Min(1, z)), "relu6": Max(0, Min(6, z)), "hardsigmoid": _hard, "hardswish": z*_hard,
    "softsign": z/(1 + Abs(z)), "identity": z, "sqrt": sqrt(z), "cbrt": sign(z)*Abs(z)**Rational(1, 3),
    "ln": log(z), "arctan": sympy.atan(z), "arcsin": sympy.asin(z), "arccos": sympy.acos(z),
}
_SYMPY = (
    exp, log, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc, sympy.asin, sympy.acos, sympy.atan,
    sympy.acot, sympy.sinh, sympy.cosh, tanh, sympy.coth, sympy.sech, sympy.csch, sympy.asinh, sympy.acosh, sympy.atanh,
    sympy.acoth, sympy.erfi, sympy.erfinv, sympy.erfcinv, sympy.floor, sympy.ceiling, sympy.frac, sympy.gamma,
    sympy.loggamma, sympy.digamma, sympy.Ei, sympy.LambertW, sympy.DiracDelta)
_TWO = (sympy.besseli, sympy.besselj, sympy.besselk, sympy.bessely, sympy.polygamma, sympy.atan2)
_SEVERAL: dict[str, Operation] = {
    "Max": Operation("Max", Max), "Min": Operation("Min", Min), "max": Operation("max", Max),
    "min": Operation("min", Min), "Rational": Operation("Rational", lambda p, q=S.One: p/q),
    **{f.__name__: Operation(f.__name__, f, 2) for f in _TWO},
}


class _Named(dict):
    """name -> callable; He0, He1, He2, ... are made when they are asked for."""

    def __missing__(self, name: str) -> Activation:
        match = _HERMITE.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise UnknownName(str(name)[:60], [*self, "He2", "He3"], what="function")
        order = int(match[1])
        if order > _MAX_ORDER:
            raise BadInput(f"{name}: a Hermite polynomial is called by name up to He{_MAX_ORDER}")
        from hermitex.symbolic.series.polynomials import He

        self[name] = Activation(name, He(order, z))
        return self[name]

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or (isinstance(name, str) and bool(_HERMITE.fullmatch(name)))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - dict.get would not make He7


_HERMITE = re.compile(r"He(\d{1,6})")

NAMED: dict[str, Activation | Operation] = _Named(
    {name: Activation(name, form) for name, form in _FORMS.items()}
    | {f.__name__: Activation(f.__name__, f(z)) for f in _SYMPY}
    | {
        "leaky_relu": Activation("leaky_relu", Max(0, z) + _slope*Min(0, z), ((_slope, Rational(1, 100)),)),
        "elu": Activation("elu", Piecewise((z, z > 0), (_alpha*(exp(z) - 1), True)), ((_alpha, S.One),)),
        "celu": Activation("celu", Max(0, z) + _alpha*(exp(Min(0, z)/_alpha) - 1), ((_alpha, S.One),)),
        "swish": Activation("swish", z/(1 + exp(-_beta*z)), ((_beta, S.One),)),
    } | _SEVERAL)


def activation(sigma: Any) -> Activation:
    """The activation that a name, a text, an expression in z, a SymPy function or an `Activation` means.

    Raises
    ------
    UnknownName : with the closest known names.
    BadInput : it is not a function of one variable.

    Examples
    --------
    >>> import sympy
    >>> activation("relu"), activation(sympy.tanh), activation("He3")
    (relu: z -> Max(0, z), tanh: z -> tanh(z), He3: z -> z**3 - 3*z)
    >>> activation("z*tanh(z)").parity
    1
    """
    if isinstance(sigma, Activation):
        return sigma
    if isinstance(sigma, (UndefinedFunction, FunctionClass)):
        return _from_class(sigma)
    if isinstance(sigma, str):
        return _from_text(sigma.strip())
    if isinstance(sigma, Operation | Lambda) or (callable(sigma) and not isinstance(sigma, Expr)):
        return _from_callable(sigma)
    from hermitex.symbolic.parsing import expression

    expr = expression(sigma)
    return _of_one_variable(str(expr), expr)


def _from_text(text: str) -> Activation:
    from hermitex.symbolic.parsing import parse

    if text.isidentifier() and not symbols.is_normal_name(text):
        found = NAMED[text]
        if isinstance(found, Activation):
            return found
        raise BadInput(f"{text} is not a function of one variable; write an expression in z, e.g. '{text}(z, 1)'")
    return _of_one_variable(text, parse(text))


def _from_class(function: Any) -> Activation:
    name = function.__name__
    known = NAMED.get(name)
    if known is not None and not isinstance(function, UndefinedFunction):
        return known if isinstance(known, Activation) else _from_text(name)
    return _from_callable(function)


def _from_callable(function: Any) -> Activation:
    """What a function of Python or SymPy makes of z; one of several variables is refused."""
    name = str(getattr(function, "name", getattr(function, "__name__", "sigma")))
    try:
        value = function(z)
        from hermitex.symbolic.parsing import expression

        return _of_one_variable(name, expression(value))
    except (TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{name} is not a function of one variable on formulas ({str(error).splitlines()[0][:120]}); "
                       "write an expression in z, e.g. 'tanh(2*z)'") from None


def _of_one_variable(name: str, expr: Expr) -> Activation:
    """The normal z (or the only normal, or the only symbol) is the variable; further symbols are parameters."""
    found = symbols.normals(expr)
    if not found and len(expr.free_symbols) == 1:
        found = tuple(expr.free_symbols)
    if len(found) > 1 or (not found and expr.free_symbols):
        names = ", ".join(sorted(map(str, expr.free_symbols)))
        raise BadInput(f"an activation is a function of one variable z, not of {names}")
    return Activation(name, expr.xreplace({found[0]: z}) if found else expr)
