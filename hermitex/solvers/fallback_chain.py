"""The chain of last resorts, each only on the points still open:

    Newton -> 0, where a positive unknown runs to it -> Anderson -> damped iteration -> 0 -> further starts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import BadInput
from . import fixed_point
from .batch import Array, Field, Params, positive_mask, start, take_points
from .boundary import at_zero, is_below_rounding
from .fixed_point import GROWS
from .newton import Both, newton
from .problem import SOUND, START, Problem
from .root_verdict import cancelled_equations, double_root_reasons
from .solution import Solution
from .solve_limits import is_time_up
from .starts import solve_from_further_starts

Solver = Callable[[Array, Params], Solution]

_INDEX = "_index"  # the parameter that numbers the points
_LEAST = 1e-13  # a positive unknown below this part of its start may have been meant to be 0
_ARRAYS = ("residual", "converged", "iterations", "stability", "error", "method", "branch", "reason")


def solve_robustly(
    x0: Any,
    p: Params | None = None,
    *,
    names: Sequence[str],
    residual: Field | None = None,
    jacobian: Field | None = None,
    both: Both | None = None,
    step: Field | None = None,
    positive: Any = None,
    explicit: Any = None,
    bent: Any = None,
    sized: Both | None = None,
    rounding: Field | None = None,
    zero: Array | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-14,
    max_steps: int = 100,
    contraction: bool = True,
    raise_on_failure: bool = True,
) -> Solution:
    """Newton; where that fails Anderson; where that fails damped iteration. Each only on the points still open.

    Parameters
    ----------
    residual, jacobian, both : as in `newton.newton`; without them the first method is Anderson
    p : as in `newton.newton`; START in it is the first start where x0 is what came of it
    step : the right-hand sides G(x, p); taken as x - residual where it is not given
    explicit, sized, rounding : as in `problem.Problem`. Given both, a root must not be one of rounding only, a positive unknown may
        be 0, and where nothing else helps further starts are tried
    bent, contraction : as in `newton.newton`
    zero : the mask (n, B) of the positive unknowns that are asked at the boundary 0 first, in place of their start
    max_steps : of Newton; Anderson has 5 times, the damped iteration 20 times as many

    A point that Anderson or the damped iteration has brought near is finished by Newton, so that all points reach the
    same accuracy. `.method` names the methods that each point took.

    Examples
    --------
    >>> F = lambda x, p: x - 1/(p["lam"] + 2/(1 + x))
    >>> s = solve_robustly([1.0], {"lam": 0.1}, names=["V"], residual=F, positive=True)
    >>> round(s["V"], 6), s.method
    (0.844289, 'anderson')
    """
    p, names = dict(p or {}), tuple(names)
    if residual is None and step is None:
        raise BadInput("robust needs residual= or step=")
    if step is None:
        function = residual
        assert function is not None
        step = lambda x, q: x - function(x, q)  # noqa: E731
    x, single = start(x0, p, names)
    common = {"names": names, "positive": positive, "rtol": rtol, "atol": atol, "raise_on_failure": False}
    exact = residual is not None and (jacobian is not None or both is not None)

    problem, sound, trail = None, None, np.full(x.shape[1], "", dtype=object)
    if residual is not None and both is not None and sized is not None:
        mask, rows = positive_mask(positive, names), np.array(explicit, dtype=bool)
        problem = Problem(residual, both, names, mask, rows, mask if bent is None else mask & np.array(bent, dtype=bool), sized,
                          rtol, rounding)
        sound, p = partial(cancelled_equations, problem), {START: x, **p, _INDEX: np.arange(x.shape[1])}

    def polished(y: Array, q: Params) -> Solution:
        assert residual is not None
        return newton(residual, jacobian, y, q, both=both, bent=bent, max_steps=max_steps, sound=sound, contraction=contraction,
                      **common)

    def slow(solve: Callable[..., Solution], steps: int, **options: Any) -> Solver:
        def run(y: Array, q: Params) -> Solution:
            found = solve(step, y, q, max_steps=steps, **options, **common)
            if problem is not None:
                trail[q[_INDEX]] = found.reason
            if not exact:
                return found
            last = polished(_usable(found.state, y, positive, names), q)
            if problem is not None:  # a map that hardly moves is no solution either
                lost = [f"the equation of {said} hardly moves its unknowns there, and does not hold: no solution" if said else ""
                        for said in cancelled_equations(problem, found.state, problem.both(found.state, q)[1], q)]
                found = replace(found, converged=found.converged & np.equal(lost, ""),
                                reason=np.where(found.converged, np.array(lost, dtype=object), found.reason))
            return _better_pointwise(found, replace(last, method=f"{found.method} + newton"))

        return run

    slow_ones = [slow(fixed_point.anderson, 5 * max_steps), slow(fixed_point.damped, 20 * max_steps, damping=0.5)]
    found = polished(x, p) if exact else slow_ones.pop(0)(x, p)
    p.pop(SOUND, None)  # no other start was looked at before
    if problem is not None:
        found = _at_boundary(found, problem, x, p, found.state, 0.0)
        if zero is not None and zero.any():
            found = _at_boundary(found, problem, x, p, np.where(zero, 0.0, x), 0.0, asked=zero.any(axis=0))
    for solve in slow_ones:
        found = _retry_open_points(found, solve, x, p)
    if problem is not None and slow_ones:
        found = _at_boundary(found, problem, x, p, found.state, 0.0, asked=is_below_rounding(problem, found.state, p, _LEAST))
    vanishes = 1e-25  # a right-hand side at 0 that is no larger is rounding, where no iteration has found it larger
    steps_again = 20  # of Newton's method from a further start
    if problem is not None and not np.all(found.converged) and not is_time_up():
        found = _at_boundary(found, problem, x, p, 0*x, vanishes)
        open_ = np.flatnonzero(~np.asarray(found.converged))
        again = partial(newton, problem.residual, None, both=both, bent=bent, sound=sound, max_steps=steps_again, **common)
        for k, s in solve_from_further_starts(problem, x[:, open_], take_points(p, open_), again):
            good = np.flatnonzero(s.converged)
            found = merge_solutions([(np.arange(x.shape[1]), found), (open_[k[good]], select_points(s, good))], x.shape[1], names)
        found = _at_boundary(found, problem, x, p, found.state, 0.0, implicit=True)
        ended = zip(np.ravel(found.converged), np.ravel(found.reason), trail, strict=True)
        reasons = [_failure_reason(bool(ok), str(r), str(t)) for ok, r, t in ended]
        open_ = np.flatnonzero(~np.asarray(found.converged))
        if open_.size:
            y, q = found.state[:, open_], take_points(p, open_)
            with np.errstate(all="ignore"):
                for i, said in zip(open_, double_root_reasons(problem, y, problem.both(y, q)[1], q), strict=True):
                    reasons[i] = said or reasons[i]
        found = replace(found, reason=np.array(reasons, dtype=object))
    found = found.point(0) if single else found
    return found.require() if raise_on_failure else found


def _failure_reason(ok: bool, reason: str, trail: str) -> str:
    """The reason of the method that came nearest, and how the unknowns run off under iteration, if they do."""
    _, grows, how = trail.partition(GROWS)
    if ok or not grows:
        return reason
    end = ": no finite solution was found" if " grows " in how else ""  # what falls may fall to a solution
    return f"{reason}{'' if grows in reason else f'; {grows}{how}'}{end}"


def _at_boundary(found: Solution, problem: Problem, x: Array, p: Params, near: Array, bound: float, *,
                 implicit: bool = False, asked: Any = None) -> Solution:
    """What is not solved, or at the least of what is positive, with those unknowns at 0 that are small in the state `near`.

    asked : the points (B,) at which this is asked whatever was found
    """
    beside = 1e-3  # of the solution: an unknown below this part of a small one lies beside it, not at it
    with np.errstate(all="ignore"):
        least = (np.where(problem.positive[:, None], found.state, np.inf) < _LEAST * np.minimum(x, 1.0)).any(axis=0)
        bounds = np.full_like(found.state, bound)
        if asked is None:
            asked = ~np.asarray(found.converged) | least | is_below_rounding(problem, found.state, p, _LEAST)
            bounds = np.where(found.converged, beside * found.state, bounds)  # beside a solution that is very small
        k = np.flatnonzero(asked)
        if not k.size:
            return found
        zero = at_zero(problem, x[:, k], near[:, k], take_points(p, k), bounds[:, k], implicit=implicit)
        good = np.flatnonzero(zero.converged)
        zero = replace(zero, iterations=np.asarray(found.iterations)[k])
        return merge_solutions([(np.arange(x.shape[1]), found), (k[good], select_points(zero, good))], x.shape[1], found.unknowns)


def merge_solutions(parts: Sequence[tuple[Array, Solution]], points: int, names: Sequence[str],
             origin: Mapping[str, Any] | None = None) -> Solution:
    """Solutions of subsets of the points put together in order; a later one replaces an earlier one.

    origin : what is told of the whole (by default that of the last); its quadrature error is the worst of those that are left
    """
    values: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    part = np.full(points, -1)  # which of them each point is of
    for i, (k, s) in enumerate(parts):
        part[k] = i
        for target, source in ((values, dict(s.value)), (fields, {f: getattr(s, f) for f in _ARRAYS})):
            for name, v in source.items():
                if name not in target:
                    kind = np.asarray(v).dtype
                    target[name] = np.empty(points, dtype=object if kind.kind in "OUS" else kind)
                target[name][k] = v
    method = fields.pop("method")
    told = [parts[i][1].origin for i in np.unique(part[part >= 0])]
    worst = max((float(o["quadrature_error"]) for o in told if "quadrature_error" in o), default=None)
    return Solution(
        values,
        method=method[0] if len(set(method.tolist())) == 1 else method,
        unknowns=tuple(names),
        notes=tuple(dict.fromkeys(n for _, s in parts for n in s.notes)),
        origin={**(parts[-1][1].origin if origin is None else origin), **({} if worst is None else {"quadrature_error": worst})},
        **fields,
    )


def _retry_open_points(found: Solution, solve: Solver, x: Array, p: Params) -> Solution:
    """Try `solve` on the points of `found` that are open; it counts where it converged or came nearer."""
    bad = np.flatnonzero(~np.asarray(found.converged))
    if not bad.size or is_time_up():
        return found
    every = np.arange(x.shape[1])
    second = _better_pointwise(select_points(found, bad), solve(x[:, bad], take_points(p, bad)))
    spent = np.array(found.iterations)
    spent[bad] += second.iterations
    return replace(merge_solutions([(every, found), (bad, second)], every.size, found.unknowns), iterations=spent)


def _better_pointwise(a: Solution, b: Solution) -> Solution:
    """Point by point b where it converged or has the smaller residual, else a."""
    near = np.nan_to_num(np.asarray(b.residual), nan=np.inf) <= np.nan_to_num(np.asarray(a.residual), nan=np.inf)
    use = np.flatnonzero(np.asarray(b.converged) | (~np.asarray(a.converged) & near))
    every = np.arange(np.size(a.converged))
    return a if not use.size else merge_solutions([(every, a), (use, select_points(b, use))], every.size, a.unknowns)


def select_points(s: Solution, k: Array) -> Solution:
    """The points k of a batch."""
    fields = {f: v[k] if np.ndim(v := getattr(s, f)) else v for f in _ARRAYS}
    return replace(s, value={n: np.asarray(v)[k] for n, v in s.value.items()}, **fields)


def _usable(x: Array, fallback: Array, positive: Any, names: Sequence[str]) -> Array:
    bad = ~np.isfinite(x) | (positive_mask(positive, names)[:, None] & ~(x > 0))
    return np.where(bad.any(axis=0), fallback, x)


