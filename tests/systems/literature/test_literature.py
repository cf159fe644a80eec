"""Thirty systems of the literature: published numbers, values computed by other means, and the exported file of each."""

import json
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import independent
import numpy as np
import pytest
from models import MODELS

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "literature.json").read_text())
SECONDS_TO_COMPILE = {"Gardner, G/H", "binary perceptron", "largest margin", "SK, 1RSB", "LASSO", "LASSO by Prox", "Huber", "NNGP",
                      "Huber by Prox", "phase retrieval, fold", "Gaussian mixture, hinge", "Sur-Candes"}
REFUSED = {"alpha": 2.0, "lamda": 100.0}  # of the hinge loss, see below
QUICK_FILES = {"Hopfield, T = 0", "tensor PCA", "SK, AT line"}


def stages(names, slow):
    return [pytest.param(n, marks=pytest.mark.slow) if n in slow else n for n in names]


NAMES = stages(MODELS, SECONDS_TO_COMPILE)


@cache
def model(name):
    return MODELS[name]()


def points(name):
    """[(numbers, values)] by other means; a system written in two ways has one table."""
    return [(p["numbers"], p["values"]) for p in REFERENCE[name.removesuffix(" by Prox")] if p["numbers"] != REFUSED]


# -- the session -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_the_values_of_other_means(name):
    for numbers, values in points(name):
        found = model(name).solve(numbers)
        assert found.converged
        for quantity, value in values.items():
            assert found[quantity] == pytest.approx(value, rel=1e-9, abs=1e-20), (quantity, numbers)


@pytest.mark.slow
@pytest.mark.parametrize("alpha, lamda", [(2.0, 50.0), (2.0, 100.0), (0.5, 200.0), (2.0, 1e6)])
def test_a_hinge_loss_with_a_large_ridge(alpha, lamda):
    """Every margin is below 1: m = alpha/lamda, and Vhat, nearly 0, is known to the rounding of its average only."""
    found = model("Gaussian mixture, hinge").solve(alpha=alpha, lamda=lamda)
    for quantity, value in {"m": alpha/lamda, "q": (alpha**2 + alpha)/lamda**2, "V": 1/lamda}.items():
        assert found[quantity] == pytest.approx(value, rel=1e-12)


PUBLISHED = [
    ("Gardner, margin", {"k": 0.0}, "alpha", 2.0, 1e-14),  # Gardner 1988
    ("binary perceptron", {}, "alpha", 0.8330786, 5e-8),  # Krauth and Mezard 1989; to seven digits Ding and Sun 2018
    ("Hopfield, fold", {}, "alpha", 0.13790557, 5e-9),  # 0.138 of Amit, Gutfreund and Sompolinsky 1985
    ("Hopfield, fold", {}, "m", 0.967, 5e-4),
    ("p-spin, static", {"p": 3.0}, "T", 0.586, 5e-4),  # Crisanti and Sommers 1992
    ("p-spin, static", {"p": 3.0}, "q", 0.645, 5e-4),
    ("Donoho-Maleki-Montanari", {"delta": 0.5}, "rho", 0.3857, 5e-5),  # Donoho and Tanner's weak threshold
    ("Sur-Candes", {"kappa": 0.2, "gamma2": 5.0}, "a", 1.49935, 5e-6),  # Sur and Candes 2019
    ("Sur-Candes", {"kappa": 0.2, "gamma2": 5.0}, "s2", 22.5013, 5e-5),
    ("Sur-Candes", {"kappa": 0.2, "gamma2": 5.0}, "lam", 3.02693, 5e-6),
    ("edge of chaos", {"sb2": 0.05}, "sw2", 1.76, 5e-3),  # Schoenholz et al. 2017
    ("spiked Wishart, normal", {"lamda": 2.0, "alpha": 1.0}, "u", 0.5, 1e-14),  # (alpha lamda^2 - 1)/(lamda alpha (1 + lamda))
]


@pytest.mark.parametrize("name, numbers, quantity, value, off", [
    pytest.param(*row, id=f"{row[0]}: {row[2]} = {row[3]}", marks=[pytest.mark.slow] if row[0] in SECONDS_TO_COMPILE else [])
    for row in PUBLISHED])
def test_published_numbers(name, numbers, quantity, value, off):
    assert model(name).solve(numbers)[quantity] == pytest.approx(value, abs=off)


BATCHES = ["SK", "SK, AT line", "Hopfield, T > 0", "spiked Wishart", "elastic net", "c map", "Sur-Candes"]


@pytest.mark.parametrize("name", stages(BATCHES, SECONDS_TO_COMPILE))
def test_a_batch_is_its_points(name):
    """Points of a table solved together; a parameter that differs between them is an array."""
    rows = points(name)
    numbers = {k: np.array([n[k] for n, _ in rows]) for k in rows[0][0]}
    found = model(name).solve(numbers)
    assert found.all_converged
    for quantity in rows[0][1]:
        assert found[quantity] == pytest.approx(np.array([v[quantity] for _, v in rows]), rel=1e-9, abs=1e-20)


# -- branches ----------------------------------------------------------------------------------------------------------
def test_the_hard_phase_of_compressed_sensing():
    """Two stable branches and one between them, which iteration leaves."""
    rows = points("Bernoulli-Gauss, hard")
    for (numbers, values), begin, stable in zip(rows, (0.5, 0.036, 1e-4), (True, False, True), strict=True):
        found = model("Bernoulli-Gauss").solve(numbers, start={"S": begin})
        assert found["S"] == pytest.approx(values["S"], rel=1e-9) and (found.stability < 1) == stable
        assert any("unstable" in note for note in found.notes) != stable


def test_three_branches_of_phase_retrieval():
    """At alpha = 1.1: 0, which iteration leaves above 1/2, a stable overlap and one that separates it from recovery."""
    system = model("phase retrieval")
    low, high = (system.solve(alpha=1.1, start={"q": q, "qhat": q/(1 - q)}) for q in (0.55, 0.85))
    for found in (low, high):
        assert independent._phase(found["q"]) == pytest.approx(1.1, rel=1e-9)
    assert low["q"] < 0.7 < high["q"] and low.stability < 1 < high.stability
    assert not system.solve(alpha=1.2, start={"q": 0.7, "qhat": 2.0}, raise_on_failure=False).converged


@pytest.mark.slow
def test_phase_retrieval_is_followed_through_its_fold():
    """Averages over two variables, whose rules are refined on the way: the fold where `_phase` has its largest value."""
    branch = model("phase retrieval").follow("alpha", (1.12, 1.2), start={"q": 0.8, "qhat": 4.0}, tolerance=1e-8)
    (fold,) = branch.folds
    assert fold["alpha"] == pytest.approx(1.128, abs=5e-4)  # Barbier et al. 2019
    assert fold["alpha"] == pytest.approx(independent.phase_fold()["alpha"], rel=1e-9) and branch["alpha"][-1] == 1.12
    assert branch["q"][0] < fold["q"] < branch["q"][-1] and branch.stable[0] and not branch.stable[-1]
    for k in (3, len(branch)//2, len(branch) - 1):
        assert independent._phase(branch["q"][k]) == pytest.approx(branch["alpha"][k], rel=1e-9)


def test_two_branches_of_tensor_pca():
    """q (1 - q) = 1/lamda: of (1 +- sqrt(1 - 4/lamda))/2 the smaller is unstable, and nothing but 0 is left below 4."""
    system = model("tensor PCA")
    for begin, sign in ((1.0, 1), (0.15, -1)):
        found = system.solve(lamda=8.0, start={"q": begin})
        if found["q"] > 0.05:
            assert found["q"] == pytest.approx((1 + sign*np.sqrt(0.5))/2, rel=1e-10) and (found.stability < 1) == (sign > 0)
    below = system.solve(lamda=3.0)
    assert below["q"] == 0 and below.converged


@pytest.mark.parametrize("name, numbers, begin", [
    ("spiked Wigner", {"lamda": 0.5}, {}), ("spiked Wigner", {"lamda": 0.9}, {}), ("SK", {"beta": 0.7, "h": 0.0}, {}),
    ("spiked Wishart", {"lamda": 0.5, "alpha": 1.0}, {}), ("spiked Wishart, normal", {"lamda": 0.9, "alpha": 0.5}, {}),
])
def test_below_a_transition_the_overlap_is_zero(name, numbers, begin):
    found = model(name).solve(numbers, start=begin)
    assert found.converged and all(0 <= found[u.name] < 1e-15 for u in model(name).unknowns)


def test_easy_points_stay_beside_hard_ones():
    """The zero overlap below the transition and a transition close by leave the others of a batch as they are."""
    lamda = [0.5, 0.6, 1.2, 2.0]
    found = model("spiked Wigner").solve(lamda=lamda)
    alone = [v["q"] for _, v in points("spiked Wigner")[1::-1]]
    assert found.all_converged and found["q"] == pytest.approx([0, 0, *alone], rel=1e-9)
    cold = {"alpha": 0.05, "beta": [10.0, 1e5]}
    hopfield = model("Hopfield, T > 0").solve(cold, raise_on_failure=False)
    assert hopfield.converged[0] and hopfield["m"][0] == pytest.approx(points("Hopfield, T > 0")[0][1]["m"], rel=1e-9)


# -- the file ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", stages(MODELS, set(MODELS) - QUICK_FILES))
def test_the_file_is_the_session(name, tmp_path):
    """It passes its own self-test, which `export` runs in a process without the package, and at a further point gives the
    numbers of the session."""
    rows = points(name)
    path = tmp_path / "solver.py"
    model(name).export(path, reference=rows[0][0])
    asked = rows[1:] if rows[0][0] else []
    if name in QUICK_FILES:  # as it is typed
        assert ran(path, "--selftest").startswith("selftest: 1 points")
        answers = [json.loads(ran(path, "--json", *(f"--{k}={v!r}" for k, v in numbers.items()))) for numbers, _ in asked]
    else:
        solve = runpy.run_path(str(path))["solve"]
        answers = [{k: np.atleast_1d(v) for k, v in solve(**numbers).items()} for numbers, _ in asked]
    for (numbers, values), there in zip(asked, answers, strict=True):
        here = model(name).solve(numbers)
        for quantity in here.value:
            assert there[quantity] == pytest.approx([here[quantity]], rel=1e-10, abs=1e-14), (quantity, numbers)
        for quantity, value in values.items():
            assert there[quantity] == pytest.approx([value], rel=1e-9, abs=1e-14), (quantity, numbers)


def ran(path, *options):
    done = subprocess.run([sys.executable, "-I", str(path), *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- the values themselves ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", independent.VALUES)
def test_the_independent_values_are_computed_as_they_are_stored(name):
    function, wanted = independent.VALUES[name]
    for numbers, stored in zip(wanted, REFERENCE[name], strict=True):
        assert function(**numbers) == pytest.approx(stored["values"], rel=1e-10, abs=1e-15)
