"""Numbers whose error is as large as they are: not reached; and of every other number the digits that hold."""

import numpy as np
import pytest
from mpmath import mpf

import hermitex as hx
from hermitex.errors import NoClosedForm
from hermitex.exponents.laws.value import LaterDirections, threshold_from_number
from hermitex.exponents.thresholds import later_words
from hermitex.symbolic.subspaces import matrix


def test_a_number_with_an_error_of_its_own_size_is_none():
    assert threshold_from_number(0.5, 0.2).error > 0.7
    for inverse, error in ((0.5, 0.3), (-0.1, 1e-3), (float("nan"), 1e-3), (0.5, float("nan"))):
        with pytest.raises(NoClosedForm, match="with an error of"):
            threshold_from_number(inverse, error)


@pytest.mark.parametrize("noise", [10**9, 10**12])
def test_a_label_that_drowns_in_noise(noise):
    """z1 z2 + xi: alpha_c tends to the variance of the noise; no number is told beyond its error, and no empty direction."""
    found = hx.exponents("z1*z2", f"gaussian:{noise}")
    assert found.weak_recovery["class"] == "easy"
    assert not any("is found" in n or "are found" in n for n in found.notes)
    assert found.alpha_c is None or abs(found.alpha_c - noise) < 0.5 * noise
    assert found.alpha_c is not None or any("was not reached" in n for n in found.notes)


def test_what_is_found_later_is_told_to_the_digits_that_hold():
    first, rest = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    both = matrix([[1, 0], [0, 1]], 2)
    rough = later_words(LaterDirections(first, rest, mpf("1.714124489"), None, mpf("1e-3")), both, ("z1", "z2"))
    assert rough == ["alpha_c is where z2 is found; z1 later, at alpha = 1.71 without help of the first, with it maybe earlier"]
    assert "1.714124489 " in later_words(LaterDirections(first, rest, mpf("1.714124489")), both, ("z1", "z2"))[0]
    assert later_words(LaterDirections(np.zeros((0, 2)), rest, None), both, ("z1", "z2")) == []


def test_two_forms_of_a_label_tell_the_same_of_what_is_found_later():
    one, two = ([n.partition(", at alpha")[0] for n in hx.exponents(t, budget=60).notes if "later" in n]
                for t in ("log(abs(z2)) - z1**2/2", "exp(-z1**2)*z2**2"))
    assert one == two != []
