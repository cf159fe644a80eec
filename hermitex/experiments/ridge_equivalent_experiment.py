"""theory(n) against samples: ridge regression on Gaussian features with the eigenvalues of the theory, psi_k(x) = xi_k ~ N(0, 1).

f = <theta, sqrt(eta) xi> at p = oo; p random features are phi_j = sum_k G_jk sqrt(eta_k) xi_k + sqrt(tail) Z, G and Z standard
normal. The test error is that of the weights found, exactly: no fresh samples are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of
from hermitex.theories.curve import Curve
from hermitex.theories.ridge_equivalent import ridge_equivalent

Array = np.ndarray
ARRAYS = ridge_equivalent().arrays
_NAMES = ("test_error", "train_error", "bias", "variance")


def simulate(theory: Any, n: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Ridge regression at finite n, on features that have the spectrum itself -> Curve along n, standard errors over seeds.

    Parameters
    ----------
    theory : ``ridge_equivalent()``, or ``source_capacity(...)``, whose spectrum is cut as its curve's
    n : numbers of samples, rounded
    dimension : nothing here: the modes are those of the spectrum
    seeds : how many, or which
    numbers : those of ``theory.curve``: p, lam, noise, tail, eigenvalues, coefficients, multiplicity

    Returns
    -------
    Curve : test_error, train_error, and its two parts: bias (of the fit to clean labels) and variance (of that to the noise)

    Raises
    ------
    BadInput : what `theory.curve` refuses; fewer than one sample; matrices of more than 30 million numbers.

    Examples
    --------
    >>> from hermitex.theories import ridge_equivalent
    >>> simulate(ridge_equivalent(), [5, 10], lam=0.1, eigenvalues=[1, 0.5], coefficients=[1, 1], seeds=2).seeds
    (0, 1)
    """
    if dimension is not None:
        raise BadInput("ridge: the experiment's size is that of the spectrum, its modes and its tail; leave dimension out")
    chosen = seeds_of(seeds)
    line = theory.given({**numbers, "n": n})["n"]
    sizes = [_whole("n", v) for v in np.atleast_1d(line)]
    at = theory.complete(theory.given({**numbers, "n": np.array(sizes, dtype=float)}))
    own = theory.single(at, *(name for name in theory.letters() if name not in ("n", *ARRAYS)))
    points = [{name: float(np.broadcast_to(at[name], (len(sizes),))[i]) for name in ("p", "lam", "noise", "tail")}
              for i in range(len(sizes))]
    eta, beta, g = (at[name] for name in ARRAYS)
    g = np.where(eta > 0, g, 1)
    if np.any(g != np.rint(g)):
        raise BadInput("ridge: the experiment needs whole multiplicities")
    rest = float((beta[eta == 0]**2).sum())
    widths = [point["p"] if point["p"] == np.inf else _whole("p", point["p"]) for point in points]
    g, modes = g[eta > 0], float(g[eta > 0].sum())
    finite = max((w for w in widths if w < np.inf), default=0)
    largest = 30_000_000  # numbers in the largest matrix
    if (most := max(modes, finite)*max(*sizes, finite)) > largest:
        raise BadInput(f"ridge: {modes:g} modes and n = {max(sizes)} make matrices of {most:.1e} numbers; give fewer modes, and "
                       "the sum of the others as tail=")
    many = g.astype(int)
    values, target = np.repeat(eta[eta > 0], many), np.zeros(int(modes))
    target[np.cumsum(many) - many] = beta[eta > 0]  # in an eigenspace any direction is as good

    run = along(_NAMES, zip(sizes, widths, points, strict=True), lambda rng, at: _measured(rng, at, values, target, rest))
    return measured_curve(theory, own, np.array(sizes, dtype=float), run, chosen, progress, axis="n", dimension=values.size)


def _measured(rng: np.random.Generator, point: tuple[int, float, dict[str, float]], eta: Array, beta: Array, rest: float
              ) -> tuple[float, ...]:
    """Test error, train error, bias and variance of one fit; what it learns of clean labels and of their noise apart."""
    n, p, at = point
    xi = rng.standard_normal((n, eta.size))
    labels = np.stack([xi @ beta + np.sqrt(rest)*rng.standard_normal(n), np.sqrt(at["noise"])*rng.standard_normal(n)], axis=1)
    lam, tail = at["lam"], at["tail"]
    if p == np.inf:  # infinitely many infinitesimal modes tell samples apart, and tell nothing of fresh ones
        features, mixed = xi*np.sqrt(eta), None
        ridge, beside = lam + tail, 0.0
    else:
        mixed = rng.standard_normal((eta.size, int(p)))*np.sqrt(eta)[:, None]/np.sqrt(p)
        features = xi @ mixed + np.sqrt(tail/p)*rng.standard_normal((n, int(p)))
        ridge, beside = lam, tail/p
    weights = _fit(features, labels, ridge)
    left = (labels - features @ weights)*(lam/ridge if ridge else 1.0)
    found = np.sqrt(eta)[:, None]*weights if mixed is None else mixed @ weights

    def error(which: tuple[int, ...], goal: Any) -> float:
        f = found[:, which].sum(axis=1)
        return float(((goal - f)**2).sum() + beside*(weights[:, which].sum(axis=1)**2).sum())

    return error((0, 1), beta) + rest, float((left.sum(axis=1)**2).mean()), error((0,), beta) + rest, error((1,), 0.0)


def _fit(features: Array, labels: Array, ridge: float) -> Array:
    """argmin |labels - features theta|^2 + ridge |theta|^2, from the smaller Gram matrix; ridge = 0: the least norm."""
    if ridge == 0:
        return np.linalg.lstsq(features, labels, rcond=None)[0]
    n, m = features.shape
    if m <= n:
        return np.linalg.solve(features.T @ features + ridge*np.eye(m), features.T @ labels)
    return features.T @ np.linalg.solve(features @ features.T + ridge*np.eye(n), labels)


def _whole(name: str, value: float) -> int:
    if not np.isfinite(value) or round(value) < 1:
        raise BadInput(f"ridge: {name} = {value:g} in an experiment is 1 or more, and finite")
    return round(value)
