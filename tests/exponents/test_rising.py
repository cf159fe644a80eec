"""Signs of coefficients without integrals: monotone dependence, against quadrature, and where it proves nothing."""

import numpy as np
import pytest
from sympy import Rational, Symbol, asinh, cos, cosh, erfc, exp, floor, log, sign, sin, sinh, tanh

import hermitex as hx
from hermitex.exponents.label import revealed, split_products
from hermitex.exponents.labels.monotone_labels import sign_by_rise, strict_sign
from hermitex.exponents.laws.block_laws import law_of
from hermitex.exponents.laws.linearised import label_couplings, largest
from hermitex.symbols import z1, z2, z3

SIGNS = [("sign(z1*z2 - 1)", (1, 1)), ("sign(z1*z2 - 1)", (2, 0)), ("floor(z1*z2)", (1, 1)), ("max(z1, z2)", (1, 0)),
         ("max(z1, z2)", (0, 1)), ("min(z1, z2) - exp(-z1)", (1, 0)), ("sign(2 - z1**2*exp(z2))", (2, 0)),
         ("tanh(z1*z2) + z1*z2/5", (1, 1)), ("-floor(z1**2 + z2**2)", (0, 2)), ("relu(z1)*exp(z2)", (1, 0)),
         ("abs(z1)*exp(-z2)", (2, 0)), ("Heaviside(z1*z2 - 1)", (1, 1)), ("Heaviside(abs(z1) + z2**2 - 1)", (2, 0))]
SILENT = [("sign(z1)", (0, 1)), ("sin(z1) + z2", (1, 0)), ("z1**3 - 3*z1", (1, 0)), ("sign(z1*z2)", (2, 0)),
          ("sign(z1*z2)", (1, 0)),
          ("1/z1 + z2", (1, 0)), ("Piecewise((z1, z1 < 0), (z1 - 3, True)) + z2", (1, 0)), ("sign(z1**2 - 1)*z2", (2, 0)),
          ("z1*abs(z2) - z1**3", (1, 0))]


@pytest.mark.parametrize("text, a", SIGNS)
def test_the_sign_is_that_of_a_grid(text, a):
    """The third route: the midpoint rule on a fine grid."""
    found = sign_by_rise(hx.parse(text), (z1, z2), a)
    x = (np.arange(1600) + 0.5)/1600*16 - 8
    weight = np.exp(-x**2/2)/np.sqrt(2*np.pi)*0.01
    u, v = np.meshgrid(x, x, indexing="ij")
    He = {0: lambda s: 1 + 0*s, 1: lambda s: s, 2: lambda s: s**2 - 1}
    values = hx.compile(hx.parse(text))(z1=u, z2=v)*He[a[0]](u)*He[a[1]](v)
    mean = weight @ values @ weight
    assert found is not None and abs(mean) > 1e-3 and found[0] == np.sign(mean)


@pytest.mark.parametrize("text, a", SILENT)
def test_what_does_not_rise_proves_nothing(text, a):
    assert sign_by_rise(hx.parse(text), (z1, z2), a) is None


def test_orders_that_are_not_for_it():
    assert sign_by_rise(z1**3, (z1, z2), (3, 0)) is None and sign_by_rise(hx.parse("floor(z1*z2)"), (z1, z2), (2, 2)) is None


@pytest.mark.parametrize("text, first, leap, coordinate, stages", [
    ("sign(z1*z2 - 1)", 2, 2, 2, [2]), ("floor(z1*z2)", 2, 2, 2, [2]), ("sign(z1*z2*z3 - 1)", 2, 2, 2, [2]),
    ("max(z1, z2, z3, z4)", 1, 2, 1, [1, 2])])
def test_leaps(text, first, leap, coordinate, stages):
    from hermitex.exponents.leap import leap as leaps

    found = leaps(hx.parse(text), hx.symbols.normals(hx.parse(text)))
    assert (found.first, found.order, found.coordinate) == (first, leap, coordinate)
    assert [s["order"] for s in found.staircase.stages] == stages
    assert not any("s_1" in str(c) for c in found.staircase.certificates)


def test_three_factors():
    assert sign_by_rise(hx.parse("sign(z1*z2*z3 - 1)"), (z1, z2, z3), (1, 1, 1))[0] == 1


# -- what rises strictly is no other label -----------------------------------------------------------------------------
t, p = Symbol("t", real=True), Symbol("p", positive=True)


@pytest.mark.parametrize("form", [t + sinh(t), t + exp(t), t**5 + t, -t - tanh(t)**3, t + sign(t),
                                  t - exp(-t), 2*t + floor(t)])
def test_injective(form):
    """The third route: differences of the values on a grid, one sign."""
    values = np.array([float(form.xreplace({t: Rational(k, 7)})) for k in range(-60, 61)])
    assert strict_sign(form, t)
    assert len(set(np.sign(np.diff(values)))) == 1


@pytest.mark.parametrize("form", [t + exp(-t), t**2 + exp(t), floor(t), sin(t)**2 + cos(t)**2, t**3 - t,
                                  sign(t) + floor(t), 1/t + log(t)])
def test_not_shown_to_be_injective(form):
    assert not strict_sign(form, t)


@pytest.mark.parametrize(("form", "direction"), [
    (exp(-t), -1), (1/(1 + exp(-t)), 1), (t**3 + 3*t**2 + 4*t, 1), (erfc(t)**-2, 1), (exp(t)*(2 + tanh(t)), 1), (t**4, 0)])
def test_a_function_of_the_whole_line_rises(form, direction):
    assert strict_sign(form, t) == direction


@pytest.mark.parametrize(("form", "direction"), [
    (cosh(p)/p, 0), (p**4 - p**2, 0), (p**3 + 2*p**2 - p/9 + 1, 0), (p**4 + p**2, 1), (-p*cosh(p), -1), (1/asinh(p), -1),
    (p**Rational(1, 3)*exp(p), 1), (log(1 + p**2) - exp(-p), 1), ((p + 3)*(p**2 - p + 1), 0), (p**3 + 4*p - 2*p**2, 1),
    (exp(p) - p, 1)])
def test_a_function_of_the_half_line_rises(form, direction):
    values = np.array([float(form.xreplace({p: Rational(k, 40)})) for k in range(1, 160)])
    assert strict_sign(form, p) == direction
    assert (set(np.sign(np.diff(values))) == {direction}) == (direction != 0)


@pytest.mark.parametrize("text, inner, hidden", [
    ("z1*z2*z3 + sinh(z1*z2*z3)", "z1*z2*z3", (z1, z2, z3)), ("z1*z2*z3 + exp(z1*z2*z3)", "z1*z2*z3", (z1, z2, z3)),
    ("z1*z2*z3 + (z1*z2*z3)**5", "z1*z2*z3", (z1, z2, z3)), ("z1*z2 + sign(z1*z2)", "z1*z2", (z1, z2)),
    ("z1*z2 + z3 + exp(z1*z2 + z3)", "z1*z2", (z1, z2)), ("z1*z2*z3 + exp(-z1*z2*z3)", None, (z1, z2, z3)),
    ("z1*z2 + z1**2*z2**2", None, (z1, z2))])
def test_what_an_increasing_function_is_of_is_the_label(text, inner, hidden):
    g = split_products(hx.parse(text))
    assert revealed(g, hidden) == (g if inner is None else hx.parse(inner))


def test_masses_that_are_missing_in_the_tails_take_their_squares_off():
    """sinh of a product runs beyond every number: what is lost there is in the error, against the product itself."""
    def inverse(text):
        found = label_couplings(law_of(hx.parse(text), {z1: 0, z2: 1, z3: 2}))
        return largest(found.couplings, [0, 1, 2])[0], 3 * found.error

    exact, lost = inverse("z1*z2*z3")
    assert lost < 1e-12
    for text in ("z1*z2*z3 + sinh(z1*z2*z3)", "z1*z2*z3 + exp(z1*z2*z3)"):
        value, error = inverse(text)
        assert abs(value - exact) < error < 3e-6
