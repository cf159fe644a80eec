"""A budget is kept, and what was found before it ran out is kept too, where a step checks nothing."""

import time

import pytest
from sympy import Symbol

import hermitex as hx
from hermitex.errors import BudgetExceeded
from hermitex.exponents import leap
from hermitex.exponents.generative_leap import GenerativeOracle
from hermitex.exponents.labels.label_levels import constant_value, finite_level_sets
from hermitex.symbolic.budget import budget
from hermitex.symbolic.deadline import deadline


def forever(*_):
    while True:
        pass


@pytest.mark.slow
def test_stages_before_a_runaway_are_kept(monkeypatch):
    once = GenerativeOracle.tensor
    monkeypatch.setattr(GenerativeOracle, "tensor",
                        lambda self, known, k: forever() if known.rows and self.letter == "Lambda" else once(self, known, k))
    start = time.process_time()
    found = hx.exponents("He3(z1) + z2**2", budget=4)
    assert time.process_time() - start < 7
    assert found.leap_exponent == 3 and found.generative_exponent is None
    assert [s["order"] for s in found.generative_staircase] == [1]
    assert any("does not check it" in n for n in found.notes)


@pytest.mark.slow
def test_a_runaway_coordinate_leap_leaves_the_staircase(monkeypatch):
    hx.exponents("z1*z2")  # what is imported at the first use is not what is timed
    monkeypatch.setattr(leap.CoordinateClimb, "__call__", forever)
    found = hx.exponents("z1*z2", budget=12)
    assert (found.leap_exponent, found.leap_coordinate, found.generative_exponent) == (2, None, 2)


def test_deadlines_are_nested():
    start = time.process_time()
    with deadline(10):
        with pytest.raises(BudgetExceeded), deadline(0.1):
            forever()
        with pytest.raises(BudgetExceeded), deadline(0.1):
            forever()
    assert time.process_time() - start < 3
    with pytest.raises(BudgetExceeded), deadline(0.2), deadline(30):
        forever()
    assert time.process_time() - start < 5


def test_an_alarm_inside_a_library_that_called_back_is_told_as_the_budget():
    from flint import acb


    def slow(x, analytic):
        end = time.process_time() + 2
        while time.process_time() < end:
            pass
        return x

    with pytest.raises(BudgetExceeded), deadline(0.1):
        acb.integral(slow, 0, 1)
    with pytest.raises(SystemError), deadline(10):
        raise SystemError("of another kind")


@pytest.mark.parametrize(("asked", "text"), [
    (finite_level_sets, "Heaviside(z**3 - z/23)"), (constant_value, "Max(z, 3/29) + Min(z, 3/29) - z")])
def test_a_budget_that_is_over_is_no_refusal(asked, text):
    """What is refused is not known; what there was no time for is not answered at all."""
    w = Symbol("w", real=True)
    g = hx.parse(text).xreplace({hx.symbols.z: w})
    with budget(0), pytest.raises(BudgetExceeded):
        asked(g, w)
    assert asked(g, w) is not None
