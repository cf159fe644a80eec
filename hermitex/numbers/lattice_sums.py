"""int F = h^n sum_k F(h (k + s)) + O(exp(-2 pi d/h)): the trapezoid rule in up to six variables, for an F that is analytic.

d is how far F is analytic about real space. Two lattices of different steps and shifts, neither of which contains points of the
other, give the error; from how far they agree the next step follows, since the error falls as exp(-c/h). The mass in the outer
shell of the ball that the lattice fills is part of the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gamma, pi
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hermitex.errors import BudgetExceeded
from hermitex.numbers.nested_panels import NestedPanels

Array = NDArray[np.float64]


class Estimate(NamedTuple):
    """An integral in units of exp(top): value, error, integral of |F|."""

    value: float
    error: float
    size: float


class Sampleable(Protocol):
    """An integrand in n variables: its values over exp(top), the box of its mass, its rounding, the evaluations that are left."""

    n: int
    low: Array
    high: Array

    @property
    def rounding(self) -> float: ...

    @property
    def left(self) -> float: ...

    def __call__(self, *columns: Array) -> Array: ...


def lattice_integral(F: Sampleable, tolerance: float, most: float = np.inf) -> Estimate | None:
    """The integral over all space to a relative tolerance, or as far as the evaluations or the budget reach; None without any.

    `most` bounds the evaluations, besides the budget that F has left.

    Examples
    --------
    >>> from sympy import cos
    >>> from hermitex.symbols import z1, z2
    >>> from hermitex.numbers.scaled_integrand import ScaledIntegrand
    >>> F = ScaledIntegrand(cos(z1*z2), (z1, z2))
    >>> found = lattice_integral(F, 1e-13)
    >>> bool(abs(found.value*np.exp(F.top) - 0.5**0.5) < 1e-14)
    True
    """
    best: Estimate | None = None
    h, radius, last, tried = 1.0, _radius(F), False, 1.0
    try:
        while not last:
            finest = radius*(2.5*_count(1.0, 1.0, F.n)/max(min(F.left, most), 1.0))**(1/F.n)
            last = h <= finest
            if last and best is not None and finest > 0.93*tried:
                break
            tried = h = max(h, finest)
            first, size, shell = _sums(F, h, radius, 0.0)
            second, *_ = _sums(F, h/1.118033988749895, radius, 0.381966011250105)  # sqrt(5)/2: no common points
            gap = abs(first - second)
            found = Estimate(second, gap + shell + F.rounding*size, size)
            if not np.isfinite(found.error):
                return None
            best = found if best is None or found.error < best.error else best
            allowed = max(tolerance*abs(second), 4*F.rounding*size)
            if gap + shell <= allowed:
                return found
            if shell > allowed and radius < 60:
                radius *= 1.15
            if gap > allowed:
                seen = np.log(size/gap)/np.log(size/allowed) if 0 < gap < size else 0.0
                h *= float(np.clip(0.95*seen, 0.4, 0.85))
    except BudgetExceeded:
        if best is None:
            raise
    return best


def _radius(F: Sampleable) -> float:
    """The distance of the farthest corner of the box, but no more than 9, and less in more than three variables."""
    far = float(np.max(np.abs([F.low, F.high])))
    return min(far, 9.0 if F.n <= 3 else 6.5)


def _count(radius: float, h: float, n: int) -> float:
    """The number of lattice points in the ball."""
    return pi**(n/2)/gamma(n/2 + 1)*float((radius/h)**n)


def _sums(F: Sampleable, h: float, radius: float, shift: float) -> tuple[float, float, float]:
    """h^n times the sums of F, of |F|, and of |F| in the outer shell, over the lattice points of the ball."""
    total = size = shell = 0.0
    inner = (radius - max(h, 0.07*radius))**2
    for points in _points(F.n, h, radius, shift):
        v = F(*points)
        a, far = np.abs(v), sum(p*p for p in points) > inner
        total, size, shell = total + float(v.sum()), size + float(a.sum()), shell + float(a[far].sum())
    unit = h**F.n
    return total*unit, size*unit, shell*unit


def _points(n: int, h: float, radius: float, shift: float) -> Iterator[list[Array]]:
    """The lattice points of the ball, coordinate by coordinate, some 10^5 at a time."""
    reach = int(radius/h) + 1
    axes = [np.asarray(h*(np.arange(-reach, reach + 1) + shift*(j + 1)), float) for j in range(n)]
    prefix = [np.zeros(1)][:0]
    for j in range(n - 1):
        prefix = _extended(prefix, axes[j], radius)
    step = max(1, 100_000//len(axes[-1]))
    for start in range(0, len(prefix[0]), step):
        points = _extended([p[start:start + step] for p in prefix], axes[-1], radius)
        if len(points[0]):
            yield points


def _extended(prefix: list[Array], axis: Array, radius: float) -> list[Array]:
    """Each point of the prefix with each value of the next coordinate that keeps it in the ball."""
    if not prefix:
        return [axis[np.abs(axis) <= radius]]
    square = np.sum([p*p for p in prefix], axis=0)
    row, column = np.nonzero(square[:, None] + axis[None, :]**2 <= radius*radius)
    return [*(p[row] for p in prefix), axis[column]]


# -- random rules, for four variables and more with switches ------------------------------------------------------------
def sampled_integral(nest: NestedPanels, tolerance: float) -> Estimate | None:
    """The mean of 16 scrambled Sobol rules, with 3 of their standard errors, of integrals over the innermost variable.

    To a relative tolerance, or as far as the evaluations of the integrand or the budget reach. Panels between the breaks of the
    innermost variable turn a jump into a kink, and a kink into a smooth function.

    The number of points doubles from 2^7 a rule. None where the budget ends before the first estimate.
    """
    best: Estimate | None = None
    F, n = nest.F, nest.F.n - 1
    try:
        for m in range(7, 17):
            before = F.evaluations
            found = _estimate(nest, n, m)
            if not np.isfinite(found.error):
                return best
            best = found
            if found.error < tolerance*abs(found.value) or 2*(F.evaluations - before) > F.most - F.evaluations:
                return best
    except BudgetExceeded:
        if best is None:
            raise
    return best


def _estimate(nest: NestedPanels, n: int, m: int) -> Estimate:
    """The mean over rules of 2^m points each, in units of exp(top)."""
    from scipy.special import ndtri
    from scipy.stats import qmc  # half a second, which few answers need

    rules = 16
    means, errors, sizes = list[float](), list[float](), list[float]()
    for seed in range(rules):
        points = ndtri(qmc.Sobol(n, seed=seed).random_base2(m))
        density = np.exp(-(points*points).sum(axis=1)/2)/(2*np.pi)**(n/2)
        found = nest.inner(list(points.T), len(points))
        for kept, part in zip((means, errors, sizes), found, strict=True):
            kept.append(float(np.mean(part/density)))
    size = float(np.mean(sizes))
    spread = 3*float(np.std(means, ddof=1))/np.sqrt(rules)
    return Estimate(float(np.mean(means)), spread + float(np.mean(errors)) + nest.F.rounding*size, size)


__all__ = ["Estimate", "lattice_integral", "sampled_integral"]
