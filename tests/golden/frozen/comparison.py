"""|found - expected| <= one unit in the last digit that is claimed; words are compared as words.

The functions return None where two answers agree, else one line that names the first difference.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from math import isclose
from typing import Any

# A number in a text: not a part of a name (z1, He3) nor of a version (1.2.3).
NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+(?:[eE][-+]?\d+)?)(?![\w.]*\d)")
# Sizes of errors: they need not be the same, but there where they were.
ERRORS = frozenset({"error", "residual", "stability", "reached_error", "lines"})
FEW = 7  # digits: what shows at least so many is a rounded number, whose last digit may turn
EXACT = Context(prec=80, Emax=10**9, Emin=-10**9)  # more digits than any question asks for, and tails as 1e-8689


def significant(written: str) -> int:
    """The number of significant digits that a decimal number shows: 3 for 0.0120."""
    mantissa = re.split("[eE]", written)[0].lstrip("+-")
    return max(1, len(mantissa.replace(".", "").lstrip("0")))


def unit(value: Decimal, digits: int) -> Decimal:
    """One unit in the last of so many significant digits of a value; 10^-digits of zero."""
    return EXACT.scaleb(Decimal(1), value.adjusted() - digits + 1 if value else -digits)


def same_number(expected: str, found: str, digits: int) -> bool:
    """Two decimal numbers agree to `digits` digits, or to those that the expected one shows where these are fewer.

    A number that shows few digits is a round one (0.5) or is not worth more: it must be the same.
    """
    mine, theirs, shown = EXACT.create_decimal(found), EXACT.create_decimal(expected), significant(expected)
    allowed = unit(theirs, min(digits, shown) if shown >= FEW else digits)
    return EXACT.abs(EXACT.subtract(mine, theirs)) <= allowed


def is_whole(written: str) -> bool:
    """A number without a point and without an exponent is exact."""
    return written.isdigit()


def line(expected: str, found: str, digits: int) -> bool:
    """Two lines agree: the words are the same up to spaces, whole numbers are the same, decimal ones agree to their digits."""
    if words(expected) != words(found):
        return False
    for theirs, mine in zip(NUMBER.findall(expected), NUMBER.findall(found), strict=True):
        exact = is_whole(theirs) and is_whole(mine)
        if not (theirs == mine if exact else same_number(theirs, mine, digits)):
            return False
    return True


def words(line: str) -> list[str]:
    """A line without its numbers."""
    return NUMBER.sub("#", line).split()


def judge(expected: str, found: str, digits: int = 10) -> str:
    """Two texts differ: changed, if their numbers are the same and only the words differ, else worse."""
    before, after = (" ".join(NUMBER.findall(text)) for text in (expected, found))
    return "changed" if line(before, after, digits) else "worse"


def text(expected: list[str], found: list[str], digits: int = 10) -> str | None:
    """Compare two texts, given as lists of lines."""
    for k, (theirs, mine) in enumerate(zip(expected, found, strict=False), 1):
        if not line(theirs, mine, digits):
            return f"line {k}: {theirs!r} was expected, {mine!r} came"
    if len(expected) != len(found):
        return f"{len(expected)} lines were expected, {len(found)} came"
    return None


def value(expected: Any, found: Any, digits: int = 10, noise: float = 1e-12, at: str = "answer") -> str | None:
    """Compare two JSON values. Numbers below `noise` count as zero; keys that are new in `found` are allowed."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if gone := [key for key in expected if key not in found]:
            return f"{at} has no {gone[0]!r}"
        pairs = [(f"{at}.{key}", expected[key], found[key]) for key in expected if key not in ERRORS]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{at}: {len(expected)} entries were expected, {len(found)} came"
        pairs = [(f"{at}[{k}]", a, b) for k, (a, b) in enumerate(zip(expected, found, strict=True))]
    else:
        return None if scalar(expected, found, digits, noise) else f"{at}: {expected!r} was expected, {found!r} came"
    return next((said for place, a, b in pairs if (said := value(a, b, digits, noise, place))), None)


def scalar(expected: Any, found: Any, digits: int, noise: float) -> bool:
    """Two JSON numbers, strings, booleans or nulls agree."""
    if isinstance(expected, str) and isinstance(found, str):
        return line(expected, found, digits)
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in (expected, found)):
        return type(expected) is type(found) and expected == found
    if all(isinstance(x, int) for x in (expected, found)):
        return expected == found
    return max(abs(expected), abs(found)) <= noise or isclose(expected, found, rel_tol=10.0**-digits)
