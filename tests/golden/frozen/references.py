"""The tables of tests/reference: how many numbers each holds, and their digest.

The tests beside them hold the package to these numbers. Here a number that changes in a table is noticed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .entries import ROOT, Entry, Part

TESTS = ROOT / "tests"


def numbers(table: Any) -> list[str]:
    """All numbers of a table in their order, those that are written as texts included."""
    if isinstance(table, dict):
        return [number for value in table.values() for number in numbers(value)]
    if isinstance(table, list):
        return [number for value in table for number in numbers(value)]
    if isinstance(table, str):
        try:
            return [repr(float(table))]
        except ValueError:
            return []
    return [] if table is None else [repr(float(table))]


def is_read(name: str) -> bool:
    """A test reads the table: its name, without the ending, stands in a file of tests outside of this folder."""
    stem, here = Path(name).stem, Path(__file__).parents[1]
    return any(stem in path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py") if here not in path.parents)


def ask(entry: Entry) -> Any:
    found = numbers(json.loads((TESTS / "reference" / entry["name"]).read_text(encoding="utf-8")))
    digest = hashlib.sha256(" ".join(found).encode()).hexdigest()[:16]
    return {"numbers": len(found), "digest": digest, "read": is_read(entry["name"])}


def compare(entry: Entry, answer: Any) -> str | None:
    return None if answer == entry["expected"] else f"{entry['name']}: {entry['expected']} was expected, {answer} came"


PART = Part("references", "the tables of tests/reference", ask, compare)
