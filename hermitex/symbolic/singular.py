"""Where a switch-free expression may fail to be analytic on the real line: poles, logarithms, fractional powers."""

from __future__ import annotations

from sympy import (
    Dummy,
    Expr,
    Function,
    S,
    Symbol,
    acos,
    acosh,
    acot,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    cot,
    csc,
    erf,
    erfc,
    erfi,
    exp,
    log,
    sec,
    sech,
    sin,
    sinh,
    tan,
    tanh,
)

from hermitex.errors import NoClosedForm
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.roots import Window, _zeros

_ENTIRE = (exp, sin, cos, sinh, cosh, tanh, sech, erf, erfc, erfi, atan, acot, asinh)     # analytic on the whole real line


def singularities(f: Expr, x: Symbol, window: tuple[Expr, Expr]) -> list[Expr]:
    """Points of the line (a superset, in no order) off which the switch-free f(x) is analytic in the window.

    Raises
    ------
    NoClosedForm : the points are not found exactly, or f holds a function not known to be analytic.
    """
    checkpoint("finding singularities")
    if x not in f.free_symbols or f.is_Symbol:
        return []
    w = Window(*window)
    if isinstance(f, Expectation):
        return _of_node(f, x, w)
    found = [p for a in f.args for p in singularities(a, x, w)]
    if f.is_Pow and not isinstance(f, exp):
        if not (f.exp.is_Integer and f.exp.is_nonnegative) and x in f.base.free_symbols:
            found += _zeros(f.base, x, w)
    elif isinstance(f, (log, acosh)):
        found += _zeros(f.args[0] - (1 if isinstance(f, acosh) else 0), x, w)
    elif isinstance(f, (asin, acos, atanh)):
        found += _zeros(1 - f.args[0]**2, x, w)
    elif isinstance(f, (tan, sec)):
        found += _zeros(cos(f.args[0]), x, w)
    elif isinstance(f, (cot, csc)):
        found += _zeros(sin(f.args[0]), x, w)
    elif isinstance(f, Function) and not isinstance(f, _ENTIRE):
        raise NoClosedForm(f, f"{f.func} is not known to be analytic")
    return found


def _of_node(node: Expectation, x: Symbol, w: Window) -> list[Expr]:
    """E[f(z, x)] is analytic in x where f is jointly so, or where x only shifts a variable that the Gaussian smooths."""
    body, variables = node.open()
    found: list[Expr] = []
    for part in _rough_arguments(body):
        if x not in part.free_symbols:
            continue
        if not part.free_symbols & set(variables):
            found += _zeros(part, x, w)
        elif not any(_shifts(part, v, x) for v in variables):
            raise NoClosedForm(node, f"the expectation is not known to be analytic in {x}")
    return found


def _rough_arguments(body: Expr) -> list[Expr]:
    from hermitex.symbolic.pieces import switch_arguments

    rough = list(switch_arguments(body))
    rough += [p.base for p in body.atoms(type(S.Half**Dummy())) if not (p.exp.is_Integer and p.exp.is_nonnegative)]
    rough += [g.args[0] for g in body.atoms(log)]
    return rough


def _shifts(part: Expr, v: Symbol, x: Symbol) -> bool:
    """part = a v + b(x), a a non-zero constant."""
    a = part.diff(v)
    return not a.free_symbols & {v, x} and a.is_zero is False
