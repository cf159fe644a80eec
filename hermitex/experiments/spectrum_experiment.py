"""Eigenvalues of Phi^T Phi of spiked random features at finite size, over the seeds: the histogram to compare with `spectrum`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.feature_training import spiked
from hermitex.experiments.statistics import mean_and_error, seeds_of, size_of
from hermitex.symbols import z

Array = np.ndarray


def simulate(law: Any, *, dimension: float = 400, seeds: int | Iterable[int] = 8) -> dict[str, Any]:
    """Eigenvalues of the features of a `Spectrum` at finite d, and their first moment and mass below the median against the law's.

    Parameters
    ----------
    law : what ``spectrum(sigma, r=, c=, alpha=, beta=)`` gives; dimension : d; seeds : how many, or which

    Returns
    -------
    {dimension, seeds, eigenvalues (seeds, p), largest, below, standard_error}: `largest` the mean largest eigenvalue, `below` the
    mean share of eigenvalues below the median of the law's bulk (`median`, `expected`); `outliers` the mean
    largest eigenvalues, as many as the law has outliers at its own dimension.

    Examples
    --------
    >>> from hermitex.theories import spectrum
    >>> found = simulate(spectrum("tanh", r=1, alpha=2, beta=1), dimension=100, seeds=2)
    >>> found["eigenvalues"].shape, bool(abs(found["below"] - found["expected"]) < 0.05)
    ((2, 100), True)
    """
    from hermitex.kernels.compile import compile

    chosen, d = seeds_of(seeds), size_of("spectrum", dimension)
    n, p = round(law.alpha*d), round(law.beta*d)
    largest = 3000  # features: a matrix of 72 MB
    if min(d, n, p) < 2 or p > largest or n > 10*largest:
        raise BadInput(f"spectrum: d = {d} gives {n} samples and {p} features; p is between 2 and {largest} in an experiment")
    sigma = compile(law.sigma(z))
    median, expected = _median(law)

    def values_of(u: Array) -> Array:
        return np.array(np.broadcast_to(sigma(z=u), u.shape), dtype=float)

    rows, measured = [], []
    for seed in chosen:
        rng = np.random.default_rng(seed)
        features = spiked(values_of, d=d, p=p, r=law.r, c=law.c, gamma=0.0, rng=rng, kind=law.rows, letters=law.letters.u,
                          fractions=law.fractions, norms=law.letters.c, biases=law.letters.b)
        phi = features(rng.standard_normal((n, d)))  # already over sqrt(p)
        values = np.linalg.svd(phi, compute_uv=False)**2
        values = np.append(values, np.zeros(p - values.size))*(1.0 if law.normalisation == "p" else p/n)
        rows.append(values)
        measured.append([values.max(), np.mean(values < median), *np.sort(values)[::-1][:len(law.outliers)]])
    mean, error = mean_and_error(measured)
    top = {"outliers": [float(v) for v in mean[2:]]} if law.outliers else {}
    off = {"outliers": [float(v) for v in error[2:]]} if law.outliers else {}
    return {"dimension": d, "seeds": list(chosen), "eigenvalues": np.array(rows), "largest": float(mean[0]),
            "below": float(mean[1]), "median": median, "expected": expected,
            **top,
            "standard_error": {"largest": float(error[0]), "below": float(error[1]), **off}}


def _median(law: Any) -> tuple[float, float]:
    """The median of the bulk, and the law's share below it, zeros counted."""
    order = np.argsort(law.x)
    x, density = law.x[order], law.density[order]
    if x.size < 2:
        return 0.0, law.mass_at_zero
    mass = np.concatenate([[0.0], np.cumsum(np.diff(x)*(density[1:] + density[:-1])/2)])
    at = float(np.interp(mass[-1]/2, mass, x))
    return at, law.mass_at_zero + (1 - law.mass_at_zero)/2
