"""nu_a(y|u) = int p(y|u, v) He_a(v) phi(v) dv: the couplings of a user's channel P(y|z), over a grid in what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.channels import Channel
from hermitex.exponents.labels.law_check import DrawnLaw
from hermitex.exponents.laws.blocks import zeros_by_flips
from hermitex.exponents.laws.density import WINDOW
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.known import next_change, over_all_known
from hermitex.exponents.laws.linearised import Couplings, Second, largest, of_masses
from hermitex.exponents.laws.value import Value, measured
from hermitex.kernels.panels import on_panels
from hermitex.symbolic.budget import checkpoint

_MOST = 2  # known directions
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
        self.law = DrawnLaw(channel.p, channel.y, (*given, *used))
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
        """The couplings of orders one and two at u; the error: the grids in z, that of the labels, and what lies beyond them."""
        if not self.grids:
            return Second({}, 0.0)
        (one, lost), (two, _) = (self._couplings(u, *grid) for grid in self.grids)
        return Second(one, max((abs(one[key] - two[key]) for key in one), default=0.0) + lost)

    def _couplings(self, u: Sequence[float], z: list[np.ndarray], he: np.ndarray) -> tuple[Couplings, float]:
        """The couplings by one grid in z, and what the sum over the labels has lost."""
        def masses(label: float) -> np.ndarray:
            checkpoint("integrating over the labels")
            return he @ np.broadcast_to(np.nan_to_num(self.law(label, (*u, *z))), he.shape[1:])

        if self.channel.finite:
            return of_masses(self.indices, np.array([masses(float(v)) for v in self.channel.support]).T), 0.0
        labels, steps = _label_grid(self.channel.support)
        nu = np.array([masses(v) * s for v, s in zip(labels, steps, strict=True)]).T
        missing = abs(float(nu[0].sum()) - 1) * WINDOW**2  # of the labels beyond the last: E[z_i^2 - 1|y] is at most that
        found = of_masses(self.indices, nu)
        if self.channel.support == "integers":
            return found, missing
        coarser = [of_masses(self.indices, nu[:, ::skip] * skip) for skip in (8, 4, 2)]
        changes = [max((abs(a[key] - b[key]) for key in found), default=0.0) for a, b in pairwise([*coarser, found])]
        return found, next_change(changes) + missing


def _label_grid(support: Any) -> tuple[np.ndarray, np.ndarray]:
    if support == "integers":
        return np.arange(400.0), np.ones(400)
    h = 1 / 24
    t = np.arange(-3.2, 3.2 + h / 2, h)
    return np.sinh(np.pi / 2 * np.sinh(t)), h * np.pi / 2 * np.cosh(t) * np.cosh(np.pi / 2 * np.sinh(t))


def _panels(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre panels on the window, broken at 0."""
    nodes, w = (a.ravel() for a in on_panels(np.linspace(-WINDOW, WINDOW, 2 * max(1, count // 20) + 1), 10))
    return nodes, w * np.exp(-nodes**2 / 2) / np.sqrt(2 * np.pi)


def _he(k: int, z: np.ndarray) -> np.ndarray:
    return (np.ones_like(z), z, z * z - 1)[k]


# -- once directions are known -------------------------------------------------------------------------------------------
def later_stage(channel: Channel, given: Sequence[Symbol], hidden: Sequence[Symbol]) -> Value:
    """alpha_c of the hidden variables once the given ones are perfectly known; P(y|z) is written over both.

    Raises
    ------
    NoClosedForm : more than two known directions enter P(y|z), or nothing of the hidden ones is seen.
    """
    known = [u for u in given if channel.p.has(u)]
    if len(known) > _MOST:
        raise NoClosedForm("alpha_c", f"an average over {len(known)} known directions is not taken", "Give a simpler channel")
    drawn = Drawn(channel, known, hidden)
    found = over_all_known(drawn.second, channel.p, known, hidden)
    inverse, _ = largest(found.couplings, list(range(len(hidden))))
    if not inverse > 0:
        raise NoClosedForm("alpha_c", "the conditional second moments came out as zero", "Give the channel in another form")
    return measured(inverse, len(hidden) * found.error)
