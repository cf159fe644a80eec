"""Who holds the context of digits: one thread at a time, until the block ends that set its precision.

Apart from :mod:`~hermitex.symbolic.arithmetic`, because a deadline asks it and needs no mpmath.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from hermitex.symbolic.budget import checkpoint

_lock: Any = threading.RLock()
_mine = threading.local()  # `blocks`: those of this thread that hold the context, the outermost first


class Held:
    """A precision manager of mpmath that holds the context while it is in force."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __call__(self, function: Any) -> Any:
        return self.manager(function)

    def __enter__(self) -> None:
        patience = 0.05  # seconds between two looks at the budget of a thread that waits
        while not _lock.acquire(timeout=patience):
            checkpoint("waiting for another thread's digits")
        _blocks().append(self)
        try:
            self.manager.__enter__()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(self, *error: Any) -> None:
        if self not in _blocks():  # an alarm came between, and its deadline has let go already
            return
        try:
            if hasattr(self.manager, "origp"):  # it has begun
                self.manager.__exit__(*error)
        finally:
            _blocks().remove(self)
            _lock.release()


def _blocks() -> list[Held]:
    if not hasattr(_mine, "blocks"):
        _mine.blocks = []
    found: list[Held] = _mine.blocks
    return found


def held() -> int:
    """How many blocks of this thread hold the context."""
    return len(_blocks())


def let_go(depth: int) -> None:
    """End what an alarm kept from ending: all but `depth` blocks of this thread, their precision with them.

    An alarm may come between a lock and the block that it is for, where no ``finally`` stands yet.
    """
    while len(_blocks()) > depth:
        _blocks()[-1].__exit__(None, None, None)
    while not depth and _lock._is_owned():
        _lock.release()


def _fresh_lock() -> None:
    global _lock, _mine
    _lock, _mine = threading.RLock(), threading.local()


if hasattr(os, "register_at_fork"):  # a thread that held the context does not exist in the child
    os.register_at_fork(after_in_child=_fresh_lock)
