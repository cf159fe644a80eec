"""{t: F(u, t) = y} on numbers: the monotone pieces of t -> F(u, t), and in each at most one solution.

For many pairs (u, y) at once. The ends of the pieces are zeros of the slope and of the arguments of switches: scanned and
bisected on a grid of u once, followed from there by Newton's method, scanned again where they cannot be followed. In a
piece whose ends have labels on both sides of y the solution is found by Newton's method in its bracket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

_BISECTIONS = 52
_NEWTON = 60
_FOLLOW = 7
_CLOSE = 1e-13
_STEP = 1e-8


class Scanned:
    """Level sets along t.

    Parameters: `f`, `slope`: functions of arrays (u, t); `marks`: the ends of the pieces are the zeros of these functions,
    each with its derivative in t; `grids`: values of u and t to scan.
    """

    def __init__(self, f: Callable, slope: Callable, marks: Sequence[tuple[Callable, Callable]],
                 grids: tuple[np.ndarray, np.ndarray]) -> None:
        self.f, self.slope, self.marks = f, slope, marks
        self.us, self.grid = grids
        self.tables = [_table(*self._scan(mark, self.us), len(self.us)) for mark, _ in marks]

    def count(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How many solutions there are; at a fold it jumps."""
        u, y = np.broadcast_arrays(u, y)
        _, side = self._pieces(u.ravel(), y.ravel())
        return np.sum(side[:, :-1] * side[:, 1:] < 0, axis=1).reshape(u.shape).astype(float)

    def counts(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The same for all pairs, shape (len(y), len(u)): the pieces do not depend on y."""
        edges = self._edges(u)
        with np.errstate(all="ignore"):
            values = self.f(u[:, None], edges)
            side = np.nan_to_num(np.sign(values - y[:, None, None]))
        return np.sum(side[:, :, :-1] * side[:, :, 1:] < 0, axis=2).astype(float)

    def solutions(self, u: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        """The solutions as arrays of the shape of u, nan where there is none."""
        shape, u, y = u.shape, u.ravel(), y.ravel()
        edges, side = self._pieces(u, y)
        found = []
        for k in range(edges.shape[1] - 1):
            mine = np.flatnonzero(side[:, k] * side[:, k + 1] < 0)
            if len(mine):
                t = np.full(len(u), np.nan)
                t[mine] = self._solved(u[mine], y[mine], (edges[mine, k], edges[mine, k + 1]), side[mine, k])
                found.append(t.reshape(shape))
        return found

    def _pieces(self, u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        edges = self._edges(u)
        with np.errstate(all="ignore"):
            return edges, np.nan_to_num(np.sign(self.f(u[:, None], edges) - y[:, None]))

    def _edges(self, u: np.ndarray) -> np.ndarray:
        """The ends of the monotone pieces of each u, shape (len(u), k), filled up with the last."""
        inner = [self._followed(n, u) for n in range(len(self.marks))]
        points = np.sort(np.concatenate(inner, axis=1), axis=1)
        points = np.where(np.isnan(points), self.grid[-1], points)
        low, high = (np.full((len(u), 1), e) for e in (self.grid[0], self.grid[-1]))
        return np.concatenate([low, points, high], axis=1)

    def _followed(self, n: int, u: np.ndarray) -> np.ndarray:
        """The zeros of one mark at each u, nan where there are fewer."""
        (mark, rise), (table, counts) = self.marks[n], self.tables[n]
        cell = np.clip(np.searchsorted(self.us, u, side="right") - 1, 0, len(self.us) - 2)
        share = ((u - self.us[cell]) / (self.us[cell + 1] - self.us[cell]))[:, None]
        t = (1 - share) * table[cell] + share * table[cell + 1]
        move = np.zeros_like(t)
        for _ in range(_FOLLOW if t.shape[1] else 0):
            with np.errstate(all="ignore"):
                move = mark(u[:, None], t) / rise(u[:, None], t)
                t = t - move
        wanted = np.arange(t.shape[1]) < counts[cell][:, None]
        good = counts[cell] == counts[cell + 1]
        with np.errstate(all="ignore"):
            good &= np.all(~wanted | (np.abs(move) <= _CLOSE * np.maximum(1.0, np.abs(t))), axis=1)
            good &= np.all(~wanted[:, 1:] | (np.diff(t, axis=1) > _CLOSE), axis=1)
            good &= np.all(~wanted | ((t > self.grid[0]) & (t < self.grid[-1])), axis=1)
        t = np.where(wanted, t, np.nan)
        bad = np.flatnonzero(~good)
        if not len(bad):
            return t
        found, _ = _table(*self._scan(mark, u[bad]), len(bad))
        width = max(t.shape[1], found.shape[1])
        full = np.full((len(u), width), np.nan)
        full[:, :t.shape[1]] = t
        full[bad] = np.nan
        full[bad, :found.shape[1]] = found
        return full

    def _scan(self, mark: Callable, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(place of u, zero) of one mark."""
        values = mark(u[:, None], self.grid)
        row, column = np.nonzero(np.sign(values[:, :-1]) * np.sign(values[:, 1:]) < 0)
        a, b, low, at = self.grid[column], self.grid[column + 1], values[row, column] < 0, u[row]
        for _ in range(_BISECTIONS):
            m = (a + b) / 2
            before = (mark(at, m) < 0) == low
            a, b = np.where(before, m, a), np.where(before, b, m)
        return row, (a + b) / 2

    def _solved(self, u: np.ndarray, y: np.ndarray, ends: tuple[np.ndarray, np.ndarray], low: np.ndarray) -> np.ndarray:
        a, b = (e.copy() for e in ends)
        base, size, t = self._folded(u, y, ends)
        live = np.arange(len(u))
        for _ in range(_NEWTON):
            f = self.f(u[live], t[live])
            value = f - y[live]
            before = np.sign(value) == low[live]
            a[live], b[live] = np.where(before, t[live], a[live]), np.where(before, b[live], t[live])
            with np.errstate(all="ignore"):
                # Newton's method for sqrt|F - F(end)|, which is straight where the end is a fold.
                rise = np.abs(f - base[live])
                root = np.sqrt(rise)
                share = 2 * root / (root + np.sqrt(size[live]))
                step = value / self.slope(u[live], t[live])
                new = t[live] - step * np.where(np.isfinite(share), share, 1.0)
            # The last step may leave the bracket by rounding.
            old = t[live]
            moved = ~(np.abs(new - old) <= 4e-16 * np.maximum(np.abs(new), 1e-3)) & (value != 0)
            inside = (new > a[live]) & (new < b[live])
            new = np.where(inside, new, (a[live] + b[live]) / 2)
            t[live] = np.where(moved, new, t[live])
            # The error left is step^2 F''/(2 F'), and F''/F' is about 1/(distance to the nearest end).
            near = np.minimum(t[live] - ends[0][live], ends[1][live] - t[live])
            live = live[moved & ~(inside & (np.abs(new - old) <= _STEP * near))]
            if not len(live):
                break
        return t

    def _folded(self, u: np.ndarray, y: np.ndarray,
                ends: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(F at the end with the nearer label, how far y is from it, where y is if F is quadratic from there on)."""
        labels = [self.f(u, e) for e in ends]
        first = np.abs(y - labels[0]) <= np.abs(y - labels[1])
        base, other = np.where(first, labels[0], labels[1]), np.where(first, labels[1], labels[0])
        end, far = np.where(first, ends[0], ends[1]), np.where(first, ends[1], ends[0])
        size = np.abs(y - base)
        with np.errstate(all="ignore"):
            share = np.sqrt(size / np.abs(other - base))
        good = np.isfinite(share) & (share > 0) & (share < 1)
        return base, size, end + (far - end) * np.where(good, share, 0.5)


def _table(row: np.ndarray, point: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The points of each row side by side, nan where there are fewer, and their numbers."""
    counts = np.bincount(row, minlength=size)
    table = np.full((size, int(counts.max(initial=0))), np.nan)
    table[row, np.arange(len(row)) - np.searchsorted(row, row)] = point
    return table, counts
