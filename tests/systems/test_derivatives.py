"""Derivatives of averages with switches: against differences of the averages, and in systems written in several ways."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from sympy import (
    Abs,
    Eq,
    Heaviside,
    I,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Symbol,
    cos,
    exp,
    floor,
    lambdify,
    sign,
    sqrt,
    symbols,
    tanh,
)

import hermitex as hx
from hermitex import Prox
from hermitex.errors import NotConverged
from hermitex.symbolic.surfaces import surfaces, turning_places
from hermitex.symbols import alpha, f, z, z1, z2
from hermitex.systems.derivatives import derivative

x, a, eps, Delta = symbols("x a eps Delta", positive=True)
k = Symbol("k", real=True)
E = hx.E
U = z2 + x*z1
SOFT = {
    "sign and Max": sign(U)*Max(Abs(U) - a*x, 0),
    "two Max": Max(U - a*x, 0) - Max(-U - a*x, 0),
    "Piecewise": Piecewise((U - a*x, a*x < U), (U + a*x, -a*x > U), (0, True)),
    "Heaviside": (U - a*x)*Heaviside(U - a*x) + (U + a*x)*Heaviside(-U - a*x),
    "Min": U - Max(-a*x, Min(a*x, U)),
    "Prox": Prox(Abs(f), f, U, a*x),
}


def soft_risk(tau, threshold, signal):
    """E(soft(sqrt(signal) X + tau Z) - sqrt(signal) X)^2 over the two-dimensional normal, by one quadrature of closed pieces."""
    total = 0.0
    for s in (0.0, signal):
        spread, slope = np.sqrt(tau**2 + s), s/(tau**2 + s)             # u ~ N(0, spread^2), X given u: mean slope u, variance v
        v = s*tau**2/(tau**2 + s)
        def eta(u):
            return np.sign(u)*max(abs(u) - threshold, 0.0)
        part = quad(lambda u, slope=slope, spread=spread: (eta(u) - slope*u)**2*np.exp(-u*u/2/spread**2)/spread/np.sqrt(2*np.pi),
                    -12*spread, 12*spread, points=[-threshold, threshold], epsabs=1e-13)[0] + v
        total += part*(0.1 if s else 0.9)
    return total


@pytest.mark.parametrize("spelling", SOFT)
def test_state_evolution_of_the_lasso_in_every_spelling(spelling):
    soft = SOFT[spelling]
    risk = eps*E((soft - z2)**2, z1, z2) + (1 - eps)*E(soft.subs(z2, 0)**2, z1)
    found = hx.System({x: Eq(x**2, Delta + risk/alpha)}).solve(alpha=0.5, Delta=0.1, eps=0.1, a=1.2)
    tau = found["x"]
    assert found.converged and not any("numerical" in n for n in found.notes)
    assert abs(0.1 + soft_risk(tau, 1.2*tau, 1.0)/0.5 - tau**2) < 1e-9


def test_an_axis_whose_kinks_move_with_another_serves_only_averages_over_both():
    u = z1 + x*z2
    soft = sign(u)*Max(Abs(u) - a*x, 0)
    risk = eps*E((soft - z1)**2, z1, z2) + (1 - eps)*E(soft.subs(z1, 0)**2, z2)
    found = hx.System({x: Eq(x**2, Delta + risk/alpha)}).solve(alpha=0.5, Delta=0.1, eps=0.1, a=1.2)
    assert abs(found["x"] - 0.424563920738704) < 1e-11


V, t = symbols("V t", positive=True)
W = z2 + x*z1
HUBER_PROX = W - V*Max(-1, Min(1, W/(1 + V)))


def m_estimator(prox):
    """Residuals of unit variance at n/p = alpha: x^2 = alpha E(W - prox)^2, alpha E d(W - prox)/dW = 1."""
    step = W - prox
    return hx.System({x: sqrt(alpha*E(step**2, z1, z2)), V: Eq(alpha*E(step*z1, z1, z2)/x, 1)})


def expected_m_estimator(step, points):
    """The two averages of a step over W ~ N(0, 1 + x^2), by SciPy."""
    def averages(size, V):
        spread = np.sqrt(1 + size**2)
        def law(u):
            return np.exp(-u*u/2/spread**2)/spread/np.sqrt(2*np.pi)
        cut = [p for p in points(V) if abs(p) < 12*spread]
        square = quad(lambda u: step(u, V)**2*law(u), -12*spread, 12*spread, points=cut, epsabs=1e-13)[0]
        slope = quad(lambda u: step(u, V)*u*law(u), -12*spread, 12*spread, points=cut, epsabs=1e-13)[0]/spread**2
        return 3*square - size**2, 3*slope - 1
    return averages


CLIPPED = (lambda u, V: V*np.clip(u/(1 + V), -1, 1)), (lambda V: [-1 - V, 1 + V])
MEDIAN = (lambda u, V: np.clip(u, -V, V)), (lambda V: [-V, V])
PINBALL = (lambda u, V: np.clip(u, -0.7*V, 0.3*V)), (lambda V: [-0.7*V, 0.3*V])


@pytest.mark.parametrize(("prox", "by_scipy"), [
    pytest.param(HUBER_PROX, CLIPPED, marks=pytest.mark.slow),
    (Prox(Piecewise((f**2/2, Abs(f) <= 1), (Abs(f) - Rational(1, 2), True)), f, W, V), CLIPPED),
    (Piecewise((W/(1 + V), Abs(W) <= 1 + V), (W - V*sign(W), True)), CLIPPED),
    (Prox(Abs(f), f, W, V), MEDIAN),
    (Prox(Max(Rational(3, 10)*f, -Rational(7, 10)*f), f, W, V), PINBALL),
], ids=["Huber by Max", "Huber by Prox", "Huber by Piecewise", "median", "quantile"])
def test_m_estimators(prox, by_scipy):
    found = m_estimator(prox).solve(alpha=3.0)
    assert found.converged and not any("numerical" in n for n in found.notes)
    assert np.allclose(expected_m_estimator(*by_scipy)(found["x"], found["V"]), 0, atol=1e-9)


# -- drawn cases -------------------------------------------------------------------------------------------------------
def drawn(seed, variables):
    """A function of switches whose places move with x, over one or two variables."""
    r, last = random.Random(seed), variables[-1]

    def line():
        first = variables[0]
        one = [x*first + k, first - x, x*first - a, first*k + x, first - k*x]
        return r.choice(one if len(variables) == 1 else [*one, a*last - x*first + k, first - x*last, first + last*x - a*x])

    def part():
        u = line()
        return [sign(u), Heaviside(u), Max(0, u), Abs(u), sign(u)*Max(Abs(u) - a*x, 0),
                Piecewise((u, u > a), (-a, u < -x), (u**2, True)), Prox(Abs(f), f, u, a*x), Prox(Max(0, 1 - f), f, u, x),
                Min(u, line())][r.randrange(9)]

    A, B = part(), part()
    return r.choice([A*B, (A - last)**2, A**2*sign(B), tanh(A)*B, A*last + B**2, cos(A + B), Max(A, B), Abs(A - B), exp(-A**2)*B,
                     Heaviside(A + B - k)*A])


def compare(seed, variables):
    """The derivative of a drawn average against fourth-order differences of it; a difference quotient has fewer digits."""
    body, missing = drawn(seed, variables), []
    if x not in body.free_symbols:
        return None
    node = E(body, *variables)
    slope = derivative(node, x, None, missing)
    point = {"x": 0.83, "a": 0.57, "k": 0.31}

    def at(expr):
        kernel = hx.compile(expr)
        return lambda **moved: kernel(**{n: v for n, v in {**point, **moved}.items() if n in kernel.parameters})

    try:
        value, mean = at(slope)(), at(node)
        h, near = 1e-3, {j: mean(x=0.83 + j*1e-3) for j in (-2, -1, 1, 2)}
    except NotConverged:  # a kernel that says so: nothing to compare
        return None
    expected = (8*(near[1] - near[-1]) - (near[2] - near[-2]))/(12*h)
    assert abs(value - expected) < (1e-4 if missing else 1e-7)*(1 + abs(expected)), (body, value, expected)
    return not missing


@pytest.mark.parametrize("seed", range(0, 10))
def test_drawn_in_one_variable(seed):
    compare(seed, (z1,))


@pytest.mark.parametrize("seed", [1, 13])
def test_drawn_in_two_variables(seed):
    compare(seed, (z1, z2))


@pytest.mark.parametrize("seed", range(8))
def test_a_square_that_never_turns_gives_no_complex_place(seed):
    """The law's axis is real: where a discriminant is known to be negative, there is nothing to break at."""
    r, numbers = random.Random(seed), {x: 0.83, a: 0.57, k: 0.31}
    u = r.choice([z1, k*z1 + x, x*z1 - k, z1 - a*x])
    above = u**2 + r.choice([S.One, x, a*x, 1 + k**2, Rational(1, 3)])
    body = r.choice([Abs(above + sign(u)/9), sign(above)*u**2, Max(-above, -a)*u, Abs(Piecewise((above, u > a), (-a*above, True)))])
    assert not any(p.has(I) for p in turning_places(Abs(above), z1))
    kernel, f = hx.compile(E(body, z1)), lambdify(z1, body.xreplace(numbers))
    value = kernel(**{v.name: number for v, number in numbers.items() if v.name in kernel.parameters})
    turns = sorted({float(((c - u.coeff(z1, 0))/u.coeff(z1, 1)).xreplace(numbers)) for c in (0, a)})
    there = [-12, *turns, 12]
    expected = sum(quad(lambda t: float(f(t))*np.exp(-t*t/2)/np.sqrt(2*np.pi), low, high, epsabs=1e-12)[0]
                   for low, high in pairwise(there))
    assert abs(value - expected) < 1e-9*(1 + abs(expected))


@pytest.mark.slow
def test_drawn_at_length():
    found = [compare(seed, (z1, z2)[:1 + seed % 2]) for seed in range(100, 110)]
    assert found.count(True) >= 8 and found.count(False) <= 1


# -- where there is no formula -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("body", "variables"), [
    (floor(x*z1 + x)**2, (z1,)),
    (Heaviside(z1**2 - x)*z1**2, (z1,)),
    (Heaviside(z1*z2 - x)*z1**2, (z1, z2)),
])
def test_a_numerical_derivative_is_said_and_stops_nothing(body, variables):
    found = hx.System({x: 1 + alpha*E(body, *variables)}).solve(alpha=0.1)
    assert found.converged and sum("numerical derivative" in n for n in found.notes) == 1
    mean = hx.compile(E(body, *variables))
    assert abs(1 + 0.1*mean(x=found["x"]) - found["x"]) < 1e-10


def test_surfaces_leave_out_kinks_and_find_jumps_in_products():
    assert surfaces(sign(z)*Max(Abs(z) - 1, 0), z) == []
    assert surfaces(Abs(z - k)*sign(z - k), z) == []
    (one,) = surfaces((sign(z - k) + 3)**3*exp(z), z)
    assert abs(one.jump.subs(z, 0)) == 56
    assert set(turning_places(Heaviside(Abs(Abs(z) - 2) - 1), z)) == {-3, -1, 0, 1, 2, -2, 3}


def test_what_turns_at_a_square_has_an_exact_derivative_where_it_does_not_jump():
    assert surfaces(Abs((k*z1 + x)**2 - 1), x, z1) == [] == surfaces(Max((k*z1 + x)**2, x**2 + 1)*z1, x, z1)
    assert compare(158, (z1,)) is True


def test_a_jump_upon_a_jump_in_another_form_is_not_guessed():
    node = E(Heaviside(z - x)*Heaviside(exp(z) - exp(x)), z)
    missing = []
    value = hx.compile(derivative(node, x, None, missing))(x=0.5)
    assert missing and abs(value + np.exp(-0.125)/np.sqrt(2*np.pi)) < 1e-4


@pytest.mark.slow
def test_the_file_of_a_system_with_a_numerical_derivative_holds_the_same_numbers(tmp_path):
    system = hx.System({x: 1 + alpha*E(floor(x*z1 + x)**2, z1)})
    system.export(tmp_path/"solver.py", reference={"alpha": 0.1})  # runs its self-test
    assert "numerical derivative" in (tmp_path/"solver.py").read_text()
