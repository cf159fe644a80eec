"""E f(|z|^2) through one variable, against the chi density and against conditioning."""

import mpmath
import pytest
from sympy import Abs, EulerGamma, Integer, Poly, Rational, Symbol, exp, gamma, log, pi, prod, sign, sqrt, tanh

from hermitex import E, closed_form
from hermitex.errors import Divergent
from hermitex.symbolic.precise import evaluate
from hermitex.symbolic.radial import radial
from hermitex.symbols import z1, z2, z3

TWO, THREE = (z1, z2), (z1, z2, z3)


def length_squared(variables):
    return sum(v**2 for v in variables)


def by_chi(f, n):
    """int_0^oo f(r^2) r^(n-1) exp(-r^2/2) dr 2^(1-n/2)/Gamma(n/2), by mpmath."""
    with mpmath.workdps(30):
        def density(r):
            return f(r*r)*r**(n - 1)*mpmath.exp(-r*r/2)
        return mpmath.quad(density, [0, 1, 2, 3, 5, 8, 15])*2**(1 - mpmath.mpf(n)/2)/mpmath.gamma(mpmath.mpf(n)/2)


@pytest.mark.parametrize("variables", [TWO, THREE], ids=len)
@pytest.mark.parametrize(("f", "numeric"), [
    (sqrt, mpmath.sqrt), (tanh, mpmath.tanh), (lambda s: abs(s - 1), lambda s: abs(s - 1)),
    (lambda s: 1/(1 + s), lambda s: 1/(1 + s)), (lambda s: s**2*exp(-s) + s, lambda s: s**2*mpmath.exp(-s) + s),
])
def test_against_the_chi_density(f, numeric, variables):
    node = E(f(length_squared(variables)), *variables)
    assert abs(evaluate(node, 25) - by_chi(numeric, len(variables))) < mpmath.mpf(10)**-18


def test_closed_forms_by_hand():
    s, t = length_squared(TWO), length_squared(THREE)
    assert closed_form(E(log(s), *TWO)) == log(2) - EulerGamma
    assert closed_form(E(1/t, *THREE)) == 1
    assert closed_form(E(s**Integer(3)/2, *TWO)) == 24  # E|z|^6 = 48 for n = 2
    assert (closed_form(E(sqrt(t), *THREE)) - sqrt(2)*gamma(2)/gamma(Integer(3)/2)).equals(0)


def test_the_singularity_at_the_origin_is_seen():
    with pytest.raises(Divergent, match="length = 0"):
        closed_form(E(1/length_squared(TWO), *TWO))


@pytest.mark.parametrize("body", [z1**2 + 2*z2**2, z1**2 - z2**2, z1*z2, Abs(z1) + Abs(z2), sign(z1**2 + z2**2 + z1),
                                  (z1**2 + z2**2)*z1, z1**2 + 3*z2, z1**4 + z2**4])
def test_what_is_not_a_function_of_the_length_is_left(body):
    assert radial(body, TWO) is None


@pytest.mark.parametrize("p", [z1**4, z1**2*z2**2, (z1 - 2*z3)**2, z1**2 + z2**4*z3**2])
def test_a_polynomial_beside_the_length_is_averaged_over_directions(p):
    """E p(z) g(|z|^2) = sum_d E p_d/E |z|^d E |z|^d g."""
    length = length_squared(THREE)
    moments = {2: 3, 4: 15, 6: 105}
    expected = 0
    for d in (2, 4, 6):
        part = sum(c*prod(v**k for v, k in zip(THREE, a, strict=True)) for a, c in Poly(p, *THREE).terms() if sum(a) == d)
        expected += closed_form(E(part, *THREE))/moments[d]*by_chi(lambda s, d=d: s**(d//2)/(1 + s)**2, 3)
    assert abs(evaluate(E(p/(1 + length)**2, *THREE), 20) - mpmath.mpf(str(expected.evalf(25)))) < mpmath.mpf(10)**-15


def test_quotients_of_one_degree():
    assert closed_form(E(z1**4/length_squared(THREE)**2, *THREE)) == Rational(1, 5)
    assert closed_form(E(z1**2/length_squared(THREE)**2, *THREE)) == Rational(1, 3)
    for body in (z1**2/length_squared(TWO)**2, (z1**2 - z2**2)/length_squared(TWO)**2):
        with pytest.raises(Divergent):
            closed_form(E(body, *TWO))


def test_a_few_linear_forms_are_seen_before_a_power_of_them_is_written_out():
    z4 = Symbol("z4", real=True)
    whole = z1 + z2 + z3 + z4
    assert closed_form(E(whole**8*sign(z1))) == 0
    assert closed_form(E(whole**6*Abs(z1))) == 1623*sqrt(2/pi)  # 405 + 15*27*2 + 45*8 + 48 times E|z|


def test_a_declared_covariance_is_not_forgotten():
    body = exp(-length_squared(TWO))
    assert closed_form(E(body, *TWO)) == Integer(1)/3
    correlated = E(body, *TWO, cov={(z1, z2): Integer(1)/2})  # det(1 + 2C)**(-1/2)
    assert (closed_form(correlated) - 1/sqrt(8)).equals(0)
    assert abs(evaluate(correlated, 12) - 1/mpmath.sqrt(8)) < 1e-11
