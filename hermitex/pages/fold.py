"""What a page abbreviates is printed by its name: d(Phi)/dV, where what is checked is the derivative of Phi written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import AtomicExpr, Expr, Symbol

from hermitex.show.display import latex


class Abbreviation(AtomicExpr):
    """A name that stands in print for an expression, and depends on what that depends on."""

    def __new__(cls, symbol: Symbol, value: Expr) -> Abbreviation:
        obj = super().__new__(cls)
        obj.symbol, obj.value = symbol, value
        return obj

    def _hashable_content(self) -> tuple[Any, ...]:
        return (self.symbol, self.value)

    @property
    def free_symbols(self) -> set[Any]:
        """Those of the expression: a derivative of the name is not zero."""
        return self.value.free_symbols

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        head = printer._print(self.symbol)
        return head if exp is None else f"{head}^{{{exp}}}"


def folded(left: Expr, right: Expr, names: Mapping[Symbol, Expr]) -> tuple[str, str]:
    """LaTeX of both sides with names in the place of what they stand for; written out where both sides would read the same."""
    short = [left, right]
    for symbol, value in reversed(list(names.items())):   # a later name may contain an earlier one
        short = [e.xreplace({value: Abbreviation(symbol, value)}) for e in short]
    one, other = map(latex, short)
    return (latex(left), latex(right)) if one == other else (one, other)
