"""M_0(m, c) = E sigma(m + sqrt(c) z), M_1 = dM_0/dm: what an activation is once the bulk has smoothed it, for arrays.

By its closed form if there is one, else by quadrature; for very many points from a table of
piecewise Chebyshev series in m, one at each c (M_0 solves the heat equation, so it is analytic in m).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from hermitex.errors import BadInput, HermitexError
from hermitex.numbers.gauss import legendre_on
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbols import kappa, r, z
from hermitex.theories.conditional_coefficients import activation_of, in_floats, mu

Array = np.ndarray[Any, Any]

_ORDER = 16  # terms of a series in m on one panel, which is halved until its last terms vanish


class Smoothed:
    """(M_0, M_1) of one activation at arrays (m, c).

    Raises
    ------
    BadInput : the activation has parameters without values, or numbers that no float holds.
    """

    def __init__(self, sigma: Any) -> None:
        self.activation = in_floats(activation_of(sigma))
        if free := self.activation.letters:
            raise BadInput(f"the activation's {', '.join(map(str, free))} must have a value: put it in, e.g. leaky_relu(z, 1/10)")
        self._kernels: Any = None
        self._grid: Any = None

    @property
    def kernels(self) -> tuple[Any, Any] | None:
        """The compiled closed forms of M_0 and M_1, None where there are none."""
        if self._kernels is None:
            self._kernels = _closed(self.activation) or False
        return self._kernels or None

    def __call__(self, m: Array, c: Array) -> tuple[Array, Array]:
        """M_0 and M_1 at m and c, which broadcast."""
        if self.kernels is not None:
            return tuple(np.asarray(k(kappa=m, c=c)) for k in self.kernels)  # type: ignore[return-value]
        return tuple(np.asarray(mu(self.activation, k)(m, r=1.0, c=c)) for k in (0, 1))  # type: ignore[return-value]

    def rows(self, m: Array, c: Array) -> tuple[Array, Array]:
        """The same at rows of points: m has shape (points, nodes), c has shape (points,)."""
        some = 300  # points from which the quick quadrature is tried
        if self.kernels is not None or m.size < some:
            return self(m, c[:, None])
        padded = np.pad(m, ((0, 0), (0, -m.shape[1] % _ORDER)), mode="edge").reshape(len(m), -1, _ORDER)
        found = np.stack([self.at_nodes(row, c[i:i + 1])[..., 0] for i, row in enumerate(padded)], axis=1)
        return tuple(found.reshape(2, len(m), -1)[..., :m.shape[1]])

    def at_nodes(self, m: Array, c: Array) -> Array:
        """M_0 and M_1 at m of shape (panels, order) and each c, stacked: shape (2, panels, order, c)."""
        from hermitex.kernels.averages import compiled

        if self._grid is None:
            reach = float(np.abs(m).max() + 12*np.sqrt(c.max()))
            self._grid = compiled(self.activation(z), z, np.array([-reach, reach])) or False
        most = 1e6  # panels of the quick quadrature
        same = 2e-14  # quick quadrature against the careful one, relative to the size
        if self._grid and np.ptp(m) + 20*np.sqrt(c.max()) < most*min(1.0, np.sqrt(c.min())):
            f, kinks = self._grid
            with np.errstate(invalid="ignore", over="ignore"):  # a factor of the activation may overflow: nan, and not believed
                values = np.stack([_convolved(f, kinks, m, float(s)) for s in np.sqrt(c)], axis=-1)
            some = slice(None, None, max(1, len(m)//4))
            exact = np.stack(self(m[some, ::5, None], c))
            size = np.abs(exact).max() + np.abs(exact[0]).max()/np.sqrt(c.min())
            # Far out, u - m has lost the digits that u and m have in common.
            if np.abs(values[:, some, ::5] - exact).max() <= (same + 1e-15*np.abs(m).max()/np.sqrt(c.min()))*size:
                return values
            self._grid = False  # a singular or a very sharp activation: the slower rule serves
        return np.stack(self(m[..., None], c))

    def tabulated(self, c: float, reach: float) -> Smoothed:
        """The same at one c, from a table for |m| <= reach if no closed form is known."""
        return self if self.kernels is not None else _Tabulated(self, c, reach)

    def for_many(self, points: int, c: Array, reach: float) -> Any:
        """`rows`, or a table of it for |m| <= reach if no closed form is known and so many points are needed."""
        many = 60_000  # points from which a table pays
        return SmoothedTable(self, c, reach) if self.kernels is None and points > many else self.rows


class _Tabulated(Smoothed):
    """An activation at one c, looked up."""

    def __init__(self, smoothed: Smoothed, c: float, reach: float) -> None:
        self.activation, self._kernels, self._grid = smoothed.activation, False, smoothed._grid
        self._smoothed, self._table, self._reach = smoothed, SmoothedTable(smoothed, np.array([c]), reach), reach

    def rows(self, m: Array, c: Array) -> tuple[Array, Array]:
        inside = c.size == 0 or (np.all(c == self._table.c[0]) and np.abs(m).max() <= self._reach)
        return self._table(m, c) if inside else self._smoothed.rows(m, c)

    def for_many(self, points: int, c: Array, reach: float) -> Any:
        return self.rows


class SmoothedTable:
    """M_0 and M_1 for |m| <= reach and the values of c given, from piecewise Chebyshev series."""

    def __init__(self, smoothed: Smoothed, c: Array, reach: float) -> None:
        self.c = np.unique(c)
        self.edges = _mesh(smoothed, self.c, max(reach, 1e-3))
        values = _on_panels(smoothed, self.edges, self.c)                   # (2, panels, order, c)
        self.series = np.einsum("kn,fpnc->fkpc", _to_series(_ORDER), values)

    def __call__(self, m: Array, c: Array) -> tuple[Array, Array]:
        """M_0 and M_1 at m of shape (points, nodes), c of shape (points,)."""
        which = np.searchsorted(self.c, c)
        out = np.empty((2, *m.shape))
        block = 400_000  # points looked up at once
        step = max(1, block//m.shape[1])
        for start in range(0, len(m), step):
            rows = slice(start, start + step)
            out[:, rows] = self._block(m[rows], which[rows])
        return out[0], out[1]

    def _block(self, m: Array, which: Array) -> Array:
        panel = np.clip(np.searchsorted(self.edges, m) - 1, 0, len(self.edges) - 2)
        left, right = self.edges[panel], self.edges[panel + 1]
        t = (2*m - left - right)/(right - left)
        place = panel*len(self.c) + which[:, None]
        flat = self.series.reshape(2, _ORDER, -1)
        before = now = np.zeros((2, *m.shape))
        for k in range(_ORDER - 1, 0, -1):  # Clenshaw
            before, now = now, flat[:, k].take(place, axis=1) + 2*t*now - before
        return flat[:, 0].take(place, axis=1) + t*now - before


@lru_cache(maxsize=32)
def _closed(activation: Any, *, agree: float = 1e-11) -> tuple[Any, Any] | None:
    """Kernels of the closed forms in (kappa = m, c), if they exist, are found soon, and agree with the quadrature."""
    from hermitex.kernels.compile import compile

    m, c = np.linspace(-3.1, 3.3, 9)[:, None], np.array([0.2, 1.0, 3.0])
    patience = 10.0  # seconds for a closed form
    # agree: closed form against quadrature, relative
    try:
        with effort(patience):
            kernels = tuple(compile(mu(activation, k).expr.subs(r, 1), kappa, "c") for k in (0, 1))
        for k, kernel in enumerate(kernels):
            plain = mu(activation, k)(m, r=1.0, c=c)
            if not np.allclose(kernel(kappa=m, c=c), plain, rtol=agree, atol=agree):
                return None
    except HermitexError:
        checkpoint()  # the budget around it is over, which is not an answer
        return None
    return kernels  # type: ignore[return-value]


@lru_cache(maxsize=4)
def _to_series(order: int) -> Array:
    """The matrix from values at Chebyshev points of the first kind to the coefficients of T_k, shape (k, points)."""
    matrix = chebvander(chebpts1(order), order - 1).T*2/order
    matrix[0] /= 2
    return matrix


def _convolved(f: Any, kinks: Array, m: Array, s: float) -> Array:
    """int f(u) phi((u - m)/s) du/s and its m-derivative on Gauss panels between the kinks: shape (2, panels, order)."""
    low, high = m.min() - 10*s, m.max() + 10*s
    count = int(np.ceil((high - low)/min(s, 1.0))) + 1
    edges = np.union1d(np.linspace(low, high, count), kinks[(kinks > low) & (kinks < high)])
    u, w = (a.ravel() for a in legendre_on(edges, 16))
    with np.errstate(all="ignore"):
        weighted = w*f(u)/(s*np.sqrt(2*np.pi))
    out = np.empty((2, *m.shape))
    first, last = np.searchsorted(u, m.min(axis=1) - 10*s), np.searchsorted(u, m.max(axis=1) + 10*s)
    for i, row in enumerate(m):
        near = slice(first[i], last[i])
        t = (u[near] - row[:, None])/s
        kernel = np.exp(-0.5*t*t)
        out[0, i], out[1, i] = kernel @ weighted[near], (kernel*t) @ weighted[near]/s
    return out


def _mesh(smoothed: Smoothed, c: Array, reach: float) -> Array:
    """Panel ends on [-reach, reach] on which the series at the smallest and the largest c have converged."""
    ends = np.array([c.min(), c.max()])
    half = np.append(np.arange(0.0, min(reach, 3.0), 0.75), np.geomspace(3.0, 3.0*2**12, 13))
    half = np.append(half[half < reach], reach)
    narrowest = 1e-3  # of sqrt(c): a panel is not halved below it
    edges, finest = np.unique(np.append(-half, half)), narrowest*np.sqrt(ends[0])
    checked = np.zeros(len(edges) - 1, dtype=bool)
    largest = np.zeros((2, 1, 1, 2))
    close = 4e-15  # of the largest value: the last terms of a panel that is fine enough
    while not checked.all():
        todo = np.flatnonzero(~checked)
        values = _on_panels(smoothed, edges, ends, todo)
        largest = np.maximum(largest, np.abs(values).max(axis=(1, 2), keepdims=True))
        # M_1 = E[z sigma]/sqrt(c) is known to the rounding of sigma on its panel, not to that of M_1.
        size = np.abs(values[0]).max(axis=1, keepdims=True)
        noise = np.maximum(largest, 4*np.stack([size, size/np.sqrt(ends)]))
        series = np.einsum("kn,fpnc->fpkc", _to_series(_ORDER), values)
        rough = (np.abs(series[:, :, -3:]) > close*noise).any(axis=(0, 2, 3))
        split = todo[rough & (np.diff(edges)[todo] > finest)]
        checked[todo] = True
        middle = (edges[split] + edges[split + 1])/2
        checked = np.insert(np.where(np.isin(np.arange(len(checked)), split), False, checked), split, False)
        edges = np.insert(edges, split + 1, middle)
    return edges


def _on_panels(smoothed: Smoothed, edges: Array, c: Array, which: Any = slice(None)) -> Array:
    """M_0 and M_1 at the Chebyshev points of the panels: shape (2, panels, order, c)."""
    left, right = edges[:-1][which, None], edges[1:][which, None]
    m = (left + right)/2 + (right - left)/2*chebpts1(_ORDER)
    return smoothed.at_nodes(m, c)
