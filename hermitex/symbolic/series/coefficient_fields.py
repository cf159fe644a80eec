"""g in K[z_1, ..., z_r], K the field of its coefficients: rationals, or algebraic numbers such as sqrt(5).

Sums and products of such polynomials are exact and quick, and a coefficient that is not zero in K is not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import factorial, prod
from typing import Any

from sympy import QQ, Add, Basic, Expr, Mul, Poly, Pow, S, Symbol
from sympy.polys.constructor import construct_domain
from sympy.polys.polyerrors import BasePolynomialError
from sympy.polys.rings import PolyRing

from hermitex.symbolic.budget import checkpoint
from hermitex.symbolic.formula_size import MAX_TERMS, polynomial_size


def field_of(constants: Iterable[Expr]) -> Any | None:
    """The rationals or the field that some algebraic numbers span, None if some are not algebraic or it is too large.

    Examples
    --------
    >>> from sympy import Rational, pi, sqrt
    >>> field_of([Rational(1, 2)]), field_of([sqrt(2), 1/sqrt(2)]), field_of([pi]) is None
    (QQ, QQ<sqrt(2)>, True)
    """
    # Larger fields take long to be written down, so they are refused by the number of roots.
    values = list(dict.fromkeys(constants))
    if all(c.is_Rational for c in values):
        return QQ
    roots = set().union(*(c.atoms(Pow) for c in values))
    if len({r.base if r.exp.is_Rational else r for r in roots}) > 3 or not all(c.is_algebraic for c in values):
        return None
    try:
        found = construct_domain(values, extension=True, field=True)[0]
    except (BasePolynomialError, NotImplementedError, ValueError):
        return None
    degree = 8  # of K over the rationals
    return found if found.is_QQ or (found.is_AlgebraicField and found.mod.degree() <= degree) else None


@lru_cache(maxsize=512)
def in_field(g: Expr, variables: tuple[Symbol, ...]) -> Any | None:
    """The element of K[variables] that an expression writes, or None if it writes none, or a very long one.

    Examples
    --------
    >>> from sympy import sqrt
    >>> from hermitex.symbols import z1, z2
    >>> in_field(((z1 + z2)/sqrt(2))**2, (z1, z2))
    1/2*z1**2 + z1*z2 + 1/2*z2**2
    """
    if not g.is_polynomial(*variables) or polynomial_size(g, variables)[0] > MAX_TERMS:
        return None
    domain = field_of(_constants(g, set(variables)))
    if domain is None:
        return None
    ring = PolyRing(variables, domain)
    try:
        return _element(g, ring, dict(zip(variables, ring.gens, strict=True)))
    except (BasePolynomialError, NotImplementedError, ValueError):
        return None


def _constants(e: Basic, inside: set[Symbol]) -> list[Expr]:
    """The largest sub-expressions without variables."""
    if not e.free_symbols & inside:
        return [e] if isinstance(e, Expr) else []
    if isinstance(e, Pow):
        return _constants(e.base, inside)
    return [c for a in e.args for c in _constants(a, inside)]


def _element(e: Any, ring: Any, gens: dict[Symbol, Any]) -> Any:
    checkpoint("multiplying out a polynomial")
    if e in gens:
        return gens[e]
    if not e.free_symbols & set(gens):
        return ring(ring.domain.from_sympy(e))
    if isinstance(e, Add):
        return sum((_element(a, ring, gens) for a in e.args), ring.zero)
    if isinstance(e, Mul):
        return prod((_element(a, ring, gens) for a in e.args), start=ring.one)
    if isinstance(e, Pow):
        return _element(e.base, ring, gens)**int(e.exp)
    return ring.from_dict({m: ring.domain.from_sympy(c) for m, c in Poly(e, *ring.symbols).terms()})


def moment(p: Any, a: Sequence[int]) -> Any:
    """E[p He_a] from E[z^m He_n] = m!/(m - n)! (m - n - 1)!!, m - n even: an element of K."""
    total = p.ring.domain.zero
    for powers, c in p.items():
        if all(m >= n and (m - n) % 2 == 0 for m, n in zip(powers, a, strict=True)):
            total += c*p.ring.domain(prod(_one(m, n) for m, n in zip(powers, a, strict=True)))
    return total


@lru_cache(maxsize=4096)
def _one(m: int, n: int) -> int:
    half = (m - n)//2
    return factorial(m)//factorial(2*half)*(factorial(2*half)//(2**half*factorial(half)))


def to_expr(p: Any) -> Expr:
    """The polynomial as a sum of monomials."""
    K = p.ring.domain
    return Add(*(K.to_sympy(c)*Mul(*(x**n for x, n in zip(p.ring.symbols, m, strict=True))) for m, c in p.terms())) if p else S.Zero
