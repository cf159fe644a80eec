"""deadline = budget + grace: what the cooperative checks of a budget of CPU seconds miss, an alarm ends.

A thread waits next to the work and, when the budget is used up, has an exception raised in it, in whatever thread that is. The
exception is a `BaseException`, so that no ``except Exception`` on the way can swallow it, and is raised again until it is heard.
Deadlines may be nested.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from math import inf
from types import FrameType, TracebackType

from hermitex.errors import BudgetExceeded
from hermitex.processor import PAUSE, WAITING, processor_seconds
from hermitex.symbolic.budget import budget, effort, ends, patient
from hermitex.symbolic.interrupts import behind

# How far a budget may be overrun before an alarm ends it: a share of it, and seconds; seconds between two checks.
GRACE, LEAST, AGAIN = 0.05, 0.2, 0.1
WAKES = getattr(signal, "SIGURG", 0)  # ignored where nobody handles it
SOON = 0.05  # an attempt's time beyond its own, before the deadline around it ends it


class Alarm(BaseException):
    """Raised in the thread whose time is over."""


class _Unraisable:
    """Python's report of an exception that cannot pass, as in garbage collection; alarms are left out, as they are raised again."""

    def __init__(self, hook: Callable[[sys.UnraisableHookArgs], object]) -> None:
        self._hook = hook

    def __call__(self, what: sys.UnraisableHookArgs) -> None:
        if not issubclass(what.exc_type, Alarm):
            self._hook(what)


def deadline(seconds: float | None) -> AbstractContextManager[None]:
    """Run the body within a budget of `seconds` of CPU time (None: no bound); an alarm ends a body that does not check it.

    The CPU time of this process and its children counts, so that the result does not depend on what else runs. A body that
    sleeps, or waits, uses none: it is ended after 20 times the budget, and five seconds, on the wall. An enclosing budget still
    holds. Inside one step of a compiled library the alarm waits for that step; so it does while the
    thread sleeps, unless `woken` handles the signal `WAKES`.

    Raises
    ------
    BadInput : not a number, or a negative one.
    BudgetExceeded : at a cooperative check, or from the alarm.

    Guarantee
    ---------
    The body ends soon after its seconds of processor time are used. Nothing is promised about a later answer. See
    docs/promise.md.

    Examples
    --------
    >>> with deadline(0.01):  # doctest: +ELLIPSIS
    ...     while True:
    ...         pass
    Traceback (most recent call last):
    ...
    hermitex.errors.BudgetExceeded: the budget of 0.01 CPU seconds ran out (... used) while in <module>, a step that does not check it; allow more with --budget SECONDS (budget=)
    """  # noqa: E501
    return _Deadline(seconds)


def attempt(seconds: float | None) -> AbstractContextManager[None]:
    """One way of several: so many seconds of processor time, times the `patience` in force (None: until the budget ends).

    The load of the machine does not change how far it gets. It is also ended by an alarm as soon as the budget in
    force is over.
    """
    return _Deadline(None if seconds is None else patient(seconds), cpu=True)


class _Deadline(AbstractContextManager[None]):
    def __init__(self, seconds: float | None, *, cpu: bool = False) -> None:
        self.seconds, self._cpu = seconds, cpu
        self._bound = effort(seconds) if cpu else budget(seconds)
        self._alarm: type[BaseException] = type("Alarm", (Alarm,), {})  # its own: an outer one may be raised inside
        self._over, self._rang, self._step = threading.Event(), False, ""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._begun = processor_seconds()
        self._bound.__enter__()
        if not isinstance(sys.unraisablehook, _Unraisable):
            sys.unraisablehook = _Unraisable(sys.unraisablehook)
        around = ends() if self._cpu else None
        self._watched = self.seconds is not None or around is not None
        if self._watched:
            self._thread = threading.get_ident()
            watch = threading.Thread(target=self._watch, args=(self._clock(around),), name="hermitex deadline", daemon=True)
            try:
                watch.start()
            except BaseException:  # an outer alarm while the thread starts: nobody would switch this one off
                self._leave(None, None, None)
                raise

    def _clock(self, around: float | None) -> Callable[[], float]:
        """CPU seconds until the alarm, or seconds on the wall until a body that uses none is ended, whichever are fewer."""
        beyond = SOON if self._cpu else LEAST
        mine = inf if self.seconds is None else self.seconds*(1 + GRACE) + beyond
        outer = inf if around is None else around - self._begun + SOON
        idle = inf if self.seconds is None else time.monotonic() + WAITING*self.seconds + PAUSE
        living = processor_seconds(running=True) - self._begun  # children from before, which are not this body's
        end = self._begun + living + min(mine, outer)
        return lambda: min(end - processor_seconds(running=True), idle - time.monotonic())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._leave(kind, error, trace)
        # A library that called back when the alarm rang tells it in its own words: a result with an exception set.
        rang = behind(error) if isinstance(error, SystemError) else error
        if isinstance(rang, self._alarm):
            used = processor_seconds(running=True) - self._begun
            raise BudgetExceeded(self.seconds or 0, f"{self._step}, a step that does not check it", used) from None

    def _leave(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while True:  # the alarm may be raised while it is being switched off, and so may an outer one, which is raised again
            try:
                self._bound.__exit__(kind, error, trace)
                self._switch_off()
                break
            except Alarm:
                pass

    def _watch(self, left: Callable[[], float]) -> None:
        # Several processes use up CPU seconds faster than the clock on the wall: half of what is left, then another look.
        while not self._over.wait(min(max(left()/2, AGAIN), threading.TIMEOUT_MAX)):
            with self._lock:
                if left() <= 0 and not self._over.is_set() and self._runs():
                    self._step = self._step or _step_of(sys._current_frames().get(self._thread))
                    self._rang = True
                    _raise_in(self._thread, self._alarm)

    def _runs(self) -> bool:
        """Does the body run, with no deadline being entered or left in it?

        A library that ends with an exception comes to no step of Python before the first of `__exit__`: raised there, the alarm
        would switch nothing off and be raised for ever.
        """
        doors = _Deadline.__enter__.__code__, _Deadline.__exit__.__code__
        frame = sys._current_frames().get(self._thread)
        while frame is not None and frame.f_code not in doors:
            frame = frame.f_back
        return frame is None

    def _switch_off(self) -> None:
        self._over.set()
        if self._watched:
            with self._lock:  # no alarm is raised from here on
                pass
            if self._rang:  # it may not have been heard yet
                _raise_in(self._thread, None)


def _step_of(frame: FrameType | None) -> str:
    """The step that a thread is in, in words: the innermost function, with its library, and what of the package called it."""
    inner = frame.f_code.co_name if frame is not None else "a step"
    library = frame.f_globals.get("__name__", "").partition(".")[0] if frame is not None else ""
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("hermitex."):
        frame = frame.f_back
    if frame is None or library == "hermitex":
        return f"in {inner}"
    return f"in {inner} of {library}, which {frame.f_code.co_name} calls" if library != "__main__" else f"in {inner}"


def _raise_in(thread: int, alarm: type[BaseException] | None) -> None:
    """Have `alarm` raised in a thread at its next step of Python; None takes back what was not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if alarm is None else ctypes.py_object(alarm))
    if alarm is not None and thread == threading.main_thread().ident and WAKES and signal.getsignal(WAKES) is woken:
        signal.pthread_kill(thread, WAKES)


def woken(number: int, frame: FrameType | None) -> None:
    """A step of Python for a thread that sleeps or waits for another process: the alarm is raised as it is entered."""
