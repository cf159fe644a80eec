"""V_1 + beta diag(pi c V_2) Mhat V_1 = diag(pi c V_2),   V_2k (Vhat_2k - z) + (V_1 Mhat)_kk/pi_k = 1,   m(z) = sum_k pi_k V_2k.

The fixed point of one gradient step's features with lambda -> -z, for complex z and K letters k, of fractions pi_k and squared
norms c_k: Mhat_kl = (alpha/beta) E[mu_1^k mu_1^l Q], Vhat_2k = (alpha/beta) E[(mu_star^k)^2 Q], over kappa ~ N(0, 1), where
Q = 1/(1 + sum_kl mu_1^k V_1kl mu_1^l + sum_k pi_k V_2k (mu_star^k)^2). The branch is the one with Im m > 0 in the upper half plane,
followed down to the real axis; its folds are the edges of the spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hermitex.errors import NotConverged

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations at given coefficients: weights w of the nodes of kappa, mu = mu_1 and d = mu_star^2 of shape (nodes, K)."""

    w: Array
    mu: Array
    d: Array
    alpha: float
    beta: float
    pi: Array
    c: Array

    @property
    def population(self) -> Array:
        """The variance of a feature at each node, sum_k pi_k (c_k mu_1^2 + mu_star^2)."""
        return (self.c*self.mu**2 + self.d) @ self.pi

    @property
    def mean(self) -> float:
        """The first moment of the law, (alpha/beta) E sum_k pi_k (c_k mu_1^2 + mu_star^2)."""
        return float(self.alpha/self.beta*(self.w @ self.population))

    @cached_property
    def basis(self) -> Array:
        """What multiplies V = (V_1 row by row, V_2) in 1/Q - 1, shape (nodes, K^2 + K)."""
        pairs = self.mu[:, :, None]*self.mu[:, None, :]
        return np.hstack([pairs.reshape(len(self.w), -1), self.pi*self.d])

    @cached_property
    def _products(self) -> Array:
        n = self.basis.shape[1]
        return (self.basis[:, :, None]*self.basis[:, None, :]).reshape(-1, n*n)*self.w[:, None]

    def trace(self, V: Array) -> Array:
        """m = sum_k pi_k V_2k."""
        return V[:, self.pi.size**2:] @ self.pi

    def residuals(self, V: Array, z: Array) -> tuple[Array, Array]:
        """(residuals, Jacobian) at V (points, n), z (points,): shapes (points, n), (points, n, n), n = K^2 + K."""
        K, n, ratio = self.pi.size, V.shape[1], self.alpha/self.beta
        V1, V2 = V[:, :K*K].reshape(-1, K, K), V[:, K*K:]
        Q = 1/(1 + V @ self.basis.T)
        F = ratio*(Q @ (self.w[:, None]*self.basis))
        dF = -ratio*(Q**2 @ self._products).reshape(-1, n, n)
        M, L = F[:, :K*K].reshape(-1, K, K), F[:, K*K:]/self.pi
        dM, dL = dF[:, :K*K].reshape(-1, K, K, n), dF[:, K*K:]/self.pi[:, None]
        unit = np.eye(n)
        d1, d2 = unit[:K*K].reshape(K, K, n), unit[K*K:]
        weight = self.pi*self.c
        MV = M @ V1
        dMV = np.einsum("pijn,pjk->pikn", dM, V1) + np.einsum("pij,jkn->pikn", M, d1)
        R1 = V1 + self.beta*(weight*V2)[:, :, None]*MV - (weight*V2)[:, :, None]*np.eye(K)
        J1 = (d1 + self.beta*((weight*V2)[:, :, None, None]*dMV + (weight[:, None]*d2)[None, :, None]*MV[..., None])
              - np.einsum("in,ij->ijn", weight[:, None]*d2, np.eye(K)))
        dVM = np.einsum("ijn,pji->pin", d1, M) + np.einsum("pij,pjin->pin", V1, dM)
        R2 = V2*(L - z[:, None]) + np.einsum("pij,pji->pi", V1, M)/self.pi - 1
        J2 = d2*(L - z[:, None])[..., None] + V2[..., None]*dL + dVM/self.pi[:, None]
        return np.hstack([R1.reshape(-1, K*K), R2]), np.hstack([J1.reshape(-1, K*K, n), J2])

    # -- complex z -------------------------------------------------------------------------------------------------------
    def solve(self, z: Array) -> Array:
        """V at each z of the closed upper half plane, shape (points, n); on the axis the limit from above.

        Raises
        ------
        NotConverged : the branch was lost somewhere.
        """
        chunk = 400_000  # points times nodes at once
        parts = np.array_split(z, max(1, z.size*self.w.size//chunk))
        return np.concatenate([self._solve(part) for part in parts])

    def _solve(self, z: Array) -> Array:
        scale = max(self.mean, 1e-300)
        height = 20*(np.abs(z.real).max(initial=0) + scale)
        V = np.append(np.diag(self.pi*self.c).ravel(), np.ones(self.pi.size))/-(z.real + 1j*height)[:, None]
        down = 0.5  # the imaginary part shrinks by it from step to step
        small = 1e-7  # of the scale: from there to the axis in one step
        while True:
            now = z.real + 1j*np.maximum(height, z.imag)
            V = self.newton(V, now)
            m = self.trace(V)
            self._require(np.isfinite(V).all(-1) & (m.imag > -1e-14*np.abs(m)), V, now)
            if height <= z.imag.min(initial=np.inf):
                return V
            height = height*down if height > small*scale else 0.0
            if height == 0.0:
                low = z.imag < small*scale
                V[low] = self.newton(V[low], z[low])
                m = self.trace(V)
                self._require(~low | (np.isfinite(V).all(-1) & (m.imag > -1e-7*np.abs(m))), V, z)
                return V

    @staticmethod
    def _require(kept: Array, V: Array, z: Array) -> None:
        if not kept.all():
            raise NotConverged(V, f"spectrum: the branch was lost at z = {z[~kept][0]:.6g}")

    def newton(self, V: Array, z: Array) -> Array:
        """Newton's iteration from V; not a number where it fails."""
        V = V.copy()
        todo = np.arange(len(V))
        steps = 60  # of Newton's method, which converges quadratically from a neighbour or does not arrive
        with np.errstate(all="ignore"):
            for _ in range(steps):
                R, J = self.residuals(V[todo], z[todo])
                step = _solved(J, R)
                V[todo] -= step
                size = np.abs(step).max(-1)/np.abs(V[todo]).max(-1)
                todo = todo[~(size < 2e-15) & np.isfinite(size)]
                if not todo.size:
                    break
        return V

    # -- edges -----------------------------------------------------------------------------------------------------------
    def fold(self, V: Array, x: float) -> tuple[float, Array] | None:
        """The real x nearby where two solutions merge, R = 0 and det J = 0, and V there; None if Newton does not find it."""
        u = np.append(V.real, x)

        def system(u: Array) -> Array:
            R, J = self.residuals(u[None, :-1], u[-1:])
            return np.append(R[0], np.linalg.det(J[0]))

        with np.errstate(all="ignore"):
            for _ in range(40):
                value = system(u)
                # Complex steps: the derivatives are exact to rounding.
                steps = np.diag(1e-30*(np.abs(u) + 1e-12))
                jacobian = np.stack([system(u + 1j*h).imag/h.max() for h in steps], axis=1)
                if not np.isfinite(jacobian).all():
                    return None
                step = np.linalg.lstsq(jacobian, value, rcond=None)[0]
                u = u - step
                size = np.append(np.full(V.size, np.abs(u[:-1]).max()), np.abs(u[-1]))
                if np.all(np.abs(step) <= 1e-13*(size + 1e-300)):
                    return float(u[-1]), u[:-1]
        return (float(u[-1]), u[:-1]) if np.all(np.abs(step) <= 1e-9*size) else None

    def edge(self, outside: float, inside: float, V: Array) -> tuple[float, bool]:
        """The edge between a point outside the support and one inside (V is the solution there); True if a fold."""
        tiny = 1e-11  # of |V_2|: an imaginary part below is rounding, outside of the support
        for _ in range(60):
            gap = abs(inside - outside)
            if gap < 1e-3*max(abs(inside), abs(outside)):
                found = self.fold(V, inside)
                low, high = sorted((outside, inside))
                if found is not None and low - gap <= found[0] <= high + gap:
                    return found[0], True
            if gap <= 1e-12*max(abs(inside), abs(outside)):
                break
            middle = (inside + outside)/2
            at = self.solve(np.array([middle + 0j]))[0]
            m = self.trace(at[None])[0]
            if m.imag > tiny*abs(m):
                inside, V = middle, at
            else:
                outside = middle
        return inside, False


def _solved(J: Array, R: Array) -> Array:
    """J^-1 R point by point; not a number where J is singular."""
    try:
        return np.linalg.solve(J, R[..., None])[..., 0]
    except np.linalg.LinAlgError:
        regular = np.linalg.matrix_rank(np.where(np.isfinite(J), J, 0)) == J.shape[-1]
        out = np.full_like(R, np.nan)
        out[regular] = np.linalg.solve(J[regular], R[regular, :, None])[..., 0]
        return out
