"""Formulas with Max and Min are functions of arrays, whatever SymPy's own printer makes of them."""

import numpy as np
import pytest
from sympy import Abs, Max, Min, Symbol, symbols, tanh

from hermitex.kernels.arrays import lambdify

x, y = symbols("x y", real=True)


@pytest.mark.parametrize("expr, value", [
    (Max(0, x), lambda x, y: np.maximum(0, x)),
    (Min(x, y, 1), lambda x, y: np.minimum(np.minimum(x, y), 1)),
    (tanh(Max(-1, Min(1, x))) + Abs(y), lambda x, y: np.tanh(np.clip(x, -1, 1)) + np.abs(y)),
    (Max(x, Min(y, Max(0, x*y))), lambda x, y: np.maximum(x, np.minimum(y, np.maximum(0, x*y)))),
])
def test_extrema_of_arrays(expr, value):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40))
    for one, two in ((a, b), (a[:, None], b), (0.3, b), (0.3, -0.2)):
        f = lambdify((x, y), expr, ["numpy", "scipy"])
        assert np.allclose(f(one, two), value(one, two), rtol=1e-15)
    both, again = lambdify((x, y), [expr, 2*expr], ["numpy"])(a, b)
    assert np.allclose(both, value(a, b)) and np.allclose(again, 2*both)


def test_other_modules_are_left_alone():
    assert lambdify(Symbol("x"), Max(0, Symbol("x")), "mpmath")(-1) == 0
