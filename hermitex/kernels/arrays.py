"""A formula as a function of arrays: SymPy's lambdify, with Max and Min as NumPy's maximum and minimum.

SymPy 1.13 writes Max(0, x) as amax(asarray([0, x]), axis=0), which has no value where x is an array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from sympy import Function, Max, Min, default_sort_key
from sympy import lambdify as _lambdify

_PAIRWISE = {Max: Function("maximum"), Min: Function("minimum")}


def lambdify(args: Any, expr: Any, modules: Any, **options: Any) -> Callable[..., Any]:
    """`sympy.lambdify`; of several expressions, a list of their values.

    >>> import numpy as np
    >>> from sympy.abc import x
    >>> lambdify(x, Max(0, x, x**2 - 1), ["scipy", "numpy"])(np.array([-2.0, 0.5, 1.0]))
    array([3. , 0.5, 1. ])
    """
    if "numpy" in modules:
        expr = [pairwise(e) for e in expr] if isinstance(expr, list | tuple) else pairwise(expr)
    return _lambdify(args, expr, modules=modules, **options)


def pairwise(expr: Any) -> Any:
    """Max(a, b, c) as maximum(maximum(a, b), c)."""
    if not expr.has(Max, Min):
        return expr
    return expr.replace(lambda e: isinstance(e, Max | Min),
                        lambda e: reduce(_PAIRWISE[type(e)], sorted(e.args, key=default_sort_key)))
