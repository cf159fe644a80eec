"""f(u > 0) - f(u < 0) on u = 0: across which surfaces an expression with switches jumps, and by how much.

The place of a jump need not be known: delta(u) represents it. A switch inside the argument of another is resolved first,
sign by sign: |u| - a vanishes where u > 0 and u = a, and where u < 0 and u = -a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

from sympy import (
    Abs,
    Basic,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Rational,
    S,
    Symbol,
    cancel,
    expand,
    false,
    rem,
    sign,
    sqrt,
    true,
)
from sympy.core.relational import Equality, Relational, Unequality

from hermitex.errors import NoClosedForm
from hermitex.symbolic.breaks.switches import compared
from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.formula_size import EXPANDED, operations
from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.scales import real

_MOST = 8        # surfaces inside the argument of one switch: each is taken from both sides
_JUMPING = (sign, Heaviside, Relational)
_SWITCHES = (*_JUMPING, Abs, Max, Min)


class Surface(NamedTuple):
    """The expression jumps by `jump` where `u` rises through 0; `u` holds no switch in the variable."""

    u: Expr
    jump: Expr


def surfaces(f: Expr, *moving: Symbol) -> list[Surface]:
    """All surfaces u = 0 that move with one of the symbols and across which `f` jumps; kinks, where it does not, are left out.

    Raises
    ------
    NoClosedForm : two switches turn at the same place, in forms that do not show it.

    Examples
    --------
    >>> from hermitex.symbols import z, kappa
    >>> surfaces(z*sign(z - kappa)*Max(z, kappa), z)
    [Surface(u=kappa - z, jump=-kappa*z - z**2)]
    >>> surfaces(Max(Abs(z) - 1, 0)**2, z)
    []
    >>> surfaces(Heaviside(Abs(z) - 1), z)
    [Surface(u=z - 1, jump=Heaviside(z)), Surface(u=z + 1, jump=-Heaviside(-z))]
    """
    found = []
    for u in _arguments(f, set(moving)):
        checkpoint("looking for jumps")
        for weight, place, resolved in _sides(u, f, set(moving)):
            inside, _ = _normal(place)
            jump = _settled(resolved, inside, 1) - _settled(resolved, inside, -1)
            if jump == 0 or vanishes_on(inside, jump):
                continue
            if _ambiguous(inside, weight*jump):
                raise NoClosedForm(f, f"two switches turn where {inside} = 0, which is not seen in their form")
            if any(jump.xreplace({v: at}).has(S.ComplexInfinity, S.NaN, S.Infinity) for v, at in _places(inside)):
                raise NoClosedForm(f, f"it is not bounded where {inside} = 0")
            found.append(Surface(inside, weight*jump))
    return found


def _arguments(f: Basic, moving: Set[Symbol] = frozenset()) -> list[Expr]:
    """The arguments that the switches of f compare with zero, up to a factor, if they hold a moving variable (or any at all)."""
    found: dict[Expr, None] = {}
    for s in _switches(f, moving):
        for u in compared(s):
            if u.free_symbols & moving or (u.free_symbols and not moving):
                found.setdefault(_normal(u)[0])
    return list(found)


def _switches(f: Basic, moving: Set[Symbol]) -> Iterator[Basic]:
    if isinstance(f, Expectation) or (moving and not f.free_symbols & moving):
        return
    if isinstance(f, _SWITCHES):
        yield f
    for a in f.args:
        yield from _switches(a, moving)


def _normal(u: Expr) -> tuple[Expr, int]:
    """(v, s) with u = s |c| v, one form for all multiples of u by numbers and by what is known to be positive."""
    if operations(u) < EXPANDED:
        u = expand(u)
    content, rest = u.as_content_primitive()
    factors = [a for a in Mul.make_args(rest) if not (a.is_positive and not a.is_number)] if rest.is_Mul else [rest]
    rest = Mul(*factors) if content.is_positive and factors else rest
    return (-rest, -1) if rest.could_extract_minus_sign() else (rest, 1)


def _sides(u: Expr, f: Expr, moving: Set[Symbol]) -> Iterator[tuple[Expr, Expr, Expr]]:
    """(indicator, u, f) for each choice of sign of the switches inside u, which are resolved in both."""
    inner = [v for v in _arguments(u) if not v.has(*_SWITCHES)]
    if not inner:
        yield S.One, u, f
        return
    if len(inner) > _MOST:
        raise NoClosedForm(f, f"{len(inner)} switches stand in the argument of another")
    v = inner[0]
    for s in (1, -1):
        for weight, inside, resolved in _sides(_settled(u, v, s), _settled(f, v, s), moving):
            if inside.free_symbols & moving:
                yield weight*Heaviside(s*v), inside, resolved


def _settled(f: Basic, u: Expr, side: int) -> Basic:
    """f where u has the given sign: every switch of a multiple of u by its branch."""
    if not f.args or isinstance(f, Expectation):
        return f
    args = [_settled(a, u, side) for a in f.args]
    if isinstance(f, Max | Min):
        return _extreme(f, args, u, side)
    if isinstance(f, _SWITCHES):
        gap = compared(f)[0]
        v, s = _normal(gap)
        if v == u:
            return _branch(f, s*side, args)
    return f if tuple(args) == f.args else f.func(*args)


def _extreme(f: Expr, args: list[Expr], u: Expr, side: int) -> Expr:
    """Max without those of its arguments that another exceeds."""
    out: set[int] = set()
    for i, a in enumerate(f.args):
        for j, b in enumerate(f.args):
            v, s = _normal(a - b) if i < j else (S.Zero, 0)
            if s and v == u:
                out.add(j if (s*side > 0) == isinstance(f, Max) else i)
    return f.func(*(a for i, a in enumerate(args) if i not in out))


def _branch(f: Basic, s: int, args: list[Expr]) -> Basic:
    if isinstance(f, Relational):
        if isinstance(f, Equality | Unequality):
            return true if isinstance(f, Unequality) else false
        return true if (s > 0) == (f.rel_op in (">", ">=")) else false
    if isinstance(f, Heaviside):
        return S(int(s > 0))
    return S(s) if isinstance(f, sign) else s*args[0]


# -- on the surface ----------------------------------------------------------------------------------------------------
def solved_linearly(u: Expr, v: Symbol) -> Expr | None:
    """The v at which u = slope v + rest vanishes; None if u is not linear in v, or holds it inside a switch."""
    slope = u.diff(v) if not u.has(*_SWITCHES) else S.Zero
    if slope == 0 or v in slope.free_symbols:
        return None
    return expand(-(u - slope*v))/slope


def _places(u: Expr) -> Iterator[tuple[Symbol, Expr]]:
    for v in sorted(u.free_symbols, key=lambda s: (s.is_nonnegative is not None, s.sort_key())):
        at = solved_linearly(u, v)
        if at is not None:
            yield v, at


def vanishes_on(u: Expr, jump: Expr) -> bool:
    """Is the jump proved to be zero where u is? True where f is continuous across the surface."""
    if operations(jump) > EXPANDED:
        return False
    for v, at in _places(u):
        left = jump.xreplace({v: at})
        if left == 0 or _zero(left):
            return True
    return _multiple(jump, u)


def _multiple(jump: Expr, u: Expr) -> bool:
    """Is the jump a multiple of u, as that of |u| is? For surfaces that no variable is solved for: |(a z + b)^2 - 1|."""
    plain = jump.xreplace({s: Dummy() for s in jump.atoms(*_SWITCHES)})
    for v in sorted(u.free_symbols, key=lambda s: s.sort_key()):
        if u.is_polynomial(v) and plain.is_polynomial(v):
            return bool(rem(expand(plain), u, v).expand() == 0)
    return False


def _zero(e: Expr) -> bool:
    grown = expand(e)
    return grown == 0 or (operations(grown) < EXPANDED and cancel(grown) == 0)


def _ambiguous(u: Expr, jump: Expr) -> bool:
    """Does another switch of the jump jump on the surface itself, so that its value there is not defined?"""
    others = {_normal(w)[0] for s in jump.atoms(*_JUMPING) for w in compared(s) if w.free_symbols and not w.has(*_JUMPING)} - {u}
    if not others:
        return False
    places = list(_places(u))
    if not places:
        return True
    v, at = places[0]
    return any(abs(_value(w.xreplace({v: at}), k) or 0.0) < 1e-9 for w in others for k in range(1, 5))


def _value(e: Expr, k: int) -> float | None:
    """The expression at the k-th of a few fixed points of no special kind; None where it has no real value."""
    letters = sorted(e.free_symbols, key=lambda s: s.sort_key())
    # Not halves and thirds, at which two switches meet by chance: x - z and k z + 2 x at k = -2.
    sizes = [Rational((7*k + 5*i) % 11 + 2, 6) + Rational(3*i + k + 1, 1009) for i in range(len(letters))]
    point = {s: size*(1 if s.is_positive or s.is_nonnegative or (i*k + k) % 3 else -1)
             for i, (s, size) in enumerate(zip(letters, sizes, strict=True))}
    try:
        value = complex(e.xreplace(point))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return value.real if abs(value.imag) < 1e-12*(1 + abs(value)) else None


def turning_places(f: Expr, v: Symbol) -> tuple[Expr, ...] | None:
    """All v at which a switch of f may turn, those inside others on either side; None if one is not linear or quadratic in v.

    Some may be places where nothing happens, and a square root in them may not be real.

    >>> from hermitex.symbols import z, kappa
    >>> sorted(turning_places(Max(Abs(z) - kappa, 0), z), key=str)
    [-kappa, 0, kappa]
    >>> turning_places(Max(3*z**2 - 5*z - 2, 0), z)
    (2, -1/3)
    """
    found: dict[Expr, None] = {}
    for u in _arguments(f, {v}):
        for _, inside, _ in _sides(u, S.Zero, {v}):
            at = solved_linearly(inside, v)
            roots = (at,) if at is not None else _of_square(inside, v)
            if not roots:
                return None
            found |= dict.fromkeys(roots)
    return tuple(p for p in found if real(p))


def _of_square(u: Expr, v: Symbol) -> tuple[Expr, ...]:
    c, b, a = u.subs(v, 0), u.diff(v).subs(v, 0), u.diff(v, 2)/2
    if a == 0 or v in a.free_symbols or u.has(*_SWITCHES, Expectation):
        return ()
    half = sqrt(expand(b**2 - 4*a*c))/(2*a)
    return -b/(2*a) - half, -b/(2*a) + half


def integrated(found: Iterable[tuple[Expr, Expr, Expr]], variables: tuple[Symbol, ...],
               density: Callable[[Symbol], Expr]) -> list[tuple[Expr, Symbol]]:
    """int delta(u) u' jump phi(w) dw for each (u, jump, u'), w one of the variables: (integrand over the others, w).

    Raises
    ------
    NoClosedForm : u is linear in none of the variables with a factor that holds no other variable.
    """
    done = []
    for u, jump, moved in found:
        if moved == 0:
            continue
        hidden = set().union(*(n.free_symbols for n in u.atoms(Expectation)))
        for w in variables:
            at = None if w in hidden else solved_linearly(u, w)
            if at is None or u.diff(w).free_symbols & set(variables):
                continue
            done.append(((moved*jump*density(w)/Abs(u.diff(w))).xreplace({w: at}), w))
            break
        else:
            raise NoClosedForm(u, f"none of its variables stands linearly in {u}, where it jumps")
    return done


__all__ = ["Surface", "integrated", "solved_linearly", "surfaces", "turning_places", "vanishes_on"]
