"""expression <-> text <-> JSON tree, both ways exact."""

from __future__ import annotations

from typing import Any

from sympy import Expr
from sympy.printing.str import StrPrinter


class _Text(StrPrinter):
    """SymPy's text with e written exp(1): E is the expectation."""

    def _print_Exp1(self, expr: Any) -> str:
        return "exp(1)"


def to_text(expr: Any) -> str:
    """The text of an expression that `parse` reads back.

    >>> from sympy import E
    >>> to_text(E)
    'exp(1)'
    """
    return _Text().doprint(expr)


def to_tree(expr: Expr) -> Any:
    raise NotImplementedError


def from_tree(tree: Any) -> Expr:
    raise NotImplementedError
