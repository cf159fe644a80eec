"""The spectral radius of the map at a solution: that of every unknown at once, said wherever a solution is shown."""

import json
from functools import reduce

import numpy as np
import pytest
from sympy import Eq, Matrix, Symbol, cos, sin, sqrt, symbols, tanh

import hermitex as hx
from hermitex import System
from hermitex.errors import NotConverged

q, lamda, beta = symbols("q lamda beta", positive=True)
a, z = symbols("a z", real=True)
HILL = System({q: lamda*q**2/(1 + lamda*q**2)})  # 0, (lamda - sqrt(lamda^2 - 4 lamda))/(2 lamda), and its mirror


def by_differences(system, found, **numbers):
    """rho of the Jacobian of the right-hand sides, by central differences of the formulas themselves."""
    x = np.array([float(found[u.name]) for u in system.unknowns])
    values = {p: numbers[p.name] for p in system.parameters}
    rhs = Matrix([system.equations[u] for u in system.unknowns]).subs(values)
    D = rhs.jacobian(list(system.unknowns)).subs(dict(zip(system.unknowns, x, strict=True)))
    return float(np.abs(np.linalg.eigvals(np.array(D.evalf(), dtype=float))).max())


def drawn(seed):
    """A random system: blocks that are explicit, linear, torn and coupled, in a random order of the equations."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    x = symbols(f"x:{n}", real=True)
    equations = {}
    for i, u in enumerate(x):
        read = [v for v in x if rng.random() < 0.5 or v is x[(i + 1) % n]]
        weights = rng.normal(size=len(read))*rng.choice([0.3, 1.5])
        inside = sum(round(float(w), 3)*v for w, v in zip(weights, read, strict=True))
        equations[u] = [inside + a, tanh(inside) + a, sin(inside)/2 + a*cos(inside)][int(rng.integers(3))]
    order = rng.permutation(n)
    return System({x[i]: equations[x[i]] for i in order})


@pytest.mark.parametrize("seed", range(25))
def test_it_is_that_of_all_unknowns_at_once(seed):
    system = drawn(seed)
    found = system.solve(a=0.3, raise_on_failure=False)
    if not found.converged:
        pytest.skip("the draw has no solution near the default start")
    rho = by_differences(system, found, a=0.3)
    assert found.stability == pytest.approx(rho, rel=1e-6, abs=1e-9)
    assert any("unstable under iteration" in n for n in found.notes) == (rho > 1)


def test_iteration_of_the_map_says_the_same():
    """The sequence itself: away from an unstable solution, towards a stable one, by the factor that is claimed."""
    for start, factor in ((0.001, 1.7071067811865475), (0.9, 0.2928932188134524)):
        found = HILL.solve(lamda=8, start={"q": start})
        x = float(found["q"]) + 1e-6
        step = 8*x**2/(1 + 8*x**2)
        assert found.stability == pytest.approx(factor) == pytest.approx((step - found["q"])/(x - found["q"]), rel=1e-4)
        assert found.unstable == (factor > 1)


def test_it_is_said_in_every_form():
    found = HILL.solve(lamda=8, start={"q": 0.001})
    assert found.converged and found["q"] == pytest.approx((8 - 32**0.5)/16)
    assert "stability 1.707 (unstable under iteration)" in repr(found)
    assert all(said in found._repr_html_() for said in (">stability</th>", "1.7071", "unstable under iteration"))
    assert found.table()["stability"] == [found.stability]
    assert json.loads(json.dumps(found.to_dict()))["stability"] == pytest.approx(1.7071067811865475)
    assert "unstable under iteration: the spectral radius of the map x -> rhs(x) is 1.707" in found.notes
    stable = HILL.solve(lamda=8, start={"q": 0.9})
    assert "stability 0.2929," in repr(stable) and not any("unstable" in n for n in stable.notes)


def test_of_many_points_each_has_its_own():
    m = Symbol("m", real=True)
    found = System({m: tanh(beta*m)}).solve(beta=np.array([0.5, 2.0, 3.0]), start={"m": 0})
    assert found.stability == pytest.approx([0.5, 2, 3]) and list(found.unstable) == [False, True, True]
    assert "unstable under iteration at 2 of 3 points" in repr(found)
    assert found.point(1).stability == 2.0 and found.point(1).unstable


def test_linear_blocks_and_implicit_equations():
    u, v, w = symbols("u v w", real=True)
    found = System({u: 2*v + 1, v: beta*u + w, w: beta}).solve(beta=3)
    assert found.stability == pytest.approx(np.sqrt(6)) and found.unstable
    implicit = System({u: Eq(u**2, 2 + v), v: tanh(v)/2}).solve(start={"u": 1})
    assert np.isnan(implicit.stability) and not implicit.unstable
    assert any("the equation of u is implicit" in n for n in implicit.notes)
    assert System({w: beta, u: w**2}).solve(beta=3).stability == 0  # two steps and it is there


def test_at_the_boundary_it_is_the_limit_from_inside():
    """The spin glass without field at q = 0: d/dq E tanh(beta sqrt(q) z)^2 is 0/0 there, and beta^2 in the limit."""
    system = System({q: hx.E(tanh(beta*sqrt(q)*z)**2, z)})
    try:
        found = system.solve(beta=0.5)
    except NotConverged as error:
        found = error.solution
    if found["q"] < 1e-8:
        assert found.stability == pytest.approx(0.25, rel=1e-4)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5])
def test_slopes_near_zero(power):
    from hermitex.systems.stability import _limit_of_radii

    sizes = np.array([1e-6, 1e-8, 1e-10, 1e-12])
    limit = _limit_of_radii([np.array([0.7*power*s**(power - 1)]) for s in sizes])
    assert limit == pytest.approx({0.5: np.inf, 1.0: 0.7, 1.5: 0.0}[power], abs=1e-5)


def test_sweeps_and_curves_carry_it(tmp_path):
    table = hx.sweep(HILL, {"lamda": [5.0, 8.0, 20.0]})
    assert all(np.isfinite(table["stability"])) and "stability" in table.to_csv().splitlines()[0]
    curve = hx.theories.random_features("tanh", "sign").curve(alpha=[1.0, 2.0], gamma=1, lam=0.1)
    assert np.isfinite(curve.table()["stability"]).all() and len(curve.to_dict()["stability"]) == 2


def test_a_cycle_of_explicit_equations():
    """x1 -> x2 -> ... -> xn -> x1: the radius of the whole is the n-th root of the product of the slopes."""
    for n in (2, 3, 5):
        x = symbols(f"y1:{n + 1}", real=True)
        slopes = [1.3 + 0.2*k for k in range(n)]
        system = System({x[k]: tanh(slopes[k]*x[k - 1]) for k in range(n)})
        found = system.solve(start={v.name: 0 for v in x})
        assert found.stability == pytest.approx(reduce(lambda p, s: p*s, slopes, 1)**(1/n))


def test_an_exported_file_gives_it_too(tmp_path):
    from importlib.util import module_from_spec, spec_from_file_location

    HILL.export(tmp_path / "hill.py", reference={"lamda": 8.0})
    spec = spec_from_file_location("hill_file", tmp_path / "hill.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for start in (0.001, 0.9):
        here, there = HILL.solve(lamda=8, start={"q": start}), module.solve(lamda=8, start={"q": start})
        assert [there["stability"], there["q"]] == pytest.approx([here.stability, here["q"]], rel=1e-11)
    many = module.solve(lamda=[5.0, 8.0], start={"q": 0.9})
    assert many["stability"] == pytest.approx(HILL.solve(lamda=[5.0, 8.0], start={"q": 0.9}).stability, rel=1e-11)


@pytest.mark.parametrize("size", [0.5, 2, 1e4])
def test_at_0_of_a_real_unknown_below_a_root(size):
    """E tanh(beta sqrt(Q) z)^2 = beta^2 Q + O(Q^2), while the formula of its derivative is 0/0 at Q = 0."""
    Q = Symbol("Q", real=True)
    found = System({Q: hx.E(tanh(beta*sqrt(Q)*z)**2, z)}).solve(beta=size)
    assert found.Q == 0 and found.stability == pytest.approx(size**2, rel=1e-3)
    assert any("unstable under iteration" in n for n in found.notes) == (size > 1)
