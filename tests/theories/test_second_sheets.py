"""Reference values of the theory sheets one_step_2 (A4 to A8) and multi_index_2 (B1 to B8) that no other file compares."""

import json
from math import factorial
from pathlib import Path

import numpy as np
import pytest

import hermitex as hx
from hermitex.theories import (
    batch_reuse,
    intermediate_step,
    multi_index,
    one_step,
    small_step,
    spectral,
    spectrum,
    spike,
    spiked_covariance,
)
from hermitex.theories.overlaps.free_entropy import label_entropy

KNOWN = json.loads((Path(__file__).parents[1]/"reference"/"second_sheets.json").read_text())


def _rest_slow(rows, quick):
    return [row if k == quick else pytest.param(row, marks=pytest.mark.slow) for k, row in enumerate(rows)]


def _step(row):
    return f"{row['sigma']}, {row['g']}, {row['alpha0']:g}, {row['Delta']:g}"


def _letters(row):
    return ", ".join(str(row[n]) for n in ("sigma", "g", "vocabulary", "biases", "rows") if n in row)


def _unit(k):
    return spiked_covariance(f"He{k}(z)/sqrt({factorial(k)})")


# -- A4: the step at the best rate, both slopes of the risk there, and the risk as eta -> 0 -----------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("row", KNOWN["A4"], ids=_step)
def test_the_best_step_and_its_slopes(row):
    numbers = {n: row[n] for n in ("alpha", "beta", "lam", "Delta")}
    step = spike(row["sigma"], row["g"])(alpha0=row["alpha0"], eta=row["eta"], beta=row["beta"], Delta=row["Delta"])
    at = {n: getattr(step, n) for n in ("r", "c", "gamma")}
    assert at == pytest.approx({n: row[n] for n in at}, rel=1e-13, abs=1e-15)
    found = one_step(row["sigma"], row["g"]).solve(**numbers, **at)
    assert found["test_error"] == pytest.approx(row["risk"], rel=1e-12)
    slopes = [found.derivative(n)["test_error"] for n in ("r", "c")]
    assert slopes == pytest.approx([row["d_r"], row["d_c"]], rel=3e-10)


@pytest.mark.parametrize("row", _rest_slow(KNOWN["A4"], 4), ids=_step)
def test_the_risk_of_a_tiny_step(row):
    """The sheet's values are those at eta = 1e-9. An odd network gains kappa itself without a ridge as eta -> 0, and at eta = 0
    it is random features: the limit is by a polynomial in eta^2, and by the ridge after an outlier of infinite strength. The
    sheet's quadrature loses half of its digits there.
    """
    theory, numbers = one_step(row["sigma"], row["g"]), {n: row[n] for n in ("alpha", "lam", "alpha0", "Delta")}
    if row["sigma"] == "relu":
        assert theory.solve(**numbers, eta=1e-9)["test_error"] == pytest.approx(row["risk_at_0"], rel=1e-13)
        return
    none, *near = theory.solve(**numbers, eta=[0, 1e-3, 2e-3])["test_error"]
    limit = (4*near[0] - near[1])/3
    free = intermediate_step(row["sigma"], row["g"]).solve(s=0.6, psi1=row["alpha0"], psi2=1, alpha=row["alpha"], lam=row["lam"],
                                                           Delta=row["Delta"])["test_error"]
    assert limit == pytest.approx(free, rel=1e-10) and limit == pytest.approx(row["risk_at_0"], abs=4e-9)
    plain = hx.theories.random_features(row["sigma"], row["g"]).solve(alpha=row["alpha"], gamma=1, lam=row["lam"],
                                                                      Delta=row["Delta"])["test_error"]
    assert none == pytest.approx(plain, rel=1e-10) and none > 1.1*limit


# -- A5: resolvents and outliers ------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("row", KNOWN["A5"], ids=_letters)
def test_resolvents_and_outliers(row):
    law = spectrum(row["sigma"], r=1, alpha=row["alpha"], beta=row["beta"], dimension=row["n"]/row["alpha"],
                   **{n: row[n] for n in ("vocabulary", "fractions", "norms", "biases", "rows")})
    z, m = (np.array([complex(*v) for v in row[n]]) for n in ("z", "m"))
    np.testing.assert_allclose(law.stieltjes(z), m, rtol=3e-12)
    np.testing.assert_allclose(law.outliers, row["outliers"], rtol=1e-11)
    if law.outlier:  # of one letter: n E mu_0^2 + O(1)
        assert law.outlier["value"] == pytest.approx(row["outliers"][0], rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("d, outlier", [(1e4, 26.9131), (1e7, 26.7323157)])
def test_the_outlier_of_norms_that_fluctuate_a_little(d, outlier):
    """Two letters of norms 1 -+ sqrt(400/d), that have an eigenvalue more than one letter."""
    s = np.sqrt(400/d)
    law = spectrum("relu", r=1, alpha=4, beta=.5, dimension=d, vocabulary=[.8, .8], norms=[1 - s, 1 + s], points=40)
    assert law.outliers[1] == pytest.approx(outlier, abs=1e-5)
    assert len(spectrum("relu", r=1, alpha=4, beta=.5, dimension=d, vocabulary=[.8], points=40).outliers) == 1


# -- A6, A8: risks between the bounds, and below the variance that no ridge would learn ---------------------------------------
@pytest.mark.parametrize("row", _rest_slow(KNOWN["A6"], 0), ids=_letters)
def test_risks_of_large_networks_and_large_ridges(row):
    theory = one_step(row["sigma"], row["g"], **{n: row[n] for n in ("vocabulary", "norms", "biases")})
    at = {n: row[n] for n in ("r", "gamma")}
    alpha, beta, risks = np.array(row["risk_alpha_beta"]).T
    found = theory.solve(alpha=alpha, beta=beta, lam=1e-3, **at)["test_error"]
    assert found == pytest.approx(risks, rel=1e-11) and np.all(np.diff(found) < 0) and found[-1] > row["lower"]
    heavy = theory.solve(alpha=2, beta=1, lam=1e9, **at)["test_error"]
    assert heavy == pytest.approx(row["risk_lam_1e9"], rel=1e-10) and heavy == pytest.approx(row["upper"], rel=3e-10)


@pytest.mark.slow
def test_a_ridge_below_the_variance_of_the_target_given_the_spike():
    row = KNOWN["A8"]
    letters = {n: row[n] for n in ("vocabulary", "biases")} | {"norms": [1]*4}
    theory, numbers = one_step("relu", "z1 + z1*z2", **letters), {n: row[n] for n in ("alpha", "beta", "lam")}
    found = theory.solve(**numbers, r=1, gamma=1, dimension=[np.inf, row["d"]])["test_error"]
    assert found == pytest.approx([row["theory"], row["theory_1_over_d"]], rel=1e-12)
    assert hx.bounds("relu", "z1 + z1*z2", r=1, gamma=1, **letters).lower == pytest.approx(row["lower"], rel=1e-11)


# -- B1: alpha(q), where the sheet's slopes of Psi are differences, good to 6e-7 ----------------------------------------------
@pytest.mark.parametrize("row", KNOWN["B1_curves"], ids=lambda r: r["target"])
def test_the_line_of_fixed_points(row):
    theory, q = multi_index(row["target"]), np.array(row["q"])
    one = np.eye(theory.output.r)
    alpha = [x/(1 - x)/theory.evolution.F_within(x*one)[0, 0] for x in q]
    assert alpha == pytest.approx(row["alpha"], rel=6e-7)
    assert label_entropy(theory.observed) == pytest.approx(row["psi0"], abs=1e-13)
    solved = [theory.solve(alpha=a)["M11"] for a in alpha[1:5]]
    assert solved == pytest.approx(q[1:5], abs=1e-8)


@pytest.mark.slow
def test_channels_with_noise_and_the_turns_of_the_size():
    linear = multi_index("z", "gaussian:3/10").free_energy(alpha=1.7)
    assert (linear["M11"], linear["information"]) == (pytest.approx(.7583801511351974, abs=1e-9),
                                                      pytest.approx(.8331693652449241, abs=1e-13))
    found = multi_index("abs(z)", "gaussian:1/100").free_energy(alpha=.6)
    assert (found["M11"], found["free_entropy"], found["information"]) == pytest.approx(
        (.04485581253391414, -.48144329578395706, 1.0116312316575808), abs=1e-11)
    (turn, q, _), = multi_index("abs(z)").transitions().spinodals
    assert turn == pytest.approx(1.1284714066720862, rel=2e-9)  # by a plain sum over z and omega; the sheet has 1.12847063
    assert turn == pytest.approx(1.128471, abs=5e-7) and q == pytest.approx(.84665, abs=5e-6)


@pytest.mark.parametrize("alpha, q, loss", [(1.5, .6299975210662876, .43228517282378076),
                                            (4, .900257327696919, .22675348416212557)])
def test_the_loss_of_the_predictive_law_of_signs(alpha, q, loss):
    """E[-log P(y_new|data)] = -dPhi/dalpha, by the free entropy at M11."""
    found = multi_index("sign(z)").free_energy(alpha=alpha)
    own = (found["M11"] + np.log(1 - found["M11"]))/2
    assert found["M11"] == pytest.approx(q, abs=3e-8)
    assert -(found["free_entropy"] - own)/alpha == pytest.approx(loss, abs=3e-8)
    high, low = (multi_index("sign(z)").free_energy(alpha=alpha + h)["free_entropy"] for h in (1e-3, -1e-3))
    assert (low - high)/2e-3 == pytest.approx(loss, abs=2e-7)


@pytest.mark.slow
def test_the_turns_of_a_size_with_a_little_noise():
    found = multi_index("abs(z)", "gaussian:1/1000").transitions()
    assert [a for a, *_ in found.spinodals] == pytest.approx([1.1374515975195563, 1.1241311497017554], rel=5e-9)
    assert [q for _, q, _ in found.spinodals] == pytest.approx([.8655990158703148, .9669064726455252], abs=2e-5)
    assert found.weak_recovery == pytest.approx(.50108, abs=1e-4)  # the sheet's is alpha(q) at q = 4e-5
    late = multi_index("abs(z)", "gaussian:1/100").free_energy(alpha=1.5)
    assert (late["M11"], late["free_entropy"], late["information"]) == pytest.approx(
        (.9725301208913588, -.9051665162247953, 2.230636355908855), abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("q, alpha, psi", [(.2, .9768413299724963, -1.1773191699677714),
                                           (.6, 1.4908972433370915, -.951319004343035),
                                           (.8, 1.727993177449018, -.6479268750217843)])
def test_the_line_of_a_product(q, alpha, psi):
    """By sums over omega, log|y| and the hyperbola that converge to 1e-11; the sheet's slopes are off by up to 3e-4: it has
    .9768304, 1.4905805 and 1.7275983, and its Psi is off by 2e-7.
    """
    theory, M = multi_index("z1*z2"), q*np.eye(2)
    assert q/(1 - q)/theory.evolution.F_within(M)[0, 0] == pytest.approx(alpha, rel=1e-6)
    gain = theory._gain(M)
    assert gain.value == pytest.approx(psi + 1.20409843127, abs=max(1e-8, gain.error))
    found = theory.solve(alpha=alpha)
    assert found["M11"] == pytest.approx(q, abs=1e-6) and found.error < 1e-6


# -- B2 ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target, alpha, overlap", [
    ("abs(z)", [.65, 1.25, 2], [.06477554549621552, .34786526631141185, .6388812781129424]),
    ("z1*z2", [.55, .6, .65, .75, 1.25, 1.5, 3, 5],
     [0, .001986785031050002, .018241885635686052, .05205414560435472, .2227821356180063, .30046481193824087, .6116839570227884,
      .7789063290686684]),
    ("sign(z1*z2)", [2.5, 3, 4, 6, 10], [.013108290806208562, .18950349093469848, .4292036732051117, .6617525579462185,
                                         .8205979972881821])])
def test_overlaps_of_the_optimal_map(target, alpha, overlap):
    assert spectral(target).solve(alpha=alpha)["squared_overlap"] == pytest.approx(overlap, abs=5e-11)


@pytest.mark.parametrize("asked, slope", [
    (("abs(z)",), .4), (("z**2", "gaussian:1"), .285383421658793), (("z1*z2",), .317026359859593)])
def test_how_the_overlap_begins(asked, slope):
    theory = spectral(*asked)
    h = 1e-4*theory.alpha_c
    R = theory.solve(alpha=theory.alpha_c + h*np.array([1, 2, 3]))["squared_overlap"]
    assert (3*R[0] - 1.5*R[1] + R[2]/3)/h == pytest.approx(slope, abs=1e-9)


# -- B3 ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", _rest_slow(KNOWN["B3_times"], 3), ids=lambda r: f"{r['k']}, {r['gamma_1']}, {r['gamma_2']}")
def test_escape_times(row):
    at = {"dimension": [1e4, 1e5, 1e6], "gamma_1": row["gamma_1"], "gamma_2": row["gamma_2"]}
    found, plain = (_unit(row["k"]).escape_time(**at, preconditioned=p) for p in (True, False))
    assert found == pytest.approx(row["preconditioned"], rel=4e-8)  # the sheet's integration is to 3e-8
    assert plain == pytest.approx(row["plain"], rel=4e-8) and plain != pytest.approx(found, rel=1e-2)


@pytest.mark.parametrize("row", KNOWN["B3_local"], ids=lambda r: f"{r['k']}, {r['gamma_1']}, {r['gamma_2']}")
def test_local_slopes_of_escape_times(row):
    """log10 of T(d)/T(d/10); plain: to three tenths of the plateau's power of d."""
    theory, at = _unit(row["k"]), {n: row[n] for n in ("gamma_1", "gamma_2")}
    for d, slope in zip((1e6, 1e12, 1e18), row["slopes"], strict=True):
        low, high = theory.escape_time(dimension=[d/10, d], **at)
        assert np.log10(high/low) == pytest.approx(slope, abs=1e-12)
    low, high = (theory.escape_time(dimension=d, **at, preconditioned=False, level=.3*d**min(0, row["gamma_2"]/2 - row["gamma_1"]))
                 for d in (1e5, 1e6))
    assert (np.log10(high/low) if low else 0.0) == pytest.approx(row["plain"], abs=3e-9)  # 0: the start is beyond the level


# -- B4: m_2 by panels in z and h_0 with the formula of the sheet; its own .372550, -.008870, -.078583 are off by 2e-6 to 5e-6
@pytest.mark.slow
@pytest.mark.parametrize("g, loss, along, size, cosine", [
    ("tanh", "square", .3725452725031889, .47361, .54134), ("He3(z)/sqrt(6)", "square", -.008872510479482981, .51874, -.01232),
    ("He3", "correlation", -.07857762139442297, 4.05402, -.039026)])
def test_two_steps_at_eta_one(g, loss, along, size, cosine):
    found = batch_reuse("relu", g, loss).solve(alpha=3, eta=1)
    assert found["overlap"][1] == pytest.approx(along, abs=2e-10)
    assert (found["norm"][1]**2, found["cosine"][1]) == (pytest.approx(size, abs=5e-6), pytest.approx(cosine, abs=5e-6))


# -- B8, B7: the strength of the spike, the error without an outlier ---------------------------------------------------------
@pytest.mark.slow
def test_the_error_before_an_intermediate_step():
    wave = "sin(z) + 4*He2(z)/(5*sqrt(2)) + He3(z)/(2*sqrt(6))"
    found = hx.theories.random_features("tanh(z + 1)", wave).solve(alpha=1.5, gamma=1, lam=.1, Delta=.1)
    assert found["test_error"] == pytest.approx(1.213929867120441, rel=1e-13)


@pytest.mark.parametrize("g, at, theta", [("sin", dict(psi1=2, psi2=1, eta=2, Delta=.1), .9646100297346787),
                                          ("relu", dict(psi1=4, psi2=.8, eta=4, Delta=.1), 1.532327201324719),
                                          ("z", dict(psi1=1, psi2=1.5, eta=2, Delta=.2), 1.7968129135748976)])
def test_the_strength_of_the_spike_of_a_small_step(g, at, theta):
    assert small_step("tanh", g).solve(**at)["theta"] == pytest.approx(theta, rel=1e-12)
