"""Averages of one variable drawn family by family: neither the exact value nor the digits is ever another number."""

import mpmath
import pytest
from drawn_integrals import FAMILIES, drawn, value
from sympy import N

from hermitex.errors import Divergent, NoClosedForm, NotConverged
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbols import z

QUICK = 11
SLOW = 440


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
@pytest.mark.parametrize("block", range(QUICK, QUICK + SLOW, 44))
def test_hundreds_of_averages(block):
    assert [found for seed in range(block, block + 44) if (found := wrong(seed)) is not None] == []


def test_a_planted_error_is_seen():
    case = drawn(3)
    assert not agree(E(case.body*(1 + z**2/10**9), z).evalf(15), value(case))
