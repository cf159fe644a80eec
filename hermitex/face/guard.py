"""deadline = budget + grace, for the verbs of the command line: what sleeps, or waits for another process, is woken too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hermitex.symbolic import deadline as alarm

__all__ = ["deadline"]


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """See `hermitex.symbolic.deadline`."""
    ours = alarm.WAKES and threading.current_thread() is threading.main_thread()
    free = bool(ours) and signal.getsignal(alarm.WAKES) is signal.SIG_DFL
    if free:
        signal.signal(alarm.WAKES, alarm.woken)
    try:
        with alarm.deadline(seconds):
            yield
    finally:
        if free and signal.getsignal(alarm.WAKES) is alarm.woken:
            signal.signal(alarm.WAKES, signal.SIG_DFL)
