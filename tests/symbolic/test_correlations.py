"""A correlation is real: the letter rho, declared positive, gives the same value on both sides of 0 by every route."""

from __future__ import annotations

import random

import pytest
from sympy import Abs, Heaviside, Max, Piecewise, Rational, Symbol, erf, exp, sign, sqrt

import hermitex as hx
from hermitex import Expectation
from hermitex.symbols import rho, z1, z2


def relu(u):
    return Max(0, u)


def elu(u):
    return Piecewise((u, u > 0), (exp(u) - 1, True))


FACTORS = [relu, elu, lambda u: relu(u)**2, lambda u: u*Abs(u), sign, Abs, lambda u: exp(u/2)*relu(u), erf, Heaviside,
           lambda u: Max(u, -1), lambda u: Abs(u)**3, lambda u: u*Heaviside(u - 1), lambda u: exp(-Abs(u))]


def drawn(seed):
    r = random.Random(seed)
    return r.choice(FACTORS)(z1)*r.choice(FACTORS)(z2)


def compare(seed):
    g = drawn(seed)
    node, written = E(g), hx.E(g.subs(z2, rho*z1 + sqrt(1 - rho**2)*z2), z1, z2)
    kernels = [hx.compile(node, "rho"), hx.compile(written, "rho")]
    exact = [n.doit() for n in (node, written)]
    for at in (Rational(-7, 10), Rational(2, 5)):
        expected = float(E(g, at).evalf(12))
        assert all(abs(kernel(rho=float(at)) - expected) < 1e-9 for kernel in kernels), (g, at)
        assert all(abs(float(e.subs(rho, at).evalf()) - expected) < 1e-9 for e in exact if not e.has(Expectation)), (g, at)


def E(g, at=rho):
    return hx.E(g, z1, z2, cov={(z1, z2): at})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_products_at_negative_correlations(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
def test_more_products_at_negative_correlations(seed):
    compare(seed)


def test_the_example_and_a_symbol_without_a_sign_agree():
    g, r = relu(z1)**2*relu(z2)**2, Symbol("r", real=True)
    assert abs(float(E(g).doit().subs(rho, Rational(-7, 10)).evalf()) - 0.0119668146162567) < 1e-15
    assert E(g, r).doit().subs(r, Rational(1, 3)).equals(E(g).doit().subs(rho, Rational(1, 3)))


def test_a_variance_keeps_its_sign():
    q = Symbol("q", positive=True)
    assert hx.E(Abs(z1), z1, cov={(z1, z1): q}).doit() == sqrt(2)*sqrt(q)/sqrt(hx.parse("pi"))
