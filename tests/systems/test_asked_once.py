"""A block is not computed twice at one state on the same nodes: its residual, its terms and its outputs are looked at together."""

import numpy as np
import pytest

import hermitex as hx
from hermitex.systems.compiled_system import CompiledSystem

pytestmark = pytest.mark.beyond  # how often a block is asked, which nothing promises: systems/compiled_system.py

KINKED = {"alpha": 1.5, "beta": 1.0, "lam": 0.1, "r": 1.0, "c": 1.0, "gamma": 0.9}


def asked(monkeypatch, solve):
    """What the blocks were asked for, as bytes of their state and nodes."""
    seen, call = [], CompiledSystem.call

    def noted(self, name, s, quad, average=None, part=1.0):
        if name.startswith("block") and average is None and self.axes:
            state = [np.asarray(s[u], dtype=float).tobytes() for b in self.blocks for u in b.torn if u in s]
            seen.append((name, *state, *(v[0].tobytes() for n, v in quad.items() if n)))
        return call(self, name, s, quad, average, part)

    with monkeypatch.context() as m:
        m.setattr(CompiledSystem, "call", noted)
        found = solve()
    assert seen and found.converged
    return seen


@pytest.mark.parametrize("sigma, g, loss", [("tanh", "sin", "square"), ("softplus", "sin", "abs(y - f)")])
def test_no_state_is_asked_for_twice(sigma, g, loss, monkeypatch):
    theory = hx.theories.one_step(sigma, g, loss=loss)
    seen = asked(monkeypatch, lambda: theory.solve(**KINKED))
    assert len(set(seen)) >= len(seen) - 1  # one more step of Newton's method begins where it ended


def test_few_nodes_where_the_error_is_small():
    found = hx.theories.one_step("softplus", "sin", loss="abs(y - f)").solve(**KINKED)
    assert found.provenance["nodes"]["z1_1"] <= 600 and found.provenance["quadrature_error"] < 1e-11
