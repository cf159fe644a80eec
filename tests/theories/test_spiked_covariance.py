"""Spiked covariance: the exponents, one formula for them, continuity, the kernel's degree, the gradient's factor, bad input."""

import json
from itertools import pairwise
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from sympy import Rational, Symbol, lambdify, log, simplify

import hermitex as hx
from hermitex.errors import BadInput, HermitexError
from hermitex.symbols import rho
from hermitex.theories import sgd, spiked_covariance
from hermitex.theories.claims import Regimes
from hermitex.theories.spiked_covariance import GAMMA_1, GAMMA_2, D

KNOWN = json.loads((Path(__file__).parents[1]/"reference"/"limits.json").read_text())


@pytest.mark.parametrize("row", KNOWN["start"], ids=lambda r: f"{r['gamma1']}, {r['gamma2']}")
def test_the_table_of_starts(row):
    found = spiked_covariance("He2").exponents(row["gamma1"], row["gamma2"])["start_exponent"]
    assert abs(float(found) - row["pred"]) < 1e-12 and abs(float(found) - row["fit"]) < 0.025


@pytest.mark.parametrize("seed", range(4))
def test_one_formula_is_the_piecewise_and_the_overlap_of_a_random_start(seed):
    """Drawn points, borders among them; and log delta_0 between two d, by the quadratic form of Sigma itself."""
    rng, theory = np.random.default_rng(seed), spiked_covariance("He3")
    for _ in range(20):
        a, b = Rational(int(rng.integers(0, 11)), 20), Rational(int(rng.integers(0, 20)), 20)
        at = {GAMMA_1: a, GAMMA_2: b}
        e = theory.start_exponent.subs(at)
        assert e == theory.start_formula.subs(at) and theory.sample_exponent.subs(at) == 1 - 4*e
    a, b = [(0.4, 0.2), (0.3, 0.45), (0.25, 0.75), (0.0, 0.5)][seed]

    def overlap(d):
        w, c, theta = d**-0.5, d**-a, d**b  # typical coordinates of w along beta and across; mu = c beta + sqrt(1 - c^2) e
        s = np.sqrt(1 - c*c)
        mw = (c + s)*w
        return (w + theta*c*mw)/np.sqrt((1 + theta*mw**2)*(1 + theta*c*c))

    slope = np.log(overlap(1e13)/overlap(1e12))/np.log(10)
    assert abs(slope - float(theory.start_formula.subs({GAMMA_1: a, GAMMA_2: b}))) < 0.03


def test_the_printed_cases_and_the_run_time():
    a, b, k = GAMMA_1, GAMMA_2, Symbol("k", positive=True, integer=True)
    cells = spiked_covariance().regimes.regimes
    printed = [k - 1, (k - 1)*(1 - 2*(b - a)), (k - 1)*(1 - b)]
    assert all(simplify(c.values["sample_exponent"] - 1 - e) == 0 for c, e in zip(cells, printed, strict=True))
    at = {a: Rational(1, 10), b: Rational(1, 2)}
    times = [spiked_covariance(g).run_time for g in ("z", "He2", "He4")]
    assert times[0] == 1 and simplify(times[1].subs(at) - log(D)/4) == 0 and times[2].subs(at) == D**Rational(1, 2)


@pytest.mark.parametrize("k, power", [(2, 0), (3, -1), (4, -2)])
def test_the_run_time_is_the_integral_of_the_flow(k, power):
    times = [quad(lambda c: 1/((1 - c*c)*k*c**(k - 1)), delta, 0.5, limit=400)[0] for delta in (1e-3, 1e-4)]
    grown = times[1] - times[0] if k == 2 else np.log10(times[1]/times[0])
    assert abs(grown - (np.log(10)/2 if k == 2 else -power)) < 0.01


def test_continuity_is_proved_for_every_k_and_a_planted_break_is_found():
    regimes = spiked_covariance().regimes
    assert regimes.continuous
    for i, cell in enumerate(regimes.regimes):
        wrong = type(cell)(cell.name, cell.inside, {n: v + GAMMA_2 for n, v in cell.values.items()})
        assert not Regimes("", (*regimes.regimes[:i], wrong, *regimes.regimes[i + 1:]), regimes.borders).continuous


def test_the_degree_of_a_kernel_is_what_simulations_learn():
    """Along d = 150, ..., 1200 the error of exactly the learned degrees falls."""
    theory = spiked_covariance("sign")
    for gamma in sorted({r["gamma"] for r in KNOWN["krr_spike"]}):
        errors = np.array([r["err"] for r in KNOWN["krr_spike"] if r["gamma"] == gamma])
        fell = errors[-1] < 0.6*errors[0]
        learned = int(theory.kernel_degree(gamma))
        assert fell.tolist() == [degree <= learned for degree in (1, 2, 3, 4)], gamma
    assert theory.kernel_degree("1/2") == 1 and theory.kernel_degree(0, kappa="5/2") == 2
    assert theory.kernel_degree("1/2", kappa=3) == 5
    printed = [next(ell for ell in range(1, 40) if 1 - Rational(1, ell) < g < 1 - Rational(1, ell + 1)) for g in
               (Rational(3, 10), Rational(55, 100), Rational(97, 100) - Rational(1, 1000))]
    assert printed == [theory.kernel_degree(g) for g in ("3/10", "11/20", "969/1000")]


def test_what_the_aligned_case_asks():
    """A kernel at n = d^kappa learns degree l iff kappa > kernel_samples(l); the range that a source misprints is 1 - 1/(k - 1)."""
    theory, (b, kappa) = spiked_covariance("He3"), (Rational(3, 5), Rational(5, 4))
    for degree in range(1, 6):
        assert (theory.aligned(b, degree)["kernel_samples"] < kappa) == (degree <= theory.kernel_degree(b, kappa))
    k = Symbol("k", positive=True, integer=True)
    general = spiked_covariance().aligned()
    assert (general["one_step_spike"], general["spherical_fails"]) == (1 - 1/k, 1 - 1/(k - 1))
    assert general["kernel_samples"] == k*(1 - GAMMA_2) and spiked_covariance("He2").aligned().get("spherical_fails") is None
    assert "spherical_fails" in general and "spherical_fails" not in spiked_covariance("He2").aligned()
    assert theory.aligned().status == {"kernel_samples": "derived", "one_step_spike": "theorem", "spherical_fails": "theorem"}
    with pytest.raises(BadInput, match="degree is a whole number"):
        theory.aligned(0, "3/2")


def test_the_factor_of_the_gradient_and_the_misprint_in_both_conventions():
    """E[g' sigma'] at correlation rho: (i + 1)^2 i! a a* monic, i + 1 orthonormal; (i + 1)^2 alone is neither."""
    z1, z2 = hx.symbols.z1, hx.symbols.z2
    for i in (1, 2, 3):
        theory = spiked_covariance(f"He{i + 1}")
        exact = hx.E(hx.He(i, z1)*hx.He(i, z2)*(i + 1)**2, z1, z2, cov={(z1, z2): rho}).doit()
        found = theory.slope_series(f"He{i + 1}")
        assert simplify(exact - found) == 0 and found == (i + 1)**2*factorial(i)*rho**i
        orthonormal = found/factorial(i + 1)
        assert orthonormal == (i + 1)*rho**i and orthonormal != (i + 1)**2*rho**i
        assert (found == (i + 1)**2*rho**i) == (i == 1)


def test_text_and_picture():
    theory = spiked_covariance("He3")
    assert theory.regime(0.25, 0.3) == "spike felt" and theory.to_dict()["continuous"] is True
    assert theory.exponents(0, 0).to_dict()["sample_exponent"] == {
        "value": "3", "status": "theorem", "source": "mousavi2023", "words": "n ~ d^sample_exponent, the leading factor d included"}
    legend = theory.plot(points=40).get_legend()
    assert len(legend.get_texts()) == 3 and "exponent of $d$ in $n$" in legend.get_title().get_text()


@pytest.mark.parametrize("ask, kind, word", [
    (lambda: spiked_covariance("exp(z**2)"), HermitexError, "square"), (lambda: spiked_covariance("2"), BadInput, "constant"),
    (lambda: spiked_covariance("He2").exponents(0.7, 0), BadInput, "gamma_1"),
    (lambda: spiked_covariance("He2").exponents(0, 1), BadInput, "gamma_2"),
    (lambda: spiked_covariance("He2").kernel_degree("1/2", kappa=-1), BadInput, "kappa"),
    (lambda: spiked_covariance().run_time, BadInput, "target"),
    (lambda: spiked_covariance().slope_series("tanh"), BadInput, "target")])
def test_bad_input_is_one_line(ask, kind, word):
    with pytest.raises(kind) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("g", ["z1*z2", "He2(z1) + z2*z3"])
def test_several_directions_have_no_formula_and_the_call_that_is_named_works(g):
    with pytest.raises(BadInput, match="no formula for a target of several directions") as caught:
        spiked_covariance(g)
    call = str(caught.value).partition("hx.")[2]
    found = eval("hx." + call, {"hx": hx})
    assert found.leap_exponent == 2 and any(n.startswith("covariance: directions are linear forms of z1, z2") for n in found.notes)


# -- the flows ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("d", "gamma_2"), [
    (1e3, 0.2), pytest.param(1e3, 0.9, marks=pytest.mark.slow)])
def test_the_spherical_flow_falls_back_and_the_normalised_learns(d, gamma_2):
    """He_3/sqrt(6), aligned: from omega = d^(-1/2) the first never rises, the second reaches 1."""
    theory, theta = spiked_covariance("He3(z)/sqrt(6)"), d**gamma_2
    back = theory.flow("spherical").solve(t=np.linspace(0, 20, 9), start={"omega": d**-0.5}, theta=theta, tolerance=1e-6)
    assert np.max(back["omega"])*np.sqrt(d) == pytest.approx(1, abs=1e-9)
    assert back["omega"][-1] < back["omega"][0]/2
    there = theory.flow("normalised").solve(t=(0, 1e5), start={"omega": d**-0.5}, theta=theta, tolerance=1e-6,
                                            events={"learned": "omega - 0.99"}, terminal=["learned"])
    assert there["omega"][-1] == pytest.approx(0.99, abs=1e-6)


@pytest.mark.parametrize("row", KNOWN["flow"], ids=lambda r: f"{r['d']:g}-{r['gamma2']}")
def test_the_times_of_the_study_are_those_of_the_whole_square_in_steps_of_a_hundredth(row):
    """The study's flow is that of E(f - g)^2, twice as fast as this one of its half, by Euler's steps of a hundredth of omega (of
    1 - omega, where that is less), until omega = 0.9999 or a thousandth of the start: its numbers to rounding. The half of the
    square takes 2.005 to 2.012 times as long, of which the steps are half a hundredth.
    """
    theory, theta, start = spiked_covariance("He3(z)/sqrt(6)"), Symbol("theta", nonnegative=True), row["d"]**-0.5
    m = Symbol("omega", real=True)
    for kind in ("spherical", "normalised"):
        (rate,) = theory.flow(kind).equations.values()
        f = lambdify(m, 2*rate.subs(theta, row["d"]**row["gamma2"]), "math")
        w, t, largest = start, 0.0, start
        while start/1000 < w < 0.9999:
            step = 0.01*min(w, 1 - w)/abs(f(w))
            w, t = w + step*f(w), t + step
            largest = max(largest, w)
        if kind == "spherical":
            assert (w, largest/start) == (pytest.approx(row["sph_end"], rel=1e-9), pytest.approx(row["sph_sup_sqrtd"], rel=1e-9))
        else:
            assert (w, t) == (pytest.approx(row["norm_end"], rel=1e-9), pytest.approx(row["norm_T"], rel=1e-9))
            pieces = [np.log(x) for x in (start, 0.5, 0.99, w)]
            whole = sum(quad(lambda s: np.exp(s)/(f(np.exp(s))/2), a, b, limit=200)[0] for a, b in pairwise(pieces))  # noqa: B023
            assert 2.005 < whole/row["norm_T"] < 2.012


def test_without_a_spike_both_flows_are_the_flow_of_one_overlap():
    for kind in ("spherical", "normalised"):
        (rate,) = spiked_covariance("He3").flow(kind, sigma="erf").equations.values()
        m = Symbol("omega", real=True)
        one = sgd("erf", "He3").rate
        value = rate.subs(Symbol("theta", nonnegative=True), 0).subs(m, Rational(1, 3)).evalf(15)
        assert float(value) == pytest.approx(float(one.subs(next(iter(one.free_symbols)), Rational(1, 3)).evalf(15)), rel=1e-10)


def test_the_flow_is_minus_the_gradient_of_the_loss():
    """Third route: L by quadrature of two normals, its slope by differences; a lost theta would be seen."""
    x, w = np.polynomial.hermite_e.hermegauss(40)
    w = w/np.sqrt(2*np.pi)

    def loss(omega, theta):
        s = np.sqrt(1 + theta*omega**2)
        c = np.sqrt(1 + theta)*omega/s
        u, v = x[:, None], c*x[:, None] + np.sqrt(1 - c**2)*x[None, :]
        f, g = (s*u)**3 - 3*s*u, v**2 - 1 + v**3 - 3*v
        return float(np.sum(w[:, None]*w[None, :]*(f**2/2 - f*g)))

    (rate,) = spiked_covariance("He3(z) + He2(z)").flow("spherical", sigma="He3").equations.values()
    at = {"omega": 0.3, "theta": 2.0}
    value = float(rate.subs({s: at[s.name] for s in rate.free_symbols}))
    slope = (loss(0.3 + 1e-5, 2.0) - loss(0.3 - 1e-5, 2.0))/2e-5
    assert value == pytest.approx(-(1 - 0.09)*slope, rel=1e-7)
    assert value != pytest.approx(-(1 - 0.09)*(loss(0.3 + 1e-5, 1.0) - loss(0.3 - 1e-5, 1.0))/2e-5, rel=1e-2)


@pytest.mark.parametrize(("g", "sigma", "kind"), [
    ("He3", None, "spherical"), ("He3", "erf", "normalised"), ("tanh", "relu", "spherical")])
def test_the_observables_of_a_flow_are_its_loss_and_its_cosine(g, sigma, kind):
    """d test_error/dt = 2 (dL/d omega) d omega/dt: the error falls as fast as the rate says; a lost factor would be seen."""
    flow = spiked_covariance(g, sigma, flow=kind).flow()
    (rate,), seen = flow.equations.values(), {o.name: e for o, e in flow.observables.items()}
    at = {"omega": 0.3, "theta": 2.0}
    value, error, cosine = (hx.compile(e) for e in (rate, seen["test_error"], seen["cosine"]))
    slope = (error(omega=0.3 + 1e-5, theta=2.0) - error(omega=0.3 - 1e-5, theta=2.0))/2e-5
    assert float(value(**at)) == pytest.approx(-(1 - 0.09)*slope/2, rel=1e-6)
    assert float(cosine(**at)) == pytest.approx(np.sqrt(3)*0.3/np.sqrt(1 + 2*0.09), rel=1e-12)


@pytest.mark.parametrize("kind", ["spherical", "normalised"])
def test_the_curve_is_the_flow_from_a_random_start(kind):
    theory, t = spiked_covariance("He3(z)/sqrt(6)", flow=kind), [0, 0.5, 2]
    found = theory.curve(t=t, gamma_2=0.5, dimension=400)
    path = theory.flow().solve(t=t, start={"omega": 0.05}, theta=20.0, tolerance=1e-7)
    for name in ("omega", "cosine", "test_error"):
        assert found[name] == pytest.approx(path[name], rel=1e-5, abs=1e-9)
    assert found.parameters["theta"] == pytest.approx(20) and found.all_converged
    assert (found.test_error[-1] < 0.2) == (kind == "normalised")
    assert theory.curve(t=[1, 2], gamma_2=0.5, dimension=400)["omega"][-1] == pytest.approx(found["omega"][-1], rel=1e-5, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("g", "sigma", "kind", "t", "spike"), [
    ("He3(z)/sqrt(6)", None, "normalised", 1.0, {}), ("tanh", "erf", "spherical", 1.0, {}),
    ("He3(z)/sqrt(6)", None, "preconditioned", 1.0, {"gamma_1": 0.2, "m0": 0.3, "a0": 0.3}),
    ("He2(z)/sqrt(2)", None, "rescaled", 0.3, {"gamma_1": 0.2, "m0": 0.3, "a0": 0.3})])
def test_neurons_in_few_dimensions_follow_the_flow(g, sigma, kind, t, spike):
    theory = spiked_covariance(g, sigma, flow=kind)
    times, numbers = np.linspace(0, t, 4)[1:], {"gamma_2": 0.5, "dimension": 50, **spike}
    both = hx.curve(theory, t=times, simulate={"seeds": 12}, **numbers)
    off = (both.simulation["omega"] - both["omega"])/both.simulation.standard_error["omega"]
    assert np.all(np.abs(off) < 3.5)
    if spike:  # the second overlap, too
        assert np.all(np.abs(both.simulation["a"] - both["a"]) < 3.5*both.simulation.standard_error["a"])
    other = spiked_covariance(g, sigma, flow="normalised" if kind == "spherical" else "spherical").curve(t=times, **numbers)
    assert np.max(np.abs(both.simulation["omega"] - other["omega"])/both.simulation.standard_error["omega"]) > 10


def test_the_command_line_of_the_flow(capsys):
    from hermitex.face.cli import main

    asked = ["curve", "spiked-covariance", "--target", "He2", "--gamma_2", "0.4", "--dimension", "30", "--t", "0,0.05"]
    assert main([*asked, "--json", "--simulate", "--seeds", "2"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = spiked_covariance("He2").curve(t=[0, 0.05], gamma_2=0.4, dimension=30)
    assert answer["order_parameters"]["omega"] == pytest.approx(expected["omega"].tolist(), rel=1e-9)
    assert answer["simulation"]["order_parameters"]["omega"][0] == pytest.approx(30**-0.5, rel=1e-12)
    assert main([*asked[:-4], "--t", "1"]) == 2 and "dimension" in capsys.readouterr().err
    assert main([*asked, "--flow", "natural"]) == 2 and "normalised or spherical" in capsys.readouterr().err


@pytest.mark.parametrize("numbers, word", [
    ({"gamma_2": 1, "dimension": 10}, "gamma_2"), ({"gamma_2": 0.5, "dimension": 1}, "dimension"), ({"gamma_2": 0.5}, "dimension"),
    ({"gamma_2": 0.5, "dimension": 10, "m0": 0}, "m0"), ({"gamma_2": 0.5, "dimension": 10, "t": [1, 0]}, "increasing")])
def test_a_curve_that_does_not_exist(numbers, word):
    with pytest.raises(BadInput, match=word):
        spiked_covariance("He2").curve(**{"t": [0, 1], **numbers})
    with pytest.raises(BadInput, match="too many"):
        hx.curve(spiked_covariance("He2"), t=[0, 1000], gamma_2=0.9, dimension=10_000, simulate=True)


def test_flows_that_do_not_exist():
    with pytest.raises(BadInput, match="normalised or spherical"):
        spiked_covariance("He3").flow("natural")
    with pytest.raises(BadInput, match="needs the target"):
        spiked_covariance(None).flow()


@pytest.mark.parametrize(("wrong", "says"), [({"m0": [0.1, 2]}, "not 2"), ({"start": 0.1}, "start is a mapping")])
def test_a_beginning_that_is_none_is_told_in_a_line(wrong, says):
    with pytest.raises(BadInput, match=says):
        spiked_covariance("He3").curve(t=[0, 1], gamma_2=0.3, dimension=100, **wrong)


def test_an_error_that_falls_by_decades_in_time_is_drawn_as_its_logarithm():
    flow = spiked_covariance("He3", flow="normalised")
    assert flow.curve(t=[0, 1, 4], gamma_2=0.5, dimension=1000).plot().get_yscale() == "log"


def test_one_line_of_a_long_answer_is_not_cut():
    """Formulas that are long are named; numbers stand."""
    theory = spiked_covariance("He3")
    assert repr(theory.exponents()).endswith("formulas start_exponent, sample_exponent, run_time)")
    assert "start_exponent = -1/4, sample_exponent = 2" in repr(theory.exponents("1/2", "3/4"))
    flat = hx.theories.committee("erf(z/sqrt(2))", students=3, teachers=2).plateau(gamma=1, Delta=0.01)
    assert not any("..." in repr(found) for found in (theory.exponents(), theory.exponents("1/2", "3/4"), flat))


# -- partial alignment: theory sheet multi_index_2, B3 -----------------------------------------------------------------------
def _unit(k):
    return spiked_covariance(f"He{k}(z)/sqrt({factorial(k)})")


def test_the_reference_of_the_sheet_and_what_is_at_its_level_already():
    theory, at = _unit(3), {"dimension": 1e4, "gamma_1": 0.2, "gamma_2": 0.3}
    found = theory.escape_time(**at, preconditioned=True)
    assert isinstance(found, float) and found == pytest.approx(5.369209243761086, rel=1e-13)
    assert spiked_covariance("He3").escape_time(**at) == pytest.approx(found/6, rel=1e-12)  # h' = 18 c^2 of monic He3
    assert theory.escape_time(**at, m0=0.5, a0=0.6) == 0.0
    assert spiked_covariance("He3", "-He3(z)").escape_time(**at) == np.inf
    linear = spiked_covariance("z").escape_time(dimension=[1e4, 1e5, 1e6], gamma_1=.2, gamma_2=.3)
    assert linear == pytest.approx([.260, .269, .272], abs=6e-4)


@pytest.mark.parametrize("k, gamma_1, gamma_2, sheet, theorem", [
    (3, .3, .15, .5004, .5), (3, .2, .3, .4009, .4), (3, .3, .45, .3502, .35), (3, .15, .6, .2001, .2), (3, .4, .9, .062, .05),
    (3, 0, .5, .25, .25), (4, .3, .15, 1.0007, 1), (4, .2, .3, .802, .8), (4, .15, .6, .4, .4)])
def test_the_escape_time_has_the_exponent_of_the_theorem(k, gamma_1, gamma_2, sheet, theorem):
    """Local slopes at d = 1e18; without the preconditioner they are others."""
    d, step = 1e18, 1.01
    at = {"gamma_1": gamma_1, "gamma_2": gamma_2}
    slope = np.diff(np.log(_unit(k).escape_time(dimension=[d/step, d*step], **at)))[0]/np.log(step**2)
    assert slope == pytest.approx(sheet, abs=6e-4 if gamma_2 < .9 else 2e-3) and abs(slope - theorem) < 0.013
    claimed = _unit(k).run_time.subs({GAMMA_1: Rational(str(gamma_1)), GAMMA_2: Rational(str(gamma_2))})
    assert float(log(claimed).subs(D, 1e18).evalf())/np.log(1e18) == pytest.approx(theorem, abs=1e-12)


@pytest.mark.parametrize("kind", ["preconditioned", "rescaled", "normalised", "spherical"])
def test_two_overlaps_are_the_flow_in_all_dimensions(kind):
    """Third route: -(1 - w w^T) eta P grad L by differences in d = 12, L = 3 s^6 + ... of He3, at weights drawn."""
    d, theta, r = 12, 3.0, 0.4
    rng = np.random.default_rng(3)
    mu, beta = np.eye(d)[0], r*np.eye(d)[0] + np.sqrt(1 - r*r)*np.eye(d)[1]
    Sigma = np.eye(d) + theta*np.outer(mu, mu)
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)

    def loss(w):
        s = np.sqrt(w @ Sigma @ w)
        c = w @ Sigma @ beta/(s*np.sqrt(beta @ Sigma @ beta))
        if kind != "spherical":
            return 0.5 - c**3
        # f(u) = ((s u)^3 - 3 s u)/sqrt(6): E f^2/2 and E f h_3, of which u^3 alone has a part
        return (15*s**6 - 18*s**4 + 9*s**2)/12 - s**3*c**3

    grad = np.array([(loss(w + 1e-5*e) - loss(w - 1e-5*e))/2e-5 for e in np.eye(d)])
    step = -grad*(w @ Sigma @ w if kind in ("preconditioned", "rescaled") else 1)
    step = np.linalg.solve(Sigma, step) if kind == "preconditioned" else step
    step -= w*(w @ step)
    at = {"omega": w @ mu, "a": w @ beta, "theta": theta, "rho": r}
    flow = _unit(3).flow(kind, partial=True)
    rates = {str(n): float(hx.compile(e)(**at)) for n, e in flow.equations.items()}
    assert rates == pytest.approx({"omega": step @ mu, "a": step @ beta}, rel=1e-7)
    one = {"omega": 0.3, "theta": theta}
    (alone,) = (float(hx.compile(e)(**one)) for e in _unit(3).flow(kind).equations.values())
    assert [float(hx.compile(e)(**one, a=0.3, rho=1.0)) for e in flow.equations.values()] == pytest.approx([alone]*2, rel=1e-12)


def test_the_correlation_obeys_one_equation_with_the_preconditioner_alone():
    """dc/dt = h'(c) (1 - c^2), h = c^3: an identity in both overlaps, theta and rho, at drawn points; not without Sigma^(-1)."""
    rng = np.random.default_rng(0)
    for kind, holds in (("preconditioned", True), ("rescaled", False)):
        flow = _unit(3).flow(kind, partial=True)
        c = next(e for o, e in flow.observables.items() if o.name == "cosine")
        moved = sum(c.diff(n)*e for n, e in flow.equations.items()) - 3*c**2*(1 - c**2)
        for _ in range(5):
            at = dict(zip(("omega", "a", "rho"), rng.uniform(0.1, 0.6, 3), strict=True)) | {"theta": rng.uniform(1, 30)}
            assert (abs(float(hx.compile(moved)(**at))) < 1e-12) == holds


def test_the_curve_of_a_partly_aligned_neuron_reaches_its_level_at_twice_the_escape_time():
    theory, at = _unit(3), {"gamma_1": 0.2, "gamma_2": 0.3, "dimension": 1e4}
    T = theory.escape_time(**at)
    found = theory.curve(t=[0, 2*T], **at)
    assert found["cosine"] == pytest.approx([0.029677434067061883, 0.5], rel=1e-6)
    whole = theory.curve(**at)
    assert whole["cosine"][-1] == pytest.approx(0.99, rel=1e-5) and whole.all_converged and "a" in whole.order_parameters


@pytest.mark.parametrize("wrong, word", [
    ({"gamma_1": 0.7}, "between 0 and 0.5"), ({"gamma_2": 1}, "gamma_2"), ({"level": 2}, "level"), ({"m0": -0.1}, "not positive"),
    ({"a0": 0.2}, "leave a0 out"), ({"gamma_1": 0.1, "a0": 0.9, "m0": -0.9}, "no unit vector"), ({"dimension": 1}, "2 or more")])
def test_an_escape_that_does_not_exist(wrong, word):
    with pytest.raises(BadInput, match=word):
        _unit(3).escape_time(**{"dimension": 100, **wrong})
