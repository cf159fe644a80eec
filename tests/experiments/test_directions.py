"""The experiment of one step on a target of several directions, beside its theory."""

import json
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments.gradient_step import in_its_frame
from hermitex.experiments.one_step_experiment import simulate

one_step = hx.theories.one_step
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_directions.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, more, numbers", [
    ("relu", "z1 + z1*z2", {}, {"r": 1.2, "c": 1, "gamma": 0.9}),
    ("erf", "tanh(z1) + z2/2 + z1*z2", {}, {"r": 1.5, "c": 1.2, "gamma": 0.85}),
    ("softplus", "z1 + z1*z2", {"steps": 2}, {"alpha0": 4, "eta": 2}),
    ("relu", "z1 + z1*z2", {"spikes": [[1.2, 0], [0, 1.5]], "overlaps": [[0.9, 0], [0, 0.8]]}, {"c": 1.1}),
    ("erf", "z1 + z1*z2", {"vocabulary": [1, -1.5], "steps": 2}, {"alpha0": 4, "eta": 1}),
    ("tanh", "z1 + z1*z2", {"vocabulary": [1, -2]}, {"r": 1, "c": 1, "gamma": 0.9}),
    ("tanh", "z1 + z1*z2", {"vocabulary": [1, -2], "biases": [0.5, -0.3]}, {"r": 1, "c": 1, "gamma": 0.9}),
])
def test_the_features_follow_the_theory(sigma, g, more, numbers):
    theory = one_step(sigma, g, **more)
    numbers = {**numbers, "lam": 0.1, "Delta": 0.1}
    measured = simulate(theory, [2.0], dimension=200, seeds=range(100, 124), **numbers)
    found = theory.solve(alpha=2.0, dimension=200, **numbers)
    for name, error in measured.standard_error.items():
        if name in found:
            assert abs(measured[name][0] - found[name]) < 3*error[0], name


@pytest.mark.slow
@pytest.mark.parametrize("row", REFERENCE["A1_network"], ids=lambda row: row["sigma"])
def test_the_network_follows_its_theory(row):
    numbers = {n: row[n] for n in ("alpha0", "beta", "lam", "Delta")}
    theory = one_step(row["sigma"], row["g"], network="exact")
    measured = simulate(theory, [row["alpha"]], dimension=300, seeds=range(500, 516), eta=row["etat"], **numbers)
    known = {"test_error": "test", "train_error": "train", "q1": "q1", "q2": "q2", **{n: n for n in row["fields"] if n[0] in "mzp"}}
    for name, field in known.items():
        theory_value = row["net"][row["fields"].index(field)]
        assert abs(measured[name][0] - theory_value) < 3*measured.standard_error[name][0], name
    # tooth: spiked features are not the network
    assert any(abs(measured[name][0] - row["srf"][row["fields"].index(field)]) > 3*measured.standard_error[name][0]
               for name, field in known.items())


@pytest.mark.slow
def test_a_network_after_two_steps():
    theory, numbers = one_step("softplus", "z1 + z1*z2", steps=2), {"alpha0": 4, "eta": 2, "Delta": 0.1}
    path = theory.path(**numbers)
    found = {d: simulate(theory, [1.0], model="network", dimension=d, seeds=range(16), lam=0.1, **numbers) for d in (200, 400)}
    for name, value in {"r": path.norm[-1], "c": path.c[-1], "Gamma1": path.cosine[-1, 0], "Gamma2": path.cosine[-1, 1]}.items():
        mean = 2*found[400][name][0] - found[200][name][0]  # free of the term of order 1/d
        assert abs(mean - value) < 3*np.hypot(2*found[400].standard_error[name][0], found[200].standard_error[name][0]), name


@pytest.mark.slow
def test_a_network_of_two_letters_after_two_steps():
    theory = one_step("softplus", "z1 + z1*z2", vocabulary=[1, -0.5], fractions=[0.4, 0.6], steps=2)
    numbers, J = {"alpha0": 4, "eta": 2, "Delta": 0.1}, 2
    path = theory.path(**numbers)
    found = {d: simulate(theory, [1.0], model="network", dimension=d, seeds=range(16), lam=0.1, **numbers) for d in (200, 400)}
    values = {f"overlap{k + 1}_{j + 1}": path.overlap[-1, k, j] for k in range(2) for j in range(J)}
    values |= {"gram_11": path.gram[-1, 0, 0], "gram_12": path.gram[-1, 0, 1], "gram_22": path.gram[-1, 1, 1]}
    for name, value in {**values, "c1": path.c[-1, 0], "c2": path.c[-1, 1]}.items():
        mean = 2*found[400][name][0] - found[200][name][0]  # free of the term of order 1/d
        assert abs(mean - value) < 3*np.hypot(2*found[400].standard_error[name][0], found[200].standard_error[name][0]), name


def test_a_network_in_the_frame_of_two_spikes():
    rng = np.random.default_rng(6)
    w, x = rng.standard_normal((8, 7)), rng.standard_normal((4, 7))
    for along in (rng.standard_normal((2, 7)), np.eye(7)[:2] + np.eye(7)[1], np.ones((2, 1))*rng.standard_normal(7)):
        found = in_its_frame(np.tanh, w, np.repeat([1.0, -2], 4), along, (slice(0, 4), slice(4, 8)), directions=2)
        axes = np.eye(7)[:np.linalg.matrix_rank(along)]
        turned = np.linalg.lstsq(found.bulk + found.spike @ axes, w @ x.T, rcond=None)[0].T
        np.testing.assert_allclose(found.projection(turned), x[:, :2], atol=1e-10)
        assert (found.bulk[:4] @ axes.T).mean(axis=0) == pytest.approx(0, abs=1e-12)


def test_a_network_in_the_frame_of_its_spike():
    # z is the same function of x in any frame, also where v lies in the span of the directions
    rng = np.random.default_rng(5)
    w, x = rng.standard_normal((7, 6)), rng.standard_normal((4, 6))
    for v in (rng.standard_normal(6), np.array([3.0, -4, 0, 0, 0, 0]), np.array([0, 0, 1.0, 0, 0, 0])):
        found = in_its_frame(np.tanh, w, np.ones(7), v, (slice(0, 7),), directions=2)
        turned = np.linalg.lstsq(found.bulk + found.spike @ np.eye(6)[:1], w @ x.T, rcond=None)[0].T
        np.testing.assert_allclose(found.projection(turned), x[:, :2], atol=1e-10)
        np.testing.assert_allclose(found.overlaps[:, 0], v[:2]/np.linalg.norm(v), atol=1e-12)


@pytest.mark.parametrize("g, more, numbers, said", [
    ("z1 + z1*z2", {}, {"model": "network", "alpha0": np.inf, "eta": 1}, "of one direction"),
    ("sin", {"vocabulary": [1, 2], "biases": [0, 1]}, {"model": "network", "alpha0": 2, "eta": 1}, "has no biases"),
    ("sin", {"steps": 2}, {"model": "network", "alpha0": np.inf, "eta": 1}, "model='features'"),
])
def test_what_it_does_not_do(g, more, numbers, said):
    with pytest.raises(BadInput, match=said):
        simulate(one_step("tanh", g, **more), [1], lam=0.1, dimension=20, seeds=1, **numbers)


def test_the_target_in_the_frame_of_the_spike():
    curve = simulate(one_step("tanh", "z1 + z1*z2"), [1.0], lam=0.1, r=1, c=1, gamma=0.8, dimension=60, seeds=2)
    assert {"psi1", "psi2"} <= set(curve.order_parameters) and np.all(np.isfinite(curve["test_error"]))
