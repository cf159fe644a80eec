"""E f(z) ~ sum_j w_j f(L x_j) on panels that end where f switches: one rule for averages over up to three variables.

The two sides of a claim are evaluated by the same rule. Each average comes with its magnitude E|f| and an error, which is the
difference between two rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sympy import Expr, floor

from hermitex.check.array_values import PI, ArrayValues, NoNumber, Real, Rows, no_average, switches
from hermitex.numbers.gauss import legendre
from hermitex.symbolic.gaussian import Expectation

NODES = 1_200_000  # of one rule: some 0.5 s for an integrand of ten operations


class Rule(NamedTuple):
    """Panels on the window, order on each (0: equal steps), and panels graded by 4 about each switch or steep place."""

    panels: int
    order: int
    graded: int = 0


#: Rules by number of variables, coarse to fine; smooth integrands of several variables are summed in equal steps.
KINKED = {1: (Rule(12, 20), Rule(16, 24, 6), Rule(60, 30, 10), Rule(300, 30, 16)),
          2: (Rule(6, 14), Rule(9, 18), Rule(9, 18, 5), Rule(24, 20, 6)),
          3: (Rule(4, 10), Rule(5, 12))}
SMOOTH = {1: (Rule(40, 0), Rule(80, 0), Rule(160, 0), *KINKED[1][1:]), 2: (Rule(40, 0), Rule(80, 0), Rule(160, 0), Rule(8, 20, 5)),
          3: (Rule(24, 0), Rule(48, 0), Rule(96, 0))}
OTHER = {1: (Rule(37, 26, 7), Rule(53, 34, 9)), 2: (Rule(9, 20, 4), Rule(11, 24, 5)), 3: (Rule(4, 11), Rule(5, 13))}
ROUNDING = Real(4e-16)  # of an average over its magnitude: nodes and weights are doubles


def average(node: Expectation, rows: Rows, *, other: bool = False) -> tuple[Any, Any]:
    """(value, error) of an average at each row of its letters.

    Parameters
    ----------
    rows : numbers or arrays for the letters that are free in the average
    other : use rules that share no node with the usual ones

    Raises
    ------
    NoNumber : it does not settle, reaches the end of the scan, or takes too many nodes.
    """
    n = len(node.bound)
    if n > 3:
        raise NoNumber(f"an average over {n} variables has no number here")
    rows = {s: v for s, v in rows.items() if s in node.free_symbols}
    count = max((np.size(v) for v in rows.values() if np.ndim(v)), default=1)
    hard = switches(node.body)[0]
    smooth = not any(g.free_symbols & set(node.bound) for g in hard) and not node.body.has(floor)
    rules = OTHER[n] if other else SMOOTH[n] if smooth and (n > 1 or count > 1) else KINKED[n]
    rules = rules if count == 1 else rules[:3]
    value: Any = None
    magnitude: Any = None
    error: Any = None
    before: Any = None
    for rule in rules:
        try:
            value, magnitude = Panels(node, rows, count, rule).total()
        except NoNumber:
            if before is None:
                raise
            break
        if before is not None:
            latest = np.abs(value - before) + ROUNDING*magnitude
            if not rule.order:  # equal steps: halving a step squares the error of a smooth integrand
                squared = magnitude*(latest/_nonzero(magnitude))**Real(1.4)
                latest = np.where(latest < 1e-5*magnitude, squared, latest) + ROUNDING*magnitude
            if error is None or np.max(latest/_nonzero(magnitude)) < np.max(error/_nonzero(magnitude)):
                error, best = latest, value
            if np.all(latest <= 3*ROUNDING*magnitude):
                break
        before = value
    if error is None or not np.all(np.isfinite(best)) or np.any(error > 1e-3*magnitude):
        raise NoNumber("an average does not settle")
    if not any(np.ndim(v) for v in rows.values()):
        return best[0], error[0]
    return best, error


def _nonzero(x: Any) -> Any:
    return x + Real("1e-4900")


class Panels:
    """One rule for one average, in coordinates w with z = L w, w standard normal."""

    def __init__(self, node: Expectation, rows: Rows, count: int, rule: Rule) -> None:
        self.node, self.rows, self.count, self.rule = node, rows, count, rule
        self.n = len(node.bound)
        self.factor = self._factor()
        inside, steep = switches(node.body)
        known = set(rows) | set(node.bound)
        here = [[g for g in some if g.free_symbols & set(node.bound) and g.free_symbols <= known] for some in (inside, steep)]
        self.steep = frozenset(here[1])
        self.planes, self.curved = self._planes([*here[0], *(here[1] if rule.graded else ())])

    def total(self) -> tuple[Any, Any]:
        """E f and E|f| at each row."""
        return self._inner(0, [], self.rows, self.count)

    # -- the law -------------------------------------------------------------------------------------------------------
    def _factor(self) -> Any:
        """L with L L^T = C, by Cholesky."""
        if self.node.independent:
            return np.eye(self.n, dtype=Real)
        values = ArrayValues(self.rows, no_average("a covariance holds an average"))
        C = [[values(entry) for entry in self.node.covariance[i, :]] for i in range(self.n)]
        L: Any = [[Real(0)]*self.n for _ in range(self.n)]
        for i in range(self.n):
            for j in range(i + 1):
                rest = C[i][j] - sum(L[i][k]*L[j][k] for k in range(j))
                if i != j:
                    L[i][j] = np.where(L[j][j] > 0, rest/np.where(L[j][j] > 0, L[j][j], 1), 0)
                elif np.any(rest < -1e-17*np.abs(C[i][i])):
                    raise NoNumber("the numbers make no covariance")
                else:
                    L[i][i] = np.sqrt(np.maximum(rest, 0))
        return L

    def _at(self, w: Sequence[Any], rows: Rows) -> dict[Any, Any]:
        """The letters' values with z = L w for the bound variables; the coordinates that are left out are 0."""
        factor = self.factor
        if not self.node.independent and self.count > 1 and np.size(w[0]) != self.count:
            repeats = np.size(w[0])//self.count
            factor = [[np.repeat(e, repeats) if np.ndim(e) else e for e in row] for row in factor]
        return {**rows, **{b: sum(factor[i][j]*x for j, x in enumerate(w) if np.ndim(factor[i][j]) or factor[i][j])
                           + Real(0)*w[0] for i, b in enumerate(self.node.bound)}}

    def _of(self, expr: Expr, w: Sequence[Any], rows: Rows) -> Any:
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(ArrayValues(self._at(w, rows), _nested)(expr)), np.shape(w[0]))

    def _planes(self, places: Sequence[Expr]) -> tuple[list[list[list[Any]]], list[Expr]]:
        """For each coordinate the planes c_0 + c.w = 0 at which its panels end; and the switches that are not planes.

        The planes of an outer coordinate include those at which two planes of the inner ones cross.
        """
        units = [np.zeros((self.n, self.count), Real) for _ in range(self.n + 2)]
        for i in range(self.n):
            units[i + 1][i] = 1
        units[-1][:] = np.array([Real("0.37"), Real("-1.21"), Real("0.83")])[:self.n, None]
        affine, curved = [], []
        for g in places:
            try:
                first, *others, last = (self._of(g, list(u), self.rows) for u in units)
            except NoNumber:
                continue
            slopes = [v - first for v in others]
            said = first + sum(c*u for c, u in zip(slopes, units[-1], strict=True))
            if np.all(np.abs(said - last) <= 1e-14*(np.abs(first) + sum(map(np.abs, slopes)))):
                affine.append([first, *slopes])
            else:
                curved.append(g)
        levels: list[list[list[Any]]] = []
        for i in reversed(range(self.n)):
            levels.insert(0, [p for p in affine if np.any(p[i + 1] != 0)])
            crossed = [[a*q[i + 1] - b*p[i + 1] for a, b in zip(p, q, strict=True)] for p, q in combinations(levels[0], 2)]
            affine = [p for p in affine if np.all(p[i + 1] == 0)] + (crossed if i and len(levels[0]) < 5 else [])
        return levels, curved

    # -- the sum -------------------------------------------------------------------------------------------------------
    def _inner(self, i: int, w: list[Any], rows: Rows, m: int) -> tuple[Any, Any]:
        """The average over the coordinates from i on, at m rows."""
        if i == self.n:
            value = self._of(self.node.body, w, rows).astype(Real)
            return value, np.abs(value)
        x, weight = self._nodes(i, w, rows, m)
        q = x.shape[1]
        if m*q > NODES:
            raise NoNumber("an average takes too many nodes")
        further = {s: np.repeat(v, q) if np.ndim(v) else v for s, v in rows.items()}
        value, magnitude = self._inner(i + 1, [*(np.repeat(v, q) for v in w), x.reshape(-1)], further, m*q)
        with np.errstate(all="ignore"):
            return tuple(np.where(weight > 0, v.reshape(m, q)*weight, 0).sum(axis=1) for v in (value, magnitude))  # type: ignore[return-value]

    def _nodes(self, i: int, w: list[Any], rows: Rows, m: int) -> tuple[Any, Any]:
        """Nodes and weights of the Gaussian law in coordinate i, arrays (m, q)."""
        low, high = self._window(i, w, rows, m)
        if not self.rule.order:
            x = np.linspace(0, 1, self.rule.panels).astype(Real)*(high - low) + low
            x, weight = np.broadcast_to(x, (m, len(x))), np.full((m, len(x)), x[1] - x[0])
        else:
            edges = self._edges(i, w, rows, m, low, high)
            nodes, weights = legendre(self.rule.order)
            half = np.diff(edges, axis=1)[:, :, None]/2
            x = (edges[:, :-1, None] + half*(1 + nodes)).reshape(m, -1)
            weight = (half*weights).reshape(m, -1)
        with np.errstate(under="ignore"):
            return x, weight*np.exp(-x*x/2)/np.sqrt(2*PI)

    def _window(self, i: int, w: list[Any], rows: Rows, m: int) -> tuple[Any, Any]:
        """Where the integrand under its weight is not below 1e-22 of its top; an outer coordinate has +-9.7 at least.

        Raises NoNumber where the mass lies at the end of the scan: +-140 of one variable, +-40 of several.
        """
        low, high = Real(-9.7), Real(9.7)
        single = self.n == 1 and m == 1
        grid = np.linspace(-140, 140, 561).astype(Real) if single else np.linspace(-40, 40, 81).astype(Real)
        if self.node.body.has(Expectation) or (i < self.n - 1 and m > 1) or m*len(grid) > 100_000:
            return low, high
        spread = [np.repeat(v, len(grid)) for v in w]
        further = {s: np.repeat(v, len(grid)) if np.ndim(v) else v for s, v in rows.items()}
        size = np.abs(self._of(self.node.body, [*spread, np.tile(grid, m)], further)).reshape(m, len(grid)).astype(Real)
        with np.errstate(all="ignore"):
            size = np.where(np.isfinite(size), size, 0)*np.exp(-grid*grid/2)
        top = size.max(axis=1, keepdims=True)
        if not np.any(top > 0):
            return low, high
        if np.any(size[:, [0, -1]] > 1e-10*top) and self.n == 1:
            raise NoNumber("an average has most of its mass too far from 0, or does not exist")
        kept = grid[((size > 1e-22*top) & (top > 0)).any(axis=0)]
        step = grid[1] - grid[0]
        return (kept[0] - step, kept[-1] + step) if single else (min(low, kept[0] - step), max(high, kept[-1] + step))

    def _edges(self, i: int, w: list[Any], rows: Rows, m: int, low: Any, high: Any) -> Any:
        """The ends of the panels, (m, k): equal ones, and those at which something switches."""
        cuts = [np.broadcast_to(np.linspace(0, 1, self.rule.panels + 1).astype(Real)*(high - low) + low, (m, self.rule.panels + 1))]
        places = [self._root(p, i, w, m) for p in self.planes[i]]
        if i == self.n - 1 and m <= 4000:
            places += [root for g in self.curved for root in self._roots(g, w, rows, m, low, high)]
        spans = (high - low)/4*Real(4)**-np.arange(self.rule.graded)
        for place in places:
            place = np.clip(np.where(np.isfinite(place), place, low), low, high)[:, None]
            cuts += [place] if not self.rule.graded else [place, np.clip(np.hstack([place - spans, place + spans]), low, high)]
        return np.sort(np.hstack(cuts), axis=1)

    def _root(self, plane: list[Any], i: int, w: list[Any], m: int) -> Any:
        """The coordinate i at which the plane is met, given the outer ones."""
        c = [np.repeat(v, m//self.count) for v in plane]
        rest = c[0] + sum((c[j + 1]*x for j, x in enumerate(w)), np.zeros(m, Real))
        with np.errstate(all="ignore"):
            return np.where(c[i + 1] != 0, -rest/c[i + 1], np.nan)

    def _roots(self, g: Expr, w: list[Any], rows: Rows, m: int, low: Any, high: Any) -> list[Any]:
        """The first 12 sign changes of g in the innermost coordinate on 130 places, by bisection."""
        places = np.linspace(0, 1, 130).astype(Real)*(high - low) + low

        def at(x: Any) -> Any:
            k = x.shape[1]
            further = {s: np.repeat(v, k) if np.ndim(v) else v for s, v in rows.items()}
            return np.sign(np.asarray(self._of(g, [*(np.repeat(v, k) for v in w), x.reshape(-1)], further), Real)).reshape(m, k)

        signs = at(np.broadcast_to(places, (m, len(places))))
        changes = signs[:, 1:]*signs[:, :-1] < 0
        found = []
        for k in range(min(int(changes.sum(axis=1).max()), 12)):
            first = np.where(changes.cumsum(axis=1).max(axis=1) > k, (changes.cumsum(axis=1) > k).argmax(axis=1), -1)
            below, above = places[np.maximum(first, 0)], places[np.maximum(first, 0) + 1]
            left = signs[np.arange(m), np.maximum(first, 0)]
            for _ in range(66):
                middle = (below + above)/2
                same = at(middle[:, None])[:, 0] == left
                below, above = np.where(same, middle, below), np.where(same, above, middle)
            found.append(np.where(first >= 0, above, np.nan))
        return found


def _nested(node: Expectation, rows: Rows) -> Any:
    """The value of an average inside another one; each set of numbers for its letters once."""
    many = [s for s, v in rows.items() if np.ndim(v) and s in node.free_symbols]
    if len(many) != 1:
        return average(node, rows)[0]
    once, back = np.unique(rows[many[0]], return_inverse=True)
    return average(node, {**{s: v for s, v in rows.items() if not np.ndim(v)}, many[0]: once})[0][back]
