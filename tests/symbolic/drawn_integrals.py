"""A catalogue of one-variable averages drawn family by family, each with its value by a sum that knows nothing of the package.

A family makes (body, breaks, width) from a `random.Random`: the integrand in z, the places where it is not analytic (written
down by the one who builds it, not found), and how wide panels may be between them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import NamedTuple

import mpmath
import sympy as sp
from sympy import Abs, Expr, Heaviside, Max, Min, Piecewise, Rational, cos, erf, exp, floor, log, sign, sin, sqrt, tanh

from hermitex.symbols import z


class Drawn(NamedTuple):
    body: Expr
    breaks: tuple[Expr, ...] = ()
    width: float = 2.0  # of a panel
    singular: bool = False  # at a break, and not only another branch there


_REACH = 17


def _q(random: Random, low: int, high: int, den: int = 10, *, nonzero: bool = False) -> Rational:
    while True:
        value = Rational(random.randint(low, high), den)
        if value or not nonzero:
            return value


def _poly(random: Random, degree: int) -> Expr:
    return sum((_q(random, -9, 9, 3)*z**k for k in range(degree)), sp.S.Zero) + _q(random, 1, 9, 4)*z**degree


def _sigma(random: Random) -> tuple[Rational, Rational]:
    return _q(random, -20, 20), _q(random, 2, 25, nonzero=True)*random.choice((1, -1))


def polynomial_exponential(random: Random) -> Drawn:
    b, a = _q(random, -20, 20), _q(random, -4, 30)
    return Drawn(_poly(random, random.randint(0, 5))*exp(b*z - a*z**2/10), (), 2)


def error_functions(random: Random) -> Drawn:
    (m, s), (p, q) = _sigma(random), _sigma(random)
    phi = (1 + erf((m + s*z)/sqrt(2)))/2
    return Drawn(random.choice([phi*z**random.randint(0, 4), phi**2, phi*erf(p + q*z), z*phi*(1 + erf(p + q*z)), phi*exp(p*z/2),
                                erf(m + s*z)*exp(-q**2*z**2), phi**3, phi*sin(p*z), (m + s*z)*phi, ((m + s*z)*phi)**2]), (), 1)


def rectified(random: Random) -> Drawn:
    (m, s), k = _sigma(random), random.randint(0, 4)
    u = m + s*z
    shape = random.choice([Max(0, u), Max(0, u)**2, Max(0, u)**3, Abs(u), Abs(u)**3, sign(u), Max(u, u/10), u*sign(u)**2 + Abs(u),
                           Max(0, u)*Heaviside(-u + 3), Heaviside(u), Max(0, u)*exp(-u), exp(-Abs(u)), Abs(u)**Rational(3, 2),
                           sqrt(Abs(u))*sign(u), erf(Max(0, u)), cos(Max(0, u)), tanh(Max(0, u)), exp(Min(u, 0)) - 1 + Max(u, 0)])
    return Drawn(z**k*shape, (-m/s, (3 - m)/s), 1, True)


def two_kinks(random: Random) -> Drawn:
    (m, s), (p, q) = _sigma(random), _sigma(random)
    u, v = m + s*z, p + q*z
    body = random.choice([
        Max(0, u)*Max(0, v), sign(u)*Max(0, v), Abs(u)*Abs(v), Max(u, v), Min(u, v, 1), Max(u, v)**2, Abs(u - Abs(v)),
        Heaviside(u)*Heaviside(v)*z**2, Max(0, Min(u, v)), sign(u*v), Max(0, u*v), Abs(u*v - 1), exp(Min(u, v)/3)])
    if body.has(Abs(u*v - 1)):
        return Drawn(body, tuple(r for r in sp.Poly(u*v - 1, z).nroots(n=40) if r.is_real), 1)
    return Drawn(body, tuple(_crossings([u, v, u - v, u + v, u - 1, v - 1])), 1)


def _crossings(lines: list[Expr]) -> list[Expr]:
    return [-e.subs(z, 0)/e.diff(z) for e in lines if e.diff(z) != 0]


def waves(random: Random) -> Drawn:
    a, k, b = _q(random, -20, 20), _q(random, 1, 60), _q(random, -15, 15)
    return Drawn(random.choice([cos(k*z + a)*exp(b*z), sin(k*z + a)**2, z**3*sin(k*z), cos(k*z)*tanh(z + b), exp(cos(k*z + a)),
                                cos(a*z**2/4 + b*z), sin(k*z)*sign(z - b) if b else sin(k*z)*sign(z), cos(k*z)*Abs(z),
                                tanh(1 + sin(k*z)), 1/(2 + cos(k*z + a)), sin(k*z)/z, (1 - cos(k*z))/z**2]),
                 (sp.S.Zero, b), float(min(1, 2/k)))


def logarithms(random: Random) -> Drawn:
    (m, s), a = _sigma(random), _q(random, 1, 30)
    u = m + s*z
    return Drawn(random.choice([log(Abs(u)), log(a + z**2), log(1 + exp(u)), z*log(1 + exp(u)), log(Abs(z))**2, z**2*log(Abs(u)),
                                log(1 + Max(0, u)), log(1 + Abs(u)), log(sp.cosh(u)), Abs(u)**Rational(-1, 3),
                                Abs(z)**-Rational(1, 2)*z**2,
                                log(1 + u**2), log(Abs(u))*Heaviside(u), sqrt(Abs(z))*log(Abs(z))]), (sp.S.Zero, -m/s), 1, True)


def rational(random: Random) -> Drawn:
    (m, s), a = _sigma(random), _q(random, 1, 40)
    u = m + s*z
    n = random.randint(1, 3)
    return Drawn(random.choice([1/(a + z**2), 1/(1 + u**2)**n, z**2/(a + z**2), (u + 1)/(a + u**2), 1/(a + z**4), sqrt(a + u**2),
        1/sqrt(1 + u**2),
                                u/sqrt(1 + u**2), u/(1 + Abs(u)), 1/(1 + Abs(u))**n, sp.atan(u), sp.atan(u)**2,
                                1/(z**2 + z + a + 1),
                                (1 + u**2)**-Rational(1, 3), exp(-sqrt(1 + u**2)), z**3*sp.atan(u)]), (-m/s,), float(min(1,
                                sqrt(a)/4 + 0.1)))


def pieces(random: Random) -> Drawn:
    a, gap, c = _q(random, -20, 20), _q(random, 1, 25), _q(random, -20, 20)
    b = a + gap
    body = random.choice([
        Piecewise((z, z < a), (z**2, z < b), (c, True)), Piecewise((exp(z/2), z > a), (tanh(z), True)), Piecewise((c, z <= a),
        (erf(z), True)),
        Piecewise((z**2/2, Abs(z - a) < gap), (Abs(z - a), True)), Piecewise((sin(z), z < a), (cos(z), z < b), (0, True)),
        Piecewise((1, (z > a) & (z < b)), (0, True)), Piecewise((z, (z < a) | (z > b)), (-z, True)), Max(a, Min(b, z))*z,
        Heaviside(z - a)*Heaviside(b - z)*exp(z), sign((z - a)*(z - b))*z**2, Max(0, 1 - Abs(z - a)), Abs(Abs(z - a) - gap),
        Piecewise((log(1 + z**2), z > a), (1, True)),
    ])
    return Drawn(body, (a, b, a - gap, a - 1, a + 1), 1)


def steps(random: Random) -> Drawn:
    k, c = random.choice((1, 2, 3, Rational(1, 2))), _q(random, -9, 9)
    u = k*z + c
    every = tuple((j - c)/k for j in range(-60, 61))
    return Drawn(random.choice([floor(u), floor(u)*z, floor(u)**2, sp.ceiling(u), u - floor(u), (u - floor(u))**2,
        exp(-Abs(floor(u))),
                                tanh(floor(u)), Max(0, floor(u)), sign(u)*floor(u), cos(floor(u)), sp.frac(u)]), every, 1)


def steep(random: Random) -> Drawn:
    w, c = random.choice((5, 20, 80, 400, 3000)), _q(random, -25, 25)
    u = w*(z - c)
    near = (c, *(c + side*sp.Rational(2)**k/w for k in range(-1, 7) for side in (1, -1)))
    return Drawn(random.choice([tanh(u), tanh(u)**2, z*tanh(u), 1/(1 + exp(u)), exp(z)/(1 + exp(-u)), z*erf(u),
        (1 - tanh(u)**2)*z, exp(-u**2)*(1 + z),
                                1/(1 + u**2), tanh(u)*sin(z), log(1 + exp(u))/w, erf(u)**2, sp.atan(u), exp(-u**2)*tanh(z)]),
                                near, 1)


def smooth(random: Random) -> Drawn:
    (m, s), (p, q) = _sigma(random), _sigma(random)
    u, v = m + s*z, p + q*z
    return Drawn(random.choice([tanh(u), tanh(u)**2, z*tanh(u), u*tanh(sp.log(1 + exp(u))), u/(1 + exp(-u)), tanh(u)*tanh(v),
        tanh(u)*Max(0, v),
                                exp(tanh(u)), cos(tanh(u)), tanh(u**2), exp(-u**4/9), exp(-sp.cosh(z)), tanh(u)/(2 + tanh(v)),
                                sp.sech(u),
                                sp.sinh(z)*tanh(u), (1 + tanh(u))**Rational(3, 2), sp.asinh(u), u*erf(v)*tanh(u),
                                1/(1 + exp(u))**2]),
                 (-p/q,), 0.5)


FAMILIES: tuple[Callable[[Random], Drawn], ...] = (
    polynomial_exponential, error_functions, rectified, two_kinks, waves, logarithms, rational, pieces, steps, steep, smooth)


def drawn(seed: int) -> Drawn:
    """The families in turn."""
    return FAMILIES[seed % len(FAMILIES)](Random(31337 + seed))


def value(case: Drawn) -> mpmath.mpf:
    """int body phi dx on panels between the breaks: Gauss's sums, which stay away from them, or tanh-sinh where it is singular."""
    with mpmath.workdps(30):
        f = sp.lambdify(z, case.body, [{"Heaviside": lambda x, at=0.5: mpmath.mpf(1) if x > 0 else mpmath.mpf(0) if x < 0 else at,
                                        "frac": lambda x: x - mpmath.floor(x)}, "mpmath"])
        count = int(2*_REACH/case.width) + 1
        cuts = sorted({*(mpmath.mpf(str(sp.N(b, 40))) for b in case.breaks if abs(b) < _REACH),
                       *(mpmath.mpf(_REACH)*(2*j - count)/count for j in range(count + 1))})
        cuts = [c for i, c in enumerate(cuts) if i == 0 or c - cuts[i - 1] > mpmath.mpf(10)**-20]
        total = error = mpmath.mpf(0)
        for a, b in pairwise(cuts):
            part, e = mpmath.quad(lambda x: f(x)*mpmath.npdf(x), [a, b], error=True,
                                  method="tanh-sinh" if case.singular else "gauss-legendre")
            total, error = total + part, error + e
    assert error < 1e-18*(1 + abs(total)), (case, total, error)
    return total


__all__ = ["FAMILIES", "Drawn", "drawn", "value"]
