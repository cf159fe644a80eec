"""Owen's T, E sign(u + h) sign(v + k), and the parts of erf(x + i y): in doubles, in balls, and with mpmath's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import acb

from hermitex.numbers.floats_with_exponent import special
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.special import complex_erf, owen_t, sign_correlation


def owen_ball(h: acb, a: acb) -> acb:
    """T(h, a) = (2 pi)^-1 int_0^1 a exp(-h^2 (1 + a^2 t^2)/2)/(1 + a^2 t^2) dt, entire in h."""
    square, half = a*a, -h*h/2
    integral = acb.integral(lambda t, _: a*(half*(1 + square*t*t)).exp()/(1 + square*t*t), 0, 1)
    return integral/(2*acb.pi())


def sign_correlation_ball(h: acb, k: acb, rho: acb) -> acb:
    """erf(h/sqrt 2) erf(k/sqrt 2) + (2/pi) int_0^asin(rho) exp(-(h^2 - 2hk sin t + k^2)/(2 cos^2 t)) dt, |rho| < 1 a number."""
    end, half = rho.asin(), acb(0.5).sqrt()
    square, product = h*h + k*k, 2*h*k
    integral = end*acb.integral(lambda t, _: (-(square - product*(t*end).sin())/(2*(t*end).cos()**2)).exp(), 0, 1)
    return (h*half).erf()*(k*half).erf() + 2*integral/acb.pi()


def real_erf_ball(x: acb, y: acb) -> acb:
    """(erf(x + i y) + erf(x - i y))/2, Re erf(x + i y) for real x and y."""
    turn = acb(0, 1)*y
    return ((x + turn).erf() + (x - turn).erf())/2


def imaginary_erf_ball(x: acb, y: acb) -> acb:
    """(erf(x + i y) - erf(x - i y))/(2 i), Im erf(x + i y) for real x and y."""
    turn = acb(0, 1)*y
    return ((x + turn).erf() - (x - turn).erf())/acb(0, 2)


def _pointwise(function: Callable[..., Any]) -> Callable[..., Any]:
    return np.vectorize(lambda *a: float(function(*map(mp.mpf, a))), otypes=[float])


#: name: doubles, balls, mpmath
NORMAL_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., acb], Callable[..., Any]]] = {
    "OwenT": (special.owens_t, owen_ball, owen_t),
    "SignCorrelation": (_pointwise(sign_correlation), sign_correlation_ball, sign_correlation),
    "ReErf": (lambda x, y: special.erf(x + 1j*y).real, real_erf_ball, lambda x, y: complex_erf(x, y).real),
    "ImErf": (lambda x, y: special.erf(x + 1j*y).imag, imaginary_erf_ball, lambda x, y: complex_erf(x, y).imag),
}
