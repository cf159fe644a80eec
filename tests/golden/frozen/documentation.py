"""The examples of README and docs. Their expected output is in the page, and tests/test_readme.py runs them.

Frozen here are the questions: an example that disappears from a page, or changes its output, is noticed.
"""

from __future__ import annotations

import doctest
import json
import re
from typing import Any

from . import comparison
from .entries import ROOT, Entry, Part


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def ask(entry: Entry) -> Any:
    """Each example of a page: its source, and the lines of its output."""
    examples = doctest.DocTestParser().get_examples("\n".join(blocks(entry["name"], "python")))
    sessions = [part for block in blocks(entry["name"], "console") for part in re.split(r"^(?=\$ )", block, flags=re.M) if part]
    python = {example.source.rstrip(): example.want.rstrip().splitlines() for example in examples if example.want}
    return python | {session.splitlines()[0]: session.rstrip().splitlines()[1:] for session in sessions}


def compare(entry: Entry, answer: Any) -> str | None:
    """The frozen examples are still there, with the same output to the digits that are printed."""
    for source, expected in entry["expected"].items():
        if source not in answer:
            return f"{entry['name']}: no example {source!r}"
        if said := comparison.text(expected, answer[source]):
            return f"{entry['name']}: {source}: {said}"
    return None


def judge(entry: Entry, answer: Any) -> str:
    """Changed: the numbers are the same, the words are not."""
    return comparison.judge(json.dumps(entry["expected"]), json.dumps(answer))


PART = Part("documentation", "the examples of README and docs", ask, compare, judge)
