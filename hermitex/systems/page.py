"""What a page is made of, and what came of the check of each part: equalities, inequalities, systems that agree, facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from sympy import Expr, Symbol

from hermitex.show.display import counted, latex, words_table
from hermitex.symbolic.derivation import WORDS, check
from hermitex.symbolic.precise import evaluate_with_error
from hermitex.symbolic.zero import decide
from hermitex.systems.agreement import agreement
from hermitex.systems.scope import written_out
from hermitex.systems.system import System

PROVED, AGREES, FAILS, OPEN, REFUTED = "proved", "agrees", "fails", "undetermined", "refuted"
_FEWEST = 6  # digits in which numbers of a test must agree
_HOLDS = (PROVED, AGREES, REFUTED)


@dataclass(frozen=True)
class Checked:
    """What came of one check: true if it holds (a misprint holds if it was refuted).

    status : "proved", "agrees", "fails", "undetermined", or "refuted" of a misprint; digits: those that agree, or None.
    """

    rule: str
    status: str
    digits: int | None = None
    how: str = ""
    example: str = ""

    def __bool__(self) -> bool:
        return self.status in _HOLDS

    def to_dict(self) -> dict[str, Any]:
        """rule, status, digits, and the reason or the counter-example."""
        return {"rule": self.rule, "status": self.status, "digits": self.digits, "how": self.how,
                "counter_example": self.example or None}

    def _repr_html_(self) -> str:
        return escape(repr(self), quote=False)

    def __repr__(self) -> str:
        digits = f" to {self.digits} digits" if self.digits is not None and self.status == AGREES else ""
        why = f": {self.example}" if self.example and self.status in (FAILS, REFUTED) else f" ({self.how})" if self.how else ""
        return f"{self.rule}: {self.status}{digits}{why}"


@dataclass(frozen=True)
class ResultCheck:
    """Every check of a result, in order; true if all hold."""

    name: str
    steps: tuple[Checked, ...]

    @property
    def passed(self) -> bool:
        """True if there are checks, and none failed or stayed open."""
        return bool(self.steps) and all(self.steps)

    def __bool__(self) -> bool:
        return self.passed

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``hermitex check --json``."""
        return {"name": self.name, "passed": self.passed, "steps": [s.to_dict() for s in self.steps]}

    def _repr_html_(self) -> str:
        """Every check with what came of it; a counter-example where one fails."""
        rows = [(s.rule, repr(s).removeprefix(f"{s.rule}: ")) for s in self.steps]
        return words_table(rows, title=repr(self).splitlines()[0])

    def __repr__(self) -> str:
        head = f"{self.passed}: {self.name}, {counted(len(self.steps), 'check')}"
        return "\n".join([head, *(f"  {s!r}" for s in self.steps if not s)])


# -- what a page is made of --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Words:
    """A paragraph; formulas stand between dollars."""

    text: str


@dataclass(frozen=True)
class Let:
    """A name for an expression; checks see it written out."""

    symbol: Symbol
    value: Expr
    words: str = ""


@dataclass(frozen=True)
class Equality:
    """lhs = rhs by a rule; `misprint`: a source prints it, and it must fail; `chained`: lhs is the line above."""

    rule: str
    lhs: Expr
    rhs: Expr
    words: str = ""
    source: str | None = None
    digits: int = 30
    points: int = 4
    misprint: bool = False
    chained: bool = False
    shown: tuple[str, str] | None = None

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Check it with the names of `where` written out."""
        left, right = (written_out(e, where) for e in (self.lhs, self.rhs))
        found = check(left, right, digits=self.digits, points=self.points)
        example = repr(found.counter_example) if found.counter_example is not None else ""
        if found.factor is not None:
            example = f"the sides differ by the factor {found.factor}; {example}"
        if self.misprint:
            status = REFUTED if found.status == FAILS else FAILS
            return Checked(f"misprint, {self.rule}", status, None, "" if example else "what is called a misprint holds", example)
        return Checked(self.rule, found.status, found.digits, found.how, example)


@dataclass(frozen=True)
class Inequality:
    """small < large: proved by enclosures of constants, else tested at the points given ({name: number})."""

    rule: str
    small: Expr
    large: Expr
    words: str = ""
    at: tuple[Mapping[str, Any], ...] = ()
    source: str | None = None

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Check it with the names of `where` written out."""
        gap = written_out(self.large - self.small, where)
        if not gap.free_symbols:
            verdict = decide(gap)
            low = verdict.enclosure[0] if verdict.enclosure else verdict.value
            if verdict.status == "nonzero" and low is not None:
                return Checked(self.rule, PROVED if low > 0 else FAILS, None, verdict.how)
        for point in self.at or ({},):
            value, error = evaluate_with_error(gap, 12, subs=dict(point))
            if not value > error:
                return Checked(self.rule, FAILS, example=f"{dict(point)}: the right side exceeds the left by {value}")
        return Checked(self.rule, AGREES, None, f"{len(self.at)} points")


@dataclass(frozen=True)
class Agreement:
    """Two systems are one: letter by letter, equation by equation, or in their solutions at the points given."""

    rule: str
    derived: System
    used: System
    at: tuple[Mapping[str, Any], ...]
    functions: Mapping[str, Any]
    words: str = ""
    source: str | None = None
    shown: bool = True
    misprint: bool = False

    @property
    def differing(self) -> list[tuple[Any, Any]]:
        """(left, right) of the equations that a misprint changes."""
        changed = self.derived.diff(self.used)
        return [(u, v) for u, v in self.derived.equations.items() if u.name in changed]

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Compare the systems."""
        status, digits, how, example = agreement(self.derived, self.used, self.at, self.functions, formal=not self.misprint)
        if self.misprint:
            status = REFUTED if status == FAILS else FAILS
            return Checked(f"misprint, {self.rule}", status, None, "" if example else "what is called a misprint holds", example)
        return Checked(self.rule, status, digits, how, example)


@dataclass(frozen=True)
class Fact:
    """A fact that a function of no arguments decides: True, or the digits reached (6 at least); else it raises or says why not."""

    rule: str
    test: Callable[[], Any]
    words: str = ""
    source: str | None = None

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Run it."""
        try:
            said = self.test()
        except AssertionError as error:
            return Checked(self.rule, FAILS, example=str(error) or "an assertion failed")
        if isinstance(said, bool):
            return Checked(self.rule, PROVED, None, "exact comparison") if said else Checked(self.rule, FAILS, None, "it is false")
        if isinstance(said, int) and said < _FEWEST:  # numbers that hardly agree do not
            return Checked(self.rule, FAILS, said, example=f"the numbers agree to {said} digits, and {_FEWEST} are asked for")
        if isinstance(said, int):
            return Checked(self.rule, AGREES, said, "numerical comparison")
        return Checked(self.rule, FAILS, example=f"the test said {said!r}")


Part = Words | Let | Equality | Inequality | Agreement | Fact


def name_of_fact(part: Part) -> str | None:
    """What is compared by computation and shows no formula: its name."""
    return part.rule if isinstance(part, Fact) or (isinstance(part, Agreement) and not part.shown) else None


def lines_of(part: Part) -> list[tuple[str, str, str, str, str | None]]:
    """The lines of formulas that a part shows: (left, sign, right, note, source)."""
    if isinstance(part, Let):
        return [(latex(part.symbol), r"\equiv", latex(part.value), "", None)]
    if isinstance(part, Equality):
        note = part.words if part.chained and part.words else WORDS.get(part.rule, part.rule)
        left, right = part.shown or (latex(part.lhs), latex(part.rhs))
        return [("" if part.chained else left, "=", right, note, part.source)]
    if isinstance(part, Inequality):
        return [(latex(part.small), "<", latex(part.large), part.rule, part.source)]
    if isinstance(part, Agreement) and part.shown:
        return [(latex(left), "=", latex(right), "", None) for left, right in part.derived.rows()]
    return []
