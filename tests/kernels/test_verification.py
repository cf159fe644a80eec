"""Averages that oscillate, are narrow or diverge: never a wrong number without a word, alone, in a batch, in a system."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from mpmath import mp, mpf
from sympy import (
    Abs,
    Heaviside,
    Integer,
    Max,
    Rational,
    Symbol,
    atan,
    besselj,
    cos,
    cosh,
    erf,
    exp,
    lambdify,
    sign,
    sin,
    sqrt,
    symbols,
    tan,
    tanh,
)

import hermitex as hx
from hermitex import E
from hermitex.errors import Divergent, NotConverged
from hermitex.kernels.adaptive import Quadratures
from hermitex.kernels.lowered import NodeAxis
from hermitex.symbols import z, z1, z2

a, b, x = symbols("a b x", real=True)


def dense(body, **numbers):
    """E f by the trapezoid rule with 400,001 nodes, which no kernel uses."""
    nodes = np.linspace(-10, 10, 400_001)
    f = lambdify([z, *(Symbol(n, real=True) for n in numbers)], body, "numpy")
    return float(np.sum(f(nodes, *numbers.values())*np.exp(-nodes**2/2))*(nodes[1] - nodes[0])/np.sqrt(2*np.pi))


OSCILLATING = [sin(a*z)**2*tanh(z)**2, cos(a*z)/(1 + exp(z)), tanh(1 + sin(a*z)), 1/(2 + cos(a*z)), exp(cos(a*z))*tanh(z)**2,
               cos(a*z)*cos(a*z + 1)/(1 + z**2)]


@pytest.mark.parametrize("body", OSCILLATING, ids=str)
def test_oscillation_is_found_alone_and_in_a_batch(body):
    kernel = hx.compile(E(body, z))
    step = 2*np.pi/0.1  # the frequencies that the first rule cannot tell from slow ones
    draw = np.random.default_rng(len(str(body)))
    numbers = np.concatenate([[30.0, step/2, step, 2*step], np.exp(draw.uniform(0, 6, 3))])
    truth = [dense(body, a=v) for v in numbers]
    assert kernel(a=numbers) == pytest.approx(truth, rel=1e-9)
    for v, value in zip(numbers, truth, strict=True):
        assert hx.compile(E(body, z))(a=v) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("body", [*OSCILLATING[:4]], ids=str)
def test_oscillation_in_a_table_of_a_system(body):
    system = hx.System({x: b*E(body, z) + x/4})
    for v in (30.0, 20*np.pi, 41.3):
        assert system.solve(a=v, b=1.5)["x"] == pytest.approx(2*dense(body, a=v), rel=1e-9)


DIVERGENT = [tan(a*z), tan(a*z)**2, 1/(z - a), 1/(sin(3*z) - a/8)**2, 1/(tanh(z) - a/8), 1/((z - a)*(z + a + 1)), 1/(exp(z) - a)**2]


@pytest.mark.parametrize("body", DIVERGENT, ids=str)
def test_what_diverges_is_refused(body):
    draw = np.random.default_rng(7).uniform(0.4, 1.6, 3)
    system = hx.System({x: b*E(body, z)})
    observed = hx.System({x: a/2}, observables={"seen": E(body, z)})
    for v in (*draw, 1.0):
        with pytest.raises((Divergent, NotConverged)):
            hx.compile(E(body, z))(a=v)
        with pytest.raises(NotConverged):
            system.solve(a=v, b=1.0)
        with pytest.raises(NotConverged):
            observed.solve(a=v)


def test_a_point_that_diverges_leaves_the_others_of_its_batch_alone():
    found = hx.System({x: b*E(1/(sqrt(z**2 + a) - 1)*tanh(z)**2, z)}).solve(a=[0.5, 1.5, 2.0], b=1.0, raise_on_failure=False)
    assert list(found.converged) == [False, True, True]


def test_a_table_keeps_its_error():
    C, beta, h = Symbol("C", real=True), Symbol("beta", positive=True), Symbol("h", real=True)
    found = hx.System({C: beta*E(1 - tanh(beta*(z - h))**2, z)}).solve(beta=1e3, h=0.3)
    assert found["C"] == pytest.approx(2*np.exp(-0.045)/np.sqrt(2*np.pi), rel=1e-6)


c, h, w, beta = (Symbol(n, real=True, positive=True if n in ("w", "beta") else None) for n in ("c", "h", "w", "beta"))


def graded(body, **numbers):
    """E f with panels that shrink toward the centre down to the width, the two given by number."""
    centre, width = numbers["c"], numbers["w"]
    ends = [centre + side*width*2.0**j for side in (-1, 1) for j in range(-3, 60) if width*2.0**j < 25]
    ends = np.unique(np.clip([centre, *ends, *np.linspace(-12, 12, 97)], -12, 12))
    x, weights = np.polynomial.legendre.leggauss(30)
    half = np.diff(ends)[:, None]/2
    nodes = ends[:-1, None] + half*(1 + x)
    with np.errstate(all="ignore"):
        values = lambdify([z, c, w], body, ["scipy", "numpy"])(nodes, centre, width)
    return float(np.sum(values*half*weights*np.exp(-nodes**2/2))/np.sqrt(2*np.pi))


NARROW = [exp(-((z - c)/w)**2)*tanh(z)**2, tanh(exp(-((z - c)/w)**2)), tanh((z - c)/w)*tanh(z - 1), w/(w**2 + (z - c)**2)*cos(z)**2,
          1/cosh((z - c)/w)**2*exp(z/3), sqrt((z - c)**2 + w**2)*tanh(z), atan((z - c)/w)*tanh(z),
          1/(1 + exp((z - c)/w))*tanh(z - 1), erf((z - c)/w)**2*cos(z)**2, Abs(z - c)*tanh((z - c)/w),
          exp(-((z - c)/w)**2)*cos(z/w)**2*tanh(z)**2, exp(-((z - c)/w)**4)*tanh(z)**2, exp(-((z - c)/w)**6)]


@pytest.mark.parametrize("body", NARROW, ids=str)
def test_what_is_narrow_is_found_where_its_scale_stands_in_the_formula(body):
    draw = np.random.default_rng(11)
    numbers = [(draw.uniform(-2.5, 2.5), 10**draw.uniform(-5, -1)) for _ in range(4)]
    truth = [graded(body, c=u, w=v) for u, v in numbers]
    size = [graded(Abs(body), c=u, w=v) for u, v in numbers]
    kernel = hx.compile(E(body, z))
    together = kernel(c=[u for u, _ in numbers], w=[v for _, v in numbers])
    system = hx.System({x: b*E(body, z)})
    for (u, v), value, whole, known in zip(numbers, together, size, truth, strict=True):
        for found in (value, hx.compile(E(body, z))(c=u, w=v), system.solve(c=u, w=v, b=1.0)["x"]):
            assert abs(found - known) <= 3e-10*whole


def test_a_scale_that_stands_elsewhere_in_the_formula_too():
    """1/w is computed once, and is a scale still."""
    body = exp(z/3)/cosh((z - c)/w)**2
    found = hx.System({x: E(body, z)/w}).solve(c=0.5, w=1.3e-5)
    assert found["x"]*1.3e-5 == pytest.approx(graded(body, c=0.5, w=1.3e-5), rel=1e-9) and found.origin["nodes"]["z"] < 1000


def test_rounding_of_nodes_that_a_narrow_integrand_feels_is_told():
    """About a centre of its own a bump is known to the rounding of the nodes beside its width."""
    draw = np.random.default_rng(3)
    kernel = hx.compile(E(exp(-((z - c)/w)**2)*tanh(z)**2, z), tolerance=1e-6)
    for width in [1e-9]*12 + [1e-8, 1e-10]*6:
        centre = mpf(float(draw.uniform(-2.5, 2.5)))
        known = mpf(width)/mp.sqrt(2)*mp.tanh(centre)**2*mp.exp(-centre**2/2)  # to second order in the width
        assert abs(kernel(c=float(centre), w=width)/known - 1) < kernel.error/2


@pytest.mark.parametrize("g, start", [(tanh(z) - Rational(1, 2), 0.6), (z + exp(z), -0.5), (cosh(z) - 2, 1.3)], ids=str)
def test_what_an_exponent_hides_is_found_beside_what_is_wide(g, start):
    body, f = exp(-10**8*g**2), lambdify(z, g, "mpmath")
    with mp.workdps(30):
        place = mp.findroot(f, start)
        ends = [place + k*mpf(10)**-5 for k in (-100, -40, -10, 0, 10, 40, 100)]
        known = mp.quad(lambda t: mp.exp(-10**8*f(t)**2)*mp.npdf(t), ends)*(1 + g.has(cosh))  # there are two places
    for rest in (0, tanh(z)**2):
        kernel, plain = hx.compile(E(body + rest, z)), E(rest + Integer(0), z) if rest else Integer(0)
        assert abs(kernel() - float(known + plain.evalf(25))) < 1e-10*known
        assert abs((E(body + rest, z) - plain).evalf(20) - known) < 1e-12*known


def test_where_nothing_but_zero_is_met_nothing_is_known():
    q = Symbol("q", real=True)
    unknown = hx.compile(E(exp(-10**8*(besselj(0, z) - Rational(1, 3))**2), z))
    assert unknown() == 0 and unknown.error == 1
    zero = hx.compile(E(tanh(q*z)**2, z))
    assert list(zero(q=[0.0, 0.0])) == [0, 0] and zero.error < 1e-14


def test_scales_that_move_with_an_unknown_and_with_an_outer_variable():
    q = Symbol("q", positive=True)
    glass = hx.System({q: E(tanh(beta*(sqrt(q)*z + h))**2, z)})
    for temperature in (1e-1, 1e-2, 1e-4, 1e-6):
        found = glass.solve(beta=1/temperature, h=0.5)["q"]
        assert found < 1
        assert found == pytest.approx(graded(tanh((z - c)/w)**2, c=-0.5/np.sqrt(found), w=temperature/np.sqrt(found)), rel=1e-10)
    u = Symbol("u", real=True)
    nested = hx.compile(E(E(tanh(beta*(z + u)), u)**2, z))  # the inner average is erf(z/sqrt 2) for beta -> oo
    assert nested(beta=1e6) == pytest.approx(1/3, rel=1e-9)


def test_approximate_message_passing_on_sparse_signals():
    T, alpha, epsilon, Delta = symbols("T alpha epsilon Delta", positive=True)

    def mean(y):
        return y/(1 + T)/(1 + (1 - epsilon)/epsilon*sqrt((1 + T)/T)*exp(-y**2/(2*T*(1 + T))))

    error = epsilon - epsilon*E(mean(sqrt(1 + T)*z)**2, z) - (1 - epsilon)*E(mean(sqrt(T)*z)**2, z)
    system = hx.System({T: Delta + error/alpha})
    assert system.solve(epsilon=0.1, alpha=0.3, Delta=1e-4)["T"] == pytest.approx(1.635737e-4, rel=1e-6)
    assert system.solve(epsilon=0.1, alpha=[0.3, 0.5], Delta=1e-4)["T"][0] == pytest.approx(1.635737e-4, rel=1e-6)


@pytest.mark.parametrize(("place", "felt"), [(0.0, True), (1.5, True), (8.0, False)])
def test_tooth_an_inner_average_without_digits_counts_where_the_outer_one_feels_it(place, felt):
    """What no rule resolves is planted in an inner average about one place of the outer variable, whose weight is 1e-14 at 8."""
    rules = Quadratures([NodeAxis("z", 0, Symbol("z")), NodeAxis("u", 1, Symbol("u"))], {})

    def run(average):
        (outer, weights), (inner, own) = rules.arrays()["z"], rules.arrays()["u"]
        planted = np.exp(-20*(outer - place)**2)*np.cos(1e9*inner**3)
        return average(1 + average(1 + planted, own, 2), weights, 1)

    for _ in range(40):
        if rules.examine(run, 1e-11, coarsely=run).all():
            break
    rules.verify(run, 1e-11, run)
    assert rules.error.max() > 1e-6
    assert (rules.felt.max() > 1e-9) == felt


KINKED = [lambda t: Max(0, t), Abs, sign, lambda t: exp(-Abs(t))]


@pytest.mark.parametrize(("outer", "inner", "width"), [(0, 0, 0.0), (1, 0, 1e-300), (3, 0, 1e-6)])
def test_a_kink_that_no_width_brings_near(outer, inner, width):
    """E f(s z1 + m) g(c z1 + sqrt(1 - c^2) z2) at s = 0 is f(m) E g(z): by quadrature panels reach far out, and are too broad."""
    s, m, c = symbols("s m c", real=True)
    f, g = KINKED[outer], KINKED[inner]
    kernel = hx.compile(E(f(s*z1 + m)*g(c*z1 + sqrt(1 - c**2)*z2), z1, z2))
    value = kernel(s=width, m=1.8, c=0.39)
    exact = float(f(Rational(9, 5)))*[0.3989422804014327, 0, 0, 0.5231565837302474][inner]
    assert value == pytest.approx(exact, rel=1e-10 + width) and np.all(kernel.error < 1e-10)


@pytest.mark.parametrize("shift", [0.3, -0.97, 1.9])
def test_the_inverse_of_a_function_of_a_real_letter_is_real(shift):
    """It stands in the width of a peak: SymPy writes |exp(erfinv(m))| by re and im, which have no numeric form."""
    s, m = symbols("s m", real=True)
    kernel = hx.compile(E(1/(1 + (E(erf(s*z1 + z2), z1) - m)**2), z2))
    t = np.linspace(-12, 12, 4001)
    exact = np.sum(np.exp(-t*t/2)/(1 + (scipy.special.erf(t/np.sqrt(1.08)) - shift)**2))*(t[1] - t[0])/np.sqrt(2*np.pi)
    assert kernel(s=0.2, m=shift) == pytest.approx(exact, rel=1e-12)


def test_a_jump_beside_the_last_node_of_a_panel():
    """sign(E tanh(s z1 + z2) - m) jumps at a place that nobody tells: its average is 1 - 2 Phi(r), or it is refused."""
    s, m = symbols("s m", real=True)
    kernel = hx.compile(E(sign(E(tanh(s*z1 + z2), z1) - m), z2))
    t, weights = np.polynomial.hermite_e.hermegauss(60)
    told = 0
    for level in [-0.47, *np.random.default_rng(5).uniform(-0.9, 0.9, 8)]:
        place = scipy.optimize.brentq(lambda u, v=level: weights @ np.tanh(0.1*t + u)/np.sqrt(2*np.pi) - v, -5, 5, xtol=1e-15)
        try:
            value = kernel(s=0.1, m=level)
        except NotConverged:
            continue
        told += 1
        assert abs(value - 1 + 2*scipy.special.ndtr(place)) < 1e-11 + 2*kernel.error
    assert told


def test_the_rounding_of_break_points_is_felt_by_what_stands_between_two_of_them():
    """A window of width 1e-12 at 3 sqrt(2), which no float meets: its integral was off by 1e-4 of it, with an error of 4e-15."""
    place, body = 3*sqrt(2), 1/(cos(z) + 2)
    narrow = 10**12*Heaviside(10**12*(z - place))*Heaviside(1 - 10**12*(z - place))*body
    kernel = hx.compile(E(narrow + Abs(z), z), tolerance=1e-3)
    with mp.workdps(40):
        at = 3*mp.sqrt(2) + mpf(10)**-12/2
        known = mp.sqrt(2/mp.pi) + mp.npdf(at)/(mp.cos(at) + 2)
        assert abs(mpf(float(kernel())) - known) <= kernel.error*known
    assert kernel.error > 1e-9
