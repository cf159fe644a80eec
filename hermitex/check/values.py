"""Both sides of a claim as numbers: fast ones in floats, and precise ones by `.evalf` with the digits of the caller.

A fast value takes each outermost average in floats, and evaluates the formula around the averages in 30 digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sympy import (
    Abs,
    Add,
    DiracDelta,
    Expr,
    Float,
    Integral,
    Pow,
    Product,
    Sum,
    binomial,
    exp,
    expand,
    factorial,
    gamma,
    log,
)
from sympy.core.function import UndefinedFunction

from hermitex.check import rules
from hermitex.check.sample_points import Point, Trial
from hermitex.errors import Divergent, HermitexError
from hermitex.numbers.average import average, integral
from hermitex.numbers.program import Program
from hermitex.numbers.several import NormalAverages
from hermitex.symbolic.arithmetic import fabs, log10, mp
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.digits.finite_ranges import as_averages
from hermitex.symbolic.digits.iterated_averages import nested
from hermitex.symbolic.existence_check import require_existence
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.indexed_sums import added_up
from hermitex.symbolic.moreau import Moreau, Prox
from hermitex.symbolic.precise import evaluate_with_error
from hermitex.symbolic.terms import linear, top_nodes
from hermitex.symbolic.undefined import put, put_at

INTEGRALS = (Expectation, Integral, Sum)
#: The exceptions of an evaluation that is not possible, SymPy's own among them.
NO_NUMBER = (HermitexError, ValueError, ArithmeticError, TypeError, AttributeError, NotImplementedError, RecursionError, KeyError,
             IndexError)
STEPS = 12_000  # of work for one rule, or for one point in 30 digits: some seconds
DIGITS = 12  # of a fast average: those of its terms may cancel, and ten of the sides count as agreement
LARGEST = 100_000  # binary digits of a power: SymPy writes out this many in a millisecond, and x**x**x without an end
Functions = Mapping[UndefinedFunction, Trial]


class NoNumber(ArithmeticError):
    """The reason, in words of the claim, why an expression has no number."""


class SideValue(NamedTuple):
    """A number, real or complex, and its absolute error."""

    number: Any
    error: Any


class SidePair(NamedTuple):
    """Both sides at a point."""

    left: SideValue
    right: SideValue

    @property
    def gap(self) -> Any:
        """|left - right|."""
        return fabs(self.left.number - self.right.number)

    @property
    def size(self) -> Any:
        """The larger modulus of the two."""
        return max(fabs(self.left.number), fabs(self.right.number))

    @property
    def error(self) -> Any:
        """The sum of both errors."""
        return self.left.error + self.right.error

    @property
    def nothing(self) -> bool:
        """Are both 0 as far as their digits go?"""
        return bool(self.size <= 4*self.error or not self.size)

    @property
    def half_real(self) -> bool:
        """Is one real and the other not?"""
        real = [fabs(mp.convert(v.number).imag) <= fabs(v.number)*mp.mpf(10)**-10 for v in self]
        return real[0] != real[1]

    def agree(self, most: int) -> int:
        """The digits, relative to the larger side, to which both agree."""
        lost = max(self.gap, self.error)
        return most if not lost else max(0, min(most, int(-log10(lost/self.size)))) if self.size else 0


# -- fast --------------------------------------------------------------------------------------------------------------
def fast(sides: tuple[Expr, Expr], point: Point, functions: Functions) -> SidePair:
    """Both sides in floats.

    Raises
    ------
    NoNumber, or another of `NO_NUMBER` : a side has no number at this point.
    """
    checkpoint("evaluating both sides of a claim")
    chosen = {f: t.build for f, t in functions.items()}
    concrete = [put(side, chosen) if chosen else side for side in sides]
    for side in concrete:
        refuse_large(side, point)
    with mp.workdps(40):
        left, right = (_fast(side, point) for side in concrete)
    if not all(mp.isfinite(v.number) and mp.isfinite(v.error) for v in (left, right)):
        raise NoNumber("a side is not finite")
    return SidePair(left, right)


def refuse_large(side: Expr, point: Point) -> None:
    """Refuse powers that SymPy would write out, x**x**x at x = 97, and exponentials whose exponents exceed floats.

    Raises
    ------
    NoNumber : one has more than 100,000 binary digits.
    """
    letters = sorted(point, key=str)
    values = [float(point[s]) for s in letters]
    for e in side.atoms(Pow, exp, factorial, gamma, binomial):
        if not e.free_symbols or e.atoms(Bound) or (isinstance(e, Pow) and e.exp.is_number):
            continue
        written = isinstance(e, Pow) and not isinstance(e, exp)
        size = e.exp*log(1 + Abs(e.base) + 1/Abs(e.base), 2) if written else e.args[0]
        try:
            bits = abs(float(np.real(Program(size, letters).values(*values))))
        except HermitexError:
            continue
        if not bits < (LARGEST if not isinstance(e, exp) else np.inf):
            raise NoNumber(f"{type(e).__name__.lower()} of more than {LARGEST} binary digits")


def _fast(side: Expr, point: Point) -> SideValue:
    if side.has(Sum, Product, Integral):
        side = as_averages(integrated(added_up(side.xreplace(point))))
    side = side.replace(lambda e: isinstance(e, Prox | Moreau) and not e.loss.smooth, lambda e: e.doit(deep=False)).xreplace(point)
    found = {}
    for node in top_nodes(side):
        try:
            found[node] = SideValue(*map(_long, _average(node)))
        except (NoNumber, HermitexError):  # more than three variables, averages inside of it: by the rules of `.evalf`
            checkpoint("evaluating both sides of a claim")
            found[node] = SideValue(*real(node, 18))
    if not found:
        return _precise(side, 52)
    value = _number(side.xreplace({node: Float(str(v.number), 35) for node, v in found.items()}))
    error = fabs(value)*mp.mpf(10)**-25
    for node, v in found.items():
        moved = {n: Float(str(w.number + (v.error if n is node else 0)), 35) for n, w in found.items()}
        error += fabs(_number(side.xreplace(moved)) - value)
    return SideValue(value, error)


@kept(512)
def _average(node: Expectation) -> tuple[Any, Any]:
    """(value, error) of an average without letters."""
    if len(node.bound) > 3 or node.level:
        raise NoNumber("an average over more than three variables has no fast number")
    body, variables = node.open()
    if len(variables) == 1 and node.independent:
        found = average(body, variables[0], DIGITS, of_size=True)
    else:
        found = NormalAverages(DIGITS).of(body, variables, None if node.independent else node.covariance)
    return found.value, found.error


def integrated(expr: Expr) -> Expr:
    """The integrals over one bounded range in 40 digits, where these are reached: singular ends take hundredths of a second."""
    return expr.replace(lambda e: isinstance(e, Integral), _bounded)


def _bounded(e: Integral) -> Expr:
    if len(e.limits) != 1 or len(e.limits[0]) != 3 or e.free_symbols or e.function.has(*INTEGRALS, DiracDelta):
        return e
    x, low, high = e.limits[0]
    try:
        found = integral(e.function, x, low, high, 40) if low.is_finite and high.is_finite else None
    except HermitexError:
        checkpoint("evaluating both sides of a claim")
        return e
    return Float(mp.nstr(found.value, 50), 50) if found is not None and found.digits >= 38 and not mp.im(found.value) else e


def _long(value: Any) -> Any:
    if isinstance(value, complex) and value.imag:
        raise NoNumber("an average is no real number")
    return mp.mpf(value.real)


def _number(expr: Expr) -> Any:
    value = expr.evalf(28)
    re, im = value.as_real_imag()
    if not (re.is_number and im.is_number and re.is_finite and im.is_finite) or value.free_symbols:
        raise NoNumber("a side is not finite")
    try:
        parts = [mp.mpf(str(part)) for part in (re.evalf(28), im.evalf(28))]
    except ValueError:
        raise NoNumber("a side has no number") from None
    return mp.mpc(*parts) if parts[1] else parts[0]


# -- to the digits asked for -------------------------------------------------------------------------------------------
def precise(sides: tuple[Expr, Expr], point: Point, functions: Functions, digits: int) -> SidePair:
    """Both sides by `.evalf`, to that many digits where this is possible; averages of three variables and more are refused."""
    if max(map(widest, sides)) > 2:
        raise NoNumber("averages over three variables are known to fewer digits")
    chosen = {f: t.build for f, t in functions.items()}
    for side in sides:
        refuse_large(side, point)
    concrete = [reduced(as_averages(integrated(added_up(put_at(side, point, chosen))))) for side in sides]
    wide = max(map(widest, concrete))
    with mp.workdps(digits + 10):  # or the numbers would be rounded to doubles
        left, right = (_precise(side, digits if wide < 2 else min(digits, 14)) for side in concrete)
    return SidePair(left, right)


def _precise(side: Expr, digits: int) -> SideValue:
    try:
        return SideValue(*real(side, digits, 420 if side.has(*INTEGRALS) else 4000))
    except NO_NUMBER:
        if side.has(*INTEGRALS, Product) or not (value := side.evalf(digits)).is_number or value.is_real:
            raise
        re, im = (mp.mpf(str(part)) for part in value.as_real_imag())
        return SideValue(mp.mpc(re, im), fabs(mp.mpc(re, im))*mp.mpf(10)**(1 - digits))


def real(expr: Expr, digits: int, against_cancellation: int = 420) -> tuple[Any, Any]:
    """(value, error); up to 420 binary digits are added where terms cancel, which 100 digits of a difference take.

    Sides without an integral have 4000 of them: cosh(9 x) - sinh(9 x) takes 2600 at x = 100.
    """
    value, error = evaluate_with_error(expr, digits, against_cancellation=against_cancellation)
    if not mp.isfinite(mp.own(value)):
        raise NoNumber("a side is not finite")
    return mp.own(value), mp.own(mp.convert(error))


def widest(expr: Expr) -> int:
    """How many variables an average of the expression is taken over, nested ones counted."""
    return max((len(n.bound) + n.level for n in expr.atoms(Expectation)), default=0)


def reduced(expr: Expr) -> Expr:
    """Averages over several variables as closed forms, or over fewer variables, where they are found; deltas by their mass."""
    from hermitex.symbolic.integrals import normal_form

    if expr.has(DiracDelta):
        expr = rules.everywhere(rules.sift, expr) or expr
    if widest(expr) < 2:
        return expr
    found = normal_form(expr)
    if widest(found) < widest(expr):
        expr = found
    tops = {n: nested(n) for n in expr.atoms(Expectation) if not n.free_symbols and (len(n.bound) > 1 or not n.independent)}
    return expr.xreplace({n: line for n, line in tops.items() if line != n and widest(line) < 2})


# -- sides without what they have in common ----------------------------------------------------------------------------
def apart(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """The sides without their common terms; if nothing is left on one, the terms with a minus are carried over to it."""
    ours, theirs = list(Add.make_args(left)), list(Add.make_args(right))
    for term in list(ours):
        if term in theirs and term in ours:
            ours.remove(term)
            theirs.remove(term)
    one, other = Add(*ours), Add(*theirs)
    return _carried(one, other) if (one == 0) != (other == 0) else (one, other)


def _carried(one: Expr, other: Expr) -> tuple[Expr, Expr]:
    whole = other if one == 0 else one
    terms = Add.make_args(whole)
    if len(terms) < 2:
        split = expand(whole.replace(lambda e: isinstance(e, Expectation), linear))
        terms = Add.make_args(split) if exist(split) else terms
    minus = [t for t in terms if t.could_extract_minus_sign()]
    plus = [t for t in terms if not t.could_extract_minus_sign()]
    return (Add(*plus), -Add(*minus)) if plus and minus else (one, other)


def exist(*sides: Expr) -> bool:
    """Is no average of the sides known to be infinite?"""
    try:
        for node in {n for side in sides for n in side.atoms(Expectation)}:
            require_existence(node)
    except Divergent:
        return False
    return True
