"""An exported file gives the numbers of the session, to 1e-12, with NumPy alone; and mpmath agrees with both."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import mpmath
import numpy as np
import pytest
from sympy import Eq, Rational, Symbol, cos
from written import CATALOGUE, written

from hermitex import Flow, System
from hermitex.errors import BadInput, HermitexError, NotConverged
from hermitex.symbolic.precise import evaluate
from hermitex.symbols import V, Vhat, alpha
from hermitex.systems import export
from hermitex.systems.scope import written_out

QUICK = [n for n in CATALOGUE if ("step" not in n and "GLM" not in n) or "tanh and sin" in n]
SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in CATALOGUE if n not in QUICK]
_numbers = count()


def load(path):
    """The file as a module."""
    spec = importlib.util.spec_from_file_location(f"exported_{next(_numbers)}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """{name of a system: its file as a module}, each written once."""
    folder, done = tmp_path_factory.mktemp("exported"), {}

    def get(name):
        if name not in done:
            system, points = written(name)
            path = folder / f"solver_{len(done)}.py"
            export.write(system, path, reference=points, check=False)
            done[name] = load(path)
        return done[name]

    return get


def deviation(module, system, **numbers):
    """The largest relative difference between the file and the session; values below 1e-9 count as 1e-9."""
    here, there = system.solve(numbers), module.solve(**numbers)
    assert set(here.value) <= set(there)
    return max(float(np.max(np.abs(there[n] - here[n])/np.maximum(np.abs(here[n]), 1e-9))) for n in here.value)


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_the_file_gives_the_numbers_of_the_session(name, exported):
    system, points = written(name)
    module = exported(name)
    for point in points:
        assert deviation(module, system, **point) < 1e-12
    batch = {**points[0], "alpha": np.linspace(0.8, 1.3, 6)*points[0]["alpha"]}
    assert deviation(module, system, **batch) < 1e-12
    assert module.selftest() < 1e-12


# Double integrals at 20 digits take mpmath minutes; the session's residual stands for them.
@pytest.mark.parametrize("name", [n for n in QUICK if "step" not in n and "correlated" not in n])
def test_mpmath_finds_no_residual_in_what_the_file_solves(name, exported):
    system, points = written(name)
    for point in points:
        found = exported(name).solve(**point)
        exact = {**{p: Rational(point[p.name]) for p in system.parameters},
                 **{u: Rational(float(found[u.name])) for u in system.unknowns}}
        for u, v in system.equations.items():
            formula = written_out(v.lhs - v.rhs if isinstance(v, Eq) else u - v, system.where)
            assert abs(evaluate(formula, 20, exact)) < 1e-9*max(1, abs(found[u.name]))


def test_the_reference_of_the_literature():
    """Ridge regression at alpha = 2, lamda = 0.1, Delta = 0.25, rho = 1: numbers worked out by hand."""
    system, _ = written("ridge")
    found = system.solve(alpha=2, lamda=0.1, Delta=0.25, rho=1)
    expected = {"V": 0.844289, "q": 1.023807, "m": 0.915571, "test_error": 0.192665}
    assert {n: round(float(found[n]), 6) for n in expected} == expected


def run(path, *options):
    return subprocess.run([sys.executable, "-I", str(path), *options], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def ridge_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ridge") / "solver.py"
    written("ridge")[0].export(path)
    return path


def test_the_file_tests_itself_and_prints_tables(ridge_file):
    done = run(ridge_file, "--selftest")
    assert done.returncode == 0 and re.match(r"selftest: 3 points, largest deviation \S+: passed\n", done.stdout)
    table = run(ridge_file, "--alpha", "0.5,2", "--lam", "0.1", "--Delta", "0.25", "--rho", "1")
    assert table.returncode == 0 and len(table.stdout.splitlines()) == 3 and "0.84428877" in table.stdout
    found = run(ridge_file, "--alpha", "1:2:3", "--lamda", "0.1,1", "--Delta", "0", "--rho", "1", "--json")
    values = json.loads(found.stdout)
    assert values["alpha"] == [1, 1, 1.5, 1.5, 2, 2] and len(values["V"]) == 6
    missing = run(ridge_file, "--alpha", "1")
    assert missing.returncode == 2 and "--lamda" in missing.stderr and "--rho" in missing.stderr


def test_a_file_that_fails_its_own_self_test_is_not_written(tmp_path, monkeypatch):
    system, points = written("ridge")
    (tmp_path / "solver.py").write_text("old")
    right = export.render
    for before, after in [("V_again = 1/t0", "V_again = 1.0001/t0"), ("def block_1", "import hermitex\n\n\ndef block_1")]:
        monkeypatch.setattr(export, "render", lambda *a, b=before, c=after, **k: right(*a, **k).replace(b, c))
        with pytest.raises(HermitexError, match=r"^export: the file fails its own self-test, nothing was written: .*$"):
            system.export(tmp_path / "solver.py", reference=points)
        assert [p.name for p in tmp_path.iterdir()] == ["solver.py"] and (tmp_path / "solver.py").read_text() == "old"


NUMBERS = ("--lam", "0.1", "--Delta", "0.25", "--rho", "1")


def test_what_is_no_number_is_said_in_one_line(ridge_file, monkeypatch, capsys):
    monkeypatch.chdir(ridge_file.parent)
    os.mkfifo("pipe.npy")
    for name, array in (("complex.npy", [1 + 1j]), ("date.npy", np.array(["2020-01-01"], "M8[s]")), ("none.npy", [])):
        np.save(name, array)
    open("empty.npy", "w").close()
    module = load(ridge_file)
    for values in ("x", "", "1,,2", "1:2", "1:2:3:4", "1:2:0", "1:2:-3", "1:2:1e3", "0:1:1000000000", "absent.npy", "pipe.npy",
                   "complex.npy", "date.npy", "none.npy", "empty.npy", "nan", "1e400"):
        with pytest.raises(SystemExit, match="2"):
            module.main([f"--alpha={values}", *NUMBERS])
        done = capsys.readouterr()
        assert not done.out and re.search(r"\n.*: error: .*alpha.*\n\Z", done.err), values


@pytest.mark.slow
@pytest.mark.parametrize("ends, status, said", [
    ("| head -n 1", 0, r".* alpha .*\n"), (">/dev/full", 2, "standard output: No space left on device\n"),
    (">&-", 2, "standard output: it is closed\n"), ("--alpha x 2>&-", 2, ""), ("2>&- >&-", 2, "")])
def test_streams_that_are_closed_or_full(ends, status, said, ridge_file):
    given = " ".join(NUMBERS if "x" in ends else ("--alpha", "0.5:2:2000", *NUMBERS))
    line = f"set -o pipefail; {sys.executable} -I {ridge_file} {given} {ends}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == status and re.fullmatch(said, done.stdout + done.stderr)


@pytest.mark.slow
def test_an_interrupt_is_one_line(ridge_file):
    """It comes while the file solves."""
    code = ("import os, runpy, signal, sys, threading\nsys.argv = ['solver.py', *sys.argv[2:]]\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background ignores it
            "threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            f"runpy.run_path({str(ridge_file)!r}, run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code, "", "--alpha", "0.5:2:1000", "--lam", "0.01:1:900", *NUMBERS[2:]],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 130 and done.stderr == "interrupted\n" and not done.stdout


def test_a_planted_error_fails_the_self_test(ridge_file, tmp_path):
    text = ridge_file.read_text()
    for before, after in [("V_again = 1/t0", "V_again = 1.0001/t0"), ('s["mhat"]', 's["m"]')]:
        assert before in text
        (tmp_path / "wrong.py").write_text(text.replace(before, after))
        done = run(tmp_path / "wrong.py", "--selftest")
        assert done.returncode == 1 and ("FAILED" in done.stdout or "Error" in done.stderr)


def test_the_file_needs_numpy_alone_and_shows_the_formulas(ridge_file, exported):
    for path in (ridge_file, Path(exported("one step, tanh and sin").__file__)):
        imported = {(n.module or "" if isinstance(n, ast.ImportFrom) else n.names[0].name).split(".")[0]
                    for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Import | ast.ImportFrom)}
        assert imported <= {*sys.stdlib_module_names, "numpy"}
    doc = ast.get_docstring(ast.parse(ridge_file.read_text()))
    for line in ["Vhat = alpha/(V + 1)", "q = (mhat**2*rho + qhat)/(Vhat + lamda)**2", "(qhat, q): linear",
                 "author = {Loureiro"]:
        assert line in doc
    assert max(map(len, ridge_file.read_text().splitlines())) < 170 and len(ridge_file.read_text().splitlines()) < 630
    special = Path(exported("special functions").__file__).read_text()
    assert "from scipy.special import erf" in special and "needs NumPy and SciPy" in special


def test_the_file_is_clean_code(ridge_file, exported):
    pytest.importorskip("ruff")
    files = [str(ridge_file), *(exported(n).__file__ for n in ("one step, tanh and sin", "kinks that move"))]
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,E9", "--ignore", "F841"]
    done = subprocess.run([*ruff, *files], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_same_system_gives_the_same_file(tmp_path):
    system, points = written("kinks that move")
    for name in ("a.py", "b.py"):
        system.export(tmp_path / name, reference=points)
    assert (tmp_path / "a.py").read_bytes() == (tmp_path / "b.py").read_bytes()


def test_what_does_not_converge_is_said_with_its_place(exported):
    x = Symbol("x", real=True)
    module = exported("ridge")
    with pytest.raises(module.NotSolved, match=r"1 of 2 points .* the first at .*alpha = -3"):
        module.solve(alpha=np.array([1.0, -3.0]), lamda=0.1, Delta=0.1, rho=1.0)
    with pytest.raises(ValueError, match="lamda holds nan; every parameter must be finite"):
        module.solve(alpha=1.0, lamda=np.nan, Delta=0.1, rho=1.0)
    with pytest.raises(NotConverged, match="none of the points"):
        System({x: x**2 + x + 1 + alpha**2}).export("never.py")
    assert not Path("never.py").exists()


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    system, points = written("ridge")
    with pytest.raises(BadInput, match="nowhere' does not exist"):
        system.export(tmp_path / "nowhere" / "solver.py", reference=points)
    (tmp_path / "solver.py").write_text("old")
    monkeypatch.setattr(export, "evaluate_residual", lambda *a: mpmath.mpf(1))
    with pytest.raises(HermitexError, match=r"off by 1\.0e\+00"):
        system.export(tmp_path / "solver.py", reference=points)
    assert (tmp_path / "solver.py").read_text() == "old"


@pytest.mark.parametrize(("how", "said"), [
    ({"c": [1, 2]}, r"c = \[1, 2\] is not a number; give several points as a list"),
    ({"reference": 3}, "3 is not a point; give reference="),
    ({"reference": [3]}, "3 is not a point"), ({"reference": {"c": 1}, "c": 2}, "reference= and c= are both points"),
    ({"method": "bisect", "c": 1}, "unknown method 'bisect'; there are iterate, newton"), ({"d": 1}, "unknown parameter 'd'"),
    ({"damping": 0.5, "c": 1}, "needs method='iterate'")])
def test_what_is_no_point_of_a_self_test_is_one_line(how, said, tmp_path):
    x, c = Symbol("x", real=True), Symbol("c", real=True)
    with pytest.raises(BadInput, match=said):
        System({x: c*cos(x)}).export(tmp_path/"file.py", **how)
    assert not list(tmp_path.iterdir())


def test_rows_that_are_solved_are_printed_beside_one_that_is_not(tmp_path):
    x, c = Symbol("x", real=True), Symbol("c", real=True)
    System({x: x**2 + c}, start={x: 0}).export(tmp_path/"file.py", reference={"c": -1})  # two real roots below c = 1/4
    done = run(tmp_path/"file.py", "--c=-2,1,0.1")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 1 and "1 of 3 points did not converge, the first at c = 1" in done.stderr
    assert rows[0][:2] == ["c", "x"] and [r[1] for r in rows[1:]] == ["-1", "nan", "0.11270167"]
    listed = run(tmp_path/"file.py", "--c=-2,1,0.1", "--json")
    assert listed.returncode == 1 and json.loads(listed.stdout)["x"] == pytest.approx([-1, None, 0.5 - 0.15**0.5])
    assert (none := run(tmp_path/"file.py", "--c=1,2")).returncode == 1 and not none.stdout and "2 of 2 points" in none.stderr
    y = Symbol("y", real=True)
    Flow({y: y**2 + c}, start={y: 1}).export(tmp_path/"flow.py", reference={"c": -1, "t": 1})
    path = run(tmp_path/"flow.py", "--c=-1,3", "--t", "0,0.5,2", "--json")  # the second one runs off before t = 2
    assert path.returncode == 1 and json.loads(path.stdout)["y"] == pytest.approx([1, 1, 1, None, None, None])


def test_a_start_and_a_tolerance_on_the_command_line_of_a_file(tmp_path):
    x, c = Symbol("x", real=True), Symbol("c", real=True)
    System({x: c*x**2/(1 + x**2)}).export(tmp_path/"file.py", c=3.0, start={"x": 0.5})
    lower, upper, loose = (run(tmp_path/"file.py", "--c", "3", *more).stdout.split() for more in
                           ([], ["--start", "x=3"], ["--start", "x=3", "--tolerance", "1e-4"]))
    assert [lower[6], upper[6]] == ["0.38196601", "2.618034"]  # (3 -+ sqrt(5))/2
    assert abs(float(loose[6]) - 2.618034) < 3e-4
    for wrong, said in ((["--start", "y=3"], "unknown name in start 'y'; there is x"), (["--start", "x"], "UNKNOWN=NUMBER"),
                        (["--tolerance", "-1"], "is not a number between 0 and 1")):
        done = run(tmp_path/"file.py", "--c", "3", *wrong)
        assert done.returncode == 2 and said in done.stderr


def test_names_that_python_reserves_are_spelled_otherwise(tmp_path):
    ridge = System({Vhat: alpha/(1 + V), V: 1/(Symbol("lambda", positive=True) + Vhat)})
    ridge.export(tmp_path / "solver.py", reference={"alpha": 1.0, "lambda": 0.1})
    assert load(tmp_path / "solver.py").solve(alpha=2.0, lamda=0.1)["V"] == pytest.approx(0.844289, abs=1e-6)


def test_a_parameter_keeps_its_name_in_the_file(tmp_path, capsys):
    """What means something within the formulas means nothing to `solve`: s was --s_, and --s a part of two options."""
    names = ["s", "np", "quad", "tables", "t", "h"]
    given = {n: 0.5 + k for k, n in enumerate(names)}
    x = Symbol("x", positive=True)
    system = System({x: sum(Symbol(n, positive=True) for n in names)/(1 + x)})
    (tmp_path / "solver.py").write_text(export.render(system, [(given, system.solve(given).value)], how={"tolerance": 1e-11}))
    module = load(tmp_path / "solver.py")
    assert module.main(["--json", *(f"--{n}={v}" for n, v in given.items())]) == 0 and module.selftest() == 0
    assert module.solve(**given)["x"] == json.loads(capsys.readouterr().out)["x"][0]
    with pytest.raises(SystemExit):
        module.main(["--tab=1", *(f"--{n}=1" for n in names)])
    assert "unrecognized arguments: --tab" in capsys.readouterr().err


def test_a_system_without_parameters(tmp_path):
    x = Symbol("x", positive=True)
    System({x: 1/(1 + x)}).export(tmp_path / "solver.py")
    module = load(tmp_path / "solver.py")
    assert module.solve()["x"] == pytest.approx((5**0.5 - 1)/2, rel=1e-12)
    assert run(tmp_path / "solver.py").returncode == 0


def test_a_file_begins_where_the_session_began(tmp_path):
    """x = x^2 + alpha is solved by two numbers: the start says which of them the file finds."""
    x = Symbol("x", real=True)
    system = System({x: Eq(x**2 + alpha, x)})
    low, high = (lambda a: (1 - np.sqrt(1 - 4*a))/2), (lambda a: (1 + np.sqrt(1 - 4*a))/2)
    for name, begin, root in (("low", {}, low), ("high", {"x": 2.0}, high)):
        system.export(tmp_path / f"{name}.py", reference={"alpha": 0.1}, start=begin)
        module = load(tmp_path / f"{name}.py")
        assert module.selftest() < 1e-12 and module.solve(alpha=0.2)["x"] == pytest.approx(root(0.2), rel=1e-12)
    table = run(tmp_path / "high.py", "--alpha", "0.2", "--json")
    assert json.loads(table.stdout)["x"] == pytest.approx([high(0.2)], rel=1e-12)
    assert module.solve(alpha=0.2, start={})["x"] == pytest.approx(low(0.2), rel=1e-12)
    for wrong in ({"y": 1.0}, {"x": "much"}, {"x": [1.0, 2.0]}, {"x": float("nan")}):
        with pytest.raises(HermitexError):
            system.export(tmp_path / "never.py", reference={"alpha": 0.1}, start=wrong)
    assert not (tmp_path / "never.py").exists()
