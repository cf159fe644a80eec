"""Every function that the package can emit has NumPy source, and the source agrees with mpmath, far out too."""

import itertools
import warnings

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.abc import x, y

from hermitex.errors import NoClosedForm
from hermitex.kernels.helpers import HELPERS, used_helpers
from hermitex.kernels.printers import NumPyPrinter
from hermitex.kernels.recognition import plain, recognise
from hermitex.symbolic.special import ImErf, OwenT, ReErf, SignCorrelation
from hermitex.symbolic.text.text_names import call, function_names

FAR = {"ReErf": lambda x, y: mpmath.erf(mpmath.mpc(x, y)).real, "ImErf": lambda x, y: mpmath.erf(mpmath.mpc(x, y)).imag}
RNG = np.random.default_rng(7)


def source(expr):
    """(text of the expression, a function of x, y, w)."""
    printer = NumPyPrinter()
    text = printer.doprint(expr)
    helpers = used_helpers(text)
    printer.special.update(n for h in helpers for n in HELPERS[h][0])
    module = "\n".join([*printer.imports(), *(HELPERS[h][1] for h in helpers), f"def f(x, y=0.0, w=0.0):\n    return {text}"])
    names = {}
    exec(module, names)
    return text, names["f"]


def exact(expr, values):
    if max(map(abs, values.values())) > 20:  # digits enough for 1 - erf(39)
        with mpmath.workdps(700):
            found = complex(sp.lambdify([sp.Symbol(n) for n in values], expr, [FAR, "mpmath"])(*map(mpmath.mpf, values.values())))
    else:
        found = complex(sp.N(expr.subs({sp.Symbol(n): sp.Rational(v) for n, v in values.items()}), 25))
    return found.real if abs(found.imag) < 1e-15*abs(found.real) + 1e-300 else np.nan


def agrees(expr, points, rel=1e-12):
    """The source at scalars and at an array, without one warning, against `points` of (x[, y[, w]])."""
    text, f = source(expr)
    names = ("x", "y", "w")[:len(points[0])]
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        together = f(*(np.array(c, dtype=float) for c in zip(*points, strict=True)))
        for k, point in enumerate(points):
            value = exact(expr, dict(zip(names, point, strict=True)))
            for found in (np.broadcast_to(together, len(points))[k], f(*map(float, point))):
                assert found == pytest.approx(value, rel=rel, abs=1e-300), (text, point)


def _points(kind, n):
    low, high = {"unit": (-0.95, 0.95), "positive": (0.1, 3.0), "above one": (1.1, 3.0), "line": (-3.0, 3.0)}[kind]
    return [tuple(v) for v in RNG.uniform(low, high, size=(5, n)).round(3)]


_RANGES = {"acos": "unit", "arccos": "unit", "asin": "unit", "arcsin": "unit", "atanh": "unit", "erfinv": "unit",
           "acosh": "above one", "acoth": "above one", "zeta": "above one",
           **dict.fromkeys(("log", "ln", "sqrt", "gamma", "loggamma", "digamma", "besselj", "bessely", "besselk", "besseli",
                            "uppergamma", "lowergamma", "LambertW", "LogFactorial"), "positive")}


@pytest.mark.parametrize("name", [n for n in function_names() if n not in ("DiracDelta", "Rational", "polygamma", "erfcinv",
                                                                             "SignCorrelation")])
def test_every_function_that_a_text_may_call(name):
    for n in (1, 2, 3):
        try:
            expr = call(name, list(sp.symbols("x y w"))[:n])
            break
        except Exception:
            assert n < 3, name
    if name.startswith("bessel"):  # the order is a number
        expr = type(expr)(1, x)
        n = 1
    agrees(expr, _points(_RANGES.get(name, "line"), n))


@pytest.mark.parametrize("expr", [
    sp.polygamma(1, x), sp.factorial(x), sp.hyper([sp.Rational(1, 2)], [sp.Rational(3, 2)], x), sp.hyper([1, 2], [3], x/9),
    sp.hyper([], [2], x), sp.beta(x, 2), sp.Ei(x), x**sp.Rational(3, 2), x**sp.Rational(-5, 2), x**sp.Rational(1, 3), x**-7,
    (1 + x)**9, 1/(x*(1 + x)**3), sp.sqrt(x)/(3*x), 2**x, x**sp.pi, sp.Rational(10**30, 7)*x, sp.exp(-x)*sp.Ei(x),
    sp.sec(x) + sp.acsch(x), sp.EulerGamma*x + sp.CRootOf(x**5 - x - 1, 0), sp.Mod(x, 2), sp.exp(-x)*sp.zeta(3),
    (x/3)**sp.Rational(-1, 2)/(2*x), -(x - 2)/(3*(x + 1)), x/(sp.Rational(2, 3)*sp.sqrt(x + 1)),
])
def test_more_functions_and_powers(expr):
    agrees(expr, [(v,) for v in (0.31, 0.9, 1.7, 2.6)])


@pytest.mark.parametrize("expr", [
    1/(1 + sp.exp(-x)), sp.exp(x)/(1 + sp.exp(x)), sp.exp(-x)/(1 + sp.exp(-x))**2, sp.log(1 + sp.exp(x)), sp.log(2*sp.cosh(x)),
    sp.log(sp.exp(x) + sp.exp(-x)), sp.exp(x)*sp.exp(-x**2), sp.exp(x**2)*sp.erfc(x), sp.exp(x**2)*(1 - sp.erf(x)),
    sp.exp(x**2)*sp.erfc(x)/x, sp.exp(-x**2)*sp.erfi(x), (1 + sp.erf(x/sp.sqrt(2)))/2, sp.exp(x**2/2)*(1 - sp.erf(x/sp.sqrt(2)))/2,
    sp.exp(x)*sp.exp(-x**2)*sp.erfc(-x), sp.exp(-sp.Abs(x))*sp.erfc(x), x*sp.exp(x)/(1 + sp.exp(x)),
    sp.exp(3*x)/(1 + sp.exp(x))**3, sp.exp(-2*x)/(1 + sp.exp(-x))**2,
])
def test_large_arguments_neither_overflow_nor_warn(expr):
    values = (-3.3, -0.7, 0.2, 1.9, 24.0, 39.0)
    agrees(expr, [(v,) for v in values], rel=1e-11)


def test_logistic_functions_on_both_far_sides():
    for expr in (1/(1 + sp.exp(-x)), sp.exp(x)/(1 + sp.exp(x)), sp.log(1 + sp.exp(x)), sp.log(sp.cosh(x))):
        agrees(expr, [(-600.0,), (600.0,), (-2e4,), (2e4,)])


def test_complex_error_functions_far_out():
    agrees(sp.exp(-y**2)*ReErf(x, y), [(0.3, 0.4), (1.2, 8.0), (3.0, 31.0), (-2.5, 29.0), (0.05, 40.0)], rel=1e-11)
    agrees(sp.exp(-y**2)*ImErf(x, y), [(0.3, 0.4), (1.2, 8.0), (3.0, 31.0), (-2.5, 29.0), (0.05, 40.0)], rel=1e-11)


def test_owen_and_the_correlation_of_two_signs():
    agrees(OwenT(x, y), [(0.3, 0.7), (1.5, -2.0), (3.0, 0.2), (0.0, 1.3)])
    w = sp.Symbol("w")
    agrees(SignCorrelation(x, y, w), [(0.4, -0.3, 0.5), (1.1, 2.2, -0.9), (0.3, 0.2, 0.0), (-2.0, 0.1, 0.99)], rel=1e-10)
    _, f = source(SignCorrelation(x, y, w))
    assert f(0.0, 0.0, 0.5) == pytest.approx(1/3) and f(0.0, 1.0, 0.0) == pytest.approx(0.0, abs=1e-16)
    assert f(0.7, 0.7, 1.0) == pytest.approx(1.0) and f(0.7, -0.7, -1.0) == pytest.approx(-1.0)


@pytest.mark.parametrize("expr, text", [
    (x**3, "x*x*x"),
    (x**-2, "1/(x*x)"),
    ((1 + x)**2, "np.square(1 + x)"),
    (x**7, "power(x, 7)"),
    (x**sp.Rational(3, 2), "x*np.sqrt(x)"),
    (x**5 - 10*x**3 + 15*x, "x*(x*x*(x*x - 10) + 15)"),
    (y*x**6 + x**5 + sp.exp(x), "power(x, 5)*(y*x + 1) + np.exp(x)"),
    (sp.Max(0, x), "np.maximum(x, 0)"),
    (sp.Max(0, -x, y), "np.maximum(np.maximum(-x, y), 0)"),
    (sp.log(1 + sp.exp(x)), "np.logaddexp(0, x)"),
    (sp.log(1 + x), "np.log1p(x)"),
    (sp.exp(x) - 1, "np.expm1(x)"),
    (x/(1 + sp.exp(-x)), "x*expit(x)"),
    ((1 + sp.erf(x/sp.sqrt(2)))/2, "ndtr(x)"),
    (sp.gamma(x), "gamma_function(x)"),
    (x/(y*(1 + x)), "x/(y*(1 + x))"),
])
def test_it_reads_as_one_would_write_it(expr, text):
    assert source(expr)[0] == text


@settings(derandomize=True, max_examples=60)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=13), st.integers(-9, 9), st.floats(-2, 2))
def test_any_polynomial_in_horner_form(coefficients, linear, value):
    expr = sum((c + (linear*y if k % 3 == 1 else 0))*x**k for k, c in enumerate(coefficients)).expand()
    _, f = source(expr)
    size = float(sum(abs(c)*abs(value)**k for k, c in enumerate(coefficients))) + 9*13*3*max(1, abs(value))**12
    assert f(value, 0.7) == pytest.approx(float(expr.subs({x: sp.Float(value, 30), y: sp.Rational(7, 10)})), abs=1e-13*size)


def test_a_power_never_costs_a_general_power():
    for n in range(2, 20):
        text = source(x**n)[0] + source((1 + y)**-n)[0]
        assert "**" not in text and "np.power" not in text


@pytest.mark.parametrize("expr", [
    sp.Piecewise((sp.log(x), x > 1), (0, True)),
    sp.Piecewise((1, (x > -1) & (x < 1)), (2, sp.Or(x > 2, x < -2)), (3, True)),
    sp.Piecewise((1, sp.Not(sp.And(x > -1, x < 1), evaluate=False)), (0, True)),
    sp.Piecewise((sp.sin(x), x > 0), (sp.exp(x), True))**2,
])
def test_switches(expr):
    with np.errstate(all="ignore"):
        _, f = source(expr)
        for v, together in zip((-2.5, -0.3, 0.4, 2.2), f(np.array([-2.5, -0.3, 0.4, 2.2])), strict=True):
            assert f(v) == pytest.approx(float(expr.subs(x, v))) and together == pytest.approx(float(expr.subs(x, v)))


def test_heaviside_is_one_half_at_zero_or_what_it_says():
    assert source(sp.Heaviside(x))[1](0.0) == 0.5 and source(sp.Heaviside(x, 1))[1](0.0) == 1.0


@pytest.mark.parametrize("expr", [sp.DiracDelta(x), sp.Function("sigma")(x), sp.I*x, sp.Integral(sp.exp(x**4), (x, 0, y)),
                                  sp.Derivative(sp.Function("f")(x), x), sp.hyper([1, 2, 3], [4, 5], x), sp.zoo])
def test_what_has_no_source_is_refused_by_name(expr):
    with pytest.raises(NoClosedForm, match="no numeric form"):
        NumPyPrinter().doprint(expr)


def test_recognition_changes_no_value_and_can_be_undone():
    for expr in (sp.log(sp.cosh(x)), sp.exp(x**2)*sp.erfc(x)*y, (1 - sp.erf(x)), sp.exp(x)/(1 + sp.exp(x))**2, sp.log(x + 1)):
        back = plain(recognise(expr))
        assert mpmath.almosteq(sp.N((back - expr).subs({x: sp.Rational(7, 5), y: 2}), 30), 0, abs_eps=1e-25)


def test_the_order_of_a_set_does_not_change_the_text():
    a, b, c = sp.symbols("a b c")
    texts = {source(sp.Max(*order, 0))[0] for order in itertools.permutations((a, b, c))}
    assert len(texts) == 1
