"""A printed closed form keeps its digits where users evaluate it: far out in the tails, and where variables are dependent."""

from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    Add,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Symbol,
    erf,
    erfc,
    exp,
    lambdify,
    latex,
    log,
    oo,
    pi,
    sqrt,
    symbols,
)

from hermitex import E, Expectation, check
from hermitex.errors import HermitexError
from hermitex.symbolic.integrals import closed_form
from hermitex.symbolic.tails import TailErfc, as_erf, tails

z, z1, z2, z3 = symbols("z z1 z2 z3", real=True)
mu, k, t, w, rho = symbols("mu k t w rho", real=True)
s, u = symbols("s u", positive=True)


def density(x):
    return mpmath.exp(-x*x/2)/mpmath.sqrt(2*mpmath.pi)


def beyond(x):
    """P(z > x) to the digits of mpmath, in either tail."""
    return mpmath.erfc(x/mpmath.sqrt(2))/2


def mills(x):
    """phi(x)/P(z > x)."""
    return density(x)/beyond(x)


def interval(x, f):
    """E[f(z) | x < z < x + 1], by quadrature of the density relative to its largest value."""
    top = min(max(0, x), x + 1)
    weight = lambda y: mpmath.exp(-(y*y - top*top)/2)  # noqa: E731
    ends = mpmath.linspace(x, x + 1, 9)
    return mpmath.quad(lambda y: f(y)*weight(y), ends)/mpmath.quad(weight, ends)


FORMS = {
    "a probability": (lambda: E(Heaviside(z - k)).doit(), beyond),
    "its complement": (lambda: E(Heaviside(k - z)).doit(), lambda x: beyond(-x)),
    "a truncated mean": (lambda: E(k + z, k + z > 0).doit(), lambda x: x + density(x)/beyond(-x)),
    "the inverse Mills ratio": (lambda: E(z, z > k).doit(), lambda x: mills(x)),
    "a truncated second moment": (lambda: E(z**2, z > k).doit(), lambda x: 1 + x*density(x)/beyond(x)),
    "with a correlation": (lambda: E(z1, z2 > k, cov={(z1, z2): Rational(3, 5)}).doit(), lambda x: 3*density(x)/beyond(x)/5),
    "of a difference": (lambda: E(z1, z1 - z2 > k).doit(), lambda x: mills(x/mpmath.sqrt(2))/mpmath.sqrt(2)),
    "a rectified normal": (lambda: E(Max(0, k + z)).doit(), lambda x: x*beyond(-x) + density(x)),
    "an exponential of a modulus": (lambda: E(exp(k*Abs(z))).doit(), lambda x: 2*mpmath.exp(x*x/2)*beyond(-x)),
    "a mean in an interval": (lambda: E(z, (z > k) & (z < k + 1)).doit(), lambda x: interval(x, lambda y: y)),
    "a second moment in an interval": (lambda: E(z**2, (z > k) & (z < k + 1)).doit(), lambda x: interval(x, lambda y: y*y)),
    "the chance of an interval": (lambda: E(Heaviside(z - k)*Heaviside(k + 1 - z)).doit(),
                                  lambda x: beyond(abs(x + 0.5) - 0.5) - beyond(abs(x + 0.5) + 0.5)),
    "relu6": (lambda: E(Max(0, Min(6, k + z))).doit(),
              lambda x: beyond(-x)*mpmath.quad(lambda t: beyond(t - x)/beyond(-x), [0, *(6*2.**(n - 8) for n in range(9))])),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_holds_in_floats_from_tail_to_tail(name):
    """Twelve digits, but for what the sum of its own terms loses: x^2 roundings, as of x P(z > -x) + phi(x)."""
    form, reference = FORMS[name]
    f = lambdify(k, form(), "scipy")
    for x in np.linspace(-25, 25, 41):
        with mpmath.workdps(40), np.errstate(all="ignore"):  # the branch that is not taken divides by 0
            true = reference(mpmath.mpf(x))
            assert abs(f(x)/true - 1) < 4e-14*(1 + x**2), x


@pytest.mark.parametrize("name", FORMS)
def test_a_form_holds_where_a_number_is_put_in(name):
    form, reference = FORMS[name]
    for x in (-30, -3, 2, 30):
        with mpmath.workdps(40):
            assert abs(mpmath.mpf(str(form().subs(k, x).evalf(20)))/reference(mpmath.mpf(x)) - 1) < 1e-17


def test_the_form_of_sympy_does_not_hold_there():
    """The test sees what it is made for."""
    worse = lambdify(k, E(z, z > k).doit().rewrite(erf), "scipy")
    with np.errstate(all="ignore"):
        assert not abs(worse(9.)/9.10852310500293767 - 1) < 1e-3


def test_an_interval_with_ends_in_letters():
    """P(a < z < b), 0 for b <= a, and E[z | a < z < b], in either tail and between them."""
    a, b = symbols("a b", real=True)
    chance, mean = E(Heaviside(z - a)*Heaviside(b - z)).doit(), E(z, (z > a) & (z < b)).doit()
    f, g = (lambdify((a, b), e, "scipy") for e in (chance, mean))
    for x, y in ((9., 10.), (-10., -9.), (0.1, 0.3), (-3., 1e10), (-30., -29.), (2.5, 7.)):
        with mpmath.workdps(300), np.errstate(all="ignore"):
            true = beyond(mpmath.mpf(x)) - beyond(mpmath.mpf(y))
            assert abs(f(x, y)/true - 1) < 1e-12 and abs(g(x, y)*true/(density(mpmath.mpf(x)) - density(mpmath.mpf(y))) - 1) < 1e-12
    assert f(2., 1.) == 0 and chance.subs({a: 2, b: 1}) == 0


def test_a_sum_of_many_tails_is_written_from_where_it_vanishes():
    """A triangle, a soft threshold and what is cut off on both sides: their coefficients add up to 0 beside the normal."""
    for body, letter, places in ((Max(0, 1 - Abs(z - k)), k, (-9., 9.)), (1 - Max(-1, Min(1, k + z)), k, (9.,)),
                                 (Max(0, Abs(z) - s)**2, s, (7.,)), (Max(-s, Min(s + Rational(1, 8), z)), s, (6.,))):
        form = E(body).doit()
        for x in places:
            true = float(form.subs(letter, int(x)).evalf(20))
            assert lambdify(letter, form, "scipy")(x) == pytest.approx(true, rel=1e-10)  # x^4 roundings


def test_the_slope_of_a_leaky_unit_is_a_letter():
    form = E(Max(mu + z, k*(mu + z))).doit()
    for x, m in ((Rational(1, 3), -2), (3, 1), (-2, 1), (1, 5)):
        assert abs(form.subs({k: x, mu: m}).evalf(20) - E(Max(m + z, x*(m + z))).evalf(20)) < 1e-17


def test_scipy_has_the_functions_of_two_error_functions():
    form = E(Heaviside(mu + z)*erf(z)).doit()
    assert lambdify(mu, form, "scipy")(1.5) == pytest.approx(float(form.subs(mu, Rational(3, 2)).evalf(20)), rel=1e-13)


def test_the_square_of_a_rectified_normal():
    """A tail times a sum: (k^2 + s^2) P(z > -k/s) + k s phi(k/s), whose terms cancel to 1/x^4 of themselves at x = k/s."""
    f = lambdify((k, s), E(Max(0, k + s*z)**2).doit(), "scipy")
    for x in (-10, -7, 0, 7):
        assert f(2.*x, 2.) == pytest.approx(float(4*((x*x + 1)*beyond(-x) + x*density(x))), rel=1e-11)


def test_the_logarithm_of_a_probability():
    form = tails(log(Rational(1, 2) + erf(k/sqrt(2))/2))
    f = lambdify(k, form, "scipy")
    for x in range(-25, 26):
        true = mpmath.log(beyond(-x)) if x < 0 else mpmath.log1p(-beyond(x))
        assert f(float(x)) == pytest.approx(float(true), rel=1e-13)
        assert float(form.subs(k, x).evalf(20)) == pytest.approx(float(true), rel=1e-15)
    assert closed_form(log(E(Heaviside(z + k)))) == form and tails(form) == form
    assert as_erf(form) == log(Rational(1, 2) + erf(k/sqrt(2))/2)


def test_mu_is_a_mean_of_sixteen_digits():
    assert str(E(mu + z, mu + z > 0).doit().subs(mu, -30).evalf(15)) == "0.0332596674336770"


@given(st.floats(-30, 30))
@settings(max_examples=8, deadline=None)
def test_the_error_function_of_either_sign(x):
    e = TailErfc(-sqrt(2)*k)
    number = Rational(x)
    assert e.subs(k, number).evalf(15) == erfc(-sqrt(2)*number).evalf(15)
    assert lambdify(k, e, "mpmath")(x) == pytest.approx(float(mpmath.erfc(-mpmath.sqrt(2)*x)), rel=1e-12)
    assert e.diff(k).subs(k, number).evalf(15) == (2*sqrt(2)*exp(-2*number**2)/sqrt(pi)).evalf(15)


def test_it_is_the_function_of_sympy():
    e = TailErfc(-k)
    assert isinstance(e, erfc) and str(e) == "erfc(-k)" and latex(e) == r"\operatorname{erfc}{\left(- k \right)}"
    assert e.rewrite(erf) == 1 + erf(k) and e.limit(k, oo) == 2 and TailErfc(0) == 1 and TailErfc(-oo) == 2
    assert str((2*e).expand().subs(mu, k)) == "2*erfc(-k)"  # as it is, where an expression is rebuilt
    assert check(e, 1 + erf(k)) and check(e/2, 1 - erfc(k)/2)


def test_it_is_equal_to_that_of_sympy():
    assert TailErfc(k) == erfc(k) and erfc(k) == TailErfc(k) and {erfc(k)} == {TailErfc(k)} and TailErfc(k) - erfc(k) == 0
    assert TailErfc(k) != erfc(mu) and TailErfc(-k) != erfc(k) and TailErfc(k) != erf(k)
    assert E(Heaviside(z - k)).doit() == erfc(k/sqrt(2))/2


def test_what_stands_alone_stays():
    for e in (erf(k), 3 - erf(k), k + erf(mu), erf(k) + erf(mu), 1/(2 + erf(k))):
        assert tails(e) == e
    for e in (erf(k + 1) - erf(k), 1/(erf(k + 1) - erf(k)), erf(k) - erf(mu)):
        cases = tails(e)
        assert cases.func is Piecewise and tails(cases) == cases and as_erf(cases) == e
    p = Symbol("p", positive=True)
    assert tails(erf(p + 2) - erf(p + 1)) == TailErfc(p + 1) - TailErfc(p + 2)


def drawn(rng, depth=2):
    """A sum of constants, erf and erfc of few arguments, products and quotients of such sums: terms meet and become equal."""
    def factor():
        x = rng.choice([k, -k, k + 1, mu, 2*k])
        return rng.choice([erf(x), erf(x), erfc(x), TailErfc(x), S.One, mu])

    def term():
        return rng.choice([1, -1, 2, Rational(1, 2), Rational(-1, 2)])*factor()*rng.choice([S.One, S.One, mu, factor()])

    total = Add(*(term() for _ in range(rng.randint(2, 6))))
    return total if not depth else total + drawn(rng, depth - 1)*rng.choice([S.One, mu, 1/(5 + drawn(rng, 0)**2)])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_rewritten_is_equal(seed):
    e = drawn(random.Random(seed))
    at = {k: Rational(2, 7), mu: Rational(-3, 5)}
    assert abs((tails(e) - e).subs(at).evalf(30)) < 1e-25


def test_terms_that_become_equal_are_added():
    half = Rational(1, 2)
    assert tails(mu*(half - erf(k)/2) + mu*erfc(k)/2) == mu*erfc(k)


def test_an_average_that_is_left_stays():
    left = E(log(2 + erf(z + 1) - erf(z)))
    assert left.doit() == left


def test_an_average_of_a_tail_is_one_of_its_error_function():
    assert E(TailErfc(-z)*z).doit() == E(erf(z)*z).doit()
    assert E(TailErfc(-z - mu)).doit().equals(E(1 + erf(z + mu)).doit())
    for f in (lambda u: Heaviside(u - Rational(1, 2))*z, lambda u: abs(u - Rational(3, 2))):  # rules that know erf by name
        found = E(f(TailErfc(-z))).doit()
        assert found == E(f(1 + erf(z))).doit() and not found.has(Expectation)


# -- where variables are dependent -------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", ["elu", "selu", "relu6", "hardtanh", "relu", "leaky_relu", "gelu", "erf"])
def test_a_dual_kernel_has_its_value_at_both_ends(name):
    value = E(f"{name}(z1)*{name}(z2)", cov={(z1, z2): t}).doit()
    for r in (1, -1, 0):
        there = {1: f"{name}(z)**2", -1: f"{name}(z)*{name}(-z)", 0: f"{name}(z)"}[r]
        true = E(there).evalf(20)**(2 if r == 0 else 1)
        assert abs(value.subs(t, r).evalf(20) - true) < 1e-17


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gelu", "relu", "erf", "Phi"])
def test_the_independent_variables_are_a_product(name):
    value = E(f"{name}(z1)*{name}(z2)", cov={(z1, z1): s, (z2, z2): u, (z1, z2): w}).doit()
    at = value.subs(w, 0).subs({s: 2, u: 3})
    true = E(f"{name}(sqrt(2)*z)").evalf(20)*E(f"{name}(sqrt(3)*z)").evalf(20)
    assert abs(at.evalf(20) - true) < 1e-17


@pytest.mark.slow
def test_next_to_an_end_the_formula_stands():
    value = E("hardtanh(z1)*hardtanh(z2)", cov={(z1, z2): t}).doit()
    near = value.subs(t, 1 - Rational(1, 10**12)).evalf(15)
    assert 0 < value.subs(t, 1).evalf(15) - near < 1e-11


@pytest.mark.slow
def test_a_letter_that_cannot_vanish_has_no_case_for_it():
    positive = Symbol("r", positive=True)
    value = E("gelu(z1)*gelu(z2)", cov={(z1, z1): s, (z2, z2): u, (z1, z2): positive}).doit()
    assert not value.has(Piecewise)


def test_a_covariance_that_is_none_is_refused_as_before():
    with pytest.raises(HermitexError):
        E("relu(z1)*relu(z2)", cov={(z1, z2): 2}).doit()
    assert E(Abs(z1)*Abs(z2), cov={(z1, z2): rho}).doit().subs(rho, 1) == 1


@pytest.mark.parametrize(("body", "power"), [
    (Max(Abs(z1), Abs(z2)), 1), (Max(z1**2, z2**2), 2), (Abs(z1)*Abs(z2), 2), (Abs((z1 - 2*z2)*(z1 + z2)), 2)], ids=str)
def test_sizes_of_two_normals_keep_their_digits(body, power):
    """Against the mean over the angle of N(0, 1) x N(0, 1): variances from 1e-5 to 1e5, correlations to within 1e-7 of 1."""
    form = E(body, cov={(z1, z1): s, (z2, z2): u, (z1, z2): w}).doit()
    f, g, draw = lambdify((s, u, w), form, "scipy"), lambdify((z1, z2), body, "mpmath"), random.Random(3)
    for _ in range(20):
        a, b, gap = 10**draw.uniform(-5, 5), 10**draw.uniform(-5, 5), 10**draw.uniform(-7, 0)
        c = draw.choice([-1, 1])*(1 - gap)*mpmath.sqrt(a*b)
        with mpmath.workdps(25):
            x, slope = mpmath.sqrt(a), c/mpmath.sqrt(a)
            rest = mpmath.sqrt(b - slope**2)
            turns = [mpmath.atan2(k*x - slope, rest) % mpmath.pi for k in (-2, -1, 0, Rational(1, 2), 1, 2)] + [mpmath.pi/2]
            ends = sorted([mpmath.mpf(0), *turns, mpmath.pi])
            mean = mpmath.quad(lambda v: g(x*mpmath.cos(v), slope*mpmath.cos(v) + rest*mpmath.sin(v)), ends)/mpmath.pi  # noqa: B023
            assert abs(f(a, b, float(c))/(mean*(2 if power == 2 else mpmath.sqrt(mpmath.pi/2))) - 1) < 1e-12


def test_the_smaller_of_two_sizes():
    """E min(|z1|, |z2|) and E min(z1^2, z2^2); of variances in letters no form keeps its digits, and none is given."""
    sizes, squares = (E(Min(f(z1), f(z2)), cov={(z1, z2): rho}).doit() for f in (Abs, lambda v: v**2))
    assert sizes.subs(rho, 1) == sqrt(2/pi) and squares.subs(rho, 1) == 1
    assert sizes.subs(rho, 0).equals((2 - sqrt(2))*sqrt(2/pi)) and squares.subs(rho, 0) == 1 - 2/pi
    assert E(Min(z1**2, z2**2), cov={(z1, z1): s, (z2, z2): u}).doit().has(Expectation)


# -- one average in every spelling -------------------------------------------------------------------------------------
@pytest.mark.parametrize("indicator, steps", [
    ((z1 > 0) & (z2 > 0) & (z3 > 0), Heaviside(z1)*Heaviside(z2)*Heaviside(z3)),
    ((z1 > 0) & (z2 < 0) & (z3 >= 0), Heaviside(z1)*Heaviside(-z2)*Heaviside(z3)),
    ((z1 > z2) & (z3 <= 0), Heaviside(z1 - z2)*Heaviside(-z3))])
def test_an_indicator_is_a_product_of_steps(indicator, steps):
    a, b, c = symbols("a b c", real=True)
    cov = {(z1, z2): a, (z1, z3): b, (z2, z3): c}
    ours, theirs = E(Piecewise((1, indicator), (0, True)), cov=cov).doit(), E(steps, cov=cov).doit()
    numbers = {a: Rational(1, 3), b: Rational(-1, 4), c: Rational(1, 5)}
    assert ours == theirs and abs(ours.subs(numbers).evalf(20) - E(steps, cov=cov).subs(numbers).doit().evalf(20)) < 1e-18


def test_cases_are_taken_in_their_order():
    cases = Piecewise((1, (z1 > 0) & (z2 > 0)), (2, z1 > 0), (5, True))
    assert E(cases, cov={(z1, z2): rho}).doit().subs(rho, 0) == Rational(1, 4) + Rational(2, 4) + Rational(5, 2)


def gelu(x):
    return x*(1 + erf(x/sqrt(2)))/2


@pytest.mark.parametrize("body", [gelu(z1)*gelu(z2), (1 + erf(z1 + mu))*(1 + erf(z2))])
def test_what_a_covariance_divides_and_multiplies_is_cancelled(body):
    """s*u^2/w^2 - .. under a root, |w| beside it: nothing is left to divide by, and w = 0 is that of independent ones."""
    found = E(body, cov={(z1, z1): s, (z2, z2): u, (z1, z2): w}).doit()
    assert not found.has(Piecewise, Abs)
    generator = random.Random(5)
    for c in (0, Rational(1, 10**9), Rational(-1, 3)):
        at = {s: Rational(generator.randint(5, 20), 10), u: Rational(generator.randint(5, 20), 10), mu: Rational(-3, 10), w: c}
        numbers = E(body.subs(at), cov={(z1, z1): at[s], (z2, z2): at[u], (z1, z2): c})
        assert abs(found.subs(at).evalf(20) - numbers.evalf(20)) < 1e-15


@pytest.mark.parametrize("f", [z**2, Abs(z), 3 + z**4])
def test_the_bound_of_a_modulus_may_be_negative(f):
    found = E(f, Abs(z) > k).doit()
    assert isinstance(found, Piecewise) and not found.has(Abs)
    for x in (-2, 0, Rational(1, 2), 12, 40):
        expected = beyond_a_bound(lambdify(z, f, "mpmath"), mpmath.mpf(max(int(x*2), 0))/2)
        assert abs(found.subs(k, x).evalf(20) - expected) < 1e-13*expected
    assert abs(lambdify(k, found, "scipy")(9.) - found.subs(k, 9).evalf(20)) < 1e-11*found.subs(k, 9).evalf(20)


def beyond_a_bound(f, low):
    """E[f(z) | z > low], by quadrature of the density relative to its largest value."""
    weight = lambda y: mpmath.exp(-(y*y - low*low)/2)  # noqa: E731
    with mpmath.workdps(30):
        panels = [low, low + 1, low + 4, low + 20]
        return mpmath.quad(lambda y: f(y)*weight(y), panels)/mpmath.quad(weight, panels)
