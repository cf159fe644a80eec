r"""w <- w + (eta/n) X^T r(y, X w): full-batch steps of one neuron on the same n = alpha d samples, at finite d.

|w_0| = 1 and <w_0, w*> = `start`, exactly; r = (y - sigma(h)) sigma'(h) or y sigma'(h). Measured after each step: the overlap
<w_t, w*>, the norm |w_t| and the cosine. Any number of steps; the theory knows two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import along, measured_curve, seeds_of, size_of
from hermitex.symbols import z
from hermitex.theories.curve import Curve


def simulate(theory: Any, alpha: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 8, start: float = 0.0,
             progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Steps at finite size, for several alpha -> Curve of cosine_t, overlap_t and norm_t, standard errors over seeds.

    Parameters
    ----------
    theory : ``batch_reuse(sigma, g, loss)``; alpha : n/d, one list
    dimension : d (default 1000); seeds : how many data sets, or which; start : the overlap <w_0, w*>, -1 to 1
    numbers : eta, steps

    Examples
    --------
    >>> from hermitex.theories import batch_reuse
    >>> found = simulate(batch_reuse("relu", "tanh"), [3.0], eta=1, steps=3, dimension=20, seeds=2)
    >>> list(found.values)[:3], found.seeds
    (['cosine_1', 'overlap_1', 'norm_1'], (0, 1))
    """
    from hermitex.kernels.compile import compile

    default = 1000  # overlaps fluctuate by d^-1/2 = 3 % a seed
    chosen, d = seeds_of(seeds), default if dimension is None else size_of(theory.name, dimension)
    own = {k: v for k, v in numbers.items() if k != "steps"}
    steps, at = numbers.get("steps", 2), theory.complete(theory.given({**own, "alpha": alpha}))
    if not (np.ndim(steps) == 0 and np.isfinite(steps) and steps >= 1 and int(steps) == steps):
        raise BadInput(f"batch-reuse: steps of the experiment is a whole number, 1 or more, not {steps}")
    if d < 2 or not -1 <= start <= 1:
        raise BadInput("batch-reuse: the experiment needs a dimension of 2 or more and a start between -1 and 1")
    line, eta = np.atleast_1d(at["alpha"]), theory.single(at, "eta")["eta"]
    sigma, slope, g = (compile(e) for e in (theory.sigma(z), theory.sigma.weak_derivative.expr, theory.g(z)))
    names = [f"{n}_{t}" for t in range(1, int(steps) + 1) for n in ("cosine", "overlap", "norm")]

    def path(rng: np.random.Generator, a: float) -> list[float]:
        n = max(1, round(a*d))
        X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
        w[0] = 0.0
        w *= np.sqrt(1 - start**2)/np.linalg.norm(w)
        w[0] = start
        y, found = g(z=X[:, 0]), []
        for _ in range(int(steps)):
            h = X @ w
            w = w + eta/n*(X.T @ ((y - sigma(z=h) if theory.loss == "square" else y)*slope(z=h)))
            size = float(np.linalg.norm(w))
            found += [float(w[0])/size, float(w[0]), size]
        return found

    fixed = {"eta": eta, "steps": int(steps), "dimension": d, **({"start": start} if start else {})}
    return measured_curve(theory, fixed, line, along(names, line.tolist(), path, apart=True), chosen, progress, names)
