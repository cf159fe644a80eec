"""Orthants, switches whose order is not known, even poles, powers of Phi, logarithms with a shift: exact values and digits."""

import mpmath
import pytest
from sympy import (
    Abs,
    Add,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Poly,
    Rational,
    S,
    Symbol,
    asin,
    erf,
    erfc,
    exp,
    log,
    pi,
    sign,
    simplify,
    sqrt,
)

import hermitex as hx
from hermitex import E, Expectation
from hermitex.errors import Divergent
from hermitex.symbols import z, z1, z2, z3

z4 = Symbol("z4", real=True)
a, b, c, mu = (Symbol(n, real=True) for n in ("a", "b", "c", "mu"))
p, s, K = (Symbol(n, positive=True) for n in "psK")
HALF = Rational(1, 2)


@pytest.fixture(autouse=True)
def thirty_digits():
    with mpmath.workdps(30):
        yield


def phi(x):
    return (1 + erf(x/sqrt(2)))/2


def value(expr):
    """Twenty-five digits."""
    return mpmath.mpf(str(expr.evalf(25)))


def quad(body, cuts):
    from sympy import lambdify

    f = lambdify(z, body, "mpmath")
    ends = sorted({mpmath.mpf(-16), mpmath.mpf(16), *map(mpmath.mpf, range(-12, 13, 3)),
    *(mpmath.mpf(str(e.evalf(35))) for e in cuts)})
    return mpmath.quad(lambda t: f(t)*mpmath.npdf(t), ends)


# -- exact -------------------------------------------------------------------------------------------------------------
KINKS = [Max(0, z - a)*Max(0, z - b), Max(0, z - a)*Max(0, b - z), sign(z - a)*Abs(z - b), Max(z, a, b), Min(z, a)*Max(z, b),
         Heaviside(z - a)*Heaviside(z - b)*Heaviside(c - z)*z**2, Abs(z - a)*Abs(z - b), Max(0, 2*z - a)**2*Heaviside(b - s*z),
         Piecewise((z, z > a), (exp(z), True))*sign(z - b)]


@pytest.mark.parametrize("body", KINKS, ids=str)
@pytest.mark.parametrize("numbers", [
    (HALF, -1, -2), *(pytest.param(n, marks=pytest.mark.slow) for n in ((-1, HALF, 2), (1, 1, 1)))])
def test_switches_in_any_order(body, numbers):
    """One formula for every order of the places, equal ones too."""
    at = {**dict(zip((a, b, c), map(S, numbers), strict=True)), s: S(3)/4}
    exact = E(body, z).doit()
    assert not exact.has(Expectation)
    cuts = [at[a], at[b], at[c], at[a]/2, at[b]/at[s]]
    assert abs(value(exact.xreplace(at)) - quad(body.xreplace(at), cuts)) < 1e-18


@pytest.mark.parametrize(("body", "side"), [(Max(0, exp(mu + s*z) - K), 1), (Max(0, exp(mu - s*z) - K), 1), (Max(0,
K - exp(mu + s*z)), -1)])
def test_a_call_and_a_put(body, side):
    """Black and Scholes: exp(mu + s^2/2) Phi(d + s) - K Phi(d), d = (mu - log K)/s; the put by parity."""
    d = (mu - log(K))/s
    known = side*(exp(mu + s**2/2)*phi(side*(d + s)) - K*phi(side*d))
    exact = E(body, z).doit()
    for at in ({mu: HALF, s: S(2)/3, K: S(2)}, {mu: -S(1), s: S(2), K: S(1)/7}):
        assert abs(value((exact - known).xreplace(at))) < 1e-20
    planted = known.xreplace({s**2: s})
    assert abs(value((exact - planted).xreplace({mu: HALF, s: S(2)/3, K: S(2)}))) > 1e-3


@pytest.mark.parametrize("power", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_even_poles(power):
    """E z^2k/(a + z^2)^n, by digits and by the derivative in a."""
    exact = E(1/(p + z**2)**power, z).doit()
    for at in (Rational(1, 5), S(3)):
        assert abs(value(exact.xreplace({p: at}))/value(E(1/(at + z**2)**power, z)) - 1) < 1e-20
    lower = E(1/(p + z**2), z).doit()
    assert simplify(lower - sqrt(pi)*exp(p/2)*erfc(sqrt(p/2))/sqrt(2*p)) == 0
    assert abs(value((exact.diff(p) + power*E(1/(p + z**2)**(power + 1), z).doit()).xreplace({p: S(2)}))) < 1e-20
    mixed = E((z**6 + z**3 + 2)/(3 + 2*z**2)**power, z)
    assert abs(value(mixed.doit()) - value(mixed)) < 1e-20
    assert not mixed.doit().has(Expectation)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_powers_of_phi(n):
    assert E(phi(z)**n, z).doit() == Rational(1, n + 1)


def test_a_logarithm_with_a_shift():
    exact = E(log(Abs(mu - s*z)), z).doit()
    for m, k in ((S(2), S(1)), (Rational(1, 3), S(2)), (S(-9), HALF)):
        body = log(Abs(m - k*z))
        assert abs(value(exact.xreplace({mu: m, s: k})) - quad(body, [m/k])) < 1e-18
    assert E(log((z + 2)**2), z).doit() == 2*E(log(Abs(z + 2)), z).doit()
    slope = exact.diff(mu).xreplace({mu: S(2), s: S(1)})  # sqrt(2) F(mu/(s sqrt 2))/s, F Dawson's integral
    root = mpmath.sqrt(2)
    dawson = mpmath.exp(-2)*mpmath.sqrt(mpmath.pi)/2*mpmath.erfi(root)
    assert abs(value(slope) - root*dawson) < 1e-20


@pytest.mark.parametrize(("body", "at"), [
    (log(Abs(mu + s*z)), {mu: 30, s: HALF}), (Max(0, z - a)*Max(0, z - b), {a: -9, b: 8}),
    (Max(0, z - a)*Max(0, z - b), {a: 1, b: -1}),
    (1/(p + z**2), {p: 5000}), pytest.param(1/(p + z**2)**3, {p: 500}, marks=pytest.mark.slow),
    pytest.param(Max(0, exp(mu + s*z) - K), {mu: 0, s: Rational(1, 5), K: 2}, marks=pytest.mark.slow),
], ids=str)
def test_kernels_of_them(body, at):
    """The compiled kernel, whose closed form may cancel or have no numeric form, gives the digits."""
    kernel = hx.compile(E(body, z))
    known = E(body, z).xreplace({k: S(v) for k, v in at.items()}).evalf(15)
    assert float(kernel(**{k.name: float(v) for k, v in at.items()})) == pytest.approx(float(known), rel=1e-8, abs=1e-16)


# -- sums that exist though their terms do not -------------------------------------------------------------------------
@pytest.mark.parametrize("text, plain", [
    ("(1 - cos(z))/z**2", lambda v: (1 - mpmath.cos(v))/v**2), ("(1 - cos(z1))/z1**2*z2**2", lambda v: (1 - mpmath.cos(v))/v**2),
    ("1/(exp(z) - 1) - 1/z + z**2", lambda v: 1/mpmath.expm1(v) - 1/v + v**2),
    ("(cos(z) - 1)/Abs(z)**(3/2)", lambda v: (mpmath.cos(v) - 1)/abs(v)**1.5),
])
def test_terms_that_grow_may_cancel(text, plain):
    node = hx.parse(f"E({text})")
    with mpmath.workdps(30):
        known = mpmath.quad(lambda v: plain(v)*mpmath.npdf(v), [-12, -6, -2, -1, 0, 1, 2, 6, 12])
    assert float(node.evalf(15)) == pytest.approx(float(known), rel=1e-12)
    assert float(node.doit().evalf(15)) == pytest.approx(float(known), rel=1e-12)


@pytest.mark.parametrize("text", ["1/z**2 + 1/abs(z)", "cos(z)/z**2 + 1/z", "log(abs(z))/z**2 + 1", "(z + 1)**2/abs(z)",
"z**2 + tanh(z) + 1/z"])
def test_terms_that_do_not_cancel_diverge(text):
    with pytest.raises(Divergent):
        hx.parse(f"E({text})").doit()


# -- orthants ----------------------------------------------------------------------------------------------------------
def pairs(names, correlation):
    return {(u, v): correlation for i, u in enumerate(names) for v in names[i + 1:]}


def steps(*arguments):
    return Mul(*map(Heaviside, arguments))


def test_three_correlated_signs():
    """Sheppard: 1/8 + (asin r12 + asin r13 + asin r23)/(4 pi)."""
    r = [Symbol(f"r{i}", real=True) for i in (12, 13, 23)]
    cov = dict(zip([(z1, z2), (z1, z3), (z2, z3)], r, strict=True))
    exact = E(steps(z1, z2, z3), z1, z2, z3, cov=cov).doit()
    assert simplify(exact - Rational(1, 8) - Add(*map(asin, r))/(4*pi)) == 0
    assert E(sign(z1)*sign(z2)*sign(z3), z1, z2, z3, cov=cov).doit() == 0


@pytest.mark.parametrize("digits", [15, pytest.param(30, marks=pytest.mark.slow)])
def test_four_signs_by_what_is_known_of_equal_correlations(digits):
    """At correlation 1/2 the orthants of n have 1/(n + 1); at -1/3 the four are degenerate, and no orthant is left."""
    names = (z1, z2, z3, z4)
    assert abs(E(steps(*names), *names, cov=pairs(names, HALF)).evalf(digits) - Rational(1, 5)) < 10**(1 - digits)
    assert abs(E(steps(z1, z2, z1 + z2, z3), z1, z2, z3).evalf(digits) - Rational(1, 8)) < 10**(1 - digits)


def test_three_shifted_signs_by_conditioning():
    """Correlation 1/2: P(all x_i > -h_i) = E prod Phi(sqrt(2) h_i + z), one average over one normal."""
    shifts, names = (-1, HALF, Rational(1, 3)), (z1, z2, z3)
    many = E(steps(*(v + h for v, h in zip(names, shifts, strict=True))), *names, cov=pairs(names, HALF))
    one = E(Mul(*(phi(sqrt(2)*h + z) for h in shifts)), z)
    assert abs(many.evalf(15) - one.evalf(15)) < 1e-14


@pytest.mark.slow
def test_four_shifted_signs_by_conditioning():
    shifts, names = (-1, HALF, 0, Rational(1, 3)), (z1, z2, z3, z4)
    many = E(steps(*(v + h for v, h in zip(names, shifts, strict=True))), *names, cov=pairs(names, HALF))
    one = E(Mul(*(phi(sqrt(2)*h + z) for h in shifts)), z)
    assert abs(many.evalf(15) - one.evalf(15)) < 1e-14


# -- moments of linear forms -------------------------------------------------------------------------------------------
def test_a_product_of_powers_of_forms():
    u, v = z1 + z2 + z3, z1 - z2
    body = u**12*v**8*(z2 - 3*z3)**4
    terms = Poly(body, z1, z2, z3).terms()
    known = sum(c*Mul(*map(_moment, powers)) for powers, c in terms)
    assert E(body, z1, z2, z3).doit() == known
    assert E(u**13*v**8, z1, z2, z3).doit() == 0


def _moment(n):
    from sympy import factorial2

    return S.Zero if n % 2 else factorial2(n - 1)


@pytest.mark.parametrize("body", [Max(0, Min(7 - 9*z, 4*z - 7)), Max(0, HALF - z)*Max(0, z - 1),
                                  Heaviside(z - 2)*Heaviside(1 - z)], ids=str)
def test_what_vanishes_everywhere_is_nothing(body):
    assert E(body, z).evalf(15) == 0
