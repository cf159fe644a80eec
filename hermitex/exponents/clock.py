"""The parts of an answer take turns until all are done or the time is over: one clock for all questions.

A part runs until it is done or its turn is over; what it found so far stays, and the next part has its turn. Turns grow,
and with them the time after which one way is given up for another (`budget.patience`, `deadline.attempt`): cheap ways are
tried before costly ones, and costly ones are tried again for longer while there is time. Turns are counted in seconds of the
processor and do not depend on the budget: what more time adds is more turns. A part without time limits inside that ends
undecided is done; a part that gave something up on the way continues while there is time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.processor import processor_seconds
from hermitex.symbolic.budget import ends, patience, remaining
from hermitex.symbolic.deadline import attempt

T = TypeVar("T")


class AnswerPart(Generic[T]):
    """One part of an answer.

    Parameters
    ----------
    name : what is undetermined where it fails
    work : gives the value; called again after its turn was over, it goes on from what it kept
    so_far : the value where the time is over, from the words that say so; `otherwise` is the value where work fails
    decided : whether a value leaves nothing open
    after : a part that must be done before
    """

    def __init__(self, name: str, work: Callable[[], T], otherwise: T, *, so_far: Callable[[str], T] | None = None,
                 decided: Callable[[T], bool] = lambda value: True, after: AnswerPart[Any] | None = None) -> None:
        self.name, self.work, self.value, self.so_far, self.decided, self.after = name, work, otherwise, so_far, decided, after
        self.done, self.notes, self._late = False, (), ""

    notes: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """It has something to do now."""
        return not self.done and (self.after is None or self.after.done)

    def turn(self, limit: AbstractContextManager[None]) -> None:
        """Work until done, or until the turn is over."""
        before, self.notes, self._late = BudgetExceeded.count, (), ""
        try:
            with limit:
                self.value = self.work()
        except BudgetExceeded as err:
            self._late = err.doing
            return
        except HermitexError as err:
            self.notes = (f"{self.name}: undetermined, {_flat(err)}",)
        except (ArithmeticError, RuntimeError, ValueError) as err:  # of a library: the other parts are kept
            self.notes = (f"{self.name}: not reached, its computation failed ({type(err).__name__}: {_flat(err)})",)
        else:
            self.done = self.decided(self.value)
        self.done = self.done or BudgetExceeded.count == before

    def closed(self, seconds: float | None, used: float | None = None) -> None:
        """The time is over: what there is so far is the value."""
        if self.done or not (self._late or self.so_far is None):
            return
        waits = f"it waits for {self.after.name}" if self.after else "no time was left"
        why = str(BudgetExceeded(seconds or 0, self._late, used)) if self._late else waits
        if self.so_far is not None:
            self.value = self.so_far(why)
        elif not self.notes:
            self.notes = (f"{self.name}: undetermined, {why}",)


def take_turns(*parts: AnswerPart[Any]) -> None:
    """Give the parts turns in their order until each is done, or the budget in force is over."""
    whole, count, begun = remaining(), 0, processor_seconds()
    first_turn = 4.0  # seconds; chosen by trial: most parts end within them
    # each turn is three times as long as the one before: what is begun again costs at most half of the turn that ends it
    growth = 3.0
    last_limited = 4  # 4 + 12 + 36 + 108 s: a part that none of these turns has ended gets no limit of its own
    while any(p.ready for p in parts) and not _over():
        for part in parts:
            if not part.ready or _over():
                continue
            alone = sum(p.ready for p in parts) == 1 and not any(p.after is part for p in parts)
            seconds = None if alone or count >= last_limited else first_turn*growth**count
            with patience(growth**count):
                part.turn(attempt(seconds if seconds is None else seconds/growth**count))
        count += 1
    for part in parts:
        part.closed(whole, processor_seconds() - begun)


def _over() -> bool:
    left = remaining()
    return ends() is not None and left is not None and left <= 0


def _flat(err: Exception) -> str:
    return " ".join(str(err).split())
