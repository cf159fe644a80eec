"""The saddle point of a ridge-penalised GLM on Gaussian data, by other means: scipy's minimiser and quadrature, damped iteration.

Vhat = alpha E[(1 - dprox/domega)/V], qhat = alpha E[((prox - omega)/V)^2], mhat = alpha E[(nu - omega0)/V0 (prox - omega)/V]
with omega = sqrt(q) xi, omega0 = m xi/sqrt(q), V0 = rho - m^2/q, nu | xi ~ N(omega0, V0) [loureiro2021, in the rows of a
generic output channel]. Nothing here knows of the package.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, roots_hermitenorm


def prox(slope, omega, V):
    """The root of f - omega + V l'(f), by bisection in floats."""
    reach = abs(V * slope(omega)) + 1
    return brentq(lambda f: f - omega + V * slope(f), omega - reach, omega + reach, xtol=1e-15, rtol=1e-15, maxiter=500)


def regression(slope, curvature, *, alpha, lamda, Delta, rho, kinks=lambda V: ()):
    """y = nu + sqrt(Delta) xi and l = h(y - f): everything over s = y - omega ~ N(0, rho + Delta + q - 2m)."""
    def update(V, q, m):
        s = np.sqrt(rho + Delta + q - 2 * m)
        x, w = line([k / s for k in kinks(V)])
        u = np.array([prox(slope, s * t, V) for t in x])
        g = (s * x - u) / V
        bend = np.array([curvature(t) for t in u])
        mean = (w * (bend / (1 + V * bend))).sum()
        return alpha * mean, alpha * (w * g**2).sum(), alpha * mean

    return iterate(update, lamda, rho)


def classification(slope, bend, *, alpha, lamda, rho, kinks=lambda V: ()):
    """y = sign(nu), l = h(y f): both labels alike, so y = 1 twice; `bend(u, omega, V)` is 1 - dprox/domega."""
    def update(V, q, m):
        V0 = rho - m**2 / q
        x, w = line([k / np.sqrt(q) for k in kinks(V)])
        omega = np.sqrt(q) * x
        u = np.array([prox(slope, o, V) for o in omega])
        g, level = (u - omega) / V, m * x / np.sqrt(q) / np.sqrt(V0)
        density = np.exp(-(level**2) / 2) / np.sqrt(2 * np.pi) / np.sqrt(V0)
        stiff = np.array([bend(a, b, V) for a, b in zip(u, omega, strict=True)])
        return (2 * alpha * (w * ndtr(level) * stiff / V).sum(), 2 * alpha * (w * ndtr(level) * g**2).sum(),
                2 * alpha * (w * density * g).sum())

    return iterate(update, lamda, rho)


def line(kinks):
    """Gauss-Legendre panels between the kinks on [-9, 9], with the density of N(0, 1); Gauss-Hermite where there are none."""
    if not kinks:
        x, w = roots_hermitenorm(120)
        return x, w / w.sum()
    edges = np.unique(np.clip([-9, -6, -3, -1, 0, 1, 3, 6, 9, *kinks], -9, 9))
    t, v = np.polynomial.legendre.leggauss(24)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + t)).ravel()
    return x, (half * v).ravel() * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def iterate(update, lamda, rho):
    """Damped iteration to the undamped residual 1e-11."""
    V, q, m = 1.0, 1.0, 0.5
    for _ in range(2000):
        Vhat, qhat, mhat = update(V, q, m)
        new = (1 / (lamda + Vhat), (rho * mhat**2 + qhat) / (lamda + Vhat) ** 2, rho * mhat / (lamda + Vhat))
        gap = max(abs(a - b) for a, b in zip(new, (V, q, m), strict=True))
        V, q, m = (0.3 * a + 0.7 * b for a, b in zip((V, q, m), new, strict=True))
        if gap < 1e-11:
            return V, q, m
    raise AssertionError("the reference iteration did not settle")
