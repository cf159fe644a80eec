"""Ctrl-C on the command line: one line and status 130, whatever was being done when it came.

A library that is being imported turns a KeyboardInterrupt into an ImportError, one that calls back into a SystemError, and the
collection of garbage loses it; so it is written down when it comes.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def interrupts(*, ends: bool) -> Iterator[list[int]]:
    """The interrupts that came while the body ran.

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

    def lost(what: Any) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            _thread.interrupt_main()  # where no exception can pass: it comes again at the next step
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, lost
    signal.signal(signal.SIGINT, ring)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if came and ends else signal.default_int_handler)
        sys.unraisablehook = hook
