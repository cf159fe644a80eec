"""One average in several spellings: covariances in letters, conditions on a linear form, the largest of several normals.

Independent numbers: Clark's formulas for the maximum of two normals (C. E. Clark, Operations Research 9, 1961), and
seeded quasi-Monte Carlo where no formula is known to more than four standard errors.
"""

import numpy as np
import pytest
from scipy.stats import norm, qmc
from sympy import Abs, Heaviside, Max, Min, Piecewise, Rational, Symbol, erf, exp, nan, pi, sqrt, symbols, tanh, zoo

import hermitex as hx
from hermitex import E
from hermitex.symbols import z1, z2, z3

s1, s2 = symbols("s1 s2", positive=True)
m1, m2, t, c, rho, R = symbols("m1 m2 t c rho R", real=True)
LETTERS = {(z1, z1): s1**2, (z2, z2): s2**2, (z1, z2): rho*s1*s2}


def drawn(seed, count=12):
    """Numbers for the letters, far from one another in size."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield {s1: 10**random.uniform(-1.5, 1.5), s2: 10**random.uniform(-1.5, 1.5), rho: random.uniform(-0.98, 0.98),
               m1: random.normal(), m2: random.normal(), c: random.normal(), t: random.normal(), R: random.uniform(-0.98, 0.98)}


def number(form, at):
    return float(form.subs({s: v for s, v in at.items() if s in form.free_symbols}).evalf(15))


def clark(at):
    """E max and E max^2 of N(m1, s1^2), N(m2, s2^2), correlation rho [Clark 1961, equations (2) and (3)]."""
    a = np.sqrt(at[s1]**2 + at[s2]**2 - 2*at[rho]*at[s1]*at[s2])
    alpha = (at[m1] - at[m2])/a
    first = at[m1]*norm.cdf(alpha) + at[m2]*norm.cdf(-alpha) + a*norm.pdf(alpha)
    second = ((at[m1]**2 + at[s1]**2)*norm.cdf(alpha) + (at[m2]**2 + at[s2]**2)*norm.cdf(-alpha)
              + (at[m1] + at[m2])*a*norm.pdf(alpha))
    return first, second


def test_the_maximum_of_two_is_clarks():
    first = E(Max(m1 + z1, m2 + z2), cov=LETTERS).doit()
    second = E(Max(m1 + z1, m2 + z2)**2, cov=LETTERS).doit()
    least = E(Min(m1 + z1, m2 + z2), cov=LETTERS).doit()
    assert not any(form.has(hx.Expectation) for form in (first, second, least))
    for at in drawn(1):
        wanted = clark(at)
        assert number(first, at) == pytest.approx(wanted[0], rel=1e-12, abs=1e-13)
        assert number(second, at) == pytest.approx(wanted[1], rel=1e-12)
        assert number(least, at) == pytest.approx(at[m1] + at[m2] - wanted[0], rel=1e-11, abs=1e-12)


    at = {s1: 1.5, s2: 0.7, rho: 0.5, m1: 0.2, m2: -0.3}
    assert abs(number(second, {**at, rho: -0.5}) - clark(at)[1]) > 0.1  # a planted sign of the correlation is seen


def test_a_condition_on_one_linear_form():
    """E[x | u > c] = Cov(x, u)/sd(u) phi(c/sd)/Phi(-c/sd): the inverse Mills ratio of the form."""
    one = E(z1, z2 > c, cov={(z1, z2): rho}).doit()
    two = E(z1, z1 - z2 > c, cov={(z1, z2): rho}).doit()
    square = E(z1**2, z2 > c, cov={(z1, z2): rho}).doit()
    for at in drawn(2):
        mills = norm.pdf(at[c])/norm.sf(at[c])
        assert number(one, at) == pytest.approx(at[rho]*mills, rel=1e-12)
        assert number(square, at) == pytest.approx(1 + at[rho]**2*at[c]*mills, rel=1e-12)
        sd = np.sqrt(2 - 2*at[rho])
        assert number(two, at) == pytest.approx((1 - at[rho])/sd*norm.pdf(at[c]/sd)/norm.sf(at[c]/sd), rel=1e-12)


def test_exponentials_of_a_maximum():
    found = E(exp(t*Max(z1, R*z1 + sqrt(1 - R**2)*z2))).doit()
    for at in drawn(3):  # exp(t max) = 2 E[exp(t z1) 1(z1 is the larger)], a tilt by t
        wanted = 2*np.exp(at[t]**2/2)*norm.cdf(at[t]*np.sqrt((1 - at[R])/2))
        assert number(found, at) == pytest.approx(wanted, rel=1e-12)


EQUAL = {(a, b): rho for a, b in ((z1, z2), (z1, z3), (z2, z3))}


def test_the_largest_of_three_to_five():
    """E max_n of independent normals [H. J. Godwin, Annals of Mathematical Statistics 20, 1949]; equal correlations scale it."""
    three = E(Max(z1, z2, z3), cov=EQUAL).doit()
    assert number(three, {rho: 0.36}) == pytest.approx(0.8*0.8462843753216345, rel=1e-12)
    assert float(hx.E("Max(z1, z2, z3, z4)").doit()) == pytest.approx(1.0293753730039641, rel=1e-12)
    assert float(hx.E("Max(z1, z2, z3, z4, z5)").doit()) == pytest.approx(1.1629644736405196, rel=1e-12)
    assert float(hx.E("Max(z1, z2, z3)**2").doit()) == pytest.approx(1.2756644477108960, rel=1e-12)
    r12, r13, r23 = symbols("r12 r13 r23", real=True)
    general = E(Max(z1, z2, z3), cov={(z1, z2): r12, (z1, z3): r13, (z2, z3): r23}).doit()
    at = {r12: 0.3, r13: -0.2, r23: 0.5}  # a third of the range: E|z_i - z_j| summed over pairs, over 4
    wanted = sum(np.sqrt(2 - 2*r)*np.sqrt(2/np.pi) for r in at.values())/4
    assert number(general, at) == pytest.approx(wanted, rel=1e-12)


SPELLINGS = [
    ("orthant", Heaviside(z1)*Heaviside(z2)*Heaviside(z3), Piecewise((1, (z1 > 0) & (z2 > 0) & (z3 > 0)), (0, True))),
    ("larger", Max(z1, z2), (z1 + z2 + Abs(z1 - z2))/2),
    ("weighted", z3*Max(z1, z3), z3*(z1 + z3 + Abs(z1 - z3))/2),
]


@pytest.mark.parametrize("one, other", [pair[1:] for pair in SPELLINGS], ids=[pair[0] for pair in SPELLINGS])
def test_two_spellings_have_one_value(one, other):
    variables = sorted(one.free_symbols, key=str)
    law = {pair: v for pair, v in {(z1, z2): rho, (z1, z3): Symbol("r", real=True)}.items() if set(pair) <= set(variables)}
    at = {rho: 0.4, Symbol("r", real=True): -0.3}
    left, right = (E(f, *variables, cov=law).doit() for f in (one, other))
    assert not left.has(hx.Expectation) and number(left, at) == pytest.approx(number(right, at), rel=1e-12)


def test_weights_beside_a_form_by_sampling():
    """E[z1 z3 relu(z1 + 2 z2)] over a correlated law, beside 2^16 Sobol points."""
    law = np.array([[1, 0.4, 0.2], [0.4, 1, -0.3], [0.2, -0.3, 1]])
    cov = {(z1, z2): "2/5", (z1, z3): "1/5", (z2, z3): "-3/10"}
    found = E(z1*z3*Max(0, z1 + 2*z2), cov=cov).doit()
    assert not found.has(hx.Expectation)
    points = norm.ppf(qmc.Sobol(3, seed=5).random_base2(16)) @ np.linalg.cholesky(law).T
    values = points[:, 0]*points[:, 2]*np.maximum(0, points[:, 0] + 2*points[:, 1])
    assert abs(float(found) - values.mean()) < 4*values.std()/np.sqrt(values.size)


def test_a_node_says_why_it_stays():
    assert hx.E("z**2").why() == ""
    assert hx.E("tanh(z + 1)").why().startswith("tanh(z + 1): it is not a product of polynomials")
    assert "does not exist" in hx.E("1/z").why()


def test_sympys_hermite_is_told_from_ours():
    with pytest.raises(hx.errors.BadInput, match=r"He\(3, z\) or He3\(z\)"):
        hx.E("hermite(3, z)*z")


def test_a_letter_that_is_0_where_it_is_asked_for_is_divided_by_nowhere():
    """E[z2 (erf(z2) - erf(z1)) exp(-z1^2/2)] over a covariance R that starts at 0: the form erf sees is scaled by no letter."""
    Q, R = symbols("Q R", positive=True)
    body = (z2*sqrt(1 - R**2/Q) + R*z1/sqrt(Q))*erf(sqrt(2)*(z2*sqrt(1 - R**2/Q) + R*z1/sqrt(Q))/2)*exp(-Q*z1**2/2)
    found = E(body, z1, z2).doit()
    assert not found.has(hx.Expectation) and float(found.subs({R: 0, Q: 0.25})) > 0


@pytest.mark.parametrize("middle", ["median(z1, z2, z3)", "Max(Min(z1, z2), Min(z1, z3), Min(z2, z3))",
                                    "Min(Max(z1, z2), Max(z3, Min(z1, z2)))"])
def test_the_median_of_three(middle):
    """Its density is 6 phi Phi (1 - Phi), so E m^2 = 1 - sqrt(3)/pi; E[z_i m] = P(m = z_i) by parts."""
    m = hx.parse(middle)
    assert E(m**2).doit() == 1 - sqrt(3)/pi and E(z1*m).doit() == Rational(1, 3) and E(m).doit() == 0
    other = E(tanh(z1)**2*(1 + erf(z1/sqrt(2)))*(1 - erf(z1/sqrt(2)))*Rational(3, 2), z1)
    assert abs(E(tanh(m)**2).evalf() - other.evalf()) < 1e-12
    assert m.subs({z1: 4, z2: 2, z3: 3}) == 3 == m.subs({z1: 3, z2: 4, z3: 2})


def test_a_condition_on_a_difference():
    """Of v = z1 - z2, Var v = s^2: E[z1 | v > c] = Cov(z1, v)/s phi(c/s)/Phi(-c/s); where s = 0 it is z1 if c < 0."""
    found = E(z1, z1 - z2 > c, cov=LETTERS).doit()
    assert not found.has(zoo)
    for at in drawn(3):
        size = np.sqrt(at[s1]**2 + at[s2]**2 - 2*at[rho]*at[s1]*at[s2])
        ratio = np.exp(norm.logpdf(at[c]/size) - norm.logsf(at[c]/size))
        assert number(found, at) == pytest.approx((at[s1]**2 - at[rho]*at[s1]*at[s2])/size*ratio, rel=1e-12)
    alone = E(z1, z1 - z2 > c, cov={(z1, z2): rho}).doit()
    assert alone.subs({rho: 1, c: -1}) == 0 and alone.subs({rho: 1, c: 2}) is nan
