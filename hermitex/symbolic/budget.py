"""Budgets of CPU seconds, checked cooperatively: ``with budget(30): ...`` and `checkpoint()` inside the loops of long work.

A budget is what a user allows; an effort is the part of it after which one way is given up for another. Both count the
processor time of this process and its children, so that the answer does not depend on what else the machine does. `work`
counts the checks themselves, and the cells of the arrays that they announce: what is reached is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from functools import wraps
from itertools import islice
from math import inf
from typing import Any, TypeVar

from hermitex.errors import BadInput, BudgetExceeded, HermitexError, WorkExceeded
from hermitex.processor import processor_seconds

T = TypeVar("T")
DEFAULT_BUDGET = 60.0  # seconds of an answer, where none are given
CELLS = 1_000_000  # of arrays that are filled in one step of work

_current: ContextVar[tuple[float, float] | None] = ContextVar("hermitex_budget", default=None)
_patience: ContextVar[float] = ContextVar("hermitex_patience", default=1.0)
_effort: ContextVar[tuple[float, float] | None] = ContextVar("hermitex_effort", default=None)
_work: ContextVar[work | None] = ContextVar("hermitex_work", default=None)


class _Until(AbstractContextManager[None]):
    """(When it ends, its seconds) in a context variable; that around it where it ends earlier. No generator: an alarm may end
    one between its parts, and what it set would stay.
    """

    def __init__(self, bound: ContextVar[tuple[float, float] | None], seconds: float | None) -> None:
        self.bound, self.seconds = bound, seconds
        self.token: Token[tuple[float, float] | None] | None = None

    def __enter__(self) -> None:
        mine = None if self.seconds is None else (processor_seconds() + self.seconds, self.seconds)
        self.token = self.bound.set(min((b for b in (self.bound.get(), mine) if b is not None), default=None))

    def __exit__(self, *error: object) -> None:
        token, self.token = self.token, None
        if token is not None:
            self.bound.reset(token)


def budget(seconds: float | None) -> AbstractContextManager[None]:
    """Bound the work inside to `seconds` of processor time (None: no further bound); an enclosing budget still holds.

    Raises
    ------
    BadInput : not a number, or a negative one. Inside, `BudgetExceeded` at the first check after the time.
    """
    if not (seconds is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0)):
        raise BadInput(f"budget: a number of seconds is needed, or None for no bound, not {seconds!r}; e.g. budget=60")
    return _Until(_current, seconds)


def effort(seconds: float | None) -> AbstractContextManager[None]:
    """Give the way inside up after `seconds` of processor time (None: no further bound); an enclosing bound still holds."""
    return _Until(_effort, seconds)


class work(AbstractContextManager[None]):
    """Bound the work inside to that many steps, a check each or a million cells; an enclosing bound counts them, too.

    >>> with work(3):
    ...     try:
    ...         while True:
    ...             checkpoint()
    ...     except BudgetExceeded as over:
    ...         print(over)
    more than 3 steps of work
    """

    def __init__(self, steps: float) -> None:
        self.left = self.steps = steps
        self.outer: work | None = None
        self.token: Token[work | None] | None = None

    def __enter__(self) -> None:
        self.outer = _work.get()
        self.token = _work.set(self)

    def __exit__(self, *error: object) -> None:
        token, self.token = self.token, None
        if token is not None:
            _work.reset(token)

    def count(self, doing: str, steps: float = 1) -> None:
        """So many steps more, here and in what is around."""
        self.left -= steps
        if self.outer is not None:
            self.outer.count(doing, steps)
        if self.left < 0:
            raise WorkExceeded(self.steps, doing)


@contextmanager
def patience(factor: float) -> Iterator[None]:
    """Let every `attempt` inside take that many times its time: what was given up once is tried again for longer."""
    token = _patience.set(factor)
    try:
        yield
    finally:
        _patience.reset(token)


def patient(seconds: float) -> float:
    """The time of an attempt under the patience in force."""
    return seconds*_patience.get()


def checkpoint(doing: str = "", cells: int = 0) -> None:
    """Raise `BudgetExceeded` if the budget in force has run out, or the effort.

    cells : of arrays that are about to be filled; a million of them are a step of `work`
    """
    if (counted := _work.get()) is not None:
        counted.count(doing, cells/CELLS if cells else 1)
    bounds = [b for b in (_current.get(), _effort.get()) if b is not None]
    if bounds and (now := processor_seconds()) > min(bounds)[0]:
        end, seconds = next(b for b in bounds if now > b[0])
        raise BudgetExceeded(seconds, doing, now - end + seconds)


def is_over() -> bool:
    """Whether a `checkpoint` would raise, for callbacks through which no exception may pass."""
    try:
        checkpoint()
    except BudgetExceeded:
        return True
    return False


def unless_refused(answer: Callable[[], T]) -> T | None:
    """The answer, or None if it is refused with a reason; the end of a budget is not a refusal, and is raised.

    >>> def refused():
    ...     raise BadInput("no such thing")
    >>> unless_refused(lambda: 2), unless_refused(refused) is None
    (2, True)
    """
    try:
        return answer()
    except BudgetExceeded:
        raise
    except HermitexError:
        return None


class Store(dict[Any, Any]):
    """Results by their questions.

    A result for which some way was given up is kept until a caller with more patience comes; a result that ended because the
    time around it was over is not kept.
    """

    def of(self, key: Any, compute: Callable[[], T]) -> T:
        """The value under a key, computed where it is not there."""
        value: T
        level, value = self.get(key, (0.0, None))
        if level >= _patience.get():
            return value
        before = BudgetExceeded.count
        value = compute()
        if BudgetExceeded.count == before:
            self[key] = inf, value
        elif not is_over():
            self[key] = _patience.get(), value
        return value


class Listed(Iterable[T]):
    """The items of a generator, read as far as they are needed, and kept for later readers.

    A generator that a budget ends is over, and the next reader would find no more in it: it is made anew, and goes on after
    what it gave before.

    >>> def squares():
    ...     for n in range(5):
    ...         checkpoint()
    ...         yield n*n
    >>> found = Listed(squares)
    >>> with work(2):
    ...     try:
    ...         list(found)
    ...     except BudgetExceeded:
    ...         pass
    >>> list(found), list(found)
    ([0, 1, 4, 9, 16], [0, 1, 4, 9, 16])
    """

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make, self._given = make, list[T]()
        self._source: Iterator[T] | None = None

    def __iter__(self) -> Iterator[T]:
        at = 0
        while at < len(self._given) or self._more():
            yield self._given[at]
            at += 1

    def _more(self) -> bool:
        """One more, if there is one."""
        if self._source is None:
            self._source = islice(self._make(), len(self._given), None)
        try:
            self._given.append(next(self._source))
        except StopIteration:
            return False
        except BaseException:
            self._source = None
            raise
        return True


def kept(size: int = 1024) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``lru_cache`` for what may be cut short: a `Store` of results.

    >>> @kept()
    ... def square(n):
    ...     return n*n
    >>> square(3)
    9
    """
    def wrap(f: Callable[..., T]) -> Callable[..., T]:
        known = Store()

        @wraps(f)
        def inner(*args: Any) -> T:
            if len(known) >= size:
                known.clear()
            return known.of(args, lambda: f(*args))

        return inner

    return wrap


def ends() -> float | None:
    """When the budget in force ends, as `processor.seconds` counts; None if there is none."""
    now = _current.get()
    return None if now is None else now[0]


def remaining(share: float = 1.0) -> float | None:
    """Seconds left in the budget in force, or a share of them; None if there is none."""
    now = _current.get()
    return None if now is None else share*max(0.0, now[0] - processor_seconds())
