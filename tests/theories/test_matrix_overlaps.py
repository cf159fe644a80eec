"""Overlaps that are full matrices, labels with curved borders, products: other routes, transitions, planted errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

import hermitex as hx
from hermitex.experiments.denoisers import AnyDenoiser, MonomialDenoiser, denoiser
from hermitex.kernels.normals import below_both
from hermitex.theories.overlaps.channel import FiniteOutput
from hermitex.theories.overlaps.discrete_labels import FibreOutput

COMMITTEE = "sign(z1) + sign(z2)"
M = np.array([[0.45, 0.2], [0.2, 0.35]])


def together(m):
    """F of z1 + z2 for sign(z1) + sign(z2), where nothing is known of z1 - z2: u = (z1 + z2)/sqrt 2 is seen through |w| < u."""
    v = 1 - m

    def chances(omega):
        def part(power):
            return quad(lambda u: norm.pdf(u, omega, np.sqrt(v))*(2*ndtr(u) - 1)*((u - omega)/v)**power, 0, 12, epsabs=1e-13)[0]
        return part(0), part(1)

    x, w = np.polynomial.hermite_e.hermegauss(60)
    table = np.array([chances(np.sqrt(m)*a) for a in x])
    (up, du), (down, dd) = table.T, table[::-1].T
    dd = -dd
    none, dn = 1 - up - down, -du - dd
    return float(np.sum(w/w.sum()*(du**2/up + dd**2/down + dn**2/none)))


# -- third routes -------------------------------------------------------------------------------------------------------
def test_a_committee_before_its_directions_separate():
    x = hx.theories.multi_index(COMMITTEE).evolution
    point = x.iterated(1.5)
    m = 2*point.x[0]
    assert point.x[0] == pytest.approx(point.x[1], abs=1e-9)
    assert m/(1 - m)/together(m) == pytest.approx(1.5, rel=1e-6)


def test_boxes_agree_with_nodes_over_the_plane():
    output = hx.theories.multi_index(COMMITTEE).output
    plain = FiniteOutput(output.grid, output.labels, r=2)
    assert output.second(M) == pytest.approx(plain.second(M), rel=1e-9)
    fibres = FibreOutput(output.grid, output.labels, of=lambda p: np.sign(p[0]) + np.sign(p[1]), levels=output.labels,
                         mixed=np.eye(3))
    assert output.second(M) == pytest.approx(fibres.second(M), rel=1e-8)


def test_two_normals_below_bounds():
    expected = quad(lambda x: norm.pdf(x)*ndtr((-0.4 - 0.7*x)/np.sqrt(1 - 0.49)), -12, 0.8, epsabs=1e-14)[0]
    assert below_both(np.array(0.8), np.array(-0.4), 0.7) == pytest.approx(expected, abs=1e-13)
    assert below_both(np.array(0.0), np.array(0.0), -0.3) == pytest.approx(0.25 + np.arcsin(-0.3)/(2*np.pi), abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("target", [COMMITTEE, "sign(z1*z2 - 1/2)", "sign(z1 + z2) + sign(z1)"])
def test_full_matrix_against_monte_carlo(target):
    rng = np.random.default_rng(5)
    g = {COMMITTEE: lambda a, b: np.sign(a) + np.sign(b), "sign(z1*z2 - 1/2)": lambda a, b: np.sign(a*b - 0.5),
         "sign(z1 + z2) + sign(z1)": lambda a, b: np.sign(a + b) + np.sign(a)}[target]
    n, V = 700, np.eye(2) - M
    omega = rng.multivariate_normal([0, 0], M, n)
    y = g(*(omega + rng.multivariate_normal([0, 0], V, n)).T)
    t = np.linspace(-5, 5, 100)
    grid = np.stack([a.ravel() for a in np.meshgrid(t, t*0.999, indexing="ij")])
    away = (np.linalg.cholesky(np.linalg.inv(V)).T @ (grid[:, None] - omega.T[:, :, None]).reshape(2, -1)).reshape(2, n, -1)
    weight = np.exp(-np.sum(away**2, axis=0)/2)*(g(*grid) == y[:, None])
    mean = weight @ grid.T/weight.sum(axis=1)[:, None]
    score = np.linalg.solve(V, (mean - omega).T)
    samples = np.array([score[0]**2, score[0]*score[1], score[1]**2])
    found = hx.theories.multi_index(target).output.second(M)
    error = samples.std(axis=1)/np.sqrt(n)
    assert np.all(np.abs(samples.mean(axis=1) - found[[0, 0, 1], [0, 1, 1]]) < 4*error)


@pytest.mark.parametrize(("target", "channel", "draw"), [
    ("z**2", "poisson", lambda z, rng: rng.poisson(z[0]**2)),
    ("Phi(z)", "bernoulli", lambda z, rng: rng.random(len(z[0])) < ndtr(z[0])),
    ("Phi(z1 + z2**2)", "bernoulli", lambda z, rng: rng.random(len(z[0])) < ndtr(z[0] + z[1]**2)),
])
def test_drawn_labels_against_monte_carlo(target, channel, draw):
    """E g_out (z - omega)^T V^{-1} = E g_out g_out^T = F for labels that are drawn."""
    rng, n, v = np.random.default_rng(7), 1500, 0.6
    output = hx.theories.multi_index(target, channel).output
    omega = np.sqrt(1 - v)*rng.standard_normal((n, output.r))
    z = omega + np.sqrt(v)*rng.standard_normal((n, output.r))
    g = output.g_out(draw(z.T, rng).astype(float), omega, v*np.eye(output.r))
    F = output.second((1 - v)*np.eye(output.r))
    for samples in (np.einsum("ni,nj->nij", g, g), np.einsum("ni,nj->nij", g, z - omega)/v):
        assert np.all(np.abs(samples.mean(axis=0) - F) < 4*samples.std(axis=0)/np.sqrt(n) + 1e-12)


def test_the_error_of_a_classifier_with_curved_borders_says_how_well_it_is_known():
    """Its own borders, where both labels are as likely, lie between the nodes of the fields: off by 6e-5, and nothing said so."""
    of = hx.theories.multi_index("sign(z1*z2 - 1/2)").generalisation
    M = 0.1 + 0.3*np.eye(2)
    assert abs(of(M) - 0.188903) < of.doubt(M) < 1e-3 and of.doubt(np.eye(2)) == 0


# -- transitions --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_where_the_directions_of_a_committee_separate():
    theory = hx.theories.multi_index(COMMITTEE)
    found = theory.transitions()
    (alpha, names), = found.stages
    assert found.weak_recovery == 0
    assert names == ("M11/2 + M22/2 - M12",)
    assert alpha == pytest.approx(2.0523824, abs=1e-6)
    assert alpha > 1.43083366  # what perfect knowledge of z1 + z2 would need
    for factor, grows in ((0.98, False), (1.02, True)):  # by the map itself
        x = theory.evolution.iterated(alpha*factor).x*0 + theory.solve(alpha=0.98*alpha)["M11"]
        gap = [1e-4]
        x = x + np.array([gap[0]/2, -gap[0]/2])
        for _ in range(60):
            x = theory.evolution.step(x, alpha*factor)
            gap.append(x[0] - x[1])
        assert (gap[-1] > gap[30]) == grows
    assert theory.solve(alpha=2.02)["M12"] == pytest.approx(theory.solve(alpha=2.02)["M11"], abs=1e-9)
    above = theory.solve(alpha=2.5)
    assert above["M11"] - above["M12"] > 0.1
    other = theory.evolution.iterated(2.5, informed=True).x
    assert [above["M11"], above["M12"]] == pytest.approx(other, abs=1e-7)


@pytest.mark.slow
def test_where_directions_separate_by_the_plain_map():
    """The second stage of sign(z1 z2 - 1): M11 = M12 attracts below it and not above."""
    theory, stage = hx.theories.multi_index("sign(z1*z2 - 1)"), 10.755832
    ev = theory.evolution
    for factor, grows in ((0.97, False), (1.03, True)):
        x = np.array([0.45, 0.45])
        for _ in range(12):
            x = ev.step(x, stage*factor)
            x[:] = x.mean()
        x = x + np.array([1e-3, -1e-3])
        gaps = [2e-3]
        for _ in range(12):
            x = ev.step(x, stage*factor)
            gaps.append(x[0] - x[1])
        assert (gaps[-1] > gaps[-2]) == grows


def test_weak_recovery_through_curved_borders():
    """P(y) and E[z1^2 - 1; y] of a disc: alpha_c = 1/sum_y E[z1^2 - 1; y]^2/P(y)."""
    inside = 1 - np.exp(-0.5)
    moment = quad(lambda s: (s - 2)/2*np.exp(-s/2)/2, 0, 1)[0]
    expected = 1/(moment**2/inside + moment**2/(1 - inside))
    line = hx.theories.multi_index("sign(z1**2 + z2**2 - 1)").evolution.line(np.zeros(1), 0)
    assert line.threshold == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("target", "channel"), [("z1*z2*z3", None), ("z1*z2", None), ("z1*z2", "multiplicative"),
                                                 ("z1*z2", "random_sign"), ("sign(z1*z2)", "flip:1/10")])
def test_weak_recovery_is_that_of_the_exponents(target, channel):
    line = hx.theories.multi_index(target, channel).evolution.line(np.zeros(1), 0)
    assert line.threshold == pytest.approx(hx.exponents(target, channel).weak_recovery["alpha_c"], rel=1e-6)


def test_a_curved_label_with_flips_is_where_the_plain_map_ends():
    """A step of a sum of a field and a step: no F(M) there is exact, and a branch of it was refused."""
    theory = hx.theories.multi_index("sign(z1 + sign(z2))", "flip:1/10")
    x = theory.solve(alpha=2.5)
    M = 1e-3*np.eye(2)
    for _ in range(60):
        Mhat = 2.5*theory.output.second(M)
        M = np.linalg.solve(np.eye(2) + Mhat, Mhat)
    assert x.converged and [x["M11"], x["M12"], x["M22"]] == pytest.approx(M[[0, 0, 1], [0, 1, 1]], abs=1e-8)


# -- products -----------------------------------------------------------------------------------------------------------
def test_a_product_is_its_bins():
    from hermitex.symbols import z1, z2
    from hermitex.theories.overlaps.bins import BinnedOutput

    both = hx.theories.multi_index("z1*z2").output, BinnedOutput.of(z1*z2, (z1, z2))
    first, second = (o.second(0.5*np.eye(2))[0, 0] for o in both)
    assert first == pytest.approx(second, rel=2e-4)
    y, omega, V = np.array([0.7, -0.3]), np.array([[0.4, 1.0], [-0.5, 0.3]]), 0.5*np.eye(2)
    factors, bins = (d(omega, V)[0] for d in (MonomialDenoiser(both[0], y), AnyDenoiser(both[1], y, full=True)))
    assert factors == pytest.approx(bins, abs=1e-2)


def test_gate_function_of_three_factors():
    theory = hx.theories.multi_index("z1*z2*z3")
    y, omega, v = 0.6, np.array([0.5, -0.8, 0.3]), 0.6
    u = np.linspace(-16, 2.2, 900)
    x = np.concatenate([-np.exp(u[::-1]), np.exp(u)])
    p = [np.exp(-(x - o)**2/(2*v))*np.abs(x) for o in omega[:2]]
    over = np.multiply.outer(x, x)
    W = p[0][:, None]*p[1]/np.abs(over)*np.exp(-(y/over - omega[2])**2/(2*v))
    mean = np.array([W.sum(axis=1) @ x, W.sum(axis=0) @ x, (W*y/over).sum()])/W.sum()
    found = denoiser(theory, np.array([y]))(omega[None], v*np.eye(3))[0][0]
    assert found == pytest.approx((mean - omega)/v, rel=1e-5)


def test_gate_function_of_a_product_under_multiplicative_noise():
    """y = z1 z2 xi: the posterior of (z1, z2) by nodes in log|z_i|, with a normal law of width |z1 z2|."""
    theory = hx.theories.multi_index("z1*z2", "multiplicative")
    y, omega, v = -0.6, np.array([0.5, -0.8]), np.array([0.6, 0.3])
    u = np.linspace(-16, 2.2, 900)
    x = np.concatenate([-np.exp(u[::-1]), np.exp(u)])
    p = [np.exp(-(x - o)**2/(2*s))*np.abs(x) for o, s in zip(omega, v, strict=True)]
    size = np.abs(np.multiply.outer(x, x))
    W = p[0][:, None]*p[1]*np.exp(-(y/size)**2/2)/size
    mean = np.array([W.sum(axis=1) @ x, W.sum(axis=0) @ x])/W.sum()
    g, slopes = denoiser(theory, np.array([y]))(omega[None], np.diag(v))
    assert g[0] == pytest.approx((mean - omega)/v, rel=1e-6)
    away = np.array([((x - m)**2) @ W.sum(axis=a) for m, a in zip(mean, (1, 0), strict=True)])/W.sum()
    assert np.diag(slopes[0]) == pytest.approx(away/v**2 - 1/v, rel=1e-5)


def test_a_lost_sign_is_noticed():
    signed, lost = (hx.theories.multi_index("z1*z2", c).output.second(0.3*np.eye(2))[0, 0] for c in (None, "random_sign"))
    assert signed > 1.5*lost


def test_three_factors_turn_before_they_leave_zero():
    """alpha(q) falls below alpha_c at small overlaps: a transition that is barely discontinuous."""
    theory = hx.theories.multi_index("z1*z2*z3")
    alpha = [q/(1 - q)/theory.output.second(q*np.eye(3))[0, 0] for q in (1e-4, 0.027, 0.1)]
    assert alpha[1] < alpha[0] - 0.01 < alpha[2]
    finer = 0.027/0.973/theory.output.second(0.027*np.eye(3), 0.6)[0, 0]
    assert finer == pytest.approx(alpha[1], rel=1e-8)


# -- equality of products -----------------------------------------------------------------------------------------------
def test_curve_and_solution_agree():
    theory = hx.theories.multi_index("sign(z1*z2) + sign(z1)")
    curve = theory.curve([0.7, 1.9])
    assert curve["M22"].tolist() == theory.solve(alpha=[0.7, 1.9])["M22"].tolist()
    assert curve.all_converged


@pytest.mark.parametrize(("target", "exact"), [("sign(z1*z2) + sign(z1)", "M11"), ("sign(z1 + z2)", "M12")])
def test_the_picture_shows_overlaps_and_where_they_change(target, exact):
    curve = hx.theories.multi_index(target).curve([0.5, 1.5, 2.5])
    ax = curve.plot()
    assert ax.get_ylabel() == "overlap"
    label = f"M_{{{exact[1:]}}}"
    drawn = next(line for line in ax.lines if label in str(line.get_label()))
    assert drawn.get_ydata() == pytest.approx(curve[exact])
    assert "test error" in curve.plot(quantity="test_error").get_ylabel()


@pytest.mark.parametrize(("target", "channel", "rel"), [("z", "multiplicative", 1e-8), ("z**2", "multiplicative", 1e-8),
                                                        ("z**2", "poisson", 1e-8), ("Phi(z**2 - 1)", "bernoulli", 1e-8)])
def test_drawn_labels_leave_zero_where_the_exponents_say(target, channel, rel):
    line = hx.theories.multi_index(target, channel).evolution.line(np.zeros(1), 0)
    assert line.threshold == pytest.approx(hx.exponents(target, channel).weak_recovery["alpha_c"], rel=rel)


def test_what_multiplies_several_variables_is_refused_unless_a_product():
    with pytest.raises(hx.errors.NoClosedForm, match="one variable, or a product"):
        hx.theories.multi_index("z1**2 + z2", "multiplicative").solve(alpha=1)


@pytest.mark.slow
def test_amp_at_finite_size_has_the_full_matrix():
    from hermitex.experiments.amp import simulate

    theory = hx.theories.multi_index(COMMITTEE)
    measured, expected = simulate(theory, [1.5], dimension=400, seeds=6), theory.solve(alpha=1.5)
    for name in ("M11", "M12", "M22"):
        assert abs(measured[name][0] - expected[name]) < 4*measured.standard_error[name][0] + 2e-3
