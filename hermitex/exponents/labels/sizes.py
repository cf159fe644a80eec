"""u = s h, s = +-1, h > 0 almost everywhere: such a label tells both its sign and its size, and nothing more."""

from __future__ import annotations

from itertools import product

from sympy import Abs, Dummy, Expr, Heaviside, Max, Min, Mul, Piecewise, Pow, S, ceiling, floor, sign

from hermitex.errors import HermitexError
from hermitex.exponents.labels.levels import sign_of
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
