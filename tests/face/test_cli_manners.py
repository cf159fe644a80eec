"""The manners of the command line: data on stdout, one line of talk on stderr, exit 0, 1 or 2."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from hermitex.errors import BadInput, BudgetExceeded, NotConverged, UnknownName
from hermitex.face import cli, guard, output

HERMITEX = [sys.executable, "-m", "hermitex.face.cli"]


def run(*argv, **kwargs):
    return subprocess.run([*HERMITEX, *argv], capture_output=True, text=True, timeout=120, **kwargs)


def refusal(capsys, *argv):
    """The one line that a refused command gets."""
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and "Traceback" not in err
    return err


def test_help_names_every_verb_and_each_has_its_own(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in cli.VERBS:
        assert f"  {verb} " in text
        assert cli.main([verb, "--help"]) == 0
        assert f"usage: hermitex {verb}" in capsys.readouterr().out


def test_the_package_runs_as_its_script_does():
    argv = ["exponents", "z1", "--variables", "z1,,z2"]
    package, module = (subprocess.run([sys.executable, "-m", name, *argv], capture_output=True, text=True, timeout=120)
                       for name in ("hermitex", "hermitex.face.cli"))
    assert (package.returncode, package.stdout, package.stderr) == (module.returncode, module.stdout, module.stderr)
    assert package.returncode == 2 and "a name is empty in 'z1,,z2'" in package.stderr


@pytest.mark.parametrize("argv, told", [
    ([], "name a verb"),
    (["exponents", "z1", "--variables", ""], "a name is empty in ''"),
    (["exponent", "z"], "did you mean exponents"),
    (["--versoin"], "did you mean --version"),
    (["curve", "one-step", "--sigma", "tanh", "--sigma", "relu"], "its values apart by commas"),
    (["mu", "tanh", "--oder", "2"], "did you mean --order"),
    (["mu", "tanh", "--order"], "--order needs a value"),
    (["mu", "tanh", "--order", "--"], "--order needs a value"),
    (["bounds", "--sigma=--", "--target", "z"], "--sigma needs a value"),
    (["generate", "a\0.toml"], "not a file name"),
    (["check", "\ud800.py"], "not a file name"),
    (["exponents", "z", "--channel", "gaussian:E(z**2)"], "not a positive number"),
    (["mu", "tanh", "--order", "two"], "--order is a whole number, not 'two'"),
    (["mu"], "SIGMA"),
    (["hermite", "z", "--order", "2"], "--basis"),
    (["hermite", "z", "--order", "2", "--basis", "physicist"], "--basis is one of 'monic', 'orthonormal', not"),
    (["hermite", "z", "--order", "-1", "--basis", "monic"], "0 or more"),
    (["expect", "z", "--budget", "0"], "positive number of seconds"),
    (["expect", "z", "--budget", "nan"], "positive number of seconds"),
    (["expect", "z", "--digits", "0"], "--digits"),
    (["expect", "z1*z2", "--cov", "z1=2"], "--cov is written"),
    (["expect", "s*z", "--let", "s=t"], "unknown"),
    (["mu", "z**2", "--kappa", "0:1"], "first:last:points"),
    (["mu", "z**2", "--kappa", "0,a"], "--kappa: 'a' in '0,a' is not a number"),
    (["mu", "z**2", "--kappa", "1e999999999"], "not a number"),
    (["mu", "z**2", "--c", "-1", "--kappa", "0"], "positive"),
    (["mu", "z**2", "--r", "z", "--kappa", "0"], "must be a number"),
    (["cite"], "--list"),
    (["curve"], "needed, and not given: THEORY"),
])
def test_bad_input_gets_one_line_and_status_2(capsys, argv, told):
    assert told in refusal(capsys, *argv)


HOSTILE = ["", " ", "import os", "__import__('os').system('echo ran')", "z.__class__", "(z", "z)", "z^2", "f(z)", "nan",
           "oo", "z +", "lambda: 0", "[z]", "'z'", "z; z", "10**10**10", "9**9**9**9", "z**9**9**9", "\u200bz", "zz",
           "E",
           "exec(z)", "z if z else z", "(" * 5000 + "z" + ")" * 5000, "+".join(["z"] * 100_000), "1" * 200_000, "1/0",
           "z\x00", "sqrt(-1)", "I*z", "z := 3", "f'{z}'", "\ud800"]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: repr(t[:12]))
def test_hostile_text_gets_one_line_and_status_2(capsys, text):
    refusal(capsys, "expect", text)


@pytest.mark.parametrize("text", ["-z**2", "-1", "-(z)", "-erf(z)**2", "- z**2"])
def test_an_expression_may_begin_with_a_minus(capsys, text):
    before, after = ["expect", "--json", text], ["expect", text, "--json"]
    assert cli.main(before) == 0
    first = capsys.readouterr().out
    assert cli.main(after) == 0
    assert capsys.readouterr().out == first and first.startswith("{")
    assert cli.main(["expect", "--json", "--", text]) == 0


def test_the_value_of_an_option_may_begin_with_a_minus():
    parser = cli.parser_of("mu")
    args = parser.parse_args(parser.split(["-z", "--kappa", "-1,0", "--r=-2"]))
    assert (args.sigma, args.kappa, args.r) == ("-z", "-1,0", "-2")


@pytest.mark.parametrize("error, status", [
    (BadInput("a\nb"), 2), (UnknownName("x", ["y"]), 2), (BudgetExceeded(1.0, "waiting"), 2),
    (NotConverged(None, "no"), 1), (RecursionError("deep"), 2), (MemoryError(), 2), (ValueError("odd " * 1000), 2),
    (ZeroDivisionError("x"), 2), (OverflowError("int too large to convert to float"), 2)])
def test_every_error_is_one_short_line(capsys, error, status):
    assert cli.report(error, "here") == status
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and len(err) < 700 and err.startswith("hermitex: here: ")


def test_an_interrupt_is_said(monkeypatch, capsys):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupted)
    assert cli.main(["--help"]) == 130
    assert capsys.readouterr().err == "hermitex: interrupted\n"


def test_a_closed_pipe_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*HERMITEX, "--help"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


# -- the last line of defence ------------------------------------------------------------------------------------------
def test_an_alarm_ends_what_no_checkpoint_sees():
    start = time.process_time()
    with pytest.raises(BudgetExceeded, match=r"0\.2 CPU seconds"), guard.deadline(0.2):
        while True:
            with suppress(Exception):  # what a careless caller may do
                sum(range(1000))
    assert time.process_time() - start < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_runaway_on_the_command_line_is_one_line(capsys, monkeypatch):
    def forever(args):
        with guard.deadline(args.budget):
            while True:
                pass

    monkeypatch.setattr("hermitex.face.verbs.cite_verb.run", forever)
    assert "the budget of 0.1 CPU seconds" in refusal(capsys, "cite", "x", "--budget", "0.1")


def test_no_alarm_is_left_behind():
    with guard.deadline(0.05):
        pass
    time.sleep(0.5)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


# -- JSON --------------------------------------------------------------------------------------------------------------
def test_json_values():
    import json

    import mpmath
    import numpy as np
    from sympy import E, Rational, pi

    from hermitex import parse

    value = {"inf": float("inf"), "minus": -float("inf"), "nan": float("nan"), "exact": E*pi**2/3, "none": None,
             "list": [1, 0.5, Rational(1, 3)], "array": np.array([0.25, np.inf]), "flag": True,
             "mp": output.number(mpmath.mpf(1)/3, 15)}
    read = json.loads(output.dumps(value))
    assert read["inf"] == "inf" and read["minus"] == "-inf" and read["nan"] is None and read["none"] is None
    assert parse(read["exact"]) == E*pi**2/3 and "exp(1)" in read["exact"]
    assert read["list"] == [1, 0.5, "1/3"] and read["array"] == [0.25, "inf"] and read["flag"] is True
    assert read["mp"] == 1/3


def test_json_numbers_carry_every_digit_asked():
    import json
    from decimal import Decimal

    import mpmath

    with mpmath.workdps(40):
        for value in (mpmath.mpf(1)/3, -mpmath.pi*10**20, mpmath.mpf(10)**-30/7):
            text = output.dumps({"value": output.number(value, 30)})
            read = json.loads(text, parse_float=Decimal)["value"]
            assert isinstance(read, Decimal) and abs(mpmath.mpf(str(read))/value - 1) < mpmath.mpf(10)**-29
            assert len(read.as_tuple().digits) >= 29
    assert output.number(mpmath.inf, 30) == "inf"


@pytest.mark.parametrize("text, values", [("0.5", ["1/2"]), ("0.2,0.9,3", ["1/5", "9/10", "3"]),
                                          ("0.2:3:3", ["1/5", "8/5", "3"]), ("-1:1:2", ["-1", "1"]), ("2:9:1", ["2"]),
                                          ("1/2,inf", ["1/2", "inf"])])
def test_grid(text, values):
    assert [str(v) for v in output.grid(text)] == values


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "1:2:0", "1:2:x", "a", "1,,2", "1:2:999999999", "1/0", "0:inf:3"])
def test_grid_refuses(text):
    with pytest.raises(BadInput):
        output.grid(text)


@pytest.mark.parametrize("value, error, asked, digits", [(1, 0, 15, 15), (1, 3e-9, 15, 8), (1e6, 3e-9, 15, 14),
                                                         (1e-8, 3e-9, 15, 0), (0, 1e-12, 15, 12), (1, 1e-40, 30, 30)])
def test_digits_reached(value, error, asked, digits):
    assert output.digits_reached(value, error, asked) == digits


@pytest.mark.parametrize(("argv", "words"), [
    (["expect", "1/z"], "at z = 0 it grows like 1/Abs(z)"),
    (["expect", "z1/z2"], "at z2 = 0 it grows like 1/Abs(z2)"),
    (["expect", "sign(z)*DiracDelta(z)"], "Dirac delta"),
    (["expect", "gamma(z)"], "does not exist: it behaves like |z - r|^-1.000 at r = "),
    (["expect", "exp(exp(exp(z)))"], "does not fall off"),
    (["expect", "tan(tan(z))"], "was not decided"),
    (["expect", "tanh(w*z)"], "--let w"),
    (["expect", "z**1000000"], "too large"),
    (["expect", "(1+z)**100000"], "too large"),
    (["exponents", "(z1+z2+z3+z4+z5+z6+z7+z8+z9)**40"], "multiplied out"),
])
def test_a_refusal_speaks_in_the_names_that_were_typed(capsys, argv, words):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and words in err
    assert not re.search(r"(?<!\w)_[A-Za-z]|Dummy|Traceback", err)


def test_an_alarm_that_comes_late_is_one_line(capsys, monkeypatch):
    """Under load the alarm of a budget may ring where nothing waits for it any more: no traceback."""
    from hermitex.symbolic import deadline

    def late(argv):
        raise type("Alarm", (deadline.Alarm,), {})

    monkeypatch.setattr(cli, "_dispatch", late)
    assert cli.main(["expect", "z"]) == cli.BAD_INPUT
    assert capsys.readouterr().err == "hermitex: the budget ran out; allow more with --budget SECONDS\n"
