"""Ridge after a small and after an intermediate step: the sheet's numbers, random features, networks, teeth, bad input."""

import numpy as np
import pytest

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.experiments.statistics import agreement
from hermitex.theories import intermediate_step, random_features, small_step

# theory sheet multi_index_2, B8: clean test error after the step, and without one
SMALL = [("tanh", "sin", dict(psi1=2, psi2=1, alpha=1.5, lam=0.1, Delta=0.1, eta=2), 0.2677450245115235, 0.30891497676263713),
         ("tanh", "relu", dict(psi1=4, psi2=0.8, alpha=2, lam=0.1, Delta=0.1, eta=4), 0.4417093703133219, 0.49374414259669963),
         ("tanh", "z", dict(psi1=1, psi2=1.5, alpha=2, lam=0.05, Delta=0.2, eta=2), 0.2737503507625451, 0.3456300500889781)]
# B7, sigma = tanh(z + 1), g = sin z + .8 h_2 + .5 h_3
WAVE = "sin(z) + 4*He2(z)/(5*sqrt(2)) + He3(z)/(2*sqrt(6))"
INTERMEDIATE = {0.6: 1.1275105127326426, 0.8: 0.9993300472151864, 0.85: 0.9944168693595917}
AT = dict(psi1=2, psi2=1, alpha=1.5, lam=0.1, Delta=0.1)


@pytest.mark.parametrize("sigma, g, at, known, before", SMALL)
def test_the_small_step_of_the_sheet(sigma, g, at, known, before):
    found = small_step(sigma, g).risk(**{**at, "eta": [0, at["eta"]]})
    np.testing.assert_allclose(found["test_error"], [before, known], rtol=2e-11)
    np.testing.assert_allclose(found["test_error_noisy"] - found["test_error"], at["Delta"], rtol=1e-12)


def test_the_intermediate_steps_of_the_sheet():
    found = intermediate_step("tanh(z + 1)", WAVE).solve(s=list(INTERMEDIATE), **AT)
    np.testing.assert_allclose(found["test_error"], list(INTERMEDIATE.values()), rtol=2e-12)
    assert found["outliers"].tolist() == [1, 2, 3] and found["overlap"] == pytest.approx(0.3851180700780365, rel=1e-13)
    assert "infinitely strong" in found.notes[-1]


@pytest.mark.parametrize("sigma, g", [("tanh", "exp(z/2)"), ("relu", "z + He2(z)"), ("tanh(z + 1)", "relu"), ("erf", "sin")])
def test_without_a_step_they_are_random_features(sigma, g):
    """Test and training error, with a mean among the features and without."""
    found = small_step(sigma, g).risk(**{**AT, "psi2": 0.7, "eta": 0})
    plain = random_features(sigma, g).solve(alpha=1.5/0.7, gamma=1/0.7, lam=0.1, Delta=0.1)
    for name in ("test_error", "train_error"):
        assert found[name] == pytest.approx(plain[name], rel=1e-10), name
    wrong = random_features(sigma, g).solve(alpha=1.5, gamma=1/0.7, lam=0.1, Delta=0.1)  # n/d taken for n/N
    assert abs(wrong["test_error"] - found["test_error"]) > 1e-3


def test_only_the_powers_that_an_activation_shows_are_fitted():
    odd, all_of_them = (intermediate_step(s, WAVE) for s in ("tanh", "tanh(z + 1)"))
    assert odd.visible(0.85) == (1, 3) and all_of_them.visible(0.85) == (0, 1, 2, 3)
    share = 0.4
    hats = [0, np.exp(-0.5), 0.8, 0.5 - np.exp(-0.5)/np.sqrt(6)]
    assert all_of_them.fitted((0, 1, 2, 3), share) == pytest.approx(sum(h**2*share**k for k, h in enumerate(hats)), rel=1e-13)
    assert odd.fitted((1, 3), share) == pytest.approx(hats[1]**2*share + hats[3]**2*share**3, rel=1e-13)
    # kappa^2 without a constant: <h, kappa^2>^2/E kappa^4
    assert odd.fitted((1, 2), share) == pytest.approx(hats[1]**2*share + (np.sqrt(2)*hats[2]*share)**2/3, rel=1e-13)
    steps = odd.solve(s=[0.6, 0.8, 0.85], **AT)
    assert steps["outliers"].tolist() == [1, 1, 2] and steps["test_error"][1] == steps["test_error"][0] > steps["test_error"][2]


def test_curves_derivatives_and_the_best_step():
    theory = small_step("erf", "sin")
    line = theory.ridge.curve(alpha=[0.5, 1, 2], **{n: v for n, v in AT.items() if n != "alpha"}, eta=1)
    assert line.converged.all() and line.ratio == "n/d" and line.plot().get_xlabel()
    near = theory.risk(eta=[1.999, 2.001], **AT)["test_error"]
    assert theory.risk(eta=2, **AT).derivative("eta")["test_error"] == pytest.approx((near[1] - near[0])/2e-3, rel=1e-5)
    best = theory.ridge.minimise("test_error", over="eta", bounds=(0.01, 100), **AT)
    assert best["test_error"] <= theory.risk(eta=np.geomspace(0.01, 100, 60), **AT)["test_error"].min()


@pytest.mark.slow
@pytest.mark.parametrize("theory, numbers, without", [
    *((lambda f=f: small_step(*f[:2]).ridge, f[2], f[4]) for f in SMALL),
    (lambda: intermediate_step("tanh(z + 1)", WAVE), AT | {"s": 0.8}, 1.2139296),
    (lambda: intermediate_step("tanh", "sin"), AT | {"s": 0.86}, 0.3089150)])
def test_networks_agree_within_three_standard_errors(theory, numbers, without):
    """Fresh seeds; a step that was left out is outside of the same interval."""
    made, numbers = theory(), dict(numbers)
    found = hx.curve(made, [numbers.pop("alpha")], simulate={"dimension": 400, "seeds": range(100, 112)}, **numbers)
    assert agreement(found, found.simulation).worst() < 3
    assert without - found.simulation.test_error[0] > 3*found.simulation.standard_error["test_error"][0]


@pytest.mark.parametrize("ask, word", [
    (lambda: small_step("tanh", "sin").risk(psi1=2, psi2=1, alpha=1, lam=0, eta=1), "lam must be positive"),
    (lambda: small_step("tanh", "sin").risk(psi1=2, psi2=1, lam=0.1, eta=1), "alpha"),
    (lambda: intermediate_step("tanh", "sin").solve(s=0.4, **AT), "between 1/2 and 1"),
    (lambda: intermediate_step("tanh", "sin").solve(s=0.75, **AT), "about to appear"),
    (lambda: intermediate_step("tanh", "sin").solve(s=0.999, **AT), "take s below"),
    (lambda: hx.curve(small_step("tanh", "sin").ridge, [1], simulate=True, psi1=np.inf, psi2=1, lam=0.1, eta=1), "finite numbers"),
    (lambda: intermediate_step("He2", "sin"), "no linear part"), (lambda: intermediate_step("tanh", "exp(z**2)"), "square")])
def test_bad_input_is_one_line(ask, word):
    with pytest.raises(BadInput, match=word) as caught:
        ask()
    assert "\n" not in str(caught.value)
