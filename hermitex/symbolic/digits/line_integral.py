"""int_{-L}^{L} f phi dx on panels where f is analytic, summed with exponential accuracy and verified on other nodes.

Averages that stand inside are integrals of the same kind, at values of the variables around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sympy import Expr, Rational, Symbol

from hermitex.errors import HermitexError, NoClosedForm, NotConverged
from hermitex.symbolic.arithmetic import mp, mpf
from hermitex.symbolic.breaks.roots import real_roots
from hermitex.symbolic.breaks.switches import rough_arguments
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.digits.analytic_pieces import Panel, from_end, nested, panels, weighted, window
from hermitex.symbolic.digits.ball_evaluation import Swift
from hermitex.symbolic.digits.digit_program import StraightLine
from hermitex.symbolic.digits.endpoint_precision import Near
from hermitex.symbolic.digits.mp_backend import MPMath
from hermitex.symbolic.digits.scaled import NumericScales, resolved
from hermitex.symbolic.digits.series_summation import Sum, double_exponential, trapezoid
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import pieces
from hermitex.symbolic.scales import scales

MPMATH = MPMath()
_FAR_TOO_LARGE = 10**5  # binary digits of an integrand at the end of its window
_FARTHEST = 10**7  # half the widest window
_WIDE, _SAMPLES = 96, 2000  # a window in which a bell may be overlooked, and half the places where one is looked for
_DEPTH = 12  # how often a panel may be halved

Constant = Callable[[Expectation, int], Sum]  # the value of a node without variables, to some bits


def rational(x: Any) -> Rational:
    """The exact value of an mpf."""
    sign, man, exponent, _ = x._mpf_
    return (-1) ** sign * Rational(int(man)) * Rational(2) ** int(exponent)


class LineIntegral:
    """int body phi dx; `outer` values of enclosing variables may be fed to the nodes that stand in the body."""

    def __init__(self, body: Expr, x: Symbol, bits: int, constant: Constant, outer: Sequence[Symbol] = ()) -> None:
        self.constant, self.body, self.x, self.bits, self.outer = constant, body, x, bits, tuple(outer)
        self.noise = mpf(0)
        self.backend = MPMath(self._inner)
        self.L, self.tail = self._window()
        self.scales = NumericScales(scales(body, x), self.outer)
        self.panels = self._panels()
        self.density = 1 / mp.sqrt(2 * mp.pi)
        self._compiled: dict[Any, Swift] = {}
        self._ends: dict[Any, Near] = {}
        self.floor = mpf(0)

    def run(self, *values: Any) -> Sum:
        self.noise = mpf(0)
        self.floor = mpf(0)
        total = Sum(mpf(0), mpf(0), mpf(0))
        if all(panel.expr == 0 for panel in self.panels) and not self.outer and self._vanishes():
            return total
        if len(self.panels) > 2:  # what matters nowhere beside the others needs no digits of its own
            self.floor = max(self._crude(panel, values) for panel in self.panels)
        for panel in self.panels:
            checkpoint("integrating")
            total += self._panel(panel, values)
        return Sum(total.value, total.error + self.tail + self.noise, total.scale)

    def _vanishes(self) -> bool:
        """Is the integrand 0 on the whole line, and not only within the window?"""
        try:
            return all(piece.expr == 0 for piece in pieces(self.body, self.x))
        except HermitexError:
            return False

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
        found = resolved(found, self.scales)
        return found if self.outer or self.L < _WIDE or self.body.has(Expectation) else self._about_mass(found)

    def _about_mass(self, found: list[Panel]) -> list[Panel]:
        """The panels cut about each stretch of a wide window on which the integrand is not negligible.

        exp(300 z) has its mass within 20 of 300, which is little of a panel that is wide; the nodes of its rules may miss it.
        """
        seen: dict[int, Any] = {}
        with mp.workprec(53):
            step = max(mpf(1), mpf(int(self.L)) / _SAMPLES)
            for panel in found:
                lo, hi = (self._number(end, ()) for end in (panel.lo, panel.hi))
                f = StraightLine(weighted(panel.expr, self.x), [self.x], self.backend)
                for k in range(int(mp.ceil(lo / step)), int(mp.floor(hi / step)) + 1):
                    checkpoint("looking for what matters of an integrand")
                    try:
                        seen[k] = abs(f(k * step))
                    except (ValueError, ArithmeticError):  # a pole, beside which it is large
                        continue
        least = max(seen.values(), default=mpf(0)) * mpf(2) ** (-self.bits - 30)
        edges = [step * k for k, v in seen.items() for beside in (k - 1, k + 1) if v <= least < seen.get(beside, 0)]
        cut: list[Panel] = []
        for panel in found:
            lo, hi = (self._number(end, ()) for end in (panel.lo, panel.hi))
            ends = [panel.lo, *map(rational, sorted({e for e in edges if lo < e < hi})), panel.hi]
            cut += [Panel(a, b, panel.expr, (panel.rough[0] and a == panel.lo, panel.rough[1] and b == panel.hi))
                    for a, b in pairwise(ends)]
        return cut

    def _searched_panels(self) -> list[Panel]:
        """Where not all rough places are found exactly: those that are, and sign changes of the other arguments by bisection."""
        L = Rational(int(self.L))
        # A switch of an inner node belongs to the line over that node's own variable.
        arguments = [a for a in rough_arguments(self.body) if a.free_symbols == {self.x}]
        ends = sorted({-L, L, *(place for a in arguments for place in self._places(a, L))})
        return [Panel(a, b, self.body, (True, True)) for a, b in pairwise(ends)]

    def _places(self, argument: Expr, L: Rational) -> list[Expr]:
        """Where an argument vanishes or has no value."""
        try:
            return list(real_roots(argument, self.x, -L, L))
        except HermitexError:
            pass
        program = StraightLine(argument, [self.x], self.backend)

        def at(place: Any) -> Any:
            try:
                value = program(place)
            except (ValueError, ArithmeticError):
                return mp.nan
            return mp.nan if isinstance(value, mp.mpc) else value   # beyond a branch point it has no sign

        grid = [mpf(int(L)) * (k + mpf(1) / 3) / 1000 for k in range(-1000, 1000)]  # 0 is a place by itself where it is one
        values = [at(g) for g in grid]
        return [rational(_bisect(at, a, b, u)) for (a, u), (b, v) in pairwise(zip(grid, values, strict=True)) if u * v < 0]

    # -- summing
    def _program(self, expr: Expr, variable: Symbol) -> Swift:
        key = (expr, variable)
        if key not in self._compiled:
            self._compiled[key] = Swift(expr, [variable, *self.outer], self.backend)
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
            self._ends[key] = Near(lambda: Swift(moved, [s, *self.outer], self.backend, deeper=False), probe)
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
            found = self.constant(node, self.bits + 6)
            return lambda *values, analytic=False: found.value
        one = nested(node) if len(node.bound) > 1 or not node.independent else node
        if not isinstance(one, Expectation):
            program = StraightLine(one, list(variables), self.backend)
            return lambda *values, analytic=False: program(*values)
        body, (x,) = one.open()
        slots = [variables.index(v) for v in free]
        try:
            line: LineIntegral | None = LineIntegral(body, x, self.bits + 6, self.constant, free)
        except HermitexError:
            line = None

        def value(*values: Any, analytic: bool = False) -> Any:
            chosen = [values[i] for i in slots]
            if line is not None:
                found = line.run(*chosen)
            else:  # the place of a kink depends on the outer variable in a way not solved for: number by number
                number = body.xreplace({v: rational(c) for v, c in zip(free, chosen, strict=True)})
                found = LineIntegral(number, x, self.bits + 6, self.constant).run() if number.has(x) else Sum(
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


__all__ = ["MPMATH", "LineIntegral", "rational"]
