"""Leap = max_t k_t, k_t = min{k >= 1 : C_k^{U_t} != 0}: the leap of E[Y|z], by subspaces and by coordinates.

By subspaces (rotation invariant): U_0 = 0, U_{t+1} = U_t + what C_k^{U_t}(u) = E[g He_k(P z) | P_U z = u] charges. By
coordinates: K <- K + the variables outside K of every multi-index a with c_a != 0 and least weight outside K. Sources:
Abbe, Boix-Adsera, Misiakiewicz (2023); Dandi et al. (2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sympy import Add, Expr, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.directions.coordinate_leap import coordinate_leap
from hermitex.exponents.directions.polynomials import PolynomialOracle
from hermitex.exponents.directions.regression import Regression, on_coordinates
from hermitex.exponents.directions.relevant import Relevant, relevant
from hermitex.exponents.directions.staircase import MAX_ORDER, Evidence, Staircase, staircase
from hermitex.exponents.directions.symmetry import centred
from hermitex.exponents.generative_leap import GenerativeOracle
from hermitex.exponents.information import Found, information_exponent
from hermitex.exponents.labels.families import Family, Member
from hermitex.symbolic.budget import attempt, checkpoint, remaining
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.series.polynomials import poly_of
from hermitex.symbolic.subspaces import Matrix

_SOON = 1.5  # seconds


@dataclass(frozen=True)
class Leap:
    """The leap by subspaces with its staircase, the leap by coordinates, proofs and notes."""

    staircase: Staircase
    coordinate: int | None
    notes: tuple[str, ...] = field(default=())

    @property
    def order(self) -> int | None:
        """The rotation-invariant leap."""
        return self.staircase.leap

    @property
    def first(self) -> int | None:
        """The information exponent: the order of the first stage."""
        return self.staircase.first


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
    variables = tuple(variables)
    g = centred(g, variables)  # a constant charges nothing, and may hide that g is odd
    seen = relevant(g, variables)
    if seen.dimension == 0:
        return Leap(Staircase((), notes=("leap: E[Y|z] does not depend on z",)), None)
    if seen.dimension == 1:
        return _of_one(information_exponent(seen.inner, seen.names[0]), seen)
    last = _last_order(g, variables, max_order)
    oracle = PolynomialOracle.of(seen.inner, seen.names) or _LeapOracle(seen.inner, seen.names)
    steps = staircase(oracle, seen.dimension, last, name="leap").carried(seen.outside)
    turned = not on_coordinates(seen.basis)
    try:
        with deadline(remaining(0.9)):  # the staircase is kept
            coordinate, proofs, notes = coordinate_leap(g if turned else seen.inner, variables if turned else seen.names, last)
    except BudgetExceeded as err:
        coordinate, proofs, notes = None, (), (f"coordinate leap: undetermined, {err}",)
    known = {(c.quantity, c.order) for c in steps.certificates}
    more = tuple(c for c in proofs if (c.quantity, c.order) not in known) if coordinate != steps.leap else ()
    steps = Staircase(steps.stages, (*steps.certificates, *more), steps.notes, steps.complete)
    return Leap(_told(steps, seen), coordinate, (*steps.notes, *notes))


class _LeapOracle:
    """C_k^U by its entries as functions of u; where these are not decided, by invariance and single moments.

    The tensors that the symmetries which leave U alone allow are few, often one: then one moment that is not zero shows
    all that it charges. So it is tried first where there is but one and the entries are no polynomials.
    """

    def __init__(self, g: Expr, names: tuple[Symbol, ...]) -> None:
        self.entries = Regression(g, names)
        self.moments = GenerativeOracle(Family((g,), (Member("y", g),), True), names, letter="C")

    def tensor(self, known: Matrix, k: int) -> Evidence:
        """zero, nonzero with all that it charges, or undetermined."""
        plain = self.entries.whole_is_polynomial or known.has(Expectation)
        if not plain:
            found = self._soon(known, k)
            if found is not None:
                return found
        if not plain and known.rows and len(self.entries.invariant(known, k).basis) == 1:
            found = self.moments.tensor(known, k)
            if found.status != "undetermined":
                return found
        try:
            found = self.entries.tensor(known, k)
        except BudgetExceeded:
            raise
        except HermitexError as err:
            found = Evidence("undetermined", note=" ".join(str(err).split()))
        if found.status != "undetermined" or plain:
            return found
        other = self.moments.tensor(known, k)
        return found if other.status == "undetermined" else other

    def _soon(self, known: Matrix, k: int) -> Evidence | None:
        """By values if these are had at once, else by what needs no integral; None if neither decides it."""
        try:
            with attempt(_SOON, 1/4):
                found = self.entries.tensor(known, k)
        except BudgetExceeded:
            checkpoint("the entries of a tensor")
        except HermitexError:
            pass
        else:
            if found.status != "undetermined":
                return found
        return self.moments.quickly(known, k)


def _of_one(found: Found, seen: Relevant) -> Leap:
    """One relevant direction: the information exponent is every leap, whatever the coordinates."""
    stages = () if found.order is None else ({"order": found.order, "directions": seen.outside(Matrix([[1]]))},)
    steps = Staircase(stages, found.certificates, found.notes, complete=found.order is not None)
    return Leap(steps, found.order, found.notes)


def _told(steps: Staircase, seen: Relevant) -> Staircase:
    """Say over which coordinates the proofs are written, where these are not the variables."""
    if on_coordinates(seen.basis) or not steps.certificates:
        return steps
    from hermitex.symbolic.parsing import to_text

    forms = [Add(*(x*v for x, v in zip(row, seen.variables, strict=True))) for row in seen.basis.tolist()]
    words = ", ".join(f"{n} stands for {to_text(f)}" for n, f in zip(seen.names, forms, strict=True) if n != f)
    return Staircase(steps.stages, steps.certificates, (*steps.notes, f"in the certificates {words}"), steps.complete)


def _last_order(g: Expr, variables: tuple[Symbol, ...], max_order: int) -> int:
    if not g.is_polynomial(*variables):
        return max_order

    return max(int(poly_of(g, *variables).total_degree()), 1)
