"""Fixed points nearer to M = 1 than the nodes of a quadrature resolve: by the limit V -> 0 and what is resolved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import hermitex as hx
from hermitex.theories.overlaps.label_structure import target_function
from hermitex.theories.overlaps.saturation import saturation_limit, unit_gradients

pytestmark = pytest.mark.beyond  # fixed points nearer to 1 than nodes resolve: theories/overlaps/saturation.py


def test_the_limit_counts_one_equation_a_sample():
    """tr(K E[n n^T/(n^T K n)]) = P(n != 0): 3/4 for relu(z1) + relu(z2), so that M = 1 attracts from alpha = 8/3 on."""
    theory = hx.theories.multi_index("relu(z1) + relu(z2)")
    n, K = unit_gradients(target_function(theory.reduced.inner, theory.reduced.names), 2), np.array([[1.0, 0.3], [0.3, 0.5]])
    assert np.trace(K @ saturation_limit(n, K)) == pytest.approx(0.75, abs=1e-4)
    assert theory.evolution.approach.onset == pytest.approx(8/3, rel=1e-4)
    assert hx.theories.multi_index("max(z1, z2)").evolution.approach.onset == pytest.approx(2)


@pytest.mark.parametrize(("g", "share"), [("Max(z1, z2/2 - 1)", ndtr(-1/np.sqrt(1.25))),
                                          ("Max(z1 + z2/5, z2 - 1/2)", ndtr(-0.5/np.sqrt(1.64)))],
                         ids=["axes", "oblique"])
def test_one_attracts_where_the_direction_that_fewest_samples_tell_of_does(g, share):
    """A share of the samples tells of one slope, the rest of another: M = 1 from 1/share on. Their limits were 5.1 and 2.34."""
    theory = hx.theories.multi_index(g)
    evolution = theory.evolution
    assert evolution.approach.onset == pytest.approx(1/share, rel=2e-3)
    assert evolution.rough.pace == pytest.approx(share, rel=2e-3)  # by F at the smallest V alone it was more
    found = [theory.solve(alpha=f/share, start="informed", raise_on_failure=False) for f in (0.97, 1.01)]
    assert found[0]["M22"] < 1 and found[1].converged and found[1]["M11"] == found[1]["M22"] == 1


@pytest.mark.slow
def test_the_uninformed_branch_of_a_maximum_turns_where_the_informed_one_stands_already():
    """max(z1, z2): M = 1 attracts from alpha = 2, the branch from zero goes on to 2.021 and ends there at an overlap of 0.98."""
    theory = hx.theories.multi_index("max(z1, z2)")
    assert theory.solve(alpha=2.02, start="informed")["M11"] == 1
    assert theory.solve(alpha=2.1)["M11"] == 1
