"""A wrong Jacobian is noticed, and named, whichever entry is wrong and however slightly."""

import numpy as np
import pytest
import saddles

from hermitex.errors import BadInput
from hermitex.solvers.differences import central, check_jacobian, complex_step

P = {"alpha": np.array([0.5, 1.0, 2.0]), "beta": 1.0, "lam": 1e-2}
X = np.array([[0.3], [0.05], [2.0], [3.0]])


def test_the_exact_jacobian_passes():
    check = check_jacobian(saddles.one_step, saddles.one_step_jacobian, X, P, names=saddles.FOUR)
    assert check.passed and check.how == "complex step" and "agrees" in str(check)


@pytest.mark.parametrize(("row", "column"), [(0, 2), (1, 3), (2, 0), (3, 1), (3, 3)])
def test_a_planted_error_of_one_in_a_million_is_found_and_named(row, column):
    def wrong(x, p):
        J = saddles.one_step_jacobian(x, p)
        J[row, column] *= 1 + 1e-6
        return J

    check = check_jacobian(saddles.one_step, wrong, X, P, names=saddles.FOUR)
    assert not check.passed and (check.row, check.column) == (saddles.FOUR[row], saddles.FOUR[column])
    assert check.row in str(check) and check.column in str(check)


def test_a_function_that_drops_the_imaginary_part_is_compared_by_differences():
    def F(x, p):
        return np.abs(x) ** 3 - 8 + x

    check = check_jacobian(F, lambda x, p: (3 * x * np.abs(x) + 1)[None], [-2.0], names=["q"])
    assert check.passed and check.how == "central differences"
    check = check_jacobian(F, lambda x, p: (3 * x * x + 1)[None], [-2.0], names=["q"])
    assert not check.passed


def test_differences_and_complex_steps_agree():
    x = np.broadcast_to(X, (4, 3)).copy()
    exact = complex_step(saddles.one_step, x, P)
    assert np.allclose(central(saddles.one_step, x, P), exact, rtol=1e-9, atol=1e-10)


def test_a_jacobian_of_the_wrong_shape_is_refused():
    with pytest.raises(BadInput, match="shape"):
        check_jacobian(saddles.ridge, lambda x, p: np.ones((2, 2, 1)), [1.0], {"lam": 1.0, "alpha": 1.0}, names=["V"])
