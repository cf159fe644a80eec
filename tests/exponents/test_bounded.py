"""Moments of 1(y > c) box by box: the ranges beside values, the moments beside sums on a fine grid."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.special import ndtri
from sympy import Heaviside, Rational

import hermitex as hx
from hermitex import parse
from hermitex.errors import NoClosedForm
from hermitex.exponents.labels.bounded_moments import Bounded, enclose_average, thresholds
from hermitex.exponents.labels.box_ranges import BENT, Range, ranges
from hermitex.kernels.arrays import lambdify
from hermitex.symbols import normals, z1, z2

FORMS = ["z1*z2 - z2**3", "1/z1 + z2", "tan(z1) + cot(z2)", "exp(z1*z2) - exp(-z1)", "floor(z1*z2)/z2**2",
         "frac(3*z1) + ceiling(z2)",
         "sin(5*z1)*cos(z2/z1)", "sqrt(Abs(z1)) - log(Abs(z2))", "Max(z1, z2**2, 1)*Min(z1, 0)", "erf(z1)*tanh(3*z2)*erfc(z2)",
         "Piecewise((z1, z1**2 + z2 > 1), (z2, (z1 > 0) & (z2 < 0)), (atan(z1), True))", "sinh(z1)/cosh(z2)*sign(z1 - z2)",
         "Heaviside(z1*z2)*Abs(z1)**(1/3)", "1/(1 + z1**2)**(3/2) + asinh(z1*z2)", "sech(z1) + coth(z2) + csch(z1)"]


@pytest.mark.parametrize("text", FORMS)
def test_a_range_holds_every_value(text):
    u = parse(text)
    rng = np.random.default_rng(3)
    corner, size = rng.normal(size=(2, 300)), rng.exponential(size=(2, 300))*10.0**rng.integers(-3, 1, 300)
    box = {v: Range(corner[i], corner[i] + size[i]) for i, v in enumerate((z1, z2))}
    found = ranges(u, box)
    f = lambdify((z1, z2), u, ["scipy", "numpy"])
    for _ in range(40):
        with np.errstate(all="ignore"):
            value = f(*(corner + size*rng.uniform(size=(2, 300))))
        inside = (found.low <= value) & (value <= found.high)
        assert (inside | np.isnan(value)).all()
    # Small boxes off the jumps have small ranges: the ends are not simply far apart.
    tight = {v: Range(corner[i], corner[i] + 1e-9) for i, v in enumerate((z1, z2))}
    near = ranges(u, tight)
    assert np.median(near.high - near.low) < 1e-6


@pytest.mark.parametrize("q", [Rational(1, 10), Rational(1, 2), Rational(8, 9)])
def test_the_range_of_a_bent_power_holds_every_value(q):
    rng = np.random.default_rng(7)
    ends = np.sort(rng.normal(size=(2, 2000))*10.0**rng.uniform(-6, 6, 2000), axis=0)
    found = ranges(BENT(z1, q), {z1: Range(*ends)})
    for t in np.linspace(0, 1, 21):
        x = np.abs(ends[0] + t*np.diff(ends, axis=0)[0])
        value = x**float(q)/(1 + x)
        assert ((found.low <= value) & (value <= found.high)).all()


def test_a_range_that_is_not_known_is_refused():
    with pytest.raises(NoClosedForm):
        ranges(parse("gamma(z1**2 + 1)"), {z1: Range(np.zeros(1), np.ones(1))})


def on_a_grid(u, c, a, n):
    q = ndtri((np.arange(n) + 0.5)/n)
    z = np.meshgrid(*[q]*len(a), indexing="ij")
    with np.errstate(all="ignore"):
        above = lambdify(normals(u), u, ["scipy", "numpy"])(*z) > c
    return (above*np.prod([hermeval(x, [0]*k + [1]) for x, k in zip(z, a, strict=True)], axis=0)).mean()


@pytest.mark.parametrize(("text", "a"), [
    ("1/z1 + z2", (1, 0)), ("1/z1 + z2", (3, 2)), ("tan(z1) + z2", (1, 0)), ("floor(z1*z2) + z1**2", (1, 1)),
    ("Max(z1, z2)*exp(z1 - z2)", (2, 1)), ("Piecewise((z1**2, z1*z2 > 0), (z2, True))", (0, 2)),
])
def test_a_moment_beside_a_grid(text, a):
    u = parse(text)
    for c in thresholds(u, (z1, z2))[:3]:
        found = Bounded(Heaviside(u - c), (z1, z2)).moment({a: Rational(1)})
        value = on_a_grid(u, float(c), a, 700)
        assert float(found.low) - 5e-3 < value < float(found.high) + 5e-3
        assert float(found.high - found.low) < 0.02
        assert abs(on_a_grid(u, float(c) + 0.7, a, 700) - value) > 1e-2  # a planted error would be seen


def test_a_moment_is_linear_and_sees_what_is_silent():
    step = Bounded(Heaviside(parse("z1 - 1/z1")), (z1, z2))
    one, two = step.moment({(1, 0): Rational(1)}), step.moment({(1, 0): Rational(-2), (0, 1): Rational(5)})
    assert two.low == -2*one.high and two.high == -2*one.low
    # 1(z - 1/z > 0) = 1(z > 1) + 1(-1 < z < 0): E[. z] = 2 phi(1) - phi(0)
    phi = [np.exp(-x*x/2)/np.sqrt(2*np.pi) for x in (0, 1)]
    assert one.low < 2*phi[1] - phi[0] < one.high


@pytest.mark.parametrize("text", ["floor(z1*z2)*z1*tanh(z2)", "Abs(z1 + z2**2)*(z2**2 - 1)", "Max(z1*z2, z1)*z1",
                                  "ceiling(z1)*Min(z2, 1)*z2", "Piecewise((z1**2, z1*z2 > 0), (z2**3, True))*z1*z2",
                                  "sqrt(1 + z1**2*z2**2)*(z1**2 - 1)", "Abs(z1 - z2)**Rational(4, 3)*z1*z2"])
def test_polynomials_times_bounded_functions_beside_a_grid(text):
    f = parse(text)
    found = enclose_average(f, (z1, z2))
    x, w = np.polynomial.legendre.leggauss(7)
    edges = np.linspace(-8, 8, 161)
    x, w = (np.diff(edges)[:, None]/2*x + (edges[1:] + edges[:-1])[:, None]/2).ravel(), (np.diff(edges)[:, None]/2*w).ravel()
    w = w*np.exp(-x*x/2)/np.sqrt(2*np.pi)
    value = w @ lambdify((z1, z2), f, ["scipy", "numpy"])(x[:, None], x[None, :]) @ w
    assert float(found.low) - 1e-2 < value < float(found.high) + 1e-2 and float(found.high - found.low) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("text", "c", "of"), [("z1*z2 + sqrt(1 + z1**2*z2**2)", 0.449879, (2, 0)),
                                               ("log(1 + exp(z1*z2*z3))", 0.1449, (2, 0, 0)),
                                               ("Abs(z1*z2 + z3)**Rational(3, 2)", 0.9601, (2, 0, 0))])
def test_roots_and_softplus_of_products_are_decided(text, c, of):
    """Even in pairs of variables: C_1 = 0; E[g (z1^2 - 1)] by Gauss-Hermite rules, and all of order two by symmetry."""
    found = hx.exponents(text, budget=120)
    assert found.square_integrable and found.information_exponent == found.leap_exponent == found.generative_exponent == 2
    proofs = [p.enclosure for p in found.certificates if p.enclosure is not None and p.order == of]
    assert float(proofs[0][0]) < c < float(proofs[0][1])  # of the first, which is C_2


def test_what_is_not_bounded_is_left_alone():
    assert enclose_average(parse("exp(z1*z2)"), (z1, z2)) is None and enclose_average(parse("z1**2*z2**2"), (z1, z2)) == (1, 1)
