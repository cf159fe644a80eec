"""theory(n) against samples: ridge regression with the kernel itself, or with random features of it, on fresh data in d dimensions.

The matrix of the kernel comes from its closed form where there is one, the spectrum of the theory from its series: two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of
from hermitex.symbols import z
from hermitex.theories.curve import Curve
from hermitex.theories.kernels.inner import require_whole

Array = np.ndarray
_NAMES = ("test_error", "train_error", "bias", "variance")


def simulate(theory: Any, n: Any, *, dimension: float | None = None, seeds: int | Iterable[int] = 16, test: int = 2000,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Kernel ridge regression on n samples in d dimensions -> Curve along n, standard errors over seeds.

    Parameters
    ----------
    theory : ``kernel_ridge(sigma, g, ...)``; n : numbers of samples, whole
    dimension : d; seeds : how many, or which; test : fresh samples of a seed
    numbers : those of ``theory.curve``: lam, noise, p

    Returns
    -------
    Curve : test_error, train_error, and its two parts: bias (of the fit to clean labels) and variance (of that to the noise)

    Raises
    ------
    BadInput : as `theory.curve`; n, p or test that is not a whole number of 1 or more; too large matrices.

    Examples
    --------
    >>> from hermitex.theories import kernel_ridge
    >>> simulate(kernel_ridge("relu", "z"), [20, 40], dimension=30, lam=0.1, seeds=2).seeds
    (0, 1)
    """
    from hermitex.kernels.compile import compile

    chosen = seeds_of(seeds)
    at = theory.complete(theory.given({**numbers, "n": n, "dimension": dimension}))
    fixed = theory.single(at, "dimension", "p", "lam", "noise")
    d, lam, p = round(fixed["dimension"]), fixed["lam"], fixed["p"]
    sizes = [require_whole("kernel-ridge: in an experiment n", float(np.rint(v)), 1) for v in np.atleast_1d(at["n"])]
    width = 0 if p == np.inf else require_whole("kernel-ridge: in an experiment p", p, 1)
    most = max(sizes)*max(*sizes, require_whole("kernel-ridge: test", test, 1), width)
    largest = 40_000_000  # numbers in the largest matrix
    if most > largest:
        raise BadInput(f"kernel-ridge: n = {max(sizes)} makes matrices of {most:.1e} numbers; give fewer samples")
    theory.spectrum(d)  # refuses a dimension in words
    g = compile(theory.g(z))

    def drawn(rng: np.random.Generator, many: int) -> tuple[Array, Array]:
        x = rng.standard_normal((many, d))
        if theory.data == "sphere":
            x *= np.sqrt(d)/np.linalg.norm(x, axis=1)[:, None]
        return x, np.broadcast_to(np.asarray(g(z=x[:, 0]), dtype=float), (many,))

    def measured(rng: np.random.Generator, size: int) -> tuple[float, ...]:
        x, clean = drawn(rng, size)
        fresh, goal = drawn(rng, test)
        labels = np.stack([clean, np.sqrt(fixed["noise"])*rng.standard_normal(size)], axis=1)
        if p == np.inf:
            weights = _solved(theory.kernel.gram(x) + lam*np.eye(size), labels)
            left, f = lam*weights, theory.kernel.gram(fresh, x) @ weights
        else:
            phi = theory.kernel.features(np.concatenate([x, fresh]), width, rng)
            here, there = phi[:size], phi[size:]
            weights = _ridge(here, labels, lam)
            left, f = labels - here @ weights, there @ weights
        return (float(np.mean((goal - f.sum(axis=1))**2)), float(np.mean(left.sum(axis=1)**2)),
                float(np.mean((goal - f[:, 0])**2)), float(np.mean(f[:, 1]**2)))

    run = along(_NAMES, sizes, measured)
    return measured_curve(theory, fixed, np.array(sizes, dtype=float), run, chosen, progress, dimension=d)


def _solved(matrix: Array, labels: Array) -> Array:
    from scipy.linalg import LinAlgError, solve

    try:
        return np.asarray(solve(matrix, labels, assume_a="pos", overwrite_a=True, check_finite=False))
    except LinAlgError:
        raise BadInput("kernel-ridge: the kernel's matrix is singular: its rank is below n, or lam is below its rounding; "
                       "take a larger lam") from None


def _ridge(phi: Array, labels: Array, lam: float) -> Array:
    """argmin |labels - phi a|^2 + lam |a|^2 from the smaller Gram matrix; lam = 0: the least norm."""
    if lam == 0:
        return np.asarray(np.linalg.lstsq(phi, labels, rcond=None)[0])
    n, p = phi.shape
    if p <= n:
        return _solved(phi.T @ phi + lam*np.eye(p), phi.T @ labels)
    return phi.T @ _solved(phi @ phi.T + lam*np.eye(n), labels)
