"""nu(y) = int phi(z) nu_2(y/f(z))/|f(z)| dz: thresholds of products of functions of one variable each.

The references are trapezoidal rules along the level curves and over the labels, in coordinates in which both integrands
are analytic and decay: f = -exp(-d) or exp(t) on each branch, d_1 = d p, p = 1/(1 + exp(-s)).
"""

import numpy as np
import pytest
from scipy.special import erfcinv

import hermitex as hx
from hermitex.exponents.channels import channel
from hermitex.exponents.laws.blocks import law_of, zeros_by_flips
from hermitex.exponents.laws.factored_labels import product_of_functions
from hermitex.exponents.laws.linearised import largest, second
from hermitex.exponents.thresholds import weak_recovery_several
from hermitex.symbols import z1, z2, z3


def phi(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def he(k, z):
    return (1.0, z, z * z - 1)[k]


def alpha(text):
    """alpha_c from the law of the product alone, and its error."""
    g = hx.parse(text)
    variables = sorted(g.free_symbols, key=str)
    place = {x: i for i, x in enumerate(variables)}
    law = product_of_functions(g, place, zeros_by_flips(g, variables, place))
    assert law is not None
    found = second(law)
    inverse, _ = largest(found.couplings, list(range(len(variables))))
    return 1 / inverse, found.error / inverse**2


def threshold_of(text):
    """alpha_c of three variables through the laws of blocks."""
    inverse, _ = largest(second(law_of(hx.parse(text), {z1: 0, z2: 1, z3: 2})).couplings, [0, 1, 2])
    return 1 / inverse


S = np.arange(-80, 80, 0.125)


def sums(m1, m2, d):
    """int m1(d1) m2(d - d1) dd1 over 0 < d1 < d, at each d."""
    p = 1 / (1 + np.exp(-S))
    q = 1 / (1 + np.exp(S))
    return np.array([np.sum(m1(x * p) * m2(x * q) * x * p * q) for x in d]) * 0.125


def of_bounded(inverse, slope, least=-34):
    """alpha_c of f(z1) f(z2), f odd, rising to 1: z(d) and dz/dd for d = -log f."""
    d = np.exp(np.arange(least, 4.2, 0.0625))

    def density(k):
        return lambda x: phi(inverse(x)) * he(k, inverse(x)) * slope(x)

    with np.errstate(all="ignore"):
        none, two, one = (np.nan_to_num(2 * sums(density(a), density(b), d)) for a, b in ((0, 0), (2, 0), (1, 1)))
    live = none > 1e-290
    weight = 2 * (d * 0.0625)[live] / none[live]
    assert abs(np.sum(2 * none * d) * 0.0625 - 1) < 1e-13
    return 1 / np.sum((two[live] ** 2 + one[live] ** 2) * weight)


@pytest.mark.parametrize("c", [1, 5])
def test_two_hyperbolic_tangents(c):
    """With c = 5 a hundredth of a percent of the labels is 1 in double precision."""
    reference = of_bounded(lambda d: -np.log(np.tanh(d / 2)) / (2 * c), lambda d: 1 / (2 * c * np.sinh(d)), -34 if c == 1 else -80)
    value, error = alpha(f"tanh({c}*z1)*tanh({c}*z2)")
    assert value == pytest.approx(reference, rel=1e-11)
    assert error < 1e-11


def test_two_error_functions_whose_labels_round_to_one():
    def inverse(d):
        return erfcinv(-np.expm1(-d))

    reference = of_bounded(inverse, lambda d: np.exp(-d + np.minimum(inverse(d) ** 2, 700)) * np.sqrt(np.pi) / 2)
    value, error = alpha("erf(z1)*erf(z2)")
    assert value == pytest.approx(reference, rel=1e-11)
    assert error < 1e-11


def rising(k):
    """z^2 - 1 = exp(t), z and its mirror image."""
    return lambda t: 2 * phi(z := np.sqrt(1 + np.exp(t))) * he(k, z) * np.exp(t) / (2 * z)


def inner(k):
    """z^2 - 1 = -exp(-d)."""
    return lambda d: 2 * phi(z := np.sqrt(-np.expm1(-d))) * he(k, z) * np.exp(-d) / (2 * z)


def test_a_factor_that_saturates_at_the_level_of_another():
    """tanh(z1) He2(z2): labels next to -1 and 1 crowd on one side of a density that is smooth there."""
    def tanh(k):
        return lambda d: phi(z := -np.log(np.tanh(d / 2)) / 2) * he(k, z) / (2 * np.sinh(d))

    def law(a, b, t):
        d, slope = np.logaddexp(0, S), 1 / (1 + np.exp(-S))
        one = np.array([np.sum(rising(b)(x + d) * tanh(a)(d) * slope) for x in t]) * 0.125
        return one + np.where(t < 0, sums(inner(b), tanh(a), np.abs(t)), 0.0)

    size = np.exp(np.arange(-40, 3.9, 0.04))
    found, mass = np.zeros((2, 2)), 0.0
    with np.errstate(all="ignore"):
        for t in (size, -size):
            none, two = law(0, 0, t), np.array([law(2, 0, t), law(0, 2, t)])
            live = none > 1e-290
            mass += 2 * np.sum(none * size) * 0.04
            found += 2 * ((two * size / none)[:, live] @ two[:, live].T) * 0.04
    assert mass == pytest.approx(1, abs=1e-11)
    value, error = alpha("tanh(z1)*(z2**2 - 1)")
    # G is diagonal: F(M) = E[G M G] acts on M_11, M_22 and M_12 alone, and E[G_11 G_22] is no more than the larger of the others.
    assert value == pytest.approx(1 / max(np.diag(found)), rel=1e-11)
    assert error < 1e-10


def test_two_hermite_polynomials():
    def positive(k, t):
        both = np.array([np.sum(rising(k)(x / 2 + S) * rising(0)(x / 2 - S)) for x in t]) * 0.125
        return both + np.where(t < 0, sums(inner(k), inner(0), np.abs(t)), 0.0)

    def negative(k, t):
        d, slope = np.logaddexp(0, S), 1 / (1 + np.exp(-S))
        return np.array([np.sum((rising(k)(x + d) * inner(0)(d) + rising(0)(x + d) * inner(k)(d)) * slope) for x in t]) * 0.125

    total, mass = 0.0, 0.0
    step = 0.04
    t, size = np.arange(-45, 9, step), np.exp(np.arange(-40, 3.9, step))
    with np.errstate(all="ignore"):
        for law, labels, weight in ((negative, t, step), (positive, size, size * step), (positive, -size, size * step)):
            none, two = law(0, labels), law(2, labels)
            live = none > 1e-290
            mass += np.sum(none * weight)
            total += np.sum((two**2 * weight)[live] / none[live])
    assert mass == pytest.approx(1, abs=1e-11)
    value, error = alpha("(z1**2 - 1)*(z2**2 - 1)")
    assert value == pytest.approx(1 / total, rel=1e-10)
    assert error < 1e-10


@pytest.mark.parametrize(("one", "two", "factor"), [
    ("relu(z1)*z2", "z1*z2", 2),                    # the label is silent half of the time
    ("z1**3*z2**3*z3**3", "z1*z2*z3", 1),
    ("-2*erf(z1)*z2", "erf(z2)*z1", 1),
    ("z1**2*exp(-z1**2)*z2**2", "z1*exp(-z1**2/2)*Abs(z2)*sign(z1)", 1),
    ("Max(-1, Min(1, z1))*z2", "Max(-2, Min(2, 2*z1))*z2", 1),
])
def test_products_that_tell_the_same(one, two, factor):
    left, error = alpha(one)
    right, _ = alpha(two)
    assert left == pytest.approx(factor * right, rel=2e-12)
    assert error < 1e-10


def test_a_quotient_tells_the_angle():
    """G = 2 u u^T - I given the direction +-u of (z1, z2), and G I G = I."""
    assert alpha("z2/z1")[0] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("text", "reference"), [
    ("(z1**2 - 1)*(z2**2 - 1)*(z3**2 - 1)", 2.7261020115517),
    ("z1*z2*z3", 2.56518040192292),
])
def test_three_factors_through_the_front_door(text, reference):
    g = hx.parse(text)
    found = weak_recovery_several(g, channel(), (z1, z2, z3), stages=[{"order": 2, "directions": np.eye(3, dtype=int).tolist()}])
    assert float(found.alpha_c) == pytest.approx(reference, rel=1e-12)
    assert found.error < 1e-10


def test_one_block_of_several_variables_among_the_factors():
    g, place = hx.parse("(z1**2 + z2**2)*z3"), {z1: 0, z2: 1, z3: 2}
    assert product_of_functions(g, place, (), law_of) is not None
    assert product_of_functions(g, place, ()) is None
    one, two = (threshold_of(t) for t in ("(z1**2 + z2**2)*z3", "sqrt(z1**2 + z2**2)*sqrt(Abs(z3))*sign(z3)"))
    assert one == pytest.approx(two, rel=1e-11)


def test_a_factor_with_two_saturation_levels_is_left_to_another_route():
    g = hx.parse("(2 + tanh(z1))*z2")
    assert product_of_functions(g, {z1: 0, z2: 1}, ()) is None
    assert product_of_functions(hx.parse("z1*z2 + z3"), {z1: 0, z2: 1, z3: 2}, ()) is None


@pytest.mark.parametrize("texts", [
    ("gelu({})", "gelu({})"), ("softplus({})", "tanh({})"), ("relu({})", "He2({})", "({} + 1)"), ("tanh(5*{})", "Abs({} - 1)"),
    ("{}*exp(-{}**2)", "Max(-1, Min(1, {}))"), ("exp({})", "1/(1 + {}**2)"), ("log(cosh({}))", "({} - sin({}))"),
])
def test_moments_of_the_labels_are_products(texts):
    """E[h(y) He_a(z)] = prod_i E[h(f_i(z)) He_a_i(z)] for h(y) = 1, y, |y|^(3/2) sign(y): every nu_a, not its mass alone."""
    names = ["z1", "z2", "z3"][:len(texts)]
    parts = [hx.parse(t.replace("{}", n)) for t, n in zip(texts, names, strict=True)]
    place = dict(zip([z1, z2, z3], range(len(texts)), strict=False))
    law = product_of_functions(hx.parse("*".join(f"({p})" for p in parts)), place, ())
    y, nu, w = law.points(23)
    t, v = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(-12, 12, 1201)
    nodes = (edges[:-1, None] + np.diff(edges)[:, None] * (t + 1) / 2).ravel()
    weights = (np.diff(edges)[:, None] * v / 2).ravel() * phi(nodes)
    for h in (lambda u: np.ones_like(u), lambda u: u, lambda u: np.sign(u) * np.abs(u) ** 1.5):
        alone = [[np.sum(h(hx.compile(p)(nodes)) * he(k, nodes) * weights) for k in range(3)] for p in parts]
        size = np.sum(np.abs(h(y)) * nu[0] * w)
        for n, a in enumerate(law.indices):
            at_zero = h(np.zeros(1))[0] * sum(m[n] for _, m in law.atoms)
            expected = np.prod([alone[i][a.count(i)] for i in range(len(parts))])
            assert np.sum(h(y) * nu[n] * w) + at_zero == pytest.approx(expected, abs=1e-10 * max(size, 1e-3))


@pytest.mark.slow
def test_labels_beyond_every_number_are_left_to_other_routes():
    g = "z1*z2*z3*z4 + sinh(z1*z2*z3*z4)"
    found, inner = hx.exponents(g).threshold, hx.exponents("z1*z2*z3*z4").threshold
    assert abs(found.alpha_c - inner.alpha_c) < found.stages[0]["error"]
