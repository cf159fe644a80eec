"""hermitex generate: a spec or a Python object becomes a solver; every mistake in a spec is one line that names it."""

import json
import subprocess
import sys

import pytest

import hermitex as hx
from hermitex.face import cli, spec

RIDGE = """
name = "Ridge regression"
source = "loureiro2021"

[symbols]
alpha = "positive"

[where]
gain = "1/(lam + Vhat)"

[equations]
Vhat = "alpha/(1 + V)"
qhat = "alpha*(rho + Delta + q - 2*m)/(1 + V)**2"
mhat = "alpha/(1 + V)"
V = "gain"
q = "(rho*mhat**2 + qhat)*gain**2"
m = "m*(lam + Vhat) = rho*mhat"

[observables]
test_error = "rho - 2*m + q"

[parameters]
rho = 1
Delta = 0.25

[grid]
alpha = "0.5:2:4"
lam = [0.1, 1]
"""


@pytest.fixture
def ridge(tmp_path):
    path = tmp_path / "ridge.toml"
    path.write_text(RIDGE)
    return path


def test_a_spec_becomes_a_solver_that_tests_itself(ridge, tmp_path, capsys):
    target = tmp_path / "solver.py"
    assert cli.main(["generate", str(ridge), "-o", str(target), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["path"], answer["equations"]) == (str(target), 6)
    assert answer["lines"] == len(target.read_text().splitlines())
    assert answer["blocks"] >= 2 and answer["selftest"]["passed"] and answer["selftest"]["deviation"] < 1e-12
    assert "6 of 6 equations" in answer["selftest"]["residuals"]
    done = subprocess.run([sys.executable, "-I", target, "--selftest"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "passed" in done.stdout
    options = ["--alpha", "2", "--lamda", "0.1", "--rho", "1", "--Delta", "0.25", "--json"]
    done = subprocess.run([sys.executable, "-I", target, *(o.replace("--lamda", "--lam") for o in options)],
                          capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["test_error"] == [pytest.approx(0.192665, abs=1e-6)]


def test_the_default_place_is_here_and_a_strange_file_is_left_alone(ridge, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # our own file is replaced
        assert cli.main(["generate", "ridge.toml"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("ridge_solver.py: 6 equations in ") and "selftest: 2 reference points" in out
    (tmp_path / "mine.py").write_text("x = 1\n")
    assert cli.main(["generate", "ridge.toml", "-o", "mine.py"]) == 2
    assert "not written by hermitex" in capsys.readouterr().err and (tmp_path / "mine.py").read_text() == "x = 1\n"


PYTHON = """
import hermitex as hx
from hermitex.symbols import V, Vhat, alpha, lamda

ridge = hx.System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
number = 3

def made():
    return ridge

def broken():
    return 1/0
"""


@pytest.mark.parametrize("name, told", [
    ("ridge", None), ("made", None), ("number", "number is a int, not a System"), ("ridg", "did you mean ridge"),
    ("broken", "ZeroDivisionError"), ("", "did you mean")])
def test_an_object_of_a_python_file(name, told, tmp_path, capsys):
    (tmp_path / "my.py").write_text(PYTHON)
    status = cli.main(["generate", f"{tmp_path / 'my.py'}:{name}", "-o", str(tmp_path / "out.py"), "--json"])
    out, err = capsys.readouterr()
    if told is None:
        assert status == 0 and json.loads(out)["equations"] == 2
    else:
        assert status == 2 and err.count("\n") == 1 and (told in err or name == "")


def test_functions_are_put_in_and_an_expectation_may_name_its_variable():
    found = spec.from_toml("""
        [functions]
        sigma = "tanh"
        [where]
        mu_1 = "E(z*sigma(r*kappa + z), z)"
        [equations]
        x = "E(mu_1**2*E(z1*sigma(z1), z1), kappa)/(1 + x)"
        y = "E(abs(z), z)*x"
        """)
    assert [str(p) for p in found.system.parameters] == ["r"]
    solution = found.system.solve(r=0.5)
    assert solution["y"] == pytest.approx(solution["x"]*(2/3.141592653589793)**0.5)


def test_a_named_argument_is_random_where_it_is_averaged():
    """With s = r kappa + sqrt(c) z a name of its own, E(sigma(s), z) is still an average over z."""
    lines = {"short": ('s = "r*kappa + sqrt(c)*z"', "sigma(s)"), "long": ("", "sigma(r*kappa + sqrt(c)*z)")}
    found = [spec.from_toml(f"""
        [functions]
        sigma = "tanh"
        [where]
        {where}
        mu_0 = "E({body}, z)"
        [equations]
        x = "E(mu_0**2, kappa)/(1 + x)"
        """).system.solve(r=1, c=1)["x"] for where, body in lines.values()]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_numbers_and_ranges_are_exact():
    found = spec.from_toml('[equations]\nx = "a*b + c"\n[parameters]\nb = "1/3"\nc = 2\n'
                           '[grid]\na = "0:1:5"\n[sweep]\nchunk = 7')
    assert found.grid == {"a": [0, 0.25, 0.5, 0.75, 1]}
    assert found.parameters == {"b": 1/3, "c": 2.0} and found.chunk == 7


X = '[equations]\nx = "1/(1 + x + alpha)"\n'


@pytest.mark.parametrize("text, told", [
    ("", "[equations]: a spec has a theory or at least one equation"),
    ("x = ", "not TOML"),
    ("[equations]\nx = 1/(1 + x)  # mine", 'a formula is a text in quotes, x = "1/(1 + x)"'),
    ('[theory]\nname = "one-step"', 'on a line above the sections, theory = "..."'),
    ("[equation]\nx = '1'", "[equation]: unknown section 'equation'; did you mean equations"),
    ("equations = 3", "[equations]: it is a section"),
    ("name = 3\n" + X, "name: it is a text"),
    ('theory = "one-stp"', "theory: unknown theory 'one-stp'"),
    ('theory = "one-step"\n' + X, "[equations]: a theory brings its own formulas"),
    ('[equations]\nx = "1 +"', "[equations] x: cannot read"),
    ('[equations]\nx = "lambda + 1"', "[equations] x: cannot read"),
    ('[equations]\nx = "1 + yy"', "[equations] x: cannot read '1 + yy': unknown name 'yy'"),
    ('[equations]\nx = "1 + yy"', 'declare it, [symbols] yy = "real"'),
    ('[equations]\nx = "__import__(1)"', "[equations] x"),
    ("[equations]\nx = true", "[equations] x: a formula is a text"),
    ('[equations]\nx = "x = x"', "[equations] x: both sides are the same"),
    ('[equations]\nx = "z*x"', "[equations]: System: the standard normal z occurs outside"),
    ('[equations]\nz = "1"', "[equations] z: z is a standard normal"),
    ('[equations]\n"a b" = "1"', "[equations] a b: 'a b' is not a name"),
    ('[symbols]\na = "positiv"\n' + X, "[symbols] a: unknown assumption on a: 'positiv'; did you mean positive"),
    ("[symbols]\na = 1\n" + X, "[symbols] a: a letter is declared by a word"),
    ('[where]\nb = "c1"\nc1 = "b"\n[equations]\nx = "b"', "circle"),
    (X + "[functions]\nsigma = 'tanh'", "[functions] sigma: unknown function of the system 'sigma'"),
    ('[functions]\ns = "tahn"\n[equations]\nx = "s(x)"', "[functions] s"),
    (X + "[parameters]\nb = 1", "[parameters] b: unknown parameter 'b'"),
    (X + "[parameters]\nalpha = 'one'", "[parameters] alpha: 'one' in 'one' is not a number"),
    (X + "[parameters]\nalpha = nan", "[parameters] alpha: NaN"),
    (X + "[parameters]\nalpha = [1, 2]", "[parameters] alpha: a number is needed; several values go into [grid]"),
    (X + "[parameters]\nalpha = 1\n[grid]\nalpha = [1]", "[parameters] and [grid]: alpha has two values; give it once"),
    (X + "[grid]\nalpha = []", "[grid] alpha: it is empty"),
    (X + "[grid]\nalpha = '0:1'", "[grid] alpha: a range is written first:last:points"),
    (X + "[grid]\nalpha = [true]", "[grid] alpha: a number is needed"),
    (X + "[sweep]\nchunks = 3", "[sweep] chunks: unknown option 'chunks'; did you mean chunk"),
    (X + "[sweep]\nchunk = 0", "[sweep] chunk: a whole number"),
    (X + "[sweep]\ntolerance = 2", "[sweep] tolerance: a number between 0 and 1"),
])
def test_every_mistake_is_one_line_with_its_place(text, told, tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(text)
    assert cli.main(["generate", str(path), "-o", str(tmp_path / "out.py")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and told in err and "s.toml" in err
    assert not (tmp_path / "out.py").exists()


@pytest.mark.slow
def test_a_theory_becomes_a_solver(tmp_path, capsys):
    path = tmp_path / "theory.toml"
    path.write_text('theory = "one-step"\n[functions]\nsigma = "tanh"\ntarget = "sin"\n'
                    "[parameters]\nalpha0 = inf\neta = 3\nlam = 0.1\n[grid]\nalpha = '0.2:3:3'\n")
    assert cli.main(["generate", str(path), "-o", str(tmp_path / "solver.py"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["equations"] == 13 and answer["blocks"] == 5
    assert answer["selftest"]["points"] == 2 and answer["selftest"]["passed"]


@pytest.mark.parametrize("argument", ["nowhere.toml", "nowhere.py:S", "nowhere.py", "."])
def test_a_missing_file_is_said(argument, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["generate", argument]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("text, unknown, value", [
    ('theory = "committee"\n[functions]\nsigma = "erf(z/sqrt(2))"\n[parameters]\ngamma = 1\ndimension = 100\n[grid]\nt = "0:2:3"',
     "risk", lambda: hx.curve("committee", sigma="erf(z/sqrt(2))", t=[2], gamma=1, dimension=100).risk[0]),
    ('theory = "spiked-covariance"\n[functions]\ntarget = "He2"\n[parameters]\ngamma_2 = 0.5\ndimension = 100\nt = 1', "omega",
     lambda: hx.curve("spiked-covariance", target="He2", t=[1], gamma_2=0.5, dimension=100)["omega"][0])])
def test_a_path_in_time_becomes_a_solver_that_starts_where_the_theory_does(text, unknown, value, tmp_path, capsys):
    (tmp_path / "spec.toml").write_text(text)
    assert cli.main(["generate", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "made.py"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["selftest"]["passed"]
    asked = f"import made; n, v = made.REFERENCE[0]; print(v[{unknown!r}])"
    done = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(value(), rel=1e-6)


def test_a_theory_without_equations_is_no_solver_and_says_what_solves_it(tmp_path, capsys):
    (tmp_path / "spec.toml").write_text('theory = "mean-field-parity"\n[grid]\nalpha = "0:1:3"')
    assert cli.main(["generate", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "made.py")]) == 2
    said = capsys.readouterr().err
    assert "hermitex curve mean-field-parity" in said and "hermitex sweep" in said and said.count("\n") == 1
    assert cli.main(["sweep", str(tmp_path / "spec.toml"), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
