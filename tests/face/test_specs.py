"""Odd specs: each is read right, or refused in one line that names the place, in bounded time."""

import os
import random
import time

import numpy as np
import pytest

import hermitex as hx
from hermitex import sweep
from hermitex.errors import BadInput, HermitexError
from hermitex.face import cli, spec

BASE = {
    "equations": {"V": '"1/(lamda + Vhat)"', "Vhat": '"alpha/(1 + V)"'},
    "where": {"k": '"alpha**2"'},
    "observables": {"e": '"k*V"'},
    "parameters": {"lam": "0.1"},
    "grid": {"alpha": "[1, 2]"},
}


def text(sections, head=""):
    return head + "".join(f"[{s}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for s, rows in sections.items())


def solved(written):
    """V at alpha = 2, or the one line that refuses the spec."""
    try:
        found = spec.from_toml(written)
        table = sweep(found.system, found.grid, parameters=found.parameters)
        return float(table["V"][-1]), float(table["e"][-1])
    except HermitexError as error:
        assert "\n" not in str(error) and len(str(error)) < 400, str(error)
        return str(error)


TRUE = (0.844288770224761, 0.844288770224761*4)


def test_the_plain_spec():
    assert solved(text(BASE)) == pytest.approx(TRUE, rel=1e-10)


def doubled(draw):
    """A name of one section put into another one too."""
    sections = {s: dict(rows) for s, rows in BASE.items()}
    one, other = draw.sample(list(sections), 2)
    name = draw.choice(list(sections[one]))
    sections[other][name] = "[1, 2]" if other == "grid" else "1.5" if other == "parameters" else '"alpha/3"'
    return text(sections)


def respelt(draw):
    """The ridge under both of its names."""
    sections = {s: dict(rows) for s, rows in BASE.items()}
    sections[draw.choice(["parameters", "grid"])]["lamda"] = "0.2"
    return text(sections)


def overcalled(draw):
    """A function of one variable with more arguments, or one that is known."""
    sections = {s: dict(rows) for s, rows in BASE.items()}
    name = draw.choice(["f", "tanh", "erf", "Max"])
    count = 1 if name != "f" else draw.randint(2, 4)
    sections["observables"] = {"e": f'"{name}({", ".join(["alpha"]*count)})"'}
    sections["functions"] = {name: draw.choice(['"tanh"', '"z**2"', '"relu"'])}
    return text(sections)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("make", [doubled, respelt, overcalled])
def test_a_spec_that_says_two_things_is_refused(make, seed):
    told = solved(make(random.Random(seed)))
    assert isinstance(told, str), told


STRANGE = [
    "true", "[]", "[[1]]", "{}", "2020-01-01", '""', '"("', '"1:2"', '"1:2:0"', '"1:2:1e9"', '"1:2:99999999999"', "nan", "-inf",
    "9"*400, "9"*5000, '"__import__(1)"', '"z"', '"1/0"', '"alpha alpha"', '"' + "("*200 + "1" + ")"*200 + '"', "[1, true]",
    "[1, inf]", "1e400"]


@pytest.mark.parametrize("seed", range(40))
def test_a_strange_value_anywhere_is_refused(seed):
    draw = random.Random(seed)
    sections = {s: dict(rows) for s, rows in BASE.items()}
    section = draw.choice(list(sections))
    sections[section][draw.choice(list(sections[section]))] = value = draw.choice(STRANGE)
    begun = time.process_time()
    told = solved(text(sections))
    assert time.process_time() - begun < 3
    assert isinstance(told, str) or (section == "grid" and value == "[1, inf]" and np.isnan(told[0])), (section, value, told)


KEY = ".".join(["a"]*20000)


@pytest.mark.parametrize("written", [
    KEY + " = 1", "[" + KEY + "]\nx = 1", '"a".'*20000 + "a = 1", "a = {" + KEY + " = 1}", "a = " + "["*20000,
    "a = " + "["*20000 + "]"*20000, "a = " + "{a = "*20000 + "1" + "}"*20000, "x"*900_000, '"'*900_000, "a. "*300_000,
    "[equations]\n" + "V"*100_000 + ' = "1"', '[equations]\nV = "' + "+".join(["a"]*200_000) + '"', "[equations]\nV = 'a\0'",
    "[equations]\nV = " + "9"*100_000, "\n"*900_000, "[equations]\nx = 1\nx = 2"])
def test_what_is_no_spec_is_refused_soon(written):
    begun = time.process_time()
    with pytest.raises(HermitexError) as error:
        spec.from_toml(written)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400 and time.process_time() - begun < 3


def test_a_device_a_pipe_a_folder_and_a_huge_file_are_no_specs(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "large.toml").write_text("#" + "x"*1_000_001)
    for path in ("/dev/zero", "/dev/random", tmp_path / "pipe.toml", tmp_path, tmp_path / "large.toml", tmp_path / "none.toml"):
        for verb in (["sweep", str(path), "-o", str(tmp_path / "out")], ["generate", str(path)]):
            assert cli.main(verb) == 2
            told = capsys.readouterr().err
            assert told.count("\n") == 1 and str(path) in told


def test_no_other_file_is_read_without_an_end(tmp_path):
    """hx.load("/dev/zero") filled the memory; a pipe was waited for."""
    os.mkfifo(tmp_path / "pipe.npy")
    os.symlink("/dev/zero", tmp_path / "zero.npy")
    for name in ("pipe.npy", "zero.npy"):
        (tmp_path / "code.py").unlink(missing_ok=True)
        (tmp_path / "code.py").symlink_to(tmp_path / name)
        for read in (lambda n: hx.load(tmp_path / n), lambda n: _with_arrays(tmp_path, f"eta = '{n}'"),
                     lambda n: spec.load(f"{tmp_path}/code.py:s")):
            with pytest.raises(BadInput, match=r"is a device or a pipe, not a file$"):
                read(name)


@pytest.mark.parametrize("line, said", [
    ("eta = []", "it is empty"), ("eta = [1, nan]", "it holds nan"), ("eta = [1, inf]", "it holds inf"),
    ('eta = "k**k**k, 1..100"', "it holds inf"), ('eta = "k, 1..100000000000"', "the range 1..100000000000 has"),
    ('eta = "none.npy"', "no such file")])
def test_an_array_or_a_number_that_is_none_is_named(line, said, tmp_path):
    with pytest.raises(BadInput, match=rf"^\S+ridge.toml: \[arrays\] eta: .*{said}"):
        _with_arrays(tmp_path, line)


@pytest.mark.parametrize("section, number", [("parameters", "inf"), ("parameters", "-1e400"), ("grid", "[1, inf]")])
def test_an_infinite_number_is_named(section, number):
    with pytest.raises(BadInput, match=rf"^spec: \[{section}\] a: infinity is not a value"):
        spec.from_toml(f"[equations]\nV = 'a/(1 + V)'\n[{section}]\na = {number}")


@pytest.mark.parametrize("line", [
    "spectrum --sigma tanh --r 1 --r 2 --alpha 1 --beta 1",
    "curve random-features --sigma tanh --target sin --alpha 1 --lam 1 --lam=2",
    "spectrum --sigma tanh --r 1 --alpha 1 --beta 1 --normalisation p --normalization n", "mu tanh --order 1 --order 2"])
def test_an_option_that_is_given_twice_is_refused(line, capsys):
    assert cli.main(line.split()) == 2
    assert "give it once" in capsys.readouterr().err


def _with_arrays(folder, line: str) -> object:
    (folder/"ridge.toml").write_text('[symbols]\nnu = "positive"\nlam = "positive"\n[equations]\n'
                                     'nu = "(nu*Sum(eta[k]/(eta[k] + nu), k) + lam)/2"\n[parameters]\nlam = 0.1\n[arrays]\n' + line)
    return spec.load(str(folder/"ridge.toml"))


@pytest.mark.parametrize("line", ["eta = [1, 0.25, 0.1111111111111111]", 'eta = "k**(-2), 1..3"', 'eta = "eta.npy"',
                          'eta = "eta.csv"',
                                  'eta = "1/(1 + j)**2, 0..2"'])
def test_arrays_are_numbers_a_file_or_a_formula_with_a_range(tmp_path, line: str) -> None:
    np.save(tmp_path/"eta.npy", np.arange(1, 4.0)**-2)
    np.savetxt(tmp_path/"eta.csv", np.arange(1, 4.0)**-2)
    given = _with_arrays(tmp_path, line)
    found = given.formulas.solve({**given.parameters, **given.arrays})
    e, nu = np.arange(1, 4.0)**-2, found["nu"]
    assert (e/(e + nu)).sum() + 0.1/nu == pytest.approx(2, rel=1e-10)
    assert given.complete()


@pytest.mark.parametrize(("line", "words"), [
    ('eta = "absent.npy"', "no such file"), ("eta = 3", "a list of numbers"), ('eta = "k**2"', "range"), ('eta = "k**2, 5..1"',
    "entries"),
    ('eta = [1, "a"]', "list of numbers"), ('eta = "open(k), 1..3"', "unknown function"), ("beta = [1]", "no sum over it"),
    ('eta = "k**2, 1..999999999"', "entries"), ('eta = "a*k, 1..3"', "unknown name"), ("eta = [1]\n[grid]\neta = [1, 2]",
    "[arrays]")])
def test_arrays_that_are_none_get_one_line(tmp_path, line: str, words: str) -> None:
    with pytest.raises(BadInput) as told:
        _with_arrays(tmp_path, line)
    assert words in str(told.value) and "\n" not in str(told.value) and "ridge.toml" in str(told.value)


@pytest.mark.parametrize("text, key", [
    ('''theory = "ridge"
[parameters]
lam = 0.1
[arrays]
eigenvalues = "k**(-2), 1..50"
coefficients = [EIGHT]
multiplicity = [FIFTY]
[grid]
n = [10, 20]''', "bias"),
    ('''theory = "covariate"
[parameters]
lam = 0.1
[arrays]
Omega = [1, 0.5]
Psi = [1, 0.5]
Phi = [1, 0.5]
theta = [1, 1]
[grid]
alpha = [0.5, 1]''', "m"),
    ('''theory = "kernel-ridge"
[functions]
sigma = "relu"
target = "sign"
[parameters]
lam = 0.1
dimension = 30
[grid]
n = [10, 20]''', "bias")], ids=["ridge", "covariate", "kernel"])
def test_a_theory_takes_its_arrays_from_a_spec(tmp_path, text, key):
    text = text.replace("[EIGHT]", str([1/k for k in range(1, 51)])).replace("[FIFTY]", str([1]*50))
    found = spec.from_toml(text, where="s.toml")
    table = sweep(found.system, found.grid, parameters={**found.parameters, **found.arrays})
    axis = next(iter(found.grid))
    again = found.system.solve(**{axis: np.array(found.grid[axis])}, **found.parameters, **found.arrays)
    assert table[key] == pytest.approx(again[key], rel=1e-9)
    assert found.complete() and len(found.points()) == 2
    assert not spec.from_toml(text.replace("lam = 0.1", ""), where="s").complete()


def test_an_array_that_a_theory_does_not_take_is_named():
    with pytest.raises(BadInput, match=r"ridge takes no such array; the formulas sum over coefficients, eigenvalues, multiplicity"):
        spec.from_toml('theory = "ridge"\n[arrays]\neta = [1, 2]', where="s.toml")
