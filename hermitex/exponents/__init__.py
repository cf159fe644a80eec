"""hx.exponents(g): what a target asks of an algorithm.

The folder and the function bear one name, and Python binds the folder to it as soon as anything in it is imported:
so the folder itself is called, as the function `report.exponents`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hermitex.symbolic.budget import DEFAULT_BUDGET

if TYPE_CHECKING:
    from hermitex.exponents.report import Exponents


class _Callable(ModuleType):
    def __call__(self, target: Any, channel: Any = None, *, variables: Any = None,
                 budget: float | None = DEFAULT_BUDGET) -> Exponents:
        """Every exponent of a target g(z), with its proof: information exponent, leaps, staircases, alpha_c, rates.

        `target` is an expression or a text in z, or in z1, ..., z6; `channel` says how the label is drawn given g(z)
        (None: y = g); `budget` is in seconds. Formulas and sources: help(hx.exponents.report.exponents).
        """
        from hermitex.exponents.report import exponents

        return exponents(target, channel, variables=variables, budget=budget)


sys.modules[__name__].__class__ = _Callable
