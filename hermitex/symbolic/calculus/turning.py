"""{s : A(s) = 0}: where the sides of an equality may turn, as a parameter moves and the others stand still.

On either side of such a place a side may be another formula: A is what a switch compares with 0, the base of a root or of
a pole, the argument of a logarithm, or what an inverse function meets the end of its range at. A point is needed between
any two of them; where exactly they are does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import isfinite
from typing import Any

import sympy as sp
from sympy import Expr, Rational, Symbol, lambdify, preorder_traversal
from sympy.core.function import AppliedUndef

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.pieces import switch_arguments

_STEPS = (sp.floor, sp.ceiling, sp.frac)
_INVERSE = (sp.asin, sp.acos, sp.atan, sp.acot, sp.asec, sp.acsc, sp.acosh, sp.atanh, sp.LambertW, sp.erfinv, sp.erfcinv)
_PER_DECADE, _SMALLEST, _LARGEST = 12, -4, 6  # the grid on which changes of sign are looked for
_BISECTIONS = 60
MOST = 12  # places a parameter


def turning(*sides: Expr) -> tuple[Expr, ...]:
    """The expressions in the parameters at whose zeros a side may turn; bound variables stand at 0, where they are centred.

    Examples
    --------
    >>> from sympy import Abs, Max, sqrt
    >>> from hermitex.symbols import kappa, mu_1
    >>> turning(Abs(kappa - 3) + sqrt(mu_1))
    (mu_1, kappa - 3)
    """
    found: dict[Expr, None] = {}
    for side in sides:
        for part in (side, *(n.body for n in side.atoms(Expectation))):
            for a in _compared(part):
                centred = a.xreplace({b: sp.S.Zero for b in a.atoms(Bound)})
                if centred.free_symbols and not centred.has(Expectation, AppliedUndef, sp.nan, sp.zoo):
                    found[centred] = None
    return tuple(sorted(found, key=sp.default_sort_key))


def _compared(expr: Expr) -> Iterable[Expr]:
    yield from switch_arguments(expr)
    for e in preorder_traversal(expr):
        if isinstance(e, _STEPS):
            yield from (e.args[0] - k for k in (-1, 1, 2))
        elif isinstance(e, sp.Pow) and e.base.free_symbols and not (e.exp.is_Integer and e.exp.is_positive):
            yield e.base
        elif isinstance(e, (sp.log, sp.tan, sp.cot)):
            yield e.args[0]
        elif isinstance(e, _INVERSE):
            u = e.args[0]
            yield from (u, u - 1, u + 1)
            yield from (u.diff(s) for s in u.free_symbols if not isinstance(s, Bound))  # asin(sin(s)) turns where cos(s) = 0


def places(args: Iterable[Expr], symbol: Symbol, others: Mapping[Symbol, Expr]) -> list[Rational]:
    """Where one of the expressions changes sign as the symbol moves, near enough; in increasing order, few if there are many."""
    found: list[float] = []
    for a in args:
        if symbol not in a.free_symbols:
            continue
        checkpoint("looking for the places where an equality may turn")
        found += _sign_changes(a.xreplace({s: v for s, v in others.items() if s != symbol}), symbol)
    found = sorted(found, key=abs)[:MOST] + sorted(found, key=abs)[MOST:][-2:]
    distinct: list[float] = []
    for p in sorted(found):
        if not distinct or p - distinct[-1] > 1e-9*max(1.0, abs(p)):
            distinct.append(p)
    return [Rational(p).limit_denominator(10**6) for p in distinct]


def between(turns: list[Rational]) -> list[Rational]:
    """A point in each interval that the places leave."""
    if not turns:
        return []
    ends = [turns[0] - _step(turns[0]), turns[-1] + _step(turns[-1])]
    return [ends[0], *(a + (b - a)*Rational(37, 100) for a, b in pairwise(turns)), ends[1]]


def _step(place: Rational) -> Rational:
    return Rational(31, 100)*max(Rational(1), abs(place))


def _sign_changes(expr: Expr, x: Symbol) -> list[float]:
    if expr.is_polynomial(x) and expr.free_symbols == {x}:
        try:
            return [float(r) for r in sp.Poly(expr, x).nroots(n=15, maxsteps=100) if abs(sp.im(r)) < 1e-9*(1 + abs(r))]
        except (sp.polys.polyerrors.PolynomialError, sp.polys.polyerrors.CoercionFailed, sp.NoConvergence, TypeError, ValueError):
            pass
    f = _numeric(expr, x)
    sizes = [10.0**(k/_PER_DECADE) for k in range(_SMALLEST*_PER_DECADE, _LARGEST*_PER_DECADE + 1)]
    grid = [-v for v in reversed(sizes)] + [0.0] + sizes
    values = [f(g) for g in grid]
    found = [g for g, v in zip(grid, values, strict=True) if v == 0]
    for (a, u), (b, v) in pairwise(zip(grid, values, strict=True)):
        if (u is None) != (v is None):
            found.append(_bisected(lambda t: f(t) is None, a, b))  # the edge of where it is real
        elif u is not None and v is not None and u*v < 0:
            found.append(_bisected(lambda t: (f(t) or 0.0) > 0, a, b))
    return found


def _numeric(expr: Expr, x: Symbol) -> Any:
    """The expression as a function of floats, None where it has no real value."""
    g = lambdify(x, expr, "mpmath")

    def value(at: float) -> float | None:
        try:
            found = complex(g(at))
        except (ValueError, TypeError, ArithmeticError, NameError, AttributeError):
            return None
        return found.real if isfinite(found.real) and abs(found.imag) <= 1e-12*abs(found) else None

    return value


def _bisected(test: Any, a: float, b: float) -> float:
    here = test(a)
    for _ in range(_BISECTIONS):
        middle = (a + b)/2
        if middle in (a, b):
            break
        a, b = (middle, b) if test(middle) == here else (a, middle)
    return b
