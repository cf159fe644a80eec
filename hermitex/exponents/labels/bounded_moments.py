"""E[b(z) He_a(z)] = sum over boxes of b prod_i int He_{a_i} phi, in [low, high]: a moment of a bounded function.

The space is cut into boxes; on each the range of b (`ranges`) replaces b, and where the range is wide the box is cut
again. Such a moment exists and is found for any b at poles, jumps or infinity, and needs only ranges: so
this is tried where no rule gives an integral. A step b = 1(u > c) of a label is a label map that every label has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Rational, Symbol

from hermitex.errors import NoClosedForm
from hermitex.exponents.directions.intervals import ZERO as NOTHING
from hermitex.exponents.directions.intervals import Interval, enclosing_interval, scale_interval
from hermitex.exponents.labels.box_ranges import BENT, SOFT, Range, ranges
from hermitex.symbolic.budget import checkpoint, kept, unless_refused
from hermitex.symbolic.series.polynomials import to_hermite
from hermitex.symbolic.terms import by_core
from hermitex.symbolic.weak import in_heavisides

MOST_VARIABLES = 4  # 300,000 boxes are 23 to a side in four variables, but 12 in five


class Bounded:
    """b(z), bounded, over boxes; cut when a moment is first asked for, then kept.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> from sympy import Heaviside
    >>> found = Bounded(Heaviside(1/z1 + z2), (z1, z2)).moment({(1, 0): Rational(1)})
    >>> found.excludes_zero, found.high - found.low < Fraction(1, 50)
    (True, True)
    """

    def __init__(self, b: Expr, variables: Sequence[Symbol]) -> None:
        self.b, self.variables = b, [v for v in variables if b.has(v)]
        self.silent = [i for i, v in enumerate(variables) if not b.has(v)]
        self._cut: tuple[np.ndarray, Range] | None = None  # boxes [low or high, variable, box], b on each

    def moment(self, form: Mapping[tuple[int, ...], Expr]) -> Interval:
        """Two rationals about E[b sum_a p_a He_a].

        Raises
        ------
        NoClosedForm : b holds a function without a known range, is not bounded, or depends on too many variables.
        """
        if self._cut is None:
            self._cut = self._boxes()
        total = NOTHING
        for a, p in form.items():
            total = total.plus(scale_interval(self._entry(a), p))
        return total

    def _entry(self, a: tuple[int, ...]) -> Interval:
        assert self._cut is not None
        if any(a[i] for i in self.silent):
            return NOTHING
        a = tuple(n for i, n in enumerate(a) if i not in self.silent)
        boxes, b = self._cut
        open_ = b.high > b.low
        middle = (_over(boxes, a, _primitive)*(b.low + b.high)/2).sum()
        rounding = 1e-12  # of a sum of at most 300,000 products, each good to a few units of the last place
        slack = (_over(boxes[:, :, open_], a, _variation)*(b.high - b.low)[open_]/2).sum() + rounding*np.abs(b).max()
        return Interval(Fraction(float(middle - slack)), Fraction(float(middle + slack)))

    def _boxes(self) -> tuple[np.ndarray, Range]:
        r = len(self.variables)
        if not 0 < r <= MOST_VARIABLES:
            raise NoClosedForm(self.b, f"boxes in {r} variables are too many")
        line = np.array([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf])
        at = np.stack([i.ravel() for i in np.meshgrid(*[np.arange(len(line) - 1)]*r, indexing="ij")])
        open_ = np.stack([line[at], line[at + 1]])
        done: list[tuple[np.ndarray, Range]] = []
        size, axis = 0.0, 0
        most_boxes = 300_000  # their ends in four variables are 19 MB of doubles
        enough = 2e-3  # of the largest moment there could be, left open; chosen by trial
        while open_.shape[2]:
            checkpoint("cutting a bounded function into boxes")
            b = ranges(self.b, {v: Range(open_[0, i], open_[1, i]) for i, v in enumerate(self.variables)})
            if not size:
                size = max(np.abs(b.low).max(), np.abs(b.high).max())
                if not np.isfinite(size):
                    raise NoClosedForm(self.b, "it is not seen to be bounded")
            lost = (b.high - b.low)*_weight(open_)
            small = lost <= size*enough/(20*most_boxes)
            done.append((open_[:, :, small], Range(b.low[small], b.high[small])))
            open_, b = open_[:, :, ~small], Range(b.low[~small], b.high[~small])
            if lost[~small].sum() < size*enough or open_.shape[2] > most_boxes:
                done.append((open_, b))
                break
            open_ = _halved(open_, axis)
            axis = (axis + 1) % r
        boxes = np.concatenate([d[0] for d in done], axis=2)
        return boxes, Range(*(np.concatenate([d[1][i] for d in done]) for i in range(2)))


def _halved(boxes: np.ndarray, axis: int) -> np.ndarray:
    """Each box cut in two along one axis, an unbounded one a unit beyond its end."""
    low, high = boxes[0, axis], boxes[1, axis]
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(low), high - 1, np.where(np.isinf(high), low + 1, (low + high)/2))
    one, two = boxes.copy(), boxes.copy()
    one[1, axis], two[0, axis] = middle, middle
    return np.concatenate([one, two], axis=2)


# -- integrals over boxes ----------------------------------------------------------------------------------------------
def _over(boxes: np.ndarray, a: Sequence[int], primitive: Callable[[np.ndarray, int], np.ndarray]) -> Any:
    return np.prod([primitive(hi, n) - primitive(lo, n) for lo, hi, n in zip(boxes[0], boxes[1], a, strict=True)], axis=0)


def _weight(boxes: np.ndarray) -> Any:
    """The largest contribution of a box to the moments of order 0 and 2, which represent all."""
    return sum(_over(boxes, [n if i == j else 0 for j in range(boxes.shape[1])], _variation)
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
    from scipy.special import roots_hermitenorm

    if n == 0:
        return _primitive(x, 0)
    zeros = roots_hermitenorm(n)[0]
    total, ends = np.zeros_like(x), [-np.inf, *zeros, np.inf]
    for lo, hi in pairwise(ends):
        at = np.clip(x, lo, hi)
        total = total + np.abs(_primitive(at, n) - _primitive(np.full_like(x, lo), n))
    return total


# -- sums of polynomials times bounded functions ------------------------------------------------------------------------
def enclose_average(f: Expr, variables: Sequence[Symbol]) -> Interval | None:
    """Two rationals about E[f], f = sum_i p_i(z) b_i(z) with polynomials p_i and bounded b_i; None if it is not seen to be.

    Examples
    --------
    >>> from sympy import floor, tanh
    >>> from hermitex.symbols import z1, z2
    >>> found = enclose_average(floor(z1*z2)*z1*z2*tanh(z2)**2, (z1, z2))
    >>> float(found.low) < 0.757 < float(found.high), enclose_average(sp.exp(z1*z2), (z1, z2)) is None
    (True, True)
    """
    return unless_refused(lambda: _enclosed(by_core(_in_bounded(f), variables), tuple(variables)))


def _enclosed(parts: dict[Expr, Expr], variables: tuple[Symbol, ...]) -> Interval | None:
    most_parts = 8  # each is cut into boxes of its own; chosen by trial
    if len(parts) > most_parts:
        return None
    total = NOTHING
    for core, p in parts.items():
        form = {a if isinstance(a, tuple) else (a,): c for a, c in to_hermite(p, *variables).items()}
        mean = enclosing_interval(form.get((0,)*len(variables), sp.S.Zero)) if core == 1 else _bounded(core, variables).moment(form)
        total = total.plus(mean)
    return total


def has_moments(f: Expr, variables: Sequence[Symbol]) -> bool:
    """Is f, by its form, a sum of polynomials times bounded functions, which has every moment?

    Examples
    --------
    >>> from sympy import sqrt
    >>> from hermitex.symbols import z1, z2
    >>> has_moments(sp.log(1 + sp.exp(z1*z2)) + sqrt(1 + z1**4), (z1, z2)), has_moments(sp.exp(z1*z2), (z1, z2))
    (True, False)
    """
    line = {v: Range(np.full(1, -np.inf), np.full(1, np.inf)) for v in variables}
    cores = unless_refused(lambda: [ranges(core, line) for core in by_core(_in_bounded(f), variables) if core.free_symbols])
    return cores is not None and all(np.isfinite(ends).all() for ends in cores)


@kept(8)
def _bounded(core: Expr, variables: tuple[Symbol, ...]) -> Bounded:
    return Bounded(core, variables)


def _in_bounded(f: Expr) -> Expr:
    """floor(u) = u - frac(u), |u| = u sign(u), max(a, b) = b + (a - b) 1(a > b): polynomials times bounded functions."""
    f = f.replace(lambda e: e.is_Pow and e.exp.is_Rational and e.exp > 0 and not e.exp.is_Integer and e.base.free_symbols, _root)
    f = f.replace(lambda e: isinstance(e, sp.Piecewise), in_heavisides).replace(sp.log, _split_softplus)
    for head, step in ((sp.Max, 1), (sp.Min, -1)):
        f = f.replace(head, lambda *e, step=step: reduce(lambda a, b: b + (a - b)*sp.Heaviside(step*(a - b)), e))
    f = f.replace(sp.ceiling, lambda u: u + sp.frac(-u)).replace(sp.floor, lambda u: u - sp.frac(u))
    return f.replace(sp.Abs, lambda u: u*sp.sign(u))


def _root(e: Expr) -> Expr:
    """u^q, u >= 0: u^n (1 + u) times a bounded function, n the integer part of q."""
    u, q = e.as_base_exp()
    n = sp.floor(q)
    return u**n*(1 + u)*BENT(u, q - n)


def _split_softplus(u: Expr) -> Expr:
    """log(1 + e^v) = v 1(v > 0) + log(1 + e^-|v|), whose last term is bounded."""
    v = next((a.args[0] for a in sp.Add.make_args(u) if isinstance(a, sp.exp)), None)
    if v is None or u != 1 + sp.exp(v):
        return sp.log(u)
    return v*sp.Heaviside(v) + SOFT(v)


# -- where to cut ------------------------------------------------------------------------------------------------------
def thresholds(u: Expr, variables: Sequence[Symbol]) -> list[Expr]:
    """A few labels spread over the law of u, short binary fractions: any is right, good ones make the moments large.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> thresholds(z1*z2, (z1, z2))[1]
    0
    """
    points = np.random.default_rng(5).standard_normal((len(variables), 400))
    values = unless_refused(lambda: ranges(u, {v: Range(x, x) for v, x in zip(variables, points, strict=True)}))
    if values is None:
        return []
    middle = (values.low + values.high)/2
    middle = np.sort(middle[np.isfinite(middle)])
    if len(middle) < 100:
        return []
    low, centre, high = (middle[int(q*len(middle))] for q in (0.2, 0.5, 0.8))
    unit = 2.0**np.floor(np.log2(max(high - low, 1e-9*abs(centre), 1e-12)) - 3)
    quantiles = (0.8, 0.5, 0.2, 0.94, 0.06)  # the threshold 0.8 first: at the median of an odd label its even moments vanish
    found = [Rational(round(float(middle[int(q*len(middle))]/unit)))*Rational(unit) for q in quantiles]
    if abs(float(found[1])) < 0.1*(high - low):
        found[1] = Rational(0)
    return list(dict.fromkeys(found))
