"""How far it is, on stderr: one line that is rewritten on a terminal, elsewhere a line each ten seconds, and one at the end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic


def reporter(what: str, unit: str, *, asked: bool = True) -> Callable[..., None]:
    """A callback of (done, total, more words): "sweep: 40 of 100 points, 12 s, about 18 s left".

    The time left is that of the pace since the first call: what a sweep that is resumed finds done says nothing of its pace.
    Without a terminal, and if nobody `asked`, work that takes less than ten seconds prints nothing.
    """
    begun = last = monotonic()
    since: tuple[float, int] | None = None  # when it was first told how far it is, and how far

    every = 10.0  # seconds between lines without a terminal

    def tell(done: int, total: int, more: str = "") -> None:
        nonlocal last, since
        if sys.stderr is None:
            return
        now, terminal = monotonic(), sys.stderr.isatty()
        since = since or (now, done)
        if not terminal and now - last < every and (done < total or (last == begun and not asked)):
            return
        last = now
        left = (now - since[0])*(total - done)/(done - since[1]) if done > since[1] else None
        text = f"{what}: {done} of {total} {unit}{more}, {words(now - begun)}"
        text += f", about {words(left)} left" if left is not None and done < total else ""
        end = "\n" if done == total or not terminal else ""
        sys.stderr.write(f"\r{text}\033[K{end}" if terminal else f"{text}\n")
        sys.stderr.flush()

    return tell


@contextmanager
def heartbeat(tell: Callable[[int, int], None], every: float = 1.0) -> Iterator[Callable[[int, int], None]]:
    """The same callback, called again with its last values while a step takes long, so that the elapsed time is shown."""
    heard: list[tuple[int, int]] = []
    over = threading.Event()

    def hear(done: int, total: int) -> None:
        heard[:] = [(done, total)]
        tell(done, total)

    def beat() -> None:
        while not over.wait(every):
            if heard and heard[0][0] < heard[0][1]:
                tell(*heard[0])

    watch = threading.Thread(target=beat, name="hermitex progress", daemon=True)
    watch.start()
    try:
        yield hear
    finally:
        over.set()
        watch.join()


def words(seconds: float) -> str:
    """A time in words.

    >>> words(4.2), words(75), words(7300)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole//60} min {whole % 60} s" if whole < 3600 else f"{whole//3600} h {whole % 3600//60} min"
