"""sum_i |t_i| / |sum_i t_i|: how many digits the sums of a closed form lose where their terms cancel."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Abs, Add, Expr, Float, Function, Min, Mul, Pow, S, Symbol, erfc, exp, preorder_traversal

from hermitex.kernels.recognition import exp_erfc, recognise
from hermitex.kernels.scales import above, tail

_POWERS = frozenset(S(2)**k for k in range(-8, 9))
_ROUNDING, _FURTHEST = Float(2.0**-50), 300  # of an exponent; beyond which it is no digit anyway, and may overflow


@dataclass(frozen=True)
class Known:
    """The known of a formula that is no closed form.

    given : stand for one number at each point, known to its last digit;  rounded : for one that is not
    varying : averages that vary along an axis
    """

    given: frozenset[Symbol] = frozenset()
    rounded: frozenset[Symbol] = frozenset()
    varying: frozenset[Symbol] = frozenset()

    def number(self, e: Expr) -> bool:
        """Whether it is one number at each point."""
        return e.free_symbols <= self.given | self.rounded


def loss(value: Expr) -> Expr | None:
    """By what factor rounding grows in `value`; None where no sum with a function in it can cancel.

    >>> from sympy import erfc, exp
    >>> from sympy.abc import x
    >>> loss(exp(x)) is None, loss(erfc(x) - exp(-x**2)) is None
    (True, False)
    """
    found = size(value, Known())
    return None if found is None else found/_absolute(recognise(value))


def size(value: Expr, known: Known | None = None) -> Expr | None:
    """The sum of the absolute values of what `value` adds up; None where no sum with a function in it can cancel.

    known : the letters of a formula that is no closed form: sums of these count, too, but for a difference of two that are given,
        and so do sums with roots and quotients
    """
    form = recognise(value)
    if not form.free_symbols or not _cancels(form, known):
        return None
    found = _size(form, known)
    return None if found == form else found  # no term is negative


def _cancels(e: Expr, known: Known | None) -> bool:
    """Whether a sum that `_size` takes apart stands in it."""
    if e.is_Mul:
        return any(_cancels(f, known) for f in e.args)
    if e.is_Pow and isinstance(e, Pow):
        return bool(e.exp.is_Integer and e.exp > 0) and _cancels(e.base, known)
    return isinstance(e, exp_erfc) or (e.is_Add and _rounded(e, known))


def _rounded(e: Expr, known: Known | None) -> bool:
    """Whether a term of a sum has a rounding of its own, or the sum of the first of them has."""
    if known is not None and known.number(e):
        return len(e.args) > 2 or not all(_given(t, known) for t in e.args)
    return any(_inexact(t, known) for t in e.args)


def _inexact(t: Expr, known: Known | None) -> bool:
    for part in preorder_traversal(t):
        if isinstance(part, Function) or (known is not None and (part in known.varying or _divided(part))):
            return bool(t.free_symbols)
    return False


def _given(t: Expr, known: Known) -> bool:
    """Is it a number that is given, or a power of two times one?"""
    factor, rest = t.as_coeff_Mul()
    if rest is S.One:
        return bool(factor.is_Integer or factor.is_Float)
    return rest in known.given and abs(factor) in _POWERS


def _divided(e: Expr) -> bool:
    """Is it a root of a sum, or something over one?"""
    return e.is_Pow and e.base.is_Add and not (e.exp.is_Integer and e.exp > 0) and bool(e.base.free_symbols)


def _size(e: Expr, known: Known | None) -> Expr:
    """The sum of the sizes of all terms, products multiplied out in thought."""
    if e.is_Add and _rounded(e, known):
        return Add(*(_size(t, known) for t in e.args))
    if e.is_Mul:
        sizes, plain = [_size(f, known) for f in e.args], [_absolute(f) for f in e.args]
        lost = [i for i, (s, f) in enumerate(zip(sizes, plain, strict=True)) if s != f]
        if len(lost) < 2:
            return Mul(*sizes)
        return Add(*(Mul(*(sizes[j] if i == j else f for j, f in enumerate(plain))) for i in lost))
    if e.is_Pow and isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0:
        size, plain_base = _size(e.base, known), _absolute(e.base)
        return plain_base**e.exp if size == plain_base else e.exp*plain_base**(e.exp - 1)*size
    if isinstance(e, exp_erfc):
        a, b = e.args  # its exponent is a difference of that size: so it may be larger, and is not 0 because rounding made it so
        return Abs(exp_erfc(a + Min(_ROUNDING*Abs(a), _FURTHEST, evaluate=False), b))*(1 + Abs(a))
    if isinstance(e, exp | erfc | tail) and e.free_symbols:  # and so does the rounding of an argument: f'/f times it, far out
        (a,) = e.args
        return _absolute(e)*(1 + (Min(Abs(a), _FURTHEST, evaluate=False) if isinstance(e, exp) else 2*above(a)))
    return _absolute(e)


def _absolute(e: Expr) -> Expr:
    if e.is_number:
        return S(Abs(e))
    return e if e.is_nonnegative else Abs(e, evaluate=False)  # SymPy would multiply a sum out to see its sign


def magnitude(expr: Expr) -> Expr:
    """The sum of the absolute values of the terms of an expression: what its rounding is a part of.

    >>> from sympy.abc import x
    >>> magnitude(x**2*(1 - x))
    (Abs(x) + 1)*Abs(x)**2
    """
    if isinstance(expr, Add | Mul):
        return expr.func(*map(magnitude, expr.args))
    if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp.is_positive:
        return magnitude(expr.base)**expr.exp
    return abs(expr) if expr.is_number else Abs(expr, evaluate=False) if expr.is_positive is not True else expr


__all__ = ["Known", "loss", "magnitude", "size"]
