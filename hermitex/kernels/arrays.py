"""A formula as a function of arrays: SymPy's lambdify, with Max and Min as NumPy's maximum and minimum.

SymPy 1.13 writes Max(0, x) as amax(asarray([0, x]), axis=0), which has no value if x is an array. And it writes a source in
which symbols bear their names: here they get names of their own, and only formulas in these are written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, reduce
from typing import Any

from sympy import Dummy, Function, Max, Min, Pow, default_sort_key, sympify
from sympy import lambdify as _lambdify
from sympy.core.function import AppliedUndef
from sympy.printing.numpy import NumPyPrinter as OfNumPy
from sympy.printing.numpy import SciPyPrinter

from hermitex.errors import BadInput, NoClosedForm
from hermitex.kernels.helpers import HELPERS, used_helpers
from hermitex.kernels.printers import NumPyPrinter
from hermitex.kernels.source import load

_PAIRWISE = {Max: Function("maximum"), Min: Function("minimum")}


def lambdify(args: Any, expr: Any, modules: Any, **options: Any) -> Callable[..., Any]:
    """`sympy.lambdify`; of several expressions, a list of their values.

    >>> import numpy as np
    >>> from sympy.abc import x
    >>> lambdify(x, Max(0, x, x**2 - 1), ["scipy", "numpy"])(np.array([-2.0, 0.5, 1.0]))
    array([3. , 0.5, 1. ])

    Functions that SymPy does not have are those of the kernels:

    >>> from hermitex.symbolic.special import OwenT
    >>> lambdify(x, OwenT(x, 2), ["scipy", "numpy"])(np.array([0.5, 1.0])).round(6)
    array([0.141581, 0.078468])
    """
    exprs = [sympify(e, strict=True) for e in (expr if isinstance(expr, list | tuple) else [expr])]
    known = set(args) if isinstance(args, list | tuple) else {args}
    for e in exprs:
        strange = [s.name for s in e.free_symbols - known] + [type(f).__name__ for f in e.atoms(AppliedUndef)]
        if strange:
            raise BadInput(f"{str(e)[:80]} has no value: {strange[0][:40]!r} is not known")
    if "numpy" in modules:
        exprs = [pairwise(e) for e in exprs]
        if all(m in ("numpy", "scipy") for m in modules):
            printer = options.setdefault("printer", (_SciPy if "scipy" in modules else _NumPy)(_SETTINGS))
            modules = [_beyond(printer, set().union(*(e.atoms(Function) for e in exprs))), *modules]
    return _lambdify(args, exprs if isinstance(expr, list | tuple) else exprs[0], modules=modules, dummify=True, **options)


def _beyond(printer: Any, functions: set[Any]) -> dict[str, Callable[..., Any]]:
    """Those that a printer of SymPy does not know, by the kernels' own; what that does not know either is left out."""
    found = {}
    for f in functions:
        name = type(f).__name__
        if not (isinstance(f, AppliedUndef) or name in printer.known_functions or hasattr(printer, f"_print_{name}")):
            with suppress(NoClosedForm):
                found[name] = _value(f.func, len(f.args))
    return found


@lru_cache(maxsize=64)
def _value(node: Any, count: int) -> Callable[..., Any]:
    """A node of so many arguments as a function of arrays."""
    printer = NumPyPrinter(lambda s: f's["{s.name}"]')
    value = printer.doprint(node(*(Dummy(f"x{i}", real=True) for i in range(count))))
    helpers = [HELPERS[name] for name in used_helpers(value)]
    printer.special.update(n for needs, _ in helpers for n in needs)
    source = ["\n".join(printer.imports()), *(text.strip() for _, text in helpers),
              f'def kernel(s, quad):\n    return {{"value": {value}}}\n']
    kernel = load("\n\n\n".join(source))["kernel"]
    return lambda *x: kernel({f"x{i}": v for i, v in enumerate(x)}, {})["value"]


class _NumPy(OfNumPy):
    """x**3 as x*x*x."""

    def _print_Pow(self, expr: Pow, rational: bool = False) -> str:
        highest = 8  # the highest power of a variable that is written as a product: NumPy takes ten times as long for x**3
        if expr.base.is_Symbol and expr.exp.is_Integer and 2 < expr.exp <= highest:
            return f"({'*'.join([self._print(expr.base)]*int(expr.exp))})"
        return str(super()._print_Pow(expr, rational))


class _SciPy(_NumPy, SciPyPrinter):
    """The same with SciPy's functions."""


_SETTINGS = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}


def pairwise(expr: Any) -> Any:
    """Max(a, b, c) as maximum(maximum(a, b), c)."""
    if not expr.has(Max, Min):
        return expr
    return expr.replace(lambda e: isinstance(e, Max | Min),
                        lambda e: reduce(_PAIRWISE[type(e)], sorted(e.args, key=default_sort_key)))
