"""Bayes-AMP at finite size lies on its state evolution."""

from __future__ import annotations

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments import amp
from hermitex.experiments.amp import simulate
from hermitex.experiments.denoisers import denoiser


def test_same_seeds_same_numbers_and_the_curve_carries_them():
    theory = hx.theories.multi_index("sign(z)")
    both = [hx.curve(theory, alpha=[1, 2], simulate={"dimension": 100, "seeds": [3, 5]}).simulation for _ in range(2)]
    assert both[0].seeds == (3, 5)
    assert both[0]["M11"].tolist() == both[1]["M11"].tolist()
    assert set(both[0].standard_error) == {"test_error", "M11"}


def test_what_cannot_be_drawn_or_held_is_refused():
    theory = hx.theories.multi_index("sign(z)")
    with pytest.raises(BadInput, match="no samples"):
        simulate(theory, [1e-6], dimension=100)
    with pytest.raises(BadInput, match="take a smaller dimension"):
        simulate(theory, [100], dimension=10_000)
    with pytest.raises(BadInput, match="test is"):
        simulate(theory, [1], dimension=10, test=0)


def test_the_error_of_an_estimate_is_that_of_the_angle_it_makes():
    """sign(z): given W the error is arccos(W W0/|W||W0|)/pi, with less than a third of the error of as many inputs."""
    rule = hx.theories.multi_index("sign(z)").generalisation
    rng = np.random.default_rng(0)
    W0 = np.sqrt(50)*np.linalg.qr(rng.standard_normal((50, 1)))[0]
    W = 0.6*W0 + 0.5*rng.standard_normal((50, 1))
    exact = np.arccos((W.T @ W0)[0, 0]/np.linalg.norm(W)/np.linalg.norm(W0))/np.pi
    found = [amp._error(rule, W, W0, np.array([[0.4]]), 4096, np.random.default_rng(s)) for s in range(8)]
    assert abs(np.mean(found) - exact) < 4*np.std(found, ddof=1)/np.sqrt(8)
    assert np.std(found, ddof=1) < 0.3*np.sqrt(exact*(1 - exact)/4096)


def test_a_start_at_zero_leaves_exchangeable_directions_apart():
    """From W = 0 itself the two columns of a committee would stay equal."""
    theory = hx.theories.multi_index("sign(z1) + sign(z2)")
    W0 = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 2)))[0]
    first = amp._first(denoiser(theory, np.zeros(1)), "zero", np.zeros((1, 40)), W0, np.random.default_rng(1))
    assert np.linalg.matrix_rank(first) == 2
    assert np.trace(first.T @ first)/80 == pytest.approx(0.01, rel=0.5)


@pytest.mark.parametrize("target", ["sign(z)", "sign(z1) + sign(z2)"])
def test_the_slope_of_g_is_its_square_where_omega_errs_by_what_V_says(target):
    """-E[dg/domega] = E[g g^T] = F(M) on the Nishimori line; off it, with omega too far, only the former stays below 1/V."""
    theory = hx.theories.multi_index(target)
    r, rng, n = theory.output.r, np.random.default_rng(0), 40_000
    M = np.full((r, r), 0.1) + 0.4*np.eye(r)
    V = np.eye(r) - M
    omega = rng.standard_normal((n, r)) @ np.linalg.cholesky(M).T
    y = amp.drawn(theory, omega + rng.standard_normal((n, r)) @ np.linalg.cholesky(V).T, rng)
    label = denoiser(theory, y)
    g, slopes = label(omega, V)
    slope = amp.precision(slopes, label.full)/n
    np.testing.assert_allclose(slope, g.T @ g/n, atol=0.03)
    np.testing.assert_allclose(slope, theory.output.second(M), atol=0.03)
    g, slopes = label(3*rng.standard_normal((n, r)), V)
    assert np.linalg.eigvalsh(g.T @ g/n)[-1] > 1/np.linalg.eigvalsh(V)[0]
    assert np.linalg.eigvalsh(amp.precision(slopes, label.full)/n)[-1] < 1/np.linalg.eigvalsh(V)[0]


@pytest.mark.parametrize(("target", "V", "digits"), [
    ("z1*z2", [[0.4, 0.1], [0.1, 0.3]], 1e-6),
    ("max(z1, z2)", [[0.4, 0.1], [0.1, 0.3]], 1e-6),
    ("relu(z1) + relu(z2)", [[0.6, -0.2], [-0.2, 0.5]], 1e-6),
    ("z1*z2*z3", np.diag([0.3, 0.4, 0.5]), 1e-5),
    ("z1*Abs(z2)*z3**2", np.diag([0.3, 0.4, 0.5]), 1e-5),
])
def test_labels_seen_at_many_fields_have_the_g_of_one(target, V, digits):
    """g from what is kept of many labels against that of each label alone, which keeps nothing; slopes against differences."""
    theory, rng, V = hx.theories.multi_index(target), np.random.default_rng(0), np.array(V)
    r, n = len(V), 40
    z = rng.standard_normal((n, r))
    y, omega = amp.drawn(theory, z, rng), 0.6*z + 0.5*rng.standard_normal((n, r))
    label = denoiser(theory, y)
    label(omega, np.eye(r))
    g, slopes = label(omega, V)
    alone = [denoiser(theory, y[k:k + 1]) for k in range(n)]
    np.testing.assert_allclose(g, [one(o[None], V)[0][0] for one, o in zip(alone, omega, strict=True)], rtol=digits, atol=digits)
    h = 1e-4
    for j, axis in enumerate(h*np.eye(r)):
        difference = (label(omega + axis, V)[0] - label(omega - axis, V)[0])/(2*h)
        np.testing.assert_allclose(slopes[:, :, j], difference, rtol=2e-3, atol=2e-3)


def test_the_estimate_of_a_clean_label_sees_correlated_uncertainty():
    """E[max(z1, z2)|omega] at a V that is not diagonal, by sampling, 4 standard errors; the diagonal alone is off by 80 and 15."""
    rule = hx.theories.multi_index("max(z1, z2)").generalisation
    V, omega = np.array([[0.5, 0.3], [0.3, 0.4]]), np.array([[0.2, -0.1], [-1.0, 0.5]])
    draws = np.random.default_rng(0).standard_normal((200_000, 2)) @ np.linalg.cholesky(V).T
    samples = np.max(omega[:, None] + draws, axis=2)
    error = samples.std(axis=1)/np.sqrt(len(draws))
    assert np.all(np.abs(rule.estimate(omega, V) - samples.mean(axis=1)) < 4*error)
    assert np.all(np.abs(rule.estimate(omega, np.diag(np.diag(V))) - samples.mean(axis=1)) > 15*error)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "channel", "alpha", "d", "seeds"), [
    ("sign(z)", None, [1.0, 2.0], 1000, 64),
    ("He3(z)", None, [0.6], 1000, 12),
    ("z**2", "gaussian:1/4", [2.0], 500, 6),
    ("sign(z1*z2)", None, [4.25], 800, 8),
    ("sign(z1*z2)", "flip:1/20", [6.0], 500, 8),
    ("z1*z2", None, [1.4], 2000, 4),
    ("max(z1, z2)", None, [0.5], 500, 6),
    ("relu(z1) + relu(z2)", None, [1.0], 500, 6),
])
def test_amp_lies_within_three_standard_errors_of_state_evolution(target, channel, alpha, d, seeds):
    """The first seeds, 0, 1, ...; where a run is cheap so many that the errors of the means are a thousandth."""
    theory = hx.theories.multi_index(target, channel)
    found = theory.solve(alpha=alpha)
    measured = simulate(theory, alpha, dimension=d, seeds=seeds)
    for name in ("M11", "test_error"):
        z = (measured[name] - found[name])/measured.standard_error[name]
        assert np.abs(z).max() < 3, (name, z)


@pytest.mark.slow
def test_what_a_finite_size_takes_from_an_overlap_falls_as_its_inverse():
    """sign(z1 z2), alpha = 4.25: AMP lies below state evolution by about 4/d, at d = 100 as at d = 400."""
    theory = hx.theories.multi_index("sign(z1*z2)")
    q, lost = theory.solve(alpha=4.25)["M11"], {}
    for d, seeds in ((100, 60), (400, 32)):
        runs = [simulate(theory, [4.25], dimension=d, seeds=[s], test=16) for s in range(seeds)]
        trace = np.array([(r["M11"][0] + r["M22"][0])/2 for r in runs])  # of M alone: no frame is chosen
        lost[d] = d*(q - trace.mean()), d*trace.std(ddof=1)/np.sqrt(seeds)
    (small, error), (large, other) = lost[100], lost[400]
    assert small > 2*error
    assert abs(small - large) < 3*np.hypot(error, other)
    assert large < 20  # 0.05 at d = 400, which vanishes beside the standard error of a few seeds from d = 1000 on


@pytest.mark.slow
def test_a_committee_specialises_as_state_evolution_says():
    """sign(z1) + sign(z2) beyond its transition: a matrix of overlaps, M11 and M22 apart from M12."""
    theory = hx.theories.multi_index("sign(z1) + sign(z2)")
    found, measured = theory.solve(alpha=3.0), simulate(theory, [3.0], dimension=500, seeds=8, test=16)
    for name in ("M11", "M12", "M22"):
        assert abs(measured[name][0] - found[name]) < 3*measured.standard_error[name][0], name
    assert measured["M11"][0] > measured["M12"][0] + 0.3


@pytest.mark.slow
def test_directions_that_wait_are_learned_after_those_that_are_known():
    """z1^2 + sign(z1 z2 z3) beyond both transitions: z1 is known at once, z2 and z3 grow from nothing after it."""
    theory = hx.theories.multi_index("z1**2 + sign(z1*z2*z3)")
    found, measured = theory.solve(alpha=4.0), simulate(theory, [4.0], dimension=300, seeds=4)
    assert measured["M11"][0] == pytest.approx(1, abs=1e-3)
    for name in ("M22", "M33", "test_error"):
        assert abs(measured[name][0] - found[name]) < 3*measured.standard_error[name][0], name
    assert measured["M22"][0] > 0.5


@pytest.mark.slow
def test_a_product_of_three_is_kept_above_its_informed_threshold_and_lost_below():
    """z1 z2 z3: M = 1 attracts from alpha = 3 on, only M = 0 is left below 2.5536; informed and spectral starts."""
    theory, d, rng = hx.theories.multi_index("z1*z2*z3"), 100, np.random.default_rng(0)
    W0 = np.sqrt(d)*np.linalg.qr(rng.standard_normal((d, 3)))[0]
    X = rng.standard_normal((5*d, d))/np.sqrt(d)
    y = amp.drawn(theory, X @ W0, rng)
    for n, start, steps in ((5*d, "informed", 5), (3*d//2, "informed", 25), (3*d//2, "spectral", 25)):
        label = denoiser(theory, y[:n])
        W, V = amp.amp(label, X[:n], amp._first(label, start, X[:n], W0, rng), full=label.full, steps=steps)
        overlap = np.diag(amp.aligned(W.T @ W0/d, theory.space.group))
        assert theory.solve(alpha=n/d, start=start if start == "informed" else "uninformed")["M11"] == float(n == 5*d)
        if n == 5*d:  # a step takes V to 3/5 of it
            assert overlap.min() > 0.98 and np.diag(V).max() < 0.02
        else:
            assert np.abs(overlap).max() < 0.3 and np.diag(V).min() > 0.9
