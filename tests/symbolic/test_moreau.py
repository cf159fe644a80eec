"""Proximal operators and envelopes: optimality, the two theorems on derivatives, closed forms, refusals, planted errors."""

import pickle

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Abs, Max, Piecewise, Rational, Symbol, cosh, exp, latex, log, sin

from hermitex import E, Moreau, Prox, parse
from hermitex.errors import BadInput
from hermitex.symbolic.moreau import resolve
from hermitex.symbols import V, m, y, z
from hermitex.symbols import f as F

W = Symbol("omega", real=True)
delta = Symbol("delta", positive=True)
HUBER = Piecewise(((y - F)**2/2, Abs(y - F) <= delta), (delta*Abs(y - F) - delta**2/2, True))
LOSSES = {
    "half square": (y - F)**2/2,
    "square": (y - F)**2,
    "absolute": Abs(y - F),
    "Huber": HUBER,
    "hinge": Max(0, 1 - y*F),
    "squared hinge": Max(0, 1 - y*F)**2/2,
    "quantile": Max(3*(y - F), F - y)/4,
    "elastic": F**2/2 + 2*Abs(F) + (y - F)**2/2,
    "insensitive": Max(0, Abs(y - F) - Rational(1, 3)),
    "logistic": log(1 + exp(-y*F)),
    "Poisson": exp(F) - y*F,
    "log cosh": log(cosh(y - F)),
    "quartic and kink": F**4/4 + Abs(F - y),
}
rationals = st.fractions(min_value=-4, max_value=4, max_denominator=50).map(lambda r: Rational(r.numerator, r.denominator))
positive = st.fractions(min_value=Rational(1, 20), max_value=30, max_denominator=20).map(
    lambda r: Rational(r.numerator, r.denominator))


@pytest.mark.parametrize("kind", [Moreau, Prox])
@pytest.mark.parametrize("loss", [log(1 + exp(-y*F)), Abs(y - F)])
def test_a_text_reads_what_a_node_prints(kind, loss):
    node = kind(loss, F, W*y, V)
    assert parse(str(node), symbols=[W, V, y]) == node


@pytest.mark.parametrize("text, says", [
    ("Moreau(abs(f), f, z)", "takes a loss, its variable, a place and a width"), ("Prox(abs(f), 2, z, 1)", "its variable"),
    ("Moreau(-f**2, f, z, 1)", "not convex"), ("Moreau(abs(f), g, z, 1)", "unknown name 'f'")])
def test_a_text_that_is_no_minimisation_is_one_line(text, says):
    with pytest.raises(BadInput, match=says):
        parse(text)


def at(expr, w, v, label):
    return expr.subs({W: w, V: v, y: label, delta: Rational(1, 2)})


# -- identities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=6)
@given(w=rationals, v=positive, label=st.sampled_from([Rational(1), Rational(-1)]))
def test_the_exact_form_is_the_minimiser(name, w, v, label):
    """The closed branches against the bracketed root of the unresolved node, and neighbours that are no better."""
    loss = LOSSES[name]
    node = at(Prox(loss, F, W, V), w, v, label)
    there = node.evalf(15)
    assert abs(there - at(Prox(loss, F, W, V).doit(), w, v, label).evalf(15)) < 1e-12
    low = at(Moreau(loss, F, W, V).doit(), w, v, label).evalf(20)
    for step in (-Rational(1, 1000), 0, Rational(1, 1000)):
        value = ((F - w)**2/(2*v) + at(loss, w, v, label)).subs(F, Rational(str(there)) + step).evalf(20)
        assert value >= low - 1e-12


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("symbol", [W, V, y])
def test_derivatives_are_those_of_the_numbers(name, symbol):
    """Envelope theorem and implicit function theorem, against central differences at 30 digits."""
    values = {W: Rational(7, 10), V: Rational(3, 2), y: Rational(-1), delta: Rational(1, 2)}
    h = Rational(1, 2**24)
    for kind in (Prox, Moreau):
        node = kind(LOSSES[name], F, W, V)
        ends = [node.subs({**values, symbol: values[symbol] + s*h}, simultaneous=True).evalf(30) for s in (1, -1)]
        assert abs(node.diff(symbol).subs(values).evalf(20) - (ends[0] - ends[1])/(2*h)) < 1e-10


def test_envelope_theorem_in_symbols():
    node = Moreau(log(1 + exp(-y*F)), F, W, V)
    assert node.diff(W) == (W - node.prox)/V
    assert node.diff(V) == -(W - node.prox)**2/(2*V**2)


def test_a_parameter_moves_the_kink_where_the_minimum_sticks():
    """|y - f| at f = y: dM/dy is (y - omega)/V there, not sign(0)."""
    slope = Moreau(Abs(y - F), F, W, V).diff(y).subs({W: 0, y: Rational(1, 2), V: 1})
    assert slope == Rational(1, 2)


# -- closed forms ------------------------------------------------------------------------------------------------------
def test_closed_forms_of_the_textbook():
    assert (Prox((y - F)**2/2, F, W, V).doit() - (W + V*y)/(1 + V)).simplify() == 0
    assert (Prox((y - F)**2, F, W, V).doit() - (W + 2*V*y)/(1 + 2*V)).simplify() == 0
    for name in ("absolute", "Huber", "hinge", "squared hinge", "quantile", "elastic", "insensitive"):
        assert not Prox(LOSSES[name], F, W, V).subs(y, 1).doit().has(Prox), name
    soft = Prox(Abs(F), F, W, V).doit()
    assert [soft.subs({W: w, V: 1}) for w in (3, Rational(1, 2), -3)] == [2, 0, -2]


def test_hinge_of_a_label():
    """x = omega if omega >= 1, omega + V if omega < 1 - V, else 1 (y = 1) [loureiro2021]."""
    form = Prox(Max(0, 1 - F), F, W, V).doit()
    assert [form.subs({W: w, V: 2}) for w in (2, 0, -3)] == [2, 1, -1]


def test_reference_of_the_logistic_prox():
    """omega = 0, V = 4: the root of x = 4/(1 + exp(x)) by mpmath at 30 digits."""
    with mpmath.workdps(40):
        root = mpmath.findroot(lambda x: x - 4/(1 + mpmath.exp(x)), 1.2)
        assert abs(mpmath.mpf(str(Prox(log(1 + exp(-F)), F, 0, 4).evalf(30))) - root) < mpmath.mpf(10)**-29


@pytest.mark.parametrize("v", [Rational(1, 1000), 50, 10**6])
def test_logistic_far_out_is_solved_where_plain_newton_cycles(v):
    x = Prox(log(1 + exp(-F)), F, -30, v).evalf(25)
    assert abs(x + 30 - v/(1 + exp(x))) < 1e-18*max(1, v)


def test_a_domain_with_a_wall_and_one_with_a_pole():
    assert Prox(F, F, -3, 1, domain=(0, 10)).doit() == 0
    assert Prox(F, F, 4, 1, domain=(0, 10)).doit() == 3
    x = Prox(-log(F), F, -2, 1, domain=(0, float("inf"))).evalf(20)
    assert abs(x - (-1 + 2**Rational(1, 2)).evalf(20)) < 1e-18


# -- nodes -------------------------------------------------------------------------------------------------------------
def test_equal_up_to_the_name_of_the_variable():
    u = Symbol("u", real=True)
    assert Prox(log(1 + exp(-y*u)), u, W, V) == Prox(log(1 + exp(-y*F)), F, W, V)
    assert Prox(log(1 + exp(-F)), F, W, V) == Prox(log(1 + exp(-y*F)), F, W, V).subs(y, 1)
    assert Prox(log(1 + exp(-F)), F, W, V) != Prox(log(1 + exp(-2*F)), F, W, V)


def test_nothing_is_captured():
    """omega may hold the symbol that the loss binds."""
    node = Prox((y - F)**2/2, F, W, V).subs(W, F)
    assert (node.doit() - (F + V*y)/(1 + V)).simplify() == 0
    assert node.free_symbols == {F, V, y}


def test_under_an_expectation():
    node = E(Moreau((m - F)**2/2, F, z, V), z)
    assert (node.diff(m).doit() - m/(1 + V)).simplify() == 0 or node.diff(m).has(Prox)
    assert (resolve(node).doit() - (1 + m**2)/(2*(1 + V))).simplify() == 0
    smooth = E(Prox(log(1 + exp(-F)), F, z, 2), z)
    direct = mpmath.quad(lambda t: mpmath.npdf(t)*mpmath.findroot(lambda x: x - t - 2/(1 + mpmath.exp(x)), t), [-9, 0, 9])
    assert abs(smooth.evalf(12) - direct) < 1e-10


def test_shows_pickles_and_reads():
    node = Prox(log(1 + exp(-y*F)), F, W, V)
    assert str(node) == "Prox(log(1 + exp(-f*y)), f, omega, V)"
    assert latex(node).startswith(r"\mathrm{prox}_{V\,") and r"\mathcal{M}" in latex(Moreau(Abs(F), F, W, V))
    assert pickle.loads(pickle.dumps(node)) == node


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", [-F**2, log(1 + exp(F)) - F**2, -Abs(F - y), sin(F), Max(0, F) - Abs(F)])
def test_what_is_not_convex_is_refused_in_one_line(loss):
    with pytest.raises(BadInput, match="not convex") as caught:
        Prox(loss, F, W, V)
    assert "\n" not in str(caught.value)


def test_other_bad_input():
    with pytest.raises(BadInput, match="does not depend on f"):
        Prox(y**2, F, W, V)
    with pytest.raises(BadInput, match="V must be positive"):
        Prox(F**2, F, W, -1)
    with pytest.raises(BadInput, match="four arguments"):
        Prox(F**2, F, W)


# -- teeth -------------------------------------------------------------------------------------------------------------
def test_a_prox_of_twice_the_loss_is_told_apart():
    one = Prox(log(1 + exp(-F)), F, W, V).subs({W: 1, V: 2}).evalf(15)
    assert abs(one - Prox(2*log(1 + exp(-F)), F, W, V).subs({W: 1, V: 2}).evalf(15)) > 0.1
    assert abs(one - Prox(2*log(1 + exp(-F)), F, W, V).subs({W: 1, V: 1}).evalf(15)) < 1e-13


@pytest.mark.parametrize("power", [Rational(6, 5), Rational(3, 2), Rational(5, 2), 3])
@pytest.mark.parametrize("omega", [Rational(-7, 3), Rational(1, 50), 4])
def test_a_power_of_the_modulus_is_stationary_at_its_minimiser(power, omega):
    """p - omega + V r |p|^(r - 1) sign(p) = 0: for powers below 2 the curvature is infinite at the kink, and the slope is 0."""
    f, V = Symbol("f", real=True), Rational(3, 4)
    mp = mpmath.mp
    with mp.workdps(30):
        place = mp.mpf(str(Prox(Abs(f)**power, f, omega, V).evalf(30)))
        r, w = mp.mpf(str(Rational(power).evalf(30))), mp.mpf(str(Rational(omega).evalf(30)))
        assert abs(place - w + mp.mpf("0.75")*r*abs(place)**(r - 1)*mp.sign(place)) < 1e-24
        assert place*w > 0
        envelope = mp.mpf(str(Moreau(Abs(f)**power, f, omega, V).evalf(30)))
        assert abs(envelope - (place - w)**2/mp.mpf("1.5") - abs(place)**r) < 1e-24
    assert Prox(Abs(f)**power, f, 0, V).evalf(20) == 0
