"""{s : A(s) = 0}: where the sides of an equality may turn, as a parameter moves and the others stand still.

On either side of such a place a side may be another formula: A is what a switch compares with 0, the base of a root or of
a pole, the argument of a logarithm, or what an inverse function meets the end of its range at. A point is needed between
any two of them that part other formulas; where exactly they are does not matter. Between two others a side is the same formula
where each A has the same sign and has touched 0 as often, but for twice: sqrt(u^2) is u, then -u, then u.
To any number of digits tanh(10^6 s) turns as sign(s) does, and is no sign only where its argument is of order 1: a point is
needed there, too.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, product
from math import exp as dexp
from math import inf, pi, prod
from typing import Any

import sympy as sp
from sympy import Expr, Integral, Rational, Symbol, preorder_traversal
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.arithmetic import isfinite, mpf
from hermitex.symbolic.breaks import switches
from hermitex.symbolic.breaks.algebraic import near_roots
from hermitex.symbolic.breaks.switches import STEPS, switch_arguments
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Index
from hermitex.symbolic.precise import MPMATH

INVERSE = (sp.asin, sp.acos, sp.atan, sp.acot, sp.asec, sp.acsc, sp.acosh, sp.atanh, sp.LambertW, sp.erfinv, sp.erfcinv)
_JUMPS = (sp.sign, sp.Heaviside, sp.KroneckerDelta, sp.acot, sp.atan2, sp.arg, sp.Pow, Relational, *STEPS)
SATURATING = (sp.exp, sp.tanh, sp.coth, sp.sech, sp.csch, sp.cosh, sp.sinh, sp.erf, sp.erfc, sp.erfi)  # faster than any power
_STEEP = 10  # a number, or its inverse, beyond which draws near 1 may all be where such a function has come to its limit
_RATE = 0.4  # E g(z) = int (g(e^t) + g(-e^t)) e^t phi(e^t) dt by steps of so much: to 4 digits, and steep as g may be about 0
_LINE = tuple((sp.Rational(f"{side*x:.9e}"), sp.Rational(f"{_RATE*x*dexp(-x*x/2)/(2*pi)**0.5:.9e}"))
              for k in range(-20, 5) for x in (dexp(_RATE*k),) for side in (1, -1))
_FOUR = tuple((sp.Rational(x), sp.Rational(w)) for x, w in (("0.741964", "0.454124"), ("-0.741964", "0.454124"),
                                                            ("2.33441", "0.045876"), ("-2.33441", "0.045876")))
_PER_DECADE, _SMALLEST, _LARGEST = 12, -4, 6  # the grid on which changes of sign are looked for
_SUMMED = 3  # variables of an average that is summed
_FARTHEST = 40  # decades to which it goes on, a number in each, while the values move: log(s) = 50 at 5 10^21
_BESIDE = (0.0, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0)  # of where a polynomial inside stands: what is narrow is narrow there
_BISECTIONS = 60
_NEAR = Rational(1, 10**9)  # relative: so near two places are one, unless both are exact
_NARROW = Rational(1, 10**14)  # or both of one expression, which may have another sign between them
_TOUCHES = 1e-10  # of the values beside it
_GOLDEN = (3 - 5**0.5)/2
_WIDE = 1000  # the size of a number that is preferred to another where both are as near
_HUGE = 1e300  # what is larger is real all the same, and what is smaller than its inverse is not 0
_SHORT = 40  # operations of a polynomial whose roots are found as such
FEW = 12  # points of a line, to which formulas that stand on several intervals are tried on two of these
MOST = 400  # expressions looked at, the shortest first


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
            for a in dict.fromkeys((*compared(part), *_crossed(part))):
                if a.has(Expectation) and (a.is_positive or a.is_negative):
                    continue
                rough = _summed(a).xreplace(dict.fromkeys(a.atoms(Index), sp.S.One))
                for numbers in _within(rough):
                    for number in _at_ends(rough.xreplace(numbers), side):
                        if number.free_symbols and not number.has(Expectation, ArraySum, AppliedUndef, sp.nan, sp.zoo):
                            found[number] = None
    return tuple(sorted(found, key=lambda a: (a.count_ops(), sp.default_sort_key(a))))


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
    """Averages by sums, which tell roughly where a switch of an average turns: of one variable to a few digits, of more by the
    rule of four nodes."""
    if isinstance(expr, Expectation) and (len(expr.bound) == 1 or (len(expr.bound) <= _SUMMED and expr.independent)):
        rule = _LINE if len(expr.bound) == 1 and not expr.body.has(Expectation) else _FOUR
        scales = [sp.sqrt(expr.covariance[i, i]) for i in range(len(expr.bound))]
        nodes = product(rule, repeat=len(scales))
        return sp.Add(*(prod(w for _, w in node)*_summed(expr.body.xreplace(
            {b: x*scale for b, scale, (x, _) in zip(expr.bound, scales, node, strict=True)})) for node in nodes))
    if not expr.args or not expr.has(Expectation) or isinstance(expr, Expectation):
        return expr
    return expr.func(*map(_summed, expr.args))


def compared(expr: Expr) -> Iterable[Expr]:
    """What switches, roots, poles and branches of an expression compare with zero."""
    yield from switch_arguments(expr)
    for e in preorder_traversal(expr):
        if isinstance(e, STEPS):
            yield from (e.args[0] - k for k in (-1, 1, 2))
        elif isinstance(e, sp.KroneckerDelta):
            yield e.args[0] - e.args[1]
        elif isinstance(e, sp.Pow) and e.base.is_zero:
            yield e.exp
        elif isinstance(e, sp.Pow) and e.base.free_symbols and not (e.exp.is_Integer and e.exp.is_positive):
            yield e.base
        elif isinstance(e, (sp.log, sp.tan, sp.cot)):
            yield e.args[0]
        elif isinstance(e, INVERSE):
            u = e.args[0]
            yield from (u, u - 1, u + 1)
            yield from (u.diff(s) for s in u.free_symbols if not isinstance(s, Bound))  # asin(sin(s)) turns where cos(s) = 0


def jumps(*sides: Expr) -> Iterator[list[Expr]]:
    """For each jump the equations in the parameters under which it compares 0 with 0, whatever the bound variables are.

    Examples
    --------
    >>> from sympy import Heaviside, sign
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import kappa, z
    >>> list(jumps(Heaviside(kappa - 1), E(sign(kappa*z)**2, z), E(sign(1 + kappa*z), z)))
    [[kappa - 1], [kappa]]
    """
    found: dict[tuple[Expr, ...], None] = {}
    for side in sides:
        for e in sorted((e for e in side.atoms(*_JUMPS) if not e.is_Pow or e.base.is_zero), key=sp.default_sort_key):
            for u in [e.exp] if e.is_Pow else [e.args[0] - e.args[1]] if isinstance(e, sp.KroneckerDelta) else switches.compared(e):
                for level in (u, u - 1, u + 1) if isinstance(e, STEPS) else (u,):
                    level = sp.Mul(*(f.args[0] if isinstance(f, sp.Abs) else f for f in sp.Mul.make_args(level)))
                    bound = sorted(level.free_symbols - side.free_symbols, key=str)
                    if not bound:
                        found[(level,)] = None
                    elif level.is_polynomial(*bound):
                        found[tuple(sp.Poly(level, *bound).coeffs())] = None
    yield from (list(equations) for equations in found if not any(q.is_nonzero for q in equations))


def _crossed(expr: Expr) -> Iterable[Expr]:
    """u - 1, u and u + 1 for each steep function of u: between their zeros it comes from one limit to the other."""
    for e in preorder_traversal(expr):
        if isinstance(e, SATURATING) and any(v and not 1 <= _STEEP*abs(v) <= _STEEP**2 for v in e.args[0].atoms(sp.Number)):
            yield from (e.args[0] + k for k in (-1, 0, 1))


class Ray:
    """One parameter moves and the others stand still: where on it the sides may turn, and a point for each formula that they are.

    Examples
    --------
    >>> from sympy import sin
    >>> from hermitex.symbols import kappa
    >>> Ray([kappa - 3, kappa + 5], kappa, {}).points()
    [-51/25, 393/100, -131/20]
    >>> len(Ray([sin(kappa)], kappa, {}).points())
    12
    """

    def __init__(self, args: Iterable[Expr], symbol: Symbol, others: Mapping[Symbol, Expr]) -> None:
        self.symbol = symbol
        self.profiles = [_Profile(a, symbol, others) for a in args if symbol in a.free_symbols]

    def nearest(self, allowed: Callable[[Expr], bool]) -> Expr | None:
        """The number of the grid at which the first of the expressions is nearest to 0."""
        sizes = ((abs(v), t) for t in self.profiles[0].grid if (v := self.profiles[0].value(t)) is not None)
        numbers = ((size, sp.Integer(round(t)) if self.symbol.is_integer else Rational(repr(t))) for size, t in sizes)
        # Min(a, b) - 50 is the same for every large a: it is nearest to 0 where b may bring it on.
        return min((n for n in numbers if allowed(n[1])), default=(0, None), key=lambda n: (n[0], abs(abs(n[1]) - _WIDE)))[1]

    @property
    def places(self) -> list[Rational]:
        """Where one of the expressions is 0, near enough, in increasing order."""
        distinct: list[tuple[Rational, bool, int]] = []
        for here, exact, which in sorted({(t, profile.exact, i) for i, profile in enumerate(self.profiles) for t in profile.zeros}):
            last, known, by = distinct[-1] if distinct else (-sp.oo, False, -1)
            near = 0 if exact and known else _NARROW if which == by else _NEAR
            if here - last > near*max(abs(here), abs(last)) or not distinct:
                distinct.append((here, exact, which))
        return [here for here, *_ in distinct]

    def points(self, more: Iterable[Rational] = ()) -> list[Rational]:
        """Numbers of which each stands for another formula, the nearest to 0 of those that would do; `more`: other places."""
        turns = sorted({*self.places, *more})
        signed = self.symbol.is_nonnegative or self.symbol.is_nonpositive
        if turns and signed:  # 0 is the end of the range: a place beside it has a point on either side
            turns = sorted({*turns, sp.S.Zero})
        values = between(turns)
        values += [c for p in self.profiles for c in p.hidden(values)]
        if self.symbol.is_integer:  # it may be another one at the place itself
            values = [sp.Integer(v) for v in sorted({round(v) + k for v in (*values, *turns) for k in (-1, 0, 1)})]
        groups: dict[tuple, list[Rational]] = {}
        for v in sorted(values, key=abs):
            groups.setdefault((v > 0, *(p.formula(float(v)) for p in self.profiles)), []).append(v)
        first, second = ([g[k] for g in groups.values() if len(g) > k] for k in (0, 1))
        ends_at_0 = self.symbol.is_zero is None and signed
        return [sp.S.Zero]*bool(turns and ends_at_0) + first + second[:max(0, FEW - len(first))]


def between(turns: list[Rational]) -> list[Rational]:
    """A point in each interval that the places leave."""
    if not turns:
        return []
    ends = [turns[0] - _step(turns[0]), turns[-1] + _step(turns[-1])]
    return [ends[0], *(a + (b - a)*Rational(37, 100) for a, b in pairwise(turns)), ends[1]]


def _step(place: Rational) -> Rational:
    return Rational(31, 100)*max(Rational(1), abs(place))


class _Profile:
    """The sign of an expression along a line, where it changes, and where it touches 0."""

    def __init__(self, expr: Expr, x: Symbol, others: Mapping[Symbol, Expr]) -> None:
        checkpoint("looking for the places where an equality may turn")
        self.expr, self.value, self.centres = expr, _numeric(expr, x, others), _centres(expr, x, others)
        self.grid = _grid(map(float, self.centres))
        found = _polynomial_zeros(expr, x, others)
        self.exact = found is not None and all(isinstance(t, Rational) for t in found)  # a step of 10^40 is narrower than a float
        self.zeros = [t if isinstance(t, Rational) else Rational(repr(t)) for t in (self._searched() if found is None else found)]
        self.places = sorted(map(float, self.zeros))
        self.touches = [t for (s, t), (_, u) in zip(pairwise([-inf, *self.places]), pairwise([*self.places, inf]), strict=True)
                        if self._sign(_middle(s, t)) == self._sign(_middle(t, u))]

    def formula(self, at: float) -> tuple[int | None, int]:
        """What it contributes there to which formula the sides are."""
        return self._sign(at), bisect(self.touches, at) % 2

    def hidden(self, values: Iterable[Rational]) -> Iterator[Rational]:
        """Centres where it has a sign that it has at none of the values: 1 - 10^40 |x - 9| is positive within less than a float."""
        signs = {self._sign(at) for at in (self.grid[0], *map(float, values))}
        yield from (c for c in self.centres if (sign := self._sign(float(c))) and sign not in signs)

    def _sign(self, at: float) -> int | None:
        v = self.value(at)
        return None if v is None else (v > 0) - (v < 0)

    def _searched(self) -> list[float]:
        f, grid = self.value, sorted({*self.grid, *_beyond(self.value)})
        values = [f(g) for g in grid]
        found = [g for g, v in zip(grid, values, strict=True) if v == 0]
        for (a, u), (b, v) in pairwise(zip(grid, values, strict=True)):
            if (u is None) != (v is None):
                found.append(_bisected(lambda t: f(t) is None, a, b))  # the edge of where it is real
            elif u is not None and v is not None and u*v < 0:
                found.append(_bisected(lambda t: (f(t) or 0.0) > 0, a, b))
        for (a, u), (_, here), (b, v) in zip(*(zip(grid[k:], values[k:], strict=True) for k in range(3)), strict=False):
            if u is None or here is None or v is None or not (u*here > 0 < here*v and abs(u) > abs(here) < abs(v)):
                continue
            way, small = (1 if here > 0 else -1), _TOUCHES*min(abs(u), abs(v))
            t, least = _lowest(lambda t, way=way: way*(f(t) or 0.0), a, b)  # type: ignore[misc]
            if least < -small:
                found += [_bisected(lambda t: (f(t) or 0.0) > 0, end, t) for end in (a, b)]
            elif least <= small:
                found.append(t)
        return found


def _middle(a: float, b: float) -> float:
    if -inf < a and b < inf:
        return (a + b)/2
    return 0.0 if a == -inf and b == inf else (b - max(1.0, abs(b)) if a == -inf else a + max(1.0, abs(a)))


def _polynomial_zeros(expr: Expr, x: Symbol, others: Mapping[Symbol, Expr], *, near: bool = False,
                      ) -> list[Any] | None:
    """The real zeros, `near`: the real parts of all; None for no polynomial, or where they are not found. Of a line: exact."""
    if expr.count_ops() >= _SHORT or not expr.is_polynomial(x):
        return None
    p = sp.Poly(expr.xreplace({s: v for s, v in others.items() if s != x}), x)
    if not (p.domain.is_QQ or p.domain.is_ZZ):
        return None
    if p.degree() < 2:
        return [-p.nth(0)/p.nth(1)] if p.degree() > 0 else []
    found = near_roots(p)
    return [float(sp.re(r)) for r in found if near or abs(sp.im(r)) < 1e-9*(1 + abs(r))] if found else None


def _centres(expr: Expr, x: Symbol, others: Mapping[Symbol, Expr]) -> list[Rational]:
    """Where the polynomials inside have their zeros, of a line exactly."""
    inner = (e for e in preorder_traversal(expr) if e.is_Add and e != expr and x in e.free_symbols)
    found = {c for e in inner for c in _polynomial_zeros(e, x, others, near=True) or ()}
    return sorted(c if isinstance(c, Rational) else Rational(repr(c)) for c in found)


def _grid(centres: Iterable[float]) -> list[float]:
    """Numbers of all sizes, and about the centres."""
    sizes = [10.0**(k/_PER_DECADE) for k in range(_SMALLEST*_PER_DECADE, _LARGEST*_PER_DECADE + 1)]
    return sorted({0.0, *sizes, *(-v for v in sizes), *(c + side*d for c in centres for d in _BESIDE for side in (1, -1))})


def _beyond(f: Callable[[float], float | None]) -> Iterator[float]:
    """Numbers of all sizes beyond those of the grid, as far as the function does not come to its limit."""
    for first, last in ((_LARGEST, _FARTHEST), (_SMALLEST, -_FARTHEST)):
        way = 1 if last > first else -1
        for side in (1, -1):
            before = f(side*10.0**first)
            for k in range(first + way, last + way, way):
                here = f(side*10.0**k)
                if here is None or here == before:
                    break
                before = here
                yield side*10.0**k


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
            found = g(mpf(at), *numbers)
        except BudgetExceeded:
            raise
        except (ValueError, TypeError, ArithmeticError, HermitexError):
            return None
        if not isfinite(found) or (found.imag and abs(found.imag) > 1e-12*abs(found)):
            return None
        size = min(max(abs(float(found.real)), 1/_HUGE), _HUGE) if found.real else 0.0
        return size if found.real > 0 else -size

    return value


def _bisected(test: Callable[[float], bool], a: float, b: float) -> float:
    here = test(a)
    for _ in range(_BISECTIONS):
        middle = (a + b)/2
        if middle in (a, b):
            break
        a, b = (middle, b) if test(middle) == here else (a, middle)
    return b


def _lowest(f: Callable[[float], float], a: float, b: float) -> tuple[float, float]:
    """Where f is least between a and b, by golden sections, and its value there."""
    c, d = a + _GOLDEN*(b - a), b - _GOLDEN*(b - a)
    low, high = f(c), f(d)
    for _ in range(_BISECTIONS):
        if low < high:
            b, d, high = d, c, low
            c = a + _GOLDEN*(b - a)
            low = f(c)
        else:
            a, c, low = c, d, high
            d = b - _GOLDEN*(b - a)
            high = f(d)
    return (c, low) if low < high else (d, high)
