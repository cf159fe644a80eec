"""h(kappa) = E g(u), h_1 = E z g(u), h_2 = E g(u)^2 + Delta, u = gamma kappa + sqrt(1 - gamma^2) z."""

import mpmath
import numpy as np
import pytest
from sympy import Rational, Symbol, erf, sin, sqrt

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.symbols import gamma, kappa

moments = hx.theories.target_moments
KAPPA = np.array([-2.1, 0.3])


def by_hand(g, k, overlap, noise):
    """The three averages by 25-digit mpmath."""
    with mpmath.workdps(25):
        s, k = mpmath.sqrt(1 - mpmath.mpf(overlap)**2), mpmath.mpf(k)*overlap
        ends = sorted({-13, -4, 4, 13, float(-k/s), float((1 - k)/s)})
        mean = lambda f: float(mpmath.quad(lambda t: mpmath.npdf(t)*f(t), ends))  # noqa: E731
        return mean(lambda t: g(k + s*t)), mean(lambda t: t*g(k + s*t)), mean(lambda t: g(k + s*t)**2) + noise


@pytest.mark.parametrize("g, own", [
    ("tanh", mpmath.tanh), ("sign", mpmath.sign), ("relu", lambda u: max(u, 0)), ("He3", lambda u: u**3 - 3*u),
    ("Piecewise((z**2, z < 1), (sin(z), True))", lambda u: u*u if u < 1 else mpmath.sin(u)),
    ("abs(z)*tanh(z)", lambda u: abs(u)*mpmath.tanh(u)),
])
@pytest.mark.parametrize("overlap", [0.0, 0.6, -0.95])
def test_against_mpmath(g, own, overlap):
    found = moments(g)(KAPPA, gamma=overlap, Delta=0.3)
    for i, k in enumerate(KAPPA):
        assert [v[i] for v in found] == pytest.approx(by_hand(own, k, overlap, 0.3), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("g", ["tanh", "sign", "relu", "abs(z)*tanh(z)"])
def test_nothing_is_averaged_at_full_overlap(g):
    h, h_1, h_2 = moments(g)(KAPPA, gamma=np.array([1, -1]), Delta=0.1)
    u = KAPPA*[1, -1]
    value = {"tanh": np.tanh(u), "sign": np.sign(u), "relu": np.maximum(u, 0), "abs(z)*tanh(z)": np.abs(u)*np.tanh(u)}[g]
    assert h == pytest.approx(value) and (h_1 == 0).all() and h_2 == pytest.approx(value**2 + 0.1)
    near = moments(g)(KAPPA, gamma=1 - 1e-12)
    assert near.h == pytest.approx(moments(g)(KAPPA, gamma=1.0).h, abs=1e-5)


def test_the_formulas():
    k = Symbol("k", real=True)
    assert moments("sign").h == erf(sqrt(2)*gamma*kappa/(2*sqrt(1 - gamma**2)))
    assert moments("sin")(k, gamma=Rational(1)).h == sin(k)
    exact = moments("tanh")(Rational(1, 3), gamma=Rational(1, 2)).h
    assert float(exact.evalf(15)) == pytest.approx(moments("tanh")(1/3, gamma=0.5).h)
    assert moments("He3").latex().count("&=") == 3 and set(moments("relu").to_dict()) == {"target", "h", "h_1", "h_2"}
    assert repr(moments("sin")).startswith("TargetMoments(sin): h = ")


def test_the_law_of_total_variance():
    """E_kappa h_2 = E g^2, E_kappa h = E g, and h_1 is sqrt(rho) E g'."""
    x = np.arange(-9, 9, 0.05)
    w = 0.05*np.exp(-x*x/2)/np.sqrt(2*np.pi)
    found = moments("erf")(x, gamma=0.7)
    assert w@found.h_2 == pytest.approx(2/np.pi*np.arcsin(2/3), rel=1e-12)
    slope = hx.mu("erf", 1)(x, r=0.7, c=0.51)
    assert found.h_1 == pytest.approx(np.sqrt(0.51)*slope, abs=1e-13)


@pytest.mark.parametrize("numbers", [{"gamma": 1.5}, {"gamma": np.nan}, {"gamma": 0.5, "Delta": -1}])
def test_a_hostile_number_is_one_line(numbers):
    with pytest.raises(BadInput, match="gamma must be between -1 and 1"):
        moments("tanh")(0.5, **numbers)


@pytest.mark.parametrize("sigma", ["relu", "tanh", "sin"])
@pytest.mark.parametrize("k", [0, 1])
def test_a_bias_shifts_the_conditional_coefficients(sigma, k):
    shifted = hx.mu(sigma, k)(KAPPA, r=0.8, c=1.3, bias=0.4)
    assert shifted == pytest.approx(hx.mu(sigma, k)(KAPPA + 0.5, r=0.8, c=1.3), rel=1e-12)
    assert hx.mu(sigma, k)(KAPPA, r=0.0, c=1.3, bias=0.4) == pytest.approx(np.full(2, hx.mu(sigma, k)(0.5, r=0.8, c=1.3)))
    assert hx.mu_star(sigma)(0.3, r=1, c=1, bias=0.2) == pytest.approx(hx.mu_star(sigma)(0.5, r=1, c=1))
    b = Symbol("b", real=True)
    exact = hx.mu("relu", 0)(Rational(1), r=2, c=1, bias=b)
    assert exact.subs(b, 0).equals(hx.mu("relu", 0)(Rational(1), r=2, c=1))
