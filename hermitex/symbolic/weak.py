"""f' = [f'] + sum_b (f(b+) - f(b-)) delta(x - b): the derivative as a distribution, so that no jump is lost.

[f'] is the derivative off the break points: |u|' = sign(u) u', max(a, b)' = H(a - b) a' + H(b - a) b', and the branches
of a Piecewise one by one. With it E[z f(z)] = E[f'(z)] holds for kinked and jumping f.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from sympy import (
    Abs,
    AccumBounds,
    Add,
    And,
    Basic,
    DiracDelta,
    Dummy,
    Expr,
    Function,
    Heaviside,
    Limit,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Piecewise,
    S,
    Symbol,
    acot,
    atan,
    cancel,
    ceiling,
    cos,
    discriminant,
    exp,
    false,
    floor,
    frac,
    limit,
    log,
    oo,
    pi,
    sign,
    sin,
    tan,
    true,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Equality, Relational, Unequality

from hermitex.errors import AssumptionNeeded, NoClosedForm
from hermitex.symbolic.breaks.switches import JUMPS, SINGULAR, STEPS, SWITCHES
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.formula_size import operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.pieces import Piece, breakpoints, pieces
from hermitex.symbolic.surfaces import surfaces


def weak_derivative(expr: Expr, x: Symbol, *, window: tuple[Expr, Expr] = (-oo, oo)) -> Expr:
    """The derivative of `expr` in x as a distribution, jumps included.

    Parameters
    ----------
    expr : expression with switches, parameters and undefined functions (whose ordinary Derivative is meant).
    x : the variable; if a jumping switch holds other variables, its jump is a DiracDelta of its argument.
    window : a finite one is needed for floor, ceiling and frac.

    Returns
    -------
    Expr in Heaviside, sign and DiracDelta; jumps at known points as ``size*DiracDelta(x - b)``.

    Raises
    ------
    NoClosedForm : the jumps are not found exactly, with the reason.

    Examples
    --------
    >>> from sympy import Max, sign, Abs, Piecewise
    >>> from hermitex.symbols import z, kappa
    >>> weak_derivative(Max(0, z), z), weak_derivative(Abs(z), z)
    (Heaviside(z), sign(z))
    >>> weak_derivative(sign(z - kappa), z)
    2*DiracDelta(-kappa + z)
    >>> weak_derivative(Piecewise((z, z > 1), (0, True)), z)
    Piecewise((1, z > 1), (0, True)) + DiracDelta(z - 1)
    """
    if expr.has(acot):
        expr = expr.replace(acot, lambda u: sign(u)*pi/2 - atan(u))              # SymPy's acot jumps at 0
    rough = _may_jump_where_singular(expr, x)
    if not (rough or _holds(expr, x, JUMPS)):
        return off_the_breaks(expr, x)
    steps = _holds(expr, x, STEPS)
    moving = Add(*(a for a in Add.make_args(expr) if _holds(a, x, JUMPS) or _may_jump_where_singular(a, x)))
    try:
        branches = _branches(moving, x, window) if rough else pieces(moving, x, *window)
    except (NoClosedForm, AssumptionNeeded):
        if steps:
            raise
        return _by_surfaces(expr, x)
    jumps = Add(*(_jump(a, b, x) for a, b in pairwise(branches)))
    if rough and any(_cancels(n, x) for n in moving.atoms(Mul)):          # z/|z| is constant on each branch
        return off_the_breaks(expr - moving, x) + _branch_derivative(branches, x) + jumps
    return off_the_breaks(expr, x) + jumps


def _holds(expr: Basic, x: Symbol, kinds: tuple[type, ...]) -> bool:
    """Does a switch of one of these kinds depend on x, outside expectations?"""
    if x not in expr.free_symbols or isinstance(expr, Expectation):
        return False
    if isinstance(expr, Piecewise) and Piecewise in kinds and not any(x in c.free_symbols for _, c in expr.args):
        return any(_holds(a, x, kinds) for a in expr.args)
    return isinstance(expr, kinds) or any(_holds(a, x, kinds) for a in expr.args)


# -- off the break points ---------------------------------------------------------------------------------------------
def off_the_breaks(f: Expr, x: Symbol) -> Expr:
    """The ordinary derivative, where f is differentiable (almost everywhere)."""
    checkpoint("differentiating")
    if x not in f.free_symbols:
        return S.Zero
    if not _holds(f, x, SWITCHES):
        return f.diff(x)
    if isinstance(f, (sign, Heaviside, floor, ceiling)):
        return S.Zero
    if isinstance(f, frac):
        return off_the_breaks(f.args[0], x)
    if isinstance(f, Piecewise):
        return Piecewise(*((off_the_breaks(value, x), c) for value, c in f.args))
    return _rule(f, x, off_the_breaks)


def _rule(f: Expr, x: Symbol, d: Callable[[Expr, Symbol], Expr]) -> Expr:
    """The rules that hold almost everywhere and as distributions alike, d being the derivative of the parts."""
    if f.is_Add:
        return Add(*(d(a, x) for a in f.args))
    if f.is_Mul:
        return Add(*(Mul(d(a, x), *f.args[:i], *f.args[i + 1:]) for i, a in enumerate(f.args)))
    if f.is_Pow:
        base, e = f.base, f.exp
        return e*base**(e - 1)*d(base, x) + (f*log(base)*d(e, x) if x in e.free_symbols else 0)
    if isinstance(f, Abs):
        return sign(f.args[0])*d(f.args[0], x)
    if isinstance(f, (Max, Min)):
        a, rest = f.args[0], f.func(*f.args[1:])                     # two at a time: a tie is then halved, not lost
        gap = a - rest if isinstance(f, Max) else rest - a
        return Heaviside(gap)*d(a, x) + Heaviside(-gap)*d(rest, x)
    if isinstance(f, Function):
        return Add(*(f.fdiff(i)*d(a, x) for i, a in enumerate(f.args, 1) if x in a.free_symbols))
    raise NoClosedForm(f, f"no rule differentiates {f.func.__name__} of a switch")


# -- the jumps --------------------------------------------------------------------------------------------------------
def _may_jump_where_singular(f: Expr, x: Symbol) -> bool:
    """Has f singular points beyond the poles of a meromorphic function? z/|z| and atan(1/z) jump at theirs."""
    if x not in f.free_symbols or isinstance(f, Expectation):
        return False
    if f.is_Add:
        return any(_may_jump_where_singular(a, x) for a in f.args)
    singular = [a for a in Mul.make_args(f) if _singular(a, x)]
    poles = all(a.is_Pow and a.exp.is_Integer and not _singular(a.base, x) for a in singular)
    return bool(singular) and not (poles and not _holds(f, x, SWITCHES))


def _singular(f: Basic, x: Symbol) -> bool:
    if x not in f.free_symbols or isinstance(f, Expectation):
        return False
    if f.is_Pow and x in f.base.free_symbols and not (f.exp.is_Integer and f.exp > 0) and not f.base.is_positive:
        return True
    return type(f) in SINGULAR or any(_singular(a, x) for a in f.args)


def _cancels(product: Mul, x: Symbol) -> bool:
    """Two moving factors, a denominator and a switch."""
    moving = [a for a in product.args if x in a.free_symbols]
    return len(moving) > 1 and _holds(product, x, SWITCHES) and any(a.is_Pow and a.exp.is_negative for a in moving)


def _branches(f: Expr, x: Symbol, window: tuple[Expr, Expr]) -> list[Piece]:
    """The pieces of f, cut at its singular points as well; undefined functions are taken to be smooth."""
    smooth = f.replace(lambda n: isinstance(n, AppliedUndef), lambda n: Dummy("a", real=True) + exp(n.args[0]))
    points = breakpoints(smooth, x, window)
    found: list[Piece] = []
    for a, b in pairwise((window[0], *points, window[1])):
        found += pieces(f, x, a, b)
    return found


def _branch_derivative(branches: Sequence[Piece], x: Symbol) -> Expr:
    slopes = [off_the_breaks(p.expr, x) for p in branches]
    slopes = [cancel(s) if operations(s) < 40 else s for s in slopes]
    if len(set(slopes)) == 1:
        return slopes[0]
    return Piecewise(*((s, x < p.hi) for s, p in zip(slopes[:-1], branches, strict=False)), (slopes[-1], True))


def _jump(left: Piece, right: Piece, x: Symbol) -> Expr:
    """(f(b+) - f(b-)) delta(x - b)."""
    sides = _value(left.expr, x, (left.hi, "-")), _value(right.expr, x, (left.hi, "+"))
    if not all(v.is_finite is not False and not v.has(S.NaN, S.ComplexInfinity, AccumBounds) for v in sides):
        if left.expr.has(log) or left.expr == right.expr or sides[0] == sides[1]:
            return S.Zero                                       # unbounded on both sides: no mass at the point
        raise NoClosedForm(left.expr, f"it is not bounded at {x} = {left.hi}, where it jumps")
    return (sides[1] - sides[0]).expand()*DiracDelta(x - left.hi)


def _value(branch: Expr, x: Symbol, end: tuple[Expr, str]) -> Expr:
    """The one-sided limit of a branch at the end of its interval."""
    at, side = end
    value = branch.subs(x, at)
    if not _singular(branch, x) or (value.is_finite and not value.has(AccumBounds)):
        return value
    if operations(branch) > 60:
        raise NoClosedForm(branch, f"its limit at {at} is too large an expression")
    try:
        value = limit(branch, x, at, side)
    except (NotImplementedError, ValueError, TypeError) as error:
        raise NoClosedForm(branch, f"its limit at {at} is not known") from error
    if value.has(Limit):
        raise NoClosedForm(branch, f"its limit at {at} is not known")
    return value


# -- where the break points are not numbers: delta of the argument ----------------------------------------------------
def _by_surfaces(f: Expr, x: Symbol) -> Expr:
    """[f'] + sum over the surfaces u = 0 of jump delta(u) u'."""
    return off_the_breaks(f, x) + Add(*(_delta(u, x, jump) for u, jump in surfaces(f, x)))


def _delta(u: Expr, x: Symbol, size: Expr) -> Expr:
    """The derivative of size*Heaviside(u), but for that of its size: the factors of u that do not move keep only their sign."""
    fixed, moving = u.as_independent(x, as_Add=False)
    if u.is_Mul and fixed != 1:
        return sign(fixed)*_delta(moving, x, size)
    if _holds(u, x, SWITCHES):
        raise NoClosedForm(u, f"the points where {u} vanishes are not known exactly")
    if not _crosses(u, x):
        raise NoClosedForm(u, f"the points where {u} changes sign are not known exactly")
    return size*DiracDelta(u)*u.diff(x)


def _crosses(u: Expr, x: Symbol) -> bool:
    """Do u and u' have no zero in common (for almost all parameters)? Else delta(u) u' has no meaning."""
    if u.atoms(AppliedUndef) or not u.diff(x).free_symbols & {x}:
        return True
    if isinstance(u, (sin, cos, tan)):
        return x not in u.args[0].diff(x).free_symbols
    if all(x not in a.free_symbols or (a.is_Pow and a.exp.is_Rational and a.exp.is_negative) for a in Mul.make_args(u.diff(x))):
        return True                                              # as of m + s(x) z with s a square root: u' has no zero
    return u.is_polynomial(x) and operations(u) <= 60 and discriminant(u, x).expand() != 0


def in_heavisides(f: Piecewise) -> Expr:
    """sum_i v_i 1(c_i) prod_{j < i} (1 - 1(c_j)) for the values v_i and the conditions c_i of a Piecewise, in their order.

    Raises
    ------
    NoClosedForm : a condition that is not made of inequalities.
    """
    total, left = S.Zero, S.One
    for value, condition in f.args:
        weight = _indicator(condition)
        total, left = total + left*weight*value, left*(1 - weight)
    return total


def _indicator(condition: Basic) -> Expr:
    if condition in (true, false):
        return S(int(condition == true))
    if isinstance(condition, And):
        return Mul(*(_indicator(c) for c in condition.args))
    if isinstance(condition, Or):
        return 1 - Mul(*(1 - _indicator(c) for c in condition.args))
    if isinstance(condition, Not):
        return 1 - _indicator(condition.args[0])
    if isinstance(condition, (Equality, Unequality)):
        return S(int(isinstance(condition, Unequality)))
    if isinstance(condition, Relational):
        gap = condition.lhs - condition.rhs
        return Heaviside(gap if condition.rel_op in (">", ">=") else -gap)
    raise NoClosedForm(condition, f"{condition} is not a comparison")
