"""y = s h(w), z_i = s^a_i w_i: the law of a label of two variables that is homogeneous under a scaling, orbit by orbit.

On the sides w_k = +-1 of a square dz = a_k s^(|a| - 1) ds dw, and s = y/h has one solution on every orbit: nu_a(y) is an
integral over the other w_i whose only singular places are the zeros of h and its kinks, the same for all y: nodes evenly
spaced in the logarithm of the distance from them. Off y = 0 the density is analytic, since sum a_i z_i dg/dz_i = g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
from sympy import Dummy, Expr, S, Symbol, ceiling, floor, frac, log, tan

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.exponents.directions.symmetry import flip_group
from hermitex.exponents.laws.density import WINDOW, Index, Law, array_function
from hermitex.exponents.laws.discrete import indices
from hermitex.exponents.laws.linearised import Couplings, second
from hermitex.exponents.laws.scaling import curves, scaling, singular_edge
from hermitex.kernels.panels import chebyshev, gauss, zeros_on
from hermitex.symbolic.budget import checkpoint


class LineRule(NamedTuple):
    """The step of the trapezoidal rule in the logarithm of the distance from a zero, and the order of Gauss' rule elsewhere."""

    step: float
    order: int


_RULES = (LineRule(0.27, 16), LineRule(0.2, 24), LineRule(0.15, 48), LineRule(0.12, 72))
_GOOD = 1e-11
_REACH = 10.0
_TINY = 1e-17
_FAR = 1e-280
_BOUND = 1e7  # of a label in units of the variables
_POINTS = 20
_CHUNK = 4_000_000
_DEEPEST = 37.0  # exp(-37) = 9e-17
_SCAN = np.arange(-90.0, 37.0, 0.27)  # log of a place next to 0, and of one next to the other end
_BESIDE = 0.35  # a singularity so close to an end, beyond it, counts as one at the end


def homogeneous(g: Expr, place: dict[Symbol, int], drop: Sequence[Index]) -> Law | None:
    """The law of a homogeneous label of two variables, or None.

    Parameters
    ----------
    g : the target;  place : the index of each variable;  drop : indices known to be exactly zero

    Its error `lost` is the difference of two rules, of which there are four.
    """
    used = [x for x in place if g.has(x)]
    weights = scaling(g, used) if len(used) == 2 and not g.has(floor, ceiling, frac, tan, log) else None
    if weights is None:
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
    return found


class Orbits:
    """The nodes on all sides, and the sums over them at given labels."""

    def __init__(self, g: Expr, used: Sequence[Symbol], spots: Sequence[int], weights: np.ndarray, drop: Sequence[Index],
                 rule: LineRule) -> None:
        flips = flip_group(g, used)
        both = [(a, tuple(sorted(spots[i] for i in a))) for a in indices(len(used))]
        both = [(a, b) for a, b in both if b not in drop and all(prod(f[i] for i in a) == 1 for f in flips)]
        self.local, self.indices = [a for a, _ in both], tuple(b for _, b in both)
        faces = list(_faces(g, used, weights, flips))
        parts = [face.rule(rule) for face in faces if face.h != 0]
        if not parts:
            raise NoClosedForm("alpha_c", "the label vanishes on every orbit", "Give the target in another form")
        self.flat = len(parts) < len(faces) or any(w[h == 0].sum() > 1e-6 * w.sum() for _, w, h in parts)
        self.sides: list[OrbitNodes] = []
        for side in (1.0, -1.0):
            live = [h * side > _FAR**0.5 for _, _, h in parts]
            mine = [(z[:, k], w[k], np.abs(h[k])) for k, (z, w, h) in zip(live, parts, strict=True)]
            z, w, h = (np.concatenate([m[n] for m in mine], axis=-1) for n in range(3))
            self.sides.append(OrbitNodes(z, w, h, weights, self.local))

    def law(self) -> Law | None:
        """The law of the label; None where it is not bounded on the faces."""
        if any(side.size and not side.top ** side.a.max() < _BOUND for side in self.sides):
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
        with np.errstate(over="ignore", invalid="ignore"):
            carried = np.stack([self.w * np.prod([self.b[i] for i in c] or [np.ones(self.size)], axis=0) for c in local], axis=1)
        self.carried = np.where(np.isfinite(carried), carried, 0.0)  # beyond every number: h = 0 there, and no label is in reach

    def densities(self, y: np.ndarray) -> np.ndarray:
        """y nu_a(+-y), y > 0, shape (k, labels)."""
        size = max(1, _CHUNK // self.size)
        parts = []
        for n in range(0, len(y), size):
            checkpoint("integrating over orbits")
            parts.append(self._some(y[n:n + size]))
        return np.concatenate(parts, axis=1)

    def _some(self, y: np.ndarray) -> np.ndarray:
        live = np.flatnonzero(self.a)
        constant = (2 * np.pi) ** (-len(live) / 2)
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


# -- the sides ---------------------------------------------------------------------------------------------------------
class Face(NamedTuple):
    """Half of a side: h at z_k = +-1 over the other coordinate, positive, which runs to the window where its weight is 0."""

    h: Expr
    x: Symbol
    signs: Sequence[int]
    k: int
    weights: np.ndarray
    copies: int

    def rule(self, rule: LineRule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(z at s = 1, weights, h), shapes (2, n), (n,), (n,)."""
        bounded = self.weights[1 - self.k] > 0
        zeros = [array_function(c, self.x) for c in curves(self.h, (self.x,))]
        t, weight = nodes(zeros, 1.0 if bounded else WINDOW, singular_edge(self.h, self.x), rule)
        value = array_function(self.h, self.x)(t)
        z = np.ones((2, len(t)))
        z[1 - self.k] = t
        weight = weight * self.weights[self.k] * self.copies * (1.0 if bounded else np.exp(-t * t / 2) / np.sqrt(2 * np.pi))
        good = np.isfinite(value)
        return z[:, good] * np.array(self.signs)[:, None], weight[good], value[good]


def _faces(g: Expr, used: Sequence[Symbol], weights: np.ndarray, flips: set[tuple[int, ...]]) -> Iterator[Face]:
    """One quadrant of each that flips carry into one another."""
    free = [Dummy(x.name, positive=True) for x in used]
    done: set[tuple[int, ...]] = set()
    for signs in product((1, -1), repeat=2):
        if signs in done:
            continue
        done |= {tuple(a * b for a, b in zip(signs, f, strict=True)) for f in flips}
        h = g.xreplace({x: s * p for x, s, p in zip(used, signs, free, strict=True)})
        for k in np.flatnonzero(weights):
            yield Face(h.xreplace({free[k]: S.One}), free[1 - k], signs, int(k), weights, len(flips))


def nodes(zeros_of: Sequence[Callable], end: float, singular: bool, rule: LineRule) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, end), each of shape (n,), graded towards the zeros of some functions and towards a `singular` 0."""
    places = end * np.where(_SCAN < 0, np.exp(_SCAN), 1.0) / (1 + np.exp(-np.abs(_SCAN)))
    far = end * np.linspace(1, 1 + _BESIDE, 20)
    found = zeros_on(zeros_of, np.concatenate([end - far[::-1], places, far[1:]]))
    near = 1e-9 * end
    at_zero, at_end = singular or any(x <= near for x in found), any(x >= end - near for x in found)
    cuts = [0.0, *[x for n, x in enumerate(found) if near < x < end - near and (not n or x - found[n - 1] > near)], end]
    parts = []
    for k, (a, b) in enumerate(pairwise(cuts)):
        checkpoint("placing nodes between zeros")
        t, weight = template((k > 0 or at_zero, k < len(cuts) - 2 or at_end), rule)
        parts.append((np.where(t < 0.5, a + (b - a) * t, b - (b - a) * (1 - t)), (b - a) * weight))
    t, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    kept = weight > 1e-19 * np.sum(weight)
    return t[kept], weight[kept]


@lru_cache(maxsize=64)
def template(graded: tuple[bool, bool], rule: LineRule) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1), shape (n,), graded towards its ends or not.

    x = 1/(1 + e^-s) is even in log x at both ends; x = 1/(1 + exp(-s - e^s)) is so at 0 and falls off faster at 1.
    """
    if not any(graded):
        x, w = gauss(rule.order)
        return np.concatenate([(1 + x) / 4, (3 + x) / 4]), np.concatenate([w, w]) / 4
    if all(graded):
        s = np.arange(-_DEEPEST, _DEEPEST + rule.step / 2, rule.step)
        return 1 / (1 + np.exp(-s)), rule.step / (2 + 2 * np.cosh(s))
    s = np.arange(-_DEEPEST, 3.7, rule.step)
    x = 1 / (1 + np.exp(-s - np.exp(s)))
    weight = rule.step * (1 + np.exp(s)) * x * (1 - x)
    return (x, weight) if graded[0] else ((1 - x)[::-1], weight[::-1])
