"""int_B f phi_r on boxes: several independent variables, one ball integral inside another, kinks on the grid lines.

The ball |z| > R holds at most a derived tail; inside [-R, R]^r each switch has one sign on each cell of a grid of exact
lines, and on a cell the inner integral is an analytic function of the outer variable.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy as sp
from flint import acb
from sympy import Expr, Symbol

from hermitex.errors import HermitexError, NoClosedForm
from hermitex.numbers.program import Program, ball_constant
from hermitex.numbers.tail_forms import weighted
from hermitex.symbolic.bounds.integrability import certainly_nonzero, dangers
from hermitex.symbolic.breaks.switches import margin
from hermitex.symbolic.budget import checkpoint, is_over
from hermitex.symbolic.digits.iterated_averages import whitened
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.growth import majorant, majorant_tail
from hermitex.symbolic.pieces import breakpoints

_MOST = 3  # variables that are integrated one inside another
_PARTS = 32  # of a range, where a size is all that is asked for


def box_integral(node: Expectation, work: Any) -> Any:
    """A ball that contains E f over several variables; `work` is the pass it belongs to.

    Raises
    ------
    NoClosedForm : more than three variables, a kink that is not on a line z_i = constant, or a singular point.
    """
    body, variables = whitened(node)
    if len(variables) > _MOST:
        raise NoClosedForm(node, f"enclosures in more than {_MOST} variables at once are not supported")
    radius, tail = _radius(body, variables, work.bits + 8)
    R = sp.Rational(radius.numerator, radius.denominator)
    cells: list[dict[Symbol, tuple[Expr, Expr]]] = [{}]
    for v in variables:
        lines = _lines(node, body, v, variables, R)
        cells = [{**cell, v: interval} for cell in cells for interval in pairwise(lines)]
    total = acb(0)
    for cell in cells:
        total += _cell(body, variables, cell, work)
    return work.add_tail(total, tail)


def _radius(expr: Expr, variables: tuple[Symbol, ...], bits: int) -> tuple[Fraction, Fraction]:
    """R with a bound below 2^-bits of the Gaussian integral of |expr| outside of |z| = R, and that bound."""
    bound = majorant(expr, variables)
    if bound is None:
        raise NoClosedForm(expr, "no growth bound is known for it, so the tail of the integral is not bounded")
    R = Fraction(4)
    for _ in range(1000):  # to 4 (9/8)^1000 = 6e51
        tail = majorant_tail(bound, R, dimension=len(variables))
        if tail is not None and tail <= Fraction(1, 2**bits):
            return R, tail
        R = Fraction((R * 9 / 8 * 2).__ceil__(), 2)
    raise NoClosedForm(expr, "its growth bound leaves no finite tail")


def _rough_at(expr: Expr, x: Symbol, point: Expr) -> bool:
    """May the switch-free expr fail to be analytic at `point`? (False is certain.)"""
    return x in expr.free_symbols and not all(
        certainly_nonzero(d.xreplace({x: point})) for d in dangers(expr, (x,), rough=True))


def _lines(node: Expr, body: Expr, v: Symbol, variables: tuple[Symbol, ...], R: Expr) -> list[Expr]:
    """-R, the exact places in v where body may fail to be analytic whatever the other variables are, R."""
    try:
        points = breakpoints(body, v, window=(-R, R))
    except HermitexError as refusal:
        raise NoClosedForm(node, f"where it is not analytic in {v} is not found exactly") from refusal
    if any(p.free_symbols for p in points):
        raise NoClosedForm(node, f"it has a kink in {v} that moves with another variable")
    return [-R, *(p for p in points if -R < p < R), R]


def _cell(body: Expr, variables: tuple[Symbol, ...], cell: dict[Symbol, tuple[Expr, Expr]], work: Any) -> Any:
    # Not the middle: a switch whose two branches agree is no break point, and may vanish at the middle.
    centre = {v: sp.Rational(((5 * lo + 3 * hi) / 8).evalf(20)) for v, (lo, hi) in cell.items()}
    branch = _resolved(body, centre)
    if branch == 0:
        return acb(0)
    for v, ends in cell.items():
        if any(_rough_at(branch.xreplace({w: c for w, c in centre.items() if w != v}), v, end) for end in ends):
            raise NoClosedForm(branch, f"it is singular on a line of {v}")
    program = Program(weighted(branch, variables), variables)
    edges = [(ball_constant(cell[v][0]).real, ball_constant(cell[v][1]).real) for v in variables]
    density = work.density ** len(variables)

    def layer(depth: int, outer: tuple[Any, ...], analytic: bool) -> Any:
        """The integral over the variables from `depth` on; analytic in the outer ones where each value of f is."""
        if is_over():
            return acb("nan")  # no exception may pass through the integrator
        if depth == len(variables):
            return density * program.balls(*outer, analytic=analytic)
        if analytic:
            return coarse(depth, outer)
        # Where an outer variable is a wide ball only a coarse bound is asked for; refining would be wasted.
        goal = sum((x.rad() for x in outer), work.goal).upper()
        return acb.integral(lambda x, inner: layer(depth + 1, (*outer, x), analytic or inner), *edges[depth],
                                       rel_tol=goal, abs_tol=goal)

    def coarse(depth: int, outer: tuple[Any, ...]) -> Any:
        """A sum of balls over equal parts: only the size is asked for, or that there is none."""
        lo, hi = edges[depth]
        total, step = acb(0), (hi - lo) / _PARTS
        for k in range(_PARTS):
            part = acb((lo + k * step).union(lo + (k + 1) * step))
            total += step * layer(depth + 1, (*outer, part), True)
            if not total.is_finite():
                return acb("nan")
        return total

    result = layer(0, (), False)
    checkpoint("enclosing an integral over a box")
    if not result.is_finite():
        raise NoClosedForm(branch, "ball arithmetic gives no finite bound for its integral over a box")
    return result


def _resolved(body: Expr, centre: dict[Symbol, Expr]) -> Expr:
    """Every switch replaced by the branch that holds at a point of the cell, innermost first."""
    if not body.args or not body.free_symbols & set(centre):
        return body

    args = [a if isinstance(body, sp.Piecewise) else _resolved(a, centre) for a in body.args]
    if isinstance(body, sp.Piecewise):
        for branch, condition in body.args:
            if condition == sp.true or _positive(sp.sympify(margin(condition), strict=True), centre):
                return _resolved(branch, centre)
    if isinstance(body, sp.sign):
        return sp.Integer(1 if _positive(args[0], centre) else -1)
    if isinstance(body, sp.Heaviside):
        return sp.Integer(1 if _positive(args[0], centre) else 0)
    if isinstance(body, sp.Abs):
        return args[0] if _positive(args[0], centre) else -args[0]
    if isinstance(body, (sp.Max, sp.Min)):
        best = args[0]
        for other in args[1:]:
            if _positive(other - best, centre) is isinstance(body, sp.Max):
                best = other
        return best
    if isinstance(body, (sp.floor, sp.ceiling)):
        return body.func(args[0].xreplace(centre))
    return body.func(*args)


def _positive(u: Expr, centre: dict[Symbol, Expr]) -> bool:
    value = u.xreplace(centre).evalf(30)
    if not value.is_Float and not value.is_Rational:
        raise NoClosedForm(u, "its sign on a cell is not found")
    if value == 0:
        raise NoClosedForm(u, "it vanishes inside a cell")
    return bool(value > 0)
