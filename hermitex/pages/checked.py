"""The verdict of a check and of a page: proved, to N digits at k points, tested, refuted; also quoted, assumed, defined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from math import floor, log10
from typing import Any

from hermitex.show.display import counted, words_table

PROVED, AGREES, TESTED, FAILS, OPEN, REFUTED = "proved", "agrees", "tested", "fails", "undetermined", "refuted"
KINDS = (PROVED, AGREES, TESTED, "quoted", "assumed", "defined", REFUTED)   # of a page's lines, as they are counted
_HOLDS = (PROVED, AGREES, TESTED, REFUTED)
_SAID = {AGREES: "to N digits at k points"}
_BAD = {FAILS: "does not hold", OPEN: "not established"}


def digits_of(gap: float) -> int:
    """The digits to which two numbers agree that are so far apart, relative to one of them; 15 at most.

    >>> digits_of(3e-9), digits_of(0.0)
    (8, 15)
    """
    return min(15, floor(-log10(max(gap, 1e-16))))


@dataclass(frozen=True)
class Checked:
    """The verdict of one check: true if it holds (a misprint holds if it was refuted).

    status : "proved", "agrees" (to `digits` digits at `points` points), "tested" (a function said so), "fails", "undetermined",
    or "refuted" for a misprint.
    """

    rule: str
    status: str
    digits: int | None = None
    how: str = ""
    example: str = ""
    points: int | None = None

    @property
    def badge(self) -> str:
        """The verdict as it is printed next to the line."""
        if self.status not in (AGREES, TESTED):
            return _BAD.get(self.status, self.status)
        said = "tested" if self.status == TESTED else ""
        said += f" to {self.digits} digits" if self.digits is not None else ""
        said += f" at {counted(self.points, 'point')}" if self.points is not None else ""
        return said.strip() or "agrees"

    def __bool__(self) -> bool:
        return self.status in _HOLDS

    def to_dict(self) -> dict[str, Any]:
        """rule, status, digits, and the reason or the counter-example."""
        return {"rule": self.rule, "status": self.status, "digits": self.digits, "points": self.points, "how": self.how,
                "counter_example": self.example or None}

    def _repr_html_(self) -> str:
        return escape(repr(self), quote=False)

    def __repr__(self) -> str:
        digits = f" to {self.digits} digits" if self.digits is not None and self.status in (AGREES, TESTED) else ""
        why = f": {self.example}" if self.example and self.status in (FAILS, REFUTED) else f" ({self.how})" if self.how else ""
        return f"{self.rule}: {self.status}{digits}{why}"


@dataclass(frozen=True)
class ResultCheck:
    """Every check of a result, in order; true if all hold and nothing is refused."""

    name: str
    steps: tuple[Checked, ...]
    given: Mapping[str, int] = field(default_factory=dict)   # how many lines are quoted, assumed, defined
    unbound: tuple[str, ...] = ()                             # of lines that are printed and not checked
    refused: tuple[str, ...] = ()                             # lines among these that make the page fail
    unnamed: tuple[str, ...] = ()                             # letters of formulas that nothing on the page introduces

    @property
    def kinds(self) -> dict[str, int]:
        """How many lines are proved, agree, are tested, quoted, assumed, defined, refuted; without the lines that do not hold."""
        return {k: self.given.get(k, 0) + sum(s.status == k for s in self.steps) for k in KINDS}

    def tally(self) -> str:
        """The same in words, and how many do not hold."""
        bad = {said: sum(s.status == k for s in self.steps) for k, said in _BAD.items()}
        said = ", ".join(f"{n} {_SAID.get(k, k)}" for k, n in {**self.kinds, **bad}.items() if n)
        said += f"; printed but not checked: {', '.join(self.unbound)}" if self.unbound else ""
        return said + (f"; letters without a notation: {', '.join(self.unnamed)}" if self.unnamed else "")

    @property
    def passed(self) -> bool:
        """True if there are checks, none failed or stayed open, and words hold no formula that nothing checks."""
        return bool(self.steps) and all(self.steps) and not self.refused

    def __bool__(self) -> bool:
        return self.passed

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``hermitex check --json``."""
        return {"name": self.name, "passed": self.passed, "kinds": self.kinds, "not_checked": list(self.unbound),
                "unnamed": list(self.unnamed), "steps": [s.to_dict() for s in self.steps]}

    def _repr_html_(self) -> str:
        """Every check with what came of it; a counter-example where one fails."""
        rows = [(s.rule, repr(s).removeprefix(f"{s.rule}: ")) for s in self.steps]
        return words_table(rows, title=repr(self).splitlines()[0])

    def __repr__(self) -> str:
        head = f"{self.passed}: {self.name}, {counted(len(self.steps), 'check')}"
        return "\n".join([head, *(f"  {s!r}" for s in self.steps if not s), *(f"  refused: {said}" for said in self.refused)])
