"""Laws of sympy.stats as channels, the mean of C y^a exp(-b y^c), further spellings, and names that do not exist."""

import numpy as np
import pytest
from sympy import Max, Min, Rational, Symbol, binomial, erf, exp, floor, gamma, lambdify, pi, sign, sqrt
from sympy.stats import Beta, Binomial, Exponential, Gamma, Geometric, Laplace, LogNormal, Poisson, Weibull

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.exponents.drawn_laws import drawn_law, mean_of_a_power_law
from hermitex.symbols import z, z1, z2, z3

Y = Symbol("y", real=True)


@pytest.mark.parametrize("law, information, generative", [
    (lambda: Exponential("Y", exp(-z)), 1, 1), (lambda: Weibull("Y", exp(z), 2), 1, 1), (lambda: Gamma("Y", 3, exp(z**2/8)), 2, 2),
    (lambda: Binomial("Y", 5, (1 + erf(z))/2), 1, 1), (lambda: Poisson("Y", z**2), 2, 2), (lambda: Laplace("Y", z**2, 1), 2, 2),
    (lambda: Geometric("Y", (1 + exp(-z**2))/2), 2, 2)])
def test_laws_of_sympy_stats(law, information, generative):
    found = hx.exponents(z, law())
    assert (found.information_exponent, found.generative_exponent) == (information, generative)


def test_a_channel_whose_mean_is_exp_z_has_information_exponent_one():
    for p in ("exp(-z - y*exp(-z))*Heaviside(y)", "2*y*exp(-2*z)*exp(-y**2*exp(-2*z))*Heaviside(y)"):
        found = hx.exponents(z, hx.Channel(p, "y"))
        assert found.information_exponent == 1 and found.certificates[0].status == "nonzero"


def test_means_by_quadrature():
    y = np.linspace(1e-9, 80, 40_001)
    for law in (Weibull("Y", exp(z/3), 3), Gamma("Y", Rational(5, 2), exp(z/4)), Exponential("Y", exp(-z/2))):
        p, letter, support, mean = drawn_law(law)
        assert support == "real" and (mean_of_a_power_law(p, letter) - mean).simplify() == 0
        for at in (Rational(-1, 2), Rational(3, 4)):
            density = lambdify(letter, p.subs(z, at), "numpy")
            assert abs(np.trapezoid(density(y)*y, y)/float(mean.subs(z, at)) - 1) < 1e-4


def test_tooth_a_lost_power_is_seen():
    p = 2*Y*exp(-2*z)*exp(-Y**2*exp(-2*z))
    assert mean_of_a_power_law(p, Y) is None  # not said to vanish for y < 0
    mean = mean_of_a_power_law(hx.Channel("2*y*exp(-2*z)*exp(-y**2*exp(-2*z))*Heaviside(y)", "y").p, Y)
    assert (mean - exp(z)*gamma(Rational(3, 2))).simplify() == 0 and (mean - exp(2*z)).simplify() != 0


def test_the_threshold_of_a_lognormal_is_that_of_its_logarithm():
    one, two = hx.exponents(z, LogNormal("Y", z**2, 1)), hx.exponents("z**2", "gaussian:1")
    assert abs(float(one.alpha_c) - float(two.alpha_c)) < 1e-9 and one.information_exponent is None


def test_the_label_map_of_a_law():
    """E[z^2|y] for rates exp(z), by sums over a grid of z."""
    found = hx.exponents(z, Exponential("Y", exp(z))).label_map()
    x = np.linspace(-9, 9, 4001)
    for y in (.05, .7, 3.0, 12.0):
        weight = np.exp(x - y*np.exp(x) - x*x/2)
        assert abs(1/(1 - found(y)) - np.sum(weight*x**2)/np.sum(weight)) < 1e-8


def test_beta_is_written_with_gammas():
    p, _, support, mean = drawn_law(Beta("Y", 2 + z**2, 2))
    assert support == "real" and p.has(gamma) and mean == (z**2 + 2)/(z**2 + 4)


@pytest.mark.parametrize("text, meant", [
    ("sgn(z)", sign(z)), ("ReLU(z)", Max(0, z)), ("round(z)", floor(z + Rational(1, 2))), ("mod(z, 2)", z - 2*floor(z/2)),
    ("Mod(z, 1)", z - floor(z)), ("binomial(5, 2)", binomial(5, 2)),
    ("median(z1, z2, z3)", Max(Min(z1, z2), Min(z3, Max(z1, z2))))])
def test_spellings(text, meant):
    assert hx.parse(text) == meant


def test_a_binomial_channel_as_text():
    law = hx.Channel("binomial(3, y)*Phi(z)**y*(1 - Phi(z))**(3 - y)", "y", [0, 1, 2, 3])
    found = hx.exponents(z, law)
    assert found.information_exponent == 1 and (found.certificates[0].value - 3/(2*sqrt(pi))).simplify() == 0


@pytest.mark.parametrize("name", ["noisy", "Poisson", "binomial:3"])
def test_an_unknown_channel_lists_all_of_them(name):
    with pytest.raises(UnknownName, match="there are bernoulli, deterministic, flip, gaussian, multiplicative, poisson"):
        hx.exponents("z", name)


def test_a_law_that_cannot_be_read():
    with pytest.raises(BadInput):
        hx.Channel("exp(-y)")
