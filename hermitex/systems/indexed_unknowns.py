"""{D[k]: f(D[k], k)}, k = Idx("k", 3)   ->   {D0: f(D0, 0), D1: f(D1, 1), D2: f(D2, 2)}: unknowns with an index, one by one.

    Sum(D[j], j)   ->   D0 + D1 + D2
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from sympy import Basic, Idx, Indexed, Integer, Sum, Symbol

from hermitex.errors import BadInput

Parts = tuple[Mapping[Any, Any], ...]


def write_indexed(*parts: Mapping[Any, Any]) -> Parts:
    """Equations (and where names, and observables) with those of indexed ones as those of their entries.

    Entries of other arrays with a number for an index become parameters, eta[0] -> eta0.

    Raises
    ------
    BadInput : an index of an unknown has no range of numbers or is negative; a letter has the name of an entry.

    Examples
    --------
    >>> from sympy import IndexedBase
    >>> D, k, j = IndexedBase("D"), Idx("k", 2), Idx("j", 2)
    >>> write_indexed({D[k]: k - Sum(D[j], j)})
    ({D0: -D0 - D1, D1: -D0 - D1 + 1},)
    """
    bases = {key.base for part in parts for key in part if isinstance(key, Indexed)}
    if not bases:
        return parts
    letters = {s.name for part in parts for pair in part.items() for e in pair if isinstance(e, Basic) for s in e.free_symbols
               if isinstance(s, Symbol)} | {key for part in parts for key in part if isinstance(key, str)}
    entries: dict[str, Indexed] = {}
    found = tuple({_named(_at(key, rule), bases, entries): _named(_at(value, rule), bases, entries)
                   for key, value in part.items() for rule in _places(key)} for part in parts)
    if below := next((x for x in entries.values() if any(i.is_negative for i in x.indices)), None):
        raise BadInput(f"System: {below} has a negative index; count from 0 or 1")
    if twice := entries.keys() & letters:
        raise BadInput(f"System: {min(twice)} is a letter and would name {entries[min(twice)]}; give the letter another name")
    return found


def _places(key: Any) -> list[dict[Any, int]]:
    """The values of the indices of an unknown."""
    indices = [i for i in key.indices if not i.is_Integer] if isinstance(key, Indexed) else []
    return [dict(zip(indices, at, strict=True)) for at in product(*(_numbers(i, key) for i in indices))]


def _numbers(index: Any, key: Indexed) -> range:
    ends: list[Any] = [index.lower, index.upper] if isinstance(index, Idx) else [None, None]
    if not all(isinstance(e, Integer) for e in ends):
        raise BadInput(f"System: the index of {key} needs a range of numbers, Idx('{index}', 8) or Idx('{index}', (1, 8))")
    return range(int(ends[0]), int(ends[1]) + 1)


def _at(e: Any, rule: Mapping[Any, int]) -> Any:
    """The formula at values of the indices, sums over other indices as they are."""
    return e.subs(rule) if isinstance(e, Basic) and rule else e


def _named(e: Any, bases: set[Any], entries: dict[str, Indexed]) -> Any:
    """The formula with sums over entries of unknowns written out and a symbol for each entry, which `entries` collects."""
    if not isinstance(e, Basic):
        return e
    e = e.replace(lambda s: isinstance(s, Sum) and any(x.base in bases for x in s.atoms(Indexed)), lambda s: s.doit(deep=False))
    names = {x: _name(x) for x in e.atoms(Indexed) if all(i.is_Integer for i in x.indices)}
    entries |= {name: x for x, name in names.items()}
    return e.xreplace({x: Symbol(name, real=True) for x, name in names.items()})


def _name(entry: Indexed) -> str:
    """D3 of D[3], D_1_2 of D[1, 2]."""
    base, places = entry.base.name, [str(i) for i in entry.indices]
    return base + places[0] if len(places) == 1 else "_".join([base, *places])


__all__ = ["write_indexed"]
