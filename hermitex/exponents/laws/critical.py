"""grad F = 0: the labels at which the density of F(u, t) is singular, and where in (u, t) that happens.

Extrema make jumps, saddles logarithms. On the lines u = const and t = const where F or a law has a kink, the critical
points along the line count too. All are found by Newton's method from a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sympy import Expr, Symbol

from hermitex.exponents.laws.density import WINDOW, array_function, distinct
from hermitex.exponents.laws.sections import smooth_slope

_START = 31
_STEPS = 80
_MOST = 14


@dataclass(frozen=True)
class Critical:
    """Singular labels, and the values of u and t next to which the singularity is made."""

    labels: np.ndarray
    u: np.ndarray
    t: np.ndarray


def critical(form: Expr, names: tuple[Symbol, Symbol], boxes: Sequence[tuple[float, float]],
             lines: tuple[Sequence[float], Sequence[float]]) -> Critical:
    """The critical points of F in a box and along the given lines u = const, t = const."""
    u, t = names
    slopes = [smooth_slope(form, u), smooth_slope(form, t)]
    bends = [[smooth_slope(s, x) for x in names] for s in slopes]
    f = array_function(form, *names)
    gradient = [array_function(s, *names) for s in slopes]
    hessian = [[array_function(b, *names) for b in row] for row in bends]
    points = [_plane(gradient, hessian, boxes)]
    for u0 in lines[0]:
        ts = _line(lambda x, c=u0: (gradient[1](c + 0 * x, x), hessian[1][1](c + 0 * x, x)), boxes[1], lines[1])
        points.append(np.stack([np.full(len(ts), u0), ts]))
    for t0 in lines[1]:
        u0s = _line(lambda x, c=t0: (gradient[0](x, c + 0 * x), hessian[0][0](x, c + 0 * x)), boxes[0], lines[0])
        points.append(np.stack([u0s, np.full(len(u0s), t0)]))
    where = np.concatenate(points, axis=1)
    labels = f(*where)
    keep = np.isfinite(labels)
    return Critical(rounded(labels[keep]), *(_few(w[keep]) for w in where))


def _plane(gradient: list[Callable], hessian: list[list[Callable]], boxes: Sequence[tuple[float, float]]) -> np.ndarray:
    sides = [np.linspace(max(a, -WINDOW), min(b, WINDOW), _START) * 0.999 + 1.7e-3 for a, b in boxes]
    x = np.stack([g.ravel() for g in np.meshgrid(*sides, indexing="ij")])
    for _ in range(_STEPS):
        g = np.stack([d(*x) for d in gradient])
        (a, b), (_, c) = ([d(*x) for d in row] for row in hessian)
        with np.errstate(all="ignore"):
            det = a * c - b * b
            step = np.stack([c * g[0] - b * g[1], a * g[1] - b * g[0]]) / det
            # Where the Hessian is singular, a curve of critical points: along the gradient.
            along = g * (g[0] ** 2 + g[1] ** 2) / (a * g[0] ** 2 + 2 * b * g[0] * g[1] + c * g[1] ** 2)
        step = np.where(np.isfinite(step).all(axis=0), step, np.where(np.isfinite(along), along, 0.0))
        size = np.sqrt(np.sum(step**2, axis=0))
        x = x - step * np.minimum(1.0, 1.0 / np.maximum(size, 1e-300))
    g = np.stack([d(*x) for d in gradient])
    size = np.stack([np.abs(d(*x)) for row in hessian for d in row]).max(axis=0)
    inside = np.all([(w >= a) & (w <= b) & (np.abs(w) < WINDOW) for w, (a, b) in zip(x, boxes, strict=True)], axis=0)
    with np.errstate(all="ignore"):
        still = np.max(np.abs(g), axis=0) <= 1e-9 * np.minimum(1.0, np.maximum(size, 1e-3))
    return x[:, inside & still]


def _line(f: Callable, box: tuple[float, float], lines: Sequence[float]) -> np.ndarray:
    """Zeros of a slope along a line, by a scan and Newton steps; the crossings with other lines too."""
    x = np.linspace(max(box[0], -WINDOW), min(box[1], WINDOW), 801) + 1.7e-4
    value, _ = f(x)
    crossing = np.flatnonzero(np.sign(value[:-1]) * np.sign(value[1:]) < 0)
    a, b, rising = x[crossing], x[crossing + 1], value[crossing] < 0
    for _ in range(60):
        m = (a + b) / 2
        up = (f(m)[0] < 0) == rising
        a, b = np.where(up, m, a), np.where(up, b, m)
    return np.concatenate([(a + b) / 2, np.asarray(lines, dtype=float)])


def rounded(values: np.ndarray) -> np.ndarray:
    """One of each, 0 where it is 0 but for rounding."""
    found: list[float] = []
    for value in sorted(values, key=abs):
        v = 0.0 if abs(value) < 1e-12 else float(value)
        if not any(abs(v - w) <= 1e-9 * max(1.0, abs(v)) for w in found):
            found.append(v)
    return distinct(np.array(found)) if found else np.array([])


def _few(where: np.ndarray) -> np.ndarray:
    """The distinct coordinates, unless they fill curves."""
    found = rounded(np.where(np.abs(where) < 1e-6, 0.0, where))
    return found if len(found) <= _MOST else np.array([])
