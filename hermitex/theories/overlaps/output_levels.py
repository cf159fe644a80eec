r"""A/Z at y = g(x): A = sum_b w_b (x_b - omega)/V N(x_b; omega, V), Z = sum_b w_b N(x_b; omega, V), w_b = 1/|g'(x_b)|, g(x_b) = y.

The label of a smooth variable x, through its level sets; other variables may choose, by their cells, which function of x it is.
F = E over x ~ N(0, 1) and omega ~ N(M x, M V) of (A/Z)^2: in this order the inverse square roots of the label's density at
critical values are gone, and the preimages do not depend on M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hermitex.exponents.laws.density import WINDOW
from hermitex.exponents.laws.level_nodes import LevelNodes, branches_and_plateaus, level_nodes, preimages
from hermitex.kernels.normals import normal_nodes
from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.cell_grid import Array, LabelAxis, LabelGrid, contracted
from hermitex.theories.overlaps.channel import EXP, FiniteOutput, Output, safe_ratio
from hermitex.theories.overlaps.label_structure import LabelSections


@dataclass(frozen=True, eq=False)
class LevelOutput(Output):
    """The label g(x) of one variable, or g(x, cells of others); V is diagonal."""

    structure: LabelSections
    r: int

    @cached_property
    def smallest(self) -> Array:  # type: ignore[override]
        """V of the smooth variable down to 1e-6, where it counts as known; of steps as far as a grid of their fields goes."""
        return np.where(np.arange(self.r) == self.structure.place, 1e-6, {1: 1e-6, 2: 1e-3}.get(self.r, 4e-3))

    @cached_property
    def perfect(self) -> Array:  # type: ignore[override]
        """The smooth variable can be known exactly."""
        return np.arange(self.r) == self.structure.place

    @cached_property
    def branches(self) -> list[tuple[int, Any]]:
        """(pattern, monotone branch) of every pattern."""
        return [(p, b) for p, (found, _) in enumerate(self._cut) for b in found]

    @cached_property
    def _cut(self) -> list[tuple[list[Any], list[tuple[float, float, float]]]]:
        return [branches_and_plateaus(p.f, self.structure.x, -WINDOW, WINDOW) for p in self.structure.patterns]

    @cached_property
    def atoms(self) -> FiniteOutput | None:
        """The labels of positive probability: plateaus, as intervals of x times cells."""
        flat = [(y, lo, hi, p) for p, (_, found) in enumerate(self._cut) for y, lo, hi in found]
        if not flat:
            return None
        cuts = np.unique([e for _, lo, hi, _ in flat for e in (lo, hi) if np.isfinite(e)])
        x_axis = LabelAxis(cuts, True)
        middle = x_axis.nodes(1.0)[0]
        labels = np.unique(np.round([y for y, *_ in flat], 12))
        cells = self.structure.patterns[0].cells.shape
        table = np.zeros((len(labels), len(middle), *cells))
        for y, lo, hi, p in flat:
            k = int(np.argmin(np.abs(labels - y)))
            table[k, (middle > lo) & (middle < hi)] += self.structure.patterns[p].cells
        table = np.moveaxis(table, 1, 1 + self.structure.place)
        axes = list(self.structure.others)
        axes.insert(self.structure.place, x_axis)
        return FiniteOutput(LabelGrid(tuple(axes), lambda _: table), labels, r=self.r)

    @cached_property
    def _nodes(self) -> LevelNodes:
        return level_nodes(self._functions, 12, analytic=False)

    @cached_property
    def _functions(self) -> list[Any]:
        return [b for _, b in self.branches]

    def second(self, M: Array, fineness: float = 1.0) -> Array:
        """F(M) for a diagonal M."""
        k, m = self.structure.place, np.diag(M)
        mx, v = m[k], 1 - m[k]
        x, w, branch, pre, logs = self._nodes
        own = np.array([p for p, _ in self.branches], dtype=int)[branch]
        total = np.zeros((self.r, self.r)) if self.atoms is None else self.atoms.second(M, fineness)
        if not len(x):
            return total
        step = 0.17  # of the trapezoidal rule over a standard normal: exp(-2 pi^2/h^2) is below rounding
        s = np.arange(-8, 8 + 1e-9, step*fineness) if mx > 0 else np.zeros(1)
        ws = np.exp(-s*s/2)/np.exp(-s*s/2).sum()
        slopes, wu = self._cells(np.delete(m, k), fineness)
        apart, known = self._apart(slopes, wu), v <= 1.001*self.smallest[k]
        chunk = 3_000_000  # numbers in one array: 24 MB
        size = max(1, chunk//(len(s)*max(1 if known else len(wu), len(self.branches))))
        for i in range(0, len(x), size):
            part = slice(i, i + size)
            pairs = (w[part, None]*ws).ravel()
            kept = pairs > 1e-15
            omega = (mx*x[part, None] + np.sqrt(mx*v)*s).ravel()[kept]
            row = np.repeat(np.arange(len(x))[part], len(s))[kept]
            checkpoint("iterating the state evolution", len(row)*(EXP*len(self.branches) + len(apart)*len(wu)*self.r))
            z, a = self._sums(pre[row], logs[row], omega, v)
            total += self._row_sums(z, a, own[row], pairs[kept], slopes, wu, apart, known)
        return total

    def _row_sums(self, z: Array, a: Array, own: Array, weight: Array, slopes: list[Array], wu: Array, apart: Array,
                  known: bool) -> Array:
        """sum over rows and cells of weight P_own A_i A_j/Z^2; rows that only their own pattern explains are summed at once."""
        k, n = self.structure.place, np.arange(len(z))
        alone = (z[n, own] >= (1 - 1e-15)*z.sum(axis=1)) | known
        F = np.zeros((self.r, self.r))
        is_x = (np.arange(self.r) == k).astype(int)
        for p, pattern in enumerate(apart):
            mine = alone & (own == p)
            g = a[mine, p]/np.where(z[mine, p] > 0, z[mine, p], 1.0)
            sums = np.array([weight[mine].sum(), weight[mine] @ g, weight[mine] @ g**2])
            F += pattern*sums[np.add.outer(is_x, is_x)]
        if alone.all():
            return F
        z, a, own, weight = z[~alone], a[~alone], own[~alone], weight[~alone]
        Z = z @ slopes[0]
        A = [z @ d for d in slopes[1:]]
        A.insert(k, a @ slopes[0])
        share = np.where(Z > 1e-100, weight[:, None]*wu*slopes[0][own]/np.where(Z > 1e-100, Z, 1.0)**2, 0.0)
        for i in range(self.r):
            for j in range(self.r):
                F[i, j] += float(np.sum(A[i]*A[j]*share)) if j <= i else 0.0
        return np.tril(F) + np.tril(F, -1).T

    def _sums(self, points: Array, logs: Array, omega: Array, v: float) -> tuple[Array, Array]:
        """(sum_b w_b N(x_b), sum_b w_b N(x_b) (x_b - omega)/v) of each pattern, up to a common factor: (n, patterns)."""
        away = points - omega[:, None]
        power = logs - away**2/(2*v)
        top = power.max(axis=1, keepdims=True)
        W = np.exp(power - np.where(np.isfinite(top), top, 0.0))
        member = np.zeros((len(self.branches), len(self.structure.patterns)))
        member[np.arange(len(self.branches)), [p for p, _ in self.branches]] = 1.0
        return W @ member, (W*away/v) @ member

    def _cells(self, m: Array, fineness: float) -> tuple[list[Array], Array]:
        """[P(pattern | omega_u), its slopes in omega_u], each (patterns, n), and the weights of the omega_u."""
        cells = np.stack([p.cells for p in self.structure.patterns])
        nodes = [normal_nodes(x, 1 - x, 1.5*fineness) for x in m]
        factors = [a.probabilities(o, 1 - x) for a, (o, _), x in zip(self.structure.others, nodes, m, strict=True)]
        weight = np.ones(1)
        for _, w in nodes:
            weight = (weight[:, None]*w).ravel()
        found = contracted(cells.reshape(-1, cells.shape[-1]), cells.shape[:-1], factors) if factors else [cells]
        return [f.reshape(len(cells), -1) for f in found], weight

    def _apart(self, slopes: list[Array], wu: Array) -> Array:
        """E over the cells' fields of P_p s_i s_j, s_i = dP_p/P_p and 1 in the place of x: (patterns, r, r)."""
        found = np.empty((len(self.structure.patterns), self.r, self.r))
        for p, chance in enumerate(slopes[0]):
            s = [d[p]/np.where(chance > 0, chance, 1.0) for d in slopes[1:]]
            s.insert(self.structure.place, np.ones_like(chance))
            found[p] = np.einsum("u,iu,ju->ij", wu*chance, np.array(s), np.array(s))
        return found

    def g_out(self, y: Array, omega: Array, V: Array) -> Array:
        """g_out at labels (n,) and fields (n, r); of V only the diagonal counts."""
        y, k, v = np.asarray(y, dtype=float), self.structure.place, np.diag(V)
        points, logs = preimages(self._functions, y)
        z, a = self._sums(points, logs, omega[:, k], v[k])
        cells = LabelGrid(self.structure.others, lambda _: np.stack([p.cells for p in self.structure.patterns]))
        chance = cells.at(np.delete(omega, k, axis=1), np.delete(v, k)) if self.structure.others else [np.ones((1, len(y)))]
        Z = np.einsum("np,pn->n", z, chance[0])
        A = [np.einsum("np,pn->n", z, d) for d in chance[1:]]
        A.insert(k, np.einsum("np,pn->n", a, chance[0]))
        found = safe_ratio(np.stack(A, axis=1), Z)
        if self.atoms is not None:
            near = np.min(np.abs(y[:, None] - self.atoms.labels), axis=1) <= 1e-9*(1 + np.abs(y))
            if near.any():
                found[near] = self.atoms.g_out(y[near], omega[near], np.diag(v))
        return found
