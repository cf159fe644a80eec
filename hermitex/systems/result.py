r"""claim, assumptions, steps (each with its rule and its check), conclusion: a published result that re-checks itself.

A `Result` is written like a page of mathematics and read by ``hermitex check``: every step is proved symbolically, agrees
to 30 digits at random points, or is refuted by a counter-example; a misprint of a source is a check that must fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sympy import Expr, Symbol

from hermitex.errors import BadInput, BudgetExceeded, HermitexError
from hermitex.show.display import Shown, counted, latex, words_table
from hermitex.symbolic.derivation import WORDS, Derivation, check
from hermitex.symbolic.parsing import expression
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


class Result(Shown):
    r"""A published result as a page: claim, assumptions, steps with their rules and checks, conclusion, misprints.

    Parameters
    ----------
    title : what the result is called
    claim : one paragraph; formulas between dollars
    source : key of the bibliography;  place : "Result 3.2", "Eq. (11)"
    assumptions : sentences

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbols import z, kappa, r
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbolic.undefined import Derivative
    >>> sigma = Function("sigma")
    >>> page = Result("The linear coefficient", r"It is the mean slope.", source="cui2024", place="Result 3.2")
    >>> page.step("Stein", E(z*sigma(r*kappa + z), z), E(Derivative(sigma)(r*kappa + z), z), "by parts")
    >>> page.misprint("a lost derivative", E(z*sigma(r*kappa + z), z), E(sigma(r*kappa + z), z))
    >>> page.check()
    True: The linear coefficient, 2 checks
    """

    def __init__(self, title: str, claim: str, *, source: str | None = None, place: str = "",
                 assumptions: Sequence[str] = ()) -> None:
        self.title, self.claim, self.source, self.place = title, claim, source, place
        self.assumptions = tuple([assumptions] if isinstance(assumptions, str) else assumptions)
        self.parts: list[Part] = []
        self.conclusion: tuple[Any, str] | None = None

    # -- writing -----------------------------------------------------------------------------------------------------
    def text(self, words: str) -> None:
        """A paragraph."""
        self.parts.append(Words(words))

    def let(self, symbol: Symbol, value: Any, words: str = "") -> Symbol:
        """Introduce a name; it stays in print and is written out in the checks. Returns the symbol."""
        if symbol in self.definitions:
            raise BadInput(f"{self.title}: {symbol} is defined twice")
        self.parts.append(Let(symbol, expression(value), words))
        return symbol

    def step(self, rule: str, lhs: Any, rhs: Any, words: str = "", *, source: str | None = None, digits: int = 30,
             points: int = 4, shown: tuple[str, str] | None = None) -> None:
        """One equality and the rule that gives it; proved, or tested to `digits` at `points` random points.

        `shown`: LaTeX of both sides, where the expressions that are checked are too long to read.
        """
        self.parts.append(Equality(rule, expression(lhs), expression(rhs), words, source, digits, points, shown=shown))

    def then(self, rule: str, rhs: Any, words: str = "", *, source: str | None = None, digits: int = 30, points: int = 4) -> None:
        """The next line of the same chain: what stood on the right is equal to this."""
        last = next((p for p in reversed(self.parts) if isinstance(p, Equality) and not p.misprint), None)
        if last is None or self.parts[-1] is not last:
            raise BadInput(f"{self.title}: `then` continues a step; write .step(rule, lhs, rhs) first")
        self.parts.append(Equality(rule, last.rhs, expression(rhs), words, source, digits, points, chained=True))

    def less(self, rule: str, small: Any, large: Any, words: str = "", *, at: Sequence[Mapping[str, Any]] = (),
             source: str | None = None) -> None:
        """An inequality small < large."""
        self.parts.append(Inequality(rule, expression(small), expression(large), words, tuple(at), source))

    def derivation(self, derived: Derivation, words: str = "") -> None:
        """The steps of a `Derivation` (what `stein` returns), one by one."""
        for i, s in enumerate(derived.steps):
            shown = (s.shown, latex(s.after)) if s.shown else None
            self.parts.append(Equality(s.rule, s.before, s.after, words if i == 0 else "", s.source, shown=shown))

    def same(self, rule: str, derived: System, used: System, words: str = "", *, at: Sequence[Mapping[str, Any]] = (),
             functions: Mapping[str, Any] | None = None, source: str | None = None, shown: bool = True) -> None:
        """Two systems are one; where they differ in form, their solutions are compared at the points `at`.

        `shown`: whether the derived equations are printed.
        """
        self.parts.append(Agreement(rule, derived, used, tuple(at), dict(functions or {}), words, source, shown))

    def test(self, rule: str, test: Callable[[], Any], words: str = "", *, source: str | None = None) -> None:
        """A fact beyond one equality: `test()` returns True (exact) or the number of digits reached."""
        self.parts.append(Fact(rule, test, words, source))

    def misprint(self, where: str, lhs: Any, rhs: Any, words: str = "", *, source: str | None = None, digits: int = 30) -> None:
        """What a source prints and what is wrong: the check must fail, with a counter-example."""
        self.parts.append(Equality(where, expression(lhs), expression(rhs), words, source, digits, misprint=True))

    def misprint_in(self, where: str, printed: System, used: System, words: str = "", *, at: Sequence[Mapping[str, Any]],
                    functions: Mapping[str, Any] | None = None, source: str | None = None) -> None:
        """A misprint in one of the equations of a system: at one of the points the numbers must differ."""
        self.parts.append(Agreement(where, printed, used, tuple(at), dict(functions or {}), words, source, misprint=True))

    def conclude(self, value: Any, words: str = "") -> None:
        """What the package uses: an expression or a System, printed as the result."""
        self.conclusion = (value, words)

    # -- reading -----------------------------------------------------------------------------------------------------
    @property
    def definitions(self) -> dict[Symbol, Expr]:
        """The names that were introduced."""
        return {p.symbol: p.value for p in self.parts if isinstance(p, Let)}

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys of the references, each once, in order."""
        named = [self.source, *(getattr(p, "source", None) for p in self.parts)]
        return tuple(dict.fromkeys(k for k in named if k))

    def checks(self) -> Iterator[Checked]:
        """One check after the other; what raises is undetermined, with its reason."""
        where = self.definitions
        for part in self.parts:
            if isinstance(part, Words | Let):
                continue
            try:
                yield part.checked(where)
            except BudgetExceeded:
                raise
            except HermitexError as error:
                yield Checked(part.rule, OPEN, None, str(error).splitlines()[0])

    def check(self, progress: Callable[[Checked], Any] | None = None) -> ResultCheck:
        """Re-check every step, inequality, system and misprint."""
        found = []
        for one in self.checks():
            found.append(one)
            if progress is not None:
                progress(one)
        return ResultCheck(self.title, tuple(found))

    def bibtex(self) -> str:
        """BibTeX of what is cited."""
        from hermitex.show.cite import bibtex

        return bibtex(list(self.sources))

    # -- showing -----------------------------------------------------------------------------------------------------
    def blocks(self) -> Iterator[tuple[str, Any]]:
        """The page as ("claim" | "assumptions" | "text" | "align" | "fact" | "misprints" | "conclusion", content) in reading order.

        An align block is a list of (left, sign, right, note, source) in LaTeX.
        """
        yield "claim", self.claim
        if self.assumptions:
            yield "assumptions", self.assumptions
        lines: list[tuple[str, str, str, str, str | None]] = []
        for part in self.parts:
            if getattr(part, "misprint", False):
                continue
            words = part.text if isinstance(part, Words) else part.words
            if words and not getattr(part, "chained", False):
                if lines:
                    yield "align", lines
                lines = []
                yield "text", words
            lines += _lines(part)
            if (fact := _fact(part)) is not None:
                if lines:
                    yield "align", lines
                lines = []
                yield "fact", fact
        if lines:
            yield "align", lines
        wrong = [p for p in self.parts if getattr(p, "misprint", False)]
        if wrong:
            yield "misprints", wrong
        if self.conclusion is not None:
            yield "conclusion", self.conclusion

    def latex(self) -> str:
        """The page as a LaTeX section with numbered equations; see `hermitex.show.appendix`."""
        from hermitex.show.appendix import section

        return section(self.title, self.place, self.source, self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Title, place, source, and the page in reading order; formulas as LaTeX."""
        page = []
        for kind, content in self.blocks():
            if kind == "align":
                content = [dict(zip(("left", "sign", "right", "rule", "source"), line, strict=True)) for line in content]
            elif kind == "misprints":
                content = [p.rule for p in content]
            elif kind == "conclusion":
                content = content[1]
            page.append({"kind": kind, "content": list(content) if isinstance(content, tuple) else content})
        return {"title": self.title, "place": self.place, "source": self.source, "page": page}

    def markdown(self) -> str:
        """The page as Markdown with formulas between dollars."""
        from hermitex.show.appendix import markdown

        return markdown(self.title, self.place, self.source, self.blocks())

    def _repr_latex_(self) -> None:
        return None  # a notebook shows the Markdown

    def _repr_markdown_(self) -> str | None:
        try:
            return self.markdown()
        except Exception:  # a notebook must show something else rather than fail
            return None

    def __repr__(self) -> str:
        count = sum(not isinstance(p, Words | Let) for p in self.parts)
        return f"Result({self.title!r}, {self.place or self.source or 'no source'}; {counted(count, 'check')})"


def _fact(part: Part) -> str | None:
    """What is compared by computation and shows no formula: its name."""
    return part.rule if isinstance(part, Fact) or (isinstance(part, Agreement) and not part.shown) else None


def _lines(part: Part) -> list[tuple[str, str, str, str, str | None]]:
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
