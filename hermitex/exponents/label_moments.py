"""E[T(Y) H(z)] = sum_a p_a E[f He_a], f = E[T(Y)|z], H = sum_a p_a He_a: one number of a conditional tensor, enclosed.

Polynomials give exact rationals at once; anything else goes through the Gaussian engine, exactly or by an enclosure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import factorial, prod
from typing import Any, NamedTuple

from sympy import Add, Expr, Poly, Rational, S, Symbol

from hermitex.errors import BudgetExceeded, Divergent, HermitexError, NoClosedForm
from hermitex.exponents.certificate import Certificate
from hermitex.exponents.label_families import Member
from hermitex.symbolic.budget import budget, checkpoint, remaining
from hermitex.symbolic.gaussian import E
from hermitex.symbolic.hermite import He
from hermitex.symbolic.series.polynomials import poly_of

Index = tuple[int, ...]
_SECONDS = 3.0  # of one moment that no rule gives: another label map may be quicker


class Interval(NamedTuple):
    """low <= value <= high, in rationals."""

    low: Fraction
    high: Fraction

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def middle(self) -> Fraction:
        return (self.low + self.high)/2

    def times(self, other: Interval) -> Interval:
        ends = [a*b for a in self for b in other]
        return Interval(min(ends), max(ends))

    def minus(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def plus(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def over(self, other: Interval) -> Interval:
        """The quotient by an interval that excludes zero."""
        ends = [a/b for a in self for b in other]
        return Interval(min(ends), max(ends))


ZERO = Interval(Fraction(0), Fraction(0))


class Moments:
    """Moments of one label map, each computed once. None: not known within the time of one moment."""

    def __init__(self, member: Member, variables: Sequence[Symbol]) -> None:
        self.member, self.variables = member, tuple(variables)
        self.known: dict[tuple, Certificate | None] = {}
        self.poly: Poly | None = None
        if member.mean.is_polynomial(*self.variables):
            self.poly = poly_of(member.mean, *self.variables)
            self.poly = self.poly if all(c.is_Rational for c in self.poly.coeffs()) else None

    def certificate(self, form: Mapping[Index, Expr], name: str) -> Certificate | None:
        """What is known of E[T(Y) sum_a p_a He_a]."""
        key = tuple(sorted(form.items(), key=str))
        if key not in self.known:
            self.known[key] = self._found(form, name)
        return self.known[key]

    def _found(self, form: Mapping[Index, Expr], name: str) -> Certificate | None:
        checkpoint(f"trying the label map {self.member.words}")
        quantity, order = _quantity(form, name)
        prefix = f"label map T(y) = {self.member.words}"
        if self.poly is not None:
            value = Add(*(c*_polynomial_moment(self.poly, a) for a, c in form.items()))
            if value == 0:
                return Certificate.zero(quantity, order, f"{prefix}: exact value")  # type: ignore[arg-type]
            if value.is_Rational:
                return Certificate(quantity, order, "nonzero", f"{prefix}: exact value", value, (value, value))
            return Certificate.of(value, quantity, order, prefix=prefix)  # type: ignore[arg-type]
        integrand = self.member.mean*Add(*(c*He(a, self.variables) for a, c in form.items()))
        return _timed(integrand, self.variables, (quantity, order, prefix))


def _timed(integrand: Expr, variables: tuple[Symbol, ...], named: tuple[str, Any, str]) -> Certificate | None:
    quantity, order, prefix = named
    left = remaining()
    try:
        with budget(_SECONDS if left is None else min(_SECONDS, left/2)):
            return Certificate.of(E(integrand, *variables), quantity, order, quick=True, prefix=prefix)
    except BudgetExceeded:
        checkpoint("trying a label map")
    except (Divergent, NoClosedForm, HermitexError):
        pass
    except SystemError:  # an interrupted integrand, as it is told by the library that called it
        checkpoint("trying a label map")
    return None


def _quantity(form: Mapping[Index, Expr], name: str) -> tuple[str, Any]:
    if len(form) == 1:
        (a,) = form
        return f"E[T(Y) He_{_short(a)}]", a
    return f"E[T(Y) H], {name}", next(iter(form))


def _short(a: Index) -> str:
    return "(" + ",".join(map(str, a)) + ")"


def _polynomial_moment(poly: Poly, a: Index) -> Expr:
    """E[p He_a] from E[z^m He_n] = m!/(m - n)! (m - n - 1)!!, m - n even."""
    total = S.Zero
    for powers, c in poly.terms():
        if all(m >= n and (m - n) % 2 == 0 for m, n in zip(powers, a, strict=True)):
            total += c*prod(_one(m, n) for m, n in zip(powers, a, strict=True))
    return total


def _one(m: int, n: int) -> int:
    half = (m - n)//2
    return factorial(m)//factorial(2*half)*(factorial(2*half)//(2**half*factorial(half)))


def interval_of(found: Certificate) -> Interval | None:
    """An interval that holds the value of a certificate, or None."""
    if found.status == "zero":
        return ZERO
    if found.enclosure is not None:
        return Interval(_fraction(found.enclosure[0]), _fraction(found.enclosure[1]))
    if found.value is None:
        return None
    if found.value.is_Rational:
        exact = _fraction(found.value)
        return Interval(exact, exact)
    near, slack = _fraction(Rational(found.value.evalf(40))), Fraction(1, 10**30)
    return Interval(near*(1 - slack), near*(1 + slack)) if near > 0 else Interval(near*(1 + slack), near*(1 - slack))


def scaled(value: Interval, factor: Expr) -> Interval:
    """The interval times an exact number."""
    if factor.is_Rational:
        exact = _fraction(factor)
        return value.times(Interval(exact, exact))
    near, slack = _fraction(Rational(factor.evalf(40))), abs(_fraction(Rational(factor.evalf(40))))/10**30
    return value.times(Interval(near - slack, near + slack))


def _fraction(x: Any) -> Fraction:
    return Fraction(int(x.p), int(x.q)) if hasattr(x, "p") else Fraction(x)


class Rank:
    """Rows with entries in intervals: how many are certainly independent."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, list[Interval]]] = []

    def add(self, row: list[Interval]) -> bool:
        """True if the row is certainly independent of those that were kept; it is kept then."""
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
