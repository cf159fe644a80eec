"""Max, |s|, sign(s), ... as one letter moves: the places at which they turn, and the expression on each interval between these.

The places are sorted by the assumptions of the other letters.
"""

from __future__ import annotations

from typing import Any

from sympy import Abs, Dummy, Expr, Heaviside, Integer, Max, Min, Piecewise, S, Symbol, expand, sign, together

from hermitex.check.switch_points import switches

SWITCHING = (Abs, Max, Min, sign, Heaviside, Piecewise)


def switch_places(expr: Expr, s: Symbol) -> list[Expr] | None:
    """The places at which switches turn as s moves, sorted by the assumptions of the other letters; None if these do not tell."""
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        for g in switches(waiting.pop()):
            inner = [a for a in g.atoms(Abs, Max, Min, sign) if s in a.free_symbols]
            if inner:  # |s| - y turns where s - y or -s - y does
                waiting += [g.xreplace({inner[0]: v}) for v in _values(inner[0])]
                waiting += [Abs(g.xreplace({inner[0]: v})) for v in _values(inner[0])]
                continue
            slope = g.diff(s)
            if s not in g.free_symbols:
                if g.is_nonnegative or g.is_nonpositive:
                    continue
                return None
            if slope.free_symbols or slope == 0:
                return None
            found.append(expand(-(g - slope*s).expand()/slope))
            if len(found) > 24:
                return None
    places: list[Expr] = []
    for place in dict.fromkeys(found):
        behind = [(place - other).is_positive for other in places]
        if None in behind:
            return None
        places.insert(behind.count(True), place)
    return places


def _values(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, Abs):
        return e.args[0], -e.args[0]
    return (S.One, S.NegativeOne) if isinstance(e, sign) else e.args


def interval(places: list[Expr], i: int) -> tuple[Expr, Expr]:
    """The ends of the i-th interval between the places, the first from -oo and the last to oo."""
    ends = [-S.Infinity, *places, S.Infinity]
    return ends[i], ends[i + 1]


def may_hold(s: Symbol, cell: tuple[Expr, Expr]) -> bool:
    """Has the interval a point that the letter may be?"""
    if cell[0] == cell[1]:
        return not ((s.is_nonnegative and cell[0].is_negative) or (s.is_nonpositive and cell[0].is_positive))
    return not ((s.is_nonnegative and cell[1].is_nonpositive) or (s.is_nonpositive and cell[0].is_nonnegative))


def on_interval(expr: Expr, s: Symbol, cell: tuple[Expr, Expr]) -> Expr:
    """The expression with s inside an interval, where each switch has one value."""
    low, high = cell
    t, u = Dummy("t", positive=True), Dummy("u", positive=True)
    if low.is_finite and high.is_finite:
        inside = low + (high - low)*t/(t + u)
    elif low.is_finite:
        inside = low + t
    elif high.is_finite:
        inside = high - t
    else:
        inside = s

    def turned(e: Any) -> Expr:
        if isinstance(e, Max | Min):
            for a in e.args:
                gaps = [_signed(a - b, s, inside) for b in e.args if b != a]
                if all(g is not None and (g >= 0 if isinstance(e, Max) else g <= 0) for g in gaps):
                    return a
            return e
        if isinstance(e, Piecewise):
            for value, condition in e.args:
                held = _holds(condition, s, inside)
                if held:
                    return value
                if held is None:
                    return e
            return e
        found = _signed(e.args[0], s, inside)
        if found is None:
            return e
        return {Abs: found*e.args[0], sign: Integer(found)}.get(e.func, Integer((found + 1)//2))

    return expr.replace(lambda e: isinstance(e, SWITCHING), turned)


def _signed(g: Expr, s: Symbol, inside: Expr) -> int | None:
    """Return the sign of g, +1 or -1, on an interval without a zero of g inside."""
    value = together(expand(g.xreplace({s: inside})))
    above, below = value.as_numer_denom()
    above = expand(above)
    if above == 0:
        return 1
    positive = (above*below).is_positive if not above.is_Add else above.is_positive if below.is_positive else None
    negative = (above*below).is_negative if not above.is_Add else above.is_negative if below.is_positive else None
    return 1 if positive else -1 if negative else None


def _holds(condition: Any, s: Symbol, inside: Expr) -> bool | None:
    if condition in (S.true, S.false):
        return bool(condition)
    if not hasattr(condition, "lts"):
        return None
    found = _signed(condition.lts - condition.gts, s, inside)
    return None if found is None else found < 0
