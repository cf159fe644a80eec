"""h(u) = 0 for almost every u, or h(u_0) != 0 where h is continuous: whether a function vanishes, decided.

Zero is proved by algebra, never read off values. Non-zero is proved at one point, by an exact value or an enclosure; a
function that is continuous there does not vanish on a set of positive measure around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from sympy import Basic, Expr, Piecewise, Rational, Symbol, expand
from sympy.core.relational import Relational

from hermitex.errors import BudgetExceeded, Divergent, HermitexError
from hermitex.symbolic.bounds.integrability import dangers
from hermitex.symbolic.breaks.switches import JUMPS
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parity import identically_zero
from hermitex.symbolic.zero import decide


@dataclass(frozen=True)
class VanishingVerdict:
    """`status`; the exact `value` or the `enclosure` at the point `at` where it is not zero; `how` in words."""

    status: Literal["zero", "nonzero", "undetermined"]
    how: str
    value: Expr | None = None
    enclosure: tuple[Fraction, Fraction] | None = None
    at: tuple[tuple[Symbol, Expr], ...] = ()


@kept(2048)
def vanishes(h: Expr, u: tuple[Symbol, ...]) -> VanishingVerdict:
    """Does the function h of the real variables u vanish almost everywhere? Expectations inside it are allowed.

    Examples
    --------
    >>> from sympy import Abs, Max, sign
    >>> x = Symbol("x", real=True)
    >>> vanishes(Max(x, 0) + Max(-x, 0) - Abs(x), (x,)).status
    'zero'
    >>> found = vanishes(x*sign(x - 3), (x,))
    >>> found.status, found.value, found.at
    ('nonzero', -1/2, ((x, 1/2),))
    """
    checkpoint("deciding whether a coefficient vanishes")
    inside = tuple(v for v in u if v in h.free_symbols)
    if not inside:
        found = decide(h)
        return VanishingVerdict(found.status, found.how, found.value, found.enclosure)
    if identically_zero(h, inside) or identically_zero(expand(h), inside):
        return VanishingVerdict("zero", "exact algebra")
    last = "no point was found where it could be evaluated"
    for point in generic_points(inside, 3):
        if not _continuous(h, dict(point)):
            continue
        try:
            found = decide(h.xreplace(dict(point)))
        except (BudgetExceeded, Divergent):
            raise
        except HermitexError as err:
            last = " ".join(str(err).split())
            continue
        if found.status == "nonzero":
            return VanishingVerdict("nonzero", found.how, found.value, found.enclosure, point)
        last = f"at {', '.join(f'{v} = {x}' for v, x in point)}: {found.how}"
    return VanishingVerdict("undetermined", last)


def generic_points(u: Sequence[Symbol], count: int) -> Iterator[tuple[tuple[Symbol, Expr], ...]]:
    """A few rational points, none on a diagonal or an axis."""
    # numerator and denominator, of size one, either sign: no two are equal or opposite
    samples = ((1, 2), (-2, 3), (5, 4), (-7, 5), (1, 9), (8, 7), (-1, 3))
    for k in range(count):
        yield tuple((v, Rational(*samples[(i + k) % len(samples)])) for i, v in enumerate(u))


def _continuous(h: Expr, point: dict[Symbol, Expr]) -> bool:
    """Is h continuous at the point: no switch is about to jump there, and no expectation jumps for most of its values?

    An expectation over s of a function of (u, s) is continuous where no switch argument vanishes for all s at the
    point and the integrand is bounded on bounded sets (its tails are bounded locally uniformly by its growth).
    """
    for node in h.atoms(Expectation):
        if node.free_symbols & set(point) and not _tame(node, point):
            return False
    for switch in _outside(h):
        for argument in _arguments(switch):
            if not argument.free_symbols & set(point):
                continue
            value = argument.xreplace(point)
            if value.free_symbols or value.has(Expectation) or value.evalf(15).is_Float is not True:
                return False
            if abs(value.evalf(15)) < Rational(1, 10**6):
                return False
    return True


def _tame(node: Expectation, point: dict[Symbol, Expr]) -> bool:
    body, bound = node.open()
    moving = tuple(point)
    if dangers(body, (*moving, *bound)):
        return False
    for switch in body.atoms(*JUMPS):
        for argument in _arguments(switch):
            if not argument.is_polynomial(*moving, *bound):
                return False
            there = expand(argument.xreplace(point))
            if not there.free_symbols & set(bound) and abs(there.evalf(15)) < Rational(1, 10**6):
                return False
    return True


def _outside(h: Basic) -> Iterator[Any]:
    """Switches that jump and are not inside an expectation, and powers and logarithms that may be singular."""
    if isinstance(h, Expectation) or not h.args:
        return
    if isinstance(h, JUMPS) or (h.is_Pow and not (h.exp.is_Integer and h.exp > 0)) or h.func.__name__ == "log":
        yield h
    for a in h.args:
        yield from _outside(a)


def _arguments(switch: Basic) -> list[Expr]:
    if isinstance(switch, Piecewise):
        return [r.lhs - r.rhs for r in switch.atoms(Relational)]
    return [switch.args[0]]
