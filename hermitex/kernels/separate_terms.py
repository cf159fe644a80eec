"""E[z (f(z) - g(m z + s z1))] -> E z f(z) - E z g(m z + s z1): by themselves what needs fewer variables or has a closed form.

The value of such an average may pass through 0, where no nodes hold it relative to itself; its terms do not. What may cancel at
every point is not split: a square, and 1 - tanh(u)^2, which is exp(-2 u) for large u.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from sympy import Add, Expr, Mul, Symbol

from hermitex.symbolic.bounds.integrability import tempered
from hermitex.symbolic.gaussian import Expectation, bind


def separate_terms(node: Expectation, is_closed: Callable[[Expectation], bool]) -> list[Expr]:
    """The averages of an integrand's terms; the terms that need all of its variables stay together. Empty if nothing is gained.

    Parameters
    ----------
    node : an average over independent standard normals, without averages inside
    is_closed : whether the average of a term has a closed form

    Examples
    --------
    >>> from sympy import erf, tanh
    >>> from hermitex.symbolic.gaussian import E
    >>> from hermitex.symbols import z, z1
    >>> separate_terms(E(z*(tanh(2*z) - erf(z + z1))), lambda term: False)
    [E(-z*erf(z + z1), z, z1), E(z*tanh(2*z), z)]
    >>> separate_terms(E((tanh(2*z) - erf(z + z1))**2), lambda term: False)
    []
    """
    if len(node.bound) < 2:
        return []
    body, variables = node.open()
    groups: dict[object, list[Expr]] = {}
    for t in _multiplied_out(body, set(variables)):
        own = frozenset(t.free_symbols & set(variables))
        key: object = None  # what needs all of the variables, and what may exist only together with other terms
        if all(tempered(t, v) for v in own):
            key = own if len(own) < len(variables) else t if is_closed(bind(t, variables, None)) else None
        groups.setdefault(key, []).append(t)
    return [bind(Add(*group), variables, None) for group in groups.values()] if len(groups) > 1 else []


def _multiplied_out(body: Expr, variables: set[Symbol]) -> list[Expr]:
    """The terms of a sum, or of a product of sums in which every term varies; a dozen at most."""
    factors = Mul.make_args(body)
    open_ones = [f for f in factors if isinstance(f, Add) and all(t.free_symbols & variables for t in f.args)]
    most = 12  # terms whose averages are taken apart: a longer sum is not what a user wrote
    if not open_ones or prod(len(f.args) for f in open_ones) > most:
        return []
    rest = Mul(*(f for f in factors if f not in open_ones))
    return [Mul(rest, *chosen) for chosen in product(*(f.args for f in open_ones))]


__all__ = ["separate_terms"]
