"""Nodes and weights on panels, series on them, and roots between the points of a grid: the numeric toolkit of laws.

Panels are graded towards the places at which an integrand is not analytic; everything is for arrays of many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from hermitex.numbers.gauss import legendre, legendre_on


def split(knots: np.ndarray, width: float) -> np.ndarray:
    """Edges of panels no wider than `width`: the knots, shape (k,), sorted, and evenly spaced points between them.

    >>> split(np.array([0.0, 1.0, 1.5]), 0.6).tolist()
    [0.0, 0.5, 1.0, 1.5]
    """
    cells = [np.linspace(a, b, max(1, int(np.ceil((b - a)/width))) + 1)[:-1] for a, b in pairwise(knots)]
    return np.concatenate([*cells, knots[-1:]])


@lru_cache(maxsize=16)
def to_series(order: int) -> np.ndarray:
    """The matrix from values at the Gauss nodes to coefficients of Legendre polynomials, shape (order, order)."""
    x, w = legendre(order)
    return (np.polynomial.legendre.legvander(x, order - 1) * w[:, None]).T * (np.arange(order)[:, None] + 0.5)


@lru_cache(maxsize=64)
def half_template(order: int, depth: int, power: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1) for integrands with an inverse square root, a logarithm or a jump at 0.

    x = tau^2 makes the square root analytic, tau^4 the logarithm mild too (at the price of rounding next to a knot that
    is not 0); the panels in x shrink by 4 towards 0, `depth` times.
    """
    edges = np.concatenate([[0.0], 4.0 ** (-np.arange(depth, -1, -1) / power)])
    tau, w = (a.ravel() for a in legendre_on(edges, order))
    return tau**power, power * w * tau ** (power - 1)


@lru_cache(maxsize=64)
def graded_template(order: int, depth: int, power: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The same at both ends of (0, 1), arrays (m,)."""
    x, w = half_template(order, depth, power)
    return np.concatenate([x / 2, 1 - x[::-1] / 2]), np.concatenate([w, w[::-1]]) / 2


def graded_nodes(breaks: np.ndarray, order: int = 16, depth: int = 10, power: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the intervals between `breaks`, shape (..., k): arrays (..., (k-1) m)."""
    t, w = graded_template(order, depth, power)
    a, width = breaks[..., :-1, None], np.diff(breaks, axis=-1)[..., None]
    shape = (*breaks.shape[:-1], -1)
    return (a + width * t).reshape(shape), (width * w).reshape(shape)


def near_knots(knots: np.ndarray, side: float, rule: tuple[int, int], width: float, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights between the knots, shape (k,), each (n,): graded within `side` of a knot, plain panels in the middle.

    rule : order and depth of the grading;  width, order : of the plain panels
    """
    t, w = half_template(*rule)
    nodes, weights = [np.zeros(0)], [np.zeros(0)]
    for a, b in pairwise(knots):
        s = min((b - a)/2, side)
        x, v = legendre_on(split(np.array([a + s, b - s]), width), order)
        nodes += [a + s*t, b - s*t, x.ravel()]
        weights += [s*w, s*w, v.ravel()]
    return np.concatenate(nodes), np.concatenate(weights)


def distinct_sorted(points: np.ndarray) -> np.ndarray:
    """Sorted, without repetitions up to rounding, shape (n,) -> (m,), m <= n."""
    points = np.sort(np.asarray(points, dtype=float))
    scale = max(1e-300, float(np.max(np.abs(points)))) if len(points) else 1.0
    # Labels that reach out to 1e20 must not make one of those around 1.
    near = np.minimum(scale, np.maximum(1.0, np.abs(points[:-1])))
    keep = np.concatenate([[True], np.diff(points) > 1e-13 * near]) if len(points) else np.array([], dtype=bool)
    return points[keep]


def zeros_on(functions: Sequence[Callable], grid: np.ndarray) -> list[float]:
    """The sign changes of each function on the grid, shape (n,), to rounding, in order."""
    from scipy.optimize.elementwise import find_root

    found: list[float] = []
    rounding = {"xatol": 1e-15, "xrtol": 1e-15, "fatol": 0.0, "frtol": 0.0}  # to the last digits of the place itself
    for f in functions:
        values = np.asarray(f(grid))
        ends = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
        if ends.size:
            found += find_root(f, (grid[ends], grid[ends + 1]), tolerances=rounding).x.tolist()
        found += [float(x) for x in grid[1:-1][(values[1:-1] == 0) & (np.sign(values[:-2]) * np.sign(values[2:]) < 0)]]
    return sorted(found)


def zeros_of(f: Callable, grid: np.ndarray) -> np.ndarray:
    """Where a function vanishes on the grid, shape (n,), also without changing its sign."""
    from scipy.optimize import minimize_scalar

    size = np.abs(f(grid))
    found = []
    for n in np.flatnonzero((size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:])) + 1:
        best = minimize_scalar(lambda x: float(np.abs(f(np.array([x])))[0]), bounds=(grid[n - 1], grid[n + 1]), method="bounded",
                               options={"xatol": 1e-13})
        if best.fun < 1e-6*max(1.0, float(np.median(size))):
            found.append(0.0 if abs(best.x) < 1e-7 else float(best.x))
    return np.array(found)
