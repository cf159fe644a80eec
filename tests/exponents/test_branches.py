"""Functions of an antiderivative of He_k phi tell nothing of He_k: drawn in many forms, and against plain integrals."""

import numpy as np
import pytest

import hermitex as hx
from hermitex import parse
from hermitex.exponents.labels.label_branches import branch_identity
from hermitex.symbols import z, z1, z2, z3

FORMS = ["z**2*exp(-z**2)", "abs(z)*exp(-z**2/2)", "log(abs(z)) - z**2/2", "log(z**2) - z**2", "z**2/exp(z**2)",
         "(z**2)**(1/3)*exp(-z**2/3)",
         "exp(z**2)/z**2", "exp(log(abs(z)) - z**2/2)"]
OUTER = ["{0}", "tanh({0})", "({0})**2 - ({0})", "cos(3*({0}))", "1/(1 + ({0})**2)", "sign({0} - 1/5)",
         "floor(4*({0}))", "max({0}, 1/4)"]


@pytest.mark.parametrize("seed", range(8))
def test_drawn_functions_of_the_path(seed):
    draw = np.random.default_rng(seed)
    inner, outer = draw.choice(FORMS), draw.choice(OUTER)
    g = parse(outer.format(f"({inner})"))
    assert branch_identity((g,), (z,), 2) and branch_identity((g,), (z,), 4) is None
    # Nothing that differs from it a little is one.
    assert branch_identity((parse(outer.format(f"({inner}) + z**4/10")),), (z,), 2) is None


def test_the_integral_is_zero():
    """E[T(u) He_2] by quadrature, T bounded, for the forms; and not zero for the near misses."""
    x, w = np.polynomial.legendre.leggauss(400)
    t = 5*(x + 1)
    weight = 10*w*np.exp(-t*t/2)/np.sqrt(2*np.pi)*(t*t - 1)
    for u in (t**2*np.exp(-t**2), np.log(t) - t**2/2):
        assert abs(np.tanh(u) @ weight) < 1e-10
    assert abs(np.cos(t**2*np.exp(-t**2/2)) @ weight) > 1e-3


@pytest.mark.parametrize("text, variables, k, holds", [
    ("(z1**2+z2**2)*exp(-(z1**2+z2**2)/2)", (z1, z2), 2, True), ("(z1**2+z2**2)*exp(-(z1**2+z2**2))", (z1, z2), 2, False),
    ("(z1**2+z2**2+z3**2)**3*exp(-(z1**2+z2**2+z3**2))", (z1, z2, z3), 2, True),
    ("Heaviside(log(z1**2+z2**2)-(z1**2+z2**2)/2+1)", (z1, z2), 2, True),
    ("(z1**2+2*z2**2)*exp(-(z1**2+z2**2)/2)", (z1, z2), 2, False)])
def test_radial_paths(text, variables, k, holds):
    assert (branch_identity((parse(text),), variables, k) is not None) is holds
    assert branch_identity((parse(text),), variables, 4) is None


def test_order_four():
    """w = He_3 phi at k = 4, which changes its sign."""
    assert branch_identity((parse("(z**3-3*z)**2*exp(-z**2)"),), (z,), 4)
    assert branch_identity((parse("(z**3-3*z)**2*exp(-z**2)"),), (z,), 2) is None


@pytest.mark.slow
@pytest.mark.parametrize("text, channel", [("log(abs(z)) - z**2/2", None), ("z**4*exp(-2*z**2) - z**2*exp(-z**2)", None),
                                           ("Heaviside(z**2*exp(-z**2) - 1/4)", None),
                                           ("sign(z**2*exp(-z**2) - 1/4)", "flip:1/10"),
                                           ("(z1**2+z2**2)*exp(-(z1**2+z2**2)/2)", None)])
def test_hard_targets_by_their_levels(text, channel):
    found = hx.exponents(text, channel)
    assert (found.information_exponent, found.generative_exponent, found.threshold.kind) == (4, 4, "hard")
    assert any(c.status == "zero" and "int T(w) dw = 0" in c.how for c in found.certificates)


def test_a_logarithm_of_the_path_is_hard():
    found = hx.exponents("log(abs(z)) - z**2/2")
    assert (found.information_exponent, found.generative_exponent, found.threshold.kind) == (4, 4, "hard")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["floor(4*z**2*exp(-z**2))", "Heaviside((z1**2+z2**2)*exp(-(z1**2+z2**2)/2)-1/2)"])
def test_hard_steps(text):
    found = hx.exponents(text)
    assert (found.information_exponent, found.generative_exponent, found.threshold.kind) == (4, 4, "hard")
