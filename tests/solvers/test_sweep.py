"""Sweeps: the same table whoever computed it, in whatever order, and however often it was interrupted."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import sweep_problems
from sweep_problems import GRID, cheap, curve, deadly, fussy

from hermitex.errors import BadInput, UnknownName
from hermitex.solvers.chunked_sweep import sweep
from hermitex.solvers.workers import WorkersLost

SMALL = {"alpha": [1.0, 2.0, 3.0, 4.0, 5.0], "lam": [0.1, 0.2]}


@pytest.fixture(scope="module")
def plain():
    return sweep(curve, GRID, chunk=8).to_csv()


def test_the_rows_are_the_points_solved_alone():
    table = sweep(curve, GRID, chunk=8)
    for k in (0, 17, 80, 119):
        point = {n: table[n][[k]] for n in GRID}
        assert curve(point)["V2"][0] == pytest.approx(table["V2"][k], rel=1e-8)
    assert table.on_grid("lam").shape == (24, 5) and (table.on_grid("lam") == GRID["lam"]).all()
    assert (GRID["alpha"] == table.on_grid("alpha").T).all()


def test_failed_points_stay_with_their_reason(plain):
    table = sweep(cheap, GRID, chunk=8)
    assert len(table) == 120 and len(table.failed) == 5
    assert {(row["reason"], row["alpha"]) for row in table.failed} == {("alpha, the load, is too large", 5.0)}
    assert plain.count("\n") == 121 and '"alpha, the load, is too large"' in plain


@pytest.mark.parametrize("make", [
    lambda: ThreadPoolExecutor(3),
    pytest.param(lambda: ProcessPoolExecutor(2, get_context("spawn")), marks=pytest.mark.slow),
])  # fmt: skip
def test_any_executor_gives_the_same_bits(make, plain, tmp_path):
    with make() as pool:
        assert sweep(curve, GRID, chunk=8, executor=pool, checkpoint=tmp_path).to_csv() == plain


def test_our_own_pool_gives_the_same_bits(plain):
    assert sweep(curve, GRID, chunk=8, workers=2).to_csv() == plain


def test_a_point_that_raises_fails_alone_and_every_kind_of_column_survives_the_disk(tmp_path):
    table = sweep(fussy, SMALL, checkpoint=tmp_path)
    again = sweep(fussy, SMALL, checkpoint=tmp_path)  # nothing left to do: read from disk
    assert [row["alpha"] for row in table.failed] == [3.0, 3.0]
    assert table.failed[0]["reason"] == "ArithmeticError: no solution at 3"
    assert table["q"][table.converged].tolist() == [1, 0.5, 0.25, 0.2] * 2 and np.isnan(table["q"][2])
    assert table["limit"][4] == np.inf and np.isnan(table["limit"][0])
    assert again.to_csv() == table.to_csv()


def test_a_resumed_sweep_repeats_nothing(tmp_path):
    calls = []

    def counted(point):
        calls.append(point["alpha"].size)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return {"q": point["alpha"] / 3}

    with pytest.raises(KeyboardInterrupt):
        sweep(counted, SMALL, checkpoint=tmp_path, chunk=2)
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 2
    table = sweep(counted, SMALL, checkpoint=tmp_path, chunk=2)
    assert len(calls) == 7  # six chunks, one of them begun twice
    assert table.to_csv() == sweep(lambda p: {"q": p["alpha"] / 3}, SMALL, chunk=2).to_csv()


@pytest.mark.parametrize("damage", ["torn", "flipped", "doubled", "garbage", "header part"])
def test_a_damaged_journal_costs_only_what_is_damaged(damage, tmp_path):
    sweep(cheap, GRID, chunk=8, checkpoint=tmp_path)
    file = tmp_path / "journal.jsonl"
    raw = file.read_bytes()
    lines = raw.splitlines(keepends=True)
    if damage == "torn":
        file.write_bytes(raw[:-40])
    elif damage == "flipped":
        digit = lines[4].rindex(b"0.")
        lines[4] = lines[4][:digit] + b"1." + lines[4][digit + 2 :]
        file.write_bytes(b"".join(lines))
    elif damage == "doubled":
        file.write_bytes(raw + lines[0])
    elif damage == "garbage":
        file.write_bytes(b"\x00\xff not json\n" + b"".join(lines[2:]))
    else:
        (tmp_path / "header.json.part").write_text("{")
    solved = []

    def noted(point):
        solved.append(1)
        return cheap(point)

    assert sweep(noted, GRID, chunk=8, checkpoint=tmp_path).to_csv() == sweep(cheap, GRID, chunk=8).to_csv()
    assert len(solved) == {"torn": 1, "flipped": 1, "doubled": 0, "garbage": 2, "header part": 0}[damage]
    assert sorted(json.loads(line)["chunk"] for line in file.read_text().splitlines()) == list(range(15))


@pytest.mark.parametrize(("change", "what"), [
    ({"axes": SMALL | {"lam": [0.1, 0.3]}}, "grid of lam differs"), ({"chunk": 3}, "chunk was 50, now 3"),
    ({"signature": "other"}, "equations, parameters or versions"), ({"resume": False}, "already holds a sweep"),
    ({"axes": {"lam": SMALL["lam"], "alpha": SMALL["alpha"]}}, "order"),
])  # fmt: skip
def test_another_sweep_is_refused_in_one_line(change, what, tmp_path):
    sweep(fussy, SMALL, checkpoint=tmp_path, signature="one")
    options = {"axes": SMALL, "signature": "one", "checkpoint": tmp_path} | change
    with pytest.raises(BadInput, match=what) as caught:
        sweep(fussy, options.pop("axes"), **options)
    assert "\n" not in str(caught.value)


def test_two_sweeps_do_not_write_to_one_place(tmp_path):
    def nested(point):
        sweep(fussy, SMALL, checkpoint=tmp_path)
        return {}

    table = sweep(nested, {"alpha": [1.0]}, checkpoint=tmp_path)
    assert "another sweep is writing" in table.failed[0]["reason"]


def test_a_worker_that_is_killed_once_loses_nothing(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    table = sweep(partial(deadly, folder=str(marks), times=1), SMALL, workers=2, chunk=1, checkpoint=tmp_path / "out")
    assert not table.failed and table["q"].tolist() == [1, 4, 9, 16, 25] * 2
    assert len((tmp_path / "out" / "journal.jsonl").read_text().splitlines()) == 10


@pytest.mark.slow
def test_a_chunk_that_always_kills_fails_alone_and_is_tried_again_on_resume(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    grid, out = {"alpha": [1.0, 2.0, 3.0, 4.0]}, tmp_path / "out"
    table = sweep(partial(deadly, folder=str(marks), times=2), grid, workers=2, chunk=1, attempts=2, checkpoint=out)
    assert [row["alpha"] for row in table.failed] == [3.0] and "worker died" in table.failed[0]["reason"]
    assert table["q"][table.converged].tolist() == [1, 4, 16]
    assert not sweep(partial(deadly, folder=str(marks), times=2), grid, chunk=1, checkpoint=out).failed


@pytest.mark.slow
def test_a_broken_pool_of_the_callers_is_replaced(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        table = sweep(partial(deadly, folder=str(marks), times=1), SMALL, executor=pool, chunk=1)
    assert not table.failed


@pytest.mark.slow
def test_workers_that_cannot_start_are_an_error_that_says_so(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text("from math import sqrt\nfrom hermitex.solvers.chunked_sweep import sweep\n"
                      "def f(p): return {'q': p['a']}\nsweep(f, {'a': [1, 2, 3]}, workers=2, chunk=1)\n")  # fmt: skip
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert run.returncode and '__name__ == "__main__"' in run.stderr and WorkersLost.__name__ in run.stderr


def test_what_cannot_be_sent_is_said_before_anything_is_computed():
    with pytest.raises(BadInput, match="cannot be sent"):
        sweep(lambda p: {}, SMALL, workers=2)


def test_progress_counts_points(tmp_path, capsys):
    seen = []
    sweep(fussy, SMALL, chunk=5, progress=seen.append, checkpoint=tmp_path)
    assert [(s.done, s.points, s.failed) for s in seen] == [(5, 10, 1), (10, 10, 2)]
    sweep(fussy, SMALL, chunk=5)
    assert capsys.readouterr() == ("", "")  # nothing is printed unasked
    sweep(fussy, SMALL, chunk=5, progress=True)
    assert "10 of 10 points, 2 failed" in capsys.readouterr().err


def test_a_result_of_the_wrong_shape_is_named():
    table = sweep(lambda p: {"q": np.ones((2, 2))}, {"alpha": [1.0, 2.0]})
    assert "q of shape (2, 2)" in table.failed[0]["reason"]


def test_the_table_shows_itself(tmp_path):
    table = sweep(fussy, SMALL)
    assert repr(table) == "Sweep(alpha x lam: 5 x 2 = 10 points, 2 failed; q, sign, count, limit)"
    assert "<table" in table._repr_html_() and json.dumps(table.to_dict(), allow_nan=False)
    assert table.to_csv(tmp_path / "t.csv") == tmp_path / "t.csv" and (tmp_path / "t.csv").read_text() == table.to_csv()
    pytest.importorskip("pandas")
    assert table.to_dataframe().shape == (10, 8)
    with pytest.raises(UnknownName, match="sign"):
        table["sing"]


def run_script(folder: Path, csv: Path, workers: int, pause: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, sweep_problems.__file__, folder, csv, str(workers), str(pause)]
    return subprocess.Popen([str(c) for c in command])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children(pid: int) -> list[int]:
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(p) for p in out.split()]


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_bit(tmp_path, plain):
    """By turns with one worker and with two: what one began the other goes on with."""
    csv, folder, rng = tmp_path / "out.csv", tmp_path / "sweep", random.Random(1)
    kills = 0
    while kills < 10:
        process = run_script(folder, csv, 1 + kills % 2, pause=0.4)
        before = time.monotonic()
        moment = rng.uniform(0.1, 2.0)
        while process.poll() is None and time.monotonic() - before < moment:
            time.sleep(0.01)
        if process.poll() is not None:
            folder.rename(tmp_path / f"whole{kills}")  # finished before it was killed: once more from the start
            assert csv.read_text() == plain
            continue
        orphans = children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        deadline = time.monotonic() + 10
        while any(alive(p) for p in orphans) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(alive(p) for p in orphans)  # the workers end with the process that started them
    assert run_script(folder, csv, 2, pause=0.0).wait() == 0
    assert csv.read_text() == plain
    chunks = [json.loads(line)["chunk"] for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert sorted(chunks) == list(range(15))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # sockets that a killed worker left behind are collected whenever it pleases them
def test_a_dask_cluster_gives_the_same_bits_and_survives_its_workers(tmp_path, plain, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a cluster says about its dying workers is not ours
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            assert sweep(curve, GRID, chunk=8, executor=client).to_csv() == plain
            assert sweep(curve, GRID, chunk=8, executor=client.get_executor()).to_csv() == plain
            marks = tmp_path / "marks"
            marks.mkdir()
            table = sweep(partial(deadly, folder=str(marks), times=1), SMALL, executor=client, chunk=1)
            assert not table.failed and table["q"].tolist() == [1, 4, 9, 16, 25] * 2
