"""{x : |F(x)| dx has mass}: the window of an integrand F, measured on a grid from 1e-13 to 1e19.

A scan of log|F| is refined where it is steep near its top; the window is cut by the mass of the cells, not by the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hermitex.errors import HermitexError

REACH = 40.0  # the density of a standard normal beyond is 1e-349


class Grows(HermitexError):
    """The integrand does not fall off as far as the scan goes."""


class AlgebraicTail(HermitexError):
    """The end of the scan has mass."""


@dataclass(frozen=True)
class Scan:
    """Points x in order and log|F| on them."""

    x: np.ndarray
    level: np.ndarray

    @property
    def top(self) -> int:
        """The index of the largest level."""
        return int(np.argmax(self.level))


@dataclass(frozen=True)
class Window:
    """[low, high] that holds all but a negligible mass; the level `top` at `peak`, whose cell has the width `width`.

    `mass`: about the integral of |F| exp(-top), as the cells of the scan give it.
    """

    low: float
    high: float
    top: float
    peak: float
    width: float
    mass: float = 1.0


def scan(level: Callable[[np.ndarray], np.ndarray], places: Sequence[float], low: float = -math.inf,
         high: float = math.inf, doublings: int = 60, density: int = 8) -> Scan:
    """log|F| on a grid over [low, high] that is fine about the given places and refined where the level is steep.

    Beyond 40 it has `density` points a doubling, for so many doublings.
    """
    far = REACH*2.0**(np.arange(1, density*doublings)/density)
    x = _grid(np.array([p for p in places if abs(p) < 1e15]), far, low, high)  # 1e15: beyond it doubles are further apart than 0.1
    values, infinite = _finite(level(x))
    for round_ in range(60):  # rounds: each divides a cell by 4, and 2^52 is reached in 26
        cells = _to_refine(x, values, np.array(places), round_)
        most = 20_000  # points: an integrand that is steep on all of them has no window to speak of
        if not cells.any() or len(x) > most:
            break
        new = (x[:-1][cells][:, None] + np.diff(x)[cells][:, None]*np.array([0.25, 0.5, 0.75])).ravel()
        new = np.setdiff1d(new, x)
        joined = np.concatenate([x, new])
        order = np.argsort(joined)
        more, poles = _finite(level(new))
        values, infinite = np.concatenate([values, more])[order], np.concatenate([infinite, poles])[order]
        x = joined[order]
    _require_number(x, values, infinite)
    return Scan(x, values)


def _finite(level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The levels, and where they are infinite: on a pole itself there is none."""
    infinite = level == np.inf
    return np.where(infinite, -np.inf, level), infinite


def _require_number(x: np.ndarray, level: np.ndarray, infinite: np.ndarray) -> None:
    """Raise Grows if floats are infinite at the two points next to the largest level: exp(exp(exp(x)))."""
    best = int(np.argmax(level))
    for beside in (infinite[best + 1:best + 3], infinite[max(best - 2, 0):best]):
        if len(beside) == 2 and beside.all():
            raise Grows(f"the integrand does not fall off: it is larger than every number beyond {x[best]:.3g}")


def _grid(places: np.ndarray, far: np.ndarray, low: float, high: float) -> np.ndarray:
    coarse = np.linspace(-REACH, REACH, 1601) + 0.0123  # steps of 0.05, off the round numbers at which users put switches
    offsets = 2.0**-np.arange(0, 44, 2)
    ends = np.array([e for e in (low, high) if math.isfinite(e)])
    about = np.concatenate([places, ends])
    between = (np.sort(about)[1:] + np.sort(about)[:-1])/2
    x = np.concatenate([coarse, far, -far, between, *(c + np.concatenate([-offsets, offsets])*max(1.0, abs(c)) for c in about)])
    if len(ends) == 2:
        x = np.concatenate([x, low + (high - low)*np.linspace(0.0, 1.0, 803)[1:-1]])
    return np.unique(x[(x > low) & (x < high)])


def _to_refine(x: np.ndarray, level: np.ndarray, places: np.ndarray, round_: int) -> np.ndarray:
    """Which cells are divided: steep ones near the top, and those next to the top or to maxima that may hide a higher one."""
    if not np.isfinite(level).any():
        return np.zeros(len(x) - 1, dtype=bool)
    best = int(np.argmax(level))
    top, width = level[best], np.diff(x)
    finite = np.where(np.isfinite(level), level, top - 1e4)
    steep = np.abs(np.diff(finite)) > 3  # a factor of 20 across a cell
    near_top = np.maximum(finite[1:], finite[:-1]) > top - 12  # 6e-6 of the top
    ridge = np.zeros(len(width), dtype=bool)
    ridge[max(best - 1, 0):best + 1] = True
    # exp(-x^2/2) has curvature 1: between points that are w apart it may rise by w^2/2 above a local maximum
    inner = np.arange(1, len(x) - 1)
    maxima = inner[np.isfinite(level[1:-1]) & (finite[1:-1] > finite[:-2]) & (finite[1:-1] > finite[2:])
                   & (finite[1:-1] + np.minimum(np.minimum(width[1:], width[:-1]), 1e9)**2/2 > top - 12)]
    ridge[maxima - 1] = ridge[maxima] = True
    cells = (near_top & steep) | (ridge & ((width > 0.04) | steep))
    cells &= width > 1e-14*(1e-3 + np.abs(x[1:]))  # 1e-14: fifty doubles
    if len(places):
        number = np.searchsorted(np.sort(places), x)
        cells &= ~((number[1:] > number[:-1]) & (width < 1e-6))  # a jump is known and needs no bracket
    return cells


def _tail_of(x: np.ndarray, level: np.ndarray, end: int, inward: int) -> HermitexError:
    """Of a tail like |x|^-p, p <= 1 has no integral; p is measured over the last two doublings."""
    p = -(level[end] - level[inward])/math.log(abs(x[end]/x[inward]))
    if p < 1.001:  # the measured p of 1/(x log x) at 1e19 is 1.02
        return Grows(f"it falls off like |x|^-{p:.3f} only")
    return AlgebraicTail(f"it falls off like |x|^-{p:.3f}, mass lies as far out as the scan goes")


def cut(found: Scan, digits: float, low: float = -math.inf, high: float = math.inf) -> Window:
    """The window that holds all but 10^-digits of the mass.

    Raises
    ------
    Grows : the level at an infinite end is within e^6 of the top.
    AlgebraicTail : more mass than that is at an infinite end.
    """
    x, level = found.x, found.level
    best = found.top
    top = float(level[best])
    width = np.gradient(x)
    for end, infinite in ((0, low == -math.inf), (-1, high == math.inf)):
        if infinite and level[end] >= top - 6:
            raise Grows("the integrand does not fall off as far as the scan goes")
    mass = level - top + np.log(width)  # logarithms, as 400 digits are asked for
    mass = np.where(np.isfinite(mass), mass, -np.inf)
    total = float(np.logaddexp.reduce(mass))
    cutoff = total - digits*math.log(10)
    first = int(np.searchsorted(np.logaddexp.accumulate(mass), cutoff))
    last = len(x) - 1 - int(np.searchsorted(np.logaddexp.accumulate(mass[::-1]), cutoff))
    for at_end, inward in ((first == 0 and low == -math.inf, 17), (last == len(x) - 1 and high == math.inf, -18)):
        if at_end:
            raise _tail_of(x, level, 0 if inward > 0 else -1, inward)
    # two points further out: the next one may be the very place at which the integrand begins
    return Window(low if first == 0 else float(x[max(first - 2, 0)]),
                  high if last == len(x) - 1 else float(x[min(last + 2, len(x) - 1)]), top, float(x[best]),
                  float(2*min(width[max(best - 1, 0):best + 2])), math.exp(total))
