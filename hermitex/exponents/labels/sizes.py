"""u = s h, s = +-1, h > 0 almost everywhere: such a label tells both its sign and its size, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, product
from math import prod

from sympy import Abs, Dummy, Expr, Heaviside, Max, Min, Mul, Piecewise, Pow, S, Symbol, ceiling, floor, sign

from hermitex.errors import HermitexError
from hermitex.exponents.labels.almost_everywhere import almost_everywhere
from hermitex.exponents.labels.levels import injective_in_modulus, sign_of
from hermitex.symbolic.pieces import pieces

_COMBINATIONS = 400


def side(h: Expr) -> int:
    """+1 or -1 if h is proved positive or negative almost everywhere, else 0.

    >>> from sympy import exp, log
    >>> from hermitex.symbols import z1, z2
    >>> side(log(1 + Abs(z1*z2))), side(-exp(-z1**2)), side(Max(z1, 0)), side(z1)
    (1, -1, 0, 0)
    """
    if (h.is_nonnegative or h.is_nonpositive) and nonzero_almost_everywhere(h):
        return 1 if h.is_nonnegative else -1
    if any((h.subs(x, -x) - h).expand() != 0 for x in h.free_symbols):
        return 0
    return sign_of(h.xreplace({x: Dummy(x.name, positive=True) for x in h.free_symbols}))


def signs_and_size(u: Expr) -> tuple[Expr, Expr] | None:
    """(s, h) with u = s h, s = +-1 and h > 0 almost everywhere: u tells both, and nothing more; None if u is not of that kind."""
    factors = Mul.make_args(u)
    signs = [f for f in factors if _opposite(f)]
    h = Mul(*(f for f in factors if f not in signs))
    if not signs or not h.free_symbols:
        return None
    towards = side(h) or side(h.factor())
    return (Mul(*signs), h * towards) if towards else None


def _opposite(e: Expr) -> bool:
    values = finite_values(e)
    return values is not None and len(values) == 2 and sum(values) == 0


def signed(u: Expr, variables: Sequence[Symbol], inner: Callable[[Expr], Expr]) -> Expr:
    """s h tells (s, h), and so does s h' for a positive h' that tells what h tells: sign(z1 z2) exp(-z1^2) tells z1 sign(z2).

    inner : what h tells, in another form
    """
    found = signs_and_size(u)
    if found is None:
        return u
    s, h = found
    mine = [x for x in variables if h.has(x)]
    x = mine[0] if len(mine) == 1 and h.free_symbols == set(mine) else None
    if x is not None and (h.subs(x, -x) - h).expand() == 0 and injective_in_modulus(h, x):
        core: Expr = Abs(x)
    else:
        core = inner(h)
        core *= side(core)
    return almost_everywhere(s * core) if core not in (0, h) else u


def nonzero_almost_everywhere(factor: Expr) -> bool:
    """Is a known factor zero at single points at most? max(z, 0) is not: where it is zero the label is silent."""
    symbols = factor.free_symbols
    if not symbols:
        return factor.is_nonzero is not False
    if not factor.has(Abs, sign, Heaviside, Max, Min, Piecewise, floor, ceiling):
        return True
    if isinstance(factor, (Mul, Pow, sign, Abs)):
        return all(nonzero_almost_everywhere(f) for f in factor.args if f.free_symbols)
    if len(symbols) > 1:
        return False
    try:
        return all(p.expr != 0 for p in pieces(factor, next(iter(symbols))))
    except HermitexError:
        return False


def finite_values(e: Expr) -> frozenset[Expr] | None:
    """A finite set of values that holds every value of e (almost everywhere), or None.

    Examples
    --------
    >>> from hermitex.symbols import z1, z2
    >>> sorted(finite_values(sign(z1) + sign(z2)))
    [-2, 0, 2]
    >>> finite_values(z1 + sign(z2)) is None
    True
    """
    if not e.free_symbols:
        return frozenset([e])
    if isinstance(e, Piecewise):
        branches = [finite_values(value) for value, _ in e.args]
        known = [b for b in branches if b is not None]
        return frozenset().union(*known) if len(known) == len(branches) else None
    if isinstance(e, (sign, Heaviside)):
        inner = finite_values(e.args[0])
        if inner is None:
            return frozenset([S.One, S.NegativeOne] if isinstance(e, sign) else [S.One, S.Zero])
        return frozenset(e.func(v, *e.args[1:]) for v in inner)
    if not e.args:
        return None
    parts = [finite_values(a) for a in e.args]
    total = 1
    for p in parts:
        total *= len(p) if p is not None else _COMBINATIONS + 1
    if total > _COMBINATIONS:
        return None
    return frozenset(e.func(*choice) for choice in product(*(p for p in parts if p is not None)))


def pair_of_labels(g: Expr, names: Sequence[Symbol]) -> tuple[Expr, Expr] | None:
    """(A, B) in different variables if the label g tells both, and nothing more; A takes two opposite values.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2, z3
    >>> pair_of_labels(sign(z1*z2)*(1 + z3**2), (z1, z2, z3))
    (sign(z1)*sign(z2), z3**2 + 1)
    >>> pair_of_labels(sign(z1*z2)*z3, (z1, z2, z3)) is None
    True
    """
    from hermitex.exponents.laws.discrete import split_products

    constant, rest = split_products(g).as_independent(*names, as_Add=False)
    found = signs_and_size(rest) if constant.is_nonzero else None
    return found if found is not None and not found[0].free_symbols & found[1].free_symbols else None


def without_silent_sign(g: Expr, names: Sequence[Symbol]) -> Expr:
    """|g| where the sign of g tells nothing of second order given |g|, and |g| holds fewer variables than g; else g.

    Where for every |a| = 0 or 2 a flip of variables that takes g to +-g takes He_a sign(g) to its negative, E[He_a sign(g) | |g|]
    is 0. So G of (|g|, sign(g)) is that of |g|.

    Examples
    --------
    >>> from sympy import sign
    >>> from hermitex.symbols import z1, z2, z3
    >>> without_silent_sign(sign(z1*z2)*z3, (z1, z2, z3)), without_silent_sign(sign(z1*z2)*z3**2, (z1, z2, z3))
    (Abs(z3), z3**2*sign(z1*z2))
    """
    from hermitex.exponents.laws.discrete import split_products

    g, whole = split_products(g), g
    size = split_products(Abs(g)).replace(lambda e: isinstance(e, Abs) and isinstance(e.args[0], sign), lambda e: S.One)
    if not size.free_symbols or size.free_symbols >= g.free_symbols & set(names):
        return whole
    kinds = []  # (a flip, its sign): g(flip z) = sign g(z)
    for flip in product((1, -1), repeat=len(names)):
        moved = g.xreplace({x: f*x for x, f in zip(names, flip, strict=True)})
        kinds += [(flip, e) for e in (1, -1) if (moved - e*g).expand() == 0]
    orders: list[tuple[int, ...]] = [(), *combinations_with_replacement(range(len(names)), 2)]
    hidden = all(any(e*prod(flip[i] for i in a) == -1 for flip, e in kinds) for a in orders)
    return size if hidden else whole
