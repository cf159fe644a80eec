"""E g(z) to 15 digits: `text` is g, `expected` its average, null where the average does not exist."""

from __future__ import annotations

from typing import Any

import hermitex as hx

from . import comparison
from .entries import Entry, Part, always

DIGITS = 15
BUDGET = 60  # seconds of CPU: the default of the command line


def ask(entry: Entry) -> Any:
    """The average as `evalf(15)` prints it, null where it is refused as divergent."""
    try:
        with hx.budget(BUDGET):
            return str(hx.E(entry["text"]).evalf(DIGITS))
    except hx.errors.Divergent:
        return None


def compare(entry: Entry, answer: Any) -> str | None:
    expected = entry["expected"]
    if expected is None or answer is None:
        agree = expected == answer
    else:
        zero = float(expected) == 0 == float(answer)
        agree = zero or comparison.same_number(expected, answer, DIGITS)
    return None if agree else f"E({entry['text']}): {expected} was expected, {answer} came"


PART = Part("averages", "Gaussian averages to 15 digits", ask, compare, wrong=always)
