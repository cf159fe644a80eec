"""By parts only where the integrand is absolutely continuous; what decays is bounded by its peak."""

import pytest
from sympy import Abs, atan, exp, sin, tan, tanh

from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.engine.reduction import by_parts
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.growth import majorant
from hermitex.symbolic.integrals import normal_form
from hermitex.symbols import z


@pytest.mark.parametrize("f", [atan(1/z), tanh(1/z)])
def test_a_jump_at_a_pole_is_not_lost(f):
    """E[z atan(1/z)] = 0.5976..., while its derivative off the jump alone gives -E[1/(1 + z^2)] = -0.6556..."""
    node = E(z*f, z)
    assert abs(normal_form(node).evalf(12) - node.evalf(12)) < 1e-10
    assert by_parts(1, f, z) is None and by_parts(1, sin(tan(z)/4), z) is None
    assert by_parts(1, tanh(z), z) is not None


def test_what_decays_is_bounded_by_its_peak():
    for power in (1, 2, 5):
        bound = majorant(exp(Abs(z)**power*exp(-z**2)), z)
        assert all(t.b <= 0 and t.a <= 0 for t in bound.terms)
        assert sum(t.C for t in bound.terms) >= 1.3
    assert majorant(exp(z**2*exp(z)), z) is None


def test_tempered_targets_are_integrable_at_once():
    assert integrable(z**3*tanh(z)**2 + sin(exp(z))*z, z, 2) is True
    assert integrable(exp(z**2), z) is False
