"""What ends a verb of the command line: its deadline = budget + grace, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hermitex.symbolic import deadline as alarm


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """See `hermitex.symbolic.deadline`; what sleeps, or waits for another process, is woken too."""
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


@contextmanager
def interrupts(*, ends: bool) -> Iterator[list[int]]:
    """The interrupts that came while the body ran, also if a library made another error of one: an import, or a callback.

    ends : the process ends after it, so that a second interrupt is not heard once there was one
    """
    came: list[int] = []
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield came
        return

    def ring(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, ring)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if came and ends else signal.default_int_handler)
