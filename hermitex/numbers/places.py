"""u(x) = 0: the places at which a switch turns or a root ends, as doubles and as balls of any precision.

All zeros of polynomials, and of what is a monotone or periodic function of one; of other functions those at which
they change sign on a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from flint import acb, arb, ctx, fmpz_poly
from sympy import Expr, Symbol

from hermitex.errors import HermitexError
from hermitex.numbers.program import Program, Undecided, ball_constant, exact_ball
from hermitex.symbolic.arithmetic import mp

#: Functions that vanish exactly where their argument does.
_ODD_MONOTONE = (sp.erf, sp.tanh, sp.sinh, sp.atan, sp.asin, sp.asinh, sp.erfi, sp.atanh, sp.sign)


@dataclass(frozen=True)
class Place:
    """A zero: `x` to a double; `ball(bits)` of any precision; `exact`: its expression where that is known."""

    x: float
    ball: Callable[[int], arb]
    exact: Expr | None = None


def zeros(u: Expr, z: Symbol, low: float, high: float, grid: np.ndarray | None = None) -> list[Place]:
    """The real zeros of u in [low, high]; without a grid only the zeros that are known exactly."""
    u = sp.sympify(u, strict=True)
    if not u.has(z):
        return []
    if u.is_Mul:
        return [p for a in u.args for p in zeros(a, z, low, high, grid)]
    if isinstance(u, (sp.Abs, *_ODD_MONOTONE)):
        return zeros(u.args[0], z, low, high, grid)
    if u.is_Pow and u.exp.is_number:
        return zeros(u.base, z, low, high, grid) if u.exp.is_positive else []
    if isinstance(u, sp.exp):
        return []
    if isinstance(u, sp.log):
        return zeros(u.args[0] - 1, z, low, high, grid)
    if isinstance(u, sp.Max | sp.Min):
        return [p for a in u.args for p in zeros(a, z, low, high, grid)]
    if isinstance(u, sp.sin | sp.cos) and (found := _of_wave(u, z, low, high)) is not None:
        return found
    if (found := _of_polynomial(u, z)) is not None:
        return [p for p in found if low <= p.x <= high]
    return _bracketed(u, z, grid) if grid is not None else []


def joined(places: Iterable[Place]) -> list[Place]:
    """The places in order, equal ones once; of two that agree to 1e-13 the exactly known one."""
    out: list[Place] = []
    for p in sorted(places, key=lambda p: p.x):
        if out and abs(p.x - out[-1].x) <= 1e-13*(1e-3 + abs(p.x)):  # 1e-13: 500 roundings of a bracketed zero
            if out[-1].exact is None:
                out[-1] = p
            continue
        out.append(p)
    return out


def known(exact: Expr) -> Place:
    """A place that is a constant expression."""
    def ball(bits: int) -> arb:
        with ctx.workprec(bits):
            return ball_constant(exact).real

    return Place(float(ball(60).mid()), ball, exact)


# -- polynomials and waves -------------------------------------------------------------------------------------------------
def _of_polynomial(u: Expr, z: Symbol) -> list[Place] | None:
    """All real zeros of a rational function, or None if u is another function or has coefficients that are not rational."""
    if not u.is_rational_function(z):
        return None
    numerator = u if u.is_polynomial(z) else sp.numer(sp.together(u))
    coefficients = sp.Poly(numerator, z).all_coeffs()
    if len(coefficients) == 2:
        return [known(-coefficients[1]/coefficients[0])]
    if not all(c.is_Rational or c.is_Float for c in coefficients):
        return _of_quadratic(*coefficients) if len(coefficients) == 3 else None
    return _of_rational_polynomial([sp.Rational(c) for c in coefficients])


def _of_quadratic(a: Expr, b: Expr, c: Expr) -> list[Place] | None:
    discriminant = b**2 - 4*a*c
    with ctx.workprec(200):
        if (size := ball_constant(sp.expand(discriminant)).real) < 0:
            return []
        root = sp.sqrt(discriminant) if size > 0 else sp.S.Zero
    return [known((-b + s*root)/(2*a)) for s in ((1, -1) if root != 0 else (1,))]


def _of_rational_polynomial(coefficients: Sequence[sp.Rational]) -> list[Place]:
    common = sp.ilcm(1, *(c.q for c in coefficients))
    polynomial = fmpz_poly([int(c*common) for c in reversed(coefficients)])
    out = []
    with ctx.workprec(120):
        for factor, _ in polynomial.factor()[1]:
            roots = [r for r, _ in factor.complex_roots()]
            out += [_of_root(factor, k, float(r.real.mid())) for k, r in enumerate(roots) if r.imag == 0]
    return out


def _of_root(factor: fmpz_poly, number: int, x: float) -> Place:
    """A real root of an irreducible integer polynomial."""
    if factor.degree() == 1:
        return known(sp.Rational(-int(factor[0]), int(factor[1])))

    def ball(bits: int) -> arb:
        with ctx.workprec(bits):
            return min((r.real for r, _ in factor.complex_roots() if r.imag == 0), key=lambda r: abs(float(r.mid()) - x))

    return Place(x, ball)


def _of_wave(u: Expr, z: Symbol, low: float, high: float) -> list[Place] | None:
    """Zeros of sin(a z + b) and cos(a z + b); None for other arguments, or for more zeros than can be panel ends."""
    argument = sp.expand(u.args[0])
    a, b = argument.coeff(z, 1), argument.coeff(z, 0)
    if sp.expand(argument - a*z - b) != 0 or a == 0:
        return None
    shift = sp.S.Half if isinstance(u, sp.cos) else sp.S.Zero
    first, last = sorted(((float(a)*end + float(b))/math.pi - float(shift)) for end in (low, high))
    most = 5000  # zeros: each begins a panel, and 40,000 panels are allowed
    if last - first > most:
        return None
    return [known((sp.pi*(n + shift) - b)/a) for n in range(math.ceil(first), math.floor(last) + 1)]


# -- zeros on a grid ---------------------------------------------------------------------------------------------------------
def _bracketed(u: Expr, z: Symbol, grid: np.ndarray) -> list[Place]:
    """Zeros at which u changes sign on the grid, by bisection to the last digit."""
    try:
        program = Program(u, [z])
    except HermitexError:
        return []
    signs = np.sign(np.real(program.floats(grid).m))
    at = np.nonzero(signs[1:]*signs[:-1] < 0)[0]
    at = np.array([j for j in at if _differ(program, grid[j], grid[j + 1])], dtype=int)
    low, high, below = grid[at], grid[at + 1], signs[at]
    for _ in range(70 if len(at) else 0):  # 70 halvings end at neighbouring doubles
        middle = (low + high)/2
        left = np.sign(np.real(program.floats(middle).m)) == below
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    alone = (signs == 0) & ~(np.r_[False, signs[:-1] == 0] | np.r_[signs[1:] == 0, False])  # else u is 0 between its own switches
    return [_refined(program, x) for x in [*high, *grid[alone]]]


def _differ(program: Program, a: float, b: float) -> bool:
    """Do the signs at two points differ, not only by rounding?"""
    if not program.has_balls:
        return True
    with ctx.workprec(200):
        try:
            return bool(program.balls(acb(a)).real*program.balls(acb(b)).real < 0)
        except Undecided:
            return True


def _refined(program: Program, x: float) -> Place:
    def ball(bits: int) -> arb:
        with mp.workprec(bits + 20):
            centre = _secant(program, mp.mpf(float(x)), bits)
        with ctx.workprec(bits + 20):
            middle = exact_ball(centre)
            radius = arb(2)**(8 - bits)*(abs(middle) + arb(2)**-20)
            ends = [program.balls(acb(middle + s*radius)).real for s in (-1, 1)]
            proved = bool(ends[0]*ends[1] < 0)
            return arb(middle.mid(), radius) if proved else arb(middle.mid(), arb(2)**-45*(1 + abs(middle)))

    return Place(float(x), ball)


def _secant(program: Program, x: Any, bits: int) -> Any:
    """The zero next to x to so many bits."""
    a, b = x, x + mp.mpf(2)**-45*(1 + abs(x))
    fa, fb = program.digits(a), program.digits(b)
    for _ in range(2 + 2*bits.bit_length()):  # the order 1.6 of the secant doubles the bits in at most two steps
        if fa == fb:
            break
        a, fa, b = b, fb, b - fb*(b - a)/(fb - fa)
        fb = program.digits(b)
    return b
