r"""P(y_k | omega) = int N(z1; omega_1, V_11) P(z2: g(z1, z2) = y_k | z1, omega) dz1: labels with curved borders.

On each line z1 = const the label jumps at points that are found to rounding, so that z2 is integrated exactly; the nodes in z1 are
graded towards the lines at which jumps appear or vanish, where they move like square roots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from hermitex.kernels.panels import distinct, near_knots
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.channel import EXP, FiniteOutput, ratio
from hermitex.theories.overlaps.frames import eigen_nodes, unfolded
from hermitex.theories.overlaps.grid import Array, LabelGrid, intervals

_REACH = 8.0
_SCAN, _LINES = 1601, 321
_ORDER = 10
_NEAR = 7.5
_SLICE = 40_000
_WIDER, _FEW = 2.5, 60
_FAR = 1e3  # where probabilities and their slopes are 0 and 1 exactly


@dataclass(frozen=True, eq=False)
class FibreOutput(FiniteOutput):
    """Finitely many labels of two variables with jumps anywhere; M may be any matrix."""

    of: Callable[[Sequence[Array]], Array] = field(default=lambda points: points[0])
    levels: Array = field(default_factory=lambda: np.zeros(0))
    mixed: Array = field(default_factory=lambda: np.eye(1))
    smallest: Any = 1e-2
    quick: bool = True
    _kept: dict[float, Any] = field(default_factory=dict)

    @classmethod
    def through(cls, grid: LabelGrid, labels: Array, of: Callable[[Sequence[Array]], Array], levels: Array, mixed: Array
                ) -> FibreOutput:
        """The label y_k with probability mixed[k, j] where g = levels[j]."""
        return cls(grid, labels, r=2, of=of, levels=levels, mixed=mixed)

    def _fibres(self, v: float) -> list[tuple[float, float, Array, Array]]:
        """(z1, its weight, the jumps in z2, the level between them) of every node."""
        panel = 0.9 if v > 0.15 else 0.4
        if panel not in self._kept:
            self._kept[panel] = _fibres(self.of, self.levels, panel, self.grid.axes[0].cuts)
        return list(self._kept[panel])

    def chances(self, omega: Array, V: Array) -> tuple[Array, Array]:
        """(Z, A) at fields (n, 2): P(y_k | omega), shape (k, n), and its slopes, (2, k, n)."""
        c, v = V[0, 1]/V[0, 0], V[0, 0]
        s = np.sqrt(V[1, 1] - c*V[0, 1])
        order = np.argsort(omega[:, 0], kind="stable")
        o1, o2 = omega[order].T
        z, a = np.zeros((len(self.levels), len(omega))), np.zeros((2, len(self.levels), len(omega)))
        for x, w, jumps, which in self._fibres(v):
            lo, hi = np.searchsorted(o1, [x - _NEAR*np.sqrt(v), x + _NEAR*np.sqrt(v)])
            if lo == hi:
                continue
            t = x - o1[lo:hi]
            p = w*np.exp(-t*t/(2*v))/np.sqrt(2*np.pi*v)
            edges = np.concatenate([[-_FAR], jumps, [_FAR]])[:, None]
            checkpoint("iterating the state evolution", 3*EXP*len(edges)*len(t))
            chance, slope = (p*f for f in intervals(edges, o2[lo:hi] + c*t, s))
            for k, q, d in zip(which, chance, slope, strict=True):
                z[k, lo:hi] += q
                a[0, k, lo:hi] += q*t/v - c*d
                a[1, k, lo:hi] += d
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return self.mixed @ z[:, back], self.mixed @ a[:, :, back]

    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M), in the frame of its eigenvectors."""
        F = np.zeros((2, 2))
        for weight, z, (one, two) in self.sliced(M, fineness):
            share = np.where(z > 1e-200, weight/np.where(z > 1e-200, z, 1.0), 0.0)
            F += [[np.sum(p*q*share) for q in (one, two)] for p in (one, two)]
        return unfolded(F, M, self.alike)

    def errors(self, M: Array) -> float:
        """How often the Bayes classifier of two labels is wrong."""
        return float(sum(weight @ z.min(axis=0) for weight, z, _ in self.sliced(M, 0.7)))

    def sliced(self, M: Array, fineness: float) -> Iterator[tuple[Array, Array, Any]]:
        """(weights, Z, [A_i]) over slices of the omegas."""
        omega, weight = eigen_nodes(M, 0.8*fineness, alike=self.alike)
        for k in range(0, len(omega), _SLICE):
            part = slice(k, k + _SLICE)
            z, a = self.chances(omega[part], np.eye(2) - M)
            yield weight[part], z, a

    def g_out(self, y: Array, omega: Array, V: Array) -> Array:
        """g_out at labels (n,) and fields (n, 2)."""
        rows = np.argmin(np.abs(np.asarray(y, dtype=float)[:, None] - self.labels), axis=1)
        z, a = self.chances(omega, V)
        n = np.arange(len(rows))
        return ratio(a[:, rows, n].T, z[rows, n])


def _fibres(of: Callable[[Sequence[Array]], Array], labels: Array, panel: float,
            cuts: Array) -> list[tuple[float, float, Array, Array]]:
    """(z1, its weight, the jumps in z2, the level between them): between the cuts in z1, and lines of another word."""
    scan = np.linspace(-_REACH - 0.011, _REACH + 0.013, _SCAN)  # not on the jumps of everyday targets

    def kind(x: Array, t: Array) -> Array:
        return np.asarray(np.argmin(np.abs(of([x, t])[..., None] - labels), axis=-1))

    def word(x: float) -> tuple[int, ...]:
        row = kind(np.full(_SCAN, x), scan)
        return tuple(row[np.concatenate([[True], np.diff(row) != 0])])

    lines = np.linspace(-_REACH - 0.007, _REACH + 0.003, _LINES)
    words = [word(x) for x in lines]
    turns = list(cuts)  # floor(z1) + floor(z2): the same labels in the same order on both sides
    for (a, b), (wa, wb) in zip(pairwise(lines), pairwise(words), strict=True):
        if wa == wb:
            continue
        for _ in range(46):
            middle = (a + b)/2
            a, b = (middle, b) if word(middle) == wa else (a, middle)
        turns.append((a + b)/2)
    ends = distinct(np.clip([-_REACH, *turns, _REACH], -_REACH, _REACH))
    xs, ws = near_knots(ends, panel, (9, 4), panel, _ORDER)
    return [(float(x), float(c), *_jumps(kind, x, scan)) for x, c in zip(xs, ws, strict=True) if c > 0]


def _jumps(kind: Callable[[Array, Array], Array], x: float, scan: Array) -> tuple[Array, Array]:
    """(where the label jumps on the line z1 = x, the label between)."""
    row = kind(np.full(len(scan), x), scan)
    at = np.flatnonzero(np.diff(row))
    a, b, left = scan[at], scan[at + 1], row[at]
    for _ in range(50):
        middle = (a + b)/2
        same = kind(np.full(len(middle), x), middle) == left
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    return (a + b)/2, np.concatenate([row[:1], row[at + 1]])


def few_values(of: Callable[[Sequence[Array]], Array], r: int) -> Array | None:
    """The labels of a target that takes few values, seen at many points, also far out; None if it takes many."""
    z = np.random.default_rng(0).standard_normal((r, 8000))*np.linspace(1.0, _WIDER, 8000)
    found = np.unique(np.round(of(list(z)), 10))
    return found if len(found) <= _FEW else None
