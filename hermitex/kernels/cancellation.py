"""sum_i |t_i| / |sum_i t_i|: whether the sums of a formula may lose digits where their terms cancel."""

from __future__ import annotations

from collections.abc import Collection

from sympy import Abs, Add, Dummy, Expr, Function, Max, Mul, Pow, erfc, exp, preorder_traversal

from hermitex.kernels.exponent_scales import tail
from hermitex.kernels.lowered import Lowered
from hermitex.kernels.recognition import all_but_cancelled, exp_erfc, recognise
from hermitex.symbolic.budget import kept

_FAR_OUT = (exp, erfc, tail)  # in the tails the rounding of the argument changes the value by many times its own rounding


def may_cancel(value: Expr) -> bool:
    """Whether a factor of `value` is a sum that holds a function and has terms that may differ in sign.

    Of a number, whether it holds a sum that all but cancels and has no digits that could be put in its place.

    >>> from sympy import erfc, exp
    >>> from sympy.abc import x
    >>> may_cancel(exp(x)), may_cancel(erfc(x) - exp(-x**2))
    (False, True)
    """
    form = recognise(value)
    return _may_cancel(form) if form.free_symbols else any(map(all_but_cancelled, form.atoms(Add)))


def may_divide_by_zero(value: Expr, roots: Collection[Expr] = ()) -> bool:
    """Whether a denominator holds letters and may be 0, as in E sign(a z + b) = erf(b/(|a| sqrt(2))).

    `roots` are the positive symbols that replace square roots, which may be 0.

    >>> from sympy import Symbol, erf
    >>> a, s = Symbol("a", real=True), Symbol("s", positive=True)
    >>> may_divide_by_zero(erf(1/a)), may_divide_by_zero(erf(1/s))
    (True, False)
    """
    may_vanish = {r: Dummy(nonnegative=True) for r in roots}
    return any(p.base.xreplace(may_vanish).is_nonzero is None for p in value.atoms(Pow) if p.exp.is_extended_negative)


def _may_cancel(e: Expr) -> bool:
    if e.is_Mul:
        return any(map(_may_cancel, e.args))
    if e.is_Pow and isinstance(e, Pow):
        return bool(e.exp.is_Integer and e.exp > 0) and _may_cancel(e.base)
    if isinstance(e, Add):
        moving = [t for t in e.args if t.free_symbols and t.has(Function)]
        return bool(moving) and (not of_one_sign(e) or any(t.has(*_FAR_OUT) for t in moving))
    return isinstance(e, exp_erfc)  # its exponent is a difference


def of_one_sign(e: Add) -> bool:
    """Is every term known to be 0 or above, or every one 0 or below?"""
    return all(t.is_extended_nonnegative for t in e.args) or all(t.is_extended_nonpositive for t in e.args)


def sums_may_cancel(lowered: Lowered) -> bool:
    """Whether digits may be lost: in a sum whose terms may differ in sign, or in a function of a rounded value (log E near 1)."""
    reach = lowered.reach()
    for e in (*(s.expr for s in lowered.statements), *lowered.outputs):
        along = any(reach.get(v) for v in e.free_symbols)
        for part in preorder_traversal(e):
            if isinstance(part, exp_erfc) or (isinstance(part, Add) and not of_one_sign(part)):
                return True
            if isinstance(part, Function) and not along and any(not a.is_Atom or a in reach for a in part.args):
                return True
    return False


def has_differences(e: Expr) -> bool:
    """Whether `magnitude` of an expression may be larger than the expression: of 1 - x and (1 - x)**2, not of exp(1 - x)."""
    return (isinstance(e, Add) and not of_one_sign(e)) or (isinstance(e, Add | Mul | Pow) and any(map(has_differences, e.args)))


@kept(1024)
def magnitude(expr: Expr) -> Expr:
    """The sum of the absolute values of the terms of an expression: what its rounding is a part of.

    >>> from hermitex.symbols import m as x
    >>> magnitude(x**2*(1 - x))
    m**2*(Abs(m) + 1)
    """
    if isinstance(expr, Add | Mul):
        return expr.func(*map(magnitude, expr.args))
    if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp.is_positive:
        return magnitude(expr.base)**expr.exp
    if isinstance(expr, Pow) and expr.exp.is_number and expr.exp.is_negative and has_differences(expr.base):
        return magnitude(expr.base)*Abs(expr)/Abs(expr.base)  # 1/x is off by 1/x^2 times what x is off
    if expr.is_number or expr.is_positive:
        return abs(expr)
    return Abs(expr, evaluate=False) if expr.is_extended_real else Max(expr, -expr)  # |x| of what may be complex is a root


__all__ = ["has_differences", "magnitude", "may_cancel", "may_divide_by_zero", "of_one_sign", "sums_may_cancel"]
