"""y = s h(w), z_i = s^a_i w_i: the law of a label that is homogeneous under a scaling, orbit by orbit.

On the faces w_k = +-1 of a cube dz = a_k s^(|a| - 1) ds dw, and s = y/h has one solution on every orbit: nu_a(y) is an
integral over the other w_i (and over variables of weight 0) whose only singular places are the nodal lines h = 0 and the
kinks, the same for all y. Off y = 0 the density is analytic, since sum a_i z_i dg/dz_i = g leaves no other critical value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
from sympy import Dummy, Expr, S, Symbol, ceiling, floor, frac, log, tan

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.exponents.directions.symmetry import flip_group
from hermitex.exponents.laws.cells import Box, CellRule, LevelCurve, nodes
from hermitex.exponents.laws.density import WINDOW, Index, Law, array_function
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.linearised import Couplings, second
from hermitex.exponents.laws.scaling import curves, scaling, singular_edge
from hermitex.kernels.panels import chebyshev
from hermitex.symbolic.budget import checkpoint

_RULES = (CellRule(0.27, 16), CellRule(0.2, 24), CellRule(0.15, 48), CellRule(0.12, 72))
_GOOD = 1e-11
_MOST = 6_000_000
_REACH = 10.0
_TINY = 1e-17
_FAR = 1e-280
_BOUND = 1e7
_POINTS = 20
_BIN, _DEGREE = 0.25, 16
_CHUNK = 4_000_000


def homogeneous(g: Expr, place: dict[Symbol, int], drop: Sequence[Index], *, accuracy: float | None = None) -> Law | None:
    """The law of a homogeneous label of two or three variables, or None.

    Parameters
    ----------
    g : the target;  place : the index of each variable;  drop : indices known to be exactly zero
    accuracy : the largest error that is accepted, with equal weights only, which are cheap; None: any

    Its error `lost` is the difference of two rules, of which there are four.
    """
    used = [x for x in place if g.has(x)]
    weights = scaling(g, used) if 2 <= len(used) <= 3 and not g.has(floor, ceiling, frac, tan, log) else None
    if weights is None or (accuracy is not None and len(set(weights.tolist())) > 1):
        return None
    found: Law | None = None
    before: Couplings = {}
    for rule in _RULES:
        try:
            law = Orbits(g, used, [place[x] for x in used], weights, drop, rule).law()
        except BudgetExceeded:
            raise
        except HermitexError:
            law = None
        if law is None:
            break
        now = second(law)
        lost = max((abs(now.couplings[k] - before[k]) for k in before), default=0.0)
        found = replace(law, lost=lost) if before else None
        if before and lost < _GOOD:
            break
        before = now.couplings
    return None if found is None or (accuracy is not None and found.lost > accuracy) else found


class Orbits:
    """The nodes on all faces, and the sums over them at given labels."""

    def __init__(self, g: Expr, used: Sequence[Symbol], spots: Sequence[int], weights: np.ndarray, drop: Sequence[Index],
                 rule: CellRule) -> None:
        flips = flip_group(g, used)
        both = [(a, tuple(sorted(spots[i] for i in a))) for a in indices(len(used))]
        both = [(a, b) for a, b in both if b not in drop and all(prod(f[i] for i in a) == 1 for f in flips)]
        self.local, self.indices = [a for a, _ in both], tuple(b for _, b in both)
        faces = list(_faces(g, used, weights, flips))
        parts = [face.rule(rule) for face in faces if face.h != 0]
        if not parts or sum(len(h) for _, _, h in parts) > _MOST:
            raise NoClosedForm("alpha_c", "its orbits need too many nodes", "Give the target in another form")
        self.flat = len(parts) < len(faces) or any(w[h == 0].sum() > 1e-6 * w.sum() for _, w, h in parts)
        self.sides: list[OrbitNodes] = []
        for side in (1.0, -1.0):
            live = [h * side > _FAR**0.5 for _, _, h in parts]
            mine = [(z[:, k], w[k], np.abs(h[k])) for k, (z, w, h) in zip(live, parts, strict=True)]
            z, w, h = (np.concatenate([m[n] for m in mine], axis=-1) for n in range(3))
            self.sides.append(OrbitNodes(z, w, h, weights, self.local))

    def law(self) -> Law | None:
        """The law of the label; None where it is not bounded on the faces."""
        if any(side.size and not side.top < _BOUND for side in self.sides):
            return None
        tables = [Table(side) if side.size else None for side in self.sides]
        if not any(tables):
            return None

        def density(y: np.ndarray) -> np.ndarray:
            y = np.asarray(y, dtype=float)
            total = np.zeros((len(self.local), *y.shape))
            for table, mine in zip(tables, (y > 0, y < 0), strict=True):
                if table is not None and mine.any():
                    total[:, mine] = table(np.abs(y[mine]))
            return total

        hi, lo = (table.high if table is not None else 0.0 for table in tables)
        least = min(table.low for table in tables if table is not None)
        deep = int(np.ceil(np.log(max(hi, lo) / least) / np.log(4)))
        masses = sum(t.masses for t in tables if t is not None)
        # Where h = 0 on whole cells there is an atom: what is left of E[He_a] = 0.
        atoms = ((0.0, np.array([1 - masses[0], *-masses[1:]])),) if self.flat else ()
        return Law(self.indices, density, -lo, hi, (0.0,), (), atoms, True, 4, True, deep)


class OrbitNodes:
    """Nodes of one sign of h: z = |y|^a B, and the measures they carry."""

    def __init__(self, z: np.ndarray, w: np.ndarray, h: np.ndarray, a: np.ndarray, local: Sequence[Index]) -> None:
        self.a, self.local, self.size = a, local, len(h)
        if not self.size:
            return
        with np.errstate(over="ignore"):
            self.b = z * h ** -a[:, None]
        live = np.flatnonzero(a)
        with np.errstate(over="ignore"):
            self.w = w * h ** -a.sum()
        with np.errstate(divide="ignore"):
            reach = np.min([(_REACH / np.abs(z[i])) ** (1 / a[i]) for i in live], axis=0)
        self.top = float(np.max(h * reach))
        self.even = float(a[live[0]]) if len(set(a[live].tolist())) == 1 else None
        with np.errstate(over="ignore", invalid="ignore"):
            carried = np.stack([self.w * np.prod([self.b[i] for i in c] or [np.ones(self.size)], axis=0) for c in local], axis=1)
        self.carried = np.where(np.isfinite(carried), carried, 0.0)  # beyond every number: h = 0 there, and no label is in reach
        if self.even is not None:
            self._compress()

    def _compress(self) -> None:
        """All positive weights equal: nu_a depends on q = |B|^2 over them alone. Nodes are merged by interpolation in log q."""
        q = np.log(np.sum(self.b[np.flatnonzero(self.a)] ** 2, axis=0))
        cell = np.floor(q / _BIN).astype(int)
        order = np.argsort(cell, kind="stable")
        cells, starts = np.unique(cell[order], return_index=True)
        nodes, to_values = chebyshev(_DEGREE)
        found = []
        for k, start, stop in zip(cells, starts, [*starts[1:], self.size], strict=True):
            mine = order[start:stop]
            t = 2 * (q[mine] / _BIN - k) - 1
            series = np.polynomial.chebyshev.chebvander(t, _DEGREE - 1)
            found.append(to_values.T @ (series.T @ self.carried[mine]))
        self.q = np.exp(((cells[:, None] + (1 + nodes) / 2) * _BIN).ravel())
        self.carried = np.concatenate(found)

    def densities(self, y: np.ndarray) -> np.ndarray:
        """y nu_a(+-y), y > 0, shape (k, labels)."""
        size = max(1, _CHUNK // (len(self.q) if self.even is not None else self.size))
        parts = []
        for n in range(0, len(y), size):
            checkpoint("integrating over orbits")
            parts.append(self._some(y[n:n + size]))
        return np.concatenate(parts, axis=1)

    def _some(self, y: np.ndarray) -> np.ndarray:
        live = np.flatnonzero(self.a)
        constant = (2 * np.pi) ** (-len(live) / 2)
        if self.even is not None:
            exponent = y[:, None] ** (2 * self.even) * self.q
        else:
            exponent = (y[:, None] ** (2 * self.a[live])) @ self.b[live] ** 2
        sums = (np.exp(-0.5 * exponent) @ self.carried).T
        powers = np.stack([y ** (self.a.sum() + sum(self.a[i] for i in a)) for a in self.local])
        found = constant * powers * sums
        for n, a in enumerate(self.local):
            if len(a) == 2 and a[0] == a[1]:
                found[n] -= found[0]
        return found


class Table:
    """y nu_a(y) as Chebyshev series in log y, panel by panel: there it is analytic in a strip."""

    def __init__(self, side: OrbitNodes) -> None:
        strip = np.pi / (4 * side.a.max())
        self.width = min(0.64 * strip, 2.0)
        nodes, to_series = chebyshev(_POINTS)
        self.start = np.log(side.top)
        found: list[np.ndarray] = []
        while True:
            middle = self.start - self.width * (len(found) + 0.5 + np.arange(8))
            values = side.densities(np.exp(middle[:, None] + self.width * nodes / 2).ravel())
            values = values.reshape(len(values), 8, _POINTS)
            found += list(np.einsum("sx,kpx->pks", to_series, values))
            if (np.all(values[0, -1] < _TINY) and np.max([f[0, 0] for f in found]) > 1e-3) or np.exp(middle[-1]) < _FAR:
                break
        self.series = np.array(found)
        even = np.array([2 / (1 - k * k) if k % 2 == 0 else 0.0 for k in range(_POINTS)])
        self.masses = np.einsum("pks,s->k", self.series, even) * self.width / 2
        live = np.flatnonzero(np.abs(self.series[:, 0, 0]) > _TINY)
        if not len(live):
            raise NoClosedForm("alpha_c", "the orbits of the label carry no mass that is seen", "Give the target in another form")
        self.high = float(np.exp(self.start - self.width * live[0]))
        self.low = float(np.exp(self.start - self.width * (live[-1] + 1)))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        place = (self.start - np.log(y)) / self.width
        panel = np.clip(np.floor(place).astype(int), 0, len(self.series) - 1)
        inside = (place >= 0) & (place < len(self.series))
        t = np.clip(1 - 2 * (place - panel), -1.0, 1.0)
        powers = np.polynomial.chebyshev.chebvander(t, _POINTS - 1)
        value = np.einsum("nks,ns->kn", self.series[panel], powers)
        return np.where(inside, value, 0.0) / y


# -- the faces ---------------------------------------------------------------------------------------------------------
class Face:
    """One orthant of one face: h over positive coordinates, of which those of weight 0 run to the window."""

    def __init__(self, h: Expr, free: Sequence[Symbol], signs: Sequence[int], k: int, weights: np.ndarray, copies: int) -> None:
        self.h, self.free, self.signs, self.k, self.a, self.copies = h, list(free), signs, k, weights, copies

    def rule(self, rule: CellRule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(z at s = 1, weights, h)."""
        others = [n for n in range(len(self.a)) if n != self.k]
        names = [self.free[n] for n in others]
        ends = [1.0 if self.a[n] > 0 else WINDOW for n in others]
        if len(names) == 1:
            names, ends = [Dummy("one", positive=True), *names], [1.0, *ends]
        v, w = names
        singular = [singular_edge(self.h, x) for x in (v, w)]
        box = Box((ends[0], ends[1]), (singular[0], singular[1]))
        place = nodes([LevelCurve.of(c, v, w) for c in curves(self.h, (v, w))], box, rule)
        value = array_function(self.h, v, w)(*place[:2])
        z = np.ones((len(self.a), len(value)))
        weight = place[2] * self.a[self.k] * self.copies
        for n, x in zip(others[::-1], (place[1], place[0]), strict=False):
            z[n] = x
            if self.a[n] == 0:
                weight = weight * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        good = np.isfinite(value)
        return z[:, good] * np.array(self.signs)[:, None], weight[good], value[good]


def _faces(g: Expr, used: Sequence[Symbol], weights: np.ndarray, flips: set[tuple[int, ...]]) -> Iterator[Face]:
    """One orthant of each that flips carry into one another."""
    free = [Dummy(x.name, positive=True) for x in used]
    done: set[tuple[int, ...]] = set()
    for signs in product((1, -1), repeat=len(used)):
        if signs in done:
            continue
        done |= {tuple(a * b for a, b in zip(signs, f, strict=True)) for f in flips}
        h = g.xreplace({x: s * p for x, s, p in zip(used, signs, free, strict=True)})
        for k in np.flatnonzero(weights):
            yield Face(h.xreplace({free[k]: S.One}), free, signs, int(k), weights, len(flips))
