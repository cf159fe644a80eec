"""Unknowns with an index, D[k] for k of a range: each entry an unknown of its own."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sympy import Idx, IndexedBase, Sum, Symbol, tanh

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.symbols import m, z

D, N = IndexedBase("D"), Symbol("N", integer=True)
k, i, j, l2 = Idx("k", (1, 3)), Idx("i", 2), Idx("j", 2), Idx("l", 2)


def test_a_system_of_entries():
    found = hx.System({D[k]: hx.E(tanh(D[k]*z + 1)**2)/k, m: Sum(D[k], k)}).solve()
    for n in (1, 2, 3):
        alone = hx.System({m: hx.E(tanh(m*z + 1)**2)/n}).solve()
        assert found[f"D{n}"] == pytest.approx(float(alone["m"]), rel=1e-12)
    assert found["m"] == pytest.approx(sum(float(found[f"D{n}"]) for n in (1, 2, 3)), rel=1e-12)


def test_a_flow_of_a_table():
    """dD_ij/dt = -sum_l D_il D_lj, by SciPy."""
    flow = hx.Flow({D[i, j]: -Sum(D[i, l2]*D[l2, j], l2)})
    names = ["D_0_0", "D_0_1", "D_1_0", "D_1_1"]
    begin = [1.0, 0.2, 0.1, 0.7]
    found = flow.solve(t=2, start=dict(zip(names, begin, strict=True)))
    other = solve_ivp(lambda t, v: -(v.reshape(2, 2) @ v.reshape(2, 2)).ravel(), (0, 2), begin, rtol=1e-12, atol=1e-14).y[:, -1]
    np.testing.assert_allclose([found[n] for n in names], other, rtol=1e-8)


@pytest.mark.parametrize("equations, line", [
    ({D[Idx("k", N)]: m, m: 1}, "the index of D.k. needs a range of numbers"),
    ({D[k]: 1/(1 + Symbol("D1", real=True))}, "D1 is a letter and would name D.1."),
    ({D[-1]: 1/(1 + D[-1])}, "negative index"),
    ({"D[k]": "-m", "m": "1"}, "written with SymPy")])
def test_what_is_refused(equations, line):
    with pytest.raises(BadInput, match=line):
        hx.System(equations)
