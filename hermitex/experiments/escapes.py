r"""n(d): the samples after which |m| first reaches a level, over seeds, against gamma^(-1) T(d) of the flow: d, d log d, d^(l-1).

The rates of one-pass SGD by experiment. With gamma = step d^(-max(1, l/2)), as in ``theory.samples``, the flow predicts n(d); it
leaves out the noise, which at l = 2 shifts n/d by a constant, and the slopes in d are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import BadInput, NotConverged
from hermitex.experiments.sgd_experiment import exponent, prepare
from hermitex.experiments.statistics import mean_and_error, seeds_of
from hermitex.hints import Axes
from hermitex.show.columns import Tabled
from hermitex.show.display import Shown, number_table

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Escapes(Tabled, Shown):
    r"""Samples until |m| = level along d, measured and predicted.

    Attributes
    ----------
    dimensions, samples, standard_error : arrays over d; the means over the seeds and their errors
    predicted : gamma^(-1) T(d) of the flow with its step
    order : l where n grows like d^(l-1); 2: d log d
    level, step, repetition : of the runs;  seeds : which
    """

    dimensions: Array
    samples: Array
    standard_error: Array
    predicted: Array
    order: int
    level: float
    step: float
    repetition: float
    seeds: tuple[int, ...]
    label: str = ""

    @property
    def law(self) -> str:
        """The rate that the order predicts."""
        return {1: "d", 2: "d log d"}.get(self.order, f"d^{self.order - 1}")

    @property
    def slopes(self) -> tuple[float, float, float]:
        """(measured, its standard error, predicted): of n/d against log d at order 2, else of log n against log d."""
        x = np.log(self.dimensions)
        if self.order == 2:
            y, error, flow = self.samples/self.dimensions, self.standard_error/self.dimensions, self.predicted/self.dimensions
        else:
            y, error, flow = np.log(self.samples), self.standard_error/self.samples, np.log(self.predicted)
        weights = 1/error
        fit, covariance = np.polyfit(x, y, 1, w=weights, cov="unscaled")
        return float(fit[0]), float(np.sqrt(covariance[0, 0])), float(np.polyfit(x, flow, 1, w=weights)[0])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Points with error bars and the prediction as a line: n/d against d on a logarithmic axis, or n against d on two."""
        from hermitex.show.plots import REFERENCE, new_axes

        ax, power = new_axes(ax), 1 if self.order == 2 else 0
        unit = self.dimensions**power
        bars = ax.errorbar(self.dimensions, self.samples/unit, self.standard_error/unit, fmt="o", markersize=4, capsize=2,
                           label=self.label or "SGD")
        ax.plot(self.dimensions, self.predicted/unit, "--", color=bars[0].get_color(), linewidth=1.2, gid=REFERENCE,
                label=rf"flow, ${self.law.replace('log', chr(92) + 'log')}$")
        ax.set_xscale("log")
        if not power:
            ax.set_yscale("log")
        ax.set_xlabel("$d$")
        ax.set_ylabel(rf"samples$\,/d$ to $|m| = {self.level:g}$" if power else rf"samples to $|m| = {self.level:g}$")
        ax.legend(frameon=False, fontsize="small")
        return ax

    def table(self) -> dict[str, list[Any]]:
        """Columns dimension, samples, standard_error, predicted."""
        return {"dimension": self.dimensions.tolist(), "samples": self.samples.tolist(),
                "standard_error": self.standard_error.tolist(), "predicted": self.predicted.tolist()}

    def to_dict(self) -> dict[str, Any]:
        """The table, the law and its slopes."""
        measured, error, predicted = self.slopes
        return {**self.table(), "law": self.law, "slope": measured, "slope_error": error, "slope_predicted": predicted,
                "level": self.level, "step": self.step, "repetition": self.repetition, "seeds": list(self.seeds)}

    def _html(self) -> str:
        return f"<p>{self._summary()}</p>" + number_table(self.table(), words={"standard_error": "standard error"})

    def _summary(self) -> str:
        measured, error, predicted = self.slopes
        what = "n/d against log d" if self.order == 2 else "log n against log d"
        return f"{self.label}: law {self.law}, slope of {what} {measured:.3g} +- {error:.2g}, predicted {predicted:.3g}"


def escapes(theory: Any, dimensions: Iterable[int], *, level: float = 0.5, step: float = 0.1, repetition: float = 0.0,
            seeds: int | Iterable[int] = 32, model: str = "overlaps",
            progress: Callable[[int, int], None] | None = None) -> Escapes:
    r"""Run SGD at each d until every seed has |m| >= level -> Escapes.

    Parameters
    ----------
    theory : ``hx.theories.sgd(sigma, g)``, one direction
    dimensions : two or more d
    level : the overlap that ends a run;  the start is m = d^(-1/2)
    step : gamma d^max(1, l/2); l = 2 where samples are repeated
    repetition : the first of two steps on each sample, times d
    seeds, model : as in ``simulate``

    Raises
    ------
    BadInput : a flow that does not arrive, fewer than two dimensions, several directions
    NotConverged : a run that has not arrived after 30 times the predicted samples

    Examples
    --------
    >>> from hermitex.theories import sgd
    >>> found = escapes(sgd("z**2/2", "He2(z)/sqrt(2)"), [32, 64], step=0.2, seeds=4)
    >>> found.law, bool(found.samples[1] > found.samples[0])
    ('d log d', True)
    """
    if theory.order_parameters != ("m",):
        raise BadInput("escapes: the target has one direction; several are followed by simulate")
    d = np.array(sorted(int(v) for v in dimensions), dtype=float)
    if len(d) < 2:
        raise BadInput("escapes: a slope takes two dimensions or more")
    chosen = seeds_of(seeds)
    order = 2 if repetition else int(theory.leading.order or 0)
    steps = step*d**(1 - (1.0 if repetition else exponent(theory)))
    times = np.array([theory.escape_time(x, level=level, step=s, repetition=repetition) for x, s in zip(d, steps, strict=True)])
    predicted = times*d/steps
    if not np.all(np.isfinite(predicted)):
        raise BadInput(f"escapes: the flow does not reach {level:g} with this step; take a smaller one or another student")
    most = 2_000_000  # samples predicted at the largest d
    if predicted[-1] > most:
        raise BadInput(f"escapes: {predicted[-1]:.2g} samples at d = {d[-1]:g}; take smaller dimensions or a larger step")
    means, errors = [], []
    late = 30  # times the predicted samples, after which a run is given up
    for k, (x, s, n) in enumerate(zip(d, steps, predicted, strict=True)):
        if progress is not None:
            progress(k, len(d))
        setting = prepare(theory, [0.0], {"step": s}, int(x), model, repetition, None)[0]
        mean, error = mean_and_error(_first_passage(setting.walk(chosen), level, int(late*n) + 1000, len(chosen)))
        means.append(float(mean))
        errors.append(float(error))
    return Escapes(d, np.array(means), np.array(errors), predicted, order, level, float(step), float(repetition), chosen,
                   f"{theory.sigma.name}, {theory.g.name}" + (", each sample twice" if repetition else ""))


def _first_passage(walk: Any, level: float, most: int, seeds: int) -> Array:
    """The number of samples after which each run first has |m| >= level."""
    found = np.zeros(seeds)
    waiting = np.ones(seeds, dtype=bool)
    for n, m in enumerate(walk):
        arrived = waiting & (np.abs(m[:, 0]) >= level)
        if arrived.any():
            found[arrived] = n
            waiting &= ~arrived
            if not waiting.any():
                return found
        if n >= most:
            raise NotConverged(found, f"escapes: {waiting.sum()} of {seeds} runs have not reached {level:g} after {most} samples; "
                                      "take a smaller step")
    return found
