"""Generalised linear models on Gaussian data: printed equations, numbers, simulation, bad input."""

import json

import numpy as np
import pytest
from scipy.stats import norm
from sympy import simplify

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments.glm_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.symbols import Delta, V, Vhat, alpha, m, mhat, q, qhat, rho

POINT = {"alpha": 2.0, "lam": 0.1, "Delta": 0.25}


def test_ridge_is_what_papers_print():
    found = hx.theories.glm("square").system.equations
    printed = {Vhat: alpha/(1 + V), qhat: alpha*(rho + Delta + q - 2*m)/(1 + V)**2, mhat: alpha/(1 + V)}
    assert all(simplify(found[u] - rhs) == 0 for u, rhs in printed.items())


@pytest.mark.parametrize("intercept", [False, True])
def test_only_an_intercept_asks_for_the_mean_force(intercept):
    """It was given a closed form that nothing used, at a tenth of the first use."""
    for labels in ("sign", "mixture"):
        names = {str(n) for n in hx.theories.glm("hinge", labels, intercept=intercept).system.where}
        assert ("J" in names) is intercept and "J_2" in names


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
    assert (tmp_path/"c.csv").read_text().startswith("alpha,test_error,train_error,train_objective,V,q,m,")


# -- labels of +-1 -----------------------------------------------------------------------------------------------------
def bayes(alpha, Delta, *, rho=1.0):
    """The error of the plug-in estimator sum_i y_i x_i, the best one for balanced clusters [mignacco2020]."""
    return norm.cdf(-rho*np.sqrt(alpha/(Delta*(alpha*rho + Delta))))


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_a_large_ridge_is_bayes_optimal_for_balanced_clusters(loss):
    theory, at = hx.theories.glm(loss, "mixture"), {"alpha": np.array([0.5, 2.0]), "Delta": 0.5, "rho": 0.8}
    found = theory.solve(lam=1e5, **at)
    assert found["test_error"] == pytest.approx(bayes(at["alpha"], 0.5, rho=0.8), rel=1e-4)
    assert found["test_error"] != pytest.approx(bayes(at["alpha"], 0.5, rho=1.0), rel=1e-2)
    assert np.all(theory.solve(lam=0.1, **at)["test_error"] > found["test_error"])


def by_hand(alpha, lam, Delta, rho, fraction):
    """The square loss on a mixture with an intercept: ridge regression of y on x, its moments by hand, without the package."""
    q, m, V, b = 0.5, 0.1, 1.0, 0.0
    mean = 2*fraction - 1
    for _ in range(4000):
        gap = 1 + Delta*V
        b = mean*(1 - m)
        square = 1 - 2*m - 2*b*mean + m*m + 2*m*b*mean + b*b + Delta*q  # E(y - y m - b - sqrt(Delta q) z)^2
        Vhat, qhat = alpha*Delta/gap, alpha*Delta*square/gap**2
        mhat = alpha*(1 - m - b*mean)/gap
        new = np.array([1/(lam + Vhat), (rho*mhat**2 + qhat)/(lam + Vhat)**2, rho*mhat/(lam + Vhat)])
        V, q, m = (new + np.array([V, q, m]))/2
    S = np.sqrt(Delta*q)
    missed = fraction*norm.cdf(-(m + b)/S) + (1 - fraction)*norm.cdf(-(m - b)/S)
    return {"m": m, "q": q, "b": b, "test_error": missed, "train_error": square/gap**2/2}


@pytest.mark.parametrize("fraction", [0.5, 0.2, 0.9])
def test_unbalanced_clusters_by_hand(fraction):
    at = {"alpha": 1.5, "lam": 0.3, "Delta": 0.6, "rho": 1.4, "fraction": fraction}
    found, other = hx.theories.glm("square", "mixture", intercept=True).solve(**at), by_hand(**at)
    assert [found[k] for k in other] == pytest.approx(list(other.values()), rel=1e-9, abs=1e-12)
    wrong = by_hand(**{**at, "Delta": 0.6**0.5})
    assert found["test_error"] != pytest.approx(wrong["test_error"], rel=1e-2)


@pytest.mark.parametrize("loss, labels, intercept, more", [
    ("logistic", "mixture", True, {"Delta": 0.7, "fraction": 0.25}), ("square", "sign", True, {"Delta": 0.2, "bias": 0.5}),
    ("logistic", "logit", False, {}), pytest.param("logistic", "sign", True, {"bias": 0.5}, marks=pytest.mark.slow),
    pytest.param("logistic", "probit", True, {"bias": -0.4}, marks=pytest.mark.slow),
    pytest.param("hinge", "mixture", True, {"fraction": 0.7}, marks=pytest.mark.slow)])
def test_classification_against_an_experiment(loss, labels, intercept, more):
    theory, at = hx.theories.glm(loss, labels, intercept=intercept), {"lam": 0.2, **more}
    measured = simulate(theory, [1.0, 3.0], dimension=150, seeds=24, **at)
    names = ("test_error", "train_error", "q", "m", *(["b"] if intercept else []))
    assert agreement(theory.curve([1.0, 3.0], **at), measured).worst(*names) < 3.5
    assert agreement(theory.curve([1.0, 3.0], **{**at, "lam": 0.3}), measured).worst("train_error", "q") > 3.5


@pytest.mark.parametrize("loss, labels, intercept, more", [
    ("logistic", "mixture", True, {"fraction": 0.3}), ("square", "logit", True, {"bias": 0.3}), ("huber:1", "linear", False, {}),
    pytest.param("logistic", "logit", True, {"bias": 0.3}, marks=pytest.mark.slow)])
def test_the_envelope_theorem(loss, labels, intercept, more):
    """d(training objective)/d lam = q/(2 alpha), which a wrong training loss or force breaks."""
    theory, at = hx.theories.glm(loss, labels, intercept=intercept), {"alpha": 2.0, "Delta": 0.4, **more}
    here, up, down = (theory.solve(lam=0.2 + h, **at) for h in (0, 1e-4, -1e-4))
    assert (up["train_objective"] - down["train_objective"])/2e-4 == pytest.approx(here["q"]/4, rel=1e-6)
    assert (up["train_error"] - down["train_error"])/2e-4 != pytest.approx(here["q"]/4, rel=1e-3)


@pytest.mark.slow
def test_a_mean_label_is_a_link_of_the_covariate_model():
    one = np.ones(4)
    for word in ("logit", "probit"):
        found = hx.theories.glm("logistic", word).solve(alpha=2.0, lam=0.1, Delta=0.25)
        at = dict.fromkeys(("Omega", "Psi", "Phi", "theta"), one)
        other = hx.theories.covariate("logistic", word).solve(alpha=2.0, lam=0.1, Delta=0.25, **at)
        for key in ("V", "q", "m", "test_error", "train_error"):
            assert found[key] == pytest.approx(other[key], rel=1e-10), key


def test_products_of_classification_are_one(tmp_path):
    theory, at = hx.theories.glm("logistic", "mixture", intercept=True), {"lam": 0.2, "fraction": 0.3, "Delta": 0.5}
    found = theory.solve(alpha=[1.0, 2.0], **at)
    line = hx.curve(theory, [1.0, 2.0], simulate={"dimension": 30, "seeds": 2}, **at)
    system = theory.system.solve(alpha=2.0, lamda=0.2, Delta=0.5, rho=1.0, fraction=0.3)
    assert line.test_error == pytest.approx(found["test_error"], rel=1e-12) and line.simulation.seeds == (0, 1)
    assert system["b"] == pytest.approx(found["b"][1], rel=1e-8) and "mignacco2020" in theory.sources
    best = theory.minimise("test_error", over="lam", bounds=(1e-2, 100), alpha=2.0, fraction=0.3, Delta=0.5)
    around = theory.solve(alpha=2.0, lam=best["lam"]*np.array([0.5, 1, 2]), fraction=0.3, Delta=0.5)["test_error"]
    assert around[1] == around.min()


@pytest.mark.parametrize("call, said", [
    (lambda: hx.theories.glm("square", "cubic"), "labels are linear, sign, logit, probit or mixture"),
    (lambda: hx.theories.glm("square", intercept=True), "centre real labels"),
    (lambda: hx.theories.glm("square", "mixture").solve(alpha=1, lam=1, fraction=1), "between 0 and 1"),
    (lambda: hx.theories.glm("square", "mixture").solve(alpha=1, lam=1, Delta=0), "Delta must be positive"),
    (lambda: hx.theories.glm("square", "sign").solve(alpha=1, lam=1, bias=1), "bias"),
    (lambda: hx.theories.glm("logistic"), "needs labels of"),
    (lambda: hx.theories.glm().solve(alpha=-1, lam=1), "alpha must be positive and finite"),
    (lambda: hx.theories.glm().solve(alpha=1), "lam has no value"),
    (lambda: hx.theories.glm().solve(alpha=1, lam=1, lamb=3), "unknown keyword of glm 'lamb'; did you mean lam"),
])
def test_bad_input(call, said):
    with pytest.raises(BadInput, match=said):
        call()


# -- the free energy ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("loss", "labels"), [("square", "sign"), ("square", "mixture"), *(
    pytest.param(*case, marks=pytest.mark.slow)
    for case in (("logistic", "mixture"), ("logistic", "logit"), ("square", "probit")))])
def test_labels_of_signs_are_stationary_points_of_a_free_energy(loss, labels):
    """The equations that are solved, by cheaper averages, and those that the derivation ends with are the same."""
    theory, at = hx.theories.glm(loss, labels), {"alpha": 1.5, "Delta": 0.3, "rho": 1.2}
    at |= {"fraction": 0.3} if labels == "mixture" else {}
    found, names = theory.solve(lam=0.1, **at), ("V", "q", "m", "Vhat", "qhat", "mhat")
    other = theory.stationary.solve(lamda=0.1, **at, start={n: found[n] for n in names})
    assert [other[n] for n in names] == pytest.approx([found[n] for n in names], rel=1e-9)
    assert len(theory.derivation.steps) == 3
    wrong = theory.solve(lam=0.1, **{**at, "rho": 1.3})
    assert wrong["q"] != pytest.approx(found["q"], rel=1e-4)


def test_a_derivation_of_signs_is_checked():
    assert hx.theories.glm("square", "sign").derivation.check(digits=10)
    assert hx.theories.glm("square", "sign", intercept=True).derivation is None


# -- the command line ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("argv", "theory", "at"), [
    (["--loss", "logistic", "--labels", "mixture", "--intercept", "--fraction", "0.3", "--Delta", "0.5"],
     {"loss": "logistic", "labels": "mixture", "intercept": True}, {"fraction": 0.3, "Delta": 0.5}),
    (["--labels", "sign", "--intercept", "--bias", "1/4", "--rho", "2"], {"labels": "sign", "intercept": True},
     {"bias": 0.25, "rho": 2}),
    (["--loss", "huber:1", "--Delta", "0.3"], {"loss": "huber:1"}, {"Delta": 0.3})])
def test_the_command_line_has_labels_losses_and_an_intercept(argv, theory, at, capsys):
    from hermitex.face.cli import main

    assert main(["curve", "glm", *argv, "--lam", "0.1", "--alpha", "0.5,2", "--json"]) == 0
    found, direct = json.loads(capsys.readouterr().out), hx.theories.glm(**theory).curve([0.5, 2], lam=0.1, **at)
    assert found["test_error"] == direct.test_error.tolist() and found["order_parameters"]["q"] == direct["q"].tolist()


@pytest.mark.parametrize(("argv", "word"), [
    (["--labels", "tanh"], "labels are linear"), (["--intercept"], "labels of +-1"), (["--loss", "hinge"], "labels='sign'"),
    (["--labels", "sign", "--bias", "1"], "bias"), (["--labels", "mixture", "--fraction", "2"], "fraction"),
    (["--sigma", "tanh"], "--sigma is not an option of glm")])
def test_what_the_command_line_refuses(argv, word, capsys):
    from hermitex.face.cli import main

    assert main(["curve", "glm", *argv, "--lam", "0.1", "--alpha", "1"]) == 2
    assert word in capsys.readouterr().err
