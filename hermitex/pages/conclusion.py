"""premise_1, ..., premise_n => lhs = rhs: a conclusion that holds, follows from its premises, and needs each of them.

An average, a derivative or a limit that is written out counts as one letter. Each premise is then an equation of algebra, which is
solved for one letter and substituted. A conclusion follows if its two sides then agree. A premise is needed if they do not agree
without it. The conclusion has the verdict of its weakest premise. A premise that leaves something open has a letter o of its own,
which is never solved for: f ~ g is f = g(1 + o), f = g + O(h) is f = g + o h, and f < g is g - f = o > 0. A claim a ~ b follows if
it holds for o = 0 and the slope of a/b there is bounded.

The package's object is a formula, which must equal the right side; a System; or a function. The function takes the value of the
code, solves it, and returns numbers. At these numbers the conclusion must hold, and at moved numbers it must fail. The code is
evaluated, and must give the compared object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Derivative as OfExpression
from sympy import Dummy, Expr, Float, Integral, Limit, MatrixBase, MatrixExpr, Order, S, Subs, Symbol
from sympy import Equality as Implicit
from sympy.core.function import AppliedUndef, UndefinedFunction

from hermitex.check.claim import Check, check
from hermitex.check.normal import is_long, short
from hermitex.errors import BadInput
from hermitex.pages.checked import AGREES, FAILS, OPEN, PROVED, TESTED, Checked, digits_of
from hermitex.pages.page_entries import FEWEST, Agreement, Equality, Fact, Inequality, sign_of
from hermitex.pages.typed_object import typed_object
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.precise import evaluate_with_error
from hermitex.symbolic.undefined import put, undefined_functions
from hermitex.systems.scope import written_out
from hermitex.systems.system import System

_LETTERS = (Expectation, OfExpression, Subs, Limit, Integral, AppliedUndef)
_OPEN = "open "   # no name of a page begins so
Equation = tuple[Expr, Expr]


@dataclass(frozen=True)
class Conclusion:
    """lhs = rhs for every pair, from the premises `by`; `package`: {what one types: what it gives} or nothing.

    `to`: {x: 0}, the sides are equal asymptotically; `less`: lhs < rhs.
    """

    pairs: tuple[Equation, ...]
    by: tuple[Any, ...]
    package: Mapping[str, Any]
    words: str = ""
    system: System | None = None
    rule: str = "conclusion"
    to: Mapping[Any, Any] | None = None
    less: bool = False
    none: bool = False   # it says that the package has no object for it

    @property
    def sign(self) -> str:
        """As it is printed between the sides."""
        return "<" if self.less else sign_of(self.to)

    def checked(self, where: Mapping[Symbol, Expr]) -> Checked:
        """True if it holds, follows from its premises, needs each of them, and is in the package."""
        agreements = [p for p in self.by if isinstance(p, Agreement)]
        if agreements or self.system is not None:
            return self._of_a_system(agreements)
        found = [self._one(pair, where) for pair in self.pairs if not self._names(pair, where)]
        if (failed := next((one for one in found if not one), None)) is not None:
            return Checked(self.rule, FAILS, example=f"it does not hold: {failed!r}".replace("\n", " "))
        if wrong := self._unfounded(where) or self._elsewhere(where):
            return Checked(self.rule, FAILS, example=wrong)
        reached = [self._solved(name, one, where) for name, one in self.package.items() if not isinstance(one, Expr)]
        if reached:
            bad = next((one for one in reached if isinstance(one, str)), None)
            if bad is not None:
                return Checked(self.rule, FAILS, example=bad)
            return Checked(self.rule, TESTED, min(int(one) for one in reached), "it follows, and the package solves it")
        digits = [one.digits for one in found if one.status == AGREES and one.digits is not None]
        points = [one.points for one in found if one.points is not None]
        if not digits:
            return Checked(self.rule, PROVED, how="it follows from its premises")
        return Checked(self.rule, AGREES, min(digits), "it follows from its premises", points=min(points, default=None))

    def _one(self, pair: Equation, where: Mapping[Symbol, Expr]) -> Check | Checked:
        """The verdict on one of its claims alone."""
        if self.less:
            at = tuple(point for p in self.by if isinstance(p, Inequality) for point in p.at)
            return Inequality(self.rule, *pair, at=at).checked(where)
        return _holds(written_out(pair[0], where), written_out(pair[1], where), self.to)

    def resting_on(self, premises: Sequence[Checked], found: Checked) -> Checked:
        """What came of the conclusion, no better than what came of its premises."""
        if not found or not premises:
            return found
        bad = next((p for status in (FAILS, OPEN) for p in premises if p.status == status), None)
        if bad is not None:
            said = f"the premise {bad!r}".replace("\n", " ")
            return Checked(self.rule, bad.status, how="" if bad.status == FAILS else said, example=said)
        every = [found, *premises]
        status = next(s for s in (TESTED, AGREES, PROVED) if any(one.status == s for one in every))
        if status == PROVED:
            return found
        digits = [one.digits for one in every if one.digits is not None]
        points = [one.points for one in every if one.points is not None]
        return Checked(self.rule, status, min(digits, default=None), found.how, points=min(points, default=None))

    def _names(self, pair: Equation, where: Mapping[Symbol, Expr]) -> bool:
        """Is the left side a letter that only a premise gives a value?"""
        return isinstance(pair[0], Symbol) and pair[0] not in where

    def _unfounded(self, where: Mapping[Symbol, Expr]) -> str:
        """Why it does not follow, or which premise is not needed; nothing where all is well."""
        named = [(p, equation) for i, p in enumerate(self.by) if (equation := _equation(p, where, f"{_OPEN}{i}")) is not None]
        premises = [equation for _, equation in named]
        if matrix := next((p for p in self.by if isinstance(p, Equality) and _matrices(p)), None):
            return f"the premise {matrix.rule} is one of matrices; write the entry that is used as a step of its own"
        if not premises:
            return "it names no premise that is a formula"
        claims = _as_letters(premises, self.pairs)
        equations, goals = claims[:len(premises)], claims[len(premises):]
        if (left := self._left_over(equations, goals)) is not None:
            sign = "<" if self.less else "=" if self.to is None else "~"
            open_claim = f"{self.pairs[left][0]} {sign} {self.pairs[left][1]}"
            return (f"it does not follow from the premises that it names: {open_claim} is left; a premise at special values is a "
                    "step of its own")
        for i, (p, (a, b)) in enumerate(named):
            if self._left_over(equations[:i] + equations[i + 1:], goals) is None:
                return f"the premise {p.rule if isinstance(p, Inequality) else f'{a} = {b}'} is not used"
        return ""

    def _left_over(self, equations: Sequence[Equation], goals: Sequence[Equation]) -> int | None:
        """Which goal does not follow by solving each equation for a letter and putting it in; None if all do."""
        gaps, aims = [a - b for a, b in equations], list(goals)
        for i in range(len(gaps)):
            value = _value(gaps[i], equations[i][0])
            gaps = gaps[:i + 1] + [g.xreplace(value) for g in gaps[i + 1:]]
            aims = [(a.xreplace(value), b.xreplace(value)) for a, b in aims]
        return next((k for k, (a, b) in enumerate(aims) if not self._follows(a, b)), None)

    def _follows(self, left: Expr, right: Expr) -> bool:
        """Does one of its claims hold, after the premises were put in?"""
        if self.less:
            return bool((right - left).factor().is_positive)
        gap = left - right
        if self.to is not None:
            (x, at), = self.to.items()
            still = {o: S.Zero for o in gap.free_symbols if o.name.startswith(_OPEN)}
            slopes = [short((left/right).diff(o).subs(still)) for o in still]
            left, right = left.subs(still), right.subs(still)
            return (short(left - right) == 0 or bool(check(left, right, to=self.to))) and all(
                e == 0 or bool(check(e, Order(1, (x, at)))) for e in slopes)
        if (gap if is_long(gap) else gap.expand()) == 0:
            return True
        return bool(check(left, right) if right.has(Order) or is_long(gap) else check(gap, 0))

    def _elsewhere(self, where: Mapping[Symbol, Expr]) -> str:
        """The reason if the package's object differs, or cannot be compared."""
        if fact := next((p for p in self.by if isinstance(p, Fact)), None):
            return f"the premise {fact.rule} is not used: a test cannot be a premise; the package's object is compared separately"
        formulas = [(name, one) for name, one in self.package.items() if isinstance(one, Expr)]
        if formulas and len(self.pairs) not in (len(formulas), len(self.package)):
            return f"{len(formulas)} objects of the package for {len(self.pairs)} equations"
        objects = formulas if len(formulas) == len(self.pairs) else list(self.package.items())
        for (name, one), (_, right) in zip(objects, self.pairs, strict=False):
            if isinstance(one, Expr) and not (found := _holds(one, written_out(right, where), self.to)):
                return f"{name} is not the right side: {found!r}".replace("\n", " ")
        for name, one in formulas:
            given = self._given(name, where)
            if not isinstance(given, Expr) or not (given == one or check(given, one)):
                return f"{name} gives a formula that differs from the one that is compared: {given!r}".replace("\n", " ")
        other = next((n for n, one in self.package.items() if not isinstance(one, Expr) and not _runs(one)), None)
        return f"{other} gives neither a formula nor a function that returns numbers" if other else ""

    def _given(self, name: str, where: Mapping[Symbol, Expr]) -> Any:
        """What the text gives, with the letters of the conclusion and of its premises."""
        premises = [one for one in (_equation(p, where) for p in self.by) if one is not None]
        known = [*where, *where.values(), *(e for pair in (*self.pairs, *premises) for e in pair)]
        letters: dict[str, Any] = {str(x): x for e in known for x in e.atoms(Symbol)}
        return typed_object(name, letters | {str(f): f for e in known for f in undefined_functions(e)})

    def _solved(self, name: str, run: Callable[[Any], Any], where: Mapping[Symbol, Expr]) -> int | str:
        """The digits to which the equations hold at the package's numbers, or what is wrong with them."""
        if self.less or self.to is not None or any(right.has(Order) for _, right in self.pairs):
            return f"{name} gives numbers, but this is not an equality at a point; give what returns a formula, or package=None"
        said = run(self._given(name, where))
        at, right = said if isinstance(said, tuple) else (said, None)
        if not isinstance(at, Mapping) or (right is not None and len(right) != len(self.pairs)):
            return f"{name} returned {said!r}, not {{letter: number}}, with a number for each right side where it gives those"
        names = {k: v for k, v in where.items() if k not in at}
        sides = [[written_out(e, names) for e in pair] for pair in self.pairs]
        if right is not None:
            sides = [[b, _number(v)] for (_, b), v in zip(sides, right, strict=True)]
        held = {u for pair in sides for e in pair for u in {*e.free_symbols, *undefined_functions(e)}}
        if lost := sorted(map(str, (held - set(at)) | (set(at) - held))):
            return f"{name} and the conclusion do not contain the same letters: {', '.join(lost)}"
        worst = max(_gap(*_at(pair, at)) for pair in sides)
        if not worst < 10.0**-FEWEST:
            return f"it does not hold at the numbers of {name}: the sides are {worst:.1e} apart"
        moved = [{**at, u: 1.01*v + 0.001} for u, v in at.items() if not isinstance(u, UndefinedFunction)]
        numbers = moved or [dict(at)]
        if (moved or right is None) and all(max(_gap(*_at(pair, one)) for pair in sides) < 10.0**-FEWEST for one in numbers):
            return f"it holds at other numbers than those of {name} too: nothing is compared"
        return digits_of(worst)

    def _of_a_system(self, agreements: Sequence[Agreement]) -> Checked:
        """The system, or some of its equations, that was compared with the derivation of the page."""
        if len(agreements) != 1 or any(isinstance(p, Equality | Symbol) for p in self.by):
            return Checked(self.rule, FAILS, example="a system follows from the one premise that it is what was derived")
        used = agreements[0].used
        same = self.system is None or (self.system.equations == used.equations and self.system.where == used.where)
        implicit = [(v.lhs, v.rhs) for v in used.equations.values() if isinstance(v, Implicit)]
        lost = [u for u, v in self.pairs if used.equations.get(u) != v and (u, v) not in implicit]
        if not same or lost:
            said = f"the equation of {lost[0]}" if lost else "the system"
            return Checked(self.rule, FAILS, example=f"{said} is not that of the premise {agreements[0].rule}")
        others = [n for n, one in self.package.items() if not (_is(one, used) and _is(self._given(n, {}), used))]
        if others or not self.package:
            said = f"{others[0]} has other equations" if others else "it names no object of the package"
            return Checked(self.rule, FAILS, example=said)
        return Checked(self.rule, PROVED, how="letter by letter")


def _holds(left: Expr, right: Expr, to: Mapping[Any, Any] | None = None) -> Check:
    """True if it is an equality. Integrals on both sides need not be evaluated if it holds for any value of them."""
    if left != right and (to is not None or right.has(Order)):   # of one expression that holds, too
        return check(left, right, to=to)
    around = [node for side in (left, right) for node in side.atoms(OfExpression, Subs, Limit)]  # they may bind its letters
    both = left.atoms(Integral) & right.atoms(Integral)
    letters = {e: Dummy(real=True) for e in both if not any(node.has(e) for node in around)}
    if letters and (found := check(left.xreplace(letters), right.xreplace(letters))):
        return found
    return check(left, right)


def _is(one: Any, used: System) -> bool:
    """Does it have the equations and the names of `used`?"""
    return getattr(one, "equations", None) == used.equations and dict(getattr(one, "where", {})) == dict(used.where)


def _runs(one: Any) -> bool:
    """Is it a function that asks for one argument? Neither a theory nor what makes one is."""
    code = getattr(one, "__code__", None)
    return code is not None and code.co_argcount - len(one.__defaults__ or ()) == 1 and not code.co_kwonlyargcount


def _number(value: Any) -> Expr:
    return value if isinstance(value, Expr) else Float(float(value))


def _at(pair: Sequence[Expr], at: Mapping[Any, Any]) -> list[float]:
    """Both sides at these numbers, with these functions."""
    functions = {f: g for f, g in at.items() if isinstance(f, UndefinedFunction)}
    letters = {x: _number(v) for x, v in at.items() if x not in functions}
    made = []
    for e in pair:
        for f, g in functions.items():
            e = put(e, {f: g})
        made.append(float(evaluate_with_error(e.subs(letters), 15)[0]))
    return made


def _gap(one: float, other: float) -> float:
    """How far apart, relative to the larger."""
    return abs(one - other)/max(abs(one), abs(other), 1e-300) if one != other else 0.0


def _matrices(step: Equality) -> bool:
    """True if a side of the step is a matrix."""
    return any(isinstance(side, MatrixBase | MatrixExpr) for side in (step.lhs, step.rhs))


def _equation(premise: Any, where: Mapping[Symbol, Expr], left_open: str = "") -> Equation | None:
    """lhs = rhs of a step, name = value of a name; nothing of words and of tests. `left_open` names what it leaves open."""
    if isinstance(premise, Symbol):
        return premise, where[premise]
    if isinstance(premise, Equality) and not _matrices(premise):
        left, right = (premise.name, premise.lhs) if premise.name is not None else (premise.lhs, premise.rhs)
        if premise.to is not None:
            return left, right*(1 + Symbol(left_open, real=True))
        order = right.getO()
        return left, right if order is None else right.removeO() + Symbol(left_open, real=True)*order.expr
    if isinstance(premise, Inequality):
        return premise.large - premise.small, Symbol(left_open, positive=True)
    return None


def _as_letters(premises: Sequence[Equation], claims: Sequence[Equation]) -> list[Equation]:
    """The same with one letter for every average, derivative, limit and value of a function."""
    letters: dict[Expr, Expr] = {}

    def letter(e: Expr) -> Expr:
        return letters.setdefault(e, Dummy(f"n{len(letters)}", real=True))

    def one(e: Expr) -> Expr:
        if isinstance(e, _LETTERS):
            return letter(e)
        return e.func(*map(one, e.args)) if e.args and e.has(*_LETTERS) else e

    return [(one(a), one(b)) for a, b in (*premises, *claims)]


def _value(gap: Expr, left: Expr) -> dict[Expr, Expr]:
    """A letter in which the equation is linear by what it is: one for an average first, then a name on its left side."""
    if isinstance(left, Symbol) and not (rest := left - gap).has(left):   # a name, as it is defined: nothing is multiplied out
        return {left: rest}
    gap = gap.expand()
    dummies = sorted(gap.atoms(Dummy), key=lambda s: s.name)
    names = sorted(left.free_symbols - set(dummies), key=str)
    for s in (*(d for d in dummies if left.has(d)), *dummies, *names):
        slope = gap.coeff(s)
        if slope != 0 and not slope.has(s) and not (rest := gap - slope*s).expand().has(s):
            return {s: (-rest/slope).expand()}
    return {}


def premises_of(by: Sequence[Any], parts: Sequence[Any], names: Mapping[Symbol, Expr]) -> tuple[Any, ...]:
    """Return `by` if each of these premises is on the page."""
    for p in by:
        if p not in names if isinstance(p, Symbol) else not any(p is q for q in parts):
            raise BadInput(f"a premise is a step, a name, a test or an assumption of this page, not {p!r}")
        if isinstance(p, Equality | Agreement) and p.misprint:
            raise BadInput(f"{p.rule} is what does not hold, and no premise")
    return tuple(by)
