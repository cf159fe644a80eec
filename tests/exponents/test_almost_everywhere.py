"""Null sets do not matter: signs that cancel, and what the exponents say of such spellings."""

import numpy as np
import pytest
from sympy import sqrt

import hermitex as hx
from hermitex.exponents.labels.almost_everywhere import almost_everywhere
from hermitex.exponents.labels.sign_and_size import sign_almost_everywhere
from hermitex.kernels.arrays import lambdify

SAME = [("sign(z1)**2*z2", "z2"), ("sign(z1*z2)*sign(z1)", "sign(z2)"), ("Heaviside(z1) + Heaviside(-z1) + z2", "z2 + 1"),
        ("abs(z1)*sign(z1)", "z1"), ("relu(z1) - relu(-z1)", "z1"), ("max(z1, z2) + min(z1, z2)", "z1 + z2"),
        ("relu(z1 - z2)*relu(z2 - z1) + z3", "z3"), ("relu(z1)**2 + relu(-z1)**2", "z1**2"), ("z2*abs(z1)/z1", "z2*sign(z1)"),
        ("exp(sign(z1 - 2*z2)**2*z2)", "exp(z2)"), ("ceiling(z1) - floor(z1) + z2", "z2 + 1"), ("sign(tanh(z1))", "sign(z1)"),
        ("floor(z1*z2) + floor(-z1*z2) + z1", "z1 - 1"), ("sign(z1**2 - z2**2)*sign(z1 - z2)", "sign(z1 + z2)"),
        ("Heaviside(z1)**3*z2", "z2*Heaviside(z1)"), ("Piecewise((z1, z2 > 0), (-z1, True))", "z1*sign(z2)")]
DIFFERENT = ["sign(relu(z1))**2*z2", "sign(z1*z2)", "relu(z1) + relu(z2)", "max(z1, z2, z3)", "floor(z1) + floor(z2)"]


@pytest.mark.parametrize("text, stated", SAME)
def test_signs_that_cancel_are_gone(text, stated):
    assert almost_everywhere(hx.parse(text)) == hx.parse(stated)


POSITIVE = ["z1**2 + z1 + 1", "2 + sin(z1)", "1 - tanh(z1)", "1 + erf(z1)", "abs(z1) + abs(z3)", "z1**4 + z3**2", "softplus(z1)",
            "z1**2 + z1*z3 + z3**2", "relu(z1) + exp(z1)", "1 - exp(-z1**2)", "log(1 + z1**2)", "1 + tanh(z1)*cos(z3)", "cosh(z1)",
            "1/(1 + z1**2) + z3**2", "(z1 - 3)**2*exp(-z1)", "sqrt(abs(z1)) + 1"]
EITHER = ["z1**2 + 3*z1*z3 + z3**2", "1/2 + sin(z1)", "exp(z1) - 1", "relu(z1)", "z1**2 + sin(z1)", "1 - exp(z1)", "z1**3 + 5",
          "1 - sin(max(z1, pi/2))", "relu(z1) + abs(z3) - 1", "exp(-z1**2) - 1/2"]


@pytest.mark.parametrize("text", POSITIVE)
def test_a_positive_factor_under_a_sign_is_gone(text):
    for form, stated in ((f"sign(({text})*z2)", "sign(z2)"), (f"-3*sign(-z2/({text})) + z2", "3*sign(z2) + z2"),
                         (f"Heaviside(-({text})*z2)", "1/2 - sign(z2)/2"), (f"sign(({text})*(z2 - z4))", "sign(z2 - z4)")):
        assert almost_everywhere(hx.parse(form)) == hx.parse(stated)


@pytest.mark.parametrize("text", EITHER)
def test_a_factor_of_both_signs_stays(text):
    g = hx.parse(f"sign(({text})*z2)")
    assert almost_everywhere(g).free_symbols == g.free_symbols


VANISHING = ["1 - sin(pi/2*(z1+1)**2 - pi/2*z1**2 - pi*z1)", "1 - sin(sqrt(z1**2-2*z1+1) - z1 + 1 + pi/2)",
             "1 + cos(pi*sqrt(z1**2-2*z1+1)/(z1-1))", "(sin(z1)**2+cos(z1)**2-1)**2", "(sin(z1)**2+cos(z1)**2-1)**2 + relu(z1)",
             "abs(sqrt(z1**2-2*z1+1)-z1+1)", "(sqrt(z1**2-2*z1+1)-z1+1)**2", "(abs(z1) - z1)**2", "relu(z1)**2",
             "(1 - sign(z1))**4", "1 + tanh(log(relu(z1)))", "1 - tanh(1/relu(z1))", "1 + erf(log(relu(z1)))"]


@pytest.mark.parametrize("text", VANISHING)
def test_a_factor_that_vanishes_on_a_set_is_of_no_sign(text):
    """It is never negative, and zero on a half line, or everywhere: the label is silent there."""
    h = hx.parse(text)
    assert sign_almost_everywhere(h) == 0 and sign_almost_everywhere(h + sqrt(h**2)) == 0
    g = hx.parse(f"sign(({text})*z2)")
    assert almost_everywhere(g) != hx.parse("sign(z2)")


def drawn_factor(rng):
    """A sum of terms of known and unknown signs, as text."""
    terms = ["z1**2", "z3**2", "exp(z1)",
             "-exp(-z3**2)", "tanh(z1)", "sin(z3)", "abs(z1)", "relu(z3)", "1", "2", "cos(z1*z3)", "z1*z3"]
    return " + ".join(f"{rng.integers(1, 4)}*({terms[n]})" for n in rng.choice(len(terms), 3, replace=False))


def test_what_is_called_of_one_sign_is_so_at_many_points():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(2, 4000))*2
    decided = 0
    for text in (drawn_factor(rng) for _ in range(40)):
        h = hx.parse(text)
        values = np.broadcast_to(lambdify([hx.symbols.z1, hx.symbols.z3], h, ["numpy"])(*z), z[0].shape) if h.free_symbols else z[0]
        towards = sign_almost_everywhere(h) if h.free_symbols else 0
        assert not towards or (values*towards > 0).all(), text
        decided += bool(towards)
    assert decided > 8


@pytest.mark.parametrize("text, orders", [("sign((2 + sin(z1))*(z2 + z3))", (1, 1, 1)), ("sign((z1**2 + z1 + 1)*z2*z3)", (2, 2, 2)),
                                          ("sign(z1**3 + z1*z2**2)", (1, 1, 1))])
def test_exponents_do_not_see_the_factor(text, orders):
    found = hx.exponents(text)
    assert (found.information_exponent, found.leap_exponent, found.generative_exponent) == orders
    assert all(found.certificates) and any(n.startswith("almost everywhere the target is") for n in found.notes)


@pytest.mark.parametrize("text", [t for t, _ in SAME] + DIFFERENT)
def test_values_at_generic_points_stay(text):
    g = hx.parse(text)
    plain = almost_everywhere(g)
    z = dict(zip(("z1", "z2", "z3"), np.random.default_rng(7).normal(size=(3, 40)), strict=True))
    for i in range(40):
        here = {v: float(z[v.name][i]) for v in hx.symbols.normals(g)}
        assert abs(complex(g.subs(here)) - complex(plain.subs({v: x for v, x in here.items()}))) < 1e-12


@pytest.mark.parametrize("text", DIFFERENT)
def test_what_does_not_cancel_stays(text):
    """sign(relu(z1)) is 0 on half of the line, so its square is not 1."""
    assert almost_everywhere(hx.parse(text)) == hx.parse(text)


@pytest.mark.parametrize("text, information, leap, generative, directions", [
    ("sign(z1)**2*z2", 1, 1, 1, [[0, 1]]), ("sign(z1*z2)*sign(z1)", 1, 1, 1, [[0, 1]]),
    ("Heaviside(z1) + Heaviside(-z1) + z2**2", 2, 2, 2, [[0, 1]]), ("max(z1, z2) + min(z1, z2)", 1, 1, 1, [[1, 1]])])
def test_exponents_of_such_spellings(text, information, leap, generative, directions):
    found = hx.exponents(text)
    assert (found.information_exponent, found.leap_exponent, found.generative_exponent) == (information, leap, generative)
    assert [s["directions"] for s in found.staircase] == [directions] and found.target == hx.parse(text)
    assert any(n.startswith("almost everywhere the target is") for n in found.notes)


def test_a_constant_almost_everywhere_has_no_exponent():
    found = hx.exponents("sign(z1*z2)**2")
    assert found.information_exponent is None and any("does not depend on z" in n for n in found.notes)


def test_the_bounded_functions_inside_an_average_are_no_part_of_the_factor():
    """cos stands at a variable of its own there; its bounds were put in for nothing, without end."""
    assert sign_almost_everywhere(hx.parse("z**2*E(cos(z)*He2(z)) - z")) == 0
    found = hx.exponents("cos(z) - E(cos(z)*He2(z))*He2(z)/2")
    assert (found.information_exponent, found.generative_exponent, found.threshold.kind) == (4, 2, "easy")
