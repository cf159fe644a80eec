r"""w <- w - h (1 - w w^T) eta P mean[(f - y) df/dw]: a neuron on the sphere against its flow, x of covariance 1 + theta mu mu^T.

f = sigma(<w, x>) or sigma(<w, x>/|Sigma^(1/2) w|), y = g(<beta, x>/sqrt(kappa)), every sample new; eta = |Sigma^(1/2) w|^2 and
P = Sigma^(-1) where the flow has them, with the true Sigma. A step is that of the midpoint
rule, h a fifth of the fastest time of the flow, each of its two gradients the mean over a batch: the gradient flow, up to the
noise of the batches. The measured cosine and error are exact functions of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.sgd_experiment import _function
from hermitex.experiments.statistics import columns, measured_curve, seeds_of, size_of
from hermitex.theories.curve import Curve

Array = np.ndarray


def simulate(theory: Any, t: Any, *, dimension: float | None = None, seeds: int | Iterable[int] = 8, batch: int | None = None,
             start: Mapping[str, Any] | None = None, progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Gradient descent on fresh batches at finite size -> Curve of test_error, omega and cosine, standard errors over seeds.

    Parameters
    ----------
    theory : ``spiked_covariance(g, sigma, flow=)``; t : increasing times, from 0 on
    dimension : d; seeds : how many, or which; batch : samples of a gradient (default: 40 d, or fewer where that is long)
    start : {"omega": number} instead of m0; numbers : gamma_1, gamma_2, m0 and a0, as of the theory

    Examples
    --------
    >>> from hermitex.theories import spiked_covariance
    >>> float(simulate(spiked_covariance("He2"), [0, 0.1], dimension=20, gamma_2=0.3, seeds=2)["omega"][0].round(6))
    0.223607
    """
    from hermitex.kernels.compile import compile

    chosen = seeds_of(seeds)
    first = {letter: start[n] for n, letter in (("omega", "m0"), ("a", "a0")) if start and n in start}
    given = theory.complete(theory.given({**numbers, **first, "dimension": dimension}))
    at = theory.single(given, *given)
    d = size_of(theory.name, at["dimension"])
    line, theta = theory.times(t), at["dimension"]**at["gamma_2"]
    counts = _steps(theory, line, theta, at)
    most_drawn = 500_000_000  # numbers drawn for a seed
    most = most_drawn//(2*max(sum(counts), 1)*d)
    per_dimension = 40  # samples of a gradient over d
    many = min(per_dimension*d, most) if batch is None else batch
    if not (d if batch is None else 1) <= many <= most:
        raise BadInput(f"spiked-covariance: {sum(counts)} steps in d = {d} are too many for an experiment with batches of "
                       f"{d if batch is None else batch} samples, or none fit; take a shorter time or a smaller dimension")
    partial = at["gamma_1"] != 0
    along = d**-at["gamma_1"] if partial else 1.0  # <mu, beta>
    across, place = np.sqrt(1 - along**2), 1 if partial else 0  # mu is the first axis, beta is in the plane of the first two
    names = ("test_error", "cosine", "omega", *(("a",) if partial else ()))
    measure = {o.name: compile(e) for o, e in theory.flow(partial=partial).observables.items()}
    sigma, slope, g = (_function(f.expr) for f in (theory.student, theory.student.weak_derivative, theory.g))
    normalised, root, kappa = theory.kind != "spherical", np.sqrt(1 + theta), 1 + theta*along**2

    def gradient(w: Array, rng: np.random.Generator) -> Array:
        """-(1 - w w^T) eta P mean[(f - y) df/dw]."""
        x = rng.standard_normal((many, d))
        x[:, 0] *= root
        y = g((along*x[:, 0] + across*x[:, place])/np.sqrt(kappa))
        s = np.sqrt(1 + theta*w[0]**2) if normalised else 1.0
        u = x @ w/s
        pull = (sigma(u) - y)*slope(u)/s
        down = pull @ x/many
        if normalised:  # the scale s moves with w, too
            spread = w.copy()
            spread[0] *= 1 + theta
            down -= np.mean(pull*u)*spread/s
        if theory.kind in ("rescaled", "preconditioned"):
            down *= s**2
        if theory.kind == "preconditioned":
            down[0] /= 1 + theta
        return np.asarray(w*(w @ down) - down)

    def run(seed: int) -> dict[str, Array]:
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        w = rng.standard_normal(d)
        first = [at["m0"], *((at["a0"] - along*at["m0"])/across for _ in range(place))]
        w[:place + 1] = 0
        w *= np.sqrt(1 - np.dot(first, first))/np.linalg.norm(w)
        w[:place + 1], now, found = first, 0.0, []
        for time, count in zip(line, counts, strict=True):
            for _ in range(count):
                h = (time - now)/count
                middle = w + h/2*gradient(w, rng)
                w = w + h*gradient(middle/np.linalg.norm(middle), rng)
                w /= np.linalg.norm(w)
            now = time
            seen = {"omega": float(w[0]), "theta": theta}
            if partial:
                seen |= {"a": float(along*w[0] + across*w[1]), "rho": along}
            found.append(tuple(seen[n] if n in seen else float(measure[n](**seen)) for n in names))
        return columns(names, found)

    return measured_curve(theory, at, line, run, chosen, progress, names[1:], title=f"experiment, d = {d}", dimension=d, batch=many)


def _steps(theory: Any, line: Array, theta: float, at: Mapping[str, float]) -> list[int]:
    """How many steps lead to each time: none is longer than a fifth of the fastest time of the flow on its way."""
    from hermitex.kernels.compile import compile

    partial, near = at["gamma_1"] != 0, 1e-6
    spike = {"theta": theta, **({"rho": at["dimension"]**-at["gamma_1"]} if partial else {})}
    flow = theory.flow(partial=partial)
    way = theory.solve(t=np.linspace(0, max(line[-1], near), 200), raise_on_failure=False, **at)
    names = [str(n) for n in flow.equations]
    path = {n: np.clip(np.outer([0.5, 1, 1.5], way[n]).ravel(), near - 1, 1 - near) for n in names}
    fastest = 0.0
    for n, rate in zip(names, flow.equations.values(), strict=True):
        speed = compile(rate)
        above, below = (np.asarray(speed(**{**path, n: path[n] + side*near/2}, **spike)) for side in (1, -1))
        fastest = max(fastest, float(np.max(np.abs(above - below)/near)))
    fine = 0.2  # part of the fastest time of the flow that a step may take
    return [int(np.ceil(dt*fastest/fine)) for dt in np.diff(line, prepend=0.0)]
