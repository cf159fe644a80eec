"""hx.exponents(g): what a target asks of an algorithm.

The folder and the function bear one name, and Python binds the folder to it as soon as anything in it is imported:
so the folder itself is called, as the function `report.exponents`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermitex.exponents.report import Exponents


class _Callable(ModuleType):
    def __call__(self, target: Any, channel: Any = None, **options: Any) -> Exponents:
        """Every exponent of a target; see `hermitex.exponents.report.exponents`."""
        from hermitex.exponents.report import exponents

        return exponents(target, channel, **options)


sys.modules[__name__].__class__ = _Callable
