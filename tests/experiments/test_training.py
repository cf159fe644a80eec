"""The second step: ridge in whatever way it is folded, and convex losses against independent minimisers."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from hermitex.errors import BadInput
from hermitex.experiments.training import Ridge, convex_loss, minimise


def _sample(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p))/np.sqrt(p), np.sign(rng.standard_normal(n))


@pytest.mark.parametrize("lam", [0.0, 1e-9, 1e-3, 0.5])
@pytest.mark.parametrize("n", [12, 40, 41, 130])
def test_ridge_by_chunks_is_least_squares(lam, n):
    phi, y = _sample(n, 40)
    ridge = Ridge(lam)
    for i in range(0, n, 7):
        ridge.add(phi[i:i + 7], y[i:i + 7])
    a, train = ridge.solve()
    rows = np.vstack([phi, np.sqrt(lam)*np.eye(40)]) if lam else phi
    known = np.linalg.lstsq(rows, np.concatenate([y, np.zeros(len(rows) - n)]), rcond=None)[0]
    np.testing.assert_allclose(a, known, atol=1e-8*np.abs(known).max())
    assert train == pytest.approx(np.mean((y - phi @ known)**2), abs=1e-10)


def test_ridge_goes_on_after_a_solution():
    phi, y = _sample(90, 30)
    one, two = Ridge(0.1), Ridge(0.1)
    one.add(phi[:50], y[:50])
    one.solve()
    one.add(phi[50:], y[50:])
    two.add(phi, y)
    np.testing.assert_allclose(one.solve()[0], two.solve()[0], atol=1e-12)


@pytest.mark.parametrize("n, p", [(50, 20), (20, 50)])
@pytest.mark.parametrize("text", ["log(1 + exp(-y*f))", "exp(-y*f)", "(y - f)**2/2", "sqrt(1 + (y - f)**2)"])
def test_a_smooth_loss_against_scipy(text, n, p):
    phi, y = _sample(n, p)
    loss = convex_loss(text)
    a, train = minimise(phi, y, loss, 0.1)

    def objective(b):
        return loss.value(y, phi @ b).sum() + 0.05*b @ b

    known = minimize(objective, np.zeros(p), jac=lambda b: phi.T @ loss.slope(y, phi @ b) + 0.1*b, method="BFGS",
                     options={"gtol": 1e-8})
    np.testing.assert_allclose(a, known.x, atol=1e-6)
    assert train == pytest.approx(loss.value(y, phi @ a).mean())


@pytest.mark.parametrize("n, p", [(40, 15), (15, 40)])
@pytest.mark.parametrize("text", ["Max(0, 1 - y*f)", "Abs(y - f)", "Max(0, 1 - y*f)**2"])
def test_a_kinked_loss_is_at_its_minimum(text, n, p):
    """No direction descends: for a convex function that is the minimum."""
    phi, y = _sample(n, p)
    loss = convex_loss(text)
    a, _ = minimise(phi, y, loss, 0.1)

    def objective(b):
        return loss.value(y, phi @ b).sum() + 0.05*b @ b

    rng = np.random.default_rng(1)
    directions = np.vstack([rng.standard_normal((50, p)), phi, -phi])
    assert min(objective(a + 1e-4*step) - objective(a) for step in directions) > -1e-9


def test_the_hinge_is_bracketed_by_a_linear_program():
    """Without the penalty the hinge loss is a linear program; its value, and its minimiser's penalty, bracket ours."""
    phi, y = _sample(30, 10)
    a, train = minimise(phi, y, convex_loss("Max(0, 1 - y*f)"), 1e-4)
    margins = np.hstack([-y[:, None]*phi, -np.eye(30)])
    known = linprog(np.concatenate([np.zeros(10), np.ones(30)]), A_ub=margins, b_ub=-np.ones(30),
                    bounds=[(None, None)]*10 + [(0, None)]*30)
    assert known.fun - 1e-8 <= 30*train
    assert 30*train + 0.5e-4*a @ a <= known.fun + 0.5e-4*known.x[:10] @ known.x[:10] + 1e-8


def test_refusals_are_one_line():
    phi, y = _sample(5, 3)
    with pytest.raises(BadInput, match="lam > 0"):
        minimise(phi, y, convex_loss("exp(-y*f)"), 0.0)
    for bad in ("-(y - f)**2", "(y - f)**2*w", "cos(f)"):
        with pytest.raises(BadInput) as caught:
            convex_loss(bad)
        assert "\n" not in str(caught.value)
