"""What is wrong in a system of laws, arrays, matrices and flows is said in one line that names it."""

from itertools import combinations

import numpy as np
import pytest
from sympy import Idx, ImmutableMatrix, IndexedBase, Sum, Symbol, eye, symbols, tanh
from sympy.stats import Bernoulli, Exponential, Poisson, Rademacher, Uniform

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.face.spec import from_toml
from hermitex.symbols import z

a = symbols("a", real=True)
V = symbols("V", positive=True)
eta, beta = IndexedBase("eta"), IndexedBase("beta")
k = Idx("k", Symbol("N", integer=True))
GLM = hx.theories.glm()
PLAIN = hx.System({V: a/(1 + V)})
MODES = hx.System({V: 1 + Sum(eta[k]*beta[k]/(eta[k] + V), k)})
Q11, Q12, Q22 = symbols("Q11 Q12 Q22", real=True)
Q = ImmutableMatrix([[Q11, Q12], [Q12, Q22]])
LAWS = {"Rademacher": lambda n: Rademacher(n), "Bernoulli": lambda n: Bernoulli(n, a), "Poisson": lambda n: Poisson(n, 2),
        "Exponential": lambda n: Exponential(n, 1), "Uniform": lambda n: Uniform(n, 0, 1)}


@pytest.mark.parametrize("one, other", list(combinations(LAWS, 2)))
def test_one_letter_has_one_law(one, other):
    """Two laws of one name are two variables to SymPy, and were averaged as such."""
    with pytest.raises(BadInput, match="x is the name of two laws") as caught:
        hx.E(tanh(LAWS[one]("x") + z)*LAWS[other]("x"))
    assert "\n" not in str(caught.value)
    for law in (one, other):
        with pytest.raises(BadInput, match="z is the name of a law"):
            hx.E(tanh(LAWS[law]("z") + z))
        with pytest.raises(BadInput, match="x is the name of a law"):
            hx.E(tanh(LAWS[law]("x") + Symbol("x", real=True)*z), z, LAWS[law]("x"))
        assert hx.E(LAWS[law]("x")) == hx.E(LAWS[law]("y"))


def spec(**sections):
    return from_toml("\n".join(f"[{name}]\n{lines}" for name, lines in sections.items()))


@pytest.mark.parametrize("wrong, says", [
    (lambda: MODES.solve(eta=[1.0], betta=[1.0]), "beta has no value.*is betta meant"),
    (lambda: MODES.follow("eta", (0, 1), beta=[1.0]), "eta is an array"),
    (lambda: hx.System({Q: a*Q + eye(2)}).solve(a=0.5, start={"Q": [[1, 2, 3]]}), "Q is 2 by 2, and its start is 1 by 3"),
    (lambda: spec(equations='q = "1/(1 + q)"', domain="q = 1"), r"^spec: \[domain\] q: an open interval is a text"),
    (lambda: hx.System({V: 10**400/(1 + V)}).solve(), "beyond the largest number that a float holds"),
    (lambda: hx.mu("tanh", 1)(kappa=a, r="1 1", c=1), "an operator is missing"),
    (lambda: spec(flow='q = "q = -q"'), "only the rate dq/dt"),
    (lambda: PLAIN.branches([{"V": 1}], a=1), "starts have names"),
    (lambda: PLAIN.branches({"one": 3}, a=1), "start is a mapping"),
])
def test_it_is_said_in_one_line(wrong, says):
    with pytest.raises(BadInput, match=says) as caught:
        wrong()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [0, -1, 1, 5.0, float("nan"), float("inf"), "x", None, True, [1e-9]], ids=repr)
def test_a_tolerance_that_is_none_is_refused(wrong, tmp_path):
    """-1 and inf were taken, and what came of them was called converged."""
    flow = hx.Flow({V: -V}, start={V: 1})
    ways = [lambda: PLAIN.solve(a=1, tolerance=wrong), lambda: PLAIN.solve(a=1, tolerance=wrong, method="iterate"),
            lambda: PLAIN.branches(a=1, tolerance=wrong), lambda: PLAIN.follow("a", (1, 2), tolerance=wrong),
            lambda: PLAIN.minimise("V", over="a", bounds=(1, 2), tolerance=wrong), lambda: flow.solve(t=1, tolerance=wrong),
            lambda: PLAIN.export(tmp_path/"file.py", tolerance=wrong), lambda: GLM.solve(alpha=1, lam=1, tolerance=wrong),
            lambda: hx.compile(a*z, tolerance=wrong), lambda: hx.sweep(PLAIN, {"a": [1]}, tolerance=2 if wrong is None else wrong)]
    for way in ways:
        with pytest.raises(BadInput, match=r"^tolerance = .* is not a number between 0 and 1$"):
            way()


@pytest.mark.parametrize("wrong", [-1, float("nan"), "x", True, [1]], ids=repr)
def test_a_budget_that_is_none_is_refused(wrong):
    for way in (lambda: PLAIN.solve(a=1, budget=wrong), lambda: hx.sweep(PLAIN, {"a": [1]}, budget=wrong)):
        with pytest.raises(BadInput, match=r"^budget = .* is not a number of seconds$"):
            way()


@pytest.mark.parametrize("wrong", [np.array([1 + 1j]), np.datetime64("2020-01-01"), np.timedelta64(3, "s")], ids=str)
def test_numbers_of_which_a_part_would_be_kept_are_refused(wrong):
    for way in (lambda: PLAIN.solve(a=wrong), lambda: PLAIN.solve(a=1, start={next(iter(PLAIN.equations)): wrong}),
                lambda: hx.sweep(PLAIN, {"a": [wrong]}), lambda: hx.mu("tanh", 0)(wrong), lambda: hx.bounds("tanh", "sin", r=wrong),
                lambda: GLM.solve(alpha=wrong, lam=1), lambda: hx.Flow({"x": "-x"}, start={"x": 1}).solve(t=wrong)):
        with pytest.raises(BadInput):
            way()


def test_a_file_of_complex_numbers_or_of_nothing_is_refused(tmp_path):
    from hermitex.face.spec_arrays import read_array

    np.save(tmp_path/"eta.npy", np.array([1 + 1j]))
    (tmp_path/"empty.npy").touch()
    for name in ("eta.npy", "empty.npy"):
        with pytest.raises(BadInput, match="is not an array of numbers"):
            read_array(name, tmp_path)
