"""u(B) in [low, high] for many boxes B at once: interval arithmetic in double precision, rounded outwards.

Every operation takes the ends of its arguments to ends that hold its result, poles, jumps and kinks included: 1/[-1, 1]
is the whole line, floor([1/2, 3/2]) is [0, 1]. Arithmetic is widened by 4e-16 of each end, functions of the numerical
library by 1e-14, far more than their errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from sympy import Expr, Symbol

from hermitex.errors import NoClosedForm
from hermitex.symbolic.precise import evaluate

# relative: two roundings of one operation; a library's function is good to 4 units of the last place, ten times that is allowed
_ARITHMETIC, _LIBRARY = 4e-16, 1e-14
# above the underflow 2.2e-308 of normal doubles: it replaces a product or exponential that is positive but rounds to 0
_LEAST = 1e-300


class Range(NamedTuple):
    """Arrays of lower and upper ends."""

    low: np.ndarray
    high: np.ndarray


def ranges(u: Expr, boxes: dict[Symbol, Range]) -> Range:
    """Ends that hold u on each box.

    Raises
    ------
    NoClosedForm : u holds a function without a known range.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> found = ranges(sp.floor(z1)/z2, {z1: Range(np.array([1.5]), np.array([2.5])), z2: Range(np.array([1]), np.array([2]))})
    >>> found.low.round(9).tolist(), found.high.round(9).tolist()
    ([0.5], [2.0])
    """
    with np.errstate(all="ignore"):
        return _of(u, boxes)


def _of(e: Any, boxes: dict[Symbol, Range]) -> Range:
    if e in boxes:
        return boxes[e]
    if not e.free_symbols:
        return _constant(e, boxes)
    if isinstance(e, sp.Piecewise):
        return _piecewise(e, boxes)
    if isinstance(e, sp.Pow) and e.base != sp.E:
        return _power(e, boxes)
    args = [_of(a, boxes) for a in (e.args[:1] if isinstance(e, sp.Heaviside) else e.args)]
    if isinstance(e, (sp.Add, sp.Mul)):
        return reduce(_sum if isinstance(e, sp.Add) else _product, args)
    if isinstance(e, (sp.Max, sp.Min)):
        best = np.maximum if isinstance(e, sp.Max) else np.minimum
        return Range(reduce(best, [a.low for a in args]), reduce(best, [a.high for a in args]))
    if isinstance(e, sp.exp) or (isinstance(e, sp.Pow) and e.base == sp.E):
        return _exponential(args[-1])
    rule = _RULES.get(e.func)
    if rule is None:
        raise NoClosedForm(e, "its range over a box is not known")
    return rule(*args)


def _constant(e: Expr, boxes: dict[Symbol, Range]) -> Range:
    value = np.full_like(next(iter(boxes.values())).low, float(evaluate(e, 25)))
    return _widened(value, value, 0.0 if e.is_Integer else _ARITHMETIC)


def _widened(low: np.ndarray, high: np.ndarray, relative: float) -> Range:
    """The ends moved outwards, zeros apart; what is not a number becomes the whole line."""
    low = np.where(np.isnan(low), -np.inf, low - np.where(np.isfinite(low), relative*np.abs(low), 0))
    high = np.where(np.isnan(high), np.inf, high + np.where(np.isfinite(high), relative*np.abs(high), 0))
    return Range(low, high)


# -- arithmetic --------------------------------------------------------------------------------------------------------
def _sum(a: Range, b: Range) -> Range:
    return _widened(a.low + b.low, a.high + b.high, _ARITHMETIC)


def _product(a: Range, b: Range) -> Range:
    ends = [_times(x, y) for x in a for y in b]
    return _widened(reduce(np.minimum, ends), reduce(np.maximum, ends), _ARITHMETIC)


def _times(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x y with 0 oo = 0, the limit of products of numbers; what underflows is not zero."""
    value = np.where((x == 0) | (y == 0), 0.0, x*y)
    return np.where((value == 0) & (x != 0) & (y != 0), np.sign(x)*np.sign(y)*_LEAST, value)


def _inverse(a: Range) -> Range:
    across = (a.low < 0) & (a.high > 0)
    low = np.where(across, -np.inf, np.where(a.high == 0, -np.inf, 1/a.high))
    high = np.where(across, np.inf, np.where(a.low == 0, np.inf, 1/a.low))
    return _widened(low, high, _ARITHMETIC)


def _power(e: sp.Pow, boxes: dict[Symbol, Range]) -> Range:
    base, n = _of(e.base, boxes), e.exp
    if n.free_symbols:  # b^n = exp(n log b), b > 0
        return _exponential(_product(_of(n, boxes), _rising(np.log, _positive(base))))
    if n.is_negative:
        return _inverse(_of_power(base, -n))
    return _of_power(base, n)


def _of_power(a: Range, n: Expr) -> Range:
    if n == 1:
        return a
    if n.is_Integer and n % 2 == 0:
        a = _modulus(a)
    elif not n.is_Integer:
        a = _positive(a)
    low, high = np.power(a.low, float(n)), np.power(a.high, float(n))
    return _widened(low, high, _LIBRARY)


def _positive(a: Range) -> Range:
    """The nonnegative part of a range: roots and logarithms of real functions have no other arguments."""
    return Range(np.maximum(a.low, 0), np.maximum(a.high, 0))


def _modulus(a: Range) -> Range:
    most = np.maximum(np.abs(a.low), np.abs(a.high))
    least = np.where((a.low < 0) & (a.high > 0), 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    return Range(least, most)


# -- functions ---------------------------------------------------------------------------------------------------------
def _rising(f: Callable, a: Range, exact: bool = False) -> Range:
    return Range(f(a.low), f(a.high)) if exact else _widened(f(a.low), f(a.high), _LIBRARY)


def _exponential(a: Range) -> Range:
    found = _rising(np.exp, a)
    return Range(np.maximum(found.low, 0), found.high + _LEAST)


def _bounded(found: Range, low: float = -1.0, high: float = 1.0) -> Range:
    """Widened by an absolute error too, for values next to a zero, and cut off at the bounds of the function."""
    return Range(np.clip(found.low - _LIBRARY, low, high), np.clip(found.high + _LIBRARY, low, high))


def _sine(a: Range) -> Range:
    """sin: its ends, and +-1 if a crest or a trough is between them; of a large argument too few digits are known."""
    ends = np.sin(a.low), np.sin(a.high)
    slack = _LIBRARY*(1 + np.abs(a.low) + np.abs(a.high))

    def between(phase: float) -> np.ndarray:
        return np.floor((a.high - phase + slack)/(2*np.pi)) > np.floor((a.low - phase - slack)/(2*np.pi))

    known = np.isfinite(a.low) & np.isfinite(a.high) & (slack < 1e-6)
    high = np.where(between(np.pi/2) | ~known, 1.0, np.maximum(*ends))
    low = np.where(between(-np.pi/2) | ~known, -1.0, np.minimum(*ends))
    return _bounded(Range(low, high))


def _cosine(a: Range) -> Range:
    return _sine(_sum(a, Range(np.full_like(a.low, np.pi/2), np.full_like(a.low, np.pi/2 + 1e-15))))


def _tangent(a: Range) -> Range:
    slack = _LIBRARY*(1 + np.abs(a.low) + np.abs(a.high))
    branch = np.floor((a.high + np.pi/2 + slack)/np.pi) > np.floor((a.low + np.pi/2 - slack)/np.pi)
    whole = branch | ~np.isfinite(a.low) | ~np.isfinite(a.high) | (slack > 1e-6)
    low, high = np.tan(a.low), np.tan(a.high)  # the error of an argument grows with the slope, 1 + tan^2
    found = _widened(low - slack*(1 + low**2), high + slack*(1 + high**2), _LIBRARY)
    return Range(np.where(whole, -np.inf, found.low), np.where(whole, np.inf, found.high))


def _fraction_part(a: Range) -> Range:
    low, high = np.floor(a.low), np.floor(a.high)
    same = (low == high) & np.isfinite(a.high)
    return Range(np.where(same, a.low - low, 0.0), np.where(same, a.high - high, 1.0))


def _falling(f: Callable, a: Range) -> Range:
    return _widened(f(a.high), f(a.low), _LIBRARY)


def _library(name: str) -> Callable:
    from scipy import special

    return getattr(special, name)


SOFT = sp.Function("soft", real=True)  # log(1 + exp(-|v|))
BENT = sp.Function("bent", real=True)  # |v|^q/(1 + |v|), 0 < q < 1


def _soft(a: Range) -> Range:
    m = _modulus(a)
    return _bounded(_falling(lambda x: np.log1p(np.exp(-x)), m), 0.0, 0.7)


def _bent(a: Range, q: Range) -> Range:
    """It rises to |v| = q/(1 - q), and falls from there."""
    m, n = _modulus(a), q.low
    top = np.clip(n/(1 - n), m.low, m.high)
    low, high, most = (np.where(np.isinf(t), 0.0, t**n/(1 + t)) for t in (*m, top))
    return _bounded(Range(np.minimum(low, high), most), 0.0, 1.0)


_RULES: dict[Any, Callable[..., Range]] = {
    SOFT: _soft,
    BENT: _bent,
    sp.log: lambda a: _rising(np.log, _positive(a)),
    sp.sign: lambda a: _rising(np.sign, a, exact=True),
    sp.floor: lambda a: _rising(np.floor, a, exact=True),
    sp.ceiling: lambda a: _rising(np.ceil, a, exact=True),
    sp.frac: _fraction_part,
    sp.Heaviside: lambda a: _rising(lambda x: np.heaviside(x, 0.5), a, exact=True),
    sp.Abs: _modulus,
    sp.sin: _sine,
    sp.cos: _cosine,
    sp.tan: _tangent,
    sp.cot: lambda a: _inverse(_tangent(a)),
    sp.tanh: lambda a: _bounded(_rising(np.tanh, a)),
    sp.atan: lambda a: _rising(np.arctan, a),
    sp.asinh: lambda a: _rising(np.arcsinh, a),
    sp.sinh: lambda a: _rising(np.sinh, a),
    sp.cosh: lambda a: _rising(np.cosh, _modulus(a)),
    sp.sech: lambda a: _inverse(_rising(np.cosh, _modulus(a))),
    sp.coth: lambda a: _inverse(_rising(np.tanh, a)),
    sp.csch: lambda a: _inverse(_rising(np.sinh, a)),
    sp.erf: lambda a: _bounded(_rising(_library("erf"), a)),
    sp.erfc: lambda a: _falling(_library("erfc"), a),
}


# -- conditions --------------------------------------------------------------------------------------------------------
def _piecewise(e: sp.Piecewise, boxes: dict[Symbol, Range]) -> Range:
    """The hull of the branches that may hold."""
    shape = next(iter(boxes.values())).low.shape
    low, high, open_ = np.full(shape, np.inf), np.full(shape, -np.inf), np.full(shape, True)
    for branch, condition in e.args:
        surely, maybe = _truth(condition, boxes)
        value, here = _of(branch, boxes), open_ & maybe
        low, high = np.where(here, np.minimum(low, value.low), low), np.where(here, np.maximum(high, value.high), high)
        open_ = open_ & ~surely
    return Range(np.where(open_, -np.inf, low), np.where(open_, np.inf, high))


def _truth(c: Any, boxes: dict[Symbol, Range]) -> tuple[np.ndarray, np.ndarray]:
    """(surely true, maybe true) on each box."""
    shape = next(iter(boxes.values())).low.shape
    if c in (sp.true, sp.false):
        return np.full(shape, bool(c)), np.full(shape, bool(c))
    if isinstance(c, (sp.And, sp.Or)):
        parts = [_truth(a, boxes) for a in c.args]
        join = np.logical_and if isinstance(c, sp.And) else np.logical_or
        return reduce(join, [p[0] for p in parts]), reduce(join, [p[1] for p in parts])
    if isinstance(c, sp.Not):
        surely, maybe = _truth(c.args[0], boxes)
        return ~maybe, ~surely
    if not isinstance(c, sp.core.relational.Relational):
        raise NoClosedForm(c, "whether it holds on a box is not known")
    d = _sum(_of(c.lhs, boxes), _product(_of(c.rhs, boxes), Range(-np.ones(shape), -np.ones(shape))))
    if isinstance(c, (sp.StrictGreaterThan, sp.GreaterThan)):
        return d.low > 0, d.high >= 0
    if isinstance(c, (sp.StrictLessThan, sp.LessThan)):
        return d.high < 0, d.low <= 0
    possible = (d.low <= 0) & (d.high >= 0)
    return (np.full(shape, False), possible) if isinstance(c, sp.Eq) else (~possible, np.full(shape, True))
