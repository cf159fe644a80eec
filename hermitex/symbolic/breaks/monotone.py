"""sign(G(v) - G(w)) = sign(v - w) for an increasing G: a switch that two variables enter through one function, by their order."""

from __future__ import annotations

from itertools import combinations

from sympy import Abs, Add, Expr, Heaviside, Max, Min, S, Symbol, oo, sign

from hermitex.symbolic.breaks.interval_ranges import bounds
from hermitex.symbolic.breaks.switches import SWITCHES


def by_order(body: Expr, variables: tuple[Symbol, ...]) -> Expr:
    """The body with |G(v) - G(w)| as (G(v) - G(w)) sign(v - w), and sign, Heaviside, Max and Min likewise; G(w) + G(v) for odd G.

    Examples
    --------
    >>> from sympy import tanh
    >>> from hermitex.symbols import z1, z2
    >>> by_order(Abs(tanh(z1) - tanh(z2)), (z1, z2))
    (tanh(z1) - tanh(z2))*sign(z1 - z2)
    """
    def plain(e: Expr) -> Expr:
        if isinstance(e, (Max, Min)):
            a, b = e.args
            order = _order(a - b, variables)
            if order is None:
                return e
            first = order if isinstance(e, Max) else -order
            return a*Heaviside(first) + b*Heaviside(-first)
        order = _order(e.args[0], variables)
        if order is None:
            return e
        return e.args[0]*sign(order) if isinstance(e, Abs) else e.func(order)

    kinds = (Abs, sign, Heaviside, Max, Min)
    return body.replace(lambda e: isinstance(e, kinds) and (len(e.args) == 2 or isinstance(e, kinds[:3])), plain)


def _order(u: Expr, variables: tuple[Symbol, ...]) -> Expr | None:
    """v - w, or v + w, or minus that, which has the sign of u everywhere; None where no such is seen."""
    if not isinstance(u, Add) or u.has(*SWITCHES):
        return None
    pair = [v for v in variables if v in u.free_symbols]
    for v, w in combinations(pair, 2) if len(pair) == 2 else ():
        for s in (1, -1):
            if u.xreplace({v: s*w, w: s*v}) != -u or u.diff(v).has(w):
                continue
            slope = u.diff(v)
            if not slope.has(v):  # it is affine, and known as such
                return None
            low, high = bounds(slope, v, (-oo, oo))
            if low >= 0 or high <= 0:
                return (v - s*w)*(S.One if low >= 0 else S.NegativeOne)
    return None
