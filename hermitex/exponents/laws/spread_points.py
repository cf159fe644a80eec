"""E[G (x) G] from evenly spread points of R^r, labels in bins of equal mass: a few digits where no structure is seen.

The last resort, for a deterministic label only: every other route has ten digits or more. The powers of the root of
x^(r+1) = x + 1 spread points evenly (a generalised golden section), so the same target always gives the same bits. The
spread of results over numbers of points and bins is the error that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sympy import Expr, Symbol, lambdify

from hermitex.exponents.laws.density import Index
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.linearised import Couplings, Second
from hermitex.symbolic.budget import checkpoint

_POINTS = 1_000_000


def estimated(g: Expr, variables: Sequence[Symbol], drop: Sequence[Index]) -> Second:
    """The couplings of order two, to about three digits, with the spread of several estimates as their error."""
    f = lambdify(list(variables), g, modules=["numpy", "scipy"])
    found = []
    for points, bins in ((_POINTS, 400), (_POINTS, 200), (_POINTS // 2, 300)):
        checkpoint("spreading points")
        found.append(_couplings(f, len(variables), (points, bins), drop))
    error = max(abs(a[k] - b[k]) for a in found for b in found for k in a)
    return Second(found[0], 2 * error)


def _couplings(f: Callable, r: int, size: tuple[int, int], drop: Sequence[Index]) -> Couplings:
    from scipy.special import ndtri

    points, bins = size
    root = 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (r + 1))
    z = ndtri((0.5 + np.arange(1, points + 1) * root ** -np.arange(1.0, r + 1)[:, None]) % 1)
    with np.errstate(all="ignore"):
        y = np.round(np.broadcast_to(np.asarray(f(*z), dtype=float), (points,)), 12)
    order = np.argsort(y, kind="stable")
    y, z = y[order], z[:, order]
    start = np.flatnonzero(np.concatenate([[True], np.diff(y) > 0]))  # equal labels stay in one bin
    cuts = start[np.concatenate([[True], np.diff((start * bins) // points) > 0])]
    count = np.diff(np.append(cuts, points))
    wanted = [a for a in indices(r) if len(a) == 2 and a not in drop]
    he = np.stack([z[a[0]] * z[a[1]] - (a[0] == a[1]) for a in wanted])
    mean = np.add.reduceat(he, cuts, axis=1) / count
    total: Couplings = {}
    for n, a in enumerate(wanted):
        for m in range(n, len(wanted)):
            # The scatter of the means themselves is taken off.
            own = (np.add.reduceat(he[n] * he[m], cuts) / count - mean[n] * mean[m]) / np.maximum(count - 1, 1)
            total[a, wanted[m]] = float(np.sum((mean[n] * mean[m] - own) * count) / points)
    return total
