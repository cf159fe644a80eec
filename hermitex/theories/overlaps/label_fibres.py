r"""P(y_k | omega) = int N(z1; omega_1, V_11) P(z2: g(z1, z2) = y_k | z1, omega) dz1: labels with curved borders.

On each line z1 = const the label jumps at points that are found to rounding, so that z2 is integrated exactly (`kernels.jumps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hermitex.kernels.jumps import jump_lines
from hermitex.kernels.normals import interval_probabilities
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array, scale_rung
from hermitex.theories.overlaps.channel import EXP, FiniteOutput
from hermitex.theories.overlaps.overlap_frame import eigen_nodes


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
    """The labels of a target that takes few values, seen at many points, also far out; None if it takes many."""
    wider = 2.5  # the spread of the points reaches 2.5 times that of z, to see labels of the tails
    z = np.random.default_rng(0).standard_normal((r, 8000))*np.linspace(1.0, wider, 8000)
    found = np.unique(np.round(of(list(z)), 10))
    few = 60  # levels: each has its own lines
    return found if len(found) <= few else None
