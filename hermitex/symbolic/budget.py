"""Time budgets, checked cooperatively: ``with budget(30): ...`` and `checkpoint()` inside the loops of long work.

A budget is wall time, which a user sees; an effort is processor time, by which one way is given up for another: what is
reached must not depend on what else the machine does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

from hermitex.errors import BadInput, BudgetExceeded

T = TypeVar("T")
DEFAULT_BUDGET = 60.0  # seconds of an answer, where none are given

_current: ContextVar[tuple[float, float] | None] = ContextVar("hermitex_budget", default=None)
_effort: ContextVar[tuple[float, float] | None] = ContextVar("hermitex_effort", default=None)


@contextmanager
def budget(seconds: float | None) -> Iterator[None]:
    """Bound the work inside to `seconds` of wall time (None: no further bound); an enclosing budget still holds.

    Raises
    ------
    BadInput : not a number, or a negative one. Inside, `BudgetExceeded` at the first check after the time.
    """
    if not (seconds is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0)):
        raise BadInput(f"budget: a number of seconds is needed, or None for no bound, not {seconds!r}; e.g. budget=60")
    with _bounded(_current, time.monotonic(), seconds):
        yield


@contextmanager
def effort(seconds: float | None) -> Iterator[None]:
    """Bound the work inside to `seconds` of processor time (None: no further bound); an enclosing bound still holds."""
    with _bounded(_effort, time.process_time(), seconds):
        yield


@contextmanager
def attempt(seconds: float, share: float) -> Iterator[None]:
    """One way of several: `seconds` of processor time, and a share of the budget that is left."""
    with effort(seconds), budget(remaining(share)):
        yield


@contextmanager
def _bounded(bound: ContextVar[tuple[float, float] | None], now: float, seconds: float | None) -> Iterator[None]:
    """Keep (when it ends, its seconds) in `bound`: that around it where it ends sooner."""
    outer = bound.get()
    mine = None if seconds is None else (now + seconds, seconds)
    token = bound.set(min((b for b in (outer, mine) if b is not None), default=None))
    try:
        yield
    finally:
        bound.reset(token)


def checkpoint(doing: str = "") -> None:
    """Raise `BudgetExceeded` if the budget in force has run out, or the effort."""
    now = _current.get()
    if now is not None and time.monotonic() > now[0]:
        raise BudgetExceeded(now[1], doing)
    spent = _effort.get()
    if spent is not None and time.process_time() > spent[0]:
        raise BudgetExceeded(spent[1], doing)


def is_over() -> bool:
    """Whether a `checkpoint` would raise, for callbacks through which no exception may pass."""
    try:
        checkpoint()
    except BudgetExceeded:
        return True
    return False


def kept(size: int = 1024) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``lru_cache`` for what may be cut short: nothing is kept that was computed while some budget ran out.

    >>> @kept()
    ... def square(n):
    ...     return n*n
    >>> square(3)
    9
    """
    def wrap(f: Callable[..., T]) -> Callable[..., T]:
        known: dict[Any, T] = {}

        @wraps(f)
        def inner(*args: Any) -> T:
            if args not in known:
                before = BudgetExceeded.count
                value = f(*args)
                if BudgetExceeded.count != before:
                    return value
                if len(known) >= size:
                    known.clear()
                known[args] = value
            return known[args]

        inner.cache_clear = known.clear  # type: ignore[attr-defined]
        return inner

    return wrap


def remaining(share: float = 1.0) -> float | None:
    """Seconds left in the budget in force, or a share of them; None if there is none."""
    now = _current.get()
    return None if now is None else share*max(0.0, now[0] - time.monotonic())
