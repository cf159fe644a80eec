"""{s : A(s) = 0}: where the sides of an equality may turn, as a parameter moves and the others stand still.

On either side of such a place a side may be another formula: A is what a switch compares with 0, the base of a root or of
a pole, the argument of a logarithm, or what an inverse function meets the end of its range at. A point is needed between
any two of them; where exactly they are does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import sympy as sp
from sympy import Expr, Integral, Rational, Symbol, preorder_traversal
from sympy.core.function import AppliedUndef

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.arithmetic import fabs, isfinite, mp, mpf
from hermitex.symbolic.breaks.algebraic import near_roots
from hermitex.symbolic.breaks.switches import STEPS, switch_arguments
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.program import StraightLine
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.precise import MPMATH
from hermitex.symbolic.sums import ArraySum, Index

INVERSE = (sp.asin, sp.acos, sp.atan, sp.acot, sp.asec, sp.acsc, sp.acosh, sp.atanh, sp.LambertW, sp.erfinv, sp.erfcinv)
_FIVE = tuple((sp.Rational(x), sp.Rational(w)) for x, w in (("0", "8/15"), ("1.35563", "0.222076"), ("-1.35563", "0.222076"),
                                                            ("2.85697", "0.0112574"), ("-2.85697", "0.0112574")))
_PER_DECADE, _SMALLEST, _LARGEST = 12, -4, 6  # the grid on which changes of sign are looked for
_BISECTIONS = 60
_HUGE = 1e300  # what is larger is real all the same, and what is smaller than its inverse is not 0
_SHORT = 40  # operations of a polynomial whose roots are found as such
MOST = 12  # places a parameter
FEW = 40  # expressions looked at, the shortest first


def turning(*sides: Expr) -> tuple[Expr, ...]:
    """The expressions in the parameters at whose zeros a side may turn, with numbers for the bound variables.

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
            for a in compared(part):
                rough = _summed(a).xreplace(dict.fromkeys(a.atoms(Index), sp.S.One))
                for numbers in _within(rough):
                    for number in _at_ends(rough.xreplace(numbers), side):
                        if number.free_symbols and not number.has(Expectation, ArraySum, AppliedUndef, sp.nan, sp.zoo):
                            found[number] = None
    return tuple(sorted(found, key=lambda a: (a.count_ops(), sp.default_sort_key(a)))[:FEW])


def _within(a: Expr) -> list[dict[Bound, Expr]]:
    """Numbers for the bound variables: where they are centred, and near there, as (mu - 40) z is 0 at 0 for every mu."""
    bound = sorted(a.atoms(Bound), key=str)
    return [dict.fromkeys(bound, sp.S.Zero), {b: Rational(10 + 3*i, 10) for i, b in enumerate(bound)}][:1 + bool(bound)]


def _at_ends(a: Expr, side: Expr) -> list[Expr]:
    """`a` with the variable of an integral at the ends of its range, where a kink enters it, and inside; any other that is
    bound: nothing."""
    within = [a]
    for x, low, high in (span for e in side.atoms(Integral) for span in e.limits if len(span) == 3):
        ends = [end for end in (low, high) if end.is_finite is not False]
        inside = (low + high)/2 if len(ends) == 2 else ends[0] + (1 if ends[0] == low else -1) if ends else sp.S.One
        within += [u.xreplace({x: at}) for u in within if x in u.free_symbols for at in (*ends, inside)]
    return [u for u in within if u.free_symbols <= side.free_symbols]


def _summed(expr: Expr) -> Expr:
    """Averages by the rule of five nodes, which tells roughly where a switch of an average turns."""
    if isinstance(expr, Expectation) and len(expr.bound) == 1:
        scale = sp.sqrt(expr.covariance[0, 0])
        return sp.Add(*(w*_summed(expr.body.xreplace({expr.bound[0]: x*scale})) for x, w in _FIVE))
    if not expr.args or not expr.has(Expectation) or isinstance(expr, Expectation):
        return expr
    return expr.func(*map(_summed, expr.args))


def compared(expr: Expr) -> Iterable[Expr]:
    """What switches, roots, poles and branches of an expression compare with zero."""
    yield from switch_arguments(expr)
    for e in preorder_traversal(expr):
        if isinstance(e, STEPS):
            yield from (e.args[0] - k for k in (-1, 1, 2))
        elif isinstance(e, sp.Pow) and e.base.free_symbols and not (e.exp.is_Integer and e.exp.is_positive):
            yield e.base
        elif isinstance(e, (sp.log, sp.tan, sp.cot)):
            yield e.args[0]
        elif isinstance(e, INVERSE):
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
        found += _sign_changes(a, symbol, others)
    found = sorted(found, key=abs)[:MOST] + sorted(found, key=abs)[MOST:][-2:]
    distinct: list[float] = []
    for p in sorted(found):
        if not distinct or p - distinct[-1] > 1e-9*max(1.0, abs(p)):
            distinct.append(p)
    return [Rational(repr(p)) for p in distinct]


def between(turns: list[Rational]) -> list[Rational]:
    """A point in each interval that the places leave."""
    if not turns:
        return []
    ends = [turns[0] - _step(turns[0]), turns[-1] + _step(turns[-1])]
    return [ends[0], *(a + (b - a)*Rational(37, 100) for a, b in pairwise(turns)), ends[1]]


def _step(place: Rational) -> Rational:
    return Rational(31, 100)*max(Rational(1), abs(place))


def _sign_changes(expr: Expr, x: Symbol, others: Mapping[Symbol, Expr]) -> list[float]:
    if expr.count_ops() < _SHORT and expr.is_polynomial(x):
        p = sp.Poly(expr.xreplace({s: v for s, v in others.items() if s != x}), x)
        if p.domain.is_QQ or p.domain.is_ZZ:
            if p.degree() < 1:
                return []
            if found := near_roots(p):
                return [float(sp.re(r)) for r in found if abs(sp.im(r)) < 1e-9*(1 + abs(r))]
    f = _numeric(expr, x, others)
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


def _numeric(expr: Expr, x: Symbol, others: Mapping[Symbol, Expr]) -> Callable[[float], float | None]:
    """The expression as a function of a float, None where it has no real value."""
    fixed = sorted(expr.free_symbols - {x}, key=str)
    numbers = [mpf(float(others[s])) for s in fixed]
    try:
        g = None if expr.has(Expectation) else StraightLine(expr, [x, *fixed], MPMATH)
    except HermitexError:
        g = None
    if g is None:
        return lambda at: None

    def value(at: float) -> float | None:
        try:
            found = mp.mpc(g(mpf(at), *numbers))
        except BudgetExceeded:
            raise
        except (ValueError, TypeError, ArithmeticError, HermitexError):
            return None
        if not isfinite(found) or abs(found.imag) > 1e-12*abs(found):
            return None
        size = min(max(fabs(found.real), 1/_HUGE), _HUGE) if found.real else 0
        return float(size if found.real > 0 else -size)

    return value


def _bisected(test: Callable[[float], bool], a: float, b: float) -> float:
    here = test(a)
    for _ in range(_BISECTIONS):
        middle = (a + b)/2
        if middle in (a, b):
            break
        a, b = (middle, b) if test(middle) == here else (a, middle)
    return b
