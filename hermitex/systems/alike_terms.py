"""Sums written out term by term, t(60) + t(59) + ... + t(0) as Python adds them up, as one `Sum` over a number.

The terms are averages that are equal up to a whole number n, which may occur as n, -n, n! or 1/n!, in a loss too. Each term that is
taken is the first one with another number put in, so that nothing is guessed; others are left unchanged.
"""

from __future__ import annotations

from typing import Any

from sympy import Add, Basic, Eq, Expr, Integer, Rational, Sum, Symbol, factorial

from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import over_numbers
from hermitex.symbolic.moreau import Moreau, Prox

_FEW = 8  # terms below that are compiled one by one as fast


def joined_sums(expr: Any) -> Any:
    """The expression with long sums of averages that are alike as sums over a number.

    >>> from sympy import tanh
    >>> from sympy.abc import q
    >>> from hermitex import E
    >>> from hermitex.symbols import z
    >>> joined_sums(1 + sum(E(tanh(q + k*z)**2, z)/factorial(k) for k in range(1, 30)))
    Sum(E(tanh(n*z + q)**2, z)/factorial(n), (n, 1, 29)) + 1
    """
    if isinstance(expr, Eq):
        return Eq(joined_sums(expr.lhs), joined_sums(expr.rhs), evaluate=False)
    if not isinstance(expr, Expr) or len(expr.atoms(Expectation)) < _FEW:
        return expr
    return expr.replace(lambda e: isinstance(e, Add) and len(e.args) >= _FEW and e.has(Expectation), _joined)


def _joined(total: Add) -> Expr:
    left = {t for t in total.args if t.has(Expectation)}
    n = Symbol("n", integer=True, nonnegative=True)
    while n.name in {s.name for s in total.free_symbols}:
        n = Symbol(n.name + "n", integer=True, nonnegative=True)
    parts = [t for t in total.args if t not in left]
    for first in sorted(left, key=lambda t: (-max(_numbers(t), default=0), str(t))):
        if len(left) < _FEW or first not in left:
            break
        for place in sorted(_numbers(first), reverse=True):
            found = {place: first}
            for step in (-1, 1):
                at = place + step
                while at >= 0 and (term := _with_number(first, place, Integer(at))) in left:
                    found[at], at = term, at + step
            if len(found) >= _FEW:
                left -= set(found.values())
                parts.append(over_numbers(Sum(_with_number(first, place, n), (n, min(found), max(found)))))
                break
    return Add(*parts, *left)


def _numbers(term: Expr) -> set[int]:
    """The whole numbers from 2 on, of losses too, that may count it."""
    inside = [node.loss.expr for node in term.atoms(Moreau, Prox)]
    return {abs(int(v)) for e in (term, *inside) for v in e.atoms(Integer) if 2 <= abs(v) < 10_000}


def _with_number(term: Expr, old: int, new: Expr) -> Expr:
    """The term with another number in place of `old`."""
    full, most = factorial(old), 200  # beyond, a factorial has no reciprocal among doubles
    rule: dict[Basic, Basic] = {Integer(s*old): s*new for s in (1, -1)}
    if 2 < old < most:
        rule |= {s*full: s*factorial(new) for s in (1, -1)} | {Rational(s, full): s/factorial(new) for s in (1, -1)}
    elif old == 2:
        rule |= {Rational(s, 2): s/factorial(new) for s in (1, -1)}

    def put(e: Any) -> Any:
        if isinstance(e, Expectation):
            body, variables = e.open()
            return e.with_body(put(body), variables, keep=True)
        if isinstance(e, Moreau | Prox):
            return e.func(put(e.loss.at(e.loss.f, e.values)), e.loss.f, *map(put, e.args[1:3]))
        if e in rule or not e.args:
            return rule.get(e, e)
        return e.func(*map(put, e.args))

    return put(term)


__all__ = ["joined_sums"]
