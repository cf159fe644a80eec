"""Closed forms of alpha_c, and numbers beside closed forms that are known."""

import numpy as np
import pytest
from sympy import S

import hermitex as hx
from hermitex import parse
from hermitex.exponents.laws.discrete import intervals
from hermitex.symbols import z1, z2

EXACT = [pytest.param(*row, marks=pytest.mark.slow) for row in (   # products of signs in all variables at once
    ("sign(z1*z2 + z3*z4)", "4"), ("sign(z1 + z2)*sign(z2 + z3)", "8*pi**2/27"))]
# Quadratic forms of two eigenvalues, p and q times: known in closed form, found in numbers.
NUMBERS = [
    ("sign(Abs(z1) - Abs(z2))", "pi**2/4"), ("sign(Abs(z1) - 2*Abs(z2))", "25*(pi - 2*atan(1/2))*atan(1/2)/8"),
    ("sign(z1*z2 + z3*z4)", "4"), ("z1*z2 + z3*z4", "4/3"), ("(z1*z2 + z3*z4)**3", "4/3"), ("z1/z2", "1"),
    ("(z1 + 2*z2)/(z1 - z2)", "1"), ("z1*z2/(z1**2 + z2**2)", "2"), ("z1**2/(z2**2 + z3**2)", "5/4"),
    ("z1**2 + z2**2 - 2*z3**2 - 2*z4**2", "9/8"), ("sign(z1**2 + z2**2 - z3**2)", "4/(1 + sqrt(2))"),
    ("sign(z1**2 + z2**2 - 2*z3**2 - 2*z4**2)", "9/2"), ("sign(z1*z2 + z3*z4 - 1)", "4*(2*exp(1) - 1)/9"),
    ("sign(z1*z3 - z2*z4)", "4"), ("sign(z1*z2 + z3*z4 + z5*z6)", "9*pi**2/16"),
]


QUICK = ("z1*z2 + z3*z4", "z1**2 + z2**2 - 2*z3**2 - 2*z4**2")


@pytest.mark.parametrize(("text", "exact"), EXACT)
def test_the_closed_form_is_printed(text, exact):
    found = hx.exponents(text).to_dict()["weak_recovery"]
    assert found["class"] == "easy" and hx.parse(found["alpha_c_exact"]).equals(hx.parse(exact))
    assert abs(found["alpha_c"] - float(hx.parse(exact))) < 1e-14*found["alpha_c"]


@pytest.mark.parametrize(("text", "exact"), [
    pytest.param(*row, marks=() if row[0] in QUICK else pytest.mark.slow) for row in NUMBERS])
def test_the_number_is_that_of_the_closed_form(text, exact):
    found, value = hx.exponents(text, budget=120).threshold, float(hx.parse(exact))
    assert found.kind == "easy" and abs(float(found.alpha_c) - value) < min(3*float(found.error) + 1e-13, 1e-5*value)


def test_a_sign_that_tells_nothing_of_second_order_is_dropped():
    stages = hx.exponents("sign(z1)*sign(z2)*z3").threshold.stages
    assert [s["exact"] for s in stages] == [S.Half, hx.parse("pi**2/4")]


def test_a_threshold_of_bins_agrees():
    """z1*z2 + z3*z4 through 2000 bins of samples: 1/alpha_c = E[G^2] over the four axes."""
    z = np.random.default_rng(2).standard_normal((4, 2_000_000))
    order = np.argsort(z[0]*z[1] + z[2]*z[3])
    w = ((z[0] + z[1])**2/2 - 1)[order].reshape(2000, -1).mean(axis=1)
    assert abs((w**2).mean() - 0.75) < 8e-3 and abs((w**2).mean() - 0.6) > 0.1


def test_a_step_is_read_where_it_holds():
    """sign(z1)**2 is 1 but at 0: the middle of an interval is no place to read a label at."""
    g = parse("Heaviside(1 - z1**2)*sign(z1)**2 + z2")
    assert [g.xreplace({z1: p.expr}) - z2 for p in intervals(g, z1)] == [0, 1, 0]
