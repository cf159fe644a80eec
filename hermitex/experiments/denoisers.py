r"""g = V^{-1}(E[z|y, omega] - omega), dg/domega = V^{-1} Cov[z|y, omega] V^{-1} - V^{-1}: the labels of a run at many fields.

An algorithm keeps its labels and moves its fields: what depends on y alone is done once. Monomials keep the transforms of their
factors on a grid of fields; others ask their `Output`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import chebyshev

from hermitex.theories.overlaps.channel import Output, safe_ratio
from hermitex.theories.overlaps.product_labels import ProductOutput

Array = np.ndarray
_SEEN = 1e-10  # of the largest: frequencies, and probabilities, below it do not count in a step of AMP, which fluctuates by d^-1/2


class Denoiser(Protocol):
    """(omega (n, r), V (r, r)) -> g (n, r) and dg_i/domega_j (n, r, r); V is diagonal where it is not `full`."""

    @property
    def full(self) -> bool:
        """Whether V may be any matrix."""
        ...

    def __call__(self, omega: Array, V: Array) -> tuple[Array, Array]: ...


def denoiser(theory: Any, y: Array) -> Denoiser:
    """g and its slopes at labels y (n,), as cheap as the label allows.

    >>> from hermitex.theories import multi_index
    >>> g, slopes = denoiser(multi_index("z1*z2"), np.array([1.0]))(np.array([[0.5, 0.5]]), np.eye(2)/2)
    >>> g.round(4), slopes.shape
    (array([[1.0692, 1.0692]]), (1, 2, 2))
    """
    output = theory.output
    if isinstance(output, ProductOutput):
        return MonomialDenoiser(output, np.asarray(y, dtype=float))
    return AnyDenoiser(output, np.asarray(y, dtype=float), not theory.space.diagonal)


@dataclass(frozen=True, eq=False)
class AnyDenoiser:
    """Any label, by its `Output`."""

    output: Output
    y: Array
    full: bool

    def __call__(self, omega: Array, V: Array) -> tuple[Array, Array]:
        return self.output.with_slopes(self.y, omega, V)


@dataclass(frozen=True, eq=False)
class MonomialDenoiser:
    r"""y = c z_1^{k_1} ... z_r^{k_r}: Z at log|y| from Fourier transforms, which depend on a field by a Chebyshev series.

    E_i, O_i the sum and the difference of the densities of k_i log|z_i| over the signs of z_i, Ehat_i and Ohat_i their transforms,
    Z(y) = int (prod_i Ehat_i + sign(y) prod_i Ohat_i) |y|^{ix} dx/(4 pi). A multiplicative noise is one factor more, at omega = 0.
    """

    output: ProductOutput
    y: Array
    full: bool = False

    def __call__(self, omega: Array, V: Array) -> tuple[Array, Array]:
        out, r, reach = self.output, self.output.r, float(np.abs(omega).max()) + 1e-3
        keys = list(zip(np.diag(V).tolist(), out.powers, out.even, strict=True)) + [(1.0, 1, False)]*out.noisy
        omega, total = np.hstack([omega, np.zeros((len(omega), 1))])[:, :len(keys)], sum(k for _, k, _ in keys)
        tables = {key: _transforms(reach, *key, total) for key in keys}
        n = _frequencies([tables[key] for key in keys])
        tables = {key: table[:, :, :n] for key, table in tables.items()}
        # the slopes of Z to the second order, each by how often every factor is differentiated
        slopes = [(), *((i,) for i in range(r)), *((i, j) for i in range(r) for j in range(i + 1))]
        found = np.empty((len(slopes), len(self.y)))
        rows = 128  # labels at once: their tables stay in the cache
        for k in range(0, len(self.y), rows):
            part = slice(k, k + rows)
            t = np.log(np.maximum(np.abs(self.y[part]/out.scale), 1e-200))
            waves = np.exp(1j*_spacing(total)*np.arange(n)*t[:, None])
            waves[:, 0] /= 2
            factors = [[_series(o[part]/reach, tables[key], order, key[2])/reach**order for order in range(3)]
                       for o, key in zip(omega.T, keys, strict=True)]
            factors[0] = [waves*f for f in factors[0]]
            sign = np.where(self.y[part]*out.scale < 0, -1.0, 1.0)
            for m, at in enumerate(slopes):
                whole = factors[0][at.count(0)]
                for i in range(1, len(factors)):
                    whole = whole*factors[i][at.count(i)]
                e, o = whole.real.sum(axis=2)
                found[m, part] = e + sign*o
        z = np.where(found[0] > _SEEN*found[0].max(), found[0], 0.0)
        g, bend = safe_ratio(found[1:r + 1].T, z), np.empty((len(z), r, r))
        for at, value in zip(slopes[r + 1:], safe_ratio(found[r + 1:].T, z).T, strict=True):
            bend[:, at[0], at[1]] = bend[:, at[1], at[0]] = value
        return g, np.where(z[:, None, None] > 0, bend - g[:, :, None]*g[:, None], 0.0)


def _spacing(k: int) -> float:
    """Of the frequencies: their period covers log|y| down to where the density of a label has fallen to 1e-10."""
    return float(2*np.pi/(24.0*k**0.5 + 2.2*k + 8.0))


def _transforms(reach: float, v: float, k: int, even: bool, total: int) -> Array:
    """Ehat and Ohat as Chebyshev series in omega/reach: (2, coefficients, frequencies)."""
    s = np.sqrt(v)
    n = int(np.ceil(10 + 5*reach/s))
    omega = reach*np.cos(np.pi*(np.arange(n) + 0.5)/n)
    h = 0.11*min(1.0, s)*k
    t = np.arange(-26.0*k, 2.2*k + h, h)
    w = _spacing(total)*np.arange(int(np.pi/(h*_spacing(total))))
    x = np.exp(t/k)
    p, m = (np.exp(-((c*x - omega[:, None])/s)**2/2)*x for c in (1, -1))
    turn = np.exp(-1j*np.outer(t, w))
    # series by the discrete orthogonality of Chebyshev polynomials on their zeros
    back = 2/n*np.cos(np.pi*np.outer(np.arange(n), np.arange(n) + 0.5)/n)
    back[0] /= 2
    found = np.stack([back @ (p + m), back @ (p + m if even else p - m)])
    return np.asarray(found @ turn)


def _frequencies(tables: list[Array]) -> int:
    """How many frequencies of the product matter."""
    n = min(table.shape[2] for table in tables)
    size = np.prod([np.abs(table[:, :, :n]).max(axis=(0, 1)) for table in tables], axis=0)
    return int(np.flatnonzero(size > _SEEN*size.max())[-1]) + 1


def _series(x: Array, table: Array, order: int, even: bool) -> Array:
    """A derivative of the series of Ehat, which is even in omega, and of Ohat, which is odd or the same: (2, n, frequencies)."""
    n = table.shape[1]
    basis = chebyshev.chebvander(x, n - 1 - order) @ chebyshev.chebder(np.eye(n), order)
    found = []
    for c in (0, 1):
        own = slice(0 if even or not c else 1, None, 2)
        found.append(basis[:, own] @ table[c, own].real + 1j*(basis[:, own] @ table[c, own].imag))
    return np.stack(found)
