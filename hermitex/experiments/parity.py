r"""2-parity of anisotropic signs by a two-layer network under noisy gradient descent: the trend in d and alpha, not exponents.

x_i = +-1 for i > k, +-d^(alpha/2) for the k relevant ones, inputs divided by sqrt(tr Sigma); y = the product of k signs. A network
of N tanh neurons with bounded readout, f = (gain/N) sum tanh(a_j) tanh(w_j.x + b_j), is trained on n samples by full-batch Langevin
steps on w, b and a: logistic loss, weight decay, noise of temperature T. At N = 400 and these times nothing exponential in d can be
seen: what can be is that the same n suffices for larger d when alpha grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import over_seeds, seeds_of, size_of
from hermitex.theories.curve import Curve

Array = np.ndarray
_TEST, _GAIN = 1000, 20.0


def simulate(theory: Any, alpha: Any, *, dimension: float | None = None, samples: int = 200, neurons: int = 400, steps: int = 800,
             rate: float = 1.0, temperature: float = 1e-6, seeds: int | Iterable[int] = 4,
             progress: Callable[[int, int], None] | None = None) -> Curve:
    """The test error of the sign after training, along alpha -> Curve with standard errors over seeds.

    Parameters
    ----------
    theory : ``mean_field_parity(k)``; alpha : numbers between 0 and 1
    dimension (default: 20), samples, neurons, steps, rate, temperature : d, n, N, and of the training
    """
    chosen, line = seeds_of(seeds), np.atleast_1d(np.asarray(alpha, dtype=float))
    dimension = 20 if dimension is None else size_of("mean-field-parity", dimension)
    if dimension < theory.k or min(samples, neurons, steps) < 1 or not np.all((line >= 0) & (line <= 1)):
        raise BadInput(f"mean-field-parity: dimension is at least k = {theory.k}, the other sizes positive, alpha between 0 and 1")

    def run(seed: int) -> dict[str, list[float]]:
        return {"test_error": [_error(theory.k, dimension, a, samples, neurons, steps, rate, temperature, seed) for a in line]}

    values, errors = over_seeds(run, chosen, progress)
    fixed = {"k": theory.k, "dimension": dimension, "samples": samples, "neurons": neurons, "steps": steps, "rate": rate,
             "temperature": temperature, "status": "a trend at small size, not the exponents"}
    return Curve("mean-field-parity", fixed, line, values, standard_error=errors, seeds=chosen,
                 ratio=theory.ratio, sources=("nitanda2024",))


def _error(k: int, d: int, alpha: float, n: int, N: int, steps: int, rate: float, temperature: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    scale = np.ones(d)
    scale[:k] = d**(alpha/2)
    scale /= np.sqrt(np.sum(scale**2))

    def drawn(size: int) -> tuple[Array, Array]:
        signs = rng.choice([-1.0, 1.0], size=(size, d))
        return np.column_stack([signs*scale, np.ones(size)/np.sqrt(2)]), np.prod(signs[:, :k], axis=1)

    x, y = drawn(n)
    w, a = rng.standard_normal((N, d + 1)), rng.standard_normal(N)
    for _ in range(steps):
        hidden = np.tanh(x @ w.T)
        f = hidden @ np.tanh(a)/N*_GAIN
        pull = -y/(1 + np.exp(y*f))/n*_GAIN
        bounded = np.tanh(a)
        grad_w = ((pull[:, None]*(1 - hidden**2)).T @ x)*bounded[:, None]
        grad_a = (hidden.T @ pull)*(1 - bounded**2)
        noise = np.sqrt(2*rate*temperature)
        w += -rate*(grad_w + 1e-4*w) + noise*rng.standard_normal(w.shape)
        a += -rate*(grad_a + 1e-4*a) + noise*rng.standard_normal(N)
    test, label = drawn(_TEST)
    return float(np.mean(np.sign(np.tanh(test @ w.T) @ np.tanh(a)) != label))

