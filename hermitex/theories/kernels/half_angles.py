"""t = cos theta = p^2 - q^2, sqrt(1 - t^2) = 2 p q, p = cos(theta/2), q = sin(theta/2): a kernel up to both ends of [-1, 1].

A closed form E[f(r_1 u) f(r_2 v)], corr(u, v) = t, divides by sqrt(1 - t^2): written in t it is 0/0 at t = 1 and loses half
of its digits next to it. In half-angles each quotient is a sum of monomials of p and q, (r_1 - r_2) p/(2 q) + ..., that loses
none, and p and q come from the sum and the difference of two unit vectors, |x + y|/2 and |x - y|/2.
"""

from __future__ import annotations

import numpy as np
from sympy import (
    Add,
    Expr,
    Function,
    Poly,
    PolynomialError,
    Pow,
    Symbol,
    acos,
    asin,
    atan,
    expand,
    factor,
    fraction,
    pi,
    sqrt,
    together,
)

from hermitex.symbolic.special import OwenT, SignCorrelation

t = Symbol("t", real=True)
SINE = Symbol("s", positive=True)  # sqrt(1 - t^2), while closed forms are derived
P, Q, THETA = (Symbol(name, positive=True) for name in ("p", "q", "theta"))

Array = np.ndarray


def in_half_angles(form: Expr) -> Expr:
    """A closed form in t and s = sqrt(1 - t^2), rewritten in t, p, q and theta: finite at p = 0 and at q = 0 in their limit.

    Examples
    --------
    >>> in_half_angles(atan((1 - t)/SINE))
    atan(q/p)
    """
    form = form.replace(_is_root_of_sum, lambda e: _reduced(expand(e.base))**e.exp)
    form = form.replace(lambda e: isinstance(e, Function), lambda e: e.func(*map(_reduced_quotient, e.args)))
    form = form.replace(lambda e: isinstance(e, SignCorrelation), _by_owen)
    form = form.replace(lambda e: isinstance(e, atan) and together(e.args[0] - t/SINE) == 0, lambda e: pi/2 - THETA)
    form = form.replace(lambda e: isinstance(e, asin) and e.args[0] == t, lambda e: pi/2 - THETA)
    form = form.replace(lambda e: isinstance(e, acos) and e.args[0] == t, lambda e: THETA)
    form = form.xreplace({SINE: 2*P*Q}).replace(_is_sine, lambda e: (2*P*Q)**(2*e.exp))
    return form.replace(lambda e: isinstance(e, Function), lambda e: e.func(*map(_monomials, e.args)))


def half_angles(x: Array, y: Array) -> tuple[Array, Array]:
    """(p, q) between rows of unit vectors, shapes (n, d) and (m, d): arrays (n, m), accurate next to p = 0 and q = 0.

    If the cosine is near 1 or -1, the small one is taken from the difference or the sum of the rows; else both come from it.
    """
    cosine = np.clip(x @ y.T, -1, 1)
    p, q = np.sqrt((1 + cosine)/2), np.sqrt((1 - cosine)/2)
    near = 0.99  # from there on 1 - |cosine| has lost two digits
    for sign, small in ((1, q), (-1, p)):
        rows, columns = np.nonzero(sign*cosine > near)
        for part in np.array_split(np.arange(rows.size), 1 + rows.size*x.shape[1]//10**7):  # at most some 100 MB at a time
            i, j = rows[part], columns[part]
            small[i, j] = np.sqrt(((x[i] - sign*y[j])**2).sum(axis=1))/2
    return p, q


def _is_root_of_sum(e: Expr) -> bool:
    """A root of a polynomial in s that is not s itself: sqrt(s^2 + t^2) is 1."""
    return isinstance(e, Pow) and e.exp.is_Rational and e.exp.q == 2 and e.has(SINE) and expand(e.base) != SINE**2


def _is_sine(e: Expr) -> bool:
    return isinstance(e, Pow) and e.exp.is_Rational and e.has(t) and expand(e.base) == 1 - t**2


def _reduced(e: Expr) -> Expr:
    """s^2 = 1 - t^2 put into a polynomial of s."""
    try:
        terms = Poly(e, SINE).terms()
    except PolynomialError:
        return e
    return expand(Add(*(c*(1 - t**2)**(k//2)*SINE**(k % 2) for (k,), c in terms)))


def _reduced_quotient(e: Expr) -> Expr:
    if not e.has(SINE):
        return e
    numerator, denominator = fraction(together(e))
    return _reduced(numerator)/factor(_reduced(denominator))


def _by_owen(e: Expr) -> Expr:
    """E[sign(X + h) sign(Y + k)] = (2/pi)(asin rho + atan a + atan b) - 4 T(h, a) - 4 T(k, b) [owen1956]."""
    h, k, rho = e.args
    side = SINE if together(rho**2 - t**2) == 0 else sqrt(1 - rho**2)
    a, b = (k/h - rho)/side, (h/k - rho)/side
    return 2*(asin(rho) + atan(a) + atan(b))/pi - 4*OwenT(h, a) - 4*OwenT(k, b)


def _monomials(e: Expr) -> Expr:
    """A quotient of polynomials of t, p and q as a sum of monomials in p and q, by t = p^2 - q^2 and 1 = p^2 + q^2."""
    numerator, denominator = fraction(together(e))
    if not (denominator.has(t) or e.has(P)):
        return e
    try:
        numerator, denominator = _homogeneous(numerator), factor(_homogeneous(denominator))
    except PolynomialError:  # a root of another polynomial of t, which vanishes nowhere
        return e
    found: dict[Expr, Expr] = {}
    for term in Add.make_args(numerator):
        coefficient, monomial = (term/denominator).as_independent(P, Q, as_Add=False)
        found[monomial] = found.get(monomial, 0) + coefficient
    return Add(*(factor(c)*m for m, c in found.items()))  # r_1 - r_2 in one piece: 0 for rows of one length


def _homogeneous(e: Expr) -> Expr:
    terms = Poly(e, t).terms()
    degree = terms[0][0][0]
    return expand(Add(*(c*(P**2 - Q**2)**k*(P**2 + Q**2)**(degree - k) for (k,), c in terms)))
