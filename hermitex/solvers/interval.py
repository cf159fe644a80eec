"""Open intervals, (lo, hi) with ends that may be infinite, in which an unknown is sought."""

from __future__ import annotations

from typing import Any

import numpy as np

Interval = tuple[float, float]


def clip_to_interval(x: Any, domain: Interval) -> Any:
    """x, or the number nearest to it inside."""
    lo, hi = domain
    return np.clip(x, np.nextafter(lo, hi) if np.isfinite(lo) else lo, np.nextafter(hi, lo) if np.isfinite(hi) else hi)


def interior_point(domain: Interval) -> float:
    """A number inside to begin with: the middle, or 1 from the only end."""
    lo, hi = domain
    return (lo + hi)/2 if np.isfinite(lo) and np.isfinite(hi) else lo + 1 if np.isfinite(lo) else hi - 1


def is_outside(x: Any, domain: Interval) -> Any:
    """Whether x is not strictly inside."""
    return ~((np.asarray(x) > domain[0]) & (np.asarray(x) < domain[1]))


def interval_text(name: str, domain: Interval) -> str:
    """The interval in words.

    >>> interval_text("q", (0.0, 1.0)), interval_text("V", (0.0, np.inf))
    ('0 < q < 1', 'V > 0')
    """
    lo, hi = domain
    if np.isfinite(lo) and np.isfinite(hi):
        return f"{lo:g} < {name} < {hi:g}"
    return f"{name} > {lo:g}" if np.isfinite(lo) else f"{name} < {hi:g}"
