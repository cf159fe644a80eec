"""r = t sigma_1 N_v, gamma = g_1/N_v, c = (1 + t sigma_2 Rbar)^2 + t^2 (R_2/alpha0) Var sigma', t = eta/beta."""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, oo, pi, sqrt

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.symbols import Delta, alpha0, beta, eta

spike = hx.theories.spike
ROWS = json.loads((Path(__file__).parents[1] / "reference" / "one_step_result31.json").read_text())["rows"]


def at(row):
    return {"alpha0": row["alpha0"], "eta": row["etat"], "beta": row["beta"], "Delta": row["Delta"]}


@pytest.mark.parametrize("row", ROWS, ids=lambda x: f"{x['sigma']}-{x['g']}")
def test_the_reference_values(row):
    found = spike(row["sigma"], row["g"])(**at(row))
    assert found._asdict() == pytest.approx({k: row[k] for k in ("r", "c", "gamma")}, rel=1e-13)


@pytest.mark.parametrize("row", ROWS, ids=lambda x: f"{x['sigma']}-{x['g']}")
def test_the_formulas_give_the_numbers(row):
    asked = spike(row["sigma"], row["g"])
    subs = {alpha0: row["alpha0"], eta: row["etat"], beta: row["beta"], Delta: row["Delta"]}
    for formula, number in zip((asked.r, asked.c, asked.gamma), asked(**at(row)), strict=True):
        assert float(formula.subs(subs).evalf(20)) == pytest.approx(number, rel=1e-14)


def by_hand(sigma, slope, g, at):
    """The three numbers by mpmath from the residual's law, sharing nothing with the package."""
    ends = [-14, -3, 0, 3, 14]
    mean = lambda f: mpmath.quad(lambda x: mpmath.npdf(x)*f(x), ends)  # noqa: E731
    s0, g0 = mean(sigma), mean(g)
    residual = mean(lambda x: (g(x) - s0)**2) + at["Delta"]
    norm = mpmath.sqrt(mean(lambda x: x*g(x))**2 + residual/at["alpha0"])
    t = mpmath.mpf(at["eta"])/at["beta"]
    s1, s2 = mean(slope), mean(lambda x: x*slope(x))
    variance = mean(lambda x: (slope(x) - s1)**2)
    return t*s1*norm, (1 + t*s2*(g0 - s0))**2 + t**2*residual/at["alpha0"]*variance, mean(lambda x: x*g(x))/norm


@pytest.mark.parametrize("sigma, own, slope", [
    ("z*tanh(z) + z", lambda x: x*mpmath.tanh(x) + x, lambda x: mpmath.tanh(x) + x*mpmath.sech(x)**2 + 1),
    ("Piecewise((z, z > 0), (z**3/5, True))", lambda x: x if x > 0 else x**3/5, lambda x: 1 if x > 0 else 3*x**2/5),
    ("erf(z)*relu(z)", lambda x: mpmath.erf(x)*max(x, 0), lambda x: 2/mpmath.sqrt(mpmath.pi)*mpmath.exp(-x*x)*x
     + mpmath.erf(x) if x > 0 else 0),
])
def test_activations_that_nobody_listed(sigma, own, slope):
    numbers = {"alpha0": 1.7, "eta": 0.9, "beta": 0.6, "Delta": 0.2}
    expected = by_hand(own, slope, lambda x: mpmath.sin(x) + abs(x), numbers)
    assert spike(sigma, "sin(z) + abs(z)")(**numbers) == pytest.approx([float(v) for v in expected], rel=1e-12)


@settings(max_examples=30)
@given(st.floats(0.05, 50), st.floats(0, 5), st.floats(0.1, 5), st.floats(0, 2))
def test_identities(batch, step, width, noise):
    found = spike("erf", "sign")(batch, step, width, noise)
    assert abs(found.gamma) <= 1 and found.c >= 1  # odd: the bulk only widens
    assert found.r*found.gamma == pytest.approx(step/width*2/np.sqrt(3*np.pi)*np.sqrt(2/np.pi), rel=1e-12)  # t sigma_1 g_1
    assert spike("erf", "sign")(batch, 2*step, 2*width, noise) == pytest.approx(found)  # eta/beta alone


def test_an_infinite_batch():
    asked = spike("erf", "erf")
    assert asked.limit == (4*eta/(3*pi*beta), 1, 1)
    assert asked(np.inf, 2.0) == pytest.approx([8/(3*np.pi), 1, 1], rel=1e-15)
    assert asked(oo, Rational(2), Rational(1), Rational(0)) == (8/(3*pi), 1, 1)
    assert spike("relu", "-z")(np.inf, 1.0).gamma == -1
    assert spike("tanh", "z**2")(np.inf, 1.0) == (0, 1, 0)  # nothing is learnt of an even target


def test_degenerate_functions_are_answered():
    assert spike("1", "tanh")(1, 1)[:2] == (0, 1)
    assert spike("0", "0")(1, 1) == (0, 1, 0)
    assert spike("z", "z")(oo, 1) == (1, 1, 1)
    assert spike("z", "3")(1.0, 1.0).gamma == 0


def test_arrays_broadcast():
    found = spike("tanh", "sin")(np.array([1.0, 2.0])[:, None], np.array([0.5, 1.0, 2.0]))
    assert found.r.shape == (2, 3)
    assert found.c[1, 2] == spike("tanh", "sin")(2.0, 2.0).c


def test_a_planted_error_is_seen():
    """The slides' c has a factor sigma_1^2 too many."""
    row = ROWS[0]
    asked = spike(row["sigma"], row["g"])
    planted = 1 + (asked(**at(row)).c - 1)*float(asked.coefficients["sigma_1"].evalf(15))**2
    assert abs(planted - row["c"]) > 1e-3


@pytest.mark.parametrize("numbers, told", [
    ((-1, 1), "alpha0 = -1; it must be positive"), ((0, 1), "alpha0 = 0"), ((1, np.nan), "eta = nan"), ((1, -1), "eta = -1"),
    ((1, 1, 0), "beta = 0"), ((1, 1, 1, -0.1), "Delta = -0.1"), ((np.nan, 1), "alpha0 = nan"), ((1, np.inf), "eta = inf"),
])
def test_a_hostile_number_is_one_line(numbers, told):
    with pytest.raises(BadInput, match=told) as error:
        spike("tanh", "sin")(*numbers)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("sigma, g, told", [
    ("tanh", "exp(z**2)", "target exp.z..2. is not square integrable"), ("tanh", "1/z", "not square integrable"),
    ("exp(z**2)", "sin", "activation"), ("tanhh", "sin", "did you mean tanh"),
])
def test_functions_that_make_no_sense_are_one_line(sigma, g, told):
    with pytest.raises(HermitexError, match=told):
        spike(sigma, g)


def test_a_jump_has_no_slope():
    asked = spike("sign", "tanh")
    with pytest.raises(BadInput, match="sign jumps"):
        asked(1, 1)
    assert "c = oo" in repr(asked)


def test_parameters_of_the_functions():
    from sympy import Symbol, tanh

    from hermitex.symbols import z

    a = Symbol("a", positive=True)
    asked = spike(tanh(a*z), "sin")
    assert asked(20, 3, a=1) == pytest.approx(spike("tanh", "sin")(20, 3))
    with pytest.raises(BadInput, match=r"add a="):
        asked(20, 3)
    with pytest.raises(UnknownName):
        asked(20, 3, b=1)


def test_how_it_shows_itself():
    asked = spike("erf", "sign")
    assert asked.gamma == sqrt(2)/(sqrt(pi)*sqrt(2/pi + (Delta + 1)/alpha0))
    assert asked.latex().count(r"\\") == 2 and r"\gamma &=" in asked.latex()
    assert set(asked.to_dict()) == {"sigma", "target", "r", "c", "gamma", "coefficients"}
    assert repr(asked).startswith("Spike(erf, sign): r = ") and "cui2024" in asked.bibtex()


# -- the bulk at finite d: theory sheet one_step_2, A7 -------------------------------------------------------------------
BIAS = [("tanh", "sin", 20, 3, 1, 1.574723396730997), ("erf", "sin", 5, 2, 0.5, 5.17220361511171),
        ("sin", "sin", 10, 2, 2, 0.3933943925559742), ("tanh", "sin", 4, 2, 1, 0.9938102167999098),
        ("erf", "He1(z) + He3(z)/6", 8, 1, 1, 0.7518389775514199)]


@pytest.mark.parametrize("sigma, g, alpha0, eta, beta, bias", BIAS)
def test_the_bias_of_the_bulk_at_finite_dimension(sigma, g, alpha0, eta, beta, bias):
    found = spike(sigma, g)
    assert found.c_bias(alpha0=alpha0, eta=eta, beta=beta) == pytest.approx(bias, rel=1e-12)
    assert found.c_bias(alpha0=[alpha0, np.inf], eta=0).tolist() == [0, 0]  # no step, no bulk that was stretched


@pytest.mark.slow
def test_the_bias_of_the_bulk_by_simulation():
    """d (E c_d - c) of one step at d = 150 within three standard errors and d^-1; the two terms of a first derivation give 1.13."""
    d, alpha0, eta, seeds, found = 150, 20, 3, 40, []
    for seed in range(seeds):
        rng = np.random.default_rng([447, seed])
        W = rng.standard_normal((d, d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        x = rng.standard_normal((alpha0*d, d))
        u = x @ W.T
        residual = np.sin(x[:, 0]) - np.tanh(u).sum(axis=1)/d
        new = W + eta*((residual[:, None]/np.cosh(u)**2).T @ x)/len(x)
        v = new.mean(axis=0)
        found.append(np.mean(np.sum((new - np.outer(new @ v/(v @ v), v))**2, axis=1))*d/(d - 1))
    mean, error = np.mean(found), np.std(found, ddof=1)/np.sqrt(seeds)
    c, bias = spike("tanh", "sin")(alpha0, eta).c, spike("tanh", "sin").c_bias(alpha0=alpha0, eta=eta)
    assert abs(mean - c - bias/d) < 3*error + 10/d**2


@pytest.mark.parametrize("ask, said", [(lambda: spike("relu", "sin").c_bias(alpha0=1, eta=1), "odd activation"),
                                       (lambda: spike("tanh", "z1*z2").c_bias(alpha0=1, eta=1), "one direction"),
                                       (lambda: spike("tanh", "sin").c_bias(alpha0=-1, eta=1), "alpha0"),
                                       (lambda: spike("sign", "sin").c_bias(alpha0=1, eta=1), "jumps")])
def test_a_bias_that_is_not_known_is_one_line(ask, said):
    with pytest.raises(BadInput, match=said):
        ask()
