"""One giant step on a target of several directions: reference values, identities, an independent quadrature, planted errors."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from finite_size import extrapolated

import hermitex as hx
from hermitex.errors import BadInput

one_step, spike = hx.theories.one_step, hx.theories.spike
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_directions.json").read_text())
NAMES = {"test": "test_error", "train": "train_error", "m0": "m", "zeta00": "zeta", "psi00": "psi1", "psi01": "psi2",
         "q1_00": "q1", "q2_0": "q2"}
POINT = {"alpha": 2, "lam": 0.05, "r": 1.2, "c": 1.1, "gamma": 0.9}


def _slow(rows, quick):
    return [pytest.param(x, id=f"{x['sigma']}-{x['g']}", marks=() if x["g"] in quick else pytest.mark.slow) for x in rows]


# -- reference: theory sheet one_step_2, A1 ---------------------------------------------------------------------------
@pytest.mark.parametrize("row", _slow(REFERENCE["A1_step31"], {"z1+z1*z2", "1/2+z1*z2"}))
def test_the_step(row):
    found = spike(row["sigma"], row["g"])(row["alpha0"], row["etat"], row["beta"], row["Delta"])
    assert found == pytest.approx([row["r"], row["c"], row["gamma"]], rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("row", _slow(REFERENCE["A1_srf"], {"z1+z1*z2", "1/2+z1*z2"}))
def test_the_reference_values(row):
    # The sheet's own Gamma of the fourth target points 4e-10 past C_1.
    exact = not row["g"].startswith("tanh")
    numbers = {"r": row["U"][0][0], "c": row["c"][0], "gamma": np.hypot(*row["Gam"])}
    numbers |= {n: row[n] for n in ("alpha", "beta", "lam", "Delta")}
    found = one_step(row["sigma"], row["g"]).solve(**numbers, dimension=[np.inf, row["d"]])
    for k, at in enumerate(("values", "values_with_1_over_d")):
        for name, value in row[at].items():
            assert found[NAMES[name]][k] == pytest.approx(value, rel=1e-12 if exact else 1e-9, abs=1e-13), (at, name)


@pytest.mark.slow
@pytest.mark.parametrize("row", REFERENCE["A1_network"], ids=lambda x: x["sigma"])
def test_the_network_itself(row):
    theory = one_step(row["sigma"], row["g"], network="exact")
    found = theory.solve(eta=row["etat"], **{n: row[n] for n in ("alpha", "beta", "lam", "alpha0", "Delta")})
    known = row["quadratures_differ_by"]
    for name, value in zip(row["fields"], row["net"], strict=True):
        assert found[NAMES.get(name, name)] == pytest.approx(value, rel=known, abs=known), name
    assert (found["s_c2"], found["chi"]) == pytest.approx((row["sc2"], row["chi"]), rel=known)


# -- identities -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gamma", [0.7, -0.7, 1, -1])
def test_a_sum_of_directions_is_one_direction(gamma):
    numbers = {**POINT, "gamma": gamma}
    several, one = one_step("relu", "-3*z1 + 4*z2 - 12*z3").solve(**numbers), one_step("relu", "13*z").solve(**numbers)
    for name in ("test_error", "train_error", "m", "zeta", "q1", "q2"):
        assert several[name] == pytest.approx(one[name], rel=1e-12, abs=1e-12)
    psi = np.array([several[f"psi{j}"] for j in (1, 2, 3)])
    assert psi == pytest.approx(one["psi"]*np.array([-3, 4, -12])/13, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("Delta", [0, 0.2])
def test_the_network_on_a_sum_of_directions(Delta):
    numbers = {"alpha": 1.5, "lam": 0.1, "alpha0": 3, "eta": 2, "Delta": Delta}
    several, one = (one_step("tanh", g, network="exact").solve(**numbers) for g in ("sin((3*z1 - 4*z2)/5)", "sin"))
    for name in ("test_error", "train_error", "m", "zeta", "chi", "q1", "q2"):
        assert several[name] == pytest.approx(one[name], rel=1e-9), name
    assert (several["psi1"], several["psi2"]) == pytest.approx((0.6*one["psi"], -0.8*one["psi"]), rel=1e-9)


def test_an_odd_network_sees_nothing_of_the_product():
    found = one_step("tanh", "z1 + z1*z2").solve(**POINT)
    assert abs(found["psi2"]) < 1e-12 and found["psi1"] > 0.1
    assert abs(one_step("relu", "z1 + z1*z2").solve(**POINT)["psi2"]) > 0.1


def test_gamma_near_one_joins_gamma_one():
    found = one_step("relu", "z1 + z1*z2").solve(**{**POINT, "gamma": [1, 1 - 1e-9]})
    assert found["test_error"][0] == pytest.approx(found["test_error"][1], rel=1e-8)


# -- bounds -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", _slow(REFERENCE["A1_srf"], {"z1+z1*z2", "1/2+z1*z2"}))
def test_the_bounds(row):
    exact = not row["g"].startswith("tanh")
    found = hx.theories.bounds(row["sigma"], row["g"], r=row["U"][0][0], c=row["c"][0], gamma=np.hypot(*row["Gam"]))
    assert (found.upper, found.lower) == pytest.approx((row["upper"], row["lower"]), rel=1e-12 if exact else 1e-9)
    # "upper" bounds the risk at the best ridge, not at a given one.
    assert found.lower < row["values"]["test"] and found.upper < row["values"]["test"]


SUM = "He2((z1 + z2)/sqrt(2)) + z1 + z2", "He2(z) + sqrt(2)*z"


def test_the_bounds_of_a_sum_of_directions():
    several, one = (hx.theories.bounds("relu", g, r=0.9, gamma=[0.5, 1]) for g in SUM)
    assert several.upper == pytest.approx(one.upper, rel=1e-12) and several.lower == pytest.approx(one.lower, rel=1e-11)
    assert several.coefficients["psi"] == pytest.approx(np.outer(one.coefficients["psi"], [0.5**0.5, 0.5**0.5]), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"alpha0": 2, "optimise": True}, {"r": 0.9, "gamma": 0.8, "bias": True}], ids=["rate", "bias"])
def test_the_least_bounds_of_a_sum_of_directions(more):
    several, one = (hx.theories.bounds("tanh", g, **more).to_dict() for g in SUM)
    for name in {"upper", "lower", "upper_bias", "lower_bias", "r_upper", "r_lower", "b_upper", "b_lower"} & {
            n for n, v in one.items() if v is not None}:
        # a place where a bound is least is known to the root of its digits
        assert several.get(name) == pytest.approx(one.get(name), rel=1e-10 if name[:2] in ("up", "lo") else 1e-5), name


@pytest.mark.slow
def test_the_functions_that_realise_the_bounds():
    found = hx.theories.bounds("relu", "z1 + z1*z2", **{n: POINT[n] for n in ("r", "c", "gamma")})
    b, psi = found.coefficients["b"], found.coefficients["psi"]
    lower = {"m": b[0], "zeta": b[1], "psi1": psi[0], "psi2": psi[1], "q1": psi @ psi, "q2": 0}
    upper = {**dict.fromkeys(lower, 0), "m": found.coefficients["b1"]}
    assert [risk_by_hand(at, POINT) for at in (upper, lower)] == pytest.approx([found.upper, found.lower], rel=1e-7)
    x, w = np.polynomial.hermite_e.hermegauss(60)
    tilted = psi @ psi*(w @ hx.mu("relu", 1)(x, r=1.2, c=1.1)**2)/w.sum()
    for which, gap in (("upper", found.upper), ("lower", found.lower + tilted)):
        left = found.functions["target"](x) - found.functions[which](x)
        # the rest of g given kappa has the variance E g^2 - E h^2 = 2 - gamma^2
        assert w @ left**2/w.sum() + 2 - POINT["gamma"]**2 == pytest.approx(gap, rel=1e-7)
    assert len(found.plot().get_lines()) == 3 and found.to_dict()["target"] == "z1*z2 + z1"


# -- a third route: the risk as a mean square over (kappa, zeta), by a product rule ------------------------------------
def risk_by_hand(found, at, drop=()):
    """E[(g - mu_0 m - kappa mu_1 zeta - mu_1 psi.zeta)^2 + mu_1^2 (q_1 - |psi|^2) + mu_2^2 q_2] of relu and z1 + z1 z2."""
    x, w = np.polynomial.hermite_e.hermegauss(40)
    w = w/w.sum()
    k, a, b = np.meshgrid(x, x, x, indexing="ij")
    weight = w[:, None, None]*w[:, None]*w
    z1 = at["gamma"]*k + np.sqrt(1 - at["gamma"]**2)*a
    mu = [hx.mu("relu", j)(x, r=at["r"], c=at["c"])[:, None, None] for j in (0, 1)]
    rest = hx.mu_star("relu").squared(x, r=at["r"], c=at["c"])[:, None, None]
    psi = [0 if j in drop else found[f"psi{j}"] for j in (1, 2)]
    mean = mu[0]*found["m"] + k*mu[1]*found["zeta"] + mu[1]*(psi[0]*a + psi[1]*b)
    spread = mu[1]**2*(found["q1"] - psi[0]**2 - psi[1]**2) + rest*found["q2"]
    return np.sum(weight*((z1 + z1*b - mean)**2 + spread))


def test_the_risk_is_a_mean_square():
    found = one_step("relu", "z1 + z1*z2").solve(**POINT)
    assert risk_by_hand(found, POINT) == pytest.approx(found["test_error"], rel=1e-7)


def test_tooth_a_direction_that_is_left_out():
    found = one_step("relu", "z1 + z1*z2").solve(**POINT)
    assert risk_by_hand(found, POINT, drop=(2,)) != pytest.approx(found["test_error"], rel=1e-3)


def one_real_step(d, seed, alpha0=2, eta=1.5):
    """r, c, Gamma_1 and Gamma_2 after a gradient step of tanh at p = d on z1 + z1 z2."""
    rng = np.random.default_rng([77, d, seed])
    W = rng.standard_normal((d, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    x = rng.standard_normal((alpha0*d, d))
    u = x @ W.T
    residual = x[:, 0]*(1 + x[:, 1]) - np.tanh(u).sum(axis=1)/d
    step = eta*((residual[:, None]/np.cosh(u)**2).T @ x)/(alpha0*d)
    # gradient of a neuron: a_i = 1/sqrt(p) and f = sum a_i sigma/sqrt(p), at rate eta d and p = d
    v = step.mean(axis=0)
    new = W + step
    left = new - np.outer(new @ v/(v @ v), v)
    return [np.linalg.norm(v), np.mean(np.sum(left**2, axis=1))*d/(d - 1), *(v[:2]/np.linalg.norm(v))]


@pytest.mark.slow
def test_the_step_by_simulation():
    mean, error = extrapolated(one_real_step, 250, range(20))
    r, c, gamma = spike("tanh", "z1 + z1*z2")(alpha0=2, eta=1.5)
    assert np.all(np.abs(mean - [r, c, gamma, 0]) < 3*error) and np.all(error < 0.05)


# -- products, and what a user meets ----------------------------------------------------------------------------------
def test_it_says_that_the_spike_is_noise():
    found = one_step("relu", "1/2 + z1*z2").solve(alpha=2, lam=0.1, alpha0=2, eta=1)
    assert any("pure noise" in note for note in found.notes)
    assert not any("pure noise" in note for note in one_step("relu", "z1 + z1*z2").solve(alpha=2, lam=0.1, alpha0=2, eta=1).notes)


def test_texts_and_copies():
    theory = pickle.loads(pickle.dumps(one_step("sin", "sin(z1 + z2) + z1*z2*z3")))
    assert theory.spike.to_dict()["gamma"] == "sqrt(2)*exp(-1)/sqrt(2*exp(-2) + (Delta - exp(-4)/2 + 3/2)/alpha0)"
    assert [str(v) for v in theory.spike.Gamma][2] == "0"
    curve = theory.curve(alpha=[1, 2], lam=0.1, alpha0=3, eta=1)
    assert curve.all_converged and {"psi1", "psi2", "psi3"} <= set(curve.order_parameters)


@pytest.mark.parametrize("g, more, numbers, said", [
    ("1/2 + z1*z2", {}, {"r": 1, "c": 1, "gamma": 0.5}, "give gamma = 0"),
    ("exp(z1**2)*z2", {}, {}, "not square integrable"),
    ("z1 + z1*z2", {"loss": "logistic"}, {}, "take loss=.square."),
])
def test_bad_input_is_one_line(g, more, numbers, said):
    with pytest.raises(BadInput, match=said) as error:
        one_step("relu", g, **more).solve(alpha=1, lam=0.1, **numbers)
    assert "\n" not in str(error.value)
