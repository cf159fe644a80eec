"""The entries of a page: words, names, equalities, inequalities, systems that agree, facts; each with its check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr, MatrixBase, MatrixExpr, Symbol

from hermitex.check.claim import check
from hermitex.check.replicas import of_any_size
from hermitex.check.unevaluated import explicit
from hermitex.pages.abbreviations import fold_names
from hermitex.pages.agreement import agreement, unmatched_change, untied_systems
from hermitex.pages.checked import AGREES, FAILS, OPEN, PROVED, REFUTED, TESTED, Checked
from hermitex.pages.premises import Notation, NotShown, Premise
from hermitex.show.display import latex
from hermitex.show.formula_line import Line
from hermitex.symbolic.derivation import WORDS
from hermitex.symbolic.precise import evaluate_with_error
from hermitex.symbolic.zero import decide
from hermitex.systems.scope import written_out
from hermitex.systems.system import System

FEWEST = 6  # digits in which numbers of a test must agree


def sign_of(to: Mapping[Any, Any] | None, wrong: bool = False) -> str:
    """As an equality is printed, one in the limit with where its letter goes."""
    if to is None:
        return r"\neq" if wrong else "="
    sign = r"\not\simeq" if wrong else r"\simeq"
    return "".join(rf"\underset{{{latex(x)} \to {latex(at)}}}{{{sign}}}" for x, at in to.items())


# -- what a page is made of --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Words:
    """A paragraph with formulas between dollars. `$#1$`, `$#2$` are replaced by `formulas`, which are checked.

    A formula is (lhs, rhs); or a name of the page, whose definition is printed; or a term, which a formula of the page must
    contain (see `Content`). A letter that is a name, or an unknown of a system that the page compares, has its value there.
    """

    text: str
    formulas: tuple[Any, ...] = ()

    @property
    def claims(self) -> tuple[tuple[Any, Any], ...]:
        """The equalities among the formulas."""
        return tuple(f for f in self.formulas if isinstance(f, tuple))

    @property
    def terms(self) -> tuple[Any, ...]:
        """The formulas that are a single expression."""
        return tuple(f for f in self.formulas if not isinstance(f, tuple | Symbol))

    @property
    def rule(self) -> str:
        """The name of the check of its formulas."""
        return "in words, " + ", ".join(f"${latex(a)} = {latex(b)}$" for a, b in self.claims)

    def written(self, names: Mapping[Symbol, Expr], values: Mapping[Symbol, Expr]) -> str:
        """The paragraph with its formulas, expressions replaced by `names` in print; `values` are all definitions."""
        said = self.text
        for i, formula in enumerate(self.formulas, 1):
            sides = ((latex(formula), latex(values[formula])) if isinstance(formula, Symbol) else
                     fold_names(formula[0], formula[1], names) if isinstance(formula, tuple) else (latex(formula),))
            said = said.replace(f"$#{i}$", f"${' = '.join(sides)}$")
        return said

    def checked(self, where: Mapping[Symbol, Expr], systems: Sequence[System] = ()) -> Checked:
        """Each of its formulas, as a step is; as good as the worst of them."""
        found = [self._one(a, b, where, systems) for a, b in self.claims]
        rank = (FAILS, OPEN, AGREES, PROVED)
        return min(found, key=lambda one: (rank.index(one.status), one.digits or 0))

    def _one(self, left: Any, right: Any, where: Mapping[Symbol, Expr], systems: Sequence[System]) -> Checked:
        """One formula; a letter of a system of the page by what it is there."""
        if isinstance(left, Symbol) and left not in where:
            told = [value for system in systems for part in (system.where, system.equations, system.observables)
                    for letter, value in part.items() if str(letter) == left.name]
            if right in told:
                return Checked(self.rule, PROVED, how="as a system of the page has it")
            names = {k: v for system in systems for k, v in system.where.items() if k != left}
            for value in told:
                if said := check(written_out(value, names), written_out(right, names)):
                    return Checked(self.rule, said.status, said.digits, said.how, points=said.points)
        if left == right:   # a repeated definition
            return Checked(self.rule, FAILS, example="X = X: both sides are one expression")
        if isinstance(left, Symbol) and where.get(left) == right:
            return Checked(self.rule, PROVED, how="as it is defined")
        return Equality(self.rule, left, right).checked(where)


@dataclass(frozen=True)
class Let:
    """A name for an expression; checks see it written out. `folds`: it is printed wherever the expression occurs.

    `shown`: on a line of its own; else a paragraph prints it, as `$#1$`.
    """

    symbol: Symbol
    value: Expr
    words: str = ""
    folds: bool = False
    shown: bool = True


@dataclass(frozen=True)
class Equality:
    """lhs = rhs by a rule; `misprint`: a source prints it, and it must fail; `chained`: lhs is the line above.

    `copy`: the right side comes from the package. It may equal the left side letter by letter, and a `name` is printed instead of
    it; any other step X = X fails. `mended`: the correct right side of a misprint, which must hold. For a misprint of a source,
    `change(mended)` must give rhs: how the printed form comes from the correct one. `to`: {x: 0}, the sides are equal
    asymptotically.
    """

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
    copy: bool = False
    name: Symbol | None = None
    place: str = ""
    mended: Expr | None = None
    change: Callable[[Expr], Any] | None = None
    to: Mapping[Any, Any] | None = None

    @property
    def of_a_source(self) -> bool:
        """Is it a misprint with its source, the place there and the formula as it should be? Else it is a variant of our own."""
        return bool(self.source and self.place and self.mended is not None)

    def __repr__(self) -> str:
        return f"{self.rule}: {self.lhs} {'=' if self.to is None else '~'} {self.rhs}"

    @property
    def sign(self) -> str:
        """As it is printed between the sides."""
        return sign_of(self.to, self.misprint)

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Check it with the names of `where` written out."""
        left, right = (_written_out(e, where) for e in (self.lhs, self.rhs))
        matrices = any(isinstance(e, MatrixBase | MatrixExpr) for e in (self.lhs, self.rhs))   # products are worked out in `left`
        if (self.lhs == self.rhs if matrices else left == right) and not (self.copy or self.misprint):
            return Checked(self.rule, FAILS, example="X = X: both sides are one expression before anything is worked out")
        found = check(left, right, digits=self.digits, points=self.points, to=self.to)
        example = repr(found.counter_example) if found.counter_example is not None else ""
        if found.factor is not None:
            example = f"the sides differ by the factor {found.factor}; {example}"
        if self.misprint:
            if found.status == FAILS and self.mended is not None:
                if self.mended == self.lhs:
                    return Checked(check_name(self), FAILS, example="the mended formula is the left side itself")
                right = check(left, _written_out(self.mended, where), digits=self.digits, points=self.points, to=self.to)
                if not right:
                    return Checked(check_name(self), FAILS, example=f"the mended formula does not hold: {right!r}")
                if self.of_a_source and (wrong := unmatched_change(self.rhs, self.mended, self.change, where, digits=self.digits)):
                    return Checked(check_name(self), FAILS, example=wrong)
            status = REFUTED if found.status == FAILS else FAILS
            return Checked(check_name(self), status, None, "" if example else "what is called wrong holds", example)
        return Checked(self.rule, found.status, found.digits, found.how, example or ("" if found else found.how), found.points)


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
        return Checked(self.rule, AGREES, None, f"{len(self.at)} points", points=len(self.at))


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
    place: str = ""
    change: Mapping[Any, Callable[[Any], Any]] | None = None   # of a source's misprint: {letter: printed right side of the mended}

    @property
    def of_a_source(self) -> bool:
        """Is it a misprint with its source and the place there? Mended it is the system that it is compared with."""
        return bool(self.source and self.place)

    @property
    def differing(self) -> list[tuple[Any, Any]]:
        """(left, right) of the equations that a misprint changes."""
        changed = self.derived.diff(self.used)
        return [(u, v) for u, v in self.derived.equations.items() if u.name in changed]

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Compare the systems."""
        status, digits, how, example = agreement(self.derived, self.used, self.at, self.functions, formal=not self.misprint)
        if self.misprint:
            if (self.of_a_source or self.change) and (wrong := untied_systems(self.derived, self.used, self.change or {})):
                return Checked(check_name(self), FAILS, example=wrong)
            status = REFUTED if status == FAILS else FAILS
            return Checked(check_name(self), status, None, "" if example else "what is called wrong holds", example)
        return Checked(self.rule, status, digits, how, example, len(self.at) if status == AGREES else None)


@dataclass(frozen=True)
class Fact:
    """A fact that a function of no arguments decides: True, or the digits reached (6 at least); else it raises or says why not."""

    rule: str
    test: Callable[[], Any]
    words: str = ""
    source: str | None = None
    uses: tuple[Symbol, ...] = ()   # the names of the page that it computes with

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """Run it."""
        try:
            said = self.test()
        except AssertionError as error:
            return Checked(self.rule, FAILS, example=str(error) or "an assertion failed")
        if isinstance(said, bool):
            return Checked(self.rule, TESTED, None, "it is true") if said else Checked(self.rule, FAILS, None, "it is false")
        if isinstance(said, int) and said < FEWEST:  # numbers that hardly agree do not
            return Checked(self.rule, FAILS, said, example=f"the numbers agree to {said} digits, and {FEWEST} are required")
        if isinstance(said, int):
            return Checked(self.rule, TESTED, said, "numerical comparison")
        return Checked(self.rule, FAILS, example=f"the test said {said!r}")


Part = Words | Premise | Notation | NotShown | Let | Equality | Inequality | Agreement | Fact


def check_name(part: Any) -> str:
    """The name of the check of a wrong form."""
    return f"{'misprint' if part.of_a_source else 'variant'}, {part.rule}"


def name_of_fact(part: Part) -> str | None:
    """The name of a comparison that is computed and shows no formula."""
    return part.rule if isinstance(part, Fact) or (isinstance(part, Agreement) and not part.shown) else None


def lines_of(part: Part, names: Mapping[Symbol, Expr], badge: str = "") -> list[Line]:
    """The lines of formulas that a part shows, with expressions replaced by their `names`."""
    if isinstance(part, Let):
        return [] if not part.shown else [Line(latex(part.symbol), r"\equiv", fold_names(part.symbol, part.value, names)[1],
                                               badge="defined")]
    if isinstance(part, Equality):
        note = part.words if part.chained and part.words else WORDS.get(part.rule, part.rule)
        if part.name is not None:
            return [Line(latex(part.name), "=", fold_names(part.lhs, part.rhs, names)[0], note, part.source, badge)]
        left, right = part.shown or fold_names(part.lhs, part.rhs, names)
        return [Line("" if part.chained else left, part.sign, right, note, part.source, badge)]
    if isinstance(part, Inequality):
        return [Line(latex(part.small), "<", latex(part.large), part.rule, part.source, badge)]
    if isinstance(part, Agreement) and part.shown:
        return [Line(latex(left), "=", latex(right)) for left, right in part.derived.rows()]
    return []


def _written_out(side: Any, where: Mapping[Symbol, Expr]) -> Any:
    """`written_out`, of every entry of a matrix."""
    if of_any_size(side):
        return side.subs(dict(where))
    if isinstance(side, MatrixBase | MatrixExpr):
        return explicit(side).applyfunc(lambda e: written_out(e, where)) if where else side
    return written_out(side, where)
