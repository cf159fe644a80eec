"""Numbers of the theories, computed independently of this package: `at` are the numbers of a point, `expected` its answers.

What is not computable yet has `run: never`: `call` says how it will be asked.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

import hermitex as hx

from . import comparison
from .entries import Entry, Part, always


def number(found: Any) -> Any:
    """A JSON number, or nested lists of them."""
    return np.asarray(found, dtype=float).tolist()


def ask(entry: Entry) -> Any:
    """Build the object that `theory` names from `of` and `options`; read the keys of its answer, or the answer if it is a number.

    With `at` the answer is that of `solve`, or of the method that `method` names; `then` is a method of that answer.
    """
    found = attrgetter(entry["theory"])(hx)(*entry["of"], **entry.get("options", {}))
    asked = {entry.get("method", "solve"): entry["at"]} if "at" in entry else {}
    for method, numbers in {**asked, **entry.get("then", {})}.items():
        found = getattr(found, method)(**numbers)
    if not isinstance(entry["expected"], dict):
        return number(found)
    named = hasattr(found, "__getitem__") and not isinstance(found, tuple)
    return {key: number(found[key] if named else getattr(found, key)) for key in entry["expected"]}


def compare(entry: Entry, answer: Any) -> str | None:
    return comparison.value(entry["expected"], answer, entry["digits"], at=entry["name"])


PART = Part("theories", "reference values of the theories", ask, compare, wrong=always)
