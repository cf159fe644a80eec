r"""w <- w + u d^((l-1)/2) (1/n) sum_mu y_mu sigma'(w.x_mu) x_mu on n = samples d^l examples: neurons of a finite network.

Every neuron starts uniformly on the unit sphere and takes its step with the labels alone, less the target's mean (the network's own
output is small at the start). Measured: the norm of its projection on V_l over its own norm, averaged over neurons; the standard
error is over seeds, since the neurons of one seed see the same examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of
from hermitex.symbols import z
from hermitex.theories.curve import Curve

Array = np.ndarray


def simulate(theory: Any, samples: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 8, neurons: int = 200,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """One giant step at finite size -> Curve of the mean |cos| along samples = n/d^l, standard errors over seeds.

    Parameters
    ----------
    theory : ``giant_step(sigma, g)``; samples : n/d^l, one list
    dimension : d (default 64); seeds : how many, or which; neurons : of each seed
    numbers : u, Delta
    """
    default = 64  # n = samples d^l is 260,000 at l = 3
    chosen, d = seeds_of(seeds), default if dimension is None else int(dimension)
    given = theory.complete(theory.given({**numbers, "samples": samples}))
    line, step, Delta = np.atleast_1d(given["samples"]), float(given["u"]), float(given["Delta"])
    if d <= len(theory.variables) or neurons < 1:
        raise BadInput(f"giant-step: {neurons} neurons in dimension {d} cannot show {len(theory.variables)} directions")
    most = 2_000_000  # samples of one step; chosen by trial
    if not ((least := float(line.min())*d**theory.order) >= 1 and float(line.max())*d**theory.order <= most):
        raise BadInput(f"giant-step: n = samples d^{theory.order} must be between 1 and {most}, not at "
                       f"{least:g} to {float(line.max())*d**theory.order:g}; change samples or dimension")

    def measured(rng: np.random.Generator, s: float) -> tuple[float]:
        return (float(cosines(theory, d, round(s*d**theory.order), step, Delta, neurons, rng).mean()),)

    fixed, run = {"u": step, "Delta": Delta}, along(("cosine",), line, measured, apart=True)
    return measured_curve(theory, fixed, line, run, chosen, progress, ("cosine",), dimension=d, neurons=neurons)


def cosines(theory: Any, d: int, n: int, step: float, Delta: float, neurons: int, rng: np.random.Generator) -> Array:
    """|P_V w|/|w| of each neuron after the step; the target's variables are the first coordinates."""
    from hermitex.kernels.compile import compile
    from hermitex.symbolic.subspaces import orthonormal

    slope, g = compile(theory.sigma.weak_derivative.expr), compile(theory.centred)
    w = rng.standard_normal((neurons, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    gradient, left = np.zeros((neurons, d)), n
    most_at_once = 4096  # samples at once: their pre-activations stay in the cache
    while left:
        size = min(left, most_at_once)
        left -= size
        x = rng.standard_normal((size, d))
        y = g(**{v.name: x[:, i] for i, v in enumerate(theory.variables)}) + np.sqrt(Delta)*rng.standard_normal(size)
        field = x @ w.T
        gradient += (np.broadcast_to(slope(**{z.name: field}), field.shape)*y[:, None]).T @ x
    w = w + step*d**((theory.order - 1)/2)*gradient/n
    frame = np.array(orthonormal(theory.directions).tolist(), dtype=float)
    found: Array = np.linalg.norm(w[:, :frame.shape[1]] @ frame.T, axis=1)/np.linalg.norm(w, axis=1)
    return found
