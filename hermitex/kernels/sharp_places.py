"""Kinks, narrow features and oscillations of the integrands of a program: formulas of parameters, unknowns and outer variables."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, NamedTuple

from sympy import (
    Add,
    Basic,
    Dummy,
    Expr,
    Pow,
    Symbol,
    cancel,
    ceiling,
    default_sort_key,
    expand,
    floor,
    log,
)

from hermitex.errors import HermitexError
from hermitex.kernels.lowered import Lowered
from hermitex.kernels.recognition import plain
from hermitex.symbolic.breaks.switches import SWITCHES
from hermitex.symbolic.pieces import breakpoints
from hermitex.symbolic.scales import scales, size

_MOST_KINKS = 80  # of one function: each cuts a panel of its axis
_MOST_FIXED = 1024  # of one axis, where they do not move and cost a panel each
_ROUGH = (*SWITCHES, log)


class Marks(NamedTuple):
    """Of one axis: break points, pairs (k, b) of what turns at k x + b = 0 over 1/k, and bounds of frequencies."""

    kinks: tuple[Expr, ...] = ()
    narrow: tuple[tuple[Expr, Expr], ...] = ()
    fast: tuple[Expr, ...] = ()

    @property
    def moves(self) -> set[Symbol]:
        """What the nodes move with."""
        return _symbols([*self.kinks, *(e for pair in self.narrow for e in pair)])

    @property
    def needs(self) -> set[Symbol]:
        """The formulas that must have values before the axis is laid out."""
        return self.moves | _symbols(self.fast)

    def known(self, absent: AbstractSet[Symbol]) -> Marks:
        """Without what needs what is not there: it belongs to averages of other functions."""
        return Marks(tuple(p for p in self.kinks if not p.free_symbols & absent),
                     tuple(p for p in self.narrow if not _symbols(p) & absent),
                     tuple(f for f in self.fast if not f.free_symbols & absent))

    def resting(self, free: AbstractSet[Symbol]) -> Marks:
        """Nodes that move with `free` alone: what else is narrow asks for a finer step of all of them."""
        still = tuple(p for p in self.narrow if _symbols(p) <= free)
        return Marks(self.kinks, still, self.fast + tuple(_bound(p[0]) for p in self.narrow if p not in still))


def _symbols(exprs: Any) -> set[Symbol]:
    return {v for e in exprs for v in e.free_symbols}


def find_marks(lowered: Lowered) -> dict[str, Marks]:
    """{axis: where its integrands are rough, narrow or fast}; an axis that is not there is smooth on a scale of 1."""
    written = {s.target: s.expr for s in lowered.statements if not s.axes}
    definitions = {v: plain(e) for v, e in written.items()}
    rough, reach = _Roughness(lowered, definitions), lowered.reach()
    moving = {a.symbol: _moving(written, a.symbol) for a in lowered.axes}
    whole: dict[Symbol, dict[Any, Any]] = {a.symbol: {} for a in lowered.axes}  # what is written out, along each axis
    kinks: dict[str, list[Expr]] = {}
    narrow: dict[str, dict[tuple[Expr, Expr], None]] = {}
    fast: dict[str, dict[Expr, None]] = {}
    for s in lowered.statements:
        if not s.axes:
            continue
        integrand = plain(s.expr)
        for axis in s.axes:
            if axis.summed or axis.counting:
                continue
            name, inside = axis.identifier, {a.symbol for a in s.axes[s.axes.index(axis):]}
            inside |= {v for v, along in reach.items() if along & inside}
            # what was written for stability is undone in the whole only
            body = plain(_inlined(s.expr, moving[axis.symbol], whole[axis.symbol]))
            if axis.symbol in rough.along(integrand):
                known = kinks.setdefault(name, [])
                known += [p for p in _kinks(body, axis.symbol) if p not in known and not p.free_symbols & inside]
            found = scales(body, axis.symbol)
            narrow.setdefault(name, {}).update(dict.fromkeys(p for p in found.narrow if not _symbols(p) & inside))
            fast.setdefault(name, {}).update(dict.fromkeys(f for f in found.fast if not f.free_symbols & inside))
    result = {}
    most_narrow = 12  # of one axis: each adds some 50 break points
    for axis in lowered.axes:
        if axis.summed or axis.counting:
            continue
        name = axis.identifier
        points, pairs = tuple(kinks.get(name, ())), tuple(narrow.get(name, ()))
        points = points if len(points) <= (_MOST_FIXED if all(p.is_number for p in points) else 3 * _MOST_KINKS) else ()
        bounds = (*fast.get(name, ()), *(_bound(k) for k, _ in pairs[most_narrow:]))
        one = Marks(points, pairs[:most_narrow], bounds[:_MOST_KINKS])
        if any(one):
            result[name] = one
    return result


def _bound(k: Expr) -> Expr:
    """Of the frequencies of what turns over 1/|k|."""
    step = 6  # an inverse width k asks for the step of a frequency of 6 k, a third of a width: errors are measured beyond that
    return step*size(k)


def _kinks(body: Expr, x: Symbol) -> tuple[Expr, ...]:
    """The break points of an integrand, as formulas of what is outside: those of its rough parts and of its poles.

    The derivatives of an equation share them.
    """
    poles = {1/p.base for p in body.atoms(Pow) if p.exp.is_negative and x in p.base.free_symbols}
    return _of_parts(frozenset(_rough_parts(body, x)) | poles, x)


@lru_cache(maxsize=1024)
def _of_parts(parts: frozenset[Expr], x: Symbol) -> tuple[Expr, ...]:
    body = Add(*(Dummy(real=True)*p for p in sorted(parts, key=default_sort_key)))
    try:
        return _along_lines(body, x) or breakpoints(body, x)
    except (HermitexError, NotImplementedError, ValueError, TypeError):
        return _solved(body, x)  # none: the adaptive panels look for them


def _solved(body: Expr, x: Symbol) -> tuple[Expr, ...]:
    """The places at which switches may turn, for either sign of each letter, as a kernel need not know it; empty if unknown."""
    from hermitex.symbolic.surfaces import turning_places

    try:
        stepped = any(x in f.free_symbols for f in body.atoms(floor, ceiling, log))
        return () if stepped else turning_places(body, x) or ()
    except HermitexError:
        return ()


def _along_lines(body: Expr, x: Symbol) -> tuple[Expr, ...]:
    """(t_k - b)/a for the break points t_k of f in each rough part f(a x + b): floor(a x + b), Abs(tanh(a x + b) - 1/2), ...

    A function with infinitely many gives the ones nearest to 0. Empty if a part is not a function of one linear form.
    """
    t = Symbol("t", real=True)
    found: dict[Expr, None] = {}
    far = 40  # kinks of a function of one linear form are listed up to this distance: the widest window
    reach = 9  # and those of sin(100 z), along z: P(|z| > 9) = 2e-19
    for part in _rough_parts(body, x):
        forms = _linear_forms(part, x)
        if not forms:
            return ()
        unit = forms[0].diff(x).as_coeff_Mul()[0]  # sin(3 u) is searched over the same range of u as sin(u)
        line = expand(forms[0] / unit)
        slope = line.diff(x)
        ratios = [cancel(form.diff(x) / slope) for form in forms]
        shifts = [expand(form - k * line) for form, k in zip(forms, ratios, strict=True)]
        f = part.xreplace({form: k * t + b for form, k, b in zip(forms, ratios, shifts, strict=True)})
        if f.free_symbols != {t}:
            return ()
        try:
            shift = line - slope * x
            still = slope.is_number and shift.is_number
            nearest = breakpoints(f, t, (-reach - abs(shift), reach + abs(shift)))[:_MOST_FIXED] if still else ()
            if len(nearest) <= _MOST_KINKS:
                points = breakpoints(f, t, (-far, far))
                nearest = tuple(sorted(points, key=lambda p: abs(float(p))))[:_MOST_KINKS]
        except (HermitexError, NotImplementedError, ValueError, TypeError):
            return ()
        found |= dict.fromkeys((p - shift.expand()) / slope for p in sorted(nearest, key=float))
    return tuple(found)


@lru_cache(maxsize=4096)
def _rough_parts(e: Basic, x: Symbol) -> tuple[Expr, ...]:
    """The outermost switches, steps, logarithms and roots in x."""
    if x not in e.free_symbols:
        return ()
    if isinstance(e, _ROUGH) or (isinstance(e, Pow) and not e.exp.is_Integer and x in e.base.free_symbols):
        return (e,)
    return tuple(dict.fromkeys(part for a in e.args for part in _rough_parts(a, x)))


@lru_cache(maxsize=4096)
def _linear_forms(e: Basic, x: Symbol) -> tuple[Expr, ...]:
    """The largest parts of `e` that are linear in x."""
    if x not in e.free_symbols:
        return ()
    if isinstance(e, Expr) and not e.has(*_ROUGH) and (slope := e.diff(x)) != 0 and x not in slope.free_symbols:
        return (e,)
    return tuple(dict.fromkeys(form for a in e.args for form in _linear_forms(a, x)))


class _Roughness:
    """Along which axes something in a formula may have a kink, a jump or a branch point, seen without writing it out."""

    def __init__(self, lowered: Lowered, definitions: dict[Symbol, Expr]) -> None:
        self.axes = {a.symbol for a in lowered.axes if not a.summed}
        self.moves: dict[Symbol, set[Symbol]] = {}
        self.known: dict[Symbol, set[Symbol]] = {}
        for v, e in definitions.items():  # each reads only earlier ones
            self.moves[v], self.known[v] = self._varies(e), self.along(e)

    def _varies(self, e: Expr) -> set[Symbol]:
        return (e.free_symbols & self.axes).union(*(self.moves.get(v, set()) for v in e.free_symbols))

    def along(self, e: Expr) -> set[Symbol]:
        """The symbols of the axes along which `e` may be rough."""
        own = (self._varies(a) for a in e.atoms(*_ROUGH, Pow) if not (isinstance(a, Pow) and a.exp.is_Integer))
        return set().union(*own, *(self.known.get(v, set()) for v in e.free_symbols))


def _moving(definitions: Mapping[Symbol, Expr], x: Symbol) -> dict[Symbol, Expr]:
    """The definitions that depend on an axis."""
    found: dict[Symbol, Expr] = {}
    for v, e in definitions.items():  # each reads only earlier ones
        if x in e.free_symbols or not found.keys().isdisjoint(e.free_symbols):
            found[v] = e
    return found


def _inlined(e: Any, moving: Mapping[Symbol, Expr], known: dict[Any, Any]) -> Any:
    """The integrand with what depends on the axis written out; what does not stays a symbol. `known`: parts that are done.

    A part that occurs in many places is written out once: `xreplace` would walk through it at each.
    """
    if e not in known:
        if e in moving:
            known[e] = _inlined(moving[e], moving, known)
        elif e.args:
            args = [_inlined(a, moving, known) for a in e.args]
            known[e] = e if all(a is b for a, b in zip(args, e.args, strict=True)) else e.func(*args)
        else:
            known[e] = e
    return known[e]
