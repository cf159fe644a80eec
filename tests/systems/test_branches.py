"""System.branches: stable and unstable solutions of equations of the literature, named by what iteration reaches."""

import numpy as np
import pytest
from sympy import Eq, Rational, Symbol, exp, sqrt, symbols, tanh

from hermitex import E, System
from hermitex.errors import UnknownName

q, lamda, beta, tau, alpha, Delta = symbols("q lamda beta tau alpha Delta", positive=True)
m, mhat, h, z = symbols("m mhat h z", real=True)
MAGNET = System({m: tanh(beta*m + h)})
ENDS = {"informed": {"m": 1.0}, "uninformed": {"m": -1.0}}
HILL = System({q: lamda*q**2/(1 + lamda*q**2)})


def named(found, name, digits=6):
    return sorted((s.branch, round(float(s[name]), digits) + 0.0) for s in found)


def test_the_magnet_has_three():
    assert named(MAGNET.branches(ENDS, beta=2, h=0), "m") == [("informed", 0.957504), ("uninformed", -0.957504), ("unstable", 0.0)]
    assert named(MAGNET.branches(ENDS, beta=0.5, h=0), "m") == [("unique", 0.0)]


def test_along_a_parameter_each_branch_is_where_it_exists():
    up, down, zero = MAGNET.branches(ENDS, beta=np.array([0.5, 2.0, 3.0]), h=0)
    assert list(up.branch) == ["unique", "informed", "informed"] and list(down.branch) == ["unique", "uninformed", "uninformed"]
    assert up["m"][1:] == pytest.approx(-down["m"][1:]) and up["m"][1] > 0.9
    assert list(zero.branch) == ["", "unstable", "unstable"] and list(zero.converged) == [False, True, True]
    assert np.isnan(zero["m"][0]) and zero["m"][1:] == pytest.approx([0, 0]) and zero.stability[1:] == pytest.approx([2, 3])


def test_what_newton_finds_from_a_start_does_not_get_its_name():
    """0.001 ends at 0 by iteration; Newton's method from there ends at the unstable 0.1464."""
    found = HILL.branches({"informed": {"q": 1}, "uninformed": {"q": 0.001}}, lamda=8)
    by_value = {round(float(s["q"]), 4): s.branch for s in found}
    assert by_value == {0.8536: "informed", 0.1464: "unstable", 0.0: "uninformed"}
    assert any("q = 0: a boundary" in note for s in found if s["q"] == 0 for note in s.notes)


@pytest.mark.parametrize("domain", [{}, {q: (0, 1)}])
def test_hopfield_below_and_above_its_transitions(domain):
    """The retrieval state, the one that separates it, and no magnetisation at all, which rounding does not make several."""
    r, m = symbols("r m", positive=True)
    field = beta*(m + sqrt(alpha*r)*z)
    system = System({m: E(tanh(field), z), q: E(tanh(field)**2, z), r: q/(1 - beta*(1 - q))**2}, domain=domain)
    found = sorted([s["m"], s["q"]] for s in system.branches(alpha=0.05, beta=2))
    assert np.array(found) == pytest.approx(np.array([[0, 0.597391], [0.755119, 0.694320], [0.904106, 0.833358]]), abs=1e-6)
    (glass,) = system.branches(alpha=0.2, beta=2)
    assert glass["m"] == 0 and glass["q"] == pytest.approx(0.665036, abs=1e-6)
    cold = system.solve(alpha=0.05, beta=[0.5, 0.6, 2])
    assert list(cold["m"][:2]) == list(cold["q"][:2]) == [0, 0] and cold["m"][2] == pytest.approx(0.904106, abs=1e-6)


def test_a_start_at_zero_asks_at_the_boundary_first():
    at = HILL.solve(lamda=[0.5, 8, 20], start={"q": 0})
    assert list(at["q"]) == [0, 0, 0] and list(at.stability) == [0, 0, 0]
    assert HILL.solve(lamda=8)["q"] == pytest.approx(0.853553, abs=1e-6)
    # 0 solves q = tanh(2 q), but iteration leaves it; it does not solve q = tanh(2 q + 1)
    assert System({q: tanh(lamda*q)}).solve(lamda=2, start={"q": 0})["q"] == pytest.approx(0.957504, abs=1e-6)
    assert System({q: tanh(2*q + lamda)}).solve(lamda=1, start={"q": 0})["q"] == pytest.approx(0.994799, abs=1e-3)


def test_a_start_in_what_is_torn_out_counts_too():
    """The block is solved in one of its unknowns; a start in the other means the same."""
    system = System({m: tanh(mhat), mhat: 2*m})
    for name in ("m", "mhat"):
        found = system.branches({"up": {name: 0.01}, "down": {name: -0.01}})
        assert named(found, "m") == [("down", -0.957504), ("unstable", 0.0), ("up", 0.957504)]


def test_separate_blocks_combine():
    x, y = symbols("x y", real=True)
    found = System({x: tanh(2*x), y: tanh(3*y)}).branches({"up": {"x": 1, "y": 1}})
    assert len(found) == 9 and sum(s.branch == "unstable" for s in found) == 5 and sum(s.branch == "stable" for s in found) == 3
    assert found[0].branch == "up"


def test_implicit_equations_are_told_apart_by_newton():
    found = System({m: Eq(m**3 - m, h)}).branches(ENDS, h=0.1)
    assert named(found, "m", 4) == [("informed", 1.0467), ("other", -0.101), ("uninformed", -0.9456)]
    assert all(np.isnan(s.stability) for s in found)


def test_linear_systems_have_one():
    u, v = symbols("u v", real=True)
    (one,) = System({u: v/2 + 1, v: u/3}).branches({"start": {"u": 5}})
    assert one.branch == "unique" and one["u"] == pytest.approx(1.2)
    (away,) = System({u: 2*v + 1, v: 3*u}).branches({"start": {"u": 5}})
    assert away.branch == "unstable"


def test_an_unknown_name_in_a_start_is_named():
    with pytest.raises(UnknownName, match="mm"):
        MAGNET.branches({"informed": {"mm": 1}}, beta=1, h=0)


def bernoulli_gauss(density):
    """tau = Delta + mse(tau)/alpha: x is N(0, 1) with probability `density`, else 0, seen through N(0, tau)."""
    def posterior(y):
        return 1/(1 + (1 - density)/density*sqrt((1 + tau)/tau)*exp(-y**2/2*(1/tau - 1/(1 + tau))))*y/(1 + tau)

    seen = density*E(posterior(sqrt(1 + tau)*z)**2, z) + (1 - density)*E(posterior(sqrt(tau)*z)**2, z)
    return System({tau: Delta + (density - seen)/alpha})


def test_the_hard_phase_of_compressed_sensing():
    """Density 0.1 at alpha = 0.2, Delta = 1e-4; the three values by adaptive quadrature over y and bisection."""
    found = bernoulli_gauss(Rational(1, 10)).branches({"informed": {"tau": 2e-4}, "uninformed": {"tau": 1}}, alpha=0.2, Delta=1e-4)
    assert {s.branch: float(s["tau"]) for s in found} == pytest.approx(
        {"informed": 2.484758247e-4, "uninformed": 0.151035366964, "unstable": 0.0360987450283}, rel=1e-7)


@pytest.mark.parametrize("field", [0.0, 0.05, 0.5, 0.6])
def test_the_magnet_in_a_field(field):
    """Metastable below the coercive field 0.5328 at beta = 2, unique beyond."""
    found = MAGNET.branches(ENDS, beta=2, h=field)
    assert len(found) == (3 if field < 0.5328 else 1)
    for s in found:
        assert s.stability == pytest.approx(2*(1 - s["m"]**2)) and (s.branch == "unstable") == (s.stability > 1)


def test_without_names_the_stable_ones_are_called_so():
    found = MAGNET.branches(beta=2, h=0.1)
    assert sorted(s.branch for s in found) == ["stable", "stable", "unstable"]


def test_glassy_start_of_a_positive_unknown():
    """q = E tanh(beta sqrt(q) z)^2 at beta = 2: the solution above 0, whatever the start."""
    overlap = Symbol("q", positive=True)
    found = System({overlap: E(tanh(beta*sqrt(overlap)*z)**2, z)}).branches({"small": {"q": 1e-3}, "large": {"q": 1}}, beta=2)
    above = [s for s in found if s["q"] > 1e-3]
    assert len(above) == 1 and above[0]["q"] == pytest.approx(0.53036839, rel=1e-6) and above[0].stability < 1
    assert above[0].branch in ("unique", "small, large")
