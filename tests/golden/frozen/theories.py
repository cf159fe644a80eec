"""Numbers of the theories, computed independently of this package: `at` are the numbers of a point, `expected` its answers.

What is not computable yet has `run: never`: `call` says how it will be asked.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import hermitex as hx

from . import comparison
from .entries import Entry, Part, always


def number(found: Any) -> Any:
    """A JSON number, or nested lists of them."""
    return found.tolist() if hasattr(found, "tolist") else float(found)


def ask(entry: Entry) -> Any:
    """Build the object that `theory` names from `of` and `options`, solve it at `at` where it is a theory, read the keys."""
    made = attrgetter(entry["theory"])(hx)(*entry["of"], **entry.get("options", {}))
    found = made.solve(**entry["at"]) if "at" in entry else made
    read = found.__getitem__ if "at" in entry else lambda key: getattr(found, key)
    return {key: number(read(key)) for key in entry["expected"]}


def compare(entry: Entry, answer: Any) -> str | None:
    return comparison.value(entry["expected"], answer, entry["digits"], at=entry["name"])


PART = Part("theories", "reference values of the theories", ask, compare, wrong=always)
