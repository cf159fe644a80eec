"""f rises in z_i: then E[f z_i] > 0, and E[f (v^2 - 1)] > 0 for an f that rises in |v|: signs without any integral.

For a product prod_j z_j of other variables the same holds on each orthant of them, as long as the direction of f times
the sign of that product is everywhere the same: sign(z1*z2 - 1) rises in z2 where z1 > 0 and falls where z1 < 0, so
that E[f z1 z2] > 0. Source: E[f v] = E[(f(t) - f(-t)) t]/2, t = |v|, and Chebyshev's inequality for monotone functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from random import Random

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Pow,
    Rational,
    S,
    Symbol,
    asinh,
    atan,
    ceiling,
    cos,
    cosh,
    diff,
    erf,
    erfc,
    exp,
    expand,
    floor,
    log,
    sign,
    sin,
    sinh,
    tanh,
)

from hermitex.exponents.labels.label_levels import sign_of, takes_two_values
from hermitex.exponents.labels.sign_and_size import sign_almost_everywhere
from hermitex.symbolic.budget import checkpoint, unless_refused
from hermitex.symbolic.formula_size import DECIDED, operations
from hermitex.symbolic.pieces import pieces

_RISING = (sign, Heaviside, floor, ceiling, tanh, erf, atan, sinh, asinh, exp, log)
_SMOOTH = (Add, Mul, Pow, tanh, erf, erfc, atan, sinh, asinh, exp, log, sin, cos, cosh)


def sign_by_rise(f: Expr, variables: Sequence[Symbol], a: Sequence[int]) -> tuple[int, str] | None:
    """The sign of E[f He_a] and why, for an a with entries 0 and 1 and at most one 2; None where it was not seen.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> sign_by_rise(sign(z1*z2 - 1), (z1, z2), (1, 1))
    (1, 'its mean given z rises with z1 z2')
    >>> sign_by_rise(Max(z1, z2), (z1, z2), (0, 1)), sign_by_rise(sign(z1), (z1, z2), (0, 1)) is None
    ((1, 'its mean given z rises with z2'), True)
    """
    if max(a, default=0) > 2 or sum(1 for n in a if n == 2) > 1 or not any(a) or operations(f) > DECIDED:
        return None
    odd = [i for i, n in enumerate(a) if n == 1]
    squared = next((i for i, n in enumerate(a) if n == 2), None)
    for at in odd if squared is None else [squared]:
        found = _direction(f, variables, odd, at, modulus=squared is not None)
        if found:
            with_ = [*(f"|{variables[i]}|" for i in [at] if squared is not None), *(str(variables[i]) for i in odd)]
            return found, f"its mean given z {'rises' if found > 0 else 'falls'} with {' '.join(with_)}"
    return None


def _direction(f: Expr, variables: Sequence[Symbol], odd: Sequence[int], at: int, *, modulus: bool) -> int:
    """The direction of f in z_at, or in |z_at|, times the signs of the other odd variables, where it is the same always."""
    inside = [i for i, v in enumerate(variables) if f.has(v) and i != at]
    t = {i: Dummy(f"t{i}", positive=True) for i in inside}
    along = Dummy("t", positive=True) if modulus else Dummy("x", real=True)
    seen = set()
    for pattern in product((1, -1), repeat=len(inside)):
        checkpoint("looking for what a label rises with")
        side = dict(zip(inside, pattern, strict=True))
        swap = {variables[i]: s*t[i] for i, s in side.items()}
        for s in (1, -1) if modulus else (1,):
            d = weak_sign(f.xreplace(swap | {variables[at]: s*along}), along)
            if d is None:
                return 0
            # A function that does not hold z_j is not odd in it: both signs of s_j then appear and nothing is proved.
            seen.add(d*prod(side.get(i, 0) for i in odd if i != at))
    seen.discard(0)
    if len(seen) != 1 or not _moves(f, variables, at, modulus=modulus):
        return 0
    return seen.pop()


def weak_sign(f: Expr, t: Symbol) -> int | None:
    """+1 where f does not fall in t, -1 where it does not rise, 0 where it does not hold t, None where it was not seen.

    Symbols are real, or positive, as they are declared.

    Examples
    --------
    >>> t, s = Dummy("t", positive=True), Dummy("s", positive=True)
    >>> weak_sign(tanh(s*t - 1) + t**2, t), weak_sign(exp(-t), t), weak_sign(t - t**2, t) is None
    (1, -1, True)
    """
    if not f.has(t):
        return 0
    if isinstance(f, Add):
        found = _common([weak_sign(a, t) for a in f.args])
        return found if found is not None else _by_slope(f, t)
    if isinstance(f, (Max, Min)):
        return _common([weak_sign(a, t) for a in _undominated(f)])
    if isinstance(f, _RISING):
        return weak_sign(f.args[0], t)
    if isinstance(f, Abs):
        inner = f.args[0]
        return _times(weak_sign(inner, t), _side(inner))
    if isinstance(f, erfc):
        return _times(weak_sign(f.args[0], t), -1)
    if isinstance(f, cosh):
        return _times(weak_sign(f.args[0], t), _side(f.args[0]))
    found = _of_power(f, t) if isinstance(f, Pow) else _of_product(f, t) if isinstance(f, Mul) else None
    return found if found is not None else _by_slope(f, t)


def strict_sign(f: Expr, t: Symbol) -> int:
    """1 or -1 where f is proved to rise, or to fall, strictly with t; 0 says nothing.

    An analytic function that does not fall is constant or rises strictly, and so does a sum with what does not fall.

    Examples
    --------
    >>> t = Dummy("t", real=True)
    >>> strict_sign(t + sinh(t), t), strict_sign(-t - floor(t), t), strict_sign(t**2 + exp(t), t), strict_sign(floor(t), t)
    (1, -1, 0, 0)
    """
    found = weak_sign(f, t) if f.has(t) and operations(f) <= DECIDED else None
    parts = (f, *(Add.make_args(f) if isinstance(f, Add) else ()))
    return found if found and any(weak_sign(a, t) and _smooth(a) and takes_two_values(a, t) for a in parts) else 0


def injective_in_modulus(u: Expr, x: Symbol) -> bool:
    """True if u, known to be even, is proved strictly monotone in |x|: on x > 0, where one smooth branch must hold."""
    t = Dummy("t", positive=True)
    found = unless_refused(lambda: pieces(u, x, S.Zero, S.Infinity))
    return found is not None and len(found) == 1 and strict_sign(found[0].expr.xreplace({x: t}), t) != 0


def _common(parts: Sequence[int | None]) -> int | None:
    found = {p for p in parts if p != 0}
    return None if None in found or len(found) > 1 else found.pop() if found else 0


def _times(d: int | None, side: int) -> int | None:
    """The direction of a quantity times one of known sign; None where either is not known."""
    return d if d in (0, None) else d*side or None


def _side(f: Expr) -> int:
    """1 or -1 if f >= 0 or f <= 0, else 0."""
    return 1 if f.is_nonnegative else -1 if f.is_nonpositive else sign_almost_everywhere(f)


def _of_product(f: Mul, t: Symbol) -> int | None:
    """Factors of known signs, whose moduli go the same way."""
    rest, moving = f.as_independent(t, as_Add=False)
    if not isinstance(moving, Mul):
        return _times(weak_sign(moving, t), _side(rest))
    sides = [_side(a) for a in moving.args]
    sizes = _common([_times(weak_sign(a, t), s) for a, s in zip(moving.args, sides, strict=True)])
    return _times(sizes, _side(rest)*prod(sides))


def _of_power(f: Pow, t: Symbol) -> int | None:
    base, n = f.args
    if base.has(t) and n.is_real and not n.has(t):
        if sign_of(base) == 1 or (n.is_positive and base.is_nonnegative):
            return _times(weak_sign(base, t), _side(n))
        if n.is_Integer and n > 0:
            return weak_sign(base, t) if n % 2 else _times(weak_sign(base, t), _side(base))
    return _times(weak_sign(n, t), _side(base - 1)) if base.is_positive and not base.has(t) else None


def _undominated(f: Expr) -> list[Expr]:
    """The arguments of an extremum that no other one always exceeds."""
    kept: list[Expr] = list(f.args)
    for a in f.args:
        gaps = (expand(b - a) if isinstance(f, Max) else expand(a - b) for b in kept if b != a)
        if any(g.is_nonnegative for g in gaps):
            kept.remove(a)
    return kept


def _by_slope(f: Expr, t: Symbol) -> int | None:
    if not _smooth(f):
        return None  # a jump or a pole is not in the slope
    slope = diff(f, t)
    whole = expand(slope)
    if whole.is_nonnegative or whole.is_nonpositive:
        return 1 if whole.is_nonnegative else -1
    return sign_almost_everywhere(whole) or sign_almost_everywhere(slope.factor()) or None


def _smooth(f: Expr) -> bool:
    if not f.args:
        return True
    if isinstance(f, Pow) and not (f.exp.is_Integer and f.exp > 0) and sign_of(f.base) < 1:
        return False
    if isinstance(f, log) and sign_of(f.args[0]) < 1:
        return False
    return isinstance(f, _SMOOTH) and all(_smooth(a) for a in f.args if isinstance(a, Expr))


def _moves(f: Expr, variables: Sequence[Symbol], at: int, *, modulus: bool) -> bool:
    """Does f differ between points that differ in z_at, for more than one choice of the others?"""
    draw, seen = Random(11), 0
    for k in range(40):
        near: dict[Symbol, Expr] = {v: Rational(round(100*draw.gauss(0, (1, 3)[k % 2])), 97) for v in variables}
        size = abs(near.pop(variables[at]))
        sides = (size, size + 1, size + 4) if modulus else (-size - 4, -size - 1, size + 1, size + 4)
        seen += takes_two_values(f.xreplace(near), variables[at], sides)
        if seen > 1:
            return True
    return False
