"""mean +- t s/sqrt(K) over K seeds, and z = (experiment - theory)/standard error: how an experiment is judged.

t is Student's for K seeds, 1.84 for two and 1.06 for ten: the interval holds the mean in 68 of 100 experiments, for any K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from hermitex.errors import NO_NUMBER, BadInput, brief
from hermitex.hints import DataFrame
from hermitex.show.display import Shown, letter, number, words_table
from hermitex.theories.curve import Curve


def seeds_of(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds themselves: K means 0, ..., K - 1.

    >>> seeds_of(3), seeds_of([7, 11])
    ((0, 1, 2), (7, 11))
    """
    try:
        chosen = tuple(range(seeds)) if type(seeds) is int else tuple(map(_integer, seeds))  # type: ignore[arg-type]
    except BadInput:
        raise
    except NO_NUMBER:
        raise BadInput(f"seeds is a number of seeds or a list of them, not {brief(seeds)}") from None
    most_seeds = 10_000  # their standard error is a hundredth of the spread
    if not 1 <= len(chosen) <= most_seeds:
        raise BadInput(f"an experiment has between 1 and {most_seeds} seeds, not {brief(seeds)}")
    if len(set(chosen)) < len(chosen):
        raise BadInput("a seed occurs twice in the list, so two runs would be the same; give each seed once")
    return chosen


def size_of(theory: str, dimension: Any) -> int:
    """A dimension as a whole number.

    >>> size_of("glm", 300.0)
    300
    """
    try:
        return round(dimension)
    except NO_NUMBER:
        raise BadInput(f"{theory}: dimension is a finite number, not {brief(dimension)}") from None


def _integer(value: Any) -> int:
    if isinstance(value, bool | str) or int(value) != value or value < 0:
        raise BadInput(f"a seed is an integer >= 0, not {brief(value)}")
    return int(value)


def mean_and_error(samples: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis and its standard error, wider by Student's t; one sample leaves it unknown (nan).

    >>> mean, error = mean_and_error([[1.0], [3.0]])
    >>> float(mean[0]), round(float(error[0]), 4)
    (2.0, 1.8373)
    """
    x = np.asarray(samples, dtype=float)
    if len(x) < 2:
        return x.mean(axis=0), np.full(x.shape[1:], np.nan)
    return x.mean(axis=0), stdtrit(len(x) - 1, ndtr(1))*x.std(axis=0, ddof=1)/np.sqrt(len(x))


def over_seeds(run: Callable[[int], Mapping[str, Any]], seeds: Sequence[int], progress: Callable[[int, int], None] | None = None
               ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Means and standard errors by name of what `run` of every seed measures; `progress` hears how many are done, of how many.

    >>> over_seeds(lambda seed: {"test_error": [seed, 1.0]}, [1, 3])[0]
    {'test_error': array([2., 1.])}
    """
    samples = []
    for done, seed in enumerate(seeds):
        if progress is not None:
            progress(done, len(seeds))
        samples.append(run(seed))
    if progress is not None:
        progress(len(seeds), len(seeds))
    found = {name: mean_and_error([s[name] for s in samples]) for name in samples[0]}
    return {name: mean for name, (mean, _) in found.items()}, {name: error for name, (_, error) in found.items()}


def columns(names: Sequence[str], rows: Any) -> dict[str, np.ndarray]:
    """Rows of numbers, one for each point of a curve, by name.

    >>> columns(["q", "m"], [(1.0, 2.0), (3.0, 4.0)])["m"]
    array([2., 4.])
    """
    return dict(zip(names, np.asarray(rows, dtype=float).T, strict=True))


def along(names: Sequence[str], points: Iterable[Any], measured: Callable[[np.random.Generator, Any], Sequence[float]], *,
          apart: bool = False) -> Callable[[int], dict[str, np.ndarray]]:
    """The function of a seed that measures at each point, by name.

    The draws of its points follow one another, or, if `apart`, each point has a generator of its own.
    """
    kept = list(points)

    def run(seed: int) -> dict[str, np.ndarray]:
        one = np.random.default_rng(seed)
        return columns(names, [measured(np.random.default_rng([seed, i]) if apart else one, x) for i, x in enumerate(kept)])

    return run


def measured_curve(theory: Any, fixed: Mapping[str, Any], line: np.ndarray, run: Callable[[int], Mapping[str, Any]],
                   seeds: Sequence[int], progress: Callable[[int, int], None] | None, shown: Sequence[str] = (), *,
                   axis: str | None = None, title: str = "", **sizes: Any) -> Curve:
    """The theory's Curve of the means of `run` over the seeds along the line, with standard errors.

    fixed : the numbers that do not vary; shown : the order parameters; sizes : what else is among the parameters of the curve
    """
    values, errors = over_seeds(run, seeds, progress)
    return Curve(theory.name, {**theory.described(fixed), **sizes}, line, values, tuple(shown), standard_error=errors,
                 seeds=tuple(seeds), axis=axis or theory.axis, ratio=theory.ratio, title=title, sources=theory.sources)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """z-scores by name, each an array along the curve; their root mean square and the largest."""

    z: Mapping[str, np.ndarray]

    def rms(self, *names: str) -> float:
        """Root mean square of the z-scores of the names (default: test_error and train_error)."""
        return float(np.sqrt(np.mean(np.square(self._all(names)))))

    def worst(self, *names: str) -> float:
        """The largest |z| of the names (default: test_error and train_error)."""
        return float(np.max(np.abs(self._all(names))))

    def _all(self, names: Sequence[str]) -> np.ndarray:
        return np.concatenate([np.ravel(self.z[n]) for n in names or ("test_error", "train_error")])

    def table(self) -> dict[str, list[Any]]:
        """Columns quantity, rms and worst |z|."""
        names = list(self.z)
        return {"quantity": names, "rms": [self.rms(n) for n in names], "worst": [self.worst(n) for n in names]}

    def to_dict(self) -> dict[str, Any]:
        """The z-scores by name, then rms and worst over the errors."""
        return {"z": {n: np.asarray(v).tolist() for n, v in self.z.items()}, "rms": self.rms(), "worst": self.worst()}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame, one row a quantity."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe(self.table(), index="quantity")

    def _html(self) -> str:
        rows = [(f"${letter(n)}$", f"${number(rms, 3)}$, at most ${number(worst, 3)}$")
                for n, rms, worst in zip(*self.table().values(), strict=True)]
        return words_table(rows, title="Standard errors between experiment and theory: root mean square, largest")

    def _summary(self) -> str:
        return f"rms {self.rms():.2f}, worst {self.worst():.2f} over the errors; " + ", ".join(self.z)


def agreement(theory: Any, experiment: Any) -> Comparison:
    """The distance of the experiment from the theory in standard errors, for every quantity that both curves hold.

    A quantity that does not fluctuate over the seeds and equals the theory's has z = 0.
    """
    z = {}
    for name, error in experiment.standard_error.items():
        if name in theory:
            gap = np.asarray(experiment[name]) - np.asarray(theory[name])
            with np.errstate(divide="ignore", invalid="ignore"):
                z[name] = np.where((gap == 0) & (error == 0), 0.0, gap/error)
    return Comparison(z)
