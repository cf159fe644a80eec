"""(r, c) -> upper, lower: the phase picture of the bounds over the features, or along the learning rate.

bounds_map(sigma, g, r=.., c=..) draws over the plane; bounds_map(sigma, g, eta=.., alpha0=.., beta=..) along eta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.hints import Axes, Formula, Numbers
from hermitex.show.cite import Cited
from hermitex.show.columns import Tabled
from hermitex.show.display import Shown, letter, number, words_table
from hermitex.theories.bounds import bounds
from hermitex.theories.risks.risk_bounds import Bounds, as_numbers


@dataclass(frozen=True, repr=False, eq=False)
class BoundsMap(Cited, Tabled, Shown):
    """Bounds on a grid: `bounds` holds the arrays, rows along c and columns along r; or one axis along eta."""

    sources = Bounds.sources

    bounds: Bounds
    axes: tuple[str, ...]
    r: Any = None
    c: Any = None
    eta: Any = None

    def _summary(self) -> str:
        of = f"{self.bounds.sigma.name} for {self.bounds.target.name}"
        return f"{of} over {', '.join(self.axes)}, {np.size(self.bounds.upper)} points"

    def to_dict(self) -> dict[str, Any]:
        """The axes and the arrays, as lists."""
        return {**{n: getattr(self, n).tolist() for n in self.axes}, "upper": np.asarray(self.bounds.upper).tolist(),
                "lower": np.asarray(self.bounds.lower).tolist()}

    def table(self) -> dict[str, list[Any]]:
        """Columns of equal length, a row for each point: the axes, then both bounds."""
        line = {"eta": np.asarray(self.eta).tolist()} if self.axes == ("eta",) else {}
        return {**line, **self.bounds.table()}

    def _html(self) -> str:
        columns, rows = self.table(), []
        along = ("eta", "r") if self.axes == ("eta",) else self.axes
        for name in ("upper", "lower"):
            i = int(np.argmin(columns[name]))
            where = r",\; ".join(f"{letter(n)} = {number(columns[n][i], 6)}" for n in along)
            rows.append((f"least {name} bound", f"${number(columns[name][i], 10)}$ at ${where}$"))
        rows.append(("grid", ", ".join(f"${letter(n)}$ from {columns[n][0]:g} to {columns[n][-1]:g}" for n in self.axes)
                     + f", {len(columns['upper'])} points"))
        return words_table(rows, title=f"Risk bounds, σ = {self.bounds.sigma.name}, target {self.bounds.target.name}")

    def plot(self, ax: Axes | None = None, *, which: str = "lower") -> Axes:
        """Over the plane: the bound `which` as colour, logarithmic, with its least value for each c; along eta: both bounds."""
        from hermitex.show.plots import curves, new_axes

        if which not in ("upper", "lower"):
            raise BadInput(f"bounds_map: which is 'upper' or 'lower', not {which!r}")
        ax = new_axes(ax)
        if self.axes == ("eta",):
            lines = {f"{n} bound": np.ravel(getattr(self.bounds, n)).tolist() for n in ("upper", "lower")}
            curves(self.eta, lines, ax, xlabel=r"learning rate $\tilde\eta$", ylabel="bound on the test error")
            if np.min(self.bounds.lower) > 0:
                ax.set_yscale("log")
            return ax
        values = getattr(self.bounds, which)
        shown = np.log10(np.maximum(values, 1e-12))
        levels = 24  # of colour
        drawn = ax.contourf(self.r, self.c, shown, levels=levels, cmap="viridis")
        least = np.array([_bottom(self.r, row) for row in values])
        ax.plot(least, self.c, color="white", linewidth=1.2, linestyle="--", label="least for each $c$")
        ax.set_xlim(self.r[0], self.r[-1])
        ax.figure.colorbar(drawn, ax=ax, label=rf"$\log_{{10}}$ of the {which} bound")
        ax.set_xlabel("$r$")
        ax.set_ylabel("$c$")
        ax.legend(loc="upper right", fontsize="small", framealpha=0.4)
        return ax


def _bottom(r: Any, values: Any) -> float:
    """The place of the least value, between grid points by the parabola through three of them."""
    i = int(np.argmin(values))
    if not 0 < i < len(r) - 1:
        return float(r[i])
    a, b, _ = np.polyfit(r[i - 1:i + 2] - r[i], values[i - 1:i + 2], 2)
    return float(r[i] - b/(2*a)) if a > 0 else float(r[i])


def bounds_map(sigma: Formula, g: Formula, *, r: Numbers | None = None, c: Numbers | None = None, gamma: float = 1.0,
               eta: Numbers | None = None, alpha0: Numbers | None = None, beta: float = 1.0, Delta: float = 0.0) -> BoundsMap:
    """The bounds over a grid of (r, c), or along the learning rates `eta` of a gradient step.

    Parameters
    ----------
    r, c : two increasing axes; or eta : one axis, with alpha0 (inf allowed), beta, Delta.

    Raises
    ------
    BadInput : neither or both ways are given, or a number is out of range.

    Guarantee
    ---------
    As of `bounds`, at each point. See docs/promise.md.

    Examples
    --------
    >>> chart = bounds_map("erf", "sin", r=[0.5, 1.0, 1.5], c=[1.0, 2.0])
    >>> chart.bounds.lower.shape
    (2, 3)
    """
    if (eta is None) == (r is None):
        raise BadInput("bounds_map: give two axes r and c, or one axis eta with alpha0")
    if eta is not None:
        line = np.atleast_1d(as_numbers("eta", eta))
        found = bounds(sigma, g, alpha0=np.inf if alpha0 is None else alpha0, eta=line, beta=beta, Delta=Delta)
        return BoundsMap(found, ("eta",), eta=line)
    rs, cs = np.atleast_1d(as_numbers("r", r)), np.atleast_1d(as_numbers("c", 1.0 if c is None else c))
    return BoundsMap(bounds(sigma, g, r=rs, c=cs[:, None], gamma=gamma), ("r", "c"), r=rs, c=cs)
