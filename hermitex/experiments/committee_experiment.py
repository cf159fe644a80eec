r"""w_j += gamma/(p sqrt(d)) a_j delta sigma'(u_j) x on fresh samples: SGD of a committee at finite size, to compare with its flow.

The weights start with exactly the overlaps Q, M, P of the theory, in random directions; every sample is new. Runs stand side by
side as one array, a row each; the standard error is over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.experiments.statistics import mean_and_error, seeds_of
from hermitex.systems.names import read_start
from hermitex.theories.curve import Curve

Array = np.ndarray


def simulate(theory: Any, t: Any, *, dimension: int | None = None, seeds: int | Iterable[int] = 8,
             start: Mapping[str, Any] | None = None, progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Online SGD at finite size -> Curve of the risk and the order parameters along t, standard errors over the seeds.

    Parameters
    ----------
    theory : ``committee(sigma, g, students=p, teachers=k)``; t : increasing times gamma n/(p d), from 0 on
    dimension : d (default 500); seeds : how many runs, or which
    start : {"Q": matrix, "M": matrix} among the numbers, or here
    numbers : gamma, Delta, Q, M, P, a, v, second, as of the theory; without Q and M the start that the theory draws at d
    """
    default = 500  # overlaps fluctuate by d^-1/2 = 4 %
    chosen, d = seeds_of(seeds), default if dimension is None else int(dimension)
    given = theory.complete(theory.given({**numbers, **read_start(start, "'M': [[0.1]]"), "t": t,
                                          "dimension": numbers.get("dimension", d)}))
    line, gamma, p = theory.times(t), float(given["gamma"]), theory.students
    if not gamma > 0:
        raise BadInput(f"committee: the experiment needs gamma > 0, not {gamma:g}")
    if d <= p + theory.teachers:
        raise BadInput(f"committee: {p + theory.teachers} neurons do not fit into dimension {d}")
    records = np.rint(line*p*d/gamma).astype(int)
    most = 3_000_000  # samples drawn for a seed; chosen by trial
    if records[-1] > most:
        raise BadInput(f"committee: t = {line[-1]:g} is {records[-1]:.3g} samples; {most} is the most. Take a shorter time")
    found = _run(theory, given, records, d, [np.random.default_rng(np.random.SeedSequence(s)) for s in chosen], progress)
    values, errors = {}, {}
    for i, name in enumerate(("risk", *theory.order_parameters)):
        mean, error = mean_and_error(found[:, :, i])
        same = np.all(found[:, :, i] == found[0, :, i], axis=0) & (len(chosen) > 1)  # the start
        values[name], errors[name] = np.where(same, found[0, :, i], mean), np.where(same, 0.0, error)
    return Curve(theory.name, {**theory.described(theory.recorded(given)), "dimension": d}, line, values,
                 theory.order_parameters, standard_error=errors, seeds=chosen, axis="t", title=f"experiment, d = {d}",
                 sources=theory.sources)


def _run(theory: Any, given: dict[str, Array], records: Array, d: int, rngs: list[np.random.Generator],
         progress: Callable[[int, int], None] | None) -> Array:
    """(runs, times, 1 + order parameters)."""
    from hermitex.experiments.sgd_experiment import _function

    p, k, runs = theory.students, theory.teachers, len(rngs)
    sigma, slope, g = (_function(f.expr) for f in (theory.sigma, theory.sigma.weak_derivative, theory.g))
    gamma, Delta, second, v = float(given["gamma"]), float(given["Delta"]), float(given.get("second", 1.0)), given["v"]
    a = np.repeat(given["a"][None], runs, axis=0)
    rows = _root(theory.rates.joint(given["Q"], given["M"], given["P"]))
    W = np.stack([rows @ np.linalg.qr(rng.standard_normal((d, p + k)))[0].T for rng in rngs])*np.sqrt(d)
    out, done = [], 0
    numbers_at_once = 2_000_000  # 16 MB of fresh samples
    chunk = max(1, numbers_at_once//(d*runs))
    for record in records:
        while done < record:
            count = min(chunk, int(record) - done)
            x = np.stack([rng.standard_normal((count, d)) for rng in rngs], axis=1)
            noise = np.sqrt(Delta)*np.stack([rng.standard_normal(count) for rng in rngs], axis=1)
            y = g(np.einsum("crd,rkd->crk", x, W[:, p:])/np.sqrt(d)) @ v/k + noise
            for now in range(count):
                u = np.einsum("rd,rpd->rp", x[now], W[:, :p])/np.sqrt(d)
                delta = y[now] - np.sum(a*sigma(u), axis=1)/p
                W[:, :p] += gamma/(p*np.sqrt(d))*(a*delta[:, None]*slope(u))[:, :, None]*x[now][:, None, :]
                if theory.readout == "trained":
                    a = a + second*gamma/(p*d)*delta[:, None]*sigma(u)
            done += count
        if record == 0:  # exactly the overlaps of the theory
            Q, M, P = given["Q"], given["M"], given["P"]
            risk = theory.rates.risk(Q, M, given["a"], P, v=v)
            here = [np.concatenate([[risk], theory.rates.packed(Q, M, given["a"])])]*runs
        else:
            here = [_measured(theory, W[r]/np.sqrt(d), a[r], v) for r in range(runs)]
        out.append(here)
        if progress is not None:
            progress(int(runs*done/max(int(records[-1]), 1)), runs)
    return np.swapaxes(np.array(out), 0, 1)


def _measured(theory: Any, W: Array, a: Array, v: Array) -> Array:
    """The risk of these weights, exactly, and their overlaps."""
    p = theory.students
    C = W @ W.T
    risk = theory.rates.risk(C[:p, :p], C[:p, p:], a, C[p:, p:], v=v)
    return np.concatenate([[risk], theory.rates.packed(C[:p, :p], C[:p, p:], a)])


def _root(C: Array) -> Array:
    """A matrix R with R R^T = C, C possibly singular."""
    size, vectors = np.linalg.eigh(C)
    found: Array = vectors*np.sqrt(np.maximum(size, 0.0))
    return found
