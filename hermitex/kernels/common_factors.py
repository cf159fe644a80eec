"""a z - b z -> (a - b) z: what is multiplied by the same in an integrand is added up before a node comes in.

A difference of two given numbers is exact; the difference of their products with a node has the rounding of both.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from sympy import Add, Expr, Mul, Symbol

from hermitex.symbolic.gaussian import Expectation
from hermitex.symbolic.indexed_sums import ArraySum


def gather_coefficients(e: Expr, moving: AbstractSet[Symbol]) -> Expr:
    """`e` with one coefficient for each part of a sum that holds one of the symbols `moving`.

    >>> from sympy import tanh
    >>> from sympy.abc import a, b, c, z
    >>> gather_coefficients(tanh((a*z + c - b*z)/(a - b)), {z})
    tanh((c + z*(a - b))/(a - b))
    """
    if not e.args or isinstance(e, Expectation | ArraySum) or e.free_symbols.isdisjoint(moving):
        return e
    args = [gather_coefficients(a, moving) for a in e.args]
    done = e if all(a is b for a, b in zip(args, e.args, strict=True)) else e.func(*args)
    if not isinstance(done, Add):
        return done
    parts = _coefficients(done.args, moving)
    if not any(_cancel(c) for part, c in parts.items() if not part.is_number):
        return done
    return Add(*(Mul(Add(*c), part) for part, c in parts.items()))


def factor_common(e: Expr) -> Expr:
    """A sum with what all of its terms are multiplied by before it: averages of one sum with different weights share it.

    >>> from sympy.abc import a, b, z
    >>> factor_common(a*z - b*z)
    z*(a - b)
    """
    if not isinstance(e, Add):
        return e
    first, *others = (Mul.make_args(t) for t in e.args)
    shared = [f for f in first if f.free_symbols and all(f in t for t in others)]
    return Mul(*shared, Add(*(Mul(*(f for f in t if f not in shared)) for t in (first, *others)))) if shared else e


def _coefficients(terms: tuple[Expr, ...], moving: AbstractSet[Symbol]) -> dict[Expr, list[Expr]]:
    """{what holds one of the symbols in a term: what it is multiplied by, term by term}."""
    found: dict[Expr, list[Expr]] = {}
    for t in terms:
        factors = Mul.make_args(t)
        own = [f for f in factors if not f.free_symbols.isdisjoint(moving)]
        found.setdefault(Mul(*own), []).append(Mul(*(f for f in factors if f not in own)))
    return found


def _cancel(terms: list[Expr]) -> bool:
    """Whether terms of a sum may be of different signs."""
    return len(terms) > 1 and not (all(t.is_nonnegative for t in terms) or all(t.is_nonpositive for t in terms))
