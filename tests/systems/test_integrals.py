"""Integrals of SymPy and of texts in a system, with unknowns and parameters at their ends: against SciPy."""

import runpy

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from sympy import Integral, Rational, Symbol, cos, exp, oo, sqrt

import hermitex as hx
from hermitex.errors import BadInput, ParseError
from hermitex.symbols import z

q, a = Symbol("q", positive=True), Symbol("a", positive=True)
x = Symbol("x")


def integral(f, low, high):
    return quad(f, low, high, epsabs=1e-12, epsrel=1e-12, limit=200)[0]


@pytest.mark.parametrize("right, by_scipy", [
    (a/5 + Integral(exp(-x**4), (x, 0, q))/2, lambda v, a: a/5 + integral(lambda x: np.exp(-x**4), 0, v)/2),
    (Integral(exp(-a*x)/(1 + q*x), (x, 0, oo)), lambda v, a: integral(lambda x: np.exp(-a*x)/(1 + v*x), 0, np.inf)),
    (a/3 + Integral(exp(-q*x**2), (x, -oo, oo))/4, lambda v, a: a/3 + np.sqrt(np.pi/v)/4),
    (a + Integral(sqrt(x)*cos(x), (x, q, 2*q))/9, lambda v, a: a + integral(lambda x: np.sqrt(x)*np.cos(x), v, 2*v)/9),
])
def test_an_integral_with_an_unknown_end(right, by_scipy):
    found = hx.System({q: right}).solve(a=[0.7, 1.1])
    for value, number in zip(found["q"], (0.7, 1.1), strict=True):
        assert value == pytest.approx(brentq(lambda v, n=number: v - by_scipy(v, n), 0.05, 5, xtol=1e-15), rel=1e-10)


def test_an_integral_within_an_average():
    """E (int_0^(q + z) exp(-x^2) dx)^2 is E (sqrt(pi)/2 erf(q + z))^2."""
    from scipy.special import erf

    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    found = hx.System({q: hx.E(Integral(exp(-x**2), (x, 0, q + z))**2, z) + a}).solve(a=0.3)["q"]
    assert found == pytest.approx(0.3 + weights @ (np.pi/4*erf(found + nodes)**2)/np.sqrt(2*np.pi), rel=1e-12)


def test_an_integral_in_a_flow_and_in_a_file(tmp_path):
    """dm/dt = int_0^(1-m) 2 x dx = (1 - m)^2 has 1 - m = 1/(1 + t)."""
    m = Symbol("m", real=True)
    path = hx.Flow({m: Integral(2*x, (x, 0, 1 - m))}).solve(t=np.array([0.0, 1.0, 3.0]), start={"m": 0})
    assert path["m"][-1] == pytest.approx(0.75, rel=1e-8)
    system = hx.System({q: Integral(exp(-x**4), (x, 0, q))/2 + a})
    system.export(tmp_path/"solver.py", a=0.2)
    made = runpy.run_path(str(tmp_path/"solver.py"))
    assert made["solve"](0.4)["q"] == pytest.approx(system.solve(a=0.4)["q"], rel=1e-13)


def test_an_integral_without_ends_is_refused():
    with pytest.raises(BadInput, match="has no ends"):
        hx.System({q: Integral(x**2, x) + Rational(1, 2)})


@pytest.mark.parametrize("text, formula", [
    ("a/5 + Integral(exp(-x**4), (x, 0, q))/2", a/5 + Integral(exp(-x**4), (x, 0, q))/2),
    ("Integral(exp(-a*t)/(1 + q*t), (t, 0, oo))", Integral(exp(-a*x)/(1 + q*x), (x, 0, oo))),
    ("a/3 + Integral(exp(-q*z**2), (z, -oo, oo))/4", a/3 + Integral(exp(-q*x**2), (x, -oo, oo))/4)])
def test_an_integral_in_a_text(text, formula):
    written, meant = (hx.System({q: e}, symbols="a>0, q>0").solve(a=0.7)["q"] for e in (text, formula))
    assert written == pytest.approx(float(meant), rel=1e-12)


@pytest.mark.parametrize("text", ["Integral(exp(-x), x)", "Integral(exp(-x), (pi, 0, 1))", "Integral(x)"])
def test_an_integral_that_is_not_read(text):
    with pytest.raises(ParseError, match=r"Integral|own"):
        hx.parse(text)
