"""method="iterate": the map itself, its path, and that it ends at stable points only."""

import numpy as np
import pytest
from sympy import Eq, cos, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.symbols import z

x, y, a = symbols("x y a", real=True)
PAIR = hx.System({x: tanh(a*y), y: hx.E(tanh(x + z/2), z)})


@pytest.mark.parametrize("damping", [1.0, 0.4])
def test_the_path_is_that_of_the_map(damping):
    found = PAIR.solve(a=1.5, start={"x": 0.9, "y": 0.2}, method="iterate", damping=damping)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    u, v = 0.9, 0.2
    for k in range(12):
        assert found.history["x"][k] == pytest.approx(u, rel=1e-10) and found.history["y"][k] == pytest.approx(v, rel=1e-10)
        u, v = (u + damping*(np.tanh(1.5*v) - u), v + damping*(weights @ np.tanh(u + nodes/2)/np.sqrt(2*np.pi) - v))
    assert found.converged and found["x"] == pytest.approx(PAIR.solve(a=1.5, start={"x": 0.9, "y": 0.2})["x"], rel=1e-9)


def test_it_leaves_an_unstable_point_where_newton_stays():
    curie = hx.System({x: tanh(2*x)})
    assert curie.solve(start={"x": 1e-6})["x"] == pytest.approx(0, abs=1e-9)
    assert curie.solve(start={"x": 1e-6}, method="iterate")["x"] == pytest.approx(0.957504, abs=1e-6)


def test_an_oscillation_is_damped_or_said():
    swing = hx.System({x: a*cos(x)})
    with pytest.raises(NotConverged, match="did not settle"):
        swing.solve(a=1.6, start={"x": 1}, method="iterate")
    calm = swing.solve(a=[1.2, 1.6], start={"x": 1}, method="iterate", damping=0.5)
    np.testing.assert_allclose(calm["x"], np.array([1.2, 1.6])*np.cos(calm["x"]), rtol=1e-10)
    assert calm.history["x"].shape == (calm.iterations + 1, 2)


@pytest.mark.parametrize("bad, says", [
    (lambda: PAIR.solve(a=1, method="iterate", damping=2), "damping"), (lambda: PAIR.solve(a=1, method="iterat"), "iterate"),
    (lambda: hx.System({x: Eq(x**3, a)}).solve(a=1, method="iterate"), "no map to iterate"),
])
def test_bad_input_gets_one_line(bad, says):
    with pytest.raises((BadInput, UnknownName), match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)
