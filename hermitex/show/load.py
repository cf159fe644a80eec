"""hx.load("curve.csv"): the columns of a file that a result wrote, or of any table of numbers."""

from __future__ import annotations

import csv
import os
from typing import Any

from hermitex.errors import BadInput
from hermitex.show.files import check_source

_WORDS = ("reason", "method", "branch")


def columns_of(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """{name: values} of a CSV file: numbers, True and False, None for an empty cell of a column of numbers
    and in a column that is empty throughout, else text.

    Raises
    ------
    BadInput : the file does not exist, or is not a table; one line.
    """
    check_source(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, ValueError, TypeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"load: cannot read {str(path)[:80]!r}: {reason.lower()}") from None
    if not rows or len(set(rows[0])) < len(rows[0]):
        raise BadInput(f"load: {str(path)[:80]!r} is not a table with a name above each column")
    if bad := next((k for k, row in enumerate(rows) if len(row) != len(rows[0])), None):
        raise BadInput(f"load: row {bad} of {str(path)[:80]!r} has {len(rows[bad])} cells and the header {len(rows[0])}")
    return {name: _column(name, [row[j] for row in rows[1:]]) for j, name in enumerate(rows[0])}


def _column(name: str, cells: list[str]) -> list[Any]:
    if cells and all(c in ("True", "False") for c in cells):
        return [c == "True" for c in cells]
    if not any(cells):  # what is missing everywhere is a number, but for the columns that hold words
        return cells if name in _WORDS else [None]*len(cells)
    for kind in (int, float):
        try:
            return [None if c == "" else kind(c) for c in cells]
        except ValueError:
            continue
    return [c[1:] if c[:1] == "'" and c[1:2] in "=+-@\t\r" else c for c in cells]
