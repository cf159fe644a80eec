"""Laws known by their density alone: against closed forms, other laws, and Gauss rules; masses that are not 1 are refused."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad
from scipy.special import roots_chebyu
from sympy import Abs, Heaviside, Interval, Max, Piecewise, Rational, S, Symbol, cos, cosh, exp, oo, pi, sqrt, tanh
from sympy.stats import (
    ContinuousRV,
    DiscreteRV,
    Exponential,
    FDistribution,
    Laplace,
    Levy,
    LogLogistic,
    Lomax,
    Moyal,
    Triangular,
    WignerSemicircle,
)

import hermitex as hx
from hermitex.errors import BadInput, HermitexError

x, k = Symbol("x"), Symbol("k", integer=True)
m, s = Symbol("m", real=True), Symbol("s", positive=True)


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


def law(density, low=-oo, high=oo):
    return ContinuousRV(x, density, set=Interval(low, high))


NORMAL, QUARTIC = law(exp(-x**2/2)/sqrt(2*pi)), law(sqrt(2)/pi/(1 + x**4))
FREE = WignerSemicircle("w", 2)


@pytest.mark.parametrize(("body", "of", "value"), [
    (lambda x: cos(x), NORMAL, np.exp(-0.5)), (lambda x: cosh(5*x), NORMAL, np.exp(12.5)), (lambda x: x**2, QUARTIC, 1),
    (lambda x: Abs(x)**Rational(5, 2), QUARTIC, 1/np.sin(7*np.pi/8)/np.sqrt(2)), (lambda x: x, law(3/x**4, 1), 1.5),
    (lambda x: x**2, law(1/(2*sqrt(x)), 0, 1), 0.2), (lambda x: Max(0, x - S(1)/3), law(2*x, 0, 1), 28/81),
    (lambda x: Max(0, x - 1), law(exp(-Abs(x))/2), np.exp(-1)/2), (lambda w: 1/(3 - w), FREE, (3 - np.sqrt(5))/2),
    (lambda x: x, Triangular("x", 0, 1, S(1)/3), 4/9), slow(lambda x: exp(-x), Levy("x", 0, 2), np.exp(-2)),
    slow(lambda x: Heaviside(x - 1), LogLogistic("x", 2, 3), 8/9), slow(lambda x: x, Lomax("x", 3, 2), 1),
    slow(lambda x: x, Moyal("x", 0, 1), np.euler_gamma + np.log(2)),
    (lambda n: 1/n, DiscreteRV(k, 2**(-k), set=S.Naturals), np.log(2)),
], ids=[f"law{i}" for i in range(15)])  # a value of NumPy in a name would change with its last digit
def test_the_average_is_known(body, of, value):
    kernel = hx.compile(hx.E(body(of), of))
    assert kernel() == pytest.approx(value, rel=1e-12)
    assert abs(kernel() - value) <= 4*max(kernel.error, 4e-16)*abs(value)


@pytest.mark.parametrize(("density", "numbers"), [
    (exp(-(x - m)**2/2/s**2)/sqrt(2*pi)/s, {"m": -300.0, "s": 0.01}),
    slow(2/pi*s**3/((x - m)**2 + s**2)**2, {"m": 300.0, "s": 50.0}),
    (exp(-(x - m)/s)*(x - m)/s**2, {"m": 1.0, "s": 1e-3}),
])
def test_letters_shift_and_scale(density, numbers):
    lowest = m if density.has(exp(-(x - m)/s)) else -oo
    if lowest == m:
        density, lowest = density.subs(m, 0), 0
    of = law(density, lowest)
    kernel = hx.compile(hx.E(tanh((of - (m if lowest == -oo else 0))/s)**2, of))
    there, here = ({n: v for n, v in p.items() if n in kernel.parameters} for p in (numbers, {"m": 0.0, "s": 1.0}))
    assert kernel(**there) == pytest.approx(kernel(**here), rel=1e-12)


def test_it_is_the_law_of_that_name():
    for density, low, named in ((s*exp(-s*x), 0, Exponential("x", s)), (exp(-Abs(x))/2, -oo, Laplace("x", 0, 1))):
        own, other = (hx.compile(hx.E(tanh(of - 1)**2, of)) for of in (law(density, low), named))
        at = {"s": 0.7} if "s" in own.parameters else {}
        assert own(**at) == pytest.approx(other(**at), rel=1e-12)


def test_a_spectrum_in_a_system_by_gauss_rules():
    """Its radius is a letter, in which the density has no derivative at its edges that is finite."""
    free = WignerSemicircle("w", s)
    found = hx.System({m: hx.E(tanh(m*free + 1), free)}).solve(s=1.2)
    nodes, weights = roots_chebyu(60)
    value, v = np.tanh(1.2*found["m"]*nodes + 1), weights*2/np.pi
    assert found["m"] == pytest.approx(v @ value, rel=1e-12)
    slope = v @ ((1 - value**2)*nodes)  # dm/ds = slope*(m + s dm/ds)
    assert found.derivative("s")["m"] == pytest.approx(slope*found["m"]/(1 - 1.2*slope), rel=1e-10)


@pytest.mark.parametrize("density", [2*x + Rational(1, 10**6), 4*x - S.Half, 12*x**2 - 6*x, s*x, 2*x*Heaviside(s - 1)])
def test_what_is_no_density_is_refused(density):
    of = law(density, 0, 1)
    with pytest.raises(HermitexError) as said:
        hx.E(of**2, of)
    assert len(str(said.value).splitlines()) == 1


def test_letters_outside_of_the_law_are_refused():
    b = Symbol("b")
    of = law((b - 1)*x**(-b), 1)
    assert hx.compile(hx.E(1/of, of))(b=3.0) == pytest.approx(2/3, rel=1e-12)
    with pytest.raises(BadInput, match="needs"):
        hx.compile(hx.E(1/of, of))(b=0.5)


a, b, r = Symbol("a", positive=True), Symbol("b", positive=True), Symbol("r", real=True)
TRIANGLE = Triangular("t", a, b, s)


@pytest.mark.parametrize(("of", "numbers", "density", "ends"), [
    (TRIANGLE, {"a": 0.5, "b": 2.0, "s": 1.0}, lambda u: 2*(u - 0.5)/0.75 if u < 1 else 2*(2 - u)/1.5, (0.5, 1, 2)),
    (law(Piecewise((1/a, (x > 0) & (x < a)), (0, True)), 0), {"a": 2.0}, lambda u: 0.5, (0, 2)),
    (law(exp(-Abs(x - r)/b)/2/b), {"r": -2.0, "b": 0.25}, lambda u: 2*np.exp(-4*abs(u + 2)), (-14, -2, 10)),
    (law((1 + r*x)/2, -1, 1), {"r": 0.5}, lambda u: (1 + u/2)/2, (-1, 1)),
    (FDistribution("f", 5, 7), {}, scipy.stats.f(5, 7).pdf, (0, 1, 5, 50, 1000, 1e5, 1e7)),
], ids=["triangle", "box", "laplace", "linear", "f"])
def test_letters_that_move_where_a_density_changes(of, numbers, density, ends):
    kernel = hx.compile(hx.E(tanh(of), of))
    value = sum(quad(lambda u: np.tanh(u)*density(u), low, high, epsabs=1e-13)[0] for low, high in pairwise(ends))
    assert kernel(**numbers) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(("of", "numbers", "says"), [
    (TRIANGLE, {"a": 0.5, "b": 2.0, "s": 3.0}, "b - s > 0"), (law((1 + r*x)/2, -1, 1), {"r": 3.0}, ">= 0"),
    (DiscreteRV(k, (1 - a)*a**k, set=S.Naturals0), {"a": 1.5}, "1 - a > 0"),
])
def test_numbers_at_which_there_is_no_such_law_are_refused(of, numbers, says):
    with pytest.raises(BadInput, match=says):
        hx.compile(hx.E(tanh(of), of))(**numbers)


@pytest.mark.parametrize("density", [(1 + r*x**3)/2, (1 + r*cos(pi*x))/2])
def test_a_density_in_letters_that_is_negative_somewhere_is_none(density):
    with pytest.raises(BadInput, match="is negative at"):
        hx.E(tanh(law(density, -1, 1)))


def test_a_geometric_law_by_its_probabilities():
    kernel = hx.compile(hx.E(cos(DiscreteRV(k, (1 - a)*a**k, set=S.Naturals0))))
    assert kernel(0.5) == pytest.approx((0.5/(1 - 0.5*np.exp(1j))).real, rel=1e-13)
