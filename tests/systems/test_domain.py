"""Unknowns in open intervals and starts that belong to a system: solved, swept, exported, read from a spec; errors of one line."""

import importlib.util
import json
import runpy
import sys

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import erfcx
from sympy import Eq, Float, Rational, Symbol, atanh, erfc, exp, log, oo, pi, sqrt, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.face import cli, spec
from hermitex.symbols import V, alpha, q, z

m, x, y = symbols("m x y", real=True)
kap, a = Symbol("kap", real=True), Symbol("a", positive=True)


def gardner(**keywords):
    """Storage of alpha d patterns by a sphere, margin kap: q is finite only in (0, 1)."""
    h = (kap - sqrt(q)*z)/sqrt(1 - q)
    ratio = exp(-h**2/2)/sqrt(2*pi)/(erfc(h/sqrt(2))/2)
    return hx.System({q: (1 - q)*alpha*hx.E(ratio**2, z)}, **keywords)


def gardner_by_hand(ratio, margin=0.0):
    """The same by 200 Gauss-Hermite nodes and bisection."""
    nodes, weights = hermegauss(200)
    weights = weights/np.sqrt(2*np.pi)

    def off(v):
        h = (margin - np.sqrt(v)*nodes)/np.sqrt(1 - v)
        return v - (1 - v)*ratio*np.sum(weights*2/np.pi*(1/erfcx(h/np.sqrt(2)))**2)

    return brentq(off, 1e-9, 0.99, xtol=1e-15)


@pytest.mark.parametrize("keywords", [{"domain": {q: (0, 1)}}, {"start": {q: 0.5}},
                                      {"domain": {q: "0 < q < 1"}, "start": {q: 0.9}}])
def test_gardner_is_solved_where_it_lives(keywords):
    points = [0.1, 0.5, 1.0]
    found = gardner(**keywords).solve(alpha=points, kap=0)
    np.testing.assert_allclose(found["q"], [gardner_by_hand(v) for v in points], rtol=1e-9)


def test_what_is_advised_without_a_domain_helps():
    equation = {x: Eq(log(x - 30) - log(31 - x), a - 2)}  # finite in (30, 31) only, where no start of its own is
    with pytest.raises(NotConverged, match=r"domain=\{unknown: \(lo, hi\)\}"):
        hx.System(equation).solve(a=1)
    found = hx.System(equation, domain={x: (30, 31)}).solve(a=[0.5, 3.0])  # in either half
    np.testing.assert_allclose(found["x"], 30 + 1/(1 + np.exp([1.5, -1.0])), rtol=1e-12)
    assert hx.System(equation).solve(a=1, start={"x": 30.5}).converged


def test_a_pole_at_the_plain_start_needs_no_domain():
    assert gardner().solve(alpha=1, kap=0)["q"] == pytest.approx(gardner_by_hand(1.0), rel=1e-9)


@pytest.mark.parametrize("lo, hi", [(0, 1), (-3, -1), (2, oo), (-oo, -2), (-1, 1), (0, 1000)])
@pytest.mark.parametrize("seed", range(2))
def test_a_drawn_root_is_found_in_its_interval(lo, hi, seed):
    """F(x) = 0 with F not defined outside: log distances to the ends, a root drawn anywhere inside, also near an end."""
    rng = np.random.default_rng(seed)
    u, below, above = float(rng.normal(0, 3)), lo != -oo, hi != oo
    root = float(lo + (hi - lo)/(1 + np.exp(-u)) if below and above else lo + np.exp(u) if below else hi - np.exp(u))
    left = (log(x - lo) if below else 0) - (log(hi - x) if above else 0)
    system = hx.System({x: Eq(left, float(left.subs(x, root)))}, domain={x: (lo, hi)})
    assert system.solve()["x"] == pytest.approx(root, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("start", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("rhs", [lambda q: 1 - tanh(q)/2, lambda q: q**2/2 + Rational(1, 4), lambda q: (1 - q)/(2 - q/3)])
def test_steps_do_not_lead_to_the_end_of_an_interval(rhs, start):
    q = Symbol("q", positive=True)
    found = hx.System({q: rhs(q)}, domain={q: (0, 1)}).solve(start={q: start})
    assert found.method == "newton" and found.iterations <= 12
    assert found["q"] == pytest.approx(float(rhs(Float(found["q"]))), rel=1e-10)


def test_two_unknowns_one_of_them_in_an_interval():
    """m = tanh(a V), V = atanh(m)/a + (1 - m^2) - V/2: m is never 1."""
    system = hx.System({m: tanh(a*V), V: Eq(atanh(m)/(2*a), 1 - m**2)}, domain={m: (-1, 1)})
    found = system.solve(a=[0.5, 1, 3])
    for rate, value in zip((0.5, 1, 3), found["m"], strict=True):
        exact = brentq(lambda v, rate=rate: np.arctanh(v)/(2*rate) - 1 + v**2, 0, 1 - 1e-15, xtol=1e-15)
        assert value == pytest.approx(exact, rel=1e-9)


def test_a_solution_outside_of_its_domain_is_none():
    linear = hx.System({x: 2*a}, domain={x: (0, 1)})
    assert linear.solve(a=0.25)["x"] == 0.5
    with pytest.raises(NotConverged, match="x = 2 is outside its domain 0 < x < 1"):
        linear.solve(a=1)


def test_a_start_chooses_the_branch_also_of_what_is_torn_out():
    """x = tanh(2x) has three roots: a start of either unknown leads to the root of its sign, whichever is torn out."""
    pair = {x: tanh(2*y), y: x}
    for start in ({"x": 0.9}, {"y": 0.9}):
        up, down = (hx.System(pair, start={n: s*v for n, v in start.items()}).solve()["x"] for s in (1, -1))
        assert up == pytest.approx(0.957504, abs=1e-6) and down == pytest.approx(-up, rel=1e-12)


def test_a_start_given_to_solve_replaces_that_of_the_system():
    system = hx.System({x: tanh(2*x)}, start={x: 0.9})
    assert system.solve()["x"] > 0.9 and system.solve(start={"x": -0.9})["x"] < -0.9
    assert system.subs({}).start == {"x": 0.9} and system.to_dict()["start"] == {"x": 0.9}
    assert gardner(domain={q: (0, 1)}).subs(kap=0).solve(alpha=1)["q"] == pytest.approx(gardner_by_hand(1), rel=1e-9)


def test_branches_stay_inside():
    found = hx.System({x: (1 + tanh(6*(x - 1/2)*a))/2}, domain={x: (0, 1)}).branches(a=1)
    assert len(found) == 3 and all(0 < s["x"] < 1 for s in found)


TOML = """
[symbols]
kap = "real"
[equations]
q = "(1 - q)*alpha*E((exp(-h**2/2)/sqrt(2*pi)/(1 - Phi(h)))**2, z)"
[where]
h = "(kap - sqrt(q)*z)/sqrt(1 - q)"
[domain]
q = "0 < q < 1"
[start]
q = 0.9
[parameters]
kap = 0
[grid]
alpha = [0.1, 0.5, 1.0]
"""


def test_the_file_the_spec_the_sweep_and_the_session_agree(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.toml").write_text(TOML)
    own = gardner(domain={q: (0, 1)}, start={q: 0.9}).solve(alpha=[0.1, 0.5, 1.0], kap=0)["q"]
    read = spec.load("g.toml")
    assert read.system.domain == {"q": (0.0, 1.0)} and read.system.start == {"q": 0.9}
    np.testing.assert_allclose(hx.sweep(read.system, read.grid, parameters=read.parameters)["q"], own, rtol=1e-10)
    assert cli.main(["generate", "g.toml", "-o", "solver.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["selftest"]["passed"]
    module = importlib.util.module_from_spec(found := importlib.util.spec_from_file_location("gardner", tmp_path / "solver.py"))
    sys.modules["gardner"] = module
    found.loader.exec_module(module)
    np.testing.assert_allclose(module.solve(alpha=[0.1, 0.5, 1.0], kap=0)["q"], own, rtol=1e-10)
    with pytest.raises(ValueError, match="start q = 2 is outside its domain"):
        module.solve(alpha=1, kap=0, start={"q": 2})


@pytest.mark.parametrize("bad, says", [
    (lambda: gardner(domain={q: (0, 1)}, start={q: 1}), "start q = 1 is outside its domain 0 < q < 1"),
    (lambda: hx.System({x: 2*a}, domain={x: (0, 1)}).solve(a=1, start={"x": 1.5}), "start x = 1.5 is outside its domain"),
    (lambda: gardner(start={q: -1}), "q is positive"), (lambda: gardner(domain={q: (0, 1, 2)}), "open interval"),
    (lambda: gardner(domain={q: (1, 1)}), "is empty"), (lambda: gardner(domain=[(0, 1)]), "by unknown"),
    (lambda: gardner(domain={q: "0 < x < 1"}), "open interval"), (lambda: gardner(start={q: float("nan")}), "finite"),
])
def test_bad_input_gets_one_line(bad, says):
    with pytest.raises(BadInput, match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_unknown_names_get_close_ones():
    for keywords in ({"domain": {"Q": (0, 1)}}, {"start": {"qq": 0.5}}):
        with pytest.raises(UnknownName):
            gardner(**keywords)


def test_what_is_at_an_end_of_its_domain_says_so():
    """y = 0 holds, and makes x = 1."""
    found = hx.System({x: exp(-a*x*y), y: 1 - x*exp(-y/3)}, domain={x: (0, 1), y: (0, 1)}).solve(a=0.3)
    assert (found["x"], found["y"]) == (1, 0)
    assert any("y = 0: a boundary" in n for n in found.notes) and "x = 1: an end of its domain 0 < x < 1" in found.notes


@pytest.mark.parametrize(("rhs", "domain", "end"), [("1 - exp(-40*a*p)", (0, 1), 1),
                                                    ("2 - exp(-20*a*(p + 3))", (-3, 2), 2)])
def test_a_solution_within_rounding_of_the_upper_end_is_that_end(rhs, domain, end):
    found = hx.System({"p": rhs}, parameters=["a"], domain={"p": domain}).solve(a=1)
    assert found["p"] == end and found.converged and found.stability < 1
    assert any("an end of its domain" in note for note in found.notes)


RHO = {"q": "rho*tanh(2*q/rho)"}


def test_an_end_that_is_a_parameter():
    """q = rho tanh(2 q/rho) in 0 < q < rho, for several rho at once: rho times the root of x = tanh(2 x)."""
    system = hx.System(RHO, domain={"q": "0 < q < rho"}, observables={"square": "q**2"})
    x = brentq(lambda x: x - np.tanh(2*x), 0.1, 1, xtol=1e-15)
    rho = np.array([0.5, 1, 30])
    for start in ({}, {"q": 0.4}, {"q": 0.9*rho}):
        found = system.solve(rho=rho, start=start)
        np.testing.assert_allclose(found["q"], x*rho, rtol=1e-12)
        np.testing.assert_allclose(found["square"], (x*rho)**2, rtol=1e-12)
    assert system.solve(rho=2.0).derivative("rho")["q"] == pytest.approx(x, rel=1e-10)
    assert system.subs(rho=2).solve(start={"q": 1.9})["q"] == pytest.approx(2*x, rel=1e-12)
    with pytest.raises(BadInput, match="outside its domain"):
        system.solve(rho=0.5, start={"q": 0.9})


def test_one_end_that_is_a_parameter_in_session_and_file(tmp_path):
    """q = tau + 1/q has its root above tau at (tau + sqrt(tau^2 + 4))/2, and one below 0."""
    q, tau = symbols("q tau", real=True)
    system = hx.System({q: tau + 1/q}, domain={q: (tau, oo)})
    assert system.solve(tau=2)["q"] == pytest.approx(1 + np.sqrt(2), rel=1e-13)
    below = hx.System({q: tau + 1/q}, domain={q: "q < tau"}).solve(tau=2, start={"q": -0.4})
    assert below["q"] == pytest.approx(1 - np.sqrt(2), rel=1e-12)
    system.export(tmp_path/"above.py", tau=2)
    made = runpy.run_path(str(tmp_path/"above.py"))
    assert made["solve"](3.0)["q"] == pytest.approx((3 + np.sqrt(13))/2, rel=1e-13)


@pytest.mark.parametrize("equations, more, says", [
    ({"q": "v/2", "v": "q"}, {"domain": {"q": "0 < q < v"}}, "a number or a parameter"),
    (RHO, {"domain": {"q": "0 < q < rho"}, "start": {"q": 0.1}}, "its start is given to solve"),
])
def test_moving_ends_that_are_refused(equations, more, says):
    with pytest.raises(BadInput, match=says):
        hx.System(equations, **more)
    with pytest.raises(BadInput, match="between numbers"):
        hx.Flow(RHO, domain={"q": "0 < q < rho"})
