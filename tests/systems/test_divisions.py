"""A parameter at which a formula divides by zero: the limit where it is one, and no number where it is none."""

import random

import numpy as np
import pytest
from sympy import Symbol, atan, cos, erf, exp, im, log, oo, re, sin, sqrt, tanh
from sympy import limit as limit_of

from hermitex import E, System, compile, theories
from hermitex.errors import NotConverged
from hermitex.symbols import V, alpha, z

x = Symbol("x", real=True)
a = Symbol("a", real=True)
T = Symbol("T", positive=True)
NUMERATORS = [1, a, sin(a), 1 - cos(a), a**2, exp(a) - 1, tanh(a)**2, 2 + a]
FUNCTIONS = [lambda u: u, tanh, erf, atan, lambda u: exp(-u), lambda u: exp(-u**2), lambda u: 1/(1 + u), lambda u: log(1 + u**2)]


def drawn(seed):
    """f(n(a)/a^k) at a = 0, with a of either sign or positive."""
    draw = random.Random(seed)
    p = draw.choice([a, T])
    over = draw.choice(NUMERATORS)
    over = over if isinstance(over, int) else over.xreplace({a: p})
    power = draw.choice([1, 2] if p is a else [1, 2, "1/2"])
    return p, draw.choice(FUNCTIONS)(over/(sqrt(p) if power == "1/2" else p**power))


@pytest.mark.parametrize("seed", range(40))
def test_a_quotient_at_zero_is_its_limit_or_no_answer(seed):
    p, form = drawn(seed)
    found = System({x: form}, parameters=[p]).solve({p.name: 0.0}, raise_on_failure=False)
    if found.converged:
        sides = [limit_of(form, p, 0, "+")] + ([limit_of(form, p, 0, "-")] if p is a else [])
        assert all(abs(side) != oo and abs(float(side) - found["x"]) < 1e-12 for side in sides), (form, sides)


@pytest.mark.parametrize("form", [1/alpha, 1/sqrt(alpha), 1/alpha**2, sin(alpha)/alpha, (1 + alpha)/alpha, log(1/alpha)])
def test_no_number_where_a_formula_has_none(form):
    with pytest.raises(NotConverged, match="not finite"):
        System({V: form}).solve(alpha=0.0)
    assert not np.isfinite(compile(form)(alpha=0.0))


def test_a_bad_point_of_a_batch_leaves_the_others():
    found = System({x: 1/a}).solve(a=[0.0, 2.0], raise_on_failure=False)
    assert found.converged.tolist() == [False, True] and found["x"][1] == 0.5


def test_zero_temperature_is_the_limit_from_above():
    assert System({x: E(tanh(z/T)**2, z)}).solve(T=0.0)["x"] == pytest.approx(1, abs=1e-12)
    rho = Symbol("rho", real=True)
    overlap = System({x: E(erf(z/sqrt(2*rho))*z, z)}, where={rho: 1 - a**2})
    assert overlap.solve(a=1.0)["x"] == pytest.approx(np.sqrt(2/np.pi), abs=1e-10)


def test_a_power_beyond_double_precision_is_not_an_exception():
    found = System({x: a**2.5 + a**3}).solve(a=1e200, raise_on_failure=False)
    assert not found.converged


def test_a_quotient_by_a_number_that_is_zero_is_no_exception():
    """A definition that is a plain 0 is a number of NumPy in the generated code: the branch that is not taken may divide by it."""
    found = theories.random_features("He2(z)", "1").solve(alpha=2.0, lam=0.1, Delta=0.1, gamma=0.5)
    assert found["mhat"] == 0 and found["test_error"] > 0
    k = Symbol("k", real=True)
    assert not System({x: a/k}, where={k: 0*a}).solve(a=1.0, raise_on_failure=False).converged


def test_the_size_of_a_function_of_a_quotient_is_real():
    """|erf(a/c)| of what may vanish was once written with an imaginary part."""
    from hermitex.kernels.cancellation import magnitude
    from hermitex.kernels.source import divisions

    c = Symbol("c", real=True)
    for f in (erf(a/c), exp(a/c), tanh(a/c)*exp(-a/c)):
        assert not divisions(magnitude(f - a*f**2), {c}, lambda _: False).has(re, im)
