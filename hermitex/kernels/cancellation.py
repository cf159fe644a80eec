"""sum_i |t_i| / |sum_i t_i|: how many digits the sums of a closed form lose where their terms cancel."""

from __future__ import annotations

from sympy import Abs, Add, Expr, Float, Function, Min, Mul, Pow, S, erfc, exp

from hermitex.kernels.recognition import exp_erfc, recognise
from hermitex.kernels.scales import above, tail

_ROUNDING, _FURTHEST = Float(2.0**-50), 300  # of an exponent; beyond which it is no digit anyway, and may overflow


def loss(value: Expr) -> Expr | None:
    """By what factor rounding grows in `value`; None where no sum with a function in it can cancel.

    >>> from sympy import erfc, exp
    >>> from sympy.abc import x
    >>> loss(exp(x)) is None, loss(erfc(x) - exp(-x**2)) is None
    (True, False)
    """
    found = size(value)
    return None if found is None else found/_absolute(recognise(value))


def size(value: Expr) -> Expr | None:
    """The sum of the absolute values of what `value` adds up; None where no sum with a function in it can cancel."""
    form = recognise(value)
    if not form.free_symbols or not _cancels(form):
        return None
    found = _size(form)
    return None if found == form else found  # no term is negative


def _cancels(e: Expr) -> bool:
    """Whether a sum that `_size` takes apart stands in it."""
    if e.is_Mul:
        return any(map(_cancels, e.args))
    if e.is_Pow and isinstance(e, Pow):
        return bool(e.exp.is_Integer and e.exp > 0) and _cancels(e.base)
    return isinstance(e, exp_erfc) or (e.is_Add and any(map(_inexact, e.args)))


def _inexact(t: Expr) -> bool:
    """Whether a term has a rounding of its own."""
    return bool(t.free_symbols) and t.has(Function)


def _size(e: Expr) -> Expr:
    """The sum of the sizes of all terms, products multiplied out in thought."""
    if e.is_Add and any(map(_inexact, e.args)):
        return Add(*(_size(t) for t in e.args))
    if e.is_Mul:
        sizes, plain = [_size(f) for f in e.args], [_absolute(f) for f in e.args]
        lost = [i for i, (s, f) in enumerate(zip(sizes, plain, strict=True)) if s != f]
        if len(lost) < 2:
            return Mul(*sizes)
        return Add(*(Mul(*(sizes[j] if i == j else f for j, f in enumerate(plain))) for i in lost))
    if e.is_Pow and isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0:
        size, plain_base = _size(e.base), _absolute(e.base)
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


__all__ = ["loss", "magnitude"]
