"""theory(alpha) against d = 300: a generalised linear model trained on samples, real labels or labels of +-1, with an intercept.

The test error of classification needs no fresh samples of x: given the weights the field and the output are two normals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of, size_of
from hermitex.experiments.training import convex_loss, minimise
from hermitex.symbols import z
from hermitex.theories.curve import Curve
from hermitex.theories.losses.classes import mean_label
from hermitex.theories.losses.pointwise import HALF_SQUARE

Array = np.ndarray


def simulate(theory: Any, alpha: Any, *, dimension: float | None = None, seeds: int | Iterable[int] = 16,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Train at finite d -> Curve along alpha, standard errors over seeds.

    Parameters
    ----------
    theory : ``glm(loss, labels, intercept=)``; alpha : numbers n/d; dimension : d (default: 300)
    seeds : how many, or which; numbers : those of ``theory.curve``

    Examples
    --------
    >>> from hermitex.theories import glm
    >>> simulate(glm("logistic", "mixture"), [1, 2], lam=0.1, dimension=40, seeds=2).seeds
    (0, 1)
    """
    from hermitex.kernels.compile import compile

    chosen, d = seeds_of(seeds), 300 if dimension is None else size_of("glm", dimension)
    at = theory.complete(theory.given({**numbers, "alpha": alpha}))
    line = np.atleast_1d(at["alpha"])
    one = theory.single(at, *(name for name in at if name != "alpha"))
    if d < 2 or max(line)*d*d > 30_000_000:
        raise BadInput(f"glm: d = {d} and n = {round(max(line)*d)} are too few or too many for an experiment")
    loss = convex_loss((HALF_SQUARE if theory.loss.name == "square" else theory.loss).expr)
    mean = compile(mean_label(theory.labels)(z)) if theory.labels in ("sign", "logit", "probit") else None
    mixed, rho = theory.labels == "mixture", one["rho"]

    def label(nu: Array, rng: np.random.Generator) -> Array:
        field = nu + one.get("bias", 0.0) + np.sqrt(one["Delta"])*rng.standard_normal(nu.size)
        if mean is None:
            return field
        return np.where(2*rng.random(nu.size) - 1 < np.asarray(mean(z=field)), 1.0, -1.0)

    free = 1e3  # a column this large makes an intercept whose penalty is a millionth

    tested = 40_000  # samples: their error is 1/200 of the spread of a loss

    def measured(rng: np.random.Generator, n: int) -> tuple[float, ...]:
        x = rng.standard_normal((n, d))
        star = np.zeros(d)
        star[0] = np.sqrt(rho*d)
        if mixed:
            y = np.where(rng.random(n) < one["fraction"], 1.0, -1.0)
            x = np.sqrt(one["Delta"])*x + np.outer(y, star/np.sqrt(d))
        else:
            y = label(x[:, 0]*np.sqrt(rho), rng)
        design = np.column_stack([x/np.sqrt(d), np.full((n, int(theory.intercept)), free)])
        w, train = minimise(design, y, loss, one["lam"])
        w, b = w[:d], free*float(w[d]) if theory.intercept else 0.0
        q, m = float(w @ w)/d, float(w @ star)/d
        fresh = rng.standard_normal((2, tested))
        if mixed:
            goal = np.where(rng.random(tested) < one["fraction"], 1.0, -1.0)
            f = goal*m + b + np.sqrt(one["Delta"]*q)*fresh[0]
        else:
            goal = label(np.sqrt(rho)*fresh[0], rng)
            f = m/np.sqrt(rho)*fresh[0] + np.sqrt(max(q - m*m/rho, 0.0))*fresh[1] + b
        error = float(np.mean(goal*f <= 0)) if theory.binary else rho - 2*m + q
        return (error, float(train), q, m, b)[:len(names)]

    names = ("test_error", "train_error", "q", "m", "b")[:5 if theory.intercept else 4]
    run = along(names, (max(1, round(a*d)) for a in line), measured)
    return measured_curve(theory, one, line, run, chosen, progress, names[2:], dimension=d)
