"""One giant step: constants, exact directions, law of the cosine by sampling, finite networks, rates, teeth, bad input."""

import json
from math import gamma
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import qmc
from sympy import Matrix, Rational, Symbol, oo

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.experiments.giant_step_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.symbolic.subspaces import spans_same
from hermitex.theories import giant_step, sgd

KNOWN = json.loads((Path(__file__).parents[1]/"reference"/"limits.json").read_text())
NORMAL_2 = "He2(z)/sqrt(2)"


def test_the_two_constants():
    one, two = giant_step("relu", "z"), giant_step("relu", NORMAL_2)
    assert one.order == 1 and two.order == 2
    assert abs(one.solve(u=1)["cosine"] - KNOWN["giant_limits"]["l1_n=d"]) < 1e-14
    assert abs(two.solve(u=1)["cosine"] - KNOWN["giant_limits"]["l2_n=d2"]) < 1e-12
    assert two.solve(u=1)["order"] == 2 and two.solve(u=1)["directions"] == Matrix([[1]]) and "derived" in two.solve(u=1).notes[-1]


@pytest.mark.parametrize("g, order, rows", [
    ("z1*z2", 2, [[1, 0], [0, 1]]), ("(z1 + z2)**2", 2, [[1, 1]]), ("relu(z1) + z2**2", 1, [[1, 0]]),
    ("z1*z2*z3", 3, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]), ("sign(z1*z2)", 2, [[1, 0], [0, 1]]),
    ("He3(z1) + He3(z2) + He4(z3)", 3, [[1, 0, 0], [0, 1, 0]]), ("2*z1 - z2 + z1*z2", 1, [[2, -1]]),
    ("sin(z1)*z2**2 - sin(z1)", 3, [[1, 0], [0, 1]])])
def test_order_and_directions_are_exact(g, order, rows):
    theory = giant_step("relu(z) + relu(z)**2 + z**3", g)
    assert theory.order == order and spans_same(theory.directions, Matrix(rows))


@pytest.mark.parametrize("seed", range(3))
def test_directions_turn_with_the_target(seed):
    """g(R z) has the span of g, turned."""
    p, q = [(3, 4), (5, 12), (8, 15)][seed]
    h = {3: 5, 5: 13, 8: 17}[p]
    a, b = f"({p}*z1 + {q}*z2)/{h}", f"({q}*z1 - {p}*z2)/{h}"
    g = [f"He2({a}) + He3({b})", f"tanh({a})", f"He2({a}) - 2*He2({b})"][seed]
    rows = [[[p, q]], [[p, q]], [[1, 0], [0, 1]]][seed]
    theory = giant_step("relu(z) + z**2", g)
    assert spans_same(theory.directions, Matrix(rows)) and theory.order == [2, 1, 2][seed]


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, at", [("relu", NORMAL_2, dict(u=0.7, samples=2.0, Delta=0.3)),
                                          ("tanh", "He3(z) + He5(z)", dict(u=3.0, samples=0.5)),
                                          ("relu", "z**2", dict(u=-2.0, samples=oo))])
def test_the_mean_is_that_of_the_density_and_of_an_integral(sigma, g, at):
    theory = giant_step(sigma, g)
    at = {k: float(v) for k, v in at.items()}
    mean = theory.solve(**at)["cosine"]
    assert abs(quad(lambda c: theory.density(c, **at), 0, 1, limit=200)[0] - 1) < 1e-6
    assert abs(quad(lambda c: c*theory.density(c, **at), 0, 1, limit=200)[0] - mean) < 1e-6
    z, ell = np.linspace(-10, 10, 200_001), theory.order
    w = np.exp(-z*z/2)
    c = [float(hx.compile(hx.coefficient(f, ell))()) for f in (sigma, g)]
    signal = at["u"]*c[0]*c[1]/np.prod(np.arange(1, ell))*z**(ell - 1)
    zs = hx.symbols.z
    square = float(hx.compile(hx.E(hx.parse(g)**2, zs) - hx.E(hx.parse(g), zs)**2)()) + at.get("Delta", 0)
    noise = at["u"]**2*square*float(hx.compile(hx.E(theory.sigma.weak_derivative.expr**2, zs))())/at["samples"]
    assert abs((w*np.abs(signal)/np.sqrt(1 + signal**2 + noise)).sum()/w.sum() - mean) < 1e-8  # a kink on a grid of 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("g", ["z1*z2", "z1**2 - 2*z2**2", "z1**2 - z2**2 + z1*z3", "z1*z2*z3"])
def test_several_directions_by_sampling(g):
    """|u mu_l/(l-1)! C_l[Z^(l-1)]| sampled over the starts Z."""
    theory, rng = giant_step("relu(z) + z**3", g), np.random.default_rng(1)
    found = theory.solve(u=0.8, samples=2)
    Z = rng.standard_normal((400_000, len(theory.variables)))
    C = np.array(theory.tensor.full().tolist(), dtype=float)
    for k in range(theory.order - 1):
        C = np.einsum("n...ij,nj->n...i" if k else "...ij,nj->n...i", C, Z)
    zs = hx.symbols.z
    mu = float(hx.compile(hx.coefficient(theory.sigma.expr, theory.order))())/np.prod(np.arange(1, theory.order))
    S = (0.8*mu)**2*(C**2).sum(axis=1)
    spread = float(hx.compile(hx.E(theory.centred**2, *theory.variables)*hx.E(theory.sigma.weak_derivative.expr**2, zs))())/2
    sampled = np.sqrt(S/(S + 1 + 0.64*spread))
    assert abs(sampled.mean() - found["cosine"]) < 4*sampled.std()/np.sqrt(len(Z))


@pytest.mark.parametrize("row", [r for r in KNOWN["giant_step"] if r["n_exp"] == r["ell"]], ids=lambda r: f"order {r['ell']}")
def test_finite_dimensions_approach_the_limit_as_the_simulations_do(row):
    theory = giant_step("relu", "z" if row["ell"] == 1 else NORMAL_2)
    found = theory.solve(u=1, dimension=row["ds"])["cosine"]
    limit = theory.solve(u=1)["cosine"]
    assert np.all(np.diff(np.abs(found - limit)) < 0)
    assert np.all(np.abs(found - row["cos"]) < 0.015)  # simulations of the sheet


@pytest.mark.slow
@pytest.mark.parametrize("sigma, g, at", [("relu", "z", dict(samples=[0.5, 2.0], u=1.0)),
                                          ("tanh", "tanh(2*z)", dict(samples=[1.0, 3.0], u=2.0, Delta=0.2)),
                                          ("relu", NORMAL_2, dict(samples=[1.0, 3.0], u=1.0))])
def test_networks_agree_within_three_standard_errors(sigma, g, at):
    theory, d = giant_step(sigma, g), 160
    curve = theory.curve(dimension=d, **at)
    assert agreement(curve, simulate(theory, dimension=d, seeds=8, **at)).worst("cosine") < 3


@pytest.mark.slow
def test_neurons_of_order_three_agree_within_three_standard_errors():
    """n = d^3 and 3 d^3 at d = 32: the limit lies far off, the terms of a finite d do not."""
    theory, at = giant_step("tanh", "He3(z)"), dict(samples=[1.0, 3.0], u=2.0)
    measured = simulate(theory, dimension=32, seeds=12, neurons=100, **at)
    assert agreement(theory.curve(dimension=32, **at), measured).worst("cosine") < 3
    assert np.max(np.abs(theory.curve(**at)["cosine"] - measured["cosine"])/measured.standard_error["cosine"]) > 3


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "g", "u", "sizes"), [("relu", "z1*z2", 1.0, (32, 256)), ("tanh", "z1*z2*z3", 2.0, (16, 32))])
def test_networks_of_several_directions_come_nearer_to_the_limit(sigma, g, u, sizes):
    """No terms of a finite d are known there: at n = d^l the cosine lies above the limit, and by less at the larger d."""
    theory = giant_step(sigma, g)
    runs = [simulate(theory, [1.0], dimension=d, seeds=12, neurons=100, u=u) for d in sizes]
    above = [run["cosine"][0] - theory.solve(u=u)["cosine"] for run in runs]
    error = [run.standard_error["cosine"][0] for run in runs]
    assert above[0] > 3*error[0] and above[1] > 0 and above[0] - above[1] > 3*np.hypot(*error)


def test_rates_and_their_status():
    found = giant_step("relu", "He4(z)").rates()
    delta = Symbol("delta", positive=True)
    assert (found["samples"], found["step"]) == (4, Rational(3, 2)) and found.status["cosine"] == "theorem"
    assert found["cosine"].subs(delta, 3) == Rational(-1, 2) and found["cosine"].subs(delta, Rational(1, 2)) == Rational(-1, 4)


def test_a_lost_factorial_is_seen():
    """A without (l-1)! at l = 3 gives another mean."""
    theory = giant_step("tanh", "He3(z)")
    doubled = theory.solve(u=[1.0, 2.0], samples=np.inf)["cosine"]
    assert abs(doubled[1] - doubled[0]) > 0.05  # doubling the step is what losing 2! does without noise


def test_the_command_line_and_the_picture(capsys):
    argv = ["curve", "giant-step", "--sigma", "relu", "--target", NORMAL_2, "--u", "1", "--samples", "1,10", "--json"]
    assert cli.main(argv) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["samples"] == [1, 10] and answer["order_parameters"]["cosine"][0] == pytest.approx(0.315952081562)
    assert answer["parameters"]["order"] == 2 and answer["parameters"]["directions"] == [["1"]]
    assert len(giant_step("relu", NORMAL_2).plot(points=10).get_legend().get_texts()) == 3


@pytest.mark.parametrize(("target", "works"), [("He2", True), ("z1*z2", False)])
def test_a_solver_is_written_for_one_direction_and_refused_at_once_for_several(target, works, tmp_path, capsys):
    spec = tmp_path/"step.toml"
    spec.write_text(f'theory = "giant-step"\n[functions]\nsigma = "relu"\ntarget = "{target}"\n[parameters]\nu = 1\n'
                    "[grid]\nsamples = [1, 10]\n")
    assert cli.main(["generate", str(spec), "-o", str(tmp_path/"step.py")]) == (0 if works else 2)
    said = capsys.readouterr().err
    assert (tmp_path/"step.py").exists() == works and (works or "solve it with hermitex curve giant-step" in said)


@pytest.mark.parametrize("ask, kind, word", [
    (lambda: giant_step("sign", "z"), BadInput, "derivative"), (lambda: giant_step("tanh", "He2(z)"), BadInput, "He_2"),
    (lambda: giant_step("relu", "exp(z**2)"), HermitexError, "square integrable"),
    (lambda: giant_step("relu", "3"), BadInput, "constant"), (lambda: giant_step("relu", "z").solve(), BadInput, "u has no value"),
    (lambda: giant_step("relu", "z").solve(u=0), BadInput, "u must"),
    (lambda: giant_step("relu", "z").solve(u=1, samples=0), BadInput, "samples"),
    (lambda: giant_step("relu", "z").solve(u=1, step=2), UnknownName, "step"),
    (lambda: giant_step("relu", "z").density(0.5, u=1), BadInput, "order 1"),
    (lambda: giant_step("relu", "z1*z2").solve(u=1, dimension=50), BadInput, "one direction"),
    (lambda: giant_step("relu", "z").rates(-1), BadInput, "delta"),
    (lambda: simulate(giant_step("relu", "z1*z2"), [1], u=1, dimension=2), BadInput, "dimension"),
    (lambda: simulate(giant_step("relu", "z"), [1e9], u=1), BadInput, "samples")])
def test_bad_input_is_one_line(ask, kind, word):
    with pytest.raises(kind) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)


def test_curves_of_one_quantity_are_told_apart_by_their_numbers():
    """Three of them were "cosine", "cosine", "cosine" over an axis "overlap"."""
    theory, ax = giant_step("relu", "He2"), None
    for u in (0.5, 1, 3):
        ax = theory.curve(samples=[0.1, 1, 10], u=u).plot(ax)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["$u = 0.5$", "$u = 1$", "$u = 3$"]
    assert ax.get_ylabel() == r"$\mathrm{cosine}$"
    ax = None
    for step in (0, 1):
        ax = sgd("relu", "z1*z2").curve(t=[0, 1, 2], dimension=100, step=step).plot(ax)
    said = [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(set(said)) == 4 and all("step" in text.replace("\\mathrm{", "") for text in said)


def test_samples_over_decades_are_drawn_on_a_logarithmic_axis():
    ax = giant_step("relu", "He2").curve(samples=[0.1, 1, 3, 10], u=1).plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear") and r"\mathrm{samples}" in ax.get_xlabel()


@pytest.mark.parametrize(("g", "norm", "r"), [("z1*z2 + z3*z4", 2, 4), ("z1*z2 + z3*z4 + z5**2/2", 2.5, 5),
                                              ("z1*z2 + z3*z4 + z5*z6", 3, 6)])
def test_four_to_six_directions(g, norm, r):
    """C_2 is orthogonal, |C_2[Z]| = |Z|: one integral over the radius, chi of r degrees of freedom."""
    found = giant_step("relu", g).solve(u=1.3)
    s = 1.3**2/(2*np.pi)  # mu_2 = phi(0), times u, squared

    def cosine(R):
        return np.sqrt(s*R*R/(s*R*R + 1 + 1.3**2*norm/2))*R**(r - 1)*np.exp(-R*R/2)/2**(r/2 - 1)/gamma(r/2)

    assert found["cosine"] == pytest.approx(quad(cosine, 0, 12, epsabs=1e-13)[0], rel=1e-8) and found.converged


@pytest.mark.parametrize("r", [3, 4])
def test_a_product_by_points_that_fill_space_evenly(r):
    """|C[Z^(r-1)]| = (r-1)! (sum_i prod_{j != i} Z_j^2)^(1/2), with edges where two of the Z vanish."""
    sigma = "z**3 + relu(z)"
    theory = giant_step(sigma, "*".join(f"z{i + 1}" for i in range(r)))
    found = theory.solve(u=0.7, samples=2)
    mu = float(hx.compile(hx.coefficient(hx.parse(sigma), r))())
    spread = float(hx.compile(hx.E(theory.sigma.weak_derivative.expr**2, hx.symbols.z))())
    means = []
    for seed in range(6):
        Z = ndtri(qmc.Sobol(r, seed=seed).random_base2(16))
        S = (0.7*mu)**2*sum(np.prod(np.delete(Z, i, 1)**2, axis=1) for i in range(r))
        means.append(np.sqrt(S/(S + 1 + 0.49*spread/2)).mean())
    assert abs(np.mean(means) - found["cosine"]) < 4*np.std(means)/np.sqrt(5) < 1e-4
    assert found.converged and found.error < 1e-6


def test_edges_that_lie_off_the_planes_between_axes_are_within_the_error():
    """z1 z2 z3 in three turned frames: one number, by nodes that meet its edges and by others."""
    a, b = "(3*z1 + 4*z2)/5", "(4*z1 - 3*z2)/5"
    turned = [f"({a})*({b})*z3", f"({a})*(({b}) + 2*z3)*(2*({b}) - z3)/5",
              "(z1 + 2*z2 + 2*z3)*(2*z1 + z2 - 2*z3)*(2*z1 - 2*z2 + z3)/27"]
    exact = giant_step("tanh", "z1*z2*z3").solve(u=1)
    assert exact.error < 1e-10
    for g in turned:
        found = giant_step("tanh", g).solve(u=1)
        assert abs(found["cosine"] - exact["cosine"]) < found.error + 1e-10 and found.error < 1e-5


def test_the_limit_beside_an_experiment_says_how_far_it_is_and_from_where_on_it_is_near(capsys):
    theory = giant_step("relu", "He2")
    found = hx.curve(theory, samples=[1], u=4, simulate={"dimension": 32, "seeds": 2})
    said = found.simulation.parameters["remark"]
    d = float(said.rpartition("d = ")[2].split()[0])
    at = [float(theory.solve(u=4, samples=1, dimension=n)["cosine"]) for n in (d/2, d)]
    assert abs(1 - found["cosine"][0]/at[1]) <= 0.05 < abs(1 - found["cosine"][0]/at[0])
    assert "--dimension 32" in said
    with_terms = hx.curve(theory, samples=[1], u=4, dimension=32, simulate={"seeds": 2})
    assert "remark" not in with_terms.simulation.parameters
    argv = ["curve", "giant-step", "--sigma", "relu", "--target", "He2(z)", "--u", "4", "--samples", "1", "--simulate",
            "--seeds", "2"]
    assert cli.main([*argv, "--simulate-dimension", "32"]) == 0 and said in capsys.readouterr().err
