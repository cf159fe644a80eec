"""Planted faults: a solution that is called converged is nowhere further from the true one than its error says."""

import mpmath as mp
import numpy as np
import pytest
from sympy import Abs, Eq, Heaviside, Max, cos, cosh, exp, log, sqrt, symbols, tanh

import hermitex as hx
from hermitex.symbols import z, z1, z2

a, b, s, t = symbols("a b s t", real=True)
x, y = symbols("x y", real=True)
p = symbols("p", positive=True)
DRAWS = 300
FLOOR = {"x": 1e-6, "y": 1e-6, "p": 0.0}  # an unknown that is not positive counts as one of that size


def held(found, name, true):
    """No point is converged with an error below the true one. Returns how many converged."""
    value, good = np.ravel(found[name]), np.ravel(found.converged)
    off = np.abs(value - true)/np.maximum(np.abs(true), FLOOR[name])
    bad = good & (off > np.ravel(found.error))
    assert not bad.any(), [(k, off[k], found.error[k], value[k], true[k]) for k in np.flatnonzero(bad)[:3]]
    return int(good.sum())


def exactly(f, *columns):
    with mp.workdps(80):
        return np.array([float(f(*map(mp.mpf, row))) for row in zip(*columns, strict=True)])


def powers(seed, low, high):
    return 10.0**np.random.default_rng(seed).uniform(low, high, size=DRAWS)


@pytest.mark.parametrize("form", ["map", "implicit", "linear"])
def test_a_nearly_singular_jacobian(form):
    """x = x^2/2 + 1/2 - a/2 has the root 1 - sqrt(a); (1 + a) x + y = 2, x + y = 1 has x = 1/a."""
    size = powers(1, -15, -1)
    if form == "linear":
        found = hx.System({x: Eq((1 + a)*x + y, 2), y: Eq(x + y, 1)}).solve(a=size, raise_on_failure=False)
        assert held(found, "x", exactly(lambda d: 1/d, size)) > 100
        return
    rhs = x**2/2 + (1 - a)/2
    found = hx.System({x: rhs if form == "map" else Eq(x - rhs, 0)}).solve(a=size, start={"x": 0.5}, raise_on_failure=False)
    assert held(found, "x", exactly(lambda d: 1 - mp.sqrt(d), size)) > 100


@pytest.mark.parametrize(("formula", "exact"), [
    (2*(1 - cos(a))/a**2, lambda d: 2*(1 - mp.cos(d))/d**2),
    ((exp(a) - 1 - a)/a**2, lambda d: (mp.exp(d) - 1 - d)/d**2),
    (sqrt(1 + 1/a**2) - 1/a, lambda d: mp.sqrt(1 + 1/d**2) - 1/d),
    (log(1 + a)/a, lambda d: mp.log(1 + d)/d),
    ((tanh(a) - a)/a**3, lambda d: (mp.tanh(d) - d)/d**3),
])
def test_cancellation(formula, exact):
    size = powers(2, -10, 0)
    found = hx.System({x: formula, y: x*x}).solve(a=size, raise_on_failure=False)
    true = exactly(exact, size)
    assert held(found, "x", true) > 50
    held(found, "y", true*true)


def average(f, inside, points):
    """E f(z) by mpmath between the points, at each row of `inside`."""
    out = []
    with mp.workdps(25):
        for row in zip(*inside, strict=True):
            at = list(map(mp.mpf, row))
            edges = sorted({mp.mpf(-14), mp.mpf(14), mp.mpf(0), *points(*at)})
            out.append(float(mp.quad(lambda u, at=at: f(u, *at)*mp.npdf(u), edges)))
    return np.array(out)


@pytest.mark.parametrize(("formula", "f", "points", "spans"), [
    (exp(-((z - b)/a)**2/2)*tanh(z + 1)/a, lambda u, w, c: mp.exp(-((u - c)/w)**2/2)*mp.tanh(u + 1)/w,
     lambda w, c: [c + k*w for k in (-12, -6, -2, 0, 2, 6, 12)], (-4, 0)),  # a narrow bump
    (tanh((z - b)/a)**2, lambda u, w, c: mp.tanh((u - c)/w)**2,
     lambda w, c: [c + k*w for k in (-40, -20, -6, -2, 0, 2, 6, 20, 40)], (-4, 0)),  # a coarse rule
    (tanh(z - b)*exp(z/a), lambda u, w, c: mp.tanh(u - c)*mp.exp(u/w), lambda w, c: [1/w, 1/w + 8, 1/w + 14, 1/w - 8], (-0.9, 1)),
])
def test_averages(formula, f, points, spans):
    """A narrow bump, a steep step and a mass that lies in the tail."""
    rng, count = np.random.default_rng(3), 40
    width, centre = 10.0**rng.uniform(*spans, size=count), rng.uniform(-2, 2, size=count)
    found = hx.System({x: hx.E(formula, z)}).solve(a=width, b=centre, raise_on_failure=False)
    assert held(found, "x", average(f, (width, centre), points)) > count//2


def test_a_fast_integrand():
    """E cos(a z + b)/(1 + z^2), of which the rounding of the nodes leaves a thousand last digits; what vanishes counts as 1e-3."""
    fast, phase = powers(5, 0, 2.5), np.random.default_rng(5).uniform(-2, 2, size=DRAWS)
    found = hx.System({x: hx.E(cos(a*z + b)/(1 + z**2), z)}).solve(a=fast, b=phase, raise_on_failure=False)
    true = exactly(lambda w, c: mp.cos(c)*mp.sqrt(mp.pi*mp.e/8)*sum(mp.exp(k*w)*mp.erfc((1 + k*w)/mp.sqrt(2)) for k in (1, -1)),
                   fast, phase)
    clear = np.abs(true) > 1e-12
    off = np.abs(found["x"] - true)/np.where(clear, np.maximum(np.abs(true), 1e-6), 1e-3)
    assert np.all(off <= found.error) and found.converged.sum() > 250


def test_whatever_branch_is_found_its_error_holds():
    """m = tanh(a m + b) from starts of either sign: one, two or three roots, one of them by bisection at 40 digits."""
    rng = np.random.default_rng(6)
    steep, field, begin = rng.uniform(0.2, 3, DRAWS), rng.uniform(-0.5, 0.5, DRAWS), rng.uniform(-2, 2, DRAWS)
    found = hx.System({x: tanh(a*x + b)}).solve(a=steep, b=field, start={"x": begin}, raise_on_failure=False)
    with mp.workdps(40):
        true = [float(mp.findroot(lambda v, s=s, h=h: v - mp.tanh(s*v + h), mp.mpf(at))) for s, h, at in
                zip(steep, field, found["x"], strict=True)]
    assert held(found, "x", np.array(true)) > 290


@pytest.mark.parametrize("f", [lambda u: 1/u, lambda u: 1/u**2, lambda u: 1/(1 + u**4), lambda u: exp(-u**2), lambda u: exp(-u)])
def test_what_vanishes_at_infinity_or_jumps_at_a_pole_has_no_root(f):
    for begin in powers(4, -3, 3)[:20]:
        for equation in (Eq(f(p) + b, 1), Eq(f(p - 3) + b, 1)):
            found = hx.System({p: equation}).solve(b=1.0, start={"p": begin}, raise_on_failure=False)
            assert not found.converged, (equation, begin, found["p"])


def beyond(f, low):
    """E[f(z); z > low]/P(z > low) by mpmath, u = z - low."""
    with mp.workdps(25):
        low, edges = mp.mpf(low), [mp.mpf(k)/low for k in (0, 1, 4, 12, 40, 120)]
        mass, all_of_it = (mp.quad(lambda u, g=g: g(low + u)*mp.exp(-low*u - u*u/2), edges) for g in (f, lambda _: 1))
        return mass/all_of_it


@pytest.mark.parametrize(("formula", "f"), [
    (tanh(z), mp.tanh), (z**2*tanh(z), lambda u: u*u*mp.tanh(u)), (log(1 + z**2), lambda u: mp.log(1 + u*u)),
    (Max(0, z)*tanh(z) + Abs(z - 31), lambda u: u*mp.tanh(u) + abs(u - 31))],
    ids=["mean", "moment", "logarithm", "cancelling"])
def test_a_rare_event_has_its_digits(formula, f):
    """In a mean, in an equation, and as an average of its own; what underflows is refused."""
    far = [12, 20, 25, 30, 37, 39]
    mean = hx.E(formula, z > b)
    found = hx.System({x: mean, y: 1 + mean*y/(1 + x)/2}).solve(b=far, raise_on_failure=False)
    assert list(found.converged) == [True]*5 + [False]
    true = exactly(lambda u: beyond(f, u), far[:-1])
    np.testing.assert_allclose(found["x"][:-1], true, rtol=1e-12)
    np.testing.assert_allclose(found["y"][:-1], (1 + true)/(1 + true/2), rtol=1e-12)
    kernel = hx.compile(1 + mean)
    np.testing.assert_allclose(kernel(b=far[:-1]), 1 + true, rtol=1e-12)
    above = hx.System({p: hx.E(formula*Heaviside(z - 12))}).solve()
    assert above["p"] == pytest.approx(float(true[0]*mp.ncdf(-12)), rel=1e-12)


@pytest.mark.parametrize(("formula", "f", "draws"), [
    (tanh(z), lambda low: beyond(mp.tanh, low), 60),
    (z**2, lambda low: 1 + low*mp.npdf(low)/mp.ncdf(-low), DRAWS)], ids=["integrated", "closed"])
def test_the_rounding_of_rare_events(formula, f, draws):
    low = np.random.default_rng(7).uniform(0.3, 37, size=draws)
    found = hx.System({x: hx.E(formula, z > b)}).solve(b=low, raise_on_failure=False)
    assert held(found, "x", exactly(f, low)) == draws


def test_an_event_of_two_normals_that_is_rare():
    """z1 + z2 > b: that of one normal of variance 2."""
    found = hx.System({x: hx.E(tanh(z1 - z2)**2 + tanh(z1 + z2), z1 + z2 > b)}).solve(b=10)
    across = average(lambda u, _: mp.tanh(mp.sqrt(2)*u)**2, ([0.0],), lambda _: [])
    held(found, "x", across + float(beyond(lambda v: mp.tanh(mp.sqrt(2)*v), 10/mp.sqrt(2))))


@pytest.mark.parametrize(("g", "f"), [(tanh(z), mp.tanh), (1/(1 + exp(-z)), lambda u: 1/(1 + mp.exp(-u))),
                                      (1/cosh(z/10), lambda u: mp.sech(u/10))], ids=["smooth", "logistic", "falling"])
def test_a_mass_that_a_bump_moves_beyond_the_window(g, f):
    """E[g exp(-a (z - b)^2)]/E[exp(-a (z - b)^2)] is E g(w z + 2 a b w^2), w^2 = 1/(1 + 2 a)."""
    bump, steep, place = exp(-p*(z - b)**2), (50, 5, 0.5, 1), (30, 20, 30, 3)
    mean = hx.E(bump*g)/hx.E(bump)
    found = hx.System({x: mean, y: 1 + mean}).solve(p=steep, b=place)

    def exact(steep, place):
        width, middle = 1/mp.sqrt(1 + 2*steep), 2*steep*place/(1 + 2*steep)
        with mp.workdps(20):
            return mp.quad(lambda u: f(width*u + middle)*mp.npdf(u), range(-10, 11, 2))

    true = exactly(exact, steep, place)
    assert held(found, "x", true) == held(found, "y", 1 + true) == 4
    np.testing.assert_allclose(hx.compile(1 + mean)(p=steep, b=place), 1 + true, rtol=1e-12)


def test_a_rare_event_is_found_or_refused():
    """E[tanh z | z > 20] is 1 but for 4e-18."""
    found = hx.System({x: hx.E(tanh(z), z > b)}).solve(b=[20, 50], raise_on_failure=False)
    assert abs(found["x"][0] - 1) < 1e-12 and list(found.converged) == [True, False]
