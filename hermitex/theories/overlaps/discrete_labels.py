r"""P(y_k | omega), z ~ N(omega, V), V a full matrix: labels of a list, of variables that enter by steps or with curved borders.

Steps: boxes of two variables by Owen's T (`kernels.normals`); a third variable by nodes between its steps. The slopes in omega are
one-dimensional and lose no digits. Curved borders of two variables: int N(z1; omega_1, V_11) P(z2: g = y_k | z1, omega) dz1;
on each line z1 = const the label jumps at points that are found to rounding, so that z2 is integrated exactly (`kernels.jumps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hermitex.kernels.jumps import jump_lines
from hermitex.kernels.normals import box_probabilities, interval_probabilities, panels
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array, scale_rung
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


@dataclass(frozen=True, eq=False)
class FibreOutput(FiniteOutput):
    """Finitely many labels of two variables with jumps anywhere; M may be any matrix.

    of, levels, mixed : the label y_k has the probability mixed[k, j] where of(z) = levels[j]
    """

    of: Callable[[Sequence[Array]], Array] = field(default=lambda points: points[0])
    levels: Array = field(default_factory=lambda: np.zeros(0))
    mixed: Array = field(default_factory=lambda: np.eye(1))
    r: int = 2
    smallest: Any = 1e-2
    quick: bool = True
    _kept: dict[float, Any] = field(default_factory=dict)

    def _fibres(self, panel: float) -> list[tuple[float, float, Array, Array]]:
        """(z1, its weight, the jumps in z2, the level between them) of every node."""
        if panel not in self._kept:
            self._kept[panel] = jump_lines(self.of, self.levels, panel, self.grid.axes[0].cuts)
        return list(self._kept[panel])

    @cached_property
    def steep(self) -> float:
        """How fast the jumps in z2 move with z1, where they do so without turning: the mean of all that are followed."""
        lines = self._fibres(0.9)
        moves = [np.abs((b[2] - a[2])/(b[0] - a[0])) for a, b in pairwise(sorted(lines, key=lambda line: line[0]))
                 if len(a[3]) == len(b[3]) and (a[3] == b[3]).all() and b[0] - a[0] > 0.05]
        return float(np.mean(np.concatenate(moves))) if moves and any(map(len, moves)) else 0.0

    def chances(self, cells: Any, omega: Array, V: Array, fineness: float) -> list[Array]:
        """[P(level | omega), dP/domega_1, dP/domega_2] at fields (n, 2), each (levels, n)."""
        c, v = V[0, 1]/V[0, 0], V[0, 0]
        s = np.sqrt(V[1, 1] - c*V[0, 1])
        order = np.argsort(omega[:, 0], kind="stable")
        o1, o2 = omega[order].T
        found = np.zeros((3, len(self.levels), len(omega)))
        near = 7.5  # deviations of a field: P(|z| > 7.5) = 6e-14
        far = 1e3  # where probabilities and their slopes are 0 and 1 exactly
        for x, w, jumps, which in self._fibres(self._panel(v, s, c)*fineness):
            lo, hi = np.searchsorted(o1, [x - near*np.sqrt(v), x + near*np.sqrt(v)])
            if lo == hi:
                continue
            t = x - o1[lo:hi]
            p = w*np.exp(-t*t/(2*v))/np.sqrt(2*np.pi*v)
            edges = np.concatenate([[-far], jumps, [far]])[:, None]
            checkpoint("iterating the state evolution", 3*EXP*len(edges)*len(t))
            chance, slope = (p*f for f in interval_probabilities(edges, o2[lo:hi] + c*t, s))
            parts = np.array([chance, chance*t/v - c*slope, slope])
            if len(np.unique(which)) == len(which):  # each level once
                found[:, which, lo:hi] += parts
            else:
                for i, k in enumerate(which):
                    found[:, k, lo:hi] += parts[:, i]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return list(found[:, :, back])

    def _panel(self, v: float, s: float, c: float) -> float:
        """The width of panels in z1, in rungs: of z1 itself, and of a jump that passes the width s of z2."""
        return scale_rung(min(1.8*np.sqrt(v), 2.5*s/max(self.steep, abs(c), 0.1), 0.9))

    def by_axes(self, V: Array) -> bool:
        return False

    def _fields(self, M: Array, fineness: float) -> tuple[Array, Array]:
        return eigen_nodes(M, 0.8*fineness, alike=self.alike)

    def cells(self, V: Array, fineness: float) -> Any:
        """The levels of the target, where `mixed` is the table."""
        return self.levels, None

    def _table(self, cells: Any, y: Array | None = None) -> Array:
        return self.mixed


def few_values(of: Callable[[Sequence[Array]], Array], r: int) -> Array | None:
    """The labels of a target that takes few values, found at many points, also far ones; None if it takes many."""
    wider = 2.5  # the spread of the points reaches 2.5 times that of z, to see labels of the tails
    z = np.random.default_rng(0).standard_normal((r, 8000))*np.linspace(1.0, wider, 8000)
    found = np.unique(np.round(of(list(z)), 10))
    few = 60  # levels: each has its own lines
    return found if len(found) <= few else None
