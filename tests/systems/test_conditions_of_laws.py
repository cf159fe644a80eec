"""Where there is no such law there is no average: parameters in their range, at its edge and beyond it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sympy import Symbol, simplify, tanh
from sympy.stats import (
    Bernoulli,
    Beta,
    Binomial,
    Exponential,
    FiniteRV,
    Gamma,
    Geometric,
    NegativeBinomial,
    Normal,
    Poisson,
    StudentT,
    Uniform,
)

import hermitex as hx
from hermitex.errors import BadInput, HermitexError
from hermitex.face.spec import load

b, q = Symbol("b", real=True), Symbol("q", real=True)
#: law -> (made with b, values of b where sympy.stats has it, where it has not)
LAWS = {
    "Bernoulli": (lambda v: Bernoulli("x", v), [0.0, 0.4, 1.0], [-1e-9, 1.5]),
    "Binomial": (lambda v: Binomial("x", 3, v), [0.0, 1.0], [-0.1, 1.0001]),
    "Finite": (lambda v: FiniteRV("x", {0: v, 2: 1 - v}), [0.0, 1.0], [-0.2, 1.5]),
    "Poisson": (lambda v: Poisson("x", v), [0.3], [-0.5]),
    "Geometric": (lambda v: Geometric("x", v), [0.5, 0.9], [1.5]),
    "NegativeBinomial": (lambda v: NegativeBinomial("x", v, 0.5), [1.5], [-1.5]),
    "Normal": (lambda v: Normal("x", 0, v), [0.7], [-0.7]),
    "Uniform": (lambda v: Uniform("x", 1, v), [1.5], [0.5]),
    "Exponential": (lambda v: Exponential("x", v), [1.5], [-1.5]),
    "Gamma": (lambda v: Gamma("x", v, 1), [1.5], [-1.5]),
    "Beta": (lambda v: Beta("x", 2, v), [1.5], [-1.5]),
    "StudentT": (lambda v: StudentT("x", v), [2.5], [-2.5]),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_holds_where_sympy_has_it(name: str) -> None:
    make, inside, outside = LAWS[name]
    kernel = hx.compile(hx.E(tanh(make(b))**2), tolerance=1e-9)
    polynomial = hx.compile(hx.E(make(b)), tolerance=1e-9)  # where the law leaves no sum and no integral
    for v in inside:
        assert np.isfinite(kernel(b=v)) and np.isfinite(polynomial(b=v))
    for v in outside:
        with pytest.raises((ValueError, HermitexError)):
            make(v).pspace.distribution.check(*make(v).pspace.distribution.args)
            hx.E(make(v))
        for f in (kernel, polynomial):
            with pytest.raises(BadInput, match=f"{name}.* needs "):
                f(b=v)


def test_a_point_beyond_the_range_is_told_and_spoils_no_other() -> None:
    system = hx.System({q: hx.E(tanh(q + Bernoulli("n", b)))/2})
    found = system.solve(b=[0.0, 0.5, 1.0, 1.5], raise_on_failure=False)
    assert found.converged.tolist() == [True, True, True, False]
    assert found.reason[3] == "Bernoulli needs 0 <= b <= 1, not 1.5"
    assert found["q"][1] == system.solve(b=0.5)["q"]
    table = hx.sweep(system, {"b": [0.5, 1.5]})
    assert [str(r) for r in table["reason"]] == ["", "Bernoulli needs 0 <= b <= 1, not 1.5"]
    with pytest.raises(HermitexError, match=r"needs 0 <= b <= 1, not 1\.5"):
        system.solve(b=1.5, method="iterate")
    branch = system.follow("b", (0.5, 1.5))
    assert branch["b"].max() <= 1 and "needs 0 <= b <= 1" in branch.reason
    with pytest.raises(BadInput, match="needs 0 <= b <= 1, not 3/2"):
        system.subs(b=1.5)


def test_a_flow_and_an_unknown_in_the_law() -> None:
    flow = hx.Flow({q: hx.E(tanh(Bernoulli("n", b))) - q}, start={q: 1})
    assert flow.solve(t=1, b=0.5).converged
    with pytest.raises(HermitexError, match=r"needs 0 <= b <= 1, not 1\.5"):
        flow.solve(t=1, b=1.5)
    with pytest.raises(HermitexError, match=r"needs 0 <= 2\*q <= 1"):
        hx.System({q: 1/(1 + hx.E(tanh(Bernoulli("w", 2*q))))}).solve(start={q: 0.4})


def test_a_number_below_0_for_a_letter_declared_positive_is_refused(tmp_path: Path) -> None:
    a = Symbol("a", positive=True)
    law = Exponential("e", a)
    system = hx.System({q: hx.E(tanh(q + law))/2})
    table = hx.sweep(system, {"a": [1.0, -1.5]})
    assert table["converged"].tolist() == [True, False] and table["q"][0] == system.solve(a=1)["q"]
    flow = hx.Flow({q: hx.E(tanh(law)) - q}, start={q: 1})
    hx.System({q: 1/(1 + a)}).export(tmp_path / "s.py", reference={"a": 1.0})
    done = subprocess.run([sys.executable, tmp_path / "s.py", "--a=-1.5"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "a stands for a positive number" in done.stderr
    for refused in (lambda: system.solve(a=-1.5), lambda: system.solve(a=-1.5, method="iterate"), lambda: flow.solve(t=1, a=-1.5),
                    lambda: hx.compile(hx.E(tanh(law)), tolerance=1e-9)(a=-1.5), lambda: hx.System({q: a}).solve(a=[-1.5]),
                    lambda: hx.System({q: a}).subs(a=-1.5)):
        with pytest.raises(BadInput, match="a stands for a positive number"):
            refused()
    assert hx.System({q: 1/(1 + a)}).solve(a=0)["q"] == 1  # the limit
    slope = (system.solve(a=1.001)["q"] - system.solve(a=0.999)["q"])/0.002
    assert system.solve(a=1).derivative("a")["q"] == pytest.approx(slope, rel=1e-6)


def test_conditions_and_assumptions_come_back_from_a_dictionary() -> None:
    a = Symbol("a", positive=True)
    parts = json.loads(json.dumps(hx.System({q: hx.E(tanh(q + Bernoulli("n", b) + Exponential("e", a)))/2}).to_dict()))
    again = hx.System(parts["equations"], conditions=parts["conditions"], symbols=parts["symbols"])
    for numbers, says in (({"a": 1, "b": 1.5}, "Bernoulli needs 0 <= b <= 1"), ({"a": -1, "b": 0.5}, "a stands for a positive")):
        with pytest.raises(BadInput, match=says):
            again.solve(**numbers)
    with pytest.raises(BadInput, match="a condition is "):
        hx.System({q: b}, conditions=[3])


def test_one_point_beyond_the_range_leaves_the_others_of_a_file(tmp_path: Path) -> None:
    system = hx.System({q: hx.E(tanh(q + Bernoulli("n", b)))/2})
    done = system.export(tmp_path / "s.py", reference=[{"b": 0.5}, {"b": 1.5}])
    assert done.points == 1 and done.left_out == ("point 2 of 2 cannot be a reference: Bernoulli needs 0 <= b <= 1, not 1.5",)
    with pytest.raises(BadInput, match=r"needs 0 <= b <= 1, not 1\.5"):
        system.export(tmp_path / "s.py", reference={"b": 1.5})


def test_a_file_judges_a_law_in_an_unknown(tmp_path: Path) -> None:
    """Beyond the range of the law there is no solution, and the law is no column of the table."""
    a, law = Symbol("a", positive=True), Bernoulli("w", 2*q)
    hx.System({q: a/(4 + 2*hx.E(tanh(law)))}).export(tmp_path / "s.py", a=1)
    done = subprocess.run([sys.executable, tmp_path / "s.py", "--a", "1,4"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Bernoulli needs 0 <= 2*q <= 1, not 1.3" in done.stderr
    assert [row.split()[1] for row in done.stdout.splitlines()] == ["q", "0.21484579", "nan"]
    hx.Flow({q: hx.E(tanh(law)) - a}, start={q: 0.1}).export(tmp_path / "f.py", a=0.2, t=0.1)
    path = subprocess.run([sys.executable, tmp_path / "f.py", "--a=0.2", "--t=3"], capture_output=True, text=True, check=False)
    assert path.returncode == 1 and "Bernoulli needs 0 <= 2*q <= 1" in path.stderr and "law" not in path.stdout


def test_a_geometric_law_at_the_end_of_its_range() -> None:
    kernel = hx.compile(hx.E(tanh(Geometric("x", b))), tolerance=1e-10)
    assert kernel(b=1) == pytest.approx(np.tanh(1), rel=1e-15)
    assert hx.compile(hx.E(tanh(Geometric("x", 1))))() == pytest.approx(np.tanh(1), rel=1e-15)


def test_equal_averages_are_equal() -> None:
    n = Bernoulli("n", b)
    assert hx.E(n**2) == hx.E(n) and hx.E(n) - b == 0 and hx.E(n).doit() == b
    assert simplify(hx.E(n**3) - b) == 0 and hx.E(2*n) == 2*hx.E(n)


def test_a_spec_and_its_file_hold_the_range(tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text('[symbols]\nq = "real"\nb = "real"\n[laws]\nn = "Bernoulli(b)"\n[equations]\nq = "E(tanh(q + n))/2"\n')
    system = load(str(spec)).system
    with pytest.raises(HermitexError, match=r"needs 0 <= b <= 1, not 1\.5"):
        system.solve(b=1.5)
    system.export(tmp_path / "s.py", reference={"b": 0.5})
    for v, code in (("0.5", 0), ("1.5", 2)):
        done = subprocess.run([sys.executable, tmp_path / "s.py", "--b", v], capture_output=True, text=True, check=False)
        assert done.returncode == code and ("solve: Bernoulli needs 0 <= b <= 1, not 1.5" in done.stderr) == bool(code), done.stderr
    spec.write_text(spec.read_text().replace("n))", "1))"))
    with pytest.raises(BadInput, match="no formula holds n"):
        load(str(spec))
