"""Equations of matrices: the entries of Q = F(Q), against NumPy's matrices and against the same equations entry by entry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sympy import Determinant, Eq, ImmutableMatrix, Matrix, MatrixSymbol, Symbol, Trace, eye, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.face.spec import from_toml
from hermitex.symbols import z1, z2
from hermitex.systems.matrices import flat_start

a, lam = symbols("a lam", positive=True)


def symmetric(name: str, size: int) -> Matrix:
    return Matrix(size, size, lambda i, j: Symbol(f"{name}{min(i, j) + 1}{max(i, j) + 1}", real=True))


@pytest.mark.parametrize("seed", range(4))
def test_a_matrix_equation_is_solved_as_by_numpy(seed: int) -> None:
    """Q = S + a (Q + lam)^-1 for a drawn symmetric S, by iteration of NumPy's matrices."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    root = rng.integers(-3, 4, (size, size))
    S = root @ root.T + 2*np.eye(size, dtype=int)
    Q = symmetric("Q", size)
    system = hx.System([(Q, Matrix(S) + a*(Q + lam*eye(size)).inv())])
    assert len(system.unknowns) == size*(size + 1)//2
    found = system.solve(a=0.7, lam=1.0, start={"Q": np.eye(size)*5})
    X = S.astype(float)
    for _ in range(200):
        X = S + 0.7*np.linalg.inv(X + np.eye(size))
    assert found["Q"] == pytest.approx(X, rel=1e-10)
    planted = hx.System([(Q, Matrix(S) + a*(Q + lam*eye(size)).inv() + eye(size)/10**6)])
    planted = planted.solve(a=0.7, lam=1.0, start={"Q": np.eye(size)*5})
    assert planted["Q"] != pytest.approx(X, rel=1e-10)


def test_the_ways_to_write_a_matrix_agree() -> None:
    Q, M, S = symmetric("Q", 2), MatrixSymbol("Q", 2, 2), Matrix([[2, 1], [1, 3]])/2
    F = lambda X: S + a*(X + lam*eye(2)).inv()  # noqa: E731
    start = {"Q": [[1, 0], [0, 1]]}
    numbers = {"a": np.array([0.3, 0.6, 1.0]), "lam": 1.0}
    expected = hx.System([(Q, F(Q))]).solve(numbers, start=start)["Q"]
    assert expected.shape == (3, 2, 2)
    for system in (hx.System({ImmutableMatrix(Q): F(Q)}), hx.System({M: F(M)}), hx.System({"Q": F(Q)}),
                   hx.System({ImmutableMatrix(Q): F(Q)}, start={"Q": [[1, 0], [0, 1]]}),
                   hx.System([(Q, Eq(ImmutableMatrix(Q), F(Q)))]),
                   hx.System({ImmutableMatrix(Q): F(Q)}, start={ImmutableMatrix(Q): Matrix([[1, 0], [0, 1]])})):
        assert system.solve(numbers, start=start)["Q"] == pytest.approx(expected, rel=1e-10)


def test_determinant_and_trace_are_written_out() -> None:
    M = MatrixSymbol("M", 2, 2)
    system = hx.System({M: Matrix([[2, 1], [1, 3]])/(1 + Determinant(M))}, observables={"t": Trace(M), "d": Determinant(M),
                                                                                        "e": Determinant(eye(2) + M)})
    found = system.solve()
    assert found["t"] == pytest.approx(np.trace(found["M"])) and found["d"] == pytest.approx(np.linalg.det(found["M"]))
    assert found["e"] == pytest.approx(np.linalg.det(np.eye(2) + found["M"]))
    assert found["M"]*(1 + found["d"]) == pytest.approx(np.array([[2, 1], [1, 3]]), rel=1e-10)


def test_averages_stand_in_matrices() -> None:
    """The overlaps of two students: E[g_i g_j], symmetric up to the names of the variables."""
    fields = (z1, (z1 + z2)/2)
    Q = symmetric("Q", 2)
    system = hx.System([(Q, Matrix(2, 2, lambda i, j: hx.E((tanh(fields[i] + Q[0, 0])*tanh(fields[j] + Q[0, 0]))/5)))])
    found = system.solve()
    plain = {Q[i, j]: hx.E(tanh(fields[i] + Q[0, 0])*tanh(fields[j] + Q[0, 0])/5) for i, j in ((0, 0), (0, 1), (1, 1))}
    same = hx.System(plain).solve()
    assert [found["Q"][0, 1], found["Q"][1, 1]] == pytest.approx([same["Q12"], same["Q22"]], rel=1e-11)
    assert found["Q"][0, 1] == found["Q"][1, 0]
    with pytest.raises(UnknownName):
        found["R"]


def test_a_spec_writes_rows() -> None:
    spec = from_toml('[equations]\nQ = [["2 + a/(1 + Q11)", "Q22/5"], ["Q22/5", "1 + Q12"]]\n[parameters]\na = 0.5\n')
    found = spec.formulas.solve(spec.parameters)
    Q = found["Q"]
    assert Q.shape == (2, 2) and Q[0, 0] == pytest.approx(2 + 0.5/(1 + Q[0, 0])) and Q[1, 0] == pytest.approx(Q[1, 1]/5)
    with pytest.raises(BadInput, match="rows"):
        from_toml('[equations]\nQ = [["1", "2"], ["2"]]\n')


Q2 = symmetric("Q", 2)


@pytest.mark.parametrize("make", [
    lambda: hx.System([(Q2, Matrix([[1, 2], [3, 4]])*a)]), lambda: hx.System([(Q2, Matrix([[1, 2, 3]]))]),
    lambda: hx.System([(Matrix([[Q2[0, 0], 1]]), Matrix([[1, 2]]))]), lambda: hx.System([(Q2, a)]),
    lambda: hx.System({MatrixSymbol("M", 2, 2): MatrixSymbol("B", 2, 2)})])
def test_matrices_that_do_not_fit_get_one_line(make) -> None:
    with pytest.raises(BadInput) as told:
        make()
    assert "\n" not in str(told.value)


SPEC = """
[equations]
Q = [["1/(1 + c*Q11)", "c*Q12**3 + Q12/2"], ["c*Q12**3 + Q12/2", "1/(2 + c*Q22)"]]
[start]
Q = [[1, 0.8], [0.8, 0.5]]
[domain]
Q11 = "0 < Q11 < 2"
[parameters]
c = 1
"""


def test_a_spec_starts_and_bounds_a_matrix() -> None:
    """Q12 = c Q12^3 + Q12/2 has the solutions 0 and 1/sqrt(2 c): the start says which."""
    spec = from_toml(SPEC)
    assert spec.system.start == {"Q11": 1.0, "Q12": 0.8, "Q22": 0.5} and spec.system.domain == {"Q11": (0.0, 2.0)}
    found = spec.system.solve(c=1)
    assert found["Q"][0, 1] == pytest.approx(2**-0.5) and found["Q"][1, 1] == pytest.approx(2**0.5 - 1)
    assert from_toml(SPEC.replace("0.8", "0")).system.solve(c=1)["Q12"] == 0


@pytest.mark.parametrize("old, new, says", [
    ("[[1, 0.8], [0.8, 0.5]]", "[[1, 0.8], [0.3, 0.5]]", "symmetric"), ("[[1, 0.8], [0.8, 0.5]]", "0.5", "2 rows of 2 numbers"),
    ("[[1, 0.8], [0.8, 0.5]]", "[[1, 0.8]]", "2 rows of 2 numbers"), ("[[1, 0.8], [0.8, 0.5]]", '[[1, "a"], ["a", 1]]', "start"),
    ("[[1, 0.8], [0.8, 0.5]]", "[[3, 0.8], [0.8, 0.5]]", "outside its domain 0 < Q11 < 2"), ("Q11 =", "Q13 =", "Q12"),
])
def test_a_bad_start_of_a_matrix_gets_one_line(old: str, new: str, says: str) -> None:
    with pytest.raises(HermitexError, match=says) as told:
        from_toml(SPEC.replace(old, new))
    assert "\n" not in str(told.value)


def test_a_start_symmetric_but_for_rounding_is_read() -> None:
    assert flat_start({"Q": [[1, 0.1 + 0.2], [0.3, 2]]}, ("Q11", "Q12", "Q22")) == {"Q11": 1, "Q12": 0.1 + 0.2, "Q22": 2}
    for other in (0.3 + 1e-9, None, "x"):
        with pytest.raises(BadInput, match="symmetric"):
            flat_start({"Q": [[1, 0.3], [other, 2]]}, ("Q11", "Q12", "Q22"))


@pytest.mark.parametrize("made, given", [(hx.System, {}), (hx.Flow, {"t": [0, 1]})])
@pytest.mark.parametrize("start", [[[1, 0.1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 0.5, [1, 0, 1], None, np.ones((2, 2, 3))])
def test_a_start_of_another_shape_gets_one_line(made, given, start) -> None:
    """One row was read as the start of that row alone."""
    Q = symmetric("Q", 2)
    F = Matrix([[2, 1], [1, 3]])*a - Q/2
    for asked in (lambda: made([(Q, F)]).solve(a=1, start={"Q": start}, **given),
                  lambda: made([(Q, F)], start={ImmutableMatrix(Q): start})):
        with pytest.raises(BadInput, match="is 2 by 2, and its start is") as told:
            asked()
        assert "\n" not in str(told.value)


def test_a_flow_starts_at_a_matrix() -> None:
    Q = symmetric("Q", 2)
    path = hx.Flow([(Q, -Q)]).solve(t=[0, 1, 2], start={"Q": [[1, 0.5], [0.5, 2]]})
    assert path["Q"][2] == pytest.approx(np.array([[1, 0.5], [0.5, 2]])*np.exp(-2), rel=1e-8)


@pytest.mark.slow
def test_a_file_starts_at_a_matrix(tmp_path: Path) -> None:
    system = from_toml(SPEC.replace("[start]\nQ = [[1, 0.8], [0.8, 0.5]]\n", "")).system
    system.export(tmp_path / "file.py", reference={"c": 1.0}, start={"Q": [[1, 0.8], [0.8, 0.5]]})
    done = subprocess.run([sys.executable, "-I", str(tmp_path / "file.py"), "--c", "1", "--json"], capture_output=True, text=True,
                          timeout=60)
    assert json.loads(done.stdout)["Q12"] == pytest.approx([2**-0.5])
