"""Generalised linear models on Gaussian data: printed equations, numbers, simulation, bad input."""

import numpy as np
import pytest
from sympy import simplify

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.symbols import Delta, V, Vhat, alpha, m, mhat, q, qhat, rho

POINT = {"alpha": 2.0, "lam": 0.1, "Delta": 0.25}


def test_ridge_is_what_papers_print():
    found = hx.theories.glm("square").system.equations
    printed = {Vhat: alpha/(1 + V), qhat: alpha*(rho + Delta + q - 2*m)/(1 + V)**2, mhat: alpha/(1 + V)}
    assert all(simplify(found[u] - rhs) == 0 for u, rhs in printed.items())


def test_reference_of_ridge():
    found = hx.theories.glm().solve(**POINT)
    for name, value in (("V", 0.844289), ("q", 1.023807), ("m", 0.915571), ("test_error", 0.192665)):
        assert abs(found[name] - value) < 5e-7


@pytest.mark.slow
@pytest.mark.parametrize("width", ["0.7", "3/2"])
def test_huber_needs_no_average(width):
    system = hx.theories.glm(f"huber:{width}").system
    assert not any(rhs.has(hx.Expectation) for rhs in system.equations.values())
    assert hx.theories.glm(f"huber:{width}").derivation.check(digits=12)


def test_a_wide_huber_loss_is_the_square_loss():
    wide, square = hx.theories.glm("huber:60").solve(**POINT), hx.theories.glm("square").solve(**POINT)
    assert all(abs(wide[n] - square[n]) < 1e-12 for n in ("V", "q", "m", "test_error"))


@pytest.mark.slow
def test_huber_against_a_simulation():
    """Reweighted ridge converges to the Huber estimator; theta is measured in units of sqrt(d)."""
    theory = hx.theories.glm("huber:0.5").solve(alpha=3.0, lam=0.2, Delta=0.5)["test_error"]
    rng, d, n, errors = np.random.default_rng(7), 150, 450, []
    for _ in range(8):
        x, star = rng.standard_normal((n, d)), rng.standard_normal(d)
        star /= np.linalg.norm(star)
        y, a = x@star + np.sqrt(0.5)*rng.standard_normal(n), np.zeros(d)
        for _ in range(200):
            weight = np.minimum(1, 0.5/np.maximum(np.abs(y - x@a), 1e-12))
            step = np.linalg.solve((x.T*weight)@x + 0.2*d*np.eye(d), (x.T*weight)@y)
            if np.abs(step - a).max() < 1e-10:
                break
            a = step
        errors.append(np.sum((a - star)**2))
    error = np.std(errors, ddof=1)/np.sqrt(len(errors))
    assert abs(np.mean(errors) - theory) < 4*error + 2*theory/d


def test_curves_and_their_csv(tmp_path):
    curve = hx.theories.glm().curve(alpha=[0.5, 1, 2], lam=0.1)
    assert curve.all_converged and np.all(np.diff(curve.test_error) < 0)
    curve.to_csv(tmp_path/"c.csv")
    assert (tmp_path/"c.csv").read_text().startswith("alpha,test_error,V,q,m,")


@pytest.mark.parametrize("call, said", [
    (lambda: hx.theories.glm("square", "cubic"), "labels are linear or sign"),
    (lambda: hx.theories.glm("logistic"), "asks for labels of"),
    (lambda: hx.theories.glm().solve(alpha=-1, lam=1), "alpha must be finite and positive"),
    (lambda: hx.theories.glm().solve(alpha=1), "lam has no value"),
    (lambda: hx.theories.glm().solve(alpha=1, lam=1, lamb=3), "unknown keyword of glm 'lamb'; did you mean lam"),
])
def test_bad_input(call, said):
    with pytest.raises(BadInput, match=said):
        call()
