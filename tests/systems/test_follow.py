"""Branches through folds: saddle-nodes whose place is known, the Hopfield model at T = 0, drawn cubics, folds of averages."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import Eq, Rational, erf, exp, pi, sqrt, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.symbols import alpha, z

a, x, y, m = symbols("a x y m", real=True)
C, r = symbols("C r", positive=True)
PARABOLA = hx.System({x: x + (a - x**2)/4})
HOPFIELD = hx.System({m: erf(m/sqrt(2*alpha*r)), C: sqrt(2/(pi*alpha*r))*exp(-m**2/(2*alpha*r)), r: 1/(1 - C)**2})


def test_a_saddle_node_is_where_it_is():
    """x^2 = a: the fold at a = 0, the upper branch stable, the lower not."""
    branch = PARABOLA.follow("a", (-1, 1), start={"x": 1})
    assert len(branch.folds) == 1 and abs(branch.folds[0]["a"]) < 1e-12 and abs(branch.folds[0]["x"]) < 1e-7
    np.testing.assert_allclose(branch["x"]**2, branch["a"], atol=1e-10)
    assert branch["x"][0] == pytest.approx(1) and branch["x"][-1] == pytest.approx(-1) and branch["a"][-1] == 1
    np.testing.assert_array_equal(branch.stable, branch["x"] > 0)
    np.testing.assert_allclose(branch.stability, np.abs(1 - branch["x"]/2), atol=1e-9)


def test_hopfield_at_zero_temperature_ends_at_alpha_0_1379():
    """The storage capacity 0.13790557, and by another route: alpha(u) of u = m/sqrt(2 alpha r) has its largest value there."""
    branch = HOPFIELD.follow("alpha", (0.02, 0.2), start={"m": 1, "C": 0.001, "r": 1})
    (fold,) = branch.folds
    assert fold["alpha"] == pytest.approx(0.13790557, abs=5e-9)
    from scipy.optimize import minimize_scalar
    from scipy.special import erf as erf_

    best = minimize_scalar(lambda u: -(erf_(u)/u - 2/np.sqrt(np.pi)*np.exp(-u**2))**2/2, bounds=(0.5, 3), method="bounded",
                           options={"xatol": 1e-12})
    assert fold["alpha"] == pytest.approx(-best.fun, rel=1e-10) and fold["m"] == pytest.approx(erf_(best.x), rel=1e-6)
    for k in (5, len(branch)//2, len(branch) - 5):
        at = {n: float(branch[n][k]) for n in ("m", "C", "r")}
        again = HOPFIELD.solve(alpha=branch["alpha"][k], start=at)
        assert again["m"] == pytest.approx(at["m"], rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_folds_of_drawn_cubics_are_the_roots_of_the_derivative(seed):
    """a = x^3 - 3 s x + c: folds at x = +-sqrt(s), a = c -+ 2 s^(3/2)."""
    rng = np.random.default_rng(seed)
    s, c = round(float(rng.uniform(0.2, 1)), 3), round(float(rng.uniform(-0.5, 0.5)), 3)
    branch = hx.System({x: Eq(x**3 - 3*s*x + c, a)}).follow("a", (-5, 5), start={"x": -2})
    found = sorted((f["x"], f["a"]) for f in branch.folds)
    np.testing.assert_allclose(found, [(-np.sqrt(s), c + 2*s**1.5), (np.sqrt(s), c - 2*s**1.5)], rtol=1e-6, atol=1e-9)
    assert branch["a"][0] == -5 and branch["a"][-1] == 5 and np.isnan(branch.stability).all()


@pytest.mark.parametrize("end", [1.2, 1.35])
def test_two_folds_within_a_step_are_seen(end):
    """a = s x - x^3 with s = 1e-4: folds at x = +-sqrt(s/3), a = +-2 (s/3)^(3/2), 0.012 apart where a step is ten times that."""
    branch = hx.System({x: Eq(Rational(1, 10**4)*x - x**3, a)}).follow("a", (end/10**4 - end**3, 2), start={"x": end})
    at = 2*(1e-4/3)**1.5
    np.testing.assert_allclose([f["a"] for f in branch.folds], [at, -at], rtol=1e-9)


def test_a_fold_beyond_the_bounds_is_none_of_the_branch():
    """x^2 = 1e-6 - a turns back at a = 1e-6, and has left (-1, 0) at x = 1e-3."""
    branch = hx.System({x: Eq(x**2, Rational(1, 10**6) - a)}).follow("a", (-1, 0), start={"x": 1})
    assert not branch.folds and branch["a"][-1] == 0 and branch["x"][-1] == pytest.approx(1e-3, rel=1e-9)


def test_averages_are_held_along_the_branch():
    system = hx.System({m: hx.E(tanh(3*m + a + z/2), z)})
    branch = system.follow("a", (-2, 2), start={"m": -1})
    assert len(branch.folds) == 2 and branch.folds[0]["a"] == pytest.approx(-branch.folds[1]["a"], rel=1e-9)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)

    def field(v):
        return brentq(lambda at: v - weights @ np.tanh(3*v + at + nodes/2)/np.sqrt(2*np.pi), -3, 3, xtol=1e-15)

    step = 1e-3
    for fold in branch.folds:
        v = fold["m"]
        assert fold["a"] == pytest.approx(field(v), abs=1e-8)
        f = {k: field(v + k*step) for k in (-2, -1, 1, 2)}
        assert abs(8*(f[1] - f[-1]) - (f[2] - f[-2]))/(12*step) < 1e-7
    middle = np.argmin(np.abs(branch["m"]))
    assert not branch.stable[middle] and branch.stable[0] and branch.stable[-1]


def test_a_branch_without_a_fold_runs_to_the_other_end_and_one_that_ends_says_why():
    branch = hx.System({x: tanh(a*x/2 + Rational(1, 5))}).follow("a", (0, 1))
    assert not branch.folds and branch["a"][-1] == 1 and branch.reason == ""
    ends = hx.System({x: Eq(sqrt(x), a)}).follow("a", (-1, 1), start={"x": 1})
    assert "ends" in ends.reason and ends["a"].min() < 0.1


def test_a_wrong_sign_is_seen():
    planted = hx.System({x: x + (a + x**2)/4}).follow("a", (-1, 1), start={"x": 1})
    assert abs(planted["x"][-1]**2 - planted["a"][-1]) > 0.1


def test_an_unknown_without_a_bound_is_followed_in_steps_of_its_size():
    """To 5e6 times where it began, on rules that are refined on the way."""
    system = hx.System({C: Eq(a*hx.E(exp(-z**2*C), z), 1)})  # a = sqrt(1 + 2 C)
    branch = system.follow("a", (1.1, 1e3), start={"C": 0.1})
    np.testing.assert_allclose(branch["a"], np.sqrt(1 + 2*branch["C"]), rtol=1e-7)
    assert not branch.folds and len(branch) < 700
    assert branch["a"][-1] == 1e3 and not branch.reason


def test_the_bounds_come_in_either_order():
    """From the first of them: x^2 = a from a = 1 down to the fold and back."""
    branch = PARABOLA.follow("a", (1, -1), start={"x": 1})
    assert branch["a"][0] == 1 and abs(branch.folds[0]["a"]) < 1e-12 and branch.notes == ()


def test_a_start_that_falls_onto_another_solution_is_told():
    """q = 1 - exp(-3 c q^2), the core of hypergraphs: at c = 1/2 there is q = 0 only; from .99 the branch begins at c = 2."""
    core = hx.System({"q": "1 - exp(-3*c*q**2)"})
    c = lambda q: -np.log(1 - q)/(3*q**2)  # noqa: E731 - the inverse, whose minimum is the fold
    at = brentq(lambda q: q/(1 - q) + 2*np.log(1 - q), 0.5, 0.9, xtol=1e-15)
    for bounds in ((0.5, 2), (2, 0.5)):
        branch = core.follow("c", bounds, start={"q": 0.99})
        assert branch["c"][0] == 2 and branch["q"][0] > 0.99
        assert [f["c"] for f in branch.folds] == pytest.approx([c(at)], rel=1e-10) and c(at) == pytest.approx(0.81846916, abs=1e-8)
        told = [n for n in branch.notes if "another solution, q = 0" in n]
        assert len(told) == (bounds[0] == 0.5) and branch.to_dict()["notes"] == list(branch.notes)
    (fallen,) = core.follow("c", (0.5, 0.7), start={"q": 0.99}).notes
    assert "at c = 0.5 the start q = 0.99 leads to another solution" in fallen


def test_it_shows_itself():
    branch = PARABOLA.follow("a", (-1, 1), start={"x": 1})
    assert json.loads(json.dumps(branch.to_dict()))["folds"] == branch.folds and "folds at" in repr(branch)
    assert len(branch.to_dataframe()) == len(branch)
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert branch.plot(ax) is ax and ax.get_xlabel() == "$a$" and ax.get_ylabel() == "$x$"


@pytest.mark.parametrize("bad, says", [
    (lambda: PARABOLA.follow("a", (1, 1)), "two finite numbers"), (lambda: PARABOLA.follow("a", 1), "from one number to another"),
    (lambda: PARABOLA.follow("b", (0, 1)), "b"), (lambda: PARABOLA.follow("a", (0, 1), a=1), "varies and has a value"),
    (lambda: HOPFIELD.follow("alpha", (0.02, 0.2), start={"mm": 1}), "mm"),
    (lambda: PARABOLA.follow("a", (-1, 1), start={"x": 1})["q"], "q"),
])
def test_bad_input_gets_one_line(bad, says):
    with pytest.raises((BadInput, UnknownName), match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_no_solution_at_either_end_is_said():
    with pytest.raises(NotConverged, match="at either end"):
        PARABOLA.follow("a", (-2, -1), start={"x": 1})
