"""Sums of independent terms on scales that are known: quadratic ones by angles and hyperbolas, halves by their mirror."""

import numpy as np
import pytest

import hermitex as hx
from hermitex.exponents.laws import sums_given as module
from hermitex.exponents.laws.density import array_function
from hermitex.exponents.laws.known import next_change, over_known
from hermitex.exponents.laws.linearised import Second
from hermitex.exponents.laws.sums_given import over_angles, sums_given
from hermitex.symbolic.parsing import parse
from hermitex.symbols import z1, z2, z3, z4

FLIPS = [(0,), (1,), (0, 1)]
X, W = np.polynomial.legendre.leggauss(24)


def by_conics(a, b):
    """E[G_i G_j] of w = a z1^2 + b z2^2: its level sets are ellipses, or hyperbolas, walked with equal steps."""
    if b > 0:
        angle = np.arange(400) * 2 * np.pi / 400
        one, two, step, signs = np.cos(angle) ** 2, np.sin(angle) ** 2, 2 * np.pi / 400, (1.0,)
    else:
        t = np.arange(-20, 20, 0.05)
        # Both branches of the hyperbola; w > 0 and w < 0 exchange them.
        one, two, step, signs = np.cosh(t) ** 2, np.sinh(t) ** 2, 0.1, (1.0, -1.0)
    total = np.zeros(3)
    edges = np.concatenate([[0.0], 10.0 ** np.arange(-14.0, -1), [0.4, 1, 2, 4, 8, 14, 22, 32, 44, 60, 80]]) * max(1.0, abs(b))
    for sign in signs:
        p1, p2 = (one, two) if sign > 0 else (two, one)
        w = ((edges[:-1] + edges[1:])[:, None] / 2 + np.diff(edges)[:, None] / 2 * X).ravel()
        v = (np.diff(edges)[:, None] / 2 * W).ravel()
        s1, s2 = w[:, None] * p1 / abs(a), w[:, None] * p2 / abs(b)
        weight = np.exp(-(s1 + s2) / 2) * step / (4 * np.pi * np.sqrt(abs(a * b)))
        p, q1, q2 = weight.sum(1), (weight * (s1 - 1)).sum(1), (weight * (s2 - 1)).sum(1)
        live = p > 1e-30
        total += [np.sum((v * x * y)[live] / p[live]) for x, y in ((q1, q1), (q1, q2), (q2, q2))]
    return total


@pytest.mark.parametrize("u", [0.7, -0.7, 1.6, -1.6])
def test_squares_on_two_scales(u):
    terms = sums_given(parse("He2(z1) + He2(z2)*z3"), [z3], [z1, z2], FLIPS)
    found = terms.second((u,)).couplings
    values = [found[(0, 0), (0, 0)], found[(0, 0), (1, 1)], found[(1, 1), (1, 1)]]
    assert values == pytest.approx(by_conics(1.0, u).tolist(), abs=2e-9)


def test_a_half_is_the_other_half_mirrored():
    """relu(z1) + relu(z2) at -u tells what it tells at u: relu(z) - relu(-z) = z."""
    g = parse("z3**2 + relu((z1 + z2)/sqrt(2)) + relu((z1 - z2)/sqrt(2))")
    terms = sums_given(g, [z1], [z2, z3], FLIPS)
    for u in (0.7, 2.0):
        one, two = terms.second((u,)), terms.second((-u,))
        assert one.error < 1e-8
        assert all(one.couplings[k] == pytest.approx(v, abs=2e-9) for k, v in two.couplings.items())


def test_what_is_no_such_sum():
    assert sums_given(parse("z1*z2*z3 + z4"), [z4], [z1, z2, z3], ()) is None
    assert sums_given(parse("abs(z1 + z2 + z3)"), [z3], [z1, z2], ()) is None
    assert over_angles(parse("He2(z1)*z2 + He2(z3)*z4**2"), [z2, z4], [z1, z3], FLIPS) is None


def test_a_wrong_scale_shows_in_the_masses(monkeypatch):
    monkeypatch.setattr(module, "scaled", lambda law, c: law if c == 1 else module.replace(law, hi=law.hi / 200))
    terms = sums_given(parse("He2(z1) + He2(z2)*z3"), [z3], [z1, z2], FLIPS)
    assert terms.second((0.7,)).error > 1e-4
    assert array_function(z3, z3)(0.7) == 0.7


@pytest.mark.parametrize(("f", "mean"), [(lambda u: 1.0, 1.0), (lambda u: u**4, 3.0),
                                         (lambda u: np.log(abs(u)), -(np.euler_gamma + np.log(2)) / 2)])
def test_the_average_over_what_is_known_leaves_no_mass_out(f, mean):
    key = ((0, 0), (0, 0))
    found, _ = over_known(lambda u: Second({key: f(u)}, 0.0), False)
    assert found.couplings[key] == pytest.approx(mean, abs=2e-11)


@pytest.mark.slow
def test_two_known_scales_and_their_angle():
    """He2(z1) z2 + He2(z3) z4: the exchange of the pairs leaves it alone, and rotated pairs (z2, z4) tell the same."""
    found = over_angles(parse("He2(z1)*z2 + He2(z3)*z4"), [z2, z4], [z1, z3], FLIPS)
    assert found.error < 1e-9
    assert found.couplings[(0, 0), (0, 0)] == pytest.approx(found.couplings[(1, 1), (1, 1)], abs=1e-11)
    assert found.couplings[(0, 0), (1, 1)] == pytest.approx(_mean_over_angles((0, 0), (1, 1)), abs=1e-7)


def _mean_over_angles(a, b):
    terms = sums_given(parse("He2(z1)*z2 + He2(z3)*z4"), [z2, z4], [z1, z3], FLIPS)
    x, w = np.polynomial.legendre.leggauss(16)
    total = 0.0
    for low, high in ((0, np.pi / 4), (np.pi / 4, np.pi / 2), (np.pi / 2, 3 * np.pi / 4), (3 * np.pi / 4, np.pi)):
        end = low if round(low / (np.pi / 2), 9) in (0, 1) else high
        other = high if end == low else low
        for s, v in zip((1 + x) / 2, w / 2, strict=True):  # the distance from a zero of a scale is s^5
            angle = end + (other - end) * s**5
            total += v * 5 * s**4 * np.pi / 4 * terms.second((np.cos(angle), np.sin(angle))).couplings[a, b]
    return total / np.pi


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
