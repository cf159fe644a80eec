"""Labels s h, s = +-1 and h > 0, tell both; where h may vanish they do not. Noise that multiplies g sees more than level sets."""

import numpy as np
import pytest

import hermitex as hx

# sigma(|z1|, sign(z1 z2)): G = [[z1^2 - 1, |z1| s sqrt(2/pi)], [., 0]], couplings 2, 2/pi, of which the largest eigenvalue is
_PAIR = 1 + np.sqrt(1 + 4/np.pi**2)


@pytest.mark.parametrize("h", ["exp(-z1**2)", "exp(-3*abs(z1))", "tanh(z1**2)", "exp(-z1**4)", "1/(1 + z1**2)", "-exp(z1**2)",
                               "abs(z1)"])
def test_the_size_tells_the_modulus(h):
    """One answer for every h that is injective in |z1| and never zero."""
    assert float(hx.exponents(f"sign(z1*z2)*({h})").alpha_c) == pytest.approx(1/_PAIR, rel=1e-12)


def test_what_injective_maps_of_one_quantity_show():
    plain = float(hx.exponents("z1*z2").alpha_c)
    for same in ("sign(z1*z2)*sqrt(abs(z1*z2))", "sign(z1*z2)*log(1 + abs(z1*z2))"):
        assert float(hx.exponents(same, budget=30).alpha_c) == pytest.approx(plain, rel=1e-12)


@pytest.mark.slow
def test_a_size_that_may_vanish_hides_the_sign():
    """sign(z1 z2) is seen where z3^2 > 1 only."""
    found = hx.exponents("sign(z1*z2)*max(z3**2 - 1, 0)")
    chance = 0.31731050786291415  # P(z3^2 > 1)
    assert f"alpha = {np.pi**2/4/chance:.10g}" in found.notes[0]
    assert str(hx.exponents("sign(z1*z2)*relu(z3)").threshold.exact) == "pi**2/2"


def test_noise_that_multiplies_does_not_forget_the_size():
    """y = R xi in the plane has the law of Laplace and E[R^2 | y] = |y| + 1: 1/alpha_c = E[((|y| - 1)/2)^2] = 1/4."""
    assert float(hx.exponents("sqrt(z1**2 + z2**2)", channel="multiplicative").alpha_c) == pytest.approx(4, rel=1e-9)
    square, inverse = (float(hx.exponents(g, channel="multiplicative").alpha_c) for g in ("z1**2 + z2**2", "1/(1 + z1**2 + z2**2)"))
    assert square == pytest.approx(1.98980409806, rel=1e-9) and inverse > 4


@pytest.mark.slow
@pytest.mark.parametrize("g", ["exp(-z1**2 - z2**2)", "1/(1 + z1**2 + z2**2)"])
def test_noise_that_multiplies_against_an_integral(g):
    """E[R^2/2 - 1 | y] for y = g xi, with t = R^2/2 exponential: panels in t, the trapezoid rule in log y."""
    x, w = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(0, 40, 161)
    t = (edges[:-1, None] + (x + 1)/8).ravel()
    w = np.tile(w/8, 160)*np.exp(-t)
    size = np.exp(-2*t) if g.startswith("exp") else 1/(1 + 2*t)
    y = np.exp(np.linspace(-90, 3, 3_001))  # y > 0, on a logarithmic line
    step = np.log(y[1]/y[0])
    law = w*np.exp(-(y[:, None]/size)**2/2)/np.sqrt(2*np.pi)/size
    p, q = law.sum(1), law @ (t - 1)
    inverse = 2*np.sum(np.divide(q**2, p, out=np.zeros_like(p), where=p > 0)*y)*step
    found = hx.exponents(g, channel="multiplicative").threshold
    assert abs(float(found.alpha_c) - 1/inverse) < 2*float(found.error) + 1e-8 and float(found.error) < 1e-3


@pytest.mark.slow
def test_functions_of_the_angle():
    """y = sin(2t)/2 is independent of the radius: G = [[0, sin 2t], [sin 2t, 0]], 1/alpha_c = E[sin^2 2t] = 1/2."""
    found = hx.exponents("z1*z2/(z1**2 + z2**2)", budget=120)
    assert found.square_integrable and (found.leap_exponent, found.generative_exponent) == (2, 2)
    assert float(found.alpha_c) == pytest.approx(2, abs=2*float(found.threshold.error) + 1e-12)
    cosine = hx.exponents("z1/sqrt(z1**2 + z2**2)")
    assert [float(s["alpha_c"]) for s in cosine.threshold.stages] == [0, 0.5]


@pytest.mark.slow
def test_a_form_of_four_turns_is_found():
    """sign Re (z1 + i z2)^4 is a harmonic of order four: nothing below is seen, and order four is hard."""
    found = hx.exponents("sign(z1**4 - 6*z1**2*z2**2 + z2**4)", budget=120)
    assert (found.leap_exponent, found.generative_exponent, found.threshold.kind) == (4, 4, "hard")


@pytest.mark.parametrize(("g", "alone"), [("relu(z1)*z2", "z"), ("z1*relu(z2)", "z"), ("Heaviside(z1 + z3)*z2**2", "z**2")])
def test_noise_that_multiplies_is_silent_where_a_known_factor_vanishes(g, alone):
    found, whole = (hx.exponents(t, channel="multiplicative").threshold for t in (g, alone))
    assert [float(s["alpha_c"]) for s in found.stages] == pytest.approx([0, 2*float(whole.alpha_c)], rel=1e-12)
