"""exp(s^2/2) + Max(0, s - 30): on either side of a turn the part that turns must show in the sides, or it was not tried there.

What turns is altered at a point, and the sides are compared to as many digits as it takes for that to show in them: a sum
that is absorbed at 30 digits shows at 400. Where no tried point shows it, points are made of the numbers of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

import sympy as sp
from sympy import Basic, Dummy, Expr, Pow, Symbol, expand, preorder_traversal

from hermitex.errors import BadInput, NoClosedForm
from hermitex.symbolic.arithmetic import fabs, log10
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.calculus.sides import NO_DIGITS, Sides, not_real, real, without_common
from hermitex.symbolic.calculus.turning import INVERSE, compared
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.terms import linear
from hermitex.symbolic.undefined import put_at

_PLACES, _MIXED = 4, 3  # on a side of a turn: points that were tried, and points made of several
_HALVINGS = 5
_PARTS = (sp.Rational(1, 2), sp.Rational(3, 4), sp.Rational(9, 10))
_ROUGH, _SPARE, _MOST = 8, 12, 1500  # digits of a size, beyond the first that shows, and at most

Pair = tuple[Expr, Expr]


class Place(NamedTuple):
    """Numbers for the parameters, what stands for the undefined functions, and to how many digits the sides agree (None: all).

    `asked`: the digits in which they were compared.
    """

    point: Mapping[Symbol, Expr]
    functions: Mapping[Any, Any]
    digits: int | None = None
    asked: int | None = None


Compare = Callable[[Pair, Place, int | None], Sides | None]
Key = Callable[[Place], tuple[int, ...] | None]
Allowed = Callable[[Mapping[Symbol, Expr]], bool]


_NAMED: dict[str, Callable[..., Any]] = {"Max": max, "Min": min, "Abs": abs, "sign": lambda x: (x > 0) - (x < 0)}


class Exactly:
    """A rational formula, with Max, Min, Abs and sign, as a fraction: a hundredth of the time that SymPy takes at a point.

    Examples
    --------
    >>> from hermitex.symbols import kappa
    >>> Exactly(sp.Max(kappa/3, 1 - kappa))({kappa: sp.Integer(2)})
    Fraction(2, 3)
    """

    def __init__(self, expr: Expr) -> None:
        self.symbols = tuple(expr.free_symbols)
        self.program: StraightLine | None = None
        try:
            self.program = StraightLine(expr, self.symbols, self).prepare()
        except (NoClosedForm, ArithmeticError):  # no such formula, or it divides by 0
            return

    def __call__(self, point: Mapping[Any, Any]) -> Fraction | None:
        """The value; None where it is not known so."""
        values = [point.get(s) for s in self.symbols]
        if self.program is None or not all(isinstance(v, Fraction | sp.Rational) for v in values):
            return None
        try:
            return self.program(*map(_fraction, values))
        except ArithmeticError:
            return None

    def constant(self, expr: Expr) -> Fraction:
        if not expr.is_Rational:
            raise NoClosedForm(expr, "it is no fraction")
        return _fraction(expr)

    def power(self, base: Fraction, exponent: Any, integer: int | None, analytic: bool) -> Fraction:
        if integer is None:
            raise ArithmeticError("a root is no fraction")
        return base**integer

    def function(self, expr: Expr) -> Callable[..., Any]:
        found = _NAMED.get(expr.func.__name__)
        if found is None:
            raise NoClosedForm(expr, "it is no fraction")
        return lambda *arguments, analytic: found(*arguments)

    def choose(self, conditions: Any, branches: Any, analytic: bool) -> Fraction:
        raise ArithmeticError("which branch it is at its border is not looked at")

    def node(self, node: Expectation, variables: Any) -> Callable[..., Any]:
        raise NoClosedForm(node, "it is no fraction")


def _fraction(value: Any) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(int(value.p), int(value.q))


class Unseen(NamedTuple):
    """What turns, and a place beyond a turn where no digit shows it; `sides` where with more digits they differ."""

    part: Expr
    place: Place
    sides: Sides | None = None


def unseen(parts: Pair, tried: Sequence[Place], compare: Compare, admissible: Allowed) -> Unseen | None:
    """The first part that turns between the places and does not show on both sides of the turn; None if all do.

    parts : the two sides, without what they have in common
    tried : where these were found to agree
    compare : two expressions at a place, to so many digits (None: as many as the sides were); None where that takes too long
    """
    for part in parts:
        for turning in _turning(part):
            key_of = _keys(turning)
            sides_of = _sides_of(key_of, tried)
            for key, places in sides_of.items() if len(sides_of) > 1 else ():
                mixed = (p for p in _mixed(places, tried, part.free_symbols) if key_of(p) == key)
                beside = [p for other, those in sides_of.items() if other != key for p in those]
                found = _looked_at(parts, part, turning, key_of, places, beside, mixed, compare, admissible)
                if found is not None:
                    return found
    return None


class Region(NamedTuple):
    """The places on one side of what turns, those of small numbers first, and one of smaller ones there."""

    places: list[Place]
    near: Place


def regions(parts: Pair, tried: Sequence[Place], admissible: Allowed) -> list[Region]:
    """The regions that the turns part, of which each may be another formula."""
    found: dict[tuple[int, ...], Region] = {}
    for part in parts:
        for turning in _turning(part):
            key_of = _keys(turning)
            sides_of = _sides_of(key_of, tried)
            for key, places in sides_of.items() if len(sides_of) > 1 else ():
                if (these := tuple(map(id, places))) not in found:
                    places.sort(key=_size)
                    found[these] = Region(places, _lowered(key_of, key, places[0], admissible))
    return list(found.values())


def _lowered(key_of: Key, key: tuple[int, ...], place: Place, admissible: Allowed) -> Place:
    """Each number as much nearer to 0 as it may be on the same side."""
    for s in [*place.point]*_HALVINGS:
        for part in _PARTS:
            value = place.point[s]*part
            lower = Place({**place.point, s: sp.Integer(value) if s.is_integer else value}, place.functions)
            if key_of(lower) == key and admissible(lower.point):
                place = lower
                break
    return place


def _size(place: Place) -> Any:
    return max(map(abs, place.point.values()), default=0)


def _turning(part: Expr) -> Iterator[Expr]:
    """What is another formula on the other side of a place, and holds no bound variable; the outermost first."""
    found: dict[Expr, None] = {}
    for e in preorder_traversal(part):
        kind = isinstance(e, (*SWITCHES, *INVERSE)) or (isinstance(e, Pow) and e.exp.is_Rational and not e.exp.is_Integer)
        if kind and e.free_symbols and e.free_symbols <= part.free_symbols and not (e.is_Pow and e.base.is_Symbol):
            found[e] = None
    yield from found


def _keys(e: Expr) -> Key:
    """`_key` of e, once for all places that differ in what does not stand in it; a switch of a bound variable has no side."""
    known: dict[Any, tuple[int, ...] | None] = {}
    args = [u for u in compared(e) if u.free_symbols <= e.free_symbols]
    if isinstance(e, Pow):  # a root of a square turns where that is 0, and has one sign
        args += [e.base.diff(s) for s in sorted(e.base.free_symbols, key=str)]
    each = [(u, Exactly(u)) for u in args]

    def key_of(place: Place) -> tuple[int, ...] | None:
        here = _restricted(place, e.free_symbols)
        if here not in known:
            known[here] = _key(each, place)
        return known[here]

    return key_of


def _restricted(place: Place, symbols: Set[Basic]) -> tuple[Any, ...]:
    """What of a place an expression with these symbols depends on."""
    return (frozenset((s, v) for s, v in place.point.items() if s in symbols), id(place.functions))


def _sides_of(key_of: Key, tried: Sequence[Place]) -> dict[Any, list[Place]]:
    found: dict[Any, list[Place]] = {}
    for place in tried:
        key = key_of(place)
        if key is not None:
            found.setdefault(key, []).append(place)
    return found


def _key(each: Sequence[tuple[Expr, Exactly]], place: Place) -> tuple[int, ...] | None:
    """The signs that tell on which side of its turns an expression stands; None where one is not known."""
    try:
        values = [value if (value := exactly(place.point)) is not None else real(_at(u, place), _ROUGH, 0)[0]
                  for u, exactly in each]
    except NO_DIGITS:
        return None
    return tuple((v > 0) - (v < 0) for v in values)


def _mixed(places: Sequence[Place], tried: Sequence[Place], symbols: Set[Basic]) -> Iterator[Place]:
    """The numbers of one place, and of another one; of places at which these symbols are the same, the first."""
    made: set[tuple[Any, ...]] = set()
    for point, functions, *_ in places:
        for other in reversed(tried):
            for s in point:
                mixed = Place({**point, s: other.point[s]}, functions)
                if other.point[s] != point[s] and (here := _restricted(mixed, symbols)) not in made:
                    made.add(here)
                    yield mixed


def _looked_at(parts: Pair, part: Expr, e: Expr, key_of: Key, places: Sequence[Place], beside: Sequence[Place],
               mixed: Iterator[Place], compare: Compare, admissible: Allowed) -> Unseen | None:
    """None where `e` is seen on this side of its turn, or where nothing of it is left there: it is multiplied by 0, or another
    branch of what it stands in holds, of which the other side is looked at by itself."""
    held = Dummy("t", real=True)
    hidden = part.xreplace({e: held})
    turning, around = Exactly(e), Exactly(hidden)

    def as_it_is(p: Place) -> Expr:
        return hidden.xreplace({**p.point, held: _at(e, p)})

    def altered_at(p: Place) -> Expr:
        """The part at a place, with another number for what turns, of the size that this has."""
        value = _at(e, p)
        return hidden.xreplace({**p.point, held: value + 1 if value.is_zero else value*sp.Rational(11, 10)})

    def counts(p: Place) -> bool:
        value = turning(p.point)
        if value is not None:
            here, other = (around({**p.point, held: v}) for v in (value, value*Fraction(11, 10) if value else Fraction(1)))
            if here is not None and other is not None:
                return here != other
        try:
            return _at(as_it_is(p), p) != _at(altered_at(p), p)
        except BadInput:  # the numbers make no covariance
            return False

    counted = list(islice(filter(counts, sorted(places, key=_size)), _PLACES))
    for place in counted:
        altered = altered_at(place)
        shown = compare((part, altered), place, place.digits or place.asked)  # a part alone may be known to more digits
        if (shown is not None and shown.agree is None) or (shown is None and not_real(_at(altered, place))):
            return None
    several = islice((p for p in mixed if counts(p) and admissible(p.point)), _MIXED)
    fresh = [*(_nearer(key_of, p, beside) for p in counted[:1]), *several]
    for place in (*fresh, *counted[:1]):
        digits = _needed(part, altered_at(place), place)
        if digits is None:
            continue
        sides = compare(parts, place, digits)
        if sides is None:  # it would take longer at the others
            break
        if sides.agree is None:
            return Unseen(e, place, sides)
        if sides.agree >= digits - _SPARE//2:
            return None
    return Unseen(e, (counted or fresh)[0]) if counted or fresh else None


def _nearer(key_of: Key, place: Place, beside: Sequence[Place]) -> Place:
    """A place on the same side, near to the turn that parts it from the nearest on another one, where sums are smaller."""
    def apart(p: Place) -> Any:
        return max(abs(p.point[s] - v) for s, v in place.point.items())

    key, near, far = key_of(place), place.point, min(beside, key=apart).point
    for _ in range(_HALVINGS):
        middle = {s: (v + far[s])/2 for s, v in near.items()}
        if any(s.is_integer for s in near):
            break
        near, far = (middle, far) if key_of(Place(middle, place.functions)) == key else (near, middle)
    return Place(near, place.functions)


def _at(part: Expr, place: Place) -> Expr:
    return put_at(part, place.point, place.functions)


def _needed(part: Expr, altered: Expr, place: Place) -> int | None:
    """The digits at which the part and what is altered at the place differ; None where that is not known, or they are too many."""
    def number(expr: Expr) -> tuple[Any, Any]:
        return real(_at(expr, place), _ROUGH)

    try:
        there = part.xreplace(dict(place.point))
        one, other = without_common(*(expand(p.replace(lambda n: isinstance(n, Expectation), linear)) for p in (there, altered)))
        (gap, error), (size, _) = number(one - other), number(part)
    except NO_DIGITS:
        return None
    if fabs(gap) <= 2*error or not size:
        return None
    found = int(log10(fabs(size/gap))) + _SPARE
    return found if found <= _MOST else None
