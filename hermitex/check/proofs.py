"""l - r = 0 by exact rules: expansion, integration by parts, closed forms, the normal form, branches; cheap ones first.

A proof holds wherever both sides exist, under the assumptions of the letters, for every undefined function for which the averages
exist. Each rule has a bound of work, counted in steps, so that the verdict does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sympy import (
    Add,
    Dummy,
    Expr,
    Pow,
    Symbol,
    acos,
    asin,
    cosh,
    coth,
    erf,
    erfc,
    exp,
    expand,
    pi,
    powsimp,
    sech,
    sinh,
    tanh,
    together,
)
from sympy.core.function import AppliedUndef

from hermitex.check import rules
from hermitex.check.normal import is_long, one_body, short, stein_form, symmetrised
from hermitex.check.switch_intervals import SWITCHING, interval, may_hold, on_interval, switch_places
from hermitex.check.values import INTEGRALS, NO_NUMBER, STEPS
from hermitex.errors import AssumptionNeeded, BudgetExceeded, NoClosedForm
from hermitex.symbolic.budget import checkpoint, effort, work
from hermitex.symbolic.formula_size import EXPANDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.integrals import normal_form
from hermitex.symbolic.moreau import Moreau, Prox
from hermitex.symbolic.parity import parity
from hermitex.symbolic.terms import terms, top_nodes
from hermitex.symbolic.undefined import tidy
from hermitex.symbolic.zero import Verdict, decide

CHEAP = 2_000  # steps of work of a rule: some tenths of a second
HYPERBOLIC = (cosh, sinh, tanh, coth, sech)
SECONDS = 3.0  # of processor time at most for one rule, as SymPy's own algebra counts no steps


class Proofs:
    """The rules, to be tried in order on one claim."""

    def __init__(self, left: Expr, right: Expr) -> None:
        self.left, self.right = left, right
        self.forms: tuple[Expr, Expr] | None = None   # normal forms, once they were found
        self.values: tuple[Expr, Expr] | None = None  # closed forms

    def cheap(self) -> str:
        """How expansion or integration by parts proves the claim, or nothing."""
        gap = self.left - self.right
        if is_long(gap):
            return ""
        if self.left == self.right or bounded(lambda: expand(gap) == 0, CHEAP):
            return "both sides are the same expression"
        if (self.left.has(Expectation) or self.right.has(Expectation)) and bounded(self._by_parts, CHEAP):
            return "integration by parts"
        return ""

    def dear(self) -> tuple[bool, str] | None:
        """(whether both sides are equal, how that is proved) by the other rules; None if no rule decides."""
        for how, rule in self._rules():
            if bounded(rule, STEPS):
                return True, how
        found = bounded(self._constant, STEPS)
        return (found.status == "zero", found.how) if found else None

    def _rules(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        gap = self.left - self.right
        if gap.has(Expectation):
            yield "both sides have the same closed form", self._same_value
        yield "both sides have the same normal form", self._same_form
        if gap.has(Expectation):
            yield "over one denominator the difference is 0", lambda: _over_one_denominator(gap)
        if gap.has(Prox, Moreau):
            yield "the minimiser is stationary", lambda: _stationary(gap)
        yield "the sides are equal on each branch", lambda: equal_by_branches(gap)

    def _by_parts(self) -> bool:
        """One average of both sides, whose polynomial factors are integrated by parts; its integrand is 0."""
        gap = expand(self.left - self.right)
        if is_long(gap):
            return False
        if gap.has(Expectation):
            gap = expand(rules.everywhere(rules.linearity, gap) or gap)
        found = one_body(gap)
        if found is None:
            return False
        body, variables, covariance = found
        if operations(body) > EXPANDED:
            return False
        if _vanishes(body, variables, covariance):
            return True
        parts = []
        for t in terms(body, variables):
            reduced = rules.by_parts(t.powers, t.core, variables, covariance)
            parts += [t.coefficient*c*f for c, f in reduced]
        return _vanishes(Add(*parts), variables, covariance)

    def _same_value(self) -> bool:
        values = normal_form(self.left), normal_form(self.right)
        if any(v.has(*INTEGRALS) for v in values):
            return False
        self.values = values
        return is_zero(values[0] - values[1])

    def _same_form(self) -> bool:
        try:
            self.forms = stein_form(self.left), stein_form(self.right)
        except (NoClosedForm, AssumptionNeeded, NotImplementedError):
            return False
        return is_zero(self.forms[0] - self.forms[1]) or _related(self.left - self.right)

    def _constant(self) -> Verdict | None:
        """Is the difference of two constants 0? Only where no integral is left in it."""
        gap = self.left - self.right
        if gap.has(Expectation) and self.forms is not None:
            gap = self.forms[0] - self.forms[1]
        if gap.free_symbols or gap.has(Expectation, AppliedUndef):
            return None
        found = decide(gap)
        return found if found.status in ("zero", "nonzero") else None


def bounded(rule: Callable[[], Any], steps: int) -> Any:
    """What the rule finds within that work; None if it does not apply or takes longer."""
    try:
        with work(steps), effort(SECONDS):
            return rule()
    except BudgetExceeded:
        checkpoint("proving an equality")  # the caller's own budget
    except NO_NUMBER:
        pass
    return None


def _vanishes(body: Expr, variables: Any, covariance: Any) -> bool:
    """Is the average of this integrand 0, because the integrand is, or its sum over the symmetries of the law?"""
    if _numerator_is_zero(body):
        return True
    return len(variables) > 1 and _numerator_is_zero(symmetrised(body, variables, covariance, together))


def _numerator_is_zero(body: Expr) -> bool:
    if operations(body) > 4*EXPANDED:
        return False
    plain = body.rewrite(exp) if body.has(*HYPERBOLIC) else body
    return bool(expand(body) == 0 or expand(together(plain).as_numer_denom()[0]) == 0)


def is_zero(expr: Expr) -> bool:
    """Is it 0 by expansion, by the normal form of its averages, or by the identities of exponentials?"""
    expr = (stein_form(expr) if expr.has(Expectation) else expr).replace(erfc, lambda u: 1 - erf(u))
    expr = expr.replace(acos, lambda u: pi/2 - asin(u))  # the kernels of step functions are printed by either
    if short(expr) == 0:
        return True
    if expr.has(Expectation):
        found = one_body(expr)
        if found is None:
            return False
        body, variables, _ = found
        return is_zero(body) or _related(expr) or (
            len(variables) == 1 and not body.has(AppliedUndef) and parity(body, variables[0]) in (0, -1))
    if operations(expr) > EXPANDED:
        return False
    if not expr.free_symbols:
        return bool(decide(expr).status == "zero")
    # An odd letter is written 2 k + 1: SymPy's powsimp makes exp(i pi n/2) = i of any odd n.
    exponentials = expr.xreplace({n: 2*Dummy("k", integer=True) + 1 for n in expr.free_symbols if n.is_odd}).rewrite(exp)
    return not is_long(exponentials) and bool(short(powsimp(expand(exponentials))) == 0)


def _over_one_denominator(gap: Expr) -> bool:
    """Is the numerator of a difference of quotients of averages 0, and no factor below?"""
    names = {node: Dummy(f"n{i}") for i, node in enumerate(top_nodes(gap))}
    if not any(e.is_Pow and e.exp.is_negative and e.has(*names.values()) for e in gap.xreplace(names).atoms(Pow)):
        return False
    back = {v: k for k, v in names.items()}
    above, below = together(gap.xreplace(names)).as_numer_denom()
    return operations(above) < EXPANDED and is_zero(above.xreplace(back)) and not is_zero(below.xreplace(back))


def _related(expr: Expr) -> bool:
    """Is it 0 by the exchanges and the changes of sign of the variables of its averages?"""
    found = one_body(expr) if expr.has(Expectation) else None
    return found is not None and short(symmetrised(*found)) == 0


# -- minimisers --------------------------------------------------------------------------------------------------------
def _stationary(gap: Expr) -> bool:
    """Is it 0 with p = Prox as a letter, M = (p - omega)^2/(2V) + l(p), and omega = p + V l'(p)?"""
    minimisers = sorted(gap.atoms(Prox, Moreau), key=str)
    letters: dict[Any, Symbol] = {}
    found: dict[Expr, Expr] = {}
    omegas: dict[Expr, Expr] = {}
    for e in minimisers:
        key = e.args
        p = letters.setdefault(key, Dummy("p", real=True))
        loss, omega, V = e.loss, e.args[1], e.args[2]
        if not loss.smooth:
            return False
        if omega.is_Symbol:
            omegas[omega] = p + V*loss.slope.xreplace({loss.f: p, **dict(zip(loss.parameters, e.values, strict=True))})
        found[e] = p if isinstance(e, Prox) else (p - omega)**2/(2*V) + loss.at(p, e.values)
    return is_zero(gap.xreplace(found).xreplace(omegas)) if len(omegas) <= 1 else False


# -- branches ----------------------------------------------------------------------------------------------------------
def equal_by_branches(gap: Expr) -> bool:
    """Is it 0 at the places at which its switches turn as one letter moves, and on each interval between them?

    >>> from sympy import Abs, Max, sign
    >>> y = Symbol("y", positive=True)
    >>> w = Symbol("w", real=True)
    >>> equal_by_branches(Max(w - y, 0) - Max(-w - y, 0) - sign(w)*Max(Abs(w) - y, 0))
    True
    """
    if gap.has(Expectation, AppliedUndef, *INTEGRALS) or not gap.has(*SWITCHING):
        return False
    flat = gap
    for s in sorted(flat.free_symbols, key=str):
        if s.is_extended_real and (places := switch_places(flat, s)) is not None:
            cells = [interval(places, i) for i in range(len(places) + 1)]
            return all(is_zero(flat.xreplace({s: place})) for place in places if may_hold(s, (place, place))) and all(
                is_zero(tidy(on_interval(flat, s, cell))) for cell in cells if may_hold(s, cell))
    return False
