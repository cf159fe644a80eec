"""Piecewise((f, (u > 0) & (v > 0)), (g, True)) = g + (f - g) H(u) H(v): conditions on several linear forms as steps.

They agree but where a form is exactly 0, which has no probability. Steps are what the rules of orthants and of signs know.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import And, Expr, Ge, Gt, Heaviside, Le, Lt, Mul, Piecewise, S, Symbol
from sympy.logic.boolalg import Boolean


def steps(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """The body with each Piecewise of several conditions at once written by steps, where all of them are linear inequalities."""
    found = {p: written for p in body.atoms(Piecewise) if any(isinstance(c, And) for _, c in p.args)
             and (written := _written(p, variables)) is not None}
    return body.xreplace(found) if found else body


def _written(p: Piecewise, variables: Sequence[Symbol]) -> Expr | None:
    total, before = S.Zero, S.One  # `before`: 1 where no earlier condition holds
    for value, condition in p.args:
        if condition == True:  # noqa: E712 - SymPy's true
            return total + before*value
        step = _step(condition, variables)
        if step is None:
            return None
        total, before = total + before*step*value, before*(1 - step)
    return None  # nan where no condition holds


def _step(condition: Boolean, variables: Sequence[Symbol]) -> Expr | None:
    """1 where all inequalities hold, else 0; None for others."""
    parts = condition.args if isinstance(condition, And) else (condition,)
    sides = [r.lhs - r.rhs if isinstance(r, Gt | Ge) else r.rhs - r.lhs if isinstance(r, Lt | Le) else None for r in parts]
    if any(u is None or not _has_a_density(u, variables) for u in sides):
        return None
    return Mul(*map(Heaviside, sides))


def _has_a_density(u: Expr, variables: Sequence[Symbol]) -> bool:
    """Is u linear in the variables, and surely not constant?"""
    there = [v for v in variables if u.has(v)]
    return bool(there) and u.is_polynomial(*there) and all(not u.diff(v).has(*there) for v in there) and \
        any(u.diff(v).is_nonzero for v in there)
