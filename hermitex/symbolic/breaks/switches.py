"""What turns an expression: what its switches compare with zero, and what vanishes where it may fail to be analytic.

A switch is sign, Heaviside, Abs, Max, Min, Piecewise, floor, ceiling or frac of an argument; poles, logarithms and
fractional powers are read here too. Nothing is solved: where these arguments vanish is found in `roots`.
"""

from __future__ import annotations

from itertools import combinations

import sympy as sp
from sympy import (
    Abs,
    And,
    Basic,
    Dummy,
    Expr,
    Function,
    Heaviside,
    Integer,
    Max,
    Min,
    Not,
    Or,
    Piecewise,
    Pow,
    Symbol,
    ceiling,
    cos,
    exp,
    floor,
    frac,
    log,
    oo,
    sign,
    sin,
)
from sympy.core.relational import Ge, Gt, Le, Lt, Relational
from sympy.logic.boolalg import Boolean, BooleanFalse, BooleanTrue

from hermitex.errors import NoClosedForm

STEPS = (floor, ceiling, frac)
JUMPS = (sign, Heaviside, Piecewise, *STEPS)
SWITCHES = (*JUMPS, Abs, Max, Min)

# Analytic on the whole real line; and, for the others, what vanishes where they are not.
_ENTIRE = (exp, sin, cos, sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.erf, sp.erfc, sp.erfi, sp.atan, sp.asinh, sp.sinc)
SINGULAR = {
    log: lambda u: u, sp.Ei: lambda u: u, sp.acot: lambda u: u, sp.coth: lambda u: u, sp.csch: lambda u: u,
    sp.acosh: lambda u: u - 1, sp.asin: lambda u: 1 - u**2, sp.acos: lambda u: 1 - u**2, sp.atanh: lambda u: 1 - u**2,
    sp.acoth: lambda u: 1 - u**2, sp.erfinv: lambda u: 1 - u**2, sp.erfcinv: lambda u: u*(2 - u),
    sp.LambertW: lambda u: u + exp(-1), sp.tan: cos, sp.sec: cos, sp.cot: sin, sp.csc: sin,
}


def switch_arguments(expr: Basic) -> tuple[Expr, ...]:
    """What the switches in `expr` compare with zero (for floor, ceiling and frac: with the integers)."""
    found: dict[Expr, None] = {}
    for s in expr.atoms(*SWITCHES):
        found.update(dict.fromkeys(compared(s)))
    return tuple(found)


def compared(s: Basic) -> list[Expr]:
    """What one switch, or one comparison, compares with zero."""
    if isinstance(s, (Max, Min)):
        return [a - b for i, a in enumerate(s.args) for b in s.args[i + 1:]]
    if isinstance(s, Piecewise):
        return [r.lhs - r.rhs for _, c in s.args for r in relations(c)]
    return [s.lhs - s.rhs] if isinstance(s, Relational) else [s.args[0]]


def relations(condition: Basic) -> list[Relational]:
    """The comparisons in a condition, in a fixed order."""
    return sorted(condition.atoms(Relational), key=str)


def vanishing_where_singular(f: Expr, x: Symbol) -> Expr | None:
    """An expression that vanishes where the head of the switch-free f(x) is not analytic; None if it is analytic everywhere.

    Raises
    ------
    NoClosedForm : the head is a function not known to be analytic.
    """
    if f.is_Pow and not isinstance(f, exp):
        return None if x not in f.base.free_symbols or (f.exp.is_Integer and f.exp.is_nonnegative) else f.base
    if type(f) in SINGULAR and len(f.args) == 1:
        return SINGULAR[type(f)](f.args[0])
    if isinstance(f, Function) and not isinstance(f, _ENTIRE) and not getattr(f, "analytic_on_the_line", False):
        raise NoClosedForm(f, f"{f.func} is not known to be analytic")
    return None


def rough_arguments(body: Expr) -> list[Expr]:
    """Expressions that vanish where an expression with switches is not analytic."""
    rough = list(switch_arguments(body))
    rough += [p.base for p in body.atoms(Pow) if not (p.exp.is_Integer and p.exp.is_nonnegative)]
    rough += [rule(g.args[0]) for kind, rule in SINGULAR.items() for g in body.atoms(kind)]
    return rough


def margin(condition: Boolean) -> Expr:
    """An expression that is positive where the condition holds and negative where it fails (single points apart).

    >>> from hermitex.symbols import z
    >>> margin((z > 1) & (z < 2))
    Min(2 - z, z - 1)
    """
    if isinstance(condition, (BooleanTrue, BooleanFalse)):
        return Integer(1) if condition else Integer(-1)
    if isinstance(condition, (Gt, Ge)):
        return condition.lhs - condition.rhs
    if isinstance(condition, (Lt, Le)):
        return condition.rhs - condition.lhs
    if isinstance(condition, And):
        return Min(*(margin(a) for a in condition.args))
    if isinstance(condition, Or):
        return Max(*(margin(a) for a in condition.args))
    if isinstance(condition, Not):
        return -margin(condition.args[0])
    if condition.is_Equality:
        return Integer(-1)  # a single point carries no weight
    if condition.is_Relational:
        return Integer(1)
    raise NoClosedForm(condition, "the condition is not a comparison")


def ranked(nest: Expr) -> list[Expr]:
    """The arguments of Max and Min of Max and Min, in order."""
    return sorted({u for a in nest.args for u in (ranked(a) if isinstance(a, Max | Min) else [a])}, key=str)


def orders(nest: Expr) -> list[tuple[Expr, list[Expr], list[Expr]]]:
    """(u, those smaller than u, those larger) for each way in which a nest of Max and Min may have the value u.

    >>> x, y, w = sp.symbols("x y w", real=True)
    >>> orders(Max(x, Min(y, w)))
    [(w, [x], [y]), (x, [w], [y]), (x, [y], [w]), (x, [w, y], []), (y, [x], [w])]
    """
    forms, M = ranked(nest), Dummy("M", real=True)
    if not any(isinstance(a, Max | Min) for a in nest.args):
        others = [(u, [w for w in forms if w != u]) for u in forms]
        return [(u, rest, []) if isinstance(nest, Max) else (u, [], rest) for u, rest in others]
    found = []
    for u in forms:
        rest = [w for w in forms if w != u]
        for below in (list(chosen) for n in range(len(forms)) for chosen in combinations(rest, n)):
            if nest.xreplace({u: M, **{w: -oo if w in below else oo for w in rest}}) == M:
                found.append((u, below, [w for w in rest if w not in below]))
    return found
