"""A later stage of a channel P(y|z): against the same law as a named channel, whose route is another."""

import numpy as np
import pytest
from sympy import Rational, Symbol, erf, exp, pi, sign, sqrt

import hermitex as hx
from hermitex import Channel
from hermitex.exponents.channels import channel
from hermitex.exponents.thresholds import weak_recovery
from hermitex.symbols import normal, z1, z2, z3

y = Symbol("y", real=True)


def gaussian(u, Delta):
    return Channel(exp(-((y - u) ** 2) / (2 * Delta)) / sqrt(2 * pi * Delta), y)


def threshold(g, law, variables, first):
    rest = [[int(i == j) for j in range(len(variables))] for i in range(len(variables)) if i not in first]
    mine = [[int(i == j) for j in range(len(variables))] for i in first]
    return weak_recovery(g, law, variables, stages=[{"order": 1, "directions": mine}, {"order": 2, "directions": rest}])


@pytest.mark.parametrize(("g", "Delta", "variables"), [
    pytest.param(z1 + z2 * z3, Rational(1), (z1, z2, z3), marks=pytest.mark.slow),
    pytest.param(z1 + z1 * z2**2, Rational(1), (z1, z2), marks=pytest.mark.slow),
    (z1 + z2**2 / 2, Rational(1, 2), (z1, z2)),
])
def test_a_channel_and_its_name_agree(g, Delta, variables):
    one = threshold(g, gaussian(g, Delta), variables, [0])
    two = threshold(g, channel(f"gaussian:{Delta}"), variables, [0])
    assert abs(one.alpha_c - two.alpha_c) <= one.error + two.error
    assert one.error < 1e-3 * one.alpha_c


def test_a_probit_of_what_is_known_and_hidden():
    """P(+1|z) = (1 + erf(z1) s(z2 z3))/2: given z1 a parity with flips, alpha_c = (pi^2/4)/E[erf(z1)^2]."""
    p = (1 + y * erf(z1) * sign(z2 * z3)) / 2
    found = threshold(p, Channel(p, y, [-1, 1]), (z1, z2, z3), [0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    from scipy.special import erf as error_function

    mean = np.sum(weights * error_function(nodes) ** 2) / np.sqrt(2 * np.pi)
    assert abs(float(found.alpha_c) * mean / (np.pi**2 / 4) - 1) < 1e-9


def test_three_known_directions_are_too_many():
    z4 = normal("z4")
    law = gaussian(z1 + z2**3 + z3 + z1 * z2 * z3 * z4**2, 1)
    found = threshold(law.p, law, (z1, z2, z3, z4), [0, 1, 2])
    assert found.alpha_c is None and "3 known directions" in found.notes[0]


@pytest.mark.slow
def test_counts_without_a_bound_in_two_variables_are_those_of_the_named_channel():
    """z1^2 z2^2 passes 400 counts, which once was the last of them: 3e-7 were claimed, and 6e-7 missing."""
    written = hx.exponents("z1*z2", Channel("exp(-z1**2*z2**2)*(z1*z2)**(2*y)/factorial(y)", "y", "integers")).threshold
    named = hx.exponents("z1**2*z2**2", "poisson").threshold
    assert abs(float(written.alpha_c) - float(named.alpha_c)) <= float(written.error + named.error) < 1e-7


@pytest.mark.slow
def test_added_noise_of_two_variables_has_the_digits_of_its_name():
    written, named = (hx.exponents("z1 + z2**2/2", law, budget=60).threshold.alpha_c
                      for law in (gaussian(z1 + z2**2/2, 1), "gaussian:1"))
    assert float(written) == pytest.approx(float(named), rel=1e-9)
