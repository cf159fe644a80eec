"""evaluate = closed form = mpmath.quad; the digits promised are there; parameters, several variables and nesting."""

from __future__ import annotations

import threading
from fractions import Fraction
from random import Random

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    CRootOf,
    Heaviside,
    Integral,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    floor,
    gamma,
    log,
    pi,
    sech,
    sign,
    sin,
    sqrt,
    tan,
    tanh,
    zeta,
)
from sympy.stats import Cauchy, Uniform

from hermitex import E, check, parse
from hermitex.errors import Divergent, NoClosedForm, NotConverged
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.indexed_sums import ArraySum, Index
from hermitex.symbolic.precise import enclose, evaluate, evaluate_with_error
from hermitex.symbols import z, z1, z2

t = Symbol("t", real=True)
EXACT = [
    (exp(3*z), exp(Rational(9, 2))), (z**20, 654729075), (Abs(z), sqrt(2/pi)), (Max(0, z), 1/sqrt(2*pi)),
    (Abs(z)**Rational(-1, 2), gamma(Rational(1, 4))/(2**Rational(1, 4)*sqrt(pi))),
    (1/(1 + exp(-z)), Rational(1, 2)), (exp(z**2/4), sqrt(2)), (cos(3*z), exp(Rational(-9, 2))),
    (Heaviside(z - sqrt(2*log(2))), (1 - erf(sqrt(log(2))))/2), (erf(z)*z, 2/sqrt(3*pi)),
    (z*(sin(z/1000) - z/1000*exp(-Rational(1, 2000000)))*(z**2 - 3), -exp(-Rational(1, 2000000))/10**9),
    (z*sign(z - CRootOf(z**3 - z - 1, 0)), sqrt(2/pi)*exp(-CRootOf(z**3 - z - 1, 0)**2/2)),
    (exp(z**2/2)/(1 + z**2), sqrt(pi/2)), (Abs(z - 1)**2, 2),
]


@pytest.mark.parametrize(("g", "value"), EXACT, ids=lambda v: str(v)[:40])
def test_closed_forms_to_25_digits(g, value):
    found, error = evaluate_with_error(E(g, z), 25)
    with mpmath.workdps(40):
        exact = mpmath.mpmathify(value.evalf(40) if hasattr(value, "evalf") else value)
        assert abs(found - exact) <= 2*error + abs(exact)*mpmath.mpf(10)**-30
        assert error <= abs(exact) * mpmath.mpf(10)**-25


# mpmath.quad at 40 digits on panels split by hand at the kinks, L = 14 (E z^2 log(1+e^z) and others in the same way)
@pytest.mark.parametrize(("g", "f", "cuts"), [
    (z*tanh(20*z), lambda x: x*mpmath.tanh(20*x), [0.02, 0.1, 0.3, 1]),
    (z*floor(z), lambda x: x*mpmath.floor(x), range(1, 13)),
    (z**2*log(1 + exp(z)), lambda x: x*x*mpmath.log(1 + mpmath.exp(x)), [1, 3, 6]),
    (Piecewise((tanh(z), z > 1), (z**2, True)), lambda x: mpmath.tanh(x) if x > 1 else x*x, [1, 2, 4]),
    (log(Abs(z)), lambda x: mpmath.log(abs(x)), [1, 3, 6]),
], ids=["tanh", "floor", "softplus", "piecewise", "log"])
def test_against_mpmath_quad(g, f, cuts):
    with mpmath.workdps(40):
        points = [-14, *(-mpmath.mpf(c) for c in reversed(list(cuts))), 0, *(mpmath.mpf(c) for c in cuts), 14]
        phi = lambda x: mpmath.exp(-x*x/2)/mpmath.sqrt(2*mpmath.pi)  # noqa: E731
        expected = mpmath.quad(lambda x: f(x)*phi(x), points)
        assert abs(evaluate(E(g, z), 30) - expected) < abs(expected) * mpmath.mpf(10)**-28


@settings(max_examples=3)
@given(a=st.fractions(-3, 3, max_denominator=7), s=st.fractions(Rational(1, 5), 3, max_denominator=7))
def test_stein(a, s):
    """E[z f(a + s z)] = s E[f'(a + s z)], each side its own quadrature."""
    u = Rational(a.numerator, a.denominator) + Rational(s.numerator, s.denominator)*z
    left = evaluate(E(z*tanh(u), z), 20)
    right = evaluate(E(Rational(s.numerator, s.denominator)*(1 - tanh(u)**2), z), 20)
    assert mpmath.almosteq(left, right, rel_eps=mpmath.mpf(10)**-17)


@pytest.mark.parametrize("body", ["sign(2*z1 + sqrt(s)*z2)*z1", "sign(2*z1 + sqrt(s)*z2)*tanh(z1)",
                                  "Heaviside(z1 + sqrt(s)*tanh(z2))*z2**2"])
def test_what_is_not_real_is_not_compared_with_zero(body):
    node = E(parse(body, symbols="s"), z1, z2)
    assert evaluate(node, 10, subs={"s": 3}) > 0
    with pytest.raises(NoClosedForm, match="is compared with 0 and is not real"):
        evaluate(node, 10, subs={"s": -3})


def test_a_lost_factor_is_seen():
    """The tooth of Stein's identity: s^2 in place of s."""
    u = 1 + 2*z
    left, planted = evaluate(E(z*tanh(u), z), 20), evaluate(E(4*(1 - tanh(u)**2), z), 20)
    assert not mpmath.almosteq(left, planted, rel_eps=mpmath.mpf(10)**-1)


def test_a_formula_with_nodes_parameters_and_nesting():
    a = Symbol("a", positive=True)
    inner = E(z1*tanh(z1), z1)
    value = evaluate(1 + a*E(z*(tanh(z) - z*inner), z)**2, 20, subs={"a": 3})
    assert abs(value - 1) < mpmath.mpf(10)**-18
    with pytest.raises(NoClosedForm, match="a has no value"):
        evaluate(E(tanh(a*z)**2, z))


@pytest.mark.slow
def test_several_variables_third_route():
    """E[tanh(z1 + z2)^2] over two normals is E[tanh(sqrt(2) z)^2] over one."""
    two = evaluate(E(tanh(z1 + z2)**2, z1, z2), 12)
    one = evaluate(E(tanh(sqrt(2)*z)**2, z), 12)
    assert mpmath.almosteq(two, one, rel_eps=mpmath.mpf(10)**-11)


@pytest.mark.slow
def test_digits_of_two_variables():
    """The value: a sum over a product of shifted nodes of step 1/9 in mpmath's numbers."""
    node = E(tanh(z1)*tanh(z2), z1, z2, cov={(z1, z2): Rational(1, 2)})
    known = mp.mpf("0.186324413203448086106782889972409")
    assert abs(evaluate(node, 14) - known) < known*mp.mpf(10)**-13
    with pytest.raises(NotConverged, match="only an error of"):  # in doubles, as every average that needs two variables
        evaluate(node, 25)


def test_an_average_of_a_function_of_averages():
    """E log E_y cosh(x y) = E x^2/2, and E (E_y |x - y|)^2 = E |x - y| |x - y'| over three normals."""
    assert abs(evaluate(E(log(E(exp(z1*z2)*cosh(z1)/cosh(z1), z2)), z1), 14) - mp.mpf(1)/2) < mp.mpf(10)**-13
    square = evaluate(E(E(Abs(z1 - tanh(z2)), z2)**2, z1), 14)
    assert abs(square - evaluate(E(Abs(z - tanh(z1))*Abs(z - tanh(z2)), z, z1, z2), 8)) < mp.mpf(10)**-7
    assert abs(evaluate(E(Abs(E(tanh(z1 + z2), z2)), z1), 13) - evaluate(E(sign(z1)*tanh(z1 + z2), z1, z2), 13)) < mp.mpf(10)**-12
    with pytest.raises(NoClosedForm, match="stands in it otherwise than linearly"):
        evaluate(E(tanh(1 + E(tanh(z + z1*z2)**2, z1, z2)), z))


def test_correlation():
    rho = Rational(3, 5)
    value = evaluate(E(sign(z1)*sign(z2), z1, z2, cov={(z1, z2): rho}), 15)
    assert mpmath.almosteq(value, 2*mpmath.asin(mpmath.mpf(3)/5)/mpmath.pi, rel_eps=mpmath.mpf(10)**-13)


def test_evalf_of_a_node_and_of_what_holds_it():
    node = E(z*tanh(z), z)
    assert str(node.evalf(20)) == "0.60570550960215882558"  # mpmath.quad, 30 digits, 56 panels
    assert abs((node - Rational(605705509602, 10**12)).evalf(5) - Rational(15882558, 10**20)) < Rational(1, 10**16)


def test_a_sum_of_averages_between_numbers_ends_where_it_says():
    """Not at infinity, 2^-12 further on: by either way of asking, and with sums inside of sums."""
    k, j = Index("k", 1, count=12), Index("j", 1, count=3)
    node = ArraySum(E(tanh(k*z)**2, z)/2**k, k)
    with mp.workdps(30):
        terms = mp.fsum(evaluate(E(tanh(i*z)**2, z), 25)/2**i for i in range(1, 13))
        assert abs(evaluate(node, 20) - terms) < 1e-19 and abs(mp.mpf(str(node.evalf(20))) - terms) < 1e-19
    nested = ArraySum(k*ArraySum(1/(j + k), j), k)
    assert evaluate(nested, 20) == pytest.approx(float(sum(Fraction(i, m + i) for i in range(1, 13) for m in (1, 2, 3))), rel=1e-15)


def test_more_terms_than_are_added_up_are_said():
    few, many = Index("k", 1, count=20_000), Index("k", 1, count=200_000)
    with mp.workdps(30):
        assert abs(mp.mpf(str(ArraySum(1/few**2, few).evalf(20))) - mp.zeta(2) + mp.zeta(2, 20_001)) < 1e-19
    with pytest.raises(NoClosedForm, match="200000 terms"):
        evaluate(ArraySum(1/many**2, many))
    assert ArraySum(1/many**2, many).evalf() == ArraySum(1/many**2, many)
    with pytest.raises(NoClosedForm, match="divided by zero"):
        evaluate(ArraySum(1/(few - 5), few))


def test_what_does_not_exist_is_said():
    for g in (1/z, tan(z), exp(z**2)):
        with pytest.raises(Divergent):
            evaluate(E(g, z))


def test_the_error_is_honest():
    """At few digits the promised error still covers the distance to a value of many digits."""
    for g in (z*tanh(20*z), Abs(cos(2*z)), log(Abs(z - 1))):
        coarse, error = evaluate_with_error(E(g, z), 8)
        assert abs(coarse - evaluate(E(g, z), 20)) <= error + abs(coarse)*mpmath.mpf(10)**-19


@pytest.mark.parametrize("k", [40, 90, 200])
def test_what_is_below_its_error_has_the_digits_of_its_closed_form(k):
    """E cos(k z)/(1 + e^z) = exp(-k^2/2)/2, which is far below what can be seen of the terms."""
    node, exact = E(cos(k*z)/(1 + exp(z)), z), exp(-Rational(k)**2/2)/2
    for value, digits in ((node.evalf(), 14), ((2*node).evalf()/2, 14), (node.evalf(30), 29)):
        assert abs(value/exact.evalf(40) - 1) < 10**-digits
    assert abs((1 + node).evalf(30) - 1) < 1e-29


def test_what_is_below_its_error_and_has_no_closed_form_shows_no_digit():
    """E cos(400 z) exp(-z^4), some 1e-312."""
    value = E(cos(400*z)*exp(-z**4), z).evalf()
    assert value == 0 or value._prec == 1
    assert abs(E(cos(6*z)/(1 + exp(z)), z).evalf(20)*2*exp(18) - 1).evalf() < 1e-19


@pytest.mark.parametrize("seed", range(3))
def test_bells_far_apart_in_a_wide_window_are_all_found(seed):
    """E cosh(kz) tanh(z)^2 = exp(k^2/2) to exp(-100): two bells of width 1 at k and -k, which few nodes meet."""
    random = Random(seed)
    for k in [Rational(300), Rational(500), *(Rational(random.randint(1000, 20000), 10) for _ in range(4))]:
        ratio = evaluate(E(cosh(k*z)*tanh(z)**2, z)*exp(-k**2/2), 15)
        assert abs(ratio - 1) < mp.mpf(10)**-13


@pytest.mark.parametrize("rho", [Rational(0), Rational(1, 2), Rational(-3, 5)])
@pytest.mark.parametrize("g", [tanh, pytest.param(lambda u: 1/(1 + exp(-u)), marks=pytest.mark.slow),
                               pytest.param(lambda u: u**3 + u, marks=pytest.mark.slow), lambda u: exp(-u)])
def test_a_switch_between_two_values_of_one_function_is_one_of_their_order(g, rho):
    """E|g(z1) - g(z2)| = 2 |E g(z) erf(a z)|, a^2 = (1 - rho)/(2 + 2 rho), for a monotone g, and E max - E min."""
    cov = {(z1, z2): rho}
    asked = [E(2*g(z)*erf(sqrt((1 - rho)/(2 + 2*rho))*z), z), *(
        E(f(g(z1), g(z2)), z1, z2, cov=cov) for f in (lambda a, b: Abs(a - b), Max, Min))]
    with mp.workdps(40):
        (along, _), (gap, off), (high, above), (low, below) = (evaluate_with_error(e, 15) for e in asked)
        assert max(off, above, below) < 1e-12*gap
        assert abs(gap - abs(along)) < off + 1e-14*gap and abs(high - low - gap) < off + above + below


def test_more_digits_agree_with_fewer():
    node = E(tanh(z + Rational(2, 7))*exp(sin(z)), z)
    first = node.evalf(20)
    assert abs(node.evalf(45) - first) < 10**-19 and abs(node.evalf(60) - first) < 10**-19


def test_a_tail_whose_factor_is_beyond_every_bound():
    """e^5000 E[exp(-1000 z) 1(z > 5)]: exp(-4000), below which no bound went, left it a window of 2^2000."""
    assert abs(E(exp(-1000*(z - 5))*Heaviside(z - 5), z).evalf(20)*10**9 - 1.4793214355975969518) < 1e-15


def test_a_jump_that_stands_within_the_error_of_what_it_compares_has_no_digits():
    """E cos(z) = exp(-1/2): its sign beside that number was -1, with an error of 3e-20."""
    for jump in (sign(E(cos(z), z) - exp(-Rational(1, 2))), floor(E(tanh(z)**2 + sech(z)**2, z))):
        with pytest.raises(NotConverged):
            evaluate(jump, 15)
    assert evaluate(Heaviside(E(tanh(z), z)), 15) == 0.5
    assert evaluate(sign(E(cos(z), z) - exp(-Rational(1, 2)) - Rational(1, 10**9)), 15) == -1


def test_the_logarithm_of_an_exponential_variable_has_its_digits():
    """log(-log(erfc(u)/2)) at negative u, where erfc(u)/2 is rounded to 1: the average was refused."""
    assert evaluate(E(log(-log(erfc(z/sqrt(2))/2)) + 1, z), 12) == pytest.approx(1 - float(mp.euler), abs=1e-11)


def test_an_exponential_that_no_number_holds_is_infinite_or_0():
    """exp(exp(exp(4))) took mpmath seconds in one step, which no budget ends, or all memory."""
    with mp.workdps(30):
        known = mp.quad(lambda t: mp.npdf(t)*mp.exp(-mp.exp(mp.exp(t*t))), [k/mp.mpf(4) for k in range(-6, 7)])
    assert abs(evaluate(E(exp(-exp(exp(z**2))), z), 15) - known) < 1e-15


def test_integrals_inside_of_an_average_have_digits():
    assert evaluate(E(Integral((t + z)**3, (t, 0, 1)), z), 15) == pytest.approx(1.75, abs=1e-14)
    assert evaluate(E(z**2*Integral(t, (t, 0, z)), z), 15) == pytest.approx(1.5, abs=1e-13)


def test_what_an_inner_average_does_not_touch_is_one_letter():
    """P(|z| < U) of a uniform U took half a minute: with 3 Phi(u) for the letter c, E H(c - |z|) had no closed form."""
    known = 2*(mpmath.ncdf(3) - 0.5) - 2*(mpmath.npdf(0) - mpmath.npdf(3))/3
    with deadline(10):
        assert evaluate(E(Heaviside(Uniform("U", 0, 3) - Abs(z))), 15) == pytest.approx(float(known), abs=1e-14)


def test_how_many_roots_of_a_tangent_lie_in_a_window_may_depend_on_letters():
    """E[X H(X - a)] of a Cauchy law was a TypeError of SymPy."""
    node = E(Heaviside(Cauchy("X", 0, 1) - Symbol("a", real=True))*Cauchy("X", 0, 1))
    assert node.doit() == node


@pytest.mark.parametrize(("k", "at"), [(10**4, Rational(-1, 3))])
def test_what_turns_fast_beside_a_kink_has_the_digits_of_its_closed_form(k, at):
    """E cos(k z) max(0, z - a) is phi(a) Re e^(i k a)/(i k - a)^2 (1 - 3/(i k - a)^2 ...), term by term of its series in 1/k."""
    with mp.workdps(40):
        a = mp.mpf(at.p)/at.q
        u = mp.mpc(a, -k)
        known = mp.re(mp.npdf(a)*mp.expj(k*a)*sum((-1)**n*mp.fac2(2*n + 1)/u**(2*n + 2) for n in range(12)))
        with deadline(10):
            assert abs(evaluate(E(cos(k*z)*Max(0, z - at), z), 15)/known - 1) < 1e-14


def test_powers_of_what_turns_fast_beside_a_kink():
    """cos(175 z) was written as a polynomial of degree 175 to see that nothing is odd, and erf(1 + 371 i) summed term by term."""
    node = E(cos(175*z)**3*Max(0, z - Rational(9, 10)), z)
    assert str(node.evalf(30)) == "-0.00000605086263732858234255417292848"  # by panels of 1/20, to 50 digits
    assert float(E(cos(175*z)**2*Heaviside(z - 1), z).evalf(15)) == pytest.approx(0.07965882350684148285, rel=1e-14)


def test_a_claim_about_another_branch_of_a_function_fails():
    assert check(E(zeta(2, z**2 + 1), z), pi**2/6).status == "fails"


def test_threads_that_sum_and_enclose_keep_their_precisions():
    want, found = E(tanh(z)**2, z).evalf(40), []

    def job(shift):
        found.append(abs(E(tanh(z)**2 + shift, z).evalf(40) - shift - want) < Fraction(1, 10**36))
        found.append(enclose(E(tanh(z)**2 + shift, z), 40).width < Fraction(1, 10**38))

    threads = [threading.Thread(target=job, args=(k,)) for k in (1, 2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True]*6


@pytest.mark.parametrize("seed", range(3))
def test_a_tail_that_cancels_keeps_its_digits(seed):
    """E erfc(z + b) = erfc(b/sqrt(3)), and E log(1 + exp(z - a)) = exp(1/2 - a)(1 + O(e^-a)); neither is seen in 30 digits of 1."""
    a = Random(seed).randint(25, 90)
    with mp.workdps(40):
        exact = mp.erfc(mp.mpf(a)/4/mp.sqrt(3))
        assert abs(evaluate(E(1 - erf(z + Rational(a, 4)), z), 25) - exact) <= exact*mp.mpf(10)**-24
        leading = mp.exp(mp.mpf(1)/2 - a)
        assert abs(evaluate(E(log(1 + exp(z - a)), z), 25)/leading - 1) < mp.exp(2 - a) + mp.mpf(10)**-24


def test_what_cancels_to_nothing_has_the_digits_of_its_closed_form():
    """E[cos(40 z)/(1 + e^z)] = exp(-800)/2: quadrature in 158 digits sees 0."""
    assert abs(E("cos(40*z)/(1 + exp(z))").evalf(25)/(exp(-800)/2).evalf(30) - 1) < 1e-24
