"""sum_i c_i s_i + O(s), s = t^n log(t)^l exp(sum a_kj t^k log(t)^j): arithmetic of expansions at t -> oo.

Coefficients and exponents are exact, so that a borderline (exp(z^2/2)/(1 + z^4) is integrable, exp(z^2/2) is not) is
decided and not guessed. What cannot be compared exactly raises `IncomparableScales`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cmp_to_key, lru_cache
from typing import NamedTuple

import sympy as sp
from sympy import Expr, Integer, Rational, S, Symbol

from hermitex.errors import HermitexError
from hermitex.symbolic import hooks
from hermitex.symbolic.breaks.order import assumed
from hermitex.symbolic.budget import kept
from hermitex.symbolic.gaussian import Expectation

_KEPT = ContextVar("kept", default=6)


@contextmanager
def keeping(terms: int) -> Iterator[None]:
    """Expansions keep so many terms inside; their error covers the others."""
    before = _KEPT.set(terms)
    try:
        yield
    finally:
        _KEPT.reset(before)


class IncomparableScales(Exception):
    """The exact comparison that decides the answer could not be made."""


class Scale(NamedTuple):
    """t^n log(t)^l exp(sum a_kj t^k log(t)^j); `exponents` are pairs ((k, j), a_kj), falling, all beyond log t.

    k = oo: beyond every power, as exp(t) is.
    """

    exponents: tuple[tuple[tuple[Expr, Expr], Expr], ...] = ()
    n: Expr = S.Zero
    l: Expr = S.Zero

    def times(self, other: Scale, p: Expr = S.One) -> Scale:
        """self * other^p."""
        powers = dict(self.exponents)
        for k, a in other.exponents:
            if k == _BEYOND and k in powers:
                raise IncomparableScales
            powers[k] = sp.expand(powers.get(k, S.Zero) + p * a)
        kept = sorted(((k, a) for k, a in powers.items() if a != 0), key=lambda pair: pair[0], reverse=True)
        return Scale(tuple(kept), sp.expand(self.n + p * other.n), self.l + p * other.l)

    def growth(self) -> int:
        """1 if it tends to oo, -1 if to 0, 0 if it is 1."""
        for a in (*(a for _, a in self.exponents), self.n, self.l):
            found = sign(a)
            if found:
                return found
        return 0


_BEYOND = (S.Infinity, S.Zero)
ONE = Scale()
LOG = Scale(l=S.One)


class Series(NamedTuple):
    """`terms` in falling order plus O(error); error None: nothing is left out.

    comparable: no term is known, yet |f| is at least of the size `error` on a positive fraction of the line (sin t).
    """

    terms: tuple[tuple[Expr, Scale], ...]
    error: Scale | None = None
    comparable: bool = False

    @property
    def top(self) -> Scale | None:
        """The scale that bounds f; None for f = 0."""
        return self.terms[0][1] if self.terms else self.error

    @property
    def exact(self) -> bool:
        """True if f is of the size of `top`, not only bounded by it."""
        return bool(self.terms) or self.comparable


def sign(value: Expr) -> int:
    """The sign of an exact real number, or of an expression in symbols of known sign; raises `IncomparableScales`."""
    value = sp.sympify(value, strict=True)
    if value.is_Rational:
        return int(sp.sign(value))
    if not value.free_symbols and not value.has(Expectation):  # SymPy's own questions about roots of roots take long
        return _sign_of_number(value)
    found = assumed(value)
    if found is None:
        value = sp.expand(value)
        found = assumed(value) if value.free_symbols or value.is_zero else _sign_of_averages(value)
    if found is None:
        raise IncomparableScales
    return found


@lru_cache(maxsize=4096)
def _sign_of_number(value: Expr) -> int:
    number = value.evalf(40, maxn=200)
    if not number.is_real:
        raise IncomparableScales
    if abs(number) > sp.Float(10) ** -30:
        return 1 if number > 0 else -1
    value = sp.expand(value)
    if (found := assumed(value)) is not None:
        return found
    if value.is_algebraic and sp.count_ops(value) < 60:
        v = sp.Dummy("v")
        if sp.minimal_polynomial(value, v) == v:
            return 0
    raise IncomparableScales


@kept(256)
def _sign_of_averages(value: Expr) -> int | None:
    """By numbers with their errors; averages that cancel may do so exactly, which their digits never show."""
    if any(len(n.bound) > 1 or n.body.has(Expectation) for n in value.atoms(Expectation)):
        return None  # over several variables each takes seconds
    try:
        number, error = hooks.measure(value)
    except (HermitexError, ValueError, TypeError, ArithmeticError):
        return None
    return None if not abs(number) > 8 * error else 1 if number > 0 else -1


def compare(a: Scale, b: Scale) -> int:
    """1 if a dominates b, 0 if they are the same scale."""
    return a.times(b, S.NegativeOne).growth()


def leading_sign(series: Series) -> int:
    """The sign of the series where its variable is large: that of its first term."""
    if not series.terms:
        raise IncomparableScales
    return sign(series.terms[0][0])


def limit_of(series: Series) -> tuple[Expr, Series]:
    """(limit, what remains and tends to zero)."""
    if series.error is not None and series.error.growth() >= 0:
        raise IncomparableScales
    if series.terms and series.terms[0][1].growth() == 0:
        return series.terms[0][0], Series(series.terms[1:], series.error)
    return S.Zero, series


def scaled(a: Series, factor: Expr) -> Series:
    """factor * a."""
    return Series(tuple((sp.expand(c * factor), s) for c, s in a.terms), a.error, a.comparable)


def add(*parts: Series) -> Series:
    """The sum: like scales are added, exact zeros dropped, and what drowns in the error with them.

    A coefficient that may be zero bounds its term.
    """
    total: dict[Scale, Expr] = {}
    for part in parts:
        for c, s in part.terms:
            total[s] = sp.expand(total.get(s, S.Zero) + c)
    terms, noisy = [], [p for p in parts if p.error is not None]
    for s, c in total.items():
        try:
            terms += [] if c == 0 or vanishes(c) else [(c, s)]
        except IncomparableScales:
            noisy.append(Series((), s))
    terms.sort(key=lambda term: cmp_to_key(compare)(term[1]), reverse=True)
    error: Scale | None = None
    comparable = False
    for part in noisy:
        assert part.error is not None
        order = 1 if error is None else compare(part.error, error)
        if order > 0:
            error, comparable = part.error, part.comparable
        elif order == 0:
            comparable = False
    return _cut(terms, error, comparable)


def _cut(terms: list[tuple[Expr, Scale]], error: Scale | None, comparable: bool = False) -> Series:
    if error is not None:
        orders = [compare(s, error) for _, s in terms]
        comparable = comparable and all(order < 0 for order in orders)  # c s + O(s) could cancel
        terms = [term for term, order in zip(terms, orders, strict=True) if order > 0]
    kept = _KEPT.get()
    if len(terms) > kept:
        terms, error, comparable = terms[:kept], terms[kept][1], False
    return Series(tuple(terms), error, comparable)


def vanishes(c: Expr) -> bool:
    """A symbol without a known sign counts as any number but zero."""
    try:
        return sign(c) == 0
    except IncomparableScales:
        if c.has(Expectation):
            if c.free_symbols and sign(_somewhere(c)):
                return False
            raise
        if c.free_symbols or c.evalf(30).is_real is False:
            return False
        raise


def _somewhere(c: Expr) -> Expr:
    """Numbers for the symbols of c; averages that cancel there are not known to differ anywhere."""
    symbols = sorted((s for s in c.free_symbols if isinstance(s, Symbol)), key=str)
    if any(s.is_integer or s.is_extended_real is False for s in symbols):
        raise IncomparableScales
    return c.xreplace({s: Rational(613 + 17 * k, 1009) * (-1 if s.is_extended_nonpositive else 1) for k, s in enumerate(symbols)})


def multiply(a: Series, b: Series) -> Series:
    """The product."""
    if a.top is None or b.top is None:
        return Series(())
    errors = [x.error.times(y.top) for x, y in ((a, b), (b, a)) if x.error is not None and y.top is not None]
    error = max(errors, key=cmp_to_key(compare)) if errors else None
    if not a.terms or not b.terms:
        return Series((), error, a.exact and b.exact)
    product = add(*(Series(((c * d, s.times(r)),)) for c, s in a.terms for d, r in b.terms))
    return _cut(list(product.terms), _larger(error, product.error))


def _larger(a: Scale | None, b: Scale | None) -> Scale | None:
    if a is None or b is None:
        return a or b
    return a if compare(a, b) >= 0 else b


def power(u: Series, p: Expr) -> Series:
    """u^p by the binomial series in u/lead - 1."""
    if p.is_Integer and p == 0:
        return Series(((S.One, ONE),))
    if not u.terms:
        if u.top is None or sign(p) < 0:
            if u.top is None and sign(p) > 0:
                return u
            raise IncomparableScales
        return Series((), ONE.times(u.top, p), u.comparable)
    c, s = u.terms[0]
    delta = Series(tuple((d / c, r.times(s, S.NegativeOne)) for d, r in u.terms[1:]),
                   None if u.error is None else u.error.times(s, S.NegativeOne))
    kept = _KEPT.get()
    whole = bool(p.is_Integer and 0 < p <= kept)
    binomials = [sp.ff(p, k) / sp.factorial(k) for k in range((int(p) if whole else kept) + 1)]
    expanded = _compose(binomials, delta, exact=whole)
    return Series(tuple((c**p * d, ONE.times(s, p).times(r)) for d, r in expanded.terms),
                  None if expanded.error is None else expanded.error.times(ONE.times(s, p)))


def _compose(coefficients: list[Expr], delta: Series, *, exact: bool = False) -> Series:
    """sum_k coefficients[k] delta^k + O(delta^K), delta -> 0."""
    if delta.top is not None and delta.top.growth() >= 0:
        raise IncomparableScales
    total, current = Series(((coefficients[0], ONE),)) if coefficients[0] != 0 else Series(()), Series(((S.One, ONE),))
    if delta.top is None:
        return total
    for coefficient in coefficients[1:]:
        current = multiply(current, delta)
        if coefficient != 0:
            total = add(total, scaled(current, coefficient))
    return total if exact else add(total, Series((), ONE.times(delta.top, Integer(len(coefficients)))))


def taylor(function: type, point: Expr, delta: Series) -> Series:
    """f(point + delta) for f analytic at `point`."""
    v = sp.Dummy("v")
    derivative, coefficients = function(v), []
    for k in range(4):
        value = derivative.subs(v, point)
        if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, sp.Derivative, sp.Subs):
            raise IncomparableScales
        coefficients.append(sp.expand(value) / sp.factorial(k))
        derivative = derivative.diff(v)
    return _compose(coefficients, delta)


def exponential(u: Series) -> Series:
    """exp(u): growing powers go into the scale, the constant into the coefficient, the rest into a series."""
    scale, constant, rest = ONE, S.Zero, []
    for c, s in u.terms:
        growth = s.growth()
        if growth < 0:
            rest.append((c, s))
        elif growth == 0:
            constant += c
        elif s == LOG:
            scale = scale.times(Scale(n=c))
        elif s.exponents:
            return _beyond_powers(u, c, s)
        elif sign(s.n) > 0 or sign(s.l - 1) > 0:
            scale = scale.times(Scale((((s.n, s.l), c),)))
        else:
            raise IncomparableScales
    if any(c.is_real is False for c, _ in u.terms):
        raise IncomparableScales
    if u.error is not None and u.error.growth() >= 0:
        if u.error.growth() > 0:
            raise IncomparableScales
        return Series((), scale, comparable=True)  # bounded above and below: the same size
    series = _compose([1 / sp.factorial(k) for k in range(_KEPT.get() + 1)], Series(tuple(rest), u.error))
    return Series(tuple((sp.exp(constant) * c, scale.times(s)) for c, s in series.terms),
                  None if series.error is None else scale.times(series.error))


def _beyond_powers(u: Series, c: Expr, s: Scale) -> Series:
    """exp(c s + ...) where s is an exponential: only what can be said of its size."""
    if u.terms[0] != (c, s) or (u.error is not None and compare(s, u.error) <= 0):
        raise IncomparableScales
    return Series((), Scale(((_BEYOND, Integer(sign(c))),)), comparable=True)


def logarithm(u: Series) -> Series:
    """log|u| = log c + sum a_kj t^k log(t)^j + n log t + log(1 + delta)."""
    if not u.terms:
        raise IncomparableScales
    c, s = u.terms[0]
    if s.l != 0 or any(k == _BEYOND for k, _ in s.exponents):
        raise IncomparableScales
    if c.is_real is not False and sign(c) < 0:
        c = -c
    delta = Series(tuple((d / u.terms[0][0], r.times(s, S.NegativeOne)) for d, r in u.terms[1:]),
                   None if u.error is None else u.error.times(s, S.NegativeOne))
    parts = [Series(((a, Scale(n=k, l=j)),)) for (k, j), a in s.exponents]
    parts += [Series(((s.n, LOG),))] if s.n != 0 else []
    parts += [Series(((sp.log(c), ONE),))] if c != 1 else []
    return add(*parts, _compose([S.Zero, *(S.NegativeOne ** (k + 1) / k for k in range(1, _KEPT.get() + 1))], delta))
