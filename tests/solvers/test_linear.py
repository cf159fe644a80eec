"""Linear blocks: exact at all points, least norm where singular, and never silent about it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import BadInput, NotConverged
from hermitex.solvers.linear import linear, spectral_radius

NAMES = ("m", "zeta", "zetahat")


@given(st.integers(0, 10**6), st.floats(-12, 12))
@settings(max_examples=40)
def test_solves_to_rounding_whatever_the_scale_of_the_rows(seed, exponent):
    rng = np.random.default_rng(seed)
    A, x = rng.normal(size=(3, 3, 4)) + 4 * np.eye(3)[:, :, None], rng.normal(size=(3, 4))
    A[1] *= 10.0**exponent
    s = linear(A, np.einsum("ijb,jb->ib", A, x), names=NAMES)
    assert np.allclose(s.state, x, rtol=1e-11, atol=1e-11) and not s.notes


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_least_norm_is_that_of_the_pseudoinverse(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 2)) @ rng.normal(size=(2, 3))
    b = A @ rng.normal(size=3)
    s = linear(A, b, names=NAMES)
    assert np.allclose(s.state, np.linalg.pinv(A, rcond=1e-12) @ b, atol=1e-9)
    assert "rank 2" in s.notes[0] and "minimum-norm" in s.notes[0]


def test_a_mean_that_is_undetermined_is_zero_and_said_so():
    """mu_0 = 0: the equation of m is 0 = 0, exactly or up to the rounding of a quadrature."""
    for noise in (0.0, 1e-17):
        A = np.array([[noise**2, noise], [noise, 2.0]])
        s = linear(A, np.array([noise, 1.0]), names=("m", "zeta"))
        assert s["m"] == pytest.approx(0.0, abs=1e-12) and s["zeta"] == pytest.approx(0.5) and s.notes


def test_a_singular_block_without_a_solution_is_a_failure():
    with pytest.raises(NotConverged, match="without a solution"):
        linear([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0], names=("a", "b"))


def test_batch_equals_point_by_point_and_only_the_singular_point_is_special():
    A = np.stack([np.eye(2), np.zeros((2, 2)), [[2.0, 1.0], [0.0, 1.0]]], axis=2)
    b = np.array([[1.0, 0.0, 3.0], [2.0, 0.0, 1.0]])
    s = linear(A, b, names=("a", "b"))
    for k in range(3):
        assert linear(A[..., k], b[:, k], names=("a", "b")).state.tolist() == s.state[:, k].tolist()
    assert "1 of 3 points" in s.notes[0]


def test_wrong_shapes_and_nan_are_named():
    with pytest.raises(BadInput, match="2 unknowns"):
        linear(np.eye(3), np.ones(3), names=("a", "b"))
    with pytest.raises(NotConverged, match="not finite"):
        linear([[np.nan]], [1.0], names=("a",))


def test_spectral_radius_of_a_rotation_and_a_shear():
    K = np.stack([[[0.0, -0.5], [0.5, 0.0]], [[0.9, 7.0], [0.0, 0.1]]], axis=2)
    assert spectral_radius(K) == pytest.approx([0.5, 0.9])


@pytest.mark.parametrize("small", [1e-6, 1e-12])
def test_a_badly_scaled_unknown_is_no_singular_block(small):
    """Columns of very different size: unknowns in different units."""
    A = np.array([[1.0, 2*small, 0.3], [0.2, small, 5.0], [0.7, -3*small, 1.0]])
    x = np.array([1.5, -2.0/small, 0.25])
    found = linear(A, A@x, names=("a", "b", "c"))
    assert found.notes == ()
    assert np.allclose([found["a"], found["b"]*small, found["c"]], x*[1, small, 1], rtol=1e-12)
