r"""W <- X^T g - ..., g_i = G(y_i) omega_i, G(y) = E[zz^T - 1|y]: Bayes-AMP linearised at M = 0, a spectral start.

Iterated with its Onsager term from a random W it is the power method of the matrix whose largest eigenvalue leaves its bulk at
alpha_c; it finds the directions where the label says nothing linear about them. Source: Troiani et al. (2024).
"""

from __future__ import annotations

import numpy as np

from hermitex.experiments.denoisers import Denoiser

Array = np.ndarray


def curvature(label: Denoiser, n: int, r: int) -> Array:
    """G(y_i), (n, r, r), as the slope of g_out in omega at omega = 0, V = 1."""
    G = label(np.zeros((n, r)), np.eye(r))[1]
    return (G + G.transpose(0, 2, 1))/2


def spectral_start(label: Denoiser, X: Array, r: int, rng: np.random.Generator, steps: int = 150) -> Array:
    """W (d, r), its columns of norm sqrt(d) up to a common factor, after at most `steps` of linearised AMP."""
    n, d = X.shape
    G = curvature(label, n, r)
    W = rng.standard_normal((d, r))
    g, span = np.zeros((n, r)), np.linalg.qr(W)[0]
    still = 1e-3  # what a step takes out of the span of W: AMP itself goes on from there
    for _ in range(steps):
        omega = X @ W - g
        g = np.einsum("nij,nj->ni", G, omega)
        W = X.T @ g - W @ G.sum(axis=0)/d
        size = np.linalg.norm(W)/np.sqrt(d*r)
        # the map is linear: W and the g of its Onsager term shrink together
        W, g, before, span = W/size, g/size, span, np.linalg.qr(W)[0]
        if np.linalg.norm(span - before @ (before.T @ span)) < still:
            break
    return W


__all__ = ["curvature", "spectral_start"]
