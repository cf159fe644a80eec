"""A channel P(y|z) must be a law: not negative, and of total one at every z; what is none is refused with the value found."""

import numpy as np
import pytest
from scipy.special import gammaln
from sympy import Abs, Heaviside, I, Piecewise, Rational, S, Symbol, cos, exp, factorial, log, pi, sqrt, tanh

import hermitex as hx
from hermitex import parse
from hermitex.errors import BadInput, NoClosedForm
from hermitex.kernels.arrays import lambdify
from hermitex.symbols import z, z1, z2

y = Symbol("y", real=True)


def gauss(mean, variance):
    return exp(-(y - mean)**2/(2*variance))/sqrt(2*pi*variance)


@pytest.mark.parametrize("p, support, told", [
    (2/(1 + exp(-y*z1*z2)), [-1, 1], "sums to 2, not to 1, at z1 = 0.5, z2 = 0.75"),
    (S.Half + z1*z2*y/10, [-1, 1], "is negative"),
    (exp(-(y - z1)**2/2), "real", "integrates to 2.50663, not to 1, at z1 = 0.5"),
    (gauss(z, 1)/3 + gauss(-z, Rational(1, 10**6))/3, "real", "integrates to 0.666667"),  # a narrow peak is not missed
    (Piecewise((1, Abs(y - z) < 1), (0, True)), "real", "integrates to 2"),
    (exp(-z**2)*z**(2*y)/factorial(y)/2, "integers", "sums to 0.5"),
    ((1 + y*z)/2*Heaviside(1 - y**2), "real", "is negative"),
    (I*y*z, "real", "is not a real number"),
    (S.Half, [1, 1], "not a list of distinct numbers"),
    (S.Half, 3, "not 'real', 'integers' or a list"),
])
def test_what_is_no_law_is_refused(p, support, told):
    with pytest.raises(BadInput) as refused:
        hx.Channel(p, y, support)
    assert told in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("p, support", [
    (1/(1 + exp(-y*z1*z2)), [-1, 1]),
    (gauss(z**3, Rational(1, 10**8)), "real"),            # far from zero and narrow
    (gauss(100*z1**5, Rational(1, 4)), "real"),
    (gauss(z, 1)/3 + 2*gauss(-z, Rational(1, 10**6))/3, "real"),
    (exp(-Abs(y - z1*z2))/2, "real"),
    (1/(pi*(1 + (y - z1*z2)**2)), "real"),                # heavy tails
    (Piecewise((S.Half, Abs(y - z) < 1), (0, True)), "real"),
    (exp(-exp(z))*exp(z*y)/factorial(y), "integers"),
    (6/(pi**2*(y + 1)**2), "integers"),                   # a slow sum, not reached: nothing is refused
    (exp(-y**2/(2*z**2))/(sqrt(2*pi)*Abs(z)), "real"),
    ((1 + y*tanh(z))/2, [-1, 1]),
])
def test_laws_are_accepted(p, support):
    assert hx.Channel(p, y, support).p.free_symbols <= {y, z, z1, z2}


def test_a_law_may_be_written_as_text():
    assert hx.Channel("exp(-(y - z)**2/2)/sqrt(2*pi)", "y").p == gauss(z, 1).xreplace({y: Symbol("y", real=True)})


@pytest.mark.parametrize("target", [I*z1, exp(I*z1), I + z1*z2, log(z1), sqrt(z1*z2)])
def test_a_complex_target_is_refused(target):
    with pytest.raises(BadInput, match=r"not a real number|is not real at"):
        hx.exponents(target)


@pytest.mark.parametrize("keywords, told", [
    ({"budget": "a"}, "a number of seconds"), ({"budget": 0}, "no time"), ({"budget": -1}, "a number of seconds"),
    ({"variables": "z1,z1,z2"}, "z1 occurs twice"), ({"channel": "nosuch"}, "gaussian, multiplicative, poisson"),
    ({"channel": "gaussian:z1"}, "z1 is not a positive number"), ({"channel": "gaussian:10**400"}, "not a positive number up to"),
])
def test_arguments_that_mean_nothing_get_one_line(keywords, told):
    with pytest.raises(BadInput, match=told):
        hx.exponents("z1*z2", **keywords)


def test_a_parameter_is_answered_with_what_to_do():
    with pytest.raises(BadInput, match="put a number in") as refused:
        hx.exponents("a*z1*z2")
    assert "symbols=" not in str(refused.value)
    with pytest.raises(BadInput, match="a has no value; put a number in"):
        hx.exponents(Symbol("a")*cos(z1))


# -- counts ------------------------------------------------------------------------------------------------------------
RATES = ["z**2", "1 + z**2", "exp(z/3)", "2 + tanh(z)", "1 + Abs(z)"]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("law, mean", [
    ("exp(-({r}))*({r})**y/factorial(y)", "{r}"),
    ("(1 - exp(-1 - ({r})))*exp(-(1 + {r})*y)", "1/(exp(1 + {r}) - 1)"),
    ("(y + 1)*(1/(1 + {r}))**2*(1 - 1/(1 + {r}))**y", "2*({r})"),
])
def test_the_mean_of_counts_is_found_by_their_recursion(law, mean, rate):
    found = hx.Channel(law.format(r=rate), "y", support="integers").mean(parse("z"))
    f = lambdify(z, found - parse(mean.format(r=rate)), modules=["numpy", "scipy"])
    assert np.allclose(f(np.linspace(-2.3, 2.9, 9)), 0, atol=1e-12)


def test_what_has_no_such_recursion_has_no_mean():
    mixed = hx.Channel("exp(-1)/factorial(y)/2 + exp(-1 - z**2)*(1 + z**2)**y/factorial(y)/2", "y", support="integers")
    with pytest.raises(NoClosedForm):
        mixed.mean(parse("z"))


def test_counts_of_an_even_rate_written_as_one_power_are_even():
    found = hx.exponents("z**2", channel=hx.Channel("exp(-z**2)*z**(2*y)/factorial(y)", "y", support="integers"))
    named = hx.exponents("z**2", channel="poisson")
    assert found.generative_exponent == named.generative_exponent == 2 and found.information_exponent == 2
    assert abs(found.threshold.alpha_c - named.threshold.alpha_c) < 1e-10


@pytest.mark.parametrize("r", ["7/10", *(pytest.param(v, marks=pytest.mark.slow) for v in ("5/2", "3"))])
def test_negative_binomial_counts_of_an_even_rate(r):
    """(E[He_2 p(y|z)])^2/E[p(y|z)] over the counts, by logarithms of the law: gamma(y + r) overflows at 170."""
    law = hx.Channel(f"gamma(y+{r})/(gamma({r})*factorial(y))*(1/(1+z**2))**({r})*(z**2/(1+z**2))**y", "y", support="integers")
    found = hx.exponents("z", channel=law)
    x, w = np.polynomial.hermite_e.hermegauss(250)
    count, a = np.arange(6000)[:, None], float(Rational(r))
    ways = gammaln(count + a) - gammaln(a) - gammaln(count + 1)
    p = np.exp(ways - (a + count)*np.log1p(x*x) + count*np.log(x*x))
    mass, second = p @ w, p @ (w*(x*x - 1))
    information = (second**2/np.maximum(mass, 1e-300)).sum()/w.sum()
    assert found.weak_recovery["alpha_c"] == pytest.approx(1/information, rel=1e-10)
    assert found.information_exponent == 2


def test_a_law_says_all_and_a_target_beside_it_is_told_so():
    law = hx.Channel("exp(-(y - z)**2)/sqrt(pi)", "y")
    aside, plain = hx.exponents("z**2", channel=law), hx.exponents("z", channel=law)
    assert any("by the law P(y|z) alone" in n for n in aside.notes) and not any("alone" in n for n in plain.notes)
    assert aside.information_exponent == plain.information_exponent == 1


@pytest.mark.parametrize("p, told", [("gaussian:1/4", "channel='gaussian:1/4'"), ("deterministic", "channel='deterministic'"),
                                     ("exp(-(y - z)**2/2)/sqrt(2*pi)", "letter of the label")])
def test_a_law_without_its_letter_says_what_to_type(p, told):
    with pytest.raises(BadInput, match=told):
        hx.Channel(p)
    if ":" in p:
        assert hx.exponents("z**2", channel=p).information_exponent == 2
