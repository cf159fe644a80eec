r"""E[t^j Q_l(t)] = j!/(j-l)! 2^-l Gamma((d-1)/2)/Gamma(l + (d-1)/2) E[t^(j-l) (1-t^2)^l]: powers on the sphere, by degree.

t is an entry of a uniform unit vector in d dimensions, Q_l the Gegenbauer polynomial with Q_l(1) = 1 (Rodrigues' formula, by
parts), N_l the dimension of the harmonics of degree l. Gaussian data are these at random radii, r^2 ~ chi^2_d.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaln

from hermitex.numbers.gauss import legendre_on

Array = np.ndarray
_PANELS = 64  # 1,280 nodes with 20 on each: Hermite functions of order 100 have 100 zeros
RADII = 24  # nodes of Gauss and Laguerre: exact for polynomials of degree 47 in |x|^2


def dimensions(degree: int, d: int) -> float:
    """N_l = (2l + d - 2)/l binomial(l + d - 3, l - 1), and N_0 = 1.

    >>> [dimensions(l, 5) for l in range(4)]
    [1.0, 5.0, 14.0, 30.0]
    """
    if degree == 0:
        return 1.0
    found = 2*degree + d - 2.0
    for i in range(1, degree):
        found *= (d - 2 + i)/i
    return found/degree


def powers(degree: int, order: int, d: int) -> Array:
    """E[t^j Q_l(t)] for j = 0, ..., order; at least 0, and 0 for j < l or where j - l is odd."""
    found = np.zeros(order + 1)
    j = np.arange(degree, order + 1, 2)
    half = (d - 1)/2
    found[j] = np.exp(gammaln(j + 1) - gammaln(j - degree + 1) - degree*np.log(2) + gammaln((j - degree + 1)/2)
                      - gammaln((j + degree + 1)/2 + half) + gammaln(half + 0.5) - gammaln(0.5))
    return found


def gegenbauer(order: int, d: int, t: Array) -> Array:
    """Q_0(t), ..., Q_order(t) as rows."""
    rows = [np.ones_like(t), t]
    for k in range(1, order):
        rows.append(((2*k + d - 2)*t*rows[k] - k*rows[k - 1])/(k + d - 2))
    return np.array(rows[:order + 1])


def radii(data: str, d: int, count: int = RADII) -> tuple[Array, Array]:
    """|x|/sqrt(d) and its weights: 1 on the sphere, Gauss-Laguerre nodes of chi^2_d/d for Gaussian data."""
    if data == "sphere":
        return np.ones(1), np.ones(1)
    i, a = np.arange(count), d/2 - 1
    nodes, vectors = eigh_tridiagonal(2*i + 1 + a, np.sqrt(i[1:]*(i[1:] + a)))
    return np.sqrt(2*nodes/d), vectors[0]**2


def norms_rule(kinks: Any, d: int) -> tuple[Array, Array]:
    """Nodes and weights of |w|/sqrt(d), w ~ N(0, I_d), in panels that end at the kinks."""
    root = np.sqrt(d)

    def density(u: Array) -> Array:
        w = np.maximum(u + root, 1e-300)
        return np.where(u > -root, np.exp((d - 1)*np.log(w) - w**2/2 - (d/2 - 1)*np.log(2) - gammaln(d/2)), 0.0)

    norms = 12.0  # |w| is within that of sqrt(d)
    nodes, weights = _panels([-root, *(np.abs(kinks)*root - root)], norms, density, _PANELS//8)
    kept = weights > 1e-30
    return nodes[kept]/root + 1, weights[kept]


def normal_rule(kinks: Any) -> tuple[Array, Array]:
    """Nodes and weights of N(0, 1), in panels that end where the function has kinks."""
    reach = 16.0  # of N(0, 1): Hermite functions up to order 100 end before 16
    return _panels(kinks, reach, lambda z: np.exp(-z**2/2)/np.sqrt(2*np.pi), _PANELS)


def sphere_rule(kinks: Any, d: int) -> tuple[Array, Array]:
    """Nodes and weights of t = sin(angle), in such panels."""
    scale = np.exp(gammaln(d/2) - gammaln((d - 1)/2))/np.sqrt(np.pi)
    inner = [np.arcsin(k) for k in kinks if -1 < k < 1]
    angle, weights = _panels(inner, np.pi/2, lambda a: scale*np.cos(a)**(d - 2), _PANELS//2)
    return np.sin(angle), weights


def _panels(kinks: Any, reach: float, density: Callable[[Array], Array], panels: int) -> tuple[Array, Array]:
    inner = [k for k in kinks if -reach < k < reach]
    ends = np.unique(np.concatenate([np.linspace(-reach, reach, panels + 1), inner]))
    points = 20  # of each of the panels: exact for polynomials of degree 39
    nodes, weights = (a.ravel() for a in legendre_on(ends, points))
    return nodes, weights*density(nodes)


def hermite(order: int, z: Array) -> Array:
    """h_0(z), ..., h_order(z), orthonormal, as rows."""
    rows = [np.ones_like(z), z]
    for k in range(1, order):
        rows.append((z*rows[k] - np.sqrt(k)*rows[k - 1])/np.sqrt(k + 1))
    return np.array(rows[:order + 1])
