"""low <= E g <= high, proved on the whole line: against mpmath at 50 digits, exact values, and planted errors."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    CRootOf,
    Heaviside,
    Max,
    Piecewise,
    Rational,
    Symbol,
    atan,
    besselk,
    cos,
    erf,
    exp,
    floor,
    gamma,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tan,
    tanh,
)

from hermitex import E
from hermitex.errors import Divergent, NoClosedForm
from hermitex.numbers import ball_integral
from hermitex.numbers.integrand import Integrand
from hermitex.numbers.windows import Window
from hermitex.symbolic.precise import Enclosure, enclose, evaluate_with_error
from hermitex.symbolic.special import ImErf, OwenT, ReErf, SignCorrelation
from hermitex.symbols import z

TARGETS = [
    exp(3*z), z*tanh(20*z), z**20, Abs(z)**Rational(-1, 2), log(Abs(z)), z*floor(z), z/(1 + exp(-z)), Max(0, z),
    Heaviside(z - sqrt(2*log(2))), z*sign(z**3 - 7*z + 1), Abs(tanh(z) - Rational(1, 3)), z*tanh(log(1 + exp(z))),
    Piecewise((z, z > 0), (exp(z) - 1, True)), Abs(z - 1)**Rational(-9, 10), exp(z**2/4), sqrt(Abs(z)), sin(z)/z,
    exp(z**2/2)/(1 + z**4), z*atan(z), (z**3 - 3*z)*(tanh(z) - z*E(z*tanh(z), z)), sqrt(1 + z**2), Abs(cos(z)),
]


def mostly_slow(cases: list, every: int) -> list:
    """Each case counts, but only some of them in the quick run."""
    return [c if i % every == 0 else pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.slow)
            for i, c in enumerate(cases)]


@pytest.mark.parametrize("g", mostly_slow(TARGETS, 4), ids=lambda g: str(g).replace("z1", "z")[:40])
def test_the_value_at_50_digits_is_inside(g):
    found = enclose(E(g, z), digits=15)
    value, error = evaluate_with_error(E(g, z), 25)
    assert found.width * 10**15 <= abs(found.low)
    with mpmath.workdps(50):
        assert mpmath.mpf(found.low.numerator)/found.low.denominator - error <= value
        assert value <= mpmath.mpf(found.high.numerator)/found.high.denominator + error


@pytest.mark.parametrize(("g", "value"), [
    (z**4, 3), (Max(0, z), 1/sqrt(2*pi)), (Abs(z)**Rational(-1, 2), gamma(Rational(1, 4))/(2**Rational(1, 4)*sqrt(pi))),
    (exp(z**2/4), sqrt(2)), (exp(-z**2)*cos(z), exp(-Rational(1, 6))/sqrt(3)), (erf(z)**2, 2*atan(2/sqrt(5))/pi),
    (exp(z**2/2)/(1 + z**2), sqrt(pi/2)), (log(Abs(z)), None),
], ids=str)
def test_exact_values_are_inside_at_50_digits(g, value):
    found = enclose(E(g, z), digits=40)
    with mpmath.workdps(60):
        # E log|z| = -(gamma + log 2)/2
        exact = -(mpmath.euler + mpmath.log(2))/2 if value is None else mpmath.mpmathify(Rational(0) + value).real \
            if not hasattr(value, "evalf") else mpmath.mpf(str(value.evalf(60)))
        assert found.contains(exact)


@settings(max_examples=6)
@given(a=st.fractions(-2, 2, max_denominator=9), b=st.fractions(-2, 2, max_denominator=9))
def test_linear_combinations_of_kinks(a, b):
    """E[max(z, a) + b|z|] in closed form, the end points exact rationals."""
    a, b = (Rational(x.numerator, x.denominator) for x in (a, b))
    exact = exp(-a**2/2)/sqrt(2*pi) + a*(1 + erf(a/sqrt(2)))/2 + b*sqrt(2/pi)
    found = enclose(E(Max(z, a) + b*Abs(z), z), bits=80)
    with mpmath.workdps(50):
        assert found.contains(mpmath.mpf(str(exact.evalf(50))))
        assert found.width < Fraction(1, 10**18)


@pytest.mark.parametrize("value", [
    sqrt(2), pi**2/4, exp(-Rational(1, 3)), erf(Rational(1, 2)), gamma(Rational(1, 3)), log(7),
    besselk(0, Rational(1, 4)),
    CRootOf(z**5 - z - 1, 0), OwenT(1, Rational(1, 2)),
    SignCorrelation(Rational(1, 2), -Rational(1, 3), Rational(3, 5), evaluate=False), ReErf(1, 2), ImErf(1, Rational(1, 2)),
    atan(Rational(1, 5)), E(tanh(z)**2, z) - pi,
], ids=str)
def test_constants(value):
    found = enclose(value, digits=30)
    with mpmath.workdps(50):
        assert mpmath.almosteq(mpmath.mpf(found.low.numerator)/found.low.denominator, mpmath.mpf(str(value.evalf(40))),
                               rel_eps=mpmath.mpf(10)**-29)


def test_a_planted_small_tail_excludes_the_truth(monkeypatch):
    """The tooth: with the window cut at 2 and no tail added the true value is not enclosed; with the tail it is."""
    node, truth = E(z**4, z), 3
    monkeypatch.setattr(Integrand, "window_of", lambda *_: Window(-2.0, 2.0, 0.0, 0.0, 1.0, 1.0))
    assert enclose(node, bits=60).contains(truth)
    monkeypatch.setattr(ball_integral, "majorant_tail", lambda *_, **__: Fraction(1, 10**25))
    assert not enclose(node, bits=60).contains(truth)


def test_a_kink_that_is_not_solved_for_is_enclosed_all_the_same():
    found = enclose(E(Abs(cos(z) - z/2), z), digits=10)
    value, error = evaluate_with_error(E(Abs(cos(z) - z/2), z), 15)
    with mpmath.workdps(30):
        assert found.contains(value) or error > abs(value)*mpmath.mpf(10)**-10


def test_refusals():
    with pytest.raises(Divergent):
        enclose(E(tan(z), z))
    with pytest.raises(NoClosedForm, match="a has no value"):
        enclose(E(tanh(Symbol("a")*z)**2, z))


def test_the_working_precision_of_flint_is_put_back():
    from flint import ctx

    before = ctx.prec
    enclose(E(tanh(z)**2, z), bits=200)
    assert ctx.prec == before and isinstance(enclose(pi), Enclosure)
