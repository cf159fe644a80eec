r"""phi_i(x) = sigma(w_i.x + r u_i kappa + b)/sqrt(p), kappa = v.x: the features of a finite width in a finite dimension.

Everything is measured in the frame in which v is the first unit vector and kappa = x_1. The J directions of the target follow it:
z = gamma kappa e + S zeta, S = I - (1 - sqrt(1 - gamma^2)) e e^T and zeta = (x_2, ..., x_{J+1}). The law of x is that of any frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hermitex.errors import BadInput, UnknownName

ROWS = ("sphere", "gaussian", "orthogonal")
Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Features:
    """A layer of p neurons, and what is needed to measure the order parameters of a readout on it.

    Attributes
    ----------
    sigma : function of an array       the activation
    bulk : array (p, d)                W, rows of squared norm c: what is left of the weights without the spike
    spike : array (p,)                 r u_i, what multiplies kappa = x_1
    gamma : float                      overlap of the spike with the target's span, along e
    norms : array (p,)                 c_i, the squared norm that row i has on average
    groups : tuple of slices           the neurons of each letter of the vocabulary
    bias : float or array (p,)         shift of every pre-activation
    axis : array (J,)                  e, the direction of the spike in the target's span
    """

    sigma: Callable[[Array], Array]
    bulk: Array
    spike: Array
    gamma: float
    norms: Array
    groups: tuple[slice, ...]
    bias: float | Array = 0.0
    axis: Array = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        weights = self.bulk.copy()
        weights[:, 0] += self.spike
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
        beside = x[:, 1:len(self.axis) + 1]
        lost = 1 - np.sqrt(max(0.0, 1 - self.gamma**2))
        found = beside + np.outer(self.gamma*x[:, 0] - lost*(beside @ self.axis), self.axis)
        return found if len(self.axis) > 1 else found[:, 0]

    def order_parameters(self, a: Array) -> dict[str, float]:
        r"""m = 1.a/sqrt(p), zeta = a.Wv/sqrt(p), psi = a.W theta_perp/sqrt(p), q1 = |Pi W^T a|^2/p, q2 = |a|^2/p, chi.

        chi = sum_i a_i (|w_i|^2 - c)/sqrt(p) measures the row norms, where they fluctuate. With K > 1 letters the names are m1, m2,
        ... for the neurons of each letter; q1 keeps the cross terms, q1_12 = (Pi W^T a)_1.(Pi W^T a)_2/p. Several directions
        have psi1, psi2, ..., of a letter psi1_1, psi1_2, ....
        """
        p, w, J = self.width, self.bulk, len(self.axis)
        excess = np.einsum("ij,ij->i", w, w) - self.norms
        fluctuate = np.abs(excess).max() > 1e-9*self.norms.max()
        found: dict[str, float] = {}
        images = []
        for k, group in enumerate(self.groups, start=1):
            mark = str(k) if len(self.groups) > 1 else ""
            part = a[group]
            image = part @ w[group]
            images.append(image)
            found |= {f"m{mark}": part.sum()/np.sqrt(p), f"zeta{mark}": image[0]/np.sqrt(p), _q("q2", mark): part @ part/p}
            for j in range(1, J + 1):
                along = str(j) if J > 1 else ""
                found[f"psi{mark}_{along}" if mark and along else f"psi{mark}{along}"] = image[j]/np.sqrt(p)
            if fluctuate:
                found[f"chi{mark}"] = part @ excess[group]/np.sqrt(p)
        for k, left in enumerate(images, start=1):
            for j, right in enumerate(images[:k], start=1):
                name = "q1" if len(images) == 1 else f"q1_{j}{k}"
                found[name] = left[1:] @ right[1:]/p
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


def spiked(sigma: Callable[[Array], Array], *, d: int, p: int, r: float, c: float, gamma: float, rng: np.random.Generator,
           kind: str = "sphere", letters: tuple[float, ...] = (1.0,), fractions: tuple[float, ...] = (1.0,),
           norms: tuple[float, ...] | None = None, bias: float = 0.0, biases: tuple[float, ...] | None = None,
           axis: Array | None = None) -> Features:
    """Spiked random features (sRF) with fresh rows of squared norm c and one bias (or c_k and bias + b_k for letter k)."""
    groups = groups_of(np.asarray(fractions, dtype=float), p)
    spike, squared, shift = np.empty(p), np.empty(p), np.empty(p)
    own = zip(groups, letters, norms or (c,)*len(letters), biases or (0.0,)*len(letters), strict=True)
    for group, u, c_k, b_k in own:
        spike[group], squared[group], shift[group] = r*u, c_k, bias + b_k
    bulk = rows(kind, p, d, rng)*np.sqrt(squared)[:, None]
    return Features(sigma, bulk, spike, gamma, squared, groups, shift, np.ones(1) if axis is None else axis)
