"""Where an equality is tried: parameters near 1, at sizes from 0.001 to 1000 and of both signs, and about every turn.

Each draw is by a generator of its own number, so that the same claim is tried at the same points everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from random import Random

from sympy import Abs, Dummy, Expr, Integer, Max, Min, Pow, Rational, S, Symbol, cosh, exp, factorial, gamma, oo, sinh

from hermitex.errors import BadInput, HermitexError
from hermitex.symbolic.breaks.roots import Where, Window, zeros
from hermitex.symbolic.calculus.turning import MOST, Ray, turning
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.series.polynomials import HermiteOfOrder
from hermitex.symbols import fits

Point = dict[Symbol, Expr]
DECADES = 3
_LOWERED = 6     # parameters that are moved together
HIGHEST = 12    # order of a Hermite polynomial whose order is a letter
LARGEST = 10**7  # of an exponent
_ZEROS, _NEARBY = 3, Integer(5)  # numbers at which a jump stands that are tried, and within which they are if they are endless
_PLAIN = tuple(Rational(v, 10) for v in (7, 13, 9, 16, 4, 11, 18, 6, 14, 8))
_SIZES = (Rational(1, 20), Rational(1, 5), S.One, Integer(2), Integer(5))
_WHOLE = (1, 5, 0, 7, 2, 11, 3, 30, 4, 101, 6, 17, 1009, 8, 9, 64, 10, 250, 12)  # odd, even, prime and composite ones of all sizes


class Points:
    """Draws for the parameters of two sides, within what is assumed of each."""

    def __init__(self, sides: Sequence[Expr], parameters: Sequence[Symbol]) -> None:
        self.sides, self.parameters = tuple(sides), tuple(parameters)
        self.unread = 0  # expressions that turn, of too many
        nodes = {n for side in sides for n in side.atoms(Expectation)}
        self.orders = frozenset(s for side in sides for h in side.atoms(HermiteOfOrder) for s in h.args[0].free_symbols)
        self.correlations = frozenset(s for n in nodes if not n.independent for s in n.covariance.free_symbols)

    def near(self, i: int, shrink: Expr = S.One) -> Point:
        """The first is made of the plain numbers 0.7, 1.3, ..., the others are drawn between 0.2 and 1.8."""
        random = Random(i)
        out: Point = {}
        for n, s in enumerate(self.parameters):
            value = _PLAIN[n % 10] if i == 0 else Rational(random.randint(20, 180), 100)
            negative = bool(i) and random.random() < 1/2
            out[s] = self._whole(s, i + n, negative) if s.is_integer else _signed(s, value*shrink, negative)
        return out

    def far(self, i: int, shrink: Expr = S.One) -> Point:
        """Of all sizes: every other draw moves one parameter only, and leaves the others near 1."""
        random = Random(7919*(i + 1))
        chosen = random.randrange(max(len(self.parameters), 1))
        out: Point = {}
        for n, s in enumerate(self.parameters):
            decades = random.uniform(-2, 0) if s in self.correlations else random.uniform(-DECADES, DECADES)
            near, negative = Rational(random.randint(20, 180), 100), random.random() < 1/2
            value = near if i % 2 and n != chosen else _decimal(10**(decades*float(shrink)))
            out[s] = self._whole(s, 5*(i + 1) + n, negative) if s.is_integer else _signed(s, value, negative)
        return out

    def mixed(self, point: Point, i: int) -> Point:
        """The same with each parameter of a covariance at a size of its own: a variance may have to exceed a number, or another."""
        random = Random(6131*(i + 1))
        return {s: v if s.is_integer or s not in self.correlations else v*random.choice(_SIZES) for s, v in point.items()}

    def turns(self, parts: Sequence[Expr], start: Point) -> Iterator[Point]:
        """A point for each formula that the parts are, one parameter moving (in turn) and the others as they are at the start."""
        args = turning(*parts)
        self.unread = max(self.unread, len(args) - MOST)
        lines = [Ray(args[:MOST], s, start) for s in self.parameters]
        yield from self._around(lines, start)
        turned = {p.expr for line in lines for p in line.profiles if p.places}
        for a in args[:MOST]:
            if a not in turned and len(a.free_symbols) > 1 and not (a.is_positive or a.is_negative):
                yield from self._lower(a, start)

    def zeros(self, equations: Sequence[Expr], point: Point, free: Sequence[Symbol]) -> Iterator[Point]:
        """The point with some of the free letters moved to numbers that solve the equations, some that are found exactly."""
        if not equations:
            yield point
            return
        first, *rest = equations
        if first.xreplace(point) == 0:
            yield from self.zeros(rest, point, free)
            return
        for s in free if rest else ():  # one that is linear in a letter is solved for it in the others
            slope = first.diff(s)
            if slope.is_number and slope != 0:
                there = s - first/slope
                for p in self.zeros([q.xreplace({s: there}).expand() for q in rest], point, [t for t in free if t != s]):
                    if fits(s, place := there.xreplace(p).expand()):
                        yield {**p, s: place}
        for s in free:
            for place in _zeros(first.xreplace({t: v for t, v in point.items() if t != s}), s):
                moved = {**point, s: place}
                if fits(s, place) and first.xreplace(moved).expand() == 0:
                    found = self.zeros(rest, moved, [t for t in free if t != s])
                    yield from (p for p in found if first.xreplace(p).expand() == 0)

    def _around(self, lines: Sequence[Ray], start: Point) -> Iterator[Point]:
        found = []
        for line in lines:
            s, starts = line.symbol, [start]
            values = line.points((-S.One, S.One) if s in self.correlations else ())
            if s in self.correlations:  # how large it may be is seen at the points: some are near to a turn
                values += [t + side*abs(t)/100 for t in line.places for side in (1, -1)]
                # beside smaller others it may be larger
                starts.append({c: v/20 if c in self.correlations and not c.is_integer else v for c, v in start.items()})
            found.append([{**around, s: v} for v in values if fits(s, v) for around in starts])
        for group in zip_longest(*found):
            yield from (p for p in group if p is not None)

    def _lower(self, a: Expr, start: Point) -> Iterator[Point]:
        """What is of one sign wherever one parameter moves may turn where several do: each to where it is nearest to 0."""
        symbols = [s for s in self.parameters if s in a.free_symbols]
        for s in symbols[:_LOWERED]*2:
            line = Ray([a], s, start)
            if line.places:
                yield from self._around([line], start)
                return
            nearest = line.nearest(partial(fits, s))
            if nearest is not None:
                start = {**start, s: nearest}

    def _whole(self, s: Symbol, i: int, negative: bool) -> Expr:
        """A whole number that the symbol may be, small and large ones in turn."""
        for k in range(len(_WHOLE)):
            value = Integer(_WHOLE[(i + k) % len(_WHOLE)])
            if s in self.orders and value > HIGHEST:
                continue
            for v in (-value, value) if negative else (value, -value):
                if fits(s, v):
                    return v
        return S.Zero if fits(s, S.Zero) else S.One


def _zeros(u: Expr, s: Symbol) -> list[Expr]:
    """Some zeros of u as exact numbers, the smallest."""
    if isinstance(u, Max | Min | Abs):
        return [v for a in u.args for v in _zeros(a, s)]
    x = Dummy("x", real=True)
    for end in (oo, _NEARBY):
        try:
            return sorted(zeros(u.xreplace({s: x}), Where(x, Window(-end, end))), key=lambda v: abs(float(v)))[:_ZEROS]
        except (HermitexError, TypeError):
            continue
    return []


def too_large(expr: Expr, point: Mapping[Symbol, Expr]) -> bool:
    """Would the expression hold a number at that point that is too large to be written: 2**(2**1000)?"""
    if not expr.args or not expr.free_symbols:
        return False
    if any(too_large(a, point) for a in expr.args):
        return True
    grows = expr.exp if isinstance(expr, Pow) else expr.args[0] if isinstance(expr, (exp, factorial, gamma, cosh, sinh)) else None
    if grows is None or not grows.free_symbols & set(point):
        return False
    try:
        size = grows.xreplace({**point, **{b: S.One for b in grows.atoms(Bound)}}).evalf(5)
    except BadInput:  # the numbers make no covariance
        return False
    return bool(size.is_number and abs(size) > LARGEST)


def ranges(points: Sequence[Mapping[Symbol, Expr]]) -> str:
    """"mu from -812 to 530, s from 0.002 to 94": what the points cover."""
    names = sorted({s for p in points for s in p}, key=lambda s: s.name)
    spans = {s: (min(p[s] for p in points), max(p[s] for p in points)) for s in names}
    return ", ".join(f"{s} = {_short(a)}" if a == b else f"{s} from {_short(a)} to {_short(b)}" for s, (a, b) in spans.items())


def _short(value: Expr) -> str:
    return f"{float(value):.3g}"


def _signed(s: Symbol, value: Expr, negative: bool) -> Expr:
    if s.is_extended_nonpositive or (negative and not s.is_extended_nonnegative):
        return -abs(value)
    return abs(value)


def _decimal(x: float) -> Expr:
    """Three significant digits, as an exact number."""
    return Rational(f"{x:.3g}")

