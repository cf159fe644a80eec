"""Two full-batch steps on the same samples: the tables, a sum over samples, small steps, growth, simulations, bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from sympy import Rational, Symbol

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.experiments.batch_reuse_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.theories import batch_reuse

KNOWN = json.loads((Path(__file__).parents[1]/"reference"/"batch_reuse.json").read_text())
SMOOTH = "sqrt(pi/2)*erf(z/sqrt(2))"  # sigma' = exp(-z^2/2)


def agrees(row):
    """One row of the table, to the digits of its source, whose window ends at 7.5."""
    found = batch_reuse("relu", row["target"], row["loss"]).solve(alpha=row["alpha"], eta=row["eta"], steps=2)
    assert np.all(found.converged) and len(found["cosine"]) == 2
    np.testing.assert_allclose(found["overlap"], [row["m1"], row["m2"]], atol=2e-11)
    np.testing.assert_allclose(found["norm"]**2, [row["norm1"], row["norm2"]], rtol=1e-10)
    assert abs(found["cosine"][1] - row["cos2"]) < 2e-11
    if "growth" in found:
        sizes = np.sqrt([row["norm1"], row["norm2"]])
        np.testing.assert_allclose(found["growth"]*sizes, [row["factor1"], row["factor2"]], rtol=1e-9)


@pytest.mark.parametrize("row", [KNOWN["two_step"][k] for k in (0, 9, 12)], ids=["He3", "tanh", "He2"])
def test_three_rows_of_the_table(row):
    agrees(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", KNOWN["two_step"], ids=lambda r: f"{r['target']}, {r['loss']}, {r['eta']:g}")
def test_the_table(row):
    agrees(row)


@pytest.mark.slow
def test_along_alpha_and_the_growth_of_an_information_exponent_of_four():
    theory = batch_reuse("relu", "He3(z)/sqrt(6)", "correlation")
    for row in KNOWN["alpha_scan"]:
        found = theory.solve(alpha=row["alpha"], eta=row["eta"])
        assert abs(found["overlap"][1] - row["m2"]) < 6e-9 and abs(found["cosine"][1] - row["cos2"]) < 6e-9
    theory = batch_reuse("relu", "He4(z)/sqrt(24)", "correlation")
    for row in [r for r in KNOWN["he4"] if r["eta_over_alpha"] <= 1 and r["alpha"] <= 30]:
        found = theory.solve(alpha=row["alpha"], eta=row["alpha"]*row["eta_over_alpha"])
        assert abs(found["growth"][1]/row["cosine"] - 1) < 1e-7
        assert abs(found["norm"][1]**2/row["norm_squared"] - 1) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, loss", [("tanh", "sign", "square"), ("gelu", "relu", "correlation")])
def test_the_averages_are_those_of_drawn_samples(sigma, g, loss):
    """A third route: z, h_0 and G drawn, and the formulas of the sheet on their means, within four standard errors."""
    theory, alpha, eta, rng = batch_reuse(sigma, g, loss), 2.0, 1.5, np.random.default_rng(5)
    found, rows = theory.solve(alpha=alpha, eta=eta), []
    student, slope, label = (hx.compile(e) for e in (theory.sigma.expr, theory.sigma.weak_derivative.expr, theory.g.expr))
    for _ in range(16):
        z, h, G = rng.standard_normal((3, 200_000))
        y = label(z=z)
        def r(h, y=y):
            return (y - (student(z=h) if loss == "square" else 0))*slope(z=h)
        r_0 = r(h)
        e, f, q = np.mean(z*r_0), np.mean(h*r_0), np.mean(r_0**2)
        r_1 = r((1 + eta*f)*h + eta*e*z + eta/alpha*r_0 + eta*np.sqrt(q/alpha)*G)
        size = (1 + eta*f)**2 + eta**2*(e**2 + q/alpha)
        along, own, both = np.mean(z*r_1), np.mean(h*r_1), np.mean(r_0*r_1)
        B = np.mean(r_1*(r_0/alpha + np.sqrt(q/alpha)*G))
        last = (size + 2*eta*((1 + eta*f)*own + eta*e*along + eta*B)
                + eta**2*(along**2 + own**2 + B**2*alpha/q + (np.mean(r_1**2) - both**2/q)/alpha))
        forgotten = np.mean(z*r((1 + eta*f)*h + eta*e*z + eta*np.sqrt(q/alpha)*G))
        rows.append([eta*e, eta*(e + along), np.sqrt(size), np.sqrt(last), eta*(e + forgotten)])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)/4
    known = [*found["overlap"], *found["norm"]]
    assert np.all(np.abs(mean[:4] - known) < 4*error[:4])
    assert abs(mean[4] - known[1]) > 10*error[4]  # a tooth: without what the weights remember of the sample


@pytest.mark.slow
def test_small_steps_have_their_powers():
    """m_2 -> (eta^3/(2 alpha^2)) E[z y^3] E[sigma'^2 sigma'''] for a smooth student and He3; eta^2 for relu; two steps are one."""
    eta = 0.02
    smooth = batch_reuse(SMOOTH, "He3(z)/sqrt(6)", "correlation").solve(alpha=3, eta=eta)
    assert abs(smooth["overlap"][1]/eta**3 + 0.45782) < 5e-6 and smooth["overlap"][0] == 0
    kinked = batch_reuse("relu", "He3(z)/sqrt(6)", "correlation").solve(alpha=3, eta=[0.01, 0.02])
    assert 3.8 < kinked["overlap"][1, 1]/kinked["overlap"][0, 1] < 4
    tiny = batch_reuse("relu", "tanh").solve(alpha=3, eta=1e-6)
    assert abs(tiny["overlap"][1]/tiny["overlap"][0] - 2) < 1e-5
    one = batch_reuse("relu", "tanh").solve(alpha=3, eta=1, steps=1)
    assert one["overlap"].shape == (1,) and "cosine_2" not in one


def test_many_samples_are_the_population():
    """alpha -> oo: the memory and the noise vanish, and a linear student obeys w_1 = (1 - eta) w_0 + eta c_1 w*, and so on."""
    found = batch_reuse("z", "tanh").solve(alpha=1e9, eta=0.5)
    c = 0.605705509602
    np.testing.assert_allclose(found["overlap"], [0.5*c, 0.75*c], rtol=1e-8)
    np.testing.assert_allclose(found["norm"]**2, [0.25 + (0.5*c)**2, 0.0625 + (0.75*c)**2], rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, loss, eta", [("relu", "tanh", "square", 1.0), ("relu", "He3", "correlation", 1.0),
                                                 ("tanh", "sign", "square", 1.5), ("gelu", "relu", "square", 2.0)])
def test_neurons_agree_within_three_standard_errors(sigma, g, loss, eta):
    """Many seeds: the norms of He3 have heavy tails, and a standard error of a dozen is too small."""
    theory, line = batch_reuse(sigma, g, loss), [2.0]
    compared = agreement(theory.curve(line, eta=eta), simulate(theory, line, eta=eta, dimension=1000, seeds=range(200, 240)))
    assert compared.worst("overlap_1", "norm_1", "overlap_2", "norm_2") < 3


@pytest.mark.slow
def test_a_small_start_grows_by_the_factor():
    theory = batch_reuse("relu", "He2(z)/sqrt(2)", "correlation")
    found = theory.solve(alpha=3, eta=1)
    measured = simulate(theory, [3.0], eta=1, start=0.1, dimension=1000, seeds=60)
    for t in (1, 2):
        z = (measured[f"cosine_{t}"][0] - 0.1*found["growth"][t - 1])/measured.standard_error[f"cosine_{t}"][0]
        assert abs(z) < 3


@pytest.mark.slow
def test_the_rates_of_a_small_inner_step():
    found, half = batch_reuse("relu", "He3").rates("1/4"), Rational(1, 2)
    assert [found[n] for n in ("samples", "switch", "one_pass", "smoothed")] == [3*half, half, 2, 3*half]
    assert found.status["samples"] == "heuristic" and found.status["smoothed"] == "theorem"
    assert batch_reuse("relu", "He3").rates(0)["samples"] == 1 and batch_reuse("relu", "He3").rates(2)["samples"] == 2
    assert batch_reuse("relu", "tanh").rates("1/2")["samples"] == 1


@pytest.mark.slow
def test_the_command_line_and_the_picture(capsys):
    asked = ["curve", "batch-reuse", "--sigma", "relu", "--target", "tanh", "--alpha", "3", "--eta", "1", "--json"]
    assert cli.main(asked) == 0
    answer = json.loads(capsys.readouterr().out)["order_parameters"]
    assert answer["cosine_2"][0] == pytest.approx(0.5413400572, abs=1e-9)
    both = hx.curve("batch-reuse", sigma="relu", target="tanh", alpha=[1, 3], eta=1, simulate={"dimension": 60, "seeds": 2})
    assert both.simulation["cosine_2"].shape == (2,) and both.plot().get_xlabel()
    assert batch_reuse("relu", "tanh").plot(points=3).get_lines()


@pytest.mark.parametrize("ask, kind, word", [
    (lambda: batch_reuse("sign", "z"), BadInput, "jumps"), (lambda: batch_reuse("tanh", "1"), BadInput, "constant"),
    (lambda: batch_reuse("tanh", Symbol("a")*Symbol("z")), BadInput, "holds a"),
    (lambda: batch_reuse("tanh", "z", "hinge"), BadInput, "loss"),
    (lambda: batch_reuse("tanh", "exp(z**2)"), BadInput, "square"),
    (lambda: batch_reuse("relu", "exp(z**2/5)").solve(alpha=1, eta=1), BadInput, "grows"),
    (lambda: batch_reuse("tanh", "z").solve(alpha=2, eta=1e8), BadInput, "smaller eta"),
    (lambda: batch_reuse("tanh", "z").solve(alpha=1e-8, eta=1e-6), BadInput, "too small"),
    (lambda: batch_reuse("tanh", "z").solve(alpha=1), BadInput, "eta"),
    (lambda: batch_reuse("tanh", "z").solve(alpha=-1, eta=1), BadInput, "alpha"),
    (lambda: batch_reuse("tanh", "z").solve(alpha=1, eta=1, steps=3), BadInput, "simulate takes more"),
    (lambda: batch_reuse("tanh", "z").solve(alpha=1, eta=1, step=1), UnknownName, "steps"),
    (lambda: batch_reuse("tanh", "z").rates(-1), BadInput, "s >= 0"),
    (lambda: simulate(batch_reuse("tanh", "z"), [1], eta=1, start=2), BadInput, "start")])
def test_bad_input_is_one_line(ask, kind, word):
    with pytest.raises(kind) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)
