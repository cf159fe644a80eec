"""Digits in threads: each has its own, and the library's precision, which is the user's, is neither read nor changed."""

from concurrent.futures import ThreadPoolExecutor

import mpmath
import pytest

import hermitex as hx

TEXTS = ("tanh(z)*z", "exp(-abs(z))*z**2", "log(1 + z**2)", "relu(z - 1/3)*tanh(z)", "1/(2 + cos(3*z))")


def test_threads_keep_their_digits():
    wanted = [(t, d) for t in TEXTS for d in (15, 40)]
    alone = {(t, d): str(hx.E(t).evalf(d)) for t, d in wanted}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda task: str(hx.E(task[0]).evalf(task[1])), wanted*2))
    assert found == [alone[task] for task in wanted*2]


@pytest.mark.parametrize("digits", [8, 60])
def test_no_digit_depends_on_the_precision_of_the_library(digits):
    plain = [str(hx.E(t).evalf(30)) for t in TEXTS]
    with mpmath.workdps(digits):
        before = mpmath.mp.prec
        assert [str(hx.E(t).evalf(30)) for t in TEXTS] == plain and mpmath.mp.prec == before
