"""A limit on time that iterations ask at each step: what has run out of it ends with its last state, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from ..errors import BadInput

_END: ContextVar[tuple[float, float]] = ContextVar("end", default=(float("inf"), float("inf")))  # (when, of how many seconds)


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Iterations within end after so many seconds, or when an outer limit does; None is no limit.

    Raises BadInput for what is no number of seconds.

    >>> with limited(60):
    ...     over()
    False
    """
    if seconds is not None and not seconds >= 0:
        raise BadInput(f"budget = {seconds!r} is not a number of seconds")
    outer = _END.get()
    mine = (monotonic() + seconds, seconds) if seconds is not None else outer
    token = _END.set(min(mine, outer))
    try:
        yield
    finally:
        _END.reset(token)


def over() -> bool:
    """Whether the time is up."""
    return monotonic() > _END.get()[0]


def ran_out(steps: str = "the steps ran out") -> str:
    """What ended an iteration: the time, or `steps`."""
    return f"the budget of {_END.get()[1]:g} s ran out" if over() else steps
