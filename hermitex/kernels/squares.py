"""E[exp(a z^2 + b z) f(z)] = s exp(b^2 s^2/2) E[f(s z + b s^2)],  s = (1 - 2a)^(-1/2): what an exponent widens is drawn wider.

Beside the density of z the integrand may fall as slowly as exp(-(1 - 2a) z^2/2), beyond every window. For a > 1/2 there is no s.
With a = 0 and a factor exp(-b^2/2) it is E[f(z + b)], whose mass lies at b, beyond every window, too.
"""

from __future__ import annotations

from collections.abc import Collection

from sympy import Add, Expr, Mul, Poly, PolynomialError, S, Symbol, erf, erfc, exp, expand, sqrt


def drawn_wider(body: Expr, variables: Collection[Symbol], around: Collection[Symbol] = ()) -> Expr:
    """The integrand over standard normals `variables`, without exponents that are quadratic in one of them and not negative.

    `around` : the variables of the averages around it, which may not stand in a.

    >>> from sympy import tanh
    >>> from sympy.abc import x, z
    >>> drawn_wider(tanh(z)**2*exp(z**2/4), [z])
    sqrt(2)*tanh(sqrt(2)*z)**2
    >>> drawn_wider(tanh(z)**2*exp(x*z - x**2/2), [z])
    tanh(x + z)**2
    >>> drawn_wider(tanh(z)*exp(-z**2), [z])
    exp(-z**2)*tanh(z)
    """
    for v in variables:
        moving = {*variables, *around}
        factors = Mul.make_args(body)
        grown = [f for f in factors if isinstance(f, exp) and v in f.free_symbols]
        terms = Add.make_args(Add(*(f.args[0] for f in grown)))
        apart = Add(*(t for t in terms if v not in t.free_symbols and t.free_symbols & moving))  # (z2 - t)^8 is not multiplied out
        try:
            square = Poly(Add(*terms) - apart, v)
        except PolynomialError:
            continue
        if square.degree() not in (1, 2):
            continue
        a, b, c = (S.Zero, *square.all_coeffs())[-3:]
        if (a.is_nonpositive and a != 0) or (1 - 2*a).is_nonpositive or a.free_symbols & moving:
            continue
        rest = Mul(*(f for f in factors if f not in grown))
        if not (a.is_nonnegative and a != 0) and rest.has(exp, erf, erfc):  # what falls there may cancel what grows elsewhere
            continue
        width = 1/sqrt(1 - 2*a)
        b, kept = (b, S.Zero) if not b.free_symbols & moving else (S.Zero, b)
        lift = expand(b**2 + 2*c*(1 - 2*a))*width**2/2  # of -((z - m)/w)^2 both terms are m^2/w^2, and cancel but for m^2
        if a == 0 and (b == 0 or not lift.is_number):  # exp(b z - b^2/2) moves the mass to b
            continue
        body = width*exp(lift + apart + kept*width*v)*rest.xreplace({v: width*v + b*width**2})
    return body


__all__ = ["drawn_wider"]
