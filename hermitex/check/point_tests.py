"""|l - r| against err(l) + err(r) at the points of a printed domain: agreement, a confirmed counter-example, or neither.

Agreement is relative to the sides themselves, and two zeros agree on nothing. A difference counts only if 30 digits confirm it,
or, where 30 digits are not to be had, if two rules without a common node give the same difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sympy import Expr, Heaviside, Piecewise, atan2, ceiling, floor, sign

from hermitex.check import ratio
from hermitex.check.sample_points import Point, PointSamples, ranges
from hermitex.check.switch_points import SwitchPoints
from hermitex.check.values import INTEGRALS, NO_NUMBER, STEPS, Functions, SidePair, apart, fast, precise
from hermitex.check.verdict import AGREES, FAILS, OPEN, Check, CounterExample, plain
from hermitex.errors import BudgetExceeded, first_line
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.budget import checkpoint, effort, work
from hermitex.symbolic.law_constraints import Condition
from hermitex.symbolic.undefined import undefined_functions

LEAST = 10       # digits that count as agreement: the tenth digit shows a slip of any size that a reader makes
SECONDS = 6.0    # of processor time after which no further point is tried: the promise is 10 for a claim
JUMPS = (Heaviside, sign, Piecewise, floor, ceiling, atan2)
_JUMP = "a jump compares 0 with 0 there"
_HALF = "one side is a real number there and the other is not; declare positive the letters that are meant to be"


class PointTest:
    """Both sides at the sample points of their letters and undefined functions."""

    def __init__(self, left: Expr, right: Expr, digits: int, needed: tuple[Condition, ...] = ()) -> None:
        self.sides, self.digits = (left, right), digits
        self.parts = apart(left, right)
        self.samples = PointSamples(self.sides, needed)
        self.bare = not any(side.has(*INTEGRALS) for side in self.sides)
        self.agreed: list[tuple[Point, int]] = []       # points, and the digits to which both sides agree
        self._functions_at: list[Functions] = []        # trial functions in place of undefined ones
        self.finely: list[tuple[Point, int]] = []       # the points that were repeated in the caller's digits
        self.used: dict[str, None] = {}                 # texts of the functions
        self.zeros = self.missed = 0
        self.reason = ""
        self.late = False                               # did the time end before all points were tried?
        self.untried: list[Expr] = []                   # jumps without an exact place

    # -- the stages ----------------------------------------------------------------------------------------------------
    def first(self, count: int) -> Check | None:
        """A refutation at one of the first points near 1, in fast numbers."""
        for i in range(count if self.samples.letters or self.samples.functions else 1):
            if (found := self._at(self.samples.near(i), self.samples.trials(i))) is not None:
                return found
            if self.reason and not self.agreed:
                break
        return None

    def whole(self, points: int) -> Check:
        """Agreement on the domain, a refutation, or the reason why there is neither."""
        self.agreed, self._functions_at, self.zeros, self.missed, self.reason = [], [], 0, 0, ""
        moving = bool(self.samples.letters or self.samples.functions)
        try:
            with effort(SECONDS):
                for i in range(4*points if moving else 1):
                    if (found := self._at(self.samples.near(i), self.samples.trials(i % 4))) is not None:
                        return found
                    if len(self.agreed) >= points or (self.missed > 3 and not self.agreed):
                        break
                if moving and (self.agreed or self.zeros) and (found := next(self._far(), None)) is not None:
                    return found
        except BudgetExceeded:
            checkpoint("comparing two sides")  # the caller's own budget
            self.late = True
        finer = self._in_digits()
        return self._verdict(points) if finer is None else finer  # a refutation is false

    def _far(self) -> Iterator[Check]:
        """Yield the refutations at points next to switches, on switches, and of all sizes."""
        switched = SwitchPoints(self.samples)
        for i, point in enumerate(switched.beside()):
            if (found := self._at(point, self.samples.trials(i % 4))) is not None:
                yield found
        yield from self._on(switched)
        for i, point in enumerate(self.samples.wide()):
            if (found := self._at(point, self.samples.trials(i % 4))) is not None:
                yield found

    def _on(self, switched: SwitchPoints) -> Iterator[Check]:
        for point in switched.on_switches():
            if (found := self._at(point, self.samples.trials(0))) is not None:
                yield replace(found, how=found.how or _JUMP)
        self.untried = [g for g in switched.left if any(side.has(*JUMPS) for side in self.sides)]

    def on_switches(self) -> Check | None:
        """A refutation where a switch of the letters is exactly 0: a proof by rules holds for most numbers of the letters."""
        if not any(side.has(*JUMPS) for side in self.sides):
            return None
        try:
            with effort(SECONDS/2):
                return next(self._on(SwitchPoints(self.samples)), None)
        except BudgetExceeded:
            checkpoint("comparing two sides")
        return None

    def _in_digits(self) -> Check | None:
        """Repeat points with the digits that the caller wants, within the work limit; a difference is a refutation."""
        try:
            with effort(SECONDS/2):
                for i, (point, reached) in enumerate(self.agreed):
                    if self.bare or reached >= self.digits:
                        self.finely.append((point, min(reached, max(self.digits, 50*self.bare))))
                        continue
                    functions = self._functions_at[i]
                    pair = self._precisely(point, functions)
                    if pair is None:
                        break
                    if pair.nothing:
                        continue
                    if pair.gap > 8*pair.error:
                        return self._refuted(pair, point, functions, "")
                    self.finely.append((point, pair.agree(self.digits)))
        except BudgetExceeded:
            checkpoint("comparing two sides")
        return None

    def _verdict(self, points: int) -> Check:
        left, right = self.sides
        needed = points if self.samples.letters or self.samples.functions else 1
        if self.zeros and not self.agreed:
            how = f"both sides are 0 wherever they were tried ({self.zeros} points), which is no agreement"
            return Check(left, right, OPEN, how)
        if len(self.agreed) < needed:
            why = f": {self.reason}" if self.reason else ""
            return Check(left, right, OPEN, f"{len(self.agreed)} points agree, and {needed} are needed{why}" if self.agreed
                         else f"no point could be evaluated{why}")
        if (beyond := [s for s in self.samples.letters if s.is_complex and s.is_real is None]):
            return Check(left, right, OPEN, f"{beyond[0]} is declared complex, and only real numbers were tried")
        rough = min(digits for _, digits in self.agreed)
        said = f"{len(self.agreed)} point{'s' if len(self.agreed) != 1 else ''}"
        if any(point for point, _ in self.agreed):
            said += f", {ranges([point for point, _ in self.agreed])}"
        if self.used:
            said += f"; with {', '.join(list(self.used)[:3])}"
        digits = rough
        if len(self.finely) >= needed and (fine := min(d for _, d in self.finely)) > rough:
            digits = fine
            rest = len(self.agreed) - len(self.finely)
            said += f"; {rest} of these to {rough} digits" if rest else ""
        if self.zeros:
            said += f"; both are 0 at {self.zeros} more"
        if self.missed:
            said += f"; {self.missed} more have no number ({self.reason})"
        if self.late:
            said += "; the time ended before all of them were tried"
        if self.untried:
            said += f"; not tried where a jump compares 0 with 0: {', '.join(f'{plain(g)} = 0' for g in self.untried[:3])}"
        return Check(left, right, AGREES, said, digits, points=len(self.agreed))

    # -- one point -----------------------------------------------------------------------------------------------------
    def _at(self, point: Point, functions: Functions) -> Check | None:
        """A refutation at this point; agreement and failure to evaluate are noted."""
        if not self.samples.allowed(point):
            return None
        try:
            with work(STEPS), effort(SECONDS/3):
                pair = self.evaluate(point, functions)
        except BudgetExceeded as over:
            checkpoint("comparing two sides")
            self.missed, self.reason = self.missed + 1, self.reason or first_line(over)
            return None
        except NO_NUMBER as why:
            self.missed, self.reason = self.missed + 1, self.reason or first_line(why)
            return None
        if pair.nothing:
            self.zeros += 1
            return None
        if mp.im(pair.left.number) and mp.im(pair.right.number):
            return None  # no side is real there: the claim is one of real numbers
        if pair.half_real:
            return self._refuted(pair, point, functions, _HALF)
        differ = pair.gap > 8*pair.error and pair.gap > pair.size*mp.mpf(10)**-self.digits
        if differ:
            found, known = self._confirmed(pair, point, functions)
            if not known:
                self.missed, self.reason = self.missed + 1, self.reason or "a difference is not confirmed in more digits"
            if found is not None or not known:
                return found
        digits = pair.agree(50 if self.bare else 15)
        if digits < min(LEAST, self.digits):
            self.missed, self.reason = self.missed + 1, self.reason or f"only {digits} digits of a side are known"
            return None
        self.agreed.append((point, digits))
        self._functions_at.append(functions)
        self.used.update({t.text: None for t in functions.values()})
        return None

    def evaluate(self, point: Point, functions: Functions) -> SidePair:
        """Both sides without their common terms, in fast numbers."""
        return fast(self.parts, point, functions)

    def _precisely(self, point: Point, functions: Functions) -> SidePair | None:
        try:
            with work(STEPS), effort(SECONDS/3):
                return precise(self.parts, point, functions, self.digits + 2)
        except BudgetExceeded:
            checkpoint("comparing two sides")
        except NO_NUMBER:
            pass
        return None

    def _confirmed(self, pair: SidePair, point: Point, functions: Functions) -> tuple[Check | None, bool]:
        """(the refutation, whether it is known) of a difference that 30 digits, or a second rule, show or do not show."""
        if self.bare:
            return self._refuted(pair, point, functions, ""), True
        again = self._precisely(point, functions)
        if again is not None:
            return self._refuted(again, point, functions, "") if again.gap > 8*again.error else None, True
        if pair.gap < 100*pair.error or pair.gap < pair.size*mp.mpf(10)**-8:
            return None, False
        how = "averages over three variables have no 30 digits; the difference is a hundred times their errors"
        return self._refuted(pair, point, functions, how), True

    def _refuted(self, pair: SidePair, point: Point, functions: Functions, how: str) -> Check:
        chosen = {f.__name__: t.text for f, t in functions.items()}
        left, right = pair.left.number, pair.right.number
        if self.parts != self.sides:
            try:
                given = fast(self.sides, point, functions)
                if given.gap > 100*given.error:
                    left, right = given.left.number, given.right.number
            except (BudgetExceeded, *NO_NUMBER):
                checkpoint("comparing two sides")
        example = CounterExample(chosen, {s.name: v for s, v in point.items()}, left, right)
        return Check(*self.sides, FAILS, how, None, example)

    # -- the missing factor --------------------------------------------------------------------------------------------
    def factor(self) -> Expr | None:
        """lhs/rhs as a simple product of powers of the letters, fitted at points near 1 and verified at others."""
        found = [c for c in ratio.candidates(self.sides, self.samples.letters) if not undefined_functions(c)][:ratio.MOST]

        known_pairs: dict[Any, SidePair | None] = {}

        def quotient(point: Point) -> Any:
            key = tuple(point.items())
            if key not in known_pairs:
                try:
                    known_pairs[key] = fast(self.sides, point, self.samples.trials(1))  # 0 holds tanh, whose average is 0
                except NO_NUMBER:
                    known_pairs[key] = None
            if (pair := known_pairs[key]) is None:
                return None
            with mp.workdps(20):
                known = not pair.nothing and pair.right.number and pair.error < pair.size*mp.mpf(10)**-12
                return pair.left.number/pair.right.number if known and not mp.im(pair.left.number) else None

        near = [p for i in range(len(found) + 10) if self.samples.allowed(p := self.samples.near(i))]
        fitted = ratio.simple_factor(quotient, near, found, digits=12)
        return fitted if fitted is not None and self.explains(fitted) else None

    def explains(self, factor: Expr) -> bool:
        """Do the sides agree with this factor, at fresh points and for other functions too?"""
        if factor == 1 or self.agreed:
            return False
        corrected = PointTest(self.sides[0], factor*self.sides[1], self.digits)
        if corrected.parts == (0, 0):
            return True
        seen = 0
        for i in (1, 2, 3) if self.samples.letters or self.samples.functions else (1,):
            try:
                pair = fast(corrected.parts, corrected.samples.near(i), corrected.samples.trials(i))
            except NO_NUMBER:
                continue
            if pair.nothing:
                continue
            seen += 1
            if pair.gap > 8*pair.error and pair.agree(50) < LEAST:
                return False
        return seen > 0
