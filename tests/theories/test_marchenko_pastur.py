"""m(z) = int dmu(s)/(s + z) = 2/(b + D) and its moments, against quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad

import hermitex as hx
from hermitex.errors import BadInput

Law = hx.theories.MarchenkoPastur


def average(law, f):
    """int f dmu by the angle of a cosine, the atom at zero included."""
    low, high = law.edges
    middle, half = (low + high)/2, (high - low)/2

    def integrand(t):
        s = middle + half*np.cos(t)
        return float(law.density(s))*f(s)*half*np.sin(t)

    body = quad(integrand, 0, np.pi, epsabs=1e-13)[0]
    return body + (law.mass_at_zero*f(0.0) if law.mass_at_zero else 0)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("z", [0.1, 3.0, 1e4])
def test_transforms_against_quadrature(gamma, z):
    law = Law(gamma)
    assert law.m(z) == pytest.approx(average(law, lambda s: 1/(s + z)), rel=1e-9)
    assert law.derivative(z) == pytest.approx(average(law, lambda s: 1/(s + z)**2), rel=1e-9)
    for found, f in zip(law.moments(z), (lambda s: s/(s + z), lambda s: s/(s + z)**2, lambda s: s**2/(s + z)**2), strict=True):
        assert found == pytest.approx(average(law, f), rel=1e-9)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.5])
def test_law_of_mean_one(gamma):
    law = Law(gamma)
    assert average(law, lambda s: 1.0) == pytest.approx(1, rel=1e-9) and average(law, lambda s: s) == pytest.approx(1, rel=1e-9)


def test_stable_where_terms_cancel():
    law = Law(2.5)
    z = 1e-13  # m = (1 - 1/gamma)/z + O(1)
    assert law.m(z)*z == pytest.approx(law.mass_at_zero, rel=1e-11)
    A, B, _ = Law(0.5).moments(1e12)
    assert float(A)*1e12 == pytest.approx(1, rel=1e-11)
    assert float(B)*1e24 == pytest.approx(1, rel=1e-11)


def test_density_is_the_imaginary_part():
    law, s = Law(0.4), np.array([0.2, 1.0, 2.0])
    np.testing.assert_allclose(np.imag(law.m(-s - 1e-12j))/np.pi, law.density(s), rtol=1e-9)


def test_a_wrong_ratio_is_refused():
    for gamma in (0, -1, float("nan"), float("inf")):
        with pytest.raises(BadInput):
            Law(gamma)
