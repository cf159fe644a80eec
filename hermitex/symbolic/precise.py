"""E f = int f(x) exp(-x^2/2)/sqrt(2 pi) dx to N digits, and any formula that holds such integrals.

The expression says where it is not analytic, so each panel is summed with exponential accuracy; two grids give the
error; the working precision is raised until the digits asked for are reached, cancellation included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy as sp
from sympy import Dummy, Expr, Rational, Symbol

from hermitex.errors import Divergent, HermitexError, NoClosedForm, NotConverged
from hermitex.symbolic import hooks
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.bounds.integrability import integrable
from hermitex.symbolic.breaks.switches import switch_arguments
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.enclosure import Enclosure, enclose, flint_available
from hermitex.symbolic.digits.mp_backend import MPMath
from hermitex.symbolic.digits.near import Near
from hermitex.symbolic.digits.orthants import signs_of
from hermitex.symbolic.digits.panels import Panel, ball, from_end, nested, panels, weighted, whitened, window
from hermitex.symbolic.digits.program import StraightLine
from hermitex.symbolic.digits.scaled import NumericScales, resolved
from hermitex.symbolic.digits.summation import Sum, double_exponential, plane, trapezoid
from hermitex.symbolic.existence import require_existence
from hermitex.symbolic.gaussian import E, Expectation
from hermitex.symbolic.radial import radial
from hermitex.symbolic.scales import scales

__all__ = ["MPMATH", "Enclosure", "enclose", "evaluate", "evaluate_to_precision", "evaluate_with_error",
           "flint_available"]

MPMATH = MPMath()
_EXTRA_BITS = 420  # how much working precision may be added against cancellation
_FAR_TOO_LARGE = 10**5  # binary digits of an integrand at the end of its window
_FARTHEST = 10**7  # half the widest window
_DEPTH = 12  # how often a panel may be halved


def evaluate(expr: Any, digits: int = 15, subs: Mapping[Any, Any] | None = None) -> Any:
    """The value of an expression, expectations included, to `digits` significant digits.

    Parameters
    ----------
    expr : expression, or text
    digits : significant digits; where the value is zero as far as can be seen, digits against the size of its terms
    subs : {symbol or name: number}

    Returns
    -------
    mp.mpf

    Raises
    ------
    NotConverged : the digits were not reached; `.solution` is (value, error).
    NoClosedForm : a symbol without a value, or a function without a numeric rule.
    Divergent : an expectation that does not exist.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.gaussian import E
    >>> from sympy import tanh
    >>> print(mp.nstr(evaluate(E(z*tanh(z), z), 20), 20))
    0.60570550960215882558
    """
    value, error, scale = _evaluate(expr, digits, subs)
    allowed = max(abs(value), scale) * mpf(10) ** (1 - digits)
    if error > allowed:
        raise NotConverged((value, error), f"only an error of {mp.nstr(error, 2)} was reached for {expr}")
    with mp.workdps(max(digits, 1)):
        return +value


def evaluate_with_error(expr: Any, digits: int = 15, subs: Mapping[Any, Any] | None = None, *,
                        against_cancellation: int = _EXTRA_BITS) -> tuple[Any, Any]:
    """(value, error): as `evaluate`, with the absolute error estimate that was reached, however large it is.

    `against_cancellation` bounds the binary digits that are added where terms cancel; a value that is 0 costs them all.

    Examples
    --------
    >>> from hermitex.symbols import z
    >>> from hermitex.symbolic.gaussian import E
    >>> from sympy import Abs
    >>> value, error = evaluate_with_error(E(Abs(z), z), 30)
    >>> error < value*10**-29
    True
    """
    value, error, _ = _evaluate(expr, digits, subs, against_cancellation)
    return value, error


def evaluate_to_precision(node: Expr, prec: int) -> Expr:
    """A SymPy Float of `prec` bits: what `.evalf` of a node calls."""
    value = _remembered(node, -(-prec // 64) * 64)
    with mp.workprec(prec):
        return sp.Float._new((+value)._mpf_, prec)


@lru_cache(maxsize=512)
def _remembered(node: Expr, prec: int) -> Any:
    """SymPy asks for the same node again and again at slightly different precisions."""
    return evaluate(node, int(prec * mp.log(2, 10)) + 1)


# -- formulas ----------------------------------------------------------------------------------------------------------
def _evaluate(expr: Any, digits: int, subs: Mapping[Any, Any] | None, extra: int = _EXTRA_BITS) -> tuple[Any, Any, Any]:
    expr = _with_values(hooks.expression(expr), subs)
    names: dict[Expectation, Dummy] = {}
    outer = _nodes_named(expr, names)
    goal = int(digits * mp.log(10, 2)) + 6
    bits = goal
    while True:
        checkpoint("evaluating an expression")
        value, error, scale = _at_bits(outer, names, bits)
        if error <= abs(value) * mpf(2) ** -goal or bits >= goal + extra:
            return _real(expr, value, error), error, scale
        if error == 0:
            return _real(expr, value, error), error, scale
        short = goal + 4 - int(mp.log(abs(value) / error, 2)) if abs(value) > error else bits
        bits = min(bits + max(short, 16), goal + extra)


def _with_values(expr: Expr, subs: Mapping[Any, Any] | None) -> Expr:
    if not subs:
        return expr
    values = {str(k): _rational(v) if isinstance(v, mpf) else hooks.expression(v) for k, v in subs.items()}
    return expr.xreplace({s: values[s.name] for s in expr.free_symbols if s.name in values})


def _rational(x: Any) -> Rational:
    """The exact value of an mpf."""
    sign, man, exponent, _ = x._mpf_
    return (-1) ** sign * Rational(int(man)) * Rational(2) ** int(exponent)


def _nodes_named(expr: Expr, names: dict[Expectation, Dummy]) -> Expr:
    """`expr` with each outermost node replaced by a symbol."""
    if isinstance(expr, Expectation):
        return names.setdefault(expr, Dummy("E", real=True))
    if not expr.args or not expr.has(Expectation):
        return expr
    return expr.func(*(_nodes_named(a, names) for a in expr.args))


def _at_bits(outer: Expr, names: Mapping[Expectation, Dummy], bits: int) -> tuple[Any, Any, Any]:
    """(value, error, size of the terms) with the nodes to `bits`; first-order propagation of their errors."""
    with mp.workprec(bits + 30):
        sums = [integrate(node, bits) for node in names]
        values = [s.value for s in sums]
        program = StraightLine(outer, list(names.values()), MPMATH).prepare()
        value = program(*values)
        error = scale = mpf(0)
        for i, s in enumerate(sums):
            for step in (s.error, -s.error):
                moved = [*values[:i], values[i] + step, *values[i + 1:]]
                error += abs(program(*moved) - value)
            scale += abs(program(*values[:i], values[i] + s.scale, *values[i + 1:]) - value)
        with mp.workprec(2 * bits + 60):  # rounding, measured
            finer = StraightLine(outer, list(names.values()), MPMATH).prepare()(*values)
            error += 2 * abs(finer - value)
        if outer.is_Rational or outer.is_Symbol:
            return value, error if names else mpf(0), scale
        return finer, error + abs(value) * mpf(2) ** (-bits - 10), max(scale, abs(value))


def _real(expr: Expr, value: Any, error: Any) -> Any:
    if not isinstance(value, mp.mpc):
        return value
    if abs(value.imag) > 16 * error + abs(value) * mp.eps:
        raise NoClosedForm(expr, f"its value is not real ({mp.nstr(value, 6)})")
    return value.real


# -- one expectation ---------------------------------------------------------------------------------------------------
def integrate(node: Expectation, bits: int) -> Sum:
    """E f with an error of about 2^-bits E|f|."""
    if node.free_symbols:
        free = min(node.free_symbols, key=str)
        raise NoClosedForm(node, f"{free} has no value", f"Give it one: subs={{'{free}': ...}}")
    if node.has(sp.DiracDelta):
        raise NoClosedForm(node, "a Dirac delta has no value at a point; it is integrated by exact rules only")
    if len(node.bound) > 1:  # asked of all variables at once: an inner average may vanish where the whole does not exist
        require_existence(node)
        signs = signs_of(node, bits)
        if signs is not None:
            return signs
    along = radial(*node.open()) if node.independent else None
    if along is not None:
        one: Expr = E(*along)
    else:
        one = nested(node) if len(node.bound) > 1 or not node.independent else node
    if isinstance(one, Expectation) and len(node.bound) == 2 and one.body.has(Expectation):
        both = _plane(node, bits)
        if both is not None:
            return both
    if not isinstance(one, Expectation):
        one_value = StraightLine(one, [], MPMATH)()
        return Sum(one_value, abs(one_value) * mp.eps, abs(one_value))
    body, (x,) = one.open()

    finite = integrable(body, x)
    if finite is False:
        raise Divergent(node, "the integrand is not absolutely integrable")
    if _odd(body, x):
        if finite is None:
            raise NoClosedForm(node, "it is odd, but whether the expectation exists was not decided")
        return Sum(mpf(0), mpf(0), mpf(0))
    try:
        return _LineIntegral(body, x, bits).run()
    except (ValueError, ArithmeticError) as error:
        if isinstance(error, HermitexError):
            raise
        why = str(error) or "division by zero"
        raise NoClosedForm(node, f"its integrand has no value somewhere on the line ({why})") from error


_ROUGH = (sp.sign, sp.Heaviside, sp.Abs, sp.Max, sp.Min, sp.Piecewise, sp.floor, sp.ceiling, sp.log, sp.tan, Expectation)


def _plane(node: Expectation, bits: int) -> Sum | None:
    """Two variables at once on one grid, where the integrand is smooth and its tail is bounded; None elsewhere."""
    body, variables = whitened(node)
    powers = [p for p in body.atoms(sp.Pow) if p.free_symbols & set(variables)]
    if body.has(*_ROUGH) or any(not p.exp.is_Integer or (p.exp.is_negative and not p.base.is_positive) for p in powers):
        return None
    try:
        found = ball(body, variables, bits + 8)
    except HermitexError:
        return None
    radius = sum((v**2 for v in variables), sp.Integer(0))
    program = StraightLine(body * sp.exp(-radius / 2), list(variables), MPMATH).prepare()
    density = 1 / (2 * mp.pi)
    total = plane(lambda x, y: density * program(x, y), mpf(found.L.numerator) / found.L.denominator,
                  lambda scale: scale * mpf(2) ** -bits)
    return total and Sum(total.value, total.error + mpf(found.tail.numerator) / found.tail.denominator, total.scale)


def _odd(body: Expr, x: Symbol) -> bool:
    if body.xreplace({x: -x}) == -body:
        return True
    try:
        from hermitex.symbolic.parity import parity

        return parity(body, x) == -1
    except (ImportError, HermitexError):
        return False


class _LineIntegral:
    """int body phi dx; `outer` values of enclosing variables may be fed to the nodes that stand in the body."""

    def __init__(self, body: Expr, x: Symbol, bits: int, outer: Sequence[Symbol] = ()) -> None:
        self.body, self.x, self.bits, self.outer = body, x, bits, tuple(outer)
        self.noise = mpf(0)
        self.backend = MPMath(self._inner)
        self.L, self.tail = self._window()
        self.scales = NumericScales(scales(body, x), self.outer)
        self.panels = self._panels()
        self.density = 1 / mp.sqrt(2 * mp.pi)
        self._compiled: dict[Any, StraightLine] = {}
        self._ends: dict[Any, Near] = {}
        self.floor = mpf(0)

    def run(self, *values: Any) -> Sum:
        self.noise = mpf(0)
        self.floor = mpf(0)
        total = Sum(mpf(0), mpf(0), mpf(0))
        if len(self.panels) > 2:  # what matters nowhere beside the others needs no digits of its own
            self.floor = max(self._crude(panel, values) for panel in self.panels)
        for panel in self.panels:
            checkpoint("integrating")
            total += self._panel(panel, values)
        return Sum(total.value, total.error + self.tail + self.noise, total.scale)

    # -- set-up
    def _window(self) -> tuple[Fraction, Any]:
        """[-L, L]: proved where a growth bound is known (at a few values of the outer variables), else by sampling."""
        probes = [{}] if not self.outer else [dict.fromkeys(self.outer, Rational(v)) for v in (-12, 0, 12)]
        try:
            found = [window(self.body.xreplace(p), self.x, self.bits + 8) for p in probes]
        except NoClosedForm:
            return self._sampled_window(probes[-1]), mpf(2) ** -self.bits
        widest = max(found, key=lambda w: w.L)
        return widest.L, mpf(widest.tail.numerator) / widest.tail.denominator

    def _sampled_window(self, probe: Mapping[Symbol, Expr]) -> Fraction:
        program = StraightLine(weighted(self.body.xreplace(dict(probe)), self.x), [self.x], self.backend)
        L = 8
        while L < _FARTHEST:
            L = max(L + 2, L * 9 // 8)
            size = max(abs(program(s * (mpf(L) + k))) for s in (1, -1) for k in (0, mpf(1) / 3, mpf(5) / 7))
            if size * L < mpf(2) ** (-self.bits - 12):
                return Fraction(L)
            if size > mpf(2) ** _FAR_TOO_LARGE:
                break
        raise NoClosedForm(self.body, f"against the Gaussian it does not decay between -{L} and {L}")

    def _panels(self) -> list[Panel]:
        try:
            found = panels(self.body, self.x, self.L)
        except HermitexError:
            if self.outer:
                raise
            found = self._searched_panels()
        return resolved(found, self.scales)

    def _searched_panels(self) -> list[Panel]:
        """Where the switches are not found exactly: sign changes of their arguments, by bisection."""
        ends = sorted({-mpf(int(self.L)), mpf(int(self.L)), *self._sign_changes()})
        exact = [_rational(e) for e in ends]
        return [Panel(a, b, self.body, (True, True)) for a, b in pairwise(exact)]

    def _sign_changes(self) -> list[Any]:
        found = []
        # A switch of an inner node belongs to the line over that node's own variable.
        for argument in (a for a in switch_arguments(self.body) if a.free_symbols == {self.x}):
            program = StraightLine(argument, [self.x], self.backend)
            grid = [mpf(int(self.L)) * k / 1000 for k in range(-1000, 1001)]
            values = [program(g) for g in grid]
            for a, b, u, v in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True):
                if u * v < 0:
                    found.append(_bisect(program, a, b, u))
        return found

    # -- summing
    def _program(self, expr: Expr, variable: Symbol) -> StraightLine:
        key = (expr, variable)
        if key not in self._compiled:
            self._compiled[key] = StraightLine(expr, [variable, *self.outer], self.backend).prepare()
        return self._compiled[key]

    def _panel(self, panel: Panel, values: Sequence[Any]) -> Sum:
        if panel.expr == 0:
            return Sum(mpf(0), mpf(0), mpf(0))
        lo, hi = (self._number(end, values) for end in (panel.lo, panel.hi))
        if len(self.panels) == 1 and not any(panel.rough):
            found = trapezoid(self._plain(panel.expr, values), hi, self._tolerance, frequency=self.scales.frequency)
            if found is not None:
                return found
        left = self._from(panel, 0, lo, values)
        right = self._from(panel, 1, hi, values)
        return self._halving(left, right, (lo, hi), (panel.rough, panel.expr, values, self._reach(panel)), 0)

    def _number(self, end: Expr, values: Sequence[Any]) -> Any:
        return StraightLine(end, list(self.outer), MPMATH)(*values)

    def _tolerance(self, scale: Any) -> Any:
        return max(scale, self.floor) * mpf(2) ** -self.bits

    def _crude(self, panel: Panel, values: Sequence[Any]) -> Any:
        """About half of int |f| over a panel, from five places inside."""
        if panel.expr == 0:
            return mpf(0)
        lo, hi = (self._number(end, values) for end in (panel.lo, panel.hi))
        f = self._plain(panel.expr, values)
        return (hi - lo) / 10 * sum((abs(f(lo + (hi - lo) * k / 11)) for k in (1, 3, 5, 8, 10)), mpf(0))

    def _plain(self, expr: Expr, values: Sequence[Any]) -> Callable[[Any], Any]:
        program, density = self._program(weighted(expr, self.x), self.x), self.density
        return lambda x: density * program(x, *values)

    def _from(self, panel: Panel, which: int, end: Any, values: Sequence[Any]) -> Callable[[Any], Any]:
        """f at a distance from one end; rough ends by the exact shift, so that the distance is never rounded away."""
        side = 1 - 2 * which
        if not panel.rough[which]:
            plain = self._plain(panel.expr, values)
            return lambda s: plain(end + side * s)
        density = self.density
        f = self._near(panel, which)
        return lambda s: density * mp.exp(-(end + side * s) ** 2 / 2) * f(s, *values)

    def _near(self, panel: Panel, which: int) -> Near:
        key = (panel.expr, which, panel[which])
        if key not in self._ends:
            moved, s = from_end(panel.expr, self.x, panel[which], 1 - 2 * which)
            probe = [mpf(0)] * len(self.outer)
            self._ends[key] = Near(lambda: StraightLine(moved, [s, *self.outer], self.backend).prepare(), probe)
        return self._ends[key]

    def _reach(self, panel: Panel) -> int:
        """How small distances from the ends matter, in bits."""
        return max((self._near(panel, i).reach() for i in (0, 1) if panel.rough[i]), default=mp.prec + 10)

    def _halving(self, left: Any, right: Any, ends: tuple[Any, Any], what: tuple, depth: int) -> Sum:
        rough, expr, values, reach = what
        lo, hi = ends
        found = double_exponential(left, right, hi - lo, self._tolerance,
                                   reach=reach if any(rough) else mp.prec + 10)
        if found is not None:
            return found
        if depth == _DEPTH:
            raise NotConverged(None, f"the integral of {expr} did not settle between {mp.nstr(lo, 8)} and "
                                     f"{mp.nstr(hi, 8)}")
        middle, plain = (lo + hi) / 2, self._plain(expr, values)
        first = self._halving(left, lambda s: plain(middle - s), (lo, middle), ((rough[0], False), expr, values, reach),
                              depth + 1)
        return first + self._halving(lambda s: plain(middle + s), right, (middle, hi),
                                     ((False, rough[1]), expr, values, reach), depth + 1)

    # -- nodes inside
    def _inner(self, node: Expectation, variables: Sequence[Symbol]) -> Callable[..., Any]:
        free = tuple(v for v in variables if v in node.free_symbols)
        if not free:
            found = integrate(node, self.bits + 6)
            return lambda *values, analytic=False: found.value
        one = nested(node) if len(node.bound) > 1 or not node.independent else node
        if not isinstance(one, Expectation):
            program = StraightLine(one, list(variables), self.backend)
            return lambda *values, analytic=False: program(*values)
        body, (x,) = one.open()
        slots = [variables.index(v) for v in free]
        try:
            line: _LineIntegral | None = _LineIntegral(body, x, self.bits + 6, free)
        except HermitexError:
            line = None

        def value(*values: Any, analytic: bool = False) -> Any:
            chosen = [values[i] for i in slots]
            if line is not None:
                found = line.run(*chosen)
            else:  # the place of a kink depends on the outer variable in a way not solved for: number by number
                number = body.xreplace({v: _rational(c) for v, c in zip(free, chosen, strict=True)})
                found = _LineIntegral(number, x, self.bits + 6).run() if number.has(x) else Sum(
                    StraightLine(number, [], MPMATH)(), mpf(0), mpf(0))
            self.noise = max(self.noise, found.error)
            return found.value

        return value


def _bisect(f: Callable[[Any], Any], a: Any, b: Any, fa: Any) -> Any:
    for _ in range(mp.prec + 20):
        middle = (a + b) / 2
        if middle in (a, b):
            break
        fm = f(middle)
        a, b, fa = (middle, b, fm) if fm * fa > 0 else (a, middle, fa)
    return a
