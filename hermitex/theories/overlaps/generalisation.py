r"""E(g(z) - E[g(z)|omega])^2, and for labels of +-1 P(sign(E[y|omega]) != y): the Bayes generalisation error at overlap M.

A fresh sample shows its field omega ~ N(0, M) only, z ~ N(omega, 1 - M); the error is that of the clean label.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Abs, Expr, Heaviside, Max, Min, Symbol, ceiling, floor, sign
from sympy.core.relational import Relational

from hermitex.exponents.channels import Channel, Named, channel
from hermitex.exponents.label import shown, split_products
from hermitex.theories.overlaps.channel import FiniteOutput, full_points, is_diagonal
from hermitex.theories.overlaps.fibres import FibreOutput, few_values
from hermitex.theories.overlaps.frames import eigen_nodes
from hermitex.theories.overlaps.grid import Array, LabelAxis, LabelGrid, normal_nodes
from hermitex.theories.overlaps.steps import StepOutput
from hermitex.theories.overlaps.structure import axis, indicator, label_values, values

_SAME = 1e-6
_FINE, _COARSER, _DOUBT = 0.06, (1.4, 1.6, 2.0), 2.0  # edges lie between nodes as chance has it, and so does one difference
_ROUGH = 2e6  # cells
_APART = np.array([0.0437, -0.0911, 0.1373])
_CELLS = 6e7


class Generalisation:
    """The error of the Bayes estimate of the clean label; nan where the label has no second moment.

    `kind`: "classification" (two labels, +-1), or "regression"
    """

    def __init__(self, g: Expr, law: Named | Channel, names: Sequence[Symbol], coarser: float = 1.0) -> None:
        clean = split_products(sign(g) if isinstance(law, Named) and law.name == "sign" else
                               shown(g, law) if isinstance(law, Named) else g)
        self.names, self.r, self.g = tuple(names), len(names), clean
        self.axes = tuple(axis(clean, x) for x in names)
        of = values(clean, names)
        steps = all(a.steps for a in self.axes)
        few = few_values(of, self.r) if not steps and self.r == 2 else None
        self.labels = label_values(clean, names, self.axes) if steps else np.zeros(0) if few is None else few
        self.kind = "classification" if len(self.labels) == 2 and np.allclose(self.labels, [-1, 1]) else "regression"
        self.rough = not len(self.labels) and _mixes(clean)
        self.coarser = coarser
        if self.rough:  # nodes alike in all variables lie on z1 = z2
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
        """How far the error may be off where the label has edges off the planes z_i = c: by coarser grids; else 0."""
        if not self.rough:
            return 0.0
        return _DOUBT*max(abs(self(M) - other(M)) for other in self._others)

    @cached_property
    def _others(self) -> tuple[Generalisation, ...]:
        return tuple(Generalisation(self.g, channel(), self.names, f) for f in _COARSER)

    def _error(self, M: Array) -> float:
        M = np.where(np.abs(M) < 1e-14, 0.0, M)
        if self.kind == "regression" and not np.isfinite(self._second_moment):
            return float("nan")
        known = np.linalg.eigvalsh(np.eye(self.r) - M) if not is_diagonal(M) else 1 - np.diag(M)
        if np.all(known < 1e-12):
            return 0.0
        if self.kind == "classification" and self._discrete is not None:
            return self._discrete.errors(self._off_one(M))
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
        while np.prod([len(a.nodes(a.rung(float(np.sqrt(u))))[0]) for a, u in zip(self.axes, scale*v, strict=True)]) > _CELLS:
            scale *= 2
        return scale

    def _fine(self, axes: Sequence[LabelAxis], v: Array) -> float:
        """Of nodes for a label with edges off the axes: fine, as far as their cells are of a bearable number; 1 for others."""
        if not self.rough:
            return 1.0
        f = _FINE if self.r == 2 else 1.0
        while np.prod([len(a.nodes(a.rung(float(np.sqrt(u))), f)[0]) for a, u in zip(axes, v, strict=True)]) > _ROUGH:
            f *= 1.25
        return f*self.coarser

    @cached_property
    def _discrete(self) -> FiniteOutput | None:
        """The law of a clean label of few values."""
        if not len(self.labels):
            return None
        grid = LabelGrid(self.axes, indicator(self.g, self.names, self.labels))
        if not all(a.steps for a in self.axes):
            return FibreOutput.through(grid, self.labels, values(self.g, self.names), self.labels, np.eye(len(self.labels)))
        return (StepOutput if self.r > 1 else FiniteOutput)(grid, self.labels, r=self.r)

    def estimate(self, omega: Array, V: Array) -> Array:
        """The Bayes estimate of the clean label at fields (n, r): E[g|omega], or its sign for labels of +-1."""
        if isinstance(self._discrete, FibreOutput):
            mean = self.labels @ self._discrete.chances(omega, V)[0]
        elif is_diagonal(V):
            v = np.maximum(np.diag(V), 1e-4)
            mean = np.concatenate([self.grid.at(o, v)[0][0] for o in np.array_split(omega, max(1, len(omega)//500))])
        else:
            mean = self._mean(omega, V, 1.0 if self.r < 3 else 2.2)
        return np.sign(mean) if self.kind == "classification" else mean

    def clean(self, z: Array) -> Array:
        """The clean label at z (n, r)."""
        return values(self.g, self.names)(list(z.T))

    def _off_one(self, M: Array, v: float = 2e-4) -> Array:
        """An overlap nearer to 1 than the nodes resolve, by 1 - v."""
        if is_diagonal(M):
            return np.diag(np.minimum(np.diag(M), 1 - v))
        m, R = np.linalg.eigh(M)
        return np.asarray((R*np.clip(m, 0.0, 1 - v)) @ R.T)

    @cached_property
    def _second_moment(self) -> float:
        """E g^2, or nan: it must not come from the edge of the window."""
        if self._discrete is not None:
            nothing = np.zeros((self.r, self.r))
            return float(sum(w @ (self.labels**2 @ z) for w, z, _ in self._discrete.sliced(nothing, 1.0)))
        zero = np.zeros(1)
        of, fine = values(self.g, self.names), self._fine(self.axes, np.ones(self.r))
        grid = LabelGrid(self.axes, lambda points: of(points)[None]**2)
        whole = float(np.ravel(grid.moments([zero]*self.r, np.ones(self.r), fine, slopes=False)[0])[0])
        inner = LabelGrid(self.axes, lambda points: np.where(sum(np.square(p) for p in points) < 49, of(points)**2, 0.0)[None])
        steps = all(a.steps for a in self.axes)
        near = whole if steps else float(np.ravel(inner.moments([zero]*self.r, np.ones(self.r), fine, slopes=False)[0])[0])
        return whole if np.isfinite(whole) and abs(whole - near) <= _SAME*whole else float("nan")

    def _explained(self, M: Array) -> float:
        """E of E[g|omega]^2."""
        if is_diagonal(M) and not isinstance(self._discrete, FibreOutput):
            m = np.diag(M)
            nodes = [normal_nodes(x, 1 - x) for x in m]
            mean = self.grid.moments([o for o, _ in nodes], 1 - m, self._fine(self.axes, 1 - m), slopes=False)[0][0]**2
            for _, w in nodes:
                mean = np.tensordot(w, mean, axes=(0, 0))
            return float(mean)
        if self._discrete is not None:
            return float(sum(w @ (self.labels @ z)**2 for w, z, _ in self._discrete.sliced(M, 1.0)))
        coarse = 1.0 if self.r < 3 else 2.2
        if self.rough or not self._jumps:
            return self._in_its_frame(M, 0.15 if self.r < 3 else 1.2)
        omega, weight = eigen_nodes(M, coarse, blur=float(1 - np.linalg.eigvalsh(M)[-1]))
        return float(weight @ self._mean(omega, np.eye(self.r) - M, coarse)**2)

    @cached_property
    def _jumps(self) -> bool:
        """Whether the label jumps at a cut of an axis: nodes that are not broken there see it badly."""
        of, z = values(self.g, self.names), np.random.default_rng(0).standard_normal((self.r, 50))
        for i, a in enumerate(self.axes):
            for c in a.cuts:
                here, there = (of([np.full(50, c + e) if j == i else x for j, x in enumerate(z)]) for e in (-1e-9, 1e-9))
                if np.abs(np.subtract(here, there)).max() > 1e-6:
                    return True
        return False

    def _in_its_frame(self, M: Array, fineness: float) -> float:
        """E of E[g|omega]^2 along the eigenvectors of M, where the z_i given omega are independent."""
        m, R = np.linalg.eigh(M)
        m = np.where(m < 1e-14, 0.0, m)
        of = values(self.g, self.names)

        def turned(u: Sequence[Array]) -> Array:
            return np.asarray(of([sum(c*x for c, x in zip(row, u, strict=True)) for row in R]))[None]

        nodes = [normal_nodes(x, 1 - x, max(fineness, 0.6)) for x in m]
        grid = LabelGrid(tuple(LabelAxis(np.array([c])) for c in (_APART if self.rough else np.zeros(self.r))[:self.r]), turned)
        if self.rough:
            fineness = self._fine(grid.axes, 1 - m)
        mean = grid.moments([o for o, _ in nodes], 1 - m, fineness, slopes=False)[0][0]**2
        for _, w in nodes:
            mean = np.tensordot(w, mean, axes=(0, 0))
        return float(mean)

    def _mean(self, omega: Array, V: Array, coarse: float) -> Array:
        """E[g|omega] at fields (n, r), z ~ N(omega, V) for any V."""
        points, dz = full_points(self.axes, float(np.sqrt(np.linalg.eigvalsh(V)[0])), coarse)
        L = np.linalg.inv(np.linalg.cholesky(V))
        density: Any = dz*np.prod(np.diag(L))/(2*np.pi)**(self.r/2)*values(self.g, self.names)(list(points.T))
        away = ((omega[k:k + 200, None] - points[None]) @ L.T for k in range(0, len(omega), 200))
        return np.concatenate([np.exp(-np.sum(a**2, axis=-1)/2) @ density for a in away])


def _mixes(g: Expr) -> bool:
    """Whether g has an edge where two variables or more meet: |z1 - z2|, or a case decided by both."""
    return any(len(e.free_symbols) > 1 for e in g.atoms(sign, Abs, Max, Min, floor, ceiling, Heaviside, Relational))
