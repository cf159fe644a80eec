r"""P(z in a box | omega), z ~ N(omega, V), V a full matrix: the labels of variables that enter by steps only.

Boxes of two variables by Owen's T (`kernels.normals`); a third variable by nodes between its steps. The slopes in omega are
one-dimensional and lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.kernels.normals import box_probabilities, panels
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array
from hermitex.theories.overlaps.channel import EXP, FiniteOutput
from hermitex.theories.overlaps.overlap_frame import eigen_nodes


@dataclass(frozen=True, eq=False)
class StepOutput(FiniteOutput):
    """Finitely many labels of two or three variables that enter by steps; off a diagonal M by exact boxes."""

    quick: bool = True
    least: float = 1e-13  # what is left of a probability after the sum of four

    def _fields(self, M: Array, fineness: float) -> tuple[Array, Array]:
        return eigen_nodes(M, (0.75 if self.r == 2 else 1.5)*fineness, alike=self.alike)

    def cells(self, V: Array, fineness: float) -> Any:
        """A point of each cell, (n, r)."""
        grid = np.meshgrid(*(a.nodes(1.0)[0] for a in self.grid.axes), indexing="ij")
        return np.stack([x.ravel() for x in grid], axis=1), None

    def chances(self, cells: Any, omega: Array, V: Array, fineness: float) -> list[Array]:
        """[P(cell | omega), dP/domega_1, ...] at fields (n, r), each (cells, n)."""
        checkpoint("iterating the state evolution", 10*EXP*len(cells[0])*len(omega))
        return [p.reshape(len(cells[0]), -1) for p in self._boxes(omega, V, fineness)]

    def _boxes(self, omega: Array, V: Array, fineness: float) -> list[Array]:
        """[P, dP/domega_1, ...] over the cells, each (*cells, n)."""
        cuts = [a.cuts for a in self.grid.axes]
        if self.r == 2:
            return box_probabilities(cuts[0], cuts[1], omega, V)
        v, c = V[2, 2], V[:2, 2]/V[2, 2]
        inner = V[:2, :2] - np.outer(c, c)*v
        z, dz = panels(cuts[2], 2.5*fineness*np.sqrt(v), 8)
        cell = np.searchsorted(cuts[2], z)
        z, dz, cell = (x[cell < len(cuts[2])] for x in (z, dz, cell))  # beyond the last step is what all other cells leave
        total = [np.zeros((len(cuts[0]) + 1, len(cuts[1]) + 1, len(cuts[2]) + 1, len(omega))) for _ in range(4)]
        reach = 7.0  # P(|z| > 7) = 3e-12
        for x, w, k in zip(z, dz, cell, strict=True):
            away = x - omega[:, 2]
            near = np.flatnonzero(np.abs(away) < reach*np.sqrt(v))
            if not near.size:
                continue
            t = away[near]
            p = w*np.exp(-t*t/(2*v))/np.sqrt(2*np.pi*v)
            P, one, two = box_probabilities(cuts[0], cuts[1], omega[near, :2] + t[:, None]*c, inner)
            for out, value in zip(total, (P, one, two, P*t/v - c[0]*one - c[1]*two), strict=True):
                out[:, :, k, near] += p*value
        whole = (*box_probabilities(cuts[0], cuts[1], omega[:, :2], V[:2, :2]), 0.0)
        for out, value in zip(total, whole, strict=True):
            out[:, :, -1] = value - out.sum(axis=2)
        return total
