"""Saddle-point equations in the form that the solvers take, with their exact Jacobians."""

import numpy as np

KAPPA = np.linspace(-8, 8, 81)
WEIGHT = np.exp(-KAPPA**2 / 2) / np.exp(-KAPPA**2 / 2).sum()
MU1 = (np.exp(-(KAPPA**2) / 3) * 0.65) ** 2  # squares of the conditional coefficients of an erf-like activation
MU2 = 0.04 * np.exp(-(KAPPA**2) / 4)
FOUR = ("Vhat1", "Vhat2", "V1", "V2")


def ridge(x, p):
    """V = 1/(lam + alpha/(1 + V))."""
    return x - 1 / (p["lam"] + p["alpha"] / (1 + x))


def ridge_jacobian(x, p):
    return (1 - p["alpha"] / (p["lam"] * (1 + x) + p["alpha"]) ** 2)[None]


def one_step_map(x, p):
    """The closed block of the one-step system, c = 1, as its four right-hand sides."""
    Vhat1, Vhat2, V1, V2 = x
    load = p["alpha"] / p["beta"]
    Q = 1 / (1 + np.outer(MU1, V1) + np.outer(MU2, V2))
    u = 1 / (1 + p["beta"] * Vhat1 * V2)
    return np.stack([load * ((WEIGHT * MU1) @ Q), load * ((WEIGHT * MU2) @ Q), V2 * u,
                     1 / (p["lam"] + Vhat2 + Vhat1 * u)])  # fmt: skip


def one_step(x, p):
    return x - one_step_map(x, p)


def one_step_jacobian(x, p):
    Vhat1, Vhat2, V1, V2 = x
    load, beta = p["alpha"] / p["beta"], p["beta"]
    Q2 = 1 / (1 + np.outer(MU1, V1) + np.outer(MU2, V2)) ** 2
    u = 1 / (1 + beta * Vhat1 * V2)
    du_hat, du_V = -beta * V2 * u * u, -beta * Vhat1 * u * u
    D = p["lam"] + Vhat2 + Vhat1 * u
    J = np.zeros((4, 4, x.shape[1]))
    J[range(4), range(4)] = 1
    J[0, 2], J[0, 3] = load * ((WEIGHT * MU1 * MU1) @ Q2), load * ((WEIGHT * MU1 * MU2) @ Q2)
    J[1, 2], J[1, 3] = load * ((WEIGHT * MU2 * MU1) @ Q2), load * ((WEIGHT * MU2 * MU2) @ Q2)
    J[2, 0] = -V2 * du_hat
    J[2, 3] = -u - V2 * du_V
    J[3, 0] = (u + Vhat1 * du_hat) / D**2
    J[3, 1] = 1 / D**2
    J[3, 3] += Vhat1 * du_V / D**2
    return J
