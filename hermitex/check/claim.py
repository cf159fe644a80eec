"""lhs = rhs? Numbers first, then proofs, cheap ones before dear ones, else agreement on a domain that is printed.

Undefined functions are part of the claim: a proof holds for all of them, a test puts several concrete ones in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sympy import (
    Basic,
    DiracDelta,
    Expr,
    Limit,
    MatrixBase,
    MatrixExpr,
    Mod,
    SympifyError,
    Tuple,
    floor,
    frac,
    nan,
    oo,
    sympify,
    zoo,
)
from sympy.core.function import AppliedUndef
from sympy.polys.polyerrors import BasePolynomialError

from hermitex import symbols as field
from hermitex.check import ratio, rules
from hermitex.check.asymptotic import AsymptoticClaim, approach, check_approach
from hermitex.check.countable import check_countable, closed, endless, may_diverge
from hermitex.check.normal import short
from hermitex.check.point_tests import PointTest
from hermitex.check.proofs import Proofs, bounded
from hermitex.check.replicas import of_any_size, two_numbers
from hermitex.check.unevaluated import endless_of_undefined, evaluated, explicit, renamed, undone
from hermitex.check.values import NO_NUMBER, STEPS, exist, widest
from hermitex.check.verdict import AGREES, FAILS, OPEN, PROVED, Check, CounterExample, plain
from hermitex.errors import BadInput, BudgetExceeded, brief, first_line
from hermitex.hints import Formula, Letters
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.definite import definite
from hermitex.symbolic.formula_size import operations
from hermitex.symbolic.gaussian import Bound, Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Index, equally_long, read_sums, written_out
from hermitex.symbolic.law_constraints import Condition, apart, lawful
from hermitex.symbolic.laws import refuse_loose
from hermitex.symbolic.undefined import one_function, put, tidy

__all__ = ["AGREES", "FAILS", "OPEN", "PROVED", "Check", "CounterExample", "check"]

_ENDS = {"oo": oo, "-oo": -oo}  # a text that a letter may go to; no side may hold it


def check(lhs: Formula, rhs: Formula, *, symbols: Letters | None = None, digits: int = 30, points: int = 4,
          to: Mapping[Any, Any] | None = None, budget: float | None = None) -> Check:
    """Test lhs = rhs: a proof, agreement at the points of a printed domain, or a counter-example with the factor that is missing.

    Both sides are evaluated at two points first. If they agree there, exact rules try to prove the equality. If no rule
    decides, both sides are compared on the domain: letters of sizes from 0.01 to 100 and of both signs where the assumptions
    allow it; integers from 0 to 12; points next to and on each switch that a letter turns; smooth functions in place of
    undefined ones. Digits are relative to the larger side, and 0 = 0 counts as nothing.

    Symbols of one name are one; a plain symbol with a name of `hermitex.symbols` is that one. Derivative, Subs, Limit and
    Integral may be unevaluated. Matrices are compared entry by entry.

    Parameters
    ----------
    lhs, rhs : expressions (averages, parameters, undefined functions and their derivatives), matrices of them, or texts
    symbols : declarations for texts, as in `parse`
    digits : the digits to compare at each point; averages over several variables without a closed form have fewer
    points : the least number of points at which both sides must have a number
    to : {x: 0} or {x: oo}, names or symbols, claims lhs/rhs -> 1 as x goes there. SymPy's O(x**2) in a side claims that the
        difference over x**2 has a finite limit.
    budget : CPU seconds, after which the claim is undetermined (None: no bound but the rules' own)

    Returns
    -------
    Check : `.status` is "proved", "agrees", "fails" or "undetermined"; the first two are true.

    Raises
    ------
    BadInput : a side is not an expression that can be read. BudgetExceeded : a budget around this call has ended.

    Guarantee
    ---------
    proved: the sides are equal wherever both exist, under the assumptions of the letters, for every undefined function for which
    the averages exist; SymPy's own simplifications are trusted. agrees: they agree to the printed digits at the printed number
    of points; nothing is claimed between the points, beyond the printed ranges, below the digits, or for other functions.
    fails: a counter-example, confirmed with 30 digits, or an exact difference that is not zero. undetermined: nothing is
    claimed. See docs/promise.md.

    Examples
    --------
    >>> from sympy import Function
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbolic.undefined import Derivative
    >>> from hermitex.symbols import z, kappa, r
    >>> f = Function("f")
    >>> check(E(r*z*f(kappa + r*z), z), r**2*E(Derivative(f)(kappa + r*z), z)).status
    'proved'
    >>> check(E(r*z*f(kappa + r*z), z), E(Derivative(f)(kappa + r*z), z))
    False: the sides differ by the factor r**2
      f = tanh, kappa = 0.7, r = 1.3: left 0.7782708088, right 0.4605152715, ratio 1.69
      Stein: E[r z f(kappa + r z)] = r**2 E[f'(kappa + r z)]
    """
    try:
        with deadline(budget):
            return _checked(lhs, rhs, symbols, digits, points, to)
    except BudgetExceeded:
        checkpoint("comparing two sides")  # a budget around this call is the caller's
        if budget is None:
            raise
        return Check(lhs, rhs, OPEN, f"no verdict within the budget of {budget:g} CPU seconds")


def _checked(lhs: Any, rhs: Any, symbols: Any, digits: int, points: int, to: Any) -> Check:
    if isinstance(lhs, MatrixBase | MatrixExpr) or isinstance(rhs, MatrixBase | MatrixExpr):
        return _by_entries(lhs, rhs, digits, points)
    if to is not None and not isinstance(to, Mapping):
        raise BadInput(f"to = {brief(to)} does not say which letter goes where; type to={{x: 0}} or to={{x: oo}}")
    to = to and {_given(x, symbols): _ENDS[at] if isinstance(at, str) and at in _ENDS else _given(at, symbols)
                 for x, at in to.items()}
    lhs, rhs, claim = approach(lhs, rhs, to)
    given = _given(lhs, symbols), _given(rhs, symbols)
    left, right, needed = _one_name(*_read(*given))
    groups = equally_long((*given, *(side for side in (lhs, rhs) if isinstance(side, str))), (left, right))
    try:
        if claim is not None:
            same = field.one_name(left, right, claim.x)
            return check_approach(left.xreplace(same), right.xreplace(same), claim.of(same), points)
        left, right = (side.replace(lambda e: isinstance(e, ArraySum), closed) for side in (left, right))
        if left != right and (left.has(ArraySum) or right.has(ArraySum)):
            return _with_short_arrays(left, right, digits, points, needed, groups)
        if (steep := may_diverge(left, right)) is not None:
            return steep
        return _judged(left, right, needed, digits, points)
    except (BadInput, BudgetExceeded):
        raise
    except (*NO_NUMBER, BasePolynomialError) as error:  # a claim that can be read has an answer
        return Check(left, right, OPEN, first_line(error))


def _judged(left: Expr, right: Expr, needed: tuple[Condition, ...], digits: int, points: int) -> Check:
    proofs, test = Proofs(left, right), PointTest(left, right, digits, needed)
    found = _decided(left, right, proofs, test, points)
    refuted = test.on_switches() if found.status == PROVED and left != right else None
    return found if refuted is None else _explained(refuted, proofs, test)


def _decided(left: Expr, right: Expr, proofs: Proofs, test: PointTest, points: int) -> Check:
    if any(side.has(nan, zoo) or side in (oo, -oo) for side in (left, right)):
        return Check(left, right, OPEN, "a value that does not exist (a division by zero, or an infinite number)")
    undefined = bool(test.samples.functions)
    exists = undefined or bounded(lambda: exist(left, right), STEPS) is not False
    if not exists:
        return Check(left, right, OPEN, "an average of the claim does not exist: its integrand is not absolutely integrable")
    # Numbers of several variables or undefined functions cost more than expansion and integration by parts.
    rules_first = undefined or max(widest(left), widest(right)) > 1
    if rules_first and (how := proofs.cheap()):
        return Check(left, right, PROVED, how)
    if (loose := endless_of_undefined(left, right)) is not None and left != right:
        return Check(left, right, OPEN, f"{plain(loose)} exists for some functions only: no test can decide")
    unfinished = undone(left, right)
    if unfinished is None and (refuted := test.first(2)) is not None:
        return _explained(refuted, proofs, test)
    if not rules_first and (how := proofs.cheap()):
        return Check(left, right, PROVED, how)
    verdict = proofs.dear()
    if verdict is not None and verdict[0]:
        return Check(left, right, PROVED, verdict[1])
    if isinstance(unfinished, Limit) and unfinished in (left, right) and not undefined:
        body, x, at, side = unfinished.args
        claim, value = AsymptoticClaim(x, at), right if unfinished == left else left
        if len(claim.sides) == (2 if str(side) == "+-" else 1):
            lifted = int(value == 0)  # f -> 0 if f + 1 ~ 1
            return replace(check_approach(body + lifted, value + lifted, claim, points), lhs=left, rhs=right)
    if unfinished is not None:
        return Check(left, right, OPEN, f"{plain(unfinished)} could not be worked out")
    if verdict is not None:
        return _explained(Check(left, right, FAILS, verdict[1]), proofs, test)
    found = test.whole(points)
    if found.status == FAILS:
        return _explained(found, proofs, test)
    if reason := bounded(lambda: definite(left - right), STEPS):
        return Check(left, right, FAILS, reason)
    delta = next((d for side in (left, right) for d in side.atoms(DiracDelta) if not d.atoms(Bound)), None)
    if found and delta is not None:
        return Check(left, right, OPEN, f"{plain(delta)} is 0 at all numbers that were tried, and has no number where it is not")
    return found


def _explained(found: Check, proofs: Proofs, test: PointTest) -> Check:
    """The refutation with the factor between both sides, and with the equality that integration by parts gives."""
    factor = bounded(lambda: _factor(proofs, test), STEPS)
    return replace(found, factor=factor, identity=bounded(lambda: _identity(found.lhs, found.rhs), STEPS))


def _factor(proofs: Proofs, test: PointTest) -> Expr | None:
    for forms in (proofs.forms, proofs.values):
        exact = ratio.exact_factor(*forms) if forms is not None else None
        if exact is not None and not exact.has(AppliedUndef) and test.explains(exact):
            return exact
    return None if test.agreed else test.factor()


def _with_short_arrays(left: Expr, right: Expr, digits: int, points: int, needed: tuple[Condition, ...],
                       groups: list[set[str]]) -> Check:
    """Compare sums over arrays with arrays of 1, 2, 3 entries, which are symbols; this does not prove the claim for longer arrays.

    Arrays with different indices get different lengths at each trial: N sum_k eta_k is not P sum_k eta_k, with N and P entries.
    """
    if any(i.endless for i in left.atoms(Index) | right.atoms(Index)):
        if not endless(left, right):
            return Check(left, right, OPEN, "sums over a countable law and over an array are not compared together")
        return check_countable(left, right, digits, points, needed)
    found = []
    for size in (1, 2, 3, 4):  # four, as a cubic in the number of entries may vanish at 1, 2 and 3
        sizes = [(size + n - 1) % max(4, len(groups)) + 1 for n in range(len(groups))]
        lengths = {name: many for group, many in zip(groups, sizes, strict=True) for name in group}
        pair = written_out(left, lengths), written_out(right, lengths)
        one = _checked(lawful(pair[0], needed), pair[1], None, digits, points, None)
        if one.status in (FAILS, OPEN):
            count = " and ".join(map(str, sizes))
            return replace(one, lhs=left, rhs=right, how=f"with {count} entries: {one.how}", factor=None, identity=None)
        found.append(one)
    reached = min((one.digits for one in found if one.digits is not None), default=digits)
    return Check(left, right, AGREES, "arrays of 1, 2, 3, 4 entries", reached)


def _given(side: Any, declared: Any) -> Basic:
    if isinstance(side, str):
        from hermitex.symbolic.parsing import parse_with_letters

        side = parse_with_letters(side, declared)
    try:
        side = sympify(side, strict=True)
    except SympifyError:
        raise BadInput(f"check compares texts, numbers and SymPy expressions, not {brief(side)}") from None
    if not isinstance(side, Expr):
        raise BadInput(f"check compares expressions, not {type(side).__name__}; write check(lhs, rhs)")
    return side


def _read(*sides: Expr) -> Iterator[tuple[Expr, tuple[Condition, ...]]]:
    """Each side, and what the parameters of its laws must satisfy; the length of an array in one is the letter N of both."""
    for side in read_sums(Tuple(*(tidy(side.rewrite((Mod, frac), floor)) for side in sides)), claim=True):
        expr, needed = apart(side)
        refuse_loose(expr)
        yield evaluated(expr), needed


def _by_entries(lhs: Any, rhs: Any, digits: int, points: int) -> Check:
    """Two matrices: as good as the worst of their entries, which is named where it fails."""
    if not all(isinstance(side, MatrixBase | MatrixExpr) for side in (lhs, rhs)):
        raise BadInput("check compares a matrix with a matrix")
    if of_any_size(lhs) and lhs.shape == rhs.shape:
        return _by_numbers(lhs, rhs, digits, points)
    left, right = explicit(lhs), explicit(rhs)
    if left.shape != right.shape:
        return Check(left, right, FAILS, f"the shapes {left.shape} and {right.shape} differ")
    entries = {f"({i + 1}, {j + 1})": (left[i, j], right[i, j]) for i in range(left.rows) for j in range(left.cols)}
    return _together(left, right, "entry", entries, digits, points)


def _by_numbers(lhs: Any, rhs: Any, digits: int, points: int) -> Check:
    """Compare two matrices of any size by their two eigenvalues: at the vector of ones, and orthogonal to it."""
    ours, theirs = two_numbers(lhs), two_numbers(rhs)
    if ours is None or theirs is None:
        return Check(lhs, rhs, OPEN, "of matrices of any size only those of Identity(n) and OneMatrix(n, n) are compared")
    beside, at = zip(ours, theirs, strict=True)
    return _together(lhs, rhs, "eigenvalue", {"beside the ones": beside, "at the ones": at}, digits, points)


def _together(left: Any, right: Any, kind: str, sides: Mapping[str, tuple[Any, ...]], digits: int, points: int) -> Check:
    """As good as the worst of several equalities."""
    found = []
    for name, pair in sides.items():
        one = _checked(pair[0], pair[1], None, digits, points, None)
        if not one:
            return replace(one, lhs=left, rhs=right, how=f"{kind} {name}: {one.how}".removesuffix(": "))
        found.append(one)
    tested = [one for one in found if one.status == AGREES]
    if not tested:
        return Check(left, right, PROVED, f"every {kind}")
    worst = min(tested, key=lambda one: one.digits or 0)
    return Check(left, right, AGREES, f"every {kind}; {worst.how}", worst.digits, points=worst.points)


def _one_name(one: tuple[Expr, tuple[Condition, ...]], other: tuple[Expr, tuple[Condition, ...]],
              ) -> tuple[Expr, Expr, tuple[Condition, ...]]:
    """Both sides, and all conditions, with one symbol, and one undefined function, to a name."""
    (left, ours), (right, theirs) = one, other
    same = field.one_name(left, right)
    left, right = left.xreplace(same), right.xreplace(same)
    needed = tuple(dict.fromkeys(c.xreplace(same) for c in (*ours, *theirs)))
    functions = one_function(left, right)
    left, right = renamed(put(left, functions), put(right, functions))
    return left, right, needed


def _identity(left: Expr, right: Expr) -> tuple[str, Expr, Expr] | None:
    """The equality that integration by parts gives for the left (else the right) side of a wrong one."""
    for side in (left, right):
        for name, rule in (("Stein", rules.hermite), ("Stein", rules.stein)):
            after = rules.everywhere(rule, side) if side.has(Expectation) else None
            if after is None or operations(after) > 3*operations(side):  # a longer formula would not help its reader
                continue
            if after != side and short(after - right if side is left else after - left) != 0:
                return name, side, after
    return None
