"""A System of one's own beside a function that samples it; eigenvalues of features beside their law."""

import json

import numpy as np
import pytest
from sympy import symbols

import hermitex as hx
from hermitex.errors import BadInput, HermitexError
from hermitex.experiments.spectrum_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli

alpha, lam = symbols("alpha lam", positive=True)
V, Vhat = symbols("V Vhat", positive=True)
SYSTEM = hx.System({V: 1/(lam + Vhat), Vhat: alpha/(1 + V)}, observables={"half": V/2})


def resolvent(rng, alpha, lam, *, d=150, wrong=1.0):
    """tr (X^T X/d + lam)^-1/d, which V is in the limit."""
    x = rng.standard_normal((round(alpha*d), d))
    value = wrong*np.trace(np.linalg.inv(x.T @ x/d + lam*np.eye(d)))/d
    return {"V": value, "half": value/2}


def test_a_function_of_samples_beside_a_system():
    found = hx.experiment(SYSTEM, resolvent, alpha=[0.5, 1.0, 2.0], lam=0.3, seeds=12)
    assert found["V"] == pytest.approx([SYSTEM.solve(alpha=a, lam=0.3)["V"] for a in (0.5, 1.0, 2.0)])
    assert found.simulation["V"] == pytest.approx(found["V"], abs=0.02) and found.simulation.seeds == tuple(range(12))
    wrong = hx.experiment(SYSTEM, lambda rng, **at: resolvent(rng, **at, wrong=1.1), alpha=[1.0, 2.0], lam=0.3, seeds=12)
    assert agreement(wrong, wrong.simulation).worst("V", "half") > 5
    ax = found.plot(quantity="V")
    assert len(ax.containers) == 1 and ax.get_xlabel() == r"$\alpha$"  # points with error bars; what alpha is, is the user's
    again = hx.experiment(SYSTEM, resolvent, alpha=[0.5, 1.0, 2.0], lam=0.3, seeds=[3], at=[1.0])
    assert again.simulation.alpha.tolist() == [1.0] and np.isnan(again.simulation.standard_error["V"][0])


def test_a_system_has_curves_along_the_list_among_its_parameters():
    curves = hx.curve(SYSTEM, alpha=[0.5, 1.0], each="lamda", lamda=[0.1, 0.3])
    assert curves[1]["V"] == pytest.approx([SYSTEM.solve(alpha=a, lam=0.3)["V"] for a in (0.5, 1.0)])
    assert curves.plot(quantity="V").get_legend_handles_labels()[1] == [r"$\lambda = 0.1$", r"$\lambda = 0.3$"]
    assert hx.curve(SYSTEM, alpha=2, lam=[0.1, 0.3]).axis == "lam"
    for way, word in ((dict(alpha=1), "not none"), (dict(alpha=[1], simulate=True), "hx.experiment")):
        with pytest.raises(BadInput, match=word):
            hx.curve(SYSTEM, lam=0.3, **way)


@pytest.mark.parametrize("sample, numbers, word", [
    (resolvent, {"alpha": 1.0, "lam": 0.1}, "not none"), (resolvent, {"alpha": [1.0], "lam": [0.1]}, "not alpha, lam"),
    (lambda rng, **at: 3.0, {"alpha": [1.0], "lam": 0.1}, "names with numbers"),
    (lambda rng, **at: {"W": 1.0}, {"alpha": [1.0], "lam": 0.1}, "unknown or observable"),
    (lambda rng, **at: {"V": "x"}, {"alpha": [1.0], "lam": 0.1}, "not a number"),
    (lambda rng, **at: {"V" if at["alpha"] < 2 else "Vhat": 1.0}, {"alpha": [1.0, 2.0], "lam": 0.1}, "returned V first")])
def test_what_an_experiment_refuses(sample, numbers, word):
    with pytest.raises(HermitexError) as caught:
        hx.experiment(SYSTEM, sample, seeds=2, **numbers)
    assert word in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("given, numbers, word", [
    (hx.theories.glm(), {"alpha": [1.0], "lam": 0.1}, "a System"), (SYSTEM, {"alpha": ["a", "b"], "lam": 0.1}, "list of numbers"),
    (SYSTEM, {"alpha": [1.0], "lam": 0.1, "at": "x"}, "list of numbers"),
    (SYSTEM, {"alpha": [1.0], "lam": 0.1, "start": {"W": 1}}, "W")])
def test_what_is_no_system_is_one_line(given, numbers, word):
    with pytest.raises(HermitexError, match=word):
        hx.experiment(given, resolvent, seeds=2, **numbers)


def test_an_unstable_solution_says_so_beside_an_experiment_too():
    doubled = hx.System({"q": "lamda*q**2/(1 + lamda*q**2)"}, symbols={"lamda": "positive", "q": "real"})
    found = hx.experiment(doubled, lambda rng, lamda: {"q": 0.1}, lamda=[8.0], seeds=1, start={"q": 0.15})
    assert found.stability[0] == pytest.approx(doubled.solve(lamda=8.0, start={"q": 0.15}).stability, rel=1e-6)


@pytest.mark.parametrize("sigma, alpha, beta, normalisation", [
    ("tanh", 2.0, 1.0, "p"), pytest.param("relu", 0.5, 1.0, "n", marks=pytest.mark.slow)])
def test_eigenvalues_lie_where_the_law_says(sigma, alpha, beta, normalisation):
    law = hx.spectrum(sigma, r=1.0, alpha=alpha, beta=beta, normalisation=normalisation)
    found = simulate(law, dimension=200, seeds=6)
    assert found["below"] == pytest.approx(found["expected"], abs=0.01)
    bulk = np.sort(found["eigenvalues"], axis=1)[:, :-1]  # the spike leaves one eigenvalue outside of the law
    assert bulk.mean() == pytest.approx(law.to_dict()["first_moment"], rel=0.03)
    other = simulate(hx.spectrum(sigma, r=1.0, alpha=1.5*alpha, beta=beta, normalisation=normalisation), dimension=200, seeds=2)
    assert abs(other["median"] - found["median"]) > 0.01*found["median"]


def test_the_spectrum_verb_simulates(capsys, tmp_path):
    words = ["spectrum", "--sigma", "tanh", "--r", "1", "--alpha", "2", "--beta", "1", "--simulate", "--simulate-dimension", "60",
             "--seeds", "2"]
    assert cli.main([*words, "--json", "--plot", str(tmp_path/"a.svg")]) == 0
    found = json.loads(capsys.readouterr().out)["simulation"]
    assert np.shape(found["eigenvalues"]) == (2, 60) and (tmp_path/"a.svg").stat().st_size > 1000
    assert cli.main(words) == 0 and "experiment    d = 60, 2 seeds" in capsys.readouterr().out
    with pytest.raises(BadInput, match="features; p is"):
        simulate(hx.spectrum("tanh", r=1.0, alpha=2, beta=1), dimension=5000)


@pytest.mark.parametrize("dimension", ["x", float("inf"), float("nan")])
def test_a_dimension_that_is_no_number_is_one_line(dimension):
    with pytest.raises(BadInput, match="dimension is a finite number"):
        simulate(hx.spectrum("tanh", r=1.0, alpha=2.0, beta=1.0), dimension=dimension, seeds=1)
    with pytest.raises(BadInput, match="dimension is a finite number"):
        hx.curve(hx.theories.glm(), alpha=[1.0], lam=0.1, simulate={"dimension": dimension, "seeds": 2})


def test_constants_without_a_budget():
    assert hx.constants("relu", budget=None) == hx.constants("relu")
