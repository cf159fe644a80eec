"""low <= x <= high in rationals: what is certain of a number, and of the rank of a matrix whose entries are such numbers."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Expr, Rational

from hermitex.errors import NoClosedForm
from hermitex.exponents.certificate import Certificate
from hermitex.symbolic.digits.enclosure import enclose
from hermitex.symbolic.gaussian import Expectation


class Interval(NamedTuple):
    """low <= value <= high.

    Examples
    --------
    >>> Interval(Fraction(1), Fraction(2)).times(Interval(Fraction(-1), Fraction(1)))
    Interval(low=Fraction(-2, 1), high=Fraction(2, 1))
    """

    low: Fraction
    high: Fraction

    @classmethod
    def exactly(cls, value: Any) -> Interval:
        """The interval of one rational."""
        exact = fraction(value)
        return cls(exact, exact)

    @property
    def excludes_zero(self) -> bool:
        """Is the value certainly not zero?"""
        return self.low > 0 or self.high < 0

    @property
    def middle(self) -> Fraction:
        """The middle."""
        return (self.low + self.high)/2

    def plus(self, other: Interval) -> Interval:
        """The sum."""
        return Interval(self.low + other.low, self.high + other.high)

    def minus(self, other: Interval) -> Interval:
        """The difference."""
        return Interval(self.low - other.high, self.high - other.low)

    def times(self, other: Interval) -> Interval:
        """The product."""
        ends = [a*b for a in self for b in other]
        return Interval(min(ends), max(ends))

    def over(self, other: Interval) -> Interval:
        """The quotient by an interval that excludes zero."""
        ends = [a/b for a in self for b in other]
        return Interval(min(ends), max(ends))


ZERO = Interval(Fraction(0), Fraction(0))  # the interval [0, 0]


def interval_of(found: Certificate) -> Interval | None:
    """An interval that holds the value of a certificate, or None."""
    if found.status == "zero":
        return ZERO
    if found.enclosure is not None:
        return Interval(fraction(found.enclosure[0]), fraction(found.enclosure[1]))
    return None if found.value is None else enclosing_interval(found.value)


@lru_cache(maxsize=2000)
def enclosing_interval(value: Expr) -> Interval:
    """An interval about an exact real constant: itself if it is rational, an enclosure, else 30 digits.

    Raises
    ------
    NoClosedForm : an expectation in it could not be enclosed.
    """
    if value.is_Rational:
        return Interval.exactly(value)
    if value.has(Expectation):
        found = interval_of(Certificate.of(value, "a direction", 1, quick=True))
        if found is None:
            raise NoClosedForm(value, "it could not be enclosed")
        return found
    bits = 128  # 38 digits: elimination may lose half of them, and its pivots are still told from 0
    with suppress(NoClosedForm):  # a function that ball arithmetic does not know
        return Interval(*enclose(value, bits=bits)[:2])
    near = fraction(Rational(value.evalf(40)))
    slack = abs(near)/10**30
    return Interval(near - slack, near + slack)


def scale_interval(value: Interval, factor: Expr) -> Interval:
    """The interval times an exact number."""
    return value.times(enclosing_interval(factor))


def fraction(x: Any) -> Fraction:
    """A rational of SymPy, of Python, or an integer, as a fraction."""
    return Fraction(int(x.p), int(x.q)) if hasattr(x, "p") else Fraction(x)


class Rank:
    """Rows with entries in intervals: how many are certainly independent.

    Examples
    --------
    >>> rank = Rank()
    >>> one, two = Interval.exactly(1), Interval.exactly(2)
    >>> rank.add([one, two]), rank.add([two, Interval.exactly(4)]), rank.add([one, one]), len(rank)
    (True, False, True, 2)
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, list[Interval]]] = []

    def add(self, row: list[Interval]) -> bool:
        """True if the row is certainly independent of the rows kept so far; then it is kept, too."""
        for at, other in self.rows:
            factor = row[at].over(other[at])
            row = [ZERO if i == at else x.minus(factor.times(y)) for i, (x, y) in enumerate(zip(row, other, strict=True))]
        best = max(range(len(row)), key=lambda i: abs(row[i].middle))
        if not row[best].excludes_zero:
            return False
        self.rows.append((best, row))
        return True

    def __len__(self) -> int:
        return len(self.rows)
