"""sum_n p_n g(n): both sides of an equality with averages over countable laws, at numbers, as sums of finitely many terms.

|sum_{n > N} p_n g(n)|^2 <= P(n > N) sum_{n > N} p_n g(n)^2 (Cauchy and Schwarz): N is taken so far that P(n > N) is the square of
what may be left out, and the sides are summed once more to 3N/2, since what g does beyond N is not known. No proof comes of it.
A g that switches at some n may switch beyond what is summed: it stays undetermined.
"""

from __future__ import annotations

from math import prod

from sympy import Add, Expr, Heaviside, Max, Min, Mul, Piecewise, Rational, ceiling, exp, floor, frac, sign

from hermitex.errors import BudgetExceeded, HermitexError
from hermitex.symbolic.arithmetic import fabs, mp
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.calculus.testing import SLACK, Sides, Test, Tried, compare, real
from hermitex.symbolic.calculus.verdict import AGREES, FAILS, OPEN, Check, CounterExample
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.sums import ArraySum, Index, written_out
from hermitex.symbolic.undefined import undefined_functions

_MOST, _TOGETHER = 800, 4000  # terms of a sum, and of sums inside each other
_SHALLOW = 60  # binary digits added where terms cancel
_SWITCHES = (Heaviside, sign, Max, Min, Piecewise, floor, ceiling, frac)
_SPARE = 20  # digits by which the squares of the terms may exceed the sides


def check_countable(left: Expr, right: Expr, digits: int, points: int) -> Check:
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
    if any(node.index in f.free_symbols for node in sums for f in node.body.atoms(*_SWITCHES)):
        return Check(left, right, OPEN, "a summand that switches over a countable law may do so beyond the terms that are summed")
    test, tried, why = Test(left, right, digits), Tried(digits), ""
    if not test.parameters:
        points = 1
    for i in range(points + 2):
        if len(tried.points) >= points:
            break
        checkpoint("testing an equality at random points")
        parameters = test.points.near(i)
        try:
            found = _at(left.xreplace(parameters), right.xreplace(parameters), digits, zeros=not test.parameters)
        except BudgetExceeded:
            raise
        except (HermitexError, ValueError, ArithmeticError, TypeError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            continue
        if isinstance(found, str):
            why = found
        elif found.agree is None:
            example = CounterExample({}, {s.name: v for s, v in parameters.items()}, found.left, found.right)
            return Check(left, right, FAILS, "", None, example)
        elif found.nothing:
            tried.zeros += 1
        else:
            tried.points.append(dict(parameters))
            tried.digits = min(tried.digits, found.agree)
    if len(tried.points) < points:
        return Check(left, right, OPEN, f"a sum over a countable law has no value at enough points: {why or 'both are 0'}")
    if tried.digits < digits - SLACK:
        how = f"the sides agree to {tried.digits} digits ({tried.words()}), and {digits} are asked"
        return Check(left, right, OPEN, how, tried.digits)
    return Check(left, right, AGREES, f"{tried.words()}, sums over countable laws cut off where less than these digits is left",
                 tried.digits)


def _at(left: Expr, right: Expr, digits: int, *, zeros: bool) -> Sides | str:
    """The sides at numbers; a text says why they are not known there."""
    counts: dict[str, int] = {}
    for node in left.atoms(ArraySum) | right.atoms(ArraySum):
        terms = _terms(node, digits)
        if terms is None:
            return f"{node.index} takes more than {_MOST} terms"
        counts[node.index.name] = max(terms, counts.get(node.index.name, 0))
    if prod(counts.values()) > _TOGETHER:
        return "its sums have too many terms together"
    sides = [written_out(side, counts) for side in (left, right)]
    further = [written_out(side, {k: n + n//2 for k, n in counts.items()}) for side in (left, right)]
    found = compare(sides, digits + 2, deep=False, zeros=zeros)
    if found is None:
        return "a side is not finite"
    for before, after in zip(sides, further, strict=True):
        value, more = (real(e, digits + 16, _SHALLOW)[0] for e in (before, after))
        if fabs(more - value) >= fabs(more)*mp.mpf(10)**(-digits - 14):  # sides are compared to `digits` + 12
            return "what is left of a sum beyond its terms is not small"
    return found


def _terms(node: ArraySum, digits: int) -> int | None:
    """N with P(n > N) below 10^-2(digits + spare), read off the logarithm of the probabilities; None where N is too large."""
    n = node.index
    logarithm = Add(*(f.exp for f in Mul.make_args(node.body) if isinstance(f, exp) and f.free_symbols == {n}))
    goal = -2*(digits + _SPARE)*Rational(2302585093, 10**9)
    place, before = 8, None
    while place <= _MOST:
        value = float(written_out(logarithm, {}, None, {n: place}).evalf(15))
        if before is not None and value < goal and value < before - 2:  # it falls by a factor a term: the rest is as small
            return place
        place, before = place + max(2, place//8), value
    return None


def endless(*sides: Expr) -> bool:
    """Is every sum of the sides over a countable law?"""
    indices: set[Index] = set().union(*(side.atoms(Index) for side in sides))
    return bool(indices) and all(i.endless for i in indices)


__all__ = ["check_countable", "endless"]
