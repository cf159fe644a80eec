"""E f(z) ~ sum_j w_j f(x_j), one variable inside of the other, on panels that end where f switches: up to three variables.

The two sides of a claim are evaluated by the same rule. An average comes with an error, the difference between two rules. One
variable alone is left to the package's integrator.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sympy import Dummy, Expr, Mul, Symbol, diff, factor_terms

from hermitex.numbers.average import average as line
from hermitex.numbers.floats_with_exponent import Scaled
from hermitex.numbers.gauss import legendre_on
from hermitex.numbers.program import Program
from hermitex.symbolic.breaks.monotone import by_order
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.digits.iterated_averages import whitened
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.terms import top_nodes

NODES = 1_200_000  # of one rule: some 0.5 s for an integrand of ten operations


class NoNumber(ArithmeticError):
    """The reason, in words of the claim, why an expression has no number."""


class Rule(NamedTuple):
    """Panels on the window, order on each (0: equal steps), and panels graded by 4 about each switch or steep place."""

    panels: int
    order: int
    graded: int = 0


#: Rules by number of variables, coarse to fine, with other panels each; smooth integrands are summed in equal steps first.
KINKED = {1: (Rule(12, 20), Rule(16, 24, 6), Rule(60, 30, 10)), 2: (Rule(6, 14), Rule(9, 18), Rule(11, 18, 5), Rule(24, 20, 6)),
          3: (Rule(4, 10), Rule(5, 12))}
SMOOTH = {1: (Rule(40, 0), Rule(80, 0), Rule(160, 0), *KINKED[1][1:]), 2: (Rule(40, 0), Rule(80, 0), Rule(160, 0), Rule(8, 20, 5)),
          3: (Rule(24, 0), Rule(48, 0), Rule(96, 0))}
OTHER = {1: (Rule(37, 26, 7), Rule(53, 34, 9)), 2: (Rule(9, 20, 4), Rule(11, 24, 5)), 3: (Rule(4, 11), Rule(5, 13))}
ROUNDING = 1e-15  # of an average over the average of its modulus: some operations in doubles


@kept(512)
def average(node: Expectation, other: bool = False) -> tuple[Any, Any]:
    """(value, error) of an average without letters.

    Parameters
    ----------
    other : use rules that share no node with the usual ones

    Raises
    ------
    NoNumber : it does not settle, or takes too many nodes. NotConverged, NoClosedForm, Divergent : as `numbers.average`.
    """
    many = len(node.bound)
    if many > 3:
        raise NoNumber(f"an average over {many} variables has no number here")
    if many == 1 and node.level == 0 and not other:
        body, (x,) = whitened(node)
        found = line(body, x, 14, of_size=True)
        return found.value, found.error
    with np.errstate(all="ignore"):
        return _settled(Nest(node), OTHER[many] if other else None, many)


def _settled(nest: Nest, rules: tuple[Rule, ...] | None, many: int) -> tuple[Any, Any]:
    """The value at which two rules agree best."""
    best: Any = None
    before: Any = None
    for rule in rules or (KINKED if nest.kinked else SMOOTH)[many]:
        try:
            value, magnitude = nest.total(rule)
        except NoNumber:
            if before is None:
                raise
            break
        if before is not None and magnitude > 0:
            error = abs(value - before)/magnitude + ROUNDING
            if not rule.order and error < 1e-5:  # equal steps: halving a step squares the error of a smooth integrand
                error = error**1.4 + ROUNDING
            if best is None or error < best[1]:
                best = value, error, magnitude
            if error <= 3*ROUNDING:
                break
        before = value
    if best is None or not best[1] <= 1e-3:
        raise NoNumber("an average does not settle")
    return best[0], best[1]*best[2]


class Nest:
    """One average: its program over independent normals, the averages inside of it, and where it switches in each coordinate."""

    def __init__(self, node: Expectation, outer: tuple[Symbol, ...] = ()) -> None:
        body, variables = node.open()
        ordered = node.with_body(by_order(body, variables), variables)
        body, variables = whitened(ordered if isinstance(ordered, Expectation) else node)
        fresh = {v: Dummy(v.name, real=True) for v in variables}
        body, self.variables = body.xreplace(fresh), tuple(fresh.values())
        self.letters = (*outer, *self.variables)
        names = {n: Dummy("n", real=True) for n in top_nodes(body)}
        self.inner = {name: Nest(n, tuple(v for v in self.letters if n.has_free(v))) for n, name in names.items()}
        self.program = Program(body.xreplace(names), (*self.letters, *self.inner))
        self.outer = outer
        self.hard = self._roots(self.program.switches)
        self.steep = self._roots([*self.program.switches, *self.program.centres])
        self.kinked: bool = bool(self.program.switches) or any(n.kinked for n in self.inner.values())
        self.window = [9.7]*len(self.variables)  # the weight there is 4e-21

    def _roots(self, places: list[Expr]) -> list[list[Program]]:
        """For each coordinate the numbers at which its panels end, as programs of the coordinates around it.

        Those of an outer coordinate include the numbers at which two of an inner one meet.
        """
        found: list[list[Program]] = []
        factors = (f for g in places for f in Mul.make_args(factor_terms(g)))
        waiting = list(dict.fromkeys(f for f in factors if not f.has(*self.inner)))
        for x in reversed(self.variables):
            around = self.letters[:self.letters.index(x)]
            mine = [g for g in waiting if g.has(x)]
            roots = [-g.xreplace({x: 0*x})/slope for g in mine if (slope := diff(g, x)) != 0 and not slope.has(x)]
            found.insert(0, [Program(r, around) for r in roots])
            waiting = [g for g in waiting if g not in mine]
            waiting += [a - b for a, b in combinations(roots, 2) if (a - b).has(*around)] if around and len(roots) < 5 else []
        return found

    def total(self, rule: Rule) -> tuple[Any, Any]:
        """E f and E|f| of an average that holds no letters; the window is widened until nothing is left at its ends."""
        while True:
            self.ends = [0.0]*len(self.variables)
            value, magnitude = self._over(0, {}, np.zeros(1), rule)
            wide = [i for i, end in enumerate(self.ends) if end > 1e-17*magnitude[0]]
            if not wide or not np.isfinite(magnitude[0]):
                return value[0], magnitude[0]
            for i in wide:
                self.window[i] *= 1.5

    def at(self, rows: dict[Symbol, Any], rule: Rule) -> Any:
        """E f at the rows of the letters around it, each set of numbers once."""
        if not self.outer:
            return np.full(np.shape(next(iter(rows.values()))), self.total(rule)[0])
        once, back = np.unique(np.stack([rows[v] for v in self.outer]), axis=1, return_inverse=True)
        self.ends = [0.0]*len(self.variables)
        value, _ = self._over(0, dict(zip(self.outer, once, strict=True)), np.zeros(once.shape[1]), rule)
        return value[back.reshape(-1)]

    def _over(self, i: int, rows: dict[Symbol, Any], exponent: Any, rule: Rule) -> tuple[Any, Any]:
        """The average over the coordinates from i on, at m rows, times e^exponent."""
        if i == len(self.variables):
            return self._values(rows, exponent, rule)
        checkpoint("averaging over several variables")
        x, weight = self._nodes(i, rows, len(exponent), rule)
        m, q = x.shape
        if m*q > NODES:
            raise NoNumber("an average takes too many nodes")
        further = {s: np.repeat(v, q) for s, v in rows.items()} | {self.variables[i]: x.reshape(-1)}
        weighted = np.repeat(exponent, q) - x.reshape(-1)**2/2 - math.log(2*math.pi)/2
        value, magnitude = (v.reshape(m, q)*weight for v in self._over(i + 1, further, weighted, rule))
        self.ends[i] = max(self.ends[i], float(magnitude[:, [0, -1]].max()))
        return value.sum(axis=1), magnitude.sum(axis=1)

    def _values(self, rows: dict[Symbol, Any], exponent: Any, rule: Rule) -> tuple[Any, Any]:
        given = rows | {name: nest.at(rows, rule) for name, nest in self.inner.items()}
        found = self.program.floats(*(given[v] for v in self.program.variables))
        value = Scaled(found.m, found.k + exponent).plain()
        return value, np.abs(value)

    def _nodes(self, i: int, rows: dict[Symbol, Any], m: int, rule: Rule) -> tuple[Any, Any]:
        """Nodes and weights in coordinate i, arrays (m, q)."""
        end, panels = self.window[i], math.ceil(rule.panels*self.window[i]/9.7)
        even = np.linspace(-end, end, panels + bool(rule.order))
        if not rule.order:
            return np.broadcast_to(even, (m, panels)), np.full((m, panels), even[1] - even[0])
        cuts = [np.broadcast_to(even, (m, panels + 1))]
        spans = end/2*4.0**-np.arange(rule.graded)
        for root in (self.steep if rule.graded else self.hard)[i]:
            place = np.broadcast_to(np.real(root.values(*(rows[v] for v in root.variables))), (m,))
            place = np.clip(np.where(np.isfinite(place), place, end), -end, end)[:, None]
            cuts += [place] if not rule.graded else [place, np.clip(np.hstack([place - spans, place + spans]), -end, end)]
        x, weight = legendre_on(np.sort(np.hstack(cuts), axis=1), rule.order)
        return x.reshape(m, -1), weight.reshape(m, -1)


__all__ = ["NoNumber", "average"]
