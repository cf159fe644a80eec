"""int f = h sum_j f(jh) + O(exp(-2 pi d/h)): the trapezoid rule, on the line and after a double-exponential change.

Both rules are nested, so each halving of the step gives its own error estimate: the change it made. What has settled is
verified on shifted nodes of another step, none of which is among those before: what aliases on a grid does so on its
halves, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Dummy, cosh, exp, pi, sinh

from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.ball_evaluation import Swift
from hermitex.symbolic.digits.mp_backend import MPMath

_LEVELS, _PER_STEP = 9, 2  # halvings of the step at least, and bits for each node of a unit of the finest one
Function = Callable[[Any], Any]


_WIDER, _SHIFT = mpf("1.557377045"), mpf("0.381966011250105")  # of a step, in verification
_AGREE = 8  # how many tolerances two rules may differ by
_COARSE = mpf(1) / 256  # a step below which few integrands settle
_REST = 12  # a frequency beside those that are known


class Sum(NamedTuple):
    """Value, error estimate, and the integral of |f|, against which rounding is measured."""

    value: Any
    error: Any
    scale: Any

    def __add__(self, other: Any) -> Sum:
        return Sum(self.value + other.value, self.error + other.error, self.scale + other.scale)


def trapezoid(f: Function, L: Any, tolerance: Callable[[Any], Any], *, frequency: Any = 0, most: int = 150_000) -> Sum | None:
    """int_{-L}^{L} f for f analytic about the line and negligible at +-L; None where `most` values of f do not settle it.

    `tolerance` maps the scale int |f| to the error allowed; `frequency` is what is known to oscillate in f.

    Examples
    --------
    >>> from hermitex.symbolic.arithmetic import exp, mpf, pi, sqrt, almosteq
    >>> found = trapezoid(lambda x: exp(-x*x), mpf(7), lambda scale: scale*mpf(2)**-44)
    >>> almosteq(found.value, sqrt(pi), rel_eps=mpf(2)**-44)
    True
    """
    h = mpf(1) / 2
    while h * (frequency + _REST) > 6 and h * most > 2 * L:
        h /= 2
    value, size = _shifted(f, L, h, mpf(0))
    previous = value * h
    if (abs(f(L)) + abs(f(-L))) * _COARSE > _AGREE * tolerance(size * h):
        return None  # not negligible there, beside what is small everywhere: it would take all of `most` to see that
    while 4 * L / h <= most:
        checkpoint("summing a Gaussian integral")
        more, much = _shifted(f, L, h, mpf(1) / 2)
        value, size, h = value + more, size + much, h / 2
        total = value * h
        change, previous = abs(total - previous), total
        if change <= tolerance(size * h):
            other, _ = _shifted(f, L, _WIDER * h, _SHIFT)
            gap = abs(other * _WIDER * h - total)
            if gap <= _AGREE * tolerance(size * h):
                return Sum(total, max(change, gap) + size * h * mp.eps * 8, size * h)
    return None


def _shifted(f: Function, L: Any, h: Any, shift: Any) -> tuple[Any, Any]:
    """sum f and sum |f| over the nodes (j + shift) h in [-L, L]."""
    total, size = mpf(0), mpf(0)
    reach = int(L / h) + 1
    for j in range(-reach, reach + 1):
        x = (j + shift) * h
        if abs(x) <= L:
            if not j % 1024:
                checkpoint("summing a Gaussian integral")
            y = f(x)
            total, size = total + y, size + abs(y)
    return total, size


@lru_cache(maxsize=64)
def _nodes(precision: int, level: int, reach: int) -> tuple[tuple[Any, Any], ...]:
    """(delta, weight) of the new nodes of a level, x = 1 - delta; down to delta = 2^-reach."""
    with mp.workprec(precision):
        h, found = mpf(2) ** -level, []
        j = 1
        while True:
            found.append(_node(j * h))
            if found[-1][0] < mpf(2) ** -reach:
                return tuple(found)
            j += 1 if level == 0 else 2


@lru_cache(maxsize=128)
def _off_grid(precision: int, h: Any, first: Any) -> list[tuple[Any, Any]]:
    """The nodes (j + first) h of the rule that verifies, as many as were asked for so far."""
    return []


def double_exponential(left: Function, right: Function, length: Any, tolerance: Callable[[Any], Any],
                       *, reach: int) -> Sum | None:
    """int over an interval of that length; left(s), right(s) give f at distance s from either end.

    tanh-sinh: end points may be singular, since f is asked for the distance and never for a difference. Its error is
    exp(-c/h) at best, so that many digits need more levels, on however short a piece.

    Examples
    --------
    >>> from hermitex.symbolic.arithmetic import mpf, sqrt, almosteq
    >>> rough, smooth = lambda s: 1/sqrt(s), lambda s: 1/sqrt(1 - s)
    >>> found = double_exponential(rough, smooth, mpf(1), lambda scale: scale*mpf(2)**-45, reach=200)
    >>> almosteq(found.value, 2, rel_eps=mpf(2)**-40)
    True
    """
    half = length / 2
    centre = left(half) * mp.pi / 2
    total, size, previous = centre, abs(centre), None
    small = mp.eps / 16
    for level in range(max(_LEVELS, (mp.prec // _PER_STEP).bit_length())):
        checkpoint("summing a Gaussian integral")
        for side in (left, right):
            idle = 0
            for delta, weight in _nodes(mp.prec, level, reach):
                term = weight * side(half * delta)
                total, size = total + term, size + abs(term)
                idle = idle + 1 if abs(term) <= small * size else 0
                if idle == 4 + 2**level and delta < 0.01:
                    break
        h = mpf(2) ** -level
        value = total * h * half
        if previous is not None and level >= 3:
            change, allowed = abs(value - previous), tolerance(size * h * half)
            if change <= allowed:
                gap = abs(_other(left, right, half, _WIDER * h, small * size, reach) - value)
                if gap <= _AGREE * allowed:
                    return Sum(value, max(change, gap) + size * h * half * mp.eps * 8, size * h * half)
        previous = value
    return None


def _other(left: Function, right: Function, half: Any, h: Any, small: Any, reach: int) -> Any:
    """The double-exponential rule of step h with shifted nodes; terms from `small` on."""
    total = mpf(0)
    for side, first in ((left, 1 - _SHIFT), (right, _SHIFT)):
        idle, j, known = 0, 0, _off_grid(mp.prec, h, first)
        while True:
            if j == len(known):
                known.append(_node((j + first) * h))
            delta, weight = known[j]
            term = weight * side(half * delta)
            total, j = total + term, j + 1
            idle = idle + 1 if abs(term) <= small else 0
            if (idle >= 4 + 1 / h and delta < 0.01) or delta < mpf(2) ** -reach:
                break
    return total * h * half


def _node(t: Any) -> tuple[Any, Any]:
    """(delta, weight) of x = tanh(pi/2 sinh t) = 1 - delta; the weight is pi/2 cosh(t) (1 - x^2)."""
    below, rises = _formulas(mp.prec)
    delta = below(t)
    return delta, rises(t) * delta * (2 - delta)


@lru_cache(maxsize=16)
def _formulas(precision: int) -> tuple[Swift, Swift]:
    """delta(t) and pi/2 cosh(t)."""
    t = Dummy("t", real=True)
    with mp.workprec(precision):
        return Swift(2 / (1 + exp(pi * sinh(t))), [t], MPMath()), Swift(pi / 2 * cosh(t), [t], MPMath())
