"""V_1 (1 + c beta Vhat_1 V_2) = c V_2,   V_2 (Vhat_2 - z) + Vhat_1 V_1 = 1,   m(z) = V_2.

The fixed point of one gradient step's features with lambda -> -z, for complex z: Vhat_i = (alpha/beta) E[mu_i^2 Q],
Q = 1/(1 + mu_1^2 V_1 + mu_star^2 V_2) over kappa ~ N(0, 1). The branch is the one with Im V > 0 in the upper half plane,
followed down to the real axis; its folds are the edges of the spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import NotConverged

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Equations:
    """The two equations at given coefficients: weights w, a = mu_1^2, d = mu_star^2 over nodes of kappa."""

    w: Array
    a: Array
    d: Array
    alpha: float
    beta: float
    c: float

    @property
    def mean(self) -> float:
        """The first moment of the law, (alpha/beta) E[c mu_1^2 + mu_star^2]."""
        return float(self.alpha/self.beta*(self.w @ (self.c*self.a + self.d)))

    def residuals(self, V: Array, z: Array) -> tuple[Array, Array]:
        """(residuals, Jacobian) at V of shape (points, 2), z of shape (points,): shapes (points, 2), (points, 2, 2)."""
        V1, V2 = V[:, 0], V[:, 1]
        Q = 1/(1 + V1[:, None]*self.a + V2[:, None]*self.d)
        ratio, cb = self.alpha/self.beta, self.c*self.beta
        F1, F2 = ratio*(Q @ (self.w*self.a)), ratio*(Q @ (self.w*self.d))
        Q *= Q
        F11, F12, F22 = (-ratio*(Q @ (self.w*e)) for e in (self.a**2, self.a*self.d, self.d**2))
        R = np.stack([V1*(1 + cb*F1*V2) - self.c*V2, V2*(F2 - z) + F1*V1 - 1], axis=-1)
        J = np.stack([1 + cb*V2*(F1 + V1*F11), cb*V1*(F1 + V2*F12) - self.c,
                      V2*F12 + F1 + V1*F11, F2 - z + V2*F22 + V1*F12], axis=-1)
        return R, J.reshape(-1, 2, 2)

    # -- complex z -------------------------------------------------------------------------------------------------------
    def solve(self, z: Array) -> Array:
        """V at each z of the closed upper half plane, shape (points, 2); on the axis the limit from above.

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
        V = np.stack([-self.c/(z.real + 1j*height), -1/(z.real + 1j*height)], axis=-1)
        down = 0.5  # the imaginary part shrinks by it from step to step
        small = 1e-7  # of the scale: from there to the axis in one step
        while True:
            now = z.real + 1j*np.maximum(height, z.imag)
            V = self.newton(V, now)
            self._require(np.isfinite(V).all(-1) & (V.imag > -1e-14*np.abs(V)).all(-1), V, now)
            if height <= z.imag.min(initial=np.inf):
                return V
            height = height*down if height > small*scale else 0.0
            if height == 0.0:
                low = z.imag < small*scale
                V[low] = self.newton(V[low], z[low])
                self._require(~low | (np.isfinite(V).all(-1) & (V[:, 1].imag > -1e-7*np.abs(V[:, 1]))), V, z)
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
                det = J[:, 0, 0]*J[:, 1, 1] - J[:, 0, 1]*J[:, 1, 0]
                step = np.stack([J[:, 1, 1]*R[:, 0] - J[:, 0, 1]*R[:, 1],
                                 J[:, 0, 0]*R[:, 1] - J[:, 1, 0]*R[:, 0]], axis=-1)/det[:, None]
                V[todo] -= step
                size = np.abs(step).max(-1)/np.abs(V[todo]).max(-1)
                todo = todo[~(size < 2e-15) & np.isfinite(size)]
                if not todo.size:
                    break
        return V

    # -- edges -----------------------------------------------------------------------------------------------------------
    def fold(self, V: Array, x: float) -> tuple[float, Array] | None:
        """The real x nearby where two solutions merge, R = 0 and det J = 0, and V there; None if Newton does not find it."""
        u = np.array([V[0].real, V[1].real, x])

        def system(u: Array) -> Array:
            R, J = self.residuals(u[None, :2], u[2:])
            return np.array([R[0, 0], R[0, 1], np.linalg.det(J[0])])

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
                if np.all(np.abs(step) <= 1e-13*(np.abs(u) + 1e-300)):
                    return float(u[2]), u[:2]
        return (float(u[2]), u[:2]) if np.all(np.abs(step) <= 1e-9*np.abs(u)) else None

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
            if at[1].imag > tiny*abs(at[1]):
                inside, V = middle, at
            else:
                outside = middle
        return inside, False
