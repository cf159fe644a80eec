"""Further kinds of random systems: domains, laws, sums, kinks that move, averages side by side, and what is seen of a solution.

Their values come from sums and integrals of mpmath, over pieces between kinks that are known here.
"""

import mpmath
import numpy as np
import sympy as sp
from averages import PLAIN
from draws import MP, Draw, X, Y, number, of_sympy, rational, shapes
from sympy import Abs, Eq, Heaviside, IndexedBase, Max, Min, Sum, Symbol, cosh, erf, erfc, exp, log, sin, sinh, sqrt, tanh
from sympy.stats import Bernoulli, Binomial, Exponential, FiniteRV, Geometric, Poisson, Rademacher, Uniform

from hermitex import E, System
from hermitex.symbols import z

REACH = 12


def mean(f, cuts=()):
    """E f(z) by mpmath, 20 digits, over pieces between the cuts."""
    inside = [MP.mpf(c) for c in cuts if abs(c) < REACH]
    edges = sorted({*map(MP.mpf, range(-REACH, REACH + 1, 2)), *inside})
    with MP.workdps(20):
        return MP.quad(lambda t: f(t)*MP.npdf(t), edges, method="gauss-legendre")


def plain(f):
    """The same of what is smooth, by sums over narrow panels: f takes arrays."""
    t, v = PLAIN
    return MP.mpf(float(v @ f(t)))


# -- what is seen of a solution ----------------------------------------------------------------------------------------
def seen(rng):
    """Observables and where names that cancel, overflow or underflow, of a root that is known."""
    scale = float(f"{10**rng.uniform(-1, 1):.2g}")
    root = rational(scale)*rational(number(rng))
    f = rational(number(rng, 0.1, 0.8))*rational(scale)*sp.tanh(X/rational(scale))
    e, near = rational(f"{10**rng.uniform(-2, 0):.2g}"), rational(f"{float(root)*(1 + 10**rng.uniform(-6, -2)):.14g}")
    w, v = Symbol("w"), Symbol("v")
    forms = [
        ((1 - sp.cos(e*X))/e**2, {}), ((sqrt(1 + (e*X)**2) - 1)/e**2, {}), ((exp(e*X) - 1 - e*X)/e**2, {}), (log(1 + e*X)/e, {}),
        (X + 1/e - 1/e, {}), (w - 1/e, {w: X + 1/e}), (w/v, {w: exp(X/e), v: 1 + exp(X/e)}), (e*log(w), {w: 1 + exp(X/e)}),
        (w*v, {w: exp(X/e), v: exp(-X/e)}), (sinh(X/e)/cosh(X/e), {}), (erfc(X/e)*exp((X/e)**2), {}), (1 - tanh(X/e)**2, {}),
        ((1 - tanh(X))/exp(-2*X), {}), ((X - near)*(X + near), {}), (X**2 - near**2, {}), (1/(X - near), {}),
        (w - v, {w: X**3, v: near**3}),
        (log(w) - log(v), {w: X, v: near}), (w**2 - v, {w: 1 + e*X, v: 1 + 2*e*X}), (exp(w - v), {w: X/e, v: near/e}),
        (tanh(w) - tanh(v), {w: X + 5, v: X + 4}), ((w - 1)/e, {w: sqrt(1 + e*X)}), (1/(1/w + 1/v), {w: X, v: near}),
        (erf(X + 3) - erf(X + 2), {}), (w/(w + v), {w: exp(-(X/e)**2), v: exp(-(near/e)**2)}), (log(cosh(X/e)), {}),
        (sin(X/e), {}), (w - Max(v, 0), {w: X + 1/e, v: near + 1/e}),
    ]  # fmt: skip
    body, where = forms[rng.integers(len(forms))]
    return of_sympy("seen", {"x": f + float((root - f.subs(X, root)).evalf(20))}, observables={"o": body}, where=where)


# -- domains -----------------------------------------------------------------------------------------------------------
def in_a_domain(rng):
    """A root inside an open interval, or outside of it only."""
    lo = float(np.round(rng.uniform(-2, 1), 2)) if rng.random() < 0.6 else 0.0
    hi = lo + number(rng, 0.3, 3, 2)
    part = rng.uniform(0.02, 0.98) if rng.random() < 0.8 else 10**rng.uniform(-4, -2)
    root = rational(f"{lo + (hi - lo)*part:.12g}")
    outside = rng.random() < 0.25
    root = rational(f"{hi + (hi - lo)*part + 0.01:.6g}") if outside else root
    scale = float(f"{hi - lo:.3g}")
    f = rational(number(rng, 0.1, 2, 2))*rational(scale)*shapes(rng, X, scale)
    b = float((root - f.subs(X, root)).evalf(20))
    made = Eq(f + b, X) if rng.random() < 0.5 else f + b
    if outside and rng.random() < 0.5:  # the only root
        made, outside = rational(number(rng, 0.05, 0.9, 2))*(X - root) + root, "only"
    return of_sympy("in a domain", {"x": made}, domain={"x": (lo, hi)}, never=outside == "only")


def on_the_simplex(rng):
    """Two unknowns on intervals, which feed each other; 0 is an end of both."""
    k, c, d = (rational(number(rng, 0.2, 6, 2)) for _ in range(3))
    made = [
        {"x": 1 - exp(-k*Y), "y": c*X/(1 + c*X)},
        {"x": tanh(k*Y)**2, "y": X/(1 + d*X)},
        {"x": k*Y/(1 + k*Y), "y": 1 - exp(-c*X - d/10)},
        {"x": exp(-k*X*Y), "y": 1 - X*exp(-c*Y)},
        {"x": Eq(log(X/(1 - X)), k*Y - c), "y": Eq(log(Y/(1 - Y)), d - c*X)},
        {"x": Eq(k*X + log(X), log(1 - X) + c*Y), "y": 1/(1 + exp(-d*(X - Y)))},
    ][rng.integers(6)]
    return of_sympy("on intervals", made, domain={"x": (0, 1), "y": (0, 1)},
                    start={"x": float(np.round(rng.uniform(0.05, 0.95), 2))} if rng.random() < 0.5 else {})


# -- laws --------------------------------------------------------------------------------------------------------------
def of_a_law(rng):
    """x = b + g E f(U, x) and E over a normal beside it; U has one of the laws of sympy.stats."""
    p, c, k = (number(rng, *ends, 2) for ends in ((0.05, 0.95), (0.2, 6), (0.3, 4)))
    P, C, K = map(rational, (p, c, k))
    n = int(rng.integers(1, 6))
    points = np.round(rng.normal(size=3)*2, 2)
    shares = [rational(f"{v:.2f}") for v in rng.dirichlet([2, 2, 2])[:2]]
    shares.append(1 - sum(shares))

    def line(low, high, density):
        return lambda f: MP.quad(lambda t: f(t)*density(t), np.linspace(low, high, 25).tolist())

    laws = [
        (lambda: Rademacher("U"), lambda f: (f(1) + f(-1))/2),
        (lambda: Bernoulli("U", P), lambda f: MP.mpf(p)*f(1) + (1 - MP.mpf(p))*f(0)),
        (lambda: Poisson("U", C), lambda f: sum(MP.exp(-c)*MP.mpf(c)**j/MP.factorial(j)*f(j) for j in range(80))),
        (lambda: FiniteRV("U", {rational(str(v)): s for v, s in zip(points, shares, strict=True)}),
         lambda f: sum(MP.mpf(s.p)/s.q*f(float(v)) for v, s in zip(points, shares, strict=True))),
        (lambda: Binomial("U", n, P),
         lambda f: sum(MP.binomial(n, j)*MP.mpf(p)**j*(1 - MP.mpf(p))**(n - j)*f(j) for j in range(n + 1))),
        (lambda: Uniform("U", -C, C), line(-c, c, lambda t: 1/(2*MP.mpf(c)))),
        (lambda: Exponential("U", C), line(0, 60/c, lambda t: c*MP.exp(-c*t))),
        (lambda: Geometric("U", rational(max(p, 0.3))),
         lambda f: sum(max(p, 0.3)*(1 - MP.mpf(max(p, 0.3)))**(j - 1)*f(j) for j in range(1, 200))),
    ]  # fmt: skip
    if len(set(points)) < 3 or 0 in shares:
        return of_a_law(rng)
    law, over = laws[rng.integers(len(laws))]
    U, x = law(), Symbol("x", real=True)
    body, f = [
        (tanh(K*U + x), lambda u, x: MP.tanh(k*u + x)),
        (1/(1 + (U - x)**2), lambda u, x: 1/(1 + (u - x)**2)),
        (sin(K*U)*exp(-x**2), lambda u, x: MP.sin(k*u)*MP.exp(-x**2)),
        (E(tanh(K*z + U + x), z), lambda u, x: plain(lambda t: np.tanh(k*t + float(u + x)))),
        (E(exp(-(z - U)**2/2)*tanh(x + z), z), lambda u, x: plain(lambda t: np.exp(-(t - float(u))**2/2)*np.tanh(float(x) + t))),
        (sqrt(1 + (K*U - x)**2), lambda u, x: MP.sqrt(1 + (k*u - x)**2)),
        (Max(0, U - x), lambda u, x: max(0, u - x)),
        (U**2*exp(-Abs(U)/2), lambda u, x: u*u*MP.exp(-abs(u)/2)),
        (log(1 + exp(U*x)), lambda u, x: MP.log(1 + MP.exp(u*x))),
    ][rng.integers(9 if law not in [v for v, _ in laws[5:7]] else 3)]
    b, g = number(rng, 0.1, 1, 2), number(rng, 0.1, 0.6, 2)
    whole = E(body, U)

    def residuals(point, values):
        v = MP.mpf(values[0])
        return [v - b - g*over(lambda u: f(u, v))]

    return Draw("a law", lambda: System({x: rational(b) + rational(g)*whole}), ("x",), residuals=residuals, smooth=False,
                words=f"x = {b} + {g} {whole}")


def unknown_in_a_law(rng):
    """The parameter of a law is an unknown of a domain."""
    k, b = number(rng, 0.3, 4, 2), number(rng, 0.1, 0.5, 2)
    K, B = rational(k), rational(b)
    q = Symbol("q", real=True)
    law, over, domain = [
        (lambda: Bernoulli("U", q), lambda f, v: v*f(1) + (1 - v)*f(0), (0, 1)),
        (lambda: Poisson("U", q), lambda f, v: sum(MP.exp(-v)*v**j/MP.factorial(j)*f(j) for j in range(60)), (0, 9)),
        (lambda: Binomial("U", 3, q), lambda f, v: sum(MP.binomial(3, j)*v**j*(1 - v)**(3 - j)*f(j) for j in range(4)), (0, 1)),
    ][rng.integers(3)]
    U = law()
    body, f = [
        (tanh(K*U)/2, lambda u: MP.tanh(k*u)/2), (1/(2 + U), lambda u: 1/MP.mpf(2 + u)), (exp(-K*U)/2, lambda u: MP.exp(-k*u)/2),
        (E(tanh(z + K*U)**2, z)/2, lambda u: plain(lambda t: np.tanh(t + k*u)**2)/2),
    ][rng.integers(4)]  # fmt: skip

    def residuals(point, values):
        v = MP.mpf(values[0])
        return [v - b - over(f, v)]

    return Draw("an unknown in a law", lambda: System({q: B + E(body, U)}, domain={q: domain}), ("q",), residuals=residuals,
                smooth=False, domain={"q": domain}, words=f"q = {b} + {E(body, U)}")


# -- sums over arrays --------------------------------------------------------------------------------------------------
def sums(rng):
    """Fixed points with sums over drawn arrays: of many sizes, of both signs, some of them zero."""
    eta, beta, k = IndexedBase("eta"), IndexedBase("beta"), Symbol("k", integer=True)
    length = int(rng.integers(1, 40))
    a = (10**rng.uniform(-rng.integers(1, 3), rng.integers(0, 3), size=length)).round(12)
    c = rng.normal(size=length).round(6) if rng.random() < 0.5 else rng.uniform(size=length).round(6)
    x, lam = Symbol("x", positive=True), Symbol("lam", positive=True)
    ridge = number(rng, 1e-4, 3, 6)
    N = Symbol("N", integer=True)
    i = sp.Idx(k, N)
    body, f = [
        (lam + Sum(eta[i]*x/(eta[i] + x), i)/(2*(length + 1)), lambda x: ridge + sum(a_*x/(a_ + x) for a_ in A())/(2*(length + 1))),
        (lam*(1 + Sum(eta[i]/(eta[i] + x), i)), lambda x: ridge*(1 + sum(a_/(a_ + x) for a_ in A()))),
        (Eq(Sum(eta[i]/(eta[i] + x), i), lam), lambda x: x + sum(a_/(a_ + x) for a_ in A()) - ridge),
        (lam + Sum(beta[i]**2*eta[i]/(eta[i] + x)**2, i)*x/(1 + x)/3,
         lambda x: ridge + sum(c_**2*a_/(a_ + x)**2 for a_, c_ in zip(A(), Cs(), strict=True))*x/(1 + x)/3),
        (lam + exp(-Sum(beta[i]*eta[i], i)**2)*x/2,
         lambda x: ridge + MP.exp(-sum(a_*c_ for a_, c_ in zip(A(), Cs(), strict=True))**2)*x/2),
        (lam + Sum(E(tanh(beta[i]*z + x)**2, z), i)/(2*length), lambda x: ridge + sum(
            plain(lambda t, c_=c_: np.tanh(float(c_)*t + float(x))**2) for c_ in Cs())/(2*length)),
    ][rng.integers(6 if length < 6 else 5)]  # fmt: skip
    body_of = body if isinstance(body, Eq) else None

    def A():
        return [MP.mpf(float(v)) for v in a]

    def Cs():
        return [MP.mpf(float(v)) for v in c]

    point = {"lam": ridge, "eta": a.tolist(), "beta": c.tolist()}
    names = {str(v) for v in (body.lhs - body.rhs if body_of is not None else body).free_symbols}
    point = {n: v for n, v in point.items() if n in names}
    never = body_of is not None and not 0 < ridge < length  # sum of a/(a + x) is below the length and above 0

    def residuals(point, values):
        v = MP.mpf(values[0])
        return [v - f(v)]

    return Draw("a sum", lambda: System({x: body}), ("x",), points=[point], residuals=residuals, smooth=False, never=never,
                words=f"x: {body} at {point}")


# -- kinks that move ---------------------------------------------------------------------------------------------------
def moving_kinks(rng):
    """x = b + g E f(z, x) where f has kinks or jumps at places that x moves."""
    k, w, s = number(rng, 0.3, 5, 2), number(rng, 0.5, 6, 2), float(f"{10**rng.uniform(-3, 0):.2g}")
    K, W, S = map(rational, (k, w, s))
    positive = rng.random() < 0.5
    x = Symbol("x", positive=True) if positive else Symbol("x", real=True)

    def around(v):
        return [v, -v]

    def graded(size):
        return lambda x: [x + side*size*d for side in (-1, 1) for d in (0, 1, 3, 9, 27, 99)]

    table = [
        (Abs(z - x)**3/4, lambda t, x: abs(t - x)**3/4, lambda x: [x]),
        (Max(x*z, z - 1)/3, lambda t, x: max(x*t, t - 1)/3, lambda x: [1/(1 - x)] if x != 1 else []),
        (Heaviside(z - x)*tanh(K*z), lambda t, x: (t > x)*MP.tanh(k*t), lambda x: [x]),
        (Abs(z**2 - x)/3, lambda t, x: abs(t**2 - x)/3, lambda x: around(MP.sqrt(x)) if x > 0 else []),
        (Max(0, x - Abs(z)), lambda t, x: max(0, x - abs(t)), lambda x: [0, x, -x]),
        (Min(Max(z, -x), x)*tanh(z), lambda t, x: min(max(t, -x), x)*MP.tanh(t), around),
        (tanh(Max(0, K*z - x)), lambda t, x: MP.tanh(max(0, k*t - x)), lambda x: [x/k]),
        (exp(-Abs(z - x)/S)/S/3, lambda t, x: MP.exp(-abs(t - x)/s)/s/3, graded(s)),
        (sp.sign(z - x)*sp.sign(z - 2*x - 1)/2, lambda t, x: (1 if t > x else -1)*(1 if t > 2*x + 1 else -1)/MP.mpf(2),
         lambda x: [x, 2*x + 1]),
        (Max(0, exp(z) - x - 1)/4, lambda t, x: max(0, MP.exp(t) - x - 1)/4, lambda x: [MP.log(1 + x)] if x > -1 else []),
        (Abs(tanh(z) - x/3)*tanh(W*z), lambda t, x: abs(MP.tanh(t) - x/3)*MP.tanh(w*t),
         lambda x: [MP.atanh(x/3)] if abs(x) < 3 else []),
        (Max(z, x)*Max(-z, K*x)/3, lambda t, x: max(t, x)*max(-t, k*x)/3, lambda x: [x, -k*x]),
        (sqrt(Abs(z - x)), lambda t, x: MP.sqrt(abs(t - x)), lambda x: [x, *(v for j in range(2, 9) for v in graded(10.0**-j)(x))]),
        (log(Abs(z - x) + S)/3, lambda t, x: MP.log(abs(t - x) + s)/3, graded(s)),
        (Max(0, sin(W*z) - x/2)/2, lambda t, x: max(0, MP.sin(w*t) - x/2)/2,
         lambda x: [(v + 2*MP.pi*j)/w for j in range(-20, 20) for v in (MP.asin(x/2), MP.pi - MP.asin(x/2))] if abs(x) < 2 else []),
        (1/(1 + Abs(z - x)/S)/S/9, lambda t, x: 1/(1 + abs(t - x)/s)/s/9, graded(s)),
    ]  # fmt: skip
    body, f, cuts = table[rng.integers(len(table))]
    b, g = number(rng, 0.1, 1, 2), number(rng, 0.1, 0.6, 2)*(1 if positive or rng.random() < 0.5 else -1)

    def residuals(point, values):
        v = MP.mpf(values[0])
        return [v - b - g*mean(lambda t: f(t, v), cuts(v))]

    return Draw("kinks that move", lambda: System({x: rational(b) + rational(g)*E(body, z)}), ("x",), residuals=residuals,
                smooth=False, words=f"x = {b} + {g} E {body}")


# -- several unknowns, two averages each -------------------------------------------------------------------------------
def side_by_side(rng):
    """Two or three unknowns whose equations hold two averages each: sums, products and quotients of them."""
    n = int(rng.integers(2, 4))
    names = ("x", "y", "w")[:n]
    unknowns = [Symbol("x", real=True), Symbol("y", positive=True), Symbol("w", real=True)][:n]
    t, v = PLAIN

    def average(a, b):
        k, c = number(rng, 0.2, 6, 2), float(np.round(rng.uniform(-1.5, 1.5), 2))
        K, C = rational(k), rational(c)
        return [
            (tanh(K*z + a), lambda a, b: np.tanh(k*t + a)), (tanh(a + b*z + C)**2, lambda a, b: np.tanh(a + b*t + c)**2),
            (1/(1 + (K*z - a)**2), lambda a, b: 1/(1 + (k*t - a)**2)),
            (exp(-b**2*z**2/2)*tanh(z + a), lambda a, b: np.exp(-b*b*t*t/2)*np.tanh(t + a)),
            (z*tanh(K*z + b*a), lambda a, b: t*np.tanh(k*t + b*a)), (log(1 + exp(a + z)), lambda a, b: np.logaddexp(0, a + t)),
            (sqrt(1 + (a + b*z)**2), lambda a, b: np.sqrt(1 + (a + b*t)**2)),
            (sin(K*z + a)*tanh(z + C), lambda a, b: np.sin(k*t + a)*np.tanh(t + c)),
            (cosh(z/4)*sp.cos(a + K*z), lambda a, b: np.cosh(t/4)*np.cos(a + k*t)),
            (1/cosh(K*(z - a/3)), lambda a, b: 1/np.cosh(k*(t - a/3))),
        ][rng.integers(10)]  # fmt: skip

    equations, rows, words = {}, [], []
    for i, u in enumerate(unknowns):
        first, second = (int(j) for j in rng.integers(0, n, 2))
        (e1, f1), (e2, f2) = average(unknowns[first], unknowns[second]), average(unknowns[second], unknowns[i])
        b, g = number(rng, 0.2, 1, 2), number(rng, 0.05, 0.4, 2)
        join = int(rng.integers(4))
        A1, A2 = E(e1, z), E(e2, z)
        whole = [A1 + A2, A1*A2, A1/(2 + A2**2), A1 - A2*A1**2][join]
        equations[u] = rational(b) + rational(g)*whole
        if rng.random() < 0.2:
            equations[u] = Eq(u - rational(g)*whole, rational(b))

        def row(at, i=i, first=first, second=second, f1=f1, f2=f2, b=b, g=g, join=join):
            m1, m2 = float(v @ f1(at[first], at[second])), float(v @ f2(at[second], at[i]))
            return at[i] - b - g*[m1 + m2, m1*m2, m1/(2 + m2**2), m1 - m2*m1**2][join]

        rows.append(row)
        words.append(f"{u}: {equations[u]}")

    def residuals(point, values):
        at = [float(a) for a in values]
        return [row(at) for row in rows]

    return Draw("side by side", lambda: System(equations), names, residuals=residuals, smooth=False, words="; ".join(words))


# -- flows -------------------------------------------------------------------------------------------------------------
def flow(rng):
    """(rates, start, {name: value at t}, until): flows whose solutions are known; `until`: they exist no longer."""
    k, c, x0, w = (number(rng, *ends, 2) for ends in ((0.2, 4), (0.2, 2), (0.1, 2), (0.2, 3)))
    K, C, W = map(rational, (k, c, w))
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    m = mpmath.mp.clone()
    m.dps = 30
    return [
        ({x: -K*(x - C)}, {"x": x0}, lambda t: {"x": c + (x0 - c)*m.exp(-k*t)}, None),
        ({x: K*x*(1 - x)}, {"x": x0}, lambda t: {"x": x0/(x0 + (1 - x0)*m.exp(-k*t))}, None),
        ({x: -K*x**3}, {"x": x0}, lambda t: {"x": x0/m.sqrt(1 + 2*k*m.mpf(x0)**2*t)}, None),
        ({x: K*x**2}, {"x": x0}, lambda t: {"x": x0/(1 - k*x0*m.mpf(t))}, 1/(k*x0)),
        ({x: W*y, y: -W*x}, {"x": x0, "y": 0.0}, lambda t: {"x": x0*m.cos(w*t), "y": -x0*m.sin(w*t)}, None),
        ({x: -K*x + y, y: -C*y}, {"x": x0, "y": 1.0}, lambda t: {
            "x": x0*m.exp(-k*t) + ((m.exp(-c*t) - m.exp(-k*t))/(m.mpf(k) - c) if k != c else t*m.exp(-k*t)),
            "y": m.exp(-c*t)}, None),
        ({x: -x*E(sp.cos(W*z), z)}, {"x": x0}, lambda t: {"x": x0*m.exp(-m.exp(-m.mpf(w)**2/2)*t)}, None),
        ({x: -E(tanh(K*z)*z, z)*x}, {"x": x0}, lambda t: {"x": x0*m.exp(-mean(lambda u: MP.tanh(k*u)*u)*t)}, None),
        ({x: E(Abs(z + x) - Abs(z - x), z)*0 - 1000*K*(x - C)}, {"x": x0}, lambda t: {"x": c + (x0 - c)*m.exp(-1000*k*t)}, None),
        ({x: 1/x}, {"x": x0}, lambda t: {"x": m.sqrt(m.mpf(x0)**2 + 2*t)}, None),
        ({x: -1/x}, {"x": x0}, lambda t: {"x": m.sqrt(m.mpf(x0)**2 - 2*t)}, x0**2/2),
        ({x: -K*sqrt(x)}, {"x": x0}, lambda t: {"x": (m.sqrt(x0) - k*m.mpf(t)/2)**2}, 2*x0**0.5/k),
    ][rng.integers(12)]  # fmt: skip


WIDER = (seen, in_a_domain, on_the_simplex, of_a_law, unknown_in_a_law, sums, moving_kinks, side_by_side)
