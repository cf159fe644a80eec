"""Averages over random variables of sympy.stats: against sums and integrals over their densities, made here."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats as numeric
from scipy.integrate import quad
from scipy.special import expit
from sympy import (
    Abs,
    Expr,
    Heaviside,
    Max,
    Rational,
    Symbol,
    cos,
    exp,
    expand,
    lambdify,
    log,
    pi,
    simplify,
    sqrt,
    stats,
    tanh,
)

import hermitex as hx
from hermitex import Expectation
from hermitex.errors import BadInput, Divergent, HermitexError
from hermitex.face.spec import from_toml
from hermitex.symbolic.existence_check import exists
from hermitex.symbolic.text.law_text import law
from hermitex.symbols import z

p, c, a, q, h = (Symbol(name, positive=True) for name in "pcaqh")
t = Symbol("t", real=True)
CONTINUOUS = {
    "exponential": (stats.Exponential("x", 2), numeric.expon(scale=0.5), (0, 30)),
    "uniform": (stats.Uniform("x", -1, 2), numeric.uniform(-1, 3), (-1, 2)),
    "laplace": (stats.Laplace("x", Rational(1, 2), 2), numeric.laplace(0.5, 2), (-80, 80)),
    "logistic": (stats.Logistic("x", 0, 1), numeric.logistic, (-40, 40)),
    "weibull": (stats.Weibull("x", 1, 2), numeric.weibull_min(2), (0, 10)),
    "rayleigh": (stats.Rayleigh("x", 1), numeric.rayleigh, (0, 12)),
    "gumbel": (stats.Gumbel("x", 1, 0), numeric.gumbel_r, (-5, 45)),
    "normal": (stats.Normal("x", 1, 2), numeric.norm(1, 2), (-20, 20)),
    "lognormal": (stats.LogNormal("x", 0, Rational(1, 2)), numeric.lognorm(0.5), (0, 60)),
    "pareto": (stats.Pareto("x", 1, 3), numeric.pareto(3), (1, 10**7)),
    "kumaraswamy": (stats.Kumaraswamy("x", Rational(17, 10), 2), None, (0, 1)),
    "arcsin": (stats.Arcsin("x", 0, 1), None, (0, 1)),
}
FUNCTIONS: dict[str, Callable[[Expr], Expr]] = {
    "tanh": lambda x: tanh(x)**2, "kink": lambda x: Abs(x - Rational(3, 4)),
    "bump": lambda x: exp(-x**2), "wave": lambda x: cos(2*x)}


def _quadrature(name: str, f: Callable[[Expr], Expr]) -> float:
    _, density, (low, high) = CONTINUOUS[name]
    value = lambdify(t, f(t), ["scipy", "numpy"])
    if density is not None:
        ends = [v for v in (0.75, 1.0, 3.0, 30.0, 1e3, 1e5) if low < v < high] + [0.0]*(low < 0)
        return sum(quad(lambda u: value(u)*density.pdf(u), lo, hi, epsabs=1e-14, epsrel=1e-12, limit=400)[0]
                   for lo, hi in zip([low, *sorted(ends)], [*sorted(ends), high], strict=True))
    back = {"kumaraswamy": lambda u: (1 - (1 - u)**0.5)**(1/1.7), "arcsin": lambda u: np.sin(np.pi*u/2)**2}[name]
    at = {"kumaraswamy": 1 - (1 - 0.75**1.7)**2, "arcsin": 2/np.pi*np.arcsin(np.sqrt(0.75))}[name]
    return sum(quad(lambda u: value(back(u)), lo, hi, epsabs=1e-14, epsrel=1e-12)[0] for lo, hi in ((0, at), (at, 1)))


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("name", ["exponential", "uniform", "laplace", "normal"])
def test_continuous_laws_are_integrals_over_their_density(name: str, f: str) -> None:
    kernel = hx.compile(hx.E(FUNCTIONS[f](CONTINUOUS[name][0])))
    assert kernel() == pytest.approx(_quadrature(name, FUNCTIONS[f]), rel=1e-10, abs=1e-12)
    assert kernel.error < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("name", sorted(set(CONTINUOUS) - {"exponential", "uniform", "laplace", "normal"}))
def test_more_continuous_laws_are_integrals_over_their_density(name: str, f: str) -> None:
    if name == "pareto" and f == "wave":
        pytest.skip("the plain integral of this file does not converge")
    kernel = hx.compile(hx.E(FUNCTIONS[f](CONTINUOUS[name][0])))
    assert kernel() == pytest.approx(_quadrature(name, FUNCTIONS[f]), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_finite_laws_are_finite_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice(np.arange(-6, 7), 4, replace=False)
    weights = rng.integers(1, 9, 4)
    x = stats.FiniteRV("x", {int(v): Rational(int(w), int(weights.sum())) for v, w in zip(values, weights, strict=True)})
    nodes, mass = np.polynomial.hermite_e.hermegauss(90)
    expected = sum(w*(np.tanh(v/3 + 0.5*nodes)*np.cos(v*nodes/9) @ mass) for v, w in zip(values, weights, strict=True))
    node = hx.E(tanh(x/3 + z/2)*cos(x*z/9))
    assert hx.compile(node)() == pytest.approx(expected/weights.sum()/mass.sum(), rel=1e-9, abs=1e-11)
    planted = hx.E(tanh(x/3 + z/2)*cos(x*z/9) + x**3/10**6)
    assert hx.compile(planted)() != pytest.approx(expected/weights.sum()/mass.sum(), rel=1e-10, abs=1e-12)


WEIGHTED = {
    "gamma": (stats.Gamma("x", c, a), lambda v, s: numeric.gamma(v, scale=s), [0.1, 0.5, 1.0, 4.5, 30.0]),
    "beta": (stats.Beta("x", c, a), lambda v, s: numeric.beta(v, s), [0.2, 1.0, 7.0, 40.0]),
    "student": (a*stats.StudentT("x", c), lambda v, s: numeric.t(v, scale=s), [0.6, 1.0, 2.5, 30.0]),
    "chi squared": (a*stats.ChiSquared("x", c), lambda v, s: numeric.chi2(v, scale=s), [0.4, 1.0, 9.0]),
    "chi": (a*stats.Chi("x", c), lambda v, s: numeric.chi(v, scale=s), [0.4, 3.0]),
    "inverse gamma": (stats.GammaInverse("x", c, a), lambda v, s: numeric.invgamma(v, scale=s), [0.7, 3.0]),
    "cauchy": (stats.Cauchy("x", c, a), lambda v, s: numeric.cauchy(v, s), [0.5])}


def _by_quantiles(law: object, f: Callable[[np.ndarray], np.ndarray]) -> float:
    """int f(x(u)) du with nodes that crowd at both ends of (0, 1), in tails that are exact there."""
    s = np.arange(-240, 241)/60
    e = np.pi*np.sinh(s)
    left, right = 1/(1 + np.exp(-e)), 1/(1 + np.exp(e))
    x = np.where(s < 0, law.ppf(left), law.isf(right))
    return float(np.sum(f(x)*left*right*np.pi*np.cosh(s))/60)


@pytest.mark.parametrize("name", WEIGHTED)
def test_laws_without_a_formula_for_their_quantiles(name: str) -> None:
    x, same, shapes = WEIGHTED[name]
    kernel = hx.compile(hx.E(tanh(x)**2 + exp(-x**2)))
    planted = hx.compile(hx.E(tanh(x)**2*(1 + Rational(1, 10**5)) + exp(-x**2)))
    for v in shapes:
        exact = _by_quantiles(same(v, 1.7), lambda u: np.tanh(u)**2 + np.exp(-np.minimum(np.abs(u), 30)**2))
        assert kernel(c=v, a=1.7) == pytest.approx(exact, rel=2e-10) and kernel.error < 1e-10
        assert planted(c=v, a=1.7) != pytest.approx(exact, rel=1e-9)


def test_laws_of_positive_numbers() -> None:
    """|x| is x, and has no kink."""
    for x in (stats.Weibull("x", a, 2), stats.Uniform("x", 0, a), stats.Gamma("x", a, 1)):
        assert hx.E(tanh(Abs(x))) == hx.E(tanh(x))


def test_what_has_no_moment_is_not_given_one() -> None:
    assert hx.E(stats.StudentT("x", 5)**2) == Rational(5, 3) and hx.E(stats.StudentT("x", 5)**3) == 0
    assert simplify(hx.E(stats.GammaInverse("x", 3, a)**2) - a**2/2) == 0
    assert float(hx.E(stats.Chi("x", 3)**3)) == pytest.approx(numeric.chi(3).moment(3))
    for heavy in (Abs(stats.StudentT("x", 2))**3, Abs(stats.Cauchy("x", 0, 1)), stats.StudentT("x", c)**2):
        with pytest.raises(HermitexError):
            hx.compile(hx.E(heavy))(**({"c": 1.5} if heavy.has(c) else {}))
    assert hx.compile(hx.E(stats.StudentT("x", c)**2))(c=5.0) == pytest.approx(5/3, rel=1e-9)


def test_an_unknown_stands_in_the_law() -> None:
    """q = E tanh(x/2), x of shape 1 + q: Newton's method differentiates the weight."""
    x = stats.Gamma("x", 1 + q, 1)
    found = hx.System({q: hx.E(tanh(x/2))}).solve()
    assert found.converged and found.iterations < 12 and not found.notes
    assert _by_quantiles(numeric.gamma(1 + found["q"]), lambda u: np.tanh(u/2)) == pytest.approx(found["q"], rel=1e-9)


PLACES = np.arange(40_000)
COUNTED = {
    "poisson": (stats.Poisson("n", c), lambda v: numeric.poisson(v).pmf(PLACES), [1e-4, 0.3, 2.5, 60.0, 180.0, 1000.0]),
    "geometric": (stats.Geometric("n", c), lambda v: numeric.geom(v).pmf(PLACES), [0.9, 0.3, 0.01]),
    "negative binomial": (stats.NegativeBinomial("n", Rational(5, 2), c), lambda v: numeric.nbinom(2.5, 1 - v).pmf(PLACES),
                          [0.05, 0.6, 0.95])}


@pytest.mark.parametrize("name", COUNTED)
def test_countable_laws_are_sums_of_as_many_terms_as_they_need(name: str) -> None:
    n, masses, points = COUNTED[name]
    kernel = hx.compile(hx.E(1/(2 + n) + tanh(n/9)))
    for v in points:
        assert kernel(c=v) == pytest.approx(masses(v) @ (1/(2 + PLACES) + np.tanh(PLACES/9)), rel=1e-11)
    assert kernel(c=np.array(points)) == pytest.approx([kernel(c=v) for v in points], rel=1e-12)


def test_countable_and_normal_variables_together() -> None:
    n = stats.Poisson("n", c)
    nodes, mass = np.polynomial.hermite_e.hermegauss(260)
    weights = numeric.poisson(2.5).pmf(np.arange(80))
    expected = weights @ (np.tanh(0.4*np.sqrt(np.arange(80))[:, None]*nodes)**2 @ mass)/mass.sum()
    assert hx.compile(hx.E(tanh(sqrt(n)*z*Rational(2, 5))**2))(c=2.5) == pytest.approx(expected, rel=1e-9)


def test_a_countable_law_depends_on_an_unknown() -> None:
    """A giant component: 1 - q = E (1 - q)^n, n Poisson of mean c, which is exp(-c q)."""
    n = stats.Poisson("n", c*(1 + q)/2)
    found = hx.System({q: 1 - hx.E(exp(-q*n))}).solve(c=4.0, start={q: 0.8})
    assert found.converged and found.iterations < 12
    v = found["q"]
    assert v == pytest.approx(1 - np.exp(2*(1 + v)*(np.exp(-v) - 1)), rel=1e-9)


def test_a_sum_that_diverges_is_not_given_a_value() -> None:
    n = stats.Poisson("n", c)
    for f in (exp(n**2), exp(exp(n))):
        with pytest.raises(HermitexError):
            hx.compile(hx.E(f))(c=1.0)
    with pytest.raises(HermitexError):
        hx.compile(hx.E(exp(stats.Geometric("n", c)/2)))(c=0.3)


GEOMETRIC, FEW = stats.Geometric("n5", Rational(1, 2)), np.arange(1, 100)


@pytest.mark.parametrize("f", [lambda x: exp(x**2/5000), lambda x: exp(z**2*x/500)])
def test_what_outgrows_a_law_far_out_has_no_average(f: Callable[[Expr], Expr]) -> None:
    """E exp(X^2/5000) of an exponential variable was 1.0004: its integrand falls for 100 units before it grows."""
    continuous = hx.E(f(stats.Exponential("x", 1)))
    for ask in (lambda: continuous.evalf(15), lambda: hx.compile(continuous), lambda: hx.compile(hx.E(f(GEOMETRIC)))):
        with pytest.raises(Divergent):
            ask()
    with pytest.raises(BadInput, match="does not exist"):
        hx.System({q: hx.E(f(GEOMETRIC))}).solve()


@pytest.mark.parametrize("body", [exp(t*z**3), exp(t*z**4), exp(t*GEOMETRIC**2), exp(t*stats.Exponential("x", 1)**2)])
def test_letters_at_which_an_average_is_infinite_far_out_are_refused(body: Expr) -> None:
    """E exp(t z^3) at t = 1/1000 was 1.0000075 in a kernel and in a system: the integrand grows from z = 500 on."""
    kernel, system = hx.compile(hx.E(body)), hx.System({q: hx.E(body)})
    for ask in (kernel, system.solve):
        with pytest.raises(BadInput, match="needs -t >= 0"):
            ask(t=0.001)
    assert kernel(t=0.0) == pytest.approx(1, rel=1e-14)


def test_where_the_largest_power_has_no_weight_the_next_decides() -> None:
    """E exp(t z^3 - s z^4) at s = 0 and t = 1/1000 was 1.0000075."""
    s = Symbol("s", real=True)
    system = hx.System({q: hx.E(exp(t*z**3 - s*z**4))})
    assert system.solve(t=0.001, s=0.1)["q"] == pytest.approx(float(hx.E(exp(z**3/1000 - z**4/10)).evalf(15)), rel=1e-11)
    assert system.solve(t=0.0, s=0.0)["q"] == pytest.approx(1, rel=1e-14)
    for numbers in ({"t": 0.001, "s": 0.0}, {"t": 0.001, "s": -0.1}):
        with pytest.raises(BadInput, match="needs Piecewise"):
            system.solve(numbers)


def test_what_is_outgrown_far_out_has_an_average() -> None:
    assert exists(hx.E(exp(-Abs(z)**3)*(2 + Abs(z))**(z**2), z)) is True
    assert hx.compile(hx.E(exp(sqrt(GEOMETRIC))))() == pytest.approx(np.exp(np.sqrt(FEW)) @ 0.5**FEW, rel=1e-11)


def test_two_countable_laws_together() -> None:
    """Their probabilities add up: the closed form of an inner sum was asked of its terms at one place, "which do not fall"."""
    n = stats.Poisson("n", 2)
    expected = numeric.poisson(2).pmf(FEW - 1) @ (1/(FEW[:, None] - 1 + FEW)) @ 0.5**FEW
    assert hx.compile(hx.E(1/(n + GEOMETRIC)))() == pytest.approx(expected, rel=1e-12)


def test_what_a_law_gives_exactly_is_exact() -> None:
    x = stats.Rademacher("x")
    assert hx.E(x**2) == 1 and hx.E(x) == 0
    assert expand(hx.E(stats.Binomial("n", 3, p)**2) - (6*p**2 + 3*p)) == 0
    assert expand(hx.E(stats.Poisson("n", c)**3) - (c**3 + 3*c**2 + c)) == 0
    assert simplify(hx.E(stats.Geometric("n", p)**2) - (2 - p)/p**2) == 0
    assert hx.E(stats.Gamma("g", 2, a)**2) == 6*a**2
    assert simplify(hx.E(stats.Beta("b", 2, a)) - 2/(2 + a)) == 0
    assert hx.E(stats.Exponential("e", a)**3) == 6/a**3
    assert simplify(hx.E(stats.Uniform("u", -1, a)**2) - (a**3 + 1)/(3*(a + 1))) == 0
    assert simplify(hx.E(Max(0, stats.Normal("y", h, a))).doit() - hx.E(Max(0, h + a*z)).doit()) == 0


@pytest.mark.parametrize("name", ["Geometric", "Poisson", "Gamma", "ChiSquared", "Beta", "Weibull", "Rayleigh",
                                  "Uniform", "Exponential"])
def test_moments_are_those_of_scipy(name: str) -> None:
    variable, same = {
        "Geometric": (stats.Geometric("x", Rational(1, 3)), numeric.geom(1/3)),
        "Poisson": (stats.Poisson("x", 2), numeric.poisson(2)),
        "Gamma": (stats.Gamma("x", 3, 2), numeric.gamma(3, scale=2)),
        "ChiSquared": (stats.ChiSquared("x", 5), numeric.chi2(5)),
        "Beta": (stats.Beta("x", 2, 3), numeric.beta(2, 3)),
        "Weibull": (stats.Weibull("x", 2, 3), numeric.weibull_min(3, scale=2)),
        "Rayleigh": (stats.Rayleigh("x", 2), numeric.rayleigh(scale=2)),
        "Uniform": (stats.Uniform("x", 1, 3), numeric.uniform(1, 2)),
        "Exponential": (stats.Exponential("x", 2), numeric.expon(scale=0.5))}[name]
    for n in (1, 2, 3, 4):
        assert float(hx.E(variable**n)) == pytest.approx(same.moment(n), rel=1e-10)


def test_independence_and_conditioning() -> None:
    x, y = stats.Rademacher("x"), stats.Bernoulli("y", p)
    assert expand(hx.E(x*y*z**2 + y*z**2).doit() - p) == 0
    assert expand(hx.E(hx.E((x + y*z)**2, z), x, y).doit() - hx.E((x + y*z)**2, z, x, y).doit()) == 0
    shifted = stats.Normal("w", x, 1)  # a mixture of two normals
    assert hx.E(shifted**2).doit() == 2
    assert hx.compile(hx.E(tanh(shifted)**2))() == pytest.approx(hx.compile("E(tanh(1 + z)**2)")(), rel=1e-12)


def test_parameters_of_a_law_are_differentiated() -> None:
    """A field of random sign and a dilution that is an unknown: Newton needs d/dp through the probabilities."""
    x, y, w = stats.Rademacher("x"), stats.Bernoulli("y", q/(1 + q)), stats.Exponential("w", 1 + q)
    gap = hx.System({q: h + hx.E(y*tanh(h*x + sqrt(q)*z)**2, x, y, z) + hx.E(w*exp(-w**2))/5})
    found = gap.solve(h=0.3)
    assert found.converged and found.iterations < 12 and not found.notes
    v = found["q"]
    nodes, mass = np.polynomial.hermite_e.hermegauss(150)
    first = np.mean([np.tanh(0.3*s + np.sqrt(v)*nodes)**2 @ mass/mass.sum() for s in (1, -1)])*v/(1 + v)
    second = quad(lambda u: u*np.exp(-u*u)*(1 + v)*np.exp(-(1 + v)*u), 0, 12, epsabs=1e-14)[0]/5
    assert 0.3 + first + second == pytest.approx(v, rel=1e-8)


def test_a_spec_names_its_laws() -> None:
    spec = from_toml('[symbols]\nq = "positive"\nh = "positive"\nrho = "positive"\n'
                     '[laws]\nx = "Rademacher()"\ny = "Bernoulli(rho)"\n'
                     '[equations]\nq = "h + E(y*tanh(h*x + sqrt(q)*z)**2, z, x, y)"\n')
    x, y, rho = stats.Rademacher("x"), stats.Bernoulli("y", Symbol("rho", positive=True)), Symbol("rho", positive=True)
    same = hx.System({q: h + hx.E(y*tanh(h*x + sqrt(q)*z)**2)}, parameters=[h, rho])
    assert spec.system.solve(h=0.4, rho=0.3)["q"] == same.solve(h=0.4, rho=0.3)["q"]


@pytest.mark.parametrize("text", ["Rademacher", "rademacher()", "Rademacher(1)", "__import__('os')", "Poisson(open(c))",
                                  "FiniteRV(1, 2)",
                                  "FiniteRV({0: 1/2, 1: 1/3})", "Poisson(c).pspace", "Poisson(c=1)", "GaussianInverse(0, 1)",
                                  "Bernoulli(2)", "",
                                  "Binomial(*c)", "FiniteRV({**c})", "lambda: 0"])
def test_what_is_no_law_gets_one_line(text: str) -> None:
    with pytest.raises(HermitexError) as told:
        law("x", text, {"c": "positive"})
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("make", [
    lambda: hx.E(tanh(stats.BetaNoncentral("x", 2, 1, 1))), lambda: hx.E(tanh(stats.Gamma("x", 200, 1))),
    lambda: hx.E(stats.Cauchy("x", 0, 1)), lambda: hx.E(stats.StudentT("x", 3)**4 + 1),
    lambda: hx.E(1 + stats.Pareto("x", 1, 2)**2),
    lambda: hx.compile(stats.Rademacher("x")*z),
    lambda: hx.System({"q": stats.Rademacher("x")*q}), lambda: hx.compile(hx.E(stats.Rademacher("x")*z, z)),
    lambda: hx.E(z*stats.Rademacher("x"), cov={("z", "x"): p}),
    lambda: hx.E(tanh(stats.Binomial("n", Symbol("m", integer=True, positive=True), p)))])
def test_what_has_no_average_gets_one_line(make: Callable[[], object]) -> None:
    with pytest.raises(BadInput) as told:
        make()
    assert "\n" not in str(told.value)


def test_an_average_that_diverges_slowly_is_refused() -> None:
    kernel = hx.compile(hx.E(Abs(stats.StudentT("x", c))))
    for n in (0.8, 1.0):
        with pytest.raises(HermitexError, match="diverge"):
            kernel(c=n)


@pytest.mark.slow
def test_a_quantile_beyond_all_digits_has_its_tail():
    """P(X > 100) = exp(-200) is exact; 1 - exp(-200) rounds to 1, where no place of a kink is known."""
    x = stats.Exponential("x", 2)
    assert hx.E(Heaviside(x - 100)).doit() == exp(-200)


@pytest.mark.parametrize("at", [Rational(1, 3), 2, 11])
def test_the_tail_of_an_exponential_variable(at):
    """It was drawn by log(1/2 - erf/2), which has no digit far out: E Max(0, X - s) had no value, and a check of it no verdict."""
    x, s = stats.Exponential("x", 1), Symbol("s", positive=True)
    for body, known in ((Max(0, x - s), exp(-s)), (Max(0, x - s)**2, 2*exp(-s)), (x*Heaviside(x - s), (1 + s)*exp(-s))):
        node = hx.E(body, x)
        assert abs(node.subs(s, at).evalf(20)/known.subs(s, at).evalf(25) - 1) < 1e-18
        assert hx.compile(node)(s=float(at)) == pytest.approx(float(known.subs(s, at)), rel=1e-10)


@pytest.mark.slow
def test_a_claim_of_the_tail_of_an_exponential_variable_is_tried():
    x, s = stats.Exponential("x", 1), Symbol("s", positive=True)
    assert hx.check(hx.E(Max(0, x - s), x), exp(-s)) and hx.check(hx.E(Max(0, x - s), x), 2*exp(-s)).status == "fails"


@pytest.mark.parametrize("seed", range(6))
def test_a_probability_that_a_normal_enters_is_averaged_with_the_rest(seed):
    chance = random.Random(seed)
    slope, shift = chance.randint(1, 3), Rational(chance.randint(-3, 3), 4)
    odds = 1/(1 + exp(-slope*z - shift))
    values = {1: odds, chance.choice([-1, 0, 3]): 1 - odds}
    drawn, f = stats.FiniteRV("D", values), chance.choice([lambda v: z*v, lambda v: z**2 + v, lambda v: cos(z*v), lambda v: v])
    whole = sum(probability*f(v) for v, probability in values.items())
    found = hx.E(f(drawn), z, drawn)
    assert z not in found.free_symbols and found == hx.E(f(drawn), drawn, z)
    assert hx.check(found, hx.E(whole, z)) and not hx.check(found, hx.E(whole, z) + 1)


# -- laws beside a normal ----------------------------------------------------------------------------------------------
def beside(seed):
    """(E f(z + x), the same by a rule of its own) for a law drawn at random and a smooth f."""
    r = random.Random(seed)
    k, m, shift = Rational(r.randint(3, 9), 2), r.randint(2, 4), Rational(r.randint(-9, 9), 5)
    x, d = r.choice([
        (stats.Exponential("x", k), numeric.expon(scale=1/float(k))), (stats.Gamma("x", k, 1), numeric.gamma(float(k))),
        (stats.Beta("x", k, m), numeric.beta(float(k), m)), (stats.Logistic("x", 0, 1), numeric.logistic()),
        (stats.StudentT("x", m + 3), numeric.t(m + 3))])
    f, g = r.choice([(tanh, np.tanh), (lambda u: log(1 + exp(u)), lambda u: np.logaddexp(0, u)),
                     (lambda u: 1/(1 + exp(-u))**2, lambda u: expit(u)**2)])
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    a, b = d.support()
    known, _ = quad(lambda v: d.pdf(v)*(weights @ g(nodes + v + float(shift)))/weights.sum(), a, b, epsabs=1e-12, epsrel=1e-12,
                    limit=400)
    return hx.E(f(z + x + shift), z, x), known


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 6))])
def test_a_law_beside_a_normal_in_a_smooth_function_has_digits(seed):
    node, known = beside(seed)
    assert float(node.evalf(12)) == pytest.approx(known, rel=1e-9, abs=1e-10)


@pytest.mark.slow
def test_a_step_around_a_heavy_tail_and_a_normal_of_any_size() -> None:
    """Its two places were not looked for along the normal, for a logarithm stood in the heavy tail."""
    x = stats.StudentT("x", 5)
    step = hx.compile(hx.E(Heaviside(1 - Abs(x + a*z)), x, z))(a=0.5)
    by_hand = quad(lambda v: numeric.t.pdf(v, 5)*(numeric.norm.cdf((1 - v)/0.5) - numeric.norm.cdf((-1 - v)/0.5)), -9, 9,
                   epsabs=1e-14, epsrel=1e-12)[0]
    assert step == pytest.approx(by_hand, rel=1e-10)


def test_existence_of_a_smooth_average_beside_a_heavy_tail_is_seen_apart():
    x, y = stats.StudentT("x", 5), stats.Cauchy("y", 0, 1)
    assert exists(next(iter(hx.E(log(1 + exp(z + x)), z, x).atoms(Expectation)))) is True
    assert exists(next(iter(hx.E(tanh(z + y)*y, z, y).atoms(Expectation)))) is not True


def test_powers_of_a_uniform_variable_are_beta_functions():
    x, u, t = stats.Exponential("x", 2), stats.Uniform("u", 0, 1), Symbol("t", positive=True)
    assert hx.E(z**2*exp(-t*x)).doit().equals(2/(2 + t)) and hx.E(u**t).doit() == 1/(1 + t) and hx.E(sqrt(u*(1 - u))).doit() == pi/8
    assert hx.E(u**-t).doit().has(hx.Expectation)  # t < 1 is needed
