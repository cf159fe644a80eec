"""E f(z_1, ..., z_n) for normals: first reduced exactly to averages over fewer, then summed by the rule that suits the integrand.

In order: the largest of several by its one-variable law; as many variables as the integrand has directions; a quadratic exponent
into the law; independent factors and summands; signs of up to six; lengths and homogeneous integrands. The rest: lattice sums for
analytic integrands, nested panels in two and three variables, Sobol points in more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Expr, Max, Min, S, Symbol, eye

from hermitex.errors import BudgetExceeded, HermitexError, NoClosedForm
from hermitex.numbers.conditional_sampling import sampled_integral
from hermitex.numbers.lattice_sums import Estimate, lattice_integral
from hermitex.numbers.moving_breaks import Breaks, Marks, marks
from hermitex.numbers.nested_panels import Conditional, NestedPanels
from hermitex.numbers.orthants import mean_of_largest, switches_average
from hermitex.numbers.polar_coordinates import in_polar
from hermitex.numbers.reductions import (
    Reduced,
    by_conditional_form,
    by_largest,
    by_length,
    in_fewest,
    independent_factors,
    is_odd,
    over_circle,
    summands,
    without_quadratic_exponent,
)
from hermitex.numbers.scaled_integrand import ScaledIntegrand
from hermitex.symbolic.arithmetic import mp, mpf


class Average(NamedTuple):
    """Value, absolute error, and how it was found: exact, nodes, sampled."""

    value: Any
    error: Any
    how: str

    def reaches(self, digits: int) -> bool:
        return bool(self.error <= abs(self.value)*mpf(10)**(1 - digits))


Line = Callable[[Expr, Symbol, int], Average]


class Averages:
    """Averages over several normals.

    Parameters
    ----------
    line : the average of an integrand over one standard normal, to so many digits
    digits : relative, of each part; beyond 15 only where everything reduces to one variable
    """

    def __init__(self, line: Line, digits: int) -> None:
        self.line, self.digits = line, digits

    def of(self, body: Expr, variables: Sequence[Symbol], law: Any = None) -> Average:
        """E f over N(0, law), by default independent standard normals.

        Raises
        ------
        Divergent : the integrand is not absolutely integrable.
        NoClosedForm : no number was found; the reason is in words of the integrand.
        """
        with mp.workdps(max(self.digits, 15) + 10):
            return self._over(body, variables, eye(len(variables)) if law is None else law)

    def _over(self, body: Expr, variables: Sequence[Symbol], law: Any) -> Average:
        if (parts := by_largest(body, variables, law)) is not None:
            return self._sum([self._reduced(p) for p in parts])
        factor, body, variables = in_fewest(body, variables, law)
        return _times(self._independent(body, variables), factor)

    def _reduced(self, r: Reduced) -> Average:
        return _times(self._independent(r.body, r.variables), r.factor)

    def _independent(self, body: Expr, variables: Sequence[Symbol]) -> Average:
        """Over independent standard normals, each of which the integrand depends on."""
        if not variables:
            return _number(body)
        if len(variables) == 1:
            return self.line(body, variables[0], self.digits)
        if (absorbed := without_quadratic_exponent(body, variables)) is not None:
            factor, rest, law = absorbed
            return _times(self._over(rest, variables, law), factor)
        parts = independent_factors(body, variables)
        if len(parts) > 1:
            return self._product([self._over(p, variables, eye(len(variables))) for p in parts])
        if is_odd(body, variables):
            self._require_existence(body, variables)
            return Average(mpf(0), mpf(0), "exact")
        return self._summed(body, variables) or self._special(body, variables)

    def _require_existence(self, body: Expr, variables: Sequence[Symbol]) -> None:
        """Raise where the average of an odd integrand does not exist."""
        found = Averages(self.line, 4)._special(abs(body), variables)
        if not found.reaches(2):
            raise NoClosedForm(body, "it is odd, but whether the average exists was not decided")

    def _summed(self, body: Expr, variables: Sequence[Symbol]) -> Average | None:
        """The averages of the terms of a sum, where each depends on fewer variables or is a largest of three and more."""
        if not isinstance(body, Add):
            return None
        largest = [t for t in body.args if _is_largest(t, variables)]
        parts = [Add(*largest), Add(*(t for t in body.args if t not in largest))] if largest else summands(body, variables)
        if len(parts) < 2:
            return None
        try:
            found = [self._over(p, variables, eye(len(variables))) for p in parts]
        except BudgetExceeded:
            raise
        except HermitexError:
            return None  # the divergences of terms may cancel
        total = self._sum(found)
        # terms that cancel lose digits, which the sum as a whole may keep
        return total if total.reaches(self.digits) or 1000*abs(total.value) > sum(abs(p.value) for p in found) else None

    def _special(self, body: Expr, variables: Sequence[Symbol]) -> Average:
        """Signs, lengths and homogeneous integrands; else directly."""
        found: Average | None = None
        if self.digits <= 15 and (some := _first(body, variables)) is not None:
            found = Average(mpf(some[0]), mpf(some[1]), "nodes")
            if found.reaches(min(self.digits, 12)):
                return found
        for reduction in (by_length, over_circle, by_conditional_form):
            if (r := reduction(body, variables)) is not None:
                return self._reduced(r)
        direct = self._directly(body, variables)
        return direct if found is None or direct.error < found.error else found

    def _directly(self, body: Expr, variables: Sequence[Symbol]) -> Average:
        """The first rule that reaches the digits, or the best of them."""
        found = marks(body, variables)
        analytic = not found.switches and not found.singular
        tolerance = 10.0**-min(self.digits, 15)
        F = ScaledIntegrand(body, variables)
        best = lattice_integral(F, tolerance) if analytic else None
        how = "nodes"
        if best is None or best.error > {2: 1e-13, 3: 1e-9}.get(len(variables), np.inf)*abs(best.value):
            other, top, sampled = _by_panels(body, variables, found, F, tolerance)
            if best is None or other.error*np.exp(top - F.top) < best.error:
                best, how, F.top = other, "sampled" if sampled else "nodes", top
        if not np.isfinite(best.error):
            raise NoClosedForm(body, "it has no number at some of the nodes")
        if best.error > best.size/4 and best.size > 0:
            raise NoClosedForm(body, "the rules for several variables do not converge; it may not exist")
        scale = mp.exp(mpf(F.top))
        return Average(mpf(best.value)*scale, mpf(best.error)*scale, how)

    def _sum(self, parts: Sequence[Average]) -> Average:
        return Average(mp.fsum(p.value for p in parts), mp.fsum(p.error for p in parts), _weakest(parts))

    def _product(self, parts: Sequence[Average]) -> Average:
        value = mp.fprod(p.value for p in parts)
        largest = mp.fprod(abs(p.value) + p.error for p in parts)
        smallest = mp.fprod(abs(p.value) for p in parts)
        return Average(value, largest - smallest + mp.eps*smallest, _weakest(parts))


def _first(body: Expr, variables: Sequence[Symbol]) -> tuple[float, float] | None:
    law = eye(len(variables))
    return switches_average(body, variables, law) or mean_of_largest(body, variables, law)


def _by_panels(body: Expr, variables: Sequence[Symbol], found: Marks, F: ScaledIntegrand, tolerance: float,
               ) -> tuple[Estimate, float, bool]:
    """(estimate, its scale, whether it was sampled) by nested panels, or in four variables and more by Sobol points."""
    if len(variables) == 2:
        reach = float(np.linalg.norm(np.max(np.abs([F.low, F.high]), axis=0)))
        if (polar := in_polar(body, variables, found, reach)) is not None:
            P = ScaledIntegrand(polar.body, polar.variables, polar.box)
            nest = NestedPanels(P, Breaks(marks(polar.body, polar.variables), polar.variables), max(tolerance, 1e-14))
            return Estimate(*nest.total()), P.top, False
    order = inner_last(found, variables)
    G = F if tuple(order) == tuple(variables) else ScaledIntegrand(body, order)
    breaks = Breaks(found, order)
    if len(variables) <= 3:
        nest = NestedPanels(G, breaks, max(tolerance, 1e-14))
        nest.require_existence()
        return _tightened(nest, tolerance), G.top, False
    nest = NestedPanels(G, breaks, 1e-8)
    estimate = lattice_integral(Conditional(nest), 1e-8) or Estimate(0.0, np.inf, 0.0)
    if estimate.error > 1e-6*abs(estimate.value):
        G.evaluations = 0
        sampled = sampled_integral(nest, max(tolerance, 1e-8))
        if sampled is not None and sampled.error < estimate.error:
            return sampled, G.top, True
    return estimate, G.top, False


def _tightened(nest: NestedPanels, tolerance: float) -> Estimate:
    """In three variables the tolerance falls from 1e-6, as long as the next one is likely to end; in two it is the last at once."""
    if nest.F.n == 2:
        return Estimate(*nest.total())
    best: Estimate | None = None
    try:
        for nest.tolerance in (1e-6, 1e-8, 1e-10, 1e-12):
            before = nest.F.evaluations
            found = Estimate(*nest.total())
            best = found if best is None or found.error < best.error else best
            if found.error < tolerance*abs(found.value) or 3*(nest.F.evaluations - before) > nest.F.most - nest.F.evaluations:
                break
    except BudgetExceeded:
        if best is None:
            raise
    return best or Estimate(0.0, np.inf, 0.0)


def inner_last(found: Marks, variables: Sequence[Symbol]) -> list[Symbol]:
    """The variables in an order that puts the one last in which the breaks are roots of polynomials of low degree."""
    def difficulty(y: Symbol) -> int:
        mine = [u for u in found.switches | found.singular if y in u.free_symbols]
        hidden = sum(1 for u in found.switches | found.singular if y not in u.free_symbols)
        return hidden + sum(1 + 3*int(u.as_poly(y).degree() > 1) if u.is_polynomial(y) else 12 for u in mine)

    return sorted(variables, key=difficulty, reverse=True)


def _is_largest(term: Expr, variables: Sequence[Symbol]) -> bool:
    rest = term.as_independent(*variables, as_Add=False)[1]
    return isinstance(rest, Max | Min) and len(rest.args) >= 3 and all(a.is_polynomial(*variables) for a in rest.args)


def _number(e: Expr) -> Average:
    value = mp.own(e.evalf(mp.dps + 5)._to_mpmath(mp.prec + 20))
    return Average(value, abs(value)*mp.eps, "exact")


def _times(found: Average, factor: Expr) -> Average:
    if factor == 1:
        return found
    c = _number(S(factor)).value
    return Average(c*found.value, abs(c)*found.error + abs(c*found.value)*mp.eps, found.how)


def _weakest(parts: Sequence[Average]) -> str:
    return max((p.how for p in parts), key=("exact", "proved", "nodes", "sampled").index)


__all__ = ["Average", "Averages", "Line"]
