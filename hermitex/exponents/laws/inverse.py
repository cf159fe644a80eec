"""{t: F(u, t) = y} = {t_1(u, y), ..., t_m(u, y)}: the level set of F on a slice of fixed u, in closed form.

The quantity t is dug out of the expression step by step: sums and products with what u determines, injective functions,
powers, |.|, and polynomials of degree two in one sub-expression, which branch. Each solution carries the expressions
that must be positive for it to exist; where one of them vanishes two solutions meet (a fold), or one runs off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Mul,
    Piecewise,
    Poly,
    Pow,
    S,
    Symbol,
    acosh,
    asinh,
    atan,
    atanh,
    cosh,
    erf,
    erfinv,
    exp,
    log,
    pi,
    preorder_traversal,
    sign,
    sinh,
    tan,
    tanh,
)

from hermitex.kernels.arrays import lambdify

_DEEPEST = 12


@dataclass(frozen=True)
class Solution:
    """t as an expression of u and y, and what must be positive for it to exist."""

    t: Expr
    guards: tuple[Expr, ...]


def solutions(form: Expr, u: Symbol, t: Symbol, y: Symbol) -> list[Solution] | None:
    """Every t with F(u, t) = y, or None if F is not inverted in closed form.

    Examples
    --------
    >>> from sympy import symbols
    >>> u, t, y = symbols("u t y", real=True)
    >>> [s.t for s in solutions(u*t + u**4, u, t, y)]
    [(-u**4 + y)/u]
    """
    found = _solved(form, Solution(y, ()), t, _DEEPEST)
    return found if found is not None and _checked(form, found, (u, t, y)) else None


def _solved(e: Expr, at: Solution, t: Symbol, deep: int) -> list[Solution] | None:
    """The solutions t of e(t) = at.t."""
    if e == t:
        return [at]
    if deep == 0:
        return None
    steps = _step(e, at, t)
    if steps is None:
        return None
    found: list[Solution] = []
    for inner, value in steps:
        more = _solved(inner, value, t, deep - 1)
        if more is None:
            return None
        found += more
    return found


def _step(e: Expr, at: Solution, t: Symbol) -> list[tuple[Expr, Solution]] | None:
    """One operation undone: pairs (inner expression, its value)."""
    y, guards = at.t, at.guards
    if isinstance(e, Add):
        rest, mine = e.as_independent(t, as_Add=True)
        if rest != 0:
            return [(mine, Solution(y - rest, guards))]
        return _polynomial(e, at, t)
    if isinstance(e, Mul):
        factor, mine = e.as_independent(t, as_Add=False)
        if factor != 1:
            return [(mine, Solution(y / factor, guards))]
        return _polynomial(e, at, t)
    if isinstance(e, Pow) and not e.exp.has(t):
        return _power(e, at)
    if isinstance(e, Pow) and not e.base.has(t) and e.base.is_positive and e.base != 1:
        return [(e.exp, Solution(log(y) / log(e.base), (*guards, y)))]
    return _function(e, at)


def _function(e: Any, at: Solution) -> list[tuple[Expr, Solution]] | None:
    y, guards = at.t, at.guards
    inverses: dict[Any, list[tuple[Expr, tuple[Expr, ...]]]] = {
        exp: [(log(y), (y,))], log: [(exp(y), ())], Abs: [(y, (y,)), (-y, (y,))], tanh: [(atanh(y), (1 - y**2,))],
        sinh: [(asinh(y), ())], atan: [(tan(y), (pi**2 / 4 - y**2,))], erf: [(erfinv(y), (1 - y**2,))],
        cosh: [(acosh(y), (y - 1,)), (-acosh(y), (y - 1,))],
    }
    if e.func not in inverses or len(e.args) != 1:
        return None
    return [(e.args[0], Solution(value, (*guards, *more))) for value, more in inverses[e.func]]


def _power(e: Pow, at: Solution) -> list[tuple[Expr, Solution]] | None:
    """base^(p/q) = y: sign by sign; an even root is positive by convention."""
    y, guards, n = at.t, at.guards, e.exp
    if not n.is_Rational or n == 0:
        return None
    root = Abs(y) ** (1 / n)
    if n.q % 2 == 0:
        return [(e.base, Solution(root, (*guards, y)))]
    if n.q != 1:
        return None  # SymPy's cube root of a negative number is not real
    if n.p % 2 == 0:
        return [(e.base, Solution(s * root, (*guards, y))) for s in (1, -1)]
    return [(e.base, Solution(sign(y) * root, guards))]


def _polynomial(e: Expr, at: Solution, t: Symbol) -> list[tuple[Expr, Solution]] | None:
    """a q^2 + b q + c = y with q a sub-expression, by the form of the roots that does not cancel."""
    for q, a, b, c in _quadratics(e, t):
        y, guards = at.t - c, at.guards
        if a == 0:
            return [(q, Solution(y / b, guards))]
        if b == 0:
            return [(q, Solution(s * (y / a) ** S.Half, (*guards, y / a))) for s in (1, -1)]
        d = b**2 + 4 * a * y
        side = Piecewise((1, b >= 0), (-1, True)) if b.free_symbols else (1 if b.is_nonnegative else -1)
        half = -(b + side * d**S.Half) / 2
        return [(q, Solution(half / a, (*guards, d))), (q, Solution(-y / half, (*guards, d)))]
    return None


def _quadratics(e: Expr, t: Symbol) -> Iterator[tuple[Expr, Expr, Expr, Expr]]:
    """(q, a, b, c) with e = a q^2 + b q + c."""
    powers = sorted({p.exp for p in e.atoms(Pow) if p.base == t and p.exp.is_Integer and p.exp > 0})
    candidates: list[Expr] = [t, *[t**p for p in powers], Abs(t)]
    candidates += [s for s in preorder_traversal(e) if isinstance(s, Expr) and s.has(t) and s != e and not s.is_Atom]
    for q in dict.fromkeys(candidates):
        w = Dummy("w", real=True)
        form = e.subs(q, w)
        if q == Abs(t):
            form = form.subs(t**2, w**2)
        if form.has(t) or not form.is_polynomial(w):
            continue
        poly = Poly(form, w)
        if poly.degree() <= 2:
            yield q, poly.coeff_monomial(w**2), poly.coeff_monomial(w), poly.coeff_monomial(1)


def _checked(form: Expr, found: Sequence[Solution], names: tuple[Symbol, Symbol, Symbol]) -> bool:
    """At points taken at random, exactly one solution is the point itself and the others have its label too."""
    u, t, y = names
    f = lambdify((u, t), form, modules=["numpy", "scipy"])
    draw = np.random.default_rng(3)
    us, ts = draw.normal(size=(2, 60))
    with np.errstate(all="ignore"):
        ys = np.asarray(f(us, ts), dtype=float)
        hits = np.zeros(len(us))
        for s in found:
            values = lambdify((u, y), [s.t, *s.guards], modules=["numpy", "scipy"])(us, ys)
            point, *guards = (np.broadcast_to(np.asarray(v, dtype=float), us.shape) for v in values)
            live = np.all([g > 0 for g in guards], axis=0) & np.isfinite(point) if guards else np.isfinite(point)
            if not np.allclose(f(us[live], point[live]), ys[live], rtol=1e-6, atol=1e-9):
                return False
            hits += live & (np.abs(point - ts) < 1e-6 * (1 + np.abs(ts)))
    return bool(np.all(hits == 1))

