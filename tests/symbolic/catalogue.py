"""Functions of one variable whose Gaussian moments have a closed form: name, function, and where it is not smooth.

The kinks are written by hand, so that the numeric reference does not lean on what it checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import mpmath
import sympy as sp
from sympy import Abs, Expr, Heaviside, Max, Min, Piecewise, Rational, cos, cosh, erf, erfc, exp, log, sign, sin, sqrt


class Entry(NamedTuple):
    name: str
    function: Callable[[Expr], Expr]
    kinks: tuple[float, ...] = ()
    digits: int = 36  # of the reference; more where the integrand is infinite at a kink


def _relu(u: Expr) -> Expr:
    return Max(0, u)


def _phi(u: Expr) -> Expr:
    return (1 + erf(u / sqrt(2))) / 2


def _gelu(u: Expr) -> Expr:
    return u * _phi(u)


def _clip(u: Expr) -> Expr:
    return Max(-1, Min(1, u))


SMOOTH = [
    Entry("one", lambda u: sp.Integer(1) + 0 * u),
    Entry("u", lambda u: u),
    Entry("u^3 - 3u", lambda u: u**3 - 3 * u),
    Entry("quintic", lambda u: (u - 1) ** 5 / 7),
    Entry("exp", exp),
    Entry("u exp(-u/2)", lambda u: u * exp(-u / 2)),
    Entry("sin", sin),
    Entry("cos 2u", lambda u: cos(2 * u)),
    Entry("u sin", lambda u: u * sin(u + 1)),
    Entry("sin^3", lambda u: sin(u) ** 3),
    Entry("cos u^2", lambda u: cos(u**2)),
    Entry("sinh/3", lambda u: sp.sinh(u / 3)),
    Entry("cosh", cosh),
    Entry("sinh cosh", lambda u: sp.sinh(u) * cosh(u / 2)),
    Entry("Gaussian", lambda u: exp(-(u**2))),
    Entry("u^2 Gaussian", lambda u: u**2 * exp(-(u**2))),
    Entry("shifted Gaussian", lambda u: exp(-((u - 1) ** 2) / 2)),
    Entry("Gaussian sin", lambda u: exp(-(u**2) / 2) * sin(u)),
    Entry("erf", erf),
    Entry("erf shifted", lambda u: erf(u / 2 + Rational(1, 5))),
    Entry("erfc", erfc),
    Entry("Phi", _phi),
    Entry("gelu", _gelu),
    Entry("gelu^2", lambda u: _gelu(u) ** 2),
    Entry("erf^2", lambda u: erf(u) ** 2),
    Entry("erf erf shifted", lambda u: erf(u + 1) * erf(2 * u - 1)),
    Entry("erf exp", lambda u: erf(u) * exp(u / 2)),
    Entry("erf sin", lambda u: erf(u) * sin(u)),
    Entry("erf Gaussian", lambda u: erf(2 * u) * exp(-(u**2))),
    Entry("u erf", lambda u: u * erf(u / sqrt(2))),
]

KINKED = [
    Entry("relu", _relu, (0,)),
    Entry("relu shifted", lambda u: Max(0, u - 1), (1,)),
    Entry("relu^2", lambda u: _relu(u) ** 2, (0,)),
    Entry("leaky relu", lambda u: Max(u, u / 10), (0,)),
    Entry("Abs", Abs, (0,)),
    Entry("Abs shifted", lambda u: Abs(u - Rational(1, 2)), (0.5,)),
    Entry("Abs u^2 - 1", lambda u: Abs(u**2 - 1), (-1, 1)),
    Entry("sign", sign, (0,)),
    Entry("sign cubic", lambda u: sign(u**3 - u), (-1, 0, 1)),
    Entry("Heaviside", Heaviside, (0,)),
    Entry("Heaviside shifted", lambda u: Heaviside(u - 2), (2,)),
    Entry("band", lambda u: Heaviside(u + 1) - Heaviside(u - 1), (-1, 1)),
    Entry("clip", _clip, (-1, 1)),
    Entry("nested clip", lambda u: Max(0, Min(1, Abs(u) - Rational(1, 2))), (-1.5, -0.5, 0, 0.5, 1.5)),
    Entry("soft threshold", lambda u: sign(u) * Max(Abs(u) - 1, 0), (-1, 0, 1)),
    Entry("relu6", lambda u: Min(Max(u, 0), 6), (0, 6)),
    Entry("elu", lambda u: Piecewise((u, u > 0), (exp(u) - 1, True)), (0,)),
    Entry("selu-like", lambda u: Piecewise((u, u > 0), (2 * (exp(u) - 1), True)), (0,)),
    Entry("huber", lambda u: Piecewise((u**2 / 2, Abs(u) < 1), (Abs(u) - Rational(1, 2), True)), (-1, 1)),
    Entry("hat", lambda u: Max(0, 1 - Abs(u)), (-1, 0, 1)),
    Entry("exp -Abs", lambda u: exp(-Abs(u)), (0,)),
    Entry("exp relu", lambda u: exp(_relu(u) / 2), (0,)),
    Entry("erf relu", lambda u: erf(_relu(u)), (0,)),
    Entry("erf Heaviside", lambda u: erf(u) * Heaviside(u), (0,)),
    Entry("relu erf", lambda u: _relu(u) * erf(u), (0,)),
    Entry("relu gelu", lambda u: _relu(u) * _gelu(u), (0,)),
    Entry("sin relu", lambda u: sin(_relu(u)), (0,)),
    Entry("cos clip", lambda u: cos(_clip(u)), (-1, 1)),
    Entry("sign sin", lambda u: sign(u) * sin(u), (0,)),
    Entry("relu Gaussian", lambda u: _relu(u) * exp(-(u**2) / 2), (0,)),
    Entry("sqrt Abs", lambda u: sqrt(Abs(u)), (0,)),
    Entry("Abs^(3/2)", lambda u: Abs(u) ** Rational(3, 2), (0,)),
    Entry("sign sqrt Abs", lambda u: sign(u) * sqrt(Abs(u)), (0,)),
    Entry("Abs^(-1/3)", lambda u: Abs(u) ** Rational(-1, 3), (0,), 60),
]

# logarithms have a closed form about the origin only, so they have no parametric mu_k
ORIGIN = [
    Entry("log Abs", lambda u: log(Abs(u)), (0,)),
    Entry("u^2 log u^2", lambda u: u**2 * log(u**2), (0,)),
    Entry("sqrt Abs log Abs", lambda u: sqrt(Abs(u)) * log(Abs(u)), (0,)),
    Entry("log^2", lambda u: log(Abs(u)) ** 2, (0,)),
]

PARAMETRIC = SMOOTH + KINKED
CATALOGUE = PARAMETRIC + ORIGIN
BY_NAME = {e.name: e for e in CATALOGUE}

z = sp.Symbol("z", real=True)
_END = 17


@cache
def He(k: int) -> Expr:
    return sp.Integer(1) if k == 0 else z if k == 1 else sp.expand(z * He(k - 1) - (k - 1) * He(k - 2))


def reference(entry: Entry, orders: int, *, shift: Expr = sp.S.Zero, scale: Expr = sp.S.One) -> list[mpmath.mpf]:
    """E[He_k(z) f(shift + scale z)], k < orders, by mpmath.quad split at the kinks, at 30 digits and some."""
    with mpmath.workdps(entry.digits):
        f = sp.lambdify(z, entry.function(shift + scale * z), "mpmath")
        m, s = (mpmath.mpf(sp.N(e, 70)._mpf_) if not e.is_Rational else mpmath.mpf(e.p) / e.q for e in (shift, scale))
        cuts = sorted({*((k - m) / s for k in entry.kinks), *map(mpmath.mpf, (-_END, -8, -5, -2, 0, 2, 5, 8, _END))})
        seen: dict[mpmath.mpf, mpmath.mpf] = {}

        def density(t: mpmath.mpf) -> mpmath.mpf:
            if t not in seen:
                seen[t] = f(t) * mpmath.npdf(t)
            return seen[t]

        polys = [sp.lambdify(z, He(k), "mpmath") for k in range(orders)]
        return [mpmath.quad(lambda t, p=p: p(t) * density(t), cuts) for p in polys]


def number(expr: Expr, digits: int = 32) -> mpmath.mpf:
    value = sp.N(expr, digits)
    assert value.is_Float or value.is_Integer or value.is_Rational, value
    with mpmath.workdps(digits + 4):
        return mpmath.mpf(value._mpf_) if value.is_Float else mpmath.mpf(value.p) / value.q


__all__ = ["BY_NAME", "CATALOGUE", "PARAMETRIC", "Entry", "He", "number", "reference", "z"]
