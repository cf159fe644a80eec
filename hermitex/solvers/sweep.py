"""Solving over a grid of parameters, in chunks, on any executor, with nothing lost when something dies.

    chunk k of the grid  ->  solve(piece) for each of its pieces  ->  one line of the journal,   k = 0, 1, ...

A chunk is fixed by the grid alone, solved whole and written whole; what was not written is done again. So a sweep that was
killed and resumed gives the bits of one that was not, on any number of workers and in any order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from ..errors import HermitexError
from .grid import Grid, Piece, columns, grid
from .journal import Columns, Journal, plain
from .table import Sweep, assemble

Solve = Callable[[Piece], Mapping[str, Any]]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Progress(NamedTuple):
    """What a progress callback is told after every batch of results."""

    done: int
    points: int
    failed: int
    seconds: float


class WorkersLost(HermitexError):
    """Worker processes died again and again; what was finished is on disk."""


def sweep(
    solve: Solve,
    axes: Mapping[str, Any],
    *,
    executor: Any = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
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
    executor : any concurrent.futures executor, or a Dask client; default: this process, or a process pool if workers > 1
    progress : called with a `Progress` as results come in
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
    ...     return {"m": point["alpha"]/(1 + point["lam"]), "converged": point["alpha"] < 3, "reason": "alpha too large"}
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
        say = _Teller(points, done, progress)
        for results in _results(solve, points, todo, _Crew(executor, workers), attempts):
            lasting = {k: c for k, c in results.items() if "worker died" not in c}
            if journal and lasting:
                journal.append(lasting)
            done.update(results)
            say(results)
        return assemble(points, done)
    finally:
        if journal:
            journal.close()


def run_chunk(solve: Solve, pieces: list[Piece]) -> Columns:
    """Solve the pieces of a chunk; where a piece raises, its points are solved one by one and the guilty ones marked."""
    solved = [c for piece in pieces for c in _solve_piece(solve, piece)]
    names = dict.fromkeys(n for c in solved for n in c)
    return {n: [v for c in solved for v in c.get(n, [None] * len(c["converged"]))] for n in names}


def _solve_piece(solve: Solve, piece: Piece) -> Iterator[Columns]:
    size = len(next(iter(piece.values())))
    try:
        yield _checked(solve({k: v.copy() for k, v in piece.items()}), size)
    except Exception as error:
        if size == 1:
            # the name of the error says what kind it is where its text alone would not
            yield {"converged": [False], "reason": [f"{type(error).__name__}: {error}".split("\n")[0]]}
            return
        for i in range(size):
            yield from _solve_piece(solve, {k: v[i : i + 1] for k, v in piece.items()})


def _checked(out: Mapping[str, Any], size: int) -> Columns:
    table: Columns = {}
    for name, v in out.items():
        if np.shape(v) not in ((), (1,), (size,)):
            raise ValueError(f"solve returned {name} of shape {np.shape(v)} for {size} points")
        table[name] = plain(np.broadcast_to(np.asarray(v), (size,)))
    ok = [bool(v) for v in table.get("converged", [True] * size)]
    reason = [str(r or "") for r in table.get("reason", [""] * size)]
    table["converged"] = ok
    table["reason"] = ["" if good else r or "not converged" for good, r in zip(ok, reason, strict=True)]
    return table


class _Crew:
    """The executor, made and remade if it is ours, borrowed if it is the caller's."""

    def __init__(self, executor: Any, workers: int | None) -> None:
        self.workers = workers or (1 if executor is None else 0)
        self.borrowed = executor.get_executor() if hasattr(executor, "get_executor") else executor
        self.own: Executor | None = None
        self.breaks = 0

    @property
    def serial(self) -> bool:
        return self.borrowed is None and self.workers <= 1

    @property
    def window(self) -> int:
        """How many chunks are under way at once: enough to keep everybody busy, few enough to hold in memory."""
        return max(32, 4 * self.workers)

    def submit(self, solve: Solve, pieces: list[Piece]) -> Future[Columns]:
        if self.borrowed is not None:
            return self.borrowed.submit(run_chunk, solve, pieces)  # type: ignore[no-any-return]
        if self.own is None:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            # spawn: a forked child inherits the locks of threads it does not have
            self.own = ProcessPoolExecutor(self.workers, get_context("spawn"), initializer=_follow_parent)
        with _one_thread():
            return self.own.submit(run_chunk, solve, pieces)

    def broke(self) -> None:
        """The pool is gone: take a fresh one. A borrowed pool cannot be remade, so ours takes over from it."""
        from concurrent.futures import BrokenExecutor

        self.breaks += 1
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)
            self.own = None
        elif self.borrowed is not None:
            try:
                self.borrowed.submit(int).result(timeout=60)  # a Dask cluster replaces its workers and lives on
            except (BrokenExecutor, RuntimeError, TimeoutError, CancelledError):
                self.workers = self.workers or getattr(self.borrowed, "_max_workers", 0) or os.cpu_count() or 1
                self.borrowed = None

    def dismiss(self) -> None:
        if self.own is not None:
            self.own.shutdown(wait=True, cancel_futures=True)


def _results(solve: Solve, points: Grid, todo: list[int], crew: _Crew, attempts: int) -> Iterator[dict[int, Columns]]:
    """Finished chunks as they come, in batches; every chunk of `todo` exactly once."""
    if crew.serial:
        for k in todo:
            yield {k: run_chunk(solve, points.pieces(k))}
        return
    fresh, suspects = deque(todo), deque[int]()
    tried: dict[int, int] = {}
    flying: dict[Future[Columns], int] = {}
    born = False
    try:
        while fresh or suspects or flying:
            # after a death those under way are tried one at a time, so that only the guilty one is tried in vain again
            while (suspects and not flying) or (fresh and not suspects and len(flying) < crew.window):
                k = (suspects or fresh).popleft()
                future = _submit(crew, solve, points.pieces(k))
                if future is None:
                    (suspects if k in tried else fresh).appendleft(k)
                    break
                flying[future] = k
            ready, _ = wait(flying, return_when=FIRST_COMPLETED)
            finished, dead = _collect({f: flying.pop(f) for f in ready})
            born = born or bool(finished)
            if dead or not ready:
                # the whole pool may have died under them: what has no result of its own is suspect too
                more, rest = _collect({f: flying.pop(f) for f in [*flying] if f.done()})
                finished, dead = {**finished, **more}, [*dead, *rest]
                crew.broke()
                if not born and crew.breaks > attempts:
                    raise WorkersLost(_LOST)
            for k in dead:
                tried[k] = tried.get(k, 0) + 1
                if tried[k] < attempts:
                    suspects.append(k)
                else:
                    finished[k] = _mourned(points, k, attempts)
            if finished:
                yield finished
    finally:
        for future in flying:
            future.cancel()
        crew.dismiss()


_LOST = (
    "the worker processes die before they answer. A script that starts a sweep with workers needs the guard "
    'if __name__ == "__main__": around it; otherwise look at their memory, or pass executor='
)


def _submit(crew: _Crew, solve: Solve, pieces: list[Piece]) -> Future[Columns] | None:
    from concurrent.futures import BrokenExecutor

    try:
        return crew.submit(solve, pieces)
    except BrokenExecutor:
        return None


def _collect(futures: Mapping[Future[Columns], int]) -> tuple[dict[int, Columns], list[int]]:
    """The results that are there, and the chunks whose worker died; an error that is neither is raised."""
    finished, dead = {}, []
    for future, k in futures.items():
        try:
            finished[k] = future.result()
        except BaseException as error:
            if not _died(error):
                raise
            dead.append(k)
    return finished, sorted(dead)


def _died(error: BaseException) -> bool:
    """Whether an error means that a worker, not the work, came to an end; Dask's are known by name, not imported."""
    from concurrent.futures import BrokenExecutor

    names = {c.__name__ for c in type(error).__mro__}
    return isinstance(error, BrokenExecutor | CancelledError) or bool(
        names & {"KilledWorker", "CommClosedError", "FutureCancelledError"}
    )


def _mourned(points: Grid, k: int, attempts: int) -> Columns:
    """The rows of a chunk that killed every worker it was given to; never written, so a resumed sweep tries it again."""
    size = len(next(iter(columns(points.pieces(k)).values())))
    reason = f"the worker died at each of {attempts} attempts (memory, or a crash in compiled code)"
    return {"converged": [False] * size, "reason": [reason] * size, "worker died": [True] * size}


class _Teller:
    """Counts, and calls the progress callback."""

    def __init__(self, points: Grid, done: Mapping[int, Columns], progress: Callable[[Progress], None] | None) -> None:
        self.progress, self.points, self.begun = progress, points.points, monotonic()
        self.done = self.failed = 0
        self(done)

    def __call__(self, results: Mapping[int, Columns]) -> None:
        for c in results.values():
            self.done += len(c["converged"])
            self.failed += sum(not ok for ok in c["converged"])
        if self.progress and results:
            self.progress(Progress(self.done, self.points, self.failed, monotonic() - self.begun))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started inside use one thread each for linear algebra: they are as many as there are cores already."""
    missing = [n for n in _THREADS if n not in os.environ]
    os.environ.update(dict.fromkeys(missing, "1"))
    try:
        yield
    finally:
        for n in missing:
            os.environ.pop(n, None)


def _follow_parent() -> None:
    """In a worker: end when the process that started it is gone, which a pool does not see to by itself."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as ended
    from threading import Thread

    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        ended([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()
