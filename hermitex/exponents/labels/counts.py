"""(y + 1) p(y + 1) = (A + B y) p(y): the mean A/(1 - B) of a law on 0, 1, 2, ... by its recursion.

Poisson, geometric, binomial and negative binomial laws are of this kind, whatever their rates are of z.
"""

from __future__ import annotations

from sympy import Expr, Mul, Pow, S, Symbol, cancel, exp, gamma
from sympy.polys.polyerrors import BasePolynomialError


def mean_count(p: Expr, y: Symbol) -> Expr | None:
    """E[Y] of a law that sums to one over the counts y, or None.

    Examples
    --------
    >>> r = Symbol("r", positive=True)
    >>> n = Symbol("n", real=True)
    >>> mean_count(exp(-r)*r**n/gamma(n + 1), n), mean_count((1 - r)*r**n, n)
    (r, r/(1 - r))
    """
    longest = 80  # operations: the quotient p(y + 1)/p(y) of a longer law takes seconds to simplify, chosen by trial
    if p.count_ops() > longest:
        return None
    ratio: Expr = S.One
    for factor in Mul.make_args(p):
        step = _step(factor, y)
        if step is None:
            return None
        ratio *= step
    constant, moving = ((y + 1)*ratio).as_independent(y, as_Add=False)
    try:
        line = cancel(moving).as_poly(y)
    except BasePolynomialError:
        return None
    if line is None or line.degree() > 1:
        return None
    b, a = constant*line.coeff_monomial(y), constant*line.coeff_monomial(1)
    return None if cancel(b) == 1 else min(a/(1 - b), cancel(a/(1 - b)), key=Expr.count_ops)


def _step(f: Expr, y: Symbol) -> Expr | None:
    """f(y + 1)/f(y)."""
    if not f.has(y):
        return S.One
    base, power = f.as_base_exp()
    if isinstance(base, gamma) and power.is_Integer and (base.args[0] - y).is_number:
        return base.args[0]**power
    if isinstance(f, (exp, Pow)) and not base.has(y):
        rise = (power.xreplace({y: y + 1}) - power).expand()
        return None if rise.has(y) else base**rise
    return f.xreplace({y: y + 1})/f if f.is_rational_function(y) else None
