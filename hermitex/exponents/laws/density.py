"""nu_a(dy) = E[He_a(z) 1{w(z) in dy}], |a| <= 2: the law of a scalar label, with the weights that 1/alpha_c needs.

A `Law` holds the densities of nu_a in double precision, the labels at which they are not analytic (critical values,
kinks, ends) and the atoms. A multi-index a that is missing is exactly zero, by symmetry or by an exact value: a zero is
never read off a number. `push_through_formula` carries a law through a function of one variable, branch by branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Add, And, Expr, Float, Heaviside, Mul, Or, Pow, Symbol, asinh, atan, diff, erf, exp, log, sinh, tanh

from hermitex.kernels.arrays import lambdify
from hermitex.kernels.panel_rules import distinct_sorted, graded_nodes, zeros_on
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import breakpoints, pieces
from hermitex.symbolic.precise import evaluate

WINDOW = 8.9  # P(|z| > 8.9) < 6e-19: below the rounding of a sum of size one
Index = tuple[int, ...]  # the variables of He_a with multiplicity: () for 1, (i,) for z_i, (i, i) for z_i^2 - 1, (i, j)
_PLAIN = {"Abs", "Heaviside", "Max", "Min", "Piecewise", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh",
          "exp", "log", "sign", "sin", "sinh", "tan", "tanh"}


@dataclass(frozen=True)
class Law:
    """Densities of nu_a on [lo, hi], and atoms.

    Attributes
    ----------
    indices : the multi-indices a that may be non-zero; () first
    density : labels, shape (n,) -> array, shape (len(indices), n); zero outside [lo, hi]
    lo, hi : ends of the support, up to a mass below 1e-17
    knots : labels where a density is not analytic;  hints : labels around which it varies on its smallest scale
    atoms : pairs (label, values over the indices)
    continuous : whether there is a density at all
    power : of the grading that its knots need: 2 (inverse square roots, jumps), 4 (also logarithms), m for x^m
    plain : the density is a cheap formula, so that nothing is won by tabulating it
    """

    indices: tuple[Index, ...]
    density: Callable[[np.ndarray], np.ndarray]
    lo: float
    hi: float
    knots: tuple[float, ...] = ()
    hints: tuple[float, ...] = ()
    atoms: tuple[tuple[float, np.ndarray], ...] = ()
    continuous: bool = True
    power: int = 2
    plain: bool = True

    def breaks(self) -> np.ndarray:
        """The ends and every knot and hint between them, shape (n,)."""
        inside = [p for p in (*self.knots, *self.hints) if self.lo < p < self.hi]
        return distinct_sorted(np.array([self.lo, *inside, self.hi]))


# -- one variable ------------------------------------------------------------------------------------------------------
def normal_law(i: int) -> Law:
    """The law of z_i itself."""

    def density(y: np.ndarray) -> np.ndarray:
        phi = np.where(np.abs(y) <= WINDOW, np.exp(-y * y / 2) / np.sqrt(2 * np.pi), 0.0)
        return np.stack([phi, y * phi, (y * y - 1) * phi])

    return Law(((), (i,), (i, i)), density, -WINDOW, WINDOW, hints=(0.0,))


def noise_law(scale: float) -> Law:
    """A Gaussian of the given standard deviation that carries no direction."""
    base = normal_law(0)
    return Law(((),), lambda y: base.density(y / scale)[:1] / scale, -WINDOW * scale, WINDOW * scale, hints=(0.0,))


def radius_law(variables: Sequence[int]) -> Law:
    """The law of rho = sum z_i^2 over the variables: E[z_i z_j - delta_ij | rho] = delta_ij (rho/k - 1)."""
    from scipy.special import gammaln

    k = len(variables)
    top = (WINDOW + np.sqrt(k)) ** 2

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        inside = (y > 0) & (y <= top)
        s = np.where(inside, y, 1.0)
        chi = np.where(inside, np.exp((k / 2 - 1) * np.log(s) - s / 2 - k / 2 * np.log(2) - gammaln(k / 2)), 0.0)
        return np.stack([chi, *[(s / k - 1) * chi] * k])

    return Law(((), *[(i, i) for i in variables]), density, 0.0, float(top), knots=(0.0,))


# -- through a function ------------------------------------------------------------------------------------------------
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
        moving, last = np.arange(len(x)), np.full(len(x), np.inf)
        rounding, close = 1e-15, 1e-12  # of |x|, or of 1e-3 of the branch: what a step may be, and below which it must fall
        for _ in range(60):
            before = x[moving]
            with np.errstate(all="ignore"):
                step = (self.f(before) - y[moving]) / self.slope(before)
            new = np.where(np.isfinite(step), before - step, before)
            # Half way to an end that is overshot: if labels run off to infinity, a step beyond it would not return.
            new = np.where(new < self.lo, (before + self.lo) / 2, np.where(new > self.hi, (before + self.hi) / 2, new))
            moved = np.abs(new - before) / np.maximum(np.abs(new), 1e-3 * (self.hi - self.lo))
            x[moving] = new
            # Next to a critical point rounding moves a label to and fro: steps that do not fall any more are that.
            on = (moved > rounding) & ((moved > close) | (moved < 0.9 * last))
            moving, last = moving[on], moved[on]
            if not len(moving):
                break
        return x


def push_through_formula(law: Law, expr: Expr, x: Symbol, *, drop: Sequence[Index] = ()) -> Law:
    """The law of F(w), w of the given law; `drop`: indices known to be exactly zero for the new label."""
    if not expr.has(x):
        raise ValueError(f"{expr} does not depend on {x}")
    keep = [n for n, a in enumerate(law.indices) if a not in drop]
    expr = expr.xreplace({node: Float(evaluate(node, 20), 20) for node in expr.atoms(Expectation)})
    cuts = [p for p in law.knots if law.lo < p < law.hi]
    lo, hi = exact_point(law.lo), exact_point(law.hi)
    branches: list[Monotone] = []
    atoms: list[tuple[float, np.ndarray]] = []
    for piece in pieces(expr, x, lo, hi) if law.continuous else ():
        checkpoint("cutting a block into branches")
        ends = [float(piece.lo), float(piece.hi)]
        if not piece.expr.has(x):
            atoms.append((float(evaluate(piece.expr, 20)), mass(law, *ends)[keep]))
            continue
        inner = [c for c in cuts if ends[0] < c < ends[1]]
        branches += [b for a, c in pairwise(distinct_sorted(np.array([ends[0], *inner, ends[1]])))
                     for b in monotone_branches(piece.expr, x, a, c)]
    f = lambdify(x, expr, modules=modules_for(expr)) if law.atoms else None
    atoms += [(float(f(point)), value[keep]) for point, value in law.atoms] if f else []
    return push_through_branches(law, branches, merge_atoms(atoms), keep)


def exact_point(value: float) -> Expr:
    """A float as the rational it is, for the exact cutting of expressions."""
    from sympy import Rational

    return Rational(value).limit_denominator(10**12) if abs(value) < 1e4 else Rational(value)


def push_through_branches(law: Law, branches: list[Monotone], atoms: list[tuple[float, np.ndarray]], keep: list[int]) -> Law:
    """The law of a function of the label, from its monotone branches; `keep`: the rows of nu that stay."""
    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        total = np.zeros((len(keep), *y.shape))
        for b in branches:
            inside = (y > min(b.at_lo, b.at_hi)) & (y < max(b.at_lo, b.at_hi))
            if inside.any():
                x = b.preimage(y[inside])
                steep = np.abs(b.slope(x))
                with np.errstate(all="ignore"):
                    value = law.density(x)[keep] / steep
                total[:, inside] += np.where(np.isfinite(value), value, 0.0)
        return total

    ends = [v for b in branches for v in b.reach()]
    window = {law.lo, law.hi} - set(law.knots)
    singular = [v for b in branches for p, v in ((b.lo, b.at_lo), (b.hi, b.at_hi))
                if np.isfinite(v) and (p not in window or _crowded(b, p))]
    finite = [v for v in ends if np.isfinite(v)] or [0.0]
    lo, hi = (min(finite), max(finite)) if branches else (0.0, 0.0)
    return Law(tuple(law.indices[n] for n in keep), density, lo, hi, tuple(distinct_sorted(np.array(singular))),
               _decades(lo, hi), tuple(atoms), bool(branches),
               common_power(law.power, *[n for b in branches for n in b.orders()]),
               law.plain and all(b.closed for b in branches))


def _crowded(b: Monotone, end: float) -> bool:
    """Do labels crowd at an end of the window, as those of a bounded F do? Their density is singular there."""
    still = 1e-5  # part of the mean slope below which labels crowd at an end; chosen by trial
    return bool(abs(b.slope(np.array([end]))[0]) < still * abs(b.at_hi - b.at_lo))


def common_power(*powers: int) -> int:
    """A power of the grading that makes all these roots analytic, if it is not too large."""
    largest = 12  # lcm(3, 4) = 12: from the end of a panel a higher power puts nodes below rounding
    return min(math.lcm(*powers), largest)


def _decades(lo: float, hi: float) -> tuple[float, ...]:
    """Labels that lead out to a far tail (next to a pole), one for each factor of 30."""
    far = [s * 30.0**k for s in (-1, 1) for k in range(3, 14) if lo < s * 30.0**k < hi]
    return tuple(far) if max(abs(lo), abs(hi)) > 1e6 else ()


def mass(law: Law, lo: float, hi: float) -> np.ndarray:
    """nu_a([lo, hi]) over the indices, shape (indices,): the continuous part."""
    inside = [p for p in law.breaks() if lo < p < hi]
    nodes, weights = graded_nodes(distinct_sorted(np.array([lo, *inside, hi])), 20, 12)
    return law.density(nodes) @ weights


def merge_atoms(atoms: list[tuple[float, np.ndarray]]) -> list[tuple[float, np.ndarray]]:
    """Atoms with equal labels added: (label, masses of shape (indices,))."""
    found: list[tuple[float, np.ndarray]] = []
    for label, value in sorted(atoms, key=lambda a: a[0]):
        if found and abs(found[-1][0] - label) <= 1e-12 * max(1.0, abs(label)):
            found[-1] = (found[-1][0], found[-1][1] + value)
        else:
            found.append((label, value))
    return found


def monotone_branches(expr: Expr, x: Symbol, lo: float, hi: float) -> list[Monotone]:
    """The monotone branches of a smooth expression on (lo, hi)."""
    t = Symbol("t", real=True)
    return list(_branches_of(expr.xreplace({x: t}), t, lo, hi))


@kept(200)
def _branches_of(expr: Expr, x: Symbol, lo: float, hi: float) -> tuple[Monotone, ...]:
    closed, steep = _power(expr, x), diff(expr, x)
    f, slope = array_function(expr, x), array_function(steep, x)
    if closed is not None:
        ends = [lo, *([0.0] if lo < 0 < hi else []), hi]
    elif _rises_or_falls(expr, x):
        ends = [lo, hi]
    else:
        inner = [float(p) for p in breakpoints(expr, x, (exact_point(lo), exact_point(hi)))]
        cuts = [lo, *[p for p in inner if lo < p < hi], hi]
        bend = array_function(diff(steep, x), x)
        ends = [*cuts, *(p for a, b in pairwise(cuts) for p in _critical_points(slope, bend, a, b))]
    places = distinct_sorted(np.array(ends))
    turns = places if closed is not None or len(places) == 2 else _turning(steep, x, places)
    return tuple(_branch(f, slope, a, b, closed) for a, b in pairwise(turns))


def _critical_points(slope: Callable, bend: Callable, lo: float, hi: float) -> list[float]:
    """Zeros of the slope inside, also where it touches zero at an inflection."""
    cells = 8192  # 0.002 apart on the window: two nearer turning points are one touching point
    grid = lo + (hi - lo)*(np.arange(cells) + 1/3)/cells
    size = np.abs(slope(grid))
    low = (size[1:-1] <= size[:-2]) & (size[1:-1] < size[2:])  # where the modulus has a minimum
    touching = [p for n in np.flatnonzero(low & (size[1:-1] > 0)) for p in zeros_on([bend], grid[n:n + 3])
                if abs(slope(np.array([p]))[0]) < 1e-8*min(size[n], size[n + 2])]
    return zeros_on([slope], grid) + touching


def _rises_or_falls(expr: Expr, x: Symbol) -> bool:
    """Is the slope nowhere zero, by the form of the expression: tanh(2*x) + 1, 1/(1 + exp(-x))?"""
    if expr == x:
        return True
    if isinstance(expr, tanh | erf | exp | sinh | atan | asinh | log):
        return _rises_or_falls(expr.args[0], x)
    if isinstance(expr, Add | Mul):
        number, rest = expr.as_independent(x, as_Add=isinstance(expr, Add))
        return rest != expr and number.is_number and _rises_or_falls(rest, x)
    return isinstance(expr, Pow) and bool(expr.base.is_positive) and not expr.exp.has(x) and _rises_or_falls(expr.base, x)


def _turning(slope: Expr, x: Symbol, ends: np.ndarray) -> np.ndarray:
    """The ends of branches without the ones at which the slope was zero by rounding only: 1 - tanh(z)^2 for large z."""
    exact = lambdify(x, slope, modules=[mp.functions(), "mpmath"])

    def at(p: float) -> Any:
        try:
            return mp.mpf(exact(mpf(p)))
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return mp.nan

    kept = [ends[0]]
    digits = 120  # at |z| = 8.9 the slope 1 - tanh(z)^2 cancels eight digits, that of a composition many times as many
    flat = 1e-3  # of the slope on either side: a zero of it to 120 digits is far below
    with mp.workdps(digits):
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
    for end, near in ((lo, labels[0]), (hi, labels[-1])):
        value = float(f(np.array([end]))[0])
        at.append(value if np.isfinite(value) else float(np.sign(near) * np.inf))
    points = np.concatenate([[lo], points, [hi]])
    labels = np.concatenate([[at[0]], labels, [at[1]]])
    good = np.isfinite(labels)
    labels, points = labels[good], points[good]
    table = (labels, points) if labels[-1] >= labels[0] else (labels[::-1], points[::-1])
    return Monotone(lo, hi, f, slope, at[0], at[1], table, closed)


def array_function(expr: Expr, *names: Symbol) -> Callable:
    """An expression as a function of arrays, one for each name, that broadcast; what is not real is nan."""
    compiled = without_guard(expr, *names)

    def value(*points: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return compiled(*points)

    return value


def without_guard(expr: Expr, *names: Symbol) -> Callable:
    """The same without silencing warnings: for loops of many short calls."""
    # NumPy takes no root of an integer beyond 64 bits, as directions that were given as floats have it.
    long = {p: p.evalf(20) for p in expr.atoms(Pow) if p.base.is_Rational and max(abs(p.base.p), p.base.q) >= 2**63}
    expr = expr.xreplace(long)
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
    """The modules for `lambdify`: importing scipy.special takes longer than most integrals here."""
    from sympy.core.function import AppliedUndef, Function

    names = {type(node).__name__ for node in expr.atoms(Function) if not isinstance(node, AppliedUndef)}
    return ["numpy"] if names <= _PLAIN else ["numpy", "scipy"]


def _power(expr: Expr, x: Symbol) -> tuple[float, float, float] | None:
    """(c, p, d) if the expression is c x^p + d, so that its inverse is a formula."""
    shift, rest = expr.as_independent(x, as_Add=True)
    factor, power = rest.as_independent(x, as_Add=False)
    base, p = power.as_base_exp()
    if base != x or not p.is_Rational or not factor.is_number or not shift.is_number:
        return None
    return float(factor), float(p), float(shift)
