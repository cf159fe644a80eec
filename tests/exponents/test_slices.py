"""nu(y) = int nu(du) sum_t nu(t)/|dF/dt|: labels without independent blocks, by their level sets slice by slice."""

import numpy as np
import pytest
from mpmath import mpf
from sympy import lambdify, symbols

from hermitex.exponents.channels import channel
from hermitex.exponents.laws.blocks import zeros_by_flips
from hermitex.exponents.laws.conditional import averaged_over
from hermitex.exponents.laws.density import array_function, normal
from hermitex.exponents.laws.inverse import solutions
from hermitex.exponents.laws.linearised import largest, second
from hermitex.exponents.laws.scanned import Scanned
from hermitex.exponents.laws.scattered import scattered
from hermitex.exponents.laws.sections import smooth_slope, switch_arguments
from hermitex.exponents.laws.slices import sliced
from hermitex.exponents.laws.two_quantities import two_quantities
from hermitex.exponents.thresholds import weak_recovery_several
from hermitex.symbolic.parsing import parse
from hermitex.symbols import normals, z1, z2

u, t, y = symbols("u t y", real=True)


def threshold(text, law="deterministic"):
    g = parse(text)
    variables = list(normals(g))
    return weak_recovery_several(g, channel(law), variables,
                                 stages=[{"order": 2, "directions": np.eye(len(variables), dtype=int).tolist()}])


def law_by_slices(text):
    g = parse(text)
    place = {z1: 0, z2: 1}
    return sliced(g, (z1, z2), (normal(0), normal(1)), zeros_by_flips(g, [z1, z2], place))


# -- level sets --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "count"), [
    ("u*t + u**4", 1), ("t**2 + u*t", 2), ("u*t**2 - u**3 + 1", 2), ("exp(u*t) + u**2", 1), ("t**4 + u*t**2 + 1", 4),
    ("u**2*Abs(t) + t**2", 4), ("u**2*exp(u) + u**2*tanh(t)", 1), ("u**2*(t**2 - 1) + t**2", 2), ("(u + t**3)*u", 1),
])
def test_solutions_have_their_label(text, count):
    form = parse(text, symbols={"u": u, "t": t})
    found = solutions(form, u, t, y)
    assert len(found) == count
    point = {u: 0.7, y: float(form.subs({u: 0.7, t: -1.3}))}
    values = [complex(s.t.subs(point).evalf()) for s in found if all(g.subs(point) > 0 for g in s.guards)]
    assert min(abs(v + 1.3) for v in values) < 1e-12
    assert all(abs(complex(form.subs({u: 0.7, t: v}).evalf()) - point[y]) < 1e-12 for v in values)


def test_what_is_not_inverted_says_so():
    assert solutions(u * t + t**5 + t**2, u, t, y) is None
    assert solutions(u + parse("sin(t)", symbols={"t": t}), u, t, y) is None  # infinitely many solutions


# -- exact relations ---------------------------------------------------------------------------------------------------
def test_the_slices_give_the_value_of_a_product():
    found = second(law_by_slices("z1*z2"))
    assert abs(1 / largest(found.couplings, [0, 1])[0] - 0.59375109822225719956) < 1e-12
    assert found.error < 1e-12


def test_slices_and_convolution_agree():
    a = second(law_by_slices("z1**2 + 2*z2**2"))
    assert abs(1 / largest(a.couplings, [0, 1])[0] / float(threshold("z1**2 + 2*z2**2").alpha_c) - 1) < 1e-10


def test_an_error_planted_in_the_slope_is_seen():
    law = law_by_slices("z1*z2 + z1**2")
    law.density.__self__.slope = lambda a, b: 1.01 * a
    assert second(law).error > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), [
    ("exp(z1*z2 + z1**4)", "z1*z2 + z1**4"), ("z2*z1 + z2**4", "z1**4 - z1*z2"),
])
def test_equal_level_sets(one, two):
    a, b = threshold(one), threshold(two)
    assert abs(a.alpha_c - b.alpha_c) < mpf(10) ** -11
    assert a.error < 1e-10


@pytest.mark.parametrize("text", ["u*t + t**2", "u**2*t**3 - 3*t + u", "Abs(t - u)*t"])
def test_a_scan_finds_what_formulas_find(text):
    form = parse(text, symbols={"u": u, "t": t})
    marks = [smooth_slope(form, t), *switch_arguments(form, t)]
    f = array_function(form, u, t)
    marks = [tuple(array_function(e, u, t) for e in (m, smooth_slope(m, t))) for m in marks]
    grids = np.linspace(-3, 3, 41) + 0.013, np.linspace(-6, 6, 90) + 0.017
    scanned = Scanned(f, marks[0][0], marks, grids)
    at, labels = np.random.default_rng(1).uniform(-2, 2, size=(2, 200))
    found = np.array(scanned.solutions(at, labels))
    assert np.nanmax(np.abs(f(at, found) - labels)) < 1e-12
    fine = np.linspace(-6, 6, 400_001)
    for k in range(0, 200, 10):
        values = f(at[k] + 0 * fine, fine) - labels[k]
        assert np.sum(values[1:] * values[:-1] < 0) == np.sum(np.isfinite(found[:, k])) == scanned.count(at, labels)[k]


def test_ends_of_pieces_that_no_slope_leads_to_are_scanned_for():
    """sign(t - u) has a zero and no slope: Newton's steps run off, without a warning."""
    def mark(u, t):
        return np.sign(t - u)

    grids = np.linspace(-3, 3, 41) + 0.013, np.linspace(-6, 6, 90) + 0.017
    flat = (mark, lambda u, t: np.zeros(np.broadcast_shapes(u.shape, t.shape)))
    scanned = Scanned(lambda u, t: np.abs(t - u), mark, [flat], grids)
    at = np.array([-1.0, 0.3, 2.0])
    below, above = scanned.solutions(at, np.full(3, 0.5))
    assert np.allclose([below, above], [at - 0.5, at + 0.5], atol=1e-9)


# -- third route -------------------------------------------------------------------------------------------------------
UNSEEN = ["z1*z2 + z1**4", "exp(z1*z2) + z1**2", "z1**2 + z2**2 + z1**2*z2**4", "(z1**2 - 1)*z2**2 + z1**2",
          "sqrt(1 + z1**2 + z1**2*z2**2)", "Abs(z1)*z2**2 + z1**4", "z1*z2*z3 + z1**2",
          "z1*z2 + z1**3*z2**3 + z2**4"]


@pytest.mark.slow
@pytest.mark.parametrize("text", UNSEEN)
def test_against_points(text):
    g, found = parse(text), threshold(text)
    names = list(normals(g))
    rough = scattered(g, (), None, names, zeros_by_flips(g, names, {x: i for i, x in enumerate(names)}))
    inverse = largest(rough.couplings, list(range(len(names))))[0]
    assert abs(1/float(found.alpha_c) - inverse) < len(names)*rough.error < 0.02*inverse
    assert found.error < (1e-9 if len(names) == 2 else 1e-8) * found.alpha_c  # in three variables the law of z2 z3 is tabulated


def test_densities_against_points_drawn_at_random():
    text = "z1*z2 + z1**4"
    law = law_by_slices(text)
    z = np.random.default_rng(5).normal(size=(2, 400_000))
    labels = lambdify((z1, z2), parse(text), "numpy")(*z)
    x, w = np.polynomial.legendre.leggauss(12)
    for a, b in ((-1.5, -0.5), (0.2, 0.7), (3.0, 6.0)):
        mass = law.density((a + b) / 2 + (b - a) / 2 * x) @ w * (b - a) / 2
        inside = (labels > a) & (labels < b)
        he = {(): inside, (0, 0): inside * (z[0] ** 2 - 1), (0, 1): inside * z[0] * z[1], (1, 1): inside * (z[1] ** 2 - 1)}
        assert all(abs(m - np.mean(he[i])) < 5 * np.std(he[i]) / 632 for m, i in zip(mass, law.indices, strict=True))


def test_two_quantities_are_found():
    g = parse("z1*z2*z3 + z1**2")
    found = [(str(a), str(b)) for a, b, _, _ in two_quantities(g, normals(g))]
    assert ("z1", "z2*z3") in found


# -- once one direction is known: g = F(u, w), w one quantity of the hidden variables -----------------------------------
def conditional(text, given):
    g = parse(text)
    variables = list(normals(g))
    known = [x for x in variables if x.name in given]
    return averaged_over(g, channel(), known, [x for x in variables if x not in known])


@pytest.mark.parametrize(("text", "part"), [
    ("relu(z1 + z2*z3)", "Max(z1, z2*z3)"),  # both show w = z2 z3 above a normal threshold
    ("z1**2 + tanh(z1)*z2*z3", "z2*z3 + z1"),  # injective in w
    pytest.param("Abs(z1)*(Abs(z2) + z2*z3) + relu(z1)", "z1 + Abs(z2) + z2*z3", marks=pytest.mark.slow),
])
def test_a_known_direction_beside_one_quantity(text, part):
    one, two = (conditional(t, ["z1"]) for t in (text, part))
    assert abs(one.alpha - two.alpha) < one.error + two.error + 1e-13 and one.error < 1e-10


@pytest.mark.slow
def test_a_product_that_shows_above_a_threshold():
    """E_u of int_(w > -u) nu_a nu_b/nu_0 dw + N_a N_b/N_0(w < -u), nu_0 = K_0/pi, nu_12 = w K_0/pi, nu_11 = (|w| K_1 - K_0)/pi."""
    from scipy.special import k0, k1, ndtr

    steps = np.concatenate([2.0 ** np.arange(-50, 1), np.arange(2.0, 61)])
    x, weight = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([-steps[::-1], [0.0], steps])
    half = np.diff(edges)[:, None] / 2
    w, dw = edges[:-1, None] + half + half * x, half * weight
    nu = np.stack([k0(np.abs(w)), np.abs(w) * k1(np.abs(w)) - k0(np.abs(w)), w * k0(np.abs(w))]) / np.pi
    seen = np.einsum("acn,bcn->ab", nu[1:] * dw * ndtr(w) / nu[0], nu[1:])
    series = np.linalg.solve(np.polynomial.legendre.legvander(x, 15), np.moveaxis(nu, 2, 0).reshape(16, -1))
    inside = np.polynomial.legendre.legval(x, np.polynomial.legendre.legint(series, lbnd=-1)).reshape(3, len(half), 16)
    before = np.cumsum((nu * dw).sum(axis=2), axis=1) - (nu * dw).sum(axis=2)
    below = before[:, :, None] + inside * half  # int_(-inf)^w nu_a
    weighted = dw * np.exp(-w**2 / 2) / np.sqrt(2 * np.pi)
    unseen = np.einsum("acn,bcn->ab", below[1:] * weighted / np.maximum(below[0], 1e-300), below[1:])
    (d, off), (_, o) = seen + unseen
    assert abs(float(conditional("relu(z1 + z2*z3)", ["z1"]).alpha) * (d + o + 2 * abs(off)) - 1) < 1e-10
