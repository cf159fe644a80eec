"""inf_t f(t) over a half line or a line: the global minimum, or the limit if the infimum is at an end.

A scan on a grid finds every local minimum that it resolves, each is closed in on, and the ends are judged by the limits of
the values towards them (Neville's polynomials in the distance, or Shanks' transformation, exact for sums of geometric
sequences). An infimum that is not attained is reported as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-13     # of the largest value: what an extrapolation is not better than


class Infimum(NamedTuple):
    """The infimum: `value`, the point `at` (None if not attained), the `end` at which it is (nan if inside), its `error`."""

    value: float
    at: float | None
    end: float
    error: float

    @property
    def said(self) -> str:
        """The value with the digits that its error leaves, and the error.

        >>> Infimum(0.36338023534, None, 0.0, 2e-6).said
        '0.36338 (+- 2e-06)'
        """
        places = max(0, min(15, -int(np.floor(np.log10(self.error))) - 1)) if self.error > 0 else 12
        return f"{round(self.value, places):.12g} (+- {self.error:.0e})"


def find_infimum(f: Callable[[Array], Array], grid: Array, ends: tuple[float, float] = (0.0, np.inf)) -> Infimum:
    """The infimum of f over the open interval `ends`, from a scan on `grid` (increasing), for a vectorised f.

    Examples
    --------
    >>> found = find_infimum(lambda t: (np.log(t) - 1)**2, np.geomspace(0.01, 100, 30))
    >>> abs(found.at - np.e) < 1e-7
    True
    >>> find_infimum(lambda t: 1/(1 + t), np.geomspace(0.01, 100, 30))[1:3]
    (None, inf)
    """
    values = f(grid)
    inner = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])) + 1
    best = Infimum(float(np.min(values)), float(grid[np.argmin(values)]), np.nan, 0.0)
    known = values[np.isfinite(values)]
    flat = known.size == values.size and np.ptp(known) <= _ROUNDING*np.max(np.abs(known))  # no point is better than another
    for i in [] if flat else sorted(inner, key=lambda i: values[i])[:6]:
        at = _closed_in(f, grid[i - 1], grid[i + 1])
        value = float(f(np.array([at]))[0])
        if value <= best.value:
            best = Infimum(value, at, np.nan, 0.0)
    enough = 1e-9  # an end wins only by more than this, relative to the value inside
    for end, edge in ((ends[0], grid[0]), (ends[1], grid[-1])):
        limit, error = _limit(f, end, edge)
        margin = max(enough*best.value, 1e-15)
        at_edge = best.at is not None and best.at == edge
        if limit < best.value - max(margin, error) or (at_edge and limit <= best.value + error):
            best = Infimum(limit if limit > error else 0.0, None, end, error)
    return best


def _closed_in(f: Callable[[Array], Array], low: float, high: float) -> float:
    """The minimum between two points: by values, then by the zero of a central difference."""
    for _ in range(3):  # a grid inside the grid: a narrow minimum near another is not stepped over
        t = np.linspace(low, high, 17)
        i = int(np.clip(np.argmin(f(t)), 1, 15))
        low, high = t[i - 1], t[i + 1]
    found = minimize_scalar(lambda t: float(f(np.array([t]))[0]), bounds=(low, high), method="bounded",
                            options={"xatol": 1e-11*(abs(low) + abs(high))})
    # A parabola through values that differ by much more than their rounding places the minimum better than they do.
    step = max((high - low)*0.1, 1e-6*abs(found.x))
    t = found.x + step*np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    around = f(t)
    if not np.all(np.isfinite(around)):  # one of them is not finite
        return float(found.x)
    a = np.polynomial.polynomial.polyfit((t - found.x)/step, around, 4)
    roots = np.polynomial.Polynomial(a).deriv().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    better = found.x + step*real[np.argmin(np.abs(real))] if real.size else found.x
    close = abs(better - found.x) < 3e-7*max(1.0, abs(found.x))
    return float(better if close else found.x)


def _limit(f: Callable[[Array], Array], end: float, edge: float) -> tuple[float, float]:
    """The limit of f towards an end and its error: polynomials in the distance, or sums of geometric sequences.

    The points halve the distance to a finite end, and double that from 0 to an infinite one, beyond
    `edge` too; whichever of the two extrapolations has settled better is believed.
    """
    beyond = 2.0**np.arange(-5, 3)
    s = 1/beyond  # the distance, in units of that of the edge
    values = f(end + (edge - end)*s if np.isfinite(end) else edge*beyond)
    sound = np.flatnonzero(~np.isfinite(values))
    s, values = (v[:sound[0]] if sound.size else v for v in (s, values))
    fewest = 5  # values that show a limit
    if len(values) < fewest or not np.all(np.diff(values)[-3:] <= 0) or values[-1] == values[-4]:
        return (float(values[-1]), 0.0) if len(values) else (np.inf, np.inf)  # it does not come down towards this end
    rounding = _ROUNDING*float(np.max(np.abs(values)))
    step = abs(float(values[-1] - values[-2]))
    first, second = _shanks(values), _shanks(values[:-1])
    found = [(step, float(values[-1])), (abs(first - second), first), _neville(s, values)]
    error, limit = min((e, v) for e, v in found if np.isfinite(e + v))
    return float(limit), max(float(error), rounding)


def _neville(s: Array, values: Array) -> tuple[float, float]:
    """(error, value) at s = 0 of the polynomials through the last points that agree best with those of one point less."""
    table, ends = values.astype(float), [float(values[-1])]
    for k in range(1, len(s)):
        table = (s[:-k]*table[1:] - s[k:]*table[:-1])/(s[:-k] - s[k:])
        ends.append(float(table[-1]))
    gaps = np.abs(np.diff(ends))
    best = int(np.argmin(np.maximum(gaps[1:], gaps[:-1]))) + 2  # two agreements, for one may be chance
    return float(max(gaps[best - 1], gaps[best - 2])), ends[best]


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
