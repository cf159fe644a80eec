"""E[Y|z] = C Gamma((a+2)/c)/(c b^((a+2)/c)) of C y^a exp(-b y^c), y > 0; and P(y|z) of laws of sympy.stats.

Each mean of the table is that of the textbook, in the attributes of SymPy's distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Dummy, Expr, FiniteSet, Heaviside, Interval, S, Symbol, beta, exp, gamma, oo, powsimp

from hermitex.errors import BadInput

_MEANS: dict[str, Callable[[Any], Expr]] = {
    "ExponentialDistribution": lambda d: 1/d.rate, "WeibullDistribution": lambda d: d.alpha*gamma(1 + 1/d.beta),
    "GammaDistribution": lambda d: d.k*d.theta, "GammaInverseDistribution": lambda d: d.b/(d.a - 1),
    "LogNormalDistribution": lambda d: exp(d.mean + d.std**2/2), "NormalDistribution": lambda d: d.mean,
    "LaplaceDistribution": lambda d: d.mu, "LogisticDistribution": lambda d: d.mu,
    "UniformDistribution": lambda d: (d.left + d.right)/2,
    "BetaDistribution": lambda d: d.alpha/(d.alpha + d.beta), "PoissonDistribution": lambda d: d.lamda,
    "GeometricDistribution": lambda d: 1/d.p, "BinomialDistribution": lambda d: d.n*d.p*d.succ + d.n*(1 - d.p)*d.fail,
    "BernoulliDistribution": lambda d: d.p*d.succ + (1 - d.p)*d.fail}


def drawn_law(law: Any) -> tuple[Expr, Symbol, Any, Expr | None]:
    """(P(y|z), y, its support, E[Y|z] where the table has it) of a random variable whose parameters hold z.

    Raises
    ------
    BadInput : a law without a density, probabilities of counts or listed values.

    Examples
    --------
    >>> from sympy.stats import Exponential
    >>> from hermitex.symbols import z
    >>> drawn_law(Exponential("Y", exp(-z)))
    (exp(-z)*exp(-y*exp(-z))*Heaviside(y), y, 'real', exp(z))
    """
    y = Symbol("y", real=True)
    found = law.pspace.distribution
    mean = _MEANS.get(type(found).__name__)
    told = None if mean is None else mean(found)
    values = getattr(found, "set", None)
    if isinstance(values, Interval):
        p = found.pdf(y).replace(beta, lambda a, b: gamma(a)*gamma(b)/gamma(a + b))
        for end, side in ((values.start, 1), (values.end, -1)):
            p *= S.One if end in (oo, -oo) else Heaviside(side*(y - end))
        return p, y, "real", told
    listed = values if isinstance(values, FiniteSet | set | frozenset) else None
    if listed is not None and all(S(v).is_number for v in listed):
        at = {S(v): found.pmf(S(v)) for v in sorted(listed)}
        return sum((q*_at(y, v, at) for v, q in at.items()), S.Zero), y, list(at), told
    if values in (S.Naturals0, S.Naturals):
        p = found.pdf(y)
        return p if values is S.Naturals0 else p*Heaviside(y - S.Half), y, "integers", told
    raise BadInput(f"Channel: {type(found).__name__} has no density, counts or listed values that are read; write its law as "
                   "Channel(p, 'y', support)")


def _at(y: Symbol, value: Expr, values: Any) -> Expr:
    """1 at one of the listed labels, 0 at the others: Lagrange's polynomial."""
    others = [v for v in values if v != value]
    found = S.One
    for v in others:
        found *= (y - v)/(value - v)
    return found


def mean_of_a_power_law(p: Expr, y: Symbol) -> Expr | None:
    """E[Y|z] of C y^a exp(-b y^c) on y > 0, C and b functions of z, b > 0; None for another form.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> y = Symbol("y", real=True)
    >>> mean_of_a_power_law(exp(-z - y*exp(-z))*Heaviside(y), y)
    exp(z)
    """
    t = Dummy("t", positive=True)
    if not p.has(Heaviside(y)) or p.xreplace({Heaviside(y): S.Zero}) != 0:
        return None
    body = powsimp(p.xreplace({Heaviside(y): S.One}).xreplace({y: t}))
    factor, rest = body.expand(power_base=True, power_exp=True, log=False, mul=False).as_independent(t, as_Add=False)
    a, b, c = S.Zero, None, None
    for f in rest.as_ordered_factors():
        base, power = f.as_base_exp()
        if base == t and not power.has(t):
            a += power
        elif isinstance(f, exp) and b is None:
            size, moving = (-f.args[0]).as_independent(t, as_Add=False)
            inner, c = moving.as_base_exp()
            if inner != t or not c.is_number or not c.is_positive:
                return None
            b = size
        else:
            return None
    if b is None or c is None or not b.is_positive or not (a + 2).is_positive:
        return None
    return (factor*gamma((a + 2)/c)/(c*b**((a + 2)/c))).simplify()
