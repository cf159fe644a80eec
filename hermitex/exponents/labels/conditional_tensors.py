"""sum_s lambda_s t_s, lambda_s = E[T(Y) He_b(u) He_a(P z)]: what a label map shows of a conditional tensor, entry by entry.

The t_s span the tensors that are allowed (`invariant_tensors`), the lambda_s are exact or enclosed (`moments`), and
the rows of what is shown count as independent where that is certain (`intervals`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, prod
from typing import Protocol

from sympy import QQ, Add, Expr, S, Symbol

from hermitex.errors import BudgetExceeded
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.common_eigenspaces import common_eigenspaces
from hermitex.exponents.directions.intervals import ZERO, Interval, Rank, enclosing_interval, interval_of, scale_interval
from hermitex.exponents.directions.invariant_tensors import (
    Form,
    Index,
    TensorSpace,
    entry_slots,
    flip_character,
    plus,
    product_of_forms,
    stabiliser,
    tensor_space,
    without_sign,
)
from hermitex.exponents.directions.symmetry import Symmetry
from hermitex.exponents.labels.families import Family
from hermitex.exponents.labels.label_branches import branch_identity
from hermitex.exponents.labels.moments import Moments, entry
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.invariance import rewritten
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import Matrix, complement, is_zero, matrix, orthonormal, span, stack, tidy


class Asked(Protocol):
    """Questions of a block to the staircase's oracle that made it."""

    given: Family
    variables: tuple[Symbol, ...]
    r: int

    def members(self) -> Iterator[Moments]:
        """The label maps, as moments, easy ones first."""
        ...

    def symmetries(self, seen: tuple[Expr, ...]) -> tuple[Symmetry, ...]:
        """Symmetries of what the label tells."""
        ...

    def vanishing_orders(self, seen: tuple[Expr, ...], i: int, k: int) -> dict[int, str]:
        """The orders in z_i that vanish in every tensor, and why."""
        ...


class ChargedDirections:
    """The directions that are allowed at a stage, and the rows that were shown to be charged."""

    def __init__(self, known: Matrix, r: int) -> None:
        self.known, self.r = known, r
        self.allowed = matrix([], r)
        self.rank = Rank()
        self.certificates: list[Certificate] = []

    def allow(self, space: TensorSpace) -> None:
        """Add the directions of a space of tensors."""
        if space.basis:
            self.allowed = span(stack(self.allowed, space.directions)) if self.allowed.rows else space.directions

    @property
    def settled(self) -> bool:
        return len(self.rank) == self.allowed.rows


class TensorBlock:
    """Label maps whose tensors of order k are in one space of tensors."""

    def __init__(self, oracle: Asked, known: Matrix, k: int, members: tuple[Moments, ...] | None,
                 seen: tuple[Expr, ...], twisted: bool) -> None:
        self.oracle, self.known, self.k, self.members, self.seen, self.twisted = oracle, known, k, members, seen, twisted
        generators = oracle.symmetries(seen) if twisted else without_sign(oracle.symmetries(seen))
        group = stabiliser(generators, known)
        orthogonal = [i for i in range(oracle.r) if all(known[j, i] == 0 for j in range(known.rows))]
        vanishing = {i: oracle.vanishing_orders(seen, i, k) for i in orthogonal}
        self.flips = [s for s in generators if s.flips is not None]
        zero: dict[Index, str] = {}
        if not known.rows and (why := branch_identity(tuple(seen), tuple(oracle.variables), k)) is not None:
            zero |= dict.fromkeys(multi_indices(oracle.r, k), why)
        self.space = tensor_space(k, oracle.r, known, group, vanishing, zero=zero)

    def show(self, found: ChargedDirections, name: str) -> None:
        """Look for label maps that charge what is allowed, until all of it is charged."""
        if not self.space.basis:
            return
        for moments in self.members or self.oracle.members():
            if found.settled:
                return
            if self.oracle.given.complete or moments.poly is not None:
                self._by_map(moments, found, name)
            else:
                self._soon(moments, found, name)

    def _soon(self, moments: Moments, found: ChargedDirections, name: str) -> None:
        """One of many label maps: if it takes long another may be easier."""
        seconds = 1.5  # of a label map that is one of many: five of them fill the eight seconds of their order
        try:
            with attempt(seconds):
                self._by_map(moments, found, name)
        except BudgetExceeded:
            checkpoint("looking for label maps")

    def rise(self, moments: Moments, found: ChargedDirections, name: str) -> None:
        """What is charged because the label map rises or falls, without any integral: directions, or the only tensor there is.

        Tensors of order two that commute share their eigenvectors w, and E[T(Y) He_2(w.z)] != 0 charges the eigenspace.
        """
        if moments.member.element is not None:
            return
        if self.twisted and len(self.space.basis) == 1 and not self.known.rows:
            (a,) = self.space.free
            if (why := moments.rise(moments.member.mean, self.oracle.variables, a)) is not None:
                proof = Certificate(*entry(a), "nonzero", f"label map T(y) = {moments.member.words}: {why}")
                self._add([Interval.exactly(1)], [proof], found)
                return
        if self.k != 2:
            return
        for W in eigenspaces_of_forms(self.space.basis, self.oracle.r):
            w = W.row(0).tolist()[0]
            if all(is_zero(_entry(t, w)) for t in self.space.basis):
                continue
            basis = stack(orthonormal(matrix([w], self.oracle.r)), orthonormal(complement(matrix([w], self.oracle.r))))
            names = self.oracle.variables
            why = moments.rise(rewritten(moments.member.mean, names, basis, names), names, (2, *[0]*(self.oracle.r - 1)))
            if why is None:
                continue
            form = Add(*(x*v for x, v in zip(basis.row(0).tolist()[0], names, strict=True)))
            quantity, order = (f"E[T(Y) He_2({form})]", (2,)) if self.oracle.r > 1 else entry((2,))
            proof = Certificate(quantity, order, "nonzero", f"label map T(y) = {moments.member.words}: "
                                f"{why.replace(f'|{names[0]}|', 'its modulus')}")
            if [found.rank.add([enclosing_interval(x) for x in row]) for row in W.tolist()].count(True):
                found.certificates.append(proof)

    def _by_map(self, moments: Moments, found: ChargedDirections, name: str) -> None:
        self.rise(moments, found, name)
        if found.settled:
            return
        missed = 0
        # tensors of a label map without an answer before it is given up, if it is the only map; chosen by trial
        most_missed = 3
        for b in self._in_known():
            checkpoint("looking for label maps")
            proofs = self._proofs(moments, b, name)
            if proofs is None:
                missed += 1
                if missed > (most_missed if self.oracle.given.complete else 0):
                    return  # another label map may be easier
                continue
            alone = sum(1 for p in proofs if p.status != "zero") == 1
            self._add([_size(p, alone=alone) for p in proofs], proofs, found)
            if found.settled:
                return

    def _proofs(self, moments: Moments, inside: list[list[Expr]], name: str) -> list[Certificate] | None:
        """The evidence for each free entry; None as soon as one has none."""
        proofs = []
        for a in self.space.free:
            proof = self._proof(moments, inside, a, name)
            if proof is None or (proof.status == "undetermined" and proof.enclosure is None):
                return None
            proofs.append(proof)
        return proofs

    def _proof(self, moments: Moments, inside: list[list[Expr]], a: Index, name: str) -> Certificate | None:
        """The evidence for the entry a of one tensor of this label map."""
        form = self._form(inside, a)
        if self._killed(form):
            return Certificate.zero(name, self.k, "it changes sign under a flip of the label's")
        proof = moments.certificate(form, name)
        if (proof is None or proof.status == "undetermined") and len(self.space.basis) == 1 and len(self.space.basis[0]) > 1:
            proof = moments.certificate(self._averaged(inside), name)
        return proof

    def _averaged(self, inside: list[list[Expr]]) -> Form:
        """The only entry there is, as the average <C, t>/<t, t> over the whole tensor t: sum z_i^2 - r for the identity."""
        (t,) = self.space.basis
        weight = {a: factorial(self.k)//prod(map(factorial, a))*c for a, c in t.items()}
        norm = sum(weight[a]*c for a, c in t.items())
        out: Form = {}
        for a, w in weight.items():
            for b, c in self._form(inside, a).items():
                out[b] = tidy(out.get(b, S.Zero) + w*c/norm)
        return {a: c for a, c in out.items() if c != 0}

    def _add(self, values: list[Interval | None], proofs: Sequence[Certificate | None], found: ChargedDirections) -> None:
        if any(v is None for v in values):
            return
        sizes = [v for v in values if v is not None]
        for row in self._rows(sizes):
            if found.rank.add(row):
                found.certificates += [p for v, p in zip(sizes, proofs, strict=True)
                                       if v.excludes_zero and p is not None and p not in found.certificates]
            if found.settled:
                return

    def _rows(self, sizes: list[Interval]) -> Iterator[list[Interval]]:
        """The mode-1 fibres of sum_s sizes_s basis_s."""
        if all(v == ZERO for v in sizes):
            return
        for b in multi_indices(self.oracle.r, self.k - 1):
            row = [self._entry(plus(b, i), sizes) for i in range(self.oracle.r)]
            if any(x.excludes_zero for x in row):
                yield row

    def _entry(self, a: Index, sizes: list[Interval]) -> Interval:
        total = ZERO
        for t, v in zip(self.space.basis, sizes, strict=True):
            if a in t:
                total = total.plus(scale_interval(v, t[a]))
        return total

    def _in_known(self) -> Iterator[list[list[Expr]]]:
        """Rows of U to fill further slots with, the fewest first."""
        rows = self.known.tolist()
        most_known = 3  # slots in U: He_b(u), |b| <= 3; their number grows as |b|^dim U
        for more in range(most_known + 1 if rows else 1):
            for b in multi_indices(len(rows), more) if rows else [()]:
                yield [rows[i] for i in entry_slots(b)]

    def _form(self, inside: list[list[Expr]], a: Index) -> Form:
        """Slots in U filled with `inside`, slots outside with the projections of the coordinates of a."""
        outside = [self._projected(i) for i in entry_slots(a)]
        return product_of_forms([*inside, *outside], self.oracle.r)

    def _projected(self, i: int) -> list[Expr]:
        """P e_i."""
        row = [S(int(i == j)) for j in range(self.oracle.r)]
        for u in self.known.tolist():
            factor = u[i]/sum(x*x for x in u)
            row = [x - factor*y for x, y in zip(row, u, strict=True)]
        return row

    def _killed(self, form: Form) -> bool:
        """Every entry of it changes sign under a flip of the label's."""
        return all(any(flip_character(a, s) != s.sign for s in self.flips) for a in form)


def eigenspaces_of_forms(basis: Sequence[Form], r: int) -> list[Matrix]:
    """The common eigenspaces of tensors of order two, as rows; [] if they do not commute, or are not rational."""
    forms = [[[S(t.get(plus(tuple(int(i == n) for n in range(r)), j), 0)) for j in range(r)] for i in range(r)] for t in basis]
    if not all(x.is_Rational for M in forms for row in M for x in row):
        return []
    spaces = common_eigenspaces([[[QQ.from_sympy(x) for x in row] for row in M] for M in forms], r, QQ)
    return [matrix([[QQ.to_sympy(x) for x in row] for row in V], r) for V in spaces or []]


def _entry(t: Form, w: Sequence[Expr]) -> Expr:
    """<t, w w>."""
    return S(sum(factorial(2)//prod(map(factorial, a))*c*prod(x**n for x, n in zip(w, a, strict=True)) for a, c in t.items()))


def _size(proof: Certificate, *, alone: bool) -> Interval | None:
    """The value of an entry. One that is known not to be zero, and no more, counts as 1 if all the others are zero."""
    known = interval_of(proof)
    return Interval.exactly(1) if known is None and alone and proof.status == "nonzero" else known
