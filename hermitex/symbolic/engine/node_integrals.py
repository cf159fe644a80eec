"""E[f(z)] of one node: its exact part, and the terms that have none; what holds inner nodes is joined with them.

The symbols are prepared first: real by default, squares where a root was taken, both signs of a correlation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from sympy import (
    AccumBounds,
    Add,
    Dummy,
    Eq,
    Expr,
    Heaviside,
    ImmutableDenseMatrix,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    degree,
    diag,
    exp,
    expand,
    factor_list,
    sign,
    sqrt,
    together,
)
from sympy.core.relational import Relational

from hermitex.errors import Divergent, HermitexError
from hermitex.symbolic.covariance import correlations
from hermitex.symbolic.engine.cancelled_poles import without_pole
from hermitex.symbolic.engine.canonical import Diverges
from hermitex.symbolic.engine.one_variable import Answer, with_zero
from hermitex.symbolic.engine.rational_tidying import multiplied_out, tidy
from hermitex.symbolic.engine.several_variables import expectation_of
from hermitex.symbolic.existence_check import exists, require_existence
from hermitex.symbolic.gaussian import Bound, Expectation, bind
from hermitex.symbolic.subexpressions import at_numbers


def answer(node: Expectation) -> Answer:
    """The exact part of one node and the terms that have none (inner nodes are parameters).

    Raises
    ------
    Divergent : a term is provably not integrable.
    """
    try:
        found = of_node(node)
    except Diverges as no:
        if may_cancel(node):
            return Answer(S.Zero, ((node, "whether it exists hangs on averages inside it, which may cancel"),))
        raise Divergent(node, _plain(str(no))) from no
    if len(node.bound) > 1:  # of all variables at once: an odd one may vanish where the whole does not exist
        require_existence(node)
    return found


def may_cancel(node: Expectation) -> bool:
    """Are there averages inside that may cancel a divergence?"""
    return any(a.has(Expectation) for a in node.args) and exists(node) is not False


def joined(node: Expectation) -> Expr | None:
    """E_x[a(x) E_y f(x, y)] = E_xy[a f]: inner nodes that see the outer variables, under one node with them.

    None without such a node, or if one of them is not a factor.
    """
    body, variables = node.open()
    if not any(n.free_symbols & set(variables) for n in body.atoms(Expectation)):
        return None
    total = []
    for term in Add.make_args(multiplied_out(body)):
        parts, names, blocks = [], list(variables), [node.covariance]
        for factor in Mul.make_args(term):
            base, power = factor.as_base_exp()
            if not (isinstance(base, Expectation) and base.free_symbols & set(variables)):
                parts.append(factor)
                continue
            if not (power.is_Integer and 0 < power <= 4):
                return None
            for _ in range(int(power)):
                inner, fresh = base.open()
                parts.append(inner)
                names += fresh
                blocks.append(base.covariance)
        flat = Mul(*parts)
        if any(n.free_symbols & set(names) for n in flat.atoms(Expectation)) and len(names) == len(variables):
            return None
        total.append(bind(flat, tuple(names), ImmutableDenseMatrix(diag(*blocks))))
    return Add(*total)


@lru_cache(maxsize=2048)
def of_node(node: Expectation) -> Answer:
    """The node's value, also where a letter of its covariance makes it 0 or +-1, at which a formula may be 0/0."""
    found = _over_prepared_symbols(node)
    if node.independent or found.rest:
        return found
    value, at = found.value, []
    for a, r in _degenerate(node):
        lost = _lost_value(value, node, (a, r))
        if r == 0 and (shorter := without_pole(value, a, at_numbers(value, {a: r}) if lost is None else lost)) is not None:
            value = shorter
        elif lost is not None:
            at.append((lost, Eq(a, r)))
    return Answer(Piecewise(*at, (value, True)) if at else value)


def _degenerate(node: Expectation) -> list[tuple[Symbol, Expr]]:
    """Letters of a covariance with the numbers at which they vanish, or make it singular."""
    singular = [f for f, _ in factor_list(together(node.covariance.det()).as_numer_denom()[0])[1]]
    places = []
    for a in sorted(node.covariance.free_symbols, key=str):
        linear = [expand(f) for f in singular if f.free_symbols == {a} and f.is_polynomial(a) and degree(f, a) == 1]
        ends = [-f.coeff(a, 0)/f.coeff(a) for f in linear]
        places += [(a, r) for r in dict.fromkeys([S.Zero, *ends]) if Eq(a, r) is not S.false]  # by what is assumed of a
    return places


def _lost_value(value: Expr, node: Expectation, place: tuple[Symbol, Expr]) -> Expr | None:
    """The average at a place where its formula has no value; None if it has one, or if no closed form is found."""
    there = at_numbers(value, dict([place]))
    if not there.has(S.NaN, S.ComplexInfinity, AccumBounds):
        return None
    try:
        limit = node.subs(*place)
        found = answer(limit) if isinstance(limit, Expectation) else Answer(limit)
    except HermitexError:  # no covariance there
        return None
    return None if found.rest or found.value.has(Expectation) else found.value


def _over_prepared_symbols(node: Expectation) -> Answer:
    """The node's value over prepared symbols: real by default, squares where a root was taken."""
    # The same symbols for every node, so that SymPy's caches know them; nothing inside this call opens a node.
    variables = tuple(_variable(b.name, i) for i, b in enumerate(node.bound))
    body = node.body.xreplace(dict(zip(node.bound, variables, strict=True)))
    cov = None if node.independent else node.covariance
    there, back = _prepared(body if cov is None else body + Add(*cov.free_symbols), variables)
    signed = correlations(body, cov) - set(there)
    there |= {s: _stands_for(s, None) for s in signed}
    back |= {there[s]: s for s in signed}
    if there:
        body = body.xreplace(there)
        cov = None if cov is None else cov.xreplace(there)
    found = expectation_of(body, variables, cov)
    if not found.rest:
        found = Answer(_with_zeros(found.value, body, variables, cov))
    if not back:
        return _closed(found, node, variables)
    free = found.value.xreplace({d: e for d, e in back.items() if e not in signed})
    value = free.xreplace(back)
    if value.xreplace({s: there[s] for s in signed}) != free and not _same(free, value, {there[s]: s for s in signed}):
        whole = (body.xreplace(back), "its form depends on the sign of a correlation")
        return _closed(Answer(S.Zero, (whole,)), node, variables)
    rest = tuple((t.xreplace(back), why) for t, why in found.rest)
    return _closed(Answer(value, rest), node, variables)


def _with_zeros(value: Expr, body: Expr, variables: tuple[Symbol, ...], cov: Any) -> Expr:
    """The value for all numbers, of one for letters at which no jump has lost its variables.

    E z sign(sqrt(q) z + q w) is sqrt(2/pi)/sqrt(1 + q) for q > 0, and 0 at q = 0.
    """
    jumps = [f.args[0] for f in body.atoms(sign, Heaviside)] + [r.lhs - r.rhs for r in body.atoms(Relational)]
    jumps = [u for u in jumps if not u.free_symbols.isdisjoint(variables)]
    for a in sorted(body.free_symbols - set(variables), key=str) if jumps else ():
        if not a.is_nonzero and any(at_numbers(u, {a: S.Zero}) == 0 for u in jumps):
            alone = expectation_of(at_numbers(body, {a: S.Zero}), variables, cov)
            value = with_zero(value, a, a, alone)
    return value


def merged_exponentials(e: Expr) -> Expr:
    """exp(a) exp(b) = exp(a + b): one exponential a term, so that no large one meets a small one in floats."""
    if not e.args or not e.has(exp):
        return e
    e = e.func(*(merged_exponentials(a) for a in e.args))
    if not isinstance(e, Mul):
        return e
    exponents = [f.args[0] for f in e.args if isinstance(f, exp)]
    if len(exponents) < 2:
        return e
    return Mul(exp(tidy(Add(*exponents))), *(f for f in e.args if not isinstance(f, exp)))


def _closed(found: Answer, node: Expectation, variables: tuple[Symbol, ...]) -> Answer:
    return Answer(merged_exponentials(found.value), tuple((node.with_body(t, variables), _plain(why))
                                                               for t, why in found.rest))


def _plain(text: str) -> str:
    """The user's names in place of the prepared symbols."""
    return re.sub(r"\b_(?=[A-Za-z])", "", text)


@lru_cache(maxsize=256)
def _variable(name: str, position: int) -> Symbol:
    return Dummy(name, real=True)


@lru_cache(maxsize=1024)
def _stands_for(e: Expr, positive: bool | None) -> Symbol:
    """One letter for a symbol or a node in all averages, so that the caches of one average serve the next."""
    return Dummy(e.name if isinstance(e, Symbol) else "E", positive=positive, real=True)


def _same(free: Expr, value: Expr, signed: dict[Symbol, Symbol]) -> bool:
    """Do they agree where the correlations have the other sign? Where |rho| became rho they do not."""
    others = sorted(free.free_symbols - set(signed), key=str)
    point = {s: Rational(k + 3, k + 5) for k, s in enumerate(others)}
    for r in (Rational(-2, 7), Rational(3, 11)):
        here = {s: (r if s.is_extended_nonnegative else -r) for s in signed.values()}
        sides = (free.xreplace({**point, **{d: here[s] for d, s in signed.items()}}), value.xreplace({**point, **here}))
        try:
            left, right = (complex(e.evalf(15)) for e in sides)
        except (TypeError, ValueError):
            return False
        if not abs(left - right) <= 1e-10*(abs(left) + abs(right)):
            return False
    return True


def _prepared(body: Expr, variables: tuple[Symbol, ...]) -> tuple[dict[Expr, Expr], dict[Expr, Expr]]:
    """Substitutions there and back: undeclared symbols are real; sqrt(c) is d with d > 0, c = d^2; nodes are atoms."""
    there: dict[Expr, Expr] = {}
    back: dict[Expr, Expr] = {}
    bound = set(variables)
    for n in body.atoms(Expectation):
        if not (n.free_symbols & bound):
            there[n] = _stands_for(n, None)
            back[there[n]] = n
    under = {p.base for p in body.atoms(Pow) if p.base.is_Symbol and p.exp.is_Rational and p.exp.q == 2}
    under |= {f for p in body.atoms(Pow) if isinstance(p.base, Mul) and p.exp.is_Rational and p.exp.q == 2
              for f in p.base.args if f.is_Symbol}
    for s in body.free_symbols - bound:
        if isinstance(s, Bound) and s.is_real:
            continue
        if s.is_positive and s in under:
            d = _stands_for(s, True)
            there[s], back[d] = d**2, sqrt(s)
        elif s.is_extended_real is None and s.is_complex is None and s.is_commutative:
            d = _stands_for(s, None)
            there[s], back[d] = d, s
    return there, back
