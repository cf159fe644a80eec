"""int F(x, y) dx dy = int dx (int F(x, y) dy): Gauss-Legendre panels, one variable inside another, between the breaks of switches.

The breaks of the inner variable are functions of the outer ones: roots of polynomials exactly, others bracketed. All inner
integrals of a batch of outer points are refined together, so that each step is one pass over arrays. The two rules of a panel give
its error, and the panels with the largest errors are bisected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hermitex.errors import BudgetExceeded, Divergent
from hermitex.numbers import gauss
from hermitex.numbers.moving_breaks import Breaks
from hermitex.numbers.scaled_integrand import EPS, ScaledIntegrand
from hermitex.symbolic.budget import checkpoint

Array = NDArray[np.float64]
Values = Callable[[NDArray[np.intp], Array, Array], "Sums"]


class Sums(NamedTuple):
    """Values, errors and absolute values of several integrals."""

    value: Array
    error: Array
    size: Array


class NestedRow(NamedTuple):
    """y = start + length t^power for t in [a, b] within [0, 1]: a power beyond 1 smooths a singular end.

    `blur` is how well the start is known as the place of a singularity.
    """

    owner: NDArray[np.intp]
    start: Array
    length: Array
    power: Array
    a: Array
    b: Array
    blur: Array

    def nodes(self, x: Array) -> tuple[Array, Array]:
        """Nodes in y, and dy/dx, for a rule on [-1, 1]."""
        half = (self.b - self.a)/2
        t = ((self.a + self.b)/2)[:, None] + half[:, None]*x
        p = self.power[:, None]
        return self.start[:, None] + self.length[:, None]*t**p, half[:, None]*np.abs(self.length)[:, None]*p*t**(p - 1)

    def where(self, kept: NDArray[np.bool_]) -> NestedRow:
        return NestedRow(self.owner[kept], self.start[kept], self.length[kept], self.power[kept], self.a[kept], self.b[kept],
                      self.blur[kept])

    def halves(self) -> NestedRow:
        middle = (self.a + self.b)/2
        left, right = self._replace(b=middle), self._replace(a=middle)
        return joined([left, right])


def joined(parts: Sequence[NestedRow]) -> NestedRow:
    """NestedRow of several lists in one."""
    return NestedRow(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


def between(knots: Array, blur: Array, power: float) -> NestedRow:
    """The panels between sorted knots, a column for each owner; those at a singular knot (blur >= 0) begin there, with a power."""
    gap = np.diff(knots, axis=0)
    wide = gap > 4*EPS*np.abs(knots[1:])
    owner = np.broadcast_to(np.arange(knots.shape[1]), gap.shape)
    left, right = blur[:-1] >= 0, blur[1:] >= 0
    half = np.where(left & right, 0.5, 1.0)
    parts = []
    for chosen, start, length, p, known in ((wide & ~left & ~right, knots[:-1], gap, 1.0, np.zeros(gap.shape)),
                                            (wide & left, knots[:-1], gap*half, power, blur[:-1]),
                                            (wide & right, knots[1:], -gap*half, power, blur[1:])):
        k = int(chosen.sum())
        parts.append(NestedRow(owner[chosen], start[chosen], length[chosen], np.full(k, p), np.zeros(k), np.ones(k), known[chosen]))
    return joined(parts)


def _shared(knots: Array, blur: Array) -> Array:
    """The blurs, the largest of knots at the same place for each of them."""
    blur = blur.copy()
    same = np.diff(knots, axis=0) <= 4*EPS*np.abs(knots[1:])
    for k in range(len(same)):
        blur[k + 1] = np.where(same[k], np.maximum(blur[k], blur[k + 1]), blur[k + 1])
    for k in range(len(same) - 1, -1, -1):
        blur[k] = np.where(same[k], np.maximum(blur[k], blur[k + 1]), blur[k])
    return blur


def refined(values: Values, panels: NestedRow, owners: int, tolerance: float, rules: tuple[int, int],
            most: Callable[[], float], floor: float = 0.0) -> Sums:
    """The integrals of all owners, panels bisected until each error is below `tolerance` of its owner's absolute integral.

    Errors relative to `floor`, and to 1/1000 of the largest integral, are allowed as well: the noise of small integrals is not
    resolved. NestedRow are bisected no further where more than `most()` of them would be; their errors count.
    """
    done = Sums(np.zeros(owners), np.zeros(owners), np.zeros(owners))
    (x0, w0), (x1, w1) = (gauss.legendre(n) for n in rules)
    x = np.concatenate([x0, x1])
    for depth in range(60):
        with np.errstate(all="ignore"):
            y, slope = panels.nodes(x)
        found = values(np.repeat(panels.owner, len(x)), y.ravel(), slope.ravel())
        value, error, size = (np.asarray(f).reshape(y.shape)*slope for f in found)
        # a singular integrand is known as well as the distance from its singular end
        with np.errstate(all="ignore"):
            blurred = np.where((panels.power > 1)[:, None], 4*panels.blur[:, None]/np.abs(y - panels.start[:, None]), 0.0)
            value, size = np.where(blurred < 1, value, 0.0), np.where(blurred < 1, size, 0.0)
            error = np.where(blurred < 1, error + blurred*size, 0.0)
        value, error, size = _without_poles(value, error, size)
        n0 = len(x0)
        with np.errstate(invalid="ignore"):
            fine, inner, much = value[:, n0:] @ w1, error[:, n0:] @ w1, size[:, n0:] @ w1
            gap = np.abs(fine - value[:, :n0] @ w0)
        total = done.size + np.bincount(panels.owner, much, owners)
        narrow = np.abs(panels.length)*(panels.b - panels.a) < 8*EPS*np.abs(panels.start)
        narrow |= panels.b - panels.a < 1e-14
        allowed = tolerance*(total[panels.owner] + floor + 1e-3*total.max())/8
        bad = ~(gap <= allowed) & ~(gap <= 8*EPS*much + 2*inner) & ~narrow
        if bad.sum()*2 > most() or depth == 59:
            bad[:] = False
        good = ~bad
        mine = panels.owner[good]
        done = Sums(*(old + np.bincount(mine, new[good], owners) for old, new in
                      zip(done, (fine, gap + inner, much), strict=True)))
        if not bad.any():
            return done
        panels = panels.where(bad).halves()
    return done


def _without_poles(value: Array, error: Array, size: Array) -> Sums:
    """A node of a panel at which F is infinite counts as 0, with the largest of the others as its error; one in ten at most."""
    pole = ~np.isfinite(value)
    pole &= (pole.mean(axis=1) < 0.1)[:, None]
    if not pole.any():
        return Sums(value, error, size)
    most = np.max(np.where(np.isfinite(size), size, 0.0), axis=1)[:, None]
    return Sums(np.where(pole, 0.0, value), np.where(pole, most, error), np.where(pole, most, size))


class NestedPanels:
    """The integral of F over its box, a variable at a time.

    Parameters
    ----------
    F : the integrand
    breaks : where it is not smooth, by variable
    tolerance : relative, for each one-dimensional integral
    """

    def __init__(self, F: ScaledIntegrand, breaks: Breaks, tolerance: float) -> None:
        self.F, self.breaks, self.tolerance = F, breaks, tolerance
        self.rules = (16, 24) if F.n <= 2 else (8, 12)
        self.largest = [0.0]*F.n  # of the integrals over the variables from each one on
        self.tiling = 0  # which of several sets of panels is used

    def total(self, tolerances: Sequence[float] = ()) -> tuple[float, float, float]:
        """(value, error, integral of |F|), in units of exp(top); the error contains the rounding.

        A kink within 1/400 of a panel from its end is between the end and the first node of either rule, which then agree. So the
        integral is computed with other panels, until two results agree; their difference is part of the error.

        Parameters
        ----------
        tolerances : one for each set of panels, as long as the evaluations that are left allow; by default that of the nest
        """
        best = (0.0, np.inf, 0.0)
        found: list[Sums] = []
        try:
            for tiling, tolerance in enumerate(tolerances or 4*(self.tolerance,)):
                self.tiling, self.tolerance, before = tiling, tolerance, self.F.evaluations
                new = self.inner([], 1)
                value, own, size = (float(f[0]) for f in new)
                own += (self.F.rounding + 1e-17)*size
                gaps = [abs(float(old.value[0]) - value) for old in found]
                agree = [gap <= own + float(old.error[0]) for gap, old in zip(gaps, found, strict=True)]
                found.append(new)
                if gaps and own + min(gaps) < best[1]:
                    best = value, own + min(gaps), size
                if (any(agree) and not tolerances) or (gaps and self.F.left < 4*(self.F.evaluations - before)):
                    break
        except BudgetExceeded:
            if not np.isfinite(best[1]):
                raise
        return best

    def require_existence(self) -> None:
        """Raise Divergent where |F| grows like 1/distance or faster at a singular place of the innermost variable."""
        depth = self.F.n - 1
        low, high = self.F.low, self.F.high
        outer = [low[k] + (high[k] - low[k])*np.modf(np.arange(1, 30)*(k + 2)**0.5)[0] for k in range(depth)]
        places, blur, _ = self.breaks.at(depth, outer, 29, low[depth], high[depth])
        for b in places[(blur >= 0).any(axis=1)] if depth <= 2 else ():
            inside = np.isfinite(b) & (b > low[depth]) & (b < high[depth])
            for side in (-1.0, 1.0):
                at = [c[inside] for c in outer]
                near, nearer = (self.F.level(np.stack([*at, b[inside] + side*s], axis=1))[1] for s in (1e-4, 1e-8))
                with np.errstate(all="ignore"):
                    power = (nearer - near)/np.log(1e-4)
                if (power < -0.98).any():
                    raise Divergent(self.F.body, "it grows like an inverse distance at a singular place")

    def inner(self, columns: Sequence[Array], owners: int, weights: Array | None = None) -> Sums:
        """The integrals over the variables after the given ones, for each of a batch of points, which have weights in the sum."""
        depth = len(columns)
        low, high = self.F.low[depth], self.F.high[depth]
        places, blur, soft = self.breaks.at(depth, columns, owners, low, high)
        base = np.linspace(low, high, max(3, int(np.ceil((high - low)/3)) + 1))
        base[1:-1] += (base[1] - base[0])*(0.381966*self.tiling % 1.0 - 0.5*(self.tiling > 0))
        rows = [np.broadcast_to(base[:, None], (len(base), owners)), places, soft]
        knots, marks = np.concatenate(rows), np.concatenate([np.full((len(base), owners), -1.0), blur, np.full(soft.shape, -1.0)])
        knots = np.clip(np.nan_to_num(knots, nan=high, posinf=high, neginf=low), low, high)
        order = np.argsort(knots, axis=0, kind="stable")
        knots, marks = np.take_along_axis(knots, order, 0), np.take_along_axis(marks, order, 0)
        panels = between(knots, _shared(knots, marks), 4.0)
        outer = np.ones(owners) if weights is None else weights
        done = refined(lambda owner, y, slope: self._value(columns, owner, y, slope*outer[owner]), panels, owners, self.tolerance,
                       self.rules, lambda: self.F.left/sum(self.rules), 1e-3*self.largest[depth])
        self.largest[depth] = max(self.largest[depth], float(done.size.max(initial=0.0)))
        return done

    def _value(self, columns: Sequence[Array], owner: NDArray[np.intp], y: Array, weights: Array) -> Sums:
        points = [*(c[owner] for c in columns), y]
        if len(points) == self.F.n:
            v = self.F(*points, weights=weights)
            return Sums(v, np.zeros(len(v)), np.abs(v))
        checkpoint("integrating over several normals", cells=len(y))
        step = 4096 if self.F.n - len(points) == 1 else 256
        parts = [self.inner([p[at] for p in points], len(y[at]), weights[at])
                 for at in (slice(s, s + step) for s in range(0, len(y), step))]
        return Sums(*(np.concatenate(f) for f in zip(*parts, strict=True)))


class InnermostIntegral:
    """The integral over the innermost variable, as an integrand in the others for lattice sums: it has kinks where F has jumps."""

    def __init__(self, nest: NestedPanels) -> None:
        self.nest, self.n, self.top = nest, nest.F.n - 1, nest.F.top
        self.low, self.high = nest.F.low[:-1], nest.F.high[:-1]

    @property
    def rounding(self) -> float:
        return self.nest.F.rounding + self.nest.tolerance

    @property
    def left(self) -> float:
        """How many integrals the evaluations that are left allow, at some 200 each."""
        return (self.nest.F.most - self.nest.F.evaluations)/200

    def __call__(self, *columns: Array) -> Array:
        parts = [self.nest.inner([c[s:s + 4096] for c in columns], len(columns[0][s:s + 4096])).value
                 for s in range(0, len(columns[0]), 4096)]
        return np.concatenate(parts)


__all__ = ["InnermostIntegral", "NestedPanels", "NestedRow", "Sums", "between", "refined"]
