"""nu_a(y | u) = int phi(v1) sum over cells (v2 between neighbouring lines) He_a phi: discrete labels over a plane.

The switches are linear in v2, so at fixed (u, v1) the cells are intervals between lines v2 = l_k(u, v1) and their
moments exact; in v1 the integrand is analytic between the crossings of the lines. For committees given their mean,
sign(u + v1 v2), and their like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from sympy import Abs, Dummy, Expr, Heaviside, Symbol, preorder_traversal, sign

from hermitex.exponents.laws.density import WINDOW, Index, Law, array_function
from hermitex.exponents.laws.discrete import indices
from hermitex.kernels.panel_rules import distinct_sorted, graded_nodes, split, zeros_on


def discrete_over_planes(g: Expr, hidden: Sequence[Symbol]) -> list[Expr] | None:
    """The switch arguments of a g that depends on the hidden variables through signs of forms linear in the last one.

    A sign of signs adds no switch.
    """
    found = {e for e in preorder_traversal(g) if isinstance(e, (sign, Heaviside)) and not e.args[0].has(Abs, sign, Heaviside)}
    marked = g.xreplace({e: Dummy() for e in found})
    if not found or marked.has(*hidden):
        return None
    arguments = [e.args[0].expand() for e in found if e.args[0].has(*hidden)]
    last = hidden[-1]
    linear = all(a.is_polynomial(last) and a.as_poly(last).degree() <= 1 for a in arguments)
    return arguments if linear else None


class Strips:
    """The laws of a discrete label at fixed u: `switches` as `discrete_over_planes` gives them."""

    def __init__(self, g: Expr, switches: Sequence[Expr], given: Sequence[Symbol], hidden: Sequence[Symbol],
                 drop: Sequence[Index]) -> None:
        last = hidden[-1]
        self.g = array_function(g, *given, *hidden)
        self.lines = [tuple(array_function(a.coeff(last, k), *given, hidden[0]) for k in (0, 1)) for a in switches]
        self.indices = [a for a in indices(2) if a not in drop]

    def law(self, u: Sequence[float]) -> Law:
        """The law given u: atoms only."""
        labels, nu = self.masses(u)
        atoms = tuple((float(y), nu[:, n]) for n, y in enumerate(labels))
        return Law(tuple(self.indices), lambda y: np.zeros((len(self.indices), len(y))), 0.0, 0.0, (), (), atoms, False)

    def masses(self, u: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """The labels, and nu_a of each given u, shape (indices, labels)."""
        v1, w1 = self._nodes(u)
        with np.errstate(all="ignore"):
            lines = np.stack([-c(*u, v1) / b(*u, v1) for c, b in self.lines], axis=1)
        lines = np.where(np.isnan(lines), -WINDOW, lines)
        ends = np.full((len(v1), 1), WINDOW)
        edges = np.sort(np.clip(np.concatenate([lines, -ends, ends], axis=1), -WINDOW, WINDOW), axis=1)
        low, high = edges[:, :-1], edges[:, 1:]
        middle = (low + high) / 2
        label = self.g(*u, v1[:, None], middle)
        empty = high - low < 1e-15
        values = np.unique(np.round(label[~empty], 9))
        cells = [(np.abs(label - y) < 1e-8) & ~empty for y in values]
        return values, np.array([[np.sum(m[c]) for c in cells] for m in self._moments(low, high, v1, w1)])

    def _nodes(self, u: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Panels in v1 cut where two lines cross, or where a line runs along v2."""
        functions: list[Callable] = [lambda v, b=b: b(*u, v) for _, b in self.lines]
        functions += [lambda v, c=c: c(*u, v) for c, _ in self.lines]
        functions += [lambda v, p=p, q=q: p[0](*u, v) * q[1](*u, v) - q[0](*u, v) * p[1](*u, v)
                      for p, q in combinations(self.lines, 2)]
        points = 801  # 0.022 apart on the window; chosen by trial
        cuts = distinct_sorted(np.array([-WINDOW, 0.0, WINDOW, *zeros_on(functions, np.linspace(-WINDOW, WINDOW, points) + 1e-5)]))
        order = 16  # points of a panel: with a width of 1.5 exact to rounding for exp(-x^2/2)
        depth = 5  # halvings toward a cut
        width = 1.5  # of a panel
        nodes, w = graded_nodes(split(cuts, width), order, depth)
        return nodes, w * np.exp(-nodes**2 / 2) / np.sqrt(2 * np.pi)

    def _moments(self, low: np.ndarray, high: np.ndarray, v1: np.ndarray, w1: np.ndarray) -> list[np.ndarray]:
        from scipy.special import ndtr

        p, q = (np.exp(-e * e / 2) / np.sqrt(2 * np.pi) for e in (low, high))
        inner = (ndtr(high) - ndtr(low), p - q, low * p - high * q)
        outer = (w1, w1 * v1, w1 * (v1 * v1 - 1))
        return [outer[a.count(0)][:, None] * inner[a.count(1)] for a in self.indices]
