"""Is g(z) a real number for every real z? log(z) and sqrt(z) are not: a witness z is looked for and shown.

Values are taken at fixed points by guarded low-precision arithmetic (`approximate`): nothing is proved by them but
the refusal, and a number too large to write is noticed before anybody evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mpmath import MPContext, mpf
from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    NumberSymbol,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    acos,
    acosh,
    asin,
    atanh,
    ceiling,
    exp,
    floor,
    log,
    preorder_traversal,
    sign,
)
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from hermitex.errors import BadInput
from hermitex.symbolic.gaussian import Expectation

_mp = MPContext()
_mp.prec = 60  # bits: seven more than a double has
_MAX_LOG = 9_210  # exp of it has 4000 digits
_PLAIN = frozenset(["sin", "cos", "tan", "cot", "sec", "csc", "atan", "acot", "asinh", "tanh", "coth", "sech", "csch",
                    "erf"])
_GROWING = frozenset(["sinh", "cosh", "erfc", "erfi"])


# Further functions that leave the reals: where the last argument x is allowed (with the order n before it).
_DOMAINS: dict[str, Callable[..., bool]] = {
    "loggamma": lambda x: x > 0,
    "LambertW": lambda x: x*_mp.e >= -1,
    "erfinv": lambda x: abs(x) <= 1,
    "erfcinv": lambda x: 0 <= x <= 2,
    "acoth": lambda x: abs(x) >= 1,
    "besselk": lambda n, x: x > 0,
    "bessely": lambda n, x: x > 0,
    "besseli": lambda n, x: x >= 0 or _mp.isint(n),
    "besselj": lambda n, x: x >= 0 or _mp.isint(n),
}


class Unreal(Exception):
    """A part of the expression is not a real number at the point."""


class TooLarge(Exception):
    """A value beyond 10**(+-4000)."""


def approximate(expr: Any, values: Mapping[Symbol, mpf]) -> Any:
    """About the value of `expr` (mpf, or bool for a condition) at a point; None if it is not known.

    >>> from hermitex.symbols import z
    >>> float(approximate(z**2 + 1, {z: mpf(3)}))
    10.0
    """
    if isinstance(expr, Rational):
        return _mp.mpf(expr.p) / expr.q
    if expr in values:
        return values[expr]
    if isinstance(expr, NumberSymbol):
        return _mp.mpf(expr.evalf(20)._mpf_)
    if isinstance(expr, BooleanTrue | BooleanFalse):
        return bool(expr)
    if isinstance(expr, Piecewise):
        return _branch(expr, values)
    if isinstance(expr, Expectation) or not expr.args:
        return _mp.mpf(expr._mpf_) if expr.is_Float else None
    args = [approximate(a, values) for a in expr.args]
    if isinstance(expr, And | Or):
        decisive = isinstance(expr, Or)
        return decisive if decisive in args else (None if None in args else not decisive)
    if None in args:
        return None
    return _bounded(_value(expr, args))


def _branch(expr: Piecewise, values: Mapping[Symbol, mpf]) -> Any:
    for branch, condition in expr.args:
        holds = approximate(condition, values)
        if holds is None:
            return None
        if holds:
            return approximate(branch, values)
    raise Unreal(expr)


def _bounded(value: Any) -> Any:
    if isinstance(value, mpf | _mp.mpf) and value and abs(_mp.mag(value)) > 1.45 * _MAX_LOG:
        raise TooLarge
    return value


def _value(expr: Any, args: list[Any]) -> Any:
    first = args[0]
    name = type(expr).__name__
    if isinstance(expr, Add):
        return _mp.fsum(args)
    if isinstance(expr, Mul):
        return _mp.fprod(args)
    if isinstance(expr, Pow):
        return _power(expr, *args)
    if isinstance(expr, exp):
        if abs(first) > _MAX_LOG:
            raise TooLarge
        return _mp.exp(first)
    if isinstance(expr, log):
        if first < 0:
            raise Unreal(expr)
        return _mp.log(first) if first else None
    if isinstance(expr, asin | acos | atanh | acosh):
        if (first < 1) if isinstance(expr, acosh) else (abs(first) > 1):
            raise Unreal(expr)
        return None if isinstance(expr, atanh) and abs(first) == 1 else getattr(_mp, name)(first)
    if isinstance(expr, Relational):
        return _relation(expr, args)
    return _switch_or_function(expr, name, args)


def _switch_or_function(expr: Any, name: str, args: list[Any]) -> Any:
    first = args[0]
    if name in _DOMAINS and not _DOMAINS[name](*args):
        raise Unreal(expr)
    if isinstance(expr, Not):
        return not first
    if isinstance(expr, Abs):
        return abs(first)
    if isinstance(expr, sign):
        return _mp.sign(first)
    if isinstance(expr, Heaviside):
        return (1 + _mp.sign(first)) / 2
    if isinstance(expr, Max | Min):
        return (max if isinstance(expr, Max) else min)(args)
    if isinstance(expr, floor | ceiling):
        return getattr(_mp, "floor" if isinstance(expr, floor) else "ceil")(first)
    if name in _GROWING and abs(first) > (_MAX_LOG if name in ("sinh", "cosh") else 150):
        raise TooLarge
    if name in _GROWING or name in _PLAIN:
        try:
            return getattr(_mp, name)(first)
        except (ZeroDivisionError, ValueError):
            return None
    return None


def _power(expr: Pow, base: Any, exponent: Any) -> Any:
    if not base:
        return base if exponent > 0 else None
    if base < 0 and not _mp.isint(exponent):
        raise Unreal(expr)
    if abs(exponent * _mp.log(abs(base))) > _MAX_LOG:
        raise TooLarge
    return _mp.power(base, exponent)


def _relation(expr: Relational, args: list[Any]) -> bool:
    left, right = args
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
            "==": left == right, "!=": left != right}[expr.rel_op]


def check_real(expr: Expr, variables: Iterable[Symbol] = ()) -> Expr:
    """Return `expr`; raise `BadInput` if a real value of the variables is found at which it is not a real number.

    A parameter may have any value that its assumptions allow: sqrt(1 - rho**2) is accepted, being real for some rho.

    >>> from sympy import sqrt
    >>> from hermitex.symbols import z
    >>> check_real(sqrt(1 + z**2), [z])
    sqrt(z**2 + 1)
    >>> check_real(log(z), [z])
    Traceback (most recent call last):
    ...
    hermitex.errors.BadInput: log(z) is not real at z = -0.5; write log(abs(z))
    """
    variables = tuple(variables)
    for node in sorted(expr.atoms(Expectation), key=lambda n: n.level):
        body, fresh = node.open()
        # Under the names the user gave, where they are free, so that the message shows what was typed.
        named = {d: Symbol(d.name, real=True) for d in fresh}
        if not body.free_symbols & set(named.values()):
            body, fresh = body.xreplace(named), tuple(named.values())
        check_real(body, (*variables, *fresh))
    if not any(_suspicious(part) for part in preorder_traversal(expr)):
        return expr
    parameters = sorted(expr.free_symbols - set(variables), key=str)
    witness: tuple[Any, dict] | None = None
    for k in range(4 if parameters else 1):
        fixed = {p: _allowed(p, k + i) for i, p in enumerate(parameters)}
        found = _witness(expr, variables, fixed)
        if found is None:
            return expr
        witness = witness or found
    assert witness is not None
    part, point = witness
    at = ", ".join(f"{v} = {_mp.nstr(value, 6)}" for v, value in point.items() if v in part.free_symbols)
    raise BadInput(f"{_short(part)} is not real{' at ' + at if at else ''}; {_advice(part)}")


def _suspicious(part: Any) -> bool:
    """Could this part, by its own kind, be complex or undefined for real arguments?"""
    if isinstance(part, Pow):
        base, exponent = part.args
        return not (exponent.is_integer or base.is_nonnegative or (base.is_Add and base.is_positive))
    if isinstance(part, log):
        return not part.args[0].is_nonnegative
    if isinstance(part, Piecewise):
        return part.args[-1].cond != True  # noqa: E712  (a SymPy truth value)
    return isinstance(part, asin | acos | acosh | atanh) or type(part).__name__ in _DOMAINS


def _allowed(symbol: Symbol, k: int) -> mpf:
    if symbol.is_integer:
        return mpf(1 + k % 3) * (-1 if symbol.is_negative else 1)
    value = (mpf(1) / 3, mpf(7) / 5, mpf(3), mpf(2) / 3)[k % 4]
    if symbol.is_negative or symbol.is_nonpositive:
        return -value
    return value if symbol.is_nonnegative or k % 4 != 3 else -value


def _witness(expr: Expr, variables: tuple[Symbol, ...], fixed: dict) -> tuple[Any, dict] | None:
    """A part that is not real and a point where it is not; None if none is found."""
    # near 0, of size 1 and large, either sign, none a whole number
    points = tuple(mpf(p) / 16 for p in (8, -8, 19, -19, 3, -3, 1, -1, 37, -37, 61, -61, 115, -115, 333, -333, 3001, -3001,
                                         49001, -49001))
    count = len(points)
    free = [v for v in variables if v in expr.free_symbols]
    for k in range(count if len(free) <= 1 else 3 * count):
        # Further variables run through the points at other strides, so that every order and sign pattern occurs.
        point = {v: points[(k * (1 + 2 * i) + 5 * i * (k // count + 1)) % count] for i, v in enumerate(free)}
        try:
            approximate(expr, {**fixed, **point})
        except Unreal as unreal:
            return unreal.args[0], {**point, **fixed}
        except TooLarge:
            continue
    return None


def _short(part: Any) -> str:
    text = str(part)
    return text if len(text) <= 60 else f"{text[:50]}... "


def _advice(part: Any) -> str:
    if isinstance(part, Piecewise):
        return "no branch holds there: end it with (..., True)"
    inside = _short(part.args[0])
    if isinstance(part, log):
        return f"write log(abs({inside}))"
    if isinstance(part, Pow):
        if part.exp == Rational(1, 2):
            return f"write sqrt(abs({inside}))"
        return f"write abs({inside})**({part.exp}), or sign({inside})*abs({inside})**({part.exp}) for an odd function"
    return "its argument leaves the domain; restrict it, e.g. with Min and Max"
