"""Who does the work of a sweep: this process, a process pool of its own, or any executor it is given.

    fresh -> under way -> finished            and, when a worker dies,      under way -> suspect -> tried again, alone

Of the chunks that were under way when a worker died only one is guilty; tried one at a time, the others finish.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import BadInput, HermitexError
from .journal import PASSING, Columns, column_to_json
from .sweep_grid import Grid, GridPiece, concatenate_pieces

Solve = Callable[[GridPiece], Mapping[str, Any]]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkersLost(HermitexError):
    """Worker processes died again and again; what was finished is on disk."""


def run_chunk(solve: Solve, pieces: list[GridPiece]) -> Columns:
    """Solve the pieces of a chunk; where one raises, its points are solved one by one and the guilty ones marked."""
    solved = [c for piece in pieces for c in _solve_piece(solve, piece)]
    names = dict.fromkeys(n for c in solved for n in c)
    return {n: [v for c in solved for v in c.get(n, [None] * len(c["converged"]))] for n in names}


def _solve_piece(solve: Solve, piece: GridPiece) -> Iterator[Columns]:
    size = len(next(iter(piece.values())))
    try:
        yield _checked_rows(solve({k: v.copy() for k, v in piece.items()}), size)
    except Exception as error:
        if size == 1:
            # the name of the error says what kind it is where its text alone would not
            yield {"converged": [False], "reason": [f"{type(error).__name__}: {error}".split("\n")[0]]}
            return
        for i in range(size):
            yield from _solve_piece(solve, {k: v[i : i + 1] for k, v in piece.items()})


def _checked_rows(out: Mapping[str, Any], size: int) -> Columns:
    table: Columns = {}
    for name, v in out.items():
        if np.shape(v) not in ((), (1,), (size,)):
            raise ValueError(f"solve returned {name} of shape {np.shape(v)} for {size} points")
        table[name] = column_to_json(np.broadcast_to(np.asarray(v), (size,)))
    ok = [bool(v) for v in table.get("converged", [True] * size)]
    reason = [str(r or "") for r in table.get("reason", [""] * size)]
    table["converged"] = ok
    table["reason"] = ["" if good else r or "not converged" for good, r in zip(ok, reason, strict=True)]
    return table


class WorkerPool:
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

    def submit(self, solve: Solve, pieces: list[GridPiece]) -> Future[Columns]:
        if self.borrowed is not None:
            return self.borrowed.submit(run_chunk, solve, pieces)  # type: ignore[no-any-return]
        if self.own is None:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            _require_picklable(solve)
            # spawn: a forked child inherits the locks of threads it does not have
            self.own = ProcessPoolExecutor(self.workers, get_context("spawn"), initializer=_follow_parent)
        with _one_thread(), _interrupt_deferred(), _interrupts_masked():
            return self.own.submit(run_chunk, solve, pieces)

    def replace_pool(self) -> None:
        """The pool is gone: take a fresh one. A borrowed pool cannot be remade, so ours takes over from it."""
        from concurrent.futures import BrokenExecutor

        self.breaks += 1
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)
            self.own = None
        elif self.borrowed is not None:
            try:
                self.borrowed.submit(int).result(timeout=60)  # a Dask cluster replaces its workers and lives on
            except (TimeoutError, CancelledError, OSError):
                pass  # slow to come back: the chunks that wait for it have their own number of attempts
            except (BrokenExecutor, RuntimeError):
                self.workers = self.workers or getattr(self.borrowed, "_max_workers", 0) or os.cpu_count() or 1
                self.borrowed = None

    def shut_down(self, *, at_once: bool = False) -> None:
        """Send the workers home, when they have finished what they do or at once."""
        if self.own is not None:
            if at_once:
                for process in list((getattr(self.own, "_processes", None) or {}).values()):
                    process.kill()
            self.own.shutdown(wait=True, cancel_futures=True)


def chunk_results(solve: Solve, points: Grid, todo: list[int], crew: WorkerPool, attempts: int) -> Iterator[dict[int, Columns]]:
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
                future = _submit_chunk(crew, solve, points.pieces(k))
                if future is None:
                    (suspects if k in tried else fresh).appendleft(k)
                    break
                flying[future] = k
            ready = _wait_for_finished(flying)
            finished, dead = _collect_results({f: flying.pop(f) for f in ready})
            born = born or bool(finished)
            if dead or not ready:
                if crew.own is not None:
                    wait(flying, timeout=60)  # the pool died under all of them, and is telling them one by one
                more, rest = _collect_results({f: flying.pop(f) for f in [*flying] if f.done()})
                finished, dead = {**finished, **more}, [*dead, *rest]
                crew.replace_pool()
                if not born and crew.breaks > attempts:
                    raise WorkersLost(_LOST)
            for k in dead:
                tried[k] = tried.get(k, 0) + 1
                if tried[k] < attempts:
                    suspects.append(k)
                else:
                    finished[k] = _failed_chunk_rows(points, k, attempts)
            if finished:
                yield finished
    except (KeyboardInterrupt, GeneratorExit):
        crew.shut_down(at_once=True)
        raise
    finally:
        for future in flying:
            future.cancel()
        crew.shut_down()


_LOST = (
    "the worker processes die before they answer. A script that starts a sweep with workers needs the guard "
    'if __name__ == "__main__": around it, and a function typed into a notebook must move to a module they can import; '
    "otherwise look at their memory, or pass executor="
)


def _wait_for_finished(flying: Mapping[Future[Columns], int]) -> set[Future[Columns]]:
    """Those that are done, as soon as there is one."""
    ready: set[Future[Columns]] = set()
    tick = 0.25  # s: how soon an interrupt is heard while chunks are waited for
    while flying and not ready:
        with _interrupt_deferred():
            ready = wait(flying, timeout=tick, return_when=FIRST_COMPLETED).done
    return ready


def _submit_chunk(crew: WorkerPool, solve: Solve, pieces: list[GridPiece]) -> Future[Columns] | None:
    from concurrent.futures import BrokenExecutor

    try:
        return crew.submit(solve, pieces)
    except BrokenExecutor:
        return None


def _collect_results(futures: Mapping[Future[Columns], int]) -> tuple[dict[int, Columns], list[int]]:
    """The results that are there, and the chunks whose worker died; an error that is neither is raised."""
    finished, dead = {}, []
    for future, k in futures.items():
        try:
            finished[k] = future.result()
        except BaseException as error:
            if not _worker_died(error):
                raise
            dead.append(k)
    return finished, sorted(dead)


def _worker_died(error: BaseException) -> bool:
    """Whether an error means that a worker, not the work, ended; errors of Dask are recognised by name, not imported."""
    from concurrent.futures import BrokenExecutor

    names = {c.__name__ for c in type(error).__mro__}
    return isinstance(error, BrokenExecutor | CancelledError) or bool(
        names & {"KilledWorker", "CommClosedError", "FutureCancelledError"}
    )


def _failed_chunk_rows(points: Grid, k: int, attempts: int) -> Columns:
    """The rows of a chunk that killed every worker it was given to; not written, so a resumed sweep tries it again."""
    size = len(next(iter(concatenate_pieces(points.pieces(k)).values())))
    reason = f"the worker died at each of {attempts} attempts (memory, or a crash in compiled code)"
    return {"converged": [False] * size, "reason": [reason] * size, PASSING: [True] * size}


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


@contextmanager
def _interrupt_deferred() -> Iterator[None]:
    """An interrupt that comes inside is heard at the end: a lock of a future or a queue would stay taken."""
    import signal
    from threading import current_thread, main_thread

    before = signal.getsignal(signal.SIGINT) if current_thread() is main_thread() else None
    if not callable(before):
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *how: came.append(how))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


@contextmanager
def _interrupts_masked() -> Iterator[None]:
    """Processes started inside hear no interrupt until they are ready (`_follow_parent`); this one hears it afterwards."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_parent() -> None:
    """In a worker: end silently at an interrupt, and when the parent process is gone; a pool does neither."""
    import signal
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as ended
    from threading import Thread

    parent = parent_process()
    if parent is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is unfinished is done again; there is nothing to tidy up, nor to say
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        ended([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _require_picklable(solve: Solve) -> None:
    import pickle

    try:
        pickle.dumps(solve)
    except Exception as error:
        raise BadInput(
            f"solve cannot be sent to other processes ({error}); define it at the top of a module, or use workers=1"
        ) from None
