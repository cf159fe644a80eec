"""Laws known by their density alone: against closed forms, other laws, and Gauss rules; masses that are not 1 are refused."""

import numpy as np
import pytest
from scipy.special import roots_chebyu
from sympy import Abs, Heaviside, Interval, Max, Rational, S, Symbol, cos, cosh, exp, oo, pi, sqrt, tanh
from sympy.stats import (
    ContinuousRV,
    DiscreteRV,
    Exponential,
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
    found = hx.System({m: hx.E(tanh(s*m*FREE + 1), FREE)}).solve(s=0.5)
    nodes, weights = roots_chebyu(60)
    assert found["m"] == pytest.approx(np.sum(weights*np.tanh(found["m"]*nodes + 1))*2/np.pi, rel=1e-12)  # s w = nodes


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
