"""What a target asks of an algorithm: the answers of the contract, invariances, budgets, what is shown."""

import json
import time
from fractions import Fraction

import pytest
from flint import acb
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from sympy import Rational, Symbol, beta, cos, exp, sin, sqrt

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.exponents.channels import channel
from hermitex.exponents.complexity import RATES, complexity, power
from hermitex.exponents.label import revealed
from hermitex.exponents.labels.label_branches import branch_identity
from hermitex.exponents.labels.label_levels import constant_value, finite_level_sets
from hermitex.exponents.labels.monotone_labels import injective_in_modulus, strict_sign
from hermitex.exponents.laws.level_nodes import inverse_threshold
from hermitex.exponents.stages import Threshold, alpha_text
from hermitex.numbers.program import Program
from hermitex.symbols import z


# -- the lines of the contract -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, information, generative, kind", [
    ("tanh(z) - z*E(z*tanh(z))", 3, 1, "trivial"), ("tanh(z) - 0.6057*z", 1, 1, "trivial"),
    ("sin(z/1000) - z/1000*exp(-Rational(1, 2000000))", 3, 1, "trivial"),
    ("sin(z/1000) - z*E(z*sin(z/1000))", 3, 1, "trivial"),
    ("z**2*exp(-z**2)", 4, 4, "hard"), ("exp(z**2)", None, 2, "easy"), ("floor(z)", 1, 1, "trivial"),
    ("log(abs(z))", 2, 2, "easy"), ("3", None, None, None), ("sin(z)**2 + cos(z)**2", None, None, None)])
def test_acceptance(text, information, generative, kind):
    found = hx.exponents(text)
    assert (found.information_exponent, found.generative_exponent) == (information, generative)
    assert found.weak_recovery["class"] == kind and all(found.certificates)


def test_an_exact_integral_in_the_target_is_no_burden():
    hx.exponents("z")  # the imports
    before = time.process_time()
    assert hx.exponents("tanh(z) - z*E(z*tanh(z))").information_exponent == 3
    assert time.process_time() - before < 3


def test_singular_targets_have_exact_thresholds():
    for text in ("log(abs(z))", "exp(z**2)", "abs(z)**(-1/2)"):
        found = hx.exponents(text)
        assert found.alpha_c == mpf("0.5") and found.weak_recovery["alpha_c_exact"] == "1/2"


@pytest.mark.slow
def test_a_high_degree():
    found = hx.exponents("He20(z)")
    assert (found.information_exponent, found.generative_exponent) == (20, 2)
    assert abs(found.alpha_c - mpf("0.707361770076")) < mpf("1e-12")


def test_a_constant_has_no_exponent():
    answer = hx.exponents("3").to_dict()
    for key in ("information_exponent", "leap_exponent", "leap_coordinate", "generative_exponent"):
        assert answer[key] is None
    assert answer["staircase"] == answer["generative_staircase"] == answer["certificates"] == []
    assert answer["weak_recovery"] == {"class": None, "alpha_c": None, "alpha_c_exact": None, "alpha_c_error": None, "method": None,
                                       "stages": []}
    assert answer["complexity"]["kernel"] == "1" and answer["notes"]


def test_a_label_whose_mean_is_constant():
    found = hx.exponents("z", "multiplicative")
    assert found.information_exponent is None and found.leap_exponent is None and found.staircase == ()
    assert any("E[Y|z] is constant" in note for note in found.notes)
    assert found.generative_exponent == 2 and float(found.alpha_c) == pytest.approx(1.46154511587356, rel=1e-12)


def test_directions_stand_over_the_declared_variables():
    answer = hx.exponents("z2**2", variables="z1,z2,z3").to_dict()
    assert answer["variables"] == ["z1", "z2", "z3"]
    assert answer["staircase"] == [{"order": 2, "directions": [[0, 1, 0]]}] == answer["generative_staircase"]
    assert answer["weak_recovery"]["stages"][0]["directions"] == [[0, 1, 0]]


@pytest.mark.parametrize("text, options, word", [
    ("z1*z2*z3*z4*z5*z6*z7", {}, "at most 6"), ("a*z", {}, "a"), ("z", {"channel": "gauss:1"}, "gaussian"),
    ("z", {"channel": "gaussian"}, "variance"),
    ("z", {"channel": "gaussian:-1"}, "positive"), ("z", {"channel": "flip:1/10"}, "sign"),
    ("z", {"channel": "poisson"}, "negative"),
    ("z", {"channel": "bernoulli"}, "probability"), ("z", {"variables": "q"}, "q"),
    ("z", {"channel": "flip:2"}, "[0, 1]")])
def test_bad_input_gets_one_clear_line(text, options, word):
    with pytest.raises((BadInput, UnknownName)) as refusal:
        hx.exponents(text, **options)
    assert word in str(refusal.value)


# -- budgets ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("budget", [1e-9, 1e-3])
def test_a_budget_too_small_is_an_honest_undetermined(budget):
    found = hx.exponents("tanh(z) - z*E(z*tanh(z)) + exp(-z**2)*sin(z)", budget=budget)
    assert found.information_exponent is None and found.generative_exponent is None and found.alpha_c is None
    assert any("budget" in note for note in found.notes)
    json.dumps(found.to_dict())


def test_a_budget_too_small_on_the_command_line(capsys):
    from hermitex.face import cli

    assert cli.main(["exponents", "tanh(z) - z*E(z*tanh(z))", "--budget", "0.000001", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["generative_exponent"] is None and any("budget" in note for note in answer["notes"])


# -- identities --------------------------------------------------------------------------------------------------------
INNER = ["z**2", "cos(z)", "z**3 - 3*z", "abs(z) - z**2", "z**2*exp(-z**2)", "sign(z**2 - 1)"]
OUTER = ["exp({0})", "tanh({0})", "({0})**3", "5 - 2*({0})", "atan({0}) + 1"]


@pytest.mark.slow
@settings(max_examples=8)
@given(st.sampled_from(INNER), st.sampled_from(OUTER))
def test_an_injective_function_of_the_label_changes_nothing(inner, outer):
    plain, mapped = hx.exponents(inner), hx.exponents(outer.format(inner))
    assert plain.generative_exponent == mapped.generative_exponent
    assert plain.weak_recovery["class"] == mapped.weak_recovery["class"]
    if plain.alpha_c:
        assert abs(plain.alpha_c - mapped.alpha_c) < mpf("1e-12")*plain.alpha_c


@settings(max_examples=8)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=6).filter(lambda c: any(c[1:])))
def test_polynomials(coefficients):
    """A polynomial: l is its first non-zero Hermite coefficient, k* is 2 if it is even and 1 if not."""
    g = sum(c*hx.He(k, z) for k, c in enumerate(coefficients))
    found = hx.exponents(g)
    assert found.information_exponent == next(k for k, c in enumerate(coefficients) if k and c)
    assert found.generative_exponent == (1 if any(coefficients[1::2]) else 2)
    mirrored = hx.exponents(g.xreplace({z: -z}))
    assert mirrored.information_exponent == found.information_exponent and mirrored.alpha_c == found.alpha_c


@pytest.mark.parametrize("one, other",
                         [(cos(2*z), sin(z)**2), (z**4*exp(-z**2), z**2*exp(-z**2/2)), (cos(z), sin(z/2)**2)])
def test_equal_level_sets_have_equal_thresholds(one, other):
    """Labels that are equal but for rounding must be one knot: sin^2 once lost branches at its maxima."""
    first, second = (inverse_threshold(u, z, even=True)[0] for u in (one, other))
    assert abs(first - second) < 1e-12*first


@pytest.mark.parametrize(("text", "value", "digits"), [
    ("cos(3*z)", 0.019999790336944705, 11), ("cos(5*z)", 1.7359929831928307e-08, 7),
    ("exp(-z**2/2)*cos(2*z)", 1.2441198705744985, 12), ("z**2*sin(z)", 1.6481366794996082, 12),
    ("z**3*exp(-z**2/2)*sin(z)", 1.0757132088268266, 9), ("floor(z**2)", 1.919734332068905, 12),
    ("sin(z)**2*z", 1.0639587003965845, 6)])
def test_thresholds_beside_twenty_two_digits(text, value, digits):
    """By level sets along one branch in mpmath, adaptively, labels for places: nothing of it is shared with the nodes here."""
    u = hx.parse(text)
    found, error = inverse_threshold(u, z, even=u.subs(z, -z) == u)
    assert abs(found - value) <= error and error < 10.0**-digits*value


def test_threshold_of_an_interval_by_its_formula():
    """1{|z| < t}: P(1 - P)/(4 t^2 phi(t)^2), to all digits; a factor lost is seen."""
    from sympy import erf, pi

    for t in (Rational(1, 2), Rational(2)):
        found = hx.exponents(hx.parse(f"Heaviside({t} - abs(z))"))
        p, phi = erf(t/sqrt(2)), exp(-t**2/2)/sqrt(2*pi)
        exact = p*(1 - p)/(4*t**2*phi**2)
        assert (hx.parse(found.weak_recovery["alpha_c_exact"]) - exact).equals(0)
        assert not (hx.parse(found.weak_recovery["alpha_c_exact"]) - exact/2).equals(0)


# -- the parts ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, ours",
                         [("exp(tanh(3*z**2) + 1)", z**2), ("1/(1 + exp(-3*z**3))", z), ("-2*cos(z) + 7", cos(z))])
def test_peel(text, ours):
    assert revealed(hx.parse(text), (z,)) == ours


def test_peel_keeps_what_is_not_injective():
    for text in ("cos(cos(z))", "Abs(z - 1)", "z**2 + z"):
        assert revealed(hx.parse(text), (z,)) == hx.parse(text)


def test_constants_are_proved_not_guessed():
    assert constant_value(hx.parse("relu(z) - relu(-z) - z"), z) == 0
    assert constant_value(hx.parse("sin(z)**2 + cos(z)**2"), z) == 1
    assert constant_value(hx.parse("1 + 10**(-30)*z"), z) is None
    assert constant_value(hx.parse("z - z*E(z*z)"), z) in (0, None)


def test_monotone_and_discrete():
    assert injective_in_modulus(hx.parse("z**4 + abs(z)"), z) and not injective_in_modulus(hx.parse("z**4 - z**2"), z)
    t = hx.parse("t", symbols="t>0")
    assert strict_sign(exp(-t**2), t) == -1 and strict_sign(t**3 - t, t) == 0
    assert len(finite_level_sets(hx.parse("sign(z) + sign(z - 1)"), z)) == 3 and finite_level_sets(hx.parse("floor(z)"), z) is None


def test_branch_identity():
    assert "int T(w) dw = 0" in branch_identity((z**2*exp(-z**2),), (z,), 2)
    assert branch_identity((cos(z**2*exp(-z**2)),), (z,), 2) and branch_identity((exp(-3*z**2*exp(-z**2)),), (z,), 2)
    for u in (z**2*exp(-z**2/2), z**4*exp(-z**2), z**2, cos(z)):  # the right rate of decay, or no identity
        assert branch_identity((u,), (z,), 2) is None
    assert branch_identity((z**2*exp(-z**2),), (z,), 4) is None


def test_complexity():
    rates = complexity(degree=None, square_integrable=True, first=3, leap=3, generative=2, single=True)
    assert rates == {"kernel": "none", "one_pass_sgd": "d^2", "csq": "d^(3/2)", "smoothed_sgd": "d^(3/2)", "one_giant_step": "d^3",
                     "batch_reuse": "d log d", "small_step_reuse": "d^2", "full_batch": "open", "absolute_loss": "open",
                     "low_degree": "d", "spherical": "open", "run_time": "d^2", "amp": "d"}
    several = complexity(degree=None, square_integrable=True, first=1, leap=1, generative=1)
    assert (several["small_step_reuse"], several["full_batch"], several["run_time"]) == ("open", "d", "open")
    assert complexity(degree=None, square_integrable=True, first=3, leap=3, generative=3, single=True)["run_time"] == "d^(5/2)"
    assert complexity(degree=None, square_integrable=False, first=None, leap=None, generative=4)["low_degree"] == "d^2"
    assert complexity(degree=4, square_integrable=True, first=4, leap=4, generative=4)["batch_reuse"] == "open"
    assert complexity(degree=4, square_integrable=True, first=4, leap=4, generative=4)["smoothed_sgd"] == "open"
    assert power(Fraction(5, 2)) == "d^(5/2)"


def test_each_rate_has_its_hypotheses_and_a_source_that_is_known():
    from hermitex.show.cite import cite

    assert set(RATES) == set(complexity(degree=1, square_integrable=True, first=1, leap=1, generative=1))
    for rate in RATES.values():
        assert rate.hypotheses and rate.status and all(cite(key) for key in rate.sources)
    text = hx.exponents("He3(z)").explain()
    assert "a large enough learning rate" in text and "run time: n d for each neuron" in text and "Tsiolis" in text


def test_the_error_of_alpha_c_is_told_and_its_digits_stop_there():
    found = hx.exponents("abs(z)").to_dict()["weak_recovery"], hx.exponents("z**2").to_dict()["weak_recovery"]
    assert found[1]["alpha_c_error"] == 0 and found[1]["stages"][0]["alpha_c_error"] == 0
    rough = Threshold("easy", mpf("2.693906"), None, mpf("0.04"))
    assert alpha_text(rough) == "2.7 +- 0.04" and alpha_text(rough, short=True) == "2.7"
    assert "2.69" not in rough.latex() and rough.to_dict()["error"] == 0.04
    assert set(found[0]["stages"][0]) >= {"alpha_c", "alpha_c_error", "directions"}


def test_functions_that_flint_lacks_prove_nothing_and_raise_nothing():
    """A law of two labels with Euler's beta function in it: mpmath has its digits, balls do not."""
    y = Symbol("y", integer=True, nonnegative=True)
    law = hx.Channel((1 - y)*beta(2 + z**2, 3) + y*(1 - beta(2 + z**2, 3)), y, support=[0, 1])
    found = hx.exponents(z, law, budget=1)  # information 2, even in z; it was a KeyError
    assert found.information_exponent in (None, 2) and found.generative_exponent in (None, 2)
    with pytest.raises(HermitexError, match="beta has no ball"):
        Program(beta(2 + z**2, 3), (z,)).balls(acb(1))


def test_channels_print_as_they_are_read():
    for text in ("gaussian:1/4", "flip:1/10", "sign:1", "random_sign", "poisson", "bernoulli", "multiplicative",
                 "deterministic"):
        assert str(channel(text)) == text
    with pytest.raises(HermitexError):
        channel("poisson:1")


# -- what is shown -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def window():
    return hx.exponents("Piecewise((1, Abs(z) < 1), (0, True))")


def test_e_is_written_exp_of_1(window):
    for text in (repr(window), window.explain(), repr(window.threshold), window.weak_recovery["alpha_c_exact"]):
        assert "exp(1)*pi" in text and "E*pi" not in text


def test_html_shows_numbers_and_proofs(window):
    text = window._repr_html_()
    for part in ("information exponent", r"$\alpha_c$", "0.924958039259", "certificates", "c_{2}", r"\lambda_{1}",
                 "d\\log d"):
        assert part in text
    assert text.count("<table") == text.count("</table>") == 3
    assert hx.exponents("3")._repr_html_() and hx.exponents("exp(z**2)")._repr_html_()


def test_one_line_and_explanation():
    found = hx.exponents("z**3 - 3*z")
    assert repr(found) == "Exponents(z**3 - 3*z: information 3, generative 1, trivial, alpha_c = 0)"
    text = found.explain()
    for part in ("c_1 = 0", "c_2 = 0", "c_3 = 6", "324", "y**3", "Ben Arous", "Damian", "Troiani", "d^(3/2)"):
        assert part in text
    assert "@article" in found.bibtex().lower() or "@" in found.bibtex()
    assert found.table_row()[1:4] == ("3", "3", "1")


def test_json_is_read_back():
    answer = hx.exponents("z**2", "poisson").to_dict()
    assert json.loads(json.dumps(answer)) == answer
    assert hx.parse(answer["weak_recovery"]["alpha_c_exact"]) == Rational(3, 4)
    assert hx.parse(answer["target"]) == z**2


@pytest.mark.parametrize(("variables", "told"), [
    ("", "a name is empty"), ("z1,,z2", "a name is empty"), (("z1", " "), "a name is empty"), (3, "names are needed"),
    ("z1,x", "x is not a standard normal")])
def test_names_of_variables_are_refused_in_words(variables, told):
    with pytest.raises(hx.errors.BadInput, match=told):
        hx.exponents("z1", variables=variables)


@pytest.mark.parametrize("target", ["5", "z1 - z1", 5])
def test_constants_in_other_spellings(target):
    found = hx.exponents(target)
    assert found.generative_exponent is None and found.leap_exponent is None
    assert found.notes == ("the label does not depend on z: no exponent exists",)
