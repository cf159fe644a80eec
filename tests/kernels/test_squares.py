"""A narrow factor exp(-((z - m)/w)^2): its square is completed, and what cancels there is not computed."""

import mpmath
import numpy as np
import pytest
from scipy.special import erfc as tail
from sympy import Abs, Add, Heaviside, Max, Mul, Piecewise, Rational, Symbol, cos, cosh, erfc, exp, log, sqrt, symbols, tanh

import hermitex as hx
from hermitex.symbols import z1, z2

c, h, w, x = symbols("c h w x", real=True)
z = Symbol("z")
T = np.arange(-3500, 3501)/250  # the rule of step 1/250 is exact for what falls like exp(-t^2/2)
FACTORS = [
    (tanh(z)**2 + 1, lambda u: np.tanh(u)**2 + 1), (1 + z**2, lambda u: 1 + u*u), (1/(1 + z**2), lambda u: 1/(1 + u*u)),
    (exp(z/2), lambda u: np.exp(u/2)), (cosh(z), np.cosh), (erfc(z), tail),
]
BUMPS = [  # the factor, its centre and its width
    (exp(-((z - h - x/10)/w)**2), lambda h, x, w: h + x/10, lambda x, w: w/np.sqrt(2)),
    (exp(-(z - h*x)**2/(2*w**2)), lambda h, x, w: h*x, lambda x, w: w),
    (exp(-z**2/w**2 + 2*h*z/w**2 - h**2/w**2), lambda h, x, w: h, lambda x, w: w/np.sqrt(2)),
    (exp(-(x*z - h)**2/(2*w**2)), lambda h, x, w: h/x, lambda x, w: w/x),
]


def expected(factor, m, s):
    u = m + s*T
    return s*np.sum(factor(u)*np.exp(-T*T/2 - u*u/2))/250/np.sqrt(2*np.pi)


@pytest.mark.parametrize("k", range(len(FACTORS)))
def test_a_narrow_bump_keeps_its_digits(k):
    formula, factor = FACTORS[k]
    rng = np.random.default_rng(k)
    bump, centre, width = BUMPS[k % len(BUMPS)]
    kernel = hx.compile(hx.E(formula*bump, z))
    for e in (-0.5, -3, -5, -7):
        numbers = {"h": rng.uniform(0.2, 1.5), "x": rng.uniform(0.5, 1.5), "w": 10**(e + rng.uniform(-0.5, 0))}
        value = kernel(**{n: v for n, v in numbers.items() if n in kernel.parameters})
        wanted = expected(factor, centre(numbers["h"], numbers["x"], numbers["w"]), width(numbers["x"], numbers["w"]))
        assert value == pytest.approx(wanted, rel=1e-12), (formula*bump, numbers)


@pytest.mark.parametrize("narrow", [3e-2, 3e-4, 3e-6])
def test_a_bump_about_an_unknown_is_solved(narrow):
    system = hx.System({x: 1 + hx.E((1 + z**2)*BUMPS[0][0], z)/w})
    found = system.solve(h=0.3, w=narrow)
    m = 0.3 + found["x"]/10
    assert found["x"] == pytest.approx(1 + expected(FACTORS[1][1], m, narrow/np.sqrt(2))/narrow, rel=1e-11)


@pytest.mark.parametrize("size", [5.0, 20.0, 40.0, 100.0])
def test_a_mass_that_is_moved_beyond_every_window(size):
    """E[f(z) exp(h z - h^2/2)] = E f(z + h)."""
    kernel = hx.compile(hx.E((z + 1)*(2 + tanh(z))*exp(h*z - h**2/2), z))
    assert kernel(h=size) == pytest.approx(np.sum((T + size + 1)*(2 + np.tanh(T + size))*np.exp(-T*T/2))/250/np.sqrt(2*np.pi),
                                           rel=1e-12)


@pytest.mark.parametrize("size", [5.0, 20.0, 40.0, 100.0])
@pytest.mark.parametrize("beside", [0, 0.1, 1])
def test_a_term_whose_mass_is_elsewhere_has_nodes_of_its_own(size, beside):
    """E[f(z) exp(k z - k^2/2)] = E f(z + k), beside a term whose mass stays at 0."""
    a, k = symbols("a k", real=True)
    body = Max(z - a, 0)*tanh(z)*exp(k*z - k**2/2) + beside*tanh(z)**2
    found = hx.System({x: hx.E(body, z)}).solve(k=size, a=0.5)
    t = np.arange(-4000, 4001)/400
    there = np.sum(np.maximum(t + size - 0.5, 0)*np.tanh(t + size)*np.exp(-t*t/2))/400/np.sqrt(2*np.pi)
    assert found["x"] == pytest.approx(there + beside*0.394294490397842, rel=1e-9)


GATES = [Heaviside(z - c), Max(z - c, 0), (z + abs(z))*Heaviside(z - c), Heaviside(z - c) + Heaviside(z - c - 1),
         Piecewise((0, z < c), (1, True))]
LAGUERRE = np.polynomial.laguerre.laggauss(40)


@pytest.mark.parametrize(("gate", "steep"), [(g, k) for k in (20, 1000) for g in GATES])
def test_a_mass_where_a_switch_begins(gate, steep):
    """E[exp(-k (z - c)) f(z)] with f = 0 below c: an average that was 0, as its nodes stood about -k."""
    begin = Rational(3, 10)
    found = hx.System({x: hx.E(exp(steep*(c - z))*gate*tanh(z + 1), z)}).solve(c=0.3) if gate.func is Heaviside else None
    value = hx.compile(hx.E(exp(steep*(begin - z))*gate.subs(c, begin)*tanh(z + 1), z))()
    t = 0.3 + LAGUERRE[0]/steep
    at = {Heaviside: 1 + 0*t, Max: t - 0.3, Mul: 2*t, Add: 1 + (t > 1.3), Piecewise: 1 + 0*t}[gate.func]
    wanted = np.sum(LAGUERRE[1]*at*np.tanh(t + 1)*np.exp(-t*t/2))/steep/np.sqrt(2*np.pi)
    assert value == pytest.approx(wanted, rel=1e-8 if gate.func is Add else 1e-12)
    assert found is None or found["x"] == pytest.approx(wanted, rel=1e-11)


def test_a_mass_between_two_switches_or_with_a_letter():
    """Of f with two parts neither side of the nearer one is empty; and a letter says where f begins."""
    two = hx.E(exp(z**2/4 - 3*z)*(Heaviside(z - 1) + Heaviside(-9 - z))*tanh(z)**2, z)  # its mass would lie at -6
    assert hx.compile(two)() == pytest.approx(194.211898883677, rel=1e-11)  # .evalf()
    found = hx.System({x: hx.E(exp(z**2/4 + h*(z - c))*Heaviside(z - c)*cos(z), z)}).solve(c=0.3, h=-100)
    t = 0.3 + LAGUERRE[0]/100
    assert found["x"] == pytest.approx(np.sum(LAGUERRE[1]*np.cos(t)*np.exp(-t*t/4))/100/np.sqrt(2*np.pi), rel=1e-10)
    found = hx.System({x: hx.E(exp(h*(z**2 - c**2))*Heaviside(z**2 - c**2)*cos(z), z)}).solve(c=0.7, h=-1e3)
    t = np.sqrt(0.49 + LAGUERRE[0]/1e3)
    wanted = np.sum(LAGUERRE[1]*np.cos(t)*np.exp(-t*t/2)/t)/1e3/np.sqrt(2*np.pi)
    assert found["x"] == pytest.approx(wanted, rel=1e-10)
    wanted = np.sum(LAGUERRE[1]*(2 + np.tanh(40 + LAGUERRE[0]/20))*np.exp(-(LAGUERRE[0]/20)**2/2))/20/np.sqrt(2*np.pi)
    assert hx.compile(hx.E(exp(20*z)*Heaviside(z - c)*(2 + tanh(z)), z))(c=40) == pytest.approx(wanted, rel=1e-11)


def test_a_number_has_all_digits_however_large_its_exponents():
    """e^(a^2/2) erfc(a/sqrt 2)/2 at a = 10^10 is 1/(a sqrt(2 pi)); and cos beside it, whose closed form cancels."""
    assert hx.compile(hx.E(exp(-10**10*z)*Heaviside(z), z))() == pytest.approx(1e-10/np.sqrt(2*np.pi), rel=1e-15)
    value = np.sum(LAGUERRE[1]*np.cos(LAGUERRE[0]/40)*np.exp(-(LAGUERRE[0]/40)**2/2))/40/np.sqrt(2*np.pi)
    assert hx.compile(hx.E(exp(-40*z)*Heaviside(z)*cos(z), z))() == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize(("body", "true"), [
    ((1 - tanh(10*z))*exp(20*z), 1.0),                                 # 2/(1 + exp(-20 z))
    ((1 - tanh(10*z)**2)*exp(20*z), 1.920536863430516671),             # mpmath, 30 digits
    ((1 - 1/(1 + exp(-20*z)))*exp(20*z), 0.5),
    (1/(1 - tanh(z)), (1 + np.exp(2))/2),
    ((log(2*cosh(10*z)) - 10*z)*exp(20*z), 0.519816884882022),         # log(1 + exp(-20 z)), mpmath
    ((log(1 + exp(20*z)) - Max(0, 20*z))*exp(20*abs(z)), 0.984635136311372),
])
def test_what_falls_beside_an_exponential_is_no_difference_of_numbers(body, true):
    """1 - tanh is 0 to a float where exp(20 z) has its mass: the average was 0, with an error of 1."""
    kernel = hx.compile(hx.E(body, z))
    assert kernel() == pytest.approx(true, rel=5e-14) and kernel.error < 1e-11


def test_what_overflows_where_the_mass_would_be_moved_is_not_moved():
    one, other = (hx.compile(hx.E(e, z))() for e in (exp(40*z)/cosh(10*z)**4, 16/(1 + exp(-20*z))**4))
    assert one == pytest.approx(other, rel=1e-12)


def test_an_average_inside_is_drawn_as_the_one_around_it():
    """E exp(3 z1) E tanh(z1 + z2 + 1) was 41 for 88: z1 was drawn about 3 beside the average over z2, and at z1 in it."""
    t = Symbol("t", real=True)
    smooth = hx.compile(hx.E(tanh(t + sqrt(2)*z1)), t)
    inner = hx.E(tanh(z1 + z2 + 1), z2)
    assert hx.compile(hx.E(exp(3*z1)*inner, z1))() == pytest.approx(np.exp(4.5)*smooth(4.0), rel=1e-13)
    assert hx.compile(hx.E(exp(t*z1 - t**2/2)*inner, z1), t)(30.0) == pytest.approx(1, rel=1e-13)
    wide = hx.compile(hx.E(tanh(1 + sqrt(3)*z1)))()
    found = hx.System({t: hx.E(exp(z1**2/4)*inner, z1)}).solve()
    assert found["t"] == pytest.approx(np.sqrt(2)*wide, rel=1e-13)
    root = hx.E(hx.E(tanh(z1 + z2), z2)**2/Abs(z1 + 1)**Rational(1, 3), z1)
    assert hx.compile(root)() == pytest.approx(0.271809348719734, rel=1e-12)  # evalf(15)


q, rho = Symbol("q", positive=True), Symbol("rho", positive=True)
FIELD = exp(q*z**2/(2*(1 + q)))  # of a Gaussian signal, beside the standard normal observation z sqrt(q)
EVIDENCE = 1 - rho + rho/sqrt(1 + q)*FIELD
OVERLAP = (rho*sqrt(q)*z/(1 + q)**Rational(3, 2)*FIELD)**2/EVIDENCE


@pytest.mark.parametrize(("snr", "true"), [  # mpmath, 25 digits, in the variable z/sqrt(1 + q)
    (1, 0.04326862357188332276), (30, 0.18849344403230194132), (3e3, 0.19992141232757695936), (3e4, 0.19999283496664474948)])
def test_an_overlap_over_its_evidence_is_drawn_as_wide_as_the_quotient_is(snr, true):
    """E N^2/Z grows as exp(2 u) over exp(u), u below z^2/2: the numerator alone has no average."""
    kernel = hx.compile(hx.E(OVERLAP, z))
    assert kernel(q=snr, rho=0.2) == pytest.approx(true, rel=2e-14) and kernel.error < 1e-11


def test_a_quotient_of_exponentials_with_a_letter():
    a = Symbol("a", positive=True)
    kernel = hx.compile(hx.E(exp(a*z**2)/(1 + exp(a*z**2/2)), z))
    for rate in (0.2, 0.8, 0.95):
        w = 1/np.sqrt(1 - rate)
        wanted = w*np.sum(np.exp(-T*T/2)/(1 + np.exp(-rate*(w*T)**2/2)))/250/np.sqrt(2*np.pi)
        assert kernel(a=rate) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(hx.errors.HermitexError):
        kernel(a=1.5)  # it grows as exp(0.75 z^2)


@pytest.mark.parametrize(("noise", "overlap", "snr"), [  # mpmath, findroot at 25 digits
    (0.1, 0.10799839494021906986, 3.12497387619851487705), (1e-4, 0.19993641602772742542, 3667.84099728450023857)])
def test_a_bayes_optimal_denoiser_as_overlap_over_evidence(noise, overlap, snr):
    Delta, m = Symbol("Delta", positive=True), Symbol("m", positive=True)
    system = hx.System({"q": Rational(3, 5)/(Delta + rho - m), "m": hx.E(OVERLAP, z)})
    found = system.solve(rho=0.2, Delta=noise, start={"m": 0.1})
    assert found["m"] == pytest.approx(overlap, rel=1e-11) and found["q"] == pytest.approx(snr, rel=1e-9)


@pytest.mark.parametrize(("snr", "true"), [  # mpmath, 20 digits
    (10, 0.59228466561320889), (100, 9.2007687888690894), (1e4, 998.60729074040358)])
def test_a_free_entropy_is_drawn_as_wide_as_its_evidence(snr, true):
    """E Z log Z: the sum Z multiplies, and its largest term overflows inside of the logarithm."""
    kernel = hx.compile(hx.E(EVIDENCE*log(EVIDENCE), z))
    assert kernel(q=snr, rho=0.2) == pytest.approx(true, rel=2e-14) and kernel.error < 1e-11


@pytest.mark.parametrize(("snr", "true"), [(0.1, -9.7575406398302382e-5), (10, -0.082222201032178271), (1e4, -0.21577685180781229)])
def test_the_logarithm_of_a_sum_beside_one(snr, true):
    assert hx.compile(hx.E(log(EVIDENCE), z))(q=snr, rho=0.2) == pytest.approx(true, rel=1e-12)


def test_the_slope_of_an_overlap_is_drawn_as_wide_as_its_terms():
    """The derivative is one average of a sum of quotients, a Jacobian of the solver: in a window of 9 it had the wrong sign."""
    Delta, m = Symbol("Delta", positive=True), Symbol("m", positive=True)
    system = hx.System({"q": Rational(3, 5)/(Delta + rho - m), "m": hx.E(OVERLAP, z)})
    found = system.solve(rho=0.2, Delta=0.01, start={"m": 0.1})
    overlap, at = hx.compile(hx.E(OVERLAP, z)), found["q"]
    steps = at*np.array([-1e-3, 1e-3])
    slope = np.diff(overlap(q=at + steps, rho=np.full(2, 0.2)))[0]/np.diff(steps)[0]
    assert found.stability == pytest.approx(np.sqrt(slope*at**2/0.6), rel=1e-5)


LINEAR = {
    "Bernoulli-Rademacher": ("E((exp(-q/2)*sinh(sqrt(q)*z)/10)**2/(9/10 + exp(-q/2)*cosh(sqrt(q)*z)/10))",
                             lambda z, q: (mpmath.exp(-q/2)*mpmath.sinh(mpmath.sqrt(q)*z)/10)**2
                             / (0.9 + mpmath.exp(-q/2)*mpmath.cosh(mpmath.sqrt(q)*z)/10)),
    "one sign": ("E((exp(sqrt(q)*z - q/2)*3/10)**2/(7/10 + 3/10*exp(sqrt(q)*z - q/2)))",
                 lambda z, q: (0.3*mpmath.exp(mpmath.sqrt(q)*z - q/2))**2
                 / (0.7 + 0.3*mpmath.exp(mpmath.sqrt(q)*z - q/2))),
    "log-partition": ("E((1 - p + p*exp(sqrt(q)*z - q/2))*log(1 - p + p*exp(sqrt(q)*z - q/2)))",
                      lambda z, q: (0.7 + 0.3*mpmath.exp(mpmath.sqrt(q)*z - q/2))
                      * mpmath.log(0.7 + 0.3*mpmath.exp(mpmath.sqrt(q)*z - q/2))),
}


@pytest.mark.parametrize("q", [1e-3, 1, 30, 1e3, 1e4])
@pytest.mark.parametrize("name", LINEAR)
def test_exponents_linear_in_z_have_their_mass_far_out(name, q):
    """At q = 1e4 it lies at |z| = 100; mpmath's quadrature about 0 and about +-sqrt(q)."""
    text, f = LINEAR[name]
    kernel = hx.compile(text, symbols="q>0, p>0")
    with mpmath.workdps(30):
        c = mpmath.sqrt(mpmath.mpf(q))
        edges = sorted({x for m in (-c, 0, c) for x in (m - 12, m - 3, m, m + 3, m + 12)})
        edges = mpmath.linspace(edges[0], edges[-1], 80) if c < 30 else edges
        exact = mpmath.quad(lambda z: f(z, mpmath.mpf(q))*mpmath.npdf(z), edges)
    assert kernel(q=q, **({"p": 0.3} if "p" in kernel.parameters else {})) == pytest.approx(float(exact), rel=1e-10)


def test_a_factor_that_falls_keeps_the_mass_about_0():
    """exp(q z) log(1 + exp(-q z)) is 1 far out, and 0 at the left: half of its mass, and what lies within 1/q of 0."""
    kernel = hx.compile("E((1 + exp(q*z))*log(1 + exp(-q*z)))", symbols="q>0")
    with mpmath.workdps(30):
        exact = mpmath.quad(lambda z: (1 + mpmath.exp(50*z))*mpmath.log1p(mpmath.exp(-50*z))*mpmath.npdf(z),
                            [-12, -3, -1, -0.2, 0, 0.2, 1, 3, 12])
    assert kernel(q=50) == pytest.approx(float(exact), rel=1e-10)


def test_a_mixture_with_the_weights_p_and_1_less_p():
    """E exp(s z)/(1 - p + p exp(s z - s^2/(1 - p))): where the mass is, is asked at p = 1, too."""
    p, s = symbols("p s", positive=True)
    kernel = hx.compile(hx.E(exp(s*z)/(1 - p + p*exp(s*z - s**2/(1 - p))), z))
    wanted = np.sum(np.exp(2*T - T*T/2)/(0.9 + 0.1*np.exp(2*T - 4/0.9)))/250/np.sqrt(2*np.pi)
    assert kernel(p=0.1, s=2.0) == pytest.approx(wanted, rel=1e-12)
