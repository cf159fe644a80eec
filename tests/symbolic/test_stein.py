"""Stein, Price, Isserlis, Mehler, conditioning: each rule against an independent evaluation of both sides."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from sympy import (
    Abs,
    DiracDelta,
    Function,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Symbol,
    asin,
    cos,
    erf,
    erfc,
    exp,
    expand,
    pi,
    sign,
    simplify,
    sin,
    sqrt,
    tanh,
)

import hermitex as hx
from hermitex import Derivative, E, He, stein
from hermitex.check import rules
from hermitex.errors import BadInput, NoClosedForm
from hermitex.symbolic.conditioning import cholesky, sift, sifted
from hermitex.symbolic.undefined import prime, put, tidy
from hermitex.symbols import c, kappa, m, r, rho, z, z1, z2, z3

f, g = Function("f"), Function("g")
s = Symbol("s", positive=True)
QUICK = settings(max_examples=6)
PAIR = {(z1, z2): rho}


def mean(function, knots=()):
    """E[function(z)] by mpmath, independent of the package."""
    with mp.workdps(30):
        points = sorted({mpf(-13), mpf(13), *map(mpf, knots)})
        return mp.quad(lambda x: function(x)*mp.exp(-x*x/2), points)/mp.sqrt(2*mp.pi)


# -- Stein -------------------------------------------------------------------------------------------------------------
SMOOTH = [tanh, sin, erf, lambda u: u**3 + u**2, lambda u: exp(u/3), lambda u: u*cos(u)]


@QUICK
@given(st.sampled_from(range(len(SMOOTH))), st.integers(0, 4), st.fractions(-1, 1, max_denominator=5))
def test_stein_holds_for_smooth_functions(which, k, shift):
    """E[He_k(z) f(a + z/2)] by parts against the integral itself."""
    from hermitex.symbolic.precise import evaluate

    body = SMOOTH[which](Rational(shift.numerator, shift.denominator) + z/2)
    node = E(He(k, z)*body, z)
    left, right = evaluate(node, 20), evaluate(stein(node).result, 20)
    assert abs(left - right) < mpf(10)**-17


@pytest.mark.parametrize(("body", "value"), [
    (z*sign(z), sqrt(2/pi)),
    (z*sign(z - kappa), sqrt(2/pi)*exp(-kappa**2/2)),
    (z*Heaviside(z - 1), exp(-Rational(1, 2))/sqrt(2*pi)),
    ((z**2 - 1)*Max(0, z), 1/sqrt(2*pi)),
    ((z**2 - 1)*Abs(z - 1), 2*exp(-Rational(1, 2))/sqrt(2*pi)),
    ((z**3 - 3*z)*sign(z), -sqrt(2/pi)),
    (z**4, 3),
    (z**2*sign(z)*z, sqrt(2/pi)*2),
])
def test_kinks_and_jumps_become_point_masses(body, value):
    result = stein(body, z).result
    result = result.doit()
    assert simplify(result - value) == 0


def test_the_function_may_stay_undefined():
    assert stein(z*f(kappa + r*z), z).result == r*E(prime(f)(kappa + r*z), z)
    assert stein((z**3 - 3*z)*f(z), z).result == E(prime(f, 3)(z), z)
    assert stein(z**2*f(z), z).result == E(f(z), z) + E(prime(f, 2)(z), z)
    assert stein(E(z1*f(z1)*g(z2), z1, z2, cov=PAIR)).result == (
        E(prime(f)(z1)*g(z2), z1, z2, cov=PAIR) + rho*E(f(z1)*prime(g)(z2), z1, z2, cov=PAIR))


def test_the_trace_names_the_rules_and_checks():
    reduced = stein((z**2 - 1)*tanh(z) + z*f(z) + z**4, z)
    assert [step.rule for step in reduced.steps] == ["Hermite", "Isserlis"]
    assert reduced.check()
    assert reduced.steps[0].source == "stein1981"


def test_a_lost_factor_is_seen():
    """Stein without the scale of the argument, without the covariance: both must fail."""
    from hermitex import check

    assert check(E(z*f(r*z), z), E(prime(f)(r*z), z)).factor == r
    wrong = check(E(z*f(z), z, cov={(z, z): c}), E(prime(f)(z), z, cov={(z, z): c}))
    assert wrong.factor == c


def test_stein_needs_a_variable():
    with pytest.raises(BadInput, match="name the variables"):
        stein(kappa**2)
    assert stein(kappa*f(kappa), kappa).result == E(prime(f)(z), z)


# -- Price -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("u", "v"), [(sign, sign), (erf, erf), (lambda x: Max(0, x), lambda x: Max(0, x)),
                                      (sin, cos), (lambda x: x**3, lambda x: x**2 + x), (Abs, sign)])
def test_price(u, v):
    """d/drho of the closed form is the node of the derivatives."""
    node = E(u(z1)*v(z2), z1, z2, cov=PAIR)
    by_rule = node.diff(rho).doit()
    by_value = node.doit().diff(rho)
    for at in (Rational(1, 3), Rational(-3, 5)):
        assert abs((by_rule - by_value).subs(rho, at).evalf(30)) < Rational(1, 10**25)


def test_price_on_the_diagonal_has_a_half():
    node = E(f(z), z, cov={(z, z): c})
    assert node.diff(c) == E(prime(f, 2)(z), z, cov={(z, z): c})/2
    concrete = E(cos(z), z, cov={(z, z): c})
    assert simplify(concrete.diff(c).doit() - concrete.doit().diff(c)) == 0
    assert simplify(2*concrete.diff(c).doit() - concrete.doit().diff(c)) != 0


def test_price_recovers_the_arcsine_law():
    slope = E(sign(z1)*sign(z2), z1, z2, cov=PAIR).diff(rho)
    assert simplify(slope - (2/pi*asin(rho)).diff(rho)) == 0


# -- derivatives under E -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("u", [sign, tanh, lambda x: Piecewise((x**2, x > 1), (0, True)),
                               *(pytest.param(u, marks=pytest.mark.slow) for u in (
                                   Abs, erf, lambda x: Max(0, x), lambda x: Min(1, Max(-1, x))))])
@pytest.mark.parametrize("parameter", [m, s])
def test_derivative_under_the_node(u, parameter):
    """Against a central difference of the integral at 30 digits."""
    node = E(u(m + s*z), z)
    point = {m: Rational(2, 5), s: Rational(7, 5)}
    step = Rational(1, 10**8)

    def value(shift):
        at = {**point, parameter: point[parameter] + shift}
        from hermitex.symbolic.precise import evaluate

        return evaluate(node.subs(at), 28)

    with mp.workdps(35):
        central = (value(step) - value(-step))/mpf(2)*10**8
        from hermitex.symbolic.precise import evaluate

        assert abs(evaluate(node.diff(parameter).subs(point), 25) - central) < mpf(10)**-13


def test_the_derivative_of_mu_0_is_r_mu_1():
    mu0 = E(f(r*kappa + sqrt(c)*z), z)
    mu1 = E(z*f(r*kappa + sqrt(c)*z), z)/sqrt(c)
    from hermitex import check

    assert check(mu0.diff(kappa), r*mu1).status == "proved"
    assert check(mu0.diff(kappa), mu1).factor == r


# -- Isserlis and Mehler -----------------------------------------------------------------------------------------------
@QUICK
@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), st.lists(st.integers(-2, 2), min_size=9, max_size=9))
def test_isserlis(powers, entries):
    """Moments of A w for independent w, by the moments of w one by one."""
    variables = (z1, z2, z3)
    rows = [entries[:3], entries[3:6], entries[6:]]
    cov = {(variables[i], variables[j]): sum(a*b for a, b in zip(rows[i], rows[j], strict=True))
           for i in range(3) for j in range(i, 3)}
    body = z1**powers[0]*z2**powers[1]*z3**powers[2]
    node = E(body, *variables, cov=cov)
    images = {v: sum(a*w for a, w in zip(row, variables, strict=True)) for v, row in zip(variables, rows, strict=True)}
    independent = E(expand(body.subs(images, simultaneous=True)), *variables)
    value = rules.isserlis(node) if hasattr(node, "bound") else node
    by_hand = rules.isserlis(independent) if hasattr(independent, "bound") else independent
    assert expand(value - by_hand) == 0


def test_isserlis_counts_pairings():
    assert [rules.isserlis(E(z**n, z)) for n in (2, 4, 6, 8)] == [1, 3, 15, 105]
    assert rules.isserlis(E(z1**2*z2**2, z1, z2, cov=PAIR)) == 1 + 2*rho**2
    assert rules.isserlis(E(tanh(z), z)) is None


def test_mehler_projects():
    assert rules.mehler(E(He(3, z1)*He(3, z2), z1, z2, cov=PAIR)) == 6*rho**3
    assert rules.mehler(E(He(3, z1)*He(2, z2), z1, z2, cov=PAIR)) == 0
    node = E(z1**3*tanh(z2), z1, z2, cov=PAIR)
    assert expand(stein(node).result - stein(rules.mehler(node)).result).subs(rho, Rational(1, 2)).equals(0)


# -- conditioning ------------------------------------------------------------------------------------------------------
def test_cholesky_factorises():
    from sympy import Matrix

    cov = Matrix([[c, rho, 0], [rho, 2, r], [0, r, 1 + r**2]])
    lower = cholesky(cov)
    assert (lower*lower.T - cov).applyfunc(simplify) == Matrix.zeros(3, 3)
    assert cholesky(Matrix([[1, 1], [1, 1]])) == Matrix([[1, 0], [1, 0]])


def test_point_masses():
    assert sift(E(DiracDelta(z - kappa)*cos(z), z)) == sqrt(2)*exp(-kappa**2/2)*cos(kappa)/(2*sqrt(pi))
    assert sift(E(DiracDelta(z1)*DiracDelta(z2), z1, z2, cov=PAIR)) == 1/(2*pi*sqrt(1 - rho**2))
    # E[delta'(z - a) f] = -(f phi)'(a)
    first = sift(E(DiracDelta(z - kappa, 1)*sin(z), z))
    assert simplify(first + (sin(kappa)*exp(-kappa**2/2)/sqrt(2*pi)).diff(kappa)) == 0
    assert sift(E(DiracDelta(z)*sign(z), z)) is None  # a mass on a jump has no value
    assert sift(E(tanh(z), z)) is None


def test_a_mass_where_a_factor_vanishes_is_none():
    c = Symbol("c", positive=True)
    soft = sign(z)*Max(Abs(z) - c, 0)  # SymPy's derivative of it holds delta(z) Max(|z| - c, 0)
    assert soft.diff(z).has(DiracDelta) and not sifted(E(soft.diff(z)**2, z)).has(DiracDelta)
    assert E(soft.diff(z)**2, z).doit() == erfc(sqrt(2)*c/2)
    assert sift(E(DiracDelta(z)*Abs(z)/z, z)) is None  # it does not vanish there
    assert sift(E(DiracDelta(z)*sign(z)*cos(z), z)) is None
    assert sifted(E(DiracDelta(z)*sign(z)*sin(z), z)) == 0
    free = Symbol("c", real=True)  # Max(-c, 0) beside a jump: nothing is known of it
    assert sift(E(DiracDelta(z)*sign(z)*Max(Abs(z) - free, 0), z)) is None


@pytest.mark.parametrize("seed", range(6))
def test_second_derivatives_of_kinks_as_sympy_takes_them(seed):
    """E[f''] = E[(z^2 - 1) f], with the masses that f'' has at the kinks; without them it fails."""
    draw = Random(seed)
    u = draw.choice([1, 2, -3])*z - Rational(draw.randrange(-4, 5), 3)
    kink = draw.choice([lambda u: Max(u, 0), Abs, lambda u: Min(u, -u/2), lambda u: u*Heaviside(u)])
    f = kink(u)*draw.choice([tanh, cos, lambda x: x**2 + 1])(z + kappa)
    second = f.diff(z, 2)
    here, there = (hx.compile(E(body, z)) for body in (second, (z**2 - 1)*f))
    assert here(kappa=0.3) == pytest.approx(there(kappa=0.3), rel=1e-10)
    at = {kappa: Rational(3, 10)}
    assert E(second.subs(at), z).evalf() == pytest.approx(here(kappa=0.3), rel=1e-12)
    without = hx.compile(E(second.replace(DiracDelta, lambda *_: S.Zero), z))
    assert abs(without(kappa=0.3) - there(kappa=0.3)) > 1e-3


def test_a_delta_on_a_hyperplane_leaves_the_other_average():
    """E[delta(z1 - kappa z2) tanh(z2)^2] = E[exp(-kappa^2 z^2/2) tanh(z)^2]/sqrt(2 pi)."""
    node = E(DiracDelta(z1 - kappa*z2)*tanh(z2)**2, z1, z2)
    want = mean(lambda x: mp.exp(-mpf("0.045")*x*x)*mp.tanh(x)**2)/mp.sqrt(2*mp.pi)
    assert hx.compile(node)(kappa=0.3) == pytest.approx(float(want), rel=1e-12)
    assert not node.doit().has(DiracDelta)


@pytest.mark.parametrize("body", [DiracDelta(tanh(z) - kappa), DiracDelta(z)*sign(z)])
def test_a_delta_that_has_no_mass_says_which_has(body):
    for ask in (lambda: hx.compile(E(body, z)), lambda: E(body.subs(kappa, Rational(1, 3)), z).evalf()):
        with pytest.raises(NoClosedForm, match="if its argument is linear in a normal"):
            ask()


# -- undefined functions -----------------------------------------------------------------------------------------------
def test_derivatives_of_undefined_functions_are_functions():
    assert Derivative(f)(z) == tidy(f(z).diff(z))
    assert tidy(f(kappa + r*z).diff(z, 2)) == r**2*Derivative(f, 2)(kappa + r*z)
    assert str(Derivative(f)(r*z)) == "f'(r*z)"
    assert Derivative(f)(z).subs(f, sin) == cos(z)
    assert put(E(z*Derivative(f)(r*z), z), {f: tanh}) == E(z*(1 - tanh(r*z)**2), z)
    assert put(Derivative(f)(z), {f: lambda u: Max(0, u)}) == Heaviside(z)
    from sympy import Derivative as SymPyDerivative

    assert Derivative(sin(z), z) == SymPyDerivative(sin(z), z)


@pytest.mark.parametrize(("body", "knots"), [(Max(0, z - 1)*z**2, [1]), (Abs(z)*z**2, [0])])
def test_third_route(body, knots):
    from sympy import lambdify

    from hermitex.symbolic.precise import evaluate

    function = lambdify(z, body, "mpmath")
    assert abs(evaluate(stein(body, z).result, 20) - mean(function, knots)) < mpf(10)**-17
