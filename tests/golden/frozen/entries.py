"""One entry is a question with its frozen answer: a JSON object, on one line where it is short.

name       unique in its part
expected   the frozen answer
source     where the question and its answer come from
run        quick (the README's test command), slow (with -m slow), all (the slowest: with --all or -m thorough), never (not yet
           computable: `call` says how it will be asked)
met        false where today's answer is not the expected one; then `issue` names the issue that mends it and `today` is the
           answer of today
reason     why an answer was once changed for the worse
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
ANSWERS = Path(__file__).parents[1] / "answers"
RUNS = ("quick", "slow", "all", "never")
WIDTH = 132  # of a line of a data file, as of the code

Entry = dict[str, Any]


def always(entry: Entry, answer: Any) -> bool:
    """Every answer but the expected one is wrong."""
    return True


@dataclass(frozen=True)
class Part:
    """A kind of question.

    ask(entry) returns the answer of today as a JSON value. compare(entry, answer) returns None where the answer agrees with the
    expected one, else a line that names the difference. judge(entry, answer) calls a different answer better, worse, or changed: in
    its words alone.
    `thoroughly` is a slower way to ask, used with --all.
    `wrong(entry, answer)` says that a different answer is wrong, and never becomes the expected one: `always` where the expected
    answers were found independently of this package.
    """

    name: str
    about: str
    ask: Callable[[Entry], Any]
    compare: Callable[[Entry, Any], str | None]
    judge: Callable[[Entry, Any], str] = lambda entry, answer: "worse"
    wrong: Callable[[Entry, Any], bool] = lambda entry, answer: False
    thoroughly: Callable[[Entry], Any] | None = None

    @property
    def path(self) -> Path:
        return ANSWERS / f"{self.name}.json"

    def entries(self) -> list[Entry]:
        """The entries of the data file, in its order."""
        return json.loads(self.path.read_text(encoding="utf-8"))

    def write(self, entries: list[Entry]) -> None:
        """Replace the data file."""
        self.path.write_text("[\n" + ",\n".join(map(written, entries)) + "\n]\n", encoding="utf-8")


def written(entry: Entry) -> str:
    """An entry as JSON: on one line if it fits, else one line for each field, and lists of texts one text a line."""
    whole = json.dumps(entry, ensure_ascii=False)
    if len(whole) <= WIDTH or not any(isinstance(v, list | dict) for v in entry.values()):
        return whole
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_field(entry[key], 2)}" for key in entry) + "\n}"


def _field(field: Any, indent: int) -> str:
    whole, pad = json.dumps(field, ensure_ascii=False), " "*(indent + 2)
    if len(whole) + indent <= 100 or not field or not isinstance(field, list | dict):
        return whole
    if isinstance(field, list):
        if all(isinstance(x, int | float) for x in field):
            return whole
        return "[\n" + ",\n".join(pad + _field(x, indent + 2) for x in field) + "\n" + " "*indent + "]"
    inside = (f"{pad}{json.dumps(key)}: {_field(field[key], indent + 2)}" for key in field)
    return "{\n" + ",\n".join(inside) + "\n" + " "*indent + "}"


@dataclass(frozen=True)
class Outcome:
    """What an entry answers today: `kind` is same, better, changed, worse or open (not met, as expected)."""

    entry: Entry
    answer: Any
    kind: str
    said: str | None
    seconds: float


def outcome(part: Part, entry: Entry, thoroughly: bool = False) -> Outcome:
    """Ask one question and compare its answer with the frozen one. An error is an answer, too: its name."""
    start, met, kind = time.process_time(), entry.get("met", True), "worse"
    try:
        answer = ((thoroughly and part.thoroughly) or part.ask)(entry)
        said = part.compare(entry, answer)
        kind = part.judge(entry, answer) if said else "same"
    except Exception as err:
        answer, said = type(err).__name__, f"{entry['name']}: {type(err).__name__}: {(str(err).splitlines() or [''])[0]}"
    seconds = time.process_time() - start
    if not met and kind != "better":
        kind = "better" if kind == "same" else "open"
    return Outcome(entry, answer, kind, said, seconds)
