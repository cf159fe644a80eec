"""nu_a(y | u) = int phi(v1) sum over cells (v2 between neighbouring lines) He_a phi: discrete labels over a plane.

The switches are linear in v2, so at fixed (u, v1) the cells are intervals between lines and their moments exact; in v1
the integrand is analytic between the crossings of the lines. For committees given their mean, and their like.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.special import ndtr
from sympy import Abs, Expr, Heaviside, Symbol, lambdify, preorder_traversal, sign

from hermitex.exponents.discrete_labels import indices
from hermitex.exponents.label_density import WINDOW, Index, distinct

_ORDER = 24
_WIDTH = 1.5


def discrete_over_planes(g: Expr, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> list[Expr] | None:
    """The linear switch arguments of a g that depends on the hidden variables through signs of them only, else None."""
    from sympy import Dummy

    found = {e for e in preorder_traversal(g) if isinstance(e, (sign, Heaviside))}
    marked = g.xreplace({e: Dummy() for e in found})
    if not found or marked.has(*hidden) or any(e.args[0].has(Abs) for e in found):
        return None
    arguments = [e.args[0] for e in found if e.args[0].has(*hidden)]
    names = (*given, *hidden)
    linear = all(a.is_polynomial(*names) and a.as_poly(*names).total_degree() == 1 for a in arguments)
    return arguments if linear else None


class Strips:
    """The masses of every label at fixed u."""

    def __init__(self, g: Expr, switches: Sequence[Expr], given: Sequence[Symbol], hidden: Sequence[Symbol],
                 drop: Sequence[Index]) -> None:
        self.g = lambdify([*given, *hidden], g, modules=["numpy", "scipy"])
        self.rows = np.array([[float(a.coeff(v)) for v in (*given, *hidden)] + [float(a.subs({v: 0 for v in
                              (*given, *hidden)}))] for a in switches])
        self.indices = [a for a in indices(2) if a not in drop]

    def masses(self, u: Sequence[float]) -> np.ndarray:
        """nu_a of each label given u, shape (indices, labels)."""
        n = len(u)
        constant = self.rows[:, :n] @ np.array(u) + self.rows[:, -1]
        a, b = self.rows[:, n], self.rows[:, n + 1]
        v1, w1 = self._nodes(a, b, constant)
        with np.errstate(divide="ignore", invalid="ignore"):
            lines = np.where(b != 0, -(a * v1[:, None] + constant) / np.where(b != 0, b, 1.0), -WINDOW)
        edges = np.sort(np.clip(np.concatenate([lines, np.full((len(v1), 1), -WINDOW), np.full((len(v1), 1), WINDOW)],
                                               axis=1), -WINDOW, WINDOW), axis=1)
        low, high = edges[:, :-1], edges[:, 1:]
        middle = (low + high) / 2
        where = np.broadcast_to(v1[:, None], middle.shape)
        label = np.asarray(self.g(*u, where.ravel(), middle.ravel()), dtype=float)
        label = np.broadcast_to(label, (where.size,)).reshape(middle.shape)
        moments = self._moments(low, high, v1, w1)
        empty = high - low < 1e-15
        values = np.unique(np.round(label[~empty], 9))
        return np.array([[np.sum(m[(np.abs(label - y) < 1e-8) & ~empty]) for y in values] for m in moments])

    def _nodes(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Panels in v1 cut where two lines cross or a line runs along v2."""
        cuts = [-WINDOW, 0.0, WINDOW]
        cuts += [-c[i] / a[i] for i in range(len(a)) if b[i] == 0 and a[i] != 0]
        for i, j in combinations(range(len(a)), 2):
            slope = a[i] * b[j] - a[j] * b[i]
            if slope:
                cuts.append(-(c[i] * b[j] - c[j] * b[i]) / slope)
        cuts = distinct(np.array([x for x in cuts if -WINDOW <= x <= WINDOW]))
        edges = np.concatenate([np.linspace(p, q, int(np.ceil((q - p) / _WIDTH)) + 1)[:-1]
                                for p, q in zip(cuts[:-1], cuts[1:], strict=True)] + [cuts[-1:]])
        x, w = np.polynomial.legendre.leggauss(_ORDER)
        half = np.diff(edges)[:, None] / 2
        nodes = (edges[:-1, None] + half + half * x).ravel()
        return nodes, (half * w).ravel() * np.exp(-nodes**2 / 2) / np.sqrt(2 * np.pi)

    def _moments(self, low: np.ndarray, high: np.ndarray, v1: np.ndarray, w1: np.ndarray) -> list[np.ndarray]:
        p, q = (np.exp(-e * e / 2) / np.sqrt(2 * np.pi) for e in (low, high))
        inner = (ndtr(high) - ndtr(low), p - q, low * p - high * q)
        outer = (w1, w1 * v1, w1 * (v1 * v1 - 1))
        return [outer[a.count(0)][:, None] * inner[a.count(1)] for a in self.indices]
