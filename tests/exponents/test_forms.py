"""Equal forms and independent parts of a label: majorities, logistic functions, signs times moduli, known steps."""

import numpy as np
import pytest

import hermitex as hx
from hermitex import parse
from hermitex.exponents.channels import channel
from hermitex.exponents.label import independent_labels
from hermitex.exponents.labels.sign_forms import polynomial_in_signs, without_constants
from hermitex.exponents.laws.discrete import exact_atoms
from hermitex.exponents.laws.exact_eigenvalue import exact_couplings, largest_of_exact
from hermitex.exponents.laws.linearised import largest
from hermitex.exponents.laws.noisy import noisy_second
from hermitex.exponents.leap import leap
from hermitex.exponents.thresholds import weak_recovery
from hermitex.kernels.arrays import lambdify
from hermitex.symbols import normals, z1, z2, z3


def stages(first, second):
    return [{"order": 1, "directions": first}, {"order": 2, "directions": second}]


# -- sums that are constant --------------------------------------------------------------------------------------------
IDENTITIES = ["cosh({0})**2 - sinh({0})**2", "sin({0})**2 + cos({0})**2", "softplus({0}) - softplus(-({0})) - ({0})",
              "tanh({0}) - (exp(2*({0})) - 1)/(exp(2*({0})) + 1)", "sigmoid({0}) + sigmoid(-({0}))",
              "cos(2*({0})) - 2*cos({0})**2"]


@pytest.mark.parametrize("inner", ["z1", "z1**3", "2*z2"])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_sums_that_are_constant_are_that_constant(identity, inner):
    rest = parse("z1*z2 + tanh(z3)*sign(z2)")
    whole = parse(identity.format(inner))
    assert not (without_constants(whole + rest) - rest).free_symbols
    # a term that is off by a little leaves a function
    first = whole.as_ordered_terms()[0]
    planted = whole + rest + first/1000
    changed = without_constants(planted)
    f = lambdify(list(normals(planted)), planted - changed, modules=["numpy", "scipy"])
    assert (changed - rest).free_symbols
    assert np.allclose(f(*np.random.default_rng(0).normal(size=(3, 20))), 0, atol=1e-9)


def test_what_is_constant_does_not_keep_an_answer_back():
    found = hx.exponents("cosh(z1**3)**2 - sinh(z1**3)**2 + He3(z1)*z2")
    assert found.information_exponent == found.leap_exponent == 4 and found.generative_exponent == 2
    assert abs(found.threshold.alpha_c / hx.exponents("He3(z1)*z2").threshold.alpha_c - 1) < 1e-12


# -- equal forms -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [
    "sign(sign(z1) + sign(z2) + sign(z3))", "Max(sign(z1), sign(z2))*z3", "abs(sign(z1) + sign(z2))",
    "Piecewise((1, Heaviside(z1) + Heaviside(z2) > 1), (0, True))", "1/(1 + exp(-z1*z2)) + z3",
    "sign(Heaviside(z1) - Rational(1, 2))",
])
def test_plainer_is_the_same_function(text):
    g = parse(text.replace("Rational(1, 2)", "1/2"))
    variables = normals(g)
    points = np.random.default_rng(3).standard_normal((len(variables), 40))
    one, two = (lambdify(variables, e, modules=["numpy", "scipy"])(*points) for e in (g, polynomial_in_signs(g, variables)))
    assert np.broadcast_to(one, 40) == pytest.approx(np.broadcast_to(two, 40), abs=1e-13)


@pytest.mark.slow
def test_majority():
    """The mean direction first, then E[s1 s2 s3-part | u] at order 2; alpha_c by the scalar reduction."""
    found = hx.exponents("sign(sign(z1) + sign(z2) + sign(z3))")
    assert [s["order"] for s in found.staircase] == [s["order"] for s in found.generative_staircase] == [1, 2]
    assert found.leap_exponent == 2
    assert float(found.threshold.alpha_c) == pytest.approx(15.009127387131, rel=1e-11)


# -- independent parts -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "expected"), [
    ("sign(z1*z2)*(1 + z3**2)", "1/2"),
    ("-sign(z1*z2)*exp(-z3**2)", "1/2"),
    ("sign(z1*z2)*(z3**2 + z4**2 + z5**2)", "3/2"),
    ("sign(z1*z2)*(2 + sign(z3*z4))", "pi**2/4"),
])
def test_independent_parts_exactly(text, expected):
    g = parse(text)
    rows = np.eye(len(normals(g)), dtype=int).tolist()
    found = weak_recovery(g, channel(), normals(g), stages=[{"order": 2, "directions": rows}])
    assert found.exact == parse(expected)


def test_the_other_part_is_named():
    g = parse("sign(z1*z2)*(1 + z3**2)")
    found = weak_recovery(g, channel(), normals(g), stages=[{"order": 2, "directions": np.eye(3, dtype=int).tolist()}])
    assert any("pi**2/4" in n for n in found.notes)


def test_parts_that_are_not_told_apart():
    assert independent_labels(parse("sign(z1*z2)*z3"), (z1, z2, z3)) is None
    assert independent_labels(parse("sign(z1*z2)*abs(z1)"), (z1, z2)) is None
    assert independent_labels(parse("(3 + sign(z1*z2))*z3**2"), (z1, z2, z3)) is None


# -- discrete labels without a closed form -----------------------------------------------------------------------------
def test_discrete_label_has_all_digits():
    g = parse("sign(z1)*sign(z2) + sign(z2)*sign(z3)")
    couplings = exact_couplings(exact_atoms(g, (z1, z2, z3)))
    numbers = {k: float(v) for k, v in couplings.items()}
    assert float(largest_of_exact(couplings, [0, 1, 2])) == pytest.approx(largest(numbers, [0, 1, 2])[0], rel=1e-14)
    found = weak_recovery(g, channel(), (z1, z2, z3), stages=[{"order": 2, "directions": np.eye(3, dtype=int).tolist()}])
    # By hand: y = +-2 (1/4 each): G = +-m off the diagonal for (12), (23), m for (13); y = 0: -m for (13), m = 2/pi.
    m = 2 / np.pi
    g2 = {y: m * np.array([[0, y, s], [y, 0, y], [s, y, 0]]) for y, s in ((1, 1), (-1, 1), (0, -1))}
    f = sum(p * np.kron(g2[y], g2[y]) for y, p in ((1, 0.25), (-1, 0.25), (0, 0.5)))
    assert float(found.alpha_c) == pytest.approx(1 / np.linalg.eigvalsh(f)[-1], rel=1e-13)


# -- known steps -------------------------------------------------------------------------------------------------------
def test_known_sign_is_a_finite_sum():
    """sign(z1) z2^2 + z3^2 given z1: half the time the radius of a plane (couplings 1, 0), half z3^2 - z2^2."""
    g = parse("sign(z1)*z2**2 + z3**2")
    found = weak_recovery(g, channel(), (z1, z2, z3), stages=stages([[1, 0, 0]], [[0, 1, 0], [0, 0, 1]]))
    one = noisy_second(parse("z2**2 + z3**2"), channel(), (z2, z3)).couplings
    two = noisy_second(parse("z3**2 - z2**2"), channel(), (z2, z3)).couplings
    both = {k: (one.get(k, 0.0) + two.get(k, 0.0)) / 2 for k in {*one, *two}}
    assert 1 / float(found.alpha_c) == pytest.approx(largest(both, [0, 1])[0], rel=1e-12)


@pytest.mark.slow
# -- the leap by invariance --------------------------------------------------------------------------------------------
def test_nothing_invariant_is_zero():
    g = parse("relu(z1)*relu(z2)*relu(z3)")
    found = leap(g, (z1, z2, z3))
    assert [s["order"] for s in found.staircase.stages] == [1, 2]
    assert [s["directions"].rows for s in found.staircase.stages] == [1, 2]
    zero = next(c for c in found.staircase.certificates if c.status == "zero" and "given" in c.quantity)
    assert "every part of it vanishes" in zero.how
    assert "left alone" in zero.how


def test_invariance_agrees_with_entries():
    """sign(z1) + sign(z2): (1, 2). |z1| z2 + z3: (0, 1, 1/E|z|) first, of what is left z1 is even and starts at order 2."""
    assert leap(parse("sign(z1) + sign(z2)"), (z1, z2)).order == 2
    assert leap(parse("abs(z1)*z2 + z3"), (z1, z2, z3)).order == 2



@pytest.mark.parametrize(("pieces", "plain"), [("Piecewise((z1*z2, z1 > z2), (0, True))", "Heaviside(z1 - z2)*z1*z2")])
def test_a_condition_with_variables_on_both_sides_is_rotated(pieces, plain):
    a, b = (hx.exponents(g).threshold for g in (pieces, plain))
    assert [float(s["alpha_c"]) for s in a.stages] == pytest.approx([float(s["alpha_c"]) for s in b.stages], rel=1e-11)
