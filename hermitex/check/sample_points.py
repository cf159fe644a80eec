"""The domain of a test: letters in [0.01, 100] of both signs as assumed, integers 0 to 12, either side of a letter's switches.

Undefined functions are replaced by tanh, for a counter-example that reads well, and by three smooth functions without special
values. Every draw has a generator of its own number, so that a claim is tried at the same points everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Expr, Integer, Rational, S, Symbol, erf, exp, sin, tanh
from sympy.core.function import UndefinedFunction

from hermitex.errors import HermitexError
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.law_constraints import Condition
from hermitex.symbolic.undefined import arguments, undefined_functions
from hermitex.symbols import fits

Point = dict[Symbol, Expr]
PLAIN = tuple(Rational(v, 10) for v in (7, 13, 9, 16, 4, 11, 18, 6, 14, 8))
WHOLE = 12  # the largest integer of the domain


class Trial(NamedTuple):
    """A concrete function for an undefined one: its text in x (x1, x2, ...), and the function."""

    text: str
    build: Callable[..., Expr]


class PointSamples:
    """Points of the domain for the letters and the undefined functions of two sides."""

    def __init__(self, sides: Sequence[Expr], needed: Sequence[Condition] = ()) -> None:
        self.sides = tuple(sides)
        self.letters = sorted(set[Symbol]().union(*(side.free_symbols for side in sides)), key=lambda s: s.name)
        found = {f for side in sides for f in undefined_functions(side)}
        self.functions = tuple(sorted(found, key=lambda f: f.__name__))
        nodes = [n for side in sides for n in side.atoms(Expectation) if not n.independent]
        self.laws = [c for c in dict.fromkeys(n.covariance for n in nodes) if not c.atoms(Bound)]
        self.correlations = {s for c in self.laws for i in range(c.rows) for j in range(i) for s in c[i, j].free_symbols}
        self.variances = {s for c in self.laws for i in range(c.rows) for s in c[i, i].free_symbols}
        # A law's probabilities add up to 1, which no draw meets; only conditions with room are required.
        self.needed = [(c.value, c.interval) for c in needed if c.interval.measure > Rational(1, 10**6)]

    # -- points --------------------------------------------------------------------------------------------------------
    def near(self, i: int) -> Point:
        """The first is made of the plain numbers 0.7, 1.3, ..., the others are drawn between 0.2 and 1.8."""
        random = Random(i)
        point: Point = {}
        for n, s in enumerate(self.letters):
            value = PLAIN[n % 10] if i == 0 else Rational(random.randint(20, 180), 100)
            negative = bool(i) and random.random() < 1/2
            point[s] = self._whole(s, random, negative, n if i == 0 else None) if s.is_integer else _signed(s, value, negative)
            if s in self.correlations:
                point[s] = _signed(s, PLAIN[n % 10]/2 if i == 0 else Rational(random.randint(5, 95), 100), negative)
        return self.lawful(point)

    def wide(self) -> Iterator[Point]:
        """Each letter in turn small, large and between, of both signs, the others near 1."""
        for turn in range(6):
            for n, s in enumerate(self.letters):
                random = Random(1000*turn + n)
                point = self.near(turn + 1)
                size = ((-2, -1), (1.8, 2), (0.5, 1.5), (-1, 0.5), (1.8, 2), (-2, -1))[turn]
                value = Rational(f"{10**random.uniform(*size):.3g}")
                if s.is_integer:
                    value = Integer((0, WHOLE, 5, 2, 9, 1)[turn])
                elif s in self.correlations:
                    value = Rational((3, 95, 50, 20, 97, 8)[turn], 100)
                negative = turn in (3, 4, 5)
                moved = next((v for v in ((-value, value) if negative else (value, -value)) if fits(s, v)), point[s])
                yield self.lawful({**point, s: moved})

    def allowed(self, point: Mapping[Symbol, Expr]) -> bool:
        """Do the assumptions, the laws and the covariances allow the point?"""
        try:
            return all(fits(s, v) for s, v in point.items()) and all(_is_law(c, point) for c in self.laws) and all(
                value.xreplace(dict(point)) in interval for value, interval in self.needed)
        except (HermitexError, TypeError, ValueError):
            return False

    def lawful(self, point: Point) -> Point:
        """The point, with the letters of covariances and of laws halved until these exist."""
        bound = self.correlations | {s for value, _ in self.needed for s in value.free_symbols}
        for _ in range(8):
            if self.allowed(point) or not bound:
                break
            point = {s: v/2 if s in bound and not s.is_integer else v for s, v in point.items()}
        raised = (point, *({s: v + 2**k if s in self.variances and fits(s, v + 2**k) else v for s, v in point.items()}
                           for k in range(7)))  # a variance a - 3 exists beyond a = 3: 2^6 is within the domain
        return next((p for p in raised if self.allowed(p)), point)

    def _whole(self, s: Symbol, random: Random, negative: bool, n: int | None) -> Expr:
        first = [int(PLAIN[n % 10]*10) % WHOLE] if n is not None else []
        for value in (*first, *random.sample(range(7), 7), *random.sample(range(WHOLE + 1), WHOLE + 1)):
            for v in (-value, value) if negative else (value, -value):
                if fits(s, Integer(v)):
                    return Integer(v)
        return S.One

    # -- functions -----------------------------------------------------------------------------------------------------
    def trials(self, i: int) -> dict[UndefinedFunction, Trial]:
        """A function for each undefined one: 0, functions that read well; 1, 2, 3, ..., smooth ones without special values."""
        plain = (Trial("tanh", tanh), Trial("x**3 + x**2", lambda u: u**3 + u**2), Trial("erf", erf),
                 Trial("exp(x/2)", lambda u: exp(u/2)), Trial("sin(2*x)", lambda u: sin(2*u)))
        found = {}
        for n, f in enumerate(self.functions):
            many = max(arguments(side, f) for side in self.sides)
            found[f] = plain[n] if i == 0 and many == 1 and n < len(plain) else _drawn(Random(77*i + n), many)
        return found


def _drawn(random: Random, many: int) -> Trial:
    """a tanh(b u + c) + d sin(e u + g) + h, u = x + w y, + k x y for several arguments, of numbers drawn at random."""
    def number(low: int, high: int) -> Expr:
        return Rational(random.randint(low, high)*random.choice((1, -1)), 100)

    a, b, c, d, e, g, h, k = (number(*span) for span in ((60, 190), (60, 140), (20, 90), (40, 120), (50, 130), (20, 90), (10, 60),
                                                         (20, 70)))
    weights = [number(40, 160) for _ in range(many - 1)]

    def build(u: Any, *others: Any) -> Expr:
        w = Add(u, *(x*y for x, y in zip(weights, others, strict=False)))
        return a*tanh(b*w + c) + d*sin(e*w + g) + h + Add(*(k*x*y/(2 + j) for j, (x, y) in enumerate(pairwise((u, *others)))))

    names = ["x"] if many == 1 else [f"x{j + 1}" for j in range(many)]
    return Trial(str(build(*(Symbol(name, real=True) for name in names))), build)


def _signed(s: Symbol, value: Expr, negative: bool) -> Expr:
    return -abs(value) if s.is_extended_nonpositive or (negative and not s.is_extended_nonnegative) else abs(value)


def _is_law(covariance: Any, point: Mapping[Symbol, Expr]) -> bool:
    matrix = np.array(covariance.xreplace(dict(point)).evalf(15).tolist(), float)
    return bool(np.linalg.eigvalsh(matrix).min() > -1e-12*np.abs(matrix).max())  # 1e-12: a hundred roundings of an eigenvalue


def ranges(points: Sequence[Mapping[Symbol, Expr]]) -> str:
    """"mu from -81.2 to 53, s from 0.02 to 94": what the points cover."""
    names = sorted({s for p in points for s in p}, key=lambda s: s.name)
    spans = {s: (min(p[s] for p in points), max(p[s] for p in points)) for s in names}
    return ", ".join(f"{s} = {float(a):.3g}" if a == b else f"{s} from {float(a):.3g} to {float(b):.3g}"
                     for s, (a, b) in spans.items())
