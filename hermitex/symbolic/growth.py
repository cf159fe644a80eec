"""|g(x)| <= sum_i C_i t^n_i exp(a_i t + b_i t^2) for t = |x| >= t0: growth bounds read off the expression tree.

Every rule is an inequality with rational constants rounded outwards, so what is derived here may stand in a proof:
the tail of a Gaussian integral beyond L, the piece of it next to a singular point. A bound need not be sharp, only
true; the exact decisions of integrability, boundaries included, are in `asymptotics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import sympy as sp
from sympy import Dummy, Expr, Symbol

from hermitex.errors import NoClosedForm
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation

ZERO, ONE = Fraction(0), Fraction(1)
_BOUNDED = (sp.cos, sp.sign, sp.sech, sp.Heaviside)


class Term(NamedTuple):
    """C t^n exp(a t + b t^2)."""

    C: Fraction
    n: Fraction = ZERO
    a: Fraction = ZERO
    b: Fraction = ZERO


class Majorant(NamedTuple):
    """The sum of `terms` bounds the modulus for t >= start (start >= 1)."""

    terms: tuple[Term, ...]
    start: Fraction


class _Unbounded(Exception):
    """No rule bounds this expression."""


def majorant(expr: Expr, x: Symbol | Sequence[Symbol], side: int = 1) -> Majorant | None:
    """A rigorous bound |expr| <= sum_i C_i t^n_i exp(a_i t + b_i t^2), or None where no rule gives one.

    Parameters
    ----------
    expr : expression in x; other free symbols may only stand where they cannot matter (inside tanh, say)
    x : one variable: t = |x| on the given side. Several: t = (x_1^2 + ... + x_r^2)^(1/2), `side` has no meaning.
    side : 1 for x -> oo, -1 for x -> -oo

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from sympy import exp, tanh
    >>> majorant(z*tanh(z) + exp(z/2), z).terms
    (Term(C=Fraction(1, 1), n=Fraction(1, 1), a=Fraction(0, 1), b=Fraction(0, 1)), \
Term(C=Fraction(1, 1), n=Fraction(0, 1), a=Fraction(1, 2), b=Fraction(0, 1)))
    """
    try:
        if isinstance(x, Symbol):
            t = Dummy("t", positive=True)
            far, start = _resolved(expr, x, side)
            return _Bounds((t,), monotone=True, start=start).majorant(far.xreplace({x: side * t}))
        return _Bounds(tuple(x), monotone=False).majorant(expr)
    except _Unbounded:
        return None


def integrable(expr: Expr, x: Symbol | Sequence[Symbol], power: int | Fraction = 1) -> bool | None:
    """Is E|expr|^power finite? True or False where it is decided, boundaries included; None where it is not.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from sympy import Abs, Rational, exp
    >>> integrable(exp(z**2/2)/(1 + z**4), z), integrable(exp(z**2/4), z, power=2)
    (True, False)
    >>> integrable(Abs(z)**Rational(-1, 2), z), integrable(Abs(z)**Rational(-1, 2), z, power=2)
    (True, False)
    """
    from hermitex.symbolic.integrability import decide_integrable

    return decide_integrable(expr, x, power)


def local_majorant(expr: Expr, x: Symbol, point: Expr, side: int) -> Majorant | None:
    """The same bound in t = 1/|x - point|, t -> oo: how fast expr may blow up next to `point`, on one side.

    >>> from hermitex.symbols import z
    >>> from sympy import Abs, log
    >>> local_majorant(log(Abs(z)), z, 0, 1).terms[0].n < 1
    True
    """
    t = Dummy("t", positive=True)
    try:
        return _Bounds((t,), monotone=True).majorant(expr.xreplace({x: point + side / t}))
    except _Unbounded:
        return None


def tail_bound(expr: Expr, x: Symbol | Sequence[Symbol], L: Fraction | int, *, weight: int = 0) -> Fraction | None:
    """A bound on int_{|x| > L} |x|^weight |expr(x)| phi(x) dx, derived from `majorant`; None where there is none.

    With h(t) = C t^n exp(a t - beta t^2)/sqrt(2 pi) decreasing at the logarithmic rate s(t) = 2 beta t - a - n/t, which
    grows with t, int_L^oo h <= h(L)/s(L). Several variables: the same on the radial density.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> tail_bound(z**2, z, 10) < Fraction(1, 10**20)
    True
    """
    L = Fraction(L)
    if isinstance(x, Symbol):
        sides: list[Majorant | None] = [majorant(expr, x, 1), majorant(expr, x, -1)]
        dimension = 1
    else:
        sides, dimension = [majorant(expr, x)], len(x)
    total = ZERO
    for bound in sides:
        one = None if bound is None else majorant_tail(bound, L, weight=weight, dimension=dimension)
        if one is None:
            return None
        total += one
    return total


def majorant_tail(bound: Majorant, L: Fraction, *, weight: int = 0, dimension: int = 1) -> Fraction | None:
    """int_{t > L} t^weight bound(t) dmu(t): one side for dimension 1, the radial law otherwise."""
    if bound.start > L or L < 1:
        return None
    total = ZERO
    for term in bound.terms:
        piece = _term_tail(term._replace(n=term.n + weight + dimension - 1), L)
        if piece is None:
            return None
        total += piece
    return total * _radial_constant(dimension)


def _term_tail(term: Term, L: Fraction) -> Fraction | None:
    """int_L^oo C t^n exp(a t + (b - 1/2) t^2) dt, bounded above."""
    beta = Fraction(1, 2) - term.b
    if beta < 0:
        return None
    if beta == 0 and term.a == 0:
        return term.C * power_above(L, term.n + 1) / -(term.n + 1) if term.n < -1 else None
    n = max(term.n, ZERO)  # t^n <= L^n on the tail where n < 0: the rate below is then that of the exponential
    rate = 2 * beta * L - term.a - n / L
    if rate <= 0:
        return None
    return term.C * power_above(L, term.n) * exp_above(term.a * L - beta * L * L) / rate


def _radial_constant(dimension: int) -> Fraction:
    """1/sqrt(2 pi) for one side of the line; 2^(1 - r/2)/Gamma(r/2) for the radius of r normals; rounded up."""
    value = (1 / sp.sqrt(2 * sp.pi) if dimension == 1
             else sp.Integer(2) ** (1 - sp.Rational(dimension, 2)) / sp.gamma(sp.Rational(dimension, 2)))
    return above(value)


# -- rational numbers rounded outwards ---------------------------------------------------------------------------------
_SLACK = Fraction(1, 2**50)


def above(value: Expr) -> Fraction:
    """A rational >= the constant `value`."""
    return _outwards(value, 1)


def below(value: Expr) -> Fraction:
    """A rational <= the constant `value`."""
    return _outwards(value, -1)


def _outwards(value: Expr, direction: int) -> Fraction:
    value = sp.sympify(value)
    if value.is_Rational:
        return _short(Fraction(int(value.p), int(value.q)), direction)
    if value.free_symbols:
        raise _Unbounded
    number = value.evalf(25)
    if not number.is_Float or not number.is_finite:
        raise _Unbounded
    exact = sp.Rational(number)  # evalf keeps 25 digits; 2^-50 is far beyond its last one
    found = Fraction(int(exact.p), int(exact.q))
    return _short(found + direction * _SLACK * (abs(found) + (0 if found else ONE)), direction)


def _short(value: Fraction, direction: int) -> Fraction:
    """Round outwards to some 80 bits, so that products of bounds do not grow without end."""
    size = max(value.numerator.bit_length(), value.denominator.bit_length())
    if size <= 160:
        return value
    shift = 80 + value.denominator.bit_length() - value.numerator.bit_length()
    scaled = value * (Fraction(2) ** shift)
    whole = -(-scaled.numerator // scaled.denominator) if direction > 0 else scaled.numerator // scaled.denominator
    return Fraction(whole) / (Fraction(2) ** shift)


def exp_above(x: Fraction) -> Fraction:
    """A rational >= exp(x)."""
    import mpmath

    with mpmath.workprec(120 + abs(int(x)).bit_length()):
        value = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        man, exponent = value.man_exp
    return _short(Fraction(int(man)) * Fraction(2) ** int(exponent) * (1 + _SLACK), 1)


def power_above(base: Fraction, n: Fraction) -> Fraction:
    """A rational >= base^n for base > 0."""
    if n.denominator == 1 and abs(n) <= 64:
        return _short(base ** int(n), 1)
    return above(sp.Rational(base.numerator, base.denominator) ** sp.Rational(n.numerator, n.denominator))


def log_above(x: Fraction) -> Fraction:
    """A rational >= log x for x > 0."""
    return above(sp.log(sp.Rational(x.numerator, x.denominator)))


# -- switches ----------------------------------------------------------------------------------------------------------
def _resolved(expr: Expr, x: Symbol, side: int) -> tuple[Expr, Fraction]:
    """`expr` with each Piecewise replaced by the branch that holds far out on this side, and from where it holds."""
    start, swap = ONE, {}
    for piecewise in expr.atoms(sp.Piecewise):
        found = _far_branch(piecewise, x, side)
        if found is not None:
            swap[piecewise], start = found[0], max(start, found[1])
    return expr.xreplace(swap), start


def _far_branch(piecewise: sp.Piecewise, x: Symbol, side: int) -> tuple[Expr, Fraction] | None:
    """The last piece on the side, and a rational beyond its exact end point."""
    from hermitex.errors import AssumptionNeeded
    from hermitex.symbolic.pieces import pieces

    try:
        found = pieces(piecewise, x)
        last = found[-1] if side > 0 else found[0]
        end = last.lo if side > 0 else last.hi
        return last.expr, ONE if end.is_infinite else above(abs(end))
    except (NoClosedForm, AssumptionNeeded, _Unbounded):
        return None


# -- the recursion -----------------------------------------------------------------------------------------------------
class _Bounds:
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
    def upper(self, u: Expr) -> tuple[Term, ...]:
        checkpoint("bounding the growth of an expression")
        if self.constant(u):
            return (Term(above(abs(u))),)
        if u in self.symbols:
            return (Term(ONE, ONE),)
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

    def _upper_product(self, u: Expr) -> tuple[Term, ...]:
        exponents = [f.exp if isinstance(f, sp.Pow) else f.args[0] for f in u.args if _is_exp(f)]
        rest = [f for f in u.args if not _is_exp(f)]
        terms: tuple[Term, ...] = (Term(ONE),)
        if exponents:  # one exponential: what cancels in the exponent must cancel
            terms = (self._exp(self.signed(sp.expand(sp.Add(*exponents)))),)
        for factor in rest:
            terms = _merged(tuple(_times(s, t) for s in terms for t in self.upper(factor)))
        return terms

    def _upper_power(self, u: sp.Pow) -> tuple[Term, ...]:
        if not u.exp.is_Rational:
            if self.constant(u.exp) or not (u.base.is_positive or self.constant(u.base)):
                raise _Unbounded
            return (self._exp(self.signed(u.exp * sp.log(u.base))),)
        p = Fraction(int(u.exp.p), int(u.exp.q))
        if p < 0:
            return (_power(self.lower(u.base), p),)
        terms = self.upper(u.base)
        if p.denominator == 1 and p <= 40 and len(terms) ** int(p) <= 4000:
            result: tuple[Term, ...] = (Term(ONE),)
            for _ in range(int(p)):
                result = _merged(tuple(_times(s, t) for s in result for t in terms))
            return result
        return (_power(_dominant(terms), p),)

    def _upper_function(self, u: Expr) -> tuple[Term, ...]:
        if isinstance(u, (sp.sin, sp.tanh, sp.erf, sp.atan)):
            return self._squashed(u.args[0], Fraction(8, 5) if isinstance(u, sp.atan) else ONE)
        if isinstance(u, _BOUNDED):
            return (Term(ONE),)
        if isinstance(u, sp.erfc):
            return self._erfc(u.args[0])
        if isinstance(u, sp.Abs):
            return self.upper(u.args[0])
        if isinstance(u, (sp.Max, sp.Min)):
            return _merged(sum((self.upper(a) for a in u.args), ()))
        if isinstance(u, (sp.floor, sp.ceiling)):
            return _merged((*self.upper(u.args[0]), Term(ONE)))
        if isinstance(u, (sp.sinh, sp.cosh)):
            return _merged((*self.upper(sp.exp(u.args[0])), *self.upper(sp.exp(-u.args[0]))))
        if isinstance(u, sp.log):
            return self._log(u.args[0])
        if isinstance(u, sp.asinh):  # |asinh v| <= |v|
            return self.upper(u.args[0])
        if isinstance(u, sp.coth):
            return (Term(ONE + 1 / self._floor(u.args[0])),)
        if isinstance(u, Expectation) and u.independent and self.bounded(u.body):
            return (Term(self.bounded(u.body)),)
        raise _Unbounded

    def bounded(self, body: Expr) -> Fraction:
        """sup |body| over all values of all variables, for a body that is bounded by its shape; else `_Unbounded`."""
        inner = _Bounds(tuple(body.free_symbols), monotone=False)  # type: ignore[arg-type]
        terms = inner.upper(body)
        if inner.start > 1 or any(t[1:] != (0, 0, 0) for t in terms):
            raise _Unbounded
        return sum((t.C for t in terms), ZERO)

    def _squashed(self, v: Expr, limit: Fraction) -> tuple[Term, ...]:
        """|sin v|, |tanh v| <= min(1, |v|); |erf v| <= min(1, 9/8 |v|); |atan v| <= min(8/5, |v|)."""
        try:
            terms = self.upper(v)
        except _Unbounded:
            return (Term(limit),)
        if all(t.n < 0 and t.a <= 0 and t.b <= 0 for t in terms):
            return tuple(t._replace(C=t.C * Fraction(9, 8)) for t in terms)
        return (Term(limit),)

    def _log(self, v: Expr) -> tuple[Term, ...]:
        """|log v| <= max(log of the upper bound, -log of the lower bound), with log t <= 3 t^(1/8)."""
        high, low = _dominant(self.upper(v)), self.lower(v)
        C = max(log_above(high.C) if high.C else ZERO, log_above(1 / low.C), ZERO)
        n, a, b = (max(max(h, ZERO), max(-m, ZERO)) for h, m in zip(high[1:], low[1:], strict=True))
        return _merged(tuple(t for t in (Term(C), Term(3 * n, Fraction(1, 8)), Term(a, ONE), Term(b, ONE * 2)) if t.C))

    def _erfc(self, v: Expr) -> tuple[Term, ...]:
        """erfc v <= 2, and <= exp(-l^2) where v >= l(t) = c + a t >= 0."""
        try:
            c, a, b = self.signed(-v)
        except _Unbounded:
            return (Term(Fraction(2)),)
        c, a = -c, -a
        if not self.monotone or b > 0 or a <= 0:
            return (Term(Fraction(2)),)
        if c < 0:
            self.start = max(self.start, -c / a)
        return (Term(_short(exp_above(-c * c), 1), ZERO, -2 * c * a, -a * a),)

    # u <= c + a t + b t^2
    def signed(self, u: Expr) -> tuple[Fraction, Fraction, Fraction]:
        """(c, a, b) with u <= c + a t + b t^2 for t >= start."""
        c = a = b = ZERO
        u = sp.expand(u)
        powers: dict[Fraction, Fraction] = {}
        for term in sp.Add.make_args(u):
            coefficient, rest = term.as_independent(*self.symbols, as_Add=False)
            k = self._exponent(rest) if self.monotone else None
            if k is not None:
                powers[k] = powers.get(k, ZERO) + above(coefficient)
                continue
            dc, da, db = self._signed_term(coefficient, rest)
            c, a, b = c + dc, a + da, b + db
        dc, da, db = self._signed_powers(powers)
        return c + dc, a + da, b + db

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
                raise _Unbounded
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
            if t.a > 0 or t.b > 0 or t.n > 2:
                raise _Unbounded
            c, a, b = (c + size * t.C * (t.n <= 0), a + size * t.C * (0 < t.n <= 1), b + size * t.C * (t.n > 1))
        return c, a, b

    def _exp(self, exponent: tuple[Fraction, Fraction, Fraction]) -> Term:
        c, a, b = exponent
        return Term(exp_above(c), ZERO, a, b)

    # |u| >= one term
    def lower(self, u: Expr) -> Term:
        checkpoint("bounding an expression from below")
        if self.constant(u):
            C = below(abs(u))
            if C <= 0:
                raise _Unbounded
            return Term(C)
        if u in self.symbols and self.monotone:
            return Term(ONE, ONE)
        if isinstance(u, sp.Mul):
            result = Term(ONE)
            for factor in u.args:
                result = _times(result, self.lower(factor), -1)
            return result
        if _is_exp(u):
            c, a, b = self.signed(-(u.exp if isinstance(u, sp.Pow) else u.args[0]))
            return Term(1 / exp_above(c), ZERO, -a, -b)
        if isinstance(u, sp.Pow) and u.exp.is_Rational:
            p = Fraction(int(u.exp.p), int(u.exp.q))
            return _power(self.lower(u.base) if p > 0 else _dominant(self.upper(u.base)), p, -1)
        if isinstance(u, sp.Add):
            return self._lower_sum(u)
        if isinstance(u, sp.cosh):
            return Term(ONE)
        if isinstance(u, sp.Abs):
            return self.lower(u.args[0])
        if isinstance(u, (sp.tanh, sp.erf)):  # both are >= v/(1 + v) for v >= 0
            v = self._floor(u.args[0])
            return Term(v / (1 + v))
        if isinstance(u, sp.log):
            low = self.lower(u.args[0])
            if min(low[1:]) < 0:
                raise _Unbounded
            value = low.C / power_above(self.start, -low.n)  # increasing in t, so what holds at `start` holds beyond
            while value <= 1 and low.n > 0:
                self._advance()
                value = low.C / power_above(self.start, -low.n)
            if value <= 1:
                raise _Unbounded
            return Term(1 - 1 / value)  # log v >= 1 - 1/v
        raise _Unbounded

    def _floor(self, v: Expr) -> Fraction:
        """A positive constant below |v|."""
        low = self.lower(v)
        if low.n < 0 or low.a < 0 or low.b < 0:
            raise _Unbounded
        return low.C

    def _lower_sum(self, u: sp.Add) -> Term:
        u = sp.expand(u)
        if not isinstance(u, sp.Add):
            return self.lower(u)
        if all(arg.is_nonnegative for arg in u.args):
            return max(self._lowers(u.args), key=lambda t: (t.b, t.a, t.n, t.C))
        if not self.monotone:
            raise _Unbounded
        for leader in sorted(self._leaders(u.args), key=lambda pair: pair[1][:0:-1], reverse=True):
            arg, low = leader
            rest = _merged(sum((self.upper(b) for b in u.args if b is not arg), ()))
            ratios = [Term(t.C / low.C, t.n - low.n, t.a - low.a, t.b - low.b) for t in rest]
            if all((t.b, t.a, t.n) < (0, 0, 0) for t in ratios):
                while not self._small(ratios):
                    self._advance()
                return low._replace(C=low.C / 2)
        return self._lower_constant(u)

    def _lower_constant(self, u: Expr) -> Term:
        """|u| >= C > 0 from the signed bound of u or of -u: 2 + cos t >= 1."""
        for v in (-u, u):
            try:
                c, a, b = self.signed(v)
            except _Unbounded:
                continue
            if c < 0 and a <= 0 and b <= 0:
                return Term(-c)
        raise _Unbounded

    def _leaders(self, args: Sequence[Expr]) -> list[tuple[Expr, Term]]:
        found = []
        for arg in args:
            try:
                found.append((arg, self.lower(arg)))
            except _Unbounded:
                continue
        return found

    def _lowers(self, args: Sequence[Expr]) -> list[Term]:
        found = [term for _, term in self._leaders(args)]
        if not found:
            raise _Unbounded
        return found

    def _small(self, ratios: Sequence[Term]) -> bool:
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
            raise _Unbounded


def _is_exp(u: Expr) -> bool:
    return isinstance(u, sp.exp) or (isinstance(u, sp.Pow) and u.base == sp.E)


def _times(s: Term, t: Term, direction: int = 1) -> Term:
    return Term(_short(s.C * t.C, direction), s.n + t.n, s.a + t.a, s.b + t.b)


def _power(t: Term, p: Fraction, direction: int = 1) -> Term:
    """t^p, its constant rounded up or down."""
    if t.C == 0:
        if p < 0:
            raise _Unbounded
        return t
    C = power_above(t.C, p) if direction > 0 else 1 / power_above(t.C, -p)
    return Term(C, t.n * p, t.a * p, t.b * p)


def _dominant(terms: Sequence[Term]) -> Term:
    """One term above the sum, for t >= 1."""
    return Term(sum((t.C for t in terms), ZERO), max(t.n for t in terms), max(t.a for t in terms),
                max(t.b for t in terms))


def _merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Terms of equal shape added."""
    total: dict[tuple[Fraction, Fraction, Fraction], Fraction] = {}
    for t in terms:
        total[t[1:]] = total.get(t[1:], ZERO) + t.C
    return tuple(Term(_short(C, 1), *shape) for shape, C in total.items() if C) or (Term(ZERO),)
