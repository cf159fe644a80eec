"""A sweep gives every point what it would get alone, the same bits whoever solves it, and a reason where it fails."""

import pickle
import time

import numpy as np
import pytest
from sympy import Symbol, tanh
from written import ONE, written

import hermitex as hx
from hermitex import System
from hermitex.errors import BadInput, UnknownName
from hermitex.symbols import V, alpha, beta, m
from hermitex.systems.sweep import GridLine

RIDGE = {"Delta": 0.25, "rho": 1.0}
GRID = {"alpha": np.geomspace(0.2, 3, 12), "lam": [1e-3, 0.1]}


def ridge():
    return written("ridge")[0]


@pytest.fixture(scope="module")
def table():
    return hx.sweep(ridge(), GRID, parameters=RIDGE, chunk=5)


def test_every_row_is_the_point_solved_alone(table):
    assert table.converged.all() and len(table) == 24
    for k in (0, 7, 23):
        alone = ridge().solve(alpha=table["alpha"][k], lamda=table["lam"][k], **RIDGE)
        for name in ("Vhat", "V", "q", "m", "test_error"):
            assert table[name][k] == pytest.approx(alone[name], rel=1e-10)
    assert set(GRID) <= set(table.to_dataframe().columns)


def test_the_one_step_system_follows_its_curve():
    system = written("one step, tanh and sin")[0]
    found = hx.sweep(system, {"alpha": [0.5, 1.0, 2.0], "lam": [0.1, 1e-6]}, parameters=ONE)
    for k in range(6):
        alone = system.solve(alpha=found["alpha"][k], lamda=found["lam"][k], **ONE)
        assert found["test_error"][k] == pytest.approx(alone["test_error"], rel=1e-9)


def test_points_that_fail_stay_with_their_reason_and_spoil_no_other():
    system = written("one step, tanh and sin")[0]
    fixed = {**ONE, "alpha": 1.0, "lamda": 0.1}
    del fixed["gamma"]
    found = hx.sweep(system, {"gamma": [0.4, 1.5, 0.8, -2.0, 1.0]}, parameters=fixed)  # rho = 1 - gamma**2 < 0 at two
    assert found.converged.tolist() == [True, False, True, False, True]
    assert all(row["reason"] for row in found.failed) and np.isnan(found["m"][1])
    for k in (0, 2, 4):
        assert found["m"][k] == pytest.approx(system.solve(**fixed, gamma=found["gamma"][k])["m"], rel=1e-9)
    infinite = hx.sweep(ridge(), {"alpha": [1.0, np.inf]}, parameters={**RIDGE, "lam": 0.1})
    assert infinite.converged.tolist() == [True, False] and "finite" in infinite.failed[0]["reason"]


def test_a_line_is_followed_along_its_first_key():
    """m = tanh(beta m + h) at beta = 2 has two stable branches; started at h = 1 the line stays on the upper one."""
    h = Symbol("h", real=True)
    magnet = System({m: tanh(beta*m + h)})
    down = np.linspace(1, -0.15, 24)
    found = hx.sweep(magnet, {"h": down}, parameters={"beta": 2.0})
    assert found.converged.all() and (found["m"] > 0.5).all()
    assert (hx.sweep(magnet, {"h": -down}, parameters={"beta": 2.0})["m"] < -0.5).all()


def test_processes_and_the_disk_change_no_bit(table, tmp_path):
    assert hx.sweep(ridge(), GRID, parameters=RIDGE, chunk=5, workers=2).to_csv() == table.to_csv()
    stored = hx.sweep(ridge(), GRID, parameters=RIDGE, chunk=5, checkpoint=tmp_path)
    again = hx.sweep(ridge(), GRID, parameters=RIDGE, chunk=5, checkpoint=tmp_path)  # read from the disk
    assert stored.to_csv() == again.to_csv() == table.to_csv()
    with pytest.raises(BadInput, match="equations, parameters or versions"):
        hx.sweep(ridge(), GRID, parameters={**RIDGE, "rho": 2.0}, chunk=5, checkpoint=tmp_path)


def test_progress_is_said_only_when_asked(capsys):
    seen = []
    hx.sweep(ridge(), GRID, parameters=RIDGE, chunk=5, progress=seen.append)
    assert capsys.readouterr() == ("", "") and seen[-1].done == seen[-1].points == 24


@pytest.mark.parametrize("grid, parameters, error, told", [
    ({"alpha": [1.0]}, RIDGE, BadInput, "lamda has no value"),
    ({"alpha": [1.0], "lam": [1.0]}, {**RIDGE, "lamda": 1.0}, BadInput, "give it once"),
    ({"alfa": [1.0]}, RIDGE, UnknownName, "did you mean alpha"),
    ({"alpha": [1.0], "lam": [1.0]}, {**RIDGE, "rho": [1.0, 2.0]}, BadInput, "one number"),
    ({}, RIDGE, BadInput, "is empty"),
    ({"alpha": [], "lam": [1.0]}, RIDGE, BadInput, "alpha"),
    ({"alpha": [np.nan], "lam": [1.0]}, RIDGE, BadInput, "NaN"),
])
def test_a_wrong_grid_is_named(grid, parameters, error, told):
    with pytest.raises(error, match=told):
        hx.sweep(ridge(), grid, parameters=parameters)


def test_what_is_not_a_system_is_refused_and_a_theory_is_asked_for_its_own():
    with pytest.raises(BadInput, match="not float"):
        hx.sweep(1.0, {"alpha": [1.0]})

    class Theory:
        system = System({V: alpha/(1 + V)})

    assert hx.sweep(Theory(), {"alpha": [2.0]})["V"] == pytest.approx([1.0])


def test_what_is_sent_to_a_worker_is_small():
    line = GridLine(written("one step, tanh and sin")[0].compile(), ONE, 1e-11)
    assert len(pickle.dumps(line)) < 40_000


@pytest.mark.slow
def test_the_cost_is_linear_and_the_memory_is_not_eaten():
    import tracemalloc

    system = written("one step, tanh and sin")[0]

    def spent(points):
        before = time.process_time()
        found = hx.sweep(system, {"alpha": np.geomspace(0.2, 5, points), "lam": [0.1, 0.01]}, parameters=ONE)
        assert found.converged.all()
        return time.process_time() - before

    spent(50)
    small, large = spent(200), spent(1600)
    assert large < 8*small*1.5
    tracemalloc.start()
    spent(500)
    first = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    spent(1000)
    second = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # What a further point costs in memory, times 10^5, stays far below a gigabyte.
    assert (second - first)/1000*1e5 < 0.5e9 and second < 0.5e9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # sockets that a cluster leaves behind are collected whenever it pleases them
def test_a_dask_cluster_gives_the_same_bits(table):
    distributed = pytest.importorskip("distributed")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            for executor in (client, client.get_executor()):
                assert hx.sweep(ridge(), GRID, executor, parameters=RIDGE, chunk=5).to_csv() == table.to_csv()


def test_the_start_of_a_system_holds_at_every_point():
    magnet = hx.System({"m": "tanh(J*m + h)"}, symbols="J, h>0", start={"m": 0.9})
    strengths = np.linspace(0.5, 3, 12)  # from J = 1.2 on there are three solutions
    assert np.allclose(hx.sweep(magnet, {"J": strengths}, parameters={"h": 0.1})["m"],
                       magnet.solve(J=strengths, h=0.1)["m"], rtol=1e-10)
