"""|g| <= its majorant beyond `start`; E|g|^p < oo is decided on both sides of every boundary; tails are true bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    atan,
    cos,
    erf,
    erfc,
    exp,
    floor,
    lambdify,
    log,
    pi,
    sign,
    sin,
    sinh,
    sqrt,
    symbols,
    tan,
    tanh,
)

import hermitex as hx
from hermitex import E
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.growth import Majorant, local_majorant, majorant, majorant_tail
from hermitex.symbols import alpha, lamda, rho, z, z1, z2

Z3, *MANY = symbols("z3 u1:6", real=True)

FUNCTIONS = [
    z**20, exp(3*z), tanh(20*z), 1/(1 + exp(-z)), z*tanh(log(1 + exp(z))), exp(z**2/2)/(1 + z**4), log(Abs(z)),
    Abs(z)**Rational(-1, 2), Max(0, z)*sin(z), (z**2 + 1)/(z**3 - 5), exp(-z**4 + 3*z**3), erfc(z)*exp(z**2/4),
    floor(z), sqrt(z**2 + 1), exp(sin(z)), log(1 + exp(z)), 1/log(z**2 + 3), 1/(2 + cos(z)), z*atan(z),
    Piecewise((exp(z), z < 3), (z**2, True)), 1/tanh(z), z*sign(z**3 - 7*z), Abs(z - 1)**Rational(-1, 3),
    exp(-sqrt(z**2 + 1)), exp(z*erf(z)),
]


def mostly_slow(cases: list, every: int) -> list:
    """Each case counts, but only some of them in the quick run."""
    return [c if i % every == 0 else pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.slow)
            for i, c in enumerate(cases)]


def q(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def value_of(bound: Majorant, t: mpmath.mpf) -> mpmath.mpf:
    return sum(q(u.C) * t**q(u.n) * mpmath.exp(q(u.a) * t + q(u.b) * t * t) for u in bound.terms)


def holds(g, bound: Majorant, side: int, t: float) -> bool:
    with mpmath.workdps(30):
        x = q(bound.start) + t
        actual = abs(lambdify(z, g, "mpmath")(side * x))
        return bool(actual <= value_of(bound, x) * (1 + mpmath.mpf(10) ** -25))


@pytest.mark.parametrize("g", mostly_slow(FUNCTIONS, 3), ids=str)
@settings(max_examples=8)
@given(t=st.floats(0, 30), side=st.sampled_from([1, -1]))
def test_the_majorant_is_above_the_function(g, t, side):
    bound = majorant(g, z, side)
    assert bound is not None
    assert holds(g, bound, side, t)


@pytest.mark.parametrize("expr", [z**3*exp(-2*z), z**5*exp(-z**2/3), z**2*exp(-z - z**2), z**4*exp(z/2 - z**2),
                                  exp(z/3 - z**2/20)], ids=str)
def test_what_goes_to_zero_is_below_its_peak(expr):
    """exp of it grows no faster than a constant: the peak of the exponent is what that constant comes from."""
    bound = majorant(exp(expr), z, 1)
    f = lambdify(z, exp(expr), "mpmath")
    start = float(bound.start)
    assert all(u.a <= 0 and u.b <= 0 for u in bound.terms)
    assert all(f(x) <= value_of(bound, mpmath.mpf(x))*(1 + mpmath.mpf(10)**-12)
               for x in [start + 0.05*k for k in range(400)])


def test_a_planted_small_majorant_is_caught():
    bound = majorant(exp(z/2), z, 1)
    small = bound._replace(terms=tuple(u._replace(a=u.a / 2) for u in bound.terms))
    assert not holds(exp(z/2), small, 1, 5.0)


@pytest.mark.parametrize(("g", "power", "expected"), [
    (exp(z**2/2), 1, False), (exp(Rational(499, 1000)*z**2), 1, True),
    (exp(z**2/2)/(1 + z**4), 1, True), (exp(z**2/2)/(1 + z**4), 2, False), (exp(z**2/2)/(1 + Abs(z)), 1, False),
    (exp(z**2/2)/(1 + z**2), 1, True), (exp(z**2/4), 2, False), (exp(z**2/4), 1, True), (exp(z**2/5), 2, True),
    (exp(z**2/2)*sin(z), 1, False), (exp(z**2/2 - sqrt(Abs(z))), 1, True), (exp(z**2/2)*Heaviside(-z), 1, False),
    (exp(z**3), 1, False), (exp(-z**4), 1, True), (exp(exp(z)), 1, False), (exp(z**2/2)*erfc(z), 1, False),
    (exp(sqrt(z**4 + 1)/2)/(1 + z**2), 1, True), (exp(sqrt(z**4 + z**2)/2)/(1 + z**2), 1, True),
    (Piecewise((exp(z**2), Abs(z) < 5), (0, True)), 1, True), (Piecewise((exp(z**2), z < 5), (0, True)), 1, False),
    (exp(3*z), 2, True), (z**20, 2, True), (floor(z), 2, True), (tanh(z)*z, 2, True),
], ids=str)
def test_growth_is_decided_exactly(g, power, expected):
    assert integrable(g, z, power) is expected


@pytest.mark.parametrize(("g", "power", "expected"), [
    (Abs(z)**Rational(-1, 2), 1, True), (Abs(z)**Rational(-1, 2), 2, False), (Abs(z)**Rational(-49, 100), 2, True),
    (1/z, 1, False), (1/(z - 1)**Rational(1, 3), 2, True), (Abs(z)**Rational(-1, 2)*z, 2, True), (log(Abs(z)), 2, True),
    (exp(1/z**2), 1, False), (exp(-1/z**2), 1, True), (tan(z), 1, False), (sin(z)/z, 2, True), (1/sin(z), 1, False),
    (1/(exp(z) - 1), 1, False), (Abs(exp(z) - 2)**Rational(-1, 2), 1, True), (1/log(Abs(z)), 1, False),
    (Abs(z**2 - 2)**Rational(-1, 3), 2, True), ((cos(z) - 1)/z**2, 1, True),
    pytest.param(1/(z**3 - 7*z + 1), 1, False, marks=pytest.mark.slow),
    (Piecewise((1/z, z > 1), (0, True)), 1, True), (Abs(tanh(z) - Rational(1, 2))**Rational(-1, 2), 2, False),
], ids=str)
def test_singular_points_are_decided_exactly(g, power, expected):
    assert integrable(g, z, power) is expected


def test_several_variables():
    assert integrable(exp(z1*z2/4), (z1, z2), 2) is True
    assert integrable(exp(z1*z2/2), (z1, z2), 2) is False
    assert integrable(exp(z1*z2), (z1, z2)) is False
    assert integrable(z1*tanh(z1*z2), (z1, z2), 2) is True


@pytest.mark.parametrize("root", [sqrt(1 - rho**2), sqrt(1 - rho), sqrt(4 - rho**2)/2, sqrt(rho)], ids=str)
@pytest.mark.parametrize("f", [lambda u: Max(0, u), Abs, lambda u: Min(1, u)], ids=["relu", "abs", "min"])
def test_numbers_at_which_a_root_is_not_real_decide_nothing(root, f):
    assert integrable(f(z1)*f(rho*z1 + root*z2), (z1, z2)) is not False
    assert integrable(f(z1)/(rho*z1 - root*z2 - 1), (z1, z2)) is False


def test_an_average_over_correlated_switches_compiles():
    chain = hx.System({lamda: hx.E(Max(0, z1)*Max(0, z2), z1, z2, cov={(z1, z2): rho}),
                       alpha: hx.E(Max(0, 2*z1)*Max(0, z2), z1, z2, cov={(z1, z2): lamda/2})})
    found = chain.solve(rho=0.3)
    for r, scale, value in ((0.3, 1, found["lamda"]), (found["lamda"]/2, 2, found["alpha"])):  # Cho and Saul's kernel
        assert value == pytest.approx(scale*(math.sqrt(1 - r*r) + r*(math.pi - math.acos(r)))/(2*math.pi), rel=1e-12)


def test_a_parameter_whose_sign_matters_stays_open():
    a = Symbol("a", real=True)
    assert integrable(exp(a*z), z) is True
    assert integrable(exp(a*z**2), z) is None
    assert integrable(exp(-Symbol("b", positive=True)*z**2), z) is True


@settings(max_examples=12)
@given(p=st.fractions(Fraction(1, 10), Fraction(3), max_denominator=12), power=st.integers(1, 2))
def test_scaling_law_of_a_power(p, power):
    g = Abs(z)**-Rational(p.numerator, p.denominator)
    assert integrable(g, z, power) is (p * power < 1)


@settings(max_examples=12)
@given(c=st.fractions(Fraction(1, 10), Fraction(1), max_denominator=24), n=st.integers(-4, 3), power=st.integers(1, 2))
def test_scaling_law_of_a_gaussian(c, n, power):
    g = exp(Rational(c.numerator, c.denominator)*z**2)*(1 + z**2)**Rational(n, 2)
    edge = c * power - Fraction(1, 2)
    assert integrable(g, z, power) is (edge < 0 or (edge == 0 and n * power < -1))


def two_tails(g, L):
    """A bound on E[|g|; |z| > L]."""
    return sum(majorant_tail(majorant(g, z, side), Fraction(L)) for side in (1, -1))


@pytest.mark.parametrize(
    "g", [z**4, exp(3*z), tanh(z)*z, exp(z**2/4), exp(z**2/2)/(1 + z**4), log(1 + exp(z))], ids=str)
def test_the_tail_bound_is_above_the_tail(g):
    L = 12
    bound = two_tails(g, L)
    with mpmath.workdps(25):
        f = lambdify(z, Abs(g)*exp(-z**2/2), "mpmath")
        cuts = [L, L + 1, L + 4, L + 12, L + 60, 10**4]
        tail = (mpmath.quad(f, cuts) + mpmath.quad(lambda x: f(-x), cuts)) / mpmath.sqrt(2*mpmath.pi)
        assert tail <= q(bound)


def test_a_planted_lost_rate_makes_the_tail_too_small():
    """Forgetting that exp(3z) moves the mass gives a tail below the true one."""
    true = two_tails(exp(3*z), 12)
    planted = 2*majorant_tail(majorant(z**0, z, 1), Fraction(12))
    assert planted < true / 10**6


def test_no_bound_where_there_is_none():
    assert majorant(exp(exp(z)), z, 1) is None
    assert majorant_tail(majorant(exp(z**2), z), Fraction(12)) is None
    assert local_majorant(exp(1/z), z, Rational(0), -1) is not None


@pytest.mark.parametrize(("body", "finite"), [
    (sinh(z1*z2), False),  # E_z2|sinh(z1 z2)| grows like exp(z1^2/2): infinite along z1 = +-z2 + c, and along nothing else
    (sinh(z1*z2)*tanh(z1), False),
    (exp(z1*z2) - exp(-z1*z2), False),
    (sinh(z1*(z2 + Z3)), False),  # its steepest direction is (sqrt 2, 1, 1)/2
    (sinh(z1*z2)/(1 + z1**2), True),
    (sinh(z1*(z2 + Z3)/2), True),
    (exp(Rational(9, 20)*sum(v**2 for v in MANY))*sqrt(1 + MANY[0]**2*MANY[1]**2), True)])
def test_exponentials_of_quadratic_forms_are_asked_along_their_steepest_direction(body, finite):
    assert (integrable(body, tuple(sorted(body.free_symbols, key=str))) is not False) is finite


def test_an_odd_average_that_does_not_exist_is_not_zero():
    assert not hx.check(E(sinh(z1*z2), z1, z2), 0)
    with pytest.raises(hx.errors.Divergent):
        E(sinh(z1*(z2 + Z3)), z1, z2, Z3).doit()


@pytest.mark.parametrize("k", [0, 1])
def test_a_tail_is_bounded_closely(k):
    """E[e^(kz); |z| > L] is below the tail that is given, by the factor that Mills' ratio leaves."""
    L, tail = 9, two_tails(exp(k*z), 9)
    true = float((exp(Rational(k, 2))*(erfc((L - k)/sqrt(2)) + erfc((L + k)/sqrt(2)))/2).evalf())
    assert true <= tail <= 1.2*true


def test_the_weight_of_a_tail_counts():
    """int_L^oo t^2 phi = L phi(L) + P(t > L)."""
    L, bound = 9, majorant(1/(1 + exp(-z)), z, 1)
    true = float((L*exp(-Rational(L**2, 2))/sqrt(2*pi) + erfc(L/sqrt(2))/2).evalf())
    assert 0.999*true <= majorant_tail(bound, Fraction(L), weight=2) <= 1.2*true
