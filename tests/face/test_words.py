"""What a user reads: help of one theory, a refusal before the work, every file of a folder, numbers that enclose."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from sympy import Rational

import hermitex as hx
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.directions.direction_text import directions_words
from hermitex.face import cli
from hermitex.face.curve_options import THEORIES

TEMPLATE = Path(__file__).parents[2]/"derivations"/"_template.py"


def test_the_help_of_a_theory_shows_its_own_options(capsys):
    assert cli.main(["curve", "sgd", "--help"]) == 0
    sgd = capsys.readouterr().out
    assert "--m0" in sgd and "--t T" in sgd and "--channel" not in sgd and "--alpha0" not in sgd and "--vocabulary" not in sgd
    assert cli.main(["curve", "bayes-amp", "--help"]) == 0
    amp = capsys.readouterr().out
    assert "--branch" in amp and "--alpha A" in amp and "--sigma" not in amp and "--m0" not in amp
    assert cli.main(["curve", "--help"]) == 0
    everything = capsys.readouterr().out
    assert "--m0" in everything and "--channel" in everything


@pytest.mark.parametrize("theory", THEORIES)
def test_the_help_of_a_theory_speaks_of_no_other(theory, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    assert cli.main(["curve", theory, "--help"]) == 0
    lines = capsys.readouterr().out.partition("options:")[2].splitlines()
    assert not [line for line in lines for other in THEORIES if other != theory and re.search(rf"(?<!the ){other}: ", line)]
    assert not [line for line in lines if line.startswith("  --") and line.endswith(line.split()[0])]  # none is left without words


@pytest.mark.parametrize("option", ["--plot", "--csv", "--bib"])
def test_a_place_that_is_not_there_is_refused_before_the_work(capsys, monkeypatch, option):
    from hermitex.face import theory_and_experiment as face

    monkeypatch.setattr(face, "build", lambda *_: pytest.fail("the work was begun"))
    assert cli.main(["curve", "bayes-amp", "--target", "z1*z2", "--alpha", "2", option, "/nonexistent/f.pdf"]) == 2
    assert "the folder '/nonexistent' does not exist" in capsys.readouterr().err


def test_an_activation_without_the_part_of_the_target_says_so(capsys):
    argv = ["curve", "sgd", "--target", "He3", "--t", "0:1:2", "--dimension", "100", "--sigma"]
    assert cli.main([*argv, "relu"]) == 0
    assert "has no He_3 part, E[sigma He_3] = 0" in capsys.readouterr().err
    assert cli.main([*argv, "tanh"]) == 0
    assert capsys.readouterr().err == ""



def test_a_file_that_raises_does_not_hide_the_others(capsys, tmp_path):
    (tmp_path / "a_boom.py").write_text("x = 1\nraise RuntimeError('boom')\n")
    (tmp_path / "good.py").write_text(TEMPLATE.read_text())
    assert cli.main(["check", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "a_boom.py, line 2: RuntimeError: boom" in err
    assert "good.py" in out and "3 checks, all hold" in out


def test_a_page_that_does_not_exist_lists_what_is_near(capsys, tmp_path):
    (tmp_path / "one_giant_step.py").write_text("")
    assert cli.main(["check", str(tmp_path / "one_giant_stp.py")]) == 2
    assert "did you mean one_giant_step.py?" in capsys.readouterr().err
    assert cli.main(["check", str(tmp_path / "xyz.py")]) == 2
    assert "holds one_giant_step.py" in capsys.readouterr().err


@pytest.mark.parametrize("low, high", [(Rational(1, 3), Rational(1, 3) + Rational(1, 10**30)), (-Rational(2, 7), -Rational(1, 7)),
                                       (Rational(1, 10**9), Rational(2, 10**9)), (12345678901234567, 12345678901234568)])
def test_a_printed_enclosure_encloses(low, high):
    text = str(Certificate("c_1", 1, "nonzero", "by a ball", None, (low, high)))
    one, two = text.partition("[")[2].partition("]")[0].split(", ")
    assert Fraction(one) < Fraction(two)
    assert Fraction(one) <= Fraction(str(low)) and Fraction(str(high)) <= Fraction(two)


def test_what_is_known_is_no_condition():
    said = str(Certificate.zero("C_1 given z1 + z2", 1, "odd"))
    assert said == "C_1 = 0 once z1 + z2 is known (odd)"


def test_directions_without_closed_form_are_numbers():
    row = [1, 1/hx.E(hx.parse("z*floor(z)"), "z")]
    assert directions_words([row], ("z1", "z2")) == "z1 + 0.999999995*z2"


def test_the_transitions_are_shown_whole():
    from hermitex.theories.overlaps.transitions import Transitions

    theory = hx.theories.multi_index("z1**2 + sign(z1*z2*z3)")
    long = Transitions(theory, 0.57516635, ((1.400107, 0.85234, "M11"),), ((2.4674011, ("M22", "M33", "M23")),)*3)
    assert "..." not in repr(long) and "M22, M33, M23 at alpha = 2.4674011" in repr(long)
