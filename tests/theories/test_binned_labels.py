"""State evolution of smooth labels of three variables through bins: closed forms, other routes, samples, planted errors."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import hermitex as hx
from hermitex.kernels.histogram import histogram, uniform_sums
from hermitex.symbolic.parsing import expression
from hermitex.symbols import z1, z2, z3
from hermitex.theories.overlaps.bins import BinnedOutput
from hermitex.theories.overlaps.channel import Output
from hermitex.theories.overlaps.overlap_frame import frame_of
from hermitex.theories.overlaps.overlap_space import OverlapSpace
from hermitex.theories.overlaps.state_evolution import StateEvolution

SWAPS = [np.eye(3)[list(p)] for p in permutations(range(3))]
CUBE = [P @ np.diag(s) for P in SWAPS for s in product((1.0, -1.0), repeat=3)]


def binned(target, even=(), odd=()):
    """A label of three variables through its bins, also where it has a shorter way."""
    return BinnedOutput.of(expression(target), (z1, z2, z3), even, odd)


# -- third routes -------------------------------------------------------------------------------------------------------
def radial(q):
    """F_11 of |z|^2 in three dimensions: the angle gives the Langevin function."""
    V = 1 - q
    x, w = np.polynomial.legendre.leggauss(160)
    r, o = 4.5*(x + 1), 4*np.sqrt(q)*(x + 1)
    R, W = np.meshgrid(r, o, indexing="ij")
    t = R*W/V
    p = R/W*np.exp(-(R - W)**2/(2*V))*-np.expm1(-2*t)/np.sqrt(2*np.pi*V)
    score = (R*(1/np.tanh(t) - 1/t) - W)/V
    field = 4*np.pi*W**2*np.exp(-W**2/(2*q))/(2*np.pi*q)**1.5
    return np.einsum("i,j,ij", 4.5*w, 4*np.sqrt(q)*w, p*field*score**2)/3


@pytest.mark.parametrize("q", [0.05, 0.4])
def test_a_radial_label_is_one_langevin_function(q):
    F = binned("z1**2 + z2**2 + z3**2", CUBE).second(q*np.eye(3))
    assert np.abs(F - radial(q)*np.eye(3)).max() < 2e-4*radial(q)


def test_a_linear_variable_is_noise():
    """In y = z1 z2 + z3 given omega, z3 is a Gaussian noise of variance V33."""
    noisy = hx.theories.multi_index("z1*z2", "gaussian:1/2").output.second(np.diag([0.4, 0.3]))
    F = binned("z1*z2 + z3").second(np.diag([0.4, 0.3, 0.5]))
    assert F[0, 0] == pytest.approx(noisy[0, 0], rel=2e-4)
    assert F[1, 1] == pytest.approx(noisy[1, 1], rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["max(z1, z2)", "tanh(z1) + z2"])
def test_bins_in_space_are_those_in_the_plane(target):
    M = np.zeros((3, 3))
    M[:2, :2] = [[0.4, 0.15], [0.15, 0.3]]
    exact = BinnedOutput.of(expression(target), (z1, z2)).second(M[:2, :2])
    F = binned(target).second(M)
    assert np.abs(F[:2, :2] - exact).max() < 5e-4
    assert np.abs(F[2]).max() < 1e-6


def largest(y, omega, V):
    """d log Z/domega of max(z1, z2, z3) at V = v 1."""
    s = np.sqrt(V)
    t = (y[:, None] - omega)/s
    below, density = ndtr(t), norm.pdf(t)/s
    others = np.stack([np.prod(np.delete(below, i, axis=1), axis=1) for i in range(3)], axis=1)
    Z = np.sum(density*others, axis=1)
    slope = density*t/s*others
    for i in range(3):
        for j in set(range(3)) - {i}:
            (k,) = set(range(3)) - {i, j}
            slope[:, i] -= density[:, j]*density[:, i]*below[:, k]
    return slope/Z[:, None]


@pytest.mark.slow
def test_a_maximum_of_three_against_its_closed_form():
    rng, v = np.random.default_rng(3), 0.55
    omega = np.sqrt(1 - v)*rng.standard_normal((200_000, 3))
    y = (omega + np.sqrt(v)*rng.standard_normal(omega.shape)).max(axis=1)
    score = largest(y, omega, v)
    output = binned("Max(z1, z2, z3)", SWAPS)
    F = output.second((1 - v)*np.eye(3))
    for i, j in ((0, 0), (0, 1)):
        samples = np.mean([score[:, a]*score[:, b] for a, b in product(range(3), repeat=2) if (a == b) == (i == j)], axis=0)
        assert abs(samples.mean() - F[i, j]) < 4*samples.std()/np.sqrt(len(samples)) + 3e-4
    near = output.g_out(y[:500], omega[:500], v*np.eye(3))
    assert np.sqrt(np.mean((near - score[:500])**2)) < 0.015*score[:500].std()


def test_three_factors_turn_before_they_leave_zero_by_another_route():
    """alpha(q) of z1 z2 z3 falls by 0.0117 below alpha_c = 2.56518: convolutions in log|y| and bins agree."""
    theory = hx.theories.multi_index("z1*z2*z3")
    other = binned("z1*z2*z3", theory.space.group, theory.space.odd)
    for q in (0.01, 0.027):
        M = q*np.eye(3)
        alpha, again = (q/(1 - q)/o.second(M)[0, 0] for o in (theory.output, other))
        assert again == pytest.approx(alpha, rel=2e-4)
        assert again < 2.56518 - 0.005


@pytest.mark.slow
def test_a_product_turns_at_a_smaller_alpha_than_it_leaves_zero():
    theory = hx.theories.multi_index("z1*z2*z3")
    found = theory.transitions()
    (alpha, q, name), = found.spinodals
    assert found.weak_recovery == pytest.approx(2.56518040193, abs=1e-5)
    assert (alpha, q, name) == (pytest.approx(2.55361, abs=1e-4), pytest.approx(0.0276, abs=1e-3), "M11")
    between = [theory.solve(alpha=2.56, start=s)["M11"] for s in ("uninformed", "informed")]
    assert between[0] == 0
    assert between[1] == pytest.approx(0.05478, abs=1e-4)


# -- fixed points -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_sum_of_three_is_solved_and_says_how_well():
    theory = hx.theories.multi_index("tanh(z1) + tanh(z2) + tanh(z3)")
    x = theory.solve(alpha=0.5)
    M = np.array([[x[f"M{min(i, j)}{max(i, j)}"] for j in (1, 2, 3)] for i in (1, 2, 3)])
    Mhat = 0.5*theory.output.second(M)
    assert np.linalg.solve(np.eye(3) + Mhat, Mhat) == pytest.approx(M, abs=1e-8)
    assert x["M12"] == pytest.approx(x["M11"], abs=1e-7)   # the sum alone is seen
    assert 0 < x.error < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("target", "known"), [("z1*z2 + z3", "M33"), ("relu(z1) + relu(z2) + relu(z3)", "M12")])
def test_three_variables_without_noise_along_alpha(target, known):
    curve = hx.theories.multi_index(target).curve([0.4, 0.8])
    assert curve.all_converged
    assert np.all(np.diff(curve[known]) > 0)
    assert np.all(np.diff(curve["test_error"]) < 0)


# -- frames, cells, branches --------------------------------------------------------------------------------------------
def test_half_of_the_fields_where_a_swap_is_a_reflection():
    frame = frame_of(np.array([[0.5, 0.2], [0.2, 0.5]]), [np.eye(2)[::-1]])
    assert frame.halved == (0,)
    assert frame.shown.tolist() == [[True, False], [False, True]]
    assert len(frame_of(0.3*np.eye(3), CUBE).halved) == 3
    assert frame_of(np.array([[0.5, 0.2], [0.2, 0.3]]), [np.eye(2)[::-1]]).halved == ()


def test_cells_hold_the_law_of_their_label():
    edges = np.linspace(-4, 4, 33)
    R = np.linalg.qr(np.array([[1.0, 2.0, 0.3], [0.2, 1.0, 1.0], [1.0, -1.0, 2.0]]))[0]
    table = histogram(lambda z: np.maximum(z[0], z[1]), R, [0.25]*3, edges)
    volume = np.prod(table.widths)
    for k in (10, 16, 20):
        density = np.exp(-np.sum(table.centres(k)**2, axis=1)/(2*(1 - 0.25**2/12)))/(2*np.pi*(1 - 0.25**2/12))**1.5
        found = volume*density @ table.rows(range(k, k + 1)).data
        assert found == pytest.approx(ndtr(edges[k])**2 - ndtr(edges[k - 1])**2, abs=1e-4)


def test_sums_of_uniform_variables():
    rng = np.random.default_rng(0)
    w = np.array([[1.0], [0.6], [0.1]])
    sums = (w*(rng.random((3, 100_000)) - 0.5)).sum(axis=0)
    for x in (-0.4, 0.1, 0.6):
        assert uniform_sums(np.array([x]), w)[0] == pytest.approx(np.mean(sums < x), abs=0.007)


def test_a_later_overlap_answers_beside_one_that_is_nearly_known():
    """z1 through little noise is nearly known when z2 leaves zero at alpha = 2.5: (1 + q2)/(1 - q2) = 0.4 alpha."""
    class Two(Output):
        r, quick = 2, True

        def second(self, M, fineness=1.0):
            return np.diag([1/(1 - M[0, 0] + 0.017), 0.4*M[1, 1]/(1 + M[1, 1])])

    found = StateEvolution(Two(), OverlapSpace(((0, 0), (1, 1)), np.array([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]))).solve(3.0)
    assert found.converged and found.residual < 1e-8
    assert found.x[1] == pytest.approx(0.2/2.2, abs=1e-7)
    assert found.x[0] > 0.99


# -- planted errors -----------------------------------------------------------------------------------------------------
def test_the_width_of_a_cell_is_noticed():
    """V in the place of V - h^2/12: the chance of a bin is that of a label with more noise."""
    edges = np.linspace(-4, 4, 33)
    table = histogram(lambda z: np.maximum(z[0], z[1]), np.eye(3), [0.5]*3, edges)
    density = np.exp(-np.sum(table.centres(10)**2, axis=1)/2)/(2*np.pi)**1.5
    found = np.prod(table.widths)*density @ table.rows(range(10, 11)).data
    assert abs(found/(ndtr(edges[10])**2 - ndtr(edges[9])**2) - 1) > 0.01
