r"""Standard streams that may be closed, full, or unable to write a letter: no error moves from one to the other.

A closed stream is opened on the null device, so that no file gets its number; what an encoding lacks is written \u03b1.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


def prepare_streams() -> bool:
    """Make the streams safe for writing; False if the standard output is closed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    there = sys.stdout is not None
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 (it stays)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    return there


@contextlib.contextmanager
def redirect_prints() -> Iterator[TextIO]:
    """Send to stderr what a user's code prints inside, below Python too. Yields the real standard output."""
    out = sys.stdout
    out.flush()
    try:
        real = out.fileno() == 1
    except (OSError, ValueError, AttributeError):
        real = False
    if not real:  # a notebook or a test has its own
        with contextlib.redirect_stdout(sys.stderr):
            yield out
        return
    own = os.fdopen(os.dup(1), "w", encoding=out.encoding, errors=out.errors)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield own
        own.flush()
    finally:
        os.dup2(own.fileno(), 1)
        with contextlib.suppress(OSError):
            own.close()


def flush_streams() -> None:
    """Write out what is left; what cannot be written was said, and Python is not to say it again at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            give_up(stream)


def give_up(stream: Any) -> None:
    """Send what is left of a stream to nowhere, so that Python does not complain at its exit."""
    with contextlib.suppress(OSError, ValueError):  # no real file: nothing is left to be written
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
