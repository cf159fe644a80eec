"""F(M) of labels that jump: by closed forms at M = 0, by the formula for a product of signs, and by the symmetries of the label."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

import hermitex as hx
from hermitex.experiments.amp import drawn
from hermitex.theories.overlaps.channel import FiniteOutput


def test_two_floors_at_no_overlap_by_the_law_of_a_sum():
    """floor(z1) + floor(z2): P and E[z1; y] of each label by convolution; labels far out count too."""
    k = np.arange(-9, 9)
    p, first = norm.cdf(k + 1) - norm.cdf(k), norm.pdf(k) - norm.pdf(k + 1)
    P, A = np.convolve(p, p), np.convolve(p, first)
    found = hx.theories.multi_index("floor(z1) + floor(z2)").output.second(np.zeros((2, 2)))
    np.testing.assert_allclose(found, np.sum(A[P > 0]**2/P[P > 0]), rtol=1e-7)


def test_the_chance_beyond_the_last_step_is_what_the_others_leave():
    """Three steps at a full M: the chances of all cells add up to one, and F is that of nodes twice as dense."""
    output = hx.theories.multi_index("sign(z1) + sign(z2) + sign(z3)").output
    M = np.full((3, 3), 0.2) + 0.1*np.eye(3)
    np.testing.assert_allclose(output.second(M)[0, :2], [0.40089735219126, 0.38160660015190], atol=1e-11)
    chances, *slopes = output.chances(output.cells(np.eye(3) - M, 1.0), np.array([[0.3, -1.0, 2.0]]), np.eye(3) - M, 1.0)
    assert chances.sum() == pytest.approx(1.0, abs=1e-14) and abs(slopes[2].sum()) < 1e-14


def test_a_border_that_jumps_where_the_order_of_the_labels_stays():
    """sign(z2 + sign(z1)): P = 1/2, E[z2; +] = phi(1), E[z1; +] = phi(0) (Phi(1) - Phi(-1)), F = 4 A A^T."""
    A = np.array([norm.pdf(0)*(norm.cdf(1) - norm.cdf(-1)), norm.pdf(1)])
    found = hx.theories.multi_index("sign(z2 + sign(z1))").output.second(np.zeros((2, 2)))
    np.testing.assert_allclose(found, 4*np.outer(A, A), atol=1e-10)


@pytest.mark.parametrize("q", [0.5, 0.999])
def test_fields_that_see_no_step_need_no_node_of_their_own(q):
    """sign(z1 z2), M = q 1: F = (2/(pi V)) E[e^(-q x1^2/V) e2^2/(1 - e1^2 e2^2)] by the trapezoid rule without a node less."""
    v, h = 1 - q, 0.3*np.sqrt(1 - q)
    x = h*(np.arange(-8/h, 8/h) + 0.5)
    w, e = h*norm.pdf(x), erf(np.sqrt(q/(2*v))*x)
    near = np.abs(x) < 8*np.sqrt(v/q)
    d = np.exp(-q*x[near]**2/v)*w[near]
    apart = 1 - e[near, None]**2*e**2
    F = 2/(np.pi*v)*np.sum(d[:, None]*w*e**2/np.maximum(apart, 1e-17))
    found = hx.theories.multi_index("sign(z1*z2)").output.second(q*np.eye(2))
    np.testing.assert_allclose(found, F*np.eye(2), rtol=1e-9, atol=1e-12)


def test_a_product_of_three_signs_is_followed_to_overlaps_of_nearly_one():
    """The informed branch at alpha = 30, beside 1: a fixed point of the formula with three factors, by Monte Carlo."""
    found = hx.theories.multi_index("sign(z1*z2*z3)").solve(alpha=30.0, start="informed")
    q = found["M11"]
    assert 0.99 < q < 1 and found.error < 1e-8
    v, x = 1 - q, np.random.default_rng(0).standard_normal((2, 20_000))
    t, w = np.polynomial.hermite.hermgauss(40)  # e^(-q x1^2/V) is a Gaussian in x1, as narrow
    e, e1 = np.prod(erf(np.sqrt(q/(2*v))*x), axis=0)**2, erf(np.sqrt(1/(2 + v/q))*t)
    each = np.array([np.sum(w*s/np.maximum(1 - e1**2*s, 1e-12)) for s in e])/np.sqrt(np.pi)*np.sqrt(v/(2*q + v))*2/(np.pi*v)
    mean, error = 30*each.mean(), 30*each.std()/np.sqrt(each.size)
    assert abs(mean - q/(1 - q)) < 4*error


@pytest.mark.parametrize(("target", "channel"), [("sign(z1) + sign(z2) + sign(z3)", None), ("sign(z1) + sign(z2)", "gaussian:1/4"),
                                                 ("sign(z1*z2 - 1/2)", None)])
def test_half_of_the_fields_tell_what_all_of_them_tell(target, channel):
    """Where a symmetry of the label reflects the axes of M."""
    output = hx.theories.multi_index(target, channel).output
    M = 0.1*np.eye(output.r) + 0.2
    np.testing.assert_allclose(output.second(M), replace(output, alike=()).second(M), atol=2e-6)


@pytest.mark.slow
def test_two_directions_seen_through_noise_separate_where_iteration_says_so():
    """sign(z1) + sign(z2) + N(0, 1/4): the transition located on the branches, and direct iteration on both sides of it."""
    theory = hx.theories.multi_index("sign(z1) + sign(z2)", "gaussian:1/4")
    (alpha, names), = theory.transitions().stages
    assert names == ("M11/2 + M22/2 - M12",)
    apart = []
    for a in (0.98*alpha, 1.02*alpha):
        x = theory.space.coordinates(np.array([[0.6, 0.1], [0.1, 0.6]]))
        for _ in range(400):
            x = theory.evolution.step(x, a)
        M = theory.space.matrix(x)
        apart.append(M[0, 0] - M[0, 1])
        for start in ("uninformed", "informed"):
            found = theory.solve(alpha=a, start=start)
            assert found["M11"] - found["M12"] == pytest.approx(apart[-1], abs=1e-4)
    assert apart[0] < 1e-3 and apart[1] > 0.01


def test_steps_seen_through_noise_have_the_g_of_nodes():
    """Boxes of the plane against nodes over it, at labels that are drawn; a full V."""
    theory, rng = hx.theories.multi_index("sign(z1) + sign(z2)", "gaussian:1/4"), np.random.default_rng(0)
    output, M = theory.output, np.array([[0.3, 0.2], [0.2, 0.3]])
    nodes = FiniteOutput(**{f.name: getattr(output, f.name) for f in fields(FiniteOutput)})
    np.testing.assert_allclose(output.second(M), nodes.second(M), atol=1e-6)
    omega, V = rng.standard_normal((40, 2)) @ np.linalg.cholesky(M).T, np.eye(2) - M
    y = drawn(theory, omega + rng.standard_normal((40, 2)) @ np.linalg.cholesky(V).T, rng)
    np.testing.assert_allclose(output.g_out(y, omega, V), nodes.g_out(y, omega, V), atol=1e-5)
