"""Newton's method with one restart policy: each further start only at the points that are still open.

    x0  ->  where damped iteration leads from x0  ->  where F changes sign (one unknown)  ->  x0 times and plus some sizes

Positive unknowns may be 0, which has no logarithm: below a transition, and where nothing drives them,

    x_Z = 0,   rhs_Z(x) = 0,   rho(d rhs_Z/d x_Z) < 1   as x_Z -> 0,

with the other unknowns solved for next to them. An unknown that is small, but not 0, has a slope above 1 nearer to 0 than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import linear
from .batch import Array, Field, Params, merge_solutions, positive_mask, select_points, start, take_points
from .newton import Both, newton
from .solution import Solution
from .solve_limits import is_time_up

_LEAST = 1e-13  # a positive unknown below this part of its start may have been meant to be 0
_STANDS = 1e-50  # stands for 0 where the formulas are 0/0 there, and what is no larger is 0
_INDEX = "_index"  # the parameter that numbers the points


class Problem(NamedTuple):
    """n equations at all points at once; `positive`, `explicit` (rows that read x - rhs) and `bent` are masks over them."""

    residual: Field
    both: Both
    step: Field | None
    names: tuple[str, ...]
    positive: Array
    explicit: Array
    bent: Any
    options: dict[str, Any]

    def newton(self, start: Array, p: Params, max_steps: int) -> Solution:
        """Newton's method. A state that slopes determine to no digit is not solved, nor one next to a pole.

        Next to a pole a Newton step is short, too: there an implicit equation is larger than at either side of it.
        """
        found = newton(self.residual, None, start, p, names=self.names, positive=self.positive, bent=self.bent,
                       both=self.both, max_steps=max_steps, raise_on_failure=False, **self.options)
        k = np.flatnonzero(found.converged)
        if not k.size:
            return found
        x, some = found.state[:, k], take_points(p, k)
        F, J = self.both(x, some)
        terms = np.where(self.explicit[:, None], 2*np.abs(x), 0.0)
        size = np.where(self.positive[:, None], np.abs(x), np.maximum(np.abs(x), 1e-3))
        lost = linear.rounding_of_solution(J, x, terms, size) > 0.1
        if not self.explicit.all():
            around = np.fmax(*(np.abs(self.residual(x + part*size, some)) for part in (-0.1, 0.1)))
            clear = np.abs(F) > 1e-9*np.abs(self.residual(start, p)[:, k])
            lost |= (~self.explicit[:, None] & clear & (np.abs(F) > 10*around)).any(axis=0)
        ok, reason = np.array(found.converged), np.array(found.reason, dtype=object)
        ok[k[lost]], reason[k[lost]] = False, "the equations hold to rounding only there, or jump: no solution"
        return replace(found, converged=ok, reason=reason)


def solve_robustly(
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    residual: Field,
    both: Both,
    step: Field | None = None,
    positive: Any = None,
    explicit: Any = None,
    bent: Any = None,
    zero: Array | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 100,
    restarts: bool = True,
    contraction: bool = True,
    raise_on_failure: bool = True,
) -> Solution:
    """Newton's method from x0, and from further starts at the points that it does not solve.

    Parameters
    ----------
    residual, both, p, bent, contraction : as in `newton.newton`
    step : the right-hand sides G(x, p), for the start where iteration leads
    explicit : the mask of the rows that read x - rhs; given it, a positive unknown may be 0
    zero : the mask (n, B) of the positive unknowns that are asked at 0 first, in place of their start
    restarts : whether to try further starts

    Examples
    --------
    >>> F = lambda x, p: x - 1/(p["lam"] + 2/(1 + x))
    >>> both = lambda x, p: (F(x, p), (1 - 2/(p["lam"]*(1 + x) + 2)**2)[None])
    >>> round(solve_robustly([1.0], {"lam": 0.1}, names=["V"], residual=F, both=both, positive=True)["V"], 6)
    0.844289
    """
    p, names = dict(p or {}), tuple(names)
    x, single = start(x0, p, names)
    mask, rows = positive_mask(positive, names), np.zeros(len(names), dtype=bool) if explicit is None else np.array(explicit)
    q = Problem(residual, both, step, names, mask, rows, bent, {"rtol": rtol, "atol": atol, "contraction": contraction})
    every = np.arange(x.shape[1])
    with np.errstate(all="ignore"):
        found = _with_zeros(q, x, q.newton(x, p, max_steps), p)
        if zero is not None and zero.any():
            found = _with_zeros(q, x, found, p, asked=zero.any(axis=0), near=np.where(zero, 0.0, x), limit=1e-15)
        again = 20  # steps of Newton's method from a further start
        grown, far = np.zeros(x.shape, dtype=bool), 30.0  # times the start
        for begin in _policy(q) if restarts else ():
            k = np.flatnonzero(~np.asarray(found.converged))
            off = np.array(["runs to" in str(found.reason[i]) for i in k], dtype=bool)
            if begin.func is _resized:  # not where iteration ran off; an interval in which F changes sign is tried all the same
                k = k[~(grown[:, k].any(axis=0) & (off | rows.all()))]
            if not k.size or is_time_up():
                break
            y = begin(x[:, k], take_points(p, k))
            if begin.func is _iterated:  # the map of an implicit equation is x + F, which may run anywhere
                grown[:, k] = rows[:, None] & (np.abs(y) > far*np.maximum(np.abs(x[:, k]), 1.0))
            usable = (np.isfinite(y) & ~(mask[:, None] & (y <= 0))).all(axis=0)
            if usable.any():
                k, y = k[usable], y[:, usable]
                second = _with_zeros(q, x[:, k], q.newton(y, take_points(p, k), again), take_points(p, k))
                found = _better(found, k, second, every)
        if restarts and explicit is not None and not is_time_up():
            found = found if np.all(found.converged) else _with_zeros(q, x, found, p, near=0*x, limit=1e-15)
            found = _with_zeros(q, x, found, p, limit=0.0, implicit=True)
        open_ = np.flatnonzero(~np.asarray(found.converged) & grown.any(axis=0))
        reason = np.array(found.reason, dtype=object)
        for i in open_:
            run = ", ".join(u for u, g in zip(names, grown[:, i], strict=True) if g)
            reason[i] = f"{reason[i]}; {run} runs to infinity under iteration: no finite solution was found"
        found = replace(found, reason=reason)
    found = found.point(0) if single else found
    return found.require() if raise_on_failure else found


def _better(found: Solution, k: Array, second: Solution, every: Array) -> Solution:
    """The points k of `found` replaced where a further start converged, or came nearer."""
    nearer = np.nan_to_num(second.residual, nan=np.inf) < np.nan_to_num(np.asarray(found.residual)[k], nan=np.inf)
    use = np.flatnonzero(np.asarray(second.converged) | nearer)
    spent = np.array(found.iterations)
    spent[k] += second.iterations
    found = merge_solutions([(every, found), (k[use], select_points(second, use))], every.size, found.unknowns)
    return replace(found, iterations=spent)


def _policy(q: Problem) -> Iterator[Any]:
    """The further starts as functions of (x0, p)."""
    if q.step is not None:
        yield partial(_iterated, q)
    if len(q.names) == 1:
        for rank in range(4):  # changes of sign
            yield partial(_bracketed, q, rank)
    for size in (0.5, 0.1, 0.9, 2.0, 0.01, 10.0):
        for sign in (1.0,) if q.positive.all() else (1.0, -1.0):
            yield partial(_resized, q, size, sign)


def _resized(q: Problem, size: float, sign: float, x0: Array, p: Params) -> Array:
    return np.where(q.positive[:, None], x0*size, x0 + sign*size*np.maximum(np.abs(x0), 1.0))


def _iterated(q: Problem, x0: Array, p: Params) -> Array:
    """Where x <- x + (G(x) - x)/2 leads in some hundred steps, or beyond all bounds; the point before it where it leaves the
    numbers."""
    assert q.step is not None
    x, beyond = x0, 1e8*np.maximum(np.abs(x0), 1.0)  # Newton's method goes on from there, in logarithms
    for _ in range(300):
        new = (x + q.step(x, p))/2
        new = np.where((np.isfinite(new) & ~(q.positive[:, None] & (new <= 0))).all(axis=0), new, x)
        settled = (np.abs(new - x) <= 1e-15*np.abs(new)).all(axis=0) | (np.abs(new) > beyond).any(axis=0)
        x = new
        if settled.all() or is_time_up():
            break
    return x


def _bracketed(q: Problem, rank: int, x0: Array, p: Params) -> Array:
    """The middle of an interval across which F changes sign, over 24 orders of magnitude, NaN where there is none.

    rank : which of them, those first where x - rhs rises, then the nearest
    """
    decades = np.arange(-12.0, 12.01, 0.25)  # exponents of ten: four a decade tell most roots apart
    if q.positive[0]:
        grid = x0*10.0**decades[:, None]
    else:
        grid = x0 + np.concatenate([-(10.0**decades[::-1]), [0.0], 10.0**decades])[:, None]
    F = np.array([q.residual(row[None], p)[0] for row in grid])
    change = (np.sign(F[:-1])*np.sign(F[1:]) <= 0) & (F[:-1] != 0) & np.isfinite(F[:-1] + F[1:])
    away = np.abs(np.arange(len(change)) - len(change)//2)[:, None]
    order = np.where(change, away + 1e3*((F[1:] < F[:-1]) & q.explicit[0]), np.inf)
    row, columns = np.argsort(order, axis=0, kind="stable")[rank], np.arange(grid.shape[1])
    a, b, Fa = grid[row, columns], grid[row + 1, columns], F[row, columns]
    for _ in range(40):  # 2^-40 = 1e-12 of an interval: a start for Newton's method
        middle = np.where(a*b > 0, np.sign(a)*np.sqrt(np.abs(a*b)), (a + b)/2)
        left = np.sign(q.residual(middle[None], p)[0])*np.sign(Fa) > 0
        a, b = np.where(left, middle, a), np.where(left, b, middle)
    return np.where(np.isfinite(order[row, columns]), middle, np.nan)[None]


def _with_zeros(q: Problem, x0: Array, found: Solution, p: Params, *, asked: Any = None, near: Array | None = None,
                limit: float = 0.0, implicit: bool = False) -> Solution:
    """What is not solved, or at the least of what is positive, with those unknowns at 0 that are small in the state `near`.

    limit : a right-hand side at 0 that is no larger, for unknowns of the size 1, is rounding
    implicit : also the unknowns of implicit equations, which have no slope and hold at 0 exactly
    """
    if not (q.positive & (q.explicit | implicit)).any() or is_time_up():
        return found
    state, ok = found.state, np.asarray(found.converged)
    least = (np.where(q.positive[:, None], state, np.inf) < _LEAST*np.minimum(x0, 1.0)).any(axis=0)
    k = np.flatnonzero((~ok | least) if asked is None else asked)
    if not k.size:
        return found
    # next to a small solution 0 has to be far nearer to its right-hand side than that is
    limits = np.where(ok & (asked is None), 1e-3*np.abs(state), limit*np.minimum(np.abs(x0), 1.0))
    zero = _at_zero(q, x0[:, k], (state if near is None else near)[:, k], take_points(p, k), limits[:, k], implicit)
    good = np.flatnonzero(zero.converged)
    zero = replace(zero, iterations=np.asarray(found.iterations)[k])
    return merge_solutions([(np.arange(x0.shape[1]), found), (k[good], select_points(zero, good))], x0.shape[1], found.unknowns)


def _at_zero(q: Problem, x0: Array, x: Array, p: Params, limit: Array, implicit: bool) -> Solution:
    """Solutions with some unknowns at 0, those first that are small in the state x; converged where such a one was found."""
    n, points = x.shape
    may = (q.positive & (q.explicit | implicit))[:, None]
    Z = may & (~(x >= 1e-3*np.minimum(x0, 1.0)) | ((_rhs(q, x0, p) == 0) & q.explicit[:, None]))
    found, slope, ok, open_ = x.copy(), np.full(points, np.nan), np.zeros(points, dtype=bool), Z.any(axis=0)
    for _ in range(2*n + 1):
        for pattern in np.unique(Z[:, open_], axis=1).T:
            k = np.flatnonzero(open_ & (pattern[:, None] == Z).all(axis=0))
            some = take_points(p, k)
            y, solved = _solve_with_zeros(q, pattern, x0[:, k], x[:, k], some)
            left = _rhs(q, y, some)
            vanishes = left <= np.where(y == 0, limit[:, k], np.maximum(limit[:, k], 1e3*_STANDS))
            # what is left of an average that vanishes is another number beside it; exp(-50) is not
            vanishes |= (left < 1e-6) & (np.abs(_rhs(q, y*(1 + 1e-12), some) - left) > 0.1*left)
            vanishes &= q.explicit[:, None] | (y == 0)
            good = solved & vanishes[pattern].all(axis=0)
            found[:, k[good]] = y[:, good]
            slope[k[good]] = _slope_at_zero(q, pattern & q.explicit, y[:, good], take_points(some, np.flatnonzero(good)))
            ok[k[good]] = slope[k[good]] < 1
            # What does not vanish is not 0; what runs to 0 next to the others may be.
            other = pattern[:, None] & (vanishes | ~solved) | may & ~solved & ~(y >= 1e-8*np.minimum(x0[:, k], 1.0))
            open_[k] = ~good & (other != pattern[:, None]).any(axis=0) & other.any(axis=0)
            Z[:, k] = np.where(open_[k], other, Z[:, k])
        if not open_.any():
            break
    found = np.where(ok & (np.abs(found) <= _STANDS), 0.0, found)  # beside 0 Newton's method ends at any such number
    named = [", ".join(u for u, at in zip(q.names, column, strict=True) if at) for column in Z[:, ok].T]
    steepest = {u: max(s for s, v in zip(slope[ok], named, strict=True) if v == u) for u in named}
    notes = tuple(f"{u} = 0: a boundary, " + ("where its equation holds" if implicit else
                                              f"towards which iteration contracts (slope {s:.3g})") for u, s in steepest.items())
    nothing = np.full(points, np.nan)
    return Solution(dict(zip(q.names, found, strict=True)), residual=np.where(ok, 0.0, np.inf), converged=ok,
                    iterations=np.zeros(points, dtype=int), stability=nothing, error=nothing, method="newton at a boundary",
                    reason=np.full(points, "", dtype=object), unknowns=q.names, notes=notes)


def _rhs(q: Problem, x: Array, p: Params) -> Array:
    """|x - F| of an explicit row, |F| of an implicit one."""
    F = q.residual(x, p)
    return np.abs(np.where(q.explicit[:, None], x - F, F))


def _solve_with_zeros(q: Problem, zero: Array, x0: Array, x: Array, p: Params) -> tuple[Array, Array]:
    """(state, solved): the other unknowns solved for with the unknowns `zero` at 0."""
    rest = np.flatnonzero(~zero)
    y = np.where(zero[:, None], 0.0, x0)
    undefined = ~np.isfinite(q.residual(y, p)).all(axis=0)
    y[:, undefined] = np.where(zero[:, None], _STANDS, y[:, undefined])
    solved = np.full(x.shape[1], rest.size == 0)
    usable = np.isfinite(x[rest]) & ((x[rest] > 1e-8*x0[rest]) | ~q.positive[rest][:, None])
    for begin in (np.where(usable, x[rest], x0[rest]), x0[rest]):
        k = np.flatnonzero(~solved)
        if k.size:
            found = _rest(q, rest, y[:, k]).newton(begin[:, k], {**take_points(p, k), _INDEX: np.arange(k.size)}, 100)
            y[np.ix_(rest, k)] = found.state
            solved[k] = found.converged
    return y, solved


def _rest(q: Problem, rest: Array, y: Array) -> Problem:
    """The problem of the unknowns `rest`, the others as they are in y."""
    def both(v: Array, r: Params) -> tuple[Array, Array]:
        whole = y[:, np.asarray(r[_INDEX], dtype=int)].copy()
        whole[rest] = v
        own = {n: a for n, a in r.items() if n != _INDEX}
        F, J = q.both(whole, own)
        return F[rest], J[np.ix_(rest, rest)]

    return q._replace(residual=lambda v, r: both(v, r)[0], both=both, names=tuple(q.names[i] for i in rest),
                      explicit=q.explicit[rest], positive=q.positive[rest],
                      bent=None if q.bent is None else np.asarray(q.bent)[rest], options={**q.options, "contraction": False})


def _slope_at_zero(q: Problem, zero: Array, y: Array, p: Params) -> Array:
    """The spectral radius of d rhs_Z/d x_Z in the limit x_Z -> 0: read off as near to 0 as rounding lets it differ from 1.

    1 to rounding is the critical point itself: 0 is the solution if the slope falls from there; infinity where it does not.
    """
    slope, inside = np.full(y.shape[1], np.nan), np.flatnonzero(zero)
    if not inside.size:
        return np.zeros(y.shape[1])

    def radius(size: float) -> Array:
        x = np.where(zero[:, None], size, y)
        J = q.both(x, p)[1][np.ix_(inside, inside)]
        return linear.spectral_radius(np.eye(inside.size)[:, :, None] - J)

    for size in (10.0**-k for k in (24, 20, 16, 12, 10, 8)):
        if not np.isnan(slope).any():
            return slope
        rho = radius(size)
        clear = np.abs(rho - 1) > 1e-10 + 1e-14/np.sqrt(size)  # the derivative of f(sqrt(x) z) is known to that at x = size
        slope = np.where(np.isnan(slope) & clear, rho, slope)
    falls = np.isfinite(rho) & np.all([radius(size) < 1 - 1e-8 for size in (1e-4, 1e-3)], axis=0)
    return np.where(np.isnan(slope), np.where(falls, 1 - 1e-16, np.inf), slope)


__all__ = ["solve_robustly"]
