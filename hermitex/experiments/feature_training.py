r"""phi_i(x) = sigma(w_i.x + U_i.kappa + b)/sqrt(p), kappa = V^T x: the features of a finite width in a finite dimension.

Everything is measured in the frame in which the m axes of the spikes are the first unit vectors, kappa = (x_1, ..., x_m). The J
directions of the target follow them: z = Gamma kappa + S zeta, S = (I - Gamma Gamma^T)^{1/2}, zeta = (x_{m+1}, ..., x_{m+J}). The
law of x is that of any frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.theories.spike_span import Layer, root

ROWS = ("sphere", "gaussian", "orthogonal")
Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Features:
    """A layer of p neurons, and what is needed to measure the order parameters of a readout on it.

    Attributes
    ----------
    sigma : function of an array       the activation
    bulk : array (p, d)                W, rows of squared norm c: what is left of the weights without the spike
    spike : array (p, m)               U_i, what multiplies kappa
    overlaps : array (J, m)            Gamma, the target's directions along the axes of the spikes
    norms : array (p,)                 c_i, the squared norm that row i has on average
    groups : tuple of slices           the neurons of each letter of the vocabulary
    bias : float or array (p,)         shift of every pre-activation
    """

    sigma: Callable[[Array], Array]
    bulk: Array
    spike: Array
    overlaps: Array
    norms: Array
    groups: tuple[slice, ...]
    bias: float | Array = 0.0

    tabled: bool = False   # whether the axes of the spikes are numbered

    def __post_init__(self) -> None:
        weights = self.bulk.copy()
        weights[:, :self.spike.shape[1]] += self.spike
        object.__setattr__(self, "_weights", weights)

    @property
    def width(self) -> int:
        """p."""
        return self.bulk.shape[0]

    @property
    def dimension(self) -> int:
        """d."""
        return self.bulk.shape[1]

    def __call__(self, x: Array) -> Array:
        """phi(x)/sqrt(p) for the rows of x: array (n, p)."""
        u = x @ self._weights.T  # type: ignore[attr-defined]
        u += self.bias
        phi = self.sigma(u)
        phi /= np.sqrt(self.width)
        return phi

    def projection(self, x: Array) -> Array:
        """z, which the target is a function of: array (n,) of one direction, (n, J) of several."""
        J, m = self.overlaps.shape
        found = x[:, :m] @ self.overlaps.T + x[:, m:m + J] @ root(self.overlaps)
        return found if J > 1 else found[:, 0]

    def order_parameters(self, a: Array) -> dict[str, float]:
        r"""m = 1.a/sqrt(p), zeta = a.WV/sqrt(p), psi = a.W theta_perp/sqrt(p), q1 = |Pi W^T a|^2/p, q2 = |a|^2/p, chi.

        chi = sum_i a_i (|w_i|^2 - c)/sqrt(p) measures the row norms, where they fluctuate. With K > 1 letters the names are m1, m2,
        ... for the neurons of each letter; q1 keeps the cross terms, q1_12 = (Pi W^T a)_1.(Pi W^T a)_2/p. Several directions
        have psi1, psi2, ..., of a letter psi1_1, psi1_2, ..., and several axes of the spikes zeta1_1, zeta1_2, ....
        """
        p, w, (J, m) = self.width, self.bulk, self.overlaps.shape
        excess = np.einsum("ij,ij->i", w, w) - self.norms
        fluctuate = np.abs(excess).max() > 1e-9*self.norms.max()
        found: dict[str, float] = {}
        images = []
        for k, group in enumerate(self.groups, start=1):
            mark = str(k) if len(self.groups) > 1 else ""
            part = a[group]
            image = part @ w[group]
            images.append(image)
            found |= {f"m{mark}": part.sum()/np.sqrt(p), _q("q2", mark): part @ part/p}
            for name, first, count, several in (("zeta", 0, m, self.tabled), ("psi", m, J, J > 1)):
                for j in range(1, count + 1):
                    along = str(j) if several else ""
                    found[f"{name}{mark}_{along}" if mark and along else f"{name}{mark}{along}"] = image[first + j - 1]/np.sqrt(p)
            if fluctuate:
                found[f"chi{mark}"] = part @ excess[group]/np.sqrt(p)
        for k, left in enumerate(images, start=1):
            for j, right in enumerate(images[:k], start=1):
                name = "q1" if len(images) == 1 else f"q1_{j}{k}"
                found[name] = left[m:] @ right[m:]/p
        return {name: float(value) for name, value in found.items()}


def _q(name: str, mark: str) -> str:
    return f"{name}_{mark}" if mark else name


def rows(kind: str, p: int, d: int, rng: np.random.Generator) -> Array:
    """Rows of unit squared norm: uniform on the sphere, Gaussian N(0, I/d), or orthonormal (p <= d)."""
    if kind not in ROWS:
        raise UnknownName(kind, ROWS, "kind of rows")
    if kind == "orthogonal":
        if p > d:
            raise BadInput(f"orthogonal rows need p <= d (beta <= 1), not p = {p} of length {d}")
        q, triangle = np.linalg.qr(rng.standard_normal((d, p)))
        return (q*np.sign(np.diag(triangle))).T  # uniform among such matrices
    w = rng.standard_normal((p, d))
    return w/np.sqrt(d) if kind == "gaussian" else w/np.linalg.norm(w, axis=1, keepdims=True)


def groups_of(fractions: Array, p: int) -> tuple[slice, ...]:
    """Neighbouring neurons for each letter, in the given fractions of p (rounded so that they add up to p)."""
    ends = np.rint(np.cumsum(fractions)/np.sum(fractions)*p).astype(int)
    starts = [0, *ends[:-1]]
    if np.any(ends - starts < 1):
        raise BadInput(f"{p} neurons are too few for a letter of fraction {min(fractions):g}; take a larger dimension")
    return tuple(slice(int(i), int(j)) for i, j in zip(starts, ends, strict=True))


def spiked(sigma: Callable[[Array], Array], layer: Layer, *, d: int, p: int, rng: np.random.Generator, kind: str = "sphere",
           fractions: tuple[float, ...] = (1.0,), bias: float = 0.0, biases: tuple[float, ...] | None = None,
           tabled: bool = False) -> Features:
    """Spiked random features (sRF) with fresh rows: of letter k the spike U_k, the squared norm c_k and the bias + b_k."""
    groups = groups_of(np.asarray(fractions, dtype=float), p)
    spike, squared, shift = np.empty((p, layer.U.shape[1])), np.empty(p), np.empty(p)
    for k, group in enumerate(groups):
        spike[group], squared[group], shift[group] = layer.U[k], layer.c[k], bias + (biases[k] if biases else 0.0)
    bulk = rows(kind, p, d, rng)*np.sqrt(squared)[:, None]
    return Features(sigma, bulk, spike, layer.overlaps, squared, groups, shift, tabled)
