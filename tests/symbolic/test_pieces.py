"""Every switch resolved between exact break points: the branch is the expression, and no break point is lost."""

from itertools import pairwise

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    CRootOf,
    Function,
    Heaviside,
    Max,
    Min,
    Ne,
    Piecewise,
    Rational,
    Symbol,
    acosh,
    atanh,
    ceiling,
    cos,
    cosh,
    erf,
    erfinv,
    exp,
    floor,
    frac,
    log,
    oo,
    pi,
    sign,
    sin,
    sqrt,
    tan,
    tanh,
)

from hermitex import E
from hermitex.errors import AssumptionNeeded, BadInput, BudgetExceeded, NoClosedForm
from hermitex.symbolic.breaks.order import compare, sign_of
from hermitex.symbolic.breaks.roots import real_roots
from hermitex.symbolic.budget import budget
from hermitex.symbolic.pieces import Piece, breakpoints, pieces

x, b, m = sp.symbols("x b m", real=True)
a, s = sp.symbols("a s", positive=True)
SWITCHES = (sign, Heaviside, Abs, Max, Min, Piecewise, floor, ceiling, frac)

rationals = st.fractions(-4, 4, max_denominator=6).map(lambda q: Rational(q.numerator, q.denominator))


def _extend(inner):
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map(Abs), inner.map(sign), inner.map(lambda u: Heaviside(u, Rational(1, 2))),
        pairs.map(lambda p: Max(*p)), pairs.map(lambda p: Min(*p)), pairs.map(lambda p: p[0] + p[1]),
        st.tuples(rationals, inner).map(lambda p: p[0] + p[1]), st.tuples(rationals, inner).map(lambda p: p[0]*p[1]),
        st.tuples(inner, inner, rationals).map(lambda p: Piecewise((p[0], x > p[2]), (p[1], True))),
        st.tuples(inner, inner, inner).map(lambda p: Piecewise((p[0], (p[2] > 0) & (x < 1)), (p[1], True))),
    )


switching = st.recursive(st.one_of(st.just(x), rationals, st.just(x**2 - 2)), _extend, max_leaves=6)
points = st.fractions(-6, 6, max_denominator=997).map(lambda q: Rational(q.numerator, q.denominator) + sqrt(2)/10**6)


def branch_at(found, at):
    (piece,) = [p for p in found if compare(p.lo, at) < 0 < compare(p.hi, at)]
    return piece.expr


def agree(expr, found, at):
    return abs((expr.subs(x, at) - branch_at(found, at).subs(x, at)).evalf(30)) < Rational(1, 10**20)


# -- identity ---------------------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(switching, points)
def test_branch_is_the_expression(expr, at):
    found = pieces(sp.sympify(expr), x)
    assert agree(sp.sympify(expr), found, at)


@settings(max_examples=40)
@given(switching)
def test_pieces_cover_the_line_in_order_and_hold_no_switch(expr):
    found = pieces(sp.sympify(expr), x)
    assert found[0].lo == -oo and found[-1].hi == oo
    assert all(p.hi == q.lo and compare(p.lo, p.hi) < 0 for p, q in pairwise(found))
    assert not any(p.expr.has(*SWITCHES) for p in found)
    assert all(p.expr != q.expr for p, q in pairwise(found))


@settings(max_examples=40)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=6).filter(any))
def test_polynomial_roots_are_those_of_the_integers(coefficients):
    p = sp.Poly(coefficients, x)
    found = real_roots(p.as_expr(), x) if p.degree() > 0 else ()
    assert len(found) == (sp.Poly(p.as_expr(), x).count_roots() if p.degree() > 0 else 0)
    assert all(abs(p.as_expr().subs(x, r).evalf(30)) < Rational(1, 10**20) for r in found)


def test_tooth_a_wrong_branch_is_seen():
    expr = Abs(x - 1)
    wrong = tuple(Piece(p.lo, p.hi, -p.expr) for p in pieces(expr, x))
    assert not agree(expr, wrong, Rational(1, 3))
    shifted = (Piece(-oo, Rational(2), 1 - x), Piece(Rational(2), oo, x - 1))
    assert not agree(expr, shifted, Rational(3, 2))


# -- exact values -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("expr, expected", [
    (Max(0, x) - Abs(x)/2 - x/2, [(-oo, oo, 0)]),
    (Abs(x)*sign(x), [(-oo, oo, x)]),
    (sign(x)*x**2, [(-oo, 0, -x**2), (0, oo, x**2)]),
    (Abs(x)**s, [(-oo, 0, (-x)**s), (0, oo, x**s)]),
    (sqrt(x**2), [(-oo, 0, -x), (0, oo, x)]),
    (Max(-1, Min(1, 2*Max(-1, Min(1, 3*x)))), [(-oo, Rational(-1, 6), -1), (Rational(-1, 6), Rational(1, 6), 6*x),
                                              (Rational(1, 6), oo, 1)]),
    (Piecewise((x, (Abs(x) < 1) & (x > Rational(-1, 2))), (x**2, True)),
     [(-oo, Rational(-1, 2), x**2), (Rational(-1, 2), 1, x), (1, oo, x**2)]),
    (Piecewise((1, Ne(x, 0)), (0, True)), [(-oo, oo, 1)]),
    (Piecewise((x, b > 1), (x**2, True)), [(-oo, oo, Piecewise((x, b > 1), (x**2, True)))]),
    (Abs(x - a) + Abs(x + a), [(-oo, -a, -2*x), (-a, a, 2*a), (a, oo, 2*x)]),
    (Heaviside(x**2 - a), [(-oo, -sqrt(a), 1), (-sqrt(a), sqrt(a), 0), (sqrt(a), oo, 1)]),
    (sign(x**2 - 2*m*x + m**2 - s**2), [(-oo, m - s, 1), (m - s, m + s, -1), (m + s, oo, 1)]),
    (sign(x - tanh(x)), [(-oo, 0, -1), (0, oo, 1)]),
    (sign(exp(x) - 1 - x), [(-oo, oo, 1)]),
    (Max(x, sin(x)), [(-oo, 0, sin(x)), (0, oo, x)]),
    (sign(cosh(x) - exp(x)/2), [(-oo, oo, 1)]),
    (Abs(log(Abs(x))), [(-oo, -1, log(-x)), (-1, 0, -log(-x)), (0, 1, -log(x)), (1, oo, log(x))]),
    (floor(3*tanh(x))/1, [(-oo, -atanh(Rational(2, 3)), -3), (-atanh(Rational(2, 3)), -atanh(Rational(1, 3)), -2),
                          (-atanh(Rational(1, 3)), 0, -1), (0, atanh(Rational(1, 3)), 0),
                          (atanh(Rational(1, 3)), atanh(Rational(2, 3)), 1), (atanh(Rational(2, 3)), oo, 2)]),
])
def test_pieces_exactly(expr, expected):
    found = pieces(expr, x)
    assert [(p.lo, p.hi) for p in found] == [(sp.sympify(lo), sp.sympify(hi)) for lo, hi, _ in expected]
    assert all(sp.expand(p.expr - sp.sympify(e)) == 0 for p, (_, _, e) in zip(found, expected, strict=True))


@pytest.mark.parametrize("expr, window, expected", [
    (x**4 - 6*x**2 + 3, None, (-sqrt(3 + sqrt(6)), -sqrt(3 - sqrt(6)), sqrt(3 - sqrt(6)), sqrt(3 + sqrt(6)))),
    (x**5 - x - 1, None, (CRootOf(x**5 - x - 1, 0),)),
    (x**3 - sqrt(2)*x + 1, None, (CRootOf(x**6 + 2*x**3 - 2*x**2 + 1, 0),)),
    (x**1000 - 2, None, (-2**Rational(1, 1000), 2**Rational(1, 1000))),
    ((x + 1)**500 - 1, None, (-2, 0)),
    (x**3 - pi, None, (pi**Rational(1, 3),)),
    (exp(x) + exp(-x) - 3, None, (log(3 - sqrt(5)) - log(2), log(3 + sqrt(5)) - log(2))),
    (cosh(x) - 2, None, (-acosh(2), acosh(2))),
    (erf(x) - Rational(1, 3), None, (erfinv(Rational(1, 3)),)),
    (erf(x) - 2, None, ()),
    (x*exp(-x**2), None, (0,)),
    (1/(1 + exp(-x)) - Rational(1, 4), None, (-log(3),)),
    (sqrt(x + 1) + x - 1, None, (0,)),
    (sin(x) - Rational(1, 2), (-4, 4), (-7*pi/6, pi/6, 5*pi/6)),
    (sin(tanh(x)), None, (0,)),
    (tan(x) - 1, (0, 4), (pi/4, 5*pi/4)),
    (x**2 - b**2 - 1, None, (-sqrt(b**2 + 1), sqrt(b**2 + 1))),
])
def test_real_roots_exactly(expr, window, expected):
    found = real_roots(expr, x, *(window or (-oo, oo)))
    assert len(found) == len(expected)
    assert all(abs((f - e).subs(b, Rational(1, 3)).evalf(30)) < Rational(1, 10**25)
               for f, e in zip(found, expected, strict=True))


# -- third route: the sign changes that a fine grid of mpmath sees ----------------------------------------------------
@pytest.mark.parametrize("expr", [
    x**3 - 3*x + 1, x**7 - 3*x**3 + x + Rational(1, 5), exp(2*x) - 3*exp(x) + 1,
    tanh(x)**2 - Rational(1, 3), x**4 - x - 1, sp.atan(x) - 1,
    cosh(x) - 3*sp.sinh(x), x**2 - sqrt(3)*x - sqrt(2), sqrt(x**2 + 1) - x - 1,
    x**3 + sqrt(2)*x**2 - 3*x - 1, erf(x)**3 - erf(x)/4, log(x**2 + 1) - 1, x/(1 + x**2) - Rational(2, 5),
    1/(1 + exp(-x))*(1 - 1/(1 + exp(-x))) - Rational(1, 5),
])
def test_roots_against_a_grid(expr):
    f = sp.lambdify(x, expr, "mpmath")
    grid = [mpmath.mpf(k)/50 + mpmath.mpf("0.0013") for k in range(-500, 500)]
    values = [f(t) for t in grid]
    seen = [t for t, u, v in zip(grid, values, values[1:], strict=False) if u*v < 0]
    found = real_roots(expr, x, -10, 10)
    assert len(seen) == len(found)
    assert all(0 <= r.evalf(20) - sp.Float(t) <= Rational(1, 50) for r, t in zip(found, seen, strict=True))


# -- break points -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("expr, window, expected", [
    (Abs(x**2 - 2) + 1/(x - 5), None, (-sqrt(2), sqrt(2), 5)),
    (log(x - 1) + 1/x, None, (0, 1)), (x**Rational(1, 3), None, (0,)), (1/(1 + x**2) + log(cosh(x)), None, ()),
    (1/(exp(x) - 2), None, (log(2),)), (tan(x), (-4, 4), (-pi/2, pi/2)), (Abs(sin(x)), (-4, 4), (-pi, 0, pi)),
    (floor(x), (-2, 2), (-1, 0, 1)), (frac(x**2), (-1, 2), (1, sqrt(2), sqrt(3))),
    (sin(1/x), None, (0,)), (sp.acot(x), None, (0,)),
    (sp.coth(x - 1), None, (1,)), (E(tanh(x + m), m), None, ()), (E(Abs(x + m), m), None, ()),
    (E(Abs(m + x)*sign(m - x), m), None, (0,)), (E(Abs(m + x)*sign(m - 2), m), None, (-2,)),
])
def test_breakpoints_exactly(expr, window, expected):
    assert breakpoints(expr, x, window) == tuple(map(sp.sympify, expected))


def test_break_points_are_never_lost_to_merging():
    assert breakpoints(sign(x)**2, x) == () and breakpoints(Abs(Abs(x) - 1), x) == (-1, 0, 1)


# -- refusals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("expr", [
    floor(x), Abs(sin(x)), tan(x), sign(x*tanh(x) - cos(3*x)), Max(b*x, x), Function("f")(x), sp.gamma(x),
    E(Abs(x*m), m), sign(sin(1/x)),
])
def test_refuses_with_a_reason(expr):
    with pytest.raises((NoClosedForm, AssumptionNeeded)):
        breakpoints(expr, x)


def test_order_that_no_assumption_settles():
    with pytest.raises(NoClosedForm, match="order of"):
        pieces(Abs(x - b) + Abs(x - m), x)
    with pytest.raises(AssumptionNeeded, match="b must be known"):
        pieces(Abs(x - b) + Abs(x), x)


def test_empty_window_and_budget():
    with pytest.raises(BadInput, match="empty"):
        pieces(Abs(x), x, 1, 0)
    with budget(0), pytest.raises(BudgetExceeded):
        pieces(Abs(x**3 - 2*x + Rational(1, 7)), x)


def test_plain_symbols_and_decimals():
    plain = Symbol("x")
    assert pieces(Abs(plain - 0.1), plain) == (Piece(-oo, Rational(1, 10), Rational(1, 10) - plain),
                                               Piece(Rational(1, 10), oo, plain - Rational(1, 10)))


@pytest.mark.parametrize("value, expected", [
    (sqrt(2) + sqrt(3) - pi, 1), (sqrt(5 + 2*sqrt(6)) - sqrt(2) - sqrt(3), 0), (exp(-1000), 1), (sp.Integer(0), 0),
    (erf(sqrt(2)*Rational(1, 10**6)) - Rational(1, 10**5), -1), (a - sqrt(a**2 + 1), -1), (-s**2 - 1, -1),
])
def test_signs_are_proved(value, expected):
    assert sign_of(value) == expected


@pytest.mark.parametrize("value", [b**2 - b, sin(1)**2 + cos(1)**2 - 1, erf(2) - sp.erfc(-2) + 1])
def test_tooth_a_sign_that_is_not_proved_is_refused(value):
    with pytest.raises(NoClosedForm):
        sign_of(value)


@pytest.mark.parametrize("power", [Rational(-3, 4), -sqrt(2), sqrt(7)/3])
@pytest.mark.parametrize("over", [1, -1])
def test_a_sum_that_its_terms_keep_from_zero_has_no_zero(power, over):
    below = (1 + erf(x/sqrt(2)))/2
    assert real_roots(1 + below**power*((1 - erf(x/sqrt(2)))/2)**over, x) == ()


def test_a_power_of_what_may_be_negative_is_not_bounded_by_zero():
    assert real_roots(x**3 + 8, x) == (-2,)
    assert real_roots(2 + tanh(x)*4, x) == (-atanh(Rational(1, 2)),)
