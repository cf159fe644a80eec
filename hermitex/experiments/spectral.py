r"""W <- X^T g - ..., g_i = G(y_i) omega_i, G(y) = E[zz^T - 1|y]: Bayes-AMP linearised at M = 0, a spectral start.

Iterated with its Onsager term from a random W it is the power method of the matrix whose largest eigenvalue leaves its bulk at
alpha_c; it finds the directions where the label says nothing linear about them. Source: Troiani et al. (2024).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
_SMALL = 1e-4


def curvature(output: Any, y: Array) -> Array:
    """G(y_i), (n, r, r), as the slope of g_out in omega at omega = 0, V = 1."""
    r = output.r
    G = np.empty((len(y), r, r))
    for j in range(r):
        omega = np.zeros((len(y), r))
        omega[:, j] = _SMALL
        G[:, :, j] = (output.g_out(y, omega, np.eye(r)) - output.g_out(y, -omega, np.eye(r)))/(2*_SMALL)
    return (G + G.transpose(0, 2, 1))/2


def spectral_start(output: Any, X: Array, y: Array, rng: np.random.Generator, steps: int = 150) -> Array:
    """W (d, r), its columns of norm sqrt(d) up to a common factor, after `steps` of linearised AMP."""
    n, d = X.shape
    G = curvature(output, y)
    W = rng.standard_normal((d, output.r))
    g = np.zeros((n, output.r))
    for _ in range(steps):
        omega = X @ W - g
        g = np.einsum("nij,nj->ni", G, omega)
        W = X.T @ g - W @ G.sum(axis=0)/d
        size = np.linalg.norm(W)/np.sqrt(d*output.r)
        # the map is linear: W and the g of its Onsager term shrink together
        W, g = W/size, g/size
    return W


__all__ = ["curvature", "spectral_start"]
