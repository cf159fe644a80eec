"""sum_n p_n g(n): both sides of an equality with averages over countable laws, at numbers, as sums of finitely many terms.

|sum_{n > N} p_n g(n)|^2 <= P(n > N) sum_{n > N} p_n g(n)^2 (Cauchy and Schwarz): N is taken so far that P(n > N) is the square of
what may be left out. The terms up to 3N/2 are added, and the sizes of those beyond N are their error. No proof comes of it.
A g that switches at an n that is not known may do so beyond what is summed: it stays undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sympy import (
    Add,
    Expr,
    Mod,
    Mul,
    Poly,
    Pow,
    S,
    Symbol,
    ceiling,
    cosh,
    erfi,
    exp,
    expand,
    factorial,
    floor,
    frac,
    gamma,
    log,
    sinh,
)
from sympy.core.function import AppliedUndef

from hermitex.check.point_tests import PointTest
from hermitex.check.sample_points import Point
from hermitex.check.switch_points import switches
from hermitex.check.values import Functions, SidePair, SideValue, real
from hermitex.check.verdict import AGREES, OPEN, Check
from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.arithmetic import fabs, mp
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Index, written_out
from hermitex.symbolic.law_constraints import Condition
from hermitex.symbolic.special import LogFactorial
from hermitex.symbolic.terms import linear, top_nodes
from hermitex.symbolic.undefined import undefined_functions

_MOST = 800  # terms of a sum
_FEW = 5  # digits of an average under a weight however small
_SHALLOW = 60  # binary digits added where terms cancel
_SPARE = 20  # digits by which the squares of the terms may exceed the sides


def check_countable(left: Expr, right: Expr, digits: int, points: int, needed: Sequence[Condition] = ()) -> Check:
    """Agreement, a counter-example, or why there is neither.

    Examples
    --------
    >>> from sympy import Symbol, sin, exp, cos
    >>> from sympy.stats import Poisson
    >>> from hermitex.symbolic.gaussian import E
    >>> n = Poisson("n", 2)
    >>> check_countable(E(sin(n)), exp(2*cos(1) - 2)*sin(2*sin(1)), 20, 1).status
    'agrees'
    """
    if undefined_functions(left) or undefined_functions(right):
        return Check(left, right, OPEN, "undefined functions are not tried in a sum over a countable law")
    if any(node.has(ArraySum) for side in (left, right) for node in side.atoms(Expectation)):
        return Check(left, right, OPEN, "sums over a countable law inside a Gaussian average are not compared; their numbers are, "
                                        "by hx.compile")
    sums = left.atoms(ArraySum) | right.atoms(ArraySum)
    if any(_last_turn(node) is None for node in sums):
        return Check(left, right, OPEN, "a summand that switches over a countable law may do so beyond the terms that are summed")
    if (steep := may_diverge(left, right)) is not None:
        return steep
    found = _CountableTest(left, right, digits, tuple(needed)).whole(points)
    said = "sums over countable laws cut off where less than these digits is left"
    return replace(found, how=f"{found.how}; {said}") if found.status == AGREES else found


def may_diverge(left: Expr, right: Expr) -> Check | None:
    """The answer where an average over a countable law may not exist: a side is then equal to nothing, not even to itself."""
    if any(node.index.endless and _steep(node) for side in (left, right) for node in side.atoms(ArraySum)):
        return Check(left, right, OPEN, "a summand may grow over a countable law beyond the terms that are summed")
    return None


def closed(node: ArraySum) -> Expr:
    """The value of a sum where it has one: averages inside of it are worked out, with what they do not average outside.

    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z
    >>> n = Index("n", endless=True)
    >>> closed(ArraySum(E(n*z**2, z)/2**n, n))
    2
    """
    from hermitex.symbolic.integrals import integrate_or_keep

    done = {}
    for e in top_nodes(node.body):
        try:
            done[e] = linear(e) if e.has(AppliedUndef) else integrate_or_keep(e)
        except BudgetExceeded:
            raise
        except HermitexError:  # the comparison of the sides reports an average that does not exist
            continue
    return ArraySum(node.body.xreplace(done), node.index).closed()


def total(node: ArraySum, digits: int) -> Any:
    """The value of a sum over a countable law without letters to `digits`; None where what is left out is not known to be small.

    Examples
    --------
    >>> from sympy import Symbol, exp
    >>> n = Index("n", endless=True)
    >>> print(mp.nstr(total(ArraySum(exp(-n - 1), n), 15), 15))
    0.581976706869326
    """
    if any(e.has(ArraySum) for e in node.atoms(Expectation)) or _last_turn(node) is None or _steep(node):
        return None
    terms = _terms(node, digits)
    if terms is None:
        return None
    if node.body.has(ArraySum):
        return None
    value, error = _added(node, terms, digits + 2)
    return value if error <= fabs(value)*mp.mpf(10)**(-digits - 1) else None


def _added(node: ArraySum, terms: int, digits: int) -> tuple[Any, Any]:
    """The sum of half as many terms more, and its error with the sizes of these: (-1)^n cosh(n) e^-n adds up to the same at times.

    An average under a small weight needs few digits.
    """
    factors = Mul.make_args(node.body)
    weight, averaged = (Mul(*(f for f in factors if f.has(Expectation) is held)) for held in (False, True))
    with mp.workdps(digits + 10):
        weights = [real(written_out(weight, {}, None, {node.index: n}), digits + 2)[0] for n in range(terms + terms//2)]
        largest = max(map(fabs, weights))
        found, error = mp.mpf(0), mp.mpf(0)
        for n, w in enumerate(weights):
            needed = digits + 2 + int(mp.log(fabs(w)/largest, 10)) if w else 0
            value, off = real(written_out(averaged, {}, None, {node.index: n}), max(needed, _FEW))
            found += w*value
            error += fabs(w)*(off + fabs(value)*(mp.mpf(10)**(-digits - 2) if n < terms else 1))
        return found, error


class _CountableTest(PointTest):
    """The test of two sides, evaluated to the requested digits: their sums are those of finitely many terms."""

    def evaluate(self, point: Point, functions: Functions) -> SidePair:
        """Both sides at numbers for the letters."""
        return SidePair(*(SideValue(*real(side.xreplace(point), self.digits + 2, _SHALLOW)) for side in self.parts))

    def _precisely(self, point: Point, functions: Functions) -> SidePair:
        return self.evaluate(point, functions)


def _last_turn(node: ArraySum) -> int | None:
    """From which n on the summand is one formula; None where that is not known."""
    n, last = node.index, 0
    if any(n in f.free_symbols for f in node.body.atoms(floor, ceiling, Mod, frac)):
        return None
    for u in switches(node.body):
        if n not in u.free_symbols or u.is_nonnegative or u.is_nonpositive:
            continue
        if u.free_symbols != {n} or not u.is_polynomial(n):
            return None
        leading, *others = (abs(c.evalf(15)) for c in Poly(u, n).all_coeffs())
        # no root is larger than 2 max_k |c_k|^(1/k) with c_k the k-th coefficient after the leading one (Fujiwara)
        last = max(last, *(int(2*(c/leading)**(1.0/k)) + 1 for k, c in enumerate(others, 1)))
    return last if last < _MOST else None


def _steep(node: ArraySum) -> bool:
    """May the summand grow so fast from some n on that the average does not exist? exp(a n) shows in the terms that are summed."""
    n, bound = node.index, {v for e in node.body.atoms(Expectation) for v in e.bound}
    exponents = Add(*(f.exp for f in Mul.make_args(node.body) if isinstance(f, exp)))
    others = Mul(*(f for f in Mul.make_args(node.body) if not isinstance(f, exp)))
    weight = S.Zero
    for term in Add.make_args(expand(exponents)):
        factor, logarithm = term.as_independent(LogFactorial)
        if isinstance(logarithm, LogFactorial) and factor.is_number and logarithm.args[0].diff(n) == 1:
            weight += factor
        elif not _slow(term, n, bound):
            return True
    if weight.is_positive or any(n in f.free_symbols for f in others.atoms(gamma, factorial, LogFactorial)):
        return True
    powers = [f.exp*log(f.base) if f.is_Pow else f.args[0] for f in others.atoms(exp, Pow, cosh, sinh, erfi)
              if not (f.is_Pow and not isinstance(f, exp) and n not in f.exp.free_symbols)]
    return not all(_slow(u, n, bound) for u in powers)


def _slow(exponent: Expr, n: Index, bound: set[Symbol]) -> bool:
    """Whether the power is exp(a n), or does not grow. The average of exp(n z) over z grows as exp(n^2/2)."""
    letters = exponent.free_symbols
    return bool(exponent.is_nonpositive or (exponent.diff(n, 2) == 0 and not (n in letters and letters & bound)))


def _terms(node: ArraySum, digits: int) -> int | None:
    """N with P(n > N) below 10^-2(digits + spare), read off the logarithm of the probabilities; None where N is too large."""
    n = node.index
    powers = [f.as_base_exp() for f in Mul.make_args(node.body)]
    logarithm = Add(*(k*log(abs(b)) for b, k in powers
                      if b.is_real and b.is_nonzero and not b.free_symbols and k.free_symbols == {n}))

    def at(place: int) -> float:
        return float(written_out(logarithm, {}, None, {n: place}).evalf(15))

    place, before = max(8, _last_turn(node) or 0), None
    goal = -2*(digits + _SPARE)*log(10).evalf(15) + (min(at(place), 0) if place > 8 else 0)  # the first terms may vanish
    while place <= _MOST:
        value = at(place)
        if before is not None and value < goal and value < before - 2:  # it falls by a factor a term: the rest is as small
            return place
        place, before = place + max(2, place//8), value
    return None


def endless(*sides: Expr) -> bool:
    """Is every sum of the sides over a countable law?"""
    indices: set[Index] = set().union(*(side.atoms(Index) for side in sides))
    return bool(indices) and all(i.endless for i in indices)


__all__ = ["check_countable", "closed", "endless", "may_diverge", "total"]
