"""{x in (lo, hi) : f(x) = 0}, exactly: the points at which a switch can turn.

Polynomials give rationals, radicals or `CRootOf`; invertible functions are peeled (exp(u) = v iff u = log v for v > 0);
periodic functions are enumerated in a finite window; what is left is decided by monotonicity (Rolle), or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sympy import (
    Dummy,
    Expr,
    Function,
    Poly,
    PolynomialError,
    Pow,
    Rational,
    S,
    Symbol,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    cot,
    csc,
    erf,
    erfc,
    erfcinv,
    erfi,
    erfinv,
    exp,
    fraction,
    log,
    oo,
    pi,
    sec,
    sech,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    together,
)

from hermitex.errors import AssumptionNeeded, NoClosedForm
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.order import between, compare, exact, inside, ordered, sign_of

_DEPTH, _OPS, _DEGREE, _MANY = 14, 120, 100, 2000


class Window(NamedTuple):
    """An open interval of the real line."""

    lo: Expr
    hi: Expr


def real_roots(expr: Expr, x: Symbol, lo: Expr = -oo, hi: Expr = oo) -> tuple[Expr, ...]:
    """The exact real roots of `expr` in the open interval (lo, hi), in increasing order.

    Parameters
    ----------
    expr : an expression free of switches (sign, Abs, Piecewise, ...); other symbols are parameters.
    x : the variable, taken real.

    Returns
    -------
    tuple of exact expressions; a point at which `expr` is not analytic may be among them.

    Raises
    ------
    NoClosedForm : no exact form of the roots is found (with the reason).
    AssumptionNeeded : the answer turns on the sign of a symbol that is not declared.

    Examples
    --------
    >>> from sympy import exp, sin, pi, Symbol
    >>> x = Symbol('x', real=True)
    >>> real_roots(x**4 - 5*x**2 + 6, x)
    (-sqrt(3), -sqrt(2), sqrt(2), sqrt(3))
    >>> real_roots(exp(2*x) - 3*exp(x) + 2, x)
    (0, log(2))
    >>> real_roots(sin(x), x, -4, 4)
    (-pi, 0, pi)
    """
    t = Dummy("t", real=True)
    window = Window(S(lo), S(hi))
    return inside(_zeros(exact(S(expr)).xreplace({x: t}), t, window), *window)


def _zeros(f: Expr, x: Symbol, w: Window, depth: int = 0) -> list[Expr]:
    """Every zero of f in the window, in no order; a superset within the line is allowed."""
    checkpoint("finding real roots")
    if depth > _DEPTH:
        raise _no_roots(f, x, "it is nested too deeply")
    if x not in f.free_symbols or f.is_extended_positive or f.is_extended_negative:
        return []
    if f == x:
        return [S.Zero]
    if f.is_Mul:
        return [r for factor in f.args for r in _zeros(factor, x, w, depth + 1)]
    if f.is_Pow and not isinstance(f, exp):
        base, exponent = f.as_base_exp()
        if x in base.free_symbols and x not in exponent.free_symbols:
            return _zeros(base, x, w, depth + 1) if sign_of(exponent) > 0 else []
    if isinstance(f, Function) or f.is_Pow:
        return _preimage(f, S.Zero, (x, w, depth + 1))
    if f.is_polynomial(x):
        return _polynomial_zeros(f, x)
    return _sum_zeros(f, x, w, depth + 1)


# -- polynomials ------------------------------------------------------------------------------------------------------
def _polynomial_zeros(f: Expr, x: Symbol) -> list[Expr]:
    try:
        p = Poly(f, x)
    except PolynomialError as error:
        raise _no_roots(f, x, "it is not a polynomial") from error
    if p.degree() > _DEGREE and len(p.terms()) > 2:
        raise _no_roots(f, x, f"its degree exceeds {_DEGREE}")
    shift = min(m for (m,) in p.monoms())
    found = [S.Zero] if shift else []
    if shift:
        p = Poly({(m - shift,): c for (m,), c in p.terms()}, x)
    if p.degree() > 0:
        found += _factored_zeros(p, x)
    return found


def _factored_zeros(p: Poly, x: Symbol) -> list[Expr]:
    """The roots of each factor: over Q, over an algebraic field, or over polynomials in the symbols."""
    if not p.domain.is_ZZ and not p.domain.is_QQ:
        p = _with_tidy_coefficients(p, x)
    try:
        factors = [q for q, _ in p.factor_list()[1]]
    except (PolynomialError, NotImplementedError):
        factors = [p]
    return [r for q in factors for r in _irreducible_zeros(q, x)]


def _with_tidy_coefficients(p: Poly, x: Symbol) -> Poly:
    """Irrational algebraic coefficients into their number field, so that factoring is exact."""
    if all(c.is_algebraic and not c.free_symbols and c.count_ops() < 12 for c in p.all_coeffs()) and p.degree() <= 8:
        try:
            return Poly(p.as_expr(), x, extension=True)
        except (PolynomialError, NotImplementedError):
            return p
    return p


def _irreducible_zeros(q: Poly, x: Symbol) -> list[Expr]:
    if q.degree() <= 0:
        return []
    step = 0
    for (m,) in q.monoms():
        step = _gcd(step, m)
    if step > 1:                                            # q(x) = h(x**step): He_4 has +-sqrt(3 +- sqrt(6))
        h = Poly({(m // step,): c for (m,), c in q.terms()}, x)
        if h.degree() <= 2:
            return [r for u in _irreducible_zeros(h, x) for r in _real_powers(u, step)]
    if q.degree() == 1:
        a, b = q.all_coeffs()
        _nonzero(a)
        return [-b / a]
    if q.degree() == 2:
        return _quadratic_zeros(*q.all_coeffs())
    if q.domain.is_ZZ or q.domain.is_QQ:
        return list(q.real_roots(multiple=True))
    if all(c.is_algebraic and not c.free_symbols for c in q.all_coeffs()):
        return _algebraic_zeros(q, x)
    raise _no_roots(q.as_expr(), x, f"it is irreducible of degree {q.degree()} with coefficients that are not algebraic")


def _quadratic_zeros(a: Expr, b: Expr, c: Expr) -> list[Expr]:
    _nonzero(a)
    discriminant = (b**2 - 4*a*c).expand()
    sign = sign_of(discriminant)
    if sign < 0:
        return []
    if sign == 0:
        return [-b / (2*a)]
    root = sqrt(discriminant.factor() if discriminant.free_symbols else discriminant)
    return [(-b - root) / (2*a), (-b + root) / (2*a)]


def _algebraic_zeros(q: Poly, x: Symbol) -> list[Expr]:
    """Roots of an irreducible q over a number field: those roots of its norm across which q changes sign."""
    try:
        norm = Poly(q.as_expr(), x, extension=True).norm()
    except (PolynomialError, NotImplementedError) as error:
        raise _no_roots(q.as_expr(), x, "its norm over the rationals is not found") from error
    if norm.degree() > _DEGREE:
        raise _no_roots(q.as_expr(), x, f"the degree of its norm exceeds {_DEGREE}")
    candidates = ordered(norm.real_roots(multiple=False) and [r for r, _ in norm.real_roots(multiple=False)])
    ends = [-oo, *candidates, oo]
    probes = [between(a, b) for a, b in zip(ends, ends[1:], strict=False)]
    signs = [sign_of(q.eval(p)) for p in probes]            # q is squarefree: it changes sign at each of its roots
    return [r for i, r in enumerate(candidates) if signs[i] != signs[i + 1]]


# -- one outer function -----------------------------------------------------------------------------------------------
_Inverse = Callable[[Expr], Expr]
_MONOTONE: dict[type, tuple[_Inverse, Expr, Expr]] = {      # h: (its inverse, and the open range of h on the line)
    exp: (log, S.Zero, oo), log: (exp, -oo, oo), tanh: (atanh, S.NegativeOne, S.One), sinh: (asinh, -oo, oo),
    erf: (erfinv, S.NegativeOne, S.One), erfc: (erfcinv, S.Zero, S(2)), atan: (tan, -pi/2, pi/2), asinh: (sinh, -oo, oo),
    atanh: (tanh, -oo, oo),
}
_CLOSED: dict[type, tuple[_Inverse, Expr, Expr]] = {        # ... and those whose range is closed
    asin: (sin, -pi/2, pi/2), acos: (cos, S.Zero, pi), acosh: (cosh, S.Zero, oo),
}
_PERIODIC: dict[type, tuple[_Inverse, Callable[[Expr], list[Expr]], Expr]] = {
    sin: (asin, lambda a: [a, pi - a], 2*pi), cos: (acos, lambda a: [a, -a], 2*pi),
    tan: (atan, lambda a: [a], pi), cot: (lambda v: pi/2 - atan(v), lambda a: [a], pi),
}


def _preimage(h: Expr, v: Expr, where: tuple[Symbol, Window, int]) -> list[Expr]:
    """The solutions x of h(u(x)) = v, where v is free of x: peel h, go on with u."""
    x, w, depth = where

    def go_on(value: Expr) -> list[Expr]:
        return _zeros(h.args[0] - value, x, w, depth + 1)

    kind = type(h)
    if len(h.args) == 1 and kind in _MONOTONE:
        inverse, low, high = _MONOTONE[kind]
        return go_on(inverse(v)) if compare(v, low) > 0 and compare(v, high) < 0 else []
    if kind in _CLOSED:
        inverse, low, high = _CLOSED[kind]
        return go_on(inverse(v)) if compare(v, low) >= 0 and compare(v, high) <= 0 else []
    if kind in (cosh, sech):
        v = v if kind is cosh else (1/v if sign_of(v) > 0 else S.Zero)
        top = compare(v, S.One)
        return [] if top < 0 else go_on(S.Zero) if top == 0 else go_on(acosh(v)) + go_on(-acosh(v))
    if kind in (sec, csc):
        return _preimage(cos(h.args[0]) if kind is sec else sin(h.args[0]), 1/v, where) if sign_of(v) else []
    if kind is erfi:
        if sign_of(v) == 0:
            return go_on(S.Zero)
        raise _no_roots(h - v, x, "erfi has no named inverse")
    if kind in _PERIODIC:
        return _periodic(h, v, where)
    if h.is_Pow:
        return _power(h, v, where)
    raise _no_roots(h - v, x, f"{kind.__name__} has no inverse in the table")


def _power(h: Pow, v: Expr, where: tuple[Symbol, Window, int]) -> list[Expr]:
    """u**e = v for real u: integers, principal fractional powers (u >= 0), and b**u = v."""
    x, w, depth = where
    base, e = h.base, h.exp
    if x in e.free_symbols:
        if x in base.free_symbols:
            return _zeros(e*log(base) - log(v), x, w, depth + 1) if sign_of(v) > 0 else []
        return _zeros(e - log(v)/log(base), x, w, depth + 1) if sign_of(v) > 0 else []
    sign = sign_of(v)
    if sign == 0:
        return _zeros(base, x, w, depth + 1) if sign_of(e) > 0 else []
    if e.is_Integer:
        values = _real_powers(v if e > 0 else 1/v, abs(int(e)))
    else:
        values = [v**(1/e)] if sign > 0 else []
    return [r for value in values for r in _zeros(base - value, x, w, depth + 1)]


def _real_powers(u: Expr, n: int) -> list[Expr]:
    """The real solutions of s**n = u."""
    sign = sign_of(u)
    if sign == 0:
        return [S.Zero]
    if n % 2:
        return [u**Rational(1, n) if sign > 0 else -(-u)**Rational(1, n)]
    return [-u**Rational(1, n), u**Rational(1, n)] if sign > 0 else []


def _periodic(h: Expr, v: Expr, where: tuple[Symbol, Window, int]) -> list[Expr]:
    from hermitex.symbolic.ranges import bounds

    x, w, depth = where
    inverse, branches, period = _PERIODIC[type(h)]
    if type(h) in (sin, cos) and (compare(v, S.NegativeOne) < 0 or compare(v, S.One) > 0):
        return []
    low, high = bounds(h.args[0], x, w)
    if not (low.is_finite and high.is_finite):
        raise _no_roots(h - v, x, "it is periodic: the roots are enumerated only in a finite window")
    found: list[Expr] = []
    for start in dict.fromkeys(branches(inverse(v))):
        first, last = _floor((low - start)/period), _floor((high - start)/period)
        if last - first > _MANY:
            raise _no_roots(h - v, x, f"more than {_MANY} roots lie in the window")
        for k in range(first, last + 2):
            found += _zeros(h.args[0] - start - k*period, x, w, depth + 1)
    return found


# -- sums -------------------------------------------------------------------------------------------------------------
def _sum_zeros(f: Expr, x: Symbol, w: Window, depth: int) -> list[Expr]:
    """A sum: over one denominator, as a polynomial in one function of x, in sin and cos, or by monotonicity."""
    if f.count_ops() > 4*_OPS:
        raise _no_roots(f, x, "it is too large")
    numerator = fraction(together(f))[0]
    if numerator.is_Mul or numerator.is_polynomial(x):
        return _zeros(numerator, x, w, depth)
    for form in dict.fromkeys((numerator, _exponential(numerator, x))):
        found = _in_one_function(form, x, w, depth)
        if found is not None:
            return found
    return _by_monotonicity(f, x, w, depth)


def _exponential(f: Expr, x: Symbol) -> Expr:
    """Hyperbolic functions as exponentials, over one denominator, powers of exp expanded."""
    from sympy import expand_power_exp

    if f.count_ops() > _OPS:
        return f
    g = f.replace(lambda n: isinstance(n, (sinh, cosh, tanh, sech)) and x in n.free_symbols, lambda n: n.rewrite(exp))
    return expand_power_exp(fraction(together(g))[0].expand())


def _in_one_function(f: Expr, x: Symbol, w: Window, depth: int) -> list[Expr] | None:
    """f = p(h(x)) for a polynomial p: the roots of p, each carried back through h; factors one by one."""
    try:
        p = Poly(f)
    except PolynomialError:
        return None
    gens = [g for g in p.gens if x in g.free_symbols]
    if len(gens) == 1:
        (h,) = gens
        if h == x:
            return _polynomial_zeros(f, x)
        s = Dummy("s", real=True)
        in_s = p.as_expr(*(s if g == h else g for g in p.gens))       # not xreplace: exp(x)**2 is written exp(2*x)
        return [r for v in _polynomial_zeros(in_s, s)
                for r in _zeros_of_difference(h, v, (x, w, depth + 1))]
    if f.count_ops() <= _OPS:
        factors = [q.as_expr() for q, _ in p.factor_list()[1] if x in q.free_symbols or
                   any(x in g.free_symbols for g in q.as_expr().atoms(Function, Pow))]
        if len(factors) > 1:
            return [r for q in factors for r in _zeros(q, x, w, depth + 1)]
    if len(gens) == 2 and {type(g) for g in gens} == {sin, cos} and gens[0].args == gens[1].args:
        return _half_angle(f, gens[0].args[0], (x, w, depth + 1))
    return None


def _zeros_of_difference(h: Expr, v: Expr, where: tuple[Symbol, Window, int]) -> list[Expr]:
    return _preimage(h, v, where) if isinstance(h, Function) or h.is_Pow else _zeros(h - v, *where)


def _half_angle(f: Expr, u: Expr, where: tuple[Symbol, Window, int]) -> list[Expr]:
    """sin u = 2 t/(1 + t^2), cos u = (1 - t^2)/(1 + t^2), t = tan(u/2); u = pi mod 2 pi is added (a superset)."""
    t = Dummy("t", real=True)
    p = fraction(together(f.xreplace({sin(u): 2*t/(1 + t**2), cos(u): (1 - t**2)/(1 + t**2)})))[0]
    found = _preimage(cos(u), S.NegativeOne, where)
    for v in _polynomial_zeros(p.expand(), t):
        found += _preimage(tan(u/2), v, where)
    return found


def _by_monotonicity(f: Expr, x: Symbol, w: Window, depth: int) -> list[Expr]:
    """Between consecutive points of {f' = 0} and singularities f is monotone: no root, or one that must be named."""
    from hermitex.symbolic.singular import singularities

    if f.count_ops() > _OPS or depth > _DEPTH - 4:
        raise _no_roots(f, x, "no rule isolates x")
    slope = f.diff(x)
    cuts = inside([*_zeros(slope, x, w, depth + 4), *singularities(f, x, w)], *w)
    ends = [w.lo, *cuts, w.hi]
    found: list[Expr] = list(cuts)
    for a, b in zip(ends, ends[1:], strict=False):
        if _end_sign(f, x, (a, "+")) * _end_sign(f, x, (b, "-")) >= 0:
            continue
        for guess in (S.Zero, S.One, S.NegativeOne):
            if compare(guess, a) > 0 and compare(guess, b) < 0 and f.subs(x, guess).is_zero:
                found.append(guess)
                break
        else:
            raise _no_roots(f, x, f"it has one root in ({a}, {b}) that no rule names")
    return found


def _end_sign(f: Expr, x: Symbol, end: tuple[Expr, str]) -> int:
    """The sign of f just inside an end of an interval on which it is monotone (0: it tends to 0 there)."""
    point, side = end
    if point.is_finite:
        value = f.subs(x, point)
        if value.is_finite:
            return sign_of(value)
    if f.count_ops() > _OPS // 3:
        raise _no_roots(f, x, "its limits are too large an expression")
    from sympy import limit

    return sign_of(limit(f, x, point, side if point.is_finite else "-"))


# -- small things -----------------------------------------------------------------------------------------------------
def _nonzero(a: Expr) -> None:
    if a.is_zero is False:
        return
    try:
        if sign_of(a):
            return
    except AssumptionNeeded as error:
        raise AssumptionNeeded(error.symbol, "nonzero") from None
    raise NoClosedForm(a, f"{a} must be known to be non-zero")


def _floor(value: Expr) -> int:
    from sympy import floor

    return int(floor(value))


def _gcd(a: int, b: int) -> int:
    from math import gcd

    return gcd(a, b)


def _no_roots(f: Expr, x: Symbol, why: str) -> NoClosedForm:
    shown = f.xreplace({x: Symbol("x")}) if isinstance(x, Dummy) else f
    return NoClosedForm(shown, f"the real roots of {str(shown)[:80]} are not found exactly: {why}")
