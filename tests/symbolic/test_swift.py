"""Sums by balls are the sums of mpmath, whoever else works with either precision."""

import threading
from fractions import Fraction
from random import Random

import pytest
import sympy as sp
from sympy import Symbol, atan, cos, erf, exp, log, sin, sqrt, tanh

import hermitex as hx
from hermitex.errors import HermitexError
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.digits.ball_evaluation import Swift
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.precise import MPMATH, enclose, evaluate
from hermitex.symbols import z

x = Symbol("x", real=True)
SHAPES = (tanh, sin, erf, atan, lambda u: exp(-u**2), lambda u: log(1 + u**2), lambda u: sqrt(2 + cos(u)), lambda u: 1/(1 + u**2))


@pytest.mark.parametrize("seed", range(12))
def test_a_value_by_balls_is_that_of_twice_the_precision(seed):
    random = Random(seed)
    f, g = random.sample(SHAPES, 2)
    expr = f(random.randint(1, 30)*x/7 + random.randint(-9, 9))*g(x) + random.choice((0, f(g(x)), x**random.randint(1, 5)))
    with mp.workprec(random.choice((53, 120, 300))):
        place = mpf(random.randint(-4000, 4000))/997
        found, bits = Swift(expr, [x], MPMATH)(place), mp.prec
        with mp.workprec(2*bits + 40):
            exact = StraightLine(expr, [x], MPMATH)(place)
            assert abs(found - exact) <= abs(exact)*mpf(2)**(1 - bits)


@pytest.mark.parametrize("expr", [
    sp.zeta(x), sp.zeta(2, x), sp.zeta(x, 3), sp.polygamma(1, x), sp.polygamma(2, x), sp.loggamma(x), sp.gamma(x), sp.factorial(x),
    sp.LambertW(x), sp.LambertW(-x/10, -1), sp.besselj(1, x), sp.besseli(0, x), sp.besselk(2, x), sp.uppergamma(2, x),
    sp.lowergamma(3, x), sp.expint(2, x), sp.Ei(x), sp.Si(x), sp.Ci(x), sp.erfc(x), sp.erfi(x), sp.erfinv(x/4), sp.beta(x, 2),
    sp.atan2(x, 2), sp.binomial(5, 2)*x, sp.li(x + 2), sp.airyai(x), sp.hyper([1, 2], [3], -x), sp.legendre(3, x), sp.Mod(x, 1),
    sp.log(x, 3), sp.Max(x, 1), sp.floor(x), sp.digamma(x), sp.harmonic(x), sp.fresnels(x), sp.sinc(x), sp.re(x), sp.arg(x + 1)])
def test_each_function_is_mpmaths_at_every_number_of_arguments(expr):
    with mp.workprec(80):
        for place in (mpf(17)/10, mpf(3)/8):
            try:
                exact = StraightLine(expr, [x], MPMATH)(place)
            except HermitexError:
                return
            assert abs(Swift(expr, [x], MPMATH)(place) - exact) <= abs(exact)*mpf(2)**-70


def test_a_claim_about_another_branch_of_a_function_fails():
    assert hx.check(hx.E(sp.zeta(2, z**2 + 1), z), sp.pi**2/6).status == "fails"


def test_where_balls_tell_nothing_mpmath_does():
    program = Swift(log(x) + sqrt(x), [x], MPMATH)
    assert program(mpf(-1)) == mp.mpc(0, mp.pi + 1)
    assert program(mpf(4)) == mp.log(4) + 2


def test_threads_that_sum_and_enclose_keep_their_precisions():
    want, found = hx.E(tanh(z)**2, z).evalf(40), []

    def job(shift):
        found.append(abs(hx.E(tanh(z)**2 + shift, z).evalf(40) - shift - want) < Fraction(1, 10**36))
        found.append(enclose(hx.E(tanh(z)**2 + shift, z), 40).width < Fraction(1, 10**38))

    threads = [threading.Thread(target=job, args=(k,)) for k in (1, 2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True]*6


@pytest.mark.parametrize("seed", range(3))
def test_a_tail_that_cancels_keeps_its_digits(seed):
    """E erfc(z + b) = erfc(b/sqrt(3)), and E log(1 + exp(z - a)) = exp(1/2 - a)(1 + O(e^-a)); neither is seen in 30 digits of 1."""
    random = Random(seed)
    a = random.randint(25, 90)
    with mp.workdps(40):
        exact = mp.erfc(mpf(a)/4/mp.sqrt(3))
        assert abs(evaluate(hx.E(1 - erf(z + sp.Rational(a, 4)), z), 25) - exact) <= exact*mpf(10)**-24
        leading = mp.exp(mpf(1)/2 - a)
        assert abs(evaluate(hx.E(log(1 + exp(z - a)), z), 25)/leading - 1) < mp.exp(2 - a) + mpf(10)**-24
