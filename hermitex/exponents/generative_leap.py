"""Lambda_k(U) = E[zeta_k zeta_k^T], zeta_k(Y, u) = E[He_k(P z) | Y, P_U z = u], P the projection on U^perp.

The generative leap is the largest order on the staircase U <- U + span zeta_k, k the least order that is not zero.
Source: Damian, Lee, Bruna (2025). zeta_k charges what one label map shows, E[T(Y) He_b(u) He_k(P z)] != 0; it charges
nothing that the symmetries of the label and the hidden parts of its coordinates forbid. A stage is decided where the
two meet: the directions shown are all the directions allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sympy import Dummy, Expr, S, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.channels import Channel, NamedChannel
from hermitex.exponents.directions.intervals import enclosing_interval
from hermitex.exponents.directions.regression import Regression, on_coordinates
from hermitex.exponents.directions.relevant import Relevant, relevant_directions, rewritten
from hermitex.exponents.directions.staircase import MAX_ORDER, Climb, Evidence, Staircase
from hermitex.exponents.directions.symmetry import Symmetry, find_reflections, symmetries
from hermitex.exponents.evidence import MeanEvidence, TensorsOfMean
from hermitex.exponents.label import revealed
from hermitex.exponents.labels.conditional_tensors import ChargedDirections, TensorBlock
from hermitex.exponents.labels.families import Family, Member, family, family_of, label_maps
from hermitex.exponents.labels.hidden_variables import vanishing_orders
from hermitex.exponents.labels.moments import Moments
from hermitex.symbolic.budget import Listed, Store, checkpoint, unless_refused
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parsing import to_text
from hermitex.symbolic.subspaces import Matrix, span, stack, tidy

# of the label maps of one order at one stage, and of its entries: a whole answer should take ten
_SECONDS = 8.0


class GenerativeSearch:
    """The generative staircase of a target, with a certificate for each order of each stage.

    Called again after its time was over, it goes on from what it found. Its `leap` is the generative exponent (None:
    undetermined, or no direction).

    Parameters
    ----------
    g : the target, an expression of standard normals
    law : the channel, as `channels.channel` reads it
    variables : the standard normals over which directions are written
    facts : the decisions on the tensors of E[Y|z] so far; None if y is not a label map
    max_order : orders that are tried at a stage

    Examples
    --------
    >>> from hermitex.exponents.channels import channel
    >>> from hermitex.symbols import z1, z2
    >>> found = GenerativeSearch(z1**3 - 3*z1 + z2**2, channel(), (z1, z2))()
    >>> [(s["order"], s["directions"].tolist()) for s in found.stages]
    [(1, [[1, 0]]), (2, [[0, 1]])]
    """

    def __init__(self, g: Expr, law: NamedChannel | Channel, variables: Sequence[Symbol], facts: MeanEvidence | None = None,
                 max_order: int = MAX_ORDER) -> None:
        self.g, self.law, self.variables, self.facts, self.max_order = g, law, tuple(variables), facts, max_order
        self.name = "generative exponent" if len(self.variables) == 1 else "generative leap"
        self.climb: Climb | None = None

    def __call__(self) -> Staircase:
        """The staircase, as far as it goes."""
        if self.climb is None:
            # The statements about g hold for the part of g that the label shows: the relevant subspace is the label's.
            self.given = family(self.law.labels(self.g), self.law, self.variables)
            self.seen = relevant_directions(self.given.seen, self.variables)
            if self.seen.dimension == 0:
                return Staircase((), (), (), True)
            oracle = GenerativeOracle(_carried(self.given, self.seen, self.variables), self.seen.names, mirrors=_mirrors(self.seen),
                                      letter="lambda" if len(self.variables) == 1 else "Lambda", of_mean=self._of_mean(self.seen))
            self.climb = Climb(oracle, self.seen.dimension, self.max_order, name=self.name)
        return self._told(self.climb())

    def _of_mean(self, seen: Relevant) -> TensorsOfMean | None:
        """The proofs about E[Y|z]; if one label map gives all the others, y has two values, or behaves so."""
        if self.facts is None:
            return None
        return TensorsOfMean(self.facts, seen, two_labels=self.given.complete and len(tuple(self.given.members)) == 1)

    def so_far(self, why: str) -> Staircase:
        """The result, and why it may be incomplete."""
        if self.climb is None:
            return Staircase((), (), (f"{self.name}: undetermined, {why}",), complete=False)
        return self._told(self.climb.so_far(why))

    def _told(self, stairs: Staircase) -> Staircase:
        if self.given.text and not stairs.complete and self.given.seen[0].is_polynomial(*self.variables):
            stairs = _at_most_two(stairs)
        stairs = stairs if self.seen.basis == Matrix.eye(len(self.variables)) else stairs.carried(self.seen.outside)
        return stairs.over_own_names(self.seen.own_names, self.seen.told) if len(self.variables) > 1 else stairs


def _at_most_two(stairs: Staircase) -> Staircase:
    """A polynomial label has no order above 2: large labels come from large z, E[|P z|^2 | Y, u] > dim for them.

    So the largest order is 2 as soon as some stage has no tensor of order 1.
    """
    last = stairs.certificates[-1] if stairs.certificates else None
    if any(s["order"] == 2 for s in stairs.stages) or (last is not None and last.status == "undetermined" and last.order == 2):
        how = "the label is a polynomial, whose generative leap is at most 2, and one of its stages has no order 1"
        proof = Certificate("generative leap", 2, "nonzero", how)
        return replace(stairs, proved=2, certificates=(*stairs.certificates, proof))
    return stairs


def _mirrors(found: Relevant) -> list[list[Expr]]:
    """The normals of the sign flips and swaps of the variables, over the coordinates of a turned target."""
    if on_coordinates(found.basis):
        return []
    columns = [list(found.basis.col(i)) for i in range(found.basis.cols)]
    both = [[a + s*b for a, b in zip(x, columns[j], strict=True)] for i, x in enumerate(columns) for j in range(i) for s in (-1, 1)]
    return [[tidy(x) for x in row] for row in (*columns, *both)]


def _carried(given: Family, found: Any, variables: tuple[Symbol, ...]) -> Family:
    """The label maps over the coordinates of the relevant subspace."""
    if found.names == variables and found.basis == Matrix.eye(found.dimension):
        return given
    if given.text:  # maps of one label u(z): of the same label over the coordinates
        return Family(tuple(found.inner), Listed(lambda: label_maps(found.inner[0], found.names, given.text)), False, given.text)
    members = Listed(lambda: (Member(m.words, rewritten(m.mean, variables, found.basis, found.names)) for m in given.members))
    return Family(tuple(found.inner), tuple(members) if given.complete else members, given.complete)


class GenerativeOracle:
    """What E[He_k(P z) | Y, P_U z] charges, for one label; directions are rows over `variables`.

    A family of the one map T(y) = y, complete, makes it what E[Y He_k(P z) | P_U z] charges: `letter` "C" names it so.
    `of_mean` is what was decided of that meanwhile.
    """

    def __init__(self, given: Family, variables: Sequence[Symbol], *, letter: str = "Lambda",
                 mirrors: Sequence[Sequence[Expr]] = (), of_mean: TensorsOfMean | None = None) -> None:
        self.given, self.variables, self.letter, self.mirrors, self.of_mean = given, tuple(variables), letter, mirrors, of_mean
        self.r = len(self.variables)
        self._members = Listed(lambda: (Moments(m, self.variables) for m in given.members))
        self._symmetries, self._vanishing, self._once, self._entries = Store(), Store(), Store(), Store()

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """zero, nonzero with all the directions charged, or undetermined."""
        name = _name(f"{self.letter}_{k}", known, self.variables)
        if self.of_mean is not None and (whole := self.of_mean.whole(name, known, k)) is not None:
            return whole
        simpler = self._given(known)
        if simpler is not self:
            return simpler.tensor(known, k)
        blocks = [TensorBlock(self, known, k, (m,), (m.member.mean,), True) for m in self.members()] if self.given.complete \
            else [TensorBlock(self, known, k, None, self.given.seen, False)]
        found = ChargedDirections(known, self.r)
        for block in blocks:
            found.allow(block.space)
        if found.settled:
            return _zero(name, k, blocks)
        self._add_mean(found, name, k)
        self._look(blocks, found, name)
        if found.settled:
            return Evidence("nonzero", found.allowed, (*found.certificates, *self._stage(name, k, blocks)))
        if self.given.complete and self.letter != "C":  # whose entries were asked before
            return self._by_entries(found, known, k, name)
        return self._undetermined(found, name, k)

    def _add_mean(self, found: ChargedDirections, name: str, k: int) -> None:
        """Count the directions that E[Y|z] was shown to charge, and so the label map T(y) = y."""
        if self.of_mean is None:
            return
        rows, proofs = self.of_mean.shown(name, found.known, k)
        sizes = unless_refused(lambda: [[enclosing_interval(x) for x in row] for row in rows.tolist()]) or []
        if [found.rank.add(row) for row in sizes].count(True):
            found.certificates += proofs

    def _given(self, known: Matrix) -> GenerativeOracle:
        """For the label that is left once coordinates are known: z3 frac(z1 z2) tells frac(z1 z2) then, whatever z3 is."""
        if not self.given.text or not known.rows or any(sum(1 for x in row if x != 0) > 1 for row in known.tolist()):
            return self
        return self._once.of(known.as_immutable(), lambda: self._once_known(known))

    def _once_known(self, known: Matrix) -> GenerativeOracle:
        hidden = [v for i, v in enumerate(self.variables) if all(x == 0 for x in known.col(i))]
        u = revealed(self.given.seen[0], hidden)
        left = u.free_symbols & set(self.variables) == set(hidden) and u != self.given.seen[0]
        return GenerativeOracle(family_of(u, self.variables, _label(u)), self.variables) if left else self

    def _by_entries(self, found: ChargedDirections, known: Matrix, k: int, name: str) -> Evidence:
        """With finitely many labels the tensors are finitely many: what they charge together, entry by entry."""
        try:
            with attempt(_SECONDS):
                parts = [self._regression(m.member.mean).tensor(known, k) for m in self.members()]
        except (HermitexError, BudgetExceeded):
            checkpoint(f"the entries of {name}")
            return self._undetermined(found, name, k)
        if any(p.status == "undetermined" for p in parts):
            return self._undetermined(found, name, k)
        charged = [p.directions for p in parts if p.directions is not None]
        if not charged:
            proof = f"E[T(Y) He_a | u] = 0, |a| = {k}, for every label map: exact values"
            return Evidence("zero", None, (Certificate.zero(name, k, proof),))
        proof = "the tensors of all the label maps, entry by entry, charge these directions and no others"
        return Evidence("nonzero", span(stack(*charged)), (*found.certificates, Certificate(name, k, "nonzero", proof)))

    def _regression(self, mean: Expr) -> Regression:
        return self._entries.of(mean, lambda: Regression(mean, self.variables))

    def _look(self, blocks: Sequence[TensorBlock], found: ChargedDirections, name: str) -> None:
        """Try the label maps, for as long as it is worth while."""
        try:
            with attempt(_SECONDS):
                for block in blocks:
                    block.show(found, name)
        except BudgetExceeded:
            checkpoint(f"looking for label maps that charge {name}")

    def _stage(self, name: str, k: int, blocks: Sequence[TensorBlock]) -> list[Certificate]:
        """That all is charged; of one direction the label map says so itself."""
        why = _reasons(blocks)
        shown = "moments" if self.letter == "C" else "label maps"
        how = f"the {shown} above charge every direction that is allowed" + (f": {why}" if why else ", which is every one")
        return [Certificate(name, k, "nonzero", how)] if self.r > 1 else []

    def _undetermined(self, found: ChargedDirections, name: str, k: int) -> Evidence:
        shown, allowed = len(found.rank), found.allowed.rows
        note = (f"{name} charges {'at least ' + str(shown) if shown else 'perhaps none'} of {allowed} "
                f"direction{'s' if allowed > 1 else ''} that its symmetries allow, and no label map tried shows the others")
        certificate = Certificate(name, k, "undetermined", note)
        return Evidence("undetermined", None, (*found.certificates, certificate), note)

    # -- parts of the label, computed once -----------------------------------------------------------------------------
    def members(self) -> Iterator[Moments]:
        """The label maps, read from their source as far as they are needed."""
        return iter(self._members)

    def symmetries(self, seen: tuple[Expr, ...]) -> tuple[Symmetry, ...]:
        """Generators of the symmetries that all the expressions share."""
        def found() -> tuple[Symmetry, ...]:
            whole = seen[0] if len(seen) == 1 else sum((Dummy(f"d{i}", real=True)*e for i, e in enumerate(seen)), S.Zero)
            plain = symmetries(whole, self.variables)
            known = {s.matrix for s in plain}
            return (*plain, *(s for s in find_reflections(whole, self.variables, self.mirrors) if s.matrix not in known))

        return self._symmetries.of(seen, found)

    def vanishing_orders(self, seen: tuple[Expr, ...], i: int, k: int) -> dict[int, str]:
        """The orders at which a coordinate is hidden from the label (see `hidden`)."""
        return self._vanishing.of((seen, i, k), lambda: vanishing_orders(seen, self.variables[i], k))


# -- words -------------------------------------------------------------------------------------------------------------
def _name(letter: str, known: Matrix, variables: tuple[Symbol, ...]) -> str:
    if known.rows == 0:
        return letter
    forms = [str(sum((_short(x)*v for x, v in zip(row, variables, strict=True)), S.Zero)) for row in known.tolist()]
    return f"{letter} given {', '.join(forms)}"


def _label(u: Expr) -> str:
    return to_text(u) if u.count_ops() < 20 else "u(y)"


def _short(x: Expr) -> Expr:
    return x.evalf(4) if x.has(Expectation) or x.count_ops() > 12 else x


def _reasons(blocks: Sequence[TensorBlock]) -> str:
    why = list(dict.fromkeys(w for b in blocks for w in b.space.why))
    named = 4  # reasons that fit on a line of a certificate
    more = f" and {len(why) - named} more" if len(why) > named else ""
    return "; ".join(why[:named]) + more


def _zero(name: str, k: int, blocks: Sequence[TensorBlock]) -> Evidence:
    return Evidence("zero", None, (Certificate.zero(name, k, f"every part of it vanishes: {_reasons(blocks)}"),))
