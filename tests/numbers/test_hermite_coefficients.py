"""c_k = E f h_k: closed forms, proofs, symmetry, and errors that hold."""

import numpy as np
import pytest
import sympy as sp

import hermitex as hx
from hermitex.errors import BadInput
from hermitex.numbers.average import average
from hermitex.numbers.hermite_coefficients import coefficients
from hermitex.symbolic.arithmetic import mp

z = hx.symbols.z


def test_the_exponential():
    """E exp(z/2) h_k = exp(1/8) (1/2)^k/sqrt(k!)."""
    found = coefficients(sp.exp(z/2), z, 60)
    with mp.workdps(30):
        wanted = np.array([float(mp.exp(0.125)*mp.mpf(0.5)**k/mp.sqrt(mp.factorial(k))) for k in range(61)])
    assert (np.abs(found.values - wanted) <= found.errors).all()
    assert found.errors.max() < 1e-13


def test_relu_to_order_500():
    """E max(0, z) h_k = (-1)^(k/2 - 1) (k - 3)!!/sqrt(2 pi k!) for even k >= 2."""
    found = coefficients(hx.parse("relu(z)"), z, 500)
    with mp.workdps(30):
        wanted = {k: float((-1)**(k//2 - 1)*mp.fac2(k - 3)/mp.sqrt(2*mp.pi*mp.factorial(k))) for k in range(2, 501, 2)}
    assert all(abs(found.values[k] - c) <= found.errors[k] for k, c in wanted.items())
    assert max(abs(found.values[k] - c) for k, c in wanted.items()) < 1e-15
    assert abs(found.values[1] - 0.5) <= found.errors[1] and np.abs(found.values[3::2]).max() <= found.errors.max()


@pytest.mark.parametrize("text", ["tanh(z)", "sign(z - 1/2)", "log(abs(z))", "abs(z)**(-1/3)", "tanh(100*z)", "exp(z**2/5)"])
def test_against_balls(text):
    f = hx.parse(text)
    found = coefficients(f, z, 41)
    for k in (0, 1, 2, 11, 40, 41):
        one = average(f*hx.He(k, z)/sp.sqrt(sp.factorial(k)), z, 17, prove=True)
        assert abs(float(one.value) - found.values[k]) <= found.errors[k] + float(one.error)


def test_symmetry_gives_exact_zeros():
    found = coefficients(sp.tanh(z), z, 20)
    assert not found.values[::2].any() and not found.errors[::2].any()
    assert found.known_nonzero()[1::2].all()


def test_a_slow_rule_is_not_believed():
    """sin(40 z): all coefficients below order 800 are tiny, and the errors cover what is claimed."""
    found = coefficients(sp.sin(40*z), z, 99)
    assert (np.abs(found.values) <= found.errors + 1e-100).all()


def test_an_order_beyond_500_is_refused():
    with pytest.raises(BadInput, match="between 0 and 500"):
        coefficients(sp.tanh(z), z, 501)
