"""U_{t+1} = U_t + span{fibres of C_k^{U_t}(u)}, k = min{k >= 1 : C_k^{U_t} != 0}: the staircase of directions.

An oracle decides which tensor C is: E[g He_k(P z) | u] of the regression function for the leap, the
conditional mean E[He_k(P z) | Y, u] for the generative leap. The leap is the largest order on the way to the relevant
subspace. Sources: Dandi et al. (2023) for steps of order one; Abbe, Boix-Adsera, Misiakiewicz (2023) for the leap;
Damian, Lee, Bruna (2025) for the generative one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.subspaces import Matrix, complement, matrix, span, stack
from hermitex.symbolic.vanishing import vanishes

# the highest order that is searched; a tensor of order 12 in four variables has 455 entries
MAX_ORDER = 12


@dataclass(frozen=True)
class Evidence:
    """What an oracle knows of C_k^U: zero, not zero together with all that it charges, or undetermined.

    Attributes
    ----------
    status : "zero" (for almost every u), "nonzero" or "undetermined"
    directions : rows that span everything the tensor charges in the complement of U, exact and complete
    certificates : the proofs
    note : what could not be decided
    """

    status: Literal["zero", "nonzero", "undetermined"]
    directions: Matrix | None = None
    certificates: tuple[Certificate, ...] = ()
    note: str = ""


class Oracle(Protocol):
    """Answers for one target: what the tensor of order k charges once the span of the rows `known` is known."""

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """C_k^U for U the span of `known` (rows over the variables, possibly none)."""
        ...


@dataclass(frozen=True)
class Staircase:
    """The stages [{order, directions}] in order, the proofs, and whether the relevant subspace was reached."""

    stages: tuple[dict[str, Any], ...]
    certificates: tuple[Certificate, ...] = ()
    notes: tuple[str, ...] = field(default=())
    complete: bool = True
    proved: int | None = None  # the largest order, where a theorem gives it though the stages are not all known

    @property
    def leap(self) -> int | None:
        """The largest order; None if the staircase was not followed to its end, or has no step."""
        return max((s["order"] for s in self.stages), default=None) if self.complete else self.proved

    @property
    def first(self) -> int | None:
        """The order of the first stage."""
        return self.stages[0]["order"] if self.stages else None

    def carried(self, outside: Any) -> Staircase:
        """The same staircase with its directions carried over to other variables."""
        return Staircase(tuple({"order": s["order"], "directions": outside(s["directions"])} for s in self.stages),
                         self.certificates, self.notes, self.complete, self.proved)

    def over_own_names(self, names: Mapping[str, str], told: str) -> Staircase:
        """The proofs with names of their own for coordinates that are not variables, and the note that tells these."""
        if not self.certificates or not names:
            return self
        proofs = tuple(c.renamed(names) for c in self.certificates)
        return replace(self, certificates=proofs, notes=(*self.notes, f"in the certificates {told}"))


class Climb:
    """The staircase step by step: called again after its time was over, it goes on from the last order that was decided.

    Parameters
    ----------
    oracle : see `Oracle`; every direction of R^dimension is taken to be relevant
    max_order : orders that are tried at each stage before it is given up
    name : how notes begin

    Examples
    --------
    >>> class Squares:
    ...     def tensor(self, known, k):
    ...         if k == 1:
    ...             return Evidence("zero")
    ...         return Evidence("nonzero", Matrix([[1, 1], [0, 1]]))
    >>> Climb(Squares(), 2)().stages
    ({'order': 2, 'directions': Matrix([
    [1, 0],
    [0, 1]])},)
    """

    def __init__(self, oracle: Oracle, dimension: int, max_order: int = MAX_ORDER, *, name: str = "staircase") -> None:
        self.oracle, self.dimension, self.max_order, self.name = oracle, dimension, max_order, name
        self.known = matrix([], dimension)
        self.stages: list[dict[str, Any]] = []
        self.certificates: list[Certificate] = []
        self.order = 1

    def __call__(self) -> Staircase:
        """The staircase, as far as it goes."""
        while self.known.rows < self.dimension:
            if self.order > self.max_order:
                where = "" if self.known.rows == 0 else f" once {self.known.rows} directions are known"
                return self.so_far(f"all tensors of orders 1 to {self.max_order} are zero{where}")
            checkpoint(f"order {self.order} of the staircase")
            try:
                found = self.oracle.tensor(self.known, self.order)
                if found.status == "zero":
                    self.certificates += found.certificates
                    self.order += 1
                    continue
                if found.status != "nonzero" or found.directions is None or not found.directions.rows:
                    return self.so_far(found.note or "a tensor that is not zero showed no direction", found.certificates)
                new = self.beyond_known(found.directions)
            except BudgetExceeded:
                raise
            except HermitexError as err:
                return self.so_far(" ".join(str(err).split()))
            self.certificates += found.certificates
            self.stages.append({"order": self.order, "directions": new})
            self.known, self.order = span(stack(self.known, new)), 1
        return Staircase(tuple(self.stages), tuple(self.certificates))

    def beyond_known(self, directions: Matrix) -> Matrix:
        """The directions that a stage adds to the known ones."""
        return _beyond(self.known, directions)

    def so_far(self, why: str, more: Sequence[Certificate] = ()) -> Staircase:
        """The result, and why it may be incomplete."""
        return Staircase(tuple(self.stages), (*self.certificates, *more), (f"{self.name}: undetermined, {why}",), complete=False)


class CoordinateClimb(Climb):
    """The same by coordinates: a stage adds every coordinate in which one of its directions has a part.

    A coordinate has such a part if and only if a multi-index that holds it has a coefficient that is not zero. Greedy is optimal,
    since the closure at a threshold grows with it. Source: Abbe, Boix-Adsera, Misiakiewicz (2023).
    """

    def beyond_known(self, directions: Matrix) -> Matrix:
        """The coordinates of the directions, each proved to be held.

        Raises
        ------
        HermitexError : an entry of the directions is an integral that may be zero.
        """
        added = []
        for i in range(self.dimension):
            entries = [x for x in directions.col(i) if x != 0]
            found = [vanishes(x, ()).status for x in entries if x.has(Expectation)]
            if len(found) < len(entries) or "nonzero" in found:
                added.append([int(i == j) for j in range(self.dimension)])
            elif "undetermined" in found:
                raise HermitexError("an entry of a direction is an integral that may be zero")
        return matrix(added, self.dimension)


def _beyond(known: Matrix, directions: Matrix) -> Matrix:
    """A short basis of what is new, orthogonal to what is known."""
    if known.rows == 0:
        return span(directions)
    whole = span(stack(known, directions))
    if whole.rows == known.rows:
        raise HermitexError("a tensor that is not zero shows nothing new")
    if whole.rows == whole.cols:
        return complement(known)
    return complement(stack(known, complement(whole)))
