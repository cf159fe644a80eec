r"""E[f(z) | omega], z ~ N(omega, V), V diagonal: a tensor of f over cells, contracted axis by axis with their probabilities.

A variable that enters f by steps only is cut into intervals, whose probabilities are erfc and lose no digits in a tail:
1 - e_1^2 e_2^2 is never formed. Any other variable is cut into panels of Gauss-Legendre nodes, broken at its kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hermitex.kernels.normals import WINDOW, interval_probabilities, panels
from hermitex.symbolic.budget import checkpoint

Array = np.ndarray
_ENTRIES = 4_000_000  # of one array: 32 MB
_KEPT = 12_000_000  # entries of a sparse table that are kept: 150 MB


def scale_rung(s: Any) -> Any:
    """The next power of sqrt 2 below a scale: what is resolved changes by steps, so that what is computed can be kept."""
    return 2.0**(np.floor(2*np.log2(s) + 1e-9)/2)


@dataclass(frozen=True, eq=False)
class LabelAxis:
    """One variable: where f has a kink or a jump, whether it is constant between (`steps`), else the scale on which it varies.

    analytic : trapezoid in the place of panels, spectrally accurate with the Gaussian weight
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
    part : of many labels, (i, j) -> the law of those from the i-th to the j-th;  count : how many there are
    """

    axes: tuple[LabelAxis, ...]
    law: Callable[[Sequence[Array]], Array]
    part: Callable[[int, int], Callable[[Sequence[Array]], Array]] | None = None
    count: int = 0
    _kept: dict[Any, Any] = field(default_factory=dict)

    def size(self, v: Array, fineness: float = 1.0) -> int:
        """How many cells it has."""
        return int(np.prod([len(a.nodes(a.rung(float(np.sqrt(x))), fineness)[0]) for a, x in zip(self.axes, v, strict=True)]))

    def _nodes(self, v: Array, fineness: float) -> tuple[tuple[float, ...], list[Array]]:
        """(what the nodes depend on, the nodes of each axis)."""
        key = tuple(0.0 if a.steps else a.rung(np.sqrt(x))*fineness for a, x in zip(self.axes, v, strict=True))
        return key, [a.nodes(k/fineness, fineness)[0] for a, k in zip(self.axes, key, strict=True)]

    def tensor(self, v: Array, fineness: float = 1.0) -> Array:
        """The values of f on the cells."""
        key, nodes = self._nodes(v, fineness)
        if key not in self._kept:
            self._keep(key, np.asarray(self.law(np.meshgrid(*nodes, indexing="ij", sparse=True)), dtype=float))
        return self._kept[key]  # type: ignore[no-any-return]

    def _keep(self, key: Any, value: Any) -> None:
        if len(self._kept) > 3:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = value

    def tables(self, v: Array, fineness: float) -> Iterator[tuple[Any, tuple[int, ...]]]:
        """(f as a matrix whose last axis is that of the last variable, the shape of the others), some labels at a time.

        Next to a point few of many labels occur: their tables are sparse, and kept where they fit.
        """
        if self.part is None:
            f = self.tensor(v, fineness)
            yield f.reshape(-1, f.shape[-1]), f.shape[:-1]
            return
        key, nodes = self._nodes(v, fineness)
        if (kept := self._kept.get(("tables", key))) is not None:
            yield from kept
            return
        points = np.meshgrid(*nodes, indexing="ij", sparse=True)
        step = max(1, _ENTRIES//int(np.prod([len(n) for n in nodes])))
        made: list[tuple[Any, tuple[int, ...]]] = []
        room = _KEPT
        never = 1e-40  # a label this unlikely at a point is left out
        for i in range(0, self.count, step):
            f = np.asarray(self.part(i, i + step)(points), dtype=float)
            checkpoint("iterating the state evolution", f.size)
            made.append((csr_array(np.where(f > never, f, 0.0).reshape(-1, f.shape[-1])), f.shape[:-1]))
            yield made[-1]
            room -= made[-1][0].nnz
            if room < 0:
                made.clear()
        if room >= 0:
            self._keep(("tables", key), made)

    def moments(self, omega: Sequence[Array], v: Array, fineness: float = 1.0, *, slopes: bool = True) -> Iterator[list[Array]]:
        """[E[f|omega], d/domega_1, ..., d/domega_r] on the tensor grid of omegas, each (k, n_1, ..., n_r), k labels at a time."""
        factors = [a.probabilities(o, x, fineness) for a, o, x in zip(self.axes, omega, v, strict=True)]
        for f, shape in self.tables(v, fineness):
            checkpoint("iterating the state evolution", (len(omega) + 1 if slopes else 1)*f.size*len(omega[-1])//3)
            yield contracted(f, shape, factors, slopes=slopes)

    def at(self, omega: Array, v: Array, rows: Array | None = None, fineness: float = 1.0) -> list[Array]:
        """The same at points omega (n, r); `rows` (n,) says which component of f is meant at each of them, else all: (k, n)."""
        factors = [a.probabilities(o, x, fineness) for a, o, x in zip(self.axes, omega.T, v, strict=True)]
        f = self.tensor(v, fineness)
        letters = "abc"[:len(self.axes)]
        ends = ",".join(f"{c}n" for c in letters)
        f, rule = (f, f"k{letters},{ends}->kn") if rows is None else (f[rows], f"n{letters},{ends}->n")
        return [np.einsum(rule, f, *(d if i == j else p for j, (p, d) in enumerate(factors)), optimize=True)
                for i in (None, *range(len(self.axes)))]


def averaged(f: Array, nodes: Sequence[tuple[Array, Array]]) -> float:
    """sum over a tensor of nodes of f w_1 ... w_r."""
    for _, w in nodes:
        f = np.tensordot(w, f, axes=(0, 0))
    return float(f)


def contracted(f: Any, shape: tuple[int, ...], factors: Sequence[tuple[Array, Array]], *, slopes: bool = True) -> list[Array]:
    """[sum f p_1 ... p_r, then the same with the slope of each factor in the place of one of them]: arrays (k, n_1, ..., n_r).

    f : the values in the cells, a matrix (k c_1 ... c_(r-1), c_r), dense or sparse, of the `shape` (k, c_1, ..., c_(r-1))
    factors : (p_i, its slope), each (c_i, n_i)
    """
    *first, (p, slope) = factors
    found: dict[int | None, Array] = {None: (f @ p).reshape(*shape, -1)}
    if slopes:
        found[len(first)] = (f @ slope).reshape(*shape, -1)
    for i, (p, slope) in enumerate(first):
        new = {j: _along(p, part, i + 1) for j, part in found.items()}
        if slopes:
            new[i] = _along(slope, found[None], i + 1)
        found = new
    return [found[j] for j in (None, *range(len(factors)))] if slopes else [found[None]]


def _along(p: Array, f: Array, axis: int) -> Array:
    return np.moveaxis(np.tensordot(p, f, axes=(0, axis)), 0, axis)
