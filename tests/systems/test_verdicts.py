"""What is called a solution is one: finite roots are found, roots at infinity are not, 0 is 0, and no point spoils its batch.

Each class has a seeded generator; the exported file gives the verdict and the digits of the session.
"""

import importlib.util
import time
from itertools import count

import numpy as np
import pytest
import scipy.special
from scipy.integrate import simpson
from sympy import Eq, Max, Rational, Symbol, cos, diff, erf, exp, log, pi, sin, sqrt, symbols, tan, tanh

from hermitex import E, System
from hermitex.errors import BadInput, NotConverged
from hermitex.kernels.adaptive import Quadratures
from hermitex.symbols import alpha, beta, lamda, z, z1
from hermitex.systems.run import Run

x, m, b = (Symbol(n, real=True) for n in ("x", "m", "b"))
p, q, r, C, c = (Symbol(n, positive=True) for n in ("p", "q", "r", "C", "c"))
_files = count()


def module_of(system, folder, reference):
    """The exported file as a module."""
    path = folder/f"solver_{next(_files)}.py"
    system.export(path, reference=reference)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_verdict(system, module, **numbers):
    """The session and the file: the same points converged, and there the same digits."""
    found = system.solve(numbers, raise_on_failure=False)
    try:
        theirs = module.solve(**numbers)
    except module.NotSolved as error:
        theirs = error.values
    assert np.array_equal(theirs["converged"], found.converged)
    for name in found.value:
        here, there = (np.asarray(v[name])[np.asarray(found.converged)] for v in (found, theirs))
        assert there == pytest.approx(here, rel=1e-10, abs=1e-12), name
    return found


# -- roots -------------------------------------------------------------------------------------------------------------
NOWHERE = {  # equations that hold ever better as the unknown goes on, and at no finite place
    "exp(-u)": lambda u: c*exp(-u), "1/u": lambda u: c/u, "1/(1 + u)": lambda u: c/(1 + u),
    "exp(-u^2)": lambda u: c*exp(-u**2) if u.is_positive else c*exp(-u**2)*(1 + u**2),
    "exp(-u) + exp(-2u)": lambda u: c*(exp(-u) + exp(-2*u)), "1/u^2": lambda u: c/(1 + u**2),
    "1/log": lambda u: c/log(2 + u**2), "u^2 + 1": lambda u: u**2 + c, "difference": lambda u: c/(1 + u**2) - c/(2 + u**2),
}


@pytest.mark.parametrize("name", NOWHERE)
@pytest.mark.parametrize("u", [x, p], ids=["real", "positive"])
@pytest.mark.parametrize("form", ["implicit", "explicit"])
def test_a_root_at_infinity_is_no_solution(name, u, form):
    formula = NOWHERE[name](u)
    system = System({u: Eq(formula, 0, evaluate=False) if form == "implicit" else u + formula})
    found = system.solve(c=np.array([1e-3, 0.7, 1.0, 30.0]), raise_on_failure=False)
    assert not np.any(found.converged), found
    assert all(found.reason)


@pytest.mark.parametrize("start", [30.0, 700.0, 1e4])
def test_nor_is_it_one_from_a_start_that_is_far_out(start):
    for formula in (exp(-p), p*exp(-p), exp(-p)/p):
        found = System({p: Eq(c*formula, 0, evaluate=False)}).solve(c=1.0, start={"p": start}, raise_on_failure=False)
        assert not found.converged, (formula, found)


@pytest.mark.slow
def test_an_average_that_tends_to_one_is_never_one():
    """1 - E tanh(p z)^2 falls like 1/p: it is not 0 where p - F is p to rounding, nor where finer rules begin far out."""
    found = System({p: Eq(E(tanh(p*z)**2, z), 1)}).solve(start={"p": 1e3}, raise_on_failure=False)
    assert not found.converged and "p runs to infinity" in found.reason


def test_the_root_that_another_start_finds_is_found():
    for u in (x, p):
        system = System({u: Eq(diff((u**2 + b)/(1 + u)**2, u), 0)})
        found = system.solve(b=np.array([1e-3, 0.25, 10.0, 1e6]))
        assert found[u.name] == pytest.approx([1e-3, 0.25, 10, 1e6], rel=1e-9)
    found = System({x: Eq(1/x - b, 0)}).solve(b=np.array([0.0, 1.0, -2.0]), raise_on_failure=False)
    assert found.converged.tolist() == [False, True, True] and found["x"][1:] == pytest.approx([1, -0.5])


def test_the_best_ridge_by_its_own_stationarity():
    """Isotropic ridge regression: the test error is least at lamda = Delta, whatever alpha (Dobriban and Wager 2018)."""
    V, L, Delta = (Symbol(n, positive=True) for n in ("V", "L", "Delta"))
    hat = alpha/(1 + V)
    k = alpha/(1 + V)**2/(L + hat)**2
    m_, gap = hat/(L + hat), V - 1/(L + hat)
    error = 1 + Delta + (m_**2 + k*(1 + Delta - 2*m_))/(1 - k) - 2*m_
    total = diff(error, L) - diff(error, V)*diff(gap, L)/diff(gap, V)
    found = System({V: 1/(L + hat), L: Eq(total, 0)}).solve(alpha=np.array([0.5, 1.0, 2.0, 3.0]), Delta=0.25)
    assert found["L"] == pytest.approx(0.25, rel=1e-9)


def drawn(seed):
    """(system, root): an equation with one known root on the side where it is looked for, of any scale and written in any way."""
    draw = np.random.default_rng(seed)
    root = Rational(10)**int(draw.integers(-2, 2))*Rational(int(draw.integers(1, 1000)), 300)
    size = Rational(10)**int(draw.integers(-2, 3))
    written = [size*(p - root*b)/(1 + p), size*(log(p) - log(root*b)), size*(p**3 - (root*b)**3), size*(1/p - 1/(root*b)),
               size*(p**2 + root*b*p - 2*(root*b)**2).expand(), size*(tanh(p/(root*b)) - tanh(1)),
               size*((p - root*b)/(p + root*b) + (p - root*b)**3/(p + root*b)**3)]
    return System({p: Eq(written[int(draw.integers(len(written)))], 0)}, parameters=["b"]), float(root)


@pytest.mark.parametrize("seed", [*range(15), *(pytest.param(s, marks=pytest.mark.thorough) for s in range(15, 400))])
def test_a_known_root_is_found_or_not_claimed(seed):
    system, root = drawn(seed)
    found = system.solve(b=1.0, raise_on_failure=False)
    assert found.converged and found["p"] == pytest.approx(root, rel=1e-8), (system.equations, root, found)


# -- zero --------------------------------------------------------------------------------------------------------------
w = tanh(beta*(m + sqrt(alpha*r)*z))
ZERO = {  # system, points above their transition, points below
    "SK": (System({q: E(tanh(beta*sqrt(q)*z)**2, z)}), {"beta": [0.1, 0.9, 0.999]}, {"beta": [1.01, 1.5, 5.0]}),
    "spiked Wigner, signs": (System({q: E(tanh(lamda*q + sqrt(lamda*q)*z), z)}), {"lamda": [0.2, 0.5, 0.99]},
                             {"lamda": [1.01, 2.0, 9.0]}),
    "spiked Wigner, normal": (System({q: lamda*q/(1 + lamda*q)}), {"lamda": [0.5, 0.6, 0.9999]}, {"lamda": [1.0001, 2.0]}),
    "tensor, order 3": (System({q: lamda*q**2/(1 + lamda*q**2)}), {"lamda": [0.1, 2.0, 3.9]}, {"lamda": [4.1, 8.0]}),
    "tensor, order 4": (System({q: lamda*q**3/(1 + lamda*q**3)}), {"lamda": [0.1, 2.0, 6.0]}, {"lamda": [8.0, 20.0]}),
    "spiked Wishart": (System({q: lamda*p/(1 + lamda*p), p: alpha*lamda*q/(1 + lamda*q)}), {"alpha": 0.5, "lamda": [0.3, 1.0, 1.4]},
                       {"alpha": 0.5, "lamda": [1.42, 3.0]}),
    "Hopfield, positive m": (System({p: E(w.subs(m, p), z), q: E(w.subs(m, p)**2, z), r: q/(1 - beta*(1 - q))**2}),
                             {"alpha": 0.05, "beta": [0.3, 0.6, 0.8]}, {"alpha": 0.05, "beta": [3.0, 10.0]}),
}


@pytest.mark.parametrize("name", ZERO)
def test_a_positive_unknown_is_exactly_0_below_its_transition_and_not_above(name):
    system, below, above = ZERO[name]
    begun = time.process_time()
    found = system.solve(below)
    assert time.process_time() - begun < 5
    first = system.unknowns[0].name
    assert np.all(found[first] == 0) and np.all(found.residual < 1e-11)
    assert any("boundary" in note for note in found.notes)
    assert np.all(found.iterations < 400)
    assert np.all(system.solve(above)[first] > 1e-5)


@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-7])
def test_what_is_merely_small_is_not_called_0(distance):
    """q = 1 - 1/lamda just above the transition, and half of beta^2 - 1 to leading order in the SK model."""
    found = System({q: lamda*q/(1 + lamda*q)}).solve(lamda=1 + distance, raise_on_failure=False)
    assert not found.converged or found["q"] == pytest.approx(distance, rel=1e-2)
    found = ZERO["SK"][0].solve(beta=1 + distance, raise_on_failure=False)
    assert not found.converged or found["q"] == pytest.approx(distance, rel=1e-2)
    tiny = System({q: exp(-1/c)/(1 + q**2)})  # its slope at 0 is 0, but it does not vanish there
    assert tiny.solve(c=np.array([0.02, 0.01]))["q"] == pytest.approx([np.exp(-50), np.exp(-100)], rel=1e-9, abs=0)


def test_the_critical_point_itself_has_0_for_its_solution():
    assert ZERO["spiked Wigner, normal"][0].solve(lamda=1.0)["q"] == 0
    assert ZERO["SK"][0].solve(beta=1.0)["q"] == pytest.approx(0, abs=1e-12)


def test_0_is_refused_where_the_equations_drive_away_from_it():
    found = System({q: sqrt(q)*c/(1 + q)}).solve(c=np.array([0.1, 1.0]))  # infinite slope at 0
    assert np.all(found["q"] > 1e-3) and np.all(found.residual < 1e-11)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.thorough) for s in range(12, 150))])
def test_drawn_maps_end_at_0_if_and_only_if_they_contract_there(seed):
    """q = s q/(1 + a q + b q^2), of any scale: 0 up to s = 1, else the root of a q + b q^2 = s - 1; s beside 1 too."""
    draw = np.random.default_rng(seed)
    size = 10.0**draw.uniform(-2, 2)
    a_, b_ = draw.uniform(0.2, 2)/size, draw.uniform(0.1, 2)/size**2
    s = np.concatenate([draw.uniform(0.05, 0.95, 2), 1 + 10.0**draw.uniform(-4, 1, 3)])
    u, v, g = (Symbol(n, positive=True) for n in ("u", "v", "g"))
    found = System({q: g*q/(1 + u*q + v*q**2)}).solve(g=s, u=a_, v=b_)
    expected = np.where(s > 1, 2*(s - 1)/(a_ + np.sqrt(a_**2 + 4*b_*np.maximum(s - 1, 0))), 0)
    assert np.all(found["q"][s < 1] == 0)
    assert found["q"][s > 1] == pytest.approx(expected[s > 1], rel=1e-6)


# -- batches -----------------------------------------------------------------------------------------------------------
HOPFIELD = System({m: E(w, z), q: E(w**2, z), r: q/(1 - beta*(1 - q))**2})


def alone_and_together(system, numbers, **options):
    """Every point alone has the verdict and the numbers that it has in the batch."""
    together = system.solve(numbers, raise_on_failure=False, **options)
    arrays = {k: np.asarray(v) for k, v in numbers.items() if np.ndim(v)}
    for k in range(len(next(iter(arrays.values())))):
        one = system.solve({**numbers, **{n: v[k] for n, v in arrays.items()}}, raise_on_failure=False, **options)
        assert one.converged == together.converged[k], (k, one, together.point(k))
        if one.converged:
            for u in system.unknowns:
                assert together[u.name][k] == pytest.approx(one[u.name], rel=1e-8, abs=1e-12), (k, u)
    return together


def test_a_hard_point_leaves_the_others_of_its_batch_alone():
    found = alone_and_together(HOPFIELD, {"alpha": 0.05, "beta": [10.0, 1e5]}, start={"m": 0.9})
    assert found.converged[0] and found["m"][0] == pytest.approx(0.998, abs=5e-3)
    assert np.all(alone_and_together(ZERO["spiked Wigner, signs"][0], {"lamda": [0.5, 0.6]}).converged)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.thorough) for s in range(4, 40))])
def test_batches_of_easy_hard_and_hopeless_points(seed):
    draw = np.random.default_rng(seed)
    steep, missing = 10.0**draw.uniform(0, 4, 3), [-1.0, 1e3]
    system = System({q: E(tanh(beta*(z - b))**2, z)/(1 + q) + lamda})
    values = draw.permutation([*steep, 1.0, 2.0])
    alone_and_together(system, {"beta": values, "b": 0.3, "lamda": draw.permutation([0.1, 0.2, 0.3, *missing])})
    roots = System({p: Eq(p - b + c*exp(-p), 0)})  # none for b < 1 + log c
    alone_and_together(roots, {"b": draw.permutation([0.1, 0.3, 1.0, 3.0, 300.0]), "c": 10.0**draw.uniform(-1, 1, 5)})


# -- the file ----------------------------------------------------------------------------------------------------------
FILES = {
    "a/x - b": (System({p: Eq(c/p - b, 0)}), {"c": 1.0, "b": 1.0}, {"c": 1.0, "b": [0.0, 1.0, 1e-3]}),
    "exp(-x)": (System({p: Eq(c*exp(-p) - b, 0)}), {"c": 1.0, "b": 0.5}, {"c": 1.0, "b": [0.0, 0.5]}),
    "x exp(-x)": (System({p: Eq(c*p*exp(-p) - b, 0)}), {"c": 1.0, "b": 0.2}, {"c": 1.0, "b": [0.0, 0.2]}),
    "best ridge": (System({p: Eq(diff((p**2 + b)/(1 + p)**2, p), 0)}), {"b": 0.25}, {"b": [0.25, 3.0]}),
    "Hopfield": (HOPFIELD, {"alpha": 0.05, "beta": 3.0}, {"alpha": 0.05, "beta": [0.5, 3.0, 10.0]}),
    "Hopfield, T = 0": (System({m: erf(m/sqrt(2*alpha*r)), C: sqrt(2/(pi*alpha*r))*exp(-m**2/(2*alpha*r)), r: 1/(1 - C)**2}),
                        {"alpha": 0.1}, {"alpha": [0.05, 0.1, 0.2]}),
    "SK": (ZERO["SK"][0], {"beta": 2.0}, {"beta": [0.5, 0.9, 2.0, 10.0]}),
    "spiked Wigner": (ZERO["spiked Wigner, signs"][0], {"lamda": 2.0}, {"lamda": [0.5, 0.6, 1.5]}),
}


QUICK = ("a/x - b", "Hopfield, T = 0", "SK")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in FILES])
def test_the_file_has_the_verdict_of_the_session(name, tmp_path):
    system, reference, points = FILES[name]
    module = module_of(system, tmp_path, reference)
    assert module.selftest() < 1e-10
    for k in range(len(points[next(n for n in points if np.ndim(points[n]))])):
        same_verdict(system, module, **{n: v[k] if np.ndim(v) else v for n, v in points.items()})
    same_verdict(system, module, **{n: np.asarray(v) if np.ndim(v) else v for n, v in points.items()})


# -- time --------------------------------------------------------------------------------------------------------------
def test_what_runs_off_has_no_solution():
    """Separable labels: V of a loss without a minimiser goes to infinity; so does x = x + 1/x, like the root of the steps."""
    found = System({p: p + c/p, q: 1/(1 + q*c)}).solve(c=np.array([0.5, 2.0]), raise_on_failure=False)
    assert not np.any(found.converged)


@pytest.mark.slow
def test_logistic_regression_beyond_its_estimate_ends_in_seconds():
    """Sur and Candes 2019: at gamma^2 = 5 there is no maximum of the likelihood beyond kappa of about 0.28."""
    from hermitex import Prox

    gamma2, kappa, s2, lam = (Symbol(n, positive=True) for n in ("gamma2", "kappa", "s2", "lam"))
    f, a, z1, z2 = (Symbol(n, real=True) for n in ("f", "a", "z1", "z2"))
    w1 = sqrt(gamma2)*z1
    w2 = -a*w1 + sqrt(kappa*s2)*z2
    rate, step = 1/(1 + exp(-w1)), w2 - Prox(log(1 + exp(f)), f, w2, lam)
    system = System({s2: 2/kappa**2*E(rate*step**2, z1, z2), a: Eq(E(rate*w1*step, z1, z2), 0),
                     lam: Eq(2*E(rate*z2*step, z1, z2)/sqrt(kappa*s2), kappa)})
    found = system.solve(kappa=0.2, gamma2=5)
    assert [found[n] for n in ("a", "s2", "lam")] == pytest.approx([1.49935, 22.5013, 3.02693], rel=1e-5)
    begun = time.process_time()
    with pytest.raises(NotConverged, match=r"runs to infinity under iteration: no finite solution was found"):
        system.solve(kappa=0.35, gamma2=5)
    assert time.process_time() - begun < 60


def test_a_budget_ends_a_solve_with_its_last_state(tmp_path, capsys):
    hard = System({x: Eq(E(tanh(c*(z - x))**2, z) + 1, 0, evaluate=False)})  # it has no root, and the average is dear
    begun = time.perf_counter()
    with pytest.raises(NotConverged, match=r"the budget of 0\.2 CPU seconds ran out") as caught:
        hard.solve(c=np.geomspace(1, 3000, 300), budget=0.2)
    assert time.perf_counter() - begun < 10
    assert caught.value.solution["x"].shape == (300,) and not np.any(caught.value.solution.converged)
    easy = System({p: 1/(c + p)})
    assert easy.solve(c=1.0, budget=60)["p"] == easy.solve(c=1.0)["p"]
    for wrong in (-1.0, float("nan")):
        with pytest.raises(BadInput, match="is not a number of seconds"):
            easy.solve(c=1.0, budget=wrong)
    module = module_of(easy, tmp_path, {"c": 1.0})
    assert module.solve(c=2.0, budget=60)["converged"]
    with pytest.raises(module.NotSolved, match="the budget of 0 CPU seconds ran out"):
        module.solve(c=np.array([2.0, 3.0]), budget=0.0)
    assert module.main(["--c", "2,3", "--budget", "60"]) == 0 and module.main(["--c", "2,3", "--budget", "0"]) == 1
    assert "the budget of 0 CPU seconds ran out" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        module.main(["--c", "2", "--budget", "-1"])


def test_what_no_unknown_enters_is_on_the_nodes_in_force_when_the_time_is_up():
    """The table of the logistic function was left on fewer nodes than the tanh beside it."""
    system = System({p: 1 + E(tanh(z)*tanh(p + 1/(1 + exp(-c*z))), z)})
    cut = system.solve(c=30, budget=0, raise_on_failure=False)
    assert not cut.converged and "the budget of 0 CPU seconds ran out" in cut.reason


@pytest.mark.slow
def test_a_budget_holds_where_one_evaluation_is_dear(tmp_path):
    """What is not to be had in the time that is left is not begun: finer nodes of nested averages cost a hundred times as much."""
    from hermitex import sweep

    nested = System({x: E(tanh(b*(x*z + E(tanh(c*(z1 + z*x))**2, z1)))**2, z)})
    for solve, values in ((nested.solve, 50.0), (nested.solve, np.linspace(1, 50, 300))):
        begun = time.process_time()
        with pytest.raises(NotConverged, match=r"the budget of 0\.5 CPU seconds ran out"):
            solve(b=values, c=80.0, budget=0.5)
        assert time.process_time() - begun < 1.6
    begun = time.process_time()
    cut = sweep(nested, {"b": np.linspace(40, 60, 5), "c": [80.0]}, budget=0.5, checkpoint=tmp_path/"kept", chunk=2)
    assert time.process_time() - begun < 1.6 and not np.any(cut["converged"])
    easy = nested.solve(b=1.0, c=1.0, budget=60)
    assert easy.converged and easy["x"] == nested.solve(b=1.0, c=1.0)["x"]


def test_a_sweep_whose_time_is_up_is_resumed_where_it_stood(tmp_path):
    from hermitex import sweep

    system = System({q: E(tanh(beta*sqrt(q)*z + c)**2, z)})
    grid = {"beta": np.linspace(0.5, 3, 6), "c": [0.3, 0.4]}
    cut = sweep(system, grid, budget=0.0, checkpoint=tmp_path/"kept", chunk=3)
    assert not np.any(cut["converged"]) and all("the budget of 0 CPU seconds ran out" in r for r in cut["reason"])
    whole = sweep(system, grid, budget=100, checkpoint=tmp_path/"kept", chunk=3)
    assert np.all(whole["converged"]) and np.array_equal(whole["q"], sweep(system, grid, chunk=3)["q"])
    with pytest.raises(BadInput, match="budget = -1 is not a number of seconds"):
        sweep(system, grid, budget=-1)


def test_an_observable_shows_what_is_left_of_an_unknown():
    """1/(x - c) beside the root: x was solved to 8e-13, its observable to 2e-6, with a word of 4e-9."""
    near = Rational(6743752960029, 250000000000000)
    system = System({x: Rational(29887, 500000)*tanh(100*x/13) + c}, observables={"o": 1/(x - near)})
    found = system.solve(c=0.014746892125318, raise_on_failure=False)
    assert not found.converged or found["o"] == pytest.approx(-84458631.9987, rel=1e-7)


# -- averages whose error a solution amplifies -------------------------------------------------------------------------
def overlap(steep, a, s):
    """1 - E tanh^2(steep (a + s z)), by the trapezoid rule along u = steep (a + s z)."""
    u = np.linspace(-40, 40, 8001)
    return np.sum(np.exp(-((u/steep - a)/s)**2/2)/np.cosh(u)**2)*(u[1] - u[0])/(np.sqrt(2*np.pi)*s*steep)


def amplified(k):
    w = tanh(beta*(m + r*z))
    return System({q: E(w**2, z), x: q/(1 - b*(1 - q))**k})


@pytest.mark.parametrize("seed", range(8))
def test_a_pole_beside_an_average_that_is_nearly_one(seed):
    """x = q/(1 - b (1 - q))^k is off by k b times the error of q."""
    draw = np.random.default_rng(seed)
    steep, a, s, part = (draw.uniform(*ends) for ends in ((1, 6), (0.5, 1.5), (0.2, 0.5), (0.2, 0.9)))
    steep, k = 10**steep, seed % 4 + 1
    gap = overlap(steep, a, s)
    found = amplified(k).solve(beta=steep, m=a, r=s, b=part/gap, raise_on_failure=False)
    if found.converged:
        assert found["x"] == pytest.approx((1 - gap)/(1 - part)**k, rel=1e-8)
    assert found.converged or steep > 1e4 or part/gap > 1e6  # or where the rounding of q is too much


@pytest.mark.parametrize("steep", [1e3, 1e5])
def test_an_overlap_amplified_around_a_loop(steep):
    """Amit, Gutfreund and Sompolinsky 1987 in the cold: right, or not called solved."""
    w = tanh(beta*(m + sqrt(alpha*r)*z))
    hopfield = System({m: E(w, z), q: E(w**2, z), r: q/(1 - beta*(1 - q))**2})
    found = hopfield.solve(alpha=0.05, beta=steep, start={"m": 1.0, "q": 1 - 1e-7*1e5/steep, "r": 1.0}, raise_on_failure=False)
    if found.converged:
        gap = overlap(steep, found["m"], np.sqrt(0.05*found["r"]))
        assert found["r"] == pytest.approx((1 - gap)/(1 - steep*gap)**2, rel=1e-8)
    assert found.converged or steep > 1e4


@pytest.mark.parametrize("size", [3e3, 1e4, 1e6])
@pytest.mark.parametrize("field", [0.0, 0.3])
def test_a_step_whose_width_an_unknown_sets(size, field):
    """q = E tanh(beta (sqrt(q) z + h))^2 against 1 - q = int sech(u)^2 phi((u/beta - h)/sqrt(q)) du/(beta sqrt(q))."""
    h = Symbol("h", real=True)
    for inside in (beta*sqrt(q)*z + beta*h, beta*(sqrt(q)*z + h)):
        found = System({q: E(tanh(inside)**2, z)}).solve(beta=size, h=field)

        def lost(at):
            u = np.linspace(-20, 20, 4001)
            phi = np.exp(-(u/size - field)**2/(2*at))/np.sqrt(2*np.pi*at)
            return (phi/np.cosh(u)**2).sum()*(u[1] - u[0])/size

        assert 1 - float(found.q) == pytest.approx(lost(float(found.q)), rel=1e-12, abs=1e-15)
        assert found.converged and found.stability < 1


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_a_function_beside_what_an_unknown_makes_steep(size):
    """q = E erf(z) tanh(beta q z) = 2/pi arctan(sqrt 2) - 2 int_0 erf(v) phi(v) (1 - tanh(u)) dv, v = u/(beta q)."""
    found = System({q: E(erf(z)*tanh(beta*q*z), z)}).solve(beta=size)
    u = np.linspace(0, 25, 100_001)
    v = u/(size*float(found.q))
    lost = simpson(2*scipy.special.erf(v)*np.exp(-v**2/2)/np.sqrt(2*np.pi)*(1 - np.tanh(u)), x=v)
    assert found.converged and found.q == pytest.approx(2/np.pi*np.arctan(np.sqrt(2)) - lost, rel=1e-11)


def test_a_small_difference_of_averages():
    """The noise that approximate message passing sees (Krzakala et al. 2012): S is 1/400 of the averages it is left of."""
    S, part = Symbol("S", positive=True), Symbol("part", positive=True)

    def square(s):
        odds = (1 - part)/part*sqrt((1 + S)/S)*exp(-(s*z)**2/(2*S*(1 + S)))
        return E((s*z/(1 + S)/(1 + odds))**2, z)

    system = System({S: c + (part - (1 - part)*square(sqrt(S)) - part*square(sqrt(1 + S)))/alpha})
    found = system.solve(alpha=0.2, part=0.1, c=1e-4, start={"S": 1e-4})
    assert found["S"] == pytest.approx(2.484758246846e-4, rel=1e-10)


def test_the_file_measures_what_averages_do_to_the_solution(tmp_path):
    system = amplified(2)
    numbers = {"m": 1.0, "r": 0.3, "b": 1e4}
    module = module_of(system, tmp_path, {**numbers, "beta": 30.0})
    for steep in (30.0, 3e5):
        same_verdict(system, module, beta=steep, **numbers)


# -- signs -------------------------------------------------------------------------------------------------------------
def signed_system(seed):
    """(system, parameters, value of p): p and q declared positive, p an explicit, linear or eliminated unknown of known value."""
    draw = np.random.default_rng(seed)
    value, slope, shift = draw.choice([-1, 1])*draw.uniform(0.05, 3), draw.uniform(-0.8, 0.8), draw.uniform(0.5, 2)
    made = [
        {p: b},
        {p: b*(1 - slope) + slope*p},
        {p: Eq(shift*(p - b), 0)},
        {p: b - slope*shift + slope*q, q: Rational(1, 2)*q + shift/2},               # after a linear one
        {p: b*E(tanh(z)**2, z)/E(tanh(z)**2, z)},
        {p: b - 2**Rational(1, 3) + q, q: Eq(q**3, 2)},                              # after a root
        {p: b + slope*(q - tanh(p)), q: tanh(p)} if value < 0 else {p: b + slope*(q - shift), q: shift + 0*p},
    ]
    return System(made[seed % len(made)]), {"b": value}, value


@pytest.mark.parametrize("seed", range(28))
def test_what_is_declared_positive_is_not_solved_by_a_negative_number(seed):
    system, numbers, value = signed_system(seed)
    found = system.solve(numbers, raise_on_failure=False)
    assert not found.converged or found["p"] == pytest.approx(value, rel=1e-9)
    assert found.converged == (value > 0)
    if found.value["p"] < 0:
        assert "negative" in str(found.reason)


def test_one_negative_point_leaves_its_batch_alone_and_rounding_is_no_sign():
    found = System({p: b - 1, q: p + 2}).solve(b=np.array([0.5, 2.0, 1.0]), raise_on_failure=False)
    assert found.converged.tolist() == [False, True, True] and found["q"][1] == 3
    noise = System({p: b*(E(erf(z)**2, z) - E(erf(z)**2 + 3, z) + 3)})  # 0 but for the rounding of its averages
    assert noise.solve(b=1.0).converged and noise.solve(b=-1.0).converged


@pytest.mark.slow
def test_the_file_refuses_a_negative_number_too(tmp_path):
    system = System({p: b - q, q: Eq(q**3, 2)})
    found = same_verdict(system, module_of(system, tmp_path, {"b": 3.0}), b=np.array([3.0, 1.0]))
    assert found.converged.tolist() == [True, False]


@pytest.mark.parametrize("shape", [lambda x: log(x) + 60, lambda x: log(x) + 600, lambda x: log(x) + 10**6,
                                   lambda x: log(x)**3 + 10**6, lambda x: x**Rational(1, 3) + Rational(1, 3),
                                   lambda x: x**Rational(1, 5) + 3])
@pytest.mark.parametrize("begin", [{}, {"x": 3.0}], ids=str)
def test_a_short_step_beside_an_infinite_slope_is_no_root(shape, begin):
    """Near 0 a step is short, however far the equation is from being true, and whatever it is multiplied by."""
    x = Symbol("x", real=True)
    for factor in (1, 1e-9):
        found = System({x: Eq(factor*shape(x), 0)}).solve(start=begin, raise_on_failure=False)
        assert not found.converged, factor


@pytest.mark.parametrize("power", [-10, -14, -20, -30])
@pytest.mark.parametrize("begin", [{}, {"x": 1e-3}, {"x": 3.0}], ids=str)
def test_a_root_near_0_is_met_to_relative_accuracy(power, begin):
    """x counts as one of 1e-3 where a step is judged; an infinite slope at 0 makes all of x shorter than that."""
    x, y = symbols("x y", real=True)
    for factor in (1, 1e-9):
        found = System({x: Eq(factor*log(x), factor*power)}).solve(start=begin)
        assert found["x"] == pytest.approx(float(exp(power)), rel=1e-10, abs=0)
        pair = System({x: Eq(factor*log(x) - y, factor*power), y: factor*x}).solve(start=begin, raise_on_failure=False)
        if pair.converged:
            assert pair["x"] == pytest.approx(np.exp(power + pair["x"]), rel=1e-9, abs=0)


def test_what_is_infinite_at_the_start_is_not_asked_again_of_finer_nodes(monkeypatch):
    """E exp(x^2 z^2 ...) exists below |x| = 1: from -2 few nodes see that, and what reaches further sees no less."""
    fine = []
    solution = Run.solution

    def watched(run):
        fine.append(run.program.fine)
        return solution(run)

    monkeypatch.setattr(Run, "solution", watched)
    u, v, p = symbols("u v p", real=True)
    system = System({u: p + E(exp(E(Max(0, u*z + v)**2, v)), z)/10}, parameters=["p"])
    assert system.solve(p=0.3).converged and not any(fine)
    with pytest.raises(NotConverged, match="not finite at the start"):
        system.solve(p=-2.0)
    assert fine and not any(fine)


# -- equations whose terms are all 0 at the root -------------------------------------------------------------------------
VANISHING = [  # of t, which is 0 at the roots of sin(t), and is about as large as they are beside them
    lambda t, y: Eq(sin(t), 0), lambda t, y: Eq(y*sin(t)*exp(y/1000), 0), lambda t, y: Eq(10**12*sin(t), y/10**18),
    lambda t, y: Eq(sin(t), y/10**30), lambda t, y: Eq(tan(t)*log(y + 2), 0), lambda t, y: Eq(sin(t)**3, 0)]


@pytest.mark.parametrize("make", VANISHING)
@pytest.mark.parametrize("unknown", [x, q])
def test_a_root_far_out_of_a_product_or_beside_a_tiny_term(make, unknown):
    """cos(y) = 0 at 23.56: its terms are no measure there, nor is a tenth of a percent of 1."""
    draw = np.random.default_rng(7)
    for size in 10**draw.uniform(0, 4, 5):
        shift = round(draw.uniform(0, 3), 2)
        found = System({unknown: make(unknown + shift, unknown)}).solve(start={unknown.name: size})
        place = found[unknown.name] + shift
        accuracy = 1e-9 if make is not VANISHING[-1] else 1e-5
        assert abs(place/np.pi - np.round(place/np.pi)) <= accuracy*max(1, abs(place)), (size, found)


def test_far_out_where_rounding_moves_an_equation_by_all_of_it_another_start_is_tried():
    """cos(x) = x/1e30 from 0: the first step leads to 1e30."""
    for power in (1, 3):
        found = System({x: Eq(cos(x)**power, x/10**30)}).solve()
        assert abs(abs(found["x"]) - np.pi/2) < 1e-8


@pytest.mark.parametrize("body", [sqrt(abs(x - 3)), abs(x - 3), abs(x - 3)**Rational(1, 3), sqrt(abs(sin(x)))], ids=str)
def test_what_is_small_and_has_one_sign_on_both_sides_is_no_root(body):
    """sqrt|x - 3| + b = 0: the steeper, the shorter is the step that seems to solve it."""
    system = System({x: Eq((body + b)*exp(x/3), 0)})
    for start in ({}, {"x": 3.0}, {"x": 3 + 1e-5}):
        found = system.solve(b=[1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12], start=start, raise_on_failure=False)
        assert not found.converged.any(), found


@pytest.mark.parametrize("width, alone", [(1, False), (30, True)])
def test_averages_are_asked_one_by_one_where_one_look_does_not_hold_the_solution(width, alone, monkeypatch):
    asked = []
    examine = Quadratures.examine
    monkeypatch.setattr(Quadratures, "examine", lambda self, *a, **k: asked.append(a) or examine(self, *a, **k))
    found = System({p: 1/(1 + p) + E(1/(1 + (1 - cos(c*z/3))**2 + z**2/100), z)/5}).solve(c=width)
    v = np.linspace(-12, 12, 100_001)
    mean = simpson(np.exp(-v*v/2)/(1 + (1 - np.cos(width*v/3))**2 + v**2/100), x=v)/np.sqrt(2*np.pi)/5
    assert found["p"] == pytest.approx((mean - 1 + np.sqrt((mean - 1)**2 + 4*(1 + mean)))/2, rel=1e-11)
    assert bool(asked) == alone


def test_an_error_names_the_average_that_failed():
    """E exp(b z^2) does not exist at b = 0.6: the message says which average it was, and where."""
    system = System({"a": "E(exp(b*z**2)) + E(tanh(a*z)**2)"}, symbols="b>0")
    with pytest.raises(NotConverged, match=r"E\(exp\(b\*z\*\*2\), z\) has no finite value at b = 0.6"):
        system.solve(b=0.6)


def test_a_zero_that_is_stable_names_branches():
    """m = tanh(8 m^3) has m = 0 and two more; m = tanh(2 m) leaves 0, which is said already."""
    (note,) = System({"m": "tanh(8*m**3)"}).solve(start={"m": 0.1}).notes
    assert note.startswith("m = 0 is stable under iteration") and ".branches(" in note
    assert not any("branches" in n for n in System({"m": "tanh(2*m)"}).solve().notes)
    assert not System({"m": "tanh(8*m**3)"}).solve(start={"m": 0.9}).notes
