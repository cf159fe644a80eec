"""Whatever a user writes as prose or as a name: kernels, programs and exported files hold formulas, and say what was written."""

import ast
import importlib.util
import pickle
import random
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from itertools import count

import numpy as np
import pytest
from hostile import ODD, assert_nothing_ran, texts
from sympy import Function, Symbol, tanh

from hermitex import E, System, compile
from hermitex.errors import BadInput, HermitexError
from hermitex.kernels.generated_text import Names, comment_text, docstring_text, literal
from hermitex.kernels.source import load
from hermitex.kernels.whitelist import check_source
from hermitex.symbols import z
from hermitex.systems import export

V, a = Symbol("V", positive=True), Symbol("a", positive=True)
_modules = count()
HOW = {"tolerance": 1e-11, "method": "newton", "damping": 1.0}
NAMES = [
    "a^b", "a_b", r"\hat{q}", "hatq", "lambda", "lamda", "np", "s", "quad", "w_z", "z_", "average", "µ", "μ", "ｎｐ", "ﬁ", "fi",
    "CODE", "solve_all", "start", "tolerance", "numbers", "json", "help", "selftest", "t0", "E1", "x_{0, 1}", "q'", "q_prime",
    "class", "exec", "__import__", "kernel", "block_1", "self", "print", "power", "power_", "1q", "_1q", "q^{*}", "q^{(1)}",
    "V^{*}", "g1", "root1", "p1", "f", "omega", "k", "slope", "minimise", "None", "Code", "Block", "words", "given", "float",
    "dict", "prox_1", "main", "values", "D0'", "erf", "gamma", "x", "y"]
NO_NAMES = [
    "", " ", "x/y", 'a"b', "a'];b", "a\nb", "a;b", "x]", "x=1", "#", "\ud800", "a\0", "?", "a:b", "{}", "a\x1bb", "\u202ex",
    "x"*200]


def module(path):
    spec = importlib.util.spec_from_file_location(f"written_{next(_modules)}", path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_literals_docstrings_and_comments_say_what_was_meant(seed):
    for text in texts(seed, 2000):
        assert ast.literal_eval(literal(text)) == text
        assert ast.literal_eval(f'"""{docstring_text(text)}"""') == text
        tree = ast.parse(f'def f():\n    """{docstring_text(text)}"""\n    return 1  # {comment_text(text)}\n')
        assert len(tree.body) == 1 and len(tree.body[0].body) == 2
    assert_nothing_ran()


def together(found, size):
    return ["\n".join(found[k:k + size]) for k in range(0, len(found), size)]


@pytest.mark.parametrize("size", [10, pytest.param(3, marks=pytest.mark.slow)])
def test_a_source_and_a_title_are_prose(size, tmp_path):
    for k, text in enumerate(together(texts(3, 20), size)):
        system = System({V: 1/(a + V)}, source=text, name=text)
        assert system.solve(a=1.0)["V"] == pytest.approx((5**0.5 - 1)/2)
        path = tmp_path / f"file_{k}.py"
        path.write_text(export.render(system, [({"a": 1.0}, {"V": (5**0.5 - 1)/2})], how=HOW), encoding="utf-8")
        written = module(path)
        assert written.selftest() < 1e-12
        assert " ".join(text.split()) in written.__doc__ and (not text or f"Source: {text}" in written.__doc__)
        assert system.to_dict()["source"] == text
    assert_nothing_ran()


SOME = list(ODD)[::3]


@pytest.mark.slow
def test_files_with_odd_titles_run_by_themselves(tmp_path):
    """Each text says itself in the help of its file; several together, in a process that knows nothing of the package."""
    for k, text in enumerate([*SOME, *together(ODD, 9)]):
        path, system = tmp_path / f"{k}.py", System({V: 1/(a + V)}, source=text, name=text)
        if k >= len(SOME):
            system.export(path, reference={"a": 1.0})  # runs its self-test
            done = subprocess.run([sys.executable, "-I", path, "--help"], capture_output=True, text=True)
            assert done.returncode == 0, (text, done.stderr)
            continue
        path.write_text(export.render(system, [({"a": 1.0}, {"V": (5**0.5 - 1)/2})], how=HOW), encoding="utf-8")
        with pytest.raises(SystemExit) as end, redirect_stdout(StringIO()) as said:
            module(path).main(["--help"])
        assert end.value.code == 0 and "--selftest" in said.getvalue(), text


def test_names_are_identifiers_that_shadow_nothing(tmp_path):
    symbols = [Symbol(n, positive=True) for n in NAMES]
    total = sum((k + 1)*x for k, x in enumerate(symbols))
    numbers = {n: 0.1 + k/100 for k, n in enumerate(NAMES)}
    expected = sum((k + 1)*numbers[n] for k, n in enumerate(NAMES))
    assert compile(total)(**numbers) == pytest.approx(expected, rel=1e-13)
    own = {n: v for n, v in numbers.items() if n not in ("start", "tolerance", "numbers")}  # keywords of solve
    numbers, total = own, total.subs({x: 0 for x in symbols if x.name not in own})
    expected = sum((k + 1)*own[n] for k, n in enumerate(NAMES) if n in own)
    system = System({V: 1/(1 + V) + E(tanh(total*z/1000)**2, z)}, observables={Symbol("obs^{1}"): 2*V, Symbol("rhs"): 3*V})
    found = system.solve(numbers)
    other = System({V: 1/(1 + V) + E(tanh(a*z/1000)**2, z)}).solve(a=expected)
    assert found["V"] == pytest.approx(other["V"], rel=1e-11) and found["obs^{1}"] == 2*found["V"]
    system.export(tmp_path / "names.py", reference=numbers)
    written = module(tmp_path / "names.py")
    assert written.selftest() < 1e-12
    keywords = written.solve.__code__.co_varnames[:len(own)]
    assert len(set(keywords)) == len(own)
    assert {"a_b", "a_b_2", "hatq", "hatq_2", "lamda", "lamda_2"} <= set(keywords)
    options = [w for n, word in zip(written.EQUATIONS.parameters, keywords, strict=True) for w in (f"--{word}", repr(numbers[n]))]
    done = subprocess.run([sys.executable, "-I", tmp_path / "names.py", "--json", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_is_refused_in_one_line(name):
    odd = Symbol(name, positive=True)
    for make in (lambda: compile(odd), lambda: System({V: 1/(V + odd)}).compile(), lambda: System({odd: 1/(odd + 1)}).compile(),
                 lambda: System({V: 1/(V + 1)}, observables={odd: V}).compile(),
                 lambda: compile(E(tanh(odd*z), z, odd)) if name else compile(odd)):
        with pytest.raises(BadInput) as error:
            make()
        assert "\n" not in str(error.value)
    assert_nothing_ran()


def test_one_identifier_for_each_name_whatever_the_order():
    rng = random.Random(4)
    parts = ["a", "^", "_", "{", "}", "b", "'", "\\", " ", "2", "ａ", "np", "w"]
    for _ in range(300):
        drawn = {"".join(rng.choice(parts) for _ in range(rng.randint(1, 5))) for _ in range(12)}
        names, found = Names(), {}
        for name in sorted(drawn):
            try:
                found[name] = names(name)
            except BadInput:
                continue
        assert len(set(found.values())) == len(found) and all(n.isidentifier() for n in found.values())
        assert all(names(n) == i for n, i in found.items()) and "np" not in found.values()


def test_an_unknown_function_is_not_printed_as_a_call():
    for name in ("exec", "__import__", "f();x", "a\nb", "np.exp"):
        with pytest.raises(HermitexError):
            compile(Function(name)(a))(a=1.0)
    assert_nothing_ran()


REAL = compile(E(tanh(a*z + Symbol("b", real=True))**2, z)).source
STATEMENTS = [
    "open('f')", "exec('1')", "np.load = 1", "x = np.load('f')", "x = a.__class__", "global a", "x = (lambda: 1)()",
    "x = [i for i in (1,)]", "x = 'text'", "x = s[a]", "average = 1", "x = f'{a}'", "x = unset", "if a: pass",
    "x = np.fromfile('f')", "return 1", "(x := 1)", "x = np.where(a, 1, 2, out=s)", "x = average(a, 1, 1)(1)", "x = s",
    "x = np", "x, s['a'] = 1, 2", "x: print() = 1", "x = yield", "import os", "from os import system", "del a",
    "x = average", "x = a if a else a", "x = {**s}", "x = np.add.__globals__", "x = a[0]", "x = quad.get('z')", "x = `a`",
    "x = __builtins__", "x = (a for a in a)", "x = s['a'].tofile('f')", "x = kernel(s, quad)", "x = np.sqrt(*s)",
    "x = None", "x = ...",
]
PLANTED = [  # (a piece of a real source, what is put in its place)
    *(("    return {", f"    {statement}\n    return {{") for statement in STATEMENTS),
    *(("def kernel(s, quad):", f"{other}kernel(s, quad):") for other in (
        "@print\ndef ", "class A: pass\ndef ", "async def ", "print()\ndef ", "def a")),
    *(("(s, quad):", other) for other in (
        "(s, quad=print()):", "(s, quad: print()):", "(s, quad, *a):", "(s, quad) -> print():", "(quad, s):")),
    *(("import numpy as np", other) for other in (
        "import numpy as np\nimport os", "import os as np", "from os import system", "import numpy as np, os",
        "from numpy import load",
        "from .scipy.special import erf", "from scipy.special import *", "from scipy.special import erf as average")),
    (".sum(axis=axis", ".tofile('f', axis=axis"), ("values.shape[axis]", "print(values)"), ("def average(", "def average_("),
    ('"value"', "open('f')"), ('"value"', "**s, 'v'"), ("\n", "\n\0"),
]


@pytest.mark.parametrize(("piece", "planted"), PLANTED)
def test_a_source_with_anything_else_in_it_is_not_loaded(piece, planted):
    assert piece in REAL
    check_source(REAL)
    with pytest.raises(BadInput, match="was not written by this version"):
        load(REAL.replace(piece, planted, 1))


def test_a_pickled_kernel_with_another_source_is_not_run():
    kernel = compile(tanh(a))
    assert pickle.loads(pickle.dumps(kernel))(a=1.0) == np.tanh(1.0)
    state = pickle.dumps(kernel).replace(b"np.tanh", b"np.fooo")
    with pytest.raises(BadInput, match="was not written"):
        pickle.loads(state)(a=1.0)
