r"""P(z in a box | omega) and nodes of omega: normal variables, integrated over intervals, boxes and the line.

Boxes of two variables by Owen's T, P(z_1 < a, z_2 < b) = (Phi(h) + Phi(k))/2 - T(h, a_h) - T(k, a_k) - delta [Owen 1956].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, owens_t

from hermitex.kernels.panel_rules import split
from hermitex.numbers.gauss import hermite, legendre_on

Array = np.ndarray
WINDOW = 8.5  # P(|z| > 8.5) < 2e-17
_ROOT = np.sqrt(2*np.pi)  # the normal density is exp(-t^2/2)/_ROOT


def interval_probabilities(edges: Array, omega: Array, s: Any) -> tuple[Array, Array]:
    """P(e_c < z < e_(c+1)) along the first axis, z ~ N(omega, s^2), and its derivative in omega; a tail keeps its digits."""
    t = (edges - omega)/s
    tail = ndtr(-np.abs(t))
    above, below = np.where(t > 0, tail, 1 - tail), np.where(t > 0, 1 - tail, tail)
    p = np.where(t[:-1] > -t[1:], above[:-1] - above[1:], below[1:] - below[:-1])
    phi = np.exp(-t*t/2)/_ROOT
    return p, (phi[:-1] - phi[1:])/s


def panels(cuts: Array, width: float, order: int = 12, reach: float = WINDOW) -> tuple[Array, Array]:
    """Gauss-Legendre panels no wider than `width` on [-reach, reach], broken at the cuts."""
    x, w = legendre_on(split(np.concatenate([[-reach], cuts[np.abs(cuts) < reach], [reach]]), width), order)
    return x.ravel(), w.ravel()


def normal_nodes(m: float, v: float, fineness: float = 1.0) -> tuple[Array, Array]:
    """Nodes and weights for omega ~ N(0, m) and integrands that vary on the scale sqrt(v): trapezoid, spectrally accurate."""
    if m <= 0:
        return np.zeros(1), np.ones(1)
    if m < 0.02*v:  # the integrand is nearly a polynomial over the width of omega
        x, w = hermite(round((18 if m < 0.005*v else 28)/max(fineness, 0.25)))
        return np.sqrt(m)*x, w
    step = fineness*min(0.4, 0.34*np.sqrt(v/m))
    half = int(np.ceil(WINDOW/step))
    x = step*np.arange(-half, half + 1)
    w = np.exp(-x*x/2)
    return np.sqrt(m)*x, w/w.sum()


def nonnegative_nodes(x: Array, w: Array) -> tuple[Array, Array]:
    """The nodes that are not negative, for a function that is even: the other half says the same."""
    kept = x > -1e-12
    return np.maximum(x[kept], 0.0), np.where(x[kept] > 1e-12, 2.0, 1.0)*w[kept]


def merge_far_fields(x: Array, w: Array, cuts: Array, s: float) -> tuple[Array, Array]:
    """Fields of a variable that enters by steps: those further than 9 s from every cut see nothing change, and become one a side.

    >>> len(merge_far_fields(*normal_nodes(1 - 1e-6, 1e-6), np.zeros(1), 1e-3)[0])
    55
    """
    side = np.searchsorted(cuts, x)
    blind = 9.0  # P(|z - omega| > 9 s) < 3e-19
    far = np.min(np.abs(x[:, None] - cuts), axis=1, initial=np.inf) > blind*s
    place = np.where(far, side, len(cuts) + 1 + np.cumsum(~far))
    _, place = np.unique(place, return_inverse=True)
    weight = np.bincount(place, w)
    return np.bincount(place, w*x)/weight, weight


def broken_nodes(m: float, v: float, cuts: Array, fineness: float = 1.0) -> tuple[Array, Array]:
    """The same by panels that are broken at the cuts, for integrands with kinks there."""
    if m <= 0:
        return np.zeros(1), np.ones(1)
    x, w = panels(cuts/np.sqrt(m), fineness*min(1.5, 2*np.sqrt(v/m)), order=8)
    w = w*np.exp(-x*x/2)
    return np.sqrt(m)*x, w/w.sum()


def box_probabilities(first: Array, second: Array, omega: Array, V: Array) -> list[Array]:
    """[P(z in box), d/domega_1, d/domega_2], each (boxes along z1, along z2, n), z ~ N(omega, V) in the plane."""
    s1, s2 = np.sqrt(np.diag(V))
    rho = V[0, 1]/(s1*s2)
    root = np.sqrt(1 - rho*rho)
    n = len(omega)
    h = np.concatenate([np.full((1, n), -np.inf), (first[:, None] - omega[:, 0])/s1, np.full((1, n), np.inf)])
    k = np.concatenate([np.full((1, n), -np.inf), (second[:, None] - omega[:, 1])/s2, np.full((1, n), np.inf)])
    below = np.zeros((len(h), len(k), n))
    below[-1], below[:, -1] = ndtr(k), ndtr(h)
    below[1:-1, 1:-1] = below_both(h[1:-1, None], k[None, 1:-1], rho)
    with np.errstate(invalid="ignore"):
        h, k = h[:, None], k[None]
        across = [np.where(np.isfinite(h), -np.exp(-h**2/2)/(_ROOT*s1)*ndtr((k - rho*h)/root), 0.0),
                  np.where(np.isfinite(k), -np.exp(-k**2/2)/(_ROOT*s2)*ndtr((h - rho*k)/root), 0.0)]
    return [np.diff(np.diff(b, axis=0), axis=1) for b in (below, *across)]


def below_both(h: Array, k: Array, rho: float) -> Array:
    """P(x < h, y < k) of two standard normals of correlation rho.

    >>> round(float(below_both(np.array(0.0), np.array(0.0), 0.5)), 12)
    0.333333333333
    """
    h, k = (np.where(np.abs(x) < 1e-150, 1e-150, x) for x in (h, k))
    root = np.sqrt(1 - rho*rho)
    with np.errstate(over="ignore"):
        tails = owens_t(h, (k/h - rho)/root) + owens_t(k, (h/k - rho)/root)
    found = (ndtr(h) + ndtr(k))/2 - tails - np.where((h > 0) == (k > 0), 0.0, 0.5)
    return np.asarray(np.maximum(found, 0.0))
