"""The Bayes free entropy: the sheet's values, closed forms of Psi, its slope, the alphas at which the optimum jumps, channels."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from hermitex.errors import BadInput, NoClosedForm, UnknownName
from hermitex.theories import multi_index
from hermitex.theories.overlaps.free_entropy import entropic, gain_of_labels, label_entropy

# theory sheet multi_index_2, B1
INFORMATION = {.5: .32166580761133445, 1: .5964412556889797, 2: 1.0310381559104194, 3: 1.3558882010908717, 6: 1.9878633113726858,
               10: 2.483752374312534}
GAINS = [("abs(z)", .75, .000827422904, .167615467), ("relu(z)", 1, .200488752751, .692793912),
         ("relu(z)", 1.8, .8271021222, .983406), ("sign(z1*z2)", 4, .057621131194, .643841115)]


def _mean(f):
    return quad(lambda x: f(x)*norm.pdf(x), -9, 9, epsabs=1e-13, limit=200)[0]


def _entropy(p):
    return sum(x*np.log(x) for x in (p, 1 - p) if x > 0)


def test_the_information_of_signs():
    found = multi_index("sign(z)").free_energy(alpha=list(INFORMATION))
    assert found["information"] == pytest.approx(list(INFORMATION.values()), abs=2e-11)
    assert found["free_entropy"] == pytest.approx(-found["information"], abs=1e-12)
    assert found["M11"] == pytest.approx(multi_index("sign(z)").solve(alpha=list(INFORMATION))["M11"], abs=1e-12)


@pytest.mark.parametrize("target, alpha, gain, q", GAINS)
def test_gains_of_the_sheet(target, alpha, gain, q):
    found = multi_index(target).free_energy(alpha=alpha)
    assert (found["gain"], found["M11"]) == (pytest.approx(gain, abs=6e-10), pytest.approx(q, abs=4e-6))


def test_parity_of_three_lies_on_the_informed_branch():
    found = multi_index("sign(z1*z2*z3)").free_energy(alpha=12)
    assert found["information"] == pytest.approx(7.492859836411647, abs=1e-9) and found.branch == "informed"
    assert found["information"] < 12*np.log(2)
    before = multi_index("sign(z1*z2*z3)").free_energy(alpha=9.4)
    assert before["gain"] == 0 and before.branch == "uninformed"


@pytest.mark.parametrize("alpha, q, Phi, information", [
    (1.0, .43703098624, -.7930058917474441, 1.676652451536817),
    pytest.param(2.0, .98836089435, -.696181740541125, 2.463474860119871, marks=pytest.mark.slow)])
def test_a_size_with_noise(alpha, q, Phi, information):
    found = multi_index("abs(z)", "gaussian:1/100").free_energy(alpha=alpha)
    assert found["M11"] == pytest.approx(q, abs=2e-8)
    assert (found["free_entropy"], found["information"]) == pytest.approx((Phi, information), abs=1e-9)


@pytest.mark.parametrize("psi, target, channel, alpha", [
    (lambda q: _mean(lambda x: _entropy(norm.cdf(x*np.sqrt(q/(1 - q))))), "sign(z)", None, 1.5),
    (lambda q: -np.log(2*np.pi*np.e*(1 - q + .3))/2, "z", "gaussian:3/10", 1.7),
    (lambda q: _mean(lambda x: _entropy(.1 + .8*norm.cdf(x*np.sqrt(q/(1 - q))))), "sign(z)", "flip:1/10", 2.0)])
def test_the_maximum_over_a_closed_form(psi, target, channel, alpha):
    """Third route: f with Psi as a formula, maximised over q; the information with the labels' own entropy."""
    best = minimize_scalar(lambda q: -((q + np.log(1 - q))/2 + alpha*psi(q)), bounds=(1e-6, .9999), method="bounded",
                           options={"xatol": 1e-9})
    found = multi_index(target, channel).free_energy(alpha=alpha)
    assert found["free_entropy"] == pytest.approx(-best.fun, abs=1e-10) and found["M11"] == pytest.approx(best.x, abs=1e-4)
    known = {None: 0.0, "gaussian:3/10": -np.log(2*np.pi*np.e*.3)/2, "flip:1/10": _entropy(.1)}[channel]
    assert found["information"] == pytest.approx(alpha*known + best.fun, abs=1e-10)


def test_relu_has_an_atom_and_a_density():
    """Psi(q) of the sheet: a density on y > 0, an atom at 0."""
    def psi(q):
        V = 1 - q

        def at(x):
            t = x*np.sqrt(q/V)
            P = norm.cdf(t)
            return -np.log(2*np.pi*V)/2*P - (P - t*norm.pdf(t))/2 + norm.cdf(-t)*norm.logcdf(-t)
        return _mean(at)

    theory = multi_index("relu(z)")
    assert label_entropy(theory.observed) == pytest.approx(psi(0), abs=1e-12) and psi(0) == pytest.approx(-1.056042857, abs=5e-10)
    for q in (0.1, 0.69, 0.95):
        gain = gain_of_labels(theory.evolution.F_within, q*np.eye(1), 1e-11)
        assert gain.value == pytest.approx(psi(q) - psi(0), abs=1e-9) and gain.error < 1e-10
        assert gain.value != pytest.approx(psi(q*0.99) - psi(0), abs=1e-4)


def test_the_slope_in_alpha_is_the_mean_logarithm_of_the_predictive_law():
    """dPhi/dalpha = Psi(M*), though M* moves; and f is largest there."""
    theory, h = multi_index("sign(z1*z2)"), 1e-3
    low, here, high = (theory.free_energy(alpha=a) for a in (4 - h, 4, 4 + h))
    M = here["M11"]*np.eye(2)
    slope = (high["free_entropy"] - low["free_entropy"])/(2*h)
    gain = gain_of_labels(theory.evolution.F_within, M, 1e-11).value
    assert slope == pytest.approx(-np.log(2) + gain, abs=1e-7)
    for other in (0.95, 1.05):
        assert 4*gain_of_labels(theory.evolution.F_within, other*M, 1e-11).value + entropic(other*M) < here["gain"] - 1e-4


@pytest.mark.parametrize("target, channel, found", [
    ("abs(z)", None, 1.0), ("z**2", None, 1.0), ("relu(z)", None, None), ("sign(z)", None, None), ("sign(z1*z2)", None, None),
    ("sign(z1*z2*z3)", None, 9.567058941692029), ("z**2*exp(-z**2)", None, 1.0),
    pytest.param("abs(z)", "gaussian:1/200", None, marks=pytest.mark.slow),
    pytest.param("abs(z)", "gaussian:1/1000", 1.130193228718825, marks=pytest.mark.slow),
    pytest.param("z1*z2", None, None, marks=pytest.mark.slow)])
def test_where_the_optimal_overlap_jumps(target, channel, found):
    moved = multi_index(target, channel).transitions()["alpha_IT"]
    assert moved is None if found is None else moved == pytest.approx(found, rel=3e-8)


@pytest.mark.parametrize("channel, turn, q", [("deterministic", 8.719833172446, .82903478), ("flip:1/10", 15.1823796, .77887)])
def test_where_the_informed_branch_of_a_parity_begins(channel, turn, q):
    """Independently by the trapezoidal rule in three fields; on either side the informed start ends at zero and above it."""
    theory = multi_index("sign(z1*z2*z3)", channel)
    (alpha, M11, name), = theory.transitions().spinodals
    assert (alpha, M11, name) == (pytest.approx(turn, rel=2e-9), pytest.approx(q, abs=1e-5), "M11")
    below, above = (theory.solve(alpha=alpha*f, start="informed")["M11"] for f in (.995, 1.005))
    assert below == 0 and above > M11


def test_both_sides_of_a_jump_and_the_unbounded_free_entropy():
    theory = multi_index("sign(z1*z2*z3)")
    at = theory.transitions().alpha_IT
    low, high = (theory.free_energy(alpha=at*(1 + s*1e-6)) for s in (-1, 1))
    assert (low.branch, high.branch) == ("uninformed", "informed") and abs(high["gain"] - low["gain"]) < 1e-5
    assert high["M11"] == pytest.approx(.9294660164, abs=1e-5)
    size = multi_index("abs(z)").free_energy(alpha=[.99, 1.05])
    assert np.isfinite(size["free_entropy"][0]) and size["free_entropy"][1] == np.inf and size["M11"][1] == 1
    assert np.all(size["information"] == np.inf)


@pytest.mark.parametrize("channel, p", [("sign:1/4", lambda z: norm.cdf(2*z)), ("bernoulli", lambda z: norm.cdf(z))])
def test_labels_that_are_drawn(channel, p):
    """I/d = alpha [E log P(y|z) - E log P(y)] - gain, P(y|z) by quadrature; it grows slower than alpha."""
    theory = multi_index("Phi(z)" if channel == "bernoulli" else "z", channel)
    found = theory.free_energy(alpha=[.5, 1, 2])
    known, unknown = _mean(lambda z: _entropy(p(z))), -np.log(2)
    assert found["information"] == pytest.approx(np.array([.5, 1, 2])*(known - unknown) - found["gain"], abs=1e-9)
    assert np.all(np.diff(found["information"]) > 0) and found["information"][2] < 2*found["information"][1]


@pytest.mark.parametrize("target, channel, known", [
    ("abs(z)", "multiplicative", -np.log(2*np.pi*np.e)/2 + (np.euler_gamma + np.log(2))/2),  # minus E log|z|
    ("z**2", "poisson", None), ("sign(z)", "flip:1/10", .1*np.log(.1) + .9*np.log(.9))])
def test_what_a_known_field_leaves_of_the_label(target, channel, known):
    if known is None:  # sum_k P log P with its rate z^2, by quadrature
        from scipy.stats import poisson

        k = np.arange(400)
        known = 2*quad(lambda z: np.sum(poisson.pmf(k, z*z)*np.maximum(poisson.logpmf(k, z*z), -1e3))*norm.pdf(z), 0, 9,
                       epsabs=1e-12, limit=400)[0]
    found = multi_index(target, channel).free_energy(alpha=2.5)
    assert found["information"] == pytest.approx(2.5*known - found["free_entropy"], abs=1e-8) and found["information"] > 0


def test_what_is_refused():
    with pytest.raises(BadInput, match="alpha"):
        multi_index("sign(z)").free_energy(alpha=-1)
    with pytest.raises(UnknownName, match="alpha_IT"):
        multi_index("sign(z)").transitions()["alpha_it"]
    with pytest.raises(NoClosedForm, match="equal by symmetry"):
        multi_index("sign(z1) + 2*sign(z2)").optimal_jump()
