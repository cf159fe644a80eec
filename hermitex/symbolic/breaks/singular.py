"""Where a switch-free expression may fail to be analytic on the real line: poles, logarithms, fractional powers."""

from __future__ import annotations

import sympy as sp
from sympy import Expr, Function, Pow, Symbol, cos, exp, log, sin

from hermitex.errors import NoClosedForm
from hermitex.symbolic.breaks.roots import Where, Window, zeros
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation

# Analytic on the whole real line; and, for the others, what vanishes where they are not.
_ENTIRE = (exp, sin, cos, sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.erf, sp.erfc, sp.erfi, sp.atan, sp.asinh, sp.sinc)
SINGULAR = {
    log: lambda u: u, sp.Ei: lambda u: u, sp.acot: lambda u: u, sp.coth: lambda u: u, sp.csch: lambda u: u,
    sp.acosh: lambda u: u - 1, sp.asin: lambda u: 1 - u**2, sp.acos: lambda u: 1 - u**2, sp.atanh: lambda u: 1 - u**2,
    sp.acoth: lambda u: 1 - u**2, sp.erfinv: lambda u: 1 - u**2, sp.erfcinv: lambda u: u*(2 - u),
    sp.LambertW: lambda u: u + exp(-1), sp.tan: cos, sp.sec: cos, sp.cot: sin, sp.csc: sin,
}


def singularities(f: Expr, x: Symbol, window: tuple[Expr, Expr]) -> list[Expr]:
    """Points of the line (a superset, in no order) off which the switch-free f(x) is analytic in the window.

    Raises
    ------
    NoClosedForm : the points are not found exactly, or f holds a function not known to be analytic.

    Examples
    --------
    >>> x = Symbol('x', real=True)
    >>> sorted(singularities(log(x - 1) + 1/x, x, (-sp.oo, sp.oo)))
    [0, 1]
    """
    checkpoint("finding singularities")
    if x not in f.free_symbols or f.is_Symbol:
        return []
    where = Where(x, Window(*window))
    if isinstance(f, Expectation):
        return _of_node(f, where)
    found = [p for a in f.args for p in singularities(a, x, window)]
    if f.is_Pow and not isinstance(f, exp):
        if x in f.base.free_symbols and not (f.exp.is_Integer and f.exp.is_nonnegative):
            found += zeros(f.base, where)
    elif type(f) in SINGULAR and len(f.args) == 1:
        found += zeros(SINGULAR[type(f)](f.args[0]), where)
    elif isinstance(f, Function) and not isinstance(f, _ENTIRE) and not getattr(f, "analytic_on_the_line", False):
        raise NoClosedForm(f, f"{f.func} is not known to be analytic")
    return found


def _of_node(node: Expectation, where: Where) -> list[Expr]:
    """E[f(v, x)] over v ~ N is analytic in x off the points where two rough points of f, as functions of v, cross.

    A rough point is v = -b(x)/a where a v + b(x) stands in a switch, a fractional or negative power, or a logarithm.
    """
    x = where.x
    body, variables = node.open()
    rough = [u for u in _rough_arguments(body) if not (u.is_positive or u.is_negative)]
    moving = [u for u in rough if x in u.free_symbols and u.free_symbols & set(variables)]
    found = [p for u in rough if not u.free_symbols & set(variables) for p in zeros(u, where)]
    if not moving:
        return found
    for v in variables:
        mixed = [u for u in rough if v in u.free_symbols or u in moving]
        if all(_shifts(u, v, x) or (u not in moving and u.free_symbols == {v}) for u in mixed):
            break
    else:
        raise NoClosedForm(node, f"the expectation is not known to be analytic in {x}")
    places = list(dict.fromkeys(p for u in mixed for p in _places(u, v, x)))
    for i, p in enumerate(places):
        for q in places[i + 1:]:
            found += zeros(p - q, where)
    return found


def _rough_arguments(body: Expr) -> list[Expr]:
    from hermitex.symbolic.pieces import switch_arguments

    rough = list(switch_arguments(body))
    rough += [p.base for p in body.atoms(Pow) if not (p.exp.is_Integer and p.exp.is_nonnegative)]
    rough += [rule(g.args[0]) for kind, rule in SINGULAR.items() for g in body.atoms(kind)]
    return rough


def _shifts(u: Expr, v: Symbol, x: Symbol) -> bool:
    """u = a v + b(x), a a non-zero constant."""
    a = u.diff(v)
    return not a.free_symbols & {v, x} and a.is_zero is False


def _places(u: Expr, v: Symbol, x: Symbol) -> list[Expr]:
    if _shifts(u, v, x):
        return [-(u.subs(v, 0) / u.diff(v))]
    return zeros(u, Where(v, Window(-sp.oo, sp.oo)))
