"""x <- x + a (rhs(x) - x), all unknowns at once: what approximate message passing does, step by step; it ends at stable points.

The path is kept. Where it has settled the state is checked as every solution is, and Newton's method from there must stay there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.errors import BadInput
from hermitex.solvers.interval import middle
from hermitex.solvers.limit import limited, over, ran_out
from hermitex.solvers.solution import Solution
from hermitex.systems.solve import checked_start, points_of
from hermitex.systems.states import States

_STEPS, _ROUNDS, _STAYS, _FLOOR = 20_000, 5, 1e-5, 1e-6


def iterate(system: Any, numbers: Mapping[str, Any], start: Mapping[str, Any], *, damping: float, tolerance: float,
            budget: float | None) -> Solution:
    """See `System.solve(method="iterate")`; `solution.history` holds {unknown: its values from the start on}, step by step."""
    if not (isinstance(damping, int | float) and 0 < damping <= 1):
        raise BadInput(f"solve: damping is the weight of the new value, above 0 and at most 1, not {damping!r}")
    program, rest = system.compile().bound(numbers)
    if program.implicit:
        raise BadInput(f"solve: the equation of {sorted(program.implicit)[0]} is implicit, so there is no map to iterate; "
                       "method='newton' solves it")
    flat, shape = points_of(program, rest)
    points = int(np.prod(shape))
    given = checked_start(program, {**program.start, **start}, shape)
    positive = {u.name for u in system.positive}
    default = {u: middle(program.domain[u]) if u in program.domain else float(u in positive) for u in program.unknowns}
    x0 = np.array([np.broadcast_to(given.get(u, np.float64(default[u])), (points,)) for u in program.unknowns], dtype=float)
    states = States(program, flat, max(tolerance/3, 1e-15))
    with limited(budget):
        states.examine(dict(zip(program.unknowns, x0, strict=True)))
        for _ in range(_ROUNDS):
            before = states.quad.arrays()
            path, done = _path(program, states, x0, damping, tolerance)
            states.examine(dict(zip(program.unknowns, np.where(np.isfinite(path[-1]), path[-1], x0), strict=True)))
            if states.quad.arrays() is before:
                break
        why = ran_out(f"the iteration did not settle in {len(path) - 1} steps")
    last = np.where(np.isfinite(path[-1]), path[-1], x0).reshape(len(x0), *shape)
    found = system.solve({**numbers}, start=dict(zip(program.unknowns, last, strict=True)), tolerance=tolerance, budget=budget,
                         raise_on_failure=False)
    x = np.array([np.asarray(found[u], dtype=float).reshape(points) for u in program.unknowns])
    size = np.maximum(np.abs(path[-1]), _FLOOR)
    stays = (np.abs(x - path[-1]) <= _STAYS*size).all(axis=0)
    ok = done & stays & np.atleast_1d(np.asarray(found.converged))
    reason = np.where(ok, "", np.where(done, np.atleast_1d(np.asarray(found.reason, dtype=object)), why))
    reason = np.where(~ok & (reason == ""), "where the iteration hardly moves is no solution", reason)
    values = dict(found.value)
    for i, u in enumerate(program.unknowns):  # what did not settle is shown where it stands
        values[u] = np.where(ok, x[i], path[-1][i]).reshape(shape)
    history = {u: path[:, i].reshape(-1, *shape) for i, u in enumerate(program.unknowns)}
    scalar = not shape
    return replace(found, value={n: float(v) if scalar else v for n, v in values.items()}, history=history, method="iterate",
                   converged=bool(ok[0]) if scalar else ok, reason=str(reason[0]) if scalar else reason, iterations=len(path) - 1)


def _path(program: Any, states: States, x0: np.ndarray, damping: float, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """(steps + 1, n, B) from the start on, and which points have settled; a settled one stays."""
    x, path, done = x0, [x0], np.zeros(x0.shape[1], dtype=bool)
    for _ in range(_STEPS):
        out = states.call("right_hand_sides", dict(zip(program.unknowns, x, strict=True)))
        rhs = np.array([np.broadcast_to(out[f"rhs/{u}"], x[0].shape) for u in program.unknowns])
        gap = np.abs(rhs - x)/np.maximum(np.abs(x), _FLOOR)
        done = (gap <= tolerance).all(axis=0)
        lost = ~np.isfinite(rhs).all(axis=0)
        if np.all(done | lost) or over():
            break
        x = np.where(done | lost, x, x + damping*(rhs - x))
        path.append(x)
    return np.array(path), done
