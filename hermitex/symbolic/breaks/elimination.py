"""p(x, u(x)**(1/q)) = 0 implies Res_s(p(x, s), s^q - u) = 0; (a x + b) + d exp(k x) = 0 by Lambert's W.

Elimination may bring in points that are no roots; it never loses one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Dummy, Expr, Function, LambertW, Poly, Rational, S, Symbol, exp, resultant
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.errors import HermitexError
from hermitex.symbolic.breaks.algebraic import real_powers
from hermitex.symbolic.breaks.order import compare, sign_of
from hermitex.symbolic.budget import checkpoint

_SIZE = 200     # operations of an eliminant
_FUNCTIONS = 3  # different functions of the variable beside the radicals: of more, no rule names a zero


def without_radicals(p: Poly, gens: Sequence[Expr]) -> Expr | None:
    """What vanishes wherever p does, without the fractional powers among `gens`; None if there are none."""
    radicals = [g for g in gens if g.is_Pow and g.exp.is_Rational and not g.exp.is_Integer]
    moving = set().union(*(g.free_symbols for g in gens))
    if not radicals or len([f for f in p.as_expr().atoms(Function) if f.free_symbols & moving]) > _FUNCTIONS:
        return None
    if any(g.is_Pow and g.exp.is_number and not g.exp.is_Rational for g in gens):  # it stays, and no rule names a zero
        return None
    names = {g: Dummy("s") for g in radicals}
    f = p.as_expr(*(names.get(g, g) for g in p.gens))
    for g, s in names.items():
        checkpoint("eliminating a radical")
        base = g.base.xreplace(names)
        numerator, denominator = (base**g.exp.p).as_numer_denom()
        try:
            f = resultant(f, denominator*s**g.exp.q - numerator, s)
        except (BasePolynomialError, NotImplementedError):
            return None
        f = f.expand()
        if f.is_zero or f.count_ops() > _SIZE:
            return None
    return f


def lambert_zeros(p: Poly, x: Symbol) -> list[Expr] | None:
    """Zeros of (a x + b) + d e^{k x}, of (a x + b) e^{k x} + d, and of a x^n e^{k x^m} + d; None for anything else."""
    exponentials = [g for g in p.gens if isinstance(g, exp) and x in g.free_symbols]
    if len(exponentials) != 1 or any(x in g.free_symbols for g in p.gens if g not in (x, exponentials[0])):
        return None
    (e,) = exponentials
    if x not in p.gens:
        return None
    q = Poly(p.as_expr(), x, e)
    if q.degree(e) != 1:
        return None
    terms: dict[int, dict[tuple[int], Expr]] = {0: {(0,): S.Zero}, 1: {}}
    for (n, j), c in q.terms():
        terms[j][(n,)] = c
    flat, steep = (Poly(terms[j], x) for j in (0, 1))
    exponent = Poly(e.exp, x) if e.exp.is_polynomial(x) else None
    if exponent is None:
        return None
    if exponent.degree() == 1:
        k, shift = exponent.all_coeffs()
        if flat.degree() == 1 and steep.degree() == 0:
            return _linear(flat, steep.as_expr()*exp(shift), k)
        if flat.degree() == 0 and steep.degree() == 1:
            return _linear(steep, flat.as_expr()*exp(-shift), -k)
    return _monomial(flat, steep, exponent)


def _linear(line: Poly, d: Expr, k: Expr) -> list[Expr]:
    """a x + b = -d e^{k x}: with w = -k (x + b/a), w e^w = (k d/a) e^{-k b/a}."""
    a, b = line.all_coeffs()
    return [-b/a - w/k for w in _lambert((k*d/a)*exp(-k*b/a))]


def _lambert(c: Expr) -> list[Expr]:
    """The real w with w e^w = c."""
    if sign_of(c) >= 0:
        return [LambertW(c)]
    bottom = compare(c, -exp(-1))
    if bottom < 0:
        return []
    return [S.NegativeOne] if bottom == 0 else [LambertW(c), LambertW(c, -1)]


def _monomial(flat: Poly, steep: Poly, exponent: Poly) -> list[Expr] | None:
    """a x^n e^{k x^m} + d = 0: u = x^m has |u|^n = |d/a|^m e^{-k m u}, so u = +-C e^{-k m u/n}."""
    if flat.degree() > 0 and steep.degree() == 0:                    # over e^{k x^m}: the same equation
        flat, steep, exponent = steep, flat, -exponent
    if not (flat.degree() == 0 and len(steep.terms()) == 1 and steep.degree() > 0):
        return None
    moving = [(m, k) for (m,), k in exponent.terms() if m]
    if len(moving) != 1:
        return None
    (m, k), n = moving[0], steep.degree()
    try:
        size = flat.as_expr()/steep.LC()*exp(-exponent.eval(0))
        size = size if sign_of(size) > 0 else -size
        if size.is_zero:
            return [S.Zero]
        rate = -k*m/S(n)
        c = size**Rational(m, n)
        values = [-w/rate for s in (c, -c) for w in _lambert(-rate*s)]
        return [r for u in values for r in real_powers(u, m)] if m > 1 else values
    except HermitexError:
        return None

