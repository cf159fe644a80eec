"""det(E[F F^T Q] + diag(1/(n pi_k V_2k), 1/(alpha pi_k c_k V_2k))) = 0,  F = (mu_0^k, kappa mu_1^k): outliers of the features.

At a real z outside of the bulk V, and with it this symmetric matrix, is real. Its eigenvalues fall with z and cross 0 at the
outliers: the poles of the equations of (m_k, zeta_k) at lambda = -z, with their 1/d term. Rows whose squared norms fluctuate by
O(1/sqrt d), d Var = s_k^2, add nu^k = d mu_0^k/dc with the diagonal 1/(alpha pi_k s_k^2 V_2k).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from hermitex.theories.features.resolvent_equations import Array, Equations


def outliers(e: Equations, functions: Sequence[tuple[Array, Array]], bulks: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """The eigenvalues of Phi^T Phi/p outside of the bulks, the largest first.

    Parameters
    ----------
    functions : pairs (values, weight): functions of shape (nodes, K), and the weight (K,) of 1/(weight V_2k) in the diagonal
    """
    F = np.hstack([values for values, _ in functions])
    weights = np.concatenate([weight for _, weight in functions])
    kept = (e.w @ F**2) > 1e-26*max(float((e.w @ F**2).max(initial=0)), 1e-300)  # mu_0 of an odd activation at r = 0 is 0
    F, weights = F[:, kept], weights[kept]
    letters = np.tile(np.arange(e.pi.size), len(functions))[kept]
    if not F.size or not bulks:
        return ()

    def crossings(z: float) -> Array:
        """The eigenvalues of the matrix, its diagonal of one size, in falling order."""
        V = e.solve(np.array([z + 0j]))[0].real
        V2 = V[e.pi.size**2:][letters]
        scale = np.sqrt(np.abs(weights*V2))
        Q = e.w/(1 + e.basis @ V)
        return np.linalg.eigvalsh(scale[:, None]*(F.T @ (Q[:, None]*F))*scale + np.diag(np.sign(V2)))[::-1]

    top = 4*(bulks[-1][1] + float(np.abs(weights).max()*(e.w @ F**2).sum()))
    near = 1e-6  # of an edge: V has a square root there
    ends = [0.0, *(x for bulk in bulks for x in bulk), top]
    found: list[float] = []
    for low, high in zip(ends[::2], ends[1::2], strict=True):
        if high - low <= 4*near*high:
            continue
        a, b = low + near*max(low, high - low if low == 0 else low), high*(1 - near)
        before, after = crossings(a), crossings(b)
        for j in np.flatnonzero((before > 0) & (after < 0)):
            found.append(float(brentq(lambda z, j=j: crossings(z)[j], a, b, xtol=1e-13*b, rtol=1e-13)))
    return tuple(sorted(found, reverse=True))
