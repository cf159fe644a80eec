"""rho(s, d) = sum_s' int phi(z) He_a(z) rho_B(s s', d - d_f(z)) dz: the law of f(z) w, w with the law rho_B of d = T - log|w|.

The integral over z runs between the images of the panels of rho_B, so that every stretch is smooth; a stretch that ends at
the image of a knot of rho_B takes the chart of that knot. Where both |f| and |w| saturate, labels near the top are sums
d = d_f + d_w of two small numbers: the part with d_w < d_f is written as an integral over d_w, which keeps its digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sympy import Dummy, Expr, Mul, S, Symbol

from hermitex.exponents.laws.charts import Panels, Table, fitted, gauss, layout
from hermitex.exponents.laws.density import Index, Law, common_power, distinct
from hermitex.exponents.laws.factors import Factor, factor
from hermitex.exponents.laws.stretches import Piece, Unsuited
from hermitex.exponents.laws.sums import in_chunks
from hermitex.symbolic.precise import evaluate

ORDER = 16
_STEEP = 4.0     # ratio of the distances from a knot at which stretches end, next to it
_LEVELS = 10
_REACH = 1.0
_SMALL = 0.05    # d_w below which both may be small
_FALLING = 0.5 * 6.0 ** -np.arange(7)
_DEEPEST = -40.0  # log d
_NOTHING = 1e-18
_COST = 500
_WEIGHT = 25      # of an error of nu_a in the couplings: 2 E[He_a|y], and what its L1 norm is underrated
_TRUSTED = 1e-9   # an L1 error up to which the law is used

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


# -- as a law of the label ---------------------------------------------------------------------------------------------
def product_of_functions(g: Expr, place: dict[Symbol, int], drop: Sequence[Index]) -> Law | None:
    """The law of g = c prod f_i(z_i), or None if g is another expression, or another route has to serve.

    Parameters
    ----------
    place : the index of each variable;  drop : indices known to be exactly zero for the product
    """
    if not isinstance(g, Mul):
        return None
    constant, rest = g.as_independent(*place, as_Add=False)
    parts: dict[frozenset, Expr] = {}
    for e in Mul.make_args(rest):
        mine = frozenset(e.free_symbols)
        parts[mine] = parts.get(mine, S.One) * e
    if len(parts) < 2 or not constant.is_number or any(len(mine) != 1 or not mine <= set(place) for mine in parts):
        return None
    x, scale = Dummy("x", real=True), float(evaluate(constant, 20))
    spots: dict[Expr, list[int]] = {}
    for (z,), part in parts.items():
        spots.setdefault(part.xreplace({z: x}), []).append(place[z])
    try:
        factors = [(factor(f, x), mine) for f, mine in spots.items()]
    except (Unsuited, ArithmeticError, TypeError, ValueError):  # what a function of the user's may do far out or at a pole
        return None
    # A factor that saturates, or has plateaus, is better integrated over than tabulated.
    order = sorted(range(len(factors)), key=lambda n: (bool(factors[n][0].plateaus), factors[n][0].tail is not None))
    if factors[order[0]][0].plateaus or not factors[order[0]][0].pieces:
        return None
    todo = [n for n in order for _ in factors[n][1]]
    w = started(factors[todo[0]][0], todo[0])
    for n in todo[1:]:
        w = times(w, factors[n][0], n)
    return _law(w, factors, scale, drop) if w.lost < _TRUSTED else None


def _law(w: Product, factors: list[tuple[Factor, list[int]]], scale: float, drop: Sequence[Index]) -> Law:
    every = sorted(i for _, mine in factors for i in mine)
    kind = {i: n for n, (_, mine) in enumerate(factors) for i in mine}
    candidates = [(), *[(i,) for i in every], *[(i, j) for n, i in enumerate(every) for j in every[n:]]]
    names = {a: row([(kind[i], a.count(i)) for i in sorted(set(a))]) for a in candidates}
    indices = tuple(a for a in candidates if names[a] in w.rows and a not in drop)
    rows = [w.rows.index(names[a]) for a in indices]
    top, sign = w.shift + np.log(abs(scale)), np.sign(scale)

    def density(y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, dtype=float)
        with np.errstate(divide="ignore"):
            found = w.at(top - np.log(np.abs(y)))[:, rows]
        size = np.where(y == 0, np.inf, np.abs(y))
        return np.where(y * sign > 0, found[0], found[1]) / size

    def points(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d, masses, lengths = w.table.masses(order)
        y = np.exp(top - d) * sign
        if w.parities:
            both = [masses[rows], masses[rows] * np.array(w.parities)[rows][:, None]]
        else:
            both = list(masses.reshape(2, len(w.rows), -1)[:, rows])
        return np.concatenate([y, -y]), np.concatenate(both, axis=1) / np.tile(lengths, 2), np.tile(lengths, 2)

    end = float(np.exp(top - w.table.edges[0]))
    knots = [0.0, *[s * float(np.exp(top - c)) for c, _ in w.knots for s in (-1, 1)]]
    atoms = []
    if any(f.silent for f, _ in factors):
        totals = [float(np.prod([f.totals[sum(1 for i in a if i == spot)] for f, mine in factors for spot in mine]))
                  for a in indices]
        atoms = [(0.0, np.array([float(a == ()) for a in indices]) - totals)]
    return Law(indices, density, -end, end, tuple(distinct(np.array(knots))), (), tuple(atoms), True,
               common_power(4, *[p for _, p in w.knots]), points=points, lost=_WEIGHT * w.lost)
