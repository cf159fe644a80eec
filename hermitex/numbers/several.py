"""E f(z_1, ..., z_n) for normals: first reduced exactly to averages over fewer, then summed by the rule that suits the integrand.

In order: the largest of several by its one-variable law; as many variables as the integrand has directions; a quadratic exponent
into the law; independent factors and summands; signs of up to six; lengths and homogeneous integrands. The rest: lattice sums for
analytic integrands, nested panels in two and three variables, Sobol points in more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sympy import Abs, Add, Expr, Max, Min, S, Symbol, eye

from hermitex.errors import BudgetExceeded, Divergent, HermitexError, NotConverged
from hermitex.numbers.average import DOUBLE_DIGITS, Average, average, integral
from hermitex.numbers.lattice_sums import Estimate, lattice_integral, sampled_integral
from hermitex.numbers.moving_breaks import BreakMarks, Breaks, marks
from hermitex.numbers.nested_panels import InnermostIntegral, NestedPanels
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
    summands,
    without_quadratic_exponent,
)
from hermitex.numbers.scaled_integrand import ScaledIntegrand
from hermitex.symbolic.arithmetic import mp
from hermitex.symbolic.existence_check import exists
from hermitex.symbolic.gaussian import bind
from hermitex.symbolic.radial import degree, over_circle


class BeyondDoubles(Exception):
    """More than 15 digits of an average that does not reduce to one variable."""


class NormalAverages:
    """NormalAverages over several normals.

    Parameters
    ----------
    digits : relative to E|f|. Beyond 15, `of` raises `BeyondDoubles` unless everything reduces to one variable.
    """

    def __init__(self, digits: int = 15) -> None:
        self.digits = digits

    def of(self, body: Expr, variables: Sequence[Symbol], law: Any = None) -> Average:
        """E f over N(0, law), by default independent standard normals.

        Parameters
        ----------
        body : a real expression in the variables
        law : covariance matrix, positive semi-definite

        Returns
        -------
        Average : `error` bounds the error of the value, whatever digits were reached. In four variables and more with switches
            it is three standard errors of 16 random rules.

        Raises
        ------
        Divergent : the integrand is not absolutely integrable.
        NotConverged : no number is found.
        BudgetExceeded : the budget ended before a first number.

        Guarantee
        ---------
        The error holds for features that the formula shows (switches, roots, steep functions) or that are wider
        than 1/20 of a unit.

        Examples
        --------
        >>> from hermitex.symbols import z1, z2, z3
        >>> found = NormalAverages().of(Max(z1, z2, z3), (z1, z2, z3))
        >>> print(mp.nstr(found.value, 15))
        0.846284375321634
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
        """Over independent standard normals; the integrand depends on each."""
        if not variables:
            return _number(body)
        if len(variables) == 1:
            return average(body, variables[0], self.digits, of_size=True, as_reached=True)
        if (absorbed := without_quadratic_exponent(body, variables)) is not None:
            factor, rest, law = absorbed
            return _times(self._over(rest, variables, law), factor)
        parts = independent_factors(body, variables)
        if len(parts) > 1:
            return self._product([self._over(p, variables, eye(len(variables))) for p in parts])
        if is_odd(body, variables):
            self._require_existence(body, variables)
            return Average(mp.zero, mp.zero, mp.zero, True)
        return self._summed(body, variables) or self._special(body, variables)

    def _require_existence(self, body: Expr, variables: Sequence[Symbol]) -> None:
        """Raise where the average of an odd integrand does not exist."""
        known = exists(bind(body, tuple(variables), None))
        if known is False:
            raise Divergent(body, "the integrand is not absolutely integrable")
        if not known and NormalAverages(4)._special(Abs(body), variables).digits < 1:
            raise NotConverged(None, f"{body} is odd, but whether its average exists was not decided")

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
        return total if _reaches(total, self.digits) or 1000*abs(total.value) > total.size else None

    def _special(self, body: Expr, variables: Sequence[Symbol]) -> Average:
        """Signs, lengths and homogeneous integrands; else directly."""
        found: Average | None = None
        if self.digits <= DOUBLE_DIGITS and (some := _first(body, variables)) is not None:
            value, error = map(mp.mpf, some)
            found = Average(value, error, abs(value) + error, False)
            if _reaches(found, min(self.digits, 12)):
                return found
        power = degree(body, variables)
        if power is not None and (power + len(variables)).is_nonpositive:
            raise Divergent(body, f"it grows like |z|^({power}) at the origin")
        routes: tuple[Callable[[Expr, Sequence[Symbol]], Any], ...] = (by_length, over_circle, by_conditional_form)
        for route in routes:
            if (fewer := route(body, variables)) is None:
                continue
            with suppress(NotConverged):
                line = (fewer[0], fewer[1], S.NegativeOne, S.One)
                reduced = self._reduced(fewer) if isinstance(fewer, Reduced) else integral(*line, self.digits)
                if reduced.error <= reduced.size:  # it has a digit, if only of E|f|
                    return reduced
        if self.digits > DOUBLE_DIGITS:
            raise BeyondDoubles
        direct = self._directly(body, variables)
        return direct if found is None or direct.error < found.error else found

    def _directly(self, body: Expr, variables: Sequence[Symbol]) -> Average:
        """The first rule that reaches the digits, or the best of them."""
        tolerance = 10.0**-self.digits
        F = ScaledIntegrand(body, variables)
        found = marks(F.program)
        analytic = not found.switches and not found.singular
        best, top = lattice_integral(F, tolerance, 3e6 if len(variables) <= 3 else np.inf) if analytic else None, F.top
        if best is None or best.error > {2: 1e-13, 3: 1e-9}.get(len(variables), np.inf)*abs(best.value):
            other, scale = _by_panels(body, variables, found, F, tolerance)
            if best is None or not best.error < other.error*np.exp(scale - top):
                best, top = other, scale
        if not np.isfinite(best.error):
            raise NotConverged(None, f"{body} has no value at some of the nodes")
        # the panels about a singularity that is not integrable stop with an error of about 1/50 of the sum
        if best.error > best.size*(1e-3 if len(variables) <= 3 else 0.25):
            raise NotConverged(None, f"the rules for several variables do not converge for {body}; its average may not exist")
        unit = mp.exp(mp.mpf(top))
        value, error, size = (mp.mpf(part)*unit for part in best)
        return Average(value, error, size, False)

    def _sum(self, parts: Sequence[Average]) -> Average:
        return Average(mp.fsum(p.value for p in parts), mp.fsum(p.error for p in parts), mp.fsum(p.size for p in parts),
                       all(p.proved for p in parts))

    def _product(self, parts: Sequence[Average]) -> Average:
        value = mp.fprod(p.value for p in parts)
        largest = mp.fprod(abs(p.value) + p.error for p in parts)
        smallest = mp.fprod(abs(p.value) for p in parts)
        return Average(value, largest - smallest + mp.eps*smallest, mp.fprod(p.size for p in parts), all(p.proved for p in parts))


def _first(body: Expr, variables: Sequence[Symbol]) -> tuple[float, float] | None:
    law = eye(len(variables))
    return switches_average(body, variables, law) or mean_of_largest(body, variables, law)


def _by_panels(body: Expr, variables: Sequence[Symbol], found: BreakMarks, F: ScaledIntegrand, tolerance: float,
               ) -> tuple[Estimate, float]:
    """(estimate, its scale) by nested panels, or in four variables and more by lattice sums or Sobol points and panels."""
    if len(variables) == 2:
        reach = float(np.linalg.norm(np.max(np.abs([F.low, F.high]), axis=0)))
        if (polar := in_polar(body, variables, found, reach)) is not None:
            P = ScaledIntegrand(polar.body, polar.variables, polar.box)
            nest = NestedPanels(P, Breaks(marks(P.program), polar.variables), max(tolerance, 1e-14))
            nest.require_existence()
            return Estimate(*nest.total()), P.top
    order = inner_last(found, variables)
    G = F if tuple(order) == tuple(variables) else ScaledIntegrand(body, order)
    breaks = Breaks(found, order)
    if len(variables) <= 3:
        nest = NestedPanels(G, breaks, max(tolerance, 1e-14))
        nest.require_existence()
        return Estimate(*nest.total(() if len(variables) == 2 else (1e-6, 1e-8, 1e-8, 1e-10, 1e-10))), G.top
    nest = NestedPanels(G, breaks, 1e-8)
    estimate = lattice_integral(InnermostIntegral(nest), 1e-8) or Estimate(0.0, np.inf, 0.0)
    if estimate.error > 1e-6*abs(estimate.value):
        G.evaluations = 0
        sampled = sampled_integral(nest, max(tolerance, 1e-8))
        if sampled is not None and sampled.error < estimate.error:
            return sampled, G.top
    return estimate, G.top


def inner_last(found: BreakMarks, variables: Sequence[Symbol]) -> list[Symbol]:
    """The variables in an order that puts the one last in which the breaks are roots of polynomials of low degree."""
    everything = found.switches | found.singular | found.steep

    def difficulty(y: Symbol) -> int:
        mine = [u for u in everything if y in u.free_symbols]
        return len(everything) - len(mine) + sum(u.as_poly(y).degree()**2 if u.is_polynomial(y) else 20 for u in mine)

    return sorted(variables, key=difficulty, reverse=True)


def _is_largest(term: Expr, variables: Sequence[Symbol]) -> bool:
    rest = term.as_independent(*variables, as_Add=False)[1]
    return isinstance(rest, Max | Min) and len(rest.args) >= 3 and all(a.is_polynomial(*variables) for a in rest.args)


def _number(e: Expr) -> Average:
    value = mp.own(e.evalf(mp.dps + 5)._to_mpmath(mp.prec + 20))
    return Average(value, abs(value)*mp.eps, abs(value), True)


def _times(found: Average, factor: Expr) -> Average:
    if factor == 1:
        return found
    c = _number(factor).value
    return Average(c*found.value, abs(c)*found.error + abs(c*found.value)*mp.eps, abs(c)*found.size, found.proved)


def _reaches(found: Average, digits: int) -> bool:
    return bool(found.error <= abs(found.value)*mp.mpf(10)**(1 - digits))


__all__ = ["BeyondDoubles", "NormalAverages"]
