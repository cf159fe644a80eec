"""sum_i |t_i| / |sum_i t_i|: how many digits the sums of a closed form lose where their terms cancel."""

from __future__ import annotations

from sympy import Abs, Add, Expr, Float, Function, Min, Mul, Pow, S, Symbol, erfc, exp, preorder_traversal

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
    found = size(value, frozenset())
    return None if found is None else found/_absolute(recognise(value))


def size(value: Expr, averages: frozenset[Symbol] | None = None) -> Expr | None:
    """The sum of the absolute values of what `value` adds up; None where no sum with a function in it can cancel.

    averages : symbols that stand for some, for a formula that is no closed form: sums with these, roots or quotients count, too
    """
    form = recognise(value)
    if not form.free_symbols or not _cancels(form, averages):
        return None
    found = _size(form, averages)
    return None if found == form else found  # no term is negative


def _cancels(e: Expr, averages: frozenset[Symbol] | None) -> bool:
    """Whether a sum that `_size` takes apart stands in it."""
    if e.is_Mul:
        return any(_cancels(f, averages) for f in e.args)
    if e.is_Pow and isinstance(e, Pow):
        return bool(e.exp.is_Integer and e.exp > 0) and _cancels(e.base, averages)
    return isinstance(e, exp_erfc) or (e.is_Add and _rounded(e, averages))


def _rounded(e: Expr, averages: frozenset[Symbol] | None) -> bool:
    """Whether a term of a sum has a rounding of its own, and is no product of numbers that are known to their last digit."""
    return any(_inexact(t, averages) for t in e.args)


def _inexact(t: Expr, averages: frozenset[Symbol] | None) -> bool:
    for part in preorder_traversal(t):
        if isinstance(part, Function) or (averages is not None and (part in averages or _divided(part))):
            return bool(t.free_symbols)
    return False


def _divided(e: Expr) -> bool:
    """Is it a root of a sum, or something over one?"""
    return e.is_Pow and e.base.is_Add and not (e.exp.is_Integer and e.exp > 0) and bool(e.base.free_symbols)


def _size(e: Expr, averages: frozenset[Symbol] | None) -> Expr:
    """The sum of the sizes of all terms, products multiplied out in thought."""
    if e.is_Add and _rounded(e, averages):
        return Add(*(_size(t, averages) for t in e.args))
    if e.is_Mul:
        sizes, plain = [_size(f, averages) for f in e.args], [_absolute(f) for f in e.args]
        lost = [i for i, (s, f) in enumerate(zip(sizes, plain, strict=True)) if s != f]
        if len(lost) < 2:
            return Mul(*sizes)
        return Add(*(Mul(*(sizes[j] if i == j else f for j, f in enumerate(plain))) for i in lost))
    if e.is_Pow and isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0:
        size, plain_base = _size(e.base, averages), _absolute(e.base)
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


__all__ = ["loss", "magnitude", "size"]
