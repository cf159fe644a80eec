"""d/dv of formulas with nodes: d E[f]/dv = E[df/dv], by the chain rule through the nodes; weak where v moves a switch."""

from __future__ import annotations

from sympy import Abs, Dummy, Expr, Heaviside, Max, Min, Piecewise, Symbol, ceiling, diff, floor, sign

from hermitex.symbolic.gaussian import Expectation

_SWITCHES = (sign, Heaviside, Abs, Max, Min, Piecewise, floor, ceiling)


def derivative(expr: Expr, v: Symbol) -> Expr:
    """The derivative with respect to an unknown."""
    if v not in expr.free_symbols:
        return expr * 0
    nodes = [n for n in _outermost(expr) if v in n.free_symbols]
    stand = {n: Dummy(real=True) for n in nodes}
    flat = expr.xreplace(stand)
    back = {d: n for n, d in stand.items()}
    total = diff(flat, v)
    for node, d in stand.items():
        total += diff(flat, d) * _node_derivative(node, v)
    return total.xreplace(back)


def _outermost(expr: Expr) -> list[Expectation]:
    if isinstance(expr, Expectation):
        return [expr]
    found: list[Expectation] = []
    for a in expr.args:
        found += [n for n in _outermost(a) if n not in found]
    return found


def _node_derivative(node: Expectation, v: Symbol) -> Expr:
    if any(v in s.free_symbols for s in node.body.atoms(*_SWITCHES)) or not node.independent:
        return node.diff(v)
    body, fresh = node.open()
    return node.with_body(derivative(body, v), fresh, keep=True)  # mu_1 may stand for mu_1(kappa)
