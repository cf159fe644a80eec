"""F(M) = E[g_out g_out^T] of every channel in several variables against samples of (omega, z, y) and of the posterior.

omega ~ N(0, M), z ~ N(omega, V), y ~ P(.|z), all even (scrambled Sobol points, eight scramblings give the error); g_out from 2048
weighted points z' ~ N(omega, V) of the posterior, or, where the label is |z1 z2| or z1 z2 itself, from an integral over z1.
Neither shares a line with the integrals of the package.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf, gammaln, ndtri, xlogy
from scipy.stats import poisson, qmc

import hermitex as hx

EVEN, APART = 0.45*np.eye(2), np.diag([0.5, 0.25])
FULL = np.array([[0.45, 0.2], [0.2, 0.35]])


def bell(x, D):
    return np.exp(-x*x/(2*D))/np.sqrt(2*np.pi*D)


def laplace(u):
    """The quantile of a Laplace law."""
    return -np.sign(u - 0.5)*np.log1p(-2*np.abs(u - 0.5))


def product(z):
    return z[..., 0]*z[..., 1]


def away(z):
    return np.maximum(np.abs(product(z)), 1e-9)


def mixed(z):
    return z[..., 0] + z[..., 1]**2


def step(z):
    return np.sign(product(z))


def sizes(z):
    return z[..., 0]**2 + np.maximum(z[..., 1], 0)


def ladder(z):
    return z[..., 0]**2 + np.sign(z[..., 0]*z[..., 1]*z[..., 2])


def rate(z):
    return (1 + erf(product(z)))/2


def odds(z):
    size = np.sum(z*z, axis=-1)
    return size/(1 + size)


LAPLACE = hx.Channel("exp(-Abs(y - z1*z2))/2", "y")
LOGISTIC = hx.Channel("1/(1 + exp(-y*(z1 + z2**2)))", "y", [1, -1])
COUNTS = hx.Channel("(1 + z1**2 + z2**2)**(-1)*((z1**2 + z2**2)/(1 + z1**2 + z2**2))**y", "y", "integers")

# target, channel, M, label from z and a uniform u, P(y|z) up to a factor of y
CASES = {
    "flip": ("sign(z1*z2)", "flip:1/10", EVEN, lambda z, u: step(z)*np.where(u < 0.1, -1, 1),
             lambda y, z: np.where(y == step(z), 0.9, 0.1)),
    "flip, three": ("sign(z1*z2*z3)", "flip:1/10", 0.5*np.eye(3), lambda z, u: np.sign(z.prod(axis=-1))*np.where(u < 0.1, -1, 1),
                    lambda y, z: np.where(y == np.sign(z.prod(axis=-1)), 0.9, 0.1)),
    "sign": ("z1*z2", "sign:1/4", EVEN, lambda z, u: np.sign(product(z) + 0.5*ndtri(u)),
             lambda y, z: 1 + y*erf(product(z)/0.5/np.sqrt(2))),
    "sign, full": ("z1 + z2**2", "sign:1/4", FULL, lambda z, u: np.sign(mixed(z) + 0.5*ndtri(u)),
                   lambda y, z: 1 + y*erf(mixed(z)/0.5/np.sqrt(2))),
    "gaussian": ("z1*z2", "gaussian:1/2", EVEN, lambda z, u: product(z) + np.sqrt(0.5)*ndtri(u),
                 lambda y, z: bell(y - product(z), 0.5)),
    "gaussian, full": ("z1 + z2**2", "gaussian:1/2", FULL, lambda z, u: mixed(z) + np.sqrt(0.5)*ndtri(u),
                       lambda y, z: bell(y - mixed(z), 0.5)),
    "gaussian, steps": ("z1**2 + sign(z1*z2*z3)", "gaussian:1/2", np.diag([0.5, 0.3, 0.3]),
                        lambda z, u: ladder(z) + np.sqrt(0.5)*ndtri(u), lambda y, z: bell(y - ladder(z), 0.5)),
    "multiplicative": ("z1*z2", "multiplicative", APART, lambda z, u: product(z)*ndtri(u),
                       lambda y, z: bell(y/away(z), 1)/away(z)),
    "poisson": ("z1**2 + relu(z2)", "poisson", APART, lambda z, u: poisson.ppf(u, sizes(z)),
                lambda y, z: np.exp(xlogy(y, sizes(z)) - sizes(z) - gammaln(y + 1))),
    "bernoulli": ("(1 + erf(z1*z2))/2", "bernoulli", EVEN, lambda z, u: 1.0*(u < rate(z)),
                  lambda y, z: np.where(y == 1, rate(z), 1 - rate(z))),
    "laplace": (None, LAPLACE, EVEN, lambda z, u: product(z) + laplace(u), lambda y, z: np.exp(-np.abs(y - product(z)))),
    "logistic": (None, LOGISTIC, FULL, lambda z, u: np.where(u < 1/(1 + np.exp(-mixed(z))), 1, -1),
                 lambda y, z: 1/(1 + np.exp(-y*mixed(z)))),
    "counts": (None, COUNTS, EVEN, lambda z, u: np.floor(np.log(u)/np.log(odds(z))), lambda y, z: odds(z)**y*(1 - odds(z))),
}


def scene(M, n, seed):
    """(omega, z, u) of n even points."""
    r = len(M)
    points = np.clip(qmc.Sobol(2*r + 1, seed=seed).random(n), 1e-12, 1 - 1e-12)
    normal = ndtri(points[:, :2*r])
    omega = normal[:, :r] @ np.linalg.cholesky(M).T
    return omega, omega + normal[:, r:] @ np.linalg.cholesky(np.eye(r) - M).T, points[:, -1]


def weighed(law, y, omega, V, points):
    """V^{-1}(E[z|y, omega] - omega) by weighted points of N(omega, V)."""
    half = ndtri(np.clip(qmc.Sobol(len(V), seed=0).random(points//2), 1e-12, 1 - 1e-12))
    offset = np.concatenate([half, -half]) @ np.linalg.cholesky(V).T
    found = np.empty_like(omega)
    for k in range(0, len(y), 256):
        part = slice(k, k + 256)
        p = law(y[part, None], omega[part, None] + offset)
        found[part] = (p @ offset)/p.sum(axis=1, keepdims=True)
    return found @ np.linalg.inv(V)


def along(signs, y, omega, V, h=0.02):
    """The same where y = s z1 z2 for s in signs, diagonal V: an integral over log|z1|."""
    t = np.exp(np.arange(-16, 2.1, h))
    x = np.concatenate([t, -t])  # dz1/|z1| = d log|z1|
    v, total, first = np.diag(V), 0.0, 0.0
    for s in signs:
        offset = np.stack([x - omega[:, :1], s*y[:, None]/x - omega[:, 1:]], axis=-1)
        p = np.exp(-np.sum(offset**2/v, axis=-1)/2)
        total, first = total + p.sum(axis=1), first + np.einsum("nk,nki->ni", p, offset)
    return first/total[:, None]/v


def compared(output, M, draw, posterior, n):
    """(F(M), its estimate and error)."""
    V = np.eye(len(M)) - M
    found = []
    for seed in range(8):
        omega, z, u = scene(M, n, seed)
        g = posterior(draw(z, u), omega, V)
        found.append(g.T @ g/n)
    return output.second(M), np.mean(found, axis=0), np.std(found, axis=0, ddof=1)/np.sqrt(8)


def agrees(case, n, points):
    target, channel, M, draw, law = CASES[case]
    output = hx.theories.multi_index(target, channel).output
    F, estimate, error = compared(output, M, draw, lambda y, omega, V: weighed(law, y, omega, V, points), n)
    # the weighted points themselves: their variance adds to g^2 what it is worth
    allowed = 4*error + 6*np.trace(F)/points
    assert np.all(np.abs(F - estimate) < allowed), (F, estimate, error)
    return F, estimate, error


@pytest.mark.parametrize("case", ["flip", "sign", "gaussian", "bernoulli", "logistic"])
def test_drawn_labels_by_few_samples(case):
    agrees(case, 256, 1024)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_drawn_labels_by_many_samples(case):
    F, _, error = agrees(case, 1024, 2048)
    assert np.abs(error).max() < 0.02*np.trace(F)


@pytest.mark.parametrize(("channel", "signs"), [("random_sign", (1, -1)), (None, (1,))])
def test_labels_without_noise_by_an_integral(channel, signs):
    """y = z1 z2, and its size alone: the posterior lives on hyperbolas."""
    output = hx.theories.multi_index("z1*z2", channel).output
    F, estimate, error = compared(output, EVEN, lambda z, u: product(z), lambda y, omega, V: along(signs, y, omega, V), 256)
    assert np.all(np.abs(F - estimate) < 4*error + 1e-9)
    assert np.abs(error).max() < 0.03*np.trace(F)


def test_a_lost_square_of_the_noise_is_seen():
    """sqrt(D) in the place of D: the estimate is off by many standard errors."""
    target, _, M, draw, law = CASES["gaussian"]
    output = hx.theories.multi_index(target, "gaussian:0.70710678").output
    F, estimate, error = compared(output, M, draw, lambda y, omega, V: weighed(law, y, omega, V, 1024), 256)
    assert np.abs(F - estimate).max() > 5*error.max()
