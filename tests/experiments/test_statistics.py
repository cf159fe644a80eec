"""Seeds, standard errors and z-scores: what they are, and that a planted shift is seen."""

import numpy as np
import pytest

from hermitex import Curve
from hermitex.errors import BadInput
from hermitex.experiments.statistics import agreement, mean_and_error, seeds_of


def test_seeds_are_said():
    assert seeds_of(3) == (0, 1, 2)
    assert seeds_of(np.array([5, 7])) == (5, 7)
    for bad in (0, -1, [], [1, 1], [0.5], True, "ab", 1.5, [-1]):
        with pytest.raises(BadInput):
            seeds_of(bad)


def test_the_standard_error_is_that_of_a_mean():
    x = np.random.default_rng(0).normal(2.0, 3.0, size=(4000, 2))
    mean, error = mean_and_error(x)
    assert mean.shape == error.shape == (2,)
    np.testing.assert_allclose(error, 3/np.sqrt(4000), rtol=0.05)
    assert np.all(np.abs(mean - 2) < 4*error)
    assert np.isnan(mean_and_error([[1.0]])[1]).all()


def _curves(shift):
    alpha = np.array([1.0, 2.0])
    theory = Curve("t", {}, alpha, {"test_error": np.array([0.1, 0.2]), "train_error": np.array([0.0, 0.1]), "V": alpha})
    values = {"test_error": np.array([0.1, 0.2]) + shift, "train_error": np.array([0.0, 0.1])}
    errors = {"test_error": np.array([0.01, 0.02]), "train_error": np.array([0.0, 0.01])}
    return theory, Curve("t", {}, alpha, values, standard_error=errors, seeds=(0, 1))


def test_z_scores_count_standard_errors():
    same, moved = agreement(*_curves(0.0)), agreement(*_curves(0.05))
    assert same.rms() == 0 and same.worst() == 0 and set(same.z) == {"test_error", "train_error"}
    np.testing.assert_allclose(moved.z["test_error"], [5, 2.5])
    assert moved.worst() == pytest.approx(5) and moved.rms("test_error") == pytest.approx(np.sqrt((25 + 6.25)/2))
    assert "worst 5.00" in repr(moved)


@pytest.mark.parametrize("seeds", [2, 3, 5, 9, 10, 40])
def test_the_mean_lies_within_one_standard_error_as_often_for_few_seeds(seeds):
    """68.27 % of draws; s/sqrt(K) alone holds 50 % for two of them."""
    draws = np.random.default_rng(5).standard_normal((seeds, 200_000))
    mean, error = mean_and_error(draws)
    assert abs((abs(mean) < error).mean() - 0.6827) < 0.004
