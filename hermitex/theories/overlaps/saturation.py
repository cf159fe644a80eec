r"""F(1 - s^2 K) -> E[n n^T/(n^T K n)]/s^2, n = grad g, as s -> 0: whether M = 1 attracts the state evolution of a smooth label.

Next to the truth a smooth label without noise is known along its gradient: one equation a sample. So M = 1 attracts where
alpha c > 1, c the slowest rate of V <- (alpha F)^{-1} in the shape K that this map comes to [Tyler 1987]: alpha > r if no gradient
vanishes and all directions are equivalent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

Array = np.ndarray


def unit_gradients(g: Callable[[Sequence[Array]], Array], r: int) -> Array:
    """Unit gradients (n, r) at points that fill N(0, 1) evenly; zero on a plateau."""
    points = 16  # 2^16, evenly spread
    z = ndtri(np.clip(qmc.Sobol(r, seed=0).random_base2(points), 1e-12, 1 - 1e-12)).T
    step = 1e-5  # of a central difference of g: ten digits of a gradient
    slopes = np.stack([g(list(z + e)) - g(list(z - e)) for e in step*np.eye(r)[:, :, None]], axis=1)
    size = np.linalg.norm(slopes, axis=1, keepdims=True)
    seen = np.isfinite(size) & (size > 0)
    return np.where(seen, slopes/np.where(seen, size, 1.0), 0.0)


def saturation_limit(n: Array, K: Array) -> Array:
    """E[n n^T/(n^T K n)] over the samples.

    >>> saturation_limit(np.eye(2), np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    size = ((n @ K)*n).sum(axis=1)
    return np.asarray((n/np.where(size > 0, size, 1.0)[:, None]).T @ n/len(n))


class Approach:
    """How M = 1 - s^2 K comes to 1 for one label: the `shape` K, of largest eigenvalue 1, and the `rate` c: V <- V/(alpha c)."""

    def __init__(self, n: Array, symmetric: Callable[[Array], Array]) -> None:
        self.n, self.rate, r = n, 0.0, n.shape[1]
        self.shape = np.eye(r)
        steps, settled = 200, 1e-11  # of the iteration, which converges geometrically; its change at the end
        least = 1e-9  # V in one direction over V in another
        for _ in range(steps):
            F, L = symmetric(saturation_limit(n, self.shape)), np.linalg.cholesky(self.shape)
            last, self.rate = self.rate, float(np.linalg.eigvalsh(L.T @ F @ L)[0])
            G, R = np.linalg.eigh(F)
            self.shape = (R*(G[-1]/np.maximum(G, least*G[-1]))) @ R.T
            self.shape = self.shape/np.linalg.eigvalsh(self.shape)[-1]
            if abs(self.rate - last) < settled:
                break

    @property
    def onset(self) -> float:
        """The alpha above which M = 1 attracts."""
        never = 1e-6  # part of the samples that tell of a direction, below which none is known
        return 1/self.rate if self.rate > never else np.inf

    def attracts(self, alpha: float) -> bool:
        """Whether M = 1 surely attracts."""
        counted = 1.005  # the onset is counted among 2^16 points: its standard error is 1/256 = 0.4 %
        return bool(alpha > counted*self.onset)
