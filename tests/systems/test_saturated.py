"""A sum without digits below a function that no longer moves where rounding has led it: right, or refused; against 60 digits."""

import random

import mpmath as mp
import pytest
from sympy import Abs, Eq, Heaviside, Max, Piecewise, Rational, Symbol, cos, erf, exp, lambdify, sech, sqrt, tanh

import hermitex as hx
from hermitex.symbols import z

a, b, c, k, F, x = (Symbol(n, real=True) for n in ("a", "b", "c", "k", "F", "x"))
Q = Symbol("Q", real=True)
SUMS = [(a**2 - b**2)/(a - b)**2, (a**2*c - b**2*c)/(a - b), ((a + c)**2 - (b + c)**2)/(a - b)**2, (a*c - b*c)/(a - b)**2,
        (sqrt(a**2 + c) - sqrt(b**2 + c))/(a - b)**2, (a**3 - b**3)/(a**2 - b**2) - a]
SETTLED = [tanh(F), erf(F), sech(F), exp(-F**2), 1/(1 + F**2), Heaviside(F - Rational(1, 3)), F/sqrt(1 + F**2), 1/(1 + exp(F)),
            cos(F), Max(0, 1 - F**2), Piecewise((1 - F, F < 1), (0, True)), Abs(F - 1)]
AROUND = [F, Rational(1, 2) + F/1000, F*hx.E(tanh(a*z)**2, z), 1/(2 + F), (1 + F/100)/(1 + x**2),
          Rational(1, 2) + hx.E(tanh(z + F), z), Eq(x*(3 + F/10) - 1, 0)]


def drawn(seed, powers):
    """One of AROUND with f(k U) for F, at letters that differ less and less, and k so that f moves there."""
    r = random.Random(seed)
    inner, f, around = r.choice(SUMS), r.choice(SETTLED), r.choice(AROUND)
    name = r.random() < 0.5
    equation = around.subs(F, f.subs(F, k*(Q if name else inner)))
    system = hx.System({x: equation}, where={Q: inner} if name else {})
    plain = hx.System({x: around})
    u, value = lambdify((a, b, c), inner, "mpmath"), lambdify(F, f, "mpmath")
    for power in r.sample(range(1, 15), powers):
        given = {"a": round(r.uniform(0.5, 2), 3), "c": round(r.uniform(0.5, 2), 3)}
        given["b"] = given["a"]*(1 + 10.0**-power)
        with mp.workdps(60):
            inside = u(*(mp.mpf(given[n]) for n in "abc"))
            given["k"] = float(r.uniform(0.1, 3)/abs(inside))
            given["F"] = float(value(given["k"]*inside))
        exact, found = (s.solve({p.name: given[p.name] for p in s.parameters}, raise_on_failure=False) for s in (plain, system))
        size = max(abs(exact["x"]), 1e-3)
        assert not found.converged or abs(found["x"] - exact["x"]) <= 1e-8*size, (seed, equation, inner, given)
        assert found.converged or power > 2, (seed, equation, inner, given)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_sums_below_what_settles(seed):
    drawn(seed, 2)


@pytest.mark.slow
def test_drawn_sums_below_what_settles_at_length():
    for seed in range(10, 90):
        drawn(seed, 7)
