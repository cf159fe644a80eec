"""What ``hermitex value`` answers, and the theories of one and several steps on the command line; one line for bad input."""

import json
import re

import numpy as np
import pytest

import hermitex as hx
from hermitex.face import cli
from hermitex.face.curve_options import OPTIONS, THEORIES
from hermitex.face.verbs.value_verb import OWN, QUANTITIES

theories = hx.theories
SOFT = ["--sigma", "softplus", "--target", "z1 + z1*z2"]
WAVE = "sin(z) + 4*He2(z)/(5*sqrt(2)) + He3(z)/(2*sqrt(6))"


def ask(capsys, *argv):
    assert cli.main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_learned_function(capsys):
    found = ask(capsys, "value", "learned", "--sigma", "tanh", "--target", "sin", "--alpha", "2", "--lam", "0.05", "--r", "1.8",
                "--c", "1.1", "--gamma", "0.9", "--z=-2,0.5")
    assert found["mean"] == pytest.approx([-.8763808805, .4192559880], abs=1e-9)  # theory sheet one_step_2, A3
    assert found["spread"] == pytest.approx([.0685907794, .2745113885], abs=1e-9) and found["z"] == [-2, 0.5]


def test_which_direction_appears_when(capsys):
    found = ask(capsys, "value", "path", *SOFT, "--steps", "2", "--alpha0", "4", "--eta", "2", "--Delta", "0.1")
    assert found["overlap1"] == pytest.approx([1, 1.0846725606254], abs=1e-11)  # theory sheet one_step_2, A2_steps
    assert found["overlap2"] == pytest.approx([0, .3534007383787], abs=1e-11)
    found = ask(capsys, "value", "path", "--sigma", "erf", "--target", "z1 + z1*z2", "--steps", "2", "--vocabulary", "1,-1.5",
                "--alpha0", "4", "--eta", "1", "--beta", "0.8")
    assert found["overlap2_1"] == pytest.approx([-1.2215062797562, -1.4704310308963], abs=1e-11) and found["rank"] == [1, 2]


@pytest.mark.parametrize("argv, known", [
    (("free-energy", "--target", "sign(z)", "--alpha", "1,2"),
     {"information": [.596441256, 1.031038156], "branch": ["uninformed"]*2}),
    (("transitions", "--target", "abs(z)"), {"weak_recovery": 0.5, "alpha_IT": 1.0}),
    (("escape-time", "--target", "He3(z)/sqrt(6)", "--dimension", "1e4", "--gamma_1", "0.2", "--gamma_2", "0.3"),
     {"escape_time": [5.3692092]}),
    (("escape-time", "--target", "He3(z)/sqrt(6)", "--dimension", "1e4", "--gamma_1", "0.2", "--gamma_2", "0.3", "--plain"),
     {"escape_time": [1.0108784]}),
    (("threshold", "--k", "3", "--prior", "2"), {"threshold": .0271252572}),
    (("floor", "--target", "z1 + z1*z2"), {"variance": 2, "sharp": 1}),
    (("floor", "--target", "z1 + z1*z2", "--known", "1,0"), {"variance": 1, "sharp": 0})])
def test_the_quantities_of_the_sheets(argv, known, capsys):
    found = ask(capsys, "value", *argv)
    for name, value in known.items():
        assert found[name] == (value if name == "branch" else pytest.approx(value, abs=5e-8)), name


@pytest.mark.parametrize("argv, name, known", [
    (("spectral", "--target", "abs(z)", "--alpha", "0.75,2"), "squared_overlap", [.111203595, .638881278]),
    (("spectral", "--target", "abs(z)", "--T", "min(y**2, 6)", "--alpha", "2"), "eigenvalue", [5.902501]),
    (("small-step-ridge", "--sigma", "tanh", "--target", "sin", "--psi1", "2", "--psi2", "1", "--alpha", "1.5", "--lam", "0.1",
      "--eta", "0,2", "--Delta", "0.1"), "test_error", [.308914977, .267745025]),
    (("intermediate-step", "--sigma", "tanh(z + 1)", "--target", WAVE, "--s", "0.6,0.8,0.85", "--psi1", "2", "--psi2", "1",
      "--alpha", "1.5", "--lam", "0.1", "--Delta", "0.1"), "test_error", [1.127510513, .999330047, .994416869]),
    (("batch-reuse", "--sigma", "relu", "--target", "tanh", "--alpha", "3", "--eta", "1", "--steps", "2"), "cosine_2", [.54134])])
def test_the_curves_of_the_sheets(argv, name, known, capsys):
    found = ask(capsys, "curve", *argv)
    assert {**found, **found["order_parameters"]}[name] == pytest.approx(known, abs=2e-6)


def test_several_steps_and_letters_with_biases(capsys):
    words = ["--alpha", "2", "--lam", "0.1"]
    found = ask(capsys, "curve", "one-step", *SOFT, *words, "--steps", "2", "--alpha0", "4", "--eta", "2")
    own = theories.one_step("softplus", "z1 + z1*z2", steps=2).solve(alpha=2, lam=0.1, alpha0=4, eta=2)
    assert found["test_error"] == [own["test_error"]] and found["order_parameters"]["Gamma2"][0] == own["Gamma2"]
    found = ask(capsys, "curve", "one-step", "--sigma", "tanh", "--target", "z1 + z1*z2", *words, "--vocabulary", "1,1",
                "--biases=.5,-.5", "--r", "1", "--c", "1", "--gamma", "0.9")
    own = theories.one_step("tanh", "z1 + z1*z2", vocabulary=[1, 1], biases=[.5, -.5]).solve(alpha=2, lam=0.1, r=1, c=1, gamma=0.9)
    assert found["test_error"] == [own["test_error"]]


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_the_help_of_a_quantity_shows_its_own_options_with_words(quantity, capsys):
    assert cli.main(["value", quantity, "--help"]) == 0
    said = capsys.readouterr().out
    own = {n.rstrip("*") for n in QUANTITIES[quantity].options}
    shown = set(re.findall(r"^  --(\w+)", said, re.M)) - {"json", "budget"}
    assert shown == own and "several make" not in said and "--simulate" not in said
    assert own <= {*OPTIONS, *OWN} and QUANTITIES[quantity].theory in THEORIES


def test_a_table_and_lines(capsys):
    assert cli.main(["value", "path", *SOFT, "--steps", "2", "--alpha0", "4", "--eta", "2"]) == 0
    head, _, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["step", "overlap1", "overlap2", "norm", "c"] and np.isclose(float(second.split()[1]), 1.085224034)
    assert cli.main(["value", "threshold"]) == 0 and capsys.readouterr().out == "threshold  0.05763882318\n"


@pytest.mark.parametrize("argv, word", [
    (["value"], "QUANTITY"), (["value", "pth"], "did you mean path"), (["value", "path", *SOFT], "--steps is needed"),
    (["value", "path", *SOFT, "--steps", "2,3", "--alpha0", "4", "--eta", "2"], "--steps is a whole number"),
    (["value", "path", *SOFT, "--steps", "0", "--alpha0", "4", "--eta", "2"], "steps is an integer of 1 or more"),
    (["value", "threshold", "--sigma", "tanh"], "--sigma is not an option of threshold"),
    (["value", "threshold", "--prior", "0"], "prior"), (["value", "threshold", "--k", "x"], "k is an integer"),
    (["value", "floor", "--target", "z1*z2", "--known", "1"], "1 entries"),
    (["value", "floor", "--target", "z1*z2", "--known", "a,b"], "a row"),
    (["value", "escape-time", "--target", "He3", "--dimension", "9", "--gamma_1", "2", "--gamma_2", "0"], "gamma_1"),
    (["value", "free-energy", "--target", "sign(z)", "--alpha", "a"], "--alpha is a number"),
    (["value", "learned", "--sigma", "tanh", "--target", "sin", "--alpha", "1", "--lam", "0.1", "--r", "1", "--c", "1", "--gamma",
      "1"], "z"),
    (["curve", "spectral", "--target", "abs(z)", "--alpha", "1", "--T", "z"], "function of y alone"),
    (["curve", "spectral", "--target", "abs(z)", "--alpha", "1", "--optimise", "alpha"], "--optimise"),
    (["curve", "one-step", *SOFT, "--steps", "1.5", "--alpha", "1", "--alpha0", "1", "--eta", "1"], "--steps is a whole"),
    (["curve", "one-step", *SOFT, "--biases", "1,2", "--alpha", "1", "--lam", "1", "--r", "1"], "belong to a vocabulary"),
    (["curve", "small-step-ridge", "--sigma", "tanh", "--target", "sin", "--alpha", "1"], "--lam is needed"),
    (["curve", "intermediate-step", "--sigma", "tanh", "--target", "sin", "--s", "0.4", "--psi1", "2", "--psi2", "1",
      "--alpha", "1", "--lam", "0.1"], "between 1/2 and 1")])
def test_bad_input_is_one_line_and_status_2(argv, word, capsys):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and word in err and "Traceback" not in err, err
