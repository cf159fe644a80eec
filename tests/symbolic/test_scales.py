"""Digits of what oscillates, is narrow, or is singular without harm: against closed forms by construction."""

import random

import mpmath
import pytest
from sympy import Abs, N, Rational, Symbol, cos, exp, log, pi, sin, sqrt, tanh

from hermitex import E
from hermitex.errors import Divergent, NotConverged
from hermitex.symbolic.precise import evaluate, evaluate_with_error
from hermitex.symbolic.scales import roots, scales
from hermitex.symbols import z, z1, z2

mp = mpmath.mp.clone()
mp.dps = 45
mpf = mp.mpf
x = Symbol("x", real=True)
VALUES = [  # the first two are I_0(1) and 1/sqrt(3), the last two exact, the others sums of 10^5 terms
    (exp(cos(16*pi*z)), "1.2660658777520083356"), (1/(2 + cos(16*pi*z)), "0.57735026918962576451"),
    (tanh(1 + sin(50*z)), "0.61621403735565884452"), (cos(200*z)**2*tanh(z)**2, "0.19714724519892058721"),
    (1/(exp(z) - 1) - 1/z, "-0.5"), (exp(z**2/2 - sqrt(Abs(z))), "1.5957691216057307118"),
]


def own(value):
    """A number of the package as one of this module."""
    return mpf(mpmath.nstr(value, 45))


@pytest.mark.parametrize("digits", [15, 19])
@pytest.mark.parametrize("body, value", VALUES, ids=lambda v: str(v)[:30])
def test_examples(body, value, digits):
    assert abs(own(evaluate(E(body, z), digits))/mpf(value) - 1) < mpf(10)**(2 - digits)


def test_removable_and_integrable_singularities():
    # E (1 - cos z)/z^2 = int_0^1 (1 - s) exp(-s^2/2) ds, and E |z|^-a = 2^(-a/2) Gamma((1 - a)/2)/sqrt(pi)
    known = mp.quad(lambda s: (1 - s)*mp.exp(-s*s/2), [0, 1])
    assert abs(own(evaluate(E((1 - cos(z))/z**2, z), 25)) - known) < mpf(10)**-24
    for a in (Rational(1, 2), Rational(9, 10), Rational(99, 100)):
        b = mpf(int(a.p))/int(a.q)
        known = mpf(2)**(-b/2)*mp.gamma((1 - b)/2)/mp.sqrt(mp.pi)
        assert abs(own(evaluate(E(Abs(z)**-a*tanh(z)**2/tanh(z)**2, z), 25))/known - 1) < mpf(10)**-24
    known = mp.quad(lambda s: mp.exp(-s*s/2), [0, 1])  # E sin(z)/z
    assert abs(own(evaluate(E(sin(z)/z, z), 25)) - known) < mpf(10)**-24


@pytest.mark.parametrize("body", [tanh(z)/z**2, 1/(exp(z) - 1), (1 - cos(z))/z**4, Abs(z)**Rational(-101, 100)], ids=str)
def test_nothing_is_found_beyond_what_exists(body):
    with pytest.raises(Divergent):
        evaluate(E(body, z), 15)


def test_what_a_formula_shows_of_its_scales():
    a, c = Symbol("a", real=True), Symbol("c", real=True)
    assert scales(tanh(a*(x - c))*cos(a*x)**2, x) == (((a, -a*c),), (2*Abs(a),))
    assert scales(exp(-10**6*(x - 3)**2)*x, x).narrow == ((1000*sqrt(2), -3000*sqrt(2)),)
    assert scales(1/(1 + exp(-a*x - c)), x).narrow == ((-a, -c),)
    assert scales(tanh(x)*exp(x/2)*cos(x), x) == ((), ())
    assert scales(log(1 + exp(50*x)), x).narrow == ((50, 0),)
    ((k, b),) = scales(exp(-10**8*(x + exp(x))**2 + tanh(x)), x).narrow  # at -W(1), where the slope of the exponent changes sign
    assert abs(-b/k + 0.567143290410) < 1e-8 and 2e4 < k < 3e4
    ((k, b),) = scales(1/(1 + 10**12*(tanh(x) - Rational(1, 2))**2), x).narrow
    assert abs(k/750000 - 1) < 1e-9 and abs(b/k + mp.atanh(mpf("0.5"))) < 1e-9
    assert set(roots((x - 2)*(x**2 - a), x)) == {2, sqrt(a), -sqrt(a)}


def waves(draw):
    """E exp(b cos k z) = sum I_n(b) exp(-n^2 k^2/2), and 1/(b + cos k z) has the coefficients r^n/sqrt(b^2 - 1)."""
    k, b = draw.randint(1, 400), Rational(draw.randint(12, 40), 10)
    q = mpf(int(b.p))/int(b.q)
    damped = [mp.exp(-(mpf(n)*k)**2/2) for n in range(60)]
    if draw.random() < 0.5:
        return exp(b*cos(k*z)), mp.besseli(0, q) + 2*sum(mp.besseli(n, q)*damped[n] for n in range(1, 60))
    r = mp.sqrt(q*q - 1) - q
    return 1/(b + cos(k*z)), (1 + 2*sum(r**n*damped[n] for n in range(1, 60)))/mp.sqrt(q*q - 1)


def narrow(draw):
    """What is narrow is stretched: z = c + w t."""
    c, width = Rational(draw.randint(-25, 25), 10), Rational(1, draw.choice([10, 100, 3000, 10**5, 10**6]))
    g, slow = draw.choice([(tanh(z)**2, lambda t: mp.tanh(t)**2), (1/(1 + z**2), lambda t: 1/(1 + t*t)),
                           (exp(z/3), lambda t: mp.exp(t/3))])
    bump, shape, reach = draw.choice([(exp(-((z - c)/width)**2), lambda t: mp.exp(-t*t), 12),
                                      (1 - tanh((z - c)/width)**2, lambda t: mp.sech(t)**2, 60)])
    m, w = mpf(int(c.p))/int(c.q), mpf(int(width.p))/int(width.q)
    reach = min(reach, 16/w)
    ends = mp.linspace(-reach, reach, 2*int(reach) + 1)
    return bump*g, mp.quad(lambda t: shape(t)*slow(m + w*t)*mp.npdf(m + w*t)*w, ends)


def singular(draw):
    """E |z|^-a (1 + z^2) by Gamma functions."""
    a = Rational(draw.randint(1, 98), 100)
    b = mpf(int(a.p))/int(a.q)
    return Abs(z)**-a*(1 + z**2), sum(mp.gamma((1 - n)/2)*mpf(2)**(-n/2)/mp.sqrt(mp.pi) for n in (b, b - 2))


def agree(seed, digits):
    body, known = random.Random(seed).choice([waves, waves, narrow, narrow, singular])(random.Random(seed))
    try:
        value, error = evaluate_with_error(E(body, z), digits)
    except NotConverged:
        return  # it said so
    assert own(error) <= abs(known)*mpf(10)**(3 - digits), body
    assert abs(own(value) - known) <= 10*own(error) + abs(known)*mpf(10)**(3 - digits), body


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_averages(seed):
    agree(seed, 15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_many_random_averages(seed):
    agree(1000 + seed, 15 if seed % 3 else 30)


def test_harmonics_of_a_wave_are_counted_once():
    """However deep it stands, and in how many factors: a product of them asked for a thousand times the nodes."""
    a = Symbol("a", positive=True)
    inner = 1/(1 + exp(tanh(sin(a*x)))**2)
    assert scales(inner, x).fast == scales(tanh(sin(a*x)), x).fast == (16*a,)
    assert scales(inner**3*tanh(inner)*(1 + inner), x).fast == (16*a,)
    assert scales(cos(200*x)*inner, x).fast == (200 + 16*a,)
    assert scales(sin(a*x)**2*cos(3*a*x), x).fast == (5*a,)


@pytest.mark.parametrize("seed", range(12))
def test_what_has_a_period_is_averaged_on_a_circle(seed):
    """E exp(a cos(w u + b)) = I_0(a) + 2 sum_n I_n(a) exp(-n^2 w^2/2) cos(n b); over two variables thousands of nodes squared."""
    draw = random.Random(seed)
    a, b = Rational(draw.randint(1, 30), 10), Rational(draw.randint(-9, 9), 3)
    w = draw.choice([Rational(3, 2), sqrt(5), pi, 20, 10**6])
    known = mp.besseli(0, own(a.evalf(40))) + 2*mp.fsum(
        mp.besseli(n, own(a.evalf(40)))*mp.exp(-(n*own(N(w, 45)))**2/2)*mp.cos(n*own(N(b, 45))) for n in range(1, 12))
    both = E(exp(a*cos(w*(3*z1 + 4*z2)/5 + b)), z1, z2)
    for node in (E(exp(a*cos(w*z + b)), z), both, E(exp(a*cos(w*z1)*cos(b) - a*sin(w*z1)*sin(b)), z1)):
        assert abs(own(evaluate(node, 25))/known - 1) < mpf(10)**-23, node


def test_fast_products_of_two_variables():
    # E cos(A)^2k cos(B)^2k = (binomial(2k, k)/4^k)^2 but for exp(-450)
    known = mp.fsum((mp.binomial(2*k, k)/4**k)**2/mp.factorial(2*k) for k in range(15))
    assert abs(own(evaluate(E(exp(cos(50*z1)*cos(30*z2)), z1, z2), 13))/known - 1) < mpf(10)**-12


@pytest.mark.parametrize("width", [10**5, 10**7, 10**8, 10**12])
@pytest.mark.parametrize("place", [Rational(1, 3), -2, sqrt(2)], ids=str)
def test_a_steep_step_anywhere(width, place):
    # E 1/(1 + exp(-s (z - c))) = Phi(-c) + pi^2/6 c phi(c)/s^2 + O(s^-4)
    c = own(N(place, 45))
    known = mp.erfc(c/mp.sqrt(2))/2 + mp.pi**2/6*c*mp.exp(-c*c/2)/mp.sqrt(2*mp.pi)/mpf(width)**2
    assert abs(own(evaluate(E(1/(1 + exp(-width*(z - place))), z), 19))/known - 1) < mpf(10)**-17
