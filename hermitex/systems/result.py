r"""claim, assumptions, steps (each with its rule and its check), conclusion: a published result that re-checks itself.

A `Result` is written like a page of mathematics and read by ``hermitex check``: every step is proved symbolically, agrees
to 30 digits at random points, or is refuted by a counter-example; a misprint of a source is a check that must fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sympy import Expr, Symbol

from hermitex.errors import BadInput, BudgetExceeded, HermitexError
from hermitex.show.display import Shown, counted, latex
from hermitex.symbolic.derivation import Derivation
from hermitex.symbolic.parsing import expression
from hermitex.systems.page import (
    OPEN,
    Agreement,
    Checked,
    Equality,
    Fact,
    Inequality,
    Let,
    Part,
    ResultCheck,
    Words,
    lines_of,
    name_of_fact,
)
from hermitex.systems.system import System


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
            lines += lines_of(part)
            if (fact := name_of_fact(part)) is not None:
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
