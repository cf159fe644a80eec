"""The function that one step learned: reference values, the risk as an integral of it, a simulation, planted errors."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, NoValue
from hermitex.experiments import one_step_experiment
from hermitex.experiments.training import Ridge

one_step = hx.theories.one_step
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_directions.json").read_text())["A3"]
POINT = {"alpha": 2, "beta": 1, "lam": 0.05, "r": 1.8, "c": 1.1, "gamma": 0.9}


def _solved(row):
    target = {"he1+he2/2": "He1(z) + He2(z)/2"}.get(row["g"], row["g"])
    numbers = {n: row[n] for n in ("alpha", "beta", "lam", "r", "c", "Delta")}
    return one_step(row["sigma"], target).solve(**numbers, gamma=row["Gam"][0])


@pytest.mark.parametrize("row", REFERENCE, ids=lambda x: x["sigma"])
def test_the_reference_values(row):  # theory sheet one_step_2, A3
    found, gamma = _solved(row), row["Gam"][0]
    mean, spread = np.array(row["along_target_mean_sd"]).T
    along = found.learned(z=row["z"])
    assert along.mean == pytest.approx(mean, rel=1e-12, abs=1e-13) and along.spread == pytest.approx(spread, rel=1e-12)
    kappa, zeta = np.array(row["kappa_zeta"]).T
    mean, spread = np.array(row["at_kappa_zeta_mean_sd"]).T
    both = found.learned(kappa=kappa, z=gamma*kappa + np.sqrt(1 - gamma**2)*zeta)
    assert both.mean == pytest.approx(mean, rel=1e-12, abs=1e-13) and both.spread == pytest.approx(spread, rel=1e-12)


def gauss(count=60):
    x, w = np.polynomial.hermite_e.hermegauss(count)
    return x, w/w.sum()


@pytest.mark.parametrize("gamma", [0.9, -0.6, 1])
def test_the_risk_is_an_integral_of_it(gamma):
    found = one_step("tanh", "sin").solve(**{**POINT, "gamma": gamma})
    s, w = gauss()
    learned = found.learned(z=s)
    assert w @ ((np.sin(s) - learned.mean)**2 + learned.spread**2) == pytest.approx(found["test_error"], rel=1e-9)
    # Tooth: the spread is a part of it.
    assert w @ (np.sin(s) - learned.mean)**2 != pytest.approx(found["test_error"], rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("how, numbers", [({"network": "exact"}, {"alpha": 2, "lam": 0.05, "alpha0": 2, "eta": 3}),
                                          ({"rows": "gaussian"}, POINT)])
def test_norms_that_fluctuate(how, numbers):
    """The risk is an integral of the learned function, for a network too, whose conditional means a simulation has."""
    found, (s, w) = one_step("tanh", "sin", **how).solve(**numbers), gauss()
    learned = found.learned(z=s)
    assert w @ ((np.sin(s) - learned.mean)**2 + learned.spread**2) == pytest.approx(found["test_error"], rel=1e-9)
    at, rows, setting = np.array([-1.0, 0.5, 2.0]), [], one_step_experiment.prepare(
        found.theory, [2], {n: v for n, v in numbers.items() if n != "alpha"}, dimension=400, runs=1, model=None, test=1)[0]
    for seed in range(12):
        rng = np.random.default_rng([4403, seed])
        features, ridge = setting.features(rng), Ridge(0.05)
        ridge.add(*setting.draw(features, 800, rng))
        a, measured = ridge.solve()[0], []
        theta = np.array([features.overlaps[0, 0], np.sqrt(1 - features.overlaps[0, 0]**2)])
        for s in at:
            x = rng.standard_normal((4000, 400))
            x[:, :2] += np.outer(s - features.projection(x), theta)
            out = features(x) @ a
            measured += [out.mean(), out.std()]
        rows.append(measured)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)/np.sqrt(12)
    assert np.all(np.abs(mean - np.transpose(found.learned(z=at)).ravel()) < 3*error)


LETTERS = {"vocabulary": [1, -1.5], "norms": [1.1, 1.3], "biases": [0.5, -0.3]}


@pytest.mark.slow
def test_the_risk_is_an_integral_of_it_with_letters():
    found = one_step("tanh", "sin", **LETTERS).solve(**{n: v for n, v in POINT.items() if n != "c"})
    s, w = gauss()
    learned = found.learned(z=s)
    assert w @ ((np.sin(s) - learned.mean)**2 + learned.spread**2) == pytest.approx(found["test_error"], rel=1e-9)
    # The mean square does not depend on what is given.
    alone = found.learned(kappa=s)
    assert w @ (alone.mean**2 + alone.spread**2) == pytest.approx(w @ (learned.mean**2 + learned.spread**2), rel=1e-9)
    assert len(found.plot_learned().get_lines()) == 2


@pytest.mark.slow
def test_equal_letters_learn_as_one():
    one, two = (one_step("relu", "z1 + z1*z2", **more).solve(**POINT).learned(z=[-1, 0.5]) for more in ({}, {"vocabulary": [1, 1]}))
    assert two.mean == pytest.approx(one.mean, rel=1e-9) and two.spread == pytest.approx(one.spread, rel=1e-9)


def test_the_three_ways_agree():
    # Given kappa the coordinate beside it is a standard normal; the law of total variance joins the two.
    found, (u, w) = one_step("relu", "He1(z) + He2(z)/2").solve(**POINT), gauss(40)
    kappa, gamma = 0.7, POINT["gamma"]
    both, alone = found.learned(kappa=kappa, z=gamma*kappa + np.sqrt(1 - gamma**2)*u), found.learned(kappa=kappa)
    assert w @ both.mean == pytest.approx(alone.mean, rel=1e-12)
    assert w @ both.spread**2 + w @ (both.mean - alone.mean)**2 == pytest.approx(alone.spread**2, rel=1e-12)


def test_random_features_learn_a_line():
    found = one_step("tanh", "sin").solve(**{**POINT, "r": 0})
    s = np.array([-2.0, -0.5, 1.0, 3.0])
    mean = found.learned(z=s).mean
    slope = float(hx.mu("tanh", 1)(0.0, r=0, c=1.1))*(found["psi"]*np.sqrt(1 - 0.81) + 0.9*found["zeta"])
    assert mean == pytest.approx(slope*s, rel=1e-11)


def test_a_sum_of_directions_learns_the_function_of_one():
    several, one = (one_step("erf", g).solve(**POINT).learned(z=[-1, 0.5]) for g in ("sin((3*z1 + 4*z2)/5)", "sin"))
    assert several.mean == pytest.approx(one.mean, rel=1e-11) and several.spread == pytest.approx(one.spread, rel=1e-11)


@pytest.mark.slow
def test_the_simulation():
    # Spiked features at d = 300 with fresh seeds; the theory has its 1/d term.
    d, seeds, at = 300, 16, np.array([-1.0, 0.5, 2.0])
    gamma, rows = POINT["gamma"], []
    for seed in range(seeds):
        rng = np.random.default_rng([4402, seed])
        W = rng.standard_normal((d, d))
        W *= np.sqrt(POINT["c"])/np.linalg.norm(W, axis=1, keepdims=True)

        def phi(x, W=W):  # v is the first axis, the target's direction in the plane of the first two
            return np.tanh(x @ W.T + POINT["r"]*x[:, :1])/np.sqrt(d)

        def along(x):
            return gamma*x[:, 0] + np.sqrt(1 - gamma**2)*x[:, 1]

        x = rng.standard_normal((2*d, d))
        f = phi(x)
        a = np.linalg.solve(f.T @ f + POINT["lam"]*np.eye(d), f.T @ np.sin(along(x)))
        found = []
        for s in at:
            x = rng.standard_normal((4000, d))
            more = s - along(x)
            x[:, 0] += gamma*more
            x[:, 1] += np.sqrt(1 - gamma**2)*more
            out = phi(x) @ a
            found += [out.mean(), out.std()]
        rows.append(found)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)/np.sqrt(seeds)
    theory = np.transpose(one_step("tanh", "sin").solve(**POINT, dimension=d).learned(z=at)).ravel()
    assert np.all(np.abs(mean - theory) < 3*error)


def test_pictures_and_copies():
    found = pickle.loads(pickle.dumps(one_step("tanh", "sin").solve(alpha=[1, 2], lam=0.05, alpha0=3, eta=1)))
    ax = found.point(1).plot_learned(z=np.linspace(-2, 2, 9))
    assert [line.get_label() for line in ax.get_lines()] == ["learned", "target"]
    assert ax.get_lines()[0].get_ydata() == pytest.approx(found.point(1).learned(z=np.linspace(-2, 2, 9)).mean)
    assert len(found.point(0).plot_learned(kappa=[-1, 0, 1]).get_lines()) == 1
    assert "derivative" in dir(found) and found.point(0).derivative is not None


@pytest.mark.parametrize("ask, said", [
    (lambda s: s.learned(z=1), "take one, solution.point"),
    (lambda s: s.point(0).learned(z="a"), "z is numbers"),
    (lambda s: s.point(0).learned(z=[]), "is empty"),
    (lambda s: one_step("tanh", "sin").solve(**{**POINT, "gamma": 1}).learned(z=1, kappa=1), "not both"),
    (lambda s: one_step("tanh", "sin", vocabulary=[1, 2], rows="orthogonal").solve(**POINT | {"gamma": 1}).learned(z=1), "rows="),
])
def test_bad_input_is_one_line(ask, said):
    with pytest.raises(BadInput, match=said) as error:
        ask(one_step("tanh", "sin").solve(alpha=[1, 2], lam=0.05, alpha0=3, eta=1))
    assert "\n" not in str(error.value)


def test_something_must_be_given():
    with pytest.raises(NoValue):
        one_step("tanh", "sin").solve(**POINT).learned()
