"""Averages of Hermite polynomials whose orders are letters: orthogonality, the generating function, and the recurrence."""

from __future__ import annotations

import pytest
from sympy import KroneckerDelta, Rational, Symbol, exp, factorial, simplify, symbols, tanh

from hermitex import E, Expectation, He, check
from hermitex.symbolic.series.polynomials import HermiteOfOrder

n, m = symbols("n m", integer=True, nonnegative=True)
a, b, z = symbols("a b z", real=True)

CLOSED = {
    He(n, z)**2: factorial(n),
    exp(a*z - a**2/2)*He(n, z): a**n,
    b*exp(a*z + b)*He(n, z): b*a**n*exp(a**2/2 + b),
    He(n, z): KroneckerDelta(0, n),
    z**3*He(n, z): 3*KroneckerDelta(1, n) + 6*KroneckerDelta(3, n),
    z**2*He(n, z)**2: (2*n + 1)*factorial(n),
    z*He(n, z)*He(n + 1, z): factorial(n + 1),
}
FURTHER = (He(n, z)*He(m, z), He(n, z)*He(3, z), 1 + z*He(n, z), z**3*He(n, z)*He(n + 1, z), (z - a)**2*He(n, z)**2)


@pytest.mark.parametrize("body", CLOSED, ids=str)
def test_the_value_of_the_books(body):
    """Identities: orthogonality E[He_n He_m] = n! delta_nm, the generating function, and x He_n = He_{n+1} + n He_{n-1}."""
    assert simplify(E(body).doit() - CLOSED[body]) == 0


@pytest.mark.parametrize("body", [*CLOSED, *FURTHER], ids=str)
def test_at_each_order_it_is_the_average_of_the_polynomial(body):
    value = E(body).doit()
    assert not value.has(Expectation)
    for order in range(6):
        numbers = {n: order, m: 2, a: Rational(1, 3), b: Rational(-1, 2)}
        assert simplify(value.subs(numbers).doit() - E(body.subs(numbers)).doit()) == 0


@pytest.mark.parametrize("body, reason", [
    (He(Symbol("k", integer=True), z)**2, "not known to be 0 or more"), (tanh(z)*He(n, z), "tanh(z) stands next to"),
    (He(n, z)**3, "more than two"), (z*exp(a*z)*He(n, z), "exponential")], ids=str)
def test_what_has_no_rule_stays_and_says_why(body, reason):
    node = E(body)
    assert node.doit().has(HermiteOfOrder) and reason in node.why()


def test_a_wrong_value_is_refuted():
    assert check(E(exp(a*z - a**2/2)*He(n, z)), a**n)
    assert not check(E(exp(a*z - a**2/2)*He(n, z)), a**(n + 1))
    assert not check(E(He(n, z)**2), factorial(n + 1))
