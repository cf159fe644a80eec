"""name -> (doubles, balls, mpmath): how each function of one argument, and a few of two, are evaluated.

A new function is one line of `TABLE`. Without a ball its averages have a number and no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from flint import acb

from hermitex.numbers import floats_with_exponent as scaled
from hermitex.numbers.floats_with_exponent import Scaled, special
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.special import complex_erf, owen_t, sign_correlation


# -- Owen's T, the law of two signs, erf(x + i y) --------------------------------------------------------------------------
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


# -- the table ---------------------------------------------------------------------------------------------------------
class Evaluation(NamedTuple):
    """One function in the three arithmetics; `cut`: its ball takes the `analytic` flag of acb.integral."""

    doubles: Callable[..., Scaled]
    ball: Callable[..., acb] | None
    digits: Callable[..., Any]
    cut: bool = False


def _of_doubles(function: Callable[..., Any]) -> Callable[..., Scaled]:
    """A function of doubles as one of scaled floats."""
    return lambda *a: Scaled(function(*(x.plain() for x in a)))


def _real_or_complex(real: Callable[..., Any], complex_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda u: complex_(u) if np.iscomplexobj(u) else real(u)


def _off_cut(function: Callable[[acb], acb], cut: Callable[[acb], bool]) -> Callable[..., acb]:
    """A ball function that answers nan on its branch cut when analyticity is asked for."""
    def evaluated(u: acb, analytic: bool) -> acb:
        return acb("nan") if analytic and cut(u) else function(u)

    return evaluated


def _meets_left_ray(u: acb, start: int) -> bool:
    return bool(u.imag.contains(0)) and not bool(u.real > start)


def _meets_outer_rays(u: acb) -> bool:
    return bool(u.imag.contains(0)) and not (bool(u.real < 1) and bool(u.real > -1))


def _meets_imaginary_rays(u: acb) -> bool:
    return bool(u.real.contains(0)) and not (bool(u.imag < 1) and bool(u.imag > -1))


def _log1p_ball(u: acb, analytic: bool) -> acb:
    return acb("nan") if analytic and _meets_left_ray(u, -1) else u.log1p()


def _logistic_ball(u: acb) -> acb:
    if u.real > 0:
        return 1/(1 + (-u).exp())
    t = u.exp()
    return t/(1 + t)


def _softplus_ball(u: acb, analytic: bool) -> acb:
    return u + _log1p_ball((-u).exp(), analytic) if u.real > 0 else _log1p_ball(u.exp(), analytic)


def _exponential_digits(u: Any) -> Any:
    """exp u, and its limits where no sum could tell it from them."""
    farthest = 2**14  # binary digits of an argument before its point: an exponential of more takes mpmath seconds, or all memory
    if isinstance(u, mp.mpf) and mp.isfinite(u) and mp.mag(u) > farthest:
        return mp.inf if u > 0 else mp.zero
    return mp.exp(u)


def _softplus_digits(u: Any) -> Any:
    return mp.log1p(mp.exp(u)) if mp.re(u) < 0 else u + mp.log1p(mp.exp(-u))


def _erfc_ball(u: acb) -> acb:
    """erfc(u) = e^(-u^2) U(1/2, 1/2, u^2)/sqrt(pi) for Re u > 0 [DLMF 13.6.8], where flint's own has no digit for large u."""
    far = 1000  # well before flint loses its digits, at some 10^5
    if not u.real > far:
        return u.erfc()
    half = acb(1)/2
    return (-u*u).exp()*(u*u).hypgeom_u(half, half)/acb.pi().sqrt()


def _log_normal_probability_ball(u: acb, analytic: bool) -> acb:
    v = u/acb(2).sqrt()
    return _log1p_ball(-_erfc_ball(v)/2, analytic) if u.real > 0 else (_erfc_ball(-v)/2).log(analytic=analytic)


def _log_normal_probability(u: Any) -> Any:
    return mp.log(mp.erfc(-u/mp.sqrt(2))/2)


def _arc(name: str, function: Callable[[Any], Any], cut: Callable[[acb], bool]) -> Evaluation:
    return Evaluation(_of_doubles(function), _off_cut(getattr(acb, name), cut), getattr(mp, name), cut=True)


def _entire(name: str, function: Callable[[Any], Any]) -> Evaluation:
    """A function that is analytic wherever it is finite."""
    return Evaluation(_of_doubles(function), getattr(acb, name), getattr(mp, name))


def _trigamma_family(n: Any, u: Any) -> Any:
    return special.polygamma(np.asarray(n, dtype=int), u)


def _of_order(method: str, *, entire: bool = False) -> Callable[..., acb]:
    """f_n(u) on balls, cut along the negative axis; an `entire` one is not, where n is a whole number."""
    def evaluated(n: acb, u: acb, analytic: bool) -> acb:
        whole = entire and n.imag == 0 and n.real.is_exact() and n.real.is_integer()
        return acb("nan") if analytic and not whole and _meets_left_ray(u, 0) else getattr(u, method)(n)

    return evaluated


def _zeta_ball(s: acb, *a: acb, analytic: bool) -> acb:
    return acb("nan") if analytic and any(_meets_left_ray(u, 0) for u in a) else s.zeta(*a)


def _bessel(name: str, function: Callable[[Any, Any], Any], *, entire: bool) -> Evaluation:
    return Evaluation(_of_doubles(function), _of_order(f"bessel_{name[-1]}", entire=entire), getattr(mp, name), cut=True)


TABLE: dict[str, Evaluation] = {
    "exp": Evaluation(lambda a: scaled.exponential(a.plain()), acb.exp, _exponential_digits),
    "expm1": Evaluation(lambda a: scaled.expm1(a.plain()), acb.expm1, mp.expm1),
    "log": Evaluation(scaled.logarithm, acb.log, mp.log, cut=True),
    "log1p": Evaluation(scaled.log1p, _log1p_ball, mp.log1p, cut=True),
    "logistic": Evaluation(lambda a: scaled.logistic(a.plain()), _logistic_ball, lambda u: 1/(1 + mp.exp(-u))),
    "softplus": Evaluation(lambda a: scaled.log1p(scaled.exponential(a.plain())), _softplus_ball, _softplus_digits, cut=True),
    "erf": _entire("erf", special.erf),
    "erfc": Evaluation(lambda a: scaled.erfc(a.plain()), _erfc_ball, mp.erfc),
    "erfc_tail": Evaluation(lambda a: scaled.erfc(a.plain()), _erfc_ball, mp.erfc),
    "erfi": Evaluation(lambda a: scaled.erfi(a.plain()), acb.erfi, mp.erfi),
    "log_normal_probability": Evaluation(_of_doubles(special.log_ndtr), _log_normal_probability_ball, _log_normal_probability,
                                         cut=True),
    "sin": _entire("sin", np.sin), "cos": _entire("cos", np.cos), "tan": _entire("tan", np.tan),
    "tanh": _entire("tanh", np.tanh),
    "cosh": Evaluation(lambda a: scaled.hyperbolic(a.plain(), 1.0), acb.cosh, mp.cosh),
    "sinh": Evaluation(lambda a: scaled.sinh(a.plain()), acb.sinh, mp.sinh),
    "sech": Evaluation(lambda a: scaled.power(scaled.hyperbolic(a.plain(), 1.0), -1), acb.sech, mp.sech),
    "atan": _arc("atan", np.arctan, _meets_imaginary_rays), "asinh": _arc("asinh", np.arcsinh, _meets_imaginary_rays),
    "asin": _arc("asin", np.arcsin, _meets_outer_rays), "acos": _arc("acos", np.arccos, _meets_outer_rays),
    "atanh": _arc("atanh", np.arctanh, _meets_outer_rays),
    "acosh": _arc("acosh", np.arccosh, lambda u: _meets_left_ray(u, 1)),
    "gamma": _entire("gamma", special.gamma),
    "loggamma": Evaluation(_of_doubles(_real_or_complex(special.gammaln, special.loggamma)),
                           _off_cut(acb.lgamma, lambda u: _meets_left_ray(u, 0)), mp.loggamma, cut=True),
    "digamma": _entire("digamma", special.digamma),
    "LambertW": Evaluation(_of_doubles(_real_or_complex(lambda u: special.lambertw(u).real, special.lambertw)),
                           _off_cut(acb.lambertw, lambda u: _meets_left_ray(3*u, -1)), mp.lambertw, cut=True),  # -1/3 > -1/e
    "Ei": Evaluation(_of_doubles(special.expi), _off_cut(acb.ei, lambda u: _meets_left_ray(u, 0)), mp.ei, cut=True),
    "erfinv": Evaluation(_of_doubles(special.erfinv), None, mp.erfinv),
    "erfcinv": Evaluation(_of_doubles(special.erfcinv), None, lambda u: mp.erfinv(1 - u)),
    "polygamma": Evaluation(_of_doubles(_trigamma_family), _of_order("polygamma"), mp.polygamma, cut=True),
    "zeta": Evaluation(_of_doubles(special.zeta), _zeta_ball, mp.zeta, cut=True),
    "besseli": _bessel("besseli", special.iv, entire=True), "besselj": _bessel("besselj", special.jv, entire=True),
    "besselk": _bessel("besselk", special.kv, entire=False), "bessely": _bessel("bessely", special.yv, entire=False),
    "Si": Evaluation(_of_doubles(lambda u: special.sici(u)[0]), acb.si, mp.si),
    "Ci": Evaluation(_of_doubles(lambda u: special.sici(u)[1]), _off_cut(acb.ci, lambda u: _meets_left_ray(u, 0)), mp.ci, cut=True),
    "li": Evaluation(_of_doubles(lambda u: special.expi(np.log(u))), _off_cut(acb.li, lambda u: _meets_left_ray(u, 1)), mp.li,
                     cut=True),
    "Shi": Evaluation(_of_doubles(lambda u: special.shichi(u)[0]), acb.shi, mp.shi),
    **{name: Evaluation(_of_doubles(doubles), ball, digits) for name, (doubles, ball, digits) in NORMAL_FUNCTIONS.items()},
}

#: Functions that only mpmath evaluates, by SymPy's name, where mpmath's name differs.
_BY_MPMATH: dict[str, Callable[..., Any]] = {
    "uppergamma": lambda s, x: mp.gammainc(s, x), "lowergamma": lambda s, x: mp.gammainc(s, 0, x), "LambertW": mp.lambertw,
    "LogFactorial": lambda x: mp.loggamma(x + 1), "elliptic_k": mp.ellipk, "elliptic_e": mp.ellipe,
    "hermite_prob": lambda n, x: mp.hermite(n, x/mp.sqrt(2))/mp.sqrt(2)**n,
}
_SAME_NAME = ("beta", "hermite", "legendre", "polylog", "airyai", "airybi", "sinc", "factorial2", "binomial", "expint")


def by_mpmath(e: sp.Expr) -> Callable[..., Any] | None:
    """The function of mpmath's numbers at the head of an expression, or None; a node may bring its own, `mpmath_value`."""
    name = e.func.__name__
    own = getattr(e.func, "mpmath_value", None) or _BY_MPMATH.get(name)
    return own or (getattr(mp, name) if name in _SAME_NAME else None)


#: SymPy's functions of one analytic formula that are evaluated by another.
REWRITTEN: dict[Any, Callable[..., sp.Expr]] = {
    sp.cot: lambda u: sp.cos(u)/sp.sin(u), sp.sec: lambda u: 1/sp.cos(u), sp.csc: lambda u: 1/sp.sin(u),
    sp.coth: lambda u: sp.cosh(u)/sp.sinh(u), sp.csch: lambda u: 1/sp.sinh(u),
    sp.acot: lambda u: sp.sign(u)*sp.pi/2 - sp.atan(u), sp.acoth: lambda u: sp.atanh(1/u),
    sp.ceiling: lambda u: -sp.floor(-u), sp.frac: lambda u: u - sp.floor(u),
    sp.Mod: lambda u, m: u - m*sp.floor(u/m), sp.factorial: lambda u: sp.gamma(u + 1),
    sp.atan2: lambda y, x: sp.arg(x + sp.I*y),
}
