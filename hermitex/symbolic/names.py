"""The names that a text may call or mention, and the declaration of parameters: "mu, s>0" -> {mu: real, s: positive}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy
from sympy import Expr, Function, Rational, S, Symbol
from sympy.core.function import UndefinedFunction

from hermitex import symbols as field
from hermitex.errors import BadInput, UnknownName
from hermitex.symbolic import bounded

CONSTANTS = {"pi": S.Pi, "EulerGamma": S.EulerGamma, "Catalan": S.Catalan, "GoldenRatio": S.GoldenRatio}
ASSUMPTIONS = ("real", "positive", "negative", "nonnegative", "nonpositive", "nonzero", "integer", "function")

# What SymPy itself names, and with how many arguments; the activations come on top of these.
_ONE = ["abs", "exp", "log", "sqrt", "sign", "floor", "ceiling", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh", "acoth", "erf", "erfc", "erfi", "erfinv", "erfcinv", "gamma", "loggamma", "digamma", "zeta", "Ei", "DiracDelta", "Heaviside", "Abs", "LambertW"]
_TWO = ["besseli", "besselk", "besselj", "bessely", "polygamma", "uppergamma", "lowergamma", "beta", "atan2"]
_SYMPY = {name: getattr(sympy, name.replace("abs", "Abs")) for name in [*_ONE, *_TWO, "Max", "Min"]}
_SYMPY |= {"ln": sympy.log, "max": sympy.Max, "min": sympy.Min, "arcsin": sympy.asin, "arccos": sympy.acos,
           "arctan": sympy.atan, "cbrt": lambda u: sympy.sign(u) * abs(u)**Rational(1, 3)}
_ARITY = {**dict.fromkeys(_TWO, 2)}


def _named() -> Mapping[str, Any]:
    """The registry of activations."""
    try:
        from hermitex.symbolic.activations import NAMED
    except ImportError:
        return _FALLBACK
    return NAMED


class _Fallback(dict):
    def __missing__(self, name: str) -> Any:
        if name.startswith("He") and name[2:].isdigit() and int(name[2:]) <= 1000:
            k = int(name[2:])
            return lambda u: sympy.expand(sum(sympy.factorial(k) * (-1)**j * u**(k - 2*j) / (
                sympy.factorial(j) * sympy.factorial(k - 2*j) * 2**j) for j in range(k // 2 + 1)))
        raise KeyError(name)


_FALLBACK = _Fallback(
    relu=lambda u: sympy.Max(0, u),
    Phi=lambda u: (1 + sympy.erf(u / sympy.sqrt(2))) / 2,
    gelu=lambda u: u * (1 + sympy.erf(u / sympy.sqrt(2))) / 2,
    sigmoid=lambda u: 1 / (1 + sympy.exp(-u)),
    silu=lambda u: u / (1 + sympy.exp(-u)),
    softplus=lambda u: sympy.log(1 + sympy.exp(u)),
    leaky_relu=lambda u: sympy.Piecewise((u, u > 0), (u / 100, True)),
    elu=lambda u: sympy.Piecewise((u, u > 0), (sympy.exp(u) - 1, True)),
)


def function_names() -> list[str]:
    """Every name that can be called with its argument in brackets."""
    return sorted({*_SYMPY, *_named(), "Rational"})


def call(name: str, args: list[Expr], known: Iterable[str] = ()) -> Expr:
    """The value of a named function; refuses an unknown name and a wrong number of arguments."""
    if name == "Rational":
        if len(args) not in (1, 2) or not all(isinstance(a, Rational) for a in args) or (len(args) == 2 and args[1] == 0):
            raise BadInput("Rational takes two integers, Rational(1, 2)")
        return args[0] / args[1] if len(args) == 2 else args[0]
    function = _SYMPY.get(name)
    if function is None:
        function = _lookup(name, known)
        count = getattr(function, "arity", 1)
    else:
        count = None if name.lower() in ("max", "min") else _ARITY.get(name, 1)
    if (count is None and not args) or (count is not None and len(args) != count):
        expected = "at least one argument" if count is None else "one argument" if count == 1 else f"{count} arguments"
        raise BadInput(f"{name} takes {expected}, not {len(args)}")
    return bounded.apply(function, *args)


def _lookup(name: str, known: Iterable[str]) -> Any:
    try:
        return _named()[name]
    except (KeyError, UnknownName):
        raise UnknownName(name, [*function_names(), *known], what="function") from None


def declared(given: Any) -> dict[str, Any]:
    """Parameters by name, from ``{"mu": "real"}``, ``"mu, s>0"`` or Symbols.

    >>> {n: s.is_positive for n, s in declared("mu, s>0").items()}
    {'mu': None, 's': True}
    """
    if given is None:
        return {}
    if isinstance(given, str):
        given = dict(_declaration(part) for part in given.split(",") if part.strip())
    elif not isinstance(given, Mapping):
        given = {str(s): s for s in given}
    return {str(name): _parameter(str(name), kind) for name, kind in given.items()}


def _declaration(text: str) -> tuple[str, str]:
    for sign_text, kind in ((">=", "nonnegative"), ("<=", "nonpositive"), (">", "positive"), ("<", "negative")):
        head, found, bound = text.partition(sign_text)
        if found:
            if bound.strip() != "0":
                raise BadInput(f"cannot read the declaration {text.strip()!r}; write s>0, s>=0, s<0 or the bare name")
            return head.strip(), kind
    head, _, kind = text.partition(":")
    return head.strip(), kind.strip() or "real"


def _parameter(name: str, kind: Any) -> Any:
    if not (name.isidentifier() and name.isascii()):
        raise BadInput(f"{name[:40]!r} is not a name; a parameter is declared as 'mu' or 's>0'")
    if field.is_normal_name(name):
        raise BadInput(f"{name} is a standard normal and cannot be declared; choose another letter")
    if name in CONSTANTS or name in ("E", "I", "oo", "nan", "zoo", "Piecewise"):
        raise BadInput(f"{name} has a fixed meaning and cannot be declared; choose another letter")
    if isinstance(kind, Symbol | UndefinedFunction):
        return kind
    if kind == "function":
        return Function(name, real=True)
    if kind not in ASSUMPTIONS:
        raise UnknownName(str(kind)[:40], ASSUMPTIONS, what=f"assumption on {name}:")
    return Symbol(name, **({"real": True} if kind == "real" else {"real": True, kind: True}))
