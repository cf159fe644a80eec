"""Leap = min over orderings of max_i of the weight of a_i off supp(a_1), ..., supp(a_{i-1}), over all a with c_a != 0.

It depends on the basis. Greedy is optimal, since the closure at a threshold grows with it: K <- K + the variables
outside K of every multi-index of least weight outside K. Source: Abbe, Boix-Adsera, Misiakiewicz (2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial, prod
from typing import Any

from sympy import Expr, S, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.invariant_tensors import plus
from hermitex.exponents.directions.regression import Regression, coefficient, place
from hermitex.exponents.labels.mean_signs import nonzero_mean
from hermitex.exponents.labels.monotone_labels import sign_by_rise
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.invariance import unseen
from hermitex.symbolic.partial_tensors import MultiIndex
from hermitex.symbolic.series.coefficient_fields import hermite_form, in_field
from hermitex.symbolic.series.polynomials import He
from hermitex.symbolic.subspaces import Matrix, contains, matrix
from hermitex.symbolic.vanishing import vanishes


@dataclass(frozen=True)
class CoordinateLeap:
    """The order (None: not decided), its proofs, and what is to be said."""

    order: int | None
    certificates: tuple[Certificate, ...] = ()
    notes: tuple[str, ...] = ()


class CoordinateClimb:
    """The coordinate leap step by step: greedy is optimal, since the closure at a threshold grows with it.

    Called again after its time was over, it goes on from the variables it has.
    """

    def __init__(self, g: Expr, variables: Sequence[Symbol], last: int) -> None:
        self.g, self.variables, self.last = g, variables, last
        self.known: list[int] = []
        self.proofs: list[Certificate] = []
        self.largest = 0
        self.oracle: Regression | None = None

    def __call__(self) -> CoordinateLeap:
        p = in_field(self.g, tuple(self.variables))
        if p is not None:
            return _of_support(hermite_form(p))
        try:
            self.oracle = self.oracle or Regression(self.g, self.variables)
            wanted = _relevant_coordinates(self.g, self.variables)
            while set(self.known) < wanted:
                order, fresh, found = self._step(self.oracle)
                if order is None:
                    return self.so_far(found)
                self.largest = max(self.largest, order)
                self.known += fresh
                self.proofs += found
        except BudgetExceeded:
            raise
        except HermitexError as err:
            return self.so_far(" ".join(str(err).split()))
        return CoordinateLeap(self.largest, tuple(self.proofs))

    def _step(self, oracle: Regression) -> tuple:
        """By the entries as functions, or where these take long or do not decide it by single moments."""
        known = sorted(self.known)
        found: tuple = (None, [], "its entries take too long")
        seconds = 1.5  # of one step by the entries as functions, before single moments are tried; chosen by trial
        try:
            with attempt(seconds):
                found = _coordinate_step(oracle, known, self.last)
        except BudgetExceeded:
            checkpoint("a step of the coordinate leap")
        if found[0] is None:
            return _by_symmetry(oracle, known, self.last, lambda a: _moment(oracle, a)) or found
        return found

    def so_far(self, why: str) -> CoordinateLeap:
        """The result, and why it may be incomplete."""
        return CoordinateLeap(None, tuple(self.proofs), (f"coordinate leap: undetermined, {why}",))


def _of_support(P: Any) -> CoordinateLeap:
    """The greedy ordering of the finitely many a with c_a != 0; P writes He_a as y^a."""
    known: set[int] = set()
    proofs: list[Certificate] = []
    largest = 0
    while left := [(sum(n for i, n in enumerate(a) if i not in known), a) for a in P
                   if any(n for i, n in enumerate(a) if i not in known)]:
        k = min(left)[0]
        largest = max(largest, k)
        for a in sorted((a for weight, a in left if weight == k), key=lambda a: (sum(a), [-n for n in a])):
            if fresh := {i for i, n in enumerate(a) if n} - known:
                known |= fresh
                value = P.ring.domain.to_sympy(P[a])*prod(map(factorial, a))
                proofs.append(Certificate(*coefficient(a), "nonzero", "exact value", value))
    return CoordinateLeap(largest, tuple(proofs))


def _relevant_coordinates(g: Expr, variables: Sequence[Symbol]) -> set[int]:
    null, r = unseen(g, variables), len(variables)
    return {i for i in range(r) if not contains(null, Matrix(1, r, [int(i == j) for j in range(r)]))}


def _rise(oracle: Regression, a: MultiIndex) -> Certificate | None:
    """c_a != 0 by monotone dependence."""
    found = sign_by_rise(oracle.g, oracle.variables, a)
    return None if found is None else Certificate(*coefficient(tuple(a)), "nonzero", found[1])


def _moment(oracle: Regression, a: MultiIndex) -> Certificate | None:
    """c_a != 0 by any way to enclose one number, or to see its sign."""
    found = nonzero_mean(oracle.g*He(a, oracle.variables), oracle.variables, (*coefficient(a), "one moment"))
    return found if found is not None and found.status == "nonzero" else None


def _by_symmetry(oracle: Regression, known: list[int], last: int, show: Callable[[MultiIndex], Certificate | None]) -> tuple | None:
    """The step where all the variables that symmetry leaves to order k are shown to be charged, if they are."""
    r = len(oracle.variables)
    rows = matrix([[S(int(i == j)) for j in range(r)] for i in known], r)
    if oracle.g.is_polynomial(*oracle.variables):
        return None
    for k in range(1, last + 1):
        left = {a for t in oracle.invariant(rows, k).basis for a in t}
        if not left:
            continue
        # c_a charges the same variables with a slot more in what is known.
        more = sorted(left, reverse=True) + [plus(a, i) for a in sorted(left, reverse=True) for i in known]
        seen: dict[MultiIndex, Certificate] = {}
        for a in more:
            told = {i for b in seen for i, n in enumerate(b) if n}
            if any(n and i not in told for i, n in enumerate(a)) and (found := show(a)) is not None:
                seen[a] = found
        fresh = sorted({i for a in seen for i, n in enumerate(a) if n and i not in known})
        if not fresh or any(n and i not in fresh for a in left for i, n in enumerate(a)):
            return None
        return k, fresh, list(seen.values())
    return None


def _coordinate_step(oracle: Regression, known: list[int], last: int) -> tuple:
    """(k, the variables charged at the least order k, proofs), or (None, [], why)."""
    r = len(oracle.variables)
    quick = _by_symmetry(oracle, known, last, lambda a: _rise(oracle, a))
    if quick is not None:
        return quick
    given = oracle.given(matrix([[S(int(i == j)) for j in range(r)] for i in known], r))
    places = [place(row) for row in given.frame.tolist()]
    for k in range(1, last + 1):
        checkpoint(f"coordinate leap, order {k}")
        fresh: list[int] = []
        proofs: list[Certificate] = []
        open_: list[tuple[MultiIndex, str]] = []
        left = {b: h for b, e in given.entries(k).items() if (h := oracle.reduced(e.value, given)) != 0}
        for b, h in sorted(left.items(), key=lambda item: (item[1].has(Expectation), item[1].count_ops())):
            inside = [places[i] for i, n in enumerate(b) if n]
            if set(inside) <= set(fresh):
                continue
            verdict = vanishes(h, given.u)
            if verdict.status == "nonzero":
                fresh += [i for i in inside if i not in fresh]
                proofs.append(oracle.certificate(given, b, h, verdict))
            elif verdict.status == "undetermined":
                open_.append((b, verdict.how))
        for b, how in open_:
            if not {places[i] for i, n in enumerate(b) if n} <= set(fresh):
                return None, [], how
        if fresh:
            return k, fresh, proofs
    return None, [], f"all coefficients of orders 1 to {last} are zero"
