"""Stieltjes equations as they are printed: complex unknowns are solved for in their real and imaginary parts."""

import numpy as np
import pytest
from sympy import Function, I, Idx, IndexedBase, Rational, Sum, Symbol, re, sqrt, symbols
from sympy.stats import Exponential

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.symbols import z

G = Symbol("G", complex=True)
w = Symbol("w", real=True)
eps, gamma = symbols("epsilon gamma", positive=True)
PLACES = np.array([-1.9, -0.3, 0.0, 1.2, 2.5])
T = np.arange(-3000, 3001)/200  # the rule of step 1/200 is exact for what is analytic within pi/100 of the line


def test_the_semicircle_law():
    found = hx.System({G: 1/(-w - I*eps - G)}).solve(w=PLACES, epsilon=0.1, start={"G": 1j})
    at = PLACES + 0.1j
    root = np.sqrt(at - 2)*np.sqrt(at + 2)  # the branch that falls like 1/z
    assert np.allclose(found["G"], (root - at)/2, rtol=1e-12, atol=0)
    assert np.all(found["G"].imag == found["G_im"])


def test_marchenko_pastur_with_a_name_and_an_observable():
    F = Symbol("F")
    system = hx.System({G: 1/(-w - I*eps + F)}, where={F: 1/(1 + gamma*G)}, observables={Symbol("density"): re(G)*0 + w,
                                                                                         Symbol("square"): G**2})
    found = system.solve(w=1.0, epsilon=0.05, gamma=0.5, start={G: 1j})
    g, at = found["G"], 1 + 0.05j
    assert abs(g*(1/(1 + 0.5*g) - at) - 1) < 1e-12
    assert found["square"] == pytest.approx(g**2, rel=1e-13) and found["density"] == 1.0


def test_an_average_and_a_sum_over_a_spectrum():
    eta, k, N = IndexedBase("eta"), Idx("k", Symbol("N", integer=True)), Symbol("N", integer=True)
    average = hx.System({G: hx.E(1/(z - w - I*eps - G), z)}).solve(w=0.3, epsilon=0.5, start={G: 1j})["G"]
    wanted = (np.exp(-T*T/2)/(T - 0.3 - 0.5j - average)).sum()/200/np.sqrt(2*np.pi)
    assert average == pytest.approx(wanted, rel=1e-12)
    spectrum = np.array([1.0, 2.0, -0.5])
    total = hx.System({G: Sum(1/(eta[k] - w - I*eps - G), k)/N}).solve(w=0.3, epsilon=0.1, eta=spectrum, start={G: 1j})["G"]
    assert total == pytest.approx(np.mean(1/(spectrum - 0.3 - 0.1j - total)), rel=1e-12)


def test_a_spectrum_drawn_from_a_law():
    """Its quantile -log(erfc(u)/2) is real."""
    life = Exponential("t", 1)
    found = hx.System({G: 1/(-w - I*eps + hx.E(life/(1 + life*G), life)/2)}).solve(w=1.5, epsilon=0.1, start={G: 1j})["G"]
    t = np.exp(T/2)  # nodes from 5e-4 on: what is left of them is 1e-7 of the whole
    assert found == pytest.approx(1/(-1.5 - 0.1j + (np.exp(-t)*t*t/(1 + t*found)).sum()/800), rel=1e-6)


def test_an_implicit_equation():
    from sympy import Eq

    system = hx.System({G: Eq(G**2 + (w + I*eps)*G + 1, 0)})
    found = system.solve(w=0.4, epsilon=0.2, start={"G": 1j})["G"]
    root = complex(sqrt((Rational(2, 5) + I/5)**2 - 4).evalf())
    assert found == pytest.approx((-(0.4 + 0.2j) + (root if root.imag > 0 else -root))/2, rel=1e-12)
    assert {u.name for u in system.unknowns} == {"G_re", "G_im"}


def test_what_is_no_start_or_not_split_says_so():
    with pytest.raises(BadInput, match="'G': 1j"):
        hx.System({G: 1/(-w - I*eps - G)}).solve(w=0.4, epsilon=0.2, start={"G": "up"})
    with pytest.raises(BadInput, match="not split"):
        hx.System({G: Function("h")(G)})
