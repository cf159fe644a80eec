"""A C library that calls back tells of an interrupt in words of its own: SystemError, "returned a result with an exception set".

`heard` raises what was meant: KeyboardInterrupt, or the alarm of a deadline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard() -> Iterator[None]:
    """Let the interrupts that reach a library inside arrive as they were raised."""
    try:
        yield
    except SystemError as error:
        raised = behind(error)
        if raised is None:
            raise
        raise raised.with_traceback(None) from None  # a live kernel prints one line, not hundreds


def behind(error: BaseException) -> BaseException | None:
    """The interrupt (no `Exception`) at the root of an error, if there is one."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if not isinstance(one, Exception):
            return one
        if id(one) not in seen:
            seen.add(id(one))
            left += [e for e in (one.__cause__, one.__context__) if e is not None]
    return None
