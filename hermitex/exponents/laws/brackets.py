"""x with f(x) = y between two ends where f is monotone: Newton's method held in its bracket, for many at once.

Sign changes on a grid, those that stand close together too, and the places at which what a function tells changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_STEPS = 80
_STILL = 4e-16
_SMALL = 1e-10
_THIRDS = 45


def bracketed(f: Callable, slope: Callable, y: np.ndarray, ends: tuple[np.ndarray, np.ndarray],
              start: np.ndarray | None = None, close: float = 0.0) -> np.ndarray:
    """The solutions, shape (n,).

    Parameters
    ----------
    f, slope : of (x, n): x and the places of these x among the n problems
    y, ends : shape (n,); the labels, and the ends of the brackets, between whose labels y lies
    start : where to begin: the middle if it is not given, or not inside
    close : a step of Newton's method that is short enough, in parts of the distance from the nearer end
    """
    with np.errstate(all="ignore"):
        return _solved(f, slope, y, ends, start, close)


def _solved(f: Callable, slope: Callable, y: np.ndarray, ends: tuple[np.ndarray, np.ndarray],
            start: np.ndarray | None, close: float) -> np.ndarray:
    n = np.arange(len(y))
    low, high, label = ends[0].copy(), ends[1].copy(), y
    rising = f(high, n) > f(low, n)
    middle = (low + high) / 2
    x = middle if start is None else np.where((start - low) * (start - high) < 0, start, middle)
    found, before = x.copy(), np.full(len(y), np.inf)
    one, two = ends
    for _ in range(_STEPS):
        if not len(n):
            break
        value = f(x, n) - label
        below = (value < 0) == rising
        low, high = np.where(below, x, low), np.where(below, high, x)
        new = x - value / slope(x, n)
        moved = np.abs(new - x)
        inside = ((new - low) * (new - high) < 0) & (moved < 0.9 * before)
        # A small step that no longer shrinks as it should is rounding.
        done = (value == 0) | (moved <= _STILL * np.abs(x)) | (np.abs(high - low) < 1e-15)
        done |= inside & (moved <= close * np.minimum(np.abs(new - one), np.abs(new - two)))
        done |= (moved < _SMALL * np.abs(x)) & (moved > before / 4)
        new = np.where(inside, new, (low + high) / 2)
        if done.any():
            found[n[done]] = np.where(inside, new, x)[done]
            keep = ~done
            n, x, new, low, high, label, rising, moved, inside, one, two = (
                v[keep] for v in (n, x, new, low, high, label, rising, moved, inside, one, two))
        before = np.where(inside, moved, np.inf)
        x = new
    found[n] = x
    return found


def crossed(f: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals in which f changes its sign, once; two of them that share a cell of the grid are looked for at the dips of |f|."""
    size, sign = np.abs(value), np.sign(value)
    alike = (sign[:-2] == sign[1:-1]) & (sign[1:-1] == sign[2:])
    dips = 1 + np.flatnonzero((size[1:-1] < size[:-2]) & (size[1:-1] < size[2:]) & alike)
    if len(dips):
        more = lowest(f, grid[dips - 1], grid[dips + 1], sign[dips])
        there = f(more)
        new = (np.sign(there) != sign[dips]) & (there != 0)
        order = np.argsort(grid := np.concatenate([grid, more[new]]), kind="stable")
        grid, value = grid[order], np.concatenate([value, there[new]])[order]
    spots = np.flatnonzero(np.sign(value[:-1]) * np.sign(value[1:]) < 0)
    return grid[spots], grid[spots + 1]


def lowest(f: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """The minimum of sign f between two points, by thirds; as soon as it is negative that is enough."""
    for _ in range(_THIRDS):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        at_one, at_two = sign * f(one), sign * f(two)
        left = at_one < at_two
        low, high = np.where(left, low, one), np.where(left, two, high)
        if (np.minimum(at_one, at_two) < 0).all():
            return np.where(left, one, two)
    return (low + high) / 2


def changes(tells: Callable[[float], tuple], grid: np.ndarray, bisections: int) -> list[float]:
    """Where what a function tells of one number changes, one place between two points of a grid."""
    told = [tells(m) for m in grid]
    found = []
    for a, b, at_a, at_b in zip(grid[:-1], grid[1:], told[:-1], told[1:], strict=True):
        if at_a == at_b:
            continue
        for _ in range(bisections):
            m = (a + b) / 2
            if tells(m) == at_a:
                a = m
            else:
                b = m
            if b - a < 1e-14:
                break
        found.append((a + b) / 2)
    return found
