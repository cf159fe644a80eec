r"""claim, assumptions, steps (each with its rule and its check), conclusion: a published result that re-checks itself.

A `Result` is written like a page of mathematics and read by ``hermitex check``: every step is proved symbolically, agrees
to 30 digits at random points, or is refuted by a counter-example; a misprint of a source is a check that must fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any

import numpy as np
from sympy import Expr, Limit, MatrixBase, MatrixExpr, Order, StrictGreaterThan, StrictLessThan, Symbol

from hermitex.errors import BadInput, BudgetExceeded, HermitexError, first_line
from hermitex.hints import Letters
from hermitex.numbers.gauss import legendre_on
from hermitex.pages.abbreviations import fold_names
from hermitex.pages.checked import FAILS, OPEN, Checked, ResultCheck, digits_of
from hermitex.pages.conclusion import Conclusion, premises_of
from hermitex.pages.page_entries import Agreement, Equality, Fact, Inequality, Let, Part, Words, check_name, lines_of, name_of_fact
from hermitex.pages.premises import Notation, NotShown, Premise, count_typed_equalities
from hermitex.pages.used_definitions import adrift, loose, unnamed, unused, words_of
from hermitex.pages.used_definitions import strange as strange_letters
from hermitex.show.display import Shown, counted, latex
from hermitex.show.formula_line import Line
from hermitex.symbolic.conditional_expectation import ConditionalMean
from hermitex.symbolic.derivation import Derivation
from hermitex.symbolic.parsing import expression, parse_with_letters
from hermitex.systems.system import System


class Result(Shown):
    r"""A published result as a page: claim, assumptions, steps with their rules and checks, conclusion, misprints.

    Parameters
    ----------
    title : the name of the result
    claim : one paragraph; formulas between dollars; `$#1$`, `$#2$` are the equations of `therefore`, in their order
    source : key of the bibliography;  place : "Result 3.2", "Eq. (11)"
    assumptions : sentences

    Guarantee
    ---------
    A page holds if every line is proved, agrees to its digits, or was tested; the count says how many of each. Assumed and
    quoted lines are not tested. See docs/promise.md.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbols import z, kappa, r
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbolic.undefined import Derivative
    >>> sigma = Function("sigma")
    >>> page = Result("The linear coefficient", r"It is the mean slope.", source="cui2024", place="Result 3.2")
    >>> stein = page.step("Stein", E(z*sigma(r*kappa + z), z), E(Derivative(sigma)(r*kappa + z), z), "by parts")
    >>> page.variant("a lost derivative", E(z*sigma(r*kappa + z), z), E(sigma(r*kappa + z), z))
    >>> page.check()
    True: The linear coefficient, 2 checks
    """

    def __init__(self, title: str, claim: str, *, source: str | None = None, place: str = "",
                 assumptions: Sequence[str] = ()) -> None:
        self.title, self.claim, self.source, self.place = title, claim, source, place
        self.parts: list[Part | Conclusion] = [Premise(a) for a in ([assumptions] if isinstance(assumptions, str) else assumptions)]
        self.found: dict[int, Checked] = {}   # of the parts, by their place, once they were checked
        self.conclusion: tuple[Any, str] | None = None

    # -- writing -----------------------------------------------------------------------------------------------------
    def text(self, words: str, *formulas: Any) -> None:
        """A paragraph; `$#1$`, `$#2$` are replaced by the formulas.

        A formula is (lhs, rhs), which is checked and printed as it is checked; a name of the page, whose definition is printed; or
        a term, which must be part of a formula of the page.
        """
        made = tuple((_side(f[0]), _side(f[1])) if isinstance(f, tuple | list) else f if isinstance(f, Symbol) else _side(f)
                     for f in formulas)
        for i in range(1, len(made) + 2):
            if (f"$#{i}$" in words) != (i <= len(made)):
                said = f"write $#1$ to $#{len(made)}$" if made else "give the formula of $#1$"
                raise BadInput(f"{self.title}: {said} in the paragraph, one formula for each")
        if unknown := [f for f in made if isinstance(f, Symbol) and f not in self.definitions]:
            raise BadInput(f"{self.title}: {unknown[0]} has no definition; write page.let({unknown[0]}, ...) first")
        self.parts.append(Words(words, made))

    def notation(self, letters: Mapping[Any, str]) -> None:
        r"""The meaning of letters, in words: {letter: words}. A letter is a symbol, several as a tuple, or LaTeX as a text.

        For objects that no formula of the page contains: $\|a\|^2/p$ is declared like a letter, and may then occur in other
        text of the page. A formula is a definition, see `let`. The words themselves may contain only terms of the page's formulas,
        and letters of a formula, a notation or a law ($x \sim ...$).
        """
        self.parts.append(Notation(tuple(letters.items())))

    def not_shown(self, words: str) -> None:
        """A statement that a reader might think is shown here, and is not; printed at the end of the page."""
        self.parts.append(NotShown(words))

    def assume(self, words: str, *, quoted: str | None = None, place: str = "") -> Premise:
        """A premise that is not shown here: assumed, or quoted from a source (its key, and the place in it)."""
        self.parts.append(premise := Premise(words, quoted, place))
        return premise

    def let(self, symbol: Symbol, value: Any, words: str = "", *, shown: bool = True) -> Symbol:
        """Introduce a name; it stays in print and is written out in the checks. Returns the symbol.

        `shown`: on a line of its own; otherwise `text` must print it.
        """
        return self._define(Let(symbol, _side(value), words, shown=shown))

    def name(self, symbol: Symbol, value: Any, words: str = "", *, shown: bool = True) -> Symbol:
        """The same; from here on the name is printed wherever the expression occurs, as in d(Phi)/dV."""
        return self._define(Let(symbol, _side(value), words, folds=True, shown=shown))

    def _define(self, one: Let) -> Symbol:
        if one.symbol in self.definitions:
            raise BadInput(f"{self.title}: {one.symbol} is defined twice")
        self.parts.append(one)
        return one.symbol

    def step(self, rule: str, lhs: Any, rhs: Any, words: str = "", *, source: str | None = None, digits: int = 30,
             points: int = 4, to: Mapping[Symbol, Any] | None = None, symbols: Letters | None = None) -> Equality:
        """One equality, of numbers or of matrices, and its rule; proved, or tested to `digits` at `points` random points.

        A text knows the package's letters, and those that `symbols` declares, as in `check`.

        `to` = {x: 0} or {x: oo} claims an asymptotic equality, lhs ~ rhs; a series ends with SymPy's O(x**n). See `check`.

        Derivative, Subs, Limit, Integral and Sum are printed as written, and the check evaluates them. X = X fails.
        The printed formula is the checked one: give long expressions a `name`.
        """
        self.parts.append(made := Equality(rule, _side(lhs, symbols), _side(rhs, symbols), words, source, digits, points, to=to))
        return made

    def then(self, rule: str, rhs: Any, words: str = "", *, source: str | None = None, digits: int = 30,
             points: int = 4, symbols: Letters | None = None) -> Equality:
        """The next line of the same chain: the last right side equals this one. Like a step, it is a premise of its own."""
        last = next((p for p in reversed(self.parts) if isinstance(p, Equality) and not p.misprint), None)
        if last is None or self.parts[-1] is not last:
            raise BadInput(f"{self.title}: `then` continues a step; write .step(rule, lhs, rhs) first")
        self.parts.append(made := Equality(rule, last.rhs, _side(rhs, symbols), words, source, digits, points, chained=True))
        return made

    def less(self, rule: str, small: Any, large: Any, words: str = "", *, at: Sequence[Mapping[str, Any]] = (),
             source: str | None = None, symbols: Letters | None = None) -> Inequality:
        """An inequality small < large; a premise of others."""
        self.parts.append(made := Inequality(rule, _side(small, symbols), _side(large, symbols), words, tuple(at), source))
        return made

    def derivation(self, derived: Derivation, words: str = "") -> list[Equality]:
        """The steps of a `Derivation` (what `stein` returns), one by one; each is a premise of its own."""
        made = [Equality(s.rule, s.before, s.after, "" if i else words, s.source,
                         shown=(s.shown, latex(s.after)) if s.shown else None) for i, s in enumerate(derived.steps)]
        self.parts += made
        return made

    def same(self, rule: str, derived: Any, used: Any, words: str = "", *, at: Sequence[Mapping[str, Any]] = (),
             functions: Mapping[str, Any] | None = None, source: str | None = None, shown: bool = True,
             name: Symbol | None = None) -> Equality | Agreement:
        """The derived object equals that of the package: two systems (if they differ in form, their solutions are compared at the
        points `at`), or two expressions.

        `shown`: whether the derived equations are printed; `name`: printed for the package's expression.
        """
        made: Equality | Agreement
        if isinstance(derived, System):
            made = Agreement(rule, derived, used, tuple(at), dict(functions or {}), words, source, shown)
        else:
            made = Equality(rule, _side(derived), _side(used), words, source, copy=True, name=name and _side(name))
        self.parts.append(made)
        return made

    def test(self, rule: str, test: Callable[[], Any], words: str = "", *, source: str | None = None,
             uses: Sequence[Symbol] = ()) -> Fact:
        """A fact beyond one equality: `test()` returns True, or the digits reached. It is tested, not proved.

        `uses`: the names of the page whose definitions it computes with.
        """
        self.parts.append(made := Fact(rule, test, words, source, tuple(uses)))
        return made

    @staticmethod
    def digits(gap: float) -> int:
        """The digits to which two numbers agree that are `gap` apart, relative to one of them, as `test` returns them."""
        return digits_of(gap)

    @staticmethod
    def numbers(pairs: Mapping[str, tuple[Any, Any]] | Iterable[tuple[str, Any, Any]], enough: float = 1e-6,
                floor: float = 1e-3) -> int:
        """The digits to which numbers or arrays agree, given as {name: (here, in the package)}; an error names a pair that differs.

        The difference is relative to the largest number of the package, or to `floor` if that is larger; it must be below `enough`.

        >>> Result.numbers({"a root": (1.41421356, 2**0.5)})
        8
        """
        worst = 0.0
        for name, here, wanted in ((k, *v) for k, v in pairs.items()) if isinstance(pairs, Mapping) else pairs:
            a, b = (np.real_if_close(np.asarray(x, dtype=complex)) for x in (here, wanted))
            gap = float(np.max(np.abs(a - b))/max(np.max(np.abs(b)), floor))
            if not gap < enough:
                raise AssertionError(f"{name}: {a.tolist()} here, {b.tolist()} in the package")
            worst = max(worst, gap)
        return digits_of(worst)

    @staticmethod
    def normal_grid(each: int = 16) -> tuple[Any, Any]:
        """Nodes and weights over the normal law, for `weights @ f(nodes)`: `each` on the unit panels of (-9, 9), one ends at 0."""
        x, w = (a.ravel() for a in legendre_on(np.arange(-9.0, 10.0), each))
        return x, w*np.exp(-x*x/2)/np.sqrt(2*np.pi)

    def misprint(self, where: str, lhs: Any, rhs: Any, words: str = "", *, source: str | None = None, place: str = "",
                 mended: Any = None, change: Callable[[Any], Any] | None = None, digits: int = 30,
                 to: Mapping[Symbol, Any] | None = None) -> None:
        """lhs = rhs is wrong: the check must fail, with a counter-example.

        With `source`, `place` and the correct right side `mended`, it is a misprint: `mended` must hold, and `change`
        (`lambda right: right/2`) must turn it into the printed side. Otherwise it is listed under "What would go wrong". Without
        `mended`, the left side must be a side of a line of the page, which then gives the correct form.
        """
        self.parts.append(Equality(where, _side(lhs), _side(rhs), words, source, digits, misprint=True, place=place,
                                   mended=None if mended is None else _side(mended), change=change, to=to))

    def misprint_in(self, where: str, printed: System, used: System, words: str = "", *, at: Sequence[Mapping[str, Any]],
                    functions: Mapping[str, Any] | None = None, source: str | None = None, place: str = "",
                    change: Mapping[Any, Callable[[Any], Any]] | None = None) -> None:
        """The same for equations of a system: at one of the points the numbers must differ.

        `used` is the mended system. With a source and a place in it this is a misprint, and `change` says how its right sides come
        from the mended ones, {V: lambda right: right/2}; all others must be the same. Else it "would go wrong".
        """
        made = Agreement(where, printed, used, tuple(at), dict(functions or {}), words, source, misprint=True, place=place,
                         change=change)
        self.parts.append(made)

    def variant(self, where: str, lhs: Any, rhs: Any, words: str = "", *, mended: Any = None, digits: int = 30,
                to: Mapping[Symbol, Any] | None = None, at: Sequence[Mapping[str, Any]] = (),
                functions: Mapping[str, Any] | None = None) -> None:
        """What would go wrong: a slip that nobody printed, lhs = rhs, or two systems that must differ at one of the points `at`."""
        if isinstance(lhs, System):
            self.misprint_in(where, lhs, rhs, words, at=at, functions=functions)
        else:
            self.misprint(where, lhs, rhs, words, mended=mended, digits=digits, to=to)

    def therefore(self, lhs: Any, rhs: Any = None, words: str = "", *, by: Sequence[Any],
                  package: Mapping[str, Any] | EllipsisType | None = ..., to: Mapping[Symbol, Any] | None = None) -> None:
        """The conclusion as a claim: lhs = rhs (or a list of such pairs, an inequality a < b, or a System) follows from the
        premises `by`. `to` = {x: 0} or {x: oo} claims an asymptotic equality, and a right side may end with O(x**n), as in `step`.

        by : steps, names, tests and assumptions of this page, as their methods returned them; each must be needed
        package : {code: object}: what a user types, and what it returns, which must be the right sides. None prints that the
            package has no such object; without `package` nothing is printed. The code is evaluated. If it does not give a formula,
            the object is a function: it takes the value of the code (with `...` in the code, a function of the arguments there),
            and returns {letter: number}, or this and the right sides
        """
        system = lhs if isinstance(lhs, System) else None
        less = isinstance(lhs, StrictLessThan | StrictGreaterThan)
        pairs = ([] if system is not None else lhs if isinstance(lhs, list | tuple) else
                 [(lhs.lts, lhs.gts)] if less else [(lhs, rhs)])
        made = tuple((_side(a), _side(b)) for a, b in pairs)
        self.parts.append(Conclusion(made, premises_of(by, self.parts, self.definitions),
                                     {} if package is ... else dict(package or {}), words, system, to=to, less=less,
                                     none=package is None))

    def conclude(self, value: Any, words: str = "") -> None:
        """An expression or a System printed as the result, which nothing checks; see `therefore`."""
        self.conclusion = (value, words)

    # -- reading -----------------------------------------------------------------------------------------------------
    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumed and quoted premises, in words."""
        return tuple(p.words for p in self.parts if isinstance(p, Premise))

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
        """One check after the other; what raises is undetermined, with its reason. A rule that is used again is numbered."""
        used: Counter[str] = Counter()
        where, systems = self.definitions, [p.derived for p in self.parts if isinstance(p, Agreement) and not p.misprint]
        for place, part in enumerate(self.parts):
            if isinstance(part, Let | Premise | Notation | NotShown) or (isinstance(part, Words) and not part.claims):
                continue
            try:
                self.found[place] = part.checked(where, systems) if isinstance(part, Words) else part.checked(where)
                if adrift(part, self.parts, where):
                    said = "its left side is not a side of a line of this page; give the correct form as a step, or as mended="
                    self.found[place] = Checked(check_name(part), FAILS, example=said)
                if isinstance(part, Conclusion):
                    by = [one for i, one in self.found.items() if any(self.parts[i] is q for q in part.by)]
                    self.found[place] = part.resting_on(by, self.found[place])
            except BudgetExceeded:
                raise
            except HermitexError as error:
                self.found[place] = Checked(part.rule, OPEN, None, first_line(error))
            rule = self.found[place].rule
            used[rule] += 1
            if used[rule] > 1:   # Stein, Stein (2): a report says which one it means
                self.found[place] = replace(self.found[place], rule=f"{rule} ({used[rule]})")
            yield self.found[place]

    def check(self, progress: Callable[[Checked], Any] | None = None) -> ResultCheck:
        """Re-check every step, inequality, system and misprint.

        Guarantee: every line is checked anew, without trusting its rule; `hx.check` says what each verdict means. See
        docs/promise.md.
        """
        found = []
        for one in self.checks():
            found.append(one)
            if progress is not None:
                progress(one)
        return self.checked(found)

    def checked(self, found: Sequence[Checked]) -> ResultCheck:
        """These checks, with how many lines of the page are quoted, assumed and defined."""
        kinds = [p.badge if isinstance(p, Premise) else "defined" for p in self.parts if isinstance(p, Premise | Let)]
        kinds += ["defined"]*sum(len(p.letters) for p in self.parts if isinstance(p, Notation))
        return ResultCheck(self.title, tuple(found), {k: kinds.count(k) for k in dict.fromkeys(kinds)}, self.unbound, self.refused,
                           tuple(unnamed(self.parts, [*self.words, *self.assumptions])))

    @property
    def refused(self) -> tuple[str, ...]:
        """Formulas in the text that no check covers: typed equalities, and terms that no formula of the page contains. The page
        fails."""
        many = sum(map(count_typed_equalities, self.words))
        said = [f"{counted(many, 'formula')} in words"] if many else []
        if loose := self.loose:
            said += [f"{counted(len(loose), 'term')} in words, {', '.join(f'${t}$' for t in loose)}, that no formula of the page "
                     "contains (write page.text('... $#1$', term), declare it in page.notation, or say it in words)"]
        if strange := strange_letters(self.parts, [*self.words, *self.assumptions]):
            said += [f"{counted(len(strange), 'letter')} in words, {', '.join(f'${x}$' for x in strange)}, that nothing on the "
                     "page introduces (write page.notation({r'" + strange[0] + "': 'what it is'}))"]
        return tuple(said)

    @property
    def unbound(self) -> tuple[str, ...]:
        """Printed parts that no check covers: a conclusion without premises, the `refused` formulas, and a definition that is
        nowhere printed or enters no check."""
        printed = {f for p in self.parts if isinstance(p, Words) for f in p.formulas if isinstance(f, Symbol)}
        hidden = [p.symbol for p in self.parts if isinstance(p, Let) and not p.shown and p.symbol not in printed]
        lost = unused(self.parts, self.definitions)
        said = [f"the definition of {', '.join(sorted({str(x) for x in (*hidden, *lost)}))}"] if hidden or lost else []
        return (*(["the conclusion"] if self.conclusion is not None else []), *self.refused, *said)

    @property
    def words(self) -> list[str]:
        """All words but the premises."""
        last = [self.conclusion[1]] if self.conclusion is not None else []
        return [self.claim, *(said for p in self.parts if not isinstance(p, Premise) for said in words_of(p)), *last]

    @property
    def loose(self) -> list[str]:
        """Terms in words, typed or given, that no formula of the page contains and no notation declares."""
        return loose(self.parts, [*self.words, *self.assumptions])

    def bibtex(self) -> str:
        """BibTeX of what is cited."""
        from hermitex.show.cite import bibtex

        return bibtex(list(self.sources))

    # -- showing -----------------------------------------------------------------------------------------------------
    def blocks(self) -> Iterator[tuple[str, Any]]:
        """The page in reading order, as (kind, content): "claim", "assumptions", "notation", "text", "align", "fact", "misprints",
        "variants", "conclusion", "premises", "not shown", "tally".

        An align block is a list of `Line`; premises are the keys of lines; a fact (its name, its
        badge); assumptions are (words, badge, source, place).
        """
        yield "claim", self._claimed()
        premises = [p for p in self.parts if isinstance(p, Premise)]
        if premises:
            yield "assumptions", [(p.words, p.badge, p.source, p.place) for p in premises]
        yield from (("notation", p.words) for p in self.parts if isinstance(p, Notation))
        lines: list[Line] = []
        names: dict[Symbol, Expr] = {}
        for place, part in enumerate(self.parts):
            if getattr(part, "misprint", False) or isinstance(part, Premise | Notation | NotShown | Conclusion):
                continue
            badge = self.found[place].badge if place in self.found else ""
            words = part.written(names, self.definitions) if isinstance(part, Words) else part.words
            if words and not getattr(part, "chained", False):
                if lines:
                    yield "align", lines
                lines = []
                yield "text", words
            lines += [one._replace(key=str(place) if i == 0 else "") for i, one in enumerate(lines_of(part, names, badge))]
            if isinstance(part, Let) and part.folds:
                names[part.symbol] = part.value
            if (fact := name_of_fact(part)) is not None:
                if lines:
                    yield "align", lines
                lines = []
                yield "fact", (fact, badge or ("tested" if isinstance(part, Fact) else ""))
        if lines:
            yield "align", lines
        wrong = [p for p in self.parts if getattr(p, "misprint", False)]
        for kind, of_a_source in (("misprints", True), ("variants", False)):
            if chosen := [p for p in wrong if getattr(p, "of_a_source", False) == of_a_source]:
                yield kind, chosen
        if self.conclusion is not None:
            yield "conclusion", self.conclusion
        for place, part in enumerate(self.parts):
            if isinstance(part, Conclusion):
                badge = self.found[place].badge if place in self.found else ""
                shown = [Line(left, part.sign, right, badge=badge, key=f"{place}.{i}")
                         for i, (left, right) in enumerate(fold_names(*pair, names) for pair in part.pairs)]
                yield "conclusion", (shown if part.system is None else part.system, part.words)
                by = [str(i) for i, q in enumerate(self.parts) if any(q is p or getattr(q, "symbol", None) is p for p in part.by)
                      if not isinstance(q, Conclusion) and lines_of(q, {})]
                yield from [("premises", by)] if by else []
                said = ", ".join(f"`{name}`" for name in part.package)
                if said or part.none:
                    yield "text", f"In the package: {said}." if said else "The package has no object for it."
        yield from (("not shown", p.words) for p in self.parts if isinstance(p, NotShown))
        if self.found:
            yield "tally", self.checked(list(self.found.values())).tally()

    def _claimed(self) -> str:
        """The claim with the equations of the conclusions that it speaks of."""
        said = self.claim
        claims = ((p.sign, *pair) for p in self.parts if isinstance(p, Conclusion) for pair in p.pairs)
        for i, (sign, left, right) in enumerate(claims, 1):
            said = said.replace(f"$#{i}$", f"${latex(left)} {sign} {latex(right)}$")
        return said

    def latex(self) -> str:
        """The page as a LaTeX section with numbered equations; see `hermitex.show.appendix`."""
        from hermitex.show.appendix import section

        return section(self.title, self.place, self.source, self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Title, place, source, and the page in reading order; formulas as LaTeX."""
        page = []
        for kind, content in self.blocks():
            if kind == "align":
                content = [line._asdict() for line in content]
            elif kind == "assumptions":
                content = [dict(zip(("words", "kind", "source", "place"), one, strict=True)) for one in content]
            elif kind == "fact":
                content = dict(zip(("rule", "badge"), content, strict=True))
            elif kind in ("misprints", "variants"):
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
        count = sum(not isinstance(p, Words | Let | Premise | Notation | NotShown) for p in self.parts)
        return f"Result({self.title!r}, {self.place or self.source or 'no source'}; {counted(count, 'check')})"


def _side(value: Any, symbols: Letters | None = None) -> Any:
    """A side of a step: a matrix unchanged, anything else as an expression; a text may hold letters."""
    if isinstance(value, str):
        return parse_with_letters(value, symbols)
    if isinstance(value, MatrixBase | MatrixExpr) or (isinstance(value, Expr) and value.has(Limit, Order, ConditionalMean)):
        return value
    return expression(value)
