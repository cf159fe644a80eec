"""E[|z - c|^-p g(z)] = E[k s^-p |y/s|^m g(c + x) exp(y^2/2 - (c + x)^2/2)],  x = s sign(y) |y/s|^k,  m = k(1 - p) - 1.

For p = a/k both k and m are whole numbers: what is drawn through a power of its distance has no singularity left. Panels that
shrink toward c would have to reach 10^(-12/(1 - p)), and no double is so near to a c other than 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

from sympy import Abs, Add, Expr, Heaviside, Mul, Pow, Rational, Symbol, cancel, exp, expand, log, sign

_MOST = 50  # the power: y^k is a number on every window


def through_powers(body: Expr, variables: Collection[Symbol], around: Collection[Symbol] = ()) -> Expr:
    """The integrand over standard normals `variables`, those drawn through a power of their distance from a singularity.

    around : the variables of the averages around it, on which the place of a singularity may not depend

    >>> from sympy import cos
    >>> from sympy.abc import z
    >>> through_powers(cos(z)/Abs(z)**Rational(2, 3), [z])
    3*exp(-z**6/8192 + z**2/2)*cos(z**3/64)/4
    """
    moving = {*variables, *around}
    same = 8  # x = y there, so that a window of y is one of x, about
    for v in variables:
        body = body.replace(lambda e: isinstance(e, Pow) and isinstance(e.base, Abs) and isinstance(e.base.args[0], Mul),
                            lambda e: Mul(*(Abs(f)**e.exp for f in e.base.args[0].args)))
        found = [one for t in Add.make_args(body) for one in _singularities(t, v) if moving.isdisjoint(one[0].free_symbols)]
        if not found:
            continue
        place, p = max(found, key=lambda one: one[1])
        k, m, far = p.q, p.q - p.p - 1, v/same
        x = same*(far**k if k % 2 else sign(v)*far**k)
        slope = far**m if m % 2 == 0 else Abs(far)**m
        weight = exp(v**2/2 - expand(same**2*far**(2*k) + 2*place*x + place**2)/2)
        body = Add(*(_drawn(t, v, (place, p), x, k*slope*same**-p, k*(far**(k - 1) if k % 2 else Abs(far)**(k - 1)))*weight
                     for t in Add.make_args(body)))
    return body


def behind_switches(body: Expr) -> Expr:
    """The integrand with |u| in the roots and logarithms of u that a factor Heaviside(u) keeps from being complex: 0 nan is no 0.

    >>> from sympy.abc import z
    >>> behind_switches(Heaviside(z - 1)*log(2*z - 2)/(z - 1)**Rational(1, 3))
    log(Abs(2*z - 2))*Heaviside(z - 1)/Abs(z - 1)**(1/3)
    """
    return body.replace(lambda e: isinstance(e, Mul) and any(isinstance(f, Heaviside) for f in e.args), _behind)


def _behind(e: Mul) -> Expr:
    gates = [f.args[0] for f in e.args if isinstance(f, Heaviside)]
    positive = [Mul(*some) for n in (1, 2) for some in combinations(gates, n)]

    def known(u: Expr) -> bool:
        return any(u.free_symbols == p.free_symbols and cancel(u/p).is_positive for p in positive)

    def sized(f: Expr) -> Expr:
        f = f.replace(lambda p: isinstance(p, Pow) and p.exp.is_number and not p.exp.is_Integer and known(p.base),
                      lambda p: Abs(p.base)**p.exp)
        return f.replace(lambda p: isinstance(p, log) and known(p.args[0]), lambda p: log(Abs(p.args[0])))

    return Mul(*(f if isinstance(f, Heaviside) else sized(f) for f in e.args))


def _singularities(term: Expr, v: Symbol) -> Iterator[tuple[Expr, Rational]]:
    """(c, p) for each factor |a v + b|^-p of a term, a number a, c = -b/a and 0 < p < 1."""
    for f in Mul.make_args(term):
        if isinstance(f, Pow) and isinstance(f.base, Abs) and isinstance(f.exp, Rational) and -1 < f.exp < 0 and f.exp.q <= _MOST:
            inside = expand(f.base.args[0])
            slope = inside.coeff(v)
            rest = expand(inside - slope*v)
            if slope.is_number and slope != 0 and v not in rest.free_symbols:
                yield expand(-rest/slope), -f.exp


def _drawn(term: Expr, v: Symbol, at: tuple[Expr, Rational], x: Expr, bare: Expr, plain: Expr) -> Expr:
    """A term at c + x, times the slope of x: `bare` for a term with the singularity, `plain` for one without."""
    for f in Mul.make_args(term) if at in _singularities(term, v) else ():
        if at in _singularities(f, v):
            slope = Abs(expand(f.base.args[0]).coeff(v))
            return bare*slope**f.exp*Mul(*(g for g in Mul.make_args(term) if g is not f)).xreplace({v: at[0] + x})
    return plain*term.xreplace({v: at[0] + x})


__all__ = ["behind_switches", "through_powers"]
