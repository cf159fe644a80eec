"""Programs: one expression in three arithmetics, and its tails."""

import numpy as np
import pytest
import sympy as sp
from flint import acb, ctx

import hermitex as hx
from hermitex.errors import NoClosedForm
from hermitex.numbers.function_table import TABLE
from hermitex.numbers.program import Program, Undecided, ball_constant, middle_of
from hermitex.numbers.tail_forms import weighted
from hermitex.symbolic.arithmetic import mp

z, a = sp.symbols("z a", real=True)
POINTS = (-2.3, 0.4, 1.7)
FORMULAS = ("tanh(z)", "1 - tanh(z)", "Phi(z)", "log(Phi(z))", "gelu(z)", "softplus(z)", "Max(0, z, z**2)", "floor(z)*z",
            "Piecewise((z, z > 1), (-z, z < -1), (z**2, True))", "abs(z)**(-1/3)", "exp(z) - 1", "log(sigmoid(z))",
            "z*erf(z) + z + 1", "He(20, z)", "mish(z)", "selu(z)", "atan(z)", "Heaviside(z - 1)", "exp(z) - exp(2*z)",
            "LambertW(exp(z))", "log(1 + erf(z))", "1 - sigmoid(z)", "1 - tanh(z)**2", "sinh(z)/cosh(2*z)", "frac(z)", "asinh(z)")


@pytest.mark.parametrize("text", FORMULAS)
def test_three_arithmetics_agree(text):
    program = Program(hx.parse(text), [hx.symbols.z])
    floats = program.values(np.array(POINTS))
    for x, value in zip(POINTS, floats, strict=True):
        with ctx.workprec(120), mp.workprec(120):
            ball, digits = program.balls(acb(x)), program.digits(mp.mpf(x))
        assert float(ball.real.mid()) == pytest.approx(float(digits), rel=1e-15)
        assert value == pytest.approx(float(digits), rel=1e-13)  # He_20 cancels a digit


TAILS = (("1 - tanh(z)", 400, 2*sp.exp(-800)), ("erfc(z)", 40, sp.erfc(40)), ("1 - erf(z)", 40, sp.erfc(40)),
         ("log(sigmoid(z))", 50, -sp.exp(-50)), ("log(Phi(z))", 9, sp.log(sp.erfc(-9/sp.sqrt(2))/2)), ("exp(z) - 1", 1e-20, 1e-20),
         ("1 - cos(z)", 1e-20, 5e-41), ("exp(z)", 5000, sp.exp(5000)), ("Max(exp(z), exp(2*z))", 5000, sp.exp(10000)),
         ("exp(-z**2)", 30.3, sp.exp(-sp.Rational(30.3)**2)), ("Phi(z)", -30, sp.erfc(30/sp.sqrt(2))/2),
         ("2 - erfc(z)", -30, sp.erfc(30)),
         ("1 - tanh(z)**2", 300, 4*sp.exp(-600)))


@pytest.mark.parametrize("text, at, value", TAILS)
def test_tails_keep_their_digits(text, at, value):
    found = Program(hx.parse(text), [hx.symbols.z]).floats(np.array([float(at)]))
    with mp.workdps(40):
        m, k, wanted = mp.mpf(float(found.m[0])), mp.mpf(float(np.max(found.k))), mp.make_mpf(sp.N(value, 40)._mpf_)
        assert abs(m*mp.exp(k)/wanted - 1) < 3e-13  # 900 roundings of an exponent


def test_parameters_are_variables_that_broadcast():
    program = Program(sp.exp(a*z)*sp.tanh(z), (z, a))
    points, parameters = np.linspace(-1, 1, 4), np.array([[0.5], [1000.0]])
    found = program.floats(points, parameters)
    assert np.broadcast_to(found.m, (2, 4)).shape == (2, 4)
    assert np.allclose(found.logarithm()[1], 1000*points + np.log(np.abs(np.tanh(points))), atol=1e-12)


def test_equal_subexpressions_are_evaluated_once():
    program = Program(sp.tanh(z) + sp.tanh(z)**2 + sp.exp(sp.tanh(z)), [z])
    assert [op.name for op in program.operations].count("tanh") == 1


def test_the_weight_cancels_exactly():
    assert weighted(sp.exp(z**2/2)/(1 + z**2), (z,)) == 1/(1 + z**2)
    program = Program(weighted(sp.exp(-10**18*(z - sp.Rational(7, 5))**2), (z,)), [z])
    assert program.floats(np.array([1.4 + 1e-9])).logarithm()[0] == pytest.approx(-1.98, rel=1e-6)


def test_a_ball_on_a_switch_is_undecided_and_frozen_it_is_analytic():
    program = Program(sp.Abs(z), [z])
    across = acb("0 +/- 1")
    with pytest.raises(Undecided):
        program.balls(across)
    frozen = program.frozen_at(acb(2))
    assert program.balls(acb(-3), frozen=frozen) == -3


def test_complex_values():
    program = Program(sp.exp(sp.I*z)*sp.Abs(sp.exp(sp.I*z)), [z])
    assert program.values(np.array([1.0]))[0] == pytest.approx(np.exp(1j), rel=1e-15)


def test_constants_are_balls_that_hold_them():
    with ctx.workprec(80):
        ball = ball_constant(sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2*sp.sqrt(6)))  # exactly 0, which no precision shows
    assert ball.real.contains(0) and float(ball.real.rad()) < 1e-100


def test_what_has_no_number_is_refused():
    with pytest.raises(NoClosedForm, match="has no value"):
        Program(a*z, [z])
    with pytest.raises(NoClosedForm, match="no numeric rule"):
        Program(sp.Function("f")(z), [z])


@pytest.mark.parametrize("u", [5, 2000, 10**7])
def test_tails_keep_their_digits_far_out(u):
    """Balls of erfc, which flint alone loses beyond some 10^5, and of log Phi, which is made of it, against mpmath."""
    with ctx.workprec(160), mp.workprec(160):
        tail = TABLE["erfc"].ball(acb(u)).real
        assert tail.rel_accuracy_bits() > 80 and abs(middle_of(tail)/mp.erfc(u) - 1) < mp.mpf(2)**-80
        chance = TABLE["log_normal_probability"].ball(acb(-u), False).real
        assert chance.rel_accuracy_bits() > 80
        assert abs(middle_of(chance)/mp.log(mp.erfc(u/mp.sqrt(2))/2) - 1) < mp.mpf(2)**-80
