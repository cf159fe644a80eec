"""nu_a(s, dd) = sum over branches of phi(z) He_a(z) dz: one factor f(z) of a product, d = T - log|f(z)|, s the sign of f.

T is the logarithm of what |f| saturates at (tanh, erf), else of its largest critical level, so that the labels that crowd,
or the density that is singular, stand at d = 0, where d keeps all its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sympy import Expr, Float, Symbol, diff

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.exponents.laws.charts import Table, fitted, layout
from hermitex.exponents.laws.density import WINDOW, Monotone, common_power, distinct, exact_point, monotone_branches
from hermitex.exponents.laws.stretches import DIGITS, Piece, Stretch, Unsuited, piece_of
from hermitex.kernels.arrays import lambdify
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.parity import parity
from hermitex.symbolic.precise import evaluate

_CLOSEST = 1e-19     # to a zero or a pole
_MANY = (DIGITS, 120, 330)
_TIGHT = 0.1         # log|f(W)/f(W/2)| where f saturates
_BEGUN = 0.3         # log of what it saturates at over |f|, where the coordinate for it begins
_ZERO = 1e-13
_SMALLEST = -690     # log d


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
@dataclass(frozen=True)
class _Branch:
    """A monotone branch, its function at many digits, and its ends (exact where they are critical points)."""

    expr: Expr
    x: Symbol
    monotone: Monotone
    f: Callable
    ends: tuple[mpf, mpf]

    def level(self, z: mpf) -> mpf:
        """|f(z)|; infinite at a pole."""
        with mp.workdps(DIGITS):
            try:
                return abs(mpf(self.f(z)))
            except (TypeError, ValueError, ZeroDivisionError, OverflowError):
                return mp.inf


def factor(f: Expr, x: Symbol) -> Factor:
    """The factor f(x).

    Raises
    ------
    Unsuited : f saturates at several moduli, or its pieces are not resolved.
    """
    from hermitex.symbolic.pieces import pieces

    f = f.xreplace({node: Float(evaluate(node, 40), 40) for node in f.atoms(Expectation)})
    sign = parity(f, x)
    even, odd = sign == 1, sign == -1
    branches: list[_Branch] = []
    flat: list[tuple[float, np.ndarray]] = []
    try:
        for piece in pieces(f, x, exact_point(0.0 if even or odd else -WINDOW), exact_point(WINDOW)):
            checkpoint("cutting a factor into branches")
            if piece.expr.has(x):
                branches += _branches(piece.expr, x, float(piece.lo), float(piece.hi))
            else:
                flat.append((float(evaluate(piece.expr, 20)), _mass(float(piece.lo), float(piece.hi))))
    except BudgetExceeded:
        raise
    except HermitexError as err:
        raise Unsuited(str(err)) from err
    return _assembled(branches, flat, ((1, 1), (1, -1)) if even else ((1, 1), (-1, -1)) if odd else ((1, 1),))


def _branches(e: Expr, x: Symbol, lo: float, hi: float) -> list[_Branch]:
    slope = diff(e, x)
    f, first, second = (lambdify(x, g, modules=[mp.functions(), "mpmath"]) for g in (e, slope, diff(slope, x)))
    return [_Branch(e, x, m, f, (_end(first, second, m.lo), _end(first, second, m.hi)))
            for m in monotone_branches(e, x, lo, hi)]


def _assembled(branches: list[_Branch], flat: list[tuple[float, np.ndarray]], copies: tuple[tuple[int, int], ...]) -> Factor:
    """`copies`: (sign of f, weight of an odd He_a) of the points +-z, where these are alike."""
    tails = {(n, p): found for n, b in enumerate(branches) for p in (b.monotone.lo, b.monotone.hi)
             if (found := _saturation(b, p)) is not None}
    levels = [v for b in branches for p, z in zip((b.monotone.lo, b.monotone.hi), b.ends, strict=True)
              if abs(p) != WINDOW and _ZERO < (v := b.level(z)) < mp.inf]
    top, digits = _origin(list(tails.values()), levels)
    pieces = []
    for n, b in enumerate(branches):
        cut = {p: _begun(b, p, top) for m, p in tails if m == n}
        for stretch in _stretches(b, cut):
            pieces.append(piece_of(b.f, stretch, (top, digits), lambda s: tuple((s * t, o) for t, o in copies)))
    tail = min((math.log(p.range()[0]) for p in pieces if p.form == 0), default=None)
    if tail is not None and tail < _SMALLEST:
        raise Unsuited("it saturates too fast")
    with mp.workdps(DIGITS):
        offsets = [float(mp.log(top / v)) for v in levels]
    power = common_power(2, *[n for b in branches for n in b.monotone.orders()])
    knots = distinct(np.array([0.0 if abs(k) < 1e-15 else k for k in offsets], dtype=float))
    shift = float(mp.log(top))
    plateaus = tuple((s * int(np.sign(c)), shift - math.log(abs(c)), w * np.array([1, o, 1]))
                     for c, w in flat if c for s, o in copies)
    totals = sum((_mass(b.monotone.lo, b.monotone.hi) for b in branches), np.zeros(3))
    totals = totals + sum((w for c, w in flat if c), np.zeros(3))
    if len(copies) == 2:
        totals = totals * np.array([2, 0, 2])
    return Factor(tuple(pieces), (0, 2) if copies[-1] == (1, -1) else (0, 1, 2), copies[-1] == (-1, -1), shift,
                  tuple((float(k), power) for k in knots), tail, plateaus, any(c == 0 for c, _ in flat), totals)


def _mass(a: float, b: float) -> np.ndarray:
    """int_a^b phi He_k, k = 0, 1, 2."""
    phi = [math.exp(-p * p / 2) / math.sqrt(2 * math.pi) for p in (a, b)]
    beyond = [math.erfc(p / math.sqrt(2)) / 2 for p in ((-b, -a) if b < 0 else (a, b))]
    return np.array([beyond[0] - beyond[1], phi[0] - phi[1], a * phi[0] - b * phi[1]])


def _end(first: Callable, second: Callable, p: float) -> mpf:
    """The end of a branch, to many digits where it is a critical point."""
    with mp.workdps(DIGITS + 20):
        z = mpf(p)
        if abs(p) == WINDOW or p == 0:
            return z
        try:
            for _ in range(6):
                step = first(z) / second(z)
                if not abs(step) < 1e-10:
                    return mpf(p)
                z -= step
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return mpf(p)
        return z


def _saturation(b: _Branch, end: float) -> tuple[mpf, int] | None:
    """(what |f| tends to at this end of the window, the digits that its distance needs), if it is close to it there."""
    if abs(end) != WINDOW or b.monotone.hi - b.monotone.lo < 0.6 * WINDOW:
        return None
    for digits in _MANY:
        with mp.workdps(digits):
            try:
                half, whole, twice = (abs(mpf(b.f(mpf(end) * k / 2))) for k in (1, 2, 4))
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


def _origin(tails: Sequence[tuple[mpf, int]], levels: Sequence[mpf]) -> tuple[mpf, int]:
    """exp(T), and the digits: what the factor saturates at, else its largest critical level, else 1."""
    if not tails:
        return max(levels, default=mpf(1)), DIGITS
    tops = [t for t, _ in tails]
    if max(tops) - min(tops) > max(tops) * mpf(10) ** -25:
        raise Unsuited("it saturates at several moduli")
    return max(tops), max(d for _, d in tails)


def _begun(b: _Branch, end: float, top: mpf) -> mpf:
    """Where log(T/|f|) has come down to _BEGUN, next to this end; the other end, if it is never larger."""
    near, far = mpf(end), b.ends[0] if end == b.monotone.hi else b.ends[1]
    with mp.workdps(20):
        sign = mp.sign(b.f(near))
        for z in (far, *[None] * 40):
            z = (near + far) / 2 if z is None else z
            value = b.f(z)
            if mp.sign(value) == sign and mp.log(top / abs(value)) < _BEGUN:
                if z == far:
                    return far
                near = z
            else:
                far = z
    return near


def _stretches(b: _Branch, cut: dict[float, mpf]) -> list[Stretch]:
    """One branch cut at its zero and where it begins to saturate, and each part into what is next to its ends."""
    m = b.monotone
    marks = [(b.ends[0], m.at_lo), (b.ends[1], m.at_hi)]
    scale = min(1.0, max([abs(v) for _, v in marks if np.isfinite(v)], default=1.0) or 1.0)
    special = [p for p, v in marks if not np.isfinite(v) or (abs(v) < _ZERO * scale and abs(p) != WINDOW)]
    if m.at_lo * m.at_hi < 0 and not special:
        special = [_root(b, float(m.preimage(np.array([0.0]))[0]))]
    points = sorted({*b.ends, *special, *[c for c in cut.values() if b.ends[0] < c < b.ends[1]]})
    found: list[Stretch] = []
    for u, v in pairwise(points):
        deep = [p for p in (u, v) if float(p) in cut]
        if deep:
            found.append(Stretch(0.0, float(v - u), deep[0], 1 if deep[0] == u else -1, False, True))
            continue
        half = (v - u) / 2
        for p, other, direction in ((u, v, 1), (v, u, -1)):
            if p in special:
                h = half if other in special else min(half, mpf(1))
                found.append(Stretch(math.log(_CLOSEST), float(mp.log(h)), p, direction, True, False))
            else:
                h = 2 * half - min(half, mpf(1)) if other in special else half
                found.append(Stretch(0.0, float(h), p, direction, False, False))
    return found


def _root(b: _Branch, start: float) -> mpf:
    """The zero of f to many digits."""
    slope = lambdify(b.x, diff(b.expr, b.x), modules=[mp.functions(), "mpmath"])
    with mp.workdps(DIGITS + 20):
        z = mpf(start)
        for _ in range(8):
            step = b.f(z) / slope(z)
            z -= step
            if abs(step) < mpf(10) ** -90:
                break
        return z if abs(z) > mpf(10) ** -85 else mpf(0)
