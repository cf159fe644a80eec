"""A narrow factor exp(-((z - m)/w)^2): its square is completed, and what cancels there is not computed."""

import numpy as np
import pytest
from scipy.special import erfc as tail
from sympy import Max, Symbol, cosh, erfc, exp, symbols, tanh

import hermitex as hx

h, w, x = symbols("h w x", real=True)
z = Symbol("z")
T = np.arange(-3500, 3501)/250  # the rule of step 1/250 is exact for what falls like exp(-t^2/2)
FACTORS = [
    (tanh(z)**2 + 1, lambda u: np.tanh(u)**2 + 1), (1 + z**2, lambda u: 1 + u*u), (1/(1 + z**2), lambda u: 1/(1 + u*u)),
    (exp(z/2), lambda u: np.exp(u/2)), (cosh(z), np.cosh), (erfc(z), tail),
]
BUMPS = [  # the factor, its centre and its width
    (exp(-((z - h - x/10)/w)**2), lambda h, x, w: h + x/10, lambda x, w: w/np.sqrt(2)),
    (exp(-(z - h*x)**2/(2*w**2)), lambda h, x, w: h*x, lambda x, w: w),
    (exp(-z**2/w**2 + 2*h*z/w**2 - h**2/w**2), lambda h, x, w: h, lambda x, w: w/np.sqrt(2)),
    (exp(-(x*z - h)**2/(2*w**2)), lambda h, x, w: h/x, lambda x, w: w/x),
]


def expected(factor, m, s):
    u = m + s*T
    return s*np.sum(factor(u)*np.exp(-T*T/2 - u*u/2))/250/np.sqrt(2*np.pi)


@pytest.mark.parametrize("k", range(len(FACTORS)))
def test_a_narrow_bump_keeps_its_digits(k):
    formula, factor = FACTORS[k]
    rng = np.random.default_rng(k)
    bump, centre, width = BUMPS[k % len(BUMPS)]
    kernel = hx.compile(hx.E(formula*bump, z))
    for e in (-0.5, -3, -5, -7):
        numbers = {"h": rng.uniform(0.2, 1.5), "x": rng.uniform(0.5, 1.5), "w": 10**(e + rng.uniform(-0.5, 0))}
        value = kernel(**{n: v for n, v in numbers.items() if n in kernel.parameters})
        wanted = expected(factor, centre(numbers["h"], numbers["x"], numbers["w"]), width(numbers["x"], numbers["w"]))
        assert value == pytest.approx(wanted, rel=1e-12), (formula*bump, numbers)


@pytest.mark.parametrize("narrow", [3e-2, 3e-4, 3e-6])
def test_a_bump_about_an_unknown_is_solved(narrow):
    system = hx.System({x: 1 + hx.E((1 + z**2)*BUMPS[0][0], z)/w})
    found = system.solve(h=0.3, w=narrow)
    m = 0.3 + found["x"]/10
    assert found["x"] == pytest.approx(1 + expected(FACTORS[1][1], m, narrow/np.sqrt(2))/narrow, rel=1e-11)


@pytest.mark.parametrize("size", [5.0, 20.0, 40.0, 100.0])
def test_a_mass_that_is_moved_beyond_every_window(size):
    """E[f(z) exp(h z - h^2/2)] = E f(z + h)."""
    kernel = hx.compile(hx.E((z + 1)*(2 + tanh(z))*exp(h*z - h**2/2), z))
    assert kernel(h=size) == pytest.approx(np.sum((T + size + 1)*(2 + np.tanh(T + size))*np.exp(-T*T/2))/250/np.sqrt(2*np.pi),
                                           rel=1e-12)


@pytest.mark.parametrize("size", [5.0, 20.0, 40.0, 100.0])
@pytest.mark.parametrize("beside", [0, 0.1, 1])
def test_a_term_whose_mass_is_elsewhere_has_nodes_of_its_own(size, beside):
    """E[f(z) exp(k z - k^2/2)] = E f(z + k), beside a term whose mass stays at 0."""
    a, k = symbols("a k", real=True)
    body = Max(z - a, 0)*tanh(z)*exp(k*z - k**2/2) + beside*tanh(z)**2
    found = hx.System({x: hx.E(body, z)}).solve(k=size, a=0.5)
    t = np.arange(-4000, 4001)/400
    there = np.sum(np.maximum(t + size - 0.5, 0)*np.tanh(t + size)*np.exp(-t*t/2))/400/np.sqrt(2*np.pi)
    assert found["x"] == pytest.approx(there + beside*0.394294490397842, rel=1e-9)
