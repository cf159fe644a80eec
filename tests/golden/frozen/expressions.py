"""Values of short pieces of Python, as a user types them: `code` is one expression of the public names."""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import Any

import numpy as np
from sympy import Symbol

import hermitex as hx

from . import comparison
from .entries import Entry, Part, always

BUDGET = 60  # seconds of CPU: the default of the command line


@cache
def names() -> dict[str, Any]:
    """SymPy's names, then hermitex's where both have one, and the usual letters."""
    space: dict[str, Any] = {}
    exec("from sympy import *", space)
    space |= {name: getattr(hx, name) for name in ("E", "He", "System", "relu", "gelu", "sigmoid", "Phi")}
    space |= {letter: getattr(hx.symbols, letter) for letter in ("z", "z1", "z2", "z3", "kappa", "rho", "q", "c", "m")}
    space |= {letter: Symbol(letter, positive=True) for letter in ("a", "s", "u")}
    return space | {letter: Symbol(letter, real=True) for letter in ("mu", "w")} | {"hx": hx, "np": np}


def ask(entry: Entry) -> Any:
    """The value as JSON: numbers as numbers, everything else as a text."""
    with hx.budget(BUDGET):
        value = eval(entry["code"], dict(names()))  # data of this folder, no user's text
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif getattr(value, "is_number", False):
        value = float(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | list) else str(value)


def compare(entry: Entry, answer: Any) -> str | None:
    return comparison.value(entry["expected"], answer, entry.get("digits", 10), entry.get("noise", 1e-12), entry["name"])


PART = Part("expressions", "values of short pieces of Python", ask, compare, wrong=always)
