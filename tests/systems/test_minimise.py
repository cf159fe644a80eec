"""Derivatives of solutions against differences of solves, best parameters against dense scans and known optima."""

import json

import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Symbol, cos, erfc, exp, log, pi, sqrt, symbols, tanh

import hermitex as hx
from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.face import cli
from hermitex.symbols import V, Vhat, alpha, lamda, m, q, z

x, y = symbols("x y", real=True)
a, b = symbols("a b", positive=True)
RIDGE = hx.System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)}, observables={"g": V**2*lamda})
CURIE = hx.System({m: hx.E(tanh(a*m + b*z), z), q: hx.E(tanh(a*m + b*z)**2, z)}, observables={"chi": 1 - q, "own": a*m},
                  start={m: 0.9})
H = (b - sqrt(q)*z)/sqrt(1 - q)
GARDNER = hx.System({q: (1 - q)*a*hx.E((exp(-H**2/2)/sqrt(2*pi)/(erfc(H/sqrt(2))/2))**2, z)}, domain={q: (0, 1)})
IMPLICIT = hx.System({x: Eq(x**3 + a*x, b), y: x*y/2 + a}, observables={"w": x*y})
w = Symbol("w", real=True)
NAMED = hx.System({m: w}, where={w: hx.E(tanh(a*m + b + z), z)})


def difference(system, numbers, name, order=4):
    """A central difference of the fourth order of solves."""
    h = 1e-3*numbers[name]
    at = {k: system.solve({**numbers, name: numbers[name] + k*h}, tolerance=1e-13).value for k in (-2, -1, 1, 2)}
    return {n: (8*(at[1][n] - at[-1][n]) - (at[2][n] - at[-2][n]))/(12*h) for n in at[1]}


@pytest.mark.parametrize("system, numbers", [
    (RIDGE, {"alpha": 2.0, "lamda": 0.1}), (CURIE, {"a": 1.7, "b": 0.3}),
    pytest.param(GARDNER, {"a": 0.7, "b": 0.2}, marks=pytest.mark.slow),
    (IMPLICIT, {"a": 0.8, "b": 0.5}), (NAMED, {"a": 0.6, "b": 0.4}),
], ids=["ridge", "curie", "gardner", "implicit", "where"])
def test_derivatives_are_those_of_solves(system, numbers):
    found = system.solve(numbers, tolerance=1e-12)
    for name in numbers:
        exact, near = found.derivative(name), difference(system, numbers, name)
        assert set(exact) == {u.name for u in (*system.unknowns, *system.observables)}
        for n, v in exact.items():
            assert v == pytest.approx(near[n], rel=2e-7, abs=1e-8), (n, name)


@pytest.mark.parametrize("seed", range(6))
def test_derivatives_of_drawn_systems(seed):
    """x_i = tanh(sum_j A_ij x_j + a c_i): two unknowns, a drawn contraction."""
    rng = np.random.default_rng(seed)
    A, c = rng.uniform(-0.4, 0.4, (2, 2)).round(3), rng.uniform(-1, 1, 2).round(3)
    rows = {u: hx.E(tanh(float(A[i, 0])*x + float(A[i, 1])*y + float(c[i])*a + z/2), z) for i, u in enumerate((x, y))}
    system = hx.System(rows, observables={"w": x**2*y})
    exact, near = system.solve(a=0.9).derivative("a"), difference(system, {"a": 0.9}, "a")
    for n in exact:
        assert exact[n] == pytest.approx(near[n], rel=1e-7, abs=1e-9)


def test_a_lost_term_would_be_seen():
    """Without the way through the unknowns, d own/da is m alone: another number."""
    found = CURIE.solve(a=1.7, b=0.3)
    exact = found.derivative("a")
    assert exact["own"] == pytest.approx(found["m"] + 1.7*exact["m"], rel=1e-12) and abs(exact["own"] - found["m"]) > 1e-2


def test_arrays_keep_their_shape():
    found = RIDGE.solve(alpha=[[1.0, 2.0, 3.0]], lam=[[0.1], [0.2]])
    slopes = found.derivative("lam")
    assert slopes["V"].shape == (2, 3)
    assert slopes["V"][1, 2] == pytest.approx(RIDGE.solve(alpha=3, lam=0.2).derivative("lam")["V"], rel=1e-9)


def test_a_theory_has_derivatives_by_letters_of_its_system():
    theory, numbers = hx.theories.one_step("tanh", "sin"), {"alpha": 2, "beta": 1, "alpha0": 5, "eta": 2, "Delta": 0.1}
    found = theory.solve(**numbers, lam=0.3)
    near = [theory.solve(**numbers, lam=0.3 + k*1e-4)["test_error"] for k in (-1, 1)]
    assert found.derivative("lam")["test_error"] == pytest.approx((near[1] - near[0])/2e-4, rel=1e-6)
    for name, at, _more in (("eta", 2, {}), ("alpha0", 5, {}), ("beta", 1, {}), ("Delta", 0.1, {})):  # through r, c and gamma
        near = [theory.solve(**{**numbers, name: at + k*1e-4}, lam=0.3)["test_error"] for k in (-1, 1)]
        assert found.derivative(name)["test_error"] == pytest.approx((near[1] - near[0])/2e-4, rel=1e-6), name
    with pytest.raises(BadInput, match="gamma was not given"):
        found.derivative("gamma")
    limit = theory.solve(**{**numbers, "alpha0": np.inf}, lam=0.3)
    with pytest.raises(BadInput, match="alpha0 = inf is a limit"):
        limit.derivative("alpha0")


# the optima of the theory sheet one_step_2, A4
OPTIMA = [("tanh", "sin", 2, 0.1, 2, 0, 2.402773797223, 0.11882324279041213),
          ("tanh", "sin", 2, 0.1, 20, 0, 4.732796923811, 0.02606847990904329),
          ("tanh", "sin", 2, 0.01, 2, 0.1, 1.808452669919, 0.23980580069472152),
          ("relu", "He1(z) + He2(z)/2", 2, 0.1, 2, 0, 1.8924412870, 0.986344012589),
          ("tanh", "tanh", 2, 0.01, 2, 0.1, 1.053676146141, 0.18788749507501895),
          ("relu", "He2(z)", 2, 0.1, 2, 0, 0.455159790758, 2.761715340904411),
          ("relu", "He1(z) + He2(z)/2", 4, 0.01, 5, 0.1, 4.894395375935, 0.7838615257383144)]


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, alpha, lam, alpha0, Delta, eta, risk", OPTIMA)
def test_the_best_learning_rate_of_one_step(sigma, g, alpha, lam, alpha0, Delta, eta, risk):
    theory = hx.theories.one_step(sigma, g)
    best = theory.minimise("test_error", over="eta", bounds=(1e-3, 1e3), alpha=alpha, lam=lam, alpha0=alpha0, Delta=Delta)
    assert best["eta"] == pytest.approx(eta, rel=2e-11) and best["test_error"] == pytest.approx(risk, rel=1e-12)
    assert best.at_end == "" and ("learns no features" in str(best.notes)) == (g == "He2(z)")
    assert best["test_error"] < theory.solve(eta=[eta/1.01, eta*1.01], alpha=alpha, lam=lam, alpha0=alpha0,
                                             Delta=Delta)["test_error"].min()


@pytest.mark.slow
def test_the_best_learning_rate_of_the_network_itself():
    """eta enters its equations beside r and c; numbers of the sheet, where a search found them."""
    theory = hx.theories.one_step("tanh", "sin", network="exact")
    best = theory.minimise("test_error", over="eta", bounds=(0.5, 10), alpha=2, lam=0.1, alpha0=2)
    assert best["eta"] == pytest.approx(2.2659, abs=5e-5) and best["test_error"] == pytest.approx(0.12080966387422967, rel=1e-12)


def test_the_best_point_comes_first():
    best = hx.theories.glm().minimise("test_error", over="lam", bounds=(1e-3, 10), alpha=2, Delta=0.25)
    assert repr(best).startswith("Solution(lam=0.25, test_error=0.175391") and "; inside the bounds; converged" in repr(best)
    assert list(best.table())[:3] == ["lam", "test_error", "at_end"] and best.table()["at_end"] == ["inside"]
    head = [cell.split("<")[0] for cell in best._repr_html_().split('left">')[1:4]]
    assert head == [r"$\lambda$", r"$\varepsilon_{\mathrm{test}}$", "at end"]
    end = hx.theories.glm().minimise("test_error", over="lam", bounds=(1, 10), alpha=2, Delta=0.25)
    assert end.at_end == "lam at the lower end" and "lam at the lower end" in repr(end)


@pytest.mark.slow
def test_the_best_rate_and_ridge_together():
    theory, at = hx.theories.one_step("erf", "sin"), {"alpha": 2, "alpha0": 4, "Delta": 0.1}
    best = theory.minimise("test_error", over=["eta", "lam"], bounds={"eta": (0.1, 20), "lam": (1e-3, 3)}, **at)
    line = np.exp(np.linspace(-0.05, 0.05, 5))
    near = theory.solve(eta=best["eta"]*line[:, None], lam=best["lam"]*line, **at)["test_error"]
    assert near.min() == near[2, 2] == pytest.approx(best["test_error"], rel=1e-10)
    assert list(best.value)[:3] == ["eta", "lam", "test_error"] and best.at_end == ""


# -- best parameters ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("noise", [0.05, 0.25, 2.0])
def test_the_best_ridge_is_the_noise(noise):
    best = hx.theories.glm().minimise("test_error", over="lam", bounds=(1e-4, 100), alpha=1.5, Delta=noise)
    assert best["lam"] == pytest.approx(noise, rel=1e-9)
    assert best.derivative("lam")["test_error"] == pytest.approx(0, abs=1e-12) and not best.notes


def test_it_is_below_every_value_of_a_dense_scan():
    theory, numbers = hx.theories.one_step("tanh", "sin"), {"alpha": 2, "beta": 1, "alpha0": 5, "eta": 2, "Delta": 0.1}
    best = theory.minimise("test_error", "lam", (1e-4, 10), **numbers)
    line = np.geomspace(1e-4, 10, 801)
    values = theory.solve(lam=line, **numbers)["test_error"]
    assert best["test_error"] <= values.min() and abs(np.log(best["lam"]/line[values.argmin()])) <= np.log(line[1]/line[0])


def test_the_lower_of_two_valleys_is_taken():
    system = hx.System({x: (a - 1)**2*(a - 4)**2 - a/10})
    best = system.minimise("x", "a", (0.1, 6))
    roots = np.roots([4, -30, 66, -40 - 0.1])
    assert best["a"] == pytest.approx(float(np.real(max(roots, key=np.real))), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_valley_between_points_of_the_scan_may_be_lower_than_an_end(seed):
    """w = cos(3 (x - c)) + 1e-5 x on (-3, 3): two or three valleys, and an end nearly as low; the floor is known in closed form."""
    rng = np.random.default_rng(seed)
    c = -3 + np.pi/3 - float(rng.uniform(0.02, 0.05))  # at x = -3 the cosine is nearly at its least
    system = hx.System({x: Symbol("p")}, parameters=["p"], observables={"w": cos(3*(x - c)) + x/100000})
    best = system.minimise("w", over="p", bounds=(-3, 3))
    inside = np.linspace(-3, 3, 200001)
    assert best["w"] <= (np.cos(3*(inside - c)) + 1e-5*inside).min() + 1e-12
    assert not any("end of the bounds" in note for note in best.notes)


@pytest.mark.parametrize("power", [2, 4, 6])
@pytest.mark.parametrize("c", [-0.839, 0.3271])
def test_a_flat_floor_is_a_floor(power, c):
    """(x - c)**4: its slope has a zero of the third order."""
    system = hx.System({x: Symbol("p")}, parameters=["p"], observables={"w": 10*(x - c)**power + 1})
    best = system.minimise("w", over="p", bounds=(-3, 3))
    assert best["w"] == 1 and best["p"] == pytest.approx(c, abs=3e-3)


def test_several_parameters_at_once():
    system = hx.System({x: a + 1/a + b + 4/b + 1/(a*b)})
    best = system.minimise("x", ["a", "b"], (0.05, 20))
    grid = np.geomspace(0.05, 20, 1201)
    scan = (grid + 1/grid)[:, None] + grid + 4/grid + 1/(grid[:, None]*grid)
    assert best["x"] <= scan.min() + 1e-12
    slopes = best.derivative("a")["x"], best.derivative("b")["x"]
    np.testing.assert_allclose(slopes, 0, atol=1e-7)


def test_an_end_and_an_edge_are_said():
    end = RIDGE.minimise("V", over="lam", bounds=(0.1, 5), alpha=2)
    assert end["lam"] == pytest.approx(5) and "upper end" in end.notes[-1]
    # The slope is nearly 0 at the end too.
    assert "upper end" in hx.System({x: 1 + 1/a}).minimise("x", over="a", bounds=(0.01, 1e6)).notes[-1]
    edge = hx.System({x: hx.parse("abs(a - 2)", symbols={"a": a})}).minimise("x", "a", (0.5, 9))
    assert edge["a"] == pytest.approx(2, abs=1e-6) and "edge" in edge.notes[-1]


C, D = symbols("c d", real=True)
PLANE = {"c": (-1, 1), "d": (-1, 1)}


@pytest.mark.parametrize("formula, least", [
    (sqrt(C - D) + C**2 + D**2, (0.0, 0.0, 0.0)),
    (sqrt(C - D) + (D - Rational(1, 2))**2 + (C - Rational(1, 4))**2, (5/144, 1/3, 1/3)),
    (sqrt(1 - C**2 - D**2) + C, (-1.0, -1.0, 0.0)), (Abs(C - Rational(1, 3) + 2*D) + (D + C)**2, (0.0, -1/3, 1/3))])
def test_the_edge_of_where_it_can_be_solved_is_found(formula, least):
    """The slope is infinite there, or there is none: it was called a parameter that is nan."""
    best = hx.System({x: formula}).minimise("x", over=["c", "d"], bounds=PLANE)
    assert [best["x"], best["c"], best["d"]] == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize("formula, over", [(1/(C - D), ["c", "d"]), (1/(C - Rational(1, 3)), ["c"]),
                                           (D/C**2 - 1/(C + D)**4, ["c", "d"]), (log(Abs(C - D)), ["c", "d"])])
def test_what_falls_without_bound_has_no_least_value(formula, over):
    with pytest.raises(BadInput, match="falls without bound next to c = "):
        hx.System({x: formula}).minimise("x", over=over, bounds={n: PLANE[n] for n in over})


def test_curves_along_any_letter_and_with_the_best_one(capsys):
    theory = hx.theories.glm()
    along = theory.curve(alpha=2, lam=[0.1, 0.25, 1], Delta=0.25)
    assert along.axis == "lam" and along.test_error[1] == along.test_error.min()
    both = theory.curve(alpha=[1, 2], lam=[0.1, 0.25], Delta=0.25)
    assert both.axis == "alpha" and both.test_error[1] == pytest.approx(along.test_error[1], rel=1e-12)
    best = hx.curve("glm", alpha=[1, 2], Delta=0.25, optimise="lam") if "glm" in hx.theories.THEORIES else \
        theory.curve(alpha=[1, 2], Delta=0.25, optimise="lam")
    np.testing.assert_allclose(best["lam"], 0.25, rtol=1e-8)
    assert cli.main(["curve", "random-features", "--sigma", "tanh", "--target", "sin", "--alpha", "2", "--gamma", "0.5", "--Delta",
                     "0.2", "--optimise", "lam", "--within", "1e-3:10", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    own = hx.theories.random_features("tanh", "sin")
    scan = own.solve(alpha=2, gamma=0.5, Delta=0.2, lam=np.geomspace(1e-3, 10, 201))["test_error"].min()
    assert said["test_error"][0] <= scan and said["lam"][0] > 0
    assert cli.main(["curve", "random-features", "--sigma", "tanh", "--target", "sin", "--alpha", "2", "--gamma", "0.5",
                     "--lam", "0.1,0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lam"] == [0.1, 0.2]


@pytest.mark.parametrize("bad, says", [
    (lambda: RIDGE.minimise("V", "lam", (1, 1), alpha=2), "first is the lower"),
    (lambda: RIDGE.minimise("V", "lam", 1, alpha=2), "two numbers"),
    (lambda: RIDGE.minimise("V", "lam", (0.1, 1), alpha=2, lam=1), "has a value, too"),
    (lambda: RIDGE.minimise("V", "lam", (0.1, 1), alpha=[1, 2]), "several values"),
    (lambda: RIDGE.minimise("W", "lam", (0.1, 1), alpha=2), "W"), (lambda: RIDGE.minimise("V", "mu", (0.1, 1), alpha=2), "mu"),
    (lambda: RIDGE.minimise("V", ["lam", "lam"], (0.1, 1), alpha=2), "lam is named twice"),
    (lambda: RIDGE.minimise("V", "lam", {"lam": (0.1, 1), "beta": (0, 1)}, alpha=2), "unknown name in bounds 'beta'"),
    (lambda: RIDGE.minimise("V", "lam", (0.1, 1), alpha="x"), "not a number"),
    (lambda: RIDGE.solve(alpha=2, lam=1).derivative("mu"), "mu"),
    (lambda: RIDGE.solve(alpha=[1, 2], lam=1).point(0).derivative("lam"), "one point of a batch"),
    (lambda: hx.Solution({"q": 1.0}, 0, True).derivative("lam"), "no equations behind it"),
    (lambda: hx.theories.glm().curve(alpha=[1, 2, 3], lam=[1, 2]), "one length"),
    (lambda: hx.theories.glm().minimise("test_error", "lam", (0.1, 1), alpha=2, lam=1), "has a value, too"),
])
def test_bad_input_gets_one_line(bad, says):
    with pytest.raises((BadInput, UnknownName), match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_nothing_that_can_be_solved_is_said():
    with pytest.raises(NotConverged, match="no point between the bounds"):
        hx.System({x: sqrt(b - a)}).minimise("x", "a", (0.2, 1), b=0.1)


@pytest.mark.parametrize("seed", range(6))
def test_a_derivative_beside_a_fold_has_six_digits_or_is_none(seed):
    """(x - c)^2 = a and E over a normal of it: dx/da = 1/(2 sqrt(a)), ever steeper, until rounding decides it."""
    rng = np.random.default_rng(seed)
    c, scale = rng.uniform(0.5, 3), 10.0**rng.uniform(-2, 2)
    x, a = symbols("x a", real=True)
    body = (x/scale - Rational(round(c*1000), 1000))**2
    fold = hx.System({x: x + scale*(a - (hx.E(body*z**2, z) if seed % 2 else body))})
    c, known = round(c*1000)/1000, 0
    for a_value in 10.0**np.arange(-2, -25, -1.5):
        found = fold.solve(a=a_value, start={"x": scale*(c + 1.1*np.sqrt(a_value))}, raise_on_failure=False)
        slope = found.derivative("a")["x"]
        known += np.isfinite(slope)
        if np.isfinite(slope):
            assert slope == pytest.approx(scale/(2*np.sqrt(a_value)), rel=2e-5), a_value
    assert 3 < known < 16


def test_a_derivative_that_is_zero_has_its_digits():
    """x = a + 1/a is least at a = 1: away from every fold a slope of 0 is as good as any other."""
    x, a = symbols("x a", positive=True)
    slopes = hx.System({x: a + 1/a}).solve(a=1 + np.array([0, 1e-12, -1e-9, 1e-6])).derivative("a")["x"]
    assert slopes == pytest.approx(np.array([0, 2e-12, -2e-9, 2e-6]), rel=1e-3, abs=1e-15)


def test_the_only_point_of_a_batch_has_the_derivative_of_that_point():
    """Theories that solve their points in batches hand it out: a convex loss had no best ridge."""
    from hermitex.symbols import V, Vhat, alpha, lamda

    ridge = hx.System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
    one = ridge.solve(alpha=np.array([2.0]), lamda=np.array([0.1])).point(0)
    assert one.derivative("lamda")["V"] == pytest.approx(ridge.solve(alpha=2, lamda=0.1).derivative("lamda")["V"], rel=1e-10)
    with pytest.raises(BadInput, match="one point of a batch"):
        ridge.solve(alpha=np.array([2.0, 3.0]), lamda=0.1).point(0).derivative("lamda")


def test_neighbours_in_one_valley_are_refined_once(monkeypatch):
    """The scan of 13 x 13 is solved in 24 parts, what leads down from its lowest point in a dozen steps."""
    asked, solve = [], hx.System.solve
    monkeypatch.setattr(hx.System, "solve", lambda self, *args, **numbers: asked.append(1) or solve(self, *args, **numbers))
    bowl = hx.System({x: (log(a) - Rational(1, 3))**2 + (log(b) + log(a)/2)**2 + 1})
    best = bowl.minimise("x", over=["a", "b"], bounds=(0.01, 50))
    assert best["x"] == pytest.approx(1, rel=1e-12) and best["a"] == pytest.approx(np.exp(1/3), rel=1e-6)
    assert len(asked) < 50
