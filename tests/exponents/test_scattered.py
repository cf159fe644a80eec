"""The last resort: labels of any kind from evenly spread points, and whether the error they claim holds."""

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr
from sympy import Rational, pi

import hermitex as hx
from hermitex import parse
from hermitex.exponents.channels import channel
from hermitex.exponents.label import visible_target
from hermitex.exponents.laws.block_laws import zeros_by_flips
from hermitex.exponents.laws.conditional_couplings import conditional_zeros
from hermitex.exponents.laws.linearised import LabelCouplings, largest, most_precise
from hermitex.exponents.laws.noisy import noisy_label, noisy_second
from hermitex.exponents.laws.projected import Samples, points, projections
from hermitex.exponents.laws.scattered_points import Plan, Sampled, scattered
from hermitex.exponents.thresholds import weak_recovery
from hermitex.symbols import natural, normals, z1, z2, z3

PRODUCT = 0.59375109822226  # of z1*z2: theory of weak recovery, one-dimensional integral
KNOWN = [  # exact alpha_c, or its digits by the one-dimensional integrals of the theory
    ("z1*z2", PRODUCT), ("exp(z1*z2)", PRODUCT), ("1/(z1*z2)", PRODUCT), ("atan(z1*z2)", PRODUCT), ("z1**2 - z2**2", PRODUCT),
    ("Abs(z1*z2)", 1.46154511587356), ("z1*z2*z3", 2.56518040193), ("z1*z2*z3*z4", 3.72507742408),
    ("(z1**2 - 1)*(z2**2 - 1)", 1.32651153690023), ("Abs(z1) + Abs(z2)", 1.06798754037524), ("sqrt(z1**2 + z2**2 + z3**2)", 1.5),
    ("1/(z1**2 + z2**2)", 1.0), ("z1**2 + sign(z1*z2*z3)", 0.575166352288349), ("sign(z1*z2)", float(pi**2 / 4)),
    ("sign(z1*z2) + sign(z3*z4)", float(pi**2 / 2)), ("z1**2 + z2**2 + z3**2 + z4**2 + z5**2", 2.5),
]
OTHERS = [  # of every kind: kinks, plateaus, jumps, saddles, poles
    "Abs(z1) + Abs(z2) + Abs(z3)", "z1*z2 + z3**2", "z1*z2 + z3**3", "max(z1*z2, 0)", "z1**4 + z2**4",
    "max(z1*z2*z3, 1)", "floor(z1**2)*z2*z3", "z1**2 + max(z2**2, 1)", "min(Abs(z1), 1) + min(Abs(z2), 1)",
    "sin(3*z1*z2)", "Abs(Abs(z1*z2) - 1)", "z1**2 + z2**2 - z3**2", "tanh(z1)*tanh(z2)", "z1*z2 + Abs(z3)",
]
DRAWN = [("z1*z2", "gaussian:1/4"), ("sign(z1*z2)", "flip:1/10"), ("z1**2 + z2**2", "poisson"), ("z1*z2", "multiplicative"),
         ("z1*z2", "sign:1"), ("z1**2 + z2**2 + z3**2", "gaussian:1")]
SMALL = Plan((12, 14))


def names_of(text):
    g = parse(text)
    return g, sorted(normals(g), key=natural)


def sampled(text, law="deterministic", plan=SMALL, seed=0):
    """(1/alpha_c from points, the error that is claimed)."""
    g, names = names_of(text)
    clean = visible_target(g, channel(law))
    drop = zeros_by_flips(clean, names, {x: i for i, x in enumerate(names)})
    found = Sampled(*noisy_label(clean, channel(law)), ((), names, drop)).second((), plan, seed)
    return largest(found.couplings, list(range(len(names))))[0], len(names) * found.error


def by_structure(text, law="deterministic"):
    g, names = names_of(text)
    found = noisy_second(g, channel(law), names, sampling=False)
    return largest(found.couplings, list(range(len(names))))[0], len(names) * found.error


# -- points ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("r", [2, 3, 4, 6])
def test_lattices_are_good_at_every_size(r):
    """P_2 = sum over n | h . a of prod_i max(1, |h_i|)^-2, h != 0: the worst error over functions with two derivatives."""
    def figure_of_merit(n):
        x = ndtr(np.concatenate([z for z, _ in points(r, n, np.zeros(r))], axis=1) / 2)
        return float(np.mean(np.prod(1 + 2 * np.pi**2 * (x * x - x + 1 / 6), axis=0)) - 1)

    merit = [figure_of_merit(2**k) for k in (8, 11, 14)]
    assert all(b < a / 4 for a, b in pairwise(merit))


def test_moments_of_the_points():
    z, w = (np.concatenate(parts, axis=-1) for parts in zip(*points(3, 2**17, np.array([0.3, 0.9, 0.5])), strict=True))
    assert abs(w.sum() - 1) < 1e-9
    assert abs(np.sum(w * z[0]**4 * z[1]**2) - 3) < 1e-7
    assert abs(np.sum(w * np.cos(z[0] + z[1] + z[2])) - np.exp(-1.5)) < 1e-9


# -- projections -------------------------------------------------------------------------------------------------------
def test_what_cells_of_the_label_see_is_never_more_than_there_is():
    """m(v) = 1{v > 1/3} on labels that are uniform, without scatter: the jump is found to the width of a cell."""
    edges = np.linspace(0, 1, 1025)
    moments = np.maximum(edges[1:] - np.maximum(edges[:-1], 1 / 3), 0.0)
    found = projections(Samples(np.broadcast_to(np.diff(edges), (4, 1025 - 1)).reshape(4, 1, -1),
                         np.broadcast_to(moments, (4, 1, 1024)).reshape(4, 1, 1, -1)))
    assert 0 <= 2 / 3 - found.couplings[0, 0] < 2.5e-4
    assert 2 / 3 - found.couplings[0, 0] <= found.error


def test_scatter_is_not_taken_for_structure():
    """Moments that are pure scatter: nothing is seen, within the error."""
    rng = np.random.default_rng(2)
    mass = np.full((16, 8, 64), 1 / 512)
    found = projections(Samples(mass, 1e-3 * rng.normal(size=(16, 1, 8, 64)) / 512**0.5))
    assert abs(found.couplings[0, 0]) < found.error < 1e-4


# -- the claim holds ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "alpha"), KNOWN[:3] + KNOWN[8:10] + KNOWN[12:14])
def test_the_error_covers_known_values(text, alpha):
    inverse, error = sampled(text)
    assert abs(inverse - 1 / alpha) < error < 0.01 / alpha


@pytest.mark.slow
@pytest.mark.parametrize(("text", "alpha", "seed"), [(*row, n % 3) for n, row in enumerate(KNOWN)])
def test_the_error_covers_known_values_for_other_points(text, alpha, seed):
    inverse, error = sampled(text, seed=seed)
    assert abs(inverse - 1 / alpha) < error < 0.05 / alpha


@pytest.mark.slow
@pytest.mark.parametrize("text", OTHERS)
def test_the_error_covers_values_by_structure(text):
    exact, lost = by_structure(text)
    inverse, error = sampled(text)
    assert lost < 1e-7
    assert abs(inverse - exact) < error < 0.05 * exact


@pytest.mark.parametrize(("text", "law"), DRAWN)
def test_the_error_covers_labels_that_are_drawn(text, law):
    exact, _ = by_structure(text, law)
    inverse, error = sampled(text, law)
    assert abs(inverse - exact) < error < 0.02 * exact


def test_labels_that_run_off_to_infinity_where_a_block_has_a_pole():
    """log(z1^2 + z2^2) |z3| by sums in log|z3| and log|y|, which converge exponentially: beside the laws and the points."""
    h = 0.04
    t = np.exp(np.arange(-45, 4, h))
    weight = 2 * np.exp(-t * t / 2) / np.sqrt(2 * np.pi) * h
    inverse = 0.0
    for side in (1, -1):
        y = side * np.exp(np.arange(-60, 8, h))
        half = np.exp(np.minimum(y[:, None] / t, 50)) / 2  # of z1^2 + z2^2
        kernel = half * np.exp(-half) * weight
        p, b = kernel.sum(axis=1), (kernel * (t * t - 1)).sum(axis=1)
        inverse += np.sum(h * np.abs(y) * np.where(p > 1e-290, b**2 / np.maximum(p, 1e-290), 0.0))
    exact, lost = by_structure("log(z1**2 + z2**2)*Abs(z3)")
    assert abs(exact - inverse) < 1e-11
    assert lost < 1e-10
    found, error = sampled("log(z1**2 + z2**2)*Abs(z3)")
    assert abs(found - inverse) < error < 0.02 * inverse


PLATEAUS = [  # the same labels moved, so that an atom stands at zero, where most labels are, or elsewhere; turned; bent
    ("relu(z1*z2 - 1)", ["max(z1*z2, 1)", "relu(z1*z2 - 1) + 1000", "-relu(z1*z2 - 1)", "relu(z1*z2 - 1)**7"]),
    ("relu(z1 + z2 - 2)", ["max(z1 + z2, 2)", "max(z1 + z2 - 2, 0) + 1"]),
    ("min(max(z1*z2, -1), 1)", ["min(max(z1*z2, -1), 1) + 1", "min(max(2 - z1*z2, 1), 3)"]),
    ("relu(z1)*relu(-z2) + relu(-z1)*relu(z2)", ["max(-z1*z2, 0) + 1"]),
    ("relu(z1*z2 + sin(z1)*z2**3 - 1)", ["max(z1*z2 + sin(z1)*z2**3, 1)"]),
]


@pytest.mark.parametrize(("text", "moved"), PLATEAUS)
def test_an_atom_may_stand_anywhere(text, moved):
    inverse, error = sampled(text)
    for other in moved:
        value, its_error = sampled(other)
        assert abs(value - inverse) < 0.5 * (error + its_error) < 4e-3 * inverse


@pytest.mark.parametrize("text", [*(text for text, _ in PLATEAUS[:3]), "max(-z1*z2, 0)",
                                  "Abs(z1) + 10*floor(Abs(z2))", "z1*z2 + 100*sign(z3)"])
def test_the_error_covers_labels_with_plateaus_or_gaps(text):
    exact, lost = by_structure(text)
    inverse, error = sampled(text)
    assert lost < 1e-7
    assert abs(inverse - exact) < error < 0.005 * exact


def test_only_the_order_of_labels_counts():
    assert abs(sampled("z1*z2 + z3**2")[0] - sampled("sinh(z1*z2 + z3**2)")[0]) < 1e-6


def test_two_answers_that_contradict_each_other_have_no_less_an_error_than_their_distance():
    key = ((0, 0), (0, 0))
    right, close, off = LabelCouplings({key: 0.5}, 1e-3), LabelCouplings({key: 0.5004},
                                                                         1e-6), LabelCouplings({key: 0.6, ((0,), (0,)): 0.3}, 1e-9)
    assert most_precise([right, close]) == close  # within their errors
    assert most_precise([right, off]).couplings == off.couplings
    assert abs(most_precise([right, off]).error - 0.1) < 1e-12
    # what is not listed is zero
    assert abs(most_precise([LabelCouplings({((1, 1), (1, 1)): 0.5}, 1e-12), right]).error - 0.5) < 1e-12
    # of the first order alone nothing is compared
    assert most_precise([LabelCouplings({((0,), (0,)): 0.3}, 1e-12), right]).error == 1e-12


def test_a_planted_error_is_seen(monkeypatch):
    """Points whose weights are wrong by a tenth give no value that would pass."""
    g, names = names_of("z1*z2")
    scattered_points = import_module("hermitex.exponents.laws.scattered_points")
    monkeypatch.setattr(scattered_points, "points", lambda r, n, s: ((z, 1.1 * w) for z, w in points(r, n, s)))
    found = Sampled(g, (), None, ((), names, ())).second((), SMALL)
    assert abs(largest(found.couplings, [0, 1])[0] - 1 / PRODUCT) > 2 * found.error


# -- what is known -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("text", "given", "alpha"), [("z1 + z2*z3", [z1], PRODUCT), ("z3**2 + z1*z2", [z1, z2], 0.5)])
def test_given_variables(text, given, alpha):
    g, names = names_of(text)
    hidden = [x for x in names if x not in given]
    found = scattered(g, (), None, (given, hidden, conditional_zeros(g, hidden)))
    assert abs(largest(found.couplings, list(range(len(hidden))))[0] - 1 / alpha) < len(hidden) * found.error < 0.01 / alpha


# -- symmetry ----------------------------------------------------------------------------------------------------------
def test_points_are_spread_for_the_form_that_symmetry_leaves():
    swap, flip, quarter = np.array([[[0.0, 1.0], [1.0, 0.0]], [[-1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]]])
    found = Sampled(abs(z1) + abs(z2), (), None, ((), (z1, z2), ()), (swap, flip)).second((), SMALL)
    assert set(found.couplings) >= {((0, 0), (1, 1))} and abs(found.couplings.get(((0, 1), (0, 1)), 0.0)) < 1e-12
    assert abs(largest(found.couplings, [0, 1])[0] - 1/1.06798754037524) < 2*found.error < 0.1
    wrong = Sampled(z1*z2, (), None, ((), (z1, z2), ()), (quarter,)).second((), SMALL)  # z1 z2 turns its sign
    assert abs(largest(wrong.couplings, [0, 1])[0] - 1/PRODUCT) > 0.5


# -- whole answers -----------------------------------------------------------------------------------------------------
def easy(text):
    g, names = names_of(text)
    stages = [{"order": 2, "directions": np.eye(len(names), dtype=int).tolist()}]
    return weak_recovery(g, channel(), names, stages=stages)


@pytest.mark.slow
def test_labels_without_structure_have_a_number_and_its_error():
    """A function of one label has its alpha_c; so does the label in turned variables."""
    one, two = easy("z1*z2 + cos(z1*z2*z3) + z2*z3 + z3*z1"), easy("exp(z1*z2 + cos(z1*z2*z3) + z2*z3 + z3*z1)")
    assert abs(one.alpha_c - two.alpha_c) < one.error + two.error < 1e-3
    assert any("relative accuracy reached" in n for n in one.notes)
    g = parse("z1**2*z2**2 + z2*z3")
    turned = g.xreplace({z1: (3*z1 + 4*z2)*Rational(1, 5), z2: (4*z1 - 3*z2)*Rational(1, 5)})
    both = [scattered(f, (), None, ((), (z1, z2, z3), ())) for f in (g, turned)]
    values = [largest(s.couplings, [0, 1, 2])[0] for s in both]
    assert abs(values[0] - values[1]) < 3 * sum(s.error for s in both) < 1e-2 * values[0]


def test_a_variable_that_does_not_enter_shows_nothing():
    found = Sampled(z2**2, (), None, ((), (z1, z2), ())).second((), SMALL)
    assert set(found.couplings) == {((1, 1), (1, 1))}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "value"), [
    ("z1**3 - 3*z1*z2**2", 1.27376428554527), ("z1**2*z2**2 + z1**4", 0.52640720282553),
    ("z1**2*z2**2 + z2**2*z3**2 + z1**2*z3**2", 1.7795290596066), ("z1**2 + z1*z2*z3", 0.67150179143),
    ("relu(z1*z2) + relu(z2*z3)", 0.62362064900),
])
def test_homogeneous_labels_to_five_digits(text, value):
    """The values are those of integrals along the orbits of their scalings, to twelve digits, of an earlier version."""
    found = hx.exponents(text, budget=120).threshold
    assert abs(float(found.alpha_c) - value) < min(1e-5*value, float(found.error) + 1e-11)
