r"""E[z|y, omega] and Cov[z|y, omega], y = g(z), z ~ N(omega, V), for many labels and fields: by the cells that a level set meets.

A level set is its mean point in each cell where g is a plane: three digits hold for two variables, two for three. What
depends on the label alone is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hermitex.kernels.histogram import Planes, row_ranges
from hermitex.symbolic.budget import checkpoint

Array = np.ndarray
_APART = 100.0  # how far the lists of two labels are from each other, along z_1
_POINTS = 4_000_000  # at a time: 32 MB an array


@dataclass(frozen=True, eq=False)
class LevelSets:
    """The level sets of g."""

    g: Planes
    _kept: dict[bytes, tuple[Array, ...]] = field(default_factory=dict)

    def moments(self, y: Array, omega: Array, white: Array) -> tuple[Array, Array, Array]:
        """Mean (n, r) and covariance (n, r, r) of u = white (z - omega) ~ N(0, 1) given the labels (n,), at fields (n, r).

        First whether a label may come about at its field (n,); else both are zero.
        """
        y, r, o, upper = np.asarray(y, dtype=float), len(white), white @ omega.T, np.triu_indices(len(white))
        near_field = 16.0  # sqrt(V_11) from a field: beyond it P = exp(-128) is negligible
        near = near_field*float(np.linalg.norm(np.linalg.inv(white)[0]))
        sums = np.zeros((1 + r + len(upper[0]), len(omega)))
        dear = 20  # products take the time of a point
        for at, (of, first, weight, points) in self._parts(y):
            low, high = (np.searchsorted(first, _APART*of + np.clip(omega[at, 0] + s*near, -_APART/3, _APART/3)) for s in (-1, 1))
            z, seen = white @ points, np.flatnonzero(high > low)
            for rows in np.array_split(seen, 1 + int((high - low).sum())//_POINTS) if len(seen) else ():
                row, k = row_ranges(low[rows], high[rows])
                checkpoint("sums over level sets", dear*len(row))
                n, start = at[rows], np.searchsorted(row, np.arange(len(rows)))
                u = [p[k] - q[n][row] for p, q in zip(z, o, strict=True)]
                w = weight[k]*np.exp(-sum(c*c for c in u)/2)
                wu = [w*c for c in u]
                for i, f in enumerate([w, *wu, *(wu[a]*u[b] for a, b in zip(*upper, strict=True))]):
                    sums[i, n] = np.add.reduceat(f, start)
        least = 1e-200  # a probability below is underflow: no moments are formed with it
        seen, spread = sums[0] > least, np.zeros((len(omega), r, r))
        mean, second = np.split(np.where(seen, sums[1:]/np.where(seen, sums[0], 1.0), 0.0), [r])
        for f, a, b in zip(second, *upper, strict=True):
            spread[:, a, b] = spread[:, b, a] = f - mean[a]*mean[b]
        return seen, mean.T, spread

    def _parts(self, y: Array) -> Iterator[tuple[Array, tuple[Array, ...]]]:
        """(which labels, (index of each among distinct labels; index and z_1 of the points, in order; their weights; points))."""
        r = len(self.g.sides)
        kept = 3  # parts of labels
        for at in np.array_split(np.arange(len(y)), 1 + int(len(y)*len(self.g.mean)**(1 - 1/r))//_POINTS):
            if (key := y[at].tobytes()) not in self._kept:
                label, of = np.unique(y[at], return_inverse=True)
                row, weight, points = self.g.level(label)
                order = np.argsort(first := _APART*row + points[:, 0])
                self._kept[key] = of, first[order], weight[order], points[order].T.copy()
                for old in list(self._kept)[:-kept]:
                    del self._kept[old]
            yield at, self._kept[key]
