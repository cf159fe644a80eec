"""g(x) = g_i(x) for x in (b_i, b_{i+1}): every switch of an expression resolved between its exact break points.

A switch is sign, Heaviside, Abs, Max, Min, Piecewise, floor, ceiling or frac of an argument in x. The innermost are
resolved first: off the zeros of its argument a switch has one branch, and the sign that selects it is proved at one
interior point. Values at single points never matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from sympy import (
    Abs,
    Basic,
    Contains,
    Dummy,
    Expr,
    Max,
    Min,
    Piecewise,
    S,
    Symbol,
    ceiling,
    expand,
    false,
    floor,
    frac,
    oo,
    sign,
    true,
)
from sympy.core.relational import Equality, Relational, Unequality

from hermitex.errors import AssumptionNeeded, BadInput, NoClosedForm
from hermitex.symbolic.breaks.interval_ranges import bounds
from hermitex.symbolic.breaks.order import between, compare, exact, inside, ordered, sign_of
from hermitex.symbolic.breaks.roots import OpenInterval, Where, singularities, zeros
from hermitex.symbolic.breaks.switches import STEPS, SWITCHES, compared, relations
from hermitex.symbolic.budget import checkpoint, kept
from hermitex.symbolic.formula_size import DECIDED, MANY, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import HIDDEN, hidden


class Piece(NamedTuple):
    """On lo < x < hi the expression equals `expr`, which holds no switch in x."""

    lo: Expr
    hi: Expr
    expr: Expr


def pieces(expr: Expr, x: Symbol, lo: Expr = -oo, hi: Expr = oo) -> tuple[Piece, ...]:
    """The branches of `expr` on consecutive intervals of (lo, hi), switch-free and smooth in form.

    Parameters
    ----------
    expr : expression with switches in x, nested as they may be; other symbols are parameters.
    x : the variable, taken real.
    lo, hi : the window, -oo <= lo < hi <= oo.

    Returns
    -------
    tuple of `Piece`; neighbours with identical branches are merged.

    Raises
    ------
    NoClosedForm : a break point is not found exactly, or the order of two is not provable.
    AssumptionNeeded : the answer turns on the undeclared sign of a symbol.

    Examples
    --------
    >>> from sympy import Abs, Max, Symbol, sqrt
    >>> x = Symbol('x', real=True)
    >>> pieces(Abs(Abs(x) - 1), x)[1]
    Piece(lo=-1, hi=0, expr=x + 1)
    >>> pieces(Max(0, x) - Abs(x)/2 - x/2, x)
    (Piece(lo=-oo, hi=oo, expr=0),)
    """
    if hidden(expr, (x,), *SWITCHES):
        raise NoClosedForm(expr, HIDDEN)
    t, f = _on_the_line(expr, x)
    found = _pieces(f, t, _window(lo, hi))
    return found if t == x else tuple(Piece(p.lo, p.hi, p.expr.xreplace({t: x})) for p in found)


def breakpoints(expr: Expr, x: Symbol, window: tuple[Expr, Expr] | None = None) -> tuple[Expr, ...]:
    """The points, in increasing order, off which `expr` is analytic in x: kinks, jumps, poles, branch points.

    Parameters
    ----------
    expr, x : as in `pieces`.
    window : (lo, hi); a finite one enumerates periodic points (floor(x), Abs(sin(x)), tan(x)).

    Returns
    -------
    tuple of exact points inside the window; a superset is allowed, a missing point is not.

    Raises
    ------
    NoClosedForm : they are not found exactly, with the reason.

    Examples
    --------
    >>> from sympy import Abs, sqrt, floor, Symbol
    >>> x = Symbol('x', real=True)
    >>> breakpoints(Abs(x**2 - 2) + 1/(x - 5), x)
    (-sqrt(2), sqrt(2), 5)
    >>> breakpoints(floor(x), x, (-1, 3))
    (0, 1, 2)
    """
    t, f = _on_the_line(expr, x)
    found = _pieces(f, t, _window(*(window or (-oo, oo))))
    points: list[Expr] = [p.hi for p in found[:-1]]
    for p in found:
        points += inside(singularities(p.expr, t, (p.lo, p.hi)), p.lo, p.hi)
    return ordered(points)


# -- splitting --------------------------------------------------------------------------------------------------------
def _on_the_line(expr: Expr, x: Symbol) -> tuple[Symbol, Expr]:
    """The variable as a real symbol with no other assumption, and the expression in it, its decimals exact."""
    t = x if x.assumptions0 == _REAL else Symbol(x.name, real=True)
    f = exact(S(expr))
    if t != x:
        t = Dummy(x.name, real=True) if t in f.free_symbols else t
        f = f.xreplace({x: t})
    return t, f


_REAL = Symbol("x", real=True).assumptions0


def _window(lo: Expr, hi: Expr) -> OpenInterval:
    w = OpenInterval(exact(S(lo)), exact(S(hi)))
    if compare(w.lo, w.hi) >= 0:
        raise BadInput(f"the window ({lo}, {hi}) is empty")
    return w


@kept(2048)
def _pieces(f: Expr, t: Symbol, w: OpenInterval) -> tuple[Piece, ...]:
    return tuple(_merged(_split(f, t, w)))


def _split(expr: Expr, t: Symbol, w: OpenInterval) -> list[Piece]:
    """Resolve the innermost switches on the intervals between their break points, then go outward on each."""
    checkpoint("resolving switches")
    ready = tuple(dict.fromkeys(_ready(expr, t)))
    if not ready:
        return [Piece(w.lo, w.hi, expr)]
    cuts = inside([p for s in ready for p in _cuts(s, t, w)], *w)
    if len(cuts) > MANY:
        raise NoClosedForm(expr, f"it has more than {MANY} break points")
    found: list[Piece] = []
    for a, b in pairwise((w.lo, *cuts, w.hi)):
        here = OpenInterval(a, b)
        found += _split(_put(expr, {s: _branch(s, t, here) for s in ready}), t, here)
    return found


def _ready(expr: Basic, t: Symbol) -> Iterator[Basic]:
    """The switches in t whose arguments hold no switch in t; a Piecewise chooses before its branches are looked at."""
    if t not in expr.free_symbols or isinstance(expr, Expectation):
        return
    if isinstance(expr, Piecewise) and any(t in c.free_symbols for _, c in expr.args):
        inner = [s for _, c in expr.args for s in _ready(c, t)]
    else:
        inner = [s for a in expr.args for s in _ready(a, t)]
        if not isinstance(expr, SWITCHES) or isinstance(expr, Piecewise):
            yield from inner
            return
    yield from inner or [expr]


def _put(expr: Basic, branches: dict[Basic, Expr]) -> Basic:
    """Replace switches by their branches, leaving expectations (which bind their own variables) alone."""
    if expr in branches:
        return branches[expr]
    if not expr.args or isinstance(expr, Expectation):
        return expr
    args = tuple(_put(a, branches) for a in expr.args)
    return expr if args == expr.args else expr.func(*args)


def _cuts(s: Basic, t: Symbol, w: OpenInterval) -> list[Expr]:
    found: list[Expr] = []
    for u in compared(s):
        if t not in u.free_symbols:
            continue
        found += singularities(u, t, w)
        found += _step_cuts(s, u, (t, w)) if isinstance(s, STEPS) else zeros(u, Where(t, w))
    return found


def _step_cuts(s: Basic, u: Expr, where: tuple[Symbol, OpenInterval]) -> list[Expr]:
    t, w = where
    low, high = bounds(u, t, w)
    if not (low.is_finite and high.is_finite):
        raise NoClosedForm(s, f"{s.func} has infinitely many jumps there; a finite window enumerates them")
    first, last = int(ceiling(low)), int(floor(high))
    if last - first > MANY:
        raise NoClosedForm(s, f"it has more than {MANY} jumps in the window")
    return [p for k in range(first, last + 1) for p in zeros(u - k, Where(t, w))]


# -- one branch -------------------------------------------------------------------------------------------------------
def _branch(s: Basic, t: Symbol, w: OpenInterval) -> Expr:
    """The value of a switch on an interval that holds none of its break points."""
    if isinstance(s, Piecewise):
        return _chosen(s, t, w)
    if isinstance(s, (Max, Min)):
        best, *rest = s.args
        for other in rest:
            if (_sign_on(other - best, t, w) > 0) == isinstance(s, Max):
                best = other
        return best
    u = s.args[0]
    if isinstance(s, STEPS):
        value = u.subs(t, between(*w))
        if isinstance(s, frac):
            return u - floor(value)
        return s.func(value)
    here = _sign_on(u, t, w)
    if isinstance(s, sign):
        return S(here)
    if isinstance(s, Abs):
        return here*u
    return S(int(here > 0)) if here else s.args[1] if len(s.args) > 1 else S.Half


def _chosen(s: Piecewise, t: Symbol, w: OpenInterval) -> Expr:
    kept = []
    for value, condition in s.args:
        truth = {}
        for atom in condition.atoms(Contains):
            truth[atom] = atom.args[1].as_relational(atom.args[0])
        condition = condition.xreplace(truth) if truth else condition
        for r in relations(condition):
            if t in r.free_symbols:
                condition = condition.xreplace({r: true if _holds(r, t, w) else false})
        if condition == true:
            kept.append((value, true))
            break
        if condition != false:
            kept.append((value, condition))
    return Piecewise(*kept) if kept else S.NaN


def _holds(r: Relational, t: Symbol, w: OpenInterval) -> bool:
    here = _sign_on(r.lhs - r.rhs, t, w)
    if isinstance(r, Equality):
        return here == 0
    if isinstance(r, Unequality):
        return here != 0
    if here == 0:
        return r.rel_op in ("<=", ">=")
    return (here > 0) == (r.rel_op in (">", ">="))


def _sign_on(u: Expr, t: Symbol, w: OpenInterval) -> int:
    """The proved sign of u on an interval that holds no zero and no singularity of it (0: it vanishes there)."""
    value = u.subs(t, between(*w))
    # SymPy says of log(erfc(5)) at times that it is not real.
    unreal = value.is_extended_real is False and not (value.is_number and value.evalf(20).is_Float)
    if unreal or value.has(S.NaN, S.ComplexInfinity):
        raise NoClosedForm(u, f"{u} is not real between {w.lo} and {w.hi}")
    try:
        return sign_of(value)
    except (NoClosedForm, AssumptionNeeded) as error:
        for shifted in (u, _from_the_end(u, t, w)):
            if shifted.is_zero or shifted.is_extended_positive or shifted.is_extended_negative:
                return 0 if shifted.is_zero else 1 if shifted.is_extended_positive else -1
        if isinstance(error, AssumptionNeeded):
            raise
        raise NoClosedForm(u, f"the sign of {u} between {w.lo} and {w.hi} is not provable") from error


def _from_the_end(u: Expr, t: Symbol, w: OpenInterval) -> Expr:
    """u over a positive distance from an end of the interval, which SymPy's assumptions may settle."""
    step = Dummy("step", positive=True)
    if w.hi is S.Infinity and w.lo is not S.NegativeInfinity:
        return expand(u.subs(t, w.lo + step)) if operations(u) < DECIDED else u.subs(t, w.lo + step)
    if w.lo is S.NegativeInfinity and w.hi is not S.Infinity:
        return expand(u.subs(t, w.hi - step)) if operations(u) < DECIDED else u.subs(t, w.hi - step)
    return u


def _merged(found: list[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for p in found:
        if out and _same(out[-1].expr, p.expr):
            out[-1] = Piece(out[-1].lo, p.hi, out[-1].expr)
        else:
            out.append(p)
    return out


def _same(a: Expr, b: Expr) -> bool:
    if a == b:
        return True
    if operations(a) + operations(b) >= DECIDED:
        return False
    gap = expand(a - b)
    return gap == 0 or (gap.is_number and gap.is_zero is True)  # of letters SymPy would try much in vain
