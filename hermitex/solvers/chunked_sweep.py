"""Solving over a grid of parameters, in chunks, on any executor, with nothing lost when something dies.

    chunk k of the grid  ->  solve(piece) for each of its pieces  ->  one line of the journal,   k = 0, 1, ...

A chunk is fixed by the grid alone, solved whole and written whole; what was not written is done again. So a sweep that
was killed and resumed gives the bits of one that was not, on any number of workers and in any order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from ..show.progress import reporter
from .journal import PASSING, Journal, pack_chunk
from .sweep_grid import Grid, grid
from .sweep_table import Sweep, assemble_sweep
from .workers import Solve, WorkerPool, chunk_results


class Progress(NamedTuple):
    """The argument of a progress callback, which is called after every batch of results."""

    done: int
    points: int
    failed: int
    seconds: float


def sweep(
    solve: Solve,
    axes: Mapping[str, Any],
    *,
    executor: Any = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = True,
    signature: str = "",
    chunk: int = 50,
    attempts: int = 3,
) -> Sweep:
    """Solve at every point of a grid.

    Parameters
    ----------
    solve : callable, picklable for other processes; takes a dict of arrays (consecutive points of a line of the first
        key) and returns a dict of arrays of that length or scalars, `converged` (bool) and `reason` (str) among them
    axes : {name: values}; the grid is their product and the first key is the continuation line
    executor : any concurrent.futures executor, or a Dask client; default: a process pool if workers > 1, else here
    progress : called with a `Progress` as results come in; True writes a line on stderr
    checkpoint : directory where finished chunks are kept as they come; an existing one is resumed
    signature : of the equations and fixed parameters; a checkpoint with another one is refused
    attempts : how often a chunk that kills its worker is tried

    Returns
    -------
    Sweep    one row a point, in the order of the grid; a point that failed stays, with its reason

    Raises
    ------
    BadInput       a grid with no points or NaN; a checkpoint that belongs to another sweep or is in use
    WorkersLost    the executor itself cannot be kept alive

    Examples
    --------
    >>> def solve(point):
    ...     m = point["alpha"]/(1 + point["lam"])
    ...     return {"m": m, "converged": point["alpha"] < 3, "reason": "alpha too large"}
    >>> table = sweep(solve, {"alpha": [1, 2, 3], "lam": [0.0, 1.0]})
    >>> table
    Sweep(alpha x lam: 3 x 2 = 6 points, 2 failed; m)
    >>> table["m"].tolist(), table.failed[0]["reason"]
    ([1.0, 2.0, 3.0, 0.5, 1.0, 1.5], 'alpha too large')
    """
    points = grid(axes, chunk)
    journal = Journal(checkpoint, points, signature, resume=resume) if checkpoint is not None else None
    try:
        done = dict(journal.done) if journal else {}
        todo = [k for k in range(points.chunks) if k not in done]
        say = _ProgressReporter(points, done, progress)
        for found in chunk_results(solve, points, todo, WorkerPool(executor, workers), attempts):
            lasting = {k: c for k, c in found.items() if PASSING not in c}
            if journal and lasting:
                journal.append(lasting)
            done.update({k: pack_chunk(c) for k, c in found.items()})
            say(found)
        return assemble_sweep(points, done)
    finally:
        if journal:
            journal.close()


class _ProgressReporter:
    """Counts, and calls the progress callback."""

    def __init__(
        self, points: Grid, done: Mapping[int, Mapping[str, Any]], progress: Callable[[Progress], None] | bool | None
    ) -> None:
        self.progress = on_stderr() if progress is True else progress or None
        self.points, self.begun = points.points, monotonic()
        self.done = self.failed = 0
        self(done)

    def __call__(self, found: Mapping[int, Mapping[str, Any]]) -> None:
        for c in found.values():
            self.done += len(c["converged"])
            self.failed += sum(not ok for ok in c["converged"])
        if self.progress and found:
            self.progress(Progress(self.done, self.points, self.failed, monotonic() - self.begun))


def on_stderr() -> Callable[[Progress], None]:
    """The progress callback of progress=True."""
    tell = reporter("sweep", "points")
    return lambda state: tell(state.done, state.points, f", {state.failed} failed")
