"""E sqrt(S/(S + b)), S = |Z|^(2k) h(Z/|Z|), Z ~ N(0, 1_r): an average over a few normals by radius and direction.

Along the radius the trapezoid rule in log |Z| converges to rounding; over directions it is the rule of the circle (r = 2) or of
the sphere (r = 3), refined once: how far the finer rule moves is the error.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gamma
from typing import Any

import numpy as np

from hermitex.errors import BadInput

Array = np.ndarray[Any, Any]
_LOG = np.linspace(-14, 2.6, 401)  # of the radius


def mean_root(form: Callable[[Array], Array], degree: int, r: int, b: Array) -> tuple[Array, Array]:
    """The average at each b > 0, and its error.

    Parameters
    ----------
    form : directions (m, r) -> h(direction) >= 0, of the form of degree 2 `degree` in Z
    degree, r : k and the number of normals, 2 or 3

    Examples
    --------
    >>> value, error = mean_root(lambda t: np.ones(len(t)), 1, 2, np.array([1.0]))   # |Z|/sqrt(|Z|^2 + 1)
    >>> round(float(value[0]), 9), bool(error[0] < 1e-12)
    (0.707985685, True)
    """
    coarse, fine = (_mean(form, degree, r, b, n) for n in ((144, 216) if r == 3 else (2000, 3001)))
    return fine, np.abs(fine - coarse)


def _mean(form: Callable[[Array], Array], degree: int, r: int, b: Array, n: int) -> Array:
    points, weights = _directions(r, n)
    h = np.maximum(form(points), 0)
    # chi_r in s = log R: R^r exp(-R^2/2)/(2^(r/2 - 1) Gamma(r/2)) ds
    R = np.exp(_LOG)
    radial = R**r*np.exp(-R*R/2)/(2**(r/2 - 1)*gamma(r/2))*(_LOG[1] - _LOG[0])
    power = R**(2*degree)
    out = np.empty(len(b))
    for i, v in enumerate(b):
        S = h[:, None]*power
        out[i] = weights @ (np.sqrt(S/(S + v)) @ radial)
    return out


def _directions(r: int, n: int) -> tuple[Array, Array]:
    """Points on the unit circle or sphere and weights that add up to 1."""
    if r == 2:
        angle = 2*np.pi*(np.arange(n) + 0.5)/n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(n, 1/n)
    if r != 3:
        raise BadInput(f"the mean cosine is computed for up to 3 directions; this target has {r}")
    t, w = np.polynomial.legendre.leggauss(n)
    angle = 2*np.pi*(np.arange(2*n) + 0.5)/(2*n)
    s = np.sqrt(1 - t*t)
    points = np.stack([np.outer(s, np.cos(angle)), np.outer(s, np.sin(angle)), np.outer(t, np.ones(2*n))], axis=-1)
    return points.reshape(-1, 3), np.repeat(w/2, 2*n)/(2*n)
