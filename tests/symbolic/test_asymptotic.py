"""Asymptotic equalities and series: true ones proved or tested, planted errors refuted, slow ones left open."""

import random

import mpmath
import pytest
from sympy import Abs, Function, Heaviside, LambertW, O, Rational, Symbol, cos, erf, exp, log, oo, pi, series, sin, sqrt, tanh

from hermitex import Derivative, E, Result, check
from hermitex.errors import BadInput
from hermitex.symbolic.arithmetic import nstr
from hermitex.symbols import z

x, a = Symbol("x", positive=True), Symbol("a", positive=True)
t = Symbol("t", real=True)
f = Function("f")
bend = Derivative(f, 2)(0)


@pytest.mark.parametrize("left,right,to", [
    (1 - cos(a*t), a**2*t**2/2, {t: 0}),
    (E(tanh(t*z)**2, z), t**2, {t: 0}),
    (E(erf(t*z)**2, z), 4*t**2/pi, {t: 0}),
    (E(f(t*z), z) - f(0), t**2*bend/2, {t: 0}),
    (E(Abs(t + z), z), sqrt(2/pi)*(1 + t**2/2), {t: 0}),
    (sqrt(x**2 + a*x) - x, a/2, {x: oo}),
    (log(x + x**2), log(x), {x: 0}),
    (exp(t), 1 + t + O(t**2), None),
    (E(tanh(t*z)**2, z), t**2 - 2*t**4 + O(t**6), None),
    (E(1/(1 + t**2*z**2), z), 1 - t**2 + 3*t**4 + O(t**6), None),
    (E(f(t*z), z), f(0) + t**2*bend/2 + O(t**4), None),
    (E(z*f(t + z), z)/E(f(t + z), z), E(z*f(z), z)/E(f(z), z) + O(t), None),
    (a/(a + x), a/x - a**2/x**2 + O(x**-3, (x, oo)), None),
])
def test_what_is_proved(left, right, to):
    assert check(left, right, to=to).status == "proved"


@pytest.mark.parametrize("left,right,to", [
    (E(Heaviside(z - x), z), exp(-x**2/2)/(x*sqrt(2*pi)), {x: oo}),
    (E(Abs(t + z), z), sqrt(2/pi) + t**2/sqrt(2*pi) + O(t**4), None),
    pytest.param(E(z*tanh(x*z), z), sqrt(2/pi), {x: oo}, marks=pytest.mark.slow),
])
def test_what_agrees(left, right, to):
    assert check(left, right, to=to).status == "agrees"


@pytest.mark.parametrize("left,right,to", [
    (sin(t), t*(1 + Rational(1, 10**6)), {t: 0}),
    (E(tanh(t*z)**2, z), t**2*Rational(101, 100), {t: 0}),
    (E(f(t*z), z) - f(0), t**2*bend, {t: 0}),
    (E(Heaviside(z - x), z), exp(-x**2/2)/(x*sqrt(pi)), {x: oo}),
    (log(x + x**2), log(x), {x: oo}),
    (E(tanh(t*z)**2, z), t**2 - t**4 + O(t**6), None),
    (E(f(t*z), z), f(0) + t**2*bend + O(t**4), None),
    (sqrt(x), O(x), None),
    (E(t**5/(t**2 + z**2)**2, z) + t**2, t**2, {t: 0}),   # each derivative of what is averaged is 0 at t = 0
])
def test_what_is_wrong_is_refuted(left, right, to):
    assert check(left, right, to=to).status == "fails"


@pytest.mark.parametrize("left,right,to", [
    (LambertW(x), log(x), {x: oo}),
    (x*log(x), O(x), None),
    (sqrt(t), sqrt(t) + t, {t: 0}),    # not real on the left
    (E(exp(t*z**4), z), 1 + 3*t, {t: 0}),   # no average for t > 0
    (t, 0, {t: 0}),
    (t, t, {t: 0}),
])
def test_what_is_open_is_not_called_right(left, right, to):
    assert check(left, right, to=to).status == "undetermined"


@pytest.mark.parametrize("seed", range(6))
def test_a_planted_error_in_a_series_is_refuted(seed):
    chance = random.Random(seed)
    body = chance.choice([exp(t*z/2), cos(t*z), 1/(1 + t**2*z**2), tanh(t*z)*z, erf(1 + t*z)])
    n = chance.choice([3, 4])
    whole = series(body, t, 0, n).removeO()
    terms = [E(whole.coeff(t, k), z).doit()*t**k for k in range(n)]
    k = chance.choice([i for i, term in enumerate(terms) if term != 0])
    assert check(E(body, z), sum(terms) + O(t**n)).status == "proved"
    wrong = sum(terms) + terms[k]*Rational(chance.choice([-1, 1]), 10**chance.randint(0, 3))
    assert check(E(body, z), wrong + O(t**n)).status == "fails"


def test_a_page_prints_what_is_checked():
    page = Result("Small fields", "The square grows as the square of the field.")
    page.step("Taylor", E(tanh(t*z)**2, z), t**2, to={t: 0})
    page.step("Taylor", E(tanh(t*z)**2, z), t**2 - 2*t**4 + O(t**6))
    page.misprint("a half", E(tanh(t*z)**2, z), t**2/2, to={t: 0})
    found = page.check()
    assert found and [one.status for one in found.steps] == ["proved", "proved", "refuted"]
    said = page.markdown()
    assert r"\underset{t \to 0}{\simeq} t^{2}" in said and r"\underset{t \to 0}{\not\simeq}" in said
    assert r"O\left(t^{6}\right)" in said


def test_two_places_are_refused():
    with pytest.raises(BadInput, match="one letter goes to one place"):
        check(t*x, t, to={t: 0, x: 1})
    with pytest.raises(BadInput, match="one letter goes to one place"):
        check(exp(t), 1 + t + O(t**2), to={t: 0})


def test_a_place_in_texts():
    assert check("E(z*tanh(s*z))", "sqrt(2/pi)", to={"s": "oo"}, symbols="s>0")
    assert check("E(tanh(s*z)**2)", "s**2", to={"s": 0}, symbols="s>0")
    with pytest.raises(BadInput, match="type to="):
        check("E(z*tanh(s*z))", "sqrt(2/pi)", to="s", symbols="s>0")


def test_the_values_of_a_counter_example_have_the_digits_that_are_shown():
    """At t = 1e-8 the left side is t - t^3, the right one t - t^3/3."""
    example = check(E(z*tanh(x*z), z), x - x**3/3 + O(x**5)).counter_example
    with mpmath.workdps(30):
        left, right = (mpmath.mpf(nstr(side, 25)) for side in (example.left, example.right))
        assert abs(left - mpmath.mpf("9.999999999999999e-9")) < 1e-27 and left < right < mpmath.mpf("1e-8")
