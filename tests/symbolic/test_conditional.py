"""Conditional expectations: quotients of averages, the tower property, and what is refused; against formulas of their own."""

import pytest
from sympy import (
    Derivative,
    Eq,
    Function,
    Rational,
    Subs,
    Symbol,
    asinh,
    atan,
    atanh,
    erf,
    exp,
    latex,
    log,
    pi,
    sign,
    sinh,
    sqrt,
    tanh,
)
from sympy.stats import Bernoulli, ContinuousRV, Normal, Poisson, Rademacher

from hermitex import E, check, closed_form, parse
from hermitex.errors import BadInput, ParseError
from hermitex.symbolic.conditional_expectation import ConditionalMean
from hermitex.symbols import z, z1, z2

f, g, p, T = map(Function, "fgpT")
y, omega = Symbol("y", real=True), Symbol("omega", real=True)
s = Symbol("s", positive=True)
square = Symbol("y", positive=True)
noisy, sgn, law = g(z) + s*z1, sign(z), Bernoulli("B", g(z))
mean, of_sign, of_law = E(f(z), Eq(noisy, y)), E(f(z), Eq(sgn, y)), E(f(z), Eq(law, y))
drawn = ContinuousRV(Symbol("Y", real=True), p(z))   # at one label
Z = E(p(omega + z), z)
slope, bend = (Subs(Derivative(log(Z), omega, n), omega, 0) for n in (1, 2))


@pytest.mark.parametrize("left,right", [
    (E(z, Eq(z + s*z1, y)), y/(1 + s**2)),
    (E(z**2, Eq(Normal("Y", z, s), y)), s**2/(1 + s**2) + y**2/(1 + s**2)**2),
    (E(z**2 - 1, Eq(z**2, square)), square - 1),
    (E(z, Eq(z**2, square)), 0),
    (E(z1*z2, Eq(sign(z1*z2), 1)), 2/pi),
    (E(z1 - z2, z1 > z2), 2/sqrt(pi)),
    (E(z**2, Eq(Poisson("N", z**2), 3)), Rational(7, 3)),
    (E(p(z), z)*E(f(z), Eq(drawn, y)), E(f(z)*p(z), z)),
    (slope, E(z, Eq(drawn, y))),
    (bend, E(z**2 - 1, Eq(drawn, y)) - E(z, Eq(drawn, y))**2),
    (E(mean.subs(y, noisy)*T(noisy), z, z1), E(f(z)*T(noisy), z, z1)),
    (E(of_sign.subs(y, sgn)*T(sgn)*z2**2, z, z2), E(f(z)*T(sgn), z)),
    (E(of_law.subs(y, 1)*g(z)*T(1) + of_law.subs(y, 0)*(1 - g(z))*T(0), z), E(f(z)*(g(z)*T(1) + (1 - g(z))*T(0)), z)),
])
def test_what_is_proved(left, right):
    assert check(left, right).status == "proved"


@pytest.mark.parametrize("left,right", [
    (E(z**2, Eq(z + z1, y)), y/2),
    (E(z1*z2, Eq(sign(z1*z2), -1)), 2/pi),
    (E(f(z), Eq(drawn, y)), E(f(z)*p(z), z)),
    (bend, E(z**2, Eq(drawn, y)) - E(z, Eq(drawn, y))**2),
    (E(of_sign.subs(y, sgn)*T(sgn), z), E(f(z), z)*E(T(sgn), z)),
    (E(of_sign.subs(y, sgn)*T(z), z), E(f(z)*T(z), z)),             # T is no function of the label
    (E(of_sign.subs(y, sgn)**2, z), E(f(z)**2, z)),
])
def test_what_is_wrong_is_refuted(left, right):
    assert check(left, right).status == "fails"


def test_a_square_is_a_mean_over_the_values_of_the_label():
    assert check(E(E(z, Eq(sgn, y)).subs(y, sgn)**2, z), 2/pi)


def test_a_sign_in_noise():
    x = Rademacher("x")
    assert check(E(x, Eq(x + s*z, y)), tanh(y/s**2))


def test_what_has_no_rule_says_so():
    with pytest.raises(BadInput, match="not a function of its label"):
        check(E(mean.subs(y, noisy)*T(z), z, z1), E(f(z)*T(z), z))
    with pytest.raises(BadInput, match="give one of them"):
        E(z, Eq(sgn, 2)).doit()
    with pytest.raises(BadInput, match="declare letters positive"):
        E(z, Eq(z**2, y)).doit()
    with pytest.raises(BadInput, match="affine"):
        E(z, Eq(exp(z) + z**2, y)).doit()
    with pytest.raises(BadInput, match="whatever is drawn"):
        E(z, Eq(z, z))


def test_it_prints_as_it_is_written_and_is_used_as_the_quotient():
    posterior = E(z, Eq(z + 2*z1, y))
    assert str(posterior) == "E(z, z, z1, Eq(z + 2*z1, y))"
    assert latex(posterior) == r"\mathbb{E}_{z, z_{1}}\left[z \mid z + 2 z_{1} = y\right]"
    assert latex(posterior.subs(y, z + 2*z1)).endswith(r"\mid z + 2 z_{1}\right]")
    assert latex(E(z, Eq(drawn, y))) == r"\mathbb{E}_{z}\left[z \mid Y = y\right]"
    assert closed_form(posterior) == y/5 and posterior.subs(y, 2).evalf(20) == Rational(2, 5).evalf(20)
    assert check(posterior.diff(y), Rational(1, 5))


@pytest.mark.parametrize("text", ["E(z, z > 0)", "E(z**2, z, z1, Eq(z + z1, y))", "E(z**2, (z > 0) & (z < 1))",
                                  "E(z, z1, z, z > z1)"])
def test_a_text_holds_conditions_and_is_read_back(text):
    node = parse(text, symbols={"y": "real"})
    assert isinstance(node, ConditionalMean) and parse(str(node), symbols={"y": "real"}) == node
    assert not node.doit().has(ConditionalMean)


def test_what_is_no_condition_of_a_text_is_one_line():
    for wrong in ("E(z, 3)", "E(z, z + 1)", "E(z, tanh(z))"):
        with pytest.raises(ParseError):
            parse(wrong)


@pytest.mark.parametrize("label,at,inside", [
    (exp(z), 3, log(3)), (2*exp(3*z) + 1, 5, log(2)/3), (tanh(z/2), Rational(1, 3), 2*atanh(Rational(1, 3))),
    (1/(1 + exp(-z)), Rational(1, 4), -log(3)),
    (log(1 + exp(z)), log(4), log(3)), (sinh(2*z), Rational(3, 4), asinh(Rational(3, 4))/2), (atan(z), pi/4, 1), (2**z, 4, 2),
    (erf(z), erf(Rational(1, 2)), Rational(1, 2)), (exp(exp(z)), exp(2), log(2))])
def test_a_monotone_function_of_what_is_given_is_taken_off(label, at, inside):
    for other in (0, s*z1):   # with the noise inside of it
        noisy = label.xreplace({z: z + other})
        assert check(E(z**2, Eq(noisy, at)), E(z**2, Eq(z + other, inside))).status == "proved"
        assert check(E(z**2, Eq(noisy, at)), E(z**2, Eq(z + other, inside + 1))).status == "fails"
    assert E(z, Eq(exp(z), y)).doit() == log(y)


@pytest.mark.parametrize("label,at", [(tanh(z), 2), (atan(z), 2), (erf(z), 1), (exp(tanh(z)), 5)])
def test_what_a_monotone_label_cannot_be_has_no_chance(label, at):
    with pytest.raises(BadInput, match="no chance"):
        E(z, Eq(label, at)).doit()


def test_given_noise_a_closed_form_stands_in_any_average():
    given = Normal("W", z, 2)   # E[z^2|W] = 4/5 + W^2/25, W of the variance 5
    for label, noise in ((given, given), (z + 2*z1, z1)):
        def mean(of, label=label):
            return E(of, Eq(label, y)).subs(y, label)
        assert check(E(mean(z**2)**2, z, noise), Rational(27, 25)).status == "proved"
        assert check(E(mean(z)**2*z**2, z, noise), Rational(7, 25)).status == "proved"
        assert check(E(mean(z)**2*z**2, z, noise), Rational(1, 5)).status == "fails"
    drawn = Bernoulli("D", 1/(1 + exp(-z)))
    own = E(z, Eq(drawn, y)).subs(y, drawn)
    assert check(E(own**2, z, drawn), E(own*z, z, drawn)).status == "proved"
