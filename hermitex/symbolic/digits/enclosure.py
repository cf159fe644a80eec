"""E f in [low, high], proved: ball arithmetic on panels with exact end points, plus a derived bound of the tail.

int_R f phi = sum over panels + what lies beyond +-L + what lies within eps of a singular end point; the last two are
bounded by the majorants of `growth`, the first by flint's integrator, which proves its error on analytic integrands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp
from sympy import Expr, Symbol

from hermitex.errors import Divergent, HermitexError, NoClosedForm
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.bounds.outward import ONE, ZERO, above, power_above
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.analytic_pieces import Panel, from_end, nested, panels, weighted, window
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.existence_check import exists_on_line, settled
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.growth import local_majorant
from hermitex.symbolic.interrupts import heard

_EXTRA_BITS = 400  # of working precision beyond the goal, before a ball that stays wide is given up
_GUARD = 40  # bits of working precision beyond those asked for
_DEEPEST = 10**5  # binary digits of an end point
_MOST = 512  # integrals over several variables that are remembered
_remembered: dict[Any, tuple[Any, Fraction]] = {}


class Enclosure(NamedTuple):
    """low <= value <= high, two rationals; `bits` of working precision; `how` in words."""

    low: Fraction
    high: Fraction
    bits: int
    how: str

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def width(self) -> Fraction:
        return self.high - self.low

    def contains(self, value: Any) -> bool:
        """Is the exact rational (or mpf) inside?"""
        if hasattr(value, "_mpf_"):
            sign, man, exponent, _ = value._mpf_
            value = (-1) ** sign * Fraction(int(man)) * Fraction(2) ** int(exponent)
        return self.low <= Fraction(value) <= self.high


def enclose(expr: Any, digits: int = 15, bits: int | None = None) -> Enclosure:
    """A rigorous enclosure of a constant expression, expectations included, on the whole line.

    Parameters
    ----------
    expr : expression or text without free symbols
    digits : relative width wanted, 10^-digits; the precision is raised until it is reached or 400 bits were added
    bits : one pass at this precision instead, whatever it gives

    Raises
    ------
    NoClosedForm : some part cannot be enclosed (no growth bound, a function without a ball, a moving kink).
    Divergent : an expectation that does not exist.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.gaussian import E
    >>> from sympy import tanh
    >>> found = enclose(E(z*tanh(z), z), digits=20)
    >>> float(found.low), found.width < Fraction(1, 10**20)
    (0.6057055096021589, True)
    """
    expr = hooks.expression(expr)
    if expr.free_symbols:
        free = min(expr.free_symbols, key=str)
        raise NoClosedForm(expr, f"{free} has no value")
    goal = bits or int(sp.ceiling(digits * sp.log(10, 2))) + 8
    last = goal if bits else goal + _EXTRA_BITS
    working = goal
    while True:
        found = _at_bits(expr, working)
        if bits or _narrow(found, digits) or working >= last:
            return found
        working = min(max(working + goal, 2 * working), last)


def _narrow(found: Enclosure, digits: int) -> bool:
    size = min(abs(found.low), abs(found.high)) if found.excludes_zero else ZERO
    return found.width * 10**digits <= size


@contextmanager
def _precision(bits: int) -> Iterator[None]:
    """Work with flint: its precision is a global of the library, set and put back by whoever holds ours; an interrupt stays one."""
    from flint import ctx

    with mp.workprec(mp.prec):
        before, ctx.prec = ctx.prec, bits
        try:
            with heard():
                yield
        finally:
            ctx.prec = before


def _at_bits(expr: Expr, bits: int) -> Enclosure:
    with _precision(bits + _GUARD):
        work = _Enclosing(bits)
        ball = work.value(expr)
        low, high = _rationals(ball.real)
        if not ball.imag.contains(0):
            raise NoClosedForm(expr, "its value is not real")
    how = f"enclosure at {bits} bits"
    if work.tail:
        how += f", tail < {_power_of_ten(work.tail)}"
    return Enclosure(low, high, bits, how)


def _power_of_ten(x: Fraction) -> str:
    k = 0
    while x < 1:
        x, k = x * 10, k + 1
    return f"1e-{k - 1}" if k else "1e1"


def _rationals(real: Any) -> tuple[Fraction, Fraction]:
    """The end points of a real ball, exactly."""
    if not real.is_finite():
        raise NoClosedForm(real, "ball arithmetic gives no finite bound for it")
    return _fraction(real.lower(), -1), _fraction(real.upper(), 1)


def _fraction(end: Any, direction: int) -> Fraction:
    mid, rad = end.mid(), end.rad()
    return _dyadic(mid, direction) + direction * _dyadic(rad, 1)


def _dyadic(exact: Any, direction: int) -> Fraction:
    """The number as a fraction; one with too many digits to be written is moved outward, in the direction, to 0 or 2^-_DEEPEST."""
    man, exponent = (int(part) for part in exact.man_exp())
    if exponent > _DEEPEST:
        raise NoClosedForm(exact, f"it is beyond 2^{_DEEPEST}, which is not written out")
    if exponent + abs(man).bit_length() < -_DEEPEST:
        return direction * Fraction(1, 2**_DEEPEST) if man * direction > 0 else ZERO
    return Fraction(man) * Fraction(2) ** exponent


class _Enclosing:
    """One pass at one precision; nodes are enclosed once and their tails remembered."""

    def __init__(self, bits: int) -> None:
        from hermitex.symbolic.digits.ball_backend import Balls

        self.bits, self.tail = bits, ZERO
        self.balls = Balls(self._inner)
        self.done: dict[Expectation, Any] = {}
        self.density = 1 / (2 * self.balls.acb.pi()).sqrt()
        self.goal = self.balls.arb(2) ** -(bits + 8)

    def value(self, expr: Expr) -> Any:
        return StraightLine(expr, [], self.balls)()

    def real(self, expr: Expr) -> Any:
        return self.value(expr).real

    def _inner(self, node: Expectation, variables: Sequence[Symbol]) -> Callable[..., Any]:
        if node.free_symbols.intersection(variables):
            raise NoClosedForm(node, "an inner expectation that depends on an outer variable has no enclosure here")
        if node not in self.done:
            # Over several variables one integral takes seconds, and the same one stands in many coefficients.
            key = (node, self.bits) if len(node.bound) > 1 else None
            if key not in _remembered:
                tail, self.tail = self.tail, ZERO
                self.done[node] = self.integral(node)
                if key is not None and len(_remembered) < _MOST:
                    _remembered[key] = self.done[node], self.tail
                self.tail = max(tail, self.tail)
            else:
                self.done[node], tail = _remembered[key]
                self.tail = max(tail, self.tail)
        return lambda *values, analytic=False: self.done[node]

    def integral(self, node: Expectation) -> Any:
        """A ball that contains E f."""
        one = settled(nested(node) if len(node.bound) > 1 or not node.independent else node)
        if not isinstance(one, Expectation):
            return self.value(one)
        body, (x,) = one.open()
        if any(x in inner.free_symbols for inner in body.atoms(Expectation)):
            from hermitex.symbolic.digits.boxes import box_integral

            return box_integral(node, self)
        if exists_on_line(one) is False:
            raise Divergent(node, "the integrand is not absolutely integrable")
        L, tail = window(body, x, self.bits + 8)
        return self.add_tail(self.finite(body, x, L), tail)

    def add_tail(self, ball: Any, tail: Fraction) -> Any:
        """The ball widened by what lies outside the window."""
        self.tail = max(self.tail, tail)
        return ball + self.balls.acb(self.plus_minus(tail))

    def plus_minus(self, radius: Fraction) -> Any:
        from flint import arb, fmpq

        return arb(0, arb(fmpq(radius.numerator, radius.denominator)).upper())

    def finite(self, body: Expr, x: Symbol, L: Fraction) -> Any:
        """int_{-L}^{L} body phi."""
        try:
            found = panels(body, x, L)
        except HermitexError:
            # A switch that is not solved for: flint's own piecewise functions, which are rigorous across it.
            side = sp.Rational(L.numerator, L.denominator)
            found = [Panel(-side, side, body, (False, False))]
        total = self.balls.acb(0)
        for panel in found:
            checkpoint("enclosing an integral")
            if panel.expr != 0:
                total += self._panel(panel, x)
        return total

    def _panel(self, panel: Panel, x: Symbol) -> Any:
        if not any(panel.rough):
            return self.smooth(panel.expr, x, panel.lo, panel.hi)
        middle = sp.Rational(1, 2) * (panel.lo + panel.hi)
        total = self.balls.acb(0)
        for rough, end, side in ((panel.rough[0], panel.lo, 1), (panel.rough[1], panel.hi, -1)):
            if rough:
                total += self._next_to(panel.expr, x, end, side, sp.Rational(1, 2) * (panel.hi - panel.lo))
            else:
                total += self.smooth(panel.expr, x, *((end, middle) if side > 0 else (middle, end)))
        return total

    def smooth(self, expr: Expr, x: Symbol, lo: Expr, hi: Expr) -> Any:
        """int_lo^hi of a function that is analytic on the open interval and bounded."""
        program, density = StraightLine(weighted(expr, x), [x], self.balls).prepare(), self.density
        return self.integrate(lambda v, analytic: density * program(v, analytic=analytic),
                              self.real(lo), self.real(hi), expr)

    def integrate(self, f: Callable[[Any, bool], Any], lo: Any, hi: Any, expr: Expr) -> Any:
        found = self.balls.acb.integral(f, lo, hi, rel_tol=self.goal, abs_tol=self.goal)
        if not found.is_finite():
            raise NoClosedForm(expr, "ball arithmetic gives no finite bound for its integral")
        return found

    def _next_to(self, expr: Expr, x: Symbol, end: Expr, side: int, length: Expr) -> Any:
        """int over (end, end +- length), end possibly singular: x = end +- e^-u, and a majorant below e^-U."""
        bound = local_majorant(expr, x, end, side)
        if bound is None or any(t.n >= 1 or t.a > 0 or t.b > 0 for t in bound.terms):
            return self.smooth(expr, x, *((end, end + length) if side > 0 else (end - length, end)))
        U, rest = self._cutoff(bound.terms, bound.start)
        moved, s = from_end(expr, x, end, side)
        program, density, origin = StraightLine(moved, [s], self.balls).prepare(), self.density, self.value(end)

        def integrand(u: Any, analytic: bool) -> Any:
            distance = (-u).exp()
            v = origin + side * distance
            return (-v * v / 2).exp() * density * program(distance, analytic=analytic) * distance

        start = -self.real(length).log()
        if not start < U:
            return self.balls.acb(0) + self.balls.acb(self.plus_minus(rest))
        self.tail = max(self.tail, rest)
        return self.integrate(integrand, start, U, expr) + self.balls.acb(self.plus_minus(rest))

    def _cutoff(self, terms: Sequence[Any], start: Fraction) -> tuple[int, Fraction]:
        """U and a bound on int_0^{e^-U} sum C s^-n ds, at most 2^-bits, with e^U >= start."""
        U = 8
        while True:
            checkpoint("bounding the neighbourhood of a singular point")
            # e^-U <= (3/8)^U, since e > 8/3: a rational power is enough here.
            eps = Fraction(3, 8) ** U
            rest = sum((t.C * power_above(eps, ONE - t.n) / (ONE - t.n) for t in terms), ZERO)
            if rest <= Fraction(1, 2 ** (self.bits + 8)) and 1 / eps >= start:
                return U, rest * above(sp.Rational(2, 5))
            U = U * 5 // 4


