"""A claim's side with a variable for each place where a letter, a number or a term stands, to alter each by itself.

Its averages are sums over a few nodes, and what stands for undefined functions is put in: a model that is cheap at any precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import add
from random import Random
from typing import Any, NamedTuple

from sympy import (
    Abs,
    Derivative,
    DiracDelta,
    Dummy,
    Expr,
    Function,
    Heaviside,
    Max,
    Min,
    Mul,
    Pow,
    S,
    Subs,
    Symbol,
    exp,
    oo,
    sign,
)
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from hermitex.errors import NoClosedForm
from hermitex.symbolic.arithmetic import fabs, isfinite, mp, mpf
from hermitex.symbolic.breaks.interval_ranges import bounds
from hermitex.symbolic.breaks.switches import STEPS
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.calculus.seen import Place
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum
from hermitex.symbolic.parity import parity
from hermitex.symbolic.precise import MPMATH
from hermitex.symbolic.undefined import put

# No mirror images: what is odd shows, though it has no part in the average. Some are small: what is narrow counts about 0.
_NODES = tuple(mpf(v)/100 for v in (
    "1e-6", "1e-3", "0.1", "1.3", 13, 41, 77, 120, 170, 230, 310, 420, 550, 730, 960, 1270, 1680, 2230, 2950, 3900,
    "-9e-7", "-9e-4", "-0.09", "-1.1", -11, -37, -71, -112, -163, -221, -301, -410, -539, -718, -947, -1259, -1663, -2211, -2930,
    -3880))
_VECTORS = 48  # nodes over several variables
# Terms of a sum over a countable law: all of the first, and some wherever a summand may still switch.
_TERMS_OF_LAW = (*range(40), *(int(40*mpf("1.06")**k) for k in range(1, 52)))
_EVERY = 8  # beside other nodes one of so many of them
_MOST = 2000  # letters, numbers and terms of a side up to which they are looked at
_MUCH = mpf(10)**1000
DEEP = 430  # digits in which is looked for what shows in none of those that were compared
SPARE = 10  # the last digits of a precision, which errors may take
_LONG = 12  # digits of a number from which its last one is looked at by itself
_JUMPS = (sign, Heaviside, *STEPS)

Move = Callable[[Any], Any]
# A number that enters smoothly is altered by a tenth, one beside a bound variable, which has all sizes, or in a switch by much.
_SLIGHT: tuple[Move, ...] = (lambda v: v*mpf("1.1") if v else mpf("0.1"), lambda v: v*mpf("0.9") if v else mpf("-0.1"))
_MUCH_MOVED: tuple[Move, ...] = (lambda v: v + 1, lambda v: v*mpf("1.1"), lambda v: v - 3, lambda v: -v, lambda v: v + 30)
_AWAY: tuple[Any, ...] = (mpf("1e-9"), mpf("1e9"))  # by which an argument of Max or Min is moved from the others
_DROPPED: tuple[Move, ...] = (lambda v: mpf(0),)
_GROWN: tuple[Move, ...] = (*_DROPPED, lambda v: mpf(1000))

#: The covariance of an average, or None of a sum over a countable law, and what is bound there.
Within = list[tuple[Any, tuple[Symbol, ...]]] | None


class Marked:
    """A side with a variable for each place where a letter or a number stands, and its averages as sums over nodes."""

    def __init__(self, side: Expr, functions: Mapping[Any, Any]) -> None:
        self.functions = functions
        self.letters: dict[Dummy, Expr] = {}
        self.moves: dict[Dummy, Sequence[Move]] = {}  # how one is altered; those that have none stand as they are
        self.fixed: dict[Dummy, Any] = {}  # the numbers of those that are no letters
        self.terms: dict[Dummy, Expr] = {}  # what a factor stands before
        self.arguments: dict[Dummy, bool] = {}  # what is added to one of Max or Min: has it to be taken somewhere?
        self.entries: dict[Dummy, Dummy] = {}  # what stands in an argument of Max or Min: what is added to that
        self.averages: dict[Dummy, _Average] = {}
        self.signs = self.conditions = False  # inside the argument of a switch, or of a condition
        self.rough = self.quiet = False  # inside a function of a bound variable; of what stands for an undefined function
        self.outer = _Compiled(self._marked(side, None))
        # What is no argument of a slope that is constant, as the third of a cubic is.
        self.held = {*self.outer.inputs, *(p for average in self.averages.values() for p in average.program.inputs)}
        self.counted = [p for p in self.moves if p not in self.arguments] + [*self.arguments]
        if len(self.counted) > _MOST:
            raise NoClosedForm(side, f"more than {_MOST} letters, numbers and terms stand in it")

    def named(self, i: int) -> Expr:
        """What stands at the i-th place."""
        part = self.letters[self.counted[i]]
        return part.xreplace({v: Symbol(v.name.strip('_')) for v in part.free_symbols})

    def alone(self, i: int) -> bool:
        """Does it stand outside of all averages?"""
        return self._owner(self.counted[i]) is None

    def alike(self, other: Marked) -> bool:
        """Are these the same parts, with other numbers perhaps?"""
        return len(self.counted) == len(other.counted) and [p in self.terms for p in self.counted] == [
            p in other.terms for p in other.counted]

    def active(self, silent: Sequence[int]) -> list[int]:
        """Without what stands in arguments of Max and Min that are silent themselves: those are taken nowhere."""
        parts = {self.counted[i] for i in silent}
        return [i for i in silent if self.arguments.get(p := self.counted[i], True) and self.entries.get(p) not in parts]

    def _marked(self, e: Any, within: Within) -> Any:
        if isinstance(e, Expectation | ArraySum):
            return self._average(e, within)
        if isinstance(e, AppliedUndef):
            return self._of_undefined(e, within)
        if isinstance(e, (Derivative, Subs)):
            before, self.quiet = self.quiet, True
            found = self._marked(put(e, self.functions), within)
            self.quiet = before
            return found
        if e.is_Symbol or e.is_Number or e.is_NumberSymbol:
            return self._letter(e, within)
        if e.is_Add:
            return self._sum(e, within)
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
        if isinstance(e, (Max, Min)):
            free = e.has(AppliedUndef)
            return e.func(*(self._argument(a, 1 if isinstance(e, Min) else -1, free or a.has(Expectation)) for a in e.args))
        before = self.rough
        if isinstance(e, (Function, Pow)):
            self.rough = isinstance(e, _JUMPS) or bool(e.free_symbols & _bound(within))
        if isinstance(e, (sign, Heaviside)):
            found = e.func(self._signed(e.args[0], within) + self._thrown(e, within), *e.args[1:])
        else:
            # an order is no number to be altered: that of a derivative of a delta has to be an integer
            found = e.func(*(a if isinstance(e, DiracDelta) and a.is_Integer else self._marked(a, within) for a in e.args))
        self.rough = before
        return found

    def _argument(self, e: Expr, way: int, needed: bool) -> Any:
        """One of Max or Min: moved away from the others it shows where it is the one that is taken.

        `needed`: it is no part of a claim about any function f, or about averages, only if they are never taken; points show
        nothing of that.
        """
        if self.quiet or self.conditions or self.signs:
            return self._marked(e, None)
        own, before = Dummy("a", real=True), set(self.moves)
        found = self._marked(e, None)
        if not needed:
            self.entries |= {p: own for p in self.moves if p not in before and p not in self.entries}
        self.arguments[own] = needed
        self.letters[own], self.fixed[own], self.moves[own] = e, mpf(0), tuple(partial(add, way*far) for far in _AWAY)
        return own + found

    def _average(self, e: Expectation | ArraySum, within: Within) -> Any:
        nodes = [] if within is None else within
        if isinstance(e, ArraySum):
            nodes.append((None, (e.index,)))
            body = self._marked(e.body, nodes)
        else:
            body, variables = e.open()
            if within is None and len(variables) == 1 and not body.has(AppliedUndef) and parity(body, variables[0]) == -1:
                return S.Zero  # what stands beside it counts for nothing, and for anything
            nodes.append((e.covariance, variables))
            body = self._marked(body, nodes)*self._of_covariance(e)
        if within is not None:  # an average inside of another: over more variables, as far as this goes
            return body
        place = Dummy("E", real=True)
        self.averages[place] = _Average(nodes, _Compiled(body))
        return place

    def _of_covariance(self, e: Expectation) -> Expr:
        """The nodes do not move with a covariance: what stands in it counts as a factor does."""
        entries = [c for c in dict.fromkeys(e.covariance) if c.free_symbols or c.is_Add or _last(c)]
        return 3 + sum(self._marked(c, None) for c in entries) if entries else S.One

    def _of_undefined(self, e: Any, within: Within) -> Any:
        """What stands for an undefined function is no part of the claim, its arguments are."""
        names = [Dummy("u", real=True) for _ in e.args]
        before, self.rough = self.rough, bool(e.free_symbols & _bound(within))
        marked = {name: self._marked(a, within) for name, a in zip(names, e.args, strict=True)}
        self.rough = before
        return put(e.func(*names), self.functions).xreplace(marked)

    def _letter(self, e: Expr, within: Within) -> Any:
        place = Dummy("x", real=True)
        self.letters[place] = e
        if self.quiet or self.conditions or (self.signs and e in _bound(within)):
            return place  # it may turn nothing: a variable in a positive factor, all of a condition
        self.moves[place] = _MUCH_MOVED if self.rough or self.signs or e in _bound(within) else _SLIGHT
        unit = _last(e)
        if unit:
            last = Dummy("d", real=True)
            self.letters[last], self.fixed[last], self.moves[last] = e, mpf(0), (partial(add, unit),)
            return place + last
        return place

    def _sum(self, e: Expr, within: Within) -> Any:
        marked = [self._marked(a, within) for a in e.args]
        if self.quiet or self.conditions or self.signs:
            return e.func(*marked)
        factors = [Dummy("t", real=True) for _ in e.args]
        for t, a, m in zip(factors, e.args, marked, strict=True):
            self.letters[t], self.fixed[t], self.terms[t] = a, mpf(1), m
            self.moves[t] = _GROWN if self.rough else _DROPPED
        return e.func(*(Mul(t, m) for t, m in zip(factors, marked, strict=True)))

    def _signed(self, u: Expr, within: Within) -> Any:
        """The argument of a switch: of it the sign counts alone, so that no positive factor needs to move a side."""
        before, self.signs = self.signs, True
        found = self._marked(u.func(*(f for f in u.args if not f.is_positive)) if u.is_Mul else u, within)
        self.signs = before
        return found

    def _thrown(self, e: Expr, within: Within) -> Expr:
        """0 where the switch stands; it is thrown for good by adding much, of either sign. Nothing for what never turns."""
        u, bound = e.args[0], [v for _, variables in within or () for v in variables if v in e.free_symbols]
        if self.quiet or not bound or u.is_nonnegative or u.is_nonpositive or (
                len(u.free_symbols) == 1 and _one_sided(u, bound[0])):
            return S.Zero
        places = (Dummy("t", real=True), Dummy("t", real=True))
        for place, way in zip(places, (1, -1), strict=True):
            self.letters[place], self.fixed[place], self.moves[place] = e, mpf(0), (partial(add, way*_MUCH),)
        return places[0] + places[1]

    # -- numbers ---------------------------------------------------------------------------------------------------
    def changes(self, which: Sequence[int], place: Place, least: Any, *, least_of_all: bool = False) -> Iterator[tuple[int, Any]]:
        """(i, the change of the side, as a part of it) of those whose alteration shows there.

        `least_of_all`: by the slight alteration that shows least: erf(32) is erf(29) in 360 digits, and 1 in 440.
        """
        given, values = self._prepared(place)
        before = self.outer.at(given | values)
        if before is None or not before.value:
            return
        for i in which:
            if self.counted[i] not in self.held:
                continue
            slight = least_of_all and self.moves[self.counted[i]] is _SLIGHT
            change = self._change(self.counted[i], given, before, mp.inf if slight else least, min if slight else max)
            if change > least:
                yield i, change

    def stands(self, i: int, place: Place, digits: int) -> bool:
        """Is it there, though it shows nowhere? A sum of which the terms cancel is not."""
        p = self.counted[i]
        if p not in self.terms or p not in self.held:
            return p in self.held
        program, own, found = _Compiled(self.terms[p]), self._owner(p), []
        for precision in (digits + SPARE, DEEP):
            with mp.workdps(precision):
                given, values = self._prepared(place)
                at = [given | values] if own is None else [given | known.at for _, known in self.averages[own].base]
                numbers = [known.value for there in at if (known := program.at(there)) is not None]
                found.append(sum(map(fabs, numbers), mpf(0)))
        return bool(found[0] and found[1] and found[0] < 2*found[1] < 4*found[0])

    def _prepared(self, place: Place) -> tuple[dict[Any, Any], dict[Any, Any]]:
        given: dict[Any, Any] = dict(self.fixed)
        for p, e in self.letters.items():
            if p not in given and not (v := e.xreplace(dict(place.point))).free_symbols:
                given[p] = mpf(v.p)/v.q if v.is_Rational else mp.convert(v.evalf(mp.dps)._to_mpmath(mp.prec))
        for average in self.averages.values():
            average.prepare(self.letters, place.point, given)
        return given, {p: average.value() for p, average in self.averages.items()}

    def _owner(self, p: Dummy) -> Dummy | None:
        return next((name for name, average in self.averages.items() if p in average.program.inputs), None)

    def _change(self, p: Dummy, given: dict[Any, Any], before: _Known, least: Any, of: Callable[..., Any]) -> Any:
        """The largest, or least, of its moves, up to the first that shows; that of the whole where none has a value."""
        checkpoint("looking at what an equality depends on")
        own, found = self._owner(p), None
        for move in self.moves[p]:
            if own is None:
                after = self.outer.moved(before, p, move(given[p]))
            else:
                after = self.outer.moved(before, own, self.averages[own].value(p, move))
            if after is not None:
                change = fabs((after - before.value)/before.value)
                found = change if found is None else of(found, change)
                if found > least:
                    return found
        return mpf(1) if found is None else found


class _Known(NamedTuple):
    """A value, the numbers that it was found at, and all that was computed on the way."""

    value: Any
    at: dict[Any, Any]
    steps: list[Any]


class _Compiled:
    """A compiled formula of variables by name; None where it has no value."""

    def __init__(self, marked: Expr) -> None:
        self.inputs = sorted(marked.free_symbols, key=lambda s: s.dummy_index)
        self.line, self.precision = StraightLine(marked, self.inputs, MPMATH), 0

    def at(self, values: dict[Any, Any]) -> _Known | None:
        found = self._tried(lambda: self._run(values))
        return None if found is None else _Known(found, values, self.line.kept())

    def moved(self, before: _Known, p: Dummy, value: Any) -> Any:
        """With another number for one of them."""
        return self._tried(lambda: self.line.moved(before.steps, p, value))

    def _run(self, values: Mapping[Any, Any]) -> Any:
        if self.precision != mp.prec:
            self.line.prepare()
            self.precision = mp.prec
        return self.line(*(values[s] for s in self.inputs))

    @staticmethod
    def _tried(compute: Callable[[], Any]) -> Any:
        try:
            found = compute()
        except (ValueError, TypeError, ArithmeticError, NoClosedForm):
            return None
        return found if isfinite(found) else None


class _Average:
    """sum_i phi(v_i) f(L v_i)."""

    def __init__(self, nodes: Sequence[tuple[Any, tuple[Symbol, ...]]], program: _Compiled) -> None:
        self.nodes, self.program = list(nodes), program

    def prepare(self, letters: Mapping[Dummy, Expr], point: Mapping[Symbol, Expr], given: Mapping[Dummy, Any]) -> None:
        """The values of all variables at the nodes, and the weights."""
        normal = [(v, cov[i, i]) for cov, variables in self.nodes if cov is not None for i, v in enumerate(variables)]
        counted = [v for cov, variables in self.nodes if cov is None for v in variables]
        some = {**point, **dict.fromkeys(counted, S.One)}
        spread = [fabs(mp.sqrt(mp.convert(variance.xreplace(some).evalf(20)._to_mpmath(70)))) for _, variance in normal]
        self.base: list[tuple[Any, _Known]] = []  # weights, and the nodes that have a value
        for v in _vectors(len(normal), len(counted)):
            there = {x: s*y for (x, _), s, y in zip(normal, spread, v, strict=False)}
            there |= dict(zip(counted, v[len(normal):], strict=True))
            known = self.program.at({p: given[p] if p in given else there[letters[p]] for p in self.program.inputs})
            if known is not None:
                self.base.append((mp.exp(-sum(x*x for x in v[:len(normal)])/2), known))

    def value(self, p: Dummy | None = None, move: Move | None = None) -> Any:
        """The sum; with one of the variables moved, over the nodes that have both values."""
        total = mpf(0)
        for weight, known in self.base:
            moved = None if p is None or move is None else self.program.moved(known, p, move(known.at[p]))
            total += weight*(known.value if moved is None else moved)
        return total


def _last(e: Expr) -> Any:
    """One of the last digit of a long number, else 0."""
    long = e.is_Rational and max(abs(e.p), e.q) > 10**_LONG
    return mpf(1)/e.q if long else 0


def _bound(within: Within) -> set[Symbol]:
    return {v for _, variables in within or () for v in variables}


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


def _vectors(count: int, counted: int) -> list[tuple[Any, ...]]:
    """Nodes over so many normals, and over so many countable laws beside them."""
    found: list[tuple[Any, ...]] = [(v,) for v in _NODES]
    if count != 1:
        random = Random(count)
        drawn = [tuple(mpf(random.choice((0.5, 1.0, 2.5)))*mpf(random.gauss(0, 1)) for _ in range(count)) for _ in range(_VECTORS)]
        found = [*drawn, *(tuple(x*mpf(10)**-k for x in v) for k, v in enumerate(drawn[:6], 1))] if count else [()]
    for _ in range(counted):
        step = _EVERY if len(found) > 1 else 1
        found = [(*v, mpf(n)) for i, v in enumerate(found) for n in _TERMS_OF_LAW[i % step::step]]
    return found
