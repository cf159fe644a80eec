"""E[s z f(kappa + s z)]: expressions in one line of plain text, as one writes them in a message."""

from __future__ import annotations

import re
from typing import Any

from sympy import Expr
from sympy.printing.str import StrPrinter

from hermitex.symbolic.gaussian import Expectation


class _Paper(StrPrinter):
    printmethod = "_paper"  # so that the classes' own str form does not come first

    def _print_Expectation(self, node: Expectation) -> str:
        body, names, cov = node.named()
        given = "" if cov is None else "; " + ", ".join(
            f"cov({names[i]}, {names[j]}) = {self._print(cov[i, j])}"
            for i in range(len(names)) for j in range(i, len(names)) if cov[i, j] != int(i == j))
        return f"E[{self._print(body)}{given}]"

    def _print_AppliedPrime(self, e: Any) -> str:
        return f"{type(e).__name__}({self._print(e.args[0])})"

    def _print_HermiteOfOrder(self, e: Any) -> str:
        return f"He({', '.join(map(self._print, e.args))})"

    def _print_Mul(self, e: Expr) -> str:
        return re.sub(r"(?<!\*)\*(?!\*)", " ", super()._print_Mul(e))


def plain(expr: Any) -> str:
    """One line of text.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, kappa, r
    >>> plain(r**2*E(z*Function("f")(kappa + r*z), z))
    'r**2 E[z f(kappa + r z)]'
    """
    return _Paper().doprint(expr)
