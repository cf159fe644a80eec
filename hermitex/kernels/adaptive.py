"""Which quadrature each integration variable gets, whether it is good enough, and how it is refined.

The choice is structural: no break point in the integrands -> the trapezoid rule; break points -> panels that end at
them, also where they move with a parameter, with an outer variable or with an unknown. The verdict is measured: every
average of a solution is taken again with coarser weights on the same nodes, relative to E|F|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import reduce
from typing import Any

import numpy as np
from sympy import Abs, Basic, Expr, Heaviside, Max, Min, Piecewise, Pow, Symbol, cancel, ceiling, expand, floor, log, sign

from hermitex.errors import HermitexError
from hermitex.kernels import quadrature
from hermitex.kernels.lowering import Axis, Lowered
from hermitex.kernels.recognition import plain
from hermitex.kernels.source import place

_MOST_KINKS = 80  # of one function
_FAR = 40  # how far out the kinks of a function of one linear form are listed
_GRADES = 20  # panels toward each end of an interval, each a quarter of the one before: a root there costs no digits
_CROWDED = 12  # from that many kinks on an interval between two of them begins with one panel
_STEPS = (0.1, 0.15)  # of the first trapezoid rule, outer and inner: fine enough for most, and verified for all
_COARSE = (0.2, 0.3)  # the same where every step of a solver averages over a grid of several axes: its cost is the grid's
_ROUGH = (sign, Heaviside, Abs, Max, Min, Piecewise, floor, ceiling, log)
_ROUNDING = 4e-16
_NEGLIGIBLE = 1e-8
_BEYOND = 2.0
_LEAST_RATE = 1e-3
_SAFETY = 4.0  # on the rate at which the error shrinks
_STALLED = (2, 5)  # refinements of one axis in a row without a gain of two: below and above an error of 1e-6


def moving_kinks(lowered: Lowered) -> dict[str, tuple[Expr, ...]]:
    """{axis: the break points of its integrands, as formulas of what is outside}; an axis that is not there is smooth."""
    from hermitex.symbolic.pieces import breakpoints

    definitions = {s.target: plain(s.expr) for s in lowered.statements if not s.axes}
    rough = _Roughness(lowered, definitions)
    found: dict[str, list[Expr]] = {}
    for s in lowered.statements:
        if not s.axes:
            continue
        integrand = plain(s.expr)
        for axis in s.axes:
            if axis.symbol not in rough.along(integrand):
                continue
            body = _inlined(integrand, definitions, axis)
            points = _along_lines(body, axis.symbol)
            try:
                points = points or breakpoints(body, axis.symbol)
            except (HermitexError, NotImplementedError, ValueError, TypeError):
                points = _where_linear(body, axis.symbol)  # none: the adaptive panels look for them
            inside = {a.symbol for a in s.axes[s.axes.index(axis):]}
            known = found.setdefault(axis.identifier, [])
            known += [p for p in points if p not in known and not p.free_symbols & inside]
    return {name: tuple(points) for name, points in found.items() if 0 < len(points) <= 3 * _MOST_KINKS}


def _where_linear(body: Expr, x: Symbol) -> tuple[Expr, ...]:
    """-b/a for each switch in a x + b, whatever the signs are, which a kernel need not know; empty if one is not linear."""
    from hermitex.symbolic.pieces import switch_arguments

    found = []
    for argument in switch_arguments(body):
        if x not in argument.free_symbols:
            continue
        slope = argument.diff(x)
        if slope == 0 or x in slope.free_symbols or body.has(floor, ceiling, log):
            return ()
        found.append(-(argument - slope * x).expand() / slope)
    return tuple(dict.fromkeys(found))


def _along_lines(body: Expr, x: Symbol) -> tuple[Expr, ...]:
    """(t_k - b)/a for the break points t_k of f in each rough part f(a x + b): floor(a x + b), Abs(tanh(a x + b) - 1/2), ...

    A function with infinitely many gives those nearest to 0. Empty if a part is no function of one linear form.
    """
    from hermitex.symbolic.pieces import breakpoints

    t = Symbol("t", real=True)
    found: dict[Expr, None] = {}
    for part in _rough_parts(body, x):
        forms = _linear_forms(part, x)
        if not forms:
            return ()
        unit = forms[0].diff(x).as_coeff_Mul()[0]  # sin(3 u) is asked as far out in u as sin(u)
        line = expand(forms[0] / unit)
        slope = line.diff(x)
        ratios = [cancel(form.diff(x) / slope) for form in forms]
        shifts = [expand(form - k * line) for form, k in zip(forms, ratios, strict=True)]
        f = part.xreplace({form: k * t + b for form, k, b in zip(forms, ratios, shifts, strict=True)})
        if f.free_symbols != {t}:
            return ()
        try:
            points = breakpoints(f, t, (-_FAR, _FAR))
        except (HermitexError, NotImplementedError, ValueError, TypeError):
            return ()
        nearest = sorted(points, key=lambda p: abs(float(p)))[:_MOST_KINKS]
        found |= dict.fromkeys((p - (line - slope * x).expand()) / slope for p in sorted(nearest, key=float))
    return tuple(found)


def _rough_parts(e: Basic, x: Symbol) -> list[Expr]:
    """The outermost switches, steps, logarithms and roots in x."""
    if x not in e.free_symbols:
        return []
    if isinstance(e, _ROUGH) or (isinstance(e, Pow) and not e.exp.is_Integer and x in e.base.free_symbols):
        return [e]
    return list(dict.fromkeys(part for a in e.args for part in _rough_parts(a, x)))


def _linear_forms(e: Basic, x: Symbol) -> list[Expr]:
    """The largest parts of `e` that are linear in x."""
    if x not in e.free_symbols:
        return []
    if isinstance(e, Expr) and not e.has(*_ROUGH) and (slope := e.diff(x)) != 0 and x not in slope.free_symbols:
        return [e]
    return list(dict.fromkeys(form for a in e.args for form in _linear_forms(a, x)))


class _Roughness:
    """Along which axes something in a formula may have a kink, a jump or a branch point, seen without writing it out."""

    def __init__(self, lowered: Lowered, definitions: dict[Symbol, Expr]) -> None:
        self.axes = {a.symbol for a in lowered.axes}
        self.moves: dict[Symbol, set[Symbol]] = {}
        self.known: dict[Symbol, set[Symbol]] = {}
        for v, e in definitions.items():  # each reads only what stands before it
            self.moves[v], self.known[v] = self._varies(e), self.along(e)

    def _varies(self, e: Expr) -> set[Symbol]:
        return (e.free_symbols & self.axes).union(*(self.moves.get(v, set()) for v in e.free_symbols))

    def along(self, e: Expr) -> set[Symbol]:
        """The symbols of the axes along which `e` may be rough."""
        own = (self._varies(a) for a in e.atoms(*_ROUGH, Pow) if not (isinstance(a, Pow) and a.exp.is_Integer))
        return set().union(*own, *(self.known.get(v, set()) for v in e.free_symbols))


def _inlined(expr: Expr, definitions: dict, axis: Axis) -> Expr:
    """The integrand with what depends on the axis written out; what does not stays a symbol."""
    for _ in range(len(definitions) + 1):
        swap = {v: definitions[v] for v in expr.free_symbols if v in definitions and _reaches(v, definitions, axis)}
        if not swap:
            return expr
        expr = expr.xreplace(swap)
    return expr


def _reaches(symbol: Any, definitions: dict, axis: Axis) -> bool:
    seen, stack = set(), [symbol]
    while stack:
        s = stack.pop()
        if s == axis.symbol:
            return True
        if s in definitions and s not in seen:
            seen.add(s)
            stack += definitions[s].free_symbols
    return False


class Quadratures:
    """The rules in force for the axes of a program, and their refinement.

    Attributes: `error` the relative error of each point measured last (one entry if they are alike), `nodes` {axis: number}.
    `kinked`: {axis: how many moving break points}; `grid`: axes that begin with a coarser rule.
    """

    def __init__(self, axes: Iterable[Axis], kinked: dict[str, int], grid: frozenset[str] = frozenset()) -> None:
        self.axes = tuple(axes)
        self.kinked = kinked
        self.rules = {a.identifier: _unit(4 if kinked[a.identifier] < _CROWDED else 1) if a.identifier in kinked else
                      quadrature.trapezoid((_COARSE if a.identifier in grid else _STEPS)[a.depth > 0]) for a in self.axes}
        self.error = np.full(1, np.nan)
        self._arrays: dict[str, tuple] | None = None
        self._best: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def ndim(self) -> int:
        """Axes of every array: one for the points, one for each integration variable."""
        return 1 + len(self.axes)

    @property
    def nodes(self) -> dict[str, int]:
        """Number of nodes of each axis (of each interval between break points, if it has any)."""
        return {name: len(rule) for name, rule in self.rules.items()}

    def arrays(self) -> dict[str, tuple]:
        """What generated code reads: {axis: (nodes, weights)}, laid along the axes."""
        if self._arrays is None:
            self._arrays = {a.identifier: tuple(place(v, i, self.ndim) for v in
                                                (self.rules[a.identifier].nodes, self.rules[a.identifier].weights))
                            for i, a in enumerate(self.axes, start=1)}
        return self._arrays

    def of(self, points: np.ndarray) -> Quadratures:
        """The same rules for some of the points: those that need finer ones go on without the others."""
        other = copy(self)
        other.rules, other.error = dict(self.rules), _at(self.error, points)
        other._best = {n: (_at(best, points), _at(idle, points)) for n, (best, idle) in self._best.items()}
        return other

    def examine(self, run: Callable[[Callable], Any], tolerance: float) -> np.ndarray:
        """Evaluate once more through `run(average)` with an average that records errors; refine what falls short.

        Returns True, point by point (one entry if they are all alike), where every average holds the tolerance or no finer
        rule can mend it; `error` is then what was reached.
        """
        records: dict[int, _Record] = {}

        def average(values: np.ndarray, weights: np.ndarray, axis: int, floor: float = 1e-300) -> np.ndarray:
            result = (values * weights).sum(axis=axis, keepdims=True)
            rule = self.rules[self.axes[axis - 1].identifier]
            kinked = self.axes[axis - 1].identifier in self.kinked
            records.setdefault(axis, _Record()).add(values, weights, axis, rule, kinked, floor)
            return result

        run(average)
        self.error = reduce(np.maximum, (e for r in records.values() for e in (r.error, r.tail)), np.zeros(1))
        good = np.ones(self.error.shape, dtype=bool)
        for axis, record in records.items():
            name = self.axes[axis - 1].identifier
            rule = self.rules[name]
            there = np.isfinite(record.error)  # no value somewhere: a finer rule does not mend that
            short = there & (record.tail > tolerance) & (rule.window < 40 and name not in self.kinked)
            rough = there & (record.error > tolerance) & (not _exhausted(rule))
            if short.any():
                self.rules[name] = rule.widen(rule.window + 3)
            elif rough.any():
                rough = rough & ~self._stalled(name, record.error)
                if rough.any():
                    self.rules[name] = _refined(rule, record.suspects_of(rough), name in self.kinked)
            good = good & ~(short | rough)
        if not good.all():
            self._arrays = None
        return good

    def _stalled(self, name: str, error: np.ndarray) -> np.ndarray:
        """Where refining this axis has stopped helping: what is left is rounding, or an integrand that diverges."""
        best, idle = self._best.get(name, (np.full(1, np.inf), np.zeros(1, dtype=int)))
        better = error < best / 2
        self._best[name] = (np.where(better, error, best), np.where(better, 0, idle + 1))
        return np.asarray(self._best[name][1] >= np.where(error > 1e-6, _STALLED[1], _STALLED[0]))


class _Record:
    """The worst error of each point over all averages along one axis, the tail at the window's end, and that of each panel."""

    def __init__(self) -> None:
        self.error = self.tail = np.zeros(1)
        self.suspects: np.ndarray | None = None

    def add(self, values: np.ndarray, weights: np.ndarray, axis: int, rule: quadrature.Rule, kinked: bool,
            floor: float) -> None:
        v = np.moveaxis(values, axis, -1)
        if kinked:  # the nodes, and with them the weights, differ from point to point
            w = np.moveaxis(weights, axis, -1)
            v, levels = v * w, np.tile(rule.ratios, (1, w.shape[-1] // len(rule))).T
            size = np.maximum(np.abs(v).sum(axis=-1), floor)
        elif v.shape[-1] == 1:
            return  # constant along the axis
        else:
            levels = rule.levels
            size = np.maximum(np.abs(v) @ rule.weights, floor)
        # A table is needed to relative accuracy only where it is not negligible against its own largest entry.
        size = np.maximum(size, _NEGLIGIBLE * size.max(axis=tuple(range(1, size.ndim)), keepdims=True))
        fine, coarse, coarser = np.moveaxis(v @ levels, -1, 0)
        first, second = np.abs(fine - coarse) / size, np.abs(coarse - coarser) / size
        rate = first / np.maximum(second, 1e-300)
        if rule.kind != "trapezoid":  # small by accident: no gain above a thousand is trusted
            rate = np.maximum(rate, _LEAST_RATE)
        self.error = np.maximum(self.error, _worst(first * np.minimum(1.0, _SAFETY * rate)))
        if not kinked:
            # What lies beyond the window is about its last term: beyond L a Gaussian tail falls by exp(-L) a unit.
            ends = np.abs(v[..., [0, -1]]) * rule.weights[[0, -1]]
            self.tail = np.maximum(self.tail, _BEYOND * _worst(ends.max(axis=-1) / size))
        if rule.kind == "panels" and not kinked:
            parts = rule.panel_errors(v) / size[..., None]
            worst = parts.max(axis=tuple(range(1, parts.ndim - 1)))
            self.suspects = worst if self.suspects is None else np.maximum(self.suspects, worst)

    def suspects_of(self, points: np.ndarray) -> np.ndarray | None:
        """The worst error of each panel over some of the points."""
        if self.suspects is None or len(self.suspects) != len(points):
            return None if self.suspects is None else self.suspects.max(axis=0)
        return np.asarray(self.suspects[points].max(axis=0))


def _worst(values: np.ndarray) -> np.ndarray:
    """The largest entry of each point."""
    value = values.max(axis=tuple(range(1, values.ndim)), initial=0.0)
    return np.where(np.isnan(value), np.inf, np.maximum(value, _ROUNDING))


def _at(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    return values if len(values) == 1 else values[points]


def _refined(rule: quadrature.Rule, suspects: np.ndarray | None, kinked: bool) -> quadrature.Rule:
    if kinked:
        panels = len(rule) // 31  # first more of them, then toward the ends, where a root or a logarithm may stand
        if panels > 2 * _GRADES:
            return _unit(8 * (panels - 2 * _GRADES), _GRADES)
        return _unit(panels, _GRADES) if panels >= 8 else _unit(8 * panels)
    if rule.kind == "panels" and suspects is not None:
        return rule.refine(suspects >= max(0.1 * float(np.max(suspects)), 1e-17))
    return rule.refine()


def _exhausted(rule: quadrature.Rule) -> bool:
    if rule.kind == "unit":
        return len(rule) >= 31 * 256
    if rule.full:
        return True
    # Halving beyond the spacing of floating-point numbers helps nothing.
    return rule.edges is not None and float(np.min(np.diff(rule.edges))) < 1e-13


def _unit(count: int, grades: int = 0) -> quadrature.Rule:
    """`count` equal Fejer panels on [0, 1], the outer ones graded, without density: moving intervals are laid over them."""
    x, *levels = quadrature.fejer()
    ends = 0.25 ** np.arange(1, grades + 1) / count
    edges = np.concatenate([np.linspace(0.0, 1.0, count + 1), ends, 1.0 - ends])
    edges.sort()
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half * (1 + x)).ravel()
    weights, coarse, coarser = ((half * w).ravel() for w in levels)
    return quadrature.Rule(nodes, weights, coarse, coarser, "unit", quadrature.WINDOW)
