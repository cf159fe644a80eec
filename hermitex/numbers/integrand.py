"""F(x) = f(x) exp(-x^2/2), or f(x) on an interval: its window, the places at which it is not analytic, and its behaviour there.

Everything is read off the formula, or off values of it: the user gives nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from flint import acb, arb, ctx
from sympy import Expr, Symbol

from hermitex.errors import Divergent, HermitexError, NotConverged
from hermitex.numbers.places import Place, joined, known, zeros
from hermitex.numbers.program import Program, Undecided
from hermitex.numbers.tail_forms import weighted
from hermitex.numbers.windows import AlgebraicTail, Grows, Scan, Window, cut, scan

LN10 = math.log(10)


class Centre(NamedTuple):
    """A point about which the integrand changes within `width`."""

    x: float
    width: float


class Integrand:
    """One integrand over the line or an interval.

    Parameters
    ----------
    f, z : the formula and its variable
    low, high : the ends of the interval, constants or +-oo
    normal : True for the weight exp(-z^2/2) (without 1/sqrt(2 pi)), False for the weight 1
    digits : of the mass that the window keeps

    Raises
    ------
    Divergent : it grows as far as the scan goes, or like |z - r|^-1 or worse at a place r.
    NotConverged : it has no window (an algebraic tail), or is not real where it was evaluated.
    """

    def __init__(self, f: Expr, z: Symbol, low: Expr = -sp.oo, high: Expr = sp.oo, *, normal: bool = True,
                 digits: int = 18) -> None:
        self.f, self.z, self.normal, self.digits = f, z, normal, digits
        self.ends = [known(e) if e.is_finite else None for e in (sp.sympify(low, strict=True), sp.sympify(high, strict=True))]
        self.low = -math.inf if self.ends[0] is None else self.ends[0].x
        self.high = math.inf if self.ends[1] is None else self.ends[1].x
        self.expr = weighted(f, (z,)) if normal else f
        self.program = Program(self.expr, [z])
        self._logarithmic: dict[tuple[float, int], Program] = {}

    # -- levels ----------------------------------------------------------------------------------------------------
    def level(self, x: np.ndarray) -> np.ndarray:
        """log|F| at points, by floats, or by balls where floats cancel."""
        if self.cancels:
            return self._level_by_balls(x)
        values = self.program.floats(x if self.real else x.astype(complex))
        with np.errstate(all="ignore"):
            found = values.logarithm()
        return np.where(np.isnan(found), -np.inf, found)

    @cached_property
    def real(self) -> bool:
        """Is it real on real floats? Otherwise it is evaluated on complex ones: sqrt(z), log(z) of negative z."""
        with np.errstate(all="ignore"):
            values = self.program.floats(self._trial_points())
        return not np.isnan(values.m).any()

    def _trial_points(self) -> np.ndarray:
        """A few points at which floats are compared with balls: over [-40, 40] and about the known places."""
        far = max((abs(p.x) for p in self.known_places if abs(p.x) < 1e6), default=0.0)
        points = np.concatenate([np.linspace(-40, 40, 40), np.linspace(-far - 8, far + 8, 20)]) + 0.0123
        inside = points[(points > self.low) & (points < self.high)]
        if math.isfinite(self.high - self.low) or not len(inside):
            near, length = (self.low, 1.0) if math.isfinite(self.low) else (self.high, -1.0)
            length = self.high - self.low if math.isfinite(self.high - self.low) else length
            inside = np.concatenate([inside, near + length*np.linspace(0.0123, 0.9877, 24)])
        return np.unique(inside)

    @cached_property
    def cancels(self) -> bool:
        """Do floats lose more than 1e-6 of the value where there is mass?"""
        if not self.program.has_balls:
            return False
        points = self._trial_points()
        floats = self.program.floats(points if self.real else points.astype(complex)).logarithm()
        balls = self._level_by_balls(points)
        heavy = balls > balls.max(initial=-np.inf) - self.digits*LN10
        if not heavy.any():
            return bool(np.isfinite(floats).any())
        with np.errstate(all="ignore"):
            return not bool((np.abs(floats - balls)[heavy] <= 1e-6*(1 + np.abs(balls[heavy]))).all())

    def _level_by_balls(self, x: np.ndarray) -> np.ndarray:
        return np.array([self._one_level(float(t)) for t in x])

    def _one_level(self, x: float) -> float:
        for bits in (100, 400, 1600):
            with ctx.workprec(bits):
                try:
                    value = abs(self.program.balls(acb(x)))
                    if value == 0:
                        return -math.inf
                    if value.is_finite() and value.rel_accuracy_bits() > 30:  # nine digits of a level
                        return float(value.log().mid())
                except (Undecided, ZeroDivisionError, ValueError, OverflowError):
                    pass
        return -math.inf

    # -- the window ------------------------------------------------------------------------------------------------
    @cached_property
    def known_places(self) -> list[Place]:
        """The zeros that are known exactly, anywhere on the line."""
        p = self.program
        watched = (sp.sympify(u, strict=True) for u in dict.fromkeys([*p.switches, *p.singular, *p.centres]))
        wanted = [u for u in watched if not u.has(sp.sin, sp.cos)]
        found = [r for u in wanted for r in zeros(u, self.z, max(self.low, -1e15), min(self.high, 1e15))]
        return joined([*found, *(e for e in self.ends if e is not None)])

    @cached_property
    def scan(self) -> Scan:
        """The level on a grid of the line."""
        found = self._scanned(60, 8)  # to 40 2^60 = 5e19: a tail like x^-2 beyond has a mass of 1e-20
        if self.program.has_balls or not np.isneginf(found.level).all():
            return found
        raise NotConverged(None, f"{self.f} has no value wherever it was evaluated")

    def _scanned(self, doublings: int, density: int) -> Scan:
        try:
            return scan(self.level, [p.x for p in self.known_places], self.low, self.high, doublings, density)
        except Grows as reason:
            raise Divergent(self.f, f"{reason}") from None

    @cached_property
    def vanishes(self) -> bool:
        """Is it zero on all points of the scan, on either side of every known place?"""
        return bool(np.isneginf(self.scan.level).all())

    @cached_property
    def window(self) -> Window:
        """The window that holds the mass."""
        return self.window_of(self.digits)

    def window_of(self, digits: float) -> Window:
        """The window that holds all but 10^-digits of the mass."""
        try:
            try:
                return cut(self.scan, digits, self.low, self.high)
            except AlgebraicTail:  # 960 doublings reach the largest doubles
                self.scan = self._scanned(960, 2)
                return cut(self.scan, digits, self.low, self.high)
        except Grows as reason:
            raise Divergent(self.f, f"{reason}") from None
        except AlgebraicTail as reason:
            raise NotConverged(None, f"no digits of the integral of {self.f}: {reason}") from None

    # -- places ----------------------------------------------------------------------------------------------------
    def places(self, expressions: Sequence[Expr], window: Window) -> list[Place]:
        """The zeros of the expressions within a window."""
        own = self.scan.x[(self.scan.x >= window.low) & (self.scan.x <= window.high)]
        grid = np.unique(np.concatenate([np.linspace(window.low, window.high, 2**13), own]))  # 1e-4 of the window
        found = [p for u in dict.fromkeys(expressions) for p in zeros(u, self.z, window.low, window.high, grid)]
        return joined(found)

    def breaks(self, window: Window) -> list[Place]:
        """The places in a window at which another analytic formula begins."""
        return [p for p in self.places([*self.program.switches, *self.program.singular], window) if window.low < p.x < window.high]

    def centres(self, window: Window) -> list[Centre]:
        """Points about which panels are graded: where steep functions turn, and the peak."""
        out = [Centre(window.peak, max(window.width, 1e-15*(1e-3 + abs(window.peak))))]
        for u in dict.fromkeys(self.program.centres):
            if sp.sympify(u, strict=True).has(self.z):
                points = self.places([u], window)
                out += [Centre(p.x, w) for p, w in zip(points, _widths(u, self.z, points), strict=True)]
        return out

    def require_integrable_places(self, window: Window) -> None:
        """Raise Divergent where the integrand is not integrable at a place, within the window or at a known place anywhere.

        Raises
        ------
        Divergent
        """
        anywhere = Window(max(self.low, -1e15), min(self.high, 1e15), 0.0, 0.0, 1.0)
        exact = [p for u in dict.fromkeys(self.program.singular) if not u.has(sp.sin, sp.cos)
                 for p in zeros(u, self.z, anywhere.low, anywhere.high)]
        for place in joined([*exact, *self.places(self.program.singular, window)]):
            for side in (-1, 1):
                self.behaviour(place, side)

    def behaviour(self, place: Place, side: int) -> float | None:
        """The power of |x - r| on one side of a place; None if the integrand is analytic there from that side.

        Raises
        ------
        Divergent : the power is -1 or less.
        """
        if not self.program.has_balls:
            return None
        if self._is_analytic(place, side):
            return None
        power = self._power(place, side)
        # -0.999: between a power and -1 that close no integral has digits, and logarithms shift the measured power by 0.01
        if power <= -0.999:
            raise Divergent(self.f, f"it behaves like |{self.z} - r|^{power:.3f} at r = {place.x:.6g}")
        return power

    def _is_analytic(self, place: Place, side: int) -> bool:
        with ctx.workprec(200):
            r = place.ball(200)
            try:
                frozen = self.program.frozen_at(acb(r + side*arb(2)**-100))
                return bool(self.program.balls(acb(arb(r.mid(), arb(2)**-40)), analytic=True, frozen=frozen).is_finite())
            except (Undecided, ZeroDivisionError, ValueError):
                return False

    def _power(self, place: Place, side: int) -> float:
        """From the sizes at 2^-120 and 2^-160 of the place, with 900 bits."""
        with ctx.workprec(900):
            r = place.ball(900)
            try:
                near, nearer = (abs(self.program.balls(acb(r + side*arb(2)**-e))) for e in (120, 160))
                ratio = nearer/near
                return float((ratio.log()/(-40*arb(2).log())).mid()) if ratio.is_finite() and ratio > 0 else 0.0
            except (Undecided, ZeroDivisionError, ValueError, OverflowError):
                return 0.0

    def logarithmic(self, place: Place, side: int) -> Program | None:
        """The program of s -> F(r + side e^s) e^s, its polynomials expanded about r: next to r nothing cancels.

        None if r is not exactly known.
        """
        if place.exact is None:
            return None
        if (place.x, side) not in self._logarithmic:
            s, x = sp.symbols("s x", real=True, cls=sp.Dummy)  # of a positive letter SymPy makes (-x)^a = (-1)^a x^a
            moved = _moved(self.expr.xreplace({self.z: x}), x, place.exact).xreplace({x: side*sp.exp(s)})
            self._logarithmic[place.x, side] = Program(moved*sp.exp(s), [s])
        return self._logarithmic[place.x, side]

    def peak_next_to(self, place: Place, side: int, last: float) -> float:
        """The s <= last at which F(r + side e^s) e^s is largest: below it only the power at the place is left."""
        s = last - np.arange(0.0, 1000.0)  # e^-1000 of the farthest distance that a double holds
        program = self.logarithmic(place, side)
        if program is None:
            s = s[s > math.log(1e-15*(1e-3 + abs(place.x)))]
            values = self.program.floats((place.x + side*np.exp(s)).astype(float if self.real else complex)).logarithm() + s
        else:
            values = program.floats(s.astype(float if self.real else complex)).logarithm()
        values = np.where(np.isfinite(values), values, -np.inf)
        return float(s[int(np.argmax(values))]) if len(s) else last


def _moved(e: Expr, z: Symbol, r: Expr) -> Expr:
    """e at r + z, polynomial parts expanded."""
    if r == 0 or not e.has(z):
        return e
    if isinstance(e, Expr) and e.is_polynomial(z):
        return sp.expand(e.xreplace({z: r + z}))
    return e.func(*(_moved(a, z, r) for a in e.args))


def _widths(u: Expr, z: Symbol, points: Sequence[Place]) -> list[float]:
    """1/|u'| at zeros of u, by differences."""
    if not points:
        return []
    x = np.array([p.x for p in points])
    step = 1e-7*(1e-3 + np.abs(x))
    try:
        program = Program(u, [z])
        slope: Any = np.abs(program.values(x + step) - program.values(x - step))/(2*step)
    except HermitexError:
        return [1.0]*len(points)
    slope = np.where(np.isfinite(slope) & (slope > 0), slope, 1.0)
    return [float(w) for w in 1/slope]
