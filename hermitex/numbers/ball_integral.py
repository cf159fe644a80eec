"""int F in a ball: flint's integrator between the places where F is not analytic, the parts nearest to them, and the tails.

On each piece every switch is frozen at its value, which balls prove by bisection; next to a singular place r the variable
is s with x = r +- e^s. A piece that is not proved leaves a number, and `proved` False.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from flint import acb, arb, ctx, fmpq

from hermitex.errors import NotConverged
from hermitex.numbers.integrand import Integrand
from hermitex.numbers.places import Place
from hermitex.numbers.program import Program, Undecided
from hermitex.numbers.windows import Window
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.growth import local_majorant, majorant, majorant_tail
from hermitex.symbolic.interrupts import heard

# 50,000 evaluations of one call of flint's integrator: about two seconds; of the questions of the tests none took 8,000
_LIMIT = 50_000


@dataclass
class Enclosed:
    """A ball of the integral, what is not proved of it, and the bound of its tails, which the ball contains."""

    ball: acb
    unproved: set[str] = field(default_factory=set)
    tails: arb = field(default_factory=arb)

    def doubted(self, reason: str) -> None:
        """Note what is not proved."""
        self.unproved.add(reason)


def ball_integral(integrand: Integrand, tolerance: arb, bits: int, digits: float) -> Enclosed:
    """The integral to an absolute tolerance, with a working precision of so many bits; `digits` of the mass are kept."""
    window = integrand.window_of(digits)
    with ctx.workprec(bits):
        total = _over_line(integrand, window, tolerance, bits)
        if not total.ball.is_finite():  # exp(-exp(exp(z^2))) has no ball where its bound of the tail begins
            total = _over_window(integrand, window, tolerance, bits, Enclosed(acb(0)))
            total.ball += _about_zero(integrand, 2*tolerance.upper())
            total.doubted("tail")
    if not total.ball.is_finite():
        raise NotConverged(None, f"no ball holds the integral of {integrand.f}")
    return total


def _over_line(integrand: Integrand, window: Window, tolerance: arb, bits: int) -> Enclosed:
    """The window made so wide that the bounds of the tails are below the tolerance, and the tails."""
    total = Enclosed(acb(0))
    low, tail_low = _end_of_tail(integrand, -1, -window.low, tolerance, total)
    high, tail_high = _end_of_tail(integrand, 1, window.high, tolerance, total)
    _over_window(integrand, Window(-low, high, window.top, window.peak, window.width), tolerance, bits, total)
    total.tails = (tail_low + tail_high).upper()
    total.ball += _about_zero(integrand, total.tails)
    return total


def _over_window(integrand: Integrand, window: Window, tolerance: arb, bits: int, total: Enclosed) -> Enclosed:
    for piece in _pieces(integrand, window, bits):
        checkpoint("integrating balls")
        piece.add_to(total, tolerance)
    return total


def _about_zero(integrand: Integrand, size: arb) -> acb:
    """A part of which only a bound of its size is known."""
    return acb(arb(0, size), 0 if integrand.f.is_real else arb(0, size))


def _end_of_tail(integrand: Integrand, side: int, x: float, tolerance: arb, total: Enclosed) -> tuple[float, arb]:
    """The end of the window on one side, and a bound of the part beyond."""
    if math.isfinite((integrand.low, integrand.high)[side > 0]) and x >= side*(integrand.low, integrand.high)[side > 0]:
        return x, arb(0)
    bound, further = majorant(integrand.f, integrand.z, side), max(x, 1.0)
    for _ in range(60):  # 1.1^60 = 300 times as far
        if bound is None:
            break
        end = Fraction(math.ceil(8*further), 8)
        beyond = majorant_tail(bound, end, plain=not integrand.normal)
        # 251/100 > (2 pi)^(1/2): the weight is exp(-x^2/2) here
        size = None if beyond is None else _ball(beyond)*_ball(Fraction(251, 100))
        if size is not None and size < tolerance:
            return float(end), size.upper()
        further *= 1.1
    total.doubted("tail")
    return x, tolerance.upper()


# -- pieces ------------------------------------------------------------------------------------------------------------------
@dataclass
class _BallPiece:
    """Between two neighbouring places, or between one and a middle; `singular`: 1 or -1 if the left or right end is."""

    integrand: Integrand
    a: arb
    b: arb
    bits: int
    singular: int = 0
    power: float = 0.0
    place: Place | None = None
    cuts: Sequence[float] = ()
    gaps: tuple[bool, bool] = (True, True)

    def add_to(self, total: Enclosed, tolerance: arb) -> None:
        """Add the integral over the piece."""
        program = self.integrand.program
        frozen = _frozen(program, self.a, self.b)
        with ctx.workprec(2*self.bits + 60):  # those of the places
            gap = (self.b - self.a)*arb(2)**(-self.bits)
            inside = self.a + gap, self.b - gap
        if frozen is None or not settled(program, *inside, frozen, self.bits):
            total.doubted("switch")
        if frozen is None:
            raise NotConverged(None, f"a switch of {self.integrand.f} is not decided next to {float(self.a.mid()):.6g}")
        if self.singular:
            self._add_singular(total, tolerance, frozen)
            return
        ends = [self.a.mid(), *(arb(c) for c in self.cuts), self.b.mid()]
        for u, v in pairwise(ends):
            total.ball += _integral(partial(_on_piece, program, frozen), u, v, self.bits, tolerance)
        for end, has_gap in ((self.a, self.gaps[0]), (self.b, self.gaps[1])):
            if has_gap:
                total.ball += self._gap(end, gap, frozen)

    def _gap(self, end: arb, gap: arb, frozen: dict[int, int]) -> acb:
        """A ball about 0 that holds the integral over the uncertainty of an end."""
        width = (gap.upper() + end.rad())*2
        size = abs(self.integrand.program.balls(acb(arb(end.mid(), width)), frozen=frozen)).upper()*width
        return _about_zero(self.integrand, size)

    def _add_singular(self, total: Enclosed, tolerance: arb, frozen: dict[int, int]) -> None:
        """By x = r +- e^s, down to where less than the tolerance is left."""
        assert self.place is not None
        side, length = self.singular, (self.b - self.a).mid()
        rate = max(1 + self.power, 1e-3)
        depth = max(self.bits*math.log(2)/rate, 8.0)
        bits = self.bits + 20
        logarithmic = self.integrand.logarithmic(self.place, side)
        if logarithmic is not None:
            states = _frozen(logarithmic, (length.log() - 1).mid(), length.log().mid())
            if states is None:
                raise NotConverged(None, f"a switch of {self.integrand.f} is not decided next to {self.place.x:.6g}")
            integrand = partial(_on_piece, logarithmic, states)
        else:
            bits += int(depth*1.45)  # 1.45 = 1/log 2
            integrand = partial(_next_to, self.integrand.program, frozen, self.place.ball(bits), side)
        with ctx.workprec(bits):
            last = length.log().mid()
            first = arb(self.integrand.peak_next_to(self.place, side, float(last))) - arb(depth)
            ends = [first, *(last - arb(d) for d in _halvings(float(last - first))), last]
            for u, v in pairwise(ends):
                total.ball += _integral(integrand, u, v, self.bits, tolerance)
            rest = self._next_to_place(first.exp().upper())
            if rest is None:
                total.doubted("singular end")
                rest = abs(integrand(acb(first), False)).upper()/rate*2
            total.ball += _about_zero(self.integrand, rest)

    def _next_to_place(self, distance: arb) -> arb | None:
        """A bound of the integral of |F| over the points as near to the singular place; None where none is read off the formula."""
        assert self.place is not None
        if self.place.exact is None:
            return None
        bound = local_majorant(self.integrand.f, self.integrand.z, self.place.exact, self.singular)
        if bound is None or any(t.n >= 1 or t.a > 0 or t.b > 0 for t in bound.terms) or not distance*_ball(bound.start) < 1:
            return None
        far = 1/distance  # C t^n exp(a t + b t^2), t >= 1/distance, where a and b are not positive
        parts = (_ball(t.C)*distance**_ball(1 - t.n)/_ball(1 - t.n)*(_ball(t.a)*far + _ball(t.b)*far**2).exp() for t in bound.terms)
        return sum(parts, arb(0)).upper()


def _ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def _halvings(depth: float) -> list[float]:
    """depth/2, depth/4, ... down to 2: the ends of panels that become longer towards the singular place."""
    return [depth/2**k for k in range(1, max(1, int(math.log2(depth))))]


def _on_piece(program: Program, frozen: dict[int, int], x: acb, analytic: bool) -> acb:
    return program.balls(x, analytic=analytic, frozen=frozen)


def _next_to(program: Program, frozen: dict[int, int], r: arb, side: int, s: acb, analytic: bool) -> acb:
    """F(r + side e^s) e^s."""
    step = s.exp()
    return program.balls(r + side*step, analytic=analytic, frozen=frozen)*step


def _integral(function: Callable[[acb, bool], acb], a: arb, b: arb, bits: int, tolerance: arb) -> acb:
    with heard():
        return acb.integral(function, acb(a), acb(b), rel_tol=arb(2)**(8 - bits), abs_tol=tolerance, eval_limit=_LIMIT)


def _frozen(program: Program, a: arb, b: arb) -> dict[int, int] | None:
    """The state of all switches inside a piece."""
    for share in (0.4142, 0.3717, 0.7321):  # irrational shares, where no second switch turns by chance
        try:
            return program.frozen_at(acb((a + (b - a)*share).mid()))
        except Undecided:
            continue
    return None


def settled(program: Program, low: arb, high: arb, frozen: dict[int, int], bits: int) -> bool:
    """Is it proved that all switches keep their state on (low, high)?"""
    ends = [_states_kept(program, end, frozen, bits) for end in (low, high)] if program.linear else []
    states, frozen = frozen, {number: state for number, state in frozen.items() if number not in program.linear}
    if not all(ends) or not frozen:
        return all(ends)
    most = 4000  # balls: 12 halvings towards each of hundreds of places
    stack = [(low, high)]
    with ctx.workprec(4*bits):  # of 1 - 1/(1 + u^2) twice the bits of u are lost next to 0
        while stack and most:
            a, b = stack.pop()
            most -= 1
            every: list[Any] = []
            program.balls(acb(((a + b)/2).union(a).union(b)), frozen=states, every=every)
            if not all(_keeps(program, every, number, state) for number, state in frozen.items()):
                middle = ((a + b)/2).mid()
                if not (bool(a < middle) and bool(middle < b)):
                    return False
                stack += [(a, middle), (middle, b)]
    return not stack


def _states_kept(program: Program, x: arb, frozen: dict[int, int], bits: int) -> bool:
    """Do the switches of linear functions have their states at a point?"""
    every: list[Any] = []
    with ctx.workprec(2*bits):
        program.balls(acb(x), frozen=frozen, every=every)
    return all(_keeps(program, every, number, frozen[number]) for number in program.linear)


def _keeps(program: Program, every: Sequence[Any], number: int, state: int) -> bool:
    op = program.operations[number]
    u = every[op.arguments[-1]].real
    if op.name == "floor":
        return bool(u >= state) and bool(u < state + 1)
    return bool(u > 0) if state > 0 else bool(u < 0) if state < 0 else bool(u == 0)


def _pieces(integrand: Integrand, window: Window, bits: int) -> list[_BallPiece]:
    breaks = integrand.breaks(window)
    steep = sorted(c.x for c in integrand.centres(window) if c.width < 0.1)[:60]  # 60: flint's own bisection finds the rest
    if window.high - window.low > 1000:  # an algebraic tail: panels that double
        most = int(math.log(max(abs(window.low), abs(window.high)), 4))
        steep = sorted({*steep, *(s*4.0**k for s in (1, -1) for k in range(most + 1) if window.low < s*4.0**k < window.high)})
    inner = [(p.ball(2*bits + 60), p) for p in breaks]
    ends: list[tuple[arb, Place | None]] = [(arb(window.low), None), *inner, (arb(window.high), None)]
    for number, place in enumerate(integrand.ends):
        if place is not None and place.x == (window.low, window.high)[number]:
            ends[-number] = (place.ball(2*bits + 60), place)
    out = []
    for (a, left), (b, right) in pairwise(ends):
        powers = [None if p is None else integrand.behaviour(p, s) for p, s in ((left, 1), (right, -1))]
        middle = ((a + b)/2).mid()
        if powers[0] is None and powers[1] is None:
            cuts = [c for c in steep if float(a.mid()) < c < float(b.mid())]
            out.append(_BallPiece(integrand, a, b, bits, cuts=cuts, gaps=(left is not None, right is not None)))
            continue
        if powers[0] is not None:
            out.append(_BallPiece(integrand, a, b if powers[1] is None else middle, bits, 1, powers[0], left))
        if powers[1] is not None:
            out.append(_BallPiece(integrand, a if powers[0] is None else middle, b, bits, -1, powers[1], right))
    return out
