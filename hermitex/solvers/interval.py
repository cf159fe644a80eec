"""An open interval as the whole line: x = lo + (hi - lo)/(1 + exp(-y)),  x = lo + exp(y),  x = hi - exp(-y).

What is sought in (lo, hi) is sought in y, where no step leaves it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Interval = tuple[float, float]


def to_line(x: Any, domain: Interval) -> Any:
    """The coordinate y of x; NaN where x is not inside.

    >>> float(to_line(0.5, (0.0, 1.0))), float(to_line(2.0, (1.0, np.inf)))
    (0.0, 0.0)
    """
    lo, hi = domain
    x = np.asarray(x, dtype=float)
    inside = np.where((x > lo) & (x < hi), x, np.nan)
    if np.isfinite(lo) and np.isfinite(hi):
        return np.log((inside - lo)/(hi - inside))
    return np.log(inside - lo) if np.isfinite(lo) else -np.log(hi - inside)


def from_line(y: Any, domain: Interval) -> Any:
    """x of its coordinate y; strictly inside wherever floating-point numbers allow it.

    >>> float(from_line(0.0, (-1.0, 1.0)))
    0.0
    """
    lo, hi = domain
    y = np.asarray(y, dtype=float)
    with np.errstate(over="ignore"):
        e = np.exp(-np.abs(y))
        if np.isfinite(lo) and np.isfinite(hi):
            part = (hi - lo)*e/(1 + e)
            return clipped(np.where(y < 0, lo + part, hi - part), domain)
        return clipped(lo + np.exp(y) if np.isfinite(lo) else hi - np.exp(-y), domain)


def line_slope(x: Any, domain: Interval) -> Any:
    """dx/dy at x."""
    lo, hi = domain
    if np.isfinite(lo) and np.isfinite(hi):
        return (x - lo)*(hi - x)/(hi - lo)
    return x - lo if np.isfinite(lo) else hi - x


def clipped(x: Any, domain: Interval) -> Any:
    """x, or the number nearest to it inside."""
    lo, hi = domain
    return np.clip(x, np.nextafter(lo, hi) if np.isfinite(lo) else lo, np.nextafter(hi, lo) if np.isfinite(hi) else hi)


def middle(domain: Interval) -> float:
    """A number inside to begin with: the middle, or 1 from the only end."""
    lo, hi = domain
    return (lo + hi)/2 if np.isfinite(lo) and np.isfinite(hi) else lo + 1 if np.isfinite(lo) else hi - 1


def outside(x: Any, domain: Interval) -> Any:
    """Whether x is not strictly inside."""
    return ~((np.asarray(x) > domain[0]) & (np.asarray(x) < domain[1]))


def said(name: str, domain: Interval) -> str:
    """The interval in words.

    >>> said("q", (0.0, 1.0)), said("V", (0.0, np.inf))
    ('0 < q < 1', 'V > 0')
    """
    lo, hi = domain
    if np.isfinite(lo) and np.isfinite(hi):
        return f"{lo:g} < {name} < {hi:g}"
    return f"{name} > {lo:g}" if np.isfinite(lo) else f"{name} < {hi:g}"
