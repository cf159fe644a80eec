"""A Result re-checks itself: what is right is proved or agrees, a planted error fails with a counter-example."""

import pytest
from sympy import Function, Rational, log, pi, sqrt, symbols

from hermitex import Derivative, E, Result, System
from hermitex.errors import BadInput
from hermitex.symbols import V, Vhat, alpha, c, kappa, lamda, q, r, z

sigma = Function("sigma")
u = r*kappa + sqrt(c)*z
RIDGE = System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})


def page():
    made = Result("Slope", "The slope.", source="cui2024", place="Result 3.2", assumptions=["one", "two"])
    made.text("By parts.")
    made.step("Stein", E(z*sigma(u), z), sqrt(c)*E(Derivative(sigma)(u), z))
    return made


def test_a_right_page_passes_and_a_planted_error_is_named():
    good = page()
    good.misprint("a lost root", E(z*sigma(u), z), c*E(Derivative(sigma)(u), z))
    assert good.check().passed
    bad = page()
    bad.step("Stein", E(z*sigma(u), z), c*E(Derivative(sigma)(u), z))
    found = bad.check()
    assert not found.passed
    assert [bool(s) for s in found.steps] == [True, False]
    assert "factor 1/sqrt(c)" in found.steps[1].example or "ratio" in found.steps[1].example
    assert "sigma" in found.steps[1].example


def test_a_misprint_that_is_right_fails():
    made = page()
    made.misprint("nothing wrong", E(z*sigma(u), z), sqrt(c)*E(Derivative(sigma)(u), z))
    assert made.check().steps[-1].status == "fails"


def test_names_are_written_out_in_the_checks():
    made = Result("Names", "claim")
    Q = made.let(symbols("Q", real=True), 1/(1 + V*kappa**2))
    made.step("definition", E(kappa**2*Q*(1 + V*kappa**2), kappa), 1)
    assert made.check().passed
    with pytest.raises(BadInput, match="defined twice"):
        made.let(Q, 2)


def test_chains():
    made = Result("Chain", "claim")
    with pytest.raises(BadInput, match="continues a step"):
        made.then("algebra", 1)
    made.step("by parts", E(z**4, z), 3*E(z**2, z))
    made.then("variance", 3)
    assert made.check().passed
    made.then("wrong", 4)
    assert not made.check().passed


def test_inequalities_are_enclosed_or_tested():
    made = Result("Less", "claim")
    made.less("numbers", log(2), Rational(7, 10))
    made.less("letters", q, q**2 + 1, at=[{"q": 0.5}, {"q": 3}])
    assert [s.status for s in made.check().steps] == ["proved", "agrees"]
    made.less("wrong", pi, 3)
    assert made.check().steps[-1].status == "fails"


def test_systems_are_compared_by_letter_by_equation_and_by_solution():
    same = Result("Same", "claim")
    same.same("letters", RIDGE, System({V: 1/(lamda + Vhat), Vhat: alpha/(1 + V)}))
    same.same("equations", RIDGE, System({Vhat: 1/(1/alpha + V/alpha), V: 1/(lamda + Vhat)}))
    eliminated = System({V: (1 + V)/(lamda*(1 + V) + alpha)}, observables={Vhat: alpha/(1 + V)})
    same.same("solutions", eliminated, RIDGE, at=[{"alpha": 2, "lam": 0.1}, {"alpha": 0.5, "lam": 0.3}])
    assert [s.status for s in same.check().steps] == ["proved", "proved", "agrees"]
    wrong = Result("Wrong", "claim")
    wrong.same("solutions", RIDGE, System({Vhat: alpha/(1 + V), V: 1/(2*lamda + Vhat)}), at=[{"alpha": 2, "lam": 0.1}])
    wrong.same("no points", RIDGE, System({Vhat: alpha/(1 + V), V: 1/(2*lamda + Vhat)}))
    assert [s.status for s in wrong.check().steps] == ["fails", "undetermined"]


def test_a_rule_that_is_used_again_is_numbered_in_the_report():
    made = Result("Twice", "claim")
    for factor, right in ((1, 1), (2, 3), (3, 3)):
        made.step("moment", factor*E(z**2, z), right)
    assert [s.rule for s in made.check().steps] == ["moment", "moment (2)", "moment (3)"]
    assert "moment (2): fails" in repr(made.check()) and "(moment)" in made.markdown() and "moment (2)" not in made.markdown()


def test_a_test_reports_digits_or_fails():
    made = Result("Tests", "claim")
    made.test("exact", lambda: True)
    made.test("digits", lambda: 12)
    made.test("false", lambda: False)
    assert [s.status for s in made.check().steps] == ["tested", "tested", "fails"]


def test_pages_in_latex_and_markdown():
    made = page()
    made.misprint("50% & more_or_less", E(z*sigma(u), z), c*E(Derivative(sigma)(u), z), "not $c$ & not 100%")
    made.conclude(RIDGE, "These are solved.")
    tex, md = made.latex(), made.markdown()
    assert tex.startswith(r"\section{Slope}")
    assert r"50\% \& more\_or\_less" in tex and r"not $c$ \& not 100\%" in tex
    assert r"&& \text{(Stein's lemma)}" in tex
    assert tex.count(r"\begin{align}") == tex.count(r"\end{align}") == 3
    assert md.startswith("## Slope") and "Cui et al. 2024, Result 3.2" in md
    assert made._repr_markdown_() == md and made._repr_latex_() is None
    assert repr(made) == "Result('Slope', Result 3.2; 2 checks)"


def test_numbers_that_hardly_agree_do_not():
    made = Result("Few digits", "A claim.")
    made.test("six", lambda: 6)
    made.test("five", lambda: 5)
    six, five = made.check().steps
    assert six.status == "tested" and five.status == "fails" and "5 digits" in five.example
