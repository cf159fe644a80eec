"""Homogeneous labels: of two variables by the orbits of a scaling, of three by evenly spread points."""

import numpy as np
import pytest

import hermitex as hx
from hermitex.exponents.channels import channel
from hermitex.exponents.laws import orbits
from hermitex.exponents.laws.blocks import law_of, zeros_by_flips
from hermitex.exponents.laws.linearised import largest, second
from hermitex.exponents.laws.orbits import homogeneous
from hermitex.exponents.laws.products import multiplied
from hermitex.exponents.laws.scaling import scaling
from hermitex.exponents.laws.table import tabulated
from hermitex.exponents.thresholds import weak_recovery_several
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.parsing import parse
from hermitex.symbols import normals


def law(text):
    g = parse(text)
    variables = list(normals(g))
    place = {x: i for i, x in enumerate(variables)}
    return homogeneous(g, place, zeros_by_flips(g, variables, place))


def alpha(text):
    found = second(law(text))
    return 1 / largest(found.couplings, list(range(len(normals(parse(text))))))[0]


# -- scalings ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [
    "z1*z2*z3 + z1**2", "z1**2*z2 + z2**2*z3 + z3**2*z1", "relu(z1*z2) + relu(z2*z3)", "Max(z1*z2, z2*z3, z1*z3)",
    "(z1**2 - z2**2)*z3**2 + z1*z2", "z1*z2*z3/(1 + z1**2)", "tanh(z1)*z2*z3 + z2**2", "sqrt(z1**2 + z2**2*z3**2)",
    "Piecewise((z1*z2, z3 > z1), (z2**2, True))", "sign(z1*z2)*(z1**2 + z3**2)", "sign(z1 - 1)*z2*z3"])
def test_a_scaling_multiplies_the_label(text):
    g = parse(text)
    variables = normals(g)
    a = scaling(g, variables)
    f = lambdify(variables, g, modules=["numpy", "scipy"])
    z = np.random.default_rng(5).normal(size=(len(variables), 40))
    assert np.all(a >= 0)
    assert np.allclose(f(*(1.7**a[:, None] * z)), 1.7 * f(*z), rtol=1e-9)


@pytest.mark.parametrize("text", ["tanh(z1*z2) + z2*z3", "z1*z2*z3 + z1**2 + z2**2 + z3**2 + z1", "exp(z1*z2) + z1*z3",
                                  "z1*z2 + 1"])
def test_what_has_no_scaling_says_so(text):
    assert scaling(parse(text), normals(parse(text))) is None


# -- exact relations ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "value"), [
    ("z1**2 + z2**2", 1.0),
    ("z1*z2", 0.593751098222),  # theory sheet: Bessel functions
    ("(z1**2 + z2**2)**2", 1.0),
    ("Max(abs(z1), abs(z2))", 1.0679875403752),
])
def test_known_thresholds(text, value):
    assert abs(alpha(text) / value - 1) < 2e-11


@pytest.mark.parametrize(("one", "two"), [
    ("z1*z2", "z1**2 - z2**2"),  # by a rotation
    ("z1**3 - 3*z1*z2**2", "z2**3 - 3*z2*z1**2"),
    ("z1**2*z2**2", "(z1**2 - z2**2)**2"),
    ("Abs(z1*z2)", "Abs(z1**2 - z2**2)"),
    ("Max(z1, 0)*z2", "Max(z1 + z2, 0)*(z1 - z2)"),
    ("z1**3*z2 - z1*z2**3", "z1**4 - 6*z1**2*z2**2 + z2**4"),  # a turn by pi/8
    ("(z1**4 + z2**4)*(z1**4 + (z1 + z2)**4)", "(z1**4 + z2**4)*(z1**4 + (z1 - z2)**4)"),  # of degree 8
])
def test_equal_thresholds(one, two):
    assert abs(alpha(one) / alpha(two) - 1) < 1e-11


def test_the_atom_of_a_label_that_is_silent_in_places():
    found = law("relu(z1*z2)")
    (label, nu), = found.atoms
    assert label == 0 and abs(nu[0] - 0.5) < 1e-12
    assert abs(nu[found.indices.index((0, 1))] + 1 / np.pi) < 1e-12  # E[z1 z2; z1 z2 < 0] = -E|z1| E|z2|/2


@pytest.mark.parametrize(("text", "value"), [
    pytest.param("z1**2*z2**2 + z2**2*z3**2 + z1**2*z3**2", 1.7795290596066, marks=pytest.mark.slow),
    pytest.param("z1**2 + z1*z2*z3", 0.67150179143, marks=pytest.mark.slow),
    pytest.param("relu(z1*z2) + relu(z2*z3)", 0.62362064900, marks=pytest.mark.slow),
])
def test_three_variables_to_five_digits(text, value):
    """The values are those of orbits in three variables, to twelve digits, of an earlier version."""
    found = hx.exponents(text, budget=120).threshold
    assert abs(float(found.alpha_c) - value) < min(1e-5*value, float(found.error) + 1e-11)


# -- errors are seen ---------------------------------------------------------------------------------------------------
def test_an_overlooked_nodal_line_shows_in_the_error(monkeypatch):
    text = "z1**2 - z2**2/3"
    good = alpha(text)
    monkeypatch.setattr(orbits, "curves", lambda h, names: [])
    found = law(text)
    wrong = 1 / largest(second(found).couplings, [0, 1])[0]
    assert abs(wrong - good) > 1e-9
    assert found.lost > 0.1 * abs(1 / wrong - 1 / good)
    assert law("z1**2 + 2*z2**2").lost < 1e-11  # which has none


def test_a_sign_beside_a_product_of_moduli():
    """y = s + w^2, w = z1 z2, s = +-1, both possible above 1: 1/alpha_c = E[E[z1^2 - 1|y]^2], nu_11 = (|w| K_1 - K_0)/pi."""
    from scipy.special import k0, k1

    x, weight = np.polynomial.legendre.leggauss(14)

    def nodes(end):
        edges = np.concatenate([[0.0], end * 2.0 ** np.arange(-90, 1)])
        half = np.diff(edges)[:, None] / 2
        return (edges[:-1, None] + half + half * x).ravel(), (half * weight).ravel()

    def of_square(q):
        w = np.sqrt(q)
        return np.array([k0(w), w * k1(w) - k0(w)]) / np.pi / w / 2

    q, dq = nodes(2.0)  # below 1 only s = -1
    low = of_square(q)
    above, d_above = nodes(4000.0)
    high = of_square(above) + of_square(above + 2)
    total = np.sum(low[1] ** 2 / low[0] * dq) + np.sum(high[1] ** 2 / high[0] * d_above)
    g = parse("sign(z1*z2*z3) + z1**2*z2**2")
    found = weak_recovery_several(g, channel(), normals(g), stages=[{"order": 2, "directions": [[1, 0, 0], [0, 1, 0]]}])
    assert abs(found.alpha_c * total - 1) < 1e-5 and found.error < 1e-4
    assert abs(found.alpha_c - 1 / total) < found.error


def test_orbits_that_run_off_beyond_every_number_are_no_law():
    """z1**2/z2 is not bounded on the sides; the weights of its nodes are none, and nothing is warned of."""
    g = parse("z1**2/z2")
    place = {x: i for i, x in enumerate(normals(g))}
    assert homogeneous(g, place, zeros_by_flips(g, list(place), place)) is None


# -- products of powers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["sign(z1*z2)*Abs(z1)*Abs(z2)**(1/5)", "z1**5*z2",
                                  "sign(z1)*Abs(z1)**(5/3)*Abs(z2)**(1/3)*sign(z2)"])
def test_powers_of_a_label_have_one_threshold(text):
    """By the orbits of the first; the others are monotone functions of it."""
    found = hx.exponents(text)
    assert abs(found.threshold.alpha_c / 0.489906370794217 - 1) < 1e-10


@pytest.mark.parametrize(("one", "two"), [("z1*Abs(z2)**(1/5)", "z1*Abs(z1)**4*Abs(z2)"), ("z1*sqrt(Abs(z2))", "z1**2*z2")])
def test_a_product_of_laws_resolves_its_steepest_factor(one, two):
    """By convolution and by orbits, up to a monotone function of the label and an exchange of names."""
    g = parse(one)
    first, second_block = g.as_ordered_factors()
    variables = normals(g)
    laws = [law_of(f, {next(iter(f.free_symbols)): variables.index(next(iter(f.free_symbols)))}) for f in (first, second_block)]
    found = second(multiplied(*(tabulated(v) for v in laws)))
    assert found.error < 1e-10
    assert abs(alpha(two) * largest(found.couplings, [0, 1])[0] - 1) < 1e-9
