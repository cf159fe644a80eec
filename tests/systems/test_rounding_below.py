"""Digits that are lost below a quotient, a root or a function are told: no such system is called converged and is wrong."""

import mpmath as mp
import numpy as np
import pytest

from hermitex import System
from hermitex.errors import HermitexError

_FORMS = {
    "a**2/(1 - cos(a))": lambda a: a**2/(1 - mp.cos(a)),
    "sqrt(1 - E(cos(a*z)))/a": lambda a: mp.sqrt(1 - mp.exp(-a**2/2))/a,
    "tanh((erf(1 + a) - erf(1))/a)/2": lambda a: mp.tanh((mp.erf(1 + a) - mp.erf(1))/a)/2,
}


@pytest.mark.parametrize("text", _FORMS)
def test_what_is_lost_below_a_function_is_not_called_converged(text: str) -> None:
    system = System({"x": text}, parameters=["a"])
    for a in (0.5, *10.0**-np.random.default_rng(7).uniform(1, 9, size=6)):
        with mp.workdps(60):
            truth = float(_FORMS[text](mp.mpf(float(a))))
        try:
            found = system.solve(a=float(a))
        except HermitexError:
            assert a < 1e-2  # nothing is lost at a of order 1
            continue
        assert not found.converged or float(found["x"]) == pytest.approx(truth, rel=1e-8)
