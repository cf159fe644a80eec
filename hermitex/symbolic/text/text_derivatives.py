"""Derivative(f(mu, w), mu) and Subs(Derivative(f(xi, w), xi), xi, 2*mu): slopes of declared functions of several arguments."""

from __future__ import annotations

import ast
from typing import Any

from sympy import Derivative, Expr, Subs, Symbol
from sympy.core.function import AppliedUndef

from hermitex.symbolic.undefined import tidy

MAX_ORDER = 20  # of a derivative: formulas grow with each; chosen by hand


def derivative(reader: Any, node: ast.Call, depth: int) -> Expr:
    """Derivative(f(mu, w), mu, (w, 2)), unevaluated; of a function of one argument it is Derivative(f)(mu)."""
    if len(node.args) < 2 or node.keywords:
        return reader.fail(node, "Derivative takes a declared function and symbols: Derivative(f(mu, w), mu), or Derivative(f)(mu)")
    counts: list[tuple[Expr, int]] = []
    for a in node.args[1:]:
        name, times = a.elts if isinstance(a, ast.Tuple) and len(a.elts) == 2 else (a, ast.Constant(1))
        if not (isinstance(name, ast.Name) and isinstance(times, ast.Constant) and type(times.value) is int and times.value > 0):
            return reader.fail(a, "after the function write its symbols: mu, or (mu, 2) for the second derivative")
        counts.append((reader.expr(name, depth), times.value))
    if sum(n for _, n in counts) > MAX_ORDER:
        return reader.fail(node, f"the order of a derivative is a whole number from 1 to {MAX_ORDER}")
    inner = reader.expr(node.args[0], depth)
    if not isinstance(inner, AppliedUndef) or not all(s in inner.free_symbols and s.is_Symbol for s, _ in counts):
        return reader.fail(node, "Derivative is of a declared function, by symbols in it; write out that of a named one")
    return tidy(Derivative(inner, *counts))


def substituted(reader: Any, node: ast.Call, depth: int) -> Expr:
    """Subs(Derivative(f(xi, w), xi), xi, 2*mu): the slope at a place that is not a symbol."""
    name = node.args[1] if len(node.args) == 3 and not node.keywords else None
    if not isinstance(name, ast.Name):
        return reader.fail(node, "Subs takes a slope, a symbol in it, and what is put in: Subs(Derivative(f(xi, w), xi), xi, 2*mu)")
    x = Symbol(name.id)
    point = reader.expr(node.args[2], depth)
    reader.scopes.append({name.id: x})
    try:
        inner = reader.expr(node.args[0], depth)
    finally:
        reader.scopes.pop()
    if not inner.has(Derivative):
        return reader.fail(node, "Subs is of a derivative; write out what is put in")
    return tidy(Subs(inner, x, point))
