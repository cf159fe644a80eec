r"""E(g(z) - E[g(z)|omega])^2, and for labels of +-1 P(sign(E[y|omega]) != y): the Bayes generalisation error at overlap M.

A fresh sample shows its field omega ~ N(0, M) only, z ~ N(omega, 1 - M); the error is that of the clean label.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from sympy import Expr, Symbol, sign
from sympy.core.relational import Relational

from hermitex.exponents.channels import Channel, NamedChannel, channel
from hermitex.exponents.label import split_products, visible_target
from hermitex.exponents.mean import in_space
from hermitex.kernels.normals import normal_nodes
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.theories.overlaps.cell_grid import Array, LabelAxis, LabelGrid, averaged
from hermitex.theories.overlaps.channel import FiniteOutput, is_diagonal
from hermitex.theories.overlaps.discrete_labels import FibreOutput, few_values
from hermitex.theories.overlaps.label_structure import axis, indicator, label_values, target_function
from hermitex.theories.overlaps.output_choice import listed_output

# places of the grid's origin on each axis, so that no node is at an edge of everyday targets
_APART = np.array([0.0437, -0.0911, 0.1373])


class Generalisation:
    """The error of the Bayes estimate of the clean label; nan where the label has no second moment.

    `kind`: "classification" (two labels, +-1), or "regression"
    """

    def __init__(self, g: Expr, law: NamedChannel | Channel, names: Sequence[Symbol], coarser: float = 1.0) -> None:
        clean = split_products(sign(g) if isinstance(law, NamedChannel) and law.name == "sign" else
                               visible_target(g, law) if isinstance(law, NamedChannel) else g)
        self.names, self.r, self.g = tuple(names), len(names), clean
        self.axes = tuple(axis(clean, x) for x in names)
        of = target_function(clean, names)
        steps = all(a.steps for a in self.axes)
        few = few_values(of, self.r) if not steps and self.r == 2 else None
        self.labels = label_values(clean, names, self.axes) if steps else np.zeros(0) if few is None else few
        self.kind = "classification" if len(self.labels) == 2 and np.allclose(self.labels, [-1, 1]) else "regression"
        self.rough = not len(self.labels) and _mixes(clean)
        self.coarser = coarser
        if self.rough:  # nodes alike in all variables are on z1 = z2
            self.axes = tuple(a if a.steps else LabelAxis(np.sort([*a.cuts, c]), False)
                              for a, c in zip(self.axes, _APART[:self.r], strict=True))
        self._kept: dict[bytes, float] = {}
        self.grid = LabelGrid(self.axes, lambda points: of(points)[None])

    def __call__(self, M: Array) -> float:
        """The error at the overlap M; kept, since branches share their overlaps."""
        key = np.asarray(M, dtype=float).tobytes()
        if key not in self._kept:
            self._kept[key] = self._error(M)
        return self._kept[key]

    def doubt(self, M: Array) -> float:
        """The error of the error if edges, of the label or of its estimate, are not along the axes: by coarser grids; else 0."""
        times = 2.0  # the largest difference: those of chance underrate the error
        if self.kind == "classification" and not self._law.by_axes(M) and self(M):
            return times*abs(self(M) - self._law.errors(self._off_one(M), 0.7))
        if not self.rough:
            return 0.0
        return times*max(abs(self(M) - other(M)) for other in self._others)

    @cached_property
    def _others(self) -> tuple[Generalisation, ...]:
        coarser = (1.4, 1.6, 2.0)  # grids to compare with; a single difference may be small by chance
        return tuple(Generalisation(self.g, channel(), self.names, f) for f in coarser)

    def _error(self, M: Array) -> float:
        M = np.where(np.abs(M) < 1e-14, 0.0, M)
        if self.kind == "regression" and not np.isfinite(self._second_moment):
            return float("nan")
        known = np.linalg.eigvalsh(np.eye(self.r) - M) if not is_diagonal(M) else 1 - np.diag(M)
        if np.all(known < 1e-12):
            return 0.0
        if self.kind == "classification":
            return self._law.errors(self._off_one(M))
        if np.any(known < 1e-12):  # V -> 0 by Richardson's extrapolation: the parts linear and quadratic in V cancel
            near, middle, far = (self._explained(self._off_one(M, v)) for v in (1e-3, 2e-3, 4e-3))
            return max(0.0, self._second_moment - (8*near - 6*middle + far)/3)
        scale, V = self._bearable(known), np.eye(self.r) - M
        if scale == 1:
            return max(0.0, self._second_moment - self._explained(self._off_one(M)))
        t = scale*np.array([1.0, 1.5, 2.0])
        found = [self._second_moment - self._explained(np.eye(self.r) - u*V) for u in t]
        return max(0.0, float(np.linalg.solve(t[:, None]**[1, 2, 3], found).sum()))  # a cubic in V, through 0

    def _bearable(self, v: Array) -> float:
        """By how much V is to grow, so that nodes of its size fill the space."""
        scale = 1.0
        cells = 6e7  # of a grid: 0.5 GB
        while self.grid.size(scale*v) > cells:
            scale *= 2
        return scale

    def _fine(self, grid: LabelGrid, v: Array, usual: float = 1.0) -> float:
        """Of nodes: the usual, for a label with edges off the axes fine as far as their cells are of a bearable number."""
        if not self.rough:
            return usual
        finest = 0.06  # fineness of the smallest grid, whose nodes are seventeen times as many on an axis
        f = finest if self.r == 2 else 1.0
        rough = 2e6  # cells of a grid for a label with jumps
        while grid.size(v, f) > rough:
            f *= 1.25
        return f*self.coarser

    @cached_property
    def _law(self) -> FiniteOutput:
        """The law of a clean label of few values; of any other a list of one, whose chance is the mean of the label."""
        if not len(self.labels):
            return FiniteOutput(self.grid, np.ones(1), r=self.r, least=-np.inf)  # a mean may be negative
        grid = LabelGrid(self.axes, indicator(self.g, self.names, self.labels))
        return listed_output(grid, self.labels, (target_function(self.g, self.names), self.labels, np.eye(len(self.labels))))

    def estimate(self, omega: Array, V: Array) -> Array:
        """The Bayes estimate of the clean label at fields (n, r): E[g|omega], or its sign for labels of +-1."""
        V = np.diag(np.maximum(np.diag(V), 1e-4)) if is_diagonal(V) else V
        mean = self._law.labels @ self._law.likelihood(omega, V)
        return np.sign(mean) if self.kind == "classification" else mean

    def clean(self, z: Array) -> Array:
        """The clean label at z (n, r)."""
        return target_function(self.g, self.names)(list(z.T))

    def _off_one(self, M: Array, v: float = 2e-4) -> Array:
        """An overlap nearer to 1 than the nodes resolve, by 1 - v."""
        m, R = np.linalg.eigh(M)
        return np.asarray((R*np.clip(m, 0.0, 1 - v)) @ R.T)

    @cached_property
    def _second_moment(self) -> float:
        """E g^2, or nan: it must not come from the edge of the window."""
        if len(self.labels):
            nothing = np.zeros((self.r, self.r))
            return float(sum(w @ (self.labels**2 @ z) for w, z, _ in self._law.sliced(nothing, 1.0)))
        if in_space(self.g, self.names, 2) is False:
            return float("nan")  # 1/z, of which nodes sample a part
        of, one = target_function(self.g, self.names), np.ones(self.r)

        def squares(points: Sequence[Array]) -> Array:
            square = of(points)**2
            return np.stack([square, np.where(sum(np.square(p) for p in points) < 49, square, 0.0)])

        found, = next(LabelGrid(self.axes, squares).moments([np.zeros(1)]*self.r, one, self._fine(self.grid, one), slopes=False))
        whole, near = np.ravel(found)
        same = 1e-6  # relative: the window and a narrower one
        return float(whole) if np.isfinite(whole) and abs(whole - near) <= same*whole else float("nan")

    def _explained(self, M: Array) -> float:
        """E of E[g|omega]^2, along the eigenvectors of M, where the z_i given omega are independent, if no label jumps there."""
        straight, fineness, coarse = is_diagonal(M), 1.0, 1.0
        full = len(self.labels) or (self._jumps and not self.rough)
        if isinstance(self._law, FibreOutput) or (full and not straight):
            return float(sum(w @ (self._law.labels @ z)**2 for w, z, _ in self._law.sliced(M, 1.0)))
        m, R = (np.diag(M), np.eye(self.r)) if straight else np.linalg.eigh(M)
        m, of, grid = np.where(m < 1e-14, 0.0, m), target_function(self.g, self.names), self.grid
        if not straight:
            fineness = 0.15 if self.r < 3 else 1.2
            coarse = max(fineness, 0.6)
            grid = LabelGrid(tuple(LabelAxis(np.array([c])) for c in (_APART if self.rough else np.zeros(self.r))[:self.r]),
                             lambda u: of([sum(c*x for c, x in zip(row, u, strict=True)) for row in R])[None])
        nodes = [normal_nodes(x, 1 - x, coarse) for x in m]
        mean, = next(grid.moments([o for o, _ in nodes], 1 - m, self._fine(grid, 1 - m, fineness), slopes=False))
        return averaged(mean[0]**2, nodes)

    @cached_property
    def _jumps(self) -> bool:
        """Does the label jump at a cut of an axis? Nodes that are not broken there resolve it badly."""
        of, z = target_function(self.g, self.names), np.random.default_rng(0).standard_normal((self.r, 50))
        for i, a in enumerate(self.axes):
            for c in a.cuts:
                here, there = (of([np.full(50, c + e) if j == i else x for j, x in enumerate(z)]) for e in (-1e-9, 1e-9))
                if np.abs(np.subtract(here, there)).max() > 1e-6:
                    return True
        return False


def _mixes(g: Expr) -> bool:
    """Does g have an edge of two variables or more: |z1 - z2|, or a case decided by both?"""
    return any(len(e.free_symbols) > 1 for e in g.atoms(*SWITCHES, Relational))
