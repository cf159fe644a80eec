"""The generated minimiser: against mpmath, at hard places, batched, and what its source says."""

import pickle

import numpy as np
import pytest
from sympy import Abs, Rational, Symbol, cosh, exp, log

from hermitex import E, Moreau, Prox, compile
from hermitex.errors import NoClosedForm
from hermitex.kernels.printers import NumPyPrinter
from hermitex.kernels.proximal import function_source
from hermitex.kernels.source import load
from hermitex.symbols import V, y, z
from hermitex.symbols import f as F

W = Symbol("omega", real=True)
LOSSES = {"logistic": log(1 + exp(-y*F)), "quartic and kink": F**4/4 + Abs(F - y), "Poisson": exp(F) - y*F,
          "log cosh": log(cosh(y - F)), "curved branches": Abs(F - y)**3}
PLACES = [(0.5, 1.5, -1.0), (-7.0, 1500.0, 1.0), (40.0, 2.0**-10, -1.0), (600.0, 3.0, 1.0), (-300.0, 1e6, 1.0), (0.0, 1.0, 1.0)]


@pytest.mark.parametrize("name", LOSSES)
def test_equals_mpmath_at_hard_places(name):
    node = Prox(LOSSES[name], F, W, V)
    kernel = compile(node)
    for w, v, label in PLACES:
        exact = node.subs({W: Rational(w), V: Rational(v), y: Rational(label)}).evalf(20)
        assert abs(kernel(omega=w, V=v, y=label) - float(exact)) <= 1e-13*max(1.0, abs(float(exact)))


def test_a_batch_is_its_points_and_satisfies_its_equation():
    kernel = compile(Prox(log(1 + exp(-y*F)), F, W, V))
    w, v = np.linspace(-80, 80, 401)[:, None], np.array([1e-6, 1.0, 30.0, 1e4])
    f = kernel(omega=w, V=v, y=1.0)
    assert f.shape == (401, 4)
    assert np.max(np.abs(f - w - v/(1 + np.exp(f)))/(1 + np.abs(w) + v/(1 + np.exp(f)))) < 1e-14
    assert f[7, 2] == kernel(omega=w[7, 0], V=30.0, y=1.0)


def test_nan_goes_through_and_nothing_else_is_touched():
    """A kernel refuses nan; inside a solve it may arise, and must not spread to the other points."""
    prox = load(compile(Prox(log(1 + exp(-F)), F, W, V)).source)["prox_1"]
    with np.errstate(invalid="ignore"):
        f = prox(np.array([0.0, np.nan, 1.0]), 2.0)
    assert np.isnan(f[1]) and np.isfinite(f[[0, 2]]).all()


@pytest.mark.parametrize("v", [0.1, pytest.param(20.0, marks=pytest.mark.slow), pytest.param(500.0, marks=pytest.mark.slow)])
def test_expectations_of_prox_and_envelope(v):
    """E[M], E[dM/dV] and E[dprox/domega] by the kernel, against mpmath with its own root finder."""
    loss = log(1 + exp(-F))
    for expr in (Moreau(loss, F, 3*z, V), Moreau(loss, F, 3*z, V).diff(V), Prox(loss, F, W, V).diff(W).subs(W, 3*z)):
        node = E(expr, z)
        assert abs(compile(node)(V=v) - float(node.subs(V, Rational(v)).evalf(15))) < 1e-11


def test_plain_newton_from_elsewhere_would_cycle():
    """The tooth: at V = 100 Newton started at omega jumps between two points, and the bracket is what saves it."""
    def newton(f, w=-60.0, v=100.0):
        for _ in range(200):
            s = 1/(1 + np.exp(f))
            f = f - (f - w - v*s)/(1 + v*s*(1 - s))
        return f

    kernel = compile(Prox(log(1 + exp(-F)), F, W, V))
    f = kernel(omega=-60.0, V=100.0)
    assert abs(f + 60 - 100/(1 + np.exp(f))) < 1e-11
    with np.errstate(all="ignore"):
        ends = [newton(start) for start in np.linspace(-60, 60, 25)]
    assert any(not abs(e - f) < 1e-6 for e in ends)


def test_the_source_reads_and_pickles():
    kernel = compile(Prox(log(1 + exp(-y*F)), F, W, V))
    assert "def prox_1(omega, V):" in kernel.source and "argmin_f" in kernel.source and "sympy" not in kernel.source
    again = pickle.loads(pickle.dumps(kernel))
    assert again(omega=0.3, V=2.0, y=1.0) == kernel(omega=0.3, V=2.0, y=1.0)


def test_a_module_without_a_prox_has_no_minimiser():
    assert "minimise" not in compile(E(exp(-z**2*V), z)).source


def test_kinks_do_not_reach_the_printer():
    with pytest.raises(NoClosedForm, match="unresolved"):
        function_source("prox_1", Prox(Abs(F), F, W, V).loss, NumPyPrinter().doprint)
