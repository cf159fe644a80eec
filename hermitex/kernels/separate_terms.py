"""E[z (f(z) - g(m z + s z1))] -> E z f(z) - E z g(m z + s z1): terms that need fewer variables, or have a closed form, by themselves.

The value of such an average may pass through 0, where no nodes hold it relative to itself; its terms do not. What may cancel at
every point stays whole: a square, and 1 - tanh(u)^2, which is exp(-2 u) far out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from sympy import Add, Expr, Mul, Symbol

from hermitex.symbolic.existence_check import exists_for_most
from hermitex.symbolic.gaussian import Expectation, bind


def separate_terms(node: Expectation, is_closed: Callable[[Expectation], bool]) -> list[Expr]:
    """The averages of an integrand's terms, those that need all of its variables and no less as one; none where there is no gain.

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
    terms = _multiplied_out(body, set(variables))
    groups: dict[object, list[Expr]] = {}
    for t in terms:
        own = bind(t, variables, None)
        through_all = isinstance(own, Expectation) and len(own.bound) == len(variables)
        key = t if through_all and is_closed(own) else frozenset(t.free_symbols & set(variables))
        groups.setdefault(key, []).append(t)
    found = [bind(Add(*group), variables, None) for group in groups.values()]
    alone = all(not isinstance(e, Expectation) or exists_for_most(e) for e in found)
    return found if len(found) > 1 and alone else []


def _multiplied_out(body: Expr, variables: set[Symbol]) -> list[Expr]:
    """The terms of a sum, or of a product of sums of which every term varies; of at most a dozen."""
    factors = Mul.make_args(body)
    open_ones = [f for f in factors if isinstance(f, Add) and all(t.free_symbols & variables for t in f.args)]
    most = 12  # terms whose averages are taken apart: a longer sum is not what a user wrote
    if not open_ones or prod(len(f.args) for f in open_ones) > most:
        return []
    rest = Mul(*(f for f in factors if f not in open_ones))
    return [Mul(rest, *chosen) for chosen in product(*(f.args for f in open_ones))]


__all__ = ["separate_terms"]
