"""By parts only where the integrand is absolutely continuous; what decays is bounded by its peak."""

from random import Random

import numpy as np
import pytest
from sympy import Abs, S, atan, exp, lambdify, log, sin, tan, tanh

from hermitex import E
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.engine.reduction import by_parts
from hermitex.symbolic.growth import majorant
from hermitex.symbolic.integrals import normal_form
from hermitex.symbols import z, z1, z2


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


@pytest.mark.parametrize("seed", range(4))
def test_equal_terms_of_several_summands_are_all_counted(seed):
    """E[f(z2) (c0 + c1 z1^2)] = (c0 + c1) E f, and exp(z) (c0 + c1 h) + c2 exp(z) h in summands, by Gauss-Hermite."""
    random = Random(seed)
    c = [random.randint(1, 3) for _ in range(3)]
    h = log(1 + exp(z)/random.randint(2, 5))
    f = h.xreplace({z: z2})
    pairs = [(c[0]*f + c[1]*z1**2*f + c[2]*f/(1 + z2**2), (c[0] + c[1])*h + c[2]*h/(1 + z**2)),
             (exp(z)*(c[0] + c[1]*h) + c[2]*exp(z)*h, exp(z)*(c[0] + (c[1] + c[2])*h))]
    x, w = np.polynomial.hermite_e.hermegauss(180)
    for body, plain in pairs:
        known = w @ lambdify(z, plain, "numpy")(x)/np.sqrt(2*np.pi)
        assert float(normal_form(E(body)).evalf(10)) == pytest.approx(known, rel=1e-5)


def test_equal_sums_agree_and_one_lost_summand_does_not():
    f, h = log(1 + exp(z2)/3), log(1 + exp(z)/3)
    assert normal_form(E(f + z1**2*f) - 2*E(f)) == 0 != normal_form(E(f + z1**2*f) - E(f))
    whole, one = E(exp(z)*(1 + h) + exp(z)*h), E(exp(z)*h)
    assert normal_form(whole - exp(S.Half) - 2*one) == 0 != normal_form(whole - exp(S.Half) - one)
