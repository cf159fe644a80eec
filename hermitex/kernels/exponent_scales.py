"""f = exp(e) g with g tame: quotients of exponentials, error functions and sums of them, by adding exponents first.

erfc(b) = exp(-max(b, 0)^2) tame_erfc(b) and sum_j c_j exp(d_j) = exp(D) sum_j c_j exp(d_j - D), D the largest d_j. How much of
a factor is counted as exponent is free, for the product does not depend on it: `PLAIN` puts 0 for the amounts moved.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Add, Expr, Function, Mul, Pow, S, cosh, erfc, exp, expand, log, sinh, sqrt

from hermitex.symbolic.formula_size import operations


class tail(Function):
    """erfc(x), which SymPy itself would turn into 2 - erfc(-x) for a negative sign."""


class logaddexp(Function):
    """log(exp(a) + exp(b))."""


class logaddexp_at(Function):
    """T log(exp(a/T) + exp(b/T)), the arguments a, b and T: the larger of a and b at T = 0."""


class tame_erfc(Function):
    """erfc(b) exp(max(b, 0)^2)."""

    is_positive = True


class tame_expm1(Function):
    """(exp(a) - 1) exp(-max(a, 0))."""


class above(Function):
    """max(b, 0)^2."""


class below(Function):
    """min(b, 0)^2."""


class rise(Function):
    """max(a, 0)."""


class largest(Function):
    """The largest of its arguments."""


#: The replacement of each if only the whole product matters: its moved exponents are 0.
PLAIN: dict[Any, Any] = {
    tail: erfc,
    tame_erfc: erfc,
    tame_expm1: lambda a: exp(a) - 1,
    above: lambda b: S.Zero,
    below: lambda b: b**2,
    rise: lambda a: S.Zero,
    largest: lambda *d: S.Zero,
    logaddexp: lambda a, b: log(exp(a) + exp(b)),
    logaddexp_at: lambda a, b, T: T*log(exp(a/T) + exp(b/T)),
}


_SMALL = ("erfc", "tail", "ndtr", "expit")
_LARGE = ("cosh", "sinh", "expm1")


class ScaledFactor(NamedTuple):
    """exp(exponent) rest."""

    exponent: Expr
    rest: Expr


def merge_exponents(e: Mul) -> Expr | None:
    """A product in which large and small factors may meet, its exponents added first; None where none can."""
    factors = [_power(f) for f in e.args]
    kinds = [_kind(base) for base, _ in factors]
    both = [(k, base, n) for k, (base, n) in zip(kinds, factors, strict=True) if k and n.is_number]
    divided = any(n.is_negative or k == "expit" for k, _, n in both)
    lifted = "exp" in kinds and any(k == "sum" and all(map(_scale_in, base.args)) for k, base, _ in both)
    if not (divided or lifted) or sum(map(bool, kinds)) < 2:
        return None                                                  # a product that overflows is large itself
    sizes = [_large_small(k, base, n) for k, (base, n) in zip(kinds, factors, strict=True)]
    if not any(a and b for i, (a, _) in enumerate(sizes) for j, (_, b) in enumerate(sizes) if i != j):
        return None
    exponent, parts, sums = S.Zero, [], []
    for kind, (base, n) in zip(kinds, factors, strict=True):
        if not kind or not n.is_number:
            parts.append(Pow(base, n))
        elif kind == "sum" and n.is_positive:
            sums.append((base, n))                                   # its terms take a share of the exponent each
        else:
            own = split_exponential(base)
            exponent, parts = exponent + n*own.exponent, [*parts, Pow(own.rest, n)]
    if not sums:
        return Mul(exp(short(exponent)), *parts)
    (base, n), *others = sums
    shared = Add(*(_with_exponent(t, exponent/n) for t in base.args))
    return Mul(*parts, Pow(shared, n), *(Pow(b, k) for b, k in others))


def _power(f: Expr) -> tuple[Expr, Expr]:
    return (f, S.One) if isinstance(f, exp) else f.as_base_exp()


def _with_exponent(term: Expr, more: Expr) -> Expr:
    own = split_exponential(term)
    return exp(short(own.exponent + more))*own.rest


@lru_cache(maxsize=4096)
def _kind(f: Expr) -> str:
    """The name of what may be very large or very small: an exponential, an error function, a sum of such."""
    if f.is_number or (isinstance(f, exp) and f.has(largest)):  # that one has been scaled already
        return ""
    name = type(f).__name__
    if name in _SMALL or name in _LARGE or name in ("exp", "exp_erfc"):
        return name
    return "sum" if f.is_Add and any(map(_scale_in, f.args)) else ""


def _scale_in(term: Expr) -> bool:
    return any(_kind(_power(g)[0]) for g in Mul.make_args(term))


def _large_small(kind: str, base: Expr, n: Expr) -> tuple[bool, bool]:
    """May base**n be very large, and very small?"""
    if not kind:
        return False, False
    large, small = kind not in _SMALL, kind not in _LARGE
    if kind == "exp":
        large, small = not base.args[0].is_nonpositive, not base.args[0].is_nonnegative
    return (small, large) if n.is_negative else (large, small)


def split_exponential(f: Expr) -> ScaledFactor:
    """exp(e) g = f, g neither very large nor very small through an exponential of its own."""
    if f.is_Mul:
        parts = [split_exponential(g) for g in f.args]
        return ScaledFactor(Add(*(p.exponent for p in parts)), Mul(*(p.rest for p in parts)))
    base, n = _power(f)
    if isinstance(f, exp):
        return ScaledFactor(f.args[0], S.One)
    if n != 1 and n.is_number and _kind(base):
        own = split_exponential(base)
        return ScaledFactor(n*own.exponent, Pow(own.rest, n))
    return _one(f)


def _one(f: Expr) -> ScaledFactor:
    name = type(f).__name__
    if isinstance(f, erfc | tail):
        return ScaledFactor(-above(f.args[0]), tame_erfc(f.args[0]))
    if name == "ndtr":
        b = -f.args[0]/sqrt(2)
        return ScaledFactor(-above(b), tame_erfc(b)/2)
    if name == "exp_erfc":
        return ScaledFactor(f.args[0] - above(f.args[1]), tame_erfc(f.args[1]))
    if name == "expm1":
        return ScaledFactor(rise(f.args[0]), tame_expm1(f.args[0]))
    if name == "expit":
        return ScaledFactor(-logaddexp(S.Zero, -f.args[0]), S.One)
    if isinstance(f, cosh | sinh):
        up, down = exp(f.args[0]), exp(-f.args[0])
        return _sum((up + down if isinstance(f, cosh) else up - down)/2)
    return _sum(f) if _kind(f) == "sum" else ScaledFactor(S.Zero, f)


def _sum(f: Expr) -> ScaledFactor:
    """The largest exponent of the terms, and the sum of what is left of them."""
    terms = [split_exponential(t) for t in Add.make_args(expand(f, deep=False))]
    exponents = list(dict.fromkeys(t.exponent for t in terms))
    top = exponents[0] if len(exponents) == 1 else largest(*exponents)
    return ScaledFactor(top, Add(*(exp(short(t.exponent - top))*t.rest for t in terms)))


def short(e: Expr) -> Expr:
    """b^2 - above(b) is below(b): what cancels is taken out before it is evaluated."""
    flat = expand(e)
    for gauge in flat.atoms(above):
        (b,) = gauge.args
        n = flat.coeff(gauge)
        other = expand(flat - n*gauge + n*b**2)
        if n.is_number and operations(other) < operations(flat - n*gauge):
            flat = other - n*below(b)
    return flat if operations(flat) < operations(e) else e  # (z - c)/w loses no digits; z/w - c/w does
