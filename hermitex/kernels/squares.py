"""E[exp(a z^2 + b z) f(z)] = s exp(b^2 s^2/2) E[f(s z + b s^2)],  s = (1 - 2a)^(-1/2): what an exponent widens is drawn wider,
and what it moves where its mass is.

With the density of z the integrand may fall as slowly as exp(-(1 - 2a) z^2/2), beyond every window. For a > 1/2 no s exists.
With a = 0 and a factor exp(-b^2/2) it is E[f(z + b)], whose mass is at b, beyond every window, too. If f is 0 around b
s^2 the mass is where f begins, at m: z = s t + m, and the rest of b is b - m/s^2.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from sympy import Add, Expr, Max, Min, Mul, Poly, PolynomialError, Pow, S, Symbol, cancel, cosh, erf, erfc, exp, expand, sinh, sqrt

from hermitex.errors import HermitexError
from hermitex.kernels.recognition import gated
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.pieces import pieces


def drawn_wider(body: Expr, variables: Collection[Symbol], around: Collection[Symbol] = ()) -> Expr:
    """The integrand over standard normals `variables`, without exponents that are quadratic in one of them, but those that only
    narrow it.

    `around` : the variables of the averages around it, on which a may not depend.

    >>> from sympy import tanh
    >>> from sympy.abc import x, z
    >>> drawn_wider(tanh(z)**2*exp(z**2/4), [z])
    sqrt(2)*tanh(sqrt(2)*z)**2
    >>> drawn_wider(tanh(z)**2*exp(x*z - x**2/2), [z])
    tanh(x + z)**2
    >>> drawn_wider(tanh(z)*exp(-z**2), [z])
    exp(-z**2)*tanh(z)
    >>> drawn_wider(tanh(z)*exp(-4*(z - 30)**2), [z])
    exp(-400)*tanh(z/3 + 80/3)/3
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
        if square.degree() > 2:
            continue
        rest, fall, _ = _falling(Mul(*(f for f in factors if f not in grown)), v)
        if square.degree() < 1 and fall == 0:
            continue
        a, b, c = (S.Zero, S.Zero, *square.all_coeffs())[-3:]
        a = cancel(a - fall)
        switched = any(v in s.free_symbols for s in rest.atoms(*SWITCHES))
        still = b == 0 or b.free_symbols & moving or switched  # what an exponent narrows, it may move beyond the window, too
        if (a.is_nonpositive and a != 0 and still) or (1 - 2*a).is_nonpositive or a.free_symbols & moving:
            continue
        if not (a.is_nonnegative and a != 0) and _may_decay(rest):  # what falls there may cancel what grows elsewhere
            continue
        if switched and a != 0 and not a.is_positive:  # of a letter: only what it widens, for f may be 0 where it narrows
            grows = Max(a, 0)
            width = 1/sqrt(1 - 2*grows)
            body = width*exp((a - grows)*(width*v)**2 + b*width*v + c + apart)*rest.xreplace({v: width*v})
            continue
        width = 1/sqrt(cancel(1 - 2*a))  # 1/(1 + q) for 1 - q/(1 + q), which loses digits at a large q
        b, kept = (b, S.Zero) if not b.free_symbols & moving else (S.Zero, b)
        lift = expand(b**2 + 2*c*(1 - 2*a))*width**2/2  # of -((z - m)/w)^2 both terms are m^2/w^2, and cancel but for m^2
        if a == 0 and (b == 0 or not lift.is_number):  # exp(b z - b^2/2) moves the mass to b
            continue
        m = b*width**2
        known = m if not switched or (a == 0 and not m.is_number) else _in_support(m, rest, v, moving)
        if known is None and a == 0:
            continue
        at, left = known or S.Zero, S.Zero
        if at != m:
            off = (at - m)/width
            left = -off*v if known is None else gated(-off*v, off*v)  # beyond `at` it falls, and before it f is 0
            lift = expand(c + b*at - at**2/(2*width**2))
        body = width*exp(lift + apart + left + kept*width*v)*rest.xreplace({v: width*v + at})
    return body


def _falling(f: Expr, v: Symbol) -> tuple[Expr, Expr, bool]:
    """(g, a, whether that is all) of f = g exp(-a v^2): sums that multiply or divide f over the exponential of their largest term.

    A sum whose largest term is not known stays; it may fall or grow.

    >>> from sympy.abc import z
    >>> _falling(z/(1 + exp(z**2/4))**2, z)
    (z/(1 + exp(-z**2/4))**2, 1/2, True)
    """
    factors, fall, known = [], S.Zero, True
    for factor in Mul.make_args(f):
        base, n = factor.as_base_exp()
        scaled = _over_largest(base, v) if base.is_Add else None
        known &= scaled is not None or not (base.is_Add and base.has(exp))
        if scaled is None or scaled[1] == 0 or not n.is_number:
            factors.append(factor)
        else:
            factors.append(scaled[0]**n)
            fall -= n*scaled[1]
    return Mul(*factors), fall, known


def _over_largest(total: Expr, v: Symbol) -> tuple[Expr, Expr] | None:
    """(h, a) of a sum h exp(a v^2), a the largest of its terms'; None where it is not known which that is."""
    terms = [term for t in Add.make_args(total) if (term := _term(t, v)) is not None]
    top = Max(*(a for _, a in terms)) if len(terms) == len(total.args) else None
    if top is None or top.has(Max):
        return None
    return (total if top == 0 else Add(*(g*exp(cancel(a - top)*v**2) for g, a in terms))), top


def _term(t: Expr, v: Symbol) -> tuple[Expr, Expr] | None:
    """(g, a) of t = g exp(a v^2); None if its exponents are not such polynomials, or a sum in it may not have this form."""
    factors = Mul.make_args(t)
    exponent = Add(*(f.args[0] for f in factors if isinstance(f, exp)))
    if not exponent.is_polynomial(v) or Poly(exponent, v).degree() > 2:
        return None
    g, fall, known = _falling(Mul(*(f for f in factors if not isinstance(f, exp))), v)
    a = exponent.expand().coeff(v, 2)
    return (g*exp((exponent - a*v**2).expand()), a - fall) if known else None


def _may_decay(f: Expr) -> bool:
    """May f fall as an exponential does?"""
    return f.has(exp, erf, erfc) or any(p.exp.is_negative and isinstance(p.base, cosh | sinh) for p in f.atoms(Pow))


def _in_support(m: Expr, f: Expr, v: Symbol, moving: Collection[Symbol]) -> Expr | None:
    """The point nearest to m where f begins to be nonzero, with f on one side of it or around m; None if that is not known.

    >>> from sympy import Heaviside
    >>> z, c = Symbol("z", real=True), Symbol("c", real=True)
    >>> [_in_support(S(5), f, z, [z]) for f in (Heaviside(z - 3), Heaviside(3 - z), Heaviside(z - c))]
    [5, 3, Max(5, c)]
    """
    try:
        parts = [p for p in pieces(f, v) if p.expr != 0]
    except HermitexError:
        return None
    inside = [(p.lo, p.hi) for p in parts]
    if not inside or any(e.free_symbols & set(moving) for ends in inside for e in ends):
        return None
    if all(left[1] == right[0] for left, right in pairwise(inside)):
        inside = [(inside[0][0], inside[-1][1])]
    points = [Min(Max(m, lo), hi) for lo, hi in inside]
    return m if m in points else points[0] if len(points) == 1 else None


__all__ = ["drawn_wider"]
