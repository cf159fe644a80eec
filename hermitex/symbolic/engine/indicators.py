"""Piecewise((f, (u > 0) & (v > 0)), (g, True)) = g + (f - g) H(u) H(v): conditions on several linear forms as steps.

They agree but where a form is exactly 0, which has no probability. Steps are what the rules of orthants and of signs know.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import And, Expr, Ge, Gt, Le, Lt, Piecewise, Symbol
from sympy.logic.boolalg import Boolean

from hermitex.symbolic.weak import in_heavisides


def steps(body: Expr, variables: Sequence[Symbol]) -> Expr:
    """The body with each Piecewise of several conditions at once written by steps, where all of them are linear inequalities."""
    found = {p: in_heavisides(p) for p in body.atoms(Piecewise) if any(isinstance(c, And) for _, c in p.args)
             and p.args[-1].cond == True  # noqa: E712 - SymPy's true; without it a Piecewise is nan where no condition holds
             and all(_linear(c, variables) for _, c in p.args[:-1])}
    return body.xreplace(found) if found else body


def _linear(condition: Boolean, variables: Sequence[Symbol]) -> bool:
    """Is it an inequality between linear forms, or several at once?"""
    parts = condition.args if isinstance(condition, And) else (condition,)
    return all(isinstance(r, Gt | Ge | Lt | Le) and _has_a_density(r.lhs - r.rhs, variables) for r in parts)


def _has_a_density(u: Expr, variables: Sequence[Symbol]) -> bool:
    """Is u linear in the variables, and surely not constant?"""
    there = [v for v in variables if u.has(v)]
    return bool(there) and u.is_polynomial(*there) and all(not u.diff(v).has(*there) for v in there) and \
        any(u.diff(v).is_nonzero for v in there)
