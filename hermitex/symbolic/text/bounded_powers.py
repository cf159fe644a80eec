"""Building that cannot run away: b**e is evaluated only where |e| log10|b| is below a bound, and so is exp(e log b).

SymPy evaluates as it builds: 9**9**9 would fill the memory, floor(exp(10**9)) would ask for 4e8 digits, a sign of
s**999 - s + 1 may look for its roots. The checks here come first; what fails them is a `BadInput` of one line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Limit,
    Max,
    Min,
    Mul,
    Pow,
    Rational,
    ceiling,
    exp,
    floor,
    log,
    nan,
    oo,
    sign,
    zoo,
)
from sympy import E as EULER
from sympy.concrete.expr_with_limits import ExprWithLimits

from hermitex.errors import BadInput
from hermitex.symbolic.formula_size import COUNTED, MAX_TERMS, polynomial_size
from hermitex.symbolic.text.reality import TooLarge, Unreal, approximate
from hermitex.symbols import is_normal_name

MAX_DIGITS = 4_000  # Python itself writes and reads integers up to 4300 digits
MAX_SIZE = 10_000  # nodes: as many as `grammar` reads of a text
LARGE = 80  # nodes beyond which a sign or an order is left open when a node is built; chosen by trial

SWITCHES = (Abs, sign, Heaviside, Max, Min, floor, ceiling)
_ORDER_BOUND = {"factorial": 999, "gamma": 1000, "loggamma": 1000, "digamma": 1000, "zeta": 1000, "beta": 1000, "polygamma": 100,
                "uppergamma": 50, "lowergamma": 50, "besseli": 1000, "besselj": 1000, "besselk": 1000, "bessely": 1000}


def digits(value: Any) -> float:
    """About the decimal digits of a rational (the longer of numerator and denominator)."""
    return max(math.log10(max(abs(int(value.p)), 1)), math.log10(int(value.q)))


def rational_digits(expr: Expr) -> float:
    """Digits of all the rational numbers in an expression but the exponents; 0, 1 and -1 have none."""
    count, stack = 0.0, [expr]
    while stack:
        node = stack.pop()
        count += digits(node) if isinstance(node, Rational) else 0
        stack.extend(node.args[:1] if isinstance(node, Pow) and node.exp.is_Rational else node.args)
    return count


def total(terms: Sequence[Expr]) -> Expr:
    """a + b + ... in one go, refused where the common denominator may be too long to write."""
    if sum(math.log10(int(t.q)) for t in terms if isinstance(t, Rational)) > MAX_DIGITS:
        raise BadInput(f"a sum of numbers has more than {MAX_DIGITS} digits")
    return exists(Add(*terms))


def product(factors: Sequence[Expr]) -> Expr:
    """a * b * ..., refused where a number in it would be too long to write."""
    if sum(digits(f.as_coeff_Mul()[0]) for f in factors if f.as_coeff_Mul()[0].is_Rational) > MAX_DIGITS:
        raise BadInput(f"a product of numbers has more than {MAX_DIGITS} digits")
    result = exists(Mul(*factors))
    for part in Mul.make_args(result):
        if isinstance(part, Pow):
            check_power(*part.args)
    return result


def power(base: Expr, exponent: Expr) -> Expr:
    """base**exponent, refused where a number in it would be too long to write.

    >>> from sympy import Integer
    >>> power(Integer(2), Integer(-3))
    1/8
    >>> power(Integer(9), Integer(9)**9)
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: the power 9**387420489 has more than 4000 digits
    """
    if base == EULER:
        return apply(exp, exponent)
    check_power(base, exponent)
    result = exists(Pow(base, exponent))
    if isinstance(result, Pow):
        check_power(*result.args)
    check_magnitude(result)
    return result


def check_power(base: Expr, exponent: Expr) -> None:
    """Refuse a power that does not exist or that nobody can write out."""
    if base.is_zero and exponent.free_symbols:
        raise BadInput(f"0**({short(exponent)}) has no definite value; write 0, or a Piecewise")
    if base.is_zero and (exponent.is_negative or exponent.is_zero):
        raise BadInput("division by zero" if exponent.is_negative else "0**0 has no value; write 1 or 0")
    most = 1_000_000  # chosen by hand: no formula needs an exponent of seven digits
    most_of_parameter = 100  # SymPy looks for real roots when it decides the sign of a polynomial in a positive symbol
    if isinstance(exponent, Rational):
        check_polynomial(Pow(base, exponent, evaluate=False))
        size = abs(exponent)
        if rational_digits(base) * size > MAX_DIGITS:
            raise BadInput(f"the power {short(Pow(base, exponent, evaluate=False))} has more than {MAX_DIGITS} digits")
        if size > most and base not in (0, 1, -1):
            raise BadInput(f"the exponent {short(exponent)} is too large; at most {most} is read")
        if size > most_of_parameter and any(not is_normal_name(s.name) for s in base.free_symbols):
            raise BadInput(f"the exponent {short(exponent)} of a parameter is too large; "
                           f"at most {most_of_parameter} is read")
    elif rational_digits(exponent) > MAX_DIGITS:
        raise BadInput(f"an exponent of more than {MAX_DIGITS} digits")
    else:
        _check_logarithms(exponent, digits(base) if isinstance(base, Rational) else 1)


def check_polynomial(expr: Expr) -> None:
    """Refuse what is too large multiplied out; a power of a sum is short to write and may have billions of terms."""
    variables = [s for s in expr.free_symbols if is_normal_name(getattr(s, "name", ""))]
    if not variables or not expr.has(Pow):
        return
    terms, degree = polynomial_size(expr, variables)
    most_degree = 400  # of a polynomial in the variables
    if degree > most_degree:
        raise BadInput(f"{short(expr)} is too large: its degree is {degree}, at most {most_degree} is read")
    if terms > MAX_TERMS:
        many = f"{terms}" if terms < COUNTED else f"more than {COUNTED:.0e}"
        raise BadInput(f"{short(expr)} is too large: multiplied out it has {many} terms, at most {MAX_TERMS} are read")


def apply(function: Callable[..., Expr], *args: Expr) -> Expr:
    """function(*args), after a check that its arguments are of a size that can be evaluated."""
    check_call(getattr(function, "__name__", ""), args)
    open_ = {"evaluate": False} if function in SWITCHES and not small(*args) else {}
    result = function(*args, **open_)
    if isinstance(result, Expr):
        exists(result)
        check_magnitude(result)
    return result


def check_call(name: str, args: Sequence[Any]) -> None:
    """Refuse arguments on which building a function runs away."""
    most = 30  # each is compared with all others
    if name in ("Max", "Min") and len(args) > most:
        raise BadInput(f"{name} of {len(args)} arguments; at most {most} are compared")
    for a in args:
        if isinstance(a, Expr):
            _check_logarithms(a, 1)
            if name in _ORDER_BOUND and isinstance(a, Rational) and abs(a) > _ORDER_BOUND[name]:
                raise BadInput(f"{name} of {short(a)}; its arguments are read up to {_ORDER_BOUND[name]}")


def _check_logarithms(exponent: Expr, scale: float) -> None:
    """exp(n log a) becomes a**n as it is built, so n is bounded as an exponent is."""
    if not exponent.has(log):
        return
    for term in Add.make_args(exponent):
        front, rest = term.as_coeff_Mul()
        longest = max(rational_digits(rest), scale)
        if rest.has(log) and isinstance(front, Rational) and abs(front) * longest > MAX_DIGITS:
            raise BadInput(f"the factor {short(front)} of a logarithm is too large")


def exists(expr: Any) -> Any:
    """`expr`, unless a value in it does not exist: 1/0, oo - oo, log(0). The ends of an integral or a sum, and where a limit is
    taken, may be infinite."""
    if isinstance(expr, Expr) and expr.has(nan, zoo, oo, -oo) and _infinite(expr):
        raise BadInput("a value that does not exist (a division by zero, or an infinite number)")
    return expr


def _infinite(e: Any) -> bool:
    """Is there an infinite number, or none, outside of such ends?"""
    if isinstance(e, ExprWithLimits | Limit):
        return _infinite(e.args[0])
    return e in (nan, zoo, oo, -oo) or any(map(_infinite, e.args))


def check_magnitude(expr: Expr) -> None:
    """Refuse a constant beyond 10**(+-MAX_DIGITS): SymPy's decisions would evaluate it to all its digits."""
    if isinstance(expr, Rational) or expr.free_symbols:
        return
    try:
        approximate(expr, {})
    except TooLarge:
        raise BadInput(f"the number {short(expr)} has more than {MAX_DIGITS} digits") from None
    except Unreal:
        raise BadInput(f"{short(expr)} is not a real number") from None


def small(*args: Any) -> bool:
    """True if SymPy may decide a sign or an order in these at once without running away."""
    return all(size(a, LARGE) <= LARGE for a in args) and not any(
        p.exp.is_Integer and abs(p.exp) > 40 for a in args for p in a.atoms(Pow))


def size(expr: Any, limit: int = MAX_SIZE) -> int:
    """Nodes of the expression written out as a tree; counting stops above `limit`."""
    count, stack = 0, [expr]
    while stack and count <= limit:
        node = stack.pop()
        count += 1
        stack.extend(node.args)
    return count


def short(expr: Any, width: int = 40) -> str:
    """The expression on one short line; a huge number is not printed in full."""
    if isinstance(expr, Rational) and digits(expr) > width:
        return f"(a number of {int(digits(expr)) + 1} digits)"
    text = str(expr) if size(expr, LARGE) <= LARGE and rational_digits(expr) < LARGE else f"{type(expr).__name__}(...)"
    return text if len(text) <= width else text[:width - 3] + "..."
