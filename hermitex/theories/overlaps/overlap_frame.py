r"""M = R diag(m) R^T: the frame of an overlap, in which the z_i given omega are independent, and the reflections that it shows.

g(G z) = g(z) and G M G^T = M make Z(y, G omega) = Z(y, omega): where R^T G R is a reflection of the axes of the frame, half of the
fields tell all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hermitex.kernels.normals import nonnegative_nodes, normal_nodes
from hermitex.theories.overlaps.cell_grid import Array

_SAME = 1e-9  # eigenvalues, and products of symmetries, that differ by less agree to rounding


class Frame(NamedTuple):
    """Eigenvalues m, eigenvectors R as columns; the reflections of its axes under which g stays (`even`), or changes its sign."""

    m: Array
    R: Array
    even: tuple[tuple[int, ...], ...] = ()
    odd: tuple[tuple[int, ...], ...] = ()

    @property
    def halved(self) -> tuple[int, ...]:
        """Axes that nonnegative fields describe wholly."""
        rows = [np.array([s < 0 for s in signs]) for signs in self.even]
        found: list[int] = []
        for i in range(len(self.m)):  # elimination over the two-element field
            pivot = next((row for row in rows if row[i]), None)
            if pivot is not None:
                found.append(i)
                rows = [row ^ pivot if row[i] else row for row in rows if row is not pivot]
        return tuple(found)

    @property
    def shown(self) -> Array:
        """1 where an entry of F in this frame may differ from zero."""
        signs = np.array([*self.even, *self.odd, (1,)*len(self.m)])
        return np.asarray((signs[:, :, None]*signs[:, None] > 0).all(axis=0))

    def back(self, F: Array) -> Array:
        """A matrix of the frame in the variables of the target."""
        return np.asarray(self.R @ F @ self.R.T)


def frame_of(M: Array, even: Sequence[Array] = (), odd: Sequence[Array] = ()) -> Frame:
    """The frame of M; where eigenvalues agree, the one in which the most symmetries are reflections.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> frame_of(0.3*np.eye(2), [swap]).even
    ((-1, 1),)
    """
    m, R = np.linalg.eigh(M)
    blocks = np.split(np.arange(len(m)), np.flatnonzero(np.diff(m) > _SAME) + 1)
    for b in blocks:
        m[b] = m[b].mean()
    m = np.where(m < 1e-14, 0.0, np.minimum(m, 1.0))
    tried = [R]
    if len(blocks) < len(m):  # within a block what eigh returns is arbitrary
        kept = [G for G in (*even, *odd) if np.abs(G @ M - M @ G).max() < _SAME and np.abs(G - G.T).max() < _SAME]
        last = np.diag(np.sqrt(np.arange(len(m)) + 1.0))
        tried = [_split([R[:, b] for b in blocks], [G, *kept, last]) for G in (last, *kept)]
    tried = [Q*_orientation(Q) for Q in tried]
    found = [Frame(m, Q, _reflections(Q, even), _reflections(Q, odd)) for Q in tried]
    return max(found, key=lambda f: (len(f.halved), len(f.even) + len(f.odd)))


def frame_of_axes(m: Array, even: Sequence[Array] = ()) -> Frame:
    """The frame of diag(m) whose axes are the variables themselves.

    >>> frame_of_axes(np.array([0.2, 0.2]), [-np.eye(2)]).halved
    (0,)
    """
    R = np.eye(len(m))
    return Frame(m, R, _reflections(R, even))


def _split(blocks: list[Array], by: Sequence[Array]) -> Array:
    """Eigenvectors within each block of one symmetric matrix after another."""
    for G in by:
        new = []
        for B in blocks:
            if B.shape[1] == 1:
                new.append(B)
                continue
            e, Q = np.linalg.eigh(B.T @ G @ B)
            new += np.split(B @ Q, np.flatnonzero(np.diff(e) > _SAME) + 1, axis=1)
        blocks = new
    return np.concatenate(blocks, axis=1)


def _orientation(R: Array) -> Array:
    """Signs that make the first large entry of each column positive."""
    first = np.argmax(np.abs(R) > 0.9*np.abs(R).max(axis=0), axis=0)
    return np.sign(R[first, np.arange(R.shape[1])])


def _reflections(R: Array, group: Sequence[Array]) -> tuple[tuple[int, ...], ...]:
    found = set()
    straight = 1e-9  # a diagonal of +-1 to rounding is a reflection
    for G in group:
        D = R.T @ G @ R
        if np.abs(np.abs(np.diag(D)) - 1).max() < straight:
            found.add(tuple(int(s) for s in np.sign(np.diag(D))))
    return tuple(sorted(found))


def field_nodes(m: Array, coarse: float, halved: Sequence[int] = (), reach: float = 8.5,
                v: Array | None = None) -> list[tuple[Array, Array]]:
    """Nodes and weights of omega ~ N(0, m_i) along each axis, blurred by v_i (1 - m_i); half of them along a halved one."""
    found = []
    for i, (x, u) in enumerate(zip(m, 1 - m if v is None else v, strict=True)):
        o, w = normal_nodes(x, u, coarse)
        kept = np.abs(o) <= reach*np.sqrt(x) + 1e-300
        o, w = o[kept], w[kept]
        found.append(nonnegative_nodes(o, w) if i in halved else (o, w))
    return found


def eigen_nodes(M: Array, coarse: float, *, blur: float | None = None,
                alike: Sequence[Array] = ()) -> tuple[Array, Array]:
    """Nodes (n, r) and weights for omega ~ N(0, M), M any positive semidefinite matrix; `blur`: one V for all directions.

    alike : G that carry what is summed at omega to what is summed at G omega; where they reflect the axes half of the fields do
    """
    frame = frame_of(M, alike)
    nodes = field_nodes(frame.m, coarse, frame.halved, v=None if blur is None else np.full(len(M), blur))
    omega = np.stack([g.ravel() for g in np.meshgrid(*(o for o, _ in nodes), indexing="ij")], axis=1) @ frame.R.T
    weight = np.prod(np.meshgrid(*(w for _, w in nodes), indexing="ij"), axis=0).ravel()
    unseen = 1e-16  # of the largest weight: a node below adds no digit
    kept = weight > unseen*weight.max()
    return omega[kept], weight[kept]
