"""Both sides of an equality as numbers: without their common terms, with fewer variables, to the digits that are asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sympy import Add, DiracDelta, Expr, Float, I, Integral, Sum, expand

from hermitex.errors import Divergent, HermitexError, NoClosedForm
from hermitex.symbolic.arithmetic import fabs, isfinite, log10, mp
from hermitex.symbolic.calculus import rules, trials
from hermitex.symbolic.digits.analytic_pieces import by_terms, nested
from hermitex.symbolic.existence_check import require_existence
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.precise import evaluate_with_error, in_plane
from hermitex.symbolic.terms import linear

ROUGH = 8  # digits that most wrong claims differ in: tried before all of them are paid for
PLANE, SPACE = 12, 8  # digits that integrals over two variables, and over more, are worth
SHALLOW, DEEP, DEEPEST = 60, 420, 5000  # binary digits that are added at first where terms cancel, then, and about a turn
INTEGRALS = (Expectation, Integral, Sum)
#: What says that a number cannot be had, SymPy's own refusals among them.
NO_DIGITS = (HermitexError, ValueError, ArithmeticError, TypeError, AttributeError, NotImplementedError)


class Sides(NamedTuple):
    """Both sides at a point, the digits they were asked for, and the digits in which they agree (None: they differ)."""

    left: Any
    right: Any
    asked: int
    agree: int | None
    error: Any = 0  # of two that are 0 as far as can be seen

    @property
    def nothing(self) -> bool:
        """Both are 0, as far as can be seen."""
        return self.agree == 0 and self.asked > 0


def has_law(node: Expectation) -> bool:
    """False where the numbers that were put in make the covariance indefinite."""
    cov = node.covariance
    if node.independent or cov.free_symbols:
        return True
    return not any(cov[:k, :k].det().is_negative for k in range(1, cov.rows + 1)) and all(
        not cov[i, i].is_negative for i in range(cov.rows))


def apart(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """The sides without their common terms; where nothing is left on one, the terms with a minus are carried over."""
    one, other = without_common(left, right)
    return carried(one, other) if (one == 0) != (other == 0) else (one, other)


def without_common(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """The sides without their common terms."""
    ours, theirs = list(Add.make_args(left)), list(Add.make_args(right))
    for term in list(ours):
        if term in theirs and term in ours:
            ours.remove(term)
            theirs.remove(term)
    return Add(*ours), Add(*theirs)


def carried(one: Expr, other: Expr) -> tuple[Expr, Expr]:
    """The terms with a minus of what stands on one side only, on the other."""
    whole = other if one == 0 else one
    terms = Add.make_args(whole)
    if len(terms) < 2:
        split = expand(whole.replace(lambda e: isinstance(e, Expectation), linear))
        terms = Add.make_args(split) if _exist(split) else terms
    minus = [t for t in terms if t.could_extract_minus_sign()]
    plus = [t for t in terms if not t.could_extract_minus_sign()]
    return (Add(*plus), -Add(*minus)) if plus and minus else (one, other)


def exact_values(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    """Both sides by closed forms, with nothing left to integrate; None where they have none, or need none."""
    from hermitex.symbolic.integrals import normal_form

    if not (left.has(Expectation) or right.has(Expectation)):
        return None
    try:
        values = normal_form(left), normal_form(right)
    except HermitexError:
        return None
    if any(v.has(*INTEGRALS) for v in values):
        return None
    # What is a single term on one side, and 0 on the other, is no difference: of 1/2 - erf(30)/2 all digits are asked.
    return without_common(*values) if 0 in apart(left, right) else apart(*values)


def _exist(expr: Expr) -> bool:
    try:
        for node in expr.atoms(Expectation):
            require_existence(node)
    except Divergent:
        return False
    return True


def reduced(expr: Expr) -> Expr:
    """Averages over several variables as closed forms, or over fewer variables, where they are found; deltas by their mass."""
    from hermitex.symbolic.integrals import normal_form

    if expr.has(DiracDelta):
        expr = rules.everywhere(rules.sift, expr) or expr
    if trials.widest(expr) < 2:
        return expr
    expr = by_terms(expr)
    ways: tuple[Callable[[Expr], Expr | None], ...] = (
        normal_form, partial(rules.everywhere, rules.mehler), partial(rules.everywhere, rules.stein))
    for fewer in ways:
        found = fewer(expr)
        if found is not None and trials.widest(found) < trials.widest(expr):
            expr = found

    def one(node: Expectation) -> Expr:
        if not has_law(node) or (len(node.bound) < 2 and node.independent):
            return node
        line = nested(node)
        return node if line.has(Expectation) and trials.widest(line) > 1 else line

    tops = {n: one(n) for n in expr.atoms(Expectation) if not n.free_symbols}
    return expr.xreplace({n: line for n, line in tops.items() if line != n})


def affordable(expr: Expr) -> int:
    """The digits to which an expression is evaluated: all, unless integrals over several variables are left in it."""
    wide = trials.widest(expr)
    return 10**6 if wide < 2 else PLANE if wide == 2 else SPACE


def on_grids(expr: Expr, digits: int) -> bool:
    """Are all averages over two variables known to so many digits, since they are smooth?"""
    return all(trials.widest(node) < 2 or in_plane(node, digits) for node in expr.atoms(Expectation))


def compare(sides: list[Expr], asked: int, *, deep: int, zeros: bool, confirm: bool = True) -> Sides | None:
    """The sides as numbers with their errors; that they differ is believed only if more digits say so too.

    `deep`: binary digits that may be added where terms cancel; `zeros`: also where nothing at all is left of them; `confirm`: a
    difference is looked at again in more digits.
    """
    depth = SHALLOW  # the second look at a difference has the depth of the first
    (left, e), (right, d) = (real(side, asked, depth) for side in sides)
    if not (isfinite(left) and isfinite(right)):
        return None
    size, error = max(fabs(left), fabs(right)), e + d
    if deep and fabs(left - right) <= 8*error and error > size*mp.mpf(10)**(1 - asked) and (zeros or size > 4*error):
        depth = deep
        (left, e), (right, d) = (real(side, asked, depth) for side in sides)
    gap, size, error = fabs(left - right), max(fabs(left), fabs(right)), e + d
    if size <= 4*error:
        return Sides(left, right, asked, 0, error)
    if gap > 8*error and not confirm:
        return Sides(left, right, asked, None)
    if gap > 8*error:
        more = 2 if asked > PLANE and max(map(trials.widest, sides)) > 1 else 10  # other grids, of nearly the same size
        (left, e), (right, d) = (real(side, asked + more, depth) for side in sides)
        again, error = fabs(left - right), e + d
        if again > 8*error and gap < 2*again < 4*gap:
            return Sides(left, right, asked, None)
        gap = again
    with mp.workdps(15):
        lost = max(gap, error)/size
    return Sides(left, right, asked, asked if not lost else max(1, min(asked, int(-log10(lost)))))


def real(expr: Expr, digits: int, against_cancellation: int = DEEP) -> tuple[Any, Any]:
    """(value, error)."""
    value, error = evaluate_with_error(expr, digits, against_cancellation=against_cancellation)
    return mp.own(value), mp.own(mp.convert(error))


def half_real(left: Expr, right: Expr) -> Sides | None:
    """Both sides where exactly one is a real number, and the other one that is not: log(mu**2) and 2*log(mu) at mu < 0."""
    if any(n.has(I) for side in (left, right) for n in side.atoms(*INTEGRALS)):
        return None
    one, other = (_complex(side) for side in (left, right))
    if one is None or other is None or bool(one.imag) == bool(other.imag):
        return None
    return Sides(one, other, ROUGH, None)


def not_real(side: Expr) -> bool:
    """Is it a number that is seen not to be real?"""
    value = _complex(side)
    return value is not None and bool(value.imag)


def _complex(side: Expr) -> Any:
    """A number that need not be real; None where it is not seen whether it is."""
    try:
        values = {n: real(n, 2*ROUGH) for n in side.atoms(Expectation)}
    except NoClosedForm:   # it compares what is not real
        return None
    number = side.xreplace({n: Float(v) for n, (v, _) in values.items()}).evalf(2*ROUGH)
    if not number.is_number:
        return None
    re, im = (mp.own(mp.convert(part)) for part in number.as_real_imag())
    if not (isfinite(re) and isfinite(im)):
        return None
    if fabs(im) > fabs(re)*mp.mpf(10)**-ROUGH:
        return mp.mpc(re, im)
    return re if not im else None
