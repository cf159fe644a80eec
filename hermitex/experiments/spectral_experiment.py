r"""D = (1/n) sum_i T(y_i) x_i x_i^T at finite d: its top eigenvector against the theory of its overlap.

Over several directions D is one matrix for each common eigenvector of the S(y), or where these share one overlap the matrix
(1/n) sum_i x_i x_i^T (x) S(y_i) of d r x d r. Measured of the direction that is found best: its squared overlap, the eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.linalg import eigh

from hermitex.errors import BadInput
from hermitex.experiments.amp import labels_at
from hermitex.experiments.statistics import columns, measured_curve, seeds_of, size_of
from hermitex.exponents.channels import Channel
from hermitex.exponents.label_formula import Y
from hermitex.exponents.laws.density import array_function
from hermitex.symbols import normals
from hermitex.theories.curve import Curve

Array = np.ndarray
_NAMES = ("squared_overlap", "eigenvalue")


def simulate(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Spectral estimators on data of finite size -> Curve along alpha, standard errors over the seeds.

    Parameters
    ----------
    theory : ``spectral(g, channel)``; alpha : numbers n/d, one list
    dimension : d (default 500); seeds : how many, or which

    Next to the threshold the overlap is biased upwards by the fluctuations of the bulk: at d = 500 by .04 where R = .14.

    Examples
    --------
    >>> from hermitex.theories import spectral
    >>> simulate(spectral("abs(z)"), [3.0], dimension=40, seeds=2).seeds
    (0, 1)
    """
    line = np.atleast_1d(theory.complete(theory.given({"alpha": alpha, **numbers}))["alpha"])
    d = size_of(theory.name, 500.0 if dimension is None else dimension)
    if isinstance(theory.law, Channel):
        raise BadInput("spectral: labels of a channel P(y|z) without a name are not drawn; use a named channel of g(z)")
    names = normals(theory.g)
    many = np.rint(line*d).astype(int)
    if many.min() < 1 or d <= len(names):
        raise BadInput(f"spectral: at d = {d} there would be no samples; take a larger dimension")
    chosen = seeds_of(seeds)
    best = theory.map.squared_overlap(line).reshape(len(line), -1).argmax(axis=1) if theory.T is None else np.zeros(len(line), int)

    def run(seed: int) -> dict[str, Array]:
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        X = rng.standard_normal((int(many.max()), d))
        y = labels_at(theory.g, theory.law, names, X[:, :len(names)], rng)
        if theory.law.name == "random_sign":
            y = y*rng.choice([-1.0, 1.0], len(y))
        weights, truths = _weights(theory, y, d)
        return columns(_NAMES, [_top(X[:n], weights[k][:n], truths[k]) for n, k in zip(many, best, strict=True)])

    return measured_curve(theory, {}, line, run, chosen, progress, _NAMES, title=f"experiment, d = {d}", dimension=d)


def _weights(theory: Any, y: Array, d: int) -> tuple[list[Array], list[Array]]:
    """(T(y_i) of each matrix, the direction that its eigenvector finds)."""
    r, unit = len(theory.map.variables), np.eye(d)
    if theory.T is not None:
        return [np.broadcast_to(array_function(theory.T, Y)(y), y.shape)], [unit[0]]
    T = theory.map(y).reshape(len(y), r, r)
    rows = theory.map.directions
    if theory.map.shared:
        inside = theory.map.basis
        whole = np.einsum("ai,nij,bj->nab", inside, T, inside)
        return [whole]*len(rows), [(inside @ unit[:r]).T.ravel()/np.sqrt(len(inside))]*len(rows)
    return [np.einsum("i,nij,j->n", row, T, row) for row in rows], [row @ unit[:r] for row in rows]


def _top(X: Array, s: Array, truth: Array) -> tuple[float, float]:
    """(squared overlap with the truth, eigenvalue) of the top eigenvector."""
    n = len(X)
    if s.ndim == 1:
        D = X.T @ (X*s[:, None])/n
    else:
        blocks = [[X.T @ (X*s[:, i, j, None])/n for j in range(s.shape[1])] for i in range(s.shape[1])]
        D = np.array(blocks).transpose(2, 0, 3, 1).reshape(len(truth), len(truth))
    (value,), vectors = eigh(D, subset_by_index=[len(D) - 1, len(D) - 1])
    return float((vectors[:, 0] @ truth)**2), float(value)
