"""f1(z1) + f2(z2) + f3(z3) given one direction: masses, quadrature on the plane, exact cases, equal targets."""

import numpy as np
import pytest
from scipy.optimize import brentq

from hermitex.exponents.laws import level_arcs, level_curves
from hermitex.exponents.laws.linearised import largest
from hermitex.exponents.laws.smooth_terms import ThreeTerms, straightened, summands, three_smooth
from hermitex.symbolic.parsing import parse
from hermitex.symbolic.subspaces import matrix
from hermitex.symbols import normals, z

EQUAL = [3**-0.5] * 3


def threshold(text, row=(1, 1, 1)):
    g = parse(text)
    found = three_smooth(g, list(normals(g)), matrix([list(row)], 3))
    inverse = largest(found[0], [0, 1])[0]
    return 1 / inverse, 2 * found[1] / inverse


def terms(*texts, c=EQUAL):
    return ThreeTerms([parse(t) for t in texts], z, c)


def density(u):
    return np.exp(-u * u / 2) / np.sqrt(2 * np.pi)


# -- identities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "u"), [("tanh(z)", 0.3), ("tanh(z)", 2.8), ("z**3", 1.2), ("exp(z)", -0.4), ("sin(z)", 0.9),
                                         ("z*erf(z/sqrt(2))/2", 1.9), ("z*erf(z/sqrt(2))/2", 2.3)])
def test_masses(text, u):
    """All labels together: the density of u, and E[|x|^2 - 2|u] = 0 on the plane."""
    three = terms(text, text, text)
    nu, v = three.curves.many(np.array([u]), three._weights)[0]
    assert nu[0] @ v == pytest.approx(density(u), rel=5e-10)
    assert abs(nu[1] @ v) < 5e-10


@pytest.mark.parametrize(("fs", "c"), [(("tanh(z)", "tanh(z)", "tanh(z)"), EQUAL),
                                       (("tanh(z)", "z**3/6", "exp(z/2)"), [0.48, 0.6, 0.64])])
def test_moments_of_the_label_on_a_grid_of_the_plane(fs, c):
    """E[h exp(-y^2/8) | u] by the trapezoid rule on the plane, which is exact for smooth integrands."""
    three, u = terms(*fs, c=c), 0.8
    x = np.arange(-8.6, 8.6, 0.05)
    plane = np.meshgrid(x, x)
    points = np.array([u * v for v in c])[:, None, None] + np.tensordot(three.plane.T, plane, axes=(1, 0))
    weight = np.exp(-(points**2).sum(axis=0) / 2) / (2 * np.pi) ** 1.5 * 0.05**2
    label = sum(t.f(p) for t, p in zip(three.terms, points, strict=True))
    expected = (three._weights(points, np.array(u)) * weight * np.exp(-(label**2) / 8)).sum(axis=(1, 2))
    with np.errstate(all="ignore"):
        pieces, critical = three.curves.pieces(u)
        y, _ = three.curves.labels(u, pieces, critical, 0)
    nu, v = three.curves.many(np.array([u]), three._weights)[0]
    assert nu @ (v * np.exp(-y * y / 8)) == pytest.approx(expected, abs=2e-10 if three.alike else 2e-7)


def test_squares_are_radial():
    """Given the mean, z1^2 + z2^2 + z3^2 tells the radius in a plane: alpha_c = 2/2."""
    alpha, error = threshold("z1**2 + z2**2 + z3**2")
    assert alpha == pytest.approx(1, abs=1e-10) and error < 1e-9


def test_densities_in_polar_coordinates():
    """For convex f the label rises along rays of the plane: p(y|u) = int r phi_3(r, u)/|dy/dr| d theta."""
    three, u = terms("exp(z)", "exp(z)", "exp(z)"), 0.4
    with np.errstate(all="ignore"):
        pieces, critical = three.curves.pieces(u)
        labels, _ = three.curves.labels(u, pieces, critical, 0)
    nu, _ = three.curves.many(np.array([u]), three._weights)[0]
    angles = np.linspace(0, 2 * np.pi, 241)[:-1]
    for n in (int(np.argmin(np.abs(labels - y))) for y in (3.9, 5.0, 8.0)):
        p = 0.0
        for a in angles:
            line = three.plane.T @ [np.cos(a), np.sin(a)]
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
    for text, row in (("tanh(z1) + tanh(z2) + abs(z3)", [1, 1, 1]), ("tanh(z1) + tanh(z2) + tanh(z3)", [1, 1, 0]),
                      ("z1*z2 + z3", [1, 1, 1]), ("tanh(z1) + tanh(z2) + z3", [1, 1, 1])):
        g = parse(text)
        assert three_smooth(g, list(normals(g)), matrix([row], 3)) is None


# -- reference values and equal targets --------------------------------------------------------------------------------
@pytest.mark.slow
def test_convex_terms_are_equal_under_lines_and_scales():
    one = threshold("softplus(z1) + softplus(z2) + softplus(z3)")
    two = threshold("-3*softplus(-z1) - 3*softplus(-z2) - 3*softplus(-z3)")
    assert one[0] == pytest.approx(two[0], rel=1e-12) and max(one[1], two[1]) < 1e-10


@pytest.mark.slow
def test_known_thresholds():
    """Values found before by following level curves between the slopes of odd terms."""
    for text, value, within in (("tanh(z1) + tanh(z2) + tanh(z3)", 1.42926301628, 1e-11),
                                ("z1**3 + z2**3 + z3**3", 1.262561341, 1e-9)):
        alpha, error = threshold(text)
        assert alpha == pytest.approx(value, rel=within) and error < 1e-10


# -- errors that must be seen ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("module", "name", "value"), [(level_arcs, "_BEYOND", 0.3), (level_curves, "_ORDER", 5)])
def test_a_lost_arc_or_few_labels_show_in_the_error(monkeypatch, module, name, value):
    monkeypatch.setattr(module, name, value)
    three = terms("exp(z)", "exp(z)", "exp(z)")
    _, missed = three._given(np.array([0.4]), np.array([1.0]))
    assert missed[0] > 1e-6
