"""Integrands that are 0/0 at a place that may be a node, poles that are integrable, and exponents that widen the Gaussian nearly
beyond its existence."""

from random import Random

import mpmath
import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Rational, acos, atan, cos, erf, exp, lambdify, log, pi, sin, sinh, sqrt, symbols, tanh

import hermitex as hx
from hermitex.errors import Divergent, NotConverged

z, w, a, b = symbols("z w a b", real=True)


def by_mpmath(body, numbers, places=()):
    """Tanh-sinh between places of which none is a node of it."""
    density = exp(-z**2/2)/sqrt(2*pi)
    f = lambdify(z, (body*density).subs({a: numbers.get("a", 0), b: numbers.get("b", 0)}), "mpmath")
    with mpmath.workdps(30):
        edges = sorted({-90, -40, -20, -9, -3, -1, 1, 3, 9, 20, 40, 90, *places})
        return float(mpmath.quad(f, edges))


REMOVABLE = {  # the integrand, and where it is 0/0
    "sin z/z": (sin(z)/z, 0), "z/tanh z": (z/tanh(z), 0), "z/sinh z": (z/sinh(z), 0), "atan z/z": (atan(z)/z, 0),
    "Planck": ((z - b)/(exp(z - b) - 1), b), "tanh": (tanh(a*(z - b))/(z - b), b), "erf": (erf(z - b)/(z - b), b),
    "log": (log(1 + (z - b)**2)/(z - b), b), "squares": (sin(z - b)**2/(z - b)**2, b),
}


STEEP = {  # E, known where the step is all there is: E f(s z)/z is s f'(0) as s -> 0
    "tanh": (tanh(a*z)/z, 1), "erf": (erf(a*z)/z, 2/np.sqrt(np.pi)), "atan": (atan(a*z)/z, 1), "square": (tanh(a*z)**2/(a*z**2), 1),
}


@pytest.mark.parametrize("name", STEEP)
def test_break_points_in_one_place_do_not_meet_in_a_removable_singularity(name):
    """About the centre of what is steep or slow there is a panel of width 0; one call says nothing of the next."""
    body, slope = STEEP[name]
    kernel = hx.compile(hx.E(body, z))
    assert kernel(a=1e-9) == pytest.approx(slope*1e-9, rel=1e-12)
    for number in (61.0, 1.35e5, 0.7):
        edges = sorted(s*r/number for s in (-1, 1) for r in (0.1, 1, 10, 100, 1e3, 1e4) if r/number < 9)
        assert kernel(a=number) == pytest.approx(by_mpmath(body, {"a": number}, [0, *edges]), rel=1e-11)
    assert kernel(a=[0.7, 61.0])[0] == pytest.approx(kernel(a=0.7), rel=1e-13)


@pytest.mark.parametrize("place", [0.0, 0.1, 0.5, -1.2])
@pytest.mark.parametrize("name", REMOVABLE)
def test_a_node_may_fall_on_a_removable_singularity(name, place):
    body, at = REMOVABLE[name]
    if at == 0 and place:
        pytest.skip("it is at 0")
    numbers = {v.name: n for v, n in ((a, 2.0), (b, place)) if v in body.free_symbols}
    found = hx.compile(hx.E(body, z))(**numbers)
    assert found == pytest.approx(by_mpmath(body, numbers, [place]), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("body", [1/(z - b), 1/(z - b)**2, cos(z)/(z - b), tanh(z)/(z - b)**3], ids=str)
@pytest.mark.parametrize("place", [0.0, 0.5])
def test_a_pole_on_a_node_is_none(body, place):
    with pytest.raises((Divergent, NotConverged)):
        hx.compile(hx.E(body, z))(b=place)


def test_at_temperature_0_a_node_may_fall_on_the_step():
    """E tanh((x + z + b)/T) at T = 0 is erf((x + b)/sqrt 2), whatever nodes are taken."""
    x, q, T = symbols("x q T", positive=True)
    step = tanh((x + sqrt(q)*z + b)/T)
    found = hx.System({x: hx.E(step, z), q: hx.E(step**2, z)}).solve(T=0.0, b=0.3, start={"x": 0.5})
    assert found["q"] == pytest.approx(1) and found["x"] == pytest.approx(float(erf((found["x"] + 0.3)/sqrt(2))), rel=1e-7)


# -- exponents that widen ----------------------------------------------------------------------------------------------
WIDE = [tanh(z)**2*exp(a*z**2), exp(a*z**2 + b*z)/(1 + z**2), exp(b*z)*exp(a*z**2)*tanh(z - 1), exp(a*(z - b)**2)/(2 + tanh(z))]


@pytest.mark.parametrize("body", WIDE, ids=str)
@pytest.mark.parametrize("number", [-30.0, 0.0, 0.3, 0.45, 0.49, 0.499])
def test_an_average_that_nearly_does_not_exist(body, number):
    numbers = {v.name: n for v, n in ((a, number), (b, 0.2)) if v in body.free_symbols}
    s = (1 - 2*number)**-0.5
    wide = body.subs(z, s*z)*exp((1 - s**2)*z**2/2)*s  # the same on the scale on which it varies
    found = hx.compile(hx.E(body, z))(**numbers)
    assert found == pytest.approx(by_mpmath(wide, numbers, np.linspace(-8, 8, 33)/s), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("body", WIDE, ids=str)
@pytest.mark.parametrize("number", [0.5, 0.7, 40.0])
def test_one_that_does_not_exist_has_no_value(body, number):
    with pytest.raises(NotConverged):
        hx.compile(hx.E(body, z))(**{v.name: n for v, n in ((a, number), (b, 0.2)) if v in body.free_symbols})


def test_two_variables_share_an_exponent():
    """E exp(a z^2 + b z w) tanh(z)^2: over w first, exp(b^2 z^2/2)."""
    kernel = hx.compile(hx.E(exp(a*z**2 + b*z*w)*tanh(z)**2*(1 + tanh(w)**2)/(1 + tanh(w)**2), z, w))
    one = hx.compile(hx.E(exp(a*z**2)*tanh(z)**2, z))
    assert kernel(a=0.2, b=0.5) == pytest.approx(one(a=0.2 + 0.125), rel=1e-10)


@pytest.mark.parametrize("seed", range(16))
def test_an_integrable_pole_at_any_place(seed):
    """What falls as |z - c|^-p asks for panels down to 10^(-12/(1 - p)), and beside c there are no numbers so near."""
    draw = Random(seed)
    c, p = Rational(draw.randint(-9, 9), 5), Rational(*draw.choice([(1, 2), (2, 3), (3, 4), (4, 5), (9, 10), (19, 20)]))
    g = draw.choice([cos(2*z), tanh(z + 1), 1/(1 + z**2), 1/(1 + exp(-4*z))])
    node = hx.E(draw.choice([g*Abs(3*z - 3*c)**-p, Heaviside(z - c)*g*(z - c)**-p, (g*Abs(z - c)**-p + z**2)]), z)
    kernel = hx.compile(node)
    lost = abs(kernel()/float(node.evalf(15)) - 1)
    assert lost < 1e-12 and lost <= kernel.error + 1e-15, node


@pytest.mark.parametrize("p", [Rational(1, 3), Rational(2, 5)])
def test_a_pole_of_a_small_power(p):
    """|z|^-p with z of a power that leaves a factor beside the cosine."""
    node = hx.E(cos(z)*Abs(z)**-p, z)
    assert hx.compile(node)() == pytest.approx(float(node.evalf(15)), rel=1e-12)


def test_a_pole_moves_with_a_letter():
    kernel, node = hx.compile(hx.E(cos(z)*Abs(z - a)**Rational(-9, 10), z)), hx.E(cos(z)*Abs(z - a)**Rational(-9, 10), z)
    for at in (0, Rational(7, 10), -3):
        assert kernel(float(at)) == pytest.approx(float(node.subs(a, at).evalf(15)), rel=1e-12)


@pytest.mark.parametrize("body, known", [
    (Abs(sin(50*z)), 2/pi),
    (Max(0, cos(45*z) - Rational(13, 50)), (sqrt(1 - Rational(13, 50)**2) - acos(Rational(13, 50))*13/50)/pi),
    (Heaviside(z - 1)*sqrt(z - 1), None), (Heaviside(z - 1)*Heaviside(2 - z)*log((2 - z)*(z - 1)), None)])
def test_hundreds_of_kinks_and_roots_behind_switches(body, known):
    value = float(hx.E(body*cos(z), z).evalf(15)) if known is None else float(known)
    assert hx.compile(hx.E(body*cos(z) if known is None else body, z))() == pytest.approx(value, rel=2e-12)
