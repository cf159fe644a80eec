"""A phase diagram of the risk bounds, as a multiple of what its points cost one by one."""

import time

import numpy as np
import pytest

from hermitex import bounds


def cpu(run):
    start = time.thread_time()
    found = run()
    return found, time.thread_time() - start


@pytest.mark.parametrize("sigma, g", [("tanh", "sin"), ("z*tanh(softplus(z))", "relu(z - 1)"), ("erf", "sin"), ("sign", "sign")])
def test_a_phase_diagram(sigma, g, benchmark):
    r, c = np.linspace(0.05, 5, 200), np.linspace(0.1, 4, 150)[:, None]
    bounds(sigma, g, r=1.0)  # the closed form, if there is one, is found once
    singles, each = cpu(lambda: [bounds(sigma, g, r=x, c=c[75, 0]).lower for x in r[40:70]])
    found, whole = benchmark.pedantic(lambda: cpu(lambda: bounds(sigma, g, r=r, c=c)), rounds=1)
    np.testing.assert_allclose(found.lower[75, 40:70], singles, rtol=1e-9, atol=1e-13)
    points = whole/(each/30)
    benchmark.extra_info["points"] = round(points)
    assert points <= 30_000/30  # what 35 to 310 single points cost was measured
