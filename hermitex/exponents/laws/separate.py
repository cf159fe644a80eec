"""Y = (Y_A, Y_B), z_A and z_B independent: G = G_A + G_B in two blocks, E[G_A (x) G_B] = 0, so alpha_c = min(alpha_A, alpha_B).

E[G] = 0, and the blocks are independent: F(M) = F_A(M_A) + F_B(M_B), and M_AB is sent to E[G_A] M_AB E[G_B] = 0. A label is
such a pair where it is a product of a factor of two opposite values and one that is never of the other sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from math import prod

from sympy import Abs, Expr, S, Symbol, sign

from hermitex.exponents.labels.sizes import signs_and_size
from hermitex.exponents.laws.discrete import split_products


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
