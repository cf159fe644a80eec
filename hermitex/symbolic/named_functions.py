"""name -> sigma(z): the named functions, each an expression of one variable, or an operation on several.

relu(u) = max(0, u), gelu(u) = u Phi(u), Phi(u) = (1 + erf(u/sqrt(2)))/2, He3(u) = u^3 - 3u, ... A new activation is
one line of the table. The reader of texts looks names up here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import (
    Abs,
    Expr,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Symbol,
    erf,
    erfc,
    exp,
    log,
    pi,
    sign,
    sqrt,
    sympify,
    tanh,
)

from hermitex import symbols
from hermitex.errors import BadInput, UnknownName
from hermitex.symbolic.series.polynomials import He

z = symbols.z


@dataclass(frozen=True)
class NamedFunction:
    """A function of one variable: its name and its expression in z, with its parameters and their usual values.

    Examples
    --------
    >>> from hermitex.symbols import kappa
    >>> FUNCTIONS["leaky_relu"](kappa)
    Max(0, kappa) + Min(0, kappa)/100
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

    def __repr__(self) -> str:
        return f"{self.name}: z -> {self.expr}"


@dataclass(frozen=True)
class FunctionOfSeveral:
    """A named function of several arguments, or one that is not an activation: Max, floor, Rational, ..."""

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
_sigmoid = 1 / (1 + exp(-z))  # 1/(1 + e^-z)
_Phi = (1 + erf(z/sqrt(2))) / 2  # P(N(0, 1) < z)
_hard = Max(0, Min(1, z/6 + S.Half))  # PyTorch's hardsigmoid


def _selu() -> Expr:
    """The scale and the slope at which E selu(z) = 0 and E selu(z)^2 = 1 [klambauer2017, App. A]."""
    a, b = erfc(1/sqrt(2)) * exp(S.Half), erfc(sqrt(2)) * exp(2)
    slope = sqrt(2/pi) / (1 - a)
    # E selu = scale (1/sqrt(2 pi) + slope (a - 1)/2); E selu^2 = scale^2 (1/2 + slope^2 (b - 2 a + 1)/2)
    scale = sqrt(2 / (1 + slope**2*(b - 2*a + 1)))
    return scale * Piecewise((z, z > 0), (slope*(exp(z) - 1), True))


_FORMS: dict[str, Expr] = {
    "relu": Max(0, z), "ReLU": Max(0, z), "sign": sign(z), "sgn": sign(z), "round": sympy.floor(z + S.Half),
    "abs": Abs(z), "Abs": Abs(z), "Heaviside": Heaviside(z), "erf": erf(z),
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
_TWO = (sympy.besseli, sympy.besselj, sympy.besselk, sympy.bessely, sympy.polygamma, sympy.atan2, sympy.beta)
_SEVERAL: dict[str, FunctionOfSeveral] = {
    "Max": FunctionOfSeveral("Max", Max), "Min": FunctionOfSeveral("Min", Min), "max": FunctionOfSeveral("max", Max),
    "min": FunctionOfSeveral("min", Min), "Rational": FunctionOfSeveral("Rational", lambda p, q=S.One: p/q),
    "factorial": FunctionOfSeveral("factorial", lambda n: sympy.gamma(n + 1), 1),
    "binomial": FunctionOfSeveral("binomial", lambda n, k: sympy.gamma(n + 1)/(sympy.gamma(k + 1)*sympy.gamma(n - k + 1)), 2),
    "mod": FunctionOfSeveral("mod", lambda a, b: a - b*sympy.floor(a/b), 2),
    "Mod": FunctionOfSeveral("Mod", lambda a, b: a - b*sympy.floor(a/b), 2),
    "median": FunctionOfSeveral("median", lambda a, b, c: Max(Min(a, b), Min(c, Max(a, b))), 3),
    **{f.__name__: FunctionOfSeveral(f.__name__, f, 2) for f in _TWO},
}


class _Functions(dict):
    """name -> callable; He0, He1, He2, ... are made on first use."""

    def __missing__(self, name: str) -> NamedFunction:
        match = _HERMITE.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise UnknownName(str(name)[:60], [*self, "He2", "He3"], what="function", meant=["z"] if name in ("x", "X") else ())
        order = int(match[1])
        highest = 500  # of a Hermite polynomial called by name
        if order > highest:
            raise BadInput(f"{name}: a Hermite polynomial is called by name up to He{highest}")
        self[name] = NamedFunction(name, He(order, z))
        return self[name]

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or (isinstance(name, str) and bool(_HERMITE.fullmatch(name)))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - dict.get would not make He7


_HERMITE = re.compile(r"He(\d{1,6})")

FUNCTIONS: dict[str, NamedFunction | FunctionOfSeveral] = _Functions(
    {name: NamedFunction(name, form) for name, form in _FORMS.items()}
    | {f.__name__: NamedFunction(f.__name__, f(z)) for f in _SYMPY}
    | {
        "leaky_relu": NamedFunction("leaky_relu", Max(0, z) + _slope*Min(0, z), ((_slope, Rational(1, 100)),)),
        "elu": NamedFunction("elu", Piecewise((z, z > 0), (_alpha*(exp(z) - 1), True)), ((_alpha, S.One),)),
        "celu": NamedFunction("celu", Max(0, z) + _alpha*(exp(Min(0, z)/_alpha) - 1), ((_alpha, S.One),)),
        "swish": NamedFunction("swish", z/(1 + exp(-_beta*z)), ((_beta, S.One),)),
    } | _SEVERAL)
