"""Averages whose terms exist only together, with symbols in them: existence is decided on the whole integrand."""

from random import Random

import mpmath
import pytest
from sympy import (
    Heaviside,
    Rational,
    S,
    Symbol,
    atan,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    lambdify,
    log,
    pi,
    sin,
    sinh,
    sqrt,
    tanh,
)

import hermitex as hx
from hermitex import Expectation
from hermitex.errors import Divergent, NoClosedForm, NotConverged
from hermitex.symbolic.existence_check import exists, kept_together, require_existence
from hermitex.symbols import z, z1, z2

a, b = Symbol("a", real=True), Symbol("b", real=True)
NUMERATORS = (  # of w, with the order in which they vanish at 0
    (lambda w: 1 - cos(a*w), 2), (lambda w: exp(a*w) - 1, 1), (lambda w: sin(a*w) - a*w, 3), (lambda w: cosh(a*w) - 1, 2),
    (lambda w: exp(-a**2*w**2) - exp(-b**2*w**2), 2), (lambda w: log(1 + a**2*w**2), 2), (lambda w: exp(a*w) - 1 - a*w, 2),
    (lambda w: cos(a*w) - cos(b*w), 2), (lambda w: exp(a*w) - exp(b*w), 1), (lambda w: tanh(a*w) - a*w, 3),
    (lambda w: atan(a*w) - a*w, 3), (lambda w: sinh(a*w) - a*w, 3), (lambda w: erf(a*w)*cos(b*w), 1),
    (lambda w: 1/(1 + a**2*w**2) - cos(b*w), 2),
)
FACTORS = (lambda w: S.One, lambda w: cos(w/2), lambda w: 2 + tanh(w), lambda w: exp(w/3))
BESIDE = (S.Zero, z**2, tanh(z), b*z**4)


def drawn(seed):
    """(integrand, the numbers of its symbols, its pole, does its average exist)."""
    random = Random(seed)
    f, order = NUMERATORS[seed % len(NUMERATORS)]
    exists = random.random() < 2/3
    pole = random.choice([S.Zero, Rational(1, 2), -Rational(7, 5), b])
    w = z - pole
    body = f(w)*random.choice(FACTORS)(w)/w**(order + (0 if exists else 1)) + random.choice(BESIDE)
    numbers = {a: Rational(random.randint(4, 16), 10), b: Rational(random.randint(-13, -3), 10)}
    return body, {s: v for s, v in numbers.items() if s in body.free_symbols}, pole.xreplace(numbers), exists


def by_sums(body, pole):
    """Tanh-sinh on both sides of the pole, the integrand in digits enough for what cancels there."""
    f = lambdify(z, body*exp(-z**2/2)/sqrt(2*pi), "mpmath")

    def at(x):
        with mpmath.workdps(200):
            return f(x)

    with mpmath.workdps(30):
        edge = mpmath.mpf(int(pole.p))/int(pole.q)
        return mpmath.quad(at, sorted({-14, -6, -3, -1, edge, 1, 3, 6, 14}))


def wrong(seed):
    """What is said of the seed's average and is not so."""
    body, numbers, pole, exists = drawn(seed)
    node = hx.E(body, z)
    known = by_sums(body.xreplace(numbers), pole) if exists else None
    for ask in (lambda: node.doit(), lambda: hx.compile(node)(**{s.name: float(v) for s, v in numbers.items()}),
                lambda: node.evalf(15, subs=numbers)):
        try:
            found = ask()
        except Divergent:
            if exists:
                return seed, body, "divergent"
            continue
        except (NoClosedForm, NotConverged) as error:
            if exists:
                return seed, body, str(error)
            continue
        if isinstance(found, Expectation) or (not isinstance(found, float) and found.has(Expectation)):
            continue
        if not exists:
            return seed, body, found
        value = mpmath.mpf(str(found.xreplace(numbers).evalf(20) if not isinstance(found, float) else found))
        if abs(value - known) > 1e-9*(1 + abs(known)):
            return seed, body, found, known
    return None


@pytest.mark.parametrize("seed", range(5))
def test_terms_that_exist_together(seed):
    assert wrong(seed) is None


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5, 47, 21))
def test_many_terms_that_exist_together(block):
    assert [found for seed in range(block, block + 21) if (found := wrong(seed)) is not None] == []


@pytest.mark.parametrize(("body", "value"), [
    ((1 - cos(a*z1*z2))/z1**2, "0.640121946685672"), (z2**2*(exp(a*z1) - 1)/z1, "1.78121416988619"),
    ((exp(a*z1 + b*z2) - exp(b*z2))/z1, "1.8631996461651295"),
])
def test_in_several_variables(body, value):
    assert hx.compile(hx.E(body))(**{s.name: {"a": 1.3, "b": 0.3}[s.name] for s in (a, b) if body.has(s)}) == pytest.approx(
        float(value), rel=1e-10)


@pytest.mark.parametrize("body", [(exp(a*z1 + b*z2) - 1)/z1, (1 - cos(a*z1*z2))/z1**3])
def test_in_several_variables_what_diverges(body):
    with pytest.raises(Divergent):
        hx.E(body).doit()


def test_one_value_of_a_symbol_makes_it_exist():
    kernel = hx.compile(hx.E((a - cos(z))/z**2, z))
    assert kernel(a=1.0) == pytest.approx(0.4621550516047818, rel=1e-10)
    with pytest.raises(NotConverged):
        kernel(a=1.3)


@pytest.mark.parametrize(("body", "value"), [
    (Heaviside(z)*exp(z**2/2 - z), 1/sqrt(2*pi)), (exp(z**2/2)*(1 - erf(z)**2), 2/pi),
    (Heaviside(z)*exp(z**2/2)*erfc(z), 1/(pi*sqrt(2))),
])
def test_growth_that_another_factor_takes_back(body, value):
    assert abs(hx.E(body, z).evalf(20) - value.evalf(25)) < 1e-18


@pytest.mark.parametrize("body", [sqrt(1 + sin(z)/z), log(2 + sin(z)/z), erf(tanh(z)/z), log(1 + z**2)/z**2, log(sinh(z)/z),
                                  log(1 + (z - Rational(1, 3))**2)/(z - Rational(1, 3))**2])
def test_removable_singularities_inside_functions(body):
    pole = Rational(1, 3) if body.has(Rational(1, 9)) or body.has(Rational(1, 3)) else S.Zero
    with mpmath.workdps(30):
        assert abs(mpmath.mpf(str(hx.E(body, z).evalf(20))) - by_sums(body, pole)) < mpmath.mpf(10)**-19


def test_equal_terms_are_kept_as_often_as_they_stand():
    assert kept_together([1/z**2, 1/z**2, -2*cos(z)/z**2], (z,)) == [2/z**2 - 2*cos(z)/z**2]
    assert kept_together([tanh(z), tanh(z), z**2], (z,)) == [tanh(z), tanh(z), z**2]


def test_inner_averages_may_cancel_what_diverges_for_other_numbers():
    """E[tanh(z)^2] = 1 - E[z tanh(z)], so the integrand is (1 - cos(z))/z^2 times it."""
    one, other = hx.E(tanh(z1)**2), hx.E(z1*tanh(z1))
    node = hx.E((one - cos(z)*(1 - other))/z**2, z)
    require_existence(node)
    assert exists(node) is True and exists(hx.E(cos(one*z), z)) is True and exists(hx.E(1/z**2, z)) is False
    assert node.doit().has(Expectation)
