r"""A tree-like target learned from n = d^kappa samples: by a kernel (scenario I), or on directions found first (scenario II).

I: ridge regression with the kernel exp(<x, x'>/d). II: the directions are the leading eigenvectors, by size, of
sum_mu y_mu (x_mu x_mu^T - 1)/n, which is what one gradient step on the first layer sees of the target at order 2; then ridge
regression with the kernel of what is left of x, on fresh samples (at most 3000, as in I). Below kappa_1 scenario II is scenario I.
At sizes that run, d^epsilon1 is about ten, so errors lie off the theory by parts of order d^(-epsilon1) and thresholds are broad:
it shows the order of the scenarios, not digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import over_seeds, seeds_of
from hermitex.symbols import z
from hermitex.theories.curve import Curve

Array = np.ndarray


def simulate(theory: Any, kappa: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 4, groups: int = 1,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Learn the target at finite size, in the theory's scenario I or II -> Curve along kappa, standard errors over seeds.

    Parameters
    ----------
    theory : ``tree(g, P, epsilon1, scenario)``; kappa : log n/log d, one list
    dimension : d (default 64); seeds : how many targets, or which; groups : r, the number of groups of d^epsilon1 directions
    """
    if theory.scenario == "III":
        raise BadInput("tree: the experiment is that of scenarios I and II; training both layers, III, is not simulated")
    default = 64  # d^2 = 4096 samples are a kernel's matrix of 134 MB
    chosen, d = seeds_of(seeds), default if dimension is None else int(dimension)
    line = np.atleast_1d(theory.complete(theory.given({**numbers, "kappa": kappa}))["kappa"])
    width = round(d**float(theory.epsilon1))
    if d < 4 or groups < 1 or groups*width > d:
        raise BadInput(f"tree: {groups} groups of {width} directions do not fit into dimension {d}")
    most_samples = 40_000  # of which second moments are formed
    if (most := d**float(line.max())) > most_samples:
        raise BadInput(f"tree: kappa = {line.max():g} at d = {d} asks for {most:.3g} samples; {most_samples} is the most")

    def run(seed: int) -> dict[str, list[float]]:
        streams = [np.random.default_rng([seed, i]) for i in range(len(line))]
        return {"test_error": [_error(theory, d, round(d**k), groups, width, k, rng) for k, rng in zip(line, streams, strict=True)]}

    values, errors = over_seeds(run, chosen, progress)
    return Curve(theory.name, {**theory.described({}), "dimension": d, "groups": groups}, line, values,
                 standard_error=errors, seeds=chosen, axis="kappa", ratio=theory.ratio, sources=theory.sources)


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


def _error(theory: Any, d: int, n: int, groups: int, width: int, kappa: float, rng: np.random.Generator) -> float:
    target = labels(theory, groups, width)
    tested = 2000  # samples: their error is 1/45 of the spread of a loss
    x, t = rng.standard_normal((n, d)), rng.standard_normal((tested, d))
    y, clean = target(x), target(t)
    fitted_on = 3000  # samples of the kernel ridge regression: a matrix of 72 MB
    if theory.scenario == "II" and kappa >= float(theory.thresholds["kappa_1"]):
        centred = y - y.mean()
        size, vectors = np.linalg.eigh((x*centred[:, None]).T @ x/n - centred.mean()*np.eye(d))
        frame = vectors[:, np.argsort(-np.abs(size))[:groups*width]]
        x = rng.standard_normal((min(n, fitted_on), d))
        y = target(x)
        x, t = x @ frame, t @ frame
    else:
        x, y = x[:fitted_on], y[:fitted_on]
    f = _kernel_ridge(x, y, t)
    return float(np.mean((clean - f)**2))


def _kernel_ridge(x: Array, y: Array, t: Array) -> Array:
    """Ridge regression with exp(<x, x'>/d), a constant taken out first; of a few ridges the one that a fifth of x likes best."""
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
