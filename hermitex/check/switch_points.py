"""g(s) = 0: points next to and on the places at which a switch of a claim turns as its letters move.

`beside` yields a point on each side of every place, between this place and the next. `on_switches` yields the places themselves,
where a jump compares 0 with 0, and the places at which two switches turn together. It tries exact places only: a jump has no exact
value at a rounded one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import numpy as np
from sympy import (
    DiracDelta,
    Expr,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    atan2,
    ceiling,
    factor_terms,
    floor,
    frac,
    log,
    preorder_traversal,
    solve,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from hermitex.check.sample_points import Point, PointSamples
from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.numbers.places import joined, zeros
from hermitex.symbolic.breaks.switches import STEPS, SWITCHES, compared
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbols import fits

SHORT = 12  # operations of a switch that SymPy solves: half a second at most


def switches(expr: Expr) -> list[Expr]:
    """What the switches in an expression compare with 0, factor by factor.

    >>> from sympy import sign
    >>> from sympy.abc import x, y
    >>> switches(sign((x - 1)*(y + 2)))
    [x - 1, y + 2]
    """
    found: list[Expr] = []
    for e in preorder_traversal(expr):
        if isinstance(e, (*SWITCHES, Relational)) and not isinstance(e, (*STEPS, Piecewise)):
            found += compared(e)
        elif isinstance(e, atan2):
            found.append(e.args[0])  # its branch ends where y is 0 and x negative
        elif isinstance(e, log | Pow) and isinstance(e.args[0], Pow) and e.args[0].exp.is_even:
            found.append(e.args[0].base)  # log(x^2) is singular and sqrt(x^2) has a kink where x is 0
    factors = [f for g in found for f in Mul.make_args(factor_terms(g))]
    return [f for f in dict.fromkeys(factors) if (f.free_symbols or f.has(AppliedUndef)) and not f.has(Expectation)]


class SwitchPoints:
    """The places at which the switches of two sides turn, letter by letter."""

    def __init__(self, samples: PointSamples) -> None:
        self.samples = samples
        letters, base = set(samples.letters), samples.near(0)
        found = [g for side in samples.sides for g in (*switches(side), *_steps(side, base))]
        self.switches = [g for g in dict.fromkeys(found) if (g.free_symbols or g.has(AppliedUndef)) and g.free_symbols <= letters
                         and not g.has(Expectation, DiracDelta) and not g.atoms(Bound)]
        self.left: dict[Expr, None] = {}  # switches without an exact place

    # -- next to a switch --------------------------------------------------------------------------------------------------------
    def beside(self) -> Iterator[Point]:
        """A point on each side of every place: a fiftieth of it away, or half way to the next place."""
        base = self.samples.near(0)
        for s in self.samples.letters:
            others = {t: v for t, v in base.items() if t != s}
            plain = [g for g in self.switches if s in g.free_symbols and not g.has(AppliedUndef)]
            places = _distinct(place for g in plain for place in _sign_changes(g.xreplace(others), s))
            for i, place in enumerate(places):
                for side in (-1, 1):
                    step = abs(place)/50 or Rational(1, 50)
                    if 0 <= i + side < len(places):
                        step = min(step, abs(places[i + side] - place)/2)
                    value = place + side*step
                    value = (floor(value) if side < 0 else ceiling(value)) if s.is_integer else value
                    if fits(s, value):
                        yield self._allowed({**base, s: value}, s)

    def _allowed(self, point: Point, moved: Symbol) -> Point:
        """Return the point. If the laws forbid it, make the other letters of the covariance smaller."""
        if not self.samples.allowed(point):
            others = {t for t in self.samples.correlations if t != moved and not t.is_integer}
            point = {t: v/20 if t in others else v for t, v in point.items()}
        return self.samples.lawful(point)

    # -- on ------------------------------------------------------------------------------------------------------------
    def on_switches(self) -> Iterator[Point]:
        """Points at which a switch is exactly 0; then those at which two are."""
        bases = [self.samples.near(i) for i in range(4 if len(self.samples.letters) > 1 else 1)]
        solved = {}
        for g in self.switches:
            if g.has(AppliedUndef):
                self.left[g] = None
                continue
            for s in sorted(g.free_symbols, key=str):
                solved[g, s] = _exact_places(g, s)
            if not any(solved[g, s] for s in g.free_symbols):
                self.left[g] = None
            for base in bases:
                for s in sorted(g.free_symbols, key=str):
                    for place in solved[g, s][:4]:
                        yield from self._exactly(base, {s: place}, [g])
        for (g, s), (h, t) in combinations(solved, 2):
            if g == h or s == t:
                continue
            for place in solved[g, s][:2]:
                for other in _exact_places(h.xreplace({s: place}), t)[:2]:
                    yield from self._exactly(bases[0], {s: place.xreplace({t: other}), t: other}, [g, h])

    def _exactly(self, base: Point, places: Mapping[Symbol, Expr], zeros: list[Expr]) -> Iterator[Point]:
        others = {t: v for t, v in base.items() if t not in places}
        point = {**base, **{s: place.xreplace(others) for s, place in places.items()}}
        if places and all(v.is_real and fits(s, v) for s, v in point.items()) and all(g.xreplace(point) == 0 for g in zeros):
            yield point

def _steps(side: Expr, base: Point) -> list[Expr]:
    """u - k for the step of floor(u) next below the base point."""
    found = []
    for e in sorted(side.atoms(floor, ceiling, frac), key=str):
        if e.free_symbols and e.free_symbols <= set(base) and not e.has(AppliedUndef):
            found.append(e.args[0] - floor(e.args[0].xreplace(base)))
    return found


def _exact_places(g: Expr, s: Symbol) -> list[Expr]:
    """The closed forms in s of g = 0 that are short; none where SymPy finds none."""
    if s not in g.free_symbols or g.count_ops() > SHORT:
        return []
    if g == s:
        return [S.Zero]
    try:
        with effort(0.5):  # seconds; short switches take some hundredths
            found = solve(g, s)
    except BudgetExceeded:
        checkpoint("looking for the places of a switch")
        return []
    except (NotImplementedError, ValueError, TypeError, AttributeError, ArithmeticError):
        return []
    return [place for place in found if isinstance(place, Expr) and place.count_ops() <= SHORT]


def _sign_changes(g: Expr, s: Symbol) -> list[Expr]:
    """The first four places in [-100, 100] at which g changes sign, to nine digits."""
    grid = np.concatenate([-np.logspace(2, -4, 400), np.logspace(-4, 2, 400)])
    try:
        return [Rational(f"{place.x:.9g}") for place in joined(zeros(g, s, -100, 100, grid))[:4]]
    except (HermitexError, TypeError, ValueError):
        return []


def _distinct(places: Iterable[Expr]) -> list[Expr]:
    """Sort the places, and join places that differ in their last digits; bisection's places next to 0 become 0."""
    found: list[Expr] = []
    for place in sorted(place if abs(place) > Rational(1, 10**8) else S.Zero for place in places):
        if not found or place - found[-1] > abs(place)/10**8:
            found.append(place)
    return found
