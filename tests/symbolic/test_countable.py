"""Averages over countable laws in `check`: true identities agree, drawn errors are seen, what is far out is not claimed."""

from random import Random

import pytest
from mpmath import mp
from sympy import Abs, Function, Heaviside, I, Max, Rational, S, Symbol, asin, cos, cosh, exp, floor, frac, log, re, sin, sqrt, tanh
from sympy.stats import Geometric, Poisson

import hermitex as hx
from hermitex.errors import Divergent, NoClosedForm
from hermitex.symbolic.indexed_sums import ArraySum, Index, written_out
from hermitex.symbolic.special import LogFactorial
from hermitex.symbols import z

c = Symbol("c", positive=True)
n, m = Poisson("n", c), Geometric("m", Rational(1, 2))
n2 = Poisson("n", 2)
E = hx.E

TRUE = (
    (E(exp(-n)), exp(c*(exp(-1) - 1))), (E(1/(1 + n)), (1 - exp(-c))/c), (E(n*tanh(n)), c*E(tanh(n + 1))),
    (E(sin(n)), exp(c*cos(1) - c)*sin(c*sin(1))), (E(exp(-m)), exp(-1)/(2 - exp(-1))), (E(cos(m)), re(exp(I)/(2 - exp(I)))),
    (E(n*exp(-n/2)), c*exp(-S.Half)*E(exp(-n/2))),
)


@pytest.mark.parametrize("i", [1])
def test_true_identities_agree(i):
    found = hx.check(*TRUE[i], points=1, digits=15)
    assert found.status == "agrees"
    assert found.digits >= 12


@pytest.mark.slow
@pytest.mark.parametrize("i", range(len(TRUE)))
def test_more_true_identities_agree(i):
    assert hx.check(*TRUE[i], digits=15, points=3)


@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in (0, *range(2, 8)))])
def test_drawn_errors_are_seen(seed):
    random = Random(seed)
    left, right = TRUE[seed % len(TRUE)]
    small = Rational(random.choice((-1, 1)), 10**random.choice((3, 12, 20, 26)))
    wrong = random.choice([right*(1 + small), right + small, -right, right*(1 + small*c)])
    assert hx.check(left, wrong).status == "fails"


def test_what_is_not_known_to_the_digits_is_not_claimed():
    assert hx.check(E(tanh(z + n)), c, points=1, digits=10).status == "undetermined"


@pytest.mark.slow
def test_a_shift_of_a_poisson_law_is_proved():
    assert hx.check(E(n*exp(-n) - c*exp(-n - 1)), 0, points=1, digits=10).status == "proved"


@pytest.mark.parametrize(("switched", "otherwise"), [
    (lambda n: Max(0, n - 3), lambda n: n - 3 + Max(0, 3 - n)),
    (lambda n: Heaviside(n**2 - 399), lambda n: 1 - Heaviside(Rational(39, 2) - n)),
    (lambda n: Heaviside(n - Rational(399, 2)), lambda n: 1 - Heaviside(199 - n + S.Half)),
], ids=["near", "far", "beyond"])
def test_a_known_switch_is_summed_beyond(switched, otherwise):
    n = Poisson("n", 2)
    assert hx.check(hx.E(switched(n)), hx.E(otherwise(n)), points=1, digits=10).status == "agrees"
    assert hx.check(hx.E(switched(n)), 2*hx.E(switched(n)), points=1, digits=10).status == "fails"
    assert hx.check(hx.E(switched(n)), 0, points=1, digits=10).status == "fails"


@pytest.mark.parametrize("place", [19, 199])
def test_a_far_switch_that_is_planted_is_no_agreement(place):
    n = Poisson("n", 2)
    assert not hx.check(hx.E(sin(n)), exp(2*cos(1) - 2)*sin(2*sin(1)) + hx.E(Heaviside(n - place - S.Half)), points=1, digits=10)


def test_averages_inside_of_a_sum_over_a_law_are_worked_out():
    """E E z^2 m took a minute and a half, and what does not exist was equal to itself."""
    assert hx.check(E(E(z**2*m, z)), 2).status == "proved"
    assert hx.check(E(E(z**2*m, z)), 2 + Rational(1, 10**60)).status == "fails"
    assert hx.check(E(E(cos(n*z), z)), E(exp(-n**2/2)) + Rational(1, 10**45)).status == "fails"
    assert hx.check(E(E(exp(n*z/3), z)), E(exp(n**2/18))).status == "undetermined"


MADE = []


class Probability(Function):
    """A function of k that counts how often it is put down."""

    def __new__(cls, k):
        MADE.append(k)
        return super().__new__(cls, k)


def test_the_probabilities_of_a_law_are_put_down_once():
    """They stand in both sides of a claim, and in the longer sum that each is held to."""
    k = Index("k", endless=True)
    sums = [ArraySum(Probability(k)*f, k) for f in (k**2, cos(k))]
    MADE.clear()
    for terms in (20, 30):
        for one in sums:
            assert written_out(one, {"k": terms}).has(Probability(3))
    assert sorted(a for a in MADE if a != 3) == [a for a in range(30) if a != 3]


@pytest.mark.parametrize("k", [0, 1, 7, 400, Rational(5, 2)])
def test_the_logarithm_of_a_factorial_has_its_digits(k):
    with mp.workdps(60):
        assert abs(mp.mpf(str(LogFactorial(k).evalf(50))) - mp.loggamma(mp.mpf(Rational(k).p)/Rational(k).q + 1)) < 1e-45


@pytest.mark.parametrize(("average", "terms"), [
    (hx.E(tanh(Poisson("n", 2))), lambda mp: mp.nsum(lambda k: mp.exp(-2)*2**k/mp.factorial(k)*mp.tanh(k), [0, 90])),
    (hx.E(1/Geometric("m", Rational(1, 3))), lambda mp: mp.log(3)/2),
    (hx.E(Max(0, Poisson("n", 2) - 3)), lambda mp: mp.nsum(lambda k: mp.exp(-2)*2**k/mp.factorial(k)*(k - 3), [4, 90])),
])
def test_digits_of_an_average_over_a_countable_law(average, terms):
    with mp.workdps(40):
        assert abs(mp.mpf(str(average.evalf(30))) - terms(mp)) < mp.mpf(10)**-29


def test_what_switches_far_out_is_not_seen_and_not_called_equal():
    n = Poisson("n", 1)
    assert hx.check(hx.E(tanh(n) + Heaviside(n - 150)*cosh(n**2/10)), hx.E(tanh(n)), points=1, digits=10).status == "undetermined"


@pytest.mark.parametrize(("switch", "near"), [
    (lambda n: Abs(n - 2000), lambda n: 2000 - n), (lambda n: sqrt((n - 2000)**2), lambda n: 2000 - n),
    (lambda n: asin(sin(n/1000)), lambda n: n/1000), (lambda n: floor(n/500), lambda n: 0*n),
    (lambda n: frac(n/900), lambda n: n/900),
])
def test_no_way_to_write_a_switch_far_out_is_called_equal(switch, near):
    n = Poisson("n", Rational(3, 2))
    assert hx.check(hx.E(switch(n) + tanh(n)), hx.E(near(n) + tanh(n)), digits=10, points=1).status == "undetermined"


@pytest.mark.parametrize("exponent", [n**2/10**6, exp(n - 900), n**3/10**9 - n, n*sqrt(n)/10**4])
def test_an_average_that_diverges_far_out_is_not_compared(exponent):
    found = hx.check(E(exp(exponent)), 1 + E(exp(exponent) - 1), points=1, digits=10)
    assert found.status == "undetermined"
    assert "may grow" in found.how


@pytest.mark.slow
@pytest.mark.parametrize("turned", [Max(0, c - 300), Abs(c - 200) + c - 200])
def test_parameters_are_tried_beyond_their_turns(turned):
    n = Poisson("n", Rational(3, 2))
    assert hx.check(hx.E(cos(n) + turned), hx.E(cos(n)), points=1, digits=10).status == "fails"
    beyond = hx.check(hx.E(exp(c*n)), exp(Rational(3, 2)*(exp(c) - 1)) + turned, points=1, digits=10)
    assert beyond.status == "undetermined"  # exp(exp(300)) is no number that can be written


def test_a_countable_law_beside_a_normal_has_digits():
    """It was refused with the advice to ask for its digits. E cos(n z) = exp(-n^2/2)."""
    found = E(cos(n2*z) + n2*log(1 + exp(z)), z, n2).evalf(20)
    with mp.workdps(30):
        terms = mp.fsum(mp.exp(mp.mpf(-k*k)/2 - 2)*mp.mpf(2)**k/mp.factorial(k) for k in range(40))
        expected = terms + 2*mp.quad(lambda x: mp.log1p(mp.exp(x))*mp.npdf(x), [-mp.inf, -3, 0, 3, mp.inf])
        assert abs(mp.mpf(str(found)) - expected) < 1e-18


@pytest.mark.slow
def test_a_term_of_a_countable_law_without_a_closed_form_has_digits():
    node = E(tanh(n2 + z)*cos(z))
    assert float(node.evalf(15)) == pytest.approx(float(hx.compile(node)()), rel=1e-13)


@pytest.mark.parametrize("node, says", [(lambda: E(log(1 + E(exp(-n2*z**2), n2)), z), "not linear"),
                                        (lambda: E(cosh(n2*z)*tanh(z)**2, z, n2), "not known to be small")])
def test_a_sum_that_is_not_known_to_digits_is_refused_with_what_helps(node, says):
    with pytest.raises(NoClosedForm, match=says) as told:
        node().evalf(15)
    assert "hx.compile" in str(told.value)


@pytest.mark.parametrize("average", [E(2**m), E((-2)**m), E(m*3**m), E(Poisson("n3", 3)*2**m), E((m + 1)*2**m - 2**m)])
def test_an_average_whose_terms_do_not_fall_does_not_exist(average):
    """The terms of (-2)^m are 1, -1, ...: they added up to -1 after every second one, and that was the value to all digits."""
    with pytest.raises(Divergent, match="do not fall"):
        average.doit()
    assert not hx.check(average, -1, points=1)


def test_sums_of_powers_have_closed_forms():
    """sum_n n^k b^n, over n! or not. They stayed sums, (-3)^n without digits; sums within sums did not say that they diverge."""
    m3 = Geometric("m3", Rational(1, 3))
    assert E((-3)**n).doit() == exp(-4*c)
    assert E((-20)**n2).evalf(20) == exp(-42).evalf(20)
    assert E(2**(-m - m3)).doit() == Rational(1, 12)
    assert E(m**3).doit() == 26
    for ask in (lambda e: e.doit(), lambda e: e.evalf(15)):
        with pytest.raises(Divergent):
            ask(E(2**(m + m3)))
    assert hx.check(E(n**2*2**n), (2*c + 4*c**2)*exp(c)).status == "proved"
    assert hx.check(E(2**(m + m3)), 1).status == "undetermined"
