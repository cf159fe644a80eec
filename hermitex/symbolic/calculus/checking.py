"""Is lhs = rhs? Proved by algebra, or tested to N digits where it can turn and where it cannot, or refuted by a counter-example.

Undefined functions are part of the claim: a proof holds for all of them, a test puts several concrete ones in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sympy import (
    Basic,
    Dummy,
    Expr,
    Function,
    Integer,
    MatrixBase,
    MatrixExpr,
    Mod,
    Pow,
    Rational,
    Symbol,
    SympifyError,
    Tuple,
    erf,
    erfc,
    exp,
    expand,
    floor,
    frac,
    powsimp,
    sign,
    sympify,
    together,
)
from sympy.core.function import AppliedUndef

from hermitex import symbols as field
from hermitex.errors import AssumptionNeeded, BadInput, BudgetExceeded, HermitexError, NoClosedForm, brief, first_line
from hermitex.hints import Formula, Letters
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.budget import checkpoint, effort
from hermitex.symbolic.calculus import ratio, rules
from hermitex.symbolic.calculus.asymptotic import approach, check_approach
from hermitex.symbolic.calculus.countable import check_countable, closed, endless, may_diverge
from hermitex.symbolic.calculus.normal import SMALL, is_long, one_body, short, stein_form, symmetrised, top_nodes
from hermitex.symbolic.calculus.paper import plain
from hermitex.symbolic.calculus.points import Point, Points
from hermitex.symbolic.calculus.replicas import of_any_size, two_numbers
from hermitex.symbolic.calculus.sides import affordable, reduced
from hermitex.symbolic.calculus.testing import NOT_DONE, SLACK, Test
from hermitex.symbolic.calculus.turning import compared
from hermitex.symbolic.calculus.unevaluated import endless_of_undefined, evaluated, explicit, renamed, slopes, undone
from hermitex.symbolic.calculus.verdict import AGREES, FAILS, OPEN, PROVED, Check, CounterExample
from hermitex.symbolic.deadline import deadline
from hermitex.symbolic.definite import definite
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum, Element, Index, equally_long, read_sums, written_out
from hermitex.symbolic.law_constraints import Condition, apart, lawful
from hermitex.symbolic.laws import refuse_loose
from hermitex.symbolic.parity import parity
from hermitex.symbolic.undefined import one_function, put, tidy, undefined_functions
from hermitex.symbolic.zero import Verdict, decide

__all__ = ["AGREES", "FAILS", "OPEN", "PROVED", "SEARCH", "Check", "CounterExample", "check"]

SEARCH = 10  # seconds of processor time given to the search for the factor between two sides that differ

_ENTRIES = (1, 2, 3)  # of the arrays that sums are compared with
_MORE = 12  # beside what counts them
_LONGER = (*range(4, 21), *(10**k for k in range(2, 10)))


def check(lhs: Formula, rhs: Formula, *, symbols: Letters | None = None, digits: int = 30, points: int = 4,
          to: Mapping[Any, Any] | None = None, budget: float | None = None) -> Check:
    """Test an equality: a proof, agreement where it was tried, or a counter-example with the factor that is missing.

    It agrees where each side is known to `digits` digits of its own and the two differ by no more than their errors, at
    every point: some near 1, as many (more where no integral is left) of sizes from 0.001 to 1000 and of both signs within
    what is assumed, between the places where a switch, a root, a pole or a branch can turn, and, proved or not, at numbers where
    a jump compares 0 with 0. Fewer digits, fewer points, or 0 = 0 everywhere is "undetermined". Symbols of one name are one; a
    plain one that bears a field's name is the field's.
    Derivative, Subs, Limit and Integral may stand unevaluated; matrices are compared entry by entry. A Sum or Product without a
    value that runs to a letter is refuted or left open.

    Parameters
    ----------
    lhs, rhs : expressions (with nodes, parameters, undefined functions and their derivatives), matrices of them, or texts
    symbols : declarations for texts, as in `parse`
    digits : the agreement asked for at each point; integrals over several variables without an exact value have 12 at most,
        unless they are smooth ones over two
    points : how many points near 1 are tried
    to : {x: 0} or {x: oo}: lhs ~ rhs is claimed as x goes there, that is lhs/rhs -> 1. SymPy's O(x**2) in a side claims that the
        gap of the sides, over x**2, has a finite limit.
    budget : seconds of wall time (None: no bound)

    Raises
    ------
    BadInput : what is no claim about expressions. BudgetExceeded : neither proved, tried nor refuted within the budget.

    Guarantee
    ---------
    proved: the sides are equal wherever both exist. agrees: they agree to the printed digits at the printed points; nothing is
    claimed beyond them. fails: there is a counter-example, confirmed to 30 digits. undetermined: nothing is claimed. See
    docs/promise.md.

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
    with deadline(budget):
        if isinstance(lhs, MatrixBase | MatrixExpr) or isinstance(rhs, MatrixBase | MatrixExpr):
            return _by_entries(lhs, rhs, digits, points)
        lhs, rhs, claim = approach(lhs, rhs, to)
        given = _given(lhs, symbols), _given(rhs, symbols)
        left, right, needed = _one_name(*_read(*given))
        if claim is not None:
            same = field.one_name(left, right, claim.x)
            return check_approach(left.xreplace(same), right.xreplace(same), claim.of(same), points)
        groups = equally_long((*given, *(side for side in (lhs, rhs) if isinstance(side, str))), (left, right))
        try:
            left, right = (side.replace(lambda e: isinstance(e, ArraySum), closed) for side in (left, right))
            if left != right and (left.has(ArraySum) or right.has(ArraySum)):
                return _with_short_arrays(left, right, digits, points, needed, groups)
            if (steep := may_diverge(left, right)) is not None:
                return steep
            found = _judged(left, right, needed, digits, points)
            return found if found.status == FAILS or left == right else Test(left, right, digits, needed).at_jumps(found)
        except BudgetExceeded:
            raise
        except NOT_DONE as error:  # a claim that can be read has an answer
            return Check(left, right, OPEN, first_line(error))


def _judged(left: Expr, right: Expr, needed: tuple[Condition, ...], digits: int, points: int) -> Check:
    forms = _forms(left, right)
    if forms is not None and (_is_zero(forms[0] - forms[1]) or _related(left - right)):
        return Check(left, right, PROVED, "both sides have the same normal form")
    if letters := slopes(left, right):
        found = check(left.xreplace(letters), right.xreplace(letters), digits=digits, points=points)
        back = {letter: slope for slope, letter in letters.items()}
        return replace(found, lhs=left, rhs=right, factor=found.factor and found.factor.xreplace(back), identity=None)
    if (rest := undone(left, right)) is not None:
        return Check(left, right, OPEN, f"{plain(rest)} could not be worked out")
    if (loose := endless_of_undefined(left, right)) is not None:
        return Check(left, right, OPEN, f"{plain(loose)} exists for some functions only: no test can decide")
    if forms is not None and _over_one_denominator(left - right):
        return Check(left, right, PROVED, "over one denominator the difference is 0")
    test = Test(left, right, digits, needed)
    if test.exact is not None and _is_zero(test.exact[0] - test.exact[1]):
        return Check(left, right, PROVED, "both sides have the same closed form")
    verdict = _decided(left, right, forms)
    if verdict is not None and verdict.status == "zero":
        return Check(left, right, PROVED, verdict.how)
    outcome = test.run(points)
    if outcome.status != FAILS and (reason := definite(left - right)):
        return Check(left, right, FAILS, reason)
    if outcome.status != FAILS:
        # The sides may differ beyond the digits they were asked for.
        return outcome if verdict is None or verdict.status != "nonzero" else Check(left, right, FAILS, verdict.how)
    try:
        with effort(SEARCH):
            factor = _factor(forms, test)
    except BudgetExceeded:
        checkpoint("comparing two sides")  # the caller's own budget; running out of ours only leaves the factor unknown
        factor = None
    return Check(left, right, FAILS, outcome.how, None, outcome.counter_example, factor, _identity(left, right, factor))


def _with_short_arrays(left: Expr, right: Expr, digits: int, points: int, needed: tuple[Condition, ...],
                       groups: list[set[str]]) -> Check:
    """Sums over arrays are compared with arrays of a few entries, which are symbols; that is no proof for longer ones.

    Those of two groups of indices have other lengths at each trial: N sum_k eta_k is not P sum_k eta_k, with N and P entries.
    """
    indices = left.atoms(Index) | right.atoms(Index)
    if any(i.endless for i in indices):
        if not endless(left, right):
            return Check(left, right, OPEN, "sums over a countable law and over an array are not compared together")
        return check_countable(left, right, digits, points, needed)
    found = []
    for size in (*_ENTRIES, *([_MORE] if _counts(left) or _counts(right) else [])):
        sizes = [size + n if size == _MORE else (size + n - 1) % max(len(_ENTRIES), len(groups)) + 1 for n in range(len(groups))]
        lengths = {name: many for group, many in zip(groups, sizes, strict=True) for name in group}
        pair = written_out(left, lengths), written_out(right, lengths)
        if size == _MORE:  # in numbers: too many letters
            letters = sorted((pair[0].free_symbols | pair[1].free_symbols) - left.free_symbols - right.free_symbols, key=str)
            drawn = {s: Points((), [s]).near(i + 1)[s] for i, s in enumerate(letters)}
            pair = pair[0].xreplace(drawn), pair[1].xreplace(drawn)
        one = check(lawful(pair[0], needed), pair[1], digits=digits, points=points)
        if one.status in (FAILS, OPEN):
            count = " and ".join(map(str, sizes))
            return replace(one, lhs=left, rhs=right, how=f"with {count} entries: {one.how}", factor=None, identity=None)
        found.append(one)
    if _turns_with_length(left) or _turns_with_length(right):
        return Check(left, right, OPEN, f"with {', '.join(map(str, _ENTRIES))} entries they agree, and with more a side may turn")
    reached = min((one.digits for one in found if one.digits is not None), default=digits)
    return Check(left, right, AGREES, f"arrays of {', '.join(map(str, (*_ENTRIES, _MORE)[:len(found)]))} entries", reached)


def _with_number(expr: Expr, n: Symbol) -> Expr:
    """The expression with a letter for the number of entries, and for a place among them."""
    expr = expr.replace(lambda e: isinstance(e, ArraySum) and e.body == 1, lambda e: n)
    return expr.replace(lambda e: isinstance(e, ArraySum), lambda e: Function("sum")(e.body)).xreplace(
        dict.fromkeys(expr.atoms(Index), n))


def _counts(side: Expr) -> bool:
    """Is the number of entries, or a place among them, a part of it by itself: k (k - 1) (k - 2) is 0 for the first three?"""
    return (n := Dummy("n")) in _with_number(side, n).free_symbols


def _turns_with_length(side: Expr) -> bool:
    """Does what a switch compares with 0 have another sign for some number of entries, or place among them, than for the first?"""
    n = Dummy("n")
    for a in compared(side):
        counted = _with_number(a, n)
        if n in counted.free_symbols and not counted.has(Element, AppliedUndef):
            at = counted.xreplace(dict.fromkeys(counted.free_symbols - {n}, Rational(7, 10)))
            first, later = ({sign(at.xreplace({n: Integer(k)})) for k in lengths} for lengths in (_ENTRIES, _LONGER))
            if not later <= first:
                return True
    return False


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
    """Two matrices of any size by their eigenvalues, beside the vector of ones and at it."""
    ours, theirs = two_numbers(lhs), two_numbers(rhs)
    if ours is None or theirs is None:
        return Check(lhs, rhs, OPEN, "of matrices of any size only those of Identity(n) and OneMatrix(n, n) are compared")
    beside, at = zip(ours, theirs, strict=True)
    return _together(lhs, rhs, "eigenvalue", {"beside the ones": beside, "at the ones": at}, digits, points)


def _together(left: Any, right: Any, kind: str, sides: Mapping[str, tuple[Any, ...]], digits: int, points: int) -> Check:
    """As good as the worst of several equalities."""
    found = []
    for name, pair in sides.items():
        one = check(*pair, digits=digits, points=points)
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


# -- proof -------------------------------------------------------------------------------------------------------------
def _forms(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    try:
        return stein_form(left), stein_form(right)
    except (NoClosedForm, AssumptionNeeded, NotImplementedError):
        return None


def _decided(left: Expr, right: Expr, forms: tuple[Expr, Expr] | None) -> Verdict | None:
    """Is the difference of two constants zero? Asked where no integral is left in it."""
    gap = left - right
    if gap.has(Expectation) and forms is not None:
        gap = forms[0] - forms[1]
    if gap.free_symbols or gap.has(Expectation, AppliedUndef):
        return None
    try:
        return decide(gap)
    except HermitexError:
        return None


def _is_zero(expr: Expr) -> bool:
    expr = (stein_form(expr) if expr.has(Expectation) else expr).replace(erfc, lambda u: 1 - erf(u))
    if short(expr) == 0:
        return True
    if expr.has(Expectation):
        found = one_body(expr)
        if found is None:
            return False
        body, variables, _ = found
        return _is_zero(body) or _related(expr) or (
            len(variables) == 1 and not body.has(AppliedUndef) and parity(body, variables[0]) in (0, -1))
    if expr.count_ops() > SMALL:
        return False
    if not expr.free_symbols:
        return bool(decide(expr).status == "zero")
    # Trigonometric and hyperbolic identities are identities of exponentials. An odd letter is written 2 k + 1: SymPy's powsimp
    # makes exp(i pi n/2) = i of any odd n.
    exponentials = expr.xreplace({n: 2*Dummy("k", integer=True) + 1 for n in expr.free_symbols if n.is_odd}).rewrite(exp)
    return not is_long(exponentials) and bool(short(powsimp(expand(exponentials))) == 0)


def _over_one_denominator(gap: Expr) -> bool:
    """Is the numerator of a difference of quotients of averages 0, and no factor below?"""
    names = {node: Dummy(f"n{i}") for i, node in enumerate(top_nodes(gap))}
    if not any(e.is_Pow and e.exp.is_negative and e.has(*names.values()) for e in gap.xreplace(names).atoms(Pow)):
        return False
    back = {v: k for k, v in names.items()}
    above, below = together(gap.xreplace(names)).as_numer_denom()
    return above.count_ops() < SMALL and _is_zero(above.xreplace(back)) and not _is_zero(below.xreplace(back))


def _related(expr: Expr) -> bool:
    """Is it 0 by what exchanges and changes of sign of the variables make of its averages?"""
    found = one_body(expr) if expr.has(Expectation) else None
    return found is not None and short(symmetrised(*found)) == 0


# -- what would be right -----------------------------------------------------------------------------------------------
def _factor(forms: tuple[Expr, Expr] | None, test: Test) -> Expr | None:
    """lhs/rhs as a simple expression: exactly, from the normal forms, or fitted at points; verified at fresh ones."""
    exact = ratio.exact_factor(*forms) if forms is not None else None
    if exact is not None and not exact.has(AppliedUndef):
        return exact if _verified(exact, test) else None
    if test.agreed:
        return None  # it would be 1 where they agree
    if test.several and min(map(affordable, map(reduced, test.parts))) < test.digits:
        return None  # a fit asks for many points, to many digits
    # A factor with an undefined function in it has no value at a point.
    found = [f for f in ratio.candidates(test.sides, test.parameters) if not undefined_functions(f)][:ratio.MOST]

    def quotient(point: Point) -> Any:
        values = test.at(point, test.assignment(0), 18, confirm=False)
        if values is None or values.nothing or not values.right:
            return None
        with mp.workdps(20):
            return values.left/values.right

    points = [test.points.near(i, Rational(1, 1 + i % 2)) for i in range(len(found) + 4)]
    fitted = ratio.simple_factor(quotient, points, found, digits=12)
    return fitted if fitted is not None and _verified(fitted, test) else None


def _verified(factor: Expr, test: Test) -> bool:
    """With the factor the sides agree, as far as they would have had to, at fresh points and for other functions too."""
    if factor == 1:
        return False
    corrected, seen = Test(test.sides[0], factor*test.sides[1], test.digits), 0
    if corrected.parts == (0, 0):
        return True
    for i in range(2):  # all digits once, fewer at another point, where only another formula would show
        found = corrected.at(test.points.near(i), test.assignment(i), 18 if i else None)
        if found is None or found.nothing:
            continue
        seen += 1
        if found.agree is None or found.agree < min(test.digits, found.asked) - SLACK:
            return False
    return seen > 0


def _identity(left: Expr, right: Expr, factor: Expr | None) -> tuple[str, Expr, Expr] | None:
    """The equality that integration by parts gives for the left (else the right) side of a wrong one."""
    for side in (left, right):
        for name, rule in (("Stein", rules.hermite), ("Stein", rules.stein)):
            after = rules.everywhere(rule, side) if side.has(Expectation) else None
            if after is not None and after != side and short(after - right if side is left else after - left) != 0:
                return name, side, after
    return None
