"""|u| <= sum_i C_i t^n_i exp(a_i t + b_i t^2), by recursion over the expression tree; |u| >= one such term likewise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import sympy as sp
from sympy import Expr, Symbol

from hermitex.symbolic.bounds.outward import (
    FARTHEST,
    ONE,
    ZERO,
    Unbounded,
    above,
    below,
    exp_above,
    log_above,
    power_above,
    shortened,
)
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation

_BOUNDED = (sp.cos, sp.sign, sp.sech, sp.Heaviside)


class GrowthTerm(NamedTuple):
    """C t^n exp(a t + b t^2)."""

    C: Fraction
    n: Fraction = ZERO
    a: Fraction = ZERO
    b: Fraction = ZERO


class Majorant(NamedTuple):
    """The sum of `terms` bounds the modulus for t >= start (start >= 1)."""

    terms: tuple[GrowthTerm, ...]
    start: Fraction


class MajorantRules:
    """Bounds for t >= start; `start` only grows while they are derived.

    monotone: the one symbol is t itself. Otherwise each symbol v is only known by |v| <= t.
    """

    def __init__(self, symbols: tuple[Symbol, ...], *, monotone: bool, start: Fraction = ONE) -> None:
        self.symbols, self.monotone, self.start = symbols, monotone, start

    def majorant(self, expr: Expr) -> Majorant:
        terms = _merged(self.upper(expr))
        return Majorant(terms, self.start)

    def constant(self, expr: Expr) -> bool:
        return not any(s in expr.free_symbols for s in self.symbols)

    # |u| <= sum of terms
    def upper(self, u: Expr) -> tuple[GrowthTerm, ...]:
        checkpoint("bounding the growth of an expression")
        if self.constant(u):
            return (GrowthTerm(above(abs(u))),)
        if u in self.symbols:
            return (GrowthTerm(ONE, ONE),)
        if isinstance(u, sp.Add):
            return _merged(sum((self.upper(a) for a in u.args), ()))
        if isinstance(u, sp.Mul):
            return self._upper_product(u)
        if isinstance(u, sp.exp) or (isinstance(u, sp.Pow) and u.base == sp.E):
            return (self._exp(self.signed(u.exp if isinstance(u, sp.Pow) else u.args[0])),)
        if isinstance(u, sp.Pow):
            return self._upper_power(u)
        if isinstance(u, sp.Piecewise):
            return _merged(sum((self.upper(branch) for branch, _ in u.args), ()))
        return self._upper_function(u)

    def _upper_product(self, u: Expr) -> tuple[GrowthTerm, ...]:
        exponents = [f.exp if isinstance(f, sp.Pow) else f.args[0] for f in u.args if _is_exp(f)]
        rest = [f for f in u.args if not _is_exp(f)]
        terms: tuple[GrowthTerm, ...] = (GrowthTerm(ONE),)
        if exponents:  # one exponential: what cancels in the exponent must cancel
            terms = (self._exp(self.signed(sp.expand(sp.Add(*exponents)))),)
        for factor in rest:
            terms = _merged(tuple(_times(s, t) for s in terms for t in self.upper(factor)))
        return terms

    def _upper_power(self, u: sp.Pow) -> tuple[GrowthTerm, ...]:
        if not u.exp.is_Rational:
            if self.constant(u.exp) or not (u.base.is_positive or self.constant(u.base)):
                raise Unbounded
            return (self._exp(self.signed(u.exp * sp.log(u.base))),)
        p = Fraction(int(u.exp.p), int(u.exp.q))
        if p < 0:
            return (_power(self.lower(u.base), p),)
        terms = self.upper(u.base)
        if p.denominator == 1 and p <= 40 and len(terms) ** int(p) <= 4000:
            result: tuple[GrowthTerm, ...] = (GrowthTerm(ONE),)
            for _ in range(int(p)):
                result = _merged(tuple(_times(s, t) for s in result for t in terms))
            return result
        return (_power(_dominant(terms), p),)

    def _upper_function(self, u: Expr) -> tuple[GrowthTerm, ...]:
        if isinstance(u, (sp.sin, sp.tanh, sp.erf, sp.atan)):
            return self._squashed(u.args[0], Fraction(8, 5) if isinstance(u, sp.atan) else ONE)
        if isinstance(u, _BOUNDED):
            return (GrowthTerm(ONE),)
        if isinstance(u, sp.erfc):
            return self._erfc(u.args[0])
        if isinstance(u, sp.Abs):
            return self.upper(u.args[0])
        if isinstance(u, (sp.Max, sp.Min)):
            return _merged(sum((self.upper(a) for a in u.args), ()))
        if isinstance(u, (sp.floor, sp.ceiling)):
            return _merged((*self.upper(u.args[0]), GrowthTerm(ONE)))
        if isinstance(u, (sp.sinh, sp.cosh)):
            return _merged((*self.upper(sp.exp(u.args[0])), *self.upper(sp.exp(-u.args[0]))))
        if isinstance(u, sp.log):
            return self._log(u.args[0])
        if isinstance(u, sp.asinh):  # |asinh v| <= |v|
            return self.upper(u.args[0])
        if isinstance(u, sp.coth):
            return (GrowthTerm(ONE + 1 / self._floor(u.args[0])),)
        if isinstance(u, Expectation) and u.independent and self.bounded(u.body):
            return (GrowthTerm(self.bounded(u.body)),)
        raise Unbounded

    def bounded(self, body: Expr) -> Fraction:
        """sup |body| over all values of all variables, for a body that is bounded by its shape; else `Unbounded`."""
        inner = MajorantRules(tuple(body.free_symbols), monotone=False)  # type: ignore[arg-type]
        terms = inner.upper(body)
        if inner.start > 1 or any(t[1:] != (0, 0, 0) for t in terms):
            raise Unbounded
        return sum((t.C for t in terms), ZERO)

    def _squashed(self, v: Expr, limit: Fraction) -> tuple[GrowthTerm, ...]:
        """|sin v|, |tanh v| <= min(1, |v|); |erf v| <= min(1, 9/8 |v|); |atan v| <= min(8/5, |v|)."""
        try:
            terms = self.upper(v)
        except Unbounded:
            return (GrowthTerm(limit),)
        if all(t.n < 0 and t.a <= 0 and t.b <= 0 for t in terms):
            return tuple(t._replace(C=t.C * Fraction(9, 8)) for t in terms)
        return (GrowthTerm(limit),)

    def _log(self, v: Expr) -> tuple[GrowthTerm, ...]:
        """|log v| <= max(log of the upper bound, -log of the lower bound), with log t <= 3 t^(1/8)."""
        high, low = _dominant(self.upper(v)), self.lower(v)
        C = max(log_above(high.C) if high.C else ZERO, log_above(1 / low.C), ZERO)
        n, a, b = (max(max(h, ZERO), max(-m, ZERO)) for h, m in zip(high[1:], low[1:], strict=True))
        found = (GrowthTerm(C), GrowthTerm(3 * n, Fraction(1, 8)), GrowthTerm(a, ONE), GrowthTerm(b, ONE * 2))
        return _merged(tuple(t for t in found if t.C))

    def _erfc(self, v: Expr) -> tuple[GrowthTerm, ...]:
        """erfc v <= 2, and <= exp(-l^2) where v >= l(t) = c + a t >= 0."""
        try:
            c, a, b = self.signed(-v)
        except Unbounded:
            return (GrowthTerm(Fraction(2)),)
        c, a = -c, -a
        if not self.monotone or b > 0 or a <= 0:
            return (GrowthTerm(Fraction(2)),)
        if c < 0:
            self.start = max(self.start, -c / a)
        return (GrowthTerm(shortened(exp_above(-c * c), 1), ZERO, -2 * c * a, -a * a),)

    # u <= c + a t + b t^2
    def signed(self, u: Expr) -> tuple[Fraction, Fraction, Fraction]:
        """(c, a, b) with Re u <= c + a t + b t^2 for t >= start."""
        c = a = b = ZERO
        u = sp.Add(*(e for term in sp.Add.make_args(u) for e in self._written_out(term)))
        powers: dict[Fraction, Fraction] = {}
        for term in sp.Add.make_args(u):
            coefficient, rest = term.as_independent(*self.symbols, as_Add=False)
            if coefficient.is_real is False and rest.is_real:  # of an exponent only the real part counts
                coefficient = sp.re(coefficient)
            k = self._exponent(rest) if self.monotone else None
            if k is not None:
                powers[k] = powers.get(k, ZERO) + above(coefficient)
                continue
            dc, da, db = self._signed_term(coefficient, rest)
            c, a, b = c + dc, a + da, b + db
        dc, da, db = self._signed_powers(powers)
        return c + dc, a + da, b + db

    def _written_out(self, term: Expr) -> tuple[Expr, ...]:
        """A term multiplied out; none for a term that is negative as a whole, as bounds of its parts, one by one, would grow."""
        parts = sp.Add.make_args(sp.expand(term))
        whole = len(parts) > 1 and term.is_nonpositive and not term.is_polynomial(*self.symbols)
        return () if whole else parts

    def _exponent(self, rest: Expr) -> Fraction | None:
        """k where rest = t^k."""
        (t,) = self.symbols
        base, k = rest.as_base_exp() if rest != 1 else (t, sp.Integer(0))
        return Fraction(int(k.p), int(k.q)) if base == t and k.is_Rational else None

    def _signed_powers(self, powers: dict[Fraction, Fraction]) -> tuple[Fraction, Fraction, Fraction]:
        """sum p_k t^k <= c + a t + b t^2; powers above 2 must have a negative leader, which is made to dominate."""
        high = {k: v for k, v in powers.items() if k > 2 and v}
        c = a = b = ZERO
        if high:
            top = max(high)
            if high[top] > 0:
                raise Unbounded
            rest = [(k, v) for k, v in high.items() if k != top and v > 0]
            while sum((v * power_above(self.start, k - top) for k, v in rest), ZERO) > -high[top] / 2:
                self._advance()
            b += high[top] / 2 * power_above(self.start, Fraction((top - 2).__floor__()))
        for k, v in powers.items():
            if k > 2 or not v:
                continue
            if k in (0, 1, 2):
                c, a, b = c + (v if k == 0 else 0), a + (v if k == 1 else 0), b + (v if k == 2 else 0)
            elif v > 0:  # t^k <= t^ceil(k) for k > 0 and t >= 1; t^k <= 1 for k < 0
                c, a, b = c + (v if k < 0 else 0), a + (v if 0 < k < 1 else 0), b + (v if k > 1 else 0)
            else:  # -t^k <= -t^floor(k)
                c, a = c + (v if 0 < k < 1 else 0), a + (v if k > 1 else 0)
        return c, a, b

    def _signed_term(self, coefficient: Expr, rest: Expr) -> tuple[Fraction, Fraction, Fraction]:
        if isinstance(rest, sp.log) and coefficient.is_positive:
            high = _dominant(self.upper(rest.args[0]))
            scale = above(coefficient)
            return (scale * log_above(high.C), scale * (high.a + Fraction(2, 5) * max(high.n, ZERO)), scale * high.b)
        if (coefficient * rest).is_nonpositive:
            return ZERO, ZERO, ZERO
        size = above(abs(coefficient))
        c = a = b = ZERO
        for t in self.upper(rest):
            if t.b < 0 or (t.b == 0 and t.a < 0):
                c += size * t.C * _peak(t)
                continue
            if t.a > 0 or t.b > 0 or t.n > 2:
                raise Unbounded
            c, a, b = (c + size * t.C * (t.n <= 0), a + size * t.C * (0 < t.n <= 1), b + size * t.C * (t.n > 1))
        return c, a, b

    def _exp(self, exponent: tuple[Fraction, Fraction, Fraction]) -> GrowthTerm:
        c, a, b = exponent
        return GrowthTerm(exp_above(c), ZERO, a, b)

    # |u| >= one term
    def lower(self, u: Expr) -> GrowthTerm:
        checkpoint("bounding an expression from below")
        if self.constant(u):
            C = below(abs(u))
            if C <= 0:
                raise Unbounded
            return GrowthTerm(C)
        if u in self.symbols and self.monotone:
            return GrowthTerm(ONE, ONE)
        if isinstance(u, sp.Mul):
            result = GrowthTerm(ONE)
            for factor in u.args:
                result = _times(result, self.lower(factor), -1)
            return result
        if _is_exp(u):
            c, a, b = self.signed(-(u.exp if isinstance(u, sp.Pow) else u.args[0]))
            return GrowthTerm(1 / exp_above(c), ZERO, -a, -b)
        if isinstance(u, sp.Pow) and u.exp.is_Rational:
            p = Fraction(int(u.exp.p), int(u.exp.q))
            return _power(self.lower(u.base) if p > 0 else _dominant(self.upper(u.base)), p, -1)
        if isinstance(u, sp.Add):
            return self._lower_sum(u)
        if isinstance(u, sp.cosh):
            return GrowthTerm(ONE)
        if isinstance(u, sp.Abs):
            return self.lower(u.args[0])
        if isinstance(u, (sp.tanh, sp.erf)):  # both are >= v/(1 + v) for v >= 0
            v = self._floor(u.args[0])
            return GrowthTerm(v / (1 + v))
        if isinstance(u, sp.log):
            low = self.lower(u.args[0])
            if min(low[1:]) < 0:
                raise Unbounded
            value = low.C / power_above(self.start, -low.n)  # increasing in t, so what holds at `start` holds beyond
            while value <= 1 and low.n > 0:
                self._advance()
                value = low.C / power_above(self.start, -low.n)
            if value <= 1:
                raise Unbounded
            return GrowthTerm(1 - 1 / value)  # log v >= 1 - 1/v
        raise Unbounded

    def _floor(self, v: Expr) -> Fraction:
        """A positive constant below |v|."""
        low = self.lower(v)
        if low.n < 0 or low.a < 0 or low.b < 0:
            raise Unbounded
        return low.C

    def _lower_sum(self, u: sp.Add) -> GrowthTerm:
        if not all(arg.is_nonnegative for arg in u.args):  # a square of a difference stays one
            u = sp.expand(u)
        if not isinstance(u, sp.Add):
            return self.lower(u)
        if all(arg.is_nonnegative for arg in u.args):
            found = self._lowers(u.args)  # exp(10^6 (t - 2)) is not counted on, next to 1
            return max([t for t in found if t.C * 2**FARTHEST > 1] or found, key=lambda t: (t.b, t.a, t.n, t.C))
        if not self.monotone:
            raise Unbounded
        for leader in sorted(self._leaders(u.args), key=lambda pair: pair[1][:0:-1], reverse=True):
            arg, low = leader
            rest = _merged(sum((self.upper(b) for b in u.args if b is not arg), ()))
            ratios = [GrowthTerm(t.C / low.C, t.n - low.n, t.a - low.a, t.b - low.b) for t in rest]
            if all((t.b, t.a, t.n) < (ZERO, ZERO, ZERO) for t in ratios):
                while not self._small(ratios):
                    self._advance()
                return low._replace(C=low.C / 2)
        return self._lower_constant(u)

    def _lower_constant(self, u: Expr) -> GrowthTerm:
        """|u| >= C > 0 from the signed bound of u or of -u: 2 + cos t >= 1."""
        for v in (-u, u):
            try:
                c, a, b = self.signed(v)
            except Unbounded:
                continue
            if c < 0 and a <= 0 and b <= 0:
                return GrowthTerm(-c)
        raise Unbounded

    def _leaders(self, args: Sequence[Expr]) -> list[tuple[Expr, GrowthTerm]]:
        found = []
        for arg in args:
            try:
                found.append((arg, self.lower(arg)))
            except Unbounded:
                continue
        return found

    def _lowers(self, args: Sequence[Expr]) -> list[GrowthTerm]:
        found = [term for _, term in self._leaders(args)]
        if not found:
            raise Unbounded
        return found

    def _small(self, ratios: Sequence[GrowthTerm]) -> bool:
        """At `start` the ratios sum to at most 1/2 and each decreases from there on."""
        t = self.start
        for r in ratios:
            if r.n + r.a * t + 2 * r.b * t * t > 0 or (r.b < 0 and r.a + 4 * r.b * t > 0):
                return False
        values = (r.C * power_above(t, r.n) * exp_above(r.a * t + r.b * t * t) for r in ratios)
        return sum(values, ZERO) <= Fraction(1, 2)

    def _advance(self) -> None:
        checkpoint("looking for where a leading term takes over")
        self.start = self.start * Fraction(5, 4)
        if self.start > 10**9:
            raise Unbounded


def _is_exp(u: Expr) -> bool:
    return isinstance(u, sp.exp) or (isinstance(u, sp.Pow) and u.base == sp.E)


def _times(s: GrowthTerm, t: GrowthTerm, direction: int = 1) -> GrowthTerm:
    return GrowthTerm(shortened(s.C * t.C, direction), s.n + t.n, s.a + t.a, s.b + t.b)


def _peak(t: GrowthTerm) -> Fraction:
    """A bound on a decaying t^n exp(a t + b t^2), t >= 1: max t^n exp(-c t^p) = (n/(c p e))^(n/p), e > 27/10."""
    if t.b == 0:
        c, p, rest = -t.a, 1, ONE
    elif t.a <= 0:
        c, p, rest = -t.b, 2, ONE
    elif t.a**2 > -400 * t.b:
        raise Unbounded
    else:  # half of b bounds exp(a t), half bounds t^n
        c, p, rest = -t.b / 2, 2, exp_above(-t.a**2 / (2 * t.b))
    return rest * (power_above(t.n / (c * p * Fraction(27, 10)), t.n / p) if t.n > 0 else ONE)


def _power(t: GrowthTerm, p: Fraction, direction: int = 1) -> GrowthTerm:
    """t^p, its constant rounded up or down."""
    if t.C == 0:
        if p < 0:
            raise Unbounded
        return t
    C = power_above(t.C, p) if direction > 0 else 1 / power_above(t.C, -p)
    return GrowthTerm(C, t.n * p, t.a * p, t.b * p)


def _dominant(terms: Sequence[GrowthTerm]) -> GrowthTerm:
    """One term above the sum, for t >= 1."""
    return GrowthTerm(sum((t.C for t in terms), ZERO), max(t.n for t in terms), max(t.a for t in terms),
                max(t.b for t in terms))


def _merged(terms: Sequence[GrowthTerm]) -> tuple[GrowthTerm, ...]:
    """Terms of equal shape added."""
    total: dict[tuple[Fraction, Fraction, Fraction], Fraction] = {}
    for t in terms:
        total[t[1:]] = total.get(t[1:], ZERO) + t.C
    return tuple(GrowthTerm(shortened(C, 1), *shape) for shape, C in total.items() if C) or (GrowthTerm(ZERO),)
