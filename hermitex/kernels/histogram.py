r"""P(g(z) in a bin | z in a cell): where g is linear its label is a sum of uniform variables of the widths |d_i g| h_i.

A cubic grid of cells in any frame; cells in which g is not linear (kinks, jumps, critical points) are cut into smaller ones. The
chance of a bin is then sum_cells int_cell f P(bin | cell)/|cell| for a smooth f; `cell_weights` tells f within cells from what it
is on
them. The edges of bins should meet the labels at `critical_points`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial

import numpy as np
from scipy.ndimage import minimum_filter
from scipy.optimize import root
from scipy.sparse import csr_array

from hermitex.numbers.gauss import legendre
from hermitex.symbolic.budget import checkpoint

Array = np.ndarray
REACH = 6.3  # P(|z_i| > 6.3) = 3e-10
_LINEAR = {2: 0.02, 3: 0.2}  # how far g at the corners may be from a plane, of its variation over the cell
_STRAIGHT = {2: 0.005, 3: 0.2}  # the same for single level sets, which see the gaps between one plane and the next
_BLOCK = {2: 8, 3: 4}  # cells on a side
_FLAT = 1e-13  # of a label: what rounding leaves of a constant
_PARTS, _DEPTH = {2: 4, 3: 3}, {2: 4, 3: 2}
# Extremes are sought within 3.1 standard deviations (99.8 % of a variable), from so many points, with slopes of this step.
_CORE, _SCAN, _STEP = 3.1, {2: 64, 3: 20}, 1e-4
NODE, _WEIGHT = (a/2 for a in legendre(3))  # Gauss-Legendre rule of three points on a cell (-1/2, 1/2)
# by the first of three cells, -2, -1 or 0: the parabola that has their means, at the nodes of cell 0
_MEANS = np.array([NODE[:, None]**np.arange(3) @ np.linalg.inv([[1, k, k*k + 1/12] for k in range(d, d + 3)])
                   for d in (-2, -1, 0)])


@dataclass(frozen=True, eq=False)
class Histogram:
    """P(bin | cell), a row for each bin and cell of all axes but the last, the last axis along the columns; sides of the grid.

    Bin k is below edge k, the last above all edges.
    """

    sides: tuple[Array, ...]
    edges: Array
    table: csr_array

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells along each axis."""
        return tuple(len(x) for x in self.sides)

    @property
    def widths(self) -> Array:
        """The width of the cells along each axis."""
        return np.array([x[1] - x[0] for x in self.sides])

    def rows(self, bins: range) -> csr_array:
        """The part of the table of some bins that follow each other."""
        each = int(np.prod(self.shape[:-1]))
        return self.table[each*bins.start:each*bins.stop]

    def centres(self, k: int) -> Array:
        """The centres of the cells that meet bin k, (n, r)."""
        row, column = self.rows(range(k, k + 1)).tocoo().coords
        places = np.unravel_index(row*self.shape[-1] + column, self.shape)
        return np.stack([x[i] for x, i in zip(self.sides, places, strict=True)], axis=1)


@dataclass(frozen=True, eq=False)
class Planes:
    """g in cells, as mean + sum_i slopes_i u_i, |u_i| < 1/2 from side to side; a cell that is not flat has the value at its centre.

    cell (n,) : its number in the grid;  centre, slopes (r, n);  mean, weight (n,) : the size, in cells of the grid
    """

    sides: tuple[Array, ...]
    cell: Array
    centre: Array
    mean: Array
    slopes: Array
    weight: Array

    @property
    def widths(self) -> Array:
        """How much of g's range each variable covers, (r, n); that of a constant is what rounding leaves."""
        size = np.abs(self.slopes)
        top = np.maximum(size.max(axis=0, initial=0.0), _FLAT*np.maximum(np.abs(self.mean), 1.0))
        thin = 0.005  # a width is at least this part of the largest: sums of uniforms lose digits for less
        return np.maximum(size, thin*top)

    @property
    def thinned(self) -> Planes:
        """The same with whole blocks of cells on a plateau as 2^r nodes of Gauss-Legendre."""
        r, flat = len(self.sides), np.flatnonzero((self.weight == 1) & ~self.slopes.any(axis=0))
        wide = _BLOCK[r]*np.array([x[1] - x[0] for x in self.sides])
        block = np.floor(self.centre[:, flat]/wide[:, None]).astype(int)
        order = np.lexsort(block)
        block, flat = block[:, order], flat[order]
        start = np.flatnonzero(np.any(np.diff(block, axis=1, prepend=np.inf), axis=0))
        count, low, high = np.diff(start, append=len(flat)), *(f.reduceat(self.mean[flat], start) for f in (np.minimum, np.maximum))
        whole = (count == _BLOCK[r]**r) & (high - low <= _FLAT*np.maximum(np.abs(low), 1.0))
        kept = np.ones(len(self.mean), dtype=bool)
        kept[flat[np.repeat(whole, count)]] = False
        nodes = np.array(list(product((-1, 1), repeat=r))).T/np.sqrt(12) + 0.5
        centre = ((block[:, start[whole], None] + nodes[:, None])*wide[:, None, None]).reshape(r, -1)
        new = np.full(centre.shape[1], (_BLOCK[r]/2)**r)
        return Planes(self.sides, self.cell[kept], np.append(self.centre[:, kept], centre, axis=1),
                      np.append(self.mean[kept], np.repeat(low[whole], 2**r)),
                      np.append(self.slopes[:, kept], np.zeros(centre.shape), axis=1), np.append(self.weight[kept], new))

    def level(self, y: Array) -> tuple[Array, Array, Array]:
        """Of g = y_n in each cell that it meets: n, int delta(y_n - g) over the cell, and the mean point; (k,), (k,), (k, r)."""
        width, order, r = self.widths, np.argsort(y), len(self.sides)
        half = width.sum(axis=0)/2
        low, high = (np.searchsorted(y[order], self.mean + s*half) for s in (-1, 1))
        row, k = row_ranges(low, high)
        w, t, total, first = width[:, row], y[order[k]] - self.mean[row], np.zeros(len(row)), np.zeros((r, len(row)))
        for signs in product((1, -1), repeat=r):  # slopes of E[1; sum_i U_i < t] and of E[U_j; sum_i U_i < t]
            x = np.maximum(t + np.tensordot(np.array(signs)/2, w, axes=1), 0.0)
            p = np.prod(signs)*x**(r - 1)/factorial(r - 1)
            total += p
            first += p*(x/r - np.array(signs)[:, None]*w/2)
        kept = total > 0
        row, total = row[kept], total[kept]
        u = np.sign(self.slopes[:, row])*np.clip(first[:, kept]/(total*w[:, kept]), -0.5, 0.5)
        h = np.array([x[1] - x[0] for x in self.sides])[:, None]*self.weight[row]**(1/r)
        return order[k[kept]], total/np.prod(w[:, kept], axis=0)*self.weight[row], (self.centre[:, row] + h*u).T


def row_ranges(low: Array, high: Array) -> tuple[Array, Array]:
    """(row, k) for all low[row] <= k < high[row]."""
    n = np.maximum(high - low, 0)
    row = np.repeat(np.arange(len(n)), n)
    return row, np.repeat(low - np.cumsum(n) + n, n) + np.arange(len(row))


def histogram(g: Callable[[Sequence[Array]], Array], R: Array, widths: Sequence[float] | Array, edges: Array,
              folded: Sequence[int] = ()) -> Histogram:
    """The histogram of g(R u) over cells of u, those with u_i > 0 where g is even in u_i along the `folded` axes."""
    found = cell_planes(g, R, widths, folded, edges)
    return Histogram(found.sides, edges, _table(_bin_chances(found, edges), [len(x) for x in found.sides], len(edges) + 1))


def cell_planes(g: Callable[[Sequence[Array]], Array], R: Array, widths: Sequence[float] | Array, folded: Sequence[int] = (),
           edges: Array | None = None) -> Planes:
    """g(R u) over cells of u; between two `edges` it need not be a plane."""
    r = len(R)

    def at(u: Sequence[Array]) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(g([sum(c*x for c, x in zip(row, u, strict=True) if c) for row in R]))

    h = np.asarray(widths, dtype=float)
    half = [w*(np.arange(np.ceil(REACH/w)) + 0.5) for w in h]
    sides = tuple(x if i in folded else np.concatenate([-x[::-1], x]) for i, x in enumerate(half))
    near = (sum(x**2 for x in np.meshgrid(*sides, indexing="ij", sparse=True)) < REACH**2).ravel()
    middle = np.broadcast_to(at(np.meshgrid(*sides, indexing="ij", sparse=True)), tuple(map(len, sides)))
    ends = [np.append(x - w/2, x[-1] + w/2) for x, w in zip(sides, h, strict=True)]
    corner = np.broadcast_to(at(np.meshgrid(*ends, indexing="ij", sparse=True)), tuple(map(len, ends)))
    around = [corner[tuple(slice(1, None) if b else slice(None, -1) for b in c)] for c in product((0, 1), repeat=r)]
    mean, slopes, linear = (x.reshape(*x.shape[:x.ndim - r], -1) for x in _plane(middle, around, edges))

    def centres(cell: Array) -> Array:
        return np.array([x[i] for x, i in zip(sides, np.unravel_index(cell, middle.shape), strict=True)])

    cell, rough = np.flatnonzero(linear & near), np.flatnonzero(~linear & near)
    found: list[tuple[Array, ...]] = [(cell, centres(cell), mean[cell], slopes[:, cell], np.ones(len(cell)))]
    most = 3_000_000  # cells that are examined at a time
    centre, size = centres(rough), max(1, most//_PARTS[r]**(2*r))
    dear = 100  # products take the time of the values of g on one of them
    for k in range(0, len(rough), size):
        checkpoint("a histogram over cells", dear*len(rough[k:k + size])*_PARTS[r]**r)
        found += _refine_cells(at, rough[k:k + size], centre[:, k:k + size], h, edges, 1.0, _DEPTH[r])
    return Planes(sides, *(np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)))


def _plane(middle: Array, around: Sequence[Array], edges: Array | None) -> tuple[Array, Array, Array]:
    """(mean of g over each cell, d_i g h_i as the first axis, whether g is close to a plane or in one bin there)."""
    r = len(around).bit_length() - 1
    signs = np.array(list(product((-1, 1), repeat=r)))
    slack = 0.5  # of the spread of its corners by which g may reach further in a cell; a parabola reaches a quarter of it
    with np.errstate(all="ignore"):
        slopes = np.array([sum(s*x for s, x in zip(signs[:, i], around, strict=True)) for i in range(r)])/2**(r - 1)
        off = [np.abs(x - middle - np.tensordot(s/2, slopes, axes=1)) for s, x in zip(signs, around, strict=True)]
        near = (_LINEAR if edges is not None else _STRAIGHT)[r]*np.abs(slopes).sum(axis=0)
        linear = np.max(off, axis=0) <= near + _FLAT*np.abs(middle)
        mean = (2*middle + sum(around)/2**r)/3  # exact for a quadratic form
        low, high = np.minimum.reduce([middle, *around]), np.maximum.reduce([middle, *around])
        low, high = low - slack*(high - low), high + slack*(high - low)  # between the corners g may reach further
        alone = ~linear & (edges is not None and np.searchsorted(edges, low, side="right") == np.searchsorted(edges, high))
    return np.where(alone, middle, mean), np.where(alone, 0.0, slopes), (linear | alone) & np.isfinite(mean)


def _refine_cells(at: Callable[[Sequence[Array]], Array], cell: Array, centre: Array, h: Array, edges: Array | None, weight: float,
             depth: int) -> list[tuple[Array, ...]]:
    """Cells in smaller cells; what is rough even in the smallest has the label of its centre."""
    r, parts = len(h), _PARTS[len(h)]
    t = (np.arange(parts) + 0.5)/parts - 0.5
    shift = np.array(list(product(t, repeat=r))).T*h[:, None]
    centre, cell = (centre[:, :, None] + shift[:, None]).reshape(r, -1), np.repeat(cell, parts**r)
    h, weight = h/parts, weight/parts**r
    middle = np.broadcast_to(at(list(centre)), cell.shape)
    around = [np.broadcast_to(at(list(centre + h[:, None]*np.array(c)[:, None]/2)), cell.shape) for c in product((-1, 1), repeat=r)]
    mean, slopes, linear = _plane(middle, around, edges)
    found = [(cell[linear], centre[:, linear], mean[linear], slopes[:, linear], np.full(linear.sum(), weight))]
    rough = ~linear
    if depth > 1 and rough.any() and (r == 2 or rough.sum() < 60_000):
        return found + _refine_cells(at, cell[rough], centre[:, rough], h, edges, weight, depth - 1)
    label = np.nan_to_num(middle[rough], nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return [*found, (cell[rough], centre[:, rough], label, np.zeros((r, len(label))), np.full(len(label), weight))]


def _bin_chances(of: Planes, edges: Array) -> tuple[Array, Array, Array]:
    """(cell, bin, chance): the label of a cell is a sum of uniform variables about its mean."""
    cell, mean, width = of.cell, of.mean, of.widths
    half = width.sum(axis=0)/2
    low, high = np.searchsorted(edges, mean - half), np.searchsorted(edges, mean + half)
    n = high - low
    row, k = row_ranges(low, high)
    below = uniform_sums(edges[k] - mean[row], width[:, row])
    first = np.diff(row, prepend=-1) != 0
    chance = below - np.where(first, 0.0, np.concatenate([[0.0], below])[:-1] if len(below) else 0.0)
    rest = np.ones(len(mean))
    rest[n > 0] -= below[np.cumsum(n)[n > 0] - 1]
    row = np.concatenate([row, np.arange(len(mean))])
    return cell[row], np.concatenate([k, high]), of.weight[row]*np.concatenate([chance, rest])


def uniform_sums(x: Array, widths: Array) -> Array:
    """P(sum_i U_i < x), U_i uniform on (-widths_i/2, widths_i/2); shapes (n,), (r, n).

    >>> uniform_sums(np.array([0.0, 0.25]), np.ones((2, 2))).tolist()
    [0.5, 0.71875]
    """
    r = len(widths)
    total = np.zeros_like(x)
    for signs in product((1, -1), repeat=r):
        total += np.prod(signs)*np.maximum(x + np.tensordot(np.array(signs)/2, widths, axes=1), 0.0)**r
    return np.asarray(np.clip(total/(factorial(r)*np.prod(widths, axis=0)), 0.0, 1.0))


def _table(shared: tuple[Array, Array, Array], shape: Sequence[int], bins: int) -> csr_array:
    """Bin by bin, what falls together summed."""
    cell, k, chance = shared
    *first, last = shape
    rows = bins*int(np.prod(first))
    key, back = np.unique(k.astype(np.int64)*int(np.prod(shape)) + cell, return_inverse=True)
    chance = np.bincount(back, weights=chance, minlength=len(key))
    return csr_array((chance, key % last, np.searchsorted(key, last*np.arange(rows + 1))), shape=(rows, last))


def cell_weights(x: Array, h: float) -> csr_array:
    """The integrand at three nodes of each cell, times their weights, from its means over cells: by parabolas on either side of 0.

    A label that jumps or bends at 0 does so between cells.
    """
    n, zero, cell = len(x), int(np.searchsorted(x, 0.0)), np.arange(len(x))
    first = np.clip(cell - 1, np.where(cell < zero, 0, zero), np.where(cell < zero, zero, n) - 3)
    found = h*_WEIGHT[:, None]*_MEANS[first - cell + 2]
    places = np.broadcast_to((first[:, None] + np.arange(3))[:, None], found.shape)
    return csr_array((found.ravel(), places.ravel(), 3*np.arange(3*n + 1)), shape=(3*n, n))


def critical_points(g: Callable[[Sequence[Array]], Array], r: int) -> Array:
    """Points (k, r) near the origin at which the gradient vanishes: the law of the label is singular at their labels.

    >>> abs(critical_points(lambda z: (z[0] - 1)**2 + z[1]**2, 2)).round(6).tolist()
    [[1.0, 0.0]]
    """
    line = np.linspace(-_CORE, _CORE, _SCAN[r])
    grid = np.stack(np.meshgrid(*[line]*r, indexing="ij"))
    steps = _STEP*np.eye(r).reshape(r, r, *[1]*r)

    def gradient(z: Array) -> Array:
        return np.array([g(list(z + e)) - g(list(z - e)) for e in steps.reshape(r, r, *[1]*(z.ndim - 1))])/(2*_STEP)

    size = np.linalg.norm(gradient(grid), axis=0)
    found: list[Array] = []
    for at in np.argwhere((size == minimum_filter(size, 3)) & (size < 1) & (size > 0))[:40]:
        z = root(gradient, line[at])
        if z.success and np.abs(z.x).max() < _CORE and not any(np.abs(z.x - old).max() < 1e-3 for old in found):
            found.append(z.x)
    return np.array(found).reshape(-1, r)
