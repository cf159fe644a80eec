"""Derivatives of solutions: each point of a batch for itself, and unknowns that are exactly 0."""

import numpy as np
import pytest
from sympy import cos, exp, sinh, symbols

import hermitex as hx
from hermitex.symbols import z

a, b, x, y = symbols("a b x y", real=True)


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
