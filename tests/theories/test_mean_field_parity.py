"""k-parity by mean-field networks: exponents with their status, the effective dimension, the trend of a small experiment."""

import numpy as np
import pytest
from sympy import Rational, Symbol, limit, log, oo

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments.parity_experiment import simulate
from hermitex.face import cli
from hermitex.theories import mean_field_parity


def test_the_example_of_a_message_runs(capsys):
    assert cli.main(["curve", "mean-field-parity"]) == 2
    said = capsys.readouterr().err.split()
    assert cli.main(["curve", "mean-field-parity", *said[-2:]]) == 0


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_exponents_do_not_depend_on_k(k):
    found = mean_field_parity(k).scalings("1/4")
    assert found["samples"] == found["width"] == found["time"] == found["effective_dimension_exponent"] == Rational(3, 4)
    assert found["csq"] == max(k - 1, 1) and mean_field_parity(k).scalings(0)["samples"] == 1
    assert found.status["samples"] == "theorem" and found.status["effective_dimension_exponent"] == "derived"
    assert mean_field_parity(k).scalings()["time"] == 1 - Symbol("alpha", nonnegative=True)


@pytest.mark.parametrize("a", ["0", "1/3", "1/2"])
def test_the_effective_dimension_grows_with_that_exponent(a):
    d = Symbol("d", positive=True)
    exact = mean_field_parity(3).effective_dimension(d, a)
    assert limit(log(exact)/log(d), d, oo) == mean_field_parity(3).scalings(a)["effective_dimension_exponent"]
    size = 50
    diagonal = np.ones(size)
    diagonal[:3] = size**float(Rational(a))
    assert abs(float(exact.subs(d, size)) - diagonal.sum()/diagonal.max()) < 1e-9


@pytest.mark.slow
def test_the_trend_of_the_experiment():
    """With n = 200 fixed, isotropic 2-parity gets harder as d grows; larger alpha makes it easier again."""
    both = hx.curve(mean_field_parity(2), alpha=[0, 0.25, 1], simulate={"seeds": 2})
    found = [both.simulation[f"test_error_{d}"] for d in (20, 40, 80)]
    assert found[0][0] < 0.02 < 0.05 < found[1][0] < 0.25 < 0.35 < found[2][0]
    assert max(found[1][1:]) < 0.02 and 0.03 < found[2][1] < 0.2 and found[2][2] < 0.02
    assert "trend" in both.simulation.parameters["status"]
    right = both.plot().figure.axes[1]
    assert right.get_ylabel() == "test error" and [t.get_text() for t in right.get_legend().get_texts()] == [
        f"experiment, $d = {d}$, 2 seeds (right)" for d in (20, 40, 80)]


def test_errors_that_show_no_trend_are_said_to_show_none(capsys):
    """At d = 6 forty samples are enough at any alpha, at d = 60 with a parity of 6 they are too few."""
    from hermitex.face.cli import main

    size = dict(samples=40, neurons=40, steps=200, seeds=1)
    easy = simulate(mean_field_parity(1), [0, 1], dimension=6, **size)
    hard = simulate(mean_field_parity(6), [0, 0.05], dimension=60, **size)
    assert "no trend is seen: 40 samples are enough" in easy.parameters["status"] and "larger" in easy.parameters["status"]
    assert "are too few" in hard.parameters["status"] and "smaller" in hard.parameters["status"]
    asked = ["curve", "mean-field-parity", "--alpha", "0,1", "--simulate", "--seeds", "1", "--dimension", "12"]
    assert main(asked) == 0 and "the experiment: no trend is seen: 200 samples are enough" in capsys.readouterr().err


def test_a_dimension_that_is_given_is_the_only_one():
    small = simulate(mean_field_parity(2), [0], dimension=9, samples=40, neurons=20, steps=20, seeds=2)
    assert list(small.values) == ["test_error"] and small.parameters["dimension"] == 9


def test_the_curve_and_the_command_line(capsys):
    """The exponents along alpha are the formulas; d_eff is the exact one where d is given; the experiment stands beside."""
    import json

    from hermitex.face.cli import main

    theory, line = mean_field_parity(3), [0, 0.25, 1]
    found = theory.curve(line, dimension=50)
    for i, a in enumerate(line):
        said = theory.scalings(a)
        assert [found[n][i] for n in ("samples", "width", "time")] == [float(said[n]) for n in ("samples", "width", "time")]
        assert found["effective_dimension"][i] == pytest.approx(float(theory.effective_dimension(50, a)), rel=1e-12)
    for curve in (found, theory.curve(line)):  # the exponent is one thing, the dimension itself another
        assert curve["effective_dimension_exponent"].tolist() == [1, 0.75, 0]
    without = theory.curve(line)
    assert "effective_dimension" not in without.values
    with pytest.raises(BadInput, match=r"no effective_dimension; add dimension=1000, say") as said:
        without.plot(quantity="effective_dimension")
    mixed = theory.curve([0.5, 0.5], dimension=[50, np.inf])["effective_dimension"]  # as in a table of single points
    assert mixed[0] > 0 and np.isnan(mixed[1])
    assert "\n" not in str(said.value) and theory.curve(line, dimension=1000).plot(quantity="effective_dimension").get_lines()
    assert main(["curve", "mean-field-parity", "--k", "3", "--alpha", "0,0.25,1", "--dimension", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["order_parameters"]["samples"] == [1, 0.75, 0]
    assert main(["curve", "mean-field-parity", "--k", "0", "--alpha", "0"]) == 2 and "k is" in capsys.readouterr().err
    assert "exponent" in found.plot().get_ylabel()


@pytest.mark.parametrize("k, prior, known", [
    (2, "1/2", 0.05763882317943232), (3, "1/2", 0.05763882317943232), (4, "1/2", 0.02092112721044212),  # 25 digits of mpmath
    (2, 2, 0.02712525723), (3, 2, 0.02712525723), (4, 2, 0.00972083570)])  # theory sheet multi_index_2, B6 (six digits at 1/2)
def test_the_threshold_of_the_temperature(k, prior, known):
    assert mean_field_parity(k).threshold(prior=prior) == pytest.approx(known, rel=2e-9)


def test_the_margin_below_the_threshold():
    """The sheet's three values; at c* it begins at 0, in a mixture first, and grows as c falls."""
    theory = mean_field_parity(2)
    critical = theory.threshold(prior=0.5)
    for part, known in ((0.5, 0.26246), (0.7, 0.19880), (0.85, 0.15365)):
        assert theory.margin(part*critical, prior=0.5) == pytest.approx(known, abs=5e-6)
    parts = np.array([1.1, 1, 0.999, 0.97, 0.9, 0.5, 0.1])
    found = [theory.margin(p*critical, prior=0.5) for p in parts]
    assert found[0] == found[1] == 0 and np.all(np.diff(found[1:]) > 0)
    assert found[2] == pytest.approx(np.log(2/0.999 - 1), abs=1e-9)  # the mixture
    assert mean_field_parity(1).threshold() == np.inf


@pytest.mark.parametrize("k, prior", [(2, 0.5), (4, 1.3), (5, 0.2)])
def test_no_other_neuron_is_better(k, prior):
    """A third route: the ratio over all v and b, from random starts, on Gauss-Hermite nodes and all 2^k inputs."""
    from itertools import product

    from scipy.optimize import minimize

    rng, signs = np.random.default_rng(k), np.array(list(product([1, -1], repeat=k)))
    x, w = np.polynomial.hermite_e.hermegauss(120)
    def ratio(v):
        field = signs @ v[:k] + v[k]
        return np.mean(signs.prod(axis=1)*(np.tanh(field[:, None] + x/np.sqrt(2*prior)) @ (w/w.sum())))/(v @ v)
    best = max(-minimize(lambda v: -ratio(v), rng.standard_normal(k + 1)).fun for _ in range(12))
    critical = mean_field_parity(k).threshold(prior=prior)
    assert best/(2*prior) == pytest.approx(critical, rel=1e-7)
    lost = mean_field_parity(k)._bump(1.0, 2*prior)[0]  # a tooth: the noise of the other coordinates at half its variance
    assert abs(lost - mean_field_parity(k)._bump(1.0, prior)[0]) > 1e-3


@pytest.mark.slow
def test_particles_learn_below_the_threshold_only():
    """The mean-field problem in k + 1 = 3 dimensions by 1000 particles at D = 1000, as in the sheet: .2620 for .2625."""
    theory, rng, N, D = mean_field_parity(2), np.random.default_rng(11), 1000, 1000.0
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    y, (x, w) = signs.prod(axis=1), np.polynomial.hermite_e.hermegauss(24)
    w = w/w.sum()
    critical, found = theory.threshold(prior=0.5), {}
    for part in (0.5, 1.3):
        c, v = part*critical, 1.5*rng.standard_normal((N, 3))
        for _ in range(1500):
            field = (v[:, :2] @ signs.T + v[:, 2:])[..., None] + x
            t = np.tanh(field)
            f = (t @ w).mean(axis=0)
            pull = y/(1 + np.exp(y*f))/4
            slope = ((1 - t*t) @ w)*pull
            step = 0.15
            v += step*(np.column_stack([slope @ signs, slope.sum(axis=1)]) - c*v) + np.sqrt(2*step*c/D)*rng.standard_normal(v.shape)
        found[part] = float(np.mean(y*f))
    assert abs(found[0.5] - theory.margin(0.5*critical, prior=0.5)) < 0.01 and found[1.3] < 0.05


def test_text_and_picture():
    theory = mean_field_parity(4)
    assert theory.to_dict()["samples"]["value"] == "1 - alpha" and theory.bibtex().startswith("@inproceedings{nitanda2024")
    assert theory.plot().get_xlabel() == r"$\alpha$"


@pytest.mark.parametrize("ask, word", [
    (lambda: mean_field_parity(0), "k is"), (lambda: mean_field_parity(2.5), "k is"),
    (lambda: mean_field_parity(2).scalings(2), "alpha"), (lambda: mean_field_parity(2).curve([0, 2]), "alpha"),
    (lambda: mean_field_parity(4).curve([0], dimension=3), "d is"),
    (lambda: mean_field_parity(9).effective_dimension(3, 0), "d is"),
    (lambda: mean_field_parity(2).curve([0], dimension=9.5), "d is"),
    *((lambda d=d: mean_field_parity(2).effective_dimension(d, 0), "d is") for d in (2.5, "7/2", "oo", float("inf"), "sqrt(5)")),
    *((lambda a=a: mean_field_parity(2).effective_dimension(100, a), "alpha")
      for a in (2, -1, "oo", "3/2", "sqrt(2)", "nan", "zoo")),
    *((lambda v=v: mean_field_parity(2).threshold(prior=v), "prior") for v in (0, -1, "oo", "x")),
    (lambda: mean_field_parity(2).margin(0), "c must"), (lambda: mean_field_parity(1).margin(1), "one coordinate"),
    (lambda: simulate(mean_field_parity(2), [2]), "alpha")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises(BadInput) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)
