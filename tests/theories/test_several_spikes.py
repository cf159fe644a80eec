"""Spikes of several directions: reference values, identities of a change of axes, what is refused, planted errors."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput, NoValue
from hermitex.theories.spike_span import root, spanned

one_step = hx.theories.one_step
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "one_step_directions.json").read_text())
TWO = {"spikes": [[1.2, 0.0], [0.4, 1.5]], "overlaps": [[0.9, 0.0], [0.1, 0.8]], "norms": [1, 1.2]}
POINT = {"alpha": 2.5, "beta": 0.8, "lam": 0.05}


def _names(letters, rank, directions):
    """The sheet's name of each order parameter, which counts from 0 -> that of the solution."""
    names = {"test": "test_error", "train": "train_error"}
    for k in range(letters):
        names |= {f"m{k}": f"m{k + 1}", f"q2_{k}": f"q2_{k + 1}"}
        names |= {f"zeta{k}{a}": f"zeta{k + 1}_{a + 1}" for a in range(rank)}
        names |= {f"psi{k}{j}": f"psi{k + 1}_{j + 1}" for j in range(directions)}
        names |= {f"q1_{k}{i}": f"q1_{k + 1}{i + 1}" for i in range(k, letters)}
    return names


@pytest.mark.parametrize("row", REFERENCE["A2_srf"], ids=lambda x: x["sigma"])
def test_the_reference_values(row):  # theory sheet one_step_2, A2
    theory = one_step(row["sigma"], row["g"], spikes=row["U"], overlaps=row["Gam"], fractions=row["pi"], norms=row["c"],
                      biases=row["b"])
    found = theory.solve(**{n: row[n] for n in ("alpha", "beta", "lam", "Delta")}, dimension=[np.inf, row["d"]])
    names = _names(*np.shape(row["U"]), 2)
    for k, at in enumerate(("values", "values_with_1_over_d")):
        for name, value in row[at].items():
            assert found[names[name]][k] == pytest.approx(value, rel=1e-11, abs=1e-13), (at, name)


@pytest.mark.slow
@pytest.mark.parametrize("row", REFERENCE["A2_three_letters"], ids=lambda x: x["sigma"])
def test_three_letters_of_two_axes(row):  # theory sheet one_step_2, A2
    theory = one_step(row["sigma"], row["g"], spikes=row["U"], overlaps=row["Gam"], fractions=row["pi"], norms=row["cs"],
                      biases=row["bs"])
    found = theory.solve(**{n: row[n] for n in ("alpha", "beta", "lam", "Delta")}, dimension=[np.inf, row["d"]])
    names = _names(3, 2, 2)
    # the sheet's E[z tanh z] has 7 digits
    for k, at in enumerate(("theory", "theory_1_over_d")):
        for name, value in zip(row["fields"], row[at], strict=True):
            assert found[names[name]][k] == pytest.approx(value, rel=1e-6, abs=1e-7), (at, name)


def test_one_axis_is_a_vocabulary():
    table = one_step("tanh", "sin", spikes=[[1.0], [-1.5]], overlaps=[[0.9]]).solve(**POINT, c=1.1)
    vocabulary = one_step("tanh", "sin", vocabulary=[1, -1.5]).solve(**POINT, r=1, c=1.1, gamma=0.9)
    for name in ("test_error", "train_error", "m1", "q1_12", "V2_2", "psi2"):
        assert table[name] == pytest.approx(vocabulary[name], rel=1e-11)
    assert table["zeta2_1"] == pytest.approx(vocabulary["zeta2"], rel=1e-11)


@pytest.mark.slow
def test_other_axes_and_one_without_a_spike_change_nothing():
    found = one_step("relu", "z1 + z1*z2", **TWO).solve(**POINT)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    turned = one_step("relu", "z1 + z1*z2", spikes=TWO["spikes"] @ turn, overlaps=TWO["overlaps"] @ turn,
                      norms=TWO["norms"]).solve(**POINT)
    for name in ("test_error", "m1", "q1_12", "psi1_2"):
        assert turned[name] == pytest.approx(found[name], rel=1e-10)
    zeta = [[found[f"zeta{k}_{a}"] for a in (1, 2)] for k in (1, 2)] @ turn
    assert [turned[f"zeta1_{a}"] for a in (1, 2)] == pytest.approx(zeta[0], rel=1e-9)
    # tooth: a turn of the spikes alone is felt
    wrong = one_step("relu", "z1 + z1*z2", **{**TWO, "spikes": TWO["spikes"] @ turn}).solve(**POINT)
    assert wrong["test_error"] != pytest.approx(found["test_error"], rel=1e-3)
    one = one_step("relu", "z1 + z1*z2", spikes=[[1.2]], overlaps=[[0.9], [0.1]]).solve(**POINT, c=1)
    more = one_step("relu", "z1 + z1*z2", spikes=[[1.2, 0]], overlaps=[[0.9, 0], [0.1, 0]]).solve(**POINT, c=1)
    assert more["test_error"] == pytest.approx(one["test_error"], rel=1e-11) and abs(more["zeta1_2"]) < 1e-11


@pytest.mark.slow
def test_the_risk_is_a_mean_square():
    """A third route: over (kappa, zeta) by Gauss' rule, z = Gamma kappa + S zeta, for a smooth activation."""
    theory = pickle.loads(pickle.dumps(one_step("softplus", "z1 + z1*z2", **TWO)))
    found = theory.solve(**POINT)
    x, w = np.polynomial.hermite_e.hermegauss(20)
    k1, k2, a, b = np.meshgrid(x, x, x, x, indexing="ij")
    weight = np.prod(np.meshgrid(*[w/w.sum()]*4, indexing="ij"), axis=0)
    kappa, zeta = np.stack([k1, k2], axis=-1), np.stack([a, b], axis=-1)
    z = kappa @ np.transpose(TWO["overlaps"]) + zeta @ root(np.array(TWO["overlaps"]))
    mean, mu_1, spread = 0, [], 0
    for k, (U, c) in enumerate(zip(TWO["spikes"], TWO["norms"], strict=True), start=1):
        shift = kappa @ U
        mu = [hx.mu("softplus", j)(shift.ravel(), c=c).reshape(shift.shape) for j in (0, 1)]
        mu_1.append(mu[1])
        part = [found[f"{n}{k}_{i}"] for n in ("zeta", "psi") for i in (1, 2)]
        mean = mean + mu[0]*found[f"m{k}"] + mu[1]*(kappa @ part[:2] + zeta @ part[2:])
        spread = spread + hx.mu_star("softplus").squared(shift.ravel(), c=c).reshape(shift.shape)*found[f"q2_{k}"]
    psi = np.array([[found[f"psi{k}_{j}"] for j in (1, 2)] for k in (1, 2)])
    q1 = np.array([[found["q1_11"], found["q1_12"]], [found["q1_12"], found["q1_22"]]]) - psi @ psi.T
    spread = spread + np.einsum("kl,k...,l...->...", q1, mu_1, mu_1)
    assert np.sum(weight*((z[..., 0]*(1 + z[..., 1]) - mean)**2 + spread)) == pytest.approx(found["test_error"], rel=1e-8)


def test_the_root_and_the_span():
    rng = np.random.default_rng(4)
    overlaps = np.linalg.qr(rng.standard_normal((5, 5)))[0][:3, :2]
    assert root(overlaps) @ root(overlaps) == pytest.approx(np.eye(3) - overlaps @ overlaps.T, abs=1e-14)
    assert root(np.linalg.qr(rng.standard_normal((3, 3)))[0]) == pytest.approx(0, abs=1e-14)
    vectors = np.outer([1.0, 0, -2], rng.standard_normal(6)) + np.outer([0, 0, 1e-3], rng.standard_normal(6))
    U, basis = spanned(vectors)
    assert basis.shape == (2, 6) and basis @ basis.T == pytest.approx(np.eye(2), abs=1e-14)
    assert U @ basis == pytest.approx(vectors, abs=1e-14) and U[0, 1] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("more, said", [
    ({"spikes": [[1, 0]]}, "given together"),
    ({"spikes": [1, 2], "overlaps": [[1]]}, "table of finite numbers"),
    ({"spikes": [[1, 0], [1]], "overlaps": [[1]]}, "table of finite numbers"),
    ({"spikes": [[1, 0]], "overlaps": [[1, 0]]}, "overlaps has 2 x 2 numbers"),
    ({"spikes": [[1, 0]], "overlaps": [[1, 0.5], [0, 0]]}, "largest singular value"),
    ({"spikes": [[1, 0]], "overlaps": [[1, 0], [0, 0]], "loss": "logistic"}, "several directions|leave loss out|given kappa"),
    ({"spikes": [[1, 0]], "overlaps": [[1, 0], [0, 0]], "vocabulary": [1]}, "leave vocabulary out"),
    ({"spikes": [[1, 0]], "overlaps": [[1, 0], [0, 0]], "steps": 2}, "leave steps out"),
    ({"spikes": [[1, 0]], "overlaps": [[1, 0], [0, 0]], "norms": [1, 2]}, "norms has 2 entries for 1"),
])
def test_bad_input_is_one_line(more, said):
    with pytest.raises(BadInput, match=said) as error:
        one_step("tanh", "z1 + z1*z2", **more)
    assert "\n" not in str(error.value)


def test_a_number_that_is_missing_or_out_of_range():
    theory = one_step("tanh", "sin", spikes=[[1.0]], overlaps=[[0.9]])
    with pytest.raises(NoValue, match="c"):
        theory.solve(alpha=1, lam=0.1)
    with pytest.raises(BadInput, match="c = -1"):
        theory.solve(alpha=1, lam=0.1, c=-1)
    with pytest.raises(BadInput, match="along one direction"):
        theory.solve(alpha=1, lam=0.1, c=1).learned(z=1)
