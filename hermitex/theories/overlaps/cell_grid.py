r"""E[f(z) | omega], z ~ N(omega, V), V diagonal: a tensor of f over cells, contracted axis by axis with their probabilities.

A variable that f sees only through steps is cut into intervals, whose probabilities are erfc and lose no digits in a tail:
1 - e_1^2 e_2^2 is never formed. Any other variable is cut into panels of Gauss-Legendre nodes, broken at its kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hermitex.kernels.normals import WINDOW, interval_probabilities, panels
from hermitex.symbolic.budget import checkpoint

Array = np.ndarray


def scale_rung(s: Any) -> Any:
    """The next power of sqrt 2 below a scale: what is resolved changes by steps, so that what is computed can be kept."""
    return 2.0**(np.floor(2*np.log2(s) + 1e-9)/2)


@dataclass(frozen=True, eq=False)
class LabelAxis:
    """One variable: where f has a kink or a jump, whether it is constant between (`steps`), else the scale on which it varies.

    analytic : trapezoid in the place of panels, spectrally accurate with the Gaussian beside it
    """

    cuts: Array
    steps: bool = False
    scale: float = np.inf
    analytic: bool = False

    def rung(self, s: float) -> float:
        """The scale that panels resolve for a Gaussian of width s: it changes by steps, so what is computed can be kept."""
        return float(scale_rung(min(s, self.scale)))

    def nodes(self, s: float, fineness: float = 1.0) -> tuple[Array, Array]:
        """Points and their dz: the inside of each interval, or panels that resolve a Gaussian of width s."""
        if self.steps:
            c = self.cuts
            return np.concatenate([[c[0] - 1], (c[1:] + c[:-1])/2, [c[-1] + 1]]) if c.size else np.zeros(1), np.ones(c.size + 1)
        if self.analytic:
            step = 0.62*fineness*s
            x = step*np.arange(-np.ceil(WINDOW/step), np.ceil(WINDOW/step) + 1)
            return x, np.full(len(x), step)
        return panels(self.cuts, 2.2*fineness*s)

    def probabilities(self, omega: Array, v: float, fineness: float = 1.0) -> tuple[Array, Array]:
        """p[cell, omega] = P(z in cell | omega) and dp/domega."""
        s = np.sqrt(v)
        if self.steps:
            return interval_probabilities(np.concatenate([[-np.inf], self.cuts, [np.inf]])[:, None], omega, s)
        z, w = self.nodes(self.rung(s), fineness)
        t = (z[:, None] - omega)/s
        root = np.sqrt(2*np.pi)  # the normal density is exp(-t^2/2)/root
        p = w[:, None]*np.exp(-t*t/2)/(s*root)
        return p, p*t/s


@dataclass(frozen=True, eq=False)
class LabelGrid:
    """f over the cells of its axes, shape (k, cells of axis 1, ..., cells of axis r): `law` gives it from points.

    law : one array for each variable, broadcastable -> values (k, ...)
    """

    axes: tuple[LabelAxis, ...]
    law: Callable[[Sequence[Array]], Array]
    _kept: dict[Any, Array] = field(default_factory=dict)

    def size(self, v: Array, fineness: float = 1.0) -> int:
        """How many cells it has."""
        return int(np.prod([len(a.nodes(a.rung(float(np.sqrt(x))), fineness)[0]) for a, x in zip(self.axes, v, strict=True)]))

    def tensor(self, v: Array, fineness: float = 1.0) -> Array:
        """The values of f on the cells."""
        key = tuple(0.0 if a.steps else a.rung(np.sqrt(x))*fineness for a, x in zip(self.axes, v, strict=True))
        if key not in self._kept:
            nodes = [a.nodes(k/fineness, fineness)[0] for a, k in zip(self.axes, key, strict=True)]
            if len(self._kept) > 3:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = np.asarray(self.law(np.meshgrid(*nodes, indexing="ij", sparse=True)), dtype=float)
        return self._kept[key]

    def moments(self, omega: Sequence[Array], v: Array, fineness: float = 1.0, *, slopes: bool = True) -> list[Array]:
        """[E[f|omega], d/domega_1, ..., d/domega_r] on the tensor grid of omegas: arrays (k, n_1, ..., n_r)."""
        factors = [a.probabilities(o, x, fineness) for a, o, x in zip(self.axes, omega, v, strict=True)]
        f = self.tensor(v, fineness)
        wanted = [None, *range(len(self.axes))] if slopes else [None]
        checkpoint("iterating the state evolution", len(wanted)*f.size*len(omega[0])//3)
        return [contracted(f, [d if i == j else p for j, (p, d) in enumerate(factors)]) for i in wanted]

    def at(self, omega: Array, v: Array, rows: Array | None = None, fineness: float = 1.0) -> list[Array]:
        """The same at points omega (n, r); `rows` (n,) says which component of f is meant at each of them, else all: (k, n)."""
        factors = [a.probabilities(o, x, fineness) for a, o, x in zip(self.axes, omega.T, v, strict=True)]
        f = self.tensor(v, fineness)
        letters = "abc"[:len(self.axes)]
        ends = ",".join(f"{c}n" for c in letters)
        f, rule = (f, f"k{letters},{ends}->kn") if rows is None else (f[rows], f"n{letters},{ends}->n")
        return [np.einsum(rule, f, *(d if i == j else p for j, (p, d) in enumerate(factors)), optimize=True)
                for i in (None, *range(len(self.axes)))]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A matrix of which few columns are not 0 in any one block of rows: (the columns, what stands there), block after block."""

    parts: list[tuple[Array, Array]]

    @property
    def size(self) -> int:
        """Numbers that are kept."""
        return sum(block.size for _, block in self.parts)

    def __matmul__(self, p: Array) -> Array:
        return np.concatenate([block @ p[columns] for columns, block in self.parts])


@dataclass(frozen=True, eq=False)
class ThinTable:
    """P(y_k | z) dy_k of many labels of one variable: next to a point few of them occur. Few entries, kept for good.

    law : (labels, their dy, points) -> (k, points)
    """

    axis: LabelAxis
    law: Callable[[Array, Array, Sequence[Array]], Array]
    labels: Array
    steps: Array
    _kept: dict[float, Blocks | None] = field(default_factory=dict)

    def of(self, v: float, fineness: float, most: int) -> Blocks | None:
        """The table for a Gaussian of variance v, made of parts of at most `most` entries; None where it is not thin."""
        key = self.axis.rung(np.sqrt(v))*fineness
        if key not in self._kept:
            if len(self._kept) > 3:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self._made(self.axis.nodes(key/fineness, fineness)[0], most)
        return self._kept[key]

    def _made(self, z: Array, most: int) -> Blocks | None:
        parts: list[tuple[Array, Array]] = []
        seen, step = 0, max(1, most//len(z))
        never = 1e-60  # a label this unlikely at a point is not seen beside the others
        thin = 1/4  # of a table: where so little is left it is taken in blocks
        per_block = 32  # labels of a block
        for k in range(0, len(self.labels), step):
            f = self.law(self.labels[k:k + step], self.steps[k:k + step], [z])
            checkpoint("iterating the state evolution", f.size)
            for rows in (f[i:i + per_block] for i in range(0, len(f), per_block)):
                columns = np.flatnonzero((rows > never).any(axis=0))
                parts.append((columns, rows[:, columns]))
                seen += parts[-1][1].size
            if seen > thin*len(self.labels)*len(z):
                return None
        return Blocks(parts)


def averaged(f: Array, nodes: Sequence[tuple[Array, Array]]) -> float:
    """sum over a tensor of nodes of f w_1 ... w_r."""
    for _, w in nodes:
        f = np.tensordot(w, f, axes=(0, 0))
    return float(f)


def contracted(f: Array, factors: Sequence[Array]) -> Array:
    """sum over cells of f[k, c_1, ..., c_r] p_1[c_1, n_1] ... p_r[c_r, n_r]."""
    for p in factors:
        f = np.tensordot(f, p, axes=(1, 0))  # the axis of n goes last: after r steps the order is right
    return f
