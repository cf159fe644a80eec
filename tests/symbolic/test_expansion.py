"""Expansions: Parseval, tails that stay honest under cancellation, evaluation, and the conventions said aloud."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import roots_hermitenorm
from sympy import Abs, Float, Max, Piecewise, Rational, Symbol, cos, erf, erfc, exp, expand, pi, sign, sin, sqrt, tanh

from hermitex import E, Expansion
from hermitex import expand as hermite_expand
from hermitex.errors import BadInput, ConventionError, Divergent
from hermitex.symbolic.series.polynomials import h
from hermitex.symbols import z, z1, z2


# -- conventions -------------------------------------------------------------------------------------------------------
def test_the_basis_must_be_said():
    with pytest.raises(ConventionError, match=r"E\[g He_k\]/sqrt\(k!\)"):
        hermite_expand(z**2, order=2)
    with pytest.raises(ConventionError, match="physicists"):
        hermite_expand(z**2, order=2, basis="physicists")


def test_the_two_bases_differ_by_the_root_of_the_factorial():
    monic, ortho = (hermite_expand(exp(z), order=5, basis=b) for b in ("monic", "orthonormal"))
    for k, scale in enumerate((1, 1, 2, 6, 24, 120)):
        assert expand(monic.coefficients[k] - sqrt(scale)*ortho.coefficients[k]) == 0
    assert expand(monic.truncate() - ortho.truncate()) == 0
    assert monic.norm == ortho.norm == exp(2)
    assert expand(monic.tail(3) - ortho.tail(3)) == 0


# -- Parseval ----------------------------------------------------------------------------------------------------------
@settings(max_examples=15)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=6), st.sampled_from(["monic", "orthonormal"]))
def test_parseval_for_polynomials(numbers, basis):
    g = sum(p*z**i for i, p in enumerate(numbers))
    found = hermite_expand(g, z, order=len(numbers), basis=basis)
    assert found.tail() == 0
    assert expand(found.truncate() - g) == 0
    assert expand(found.tail(0) - (found.norm - found.coefficients[0]**2)) == 0


@pytest.mark.parametrize(("g", "order", "tail"), [
    (sign(z), 1, 1 - 2/pi),
    (Max(0, z), 1, Rational(1, 4) - 1/(2*pi)),
    (Abs(z), 2, 1 - 3/pi),
    (exp(z), 2, exp(2) - exp(1)*Rational(5, 2)),
    (cos(z), 3, Rational(1, 2) + exp(-2)/2 - exp(-1)*Rational(3, 2)),
    (z1*z2 + z1, 1, 1),
])
def test_tails(g, order, tail):
    assert expand(hermite_expand(g, order=order, basis="monic").tail() - tail) == 0


def test_the_tail_of_tanh_is_the_known_residual():
    """mu_star^2 of tanh: 0.165575741084 (Cui et al. 2024), the part beyond order 1; and a third route by quadrature."""
    found = hermite_expand(tanh(z), order=1, basis="orthonormal").tail()
    assert abs(sqrt(found) - Float("0.165575741084", 12)) < 10**-12
    x, w = roots_hermitenorm(400)
    w = w/w.sum()
    residual = np.sum(w*np.tanh(x)**2) - np.sum(w*np.tanh(x)*x)**2
    assert abs(float(found) - residual) < 1e-11


def test_a_tail_survives_cancellation():
    """sin(z/1000) beyond order 1: ten digits of the norm cancel, and the result is still right to all of its own."""
    t = Rational(1, 1000)
    exact = (1 - exp(-2*t**2))/2 - t**2*exp(-t**2)
    smooth = hermite_expand(sin(z*t), order=1, basis="monic").tail()
    assert abs(smooth.evalf(20)/exact.evalf(20) - 1) < 10**-15
    # the same through an unevaluated node
    found = hermite_expand(sin(z*t) + E(tanh(z)**2, z), order=1, basis="monic").tail()
    assert abs(found.evalf(15)/exact.evalf(15) - 1) < Rational(1, 10**12)


def test_several_variables():
    found = hermite_expand(z1**2*z2 + z2, order=3, basis="orthonormal")
    assert found.coefficients[2, 1] == sqrt(2)
    assert found.coefficients[0, 1] == 2
    assert found.tail(1) == 2
    assert expand(found.truncate() - z1**2*z2 - z2) == 0
    assert found.evaluate(2.0, 3.0) == pytest.approx(15.0)


# -- numbers -----------------------------------------------------------------------------------------------------------
def test_a_value_has_digits_and_a_bound():
    found = hermite_expand(tanh(z), order=3, basis="monic")
    assert not found.is_exact(1)
    assert found.is_exact(2)
    reference = mpf("0.605705509602")  # the value published for tanh (Cui et al. 2024), recomputed below
    with mp.workdps(40):
        integral = mp.quad(lambda x: x*mp.tanh(x)*mp.exp(-x*x/2), [-14, 0, 14])/mp.sqrt(2*mp.pi)
        assert abs(integral - reference) < 1e-12
        assert abs(found.value(1, 30) - integral) <= found.error(1, 30) + mpf(10)**-29
        assert found.error(1, 30) < mpf(10)**-29


@pytest.mark.parametrize("basis", ["monic", "orthonormal"])
def test_evaluation_agrees_with_the_partial_sum(basis):
    found = hermite_expand(erf(z) + z**2, order=9, basis=basis)
    points = np.linspace(-3, 3, 7)
    direct = [float(found.truncate(6).subs(z, Rational(p).limit_denominator(10)).evalf(30)) for p in points]
    assert np.allclose(found.evaluate(points, k=6), direct, rtol=1e-12, atol=1e-12)
    assert np.allclose(found(points, k=6), direct, rtol=1e-12, atol=1e-12)
    with mp.workdps(30):
        assert abs(found.evaluate(mpf(2), k=6) - mpf(found.truncate(6).subs(z, 2).evalf(30))) < mpf(10)**-26
    assert expand(found.evaluate(z, k=4) - found.truncate(4)) == 0


def test_high_orders_do_not_overflow():
    found = hermite_expand(z, order=60, basis="orthonormal")
    assert found.evaluate(5.0) == pytest.approx(5.0)
    assert hermite_expand(h(60, z), order=60, basis="orthonormal").coefficients[60] == 1


def test_monte_carlo_agrees():
    rng = np.random.default_rng(7)
    x = rng.standard_normal(200_000)
    found = hermite_expand(Max(0, z - Rational(1, 2)), order=4, basis="orthonormal")
    hermites = [np.ones_like(x), x, (x**2 - 1)/np.sqrt(2), (x**3 - 3*x)/np.sqrt(6), (x**4 - 6*x**2 + 3)/np.sqrt(24)]
    for k, he in enumerate(hermites):
        sample = he*np.maximum(0, x - 0.5)
        assert abs(float(found.value(k)) - sample.mean()) < 4*sample.std()/np.sqrt(x.size)
        # the monic normalisation would be seen from order 2 on
        if k >= 3:
            wrong = float(found.value(k))*np.sqrt([1, 1, 2, 6, 24][k])
            assert abs(wrong - sample.mean()) > 4*sample.std()/np.sqrt(x.size)


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("g", [exp(z**2/4), exp(z**2), 1/z, Abs(z)**Rational(-1, 2), exp(z1*z2*Rational(1, 2))])
def test_targets_that_are_not_square_integrable_are_refused(g):
    with pytest.raises(Divergent, match="not square integrable"):
        hermite_expand(g, order=2, basis="monic")


@pytest.mark.parametrize("g", [exp(z**2/5), Abs(z)**Rational(-1, 3)])
def test_targets_just_inside_are_expanded(g):
    found = hermite_expand(g, order=2, basis="monic")
    assert float(found.tail(2)) > 0


def test_other_refusals():
    found = hermite_expand(z**2, order=2, basis="monic")
    with pytest.raises(BadInput, match="stops at order 2"):
        found.tail(3)
    with pytest.raises(BadInput):
        found.evaluate(1.0, 2.0)
    with pytest.raises(BadInput, match="s must be put in"):
        hermite_expand(exp(Symbol("s", positive=True)*z), order=2, basis="monic").value(1)


# -- the products agree ------------------------------------------------------------------------------------------------
def test_dictionary_frame_and_object_agree():
    found = hermite_expand("relu(z)", order=4, basis="orthonormal")
    answer = json.loads(json.dumps(found.to_dict()))
    assert answer["basis"] == "orthonormal"
    assert {"coefficients", "norm", "tail"} <= set(answer)
    from hermitex import parse

    for row in answer["coefficients"]:
        assert expand(parse(row["exact"]) - found.coefficients[row["order"]]) == 0
        assert row["value"] == pytest.approx(float(found.value(row["order"])), rel=1e-14)
    assert answer["norm"] == 0.5
    assert answer["tail"] == pytest.approx(float(found.tail()))
    frame = found.to_dataframe()
    assert list(frame["value"]) == [row["value"] for row in answer["coefficients"]]
    assert hermite_expand(tanh(z), order=1, basis="monic").to_dict()["coefficients"][1]["exact"] is None


def test_they_show_themselves():
    found = hermite_expand(tanh(z), order=5, basis="orthonormal")
    assert "\n" not in repr(found)
    assert "orthonormal, order 5" in repr(found)
    assert found._repr_latex_().startswith("$")
    assert r"h_{1}(z)" in found.latex()
    assert isinstance(found, Expansion)


def test_pictures():
    import matplotlib.backends.backend_agg  # noqa: F401 - an old one warns of a new pyparsing as it is imported

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = hermite_expand(Abs(z), order=6, basis="orthonormal")
        axes = found.plot()
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert {"target", "order 6"} <= set(lines)
        x, y = lines["order 6"].get_data()
        assert np.allclose(y, found.evaluate(np.asarray(x)))
        assert np.allclose(lines["target"].get_ydata(), np.abs(x))
        assert found.plot_coefficients().get_yscale() == "log"


def test_a_target_of_two_variables_has_its_levels_and_those_of_its_partial_sums():
    found = hermite_expand("z1*z2 + z2**3", order=3, basis="orthonormal")
    ax = found.plot(orders=[2, 3])
    filled, second, third = ax.collections
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["order 2", "order 3"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$z_{1}$", "$z_{2}$")
    assert list(second.levels) == list(third.levels) == list(filled.levels)
    for level, path in zip(third.levels, third.get_paths(), strict=True):  # the third order is the target, the second is not
        x, y = path.vertices.T
        assert np.allclose(x*y + y**3, level, atol=0.02)
    x, y = second.get_paths()[2].vertices.T
    assert not np.allclose(x*y + y**3, second.levels[2], atol=0.5)
    with pytest.raises(BadInput, match="plot_coefficients"):
        hermite_expand("z1*z2*z3", order=3, basis="monic").plot()


def test_one_even_branch_makes_no_even_function():
    found = hermite_expand(Piecewise((z**2, Abs(z) < 1), (z + 2, True)), order=1, basis="monic")
    assert abs((found.coefficients[1] - sqrt(2/(pi*exp(1))) - erfc(1/sqrt(2))).evalf(20)) < 1e-18


def test_a_line_works_out_no_more_than_it_shows(monkeypatch):
    asked, numeric = [], Expansion.numeric
    monkeypatch.setattr(Expansion, "numeric", lambda self, expr, digits=15: asked.append(expr) or numeric(self, expr, digits))
    assert repr(hermite_expand(tanh(z), order=11, basis="orthonormal")).endswith("-0.0314454 h_7, ...)") and len(asked) == 4


def test_a_number_that_takes_long_stands_as_its_formula(monkeypatch):
    monkeypatch.setattr("hermitex.symbolic.series.expansion.SOON", 0.0)
    slow = hermite_expand(tanh(z1*z2) + z1, order=2, basis="orthonormal")
    assert repr(slow).endswith("1 h_(1, 0), (E(z1*z2*tanh(z1*z2), z1, z2)) h_(1, 1))")
