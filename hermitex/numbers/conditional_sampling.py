"""E F = mean of 16 scrambled Sobol rules, with 3 of their standard errors: averages in four variables and more that have switches.

The innermost variable is integrated on panels between its breaks at each point. This turns a jump into a kink, and a kink into a
smooth function.
"""

from __future__ import annotations

import numpy as np

from hermitex.errors import BudgetExceeded
from hermitex.numbers.lattice_sums import Estimate
from hermitex.numbers.nested_panels import NestedPanels

RULES = 16


def sampled_integral(nest: NestedPanels, tolerance: float) -> Estimate | None:
    """The integral to a relative tolerance, or as far as the evaluations of the integrand or the budget reach.

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

    means, errors, sizes = list[float](), list[float](), list[float]()
    for seed in range(RULES):
        points = ndtri(qmc.Sobol(n, seed=seed).random_base2(m))
        density = np.exp(-(points*points).sum(axis=1)/2)/(2*np.pi)**(n/2)
        found = nest.inner(list(points.T), len(points))
        for kept, part in zip((means, errors, sizes), found, strict=True):
            kept.append(float(np.mean(part/density)))
    size = float(np.mean(sizes))
    spread = 3*float(np.std(means, ddof=1))/np.sqrt(RULES)
    return Estimate(float(np.mean(means)), spread + float(np.mean(errors)) + nest.F.rounding*size, size)


__all__ = ["sampled_integral"]
