"""Iteration: a short step is not convergence, and the error it claims is the error it has."""

import numpy as np
import pytest
import saddles
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import NotConverged
from hermitex.solvers.fixed_point import anderson, damped


def linear_map(seed, radius, n=4):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, n))
    K *= radius / np.abs(np.linalg.eigvals(K)).max()
    b = rng.normal(size=(n, 1))
    return K, (lambda x, p: K @ x + b), np.linalg.solve(np.eye(n) - K, b)[:, 0]


@pytest.mark.parametrize("solve", [damped, anderson])
@given(seed=st.integers(0, 10**6), radius=st.floats(0.1, 0.95))
@settings(max_examples=25)
def test_the_claimed_error_and_contraction_are_true(solve, seed, radius):
    _, G, x = linear_map(seed, radius)
    s = solve(G, np.zeros(4), names=list("abcd"), rtol=1e-8)
    true = (np.abs(s.state - x) / (np.abs(s.state) + 1e-6)).max()
    assert true <= 1e-8 * (1 + 1e-3) and s.stability == pytest.approx(radius, abs=1e-5)
    assert s.error == pytest.approx(true, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("damping", [1.0, 0.1, 1e-3])
def test_a_slowly_contracting_map_is_not_called_converged(damping):
    """x <- x + 1e-8 (1 - x): every step is below 1e-8, the answer is far."""
    s = damped(lambda x, p: x + 1e-8 * (1 - x), [0.5], names=["q"], rtol=1e-6, damping=damping, max_steps=200,
               raise_on_failure=False)  # fmt: skip
    assert abs(s["q"] - 1) > 0.4 and s.residual < 1e-6  # the naive criteria would both have stopped here
    assert not s.converged and s.error > 0.1 and s.stability == pytest.approx(1, abs=1e-6)


def test_the_residual_is_the_undamped_one():
    s = damped(lambda x, p: 0.5 * x + 1, [0.0], names=["q"], damping=1e-12, max_steps=3, raise_on_failure=False)
    assert not s.converged and s.residual > 0.5


@pytest.mark.parametrize(("G", "x0", "said"), [
    (lambda x, p: -x, 1.0, "m oscillates"),
    (lambda x, p: -1.5 * x, 1.0, "m oscillates"),
    (lambda x, p: 1.5 * x, 1.0, "m diverges"),
    (lambda x, p: x + 1e-3 * (1 - x), 0.0, "m still moves"),
])  # fmt: skip
def test_a_failure_says_what_the_unknown_did(G, x0, said):
    with pytest.raises(NotConverged, match=said) as caught:
        damped(G, [x0], names=["m"], max_steps=50)
    assert "stability" in str(caught.value) and caught.value.solution.iterations >= 50


def test_leaving_the_domain_is_said():
    with pytest.raises(NotConverged, match="right-hand side of V is not positive"):
        damped(lambda x, p: x - 3, [1.0], names=["V"], positive=True)


def test_anderson_needs_a_fraction_of_the_steps():
    p = {"alpha": np.linspace(0.6, 1.4, 12), "beta": 1.0, "lam": 1e-4}
    slow = damped(saddles.one_step_map, np.ones(4), p, names=saddles.FOUR, positive=True)
    fast = anderson(saddles.one_step_map, np.ones(4), p, names=saddles.FOUR, positive=True)
    assert np.allclose(slow.state, fast.state, rtol=1e-8)
    assert 3 * fast.iterations.sum() < slow.iterations.sum()


def test_anderson_finds_the_unstable_fixed_point_and_says_that_iteration_would_leave_it():
    s = anderson(lambda x, p: 3 - 1.5 * x, [0.0], names=["q"])
    assert s["q"] == pytest.approx(1.2) and s.stability == pytest.approx(1.5, abs=1e-6)


def test_the_safeguard_on_a_map_with_a_kink():
    """Secants across the kink point the wrong way; the residual must come down all the same."""
    def G(x, p):
        return np.stack([np.maximum(0.9 * x[1] - 1, -0.3 * x[0]) + p["h"], 0.8 * np.abs(x[0]) - 0.2 * x[1]])

    p = {"h": np.linspace(-3, 3, 61)}
    s = anderson(G, np.full(2, 5.0), p, names=["a", "b"])
    assert np.abs(G(s.state, p) - s.state).max() < 1e-8


@pytest.mark.parametrize("solve", [damped, anderson])
def test_batch_equals_point_by_point(solve):
    p = {"alpha": np.geomspace(0.2, 5, 7), "beta": 0.8, "lam": 1e-2}
    s = solve(saddles.one_step_map, np.ones(4), p, names=saddles.FOUR, positive=True)
    for k, alpha in enumerate(p["alpha"]):
        q = {**p, "alpha": np.array([alpha])}
        one = solve(saddles.one_step_map, np.ones(4), q, names=saddles.FOUR, positive=True)
        assert one.state[:, 0] == pytest.approx(s.state[:, k], rel=1e-9)


def test_third_route_scipy():
    from scipy.optimize import fixed_point

    x = fixed_point(lambda x: np.tanh(1.7 * x + 0.2), 1.0, xtol=1e-13)
    s = anderson(lambda x, p: np.tanh(1.7 * x + 0.2), [1.0], names=["m"])
    assert s["m"] == pytest.approx(float(x), rel=1e-9)
