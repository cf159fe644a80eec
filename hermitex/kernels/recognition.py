"""exp(a) erfc(b) = exp(a - b^2) erfcx(b): a formula in functions that neither overflow nor cancel.

1/(1 + exp(-x)) is expit(x), log(1 + exp(x)) is logaddexp(0, x), (1 + erf(x/sqrt 2))/2 is ndtr(x), log(1 + x) is
log1p(x), and a product of exponentials is one. In a quotient each factor is a tame one times an exponential, and the
exponents are added before anything is evaluated (`scales`). `plain` writes the usual functions back, for whoever looks for
break points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import (
    Abs,
    Add,
    Expr,
    Float,
    Function,
    Heaviside,
    Integer,
    Max,
    Mul,
    Pow,
    S,
    cos,
    cosh,
    div,
    erf,
    erfc,
    erfi,
    exp,
    expand_mul,
    fraction,
    log,
    sin,
    sinh,
    sqrt,
    tanh,
)

from hermitex.errors import NoClosedForm, NotConverged
from hermitex.kernels import exponent_scales
from hermitex.kernels.exponent_scales import logaddexp, tail
from hermitex.kernels.temperature import at_temperature
from hermitex.numbers.tail_forms import expm1, log1p
from hermitex.symbolic.arithmetic import mpf
from hermitex.symbolic.special import ImErf, ReErf


# The names are those of SciPy and of the helpers of generated source.
class expit(Function):
    """1/(1 + exp(-x))."""


class ndtr(Function):
    """(1 + erf(x/sqrt 2))/2."""


class log1mexp(Function):
    """log(1 - exp(x)), x < 0."""


class exp_erfc(Function):
    """exp(a) erfc(b)."""


class exp_erfi(Function):
    """exp(a) erfi(b)."""


class exp_re_erf(Function):
    """exp(a) Re erf(x + i y)."""


class exp_im_erf(Function):
    """exp(a) Im erf(x + i y)."""


class gated(Function):
    """a where u > 0, else 0: the exponent of a term whose other factor is 0 there."""


class log_ndtr(Function):
    """log((1 + erf(x/sqrt 2))/2)."""


_PLAIN = {
    log_ndtr: lambda x: log((1 + erf(x/sqrt(2)))/2),
    gated: lambda a, u: a,
    **exponent_scales.PLAIN,
    expit: lambda x: 1/(1 + exp(-x)),
    ndtr: lambda x: (1 + erf(x/sqrt(2)))/2,
    log1p: lambda x: log(1 + x),
    expm1: lambda x: exp(x) - 1,
    log1mexp: lambda x: log(1 - exp(x)),
    exp_erfc: lambda a, b: exp(a)*erfc(b),
    exp_erfi: lambda a, b: exp(a)*erfi(b),
    exp_re_erf: lambda a, x, y: exp(a)*ReErf(x, y),
    exp_im_erf: lambda a, x, y: exp(a)*ImErf(x, y),
}


@lru_cache(maxsize=20000)
def plain(expr: Expr) -> Expr:
    """The usual functions again.

    >>> from sympy.abc import x
    >>> plain(recognise(x*log(1 + exp(x)))) == x*log(1 + exp(x))
    True
    """
    if not expr.args:
        return expr
    args = [plain(a) for a in expr.args]
    if expr.func in _PLAIN:
        return _PLAIN[expr.func](*args)
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)


@lru_cache(maxsize=4096)
def recognise(expr: Expr) -> Expr:
    """The same formula, stable in floating point.

    >>> from sympy.abc import x
    >>> recognise(exp(x)/(1 + exp(x))), recognise(exp(x**2)*(1 - erf(x)))
    (exp(x - logaddexp(0, x)), tame_erfc(x)*exp(below(x)))
    """
    return _cleared(expr).replace(lambda e: isinstance(e, (Pow, log, Add, Mul)), _rewritten)


def _cleared(e: Any) -> Any:
    """Sums of numbers that cancel as one number each, the outermost first: what cancels in it is not rounded before."""
    e = _without_cancelled(e) if isinstance(e, Add) else e
    args = [_cleared(a) for a in e.args]
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else e.func(*args)


def _without_cancelled(e: Expr) -> Expr:
    """Numbers that all but cancel in a sum are one number, formed with all its digits: no parameter moves it.

    >>> _without_cancelled(1 - erfc(sqrt(2)/2000000))
    7.9788456080273237e-7
    """
    value = _number(Add(*numbers)) if (numbers := all_but_cancelled(e)) else None
    return e if value is None else Add(value, *(t for t in e.args if not t.is_number))


def all_but_cancelled(e: Add) -> list[Expr]:
    """The numbers in a sum, if they all but cancel."""
    numbers = [t for t in e.args if t.is_number]
    if len(numbers) < 2:
        return []
    parts = [t.evalf(5) for t in numbers]
    real = all(t.is_Float or t.is_Rational for t in parts)
    return numbers if real and 8*abs(Add(*parts)) <= sum(map(abs, parts)) else []


def _number(e: Expr) -> Float | None:
    """A real number with all its digits, or None: of erfc(b) `evalf` loses as many as b^2 has before its point."""
    from hermitex.symbolic.precise import evaluate  # with the digits of averages, which few formulas need

    try:
        value = evaluate(e, 17)
    except (NoClosedForm, NotConverged):
        return None
    return Float(value, 17) if isinstance(value, mpf) and 1e-300 < abs(value) < 1e300 else None


@lru_cache(maxsize=4096)
def _rewritten(e: Expr) -> Expr:
    if isinstance(e, log):
        return _logarithm(e)
    if isinstance(e, Add):
        return _sum(e)
    return _power(e) if isinstance(e, Pow) else _product(e)


def _power(e: Expr) -> Expr:
    if e.exp.is_Integer and e.exp.is_negative and isinstance(e.base, Add):
        a = _one_plus(e.base, exp)
        if a is not None and a.free_symbols:
            return expit(-a) ** (-e.exp)
    return e


def _one_plus(e: Expr, function: Any) -> Expr | None:
    """a, if e is 1 + function(a)."""
    if len(e.args) == 2 and S.One in e.args:
        other = e - 1
        return other.args[0] if isinstance(other, function) else None
    return None


def _logarithm(e: Expr) -> Expr:
    """The logarithm of a product is a sum, that of a sum of exponentials has its largest one before it."""
    inside = e.args[0]
    if not inside.free_symbols:
        return e
    if isinstance(-inside, expm1):
        return log1mexp((-inside).args[0])
    if isinstance(inside, Mul):
        moving = [f for f in inside.args if f.free_symbols]
        if all(f.is_positive or _log_of(f) is not None for f in moving):
            logs = [_log_of(f) for f in moving]
            fixed = Mul(*(f for f in inside.args if not f.free_symbols))
            if any(v is not None for v in logs) and fixed.is_positive:
                return Add(log(fixed), *(log(f) if v is None else v for f, v in zip(moving, logs, strict=True)))
        return e
    return _log_of(inside) or e


def _log_of(f: Expr) -> Expr | None:
    """log f for one factor, where it is better not taken of the value of f."""
    base, n = f.as_base_exp()
    if isinstance(f, exp):
        return f.args[0]
    if n != 1:
        own = _log_of(base) if n.is_number else None
        return None if own is None else n*own
    if isinstance(f, erfc | tail):
        return log_ndtr(-sqrt(2)*f.args[0]) + log(2)
    if isinstance(f, ndtr):
        return log_ndtr(f.args[0])
    if isinstance(f, expit):
        return -logaddexp(S.Zero, -f.args[0])
    if isinstance(f, cosh):
        return logaddexp(f.args[0], -f.args[0]) - log(2)
    if isinstance(f, exp_erfc):
        return f.args[0] + log_ndtr(-sqrt(2)*f.args[1]) + log(2)
    return _log_of_sum(f) if isinstance(f, Add) and f.free_symbols else None


def _log_of_sum(f: Add) -> Expr | None:
    a = _one_plus(f, exp)
    if a is not None:
        return logaddexp(S.Zero, a)
    logs = [v for t in f.args if (v := _log_of_term(t)) is not None]
    if len(logs) == len(f.args) and any(v.free_symbols for v in logs):
        total = logs[0]
        for v in logs[1:]:
            total = logaddexp(total, v)
        return total
    if S.One in f.args:
        return _log_beside_one(f)
    own = exponent_scales.split_exponential(f)
    return own.exponent + log(own.rest) if own.exponent != 0 else None


def _log_beside_one(f: Add) -> Expr:
    """log(1 + sum_j c_j exp(d_j)) = T + log1p(expm1(-T) + sum_j c_j exp(d_j - T)), T the largest of 0 and the d_j."""
    terms = [exponent_scales.split_exponential(t) for t in f.args if t != 1]
    exponents = [t.exponent for t in terms if t.exponent != 0]
    if not exponents:
        return log1p(f - 1)
    top = exponent_scales.largest(S.Zero, *dict.fromkeys(exponents))
    return top + log1p(expm1(-top) + Add(*(exp(exponent_scales.short(t.exponent - top))*t.rest for t in terms)))


def _log_of_term(t: Expr) -> Expr | None:
    """log of a positive term of a sum that has an exponential or an error function in it, or is a number."""
    if t.is_number:
        return log(t) if t.is_positive else None
    logs = [(_log_of(g), g) for g in Mul.make_args(t)]
    if all(v is not None or g.is_positive for v, g in logs) and any(v is not None for v, _ in logs):
        return Add(*(log(g) if v is None else v for v, g in logs))
    return None


def _sum(e: Expr) -> Expr:
    """c + c erf(a) and 2c - c erfc(a) are c erfc(-a); c f - c is written without the difference, near f = 1 (`_beyond_one`);
    c + c tanh(u) is 2c expit(2u), c - c tanh(u)^2 is c/cosh(u)^2; a^2 - b^2 is (a - b)(a + b), in which a difference of two given
    numbers is exact."""
    if (fallen := _below_largest(e)) is not None:
        return fallen
    if len(e.args) != 2:
        return _pair_with_erfc(_complement(e))
    roots = [root for t in e.args if (root := _square_root(t)) is not None]
    if len(roots) == 2 and {c for c, _ in roots} == {S.One, S.NegativeOne}:
        a, b = (root for _, root in sorted(roots, key=lambda pair: -pair[0]))
        return (a - b)*(a + b)
    number, other = e.as_coeff_Add()
    coefficient, rest = other.as_coeff_Mul()
    if number == -coefficient and isinstance(rest, expit):
        return number*expit(-rest.args[0])
    if number == -coefficient and rest.free_symbols and (beyond := _beyond_one(rest)) is not None:
        return coefficient*beyond
    if isinstance(rest, erf) and coefficient in (number, -number):
        a = rest.args[0] if coefficient == number else -rest.args[0]
        return ndtr(sqrt(2)*a) if number is S.Half else number*tail(-a)
    if isinstance(rest, erfc) and number == -2*coefficient:
        return -coefficient*tail(-rest.args[0])
    if isinstance(rest, tanh) and rest.free_symbols and coefficient in (number, -number):
        return 2*number*expit(2*coefficient/number*rest.args[0])
    if rest.is_Pow and rest.exp == 2 and isinstance(rest.base, tanh) and rest.free_symbols and number == -coefficient:
        return number/cosh(rest.base.args[0])**2
    return _pair_with_erfc(e)


def _below_largest(e: Add) -> Expr | None:
    """log(e^a + e^b) - m = log(1 + e^(...)) for m = a, b, max(a, b): a value that falls to zero is not written as a difference.

    >>> from sympy.abc import x
    >>> _below_largest(3*logaddexp(x, -x) - 3*x)
    3*logaddexp(0, -2*x)
    """
    for t in e.args:
        c, f = t.as_coeff_Mul()
        if not isinstance(f, logaddexp):
            continue
        a, b = f.args
        for m, left in ((a, b - a), (b, a - b), (Max(a, b), -Abs(a - b)), (Abs(a), -2*Abs(a)) if b == -a else (b, a - b)):
            taken = Add.make_args(expand_mul(-c*m))
            if m != 0 and all(v in e.args for v in taken):
                return Add(*(v for v in e.args if v is not t and v not in taken), c*logaddexp(S.Zero, left))
    return None


def _square_root(t: Expr) -> tuple[Expr, Expr] | None:
    """(c, a) of t = c a^2, with a letter for a or a = 1."""
    c, rest = t.as_coeff_Mul()
    if rest is S.One:
        return c, S.One
    return (c, rest.base) if isinstance(rest, Pow) and rest.exp == 2 and rest.base.is_Symbol else None


def _pair_with_erfc(e: Expr) -> Expr:
    """c + c erf(a) + ... is c erfc(-a) + ..., for every c: a moment far below a kink is not written as a difference.

    >>> from sympy.abc import x, s
    >>> _pair_with_erfc(s/2 + x/2 + (s + x)*erf(x)/2 + exp(-x**2))
    (s/2 + x/2)*tail(-x) + exp(-x**2)
    """
    if not isinstance(e, Add) or not e.has(erf):
        return e
    left, found = list(e.args), []
    for t in e.args:
        factors = Mul.make_args(t)
        f = next((f for f in factors if isinstance(f, erf) and not f.is_number), None)
        if f is None or sum(g.has(erf) for g in factors) > 1:
            continue
        times = Mul(*(g for g in factors if g is not f))
        for sign in (1, -1):
            parts = Add.make_args(sign*times if sign*times in left else expand_mul(sign*times))
            if all(p in left for p in parts):
                for p in (*parts, t):
                    left.remove(p)
                found.append(sign*times*tail(-sign*f.args[0]))
                break
    return Add(*left, *found) if found else e


def _beyond_one(f: Expr) -> Expr | None:
    """f - 1 for a function that is 1 at 0.

    >>> from hermitex.symbols import q
    >>> _beyond_one(exp(q)), _beyond_one(cos(q)), _beyond_one(1/sqrt(1 + q**2))
    (expm1(q), -2*sin(q/2)**2, expm1(-log1p(q**2)/2))
    """
    if isinstance(f, exp):
        return expm1(f.args[0])
    if isinstance(f, cos | cosh):
        return -2*sin(f.args[0]/2)**2 if isinstance(f, cos) else 2*sinh(f.args[0]/2)**2
    base, n = f.as_base_exp()
    if n.is_number and isinstance(base, Add) and S.One in base.args and base.is_positive:
        return expm1(n*log1p(base - 1))
    return None


def _complement(e: Expr) -> Expr:
    """c - (c - p/q) erf(a) + ... is c erfc(a) + p/q erf(a) + ...: a number that all but cancels is not formed.

    >>> from sympy.abc import x, s
    >>> _complement(2 - (2*x**2 - s)/x**2*erf(x) - exp(-x**2))
    s*erf(x)/x**2 + 2*tail(x) - exp(-x**2)
    """
    number, rest = e.as_coeff_Add()
    if number == 0:
        return e
    for t in rest.args:
        found = [f for f in Mul.make_args(t) if isinstance(f, erf)]
        if len(found) != 1 or found[0].is_number:
            continue
        (f,) = found
        p, q = fraction(t/f)
        inner = sorted(q.free_symbols, key=str)
        if not inner or p.has(erf, exp) or not q.is_polynomial(*inner) or not p.is_polynomial(*inner):
            continue
        whole, left = div(p, q, *inner)
        if whole in (number, -number):
            sign = whole/number
            return Add(*(v for v in rest.args if v != t), left/q*f, number*tail(-sign*f.args[0]))
    return e


def _product(e: Expr) -> Expr:
    if (cold := at_temperature(e)) is not None:
        return cold
    return _one_exponential(e) if (merged := exponent_scales.merge_exponents(e)) is None else merged


def _one_exponential(e: Expr) -> Expr:
    exponents = [f.args[0] for f in e.args if isinstance(f, exp)]
    if not exponents:
        return e
    a, rest = Add(*exponents), [f for f in e.args if not isinstance(f, exp)]
    if (formed := _merge_numbers(a, rest)) is not None:
        return formed
    for k, f in enumerate(rest):
        others = rest[:k] + rest[k + 1:]
        base, n = f.as_base_exp()
        if isinstance(base, expit) and n.is_Integer and n > 0:  # exp(-u) expit(u) = expit(-u)
            times = -a/base.args[0]
            if times.is_Integer and 0 < times <= n:
                return Mul(*others, expit(-base.args[0]) ** times, base ** (n - times))
        merged = _merged(a, f)
        if merged is not None:
            return Mul(*others, merged)
    gate = next((u for f in rest if (u := _gate_argument(f)) is not None), None)
    if gate is not None and a.free_symbols and not a.is_nonpositive and not a.has(gated):
        return Mul(*rest, exp(gated(a, gate)))
    return Mul(*rest, exp(a)) if len(exponents) > 1 else e


def _merge_numbers(a: Expr, factors: list[Expr]) -> Expr | None:
    """A product of a huge and a tiny number becomes one number with all of its digits: e^4850 erfc(69.6)."""
    numbers = [f for f in factors if f.is_number and f.has(erf, erfc, erfi, tail, ndtr, ReErf, ImErf)]
    if not (numbers and a.is_number):
        return None
    value = _number(exp(a)*Mul(*map(plain, numbers)))
    return None if value is None else Mul(value, *(f for f in factors if f not in numbers))


def _gate_argument(f: Expr) -> Expr | None:
    """u, if a factor is 0 wherever u < 0: Max(0, u)**n and Heaviside(u)."""
    base, n = f.as_base_exp()
    if not n.is_positive or not base.free_symbols:
        return None
    if isinstance(base, Heaviside):
        return base.args[0]
    return next(u for u in base.args if u != 0) if isinstance(base, Max) and S.Zero in base.args and len(base.args) == 2 else None


def _merged(a: Expr, f: Expr) -> Expr | None:
    """exp(a) f as one function, where the factors may overflow and their product does not."""
    if isinstance(f, (erfc, tail, ndtr)) and not a.is_nonpositive:
        own = exponent_scales.split_exponential(f)
        left = exponent_scales.short(a + own.exponent)
        if not left.has(exponent_scales.above):  # exp(b^2) erfc(b) is erfcx(b), with nothing to be subtracted
            return exp(left)*own.rest
        return exp_erfc(a, f.args[0]) if not isinstance(f, ndtr) else exp_erfc(a, -f.args[0]/sqrt(2))/Integer(2)
    for function, form in ((erfi, exp_erfi), (ReErf, exp_re_erf), (ImErf, exp_im_erf)):
        if isinstance(f, function):
            return form(a, *f.args)
    return None
