"""u(z) plus any noise has the exponents of u, and its threshold is that of the convolved laws; T must be integrable."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import k0, k1
from sympy import Abs, Piecewise, S, Symbol, exp, pi, sqrt

import hermitex as hx
from hermitex.symbols import z, z1, z2

y = Symbol("y", real=True)


def laplace(u):
    return hx.Channel(exp(-Abs(y - u))/2, y)


def cauchy(u):
    return hx.Channel(1/(pi*(1 + (y - u)**2)), y)


def test_laplace_noise_is_answered_with_its_threshold():
    """Third route: u = z1 z2 has the density K0(|u|)/pi, E[z1^2 - 1|u] = |u| K1/K0 - 1, and 1/alpha_c = E[a^2 + b^2]."""
    found = hx.exponents("z1*z2", channel=laplace(z1*z2))
    assert (found.information_exponent, found.generative_exponent, found.threshold.kind) == (2, 2, "easy")
    u = np.concatenate([-np.geomspace(45, 1e-14, 6000), np.geomspace(1e-14, 45, 6000)])
    density = k0(np.abs(u))/np.pi
    parts = np.stack([density, u*density, np.abs(u)*k1(np.abs(u))/np.pi - density])

    def integrand(label):
        p, b, a = trapezoid(parts*np.exp(-np.abs(label - u))/2, u)
        return (a*a + b*b)/p

    x, w = np.polynomial.legendre.leggauss(40)
    inverse = 2*sum(20*v*integrand(20*(1 + label)) for label, v in zip(x, w, strict=True))
    assert float(found.alpha_c) == pytest.approx(1/inverse, rel=1e-3)
    assert not any("does not exist" in n for n in found.notes)


def test_cauchy_noise_has_no_mean_but_all_the_rest():
    found = hx.exponents("z1*z2", channel=cauchy(z1*z2))
    assert found.information_exponent is None and found.generative_exponent == 2
    assert found.alpha_c is not None
    assert any("the noise has no mean" in n for n in found.notes)
    assert any("u = z1*z2" in n and "mixture of Gaussians" in n for n in found.notes)


@pytest.mark.parametrize("target, u", [("z**3 - 3*z", z**3 - 3*z), ("z**2", z**2)])
@pytest.mark.parametrize("law", [laplace, cauchy])
def test_the_exponent_of_added_noise_is_that_of_the_target(target, u, law):
    assert hx.exponents(target, channel=law(u)).generative_exponent == hx.exponents(target).generative_exponent


def test_a_gaussian_written_out_is_the_named_channel():
    written = hx.exponents("z1*z2", channel=hx.Channel(exp(-(y**2 - 2*y*z1*z2 + z1**2*z2**2)/2)/sqrt(2*pi), y))
    named = hx.exponents("z1*z2", channel="gaussian:1")
    assert float(written.alpha_c) == pytest.approx(float(named.alpha_c), rel=1e-7)


def test_uniform_noise_converges():
    found = hx.exponents("z", channel=hx.Channel(Piecewise((S.Half, Abs(y - z**2) < 1), (0, True)), y))
    assert found.generative_exponent == 2


@pytest.mark.parametrize("target", ["exp(z1**2) + z2", "exp(z1**2/2)*z2"])
def test_no_proof_uses_a_label_map_without_a_mean(target):
    """Y itself is not in L1 there: E[Y He_a] proves nothing, and a bounded map must."""
    found = hx.exponents(target)
    assert found.generative_exponent == 2
    assert not any("T(y) = y:" in c.how or "T(y) = y**" in c.how for c in found.certificates)


def test_a_label_with_a_moment_above_the_first_may_be_its_own_map():
    """E|Y|^(11/10) is finite, so E[Y He_a] exists though E[Y^2] does not."""
    found = hx.exponents("exp(z1**2/3)*sign(z2*z3)")
    assert found.square_integrable is False and found.generative_exponent == 2


@pytest.mark.parametrize("target", ["exp(z1**2)*sign(z2*z3)", "sign(z1*z2)*exp(z3**2)"])
def test_signs_are_seen_apart_from_what_they_multiply(target):
    """|Y| and sign(Y) are bounded enough, though Y has no mean."""
    assert hx.exponents(target).generative_exponent == 2
