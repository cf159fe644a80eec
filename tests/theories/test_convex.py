"""Convex losses after one giant step: the sheet's numbers, random features, ridge, the envelope identity, what is refused."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import hermitex as hx
from hermitex.errors import BadInput, NotConverged
from hermitex.theories.losses.loss_newton import UNKNOWNS, Point
from hermitex.theories.losses.pointwise import Huber, pointwise
from hermitex.theories.losses.sign_labels import SignGrid

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
def test_the_envelope_identity():
    """d(train objective)/d lam = beta q_2/(2 alpha), for the minimum of an objective knows of lam explicitly only."""
    step = 1e-4
    lam = 0.1 + step*np.array([-2, -1, 0, 1, 2])
    found = theory("tanh", "sign", "logistic").solve(alpha=2, beta=0.7, lam=lam, **SPIKED)
    objective = found["train_objective"]
    slope = (objective[0] - 8*objective[1] + 8*objective[3] - objective[4])/(12*step)
    assert abs(slope - 0.7*found["q2"][2]/4) < 1e-7
    assert abs(slope - 0.7*found["q1"][2]/4) > 1e-2  # a swapped order parameter is seen


@pytest.mark.slow
def test_bias_breaks_the_mirror_without_a_jump():
    """Both labels summed one by one are what the reflection gives."""
    found = theory("tanh", "sign", "logistic").solve(alpha=1, lam=0.1, bias=np.array([0, 1e-7]), **SPIKED)
    assert abs(found["test_error"][1] - found["test_error"][0]) < 1e-6
    assert abs(found["q2"][1] - found["q2"][0]) < 1e-5


@pytest.mark.slow
def test_small_penalties_and_the_1_over_d_term():
    found = theory("tanh", "sign", "logistic").solve(alpha=1, lam=[1e-1, 1e-2, 1e-3], **SPIKED)
    assert np.all(found.converged) and np.all(np.diff(found["train_error"]) < 0) and np.all(np.diff(found["q2"]) > 0)
    d = np.array([500, 1000, np.inf])
    m = theory("tanh", "sign", "logistic").solve(alpha=1, lam=0.1, dimension=d, **SPIKED)["m"]
    assert m[0] < m[1] < m[2]
    assert 1.8 < (m[2] - m[0])/(m[2] - m[1]) < 2.2  # of order 1/d


# -- losses without closed averages --------------------------------------------------------------------------------------
ORDER = ("m", "zeta", "psi", "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2")


def same(found, other, names=ORDER, within=1e-7):
    for name in names:
        assert np.allclose(found[name], other[name], rtol=within, atol=within), name


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.8, 1])
def test_labels_of_0_and_1_are_logistic_regression(gamma):
    """log(1 + exp(f)) - y f at y = 0, 1 is log(1 + exp(-y f)) at y = -1, 1: real labels with a jump, by another route."""
    numbers = {"alpha": [1, 2], "lam": 0.1, **SPIKED, "gamma": gamma, "dimension": 500}
    grid = theory("tanh", "(1 + sign(z))/2", "log(1 + exp(f)) - y*f").solve(**numbers)
    same(grid, theory("tanh", "sign", "logistic").solve(**numbers), (*ORDER, "train_error", "test_loss"))


@pytest.mark.parametrize("Delta", [0, 0.3])
def test_the_square_loss_as_an_exponential_family(Delta):
    """f^2/2 - y f and (y - f)^2/2 have one minimiser, and the noise of the label joins omega + V y."""
    numbers = {"alpha": 1.5, "beta": 0.7, "lam": 0.05, "Delta": Delta, **SPIKED}
    ridge = hx.theories.one_step("tanh", "sin").solve(**numbers)
    family = theory("tanh", "sin", "f**2/2 - y*f").solve(**numbers)
    same(family, ridge, (*ORDER, "test_error"))
    power = (1 - np.exp(-2))/2 + Delta  # E y^2
    assert abs(2*family["train_error"] + power - ridge["train_error"]) < 1e-7
    assert abs(2*family["test_loss"] + power - ridge["test_error"] - Delta) < 1e-7
    scaled = theory("tanh", "sin", "f**2/2 - 2*y*f + 3*y**2").solve(**numbers)  # a = 2 a, and its own mean
    same({n: scaled[n] for n in ("V1", "V2")}, ridge, ("V1", "V2"))
    assert abs(scaled["q2"] - 4*ridge["q2"]) < 1e-6
    assert abs(scaled["train_error"] - 4*family["train_error"] - 3*power) < 1e-6


@pytest.mark.slow
def test_noise_inside_a_power_of_the_label():
    """(y^3 - f)^2/2 at y = +-2 + noise is ridge with the mean and the variance of y^3: the fourfold average."""
    noise = 0.1
    mean, second = 8 + 6*noise, 64 + 240*noise + 180*noise**2 + 15*noise**3
    numbers = {"alpha": 1.5, "lam": 0.2, **SPIKED}
    found = theory("tanh", "2*sign(z)", "(y**3 - f)**2/2").solve(Delta=noise, **numbers)
    ridge = hx.theories.one_step("tanh", f"{mean!r}*sign(z)").solve(Delta=second - mean**2, **numbers)
    same(found, ridge)
    assert abs(2*found["train_error"] - ridge["train_error"]) < 1e-6


@pytest.mark.slow
def test_a_wide_log_cosh_is_ridge():
    numbers = {"alpha": [0.5, 2], "lam": 0.05, "Delta": 0.2, **SPIKED}
    wide, square = theory("tanh", "sin", "10**6*log(cosh((y - f)/1000))").solve(**numbers), hx.theories.one_step("tanh", "sin")
    same(wide, square.solve(**numbers), (*ORDER, "test_error"), within=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("Delta", [0, 0.2])
def test_log_cosh_solves_its_system(Delta):
    """What Newton finds on a small grid leaves the compiled equations, on theirs, without a residual."""
    asked, numbers = theory("tanh", "sin", "log(cosh(y - f))"), {"alpha": 1.5, "beta": 1, "Delta": Delta, **SPIKED}
    found = asked.solve(lam=0.1, **numbers)
    start = {n: found[n] for n in (*ORDER, "zetatilde", "psitilde")}
    system = asked.system.solve(lam=0.1, bias=0, epsilon=0, start=start, tolerance=1e-9, **numbers)
    same(found, system, (*ORDER, "test_error", "train_error", "test_loss"))


@pytest.mark.slow
def test_a_jump_of_real_labels_under_huber():
    """The label's jump moves with kappa: its place is a table of the compiled equations; a wide Huber loss is ridge."""
    numbers = {"alpha": 2, "lam": 0.1, **SPIKED}
    same(theory("tanh", "sign", "huber:30").solve(**numbers), hx.theories.one_step("tanh", "sign").solve(**numbers))


def test_a_loss_that_falls_along_the_spike():
    """With labels below 0 log(1 + exp(f)) - y f has no least value; a finite dimension bounds m."""
    with pytest.raises(NotConverged, match=r"m runs to infinity.*dimension=d"):
        theory("tanh", "sin", "log(1 + exp(f)) - y*f").solve(alpha=1.5, lam=0.1, **SPIKED)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["abs(y - f)", "exp(f) - y*f", "cosh(f) - y*f", "log(cosh(y - f))"])
def test_envelope_identity_of_losses_with_kinks_and_without(loss):
    """d(train objective)/d lam = beta q_2/(2 alpha)."""
    step = 1e-3
    found = theory("tanh", "sin", loss).solve(alpha=1.5, beta=0.7, lam=0.2 + step*np.array([-2, -1, 0, 1, 2]), Delta=0.2, **SPIKED)
    objective = found["train_objective"]
    slope = (objective[0] - 8*objective[1] + 8*objective[3] - objective[4])/(12*step)
    assert abs(slope - 0.7*found["q2"][2]/3) < 1e-6*max(1, found["q2"][2])


@pytest.mark.slow
def test_zeros_without_a_closed_form():
    """sign(z^3 - z - 1/3 + sin z): its jumps are found numerically; the same as a target whose jumps are written down."""
    numbers = {"alpha": 1.5, "lam": 0.1, **SPIKED}
    jumps = [brentq(lambda x: x**3 - x - 1/3 + np.sin(x), 0, 2, xtol=1e-15)]
    text = "sign(" + "*".join(f"(z - {b!r})" for b in jumps) + ")"
    asked = theory("tanh", "sign(z**3 - z - 1/3 + sin(z))", "logistic")
    found = asked.solve(**numbers)
    same(found, theory("tanh", text, "logistic").solve(**numbers), ("m", "q1", "q2", "test_error"), within=1e-9)
    wrong = theory("tanh", "sign(z - 0.6)", "logistic").solve(**numbers)
    assert abs(wrong["m"] - found["m"]) > 1e-3  # another jump is seen


@pytest.mark.parametrize(("sigma", "g", "loss", "said"), [
    ("0", "sign", "logistic", "constant"), ("2", "sin", "huber:1", "constant"), ("tanh", "0", "huber:1", "nothing to solve"),
    ("tanh", "1", "exp(f) - y*f", "nothing to solve"), ("tanh", "3*z", "(y - f)**2*(y + 2)", "not convex in f at labels")])
def test_what_has_no_readout_to_solve_for(sigma, g, loss, said):
    with pytest.raises(BadInput, match=said) as caught:
        theory(sigma, g, loss).solve(alpha=1, lam=0.1, **SPIKED)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "g", "loss"), [("z", "sign", "logistic"), ("z", "sin", "cosh(f) - y*f"), ("tanh", "1", "hinge"),
                                                  ("z", "sin", "huber:1")])
def test_linear_activations_and_constant_labels(sigma, g, loss):
    found = theory(sigma, g, loss).solve(alpha=1.5, lam=0.1, dimension=500, **SPIKED)
    assert found.converged and 0 < found["train_error"] < found["test_loss"]


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


@pytest.mark.parametrize("sigma, loss, known", [
    ("softplus", "hinge", {"test_error": 0.31425907735358916, "train_error": 0.28056480523944577, "m": 0.16153944124703026}),
    ("tanh", "hinge", {"zetatilde": 9.176786906478249e-05})])  # small: known to as many digits as the others
def test_labels_on_a_grid_of_the_output(sigma, loss, known, monkeypatch):
    """By the compiled equations, which take ten times as long to write down as to solve: they are not asked."""
    monkeypatch.setattr("hermitex.systems.system.System.compile", lambda *_, **__: 1/0)
    found = theory(sigma, "sign", loss).solve(alpha=1.5, beta=1, lam=0.1, r=1, c=1, gamma=0.9)
    for name, value in known.items():
        assert abs(found[name] - value) < 1e-11*abs(value), name
    assert np.max(found.error) < 1e-11


def test_unknowns_as_small_as_the_penalty_are_held_relative_to_themselves():
    """At lam = 1e-7 qhat1 is 1e-13: a move is compared with that, of what may have either sign with what bounds it."""
    at = {"gamma": 0.6, "Delta": 0.2, "r": 0.8, "bias": 0.1, "c": 1.0, "alpha": 0.4, "beta": 1.0}
    point = Point(st := theory("relu", "sign", "hinge").structure(), at, SignGrid(st, at, SignGrid.first))
    values = np.full(len(UNKNOWNS), 1e-13)
    sizes = dict(zip(UNKNOWNS, point.sizes(values), strict=True))
    assert sizes["qhat1"] == sizes["Vhat2"] == 1e-13 and 1e-10 < sizes["zetatilde"] < 1e-9


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_slopes_of_the_averages_of_labels(loss):
    st = theory("relu", "sign", loss).structure()
    grid = SignGrid(st, {"gamma": 0.6, "Delta": 0.2, "r": 0.8, "bias": 0.1, "c": 1.0}, SignGrid.first)
    v = np.array([1.3, 0.7, 0.2, 0.3, 0.4, 1.1, 0.6])
    slopes = grid.averages(v).slopes
    for i, e in enumerate(1e-5*np.eye(len(v))):
        difference = (grid.averages(v + e).values - grid.averages(v - e).values)/2e-5
        assert np.abs((slopes[..., i] - difference) @ grid.weight).max() < 1e-8


def test_labels_that_the_spike_separates():
    """gamma = 1 without noise: m mu_0 costs nothing and has every sign right."""
    with pytest.raises(NotConverged, match="m runs to infinity"):
        theory("tanh", "sign", "logistic").solve(alpha=1, lam=0.1, r=1.2, c=1, gamma=1)


@pytest.mark.slow
@pytest.mark.parametrize("loss, target, value", [("logistic", "sign", 0.3677173987), ("exp(-y*f)", "sign", 0.3681032603),
                                                 ("hinge", "sign", 0.3794727394)])
def test_features_that_are_silent_on_one_side_of_the_spike(loss, target, value):
    """ReLU at r = 1: far on its dark side no feature varies. By simulation at d = 400: 0.3669 +- 0.0052 for exp(-y f)."""
    found = hx.theories.one_step("relu", target, loss=loss).solve(alpha=1, lam=0.1, r=1, c=1, gamma=0.5)
    assert found["test_error"] == pytest.approx(value, rel=1e-8)
    near = hx.theories.one_step("log(1 + exp(20*z))/20", target, loss=loss).solve(alpha=1, lam=0.1, r=1, c=1, gamma=0.5)
    assert near["test_error"] == pytest.approx(value, rel=5e-3)
