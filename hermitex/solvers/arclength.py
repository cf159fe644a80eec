"""A curve of solutions F(x, p) = 0 followed by its length, through folds:  F_x dx + F_p dp = 0,  |(dx, dp)| = 1.

    predicted   y + s t,   y = (x, p) in units of its own size, t the tangent
    corrected   F(y) = 0,  t . (y - predicted) = 0            a fold is where the p-component of t is 0

A step is halved where its chord leaves the tangents, and where the cubic through its ends turns back within it: of two folds
close together the ends know nothing. Units grow with the unknowns, so that one without a bound is followed in steps of its
size; what the equations rest on is examined every few points, before the curve goes on from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .batch import Array
from .solve_limits import is_time_up

Equations = Callable[[Array, float], tuple[Array, Array, Array]]  # (x, p) -> F, F_x, F_p
Examine = Callable[[Array, Array], "str | None"]  # states (n, B), parameters (B,) -> see `trace_curve`


class TracedCurve(NamedTuple):
    """States (n, B) and parameters (B,) along a curve, its folds [(x, p)], and why it ends."""

    x: Array
    p: Array
    folds: list[tuple[Array, float]]
    reason: str


def trace_curve(equations: Equations, x0: Array, p0: float, bounds: tuple[float, float], *, tolerance: float = 1e-11,
          examine: Examine | None = None) -> TracedCurve:
    """Follow the curve through (x0, p0), a solution at one end of the bounds, into the interval until it leaves it.

    `examine(states, parameters)` examines a few points: it returns None if the equations hold there to the tolerance, "" if the
    quadrature was refined and the points must be solved again, else the reason why the curve ends before these points.

    Examples
    --------
    >>> fold = lambda x, p: (x**2 - p, np.array([[2*x[0]]]), np.array([-1.0]))      # x^2 = p has a fold at 0
    >>> path = trace_curve(fold, np.array([1.0]), 1.0, (-1.0, 1.0))
    >>> len(path.folds), bool(abs(path.folds[0][1]) < 1e-12), round(float(path.x[0, -1]), 9)
    (1, True, -1.0)
    """
    with np.errstate(all="ignore"):
        return _Trace(equations, bounds, tolerance, x0, examine).run(np.append(np.asarray(x0, dtype=float), float(p0)))


class _Trace:
    """The curve so far: `points` and `folds` in the units of the equations; y and t below are in units of `size`."""

    def __init__(self, equations: Equations, bounds: tuple[float, float], tolerance: float, x0: Array, examine: Examine | None
                 ) -> None:
        self.equations, self.bounds, self.tolerance, self.examine = equations, bounds, tolerance, examine
        self.size = np.append(np.maximum(np.abs(x0), 0.1), bounds[1] - bounds[0])
        self.first = self.size
        self.points: list[Array] = []
        self.folds: list[Array] = []
        first = 1e-3  # step, in units of the interval: short, as nothing is known of the curve yet
        self.step = first

    def run(self, at: Array) -> TracedCurve:
        inward = 1.0 if at[-1] <= sum(self.bounds)/2 else -1.0
        self.points = [at]
        t = self.tangent(at/self.size, np.append(np.zeros(len(at) - 1), inward))
        kept, reason, ended = (1, 0, t, self.size, self.step), "", False
        block_size = 8  # points between two examinations
        while not ended or len(self.points) > kept[0]:
            if not ended:
                t, reason, ended = self.advanced(t)
            if ended or len(self.points) - kept[0] >= block_size:
                block = np.array(self.points[kept[0]:] or self.points[-1:]).T
                said = self.examine(block[:-1], block[-1]) if self.examine is not None else None
                if said is not None:  # back to where the equations held
                    del self.points[kept[0]:], self.folds[kept[1]:]
                    _, _, t, self.size, self.step = kept
                    reason, ended = said, bool(said)
                kept = (len(self.points), len(self.folds), t, self.size, self.step)
        whole = np.array(self.points).T
        return TracedCurve(whole[:-1], whole[-1], [(f[:-1], float(f[-1])) for f in self.folds], reason)

    def advanced(self, t: Array) -> tuple[Array, str, bool]:
        """The next point is added to the curve: its tangent; where there is none, why, and that the curve ends."""
        y = self.points[-1]/self.size
        shortest = 1e-10  # step: below it the corrections of two points are rounding
        most = 5000  # points, each some corrections: a curve that has more goes round and round, or has no end
        while True:
            if is_time_up():
                return t, "the budget ran out", True
            if len(self.points) >= most:
                return t, f"more than {most} points", True
            found = self.corrected(y, t, self.step)
            if found is not None and not self.bends(y, t, *found[:2]):
                passed = self.passed(y, t, *found[:2])
                if passed is not None:
                    break
            self.step /= 2
            if self.step < shortest:
                return t, "the curve cannot be followed further: it ends, or leaves where the equations are defined", True
        new, turned, count = found
        folds, end = passed
        self.folds += folds
        if end is not None:
            self.points.append(end)
            return t, "", True
        self.points.append(new*self.size)
        longest = 0.1  # step: ten points on the interval at least
        self.step = min(self.step*(1.5 if count <= 4 else 0.7 if count > 7 else 1.0), longest)
        grown = np.maximum(self.size, np.append(np.abs(self.points[-1][:-1]), 0.0))
        outgrown = 2.0  # what an unknown outgrows its unit by, before it gets a larger one
        if (grown > outgrown*self.size).any():
            turned = turned*self.size/grown
            turned, self.size = turned/np.linalg.norm(turned), grown
        largest = 1e8  # what an unknown outgrows that of the start by, before it is called unbounded
        if (self.size > largest*self.first).any():
            return turned, f"an unknown grows beyond {largest:g} times its first size", True
        return turned, "", False

    def parts(self, y: Array) -> tuple[Array, Array]:
        """F and its derivative along y, (n,) and (n, n + 1)."""
        F, Fx, Fp = self.equations(y[:-1]*self.size[:-1], float(y[-1]*self.size[-1]))
        return F, np.column_stack([Fx, Fp])*self.size

    def tangent(self, y: Array, along: Array) -> Array:
        """The unit vector in the kernel of the derivative, on the side of `along`."""
        return self.kernel(self.parts(y)[1], along)

    def kernel(self, J: Array, along: Array) -> Array:
        """The unit vector that J takes to 0, on the side of `along`."""
        kernel = np.linalg.svd(J)[2][-1] if np.isfinite(J).all() else np.full(len(along), np.nan)
        return kernel if kernel @ along > 0 else -kernel

    def corrected(self, y: Array, t: Array, step: float) -> tuple[Array, Array, int] | None:
        """The point of the curve at that distance, its tangent, and the corrections it took."""
        goal = y + step*t
        new = goal.copy()
        corrections = 12  # of Newton's method, which has converged by then or diverges
        for count in range(1, corrections + 1):
            F, J = self.parts(new)
            whole = np.vstack([J, t])
            if not (np.isfinite(F).all() and np.isfinite(whole).all()):
                return None
            move = np.linalg.lstsq(whole, -np.append(F, t @ (new - goal)), rcond=None)[0]
            new = new + move
            if np.abs(move).max() <= self.tolerance*max(1.0, float(np.abs(new).max())):
                turned = self.kernel(J, t)  # at the last point but one, which is this one to the tolerance
                return (new, turned, count) if np.isfinite(turned).all() else None
        return None

    def bends(self, y: Array, t: Array, new: Array, turned: Array) -> bool:
        """Whether tangents and chord part, or p may turn twice within the step: its cubic, dp/ds = a + b u + c u^2, nearly does."""
        chord = (new - y)/np.linalg.norm(new - y)
        turn = 0.97  # cosine of the angle between tangents and chord: 14 degrees
        if not min(turned @ t, chord @ t, chord @ turned) >= turn:
            return True
        a, end = t[-1], turned[-1]/(turned @ t)
        fine = 1e-4  # steps that are not halved for it
        if self.step <= fine or a*end < 0:
            return False
        b, c = 6*(new - y)[-1]/self.step - 4*a - 2*end, 3*(a + end) - 6*(new - y)[-1]/self.step
        slopes = np.array([a, end, *([a - b*b/(4*c)] if 0 < -b*c < 2*c*c else [])])
        flat = 0.1  # the least dp/ds within a step as part of the largest at its ends
        return bool((slopes*np.sign(a + end)).min() < flat*max(abs(a), abs(end)))

    def passed(self, y: Array, t: Array, new: Array, turned: Array) -> tuple[list[Array], Array | None] | None:
        """The fold within the step, if any, and where the curve leaves the interval, if it does; None where one is not found."""
        folds, length, (lo, hi) = [], self.step, self.bounds
        if turned[-1]*t[-1] < 0:
            fold = self.located(y, t, length, lambda _, along: float(along[-1]))
            if fold is None:
                return None
            if lo <= fold[1][-1]*self.size[-1] <= hi:
                folds = [fold[1]*self.size]
            else:  # it has left by then
                length, new = fold
        p = float(new[-1]*self.size[-1])
        if lo <= p <= hi:
            return folds, None
        edge = lo if p < lo else hi
        last = self.located(y, t, length, lambda at, _: float(at[-1]*self.size[-1]) - edge)
        return None if last is None else (folds, np.append(last[1][:-1]*self.size[:-1], edge))

    def located(self, y: Array, t: Array, step: float, value: Callable[[Array, Array], float]) -> tuple[float, Array] | None:
        """The length within the step, and the point there, at which value(point, tangent) is 0; None where the curve is lost."""
        from scipy.optimize import brentq

        def at(length: float) -> tuple[Array, Array]:
            found = self.corrected(y, t, length) if length else (y, t)
            if found is None:
                raise FloatingPointError
            return found[0], found[1]

        try:
            length = float(brentq(lambda s: value(*at(s)), 0.0, step, xtol=1e-15, rtol=1e-14))
            return length, at(length)[0]
        except (FloatingPointError, ValueError):  # ValueError: it begins at the edge, to rounding beyond it
            return None
