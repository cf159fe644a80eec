"""f(t) = c_1 s_1(t) + c_2 s_2(t) + ... + O(s), s = t^n log(t)^l exp(sum a_k t^k), t -> oo: exact leading behaviour.

Coefficients and exponents are exact, so that a borderline (exp(z^2/2)/(1 + z^4) is integrable, exp(z^2/2) is not) is
decided and not guessed. What cannot be compared exactly raises `Undecided`.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import NamedTuple

import sympy as sp
from sympy import Expr, Integer, S, Symbol

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation

KEPT = 6  # terms of an expansion that are kept


class Undecided(Exception):
    """The exact comparison that the answer hangs on could not be made."""


class Scale(NamedTuple):
    """t^n log(t)^l exp(sum a_k t^k); `exponents` are pairs (k, a_k), k > 0 falling; k = oo: beyond every power."""

    exponents: tuple[tuple[Expr, Expr], ...] = ()
    n: Expr = S.Zero
    l: Expr = S.Zero

    def times(self, other: Scale, p: Expr = S.One) -> Scale:
        """self * other^p."""
        powers = dict(self.exponents)
        for k, a in other.exponents:
            if k is S.Infinity and k in powers:
                raise Undecided
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
    """The sign of an exact real number, or of an expression in symbols of known sign; raises `Undecided`."""
    value = sp.sympify(value)
    if value.is_zero:
        return 0
    if value.is_positive:
        return 1
    if value.is_negative:
        return -1
    value = sp.expand(value)
    if value.is_zero:
        return 0
    if value.free_symbols:
        if value.is_positive or value.is_negative:
            return 1 if value.is_positive else -1
        raise Undecided
    number = value.evalf(40, maxn=200)
    if not number.is_real:
        raise Undecided
    if abs(number) > sp.Float(10) ** -30:
        return 1 if number > 0 else -1
    if value.is_algebraic and sp.count_ops(value) < 60:
        v = sp.Dummy("v")
        if sp.minimal_polynomial(value, v) == v:
            return 0
    raise Undecided


def compare(a: Scale, b: Scale) -> int:
    """1 if a dominates b, 0 if they are the same scale."""
    return a.times(b, S.NegativeOne).growth()


def expand_at_infinity(expr: Expr, t: Symbol) -> Series:
    """The leading behaviour of expr as t -> oo.

    Examples
    --------
    >>> from sympy import Symbol, sqrt, exp
    >>> t = Symbol("t", positive=True)
    >>> expand_at_infinity(sqrt(t**4 + t**2) - t**2, t).terms[0]
    (1/2, Scale(exponents=(), n=0, l=0))
    """
    return _Expander(t).series(expr)


class _Expander:
    def __init__(self, t: Symbol) -> None:
        self.t = t
        self.done: dict[Expr, Series] = {}

    def series(self, u: Expr) -> Series:
        if u not in self.done:
            checkpoint("expanding at infinity")
            self.done[u] = self._series(u)
        return self.done[u]

    def _series(self, u: Expr) -> Series:
        if self.t not in u.free_symbols:
            if u.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
                raise Undecided
            return Series(((u, ONE),)) if u != 0 else Series(())
        if u == self.t:
            return Series(((S.One, Scale(n=S.One)),))
        if isinstance(u, sp.Add):
            return add(*(self.series(a) for a in u.args))
        if isinstance(u, sp.Mul):
            return self._product(u)
        if isinstance(u, sp.exp):
            return exponential(self.series(u.args[0]))
        if isinstance(u, sp.Pow):
            if self.t in u.exp.free_symbols:
                return exponential(multiply(self.series(u.exp), logarithm(self.series(u.base))))
            return power(self.series(u.base), u.exp)
        if isinstance(u, sp.Piecewise):
            return self._piecewise(u)
        return self._function(u)

    def _product(self, u: sp.Mul) -> Series:
        """Exponentials are merged first: their growth may cancel."""
        exponents = [f.args[0] for f in u.args if isinstance(f, sp.exp)]
        factors = [self.series(f) for f in u.args if not isinstance(f, sp.exp)]
        if exponents:
            factors.append(exponential(self.series(sp.expand(sp.Add(*exponents)))))
        result = factors[0]
        for factor in factors[1:]:
            result = multiply(result, factor)
        return result

    def _piecewise(self, u: sp.Piecewise) -> Series:
        from hermitex.symbolic.program import margin

        for branch, condition in u.args:
            edge = sp.sympify(margin(condition))
            holds = _leading_sign(self.series(edge)) if self.t in edge.free_symbols else sign(edge)
            if holds > 0:
                return self.series(branch)
        raise Undecided

    def _function(self, u: Expr) -> Series:
        if isinstance(u, (sp.Max, sp.Min)):
            return self._extremum(u)
        if isinstance(u, Expectation) or len(u.args) != 1:
            raise Undecided
        arg = self.series(u.args[0])
        if isinstance(u, sp.Abs):
            if arg.terms and arg.terms[0][0].is_real:
                return scaled(arg, Integer(_leading_sign(arg)))
            return arg
        if isinstance(u, (sp.sign, sp.Heaviside)) and arg.terms:
            value = _leading_sign(arg)
            return Series(((Integer(value), ONE),)) if isinstance(u, sp.sign) else (
                Series(((S.One, ONE),)) if value > 0 else Series(()))
        if isinstance(u, sp.log):
            return logarithm(arg)
        if isinstance(u, (sp.tan, sp.cot, sp.sec, sp.csc)):
            return self._circular(u)
        if isinstance(u, (sp.sinh, sp.cosh, sp.coth, sp.sech, sp.csch, sp.asinh)):
            return self.series(u.rewrite(sp.log if isinstance(u, sp.asinh) else sp.exp))
        if isinstance(u, (sp.floor, sp.ceiling)):
            if arg.top is not None and arg.top.growth() > 0:
                return add(arg, Series((), ONE))
            return self._constant_floor(u, arg)
        return self._analytic(u, arg)

    def _circular(self, u: Expr) -> Series:
        above, below = {sp.tan: (sp.sin, sp.cos), sp.cot: (sp.cos, sp.sin), sp.sec: (None, sp.cos),
                        sp.csc: (None, sp.sin)}[u.func]
        inverse = power(self.series(below(u.args[0])), S.NegativeOne)
        return multiply(self.series(above(u.args[0])), inverse) if above else inverse

    def _constant_floor(self, u: Expr, arg: Series) -> Series:
        """floor near a finite limit: that of the limit, or of just beside it."""
        limit, rest = _limit(arg)
        if limit.is_integer and rest.terms:
            below = _leading_sign(rest) < 0
            value = limit - 1 if below else limit
            return Series(((value if isinstance(u, sp.floor) else value + 1, ONE),))
        if limit.is_integer is False:
            return Series(((u.func(limit), ONE),))
        raise Undecided

    def _analytic(self, u: Expr, arg: Series) -> Series:
        if arg.top is not None and arg.top.growth() > 0:
            return self._at_infinity(u, arg)
        if arg.top is not None and not arg.terms and arg.top.growth() == 0:
            if isinstance(u, (sp.sin, sp.cos, sp.tanh, sp.erf, sp.atan, sp.sign, sp.Heaviside)):
                return Series((), ONE)
            raise Undecided
        limit, rest = _limit(arg)
        return taylor(u.func, limit, rest)

    def _at_infinity(self, u: Expr, arg: Series) -> Series:
        if isinstance(u, (sp.sin, sp.cos)):
            return Series((), ONE, comparable=bool(arg.terms))
        if not arg.terms:
            if isinstance(u, (sp.tanh, sp.erf, sp.atan, sp.sign, sp.Heaviside, sp.erfc)):
                return Series((), ONE)
            raise Undecided
        side, v = _leading_sign(arg), u.args[0]
        if isinstance(u, sp.tanh):
            e = exponential(scaled(arg, Integer(-2 * side)))
            one = Series(((S.One, ONE),))
            squashed = multiply(add(one, scaled(e, S.NegativeOne)), power(add(one, e), S.NegativeOne))
            return scaled(squashed, Integer(side))
        if isinstance(u, (sp.erf, sp.erfc)):
            tail = self._erfc(scaled(arg, Integer(side)), sp.expand(-(v**2)))
            if isinstance(u, sp.erfc) and side > 0:
                return tail
            erf = scaled(add(Series(((S.One, ONE),)), scaled(tail, S.NegativeOne)), Integer(side))
            return erf if isinstance(u, sp.erf) else add(Series(((S.One, ONE),)), scaled(erf, S.NegativeOne))
        if isinstance(u, sp.atan):
            inverse = power(arg, S.NegativeOne)
            return add(Series(((side * sp.pi / 2, ONE),)), scaled(taylor(sp.atan, S.Zero, inverse), S.NegativeOne))
        raise Undecided

    def _erfc(self, v: Series, minus_square: Expr) -> Series:
        """exp(-v^2)/(v sqrt(pi)) (1 - 1/(2 v^2) + 3/(4 v^4) + O(v^-6))."""
        inverse = power(multiply(v, v), S.NegativeOne)
        tail = add(Series(((S.One, ONE),)), scaled(inverse, S.NegativeOne / 2),
                   scaled(multiply(inverse, inverse), sp.Rational(3, 4)),
                   Series((), None if inverse.top is None else ONE.times(inverse.top, Integer(3))))
        front = multiply(exponential(self.series(minus_square)), power(v, S.NegativeOne))
        return scaled(multiply(front, tail), 1 / sp.sqrt(sp.pi))

    def _extremum(self, u: Expr) -> Series:
        best, *rest = u.args
        for other in rest:
            gap = self.series(best - other)
            if gap.terms:
                better = _leading_sign(gap) * (1 if isinstance(u, sp.Max) else -1)
                best = best if better > 0 else other
            elif gap.top is not None:
                tops = [s.top for s in map(self.series, u.args) if s.top is not None]
                return Series((), max(tops, key=cmp_to_key(compare)))
        return self.series(best)


def _leading_sign(series: Series) -> int:
    if not series.terms:
        raise Undecided
    return sign(series.terms[0][0])


def _limit(series: Series) -> tuple[Expr, Series]:
    """(limit, what remains and tends to zero)."""
    if series.error is not None and series.error.growth() >= 0:
        raise Undecided
    if series.terms and series.terms[0][1].growth() == 0:
        return series.terms[0][0], Series(series.terms[1:], series.error)
    return S.Zero, series


def scaled(a: Series, factor: Expr) -> Series:
    """factor * a."""
    return Series(tuple((sp.expand(c * factor), s) for c, s in a.terms), a.error, a.comparable)


def add(*parts: Series) -> Series:
    """The sum: like scales are added, exact zeros dropped, and what drowns in the error with them."""
    total: dict[Scale, Expr] = {}
    for part in parts:
        for c, s in part.terms:
            total[s] = sp.expand(total.get(s, S.Zero) + c)
    terms = [(c, s) for s, c in total.items() if c != 0 and not _vanishes(c)]
    terms.sort(key=cmp_to_key(lambda x, y: compare(y[1], x[1])))
    noisy = [p for p in parts if p.error is not None]
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
    if len(terms) > KEPT:
        terms, error, comparable = terms[:KEPT], terms[KEPT][1], False
    return Series(tuple(terms), error, comparable)


def _vanishes(c: Expr) -> bool:
    """A symbol without a known sign counts as any number but zero."""
    try:
        return sign(c) == 0
    except Undecided:
        if c.free_symbols or c.evalf(30).is_real is False:
            return False
        raise


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
            raise Undecided
        return Series((), ONE.times(u.top, p), u.comparable)
    c, s = u.terms[0]
    delta = Series(tuple((d / c, r.times(s, S.NegativeOne)) for d, r in u.terms[1:]),
                   None if u.error is None else u.error.times(s, S.NegativeOne))
    whole = bool(p.is_Integer and 0 < p <= KEPT)
    binomials = [sp.ff(p, k) / sp.factorial(k) for k in range((int(p) if whole else KEPT) + 1)]
    expanded = _compose(binomials, delta, exact=whole)
    return Series(tuple((c**p * d, ONE.times(s, p).times(r)) for d, r in expanded.terms),
                  None if expanded.error is None else expanded.error.times(ONE.times(s, p)))


def _compose(coefficients: list[Expr], delta: Series, *, exact: bool = False) -> Series:
    """sum_k coefficients[k] delta^k + O(delta^K), delta -> 0."""
    if delta.top is not None and delta.top.growth() >= 0:
        raise Undecided
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
            raise Undecided
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
        elif not s.exponents and s.l == 0:
            scale = scale.times(Scale(((s.n, c),)))
        else:
            return _beyond_powers(u, c, s)
    if any(c.is_real is False for c, _ in u.terms):
        raise Undecided
    if u.error is not None and u.error.growth() >= 0:
        if u.error.growth() > 0:
            raise Undecided
        return Series((), scale, comparable=True)  # bounded above and below: the same size
    series = _compose([1 / sp.factorial(k) for k in range(KEPT + 1)], Series(tuple(rest), u.error))
    return Series(tuple((sp.exp(constant) * c, scale.times(s)) for c, s in series.terms),
                  None if series.error is None else scale.times(series.error))


def _beyond_powers(u: Series, c: Expr, s: Scale) -> Series:
    """exp(c s + ...) where s is no power: only what can be said of its size."""
    if u.terms[0] != (c, s) or (u.error is not None and compare(s, u.error) <= 0):
        raise Undecided
    if s.exponents:
        return Series((), Scale(((S.Infinity, Integer(sign(c))),)), comparable=True)
    if sign(c) < 0:
        return Series((), Scale(((s.n, S.NegativeOne),))) if sign(s.l) > 0 else Series((), ONE)
    if sign(s.n - 2) >= 0 and sign(s.l) > 0:
        return Series((), Scale(((S.Infinity, S.One),)), comparable=True)
    return Series((), Scale(((s.n + sp.Rational(1, 8), S.One),)))  # an upper bound: log(t)^l < t^(1/8) far out


def logarithm(u: Series) -> Series:
    """log|u| = log c + sum a_k t^k + n log t + log(1 + delta)."""
    if not u.terms:
        raise Undecided
    c, s = u.terms[0]
    if s.l != 0 or any(k is S.Infinity for k, _ in s.exponents):
        raise Undecided
    if c.is_real is not False and sign(c) < 0:
        c = -c
    delta = Series(tuple((d / u.terms[0][0], r.times(s, S.NegativeOne)) for d, r in u.terms[1:]),
                   None if u.error is None else u.error.times(s, S.NegativeOne))
    parts = [Series(((a, Scale(n=k)),)) for k, a in s.exponents]
    parts += [Series(((s.n, LOG),))] if s.n != 0 else []
    parts += [Series(((sp.log(c), ONE),))] if c != 1 else []
    return add(*parts, _compose([S.Zero, *(S.NegativeOne ** (k + 1) / k for k in range(1, KEPT + 1))], delta))
