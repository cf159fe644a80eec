"""Y = (Y_A, Y_B), z_A and z_B independent: G = G_A + G_B in two blocks, E[G_A (x) G_B] = 0, so alpha_c = min(alpha_A, alpha_B).

E[G] = 0, and the blocks are independent: F(M) = F_A(M_A) + F_B(M_B), and M_AB is sent to E[G_A] M_AB E[G_B] = 0. A label is
such a pair where it is a product of a factor of two opposite values and one that is never of the other sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Mul, Symbol

from hermitex.exponents.labels.families import finite_values
from hermitex.exponents.laws.blocks import groups
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
    g = split_products(g)
    constant, rest = g.as_independent(*names, as_Add=False)
    if not isinstance(rest, Mul) or not constant.is_nonzero:
        return None
    signs: list[Expr] = []
    others: list[Expr] = []
    for block in groups(Mul.make_args(rest), names):
        (signs if _opposite(Mul(*block)) else others).extend(block)
    if not signs or not others or not any(_one_sided(e) for e in (Mul(*others), Mul(*others).factor())):
        return None
    return Mul(*signs), Mul(*others)


def _opposite(e: Expr) -> bool:
    values = finite_values(e)
    return values is not None and len(values) == 2 and sum(values) == 0


def _one_sided(e: Expr) -> bool:
    return bool(e.is_nonnegative or e.is_nonpositive)
