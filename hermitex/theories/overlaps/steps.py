r"""P(z in a box | omega), z ~ N(omega, V), V a full matrix: the labels of variables that enter by steps only.

Boxes of two variables by Owen's T, P(z_1 < a, z_2 < b) = (Phi(h) + Phi(k))/2 - T(h, a_h) - T(k, a_k) - delta [Owen 1956];
a third variable by nodes between its steps. The slopes in omega are one-dimensional and lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, owens_t

from hermitex.symbolic.budget import checkpoint
from hermitex.theories.overlaps.channel import EXP, FiniteOutput
from hermitex.theories.overlaps.frames import eigen_nodes
from hermitex.theories.overlaps.grid import Array, panels

_ROOT = np.sqrt(2*np.pi)
_REACH = 7.0


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
        return [p.reshape(len(cells[0]), -1) for p in self._boxes(omega, V, fineness)]

    def _boxes(self, omega: Array, V: Array, fineness: float) -> list[Array]:
        """[P, dP/domega_1, ...] over the cells, each (*cells, n)."""
        cuts = [a.cuts for a in self.grid.axes]
        if self.r == 2:
            return boxes(cuts[0], cuts[1], omega, V)
        v, c = V[2, 2], V[:2, 2]/V[2, 2]
        inner = V[:2, :2] - np.outer(c, c)*v
        z, dz = panels(cuts[2], 2.5*fineness*np.sqrt(v), 8)
        cell = np.searchsorted(cuts[2], z)
        z, dz, cell = (x[cell < len(cuts[2])] for x in (z, dz, cell))  # beyond the last step is what all other cells leave
        total = [np.zeros((len(cuts[0]) + 1, len(cuts[1]) + 1, len(cuts[2]) + 1, len(omega))) for _ in range(4)]
        for x, w, k in zip(z, dz, cell, strict=True):
            away = x - omega[:, 2]
            near = np.flatnonzero(np.abs(away) < _REACH*np.sqrt(v))
            if not near.size:
                continue
            t = away[near]
            p = w*np.exp(-t*t/(2*v))/np.sqrt(2*np.pi*v)
            P, one, two = boxes(cuts[0], cuts[1], omega[near, :2] + t[:, None]*c, inner)
            for out, value in zip(total, (P, one, two, P*t/v - c[0]*one - c[1]*two), strict=True):
                out[:, :, k, near] += p*value
        whole = (*boxes(cuts[0], cuts[1], omega[:, :2], V[:2, :2]), 0.0)
        for out, value in zip(total, whole, strict=True):
            out[:, :, -1] = value - out.sum(axis=2)
        return total


def boxes(first: Array, second: Array, omega: Array, V: Array) -> list[Array]:
    """[P(z in box), d/domega_1, d/domega_2], each (boxes along z1, along z2, n), z ~ N(omega, V) in the plane."""
    s1, s2 = np.sqrt(np.diag(V))
    rho = V[0, 1]/(s1*s2)
    root = np.sqrt(1 - rho*rho)
    n = len(omega)
    h = np.concatenate([np.full((1, n), -np.inf), (first[:, None] - omega[:, 0])/s1, np.full((1, n), np.inf)])
    k = np.concatenate([np.full((1, n), -np.inf), (second[:, None] - omega[:, 1])/s2, np.full((1, n), np.inf)])
    checkpoint("iterating the state evolution", 10*EXP*len(h)*len(k)*n)
    below = np.zeros((len(h), len(k), n))
    below[-1], below[:, -1] = ndtr(k), ndtr(h)
    below[1:-1, 1:-1] = below_both(h[1:-1, None], k[None, 1:-1], rho)
    with np.errstate(invalid="ignore"):
        h, k = h[:, None], k[None]
        across = [np.where(np.isfinite(h), -np.exp(-h**2/2)/(_ROOT*s1)*ndtr((k - rho*h)/root), 0.0),
                  np.where(np.isfinite(k), -np.exp(-k**2/2)/(_ROOT*s2)*ndtr((h - rho*k)/root), 0.0)]
    return [np.diff(np.diff(b, axis=0), axis=1) for b in (below, *across)]


def below_both(h: Array, k: Array, rho: float) -> Array:
    """P(x < h, y < k) of two standard normals of correlation rho.

    >>> round(float(below_both(np.array(0.0), np.array(0.0), 0.5)), 12)
    0.333333333333
    """
    h, k = (np.where(np.abs(x) < 1e-150, 1e-150, x) for x in (h, k))
    root = np.sqrt(1 - rho*rho)
    with np.errstate(over="ignore"):
        tails = owens_t(h, (k/h - rho)/root) + owens_t(k, (h/k - rho)/root)
    found = (ndtr(h) + ndtr(k))/2 - tails - np.where((h > 0) == (k > 0), 0.0, 0.5)
    return np.asarray(np.maximum(found, 0.0))
