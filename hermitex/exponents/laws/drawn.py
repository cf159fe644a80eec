"""nu_a(y|u) = int p(y|u, v) He_a(v) phi(v) dv: the couplings of a user's channel P(y|z), over a grid in what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel
from hermitex.exponents.laws.blocks import zeros_by_flips
from hermitex.exponents.laws.density import WINDOW
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.linearised import Couplings, Second, of_masses
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.budget import checkpoint

_COUNTS = {1: (400, 240), 2: (120, 90), 3: (44, 36)}  # nodes in each variable, and fewer to compare with


class Drawn:
    """The couplings given u, by a product grid in the hidden variables, halved once.

    Raises
    ------
    NoClosedForm : more than three hidden variables enter P(y|z).
    """

    def __init__(self, channel: Channel, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> None:
        self.channel = channel
        used = [x for x in hidden if channel.p.has(x)]
        if len(used) > 3:
            raise NoClosedForm("alpha_c", "a channel P(y|z) of more than three variables is not integrated",
                               "Write it as a named channel of g(z)")
        self.law = lambdify((channel.y, *given, *used), channel.p, modules=["numpy", "scipy"])
        spots = {list(hidden).index(v): n for n, v in enumerate(used)}
        drop = zeros_by_flips(channel.p, used, {v: i for i, v in enumerate(hidden)})
        self.indices = [a for a in indices(len(hidden)) if set(a) <= set(spots) and a not in drop]
        self.grids = [self._grid(n, spots) for n in (_COUNTS[len(used)] if used else ())]

    def _grid(self, count: int, spots: dict[int, int]) -> tuple[list[np.ndarray], np.ndarray]:
        x, w = _panels(count)
        z = [g.ravel() for g in np.meshgrid(*[x] * len(spots), indexing="ij")]
        weight = np.prod(np.meshgrid(*[w] * len(spots), indexing="ij"), axis=0).ravel()
        he = [np.prod([_he(a.count(i), z[spots[i]]) for i in set(a)] or [np.ones_like(weight)], axis=0) * weight
              for a in self.indices]
        return z, np.stack(he)

    def second(self, u: Sequence[float] = ()) -> Second:
        """The couplings of orders one and two at u."""
        if not self.grids:
            return Second({}, 0.0)
        one, two = (self._couplings(u, *grid) for grid in self.grids)
        return Second(one, max((abs(one[key] - two[key]) for key in one), default=0.0))

    def _couplings(self, u: Sequence[float], z: list[np.ndarray], he: np.ndarray) -> Couplings:
        def masses(label: float) -> np.ndarray:
            checkpoint("integrating over the labels")
            with np.errstate(all="ignore"):
                p = np.asarray(self.law(label, *u, *z), dtype=float)
            return he @ np.broadcast_to(np.nan_to_num(p), he.shape[1:])

        if self.channel.finite:
            return of_masses(self.indices, np.array([masses(float(v)) for v in self.channel.support]).T)
        labels, steps = _label_grid(self.channel.support)
        return of_masses(self.indices, np.array([masses(v) * s for v, s in zip(labels, steps, strict=True)]).T)


def _label_grid(support: Any) -> tuple[np.ndarray, np.ndarray]:
    if support == "integers":
        return np.arange(400.0), np.ones(400)
    h = 1 / 24
    t = np.arange(-3.2, 3.2 + h / 2, h)
    return np.sinh(np.pi / 2 * np.sinh(t)), h * np.pi / 2 * np.cosh(t) * np.cosh(np.pi / 2 * np.sinh(t))


def _panels(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre panels on the window, broken at 0."""
    x, w = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(-WINDOW, WINDOW, 2 * max(1, count // 20) + 1)
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half + half * x).ravel()
    return nodes, (half * w).ravel() * np.exp(-nodes**2 / 2) / np.sqrt(2 * np.pi)


def _he(k: int, z: np.ndarray) -> np.ndarray:
    return (np.ones_like(z), z, z * z - 1)[k]
