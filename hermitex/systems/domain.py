"""Where an unknown lives and where it begins: open intervals and starts, read and checked when a system is made.

    domain={q: (0, 1), V: (0, oo)}     start={q: 0.9}     "0 < q < 1"
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, UnknownName, brief
from hermitex.solvers.interval import Interval, interval_text, is_outside

_INFINITE = {"oo": np.inf, "inf": np.inf, "-oo": -np.inf, "-inf": -np.inf}
_TWO = re.compile(r"(.+?)<(.+?)<(.+)\Z", re.S)
_ONE = re.compile(r"([^<>]+)([<>])([^<>]+)\Z", re.S)


def domains(asking: str, given: Any, unknowns: Collection[str]) -> dict[str, Interval]:
    """{name: (lo, hi)} from intervals by unknown; each may be a text, "0 < q < 1".

    Examples
    --------
    >>> domains("System", {"q": (0, 1), "V": "V > 0"}, ["q", "V"])
    {'q': (0.0, 1.0), 'V': (0.0, inf)}
    """
    found = {}
    for key, value in _mapping(asking, "domain", given, "{q: (0, 1)}").items():
        name = str(key)
        if name not in unknowns:
            raise UnknownName(name, unknowns, f"unknown in domain of the {asking}")
        try:
            lo, hi = ends_of(name, value)
            found[name] = _bound(lo), _bound(hi)
        except NO_NUMBER:
            raise BadInput(f"{asking}: the domain of {name} is an open interval, {{{name}: (0, 1)}} or \"0 < {name} < 1\", "
                           f"not {brief(value)}") from None
        if not found[name][0] < found[name][1]:
            raise BadInput(f"{asking}: the domain of {name}, ({found[name][0]:g}, {found[name][1]:g}), is empty")
    return {n: d for n, d in found.items() if np.isfinite(d).any()}


def ends_of(name: str, given: Any) -> tuple[Any, Any]:
    """(lo, hi) of "0 < q < 1", "q > 0", "0 < q", as texts, or of a pair; an infinite end is a number.

    >>> ends_of("q", "0 < q < rho"), ends_of("V", "V > 0"), ends_of("q", (0, 1))
    (('0', 'rho'), ('0', inf), (0, 1))
    """
    lo, hi = _sides(name, given) if isinstance(given, str) else given
    return _INFINITE.get(lo, lo), _INFINITE.get(hi, hi)


def _sides(name: str, text: str) -> tuple[str, str]:
    if two := _TWO.match(text):
        lo, middle, hi = (part.strip() for part in two.groups())
        if middle == name:
            return lo, hi
    elif one := _ONE.match(text):
        left, sign, right = (part.strip() for part in one.groups())
        if name in (left, right):
            value = right if left == name else left
            return ("-inf", value) if (sign == "<") == (left == name) else (value, "inf")
    raise ValueError(text)


def _bound(text: Any) -> float:
    from hermitex.symbolic.parsing import parse

    if not isinstance(text, str):
        return float(text)
    value = parse(text)
    if value.free_symbols:
        raise ValueError(text)
    return float(value)


def starts(asking: str, given: Any, domain: Mapping[str, Interval], unknowns: Mapping[str, Any]) -> dict[str, float]:
    """{name: number} from starts by unknown; a number inside the domain, and positive where the unknown is.

    unknowns : {name: whether it is positive}
    """
    found = {}
    for key, value in _mapping(asking, "start", given, "{q: 0.9}").items():
        name = str(key)
        if name not in unknowns:
            raise UnknownName(name, unknowns, f"unknown in start of the {asking}")
        try:
            number = found[name] = float(value)
        except NO_NUMBER:
            raise BadInput(f"{asking}: the start of {name} is one number, not {brief(value)}") from None
        if not np.isfinite(number):
            raise BadInput(f"{asking}: the start of {name} is {number}; every start is finite")
        if name in domain and is_outside(number, domain[name]):
            raise BadInput(f"{asking}: start {name} = {number:g} is outside its domain {interval_text(name, domain[name])}")
        if unknowns[name] and number < 0:
            raise BadInput(f"{asking}: start {name} = {number:g} is infeasible: {name} is positive")
    return found


def _mapping(asking: str, what: str, given: Any, example: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise BadInput(f"{asking}: {what} is given by unknown, {what}={example}, not as {brief(given)}")
    return given
