"""The verdict of each line of each derivation page: proved, digits, tested, quoted, assumed, defined."""

from __future__ import annotations

import json
from typing import Any

from . import commands
from .entries import ROOT, Entry, Part


def ask(entry: Entry) -> Any:
    """[[rule, status, digits], ...] for every line of the pages of a file, as `hermitex check --json` reports them."""
    exit_code, out, err = commands.run(["check", str(ROOT / "derivations" / entry["name"]), "--json", "--workers", "1"])
    try:
        derivations = json.loads(out)["derivations"]
    except ValueError:
        return {"exit": exit_code, "error": err.splitlines()[-1:]}
    return {page["name"]: [[step["rule"], step["status"], step["digits"]] for step in page["steps"]] for page in derivations}


def lines(verdicts: Any) -> list[tuple[str, str, str, int]]:
    return [(page, rule, status, digits or 0) for page, steps in verdicts.items() for rule, status, digits in steps]


def compare(entry: Entry, answer: Any) -> str | None:
    """The same lines with the same kinds of verdicts; digits may be more."""
    if "error" in answer:
        return f"{entry['name']}: exit {answer['exit']}, {answer['error']}"
    expected, found = lines(entry["expected"]), lines(answer)
    for (page, rule, status, digits), (_, other, now, reached) in zip(expected, found, strict=False):
        if (rule, status) != (other, now) or reached < digits:
            return f"{page}: {rule}: {status} {digits or ''} was expected, {other}: {now} {reached or ''} came"
    return None if len(expected) == len(found) else f"{len(expected)} lines were expected, {len(found)} came"


PART = Part("pages", "the verdict of each line of each derivation page", ask, compare)
