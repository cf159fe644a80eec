"""sign(a - b), proved: exact numbers by evaluation at two precisions that agree, symbols by their assumptions.

Certificates rest on these signs, so nothing is guessed: what is neither proved positive, negative nor zero is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from sympy import (
    Abs,
    ComplexRootOf,
    Dummy,
    Expr,
    Float,
    Poly,
    Pow,
    Rational,
    S,
    expand,
    factor,
    factor_terms,
    nan,
    radsimp,
    together,
)
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.errors import AssumptionNeeded, NoClosedForm
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.formula_size import DECIDED, operations


def exact(expr: Expr) -> Expr:
    """Every Float in `expr` as the exact decimal that it prints."""
    floats = expr.atoms(Float)
    return expr.xreplace({v: Rational(str(v)) for v in floats}) if floats else expr


@kept(4096)
def sign_of(value: Expr) -> int:
    """The proved sign of an expression: -1, 0 or 1.

    Parameters
    ----------
    value : real expression; its symbols count with their assumptions, +-oo is allowed.

    Raises
    ------
    AssumptionNeeded : the sign is that of a symbol, a square root or an absolute value, and is not declared.
    NoClosedForm : the sign could not be proved.

    Examples
    --------
    >>> from sympy import sqrt, pi, Symbol
    >>> sign_of(sqrt(2) + sqrt(3) - pi)
    1
    >>> s = Symbol('s', positive=True)
    >>> sign_of(-s**2 - 1)
    -1
    """
    checkpoint("proving a sign")
    if value.is_Rational:
        return (value.p > 0) - (value.p < 0)
    if value in (S.Infinity, S.NegativeInfinity):
        return 1 if value is S.Infinity else -1
    if not value.free_symbols:
        return _numeric_sign(value)
    known = assumed(value)
    if known is not None:
        return known
    if operations(value) <= DECIDED:
        for form in (expand(value), factor_terms(expand(value)), _factored(value)):
            known = assumed(form)
            if known is None and form.is_Mul:
                known = _product_sign(form)
            if known is not None:
                return known
        known = _by_squaring(expand(value))
        if known is not None:
            return known
    for letter in sorted(value.free_symbols | _sizes(value), key=str):
        if (value / letter).is_positive or (value / letter).is_negative:
            raise AssumptionNeeded(letter, "positive")
    raise NoClosedForm(value, f"the sign of {_short(value)} is not provable from the declared assumptions")


def compare(a: Expr, b: Expr) -> int:
    """The proved sign of a - b, where both may be infinite."""
    if a == b:
        return 0
    if a is S.Infinity or b is S.NegativeInfinity:
        return 1
    if a is S.NegativeInfinity or b is S.Infinity:
        return -1
    try:
        return sign_of(a - b)
    except AssumptionNeeded:
        raise
    except NoClosedForm as error:
        why = f"the order of {_short(a)} and {_short(b)} is not provable; declare a sign (s>0) or give numbers"
        raise NoClosedForm(a - b, why) from error


def ordered(points: Iterable[Expr]) -> tuple[Expr, ...]:
    """The distinct points in proved increasing order."""
    distinct: list[Expr] = []
    for p in sorted(dict.fromkeys(points), key=cmp_to_key(compare)):
        if not distinct or compare(distinct[-1], p) != 0:
            distinct.append(p)
    return tuple(distinct)


def inside(points: Iterable[Expr], lo: Expr, hi: Expr) -> tuple[Expr, ...]:
    """The points strictly between lo and hi, in increasing order."""
    return ordered(p for p in points if compare(p, lo) > 0 and compare(p, hi) < 0)


def between(lo: Expr, hi: Expr) -> Expr:
    """A point of the open interval (lo, hi): a simple rational one where the ends are numbers."""
    if lo is S.NegativeInfinity:
        return S.Zero if hi is S.Infinity else _simple(hi - 1, lo, hi)
    if hi is S.Infinity:
        return _simple(lo + 1, lo, hi)
    return _simple((lo + hi) / 2, lo, hi)


def _simple(point: Expr, lo: Expr, hi: Expr) -> Expr:
    """A short rational near `point` inside (lo, hi); `point` itself where the ends are symbolic."""
    if point.free_symbols or point.is_Rational:
        return point
    for digits in (3, 8, 20, 50, 120, 500):
        near = point.evalf(digits)
        if not near.is_finite:  # a quantile whose probability rounds to 1
            continue
        near = Rational(str(near))
        if compare(lo, near) < 0 < compare(hi, near):
            return near
    return point


def assumed(value: Expr) -> int | None:
    """The sign that SymPy's assumptions say, None where they say none."""
    if value.is_zero:
        return 0
    if value.is_extended_positive:
        return 1
    return -1 if value.is_extended_negative else None


def provably_nonzero(value: Expr) -> bool:
    """Is a number shown by evaluation not to be zero (it may be complex)? False also where that is not known."""
    return not value.free_symbols and _evaluated(value, 20) is not None


def _evaluated(value: Expr, digits: int) -> Expr | None:
    """The number, if two precisions agree on it: the noise of a cancellation does not agree with itself."""
    try:
        low, high = value.evalf(digits, maxn=4*digits), value.evalf(2*digits, maxn=6*digits)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise NoClosedForm(value, f"{_short(value)} could not be evaluated") from error
    if low is nan or high is nan:
        raise NoClosedForm(value, f"{_short(value)} could not be evaluated")
    if not (low.is_finite and high.is_finite) or any(p.is_Float and p._prec <= 1 for v in (low, high)
                                                     for p in v.as_real_imag()):
        return None
    return high if abs(low - high) < abs(high) * Rational(1, 10**10) else None


def _numeric_sign(value: Expr) -> int:
    for digits in (15, 40, 120):
        checkpoint("proving the sign of a number")
        found = _evaluated(value, digits)
        if found is not None:
            if not found.is_Float:
                break
            return 1 if found.is_positive else -1
        if digits > 15 and _vanishes(value):
            return 0
    raise NoClosedForm(value, f"the sign of {_short(value)} could not be proved")


def _vanishes(value: Expr) -> bool:
    """Zero by algebra: expansion, division by the minimal polynomial of one root, or SymPy's exact test where small."""
    roots = value.atoms(ComplexRootOf)
    if expand(value).is_zero:
        return True
    if roots:
        t = Dummy("t")
        (root, *more), numerator = roots, together(value).as_numer_denom()[0]
        p = numerator.xreplace({root: t})
        return not more and p.is_polynomial(t) and Poly(p, t, extension=True).rem(root.poly.replace(t)).is_zero
    if operations(value) > DECIDED//3:
        return False
    return radsimp(value).is_zero is True or (value.is_algebraic is True and value.equals(0) is True)


def _sizes(value: Expr) -> set[Expr]:
    """Square roots and absolute values: where they are real they are not negative."""
    return {a for a in value.atoms(Pow, Abs) if isinstance(a, Abs) or a.exp == S.Half}


def _factored(value: Expr) -> Expr:
    try:
        return factor(value, deep=False)
    except (BasePolynomialError, NotImplementedError):
        return value


def _product_sign(product: Expr) -> int | None:
    sign = 1
    for base in product.args:
        one = assumed(base)
        if one is None:
            one = assumed(expand(base))
        if one is None:
            return None
        sign *= one
    return sign


def _by_squaring(value: Expr) -> int | None:
    """p + q sqrt(r) with p and q of opposite signs has the sign of p (p^2 - q^2 r)."""
    roots = {a for term in value.args for a in term.atoms(Pow) if a.exp == S.Half and a.free_symbols}
    if not value.is_Add or len(roots) != 1:
        return None
    (root,) = roots
    p, q = value.coeff(root, 0), value.coeff(root, 1)
    if expand(p + q*root - value) != 0 or q == 0 or (p.has(root) or q.has(root)):
        return None
    try:
        first, second = sign_of(p), sign_of(q)
        return first if first == second or second == 0 else second if first == 0 else (
            first * sign_of(expand(p**2 - q**2*root.base)))
    except (NoClosedForm, AssumptionNeeded):
        return None


def _short(value: Expr) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."

