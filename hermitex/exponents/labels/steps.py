"""E[1(u > c) He_a(z)] = sum over boxes with u > c of prod_i int He_{a_i} phi, in [low, high]: a moment of a bounded label map.

The space is cut into boxes; on each the range of u (`ranges`) says that u > c, that u <= c, or neither, and what is
neither is cut again. The rest enters with half its weight, plus or minus the half. A step sees every label, has a moment
whatever u does at poles, jumps or infinity, and asks for nothing but ranges: so this is what is tried where no rule gives
an integral.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Expr, Heaviside, Rational, Symbol

from hermitex.errors import HermitexError
from hermitex.exponents.directions.intervals import ZERO as NOTHING
from hermitex.exponents.directions.intervals import Interval, scaled
from hermitex.exponents.labels.ranges import Range, ranges
from hermitex.symbolic.budget import checkpoint

MOST_VARIABLES = 4
_MOST_BOXES = 300_000
_ENOUGH = 2e-3    # weight that may stay undecided
_QUANTILES = (0.5, 0.8, 0.2, 0.94, 0.06)
_ROUNDING = 1e-12  # of a sum of at most _MOST_BOXES products, each good to a few units of the last place


class Step:
    """1(u(z) > c) over boxes; cut when a moment is first asked for, then kept.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> found = Step(1/z1 + z2, Rational(0), (z1, z2)).moment({(1, 0): Rational(1)})
    >>> found.excludes_zero, found.high - found.low < Fraction(1, 50)
    (True, True)
    """

    def __init__(self, u: Expr, c: Expr, variables: Sequence[Symbol]) -> None:
        self.u, self.c, self.variables = u, c, [v for v in variables if u.has(v)]
        self.silent = [i for i, v in enumerate(variables) if not u.has(v)]
        self._cut: tuple[np.ndarray, np.ndarray] | None = None  # boxes inside, boxes undecided: [2, r, count]

    @property
    def map(self) -> Expr:
        """The label map as an expression."""
        return Heaviside(self.u - self.c)

    def moment(self, form: Mapping[tuple[int, ...], Expr]) -> Interval:
        """Two rationals about E[1(u > c) sum_a p_a He_a].

        Raises
        ------
        NoClosedForm : u holds a function of which no range is known.
        """
        if self._cut is None:
            self._cut = self._boxes()
        total = NOTHING
        for a, p in form.items():
            total = total.plus(scaled(self._entry(a), p))
        return total

    def _entry(self, a: tuple[int, ...]) -> Interval:
        assert self._cut is not None
        if any(a[i] for i in self.silent):
            return NOTHING
        a = tuple(n for i, n in enumerate(a) if i not in self.silent)
        inside, open_ = self._cut
        middle = _signed(inside, a).sum() + _signed(open_, a).sum()/2
        slack = _absolute(open_, a).sum()/2 + _ROUNDING
        return Interval(Fraction(float(middle - slack)), Fraction(float(middle + slack)))

    def _boxes(self) -> tuple[np.ndarray, np.ndarray]:
        r = len(self.variables)
        line = np.array([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf])
        corner = np.meshgrid(*[np.arange(len(line) - 1)]*r, indexing="ij")
        at = np.stack([i.ravel() for i in corner])
        open_ = np.stack([line[at], line[at + 1]])
        inside, left = [], []
        axis = 0
        while open_.shape[2]:
            checkpoint("cutting the label into boxes")
            found = ranges(self.u, {v: Range(open_[0, i], open_[1, i]) for i, v in enumerate(self.variables)})
            c = float(self.c)
            inside.append(open_[:, :, found.low > c])
            open_ = open_[:, :, (found.low <= c) & (found.high > c)]
            weight = _weight(open_)
            small = weight < _ENOUGH/(20*_MOST_BOXES)
            left.append(open_[:, :, small])
            open_, weight = open_[:, :, ~small], weight[~small]
            if weight.sum() < _ENOUGH or open_.shape[2] > _MOST_BOXES:
                break
            open_ = _halved(open_, axis)
            axis = (axis + 1) % r
        return np.concatenate(inside, axis=2), np.concatenate([*left, open_], axis=2)


def _halved(boxes: np.ndarray, axis: int) -> np.ndarray:
    """Each box cut in two along one axis, an unbounded one a unit beyond its end."""
    low, high = boxes[0, axis], boxes[1, axis]
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(low), high - 1, np.where(np.isinf(high), low + 1, (low + high)/2))
    one, two = boxes.copy(), boxes.copy()
    one[1, axis], two[0, axis] = middle, middle
    return np.concatenate([one, two], axis=2)


# -- integrals over boxes ----------------------------------------------------------------------------------------------
def _signed(boxes: np.ndarray, a: Sequence[int]) -> Any:
    return np.prod([_primitive(hi, n) - _primitive(lo, n) for lo, hi, n in zip(boxes[0], boxes[1], a, strict=True)], axis=0)


def _absolute(boxes: np.ndarray, a: Sequence[int]) -> Any:
    return np.prod([_variation(hi, n) - _variation(lo, n) for lo, hi, n in zip(boxes[0], boxes[1], a, strict=True)], axis=0)


def _weight(boxes: np.ndarray) -> Any:
    """What a box may add to the moments of order 0 and 2 that stand in for all."""
    return sum(_absolute(boxes, [n if i == j else 0 for j in range(boxes.shape[1])])
               for i in range(boxes.shape[1]) for n in (0, 2))/boxes.shape[1]


def _primitive(x: np.ndarray, n: int) -> np.ndarray:
    """int_{-oo}^x He_n phi = -He_{n-1}(x) phi(x); the normal distribution at n = 0."""
    from scipy.special import ndtr

    if n == 0:
        return np.asarray(ndtr(x))
    y = np.where(np.isinf(x), 0.0, x)
    value = -np.polynomial.hermite_e.hermeval(y, [0]*(n - 1) + [1])*np.exp(-y*y/2)/np.sqrt(2*np.pi)
    return np.where(np.isinf(x), 0.0, value)


def _variation(x: np.ndarray, n: int) -> np.ndarray:
    """int_{-oo}^x |He_n| phi, from zero to zero of He_n."""
    if n == 0:
        return _primitive(x, 0)
    zeros = np.sort(np.polynomial.hermite_e.hermeroots([0]*n + [1]))
    total, ends = np.zeros_like(x), [-np.inf, *zeros, np.inf]
    for lo, hi in pairwise(ends):
        at = np.clip(x, lo, hi)
        total = total + np.abs(_primitive(at, n) - _primitive(np.full_like(x, lo), n))
    return total


# -- where to cut ------------------------------------------------------------------------------------------------------
def thresholds(u: Expr, variables: Sequence[Symbol]) -> list[Expr]:
    """A few labels spread over the law of u, short binary fractions: any is right, good ones make the moments large.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> thresholds(z1*z2, (z1, z2))[0]
    0
    """
    points = np.random.default_rng(5).standard_normal((len(variables), 400))
    try:
        values = ranges(u, {v: Range(x, x) for v, x in zip(variables, points, strict=True)})
    except HermitexError:
        return []
    middle = (values.low + values.high)/2
    middle = np.sort(middle[np.isfinite(middle)])
    if len(middle) < 100:
        return []
    low, centre, high = (middle[int(q*len(middle))] for q in (0.2, 0.5, 0.8))
    unit = 2.0**np.floor(np.log2(max(high - low, 1e-9*abs(centre), 1e-12)) - 3)
    found = [Rational(round(float(middle[int(q*len(middle))]/unit)))*Rational(unit) for q in _QUANTILES]
    if abs(float(found[0])) < 0.1*(high - low):
        found[0] = Rational(0)
    return list(dict.fromkeys(found))
