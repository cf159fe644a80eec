"""name -> function or symbol: what a text may call, and how parameters are declared.

"mu, s>0" declares mu real and s positive; "f: function" a function that is put in later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy
from sympy import Expr, Function, Rational, S, Symbol
from sympy.core.function import UndefinedFunction

from hermitex import symbols as field
from hermitex.errors import BadInput, UnknownName
from hermitex.symbolic import special
from hermitex.symbolic.laws import is_random
from hermitex.symbolic.named_functions import FUNCTIONS, NamedFunction
from hermitex.symbolic.text import bounded_powers

CONSTANTS = {"pi": S.Pi, "EulerGamma": S.EulerGamma, "Catalan": S.Catalan, "GoldenRatio": S.GoldenRatio}
ASSUMPTIONS = ("real", "positive", "negative", "nonnegative", "nonpositive", "nonzero", "integer", "function")


# Functions in exact values besides the activations, so that they can be read back: name -> number of arguments.
_EXACT = {"OwenT": 2, "LogFactorial": 1, "SignCorrelation": 3, "ReErf": 2, "ImErf": 2, "zeta": 1, "uppergamma": 2, "lowergamma": 2}


def function_names() -> list[str]:
    """Every name that can be called with its argument in brackets."""
    return sorted({*FUNCTIONS, *_EXACT, "He2", "He3"})


def is_function(name: str) -> bool:
    """True if a text may call that name; He0, He1, He2, ... all are."""
    return name in FUNCTIONS or name in _EXACT


def call(name: str, args: list[Expr]) -> Expr:
    """The value of a named function (`is_function`); refuses a wrong number of arguments."""
    if name in _EXACT:
        _count(name, args, _EXACT[name])
        return bounded_powers.apply(_exact(name), *args)
    function = FUNCTIONS[name]
    if name == "Heaviside" and len(args) == 2:  # its value at 0, SymPy's second argument, has no weight
        args = args[:1]
    if name == "Rational" and (len(args) > 2 or not all(isinstance(a, Rational) for a in args) or args[1:] == [0]):
        raise BadInput("Rational takes two integers, Rational(1, 2)")
    if name != "DiracDelta":
        _count(name, args, function.arity)
    bounded_powers.check_call(name, args)  # by the name typed: SymPy's digamma(z) is a polygamma
    if isinstance(function, NamedFunction):
        form = function.form
        if len(form.args) == 1 and form.args == (field.z,):  # SymPy's own function, not a composition
            return bounded_powers.apply(type(form), *args)
    elif name not in ("Rational", "frac"):
        return bounded_powers.apply(function.build, *args)
    return bounded_powers.apply(function, *args)


def _count(name: str, args: list[Expr], arity: int | None) -> None:
    if not args or (arity is not None and len(args) != arity):
        expected = "at least one argument" if arity is None else "one argument" if arity == 1 else f"{arity} arguments"
        raise BadInput(f"{name} takes {expected}, not {len(args)}")


def _exact(name: str) -> Any:
    return getattr(special, name, None) or getattr(sympy, name)


class Declared(dict[str, Any]):
    """The result of `declared`: many texts with the same letters read it once."""


def declared(given: Any) -> Declared:
    """Parameters by name, from ``{"mu": "real"}``, ``"mu, s>0"`` or Symbols; what was read before stays as it is.

    >>> {n: s.is_positive for n, s in declared("mu, s>0").items()}
    {'mu': None, 's': True}
    """
    if given is None or isinstance(given, Declared):
        return Declared() if given is None else given
    if isinstance(given, str):
        given = _once(_declaration(part) for part in given.split(",") if part.strip())
    elif not isinstance(given, Mapping):
        if not isinstance(given, Iterable):
            raise BadInput(f"parameters are declared as 'mu, s>0' or {{'mu': 'real'}}, not {str(given)[:40]!r}")
        given = _once((str(s), s) for s in given)
    return Declared((str(name), kind if is_random(kind) else _parameter(str(name), kind)) for name, kind in given.items())


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in pairs:
        if found.setdefault(name, kind) != kind:
            raise BadInput(f"{name} is declared twice, and not alike; declare it once")
    return found


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
    longest = 100  # letters: longer names do not fit in a formula
    if len(name) > longest:
        raise BadInput(f"{name[:40]}... has {len(name)} letters; a name has {longest} at most")
    if field.is_normal_name(name):
        raise BadInput(f"{name} is a standard normal and cannot be declared; choose another letter")
    if name in CONSTANTS or name in ("E", "I", "oo", "nan", "zoo", "Piecewise"):
        raise BadInput(f"{name} has a fixed meaning and cannot be declared; choose another letter")
    if isinstance(kind, Symbol | UndefinedFunction):
        return kind
    if kind == "function":
        if is_function(name):
            raise BadInput(f"{name} is a known function and cannot be declared; choose another name")
        return Function(name)
    if kind not in ASSUMPTIONS:
        raise UnknownName(str(kind)[:40], ASSUMPTIONS, what=f"assumption on {name}:")
    return Symbol(name, **({"real": True} if kind == "real" else {"real": True, kind: True}))
