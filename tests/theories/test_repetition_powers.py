"""The exponents that repetition reaches, min over p of l(g^p), against quadrature of the moments of the powers."""

from __future__ import annotations

import numpy as np
import pytest

import hermitex as hx


def moment(g, p, k):
    """E[g^p He_k] by the trapezoid rule, k = 1, 2."""
    x = np.linspace(-15, 15, 6001)
    he = x if k == 1 else x*x - 1
    return float(np.sum(np.exp(-x*x/2)*g(x)**p*he)*(x[1] - x[0])/np.sqrt(2*np.pi))


@pytest.mark.slow
@pytest.mark.parametrize(("text", "g", "exponents"), [
    ("He5", lambda x: x**5 - 10*x**3 + 15*x, (5, 2, 1)),
    ("He6", lambda x: x**6 - 15*x**4 + 45*x**2 - 15, (6, 2, 2)),
    ("He7", lambda x: x**7 - 21*x**5 + 105*x**3 - 105*x, (7, 2, 1)),
    ("sin(2*z) - 2*exp(-2)*z", lambda x: np.sin(2*x) - 2*np.exp(-2)*x, (3, 2, 1)),
    ("z**2*exp(-z**2)", lambda x: x**2*np.exp(-x**2), (4, 4, 4)),
])
def test_exponents_of_a_target_seen_several_times(text, g, exponents):
    """He5: 2 with two looks at a sample, 1 with three; z^2 exp(-z^2) gains nothing, its generative exponent is four."""
    found = [hx.theories.repetition(text, p) for p in (1, 2, 3)]
    assert tuple(f.exponent for f in found) == exponents
    for p, row in enumerate(found[-1].powers, start=1):
        scale = max(1.0, moment(lambda x: np.abs(g(x)), p, 2))
        assert float(row.c_1) == pytest.approx(moment(g, p, 1), abs=1e-8*scale, rel=1e-8)
        assert float(row.c_2) == pytest.approx(moment(g, p, 2), abs=1e-8*scale, rel=1e-8)
