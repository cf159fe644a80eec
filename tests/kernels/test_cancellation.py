"""Closed forms whose terms cancel: digits at extreme parameters, and an error that says what is left."""

from __future__ import annotations

import pickle
import random

import mpmath
import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Rational, Symbol, cos, cosh, exp, lambdify, log, sin, sqrt, tanh
from sympy import E as EULER

import hermitex as hx
from hermitex.errors import NotConverged
from hermitex.kernels.cancellation import may_cancel
from hermitex.symbols import z

s, mu = Symbol("s", positive=True), Symbol("mu", real=True)


def density(t):
    return mpmath.exp(-t*t/2)/mpmath.sqrt(2*mpmath.pi)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0, 50.0, 1e3, 1e4, 1e6, 1e8])
def test_a_laplace_weight_of_any_width(size):
    kernel = hx.compile(hx.E(Abs(z)*exp(-s*Abs(z)), z))
    with mpmath.workdps(60):
        x = mpmath.mpf(size)
        exact = float(2/mpmath.sqrt(2*mpmath.pi) - x*mpmath.exp(x*x/2)*mpmath.erfc(x/mpmath.sqrt(2)))
    lost = abs(kernel(s=size)/exact - 1)
    assert lost < 1e-12 and lost <= 4*kernel.error + 1e-14  # nodes beside the kink stand from it, not from the window's end


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("mean", [5.0, -2.0, -8.0, -12.0, -30.0])
def test_moments_of_a_rectified_tail(power, mean):
    kernel = hx.compile(hx.E(Max(0, mu + s*z)**power, z))
    with mpmath.workdps(1500):
        m, below, at = mpmath.mpf(mean), mpmath.erfc(-mpmath.mpf(mean)/mpmath.sqrt(2))/2, density(mpmath.mpf(mean))
        exact = float({1: m*below + at, 2: (1 + m*m)*below + m*at, 3: (m**3 + 3*m)*below + (m*m + 2)*at}[power])
    lost = abs(kernel(mu=mean, s=1.0)/exact - 1)
    assert lost < 1e-12 and lost <= 4*kernel.error + 1e-13


def test_only_the_points_that_need_it_are_integrated_and_a_pickled_kernel_does_the_same():
    kernel = pickle.loads(pickle.dumps(hx.compile(hx.E(Max(0, mu + s*z), z))))
    values = kernel(mu=np.array([1.0, -8.0, 2.0]), s=1.0)
    assert abs(values[1]/7.550262411946494e-17 - 1) < 1e-12 and values[0] == kernel(mu=1.0, s=1.0)
    assert kernel(mu=-39.0, s=1.0) == 0 and kernel.error == 1


@pytest.mark.parametrize("place", [3.0, 8.9, 9.1, 12.0, 20.0, 37.0])
def test_a_rare_event_beyond_the_window_keeps_its_digits(place):
    """E[tanh z | z > k] and E tanh(z) 1{z > k}: beyond 9 the nodes of the first window meet nothing but 0."""
    whole, given = hx.compile(hx.E(tanh(z)*Heaviside(z - mu))), hx.compile(hx.E(tanh(z), z > mu))
    with mpmath.workdps(40):
        k = mpmath.mpf(place)
        part = density(k)*mpmath.quad(lambda t: mpmath.tanh(k + t)*mpmath.exp(-k*t - t*t/2), [0, 0.5, 1, 2, 4, 12])
        chance = mpmath.erfc(k/mpmath.sqrt(2))/2
    for kernel, known in ((whole, part), (given, part/chance)):
        assert abs(kernel(mu=[1.0, place])[1]/float(known) - 1) < 1e-12 and kernel.error < 1e-11
    fixed = hx.compile(hx.E(tanh(z)*Heaviside(z - Rational(place))))
    assert abs(fixed()/float(part) - 1) < 1e-12 and fixed.error < 1e-10


def test_what_two_functions_cancel_is_seen_at_the_first_call():
    """31 erf(..) - 31 erfc(..)/2 of E[|z - 31| | z > 30]: moved by the same part, nothing of their difference moved."""
    kernel = hx.compile(hx.E(Abs(z - 31), z > mu))
    with mpmath.workdps(40):
        off, mass = (mpmath.quad(lambda t, n=n: abs(t - 1)**n*mpmath.exp(-30*t - t*t/2), [0, 0.2, 1, 2]) for n in (1, 0))
    assert abs(kernel(mu=30.0)/float(off/mass) - 1) < 1e-12


DIFFERENCES = {
    "a root": (exp(-s*z**2) - 1, lambda x: mpmath.expm1(-mpmath.log1p(2*x)/2)),
    "an exponential": (1 - cos(s*z), lambda x: -mpmath.expm1(-x*x/2)),
    "a quotient": (1 - s*z**2*exp(-s*z**2), lambda x: 1 - x/(1 + 2*x)**mpmath.mpf("1.5")),
    "what is switched off": (exp(-s*z)*Max(0, z),
                             lambda x: 1/mpmath.sqrt(2*mpmath.pi) - x*mpmath.exp(x*x/2)*mpmath.erfc(x/mpmath.sqrt(2))/2),
}


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1e-3, 0.7, 30.0, 1e4])
@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences_of_roots_and_what_is_switched_off(name, size):
    """1/sqrt(1 + 2 s) - 1 at small s; exp(-s z), which overflows where Max(0, z) is 0."""
    part, exact = DIFFERENCES[name]
    kernel = hx.compile(hx.E(part, z))
    with mpmath.workdps(60):
        lost = abs(kernel(s=size)/float(exact(mpmath.mpf(size))) - 1)
    assert lost < 1e-12


@pytest.mark.parametrize("body, tail", [((1 + tanh(z - 20))/2, lambda t: 1/(1 + mpmath.exp(40 - 2*t))),
                                        ((1 - tanh(z + 20)**2)**2, lambda t: mpmath.sech(t + 20)**4)])
def test_hyperbolic_tangents_keep_their_digits_in_the_tail(body, tail):
    """1 + tanh(u) is 2/(1 + exp(-2 u)), and 1 - tanh(u)^2 is 1/cosh(u)^2: 1 - tanh(18) has one digit."""
    exact = mpmath.quad(lambda t: tail(t)*density(t), range(-15, 16))
    assert hx.compile(hx.E(body, z))() == pytest.approx(float(exact), rel=1e-12)


def test_a_form_without_a_sum_of_functions_costs_nothing():
    assert hx.compile(hx.E(exp(s*z), z)).integrated is None
    assert not may_cancel(1 - s) and not may_cancel(exp(s) - 1)


def drawn(seed):
    r = random.Random(seed)
    part = r.choice([Abs(z), z**2, Max(0, z), Heaviside(z - 1)*z])
    return r.choice([part*exp(-s*Abs(z)), part*exp(-s*z)*Heaviside(z), Max(0, z - s)**r.choice([1, 2]), Abs(z)**3*exp(-s*z**2),
                     (Max(0, z - s) - Max(0, z - s - 1))*part])


def compare(seed):
    """A kernel against its closed form at 1,500 digits."""
    body = drawn(seed)
    form = hx.E(body, z).doit()
    if form.has(type(hx.E(body, z))):
        return
    kernel, closed = hx.compile(hx.E(body, z), "s"), lambdify(s, form, "mpmath")
    for size in (0.3, 3.0, 9.0, 40.0, 400.0):
        with mpmath.workdps(1500):
            exact = mpmath.re(closed(mpmath.mpf(size)))
        if not abs(exact) > 1e-60:
            continue
        try:
            value = kernel(size)
        except NotConverged:
            continue
        lost = abs(value/float(exact) - 1)
        assert lost <= 1e-9 and lost <= 20*kernel.error + 1e-13, (body, size, value, float(exact), kernel.error)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_forms_at_extreme_parameters(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_drawn_forms_at_extreme_parameters(seed):
    compare(seed)


def mean(f):
    return mpmath.quad(lambda x: f(x)*density(x), [-12, -3, -1, -0.3, 0, 0.3, 1, 3, 12], maxdegree=7)


SUMS = {  # a formula of s, and the same by mpmath
    "an average less its limit": (hx.E(cos(s*tanh(z)), z) - 1, lambda x: mean(lambda t: mpmath.cos(x*mpmath.tanh(t)) - 1)),
    "two averages": (hx.E(tanh(z + s)**2, z) - hx.E(tanh(z)**2, z),
                     lambda x: mean(lambda t: mpmath.tanh(t + x)**2 - mpmath.tanh(t)**2)),
    "a root of a difference": (sqrt(hx.E(tanh(z + s)**2, z) - hx.E(tanh(z)**2, z)),
                               lambda x: mpmath.sqrt(mean(lambda t: mpmath.tanh(t + x)**2 - mpmath.tanh(t)**2))),
    "a logarithm near 1": (log(hx.E(cosh(s*tanh(z)), z)), lambda x: mpmath.log(mean(lambda t: mpmath.cosh(x*mpmath.tanh(t))))),
    "inside of an average": (hx.E(tanh(z + s) - tanh(z), z), lambda x: mean(lambda t: mpmath.tanh(t + x) - mpmath.tanh(t))),
    "a square inside": (hx.E((tanh(z + s) - tanh(z))**2, z), lambda x: mean(lambda t: (mpmath.tanh(t + x) - mpmath.tanh(t))**2)),
    "no average": (exp(s) - 1 - s, lambda x: mpmath.exp(x) - 1 - x),
    "letters": ((s + 1)**2 - 1 - 2*s, lambda x: x**2),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_error_says_what_any_difference_has_lost(name):
    formula, exact = SUMS[name]
    kernel = hx.compile(formula)
    for size in (0.3, 0.02, 1e-3, 3e-5, 1e-6):
        value = kernel(s=size)
        with mpmath.workdps(40):
            true = exact(mpmath.mpf(size))
            lost = float(abs(value - true)/abs(true))
        assert lost <= kernel.error + 1e-15 and kernel.error <= 1e4*max(lost, 1e-15/size**2), (name, size, lost, kernel.error)


def test_a_text_may_hold_the_letters_of_the_field_and_ones_own():
    kernel = hx.compile("E(tanh(kappa + w*z))", symbols={"w": "real"})
    assert kernel.parameters == ("kappa", "w") and kernel(kappa=0.0, w=2.0) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("text", ["E(Max(0, z - 8)**2)", "E(abs(z)*exp(-1000*abs(z)))", "E(1 - cos(z/1000000))",
                                  "E(Heaviside(1000000001/1000000000 - z)*Heaviside(z - 1))", "exp(1/10**12) - 1"])
def test_numbers_that_all_but_cancel_have_their_digits(text):
    """Constants have no parameter at which a loss could be told: 65/2 - 65 erf(4 sqrt 2)/2 - ... is 1.8e-17."""
    exact = float(hx.parse(text).doit().evalf(20))
    assert abs(hx.compile(text)() - exact) <= 1e-14*abs(exact)


@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 7))])
def test_a_closed_form_of_numbers_has_the_digits_it_says(seed):
    """e^4850 erfc(69.6) is 0.0025: of the exponent 12 digits were left, and the wave beside a switch was nan."""
    draw = random.Random(seed)
    a, c = draw.choice([30, 1000, 10**4, 777]), Rational(draw.randint(-30, 30), 10)
    for body in (exp(-a*Abs(z - c)), z**2*exp(-a*Abs(z - c)), cos(50*z)*Heaviside(z - c/4), cosh(20*z)*Heaviside(z - abs(c))):
        node = hx.E(body, z)
        kernel, exact = hx.compile(node), float(node.evalf(25))
        assert abs(kernel()/exact - 1) <= 2*kernel.error + 1e-15, body


# -- narrow integrands of every width ------------------------------------------------------------------------------------
u, width = Symbol("u", real=True), Symbol("width", positive=True)
PARTS = [Abs(u), Max(0, u), Max(0, 1 - u), Heaviside(u), Heaviside(1 - u), Max(0, 1 + u), Max(0, 1 - Abs(u)), u**2]
ENDS = [exp(-Abs(u)), exp(-u)*Heaviside(u), exp(-u**2), Max(0, 1 - Abs(u)), exp(-u**2/2 - u), Heaviside(1 - Abs(u))]


def narrow(seed):
    """E f(z/w), w from 1e-12 to 1e-9, is w times an integral but for w^2, with the digits that the kernel claims."""
    draw = random.Random(seed)
    shape = draw.choice(PARTS)*draw.choice(PARTS)*draw.choice(ENDS)
    f = lambdify(u, shape, [{"Heaviside": lambda t, *_: int(t > 0)}, "mpmath"])
    with mpmath.workdps(25):
        whole = mpmath.quad(f, [-60, -20, -8, -3, -1, 0, 1, 3, 8, 20, 60])/mpmath.sqrt(2*mpmath.pi)
    kernels = [hx.compile(hx.E(shape.subs(u, scaled), z)) for scaled in (z/width, z*width)]
    answered = 0
    for kernel, power in zip(kernels, (1, -1), strict=True):
        for size in (10**draw.uniform(-12, -9) for _ in range(6)):
            try:
                value = kernel(width=size**power)
            except NotConverged:
                continue
            answered += 1
            w = float(mpmath.mpf(size**power)**power)
            assert abs(value/float(whole*w) - 1) <= kernel.error + 1e-15, (seed, shape, size)
    assert answered >= 10, (seed, shape)


@pytest.mark.parametrize("seed", range(8))
def test_narrow_integrands_have_the_digits_that_are_claimed(seed):
    narrow(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(8, 60)])
def test_narrow_integrands_at_length(seeds):
    for seed in seeds:
        narrow(seed)


def test_a_narrow_peak_away_from_zero_has_the_digits_that_are_claimed():
    """E exp(-s|z - m|) = 2 phi(m)/s to 1/s^2: the nodes beside m are rounded, which verification may meet by chance."""
    kernel, draw, answered = hx.compile("E(exp(-s*abs(z - m)))", symbols={"s": "positive", "m": "real"}), random.Random(4), 0
    for _ in range(60):
        s, m = 10**draw.uniform(8.5, 12), draw.choice([-1, 1])*10**draw.uniform(-6, 0)
        try:
            value = kernel(s=s, m=m)
        except NotConverged:
            continue
        answered += 1
        assert abs(value*s/(2*float(mpmath.npdf(mpmath.mpf(m)))) - 1) <= kernel.error + 1e-15, (s, m)
    assert answered >= 15


def test_numbers_that_cancel_in_a_sum_within_a_sum_keep_their_digits():
    """Of what cancels inside 17 digits were kept, and the sum around it cancels once more: the fifth digit was wrong."""
    node = hx.E(sin(7*z)*Max(0, 1 - Abs(10**12*z - 10**12*EULER)), z)
    with mpmath.workdps(40):
        width, place = mpmath.mpf(10)**-12, mpmath.e
        known = mpmath.quad(lambda u: width*(1 - abs(u))*mpmath.sin(7*(place + width*u))*density(place + width*u), [-1, 0, 1])
    assert hx.compile(node)() == pytest.approx(float(known), rel=1e-14, abs=0)
