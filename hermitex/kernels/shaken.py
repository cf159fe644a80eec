"""How far numbers move as the sums in them are off by rounding: in proportion, and by as much as rounding may be.

    OFF    of the |terms|: so much more than rounding that all moves in proportion, times ROUNDED
    2 eps  of them, away from 0 and toward it, where that is much: tanh(30) does not move in proportion where rounding may be 40

Toward 0 a sum that has no digit left becomes 0, where functions turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

BY = "off'"  # under which name the state holds by how much sums are off
OFF = 2.0**-30
_EPS = float(np.finfo(float).eps)
ROUNDED = _EPS/OFF  # of how far they are moved: what rounding may be of the terms, one to two units in the last place
_UNLIKE = 0.75, 1.5  # what is below 0, and above: averages of odd functions move, and of even ones
_MUCH = 1e-3  # of a sum, or of 1, the scale of functions: less moves all in proportion
_NOISE, _FLOOR = 1e-13, 0.01  # of a number, and what it is measured against if it is smaller: less is rounding of the results
_MORE = 16  # so many times as much is no proportion


class Off:
    """x -> x off by a part of its size; and how large that was for each point, of the largest x among its nodes, or of 1."""

    def __init__(self, by: float) -> None:
        self.by, self.most = by, np.zeros(1)

    def __call__(self, x: Any, size: Any) -> np.ndarray:
        far = self.by*np.abs(size)*np.where(x < 0, *_UNLIKE)
        if self.by == OFF:
            self.most = np.maximum(self.most, _largest(far)/np.minimum(_largest(x), 1.0))
        if not np.all(np.isfinite(far)):  # a quotient by what has no digit left: that has been moved
            far = np.where(np.isfinite(far), far, 0.0)
        return x + np.copysign(far, x) if self.by == OFF else np.copysign(np.maximum(np.abs(x) + far, 0.0), x)


def _largest(x: np.ndarray) -> np.ndarray:
    """Of each point, what is furthest from 0."""
    if x.size == 1:
        return np.abs(x.ravel())
    rows = x.reshape(len(x), -1)
    return np.maximum(rows.max(axis=1), -rows.min(axis=1))


def shifts(run: Callable[[Off], Mapping[str, np.ndarray]], here: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """How far numbers move where their sums are off by OFF of their terms; ROUNDED times that is what rounding may be.

    run : the numbers with their sums off by so much;  here : the same as they are, one a point
    Where that overflows and they do not, it says nothing of them.
    """
    first = Off(OFF)
    found = {n: np.where(np.isfinite(v), v, here[n]) - here[n] for n, v in run(first).items()}
    much = ~(first.most <= _MUCH)
    for by in (2*_EPS, -2*_EPS) if much.any() else ():
        for n, v in run(Off(by)).items():
            gap = np.where(np.isnan(v) | ~np.isfinite(here[n]), 0.0, v - here[n])
            real = much & (np.abs(gap) > _NOISE*np.maximum(np.abs(here[n]), _FLOOR))
            gap = np.where(real, gap/ROUNDED, 0.0)
            found[n] = np.where(np.abs(gap) > _MORE*np.abs(found[n]), gap, found[n])
    return found


__all__ = ["BY", "OFF", "ROUNDED", "Off", "shifts"]
