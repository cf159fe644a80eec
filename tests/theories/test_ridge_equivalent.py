"""Ridge regression on any spectrum: tables of random features and of kernels, the printed form, simulations, limits, teeth."""

import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import mpmath
import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, NotConverged, UnknownName
from hermitex.experiments.ridge_equivalent_experiment import simulate
from hermitex.experiments.statistics import agreement
from hermitex.face import cli
from hermitex.theories import kernel_limit, ridge_equivalent

HERE = Path(__file__).parents[1]/"reference"
ROWS = json.loads((HERE/"random_features.json").read_text())
TAILS = json.loads((HERE/"limits.json").read_text())["kernel"]
THEORY = ridge_equivalent()
KEYS = ("nu_1", "nu_2", "bias", "variance", "test_error", "train_error")


def drawn(seed):
    """A spectrum with a target, with or without a tail, a part that has no eigenvalue, and a finite width."""
    rng = np.random.default_rng(seed)
    k = np.arange(1, int(rng.integers(5, 400)) + 1.0)
    eta, beta = k**-rng.uniform(0.3, 2.5)*rng.uniform(0.5, 2, k.size), rng.normal(size=k.size)*k**-rng.uniform(0.2, 1.5)
    if seed % 3 == 0:
        eta, beta = np.append(eta, 0.0), np.append(beta, 0.4)
    return {"eigenvalues": eta, "coefficients": beta, "n": float(rng.uniform(2, 200)), "lam": float(10**rng.uniform(-3, 1)),
            "p": np.inf if seed % 2 else float(rng.uniform(2, 300)), "noise": float(rng.uniform(0.01, 1)),
            "tail": float(rng.choice([0.0, 0.3]))}


def printed(at, *, chi=True, power=2, tail_in_df_2=False):
    """The form of the source, in n/p and the square root, by mpmath; the keywords plant errors."""
    mp = mpmath.MPContext()
    mp.dps = 90 if at["p"] == np.inf else 30
    eta, beta = ([mp.mpf(float(v)) for v in at[name]] for name in ("eigenvalues", "coefficients"))
    n, lam, noise, tail = (mp.mpf(at[name]) for name in ("n", "lam", "noise", "tail"))
    p = mp.mpf(at["p"]) if at["p"] < np.inf else mp.mpf(10)**40

    def root_of(v):
        return mp.sqrt((1 - n/p)**2 + 4*lam/(p*v))

    def gap(log_v):
        v = mp.exp(log_v)
        return 1 + n/p - root_of(v) - 2/p*(mp.fsum(e/(e + v) for e in eta) + tail/v)

    low, high = mp.mpf(-60), mp.mpf(20)
    for _ in range(160):
        middle = (low + high)/2
        low, high = (middle, high) if gap(middle) < 0 else (low, middle)
    v = mp.exp((low + high)/2)
    nu_1 = v/2*(1 - n/p + root_of(v))
    T2 = mp.fsum(e**2/(e + v)**2 for e in eta) + (tail/v if tail_in_df_2 else 0)
    upsilon = p/n*((1 - nu_1/v)**2 + (nu_1/v)**2*T2/(p - T2))
    x = (mp.fsum(e/(e + v)**2 for e in eta) + tail/v**2)/(p - T2) if chi else 0
    bias = v**2/(1 - upsilon)*mp.fsum(b**2*(1/(e + v)**power + x*e/(e + v)**2) for e, b in zip(eta, beta, strict=True))
    variance = noise*upsilon/(1 - upsilon)
    test = bias + variance
    return dict(zip(KEYS, (float(f) for f in (nu_1, v, bias, variance, test, (test + noise)*(lam/(n*nu_1))**2)), strict=True))


# -- identities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(6))
def test_the_two_scales_obey_their_equations(seed):
    at = drawn(seed)
    found = THEORY.solve(**at)
    df_1 = (at["eigenvalues"]/(at["eigenvalues"] + found["nu_2"])).sum() + at["tail"]/found["nu_2"]
    assert df_1 + at["lam"]/found["nu_1"] == pytest.approx(at["n"], rel=1e-9)
    assert found["nu_1"] == pytest.approx(found["nu_2"]*(1 - df_1/at["p"]), rel=1e-9)
    assert found["train_error"] == pytest.approx(found["test_error_noisy"]*(at["lam"]/at["n"]/found["nu_1"])**2, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_scale_of_the_kernel_is_that_of_the_ridge_and_equal_modes_count(seed):
    at, c = drawn(seed), 3.7
    found = THEORY.solve(**at)
    scaled = THEORY.solve(**{**at, "eigenvalues": c*at["eigenvalues"], "lam": c*at["lam"], "tail": c*at["tail"]})
    assert [scaled[k] for k in KEYS] == pytest.approx([c*found[k] if "nu" in k else found[k] for k in KEYS], rel=1e-9)
    twice = THEORY.solve(**{**at, "eigenvalues": np.repeat(at["eigenvalues"], 2),
                            "coefficients": np.repeat(at["coefficients"], 2)/np.sqrt(2)})
    many = THEORY.solve(**at, multiplicity=np.full(at["eigenvalues"].size, 2))
    assert [many[k] for k in KEYS] == pytest.approx([twice[k] for k in KEYS], rel=1e-9)


def test_a_tail_is_many_small_eigenvalues():
    k = np.arange(1, 51.0)
    at = {"n": 40, "p": 70, "lam": 0.1, "noise": 0.2}
    with_tail = THEORY.solve(eigenvalues=np.append(k**-1.5, 0), coefficients=np.append(1/k, 0.3), tail=0.6, **at)
    gaps = []
    for many in (1e4, 1e6):
        small = THEORY.solve(eigenvalues=np.append(k**-1.5, 0.6/many), coefficients=np.append(1/k, 0.3),
                             multiplicity=np.append(np.ones(50), many), **at)
        gaps.append(abs(small["test_error"] - with_tail["test_error"]))
    assert gaps[1] < gaps[0]/50 and gaps[1] < 1e-4


# -- reference values --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", ROWS["square"], ids=lambda r: f"{r['sigma']}, {r['target']}, {r['alpha']}, {r['lam']}")
def test_the_table_of_random_features(row):
    """d eigenvalues mu_1^2/d and a tail of mu_star^2 are the features of an untrained layer, at any d."""
    d, sigma, g = 400.0, kernel_limit(row["sigma"]), kernel_limit(row["target"])
    p, c_1 = d/row["gamma"], np.sqrt(float(g.weight(1)))
    rest = g.tail(1) + (0 if sigma.weight(0) else float(g.weight(0)))  # with E sigma != 0 a constant is learnt at no cost
    found = THEORY.solve(n=row["alpha"]*p, p=p, lam=row["lam"], noise=row["Delta"], tail=sigma.tail(1), multiplicity=[d, 1],
                         eigenvalues=[float(sigma.weight(1))/d, 0], coefficients=[c_1, np.sqrt(rest)])
    assert found["test_error"] == pytest.approx(row["test_error"], rel=1e-9)
    assert found["train_error"] == pytest.approx(2*row["train_error"], rel=1e-8)


@pytest.mark.parametrize("name", ["sign", "relu", "abs", "tanh"])
def test_the_plateaus_of_kernels(name):
    """d^k eigenvalues d^-k for degree k: at n = d^(l + 1/2) what is left is ||P_{>l} g||^2, up to d^(-1/2) = 1e-10."""
    d, degrees = 1e20, np.arange(6.0)
    theory = kernel_limit(name)
    weights = [float(theory.weight(int(k))) for k in degrees]
    rest = theory.tail(5)
    found = THEORY.solve(n=d**np.array([0.5, 1.5, 2.5, 3.5]), lam=1.0, eigenvalues=np.append(d**-degrees, 0), tail=1.0,
                         coefficients=np.sqrt(np.append(weights, rest)), multiplicity=np.append(d**degrees, 1))
    assert found["test_error"] == pytest.approx([float(v) for v in TAILS[name]["tail"][:4]], abs=1e-9)


# -- another route -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_the_printed_form_by_another_arithmetic(seed):
    at = drawn(seed)
    at = {**at, "eigenvalues": at["eigenvalues"][-30:], "coefficients": at["coefficients"][-30:]}
    found, other = THEORY.solve(**at), printed(at)
    assert [found[k] for k in KEYS] == pytest.approx([other[k] for k in KEYS], rel=1e-9)


@pytest.mark.parametrize("wrong", [{"chi": False}, {"power": 1}, {"tail_in_df_2": True}], ids=str)
def test_planted_errors_are_seen(wrong):
    at = {**drawn(2), "tail": 0.3}
    at = {**at, "eigenvalues": at["eigenvalues"][:30], "coefficients": at["coefficients"][:30]}
    assert THEORY.solve(**at)["bias"] == pytest.approx(printed(at)["bias"], rel=1e-9)
    assert THEORY.solve(**at)["bias"] != pytest.approx(printed(at, **wrong)["bias"], rel=1e-3)


@pytest.mark.parametrize("kind", [{}, {"p": 120}, {"tail": 0.5}, {"tail": 0.5, "p": 200}, {"lam": 0.0, "p": 260}], ids=str)
def test_regression_on_gaussian_features(kind):
    k = np.arange(1, 401.0)
    at = {"lam": 0.02, "noise": 0.2, "eigenvalues": np.append(k**-1.5, 0), "coefficients": np.append(k**-1.1, 0.5), **kind}
    line = [60, 140]
    measured = simulate(THEORY, line, seeds=24, **at)
    names = ("test_error", "bias", "variance", *(["train_error"] if at["lam"] else []))
    assert agreement(THEORY.curve(line, **at), measured).worst(*names) < 3.5
    assert agreement(THEORY.curve(line, **{**at, "noise": 0.3}), measured).worst("test_error") > 3.5


# -- limits ------------------------------------------------------------------------------------------------------------
def test_limits_are_those_of_small_numbers():
    k = np.arange(1, 101.0)
    at = {"eigenvalues": k**-2, "coefficients": k**-1.5, "noise": 0.1}
    n, p = [30, 30, 50, np.inf, 300, 60, 300], [np.inf, 50, 30, 30, np.inf, 400, 150]
    found = THEORY.solve(n=n, p=p, lam=[0, 0, 0, 0.3, 0, 0, 0], **at)
    near = THEORY.solve(n=np.minimum(n, 1e12), p=np.minimum(p, 1e12), lam=[1e-11]*3 + [0.3] + [1e-11]*3, **at)
    for key in KEYS:
        assert found[key] == pytest.approx(near[key], rel=1e-5, abs=1e-8)
    assert found["variance"][4] == pytest.approx(0.1*100/200) and found["nu_2"][4] == 0 and found["bias"][4] == 0
    assert THEORY.solve(n=np.inf, lam=1, **at)["test_error"] == 0
    for n, p in ((40, 40), (100, np.inf)):
        with pytest.raises(NotConverged, match="take lam > 0"):
            THEORY.solve(n=n, p=p, lam=0, **at)


def test_the_best_ridge_and_derivatives():
    k = np.arange(1, 61.0)
    at = {"eigenvalues": k**-1.5, "coefficients": k**-1.0, "n": 30, "noise": 0.3}
    best = THEORY.minimise("test_error", over="lam", bounds=(1e-4, 10), **at)
    around = THEORY.solve(lam=best["lam"]*np.array([0.9, 1, 1.1]), **at)["test_error"]
    assert around[1] < around[0] and around[1] < around[2]
    here, there = (THEORY.solve(lam=v, **at) for v in (0.5, 0.5 + 1e-6))
    assert here.derivative("lam")["test_error"] == pytest.approx((there["test_error"] - here["test_error"])/1e-6, rel=1e-3)
    along = THEORY.curve(optimise="lam", bounds=(1e-2, 10), **at)
    assert along["lam"][0] == pytest.approx(best["lam"], rel=1e-4)


# -- equality of products ----------------------------------------------------------------------------------------------
def test_theory_system_and_curve_are_one():
    at = drawn(4)
    found = THEORY.solve(**at)
    own = {"lamda" if k == "lam" else k: v for k, v in at.items()}
    system = THEORY.system.solve(**own, multiplicity=np.ones(at["eigenvalues"].size))
    curve = THEORY.curve(**at)
    for key in KEYS:
        assert system[key] == pytest.approx(found[key], rel=1e-9) and curve[key][0] == pytest.approx(found[key], rel=1e-9)
    assert "theorem" in found.notes[-1] and THEORY.bibtex().count("@") == 2 and r"\Upsilon" in THEORY.latex()


@pytest.mark.slow
def test_the_exported_file_is_the_theory(tmp_path):
    at = drawn(2)  # its arrays stand in another order than in the formulas
    THEORY.system.export(tmp_path/"ridge.py")
    for name in ("eigenvalues", "coefficients"):
        np.save(tmp_path/f"{name}.npy", at[name])
    np.save(tmp_path/"multiplicity.npy", np.ones(at["eigenvalues"].size))
    words = [w for name in THEORY.arrays for w in (f"--{name}", f"{name}.npy")]
    words += [w for name in ("n", "p", "lam", "noise", "tail") for w in (f"--{name}", repr(float(at[name])))]
    told = subprocess.run([sys.executable, "-I", "ridge.py", *words, "--json"], cwd=tmp_path, capture_output=True, text=True,
                          check=True).stdout
    assert json.loads(told)["bias"][0] == pytest.approx(THEORY.solve(**at)["bias"], rel=1e-9)


@pytest.mark.slow
def test_a_long_spectrum_of_nothing_but_a_tail():
    """Every eigenvalue is 0: as many of them as one."""
    found, one = (THEORY.solve(n=10, lam=0.1, tail=1, eigenvalues=np.zeros(size), coefficients=np.full(size, size**-0.5))
                  for size in (5000, 1))
    assert found["test_error"] == pytest.approx(one["test_error"], rel=1e-9)


def test_a_million_modes():
    k = np.arange(1, 1e6 + 1)
    tracemalloc.start()
    begun = time.process_time()
    try:
        found = THEORY.solve(n=np.geomspace(10, 1e5, 20), p=[[np.inf], [1e3]], lam=1e-2, noise=0.1, eigenvalues=k**-1.5,
                             coefficients=k**-1.2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - begun < 20 and peak < 200e6 and np.all(found.converged) and found["bias"].shape == (2, 20)


# -- the faces ---------------------------------------------------------------------------------------------------------
def test_the_command_line(capsys, tmp_path):
    np.savetxt(tmp_path/"eta.csv", np.arange(1, 51.0)**-2, delimiter=",")
    words = ["curve", "ridge", "--lam", "0.1", "--noise", "0.1", "--eigenvalues", str(tmp_path/"eta.csv"),
             "--coefficients", "k**(-1.5), 1..50"]
    assert cli.main([*words, "--n", "10,20", "--plot", str(tmp_path/"a.svg"), "--simulate", "--seeds", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    k = np.arange(1, 51.0)
    expected = THEORY.curve([10, 20], lam=0.1, noise=0.1, eigenvalues=k**-2, coefficients=k**-1.5)
    assert answer["test_error"] == pytest.approx(expected.test_error.tolist(), rel=1e-9) and answer["parameters"]["p"] == "inf"
    assert len(answer["simulation"]["standard_error"]["bias"]) == 2 and (tmp_path/"a.svg").stat().st_size > 1000
    assert cli.main([*words, "--n", "20,inf", "--p", "10"]) == 0 and "inf" in capsys.readouterr().out
    assert cli.main([*words, "--p", "40,30,10", "--n", "20"]) == 0 and "bias" in capsys.readouterr().out
    assert cli.main(["curve", "ridge", "--n", "5", "--lam", "1", "--eigenvalues", "no.csv", "--coefficients", "1"]) == 2
    assert "--eigenvalues" in capsys.readouterr().err


def test_sweeps_take_spectra():
    k = np.arange(1, 31.0)
    for power in (1.5, 2.0):
        at = {"eigenvalues": k**-power, "coefficients": 1/k}
        table = hx.sweep(THEORY, {"lam": [0.1, 1.0]}, parameters={"n": 10, **at})
        assert table["bias"] == pytest.approx(THEORY.solve(n=10, lam=np.array([0.1, 1.0]), **at)["bias"], rel=1e-9)


def test_curve_by_name_and_the_picture():
    found = hx.curve("ridge", n=[3, 6], lam=0.5, eigenvalues=[1, 0.5], coefficients=[1, 2], simulate={"seeds": 2})
    assert len(found) == 2 and found.simulation.seeds == (0, 1) and found.parameters["lam"] == 0.5
    both = [hx.curve("ridge", n=[3, 6], lam=v, p=9, eigenvalues=[1, 0.5], coefficients=[1, 2]) for v in (0.1, 0.2)]
    assert len({t.get_text() for t in both[1].plot(both[0].plot()).get_legend().get_texts()}) == 2
    at = {"lam": 0.1, "eigenvalues": [1, 0.5], "coefficients": [1, 2]}
    titles = {THEORY.curve(n, tail=tail, p=[3, 9], **at).title for n in (3, 6) for tail in (0, 0.1, 0.2)}
    assert len(titles) == 6
    ax = THEORY.plot(modes=200)
    told = [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(set(told)) == 4 and len({(ln.get_color(), ln.get_linestyle()) for ln in ax.get_lines()}) == 4


AT = {"n": 5, "lam": 1, "eigenvalues": [1, 0.5], "coefficients": [1, 1]}


@pytest.mark.parametrize("change, kind, word", [
    ({"eigenvalues": [1, -0.5]}, BadInput, "eigenvalues"), ({"coefficients": [1]}, BadInput, "2 eigenvalues"),
    ({"eigenvalues": [[1, 2]]}, BadInput, "one list"), ({"eigenvalues": [0, 0]}, BadInput, "tail"), ({"n": 0}, BadInput, "n must"),
    ({"lam": -1}, BadInput, "lam"), ({"lam": np.inf}, BadInput, "lam"), ({"multiplicity": [1, 0]}, BadInput, "multiplicity"),
    ({"alpha": 2}, UnknownName, "alpha"), ({"eigenvalues": None}, BadInput, "eigenvalues"), ({"noise": "x"}, BadInput, "noise"),
    ({"coefficients": [1, np.nan]}, BadInput, "NaN")])
def test_bad_input_is_one_line(change, kind, word):
    with pytest.raises(kind) as caught:
        THEORY.solve(**{**AT, **change})
    assert word in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("change, word", [({"seeds": 0}, "seeds"), ({"dimension": 9}, "dimension"), ({"n": [0.2]}, "n = 0.2"),
                                          ({"p": [2, 3]}, "only n"), ({"multiplicity": [1, 1.5]}, "whole"),
                                          ({"multiplicity": [1, 1e9]}, "tail=")])
def test_experiments_that_cannot_be_made(change, word):
    at = {**AT, "n": [5], **change}
    with pytest.raises(BadInput, match=word):
        simulate(THEORY, at.pop("n"), **at)
