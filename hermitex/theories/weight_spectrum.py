r"""rho(s) = 2 s/psi2 rho_MP(s^2/psi2): the singular values of the d x N weights, entries N(0, 1/d), psi2 = N/d, and an outlier.

rho_MP is the law of Marchenko and Pastur at ratio 1/psi2; of the min(d, N) singular values none is zero but at psi2 = 1 some are
near. Between the edges |1 - sqrt(psi2)| and 1 + sqrt(psi2) a step of size O(1) changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.hints import Axes, DataFrame
from hermitex.show.cite import Cited
from hermitex.show.display import Shown, number, words_table
from hermitex.theories.marchenko_pastur import MarchenkoPastur

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class WeightSpectrum(Cited, Shown):
    """The density of singular values at `x`, its edges, the outlier (None below the critical step), those of a simulation."""

    sources = ("ba2022",)

    psi2: float
    x: Array
    density: Array
    edges: tuple[float, float]
    outlier: float | None
    simulated: Array | None = None

    def _summary(self) -> str:
        out = "no outlier" if self.outlier is None else f"outlier {self.outlier:.6g}"
        return f"psi2={self.psi2:g}: bulk {self.edges[0]:.6g} to {self.edges[1]:.6g}, {out}"

    def to_dict(self) -> dict[str, Any]:
        """psi2, x, density, edges, outlier (None if there is none), the simulated singular values where there are some."""
        found = {"psi2": self.psi2, "x": self.x.tolist(), "density": self.density.tolist(), "edges": list(self.edges),
                 "outlier": self.outlier}
        return found if self.simulated is None else {**found, "simulated": np.sort(self.simulated).tolist()}

    def to_dataframe(self) -> DataFrame:
        """A pandas DataFrame with the columns x and density."""
        from hermitex.show.tables import to_dataframe

        return to_dataframe({"x": self.x.tolist(), "density": self.density.tolist()})

    def _html(self) -> str:
        rows = [("bulk", f"${number(self.edges[0], 8)}$ to ${number(self.edges[1], 8)}$"),
                ("outlier", "none" if self.outlier is None else f"${number(self.outlier, 8)}$")]
        return words_table(rows, title="Singular values of the first layer after one step")

    def plot(self, ax: Axes | None = None, *, bins: int = 60) -> Axes:
        """The density as a line, the outlier as an arrow, the simulated singular values as a histogram of area 1."""
        from hermitex.show.plots import COLOURS, curves, new_axes

        ax = new_axes(ax)
        if self.simulated is not None:
            ax.hist(self.simulated, bins=bins, density=True, color=COLOURS[5], alpha=0.5, label="simulated")
        curves(self.x.tolist(), {"theory": self.density.tolist()}, ax, xlabel="singular value", ylabel="density")
        if self.outlier is not None:
            height = 0.35*float(self.density[self.x > self.edges[0] + 0.2*(self.edges[1] - self.edges[0])].max())
            ax.annotate("outlier", (self.outlier, 0), (self.outlier, height), ha="center", fontsize="small",
                        arrowprops={"arrowstyle": "->", "color": COLOURS[1]}, color=COLOURS[1])
        ax.set_ylim(bottom=0)
        return ax


def weight_spectrum(psi2: float, outlier: float | None, points: int, simulated: Any = None) -> WeightSpectrum:
    """The bulk at psi2 = N/d and an outlier; `simulated`: singular values to plot with it.

    >>> round(weight_spectrum(0.25, None, 200).edges[1], 12)
    1.5
    """
    if points < 2:
        raise BadInput(f"a density is given at 2 points or more, not {points}")
    law = MarchenkoPastur(1/psi2)
    low, high = abs(1 - psi2**0.5), 1 + psi2**0.5
    x = (low + high)/2 - (high - low)/2*np.cos(np.pi*(np.arange(points) + 0.5)/points)
    rho = 2*x/psi2*law.density(x*x/psi2)/(1 - law.mass_at_zero)
    values = None if simulated is None else np.ravel(np.asarray(simulated, dtype=float))
    return WeightSpectrum(psi2, x, rho, (low, high), outlier, values)
