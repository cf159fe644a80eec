"""What ``hermitex bounds`` answers: its keys, exact options, one line for what cannot be."""

import json

import pytest

import hermitex as hx
from hermitex.face import cli


def ask(capsys, *argv, status=0):
    assert cli.main(["bounds", *argv, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_keys_and_values(capsys):
    found = ask(capsys, "--sigma", "tanh", "--target", "sin", "--r", "0.9", "--c", "1", "--bias")
    assert set(found) >= {"upper", "lower", "upper_bias", "lower_bias", "r", "c", "gamma", "coefficients"}
    assert found["upper"] == pytest.approx(0.029104900643, abs=1e-12) and found["lower"] == pytest.approx(0.001669053251, abs=1e-12)
    assert found["coefficients"]["b"] == pytest.approx([0.0523529, 1.7309086], abs=1e-7) and found["b_lower"] == 0


def test_optimise(capsys):
    found = ask(capsys, "--sigma", "erf", "--target", "erf", "--optimise")
    assert found["lower"] == pytest.approx(0, abs=1e-15) and found["r_lower"] == pytest.approx(3**0.5, abs=1e-6)
    assert found["eta_over_beta_upper"] == pytest.approx(4.0810, abs=1e-4) and found["r"] is None
    far = ask(capsys, "--sigma", "relu", "--target", "relu", "--optimise")
    assert far["r_upper"] is None and far["eta_over_beta_lower"] is None and any("infinity" in n for n in far["notes"])


def test_a_gradient_step_and_exact_numbers(capsys):
    step = ask(capsys, "--sigma", "tanh", "--target", "sin", "--alpha0", "20", "--eta", "3", "--beta", "1")
    assert step["r"] == pytest.approx(1.1340555093) and step["gamma"] == pytest.approx(0.9718544445)
    assert ask(capsys, "--sigma", "erf", "--target", "erf", "--r", "sqrt(3)")["upper"] == pytest.approx(0, abs=1e-15)
    minus = ask(capsys, "--sigma", "-tanh(z)", "--target", "-sin(z)", "--r", "0.9", "--gamma", "-1")
    assert minus["lower"] == pytest.approx(0.001669053251, abs=1e-12)


def test_text(capsys, tmp_path):
    picture = tmp_path / "bounds.png"
    assert cli.main(["bounds", "--sigma", "tanh", "--target", "sin", "--r", "0.9", "--plot", str(picture)]) == 0
    assert "upper bound  0.0291049006433" in capsys.readouterr().out and picture.stat().st_size > 10_000


@pytest.mark.parametrize("wrong", [[], ["--r", "nan"], ["--r", "1", "--c", "0"], ["--r", "1", "--gamma", "2"],
                                   ["--alpha0", "0", "--eta", "1"], ["--r", "1", "--eta", "1"], ["--r", "kappa"],
                                   ["--r", "1", "--optimise"], ["--r", "1", "--plot", "x.xyz"]])
def test_hostile_numbers_get_one_line(capsys, wrong):
    assert cli.main(["bounds", "--sigma", "tanh", "--target", "sin", *wrong]) == cli.BAD_INPUT
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "Traceback" not in err


def test_hostile_functions_get_one_line(capsys):
    for sigma, target in (("tanh", "exp(z**2/2)"), ("tanhh", "sin"), ("z1*z2", "sin"), ("tanh", "a*z")):
        assert cli.main(["bounds", "--sigma", sigma, "--target", target, "--r", "1"]) == cli.BAD_INPUT
        assert capsys.readouterr().err.count("\n") == 1


def test_several_numbers_at_once_are_for_python(capsys):
    assert cli.main(["bounds", "--sigma", "tanh", "--target", "sin", "--r", "0.5,1,2"]) == 2
    said = capsys.readouterr().err
    assert "--r takes one number" in said and "hx.bounds('tanh', 'sin', ..., r=[0.5, 1, 2])" in said
    assert len(hx.bounds("tanh", "sin", r=[0.5, 1, 2]).upper) == 3
