"""Leap = max_t k_t, k_t = min{k >= 1 : C_k^{U_t} != 0}: the leap of E[Y|z], by subspaces and by coordinates.

By subspaces (rotation invariant): U_0 = 0, U_{t+1} = U_t + what C_k^{U_t}(u) = E[g He_k(P z) | P_U z = u] charges. By
coordinates: K <- K + the variables outside K of every multi-index a with c_a != 0 and least weight outside K. Sources:
Abbe, Boix-Adsera, Misiakiewicz (2023); Dandi et al. (2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Expr, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.clock import AnswerPart, take_turns
from hermitex.exponents.directions.regression import Regression, coefficient, on_coordinates
from hermitex.exponents.directions.relevant import Relevant, relevant_directions
from hermitex.exponents.directions.staircase import MAX_ORDER, Climb, CoordinateClimb, Evidence, Staircase
from hermitex.exponents.directions.symmetry import centre_target
from hermitex.exponents.evidence import KeepingOracle, MeanEvidence, of_the_mean, orders_of
from hermitex.exponents.generative_leap import GenerativeOracle
from hermitex.exponents.labels.families import Family, Member
from hermitex.exponents.labels.monotone_labels import sign_by_rise
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.series.polynomials import poly_of
from hermitex.symbolic.subspaces import Matrix, matrix


@dataclass(frozen=True)
class Leap:
    """The leap by subspaces with its staircase, the leap by coordinates, proofs and notes."""

    staircase: Staircase
    coordinate: int | None
    notes: tuple[str, ...] = field(default=())
    lowest: int | None = None  # the least order that is not zero, where its directions are not all known

    @property
    def order(self) -> int | None:
        """The rotation-invariant leap."""
        return self.staircase.leap

    @property
    def first(self) -> int | None:
        """The information exponent: the order of the first stage."""
        return self.lowest if self.staircase.first is None else self.staircase.first


def leap(g: Expr, variables: Sequence[Symbol], *, max_order: int = MAX_ORDER) -> Leap:
    """The leaps of a regression function in several variables.

    Parameters
    ----------
    g : E[Y|z], square integrable and not constant
    variables : the standard normals over which directions are written; g may not depend on some
    max_order : orders that are tried at a stage (a polynomial is followed to its degree)

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2
    >>> found = leap(sign(z1) + sign(z2), (z1, z2))
    >>> found.coordinate, found.order, [(s["order"], s["directions"]) for s in found.staircase.stages]
    (1, 2, [(1, Matrix([[1, 1]])), (2, Matrix([[1, -1]]))])
    """
    search = LeapSearch(g, variables, max_order)
    take_turns(*search.parts)
    return search.found()


class LeapSearch:
    """The two parts of the search, which take turns, and the answer put together from what they found."""

    def __init__(self, g: Expr, variables: Sequence[Symbol], max_order: int = MAX_ORDER) -> None:
        self.g, self.variables, self.max_order = g, tuple(variables), max_order
        self.facts = MeanEvidence()
        self.seen: Relevant | None = None
        self.climb: Climb | None = None
        self.walk: CoordinateClimb | None = None
        self.steps = AnswerPart("information exponent and leap", self._steps, Staircase((), complete=False),
                          so_far=self._steps_so_far, decided=lambda s: s.complete)
        self.by_coordinates = AnswerPart("coordinate leap", self._coordinates, Staircase((), complete=False),
                                         so_far=self._coordinates_so_far, decided=lambda s: s.complete)
        self.parts: tuple[AnswerPart[Any], ...] = (self.steps, self.by_coordinates)

    def _prepared(self) -> Relevant:
        """What the target depends on, and the two searches over it."""
        highest = 40  # orders that are tried of one direction, where a tensor has one entry
        if self.seen is None:
            g = centre_target(self.g, self.variables)  # a constant charges nothing, and may hide that g is odd
            seen = relevant_directions(g, self.variables)
            if seen.dimension:
                last = _last_order(g, self.variables, self.max_order if seen.dimension > 1 else highest)
                name = "leap" if seen.dimension > 1 else "information exponent"
                oracle = KeepingOracle(_LeapOracle(seen.inner, seen.names), seen, self.facts)
                self.climb = Climb(oracle, seen.dimension, last, name=name)
            if seen.dimension > 1:
                turned = not on_coordinates(seen.basis)
                held = [v for i, v in enumerate(self.variables) if any(seen.basis.col(i))] if turned else seen.names
                own = _LeapOracle(g, tuple(held)) if turned else oracle
                self.walk = CoordinateClimb(own, len(held), last, name="coordinate leap")
            self.seen = seen
        return self.seen

    def _steps(self) -> Staircase:
        seen = self._prepared()
        if self.climb is None:
            return Staircase((), notes=("leap: E[Y|z] does not depend on z",))
        return self.climb().carried(seen.outside)

    def _steps_so_far(self, why: str) -> Staircase:
        if self.climb is None or self.seen is None:
            return Staircase((), (), (f"information exponent: undetermined, {why}",), complete=False)
        return self.climb.so_far(why).carried(self.seen.outside)

    def _coordinates(self) -> Staircase:
        self._prepared()
        return Staircase(()) if self.walk is None else self.walk()

    def _coordinates_so_far(self, why: str) -> Staircase:
        return Staircase((), complete=False) if self.walk is None else self.walk.so_far(why)

    def found(self) -> Leap:
        """The answer, from what the parts have."""
        steps, coordinate = self.steps.value, self.by_coordinates.value
        if self.seen is not None and self.seen.dimension == 1:  # its exponent is every leap, whatever the coordinates
            coordinate = replace(steps, certificates=(), notes=())
        known = {(c.quantity, c.order) for c in steps.certificates}
        fresh = tuple(c for c in coordinate.certificates if (c.quantity, c.order) not in known)
        lowest = self._lowest((*steps.certificates, *fresh))
        more = fresh if coordinate.leap != steps.leap or (lowest is not None and steps.leap is None) else ()
        if self.seen is not None and self.climb is not None:
            names = ", ".join(map(str, self.variables))
            forms = f"{self.seen.told}; those of the coordinate leap are over {names}" if more else self.seen.told
            steps = steps.over_own_names(self.seen.own_names, forms)
        steps = replace(steps, certificates=(*steps.certificates, *more))
        told = tuple(n for p in self.parts for n in p.notes)
        return Leap(steps, coordinate.leap, (*steps.notes, *coordinate.notes, *told), lowest)

    def _lowest(self, proofs: Sequence[Certificate]) -> int | None:
        """k where the tensors of orders 1 to k - 1 are zero and one coefficient of order k is not.

        Which directions C_k charges may be open then: of c_(1,0) != 0 the sign alone is known.
        """
        if self.climb is None or self.climb.stages:
            return None
        found = any(_is_coefficient(p, self.climb.order) for p in proofs)
        return self.climb.order if found else None


def _is_coefficient(proof: Certificate, k: int) -> bool:
    """Does it prove c_a != 0 for a multi-index |a| = k?"""
    order = orders_of(proof)
    return proof.status == "nonzero" and sum(order) == k and proof.quantity == coefficient(order)[0]


class _LeapOracle:
    """C_k^U by its entries as functions of u; where these are not decided in time, by invariance and single moments.

    The tensors that the symmetries which leave U alone allow are few, often one: then one moment that is not zero shows
    all that it charges.
    """

    def __init__(self, g: Expr, names: tuple[Symbol, ...]) -> None:
        self.entries = Regression(g, names)
        self.moments = GenerativeOracle(Family((g,), (Member("y", g),), True), names, letter="C")

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """zero, nonzero with all that it charges, or undetermined."""
        plain = self.entries.whole_is_polynomial or known.has(Expectation)
        soon = 0.6  # seconds of the entries as functions, before single moments; chosen by trial
        long = 1.5  # seconds of the entries as functions, after single moments; chosen by trial
        of_one = 4.0  # seconds of a coefficient of one variable: it is a moment itself, and its number is wanted
        for seconds in (soon, long) if len(self.entries.variables) > 1 else (of_one,):
            try:
                with attempt(None if plain else seconds):
                    found = self.entries.tensor(known, k)
            except BudgetExceeded as err:
                checkpoint("the entries of a tensor")
                found = Evidence("undetermined", note=str(err))
            except HermitexError as err:
                found = Evidence("undetermined", note=" ".join(str(err).split()))
            if found.status != "undetermined" or plain:
                return found
            other = self.moments.tensor(known, k)
            other = replace(other, certificates=tuple(map(of_the_mean, other.certificates)))
            if other.status != "undetermined":
                return other
            found = replace(found, certificates=other.certificates)
        return found if known.rows else replace(found, certificates=(*found.certificates, *self._risen(k)))

    def _risen(self, k: int) -> list[Certificate]:
        """Coefficients whose sign is known, and not their size: they show the order, where the directions stay open."""
        g, names = self.entries.g, self.entries.variables
        signs = {a: sign_by_rise(g, names, a) for a in self.entries.invariant(matrix([], len(names)), k).free}
        return [Certificate(*coefficient(a), "nonzero", found[1]) for a, found in signs.items() if found is not None]


def _last_order(g: Expr, variables: tuple[Symbol, ...], max_order: int) -> int:
    if not g.is_polynomial(*variables):
        return max_order

    return max(int(poly_of(g, *variables).total_degree()), 1)
