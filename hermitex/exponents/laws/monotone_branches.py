"""y = F(x) branch by branch: the intervals on which an expression is smooth and monotone, with its inverse on arrays.

The turning points are sign changes of F' on a grid that is refined until their number stays, and places where F' touches zero.
A turning point too many does no harm: the branch is cut there, and the label counts as one at which densities are singular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import And, Expr, Heaviside, Or, Rational, Symbol, diff

from hermitex.kernels.arrays import lambdify
from hermitex.kernels.panel_rules import distinct_sorted, zeros_on
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.pieces import breakpoints

_PLAIN = {"Abs", "Heaviside", "Max", "Min", "Piecewise", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh",
          "exp", "log", "sign", "sin", "sinh", "tan", "tanh"}


@dataclass(frozen=True)
class Monotone:
    """One monotone smooth branch of F on [lo, hi] and its inverse on arrays."""

    lo: float
    hi: float
    f: Callable
    slope: Callable
    at_lo: float
    at_hi: float
    table: tuple[np.ndarray, np.ndarray]
    closed: tuple[float, float, float] | None = None  # F = c x^p + d on the branch

    def reach(self) -> tuple[float, float]:
        """The labels at its ends; next to a pole, where a mass of 1e-16 is left."""
        tiny = 1e-16 * max(1.0, self.hi - self.lo)
        near = self.f(np.array([self.lo + tiny, self.hi - tiny]))
        return tuple(float(v) if np.isfinite(v) else float(n)  # type: ignore[return-value]
                     for v, n in zip((self.at_lo, self.at_hi), near, strict=True))

    def orders(self) -> list[int]:
        """m >= 3 where an end is a critical point with F - F(end) ~ (x - end)^m: the density is |y - y_end|^(1/m - 1)."""
        found = []
        for end, inward, label in ((self.lo, 1.0, self.at_lo), (self.hi, -1.0, self.at_hi)):
            steps = end + inward * (self.hi - self.lo) * np.array([1e-4, 1e-5])
            with np.errstate(all="ignore"):
                near, nearer = np.abs(self.slope(steps))
                m = 1 + np.log10(near / nearer) if near > 0 and nearer > 0 else 0.0
            if np.isfinite(label) and 3 <= round(m) <= 12 and abs(m - round(m)) < 0.02:
                found.append(round(m))
        return found

    def preimage(self, y: np.ndarray) -> np.ndarray:
        """The points of the branch with these labels, shape (labels,) (labels outside its range give rubbish, to be masked)."""
        if self.closed is not None:
            c, p, d = self.closed
            side = 1.0 if self.hi > 0 else -1.0
            return np.clip(side * np.abs((y - d) / c) ** (1 / p), self.lo, self.hi)
        labels, points = self.table
        x = np.interp(y, labels, points)
        for _ in range(60):
            with np.errstate(all="ignore"):
                step = (self.f(x) - y) / self.slope(x)
            new = np.where(np.isfinite(step), x - step, x)
            # Half way to an end that is overshot: where labels run off to infinity there is no way back from it.
            new = np.where(new < self.lo, (x + self.lo) / 2, np.where(new > self.hi, (x + self.hi) / 2, new))
            moved = np.abs(new - x)
            x = new
            if not (moved > 1e-15 * np.maximum(np.abs(x), 1e-3 * (self.hi - self.lo))).any():
                break
        return x


def monotone_branches(expr: Expr, x: Symbol, lo: float, hi: float) -> list[Monotone]:
    """The monotone branches of a smooth expression on (lo, hi)."""
    closed, slope = _power(expr, x), diff(expr, x)
    f, rise = array_function(expr, x), array_function(slope, x)
    if closed is not None:
        turns = np.array([lo, *([0.0] if lo < 0 < hi else []), hi])
    else:
        inner = [float(p) for p in breakpoints(expr, x, (exact_point(lo), exact_point(hi)))]
        bend = array_function(diff(slope, x), x)
        ends = distinct_sorted(np.array([lo, *[p for p in inner if lo < p < hi], hi]))
        found = [p for a, b in pairwise(ends) for p in turning_points(rise, bend, a, b)]
        turns = _true_turns(slope, x, ends, found)
    return [_branch(f, rise, a, b, closed) for a, b in pairwise(turns)]


def turning_points(slope: Callable, bend: Callable, lo: float, hi: float) -> list[float]:
    """The zeros of F' inside (lo, hi), with the places where F' only touches zero.

    Examples
    --------
    >>> [round(p, 12) for p in turning_points(lambda x: x**2*(x - 1), lambda x: 3*x**2 - 2*x, -3.0, 3.0)]
    [0.0, 1.0]
    """
    least_cells = 512  # to begin with: doubled, up to 32 times as many, until the number of turning points stays
    touching = 1e-6  # of the slope one cell away: a zero of F' that is double has rounding there
    cells, count, found = least_cells, -1, list[float]()
    while len(found) != count and cells <= 32*least_cells:
        checkpoint("looking for turning points")
        count, width = len(found), (hi - lo)/cells
        grid = lo + width*(np.arange(cells) + 1/3)
        flat = [p for p in zeros_on([bend], grid)
                if abs(slope(np.array([p]))[0]) <= touching*np.max(np.abs(slope(np.array([p - width, p + width]))))]
        found = sorted([*zeros_on([slope], grid), *flat])
        cells = 2*cells
    return found


def _true_turns(slope: Expr, x: Symbol, knots: np.ndarray, found: list[float]) -> np.ndarray:
    """The ends of branches: knots and turning points to rounding, without those at which the slope is zero by rounding only.

    So is 1 - tanh(z)^2 far out. A polynomial of degree 20 has its turning points to six digits in doubles.
    """
    exact, bend = (lambdify(x, e, modules=[mp.functions(), "mpmath"]) for e in (slope, diff(slope, x)))

    def at(p: Any, f: Callable = exact) -> Any:
        try:
            return mp.mpf(f(mpf(p)))
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return mp.nan

    def moved(p: float) -> float:
        """Two steps of Newton's method, where they are short."""
        q, close = mpf(p), 1e-3
        for _ in range(2):
            steep = at(q, bend)
            step = at(q) / steep if steep else mp.nan
            q = q - step if abs(step) < close * (knots[-1] - knots[0]) else q
        return float(q)

    digits = 120  # at |z| = 8.9 the slope 1 - tanh(z)^2 cancels eight digits, that of a composition many times as many
    flat = 1e-3  # of the slope on either side: a zero of it to 120 digits is far below
    with mp.workdps(digits):
        ends = distinct_sorted(np.array([*knots, *[q for q in map(moved, found) if knots[0] < q < knots[-1]]]))
        kept = [ends[0]]
        for p, after in pairwise(ends[1:]):
            before, here, beyond = at((kept[-1] + p) / 2), at(p), at((p + after) / 2)
            if not (before * beyond > 0 and abs(here) > flat * min(abs(before), abs(beyond))):
                kept.append(p)
    return np.array([*kept, ends[-1]])


def _branch(f: Callable, slope: Callable, lo: float, hi: float, closed: Any) -> Monotone:
    size = 3000  # of the table that brackets an inverse, which Newton's method refines: 1/3000 of a branch, closer at its ends
    t = (1 - np.cos(np.pi * np.arange(1, size) / size)) / 2
    points = lo + (hi - lo) * t
    labels = f(points)
    at = []
    tiny = 1e-13 * (hi - lo)  # beside an end, a millionth of the distance of the first place of the table
    steady = 1e-3  # relative change of the label on that way: next to a pole a logarithm changes by 14
    for end, near in ((lo, labels[0]), (hi, labels[-1])):
        value, limit = (float(v) for v in f(np.array([end, end + np.sign((lo + hi) / 2 - end) * tiny])))
        if not np.isfinite(value) and abs(limit - near) < steady * max(1.0, abs(near)):
            value = limit  # x^2 log(x) at 0
        at.append(value if np.isfinite(value) else float(np.sign(near) * np.inf))
    points = np.concatenate([[lo], points, [hi]])
    labels = np.concatenate([[at[0]], labels, [at[1]]])
    good = np.isfinite(labels)
    labels, points = labels[good], points[good]
    table = (labels, points) if labels[-1] >= labels[0] else (labels[::-1], points[::-1])
    return Monotone(lo, hi, f, slope, at[0], at[1], table, closed)


def _power(expr: Expr, x: Symbol) -> tuple[float, float, float] | None:
    """(c, p, d) if the expression is c x^p + d, so that its inverse is a formula."""
    shift, rest = expr.as_independent(x, as_Add=True)
    factor, power = rest.as_independent(x, as_Add=False)
    base, p = power.as_base_exp()
    if base != x or not p.is_Rational or not factor.is_number or not shift.is_number:
        return None
    return float(factor), float(p), float(shift)


# -- expressions as functions of arrays --------------------------------------------------------------------------------
def exact_point(value: float) -> Expr:
    """A float as the rational it is, for the exact cutting of expressions."""
    return Rational(value).limit_denominator(10**12) if abs(value) < 1e4 else Rational(value)


def array_function(expr: Expr, *names: Symbol) -> Callable:
    """An expression as a function of arrays, one for each name, that broadcast; what is not real is nan."""
    compiled = without_guard(expr, *names)

    def value(*points: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return compiled(*points)

    return value


def without_guard(expr: Expr, *names: Symbol) -> Callable:
    """The same without silencing warnings: for loops of many short calls."""
    compiled = lambdify(names, expr, modules=modules_for(expr))
    joined = expr.has(And, Or, Heaviside)  # printed as logical_and.reduce, which does not broadcast

    def value(*points: Any) -> np.ndarray:
        found = compiled(*np.broadcast_arrays(*points) if joined else points)
        if len(points) == 1 and isinstance(found, np.ndarray) and found is not points[0] and found.dtype == float:
            return found
        found = np.asarray(found, dtype=float)
        return np.broadcast_to(found, np.broadcast_shapes(*map(np.shape, points))).copy()

    return value


def modules_for(expr: Expr) -> list[str]:
    """What `lambdify` needs: importing scipy.special takes longer than most integrals here."""
    from sympy.core.function import AppliedUndef, Function

    names = {type(node).__name__ for node in expr.atoms(Function) if not isinstance(node, AppliedUndef)}
    return ["numpy"] if names <= _PLAIN else ["numpy", "scipy"]
