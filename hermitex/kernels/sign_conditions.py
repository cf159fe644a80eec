"""Conditions on numbers from the assumptions of their symbols: for a > 0 the number must not be below 0."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sympy import Basic

from hermitex.symbolic.covariance import correlations
from hermitex.symbolic.gaussian import Expectation

_STANDS = "stands for a ? number (declare it real for others)"


def sign_of(condition: str) -> dict[str, int]:
    """{name: 1 or -1} of a condition that `signs` wrote, nothing of another.

    >>> sign_of("[0.0, inf] a stands for a positive number (declare it real for others)"), sign_of("[0.0, 1.0] b is a chance")
    ({'a': 1}, {})
    """
    found = re.fullmatch(rf"\[.*?\] (.*) {re.escape(_STANDS)}".replace(r"\?", "(positive|negative)"), condition)
    return {found[1]: 1 if found[2] == "positive" else -1} if found else {}


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
