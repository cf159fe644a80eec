"""The verdict of each line of each derivation page: proved, agrees to so many digits, tested, or refuted as it should be."""

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
    """(page, rule, status, digits) of every line."""
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


def judge(entry: Entry, answer: Any) -> str:
    """Changed: only the names of rules are others. Better: no line became weaker, and one that agreed is proved."""
    if "error" in answer:
        return "worse"
    before, after = ([(status, digits) for _, _, status, digits in lines(verdicts)] for verdicts in (entry["expected"], answer))
    if len(before) != len(after) or any(not kept(*pair) for pair in zip(before, after, strict=True)):
        return "worse"
    return "changed" if before == after else "better"


def kept(before: tuple[str, int], after: tuple[str, int]) -> bool:
    """A verdict is as strong as it was: the same with as many digits, or proved where it agreed."""
    return (before[0] == after[0] and before[1] <= after[1]) or (before[0], after[0]) == ("agrees", "proved")


PART = Part("pages", "the verdict of each line of each derivation page", ask, compare, judge)
