r"""2-parity of anisotropic signs by a two-layer network under noisy gradient descent: the trend in d and alpha, not exponents.

x_i = +-1 for i > k, +-d^(alpha/2) for the k relevant ones, inputs divided by sqrt(tr Sigma); y = the product of k signs. A network
of N tanh neurons with bounded readout, f = (gain/N) sum tanh(a_j) tanh(w_j.x + b_j), is trained on n samples by full-batch Langevin
steps on w, b and a: logistic loss, weight decay, noise of temperature T. At N = 200 and these times nothing exponential in d can be
seen: what can be is that n samples that suffice at d = 20 do not at larger d, and that larger alpha makes them suffice again. No
exponent is measured. In single precision: rounding is far below the noise of training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import over_seeds, seeds_of, size_of
from hermitex.theories.curve import Curve

Array = np.ndarray


def simulate(theory: Any, alpha: Any, *, dimension: float | None = None, samples: int = 200, neurons: int = 200, steps: int = 800,
             rate: float = 1.0, temperature: float = 1e-6, seeds: int | Iterable[int] = 4,
             progress: Callable[[int, int], None] | None = None) -> Curve:
    """The test error of the sign after training, along alpha -> Curve with standard errors over seeds.

    Parameters
    ----------
    theory : ``mean_field_parity(k)``; alpha : numbers between 0 and 1
    dimension : d, and the Curve has `test_error`; default: 20, 40 and 80, and it has `test_error_20`, `test_error_40`,
        `test_error_80`: the trend in d besides the trend in alpha
    samples, neurons, steps, rate, temperature : n, N, and of the training

    The `status` among its parameters says whether a trend is seen: 2-parity at d = 20 is learned at every alpha.
    """
    chosen, line = seeds_of(seeds), np.atleast_1d(np.asarray(alpha, dtype=float))
    dimensions = (20, 40, 80)  # where 200 samples of isotropic 2-parity suffice, hardly suffice, and do not
    sizes = dimensions if dimension is None else (size_of("mean-field-parity", dimension),)
    if min(sizes) < theory.k or min(samples, neurons, steps) < 1 or not np.all((line >= 0) & (line <= 1)):
        raise BadInput(f"mean-field-parity: dimension is at least k = {theory.k}, the other sizes positive, alpha between 0 and 1")
    names = {d: "test_error" if len(sizes) == 1 else f"test_error_{d}" for d in sizes}

    def run(seed: int) -> dict[str, list[float]]:
        return {name: [_error(theory.k, d, a, samples, neurons, steps, rate, temperature, seed) for a in line]
                for d, name in names.items()}

    values, errors = over_seeds(run, chosen, progress)
    fixed = {"k": theory.k, "dimension": sizes[0] if len(sizes) == 1 else ", ".join(map(str, sizes)), "samples": samples,
             "neurons": neurons, "steps": steps, "rate": rate, "temperature": temperature, "status": _seen(values, samples)}
    return Curve("mean-field-parity", fixed, line, values, standard_error=errors, seeds=chosen,
                 ratio=theory.ratio, sources=("nitanda2024",))


def _seen(values: Mapping[str, Array], samples: int) -> str:
    """What the errors show."""
    errors = np.concatenate([np.ravel(v) for v in values.values()])
    same = 0.05  # errors of signs that differ by no more show no trend
    if np.ptp(errors) > same:
        return "a trend at small size, not the exponents"
    known, size = ("are enough", "larger") if errors.mean() < 0.25 else ("are too few", "smaller")
    return f"no trend is seen: {samples} samples {known} at every alpha here; take a {size} dimension"


def _error(k: int, d: int, alpha: float, n: int, N: int, steps: int, rate: float, temperature: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    scale = np.ones(d)
    scale[:k] = d**(alpha/2)
    scale /= np.sqrt(np.sum(scale**2))

    def drawn(size: int) -> tuple[Array, Array]:
        signs = rng.choice([-1.0, 1.0], size=(size, d))
        x = np.column_stack([signs*scale, np.ones(size)/np.sqrt(2)])
        return x.astype(np.float32), np.prod(signs[:, :k], axis=1).astype(np.float32)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    x, y = drawn(n)
    w, a = normal(N, d + 1), normal(N)
    step, decay, noise = np.float32(rate), np.float32(1e-4), np.float32(np.sqrt(2*rate*temperature))
    gain = np.float32(20)  # scale of the output; chosen by trial
    for _ in range(steps):
        hidden, bounded = np.tanh(x @ w.T), np.tanh(a)
        f = hidden @ bounded*(gain/N)
        pull = -y/(1 + np.exp(y*f))*(gain/n)
        grad_w = ((pull[:, None]*(1 - hidden**2)).T @ x)*bounded[:, None]
        grad_a = (hidden.T @ pull)*(1 - bounded**2)
        w += -step*(grad_w + decay*w) + noise*normal(*w.shape)
        a += -step*(grad_a + decay*a) + noise*normal(N)
    tested = 1000  # samples: errors are known to 1.6 %
    test, label = drawn(tested)
    return float(np.mean(np.sign(np.tanh(test @ w.T) @ np.tanh(a)) != label))
