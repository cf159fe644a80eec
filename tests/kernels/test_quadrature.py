"""The rules: moments, nesting, refinement, open ends."""

import math

import numpy as np
import pytest

from hermitex.kernels import quadrature as rules


@pytest.mark.parametrize("rule", [rules.trapezoid(0.1), rules.panels(np.linspace(-9, 9, 25)), rules.split([0.3, -1.7])])
@pytest.mark.parametrize("k", range(7))
def test_moments(rule, k):
    moment = math.prod(range(2*k - 1, 0, -2))
    assert rule.weights @ rule.nodes**(2*k) == pytest.approx(moment, rel=1e-11)
    assert rule.weights @ rule.nodes**(2*k + 1) == pytest.approx(0, abs=1e-10*moment)


def test_the_coarser_weights_live_on_the_same_nodes():
    for rule in (rules.trapezoid(0.1), rules.panels(np.linspace(-9, 9, 25))):
        for w in (rule.coarse, rule.coarser):
            assert w @ np.cos(rule.nodes) == pytest.approx(math.exp(-0.5), rel=1e-6)
        assert np.count_nonzero(rule.coarse) < len(rule) and rule.ratios.shape == (3, len(rule))


def test_panels_are_open_at_a_jump():
    rule = rules.split([0.3])
    assert not np.isin(0.3, rule.nodes)
    assert rule.weights @ np.sign(rule.nodes - 0.3) == pytest.approx(-math.erf(0.3/math.sqrt(2)), abs=1e-13)


def test_refinement_gains():
    def f(x):
        return np.sqrt(np.abs(x - 0.1234))

    rule, errors = rules.panels(np.linspace(-9, 9, 25)), []
    for _ in range(6):
        errors.append(rule.panel_errors(f(rule.nodes)).max())
        rule = rule.refine(rule.panel_errors(f(rule.nodes)) >= 0.1*errors[-1])
    assert errors[-1] < errors[0]/10


def test_a_wider_window_for_what_grows():
    f = np.exp(8*rules.trapezoid().nodes)
    truth = math.exp(32)
    assert abs(rules.trapezoid().weights @ f/truth - 1) > 1e-3  # tooth: the first window cuts it
    wide = rules.trapezoid().widen(18)
    assert wide.weights @ np.exp(8*wide.nodes) == pytest.approx(truth, rel=1e-12)


def test_fejer_integrates_polynomials_of_its_degree():
    x, fine, coarse, coarser = rules.fejer()
    for n, w in ((31, fine), (15, coarse), (7, coarser)):
        for k in range(0, n, 2):
            assert w @ x**k == pytest.approx(2/(k + 1), rel=1e-13)
