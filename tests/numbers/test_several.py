"""NormalAverages over several variables: references by other routes, rotations, what does not exist, and errors that must hold.

References: mpmath's quadrature of one-variable forms derived by hand, closed forms, and NumPy's Gauss-Hermite products.
"""

import random
from itertools import combinations

import mpmath
import numpy as np
import pytest
import sympy as sp

import hermitex as hx
from hermitex.errors import BudgetExceeded, Divergent, HermitexError, NotConverged
from hermitex.numbers import moving_breaks, nested_panels, several
from hermitex.numbers.invariant_directions import Directions
from hermitex.numbers.moving_breaks import BreakMarks, Breaks, marks
from hermitex.numbers.nested_panels import NestedPanels
from hermitex.numbers.orthants import product_average
from hermitex.numbers.reductions import by_conditional_form, by_length, in_fewest, independent_factors
from hermitex.numbers.scaled_integrand import ScaledIntegrand
from hermitex.numbers.several import BeyondDoubles, NormalAverages
from hermitex.symbolic.radial import over_circle

Z = sp.symbols("z1:7", real=True)
z1, z2, z3, z4, z5, z6 = Z
HALF = sp.Rational(1, 2)


def parsed(text):
    f = hx.parse(text)
    return f.xreplace({s: next(v for v in Z if v.name == s.name) for s in f.free_symbols})


def average(text, law=None, digits=15):
    f = parsed(text) if isinstance(text, str) else text
    variables = tuple(v for v in Z if v in f.free_symbols)
    return NormalAverages(digits).of(f, variables, law)


def check(found, value, digits):
    """The value to so many digits, and within its error."""
    with mpmath.workdps(40):
        off = abs(mpmath.mpf(found.value) - mpmath.mpf(value))
        assert off <= abs(mpmath.mpf(value))*mpmath.mpf(10)**(1 - digits), (found, value)
        assert off <= mpmath.mpf(found.error) + abs(mpmath.mpf(value))*mpmath.mpf(10)**-17, (found, value)


def gauss(f, n, order=80):
    """E f by the product of Gauss-Hermite rules, in plain NumPy."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w/w.sum()
    grids = np.meshgrid(*[x]*n, indexing="ij")
    return float(np.sum(f(*grids)*np.prod(np.meshgrid(*[w]*n, indexing="ij"), axis=0)))


def largest(n):
    """E max of n independent normals: n int t phi(t) Phi(t)^(n - 1) dt."""
    return mpmath.quad(lambda t: n*t*mpmath.npdf(t)*mpmath.ncdf(t)**(n - 1), [-12, -4, 0, 4, 12])


# -- the questions of the catalogue, with the values that an independent reference at 24 digits gave ---------------------
CATALOGUE = {
    "Max(z1**2,(z1/2+sqrt(3)*z2/2)**2)": "1.551328895421792049511326", "Max(z1,z2,z3)": "0.8462843753216344304221192",
    "relu(z1)*relu(z1*3/5+z2*4/5)": "0.3387737838832563041098664", "tanh(z1+z2)**2": "0.5199757456639486235318158",
    "Heaviside(z1-6)*Heaviside(z2-7)": "1.262647243762031659183543e-21", "Heaviside(1-z1**2-z2**2)": "0.3934693402873665763962005",
    "exp(cos(50*z1)*cos(30*z2))": "1.130996879843327369602103", "1/(1+z1**2+z2**2)": "0.4614553162418652344164247",
}


@pytest.mark.parametrize("text", CATALOGUE)
def test_the_catalogue(text):
    check(average(text), CATALOGUE[text], 14)


CLOSED = {
    "exp(z1*z2/2)": lambda: 2/mpmath.sqrt(3), "cos(z1*z2)": lambda: 1/mpmath.sqrt(2),
    "1/sqrt(z1**2+z2**2)": lambda: mpmath.sqrt(mpmath.pi/2),
    "Heaviside(z1+z2-8)": lambda: mpmath.erfc(4)/2, "relu(z1*z2+z3*z4)": lambda: mpmath.mpf(1)/2,  # a Laplace law
    "abs(z1-z2)**(-1/3)": lambda: 2**(-mpmath.mpf(1)/6)*2**(-mpmath.mpf(1)/6)*mpmath.gamma(mpmath.mpf(1)/3)/mpmath.sqrt(mpmath.pi),
    "sqrt((2+z1)**2+z2**2)": lambda: mpmath.sqrt(mpmath.pi/2)*mpmath.hyp1f1(-0.5, 1, -2),  # the mean of Rice's law
    "sqrt((2+z1)**2+z2**2+z3**2+z4**2)": lambda: mpmath.sqrt(2)*mpmath.gamma(2.5)/mpmath.gamma(2)*mpmath.hyp1f1(-0.5, 2, -2),
    "exp(z1)/(exp(z1)+exp(z2)+exp(z3))": lambda: mpmath.mpf(1)/3,
    "exp(z1)/(exp(z1)+exp(z2)+exp(z3)+exp(z4))": lambda: mpmath.mpf(1)/4,
    "sign(z1)*sign(z1+z2)": lambda: mpmath.mpf(1)/2, "sign(z1+z2)*sign(z2+z3)": lambda: mpmath.mpf(1)/3,
    "Max(z1,z2,z3,z4,z5)": lambda: largest(5), "Min(z1,z2,z3,z4)+3": lambda: 3 - largest(4),
    "sign(z1*z2-1)": lambda: 2*positive_product() - 1,
    "Heaviside(z1*z2-1)": lambda: positive_product(), "log(z1**2+z2**2)": lambda: mpmath.log(2) - mpmath.euler,
    "1/(z1**2+2*z2**2)**(1/4)": lambda: mean_power(-mpmath.mpf(1)/4),
    "exp(300*z1)*tanh(z2)**2": lambda: mpmath.exp(45000)*tanh_square(1),
    "tanh(z1*z2)**2": lambda: mpmath.quad(lambda s: 2*mpmath.npdf(s)*tanh_square(s), [0, 1, 3, 7, 12]),
    "Heaviside(z1-6)*Heaviside(z1/2+z2-8)": lambda: rare_corner(),
}


def positive_product():
    """P(z1 z2 > 1)."""
    return 2*mpmath.quad(lambda t: mpmath.npdf(t)*mpmath.erfc(1/t/mpmath.sqrt(2))/2, [0, 0.5, 1, 2, 4, 8, 14])


def rare_corner():
    """P(z1 > 6, z1/2 + z2 > 8)."""
    return mpmath.quad(lambda t: 1e20*mpmath.npdf(t)*mpmath.erfc((8 - t/2)/mpmath.sqrt(2))/2, [6, 7, 8, 10, 14])/1e20


def mean_power(a):
    """E (z1^2 + 2 z2^2)^a by the angle: 2^a Gamma(1 + a)/(2 pi) int (1 + sin^2)^a."""
    around = mpmath.quad(lambda t: (1 + mpmath.sin(t)**2)**a, mpmath.linspace(0, 2*mpmath.pi, 9))
    return 2**a*mpmath.gamma(1 + a)/(2*mpmath.pi)*around


def tanh_square(s):
    return mpmath.quad(lambda t: 2*mpmath.npdf(t)*mpmath.tanh(s*t)**2, [0, 0.3, 1, 3, 7, 12])


@pytest.mark.parametrize("text", CLOSED)
def test_closed_forms_and_integrals_over_one_variable(text):
    with mpmath.workdps(20):
        check(average(text), CLOSED[text](), 13)


PRODUCTS = {
    "log(exp(z1)+exp(z2)+exp(z3))": lambda a, b, c: np.log(np.exp(a) + np.exp(b) + np.exp(c)),
    "(exp(z1)/(exp(z1)+exp(z2)+exp(z3)))**2": lambda a, b, c: (np.exp(a)/(np.exp(a) + np.exp(b) + np.exp(c)))**2,
    "cos(z1*z2+z3)*exp(-z1**2)": lambda a, b, c: np.cos(a*b + c)*np.exp(-a*a),
}


@pytest.mark.parametrize("text", PRODUCTS)
def test_analytic_integrands_against_products_of_gauss_rules(text):
    check(average(text), gauss(PRODUCTS[text], 3), 9)


# -- orthants and maxima -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_orthants_of_correlation_one_half(n):
    """P(all positive) = 1/(n + 1): each of n + 1 independent normals is as likely the smallest."""
    value, error = product_average([1]*n, np.zeros(n), (np.eye(n) + 1)/2)
    assert abs(value - 1/(n + 1)) <= error < 1e-12


def test_orthants_with_means_against_an_integral_over_one_variable():
    """Correlations 1/4 = Var w, shared: P(all x_i + h_i > 0) = E prod Phi((h_i + w/2)/sqrt(3/4))."""
    h = [0.3, -1.2, 0.8, 0.1, 2.0, -0.5]
    known = mpmath.quad(lambda t: mpmath.npdf(t)*mpmath.fprod(mpmath.ncdf((k + t/2)/mpmath.sqrt(0.75)) for k in h),
                        [-9, -3, 0, 3, 9])
    value, error = product_average([1]*6, np.array(h), 0.75*np.eye(6) + 0.25)
    assert abs(value - known) <= error < 1e-12


def test_the_maximum_of_correlated_normals_against_samples():
    law = sp.Matrix(4, 4, lambda i, j: sp.Rational(min(i, j) + 1, 2) if i != j else sp.Rational(i + 2, 2))
    found = average(sp.Max(z1, z2 + HALF, z3, 2*z4), law)
    x = np.random.default_rng(3).multivariate_normal(np.zeros(4), np.array(law.tolist(), float), size=2*10**6)
    draws = np.max(x*[1, 1, 1, 2] + [0, 0.5, 0, 0], axis=1)
    assert abs(float(found.value) - draws.mean()) < 4*draws.std()/len(draws)**0.5
    assert found.error < 1e-11


# -- identities ------------------------------------------------------------------------------------------------------------
TURN = sp.Matrix([[3, 4], [-4, 3]])/5
ACTIVATIONS = (sp.tanh, lambda u: sp.Max(0, u), sp.sign, sp.Abs, sp.erf, sp.Heaviside, sp.cos, lambda u: 1/(1 + u**2),
               lambda u: sp.log(1 + sp.exp(u)), lambda u: sp.sqrt(sp.Abs(u)), lambda u: sp.log(sp.Abs(u)),
               lambda u: sp.Abs(u)**sp.Rational(-1, 3))


def drawn(seed):
    """A composition of activations of forms and products in two variables."""
    r = random.Random(seed)

    def number():
        return sp.Rational(r.choice([1, 2, 3, 5, 7, -1, -3, -4, 10]), r.choice([1, 2, 3, 4, 5, 7]))

    def inside():
        return r.choice([number()*z1 + number()*z2 + number(), number()*z1*z2 + number(), number()*z1**2 + number()*z2,
                         sp.tanh(number()*z1) + number()*z2])

    return r.choice(ACTIVATIONS)(inside())*r.choice(ACTIVATIONS)(inside()) + r.choice([0, number()])


@pytest.mark.parametrize("seed", [*range(1, 13), *(pytest.param(k, marks=pytest.mark.slow) for k in range(13, 80))])
def test_an_average_does_not_change_with_a_rotation(seed):
    """E f(z) = E f(O z): other directions, other breaks, other nodes."""
    f = drawn(seed)
    g = f.xreplace(dict(zip((z1, z2), TURN*sp.Matrix([z1, z2]), strict=True)))
    one, other = average(f), average(g)
    assert abs(one.value - other.value) <= one.error + other.error + abs(one.value)*1e-17, f
    assert one.error <= 1e-7*one.size, f


def test_softmax_sums_to_one_with_a_covariance():
    law = sp.Matrix([[2, HALF, 0], [HALF, 1, -HALF], [0, -HALF, 3]])
    total = sp.exp(z1) + sp.exp(z2) + sp.exp(z3)
    parts = [NormalAverages().of(sp.exp(v)/total, (z1, z2, z3), law) for v in (z1, z2, z3)]
    assert abs(sum(p.value for p in parts) - 1) <= sum(p.error for p in parts) < 1e-13


@pytest.mark.parametrize(("text", "digits"), [
    ("Max(0,z1+z2*z3*z4)", 6), ("relu(z1)*relu(z1/2+z2)*relu(z3-z1)", 8),
    *(pytest.param(*case, marks=pytest.mark.slow)
      for case in (("Max(z1,z2**2,z3**3)", 6), ("Max(0,tanh(z1)+z2*z3)", 4), ("Max(z1+z2,z3*z4,z5)", 3)))])
def test_three_variables_and_more_with_switches_against_samples(text, digits):
    found = average(text)
    f = sp.lambdify(Z[:5], parsed(text), [{"amax": lambda a, **_: np.max(np.broadcast_arrays(*a), axis=0)}, "numpy"])
    draws = f(*np.random.default_rng(5).normal(size=(5, 10**6)))
    assert abs(float(found.value) - draws.mean()) < 4*draws.std()/len(draws)**0.5 + float(found.error)
    assert found.error < found.value*10.0**(-digits)


# -- reductions ------------------------------------------------------------------------------------------------------------
def test_directions_are_read_off_the_formula():
    assert Directions(sp.Max(z1, z2, z3), (z1, z2, z3)).rows == [(-1, 1, 0), (-1, 0, 1)]
    assert Directions(sp.tanh(z1 - z2)*sp.exp(z3), (z1, z2, z3)).rows == [(1, -1, 0)]
    assert not Directions(sp.log(sp.exp(z1 + 2*z2)), (z1, z2)).rows


@pytest.mark.parametrize(("f", "left"), [(sp.exp(z1)/(sp.exp(z1) + sp.exp(z2) + sp.exp(z3)), 2), (sp.tanh(z1 + z2 - 3*z3), 1),
                                         ((z1 - z2)**2*sp.cos(z1 - z2), 1), (sp.exp(z1 + z2), 0), (sp.tanh(z1*z2), 2)])
def test_an_integrand_has_as_few_variables_as_directions(f, left):
    assert len(in_fewest(f, (z1, z2, z3), sp.eye(3)).variables) == left


def test_factors_lengths_circles_and_random_coefficients():
    assert len(independent_factors(3*sp.tanh(z1 + z2)*sp.Abs(z1 - z2), (z1, z2))) == 2
    assert by_length(sp.exp(-z1**2 - z2**2)*z3, (z1, z2, z3)).variables[0] == z3
    assert over_circle(sp.Max(z1, z2)/sp.sqrt(z1**2 + z2**2), (z1, z2)) is not None
    assert over_circle(sp.Max(z1, 1 + z2), (z1, z2)) is None
    assert len(by_conditional_form(sp.tanh(z1*z2 + z3*z4), (z1, z2, z3, z4)).variables) == 3


def test_a_reduction_to_one_variable_has_thirty_digits():
    with mpmath.workdps(40):
        check(average("Max(z1,z2,z3,z4)", digits=30), largest(4), 29)
        check(average("1/sqrt(z1**2+z2**2)", digits=30), mpmath.sqrt(mpmath.pi/2), 29)
    with pytest.raises(BeyondDoubles):
        average("tanh(z1*z2)**2", digits=30)


# -- what is refused -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["exp(z1*z2)", "1/(z1-z2)", "1/(z1**2+z2**2)", "1/(z1*z2-1)", "exp(z1**2*z2)", "exp(z1*z2*z3)",
                                  "1/(z1**2-z2)", "1/abs(z1*z2-1)", "exp(z1**2/2)*tanh(z2+z1)**2", "exp(z1**2/3+z2**2/3+z1*z2)"])
def test_what_does_not_exist_is_refused(text):
    with pytest.raises(Divergent):
        average(text)


@pytest.mark.parametrize("text", ["1/(z1**2+z2**2+2*z3**2)**2", "exp(z1*z2)/(1+z1**4)", "z1/(z1**2+z2**4)**2"])
def test_what_is_not_decided_is_refused(text):
    with pytest.raises((Divergent, NotConverged)):
        average(text)


def test_an_odd_integrand_is_zero_if_its_average_exists():
    assert average("tanh(z1*z2)").value == 0
    with pytest.raises(HermitexError):
        average("z1*z2/(z1**2+z2**2)**2")


def test_a_budget_ends_a_sum_with_the_digits_that_hold():
    f = parsed("log(1+log(exp(z1)+exp(z2)+exp(z3)+exp(z4)+exp(z5)+exp(z6))**2)")
    with hx.budget(1.5):
        short = NormalAverages().of(f, Z)
    assert 0 < short.error < 1e-2
    with pytest.raises(BudgetExceeded), hx.budget(0):
        NormalAverages().of(f, Z)
    draws = np.log(1 + np.log(np.exp(np.random.default_rng(1).normal(size=(6, 10**6))).sum(axis=0))**2)
    assert abs(float(short.value) - draws.mean()) < 4*draws.std()/1e3 + float(short.error)


# -- planted errors ----------------------------------------------------------------------------------------------------------
def kinks():
    """A kink along a curve, as a nest and the value of its average by mpmath."""
    f = sp.Max(0, z2 - sp.sin(3*z1)/2)
    F = ScaledIntegrand(f, (z1, z2))
    known = mpmath.quad(lambda t: mpmath.npdf(t)*relu_mean(-mpmath.sin(3*t)/2), mpmath.linspace(-9, 9, 19))
    return F, float(known/mpmath.exp(F.top))


def relu_mean(m):
    return mpmath.npdf(m) + m*mpmath.ncdf(m)


def test_breaks_that_are_left_out_are_in_the_error():
    F, known = kinks()
    value, error, _ = NestedPanels(F, Breaks(marks(F.program), F.variables), 1e-14).total()
    assert abs(value - known) <= error < 1e-12*known
    value, error, _ = NestedPanels(F, Breaks(BreakMarks(set(), set(), set()), F.variables), 1e-14).total()
    assert abs(value - known) <= error


def test_a_root_that_is_left_out_is_in_the_error(monkeypatch):
    F, known = kinks()
    found = moving_breaks.Roots.at
    monkeypatch.setattr(moving_breaks.Roots, "at", lambda self, *args: found(self, *args) + 0.01)
    value, error, _ = NestedPanels(F, Breaks(marks(F.program), F.variables), 1e-14).total()
    assert 1e-8*known < abs(value - known) <= 2*error


def test_a_wrong_rule_is_in_the_error(monkeypatch):
    """A Gauss rule with a weight that is off by 1e-6 differs from the other of the pair."""
    F, known = kinks()
    rule = nested_panels.gauss.legendre

    def planted(order):
        x, w = rule(order)
        return (x, w*(1 + 1e-6)) if order == 24 else (x, w)

    monkeypatch.setattr(nested_panels.gauss, "legendre", planted)
    value, error, _ = NestedPanels(F, Breaks(marks(F.program), F.variables), 1e-14).total()
    assert abs(value - known) > 1e-7*known
    assert abs(value - known) <= 2*error


def test_a_wrong_reduction_is_seen_by_the_rotation(monkeypatch):
    """The test of rotations fails if a direction is dropped."""
    monkeypatch.setattr(several, "in_fewest", lambda body, variables, law: in_fewest(body.xreplace({z2: 0}), variables, law))
    f = sp.tanh(z1 + z2)**2
    g = f.xreplace(dict(zip((z1, z2), TURN*sp.Matrix([z1, z2]), strict=True)))
    one, other = average(f), average(g)
    assert abs(one.value - other.value) > 100*(one.error + other.error)


def test_every_pair_of_six_signs_is_the_arc_sine():
    law = sp.Matrix(6, 6, lambda i, j: sp.Rational(1, 1 + abs(i - j)))
    for i, j in combinations(range(6), 2):
        found = NormalAverages().of(sp.sign(Z[i])*sp.sign(Z[j]), Z, law)
        check(found, 2/mpmath.pi*mpmath.asin(mpmath.mpf(1)/(1 + abs(i - j))), 14)
