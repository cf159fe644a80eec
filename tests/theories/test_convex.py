"""Convex losses after one giant step: the sheet's numbers, random features, ridge, the envelope identity, what is refused."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, NotConverged
from hermitex.theories.pointwise import Huber, pointwise

REFERENCE = json.loads((Path(__file__).parents[1]/"reference"/"one_step_convex.json").read_text())
SPIKED = {"r": 1.2, "c": 1.0, "gamma": 0.8}
KEYS = {"err01": "test_error", "test": "test_error", "train_loss": "train_error"}


@cache
def theory(sigma, g, loss):
    return hx.theories.one_step(sigma, g, loss=loss)


def named(row):
    return f"huber:{row['delta']}" if "delta" in row else row.get("loss", row.get("task"))


def against_the_sheet(row):
    numbers = {k: row[k] for k in ("alpha", "beta", "lam", "r", "c", "gamma")}
    found = theory(row["sigma"], row["g"], named(row)).solve(Delta=row.get("Delta", 0), **numbers)
    for key, value in row["out"].items():
        if key != "iters":
            assert abs(found[KEYS.get(key, key)] - value) <= 1e-7*abs(value), key


def against_random_features(row):
    target = {"lin": "z"}.get(row["target"], row["target"]) if "test_mse" in row else "sign"
    found = theory(row["act"], target, named(row)).solve(
        alpha=row["alpha"]/row["gamma"], beta=1/row["gamma"], lam=float(row["lam"]), Delta=row["Delta"], r=0, c=1, gamma=0.5)
    error = found["test_error"] if "class_err" in row else found["test_error_noisy"]
    pairs = ((error, row.get("class_err", row.get("test_mse"))), (found["train_error"], row["train_loss"]),
             (found["q2"], row["qw"]), (found["train_objective"], row["train_obj"]))
    for ours, theirs in pairs:
        assert abs(ours - theirs) <= 1e-9*abs(theirs)


# -- numbers -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", REFERENCE["convex"][:2])
def test_logistic_against_the_sheet(row):
    against_the_sheet(row)


@pytest.mark.slow
def test_huber_against_the_sheet():
    against_the_sheet(REFERENCE["convex"][2])


RF = REFERENCE["random_features"]


@pytest.mark.parametrize("row", [r for r in RF if r["task"] == "logistic" and r["act"] == "tanh"])
def test_no_spike_is_random_features(row):
    against_random_features(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in RF if r["act"] in ("sign", "relu") or r["task"] != "logistic"],
                         ids=lambda r: f"{named(r)}-{r['act']}-{r['lam']}")
def test_no_spike_is_random_features_for_other_losses_and_activations(row):
    against_random_features(row)


@pytest.mark.slow
def test_wide_huber_is_ridge():
    numbers = {"alpha": 2, "lam": 0.05, "Delta": 0.2, **SPIKED}
    wide, square = theory("tanh", "sin", "huber:1000").solve(**numbers), hx.theories.one_step("tanh", "sin").solve(**numbers)
    for name in ("test_error", "m", "zeta", "psi", "q1", "q2", "V1", "V2"):
        assert abs(wide[name] - square[name]) < 1e-8
    assert abs(2*wide["train_error"] - square["train_error"]) < 1e-8


def test_the_envelope_identity():
    """d(train objective)/d lam = beta q_2/(2 alpha), for the minimum of an objective knows of lam explicitly only."""
    step = 1e-4
    lam = 0.1 + step*np.array([-2, -1, 0, 1, 2])
    found = theory("tanh", "sign", "logistic").solve(alpha=2, beta=0.7, lam=lam, **SPIKED)
    objective = found["train_objective"]
    slope = (objective[0] - 8*objective[1] + 8*objective[3] - objective[4])/(12*step)
    assert abs(slope - 0.7*found["q2"][2]/4) < 1e-7
    assert abs(slope - 0.7*found["q1"][2]/4) > 1e-2  # a swapped order parameter is seen


def test_bias_breaks_the_mirror_without_a_jump():
    """Both labels summed one by one are what the reflection gives."""
    found = theory("tanh", "sign", "logistic").solve(alpha=1, lam=0.1, bias=np.array([0, 1e-7]), **SPIKED)
    assert abs(found["test_error"][1] - found["test_error"][0]) < 1e-6
    assert abs(found["q2"][1] - found["q2"][0]) < 1e-5


def test_small_penalties_and_the_1_over_d_term():
    found = theory("tanh", "sign", "logistic").solve(alpha=1, lam=[1e-1, 1e-2, 1e-3, 1e-4], **SPIKED)
    assert np.all(found.converged) and np.all(np.diff(found["train_error"]) < 0) and np.all(np.diff(found["q2"]) > 0)
    d = np.array([500, 1000, np.inf])
    m = theory("tanh", "sign", "logistic").solve(alpha=1, lam=0.1, dimension=d, **SPIKED)["m"]
    assert m[0] < m[1] < m[2]
    assert 1.8 < (m[2] - m[0])/(m[2] - m[1]) < 2.2  # of order 1/d


# -- what is asked of a loss -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("loss", "said"), [
    ("-(y - f)**2", "not convex"), ("sin(y*f)", "not convex"), ("log(1 + exp(-a*f))", "unknown name 'a'"), ("huber", "huber:DELTA"),
    ("huber:-1", "positive number"), ("huber:x", "positive number"), ("y", "does not depend on f"), ("f**2", "label y"),
    ("z*f*y", "holds z"), ("(((", "bracket"), ("logistic", r"labels of \+-1"), ("hinge", r"labels of \+-1")])
def test_what_is_refused(loss, said):
    with pytest.raises(BadInput, match=said) as caught:
        hx.theories.one_step("tanh", "sin", loss=loss)
    assert "\n" not in str(caught.value)


def test_losses_by_name_object_and_expression():
    assert pointwise(Huber(2)).expr == pointwise("huber:2").expr
    assert pointwise("log(1 + exp(-y*f))").expr == pointwise("logistic").expr
    assert pointwise("logistic").margin and not pointwise("huber:1").margin and pointwise("huber:1").of_residual is not None


def test_labels_that_the_spike_separates():
    """gamma = 1 without noise: m mu_0 costs nothing and has every sign right."""
    with pytest.raises(NotConverged, match="m runs to infinity"):
        theory("tanh", "sign", "logistic").solve(alpha=1, lam=0.1, r=1.2, c=1, gamma=1)
