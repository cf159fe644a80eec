"""Level curves of a product of three rectified terms in the plane of given sum: masses, and moments by points."""

import numpy as np
import pytest
from sympy import log

from hermitex.exponents.laws.octant import Octant
from hermitex.symbols import z


@pytest.mark.parametrize("s", [0.3, 2.0, 6.0])
def test_products_of_rectified_terms_fill_the_octant(s):
    """sum log z_i on z_i > 0: all labels together have the density of s in the octant, made by convolutions."""
    g = Octant(log(z), z)
    _, p, q, v = g.at(s)
    (density,), (square,) = g.octant.pair(np.array([s]))
    assert np.sum(p * v) == pytest.approx(density, rel=1e-10)
    assert np.sum(q * v) == pytest.approx(square, rel=1e-10)


def test_a_product_of_rectified_terms_by_points():
    """relu(z1) relu(z2) relu(z3) given the sum: moments of the label, and of the label with sum z_i^2, on a grid of the octant."""
    g, s = Octant(log(z), z), 2.0
    y, p, q, v = g.at(s)
    x, w = np.polynomial.legendre.leggauss(120)
    z1 = s * (1 + x)[:, None] / 2
    z2 = (s - z1) * (1 + x) / 2
    z3 = s - z1 - z2
    weight = (s / 2 * w)[:, None] * ((s - z1) / 2 * w) * np.exp(-(z1**2 + z2**2 + z3**2) / 2) / (2 * np.pi) ** 1.5
    assert np.sum(p * v * np.exp(y)) == pytest.approx(np.sum(weight * z1 * z2 * z3), rel=1e-9)
    assert np.sum(q * v * np.exp(2 * y)) == pytest.approx(np.sum(weight * (z1 * z2 * z3) ** 2 * (z1**2 + z2**2 + z3**2)), rel=1e-9)
