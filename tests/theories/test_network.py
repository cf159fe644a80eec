"""The trained network itself: published-style reference values, the formulas as first derived, limits, planted changes."""

import json
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from bulk_by_mpmath import Bulk

import hermitex as hx
from hermitex.errors import BadInput, UnknownName
from hermitex.theories import one_step

ROWS = json.loads((Path(__file__).parents[1] / "reference" / "one_step_network.json").read_text())["rows"]
NAMES = {"test": "test_error", "train": "train_error"}
POINT = {"alpha": 1.5, "lam": 0.05, "alpha0": 1.0, "eta": 2.0}


def network(sigma, g):
    return one_step(sigma, g, network="exact")


def numbers(row):
    return {**{k: row[k] for k in ("alpha", "beta", "lam", "Delta", "alpha0")}, "eta": row["etat"]}


# -- reference values -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['sigma']}-{row['g']}")
def test_reference_values(row):
    found = network(row["sigma"], row["g"]).solve(**numbers(row))
    for name, value in row["out"].items():
        assert found[NAMES.get(name, name)] == pytest.approx(value, rel=1e-6, abs=1e-8), name
    assert found["s_c2"] == pytest.approx(row["rownorm_var_times_d"], rel=1e-12)
    assert found["tau"] == pytest.approx(row["tau"], rel=1e-12)


def test_the_network_is_not_the_spiked_features():
    row = ROWS[0]
    assert network(row["sigma"], row["g"]).solve(**numbers(row))["test_error"] != pytest.approx(row["srf_test"], rel=1e-2)


# -- the third route: the formulas as first derived, at 30 digits, derivatives by mpmath -------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("g, in_mp, Delta, kw", [
    ("sin(2*z)", lambda x: mp.sin(2*x), 0.0, {"alpha": 1.2, "beta": 0.8, "lam": 0.05, "alpha0": 0.7, "eta": 1.9}),
    ("sign", "sign", 0.3, {"alpha": 3.0, "beta": 1.4, "lam": 0.2, "alpha0": 2.0, "eta": 3.0}),
])
def test_traces_and_K_are_the_total_derivatives(g, in_mp, Delta, kw):
    found = network("tanh", g).solve(Delta=Delta, **kw)
    bulk = Bulk(in_mp, mp.mpf(Delta), alpha0=kw["alpha0"], t=kw["eta"]/kw["beta"], beta=kw["beta"], sigma=mp.tanh,
                slope=lambda x: mp.sech(x)**2)
    exact = bulk.derivatives(mp.mpf(kw["lam"] + found["Vhat2"]), mp.mpf(found["Vhat1"]), mp.mpf(found["V2"]))
    assert abs(exact["T1"] - exact["T1_too"]) < 1e-12*exact["T1"]       # -d V_2/d Vhat_1 = -d V_1/d L
    for name in ("V1", "V2", "T0", "T1", "T2"):
        assert found[name] == pytest.approx(float(exact[name]), rel=1e-10), name
    T0, T1, beta, delta = found["T0"], found["T1"], kw["beta"], kw["beta"]*found["Vhat1"]*found["V2"]
    for i, x in enumerate("vpa"):
        for j, y in enumerate("vpa"):
            if i <= j:
                K, dK = found[f"K_{x}{y}"], found[f"dK_{x}{y}"]
                along = K + delta*dK
                assert beta*found["V2"]*K == pytest.approx(float(exact["K"][i, j]), rel=1e-10, abs=1e-13), (x, y)
                assert beta*T0*along == pytest.approx(float(exact["K_L"][i, j]), rel=1e-9, abs=1e-12), (x, y)
                assert beta*T1*along - (beta*found["V2"])**2*dK == pytest.approx(float(exact["K_1"][i, j]), rel=1e-9, abs=1e-12)


def test_tooth_a_partial_derivative_is_not_the_total_one():
    found = network("tanh", "sin").solve(**POINT)
    assert found["T0"] != pytest.approx(found["V2"]**2, rel=1e-2)       # d V_2/d L at fixed delta


# -- identities -------------------------------------------------------------------------------------------------------
def planted(system, **where):
    """The same system with named sub-expressions replaced."""
    own = {k.name: k for k in system.where}
    return hx.System(system.equations, where={**system.where, **{own[n]: v for n, v in where.items()}},
                     parameters=system.parameters, observables=system.observables,
                     positive=[u.name for u in system.positive])


@pytest.fixture(scope="module")
def isotropic():
    """Rows of covariance (1 + tau) I: the population S of a target of constant size, with tau and c planted, no norms."""
    return planted(network("tanh", "sign").system, tau=0.7, k_0=0, k_3=0, s_c2=0)


def test_isotropic_rows_of_equal_norms_are_the_spiked_features(isotropic):
    at = {"alpha": np.array([0.5, 1.1, 2.0]), "beta": 0.8, "lam": 0.03, "r": 1.3, "c": 1.7, "gamma": 0.6, "Delta": 0.0}
    found = isotropic.solve(**at, eta=1.0, alpha0inv=0.0, bias=0.0, epsilon=0.0)
    spiked = one_step("tanh", "sign").solve(**at)
    for name in ("test_error", "train_error", "m", "zeta", "psi", "q1", "q2", "V1", "V2", "T0", "T1", "T2"):
        assert found[name] == pytest.approx(spiked[name], rel=1e-8, abs=1e-11), name
    assert found["chi"] == pytest.approx(0, abs=1e-12)
    finite = isotropic.solve(**at, eta=1.0, alpha0inv=0.0, bias=0.2, epsilon=1/400)["test_error"]
    assert finite == pytest.approx(one_step("tanh", "sign").solve(**at, bias=0.2, dimension=400)["test_error"], rel=1e-9)


def test_tooth_anisotropy_is_felt(isotropic):
    at = {"alpha": 1.1, "beta": 0.8, "lam": 0.03, "r": 1.3, "c": 1.7, "gamma": 0.6, "Delta": 0.0, "bias": 0.0, "epsilon": 0.0}
    errors = [isotropic.solve(**at, eta=1.0, alpha0inv=a)["test_error"] for a in (0.0, 0.5)]
    assert abs(errors[1]/errors[0] - 1) > 1e-3


@pytest.mark.slow
def test_a_linear_activation_has_isotropic_rows():
    kw = {"alpha": np.array([0.4, 1.5]), "lam": 0.05, "alpha0": 0.8, "eta": 1.2, "Delta": 0.1, "beta": 1.3}
    both = [theory.solve(**kw)["test_error"] for theory in (network("z", "tanh"), one_step("z", "tanh"))]
    assert both[0] == pytest.approx(both[1], rel=1e-10)


def test_without_a_step_it_is_random_features():
    found = network("tanh", "sin").solve(**{**POINT, "eta": 0.0})
    plain = one_step("tanh", "sin").solve(alpha=1.5, lam=0.05, r=0, c=1, gamma=0.5)
    assert found["test_error"] == pytest.approx(plain["test_error"], rel=1e-9)


def test_the_population_gradient_makes_rows_whose_norms_follow_the_spike():
    # alpha0 = inf: C = I, delta_i = k_0 (Wv)_i.
    found = network("tanh", "sin").solve(**{**POINT, "alpha0": np.inf})
    assert found["tau"] == 0 and found["chi"] == pytest.approx(found["k_0"]*found["zeta"], rel=1e-9)
    assert network("tanh", "sin").solve(**{**POINT, "alpha0": 1e12})["test_error"] == pytest.approx(found["test_error"], rel=1e-9)


@pytest.mark.slow
def test_without_a_third_coefficient_the_population_gradient_leaves_the_spiked_features():
    kw = {"alpha": 1.5, "lam": 0.05, "alpha0": np.inf, "eta": 1.0}
    pair = [theory.solve(**kw)["test_error"] for theory in (network("z + He5(z)/100", "sin"), one_step("z + He5(z)/100", "sin"))]
    assert pair[0] == pytest.approx(pair[1], rel=1e-9)


@pytest.mark.slow
def test_averages_over_the_noise_are_continuous_where_it_vanishes():
    smooth = network("tanh", "sin").solve(**{**POINT, "Delta": np.array([1e-12, 0.0])})["test_error"]
    assert smooth[0] == pytest.approx(network("tanh", "sin").solve(**POINT)["test_error"], rel=1e-9)
    assert smooth[1] == pytest.approx(smooth[0], rel=1e-9)


@pytest.mark.slow
def test_ridgeless_limit():
    theory = network("tanh", "sin")
    for alpha in (0.5, 1.6):
        found = theory.solve(**{**POINT, "alpha": alpha, "lam": np.array([0.0, 1e-10])})
        assert found["test_error"][0] == pytest.approx(found["test_error"][1], rel=2e-3)
    assert theory.solve(**{**POINT, "alpha": 0.5, "lam": 0.0})["train_error"] == 0


def test_extremes_converge():
    theory = network("tanh", "sin")
    for kw in ({"lam": np.array([1e-9, 1e6])}, {"alpha0": np.array([1e-2, 1e3])}, {"beta": np.array([0.05, 20.0])}):
        assert np.all(theory.solve(**{**POINT, **kw}).converged)


# -- faces ------------------------------------------------------------------------------------------------------------
def test_curve_and_letters():
    theory = network("erf", "sign")
    curve = theory.curve(alpha=np.linspace(0.2, 3, 15), lam=0.05, alpha0=0.5, eta=2)
    assert curve.all_converged and {"chi", "zeta", "V1", "qhat2", "chitilde"} <= set(curve.order_parameters)
    assert curve.parameters["network"] == "exact" and {"r", "c", "gamma", "alpha0", "eta"} <= set(curve.parameters)
    assert "cui2024" in curve.bibtex()


@pytest.mark.parametrize("sigma, g, kw, said", [
    ("relu", "sin", POINT, "is not proved odd; use network='srf'"),
    ("sign", "sin", POINT, "not square integrable"),
    ("tanh", "sin", {"alpha": 1, "lam": 0.1, "r": 1, "c": 1, "gamma": 1}, "give alpha0 and eta, or use network='srf'"),
    ("tanh", "sin", {"alpha": 1, "lam": 0.1, "alpha0": 2}, "eta"),
    ("tanh", "sin", {**POINT, "alpha0": -1}, "alpha0 = -1; it must be positive"),
    ("tanh", "0", POINT, "the gradient is 0"),
])
def test_bad_input_is_one_line(sigma, g, kw, said):
    with pytest.raises(BadInput) as error:
        network(sigma, g).solve(**kw)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_unknown_numbers_and_letters():
    with pytest.raises(UnknownName):
        network("tanh", "sin").solve(**POINT, etta=1)
    with pytest.raises(BadInput, match="is a letter of the theory"):
        network(hx.parse("tanh(chi*z)", symbols={"chi": "positive"}), "sin").solve(**POINT, chi=2)
