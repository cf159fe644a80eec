"""What each verb answers: the JSON of the command line, its status, and the text a person reads."""

import json
import subprocess
import sys

import pytest
from sympy import E as EULER
from sympy import Rational, Symbol, asin, erf, exp, pi, sqrt

import hermitex as hx
from hermitex.face import cli
from hermitex.symbols import c, kappa, r


def ask(capsys, *argv, status=0):
    """The JSON answer of a command."""
    assert cli.main([*argv, "--json"]) == status
    out, _ = capsys.readouterr()
    return json.loads(out)


def shown(capsys, *argv, status=0):
    """(stdout, stderr) of a command."""
    assert cli.main(list(argv)) == status
    return capsys.readouterr()


# -- expect ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, value", [
    ("z**6", 15), ("relu(z)", 1/sqrt(2*pi)), ("exp(z)", exp(Rational(1, 2))), ("exp(2*z)/exp(1)", EULER),
    ("sign(z1)*sign(z2)*z1*z2", 2/pi), ("7/3", Rational(7, 3)), ("E(z1*E(z1*z2**2, z2))", 1)])
def test_expect_is_exact_and_read_back(capsys, text, value):
    answer = ask(capsys, "expect", text)
    assert (hx.parse(answer["exact"]) - value).equals(0)
    assert answer["value"] == pytest.approx(float(value), rel=1e-15)
    assert answer["digits"] == 15 and answer["error"] <= 1e-15*abs(answer["value"])
    assert set(answer) >= {"exact", "value", "digits", "error"}


def test_expect_without_a_closed_form_gives_the_digits_asked(capsys):
    answer = ask(capsys, "expect", "z*tanh(z)", "--digits", "40")
    assert answer["exact"] is None and answer["digits"] == 40
    assert cli.main(["expect", "z*tanh(z)", "--digits", "40", "--json"]) == 0
    text = capsys.readouterr().out
    digits = text.split('"value": ')[1].split(",")[0]
    # Stein: the same number by another integral
    other = hx.E("1 - tanh(z)**2").evalf(40)
    assert len(digits.removeprefix("0.")) == 40 and abs(other - Rational(digits)) < Rational(10)**-39


def test_expect_with_parameters(capsys):
    answer = ask(capsys, "expect", "erf(mu + s*z)", "--let", "mu, s>0")
    mu, s = Symbol("mu", real=True), Symbol("s", positive=True)
    assert (hx.parse(answer["exact"], symbols="mu, s>0") - erf(mu/sqrt(1 + 2*s**2))).subs({mu: 1, s: 2}).evalf() == 0
    assert answer["value"] is None and answer["digits"] is None and answer["error"] is None
    number = ask(capsys, "expect", "erf(mu + s*z)", "--let", "mu=1/2, s=2")
    assert number["value"] == pytest.approx(float(erf(Rational(1, 6))), rel=1e-15)
    _, err = shown(capsys, "expect", "tanh(mu + z)", "--let", "mu")
    assert "--let" in err


def test_expect_with_covariances(capsys):
    answer = ask(capsys, "expect", "sign(z1)*sign(z2)", "--cov", "z1,z2=1/3")
    assert (hx.parse(answer["exact"]) - 2*asin(Rational(1, 3))/pi).equals(0)
    assert ask(capsys, "expect", "z1**2*z2**2", "--cov", "z1,z2=1/2; z1,z1=2")["exact"] == "5/2"
    symbolic = ask(capsys, "expect", "z1**2*z2**2", "--cov", "z1,z2=rho", "--let", "rho")
    assert hx.parse(symbolic["exact"], symbols="rho") == 1 + 2*Symbol("rho", real=True)**2
    assert ask(capsys, "expect", "z1**2*z2**2", "--cov", "z1,z2=rho", "--let", "rho=1/2")["exact"] == "3/2"
    _, err = shown(capsys, "expect", "z1*z2", "--cov", "z1,z2=2", status=2)
    assert "positive semi-definite" in err


@pytest.mark.parametrize("text", ["exp(z**2)", "1/z", "exp(z1**2*z2**2)", "exp(exp(z**2))"])
def test_a_divergent_expectation_is_refused_in_one_line(capsys, text):
    out, err = shown(capsys, "expect", text, status=2)
    assert out == "" and err.count("\n") == 1


def test_too_few_digits_is_status_1(capsys, monkeypatch):
    import mpmath

    poor = mpmath.mpf(2), mpmath.mpf("4e-8")
    monkeypatch.setattr("hermitex.symbolic.precise.evaluate_with_error", lambda *a, **k: poor)
    answer = ask(capsys, "expect", "z*tanh(z)", status=1)
    assert answer["digits"] == 7 and answer["error"] == pytest.approx(4e-8)
    _, err = shown(capsys, "expect", "z*tanh(z)", status=1)
    assert "7 digits" in err


# -- hermite -----------------------------------------------------------------------------------------------------------
def test_hermite_in_both_conventions(capsys):
    monic = ask(capsys, "hermite", "z**3", "--order", "3", "--basis", "monic")
    assert [c["exact"] for c in monic["coefficients"]] == ["0", "3", "0", "6"]
    assert [c["order"] for c in monic["coefficients"]] == [0, 1, 2, 3]
    orthonormal = ask(capsys, "hermite", "z**3", "--order", "3", "--basis", "orthonormal")
    assert orthonormal["coefficients"][3]["value"] == pytest.approx(6**0.5, rel=1e-15)
    for answer in (monic, orthonormal):
        assert answer["norm"] == 15 and answer["tail"] == 0 and set(answer) >= {"basis", "coefficients", "norm", "tail"}


def test_hermite_without_closed_forms_and_in_two_variables(capsys):
    tanh = ask(capsys, "hermite", "tanh", "--order", "3", "--basis", "monic")
    assert tanh["coefficients"][1]["exact"] is None
    assert tanh["coefficients"][1]["value"] == pytest.approx(0.605705509602, abs=1e-12)
    two = ask(capsys, "hermite", "z1*z2 + z1", "--order", "2", "--basis", "monic")
    by_order = {tuple(c["order"]): c["exact"] for c in two["coefficients"]}
    assert by_order[1, 1] == "1" and by_order[1, 0] == "1" and by_order[0, 2] == "0"


def test_hermite_carries_the_digits_asked(capsys):
    assert cli.main(["hermite", "tanh", "--order", "1", "--basis", "monic", "--digits", "30", "--json"]) == 0
    number = capsys.readouterr().out.split('"exact": null, "value": ')[1].split("}")[0]
    assert abs(Rational(number) - hx.E("z*tanh(z)").evalf(35)) < Rational(10)**-29
    assert cli.main(["hermite", "tanh", "--order", "1", "--basis", "monic", "--digits", "30", "--json"]) == 0
    tail = capsys.readouterr().out.split('"tail": ')[1].split("}")[0]
    exact = hx.E("tanh(z)**2") - hx.E("z*tanh(z)")**2
    assert abs(Rational(tail)/exact.evalf(40) - 1) < Rational(10)**-29


def test_mu_says_once_why_there_is_no_formula(capsys):
    assert cli.main(["mu", "tanh", "--order", "3"]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("hermitex: mu_0, mu_1, mu_2, mu_3, mu_star_squared: no closed form")


def test_a_target_that_is_not_square_integrable_has_no_expansion(capsys):
    out, err = shown(capsys, "hermite", "exp(z**2)", "--order", "2", "--basis", "monic", status=2)
    assert out == "" and "square integrable" in err and err.count("\n") == 1


def test_hermite_table(capsys):
    out, _ = shown(capsys, "hermite", "relu(z)", "--order", "2", "--basis", "orthonormal")
    lines = out.splitlines()
    assert lines[0].split() == ["order", "exact", "value"] and lines[2].split() == ["1", "1/2", "0.5"]
    assert "E[g^2] = 0.5" in lines[-1]


# -- mu ----------------------------------------------------------------------------------------------------------------
def test_mu_is_exact_in_kappa_r_c(capsys):
    answer = ask(capsys, "mu", "erf")
    at = {"kappa": Rational(1, 3), "r": Rational(3, 2), "c": Rational(2)}
    read = {k: hx.parse(answer[k], symbols="kappa, r>0, c>0") for k in ("mu_0", "mu_1", "mu_star_squared")}
    values = {k: v.subs({s: at[s.name] for s in v.free_symbols}).evalf(15) for k, v in read.items()}
    assert values["mu_0"] == pytest.approx(float(erf(Rational(1, 2)/sqrt(5))), rel=1e-14)
    for name, formula in (("mu_1", hx.mu("erf", 1)), ("mu_star_squared", hx.mu_star("erf").squared)):
        assert values[name] == pytest.approx(formula(1/3, r=1.5, c=2), rel=1e-12)
    assert answer["kappa"] is None and answer["values"] is None


def test_mu_values_and_orders(capsys):
    answer = ask(capsys, "mu", "tanh", "--order", "3", "--r", "1/2", "--c", "2", "--kappa", "-1:1:3")
    assert answer["kappa"] == [-1, 0, 1] and (answer["r"], answer["c"]) == (0.5, 2)
    assert answer["mu_0"] is None and answer["mu_3"] is None and len(answer["notes"]) == 1
    residual = hx.mu_star("tanh").squared
    for name, formula in (("mu_1", hx.mu("tanh", 1)), ("mu_3", hx.mu("tanh", 3)), ("mu_star_squared", residual)):
        at_mpmath = [formula.node.subs({kappa: x, r: Rational(1, 2), c: 2}).evalf(15) for x in (-1, 0, 1)]
        assert answer["values"][name] == pytest.approx([float(v) for v in at_mpmath], abs=1e-13)


def test_mu_at_given_r_and_c(capsys):
    assert ask(capsys, "mu", "z**2", "--r", "2", "--c", "3")["mu_0"] == "4*kappa**2 + 3"
    out, err = shown(capsys, "mu", "relu", "--kappa", "0")
    assert "mu_1 = " in out and "r = 1, c = 1" in err


# -- cite, doctor ------------------------------------------------------------------------------------------------------
def test_cite(capsys):
    keys = ask(capsys, "cite", "--list")
    assert "cui2024" in keys
    listed, _ = shown(capsys, "cite", "--list")
    assert [line.split()[0] for line in listed.splitlines()] == keys and "Cui et al. 2024" in listed and "{" not in listed
    out, _ = shown(capsys, "cite", *keys)
    assert out.count("@") >= len(keys)
    _, err = shown(capsys, "cite", "cui2O24", status=2)
    assert "cui2024" in err and err.count("\n") == 1


def test_doctor(capsys):
    answer = ask(capsys, "doctor")
    assert answer["passed"] and all(answer["self_test"].values()) and len(answer["self_test"]) >= 5
    assert answer["versions"]["hermitex"] == hx.__version__ and "python-flint" in answer["versions"]


def test_doctor_sees_a_fault(capsys, monkeypatch):
    monkeypatch.setattr(hx, "parse", lambda text: 1)
    answer = ask(capsys, "doctor", status=1)
    assert not answer["passed"]


# -- exponents ---------------------------------------------------------------------------------------------------------
def test_exponents_label_map_and_what_is_unlearned(capsys, tmp_path):
    answer = ask(capsys, "exponents", "z**2", "--channel", "poisson", "--label-map", str(tmp_path/"map.py"), "--unlearned", "0")
    assert answer["label_map"]["formula"] == "1 - 1/(2*y/3 + 1/3)" and (tmp_path/"map.py").exists()
    assert (answer["unlearned"]["variance_exact"], answer["unlearned"]["orders"]) == ("2", [])
    ask(capsys, "exponents", "z**2", "--label-map", str(tmp_path/"map.txt"), status=2)


def test_exponents_json(capsys):
    answer = ask(capsys, "exponents", "z**3 - 3*z")
    assert (answer["information_exponent"], answer["leap_exponent"], answer["generative_exponent"]) == (3, 3, 1)
    assert answer["weak_recovery"]["class"] == "trivial" and answer["weak_recovery"]["alpha_c"] == 0
    assert answer["variables"] == ["z"] and answer["square_integrable"] is True
    rates = {"kernel", "one_pass_sgd", "csq", "smoothed_sgd", "one_giant_step", "batch_reuse", "small_step_reuse", "full_batch",
             "absolute_loss", "low_degree", "spherical", "run_time", "amp"}
    assert set(answer["complexity"]) == rates
    assert all(set(c) >= {"quantity", "order", "value", "enclosure", "status", "how"} for c in answer["certificates"])
    assert "undetermined" not in {c["status"] for c in answer["certificates"]}


def test_exponents_of_several_targets(capsys):
    answers = ask(capsys, "exponents", "He3(z)", "z**2", "sign(z)")
    assert [a["information_exponent"] for a in answers] == [3, 2, 1]
    out, _ = shown(capsys, "exponents", "He3(z)", "z**2")
    assert len(out.splitlines()) == 3 and out.startswith("target")


def test_one_bad_target_does_not_hide_the_others(capsys):
    answers = ask(capsys, "exponents", "He3(z)", "sin(", "z", status=2)
    assert [a and a["information_exponent"] for a in answers] == [3, None, 1]
    out, err = shown(capsys, "exponents", "He3(z)", "sin(", status=2)
    assert len(out.splitlines()) == 2 and err.count("\n") == 1 and "sin(" in err


def test_exponents_in_full(capsys):
    out, _ = shown(capsys, "exponents", "-z**2")
    for line in ("information exponent  2", "generative exponent   2", "weak recovery", "certificates"):
        assert line in out
    out, _ = shown(capsys, "exponents", "z**2", "--explain")
    assert "hypotheses" in out


def test_a_channel_is_passed_on(capsys):
    plain, noisy = (ask(capsys, "exponents", "z", *more) for more in ([], ["--channel", "random_sign"]))
    assert plain["information_exponent"] == 1 and noisy["information_exponent"] is None
    _, err = shown(capsys, "exponents", "z", "--channel", "gausian:1", status=2)
    assert "gaussian" in err and err.count("\n") == 1


def test_a_budget_is_a_clear_answer():
    command = ["expect", "--budget", "0.001", "erf(z)**6*tanh(z**3)"]
    run = subprocess.run([sys.executable, "-m", "hermitex.face.cli", *command], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == 2 and run.stdout == "" and "--budget" in run.stderr and run.stderr.count("\n") == 1


def test_mu_without_a_closed_form_says_how_to_get_numbers(capsys):
    assert cli.main(["mu", "tanh"]) == 0
    out, err = capsys.readouterr()
    assert "no closed form" in out and "--kappa" in err.splitlines()[-1]
    assert cli.main(["mu", "relu"]) == 0 and "--kappa" not in capsys.readouterr().err


def test_exponents_under_a_covariance(capsys):
    assert cli.main(["exponents", "sign(z1*z2)", "--cov", "z1,z2=1/2; z1,z1=4/4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weak_recovery"]["alpha_c_exact"] == "8*pi**2/27"
    assert any("over standard normals" in n for n in found["notes"]) and found["target"] == "sign(z1*z2)"
    assert cli.main(["exponents", "He3(z)", "--cov", "z,z=2"]) == 0
    assert "information exponent  1" in capsys.readouterr().out


@pytest.mark.parametrize("cov, says", [("z1,z2", "--cov is written"), ("z1,z2=2", "not positive semi-definite"),
                                       ("z1,z2=1/2; z2,z1=1/3", "give it once"), ("z1,z9=1/2", "names z9")])
def test_what_is_no_covariance_is_one_line(cov, says, capsys):
    assert cli.main(["exponents", "z1*z2", "--cov", cov]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1


@pytest.mark.parametrize("asked", [["exponents", "z1 + z1*z2"], ["hermite", "relu(z)", "--order", "4", "--basis", "monic"],
                                   ["mu", "tanh", "--order", "2", "--c", "1/2"],
                                   ["bounds", "--sigma", "tanh", "--target", "sin", "--r", "1"]])
def test_a_picture_of_each_answer(tmp_path, capsys, asked):
    place = tmp_path/"answer.svg"
    assert cli.main([*asked, "--plot", str(place)]) == 0
    assert place.read_text().count("<path") > 5
    assert cli.main([*asked, "--plot", str(tmp_path/"answer.doc")]) == 2
    assert "end it in .pdf" in capsys.readouterr().err and not (tmp_path/"answer.doc").exists()
