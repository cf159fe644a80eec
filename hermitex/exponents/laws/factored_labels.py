"""g = c prod_i f_i(z_i) times one block of several variables at most: the law of the label, factor by factor.

Equal factors share what is known of them, and nu_a is one function for all a that their permutations carry into each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sympy import Dummy, Expr, Mul, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.laws.density import Index, Law, common_power, distinct
from hermitex.exponents.laws.factors import Factor, factor
from hermitex.exponents.laws.log_products import Product, row, started, started_law, times
from hermitex.exponents.laws.stretches import Unsuited
from hermitex.symbolic.precise import evaluate

_WEIGHT = 25      # of an error of nu_a in the couplings: 2 E[He_a|y], and what its L1 norm is underrated
_TRUSTED = 1e-9   # an L1 error up to which the law is used


@dataclass(frozen=True)
class _Parts:
    """constant prod f_i(z_i) times one block of several variables at most."""

    constant: Expr
    alone: list[tuple[Symbol, Expr]]
    block: Expr | None


def _parts(g: Expr, place: dict[Symbol, int]) -> _Parts | None:
    constant, rest = g.as_independent(*place, as_Add=False)
    sets: list[tuple[set[Symbol], Expr]] = []
    for e in Mul.make_args(rest):
        mine = {x for x in place if e.has(x)}
        touching = [p for p in sets if p[0] & mine]
        sets = [*[p for p in sets if not p[0] & mine],
                (mine.union(*[names for names, _ in touching]), Mul(e, *[f for _, f in touching]))]
    several = [e for names, e in sets if len(names) > 1]
    if len(sets) < 2 or len(several) > 1 or not constant.is_number or not rest.free_symbols <= set(place):
        return None
    return _Parts(constant, [(next(iter(names)), e) for names, e in sets if len(names) == 1], several[0] if several else None)


def product_of_functions(g: Expr, place: dict[Symbol, int], drop: Sequence[Index],
                         law_of: Callable[[Expr, dict[Symbol, int]], Law] | None = None) -> Law | None:
    """The law of g = c prod f_i(z_i), or None if g is another expression, or another route has to serve.

    Parameters
    ----------
    place : the index of each variable;  drop : indices known to be exactly zero for the product
    law_of : the law of an expression, where one block of several variables may stand among the factors
    """
    parts = _parts(g, place) if isinstance(g, Mul) else None
    if parts is None or (parts.block is not None and law_of is None):
        return None
    x, scale = Dummy("x", real=True), float(evaluate(parts.constant, 20))
    spots: dict[Expr, list[int]] = {}
    for z, part in parts.alone:
        spots.setdefault(part.xreplace({z: x}), []).append(place[z])
    try:
        factors = [(factor(f, x), mine) for f, mine in spots.items()]
    except (Unsuited, ArithmeticError, TypeError, ValueError):  # what a function of the user's may do far out or at a pole
        return None
    # A factor that saturates, or has plateaus, is better integrated over than tabulated.
    order = sorted(range(len(factors)), key=lambda n: (bool(factors[n][0].plateaus), factors[n][0].tail is not None))
    todo = [n for n in order for _ in factors[n][1]]
    kinds = {i: n for n, (_, mine) in enumerate(factors) for i in mine}
    try:
        block = law_of(parts.block, place) if law_of is not None and parts.block is not None else None
    except NoClosedForm:
        return None
    if block is not None:
        if not block.continuous or any(p for p, _ in block.atoms):
            return None
        mine = {place[z]: len(factors) + place[z] for z in place if parts.block is not None and parts.block.has(z)}
        kinds |= mine
        w = started_law(block, mine)
    elif factors[todo[0]][0].plateaus or not factors[todo[0]][0].pieces:
        return None
    else:
        w = started(factors[todo[0]][0], todo.pop(0))
    for n in todo:
        w = times(w, factors[n][0], n)
    if w.lost > _TRUSTED:
        return None
    silent = any(f.silent for f, _ in factors) or (block is not None and bool(block.atoms))
    return _law(w, kinds, (scale, drop), (factors, block) if silent else None)


def _at_zero(a: Index, factors: list[tuple[Factor, list[int]]], block: Law | None) -> float:
    """nu_a({0}) = E[He_a] - E[He_a 1{no factor is zero}]."""
    alone = {i for _, mine in factors for i in mine}
    whole = float(np.prod([f.totals[a.count(i)] for f, mine in factors for i in mine]))
    if block is not None:
        inner = tuple(i for i in a if i not in alone)
        lost = next((v[block.indices.index(inner)] for _, v in block.atoms if inner in block.indices), 0.0)
        whole *= float(inner == ()) - lost
    return float(a == ()) - whole


def _law(w: Product, kinds: dict[int, int], form: tuple[float, Sequence[Index]],
         zero: tuple[list[tuple[Factor, list[int]]], Law | None] | None) -> Law:
    scale, drop = form
    every = sorted(kinds)
    candidates = [(), *[(i,) for i in every], *[(i, j) for n, i in enumerate(every) for j in every[n:]]]
    names = {a: row([(kinds[i], a.count(i)) for i in sorted(set(a))]) for a in candidates}
    indices = tuple(a for a in candidates if names[a] in w.rows and a not in drop)
    rows = [w.rows.index(names[a]) for a in indices]
    top, sign = w.shift + np.log(abs(scale)), np.sign(scale)

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        with np.errstate(divide="ignore"):
            found = w.at(top - np.log(np.abs(y)))[:, rows]
        size = np.where(y == 0, np.inf, np.abs(y))
        return np.where(y * sign > 0, found[0], found[1]) / size

    def points(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d, masses, lengths = w.table.masses(order)
        y = np.exp(top - d) * sign
        if w.parities:
            both = [masses[rows], masses[rows] * np.array(w.parities)[rows][:, None]]
        else:
            both = list(masses.reshape(2, len(w.rows), -1)[:, rows])
        return np.concatenate([y, -y]), np.concatenate(both, axis=1) / np.tile(lengths, 2), np.tile(lengths, 2)

    end = float(np.exp(top - w.table.edges[0]))
    knots = [0.0, *[s * float(np.exp(top - c)) for c, _ in w.knots for s in (-1, 1)]]
    atoms = [] if zero is None else [(0.0, np.array([_at_zero(a, *zero) for a in indices]))]
    return Law(indices, density, -end, end, tuple(distinct(np.array(knots))), (), tuple(atoms), True,
               common_power(4, *[p for _, p in w.knots]), points=points, lost=_WEIGHT * w.lost)
