"""Panels of labels between two critical ones: nodes along a curve, crowding towards a logarithm in a power of the distance."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

DEEP = 9       # panels towards a saddle
RATIO = 4.0    # of their widths
ORDER = 12
_WIDTH = 1.0


def between(ends: np.ndarray, how: list[tuple[int, int]], less: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes between two places; `how`: for both ends how often panels shrink towards it, in which power of the distance."""
    a, b = ends
    count = max(1, int(np.ceil(abs(b - a) / _WIDTH)), 2 if any(d for d, _ in how) else 1)
    edges = np.linspace(0.0, 1.0, count + 1)
    x, w = _gauss(ORDER - less)
    low, high = edges[:-1, None], edges[1:, None]
    first, last = how[0][0] > 0, how[1][0] > 0
    inner = slice(int(first), count - int(last))
    places, weights = [((low + high) / 2 + (high - low) / 2 * x)[inner].ravel()], [((high - low) / 2 * w)[inner].ravel()]
    for (depth, power), upper in ((how[0], False), (how[1], True)):
        if depth:
            t, weight = _towards(depth, power, ORDER - less)
            places.append(1 - edges[1] * t if upper else edges[1] * t)
            weights.append(edges[1] * weight)
    s = np.concatenate(places)
    return np.where(s < 0.5, a + (b - a) * s, b - (b - a) * (1 - s)), np.concatenate(weights) * abs(b - a)


@lru_cache(maxsize=64)
def _gauss(order: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(order)


@lru_cache(maxsize=64)
def _towards(depth: int, power: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """On (0, 1), x = tau^power, panels in tau shrinking towards 0: what is narrow counts for little and has few nodes."""
    edges = np.array([0.0, *RATIO ** -np.arange(float(depth), -1.0, -1.0)])
    tau, weights = [], []
    for n, (p, q) in enumerate(pairwise(edges)):
        x, w = _gauss(max(5, order - (depth - n)))
        tau.append((p + q) / 2 + (q - p) / 2 * x)
        weights.append((q - p) / 2 * w)
    t = np.concatenate(tau)
    return t**power, np.concatenate(weights) * power * t ** (power - 1)
