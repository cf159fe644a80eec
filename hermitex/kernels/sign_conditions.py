"""Conditions on numbers from the assumptions of their symbols: for a > 0 the number must not be below 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Basic

from hermitex.symbolic.covariance import correlations
from hermitex.symbolic.gaussian import Expectation

_STANDS = "stands for a ? number (declare it real for others)"


def signs(parameters: Iterable[Any], formulas: Iterable[Basic] = ()) -> dict[str, Any]:
    """The conditions on numbers from the assumptions of their symbols, {condition: symbol}; the limit 0 is allowed.

    The formulas rest on it: a law in a positive letter asks no more, and sqrt(a**2) has become a. A correlation in them may have
    any sign, whatever its letter.
    """
    found, free = {}, set[Any]()
    for e in formulas:
        free |= correlations(e, None)
        free = free.union(*(correlations(n.body, None if n.independent else n.covariance) for n in e.atoms(Expectation)))
    for p in (p for p in parameters if p not in free):
        if p.is_extended_nonnegative:
            found[f"[0.0, inf] {p.name} {_STANDS.replace('?', 'positive')}"] = p
        elif p.is_extended_nonpositive:
            found[f"[-inf, 0.0] {p.name} {_STANDS.replace('?', 'negative')}"] = p
    return found
