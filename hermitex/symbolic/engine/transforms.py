"""E 1/(a + z^2) = sqrt(pi/(2 a)) exp(a/2) erfc(sqrt(a/2)), E g(erf(z/sqrt 2)) = int_-1^1 g(y) dy/2, E log|m + z|.

Rules for one standard normal over the whole line, besides those of `one_variable`; each returns None if it does not apply.
"""

from __future__ import annotations

from sympy import (
    Abs,
    Add,
    Dummy,
    EulerGamma,
    Expr,
    Mul,
    Poly,
    S,
    Symbol,
    erf,
    erfc,
    exp,
    expand,
    expand_log,
    factor_terms,
    factorial2,
    gamma,
    gammasimp,
    hyper,
    log,
    pi,
    sqrt,
)

from hermitex.symbolic.engine.canonical import Refusal
from hermitex.symbolic.engine.rational_tidying import depends, tidy
from hermitex.symbolic.formula_size import DECIDED, operations
from hermitex.symbolic.scales import linear


def poles(body: Expr, x: Symbol) -> Expr | None:
    """p(z)/(a + z^2)^n, a > 0: the powers by derivatives in a. Source: DLMF 7.7.1.

    >>> x = Symbol("x", real=True)
    >>> poles(1/(2 + x**2), x).evalf(12)
    0.378936078071
    """
    below: Expr | None = None
    above, n = [], 0
    for factor in Mul.make_args(body):
        base, power = factor.as_base_exp()
        if depends(base, x) and power.is_Integer and power.is_negative:
            if below is not None or not base.is_polynomial(x):
                return None
            below, n = base, -int(power)
        elif factor.is_polynomial(x):
            above.append(factor)
        else:
            return None
    most = 12  # the highest power of a denominator
    if below is None or n > most:
        return None
    quadratic = Poly(below, x)
    if quadratic.degree() != 2 or quadratic.coeff_monomial(x) != 0:
        return None
    front = quadratic.coeff_monomial(x**2)
    a = tidy(quadratic.coeff_monomial(1)/front)
    if not a.is_positive:
        if a.is_nonpositive:
            return None
        raise Refusal(f"it needs {a} > 0, which is not provable")
    y, t = Dummy("y"), Dummy("a", positive=True)
    even = Poly(Add(*(c*y**(k//2) for (k,), c in Poly(Mul(*above), x).terms() if k % 2 == 0)), y)
    whole, rest = even.div(Poly((y + a)**n, y))
    value = Add(*(c*factorial2(2*k - 1) for (k,), c in whole.terms()))
    powers, power = [sqrt(pi/(2*t))*exp(t/2)*erfc(sqrt(t/2))], Poly(y + a, y)
    for k in range(1, n):
        powers.append((-powers[-1].diff(t)/k).expand())
    for k in range(n):  # the remainder in powers of y + a
        rest, low = rest.div(power)
        value += low.as_expr()*powers[n - k - 1].xreplace({t: a})
    return value/front**n


def uniform(body: Expr, x: Symbol) -> Expr | None:
    """A polynomial in erf(z/sqrt 2), which is uniform on (-1, 1), or powers of 1 - erf and 1 + erf: a Beta function.

    Source: the probability integral transform.

    >>> x = Symbol("x", real=True)
    >>> uniform(((1 + erf(x/sqrt(2)))/2)**4, x)
    1/5
    """
    y = Dummy("y", real=True)
    g = body.xreplace({erf(x/sqrt(2)): y, erfc(x/sqrt(2)): 1 - y})
    if depends(g, x):
        return None
    if not g.is_polynomial(y):
        if operations(g) > DECIDED:
            return None
        up, down = log(1 + y), log(1 - y)
        powers = expand(expand_log(log(factor_terms(g)), force=True))
        p, q = powers.coeff(up), powers.coeff(down)
        front = expand(powers + p*(log(2) - up) + q*(log(2) - down))
        if depends(front, y) or depends(p + q, y) or not ((1 + p).is_positive and (1 + q).is_positive):
            return None
        return exp(front)*gammasimp(gamma(1 + p)*gamma(1 + q)/gamma(2 + p + q))
    return Add(*(c/(k + 1) for (k,), c in Poly(g, y).terms() if k % 2 == 0))


def logarithm(body: Expr, x: Symbol) -> Expr | None:
    """log|m + s z|: its slope in m/s is sqrt(2) F(m/(s sqrt 2)), F Dawson's integral. Source: DLMF 7.5.1, 16.3.1.

    E log|m + z| = -(gamma + log 2)/2 + y 2F2(1, 1; 3/2, 2; -y), y = m^2/2.
    """
    if not isinstance(body, log):
        return None
    base, power = body.args[0].as_base_exp()
    if isinstance(base, Abs):
        base = base.args[0]
    elif not (power.is_Integer and power % 2 == 0):
        return None
    line = linear(base, x) if not depends(power, x) and base.is_polynomial(x) else None
    if line is None or not line[0].is_nonzero or tidy(line[1]) == 0 or not line[1].is_extended_real:
        return None
    y = tidy(line[1]**2/line[0]**2)/2
    return power*(log(Abs(line[0])) - (EulerGamma + log(2))/2 + y*hyper([S.One, S.One], [S(3)/2, S(2)], -y))


__all__ = ["logarithm", "poles", "uniform"]
