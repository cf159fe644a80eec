"""method="iterate": the map itself, its path, and that it ends at stable points only."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sympy import Eq, cos, sqrt, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, NotConverged, UnknownName
from hermitex.face.spec import from_toml
from hermitex.symbols import z

x, y, a = symbols("x y a", real=True)
q, h = symbols("q h", positive=True)
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
    (lambda: PAIR.solve(a=1, damping=0.5), "method='iterate'"), (lambda: PAIR.solve(a=1, damping=-3), "damping"),
    (lambda: hx.theories.glm().solve(alpha=2, lam=0.5, damping=0.5), "method='iterate'"),
    (lambda: hx.theories.glm().solve(alpha=2, lam=0.5, damping=-3), "damping"),
    (lambda: hx.sweep(PAIR, {"a": [1]}, damping=0.5), "method='iterate'"),
    (lambda: hx.sweep(PAIR, {"a": [1]}, damping="x"), "damping"),
    (lambda: from_toml('[equations]\nx = "tanh(a*x)"\n[grid]\na = [1.5, 2]\n[sweep]\ndamping = 0.7\n'), "iterate"),
    (lambda: hx.System({x: Eq(x**3, a)}).solve(a=1, method="iterate"), "no map to iterate"),
])
def test_bad_input_gets_one_line(bad, says):
    with pytest.raises(HermitexError, match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)


GLASS = hx.System({"q": hx.E(tanh(sqrt(q)*z + h)**2, z)}, domain={"q": (0, 1)}, start={"q": 0.9})


def test_a_point_that_leaves_its_domain_or_runs_away_is_said():
    steep = hx.System({x: 4*a*(1 - x)}, domain={x: (0, 1)})
    found = steep.solve(a=[0.2, 3], method="iterate", raise_on_failure=False)
    assert found.converged.tolist() == [True, False] and found["x"][0] == pytest.approx(0.8/1.8)
    assert "leaves the domain 0 < x < 1" in found.reason[1] and 0 < found["x"][1] < 1
    away = hx.System({x: 2 - a*x}).solve(a=1.5, method="iterate", raise_on_failure=False)
    assert "runs away" in away.reason and not away.converged and away.residual > 1


@pytest.mark.slow
def test_the_file_iterates_as_the_session_does(tmp_path):
    def ran(*options):
        return subprocess.run([sys.executable, "-I", str(tmp_path / "map.py"), "--h", "0.3", "--json", *options],
                              capture_output=True, text=True, timeout=60)

    GLASS.export(tmp_path / "map.py", method="iterate", damping=0.5, reference={"h": 0.3})
    for options, how in (([], {"method": "iterate", "damping": 0.5}), (["--method", "newton"], {})):
        assert json.loads(ran(*options).stdout)["q"] == pytest.approx([GLASS.solve(h=0.3, **how)["q"]], rel=1e-12)
    bad = ran("--method", "iterat")
    assert bad.returncode == 2 and "iterate" in bad.stderr and "Traceback" not in bad.stderr


def test_a_sweep_iterates_from_one_start_at_every_point(tmp_path):
    """Newton's line follows the unstable zero; the map leaves it at every point."""
    curie = hx.System({x: tanh(a*x)}, start={x: 1e-3})
    grid = {"a": [1.2, 1.5, 2.0]}
    table = hx.sweep(curie, grid, method="iterate", checkpoint=tmp_path / "map")
    alone = [curie.solve(a=v, method="iterate")["x"] for v in grid["a"]]
    np.testing.assert_allclose(table["x"], alone, rtol=1e-10)
    assert np.all(table["x"] > 0.6)
    with pytest.raises(BadInput, match="another sweep"):
        hx.sweep(curie, grid, checkpoint=tmp_path / "map")
    with pytest.raises(UnknownName, match="iterate"):
        hx.sweep(curie, grid, method="iterat")


def test_a_spec_says_how_it_is_solved(tmp_path):
    text = ('[equations]\nx = "tanh(a*x)"\n[start]\nx = 1e-3\n[grid]\na = [1.5, 2]\n[sweep]\nmethod = "iterate"\ndamping = 0.7\n')
    spec = from_toml(text)
    assert spec.how == {"method": "iterate", "damping": 0.7}
    table = hx.sweep(spec.system, spec.grid, **spec.how)
    assert table["x"][1] == pytest.approx(0.957504, abs=1e-6)
    for good, wrong in (('"iterate"', '"iterat"'), ("0.7", "2"), ("0.7", "0")):
        with pytest.raises(HermitexError) as told:
            from_toml(text.replace(good, wrong))
        assert "[sweep]" in str(told.value) and "\n" not in str(told.value)
    with pytest.raises(BadInput, match="integrated over time"):
        from_toml(text.replace("[equations]", "[flow]"))


def test_a_theory_iterates_its_equations_or_says_that_it_has_none():
    theory = hx.theories.glm()
    found = theory.solve(alpha=2, lam=0.5, Delta=0.25, method="iterate", damping=0.8)
    assert found.method == "iterate" and found["test_error"] == pytest.approx(
        theory.solve(alpha=2, lam=0.5, Delta=0.25)["test_error"], rel=1e-9)
    table = hx.sweep(theory, {"alpha": [1, 2]}, parameters={"lam": 0.5, "Delta": 0.25}, method="iterate", damping=0.8)
    assert table["test_error"][1] == pytest.approx(found["test_error"], rel=1e-9)
    with pytest.raises(BadInput, match="solver of its own"):
        hx.theories.kernel_limit("z**2 + z").solve(kappa=1.5, method="iterate")
