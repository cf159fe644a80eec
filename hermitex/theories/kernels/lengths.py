r"""tau(r) = lam + sum_k N_k A_k(r, r),   A_k = (1/K_k + D)^-1,   D(r) = n P(r)/tau(r): the equivalent where lengths |x| differ.

Rotations part a kernel on Gaussian data into degrees, K(x, x') = sum_k N_k K_k(r, r') Q_k(t), r = |x|/sqrt(d), and the target into
g_k(r). Given their lengths the samples' harmonics have covariances K_k(r, r), a mixture, whose deterministic equivalent has one
effective ridge tau(r) for each length: without sample i, of length r, K(x_i, x_i) - K_i (K + lam)^-1 K_i concentrates at tau(r) -
lam (the harmonics of degree k average K_k to A_k, what is learnt of none of them stays whole), so that its weight is (error
without it)/tau(r). With m_k = (1 + K_k D)^-1 g_k what is missed of the target, the mean squares of these errors at length r are

    e(r) = sum_k m_k(r)^2 + sum_s M(r, s) (e(s) + noise),   M(r, s) = n P(s)/tau(s)^2 sum_k N_k A_k(r, s)^2,

as A_k carries the weight of a sample at s to r; the test error is E e(r), the train error E (lam/tau)^2 (e + noise). At one length
(the sphere) that is `ridge_equivalent` with tau = n nu. dT/dtau of the right side T is M, T is concave and increasing, and starts
below lam + K(x, x): Newton's method from there falls to the one root. Derived here, checked by simulation; no theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hermitex.symbolic.activations import Activation
from hermitex.theories.kernels import harmonics
from hermitex.theories.kernels.inner import InnerKernel, target_coefficients

Array = np.ndarray
CLOSE = 1e-10  # relative, of tau: a residual above says that the iteration did not arrive
NAMES = ("nu_2", "nu_1", "bias", "variance", "test_error", "test_error_noisy", "train_error")


@dataclass(frozen=True, eq=False)
class Lengths:
    """A kernel and a target by degree (first axis) and length: roots of K_k, the target's g_k, and the part above the degrees."""

    chance: Array
    many: Array
    roots: Array
    aim: Array
    tail: Array
    missed: Array

    def errors(self, n: float, lam: float, noise: float) -> tuple[dict[str, float], float, int]:
        """Errors and nu = E tau/n, the residual of tau, and the steps it took."""
        tau, residual, steps = self._ridges(n, lam)
        return {name: float(v) for name, v in self._values(tau, n, lam, noise).items()}, residual, steps

    def slopes(self, n: float, lam: float, noise: float, by: str) -> dict[str, float]:
        """Their derivatives by n, lam or noise: exact, of a step along the imaginary axis that rounding cannot see."""
        at: dict[str, Any] = {"n": n, "lam": lam, "noise": noise}
        tau, residual, _ = self._ridges(n, lam)
        if residual > CLOSE:
            return dict.fromkeys(NAMES, float("nan"))
        tiny = 1e-30  # step along the imaginary axis: its square is below rounding, so that the slope is exact
        at[by] += 1j*tiny
        for _ in range(2):  # what is imaginary is linear: one step of Newton's method finds it
            tau = tau - self._step(tau, at["n"], at["lam"])[-1]
        return {name: float(np.imag(v))/tiny for name, v in self._values(tau, **at).items()}

    def _ridges(self, n: float, lam: float) -> tuple[Array, float, int]:
        tau = lam + self.tail + np.einsum("k,krs,krs->r", self.many, self.roots, self.roots)
        steps = 0
        most_steps = 100  # of Newton's method, damped; chosen by trial
        aim = 1e-13  # relative residual of tau at which the iteration ends: some ten roundings of its sum
        while True:
            _, _, _, gap, step = self._step(tau, n, lam)
            residual = float(np.max(np.abs(gap/tau)))
            if not residual > aim or steps == most_steps:
                return tau, residual, steps
            tau, steps = np.maximum(tau - step, tau*1e-3), steps + 1

    def _step(self, tau: Array, n: Any, lam: Any) -> tuple[Array, Array, Array, Array, Array]:
        """Weights n P/tau, A_k, the Jacobian M, the gap of the equation of tau, and Newton's step."""
        one, weight = np.eye(self.chance.size), n*self.chance/tau
        inner = one + np.einsum("krs,r,krt->kst", self.roots, weight, self.roots)
        dressed = self.roots @ np.linalg.solve(inner, self.roots.transpose(0, 2, 1))
        moved = np.einsum("k,krs->rs", self.many, dressed**2)*(weight/tau)
        gap = tau - lam - self.tail - np.einsum("k,krr->r", self.many, dressed)
        return weight, dressed, moved, gap, np.linalg.solve(one - moved, gap)

    def _values(self, tau: Array, n: Any, lam: Any, noise: Any) -> dict[str, Any]:
        weight, dressed, moved, _, _ = self._step(tau, n, lam)
        left = self.aim - np.einsum("krs,ks->kr", dressed, weight*self.aim)
        wanted = np.stack([(left**2).sum(axis=0) + self.missed, noise*moved.sum(axis=1)], axis=1)
        errors = np.linalg.solve(np.eye(self.chance.size) - moved, wanted)
        (bias, variance), nu = self.chance @ errors, self.chance @ tau/n
        train = self.chance @ ((lam/tau)**2*(errors.sum(axis=1) + noise))
        return dict(zip(NAMES, (nu, nu, bias, variance, bias + variance, bias + variance + noise, train), strict=True))


@lru_cache(maxsize=32)
def lengths(kernel: InnerKernel, g: Activation, d: int, degrees: int) -> Lengths:
    """What `Lengths.errors` sums over, for x ~ N(0, I_d) and degrees up to this one."""
    radius, chance = harmonics.radii("gaussian", d)
    many = np.array([harmonics.dimensions(k, d) for k in range(degrees + 1)])
    parts = [np.linalg.svd(b, full_matrices=False) for b in kernel.factors(degrees, radius, d)]
    roots = np.zeros((degrees + 1, radius.size, radius.size))
    for root, (left, s, _) in zip(roots, parts, strict=True):
        root[:, :s.size] = left*s
    aim, size = target_coefficients(g, radius, d, degrees)
    aim = aim*np.sqrt(many)[:, None]
    top = kernel.diagonal(radius)
    tail, missed = top - np.einsum("k,krs,krs->r", many, roots, roots), size - (aim**2).sum(axis=0)
    return Lengths(chance, many, roots, aim, _kept(tail, top), _kept(missed, size))


def _kept(rest: Array, whole: Any) -> Array:
    """The rest without rounding."""
    return np.where(rest > 1e-13*whole, rest, 0.0)
