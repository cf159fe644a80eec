"""(U, k) -> what C_k^U(u) = E[Y He_k(P z) | P_U z = u] charges: each fact is proved once and counts for every exponent.

T(y) = y is a label map, so the generative leap takes what the mean charges. With two labels every label map is a + b y:
then the tensors of the label vanish where those of the mean do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.regression import coefficient
from hermitex.exponents.directions.relevant import Relevant
from hermitex.exponents.directions.staircase import Evidence, Oracle
from hermitex.exponents.labels.moments import entry
from hermitex.symbolic.budget import Store, unless_refused
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.subspaces import Matrix, matrix, span, tidy


@dataclass(frozen=True)
class ProvedTensor:
    """The decision on one tensor, over the variables of the answer, and the basis over which its proofs are written."""

    found: Evidence
    basis: Matrix


class MeanEvidence:
    """The decisions on the tensors of E[Y|z], by the span of the rows U and the order k."""

    def __init__(self) -> None:
        self._facts: dict[tuple[Matrix, int], ProvedTensor] = {}

    def keep(self, known: Matrix, order: int, fact: ProvedTensor) -> None:
        """Store what was decided; rows and directions are written over the variables of the answer."""
        if fact.found.status != "undetermined":
            self._facts[_key(known), order] = fact

    def of(self, known: Matrix, order: int) -> ProvedTensor | None:
        """The decision on the tensor, or None."""
        return self._facts.get((_key(known), order))


def _key(rows: Matrix) -> Matrix:
    """One matrix for each subspace."""
    return (rows if rows.rows == 0 or rows.has(Expectation) else span(rows)).as_immutable()


class KeepingOracle:
    """An oracle of the mean over some coordinates, whose answers are kept."""

    def __init__(self, oracle: Oracle, seen: Relevant, facts: MeanEvidence) -> None:
        self.oracle, self.seen, self.facts = oracle, seen, facts
        self._decided = Store()  # the leaps by subspaces and by coordinates ask for the same tensors

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """As the oracle answers, once."""
        return self._decided.of((known.as_immutable(), k), lambda: self._found(known, k))

    def _found(self, known: Matrix, k: int) -> Evidence:
        found = self.oracle.tensor(known, k)
        unless_refused(lambda: self._keep(found, known, k))  # rows that are integrals may not be shortened: then nothing is kept
        return found

    def _keep(self, found: Evidence, known: Matrix, k: int) -> None:
        outside = found if found.directions is None else replace(found, directions=self.seen.outside(found.directions))
        self.facts.keep(self.seen.outside(known), k, ProvedTensor(outside, self.seen.basis))


class TensorsOfMean:
    """The kept tensors of the mean, over the coordinates of the label.

    two_labels : whether every label map is a + b y
    """

    def __init__(self, facts: MeanEvidence, seen: Relevant, *, two_labels: bool) -> None:
        self.facts, self.seen, self.two_labels = facts, seen, two_labels

    def whole(self, name: str, known: Matrix, k: int) -> Evidence | None:
        """What all label maps together charge, where they are combinations of 1 and y; None for any other label."""
        fact = self._fact(known, k) if self.two_labels else None
        if fact is None:
            return None
        if fact.found.directions is None:
            how = "; ".join(dict.fromkeys(c.how for c in fact.found.certificates))
            return Evidence("zero", certificates=(Certificate.zero(name, k, f"{_TWO}, and E[Y He_{k}] = 0: {how}"),))
        how = f"{_TWO}: it shows the directions that E[Y He_{k}] does"
        stage = [Certificate(name, k, "nonzero", how)] if known.cols > 1 else []
        return Evidence("nonzero", self._inside(fact), (*self._proofs(fact, name, k), *stage))

    def shown(self, name: str, known: Matrix, k: int) -> tuple[Matrix, tuple[Certificate, ...]]:
        """The directions that the label map T(y) = y charges, as far as they are known, with the proofs."""
        fact = self._fact(known, k)
        if fact is None or fact.found.directions is None:
            return matrix([], known.cols), ()
        return self._inside(fact), self._proofs(fact, name, k)

    def _fact(self, known: Matrix, k: int) -> ProvedTensor | None:
        return unless_refused(lambda: self.facts.of(self.seen.outside(known), k))

    def _inside(self, fact: ProvedTensor) -> Matrix:
        return matrix((fact.found.directions*self.seen.basis.T).applyfunc(tidy).tolist(), self.seen.dimension)

    def _proofs(self, fact: ProvedTensor, name: str, k: int) -> tuple[Certificate, ...]:
        """The proofs of single moments, as statements about T(y) = y; one for all where they are written over other coordinates."""
        proofs = tuple(map(of_the_label, fact.found.certificates)) if fact.basis == self.seen.basis else ()
        moments = tuple(p for p in proofs if p.quantity.startswith(_MOMENT))
        return moments or (Certificate(name, k, "nonzero", f"{_IDENTITY}as was shown of E[Y|z]"),)


# -- one statement, of E[Y|z] and of the label map T(y) = y --------------------------------------------------------------
_TWO = "with two labels every label map is a + b y"
_IDENTITY = "label map T(y) = y: "
_MOMENT = "E[T(Y) "


def of_the_mean(proof: Certificate) -> Certificate:
    """A proof about the label map T(y) = y as one about E[Y|z]: E[T(Y) He_a] is c_a."""
    name, order = proof.quantity, orders_of(proof)
    if name == entry(order)[0]:
        name, _ = coefficient(order)
    how = proof.how.removeprefix(_IDENTITY).replace(_MOMENT, "E[Y ")
    return replace(proof, quantity=name.replace(_MOMENT, "c["), how=how)


def of_the_label(proof: Certificate) -> Certificate:
    """A proof about E[Y|z] as one about the label map T(y) = y."""
    name, order = proof.quantity, orders_of(proof)
    name = entry(order)[0] if name == coefficient(order)[0] else name.replace("c[", _MOMENT)
    return replace(proof, quantity=name, how=f"{_IDENTITY}{proof.how}")


def before_the_noise(proof: Certificate) -> Certificate:
    """A proof about a label map as one about a function S(u) of the u that the noise does not hide."""
    how = proof.how.replace(_IDENTITY, "S(u) = E[Y|u]: ").replace("label map T(y) = ", "S(u) = ")
    how = how.replace("the label maps above", "the functions S(u) above")
    return replace(proof, quantity=proof.quantity.replace("T(Y)", "S(u)"), how=how)


def orders_of(proof: Certificate) -> tuple[int, ...]:
    """The multi-index of a proof; of one index (k,)."""
    return proof.order if isinstance(proof.order, tuple) else (proof.order,)
