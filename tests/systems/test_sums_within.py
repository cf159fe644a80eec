"""Sums whose terms hold the same part of an integration variable, below a function, are formed exactly; against 40 digits."""

import random
from functools import partial

import mpmath as mp
import pytest
from sympy import Eq, Rational, Symbol, cos, cosh, erf, exp, lambdify, sin, tanh

import hermitex as hx
from hermitex.errors import NotConverged
from hermitex.symbols import z, z1

pytestmark = pytest.mark.beyond  # letters that differ in the 14th digit: kernels/common_factors.py, systems/cancelled.py

a, b, c, d, x = (Symbol(n, real=True) for n in "abcdx")
y, U = Symbol("y", positive=True), Symbol("U", real=True)
EXACT = [(a*z - b*z)/(a - b), (a*z + c - b*z - c)/(a - b), (a*(z + c) - b*(z + c))/(a - b), (a*sin(z) - b*sin(z))/(a - b) + c*z,
         (a*tanh(z) - b*tanh(z))/(a - b), (a*exp(c*z/4) - b*exp(c*z/4))/(a - b), (a*c*z - b*c*z)/(a*c - b*c)]
OUTER = [lambda u: tanh(u)**2, lambda u: erf(u/2 + 1), lambda u: exp(-u**2/4), lambda u: cos(u), lambda u: 1 + u/(2 + cos(u)),
         lambda u: Rational(1, 2) + tanh(u)/1000, lambda u: 1/cosh(u)**2]
PLACES = {  # a system with f(u) in it, and x for the average of f(u)
    "explicit": (lambda f, u: ({x: hx.E(f(u), z)}, {}, {}), lambda v: v),
    "where": (lambda f, u: ({x: hx.E(f(U), z)}, {}, {U: u}), lambda v: v),
    "observable": (lambda f, u: ({y: a}, {x: hx.E(f(u.subs(a, y)), z)}, {}), lambda v: v),
    "implicit": (lambda f, u: ({x: Eq(x*(3 + hx.E(f(u), z)) - 1, 0)}, {}, {}), lambda v: 1/(3 + v)),
    "root": (lambda f, u: ({x: hx.E(f(u), z)/(1 + x**2)}, {}, {}),
             lambda v: mp.findroot(lambda t: t*(1 + t*t) - v, v if abs(v) < 1 else mp.sign(v))),
    "nested": (lambda f, u: ({x: hx.E(tanh(hx.E(f(u)*(2 + tanh(z1)), z)), z1)}, {}, {}),
               lambda v: mean(lambda t: mp.tanh(v*(2 + mp.tanh(t)))))}


def mean(f):
    """E f(z) of a function that is analytic near the line, by the trapezoid rule."""
    step = mp.mpf(1)/16
    return step*mp.fsum(mp.npdf(k*step)*f(k*step) for k in range(-150, 151))


def drawn(seed, *, powers=2, kernels=False):
    """One formula in one place, at letters that differ less and less."""
    r = random.Random(seed)
    u, f, place = r.choice(EXACT), r.choice(OUTER), r.choice(list(PLACES))
    make, solved = PLACES[place]
    given = {n: round(r.uniform(0.6, 1.5), 3) for n in "ac"}
    given["d"] = given["c"]  # the letters differ, the numbers do not: f moves on a scale of 1
    equations, seen, names = make(f, u)
    kernel = hx.compile(hx.E(f(u), z)) if kernels else None
    system = hx.System(equations, observables=seen, where=names)
    inner = lambdify((a, b, c, d, z), f(u), "mpmath")
    for power in r.sample(range(1, 15), powers):
        numbers = {**given, "b": given["a"]*(1 + 10.0**-power)}
        with mp.workdps(40):
            at = partial(inner, *(mp.mpf(numbers[n]) for n in "abcd"))
            value = mean(at)
            exact = float(solved(value))
        own = {p.name for p in system.parameters}
        found = system.solve({n: v for n, v in numbers.items() if n in own}, raise_on_failure=False)
        assert found.converged and abs(found["x"] - exact) <= 1e-9*max(abs(exact), 1e-3), (seed, place, f(u), numbers)
        if kernel is not None:
            size = float(mean(lambda t, at=at: abs(at(t))))
            try:
                got = kernel(**{n: numbers[n] for n in kernel.parameters})
            except NotConverged:
                continue
            if kernel.error == mp.inf:  # nothing is known of it
                continue
            assert abs(got - float(value)) <= 2*max(kernel.error, 1e-15)*size, (seed, f(u), numbers)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_sums_along_a_variable(seed):
    drawn(seed)


@pytest.mark.slow
def test_drawn_sums_along_a_variable_at_length():
    for seed in range(10, 40):
        drawn(seed, powers=6, kernels=True)
