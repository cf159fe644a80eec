"""|l - r| <= err(l) + err(r) at every point tried, with l and r known to the digits that are promised: else they differ.

Agreement is relative to the sides themselves: what the sides have in common is taken away first, the precision is raised
until each has its digits, and two zeros agree on nothing. Points are counted, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from random import Random
from typing import Any, NamedTuple

from sympy import Add, DiracDelta, Expr, Integral, Pow, Rational, S, Sum, expand
from sympy.core.function import UndefinedFunction

from hermitex.errors import BadInput, BudgetExceeded, Divergent, HermitexError
from hermitex.symbolic.arithmetic import fabs, isfinite, log10, mp
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.calculus import rules, trials
from hermitex.symbolic.calculus.points import Point, Points, ranges, too_large
from hermitex.symbolic.calculus.trials import Trial
from hermitex.symbolic.calculus.verdict import AGREES, FAILS, OPEN, Check, CounterExample
from hermitex.symbolic.calculus.weightless import weightless
from hermitex.symbolic.digits.panels import nested
from hermitex.symbolic.digits.spans import as_averages
from hermitex.symbolic.existence import require_existence
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.lawful import Condition
from hermitex.symbolic.precise import evaluate_with_error, in_plane
from hermitex.symbolic.terms import linear
from hermitex.symbolic.undefined import derivative_order, put, undefined_functions

DEEP = 60  # digits where no integral is left
DEEPER = 125  # digits of a constant: as far as `zero.decide` looks
ROUGH = 8  # digits that most wrong claims differ in: tried before all of them are paid for
FEW = 5  # digits that tell whether another formula holds beyond a turn, where more take too long
PLANE, SPACE = 12, 8  # digits that integrals over two variables, and over more, are worth
SHALLOW = 60  # binary digits that are added at first where terms cancel
SLACK = 3  # the last digits, which errors may take
LONG = 300  # operations above which an elementary claim is tried at fewer points
_THIN = Rational(1, 10**6)  # a range of a parameter that no draw falls into
GIVEN_UP = 3  # seconds of processor time after which a point far out is left
_INTEGRALS = (Expectation, Integral, Sum)
_SHRINK = (S.One, Rational(1, 2), Rational(1, 5), Rational(1, 20))
MIXED = 12  # draws of which each parameter has a size of its own, where no common one makes a covariance

NEAR, FAR, TURN = "near", "far", "turn"
Functions = Mapping[UndefinedFunction, Trial]


class Sides(NamedTuple):
    """Both sides at a point, the digits they were asked for, and the digits in which they agree (None: they differ)."""

    left: Any
    right: Any
    asked: int
    agree: int | None

    @property
    def nothing(self) -> bool:
        """Both are 0, as far as can be seen."""
        return self.agree == 0 and self.asked > 0


LEFT = Sides(None, None, 0, 0)  # a point that took too long


@dataclass
class Tried:
    """Where the sides were tried, and how far they agree."""

    digits: int
    points: list[Point] = field(default_factory=list)
    functions: dict[str, None] = field(default_factory=dict)
    zeros: int = 0
    left: int = 0
    unturned: list[Point] = field(default_factory=list)  # about a turn, and left: another formula may hold there

    def words(self) -> str:
        """The points, their ranges, and the functions."""
        count = len(self.points)
        said = f"{count} point{'s' if count != 1 else ''}"
        if any(self.points):
            said += f", {ranges(self.points)}"
        if self.functions:
            names = list(self.functions)
            more = f" and {len(names) - 3} more" if len(names) > 4 else ""
            said += f"; with {', '.join(names if not more else names[:3])}{more}"
        if self.zeros:
            said += f"; both are 0 at {self.zeros} more"
        if self.left:
            said += f"; {self.left} far out left as too long"
        return said


class Test:
    """Both sides at points: parameters by rational numbers, undefined functions by concrete ones."""

    def __init__(self, left: Expr, right: Expr, digits: int, needed: Sequence[Condition] = ()) -> None:
        self.sides, self.digits = (left, right), digits
        # Only what is a law is tried; that probabilities add up to 1 no draw meets.
        self.lawful = [(c.value, c.interval) for c in needed if c.interval.measure > _THIN]
        self.parts = apart(left, right)
        self.parameters = sorted(left.free_symbols | right.free_symbols, key=lambda s: s.name)
        self.functions = tuple(sorted({*undefined_functions(left), *undefined_functions(right)}, key=lambda f: f.__name__))
        self.points = Points(self.sides, self.parameters)
        self.elementary = not any(p.has(*_INTEGRALS) for p in self.parts)
        self.several = max(map(trials.widest, self.parts)) > 1
        self.levels = tuple(dict.fromkeys(v for p in self.parts for v in trials.levels_of(p))) if self.functions else ()
        self.long = sum(p.count_ops() for p in self.parts) > LONG
        self.skipped, self.agreed = "", False  # `agreed`: at some point, before one at which they differ

    @cached_property
    def exact(self) -> tuple[Expr, Expr] | None:
        """Exact values serve far out, where sums over many nodes take long; near 1 the sides are tried as they stand."""
        return exact_values(*self.sides)

    # -- the run ---------------------------------------------------------------------------------------------------
    def run(self, points: int) -> Check:
        """The first point at which the sides differ, or the agreement reached at all of them."""
        left, right = self.sides
        tried = Tried(self.digits)
        if not self.parameters and not self.functions:
            points = 1
        for parameters, functions, kind in self._plan(points, tried):
            checkpoint("testing an equality at random points")
            if kind == NEAR:
                found = self.at(parameters, functions, rough=not tried.points)
                if found is not None and found.nothing and self.exact is not None:  # of E 1(z > 40) they show more
                    found = self.at(parameters, functions, parts=self.exact) or found
            elif kind == FAR and tried.left >= 2:
                continue
            else:
                found = self._bounded(parameters, functions)
                for few in (PLANE, FEW) if kind == TURN else ():  # another formula may hold there
                    if found is LEFT:
                        found = self._bounded(parameters, functions, few)
                if found is LEFT:
                    if kind == TURN:
                        tried.unturned.append(dict(parameters))
                    else:
                        tried.left += 1
                    continue
            if found is None:
                continue
            if found.agree is None:
                self.agreed = bool(tried.points)
                chosen = {f.__name__: t.text for f, t in functions.items()}
                example = CounterExample(chosen, {s.name: v for s, v in parameters.items()}, found.left, found.right)
                return Check(left, right, FAILS, "", None, example)
            if found.nothing:
                tried.zeros += 1
            elif kind == NEAR or found.agree >= self.digits - SLACK:  # one far out with fewer digits shows nothing
                tried.digits = min(tried.digits, found.agree)
                tried.points.append(dict(parameters))
                tried.functions.update({t.text: None for t in functions.values()})
        return self._verdict(tried, points)

    def _verdict(self, tried: Tried, points: int) -> Check:
        left, right = self.sides
        if not tried.points:
            why = f": {self.skipped}" if self.skipped else ""
            if tried.zeros:
                why = f"both sides are 0 wherever they were tried ({tried.zeros} points), which is no agreement"
            return Check(left, right, OPEN, why if tried.zeros else f"no point could be evaluated{why}")
        if tried.digits < self.digits - SLACK:
            how = (f"the sides agree to {tried.digits} digits where they were tried, and {self.digits} are asked "
                   f"({tried.words()}); ask for digits={tried.digits} if these are enough")
            return Check(left, right, OPEN, how, tried.digits)
        if tried.unturned:
            how = (f"the sides agree to {tried.digits} digits ({tried.words()}), but about a place where they may turn it takes "
                   f"too long to try them, or too large numbers ({ranges(tried.unturned)})")
            return Check(left, right, OPEN, how, tried.digits)
        if len(tried.points) < points:
            return Check(left, right, OPEN, f"{tried.words()}: fewer than the {points} asked could be evaluated"
                                            f"{': ' + self.skipped if self.skipped else ''}", tried.digits)
        part = weightless(self.parts, tried.points, self.deepest if self.elementary else tried.digits)
        if part is not None:
            how = (f"the sides agree to {tried.digits} digits ({tried.words()}), and none of these depends on the {part} "
                   "that stands in them: they would agree with another in its place")
            return Check(left, right, OPEN, how, tried.digits)
        return Check(left, right, AGREES, tried.words(), tried.digits, points=len(tried.points))

    def _plan(self, count: int, tried: Tried) -> Iterator[tuple[Point, Functions, str]]:
        """Near 1 until enough are evaluated; then of all sizes; then on both sides of the turns."""
        for i in range(4*count if self.parameters or self.functions else 1):
            if len(tried.points) >= count:
                break
            yield from self._one(self.points.near, i, NEAR)
        if not self.parameters and not self.functions:
            return
        for i in range(self._extra(count)):
            yield from self._one(self.points.far, i, FAR)
        for i in range(2 if self.elementary and not self.long else 1):
            functions = self.assignment(count + i)
            concrete = [put(p, {f: t.build for f, t in functions.items()}) for p in self.parts]
            found = list(self.points.turns(concrete, i))
            most = len(found) if self.elementary and not self.long else 6
            for parameters in found[:most]:
                if self._admissible(parameters):
                    yield parameters, functions, TURN
                elif any(too_large(side, parameters) for side in self.sides):
                    tried.unturned.append(parameters)

    def _extra(self, count: int) -> int:
        if not self.elementary:
            return min(count, 2)
        if self.long:
            return count
        degrees = [p.as_poly(*self.parameters) for p in self.parts] if self.parameters else []
        return 6*count + 2*min(60, max((p.total_degree() for p in degrees if p), default=0))

    def _one(self, draw: Callable[[int, Expr], Point], i: int, kind: str) -> Iterator[tuple[Point, Functions, str]]:
        """The i-th draw; one that is not admissible is drawn nearer to 1, or to 0, and then with a size for each parameter."""
        tries = [partial(draw, i, shrink) for shrink in _SHRINK]
        if self.points.correlations:
            tries += [partial(self.points.mixed, draw(i, S.One), MIXED*i + k) for k in range(MIXED)]
        for made in tries:
            parameters = made()
            if self._admissible(parameters):
                yield parameters, self.assignment(i + 4*(kind == FAR)), kind
                return

    def assignment(self, i: int) -> dict[UndefinedFunction, Trial]:
        """A function for each undefined one, smooth enough for the derivatives that occur."""
        out = {}
        for n, f in enumerate(self.functions):
            order = max(derivative_order(side, f) for side in self.sides)
            out[f] = (trials.plain(n, order, several=self.several) if i == 0 else
                      trials.drawn(Random(101*i + n), i + n, order, several=self.several, levels=self.levels))
        return out

    # -- one point -------------------------------------------------------------------------------------------------
    def at(self, parameters: Point, functions: Functions, digits: int | None = None, *, deep: bool = True,
           parts: tuple[Expr, Expr] | None = None, confirm: bool = True, rough: bool = False) -> Sides | None:
        """Both sides at one point, or what stands for them; None where one of them cannot be evaluated.

        `rough`: a few digits are asked first, which may refute; agreement always takes all of them.
        """
        chosen = {f: t.build for f, t in functions.items()}
        try:
            concrete = [reduced(as_averages(put(p.xreplace(parameters), chosen))) for p in parts or self.parts]
            nodes = [n for e in concrete for n in e.atoms(Expectation)]
            if not all(map(has_law, nodes)):
                return None
            wanted = digits or self._depth(concrete, bool(parameters or functions))
            asked = min(wanted, *map(affordable, concrete))
            # Of functions drawn at random, two values that cancel to 0 are passed over.
            found = None
            if rough and asked > ROUGH and any(e.has(*_INTEGRALS) for e in concrete):
                found = compare(concrete, ROUGH, deep=False, zeros=False)
            if found is None or found.agree is not None:
                if asked == PLANE and all(on_grids(e, wanted) for e in concrete):
                    asked = wanted
                found = compare(concrete, asked, deep=deep, zeros=not functions, confirm=confirm)
        except BudgetExceeded:
            raise
        except (HermitexError, ValueError, ArithmeticError, TypeError, AttributeError, NotImplementedError) as error:
            self.skipped = str(error).splitlines()[0] if str(error) else type(error).__name__
            if isinstance(error, Divergent) and (integrals := set().union(*(p.atoms(Integral) for p in self.parts))):
                self.skipped = (f"{min(map(str, integrals))} does not converge absolutely, and only what does is integrated in "
                                "numbers; put its value in, if you know one")
            return None
        if found is not None and found.agree is None and parts is None and self.parts != self.sides:
            return self._as_written(parameters, chosen, found)
        return found

    def _depth(self, concrete: list[Expr], moving: bool) -> int:
        if any(e.has(*_INTEGRALS) for e in concrete):
            return self.digits + 2
        return max(self.digits + 2, DEEP if moving else DEEPER)

    @property
    def deepest(self) -> int:
        """The digits compared where no integral is left."""
        return max(self.digits, DEEP if self.parameters or self.functions else DEEPER)

    def _as_written(self, parameters: Point, chosen: Mapping[Any, Any], found: Sides) -> Sides:
        """The sides as they were given, where they can be shown to the digits in which they differ."""
        try:
            left, right = (real(put(side.xreplace(parameters), chosen), 12)[0] for side in self.sides)
        except (HermitexError, ValueError, ArithmeticError, TypeError):
            return found
        return Sides(left, right, found.asked, None) if fabs(left - right) > fabs(left)*mp.mpf(10)**-8 else found

    def _bounded(self, parameters: Point, functions: Functions, digits: int | None = None) -> Sides | None:
        """A point far out, which is left if it takes long: it is then said to be left, and shows nothing."""
        try:
            with effort(GIVEN_UP):
                if self.exact is not None and not self.elementary and digits is None:
                    found = self.at(parameters, functions, parts=self.exact)
                    if found is not None:
                        return found if found.agree is not None else self._differ(found, parameters, functions)
                return self.at(parameters, functions, digits, deep=self.elementary)
        except BudgetExceeded:
            checkpoint("testing an equality at random points")  # the caller's own budget
            return LEFT

    def _differ(self, exact: Sides, parameters: Point, functions: Functions) -> Sides:
        """Exact values that differ, as they must by less than the sides themselves show where these agree."""
        try:
            given = self.at(parameters, functions, PLANE, deep=False, confirm=False)
        except BudgetExceeded:
            return exact
        if given is None or not given.agree:
            return exact
        size = max(fabs(given.left), fabs(given.right))
        return exact if fabs(exact.left - exact.right) <= size*mp.mpf(10)**(1 - given.agree) else given

    def _admissible(self, parameters: Point) -> bool:
        return all(value.xreplace(parameters) in interval for value, interval in self.lawful) and all(
            not too_large(side, parameters) and _is_real_at(side, parameters) for side in self.sides)


def _is_real_at(side: Expr, parameters: Point) -> bool:
    try:
        put_in = side.xreplace(parameters)
    except BadInput:  # the numbers make no covariance
        return False
    return put_in.is_finite is not False and put_in.is_real is not False and all(
        map(has_law, put_in.atoms(Expectation))) and not any(
        p.is_Pow and p.exp.is_Rational and p.exp.q % 2 == 0 and p.base.is_negative
        for e in (put_in, *(n.body for n in put_in.atoms(Expectation))) for p in e.atoms(Pow))


def has_law(node: Expectation) -> bool:
    """False where the numbers that were put in make the covariance indefinite."""
    cov = node.covariance
    if node.independent or cov.free_symbols:
        return True
    return not any(cov[:k, :k].det().is_negative for k in range(1, cov.rows + 1)) and all(
        not cov[i, i].is_negative for i in range(cov.rows))


# -- both sides as numbers ---------------------------------------------------------------------------------------------
def apart(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """The sides without their common terms; where nothing is left on one, the terms with a minus are carried over."""
    one, other = without_common(left, right)
    return carried(one, other) if (one == 0) != (other == 0) else (one, other)


def without_common(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """The sides without their common terms."""
    ours, theirs = list(Add.make_args(left)), list(Add.make_args(right))
    for term in list(ours):
        if term in theirs and term in ours:
            ours.remove(term)
            theirs.remove(term)
    return Add(*ours), Add(*theirs)


def carried(one: Expr, other: Expr) -> tuple[Expr, Expr]:
    """The terms with a minus of what stands on one side only, on the other."""
    whole = other if one == 0 else one
    terms = Add.make_args(whole)
    if len(terms) < 2:
        split = expand(whole.replace(lambda e: isinstance(e, Expectation), linear))
        terms = Add.make_args(split) if _exist(split) else terms
    minus = [t for t in terms if t.could_extract_minus_sign()]
    plus = [t for t in terms if not t.could_extract_minus_sign()]
    return (Add(*plus), -Add(*minus)) if plus and minus else (one, other)


def exact_values(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    """Both sides by closed forms, with nothing left to integrate; None where they have none, or need none."""
    from hermitex.symbolic.integrals import normal_form

    if not (left.has(Expectation) or right.has(Expectation)):
        return None
    try:
        values = normal_form(left), normal_form(right)
    except HermitexError:
        return None
    if any(v.has(*_INTEGRALS) for v in values):
        return None
    # What is a single term on one side, and 0 on the other, is no difference: of 1/2 - erf(30)/2 all digits are asked.
    return without_common(*values) if 0 in apart(left, right) else apart(*values)


def _exist(expr: Expr) -> bool:
    try:
        for node in expr.atoms(Expectation):
            require_existence(node)
    except Divergent:
        return False
    return True


def reduced(expr: Expr) -> Expr:
    """Averages over several variables as closed forms, or over fewer variables, where they are found; deltas by their mass."""
    from hermitex.symbolic.integrals import normal_form

    if expr.has(DiracDelta):
        expr = rules.everywhere(rules.sift, expr) or expr
    if trials.widest(expr) < 2:
        return expr
    ways: tuple[Callable[[Expr], Expr | None], ...] = (
        normal_form, partial(rules.everywhere, rules.mehler), partial(rules.everywhere, rules.stein))
    for fewer in ways:
        found = fewer(expr)
        if found is not None and trials.widest(found) < trials.widest(expr):
            expr = found

    def one(node: Expectation) -> Expr:
        if not has_law(node) or (len(node.bound) < 2 and node.independent):
            return node
        line = nested(node)
        return node if line.has(Expectation) and trials.widest(line) > 1 else line

    tops = {n: one(n) for n in expr.atoms(Expectation) if not n.free_symbols}
    return expr.xreplace({n: line for n, line in tops.items() if line != n})


def affordable(expr: Expr) -> int:
    """The digits to which an expression is evaluated: all, unless integrals over several variables are left in it."""
    wide = trials.widest(expr)
    return 10**6 if wide < 2 else PLANE if wide == 2 else SPACE


def on_grids(expr: Expr, digits: int) -> bool:
    """Are all averages over two variables known to so many digits, since they are smooth?"""
    return all(trials.widest(node) < 2 or in_plane(node, digits) for node in expr.atoms(Expectation))


def compare(sides: list[Expr], asked: int, *, deep: bool, zeros: bool, confirm: bool = True) -> Sides | None:
    """The sides as numbers with their errors; that they differ is believed only if more digits say so too.

    `deep`: much precision is added where terms cancel; `zeros`: also where nothing at all is left of them; `confirm`: a
    difference is looked at again in more digits.
    """
    (left, e), (right, d) = (real(side, asked, SHALLOW) for side in sides)
    if not (isfinite(left) and isfinite(right)):
        return None
    size, error = max(fabs(left), fabs(right)), e + d
    if deep and fabs(left - right) <= 8*error and error > size*mp.mpf(10)**(1 - asked) and (zeros or size > 4*error):
        (left, e), (right, d) = (real(side, asked) for side in sides)
    gap, size, error = fabs(left - right), max(fabs(left), fabs(right)), e + d
    if size <= 4*error:
        return Sides(left, right, asked, 0)
    if gap > 8*error and not confirm:
        return Sides(left, right, asked, None)
    if gap > 8*error:
        more = 2 if asked > PLANE and max(map(trials.widest, sides)) > 1 else 10  # other grids, of nearly the same size
        (left, e), (right, d) = (real(side, asked + more, SHALLOW) for side in sides)
        again, error = fabs(left - right), e + d
        if again > 8*error and gap < 2*again < 4*gap:
            return Sides(left, right, asked, None)
        gap = again
    with mp.workdps(15):
        lost = max(gap, error)/size
    return Sides(left, right, asked, asked if not lost else max(1, min(asked, int(-log10(lost)))))


def real(expr: Expr, digits: int, against_cancellation: int | None = None) -> tuple[Any, Any]:
    """(value, error)."""
    value, error = (evaluate_with_error(expr, digits) if against_cancellation is None else
                    evaluate_with_error(expr, digits, against_cancellation=against_cancellation))
    return mp.own(value), mp.own(mp.convert(error))
