"""A curve of solutions F(x, p) = 0 followed by its length, through folds:  F_x dx + F_p dp = 0,  |(dx, dp)| = 1.

    predicted   y + s t,   y = (x, p) in units of its own size, t the tangent
    corrected   F(y) = 0,  t . (y - predicted) = 0            a fold is where the p-component of t is 0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .batch import Array
from .limit import over

Equations = Callable[[Array, float], tuple[Array, Array, Array]]  # (x, p) -> F, F_x, F_p

_FIRST, _LONGEST, _SHORTEST = 1e-3, 0.05, 1e-10  # steps, in units of the interval
_MOST, _CORRECTIONS, _TURN = 5000, 12, 0.97
_HALVINGS = 60


class Path(NamedTuple):
    """States (n, B) and parameters (B,) along a curve, its folds [(x, p)], and why it ends."""

    x: Array
    p: Array
    folds: list[tuple[Array, float]]
    reason: str


def trace(equations: Equations, x0: Array, p0: float, bounds: tuple[float, float], *, tolerance: float = 1e-11) -> Path:
    """Follow the curve through (x0, p0), a solution at one end of the bounds, into the interval until it leaves it.

    Examples
    --------
    >>> fold = lambda x, p: (x**2 - p, np.array([[2*x[0]]]), np.array([-1.0]))      # x^2 = p has a fold at 0
    >>> path = trace(fold, np.array([1.0]), 1.0, (-1.0, 1.0))
    >>> len(path.folds), bool(abs(path.folds[0][1]) < 1e-12), round(float(path.x[0, -1]), 9)
    (1, True, -1.0)
    """
    with np.errstate(all="ignore"):
        return _Trace(equations, bounds, tolerance, x0).run(np.asarray(x0, dtype=float), float(p0))


class _Trace:
    def __init__(self, equations: Equations, bounds: tuple[float, float], tolerance: float, x0: Array) -> None:
        self.equations, self.bounds, self.tolerance = equations, bounds, tolerance
        self.size = np.append(np.maximum(np.abs(x0), 0.1), bounds[1] - bounds[0])

    def run(self, x: Array, p: float) -> Path:
        y = np.append(x, p)/self.size
        inward = 1.0 if p <= sum(self.bounds)/2 else -1.0
        t = self.tangent(y, np.append(np.zeros(len(x)), inward))
        points, folds, step, reason = [y], [], _FIRST, ""
        while True:
            if len(points) >= _MOST or over():
                reason = f"more than {_MOST} points" if not over() else "the budget ran out"
                break
            found = self.corrected(y, t, step)
            if found is None or float(found[1] @ t) < _TURN:
                step /= 2
                if step < _SHORTEST:
                    reason = "the curve cannot be followed further: it ends, or leaves where the equations are defined"
                    break
                continue
            new, turned, count = found
            if turned[-1]*t[-1] < 0:
                at = self.folded(y, t, step)
                folds.append((at[:-1]*self.size[:-1], float(at[-1]*self.size[-1])))
            lo, hi = (b/self.size[-1] for b in self.bounds)
            if not lo <= new[-1] <= hi:
                end = self.ended(y, new, lo if new[-1] < lo else hi)
                points += [end] if end is not None else []
                break
            y, t = new, turned
            points.append(y)
            step = min(step*(1.5 if count <= 4 else 0.7 if count > 7 else 1.0), _LONGEST)
        whole = np.array(points).T*self.size[:, None]
        return Path(whole[:-1], whole[-1], folds, reason)

    def parts(self, y: Array) -> tuple[Array, Array]:
        """F and its derivative along y, (n,) and (n, n + 1)."""
        F, Fx, Fp = self.equations(y[:-1]*self.size[:-1], float(y[-1]*self.size[-1]))
        return F, np.column_stack([Fx, Fp])*self.size

    def tangent(self, y: Array, along: Array) -> Array:
        """The unit vector in the kernel of the derivative, on the side of `along`."""
        J = self.parts(y)[1]
        kernel = np.linalg.svd(J)[2][-1] if np.isfinite(J).all() else np.full(len(y), np.nan)
        return kernel if kernel @ along > 0 else -kernel

    def corrected(self, y: Array, t: Array, step: float) -> tuple[Array, Array, int] | None:
        """The point of the curve at that distance, its tangent, and the corrections it took."""
        goal = y + step*t
        new = goal.copy()
        for count in range(1, _CORRECTIONS + 1):
            F, J = self.parts(new)
            whole = np.vstack([J, t])
            if not (np.isfinite(F).all() and np.isfinite(whole).all()):
                return None
            move = np.linalg.lstsq(whole, -np.append(F, t @ (new - goal)), rcond=None)[0]
            new = new + move
            if np.abs(move).max() <= self.tolerance*max(1.0, float(np.abs(new).max())):
                turned = self.tangent(new, t)
                return (new, turned, count) if np.isfinite(turned).all() else None
        return None

    def folded(self, y: Array, t: Array, step: float) -> Array:
        """The point within the step where the tangent has no component along p."""
        a, b = 0.0, step
        sign, best = np.sign(t[-1]), y
        for _ in range(_HALVINGS):
            middle = (a + b)/2
            found = self.corrected(y, t, middle)
            if found is None or middle in (a, b):
                break
            best = found[0]
            a, b = (middle, b) if found[1][-1]*sign > 0 else (a, middle)
        return best

    def ended(self, y: Array, new: Array, at: float) -> Array | None:
        """The point of the curve where it leaves the interval."""
        x = y + (at - y[-1])/(new[-1] - y[-1])*(new - y)
        for _ in range(_CORRECTIONS):
            F, J = self.parts(np.append(x[:-1], at))
            if not (np.isfinite(F).all() and np.isfinite(J).all()):
                return None
            move = np.linalg.lstsq(J[:, :-1], -F, rcond=None)[0]
            x = np.append(x[:-1] + move, at)
            if np.abs(move).max() <= self.tolerance*max(1.0, float(np.abs(x).max())):
                return np.asarray(x)
        return None


def stability(slopes: Any) -> Array:
    """The spectral radius of the map's derivative at each point, (n, n, B) -> (B,)."""
    good = np.isfinite(slopes).all(axis=(0, 1))
    radius = np.abs(np.linalg.eigvals(np.moveaxis(np.where(good, slopes, 0.0), -1, 0))).max(axis=1)
    return np.where(good, radius, np.nan)
