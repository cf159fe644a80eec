"""Arithmetic that cannot run away: |b**e| is evaluated only where e log10|b| is below a bound.

SymPy evaluates as it builds: 9**9**9 would fill the memory, floor(exp(10**9)) would ask for 4e8 digits, s**1000 < 3
may look for roots. These builders give what SymPy gives where that is cheap, an unevaluated node where it may not
be, and a `BadInput` of one line where a number would be too large or does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sympy import Add, Expr, Mul, Pow, Rational, exp, log, nan, oo, zoo
from sympy import E as EULER

from hermitex.errors import BadInput
from hermitex.symbolic.reality import TooLarge, Unreal, approximate

MAX_DIGITS = 10_000
MAX_EXPONENT = 1_000_000
LARGE = 200  # nodes beyond which a decision (a sign, an order) is left open when a node is built


def digits(value: Any) -> float:
    """Upper bound on the decimal digits of a rational (of numerator and denominator)."""
    return max(value.p.bit_length(), value.q.bit_length()) * 0.30103


def rational_digits(expr: Expr) -> float:
    """Digits that stand in the rational numbers of an expression (0 and 1 and -1 have none)."""
    return sum(digits(a) for a in expr.atoms(Rational) if abs(a) != 1 and a != 0)


def total(terms: Sequence[Expr]) -> Expr:
    """a + b + ..., in one go (pairwise building of a long sum is quadratic)."""
    return exists(Add(*terms))


def product(factors: Sequence[Expr]) -> Expr:
    """a * b * ..., refused where the number in front would have more than `MAX_DIGITS` digits."""
    if sum(digits(f) for f in factors if isinstance(f, Rational)) > MAX_DIGITS:
        raise BadInput(f"a product of numbers has more than {MAX_DIGITS} digits")
    result = exists(Mul(*factors))
    if isinstance(result, Pow) or result.has(Pow):
        _check_exponents(result)
    return result


def _check_exponents(expr: Expr) -> None:
    parts = expr.args if isinstance(expr, Mul) else (expr,)
    for p in parts:
        if isinstance(p, Pow) and isinstance(p.exp, Rational) and abs(p.exp) > MAX_EXPONENT:
            raise BadInput(f"the exponent {short(p.exp)} is too large; at most {MAX_EXPONENT} is read")


def power(base: Expr, exponent: Expr) -> Expr:
    """base**exponent, refused where a number in it would have more than `MAX_DIGITS` digits.

    >>> from sympy import Integer
    >>> power(Integer(2), Integer(-3))
    1/8
    >>> power(Integer(9), Integer(9)**9)
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: the power 9**387420489 has more than 10000 digits
    """
    if base.is_zero and (exponent.is_negative or exponent.is_zero):
        raise BadInput(f"division by zero in {short(base)}**({short(exponent)})" if exponent.is_zero
                       else "division by zero")
    if isinstance(exponent, Rational):
        if rational_digits(base) * abs(exponent) > MAX_DIGITS:
            raise BadInput(f"the power {short(base)}**{short(exponent)} has more than {MAX_DIGITS} digits")
        if abs(exponent) > MAX_EXPONENT and base not in (0, 1, -1):
            raise BadInput(f"the exponent {short(exponent)} is too large; at most {MAX_EXPONENT} is read")
    elif base == EULER:
        return apply(exp, exponent)
    elif rational_digits(exponent) > MAX_DIGITS:
        raise BadInput(f"an exponent of more than {MAX_DIGITS} digits")
    elif exponent.has(log) and isinstance(base, Rational):
        raise BadInput(f"write {short(base)}**({short(exponent)}) without a logarithm in the exponent")
    result = exists(Pow(base, exponent))
    _check_exponents(result)
    _check_magnitude(result)
    return result


def apply(function: Callable[..., Expr], *args: Expr) -> Expr:
    """function(*args), after a check that its constant arguments are of a size that can be evaluated."""
    if function is exp and args[0].has(log):
        # exp(n*log(a)) becomes a**n as it is built: bound it as the power it will be.
        scale = rational_digits(args[0])
        if any(isinstance(a, Rational) and abs(a) > MAX_EXPONENT for a in args[0].atoms(Rational)) or scale > 40:
            raise BadInput("the exponent of exp(...log...) is too large")
    result = function(*args)
    if isinstance(result, Expr):
        exists(result)
        _check_magnitude(result)
    return result


def exists(expr: Any) -> Any:
    """`expr`, unless it is not a number: 1/0, oo - oo, log(0)."""
    if expr is nan or expr is zoo or expr in (oo, -oo) or (isinstance(expr, Expr) and expr.has(nan, zoo, oo, -oo)):
        raise BadInput("a value that does not exist (a division by zero, or an infinite number)")
    return expr


def small(*args: Any) -> bool:
    """True if SymPy may decide a sign or an order in these at once without running away."""
    from sympy import preorder_traversal

    count = 0
    for a in args:
        for node in preorder_traversal(a):
            count += 1
            if count > LARGE or (isinstance(node, Pow) and node.exp.is_Integer and abs(node.exp) > 40):
                return False
    return True


def short(expr: Any, width: int = 40) -> str:
    """The expression on one short line; a huge number is not printed in full."""
    if isinstance(expr, Rational) and digits(expr) > width:
        return f"(a number of {int(digits(expr))} digits)"
    text = str(expr) if small(expr) else type(expr).__name__ + "(...)"
    return text if len(text) <= width else text[:width - 3] + "..."


def _check_magnitude(expr: Expr) -> None:
    """Refuse a constant beyond 10**(+-MAX_DIGITS): SymPy's decisions would evaluate it to all its digits."""
    if expr.free_symbols or isinstance(expr, Rational):
        return
    try:
        approximate(expr, {})
    except TooLarge:
        raise BadInput(f"the number {short(expr)} has more than {MAX_DIGITS} digits") from None
    except Unreal:
        raise BadInput(f"{short(expr)} is not a real number") from None
