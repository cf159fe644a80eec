"""Random systems with known answers: roots chosen first, or none, or at infinity only; averages whose values are known.

    draw(seed) -> Draw(kind, system, points, start, residuals, never)

`residuals` is the system by other means, at a point: mpmath at 30 digits where no average enters, sums over Gauss-Legendre panels
as narrow as the integrand (its scale is known here) where one does. Nothing in them knows of the package.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy import Eq, Symbol, atan, cos, erf, exp, log, pi, sin, sqrt, tanh

from hermitex import System

MP = mpmath.mp.clone()
MP.dps = 30
OF_MP = {n: getattr(MP, n) for n in dir(MP) if not n.startswith("_")}  # mpmath's own functions have mpmath's own digits, 15
BAD = "diverges"


@dataclass
class Draw:
    """A system, its points {parameter: number}, and what is true of it."""

    kind: str
    system: Callable[[], System]
    unknowns: tuple[str, ...]
    points: list[dict[str, float]] = field(default_factory=lambda: [{}])
    start: dict[str, float] = field(default_factory=dict)
    residuals: Callable[[dict[str, float], list[Any]], list[Any]] | None = None
    never: bool = False  # no number is a solution
    easy: bool = False  # the default start is close enough: not to find the root is a failure
    smooth: bool = True  # residuals are mpmath's, so that Newton's method may polish to 30 digits
    explicit: bool = False  # one unknown, x = rhs(x)
    domain: dict[str, tuple[float, float]] = field(default_factory=dict)  # open intervals; an unknown may end at 0
    observed: Callable[[dict[str, float], list[Any]], dict[str, Any]] | None = None  # what is seen of a root
    words: str = ""


# -- plain equations ---------------------------------------------------------------------------------------------------
def of_sympy(kind, equations, *, positive=(), observables=None, where=None, domain=None, **fields):
    """A draw whose residuals are SymPy's own text of its equations at 30 digits: {name: rhs or Eq} of plain symbols.

    Its observables, in which where names may stand, are taken at 400 digits: what cancels in them, or overflows, does not there.
    """
    names = tuple(equations)
    symbols = {n: Symbol(n, positive=True) if n in positive else Symbol(n, real=True) for n in names}
    plain = {n: sp.sympify(e) for n, e in equations.items()}
    there = {v.name for e in plain.values() for v in e.free_symbols}
    points = fields["points"] = [{k: v for k, v in p.items() if k in there} for p in fields.get("points", [{}])]
    swap = {Symbol(n): symbols[n] for n in names} | {Symbol(p): Symbol(p, real=True) for p in points[0]}
    put = {
        n: Eq(e.lhs.xreplace(swap), e.rhs.xreplace(swap), evaluate=False) if isinstance(e, Eq) else e.xreplace(swap)
        for n, e in plain.items()
    }
    order = [*map(Symbol, points[0]), *map(Symbol, names)]
    seen = {n: e.subs(where or {}) for n, e in (observables or {}).items()}
    looks = {n: sp.lambdify(order, e, modules="mpmath") for n, e in seen.items()}

    def observed(point, x):
        with mpmath.workdps(400):
            return {n: f(*map(mpmath.mpf, point.values()), *map(mpmath.mpf, x)) for n, f in looks.items()}

    def system():
        more = {part: {Symbol(str(k), real=True): e.xreplace(swap | {w: Symbol(w.name, real=True) for w in where or {}})
                       for k, e in rows.items()} for part, rows in (("observables", observables), ("where", where)) if rows}
        return System({symbols[n]: e for n, e in put.items()}, domain=domain or {}, **more)

    functions = [
        sp.lambdify(order, e.lhs - e.rhs if isinstance(e, Eq) else Symbol(n) - e, modules=[OF_MP, "mpmath"])
        for n, e in plain.items()
    ]

    def residuals(point, x):
        with MP.workdps(30):
            return [f(*(MP.mpf(v) for v in point.values()), *x) for f in functions]

    explicit = len(names) == 1 and not isinstance(plain[names[0]], Eq)
    return Draw(
        kind,
        system,
        names,
        residuals=residuals,
        explicit=explicit,
        words=f"{plain}{f', seen {seen}' if seen else ''}{f' in {domain}' if domain else ''} at {points}",
        domain=domain or {},
        observed=observed if seen else None,
        **fields,
    )


X, Y, A, B = map(Symbol, ("x", "y", "a", "b"))


def number(rng, low=0.2, high=3.0, digits=4):
    return float(np.round(np.exp(rng.uniform(np.log(low), np.log(high))), digits))


def rational(v):
    return sp.Rational(str(v))


def shapes(rng, x, scale):
    """Some function of x that varies on the scale of the root."""
    s, k = rational(scale), rational(number(rng, 0.3, 2.0, 2))
    return [
        sin(k * x / s),
        tanh(k * x / s),
        exp(-k * x / s),
        exp(k * x / s) / 4,
        (x / s) ** 2 / 2,
        (x / s) ** 3 / 3,
        k * x / s,
        sqrt(1 + (x / s) ** 2),
        log(1 + (x / s) ** 2),
        1 / (1 + (x / s) ** 2),
        atan(k * x / s),
        cos(k * x / s),
    ][rng.integers(12)]


def known_root(rng):
    """x = f(x) + x* - f(x*), one unknown, of any size."""
    scale = float(f"{10 ** rng.uniform(-2, 2):.2g}")
    root = rational(scale) * rational(number(rng))
    f = rational(number(rng, 0.1, 5)) * rational(scale) * shapes(rng, X, scale)
    positive = ("x",) if rng.random() < 0.5 else ()
    rhs = f + B
    b = float((root - f.subs(X, root)).evalf(20))
    return of_sympy("known root", {"x": rhs}, points=[{"b": b}], positive=positive)


def implicit(rng):
    """g(x) = g(x*)."""
    scale = float(f"{10 ** rng.uniform(-2, 2):.2g}")
    root = rational(scale) * rational(number(rng))
    g = shapes(rng, X, scale) + rational(number(rng, 0.05, 2)) * X / rational(scale)
    factor = rational(f"{10 ** rng.uniform(-2, 2):.2g}") if rng.random() < 0.3 else 1
    positive = ("x",) if rng.random() < 0.5 else ()
    b = float(g.subs(X, root).evalf(20))
    return of_sympy("implicit", {"x": Eq(factor * g, factor * B)}, points=[{"b": b}], positive=positive)


def linear(rng):
    """A x = b with a root chosen first; some rows explicit, some implicit."""
    n = int(rng.integers(2, 6))
    names = [f"x{i}" for i in range(n)]
    unknowns = [Symbol(v) for v in names]
    matrix = rng.integers(-3, 4, (n, n)).astype(float)
    matrix[np.arange(n), np.arange(n)] = rng.integers(4, 9, n)
    root = np.round(rng.normal(size=n) * 10 ** rng.uniform(-2, 2), 3)
    equations = {}
    for i, v in enumerate(names):
        total = sum(int(matrix[i, j]) * unknowns[j] for j in range(n))
        b = sum(int(matrix[i, j]) * rational(root[j]) for j in range(n))
        equations[v] = Eq(total, b) if rng.random() < 0.4 else (b - total + int(matrix[i, i]) * unknowns[i]) / int(matrix[i, i])
    return of_sympy("linear", equations, easy=True)


def coupled(rng):
    """Two or three unknowns, each a function of the others."""
    names = ["x", "y", "w"][: int(rng.integers(2, 4))]
    scale = float(f"{10 ** rng.uniform(-1, 1):.2g}")
    root = {v: rational(scale) * rational(number(rng)) for v in names}
    symbols, equations, point = [Symbol(v) for v in names], {}, {}
    for i, v in enumerate(names):
        other = symbols[(i + 1) % len(names)]
        f = (
            rational(scale)
            * rational(number(rng, 0.1, 1.5))
            * (shapes(rng, other, scale) + shapes(rng, symbols[i], scale) * int(rng.integers(0, 2)))
        )
        point[f"b{i}"] = float((root[v] - f.subs({Symbol(k): r for k, r in root.items()})).evalf(20))
        rhs = f + Symbol(f"b{i}")
        equations[v] = Eq(symbols[i] - rhs, 0) if rng.random() < 0.3 else rhs
    positive = tuple(v for v in names if rng.random() < 0.5)
    return of_sympy("coupled", equations, points=[point], positive=positive)


def rootless(rng):
    """No real number solves it."""
    c, k = rational(number(rng)), rational(number(rng, 0.05, 2))
    made = [
        X + c + k * X**2,
        X + k,
        X + exp(-k * X),
        Eq(X**2 + c, 0),
        Eq(exp(k * X) + c, 0),
        sqrt(X**2 + c) + X + k,
        X + 1 / (1 + k * X**2),
        Eq(X**4 + X**2 + c, k * X / 1000 - c),
        X + log(1 + exp(X)),
        Eq(c + k * sin(X) ** 2, 0),
        X + sqrt(1 + X**2),
        Eq(tanh(X), 1 + c),
        Eq(X**2 - 2 * k * X + k**2 + rational("1e-6"), 0),
        Eq(erf(k * X), -1 - c),
    ][rng.integers(14)]
    return of_sympy(
        "none",
        {"x": made},
        never=True,
        positive=("x",) if rng.random() < 0.4 else (),
        start={"x": number(rng, 0.1, 10)} if rng.random() < 0.5 else {},
    )


def at_infinity(rng):
    """Only at infinity."""
    c, k, n = rational(number(rng)), rational(number(rng, 0.1, 3)), int(rng.integers(1, 4))
    made = [
        Eq(c / X**n - B, 0),
        Eq(exp(-k * X) - B, 0),
        Eq(1 / (1 + k * X**2), B),
        Eq(exp(-k * X**2), B),
        Eq(X / (c + X), 1 - B),
        Eq(c / X**2 + k / X**4, B),
        Eq(sqrt(X**2 + c) - X, B),
        Eq(log(1 + exp(-k * X)), B),
        Eq(tanh(k * X), 1 - B),
        Eq(X / (1 + X**2) / X, B),
        Eq(sqrt(X + c) - sqrt(X), B),
        Eq(pi / 2 - atan(k * X), B),
        X + c / X**n + B,
        X + exp(-k * X) + B,
    ][rng.integers(14)]
    return of_sympy(
        "at infinity",
        {"x": made},
        points=[{"b": 0.0}],
        never=True,
        positive=("x",) if rng.random() < 0.6 else (),
        start={"x": number(rng, 0.1, 30)} if rng.random() < 0.5 else {},
    )


def coupled_at_infinity(rng):
    """Two unknowns that run off together, or equations that contradict each other."""
    c, k = rational(number(rng)), rational(number(rng, 0.05, 0.95))
    V, H = Symbol("V"), Symbol("H")
    made = [
        {"V": 1 / (B + H), "H": k / (1 + V)},
        {"V": 1 / H, "H": k / (c + V)},
        {"V": 2 * H, "H": V / 2 + exp(-H)},
        {"V": H + c, "H": V + k * H**2 / (1 + H**2)},
        {"V": sqrt(H**2 + c), "H": V},
        {"V": Eq(V + H, c), "H": Eq(V + H, c + k)},
        {"V": V * H, "H": Eq(V * H**2, c) if rng.random() < 0.5 else 1 + c / V},
        {"V": Eq(exp(-V) * H, 0), "H": Eq(H, 1 + c)},
        {"V": H + 1 / V, "H": V},
        {"V": Eq(tanh(V), H), "H": 1 + B},
    ][rng.integers(10)]
    return of_sympy(
        "coupled, at infinity",
        made,
        points=[{"b": 0.0}],
        positive=("V", "H") if rng.random() < 0.7 else (),
        start={"V": number(rng, 0.1, 10)} if rng.random() < 0.5 else {},
    )


def finite_and_infinite(rng):
    """A root at a finite place, and flat towards infinity: stationarity of what tends to a constant."""
    c, k = rational(number(rng)), rational(number(rng, 0.3, 3))
    curve = [
        (X**2 + c) / (1 + X) ** 2,
        X * exp(-k * X),
        X / (c + X**2),
        (X - c) * exp(-k * X),
        log(1 + X) / (c + X),
        X**2 * exp(-k * X),
        (1 + X**2) / (c + X + X**2),
        exp(-(((X - c) / k) ** 2)),
        1 / (1 + (X - c) ** 2),
        log(X) / X**k,
    ][rng.integers(10)]
    return of_sympy(
        "finite and infinite",
        {"x": Eq(sp.diff(curve, X), 0)},
        positive=("x",) if rng.random() < 0.8 else (),
        start={"x": number(rng, 0.05, 20)} if rng.random() < 0.7 else {},
    )


def unstable(rng):
    """Iteration leaves a root, or two roots compete, or 0 is one."""
    k, c = rational(number(rng, 0.2, 6)), rational(number(rng, 0.1, 3))
    made = [
        k * X * (1 - X),
        k * X**2 / (1 + k * X**2),
        tanh(k * X),
        1 - exp(-k * X),
        k * X / (1 + k * X),
        k * X**3 / (1 + k * X**3),
        k * sin(X),
        X**2 + c / 10,
        k * X * exp(-X),
        1 - k * X**2,
        c - k * X,
        exp(-k * X),
        k * X / (1 + X**2),
        sqrt(k * X) * exp(-X),
        k * X**2 * exp(-X),
    ][rng.integers(15)]
    return of_sympy(
        "unstable or zero",
        {"x": made},
        positive=("x",) if rng.random() < 0.6 else (),
        start={"x": number(rng, 0.001, 3)} if rng.random() < 0.6 else {},
    )


def batch(rng):
    """Points of one system, some without a solution or with one that is hard, side by side."""
    k, c = rational(number(rng, 0.3, 3)), rational(number(rng, 0.2, 2))
    made = [
        (X**2 + A, [-2.0, -0.5, 0.1, 0.2499, 0.2501, 1.0]),
        (tanh(A * X), [0.2, 0.9, 0.999, 1.001, 1.5, 30.0]),
        (A * X / (1 + A * X), [0.3, 0.99, 1.0, 1.01, 4.0]),
        (Eq(c / X - A, 0), [0.0, 1e-9, 0.5, 2.0]),
        (Eq(exp(-k * X) - A, 0), [0.0, -0.3, 1e-12, 0.4]),
        (A * X**2 / (1 + A * X**2), [1.0, 3.9, 4.1, 8.0]),
        (Eq(X**3 - A * X + 1, 0), [-2.0, 1.0, 1.8, 1.9, 3.0]),
        (c + log(X) * A, [0.1, 0.9, 1.0, 2.0]),
        (Eq(sqrt(X) - A, 0), [-1.0, 0.0, 0.5, 3.0]),
        (A * exp(-X) + A * X**2, [0.1, 0.25, 1.0, 5.0]),
        (Eq(A * X**2 + X - 1, 0), [-0.3, -0.25, 0.0, 1e-8, 2.0]),
        (1 / (A + X), [-3.0, -1.9, 0.0, 1e3]),
    ][rng.integers(12)]
    rhs, values = made
    values = [v for v in values if rng.random() < 0.8] or values
    return of_sympy(
        "batch",
        {"x": rhs},
        points=[{"a": v} for v in values],
        positive=("x",) if rng.random() < 0.5 else (),
        start={"x": number(rng, 0.05, 2)} if rng.random() < 0.5 else {},
    )
