"""One name, one meaning; one number, one spelling: what every way of giving names and numbers checks.

    {"lam": 1, "lamda": 2}  and  {lamda: 1, "lamda": 2}  give a number twice;   lam is the keyword for the symbol lamda.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hermitex import symbols
from hermitex.errors import BadInput
from hermitex.show.columns import ridge

#: what a solution, its table and an exported file say of themselves, and the keywords of `solve`
DIAGNOSTICS = ("residual", "converged", "iterations", "contraction", "error", "stability", "method", "branch", "reason",
               "quadrature_error")
KEYWORDS = ("numbers", "start", "tolerance", "blocks", "raise_on_failure", "method", "damping", "budget")


def by_name(asking: str, *given: Any, parameters: Collection[str] = ()) -> dict[str, Any]:
    """Mappings as one with texts for keys; a name that is given twice, in any spelling, is refused.

    >>> by_name("solve", {"alpha": 2}, {"lam": 0.1}, parameters=["alpha", "lamda"])
    {'alpha': 2, 'lamda': 0.1}
    >>> by_name("solve", {"lam": 1, "lamda": 2}, parameters=["lamda"])
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: solve: lam and lamda are one parameter; give it once
    """
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    parts = [part for part in given if part is not None]
    if strangers := [part for part in parts if not isinstance(part, Mapping)]:
        raise BadInput(f"{asking}: numbers are given by name, {{'alpha': 2}}, not as {str(strangers[0])[:60]!r}")
    for key, value in ((str(k), v) for part in parts for k, v in part.items()):
        name = ridge(key, parameters)
        if name in found:
            both = f"{said[name]} and {key} are one parameter" if said[name] != key else f"{key} has two values"
            raise BadInput(f"{asking}: {both}; give it once")
        found[name], said[name] = value, key
    return found


def read_start(start: Any, example: str) -> dict[str, Any]:
    """A start as {name: value}; none is empty, and what names no unknown is refused with an example.

    >>> read_start(None, "'m': 0.1"), read_start({"m": 0.2}, "'m': 0.1")
    ({}, {'m': 0.2})
    """
    if not (start is None or isinstance(start, Mapping)):
        raise BadInput(f"start is a mapping, {{{example}}}, not {str(start)[:60]}")
    return by_name("start", start)


def names_list(names: Any) -> list[Any]:
    """Names as a list; a text holds them between commas.

    >>> names_list("alpha, lamda"), names_list(["V"])
    (['alpha', 'lamda'], ['V'])
    """
    return [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else list(names)


def check_distinct(groups: Mapping[str, Iterable[Any]]) -> None:
    """Refuse a name that occurs twice in a group, in two groups, or that is a standard normal.

    groups : {what a name of this group is: its names}
    """
    role: dict[str, str] = {}
    for what, names in groups.items():
        for name in map(str, names):
            if symbols.is_normal_name(name):
                raise BadInput(f"System: {name} is a standard normal and cannot be {what}; choose another name")
            if name in DIAGNOSTICS or (what == "a parameter" and name in KEYWORDS):
                means = "what a solution says of itself" if name in DIAGNOSTICS else "a keyword of solve"
                raise BadInput(f"System: {name} is {means} and cannot be {what}; choose another name")
            if name in role:
                alike = "has two equations" if what == "an unknown" else f"is used twice, as {what}"
                clash = alike if role[name] == what else f"is both {role[name]} and {what}"
                raise BadInput(f"System: {name} {clash}; give one of them another name")
            role[name] = what
    if role.get("lam", "a parameter") != "a parameter" and role.get("lamda") == "a parameter":
        raise BadInput(f"System: lam is {role['lam']}, and the keyword of the parameter lamda; choose another name for it")
