"""The limits of a solve: a tolerance, and CPU seconds, which iterations check at each step.

A solve that runs out of time ends with its last state, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ..errors import BadInput, brief
from ..processor import processor_seconds

_FOREVER = float("inf")


class OutOfTime(Exception):
    """The time is up, or would be up before the work is done."""


@dataclass
class _Limit:
    """When it ends, of how many CPU seconds; whether what was asked for no longer fits; {name: (size, seconds)} as measured."""

    when: float = _FOREVER
    seconds: float = _FOREVER
    out: bool = False
    known: dict[str, tuple[float, float]] = field(default_factory=dict)


_END: ContextVar[_Limit] = ContextVar("end", default=_Limit())  # noqa: B039


def require_tolerance(tolerance: Any) -> None:
    """Refuse a value that is not a relative accuracy.

    >>> require_tolerance(1e-9)
    """
    if isinstance(tolerance, bool) or not (isinstance(tolerance, Real) and 0 < float(tolerance) < 1):
        raise BadInput(f"tolerance = {brief(tolerance)} is not a number between 0 and 1")


def require_seconds(seconds: Any) -> None:
    """Refuse a value that is not a number of seconds; None means no limit.

    >>> require_seconds(60)
    """
    if seconds is not None and (isinstance(seconds, bool) or not (isinstance(seconds, Real) and float(seconds) >= 0)):
        raise BadInput(f"budget = {brief(seconds)} is not a number of seconds")


@contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Iterations within end after so many CPU seconds, or when an outer limit does; None means no limit.

    Raises BadInput for a value that is not a number of seconds.

    >>> with limit_time(60):
    ...     is_time_up()
    False
    """
    require_seconds(seconds)
    outer = _END.get()
    mine = _Limit(processor_seconds() + seconds, seconds) if seconds is not None else outer
    token = _END.set(min(mine, outer, key=lambda limit: limit.when))
    try:
        yield
    finally:
        _END.reset(token)


def is_time_up() -> bool:
    """Whether the time is up."""
    limit = _END.get()
    return limit.out or processor_seconds() > limit.when


def run_if_time_allows(name: str, sized: Callable[[], float], run: Callable[[], Any]) -> Any:
    """Call `run` if the remaining time suffices; a run takes, for its size, at least as long as the largest one so far.

    Raises OutOfTime if the time does not suffice. Without a limit, `sized` is not called.
    """
    limit, begun = _END.get(), processor_seconds()
    if limit.when == _FOREVER:
        return run()
    size = sized()
    before, seconds = limit.known.get(name) or max(limit.known.values(), default=(size, 0.0))
    beyond = 2.0  # so much dearer is a number in arrays that are larger than those before: caches are left behind
    expected = seconds*size/before*(beyond if size > before else 1.0)
    if limit.out or begun + expected > limit.when:
        limit.out = True
        raise OutOfTime
    value = run()
    if size >= before:
        limit.known[name] = size, max(processor_seconds() - begun, seconds if size == before else 0.0)
    return value


def ran_out(steps: str = "the steps ran out") -> str:
    """What ended an iteration: the time, or `steps`."""
    return f"the budget of {_END.get().seconds:g} CPU seconds ran out" if is_time_up() else steps
