"""F_b(u) = sum_i c_{b + e_i}(u) w_i: the fibres of a tensor, what they may span and what their values show.

From above: with c_b(u) = sum_l phi_l(u) x_{b,l} every fibre is in the span of the rows (x_{b + e_i,l})_i. From below:
fibres at points where they are proved to be independent.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Add, Expr, Mul, S, Symbol, expand

from hermitex.exponents.directions.invariant_tensors import plus
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.partial_tensors import Given, MultiIndex
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import Matrix, matrix


def fibre_functions(entries: dict[MultiIndex, Expr], q: int, k: int,
                     pivots: tuple[int, ...]) -> Iterator[list[tuple[MultiIndex, Expr]]]:
    """Each fibre at the pivot columns: its coordinates in the basis of what is allowed."""
    for b in multi_indices(q, k - 1):
        fibre = [(plus(b, i), entries.get(plus(b, i), S.Zero)) for i in pivots]
        if any(h != 0 for _, h in fibre):
            yield fibre


def difficulty(fibre: list[tuple[MultiIndex, Expr]]) -> tuple[int, int]:
    """Closed forms first, short formulas first."""
    return sum(h.has(Expectation) for _, h in fibre), sum(h.count_ops() + 5*(h != 0) for _, h in fibre)


def allowed_directions(entries: dict[MultiIndex, Expr], given: Given, k: int, *, nodes_are_constants: bool) -> Matrix:
    """Rows that span every fibre for every u: c_b(u) = sum_l phi_l(u) x_{b,l}, a row for each function phi_l."""
    q = len(given.w)
    parts = {b: _functions(h, given.u, nodes_are_constants) for b, h in entries.items()}
    rows: dict[tuple[Expr, ...], None] = {}
    for b in multi_indices(q, k - 1):
        mine = [parts.get(plus(b, i), {}) for i in range(q)]
        for phi in dict.fromkeys(f for p in mine for f in p):
            rows[tuple(p.get(phi, S.Zero) for p in mine)] = None
    return matrix([list(r) for r in rows if any(x != 0 for x in r)], q)


def _functions(h: Expr, u: tuple[Symbol, ...], nodes_are_constants: bool) -> dict[Expr, Expr]:
    """h = sum of constant * function of u: {function: constant}."""
    def moves(e: Expr) -> bool:
        return bool(e.free_symbols & set(u)) or (not nodes_are_constants and e.has(Expectation))

    found: dict[Expr, Expr] = {}
    grown = expand(h) if h.count_ops() < 400 else h
    for term in Add.make_args(grown):
        factors = Mul.make_args(term)
        phi = Mul(*(f for f in factors if moves(f)))
        found[phi] = found.get(phi, S.Zero) + Mul(*(f for f in factors if not moves(f)))
    return {phi: c for phi, c in found.items() if c != 0}
