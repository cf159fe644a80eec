"""A system over a grid of parameters, chunk by chunk along continuation lines.

    the first point of a piece from the default start  ->  the others from its solution (or the system's start), all at once
                                                       ->  what failed, alone, from its nearest solved neighbour

Only the piece and the formulas enter, so a piece gives the same bits wherever and whenever it is solved.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from hermitex.errors import NO_NUMBER, BadInput, UnknownName
from hermitex.show.columns import ridge
from hermitex.solvers.chunked_sweep import Progress
from hermitex.solvers.chunked_sweep import sweep as sweep_grid
from hermitex.solvers.journal import PASSING
from hermitex.solvers.solution import Solution
from hermitex.solvers.solve_limits import is_time_up, limit_time, require_seconds, require_tolerance
from hermitex.solvers.sweep_grid import GridPiece, json_hash
from hermitex.solvers.sweep_grid import grid as points
from hermitex.solvers.sweep_table import Sweep
from hermitex.systems.compiled_system import CompiledSystem
from hermitex.systems.flow import Flow
from hermitex.systems.iterate import require_method, solved_by
from hermitex.systems.names import by_name
from hermitex.systems.trajectory import OF_A_FLOW, TIME, many

_COLUMNS = ("residual", "stability", "iterations", "converged", "reason")  # a checkpoint with others is another sweep's


def sweep(system: Any, grid: Mapping[str, Any], executor: Any = None, *, parameters: Mapping[str, float] | None = None,
          progress: Callable[[Progress], None] | bool = False, checkpoint: str | os.PathLike[str] | None = None,
          workers: int | None = None, resume: bool = True, chunk: int = 50, tolerance: float | None = None,
          budget: float | None = None, method: str = "newton", damping: float = 1.0) -> Sweep:
    """Solve a system or a theory at every point of a grid.

    Parameters
    ----------
    system : System, or a theory: its letters are those of its `.solve` (alpha0 and eta for r, c and gamma, say); or a `Flow` that
        has its start: t, in the grid or in `parameters`, is the time to reach from 0
    grid : {parameter: values}; their product, in order. Along the first key points start from the solution of the first one;
        where there are several solutions, the system's own start, which then holds at every point, says which is meant
    executor : any concurrent.futures executor or a Dask client; default: a process pool if workers > 1, else here
    parameters : the numbers of the parameters that are not swept, and the arrays that are summed over
    progress : True writes a line on stderr; or a function of a `Progress`
    checkpoint : directory where finished chunks are kept as they come; the sweep found there is resumed
    chunk : points solved together, consecutive on a line; the bits of the result depend on it, not on who solves them
    tolerance : of each solve, relative (default: 1e-11, of a flow 1e-9)
    budget : CPU seconds for all of it; what is not solved by then fails with that reason, and is not kept in the checkpoint
    method, damping : of a System or a theory, as of `System.solve`; an iteration begins at the same start at every point

    Returns
    -------
    Sweep : one row a point; a point that failed stays, with NaN and its reason. `.to_dataframe()`, `.to_csv()`.

    Raises
    ------
    BadInput : a parameter without a value; an empty grid; a checkpoint of another sweep
    UnknownName : no parameter has this name

    Guarantee
    ---------
    Each row is a converged solution or NaN with a reason. Finished chunks in a checkpoint survive a crash, and a resumed sweep
    gives the same bits with the same versions. See docs/promise.md.

    Examples
    --------
    >>> from hermitex.symbols import V, Vhat, alpha, lamda
    >>> from hermitex.systems.system import System
    >>> ridge = System({Vhat: alpha/(1 + V), V: 1/(lamda + Vhat)})
    >>> table = sweep(ridge, {"alpha": [0.5, 1.0, 2.0], "lam": [0.1, 1.0]})
    >>> table
    Sweep(alpha x lam: 3 x 2 = 6 points, none failed; Vhat, V, residual, stability, iterations)
    >>> round(float(table["V"][2]), 6)
    0.844289
    """
    require_seconds(budget)
    if tolerance is not None:
        require_tolerance(tolerance)
    until = None if budget is None else time.time() + budget
    require_method("sweep", method, damping)
    how = (method, float(damping))
    points(grid, chunk)  # a grid that is too large, or not a grid, is refused before anything is laid out
    of_a_system = 1e-11  # relative: System.solve takes the same where none is given
    if hasattr(system, "letters") and hasattr(system, "complete"):
        grid, parameters = (by_name("sweep", part, parameters=system.letters()) for part in (grid, parameters))
        by_name("sweep", grid, parameters)  # nor is a letter in both
        numbers = _checked(system, grid, parameters or {})
        line: GridLine = (PathLine(None, numbers, tolerance or 0.0, until, how, system) if system.axis == TIME else
                          TheoryLine(None, numbers, tolerance or of_a_system, until, how, system))
    elif isinstance(system, Flow):
        if method != "newton":
            raise BadInput(f"sweep: a Flow is integrated over time; method={method!r} is for a System")
        line = _of_flow(system, grid, parameters or {}, tolerance, until)
    else:
        program = _program(system)
        if program.arrays is not None and (swept := [str(k) for k in grid if str(k) in program.arrays.names]):
            raise BadInput(f"sweep: {swept[0]} is an array that is summed over; give it whole in "
                           f"parameters={{{swept[0]!r}: array}}")
        by_name("sweep", grid, parameters, parameters=program.parameters)
        program, numbers = program.bound({str(k): v for k, v in (parameters or {}).items()}, "sweep")
        line = GridLine(program, _fixed(program.parameters, grid, numbers), tolerance or of_a_system, until, how)
    found = sweep_grid(line, grid, executor=executor, workers=workers, progress=progress, checkpoint=checkpoint,
                       resume=resume, signature=line.signature, chunk=chunk)
    return replace(found, parameters={n: v for n, v in line.fixed.items() if np.ndim(v) == 0})


def _of_flow(flow: Flow, grid: Mapping[str, Any], parameters: Mapping[str, Any], tolerance: float | None, until: float | None
             ) -> FlowLine:
    program, numbers = flow.compile().bound({str(k): v for k, v in parameters.items()}, "sweep")
    names = (*program.parameters, TIME)
    by_name("sweep", grid, numbers, parameters=names)
    fixed = _fixed(names, grid, numbers)
    if missing := [u.name for u in flow.unknowns if u.name not in flow.start]:
        raise BadInput(f"sweep: where does {missing[0]} start? Give the flow start={{{missing[0]!r}: number}}")
    if not np.all(np.asarray(grid.get(TIME, fixed.get(TIME)), dtype=float) >= 0):
        raise BadInput("sweep: t is a time to reach from 0, so it must be 0 or more")
    return FlowLine(program, fixed, tolerance or OF_A_FLOW, until, start=dict(flow.start), domain=dict(flow.domain))


def _program(system: Any) -> CompiledSystem:
    inner = getattr(system, "system", system)
    if not hasattr(inner, "compile"):
        raise BadInput(f"sweep takes a System or a theory, not {type(system).__name__}")
    found: CompiledSystem = inner.compile()
    return found


def _checked(theory: Any, grid: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The fixed numbers of a theory; its own check of them and of the grid comes before anything is solved."""
    numbers = {str(k): v for k, v in numbers.items()}
    fixed = theory.given(numbers)
    if several := [n for n, v in fixed.items() if v.ndim and n not in theory.arrays]:
        raise BadInput(f"sweep: {several[0]} has several values; they go into the grid")
    axes = {str(k): np.atleast_1d(v) for k, v in theory.given(dict(grid)).items() if k in grid}
    if theory.axis == TIME:  # along a path everything else is one number
        for n, v in axes.items():
            for x in v if v.ndim == 1 else [v]:
                theory.complete({**fixed, **{m: w.flat[0] for m, w in axes.items()}, n: np.asarray(x)})
        return {n: fixed[n] if n in theory.arrays else fixed[n].item() for n in numbers if n in fixed}
    open_grid = np.ix_(*axes.values()) if all(v.ndim == 1 and v.size for v in axes.values()) else ()
    theory.complete({**fixed, **dict(zip(axes, open_grid, strict=True))} if open_grid else {**fixed, **axes})
    return {n: fixed[n] if n in theory.arrays else fixed[n].item() for n in numbers if n in fixed}


def _fixed(names: Collection[str], grid: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of the parameters that are not swept, by the names that the formulas use."""
    for name in (*grid, *numbers):
        if ridge(str(name), names) not in names:
            raise UnknownName(str(name), names, "parameter")
    given = {ridge(str(k), names) for k in (*grid, *numbers)}
    missing = [n for n in names if n not in given]
    if missing:
        raise BadInput(f"sweep: {', '.join(missing)} has no value; sweep it or give it in parameters")
    try:
        return {ridge(str(k), names): float(v) for k, v in numbers.items()}
    except NO_NUMBER:
        raise BadInput("sweep: a fixed parameter is one number; several values go into the grid") from None


@dataclass(frozen=True)
class GridLine:
    """Solves a piece of a continuation line; pickles, so that it can be sent to other processes."""

    program: Any
    fixed: Mapping[str, float]
    tolerance: float
    until: float | None = None  # when the budget ends, by the clock that all processes share
    how: tuple[str, float] = ("newton", 1.0)  # method and damping

    @property
    def signature(self) -> str:
        """Of everything but the grid that the numbers depend on."""
        from hermitex import __version__

        arrays = {n: _array_digest(v) for n, v in self.program.given.items()}
        own = [sorted(p.items()) for p in (self.program.domain, self.program.start) if p]
        return json_hash([self.program.source, *([arrays] if arrays else []), *own, *self._how, sorted(self.fixed.items()),
                       self.tolerance, _COLUMNS, __version__, np.__version__])

    @property
    def _how(self) -> list[Any]:
        """How it is solved, where that is not by Newton's method."""
        return [] if self.how[0] == "newton" else [self.how]

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The first columns; a solution's are the start of the next solve."""
        return tuple(self.program.unknowns)

    @property
    def observables(self) -> tuple[str, ...]:
        """Further columns."""
        return tuple(self.program.observables)

    @property
    def sometimes(self) -> set[str]:
        """Those of the columns that only some numbers bring."""
        return set()

    def __call__(self, piece: GridPiece) -> dict[str, Any]:
        """Columns for the points of a piece: unknowns, observables, residual, stability, iterations, converged, reason."""
        points = len(next(iter(piece.values())))
        with limit_time(None if self.until is None else max(self.until - time.time(), 0.0)):
            table = (self._along(piece, points) if self.how[0] == "newton" else
                     self._columns(self._solve(piece, range(points), {}), points))
            cut = is_time_up() and not table["converged"].all()
        return {**table, PASSING: np.full(points, True)} if cut else table

    def _along(self, piece: GridPiece, points: int) -> dict[str, np.ndarray]:
        """The first point alone, all others at once from its solution, then what failed from its neighbours."""
        table = self._columns(self._solve(piece, [0], {}), 1)
        if points > 1:
            # A start that the system is given chooses one of several solutions, at every point as in `.solve`.
            near = {} if getattr(self.program, "start", None) else self._start(table, 0)
            rest = self._columns(self._solve(piece, range(1, points), near), points - 1)
            table = {n: np.concatenate([v, rest[n]]) for n, v in table.items()}
        for order in (range(points), range(points - 1, -1, -1)):
            self._alone(piece, table, order)
        return table

    def _solve(self, piece: GridPiece, index: Any, start: Mapping[str, Any]) -> Solution:
        numbers = {**self.fixed, **{ridge(n, self.program.parameters): v[np.asarray(index)] for n, v in piece.items()}}
        return solved_by(*self.how, self.program, numbers, start=start, tolerance=self.tolerance, budget=None)

    def _start(self, table: Mapping[str, np.ndarray], k: int) -> dict[str, float]:
        near = {u: float(table[u][k]) for u in self.unknowns if u in table} if table["converged"][k] else {}
        return near if np.all(np.isfinite(list(near.values()))) else {}

    def _alone(self, piece: GridPiece, table: dict[str, np.ndarray], order: range) -> None:
        """Follow the line and solve what failed from the point before it, if that is solved."""
        good = table["converged"]
        for before, k in zip((None, *order), order, strict=False):
            if not good[k] and (before is None or good[before]) and not is_time_up():
                again = self._columns(self._solve(piece, [k], {} if before is None else self._start(table, before)), 1)
                if again["converged"][0] or not np.isfinite(table["residual"][k]):
                    for n, v in again.items():
                        table[n][k] = v[0]

    def _columns(self, found: Solution, points: int) -> dict[str, np.ndarray]:
        """The columns of a batch, NaN where it did not converge, and of what its numbers do not bring."""
        def row(v: Any, kind: Any) -> np.ndarray:
            return np.array(np.broadcast_to(np.asarray(v, dtype=kind), (points,)))

        good, lacks = row(found.converged, bool), self.sometimes - set(found)
        table = {n: np.where(good, row(np.nan if n in lacks else found[n], float), np.nan)
                 for n in (*self.unknowns, *self.observables)}
        return {**table, "residual": row(found.residual, float), "stability": row(found.stability, float),
                "iterations": row(found.iterations, int), "converged": good, "reason": row(found.reason, object)}


class _AlongTime(GridLine):
    """The same for what is followed in time: the points on one path are reached in one integration."""

    def __call__(self, piece: GridPiece) -> dict[str, Any]:
        """Columns for the points of a piece; the residual is the error of the path."""
        given = {ridge(n, self.program.parameters) if self.program else n: np.asarray(v, dtype=float) for n, v in piece.items()}
        points = len(next(iter(given.values())))
        times = given.pop(TIME, np.full(points, self.fixed.get(TIME, 0.0)))
        fixed = {n: v for n, v in self.fixed.items() if n != TIME}
        parts: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        with limit_time(None if self.until is None else max(self.until - time.time(), 0.0)):
            for _, at in equal_row_groups(given, points):
                line, where = np.unique(times[at], return_inverse=True)
                rows = self._path(line, {**fixed, **{n: float(v[at[0]]) for n, v in given.items()}})
                parts.append((at, {n: np.broadcast_to(v, line.shape)[where] for n, v in rows.items()}))
            cut = is_time_up() and not all(p["converged"].all() for _, p in parts)
        order = np.argsort(np.concatenate([at for at, _ in parts]))
        table = {n: np.concatenate([p[n] for _, p in parts])[order] for n in parts[0][1]}
        return {**table, PASSING: np.full(points, True)} if cut else table

    def _path(self, times: np.ndarray, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Columns at increasing times."""
        raise NotImplementedError


@dataclass(frozen=True)
class FlowLine(_AlongTime):
    """A flow."""

    start: Mapping[str, float] = field(default_factory=dict)
    domain: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        return json_hash([super().signature, sorted(self.start.items()), sorted(self.domain.items())])

    @property
    def unknowns(self) -> tuple[str, ...]:
        return tuple(u for u in self.program.unknowns if u != TIME)

    def _path(self, times: np.ndarray, numbers: Mapping[str, Any]) -> dict[str, Any]:
        whole = np.unique([*times, 0.0, times.max()/2])  # three times at least: one alone is where the flow ends
        found = many(self.program, numbers, self.start, whole if len(whole) > 1 else whole[0], domain=self.domain,
                     tolerance=self.tolerance)
        k = np.searchsorted(whole, times)
        rows: dict[str, Any] = {}
        for n in (*self.unknowns, *self.program.observables):
            reached = np.atleast_1d(np.asarray(found[n], dtype=float))
            there = found.converged & (k < len(reached))
            rows[n] = np.where(there, reached[np.minimum(k, len(reached) - 1)], np.nan)
        return {**rows, "residual": found.error, "stability": np.nan, "iterations": found.iterations, "converged": found.converged,
                "reason": np.asarray(str(found.reason), dtype=object)}


def equal_row_groups(columns: Mapping[str, np.ndarray], points: int) -> list[tuple[tuple[float, ...], np.ndarray]]:
    """(values, where) of the rows that are equal in all columns, in the order in which they first come."""
    rows: dict[tuple[float, ...], list[int]] = {}
    for k in range(points):
        rows.setdefault(tuple(float(v[k]) for v in columns.values()), []).append(k)
    return [(values, np.array(at)) for values, at in rows.items()]


def _array_digest(array: Any) -> str:
    """A digest of an array's numbers."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


_SEEN: dict[str, Any] = {}  # a process compiles a theory once, however many pieces it is sent


@dataclass(frozen=True)
class TheoryLine(GridLine):
    """The same for a theory, which completes the numbers and may have a solver of its own."""

    theory: Any = None

    @property
    def signature(self) -> str:
        from hermitex import __version__

        structure = [f"{f.name}={getattr(self.theory, f.name)!r}" for f in fields(self.theory)]
        fixed = [(n, _array_digest(v) if isinstance(v, np.ndarray) else v) for n, v in sorted(self.fixed.items())]
        return json_hash([type(self.theory).__name__, structure, *self._how, fixed, self.tolerance, _COLUMNS, __version__,
                       np.__version__])

    @property
    def unknowns(self) -> tuple[str, ...]:
        return tuple(self.theory.order_parameters)

    @property
    def observables(self) -> tuple[str, ...]:
        return tuple(self.theory.errors)

    @property
    def sometimes(self) -> set[str]:
        return set(self.theory.brought_by)

    def _solve(self, piece: GridPiece, index: Any, start: Mapping[str, Any]) -> Solution:
        theory = _SEEN.setdefault(self.signature, self.theory)
        numbers = {**self.fixed, **{n: v[np.asarray(index)] for n, v in piece.items()}}
        how = dict(zip(("method", "damping"), self.how, strict=True)) if self._how else {}
        found: Solution = theory.solve(raise_on_failure=False, start=start if start and theory.warm else None,
                                       tolerance=self.tolerance, **how, **numbers)
        return found


@dataclass(frozen=True)
class PathLine(_AlongTime, TheoryLine):
    """A theory that is followed in time: its points on one path are those of one curve."""

    def _path(self, times: np.ndarray, numbers: Mapping[str, Any]) -> dict[str, Any]:
        how = {"tolerance": self.tolerance} if self.tolerance else {}  # else the theory's own
        found = self.theory.curve(times, **how, **numbers)
        return {**{n: found[n] for n in (*self.unknowns, *self.observables)}, "residual": found.residual,
                "stability": found.stability, "iterations": 0, "converged": found.converged,
                "reason": np.asarray(found.reason, dtype=object)}
