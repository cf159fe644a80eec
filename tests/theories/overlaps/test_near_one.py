"""Fixed points nearer to M = 1 than the nodes of a quadrature resolve: by the limit V -> 0 and what is resolved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

import hermitex as hx
from hermitex.theories.overlaps.bins import BinnedOutput
from hermitex.theories.overlaps.label_structure import target_function
from hermitex.theories.overlaps.saturation import gradient_products, saturation_limit, unit_gradients
from hermitex.theories.overlaps.state_evolution import StateEvolution

pytestmark = pytest.mark.beyond  # fixed points nearer to 1 than nodes resolve: theories/overlaps/saturation.py


def test_the_limit_counts_one_equation_a_sample():
    """tr(K E[n n^T/(n^T K n)]) = P(n != 0): 3/4 for relu(z1) + relu(z2), so that M = 1 attracts from alpha = 8/3 on."""
    theory = hx.theories.multi_index("relu(z1) + relu(z2)")
    n, K = unit_gradients(target_function(theory.reduced.inner, theory.reduced.names), 2), np.array([[1.0, 0.3], [0.3, 0.5]])
    assert np.trace(K @ saturation_limit(gradient_products(n), K)) == pytest.approx(0.75, abs=1e-4)
    assert theory.evolution.approach.onset == pytest.approx(8/3, rel=1e-4)
    assert hx.theories.multi_index("max(z1, z2)").evolution.approach.onset == pytest.approx(2)


def test_a_direction_that_is_never_told_alone_is_not_known_exactly():
    """z1 if z2 > 0 else 0: half of the labels tell z1, none of them z2 but by its sign; z1 is known from alpha = 2 on."""
    theory = hx.theories.multi_index("Piecewise((z1, z2 > 0), (0, True))")
    found = [theory.solve(alpha=a, start="informed")["M11"] for a in (1.9, 2.1)]  # z2 enters by a step: by level sets of z1
    assert found[0] < 1 == found[1]
    evolution = StateEvolution(BinnedOutput.of(theory.reduced.inner, theory.reduced.names), theory.space)
    one, two = np.array([True, False]), np.array([False, True])
    assert not evolution.approach.together
    assert evolution.approach.told(one, two) == pytest.approx(0.5, abs=1e-4)
    assert evolution.approach.told(two, one) == evolution.approach.told(two, ~(one | two)) == 0


@pytest.mark.parametrize(("g", "share"), [("Max(z1, z2/2 - 1)", ndtr(-1/np.sqrt(1.25))),
                                          ("Max(z1 + z2/5, z2 - 1/2)", ndtr(-0.5/np.sqrt(1.64)))],
                         ids=["axes", "oblique"])
def test_one_attracts_where_the_direction_that_fewest_samples_tell_of_does(g, share):
    """A share of the samples tells of one slope, the rest of another: M = 1 from 1/share on. Their limits were 5.1 and 2.34."""
    theory = hx.theories.multi_index(g)
    evolution = theory.evolution
    assert not evolution.approach.together and evolution.approach.onset == pytest.approx(1/share, rel=2e-3)
    assert evolution.cheap.pace == pytest.approx(share, rel=2e-3)  # by F at the smallest V alone it was more
    found = [theory.solve(alpha=f/share, start="informed", raise_on_failure=False) for f in (0.97, 1.01)]
    assert found[0]["M22"] < 1 and found[1].converged and found[1]["M11"] == found[1]["M22"] == 1


@pytest.mark.slow
def test_between_the_limit_and_what_is_resolved_F_is_that_of_finer_nodes():
    """z1 z2 from its bins at V >= 0.02, against the convolutions of its factors at V = 0.0018 and 0.01."""
    theory = hx.theories.multi_index("z1*z2")
    bins = BinnedOutput.of(theory.reduced.inner, theory.reduced.names, theory.space.group, theory.space.odd)
    approach = StateEvolution(bins, theory.space).approach
    for s in (0.3, 0.7):
        V = s*s*approach.v
        exact = V*theory.output.second((1 - V)*np.eye(2))[0, 0]
        first, *others = (approach.v*saturation_limit(approach.products, approach.v*np.eye(2))
                          + sum(s**(j + 1)*approach.v*B for j, B in enumerate(c))
                          for c in approach.series)
        assert abs(first[0, 0] - exact) < min(2e-3, 3*max(abs(o[0, 0] - first[0, 0]) for o in others))


@pytest.mark.slow
def test_the_uninformed_branch_of_a_maximum_turns_where_the_informed_one_stands_already():
    """max(z1, z2): M = 1 attracts from alpha = 2, the branch from zero goes on to 2.021 and ends there at an overlap of 0.98."""
    theory = hx.theories.multi_index("max(z1, z2)")
    approach = theory.evolution.approach
    assert approach.at(0.0, approach.series[0])[1] == pytest.approx(2, abs=1e-9)
    assert approach.at(1.0, approach.series[0])[1] == pytest.approx(2.0211, abs=2e-3)
    assert theory.solve(alpha=2.01, start="informed")["M11"] == 1
    assert theory.solve(alpha=2.1)["M11"] == 1
