"""d(v) = T - log|f(z(v))| on one monotone stretch of f, as Chebyshev series in a coordinate v in which it is smooth.

Next to a zero or a pole z0 the coordinate is v = log|z - z0|; where |f| saturates (tanh, erf) the series is that of log d;
next to a critical point at the level T it is that of d^(1/m)/v. The series are fitted to values of many digits, so that d
keeps its own where f is zero, or is exp(T), up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hermitex.exponents.laws.charts import points, summed
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint

DIGITS = 80
_ORDER = 22
_RESOLVED = 1e-15
_ROUNDS = 6
_GRID = 24  # points to a panel, from which the inverse starts


class Unsuited(Exception):
    """A factor whose pieces are not resolved: another route has to serve."""


class Place(NamedTuple):
    """z = origin + direction v, or origin + direction exp(v)."""

    origin: float
    direction: int
    exponential: bool

    def point(self, v: np.ndarray) -> np.ndarray:
        return self.origin + self.direction * (np.exp(v) if self.exponential else v)


@dataclass(frozen=True)
class Piece:
    """One stretch lo < v < hi on which d is monotone.

    Attributes
    ----------
    sign : of f
    place : z = origin + direction v, or origin + direction exp(v) next to a zero or a pole
    edges, series : of d(v); of log d(v) if `form` is 0; of (|d|/v^m)^(1/m) if it is +-m and d starts as +-v^m
    images : (sign of f, weight of an odd He_a) of the points z that the piece stands for
    """

    sign: int
    place: Place
    edges: np.ndarray
    series: np.ndarray
    form: int | None
    images: tuple[tuple[int, int], ...]
    grid: tuple[np.ndarray, np.ndarray] = field(init=False)
    derived: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        steps = (1 - np.cos(np.pi * np.arange(_GRID) / _GRID)) / 2
        v = np.append((self.edges[:-1, None] + np.diff(self.edges)[:, None] * steps).ravel(), self.edges[-1])
        object.__setattr__(self, "derived", np.polynomial.chebyshev.chebder(self.series, axis=1)
                           * (2 / np.diff(self.edges))[:, None, None])
        s = self._level(v)
        object.__setattr__(self, "grid", (s, v) if s[-1] >= s[0] else (s[::-1], v[::-1]))

    def _read(self, v: np.ndarray, series: np.ndarray) -> np.ndarray:
        panel = np.clip(np.searchsorted(self.edges, v, side="right") - 1, 0, len(self.edges) - 2)
        low, high = self.edges[panel], self.edges[panel + 1]
        return summed(series, panel, np.clip((2 * v - low - high) / (high - low), -1.0, 1.0))[0]

    def _level(self, v: np.ndarray) -> np.ndarray:
        """d, log d or |d|^(1/m), in which the branch is inverted."""
        found = self._read(v, self.series)
        return v * found if self.form else found

    def _steepness(self, v: np.ndarray) -> np.ndarray:
        found = self._read(v, self.derived)
        return self._read(v, self.series) + v * found if self.form else found

    def _target(self, d: np.ndarray) -> np.ndarray:
        if self.form is None:
            return d
        return np.log(np.maximum(d, 1e-300)) if self.form == 0 else np.maximum(d * np.sign(self.form), 0.0) ** (1 / abs(self.form))

    def label(self, v: np.ndarray) -> np.ndarray:
        """d(v)."""
        s = self._level(v)
        if self.form is None:
            return s
        return np.exp(s) if self.form == 0 else np.sign(self.form) * s ** abs(self.form)

    def slope(self, v: np.ndarray) -> np.ndarray:
        """|dd/dv|."""
        s = np.abs(self._steepness(v))
        if self.form is None:
            return s
        return s * self.label(v) if self.form == 0 else s * abs(self.form) * self._level(v) ** (abs(self.form) - 1)

    def range(self) -> tuple[float, float]:
        low, high = sorted(self.label(self.edges[[0, -1]]))
        return float(low), float(high)

    def near(self, d: np.ndarray) -> np.ndarray:
        """v(d) to a few digits."""
        return np.interp(self._target(d), *self.grid)

    def inverse(self, d: np.ndarray) -> np.ndarray:
        """v(d); labels outside the range give the ends."""
        target = self._target(d)
        v = np.interp(target, *self.grid)
        live = np.arange(len(v))
        for _ in range(8):
            with np.errstate(all="ignore"):
                step = (self._level(v[live]) - target[live]) / self._steepness(v[live])
            new = np.clip(np.where(np.isfinite(step), v[live] - step, v[live]), self.edges[0], self.edges[-1])
            moved = np.abs(new - v[live]) > 2e-15 * np.abs(new)
            v[live] = new
            live = live[moved]
            if not len(live):
                break
        return v

    def weights(self, v: np.ndarray) -> np.ndarray:
        """phi(z) He_a(z) |dz/dv|, a = 0, 1, 2."""
        z = self.place.point(v)
        phi = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (np.exp(v) if self.place.exponential else 1.0)
        return np.stack([phi, z * phi, (z * z - 1) * phi])


# -- from values of many digits -----------------------------------------------------------------------------------------
class Stretch(NamedTuple):
    """lo < v < hi at a place of many digits; `deep`: |f| saturates at its end; `end`: it starts where a branch does."""

    lo: float
    hi: float
    origin: mpf
    direction: int
    exponential: bool
    deep: bool


def piece_of(f: Callable, stretch: Stretch, level: tuple[mpf, int], images: Callable) -> Piece:
    """The piece over a stretch; `level`: exp(T), and the digits that the distance from it needs; `images`: from the sign of f."""
    top, digits = level
    with mp.workdps(30):
        sign = int(mp.sign(f(_at(stretch, (stretch.lo + stretch.hi) / 2))))
    form = 0 if stretch.deep else _order(f, stretch, top)

    def label(v: float) -> float:
        d = mp.log(top / abs(f(_at(stretch, v))))
        if not form:
            return float(d if form is None else mp.log(d))
        return float(mp.root(d * int(np.sign(form)), abs(form)) / v)

    with mp.workdps(digits + 10 if stretch.deep else DIGITS):
        edges, series = _expanded(label, stretch)
    place = Place(float(stretch.origin), stretch.direction, stretch.exponential)
    return Piece(sign, place, edges, series[:, :, None], form, images(sign))


def _at(stretch: Stretch, v: float) -> mpf:
    return stretch.origin + stretch.direction * (mp.exp(v) if stretch.exponential else mpf(v))


def _order(f: Callable, stretch: Stretch, top: mpf) -> int | None:
    """+-m if d starts as +-c v^m, m a small integer."""
    if stretch.exponential or stretch.lo != 0:
        return None
    with mp.workdps(DIGITS):
        near, nearer = (mp.log(top / abs(f(_at(stretch, v)))) for v in (1e-6, 1e-7))
        if not near or not nearer or abs(near) > 1e-4:
            return None
        m = mp.log(abs(near / nearer), 10)
    return int(mp.sign(near)) * round(m) if abs(m - round(m)) < 1e-3 and 1 <= round(m) <= 12 else None


def _expanded(label: Callable[[float], float], stretch: Stretch) -> tuple[np.ndarray, np.ndarray]:
    x, matrix = points(_ORDER)
    window = stretch.lo, stretch.hi
    count = max(1, math.ceil((window[1] - window[0]) / (6.0 if stretch.exponential else 1.5)))
    panels = list(pairwise(float(e) for e in np.linspace(*window, count + 1)))
    done: list[tuple[float, np.ndarray]] = []
    for _ in range(_ROUNDS):
        again = []
        checkpoint("expanding a factor")
        for a, b in panels:
            try:
                values = np.array([label((a + b) / 2 + (b - a) / 2 * t) for t in x])
            except (TypeError, ValueError, ZeroDivisionError, OverflowError) as err:
                raise Unsuited("a value is not found") from err
            series = matrix @ values
            if not np.isfinite(series).all():
                raise Unsuited("a value is infinite")
            if np.abs(series[-2:]).max() > _RESOLVED * max(1.0, float(np.abs(series).max())) and b - a > 0.05:
                again += [(a, (a + b) / 2), ((a + b) / 2, b)]
            else:
                done.append((a, series))
        panels = again
        if not panels:
            break
    else:
        raise Unsuited("a branch is not resolved")
    done.sort(key=lambda p: p[0])
    return np.array([*[a for a, _ in done], window[1]]), np.array([s for _, s in done])
