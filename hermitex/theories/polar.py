"""E sqrt(S/(S + b)), S = |Z|^(2k) h(Z/|Z|), Z ~ N(0, 1_r): an average over a few normals by radius and direction.

Along the radius the trapezoid rule in log |Z| converges to rounding; over directions it is the rule of the circle (r = 2), and for
each further coordinate t of the sphere Gauss's rule of the weight (1 - t^2)^((r - 3)/2), refined once: how far the finer rule
moves is the error.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gamma
from typing import Any

import numpy as np
from scipy.special import roots_gegenbauer

from hermitex.errors import BadInput

Array = np.ndarray[Any, Any]
_LOG = np.linspace(-14, 2.6, 401)  # of the radius
_NODES = {2: (2000, 3001), 3: (144, 216), 4: (32, 48), 5: (14, 20)}  # of each coordinate of the sphere; twice as many on its circle
_ROWS = 20_000  # directions at a time


def mean_root(form: Callable[[Array], Array], degree: int, r: int, b: Array) -> tuple[Array, Array]:
    """The average at each b > 0, and its error.

    Parameters
    ----------
    form : directions (m, r) -> h(direction) >= 0, of the form of degree 2 `degree` in Z
    degree, r : k and the number of normals, 2 to 5

    Examples
    --------
    >>> value, error = mean_root(lambda t: np.ones(len(t)), 1, 2, np.array([1.0]))   # |Z|/sqrt(|Z|^2 + 1)
    >>> round(float(value[0]), 9), bool(error[0] < 1e-12)
    (0.707985685, True)
    """
    if r not in _NODES:
        raise BadInput(f"the mean cosine is computed for up to {max(_NODES)} directions; this target has {r}. Its order, "
                       "directions and rates are known: theory.order, .directions, .rates()")
    coarse, fine = (_mean(form, degree, r, b, n) for n in _NODES[r])
    return fine, np.abs(fine - coarse)


def _mean(form: Callable[[Array], Array], degree: int, r: int, b: Array, n: int) -> Array:
    points, weights = _directions(r, n)
    h = np.maximum(form(points), 0)
    # chi_r in s = log R: R^r exp(-R^2/2)/(2^(r/2 - 1) Gamma(r/2)) ds
    R = np.exp(_LOG)
    radial = R**r*np.exp(-R*R/2)/(2**(r/2 - 1)*gamma(r/2))*(_LOG[1] - _LOG[0])
    power = R**(2*degree)
    out = np.zeros(len(b))
    for k in range(0, len(h), _ROWS):
        S = h[k:k + _ROWS, None]*power
        out += [weights[k:k + _ROWS] @ (np.sqrt(S/(S + v)) @ radial) for v in b]
    return out


def _directions(r: int, n: int) -> tuple[Array, Array]:
    """Points on the unit sphere in r coordinates, n of each but 2 n on the circle of the first two, and weights of sum 1."""
    size = n if r == 2 else 2*n
    angle = 2*np.pi*(np.arange(size) + 0.5)/size
    points, weights = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(size, 1/size)
    for more in range(3, r + 1):
        t, w = roots_gegenbauer(n, (more - 2)/2)
        inner = np.sqrt(1 - t*t)[:, None, None]*points
        points = np.concatenate([inner, np.broadcast_to(t[:, None, None], (n, len(points), 1))], axis=-1).reshape(-1, more)
        weights = np.outer(w/w.sum(), weights).ravel()
    return points, weights
