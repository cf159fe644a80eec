"""Closed forms of alpha_c: quadratic forms of two eigenvalues, arcs of the circle, ratios; each beside another route."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta
from sympy import Matrix, S

import hermitex as hx
from hermitex.exponents.laws.arcs import arcs
from hermitex.exponents.laws.discrete import exact_atoms
from hermitex.exponents.laws.quadratic import atoms_of_form, couplings_of_form, ratio_exceeds, two_eigenvalues
from hermitex.exponents.laws.separate import without_silent_sign
from hermitex.symbolic.parsing import parse
from hermitex.symbols import normals, z1, z2, z3

EXACT = [
    ("sign(z1*z2 + z3*z4)", "4"), ("z1*z2 + z3*z4", "4/3"), ("(z1*z2 + z3*z4)**3", "4/3"), ("sign(Abs(z1) - Abs(z2))", "pi**2/4"),
    ("z1/z2", "1"), ("(z1 + 2*z2)/(z1 - z2)", "1"), ("z1*z2/(z1**2 + z2**2)", "2"), ("z1**2/(z2**2 + z3**2)", "5/4"),
    ("z1**2 + z2**2 - 2*z3**2 - 2*z4**2", "9/8"), ("sign(z1**2 + z2**2 - z3**2)", "4/(1 + sqrt(2))"),
    ("sign(z1**2 + z2**2 - 2*z3**2 - 2*z4**2)", "9/2"), ("sign(Abs(z1) - 2*Abs(z2))", "25*(pi - 2*atan(1/2))*atan(1/2)/8"),
    ("sign(z1*z2 + z3*z4 - 1)", "4*(2*exp(1) - 1)/9"), ("sign(z1*z3 - z2*z4)", "4"),
]


QUICK = ("z1*z2 + z3*z4", "z1/z2", "sign(Abs(z1) - Abs(z2))", "z1**2 + z2**2 - 2*z3**2 - 2*z4**2")


@pytest.mark.parametrize(("text", "exact"), [
    pytest.param(*row, marks=() if row[0] in QUICK else pytest.mark.slow) for row in EXACT])
def test_the_closed_form_is_printed(text, exact):
    found = hx.exponents(text).to_dict()["weak_recovery"]
    assert found["class"] == "easy" and hx.parse(found["alpha_c_exact"]).equals(hx.parse(exact))
    assert abs(found["alpha_c"] - float(hx.parse(exact))) < 1e-14*found["alpha_c"]


@pytest.mark.slow
def test_three_products():
    assert hx.exponents("sign(z1*z2 + z3*z4 + z5*z6)").to_dict()["weak_recovery"]["alpha_c_exact"] == "9*pi**2/16"


def test_a_sign_that_tells_nothing_of_second_order_is_dropped():
    stages = hx.exponents("sign(z1)*sign(z2)*z3").threshold.stages
    assert [s["exact"] for s in stages] == [S.Half, hx.parse("pi**2/4")]
    assert without_silent_sign(parse("sign(z1)*z2"), (z1, z2)) == parse("sign(z1)*z2")  # two odd variables: E[z1 z2 | y] != 0
    assert without_silent_sign(parse("sign(z1*z2 + 1)*z3*sign(z1)"), (z1, z2, z3)).has(z1)


# -- third route: moments of the labels by sums on a grid --------------------------------------------------------------
@pytest.mark.parametrize("text", ["sign(Abs(z1) - 2*Abs(z2))", "sign(z1) + sign(z1 + 3*z2)", "sign(z1**2 - 3*z1*z2 + z2**2)",
                                  "Heaviside(2*z1 - Abs(z2)) + 3*sign(z1*z2)", "sign(z1 - 2*z2)*sign(Abs(z2) - z1)"])
def test_arcs_beside_the_angle(text):
    g = parse(text)
    found = dict(arcs(g, (z1, z2)))
    angle = (np.arange(400_000) + 0.5)*2*np.pi/400_000
    c, s = np.cos(angle), np.sin(angle)
    label = hx.compile(g)(z1=c, z2=s)
    r = np.sqrt(np.pi/2)
    sums = {(): 1 + 0*c, (0,): r*c, (1,): r*s, (0, 0): 2*c*c - 1, (0, 1): 2*s*c, (1, 1): 2*s*s - 1}
    assert len(found) == len(np.unique(label))
    for y, nu in found.items():
        for a, f in sums.items():
            assert abs(float(nu.get(a, 0)) - (f*(label == float(y))).mean()) < 3e-5


@pytest.mark.parametrize(("p", "q", "t"), [(1, 1, 3), (1, 2, 2), (2, 1, 2), (3, 1, 2), (1, 4, 3), (3, 3, 1), (4, 2, 5), (5, 3, 2)])
def test_the_ratio_of_chi_squares(p, q, t):
    assert abs(float(ratio_exceeds(p, q, S(t))) - beta.sf(t/(1 + t), p/2, q/2)) < 1e-14
    assert abs(float(ratio_exceeds(p, q, S(t))) - beta.sf(t/(2 + t), p/2, q/2)) > 1e-3  # a planted error would be seen


@pytest.mark.parametrize(("text", "cut"), [
    ("sign(z1*z2 + z3*z4 + {})", -1), ("sign(z1*z2 + z3*z4 + {})", 2), ("sign(2*z1**2 + 2*z2**2 - 3*z3**2 - 3*z4**2 + {})", -1),
    ("sign(2*z1**2 + 2*z2**2 - 3*z3**2 - 3*z4**2 + {})", 2)])
def test_quadratic_forms_beside_integrals(text, cut):
    g = parse(text.format(cut))
    names = normals(g)
    first = "z1*z2" in text
    a, b = (1.0, 1.0) if first else (4.0, 6.0)  # Q = a E1 - b E2
    nu = dict(atoms_of_form(g, names))[S.One]

    def above(e1):  # P(E2 < (a e1 + cut)/b)
        return 1 - np.exp(-max((a*e1 + cut)/b, 0))

    kink = max(-cut/a, 0)

    def mean(f):
        return sum(quad(lambda x: f(x)*above(x)*np.exp(-x), *ends, epsabs=1e-13)[0] for ends in ((0, kink), (kink, 60)))

    mass, tilt = mean(lambda x: 1), mean(lambda x: x - 1)
    entry = 2*float(nu[0, 0]) if not first else float(nu[0, 1]) + float(nu[0, 0])  # along an axis of A
    entry = entry if first else entry/2
    assert abs(float(nu[()]) - mass) < 1e-11 and abs(entry - tilt) < 1e-11


@pytest.mark.parametrize(("text", "p", "q"), [("z1**2/(z2**2 + z3**2)", 1, 2), ("(z1**2 + z2**2)/(z1**2 + z2**2 + z3**2)", 2, 1)])
def test_the_ratio_of_two_forms_beside_its_beta_law(text, p, q):
    found = couplings_of_form(parse(text), (z1, z2, z3))
    law = beta(p/2, q/2)
    mean = law.expect(lambda x: ((p + q)*x/p - 1)**2)
    assert len(found.rows) == p + q and abs(float(found.couplings[(0, 0), (0, 0)]) - mean) < 1e-6


def test_what_is_not_of_that_kind_is_left_to_others():
    assert two_eigenvalues(Matrix([[1, 0, 0], [0, 2, 0], [0, 0, 3]])) is None and two_eigenvalues(Matrix([[2, 0], [0, 2]])) is None
    for text in ("z1*z2 + z3**2", "z1*z2 + z3", "2*z1*z2 + z3*z4", "z1**2/(z2**2 + 2*z3**2)", "z1*z2"):
        g = parse(text)
        assert couplings_of_form(g, normals(g)) is None
    for text in ("sign(z1**2 - z2**2 - 1)", "sign(z1*z2 + z3)"):
        g = parse(text)
        assert atoms_of_form(g, normals(g)) is None and arcs(g, normals(g)) is None
    assert exact_atoms(parse("z1*z2"), (z1, z2)) is None


def test_a_threshold_of_bins_agrees():
    """z1*z2 + z3*z4 through 2000 bins of samples: 1/alpha_c = E[G^2] over the four axes."""
    z = np.random.default_rng(2).standard_normal((4, 2_000_000))
    order = np.argsort(z[0]*z[1] + z[2]*z[3])
    w = ((z[0] + z[1])**2/2 - 1)[order].reshape(2000, -1).mean(axis=1)
    assert abs((w**2).mean() - 0.75) < 8e-3 and abs((w**2).mean() - 0.6) > 0.1


@pytest.mark.parametrize("text", ["(1 + z1**2)/(1 + z2**2)", "(z1**2 + z2**2)/(1 + z3**2)", "(z1**2 - z2**2)/(1 + z1**2 + z2**2)",
                                  "Piecewise((z2**2, z1 > 0), (z3**2, True))"])
def test_a_constant_or_a_condition_beside_the_forms_is_none_of_them(text):
    g = parse(text)
    assert couplings_of_form(g, normals(g)) is None and atoms_of_form(g, normals(g)) is None


@pytest.mark.slow
def test_a_balanced_sign_beside_a_symmetric_size_comes_later():
    found = hx.exponents("sign(Abs(z1) - Abs(z2))*z3")
    assert [s["order"] for s in found.generative_staircase] == [2, 2] and found.generative_staircase[0]["directions"] == [[0, 0, 1]]
    assert [s["exact"] for s in found.threshold.stages] == [S.Half, hx.parse("pi**2/4")]
