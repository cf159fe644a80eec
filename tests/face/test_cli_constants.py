"""hermitex constants: mu_0, mu_1, mu_star by their definitions, exact where a rule applies, to the digits asked."""

import json

import pytest
from sympy import Rational, sqrt

import hermitex as hx
from hermitex.face import cli
from hermitex.symbols import z


def ask(capsys, *argv, status=0):
    assert cli.main(["constants", *argv, "--json"]) == status
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("sigma", ["relu", "erf", "gelu", "sign", "He3(z)/6 + z", "exp(-z)", "z*sign(z - 1)", "Max(z, -z/3)",
                                   "Piecewise((z, z > 1), (z**2, True))"])
def test_the_closed_forms_are_read_back_and_agree_with_the_integrals(capsys, sigma):
    answer = ask(capsys, sigma)
    f = hx.parse(answer["sigma"])
    mean, slope, second = (hx.E(g, z).evalf(25) for g in (f, z*f, f**2))
    expected = {"mu_0": mean, "mu_1": slope, "mu_star": sqrt(second - mean**2 - slope**2)}
    for name, value in expected.items():
        assert abs(hx.parse(answer[name]).evalf(20) - value) < Rational(1, 10**18)
        assert answer["values"][name] == pytest.approx(float(value), rel=1e-14)
    assert answer["digits"] == 15 and answer["notes"] == []


def test_they_are_the_conditional_coefficients_without_a_spike(capsys):
    for sigma in ("tanh", "silu", "gelu"):
        values = ask(capsys, sigma)["values"]
        assert values["mu_0"] == pytest.approx(hx.mu(sigma, 0)(0, r=0, c=1), abs=1e-13)
        assert values["mu_1"] == pytest.approx(hx.mu(sigma, 1)(0, r=0, c=1), rel=1e-12)
        assert values["mu_star"] == pytest.approx(hx.mu_star(sigma)(0, r=0, c=1), rel=1e-12)


def test_what_has_no_closed_form_has_every_digit_asked(capsys):
    assert cli.main(["constants", "tanh", "--digits", "40", "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out, parse_float=str)
    assert (answer["mu_0"], answer["mu_1"], answer["mu_star"], answer["digits"]) == ("0", None, None, 40)
    # Stein: the same number by another integral.
    other = hx.E("1 - tanh(z)**2").evalf(45)
    assert abs(Rational(answer["values"]["mu_1"]) - other) < Rational(1, 10**40) and err.count("\n") == 1


def test_a_small_residual_is_no_difference_of_large_numbers(capsys):
    values = ask(capsys, "z + tanh(z)/10**6")["values"]
    assert values["mu_star"] == pytest.approx(1e-6*ask(capsys, "tanh")["values"]["mu_star"], rel=1e-13)


def test_several_activations_make_a_list_and_a_table(capsys):
    assert [a and a["mu_1"] for a in ask(capsys, "relu", "tahn", "z", status=2)] == ["1/2", None, "1"]
    assert cli.main(["constants", "relu", "-z", "--digits", "6"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["activation", "constant", "exact", "value"]
    assert lines[2] == ["relu", "mu_1", "1/2", "0.5"] and lines[5] == ["-z", "mu_1", "-1", "-1.0"]
    assert [row[1] for row in lines[1:]] == 2*["mu_0", "mu_1", "mu_star"]


def test_a_constant_that_does_not_exist_is_null_with_its_reason(capsys):
    answer = ask(capsys, "exp(z**2/3)")
    assert answer["mu_0"] == "sqrt(3)" and answer["mu_star"] is None and answer["values"]["mu_star"] is None
    assert "mu_star" in answer["notes"][0] and "does not exist" in answer["notes"][0]


@pytest.mark.parametrize("argv, told", [
    (["tan(z)"], "does not exist"), (["tahn"], "did you mean"), (["a*z"], "unknown name"), ([], "SIGMA"),
    (["relu", "--digits", "0"], "--digits"), (["z1*z2"], "z1")])
def test_bad_input_gets_one_line_and_status_2(capsys, argv, told):
    assert cli.main(["constants", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == "" and told in err and err.count("\n") == 1 and "Error:" not in err


def test_fewer_digits_than_asked_are_said(capsys, monkeypatch):
    import mpmath

    monkeypatch.setattr("hermitex.symbolic.precise.evaluate_with_error",
                        lambda expr, digits: (mpmath.mpf(1)/3, mpmath.mpf("1e-7")))
    assert cli.main(["constants", "tanh", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["digits"] == 6 and "6 digits were reached, 15 were asked" in err
