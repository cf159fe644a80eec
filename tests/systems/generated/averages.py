"""Random systems with averages that are narrow, fast, kinked, coupled, singular or divergent, and their values by other means.

The other means are sums over Gauss-Legendre panels as narrow as the integrand, whose scale is known here, or a closed form.
"""

import numpy as np
import sympy as sp
from draws import BAD, MP, Draw, X, number, rational
from sympy import Symbol, cos, exp, log, sin, sqrt, tanh

from hermitex import E, System
from hermitex.symbols import z, z1, z2


def panels(scale, cuts=(), reach=12.0):
    """Gauss-Legendre nodes with the weights of N(0, 1): panels of the scale's width near the cuts, wider elsewhere."""
    t, v = np.polynomial.legendre.leggauss(20)
    edges = [np.arange(-reach, reach + 0.01, min(scale, 0.5) if not cuts else 0.05)]
    for c in cuts:
        ladder = scale * np.concatenate([np.arange(0, 20, 0.5), 20 * 1.15 ** np.arange(0, 130)])
        edges.append(c + ladder[ladder < 25])
        edges.append(c - ladder[ladder < 25])
    e = np.unique(np.clip(np.concatenate(edges), -reach, reach))
    half = np.diff(e)[:, None] / 2
    x = (e[:-1, None] + half * (1 + t)).ravel()
    return x, (half * v).ravel() * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


PLAIN = panels(0.05)
PLANE = panels(0.5, reach=9.0)


def hard_average(rng):
    """(integrand in z and x, the same in NumPy, cuts(x), scale): narrow, steep, fast or kinked, where x shifts or stretches it."""
    s = float(f"{10 ** rng.uniform(-4, 0):.2g}")
    c, w, k = (float(np.round(rng.uniform(-1.5, 1.5), 2)), float(np.round(rng.uniform(1, 60), 1)), float(f"{1 / s:.3g}"))
    S, Cc, W, K = map(rational, (s, c, w, k))
    x = X / 4
    table = [
        (1 / (1 + ((z - Cc) / S) ** 2), lambda t, x: 1 / (1 + ((t - c) / s) ** 2), lambda x: [c], s, 1 / s),
        (1 / (1 + ((z - Cc - x) / S) ** 2), lambda t, x: 1 / (1 + ((t - c - x / 4) / s) ** 2), lambda x: [c + x / 4], s, 1 / s),
        (exp(-(((z - Cc) / S) ** 4)), lambda t, x: np.exp(-(((t - c) / s) ** 4)), lambda x: [c], s, 1 / s),
        (tanh(K * (z - Cc)) * tanh(z), lambda t, x: np.tanh(k * (t - c)) * np.tanh(t), lambda x: [c], s, 1.0),
        (tanh(K * (z - Cc - x)) ** 2, lambda t, x: np.tanh(k * (t - c - x / 4)) ** 2, lambda x: [c + x / 4], s, 1.0),
        (sin(W * z) ** 2 * tanh(z) ** 2, lambda t, x: np.sin(w * t) ** 2 * np.tanh(t) ** 2, lambda x: [], 1 / w, 1.0),
        (cos(W * z + x) * tanh(z + Cc), lambda t, x: np.cos(w * t + x / 4) * np.tanh(t + c), lambda x: [], 1 / w, 1.0),
        (1 / (1 + sp.exp(-K * (z - Cc))), lambda t, x: 0.5 * (1 + np.tanh(k * (t - c) / 2)), lambda x: [c], s, 1.0),
        (sp.Abs(tanh(z - Cc - x)), lambda t, x: np.abs(np.tanh(t - c - x / 4)), lambda x: [c + x / 4], 1.0, 1.0),
        (
            sp.Max(0, tanh(z) - rational(abs(c) / 2)),
            lambda t, x: np.maximum(0, np.tanh(t) - abs(c) / 2),
            lambda x: [np.arctanh(abs(c) / 2)],
            1.0,
            1.0,
        ),
        (
            exp(-((z - Cc) ** 2) / (2 * S**2)) * tanh(z + 2),
            lambda t, x: np.exp(-((t - c) ** 2) / (2 * s * s)) * np.tanh(t + 2),
            lambda x: [c],
            s,
            1 / s,
        ),
        (exp(sin(W * z)), lambda t, x: np.exp(np.sin(w * t)), lambda x: [], 1 / w / 3, 1.0),
        (sqrt((z - Cc - x) ** 2 + S**2), lambda t, x: np.sqrt((t - c - x / 4) ** 2 + s * s), lambda x: [c + x / 4], s, 1.0),
        (log((z - Cc) ** 2 + S**2), lambda t, x: np.log((t - c) ** 2 + s * s), lambda x: [c], s, 1.0),
    ]
    return table[rng.integers(len(table))]


def narrow(rng):
    """x = b + g E f(z, x), one average that a coarse rule cannot see."""
    body, f, cuts, scale, size = hard_average(rng)
    gain, b = number(rng, 0.1, 1.0, 2) * size**0.9, number(rng, 0.1, 1.0, 2)
    gain = float(f"{gain:.3g}")
    x = Symbol("x", real=True)
    body = body.subs(X, x)

    def residuals(point, values):
        t, v = panels(scale, cuts(float(values[0])))
        return [float(values[0]) - b - gain * float(v @ f(t, float(values[0])))]

    return Draw(
        "narrow or fast",
        lambda: System({x: rational(b) + Symbol("g", real=True) * E(body, z)}),
        ("x",),
        points=[{"g": gain}],
        residuals=residuals,
        smooth=False,
        words=f"x = {b} + {gain} E {body}",
    )


def coupled_averages(rng):
    """Two unknowns, averages over one and two normals of functions of both."""
    k, w, g = (number(rng, 0.3, 8, 2) for _ in range(3))
    b = [number(rng, 0.1, 1, 2) for _ in range(2)]
    sign_ = int(rng.choice([-1, 1]))
    x, y = Symbol("x", real=True), Symbol("y", positive=True)
    K, W, G = map(rational, (k, w, g))
    choice = int(rng.integers(3))
    bodies = [
        (tanh(K * x + y * z), tanh(K * x + sign_ * y * z) ** 2, [z]),
        (tanh(x + W * z * y) * z, 1 / (1 + (y + K * z) ** 2), [z]),
        (tanh(x * z1 + z2 * y), tanh(K * z1 + z2) ** 2 * exp(-y * z2**2), [z1, z2]),
    ][choice]
    numeric = [
        (lambda t, x, y: np.tanh(k * x + y * t), lambda t, x, y: np.tanh(k * x + sign_ * y * t) ** 2),
        (lambda t, x, y: np.tanh(x + w * t * y) * t, lambda t, x, y: 1 / (1 + (y + k * t) ** 2)),
        (lambda t, u, x, y: np.tanh(x * t + u * y), lambda t, u, x, y: np.tanh(k * t + u) ** 2 * np.exp(-y * u * u)),
    ][choice]
    pair = choice == 2
    B0, B1 = map(rational, b)

    def residuals(point, values):
        a, c = map(float, values)
        t, v = PLANE if pair else PLAIN
        here = [f(t[:, None], t[None, :], a, c) if pair else f(t, a, c) for f in numeric]
        first, second = (float(v @ e @ v) if pair else float(v @ e) for e in here)
        return [a - b[0] - first / 2, c - b[1] - g * second]

    return Draw(
        "coupled averages",
        lambda: System({x: B0 + E(bodies[0], *bodies[2]) / 2, y: B1 + G * E(bodies[1], *bodies[2])}),
        ("x", "y"),
        residuals=residuals,
        smooth=False,
        words=f"x = {b[0]} + E {bodies[0]}/2, y = {b[1]} + {g} E {bodies[1]}",
    )


def divergent(rng):
    """The average does not exist."""
    a = rational(np.round(rng.uniform(0.2, 2.0), 2))
    small = rational(np.round(rng.uniform(0.1, 0.9), 2))
    P = Symbol("p", real=True)
    body, p = [
        (sp.tan(P * z) ** 2, a),
        (1 / (sin(3 * z) - P) ** 2, small),
        (1 / (z - P) ** 2, a),
        (exp(P * z**2), sp.Rational(1, 2) + small),
        (1 / (z - P), a),
        (exp(P * z**4) / (1 + z**2), a),
        (1 / sp.Abs(z - P), a),
        (tanh(z) ** 2 * exp(P * z**2), sp.Rational(1, 2) + small / 10),
        (1 / (cos(z) - P) ** 2, small),
        (1 / (tanh(z) - P) ** 2, small / 2),
        (sp.tan(P * z), a + 1),
        (1 / (1 - tanh(z) - P) ** 2, small),
        (1 / (exp(z) - P) ** 2, a),
        (1 / sp.Abs(sin(P * z)), a),
        (exp(exp(P * sp.Abs(z))), a + 1),
    ][rng.integers(15)]
    x, b = Symbol("x", real=True), Symbol("b", real=True)
    point = {"b": 1.0, "p": float(p)}
    return Draw(BAD, lambda: System({x: b * E(body, z)}), ("x",), points=[point], never=True, words=f"x = b E {body} at {point}")


def divergent_at_the_unknown(rng):
    """The average exists for no value of the unknown, or for none that solves the equation."""
    c, b = rational(number(rng, 0.1, 2)), Symbol("b", real=True)
    x = Symbol("x", positive=True) if rng.random() < 0.5 else Symbol("x", real=True)
    body = [
        1 / (z - x) ** 2,
        1 / sp.Abs(z - x),
        exp(exp(z**2) - x),
        1 / sin(z - x) ** 2,
        sp.tan(z + x) ** 2,
        1 / (1 - exp(z - x)) ** 2,
    ][rng.integers(6)]
    return Draw(
        "diverges everywhere",
        lambda: System({x: b * c + E(body, z) / 10}),
        ("x",),
        points=[{"b": 1.0}],
        never=True,
        start={"x": number(rng, 0.1, 3)},
        words=f"x = {c} + E {body}/10",
    )


def singular(rng):
    """The average exists though its integrand is unbounded, or nearly does not exist."""
    a = float(np.round(rng.uniform(0.1, 1.5), 2))
    P, x, b = Symbol("p", real=True), Symbol("x", real=True), Symbol("b", real=True)
    g = float(np.round(rng.uniform(0.3, 0.49), 3))
    made = [
        (
            log(sp.Abs(z - P)),
            a,
            lambda p: MP.quad(lambda t: MP.log(abs(t - p)) * MP.npdf(t), [-12, -4, p - 1, p, p + 1, 4 + p, 14]),
        ),
        (1 / sqrt(sp.Abs(z - P)), a, lambda p: MP.quad(lambda u: 2 * (MP.npdf(p + u * u) + MP.npdf(p - u * u)), [0, 0.5, 1, 2, 4])),
        (
            exp(P * z**2) * tanh(z) ** 2,
            g,
            lambda p: (
                MP.quad(lambda t: 2 * MP.tanh(t / MP.sqrt(1 - 2 * p)) ** 2 * MP.npdf(t), [0, 1, 2, 4, 13]) / MP.sqrt(1 - 2 * p)
            ),
        ),
        (exp(P * z), 10 * a, lambda p: MP.exp(MP.mpf(p) ** 2 / 2)),
        (1 / (1 + exp(-P * z)), 1000 * a, lambda p: MP.mpf(1) / 2),
        (log(sp.Abs(sin(P * z))), 2 * a, None),
    ]
    body, p, value = made[rng.integers(len(made))]

    def residuals(point, values):
        true = value(point["p"])
        return [MP.mpf(values[0]) / true - 1]

    return Draw(
        "singular average",
        lambda: System({x: b * E(body, z)}),
        ("x",),
        points=[{"b": 1.0, "p": p}],
        smooth=False,
        residuals=residuals if value else None,
        words=f"x = E {body} at {p}",
    )
