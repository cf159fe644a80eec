"""A System of one's own and an experiment of one's own: mean and standard error over seeds of the values of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, UnknownName, brief
from hermitex.experiments.statistics import over_seeds, seeds_of
from hermitex.hints import Numbers
from hermitex.systems.system import System
from hermitex.theories.curve import Curve
from hermitex.theories.system_curve import axis_numbers, solved_along

Array = np.ndarray


def experiment(system: System, sample: Callable[..., Mapping[str, float]], *, seeds: int | Iterable[int] = 16,
               at: Numbers | None = None, start: Mapping[str, Any] | None = None,
               progress: Callable[[int, int], None] | None = None, **numbers: Any) -> Curve:
    """Solve a System along one of its parameters and run an experiment at the same values -> Curve with `.simulation`.

    Parameters
    ----------
    system : `System`
    sample : sample(rng, **numbers) -> {name of an unknown or observable: measured value}, one run at one point; rng is a
        `numpy.random.Generator` of the seed and the point
    seeds : how many runs (0, 1, ...), or which; at : where the experiment is made (default: at most 8 points of the list)
    start : of `System.solve`; numbers : the parameters of the system, one of them a list, which is the abscissa

    Returns
    -------
    Curve : unknowns and observables; `.simulation` has their means, `.standard_error` and `.seeds`; `.plot(quantity="q")` draws
    the line, and the experiment as points with error bars.

    Raises
    ------
    BadInput : not one list; a run that gives no numbers. UnknownName : a quantity that the system does not have.

    Guarantee
    ---------
    The system's side is that of `System.solve`; the experiment's values are means over seeds with standard errors. See
    docs/promise.md.

    Examples
    --------
    >>> from hermitex import System
    >>> from hermitex.symbols import alpha, q
    >>> double = System({q: 2*alpha})
    >>> found = experiment(double, lambda rng, alpha: {"q": rng.normal(2*alpha)}, alpha=[1, 2], seeds=100)
    >>> found["q"].tolist(), bool(abs(found.simulation["q"] - found["q"]).max() < 0.5), found.simulation.standard_error["q"].shape
    ([2.0, 4.0], True, (2,))
    """
    if not isinstance(system, System) or not callable(sample):
        raise BadInput("experiment: a System and a function sample(rng, **numbers) are needed; theories have experiments of "
                       "their own: hx.curve(theory, ..., simulate=True)")
    chosen = seeds_of(seeds)
    theory = solved_along(system, "experiment", start=start, **numbers)
    axis, line = theory.axis, theory.alpha
    rest = {n: v for n, v in numbers.items() if n != axis}
    some = np.unique(np.rint(np.linspace(0, line.size - 1, min(8, line.size))).astype(int))
    where = line[some] if at is None else axis_numbers("experiment", "at", at)
    empty = replace(theory, alpha=where, values={}, order_parameters=(), converged=True, residual=0.0, stability=np.nan, reason="")
    return theory.with_simulation(_measured(sample, list(theory.values), axis, where, rest, chosen, progress, empty))


def _measured(sample: Callable[..., Mapping[str, float]], names: list[str], axis: str, where: Array, rest: Mapping[str, Any],
              seeds: tuple[int, ...], progress: Callable[[int, int], None] | None, empty: Curve) -> Curve:
    measured: list[str] = []

    def run(seed: int) -> dict[str, list[float]]:
        row: list[list[float]] = []
        for k, x in enumerate(where):
            got = sample(np.random.default_rng([seed, k]), **{axis: float(x)}, **rest)
            if not isinstance(got, Mapping) or not got:
                raise BadInput(f'experiment: the function returns {{"q": 0.5, ...}}, names with numbers, not {brief(got)}')
            if unknown := [n for n in got if n not in names]:
                raise UnknownName(str(unknown[0]), names, "unknown or observable of the system")
            measured.extend(got if not measured else ())
            if set(got) != set(measured):
                raise BadInput(f"experiment: the function returned {', '.join(measured)} first, and {', '.join(got)} then")
            try:
                row.append([float(got[n]) for n in measured])
            except NO_NUMBER:
                raise BadInput("experiment: a value that the function returned is not a number") from None
        return {n: [values[i] for values in row] for i, n in enumerate(measured)}

    values, errors = over_seeds(run, seeds, progress)
    return replace(empty, values=values, order_parameters=tuple(measured), standard_error=errors, seeds=seeds)
