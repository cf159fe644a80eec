"""Ctrl-C on the command line: one line and status 130, at any moment.

A KeyboardInterrupt becomes an ImportError during an import, a SystemError in a callback, and is lost during garbage collection.
So the interrupt is recorded when it comes. An import of an optional package may catch the ImportError and lose the interrupt: the
interrupt is therefore repeated until the process ends.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_AGAIN = 5.0  # seconds; what tidies up behind an interrupt takes less


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

    over, main = threading.Event(), threading.get_ident()

    def ring(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if ends:
            _thread.start_new_thread(again, (_AGAIN,))  # `threading` may hold a lock of its own here
        raise KeyboardInterrupt

    def again(seconds: float) -> None:
        time.sleep(seconds)
        if over.is_set():
            return
        if sys.platform == "win32":
            _thread.interrupt_main()
        else:  # it wakes what waits, too
            signal.pthread_kill(main, signal.SIGINT)

    soon = 0.02  # seconds: what is in progress where no exception can pass, as in __del__, has ended by then

    def lost(what: Any) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(again, (soon,))  # where no exception can pass, as here: it comes again behind
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, lost
    signal.signal(signal.SIGINT, ring)
    try:
        yield came
    finally:
        over.set()
        signal.signal(signal.SIGINT, signal.SIG_IGN if came and ends else signal.default_int_handler)
        sys.unraisablehook = hook
