"""E[f(z)] != 0 for a constant that no single rule gives: by the Gaussian engine and an enclosure, or box by box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Expr, Symbol

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.certificate import Certificate, Status
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import attempt
from hermitex.symbolic.formula_size import EXPANDED, operations
from hermitex.symbolic.gaussian import E, Expectation


def nonzero_mean(f: Expr, variables: Sequence[Symbol], named: tuple[str, Any, str]) -> Certificate | None:
    """A certificate for E[f]: its exact value, an enclosure, or its sign; None if nothing was found in the time for it.

    Parameters: `named` the quantity, its order, and what it is the expectation of, in words.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2
    >>> nonzero_mean(tanh(z1*z2)*z1*z2, (z1, z2), ("c", (1, 1), "T(y) = y")).status
    'nonzero'
    """
    variables = tuple(v for v in variables if v in f.free_symbols)
    ways = (_exactly, by_boxes)
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
