"""inf_t f(t) over a half line or a line: the global minimum, or the limit where the infimum lies at an end.

A scan on a grid finds every local minimum that it resolves, each is closed in on, and the ends are judged by the limits of
the values towards them (Shanks' transformation, exact for sums of geometric sequences): an infimum that is not
attained is said to be none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

Array = np.ndarray[Any, Any]

_ENOUGH = 1e-9        # an end wins only by more than this, relative to the value inside
_STEPS = 7


class Least(NamedTuple):
    """The infimum: `value`, the point `at` (None if not attained), the `end` it lies at (nan if inside), its `error`."""

    value: float
    at: float | None
    end: float
    error: float


def least(f: Callable[[Array], Array], grid: Array, ends: tuple[float, float] = (0.0, np.inf)) -> Least:
    """The infimum of f over the open interval `ends`, from a scan on `grid` (increasing), for a vectorised f.

    Examples
    --------
    >>> found = least(lambda t: (np.log(t) - 1)**2, np.geomspace(0.01, 100, 30))
    >>> abs(found.at - np.e) < 1e-7
    True
    >>> least(lambda t: 1/(1 + t), np.geomspace(0.01, 100, 30))[1:3]
    (None, inf)
    """
    values = f(grid)
    inner = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])) + 1
    best = Least(float(np.min(values)), float(grid[np.argmin(values)]), np.nan, 0.0)
    for i in sorted(inner, key=lambda i: values[i])[:6]:
        at = _closed_in(f, grid[i - 1], grid[i + 1])
        value = float(f(np.array([at]))[0])
        if value <= best.value:
            best = Least(value, at, np.nan, 0.0)
    for end, edge, near in ((ends[0], grid[0], grid[1]), (ends[1], grid[-1], grid[-2])):
        limit, error = _limit(f, end, edge, near)
        margin = max(_ENOUGH*best.value, 1e-15)
        at_edge = best.at is not None and best.at == edge
        if limit < best.value - max(margin, error) or (at_edge and limit <= best.value + error):
            best = Least(max(limit, 0.0), None, end, error)
    return best


def _closed_in(f: Callable[[Array], Array], low: float, high: float) -> float:
    """The minimum between two points: by values, then by the zero of a central difference."""
    for _ in range(3):  # a grid inside the grid: a narrow minimum beside another is not stepped over
        t = np.linspace(low, high, 17)
        i = int(np.clip(np.argmin(f(t)), 1, 15))
        low, high = t[i - 1], t[i + 1]
    found = minimize_scalar(lambda t: float(f(np.array([t]))[0]), bounds=(low, high), method="bounded",
                            options={"xatol": 1e-11*(abs(low) + abs(high))})
    # A parabola through values that differ by much more than their rounding places the minimum better than they do.
    step = max((high - low)*0.1, 1e-6*abs(found.x))
    t = found.x + step*np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    a = np.polynomial.polynomial.polyfit((t - found.x)/step, f(t), 4)
    roots = np.polynomial.Polynomial(a).deriv().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    better = found.x + step*real[np.argmin(np.abs(real))] if real.size else found.x
    close = abs(better - found.x) < 3e-7*max(1.0, abs(found.x))
    return float(better if close else found.x)


def _limit(f: Callable[[Array], Array], end: float, edge: float, near: float) -> tuple[float, float]:
    """The limit of f towards an end, and its error, from a geometric (or, towards -oo and oo of a line, equal) sequence."""
    if np.isfinite(end):
        t = end + (edge - end)*0.5**np.arange(_STEPS)[::-1]*2.0**(_STEPS - 3)
    else:
        t = edge*0.5**np.arange(_STEPS)
    t = t[np.argsort(np.abs(t - end))][::-1] if np.isfinite(end) else t[::-1]
    values = f(t)
    step = abs(values[-1] - values[-2])
    if not np.all(np.diff(values)[-3:] < 0):  # it does not come down towards this end
        return float(values[-1]), 0.0
    first, second = _shanks(values), _shanks(values[:-1])
    error = abs(first - second)
    if not np.isfinite(first) or error > 10*step:
        return float(values[-1]), float(step)
    return float(first), float(error)


def _shanks(values: Array) -> float:
    """The last entry of Wynn's epsilon table."""
    before, now = np.zeros(len(values) + 1), values.astype(float)
    best = now[-1]
    for k in range(1, len(values)):
        gap = np.diff(now)
        if np.any(np.abs(gap) < 1e-15*np.abs(values).max()):
            break
        before, now = now, before[1:-1][:len(gap)] + 1/gap
        if k % 2 == 0:
            best = now[-1]
    return float(best)
