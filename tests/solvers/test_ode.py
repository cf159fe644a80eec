"""Trajectories with names: exact solutions, conserved quantities, events, and a blow-up that is named."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.solvers.ode import integrate
from hermitex.solvers.solve_limits import limit_time


def swing(t, x, p):
    return np.array([x[1], -p["k"] * x[0]])


@given(st.floats(0.2, 5), st.floats(-2, 2))
@settings(max_examples=15)
def test_oscillator_against_its_exact_solution(k, v):
    t = np.linspace(0, 5, 11)
    s = integrate(swing, [1.0, v], t, names=["q", "v"], p={"k": k})
    w = np.sqrt(k)
    assert s["q"] == pytest.approx(np.cos(w * t) + v / w * np.sin(w * t), abs=1e-7)
    assert s.at(2.34)["q"] == pytest.approx(np.cos(w * 2.34) + v / w * np.sin(w * 2.34), abs=1e-6)


def test_third_route_a_matrix_exponential():
    from scipy.linalg import expm

    A = np.array([[-1.0, 2.0, 0.0], [0.0, -0.5, 1.0], [0.3, 0.0, -2.0]])
    s = integrate(lambda t, x, p: A @ x, [1.0, 0.0, -1.0], (0, 3), names=["a", "b", "c"])
    assert s.state[:, -1] == pytest.approx(expm(3 * A) @ [1.0, 0.0, -1.0], abs=1e-8)


def test_backwards_undoes_forwards():
    there = integrate(swing, [1.0, 0.3], (0, 4), names=["q", "v"], p={"k": 1.3})
    back = integrate(swing, there.state[:, -1], (4, 0), names=["q", "v"], p={"k": 1.3})
    assert back.state[:, -1] == pytest.approx([1.0, 0.3], abs=1e-7)


def test_events_are_found_by_name_and_may_end_it():
    s = integrate(swing, [1.0, 0.0], (0, 20), names=["q", "v"], p={"k": 1.0},
                  events={"cross": lambda t, x, p: x[0], "late": lambda t, x, p: t - 5}, terminal=["late"])  # fmt: skip
    assert s.events["cross"]["t"] == pytest.approx([np.pi / 2, 3 * np.pi / 2], abs=1e-7)
    assert np.abs(s.events["cross"]["q"]).max() < 1e-7 and s["t"][-1] == pytest.approx(5)
    with pytest.raises(UnknownName, match="late"):
        integrate(swing, [1.0, 0.0], (0, 1), names=["q", "v"], p={"k": 1.0}, terminal=["lat"],
                  events={"late": lambda t, x, p: t})  # fmt: skip


def test_a_blow_up_is_named_with_its_time_and_carries_what_was_reached():
    with pytest.raises(NotConverged, match=r"stopped at t = 1") as caught:
        integrate(lambda t, x, p: np.array([x[0] ** 2, 0.0]), [1.0, 1.0], (0, 2), names=["q", "m"])
    assert "q diverges" in str(caught.value) and "Radau" in str(caught.value)
    assert caught.value.solution["q"][-1] > 1e6
    kept = integrate(lambda t, x, p: x**2, [1.0], (0, 2), names=["q"], raise_on_failure=False)
    assert not kept.converged


@pytest.mark.parametrize("t", [(0, 1e4), (1e4, 0), np.linspace(0, 1e4, 7)], ids=["forward", "backward", "times"])
def test_what_takes_too_long_ends_with_what_was_reached(t):
    begun = time.perf_counter()
    with limit_time(0.1), pytest.raises(NotConverged, match=r"the budget of 0\.1 CPU seconds ran out at t = ") as caught:
        integrate(swing, [1.0, 0.0], t, names=["q", "v"], p={"k": 100.0})
    assert time.perf_counter() - begun < 5
    reached = caught.value.solution["t"][-1]
    assert t[0] == reached or min(t[0], t[-1]) < reached < max(t[0], t[-1])
    with limit_time(60):
        assert integrate(swing, [1.0, 0.0], (0, 1), names=["q", "v"], p={"k": 1.0}).converged


@pytest.mark.parametrize(("x0", "t", "names"), [
    ([1.0], (0, 1), ["q", "v"]), ([np.nan, 0.0], (0, 1), ["q", "v"]), ([1.0, 0.0], (0, 0), ["q", "v"]),
    ([1.0, 0.0], [0, 2, 1], ["q", "v"]), ([1.0, 0.0], (0, 1), ["t", "v"]),
])  # fmt: skip
def test_bad_input_is_refused(x0, t, names):
    with pytest.raises(BadInput):
        integrate(swing, x0, t, names=names, p={"k": 1.0})


@pytest.mark.parametrize("rate", [np.nan, np.inf])
def test_a_rate_that_is_no_number_where_it_starts_is_refused(rate):
    with pytest.raises(BadInput, match="the rate of v is not finite where it starts, at t = 2"):
        integrate(lambda t, x, p: [1.0, rate], [0.0, 1.0], (2, 3), names=["m", "v"])


def test_asking_outside_the_interval_is_refused():
    s = integrate(swing, [1.0, 0.0], (0, 1), names=["q", "v"], p={"k": 1.0})
    with pytest.raises(BadInput, match=r"\[0, 1\]"):
        s.at(2.0)
