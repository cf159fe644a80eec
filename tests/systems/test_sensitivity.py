"""Derivatives of solutions: each point of a batch for itself, and unknowns that are exactly 0."""

import numpy as np
import pytest
from sympy import cos, exp, sinh, sqrt, symbols, tanh
from sympy.stats import Exponential, Laplace, Logistic

import hermitex as hx
from hermitex.symbols import z

a, b, x, y = symbols("a b x y", real=True)
q, width = symbols("q width", positive=True)


def test_a_point_without_a_solution_does_not_spoil_the_others():
    system = hx.System({x: a**2/4 + hx.E(cos(b*z)*exp(b*z**2/10), z)*x/5})
    found = system.solve(a=1.0, b=[0.5, 5.5], raise_on_failure=False)
    assert found.converged.tolist() == [True, False]
    slope = found.derivative("a")["x"]
    assert slope[0] == pytest.approx(2*found["x"][0], rel=1e-12) and np.isnan(slope[1])  # x is a^2 times a function of b


def test_an_unknown_that_is_zero_has_a_derivative():
    """sinh(y - 1) + a = x, y = 1 + x/3: x' = 3/2 at a = 0."""
    found = hx.System({x: sinh(y - 1) + a, y: 1 + x/3}).solve(a=0, start={"x": 0, "y": 1})
    assert found.derivative("a") == pytest.approx({"x": 1.5, "y": 0.5}, rel=1e-12)


@pytest.mark.slow
def test_an_unknown_that_is_zero_up_to_rounding_has_no_size_of_its_own():
    """Without a spike m is 0, and is computed as 1e-17: nothing is to be measured by it."""
    theory, at = hx.theories.one_step("relu", "sin"), {"alpha": 1, "r": 0, "c": 1, "gamma": 0.5}
    slope = theory.solve(lam=0.1, **at).derivative("lam")["test_error"]
    assert slope == pytest.approx(-0.5483517, rel=1e-5)  # by differences, +-1e-4: -0.5483522


@pytest.mark.parametrize("by", ["a", "b"])
@pytest.mark.parametrize("equation, where", [
    ("E(mu*tanh(mu*q + kappa), kappa)/2 + 1/4", {"mu": "E(sign(a*kappa + z + b), z)"}),  # a switch moves in the name alone
    ("E(nu*tanh(mu*q + kappa), kappa)/2 + 1/4", {"mu": "a*b**2 + 1", "nu": "E(relu(mu*kappa + a*z)*mu, z) + mu"}),
    ("E(mu*Heaviside(kappa - mu), kappa)/4 + q/3", {"mu": "a*b**2 + 1"})])  # a switch moves with the name
def test_derivatives_are_taken_through_the_names_that_a_parameter_moves(equation, where, by):
    system, at, h = hx.System({"q": equation}, where=where, symbols="a>0, b>0"), {"a": 0.7, "b": 1.3}, 1e-3
    moved = system.solve(**{**at, by: at[by] + h*np.array([-2, -1, 1, 2])})["q"] @ [1, -8, 8, -1]/(12*h)
    assert system.solve(**at).derivative(by)["q"] == pytest.approx(moved, rel=1e-8)


@pytest.mark.parametrize("law", [Exponential("y", width), Laplace("y", 0, width), Logistic("y", 0, width)])
def test_a_law_beside_a_normal_has_derivatives_by_its_parameter(law):
    """An average over z alone is poor far out in y, where it has no weight: what the average over both feels is asked of it."""
    system = hx.System({q: a*hx.E(tanh(law*sqrt(q) + z)**2)}, domain={q: (0, 1)}, start={q: 0.9})
    h = 1e-4
    moved = system.solve(a=0.9, width=np.array([0.4 - 2*h, 0.4 - h, 0.4 + h, 0.4 + 2*h]))["q"] @ [1, -8, 8, -1]/(12*h)
    assert system.solve(a=0.9, width=0.4).derivative("width")["q"] == pytest.approx(moved, rel=1e-8)
