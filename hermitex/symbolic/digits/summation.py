"""int f = h sum_j f(jh) + O(exp(-2 pi d/h)): the trapezoid rule, on the line and after a double-exponential change.

Both rules are nested, so each halving of the step gives its own error estimate: the change it made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint

Function = Callable[[Any], Any]


class Sum(NamedTuple):
    """Value, error estimate, and the integral of |f|, against which rounding is measured."""

    value: Any
    error: Any
    scale: Any

    def __add__(self, other: Any) -> Sum:
        return Sum(self.value + other.value, self.error + other.error, self.scale + other.scale)


def trapezoid(f: Function, L: Any, tolerance: Callable[[Any], Any], *, levels: int = 11) -> Sum | None:
    """int_{-L}^{L} f for f analytic about the line and negligible at +-L; None where halving does not settle it.

    `tolerance` maps the scale int |f| to the error allowed.

    Examples
    --------
    >>> from hermitex.symbolic.arithmetic import exp, mpf, pi, sqrt, almosteq
    >>> found = trapezoid(lambda x: exp(-x*x), mpf(7), lambda scale: scale*mpf(2)**-44)
    >>> almosteq(found.value, sqrt(pi), rel_eps=mpf(2)**-44)
    True
    """
    h = mpf(1) / 2
    total, size = f(mpf(0)), abs(f(mpf(0)))
    reach = int(L / h)
    for j in range(1, reach + 1):
        for x in (j * h, -j * h):
            y = f(x)
            total, size = total + y, size + abs(y)
    previous, settled = total * h, 0
    for _ in range(levels):
        checkpoint("summing a Gaussian integral")
        for j in range(int(L / h - mpf(1) / 2) + 1):
            for x in ((j + mpf(1) / 2) * h, -(j + mpf(1) / 2) * h):
                y = f(x)
                total, size = total + y, size + abs(y)
        h /= 2
        value = total * h
        change, previous = abs(value - previous), value
        settled = settled + 1 if change <= tolerance(size * h) else 0
        # Twice in a row: what one grid and its refinement both miss, a third does not.
        if settled == 2 or (settled and change <= tolerance(size * h) ** 2):
            return Sum(value, change + size * h * mp.eps * 8, size * h)
    return None


def plane(f: Callable[[Any, Any], Any], L: Any, tolerance: Callable[[Any], Any], *, most: int = 120_000) -> Sum | None:
    """int over the disc of radius L of f(x, y) by the trapezoid rule in both, f analytic and negligible at the rim.

    None where `most` values of f do not settle it.

    Examples
    --------
    >>> from hermitex.symbolic.arithmetic import exp, mpf, pi, almosteq
    >>> found = plane(lambda x, y: exp(-x*x - y*y + x*y), mpf(9), lambda scale: scale*mpf(2)**-40)
    >>> almosteq(found.value, 2*pi/3**mpf("0.5"), rel_eps=mpf(2)**-40)
    True
    """
    h, total, size, previous, settled, used = mpf(1) / 2, mpf(0), mpf(0), None, 0, 0
    while True:
        reach = int(L / h)
        for i in range(-reach, reach + 1):
            checkpoint("summing a Gaussian integral")
            x = i * h
            across = int(mp.sqrt(max(L * L - x * x, 0)) / h)
            for j in range(-across, across + 1):
                if previous is not None and not (i % 2 or j % 2):
                    continue  # a point of the grid before
                value = f(x, j * h)
                total, size, used = total + value, size + abs(value), used + 1
        value = total * h * h
        if previous is not None:
            change, allowed = abs(value - previous), tolerance(size * h * h)
            settled = settled + 1 if change <= allowed else 0
            if settled == 2 or (settled and change <= allowed * mpf(2) ** -10):
                return Sum(value, change + size * h * h * mp.eps * 8, size * h * h)
        if 4 * used > most:
            return None
        previous, h = value, h / 2


@lru_cache(maxsize=64)
def _nodes(precision: int, level: int, reach: int) -> tuple[tuple[Any, Any], ...]:
    """(delta, weight) of the new nodes of a level, x = 1 - delta; down to delta = 2^-reach."""
    with mp.workprec(precision):
        h, found = mpf(2) ** -level, []
        j = 1
        while True:
            t = j * h
            u = mp.pi / 2 * mp.sinh(t)
            e = mp.exp(-2 * u)
            delta = 2 * e / (1 + e)
            found.append((delta, mp.pi / 2 * mp.cosh(t) * 4 * e / (1 + e) ** 2))
            if delta < mpf(2) ** -reach:
                return tuple(found)
            j += 1 if level == 0 else 2


def double_exponential(left: Function, right: Function, length: Any, tolerance: Callable[[Any], Any],
                       *, reach: int, levels: int = 8) -> Sum | None:
    """int over an interval of that length; left(s), right(s) give f at distance s from either end.

    tanh-sinh: end points may be singular, since f is asked for the distance and never for a difference.

    Examples
    --------
    >>> from hermitex.symbolic.arithmetic import mpf, sqrt, almosteq
    >>> rough, smooth = lambda s: 1/sqrt(s), lambda s: 1/sqrt(1 - s)
    >>> found = double_exponential(rough, smooth, mpf(1), lambda scale: scale*mpf(2)**-45, reach=200)
    >>> almosteq(found.value, 2, rel_eps=mpf(2)**-40)
    True
    """
    half = length / 2
    centre = left(half) * mp.pi / 2
    total, size, previous, settled = centre, abs(centre), None, 0
    small = mp.eps / 16
    for level in range(levels):
        checkpoint("summing a Gaussian integral")
        for side in (left, right):
            idle = 0
            for delta, weight in _nodes(mp.prec, level, reach):
                term = weight * side(half * delta)
                total, size = total + term, size + abs(term)
                idle = idle + 1 if abs(term) <= small * size else 0
                if idle == 4 + 2**level and delta < 0.01:
                    break
        h = mpf(2) ** -level
        value = total * h * half
        if previous is not None and level >= 3:
            change, allowed = abs(value - previous), tolerance(size * h * half)
            settled = settled + 1 if change <= allowed else 0
            if settled == 2 or (settled and change <= allowed * mpf(2) ** -20):
                return Sum(value, change + size * h * half * mp.eps * 8, size * h * half)
        previous = value
    return None
