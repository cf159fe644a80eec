"""The floor of ridge at n, p ~ d once a span is known, against the theory sheet one_step_2, A8; bad input."""

import numpy as np
import pytest

from hermitex.errors import BadInput, UnknownName
from hermitex.theories import floor

HALF = (1 - 2/np.pi)/2
SHEET = [("z1+z1*z2", [], 2, 1), ("z1+z1*z2", [[1, 0]], 1, 0), ("z1+z1*z2", [[1, 0], [0, 1]], 0, 0), ("z1*z2*z3", [], 1, 1),
         ("z1+z1*z2+z1*z2*z3", [[1, 0, 0], [0, 1, 0]], 1, 0), ("He2(z)", [], 2, 2), ("z2+He2(z1)", [[0, 1]], 2, 2),
         ("He2(z1)+z1*z2*z3", [[1, 0, 0]], 1, 1), ("z1+He2(z1)*z2", [[1, 0]], 2, 0),
         ("z1+z2+z1*z2", [[0.7071067811865475, 0.7071067811865475]], 0.5, 0.5), ("z1+z2+z1*z2", [[1, 1]], 0.5, 0.5),
         ("z1+He3(z1)*z2+He3(z2)*z3", [[1, 0, 0]], 12, 6), ("Max(z1, z2)", [[1, 1]], HALF, HALF),
         ("sign(z1)+sign(z2)", [[1, 1]], 2/3, 2/3), ("relu(z1)-relu(z2)", [[1, -1]], HALF, 0.015023447149542679),
         ("tanh(z1)+z2/2+z1*z2", [[0.7711901490375264, 0.6366048649103131]], 0.540409083778385, 0.4938991120425846)]


@pytest.mark.parametrize("g, rows, variance, sharp", SHEET)
def test_the_table_of_the_sheet(g, rows, variance, sharp):
    found = floor(g, rows)
    assert found["variance"] == pytest.approx(variance, abs=1e-9) and found["sharp"] == pytest.approx(sharp, abs=1e-9)
    assert found["sharp"] <= found["variance"] + 1e-12 and ("steps" in str(found)) == (not rows)


def test_the_part_linear_in_the_rest_is_what_the_two_differ_by():
    """z1 z2 once z1 is known: E (z1 z2)^2 is fitted; a rule that forgets it has a floor above the risk that ridge reaches."""
    found = floor("z1 + z1*z2 + He2(z2)*z1", [[2, 0]])
    assert (found.variance, found.sharp) == (3, 2) and found["error"] == 0


def test_three_directions_that_are_given_as_floats():
    """A variable that the target lacks, in a direction with seventeen digits: the spike with its noise, theory sheet A1."""
    rows = [[.6555116266818974, .5411141351737662, np.sqrt(1 - .6555116266818974**2 - .5411141351737662**2)]]
    found = floor("tanh(z1)+z2/2+z1*z2", rows)
    assert (found["variance"], found["sharp"]) == pytest.approx((.9451574880211518, .5473730877643646), abs=1e-8)


@pytest.mark.parametrize("ask, word", [
    (lambda: floor("z1*z2", [[1]]), "1 entries for the 2 variables"), (lambda: floor("z1*z2", [[1, 0], [1]]), "different lengths"),
    (lambda: floor("z1*z2", [["x", 0]]), "one number for each"), (lambda: floor("z1*z2", [[0, 0]]), "row is zero"),
    (lambda: floor("z1*z2", [[float("nan"), 0]]), "one number for each"), (lambda: floor("z1*z2", [1, 0]), "one number for each"),
    (lambda: floor("exp(z1**2)", [[1]]), "square integrable"), (lambda: floor("a*z1", [[1]]), "a")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises((BadInput, UnknownName), match=word) as caught:
        ask()
    assert "\n" not in str(caught.value)
