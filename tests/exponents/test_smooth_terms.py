"""f(z1) + f(z2) + f(z3) given the sum: masses, quadrature on the plane, exact cases, equal targets."""

import numpy as np
import pytest
from scipy.optimize import brentq

from hermitex.exponents.laws import label_panels, level_arcs
from hermitex.exponents.laws.smooth_terms import ThreeTerms, scalar, straightened, summands, three_smooth
from hermitex.symbolic.parsing import parse
from hermitex.symbols import normals, z

PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])


def threshold(text):
    inverse, error = three_smooth(parse(text), z)
    return 1 / inverse, error / inverse


def density(u):
    return np.exp(-u * u / 2) / np.sqrt(2 * np.pi)


# -- identities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "u"), [("tanh(z)", 0.3), ("tanh(z)", 2.8), ("z**3", 1.2), ("exp(z)", -0.4), ("sin(z)", 0.9),
                                         ("z*erf(z/sqrt(2))/2", 1.9), ("z*erf(z/sqrt(2))/2", 2.3)])
def test_masses(text, u):
    """All labels together: the density of u, and E[|x|^2 - 2|u] = 0 on the plane."""
    three = ThreeTerms(parse(text), z)
    nu, v = three.curves.many(np.array([u]), scalar)[0]
    assert nu[0] @ v == pytest.approx(density(u), rel=5e-10)
    assert abs(nu[1] @ v) < 5e-10


@pytest.mark.parametrize("text", ["tanh(z)", "z**2*exp(z/4)/4"])
def test_moments_of_the_label_on_a_grid_of_the_plane(text):
    """E[h exp(-y^2/8) | u] by the trapezoid rule on the plane, which is exact for smooth integrands."""
    three, u = ThreeTerms(parse(text), z), 0.8
    x = np.arange(-8.6, 8.6, 0.05)
    points = u * 3**-0.5 + np.tensordot(PLANE.T, np.meshgrid(x, x), axes=(1, 0))
    weight = np.exp(-(points**2).sum(axis=0) / 2) / (2 * np.pi) ** 1.5 * 0.05**2
    label = three.term.f(points).sum(axis=0)
    expected = (scalar(points, np.array(u)) * weight * np.exp(-(label**2) / 8)).sum(axis=(1, 2))
    with np.errstate(all="ignore"):
        pieces, critical = three.curves.pieces(u)
        y, _ = three.curves.labels(u, pieces, critical, 0)
    nu, v = three.curves.many(np.array([u]), scalar)[0]
    assert nu @ (v * np.exp(-y * y / 8)) == pytest.approx(expected, abs=2e-10)


def test_squares_are_radial():
    """Given the mean, z1^2 + z2^2 + z3^2 tells the radius in a plane: alpha_c = 2/2."""
    alpha, error = threshold("z**2")
    assert alpha == pytest.approx(1, abs=1e-10) and error < 1e-9


def test_densities_in_polar_coordinates():
    """For convex f the label rises along rays of the plane: p(y|u) = int r phi_3(r, u)/|dy/dr| d theta."""
    three, u = ThreeTerms(parse("exp(z)"), z), 0.4
    with np.errstate(all="ignore"):
        pieces, critical = three.curves.pieces(u)
        labels, _ = three.curves.labels(u, pieces, critical, 0)
    nu, _ = three.curves.many(np.array([u]), scalar)[0]
    angles = np.linspace(0, 2 * np.pi, 241)[:-1]
    for n in (int(np.argmin(np.abs(labels - y))) for y in (3.9, 5.0, 8.0)):
        p = 0.0
        for a in angles:
            line = PLANE.T @ [np.cos(a), np.sin(a)]
            r = brentq(lambda r, line=line, n=n: np.exp(u * 3**-0.5 + r * line).sum() - labels[n], 0, 15, xtol=1e-14)
            p += r * np.exp(-(r * r + u * u) / 2) / abs(line @ np.exp(u * 3**-0.5 + r * line))
        assert nu[0, n] == pytest.approx(p * 2 * np.pi / len(angles) / (2 * np.pi) ** 1.5, rel=1e-9)


def test_summands_and_lines():
    g = parse("exp(tanh(z1) + z2**2 + 3*z2 - exp(z3))")
    assert summands(g, list(normals(g))) == [parse("tanh(z1)"), parse("z2**2 + 3*z2"), parse("-exp(z3)")]
    assert summands(parse("z1*z2 + z3"), list(normals(parse("z1*z2 + z3")))) is None
    assert straightened(parse("z**2 + 3*z"), z) == (parse("z**2"), True)
    assert straightened(parse("z**3 + 3*z"), z) == (parse("z**3 + 3*z"), True)
    assert not straightened(parse("exp(z)"), z)[1]


def test_what_is_left_to_others():
    assert all(three_smooth(parse(text), z) is None for text in ("abs(z)", "z", "1/z", "floor(z)", "sin(9*z)"))


# -- reference values and equal targets --------------------------------------------------------------------------------
@pytest.mark.slow
def test_convex_terms_are_equal_under_lines_and_scales():
    one = threshold("softplus(z)")
    two = threshold("3*softplus(z) - 2*z")
    assert one[0] == pytest.approx(two[0], rel=1e-12) and max(one[1], two[1]) < 1e-10


@pytest.mark.slow
def test_known_thresholds():
    """Values found before by following level curves between the slopes of odd terms."""
    for text, value, within in (("tanh(z)", 1.42926301628, 1e-11), ("z**3", 1.262561341, 1e-9), ("erf(z)", 1.436169324, 1e-9)):
        alpha, error = threshold(text)
        assert alpha == pytest.approx(value, rel=within) and error < 1e-10


# -- errors that must be seen ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("module", "name", "value"), [(level_arcs, "_BEYOND", 0.3), (label_panels, "ORDER", 5)])
def test_a_lost_arc_or_few_labels_show_in_the_error(monkeypatch, module, name, value):
    monkeypatch.setattr(module, name, value)
    three = ThreeTerms(parse("exp(z)"), z)
    _, missed = three._given(np.array([0.4]), np.array([1.0]))
    assert missed[0] > 1e-6
