"""Averages over what is known: halved until they settle, and the thresholds of sums whose scales are known."""

import numpy as np
import pytest

import hermitex as hx
from hermitex import parse
from hermitex.errors import NoClosedForm
from hermitex.exponents.laws.block_laws import law_of
from hermitex.exponents.laws.coupling_averages import next_change, over_known
from hermitex.exponents.laws.density import array_function
from hermitex.exponents.laws.linearised import LabelCouplings
from hermitex.symbols import z1, z2


@pytest.mark.slow
@pytest.mark.parametrize(("text", "value"), [("z3 + He2(z1) + He2(z2)*z3", 0.64533635146724)])
def test_independent_terms_on_scales_that_are_known(text, value):
    """The values of a convolution at each u to 9 digits; what takes its place has 7."""
    found = hx.exponents(text, budget=60)
    assert abs(float(found.alpha_c) - value) < min(float(found.threshold.error), 1e-5*value)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "value"), [("z1*z2 + He4(z1)*z3", 0.683826), ("He2(z1)*z2 + 2*He2(z3)*z4", 0.649)])
def test_products_whose_scales_are_known(text, value):
    """By the density of the label at a given z1, integrated in doubles;
    the other by 2e6 draws in 2000 bins of the label, angle by angle."""
    stages = hx.exponents(text).threshold.stages
    assert stages[0]["alpha_c"] == 0
    assert abs(float(stages[1]["alpha_c"]) - value) < min(float(stages[1]["error"]) + 2e-3*value, 0.1*value)


@pytest.mark.parametrize("text", ["z1*z2 + He4(z1)", "z1*z2 + He6(z1)/7", "z1*z2*z3 + z1**2*z3**2 - 1"])
def test_a_product_beside_a_constant_is_taken_apart_once(text):
    """Factored, z1*z2 + He4(z1) is z1 (z2 + z1^3 - 6 z1) + 3, and so is that."""
    names = sorted(parse(text).free_symbols, key=str)
    with pytest.raises(NoClosedForm, match="no independent blocks"):
        law_of(parse(text), {x: i for i, x in enumerate(names)})


def test_signs_of_two_sizes():
    """sign(z1) + sign(z2) + 2 sign(z3) tells z3, and of the others what sign(z1) + sign(z2) does."""
    assert [float(s["alpha_c"]) for s in hx.exponents("sign(z1) + sign(z2) + 2*sign(z3)").threshold.stages] == pytest.approx(
        [0, 1.43083366052167], rel=1e-11)


@pytest.mark.parametrize(("f", "mean"), [(lambda u: 1.0, 1.0), (lambda u: u**4, 3.0),
                                         (lambda u: np.log(abs(u)), -(np.euler_gamma + np.log(2)) / 2)])
def test_the_average_over_what_is_known_leaves_no_mass_out(f, mean):
    key = ((0, 0), (0, 0))
    found, _ = over_known(lambda u: LabelCouplings({key: f(u)}, 0.0), False)
    assert found.couplings[key] == pytest.approx(mean, abs=2e-11)


def test_labels_that_crowd_at_a_limit():
    """tanh^2 and 1/cosh^2 = 1 - tanh^2 tell the same, one crowding at 1, the other at 0; the number by convolving in log w."""
    one, two = (hx.exponents(t).weak_recovery["alpha_c"] for t in ("tanh(z1)**2 + tanh(z2)**2", "1/cosh(z1)**2 + 1/cosh(z2)**2"))
    assert float(one) == pytest.approx(float(two), rel=1e-9)
    assert float(one) == pytest.approx(1.32755566492, rel=1e-10)


@pytest.mark.parametrize("text", ["Piecewise((1, (z1 > 0) & (z2 > z1)), (z2, True))", "Heaviside(max(z1, z2))"])
def test_a_function_of_arrays_broadcasts_whatever_is_printed_for_its_switches(text):
    f, u, t = array_function(parse(text), z1, z2), np.linspace(-2, 2, 5)[:, None], np.linspace(-1, 1, 4)
    assert np.array_equal(f(u, t), f(*(a.copy() for a in np.broadcast_arrays(u, t))))


def test_one_small_change_of_an_average_is_no_convergence():
    """E[m m] of sin(z1 + z2 z3) at z1, halved: 0.516654, 0.393861, 0.393687, 0.395323, 0.395454."""
    changes = [0.122793, 0.000174, 0.001636, 0.000130]
    assert next_change(changes[:2]) > changes[2]
    assert next_change(changes[:3]) > changes[3]
    assert next_change([1e-2, 1e-4, 1e-8]) < 1e-11
