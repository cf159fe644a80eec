"""log(1 + exp(5000 + z)) without its 1: parts of a claim that no compared digit depends on, so that numbers show nothing of them.

Where a term is absorbed, a function has come to its limit or a switch lies beyond the law, sides that agree to all digits would
agree without that part too. So each letter, number and term of a side is altered by itself, with averages as sums over a few nodes
and the functions of the place for undefined ones: what alters no side by the digits that were compared, at any place, was not
tried. The digits in which it would show are found by altering it at a higher precision. Beyond a turn another formula may hold,
in which log(1 + e^a) is a: what counts there, be it in hundreds of digits, has to be tried there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sympy import Expr, Integral, Product, Sum, Symbol, cos, sin, sqrt, tan
from sympy.core.function import AppliedUndef

from hermitex.errors import BudgetExceeded, Divergent, HermitexError, NoClosedForm
from hermitex.symbolic.arithmetic import fabs, log10, mp, mpf
from hermitex.symbolic.calculus.marked import DEEP, SPARE, Marked
from hermitex.symbolic.calculus.seen import Place, Region
from hermitex.symbolic.digits.finite_ranges import as_averages, ends
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import added_up
from hermitex.symbolic.precise import evaluate_with_error
from hermitex.symbolic.undefined import without_slopes

_QUICK = 10  # radians to a standard deviation: exp(-10^2/2) is seen by no average of 22 digits
_POINTS = 5  # of the first, and of the last, where averages are summed
_FEW = 2  # places at which more digits are tried
_DEEPEST = 1000  # digits in which a formula without averages shows beyond a turn
_RANGES = (Integral, Product, Sum)


class Absorbed(NamedTuple):
    """A part of a side that no compared digit depends on; where it shows first, and in how many digits (None: in none found).

    `reason` of a whole side: why its parts are not looked at.
    """

    part: Expr
    place: Place
    digits: int | None
    reason: str = ""


def weightless(sides: Sequence[Expr], places: Sequence[Place], digits: int,
               beyond: Sequence[Region] = ()) -> Iterator[Absorbed]:
    """The parts of the sides without which they would be the same to so many digits at each of the places.

    A term that is a number is looked at as a number, and as a term. `beyond`: where another formula may hold; of these regions
    the parts that count there in more digits than were compared.

    Examples
    --------
    >>> from sympy import exp, log
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> here = [Place({}, {})]
    >>> [found.part for found in weightless([E(log(1 + exp(5000 + z)), z), E(log(1 + exp(5 + z)), z)], here, 30)]
    [1, 1]
    """
    for side in sides:
        try:
            yield from _absorbed(side, places, digits, beyond)
        except (BudgetExceeded, Divergent):
            raise
        except NoClosedForm as error:  # a function without a numeric rule, an integral inside of an average, too many parts
            yield Absorbed(side, places[0], None, error.reason)
        if places and (wave := _wave(without_slopes(side).xreplace(dict(places[0].point)), digits)) is not None:
            yield Absorbed(wave, places[0], None)


def _absorbed(side: Expr, places: Sequence[Place], digits: int, beyond: Sequence[Region]) -> Iterator[Absorbed]:
    """A range has other numbers, and may have other terms, from place to place: those are left where the parts are other ones."""
    models: dict[Any, Marked] = {}
    opaque = side.has(*_RANGES)
    counting = set().union(*map(ends, side.atoms(*_RANGES)))

    def model_at(place: Place) -> Marked:
        numbers = {s: v for s, v in place.point.items() if s in counting}
        key = tuple(place.functions.items()), tuple(numbers.items())
        if key not in models:
            models[key] = Marked(_spelt_out(side, numbers) if opaque else side, place.functions)
        return models[key]

    def silent(among: Sequence[Place]) -> list[int]:
        """The parts that show at none of these places."""
        left = list(range(len(first.counted)))
        if first.averages:
            among = (*among[:_POINTS], *among[_POINTS:][-_POINTS:])
        with mp.workdps(digits + SPARE):
            for place in among:
                moved = dict(model_at(place).changes(left, place, mpf(10)**-(place.digits or digits))) if left else {}
                left = [i for i in left if i not in moved]
        return first.active(left)

    def in_more(left: list[int], among: Sequence[Place], most: int = DEEP) -> dict[int, Absorbed]:
        """Those of them that show in more digits, and in how many."""
        shown: dict[int, tuple[Any, Place]] = {}  # the largest change, of the sides as 1, and where
        with mp.workdps(most):
            for place in among[:_FEW] if left else ():
                for i, change in model_at(place).changes(left, place, mpf(10)**(SPARE - most), least_of_all=True):
                    if i not in shown or change > shown[i][0]:
                        shown[i] = change, place
        # What shows at nodes to first order may be odd, and average out.
        return {i: Absorbed(first.named(i), place, (1 if first.alone(i) else 2)*int(-log10(change)) + SPARE)
                for i, (change, place) in shown.items()}

    if not places:
        return
    first = model_at(places[0])
    if opaque:
        places = [place for place in places if first.alike(model_at(place))]
    left = silent(places)
    shown = in_more(left, places)
    for i in left:
        if i in shown:
            yield shown[i]
        elif any(model_at(place).stands(i, place, digits) for place in places[:_FEW]):
            yield Absorbed(first.named(i), places[0], None)
    for region in beyond:
        left = silent([place for place in region.places if not opaque or first.alike(model_at(place))])
        shown = in_more(left, [region.near])
        if not first.averages:  # of a sum over nodes the farthest would count
            shown |= in_more([i for i in left if i not in shown], [region.near], _DEEPEST)
        yield from shown.values()


def _spelt_out(side: Expr, numbers: Mapping[Symbol, Expr]) -> Expr:
    """Sums and products as terms, integrals as averages.

    Raises
    ------
    NoClosedForm : a range is left, of an integral inside of an average for instance.
    """
    done = as_averages(added_up(side.xreplace(dict(numbers))), letters=True)
    if done.has(*_RANGES):
        raise NoClosedForm(done, "a range is left in it")
    return done


def _wave(side: Expr, digits: int) -> Expr | None:
    """A quickly turning function that averages out: with another phase the side is the same to all digits, by full integration."""
    for node in side.atoms(Expectation):
        body, variables = node.open()
        if len(variables) > 1 or node.free_symbols or node.has(AppliedUndef):
            continue
        (x,) = variables
        quick: dict[Expr, list[Expr]] = {}
        for e in body.atoms(sin, cos, tan):
            rate = e.args[0].diff(x)
            if rate.is_number and abs(rate)*sqrt(node.covariance[0, 0]) > _QUICK:
                quick.setdefault(abs(rate), []).append(e)
        for group in quick.values():
            shifted = {e: e.func(e.args[0] + (1 if e.args[0].coeff(x).is_positive else -1)) for e in group}
            after = side.xreplace({node: node.with_body(body.xreplace(shifted), variables)})
            try:
                (a, _), (b, _) = (evaluate_with_error(e, digits, against_cancellation=0) for e in (side, after))
            except HermitexError:
                continue
            if fabs(a - b) <= fabs(a)*mpf(10)**(1 - digits):
                return group[0].xreplace({x: Symbol("z")})
    return None
