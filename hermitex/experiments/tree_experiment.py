r"""A tree-like target learned from n = d^kappa samples: by a kernel (I), on directions found first (II), or layer by layer (III).

I: ridge regression with the kernel exp(<x, x'>/d). II: the directions are the leading eigenvectors, by size, of
sum_mu y_mu (x_mu x_mu^T - 1)/n, the part of order 2 that one gradient step on the first layer contains; then ridge regression with
the kernel of the projections z, on fresh samples (at most 3000, as in I). III: on n fresh samples a gradient step on the second
layer, h = sum_a phi_a(z) <y phi_a>, over the Hermite products phi_a of degree 1 to k; then the mean of y in intervals of the one
number h. Below its thresholds a scenario is the one before. `overlap` is the mean squared projection of the true directions on
the found ones: `Tree.overlap` is its theory. Errors differ from those of the theory by parts of order d^(-epsilon1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of
from hermitex.symbols import z
from hermitex.theories.curve import Curve

Array = np.ndarray


def simulate(theory: Any, kappa: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 4, groups: int = 1,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Learn the target at finite size, in the theory's scenario -> Curve along kappa, standard errors over seeds.

    Parameters
    ----------
    theory : ``tree(g, P, epsilon1, scenario)``; kappa : log n/log d, one list
    dimension : d (default 64); seeds : how many targets, or which; groups : r, the number of groups of d^epsilon1 directions,
        1 in scenario III
    """
    default = 64  # d^2 = 4096 samples are a kernel's matrix of 134 MB
    chosen, d = seeds_of(seeds), default if dimension is None else int(dimension)
    line = np.atleast_1d(theory.complete(theory.given({**numbers, "kappa": kappa}))["kappa"])
    width = round(d**float(theory.epsilon1))
    if d < 4 or groups < 1 or groups*width > d:
        raise BadInput(f"tree: {groups} groups of {width} directions do not fit into dimension {d}")
    most_features = 5000  # of the second layer: moments of 2000 samples at a time take 80 MB
    if theory.scenario == "III" and (groups > 1 or comb(width + theory.degree, width) > most_features):
        raise BadInput(f"tree: scenario III is simulated for one group with at most {most_features} products of degree k; here "
                       f"{groups} of {comb(width + theory.degree, width)}")
    names = ("test_error",) if theory.scenario == "I" else ("test_error", "overlap")
    most_samples = 40_000  # samples for second moments
    if (most := d**float(line.max())) > most_samples:
        raise BadInput(f"tree: kappa = {line.max():g} at d = {d} asks for {most:.3g} samples; {most_samples} is the most")

    def measured(rng: np.random.Generator, k: float) -> tuple[float, ...]:
        return _measured(theory, d, round(d**k), groups, width, k, rng)[:len(names)]

    return measured_curve(theory, {}, line, along(names, line, measured, apart=True), chosen, progress, dimension=d, groups=groups)


def labels(theory: Any, groups: int, width: int) -> Callable[[Array], Array]:
    """x -> y: the directions are the first groups*width unit vectors, every a_i has entries 1."""
    from hermitex.kernels.compile import compile

    g = compile(theory.g(z))
    shares = {q: float(c)**0.5 * (1 if p > 0 else -1) for (q, p), c in zip(theory.P, theory.shares.values(), strict=True)}

    def value(x: Array) -> Array:
        part = x[:, :groups*width].reshape(len(x), groups, width)
        series = np.zeros(max(shares) + 1)
        for q, c in shares.items():
            series[q] = c/np.sqrt(float(np.prod(np.arange(1, q + 1))))
        h = np.polynomial.hermite_e.hermeval(part, series).sum(axis=2)/np.sqrt(width)
        found: Array = np.broadcast_to(g(z=h), h.shape).sum(axis=1)/np.sqrt(groups)
        return found

    return value


def _measured(theory: Any, d: int, n: int, groups: int, width: int, kappa: float, rng: np.random.Generator) -> tuple[float, float]:
    """The test error, and the overlap of the directions in scenarios II and III."""
    target, count = labels(theory, groups, width), groups*width
    tested = 2000  # samples: their error is 1/45 of the spread of a loss
    x, t = rng.standard_normal((n, d)), rng.standard_normal((tested, d))
    y, clean = target(x), target(t)
    fitted_on = 3000  # samples of the kernel ridge regression: a matrix of 72 MB
    first, second = (float(v) for v in theory.thresholds.values())
    frame, overlap = np.eye(d), 1.0
    if theory.scenario != "I":
        centred = y - y.mean()
        size, vectors = np.linalg.eigh((x*centred[:, None]).T @ x/n - centred.mean()*np.eye(d))
        found = vectors[:, np.argsort(-np.abs(size))[:count]]
        overlap = float(np.sum(found[:count]**2)/count)
        if kappa >= first:
            frame, x = found, rng.standard_normal((n, d))
            y = target(x)
    x, t = x @ frame, t @ frame
    if theory.scenario == "III" and kappa >= max(first, second):
        learned = _second_layer(x, y - y.mean(), theory.degree)
        x = rng.standard_normal((n, d))
        f = _means(learned(x @ frame), target(x), learned(t))
    else:
        f = _kernel_ridge(x[:fitted_on], y[:fitted_on], t)
    return float(np.mean((clean - f)**2)), overlap


def _second_layer(x: Array, y: Array, degree: int) -> Callable[[Array], Array]:
    """z -> sum_a phi_a(z) <y phi_a>, shape (n,), over the products of normalised He_q(z_i) of degree 1 to `degree` in all."""
    block = 2000  # samples at a time
    products = [c for D in range(1, degree + 1) for c in combinations_with_replacement(range(x.shape[1]), D)]

    def features(z: Array) -> Array:
        norms = np.sqrt(np.cumprod([1.0, *range(1, degree + 1)]))
        powers = np.polynomial.hermite_e.hermevander(z, degree)/norms
        return np.stack([np.prod([powers[:, i, c.count(i)] for i in set(c)], axis=0) for c in products], axis=1)

    parts = range(0, len(x), block)
    weights = sum(features(x[k:k + block]).T @ y[k:k + block] for k in parts)/len(x)
    return lambda z: np.concatenate([features(z[k:k + block]) @ weights for k in range(0, len(z), block)])


def _means(h: Array, y: Array, t: Array) -> Array:
    """The mean of y where h is near t: over n^(1/2) intervals with as many samples each."""
    edges = np.quantile(h, np.linspace(0, 1, int(np.sqrt(len(h))) + 1))[1:-1]
    places = np.searchsorted(edges, h)
    found: Array = (np.bincount(places, y)/np.bincount(places))[np.searchsorted(edges, t)]
    return found


def _kernel_ridge(x: Array, y: Array, t: Array) -> Array:
    """Ridge regression with exp(<x, x'>/d), a constant taken out first; the best ridge of a few on a fifth of x."""
    from scipy.linalg import solve

    d, mean, own = x.shape[1], y.mean(), 4*len(x)//5

    def fitted(inside: slice, at: Array, ridge: float) -> Array:
        K = np.exp(x[inside] @ x[inside].T/d)
        K[np.diag_indices_from(K)] += ridge
        found: Array = mean + np.exp(at @ x[inside].T/d) @ solve(K, y[inside] - mean, assume_a="pos", overwrite_a=True)
        return found

    ridges = (1e-2, 0.3, 10.0, 300.0)  # some one and a half decades apart, of a kernel of size 1 to e; chosen by trial
    left = [np.mean((y[own:] - fitted(slice(own), x[own:], ridge))**2) for ridge in ridges]
    return fitted(slice(None), t, ridges[int(np.argmin(left))])
