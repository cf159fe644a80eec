"""g = F(w_1(z_A), w_2(z_B), ...), z_A and z_B independent: the law of a label put together from the laws of its blocks.

The tree of the expression says how: sums convolve, products convolve in log|w|, a function of one quantity pushes its
law forward, a sum of equal squares is radial, and a block with finitely many values is conditioned on. Sign flips that
leave a block alone, and exact values, make components exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Pow, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.directions.symmetry import flip_group
from hermitex.exponents.labels.label_branches import branch_identity
from hermitex.exponents.labels.label_levels import finite_level_sets
from hermitex.exponents.labels.quantities import inner_quantities, own_parts
from hermitex.exponents.laws.density import Index, Law, merge_atoms, normal_law, push_through_formula, radius_law
from hermitex.exponents.laws.discrete import exact_atoms
from hermitex.exponents.laws.law_table import tabulated
from hermitex.exponents.laws.product_laws import product_law
from hermitex.exponents.laws.sum_laws import joined, sum_law
from hermitex.kernels.panel_rules import distinct_sorted
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.terms import connected

_SIZE = 60  # operations up to which a parity is proved by simplifying; chosen by trial


def law_of(g: Expr, place: dict[Symbol, int]) -> Law:
    """The law of g(z) with the weights He_a, |a| <= 2.

    Parameters
    ----------
    g : expression of the variables
    place : the index of each variable in the multi-indices

    Raises
    ------
    NoClosedForm : the tree shows no independent blocks.
    """
    checkpoint("reading the structure of the target")
    used = [x for x in place if g.has(x)]
    if len(used) == 1:
        return _one(g, used[0], place[used[0]])
    drop = zeros_by_flips(g, used, place)
    found = _radial(g, used, place)
    found = found or _parts(Add, sum_law, g, used, place, drop) or _parts(Mul, product_law, g, used, place, drop)
    found = found or _outer(g, used, place, drop) or _mixture(g, used, place, drop)
    if found is None:
        raise NoClosedForm("alpha_c", f"{g} shows no independent blocks", "Write it as sums, products and functions of them")
    return found


def zeros_by_flips(g: Expr, used: Sequence[Symbol], place: dict[Symbol, int]) -> tuple[Index, ...]:
    """The multi-indices a with nu_a = 0 because g(s z) = g(z) for signs s with prod s_i^a_i = -1."""
    flips = flip_group(g, used)
    found = []
    for a in [*[(x,) for x in used], *[(x, y) for n, x in enumerate(used) for y in used[n + 1:]]]:
        spots = [used.index(x) for x in a]
        if any(prod(f[n] for n in spots) == -1 for f in flips):
            found.append(tuple(sorted(place[x] for x in a)))
    return tuple(found)


# -- the rules ---------------------------------------------------------------------------------------------------------
def _one(g: Expr, x: Symbol, i: int) -> Law:
    if g == x:
        return normal_law(i)
    drop: list[Index] = []
    if not (g.xreplace({x: -x}) - g).expand().simplify() if g.count_ops() < _SIZE else g.xreplace({x: -x}) == g:
        drop.append((i,))
    if finite_level_sets(g, x) is not None:
        atoms = exact_atoms(g, [x]) or []
        present = {a for _, nu in atoms for a in nu}
        drop = [tuple(i for _ in a) for a in ((0,), (0, 0)) if atoms and a not in present]
    elif g.count_ops() < _SIZE and branch_identity((g,), (x,), 2):
        drop.append((i, i))
    return push_through_formula(normal_law(i), g, x, drop=drop)


def _radial(g: Expr, used: list[Symbol], place: dict[Symbol, int]) -> Law | None:
    """g = c sum z_i^2 + d."""
    shift, rest = g.as_independent(*used, as_Add=True)
    if not isinstance(rest, Add) or any(not _is_square(t) for t in rest.args):
        return None
    weights = {t.as_independent(*used, as_Add=False)[0] for t in rest.args}
    if len(weights) != 1 or len(rest.args) != len(used):
        return None
    w = Dummy("rho", real=True)
    return push_through_formula(radius_law([place[x] for x in used]), weights.pop() * w + shift, w)


def _is_square(term: Expr) -> bool:
    factors = [f for f in Mul.make_args(term) if f.free_symbols]
    return len(factors) == 1 and isinstance(factors[0], Pow) and factors[0].exp == 2 and isinstance(factors[0].base, Symbol)


def _parts(kind: type[Expr], rule: Callable[..., Law], g: Expr, used: list[Symbol], place: dict[Symbol, int],
           drop: Sequence[Index]) -> Law | None:
    """g a sum or a product of independent blocks, with a constant in the first."""
    if not isinstance(g, kind):
        return None
    constant, rest = g.as_independent(*used, as_Add=kind is Add)
    blocks = [kind(*b) for b in connected(kind.make_args(rest), used)]
    if len(blocks) < 2:
        return None
    blocks = _equal_squares(blocks, used) if kind is Add else blocks
    laws = [law_of(b, place) for b in [kind(constant, blocks[0]), *blocks[1:]]]
    return laws[0] if len(laws) == 1 else _combined(rule, laws, drop)


def _equal_squares(blocks: list[Expr], used: list[Symbol]) -> list[Expr]:
    """Squares with one coefficient are one radial block."""
    squares: dict[Expr, list[Expr]] = {}
    others = []
    for b in blocks:
        if _is_square(b):
            squares.setdefault(b.as_independent(*used, as_Add=False)[0], []).append(b)
        else:
            others.append(b)
    return [*[Add(*s) for s in squares.values()], *others]


def _combined(rule: Callable[..., Law], laws: list[Law], drop: Sequence[Index]) -> Law:
    """The laws combined two by two, discrete ones first; what is used again is tabulated."""
    laws = sorted(laws, key=lambda law: (law.continuous, law.power, len(law.knots)))
    while len(laws) > 2:
        both = tabulated(rule(tabulated(laws[0]), tabulated(laws[1])))
        laws = sorted([*laws[2:], both], key=lambda law: (law.continuous, law.power))
    return rule(tabulated(laws[0]), tabulated(laws[1]), drop=drop)


def _outer(g: Expr, used: list[Symbol], place: dict[Symbol, int], drop: Sequence[Index]) -> Law | None:
    """g = F(w) with w one smaller quantity."""
    for inner, outer, w in inner_quantities(g, used):
        try:
            law = law_of(inner, place)
        except NoClosedForm:
            continue
        return push_through_formula(tabulated(law), outer, w, drop=drop)
    return None


def _mixture(g: Expr, used: list[Symbol], place: dict[Symbol, int], drop: Sequence[Index]) -> Law | None:
    """g = F(A, d), d = (d_i(z_i)) finitely many values, independent of A: the law conditioned on d, summed."""
    labels: dict[Symbol, list[tuple[Expr, dict[Index, Expr]]]] = {}
    marked, marks = g, {}
    for x in used:
        parts = own_parts(marked, x)
        if len(parts) != 1 or parts[0] == x:
            continue
        atoms = exact_atoms(parts[0], [x]) if finite_level_sets(parts[0], x) is not None else None
        if atoms:
            d = Dummy("d", real=True)
            marked, marks[x], labels[x] = marked.xreplace({parts[0]: d}), d, atoms
    rest = [x for x in used if x not in marks]
    most_parts = 64  # combinations of finite labels, each with a law of its own; chosen by trial
    if not marks or not rest or prod(len(a) for a in labels.values()) > most_parts:
        return None
    cases: dict[Expr, dict[Index, float]] = {}
    for combination in product(*labels.values()):
        form = marked.xreplace({marks[x]: label for x, (label, _) in zip(marks, combination, strict=True)})
        weights = _weights([nu for _, nu in combination], [place[x] for x in marks])
        total = cases.setdefault(form, {})
        for a, v in weights.items():
            total[a] = total.get(a, 0.0) + v
    return _mixed([(law_of(form, place), weights) for form, weights in cases.items()], drop)


def _weights(moments: list[dict[Index, Expr]], spots: list[int]) -> dict[Index, float]:
    found: dict[Index, float] = {(): 1.0}
    for nu, i in zip(moments, spots, strict=True):
        found = {joined(a, tuple(i for _ in b)): v * float(evaluate(c, 20))
                 for a, v in found.items() for b, c in nu.items() if len(a) + len(b) <= 2}
    return found


def _mixed(cases: list[tuple[Law, dict[Index, float]]], drop: Sequence[Index]) -> Law:
    wanted = sorted({joined(a, b) for law, weights in cases for a in law.indices for b in weights
                     if len(a) + len(b) <= 2} - set(drop), key=lambda a: (len(a), a))
    maps = []
    for law, weights in cases:
        m = np.zeros((len(wanted), len(law.indices)))
        for n, a in enumerate(law.indices):
            for b, v in weights.items():
                if (c := joined(a, b)) in wanted:
                    m[wanted.index(c), n] += v
        maps.append(m)

    def density(y: np.ndarray) -> np.ndarray:
        parts = [m @ law.density(y) for (law, _), m in zip(cases, maps, strict=True) if law.continuous]
        return sum(parts, np.zeros((len(wanted), len(y))))

    live = [law for law, _ in cases if law.continuous]
    knots = [p for law in live for p in (*law.knots, law.lo, law.hi)]
    atoms = merge_atoms([(p, m @ v) for (law, _), m in zip(cases, maps, strict=True) for p, v in law.atoms])
    return Law(tuple(wanted), density, min([law.lo for law in live], default=0.0),
               max([law.hi for law in live], default=0.0), tuple(distinct_sorted(np.array(knots))),
               tuple(h for law in live for h in law.hints), tuple(atoms), bool(live),
               max([law.power for law in live], default=2), False)
