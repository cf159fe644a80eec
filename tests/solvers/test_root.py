"""Bracketed roots: right, over hundreds of orders of magnitude, and a pole is no root."""

import numpy as np
import pytest
import saddles
from hypothesis import given, settings
from hypothesis import strategies as st

from hermitex.errors import BadInput, NotConverged
from hermitex.solvers.newton import newton
from hermitex.solvers.root import root


@given(st.lists(st.floats(-290, 290), min_size=1, max_size=5))
@settings(max_examples=40)
def test_positive_roots_of_any_magnitude(exponents):
    e = np.array(exponents)
    s = root(lambda x, p: np.log(x) - p["e"] * np.log(10), p={"e": e}, names=["V"], positive=True)
    assert np.abs(np.log10(s["V"]) - e).max() < 1e-9


@given(st.floats(-1e6, 1e6), st.floats(0.01, 100))
@settings(max_examples=40)
def test_monotone_cubic_against_brentq(shift, slope):
    from scipy.optimize import brentq

    def F(x, p):
        return slope * x + x**3 - shift

    s = root(F, names=["q"])
    assert s["q"] == pytest.approx(brentq(lambda x: F(x, None), -200, 200, xtol=1e-14), rel=1e-9, abs=1e-9)


def test_agrees_with_newton_and_takes_the_same_functions():
    p = {"alpha": np.geomspace(0.1, 10, 30), "lam": 1e-8}
    a = root(saddles.ridge, p=p, names=["V"], positive=True)
    b = newton(saddles.ridge, saddles.ridge_jacobian, [1.0], p, names=["V"], positive=True)
    # x - rhs(x) cancels where the contraction is near 1: agreement is to what both claim
    assert (np.abs(a["V"] / b["V"] - 1) <= 10 * (a.error + b.error)).all()
    assert a.stability == pytest.approx(b.stability, abs=1e-4)


@pytest.mark.parametrize(("F", "said"), [
    (lambda x, p: 1 / (x - 0.3), "pole"), (lambda x, p: np.sign(x - 0.3), "jump"),
    (lambda x, p: x * x + 1, "no sign change"),
])  # fmt: skip
def test_what_is_no_root_is_not_called_one(F, said):
    with pytest.raises(NotConverged, match=said):
        root(F, names=["q"])


def test_a_steep_root_is_a_root():
    s = root(lambda x, p: np.tanh(1e6 * (x - 1)), names=["q"])
    assert s["q"] == pytest.approx(1, abs=1e-11)


def test_given_brackets_are_kept_to():
    s = root(lambda x, p: np.sin(x), names=["q"], lower=np.array([2.0, 5.0]), upper=np.array([4.0, 7.0]))
    assert s["q"] == pytest.approx([np.pi, 2 * np.pi])
    with pytest.raises(NotConverged, match="one sign at both ends"):
        root(lambda x, p: x - 2, names=["q"], lower=3.0, upper=5.0)
    with pytest.raises(BadInput, match="positive"):
        root(lambda x, p: x - 2, names=["q"], lower=-1.0, upper=5.0, positive=True)


def test_batch_equals_point_by_point():
    p = {"alpha": np.geomspace(0.1, 10, 9), "lam": 1e-3}
    s = root(saddles.ridge, p=p, names=["V"], positive=True)
    for k in range(9):
        one = root(saddles.ridge, p={"alpha": p["alpha"][k], "lam": 1e-3}, names=["V"], positive=True)
        assert one["V"] == pytest.approx(s["V"][k], rel=1e-12)


def test_two_unknowns_are_refused():
    with pytest.raises(BadInput, match="one unknown"):
        root(saddles.one_step, names=saddles.FOUR)
