"""C_k^U(u) = E[g(z) He_k(P z) | P_U z = u] of a regression function, as the oracle of the leap.

A zero is proved by reflections, by exact integrals or by algebra; a non-zero by an exact value or an enclosure. What a
tensor charges is bounded from above by its decomposition into functions of u and from below by its values (`fibres`); a
stage is decided where the two meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Expr, Poly, S, Symbol, expand

from hermitex.errors import HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.direction_text import directions_words
from hermitex.exponents.directions.invariant_tensors import TensorSpace, stabiliser, tensor_space
from hermitex.exponents.directions.staircase import Evidence
from hermitex.exponents.directions.symmetry import symmetries
from hermitex.exponents.directions.tensor_fibres import (
    allowed_directions,
    difficulty,
    fibre_functions,
)
from hermitex.exponents.labels.label_branches import branch_identity
from hermitex.symbolic.budget import Store
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.partial_tensors import Given, MultiIndex
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import Matrix, complement, echelon, matrix, orthonormal, rank, span
from hermitex.symbolic.summands import split
from hermitex.symbolic.vanishing import VanishingVerdict, generic_points, vanishes


def on_coordinates(rows: Matrix) -> bool:
    """Is every row along a coordinate?"""
    return all(sum(1 for x in row if x != 0) == 1 for row in rows.tolist())


class Regression:
    """C_k^U of a regression function: the oracle of the subspace staircase, and the entries for the coordinate leap."""

    def __init__(self, g: Expr, variables: Sequence[Symbol]) -> None:
        self.g, self.variables = g, tuple(variables)
        self.whole = split(g, self.variables)
        self.whole_is_polynomial = g.is_polynomial(*self.variables)  # its entries are cheaper than its symmetries
        self._given: dict[Matrix, Given] = {}
        self._invariant = Store()

    def given(self, known: Matrix) -> Given:
        """The tensors given the span of the rows `known`."""
        if known not in self._given:
            self._given[known] = Given(self.whole, orthonormal(known))
        return self._given[known]

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """Whether C_k^U vanishes, and what it charges."""
        if known.has(Expectation):
            return self._by_blocks(known, k)
        if not self.whole_is_polynomial and not self.invariant(known, k).basis:
            how = f"every part of it vanishes: {'; '.join(self.invariant(known, k).why)}"
            return Evidence("zero", certificates=(Certificate.zero(self._tensor_name(known, k), k, how),))
        given = self.given(known)
        entries = {b: self.reduced(e.value, given) for b, e in given.entries(k).items()}
        return self._charged(given, k, {b: h for b, h in entries.items() if h != 0}, known)

    def _by_invariance(self, left: dict[MultiIndex, Expr], k: int) -> dict[MultiIndex, Expr]:
        """The entries in terms of the ones that symmetry leaves free: equal entries then hold the same integral."""
        space = self.invariant(matrix([], len(self.variables)), k)
        out: dict[MultiIndex, Expr] = {}
        for a, t in zip(space.free, space.basis, strict=True):
            for b, c in t.items():
                out[b] = out.get(b, S.Zero) + c*left.get(a, S.Zero)
        return {b: h for b, h in out.items() if h != 0} or left

    def invariant(self, known: Matrix, k: int) -> TensorSpace:
        """The tensors over the complement of U that are invariant under the symmetries of the target that fix U.

        C_k^U(u) = eps R.C_k^U(u) for g(R z) = eps g(z), R u = u: it is in that space for every u.
        """
        def found() -> TensorSpace:
            why = branch_identity((self.g,), self.variables, k) if not known.rows else None
            zero = dict.fromkeys(multi_indices(len(self.variables), k), why) if why else None
            return tensor_space(k, len(self.variables), known, stabiliser(symmetries(self.g, self.variables), known), {}, zero=zero)

        return self._invariant.of((known, k), found)

    def reduced(self, h: Expr, given: Given) -> Expr:
        """h, or 0 where algebra proves that it vanishes."""
        if h == 0 or h.is_Rational:
            return h
        inside = tuple(v for v in given.u if v in h.free_symbols)
        if inside:
            return S.Zero if identically_zero(h, inside) else h
        return S.Zero if not h.has(Expectation) and h.is_number and vanishes(h, ()).status == "zero" else h

    def _charged(self, given: Given, k: int, left: dict[MultiIndex, Expr], known: Matrix) -> Evidence:
        """The span of the fibres: what the functions of u allow, and what the values show."""
        if not left:
            ways = "; ".join(dict.fromkeys(w for e in given.entries(k).values() for w in e.how.split("; ")
                                           if w != "no summand depends on it")) or "its Hermite expansion has no such term"
            return Evidence("zero", certificates=(Certificate.zero(self._tensor_name(known, k), k, ways),))
        if not known.rows and any(h.has(Expectation) for h in left.values()):
            left = self._by_invariance(left, k)
        for fixed in (False, True):
            upper, pivots = echelon(allowed_directions(left, given, k, nodes_are_constants=fixed))
            shown, proofs, why = self._shown(given, k, left, upper, pivots)
            if shown == upper.rows > 0:
                return Evidence("nonzero", Matrix(upper*given.frame), proofs)
        live = {b: h for b, h in left.items() if vanishes(h, given.u).status != "zero"}
        if len(live) < len(left):  # integrals that cancel
            return self._charged(given, k, live, known)
        name = self._tensor_name(known, k)
        return Evidence("undetermined", certificates=(*proofs, Certificate(name, k, "undetermined", why)),
                        note=f"what {name} shows: {why}")

    def _by_blocks(self, known: Matrix, k: int) -> Evidence:
        """A subspace known through integrals only: blocks of C_n, n >= k, k slots outside U; they prove non-zeros."""
        from hermitex.symbolic.hermite_tensors import tensor

        outside = complement(known)
        x = tuple(Symbol(f"x_{i + 1}", real=True) for i in range(known.rows))
        y = tuple(Symbol(f"y_{i + 1}", real=True) for i in range(outside.rows))
        swap = {v: Add(*(known[i, j]*a for i, a in enumerate(x)), *(outside[i, j]*a for i, a in enumerate(y)))
                for j, v in enumerate(self.variables)}
        rows: list[list[Expr]] = []
        for n in range(k, k + 4):
            form = tensor(self.g, n, self.variables).polynomial(self.variables).xreplace(swap)
            block = Poly(expand(form), *x, *y)
            slots = [Poly({m: c for m, c in block.terms() if sum(m[len(x):]) == k} or {(0,)*(len(x) + len(y)): 0},
                          *x, *y).diff(v) for v in y]
            tables = [dict(p.terms()) for p in slots]
            rows += [[S(t.get(m, 0)) for t in tables] for m in dict.fromkeys(m for t in tables for m in t)]
            found = span(matrix([r for r in rows if any(c != 0 for c in r)], len(y)))
            if found.rows == len(y):
                how = f"a block of C_{n} with {k} of its slots outside what is known, by enclosure"
                return Evidence("nonzero", outside, (Certificate(self._tensor_name(known, k), k, "nonzero", how),))
        return Evidence("undetermined", note=f"{self._tensor_name(known, k)}: the directions known are integrals "
                        "without closed form, and no block of its tensors decides it")

    # -- from below
    def _shown(self, given: Given, k: int, left: dict[MultiIndex, Expr], upper: Matrix,
               pivots: tuple[int, ...]) -> tuple[int, tuple[Certificate, ...], str]:
        """The number of independent fibres that values prove, the proofs, and the obstacles."""
        found: list[list[Expr]] = []
        proofs: dict[MultiIndex, Certificate] = {}
        why = "its values leave some directions open"
        for fibre in sorted(fibre_functions(left, len(given.w), k, pivots), key=difficulty):
            for point in generic_points(given.u, 5) if any(h.free_symbols & set(given.u) for _, h in fibre) else [()]:
                if len(found) == len(pivots):
                    break
                values = [h.xreplace(dict(point)) for _, h in fibre]
                verdicts = {b: vanishes(h, given.u) for b, h in fibre if h != 0}
                sure = {b: v for b, v in verdicts.items() if v.status == "nonzero"}
                if not sure:
                    why = next((v.how for v in verdicts.values() if v.status == "undetermined"), why)
                    continue
                row = values if found else [h.xreplace(dict(next(iter(sure.values())).at)) for _, h in fibre]
                try:
                    if rank(matrix([*found, row], len(pivots))) == len(found):
                        continue
                except HermitexError as err:
                    why = " ".join(str(err).split())
                    continue
                found.append(row)
                b, verdict = next(iter(sure.items()))
                proofs.setdefault(b, self.certificate(given, b, left[b], verdict))
        return len(found), tuple(proofs.values()), why

    # -- words
    def _tensor_name(self, known: Matrix, k: int) -> str:
        letter = "C" if len(self.variables) > 1 else "c"
        return f"{letter}_{k}" + (f" given {', '.join(self._form(row) for row in known.tolist())}" if known.rows else "")

    def _form(self, row: Sequence[Expr]) -> str:
        return directions_words([row], [v.name for v in self.variables])

    def certificate(self, given: Given, b: MultiIndex, h: Expr, verdict: VanishingVerdict) -> Certificate:
        """One entry that is not zero: as a coefficient c_a where the coordinates allow it, else at the point it was found."""
        if not verdict.at and on_coordinates(given.frame) and on_coordinates(given.known):
            a = [0]*len(self.variables)
            for row, n in zip(given.frame.tolist(), b, strict=True):
                a[place(row)] = n
            return Certificate(*coefficient(tuple(a)), "nonzero", verdict.how, verdict.value, verdict.enclosure)
        what = ", ".join(f"He_{n}({self._form(row)})" for row, n in zip(given.frame.tolist(), b, strict=True) if n)
        there = {v: x for v, x in verdict.at}
        where = ", ".join(f"{self._form(row)} = {there[v]}" for v, row in zip(given.u, given.known.tolist(), strict=True)
                          if v in there)
        name = f"c[{what}{' | ' + where if where else ''}]"
        return Certificate(name, b, "nonzero", verdict.how, verdict.value, verdict.enclosure)


def coefficient(a: MultiIndex) -> tuple[str, Any]:
    """The quantity c_a and its order in words; of one variable they are those of a number."""
    return (f"c_({','.join(map(str, a))})", a) if len(a) > 1 else (f"c_{a[0]}", a[0])


def place(row: Sequence[Expr]) -> int:
    """The coordinate along which a row points."""
    return next(i for i, x in enumerate(row) if x != 0)
