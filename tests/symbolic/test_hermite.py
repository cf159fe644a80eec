"""The Hermite polynomials and coefficients: orthogonality, their algebra, reference values, independent routes."""

from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from sympy import (
    Abs,
    Heaviside,
    Max,
    Min,
    Poly,
    Rational,
    Symbol,
    cos,
    erf,
    exp,
    expand,
    floor,
    hermite_prob,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tanh,
)

from hermitex import E, He, coefficient, tensor
from hermitex.errors import BadInput, Divergent
from hermitex.symbolic.series.coefficients import coefficients
from hermitex.symbolic.series.polynomials import h, to_hermite
from hermitex.symbols import kappa, rho, z, z1, z2, z3

a, b = Symbol("a"), Symbol("b")
SMALL = settings(max_examples=25)


def gaussian_mean(polynomial, variable):
    """E of a polynomial by E[z^n] = (n - 1)!!, independent of the package's integrals."""
    total = 0
    for (n,), coefficient_ in Poly(expand(polynomial), variable).terms():
        if n % 2 == 0:
            total += coefficient_*factorial(n)/(2**(n//2)*factorial(n//2))
    return expand(total)


def quadrature(function, k, points=200):
    """E[g He_k] by mpmath's own quadrature: the third route."""
    with mp.workdps(30):
        def integrand(x):
            return function(x)*mp.exp(-x*x/2)*He(k, z).subs(z, x).evalf(30)
        return mp.quad(lambda x: mpf(integrand(x)), [-12, -3, -1, 0, 1, 3, 12])/mp.sqrt(2*mp.pi)


# -- polynomials -------------------------------------------------------------------------------------------------------
def test_the_first_polynomials_and_the_recurrence():
    assert [He(k, z) for k in range(5)] == [1, z, z**2 - 1, z**3 - 3*z, z**4 - 6*z**2 + 3]
    for k in range(1, 30):
        assert expand(He(k + 1, z) - z*He(k, z) + k*He(k - 1, z)) == 0


@pytest.mark.parametrize("k", [7, 50, 100])
def test_they_are_the_probabilists_polynomials(k):
    assert expand(He(k, z) - hermite_prob(k, z)) == 0
    assert expand(He(k, z, horner=True) - He(k, z)) == 0
    assert He(k, Rational(3, 2)) == hermite_prob(k, Rational(3, 2))


@SMALL
@given(st.integers(0, 9), st.integers(0, 9))
def test_orthogonality(j, k):
    assert gaussian_mean(He(j, z)*He(k, z), z) == (factorial(k) if j == k else 0)
    assert expand(gaussian_mean(h(j, z)*h(k, z), z)) == (1 if j == k else 0)


def test_physicists_polynomials_would_be_seen():
    from sympy import hermite

    assert gaussian_mean(hermite(2, z)*hermite(4, z), z) != 0
    assert expand(He(3, z) - hermite(3, z)) != 0


def test_several_variables():
    assert He((2, 1), (z1, z2)) == (z1**2 - 1)*z2
    assert h((2, 1), (z1, z2)) == (z1**2 - 1)*z2/sqrt(2)
    assert to_hermite(z1**2*z2 + kappa, z1, z2) == {(2, 1): 1, (0, 1): 1, (0, 0): kappa}


@pytest.mark.parametrize("wrong", [lambda: He(-1, z), lambda: He(Rational(1, 2), z), lambda: He(True, z),
                                   lambda: He((1, 2), (z1,)), lambda: coefficient(z1*z2, 1)])
def test_refusals(wrong):
    with pytest.raises(BadInput):
        wrong()


# -- coefficients ------------------------------------------------------------------------------------------------------
@SMALL
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8))
def test_polynomials_are_expanded_exactly(numbers):
    g = sum(p*z**i for i, p in enumerate(numbers))
    found = coefficients(g, 8, z)
    assert expand(g - sum(c*He(k, z)/factorial(k) for k, c in found.items())) == 0
    assert all(c == gaussian_mean(g*He(k, z), z) for k, c in found.items())


@pytest.mark.parametrize(("g", "k", "value"), [
    (Abs(z), 2, sqrt(2/pi)),
    (sign(z), 1, sqrt(2/pi)),
    (sign(z), 5, 3*sqrt(2/pi)),
    (Max(0, z), 1, Rational(1, 2)),
    (Max(0, z), 4, -1/sqrt(2*pi)),
    (Heaviside(z - 1), 3, 0),
    (exp(z), 4, exp(Rational(1, 2))),
    (cos(2*z), 2, -4*exp(-2)),
    (sin(z), 3, -exp(-Rational(1, 2))),
    (erf(z), 1, 2/sqrt(3*pi)),
    (z**2*exp(-z**2), 4, -4/(9*sqrt(3))),
])
def test_reference_values(g, k, value):
    """E[g He_k] = E[g^(k)]: elementary integrals, by hand; the last from Damian et al. 2024."""
    assert expand(coefficient(g, k) - value) == 0


@pytest.mark.parametrize(("g", "function"), [
    (Min(1, Max(-1, z)), lambda x: min(1, max(-1, x))),
    (erf(z/2 + Rational(1, 5)), lambda x: mp.erf(x/2 + mpf(1)/5)),
    (Abs(z)*cos(z), lambda x: abs(x)*mp.cos(x)),
    (tanh(z), mp.tanh),
])
@pytest.mark.parametrize("k", [0, 3, pytest.param(6, marks=pytest.mark.slow)])
def test_third_route(g, function, k):
    from hermitex.symbolic.precise import evaluate

    assert abs(evaluate(coefficient(g, k), 20) - quadrature(function, k)) < mpf(10)**-15


def test_what_has_no_closed_form_stays_a_node():
    assert coefficient(tanh(z), 1) == E(z*tanh(z), z)
    assert coefficient(tanh(z), 2) == 0  # by parity, although no closed form exists
    assert coefficient(tanh(z) - z*E(z*tanh(z), z), 1) == 0  # by algebra on the node
    assert coefficient(tanh(z) - z*E(z*tanh(z), z), 3) != 0


def test_parameters_stay():
    s = Symbol("s", positive=True)
    found = coefficients(exp(s*z), 3)
    assert [expand(c/exp(s**2/2)) for c in found.values()] == [1, s, s**2, s**3]


def test_shared_moments_agree_with_single_ones():
    g = Max(0, z - 1)*exp(z/3)
    found = coefficients(g, 5)
    for k in (0, 2, 5):
        direct = E(expand(g*He(k, z)), z).doit()
        assert abs((found[k] - direct).evalf(30)) < Rational(1, 10**25)


def test_names_texts_and_activations_mean_the_same():
    assert coefficient("relu", 2) == coefficient("relu(z)", 2) == coefficient(Max(0, z), 2)
    assert coefficient(Symbol("z")**3, 3) == 6
    x = Symbol("x")
    assert coefficient(x**3, 3, x) == 6


# -- tensors -----------------------------------------------------------------------------------------------------------
def test_tensor_entries_and_rotation():
    found = tensor(sign(z1)*z2 + z3**2, 2)
    assert found[0, 1] == found[1, 0] == sqrt(2/pi)
    assert found[2, 2] == 2
    assert found.full().shape == (3, 3)
    assert found.full()[0, 1] == found[0, 1]
    # Parseval at one order, and its invariance under rotation
    product, rotated = tensor(z1*z2, 2), tensor((z1**2 - z2**2)/2, 2)
    assert product.squared_norm() == rotated.squared_norm() == 2
    assert tensor(z1*z2, 1).is_zero()


def test_a_tensor_is_the_mean_gradient():
    """C_2 = E[grad grad g] for a smooth target, by another road."""
    g = sin(z1 + 2*z2)*z1
    found = tensor(g, 2)
    for i, u in enumerate((z1, z2)):
        for j, v in enumerate((z1, z2)):
            assert expand(found[i, j] - E(g.diff(u, v), z1, z2).doit()).equals(0)


def test_mehler_by_the_node():
    node = E(He(3, z1)*He(3, z2), z1, z2, cov={(z1, z2): rho})
    assert expand(node.doit() - 6*rho**3) == 0


@pytest.mark.parametrize(("target", "order", "value"), [
    (log(1 + exp(z)), 1, Rational(1, 2)),  # softplus(z) - z/2 is even
    (log(1 + exp(z)), 7, 0),
    (z/(1 + exp(-z)) + 3, 5, 0),
    (floor(z), 0, Rational(-1, 2)),        # floor(z) + 1/2 is odd
    (floor(z), 4, 0),
])
def test_what_is_even_or_odd_but_for_one_term_has_coefficients_by_reflection(target, order, value):
    assert coefficient(target, order) == value
    node = E(target*He(order, z), z)
    assert abs(node.evalf(15) - value) < 1e-13


@pytest.mark.parametrize("target", [1/z, 1/z + Rational(1, 2), z*exp(z**2), z/3 + 1/z**2])
def test_reflection_gives_no_coefficient_of_what_has_no_average(target):
    for order in (0, 2):
        with pytest.raises(Divergent):
            coefficient(target, order)
