"""Components of the multivariate normals of sympy.stats are normals with its mean and covariance."""

from __future__ import annotations

import pytest
from sympy import Heaviside, Max, Rational, exp, pi, simplify, sqrt, symbols, tanh
from sympy.stats import Bernoulli, MultivariateNormal

from hermitex import E
from hermitex.errors import BadInput

rho, mu, s, c, z, z1, z2 = symbols("rho mu s c z z1 z2", real=True)
Y = MultivariateNormal("Y", [mu, 1], [[1, rho], [rho, 4]])
W = MultivariateNormal("W", [0, 0], [[1, rho], [rho, 1]])


@pytest.mark.parametrize("average, value", [
    (E(Y[0]*Y[1]), mu + rho), (E(Y[1]**2, Y), 5), (E(Y[0]*z, Y), mu*z), (E(Y[0]*z), 0), (E(W[0]*W[1]*z**2), rho),
    (E(W[0]*W[1]*Bernoulli("b", Rational(1, 3))), rho/3), (E(z1*z2*W[0]**2, cov={(z1, z2): s}), s),
    (E(exp(W[0] + W[1])), exp(1 + rho)), (E(W[0]**2, W[0]), 1)], ids=str)
def test_moments(average, value):
    assert simplify(average.doit() - value) == 0


@pytest.mark.parametrize("f", [lambda u, v: Heaviside(u)*Heaviside(v), Max, lambda u, v: u*tanh(v), lambda u, v: abs(u)*v**2])
def test_they_are_the_normals_of_that_covariance(f):
    ours = E(f(z1, z2), cov={(z1, z2): rho}).doit()
    assert (E(f(W[0], W[1])).doit() - ours).subs(rho, Rational(2, 5)).evalf(15) == pytest.approx(0, abs=1e-14)


def test_a_condition_on_one():
    assert simplify(E(W[0], W[1] > c).doit() - E(z1, z2 > c, cov={(z1, z2): rho}).doit()) == 0
    assert E(W[0], W[1] > 0).doit().subs(rho, 1) == sqrt(2)/sqrt(pi)


def test_another_mean_is_another_value():
    assert E(Y[0]*Y[1]).doit() != E(W[0]*W[1]).doit()


def test_the_whole_vector_is_no_integrand():
    with pytest.raises(BadInput, match="joint law"):
        E(Y)
