"""|f(x) - f_80(x)|: how far rounding has moved what a generated module returns, by its evaluation in `np.longdouble`.

The same text runs on extended numbers. A function without an extended version (SciPy's erf, a proximal operator) is taken in
doubles and moved by its rounding, at each call by another part of it, so that what cancels in a difference of two shows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hermitex.kernels.source import load

_EPS = float(np.finfo(float).eps)
GOLDEN = 0.6180339887498949  # the golden section: no two calls are moved by the same part
_IN_DOUBLES = ("prox_", "fields_", "conditioned", "minimise", "middle")  # functions of a module that iterate, or invert matrices


def load_extended(source: str) -> dict[str, Any]:
    """The namespace of generated source that computes in extended numbers, its own decimal numbers off by their rounding."""
    module = load(source, _with_rounded_literals)
    module.update(_extended_functions(module))
    return module


def _with_rounded_literals(tree: ast.Module) -> ast.Module:
    return ast.fix_missing_locations(_Literals().visit(tree))


class _Literals(ast.NodeTransformer):
    """0.1 -> 0.1*off(k): a decimal number, and a quotient of whole ones, was rounded when the source was read."""

    def __init__(self) -> None:
        self.seen = 0

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A number with more than twenty binary places."""
        exact = not isinstance(node.value, float) or (node.value*2.0**20).is_integer()
        return node if exact else self._off(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A quotient of whole numbers."""
        quotient = re.fullmatch(r"-?(\d+) / (\d+)", ast.unparse(node))
        if quotient and not (int(quotient[1])/int(quotient[2])*2.0**20).is_integer():
            return self._off(node)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """np.pi."""
        return self._off(node) if node.attr == "pi" else node

    def _off(self, node: ast.expr) -> ast.expr:
        self.seen += 1
        part = ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "longdouble", ast.Load()),
                        [ast.Constant(f"1.000000000000000{int(11 + 11*(self.seen*GOLDEN % 1))}")], [])
        return ast.BinOp(part, ast.Mult(), node)


def _extended_functions(module: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """The functions of a module that work in doubles only, wrapped to take and return extended numbers."""
    return {name: _moved(f) for name, f in module.items()
            if (isinstance(f, np.ufunc) and not any("g" in kinds for kinds in f.types))
            or (callable(f) and not isinstance(f, np.ufunc) and name.startswith(_IN_DOUBLES))}


def widened(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers by name, or nodes and weights by axis, as extended ones."""
    return {name: tuple(map(_wide, v)) if isinstance(v, tuple) else v if isinstance(v, dict) else _wide(v)
            for name, v in values.items()}


def _wide(v: Any) -> Any:
    return v.astype(np.longdouble) if isinstance(v, np.ndarray | np.float64) else v


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """f in doubles, its value off by two to four roundings and its arguments by one: it shows how rounding moves both."""
    calls = 0

    def moved(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        part = (1 + calls*GOLDEN % 1)*_EPS
        value = function(*(_narrow(a, part if isinstance(function, np.ufunc) else 0.0) for a in arguments))
        return value*(1 - np.longdouble(2*part)) if isinstance(value, np.ndarray | float) else value

    return moved


def _narrow(v: Any, part: float) -> Any:
    """An extended number as a double, off by a part of itself."""
    kind = getattr(getattr(v, "dtype", None), "char", "")
    return (v*(1 + np.longdouble(part))).astype({"g": "d", "G": "D"}[kind]) if kind in ("g", "G") else v


__all__ = ["GOLDEN", "load_extended", "widened"]
