"""int_{-1}^{1} f ~ sum_j w_j f(x_j) and E f(z) ~ sum_j w_j f(x_j): the Gauss rules, the package's only ones."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

Rule = tuple[np.ndarray, np.ndarray]


@lru_cache(maxsize=128)
def legendre(order: int) -> Rule:
    """Gauss-Legendre nodes and weights on (-1, 1), shapes (order,) and (order,), exact for polynomials of degree 2 order - 1.

    >>> x, w = legendre(4)
    >>> bool(abs(w @ x**6 - 2/7) < 1e-15)
    True
    """
    return _read_only(*np.polynomial.legendre.leggauss(order))


def extended_legendre(order: int) -> Rule:
    """The same in extended precision, after one step of Newton's method for P_n(x) = 0, w = 2/((1 - x^2) P_n'(x)^2).

    >>> x, w = extended_legendre(18)
    >>> bool(abs(w @ x**34 - np.longdouble(2)/35) < 4*np.finfo(np.longdouble).eps)
    True
    """
    x: np.ndarray = legendre(order)[0].astype(np.longdouble)
    for _ in range(2):
        before, value = np.ones_like(x), x
        for n in range(2, order + 1):
            before, value = value, ((2*n - 1)*x*value - (n - 1)*before)/n
        slope = order*(x*value - before)/(x*x - 1)
        x, weights = x - value/slope, 2/((1 - x*x)*slope*slope)
    return x, weights


def legendre_on(edges: np.ndarray, order: int) -> Rule:
    """Gauss-Legendre nodes and weights on each panel between neighbouring edges, shape (..., k + 1): arrays (..., k, order).

    >>> x, w = legendre_on(np.array([0.0, 1.0, 3.0]), 4)
    >>> x.shape, bool(abs((w * x**3).sum() - 81/4) < 1e-13)
    ((2, 4), True)
    """
    x, w = legendre(order)
    half = np.diff(edges)[..., None]/2
    return edges[..., :-1, None] + half*(1 + x), half*w


@lru_cache(maxsize=32)
def hermite(order: int) -> Rule:
    """Nodes and weights of E f(z), z standard normal, exact for polynomials of degree 2 order - 1; weights of sum 1.

    >>> x, w = hermite(5)
    >>> bool(abs(w @ x**8 - 105) < 1e-12)
    True
    """
    from scipy.special import roots_hermitenorm  # numpy's hermegauss gives nan from 372 nodes on

    x, w = roots_hermitenorm(order)
    return _read_only(x, w/w.sum())


def _read_only(x: np.ndarray, w: np.ndarray) -> Rule:
    """The cached arrays are shared by all callers."""
    x.flags.writeable = w.flags.writeable = False
    return x, w
