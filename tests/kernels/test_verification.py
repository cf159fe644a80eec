"""Averages that oscillate, are narrow or diverge: never a wrong number without a word, alone, in a batch, in a system."""

import numpy as np
import pytest
from sympy import Symbol, cos, exp, lambdify, sin, sqrt, symbols, tan, tanh

import hermitex as hx
from hermitex.errors import NotConverged
from hermitex.symbolic.gaussian import E
from hermitex.symbols import z

a, b, x = symbols("a b x", real=True)


def dense(body, **numbers):
    """E f by the trapezoid rule with 400,001 nodes, which no kernel uses."""
    nodes = np.linspace(-10, 10, 400_001)
    f = lambdify([z, *(Symbol(n, real=True) for n in numbers)], body, "numpy")
    return float(np.sum(f(nodes, *numbers.values())*np.exp(-nodes**2/2))*(nodes[1] - nodes[0])/np.sqrt(2*np.pi))


OSCILLATING = [sin(a*z)**2*tanh(z)**2, cos(a*z)/(1 + exp(z)), tanh(1 + sin(a*z)), 1/(2 + cos(a*z)), exp(cos(a*z))*tanh(z)**2,
               cos(a*z)*cos(a*z + 1)/(1 + z**2)]


@pytest.mark.parametrize("body", OSCILLATING, ids=str)
def test_oscillation_is_found_alone_and_in_a_batch(body):
    kernel = hx.compile(E(body, z))
    step = 2*np.pi/0.1  # the frequencies that the first rule cannot tell from slow ones
    draw = np.random.default_rng(len(str(body)))
    numbers = np.concatenate([[30.0, step/2, step, 2*step], np.exp(draw.uniform(0, 6, 3))])
    truth = [dense(body, a=v) for v in numbers]
    assert kernel(a=numbers) == pytest.approx(truth, rel=1e-9)
    for v, value in zip(numbers, truth, strict=True):
        assert hx.compile(E(body, z))(a=v) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("body", [*OSCILLATING[:4]], ids=str)
def test_oscillation_in_a_table_of_a_system(body):
    system = hx.System({x: b*E(body, z) + x/4})
    for v in (30.0, 20*np.pi, 41.3):
        assert system.solve(a=v, b=1.5)["x"] == pytest.approx(2*dense(body, a=v), rel=1e-9)


DIVERGENT = [tan(a*z), tan(a*z)**2, 1/(z - a), 1/(sin(3*z) - a/8)**2, 1/(tanh(z) - a/8), 1/((z - a)*(z + a + 1)), 1/(exp(z) - a)**2]


@pytest.mark.parametrize("body", DIVERGENT, ids=str)
def test_what_diverges_is_refused(body):
    draw = np.random.default_rng(7).uniform(0.4, 1.6, 3)
    kernel, system = hx.compile(E(body, z)), hx.System({x: b*E(body, z)})
    observed = hx.System({x: a/2}, observables={"seen": E(body, z)})
    for v in (*draw, 1.0):
        with pytest.raises(NotConverged):
            kernel(a=v)
        with pytest.raises(NotConverged):
            system.solve(a=v, b=1.0)
        with pytest.raises(NotConverged):
            observed.solve(a=v)


def test_a_point_that_diverges_leaves_the_others_of_its_batch_alone():
    found = hx.System({x: b*E(1/(sqrt(z**2 + a) - 1)*tanh(z)**2, z)}).solve(a=[0.5, 1.5, 2.0], b=1.0, raise_on_failure=False)
    assert list(found.converged) == [False, True, True]


def test_a_table_keeps_its_error():
    C, beta, h = Symbol("C", real=True), Symbol("beta", positive=True), Symbol("h", real=True)
    found = hx.System({C: beta*E(1 - tanh(beta*(z - h))**2, z)}).solve(beta=1e3, h=0.3)
    assert found["C"] == pytest.approx(2*np.exp(-0.045)/np.sqrt(2*np.pi), rel=1e-6)
