"""|l - r| <= err(l) + err(r) at every point tried, with l and r known to the digits that are promised: else they differ.

Agreement is relative to the sides themselves: what the sides have in common is taken away first, the precision is raised
until each has its digits, and two zeros agree on nothing. Points and steps of work are counted, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from random import Random
from typing import Any

from sympy import DiracDelta, Dummy, Expr, Integral, Pow, Product, Rational, S, Sum, Symbol
from sympy.core.function import UndefinedFunction
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.errors import BadInput, BudgetExceeded, Divergent, HermitexError, first_line
from hermitex.symbolic.arithmetic import fabs, mp
from hermitex.symbolic.budget import checkpoint, work
from hermitex.symbolic.calculus import trials
from hermitex.symbolic.calculus.paper import plain
from hermitex.symbolic.calculus.points import Point, Points, ranges, too_large
from hermitex.symbolic.calculus.seen import Pair, Place, regions, unseen
from hermitex.symbolic.calculus.sides import (
    DEEP,
    DEEPEST,
    INTEGRALS,
    NO_DIGITS,
    PLANE,
    ROUGH,
    Sides,
    affordable,
    apart,
    compare,
    exact_values,
    half_real,
    has_law,
    on_grids,
    real,
    reduced,
)
from hermitex.symbolic.calculus.trials import Trial
from hermitex.symbolic.calculus.turning import jumps
from hermitex.symbolic.calculus.verdict import AGREES, FAILS, OPEN, Check, CounterExample
from hermitex.symbolic.calculus.weightless import weightless
from hermitex.symbolic.digits.finite_ranges import as_averages
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import added_up
from hermitex.symbolic.law_constraints import Condition
from hermitex.symbolic.undefined import arguments, at_numbers, derivative_order, put, put_at, undefined_functions, without_slopes
from hermitex.symbols import fits

PLAIN = 60  # digits where no integral is left
MANY = 430  # digits where that is cheap, on each side of a turn
CONSTANT = 125  # digits of a constant: as far as `zero.decide` looks
FEW = 5  # digits that tell whether another formula holds beyond a turn, where more take too long
SLACK = 3  # the last digits, which errors may take
LONG = 300  # operations above which an elementary claim is tried at fewer points
_THIN = Rational(1, 10**6)  # a range of a parameter that no draw falls into
GIVEN_UP = 12_000  # steps of work, some seconds, after which a point far out is left
DEEPLY = 48_000  # the same, where a switch that is absorbed asks for hundreds of digits
_SHRINK = (S.One, Rational(1, 2), Rational(1, 5), Rational(1, 20))
_PAIRS = 10  # of jumps that are tried where both compare 0 with 0
ENOUGH = 3  # places about a turn that are left as too long, before the others are left with them
TURNS = 400  # points between turns, before the others are left
STARTS = 8  # draws for a point from which one parameter moves
MIXED = 12  # draws of which each parameter has a size of its own, where no common one makes a covariance

NEAR, FAR, TURN, HALF = "near", "far", "turn", "one side is not real"
_HALF = "one side is a real number there and the other is not; declare positive the letters that are meant to be"
_STANDS = "where a jump compares 0 with 0; elsewhere they agree, as far as was tried"
Functions = Mapping[UndefinedFunction, Trial]
#: What says that a step cannot be done.
NOT_DONE = (*NO_DIGITS, BasePolynomialError)

LEFT = Sides(None, None, 0, 0)  # a point that took too long


@dataclass
class Tried:
    """Where the sides were tried, and how far they agree."""

    digits: int
    points: list[Point] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)  # the same, and those about a turn that agree to fewer digits
    functions: dict[str, None] = field(default_factory=dict)
    zeros: int = 0
    left: int = 0
    absent: list[Point] = field(default_factory=list)  # where an average or an integral does not exist
    turns: int = 0  # points between turns that were tried
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
        if self.absent:
            said += f"; at {len(self.absent)} more ({ranges(self.absent)}) it is not absolutely integrable"
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
        self.elementary = not any(p.has(*INTEGRALS) for p in self.parts)
        self.several = max(map(trials.widest, self.parts)) > 1
        self.levels = tuple(dict.fromkeys(v for p in self.parts for v in trials.levels_of(p))) if self.functions else ()
        self.long = sum(p.count_ops() for p in self.parts) > LONG
        self.texts: dict[Any, str] = {}  # of the functions that stood for undefined ones
        self.skipped, self.agreed = "", False  # `agreed`: at some point, before one at which they differ
        self.diverged = False  # at the last point

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
            self.diverged = False
            if kind == NEAR:
                found = self.at(parameters, functions, rough=not tried.points)
                if found is not None and found.nothing and self.exact is not None:  # of E 1(z > 40) they show more
                    found = self.at(parameters, functions, parts=self.exact) or found
            elif kind == HALF:
                found = self._half_real(parameters, functions)
            elif kind == FAR and tried.left >= 2:
                continue
            else:
                found = self._bounded(parameters, functions)
                for few in (PLANE, FEW) if kind == TURN else ():  # another formula may hold there
                    if found is LEFT:
                        found = self._bounded(parameters, functions, few)
                if kind == TURN and self.elementary and found is not None and found.nothing and found.error:
                    found = self._bounded(parameters, functions, deep=DEEPEST)
                if found is LEFT:
                    if kind == TURN:
                        tried.unturned.append(dict(parameters))
                    else:
                        tried.left += 1
                    continue
            if found is None and kind in (NEAR, FAR):
                found = self._half_real(parameters, functions)
                kind = HALF
            if found is None:
                if self.diverged and parameters:
                    tried.absent.append(dict(parameters))
                continue
            if found.agree is None:
                self.agreed = bool(tried.points)
                chosen = {f.__name__: t.text for f, t in functions.items()}
                example = CounterExample(chosen, {s.name: v for s, v in parameters.items()}, found.left, found.right)
                return Check(left, right, FAILS, _HALF if kind == HALF else "", None, example)
            if found.agree >= FEW - 1 and not found.nothing:
                short = None if found.agree >= self.digits - SLACK else found.agree
                tried.places.append(Place(parameters, {f: t.build for f, t in functions.items()}, short, found.asked))
                self.texts.update({t.build: t.text for t in functions.values()})
            if kind == TURN and found.agree < FEW - 1 and (found.error or not found.nothing):
                tried.unturned.append(dict(parameters))  # no zeros, but digits that are lost: another formula may hold there
            elif found.nothing:
                tried.zeros += 1
            elif kind == NEAR or found.agree >= self.digits - SLACK:  # one far out with fewer digits shows nothing
                tried.digits = min(tried.digits, found.agree)
                tried.points.append(dict(parameters))
                tried.functions.update({t.text: None for t in functions.values()})
        return self._verdict(tried, points)

    def _verdict(self, tried: Tried, points: int) -> Check:
        left, right = self.sides
        hidden = unseen(self.parts, tried.places, self._again, self._admissible)
        if hidden is not None and hidden.sides is not None:
            return self._refuted(hidden.place, hidden.sides)
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
                   f"too long to try them, or too many points, or too large numbers ({ranges(tried.unturned)})")
            return Check(left, right, OPEN, how, tried.digits)
        if self.points.unread > 0:
            how = (f"the sides agree to {tried.digits} digits ({tried.words()}), but they turn in more ways than are looked at: "
                   f"{self.points.unread} are left")
            return Check(left, right, OPEN, how, tried.digits)
        if len(tried.points) < points:
            return Check(left, right, OPEN, f"{tried.words()}: fewer than the {points} asked could be evaluated"
                                            f"{': ' + self.skipped if self.skipped else ''}", tried.digits)
        if hidden is not None:
            how = (f"the sides agree to {tried.digits} digits ({tried.words()}), but beyond a turn of {hidden.part} "
                   f"({ranges([hidden.place.point])}) it alters none of these, and more take too long")
            return Check(left, right, OPEN, how, tried.digits)
        if (beyond := [s for s in self.parameters if s.is_complex and s.is_real is None]):
            how = (f"the sides agree to {tried.digits} digits ({tried.words()}), and {beyond[0]} is declared complex: only real "
                   "numbers were tried")
            return Check(left, right, OPEN, how, tried.digits)
        seen: dict[int, int] = {}  # digits to which the sides were compared at a place again
        whole = [place for place in tried.places if place.digits is None]
        beyond = regions(self.parts, tried.places, self._admissible)
        for region in beyond if self.elementary or self.exact is not None else ():  # sin(a) = a in 60 digits, if |a| < 1e-40
            for place in (region.near, region.places[-1]):
                sides = self._deeply(place, MANY)
                if sides is not None and sides.agree is None:
                    return self._refuted(place, sides)
        for part, place, wanted, reason in weightless(self.parts, whole, self.deepest if self.elementary else tried.digits, beyond):
            if reason:
                how = f"the sides agree to {tried.digits} digits ({tried.words()}), but their parts were not weighed: {reason}"
                return Check(left, right, OPEN, how, tried.digits)
            if wanted is not None and wanted <= seen.get(id(place), 0):
                continue
            sides = self._deeply(place, wanted) if wanted is not None else None
            if sides is not None and sides.agree is None:
                return self._refuted(place, sides)
            if wanted is None or sides is None or sides.agree is None or sides.agree < wanted - SLACK:
                how = (f"the sides agree to {tried.digits} digits ({tried.words()}), and none of these depends on the {part} "
                       "that stands in them: they would agree with another in its place")
                return Check(left, right, OPEN, how, tried.digits)
            seen[id(place)] = wanted
        runs = [e for p in self.parts for e in p.atoms(Sum, Product)
                if not all(end.is_number for _, *span in e.limits for end in span)]
        if runs:
            how = (f"the sides agree to {tried.digits} digits ({tried.words()}), and {plain(min(runs, key=str))} may be another "
                   "formula with more terms")
            return Check(left, right, OPEN, how, tried.digits)
        return Check(left, right, AGREES, tried.words(), tried.digits, points=len(tried.points))

    def at_jumps(self, found: Check) -> Check:
        """What was found, and what becomes of it at numbers where a jump, or two, compare 0 with 0: H(0)^2 is 1/4, not H(0).

        Constants stand for undefined functions where a jump compares these, and others where it does not.
        """
        deltas = [d for side in self.sides for d in side.atoms(DiracDelta) if d.free_symbols <= side.free_symbols]
        if found.status == AGREES and deltas:
            how = f"{found.how}, and {plain(min(deltas, key=str))} counts where it has no number to be tried"
            return replace(found, status=OPEN, how=f"the sides agree to {found.digits} digits ({how})")
        letters = {f: Dummy(f.__name__, real=True) for f in self.functions}
        near = self._start(self.points.near, 0)
        starts = [near | dict.fromkeys(letters.values(), S.One), {s: -v if fits(s, -v) else v for s, v in near.items()} |
                  dict.fromkeys(letters.values(), S.NegativeOne)]
        single = list(jumps(*(put(side, {f: _constant(c).build for f, c in letters.items()}) for side in self.sides)))
        two = [[*p, *q] for pair in list(combinations(single, 2))[:_PAIRS] for p, q in (pair, pair[::-1])]
        for equations in (*single, *two):
            tried = False
            points = (p for start in starts for p in self.points.zeros(equations, start, list(start)))
            for point in points if equations in single else islice(points, 1):
                parameters = {s: point[s] for s in self.parameters}
                tried = True
                if not self._admissible(parameters) or self._divides_by_0(parameters):
                    continue
                functions = {f: _constant(point[c]) for f, c in letters.items()}
                if not any(q.has(*letters.values()) for q in equations):
                    functions = self.assignment(1)
                place = Place(parameters, {f: t.build for f, t in functions.items()})
                # A closed form with letters holds for most of their numbers: the sides are taken as they stand.
                there = self._again(self.sides, place, None)
                if there is not None and there.agree is None:
                    self.texts.update({t.build: t.text for t in functions.values()})
                    return replace(self._refuted(place, there), how=_STANDS)
            if found and not tried and equations in single:
                stands = " and ".join(f"{plain(q)} = 0" for q in equations)
                found = replace(found, how=f"{found.how}; not tried where a jump compares 0 with 0, {stands}")
        return found

    def _refuted(self, place: Place, sides: Sides) -> Check:
        self.agreed = True
        functions = {f.__name__: self.texts.get(build, str(build)) for f, build in place.functions.items()}
        example = CounterExample(functions, {s.name: v for s, v in place.point.items()}, sides.left, sides.right)
        return Check(*self.sides, FAILS, "", None, example)

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
            start = self._start(self.points.near, 0) if i == 0 else self._start(self.points.far, 2*i - 1)
            for parameters in self.points.turns(concrete, start):
                if len(tried.unturned) > ENOUGH or tried.turns >= TURNS:  # what is not tried there leaves it open
                    tried.unturned.append(parameters)
                    continue
                admissible = self._admissible(parameters)
                ends = {s: v for s, v in parameters.items() if v == 0 and not s.is_integer}
                if ends and (not admissible or self._divides_by_0(ends)):
                    continue  # sin(x)/x, or sqrt(q) E f(z/sqrt(q)), at the end of a range: no claim about that one number
                if admissible:
                    tried.turns += 1
                    yield parameters, functions, TURN
                elif self._one_is_real(parameters):
                    yield parameters, functions, HALF
                elif any(too_large(side, parameters) for side in self.sides):
                    tried.unturned.append(parameters)

    def _divides_by_0(self, ends: Point) -> bool:
        return any(p.base.xreplace(ends) == 0 for side in self.sides for p in side.atoms(Pow) if p.exp.is_negative)

    def _extra(self, count: int) -> int:
        if not self.elementary:
            return min(count, 2)
        if self.long:
            return count
        degrees = [p.as_poly(*self.parameters) for p in self.parts] if self.parameters else []
        return 6*count + 2*min(60, max((p.total_degree() for p in degrees if p), default=0))

    def _one(self, draw: Callable[[int, Expr], Point], i: int, kind: str) -> Iterator[tuple[Point, Functions, str]]:
        for parameters in self._draws(draw, i):
            if self._admissible(parameters):
                yield parameters, self.assignment(i + 4*(kind == FAR)), kind
                return
            if self._one_is_real(parameters):
                yield parameters, self.assignment(i), HALF

    def _draws(self, draw: Callable[[int, Expr], Point], i: int) -> Iterator[Point]:
        """The i-th draw; one that is not admissible is drawn nearer to 1, or to 0, and then with a size for each parameter."""
        yield from (draw(i, shrink) for shrink in _SHRINK)
        if self.points.correlations:
            yield from (self.points.mixed(draw(i, S.One), MIXED*i + k) for k in range(MIXED))

    def _start(self, draw: Callable[[int, Expr], Point], first: int) -> Point:
        """A draw at which the sides are real, if there is one: from others no turn, and no jump, of another parameter is tried."""
        draws = (p for i in range(first, first + STARTS) for p in self._draws(draw, i))
        return next(filter(self._admissible, draws), draw(first, S.One))

    def assignment(self, i: int) -> dict[UndefinedFunction, Trial]:
        """A function for each undefined one, smooth enough for the derivatives that occur."""
        out = {}
        for n, f in enumerate(self.functions):
            order, count = (max(of(side, f) for side in self.sides) for of in (derivative_order, arguments))
            out[f] = (trials.plain(n, order, several=self.several, arguments=count) if i == 0 else
                      trials.drawn(Random(101*i + n), i + n, order, several=self.several, levels=self.levels, arguments=count))
        return out

    # -- one point -------------------------------------------------------------------------------------------------
    def at(self, parameters: Point, functions: Functions, digits: int | None = None, *, deep: int = DEEP,
           parts: tuple[Expr, Expr] | None = None, confirm: bool = True, rough: bool = False) -> Sides | None:
        """Both sides at one point, or what stands for them; None where one of them cannot be evaluated.

        `rough`: a few digits are asked first, which may refute; agreement always takes all of them.
        """
        chosen = {f: t.build for f, t in functions.items()}
        found = self.compared(parts or self.parts, parameters, chosen, digits, deep=deep, confirm=confirm, rough=rough)
        if found is not None and found.agree is None and parts is None and self.parts != self.sides:
            return self._as_written(parameters, chosen, found)
        return found

    def compared(self, parts: Pair, parameters: Mapping[Symbol, Expr], chosen: Mapping[Any, Any], digits: int | None = None, *,
                 deep: int = DEEP, confirm: bool = True, rough: bool = False) -> Sides | None:
        """Two expressions at one point, with these for the undefined functions."""
        try:
            concrete = [reduced(as_averages(added_up(put_at(p, parameters, chosen)))) for p in parts]
            nodes = [n for e in concrete for n in e.atoms(Expectation)]
            if not all(map(has_law, nodes)):
                return None
            wanted = digits or self._depth(concrete, bool(parameters or chosen))
            asked = min(wanted, *map(affordable, concrete))
            # Of functions drawn at random, two values that cancel to 0 are passed over.
            found = None
            if rough and asked > ROUGH and any(e.has(*INTEGRALS) for e in concrete):
                found = compare(concrete, ROUGH, deep=0, zeros=False)
            if found is None or found.agree is not None:
                if asked == PLANE and all(on_grids(e, wanted) for e in concrete):
                    asked = wanted
                found = compare(concrete, asked, deep=deep, zeros=not chosen, confirm=confirm)
            return found
        except BudgetExceeded:
            raise
        except NOT_DONE as error:
            self.skipped, self.diverged = first_line(error), isinstance(error, Divergent)
            if self.diverged and (integrals := set().union(*(p.atoms(Integral) for p in self.parts))):
                self.skipped = (f"{min(map(str, integrals))} does not converge absolutely, and only what does is integrated in "
                                "numbers; put its value in, if you know one")
            return None

    def _depth(self, concrete: list[Expr], moving: bool) -> int:
        if any(e.has(*INTEGRALS) for e in concrete):
            return self.digits + 2
        return max(self.digits + 2, PLAIN if moving else CONSTANT)

    @property
    def deepest(self) -> int:
        """The digits compared where no integral is left."""
        return max(self.digits, PLAIN if self.parameters or self.functions else CONSTANT)

    def _as_written(self, parameters: Point, chosen: Mapping[Any, Any], found: Sides) -> Sides:
        """The sides as they were given, where they can be shown to the digits in which they differ."""
        try:
            left, right = (real(put_at(side, parameters, chosen), 12)[0] for side in self.sides)
        except (HermitexError, ValueError, ArithmeticError, TypeError):
            return found
        return Sides(left, right, found.asked, None) if fabs(left - right) > fabs(left)*mp.mpf(10)**-8 else found

    def _bounded(self, parameters: Point, functions: Functions, digits: int | None = None, *, deep: int = DEEP) -> Sides | None:
        """A point far out, which is left if it takes long: it is then said to be left, and shows nothing."""
        try:
            with work(GIVEN_UP):
                if self.exact is not None and not self.elementary and digits is None:
                    found = self.at(parameters, functions, parts=self.exact)
                    if found is not None:
                        return found if found.agree is not None else self._differ(found, parameters, functions)
                return self.at(parameters, functions, digits, deep=deep*self.elementary)
        except BudgetExceeded:
            checkpoint("testing an equality at random points")  # the caller's own budget
            return LEFT

    def _again(self, pair: Pair, place: Place, digits: int | None) -> Sides | None:
        """Two expressions at a place where the sides agreed; None where that takes too long."""
        try:
            with work(GIVEN_UP if digits is None else DEEPLY):
                return self.compared(pair, place.point, place.functions, digits)
        except BudgetExceeded:
            checkpoint("testing an equality at random points")
            return None

    def _deeply(self, place: Place, digits: int) -> Sides | None:
        """The sides where they agreed, in more digits: by exact values, where these do not differ by more than they may."""
        if self.exact is not None and not self.elementary:
            found = self._again(self.exact, place, digits)
            if found is not None:
                size = max(fabs(found.left), fabs(found.right))
                return found if fabs(found.left - found.right) <= size*mp.mpf(10)**(SLACK - (place.digits or self.digits)) else None
        return self._again(self.parts, place, digits)

    def _differ(self, exact: Sides, parameters: Point, functions: Functions) -> Sides:
        """Exact values that differ, as they must by less than the sides themselves show where these agree."""
        try:
            given = self.at(parameters, functions, PLANE, deep=0, confirm=False)
        except BudgetExceeded:
            return exact
        if given is None or not given.agree:
            return exact
        size = max(fabs(given.left), fabs(given.right))
        return exact if fabs(exact.left - exact.right) <= size*mp.mpf(10)**(1 - given.agree) else given

    def _half_real(self, parameters: Point, functions: Functions) -> Sides | None:
        """A point at which one side is real and the other is not: they differ there. None where neither is known to be so."""
        chosen = {f: t.build for f, t in functions.items()}
        try:
            left, right = (put_at(side, parameters, chosen) for side in self.sides)
            return half_real(left, right)
        except BudgetExceeded:
            raise
        except NOT_DONE:
            return None

    def _admissible(self, parameters: Mapping[Symbol, Expr]) -> bool:
        return self._may_be(parameters) and all(_is_real_at(side, parameters) for side in self.sides)

    def _one_is_real(self, parameters: Point) -> bool:
        return self._may_be(parameters) and sum(_is_real_at(side, parameters) for side in self.sides) == 1

    def _may_be(self, parameters: Mapping[Symbol, Expr]) -> bool:
        """Do the laws, and what is assumed of the letters, allow the point, and can what stands there be written?"""
        return all(fits(s, value) for s, value in parameters.items()) and all(
            value.xreplace(parameters) in interval for value, interval in self.lawful) and not any(
            too_large(side, parameters) for side in self.sides)


def _constant(value: Expr) -> Trial:
    return Trial(str(value), lambda *_: value)


def _is_real_at(side: Expr, parameters: Mapping[Symbol, Expr]) -> bool:
    try:
        put_in = at_numbers(without_slopes(side), parameters)
    except BadInput:  # the numbers make no covariance
        return False
    return put_in.is_finite is not False and put_in.is_real is not False and all(
        map(has_law, put_in.atoms(Expectation))) and not any(
        p.is_Pow and p.exp.is_Rational and p.exp.q % 2 == 0 and p.base.is_negative
        for e in (put_in, *(n.body for n in put_in.atoms(Expectation))) for p in e.atoms(Pow))
