"""value -> text, lists and numbers: an expression as a text that `parse` reads back, an array as lists, absence as None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from sympy import Symbol
from sympy.printing.str import StrPrinter

from hermitex.symbolic.law_constraints import apart


class _Text(StrPrinter):
    """SymPy's text with e written exp(1), for E is the expectation."""

    def _print_Exp1(self, expr: Any) -> str:
        return "exp(1)"

    def _print_ITE(self, expr: Any) -> str:
        test, then, other = (f"({self._print(a)})" for a in expr.args)
        return f"({test} & {then}) | (~{test} & {other})"

    def derivative(self, f: Any, order: int) -> str:
        """The head of f^(n)(u), as `parse` reads it."""
        return f"Derivative({f.__name__})" if order == 1 else f"Derivative({f.__name__}, {order})"

    def _print_Subs(self, expr: Any) -> str:
        """One variable in the other, under names that nothing else in it bears."""
        taken = {s.name for s in expr.free_symbols}
        free = (Symbol(f"xi{k}") for k in count(1) if f"xi{k}" not in taken)
        names = dict(zip(expr.variables, free, strict=False))
        text = self._print(expr.expr.xreplace(names))
        for x, point in zip(expr.variables, expr.point, strict=True):
            text = f"Subs({text}, {names[x].name}, {self._print(point)})"
        return text

    def _print_Heaviside(self, expr: Any) -> str:
        return f"Heaviside({self._print(expr.args[0])})"  # its value at the one point 0 never matters


def to_text(expr: Any) -> str:
    """The text of an expression that `parse` reads back.

    >>> from sympy import E, pi
    >>> to_text(E**2 + pi), to_text(E)
    ('pi + exp(2)', 'exp(1)')
    """
    return _Text({"full_prec": True}).doprint(apart(expr)[0])


def _as_it_is(value: float) -> Any:
    return value


def plain(value: Any, number: Callable[[float], Any] = _as_it_is) -> Any:
    """`value` as what `json.dumps` can write; `number` says what becomes of a float.

    Raises
    ------
    TypeError : a value of another kind.

    Examples
    --------
    >>> from hermitex.symbols import kappa
    >>> plain({"expr": kappa**2, "at": (1, 0.5), "none": None})
    {'expr': 'kappa**2', 'at': [1, 0.5], 'none': None}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v, number) for k, v in value.items()}
    if isinstance(value, float):
        return number(value)
    if hasattr(value, "tolist") and not hasattr(value, "free_symbols"):  # a NumPy array or scalar, without importing NumPy
        return plain(value.tolist(), number)
    if hasattr(value, "free_symbols"):
        return to_text(value)
    if hasattr(value, "_mpf_"):
        return number(float(value))
    if isinstance(value, Iterable):
        return [plain(v, number) for v in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")
