"""f(x) = a g(b x + c) + d, and of two arguments a g(x + b y) + c x y + d: what stands for an undefined function in a trial.

The first are plain, so that a counter-example reads well. Those drawn afterwards have no special value at 0, no parity,
both signs and several sizes; some have a kink or a jump, where no derivative of the claim forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from sympy import Abs, Add, Expr, Heaviside, Max, Rational, Symbol, cos, erf, exp, sin, tanh

from hermitex.symbolic.gaussian import Expectation


class Trial(NamedTuple):
    """A concrete function: its text in x (x1, x2, ...), the function, and the derivatives that it has as functions (None: all)."""

    text: str
    build: Callable[..., Expr]
    order: int | None = None


PLAIN: tuple[Trial, ...] = (
    Trial("tanh", tanh),
    Trial("relu", lambda u: Max(0, u), 1),
    Trial("x**3 + x**2", lambda u: u**3 + u**2),
    Trial("cos", cos),
    Trial("erf", erf),
    Trial("exp(x/2)", lambda u: exp(u/2)),
    Trial("sin(2*x)", lambda u: sin(2*u)),
)

# Shapes: name, function of (u, slope, shift), derivatives. The average of an exact one is known in several variables too.
_EXACT: tuple[tuple[Callable[..., Expr], int | None], ...] = (
    (lambda u, b, c: sin(b*u + c), None),
    (lambda u, b, c: b*u**3/5 + c*u**2 - u, None),
    (lambda u, b, c: exp(b*u/2) + c*u, None),
    (lambda u, b, c: Max(0, u - c), 1),
    (lambda u, b, c: cos(b*u) + c*u, None),
    (lambda u, b, c: Heaviside(u - c), 0),
)
_OTHER: tuple[tuple[Callable[..., Expr], int | None], ...] = (
    (lambda u, b, c: tanh(b*u + c), None),
    (lambda u, b, c: erf(b*u + c), None),
    (lambda u, b, c: Abs(u - c), 1),
)
_SIZES = (Rational(1), Rational(7, 3), Rational(40), Rational(1, 9), Rational(600))


def plain(n: int, order: int, *, several: bool, arguments: int = 1) -> Trial:
    """The plain function for the n-th undefined one, of which derivatives up to `order` occur."""
    if arguments > 1:
        return drawn(Random(n), n, order, several=several, arguments=arguments)
    fit = [t for t in PLAIN if (t.order is None or order <= t.order) and not (several and t.build in (tanh, erf))]
    return fit[n] if n < len(fit) else drawn(Random(n), n, order, several=several)


def drawn(random: Random, n: int, order: int, *, several: bool, levels: Sequence[Expr] = (), arguments: int = 1) -> Trial:
    """The n-th function drawn: the shapes in turn, slopes, shifts, sizes and signs at random.

    Parameters
    ----------
    order : the highest derivative that occurs
    several : whether averages over several variables are taken of it
    levels : numbers of the claim; some functions vary about them, so that a switch there is passed
    arguments : of the function; one of several varies with each of them, differently, and not by a sum
    """
    shapes = _EXACT if several else (*_OTHER[:1], *_EXACT, *_OTHER[1:])
    fit = [shape for shape, most in shapes if most is None or order <= most]
    size = _SIZES[0] if n < 4 else _SIZES[n % len(_SIZES)]
    if n % 2:
        size = -size
    slope, shift = _number(random, 40, 150), _number(random, 20, 90)
    level = levels[n % len(levels)] if levels and n % 3 == 2 else Rational(0)
    offset = level + size*_number(random, 10, 60)
    shape = fit[n % len(fit)]

    weights = [_number(random, 40, 160) for _ in range(arguments - 1)]

    def build(u: Any, *others: Any) -> Expr:
        one = Add(u, *(w*v for w, v in zip(weights, others, strict=False)))
        pairs = [a*b/(3 + k) for k, (a, b) in enumerate(pairwise((u, *others)))]
        return size*Add(shape(one, slope, shift), *pairs) + offset

    names = ["x"] if arguments == 1 else [f"x{k + 1}" for k in range(arguments)]
    return Trial(str(build(*(Symbol(name, real=True) for name in names))), build, order)


def _number(random: Random, low: int, high: int) -> Expr:
    """A number of two decimals between low and high hundredths, of either sign."""
    return Rational(random.randint(low, high)*random.choice((1, -1)), 100)


def levels_of(expr: Expr) -> tuple[Expr, ...]:
    """The numbers above 2 that stand in the claim: what a Max or a Piecewise may compare a function with."""
    found = {abs(a) for a in expr.atoms(Rational) if abs(a) > 2}
    return tuple(v for a in sorted(found)[:4] for v in (a, -a)) if expr.has(Abs, Max) or _switches(expr) else ()


def _switches(expr: Expr) -> bool:
    from hermitex.symbolic.breaks.switches import switch_arguments

    return bool(switch_arguments(expr))


def widest(expr: Expr) -> int:
    """How many variables an average of the expression is taken over, nested ones counted."""
    return max((len(n.bound) + n.level for n in expr.atoms(Expectation)), default=0)
