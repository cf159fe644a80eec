r"""T(d) = int_{d^(-1/2)}^{level} dm/(dm/dt): how long one-pass SGD stays at the equator; O(1), log(d)/(2 C), d^(l/2-1).

With C = c_l s_l/(l-1)! the first coefficient of the drift, dm/dt = C m^(l-1) near m = 0 [benarous2021].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from hermitex.hints import Axes, DataFrame
from hermitex.numbers.gauss import legendre_on
from hermitex.show.cite import Cited
from hermitex.show.display import Shown, number, number_table, words_table
from hermitex.symbolic.precise import evaluate
from hermitex.theories.online.overlap_drift import Leading


@dataclass(frozen=True, eq=False, repr=False)
class EscapeTimes(Cited, Shown):
    r"""T(d) along d, and the law that the first order l of the drift predicts.

    Attributes
    ----------
    dimensions, times : arrays
    order : l, or None if the drift is zero
    rate : C = c_l s_l/(l-1)!, so that dm/dt = C m^(l-1) near 0
    level : the overlap that is to be reached
    """

    sources = ("benarous2021",)

    dimensions: np.ndarray
    times: np.ndarray
    order: int | None
    rate: float
    level: float
    label: str = ""

    @property
    def law(self) -> str:
        """How T grows with d, in words."""
        if self.order is None:
            return "never"
        return {1: "O(1)", 2: "log d"}.get(self.order, f"d^({self.order}/2 - 1)")

    @property
    def predicted(self) -> float:
        """The exponent l/2 - 1 of d (0 at l = 1), or at l = 2 the coefficient 1/(2 C) of log d."""
        if self.order is None:
            return float("nan")
        return 0.0 if self.order == 1 else 1/(2*self.rate) if self.order == 2 else self.order/2 - 1

    @property
    def fitted(self) -> float:
        """The same from the times: the slope of log T (at l = 2 of T) against log d, over the larger half of the d."""
        x, y = np.log(self.dimensions), self.times if self.order == 2 else np.log(self.times)
        keep = x >= np.median(x)
        if keep.sum() < 2 or not np.all(np.isfinite(y[keep])):
            return float("nan")
        return float(np.polyfit(x[keep], y[keep], 1)[0])

    def plot(self, ax: Axes | None = None) -> Axes:
        """T against d as points and line, the predicted slope dashed, on the given axes; log d at l = 2 on a linear axis."""
        from hermitex.show.plots import REFERENCE, learning_curve

        logarithmic = self.order != 2
        ax = learning_curve(self.dimensions.tolist(), self.times.tolist(), ax, label=self.label or "T(d)", xlabel="$d$",
                            ylabel=rf"time to $m = {self.level:g}$", log=(True, logarithmic))
        colour = ax.get_lines()[-1].get_color()
        ax.plot(self.dimensions, self.times, "o", color=colour, markersize=3.5)
        if self.order is not None and np.isfinite(self.times[-1]):
            d, last = self.dimensions, self.times[-1]
            line = last + self.predicted*np.log(d/d[-1]) if self.order == 2 else last*(d/d[-1])**self.predicted
            said = rf"$\log d\,/\,{2*self.rate:.3g}$" if self.order == 2 else (
                "constant" if self.order == 1 else rf"$d^{{{self.predicted:g}}}$")
            ax.plot(d, line, linestyle="--", color="0.2", linewidth=1.0, gid=REFERENCE, label=f"predicted: {said}", zorder=3)
            ax.legend(frameon=False, fontsize="small")
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Dimensions, times (None: never), the law, its number predicted and fitted."""
        return {"dimension": self.dimensions.tolist(), "time": [float(t) if np.isfinite(t) else None for t in self.times],
                "order": self.order, "law": self.law, "predicted": _finite(self.predicted), "fitted": _finite(self.fitted),
                "level": self.level}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame, one row a dimension."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe({"dimension": self.dimensions.tolist(), "time": self.times.tolist()})

    def _html(self) -> str:
        law = {None: "never", 1: "$O(1)$", 2: r"$\log d$"}.get(self.order, f"$d^{{{self.predicted:g}}}$")
        what = r"coefficient $1/(2C)$ of $\log d$" if self.order == 2 else "exponent of $d$"
        rows = [("law", law)]
        if self.order is not None:
            rows.append((what, f"predicted ${number(self.predicted, 6)}$, fitted ${number(self.fitted, 6)}$"))
        head = words_table(rows, title=f"Time to the overlap {self.level:g}: {self.label}")
        return head + number_table({"d": self.dimensions.tolist(), "T": self.times.tolist()})

    def _summary(self) -> str:
        return (f"{self.label}: T = {self.times[0]:.4g} to {self.times[-1]:.4g} for d = {self.dimensions[0]:g} to "
                f"{self.dimensions[-1]:g}; law {self.law}, predicted {self.predicted:.4g}, fitted {self.fitted:.4g}")


def escape_times(drift: Callable[..., Any], first: Leading, d: np.ndarray, level: float, step: float, *, label: str) -> EscapeTimes:
    """The integrals, in log m where the drift is a power, panel by panel with Gauss's rule."""
    rate = float("nan") if first.order is None or first.value is None else (
        float(evaluate(first.value, 20))/factorial(first.order - 1))
    times = np.array([_time(drift, 1/np.sqrt(x), level, step) for x in d])
    return EscapeTimes(d, times, first.order, rate, level, label)


def _time(drift: Callable[..., Any], low: float, level: float, step: float) -> float:
    grid_size = 2001  # points at which the sign of the drift is computed
    grid = np.geomspace(low, level, grid_size)
    if not np.all(drift(grid, step) > 0):
        return float("inf")
    nodes_each = 24  # nodes of a panel
    panels = 24  # of log m
    at, weights = legendre_on(np.linspace(np.log(low), np.log(level), panels + 1), nodes_each)
    x = np.exp(at)
    return float(np.sum(weights*x/drift(x.ravel(), step).reshape(x.shape)))


def _finite(v: float) -> float | None:
    return v if np.isfinite(v) else None
