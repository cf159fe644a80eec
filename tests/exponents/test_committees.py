"""1/alpha_c = E[s^2] given the mean direction, s = (E[sum z_i^2 | Y, u] - u^2)/(K - 1) - 1: committees and symmetric sums."""

import numpy as np
import pytest
from scipy.special import erf, wofz
from sympy import S

import hermitex as hx
from hermitex import parse
from hermitex.exponents.channels import channel
from hermitex.exponents.laws import committee_laws
from hermitex.exponents.laws.committee_laws import committee, one, panels, plus
from hermitex.exponents.thresholds import weak_recovery
from hermitex.symbolic.subspaces import matrix
from hermitex.symbols import normals


def given_mean(text, row=None):
    g = parse(text)
    variables = list(normals(g))
    found = committee(g, variables, matrix([row or [1] * len(variables)], len(variables)))
    return None if found is None else 1 / found[0]


def second_stage(text, law="deterministic"):
    """alpha_c of what is orthogonal to the mean, by whatever mechanism applies."""
    return float(hx.exponents(text, law).threshold.stages[-1]["alpha_c"])


def summed(f, count):
    return " + ".join(f.replace("z", f"z{i + 1}") for i in range(count))


# -- reference values --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("count", "expected"), [(2, 1.43083366052167), (3, 4.05122860192)])
def test_published_committees(count, expected):
    assert given_mean(summed("sign(z)", count)) == pytest.approx(expected, rel=2e-12)


def test_two_relu_agree_with_the_average_over_sections():
    """One hidden direction is also done by averaging over u: 0.533993770187."""
    assert given_mean(summed("relu(z)", 2)) == pytest.approx(0.533993770187, rel=1e-11)


# -- third routes ------------------------------------------------------------------------------------------------------
def test_four_signs_by_characteristic_functions():
    """p_n(s) from the Fourier transform of psi^n conj(psi)^(4 - n), psi(t) = E[exp(i t z) 1{z > 0}] = w(t/sqrt(2))/2."""
    t = np.arange(-4000, 4000) * 0.08
    w = wofz(t / np.sqrt(2) + 0j)
    first = (-2 * t / np.sqrt(2) * w + 2j / np.sqrt(np.pi)) / np.sqrt(2)
    second = -w - t * first  # w'' in t: w' = -t w + const
    up, square = w / 2, -second / 2
    s = np.linspace(-14, 14, 561)
    back = np.exp(-1j * np.outer(s, t)) * 0.08 / (2 * np.pi)
    inverse = 0.0
    for n in range(5):
        ways = [1, 4, 6, 4, 1][n]
        down, m = np.conj(up), 4 - n
        p = (back @ (up**n * down**m)).real
        terms = n * square * up ** max(n - 1, 0) * down**m + m * np.conj(square) * up**n * down ** max(m - 1, 0)
        q = (back @ terms).real
        live = p > 1e-6
        scalar = (q[live] / p[live] - s[live] ** 2 / 4) / 3 - 1
        inverse += ways * np.sum(p[live] * scalar**2) * 0.05
    assert given_mean(summed("sign(z)", 4)) == pytest.approx(1 / inverse, rel=2e-3)


def test_three_relu_by_closed_densities():
    """(P, N) = the sums of the positive and of the negative parts: half-normal densities in closed form."""
    x, w = np.polynomial.legendre.leggauss(60)
    x, w = 6.5 * (1 + x), 6.5 * w

    def phi(v):
        return np.exp(-v * v / 2) / np.sqrt(2 * np.pi)

    p1, p2 = phi(x), phi(x / np.sqrt(2)) / np.sqrt(2) * erf(x / 2)
    # Given z1 + z2 = x, z1 - z2 = d is normal of variance 2 held to |d| < x.
    kept = 2 * (1 - x * np.exp(-x * x / 4) / (np.sqrt(np.pi) * erf(x / 2)))
    q1, q2 = x * x * p1, p2 * (x * x + kept) / 2
    # One positive and two positive lie on the same quadrant of (P, N).
    p = 3 * (np.outer(p1, p2) + np.outer(p2, p1))
    q = 3 * (np.outer(q1, p2) + np.outer(p1, q2) + np.outer(q2, p1) + np.outer(p2, q1))
    s = x[:, None] - x
    total = np.sum(np.outer(w, w) * p * ((q / p - s**2 / 3) / 2 - 1) ** 2)
    # All of one sign: a line, p_3 = p_2 * p_1.
    y, v = np.polynomial.legendre.leggauss(40)
    for point, weight in zip(x, w, strict=True):
        a = point * (1 + y) / 2
        b = point - a
        d2 = phi(a / np.sqrt(2)) / np.sqrt(2) * erf(a / 2)
        k2 = 2 * (1 - a * np.exp(-a * a / 4) / (np.sqrt(np.pi) * erf(a / 2)))
        p3 = np.sum(v * d2 * phi(b)) * point / 2
        q3 = np.sum(v * d2 * phi(b) * ((a * a + k2) / 2 + b * b)) * point / 2
        total += 2 * weight * p3 * ((q3 / p3 - point**2 / 3) / 2 - 1) ** 2
    assert given_mean(summed("relu(z)", 3)) == pytest.approx(1 / total, rel=1e-10)


# -- identities --------------------------------------------------------------------------------------------------------
def test_sums_keep_masses_and_squares():
    half = one(0.0, np.inf)
    law = half
    for count in range(2, 6):
        law = plus(law, half)
        s, w = panels(law.breaks())
        assert law.density(s) @ w == pytest.approx([2.0**-count, count * 2.0**-count], abs=4e-15)


def test_equivalent_targets():
    """A known sum, signs of the variables, a scale, and injective functions change nothing."""
    relu = given_mean(summed("relu(z)", 3))
    assert given_mean(summed("abs(z)/2 + z", 3)) == pytest.approx(relu, rel=1e-13)
    assert given_mean(f"exp({summed('leaky_relu(z)', 3)})") == pytest.approx(relu, rel=1e-13)
    assert given_mean("relu(z1) + relu(-z2) + relu(z3)", row=[1, -1, 1]) == pytest.approx(relu, rel=1e-13)
    signs = given_mean(summed("sign(z)", 3))
    assert given_mean(summed("sign(z) + z", 3)) == pytest.approx(signs, rel=1e-12)


def test_noise_goes_to_none():
    full, majority = second_stage(summed("sign(z)", 3)), second_stage("sign(sign(z1) + sign(z2) + sign(z3))")
    assert second_stage(summed("sign(z)", 3), "gaussian:1/400") == pytest.approx(full, rel=1e-10)
    assert second_stage("sign(sign(z1) + sign(z2) + sign(z3))", "flip:1/1000000") == pytest.approx(majority, rel=1e-4)
    assert majority == pytest.approx(15.0091273871312, rel=1e-12) and majority > full  # less information is harder
    assert second_stage(summed("sign(z)", 3), "gaussian:1/4") == pytest.approx(4.38338437918786, rel=1e-12)


# -- errors that must be seen ------------------------------------------------------------------------------------------
def test_targets_that_are_not_symmetric_are_left_alone():
    assert given_mean("sign(z1) + sign(z2) + 2*sign(z3)") is None
    assert given_mean("relu(z1) + relu(z2) + abs(z3)") is None
    assert given_mean("sign(z1) + sign(z2)", row=[1, 2]) is None
    assert given_mean("sign(z1) - sign(z2)", row=[1, 1]) is None


def test_a_lost_mass_shows_in_the_error(monkeypatch):
    g = parse(summed("sign(z)", 3))
    monkeypatch.setattr(committee_laws, "_ways", lambda counts: 1)
    found = committee(g, list(normals(g)), matrix([[1, 1, 1]], 3))
    assert found[1] > 0.1


# -- the products agree ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [summed("sign(z)", 4), summed("relu(z)", 3)])
def test_stages(text):
    g = parse(text)
    count = len(normals(g))
    rows = [[1] * count, *([1] + [0] * k + [-1] + [0] * (count - k - 2) for k in range(count - 1))]
    found = weak_recovery(g, channel(), normals(g), stages=[{"order": 1, "directions": rows[:1]},
                                                                    {"order": 2, "directions": rows[1:]}])
    assert found.kind == "easy"
    assert float(found.alpha_c) == pytest.approx(given_mean(text), rel=1e-13)
    assert found.error < 1e-10


@pytest.mark.parametrize("text", ["tanh(z1) + tanh(z2)", "erf(z1) - erf(z2)", "exp(z1) + exp(z2)", "z1**3 + z2**3",
                                  "softplus(z1) + softplus(z2)"])
def test_two_terms_that_tell_the_difference(text):
    """(y, u) determine |z1 - z2|: exactly 1/2."""
    sign = -1 if " - " in text else 1
    found = weak_recovery(parse(text), channel(), normals(parse(text)), stages=[
        {"order": 1, "directions": [[1, sign]]}, {"order": 2, "directions": [[1, -sign]]}])
    assert found.exact == S.Half


def test_two_terms_that_do_not():
    """f' of a wave is not monotone: nothing exact is claimed."""
    assert not committee_laws.injective_pair(parse("sin(z1) + sin(z2)"), list(normals(parse("z1*z2"))), matrix([[1, 1]], 2))
