"""Exact constants with square roots: the normal form keeps the value, and equal constants share it."""

import random

import pytest
from sympy import Rational, erf, exp, log, pi, simplify, sqrt

from hermitex.symbolic.square_roots import without_roots_below

PARTS = [erf(1), exp(-Rational(1, 2))/sqrt(pi), log(3), sqrt(2), sqrt(3), Rational(-2, 3), Rational(5, 2)]


def drawn(rng, depth):
    """A constant of sums, products, quotients and lengths sqrt(a^2 + b^2)."""
    if not depth:
        return rng.choice(PARTS)
    a, b = drawn(rng, depth - 1), drawn(rng, depth - 1)
    return [a + b, a - 2*b, a*b, a/(1 + b**2), sqrt(1 + a**2 + b**2)][rng.randrange(5)]


@pytest.mark.parametrize("seed", range(12))
def test_the_value_is_kept_and_a_twin_looks_alike(seed):
    rng = random.Random(seed)
    a, b = drawn(rng, 2), drawn(rng, 1)
    found = without_roots_below(a)
    assert abs((found - a).evalf(30, maxn=200)) < 1e-25
    # The same number, written otherwise: both forms are the same, and with a planted error they are not.
    c = 1 + b**2
    assert without_roots_below(a + c - c - found) == 0
    assert without_roots_below(a*c/c/sqrt(c) - a*sqrt(c)/(1 + b**2)) == 0
    assert without_roots_below(a*c - (1 + Rational(1, 10**12))*a*(1 + b**2)) != 0


def test_a_square_under_a_root_keeps_its_sign():
    a = erf(1)
    assert without_roots_below(sqrt((a - 2)**2) + a) == 2
    assert without_roots_below(sqrt((2 - a)**2/(1 + a)**2)*(1 + a)) == 2 - a
    assert simplify(without_roots_below(1/(sqrt(a) + sqrt(2)))*(sqrt(a) + sqrt(2)) - 1) == 0


@pytest.mark.parametrize("value", [sqrt(erf(1) + sqrt(2)), sqrt(2 + sqrt(erf(2)))/3, sqrt(2) + 1])
def test_what_it_does_not_reduce_stays(value):
    """A root in a root, and what holds no letter."""
    assert without_roots_below(value) == value
