"""What stays unlearned once some directions are known: exact values, samples, and what a wrong rule would give."""

import json

import numpy as np
import pytest
from sympy import Rational, S, pi, simplify

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.exponents.unlearned import unlearned

# E Var(g|P_U z) and the floor of ridge, U after 0, 1, 2, ... stages: derivation sheet of the one-step theories, part 2, section A8.
SHEET = [
    ("z1 + z1*z2", [[1, 0], [0, 1]], [2, 1, 0], [1, 0, 0]), ("z1*z2*z3", [], [1], [1]), ("z2 + He2(z1)", [[0, 1]], [3, 2], [2, 2]),
    ("z1 + z1*z2 + z1*z2*z3", [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [3, 2, 1, 0], [2, 1, 0, 0]),
    ("z1 + He2(z1)*z2", [[1, 0]], [3, 2], [2, 0]), ("z1 + z2 + z1*z2", [[1, 1]], [3, Rational(1, 2)], [1, Rational(1, 2)]),
    ("z1 + He3(z1)*z2 + He3(z2)*z3", [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [13, 12, 6, 0], [12, 6, 0, 0]),
    ("Max(z1, z2)", [[1, 1]], [None, (1 - 2/pi)/2], [None, (1 - 2/pi)/2]),
    ("sign(z1) + sign(z2)", [[1, 1]], [2, Rational(2, 3)], [None, Rational(2, 3)]),
    ("relu(z1) - relu(z2)", [[1, -1]], [None, (1 - 2/pi)/2], [None, (pi - 3)/(3*pi)])]


@pytest.mark.parametrize("text, rows, variance, sharp", SHEET)
def test_the_table_of_the_sheet(text, rows, variance, sharp):
    g = hx.parse(text)
    names = [f"z{i + 1}" for i in range(len(rows[0]) if rows else 3)]
    for k in range(len(rows) + 1):
        found = unlearned(g, names, [{"order": 1, "directions": [row]} for row in rows[:k]])
        for exact, wanted in ((found.variance, variance[k]), (found.sharp, sharp[k])):
            assert wanted is None or simplify(exact - S(wanted)) == 0
    assert text != "relu(z1) - relu(z2)" or abs(found.values["sharp"] - .0150234471) < 1e-10


def test_a_direction_without_closed_form_has_numbers():
    """tanh z1 + z2/2 + z1 z2 once C_1 is known; numbers of section A8."""
    found = hx.exponents("tanh(z1) + z2/2 + z1*z2").unlearned(steps=1)
    assert found.variance is None and found.orders == (1,)
    assert abs(found.values["variance"] - .540409083778) < 1e-9 and abs(found.values["sharp"] - .493899112043) < 1e-9
    assert found.values["error"] < 1e-6


def test_by_samples():
    """Two independent fillings of what is unknown: E g^2 - E g(u, v) g(u, v'), less the part linear in v."""
    found = hx.exponents("z1 + abs(z1)*tanh(z2)*z2 + z1**2*sin(z2)**3*z2").unlearned(steps=1)
    assert found.directions == ((1, 0),) and found.variance is None
    rng = np.random.default_rng(5)
    u, v, w = rng.standard_normal((3, 1_000_000))

    def g(v):
        return u + abs(u)*np.tanh(v)*v + u**2*np.sin(v)**3*v

    variance, linear = g(v)**2 - g(v)*g(w), v*w*g(v)*g(w)
    for samples, value in ((variance, found.values["variance"]), (variance - linear, found.values["sharp"])):
        assert abs(samples.mean() - value) < 4*samples.std()/1000


def test_tooth_the_part_that_is_linear_in_the_rest_counts():
    found = hx.exponents("z1 + z1*z2").unlearned(steps=1)
    assert (found.variance, found.sharp) == (1, 0) and found.variance != found.sharp
    assert "n ~ d" in str(found) and "0" in str(found)


def test_orders_and_ends():
    answer = hx.exponents("z2 + He2(z1)")
    assert answer.unlearned(steps=2).orders == (1, 2) and answer.unlearned(steps=7).variance == 0
    assert hx.exponents("sign(z)", "flip:1/10").unlearned(steps=0).variance == Rational(16, 25)
    assert json.loads(json.dumps(answer.unlearned(steps=1).to_dict()))["variance_exact"] == "2"
    for wrong in (-1, 1.5, True):
        with pytest.raises(BadInput):
            answer.unlearned(steps=wrong)
    with pytest.raises(BadInput):
        hx.exponents("exp(z**2)").unlearned(steps=1)
