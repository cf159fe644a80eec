"""Closed forms whose terms cancel, inside of systems: digits that hold, or a verdict that says that they do not."""

from __future__ import annotations

import random
import runpy

import mpmath
import numpy as np
import pytest
import sympy
from sympy import Abs, Eq, Heaviside, Max, Rational, Symbol, cos, cosh, erf, exp, lambdify, log, sqrt, tanh
from sympy.stats import Bernoulli

import hermitex as hx
from hermitex.errors import NotConverged
from hermitex.symbols import z
from hermitex.systems.compiled_system import CompiledSystem

s, b = Symbol("s", positive=True), Symbol("b", positive=True)
x, mu, y = Symbol("x", real=True), Symbol("mu", real=True), Symbol("y", positive=True)


def laplace(size):
    """E |z| exp(-s |z|) at 80 digits."""
    with mpmath.workdps(80):
        t = mpmath.mpf(size)
        return float(2/mpmath.sqrt(2*mpmath.pi) - t*mpmath.exp(t*t/2)*mpmath.erfc(t/mpmath.sqrt(2)))


@pytest.fixture(scope="module")
def widths():
    return hx.System({x: b*hx.E(Abs(z)*exp(-s*Abs(z)), z)})


@pytest.mark.parametrize("size", [0.1, 50.0, 1e3, 1e4, 1e5, 1e6])
def test_a_laplace_weight_of_any_width(widths, size):
    found = widths.solve(b=2.0, s=size)
    assert found.converged and abs(found["x"]/(2*laplace(size)) - 1) < 1e-9


def test_a_batch_of_points_that_lose_digits_and_points_that_do_not(widths):
    sizes = np.array([1.0, 1e5, 10.0, 1e3])
    found = widths.solve(b=1.0, s=sizes)
    assert np.allclose(found["x"], [laplace(v) for v in sizes], rtol=1e-9, atol=0)
    assert found["x"][0] == widths.solve(b=1.0, s=1.0)["x"]


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("unknown", [x, y])
def test_moments_of_a_rectified_tail(power, unknown):
    system = hx.System({unknown: hx.E(Max(0, mu + s*z)**power, z)})
    for mean in (5.0, -2.0, -8.0, -12.0, -30.0):
        with mpmath.workdps(1500):
            m = mpmath.mpf(mean)
            below, at = mpmath.erfc(-m/mpmath.sqrt(2))/2, mpmath.exp(-m*m/2)/mpmath.sqrt(2*mpmath.pi)
            exact = float({1: m*below + at, 2: (1 + m*m)*below + m*at, 3: (m**3 + 3*m)*below + (m*m + 2)*at}[power])
        assert abs(system.solve(mu=mean, s=1.0)[unknown.name]/exact - 1) < 1e-10


@pytest.mark.parametrize("size, digits", [(1.0, 1e-13), (1e-3, 1e-8), (1e-5, None), (1e-8, None)])
def test_a_formula_as_it_is_written_has_no_other_way(size, digits):
    found = hx.System({y: (exp(s) - 1 - s)/s**2}).solve(s=size, raise_on_failure=False)
    with mpmath.workdps(50):
        exact = float((mpmath.exp(mpmath.mpf(size)) - 1 - mpmath.mpf(size))/mpmath.mpf(size)**2)
    assert bool(found.converged) == (digits is not None)
    assert digits is None or abs(found["y"]/exact - 1) < digits
    assert size == 1 or "cancel" in " ".join(found.notes)


def test_what_is_lost_before_an_unknown_is_amplified_in_it():
    """1 - C with C = 1 - 4e-9: the closed form holds to 1e-16, the unknown that feeds on 1/(1 - C) does not."""
    rest = hx.E(Heaviside(z - s), z)
    inner = erf(s/sqrt(2))/2 + hx.E(Heaviside(z), z)
    for size, good in ((3.0, True), (7.9, False)):
        found = hx.System({x: Eq(x*(1 - inner) - rest, 0)}).solve(s=size, raise_on_failure=False)
        assert not found.converged or abs(found["x"] - 1) < 1e-8
        assert bool(found.converged) or not good


@pytest.mark.slow
def test_the_file_integrates_where_the_session_does(widths, tmp_path):
    widths.export(tmp_path/"widths.py", reference={"b": 1.0, "s": 1e4})
    solve = runpy.run_path(str(tmp_path/"widths.py"))["solve"]
    for size in (1.0, 1e3, 1e5):
        assert solve(b=1.0, s=size)["x"] == pytest.approx(widths.solve(b=1.0, s=size)["x"], rel=1e-12)


def drawn(seed):
    """A system whose right-hand side is a closed form that cancels at some widths, and its value at many digits."""
    r = random.Random(seed)
    part = r.choice([Abs(z), z**2, Max(0, z), Heaviside(z - 1)*z])
    body = r.choice([part*exp(-s*Abs(z)), Max(0, z - s)**r.choice([1, 2]), Abs(z)**3*exp(-s*z**2),
                     (Max(0, z - s) - Max(0, z - s - 1))*part, part*exp(-s*z)*Heaviside(z)])
    form = hx.E(body, z).doit()
    if form.has(type(hx.E(body, z))):
        return
    kind, closed = r.choice(["explicit", "implicit", "root", "below"]), lambdify(s, form, "mpmath")
    node = hx.E(body, z)
    equation = {"explicit": b*node, "implicit": Eq(x*(1 + b) - node, 0), "root": node/(1 + b*x**2), "below": node/(node + b)}[kind]
    system = hx.System({x: equation})
    for size in (0.3, 3.0, 9.0, 40.0, 400.0):
        weight = r.choice([0.5, 2.0])
        with mpmath.workdps(1500):
            c = mpmath.re(closed(mpmath.mpf(size)))
            value = {"explicit": lambda c=c, w=weight: w*c, "implicit": lambda c=c, w=weight: c/(1 + w),
                     "below": lambda c=c, w=weight: c/(c + w),
                     "root": lambda c=c, w=weight: mpmath.findroot(lambda v: v*(1 + w*v*v) - c, c/(1 + w*c*c))}[kind]()
        found = system.solve(s=size, b=weight, raise_on_failure=False)
        if found.converged:  # a number below 1e-6 is held as one of that size
            assert abs(found["x"] - float(value)) <= 1e-8*max(abs(float(value)), 1e-6), (seed, kind, body, size)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_closed_forms(seed):
    drawn(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(4, 16)])
def test_drawn_closed_forms_at_length(seeds):
    for seed in seeds:
        drawn(seed)


def test_a_peak_that_coarse_nodes_miss_is_found_or_the_point_is_refused():
    """E exp(-|z - h - x/10|/w)/w is 2 phi(h + x/10), about, and 0 on nodes that stand wide apart."""
    w, h = Symbol("w", positive=True), Symbol("h", real=True)
    system = hx.System({x: mu + hx.E(exp(-Abs(z - h - x/10)/w), z)/w})
    draw, solved = random.Random(5), 0
    for width in [10**-draw.uniform(4, 6.5) for _ in range(4)] + [5e-7, 1e-8, 1e-9]:
        found = system.solve(mu=0.4, h=-1.1, w=width, raise_on_failure=False)
        solved += bool(found.converged)
        assert not found.converged or abs(found["x"] - 0.87803957) < 1e-7
    assert solved >= 5

@pytest.mark.parametrize("body", [Max(0, x*z + 1)**2*exp(x*z), Abs(z)*exp(2*x*Abs(z)), Max(0, x*z + 1)**4])
def test_where_two_ways_end_alike_without_a_solution_no_third_is_tried(body, monkeypatch):
    """x = mu + E f(x, z) > x for every x: what a few nodes confirm is not asked of many, which takes minutes in two variables."""
    asked, whole = [], CompiledSystem.integrated
    monkeypatch.setattr(CompiledSystem, "integrated", lambda self, *, fine: asked.append(fine) or whole(self, fine=fine))
    system = hx.System({x: mu + hx.E(body, z)/3})
    for mean in (0.3, 1.0, 2.0):
        with pytest.raises(NotConverged, match=r"does not decrease[\s\S]*another start"):
            system.solve(mu=mean)
    assert asked and not any(asked)


a, Q = Symbol("a", positive=True), Symbol("Q", real=True)
DIFFERENCES = [  # of 1 and an average or a root, and their values
    ((1 - hx.E(exp(-a*z**2), z))/a, lambda v: (1 - 1/mpmath.sqrt(1 + 2*v))/v),
    ((1 - hx.E(exp(-a*Abs(z)**3), z))/a,
     lambda v: mpmath.quad(lambda t: 2*mpmath.npdf(t)*(1 - mpmath.exp(-v*t**3))/v, [0, 2, 6, 20])),
    (sqrt(1/a**2 + 1) - 1/a, lambda v: mpmath.sqrt(1/v**2 + 1) - 1/v),
    ((hx.E(cos(a*z), z) - exp(-a**2/2))/a + 1, lambda v: mpmath.mpf(1)),
    (1/(1 - hx.E(cos(a*z**3), z)), lambda v: 1/mpmath.quad(lambda t: 4*mpmath.npdf(t)*mpmath.sin(v*t**3/2)**2, range(0, 21, 2))),
    (log(hx.E(cosh(a*tanh(z)), z))/a**2, None)]


@pytest.mark.parametrize(("formula", "exact"), DIFFERENCES[:-1])
@pytest.mark.parametrize("where", [False, True])
def test_differences_with_an_average_or_a_root(formula, exact, where):
    """What is called converged holds, and what has its digits is."""
    for k in range(0, 13, 2):
        size = 10.0**-k
        system = hx.System({x: Q}, where={Q: formula}) if where else hx.System({x: formula})
        found = system.solve(a=size, raise_on_failure=False)
        with mpmath.workdps(60):
            value = exact(mpmath.mpf(size))
        assert found.converged or k > 1, size
        assert not found.converged or abs(found["x"]/float(value) - 1) < 1e-7*(1 + 1e-6/abs(value)), size


def test_an_average_whose_logarithm_is_all_that_counts():
    formula, _ = DIFFERENCES[-1]
    for k in range(0, 13, 2):
        found = hx.System({x: formula}).solve(a=10.0**-k, raise_on_failure=False)
        with mpmath.workdps(60):
            v = mpmath.mpf(10)**-k
            mean = 2*mpmath.quad(lambda t, v=v: mpmath.npdf(t)*mpmath.cosh(v*mpmath.tanh(t)), [0, 1, 3, 8, 20])
            assert not found.converged or abs(found["x"]/float(mpmath.log(mean)/v**2) - 1) < 1e-7, k
        assert found.converged or k > 1


# -- products and sums of given numbers ----------------------------------------------------------------------------------
near, k1, k2, k3 = (Symbol(n, real=True) for n in ("near", "k1", "k2", "k3"))
PRODUCTS = [(k1**2 - near**2)/(k1 - near), (k1*k2*k3 - near*k2*k3)/(k1 - near), (k1*k2 - near*k2 + k1*k3 - near*k3)/(k1 - near),
            (k1**3*k2 - near**3*k2)/(k1**2 - near**2), (k2 + k1 - k3 - near + k3 - k2*k1/near)/(k1 - near),
            (sqrt(k1**2 + k2**2) - sqrt(near**2 + k2**2))/(k1 - near), (k2/k1 - k2/near)/(k1 - near), 1/(k1*k2/3 - near*k2/3)]
PLACES = {  # a system with C in it, and what solves it
    "explicit": (lambda C: ({x: C}, {}, {}), lambda v: v),
    "where": (lambda C: ({x: mu*Q}, {}, {Q: C}), lambda v: v/2),
    "observable": (lambda C: ({y: k1*mu*2}, {x: C.subs(k1, y)}, {}), lambda v: v),
    "implicit": (lambda C: ({x: Eq(x*C - x/3 - 1, 0)}, {}, {}), lambda v: 1/(v - mpmath.mpf(1)/3)),
    "root": (lambda C: ({x: Eq(x**3 + x - C, 0)}, {}, {}),
             lambda v: mpmath.findroot(lambda t: (t**3 + t)/v - 1, mpmath.sign(v)*min(abs(v), abs(v)**(mpmath.mpf(1)/3)))),
    "coefficient": (lambda C: ({x: hx.E(C*tanh(z)**2, z)}, {}, {}), lambda v: v*average_of(mpmath.tanh)),
    "inside": (lambda C: ({x: hx.E(tanh(C*z)**2, z)}, {}, {}), lambda v: average_of(lambda t: mpmath.tanh(v*t))),
    "below": (lambda C: ({x: sqrt(1 + C**2) - 1}, {}, {}), lambda v: mpmath.sqrt(1 + v*v) - 1)}


def average_of(f):
    """E f(z)^2 of an odd f, at the digits in force."""
    with mpmath.workdps(25):
        return 2*mpmath.quad(lambda t: mpmath.npdf(t)*f(t)**2, [0, 0.01, 0.1, 0.5, 1, 2, 4, 8, 20])


def products(seed):
    """A quotient of products that cancel, somewhere in a system, at letters that differ less and less."""
    r = random.Random(seed)
    formula, place = r.choice(PRODUCTS), r.choice(list(PLACES))
    make, solved = PLACES[place]
    given = dict(zip((k1, k2, k3), (round(r.uniform(0.3, 2), 3) for _ in range(3)), strict=True))
    equations, seen, names = make(formula)
    system, letters = hx.System(equations, observables=seen, where=names), (near, k1, k2, k3)
    value = lambdify(letters, formula, "mpmath")
    for power in r.sample(range(1, 15), 5):
        if place == "inside" and formula is PRODUCTS[-1]:
            continue  # a step, whose width is not what is asked here
        numbers = {k.name: v for k, v in {**given, near: given[k1]*(1 + 10.0**-power)}.items()}
        numbers = {n: v for n, v in {**numbers, "mu": 0.5}.items() if n in {p.name for p in system.parameters}}
        with mpmath.workdps(60):
            exact = float(solved(value(*(mpmath.mpf(numbers.get(k.name, 0.5)) for k in letters))))
        found = system.solve(raise_on_failure=False, **numbers)
        assert not found.converged or abs(found["x"] - exact) <= 1e-8*max(abs(exact), 1e-3), (seed, place, formula, numbers)
        assert found.converged or power > 2, (seed, place, formula, numbers)
    return system


@pytest.mark.parametrize("seed", range(12))
def test_drawn_products_that_cancel(seed):
    products(seed)


@pytest.mark.slow
def test_drawn_products_that_cancel_at_length():
    for seed in range(12, 150):
        products(seed)


def test_numbers_that_are_given_are_known_to_their_last_digit():
    """A difference of two of them has every digit, however small it is."""
    found = hx.System({x: 1/(k1 - near)}).solve(k1=1.0, near=1.0 + 2.0**-40)
    assert found["x"] == -2.0**40 and found.converged and not found.notes


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-14])
def test_a_difference_of_two_squares_is_a_product(gap):
    """a - b is exact, a^2 - b^2 is not."""
    at = {"k1": 1.3, "near": 1.3*(1 + gap)}
    assert hx.System({x: PRODUCTS[0]}).solve(at)["x"] == pytest.approx(at["k1"] + at["near"], rel=1e-15)
    root = hx.System({y: sqrt(1 - k1**2)})
    exact = float(mpmath.sqrt((1 - mpmath.mpf(1 - gap))*(1 + mpmath.mpf(1 - gap))))
    assert root.solve(k1=1 - gap)["y"] == pytest.approx(exact, rel=1e-14)
    assert root.solve(k1=1.0)["y"] == 0


def test_the_file_refuses_what_the_session_refuses(tmp_path):
    for place in ("explicit", "coefficient"):
        equations, seen, names = PLACES[place][0](PRODUCTS[1])
        system = hx.System(equations, observables=seen, where=names)
        system.export(tmp_path/f"{place}.py", reference={"k1": 1.3, "k2": 0.7, "k3": 0.9, "near": 1.1})
        module, more = runpy.run_path(str(tmp_path/f"{place}.py")), {"k1": 1.3, "k2": 0.7, "k3": 0.9}
        assert module["solve"](**more, near=1.2)["x"] == pytest.approx(system.solve(**more, near=1.2)["x"], rel=1e-12)
        with pytest.raises(module["NotSolved"], match="its error is"):
            module["solve"](**more, near=1.3*(1 + 1e-9))


# -- sums below functions ------------------------------------------------------------------------------------------------
TERMS = [(k1*(z + k2) - near*(z + k3))/(k1 - near), (k1*tanh(z + k2) - near*tanh(z + k3))/(k1 - near)]  # that cannot be collected
OUTSIDE = {"tanh": lambda t, f: f.tanh(t), "cos": lambda t, f: f.cos(t), "quotient": lambda t, f: 1/(1 + t**2),
           "bump": lambda t, f: f.exp(-t**2) - 1}


@pytest.mark.parametrize("outer", OUTSIDE)
@pytest.mark.parametrize("inner", TERMS)
def test_terms_that_cancel_below_a_function_of_a_random_variable_are_told(inner, outer):
    """E tanh((a (z + c) - b (z + d))/(a - b)): the argument has lost its digits, and so has the average."""
    node, value = hx.E(OUTSIDE[outer](inner, sympy), z), lambdify((k1, k2, k3, near, z), inner, "mpmath")
    kernel, system, told = hx.compile(node), hx.System({x: node}), 0
    for power in (1, 4, 7, 9):
        at = {"k1": 1.3, "near": 1.3*(1 + 10.0**-power), "k2": 0.7*(1 - 10.0**-power), "k3": 0.7}
        with mpmath.workdps(40):
            given = [mpmath.mpf(at[n]) for n in ("k1", "k2", "k3", "near")]
            exact = float(mpmath.quad(lambda t, g=given: mpmath.npdf(t)*OUTSIDE[outer](value(*g, t), mpmath), range(-12, 13, 2)))
        found = system.solve(at, raise_on_failure=False)
        assert not found.converged or abs(found["x"]/exact - 1) < (1e-8 if found.notes else 1e-10), power
        assert found.converged or power > 4
        told += not found.converged or bool(found.notes)
        try:
            assert abs(kernel(**at)/exact - 1) <= kernel.error + 1e-14, power
        except NotConverged:
            assert power > 4
    assert told >= 1


@pytest.mark.parametrize("assumed, seed", [({"positive": True}, 1), ({"real": True}, 2)], ids=["positive", "real"])
def test_differences_of_differences_claim_no_more_than_they_hold(assumed, seed):
    """What is left of one is the next one's term: the rounding of the first is felt ten thousand times more in each."""
    links, c, a = [Symbol(f"v{k}", **assumed) for k in range(3)], sympy.symbols("c0:3", real=True), Symbol("a", real=True)
    system = hx.System({x: exp(-x) + a, **{v: u - d for v, u, d in zip(links, [x, *links], c, strict=False)}})
    rng, solved = random.Random(seed), 0
    for _ in range(60):
        with mpmath.workdps(40):
            numbers = {"a": rng.uniform(0.1, 0.9)}
            left = mpmath.findroot(lambda t, at=numbers["a"]: t - mpmath.exp(-t) - mpmath.mpf(at), 0.8)
            exact = []
            for k in range(3):
                numbers[f"c{k}"] = float(left*(1 - mpmath.mpf(10)**-rng.uniform(0.5, 4.5)))
                left -= mpmath.mpf(numbers[f"c{k}"])
                exact.append(float(left))
        found = system.solve(numbers, raise_on_failure=False)
        if found.converged:
            solved += 1
            least = 0.0 if "positive" in assumed else 1e-6
            gaps = [abs(found[v.name] - e)/max(abs(e), least) for v, e in zip(links, exact, strict=True)]
            assert max(gaps) <= max(2*np.nan_to_num(found.error), 1e-11)
    assert solved >= 15


def test_a_law_that_an_unknown_must_keep_stands_whole_in_the_formulas_off_by_rounding():
    """Its words are longer than a line, which may end at spaces outside of them."""
    q = Symbol("q", real=True)
    n = Bernoulli("n", q/(1 + q + q**2/10 + q**3/100 + q**4/1000 + q**5/10000 + q**6/100000 + q**7/1000000))
    found = hx.System({q: Rational(1, 3) - hx.E(n*tanh(n))/5 + (q - q**3)/7}).solve()
    p = found["q"]
    mean = p/sum(p**k/10**max(k - 1, 0) for k in range(8))
    assert p == pytest.approx(1/3 - mean*np.tanh(1)/5 + (p - p**3)/7, rel=1e-11)
