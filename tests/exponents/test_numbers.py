"""Directions that are integrals without closed form have their number once, found with the answer and not when it is shown."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import hermitex as hx
from hermitex import E
from hermitex.exponents.directions import exact_entries as module
from hermitex.exponents.directions.direction_text import directions_words
from hermitex.exponents.directions.exact_entries import entry_number
from hermitex.face import cli

# E|z1 + z2 z3| given z2 is sqrt(2/pi) sqrt(1 + z2^2)
_ENTRY = 1/E(hx.parse("z2**2*abs(z1 + z2*z3)"))
_VALUE = 1/(np.sqrt(2/np.pi)*quad(lambda x: x*x*np.sqrt(1 + x*x)*np.exp(-x*x/2)/np.sqrt(2*np.pi), -12, 12)[0])


def test_numbers_beside_quadrature():
    assert entry_number(_ENTRY) == pytest.approx(_VALUE, rel=1e-11)
    smooth = quad(lambda x: x*np.tanh(x)*np.exp(-x*x/2)/np.sqrt(2*np.pi), -12, 12)[0]
    assert entry_number(E(hx.parse("z1*tanh(z1)"))) == pytest.approx(smooth, rel=1e-11)
    assert entry_number(E(hx.parse("z1*tanh(z1)*z2**2*tanh(z3)**2"))) == pytest.approx(
        smooth*quad(lambda x: np.tanh(x)**2*np.exp(-x*x/2)/np.sqrt(2*np.pi), -12, 12)[0], rel=1e-11)
    assert entry_number(hx.parse("sqrt(2)")) == np.sqrt(2)


def test_what_has_no_quadrature_has_no_number():
    assert entry_number(E(hx.parse("cos(z1*z2)"))) == pytest.approx(np.sqrt(1/2), rel=1e-11)
    assert entry_number(E(hx.parse("exp(z1**2)*tanh(z2*z1)**2"))) is None


def test_what_is_shown_is_not_computed(monkeypatch):
    plain = hx.exponents("z1*z2")
    stage = {"order": 1, "directions": [[1, _ENTRY]]}

    def never(x):
        assert x.is_Rational, "a number was asked for"
        return float(x)

    monkeypatch.setattr(module, "entry_number", never)
    for value, told in ((0.652964467, "z1 + 0.652964*z2"), (None, "1/E(")):
        found = replace(plain, staircase=(stage,), numbers={_ENTRY: value})
        assert json.loads(json.dumps(found.to_dict()))["staircase"][0]["directions"] == [[1, value]]
        assert told in found.explain() and "Exponents(" in repr(found)
        assert ("0.652964" in found._repr_html_()) == (value is not None)
    with pytest.raises(AssertionError, match="asked for"):
        directions_words([[1, _ENTRY]], ("z1", "z2"))


@pytest.mark.slow
def test_an_integral_in_a_direction_is_a_number(capsys):
    assert cli.main(["exponents", "relu(z1+z2*z3)*z2", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["staircase"][0]["directions"]
    assert row == pytest.approx([0, 1, _VALUE], rel=1e-11)
