"""1/alpha_c = int (E[He_2 p(y|z)])^2 / E[p(y|z)] dy for a noisy label, in double precision with an error estimate.

A label that is drawn on the scale |g(z)| is t = log|g| + noise with a fixed kernel K. The nodes in z resolve log|g| at the
scale of the kernel and are sorted by it, so a label meets only the nodes under its kernel; in t the integrand is smooth at
that scale and the trapezoid rule converges exponentially. Other noises go through the law of g (`laws.noisy`), as in several
variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Abs, Expr, Float, Symbol, exp, log, pi, sqrt

from hermitex.errors import NoClosedForm
from hermitex.exponents.generative import indicator_moment
from hermitex.exponents.laws.density import array_function, unguarded
from hermitex.exponents.laws.sections import switch_arguments
from hermitex.kernels.panels import on_panels, zeros_on
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.precise import evaluate

_WINDOW = 8.6  # P(|z| > 8.6) < 1e-17
_ORDER = 10
_MOST_NODES = 4_000_000
_TOLERANCE = 1e-12
_LEAST = 1e-18
_EPSILON = 1e-15  # of E[He_2 K(v)] in units of E[|He_2| K(v)]: rounding, and what lies outside the window


class Nodes:
    """Quadrature nodes in z for E[He_k(z) K(v(z))]: the values v sorted, with the weights of orders 0 and 2."""

    def __init__(self, v: Callable, edges: np.ndarray, step: float) -> None:
        z, weight = _nodes(_subdivide(v, edges, step))
        value = v(z)
        keep = np.isfinite(value) & (weight > 0)
        order = np.argsort(value[keep], kind="stable")
        self.value = value[keep][order]
        self.weights = np.stack([weight[keep], weight[keep] * (z[keep] ** 2 - 1)])[:, order]


def _subdivide(v: Callable, edges: np.ndarray, step: float) -> np.ndarray:
    """Halve the panels until v moves by at most `step` on each that carries weight."""
    for _ in range(40):
        checkpoint("placing quadrature nodes")
        inside = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.02, 0.98, 5)
        values = v(inside.ravel()).reshape(inside.shape)
        with np.errstate(invalid="ignore"):
            moves = np.ptp(values, axis=1)
        # Next to a zero of g away from 0 a panel may be no wider than the spacing of doubles; its weight is nothing.
        narrow = np.diff(edges) <= 4 * np.spacing(np.maximum(np.abs(edges[:-1]), np.abs(edges[1:])))
        wide = (moves > step) & np.isfinite(moves) & (np.diff(edges) > 1e-17) & ~narrow
        if not wide.any():
            return edges
        if len(edges) * _ORDER > _MOST_NODES:
            break
        middle = (edges[:-1] + edges[1:])[wide] / 2
        edges = np.sort(np.concatenate([edges, middle]))
    raise NoClosedForm("alpha_c", "the noise is too small against the range of the target for its quadrature",
                       "Use a larger noise, or the deterministic channel")


def _edges(g: Expr, x: Symbol) -> np.ndarray:
    """Panel ends, shape (k,): a uniform grid, the kinks of g, and points that accumulate at them."""
    from sympy import Rational

    window = (-Rational(str(_WINDOW)), Rational(str(_WINDOW)))
    kinks = np.array([float(p) for p in breakpoints(g, x, window)])
    edges = np.concatenate([np.linspace(-_WINDOW, _WINDOW, 70), kinks])
    offsets = 2.0 ** -np.arange(1, 64)
    edges = np.concatenate([edges, *[k + s * offsets for k in kinks for s in (-1, 1)]])
    edges = np.unique(edges[np.abs(edges) <= _WINDOW])
    return edges


def _values(g: Expr, x: Symbol) -> Callable:
    g = g.xreplace({node: Float(evaluate(node, 20), 20) for node in g.atoms(Expectation)})
    return array_function(g, x)


def multiplicative(g: Expr, x: Symbol) -> tuple[float, float]:
    """(1/alpha_c, error) of y = g(z) xi."""
    s = Symbol("s", real=True)
    return scaled(g, x, exp(-s**2 / 2) / sqrt(2 * pi), s)


def scaled(g: Expr, x: Symbol, f: Expr, s: Symbol) -> tuple[float, float]:
    """(1/alpha_c, error) of y = |g(z)| N, N of density f(s), in t = log|y| = log|g| + log|N| on each side of 0."""
    g_of, f_of = _values(g, x), _values(f, s)

    def v(z: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(np.abs(g_of(z)))

    edges = _edges(log(Abs(g)), x)
    value, error = _atom_at_zero(g, x), 0.0
    for side in (1, -1):
        def kernel(d: np.ndarray, side: int = side) -> np.ndarray:
            with np.errstate(over="ignore", under="ignore"):
                return np.nan_to_num(np.exp(d) * f_of(side * np.exp(d)))

        d = np.linspace(-120, 120, 4801)
        live = d[kernel(d) > _LEAST * kernel(d).max()]
        if not len(live):
            continue  # N has one sign
        more, slack = _converged(v, edges, kernel, reach=(live[-1] + 0.05, 0.05 - live[0]))
        value, error = value + more, error + slack
    return value, error


def _atom_at_zero(g: Expr, x: Symbol) -> float:
    """E[He_2 1(g = 0)]^2/P(g = 0): the label 0 of a product, which no density of log|y| holds."""
    silent = [p for p in pieces(g, x) if p.expr == 0]
    chance = float(evaluate(indicator_moment(silent, 0), 20)) if silent else 0.0
    return float(evaluate(indicator_moment(silent, 2), 20))**2 / chance if chance else 0.0


def _converged(v: Callable, edges: np.ndarray, kernel: Callable, reach: tuple[float, float]) -> tuple[float, float]:
    """Refine nodes and labels together until two levels agree, to the rounding of what cancels."""
    previous = None
    for level in range(5):
        nodes = Nodes(v, edges, 0.8 / 2**level)
        value = _trapezoid(nodes, kernel, reach, 0.25 / 2**level)
        if previous is not None and abs(value - previous) <= _TOLERANCE * value:
            return value, abs(value - previous) + rounding(value)
        previous, before = value, previous
    return value, abs(value - before) + rounding(value)


def rounding(value: float) -> float:
    """The error of sum A^2/B with an error _EPSILON sqrt(B) in each A (Cauchy): a small value is what cancellation left."""
    return 2*_EPSILON*float(np.sqrt(2*abs(value))) + 2*_EPSILON**2


def _trapezoid(nodes: Nodes, kernel: Callable, reach: tuple[float, float], h: float) -> float:
    """sum over labels t of A^2/B, with kernel(t - v) zero in double precision outside -reach[1] < t - v < reach[0]."""
    low, high = nodes.value[0] - reach[1], nodes.value[-1] + reach[0]
    count = int((high - low) / h) + 1
    if count > _MOST_NODES:
        raise NoClosedForm("alpha_c", "the range of the target is too large against the noise for its quadrature",
                           "Use a larger noise, or the deterministic channel")
    labels = low + h * np.arange(count)
    first = np.searchsorted(nodes.value, labels - reach[0])
    last = np.searchsorted(nodes.value, labels + reach[1])
    total = 0.0
    for t, i, j in zip(labels, first, last, strict=True):
        if i < j:
            b, a = nodes.weights[:, i:j] @ kernel(t - nodes.value[i:j])
            if b > 0:
                total += a * a / b
    checkpoint("integrating over the labels")
    return total * h


def custom(p: Expr, y: Symbol, x: Symbol, support: Any) -> tuple[float, float]:
    """(1/alpha_c, error) of any P(y|z) with a density on the real line or on the counts 0, 1, 2, ...

    At each label the line is cut where a switch of P(y|.) jumps or bends.
    """
    law, switches = unguarded(p, y, x), [unguarded(e, y, x) for e in switch_arguments(p, x)]
    results = []
    for level in range(2):
        grid = np.linspace(-_WINDOW, _WINDOW, 140 * 2**level + 1)

        def moments(label: float, grid: np.ndarray = grid) -> float:
            checkpoint("integrating over the labels")
            z, weight = _nodes(_cut(grid, label, switches))
            with np.errstate(all="ignore"):
                values = np.nan_to_num(np.asarray(law(np.full_like(z, label), z), dtype=float))
            mass = weight * np.broadcast_to(values, z.shape)
            b, a = float(mass.sum()), float(mass @ (z * z - 1))
            return a * a / b if b > 0 else 0.0

        results.append(_sum_counts(moments) if support == "integers" else _integrate(moments))
    (coarse, _), (value, slack) = results
    return value, abs(value - coarse) + slack + rounding(value)


def _cut(grid: np.ndarray, label: float, switches: list[Callable]) -> np.ndarray:
    """The grid, shape (k,), with the zeros of the switches at this label."""
    with np.errstate(all="ignore"):
        return np.unique([*grid, *zeros_on([lambda z, f=f: f(np.full_like(z, label), z) for f in switches], grid)])


def _nodes(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, weights) of the normal law on panels, both flat."""
    z, w = (a.ravel() for a in on_panels(edges, _ORDER))
    return z, w * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def _sum_counts(term: Callable[[float], float]) -> tuple[float, float]:
    """(sum, error) over the counts 0, 1, 2, ..., until forty in a row add nothing."""
    total, quiet, count = 0.0, 0, 0
    while quiet < 40 and count < 100_000:
        value = term(count)
        total += value
        quiet = quiet + 1 if value <= 1e-17 * total else 0
        count += 1
    return total, 0.0 if quiet >= 40 else float("inf")


def _integrate(f: Callable[[float], float]) -> tuple[float, float]:
    """(value, error) over the labels y = sinh(pi/2 sinh t): the trapezoid rule in t (double exponential) while it converges.

    Where the integrand bends it does not; then panels are halved about the bends (Gauss-Kronrod).
    """
    from scipy.integrate import quad

    def moved(t: float) -> float:
        return f(np.sinh(np.pi / 2 * np.sinh(t))) * np.pi / 2 * np.cosh(t) * np.cosh(np.pi / 2 * np.sinh(t))

    h, value = 1 / 4, sum(map(moved, np.arange(-4.5, 4.6, 1 / 4))) / 4
    for _ in range(4):
        finer = value / 2 + h / 2 * sum(map(moved, np.arange(-4.5 + h / 2, 4.5, h)))
        h, value, gap = h / 2, finer, abs(finer - value)
        if gap <= _TOLERANCE * abs(value):
            return value, gap
    value, error, *_ = quad(moved, -4.5, 4.5, epsabs=1e-13, epsrel=1e-11, limit=300, full_output=1)
    return value, error
