"""Owen's T and the sign correlation: values, identities, derivatives."""

from __future__ import annotations

import pytest
import scipy.special
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, Symbol, asin, erf, pi, sqrt

from hermitex.symbolic import arithmetic as mpmath
from hermitex.symbolic.special import ImErf, OwenT, ReErf, SignCorrelation, owen_t, sign_correlation

h, k = sp.symbols("h k", real=True)
reals = st.floats(-6, 6)


@settings(max_examples=20)
@given(x=reals, a=st.floats(-8, 8))
def test_owen_t_is_scipys(x, a):
    assert abs(float(owen_t(x, a)) - scipy.special.owens_t(x, a)) < 1e-15 + 1e-13 * abs(scipy.special.owens_t(x, a))


@pytest.mark.parametrize(("x", "a"), [(0.5, 0.3), (1.5, 4), (9, 0.7), (0.01, 30), (30, 0.5)])
def test_owen_t_is_its_integral(x, a):
    with mpmath.workdps(30):
        x, a = mpmath.mpf(x), mpmath.mpf(a)
        direct = mpmath.quad(lambda t: mpmath.exp(-x * x * t * t / 2) / (1 + t * t),
                             mpmath.linspace(0, min(a, 15 / x), 20)) / (2 * mpmath.pi) * mpmath.exp(-x * x / 2)
        assert abs(owen_t(x, a) - direct) < mpmath.mpf(10) ** -25 * direct
        assert abs(owen_t(x, a) - 2 * direct) > mpmath.mpf(10) ** -3 * direct  # a lost factor 2 is seen


def test_simplifications():
    assert OwenT(0, 1) == Rational(1, 8) and OwenT(h, 0) == 0
    assert OwenT(-h, 2) == OwenT(h, 2) and OwenT(h, -2) == -OwenT(h, 2)
    assert OwenT(h, 1) == Rational(1, 8) - erf(h / sqrt(2)) ** 2 / 8
    assert SignCorrelation(0, 0, Rational(1, 2)) == Rational(1, 3)
    assert SignCorrelation(h, k, 0) == erf(h / sqrt(2)) * erf(k / sqrt(2))
    assert ReErf(h, 0) == erf(h) and ImErf(0, k) == sp.erfi(k)


@pytest.mark.parametrize("f", [OwenT(h, k), SignCorrelation(h, k, Rational(1, 3)), ReErf(h, k), ImErf(h, k)])
def test_derivatives(f):
    at = {h: Rational(3, 5), k: Rational(-7, 9)}
    for x in (h, k):
        step = Rational(1, 10**12)
        up, down = (f.subs({**at, x: at[x] + side * step}).evalf(50) for side in (1, -1))
        assert abs((f.diff(x).subs(at) - (up - down) / (2 * step)).evalf(30)) < 1e-20


def test_derivative_of_the_sign_correlation_in_rho():
    rho = Symbol("rho", real=True)
    with mpmath.workdps(40):
        slope = mpmath.diff(lambda t: sign_correlation(0.5, -0.25, t), mpmath.mpf("0.3"))
    exact = SignCorrelation(Rational(1, 2), k, rho).diff(rho).subs({k: Rational(-1, 4), rho: Rational(3, 10)})
    assert abs(sp.N(exact, 20) - sp.Float(slope)) < 1e-14


@settings(max_examples=8)
@given(x=reals, y=reals, q=st.floats(-0.95, 0.95))
def test_sign_correlation_symmetries(x, y, q):
    value = sign_correlation(x, y, q)
    assert abs(value - sign_correlation(y, x, q)) < 1e-13
    assert abs(value - sign_correlation(-x, -y, q)) < 1e-13
    assert abs(value + sign_correlation(-x, y, -q)) < 1e-13
    assert abs(value) <= 1 + 1e-13


def test_sign_correlation_is_bivariate():
    from scipy.stats import multivariate_normal

    x, y, q = 0.7, -0.4, 0.6
    below = multivariate_normal(cov=[[1, q], [q, 1]]).cdf([x, y])
    phi = scipy.special.ndtr
    assert abs(float(sign_correlation(x, y, q)) - (4 * below - 2 * phi(x) - 2 * phi(y) + 1)) < 1e-5


def test_ratio_form_holds_for_either_sign():
    f = SignCorrelation(h, 2 * h, Rational(3, 5))
    assert f.has(OwenT)
    for x in (-1, Rational(1, 3)):
        assert abs(sp.N(f.subs(h, x), 20) - sp.Float(sign_correlation(x, 2 * x, mpmath.mpf("0.6")))) < 1e-14
    assert f.subs(h, 0).equals(2 * asin(Rational(3, 5)) / pi)
