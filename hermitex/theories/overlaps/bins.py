r"""F_K(M) = sum_k E_omega[A_k A_k^T/P_k], P_k = P(y_k < g(z) < y_(k+1) | omega): a label of several variables through its bins.

What bins hide of F falls as the square of their width: pairs and quadruples of bins give F at twice and four times the width, and
Romberg's rule the limit. Z of the level surfaces themselves is never formed, so that kinks, plateaus and jumps of g need nothing
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from sympy import Expr, Symbol

from hermitex.kernels.histogram import NODE, REACH, Histogram, cell_planes, cell_weights, critical_points, histogram
from hermitex.kernels.level_sets import LevelSets
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array, contracted, scale_rung
from hermitex.theories.overlaps.channel import Output, sum_outer_products, tensor_product
from hermitex.theories.overlaps.label_structure import axis, target_function
from hermitex.theories.overlaps.overlap_frame import Frame, field_nodes, frame_of

# by the number of variables: the width of a cell, of sqrt(V) along each axis of the frame, and of a step of the fields
_CELL, _FIELDS, _FAR = {2: 0.029, 3: 0.25}, {2: 0.54, 3: 1.1}, 6.5
_BINS, _COARSE = {2: 200, 3: 64}, {2: 1.7, 3: 1.0}  # of F; how much wider the cells of g_out are
_DEAR = {2: 12.0, 3: 25.0}  # prod_i V_i^(-1/2) above which the nodes become coarser
_LEVELS, _RUN = 3, 4  # of Romberg's rule, which takes 2^2 bins together on its last
_SHARED = 1e-9  # symmetries hold to the rounding of their products
_ENTRIES = 200_000  # of an array of bins: 1.6 MB, which a cache of a processor holds
_SEEN, _NEAREST = 12.0, {2: 1e-3, 3: 2e-2}  # sqrt(V) from a field; the least V of cells for single fields


@dataclass(frozen=True, eq=False)
class BinnedOutput(Output):
    """The label g(z) of two variables or three; M may be any matrix.

    knots : labels at which the law of the label is singular;  atoms : labels of positive probability
    even, odd : the R with g(R z) = g(z), with g(R z) = -g(z)
    """

    g: Callable[[Sequence[Array]], Array]
    r: int
    sample: Array
    knots: tuple[float, ...] = ()
    atoms: tuple[float, ...] = ()
    even: tuple[Array, ...] = ()
    odd: tuple[Array, ...] = ()
    smallest: Any = 0.01
    together: float | None = 0.08
    perfect: Any = True
    nodes: int = 14
    beside: tuple[float, ...] = (1.4, 0.75)
    rough: float = 1.4
    digits: int = 5
    doubt: float = 3.0  # kinks and plateaus leave errors that fall with the width of the cells and change their sign
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def smooth(self) -> Any:
        """g."""
        return self.g

    @classmethod
    def of(cls, g: Expr, names: Sequence[Symbol], even: Sequence[Array] = (), odd: Sequence[Array] = ()) -> BinnedOutput:
        """From an expression; its atoms are the labels that many points share, its knots those of the origin and of its corners."""
        of, r = target_function(g, names), len(names)

        def finite(points: Sequence[Array]) -> Array:
            with np.errstate(all="ignore"):
                return np.nan_to_num(of(points), nan=0.0, posinf=1e290, neginf=-1e290)

        samples = 200_000  # their quantiles at 25 places are known to 1/450
        z = 1.2*np.random.default_rng(0).standard_normal((r, samples))  # wider than z, for the tails
        y = np.sort(finite(list(z[:, np.sum(z**2, axis=0) < REACH**2])))
        label, count = np.unique(np.round(y, 12), return_counts=True)
        beside_jump = 1e-11  # a label may end at a jump, on one side of it
        beside = [-beside_jump, 0.0, beside_jump]
        corners = np.meshgrid(*(np.add.outer(np.append(axis(g, x).cuts, 0.0), beside).ravel() for x in names))
        points = np.concatenate([np.stack([c.ravel() for c in corners], axis=1), critical_points(finite, r)])
        special = np.unique(np.round(np.ravel(finite(list(points.T))), 9))
        atoms = tuple(float(a) for a in label[count > 20])
        knots = tuple(float(k) for k in special if y[0] < k < y[-1] and not any(abs(k - a) < 1e-6*np.ptp(y) for a in atoms))
        pole = 1e3  # the largest label over its 0.9 quantile, from which cells are too wide next to a pole
        poles = np.abs(y[[0, -1]]).max() > pole*np.quantile(np.abs(y), 0.9)  # next to them cells are too wide for their labels
        found = cls(finite, r, y, knots, atoms, tuple(even), tuple(odd), digits=3 if poles else cls.digits)
        return found if r > 2 else replace(found, smallest=0.02, together=None, nodes=20, beside=(1.25, 1.4),
                                           rough=3.0, doubt=2.0)

    # -- bins -----------------------------------------------------------------------------------------------------------
    def edges(self, count: int, half: bool) -> list[Array]:
        """The edges of bins between knots, in runs of 4 n bins that are even in a smooth parameter; atoms have bins of their own.

        half : only the labels above zero
        """
        key = ("edges", count, half)
        atom = 1e-9  # of the labels' size: half the width of the bin of an atom
        if key not in self._kept:
            size = atom*max(1.0, float(np.quantile(np.abs(self.sample), 0.9)))
            inner = sorted([*self.knots, *(a + s for a in self.atoms for s in (-size, size))])
            ends = np.array([self.sample[0], *inner, self.sample[-1]])
            if half:
                ends = np.concatenate([[0.0], ends[ends > size/2]])
            within = [self.sample[(self.sample > a) & (self.sample < b)] for a, b in pairwise(ends)]
            share = np.sqrt([len(p)/len(self.sample) for p in within])*(np.diff(ends) > 3*size)
            self._kept[key] = [self._run(a, b, p, _RUN*max(1, int(np.ceil(count/_RUN*s))) if s > 1e-2 else 1)
                               for (a, b), p, s in zip(pairwise(ends), within, share, strict=True)]
        return list(self._kept[key])

    @staticmethod
    def _run(a: float, b: float, within: Array, count: int) -> Array:
        if count == 1:
            return np.array([a, b])
        knots = np.linspace(0, 1, 25)  # quantiles through which the edges of bins are interpolated, closer at the ends
        at = np.quantile(within, knots**2*(3 - 2*knots))
        at[[0, -1]] = a, b
        at = np.maximum.accumulate(at + 1e-13*max(abs(a), abs(b), b - a)*np.arange(len(at)))
        edges = PchipInterpolator(knots, at)(np.linspace(0, 1, count + 1))
        edges[[0, -1]] = a, b
        return np.asarray(edges)

    def table(self, frame: Frame, v: Array, fineness: float, count: int) -> Histogram:
        """The histogram over cells of this frame; its width changes by steps, so that it can be kept."""
        beside = 0.999  # what is hardly known, V = 1 - 2e-4, and what is unknown share their cells: one table serves slopes at zero
        h = _CELL[self.r]*fineness**(4 - self.r)*scale_rung(beside*np.sqrt(v))  # cells of a plane are cheap against bins and fields
        half = bool(frame.odd)
        folded = [i for i in range(self.r) if tuple(-1 if i == j else 1 for j in range(self.r)) in frame.even]
        key = ((np.round(frame.R, 9) + 0.0).tobytes(), h.tobytes(), count, half, *folded)  # -0.0 + 0.0 is 0.0
        if key not in self._kept:
            for old in [k for k in self._kept if isinstance(k[0], bytes)][:-3]:
                del self._kept[old]
            runs = self.edges(count, half)
            edges = np.concatenate([runs[0], *(run[1:] for run in runs[1:])])
            self._kept[key] = histogram(self.g, frame.R, h, edges, folded)
        return self._kept[key]  # type: ignore[no-any-return]

    # -- F --------------------------------------------------------------------------------------------------------------
    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M), in the frame of its eigenvectors."""
        frame = frame_of(M, self.even, self.odd)
        v = 1 - frame.m
        fineness *= max(1.0, (np.prod(v)**-0.5/_DEAR[self.r])**0.4)
        count = _RUN*round(_BINS[self.r]/fineness/_RUN)
        table = self.table(frame, v, fineness, count)
        F = self._in_frame(table, frame, fineness, count)
        unseen = self._unseen(frame)
        if unseen.any() and np.any(frame.m[unseen]):  # what the quadrature leaves of a block that is zero on this face
            face = frame._replace(m=np.where(unseen, 0.0, frame.m))
            F -= self._in_frame(table, face, fineness, count)*np.outer(unseen, unseen)
        return self._symmetric(frame.back(F), M)

    def _unseen(self, frame: Frame) -> Array:
        """Axes of the frame along which E[z|y] = 0: the symmetries leave no vector along them."""
        left = np.linalg.norm(np.mean(self.even or (np.eye(self.r),), axis=0) @ frame.R, axis=0)
        return left < _SHARED if np.all(np.minimum(left, np.abs(1 - left)) < _SHARED) else np.zeros(self.r, dtype=bool)

    def _in_frame(self, table: Histogram, frame: Frame, fineness: float, count: int) -> Array:
        """F in the frame, by Romberg's rule."""
        nodes = field_nodes(frame.m, _FIELDS[self.r]*fineness, frame.halved, _FAR)
        weight = tensor_product([w for _, w in nodes])
        moments = _BinMoments(table, [o for o, _ in nodes], 1 - frame.m)
        found = np.zeros((_LEVELS, self.r, self.r))  # by bins, by pairs, by quadruples
        for run in self._runs(count, bool(frame.odd)):
            for n, F in self._grouped(moments, run, weight):
                found[n] += F
        if frame.odd:
            found = 2*found
        for n in range(1, _LEVELS):
            found = found[:-1] + (found[:-1] - found[1:])/(4**n - 1)
        return np.asarray(found[0]*frame.shown)

    def _symmetric(self, F: Array, M: Array) -> Array:
        """F with the symmetries that M shares, which a frame keeps up to the quadrature only."""
        if fixing := [G for G in self.even if np.abs(G @ M - M).max() < _SHARED]:
            mean = np.mean(fixing, axis=0)  # E[z|y, omega] keeps the symmetries of omega: exactly zero where they leave no vector
            F = mean @ F @ mean.T
        shared = [G for G in (*self.even, *self.odd) if np.abs(G @ M - M @ G).max() < _SHARED]
        return np.mean([G @ F @ G.T for G in shared], axis=0) if shared else F

    def _runs(self, count: int, half: bool) -> Iterator[range]:
        """Places of bins that belong together; the parts beyond the first edge and the last are alone."""
        lengths = [len(run) - 1 for run in self.edges(count, half)]
        at = 1
        if not half:
            yield range(1)
        for n in lengths:
            yield range(at, at + n)
            at += n
        yield range(at, at + 1)

    @staticmethod
    def _grouped(moments: _BinMoments, run: range, weight: Array) -> Iterator[tuple[int, Array]]:
        """(0, F of each bin), (1, F of each pair), (2, F of each quadruple), summed; of a bin that is alone all agree."""
        least = 1e-11  # a bin with less probability at a field adds nothing to F
        step = 2**(_LEVELS - 1)*max(1, moments.at_once//2**(_LEVELS - 1))
        for start in range(run.start, run.stop, step):
            part = moments.of(range(start, min(start + step, run.stop)))
            for level in range(_LEVELS):
                if level and len(run) > 1:
                    part = part.reshape(len(part), -1, 2, *part.shape[2:]).sum(axis=2)
                yield level, sum_outer_products(part[1:], part[0], weight, least)

    # -- samples --------------------------------------------------------------------------------------------------------
    def g_out(self, y: Array, omega: Array, V: Array) -> Array:
        """g_out at labels (n,) and fields (n, r)."""
        return self.with_slopes(y, omega, V)[0]

    def with_slopes(self, y: Array, omega: Array, V: Array) -> tuple[Array, Array]:
        """V^{-1}(E z - omega) and V^{-1} Cov(z) V^{-1} - V^{-1} over the level sets of the labels, by the cells that they meet."""
        least = 1/np.diag(np.linalg.inv(V))  # along the axes, so that the next V finds the cells of this one
        scale = max(1.0, _NEAREST[self.r]/float(least.min()))  # nearer the label is a plane, and there g(V) is s g(s V)
        V, steps = scale*V, scale_rung(np.sqrt(scale*least))
        fineness = max(_COARSE[self.r], (1/float(np.prod(steps))/_DEAR[self.r])**0.3)  # some 10^6 cells at most
        h = _CELL[self.r]*fineness**(4 - self.r)*steps
        if self._kept.get("levels", (None,))[0] != h.tobytes():
            self._kept["levels"] = h.tobytes(), LevelSets(cell_planes(self.g, np.eye(self.r), h).thinned)
        seen, mean, spread = self._kept["levels"][1].moments(y, omega, white := np.linalg.inv(np.linalg.cholesky(V)))
        return scale*mean @ white, scale*(white.T @ (spread - np.eye(self.r)*seen[:, None, None]) @ white)


class _BinMoments:
    """P_k and its slopes on a tensor grid of fields."""

    def __init__(self, table: Histogram, fields: Sequence[Array], v: Array) -> None:
        self.table, self.factors = table, []
        for o, x, h, u in zip(fields, table.sides, table.widths, v, strict=True):
            s, B = np.sqrt(u), cell_weights(x, h)
            p, slope = np.zeros((2, len(o), B.shape[0]))
            for side in (1, -1) if x[0] > 0 else (1,):  # of a folded axis both sides
                t = (side*(x[:, None] + h*NODE).ravel() - o[:, None])/s
                part = np.where(np.abs(t) < _SEEN, np.exp(-t*t/2), 0.0)/(np.sqrt(2*np.pi)*s)  # products with 1e-300 take long
                p, slope = p + part, slope + part*t/s
            self.factors.append(((p @ B).T, (slope @ B).T))

    @property
    def at_once(self) -> int:
        """How many bins fit into one array."""
        return _ENTRIES//(int(np.prod(self.table.shape[:-1]))*self.factors[-1][0].shape[1])

    def of(self, bins: range) -> Array:
        """(P_k, dP_k/domega_1, ...), as the first axis, and the bins as the second."""
        *first, (last, _) = self.factors
        checkpoint("iterating the state evolution", 2*len(bins)*len(self.factors)*last.shape[1]*sum(p.size for p, _ in first))
        return np.array(contracted(self.table.rows(bins), (len(bins), *self.table.shape[:-1]), self.factors))
