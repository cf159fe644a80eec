"""Numbers of any precision: mpmath in a context of the package's own, in which one thread at a time works.

mpmath keeps its working precision in the context; that of the library, `mpmath.mp`, belongs to the user and is neither read
nor changed here. Whoever sets a precision of ours (`mp.workprec`, `mp.workdps`) holds the context until the block ends: a
thread that raised it during another's work would change the digits of that work. Import the names of mpmath from here:
``from hermitex.symbolic.arithmetic import mp, mpf, nstr``.
"""

from __future__ import annotations

import copyreg
import threading
from typing import TYPE_CHECKING, Any

from mpmath import MPContext
from mpmath.libmp import MPZ

from hermitex.symbolic.budget import checkpoint

if TYPE_CHECKING:
    from mpmath import mpf


_lock = threading.RLock()


class Held:
    """A precision manager of mpmath that holds the context while it is in force."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __call__(self, function: Any) -> Any:
        return self.manager(function)

    def __enter__(self) -> None:
        wait = 0.05  # seconds between two looks at the budget of a thread that waits
        while not _lock.acquire(timeout=wait):
            checkpoint("waiting for another thread's digits")
        try:
            self.manager.__enter__()
        except BaseException:
            _lock.release()
            raise

    def __exit__(self, *error: Any) -> None:
        try:
            self.manager.__exit__(*error)
        finally:
            _lock.release()


class Arithmetic(MPContext):  # type: ignore[misc]
    """An mpmath context whose precision is set by one thread at a time."""

    def workprec(self, n: int, normalize_output: bool = False) -> Held:
        """``with mp.workprec(bits): ...``"""
        return Held(super().workprec(n, normalize_output))

    def workdps(self, n: int, normalize_output: bool = False) -> Held:
        """``with mp.workdps(digits): ...``"""
        return Held(super().workdps(n, normalize_output))

    def own(self, x: Any) -> Any:
        """A number of another mpmath context (SymPy's, a user's), with all its digits, as one of this; others as they are."""
        if hasattr(x, "_mpf_"):
            return self.make_mpf(x._mpf_)
        return self.make_mpc(x._mpc_) if hasattr(x, "_mpc_") else x

    def functions(self) -> dict[str, Any]:
        """The modules for SymPy's lambdify: ``lambdify(x, expr, modules=[mp.functions(), "mpmath"])``."""
        return {n: getattr(self, n) for n in dir(self) if not n.startswith("_") and n not in ("prec", "dps")}


mp: Any = Arithmetic()


def number(*parts: Any) -> Any:
    """The number of one of mpmath's tuples, or of two: what pickle and copy call, as mpmath's own classes bear the same names."""
    found = tuple((sign, MPZ(man), exponent, bits) for sign, man, exponent, bits in parts)
    return mp.make_mpc(found) if len(found) == 2 else mp.make_mpf(found[0])


def _plain(part: Any) -> Any:
    """Integers of Python: those of gmpy2 are read back only where it is installed."""
    return tuple(map(int, part))


copyreg.pickle(mp.mpf, lambda x: (number, (_plain(x._mpf_),)))
copyreg.pickle(mp.mpc, lambda x: (number, tuple(map(_plain, x._mpc_))))
if not TYPE_CHECKING:
    mpf = mp.mpf


def __getattr__(name: str) -> Any:
    """Everything else that a context of mpmath offers: `nstr`, `exp`, `isfinite`, ..."""
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(mp, name)
