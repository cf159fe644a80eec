"""Numbers of any precision: mpmath in a context of the package's own, in which one thread at a time works.

mpmath keeps its working precision in the context; that of the library, `mpmath.mp`, belongs to the user and is neither read
nor changed here. Whoever sets a precision of ours (`mp.workprec`, `mp.workdps`) holds the context until the block ends: a
thread that raised it beside another's work would change the digits of that work. Import what mpmath offers from here:
``from hermitex.symbolic.arithmetic import mp, mpf, nstr``.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from mpmath import MPContext

from hermitex.symbolic.budget import checkpoint

if TYPE_CHECKING:
    from mpmath import mpf

_lock: Any = threading.RLock()
_mine = threading.local()  # `blocks`: those of this thread that hold the context, the outermost first
_PATIENCE = 0.05  # seconds between two looks at the budget of a thread that waits


class _Held:
    """A precision manager of mpmath that holds the context while it is in force."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __call__(self, function: Any) -> Any:
        return self.manager(function)

    def __enter__(self) -> None:
        while not _lock.acquire(timeout=_PATIENCE):
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


def _blocks() -> list[_Held]:
    if not hasattr(_mine, "blocks"):
        _mine.blocks = []
    found: list[_Held] = _mine.blocks
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


class Arithmetic(MPContext):  # type: ignore[misc]
    """An mpmath context whose precision is set by one thread at a time."""

    def workprec(self, n: int, normalize_output: bool = False) -> _Held:
        """``with mp.workprec(bits): ...``"""
        return _Held(super().workprec(n, normalize_output))

    def workdps(self, n: int, normalize_output: bool = False) -> _Held:
        """``with mp.workdps(digits): ...``"""
        return _Held(super().workdps(n, normalize_output))

    def own(self, x: Any) -> Any:
        """A number of another mpmath context (SymPy's, a user's), with all its digits, as one of this; others as they are."""
        if hasattr(x, "_mpf_"):
            return self.make_mpf(x._mpf_)
        return self.make_mpc(x._mpc_) if hasattr(x, "_mpc_") else x

    def functions(self) -> dict[str, Any]:
        """What SymPy's lambdify needs: ``lambdify(x, expr, modules=[mp.functions(), "mpmath"])``."""
        return {n: getattr(self, n) for n in dir(self) if not n.startswith("_") and n not in ("prec", "dps")}


def _fresh_lock() -> None:
    global _lock, _mine
    _lock, _mine = threading.RLock(), threading.local()


if hasattr(os, "register_at_fork"):  # a thread that held the context does not exist in the child
    os.register_at_fork(after_in_child=_fresh_lock)

mp: Any = Arithmetic()
if not TYPE_CHECKING:
    mpf = mp.mpf


def __getattr__(name: str) -> Any:
    """Everything else that a context of mpmath offers: `nstr`, `exp`, `isfinite`, ..."""
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(mp, name)
