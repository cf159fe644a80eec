"""hx.curve: a theory, its experiment, its reference lines; the figure of a user of the package."""

import csv
import re
from math import inf

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, UnknownName

NUMBERS = dict(alpha0=5, eta=3, lam=1e-2)
QUICK = {"dimension": 40, "seeds": 2, "test": 200}


@pytest.fixture(scope="module")
def one():
    return hx.theories.one_step("tanh", "sin")


def test_by_name_and_by_object_are_the_same(one):
    by_name = hx.curve("one-step", sigma="tanh", target="sin", alpha=[0.5, 1], **NUMBERS)
    by_object = hx.curve(one, [0.5, 1], **NUMBERS)
    direct = one.curve([0.5, 1], **NUMBERS)
    for found in (by_name, by_object):
        np.testing.assert_array_equal(found.test_error, direct.test_error)
    structure = hx.curve("one-step", sigma="relu", target="relu", rows="gaussian", alpha=1, r=0.8, c=1, gamma=0.9, lam=0.05)
    assert "chi" in structure


def test_the_experiment_stands_beside_the_theory(one):
    found = hx.curve(one, np.linspace(0.2, 3, 30), simulate=QUICK, **NUMBERS)
    s = found.simulation
    assert len(s) == 8 and {s.alpha[0], s.alpha[-1]} == {0.2, 3} and set(s.alpha) <= set(found.alpha)
    assert s.parameters["dimension"] == 40 and s.seeds == (0, 1)
    own = hx.curve(one, [1, 2], simulate={**QUICK, "alpha": [1.5], "seeds": [7]}, **NUMBERS).simulation
    assert own.alpha.tolist() == [1.5] and own.seeds == (7,)
    at = hx.curve(one, [1], simulate={"seeds": 1, "test": 100}, dimension=50, **NUMBERS)
    assert at.simulation.parameters["dimension"] == 50 and at.test_error != found.test_error[0]
    network = hx.curve(one, [1], simulate={**QUICK, "model": "network"}, **NUMBERS).simulation
    assert {"r", "c", "gamma", "chi"} <= set(network.values)


def test_progress(one):
    said = []
    hx.curve(one, [1], simulate=QUICK, progress=lambda *now: said.append(now), **NUMBERS)
    assert said == [(0, 2), (1, 2), (2, 2)]


def test_progress_on_stderr(one, capsys):
    hx.curve(one, [1], simulate=QUICK, progress=True, **NUMBERS)
    out, err = capsys.readouterr()
    assert out == "" and "experiment: 2 of 2 seeds, " in err and err.endswith(" s\n")


@pytest.mark.parametrize("call, kind, word", [
    (dict(theory="one-stop", alpha=1), UnknownName, "one-step"),
    (dict(theory="one-step", alpha=1), BadInput, "sigma"),
    (dict(theory="one-step", sigma="tanh", alpha=1), BadInput, "target"),
    (dict(theory="one-step", sigma="tanh", target="sin", lam=1, **{"alpha0": 1, "eta": 1}), BadInput, "alpha has no value"),
    (dict(theory="one-step", sigma="tanh", target="sin", alpha=1, lambd=1), UnknownName, "lam"),
    (dict(theory="one-step", sigma="tanh", target="sin", alpha=1, lam=1, eta=1), BadInput, "alpha0"),
    (dict(theory="one-step", sigma="tanh", target="sin", alpha=1, simulate={"seed": 3}, **NUMBERS), UnknownName, "seeds"),
    (dict(theory="one-step", sigma="tanh", target="sin", alpha=1, simulate=3, **NUMBERS), BadInput, "simulate"),
    (dict(theory=3, alpha=1), BadInput, "theory"),
    (dict(theory="one-step", sigma=["tanh", "relu"], target="sin", alpha=[1], **NUMBERS), BadInput, "each='sigma'"),
])
def test_what_is_wrong_is_said_in_one_line(call, kind, word):
    with pytest.raises(kind, match=word) as caught:
        hx.curve(**call)
    assert "\n" not in str(caught.value)


def test_the_reference_lines():
    """Random features do not know alpha0; width and samples lead them to the best linear predictor."""
    lines = hx.baselines("one-step", sigma="tanh", target="sign", alpha=[1.0, 50.0], lam=0.1, alpha0=3, eta=1)
    assert lines.best_linear == pytest.approx(1 - 2/np.pi, abs=1e-12)
    known = hx.curve("one-step", sigma="tanh", target="sign", alpha=[1.0, 50.0], lam=0.1, r=0, c=1, gamma=1)
    np.testing.assert_allclose(lines.random_features.test_error, known.test_error, rtol=1e-9)
    assert np.all(lines.random_features.test_error > lines.best_linear)
    both = lines.plot(lines.plot(colour="C0"), colour="C1")  # of several, each in its colour, and what they share once
    assert [line.get_color() for line in both.get_lines()] == ["C0", "0.45", "C1"]
    assert both.get_legend_handles_labels()[1] == ["random features, colours as below", "best linear predictor"]
    wide = hx.baselines("one-step", sigma="tanh", target="sign", alpha=[3000.0], lam=1e-3, beta=100)
    assert wide.random_features.test_error[0] == pytest.approx(wide.best_linear, rel=0.05)
    assert hx.baselines("one-step", sigma="relu", target="1 + z", alpha=1, lam=1).best_linear == pytest.approx(0, abs=1e-12)
    with pytest.raises(BadInput, match="square"):
        hx.baselines("one-step", sigma="tanh", target="sign", loss="logistic", alpha=1, lam=1)
    for other, numbers in ((hx.theories.random_features("tanh", "z"), {"gamma": 0.5, "lam": 0.1}),  # its alpha is n/p
                           (hx.theories.multi_index("z**2"), {})):
        with pytest.raises(BadInput, match="defined for one-step"):
            hx.baselines(other, [1.0], **numbers)


def test_the_figure_of_a_user(tmp_path):
    """Job 3: several batches in one figure, a vector file, CSV with everything, the papers used."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from hermitex.symbols import z

    one = hx.theories.one_step(hx.silu, "tanh")
    fig, ax = plt.subplots()
    for alpha0 in (0.5, 5, inf):
        curve = hx.curve(one, alpha=np.geomspace(.1, 10, 12), alpha0=alpha0, eta=3, beta=1, lam=1e-2,
                         simulate=QUICK if alpha0 == 5 else False)
        assert curve.plot(ax=ax) is ax
    assert ax.get_xscale() == "log"
    measured = rf"experiment (features), $d = {QUICK['dimension']}$, {QUICK['seeds']} seeds $\pm$ s.e."
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        r"$\alpha_0 = 0.5$, $\eta = 3$", r"$\alpha_0 = 5$, $\eta = 3$, theory at $d = 40$", r"$\alpha_0 = \infty$, $\eta = 3$",
        measured]
    fig.savefig(tmp_path/"figure.pdf")
    plt.close(fig)
    assert (tmp_path/"figure.pdf").read_bytes().startswith(b"%PDF")
    with open(curve.to_csv(tmp_path/"curve.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert {"alpha", "test_error", "m", "zeta", "psi", "q1", "q2", "V1", "residual", "converged"} <= set(rows[0])
    assert float(rows[3]["test_error"]) == curve.test_error[3]
    assert curve.bibtex().count("@") == 1 and "2402.04980" in curve.bibtex()
    assert one.sigma(z) == hx.silu(z)


@pytest.mark.parametrize("grid", [np.linspace(0.2, 5, 12), np.geomspace(0.2, 5, 8), np.linspace(5, 0.2, 9)])
def test_points_are_added_until_the_peak_of_a_double_descent_is_seen(grid):
    theory, numbers = hx.theories.one_step("relu", "sin"), dict(alpha0=2, eta=1, lam=1e-4)
    plain, found = theory.curve(grid, **numbers), theory.curve(grid, refine=100, **numbers)
    assert set(grid) <= set(found.alpha) and len(grid) < len(found) <= len(grid) + 100
    fine = theory.curve(np.geomspace(0.2, 5, 2001), **numbers)
    height = np.ptp(fine.test_error)

    def off(curve):
        order = np.argsort(curve.alpha)
        return np.abs(np.interp(fine.alpha, curve.alpha[order], curve.test_error[order]) - fine.test_error).max()/height

    assert off(found) < 0.02 < 0.2 < off(plain)
    np.testing.assert_allclose(found.test_error, theory.curve(found.alpha, **numbers).test_error, rtol=1e-9)
    assert (found.plot().get_xscale() == "log") == (plain.plot().get_xscale() == "log")
    measured = hx.curve(theory, [0.5, 1, 2, 4], refine=9, simulate=QUICK, **numbers)
    assert len(measured) > 4 and list(measured.simulation.alpha) == [0.5, 1, 2, 4]


@pytest.mark.parametrize("wrong", [dict(refine=-1), dict(refine=2.5), dict(refine="x"), dict(refine=3, lam=[0.1, 0.2]),
                                   dict(refine=3, optimise="lam")])
def test_refine_is_a_number_of_points_along_one_list(wrong):
    numbers = {k: v for k, v in {**NUMBERS, **wrong}.items() if k != wrong.get("optimise")}
    with pytest.raises(BadInput, match="refine"):
        hx.theories.one_step("tanh", "sin").curve([0.5, 1], **numbers)


def test_numbers_that_run_along_with_the_axis_stand_in_the_table():
    theory = hx.theories.one_step("tanh", "sin")
    found = hx.curve(theory, alpha=[1.0, 2.0, 3.0], lam=[0.1, 1.0, 0.01], alpha0=5, eta=1)
    assert found["lam"].tolist() == [0.1, 1.0, 0.01] == found.to_dataframe()["lam"].tolist()
    for i, (alpha, lam) in enumerate(zip([1.0, 2.0, 3.0], found["lam"], strict=True)):
        alone = theory.solve(alpha=alpha, lam=lam, alpha0=5, eta=1)["test_error"]
        assert found["test_error"][i] == pytest.approx(float(alone), rel=1e-9)


def test_an_option_of_the_experiment_beside_the_numbers_says_where_it_goes():
    with pytest.raises(BadInput, match=r"write simulate=\{'seeds': 2\}"):
        hx.curve(hx.theories.one_step("tanh", "sin"), alpha=[1.0], alpha0=5, eta=1, lam=0.1, simulate=True, seeds=2)


def test_a_curve_for_each_value(tmp_path):
    """As the command line makes them: one picture whose legend names the values, one table that is read back."""
    known = dict(sigma="tanh", target="sin", gamma=1, alpha=[1, 2, 3])
    found = hx.curve("random-features", each="lamda", lam=[0.1, 1], **known)
    for one, lam in zip(found, (0.1, 1), strict=True):
        np.testing.assert_array_equal(one.test_error, hx.curve("random-features", lam=lam, **known).test_error)
    ax = found.plot()
    labels = ax.get_legend_handles_labels()[1]
    assert len(ax.get_lines()) == 2 and "0.1" in labels[0] and "= 1$" in labels[1]
    back = hx.load(found.to_csv(tmp_path/"curves.csv"))
    assert back.axes == {"alpha": (1.0, 2.0, 3.0), "lam": (0.1, 1.0)}
    np.testing.assert_array_equal(back.on_grid("test_error"), np.transpose([one.test_error for one in found]))
    np.testing.assert_array_equal(back.test_error, np.concatenate([one.test_error for one in found]))
    assert len(found.to_dict()["curves"]) == 2 == len(found[:2]) and "one for each lam" in repr(found)
    assert "lam = 0.1: " in found._repr_html_() and "@" in found.bibtex()


def test_a_curve_for_each_function_and_number_with_its_experiment():
    found = hx.curve("random-features", each=("sigma", "lam"), sigma=["tanh", "relu"], lam=[0.1, 1], target="sin", gamma=1,
                     alpha=[1], simulate={"dimension": 20, "seeds": 2})
    told = [(one.parameters["sigma"], one.parameters["lam"]) for one in found]
    assert told == [("tanh", 0.1), ("tanh", 1), ("relu", 0.1), ("relu", 1)] and all(one.simulation is not None for one in found)


def test_alpha_makes_curves_along_another_number_too():
    known = dict(sigma="tanh", target="sin", gamma=1, lam=[0.1, 1, 10])
    found = hx.curve("random-features", [1, 2], each="alpha", **known)
    assert [one.axis for one in found] == ["lam", "lam"] and found.each == ("alpha",)
    np.testing.assert_array_equal(found[1].test_error, hx.curve("random-features", 2, **known).test_error)


@pytest.mark.parametrize("theory, numbers, word", [
    ("ridge", dict(n=[10], eigenvalues=[[1, .5], [1, .5, .2]], coefficients=[1, 1], lam=.1, each="eigenvalues"), "one hx.curve"),
    ("ridge", dict(n=[10], eigenvalues=[[1, .5], [1, .2]], coefficients=[1, 1], lam=.1, each="eigenvalues"), "one hx.curve"),
    ("glm", dict(alpha=[1, 2], lam=[.1, 1], each=["lam", "lamda"]), "lam twice"),
    ("glm", dict(alpha=[1, 2], lam=.1, each="alpha"), "nothing that varies"),
    ("glm", dict(alpha=[1, 2], lam={.1, 1}, each="lam"), "needs a list"),
    ("glm", dict(alpha=[1, 2], lam=iter([.1, 1]), each="lam"), "needs a list"),
    ("glm", dict(alpha=[1, 2], lam=[], each="lam"), "needs a list")])
def test_what_makes_no_curves_is_told_in_one_line(theory, numbers, word):
    with pytest.raises(BadInput, match=word) as said:
        hx.curve(theory, **numbers)
    assert "\n" not in str(said.value) and len(str(said.value)) < 200


@pytest.mark.parametrize("key, values", [("sigma", ["relu", "tanh"]), ("target", ["sin", "He2"])])
def test_functions_of_a_theory_that_is_made_are_given_with_its_name(key, values):
    theory, rest = hx.theories.random_features("tanh", "sin"), dict(alpha=[1, 2], gamma=1, lam=0.1)
    with pytest.raises(BadInput, match=re.escape(f"hx.curve('random-features', {key}={values}")) as said:
        hx.curve(theory, each=key, **rest, **{key: values})
    assert f"each={key!r}" in str(said.value)
    assert len(hx.curve("random-features", each=key, **{"sigma": "tanh", "target": "sin", **rest, key: values})) == 2
    with pytest.raises(BadInput, match=f"'random-features', {key}=") as said:
        hx.curve(theory, **rest, **{key: values[0]})
    assert "each" not in str(said.value)


@pytest.mark.parametrize("numbers, word", [(dict(each="lam"), "give the values too"), (dict(each="lam", lam=1), "needs a list"),
                                           (dict(lam=[0.1, 1]), "each='lam'")])
def test_what_makes_no_curves_is_said(numbers, word):
    with pytest.raises(BadInput, match=word):
        hx.curve("random-features", sigma="tanh", target="sin", gamma=1, alpha=[1, 2, 3], **numbers)


def test_the_line_beside_an_experiment_is_at_its_size(one):
    """Features: with the 1/d term of their d. Networks: the limit, which is what is known of them; the picture says so."""
    features = hx.curve(one, [1, 2], simulate=QUICK, **NUMBERS)
    limit, at = one.curve([1, 2], **NUMBERS), one.curve([1, 2], dimension=40, **NUMBERS)
    np.testing.assert_array_equal(features.test_error, at.test_error)
    assert np.all(at.test_error != limit.test_error) and features.parameters["dimension"] == 40
    network = hx.curve(one, [1, 2], simulate={**QUICK, "model": "network"}, **NUMBERS)
    np.testing.assert_array_equal(network.test_error, limit.test_error)
    assert "network='exact'" in network.simulation.parameters["remark"]
    exact = hx.curve("one-step", sigma="tanh", target="sin", network="exact", alpha=[1], simulate=QUICK, **NUMBERS)
    own = hx.theories.one_step("tanh", "sin", network="exact").curve([1], **NUMBERS)
    assert exact.test_error[0] == own.test_error[0] and "d -> infinity" in exact.simulation.parameters["remark"]
    given = hx.curve(one, [1], simulate=QUICK, dimension=90, **NUMBERS)
    assert given.test_error[0] == one.curve([1], dimension=90, **NUMBERS).test_error[0]


def test_a_curve_gives_the_stability_of_its_table():
    found = hx.curve("glm", alpha=[1, 2], Delta=0.5, lam=0.1)
    assert found["stability"].tolist() == found.table()["stability"] and found["residual"].shape == (2,)


def test_letters_to_optimise_may_be_one_text():
    with pytest.raises(UnknownName, match="'gama'"):
        hx.curve("glm", alpha=[1, 2], Delta=0.25, optimise="lam, gama")
