"""Grids that no table holds are refused before anything is laid out, in one line that says how large they are."""

import itertools
import re
import time

import numpy as np
import pytest
from sympy import Abs, cos, sin, sqrt, symbols, tanh

from hermitex import E, System, compile, sweep, theories
from hermitex.errors import BadInput, NotConverged
from hermitex.face.spec import from_toml
from hermitex.solvers.sweep_grid import grid
from hermitex.symbolic.text import text_names
from hermitex.symbols import V, alpha, lamda, z, z1, z2, z3

RIDGE = System({V: 1/(alpha + lamda)})


@pytest.mark.parametrize("axes", [
    {"alpha": np.linspace(1, 2, 30_000), "lam": np.linspace(1, 2, 30_000)}, {"alpha": np.ones(1001), "lam": np.ones(1000)},
    {"alpha": range(10**9), "lam": [1.0]}, {"alpha": range(10**12), "lam": range(10**12)},
])
def test_a_grid_that_is_too_large_is_refused_at_once(axes):
    begun = time.process_time()
    with pytest.raises(BadInput, match="points, and 1,000,000 at most") as error:
        sweep(RIDGE, axes)
    assert time.process_time() - begun < 0.5 and "\n" not in str(error.value)
    with pytest.raises(BadInput, match="points, and 1,000,000 at most"):
        sweep(theories.one_step("tanh", "sin"), axes, parameters={"r": 1, "c": 1, "gamma": 0.5})


def test_numbers_that_broadcast_to_too_many_points_are_refused():
    line = np.linspace(1, 2, 40_000)
    with pytest.raises(BadInput, match="1,600,000,000 points"):
        RIDGE.solve(alpha=line, lam=line[:, None])


@pytest.mark.parametrize("axes", [{}, [1, 2], {"alpha": []}, {"alpha": [[1, 2]]}, {"alpha": ["a"]}, {"alpha": [float("nan")]},
                                  {"alpha": itertools.count()}, {"alpha": (v for v in [1, 2])}, {"alpha": None}, {"alpha": 1j}])
def test_what_is_no_grid_is_refused_in_one_line(axes):
    with pytest.raises(BadInput) as error:
        sweep(RIDGE, axes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("chunk", [0, -1, 1.5, float("inf"), "3", None])
def test_a_chunk_is_a_whole_number(chunk):
    with pytest.raises(BadInput, match="chunk"):
        sweep(RIDGE, {"alpha": [1.0], "lam": [1.0]}, chunk=chunk)


def test_the_lines_of_a_grid_of_several_axes_come_in_their_order():
    axes = {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0], "c": [5.0, 6.0, 7.0], "d": [8.0]}
    for chunk in (1, 2, 3, 7, 100):
        g = grid(axes, chunk)
        rows = [row for k in range(g.chunks) for p in g.pieces(k) for row in zip(*(p[n].tolist() for n in axes), strict=True)]
        assert rows == [(a, b, c, d) for b, c, d in itertools.product(axes["b"], axes["c"], axes["d"]) for a in axes["a"]]


def test_a_late_chunk_of_many_short_lines_costs_no_more_than_an_early_one():
    g = grid({"a": [1.0, 2.0], "b": np.arange(700.0), "c": np.arange(700.0)}, 50)
    begun = time.process_time()
    for k in range(g.chunks - 200, g.chunks):
        g.pieces(k)
    assert time.process_time() - begun < 1


def test_the_letters_of_many_texts_are_read_once(monkeypatch):
    """Each formula read all letters again: the square of the number of equations."""
    calls, read = [], text_names._parameter
    monkeypatch.setattr(text_names, "_parameter", lambda *a: calls.append(a) or read(*a))
    for n in (20, 80):
        lines = {f"x{i}": f"x{(i + 1) % n}/2 + 1" for i in range(n)}
        for make in (System, lambda e: from_toml("[equations]\n" + "\n".join(f"{k} = {v!r}" for k, v in e.items()))):
            calls.clear()
            make(lines)
            assert len(calls) < 3*n + 200


def test_infinitely_steep_places_that_are_not_found_exactly():
    """E sqrt|sin 3z + cos z^2|: the value by a substitution that is flat at all of its 53 roots."""
    a, x = symbols("a x", real=True)
    found = System({x: a*E(sqrt(Abs(sin(3*z) + cos(z**2))), z)}).solve(a=[3.0, 60.0])
    assert found["x"] == pytest.approx([2.4618135402717, 49.236270805434], rel=1e-9)


@pytest.mark.parametrize("number, value", [(3.0, 2.46184647296), (60.0, 49.2369294593)])
def test_the_tolerance_that_a_refusal_names_is_accepted(number, value):
    """E sqrt|sin 3z + cos z^3| has too many of them: the digits that hold are given."""
    a, x = symbols("a x", real=True)
    system = System({x: a*E(sqrt(Abs(sin(3*z) + cos(z**3))), z)})
    with pytest.raises(NotConverged, match="for the digits that hold") as error:
        system.solve(a=number)
    named = float(re.search(r"tolerance=(\S+) for", str(error.value))[1])
    found = system.solve(a=number, tolerance=named)
    assert found["x"] == pytest.approx(value, rel=1e-6) and any("relative error" in n for n in found.notes)


def test_an_average_that_does_not_fit_into_memory_is_refused(monkeypatch):
    x, b = symbols("x b", real=True)
    system = System({x: b + E(tanh(b*z1 + x*z2*z3)**2, z1, z2, z3)})
    monkeypatch.setattr("hermitex.kernels.adaptive._MOST_NUMBERS", 1000)
    with pytest.raises(BadInput, match=r"over 3 variables at once takes an array of [\d.e+]+ numbers, at most 1e\+03 fit") as error:
        system.solve(b=0.3)
    assert "\n" not in str(error.value)
    with pytest.raises(BadInput, match=r"at most 1e\+03 fit"):
        compile(E(tanh(b*z1 + x*z2*z3)**2, z1, z2, z3))(b=0.3, x=0.2)
