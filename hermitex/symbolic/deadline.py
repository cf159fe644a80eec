"""deadline = budget + grace: what the cooperative checks of a time budget miss, an alarm ends.

The alarm raises a `BaseException`, so that no ``except Exception`` on the way can swallow it, and rings again until it
is heard; it needs POSIX and the main thread, elsewhere the cooperative checks stand alone. Deadlines may be nested: the
inner one ends its own part, and the outer alarm goes on.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hermitex.errors import BudgetExceeded
from hermitex.symbolic.budget import budget

GRACE, LEAST, AGAIN = 0.05, 0.2, 0.5


class _Alarm(BaseException):
    """Raised in the main thread by the timer."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Run the body within a budget of `seconds`; whatever ignores it is ended by an alarm a little later.

    Raises
    ------
    BudgetExceeded : at a cooperative check, or from the alarm.
    """
    if seconds is None or not _alarm_possible():
        with budget(seconds):
            yield
        return
    began = time.monotonic()
    outer, repeat = signal.getitimer(signal.ITIMER_REAL)
    ours = seconds * (1 + GRACE) + LEAST
    previous = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, min(ours, outer) if outer else ours, AGAIN)
    try:
        with budget(seconds):
            yield
    except (_Alarm, SystemError) as err:
        # A library that called back when the alarm rang tells it in its own words: a result with an exception set.
        if isinstance(err, SystemError) and not isinstance(err.__cause__ or err.__context__, _Alarm):
            raise
        if outer and time.monotonic() - began >= outer:
            raise  # the outer one rang
        raise BudgetExceeded(seconds, "in a step that does not check it") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - began), 1e-3), repeat or AGAIN)


def _ring(signum: int, frame: FrameType | None) -> None:
    raise _Alarm


def _alarm_possible() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
