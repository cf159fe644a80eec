"""System.branches: at every point of the parameters the solutions that can be found, put together along the points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.solvers import root_branches as search
from hermitex.solvers.batch import Array, merge_solutions
from hermitex.solvers.interval import Interval, clip_to_interval, interior_point, is_outside
from hermitex.solvers.solution import Solution
from hermitex.solvers.solve_limits import require_tolerance
from hermitex.systems.compiled_system import CompiledSystem
from hermitex.systems.run import Run
from hermitex.systems.solve import checked_start, points_of, shape_solution, solve_starts


def branches(program: CompiledSystem, starts: Mapping[str, Mapping[str, Any]], numbers: Mapping[str, Any], *,
             tolerance: float = 1e-11) -> tuple[Solution, ...]:
    """The solutions at every point; see `System.branches`."""
    require_tolerance(tolerance)
    program, numbers = program.bound(numbers, "branches")
    flat, shape = points_of(program, numbers)
    given = {label: checked_start(program, start, shape) for label, start in starts.items()}
    points = int(np.prod(shape))
    rows = []
    for k in range(points):
        here = {n: float(v[k] if v.ndim else v) for n, v in flat.items()}
        near = {label: {u: float(v[k] if v.ndim else v) for u, v in start.items()} for label, start in given.items()}
        rows.append(_at_point(program, near, here, tolerance))
    if not shape:
        return rows[0]
    return tuple(shape_solution(s, shape) for s in _follow_lines(rows, list(starts), program))


def _at_point(program: CompiledSystem, starts: Mapping[str, Mapping[str, float]], numbers: Mapping[str, float],
              tolerance: float) -> tuple[Solution, ...]:
    """Everything at one point of the parameters."""
    solved = [b for b in program.blocks if b.kind in ("root", "nonlinear")]
    groups = [b.torn for b in solved]
    free = [u for g in groups for u in g]
    positive = [u for b in solved for u, p in zip(b.torn, b.positive, strict=True) if p]
    mask = np.array([u in positive for u in program.unknowns])

    def from_states(x: Array) -> Solution:
        start = {u: np.where(mask[i] & ~(x[i] > 0), 1e-9 if u in program.domain else 0.0, x[i])
                 for i, u in enumerate(program.unknowns) if u in free}
        start |= {u: _starts_within(x, program.domain[u]) for u, x in start.items() if u in program.domain}
        return solve_starts(program, numbers, start, x.shape[1], tolerance)

    step = None if program.implicit else the_map(program, numbers, list(starts.values()), tolerance)
    states = {}
    for label, start in starts.items():
        start = {**program.start, **start}
        x = np.array([start.get(u, _default(program, u, m)) for u, m in zip(program.unknowns, mask, strict=True)])
        fixed = np.array([u in start for u in program.unknowns])
        states[label] = search.consistent_states(step, x[:, None], fixed)[:, 0] if step is not None and fixed.any() else x
    return search.find_branches(from_states, states, names=program.unknowns, free=free, positive=mask, step=step, groups=groups,
                           boundary=True)


def _default(program: CompiledSystem, u: str, positive: Any) -> float:
    return interior_point(program.domain[u]) if u in program.domain else 1.0 if positive else 0.0


def _starts_within(x: Array, domain: Interval) -> Array:
    """Starts over scales as starts in an interval: those outside take the place of u/(1 + u) in it."""
    lo, hi = domain
    if not (np.isfinite(lo) and np.isfinite(hi)):
        return clip_to_interval(np.where(is_outside(x, domain), lo + np.abs(x) if np.isfinite(lo) else hi - np.abs(x), x), domain)
    return clip_to_interval(np.where(is_outside(x, domain), lo + (hi - lo)*np.abs(x)/(1 + np.abs(x)), x), domain)


def the_map(program: CompiledSystem, numbers: Mapping[str, float], starts: Sequence[Mapping[str, float]],
            tolerance: float) -> search.Map:
    """x -> rhs(x) at one point of the parameters, (n, B) -> (n, B), by the finest rules that a solution from a start needs."""
    runs = []
    for start in ({}, *starts):
        guess = {u: np.asarray(v, dtype=float) for u, v in start.items()}
        runs.append(Run(program, {n: np.asarray(v, dtype=float) for n, v in numbers.items()}, 1, guess, tolerance))
        runs[-1].solution()
    run, *others = runs
    run.quad.join(*(other.quad for other in others))

    def step(x: Array) -> Array:
        s = {**run.s, **{u: run.column(v) for u, v in zip(program.unknowns, x, strict=True)}}
        with np.errstate(all="ignore"):
            out = program.call("right_hand_sides", s, run.quad.arrays())
        rows = [np.broadcast_to(np.asarray(out[f"rhs/{u}"], dtype=float).reshape(-1), x.shape[1:]) for u in program.unknowns]
        return np.array(rows)

    return step


def _batch_of_one(s: Solution) -> Solution:
    """A single point as a batch of one."""
    names = ("residual", "stability", "error", "iterations", "converged", "method", "branch", "reason")
    kinds: dict[str, Any] = {"method": object, "branch": object, "reason": object, "converged": bool, "iterations": int}
    fields: dict[str, Any] = {n: np.array([getattr(s, n)], dtype=kinds.get(n, float)) for n in names}
    return replace(s, value={n: np.array([v], dtype=float) for n, v in s.value.items()}, **fields)


def _follow_lines(rows: Sequence[tuple[Solution, ...]], labels: Sequence[str], program: CompiledSystem) -> list[Solution]:
    """Batches out of the solutions of each point: one for each named start, then the others from neighbour to neighbour.

    If a branch does not exist at a point, its numbers are NaN, and it is not converged there.
    """
    lines: list[dict[int, Solution]] = [{} for _ in labels]
    others: list[dict[int, Solution]] = []
    for k, row in enumerate(rows):
        taken: set[int] = set()
        for line, label in zip(lines, labels, strict=True):
            for i, s in enumerate(row):
                if s.branch == search.UNIQUE or label in str(s.branch).split(", "):
                    line[k] = s
                    taken.add(i)
        left = [s for i, s in enumerate(row) if i not in taken]
        for kind in dict.fromkeys(str(s.branch) for s in left):
            _extend_lines(others, k, [s for s in left if s.branch == kind], kind, program)
    whole = [line for line in [*lines, *others] if line]
    kept = [line for i, line in enumerate(whole) if not any(_equal(line, other) for other in whole[:i])]
    return [_batch(line, len(rows), program) for line in kept]


def _extend_lines(lines: list[dict[int, Solution]], k: int, found: list[Solution], kind: str, program: CompiledSystem) -> None:
    """Each solution goes to the line of its kind that ends nearest, or begins one."""
    def state(s: Solution) -> np.ndarray:
        return np.array([float(s[u]) for u in program.unknowns])

    ends = [line for line in lines if next(iter(line.values())).branch == kind]
    pairs = sorted(((float(np.abs(state(line[max(line)]) - state(s)).max()), i, j) for i, line in enumerate(ends)
                    for j, s in enumerate(found)))
    used: set[int] = set()
    for _, i, j in pairs:
        if k not in ends[i] and j not in used:
            ends[i][k] = found[j]
            used.add(j)
    lines.extend({k: s} for j, s in enumerate(found) if j not in used)


def _equal(a: Mapping[int, Solution], b: Mapping[int, Solution]) -> bool:
    return a.keys() == b.keys() and all(a[k] is b[k] for k in a)


def _batch(line: Mapping[int, Solution], points: int, program: CompiledSystem) -> Solution:
    some = _batch_of_one(next(iter(line.values())))
    absent = replace(some, value={n: np.array([np.nan]) for n in some.value}, residual=np.array([np.nan]),
                     stability=np.array([np.nan]), error=np.array([np.nan]), iterations=np.array([0]),
                     converged=np.array([False]), method=np.array(["none"], dtype=object), branch=np.array([""], dtype=object),
                     reason=np.array(["this branch was not found here"], dtype=object), notes=())
    parts = [(np.array([k]), _batch_of_one(line[k]) if k in line else absent) for k in range(points)]
    whole = merge_solutions(parts, points, program.unknowns)
    said = [n for n in whole.notes if not n.startswith(("unstable under iteration", "stability: "))]
    return replace(whole, notes=tuple(said)).with_stability_said()
