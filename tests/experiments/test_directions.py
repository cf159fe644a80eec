"""The experiment of one step on a target of several directions, beside its theory."""

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments.one_step_experiment import simulate

one_step = hx.theories.one_step


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, more, numbers", [
    ("relu", "z1 + z1*z2", {}, {"r": 1.2, "c": 1, "gamma": 0.9}),
    ("erf", "tanh(z1) + z2/2 + z1*z2", {}, {"r": 1.5, "c": 1.2, "gamma": 0.85}),
    ("softplus", "z1 + z1*z2", {"steps": 2}, {"alpha0": 4, "eta": 2}),
    ("tanh", "z1 + z1*z2", {"vocabulary": [1, -2]}, {"r": 1, "c": 1, "gamma": 0.9}),
])
def test_the_features_follow_the_theory(sigma, g, more, numbers):
    theory = one_step(sigma, g, **more)
    numbers = {**numbers, "lam": 0.1, "Delta": 0.1}
    measured = simulate(theory, [2.0], dimension=200, seeds=range(100, 124), **numbers)
    found = theory.solve(alpha=2.0, dimension=200, **numbers)
    for name, error in measured.standard_error.items():
        if name in found:
            # eight to twenty quantities: 3.5 standard errors
            assert abs(measured[name][0] - found[name]) < 3.5*error[0], name


@pytest.mark.parametrize("g, more, numbers, said", [
    ("z1 + z1*z2", {}, {"model": "network", "alpha0": 2, "eta": 1}, "of one direction"),
    ("sin", {"vocabulary": [1, 2], "biases": [0, 1]}, {"r": 1, "c": 1, "gamma": 1}, "leave biases out"),
    ("sin", {"steps": 2}, {"model": "network", "alpha0": 2, "eta": 1}, "model='features'"),
])
def test_what_it_does_not_do(g, more, numbers, said):
    with pytest.raises(BadInput, match=said):
        simulate(one_step("tanh", g, **more), [1], lam=0.1, dimension=20, seeds=1, **numbers)


def test_the_target_in_the_frame_of_the_spike():
    curve = simulate(one_step("tanh", "z1 + z1*z2"), [1.0], lam=0.1, r=1, c=1, gamma=0.8, dimension=60, seeds=2)
    assert {"psi1", "psi2"} <= set(curve.order_parameters) and np.all(np.isfinite(curve["test_error"]))
