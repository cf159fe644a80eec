"""E[exp(a z^2 + b z) f(z)] = s exp(b^2 s^2/2) E[f(s z + b s^2)],  s = (1 - 2a)^(-1/2): what an exponent widens is drawn wider.

Beside the density of z the integrand may fall as slowly as exp(-(1 - 2a) z^2/2), beyond every window. For a > 1/2 there is no s.
"""

from __future__ import annotations

from collections.abc import Collection

from sympy import Add, Expr, Mul, Poly, PolynomialError, Symbol, erf, erfc, exp, expand, sqrt


def drawn_wider(body: Expr, variables: Collection[Symbol], around: Collection[Symbol] = ()) -> Expr:
    """The integrand over standard normals `variables`, without exponents that are quadratic in one of them and not negative.

    `around` : the variables of the averages around it, which may not stand in a.

    >>> from sympy import tanh
    >>> from sympy.abc import z
    >>> drawn_wider(tanh(z)**2*exp(z**2/4), [z])
    sqrt(2)*tanh(sqrt(2)*z)**2
    >>> drawn_wider(tanh(z)*exp(-z**2), [z])
    exp(-z**2)*tanh(z)
    """
    for v in variables:
        factors = Mul.make_args(body)
        grown = [f for f in factors if isinstance(f, exp) and v in f.free_symbols]
        try:
            square = Poly(Add(*(f.args[0] for f in grown)), v)
        except PolynomialError:
            continue
        if square.degree() != 2:
            continue
        a, b, c = square.all_coeffs()
        moving = {*variables, *around}
        if a.is_nonpositive or (1 - 2*a).is_nonpositive or a.free_symbols & moving:
            continue
        rest = Mul(*(f for f in factors if f not in grown))
        if not a.is_nonnegative and rest.has(exp, erf, erfc):  # what may fall there may cancel what grows in another factor
            continue
        width = 1/sqrt(1 - 2*a)
        b, kept = (b, 0) if not b.free_symbols & moving else (0, b)
        lift = expand(b**2 + 2*c*(1 - 2*a))*width**2/2  # of -((z - m)/w)^2 both terms are m^2/w^2, and cancel but for m^2
        body = width*exp(lift + kept*width*v)*rest.xreplace({v: width*v + b*width**2})
    return body


__all__ = ["drawn_wider"]
