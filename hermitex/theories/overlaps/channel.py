r"""g_out(y, omega) = d/domega log Z(y, omega), Z = int N(z; omega, V) P(y|z) dz, and F(M) = E[g_out g_out^T].

V = 1 - M, omega ~ N(0, M). An `Output` gives F(M) to the state evolution and g_out, sample by sample, to the algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from hermitex.kernels.normals import broken_nodes, merge_far_fields, panels
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array, LabelAxis, LabelGrid, averaged
from hermitex.theories.overlaps.overlap_frame import eigen_nodes, field_nodes, frame_of, frame_of_axes

_CHUNK = 4_000_000  # numbers in one array: 32 MB
EXP = 10  # products take the time of one exponential
LEAST = 1e-200  # a label less likely than this, given its field, does not occur
_FIELDS = {1: 0.5, 2: 0.75}  # F has poles in omega between what a label leaves of z: finer nodes where they cost little
_VAST = {1: 1.0, 2: 1.0, 3: 2.2}  # how much coarser the nodes of a full matrix are


class Output:
    """A label as the state evolution and the algorithm need it; a subclass says how its Z is integrated.

    smallest : the smallest V_ii that its nodes resolve, (r,) or one for all
    together : the smallest V in all directions at once, where that is more than `smallest`
    perfect : whether z_i can be known exactly at a finite alpha (a smooth label without noise), (r,) or one for all
    beside : fineness of the grids to which F(M) is compared, below 1 for a finer one
    doubt : how many times the largest difference from these F may be off
    rough : fineness of nodes that are so much cheaper that it is worth to start from their fixed points; 1 for none
    quick : whether F(M) off the diagonal costs so little that whole branches are followed for their transitions
    nodes : how many F(M) are worth their time for an interpolation along one overlap
    digits : of a transition that are worth saying
    """

    r: int
    smallest: Any = 1e-3
    perfect: Any = False
    nodes: int = 40
    quick: bool = False
    together: float | None = None
    beside: tuple[float, ...] = (0.75,)
    doubt: float = 1.0
    rough: float = 1.0
    digits: int = 8

    @property
    def smooth(self) -> Any:
        """g, of a list of arrays, where the label is g(z) itself and smooth almost everywhere; else None."""
        return None

    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M) = E[g_out g_out^T], shape (r, r)."""
        raise NotImplementedError

    def g_out(self, y: Array, omega: Array, V: Array) -> Array:
        """g_out at labels (n,) and fields (n, r): (n, r); not of labels that have denoisers of their own (`experiments`)."""
        raise NotImplementedError

    def with_slopes(self, y: Array, omega: Array, V: Array) -> tuple[Array, Array]:
        """g_out and dg_i/domega_j, (n, r, r), by differences."""
        slope = 1e-4  # of the width of z given omega: the difference that gives dg/domega
        g, small = self.g_out(y, omega, V), slope*np.sqrt(np.diag(V).min())
        return g, np.stack([(self.g_out(y, omega + small*axis, V) - g)/small for axis in np.eye(self.r)], axis=2)


def is_diagonal(M: Array) -> bool:
    """Are the off-diagonal entries exactly zero?"""
    return not np.any(M - np.diag(np.diag(M)))


@dataclass(frozen=True, eq=False)
class FiniteOutput(Output):
    r"""Labels y_1, ..., y_k, or nodes of a label with a density: F = E_omega sum_k A_k A_k^T/Z_k.

    grid : P(y_k | z), times the step of the labels where they are nodes;  labels : the list
    law : (y, points) -> P(y | points) of any labels; None if the list holds them all
    least : a chance of a label below this is what rounding leaves
    alike : R under which the label stays, or becomes another of the list
    """

    grid: LabelGrid
    labels: Array
    law: Any = None
    r: int = 1
    smallest: Any = 4e-4
    nodes: int = 40
    alike: tuple[Array, ...] = ()
    least: float = 0.0

    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M), on a tensor of omegas where M is diagonal, else in the frame of its eigenvectors."""
        m, along = np.diag(M), self.by_axes(M)
        frame = frame_of_axes(m, self.alike) if along else frame_of(M, self.alike)
        parts = self._along_axes(m, frame.halved, fineness) if along else self.sliced(M, fineness)
        F = sum((sum_outer_products(a, z, weight) for weight, z, a in parts), np.zeros((self.r, self.r)))
        return frame.back(frame.R.T @ F @ frame.R*frame.shown)  # what the other half of the fields cancels is zero

    def _along_axes(self, m: Array, halved: Sequence[int], fineness: float) -> Iterator[tuple[Array, Array, Any]]:
        """(weights, Z, [A_i]) on a tensor of omegas, some labels at a time."""
        nodes = self._fewer(field_nodes(m, _FIELDS.get(self.r, 1.0)*fineness, halved), m)
        weight = tensor_product([w for _, w in nodes])
        for z, *a in self.grid.moments([o for o, _ in nodes], 1 - m, fineness):
            yield weight, z, a

    def _fewer(self, nodes: Sequence[tuple[Array, Array]], m: Array) -> list[tuple[Array, Array]]:
        """Fields along each axis without the ones that no step of it affects."""
        return [merge_far_fields(o, w, a.cuts, float(np.sqrt(1 - x))) if a.steps else (o, w)
                for (o, w), a, x in zip(nodes, self.grid.axes, m, strict=True)]

    def errors(self, M: Array, fineness: float = 0.5) -> float:
        """E_omega min_k Z_k of two labels: how often the Bayes classifier is wrong."""
        if not self.by_axes(M):
            return float(sum(weight @ z.min(axis=0) for weight, z, _ in self.sliced(M, fineness)))
        m = np.diag(M)
        # Z_1 = Z_2 is a kink in omega: at the step if the target is odd about it, else the panels are fine enough.
        nodes = self._fewer([broken_nodes(x, 1 - x, a.cuts, 0.7) for x, a in zip(m, self.grid.axes, strict=True)], m)
        z, = next(self.grid.moments([o for o, _ in nodes], 1 - m, slopes=False))
        return averaged(z.min(axis=0), nodes)

    def sliced(self, M: Array, fineness: float) -> Iterator[tuple[Array, Array, Any]]:
        """(weights, Z, [A_i]) over slices of the omegas, any M."""
        V = np.eye(self.r) - M
        omega, weight = self._fields(M, fineness)
        cells = self.cells(V, fineness)
        table = self._table(cells)
        step = max(1, _CHUNK//(4*max(table.shape)))
        for k in range(0, len(omega), step):
            z, *a = (table @ p for p in self.chances(cells, omega[k:k + step], V, fineness))
            yield weight[k:k + step], np.where(z > self.least, z, 0.0), np.array(a)

    def _fields(self, M: Array, fineness: float) -> tuple[Array, Array]:
        blur = float(1 - np.linalg.eigvalsh(M)[-1])
        return eigen_nodes(M, _VAST[self.r]*fineness, blur=blur, alike=self.alike)

    def cells(self, V: Array, fineness: float) -> Any:
        """(points (n, r), their dz) at which the law is evaluated, every axis in panels."""
        return full_points(self.grid.axes, float(np.sqrt(np.linalg.eigvalsh(V)[0])), _VAST[self.r]*fineness)

    def _table(self, cells: Any, y: Array | None = None) -> Array:
        """P(y_k | cell) of the labels of the list, or of others, (k, cells)."""
        points, rows = list(cells[0].T), self.labels if y is None else y
        found = np.asarray(self.grid.law(points) if y is None else _each(self.law, y, points), dtype=float)
        return np.broadcast_to(found, (len(rows), len(cells[0])))

    def chances(self, cells: Any, omega: Array, V: Array, fineness: float) -> list[Array]:
        """[P(cell | omega), dP/domega_1, ...] at fields (n, r), each (cells, n); V any matrix."""
        points, dz = cells
        checkpoint("iterating the state evolution", len(omega)*len(points)*(EXP + (self.r + 1)*len(self.labels)))
        inverse, L = np.linalg.inv(V), np.linalg.inv(np.linalg.cholesky(V))
        p = kernel(points @ L.T, omega @ L.T)*(dz*np.prod(np.diag(L))/(2*np.pi)**(self.r/2))[:, None]
        return [p, *(p*(x[:, None] - o) for x, o in zip((points @ inverse).T, (omega @ inverse).T, strict=True))]

    def likelihood(self, omega: Array, V: Array) -> Array:
        """P(y_k | omega) at fields (n, r), any V: (k, n)."""
        if self.by_axes(V):
            parts = [self.grid.at(o, np.diag(V))[0] for o in np.array_split(omega, max(1, len(omega)//500))]
        else:
            cells = self.cells(V, 1.0)
            table = self._table(cells)
            parts = [table @ self.chances(cells, o, V, 1.0)[0] for o in np.array_split(omega, max(1, len(omega)//200))]
        return np.concatenate(parts, axis=1)

    def g_out(self, y: Array, omega: Array, V: Array) -> Array:
        """g_out at labels (n,) and fields (n, r)."""
        y = np.asarray(y, dtype=float)
        rows = np.argmin(np.abs(y[:, None] - self.labels), axis=1) if self.law is None else None
        along, fineness = self.by_axes(V), 1.0 if self.law is None else 1.5
        cells: Any = None if along else self.cells(V, fineness)
        table = np.zeros((0, 0)) if along or rows is None else self._table(cells)
        size = self.grid.size(np.diag(V), fineness) if along else len(cells[0])
        parts, step = [], max(1, _CHUNK//size)
        for k in range(0, len(y), step):
            part = slice(k, k + step)
            if along:
                grid = self.grid if rows is not None else LabelGrid(self.grid.axes, partial(_each, self.law, y[part]))
                z, *a = grid.at(omega[part], np.diag(V), np.arange(len(y[part])) if rows is None else rows[part], fineness)
            else:
                own = self._table(cells, y[part]) if rows is None else table[rows[part]]
                z, *a = (np.einsum("nc,cn->n", own, p) for p in self.chances(cells, omega[part], V, fineness))
            parts.append(safe_ratio(np.stack(a, axis=-1), np.where(z > self.least, z, 0.0)))
        return np.concatenate(parts)

    def by_axes(self, V: Array) -> bool:
        """Are the variables integrated one by one?"""
        return is_diagonal(V)


def tensor_product(weights: Sequence[Array]) -> Array:
    """The tensor product of weights."""
    return reduce(np.multiply.outer, weights)


def cell_probabilities(law: Any, y: Array, steps: Array, points: Sequence[Array]) -> Array:
    """P(y_k | points) dy_k."""
    p = _each(law, y, points)
    return p*steps.reshape(-1, *[1]*(p.ndim - 1))


def _each(law: Any, y: Array, points: Sequence[Array]) -> Array:
    """P(y_n | points), the label as the first axis."""
    return np.asarray(law(y.reshape(-1, *[1]*np.ndim(points[0])), points))


def safe_ratio(a: Array, z: Array) -> Array:
    """A/Z, and zero where the label could not have come about there in double precision."""
    return np.where(z[:, None] > LEAST, a/np.where(z > LEAST, z, 1.0)[:, None], 0.0)


def kernel(a: Array, b: Array) -> Array:
    """exp(-|a - b|^2/2) for all pairs."""
    return np.exp(-np.maximum(np.sum(a*a, axis=1)[:, None] + np.sum(b*b, axis=1) - 2*a @ b.T, 0)/2)


def sum_outer_products(a: Sequence[Array] | Array, z: Array, weight: Array, least: float = LEAST) -> Array:
    """sum over labels and omegas of weight A_i A_j/Z, (r, r), where Z is not below `least`."""
    seen = z > least
    share = np.where(seen, weight/np.where(seen, z, 1.0), 0.0).ravel()
    A = np.asarray(a).reshape(len(a), -1)
    return np.asarray((A*share) @ A.T)


def full_points(axes: Sequence[LabelAxis], s: float, fineness: float) -> tuple[Array, Array]:
    """Points (n, r) and their dz over all axes, every axis in panels broken at its cuts."""
    order = 10 if len(axes) < 3 else 6
    sides = [panels(a.cuts, 2.2*fineness*max(s, 0.05), order, 7.5 if len(axes) < 3 else 6.0) for a in axes]
    grid = np.meshgrid(*(x for x, _ in sides), indexing="ij")
    weight = np.prod(np.meshgrid(*(w for _, w in sides), indexing="ij"), axis=0).ravel()
    points = np.stack([g.ravel() for g in grid], axis=1)
    kept = np.sum(points**2, axis=1) < 75
    return points[kept], weight[kept]
