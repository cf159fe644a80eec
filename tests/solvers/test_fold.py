"""How far a root is undetermined: what slopes, curvature and a third order leave of it, and what it costs to see that."""

import numpy as np
import pytest

from hermitex.solvers.root_precision import undetermined_extent


def measured(F, J, r, clear=1e-10):
    """The largest displacement of the root 1 of n equations, and how often these were asked for."""
    asked = []

    def counted(y, k):
        asked.append(k)
        return F(y)

    n = len(J)
    ones = np.ones((n, 1))
    return np.abs(undetermined_extent(counted, ones, np.array(J, dtype=float)[..., None], r*ones, ones, clear)).max(), len(asked)


@pytest.mark.parametrize("clear", [1e-10, 1e-6])
@pytest.mark.parametrize("part", [0.3, 0.67, 0.9])
def test_a_root_that_is_nearly_clear_costs_a_few_evaluations(clear, part):
    """Known by its slopes to 1.5 times what is asked at most; it was walked along from 1e-10 on, whatever was asked: 79 of them."""
    r = clear*part
    d, asked = measured(lambda y: np.stack([0.6*(y[0] - 1), 1e3*(y[1] - 1) - (y[0] - 1)**2]), np.diag([0.6, 1e3]), r, clear)
    assert asked <= 20 and (d == 0 if part < 0.6 else r <= d <= 3*r)


@pytest.mark.parametrize("clear", [1e-10, 1e-6])
def test_a_double_root_beside_other_equations(clear):
    """(y_1 - 1)^2 within 1.5 r: sqrt(1.5 r), where y_2 follows by its own equation."""
    r = 1e-11
    d, asked = measured(lambda y: np.stack([(y[0] - 1)**2, y[1] - 1 - 3*(y[0] - 1)**2]), [[0, 0], [0, 1]], r, clear)
    assert np.sqrt(1.5*r)/1.5 <= d <= 1.5*np.sqrt(1.5*r) and asked <= 80


def test_what_another_unknown_makes_up_for_is_no_end():
    """t^3 - t u with u = t^2: the equations hold on a curve, and there is no end; the first look, at u = 0, does not say so."""
    d, _ = measured(lambda y: np.stack([(y[0] - 1)**3 - (y[0] - 1)*(y[1] - 1), y[1] - 1 - (y[0] - 1)**2]), [[0, 0], [0, 1]], 1e-12)
    assert d == 0
