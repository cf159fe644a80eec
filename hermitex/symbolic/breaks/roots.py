"""{x in (lo, hi) : f(x) = 0}, exactly: the points at which a switch can turn.

Functions are peeled from the outside (exp(u) = v iff u = log v for v > 0), down to polynomials; periodic functions are
enumerated in a finite window; what is left is decided by monotonicity (Rolle), or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import sympy as sp
from sympy import Dummy, Expr, Function, Poly, Pow, S, Symbol, cos, exp, fraction, log, oo, pi, sin, tan
from sympy.polys.polyerrors import BasePolynomialError

from hermitex.errors import NoClosedForm
from hermitex.symbolic.breaks.algebraic import MAX_DEGREE, no_roots, nonzero, polynomial_zeros, real_powers
from hermitex.symbolic.breaks.interval_ranges import bounds
from hermitex.symbolic.breaks.order import compare, exact, inside, provably_nonzero, sign_of
from hermitex.symbolic.breaks.switches import rough_arguments, vanishing_where_singular
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.formula_size import DECIDED, EXPANDED, MANY, operations
from hermitex.symbolic.gaussian import Expectation

_DEPTH = 14  # functions inside one another: beyond, an answer takes more than seconds


class OpenInterval(NamedTuple):
    """An open interval of the real line."""

    lo: Expr
    hi: Expr


class Where(NamedTuple):
    """The variable, the window in which its zeros are wanted, and how deep the peeling is."""

    x: Symbol
    window: OpenInterval
    depth: int = 0

    def deeper(self, steps: int = 1) -> Where:
        return self._replace(depth=self.depth + steps)


def real_roots(expr: Expr, x: Symbol, lo: Expr = -oo, hi: Expr = oo) -> tuple[Expr, ...]:
    """The exact real roots of `expr` in the open interval (lo, hi), in increasing order.

    Parameters
    ----------
    expr : an expression free of switches (sign, Abs, Piecewise, ...); other symbols are parameters.
    x : the variable, taken real.

    Raises
    ------
    NoClosedForm : no exact form of the roots is found (with the reason).
    AssumptionNeeded : the answer turns on the sign of a symbol that is not declared.

    Examples
    --------
    >>> from sympy import exp, sin, pi, Symbol
    >>> x = Symbol('x', real=True)
    >>> real_roots(x**4 - 5*x**2 + 6, x)
    (-sqrt(3), -sqrt(2), sqrt(2), sqrt(3))
    >>> real_roots(exp(2*x) - 3*exp(x) + 2, x)
    (0, log(2))
    >>> real_roots(sin(x), x, -4, 4)
    (-pi, 0, pi)
    """
    t = _variable(x.name)
    if t in S(expr).free_symbols - {x}:
        t = Dummy(x.name, real=True)
    f = exact(S(expr)).xreplace({x: t})
    window = OpenInterval(S(lo), S(hi))
    return tuple(r for r in inside(zeros(f, Where(t, window)), *window) if _may_vanish(f, t, r))


@cache
def _variable(name: str) -> Symbol:
    """One real symbol to a name, so that the zeros of a sum are found in the cache."""
    return Dummy(name, real=True)


def _may_vanish(f: Expr, x: Symbol, at: Expr) -> bool:
    """False where a candidate is provably no root."""
    if f.is_polynomial(x):
        return True
    value = f.subs(x, at)
    return not value.has(S.NaN, S.ComplexInfinity) and not provably_nonzero(value)


def zeros(f: Expr, where: Where) -> list[Expr]:
    """Every zero of a switch-free f in the window, in no order; further points of the line may be among them."""
    checkpoint("finding real roots")
    x = where.x
    if where.depth > _DEPTH:
        raise no_roots(f, x, "it is nested too deeply")
    if x not in f.free_symbols:
        return []
    if f == x:
        return [S.Zero]
    if f.is_Mul:
        return [r for factor in f.args for r in zeros(factor, where.deeper())]
    if f.is_Add:
        found = _known(f, where.deeper())
        if isinstance(found, NoClosedForm):
            raise found.with_traceback(None)
        return list(found)
    if f.is_extended_positive or f.is_extended_negative:
        return []
    return _preimage(f, S.Zero, where.deeper())


# -- one outer function -----------------------------------------------------------------------------------------------
_Inverse = Callable[[Expr], Expr]
_OPEN: dict[type, tuple[_Inverse, Expr, Expr]] = {      # h: (its inverse, and the open range of h on the line)
    exp: (log, S.Zero, oo), log: (exp, -oo, oo), sp.tanh: (sp.atanh, -S.One, S.One), sp.sinh: (sp.asinh, -oo, oo),
    sp.erf: (sp.erfinv, -S.One, S.One), sp.erfc: (lambda v: sp.erfinv(1 - v), S.Zero, S(2)), sp.atan: (tan, -pi/2, pi/2),
    sp.asinh: (sp.sinh, -oo, oo), sp.atanh: (sp.tanh, -oo, oo), sp.erfinv: (sp.erf, -oo, oo),
    sp.erfcinv: (sp.erfc, -oo, oo),
}
_CLOSED: dict[type, tuple[_Inverse, Expr, Expr]] = {    # ... and those whose range is closed
    sp.asin: (sin, -pi/2, pi/2), sp.acos: (cos, S.Zero, pi), sp.acosh: (sp.cosh, S.Zero, oo),
}
_PERIODIC: dict[type, tuple[Callable[[Expr], list[Expr]], Expr]] = {
    sin: (lambda v: [sp.asin(v), pi - sp.asin(v)], 2*pi), cos: (lambda v: [sp.acos(v), -sp.acos(v)], 2*pi),
    tan: (lambda v: [sp.atan(v)], pi), sp.cot: (lambda v: [pi/2 - sp.atan(v)], pi),
}
_RECIPROCAL: dict[type, type] = {sp.sec: cos, sp.csc: sin, sp.sech: sp.cosh, sp.csch: sp.sinh, sp.coth: sp.tanh}


def _preimage(h: Expr, v: Expr, where: Where) -> list[Expr]:
    """The solutions x of h(u(x)) = v, where v is free of x: peel h, go on with u."""
    kind, u = type(h), h.args[0]

    def go_on(*values: Expr) -> list[Expr]:
        return [r for value in values for r in zeros(u - value, where.deeper())]

    if kind in _OPEN:
        inverse, low, high = _OPEN[kind]
        return go_on(inverse(v)) if compare(v, low) > 0 and compare(v, high) < 0 else []
    if kind in _CLOSED:
        inverse, low, high = _CLOSED[kind]
        return go_on(inverse(v)) if compare(v, low) >= 0 and compare(v, high) <= 0 else []
    if kind is sp.cosh:
        top = compare(v, S.One)
        return go_on(*dict.fromkeys((-sp.acosh(v), sp.acosh(v)))) if top >= 0 else []
    if kind in _RECIPROCAL:
        return _preimage(_RECIPROCAL[kind](u), 1/v, where) if sign_of(v) else []
    if kind in _PERIODIC:
        return _periodic(h, v, where)
    if h.is_Pow:
        return _power(h, v, where)
    if kind in (sp.erfi, sp.LambertW, sp.sinc) and sign_of(v) == 0:
        return go_on(S.Zero) if kind is not sp.sinc else [r for r in zeros(sin(u), where.deeper())]
    raise no_roots(h - v, where.x, f"{kind.__name__} has no inverse in the table")


def _power(h: Pow, v: Expr, where: Where) -> list[Expr]:
    """u**e = v for real u: integers, principal fractional powers (u >= 0), b**u = v, and u**w = v where u > 0."""
    base, e = h.base, h.exp
    if where.x in e.free_symbols:
        return zeros(e*log(base) - log(v), where.deeper()) if sign_of(v) > 0 else []
    if e.is_Integer:
        values = real_powers(v, int(e)) if e.is_positive else real_powers(1/v, -int(e)) if sign_of(v) else []
    else:
        turn = sign_of(v)
        if turn == 0 and sign_of(e) < 0:
            return []
        values = [v**(1/e)] if turn > 0 else [S.Zero] if turn == 0 else []
    return [r for value in values for r in zeros(base - value, where.deeper())]


def _periodic(h: Expr, v: Expr, where: Where) -> list[Expr]:
    starts, period = _PERIODIC[type(h)]
    if type(h) in (sin, cos) and (compare(v, -S.One) < 0 or compare(v, S.One) > 0):
        return []
    low, high = bounds(h.args[0], where.x, where.window)
    if not (low.is_finite and high.is_finite):
        raise no_roots(h - v, where.x, "it is periodic: the roots are enumerated only in a finite window")
    found: list[Expr] = []
    for start in dict.fromkeys(starts(v)):
        turns = [sp.floor((end - start) / period) for end in (low, high)]
        if not all(n.is_Integer for n in turns):
            raise no_roots(h - v, where.x, "it is periodic, and how many roots lie in the window depends on letters")
        first, last = map(int, turns)
        if last - first > MANY:
            raise no_roots(h - v, where.x, f"more than {MANY} roots lie in the window")
        for k in range(first, last + 2):
            found += zeros(h.args[0] - start - k*period, where.deeper())
    return found


# -- sums -------------------------------------------------------------------------------------------------------------
@kept()  # the integrands of one system ask for the zeros of the same sums
def _known(f: Expr, where: Where) -> tuple[Expr, ...] | NoClosedForm:
    """The zeros of a sum, or why they are not found."""
    try:
        return tuple(_of_a_sum(f, where))
    except NoClosedForm as no:
        return no


def _of_a_sum(f: Expr, where: Where) -> list[Expr]:
    """One moving term; a polynomial; over one denominator, in one function of x; by monotonicity."""
    x = where.x
    fixed, moving = f.as_independent(x, as_Add=True)
    if not moving.is_Add:
        factor, h = moving.as_independent(x, as_Add=False)
        nonzero(factor)
        if h == x:
            return [-fixed / factor]
        if isinstance(h, Function) or (h.is_Pow and not (h.base == x and _is_count(h.exp) and h.exp < MAX_DEGREE)):
            return _preimage(h, -fixed / factor, where)
    powers = [p for p in f.atoms(Pow) if x in p.free_symbols and _is_count(p.exp)]
    if operations(f) > EXPANDED or any(p.exp > 10*MAX_DEGREE or (p.base.is_Add and p.exp > MAX_DEGREE) for p in powers):
        raise no_roots(f, x, "it is too large")
    if f.is_polynomial(x):
        return polynomial_zeros(f, x)
    low, high = bounds(f, x, where.window)
    if low.is_positive or high.is_negative or f.is_extended_positive or f.is_extended_negative:
        return []
    numerator = fraction(sp.together(f))[0]
    if not numerator.is_Add:
        return zeros(numerator, where)
    if numerator.is_polynomial(x):
        return polynomial_zeros(numerator, x)
    divided = _over_an_exponential(numerator, x)
    if divided is not None and len(divided.args) == 2:
        return zeros(divided, where.deeper())
    for form in dict.fromkeys((numerator, _exponential(numerator, x))):
        found = _in_few_functions(form, where)
        if found is not None:
            return found
    return _by_monotonicity(f if divided is None else divided, where)


def _over_an_exponential(f: Expr, x: Symbol) -> Expr | None:
    """A sum of exponentials over one of them: its slope has a term less. None for other sums.

    >>> _over_an_exponential(2*exp(3*Symbol("x")) - 5*exp(Symbol("x")/2), Symbol("x"))
    2*exp(5*x/2) - 5
    """
    factors = [t.as_independent(x, as_Add=False)[1] for t in f.args]
    return sp.Add(*(t/factors[0] for t in f.args)) if all(isinstance(h, exp) for h in factors) else None


def _is_count(e: Expr) -> bool:
    return bool(e.is_Integer and e > 0)


def _exponential(f: Expr, x: Symbol) -> Expr:
    """Hyperbolic functions as exponentials, over one denominator, powers of exp expanded."""
    if operations(f) > DECIDED:
        return f
    kinds = (sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.csch, sp.coth)
    g = f.replace(lambda n: isinstance(n, kinds) and x in n.free_symbols, lambda n: n.rewrite(exp))
    return sp.expand_power_exp(fraction(sp.together(g))[0].expand())


def _in_few_functions(f: Expr, where: Where) -> list[Expr] | None:
    """f = p(h(x)): the roots of p carried back through h; else the zeros of its factors."""
    x = where.x
    if x not in f.free_symbols:
        return []
    try:
        p = Poly(f)
    except BasePolynomialError:
        return None
    gens = [g for g in p.gens if x in g.free_symbols]
    if len(gens) == 1:
        s, h = Dummy("s", real=True), gens[0]
        in_s = p.as_expr(*(s if g == h else g for g in p.gens))       # not xreplace: exp(x)**2 is written exp(2*x)
        return [r for v in polynomial_zeros(in_s, s) for r in _zeros_of_difference(h, v, where.deeper())]
    if operations(f) > DECIDED or p.total_degree() > MAX_DEGREE:  # exp(0.6797 x) is a power of exp(x/10000)
        return None
    factors = [q.as_expr() for q, _ in p.factor_list()[1]]
    return [r for q in factors for r in zeros(q, where.deeper())] if len(factors) > 1 else None


def _zeros_of_difference(h: Expr, v: Expr, where: Where) -> list[Expr]:
    return _preimage(h, v, where) if isinstance(h, Function) or h.is_Pow else zeros(h - v, where)


# -- Rolle ------------------------------------------------------------------------------------------------------------
def _by_monotonicity(f: Expr, where: Where) -> list[Expr]:
    """Between consecutive points of {f' = 0} and singularities f is monotone: no root, or one, which must be named."""
    x, w = where.x, where.window
    if operations(f) > DECIDED or where.depth > _DEPTH - 4:
        raise no_roots(f, x, "no rule isolates x")
    slope = f.diff(x)
    low, high = bounds(slope, x, w)
    turning = [] if low.is_nonnegative or high.is_nonpositive else zeros(slope, where.deeper(4))
    cuts = inside([*turning, *singularities(f, x, w)], *w)
    found: list[Expr] = list(cuts)
    for a, b in pairwise([w.lo, *cuts, w.hi]):
        named = [p for p in (S.Zero, S.One, -S.One)
                 if compare(a, p) < 0 and compare(p, b) < 0 and f.subs(x, p).is_zero]
        if not named and _end_sign(f, x, (a, "+")) * _end_sign(f, x, (b, "-")) < 0:
            raise no_roots(f, x, f"it has one root in ({a}, {b}) that no rule names")
        found += named
    return found


def _end_sign(f: Expr, x: Symbol, end: tuple[Expr, str]) -> int:
    """The sign of f just inside an end of an interval on which it is monotone (0: it tends to 0 there)."""
    point, side = end
    if point not in (oo, -oo):
        value = f.subs(x, point)
        if value.is_finite is not False and not value.has(S.NaN, S.ComplexInfinity, oo, -oo):
            return sign_of(value)
    if operations(f) > DECIDED//3:
        raise no_roots(f, x, "it is too large for its limits to be found")
    try:
        return sign_of(sp.limit(f, x, point, "-" if point in (oo, -oo) else side))
    except (NotImplementedError, ValueError, TypeError) as error:
        raise no_roots(f, x, f"its limit at {point} is not known") from error


# -- singular points --------------------------------------------------------------------------------------------------
def singularities(f: Expr, x: Symbol, window: tuple[Expr, Expr]) -> list[Expr]:
    """Points of the line (a superset, in no order) off which the switch-free f(x) is analytic in the window.

    Raises
    ------
    NoClosedForm : the points are not found exactly, or f holds a function not known to be analytic.

    Examples
    --------
    >>> x = Symbol('x', real=True)
    >>> sorted(singularities(log(x - 1) + 1/x, x, (-sp.oo, sp.oo)))
    [0, 1]
    """
    return _singularities(f, Where(x, OpenInterval(*window)), set())


def _singularities(f: Expr, where: Where, seen: set[Expr]) -> list[Expr]:
    """The rough points of parts that have not been seen: a part may occur in many places."""
    checkpoint("finding singularities")
    if f in seen or where.x not in f.free_symbols or f.is_Symbol:
        return []
    seen.add(f)
    if isinstance(f, Expectation):
        return _of_node(f, where)
    found = [p for a in f.args for p in _singularities(a, where, seen)]
    vanishing = vanishing_where_singular(f, where.x)
    return found if vanishing is None else found + zeros(vanishing, where)


def _of_node(node: Expectation, where: Where) -> list[Expr]:
    """E[f(v, x)] over v ~ N is analytic in x off the points where two rough points of f, as functions of v, cross.

    A rough point is v = -b(x)/a with a v + b(x) in a switch, a fractional or negative power, or a logarithm.
    """
    x = where.x
    body, variables = node.open()
    rough = [u for u in rough_arguments(body) if not (u.is_positive or u.is_negative)]
    moving = [u for u in rough if x in u.free_symbols and u.free_symbols & set(variables)]
    found = [p for u in rough if not u.free_symbols & set(variables) for p in zeros(u, where)]
    if not moving:
        return found
    for v in variables:
        mixed = [u for u in rough if v in u.free_symbols or u in moving]
        if all(_shifts(u, v, x) or (u not in moving and u.free_symbols == {v}) for u in mixed):
            break
    else:
        raise NoClosedForm(node, f"the expectation is not known to be analytic in {x}")
    places = list(dict.fromkeys(p for u in mixed for p in _places(u, v, x)))
    for i, p in enumerate(places):
        for q in places[i + 1:]:
            found += zeros(p - q, where)
    return found


def _shifts(u: Expr, v: Symbol, x: Symbol) -> bool:
    """u = a v + b(x), a a non-zero constant."""
    a = u.diff(v)
    return not a.free_symbols & {v, x} and a.is_zero is False


def _places(u: Expr, v: Symbol, x: Symbol) -> list[Expr]:
    if _shifts(u, v, x):
        return [-(u.subs(v, 0) / u.diff(v))]
    return zeros(u, Where(v, OpenInterval(-sp.oo, sp.oo)))
