"""theory(alpha) against samples: a student trained on Gaussian features that have the covariances of the theory.

In the basis of Omega: v_k = sqrt(omega_k) xi_k, and nu = sum_k sqrt(signal_k/(p omega_k)) xi_k + what the student does not see.
Given its weights, (nu, f) is Gaussian with known covariance, from which the fresh samples of the test error are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of
from hermitex.experiments.training import convex_loss, minimise
from hermitex.symbols import z
from hermitex.theories.curve import Curve

Array = np.ndarray
_NAMES = ("test_error", "train_error", "q", "m")


def simulate(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 16,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Train at finite p = the size of Omega -> Curve along alpha, standard errors over seeds.

    Parameters
    ----------
    theory : ``covariate(loss, link)``, or what its ``from_features`` gives; alpha : numbers n/p
    dimension : nothing here: p is that of the covariances
    seeds : how many, or which; numbers : those of ``theory.curve``

    Returns
    -------
    Curve : mean test_error (on fresh samples of the limit's law), train_error, q and m at n/p as it was drawn.

    Raises
    ------
    BadInput : what `theory.curve` refuses; a dimension; unequal shares; matrices of more than 30 million numbers.

    Examples
    --------
    >>> from hermitex.theories import covariate
    >>> one = np.ones(20)
    >>> simulate(covariate("square"), [1, 2], lam=0.1, Omega=one, Psi=one, Phi=one, theta=one, seeds=2).seeds
    (0, 1)
    """
    from hermitex.kernels.compile import compile

    if dimension is not None:
        raise BadInput("covariate: the experiment's size is that of the covariances; leave dimension out")
    chosen = seeds_of(seeds)
    at = theory.complete(theory.given({**numbers, "alpha": alpha}))
    line = np.atleast_1d(at["alpha"])
    omega, signal, p = at["omega"], at["signal"], at["omega"].size
    if np.ptp(at["share"]) > 1e-9*at["share"].max():
        raise BadInput("covariate: the experiment needs one feature for each eigenvalue, of equal shares")
    sizes = [max(1, round(a*p)) for a in line]
    if max(sizes)*p > 30_000_000:
        raise BadInput(f"covariate: p = {p} and n = {max(sizes)} make too large a matrix; take a smaller alpha or fewer features")
    fixed = theory.single(at, "lam", "Delta")
    lam, noise, rho = fixed["lam"], fixed["Delta"], float(at["rho"])
    toward = np.sqrt(np.divide(signal, p*omega, out=np.zeros(p), where=omega > 0))
    hidden = np.sqrt(max(rho - float(toward @ toward), 0.0))
    loss, g = convex_loss(theory.loss.expr), compile(theory.g(z))

    def labels(nu: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Clean and noisy."""
        shaken = nu + np.sqrt(noise)*rng.standard_normal(nu.size)
        if theory.drawn:
            noisy = np.where(2*rng.random(nu.size) - 1 < np.asarray(g(z=shaken)), 1.0, -1.0)
            return noisy, noisy
        clean = np.broadcast_to(np.asarray(g(z=shaken if theory.binary else nu), dtype=float), nu.shape)
        return clean, clean if theory.binary else clean + (shaken - nu)

    tested = 40_000  # samples: their error is 1/200 of the spread of a loss

    def measured(rng: np.random.Generator, n: int) -> tuple[float, ...]:
        xi = rng.standard_normal((n, p))
        _, y = labels(xi @ toward + hidden*rng.standard_normal(n), rng)
        w, train = minimise(xi*np.sqrt(omega/p), y, loss, lam)
        m, q = float(w @ (np.sqrt(omega/p)*toward)), float(omega @ w**2)/p
        fresh = rng.standard_normal((2, tested))
        clean, _ = labels(np.sqrt(rho)*fresh[0], rng)
        f = m/np.sqrt(rho)*fresh[0] + np.sqrt(max(q - m**2/rho, 0.0))*fresh[1]
        error = np.mean(clean*f <= 0) if theory.binary else np.mean((clean - f)**2)
        return float(error), float(train), q, m

    run = along(_NAMES, sizes, measured)
    return measured_curve(theory, fixed, np.array(sizes)/p, run, chosen, progress, ("q", "m"), dimension=p)
