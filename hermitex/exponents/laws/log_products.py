"""rho(s, d) = sum_s' int phi(z) He_a(z) rho_B(s s', d - d_f(z)) dz: the law of f(z) w, w with the law rho_B of d = T - log|w|.

The integral over z runs between the images of the panels of rho_B, so that every stretch is smooth; a stretch that ends at
the image of a knot of rho_B takes the chart of that knot. Where both |f| and |w| saturate, labels near the top are sums
d = d_f + d_w of two small numbers: the part with d_w < d_f is written as an integral over d_w, which keeps its digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hermitex.exponents.laws.charts import Panels, Table, fitted, gauss, layout
from hermitex.exponents.laws.density import Law, common_power, distinct
from hermitex.exponents.laws.factors import Factor
from hermitex.exponents.laws.stretches import Piece
from hermitex.exponents.laws.sums import in_chunks

ORDER = 16
_STEEP = 4.0     # ratio of the distances from a knot at which stretches end, next to it
_LEVELS = 10
_REACH = 1.0
_SMALL = 0.05    # d_w below which both may be small
_FALLING = 0.5 * 6.0 ** -np.arange(7)
_DEEPEST = -40.0  # log d
_DEPTH = 80.0     # d beyond which a block has no mass
_NOTHING = 1e-18
_COST = 500

Row = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Product:
    """The law of d = T - log|w|, w the product of the factors so far.

    Attributes
    ----------
    table : rows over (side, row); of a mirrored law the positive side alone
    rows : what He_a they carry;  parities : of each row under w -> -w where the law is mirrored, else ()
    knots, tail : as those of a factor;  shift : T;  lost : an L1 error of its densities
    """

    table: Table
    rows: tuple[Row, ...]
    parities: tuple[int, ...]
    knots: tuple[tuple[float, int], ...]
    tail: float | None
    shift: float
    lost: float = 0.0

    def at(self, d: np.ndarray) -> np.ndarray:
        """Densities over d, shape (2, rows, n): the positive side first."""
        found = self.table(d)
        if self.parities:
            return np.stack([found, found * np.array(self.parities)[:, None]])
        return found.reshape(2, len(self.rows), -1)


def row(orders: Sequence[tuple[int, int]]) -> Row:
    """The name of He_a, the same for all permutations of equal factors: (kind, order) of each, without the zeros."""
    return tuple(sorted((kind, a) for kind, a in orders if a))


def started(f: Factor, kind: int) -> Product:
    """The law of one factor without plateaus."""
    rows = tuple(row([(kind, a)]) for a in f.orders)
    parities = tuple((-1) ** a for a in f.orders) if f.odd else ()
    return Product(f.table(), rows, parities, f.knots, f.tail, f.shift)


def started_law(law: Law, kinds: dict[int, int]) -> Product:
    """A block of several variables without atoms off 0; `kinds`: the kind of each of its variables."""
    levels = [abs(k) for k in law.knots if k]
    shift = float(np.log(max(levels))) if levels else 0.0
    rows = tuple(row([(kinds[i], a.count(i)) for i in sorted(set(a))]) for a in law.indices)

    def density(d: np.ndarray) -> np.ndarray:
        y = np.exp(shift - d)
        return np.concatenate([law.density(y) * y, law.density(-y) * y])

    offsets = distinct(np.array([shift - float(np.log(v)) for v in levels], dtype=float))
    knots = tuple((0.0 if abs(c) < 1e-14 else float(c), common_power(2, law.power)) for c in offsets)
    lowest = shift - float(np.log(max(abs(law.lo), abs(law.hi))))
    table = fitted(density, layout(lowest, _DEPTH, knots, None))
    return Product(table, rows, (), knots, None, shift, law.lost)


def times(w: Product, f: Factor, kind: int) -> Product:
    """The law of w f(z), z independent of w."""
    step = _Step(w, f, kind)
    lo, hi = step.range()
    knots, tail = step.knots(), _tail(w, f)
    panels = layout(lo, hi, knots, tail)
    table = fitted(lambda d: step.density(d, ORDER), panels)
    return Product(table, step.rows, step.parities, knots, tail, w.shift + f.shift,
                   w.lost + _lost(table, step, [(c, a, b) for c, a, b in zip(table.charts, table.low, table.high, strict=True)]))


def _tail(w: Product, f: Factor) -> float | None:
    tails = [t for t in (w.tail, f.tail) if t is not None]
    at_zero = [any(c == 0 for c, _ in k.knots) or k.tail is not None for k in (w, f)]
    # The other factor may have a density there that is smooth: down to where it has no mass.
    return min(max(tails), _DEEPEST) if tails and all(at_zero) else None


def _lost(table: Table, step: _Step, panels: Panels) -> float:
    """The L1 distance of the table from densities at a higher order, between the nodes of its series."""
    x, weight = gauss(2)
    tau = np.array([a + (b - a) * x for _, a, b in panels])
    slopes = np.array([c.slope(t) for (c, _, _), t in zip(panels, tau, strict=True)])
    labels = np.array([c.label(t) for (c, _, _), t in zip(panels, tau, strict=True)]).ravel()
    widths = np.array([b - a for _, a, b in panels])[:, None] * weight * slopes
    return float(np.max(np.abs(step.density(labels, ORDER + 6) - table(labels)) @ widths.ravel()))


class _Step:
    """One convolution: its rows, its knots, its densities."""

    def __init__(self, w: Product, f: Factor, kind: int) -> None:
        self.w, self.f, self.kind = w, f, kind
        self.terms: list[tuple[int, int]] = []  # (a, row of w) of each row
        rows: list[Row] = []
        parities: list[int] = []
        for n, r in enumerate(w.rows):
            for a in f.orders:
                new = row([*r, (kind, a)])
                mine, its = (-1) ** a, w.parities[n] if w.parities else None
                if sum(k for _, k in new) > 2 or new in rows or (f.odd and its is not None and mine != its):
                    continue
                rows.append(new)
                self.terms.append((a, n))
                parities.append(mine if f.odd else its or 0)
        self.rows = tuple(rows)
        self.parities = tuple(parities) if f.odd or w.parities else ()

    def range(self) -> tuple[float, float]:
        one, two = self.w.table.edges, self.f.range()
        return float(one[0] + two[0]), float(one[-1] + two[1])

    def knots(self) -> tuple[tuple[float, int], ...]:
        """A convolution is singular only where both of its factors are."""
        mine = [(c, p) for c, p in self.f.knots] + [(d, 1) for _, d, _ in self.f.plateaus]
        if self.f.tail is not None:
            mine.append((0.0, 2))
        its = list(self.w.knots) + ([(0.0, 2)] if self.w.tail is not None else [])
        power = common_power(2, *[p for _, p in (*mine, *its)])
        sums = [a + b for a, _ in mine for b, _ in its]
        near = [0.0 if abs(s) < 1e-14 else s for s in sums]
        return tuple((float(c), power) for c in distinct(np.array(near))) if near else ()

    def density(self, d: np.ndarray, order: int) -> np.ndarray:
        """Rows over (side, row)."""
        sides = (1,) if self.parities else (1, -1)

        def chunk(labels: np.ndarray) -> np.ndarray:
            total = np.zeros((len(sides), len(self.rows), len(labels)))
            for piece in self.f.pieces:
                total += self._over(piece, labels, order, sides)
            for sign, at, masses in self.f.plateaus:
                its = self.w.at(labels - at)
                for k, side in enumerate(sides):
                    for n, (a, b) in enumerate(self.terms):
                        total[k, n] += masses[a] * its[0 if side * sign > 0 else 1, b]
            if self.w.tail is not None and self.f.pieces:
                total += self._crowded(labels, order, sides)
            return total.reshape(-1, len(labels))

        return in_chunks(chunk, d, _COST * max(1, len(self.f.pieces)), len(sides) * len(self.rows))

    def _over(self, piece: Piece, labels: np.ndarray, order: int, sides: Sequence[int]) -> np.ndarray:
        low, high = piece.range()
        exact = []
        at_knots = np.isin(self.w.table.edges, [c for c, _ in self.w.knots])
        targets = [labels[:, None] - self.w.table.edges[~at_knots]]
        for c, _ in self.w.knots:
            exact.append(piece.inverse(np.clip(labels - c, low, high)))
            # An end of the piece close to the image of a knot: stretches shrink down to their distance.
            gap = np.minimum(np.abs(labels - c - low), np.abs(labels - c - high))
            steps = np.minimum(np.maximum(gap, 1e-14)[:, None] * _STEEP ** np.arange(_LEVELS), _REACH)
            targets += [(labels - c)[:, None] - steps, (labels - c)[:, None] + steps]
        if piece.form == 0:  # d may fall through many decades where z hardly moves
            targets.append(np.maximum(labels, 1e-300)[:, None] * _FALLING)
        least = None
        if self.w.tail is not None:
            least = np.minimum(labels / 2, _SMALL)
            exact += [piece.inverse(np.clip(labels - c, low, high)) for c in (0.0, np.maximum(least, 0.0))]
        at = np.clip(np.concatenate(targets, axis=1), low, high)
        cuts = [_moved(piece.edges, exact), piece.near(at.ravel()).reshape(at.shape), *[e[:, None] for e in exact]]
        v = np.sort(np.concatenate([np.broadcast_to(c, (len(labels), c.shape[1])) for c in cuts], axis=1), axis=1)
        a, b = v[:, :-1], v[:, 1:]
        live = b - a > 1e-15 * np.maximum(1.0, np.abs(a))
        middle = np.where(live, (a + b) / 2, piece.edges[0])
        its = labels[:, None] - piece.label(middle.ravel()).reshape(middle.shape)
        chance = np.max([np.abs(piece.weights(p.ravel())).max(axis=0).reshape(p.shape) for p in (a, middle, b)], axis=0)
        with np.errstate(invalid="ignore"):
            live &= ~(chance * (b - a) * self.w.table.at_most(its.ravel()).reshape(its.shape) < _NOTHING)
        if least is not None:
            live &= ~((its > 0) & (its < least[:, None]))
        owner, n = np.nonzero(live)
        a, b = a[owner, n], b[owner, n]
        nodes, weights = _nodes(a, b, [(e[owner], p) for e, (_, p) in zip(exact, self.w.knots, strict=False)], order)
        flat = nodes.ravel()
        mine = piece.weights(flat) * weights.ravel()
        value = self.w.at(np.repeat(labels[owner], order) - piece.label(flat))
        total = np.zeros((len(sides), len(self.rows), len(labels)))
        for k, side in enumerate(sides):
            for m, (x, y) in enumerate(self.terms):
                its_rows = sum((odd if x == 1 else 1) * value[0 if side * sign > 0 else 1, y] for sign, odd in piece.images)
                terms = (mine[x] * its_rows).reshape(-1, order).sum(axis=1)
                total[k, m] = np.bincount(owner, terms, minlength=len(labels))
        return total

    def _crowded(self, labels: np.ndarray, order: int, sides: Sequence[int]) -> np.ndarray:
        """The part with 0 < d_w < min(d/2, small), as an integral over log d_w."""
        total = np.zeros((len(sides), len(self.rows), len(labels)))
        top = np.log(np.minimum(np.maximum(labels / 2, 1e-300), _SMALL))
        floor = float(self.w.tail or 0.0)
        mine = np.flatnonzero((labels > 0) & (top > floor))
        if not len(mine):
            return total
        d, top = labels[mine], top[mine]
        edges = np.linspace(floor, np.log(_SMALL), max(2, int(np.ceil((np.log(_SMALL) - floor) / 1.5))))
        exact = [np.log(np.clip(d - c, 1e-300, None)) for c, _ in self.f.knots]
        ends = np.array([d - e for e in self.f.range()])
        cuts = np.concatenate([np.broadcast_to(edges, (len(d), len(edges))), top[:, None],
                               *[np.clip(e, floor, top)[:, None] for e in exact],
                               *[np.clip(np.log(np.maximum(e, 1e-300)), floor, top)[:, None] for e in ends]], axis=1)
        v = np.sort(np.minimum(cuts, top[:, None]), axis=1)
        a, b = v[:, :-1], v[:, 1:]
        owner, n = np.nonzero(b - a > 1e-14)
        a, b = a[owner, n], b[owner, n]
        nodes, weights = _nodes(a, b, [(e[owner], p) for e, (_, p) in zip(exact, self.f.knots, strict=True)], order)
        small = np.exp(nodes.ravel())
        its = self.w.at(small) * small * weights.ravel()
        orders, own = list(self.f.orders), self.f.density(np.repeat(d[owner], order) - small)
        own = own.reshape(len(self.f.sides()), len(orders), -1)
        if self.f.odd:
            own = np.concatenate([own, own * np.array([(-1) ** x for x in orders])[:, None]])
        for k, side in enumerate(sides):
            for m, (x, y) in enumerate(self.terms):
                terms = own[0, orders.index(x)] * its[0 if side > 0 else 1, y]
                terms = terms + own[1, orders.index(x)] * its[1 if side > 0 else 0, y]
                total[k, m, mine] = np.bincount(owner, terms.reshape(-1, order).sum(axis=1), minlength=len(d))
        return total


def _moved(edges: np.ndarray, exact: list[np.ndarray]) -> np.ndarray:
    """The edges at each label; those next to the image of a knot are put on it, lest a stretch start close to it."""
    if not exact:
        return edges[None, :]
    found = np.tile(edges, (len(exact[0]), 1))
    reach = np.diff(edges).min() / 4
    for e in exact:
        inner = found[:, 1:-1]
        inner[...] = np.where(np.abs(inner - e[:, None]) < reach, e[:, None], inner)
    return found


def _nodes(a: np.ndarray, b: np.ndarray, marks: list[tuple[np.ndarray, int]], order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on (a, b), in the chart of a knot at an end, shapes (n, order)."""
    x, w = gauss(order)
    left, right = np.ones(len(a), dtype=int), np.ones(len(a), dtype=int)
    for at, power in marks:
        near = 1e-13 * np.maximum(1.0, np.abs(at))
        left = np.where(np.abs(a - at) < near, power, left)
        right = np.where(np.abs(b - at) < near, power, right)
    nodes, weights = np.empty((len(a), order)), np.empty((len(a), order))
    span = b - a
    for p in set(left.tolist()) | set(right.tolist()):
        t, v = x**p, p * w * x ** (p - 1)
        one = (left == p) if p > 1 else (left == 1) & (right == 1)
        nodes[one], weights[one] = a[one, None] + span[one, None] * t, span[one, None] * v
        two = (right == p) & (left == 1) if p > 1 else np.zeros(len(a), dtype=bool)
        nodes[two], weights[two] = b[two, None] - span[two, None] * t, span[two, None] * v
    both = (left > 1) & (right > 1)
    if both.any():
        t = (1 - np.cos(np.pi * x)) / 2  # a root at either end
        nodes[both] = a[both, None] + span[both, None] * t
        weights[both] = span[both, None] * (w * np.pi * np.sin(np.pi * x) / 2)
    return nodes, weights
