"""E x^s log(x)^j exp(-c x) = d^j/ds^j M(s, c): powers, logarithms and exponentials of the positive laws of sympy.stats.

    Gamma(k, t)     M = t^s Gamma(k + s)/Gamma(k) (1 + c t)^(-k - s),   s > -k,  c > -1/t      Exponential, ChiSquared
    Beta(a, b)      M = B(a + s, b)/B(a, b),                            s > -a                 Uniform on (0, b)
    Pareto(l, a)    M = l^s a/(a - s),                                  s < a
    Weibull(a, b)   M = a^s Gamma(1 + s/b),                             s > -b                 Rayleigh

M is analytic in s where it exists, and a logarithm is the derivative of a power.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Dummy, Expr, Integer, S, exp, expand, expand_func, expand_log, gamma, log, oo, sqrt

#: value M(s, c), and what must be positive for it to exist; c None: no exponential
_Transform = tuple[Expr, tuple[Expr, ...]]


def _gamma(s: Expr, c: Expr, k: Expr, t: Expr) -> _Transform:
    return t**s*gamma(k + s)/gamma(k)*(1 + c*t)**(-k - s), (k + s, 1 + c*t)


def _weibull(s: Expr, c: Expr, a: Expr, b: Expr) -> _Transform | None:
    return (a**s*gamma(1 + s/b), (1 + s/b,)) if c == 0 else None


def _uniform(s: Expr, c: Expr, a: Expr, b: Expr) -> _Transform | None:
    return (b**s/(1 + s), (1 + s,)) if c == 0 and a == 0 else None


def _beta(s: Expr, c: Expr, a: Expr, b: Expr) -> _Transform | None:
    return (gamma(a + s)*gamma(a + b)/gamma(a)/gamma(a + b + s), (a + s,)) if c == 0 else None


def _pareto(s: Expr, c: Expr, least: Expr, a: Expr) -> _Transform | None:
    return (least**s*a/(a - s), (a - s,)) if c == 0 else None


_LAWS: dict[str, Callable[..., _Transform | None]] = {
    "GammaDistribution": _gamma,
    "ExponentialDistribution": lambda s, c, rate: _gamma(s, c, S.One, 1/rate),
    "ChiSquaredDistribution": lambda s, c, k: _gamma(s, c, k/2, Integer(2)),
    "WeibullDistribution": _weibull,
    "RayleighDistribution": lambda s, c, width: _weibull(s, c, sqrt(2)*width, Integer(2)),
    "UniformDistribution": _uniform,
    "BetaDistribution": _beta,
    "ParetoDistribution": _pareto,
}


def average(e: Expr, x: Any, law: Any) -> Expr | None:
    """The average of a sum of products of powers, logarithms and an exponential of x; None of another one.

    Examples
    --------
    >>> from sympy.stats import Exponential, Uniform
    >>> x, u = Exponential("x", 1), Uniform("u", 0, 1)
    >>> average(log(x), x, x.pspace.distribution), average(u**(-S(1)/10)*log(u), u, u.pspace.distribution)
    (-EulerGamma, -100/81)
    """
    transform = _LAWS.get(type(law).__name__)
    if transform is None:
        return None
    t = Dummy("t", positive=True)
    terms = Add.make_args(expand(expand_log(e.xreplace({x: t}))))
    longest = 60  # terms
    if len(terms) > longest:
        return None
    found = [_term(term, t, transform, law.args) for term in terms]
    return None if any(v is None for v in found) else Add(*found)


def _term(term: Expr, t: Dummy, transform: Callable[..., _Transform | None], parameters: tuple[Expr, ...]) -> Expr | None:
    factor, moving = term.as_independent(t, as_Add=False)
    power: Expr = S.Zero
    rate: Expr = S.Zero
    logs = 0
    for f in moving.as_ordered_factors():
        base, n = f.as_base_exp() if not isinstance(f, exp) else (f, S.One)
        if base == t and not n.has(t) and n.is_real:
            power += n
        elif base == log(t) and n.is_Integer and n > 0:
            logs += int(n)
        elif isinstance(base, exp) and base.args[0].diff(t).is_real and not base.args[0].diff(t).has(t):
            slope = base.args[0].diff(t)
            rate -= slope
            factor *= exp(base.args[0] - slope*t)
        else:
            return None
    s = Dummy("s", real=True)
    found = transform(s, rate, *parameters)
    most_logs = 4  # of logarithms in a product
    if found is None or logs > most_logs:
        return None
    value, positive = found
    if any(not p.subs(s, power).is_positive for p in positive):
        return None
    moment = value.diff(s, logs) if logs else value
    done = expand_func(moment.subs(s, power)) if logs else moment.subs(s, power)
    return None if done.has(S.NaN, S.ComplexInfinity, oo) else factor*done
