"""Sums written out term by term, t(60) + t(59) + ... + t(0) as Python adds them up, as one `Sum` over a number.

The terms are averages that differ by numbers only, in a loss too. The numbers must be polynomials in a whole number n, or their
reciprocals, perhaps times n!, 1/n! or (-1)^n: w**n, n/30, 1/n**2. Each term that is taken is the first one with its numbers put
in, so that nothing is guessed; others are left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from sympy import Add, Eq, Expr, Rational, S, Sum, Symbol, factorial, interpolate

from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import over_numbers
from hermitex.symbolic.moreau import Moreau, Prox

_FEW = 8  # terms below that are compiled one by one as fast; more than tell a cubic in n


def joined_sums(expr: Any) -> Any:
    """The expression with long sums of averages that are alike as sums over a number.

    >>> from sympy import tanh
    >>> from sympy.abc import q
    >>> from hermitex import E
    >>> from hermitex.symbols import z
    >>> joined_sums(1 + sum(E(tanh(q + k*z)**2, z)/factorial(k) for k in range(1, 30)))
    Sum(E(tanh(n*z + q)**2, z)/factorial(n), (n, 1, 29)) + 1
    >>> joined_sums(sum(E(tanh(q*z*k/30), z)/k**2 for k in range(1, 31)))
    Sum(E(tanh(n*q*z/30), z)/n**2, (n, 1, 30))
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
    alike = dict[Any, list[tuple[list[Rational], Expr]]]()
    for term in sorted(left, key=str):
        numbers: list[Rational] = []
        alike.setdefault(_form(term, numbers), []).append((numbers, term))
    for terms in sorted(alike.values(), key=len, reverse=True):
        for formulas, first, at in _ways(terms, n):
            found = set()
            for step in (-1, 1):  # ends that look otherwise, as w**1 does, are among the others
                k = at
                while k >= 0 and (term := _term(first, formulas, n, k)) in left:
                    found.add((k, term))
                    k += step
            if len(found) >= _FEW:
                left -= {term for _, term in found}
                counted = [k for k, _ in found]
                parts.append(over_numbers(Sum(_with_numbers(first, iter(formulas)), (n, min(counted), max(counted)))))
                break
    return Add(*parts, *left)


def _ways(terms: Sequence[tuple[list[Rational], Expr]], n: Symbol) -> Iterator[tuple[list[Expr], Expr, int]]:
    """For each number that runs by equal steps in terms that are alike: all numbers as formulas of n, a term, and its n."""
    columns = list(zip(*(numbers for numbers, _ in terms), strict=True)) if len(terms) >= _FEW else []
    for values in columns:
        for turned in (False, True):
            if len(set(values)) < len(values) or (turned and 0 in values):
                continue
            clock = [1/v if turned else v for v in values]
            low, step = min(clock), min(b - a for a, b in pairwise(sorted(clock)))
            start = low/step
            count = [v/step if start.is_Integer and start >= 0 else (v - low)/step for v in clock]
            if all(k.is_Integer for k in count):
                formulas = [_formula(n, count, column) for column in columns]
                if all(f is not None for f in formulas):
                    yield [f for f in formulas if f is not None], terms[0][1], int(count[0])


def _formula(n: Symbol, count: Sequence[Rational], values: Sequence[Rational]) -> Expr | None:
    """The values as a formula of n at these counts."""
    most = 200  # beyond, a factorial has no reciprocal among doubles
    sizes = (S.One, factorial(n), 1/factorial(n)) if max(count) < most else (S.One,)
    for times in (size*sign for size in sizes for sign in (S.One, S.NegativeOne**n)):
        plain = [v/times.xreplace({n: k}) for k, v in zip(count, values, strict=True)]
        for power in (1, -1):
            if power == 1 or 0 not in plain:
                found = interpolate([(k, v**power) for k, v in zip(count[:4], plain[:4], strict=True)], n)
                if all(found.xreplace({n: k}) == v**power for k, v in zip(count, plain, strict=True)):
                    return times*found**power
    return None


def _form(term: Any, numbers: list[Rational]) -> Any:
    """What is left of a term without its numbers, which are collected."""
    if isinstance(term, Rational):
        numbers.append(term)
        return None
    if isinstance(term, Expectation):
        return Expectation, *term.args[1:], _form(term.body, numbers)
    loss = (term.loss.f,) if isinstance(term, Moreau | Prox) else ()
    return (term.func, *loss, *(_form(e, numbers) for e in _args(term))) if term.args else term


def _term(first: Expr, formulas: Sequence[Expr], n: Symbol, k: int) -> Expr | None:
    """The term of the number k."""
    values = [f.subs(n, k) for f in formulas]
    return _with_numbers(first, iter(values)) if all(v.is_Rational for v in values) else None


def _with_numbers(term: Any, numbers: Iterator[Expr]) -> Any:
    """The term with its numbers replaced in the order in which they were collected."""
    if isinstance(term, Rational):
        return next(numbers)
    if isinstance(term, Expectation):
        body, variables = term.within()
        return term.with_body(_with_numbers(body, numbers), variables, keep=True)
    if not term.args:
        return term
    loss, *rest = (_with_numbers(e, numbers) for e in _args(term))
    return term.func(loss, term.loss.f, *rest) if isinstance(term, Moreau | Prox) else term.func(loss, *rest)


def _args(e: Any) -> tuple[Any, ...]:
    """Of an envelope its loss at work, where it is written in the letter of the loss."""
    return (e.loss.at(e.loss.f, e.values), *e.args[1:3]) if isinstance(e, Moreau | Prox) else e.args


__all__ = ["joined_sums"]
