"""A domain whose ends are parameters: q in (lo, hi) is solved for by its place between them, q_part.

    0 < q < rho    ->   q = rho q_part,        0 < q_part < 1
    q > tau        ->   q = tau + q_part,      q_part > 0

q is an observable from then on, so that a solution, a file and a derivative have it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sympy import Basic, Eq, Expr, S, Symbol

from hermitex.errors import NO_NUMBER, BadInput
from hermitex.systems.domain import ends_of

Ends = tuple[Expr, Expr]


def moving_ends(domain: Any, known: Mapping[str, Any]) -> dict[str, Ends]:
    """{name: (lo, hi)} of the domains that have a letter at an end; anything that is not a domain is left to its reader.

    >>> moving_ends({"q": "0 < q < 2*tau", "V": (0, 1)}, {})
    {'q': (0, 2*tau)}
    """
    found = {}
    for key, value in domain.items() if isinstance(domain, Mapping) else ():
        try:
            lo, hi = (_end(v, known) for v in ends_of(str(key), value))
        except NO_NUMBER:
            continue
        if lo.free_symbols | hi.free_symbols:
            found[str(key)] = lo, hi
    return found


def _end(value: Any, known: Mapping[str, Any]) -> Expr:
    from hermitex.symbolic.parsing import expression, parse

    if value in (float("inf"), float("-inf")):
        return S.Infinity if value > 0 else S.NegativeInfinity
    if not isinstance(value, str):
        return expression(value)
    letters = {w: Symbol(w, real=True) for w in _words(value) if w not in known}
    return parse(value, symbols={**letters, **known})


def _words(text: str) -> list[str]:
    return [w for w in re.findall(r"[A-Za-z_]\w*(?!\w*\()", text) if w != "pi"]


def write_by_place(equations: Mapping[Symbol, Any], where: Mapping[Symbol, Any], observables: Mapping[Symbol, Any],
                   ends: Mapping[str, Ends]) -> tuple[dict[Symbol, Any], dict[Symbol, Any], dict[Symbol, Any], dict[str, Any]]:
    """Equations, where names and observables in the places of unknowns between their ends, and the domains of these places.

    Raises
    ------
    BadInput : an end moves with an unknown or a where name.

    >>> q, rho = Symbol("q"), Symbol("rho")
    >>> write_by_place({q: rho**2*q}, {}, {}, {"q": (S.Zero, rho)})
    ({q_part: q_part*rho**2}, {}, {q: q_part*rho}, {'q_part': (0.0, 1.0)})
    """
    found: dict[Symbol, Any] = {}
    values, domain = dict[Basic, Basic](), dict[str, Any]()
    for u, right in equations.items():
        if u.name not in ends:
            found[u] = right
            continue
        lo, hi = ends[u.name]
        taken = {s.name for s in (*equations, *where)}
        if moving := sorted(s.name for s in lo.free_symbols | hi.free_symbols if s.name in taken):
            raise BadInput(f"System: the domain of {u} ends where {moving[0]} is; an end is a number or a parameter")
        place = Symbol(f"{u.name}_part", positive=True)
        begin, width = (hi, S.NegativeOne) if lo.is_infinite else (lo, S.One if hi.is_infinite else hi - lo)
        values[u] = begin + width*place
        found[place] = right if isinstance(right, Eq) else (right - begin)/width
        domain[place.name] = 0.0, float("inf") if width.is_number else 1.0
    equations, where, observables = ({k: e.xreplace(values) for k, e in part.items()} for part in (found, where, observables))
    return equations, where, {**values, **observables}, domain


def start_by_place(start: Mapping[str, Any], observables: Mapping[Symbol, Any], unknowns: Any, numbers: Mapping[str, Any]
                   ) -> dict[str, Any]:
    """A start in which an unknown between moving ends, {"q": 0.9}, is given by its place, at these numbers."""
    from hermitex.kernels.arrays import lambdify
    from hermitex.solvers.sweep_grid import real_array

    places, found = {s.name: s for s in unknowns}, dict[str, Any]()
    for name, value in start.items():
        place = places.get(f"{name}_part")
        q = next((definition for s, definition in observables.items() if s.name == name), None)
        if place is None or q is None or name in places:
            found[name] = value
            continue
        letters = sorted(q.free_symbols - {place}, key=str)
        if missing := [s.name for s in letters if s.name not in numbers]:
            raise BadInput(f"start: where {name} = {value} is between its ends depends on {missing[0]}, which has no value here; "
                           f"give {place} = 0.5 for the middle")
        x = Symbol(f"{name}_", real=True)
        at = lambdify([x, *letters], (x - q.xreplace({place: S.Zero}))/q.diff(place), ["numpy"])
        found[place.name] = at(real_array(value), *(real_array(numbers[s.name]) for s in letters))
    return found


__all__ = ["moving_ends", "start_by_place", "write_by_place"]
