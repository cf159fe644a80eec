"""f(k x + b) turns about x = -b/k over a width 1/k: the scales, centres and frequencies in a formula.

A narrow or oscillating integrand is invisible to a rule of wider steps, whatever it says of itself. What a formula shows of
its own scales is read here once, as expressions of everything else in it, for the kernels and for the digits alike. It
need not be complete, since what a rule gives is verified on other nodes; and it need not be sharp.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple

import sympy as sp
from sympy import Add, Basic, Expr, Integer, Mul, Pow, Symbol
from sympy.core.function import AppliedUndef

from hermitex.symbolic.breaks.algebraic import near_roots
from hermitex.symbolic.gaussian import Expectation

_STEEP = (sp.tanh, sp.erf, sp.erfc, sp.atan, sp.sech, sp.csch, sp.coth, sp.acot, sp.asinh)
_WAVES = (sp.sin, sp.cos, sp.besselj, sp.Si, sp.sinc, sp.fresnels, sp.fresnelc)
_POLES = (sp.tan, sp.cot, sp.sec, sp.csc)
_INVERSE = {sp.tanh: sp.atanh, sp.exp: sp.log, sp.erf: sp.erfinv, sp.sinh: sp.asinh, sp.atan: sp.tan, sp.log: sp.exp,
            sp.asinh: sp.sinh}
_HARMONICS = 16  # of a wave inside another function
_SLOW = 3  # frequencies and inverse widths up to which nothing is reported
_REACH = 8  # half the window in which a nonlinear argument is looked at
_MOST = 24  # of one kind
_TERMS = 5  # of a sum of exponentials, which are compared in pairs
_SAMPLES = 256  # half the places at which signs are looked at


class Scales(NamedTuple):
    """narrow: pairs (k, b), something turns where k x + b = 0, over 1/|k|; fast: bounds of frequencies in x."""

    narrow: tuple[tuple[Expr, Expr], ...]
    fast: tuple[Expr, ...]


def scales(body: Expr, x: Symbol) -> Scales:
    """What a formula shows of its scales in x.

    Examples
    --------
    >>> from sympy import Symbol, cos, exp, tanh
    >>> x, a, c = (Symbol(n, real=True) for n in "xac")
    >>> scales(tanh(a*(x - c))*cos(a*x)**2, x)
    Scales(narrow=((a, -a*c),), fast=(2*Abs(a),))
    >>> scales(1/(1 + 10**6*(x - 3)**2), x).narrow
    ((1000, -3000),)
    >>> scales(exp(-a*abs(x - 3))*tanh(x), x).narrow
    ((Abs(a), -3*Abs(a)),)
    """
    narrow = dict.fromkeys(pair for e in dict.fromkeys(_parts(body, x)) if isinstance(e, Expr) for pair in _turns(e, x))
    narrow |= dict.fromkeys(_beside_kinks(body, x))
    steep = [(k, b) for k, b in narrow if not (k.is_number and abs(k) <= _SLOW)]
    fast = [f for f in _frequencies(body, x) if not (f.is_number and f <= _SLOW)]
    return Scales(tuple(steep[:_MOST]), tuple(dict.fromkeys(fast[:_MOST])))


def real(e: Expr) -> bool:
    """May it be a number of the real line, as a place, a width or a frequency must be? Roots of formulas need not be.

    >>> [real(e) for e in (sp.sqrt(-3), 1/sp.S.Zero, sp.erfinv(2), sp.sqrt(Symbol("x")))]
    [False, False, False, True]
    """
    if e.has(sp.I, sp.zoo, sp.nan, sp.oo) or e.is_real is False:
        return False
    return not any(f.args[0].is_number and (abs(f.args[0]) < 1) != True for f in e.atoms(sp.erfinv))  # noqa: E712 - SymPy's true


# -- where something turns ---------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)  # the integrands of one system have most of their parts in common
def _parts(e: Basic, x: Symbol) -> tuple[Basic, ...]:
    """The parts of an expression that depend on x, itself the first."""
    bound = isinstance(e, Expectation) and x not in e.free_symbols
    inside = () if bound else tuple(part for a in e.args for part in _parts(a, x))
    return (e, *inside) if inside or e == x else ()


@lru_cache(maxsize=4096)
def _turns(e: Expr, x: Symbol) -> tuple[tuple[Expr, Expr], ...]:
    found = [(sp.sympify(k, strict=True), sp.sympify(b, strict=True)) for k, b in _turning(e, x)]
    return tuple((k, b) for k, b in found if k != 0 and real(k) and real(b))


def _turning(e: Expr, x: Symbol) -> list[tuple[Expr, Expr]]:
    if isinstance(e, _STEEP):
        return _at_roots(e.args[0], x)
    if isinstance(e, sp.exp):
        return _of_exponential(e.exp, x)
    if isinstance(e, Pow) and x in e.base.free_symbols and not (e.exp.is_Integer and e.exp.is_positive):
        return _of_base(e.base, x)
    if isinstance(e, sp.log):
        return _of_base(e.args[0], x)
    return []


def _at_roots(g: Expr, x: Symbol) -> list[tuple[Expr, Expr]]:
    """(k, b) at each root of g that is found: g itself where it is linear, its slope there elsewhere."""
    line = linear(g, x)
    if line is not None:
        return [line]
    slope, found = sp.diff(g, x), []
    for c in _seen(g, x):
        k = slope.xreplace({x: c})
        found.append((k, -k * c))
    return found


def _of_exponential(g: Expr, x: Symbol) -> list[tuple[Expr, Expr]]:
    """A Gaussian about its centre, any other exponential about the stationary points of its exponent."""
    if linear(g, x) is not None or g.has(sp.I, *_WAVES):
        return []
    if not g.is_polynomial(x):
        slope, bend = sp.diff(g, x), sp.diff(g, x, 2)
        if bend.has(sp.Derivative):  # of the size of what SymPy does not see to be real
            return []
        return [(k, -k * c) for c in _seen(slope, x) if (k := sp.sqrt(size(bend.xreplace({x: c})))) != 0]
    p = sp.Poly(g, x)
    if p.degree() == 2:
        A, B = p.coeff_monomial(x**2), p.coeff_monomial(x)
        k = sp.sqrt(2 * size(A))
        return [] if A.is_nonnegative else [(k, k * B / (2 * A))]
    widths = [(_inverse_width(g, x, c, p.degree()), c) for c in roots(sp.diff(g, x), x)]
    return [(k, -k * c) for k, c in widths]


@lru_cache(maxsize=4096)
def _beside_kinks(body: Expr, x: Symbol) -> tuple[tuple[Expr, Expr], ...]:
    """An exponential that a kink or a jump ends is as narrow there as its exponent is steep: exp(-k |x - c|), exp(-k x) on x > c.

    A bound of the slope is used in its place; a kink is a zero of a part that is linear in x.
    """
    factors = [f for term in Add.make_args(body) for f in Mul.make_args(term) if isinstance(f, sp.exp) and x in f.free_symbols]
    slopes = [sp.diff(f.exp, x) for f in factors if not f.exp.has(sp.I, Expectation)]
    if not slopes:
        return ()
    switches = body.atoms(sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min)
    inside = [a for f in switches for a in ((f.args[0],) if len(f.args) < 2 or isinstance(f, sp.Heaviside) else
                                            (p - q for p, q in combinations(f.args, 2)))]
    lines = [line for a in dict.fromkeys(sorted(inside, key=sp.default_sort_key)) if (line := linear(a, x)) is not None]
    found = []
    for k, b in lines:
        c = -b / k
        for slope in slopes:
            there = slope.replace(sp.sign, lambda _: Integer(1)).replace(sp.Heaviside, lambda *_: Integer(1)).xreplace({x: c})
            if not there.has(sp.Derivative, sp.DiracDelta):
                steep = Add(*map(size, Add.make_args(sp.expand(there))))
                found.append((steep, sp.expand(-steep * c)))
    return tuple((k, b) for k, b in dict.fromkeys(found) if k != 0 and real(k) and real(b))


def _inverse_width(g: Expr, x: Symbol, c: Expr, degree: int) -> Expr:
    """(|g^(n)(c)|/n!)^(1/n) at a stationary point, n the first order that is not 0 there: exp(-(k x)^4) is 1/k wide."""
    for n in range(2, degree + 1):
        rise = sp.expand(sp.diff(g, x, n).xreplace({x: c}))
        if rise != 0:
            return sp.sqrt(size(rise)) if n == 2 else (size(rise) / sp.factorial(n)) ** sp.Rational(1, n)
    return Integer(0)


def _of_base(base: Expr, x: Symbol) -> list[tuple[Expr, Expr]]:
    """Next to what a power or a logarithm meets in the plane: the roots of a polynomial, exp(k x + b) = -rest."""
    if base.is_polynomial(x):
        p = sp.Poly(base, x)
        if p.degree() == 2:
            A, B, C = (p.coeff_monomial(x**n) for n in (2, 1, 0))
            width = sp.sqrt(size(sp.expand(4 * A * C - B**2))) / (2 * size(A))
            return [] if width == 0 else [(1 / width, B / (2 * A) / width)]
        if p.degree() > 2 and not base.free_symbols - {x}:
            near = [r for r in near_roots(p) if abs(sp.im(r)) < 1 and abs(sp.re(r)) < 4 * _REACH]
            pairs = [(sp.re(r), sp.im(r)) for r in near if sp.im(r) > 0]
            return [(1 / _rational(w), -_rational(c) / _rational(w)) for c, w in pairs]
        return []
    if not base.has(sp.exp, *_WAVES):  # near a minimum m + s (x - c)^2/2 it meets 0 in the plane at a distance (2 m/s)^(1/2)
        found = [(c, base.xreplace({x: c}), sp.diff(base, x, 2).xreplace({x: c})) for c in _seen(sp.diff(base, x), x)]
        return [(k, -k * c) for c, m, s in found if m != 0 for k in (sp.sqrt(size(s / (2 * m))),)]
    turning = [pair for f in base.atoms(sp.cosh, sp.sinh) for pair in _at_roots(f.args[0], x)]
    inside = [(e, line) for e in Add.make_args(base) for f in e.atoms(sp.exp) if (line := linear(f.exp, x)) is not None]
    lines = [_line(e, x) for e in sorted(Add.make_args(base), key=lambda e: x not in e.free_symbols)]
    if 1 < len(lines) <= _TERMS and all(line is not None for line in lines):  # two of them are equal there
        return [(k - m, b - d) for (k, b), (m, d) in combinations(lines, 2) if k != m]  # type: ignore[misc]
    return turning + [line for _, line in inside]


def _line(e: Expr, x: Symbol) -> tuple[Expr, Expr] | None:
    """(k, b) where |e| = exp(k x + b)."""
    if x not in e.free_symbols:
        return Integer(0), sp.log(size(e))
    exponents = [f for f in Mul.make_args(e) if isinstance(f, sp.exp)]
    rest, line = Mul(*(f for f in Mul.make_args(e) if f not in exponents)), linear(Add(*(f.exp for f in exponents)), x)
    return None if line is None or x in rest.free_symbols else (line[0], line[1] + sp.log(size(rest)))


# -- frequencies -------------------------------------------------------------------------------------------------------
class _Band(NamedTuple):
    """Bounds of polynomials of waves, used for their maximum; and the waves inside other functions.

    A function of waves has harmonics of them, and a function of that, or a product with it, has the same ones: they are counted
    once, however deep the waves are nested.
    """

    waves: tuple[Expr, ...] = ()
    bent: tuple[Expr, ...] = ()


def _frequencies(e: Expr, x: Symbol) -> list[Expr]:
    """Bounds of the frequencies of an expression in x; the largest of several counts, and a slow expression has none."""
    band = _band(e, x)
    harmonics = [_HARMONICS * f for f in band.bent]
    return _united([[p + q for p in band.waves for q in harmonics] if band.waves and harmonics else [*band.waves, *harmonics]])


@lru_cache(maxsize=4096)
def _band(e: Expr, x: Symbol) -> _Band:
    if not _parts(e, x):
        return _Band()
    inside = [_band(a, x) for a in e.args]
    bent = _united(own.bent for own in inside)
    if isinstance(e, Mul):
        total: list[Expr] = []
        for own in inside:
            total = [p + q for p in total for q in own.waves][:_MOST] if total and own.waves else total or [*own.waves]
        return _Band(tuple(total), tuple(bent))
    if isinstance(e, Add):
        return _Band(tuple(_united(own.waves for own in inside)), tuple(bent))
    if isinstance(e, Pow) and e.exp.is_Integer and e.exp.is_positive:
        return _Band(tuple(e.exp * f for f in inside[0].waves), tuple(bent))
    bent = _united([*(_fundamental(a, x) for a in e.args)])
    if isinstance(e, _WAVES):
        return _Band(tuple(_united([_slope(e.args[-1], x)])), tuple(bent))
    if isinstance(e, _POLES):
        return _Band((), tuple(_united([_slope(e.args[-1], x), bent])))
    if isinstance(e, sp.exp) and e.exp.has(sp.I):
        return _Band(tuple(_united([_slope(sp.im(e.exp), x)])), tuple(bent))
    return _Band((), tuple(bent))


def _fundamental(e: Expr, x: Symbol) -> list[Expr]:
    """The frequencies of the waves in an expression, one by one."""
    if not _parts(e, x):
        return []
    own = _slope(e.args[-1], x) if isinstance(e, (*_WAVES, *_POLES)) else []
    own = _slope(sp.im(e.exp), x) if isinstance(e, sp.exp) and e.exp.has(sp.I) else own
    return _united([own, *(_fundamental(a, x) for a in e.args)])


def _slope(g: Expr, x: Symbol) -> list[Expr]:
    """Bounds of |g'|: of a polynomial by its terms at the edge of the window, else its values at a few places."""
    slope = sp.diff(g, x).replace(sp.DiracDelta, lambda *_: sp.S.Zero)  # a jump has no frequency
    if x in slope.free_symbols and slope.is_polynomial(x):
        found = [Add(*(size(c) * Integer(_REACH // 2) ** n for (n,), c in sp.Poly(slope, x).terms()))]
    else:
        found = [size(slope.xreplace({x: Integer(v)})) for v in (-_REACH // 2, 0, _REACH // 2)]
    return [f for f in dict.fromkeys(found) if real(f)]


def _united(found: Iterable[Iterable[Expr]]) -> list[Expr]:
    return list(dict.fromkeys(f for part in found for f in part))[:_MOST]


# -- roots as formulas -------------------------------------------------------------------------------------------------
def linear(g: Expr, x: Symbol) -> tuple[Expr, Expr] | None:
    """(k, b) with g = k x + b, or None."""
    k = sp.diff(g, x)
    if k == 0 or x in k.free_symbols:
        return None
    return k, sp.expand(g - k * x) if not k.has(Add) else sp.simplify(g - k * x)


def roots(g: Expr, x: Symbol) -> list[Expr]:
    """Real roots of g in x as formulas, with parameters of any sign; a formula may have no real value. [] where none is found.

    Examples
    --------
    >>> from sympy import Symbol, tanh
    >>> x, a = (Symbol(n, real=True) for n in "xa")
    >>> roots(2*tanh(3*x) - a, x)
    [atanh(a/2)/3]
    """
    return [c for c in _roots(g, x) if real(c)]


def _roots(g: Expr, x: Symbol) -> list[Expr]:
    if x not in g.free_symbols:
        return []
    if isinstance(g, Mul):
        return [c for factor in g.args for c in roots(factor, x)]
    if isinstance(g, Pow) and g.exp.is_positive:
        return roots(g.base, x)
    line = linear(g, x)
    if line is not None:
        return [-line[1] / line[0]]
    if g.is_polynomial(x):
        return _of_polynomial(sp.Poly(g, x))
    rest, moving = g.as_independent(x, as_Add=True)
    factor, f = moving.as_independent(x, as_Add=False)
    value = -rest / factor
    if type(f) in _INVERSE:
        return roots(f.args[0] - _INVERSE[type(f)](value), x)
    return []


def _seen(g: Expr, x: Symbol) -> list[Expr]:
    """The roots of a smooth function as formulas, else, where it has no letters, near changes of its sign."""
    if isinstance(g, Mul):
        return list(dict.fromkeys(c for factor in g.args for c in _seen(factor, x)))[:_MOST]
    if x not in g.free_symbols:
        return []
    return (roots(g, x) or _changes(g, x))[:_MOST]


def _changes(g: Expr, x: Symbol) -> list[Expr]:
    if g.free_symbols != {x} or not g.is_real or g.has(AppliedUndef, Expectation, sp.Integral, sp.Sum, sp.DiracDelta):
        return []
    try:
        f = sp.lambdify(x, g, ["math"])
    except NotImplementedError:  # a function of the package's own
        return []

    def at(place: float) -> float:
        try:
            return float(f(place))
        except (ArithmeticError, ValueError, TypeError, NameError):
            return 0.0

    places = [_REACH * (k + 0.37) / _SAMPLES for k in range(-_SAMPLES, _SAMPLES)]
    found = []
    for (a, u), (b, v) in pairwise((p, at(p)) for p in places):
        if min(u, v) < 0 < max(u, v):
            for _ in range(60):
                middle = (a + b) / 2
                a, b = (middle, b) if at(middle) * u > 0 else (a, middle)
            found.append(sp.Rational(a))
    return found


def _of_polynomial(p: sp.Poly) -> list[Expr]:
    if p.degree() == 2:
        A, B, C = (p.coeff_monomial(p.gen**n) for n in (2, 1, 0))
        root = sp.sqrt(B**2 - 4 * A * C)
        found = [(-B + root) / (2 * A), (-B - root) / (2 * A)]
        return [] if root.is_real is False else list(dict.fromkeys(found))
    if p.free_symbols_in_domain:
        return []
    return [_rational(r) for r in near_roots(p) if abs(sp.im(r)) < 1e-12]


def size(e: Expr) -> Expr:
    """|e|, where inverse functions in e are real where they have a value, which SymPy does not know: no re(erfinv(m)).

    >>> m = Symbol("m", real=True)
    >>> size(m*sp.exp(sp.erfinv(m)))
    exp(erfinv(m))*Abs(m)
    """
    inverse = {f: sp.Dummy(real=True) for f in e.atoms(sp.erfinv, sp.atanh, sp.log) if f.free_symbols}
    e = e.xreplace(inverse)
    e = e if e.is_nonnegative else -e if e.is_nonpositive else sp.Abs(e)
    return e.xreplace({v: f for f, v in inverse.items()})


def _rational(value: Expr) -> Expr:
    return sp.Rational(str(sp.re(value).evalf(15)))
