"""The named functions, their parity and their derivative as a distribution, against quadrature and against numbers."""

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    DiracDelta,
    Function,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    acot,
    atan,
    ceiling,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    floor,
    frac,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tanh,
)

from hermitex import Activation, E, Expectation
from hermitex.errors import BadInput, NoClosedForm, UnknownName
from hermitex.symbolic.activations import NAMED, activation
from hermitex.symbolic.deadline import deadline as budget
from hermitex.symbolic.parity import parity
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.weak import weak_derivative
from hermitex.symbols import kappa, z, z1, z2

m = Symbol("m", real=True)
a = Symbol("a", positive=True)


def expectation(f):
    """E f(z) to 20 digits, split at the exact break points; delta(z - b) gives its coefficient at b times phi(b)."""
    smooth, deltas = sp.S.Zero, sp.S.Zero
    for term in sp.Add.make_args(sp.expand(f)):
        found = term.atoms(DiracDelta)
        if not found:
            smooth += term
            continue
        (delta,) = found
        at = z - delta.args[0]
        coefficient = term.coeff(delta)
        assert z not in at.free_symbols
        deltas += coefficient.subs(z, at)*exp(-at**2/2)/sqrt(2*pi)
    total = deltas.evalf(30)
    with mpmath.workdps(25):
        for p in pieces(smooth, z):
            integrand = sp.lambdify(z, p.expr*exp(-z**2/2)/sqrt(2*pi), "mpmath")
            lo, hi = (mpmath.mpmathify(Max(-13, Min(13, end)).evalf(30)) for end in p[:2])
            if lo < hi:
                total += mpmath.quad(integrand, mpmath.linspace(lo, hi, 5))
    return total


# -- weak derivatives: E[z f] = E[f'] ---------------------------------------------------------------------------------
JUMPING = [
    sign(z), Heaviside(z - Rational(1, 3))*exp(z/2), Abs(z**2 - 1), Max(z, z**2, 1), Min(1, Max(-1, 2*z)),
    Piecewise((z**2, z > 1), (3, z < -1), (z, True)), sign(z**2 - 2)*z, sign(z**3 - z), sign(z)**3, exp(sign(z) + z),
    Piecewise((1, (Abs(z) > 1) & (z < 2)), (0, True)), sign(Max(0, z)), z/Abs(z), floor(2*tanh(z)),
    sign(Abs(z) - 1)*Heaviside(z + 1), 1/(2 + sign(z)), NAMED["elu"](z), NAMED["hardswish"](z), NAMED["celu"](z),
    NAMED["softsign"](z), NAMED["gelu"](z), NAMED["leaky_relu"](z),
]


@pytest.mark.parametrize("f", JUMPING, ids=str)
def test_stein(f):
    assert abs(expectation(z*f) - expectation(weak_derivative(f, z))) < Rational(1, 10**12)


def test_tooth_a_lost_jump_breaks_stein():
    f = sign(z**2 - 2)*z
    without = weak_derivative(f, z).replace(DiracDelta, lambda u: sp.S.Zero)
    assert abs(expectation(z*f) - expectation(without)) > Rational(1, 10)


constants = st.integers(-3, 3).map(sp.Integer)


@settings(max_examples=6)
@given(constants, constants, st.sampled_from([z, z**2, 1 - z]), st.sampled_from([z, sp.Integer(1), z**2 - 1]))
def test_stein_of_random_steps(p, q, left, right):
    f = Piecewise((left, z < Rational(p, 2)), (right, z < Rational(p, 2) + Abs(q)), (sp.Integer(2), True))
    assert abs(expectation(z*f) - expectation(weak_derivative(f, z))) < Rational(1, 10**12)


@pytest.mark.parametrize("f, x, expected", [
    (Max(0, z), z, Heaviside(z)), (Abs(z), z, sign(z)), (sign(z), z, 2*DiracDelta(z)), (Heaviside(z), z, DiracDelta(z)),
    (Max(1, z)**3, z, 3*Heaviside(z - 1)*Max(1, z)**2), (sign(z - m), m, -2*DiracDelta(m - z)),
    (sign(z**2), z, 0), (sign(z**3), z, 2*DiracDelta(z)),
    (sign(z**2 - a), z, 2*DiracDelta(z - sqrt(a)) - 2*DiracDelta(z + sqrt(a))),
    (sign(z1*z2), z1, 2*sign(z2)*DiracDelta(z1)), (acot(z), z, pi*DiracDelta(z) - 1/(1 + z**2)),
    (z/Abs(z), z, 2*DiracDelta(z)), (Function("f")(2*z)*sign(z), z,
                                     sign(z)*Function("f")(2*z).diff(z) + 2*Function("f")(0)*DiracDelta(z)),
])
def test_weak_derivative_exactly(f, x, expected):
    assert sp.expand(weak_derivative(f, x) - expected) == 0


def test_a_jump_at_a_singular_point_is_found():
    assert weak_derivative(atan(1/z), z).coeff(DiracDelta(z)) == pi


def test_boundary_with_a_parameter():
    derivative = weak_derivative(Piecewise((z1, z1 > z2), (z2**2, True)), z1)
    assert derivative.coeff(DiracDelta(z1 - z2)).subs(z2, 3) == 3 - 9


@pytest.mark.parametrize("f", [floor(z), frac(z), Heaviside(z)/z, exp(sign(z1 - z2*sin(z1)))])
def test_refuses_what_it_cannot_prove(f):
    with pytest.raises(NoClosedForm):
        weak_derivative(f, z1 if f.has(z1) else z)


def test_a_window_makes_steps_differentiable():
    assert weak_derivative(floor(z), z, window=(Rational(-1, 2), Rational(3, 2))) == DiracDelta(z) + DiracDelta(z - 1)


# -- parity -----------------------------------------------------------------------------------------------------------
EVEN = [
    log(cosh(z)), NAMED["softplus"](z) - z/2, Max(z, -z), Max(z, 0) - z/2, Piecewise((1, Abs(z) < 1), (0, True)),
    z*tanh(z), Abs(z - 1)*Abs(z + 1), NAMED["gelu"](z) - z/2, log(1 + exp(2*z)) - z, NAMED["silu"](z) - z/2,
    z*E(z1*tanh(z1), z1)*sign(z), E(tanh(z + z1)**2, z1), Heaviside(z - 1) + Heaviside(-z - 1),
]
ODD = [
    1/(1 + exp(-z)) - Rational(1, 2), floor(z) + Rational(1, 2), frac(z) - Rational(1, 2), ceiling(z) - Rational(1, 2),
    z/(1 + Abs(z)), erfc(z) - 1,
    log(z + sqrt(1 + z**2)), sin(z + pi/4) + sin(z - pi/4), sign(z - 1) + sign(z + 1), Max(z, 1) + Min(z, -1),
    tanh(z) - z*E(z*tanh(z), z), Piecewise((1, z > 0), (-1, True)), z*kappa + z**3, E(tanh(z + z1), z1),
    Piecewise((z, Abs(z) < 1), (1/z, True)), log(1 + exp(z)) - log(1 + exp(-z)), NAMED["Phi"](z) - Rational(1, 2),
]
NEITHER = [Max(z, 0), exp(z), z**2 + z, NAMED["gelu"](z), sign(z - 1), log(1 + exp(z)), cos(z + 1), Function("f")(z),
           1/(1 + exp(-z)) - Rational(49, 100), floor(z), E(tanh(z + z1 + 1), z1), kappa + z]


KNOWN = [*((f, 1) for f in EVEN), *((f, -1) for f in ODD), *((f, None) for f in NEITHER),
         (tanh(z)**2 - 1 + 1/cosh(z)**2, 0), (sp.S.Zero, 0), (kappa, 1)]


@pytest.mark.parametrize("f, expected", KNOWN, ids=str)
def test_parity(f, expected):
    assert parity(f, z) == expected


def test_the_parity_of_an_integral_with_a_kink_is_not_looked_for_in_digits():
    """SymPy's evalf of it had no end."""
    with budget(5):
        assert parity(sp.Integral(sp.Max(0, z + kappa - Rational(1, 5)), (kappa, 0, 1)), z) is None


@pytest.mark.parametrize("f", [f for f in EVEN + ODD if not f.has(kappa, Expectation)], ids=str)
def test_parity_against_numbers(f):
    at = Rational(37, 53)
    assert abs((f.subs(z, -at) - parity(f, z)*f.subs(z, at)).evalf(25)) < Rational(1, 10**20)


@settings(max_examples=40)
@given(st.lists(st.sampled_from([z, Abs(z), sign(z), tanh(z), Max(z, 0), exp(-z**2), z**2 - 1, Heaviside(z)]),
                min_size=1, max_size=3), st.integers(-2, 2))
def test_a_proved_parity_is_true(factors, shift):
    f = sp.Mul(*factors) + shift
    proved = parity(f, z)
    if proved is not None:
        for at in (Rational(7, 11), Rational(13, 5)):
            assert abs((f.subs(z, -at) - proved*f.subs(z, at)).evalf(25)) < Rational(1, 10**20)


# -- the table --------------------------------------------------------------------------------------------------------
def test_every_activation_is_its_expression_at_a_point():
    reference = {"relu": 0, "sigmoid": 1/(1 + mpmath.e), "softplus": mpmath.log(1 + 1/mpmath.e),
                 "gelu": -mpmath.ncdf(-1),
                 "silu": -1/(1 + mpmath.e), "elu": mpmath.expm1(-1), "hardtanh": -1, "Phi": mpmath.ncdf(-1),
                 "leaky_relu": mpmath.mpf(-1)/100, "softsign": mpmath.mpf(-1)/2, "cbrt": -1, "relu6": 0,
                 "mish": -mpmath.tanh(mpmath.log(1 + 1/mpmath.e)), "hardswish": mpmath.mpf(-1)/3}
    for name, value in reference.items():
        assert abs(NAMED[name](-1).evalf(15) - sp.Float(value, 15)) < Rational(1, 10**13), name


def test_selu_keeps_mean_and_variance():
    # The defining property [Klambauer et al. 2017]: (mean, variance) = (0, 1) is a fixed point.
    f = NAMED["selu"](z)
    assert abs(expectation(f)) < Rational(1, 10**15) and abs(expectation(f**2) - 1) < Rational(1, 10**15)


def test_parameters_and_calls():
    assert NAMED["leaky_relu"](z, Rational(1, 5)) == Max(0, z) + Min(0, z)/5
    assert NAMED["elu"](2) == 2 and NAMED["swish"](z, 0) == z/2
    with pytest.raises(BadInput, match="at most 2"):
        NAMED["elu"](z, 1, 2)
    assert NAMED["He4"](z) == z**4 - 6*z**2 + 3 and "He7" in NAMED and NAMED["Max"](z, 1) == Max(1, z)


def test_activation_from_anything():
    f = Function("f")
    assert activation("tanh") == activation(sp.tanh) == activation(NAMED["tanh"])
    assert activation(z*tanh(z)).expr == z*tanh(z) and activation("z**2 - 1").expr == z**2 - 1
    assert activation(f).weak_derivative.expr == f(z).diff(z)
    assert isinstance(activation(erf), Activation) and activation(z1**3).expr == z**3


@pytest.mark.parametrize("wrong, error, text", [
    ("rleu", UnknownName, "relu"), (z1*z2, BadInput, "one variable"), ("Max", BadInput, "expression in z"),
    ("He1000", BadInput, "He500"), ("tahn", UnknownName, "tanh"), ("x", UnknownName, r"mean z\?"),
])
def test_wrong_names_are_answered(wrong, error, text):
    with pytest.raises(error, match=text):
        activation(wrong)


def test_what_an_activation_knows():
    relu = NAMED["relu"]
    assert relu.kinks == (0,) and relu.parity is None and relu.weak_derivative.expr == Heaviside(z)
    assert relu.in_L2 is True and NAMED["hardtanh"].kinks == (-1, 1)
    assert repr(relu) == "relu: z -> Max(0, z)" and "mapsto" in relu._repr_latex_()
    assert activation(exp(z**2)).in_L1 is False and activation(exp(z**2/5)).in_L2 is True
