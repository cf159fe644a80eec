"""Where two roots meet, eight digits of sixteen hold: a solution says so, or is refused with the tolerance at which it is not."""

from __future__ import annotations

import random
import re
import runpy

import numpy as np
import pytest
from sympy import Eq, Rational, Symbol, cosh, exp, log, sign, sin, sqrt, symbols, tanh

from hermitex import E, System
from hermitex.symbols import z

x, y, a, b = symbols("x y a b", real=True)
p = Symbol("p", positive=True)


def tangent(seed):
    """x = b + a h(x), whose two sides touch at x = c; and c."""
    r = random.Random(seed)
    h = r.choice([exp(x), cosh(x), x**2, x**3 + x, log(1 + exp(2*x)), 1/(2 + tanh(x)), sqrt(1 + x**2), E(exp(x*z), z),
                  E(tanh(x + z)**2, z), E(log(1 + (x + z)**2), z)])
    c = Rational(r.randint(3, 19), 10)
    value, slope = (float(f.subs(x, c).evalf(20)) for f in (h, h.diff(x)))
    return System({x: b + a*h}, observables={"o": exp(x)}), {"a": 1/slope, "b": float(c) - value/slope}, float(c)


@pytest.mark.parametrize("seed", range(12))
def test_two_sides_that_touch(seed):
    """At 1e-11 they are refused, or the error that is given holds; so it does at the tolerance that the refusal names."""
    system, numbers, c = tangent(seed)
    found = system.solve(**numbers, start={"x": c + 0.1}, raise_on_failure=False)
    if named := re.search(r"tolerance=(\S+)", str(found.reason)):
        found = system.solve(**numbers, start={"x": c + 0.1}, tolerance=float(named[1]))
    if found.converged:
        assert 1e-9 < found.error < 1e-5
        assert abs(found["x"] - c) <= found.error*max(abs(c), 1e-6) and abs(found["o"]/np.exp(c) - 1) <= found.error
    else:
        assert "double" in found.reason or "decrease" in found.reason or "above" in found.reason  # rounding left no root


@pytest.mark.parametrize("away", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-13])
@pytest.mark.parametrize("upper", [True, False])
def test_nearly_double_roots(away, upper):
    """p = 2 c p^2/(1 + p^2) has the roots c +- sqrt(c^2 - 1)."""
    system = System({p: 2*a*p**2/(1 + p**2)})
    c = 1 + away
    found = system.solve(a=c, start={"p": 1.5 if upper else 0.8}, raise_on_failure=False)
    exact = c + (1 if upper else -1)*np.sqrt((c - 1)*(c + 1))
    off = min(abs(found["p"] - exact), abs(found["p"] - 1/exact))  # nearer than their error the two are one
    assert off <= max(found.error, 1e-10)
    assert bool(found.converged) == (found.error < 1e-8) and (found.converged or "double" in found.reason)


@pytest.mark.parametrize("equation", [exp(x - 1), x - 3*(x - 1)**2, Eq((x - 1)**2, 0), Eq(x**2 - 2*x + 1, 0),
                                      Eq(x**3 - 3*x**2 + 3*x, 1), Eq(E(exp((x - 1)*z), z), 1)])
def test_no_more_digits_are_claimed_than_hold(equation):
    system = System({x: equation})
    found = system.solve(start={"x": 1.3}, raise_on_failure=False)
    assert not found.converged and abs(found["x"] - 1) < found.error
    assert f"error {found.error:.1g}" in repr(found)   # whatever is known of its stability


def test_a_double_root_is_seen_behind_what_is_computed_first():
    found = System({y: a/2, x: exp(x - y)}).solve(a=2.0, start={"x": 1.3}, raise_on_failure=False)
    assert not found.converged and abs(found["x"] - 1) < found.error


@pytest.mark.parametrize("start", [3.0, 23.0, 1e4])
@pytest.mark.parametrize("tolerance", [1e-11, 1e-8, 1e-5])
@pytest.mark.parametrize("above", [0, 1])
def test_what_touches_zero_is_not_said_to_have_no_solution(start, tolerance, above):
    """sin(x)^2 = 0 and sin(x)^2 + 1e-17 = 0, which holds nowhere, are one to rounding; the derivative finds where."""
    F = sin(x)**2 + a*Rational(1, 10**17)
    found = System({x: Eq(F, 0)}).solve(start={"x": start}, a=float(above), tolerance=tolerance, raise_on_failure=False)
    assert not found.converged and "double root there, or none" in found.reason
    assert "no solution" not in found.reason and "no finite" not in found.reason
    exact = System({x: Eq(F.diff(x), 0)}).solve(start={"x": found["x"]}, tolerance=1e-10)["x"]
    assert abs(np.sin(exact)) < 1e-9*exact and abs(exact - found["x"]) < 1e-4*found["x"]


def test_a_jump_across_zero_is_no_root():
    """At the jump of sign(x - 3) its value is 0: sign(x - 3) + b is b there, however small beside the quotient of differences."""
    b = np.array([0.0, 1e-14, -1e-9, 1e-6])
    found = System({x: Eq(sign(x - 3) + a, 0)}).solve(a=b, start={"x": 3.0}, raise_on_failure=False)
    assert found.converged.tolist() == [True, False, False, False] and found["x"][0] == 3
    assert "x changes sign there without being zero: a jump" in found.reason[1]
    found = System({x: Eq(sign(x - y) + a, 0), y: Eq(x + y, 4)}).solve(a=b, raise_on_failure=False)
    assert found.converged.tolist() == [True, False, False, False]


def test_two_unknowns_and_what_follows_from_them():
    system = System({x: x + (x - y)**2 + y - 1, y: Eq(y - 1 + 3*(x - 1)**2, 0)}, observables={"o": 1/(x - Rational(9, 10))})
    found = system.solve(start={"x": 1.02, "y": 0.99}, raise_on_failure=False)
    assert not found.converged
    found = system.solve(start={"x": 1.02, "y": 0.99}, tolerance=1e-8)
    assert abs(found["x"] - 1) < found.error and abs(found["o"]/10 - 1) < found.error


def test_a_fold_does_not_spoil_its_batch_and_the_file_says_the_same(tmp_path):
    system = System({p: 2*a*p**2/(1 + p**2)})
    c = np.array([1.5, 1.0, 1.2])
    found = system.solve(a=c, start={"p": 1.5}, raise_on_failure=False)
    assert found.converged.tolist() == [True, False, True]
    np.testing.assert_allclose(found["p"][[0, 2]], (c + np.sqrt(c*c - 1))[[0, 2]], rtol=1e-10)
    system.export(tmp_path/"fold.py", reference={"a": 1.5})
    solve = runpy.run_path(str(tmp_path/"fold.py"))["solve"]
    with pytest.raises(ArithmeticError, match=r"its error is|stayed above"):
        solve(a=1.0, start={"p": 1.5})
    assert solve(a=1.5)["p"] == pytest.approx(1.5 + np.sqrt(1.25), rel=1e-12)


@pytest.mark.parametrize("rest", [(1 - x**2)*1e-17, (cosh(x) - 2*x)*1e-18, 1e-17*(exp(-x) - x)])
def test_an_equation_that_rounding_fulfils_everywhere_determines_nothing(rest):
    """x = x + (1 - x^2)/10^17 was solved by any start, without an error."""
    found = System({x: x + rest}).solve(start={x: 0.3}, raise_on_failure=False)
    assert not found.converged and "the equations hold to rounding" in found.reason


def test_linear_equations_that_are_nearly_singular_lose_the_digits_that_they_lose():
    """det = 2 a/7: x = (1 - 14/3)/a. Rounding of 1/3 + a is a part 1e-16/a of it."""
    system = System({x: Eq((a + Rational(1, 3))*x + 2*y/3, 1), y: Eq(x/7 + 2*y/7, 2)})
    at = np.array([1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-14])
    found = system.solve(a=at, raise_on_failure=False)
    np.testing.assert_array_equal(found.converged, at > 1e-7)
    off = np.abs(found["x"]*at*3/11 + 1)
    assert (off[:2] < 1e-11).all() and (off[2:] <= found.error[2:]).all() and found.error[2] < 1e-9
    assert system.solve(a=1e-9, tolerance=1e-9).converged
