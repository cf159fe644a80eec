"""x <- x + a (rhs(x) - x), all unknowns at once: what approximate message passing does, step by step; it ends at stable points.

The path is kept. A settled state is checked as every solution is, and Newton's method from there must stay there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.errors import BadInput, UnknownName
from hermitex.solvers.interval import interior_point, interval_text, is_outside
from hermitex.solvers.solution import REFUSED, Solution
from hermitex.solvers.solve_limits import is_time_up, limit_time, ran_out, require_tolerance
from hermitex.systems.newton_step import SMALL
from hermitex.systems.solve import CHUNK, checked_start, join_chunks, points_of, refusal_reasons, shape_solution, solve_points
from hermitex.systems.state_evaluation import States

METHODS = ("newton", "iterate")


def require_method(asking: str, method: str, damping: Any) -> None:
    """One line for an unknown method, for a damping out of range, and for one where nothing is iterated."""
    _require_known(asking, method, damping)
    if method == "newton" and damping != 1:
        raise BadInput(f"{asking}: damping = {damping!r} needs method='iterate'; Newton's method is not damped")


def _require_known(asking: str, method: str, damping: Any) -> None:
    if method not in METHODS:
        raise UnknownName(str(method), METHODS, "method")
    if isinstance(damping, bool) or not (isinstance(damping, int | float) and 0 < damping <= 1):
        raise BadInput(f"{asking}: damping is the weight of the new value, above 0 and at most 1, not {damping!r}")


def solved_by(method: str, damping: float, program: Any, numbers: Mapping[str, Any], *, start: Mapping[str, Any], tolerance: float,
              budget: float | None) -> Solution:
    """The solution at every point, converged or not, by Newton's method with its restarts, or by the map itself.

    Of an iteration `solution.history` holds {unknown: its values from the start on, step by step}, of one batch of points.
    """
    _require_known("solve", method, damping)
    require_tolerance(tolerance)
    if method == "newton":
        return solve_points(program, numbers, start=start, tolerance=tolerance, budget=budget)
    program, rest = program.bound(numbers)
    if program.implicit:
        raise BadInput(f"solve: the equation of {sorted(program.implicit)[0]} is implicit, so there is no map to iterate; "
                       "method='newton' solves it")
    flat, shape = points_of(program, rest)
    points = int(np.prod(shape))
    given = checked_start(program, {**program.start, **start}, shape)
    default = {u: interior_point(program.domain[u]) if u in program.domain else float(u in program.positive)
               for u in program.unknowns}
    x0 = np.array([np.broadcast_to(given.get(u, np.float64(default[u])), (points,)) for u in program.unknowns], dtype=float)
    parts, paths = [], []
    with limit_time(budget):
        for k in range(0, points, CHUNK):
            here = {n: (v[k:k + CHUNK] if v.ndim else v) for n, v in flat.items()}
            found, path = _iterate_batch(program, here, x0[:, k:k + CHUNK], float(damping), tolerance)
            parts.append(found)
            paths.append(path)
    whole = shape_solution(parts[0] if len(parts) == 1 else join_chunks(parts), shape)
    whole = whole if np.all(np.asarray(whole.method) == REFUSED) else replace(whole, method="iterate")
    if len(parts) > 1:
        return whole
    history = {u: paths[0][:, i].reshape(-1, *shape) for i, u in enumerate(program.unknowns)}
    return replace(whole, history=history, iterations=len(paths[0]) - 1)


def _iterate_batch(program: Any, numbers: Mapping[str, np.ndarray], x0: np.ndarray, damping: float, tolerance: float
             ) -> tuple[Solution, np.ndarray]:
    """A batch of points, and its path (steps + 1, n, B)."""
    points = x0.shape[1]
    states = States(program, numbers, max(tolerance/3, 1e-15))
    states.examine(dict(zip(program.unknowns, x0, strict=True)))
    rounds = 5  # of finer averages: each refinement moves a solution by less
    for _ in range(rounds):
        before = states.quad.arrays()
        path, done, gap, why = _iterate_path(program, states, x0, damping, tolerance)
        states.examine(dict(zip(program.unknowns, np.where(done, path[-1], x0), strict=True)))
        if states.quad.arrays() is before:
            break
    why = np.where(why == "", ran_out(f"the iteration did not settle in {len(path) - 1} steps"), why)
    tiny = 1e-300  # a positive unknown at 0 starts there, for its logarithm
    begin = {u: np.maximum(v, tiny) if u in program.positive else v
             for u, v in zip(program.unknowns, np.where(done, path[-1], x0), strict=True)}
    wide = {n: np.broadcast_to(v, (points,)) for n, v in numbers.items()}
    found = solve_points(program, wide, start=begin if wide else {u: v[0] for u, v in begin.items()}, tolerance=tolerance,
                         budget=None)
    x = np.array([np.atleast_1d(found[u]) for u in program.unknowns])
    last = np.where(np.isfinite(path[-1]), path[-1], np.nan)
    same_end = 1e-5  # relative: Newton's method ends where the iteration did, not at another solution
    stays = (np.abs(x - last) <= same_end*np.maximum(np.abs(last), SMALL)).all(axis=0)
    ok = done & stays & np.atleast_1d(found.converged)
    reason = np.where(ok, "", np.where(done, np.atleast_1d(np.asarray(found.reason, dtype=object)), why))
    laws = refusal_reasons(program, numbers, points)
    reason = np.where(laws != "", laws, reason)
    reason = np.where(~ok & (reason == ""), "the iteration hardly moves, but not at a solution", reason)
    values = {n: np.atleast_1d(v) for n, v in found.value.items()}
    for i, u in enumerate(program.unknowns):  # an unsettled point is shown at its last state
        values[u] = np.where(ok, x[i], last[i])
    seen = [n for n in values if n not in program.unknowns]
    values |= {n: np.where(ok, values[n], np.nan) for n in seen}
    return replace(found, value=values, converged=ok, reason=reason, iterations=np.full(points, len(path) - 1),
                   residual=np.where(ok, found.residual, gap), stability=np.atleast_1d(found.stability),
                   error=np.where(ok, found.error, np.nan)), path


def _iterate_path(program: Any, states: States, x0: np.ndarray, damping: float, tolerance: float
          ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(steps + 1, n, B) from the start on, which points have settled, how far each still moves, and why one was lost.

    A point stays where it settled, and before the step that leads out of its domain.
    """
    x, path = x0, [x0]
    why = np.full(x0.shape[1], "", dtype=object)
    steps = 20_000  # of the iteration; chosen by trial: what has not settled by then is reported as not settled
    with np.errstate(all="ignore"):
        for _ in range(steps):
            out = states.call("right_hand_sides", dict(zip(program.unknowns, x, strict=True)))
            rhs = np.array([np.broadcast_to(out[f"rhs/{u}"], x[0].shape) for u in program.unknowns])
            gap = (np.abs(rhs - x)/np.maximum(np.abs(x), SMALL)).max(axis=0)
            done = (gap <= tolerance) & (why == "")
            new = x + damping*(rhs - x)
            for u, value in zip(program.unknowns, new, strict=True):
                away = ~np.isfinite(value)
                why[away & (why == "")] = f"the iteration runs away: {u} is not finite after {len(path)} steps"
                if u in program.domain:
                    left = is_outside(value, program.domain[u]) & ~done & (why == "")
                    why[left] = f"step {len(path)} of the iteration leaves the domain {interval_text(u, program.domain[u])}"
            stay = done | (why != "")
            if np.all(stay) or is_time_up():
                break
            x = np.where(stay, x, new)
            path.append(x)
    return np.array(path), done, gap, why
