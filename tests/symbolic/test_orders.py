"""Hermite polynomials whose order is a letter, and sums over it: each rule as a proof, and against numbers of its own."""

import pytest
from sympy import Function, KroneckerDelta, Rational, Sum, Symbol, binomial, exp, factorial, oo, sin, sqrt

from hermitex import Derivative, E, He, check
from hermitex.check.orders import summed
from hermitex.errors import BadInput
from hermitex.symbolic.series.polynomials import h
from hermitex.symbols import rho, z, z1, z2

f, g = Function("f"), Function("g")
j, k = (Symbol(name, integer=True, nonnegative=True) for name in "jk")
p, x = Symbol("p", integer=True, positive=True), Symbol("x", real=True)
law = {(z1, z2): rho}


def c(order, function):
    return E(He(order, z)*function(z), z)


def test_the_function_is_the_polynomial_at_every_number():
    assert He(k, z).subs(k, 3) == He(3, z) and He(k - 1, z).subs(k, 0) == 0 and str(He(k + 1, z)) == "He(k + 1, z)"
    assert He(k, 2*z).diff(z).subs(k, 4).expand() == He(4, 2*z).diff(z).expand()
    assert h(k, z).subs(k, 2) == h(2, z)
    with pytest.raises(BadInput, match="integer"):
        He(Symbol("s", real=True), z)


@pytest.mark.parametrize("left,right", [
    (E(He(k, z1)*He(j, z2), z1, z2, cov=law), factorial(k)*rho**k*KroneckerDelta(j, k)),
    (E(He(p, z1).diff(z1)*He(j, z2).diff(z2), z1, z2, cov=law), p**2*factorial(p - 1)*rho**(p - 1)*KroneckerDelta(p, j)),
    (E(He(k, z)**2, z), factorial(k)),
    (E(He(k, z)*z**2, z), 2*KroneckerDelta(k, 2) + KroneckerDelta(k, 0)),
    (E(He(k, z1)*g(3*z2), z1, z2, cov=law), rho**k*E(He(k, z)*g(3*z), z)),
    (E(He(k, z)*f(rho*z + sqrt(1 - rho**2)*z1), z, z1), rho**k*c(k, f)),
    (E(z*He(k, z)*f(z), z), c(k + 1, f) + k*c(k - 1, f)),
    (c(p, Derivative(f)), c(p - 1, Derivative(Derivative(f)))),
    (E(f(z1)*g(z2), z1, z2, cov=law), Sum(rho**k/factorial(k)*c(k, f)*c(k, g), (k, 0, oo))),
    (E(f(z)**2, z) - E(f(z), z)**2, Sum(c(k, f)**2/factorial(k), (k, 1, oo))),
    (E(f(z)*f(-z), z), Sum((-1)**k*c(k, f)**2/factorial(k), (k, 0, oo))),
    (E(Derivative(f)(z1)*Derivative(g)(z2), z1, z2, cov=law), Sum(rho**(k - 1)/factorial(k - 1)*c(k, f)*c(k, g), (k, 1, oo))),
    (E(Derivative(f)(z1)*g(z2), z1, z2, cov=law), Sum(rho**k/factorial(k)*c(k + 1, f)*c(k, g), (k, 0, oo))),
    (E(f(z1)*Derivative(g)(z2), z1, z2, cov=law)*rho, Sum(rho**k/factorial(k - 1)*c(k - 1, f)*c(k, g), (k, 1, oo))),
    (E(f(z + rho), z), Sum(rho**k/factorial(k)*c(k, f), (k, 0, oo))),
    (exp(rho*x - rho**2/2), Sum(rho**k*He(k, x)/factorial(k), (k, 0, oo))),
    (exp(rho**2/2)*sin(rho*x), Sum((-1)**k*rho**(2*k + 1)*He(2*k + 1, x)/factorial(2*k + 1), (k, 0, oo))),
    (exp(rho*x), Sum(E(He(k, z)*exp(rho*z), z)*He(k, x)/factorial(k), (k, 0, oo))),
    (He(4, x + rho), Sum(binomial(4, k)*He(k, x)*rho**(4 - k), (k, 0, 4))),
])
def test_what_is_proved(left, right):
    assert check(left, right).status == "proved"


@pytest.mark.parametrize("left,right", [
    (E(He(k, z1)*g(3*z2), z1, z2, cov=law), rho**k*c(k, g)),
    (c(k, Derivative(f)), c(k - 1, Derivative(Derivative(f)))),   # not at order 0
    (E(f(z)**2, z), Sum(c(k, f)**2/factorial(k), (k, 1, oo))),
    (E(f(z1)*g(z2), z1, z2, cov=law), Sum(rho**k*c(k, f)*c(k, g), (k, 0, oo)) - Sum(c(k, f), (k, 0, oo))),
    (E(f(z)*g(z), z), Sum(2**k/factorial(k)*c(k, f)*c(k, g), (k, 0, oo))),
    (E(exp(z**2/3)**2, z), Sum(E(He(k, z)*exp(z**2/3), z)**2/factorial(k), (k, 0, oo))),   # not square integrable
    (exp(rho*x + rho**2/2), Sum(rho**k*He(k, x)/factorial(k), (k, 0, oo))),
    (He(p, x + rho), Sum(binomial(p, k)*He(k, x)*rho**(p + k), (k, 0, p))),
])
def test_what_is_wrong_or_has_no_sum_is_not_called_right(left, right):
    assert not check(left, right)


@pytest.mark.parametrize("first,power", [(0, lambda n: 1), (2, lambda n: n**2 + 1)])
def test_sums_are_those_of_their_terms(first, power):
    at = Rational(1, 4)
    one, other = (lambda x: exp(x/2)), (lambda x: sin(x) + x**2)
    term = at**k*power(k)/factorial(k)*c(k, one)*c(k + 1, other)
    whole = summed(Sum(term, (k, first, oo)))
    few = sum(term.subs(k, n).doit().evalf(20) for n in range(first, first + 12))
    assert not whole.has(Sum) and abs(whole.doit().evalf(15) - few) < 1e-9


def test_a_finite_sum_to_an_order_that_is_a_letter_agrees():
    assert check(He(p, x + rho), Sum(binomial(p, k)*He(k, x)*rho**(p - k), (k, 0, p))).status == "agrees"
