"""Lines in small pictures that are drawn anew while a slider moves: here, and by a few lines of JavaScript in a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hermitex.show.plots import curves, embedded

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 460, 300, 62, 44, 26, 14  # pixels of a panel, and of the margins around its axes


@dataclass(frozen=True)
class Panel:
    """One picture: lines {name: (x, y)} over the same x.

    title, xlabel, ylabel : plain text;  log : (x, y) whether an axis is logarithmic
    """

    title: str
    xlabel: str
    ylabel: str
    lines: Mapping[str, tuple[Any, Any]]  # sequences or arrays of numbers
    log: tuple[bool, bool] = (False, False)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what does not exist is null."""
        def plain(values: Sequence[float]) -> list[float | None]:
            return [float(f"{v:.5g}") if math.isfinite(v) else None for v in map(float, values)]

        return {"title": self.title, "xlabel": self.xlabel, "ylabel": self.ylabel, "log": list(self.log),
                "lines": [[name, plain(x), plain(y)] for name, (x, y) in self.lines.items()]}


def pictures(panels: Iterable[Panel]) -> str:
    """The panels side by side, each as an image that an HTML page holds.

    >>> pictures([Panel("a", "x", "y", {"f": ([0, 1], [0, 2])})]).count("<img")
    1
    """
    return "".join(map(_one, panels))


def _one(panel: Panel) -> str:
    if not any(math.isfinite(v) and (v > 0 or not panel.log[1]) for _, values in panel.lines.values() for v in values):
        return f"<p>{escape(panel.title)}: no point converged</p>"
    x, _ = next(iter(panel.lines.values()))
    ax = curves(x, {name: values for name, (_, values) in panel.lines.items()}, xlabel=panel.xlabel, ylabel=panel.ylabel)
    for log, scale in zip(panel.log, (ax.set_xscale, ax.set_yscale), strict=True):
        scale("log" if log else "linear")
    ax.set_title(panel.title, fontsize="medium")
    return embedded(ax)
