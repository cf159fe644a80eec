"""Running a compiled system: its numbers and starts checked, its points in batches, each solved by a `Run`.

Knows nothing of SymPy: it reads a `CompiledSystem`, whose text does the arithmetic, and calls the solvers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, UnknownName, brief
from hermitex.kernels.parameter_conditions import violated_conditions
from hermitex.solvers.batch import merge_solutions, select_points
from hermitex.solvers.interval import interval_text, is_outside
from hermitex.solvers.solution import NOWHERE, REFUSED, Solution
from hermitex.solvers.solve_limits import is_time_up, limit_time, require_tolerance
from hermitex.solvers.sweep_grid import check_size, real_array
from hermitex.systems.compiled_system import CompiledSystem
from hermitex.systems.newton_step import SMALL
from hermitex.systems.run import DOUBLE, LOST, SHORT, Run

CHUNK = 512  # points that are solved together: NumPy's time for a call is spread over them, and their arrays stay in memory
_DIGITS = 1e-4  # a quadrature no better than that leaves no digits worth having


def solve_points(program: CompiledSystem, numbers: Mapping[str, Any], *, start: Mapping[str, Any], tolerance: float,
                 budget: float | None) -> Solution:
    """The solution at every point of the broadcast numbers, converged or not; arrays come back in their common shape.

    start : first guess by unknown (default 1 for a positive unknown, 0 for the rest)
    tolerance : relative, for the unknowns; the quadrature is held to a third of it
    budget : CPU seconds; what is not solved by then is not converged, and its reason says so

    Raises BadInput for a parameter that is missing, unknown, of a shape that does not broadcast, NaN or infinite.
    """
    require_tolerance(tolerance)
    program, numbers = program.bound(numbers)
    flat, shape = points_of(program, numbers)
    points = int(np.prod(shape)) if shape else 1
    parts = []
    guess = checked_start(program, {**program.start, **start}, shape)
    why = refusal_reasons(program, flat, points)
    with limit_time(budget):
        for first in range(0, points, CHUNK):
            chunk = {n: (v[first:first + CHUNK] if v.ndim else v) for n, v in flat.items()}
            near = {u: (v[first:first + CHUNK] if v.ndim else v) for u, v in guess.items()}
            parts.append(_solve_lawful_points(program, chunk, why[first:first + CHUNK], near, tolerance))
    found = parts[0] if len(parts) == 1 else join_chunks(parts)
    return shape_solution(found.with_stability_said(), shape)


def solve_starts(program: CompiledSystem, numbers: Mapping[str, Any], starts: Mapping[str, Any], count: int, tolerance: float
                 ) -> Solution:
    """The solution from each of `count` starts at one point of the parameters, converged or not."""
    flat, _ = points_of(program, numbers)
    guess, why = checked_start(program, {**program.start, **starts}, (count,)), refusal_reasons(program, flat, 1)
    parts = []
    for first in range(0, count, CHUNK):
        near = {u: (v[first:first + CHUNK] if v.ndim else v) for u, v in guess.items()}
        parts.append(_solve_lawful_points(program, flat, np.repeat(why, min(CHUNK, count - first)), near, tolerance))
    return (parts[0] if len(parts) == 1 else join_chunks(parts)).with_stability_said()


def refusal_reasons(program: CompiledSystem, flat: Mapping[str, np.ndarray], points: int) -> np.ndarray:
    """Why the numbers of a point are none for these formulas, before anything is solved; an empty text where they are."""
    return violated_conditions(program.call("lawful", dict(flat), {}) if program.lawful else {}, (points,))


def _solve_lawful_points(program: CompiledSystem, numbers: dict[str, np.ndarray], why: np.ndarray, guess: dict[str, np.ndarray],
                         tolerance: float
            ) -> Solution:
    """A batch without its refused points, which are not solved."""
    bad, good = np.flatnonzero(why != ""), np.flatnonzero(why == "")
    if not bad.size:
        return _batch(program, numbers, why.size, guess, tolerance)
    none = np.full(bad.size, np.nan)
    parts = [(bad, Solution(dict.fromkeys((*program.unknowns, *program.observables), none), residual=np.full(bad.size, np.inf),
                            converged=none == 0, iterations=np.zeros(bad.size, dtype=int), stability=none, error=none,
                            method=REFUSED, reason=why[bad], unknowns=program.unknowns,
                            origin={"tolerance": tolerance, "quadrature_error": 0.0, "nodes": {}}))]
    if good.size:
        some, near = ({n: (v[good] if v.ndim else v) for n, v in part.items()} for part in (numbers, guess))
        parts.append((good, _batch(program, some, good.size, near, tolerance)))
    return merge_solutions(parts, why.size, program.unknowns)


def points_of(program: CompiledSystem, numbers: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """The numbers, checked and flat, and the common shape of the points."""
    values = _numbers(program, numbers)
    try:
        shape = np.broadcast_shapes(*(v.shape for v in values.values()))
    except ValueError:
        shapes = ", ".join(f"{n} {v.shape}" for n, v in values.items() if v.ndim)
        raise BadInput(f"solve: the parameters do not broadcast: {shapes}") from None
    check_size("solve", {f"along axis {i}": n for i, n in enumerate(shape)})
    flat = {n: (np.broadcast_to(v, shape).ravel() if v.ndim else v) for n, v in values.items()}
    if 0 in shape:
        raise BadInput("solve: an array of parameters is empty")
    return flat, shape


def _numbers(program: CompiledSystem, numbers: Mapping[str, Any]) -> dict[str, np.ndarray]:
    for name in numbers:
        if name not in program.parameters:
            raise UnknownName(name, program.names, "parameter")
    missing = [n for n in program.parameters if n not in numbers]
    if missing:
        one, all_ = missing[0], ", ".join(missing)
        raise BadInput(f"solve: {all_} {'has' if len(missing) == 1 else 'have'} no value; add {one}=..., or an equation for {one}")
    values = {}
    for name in program.parameters:
        try:
            value = real_array(numbers[name])
        except NO_NUMBER:
            raise BadInput(f"solve: {name} = {brief(numbers[name])} is not a number or an array of numbers") from None
        if np.ma.is_masked(numbers[name]):
            raise BadInput(f"solve: {name} is masked in places; give {name}.compressed(), the values that count")
        if not np.all(np.isfinite(value)):
            raise BadInput(f"solve: {name} holds {value[~np.isfinite(value)].ravel()[0]}; every parameter must be finite")
        values[name] = value
    return values


def checked_start(program: CompiledSystem, start: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """First guesses, checked: known unknowns, finite, positive where the unknown is, one or one a point."""
    positive = {u for b in program.blocks for u, p in zip(b.torn, b.positive, strict=True) if p}
    values = {}
    for name, given in start.items():
        if name not in program.unknowns:
            raise UnknownName(name, program.unknowns, "name in start")
        try:
            value = real_array(given)
            values[name] = np.broadcast_to(value, shape).ravel() if value.ndim else value
        except NO_NUMBER:
            raise BadInput(f"solve: start {name} = {brief(given)} is not a number or an array of the shape {shape} of the "
                           "parameters") from None
        if not np.all(np.isfinite(value)):
            raise BadInput(f"solve: start {name} holds {value[~np.isfinite(value)].ravel()[0]}; every start must be finite")
        if name in program.domain and np.any(is_outside(value, program.domain[name])):
            at = value[is_outside(value, program.domain[name])].ravel()[0]
            raise BadInput(f"solve: start {name} = {at:g} is outside its domain {interval_text(name, program.domain[name])}")
        if name in positive and name not in program.domain and not np.all(value >= 0):
            raise BadInput(f"solve: start {name} = {value[~(value >= 0)].ravel()[0]:g} is infeasible: {name} is positive")
    return values


def _batch(program: CompiledSystem, numbers: dict[str, np.ndarray], points: int, guess: dict[str, np.ndarray],
           tolerance: float) -> Solution:
    """A batch; what misses the quadrature alone gets rules of its own, for those of others may not have suited it."""
    found = _attempt(program, numbers, points, guess, tolerance)
    parts = [(np.arange(points), found)]
    told = 0
    most_told = 2  # points of a batch whose refusal names a tolerance that works: to know it, each is solved
    for k in _points_short_of_digits(found):
        if is_time_up():
            break
        one, near = ({n: (v[k:k + 1] if v.ndim else v) for n, v in part.items()} for part in (numbers, guess))
        again = Run(program, one, 1, near, tolerance).solution() if points > 1 else found
        if told < most_told and _points_short_of_digits(again):
            told += 1
            again = _with_advice(program, one, near, again)
        parts.append((np.array([k]), again))
    return merge_solutions(parts, points, program.unknowns, found.origin) if parts[1:] else found


def _attempt(program: CompiledSystem, numbers: dict[str, np.ndarray], points: int, guess: dict[str, np.ndarray], tolerance: float
             ) -> Solution:
    """By closed forms, and by quadrature at the points where these lose digits: near to kinks and in far tails if needed.

    The quadrature begins where the closed forms have led, if that is a solution, and where they began. It is taken where its error
    is smaller, and where it leads no further from the closed forms than their rounding may, if that leaves them a digit: else it
    missed what is narrow.
    """
    run = Run(program, numbers, points, guess, tolerance)
    found = run.solution()
    most_moved = 100  # times the rounding of the closed forms: an estimate of it may be that far off
    alone = {u for block in program.blocks if block.kind == "explicit" for u in block.unknowns}
    for start, fine in ((found.value, False), (found.value, True), (guess, False), (guess, True)):
        k = np.array(sorted(run.cancelled), dtype=int)
        k = k if start is guess else k[np.asarray(found.converged)[k]]
        other = program.integrated(fine=fine) if k.size and not is_time_up() else None
        if other is None:
            continue
        at, begin = ({n: (np.asarray(v)[k] if np.ndim(v) else v) for n, v in part.items()} for part in (numbers, start))
        better = Run(other, at, k.size, {u: begin[u] for u in other.unknowns if u in begin}, tolerance).solution()
        lost = np.array([run.cancelled[int(i)] for i in k])
        with np.errstate(invalid="ignore", divide="ignore"):  # nan where the closed forms had no number
            away = np.max([np.abs(better[u] - found[u][k])/np.maximum(np.abs(found[u][k]), 0.0 if u in alone else SMALL)
                           for u in other.unknowns], axis=0)
            away = np.nan_to_num(away)  # 0/0 of an unknown that is 0 in both
        blind = np.any([(np.asarray(better[u]) == 0) & (found[u][k] != 0) for u in other.unknowns], axis=0)  # a far tail
        good = np.asarray(better.converged) & (np.asarray(better.error) < lost) & ~blind & (~(away > most_moved*lost) | (lost >= 1))
        parts = [(np.arange(points), found), (k[good], select_points(better, np.flatnonzero(good)))]
        notes = better.notes if good.all() and k.size == points else found.notes
        found = replace(merge_solutions(parts, points, other.unknowns, found.origin), notes=notes)
        nowhere = [NOWHERE in str(one) and NOWHERE in str(found.reason[i]) for i, one in zip(k, better.reason, strict=True)]
        for i in k[good | nowhere]:  # it is not the closed forms that have no number
            run.cancelled.pop(int(i))
    return found


def _points_short_of_digits(found: Solution) -> list[int]:
    """The points that miss the digits alone."""
    missed = [str(r).startswith((SHORT, LOST, DOUBLE)) for r in np.ravel(found.reason)]
    return np.flatnonzero(missed & ~np.ravel(found.converged)).tolist()


def _with_advice(program: CompiledSystem, numbers: dict[str, np.ndarray], guess: dict[str, np.ndarray], found: Solution
                 ) -> Solution:
    """A point that was refused for its quadrature, with the least tolerance at which it is not: its error may be 1,000 of them."""
    reached = float(found.origin["quadrature_error"])
    tolerance = 10.0**np.ceil(np.log10(reached/1e3)) if 0 < reached <= _DIGITS else np.inf
    while tolerance <= _DIGITS and not is_time_up():
        if _attempt(program, numbers, 1, guess, tolerance).all_converged:
            why = [f"{r}, or tolerance={tolerance:.0e} for the digits that hold" for r in np.ravel(found.reason)]
            return replace(found, reason=np.array(why, dtype=object))
        tolerance *= 10
    return found


def join_chunks(parts: list[Solution]) -> Solution:
    """Chunks of points, one after another."""
    def stack(name: str) -> Any:
        return np.concatenate([np.atleast_1d(np.asarray(getattr(p, name))) for p in parts])

    first = parts[0]
    values = {n: np.concatenate([np.atleast_1d(p[n]) for p in parts]) for n in first.value}
    method = first.method if len({str(p.method) for p in parts}) == 1 else " + ".join(dict.fromkeys(str(p.method) for p in parts))
    return replace(first, value=values, method=method, notes=tuple(dict.fromkeys(n for p in parts for n in p.notes)),
                   **{n: stack(n) for n in ("residual", "converged", "iterations", "stability", "error", "reason")})


def shape_solution(found: Solution, shape: tuple[int, ...]) -> Solution:
    """Arrays in the common shape of the parameters; scalars for a single point."""
    if shape == ():
        return found.point(0)
    if len(shape) == 1:
        return found
    values = {n: np.asarray(v).reshape(shape) for n, v in found.value.items()}
    return replace(found, value=values)
