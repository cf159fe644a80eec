"""Conditional expectations: quotients of averages, the tower property, and what is refused; against formulas of their own."""

import pytest
from sympy import Derivative, Eq, Function, Rational, Subs, Symbol, exp, latex, log, pi, sign, sqrt, tanh
from sympy.stats import Bernoulli, ContinuousRV, Normal, Poisson, Rademacher

from hermitex import E, check, closed_form
from hermitex.errors import BadInput, ParseError
from hermitex.symbolic.conditional import ConditionalMean
from hermitex.symbolic.parsing import parse
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
    with pytest.raises(BadInput, match="no function of its label"):
        check(E(mean.subs(y, noisy)*T(z), z, z1), E(f(z)*T(z), z))
    with pytest.raises(BadInput, match="give one of them"):
        E(z, Eq(sgn, 2)).doit()
    with pytest.raises(BadInput, match="declare letters positive"):
        E(z, Eq(z**2, y)).doit()
    with pytest.raises(BadInput, match="affine"):
        E(z, Eq(exp(z), y)).doit()
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
