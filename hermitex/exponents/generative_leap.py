"""Lambda_k(U) = E[zeta_k zeta_k^T], zeta_k(Y, u) = E[He_k(P z) | Y, P_U z = u], P the projection on U^perp.

The generative leap is the largest order on the staircase U <- U + span zeta_k, k the least order that is not zero.
Source: Damian, Lee, Bruna (2025). zeta_k charges what one label map shows, E[T(Y) He_b(u) He_k(P z)] != 0; it charges
nothing that the symmetries of the label and the hidden parts of its coordinates forbid. A stage is decided where the
two meet: the directions shown are all the directions allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, prod
from typing import Any

from sympy import Dummy, Expr, S, Symbol

from hermitex.errors import BudgetExceeded, NoClosedForm
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.channels import Channel, Named
from hermitex.exponents.conditional_zeros import conditional_zeros
from hermitex.exponents.hidden import mute_orders
from hermitex.exponents.intervals import ZERO, Interval, Rank, interval_of, scaled
from hermitex.exponents.invariant_tensors import (
    Form,
    Index,
    TensorSpace,
    fibres,
    plus,
    product_of_forms,
    slots,
    stabiliser,
    tensor_space,
    without_sign,
)
from hermitex.exponents.label_families import Family, Member, family
from hermitex.exponents.label_moments import Moments
from hermitex.exponents.relevant import relevant
from hermitex.exponents.staircase import MAX_ORDER, Evidence, Staircase, staircase
from hermitex.exponents.symmetry import Symmetry, symmetries
from hermitex.exponents.turns import turns
from hermitex.symbolic.budget import budget, checkpoint, remaining
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.series.polynomials import multi_indices
from hermitex.symbolic.subspaces import Matrix, is_zero, matrix, span, stack, tidy

_MORE = 3       # slots in U beyond none: He_b(u), |b| <= 3
_MISSED = 3      # tensors of a label map without an answer after which it is given up, if there are no other maps
_SECONDS = 20.0  # of one order at one stage
_WORDS = 4      # reasons that a certificate names


def generative_leap(g: Expr, law: Named | Channel, variables: Sequence[Symbol], *,
                    max_order: int = MAX_ORDER) -> Staircase:
    """The generative staircase of a target in several variables, with a certificate for each order of each stage.

    Parameters
    ----------
    g : the target, an expression of standard normals
    law : the channel, as `channels.channel` reads it
    variables : the standard normals over which directions are written
    max_order : orders that are tried at a stage

    Returns
    -------
    Staircase : `stages` [{order, directions}], `leap` the generative exponent (None: undetermined, or no direction)

    Examples
    --------
    >>> from hermitex.exponents.channels import channel
    >>> from hermitex.symbols import z1, z2
    >>> found = generative_leap(z1**3 - 3*z1 + z2**2, channel(), (z1, z2))
    >>> [(s["order"], s["directions"].tolist()) for s in found.stages]
    [(1, [[1, 0]]), (2, [[0, 1]])]
    """
    try:
        return _staircase(g, law, tuple(variables), max_order)
    except BudgetExceeded as err:
        return Staircase((), (), (f"generative leap: undetermined, {err}",), complete=False)


def _staircase(g: Expr, law: Named | Channel, variables: tuple[Symbol, ...], max_order: int) -> Staircase:
    labels = law.labels(g)
    # What was said of g holds for what the label sees of it: its relevant subspace is that of the label.
    given = family(labels, law, variables)
    found = relevant(given.seen, variables)
    if found.dimension == 0:
        return Staircase((), (), (), True)
    oracle = GenerativeOracle(_carried(given, found, variables), found.names)
    stairs = staircase(oracle, found.dimension, max_order, name="generative leap")
    return stairs if found.basis == Matrix.eye(len(variables)) else stairs.carried(found.outside)


def _carried(given: Family, found: Any, variables: tuple[Symbol, ...]) -> Family:
    """The label maps over the coordinates of the relevant subspace."""
    if found.names == variables and found.basis == Matrix.eye(found.dimension):
        return given
    from hermitex.exponents.relevant import rewritten

    members = (Member(m.words, rewritten(m.mean, variables, found.basis, found.names)) for m in given.members)
    return Family(tuple(found.inner), tuple(members) if given.complete else members, given.complete)


class GenerativeOracle:
    """What E[He_k(P z) | Y, P_U z] charges, for one label; directions are rows over `variables`."""

    def __init__(self, given: Family, variables: Sequence[Symbol]) -> None:
        self.given, self.variables = given, tuple(variables)
        self.r = len(self.variables)
        self._source = iter(given.members)
        self._read: list[Moments] = []
        self._symmetries: dict[tuple[Expr, ...], tuple[Symmetry, ...]] = {}
        self._mute: dict[tuple[tuple[Expr, ...], int, int], dict[int, str]] = {}

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """zero, nonzero with all the directions charged, or undetermined."""
        name = _name(k, known, self.variables)
        blocks = [_Block(self, known, k, (m,), (m.member.mean,), True) for m in self._members()] if self.given.complete \
            else [_Block(self, known, k, None, self.given.seen, False)]
        found = _Shown(known, self.r)
        for block in blocks:
            found.allow(block.space)
        if found.settled:
            return _zero(name, k, blocks)
        self._look(blocks, found, name)
        if found.settled:
            return Evidence("nonzero", found.allowed, (*found.certificates, _stage(name, k, blocks)))
        if self.given.complete and known.rows == 0:
            return self._exactly(blocks, found, name, k)
        if self.given.complete:
            blocks = [b.with_conditional_zeros() for b in blocks]
            found.allow_only([b.space for b in blocks])
            if found.allowed.rows == 0:
                return _zero(name, k, blocks)
            if found.settled:
                return Evidence("nonzero", found.allowed, (*found.certificates, _stage(name, k, blocks)))
        return self._undetermined(found, name, k)

    def _exactly(self, blocks: Sequence[_Block], found: _Shown, name: str, k: int) -> Evidence:
        """With finitely many labels and nothing known, the tensors are finitely many: their span, from their entries."""
        left = remaining()
        try:
            with budget(_SECONDS if left is None else min(_SECONDS, left/2)):
                tensors = [b.exact_tensor() for b in blocks if b.space.basis]
                rows = matrix([row for t in tensors for row in fibres(t, k, self.r)], self.r)
                directions = span(rows) if rows.rows else rows
        except (NoClosedForm, BudgetExceeded):
            checkpoint(f"the entries of {name}")
            return self._undetermined(found, name, k)
        if directions.rows == 0:
            proof = f"E[T(Y) He_a] = 0, |a| = {k}, for every label map: exact values"
            return Evidence("zero", None, (Certificate.zero(name, k, proof),))
        proof = "the tensors of all the label maps, entry by entry, charge these directions and no others"
        return Evidence("nonzero", directions, (*found.certificates, Certificate(name, k, "nonzero", proof)))

    def _look(self, blocks: Sequence[_Block], found: _Shown, name: str) -> None:
        """Try the label maps, for as long as it is worth while."""
        left = remaining()
        try:
            with budget(_SECONDS if left is None else min(_SECONDS, left/2)):
                for block in blocks:
                    block.show(found, name)
        except BudgetExceeded:
            checkpoint(f"looking for label maps that charge {name}")

    def _undetermined(self, found: _Shown, name: str, k: int) -> Evidence:
        shown, allowed = len(found.rank), found.allowed.rows
        note = (f"{name} charges {'at least ' + str(shown) if shown else 'perhaps none'} of {allowed} "
                f"direction{'s' if allowed > 1 else ''} that its symmetries allow, and no label map tried shows the others")
        certificate = Certificate(name, k, "undetermined", note)
        return Evidence("undetermined", None, (*found.certificates, certificate), note)

    # -- parts of the label, computed once -----------------------------------------------------------------------------
    def _members(self) -> Iterator[Moments]:
        """The label maps, read from their source as far as they are needed."""
        at = 0
        while True:
            while at < len(self._read):
                yield self._read[at]
                at += 1
            fresh = next(self._source, None)
            if fresh is None:
                return
            self._read.append(Moments(fresh, self.variables))

    def symmetries(self, seen: tuple[Expr, ...]) -> tuple[Symmetry, ...]:
        """Generators of the symmetries that all the expressions share."""
        if seen not in self._symmetries:
            whole = seen[0] if len(seen) == 1 else sum((Dummy(f"d{i}", real=True)*e for i, e in enumerate(seen)), S.Zero)
            self._symmetries[seen] = (*symmetries(whole, self.variables), *turns(whole, self.variables))
        return self._symmetries[seen]

    def mute(self, seen: tuple[Expr, ...], i: int, k: int) -> dict[int, str]:
        """The orders at which a coordinate is hidden from the label (see `hidden`)."""
        key = (seen, i, k)
        if key not in self._mute:
            self._mute[key] = mute_orders(seen, self.variables[i], k)
        return self._mute[key]


class _Shown:
    """The directions that are allowed at a stage, and the rows that were shown to be charged."""

    def __init__(self, known: Matrix, r: int) -> None:
        self.known, self.r = known, r
        self.allowed = matrix([], r)
        self.rank = Rank()
        self.certificates: list[Certificate] = []

    def allow(self, space: TensorSpace) -> None:

        if space.basis:
            self.allowed = span(stack(self.allowed, space.directions)) if self.allowed.rows else space.directions

    def allow_only(self, spaces: Sequence[TensorSpace]) -> None:
        self.allowed = matrix([], self.r)
        for space in spaces:
            self.allow(space)

    @property
    def settled(self) -> bool:
        return len(self.rank) == self.allowed.rows


class _Block:
    """Label maps whose tensors of order k lie in one space of tensors."""

    def __init__(self, oracle: GenerativeOracle, known: Matrix, k: int, members: tuple[Moments, ...] | None,
                 seen: tuple[Expr, ...], twisted: bool, zero: dict[Index, str] | None = None) -> None:
        self.oracle, self.known, self.k, self.members, self.seen, self.twisted = oracle, known, k, members, seen, twisted
        generators = oracle.symmetries(seen) if twisted else without_sign(oracle.symmetries(seen))
        group = stabiliser(generators, known)
        orthogonal = [i for i in range(oracle.r) if all(known[j, i] == 0 for j in range(known.rows))]
        mute = {i: oracle.mute(seen, i, k) for i in orthogonal}
        self.flips = [s for s in generators if s.flips is not None]
        self.space = tensor_space(k, oracle.r, known, group, mute, zero=zero)

    def show(self, found: _Shown, name: str) -> None:
        """Look for label maps that charge what is allowed, until all of it is charged."""
        if not self.space.basis:
            return
        for moments in self.members or self.oracle._members():
            if found.settled:
                return
            self._by_map(moments, found, name)

    def _by_map(self, moments: Moments, found: _Shown, name: str) -> None:
        missed = 0
        for b in self._in_known():
            checkpoint("looking for label maps")
            proofs = [self._proof(moments, b, a, name) for a in self.space.free]
            if any(p is None or p.status == "undetermined" for p in proofs):
                missed += 1
                if missed > (_MISSED if self.oracle.given.complete else 0):
                    return  # another label map may be easier
                continue
            self._add([_size(p, alone=self._alone(proofs)) for p in proofs if p is not None], proofs, found)
            if found.settled:
                return

    def _proof(self, moments: Moments, inside: list[list[Expr]], a: Index, name: str) -> Certificate | None:
        """What is known of the entry a of one tensor of this label map."""
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

    @staticmethod
    def _alone(proofs: Sequence[Certificate | None]) -> bool:
        return sum(1 for p in proofs if p is not None and p.status != "zero") == 1

    def _add(self, values: list[Interval | None], proofs: Sequence[Certificate | None], found: _Shown) -> None:
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
                total = total.plus(scaled(v, t[a]))
        return total

    def _in_known(self) -> Iterator[list[list[Expr]]]:
        """Rows of U to fill further slots with, the fewest first."""
        rows = self.known.tolist()
        for more in range(_MORE + 1 if rows else 1):
            for b in multi_indices(len(rows), more) if rows else [()]:
                yield [rows[i] for i in slots(b)]

    def _form(self, inside: list[list[Expr]], a: Index) -> Form:
        """Slots in U filled with `inside`, slots outside with the projections of the coordinates of a."""
        outside = [self._projected(i) for i in slots(a)]
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
        return all(any(_odd(a, s) for s in self.flips) for a in form)

    def exact_tensor(self) -> Form:
        """E[T(Y) He_k(z)] of the only label map, its entries exact constants that are decided to be zero or not."""
        assert self.members is not None
        (moments,) = self.members
        entries = {a: moments.exact(a) for a in self.space.free}
        out: Form = {}
        for t, a in zip(self.space.basis, self.space.free, strict=True):
            if is_zero(entries[a]):
                continue
            for b, c in t.items():
                out[b] = tidy(out.get(b, S.Zero) + entries[a]*c)
        return out

    def with_conditional_zeros(self) -> _Block:
        """The same block with the entries that vanish for every value of u, by exact integration over the others."""
        assert self.members is not None
        zero: dict[Index, str] = {}
        for m in self.members:
            zero |= conditional_zeros(m.member.mean, self.oracle.variables, self.known, self.space.free)
        if not zero:
            return self
        return _Block(self.oracle, self.known, self.k, self.members, self.seen, self.twisted, zero)


def _size(proof: Certificate, *, alone: bool) -> Interval | None:
    """The value of an entry. One that is known not to be zero, and no more, counts as 1 if all the others are zero."""
    known = interval_of(proof)
    return Interval.exactly(1) if known is None and alone and proof.status == "nonzero" else known


def _odd(a: Index, s: Symmetry) -> bool:
    character = -1 if sum(n for n, f in zip(a, s.flips or (), strict=True) if f == -1) % 2 else 1
    return character != s.sign


# -- words -------------------------------------------------------------------------------------------------------------
def _name(k: int, known: Matrix, variables: tuple[Symbol, ...]) -> str:
    if known.rows == 0:
        return f"Lambda_{k}"
    forms = [str(sum((_short(x)*v for x, v in zip(row, variables, strict=True)), S.Zero)) for row in known.tolist()]
    return f"Lambda_{k} given {', '.join(forms)}"


def _short(x: Expr) -> Expr:
    return x.evalf(4) if x.has(Expectation) or x.count_ops() > 12 else x


def _reasons(blocks: Sequence[_Block]) -> str:
    why = list(dict.fromkeys(w for b in blocks for w in b.space.why))
    more = f" and {len(why) - _WORDS} more" if len(why) > _WORDS else ""
    return "; ".join(why[:_WORDS]) + more


def _zero(name: str, k: int, blocks: Sequence[_Block]) -> Evidence:
    return Evidence("zero", None, (Certificate.zero(name, k, f"no tensor is left: {_reasons(blocks)}"),))


def _stage(name: str, k: int, blocks: Sequence[_Block]) -> Certificate:
    why = _reasons(blocks)
    return Certificate(name, k, "nonzero", "the label maps above charge every direction that is allowed"
                       + (f": {why}" if why else ", which is every one"))
