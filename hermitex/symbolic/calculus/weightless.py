"""log(1 + exp(5000 + z)) without its 1: parts of a claim that no digit depends on, so that its numbers show nothing of them.

Where a term is absorbed, a function has come to its limit or a switch lies beyond the law, sides that agree to all digits would
agree without that part too. So each letter and number of a side is moved by itself, with averages as sums over a few nodes: what
moves no side by the digits that were compared, at any point, was not tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import add
from random import Random
from typing import Any

from sympy import Abs, Dummy, Expr, Heaviside, Integral, Max, Min, Pow, S, Sum, Symbol, cos, exp, oo, sign, sin, sqrt, tan
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from hermitex.errors import HermitexError, NoClosedForm
from hermitex.symbolic.arithmetic import fabs, isfinite, mp, mpf
from hermitex.symbolic.breaks.ranges import bounds
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.program import StraightLine
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parity import parity
from hermitex.symbolic.precise import MPMATH, evaluate_with_error
from hermitex.symbolic.sums import ArraySum

_NODES = tuple(mpf(side*v)/100 for side in (1, -1) for v in (
    13, 41, 77, 120, 170, 230, 310, 420, 550, 730, 960, 1270, 1680, 2230, 2950, 3900))
_VECTORS = 48  # nodes over several variables
_LETTERS = 80  # letters and numbers of a side up to which it is looked at
_MUCH = mpf(10)**1000
_QUICK = 10  # radians to a standard deviation: exp(-10^2/2) is seen by no average of 22 digits
_POINTS = 5  # of the first, and of the last, where averages are summed
_MOVES = (lambda v: v + 1, lambda v: v*mpf("1.1"), lambda v: v - 3, lambda v: -v, lambda v: v + 30)
_OPAQUE = (AppliedUndef, Integral, Sum, ArraySum)


def weightless(sides: Sequence[Expr], points: Sequence[Mapping[Symbol, Expr]], digits: int) -> Expr | None:
    """A part of the sides without which they would be the same to so many digits at each of the points; None if none was seen.

    Examples
    --------
    >>> from sympy import exp, log
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> weightless([E(log(1 + exp(5000 + z)), z)], [{}], 30), weightless([E(log(1 + exp(5 + z)), z)], [{}], 30)
    (1, None)
    """
    for side in sides:
        if side.has(*_OPAQUE):
            continue
        try:
            model = _Marked(side)
        except HermitexError:  # a function without a numeric rule
            continue
        left = [p for p in model.letters if p not in model.idle] if len(model.letters) <= _LETTERS else []
        with mp.workdps(digits + 10):
            for point in (*points[:_POINTS], *points[_POINTS:][-_POINTS:]) if model.averages else points:
                left = left and model.unmoved(left, point, digits)
        if left:
            part = model.letters[left[0]]
            return part.xreplace({v: Symbol(v.name.strip('_')) for v in part.free_symbols})
        if points and (wave := _wave(side.xreplace(points[0]), digits)) is not None:
            return wave
    return None


def _wave(side: Expr, digits: int) -> Expr | None:
    """A quickly turning function that averages out: with another phase the side is the same to all digits, by full integration."""
    for node in side.atoms(Expectation):
        body, variables = node.open()
        if len(variables) > 1 or node.free_symbols:
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


class _Marked:
    """A side with a variable for each place where a letter or a number stands, and its averages as sums over nodes."""

    def __init__(self, side: Expr) -> None:
        self.letters: dict[Dummy, Expr] = {}
        self.switches: dict[Dummy, int] = {}  # the way in which one is thrown
        self.averages: dict[Dummy, _Average] = {}
        self.signs = self.conditions = False  # inside the argument of a switch, or of a condition
        self.idle: set[Dummy] = set()  # letters there that may turn nothing: variables in a positive factor, all of a condition
        self.outer = _Compiled(self._marked(side, None))

    def _marked(self, e: Any, within: list[tuple[Any, tuple[Symbol, ...]]] | None) -> Any:
        if isinstance(e, Expectation):
            nodes = [] if within is None else within
            body, variables = e.open()
            if within is None and len(variables) == 1 and parity(body, variables[0]) == -1:
                return S.Zero  # what stands beside it counts for nothing, and for anything
            nodes.append((e.covariance, variables))
            body = self._marked(body, nodes)
            if within is not None:  # an average inside of another: over more variables, as far as this goes
                return body
            place = Dummy("E", real=True)
            self.averages[place] = _Average(nodes, _Compiled(body))
            return place
        if e.is_Symbol or e.is_Number or e.is_NumberSymbol:
            place = Dummy("x", real=True)
            self.letters[place] = e
            if self.conditions or (self.signs and any(e in variables for _, variables in within or ())):
                self.idle.add(place)
            return place
        if e.is_Relational:  # the last of several conditions may say what follows from the others; the branches are looked at
            before, self.conditions = self.conditions, True
            found = e.func(*(self._marked(a, within) for a in e.args))
            self.conditions = before
            return found
        if isinstance(e, Pow) and e.exp.is_Integer:  # what has come to its limit below a power shows there
            return self._marked(e.base, within)**e.exp
        if isinstance(e, HyperbolicFunction) and not self.signs and e != (plain := e.rewrite(exp)):  # log(2 cosh(u)) nears u
            return self._marked(plain, within)
        if isinstance(e, (Abs, Max, Min)) and within:
            return self._marked(_with_signs(e), within)
        if isinstance(e, (sign, Heaviside)):
            return e.func(self._signed(e.args[0], within) + self._thrown(e, within), *e.args[1:])
        if not e.args:
            return e
        return e.func(*(self._marked(a, within) for a in e.args))

    def _signed(self, u: Expr, within: list[tuple[Any, tuple[Symbol, ...]]] | None) -> Any:
        """The argument of a switch: of it the sign counts alone, so that no positive factor needs to move a side."""
        before, self.signs = self.signs, True
        found = self._marked(u.func(*(f for f in u.args if not f.is_positive)) if u.is_Mul else u, within)
        self.signs = before
        return found

    def _thrown(self, e: Expr, within: list[tuple[Any, tuple[Symbol, ...]]] | None) -> Expr:
        """0 where the switch stands; it is thrown for good by adding much, of either sign. Nothing for what never turns."""
        u, bound = e.args[0], [v for _, variables in within or () for v in variables if v in e.free_symbols]
        if not bound or u.is_nonnegative or u.is_nonpositive or (len(u.free_symbols) == 1 and _one_sided(u, bound[0])):
            return S.Zero
        places = (Dummy("t", real=True), Dummy("t", real=True))
        self.letters.update(dict.fromkeys(places, e))
        self.switches.update(zip(places, (1, -1), strict=True))
        return places[0] + places[1]

    def unmoved(self, places: Sequence[Dummy], point: Mapping[Symbol, Expr], digits: int) -> list[Dummy]:
        """Those of the places that move the side by none of the digits, whatever stands there."""
        given: dict[Any, Any] = dict.fromkeys(self.switches, mpf(0))
        for place, e in self.letters.items():
            v = e.xreplace(point)
            if place not in given and not v.free_symbols:
                given[place] = mpf(v.p)/v.q if v.is_Rational else mp.convert(v.evalf(mp.dps)._to_mpmath(mp.prec))
        for average in self.averages.values():
            average.prepare(self.letters, point, given)
        values = {place: average.value({}) for place, average in self.averages.items()}
        before = self.outer(given | values)
        if before is None or not before:
            return list(places)
        return [p for p in places if not self._moves(p, given, values, before, mpf(10)**-digits*fabs(before))]

    def _moves(self, place: Dummy, given: dict[Any, Any], values: dict[Any, Any], before: Any, least: Any) -> bool:
        checkpoint("looking at what an equality depends on")
        own = next((name for name, average in self.averages.items() if place in average.program.inputs), None)
        known = False
        for move in (partial(add, self.switches[place]*_MUCH),) if place in self.switches else _MOVES:
            if own is None:
                after = self.outer(given | values | {place: move(given[place])})
            else:
                after = self.outer(given | values | {own: self.averages[own].value({place: move})})
            if after is not None:
                known = True
                if fabs(after - before) > least:
                    return True
        return not known


class _Compiled:
    """A compiled formula of variables by name; None where it has no value."""

    def __init__(self, marked: Expr) -> None:
        self.inputs = sorted(marked.free_symbols, key=lambda s: s.dummy_index)
        self.line = StraightLine(marked, self.inputs, MPMATH)

    def __call__(self, values: Mapping[Any, Any]) -> Any:
        try:
            found = self.line(*(values[s] for s in self.inputs))
        except (ValueError, TypeError, ArithmeticError, NoClosedForm):
            return None
        return found if isfinite(found) else None


class _Average:
    """sum_i phi(v_i) f(L v_i)."""

    def __init__(self, nodes: Sequence[tuple[Any, tuple[Symbol, ...]]], program: _Compiled) -> None:
        self.nodes, self.program = list(nodes), program

    def prepare(self, letters: Mapping[Dummy, Expr], point: Mapping[Symbol, Expr], given: Mapping[Dummy, Any]) -> None:
        """The values of all variables at the nodes, and the weights."""
        bound = [v for _, variables in self.nodes for v in variables]
        spread = [fabs(mp.sqrt(mp.convert(cov[i, i].xreplace(point).evalf(20)._to_mpmath(70))))
                  for cov, variables in self.nodes for i in range(len(variables))]
        self.weights, self.at = [], []
        for v in _vectors(len(bound)):
            self.weights.append(mp.exp(-sum(x*x for x in v)/2))
            there = dict(zip(bound, (s*x for s, x in zip(spread, v, strict=True)), strict=True))
            self.at.append({p: given[p] if p in given else there[letters[p]] for p in self.program.inputs})
        self.base = [self.program(values) for values in self.at]

    def value(self, moves: Mapping[Dummy, Any]) -> Any:
        """The sum; with one of the variables moved, over the nodes that have both values."""
        total = mpf(0)
        for w, values, known in zip(self.weights, self.at, self.base, strict=True):
            if known is not None:
                moved = self.program(values | {p: move(values[p]) for p, move in moves.items()}) if moves else known
                total += w*(known if moved is None else moved)
        return total


def _with_signs(e: Expr) -> Expr:
    """|u| = u sign(u), max(a, b) = a + (b - a) H(b - a): the switch apart from what it switches between."""
    if isinstance(e, Abs):
        return e.args[0]*sign(e.args[0])
    first, *rest = e.args
    for other in rest:
        gap = other - first
        first += gap*Heaviside(gap if isinstance(e, Max) else -gap)
    return first


def _one_sided(u: Expr, x: Symbol) -> bool:
    low, high = bounds(u, x, (-oo, oo))
    return bool(low >= 0 or high <= 0)


def _vectors(count: int) -> list[tuple[Any, ...]]:
    if count == 1:
        return [(v,) for v in _NODES]
    random = Random(count)
    return [tuple(mpf(random.choice((0.5, 1.0, 2.5)))*mpf(random.gauss(0, 1)) for _ in range(count)) for _ in range(_VECTORS)]
