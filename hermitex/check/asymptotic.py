r"""f ~ g as x -> a: f/g -> 1.   f = g + O(x^n): (f - g)/x^n has a finite limit.

Proved where the limit of the closed forms, or Taylor's formula under the averages, says so; and in either case the numbers at
three distances, each the square of the one before, must come nearer by a power of the distance. A logarithm is too slow for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sympy import Expr, I, Limit, Order, Pow, Rational, S, Symbol, cos, cosh, erf, erfc, exp, expand, oo, sin, sinh, tanh
from sympy.core.function import AppliedUndef

from hermitex.check.normal import short, stein_form
from hermitex.check.sample_points import Point, PointSamples
from hermitex.check.unevaluated import evaluated
from hermitex.check.values import INTEGRALS, NO_NUMBER, STEPS, Functions, real, reduced, widest
from hermitex.check.verdict import AGREES, FAILS, OPEN, PROVED, Check, CounterExample
from hermitex.errors import BadInput, BudgetExceeded, HermitexError
from hermitex.symbolic.arithmetic import fabs, log10, mp, mpf, nstr
from hermitex.symbolic.budget import checkpoint, work
from hermitex.symbolic.digits.finite_ranges import as_averages
from hermitex.symbolic.existence_check import exists_for_most
from hermitex.symbolic.formula_size import EXPANDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.undefined import put_at

DISTANCES = (Rational(1, 10**2), Rational(1, 10**4), Rational(1, 10**8))
_DIGITS, _DEPTH = 12, 1200   # of a gap, and the binary digits that may cancel in it
_SLOW, _STEADY = 0.2, 0.1    # the least power of the distance that is one, and by how much two estimates of it may differ
_SETTLED = 100               # a number has a limit if it moves by this part of itself at most
_LEAST = 3                   # digits of a quotient that is called 1
_FEW = 2                     # functions, at least, with which an undefined one is tried
_HIGHEST = 12                # order of a Taylor polynomial
_SMOOTH = (exp, sin, cos, sinh, cosh, tanh, erf)


class AsymptoticClaim(NamedTuple):
    """x tends to `at`; the gap of the sides is O(`order`), or, if `order` is None, vanishes relative to the right side."""

    x: Symbol
    at: Expr
    order: Expr | None = None

    def of(self, names: Mapping[Any, Any]) -> AsymptoticClaim:
        """The same in other symbols."""
        return AsymptoticClaim(names.get(self.x, self.x), self.at.xreplace(names), self.order and self.order.xreplace(names))

    @property
    def sides(self) -> tuple[int, ...]:
        """Approach from the right, and from the left where x may take such values."""
        one_sided = self.at in (oo, -oo) or (self.at == 0 and self.x.is_extended_nonnegative)
        return (-1,) if self.at == -oo else (1,) if one_sided else (1, -1)

    def near(self, distance: Expr, side: int) -> Expr:
        """x at that distance, or at its inverse."""
        return side/distance if self.at in (oo, -oo) else self.at + side*distance


def approach(left: Any, right: Any, to: Any) -> tuple[Any, Any, AsymptoticClaim | None]:
    """The sides without O(...), and what the claim says of x: `to` = {x: 0}, or the O(x**n) in a side."""
    orders = {o for side in (left, right) if isinstance(side, Expr) for o in side.atoms(Order)}
    if to is None and not orders:
        return left, right, None
    if len(orders) > 1 or any(len(o.variables) != 1 for o in orders) or (to and (orders or [x.is_Symbol for x in to] != [True])):
        raise BadInput("one letter goes to one place: to={x: 0}, or O(x**2) in a side")
    if to:
        (x, at), = to.items()
        return left, right, AsymptoticClaim(x, at)
    (o,) = orders
    return left.removeO(), right.removeO(), AsymptoticClaim(o.variables[0], o.point[0], o.expr)


def check_approach(left: Expr, right: Expr, claim: AsymptoticClaim, points: int) -> Check:
    """Compare the sides by numbers; if the numbers agree, look for a proof."""
    x = claim.x
    if left == right or (claim.order is None and right == 0):
        return Check(left, right, OPEN, "both sides are one expression" if left == right else "0 has no asymptotic form: f ~ 0")
    found = _tried(left, right, claim, points)
    if found.status == AGREES and x in left.free_symbols | right.free_symbols and (how := _proof(left, right, claim)):
        return Check(left, right, PROVED, how)
    return found


# -- numbers -----------------------------------------------------------------------------------------------------------
def _tried(left: Expr, right: Expr, claim: AsymptoticClaim, points: int) -> Check:
    samples = PointSamples((left, right))
    gap, scale = _exact(left - right, claim), _exact(right, claim) if claim.order is None else claim.order
    found, reached = 10**3, set[int]()
    for i in range(4*points if samples.functions else points if len(samples.letters) > 1 else 1):
        point, functions = samples.near(i), samples.trials(i)
        for side in claim.sides:
            checkpoint("following two sides to a limit")
            places = [{**point, claim.x: claim.near(h, side).xreplace(point)} for h in DISTANCES]
            quotients = []
            for place in places:
                one, other = (_number(e, place, functions) for e in (gap, scale))
                if one is None or other is None or not other[0]:
                    if functions:   # like tanh, whose average, and whose second derivative at 0, is 0
                        break
                    return Check(left, right, OPEN, f"no number was found at {claim.x} = {float(place[claim.x]):.3g}; declare "
                                                    "letters positive that are")
                quotients.append((one[0]/other[0], fabs(one[1]/other[0]) + fabs(one[0]*other[1]/other[0]**2)))
            if len(quotients) < len(places):
                break
            holds, said, shown = _decided(quotients, vanishes=claim.order is None)
            if holds is False:
                values = [_shown(e, places[-1], functions) for e in (left, right)]
                chosen = {f.__name__: t.text for f, t in functions.items()}
                example = CounterExample(chosen, {s.name: v for s, v in places[-1].items()}, *values)
                what = "their quotient less 1" if claim.order is None else f"their gap over {claim.order}"
                return Check(left, right, FAILS, f"{what} {said}", None, example)
            if holds is None:
                return Check(left, right, OPEN, f"the gap of the sides {said} as {claim.x} goes to {claim.at}: that is open")
            found = min(found, shown)
        else:
            reached.add(i)
        if len(reached) == points or (i >= _FEW and not reached):  # no function has a value, as for log(f) with f < 0
            break
    if samples.functions and len(reached) < min(points, _FEW):
        return Check(left, right, OPEN, "the sides have no numbers for most of the functions that were tried")
    digits = found if claim.order is None else None   # of a quotient that is 1
    return Check(left, right, AGREES, f"as {claim.x} goes to {claim.at}", digits, points=len(reached))


def _exact(expr: Expr, claim: AsymptoticClaim) -> Expr:
    """Return the closed form if it holds no integral; for x -> oo write it with erfc, whose terms do not cancel there."""
    from hermitex.symbolic.integrals import normal_form

    try:
        value = normal_form(expr) if expr.has(Expectation) else expr
    except HermitexError:
        return expr
    if value.has(*INTEGRALS):
        return expr
    return expand(value.rewrite(erfc)) if claim.at is oo and value.has(erf) else value


def _shown(expr: Expr, place: Point, functions: Functions) -> Any:
    """The value of a side for a counter-example, with the digits that hold; nan if there is none."""
    found = _number(expr, place, functions, 30) or _number(expr, place, functions)
    if found is None or not found[1]:
        return mpf("nan") if found is None else found[0]
    with mp.workdps(40):
        digits = int(log10(fabs(found[0]/found[1]))) if fabs(found[0]) > found[1] else 0
        return mpf(nstr(found[0], digits)) if digits else found[0]


def _number(expr: Expr, place: Point, functions: Functions, digits: int = _DIGITS) -> tuple[Any, Any] | None:
    """(value, error) at a place; None where there is none, or it takes too long."""
    try:
        with work(STEPS):
            concrete = reduced(as_averages(put_at(expr, place, {f: t.build for f, t in functions.items()})))
            if concrete.has(I):
                return None
            return real(concrete, digits if widest(concrete) < 3 else 8, _DEPTH)
    except BudgetExceeded:
        checkpoint("following two sides to a limit")   # the caller's own budget
        return None
    except NO_NUMBER:
        return None


def _decided(quotients: list[tuple[Any, Any]], *, vanishes: bool) -> tuple[bool | None, str, int]:
    """Does a quotient at three distances vanish (or, if it need not, is it bounded)? With what is seen, and the digits of it."""
    (a, _), (b, e), (c, d) = quotients
    with mp.workdps(30):
        if fabs(c) <= 8*d:   # nothing is left of it
            shown = 30 if not d else int(-log10(d))
            return (True if shown >= 2*_LEAST else None), "is 0 as far as its digits go", shown
        if not a or not b or fabs(b) <= 8*e:
            return None, "is no power of the distance", 0
        first, second = (float(log10(fabs(u/v))) for u, v in ((a, b), (b, c)))
        first, second = first/2, second/4   # powers of the distance, which falls by 2 and by 4 decades
        steady = abs(first - second) <= _STEADY*max(abs(first), abs(second))
        if steady and second >= _SLOW:
            shown = int(-log10(fabs(c)))
            return (True if shown >= _LEAST or not vanishes else None), f"falls as the distance to the {second:.3g}", shown
        if steady and second <= -_SLOW:
            return False, f"grows as the distance to the {second:.3g}", 0
        moved, before = fabs(c - b), fabs(b - a)
        if moved <= fabs(c)/_SETTLED and (moved <= before/_SETTLED**0.5 or moved <= 8*(d + e)):
            return (not vanishes), f"tends to {float(c):.6g}", 30 if not moved else int(-log10(moved/fabs(c)))
    return None, "is no power of the distance", 0


# -- proof -------------------------------------------------------------------------------------------------------------
def _proof(left: Expr, right: Expr, claim: AsymptoticClaim) -> str:
    """How the claim is proved, or nothing."""
    quotient = left/right if claim.order is None else (left - right)/claim.order
    exact = _exact(quotient, claim)
    if not exact.has(*INTEGRALS, AppliedUndef):
        values = {evaluated(Limit(exact, claim.x, claim.at, "+" if side > 0 else "-")) for side in claim.sides}
        if claim.order is None and all(short(v - 1) == 0 for v in values if not v.has(Limit)) and not any(
                v.has(Limit) for v in values):
            return "the limit of the quotient of the closed forms is 1"
        if claim.order is not None and not any(v.has(Limit, oo) for v in values):
            return f"the limit of their gap over {claim.order} is finite"
    power = (right if claim.order is None else claim.order).as_independent(claim.x, as_Add=False)[1]
    n = power.as_base_exp()[1] if power.as_base_exp()[0] == claim.x else None
    if claim.at == 0 and n is not None and n.is_Integer and 0 < n <= _HIGHEST:
        highest = int(n) if claim.order is None else int(n) - 1
        if _flat(left - right, claim.x, highest, int(n)):
            return f"Taylor's formula, of order {n} in {claim.x}"
    return ""


def _flat(gap: Expr, x: Symbol, highest: int, n: int) -> bool:
    """Do the derivatives of a smooth gap vanish at 0, up to that order, and exists the n-th?"""
    slope = gap
    for k in range(n + 1):
        if not _smooth(slope, x) or operations(slope) > 4*EXPANDED:
            return False
        if k <= highest:
            try:
                if short(stein_form(slope.xreplace({x: S.Zero}))) != 0:
                    return False
            except HermitexError:
                return False
        slope = slope.diff(x) if k < n else slope
    return True


def _smooth(expr: Expr, x: Symbol, averaged: bool = False) -> bool:
    """Is it, about x = 0, a smooth function of x, whatever is `averaged` over, and has it all its averages? Of undefined
    functions, and of quotients of averages of them, it is what the claim takes for granted."""
    if x not in expr.free_symbols:
        return True
    if isinstance(expr, Expectation):
        held = expr.covariance.free_symbols
        return x not in held and _smooth(expr.body, x, True) and (expr.has(AppliedUndef) or bool(exists_for_most(expr)))
    if isinstance(expr, Pow) and not isinstance(expr, exp):
        defined = expr.base.is_positive or (expr.exp.is_Integer and (expr.exp.is_nonnegative or (
            not averaged and short(stein_form(expr.base.xreplace({x: S.Zero}))) != 0)))
        return x not in expr.exp.free_symbols and bool(defined) and _smooth(expr.base, x, averaged)
    fine = expr.is_Add or expr.is_Mul or expr.is_Symbol or isinstance(expr, (*_SMOOTH, AppliedUndef))
    return fine and all(_smooth(a, x, averaged) for a in expr.args)
