"""What a caller asks of a solve: a tolerance, and a limit on time that iterations ask at each step.

What has run out of its time ends with its last state, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from time import monotonic
from typing import Any

from ..errors import BadInput, brief

_END: ContextVar[tuple[float, float]] = ContextVar("end", default=(float("inf"), float("inf")))  # (when, of how many seconds)


def require_tolerance(tolerance: Any) -> None:
    """Refuse what is no relative accuracy.

    >>> require_tolerance(1e-9)
    """
    if isinstance(tolerance, bool) or not (isinstance(tolerance, Real) and 0 < float(tolerance) < 1):
        raise BadInput(f"tolerance = {brief(tolerance)} is not a number between 0 and 1")


def require_seconds(seconds: Any) -> None:
    """Refuse what is no number of seconds; None is no limit.

    >>> require_seconds(60)
    """
    if seconds is not None and (isinstance(seconds, bool) or not (isinstance(seconds, Real) and float(seconds) >= 0)):
        raise BadInput(f"budget = {brief(seconds)} is not a number of seconds")


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Iterations within end after so many seconds, or when an outer limit does; None is no limit.

    Raises BadInput for what is no number of seconds.

    >>> with limited(60):
    ...     over()
    False
    """
    require_seconds(seconds)
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
