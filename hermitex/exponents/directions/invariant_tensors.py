"""zeta = R.zeta for every R with g(R z) = g(z), R = 1 on U: the tensors that symmetry leaves to E[He_k(P z) | Y, P_U z].

The conditional tensor of a label is in the space of symmetric tensors of order k over the complement of U that the stabiliser
of U leaves alone, and those of its entries vanish that a hidden part of a coordinate decides (see `hidden`). What that
space does not charge no label charges. It is found by exact linear algebra over monomials, He_a <-> the slots of a.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from sympy import Expr, S

from hermitex.exponents.directions.symmetry import Symmetry, signed_permutation
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import Matrix, echelon, matrix, null_space, span, tidy

Index = tuple[int, ...]
Form = dict[Index, Expr]
Entries = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TensorSpace:
    """Symmetric tensors of order k in r variables: the span of `basis`, each {multi-index: entry}.

    Attributes: `free`: for each basis tensor the multi-index at which it is 1 and all the others are 0; `why` what the
    space was cut down by, in words.
    """

    order: int
    dimension: int
    basis: tuple[Form, ...]
    free: tuple[Index, ...]
    why: tuple[str, ...]

    @property
    def directions(self) -> Matrix:
        """The span of the mode-1 fibres of all its tensors."""
        rows = [row for t in self.basis for row in fibres(t, self.order, self.dimension)]
        return span(matrix(rows, self.dimension)) if rows else matrix([], self.dimension)


def fibres(t: Mapping[Index, Expr], k: int, r: int) -> list[list[Expr]]:
    """The rows (t_{b + e_1}, ..., t_{b + e_r}), |b| = k - 1, that are not zero."""
    rows = []
    for b in multi_indices(r, k - 1):
        row = [S(t.get(plus(b, i), 0)) for i in range(r)]
        if any(x != 0 for x in row):
            rows.append(row)
    return rows


def plus(b: Index, i: int) -> Index:
    """b + e_i."""
    return (*b[:i], b[i] + 1, *b[i + 1:])


def entry_slots(a: Index) -> list[int]:
    """The coordinates in the slots of an entry: (2, 0, 1) -> [0, 0, 2]."""
    return [i for i, n in enumerate(a) for _ in range(n)]


def product_of_forms(rows: Iterable[Sequence[Expr]], r: int) -> Form:
    """{a: p_a} with prod_j (sum_i v_ji x_i) = sum_a p_a x^a: a tensor contracted with the v_j is sum_a p_a c_a."""
    found: Form = {(0,)*r: S.One}
    for row in rows:
        support = [(i, x) for i, x in enumerate(row) if x != 0]
        fresh: Form = {}
        for a, c in found.items():
            for i, x in support:
                b = plus(a, i)
                fresh[b] = fresh.get(b, S.Zero) + c*x
        found = fresh
    return {a: t for a, c in found.items() if (t := tidy(c)) != 0}


def stabiliser(generators: Sequence[Symmetry], known: Matrix) -> list[Symmetry]:
    """Elements of the group that the symmetries generate which leave every row of `known` where it is: a few that
    generate the others."""
    if known.rows == 0 or not generators:
        return list(generators)
    return list(_stabiliser(tuple(generators), known.as_immutable()))


@kept(64)
def _stabiliser(generators: tuple[Symmetry, ...], known: Matrix) -> list[Symmetry]:
    fixing = [s for s in generators if _fixes_rows(s, known)]
    if len(fixing) == len(generators):
        return fixing
    reached = set(_group(fixing)) if fixing else set()
    for key, sign in _group(generators).items():
        if key not in reached and _leaves_as(key, known):
            fixing.append(Symmetry(signed_permutation(key) if isinstance(key, tuple) else key, sign, generators[0].variables))
            reached = set(_group(fixing))
    return fixing


def _leaves_as(R: Entries | Matrix, known: Matrix) -> bool:
    """R u = u for every row u."""
    if not isinstance(R, tuple):
        return all(tidy(x) == 0 for x in known*R.T - known)
    rows = known.tolist()
    moved = [[e*row[j] for j, e in R] for row in rows]
    return moved == rows or (not all(x.is_Rational for x in known)
                             and all(tidy(x - y) == 0 for a, b in zip(moved, rows, strict=True) for x, y in zip(a, b, strict=True)))


def _fixes_rows(s: Symmetry, known: Matrix) -> bool:
    """R u = u for every row u."""
    return _leaves_as(s.matrix if s.entries is None else s.entries, known)


def without_sign(generators: Sequence[Symmetry]) -> list[Symmetry]:
    """Generators of the symmetries with g(R z) = +g(z), from those with a sign (Schreier: a subgroup of index two).

    Examples
    --------
    >>> from hermitex.exponents.directions.symmetry import symmetries
    >>> from hermitex.symbols import z1, z2
    >>> [s.matrix.tolist() for s in without_sign(symmetries(z1**3*z2, (z1, z2)))]
    [[[-1, 0], [0, -1]]]
    """
    minus = next((s for s in generators if s.sign == -1), None)
    if minus is None:
        return list(generators)
    found: dict[Matrix, Symmetry] = {}
    for s in generators:
        pair = (s, _times(minus, s, Symmetry(Matrix(minus.matrix.T), -1, minus.variables))) if s.sign == 1 else (
            _times(minus, s), _times(s, Symmetry(Matrix(minus.matrix.T), -1, minus.variables)))
        found.update({p.matrix: p for p in pair if p.matrix != Matrix.eye(p.matrix.rows)})
    return list(found.values())


def _times(*factors: Symmetry) -> Symmetry:
    matrix_ = factors[0].matrix
    for s in factors[1:]:
        matrix_ = Matrix((matrix_*s.matrix).applyfunc(tidy))
    return Symmetry(matrix_, prod(s.sign for s in factors), factors[0].variables)


def _group(generators: Sequence[Symmetry]) -> dict[Entries | Matrix, int]:
    """The signs of 1 and of products of the generators, breadth first, by their entries where all are permutations with signs,
    else by matrices.

    At most 1500 of the former, 120 of the latter.
    """
    tables = [s.entries for s in generators if s.entries is not None]
    signed, size = len(tables) == len(generators), generators[0].matrix.rows
    steps: list[tuple[Any, int]] = [(s.entries if signed else s.matrix, s.sign) for s in generators]
    one: Any = tuple((j, 1) for j in range(size)) if signed else Matrix.eye(size)
    found: dict[Entries | Matrix, int] = {one: 1}
    fresh = [one]
    # elements of a group of permutations with signs, which are multiplied as integers; all 384 of four variables fit
    most_signed = 1500
    # elements of another group, multiplied as matrices of exact numbers: invariance under a part bounds a tensor as well
    most_others = 120
    while fresh and len(found) < (most_signed if signed else most_others):
        checkpoint("multiplying symmetries")
        grown = []
        for a in fresh:
            for b, sign in steps:
                key = tuple((b[j][0], e*b[j][1]) for j, e in a) if signed else Matrix((a*b).applyfunc(tidy))
                if key not in found:
                    found[key] = found[a]*sign
                    grown.append(key)
        fresh = grown
    return found


def tensor_space(k: int, r: int, known: Matrix, group: Sequence[Symmetry], vanishing: Mapping[int, Mapping[int, str]], *,
                 zero: Mapping[Index, str] | None = None) -> TensorSpace:
    """The tensors over the complement of `known` that symmetry and hidden parts allow.

    Parameters
    ----------
    group : symmetries that leave `known` alone; a sign -1 belongs to a single label map, E[T(Y)|R z] = -E[T(Y)|z]
    vanishing : {i: {n: why}}: E[He_n(z_i) | label] = 0 whatever the other variables are, for coordinates i orthogonal to `known`
    zero : further entries that are proved to vanish
    """
    every = list(multi_indices(r, k))
    why: dict[str, None] = {}
    dead = {a for a in every if _is_dead(a, known, vanishing, zero or {}, why)}
    flips = [s for s in group if s.flips is not None]
    for s in flips:
        struck = {a for a in every if a not in dead and flip_character(a, s) != s.sign}
        if struck:
            why[f"the label is {'left alone' if s.sign == 1 else 'reversed'} by {s.how}"] = None
        dead |= struck
    alive = [a for a in every if a not in dead]
    rows = [_equation({a: S.One}, product_of_forms([s.matrix.row(i) for i in entry_slots(a)], r), s.sign)
            for s in group if s.flips is None for a in alive]
    why.update({f"the label is {'left alone' if s.sign == 1 else 'reversed'} by {s.how}": None
                for s in group if s.flips is None and alive})
    for u in known.tolist():
        if sum(1 for x in u if x != 0) == 1:
            continue  # the entries with a slot there are dead already
        rows += [{plus(b, i): x for i, x in enumerate(u) if x != 0} for b in multi_indices(r, k - 1)]
    basis, free = _solutions(rows, alive)
    return TensorSpace(k, r, basis, free, tuple(why))


def _is_dead(a: Index, known: Matrix, vanishing: Mapping[int, Mapping[int, str]], zero: Mapping[Index, str],
             why: dict[str, None]) -> bool:
    for u in known.tolist():
        at = [i for i, x in enumerate(u) if x != 0]
        if len(at) == 1 and a[at[0]]:
            return True
    reason = zero.get(a) or next((vanishing[i][n] for i, n in enumerate(a) if n in vanishing.get(i, {})), None)
    if reason:
        why[reason] = None
    return bool(reason)


def flip_character(a: Index, s: Symmetry) -> int:
    """The sign of He_a under a flip."""
    return -1 if sum(n for n, f in zip(a, s.flips or (), strict=True) if f == -1) % 2 else 1


def _equation(left: Form, right: Form, sign: int) -> Form:
    out = dict(left)
    for a, c in right.items():
        out[a] = out.get(a, S.Zero) - sign*c
    return {a: c for a, c in out.items() if c != 0}


def _solutions(rows: Sequence[Form], alive: Sequence[Index]) -> tuple[tuple[Form, ...], tuple[Index, ...]]:
    """A basis of the tensors with entries `alive` that satisfy the equations; each free entry belongs to one of them."""
    at = {a: i for i, a in enumerate(alive)}
    table = list(dict.fromkeys(tuple(sorted((at[a], c) for a, c in row.items() if a in at)) for row in rows))
    table = [row for row in table if row]
    if not table:
        return tuple({a: S.One} for a in alive), tuple(alive)
    dense = [[S.Zero]*len(alive) for _ in table]
    for line, row in zip(dense, table, strict=True):
        for i, c in row:
            line[i] = c
    # Reduced once more, so that every tensor has an entry of its own.
    reduced, pivots = echelon(null_space(matrix(dense, len(alive))))
    return tuple({alive[i]: c for i, c in enumerate(row) if c != 0} for row in reduced.tolist()), tuple(alive[i] for i in pivots)
