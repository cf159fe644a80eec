"""What a kernel learns at n = d^kappa: the table of tails, exact weights, plateaus, teeth, bad input."""

import json
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from sympy import E as e
from sympy import Rational, pi, simplify

import hermitex as hx
from hermitex.errors import BadInput, HermitexError, UnknownName
from hermitex.face import cli
from hermitex.theories import kernel_limit

KNOWN = json.loads((Path(__file__).parents[1]/"reference"/"limits.json").read_text())["kernel"]
TARGETS = {"tanh3": "tanh(3*z)", "sign(z1z2z3)": "sign(z1*z2*z3)"}


@pytest.mark.parametrize("name", KNOWN)
def test_the_table_of_tails(name):
    theory = kernel_limit(TARGETS.get(name, name))
    tails = [float(v) for v in KNOWN[name]["tail"][:7]]
    np.testing.assert_allclose(theory.curve(kappa=np.arange(7) + 0.5).test_error, tails, rtol=1e-9)
    weights = [float(v) for v in KNOWN[name]["c2"]]
    np.testing.assert_allclose([float(theory.weight(k)) for k in range(len(weights))], weights, rtol=1e-11, atol=1e-14)
    assert abs(theory.tail(0) + float(theory.expansion(8).value(0 if name != "sign(z1z2z3)" else (0, 0, 0)))**2
               - float(KNOWN[name]["norm2"])) < 1e-12


def test_weights_are_exact():
    sign, sine = kernel_limit("sign"), kernel_limit("sin")
    assert sign.weights[1] == 2/pi and sign.weights[2] == 0 and sign.weights[3] == 1/(3*pi)
    assert all(simplify(sine.weight(k) - (1/(e*factorial(k)) if k % 2 else 0)) == 0 for k in range(7))
    assert kernel_limit("z1*z2 + z1**3").weights == {0: 0, 1: 9, 2: 1, 3: 6, **dict.fromkeys(range(4, 9), 0)}
    assert kernel_limit("sign(z1*z2*z3)").weight(3) == Rational(8)/pi**3


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_a_target_do_not_turn(seed):
    """||P_k g||^2 of g(u.z), |u| = 1, is that of g(z), and the weights add up to E g^2."""
    rng = np.random.default_rng(seed)
    p, q = (int(v) for v in rng.integers(1, 9, 2))
    u = f"({p}*z1 + {q}*z2)/sqrt({p*p + q*q})"
    g = ["erf({0})", "sin({0})", "tanh({0})", "({0})**3 + ({0})**2"][seed]
    one, two = kernel_limit(g.format("z")), kernel_limit(g.format(u))
    for k in range(4):
        assert abs(one.tail(k) - two.tail(k)) < 1e-12*(1 + one.tail(k))


def test_a_third_route_by_the_trapezoid_rule():
    t = np.linspace(-12, 12, 4001)
    w = np.exp(-t*t/2)
    w /= w.sum()
    g = np.tanh(2*t)
    total = (w*g*g).sum()
    for k in range(6):
        he = np.polynomial.hermite_e.hermeval(t, [0]*k + [1])
        total -= (w*g*he).sum()**2/factorial(k)
        assert abs(kernel_limit("tanh(2*z)").tail(k) - total) < 1e-9


def test_the_width_limits_the_degree_too():
    theory = kernel_limit("sign")
    found = theory.solve(kappa=[0.5, 1.5, 3.5, 3.5], kappa_p=[9, 9, 9, 1.5])
    assert found["degree"].tolist() == [0, 1, 3, 1]
    assert found["test_error"].tolist() == [theory.tail(0), theory.tail(1), theory.tail(3), theory.tail(1)]
    assert "theorem" in found.notes[-1]


def test_a_step_is_said_to_be_one_and_where_nothing_changes_is_not():
    found = kernel_limit("sign").curve(kappa=[1, 2, 2.5, 3])
    assert ["at a step" in r for r in found.reason] == [True, False, False, True]


def test_the_misprinted_theorem_is_caught():
    """One source prints the fitted part ||P_{<=kappa} g||^2 as the error: it grows."""
    theory = kernel_limit("tanh(3*z)")
    printed = [float(KNOWN["tanh3"]["norm2"]) - theory.tail(k) for k in range(4)]
    right = [float(v) for v in KNOWN["tanh3"]["tail"][:4]]
    assert printed[3] > printed[0] and not np.allclose(printed, right, rtol=0.1)


@pytest.mark.slow
def test_kernel_ridge_regression_learns_the_degrees_below_kappa():
    """n = d^1.5 samples: what is left of g holds no z, and He_3 whole (d = 200: the first is learned to d/n = 7 per cent)."""
    rng, d = np.random.default_rng(0), 200
    n = int(d**1.5)
    x, t = rng.standard_normal((n, d)), rng.standard_normal((4000, d))
    cubic = hx.compile("He3(z)/sqrt(6)")
    y = x[:, 0] + cubic(z=x[:, 0])
    f = np.exp(t @ x.T/d) @ np.linalg.solve(np.exp(x @ x.T/d) + 1e-3*np.eye(n), y)
    left = t[:, 0] + cubic(z=t[:, 0]) - f
    assert abs(np.mean(left*t[:, 0])) < 0.2 and np.mean(left*cubic(z=t[:, 0])) > 0.8
    assert kernel_limit("z + He3(z)/sqrt(6)").curve(kappa=[1.5]).test_error[0] == 1


def test_the_command_line(capsys):
    assert cli.main(["curve", "kernel", "--target", "sign", "--kappa", "0.5,1.5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(answer["test_error"], [1, 1 - 2/np.pi], rtol=1e-12)
    assert answer["theory"] == "kernel" and answer["kappa"] == [0.5, 1.5] and "theorem" in answer["parameters"]["status"]


def test_curve_by_name_and_the_picture():
    found = hx.curve("kernel", target="relu", kappa=[0.5, 1.5])
    assert abs(found.test_error[1] - (0.25 - 1/(2*np.pi))) < 1e-12
    ax = kernel_limit("relu").plot()
    assert "kappa" in ax.get_xlabel() and ax.get_lines()[0].get_drawstyle() == "steps-post"


@pytest.mark.parametrize("ask, kind, word", [
    (lambda: kernel_limit("exp(z**2)"), HermitexError, "square integrable"),
    (lambda: kernel_limit(hx.parse("a*z", symbols={"a": "real"})), BadInput, "a"),
    (lambda: kernel_limit("sign").curve(kappa=[-1]), BadInput, "kappa"),
    (lambda: kernel_limit("sign").curve(alpha=[1], kappas=2), UnknownName, "kappas"),
    (lambda: kernel_limit("sign").curve(kappa=[1e9]), BadInput, "degree"),
    (lambda: kernel_limit("sign").curve(), BadInput, "kappa"),
    (lambda: kernel_limit("sign").curve(kappa=float("nan")), BadInput, "NaN")])
def test_bad_input_is_one_line(ask, kind, word):
    with pytest.raises(kind) as caught:
        ask()
    assert word in str(caught.value) and "\n" not in str(caught.value)
