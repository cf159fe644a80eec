"""Equations as texts: {"V": "1/(lamda + Vhat)"}, in the names of the system, the package's letters and those declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Basic, Eq, Expr, Mul, Symbol, cosh, sinh, tanh
from sympy.core.symbol import Str

from hermitex import symbols as field
from hermitex.errors import BadInput, brief
from hermitex.symbolic.law_constraints import Condition
from hermitex.symbolic.parsing import parse
from hermitex.symbolic.text.lexical import split_equation
from hermitex.symbolic.text.text_names import declared


def letters_of_texts(names: Any, given: Any) -> dict[str, Any]:
    """The letters that a text of a system may use, by name; what is declared in `symbols` before what a name means else."""
    found = dict(field.LETTERS)
    for name in names:
        text = str(name)
        if isinstance(name, Symbol):
            found[text] = name
        elif text.isidentifier() and not field.is_normal_name(text):
            found.setdefault(text, field.FIELD.get(text) or Symbol(text, real=True))
    return {**found, **declared(given)}


def assumption_text(symbol: Symbol) -> str:
    """What `symbols=` must say of a letter for it to come back.

    >>> [assumption_text(Symbol("a", positive=True)), assumption_text(Symbol("a", real=True))]
    ['positive', 'real']
    """
    words = ("positive", "nonnegative", "negative", "nonpositive", "integer")
    return next((word for word in words if symbol.assumptions0.get(word)), "real")


def read_condition(given: Any, known: Mapping[str, Any]) -> Condition:
    """A condition as `System.to_dict` writes it: ["Bernoulli", "b", "[0 1]"].

    Raises
    ------
    BadInput : it is none.
    """
    try:
        law, value, interval = (str(part) for part in given)
        found = Condition(law, parse(value, symbols=known), Str(interval))
        _ = found.key
    except (TypeError, ValueError):
        raise BadInput("System: a condition is [law, parameter, interval], ['Bernoulli', 'b', '[0 1]'], "
                       f"not {brief(given)}") from None
    return found


def read_formulas(part: Mapping[Any, Any], known: Mapping[str, Any], *, equations: bool = False) -> dict[Any, Any]:
    """The same formulas, with texts as expressions; a text among `equations` may have two sides.

    >>> read_formulas({"V": "1/(lamda + Vhat)"}, letters_of_texts(["V", "Vhat"], None))
    {'V': 1/(Vhat + lamda)}
    >>> read_formulas({"x": "x**3 = 2"}, letters_of_texts(["x"], None), equations=True)
    {'x': Eq(x**3, 2)}
    """
    known = declared(known) if any(isinstance(v, str) for v in part.values()) else known

    def one(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        sides = split_equation(value) if equations else None
        return parse(value, symbols=known) if sides is None else Eq(*(parse(s, symbols=known) for s in sides), evaluate=False)

    return {key: one(value) for key, value in part.items()}


def with_tanh(formula: Basic) -> Basic:
    """The formula with sinh(u)^n/cosh(u)^n as tanh(u)^n, which does not overflow: slopes of log(2 cosh(u)) in SymPy's form.

    >>> u = Symbol("u", real=True)
    >>> with_tanh(1 + u*sinh(u)**3/cosh(u)**2)
    u*sinh(u)*tanh(u)**2 + 1
    """
    def ratios(product: Expr) -> Expr:
        whole = {f: n for f, n in product.as_powers_dict().items() if n.is_Integer}
        for f, above in whole.items():
            if isinstance(f, sinh) and (n := min(above, -whole.get(cosh(f.args[0]), 0))) > 0:
                product *= (tanh(f.args[0])*cosh(f.args[0])/f)**n
        return product

    return formula.replace(lambda e: isinstance(e, Mul), ratios) if formula.has(sinh) else formula
