"""E[f(z)] != 0 for a constant that no single rule gives: by independent factors, or box by box.

E[sum_t c_t prod_j f_tj] = sum_t c_t prod_j E[f_tj] where the factors f_tj of a term share no variable; each is enclosed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Dummy, Expr, Mul, Pow, S, Symbol, default_sort_key, expand

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate, Status
from hermitex.exponents.directions.intervals import ZERO, Interval, interval_of, scale_interval
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.formula_size import EXPANDED, operations
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.terms import connected


def nonzero_mean(f: Expr, variables: Sequence[Symbol], named: tuple[str, Any, str]) -> Certificate | None:
    """A certificate for E[f]: its exact value or an enclosure; None if nothing was found in the time for it.

    Parameters: `named` the quantity, its order, and what it is the expectation of, in words.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2
    >>> nonzero_mean(tanh(z1*z2)*z1*z2, (z1, z2), ("c", (1, 1), "T(y) = y")).status
    'nonzero'
    """
    variables = tuple(v for v in variables if v in f.free_symbols)
    ways = (by_factors, _exactly, by_boxes)
    found = None
    for way in ways:
        found = way(f, variables, named) or found
        if found is not None and found.status != "undetermined":
            break
    return found


def _exactly(f: Expr, variables: tuple[Symbol, ...], named: tuple[str, Any, str]) -> Certificate | None:
    """By the rules of the Gaussian engine, which may leave expectations over fewer variables."""
    quantity, order, prefix = named
    value = _within_time(lambda: E(f, *variables).doit())
    if value is None or any(len(n.bound) > 1 for n in value.atoms(Expectation)):
        return None
    return _within_time(lambda: Certificate.of(value, quantity, order, quick=True, prefix=prefix))


def _within_time(work: Any) -> Any:
    """The result of some work within the time of one expectation, or None."""
    seconds = 1.0  # of one expectation that no rule gives: another label map may be quicker; eight fill a stage's time
    try:
        with attempt(seconds):
            return work()
    except BudgetExceeded:
        checkpoint("trying a label map")
    except SystemError:  # an interrupted integrand, as reported by the library that called it
        checkpoint("trying a label map")
    except (HermitexError, ArithmeticError, NotImplementedError, RecursionError, ValueError):
        pass  # no rule for such an integrand
    return None


# -- independent factors -----------------------------------------------------------------------------------------------
def by_factors(f: Expr, variables: tuple[Symbol, ...], named: tuple[str, Any, str]) -> Certificate | None:
    """E[f] as a sum of products of smaller expectations, or None if f does not come apart."""
    if len(variables) < 2 or operations(f) > EXPANDED:
        return None
    most_terms, most_parts = 2000, 200  # a term is a product of known numbers, a part an expectation; chosen by trial
    terms = Add.make_args(_multiplied_out(f))
    if len(terms) > most_terms:
        return None
    apart = [[Mul(*factors) for factors in connected(Mul.make_args(t), variables)] for t in terms]
    if len({g for groups in apart for g in groups}) > most_parts:
        return None
    if len(apart) == 1 and any(set(variables) <= g.free_symbols for g in apart[0]):
        return None
    quantity, order, prefix = named
    total, exact = ZERO, list[Expr | None]()
    proofs: dict[Expr, Certificate | None] = {}
    for groups in apart:
        size, value = _product(groups, variables, proofs)
        if size is None:
            return None
        total = total.plus(size)
        exact.append(value)
    if None not in exact:
        return Certificate.of(Add(*exact), quantity, order, prefix=prefix)
    if not total.excludes_zero:
        return None
    return Certificate(quantity, order, "nonzero", f"{prefix}: independent factors, each enclosed", None,
                       (total.low, total.high))


def _multiplied_out(f: Expr) -> Expr:
    """The expansion of f that leaves denominators alone: those of independent variables stay factors."""
    below = [p for p in f.atoms(Pow) if p.exp.is_negative and p.base.is_Add]
    held = {p: Dummy() for p in sorted(below, key=default_sort_key)}
    return expand(f.xreplace(held)).xreplace({d: p for p, d in held.items()})


def _product(groups: list[Expr], variables: tuple[Symbol, ...],
             proofs: dict[Expr, Certificate | None]) -> tuple[Interval | None, Expr | None]:
    """(an interval, the exact value if known) of the product of the expectations of independent parts; these join `proofs`."""
    size, value = Interval.exactly(1), S.One
    found = []
    for g in groups:
        mine = [v for v in variables if v in g.free_symbols]
        if not mine:
            size, value = scale_interval(size, g), value*g
            continue
        if g not in proofs:
            proofs[g] = _within_time(lambda mine=mine, g=g: _mean(E(g, *mine)))
        proof = proofs[g]
        if proof is not None and proof.status == "zero":
            return ZERO, S.Zero
        found.append(proof)
    for proof in found:
        one = interval_of(proof) if proof is not None else None
        if proof is None or one is None:
            return None, None
        size = size.times(one)
        value = value*proof.value if value is not None and proof.value is not None else None
    return size, value


@kept(2000)
def _mean(node: Expr) -> Certificate:
    return Certificate.of(node, "E", 0, quick=True)


# -- box by box --------------------------------------------------------------------------------------------------------
def by_boxes(f: Expr, variables: tuple[Symbol, ...], named: tuple[str, Any, str]) -> Certificate | None:
    """E[f] != 0 for a sum of polynomials times bounded functions, by the ranges of these over boxes."""
    from hermitex.exponents.labels.bounded_moments import enclose_average  # which needs NumPy

    found = _within_time(lambda: enclose_average(f, variables)) if operations(f) <= EXPANDED else None
    if found is None:
        return None
    quantity, order, prefix = named
    status: Status = "nonzero" if found.excludes_zero else "undetermined"
    return Certificate(quantity, order, status, f"{prefix}: enclosed box by box", None, tuple(found))
