"""d(z) = T - log|f(z)|: one factor of a product, branch by branch, in coordinates v in which d(v) is smooth.

Next to a zero or a pole z0 the coordinate is v = log|z - z0|; where |f| saturates (tanh, erf) the series is that of log d,
T the logarithm of what it saturates at. The series are fitted to values of many digits, so that d keeps its own where f
is zero, or is the constant, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf
from sympy import Expr, Float, Symbol, diff, lambdify

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.laws.charts import Table, fitted, layout, points, summed
from hermitex.exponents.laws.density import WINDOW, Monotone, common_power, distinct, exact_point, monotone_branches
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.precise import evaluate

_CLOSEST = 1e-19     # to a zero or a pole
_DIGITS = (40, 120, 330)
_TIGHT = 0.1         # log|f(W)/f(W/2)| where f saturates
_ORDER = 22
_RESOLVED = 1e-15
_ROUNDS = 6
_GRID = 24


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


@dataclass(frozen=True)
class Factor:
    """The law of d for one factor.

    Attributes
    ----------
    orders : the a <= 2 for which E[He_a(z)|f(z)] is not zero by parity
    odd : f(-z) = -f(z);  shift : T;  knots : d where the density is not smooth, with the power of its chart
    tail : the least log d next to 0, where |f| saturates;  plateaus : (sign, d, P(a) over a = 0, 1, 2), f = 0 left out
    silent : f is zero with a positive probability
    """

    pieces: tuple[Piece, ...]
    orders: tuple[int, ...]
    odd: bool
    shift: float
    knots: tuple[tuple[float, int], ...]
    tail: float | None
    plateaus: tuple[tuple[int, float, np.ndarray], ...]
    silent: bool
    totals: np.ndarray

    def range(self) -> tuple[float, float]:
        ends = [e for p in self.pieces for e in p.range()] + [d for _, d, _ in self.plateaus]
        return min(ends), max(ends)

    def sides(self) -> tuple[int, ...]:
        return (1,) if self.odd else (1, -1)

    def density(self, d: np.ndarray) -> np.ndarray:
        """Rows over (side, a in orders), of the continuous part; of an odd factor the positive side alone."""
        total = np.zeros((len(self.sides()), len(self.orders), len(d)))
        for piece in self.pieces:
            low, high = piece.range()
            inside = np.flatnonzero((d > low) & (d < high))
            if not len(inside):
                continue
            v = piece.inverse(d[inside])
            with np.errstate(all="ignore"):
                value = piece.weights(v)[list(self.orders)] / piece.slope(v)
            value = np.where(np.isfinite(value), value, 0.0)
            for sign, odd in piece.images:
                if sign in self.sides():
                    factor = np.array([odd if a == 1 else 1 for a in self.orders])[:, None]
                    total[self.sides().index(sign)][:, inside] += factor * value
        return total.reshape(-1, len(d))

    def table(self) -> Table:
        lo, hi = self.range()
        return fitted(self.density, layout(lo, hi, self.knots, self.tail))


# -- from an expression ------------------------------------------------------------------------------------------------
def factor(f: Expr, x: Symbol) -> Factor:
    """The factor f(x).

    Raises
    ------
    Unsuited : f saturates at several moduli, or its pieces are not resolved.
    """
    from hermitex.symbolic.pieces import pieces

    f = f.xreplace({node: Float(evaluate(node, 40), 40) for node in f.atoms(Expectation)})
    mirrored = f.xreplace({x: -x})
    even, odd = (mirrored - f).expand() == 0, (mirrored + f).expand() == 0
    low = 0.0 if even or odd else -WINDOW
    branches: list[tuple[Expr, Monotone]] = []
    flat: list[tuple[float, np.ndarray]] = []
    try:
        for piece in pieces(f, x, exact_point(low), exact_point(WINDOW)):
            checkpoint("cutting a factor into branches")
            a, b = float(piece.lo), float(piece.hi)
            if piece.expr.has(x):
                branches += [(piece.expr, m) for m in monotone_branches(piece.expr, x, a, b)]
            else:
                flat.append((float(evaluate(piece.expr, 20)), _mass(a, b)))
    except BudgetExceeded:
        raise
    except HermitexError as err:
        raise Unsuited(str(err)) from err
    return _assembled(branches, flat, x, (even, odd))


def _assembled(branches: list[tuple[Expr, Monotone]], flat: list[tuple[float, np.ndarray]], x: Symbol,
               parity: tuple[bool, bool]) -> Factor:
    even, odd = parity
    compiled = {e: lambdify(x, e, modules="mpmath") for e, _ in branches}
    tails = {}
    for e, m in branches:
        for end in (m.lo, m.hi):
            if abs(end) == WINDOW and abs(m.lo - m.hi) > 0.6 * WINDOW:
                found = _saturation(compiled[e], end)
                if found is not None:
                    tails[e, end] = found
    ends = {(e, p): _end(compiled[e], e, x, p) for e, m in branches for p in (m.lo, m.hi)}
    levels = {(e, p): _modulus(compiled[e], ends[e, p]) for e, p in ends if abs(p) != WINDOW}
    top, digits = _origin(tails, [v for v in levels.values() if v > mpf(10) ** -13])
    stretches = [(e, s) for e, m in branches for s in _stretches(e, m, x, [end for f, end in tails if f == e], (compiled[e], ends[e, m.lo], ends[e, m.hi]))]
    images = _images(even, odd)
    pieces, powers = [], [2]
    for e, stretch in stretches:
        pieces.append(_series(compiled[e], stretch, top, digits, images))
    for _, m in branches:
        powers += m.orders()
    power = common_power(*powers)
    with mp.workdps(40):
        knots = [float(mp.log(top / v)) for v in levels.values() if v > mpf(10) ** -13 and mp.isfinite(v)]
    tail = min((math.log(p.range()[0]) for p in pieces if p.form == 0), default=None)
    if tail is not None and tail < -690:
        raise Unsuited("it saturates too fast")
    plateaus = tuple((s * int(np.sign(c)), float(mp.log(top)) - math.log(abs(c)), w * np.array([1, o, 1]))
                     for c, w in flat if c for s, o in _copies(even, odd))
    orders = (0, 2) if even else (0, 1, 2)
    totals = np.sum([_mass(m.lo, m.hi) for _, m in branches] + [w for c, w in flat if c], axis=0)
    totals = totals * np.array([2, 0, 2]) if even or odd else totals
    found = distinct(np.array([0.0 if abs(k) < 1e-15 else k for k in knots])) if knots else []
    return Factor(tuple(pieces), orders, odd, float(mp.log(top)), tuple((float(k), power) for k in found), tail,
                  plateaus, any(c == 0 for c, _ in flat), totals)


def _copies(even: bool, odd: bool) -> tuple[tuple[int, int], ...]:
    return ((1, 1), (1, -1)) if even else ((1, 1), (-1, -1)) if odd else ((1, 1),)


def _images(even: bool, odd: bool) -> Callable[[int], tuple[tuple[int, int], ...]]:
    return lambda sign: tuple((sign * s, o) for s, o in _copies(even, odd))


def _mass(a: float, b: float) -> np.ndarray:
    """int_a^b phi He_k, k = 0, 1, 2."""
    from scipy.special import ndtr

    phi = [math.exp(-p * p / 2) / math.sqrt(2 * math.pi) for p in (a, b)]
    whole = ndtr(b) - ndtr(a) if b < 0 else ndtr(-a) - ndtr(-b)
    return np.array([whole, phi[0] - phi[1], a * phi[0] - b * phi[1]])


def _saturation(f: Callable, end: float) -> tuple[mpf, int] | None:
    """(what |f| tends to at this end of the window, the digits that its distance needs), if it is close to it there."""
    for digits in _DIGITS:
        with mp.workdps(digits):
            try:
                half, whole, twice = (abs(mp.mpf(f(mpf(end) * k / 2))) for k in (1, 2, 4))
            except (TypeError, ValueError, ZeroDivisionError, OverflowError):
                return None
            if not (half and whole and twice and all(mp.isfinite(v) for v in (half, whole, twice))):
                return None
            first, second = mp.log(whole / half), mp.log(twice / whole)
            if abs(first) > _TIGHT or abs(second) > abs(first):
                return None
            if second > mpf(10) ** (18 - digits):
                return twice, digits
            if second < -mpf(10) ** (18 - digits):
                break
    raise Unsuited("it saturates from above, or too fast")


def _end(f: Callable, e: Expr, x: Symbol, p: float) -> mpf:
    """The end of a branch, to many digits where it is a critical point."""
    if abs(p) == WINDOW or p == 0:
        return mpf(p)
    slope = diff(e, x)
    first, second = (lambdify(x, s, modules="mpmath") for s in (slope, diff(slope, x)))
    with mp.workdps(60):
        z = mpf(p)
        try:
            for _ in range(6):
                step = first(z) / second(z)
                if not abs(step) < 1e-10:
                    return mpf(p)
                z -= step
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return mpf(p)
        return z


def _modulus(f: Callable, z: mpf) -> mpf:
    with mp.workdps(40):
        try:
            return abs(mpf(f(z)))
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return mp.inf


def _origin(tails: dict, levels: list[mpf]) -> tuple[mpf, int]:
    """exp(T), and the digits: what the factor saturates at, else its largest critical level, else 1."""
    if not tails:
        return max([v for v in levels if mp.isfinite(v)], default=mpf(1)), _DIGITS[0]
    tops = [t for t, _ in tails.values()]
    if max(tops) - min(tops) > max(tops) * mpf(10) ** -25:
        raise Unsuited("it saturates at several moduli")
    return max(tops), max(d for _, d in tails.values())


class Stretch(NamedTuple):
    """lo < v < hi at a place of many digits; `deep`: |f| saturates at its end; `end`: it starts where a branch does."""

    lo: float
    hi: float
    origin: mpf
    direction: int
    exponential: bool
    deep: bool


def _stretches(e: Expr, m: Monotone, x: Symbol, saturated: list[float], exact: tuple) -> list[Stretch]:
    """One branch cut at its zero, and each part into what is next to its ends."""
    f, low, high = exact
    ends = [(low, m.at_lo), (high, m.at_hi)]
    scale = min(1.0, max([abs(v) for _, v in ends if np.isfinite(v)], default=1.0) or 1.0)
    special = [p for p, v in ends if not np.isfinite(v) or (abs(v) < 1e-13 * scale and abs(p) != WINDOW)]
    if m.at_lo * m.at_hi < 0 and not special:
        special = [_root(f, diff(e, x), x, float(m.preimage(np.array([0.0]))[0]))]
        ends.insert(1, (special[0], 0.0))
    found: list[Stretch] = []
    for (a, _), (b, _) in pairwise(ends):
        if not b > a:
            continue
        half = (b - a) / 2
        for p, direction in ((a, 1), (b, -1)):
            other = b if p == a else a
            if p in special:
                h = half if other in special else min(half, mpf(1))
                found.append(Stretch(math.log(_CLOSEST), float(mp.log(h)), p, direction, True, False))
            else:
                h = 2 * half - min(half, mpf(1)) if other in special else half
                deep = float(p) in saturated
                if deep:
                    inner = min(h, mpf(WINDOW) * 3 / 4)
                    found.append(Stretch(0.0, float(inner), p, direction, False, True))
                    if h > inner:
                        found.append(Stretch(float(inner), float(h), p, direction, False, False))
                else:
                    found.append(Stretch(0.0, float(h), p, direction, False, False))
    return found


def _root(f: Callable, slope: Expr, x: Symbol, start: float) -> mpf:
    """The zero of f to many digits."""
    df = lambdify(x, slope, modules="mpmath")
    with mp.workdps(60):
        z = mpf(start)
        for _ in range(8):
            step = f(z) / df(z)
            z -= step
            if abs(step) < mpf(10) ** -50:
                break
        return z if abs(z) > mpf(10) ** -45 else mpf(0)


def _series(f: Callable, stretch: Stretch, top: mpf, digits: int, images: Callable) -> Piece:
    """d(v), or the form of it that is smooth, as Chebyshev series on panels."""
    with mp.workdps(30):
        sign = int(mp.sign(f(_at(stretch, (stretch.lo + stretch.hi) / 2))))
    form = 0 if stretch.deep else _order(f, stretch, top)

    def label(v: float) -> float:
        d = mp.log(top / abs(f(_at(stretch, v))))
        if not form:
            return float(d if form is None else mp.log(d))
        return float(mp.root(d * int(np.sign(form)), abs(form)) / v)

    with mp.workdps(digits + 10 if stretch.deep else _DIGITS[0]):
        edges, series = _expanded(label, stretch)
    place = Place(float(stretch.origin), stretch.direction, stretch.exponential)
    return Piece(sign, place, edges, series[:, :, None], form, images(sign))


def _at(stretch: Stretch, v: float) -> mpf:
    return stretch.origin + stretch.direction * (mp.exp(v) if stretch.exponential else mpf(v))


def _order(f: Callable, stretch: Stretch, top: mpf) -> int | None:
    """+-m if d starts as +-c v^m, m a small integer."""
    if stretch.exponential or stretch.lo != 0:
        return None
    with mp.workdps(_DIGITS[0]):
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
