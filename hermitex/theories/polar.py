r"""E sqrt(S/(S + b)), S = |Z|^(2k) h(Z/|Z|), Z ~ N(0, 1_r): an average over a few normals by radius and direction.

The average over the radius is a function of log(h/b) alone: the trapezoid rule in log |Z| converges to rounding, and a spline of
it serves every direction. Each angle of the sphere has Gauss's rule on both sides of the planes between axes, where monomials
have their edges. Two coarser rules estimate the error: off these planes an edge is at a random place between nodes, and so is
one difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import gamma
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import expit

from hermitex.numbers.gauss import legendre
from hermitex.symbolic.budget import checkpoint

Array = np.ndarray[Any, Any]
_NODES = {2: (400, 410, 600), 3: (110, 120, 180), 4: (37, 40, 60), 5: (13, 14, 20), 6: (7, 8, 11)}  # on a quarter of the circle
_RANGE, _STEP = (-75.0, 300.0), 0.1  # of log(h/b); below it the root is less than 1e-16


def mean_root(form: Callable[[Array], Array], degree: int, r: int, b: Array) -> tuple[Array, Array]:
    """The average at each b > 0, and its error.

    Parameters
    ----------
    form : directions (m, r) -> h(direction) >= 0, of the form of degree 2 `degree` in Z
    degree, r : k and the number of normals, 2 to 6

    Examples
    --------
    >>> value, error = mean_root(lambda t: np.ones(len(t)), 1, 2, np.array([1.0]))   # |Z|/sqrt(|Z|^2 + 1)
    >>> round(float(value[0]), 9), bool(error[0] < 1e-12)
    (0.707985685, True)
    """
    *coarse, fine = (_mean(form, degree, r, b, n) for n in _NODES[r])
    doubt = 2.0  # times the difference of two rules, as it may be small by chance
    return fine, doubt*np.abs(fine - coarse).max(axis=0)


def _mean(form: Callable[[Array], Array], degree: int, r: int, b: Array, n: int) -> Array:
    radial, out = _radial(degree, r), np.zeros(len(b))
    for points, weights in _directions(r, n):
        checkpoint("averaging over directions", points.size)
        with np.errstate(divide="ignore"):
            log = np.log(np.maximum(form(points), 0))
        out += [weights @ radial(np.clip(log - np.log(v), *_RANGE)) for v in b]
    return out


@lru_cache(maxsize=32)
def _radial(degree: int, r: int) -> Callable[[Array], Array]:
    """x -> E sqrt(R^(2k)/(R^(2k) + exp(-x))), R of the law chi_r."""
    log_range = (-14.0, 2.6)  # of the radius
    s, step = np.linspace(*log_range, int(max(400, 60*degree)), retstep=True)  # the step resolves where R^(2k) passes exp(-x)
    weights = np.exp(r*s - np.exp(2*s)/2)/(2**(r/2 - 1)*gamma(r/2))*step
    x = np.arange(_RANGE[0], _RANGE[1] + _STEP, _STEP)
    return make_interp_spline(x, np.sqrt(expit(2*degree*s + x[:, None])) @ weights, k=7)


def _directions(r: int, n: int) -> Iterator[tuple[Array, Array]]:
    """Points on the unit sphere in r coordinates, n on each side of 0 of each, and weights of sum 1; some at a time."""
    x, w = legendre(n)
    x = np.pi/4*(1 + x)
    if r == 2:
        angle = (x + np.pi/2*np.arange(4)[:, None]).ravel()
        yield np.stack([np.cos(angle), np.sin(angle)], axis=1), np.tile(w/8, 4)
        return
    t, w = np.sin(np.concatenate([-x, x])), np.tile(w*np.cos(x)**(r - 2), 2)
    rows = 100_000  # directions at a time
    for points, weights in _directions(r - 1, n):
        for k in range(0, 2*n, size := max(1, rows//len(points))):
            at = t[k:k + size, None, None]
            last = np.broadcast_to(at, (len(at), len(points), 1))
            made = np.concatenate([np.sqrt(1 - at*at)*points, last], axis=-1).reshape(-1, r)
            yield made, np.outer(w[k:k + size]/w.sum(), weights).ravel()
