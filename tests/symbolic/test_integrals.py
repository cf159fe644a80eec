"""Exact Gaussian integration: a catalogue against mpmath at 30 digits, identities, refusals, and planted errors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Abs, Heaviside, Max, Min, Piecewise, Rational, Symbol, cos, erf, erfc, exp, log, pi, sign, sin, sqrt, tanh
from sympy.stats import Geometric, Poisson

import hermitex as hx
from hermitex import E, Expectation, closed_form
from hermitex.errors import Divergent, NoClosedForm
from hermitex.symbolic.integrals import integrate_or_keep, normal_form
from hermitex.symbolic.special import sign_correlation
from hermitex.symbols import c, kappa, r, z, z1, z2, z3

_spec = importlib.util.spec_from_file_location("catalogue", Path(__file__).with_name("catalogue.py"))
assert _spec is not None and _spec.loader is not None
catalogue = importlib.util.module_from_spec(_spec)
sys.modules.setdefault("catalogue", catalogue)
_spec.loader.exec_module(catalogue)
BY_NAME, CATALOGUE, PARAMETRIC = catalogue.BY_NAME, catalogue.CATALOGUE, catalogue.PARAMETRIC
He, number, reference = catalogue.He, catalogue.number, catalogue.reference

rho = Symbol("rho", real=True)
QUICK = ["quintic", "cos u^2", "gelu", "erf erf shifted", "relu", "sign cubic", "nested clip", "elu", "erf Heaviside",
         "cos clip", "sqrt Abs", "sqrt Abs log Abs"]
QUICK_PARAMETRIC = ["erf", "gelu^2", "relu", "clip", "elu", "Abs^(3/2)", "sin relu", "erf relu"]


def check_moments(entry, orders):
    with mpmath.workdps(36):
        for k, expected in enumerate(reference(entry, orders)):
            found = number(closed_form(E(He(k) * entry.function(z), z)))
            assert abs(found - expected) <= mpmath.mpf(10) ** -27 * (1 + abs(expected)), (entry.name, k)


def mu(entry, k):
    u = r * kappa + sqrt(c) * z
    return closed_form(E(He(k) * entry.function(u), z)) / sqrt(c) ** k


def check_mu(entry, orders=4):
    at = {kappa: Rational(7, 10), r: Rational(6, 5), c: Rational(4, 5)}
    m, s = (r * kappa).subs(at), sqrt(c).subs(at)
    with mpmath.workdps(36):
        for k, expected in enumerate(reference(entry, orders, shift=m, scale=s)):
            found = number(mu(entry, k).subs(at))
            expected = expected / number(s, 40) ** k
            assert abs(found - expected) <= mpmath.mpf(10) ** -26 * (1 + abs(expected)), (entry.name, k)


# -- the catalogue ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", QUICK)
def test_moments_of_the_catalogue_quick(name):
    check_moments(BY_NAME[name], 3)


@pytest.mark.slow
def test_the_whole_catalogue_has_closed_forms_and_none_is_wrong():
    assert len(CATALOGUE) >= 49
    missed = []
    for entry in CATALOGUE:
        try:
            check_moments(entry, 7)
        except NoClosedForm:
            missed.append(entry.name)
    assert missed == []


@pytest.mark.parametrize("name", QUICK_PARAMETRIC)
def test_conditional_coefficients_quick(name):
    check_mu(BY_NAME[name], 2)


@pytest.mark.slow
@pytest.mark.parametrize("entry", PARAMETRIC[::2], ids=lambda e: e.name)
def test_conditional_coefficients_of_the_catalogue(entry):
    check_mu(entry)


def in_floats(expr, values):
    names = {"OwenT": scipy.special.owens_t, "erfi": scipy.special.erfi,
             "ReErf": lambda x, y: np.real(scipy.special.erf(x + 1j * y)),
             "ImErf": lambda x, y: np.imag(scipy.special.erf(x + 1j * y)),
             "SignCorrelation": np.vectorize(lambda *a: float(sign_correlation(*a)))}
    numpy = sp.lambdify(kappa, expr.subs({r: 1, c: 1}), [names, "scipy", "numpy"])
    return numpy(values) + 0 * values


def check_floats(entry):
    values = np.array([-30.0, -10.0, -1.0, 0.0, 1.0, 10.0, 30.0])
    for k in range(3):
        formula = mu(entry, k)
        if formula.has(sp.hyper):
            return
        with np.errstate(all="ignore"):
            assert np.all(np.isfinite(in_floats(formula, values))), (entry.name, k, formula)


@pytest.mark.parametrize("name", ["gelu^2", "relu", "elu", "erf exp", "clip"])
def test_no_nan_in_floats_at_large_parameters_quick(name):
    check_floats(BY_NAME[name])


@pytest.mark.slow
@pytest.mark.parametrize("entry", PARAMETRIC, ids=lambda e: e.name)
def test_no_nan_in_floats_at_large_parameters(entry):
    check_floats(entry)


def test_results_are_compact():
    assert mu(BY_NAME["erf"], 3).count_ops() < 60
    assert closed_form(E(He(16) * erf(kappa + sqrt(c) * z), z)).count_ops() < 150
    assert closed_form(E(BY_NAME["gelu"].function(z + kappa), z)).count_ops() < 40


@pytest.mark.parametrize("name", ["erf", "relu", "gelu", "sign"])
def test_derivatives_of_mu_0_are_the_conditional_coefficients(name):
    """mu_k = d^k/dm^k E sigma(m + sqrt(c) z): through kinks and jumps."""
    m = Symbol("m", real=True)
    at = {m: Rational(3, 7), c: Rational(5, 4)}
    base = closed_form(E(BY_NAME[name].function(m + sqrt(c) * z), z))
    for k in range(4):
        direct = closed_form(E(He(k) * BY_NAME[name].function(m + sqrt(c) * z), z)) / sqrt(c) ** k
        assert abs(number((base.diff(m, k) - direct).subs(at))) < 1e-28


# -- known values ----------------------------------------------------------------------------------------------------
X = Symbol("mu", real=True) + Symbol("sigma", positive=True) * z


@pytest.mark.parametrize(("node", "value"), [
    (E(z**20, z), sp.factorial2(19)),
    (E(erf(z / 2 + Rational(1, 5)), z), erf(sqrt(6) / 15)),
    (E(sin(X) ** 2, z) - E(sin(X), z) ** 2, None),
    (E(Max(0, X), z), None),
    (E(erf(X), z), None),
    (E(log(Abs(z)), z), -(sp.EulerGamma + log(2)) / 2),
    (E(Abs(z) ** Symbol("s", positive=True), z), None),
    (E(Abs(z) ** Rational(1, 3) * Heaviside(z - 1) * Heaviside(2 - z), z), None),
    (E(sp.DiracDelta(z**2 - 1), z), exp(Rational(-1, 2)) / sqrt(2 * pi)),
    (E(exp(z)*sp.DiracDelta(2*z - 1, 1), z), -exp(Rational(3, 8)) / (8 * sqrt(2 * pi))),
    (E(erf(z) ** 2, z), 2 * sp.asin(Rational(2, 3)) / pi),
    (E(tanh(z), z), 0),
    (E(1 / (1 + exp(-z)), z), Rational(1, 2)),
    (E(cos(40*z) / (1 + exp(z)), z), exp(-800) / 2),
    (E(Abs(z) * erf(z)**2 / (1 + exp(-X.subs(Symbol("mu", real=True), 0))), z), None),
])
def test_everyday_requests(node, value):
    found = closed_form(node)
    assert not found.has(Expectation) and not found.has(sp.I)
    at = {Symbol("mu", real=True): Rational(2, 5), Symbol("sigma", positive=True): Rational(3, 2),
          Symbol("s", positive=True): Rational(5, 3)}
    if value is None:
        with mpmath.workdps(30):
            values = {n: sp.Float(quad(n.subs(at)), 30) for n in node.atoms(Expectation)}
            expected = number(node.xreplace(values))
        assert abs(number(found.subs(at)) - expected) < 1e-24
    else:
        assert found == value or abs(number(found - value)) < 1e-28


def quad(node):
    body, (x,) = node.open()
    roots = [number(-a.subs(x, 0) / a.diff(x), 40)
             for s in body.atoms(Max, Min, Abs, sign, Heaviside) for a in s.args if a.has(x)]
    f = sp.lambdify(x, body, "mpmath")
    return mpmath.quad(lambda t: f(t) * mpmath.npdf(t), sorted([-16, -8, -4, -1, 1, 4, 8, 16, *roots]))


# -- several variables -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slope", [sqrt(1 - rho**2), Abs(rho), sqrt(2)*sqrt(kappa - rho)])
def test_square_roots_and_sizes_are_slopes_that_are_not_negative(slope):
    assert closed_form(E(sign(c + slope*z), z)) == erf(sqrt(2)*c/(2*slope))
    ramp = closed_form(E(Max(0, slope*z - c), z))
    at = {rho: Rational(3, 5), kappa: 2, c: Rational(1, 3)}
    assert abs((ramp - E(Max(0, slope*z - c), z)).subs(at).evalf(20)) < 1e-18
    ends = {rho: 0 if slope == Abs(rho) else 1, kappa: 1}
    assert ramp.subs(ends) == 0 and closed_form(E(Max(0, c - slope*z), z)).subs(ends) == c


CORRELATED = {(z1, z2): rho}
ARC = rho * sp.asin(rho) + sqrt(1 - rho**2)


@pytest.mark.parametrize(("body", "value"), [
    (z1 * z2, rho),
    (z1**2 * z2**4, 3 + 12 * rho**2),
    (sign(z1) * sign(z2), 2 * sp.asin(rho) / pi),
    (Max(0, z1) * Max(0, z2), ARC / (2 * pi) + rho / 4),
    (Heaviside(z1) * Heaviside(z2), Rational(1, 4) + sp.asin(rho) / (2 * pi)),
    (Abs(z1 * z2), 2 * ARC / pi),
    (erf(z1) * erf(z2), 2 * sp.asin(2 * rho / 3) / pi),
    (cos(z1) * cos(z2), exp(-1) * sp.cosh(rho)),
    (Max(z1, z2), sqrt((1 - rho) / pi)),
    (Abs(z1 + z2), 2 * sqrt((1 + rho) / pi)),
    (Max(0, z1) * erf(z2), rho / sqrt(3 * pi)),
])
def test_correlated_pairs(body, value):
    for at in (Rational(-3, 5), Rational(1, 3)):
        found = closed_form(E(body, z1, z2, cov=CORRELATED))
        assert abs(number((found - value).subs(rho, at))) < 1e-28, found


def test_three_variables():
    cov = {(z1, z2): rho, (z1, z3): Rational(1, 2), (z2, z3): Rational(1, 2)}
    found = closed_form(E(sign(z1) * sign(z2) * z3**2, cov=cov))
    # Stein on z3: 2/pi (asin rho + 2 C13 C23 (1 - rho)/sqrt(1 - rho^2) - (C13^2 + C23^2)(...)): here by d/dC
    at = Rational(1, 5)
    a, b, p = Rational(1, 2), Rational(1, 2), rho
    value = 2 * sp.asin(p) / pi + 2 / (pi * sqrt(1 - p**2)) * (2 * a * b - p * (a**2 + b**2))
    assert abs(number((found - value).subs(rho, at))) < 1e-28
    assert closed_form(E(sign(z1 * z2 * z3), z1, z2, z3)) == 0
    assert closed_form(E(Max(0, 2 * z1 + z2) * Max(0, z1 - z3), z1, z2, z3)).has(sp.atan)


PAIRS = [lambda u: erf(u), lambda u: Max(0, u), lambda u: u**3, lambda u: sin(u), lambda u: exp(-(u**2))]


@settings(max_examples=5)
@given(f=st.sampled_from(PAIRS), g=st.sampled_from(PAIRS),
       q=st.fractions(-1, 1, max_denominator=9).filter(lambda q: abs(q) < 1))
def test_price(f, g, q):
    """d/drho E[f(u) g(v)] = E[f'(u) g'(v)] [price1958]."""
    def slope(h):
        return Heaviside(z) if h(z) == Max(0, z) else h(z).diff(z)

    value = closed_form(E(f(z1) * g(z2), z1, z2, cov=CORRELATED)).diff(rho)
    right = closed_form(E(slope(f).subs(z, z1) * slope(g).subs(z, z2), z1, z2, cov=CORRELATED))
    q = Rational(q.numerator, q.denominator)
    assert abs(number((value - right).subs(rho, q))) < 1e-26


# -- identities ------------------------------------------------------------------------------------------------------
fractions = st.fractions(-3, 3, max_denominator=7).map(lambda q: Rational(q.numerator, q.denominator))
entries = st.sampled_from([BY_NAME[n] for n in ("relu", "gelu", "erf shifted", "clip", "sin", "Abs u^2 - 1", "cosh")])


@settings(max_examples=8)
@given(f=entries, g=entries, a=fractions, b=fractions)
def test_linearity(f, g, a, b):
    whole = closed_form(E(a * f.function(z) + b * g.function(z), z))
    parts = a * closed_form(E(f.function(z), z)) + b * closed_form(E(g.function(z), z))
    assert abs(number(whole - parts)) < 1e-28


SMOOTH_SLOPES = ["gelu", "erf shifted", "sin", "cosh", "u^2 Gaussian", "erf exp", "gelu^2", "erf erf shifted"]


def stein_gap(entry, a, b):
    f = entry.function(a * z + b)
    return number(closed_form(E(z * f, z)) - closed_form(E(f.diff(z), z)))


@settings(max_examples=8)
@given(name=st.sampled_from(SMOOTH_SLOPES), a=fractions.filter(lambda q: 0 < abs(q) < 1), b=fractions)
def test_stein(name, a, b):
    """E[z f(z)] = E[f'(z)] [stein1981]."""
    assert abs(stein_gap(BY_NAME[name], a, b)) < 1e-26


@settings(max_examples=8)
@given(entry=entries, m=fractions, s=fractions.filter(lambda q: 0 < q < 2))
def test_scaling_agrees_with_symbolic_parameters(entry, m, s):
    """The value at numbers is the parametric formula at those numbers."""
    symbolic = closed_form(E(entry.function(kappa + sqrt(c) * z), z))
    direct = closed_form(E(entry.function(m + s * z), z))
    assert abs(number(symbolic.subs({kappa: m, c: s**2}) - direct)) < 1e-26


@settings(max_examples=6)
@given(entry=entries, k=st.integers(0, 5))
def test_symmetry(entry, k):
    """z and -z have the same law."""
    f = He(k) * entry.function(z)
    assert abs(number(closed_form(E(f, z)) - closed_form(E(f.subs(z, -z), z)))) < 1e-27


def test_planted_errors_are_caught():
    """The checks above fail on a lost factor, the physicists' He and a wrong kink."""
    with pytest.raises(AssertionError):
        check_moments(catalogue.Entry("wrong kink", lambda u: Max(0, u - Rational(1, 50)), (0,)), 1)
    planted = catalogue.Entry("planted", BY_NAME["erf"].function)
    original = catalogue.He
    catalogue.He = lambda k: sp.hermite(k, z)
    try:
        with pytest.raises(AssertionError):
            check_moments(planted, 3)
    finally:
        catalogue.He = original
    f = erf(2 * z + 1)
    assert abs(number(closed_form(E(z * f, z)) - closed_form(E(f.diff(z) / 2, z)))) > 1e-3


# -- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("body", [exp(z**2), z * exp(z**2), 1 / z, z**-2, exp(z**2 / 2), Abs(z) ** -1])
def test_divergent(body):
    with pytest.raises(Divergent):
        closed_form(E(body, z))


@pytest.mark.parametrize(("body", "value"), [(z**2*sp.floor(z), -1), (sp.ceiling(2*z), 1), (sp.frac(z)*exp(-z**2), 1/sqrt(3))])
def test_steps_are_odd_about_a_constant(body, value):
    """floor(z) + floor(-z) = -1 almost everywhere; not so for floor(a z) at a = 0."""
    assert closed_form(E(body, z)) - Rational(1, 2)*value == 0
    with pytest.raises(NoClosedForm):
        closed_form(E(body.xreplace({z: Symbol("a", real=True)*z}), z))


def test_refusals_say_why():
    a = Symbol("a", real=True)
    with pytest.raises(NoClosedForm, match=r"1 - 2\*a > 0, which is not provable"):
        closed_form(E(exp(a * z**2), z))
    with pytest.raises(NoClosedForm, match="tanh") as caught:
        closed_form(E(z**2 + tanh(z) ** 2 + Max(0, z), z))
    assert caught.value.integral == E(tanh(z) ** 2, z)
    with pytest.raises(NoClosedForm):
        closed_form(E(sp.floor(z)**2, z))
    with pytest.raises(NoClosedForm):
        closed_form(E(exp(sqrt(1 + z**2)), z))
    positive = Symbol("a", positive=True)
    assert closed_form(E(exp(-positive * z**2), z)) == 1 / sqrt(1 + 2 * positive)


def test_a_parameter_of_either_sign():
    a = Symbol("a", real=True)
    for body in (Max(0, a * z), z * Max(0, a * z), sign(z - a) * sign(z + a), Abs(a - z**2), exp(-Abs(a * z))):
        found = closed_form(E(body, z))
        for at in (Rational(-2, 3), Rational(5, 4)):
            assert abs(number(found.subs(a, at) - closed_form(E(body.subs(a, at), z)))) < 1e-28
    assert closed_form(E(Abs(z1**2 - z2**2), z1, z2)) == 4 / pi
    assert closed_form(E(sign(z1) * sign(z3) * sign(z1 + z2) * sign(z2 + z3), z1, z2, z3)) == Rational(1, 3)


def test_nested_nodes_are_joined():
    assert closed_form(E(E(tanh(z1 + z2), z1), z2)) == 0
    assert closed_form(E(z2 * E(Max(0, z1 + z2), z1), z2)) == Rational(1, 2)
    squared = E(E(sign(z1 + z2), z1) ** 2, z2)
    assert abs(number(closed_form(squared) - Rational(1, 3))) < 1e-28


def test_refusals_use_the_names_of_the_user():
    assert hx.exponents("tanh(z1)**2 + z2**3").information_exponent == 1  # asks the same integral over coordinates of its own
    with pytest.raises(NoClosedForm) as caught:
        closed_form(E(Symbol("a") * tanh(z) ** 2, z))
    assert "_" not in str(caught.value).split("Numeric")[0]


def test_integrate_or_keep():
    node = E(tanh(z) ** 2, z)
    assert integrate_or_keep(node) == node
    assert integrate_or_keep(E(z**2 * node, z)) == node
    assert integrate_or_keep(2 + 3 * E(z**2, z)) == 5


# -- normal form -----------------------------------------------------------------------------------------------------
def test_normal_form_cancels_equal_parts():
    core = E(z * tanh(z), z)
    assert normal_form(core - E(1 - tanh(z) ** 2, z)) == 0
    assert normal_form(E(z * (tanh(z) - z * core), z)) == 0
    assert closed_form(E(z * (tanh(z) - z * core), z)) == 0
    assert normal_form(E(tanh(z1) ** 2 * tanh(z2) ** 2) - E(tanh(z) ** 2, z) ** 2) == 0
    assert normal_form(E(tanh(z + 1), z) + E(tanh(z - 1), z)) == 0
    sigmoid = 1 / (1 + exp(-z))
    assert normal_form(E(z * log(1 + exp(z)), z)) == Rational(1, 2)
    assert normal_form(E(z * sigmoid, z) - E(sigmoid * (1 - sigmoid), z)) == 0
    assert normal_form(core) != 0


# -- degree and weight ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("function", [erf, erfc])
def test_an_error_function_whose_variable_cancels(function):
    u = (z + sqrt(3))**2 - z**2 - 2*sqrt(3)*z  # 3, though z stands in it
    assert (E(z**2*function(u), z).doit() - function(3)).expand() == 0


def test_polynomials_of_high_degree():
    assert closed_form(E(He(20) * z**20, z)) == sp.factorial(20)


def test_import_is_light():
    code = ("import sys, sympy; before = set(sys.modules); import hermitex.symbolic.integrals; "
            "print([m for m in ('numpy', 'scipy', 'flint', 'matplotlib') if m in set(sys.modules) - before])")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("variables", [(z1, z2), (z1, z2, z3)], ids=len)
@given(a=st.integers(-4, 4), b=st.integers(-4, 4), n=st.integers(1, 3))
@settings(max_examples=4, deadline=None)
def test_a_piecewise_that_jumps_is_no_part_of_a_linear_form(variables, a, b, n):
    """E (n s + J)^2 and E s J, s = z1 + z2, J = a/2 where s > 0, else b/2: the derivative of J is 0 on both sides."""
    s = z1 + z2
    J = Piecewise((Rational(a, 2), s > 0), (Rational(b, 2), True))
    crossed = Rational(a - b, 2)/sqrt(pi)
    assert sp.simplify(closed_form(E(s*J, *variables)) - crossed) == 0
    assert sp.simplify(closed_form(E((n*s + J)**2, *variables)) - 2*n**2 - 2*n*crossed - Rational(a*a + b*b, 8)) == 0


def test_a_product_of_steps_in_pieces():
    """E of two steps of correlated fields, which have no slope anywhere."""
    step = [Piecewise((1, v > 0), (Rational(1, 10), True)) for v in (z1, z2)]
    both = sp.asin(Rational(3, 5))/(2*pi) + Rational(1, 4)
    found = closed_form(E(step[0]*step[1], z1, z2, cov={(z1, z2): Rational(3, 5)}))
    assert float(found) == pytest.approx(float(Rational(81, 100)*both + Rational(9, 100) + Rational(1, 100)), rel=1e-14)


# -- variables that are bound ------------------------------------------------------------------------------------------
w, k, N = Symbol("w", real=True), Symbol("k", integer=True, positive=True), Symbol("N", integer=True, positive=True)
ETA, COUNTABLE = sp.IndexedBase("eta"), (Poisson("X", 2), Geometric("X", Rational(1, 3)))
INDEX = sp.Idx("k", Symbol("N", integer=True))


def steps(seed):
    """Two functions with switches, of z and a place."""
    rng = np.random.default_rng(seed)
    kinds = [sign, Heaviside, Abs, lambda u: Max(0, u), lambda u: Piecewise((1, u > 0), (u, True))]
    return [kinds[i] for i in rng.permutation(len(kinds))[:2]]


@pytest.mark.parametrize("f, g", [(sign, Abs), (Heaviside, sign), (Abs, Heaviside)])
@pytest.mark.parametrize("power", [1, 2])
def test_what_is_bound_does_not_get_out(f, g, power):
    """The index of a sum, the variable of an integral or a product: no closed form holds it, and normal forms are equal to it."""
    around = [sp.Sum(f(z - k), (k, 1, N)), sp.Integral(f(z - w), (w, 0, 1)), sp.Product(2 + f(z - k), (k, 1, N)),
              sp.Limit(f(z - w), w, 1, "-"), sp.Sum(f(z - ETA[INDEX]), INDEX)]
    nodes = [E(body**power*h, z) for body in around for h in (1, g(z - kappa))]
    for node in [*nodes, E(around[0]**power*g(z1), z, z1)]:
        for value in (node.doit(), normal_form(node)):
            assert value.free_symbols <= node.free_symbols, (node, value)


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_sum_over_numbers_is_the_sum_of_its_terms(seed):
    f, g = steps(seed)
    written = sp.Add(*(f(z - n)*g(z + n) for n in (1, 2, 3)))
    node = E(sp.Sum(f(z - k)*g(z + k), (k, 1, 3))**2, z)
    assert float(node.evalf(15)) == pytest.approx(float(E(written**2, z).doit()), rel=1e-12)
    assert normal_form(node - E(written**2, z)).evalf(20) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("law", COUNTABLE, ids=["Poisson", "Geometric"])
def test_the_index_of_a_countable_law_stays_in_its_sum(law, seed):
    f, _ = steps(seed)
    for body in (f(z - law)*law, z*f(z*law + Rational(3, 10)), f(z - law)):
        node = E(body, law, z)
        assert node.doit().free_symbols == set(), node


@pytest.mark.parametrize("body", [sign(z), Max(0, z - 1), Piecewise((1, z > w), (z, True)), tanh(z)*Heaviside(z - w),
                                  Abs(z**2 - 1)], ids=str)
def test_a_slope_that_stands_in_an_average_is_done_with_its_jumps(body):
    """E f' = E z f, and its powers, though SymPy's derivative of a Piecewise has no jump."""
    for factor in (1, z, cos(z)):
        node = E(factor*sp.Derivative(body, z), z)
        other = E((z*factor - sp.diff(factor, z))*body, z)
        at = {w: Rational(1, 3)}
        assert float(sp.N(node.subs(at).doit(), 20)) == pytest.approx(float(sp.N(other.subs(at).doit(), 20)), rel=1e-12, abs=1e-14)
    assert E(z*sp.Subs(body, z, z + 1), z).doit() == E(z*body.subs(z, z + 1), z).doit()


def test_a_slope_of_an_undefined_function_is_done_by_the_chain_rule_and_has_no_number():
    f = sp.Function("f")
    inner = E(z*sp.Derivative(f(z**2), z), z)
    assert inner.subs(f, sin).doit().equals(E(2*z**2*cos(z**2), z).doit())
    assert float(sp.N(inner.doit().subs(f, tanh), 20)) == pytest.approx(float(E((z**2 - 1)*tanh(z**2), z).evalf(20)), rel=1e-12)
    for node in (inner, E(sp.Derivative(f(z**2), z), z), E(z*sp.Derivative(f(z, w), z), z)):
        with pytest.raises(NoClosedForm, match="has no closed form"):
            hx.compile(node)


@pytest.mark.parametrize("body", [
    lambda a, x: sign(a*x)**2, lambda a, x: Heaviside(a*x)**2*x**2, lambda a, x: Abs(sign(a*x)),
    lambda a, x: Heaviside(a*x)*sign(a*x), lambda a, x: Piecewise((x**2, a*x > 0), (3, True)), lambda a, x: sign(a*sp.tanh(x))**2])
def test_a_letter_that_is_0_is_no_limit_where_a_jump_compares_0_with_0(body):
    """E sign(a z)^2 was 1, in closed form and in a kernel, and is 0 at a = 0."""
    a = Symbol("a", real=True)
    exact, kernel = E(body(a, z), z).doit(), hx.compile(E(body(a, z), z))
    for value in (0, Rational(1, 2), -3):
        known = E(body(sp.Integer(0) + value, z), z).doit()
        assert exact.subs(a, value) == known
        assert abs(kernel(a=float(value)) - float(known)) < 1e-14


def test_a_root_of_what_two_letters_may_make_0():
    """E u/sqrt(|u|), u = a z + b, was SymPy's TypeError in closed form and in a kernel: at a = b = 0 it is 0/0."""
    a, b = sp.symbols("a b", real=True)
    f = (a*z + b)/sp.sqrt(Abs(a*z + b))
    kernel = hx.compile(E(f))
    assert kernel(1.0, -1.0) == pytest.approx(float(E(f).doit().subs({a: 1, b: -1})), rel=1e-13)
    assert kernel(0.0, -2.0) == pytest.approx(-np.sqrt(2), rel=1e-13)


@pytest.mark.parametrize("body", [
    lambda x, y, a, b: sign(a*x + b)**2, lambda x, y, a, b: x*sign(a*x + b), lambda x, y, a, b: (1 + sign(a*x + b))**2,
    lambda x, y, a, b: sp.exp(x)*Heaviside(a*x + b), lambda x, y, a, b: sp.sqrt(Abs(a*x + b)),
    lambda x, y, a, b: Heaviside(a*x + b)*Heaviside(x), lambda x, y, a, b: sign(a*x + b*y)**2,
    lambda x, y, a, b: sign(a*x + b*y + a*b)])
def test_a_closed_form_at_letters_where_it_divides_by_0(body):
    """The kernel of E sign(a z + b) was nan at a = b = 0, E sign(a z + b)^2 was 1 there, E sign(a z1 + b z2)^2 was 0 at a = 0,
    E (1 + sign(a z + b))^2 was 2 at b = 0 and then a = 0."""
    a, b = sp.symbols("a b", real=True)
    f = body(z1, z2, a, b)
    exact, kernel = E(f).doit(), hx.compile(E(f), "a", "b")
    for at in ((0, 0), (0, -1), (2, 0)):
        put = dict(zip((a, b), map(sp.Integer, at), strict=True))
        known = E(f.xreplace(put)).doit()
        for found in (exact.subs(put), exact.subs(a, put[a]).subs(b, put[b]), exact.subs(b, put[b]).subs(a, put[a])):
            assert found.has(sp.nan, sp.zoo) or sp.simplify(found - known) == 0
        assert abs(kernel(*map(float, at)) - float(known)) < 1e-12


def test_the_ends_of_pieces_cancel_and_error_functions_keep_their_arguments():
    """A ramp's ends left (V - 1)/S - (2 S^2 + ...)/(S V ...) of terms that cancel, and erf(V c/S - c/S) beside erf(c (1 - V)/S)."""
    V, S, c = sp.symbols("V S c", positive=True)
    ramp = Piecewise((1, S*z < 1 - V), ((1 - S*z)/V, S*z < 1), (0, True))
    at, tilted, halved = {V: Rational(3, 4), S: 2, c: Rational(2, 3)}, E(z**2*exp(-c**2*z**2)*ramp, z), E((1 + erf(c*z))*ramp, z)
    smooth, shared = closed_form(tilted), closed_form(halved)
    assert sp.count_ops(smooth) < 130 and len(smooth.atoms(exp)) == 2  # they were 203 operations
    assert {erf(c/S), erf(c*(1 - V)/S)} <= shared.rewrite(erf).atoms(erf)  # next to a constant each is an erfc
    for form, node in ((smooth, tilted), (shared, halved)):
        assert abs(form.subs(at).evalf(25) - node.subs(at).evalf(25)) < 1e-20


@pytest.mark.parametrize("name", ["gelu", "elu", "cos clip", "nested clip", "erf erf shifted"])
def test_operations_are_those_that_sympy_counts(name):
    from hermitex.symbolic.formula_size import operations

    form = closed_form(E(BY_NAME[name].function(z), z))
    assert operations(form) == sp.count_ops(form)
