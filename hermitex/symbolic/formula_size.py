"""How long a formula is, and how many terms a polynomial would have, multiplied out: asked before anything is done to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from sympy import Add, Basic, Expr, Function, Mul, Pow, Symbol, exp

MAX_TERMS = 20_000  # of a polynomial in the variables, multiplied out; chosen by trial
MANY = 4096  # terms, places or moments that are written out one by one: beyond, an answer takes many seconds
EXPANDED = 400  # operations of a formula that is still multiplied out or cancelled: SymPy takes some tenths of a second
DECIDED = 120  # operations of one whose sign, zero, growth or limit is still looked for, which takes as long
COUNTED = 10**9  # terms and degrees are counted up to here: far beyond every bound on them


@lru_cache(maxsize=2**15)
def operations(e: Basic) -> int:
    """How many operations a formula is written with, as `e.count_ops()` has it: of each part they are counted once.

    >>> from sympy.abc import x, y
    >>> e = (1 - x/(2*y))**2*exp(-x**2)/y
    >>> operations(e), e.count_ops()
    (8, 8)
    """
    if isinstance(e, Add):
        less = [t.as_coeff_Mul()[0].is_negative is True for t in e.args]
        return len(less) - 1 + sum(map(operations, e.args)) - sum(less) + all(less)
    if isinstance(e, Mul):
        above = below = inside = 0  # factors of either side of a fraction, and their parts
        for f in e.args:
            if f.is_Rational:
                above, below, inside = above + (abs(f.p) != 1), below + (f.q != 1), inside + (f.p < 0)
            else:
                divides = isinstance(f, Pow | exp) and f.exp.as_coeff_Mul()[0].is_negative is True
                above, below, inside = above + (not divides), below + divides, inside + operations(f) - divides
        return inside + above + below - bool(above)
    if isinstance(e, Pow):
        return 1 + operations(e.base) + (operations(e.exp) if e.exp != -1 else 0)
    if isinstance(e, Function):
        return 1 + sum(map(operations, e.args))
    if e.is_Rational:
        return (e.p < 0) + (e.q != 1)
    return 0 if e.is_Atom else e.count_ops()


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
