r"""P(y_k | omega) = int N(z1; omega_1, V_11) P(z2: g(z1, z2) = y_k | z1, omega) dz1: labels with curved borders.

On each line z1 = const the label jumps at points that are found to rounding, so that z2 is integrated exactly; the nodes in z1 are
graded towards the lines at which jumps appear or vanish, where they move like square roots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hermitex.kernels.panels import distinct, near_knots
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.channel import EXP, FiniteOutput
from hermitex.theories.overlaps.frames import eigen_nodes
from hermitex.theories.overlaps.grid import Array, intervals, rung

_REACH = 8.0
_SCAN, _LINES = 1601, 321
_ORDER = 10
_IN_A_STEP = 4  # jumps that are looked for in one step of the scan
_MEET = 1e-3  # of two jumps, as they are followed from both sides
_NEAR = 7.5
_WIDER, _FEW = 2.5, 60
_FAR = 1e3  # where probabilities and their slopes are 0 and 1 exactly


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
            self._kept[panel] = _fibres(self.of, self.levels, panel, self.grid.axes[0].cuts)
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
        for x, w, jumps, which in self._fibres(self._panel(v, s, c)*fineness):
            lo, hi = np.searchsorted(o1, [x - _NEAR*np.sqrt(v), x + _NEAR*np.sqrt(v)])
            if lo == hi:
                continue
            t = x - o1[lo:hi]
            p = w*np.exp(-t*t/(2*v))/np.sqrt(2*np.pi*v)
            edges = np.concatenate([[-_FAR], jumps, [_FAR]])[:, None]
            checkpoint("iterating the state evolution", 3*EXP*len(edges)*len(t))
            chance, slope = (p*f for f in intervals(edges, o2[lo:hi] + c*t, s))
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
        return rung(min(1.8*np.sqrt(v), 2.5*s/max(self.steep, abs(c), 0.1), 0.9))

    def by_axes(self, V: Array) -> bool:
        return False

    def _fields(self, M: Array, fineness: float) -> tuple[Array, Array]:
        return eigen_nodes(M, 0.8*fineness, alike=self.alike)

    def cells(self, V: Array, fineness: float) -> Any:
        """The levels of the target, where `mixed` is the table."""
        return self.levels, None

    def _table(self, cells: Any, y: Array | None = None) -> Array:
        return self.mixed


def _fibres(of: Callable[[Sequence[Array]], Array], labels: Array, panel: float,
            cuts: Array) -> list[tuple[float, float, Array, Array]]:
    """(z1, its weight, the jumps in z2, the level between them): between the cuts in z1, lines of another word and crossings."""
    scan = np.linspace(-_REACH - 0.011, _REACH + 0.013, _SCAN)  # not on the jumps of everyday targets

    order = np.argsort(labels)
    between = (labels[order][1:] + labels[order][:-1])/2

    def kind(x: Array, t: Array) -> Array:
        return np.asarray(order[np.searchsorted(between, of([x, t]))])

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
    turns += _crossings(kind, lines, words, scan)
    ends = distinct(np.clip([-_REACH, *turns, _REACH], -_REACH, _REACH))
    xs, ws = near_knots(ends, panel, (9, 4), panel, _ORDER)
    xs, ws = xs[ws > 0], ws[ws > 0]
    return [(float(x), float(c), *found) for x, c, found in zip(xs, ws, _jumps(kind, xs, scan), strict=True)]


def _crossings(kind: Callable[[Array, Array], Array], lines: Array, words: Sequence[tuple[int, ...]], scan: Array) -> list[float]:
    """Where two jumps meet and part again, with the same labels in the same order on both sides: what is between them has a kink.

    From either side their distance is followed down to a line on which the scan still tells them apart, and on to zero.
    """
    found: list[float] = []
    if max(map(len, words)) < 3:
        return found
    apart = [np.diff(jumps) for jumps, _ in _jumps(kind, lines, scan)]
    for k in range(1, len(lines) - 2):
        if len(words[k]) < 3 or len({words[k + i] for i in (-1, 0, 1, 2)}) > 1 or len({len(g) for g in apart[k - 1:k + 3]}) > 1:
            continue
        gaps = np.array(apart[k - 1:k + 3]).T
        for n in np.flatnonzero((gaps[:, 0] > gaps[:, 1]) & (gaps[:, 3] > gaps[:, 2])):
            meets = [_met(kind, scan, int(n), words[k], *lines[[k + i, k + i + side]], *gaps[n, [1 + i, 1 + i + side]])
                     for i, side in ((0, -1), (1, 1))]
            if all(lines[k] <= x <= lines[k + 1] for x in meets) and abs(meets[0] - meets[1]) < _MEET:
                found.append(round(sum(meets)/2, 9))
    return found


def _met(kind: Callable[[Array, Array], Array], scan: Array, n: int, word: tuple[int, ...], x: float, before: float, gap: float,
         wider: float) -> float:
    """Where the n-th distance comes to zero, on from `gap` at x and `wider` at the line before."""
    for _ in range(4):
        zero = x - gap*(x - before)/(gap - wider)
        part = max(0.25, 3*(scan[1] - scan[0])/gap)  # of the way that is left
        if part > 0.5:
            break
        (jumps, which), = _jumps(kind, np.array([closer := zero + (x - zero)*part]), scan)
        if tuple(which) != word:
            break
        before, wider, x, gap = x, gap, closer, float(np.diff(jumps)[n])
    return float(zero)


def _jumps(kind: Callable[[Array, Array], Array], x: Array, scan: Array) -> list[tuple[Array, Array]]:
    """(where the label jumps on the line z1 = x, the label between) for each x; two in one step of the scan are told apart."""
    x = np.asarray(x, dtype=float)
    rows = kind(*np.broadcast_arrays(x[:, None], scan))
    line, at = np.nonzero(np.diff(rows, axis=1))
    a, end, left, right = scan[at], scan[at + 1], rows[line, at], rows[line, at + 1]
    lines, jumps, then = [np.arange(len(x))], [np.full(len(x), -np.inf)], [rows[:, 0]]
    for _ in range(_IN_A_STEP):
        b = end
        for _ in range(50):
            middle = (a + b)/2
            same = kind(x[line], middle) == left
            a, b = np.where(same, middle, a), np.where(same, b, middle)
        new = kind(x[line], b)
        lines.append(line)
        jumps.append((a + b)/2)
        then.append(new)
        if not (more := new != right).any():
            break
        line, a, end, left, right = line[more], b[more], end[more], new[more], right[more]
    of, where, label = map(np.concatenate, (lines, jumps, then))
    order = np.lexsort((where, of))
    ends = np.searchsorted(of[order], np.arange(len(x) + 1))
    return [(where[order[p + 1:q]], label[order[p:q]]) for p, q in pairwise(ends)]


def few_values(of: Callable[[Sequence[Array]], Array], r: int) -> Array | None:
    """The labels of a target that takes few values, seen at many points, also far out; None if it takes many."""
    z = np.random.default_rng(0).standard_normal((r, 8000))*np.linspace(1.0, _WIDER, 8000)
    found = np.unique(np.round(of(list(z)), 10))
    return found if len(found) <= _FEW else None
