"""hermitex sweep: the same table after any number of kills, on processes and on a cluster; failures are counted."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hermitex as hx
from hermitex.face import cli

SPEC = """
[symbols]
a = "real"
[equations]
x = "a - x**3"
y = "E(abs(tanh(z + x)), z)"
[grid]
a = "0:1:30"
b = [1, 2]
[observables]
w = "b*x"
[sweep]
chunk = 5
"""


@pytest.fixture
def curve(tmp_path):
    path = tmp_path / "curve.toml"
    path.write_text(SPEC)
    return path


def ask(capsys, *argv, status=0):
    assert cli.main(["sweep", *map(str, argv), "--json"]) == status
    out, err = capsys.readouterr()
    return json.loads(out), err


def test_a_sweep_writes_its_table(curve, tmp_path, capsys):
    answer, err = ask(capsys, curve, "-o", tmp_path / "out", "--workers", "1")
    path = str(tmp_path / "out" / "table.csv")
    assert answer == {"points": 60, "converged": 60, "failed": 0, "path": path} and err == ""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(answer["path"], keep_default_na=False)
    assert list(frame.columns[:4]) == ["a", "b", "x", "y"] and (frame.x + frame.x**3 - frame.a).abs().max() < 1e-10
    assert (frame.w - frame.b*frame.x).abs().max() < 1e-14


def test_what_is_there_is_resumed_only_on_request(curve, tmp_path, capsys):
    out = tmp_path / "out"
    ask(capsys, curve, "-o", out, "--workers", "1", "--resume")
    table = (out / "table.csv").read_bytes()
    journal = (out / "journal.jsonl").read_bytes()
    assert cli.main(["sweep", str(curve), "-o", str(out), "--workers", "1"]) == 2
    assert "--resume" in capsys.readouterr().err
    (out / "journal.jsonl").write_bytes(journal[:len(journal)//2])
    ask(capsys, curve, "-o", out, "--workers", "1", "--resume")
    assert (out / "table.csv").read_bytes() == table and (out / "journal.jsonl").read_bytes().count(b"\n") == 12
    curve.write_text(SPEC.replace("a - x**3", "a - x**5"))
    assert cli.main(["sweep", str(curve), "-o", str(out), "--workers", "1", "--resume"]) == 2
    assert "belongs to another sweep" in capsys.readouterr().err


def test_points_that_fail_are_counted_and_the_status_says_so(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text('[symbols]\nx = "positive"\n[equations]\nx = "sqrt(a)/x"\n[grid]\na = [1, -1, 4]\n')
    answer, err = ask(capsys, path, "-o", tmp_path / "out", "--workers", "1", status=1)
    assert (answer["points"], answer["converged"], answer["failed"]) == (3, 2, 1)
    assert "1 of 3 points failed; the first, a = -1: " in err
    rows = (tmp_path / "out" / "table.csv").read_text().splitlines()
    assert rows[2].startswith("-1.0,nan") and not rows[2].endswith(",")


@pytest.mark.parametrize("text, options, told", [
    ('[equations]\nx = "alpha"\n', [], "[grid]: a sweep needs it"),
    ('[equations]\nx = "a + c"\n[grid]\na = [1]\n', [], "c has no value"),
    (SPEC, ["--workers", "0"], "--workers"),
    (SPEC, ["--workers", "2", "--scheduler", "tcp://x"], "not allowed with"),
    (SPEC, ["--scheduler", "nonsense://nowhere:1"], "--scheduler"),
])
def test_bad_input_is_one_line(text, options, told, tmp_path, capsys):
    if "nonsense" in " ".join(options):
        pytest.importorskip("distributed")
    (tmp_path / "s.toml").write_text(text)
    assert cli.main(["sweep", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" and told in err and err.count("\n") == 1


THEORY = """
theory = "one-step"
[functions]
sigma = "tanh"
target = "sin"
[parameters]
alpha0 = 20
eta = 3
lam = 0.1
[grid]
alpha = [0.2, 0.9, 3.0]
"""


def test_a_theory_is_swept_by_its_own_letters(tmp_path, capsys):
    path = tmp_path / "theory.toml"
    for change, first in (("", 0.0484829019195), ('[structure]\nrows = "gaussian"\n', 0.0484050487289)):
        path.write_text(THEORY + change)
        answer, _ = ask(capsys, path, "-o", tmp_path / f"out{len(change)}", "--workers", "1")
        names, *rows = (tmp_path / f"out{len(change)}" / "table.csv").read_text().splitlines()
        assert answer["converged"] == 3
        assert float(rows[0].split(",")[names.split(",").index("test_error")]) == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize("old, new, told", [
    ('"one-step"', '"two-step"', "theory: unknown theory 'two-step'; did you mean one-step"),
    ('"sin"', '"exp(z**2)"', "one-step: the target"), ("target", "targt", "did you mean target"),
    ('target = "sin"', "", "[functions] target: one-step needs it"), ("eta = 3", "", "only alpha0 was given"),
    ("lam = 0.1", "lam = -1", "[parameters]: one-step: lam = -1"), ("lam = 0.1", "", "lam has no value"),
    ("lam = 0.1", "lamb = 1", "[parameters] lamb: unknown parameter"),
    ("[parameters]", '[structure]\nrows = "cube"\n[parameters]', "rows is sphere or gaussian"),
    ("[parameters]", "[structure]\nshape = 1\n[parameters]", "[structure] shape"), ("0.2", "-0.2", "alpha = -0.2"),
    ("[functions]", '[equations]\nx = "alpha"\n[functions]', "a theory brings its own formulas"),
])
def test_a_mistake_in_a_theory_is_one_line(old, new, told, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(THEORY.replace(old, new))
    assert cli.main(["sweep", str(tmp_path / "s.toml"), "-o", str(tmp_path / "out"), "--workers", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and told in err and err.count("\n") == 1


def test_the_place_for_the_results_must_be_named(curve, capsys):
    assert cli.main(["sweep", str(curve)]) == 2
    assert "--output" in capsys.readouterr().err


def test_progress_goes_to_stderr_on_request(curve, tmp_path, capsys):
    answer, err = ask(capsys, curve, "-o", tmp_path / "out", "--workers", "1", "--progress")
    assert answer["points"] == 60 and "60 of 60 points, 0 failed" in err


LONG = SPEC.replace("0:1:30", "0:1:200").replace("b = [1, 2]", "b = [1, 2, 3, 4]")


def sweep(path, out, workers):
    return subprocess.Popen([sys.executable, "-m", "hermitex.face.cli", "sweep", str(path), "-o", str(out), "--resume",
                             "--workers", str(workers)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_bit(tmp_path):
    """By turns with one worker and with two: what one began the other goes on with."""
    path, rng, kills = tmp_path / "long.toml", random.Random(1), 0
    path.write_text(LONG)
    whole = sweep(path, tmp_path / "whole", 1)
    begun = time.monotonic()
    assert whole.wait() == 0
    duration = time.monotonic() - begun
    expected, out = (tmp_path / "whole" / "table.csv").read_bytes(), tmp_path / "killed"
    while kills < 10:
        process = sweep(path, out, 1 + kills % 2)
        time.sleep(rng.uniform(0.3, 1.0)*duration)
        if process.poll() is not None:  # it was done before its time had come: once more from the start
            assert (out / "table.csv").read_bytes() == expected
            out.rename(tmp_path / f"done{time.monotonic_ns()}")
            duration *= 0.8
            continue
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        time.sleep(0.3)  # its workers notice, and end
    assert sweep(path, out, 2).wait() == 0
    assert (out / "table.csv").read_bytes() == expected and expected.count(b"\n") == 801
    chunks = [json.loads(line)["chunk"] for line in (out / "journal.jsonl").read_text().splitlines()]
    assert sorted(chunks) == list(range(160))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_table(curve, tmp_path):
    distributed = pytest.importorskip("distributed")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster:
            address = cluster.scheduler_address
            assert cli.main(["sweep", str(curve), "-o", str(tmp_path / "a"), "--scheduler", address]) == 0
    assert cli.main(["sweep", str(curve), "-o", str(tmp_path / "b"), "--workers", "1"]) == 0
    assert (tmp_path / "a" / "table.csv").read_bytes() == (tmp_path / "b" / "table.csv").read_bytes()


# spec, and the curve that its points lie on; each theory without equations that are solved together
THEORIES = {
    "tree": ('[functions]\ntarget = "tanh"\n[structure]\nP = "2:1,3:1"\nepsilon1 = "1/2"\nscenario = "II"\n[grid]\nkappa = "1:4:5"',
             dict(target="tanh", P="2:1,3:1", epsilon1="1/2", scenario="II"), {"kappa": [1, 1.75, 2.5, 3.25, 4]}, "test_error"),
    "mean-field-parity": ('[structure]\nk = 3\n[grid]\nalpha = [0.25, 0.5]', dict(k=3), {"alpha": [0.25, 0.5]}, "samples"),
    "bayes-amp": ('[functions]\ntarget = "sign(z1*z2)"\n[structure]\nchannel = "flip:1/10"\n[grid]\nalpha = [3, 5]',
                  dict(target="sign(z1*z2)", channel="flip:1/10"), {"alpha": [3, 5]}, "M11"),
    "committee": ('[functions]\nsigma = "erf"\n[parameters]\ndimension = 90\n[grid]\nt = [0, 2, 1]\ngamma = [0.5]',
                  dict(sigma="erf"), {"t": [0, 1, 2], "dimension": 90, "gamma": 0.5}, "risk"),
    "spiked-covariance": ('[functions]\ntarget = "He2"\n[parameters]\ndimension = 90\n[grid]\ngamma_2 = [0.5]\nt = [1, 2]',
                          dict(target="He2"), {"t": [1, 2], "dimension": 90, "gamma_2": 0.5}, "omega"),
    "sgd": ('[functions]\nsigma = "He2"\ntarget = "He2"\n[parameters]\ndimension = 90\nstep = 0\n[grid]\nt = [1, 2]',
            dict(sigma="He2", target="He2"), {"t": [1, 2], "dimension": 90}, "m")}


@pytest.mark.parametrize("name", THEORIES)
def test_a_theory_that_has_no_system_is_swept(name, tmp_path, capsys):
    text, structure, numbers, column = THEORIES[name]
    (tmp_path / "spec.toml").write_text(f'theory = "{name}"\n{text}\n')
    answer, _ = ask(capsys, tmp_path / "spec.toml", "-o", tmp_path / "out", "--workers", "1")
    found = hx.curve(name, **structure, **numbers)
    rows = list(csv.DictReader(Path(answer["path"]).read_text().splitlines()))
    assert answer["failed"] == 0 and len(rows) == len(found)
    at = sorted(rows, key=lambda row: float(row[found.axis]))
    assert [float(r[column]) for r in at] == pytest.approx(found[column].tolist(), rel=1e-6)


def test_a_column_that_only_some_points_bring_is_nan_at_the_others(tmp_path, capsys):
    grid = "alpha = [0.5]\ndimension = [100, inf]"
    (tmp_path / "spec.toml").write_text(f'theory = "mean-field-parity"\n[structure]\nk = 3\n[grid]\n{grid}\n')
    answer, _ = ask(capsys, tmp_path / "spec.toml", "-o", tmp_path / "out", "--workers", "1")
    rows = {float(r["dimension"]): r for r in csv.DictReader(Path(answer["path"]).read_text().splitlines())}
    assert answer["failed"] == 0 and float(rows[100]["effective_dimension"]) == pytest.approx(3 + 97/10)
    assert [float(r["effective_dimension_exponent"]) for r in rows.values()] == [0.5, 0.5]
    assert rows[float("inf")]["effective_dimension"] == "nan"


def test_a_law_of_labels_travels_between_processes(tmp_path, capsys):
    text, *_ = THEORIES["bayes-amp"]
    (tmp_path / "spec.toml").write_text(f'theory = "bayes-amp"\n{text}\n')
    first, _ = ask(capsys, tmp_path / "spec.toml", "-o", tmp_path / "out", "--workers", "2")
    again, _ = ask(capsys, tmp_path / "spec.toml", "-o", tmp_path / "out", "--workers", "1", "--resume")
    assert first == again and again["converged"] == 2
