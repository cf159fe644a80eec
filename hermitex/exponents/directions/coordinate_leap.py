"""Leap = min over orderings of max_i of the weight of a_i off supp(a_1), ..., supp(a_{i-1}), over all a with c_a != 0.

It depends on the basis. Greedy is optimal, since the closure at a threshold grows with it: K <- K + the variables
outside K of every multi-index of least weight outside K. Source: Abbe, Boix-Adsera, Misiakiewicz (2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Expr, S, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.fibres import up
from hermitex.exponents.directions.polynomials import PolynomialOracle
from hermitex.exponents.directions.regression import Regression, place
from hermitex.exponents.labels.mean_signs import nonzero_mean
from hermitex.exponents.labels.rising import sign_by_rise
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.hermite import He
from hermitex.symbolic.invariance import unseen
from hermitex.symbolic.partial_tensors import MultiIndex
from hermitex.symbolic.subspaces import Matrix, contains, matrix
from hermitex.symbolic.vanishing import vanishes


def coordinate_leap(g: Expr, variables: Sequence[Symbol], last: int) -> tuple[int | None, tuple[Certificate, ...], tuple[str, ...]]:
    """The coordinate leap: greedy is optimal, since the closure at a threshold grows with it."""
    polynomial = PolynomialOracle.of(g, variables)
    if polynomial is not None:
        return _of_support(polynomial)
    leap_order = 0
    known: list[int] = []
    proofs: list[Certificate] = []
    try:
        wanted = _relevant_coordinates(g, variables)
        oracle = Regression(g, variables)
    except (BudgetExceeded, HermitexError) as err:
        return None, (), (f"coordinate leap: undetermined, {' '.join(str(err).split())}",)
    while set(known) < wanted:
        try:
            order, fresh, found = _coordinate_step(oracle, sorted(known), last)
            if order is None:
                other = _by_symmetry(oracle, sorted(known), last, lambda a: _moment(oracle, a))
                order, fresh, found = other or (order, fresh, found)
        except (BudgetExceeded, HermitexError) as err:
            return None, tuple(proofs), (f"coordinate leap: undetermined, {' '.join(str(err).split())}",)
        if order is None:
            return None, tuple(proofs), (f"coordinate leap: undetermined, {found}",)
        leap_order = max(leap_order, order)
        known += fresh
        proofs += found
    return leap_order, tuple(proofs), ()


def _of_support(p: PolynomialOracle) -> tuple[int, tuple[Certificate, ...], tuple[str, ...]]:
    """The greedy ordering of the finitely many a with c_a != 0."""
    known: set[int] = set()
    proofs: list[Certificate] = []
    largest = 0
    while left := [(sum(n for i, n in enumerate(a) if i not in known), a) for a in p.support()
                   if any(n for i, n in enumerate(a) if i not in known)]:
        k = min(left)[0]
        largest = max(largest, k)
        for a in sorted((a for weight, a in left if weight == k), key=lambda a: (sum(a), [-n for n in a])):
            if fresh := {i for i, n in enumerate(a) if n} - known:
                known |= fresh
                proofs.append(Certificate(f"c_({','.join(map(str, a))})", a, "nonzero", "exact value", p.coefficient(a)))
    return largest, tuple(proofs), ()


def _relevant_coordinates(g: Expr, variables: Sequence[Symbol]) -> set[int]:
    null, r = unseen(g, variables), len(variables)
    return {i for i in range(r) if not contains(null, Matrix(1, r, [int(i == j) for j in range(r)]))}


def _rise(oracle: Regression, a: MultiIndex) -> Certificate | None:
    """c_a != 0 by monotone dependence."""
    found = sign_by_rise(oracle.g, oracle.variables, a)
    return None if found is None else Certificate(f"c_({','.join(map(str, a))})", a, "nonzero", found[1])


def _moment(oracle: Regression, a: MultiIndex) -> Certificate | None:
    """c_a != 0 by any way to enclose one number, or to see its sign."""
    named = (f"c_({','.join(map(str, a))})", a, "one moment")
    found = nonzero_mean(oracle.g*He(a, oracle.variables), oracle.variables, named)
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
        more = sorted(left, reverse=True) + [up(a, i) for a in sorted(left, reverse=True) for i in known]
        seen = {a: found for a in more if (found := show(a)) is not None}
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
        kept, _ = oracle.without_zeros(given, k, dict.fromkeys((b for b, _ in open_), S.One), "")
        for b, how in open_:
            if b in kept and not {places[i] for i, n in enumerate(b) if n} <= set(fresh):
                return None, [], how
        if fresh:
            return k, fresh, proofs
    return None, [], f"all coefficients of orders 1 to {last} are zero"
