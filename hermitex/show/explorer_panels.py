"""Lines in small pictures that are drawn anew while a slider moves: as SVG, here and by a few lines of JavaScript in a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hermitex.show.plots import COLOURS

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 460, 300, 62, 44, 26, 14  # pixels of a panel, and of the margins around its axes
_TICKS = 5  # labels that fit below an axis


@dataclass(frozen=True)
class Panel:
    """One picture: lines {name: (x, y)} over the same axes; the first is solid, the others are dashed.

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


def svg(panels: Iterable[Panel]) -> str:
    """The panels side by side, as one SVG each.

    >>> svg([Panel("a", "x", "y", {"f": ([0, 1], [0, 2])})]).count("<polyline")
    1
    """
    return "".join(map(_one, panels))


def _one(panel: Panel) -> str:
    shown = [(x, y) for xs, ys in panel.lines.values() for x, y in zip(xs, ys, strict=True) if _drawn(x, y, panel.log)]
    if not shown:
        return f"<p>{escape(panel.title)}: no point converged</p>"
    spans = [_span([p[i] for p in shown], log=panel.log[i]) for i in (0, 1)]
    across = WIDTH - LEFT - RIGHT
    up = HEIGHT - ABOVE - BELOW

    def place(x: float, y: float) -> str:
        u, v = (_share(w, span, log=log) for w, span, log in zip((x, y), spans, panel.log, strict=True))
        return f"{LEFT + across*u:.1f},{HEIGHT - BELOW - up*v:.1f}"

    parts = [f'<rect x="{LEFT}" y="{ABOVE}" width="{across}" height="{up}" fill="none" stroke="#999"/>',
             f'<text x="{WIDTH/2}" y="16" text-anchor="middle" font-weight="bold">{escape(panel.title)}</text>',
             f'<text x="{LEFT + across/2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(panel.xlabel)}</text>',
             f'<text transform="translate(13,{ABOVE + up/2}) rotate(-90)" text-anchor="middle">{escape(panel.ylabel)}</text>']
    for value in _ticks(spans[0], log=panel.log[0]):
        x = LEFT + across*_share(value, spans[0], log=panel.log[0])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BELOW + 16}" text-anchor="middle">{value:.3g}</text>')
    for value in _ticks(spans[1], log=panel.log[1]):
        y = HEIGHT - BELOW - up*_share(value, spans[1], log=panel.log[1])
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for i, (name, (xs, ys)) in enumerate(panel.lines.items()):
        points = " ".join(place(x, y) for x, y in zip(xs, ys, strict=True) if _drawn(x, y, panel.log))
        dash = "" if i == 0 else ' stroke-dasharray="6 4"'
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{WIDTH - RIGHT - 6}" y="{ABOVE + 16 + 15*i}" text-anchor="end" fill="{COLOURS[i % len(COLOURS)]}" '
                     f'paint-order="stroke" stroke="white" stroke-width="4">{escape(name)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" '
            f'fill="#222" role="img" aria-label="{escape(panel.title)}">{"".join(parts)}</svg>')


def _drawn(x: float, y: float, log: tuple[bool, bool]) -> bool:
    return math.isfinite(x) and math.isfinite(y) and not (log[0] and x <= 0) and not (log[1] and y <= 0)


def _span(values: Sequence[float], *, log: bool) -> tuple[float, float]:
    lo, hi = min(values), max(values)
    if log:
        return (lo, hi) if lo < hi else (lo/2, 2*hi)
    return (min(lo, 0.0), hi) if hi > max(lo, 0.0) else (lo - 1, hi + 1)


def _share(value: float, span: tuple[float, float], *, log: bool) -> float:
    """How far along an axis a value stands, from 0 to 1."""
    f = math.log if log else float
    return (f(value) - f(span[0]))/(f(span[1]) - f(span[0]))


def _ticks(span: tuple[float, float], *, log: bool) -> list[float]:
    """Round numbers along an axis.

    >>> _ticks((0.0, 0.83), log=False), _ticks((0.02, 30), log=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [0.1, 1.0, 10.0])
    """
    lo, hi = span
    if log and hi >= 10*lo:
        first, last = math.ceil(math.log10(lo) - 1e-9), math.floor(math.log10(hi) + 1e-9)
        return [10.0**k for k in range(first, last + 1, max(1, (last - first)//_TICKS + 1))]
    rough = (hi - lo)/_TICKS
    size = 10.0**math.floor(math.log10(rough))
    step = next(size*m for m in (1, 2, 5, 10) if size*m >= rough*0.999)
    return [round(step*k, 12) for k in range(math.ceil(lo/step - 1e-9), math.floor(hi/step + 1e-9) + 1)]
