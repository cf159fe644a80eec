"""E f = int f_0 phi + sum over sets S of switches of int_{max c_i, i in S}^oo D_S f phi: switches whose order is not known.

Each switch turns once, at c_i, where its argument rises or falls through 0. With f_T the branch in which the switches of T are past
their places, D_S f = sum over T in S of (-1)^|S - T| f_T. If all are past, x is beyond the largest place, whichever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

from sympy import Abs, Add, Basic, Expr, Heaviside, Max, Min, Piecewise, S, Symbol, oo, sign
from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan

from hermitex.symbolic.engine.canonical import Diverges, Refusal
from hermitex.symbolic.engine.rational_tidying import depends, tidy
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.scales import roots

_BELOW, _ABOVE = (LessThan, StrictLessThan), (GreaterThan, StrictGreaterThan)
_SWITCHES = (sign, Heaviside, Abs, Max, Min, Piecewise)

Span = tuple[Expr, Expr]


class Turn(NamedTuple):
    """A switch: its place, and its values before and after."""

    place: Expr
    before: Expr
    after: Expr


def unordered(body: Expr, x: Symbol, on_interval: Callable[[Expr, Symbol, Span], Expr]) -> Expr | None:
    """E[body], each of whose switches turns once at a place that is a formula; None where one does otherwise.

    Parameters
    ----------
    on_interval : the integral of a branch without switches, against the Gaussian

    Raises
    ------
    Refusal : a branch has no closed form, or none beyond where it holds.
    """
    body = _grouped(body, x)
    switches = _outermost(body, x)
    most = 3  # switches: there are 2^n sets of them
    if not 0 < len(switches) <= most:
        return None
    turns = {s: _turn(s, x) for s in switches}
    if any(t is None or depends(t.place, x) or _holds_switch(t, x) for t in turns.values()):
        return None
    known = {s: t for s, t in turns.items() if t is not None}

    def branch(past: tuple[Basic, ...]) -> Expr:
        return body.xreplace({s: t.after if s in past else t.before for s, t in known.items()})

    try:
        if len(switches) == 1:
            place = known[switches[0]].place
            both = ((branch(()), (-oo, place)), (branch(switches), (place, oo)))
            return Add(*(on_interval(f, x, span) for f, span in both if f != 0))
        total = [on_interval(branch(()), x, (-oo, oo))]
        for n in range(1, len(switches) + 1):
            for chosen in combinations(switches, n):
                jump = Add(*((-1)**(n - k)*branch(past) for k in range(n + 1) for past in combinations(chosen, k)))
                if jump.expand() != 0:
                    total.append(on_interval(jump, x, (Max(*(known[s].place for s in chosen)), oo)))
        return Add(*total)
    except Diverges as no:
        raise Refusal("one of its branches grows too fast where it does not hold") from no


def _grouped(e: Basic, x: Symbol) -> Basic:
    """Max(x, a, b) = Max(x, Max(a, b)): what does not move is one argument."""
    if not e.args or isinstance(e, Expectation) or x not in e.free_symbols:
        return e
    args = [_grouped(a, x) for a in e.args]
    if not isinstance(e, Max | Min) or len(args) < 3:
        return e if tuple(args) == e.args else e.func(*args)
    still, moving = [a for a in args if not depends(a, x)], [a for a in args if depends(a, x)]
    return e.func(e.func(*still), *moving, evaluate=False) if len(still) > 1 else e


def _outermost(e: Basic, x: Symbol) -> tuple[Basic, ...]:
    if isinstance(e, _SWITCHES) and x in e.free_symbols:
        return (e,)
    if isinstance(e, Expectation):
        return ()
    return tuple(dict.fromkeys(s for a in e.args for s in _outermost(a, x)))


def _holds_switch(turn: Turn | None, x: Symbol) -> bool:
    return turn is None or bool(_outermost(turn.before, x) or _outermost(turn.after, x))


def _turn(s: Basic, x: Symbol) -> Turn | None:
    if isinstance(s, Max | Min):
        if len(s.args) != 2:
            return None
        a, b = s.args
        return _values(a - b, x, b, a) if isinstance(s, Max) else _values(a - b, x, a, b)
    if isinstance(s, Piecewise):
        (value, condition), *rest = s.args
        if len(rest) != 1 or rest[0][1] != True or not isinstance(condition, _BELOW + _ABOVE):  # noqa: E712
            return None
        u = condition.lhs - condition.rhs
        return _values(u if isinstance(condition, _ABOVE) else -u, x, rest[0][0], value)
    u = s.args[0]
    low, high = {sign: (-S.One, S.One), Heaviside: (S.Zero, S.One), Abs: (-u, u)}[type(s)]
    return _values(u, x, low, high)


def _values(u: Expr, x: Symbol, below: Expr, above: Expr) -> Turn | None:
    """The place where u vanishes, which it does once, and the values before and after it."""
    if u.has(*_SWITCHES) and _outermost(u, x):
        return None
    slope = tidy(u.diff(x))
    found = roots(u, x)
    if len(found) != 1 or not found[0].is_extended_real or not (slope.is_positive or slope.is_negative):
        return None
    return Turn(found[0], below, above) if slope.is_positive else Turn(found[0], above, below)


__all__ = ["unordered"]
