"""Digits in threads: each has its own, and the library's precision, which is the user's, is neither read nor changed."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import mpmath
import pytest

import hermitex as hx
from hermitex.symbolic.arithmetic import mp

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


def test_a_precision_that_is_none_leaves_the_context_free():
    with pytest.raises((TypeError, ValueError)), mp.workprec("many"):
        pass
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: str(hx.E("abs(z)").evalf(5))).result(timeout=20) == "0.79788"


@pytest.mark.slow
def test_the_digits_are_the_same_on_integers_of_gmpy2():
    """mpmath and SymPy take its integers where it is installed, as conda installs it; balls do not take them."""
    pytest.importorskip("gmpy2")
    texts = [*TEXTS, "erf(z + 2)", "sin(z + 1)", "Piecewise((exp(-z), z > 1/7), (z**3, True))"]
    ask = f"""import hermitex as hx, mpmath
from sympy import Function
for text in {texts}:
    print(hx.E(text).evalf(30), hx.expand(text, order=3, basis="monic"))
f = hx.E(Function("f")(hx.symbols.z))
print(hx.check(f, -f).status, hx.exponents("sign(z1*z2)").alpha_c)
print(mpmath.libmp.BACKEND)"""
    plain = {n: v for n, v in os.environ.items() if n not in ("MPMATH_NOGMPY", "SYMPY_GROUND_TYPES")}
    said = [subprocess.run([sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True).stdout.splitlines()
            for env in (plain, plain | {"MPMATH_NOGMPY": "1", "SYMPY_GROUND_TYPES": "python"})]
    assert said[0][:-1] == said[1][:-1] and (said[0][-1], said[1][-1]) == ("gmpy", "python")


@pytest.mark.parametrize("value", [mp.mpf(1)/3, mp.mpc(1, -2)/7, mp.inf*mp.mpf(1), mp.mpf(0), -mp.mpf(2)**300])
def test_a_pickled_number_holds_integers_of_python(value):
    sent = pickle.dumps(value)
    assert b"gmpy" not in sent and pickle.loads(sent) == value and type(pickle.loads(sent)) is type(value)
