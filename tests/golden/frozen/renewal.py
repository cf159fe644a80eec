"""The data files follow the answers of today: better ones are written, worse ones need a reason, wrong ones an issue."""

from __future__ import annotations

import json
from difflib import unified_diff

from .entries import Entry, Outcome, Part


def difference(expected: object, answer: object) -> str:
    """Two answers as a unified difference of their lines."""
    before, after = (json.dumps(x, indent=1, ensure_ascii=False).splitlines() for x in (expected, answer))
    return "\n".join(f"    {line}" for line in list(unified_diff(before, after, lineterm="", n=1))[2:])


def renewed(part: Part, found: Outcome, reason: str | None, issue: int | None) -> Entry | None:
    """The entry with its answer of today, or None where it may not be written.

    A worse answer needs a reason. A wrong answer never becomes the expected one: with an issue the entry is marked as not met.
    """
    entry = {key: field for key, field in found.entry.items() if key not in ("met", "issue", "today")}
    if found.said is None:
        return entry
    if found.said is None:
        return entry
    if found.kind in ("better", "changed"):
        return {**entry, "expected": found.answer}
    if issue and part.wrong(found.entry, found.answer):
        return {**found.entry, "met": False, "issue": issue, "today": found.answer}
    if reason and not part.wrong(found.entry, found.answer):
        return {**entry, "expected": found.answer, "reason": reason}
    return None


def renew(part: Part, outcomes: list[Outcome], reason: str | None, issue: int | None) -> int:
    """Write the changed answers of a part; returns how many changes were refused."""
    entries, refused = part.entries(), 0
    places = {entry["name"]: k for k, entry in enumerate(entries)}
    for found in outcomes:
        if found.kind in ("better", "changed", "worse"):
            entry = renewed(part, found, reason, issue)
            refused += entry is None
            if entry is not None:
                entries[places[entry["name"]]] = entry
    part.write(entries)
    return refused
