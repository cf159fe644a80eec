"""theory(alpha) against d = 600: a readout trained on the features of an untrained layer, and tested on fresh samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments import one_step_experiment as experiment
from hermitex.experiments.sgd_experiment import _function
from hermitex.experiments.statistics import along, measured_curve, seeds_of, size_of
from hermitex.experiments.training import convex_loss, minimise
from hermitex.theories import one_step
from hermitex.theories.convex import ConvexOneStep
from hermitex.theories.curve import Curve

# the letters of the one-step experiment in those of random features
_LETTERS = {"q1": "qs", "q2": "qw", "psi": "ms"}


def simulate(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Train and test random features at finite size -> Curve with standard errors over the seeds.

    Parameters
    ----------
    theory : ``random_features(sigma, g, loss=...)``
    alpha : numbers n/p, one list; d = gamma p, n = round(alpha p)
    dimension : d (default: the largest of 200, ..., 1000 that costs about a minute for all seeds)
    seeds : how many (0, 1, ...), or which
    progress : called with (seeds done, seeds in all)
    numbers : those of ``theory.curve``: gamma, lam, Delta; and test, the fresh samples of a seed

    Returns
    -------
    Curve : test_error, train_error and other losses as the theory has them, the measured qs, qw and ms; `standard_error` of each.

    Raises
    ------
    BadInput : what `theory.curve` refuses; fewer than one sample or neuron.

    Examples
    --------
    >>> from hermitex.theories import random_features
    >>> simulate(random_features("erf", "sin"), [1, 2], gamma=0.5, lam=0.1, dimension=40, seeds=2).seeds
    (0, 1)
    """
    if (asked := numbers.pop("model", None)) not in (None, "features"):
        raise BadInput(f"{theory.name}: an experiment trains features, not {asked!r}")
    if theory.mixed:
        return _clusters(theory, alpha, dimension, seeds, progress, **numbers)
    own = {k: numbers.pop(k) for k in ("test",) if k in numbers}
    at = theory.complete(theory.given({**numbers, "alpha": alpha}))
    gamma = float(at["gamma"])
    rest = {k: v for k, v in at.items() if k not in ("alpha", "gamma")}
    plain = one_step(theory.sigma, theory.g) if theory.square else ConvexOneStep(theory.sigma, theory.g, theory.loss, theory.drawn)
    found = experiment.simulate(plain, np.atleast_1d(at["alpha"])/gamma, dimension=dimension, seeds=seeds, progress=progress,
                                beta=1/gamma, r=0, c=1, gamma=0, **own, **rest)
    scale = 0.5 if theory.square else 1.0  # the square loss is (y - f)^2 there, (y - f)^2/2 here

    def renamed(columns: Any) -> dict[str, Any]:
        shown = {k: v*scale if k == "train_error" else v for k, v in columns.items()}
        return {_LETTERS.get(k, k): v for k, v in shown.items() if k in (*theory.errors, *_LETTERS)}

    fixed = {k: float(v) for k, v in at.items() if np.ndim(v) == 0}
    values, errors = renamed(found.values), renamed(found.standard_error)
    return replace(found, theory=theory.name, parameters={**theory.described(fixed), "dimension": found.parameters["dimension"]},
                   alpha=np.atleast_1d(at["alpha"]), values=values, standard_error=errors, ratio=theory.ratio,
                   order_parameters=tuple(n for n in values if n not in theory.errors), sources=theory.sources)


def _clusters(theory: Any, alpha: Any, dimension: Any, seeds: int | Iterable[int], progress: Callable[[int, int], None] | None,
              test: int = 4000, **numbers: Any) -> Curve:
    """Two clusters through the features themselves: x = y v/sqrt(d) + sqrt(Delta) z, no intercept but what the features carry."""
    # 4000 samples: errors are known to 0.8 %.
    default = 300  # d of a mixture
    chosen, d = seeds_of(seeds), default if dimension is None else size_of(theory.name, dimension)
    at = theory.complete(theory.given({**numbers, "alpha": alpha}))
    line, one = np.atleast_1d(at["alpha"]), theory.single(at, *(n for n in at if n != "alpha"))
    p = round(d/one["gamma"])
    largest = 20_000_000  # numbers in the largest matrix
    if min(d, p, test, round(min(line)*p)) < 1 or max(round(max(line)*p), test)*max(p, d) > largest:
        raise BadInput(f"{theory.name}: d = {d}, p = {p} and n = {round(max(line)*p)} are too few or too many for an experiment")
    sigma, loss = _function(theory.sigma.expr), convex_loss(theory.loss.expr)

    def drawn(rng: np.random.Generator, W: np.ndarray, many: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.where(rng.random(many) < one["fraction"], 1.0, -1.0)
        x = np.sqrt(one["Delta"])*rng.standard_normal((many, d))
        x[:, 0] += np.sqrt(one["rho"])*y
        return y, sigma(x @ W.T/np.sqrt(d))/np.sqrt(p)

    def measured(rng: np.random.Generator, n: int) -> tuple[float, ...]:
        W = rng.standard_normal((p, d))
        y, phi = drawn(rng, W, n)
        w, train = minimise(phi, y, loss, one["lam"])
        goal, fresh = drawn(rng, W, test)
        s = W.T @ w/np.sqrt(p)
        return (float(np.mean(goal*(fresh @ w) <= 0)), float(train), float(train + one["lam"]*(w @ w)/(2*n)), float(s @ s)/d,
                float(w @ w)/p, float(s[0]*np.sqrt(one["rho"]*d))/d)

    names = ("test_error", "train_error", "train_objective", "qs", "qw", "ms")
    run = along(names, (max(1, round(a*p)) for a in line), measured)
    return measured_curve(theory, one, line, run, chosen, progress, names[3:], dimension=d)
