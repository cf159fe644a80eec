"""hermitex curve one-step: the JSON, the files, the exit codes, and one line for what cannot be."""

import csv
import json
import re
from inspect import signature

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, BudgetExceeded
from hermitex.face import cli
from hermitex.face.curve_options import OPTIONS, THEORIES
from hermitex.face.theory_and_experiment import EXPERIMENTS, build
from hermitex.face.verbs.curve_verb import own_words
from hermitex.theories import THEORIES as FACTORIES

BASE = ["curve", "one-step", "--sigma", "tanh", "--target", "sin"]
STEP = ["--alpha0", "20", "--eta", "3", "--lam", "0.1"]
FEATURES = ["--r", "1", "--c", "1", "--gamma", "0.9", "--lam", "1/10"]


def ask(capsys, *argv, status=0):
    """The JSON answer of a command."""
    assert cli.main([*argv, "--json"]) == status
    out, _ = capsys.readouterr()
    return json.loads(out)


def test_the_published_points(capsys):
    answer = ask(capsys, *BASE, *STEP, "--alpha", "0.2:3:5")
    known = [.0484829019195, .0425039287213, .0373113280789, .0343046647450, .0325182080146]
    np.testing.assert_allclose(answer["test_error"], known, rtol=1e-10)
    assert answer["theory"] == "one-step" and answer["alpha"] == pytest.approx([0.2, 0.9, 1.6, 2.3, 3])
    keys = {"theory", "parameters", "alpha", "test_error", "train_error", "order_parameters", "converged", "residual"}
    assert keys <= set(answer)
    names = {"m", "zeta", "psi", "q1", "q2", "V1", "V2", "Vhat1", "Vhat2", "qhat1", "qhat2", "zetatilde", "psitilde"}
    assert names <= set(answer["order_parameters"])
    assert answer["parameters"]["sigma"] == "tanh" and answer["parameters"]["target"] == "sin"
    assert {"r", "c", "gamma"} <= set(answer["parameters"]) and answer["converged"] == [True]*5
    assert all(len(v) == 5 for v in answer["order_parameters"].values())


def test_what_python_gives_is_what_is_printed(capsys):
    answer = ask(capsys, *BASE, *FEATURES, "--alpha", "0.5,2", "--beta", "3/2", "--Delta", "0.1", "--dimension", "600",
                 "--bias", "-1/2")
    known = hx.curve("one-step", sigma="tanh", target="sin", alpha=[0.5, 2], r=1, c=1, gamma=0.9, lam=0.1, beta=1.5, Delta=0.1,
                     dimension=600, bias=-0.5)
    np.testing.assert_allclose(answer["test_error"], known.test_error, rtol=1e-12)


@pytest.mark.parametrize("options, structure", [
    (["--rows", "gaussian"], dict(rows="gaussian")),
    (["--vocabulary", "1,-1.5", "--fractions", "0.25,3/4", "--norms", "1,2"],
     dict(vocabulary=[1, -1.5], fractions=[0.25, 0.75], norms=[1, 2]))])
def test_the_structure_of_a_theory(capsys, options, structure):
    features = ["--r", "1", "--gamma", "0.9", "--lam", "0.1", *(["--c", "1"] if "rows" in structure else [])]
    answer = ask(capsys, *BASE, *features, *options, "--alpha", "1")
    numbers = dict(r=1, gamma=0.9, lam=0.1, **({"c": 1} if "rows" in structure else {}))
    known = hx.curve("one-step", sigma="tanh", target="sin", alpha=[1], **structure, **numbers)
    np.testing.assert_allclose(answer["test_error"], known.test_error, rtol=1e-10)


def test_a_target_may_begin_with_a_minus_and_alpha0_be_infinite(capsys):
    words = ["curve", "one-step", "--sigma", "erf", "--target", "-sin(z)", "--eta", "1", "--lam", "1e-2"]
    answer = ask(capsys, *words, "--alpha", "1", "--alpha0", "inf")
    assert answer["parameters"]["alpha0"] == "inf" and answer["parameters"]["gamma"] == -1
    both = ask(capsys, *words, "--alpha", "1,sqrt(2)", "--alpha0", "4/2,inf")
    assert [one["parameters"]["alpha0"] for one in both] == [2, "inf"] and both[0]["alpha"][1] == 2**0.5


def test_the_simulation(capsys):
    answer = ask(capsys, *BASE, *FEATURES, "--alpha", "0.5,1", "--simulate", "--seeds", "3", "--simulate-dimension", "50")
    found = answer["simulation"]
    assert {"alpha", "test_error", "train_error", "standard_error", "seeds"} <= set(found)
    assert found["seeds"] == [0, 1, 2] and found["parameters"]["dimension"] == 50 and found["alpha"] == answer["alpha"]
    assert all(e > 0 for e in found["standard_error"]["test_error"])
    out = _text(capsys, *BASE, *FEATURES, "--alpha", "0.5,1", "--simulate", "--seeds", "2", "--dimension", "50")
    assert "experiment at d = 50, 2 seeds" in out and "test_error_se" in out


def test_reference_lines_are_those_of_one_curve(capsys):
    for several in (["--sigma", "tanh", "--beta", "1,2"], ["--sigma", "tanh,relu"]):
        assert cli.main([*BASE[:2], *BASE[4:], *STEP, "--alpha", "1,2", *several, "--baselines"]) == 2
        assert "--baselines" in capsys.readouterr().err


@pytest.mark.parametrize("letter", ["lam", "r"])
def test_reference_lines_beside_the_best_ridge_have_their_own(capsys, tmp_path, letter):
    """A spike that takes its best value is none of theirs."""
    place, step = tmp_path/"f.svg", ["--c", "1", "--gamma", "0.9", *(["--r", "1"] if letter == "lam" else ["--lam", "0.1"])]
    argv = [*BASE, *step, "--alpha", "0.5,1", "--optimise", letter, "--within", "1e-3:5", "--baselines", "--plot", str(place)]
    assert cli.main(argv) == 0 and "random features" in place.read_text()
    way = dict(optimise="lam", bounds=(1e-3, 5)) if letter == "lam" else dict(lam=0.1)
    lines = hx.baselines("one-step", sigma="tanh", target="sin", alpha=[0.5, 1], c=1, gamma=0.9,
                         **(way | (dict(optimise="r") if letter == "r" else {"r": 1})))
    for i, a in enumerate([0.5, 1]):  # nothing on a grid around is lower
        at = np.geomspace(1e-3, 5, 40) if letter == "lam" else np.array([0.1])
        known = hx.theories.one_step("tanh", "sin").solve(alpha=a, r=0, c=1, gamma=0, lam=at)["test_error"].min()
        assert known - 1e-3 < lines.random_features.test_error[i] <= known + 1e-12


def test_several_letters_have_their_best_values(capsys):
    argv = ["curve", "random-features", "--sigma", "tanh", "--target", "sin", "--alpha", "2", "--Delta", "0.2", "--json"]
    assert cli.main([*argv, "--optimise", "lam,gamma", "--within", "1e-3:10,0.2:2"]) == 0
    found = json.loads(capsys.readouterr().out)
    bounds = {"lam": (1e-3, 10), "gamma": (0.2, 2)}
    best = hx.theories.random_features("tanh", "sin").minimise("test_error", ["lam", "gamma"], bounds, alpha=2, Delta=0.2)
    assert [found[n][0] for n in ("lam", "gamma", "test_error")] == [best[n] for n in ("lam", "gamma", "test_error")]
    assert cli.main([*argv, "--optimise", "lam,gamma", "--within", "1:2,1:2,1:2"]) == 2
    assert "one for each letter" in capsys.readouterr().err


def test_the_files(capsys, tmp_path):
    picture, table, papers = tmp_path/"f.svg", tmp_path/"f.csv", tmp_path/"f.bib"
    files = ["--plot", str(picture), "--csv", str(table), "--bib", str(papers)]
    out = _text(capsys, *BASE, *STEP, "--alpha", "0.5:2:4", *files, "--baselines")
    assert out.split()[:3] == ["alpha", "test_error", "train_error"]
    text = picture.read_text()
    assert "<svg" in text and "best linear predictor" in text and "random features" in text
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and {"zetatilde", "residual", "converged"} <= set(rows[0])
    assert "cui2024" in papers.read_text()


def test_a_failed_point_is_null_and_status_1(capsys):
    """Without a ridge the error diverges where n = p, and there only."""
    argv = [*BASE, *FEATURES[:-1], "0", "--alpha", "0.5,1,2"]
    answer = ask(capsys, *argv, status=1)
    assert [v is None for v in answer["test_error"]] == [False, True, False] and answer["converged"] == [True, False, True]
    assert answer["order_parameters"]["q2"][1] is None
    assert cli.main(argv) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4 and err.count("\n") == 1 and "alpha = 1" in err


@pytest.mark.parametrize("argv, word", [
    (["curve"], "THEORY"),
    (["curve", "one-stp", "--alpha", "1"], "one-step"),
    (["curve", "one-step", "--alpha", "1"], "--sigma"),
    ([*BASE, *STEP], "--alpha"),
    ([*BASE, *STEP, "--alpha", "a"], "number"),
    ([*BASE, *STEP, "--alpha", "0"], "alpha"),
    ([*BASE, *STEP, "--alpha", "-1"], "alpha"),
    ([*BASE, "--alpha", "1", "--lam", "0.1"], "alpha0"),
    ([*BASE, *STEP, *FEATURES[:2], "--alpha", "1"], "either"),
    ([*BASE, "--alpha", "1", "--alpha0", "0", "--eta", "1", "--lam", "1"], "alpha0"),
    ([*BASE, "--alpha", "1", "--r", "1", "--c", "1", "--gamma", "1.2", "--lam", "1"], "gamma"),
    ([*BASE, "--alpha", "1", "--r", "nan", "--c", "1", "--gamma", "1", "--lam", "1"], "nan"),
    ([*BASE, "--alpha", "1", "--r", "1", "--c", "-1", "--gamma", "1", "--lam", "1"], "c = -1"),
    ([*BASE, "--alpha", "1", "--r", "1", "--c", "1", "--gamma", "1", "--lam", "-1"], "lam"),
    ([*BASE, *STEP, "--alpha", "1", "--optimise", "lamm"], "lam"),
    ([*BASE, *STEP, "--alpha", "1", "--within", "1:2"], "--optimise"),
    ([*BASE, *STEP, "--alpha", "1", "--beta", "1,2", "--simulate"], "--alpha alone"),
    ([*BASE, *STEP, "--alpha", "1", "--lamda", "1"], "--lam"),
    ([*BASE, *STEP, "--alpha", "1", "--network", "exat"], "exact"),
    ([*BASE, *STEP, "--alpha", "1", "--rows", "cube"], "sphere"),
    ([*BASE, *STEP, "--alpha", "1", "--plot", "/nowhere/f.gif"], ".pdf"),
    ([*BASE, *STEP, "--alpha", "1", "--csv", "/nowhere/f.csv"], "nowhere"),
    ([*BASE, *STEP, "--alpha", "1", "--simulate", "--seeds", "0"], "seeds"),
    ([*BASE, *STEP, "--alpha", "1", "--simulate", "--model", "nets"], "network"),
    ([*BASE, *STEP, "--alpha", "1", "--vocabulary", "1,2", "--fractions", "1"], "fractions"),
    (["curve", "one-step", "--sigma", "tanh", "--target", "exp(z**2)", "--alpha", "1", *STEP], "square integrable"),
    (["curve", "one-step", "--sigma", "tannh", "--target", "sin", "--alpha", "1", *STEP], "tanh"),
])
def test_hostile_input_is_one_line_and_status_2(capsys, argv, word):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and word in err and "Traceback" not in err, err


def test_every_option_of_an_entry_is_declared():
    from hermitex.face.curve_options import OPTIONS, THEORIES

    for entry in THEORIES.values():
        assert {*entry.functions, *entry.structure, *entry.numbers} <= set(OPTIONS)


def _text(capsys, *argv):
    assert cli.main(list(argv)) == 0
    return capsys.readouterr().out


def test_several_activations_targets_and_numbers_are_a_curve_each(capsys, tmp_path):
    words = ["curve", "one-step", "--target", "sin", "--alpha", "0.5,2", "--alpha0", "5", "--eta", "1"]
    csv = tmp_path/"all.csv"
    assert cli.main([*words, "--sigma", "tanh, Max(z, -1)", "--lam", "0.1,1", "--json", "--csv", str(csv),
                     "--plot", str(tmp_path/"all.svg"), "--bib", str(tmp_path/"all.bib")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(f["parameters"]["sigma"], f["parameters"]["lam"]) for f in found] == [
        ("tanh", 0.1), ("tanh", 1), ("Max(z, -1)", 0.1), ("Max(z, -1)", 1)]
    assert cli.main([*words, "--sigma", "Max(z, -1)", "--lam", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found[3]
    rows = hx.load(csv)
    assert list(rows["test_error"]) == [v for f in found for v in f["test_error"]]
    picture = (tmp_path/"all.svg").read_text()
    assert picture.count("tanh") >= 2 and (tmp_path/"all.bib").read_text().count("@") == 1
    assert cli.main([*words, "--sigma", "tanh", "--lam", "0.1,1"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "=" in line] == ["lam = 0.1", "lam = 1"]


def test_with_one_alpha_the_longest_list_is_the_axis(capsys):
    words = ["curve", "one-step", "--sigma", "tanh", "--target", "sin", "--alpha", "1", "--alpha0", "5", "--eta", "1", "--json"]
    assert cli.main([*words, "--lam", "0.1,0.2,0.3", "--beta", "1,2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [f["parameters"]["beta"] for f in found] == [1, 2] and found[0]["lam"] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("wrong", [["--sigma", "tanh,"], ["--sigma", "tanh", "--lam", "0.1:1:50"], ["--sigma", "tanh,tanhh"]])
def test_bad_lists_are_one_line(wrong, capsys):
    words = ["curve", "one-step", "--target", "sin", "--alpha", "1,2", "--alpha0", "5", "--eta", "1"]
    assert cli.main([*words, *wrong]) == cli.BAD_INPUT
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "Traceback" not in err


def test_several_losses_are_a_curve_each(capsys):
    words = ["curve", "glm", "--alpha", "1,2", "--lam", "0.5"]
    both = ask(capsys, *words, "--loss", "square, huber:1")
    assert [one["parameters"]["loss"] for one in both] == ["square", "huber:1"]
    assert both[1]["test_error"] == ask(capsys, *words, "--loss", "huber:1")["test_error"] != both[0]["test_error"]


@pytest.mark.parametrize(("words", "says"), [
    (("--fraction", "0.3"), "--labels mixture"), (("--bias", "1"), "--intercept"),
    (("--fraction", "abc"), "--fraction: 'abc' is not a number")])
def test_a_number_of_another_structure_names_what_brings_it(words, says, capsys):
    assert cli.main(["curve", "glm", "--alpha", "1", "--lam", "0.1", *words]) == cli.BAD_INPUT
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


@pytest.mark.parametrize("words", [
    ("random-features", "--sigma", "tanh", "--target", "sin", "--alpha", "1"),
    ("giant-step", "--sigma", "tanh", "--target", "tanh", "--samples", "1"),
    ("kernel-ridge", "--sigma", "tanh", "--target", "sin", "--n", "9"), ("glm", "--alpha", "1")])
def test_what_is_missing_is_named_as_an_option_and_the_advice_works(words, capsys):
    given = ["curve", *words]
    for _ in range(4):
        status = cli.main(given)
        if status == cli.ANSWERED:
            break
        said = capsys.readouterr().err
        assert status == cli.BAD_INPUT and "is needed, for instance --" in said
        given += said.strip().rsplit("for instance ", 1)[1].split()
    assert status == cli.ANSWERED and len(given) > 1 + len(words)


COMMITTEE = ["curve", "committee", "--sigma", "erf", "--gamma", "0.5", "--t", "0,1", "--dimension", "100"]
TREE = ["curve", "tree", "--target", "tanh", "--P", "2:1,3:1", "--epsilon1", "1/2", "--kappa", "3"]
GIANT = ["curve", "giant-step", "--sigma", "relu", "--target", "He2", "--u", "1", "--samples", "1"]


@pytest.mark.parametrize("argv, says", [
    ([*COMMITTEE, "--second", "2"], "second is taken with readout='trained' only"),
    ([*COMMITTEE, "--optimise", "gamma"], "--optimise is not an option of committee"),
    ([*COMMITTEE, "--refine", "3"], "--refine is not an option of committee"),
    ([*COMMITTEE, "--simulate", "--model", "network"], "--model is not an option of committee"),
    ([*GIANT, "--optimise", "u"], "--optimise is not an option of giant-step"),
    ([*GIANT, "--baselines"], "--baselines is not an option of giant-step"),
    ([*GIANT, "--seeds", "3"], "--seeds belongs to --simulate"),
    ([*GIANT, "--simulate-dimension", "30"], "--simulate-dimension belongs to --simulate"),
    ([*BASE, *FEATURES, "--alpha", "1", "--model", "network"], "--model belongs to --simulate"),
    ([*TREE, "--optimise", "epsilon1"], "whose only number is --kappa"),
    ([*TREE[:4], "--P", "2:1,2:3", *TREE[6:]], "each order once"), ([*TREE[:4], *TREE[6:]], "--P is needed, for instance --P 2:1"),
    (["curve", "mean-field-parity", "--alpha", "0,1", "--refine", "3"], "--refine is not an option of mean-field-parity")])
def test_an_option_that_would_do_nothing_is_refused(argv, says, capsys):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert not out and says in err and err.count("\n") == 1


@pytest.mark.parametrize("theory, numbers, says", [
    (hx.theories.giant_step("relu", "He2"), {"samples": [1], "optimise": "u"}, "contains no error"),
    (hx.theories.mean_field_parity(2), {"alpha": [0.5], "refine": 2}, "contains no error"),
    (hx.theories.committee("erf"), {"t": [0, 1], "gamma": 1, "dimension": 50, "refine": 2}, "solved at every point"),
    (hx.theories.spiked_covariance("He2"), {"t": [1], "gamma_2": 0.5, "dimension": 50, "optimise": "m0"}, "solved at every point"),
    (hx.theories.committee("erf"), {"t": [0, 1], "gamma": 1, "dimension": 50, "second": 2}, "readout='trained'"),
    (hx.theories.giant_step("relu", "He2"), {"samples": [1], "u": 1, "simulate": {"model": "network"}}, "no model")])
def test_a_keyword_that_would_do_nothing_is_refused(theory, numbers, says):
    with pytest.raises(hx.errors.BadInput, match=says):
        hx.curve(theory, **numbers)


def test_infinity_is_no_failed_point(capsys):
    answer = ask(capsys, *TREE, "--scenario", "III")
    assert answer["order_parameters"]["degree"] == ["inf"] and answer["test_error"] == [0] and answer["converged"] == [True]


def test_a_trained_readout_is_in_the_table(capsys):
    assert cli.main([*COMMITTEE, "--readout", "trained", "--second", "0.5"]) == 0
    assert capsys.readouterr().out.split("\n")[0].split()[-2:] == ["a1", "a2"]


@pytest.mark.parametrize("theory, lacks", [("committee", "--optimise"), ("small-step", "--optimise"), ("tree", "--optimise"),
                                           ("kernel", "--simulate"), ("giant-step", "--model"), ("tree", "--model"),
                                           *((name, "--baselines") for name in hx.theories.THEORIES if name != "one-step")])
def test_the_help_of_one_theory_has_no_option_that_it_refuses(theory, lacks, capsys):
    assert cli.main(["curve", theory, "--help"]) == 0
    own = capsys.readouterr().out
    assert cli.main(["curve", "one-step", "--help"]) == 0
    assert lacks not in own and lacks in capsys.readouterr().out


@pytest.mark.parametrize("theory", THEORIES)
def test_the_help_of_one_theory_speaks_of_that_one(theory, capsys):
    """Every option says something, of no other theory, its tolerance is its own; the kernel alone has no experiment."""
    entry = THEORIES[theory]
    for name in (*entry.functions, *entry.structure, *entry.numbers):
        said = own_words(OPTIONS[name][2], theory)
        assert said and "likewise" not in said.split("; ")[0].split(": ")[0] and "..;" not in said, name
        assert not any(re.search(rf"(^|; |\(){other}: ", said) for other in THEORIES), (name, said)
    assert entry.experiment == (theory in EXPERIMENTS)
    assert cli.main(["curve", theory, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{theory}; `hermitex curve --help`" in said and "THEORY --help" not in said
    assert ("of an experiment" in said) == entry.experiment
    assert f"of every solve (default: {entry.tolerance})" in said


@pytest.mark.parametrize("theory, made", [
    ("glm", lambda t: t.glm()), ("sgd", lambda t: t.sgd("z", "z")), ("bayes-amp", lambda t: t.multi_index("z")),
    ("spiked-covariance", lambda t: t.spiked_covariance("z")), ("committee", lambda t: t.committee("z"))])
def test_the_tolerance_that_the_help_names_is_the_default(theory, made):
    own = signature(made(hx.theories).curve).parameters["tolerance"].default
    assert float(THEORIES[theory].tolerance.split(";")[0]) == (own or 1e-8)


@pytest.mark.parametrize("theory", [n for n, entry in THEORIES.items() if "target" in entry.functions])
def test_the_help_of_a_target_speaks_of_several_directions_where_the_theory_knows_them(theory):
    words = {"sigma": "tanh", "P": "2:1,3:1", "epsilon1": "1/2"}
    given = {n: words[n] for n in (*THEORIES[theory].functions, *THEORIES[theory].structure) if n in words and (
        theory != "spiked-covariance")}
    try:
        made = bool(build(FACTORIES[theory], theory, {"target": "z1*z2 + z1", **given}))
    except BadInput:
        made = False
    assert ("z1, z2" in own_words(OPTIONS["target"][2], theory)) == made


@pytest.mark.parametrize("theory, half", [("glm", True), ("covariate", True), ("random-features", True), ("one-step", False)])
def test_the_help_says_whose_train_error_is_half_a_square(theory, half, capsys):
    """As it is: a fit that is zero everywhere leaves half of E y^2, or all of it."""
    assert cli.main(["curve", theory, "--help"]) == 0
    assert ("half the squared difference" in " ".join(capsys.readouterr().out.split())) == half
    heavy = {"glm": lambda: hx.theories.glm().solve(alpha=1, lam=1e9), "covariate": lambda: hx.theories.covariate().solve(
                 alpha=1, lam=1e9, Omega=[1.0], Psi=[1.0], Phi=[1.0], theta=[1.0]),
             "random-features": lambda: hx.theories.random_features("tanh", "z").solve(alpha=1, gamma=1, lam=1e9),
             "one-step": lambda: hx.theories.one_step("tanh", "z").solve(alpha=1, r=0, c=1, gamma=0, lam=1e9)}
    assert heavy[theory]().train_error == pytest.approx(0.5 if half else 1, abs=1e-5)


def test_a_budget_that_is_asked_for_ends_the_experiment(capsys, tmp_path):
    """What the theory says is printed and written all the same."""
    place = tmp_path/"curve.csv"
    argv = [*BASE, *STEP, "--alpha", "1", "--simulate", "--simulate-dimension", "3000", "--budget", "1.5", "--csv", str(place)]
    cli.main([*BASE, *STEP, "--alpha", "1"])  # the formulas are compiled: the time is that of the experiment
    known = capsys.readouterr().out
    assert cli.main(argv) == 1
    out, err = capsys.readouterr()
    assert out == known and place.exists()
    assert "the experiment is left out: --budget 1.5 was over after 0 of 16 seeds" in err
    assert "smaller with a --simulate-dimension below 3000" in err and "--seeds" not in err


def test_the_seeds_that_a_budget_has_room_for_are_fewer_than_those_asked(capsys, monkeypatch):
    from hermitex.face import theory_and_experiment as face

    def slow(theory, alpha, options, heard, **numbers):
        heard(3, options["seeds"])
        raise BudgetExceeded(7.0)

    monkeypatch.setattr(face, "experiment", slow)
    assert cli.main([*BASE, *STEP, "--alpha", "1", "--simulate", "--seeds", "4", "--budget", "7"]) == 1
    assert "after 3 of 4 seeds" in (err := capsys.readouterr().err)
    assert "about 11 s are needed" in err and "smaller with --seeds 2 or a smaller --simulate-dimension" in err
    kernel = ["curve", "kernel-ridge", "--sigma", "tanh", "--target", "sin", "--dimension", "50", "--lam", "0.1", "--n", "20"]
    assert cli.main([*kernel, "--simulate", "--seeds", "4", "--budget", "7"]) == 1
    assert "smaller with --seeds 2 or a --dimension below 50" in capsys.readouterr().err


def test_a_short_experiment_says_nothing_where_nobody_asked(capsys):
    argv = [*BASE, *STEP, "--alpha", "1", "--simulate", "--simulate-dimension", "40", "--seeds", "2"]
    assert cli.main(argv) == 0
    assert capsys.readouterr().err == ""
    assert cli.main([*argv, "--progress"]) == 0
    assert "experiment: 2 of 2 seeds" in capsys.readouterr().err


def test_a_best_value_at_an_end_of_its_bounds_is_reported(capsys):
    assert cli.main(["curve", "glm", "--alpha", "1,2", "--Delta", "0.5", "--optimise", "lam", "--within", "1e-6:1e-4"]) == 0
    said = capsys.readouterr().err
    assert "lam at the upper end at 2 of 2 points" in said and "--within" in said
