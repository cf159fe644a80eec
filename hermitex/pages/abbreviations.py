"""Abbreviations are printed by name: d(Phi)/dV is printed, and the derivative of Phi, written out, is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import AtomicExpr, Expr, MatrixBase, Mul, Symbol

from hermitex.show.display import latex


class Abbreviation(AtomicExpr):
    """A name that is printed for an expression; it depends on the symbols of the expression."""

    is_commutative = True

    def __new__(cls, symbol: Symbol, value: Expr) -> Abbreviation:
        obj = super().__new__(cls)
        obj.symbol, obj.value = symbol, value
        return obj

    def _hashable_content(self) -> tuple[Any, ...]:
        return (self.symbol, self.value)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols of the expression, so that a derivative of the name is not zero."""
        return self.value.free_symbols

    def sort_key(self, order: str | None = None) -> Any:
        """The key of the name, which fixes the order in print."""
        return self.symbol.sort_key(order)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        head = printer._print(self.symbol)
        return head if exp is None else f"{head}^{{{exp}}}"


def fold_names(left: Expr, right: Expr, names: Mapping[Symbol, Expr]) -> tuple[str, str]:
    """LaTeX of both sides with expressions replaced by their names; written out if both sides would then read the same."""
    short = [left, right]
    for symbol, value in reversed(list(names.items())):   # a later name may contain an earlier one
        short = [_short(e, value, Abbreviation(symbol, value)) for e in short]
    one, other = map(latex, short)
    return (latex(left), latex(right)) if one == other else (one, other)


def _short(expr: Any, value: Expr, name: Abbreviation) -> Any:
    """`expr` with the name for the value, also where a product has absorbed its factors: 3*a/(1 + b) for the value a/(1 + b)."""
    if expr == value:
        return name
    if isinstance(expr, MatrixBase):
        return expr.applyfunc(lambda entry: _short(entry, value, name))
    if not expr.args:
        return expr
    args = [_short(a, value, name) for a in expr.args]
    inside = expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)
    if not (isinstance(inside, Mul) and isinstance(value, Mul)):
        return inside
    (ours, factors), (theirs, wanted) = inside.as_coeff_mul(), value.as_coeff_mul()
    if all(w.is_Symbol for w in wanted) or not set(wanted) <= set(factors) or not (ours/theirs).is_Integer:
        return inside
    return Mul(ours/theirs, name, *[f for f in factors if f not in wanted])
