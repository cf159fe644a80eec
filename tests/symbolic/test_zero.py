"""Zero and non-zero are proved, each by its own route; small is not zero, and what is not known is said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    Heaviside,
    Max,
    Rational,
    acos,
    asin,
    cos,
    erf,
    erfc,
    exp,
    floor,
    log,
    pi,
    sech,
    sin,
    sqrt,
    tanh,
)

import hermitex as hx
from hermitex import E
from hermitex.errors import Divergent
from hermitex.symbolic import zero
from hermitex.symbolic.digits.exact_constants import is_identically_zero
from hermitex.symbolic.zero import decide
from hermitex.symbols import z

half = Rational(1, 2)
SIGMOID = 1/(1 + exp(-z))
LINEAR_FREE = tanh(z) - z*E(z*tanh(z), z)
SMALL = sin(z/1000) - z/1000*exp(-Rational(1, 2000000))


@pytest.mark.parametrize(("expr", "how"), [
    (E(tanh(z)*z**2, z), "odd"), (E(z*LINEAR_FREE, z), "algebra"), (E(z*SMALL, z), "algebra"),
    (E((z**2 - 1)*z**2*exp(-z**2), z), "algebra"), (E((z**2 - 1)*floor(z), z), "algebra"),
    (E((z**2 - 1)*SIGMOID, z), "algebra"), (E(Max(0, z) - Abs(z)/2 - z/2, z), "odd"),
    (E((z**2 - 1)*(Abs(z) - sqrt(2/pi)), z) - sqrt(2/pi), "algebra"),
], ids=lambda e: str(e)[:40])
def test_zeros_are_proved(expr, how):
    verdict = decide(expr)
    assert verdict.status == "zero" and how in verdict.how


@pytest.mark.parametrize(("expr", "sign_of"), [
    (E((z**3 - 3*z)*LINEAR_FREE, z), -1), (E(z*(tanh(z) - Rational(6057, 10000)*z), z), 1),
    (E((z**3 - 3*z)*SMALL, z), -1), (E(z*SIGMOID, z), 1), (E((z**2 - 1)*log(Abs(z)), z), 1),
    (exp(-Rational(1, 10**40)) - 1, -1), (E(cos(30*z), z), 1),
    (E(z*tanh(z), z) - Rational(6057055096021588, 10**16), 1),
    (pi - Rational(355, 113), -1), (E(z**2, z) - 1 + Rational(1, 10**30), 1),
])
def test_nonzeros_are_proved_however_small(expr, sign_of):
    verdict = decide(expr)
    assert verdict.status == "nonzero"
    if verdict.enclosure is not None:
        low, high = verdict.enclosure
        assert low*sign_of > 0 and high*sign_of > 0
    else:
        assert verdict.value*sign_of > 0


@pytest.mark.parametrize("identity", [
    sqrt(3 + 2*sqrt(2)) - 1 - sqrt(2), 1/(1 + sqrt(2)) - sqrt(2) + 1,
    exp(half)*exp(Rational(1, 3)) - exp(Rational(5, 6)),
    acos(Rational(1, 3)) + asin(Rational(1, 3)) - pi/2, erf(half) + erfc(half) - 1, log(6) - log(2) - log(3),
    sqrt(2/pi) - sqrt(2)/sqrt(pi), (1 + sqrt(2)*exp(1))**2 - 1 - 2*sqrt(2)*exp(1) - 2*exp(2),
    asin(half*sqrt(2)) - pi/4, tanh(1) - (1 - exp(-2))/(1 + exp(-2)), sqrt(6*pi) - sqrt(2)*sqrt(3)*sqrt(pi),
], ids=str)
def test_identities_of_constants_and_their_planted_errors(identity):
    assert is_identically_zero(identity)
    assert not is_identically_zero(identity + Rational(1, 10**50))
    assert not is_identically_zero(2*identity + exp(-100))


@settings(max_examples=15)
@given(a=st.integers(1, 60), b=st.integers(1, 60), p=st.fractions(-3, 3, max_denominator=6))
def test_laws_of_roots_logarithms_and_exponentials(a, b, p):
    p = Rational(p.numerator, p.denominator)
    assert is_identically_zero(sqrt(a)*sqrt(b) - sqrt(a*b))
    assert is_identically_zero(log(Rational(a, b)) - log(a) + log(b))
    assert is_identically_zero(exp(p)*exp(half) - exp(p + half))
    assert is_identically_zero((sqrt(a) + exp(p))**2 - a - 2*sqrt(a)*exp(p) - exp(2*p))
    assert not is_identically_zero(sqrt(a) + sqrt(b))


@settings(max_examples=6)
@given(k=st.integers(1, 6), c=st.fractions(-2, 2, max_denominator=5))
def test_parity_of_coefficients(k, c):
    """E[He_k f] = 0 for f - c odd and k even, and for f even and k odd."""
    from hermitex import He

    odd = tanh(z) + Rational(c.numerator, c.denominator)
    g = odd if k % 2 == 0 else Abs(z)*tanh(z)**2
    assert decide(E(He(k, z)*g, z)).status == "zero"


def test_open_is_said_with_the_bound(monkeypatch):
    """tanh^2 + sech^2 = 1 is kept from the rules: three integrals that no enclosure can prove to cancel."""
    monkeypatch.setattr(zero, "_normal", lambda expr: expr)
    verdict = decide(E(cos(z)*tanh(z)**2, z) + E(cos(z)*sech(z)**2, z) - E(cos(z), z))
    assert verdict.status == "undetermined" and "still contains 0" in verdict.how
    low, high = verdict.enclosure
    assert low <= 0 <= high and high - low < Rational(1, 10**40)


def test_what_does_not_exist_is_no_zero():
    with pytest.raises(Divergent):
        decide(E(1/z, z))


def test_a_declared_variance_is_not_forgotten():
    """E[z^2 - 4] = 0 and E[(z^2 - 1) sigmoid] = 3/2 under variance 4, where exp(z^2/5) has no expectation."""
    wide = {(z, z): 4}
    assert decide(E(z**2 - 4, z, cov=wide)).status == "zero"
    assert decide(E((z**2 - 1)*SIGMOID, z, cov=wide) - Rational(3, 2)).status == "zero"
    assert decide(E(z*tanh(z), z, cov=wide) - E(z*tanh(z), z)).status == "nonzero"
    with pytest.raises(Divergent):
        decide(E(exp(z**2/5), z, cov=wide))


@pytest.mark.parametrize("decimal", ["0.6797", "1.3594", "0.123456789"])
def test_decimals_make_no_polynomial_of_their_denominators(decimal):
    """exp(-0.6797^2/2) is a power 46199209 of exp(-1/200000000), and a dense polynomial of it fills the memory."""
    a, root = Rational(decimal), sqrt(2)
    assert is_identically_zero((1 + exp(-a**2/2))**2 - 1 - 2*exp(-a**2/2) - exp(-a**2))
    assert is_identically_zero(root*exp(a**2/2)*(1/root - root/2))
    assert not is_identically_zero(a*exp(-a**2/2) - a*exp(-a**2))
    assert decide(E((z**2 - 1)*Heaviside(Abs(z) - a), z)).status == "nonzero"
    assert decide(E((z**2 - 1)*(Heaviside(z - a) - Heaviside(-z - a)), z)).status == "zero"


@pytest.mark.parametrize("claim", ["E(Heaviside(z - 300))", "E(Max(0, z - 40)**2)", "1 - erf(400)",
                                   "E(exp(-z**4)*Heaviside(z - 40)*tanh(z)*z)"])
def test_what_is_small_beyond_all_bits_is_not_zero(claim):
    """1/2 - erf(a)/2 agrees with 0 in every digit of its terms; erfc(a)/2, or an integrand of one sign, does not."""
    assert decide(claim).status == "nonzero" and hx.check(claim, 0).status == "fails"
