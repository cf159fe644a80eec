"""Panels about what is narrow: the scales that a formula shows, as numbers, cut its panels until each of them is smooth.

    c, c +- 1/k, c +- 4/k, c +- 16/k, ...;   no panel longer than some hundred radians of what oscillates
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import sympy as sp
from sympy import Expr, Symbol

from hermitex.symbolic.digits.analytic_pieces import Panel
from hermitex.symbolic.scales import Scales

_NARROW = 16  # inverse widths from there on get panels about their centres; an equidistant rule does the rest
_GRADE = 4  # panels next to a centre grow by this factor
_RADIANS = 120  # of phase in a panel: 19 waves
_MOST = 3000  # panels


class NumericScales:
    """The scales of an integrand that are numbers: `narrow` pairs (k, centre), k > 0; `frequency` the largest."""

    def __init__(self, found: Scales, outer: Sequence[Symbol] = ()) -> None:
        self.narrow: list[tuple[float, float]] = []
        for k, b in found.narrow:
            if not (k.free_symbols | b.free_symbols):
                width, centre = _number(k), _number(-b / k)
                if width is not None and centre is not None:
                    self.narrow.append((abs(width), centre))
        known = [v for f in found.fast if not f.free_symbols and (v := _number(f)) is not None]
        self.frequency = max(map(abs, known), default=0.0)


def _number(e: Expr) -> float | None:
    try:
        value = complex(e.evalf(18))
    except (TypeError, ValueError, OverflowError):
        return None
    return value.real if value.imag == 0 and abs(value) < 1e300 else None


def resolved(panels: list[Panel], seen: NumericScales) -> list[Panel]:
    """The same panels, cut where something is narrow, and where they hold too many oscillations beside their break points."""
    steep = [(k, c) for k, c in seen.narrow if k > _NARROW]
    alone = len(panels) == 1 and not any(panels[0].rough)
    if not steep and (alone or seen.frequency <= _NARROW):
        return panels
    for frequency in (seen.frequency, 0.0):  # a wide window holds too many oscillations, but what is narrow stays so
        found = [part for panel in panels for part in _parts(panel, steep, frequency)]
        if len(found) <= _MOST:
            return found
    return panels


def _parts(panel: Panel, steep: list[tuple[float, float]], frequency: float) -> list[Panel]:
    if panel.lo.free_symbols or panel.hi.free_symbols:
        return [panel]
    lo, hi = float(panel.lo), float(panel.hi)
    marks = {m for k, c in steep for m in _marks(k, c) if lo < m < hi and min(m - lo, hi - m) > 1e-3 / k}
    if steep:
        marks |= {float(m) for m in range(-8, 9, 2) if lo < m < hi}
    ends = _spaced(sorted(marks))
    ends = [m for a, b in pairwise([lo, *ends, hi]) for m in _cut(a, b, frequency)][1:]
    exact = [panel.lo, *(sp.Rational(m) for m in ends), panel.hi]
    last = len(exact) - 2
    return [Panel(a, b, panel.expr, (panel.rough[0] and i == 0, panel.rough[1] and i == last))
            for i, (a, b) in enumerate(pairwise(exact))]


def _marks(k: float, c: float) -> list[float]:
    width, found = 1 / k, [c]
    while width < 4:
        found += [c - width, c + width]
        width *= _GRADE
    return found


def _spaced(marks: list[float]) -> list[float]:
    """Without those that nearly coincide."""
    kept: list[float] = []
    for m in marks:
        if not kept or m - kept[-1] > 1e-12 * (1 + abs(m)):
            kept.append(m)
    return kept


def _cut(a: float, b: float, frequency: float) -> list[float]:
    """a and what cuts [a, b] into parts of so many radians."""
    parts = max(1, min(int((b - a) * frequency / _RADIANS) + 1, _MOST))
    return [a + (b - a) * i / parts for i in range(parts)]
