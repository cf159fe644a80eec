"""E f in [low, high], proved: flint's integrator between the places where f is not analytic, and bounds of the tails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp
from sympy import Expr, Symbol

from hermitex.errors import Divergent, NoClosedForm, NotConverged
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.bounds.outward import ZERO
from hermitex.symbolic.digits.iterated_averages import nested
from hermitex.symbolic.existence_check import exists_on_line, settled
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.interrupts import heard

_EXTRA_BITS = 400  # of working precision beyond the goal, before a ball that stays wide is given up
_GUARD = 40  # bits of working precision beyond those asked for
_DEEPEST = 10**5  # binary digits of an end point


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
    NoClosedForm : some part cannot be enclosed: no growth bound, a function without a ball, several variables that do not
        reduce to one.
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
        from flint import acb, arb

        self.bits, self.tail = bits, ZERO
        self.done: dict[Expectation, Any] = {}
        self.density = 1 / (2 * acb.pi()).sqrt()
        self.goal = arb(2) ** -(bits + 8)

    def value(self, expr: Expr) -> Any:
        """A ball of a constant expression."""
        from hermitex.numbers.program import ball_constant

        return ball_constant(self.with_numbers(expr))

    def with_numbers(self, expr: Expr) -> Expr:
        """The expression with each of its outermost averages as a number with a known ball."""
        from hermitex.numbers.program import BallNumber

        if isinstance(expr, Expectation):
            return BallNumber(self._average(expr))
        if not expr.args or not expr.has(Expectation):
            return expr
        return expr.func(*(self.with_numbers(a) for a in expr.args))

    def _average(self, node: Expectation) -> Any:
        if node.free_symbols:
            raise NoClosedForm(node, "an inner expectation that depends on an outer variable has no enclosure here")
        if node not in self.done:
            self.done[node] = self.integral(node)
        return self.done[node]

    def integral(self, node: Expectation) -> Any:
        """A ball that contains E f."""
        one = settled(nested(node) if len(node.bound) > 1 or not node.independent else node)
        if not isinstance(one, Expectation):
            return self.value(one)
        body, (x,) = one.opened()
        if exists_on_line(one) is False:
            raise Divergent(node, "the integrand is not absolutely integrable")
        return self._on_line(node, self.with_numbers(body), x)

    def _on_line(self, node: Expectation, body: Expr, x: Symbol) -> Any:
        from hermitex.numbers.ball_integral import ball_integral
        from hermitex.numbers.integrand import Integrand
        from hermitex.numbers.program import exact_ball

        try:
            integrand = Integrand(body, x)
            size = mp.exp(mp.mpf(integrand.window.top)) * integrand.window.mass
            digits = (self.bits + 8) * mp.log10(2)
            found = ball_integral(integrand, self.goal * exact_ball(size), self.bits + _GUARD, float(digits))
        except NotConverged as error:
            raise NoClosedForm(node, str(error)) from error
        if found.unproved:
            raise NoClosedForm(node, f"of its enclosure the {' and the '.join(sorted(found.unproved))} is not proved")
        self.tail = max(self.tail, _dyadic(found.tails, 1))
        return found.ball * self.density
