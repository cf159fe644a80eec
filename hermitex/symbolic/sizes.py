"""How many terms a polynomial would have, multiplied out: asked before anything is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sympy import Add, Expr, Mul, Pow, Symbol

MAX_TERMS = 20_000   # of a polynomial in the variables, multiplied out
COUNTED = 10**9  # terms and degrees are counted up to here


def polynomial_size(expr: Expr, variables: Sequence[Symbol]) -> tuple[int, int]:
    """(terms, degree) at most, of `expr` multiplied out in the variables; functions of them count as further ones.

    >>> from hermitex.symbols import z, z1, z2
    >>> polynomial_size((1 + z)**50*z**3, [z]), polynomial_size((1 + z1 + z2)**10, [z1, z2])
    ((51, 53), (66, 10))
    """
    terms, degree, generators = _polynomial_size(expr, frozenset(variables))
    return min(terms, _choose(degree + len(generators), degree)), degree


def _polynomial_size(expr: Expr, variables: frozenset[Symbol]) -> tuple[int, int, frozenset[Expr]]:
    if not expr.free_symbols & variables:
        return 1, 0, frozenset()
    if isinstance(expr, Add | Mul):
        parts = [_polynomial_size(a, variables) for a in expr.args]
        many, high = [p[0] for p in parts], [p[1] for p in parts]
        generators: frozenset[Expr] = frozenset().union(*(p[2] for p in parts))
        counts = (sum(many), max(high)) if isinstance(expr, Add) else (math.prod(many), sum(high))
        return min(counts[0], COUNTED), min(counts[1], COUNTED), generators
    if isinstance(expr, Pow) and expr.exp.is_Rational and (expr.exp.is_Integer or abs(expr.exp) > 1):
        terms, degree, generators = _polynomial_size(expr.base, variables)
        n = abs(int(expr.exp))
        return _choose(terms + n - 1, n), min(degree*n, COUNTED), generators
    return 1, 1, frozenset([expr])


def _choose(n: int, k: int) -> int:
    k = min(k, n - k)
    return COUNTED if k > 64 else min(math.comb(n, k), COUNTED)
