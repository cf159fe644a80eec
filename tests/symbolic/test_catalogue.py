"""Averages of one variable drawn family by family: neither the exact value nor the digits is ever another number."""

from random import Random

import mpmath
import pytest
from drawn_integrals import FAMILIES, drawn, value
from sympy import Abs, N, Rational, S, cos, exp, log, tanh

from hermitex import E, Expectation
from hermitex.errors import Divergent, NoClosedForm, NotConverged
from hermitex.symbols import z, z1, z2

QUICK = 11
SLOW = 220


def wrong(seed):
    """What is said of the seed's average and is not so; None if nothing is. What is refused is said to be refused."""
    case = drawn(seed)
    known = value(case)
    try:
        exact = E(case.body, z).doit()
        if not exact.has(Expectation) and not agree(N(exact, 25), known):
            return seed, case.body, "doit", exact, known
    except Divergent:
        return seed, case.body, "doit", "divergent", known
    except NoClosedForm:
        pass
    try:
        digits = E(case.body, z).evalf(15)
        if not agree(digits, known):
            return seed, case.body, "evalf", digits, known
    except Divergent:
        return seed, case.body, "evalf", "divergent", known
    except (NoClosedForm, NotConverged):
        pass
    return None


def agree(found, known):
    with mpmath.workdps(30):
        return abs(mpmath.mpf(str(found)) - known) <= mpmath.mpf(10)**-14*abs(known) + mpmath.mpf(10)**-20


@pytest.mark.parametrize("seed", range(QUICK), ids=lambda seed: FAMILIES[seed % len(FAMILIES)].__name__)
def test_one_of_each_family(seed):
    assert wrong(seed) is None


@pytest.mark.slow
@pytest.mark.parametrize("block", range(QUICK, QUICK + SLOW, 22))
def test_hundreds_of_averages(block):
    assert [found for seed in range(block, block + 22) if (found := wrong(seed)) is not None] == []


def existence(random):
    """(integrand, does its average exist): powers about a place by construction, growth against the Gaussian, and sums of both."""
    c, k = Rational(random.randint(-20, 20), 10), random.randint(0, 3)
    power = Rational(random.randint(2, 45), 10)
    smooth = random.choice([S.One, cos(z - c), exp(z/2), 1 + (z - c)**2, 2 + tanh(z)])
    growth = Rational(random.choice([1, 3, 4, 6, 9]), 10)
    body, exists = random.choice([
        (Abs(z - c)**-power*(z - c)**k*smooth, power - k < 1), (smooth/(z - c)**(k + 1), False),
        ((1 - cos(z - c))/Abs(z - c)**power*smooth, power < 3), ((z - c)**(k - power.ceiling())*smooth, k >= power.ceiling()),
        (smooth*log(Abs(z - c)), True), (exp(growth*z**2)*(2 + tanh(z)), growth < Rational(1, 2)),
        ((exp(z - c) - 1)/(z - c)**(k + 1), k == 0), (z1**k*Abs(z2)**-power, power < 1), (cos(z1)*z2/Abs(z1)**power, power < 1),
    ])
    return body + random.choice([S.Zero, z**2, Abs(z)]), exists


def wrongly(seed):
    """The case, where what does not exist has a value, or what does is called divergent."""
    body, exists = existence(Random(seed))
    for ask in (lambda: E(body).doit(), lambda: E(body).evalf(15)):
        try:
            found = ask()
            if not exists and not found.has(Expectation):
                return seed, body, found
            if exists:
                break
        except Divergent:
            if exists:
                return seed, body, "divergent"
        except (NoClosedForm, NotConverged):
            pass
    return None


@pytest.mark.slow
@pytest.mark.parametrize("block", range(0, 200, 50))
def test_what_exists_and_what_does_not(block):
    assert [found for seed in range(block, block + 50) if (found := wrongly(seed)) is not None] == []


def test_a_planted_error_is_seen():
    case = drawn(3)
    assert not agree(E(case.body*(1 + z**2/10**9), z).evalf(15), value(case))
